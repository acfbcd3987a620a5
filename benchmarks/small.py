"""What cross-validation of few rows costs, where book-keeping is more than algebra: against scikit-learn's refits.

    python benchmarks/small.py [--fast] [--json FILE]

Every entry holds its seconds, those of scikit-learn's function of the same name, which refits the same estimator, and
their ratio, which is to be at most 1; both take turns, and the least of several rounds counts. Random data; nothing is
done about threads, as a user would have it.
"""

import warnings
from functools import partial

import numpy as np
from sklearn import model_selection as skl
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.model_selection import LeaveOneOut, LeavePOut

import foldless.model_selection as fl
from common import at_most, best_time, best_times, markdown, parser, report, summary
from foldless import LSSVC, KernelFisherDiscriminant

ESTIMATORS = {
    "LSSVC rbf": LSSVC(),
    "LSSVC linear": LSSVC("linear"),
    "Ridge": Ridge(),
    "RidgeClassifier": RidgeClassifier(),
    "KernelFisherDiscriminant": KernelFisherDiscriminant(),
}
FUNCTIONS = ("cross_val_predict", "cross_val_score", "cross_validate")
SPLITS = {"2 folds": 2, "5 folds": 5, "10 folds": 10, "leave-one-out": LeaveOneOut()}
PROBABLE = LSSVC(calibration="sigmoid")
SCORINGS = {  # estimator, scoring and further options, of ten folds
    "roc_auc": (LSSVC(), "roc_auc", {}),
    "balanced_accuracy": (LSSVC(), "balanced_accuracy", {}),
    "f1": (LSSVC(), "f1", {}),
    "four at once": (LSSVC(), ["accuracy", "roc_auc", "balanced_accuracy", "f1"], {}),
    "neg_log_loss": (PROBABLE, "neg_log_loss", {}),
    "r2": (Ridge(), "r2", {}),
    "neg_mean_absolute_error": (Ridge(), "neg_mean_absolute_error", {}),
    "train scores": (LSSVC(), "accuracy", {"return_train_score": True}),
}


def sample(n, d):
    """n rows, and labels that a linear model finds in part."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return X, (X[:, 0] + rng.standard_normal(n) > 0).astype(int)


def options_of(function, estimator):
    """A score that is defined for single rows."""
    if function == "cross_val_predict":
        return {}
    return {"scoring": "neg_mean_squared_error" if isinstance(estimator, Ridge) else "accuracy"}


def against_refits(name, function, estimator, n, d, repeats, **options):
    """One entry: both libraries' function of this name."""
    X, y = sample(n, d)
    ours, theirs = (partial(getattr(library, function), estimator, X, y, **options) for library in (fl, skl))
    found = best_times(repeats, ours=ours, theirs=theirs)
    if repeats:  # short calls are measured more often
        found["ours"] = min(found["ours"], best_time(ours, 2 * repeats))
    seconds = {"seconds": found["ours"], "yardstick_seconds": found["theirs"]}
    return {"name": name, "n": n, "features": d, **seconds, "ratio": at_most(1, found["ours"] / found["theirs"])}


def every_call(n, d, repeats):
    """All functions, estimators and splits at one size."""
    for name, estimator in ESTIMATORS.items():
        for kind, cv in SPLITS.items():
            rounds = min(repeats, 1) if kind == "leave-one-out" and n > 30 else repeats  # n refits are long enough
            for function in FUNCTIONS:
                options = {"cv": cv, **options_of(function, estimator)}
                yield against_refits(f"{function}, {kind}, {name}", function, estimator, n, d, rounds, **options)


def every_scoring(n, d, repeats):
    """cross_validate with one scoring after the other."""
    for name, (estimator, scoring, more) in SCORINGS.items():
        options = {"cv": 10, "scoring": scoring, **more}
        yield against_refits(f"cross_validate, {name}", "cross_validate", estimator, n, d, repeats, **options)


def leave_two_out(n, limit, repeats):
    """All pairs of rows, in seconds."""
    X, y = sample(n, 50)
    for name, estimator in ESTIMATORS.items():
        options = {"cv": LeavePOut(2), **options_of("cross_val_score", estimator)}
        seconds = best_time(partial(fl.cross_val_score, estimator, X, y, **options), repeats)
        yield {"name": f"leave-two-out, {name}", "n": n, "features": 50, "seconds": seconds, "limit": limit}


def main():
    """Measure and report."""
    options = parser(__doc__).parse_args()
    warnings.simplefilter("ignore")  # of folds with one class
    repeats = 0 if options.fast else 5
    sizes = [(30, 5)] if options.fast else [(n, d) for n in (30, 100, 300) for d in (5, 50)]
    results = [entry for size in sizes for entry in every_call(*size, repeats)]
    results += every_scoring(*sizes[-1], repeats)
    pairs = list(leave_two_out(20 if options.fast else 200, 0.5, repeats))
    markdown([summary(each) | {"features": each["features"]} for each in results])
    markdown(pairs)
    worst = max(results, key=lambda each: each["ratio"]["value"])
    report(options, results=results, pairs=pairs, worst=worst)


if __name__ == "__main__":
    main()
