"""FoldlessSearchCV(LSSVC(standardize=True)) beside other classifiers on many sets: test errors and times.

    foldless                the search as it comes
    SVC grid                GridSearchCV(SVC(), cv=5, n_jobs=-1), four C times four gamma
    boosting                HistGradientBoostingClassifier as it comes: it is not tuned
    logistic                LogisticRegressionCV, ten C, cv=5, n_jobs=-1
    ridge                   RidgeClassifierCV, thirteen alphas, leave-one-out

on random partitions (published ones where there are some), two thirds of the rows for training, at most 2000 (gina:
1000), the others for testing, at most 2000. Features are standardised on the training part, for all of them. Seconds
are those of ``fit`` with all cores, after a first small fit that is not counted; data sets are met in turn by all.

``--data DIR`` is a folder with the files that ``sets.py`` names; without it, sets that come with scikit-learn are used.
``--plot FILE`` draws the errors by set, and the mean error against the time (matplotlib). Errors are in per cent; a win
is the least mean error on a set, shared ones count for each.

    python benchmarks/peers.py --data DIR [--splits 10] [--only NAME ...] [--plot FILE] [--fast]
"""

import sys
import warnings
from pathlib import Path

import numpy as np
from scipy.stats import rankdata
from sklearn.datasets import load_iris
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegressionCV, RidgeClassifierCV
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from common import markdown, parser, report, svc_grid, timed
from criterion import compared
from foldless import LSSVC, FoldlessSearchCV
from sets import IDA, SKLEARN, UCI, WCCI, partitions, parts, rows_of

MOST_TRAIN = {"wcci2006/gina": 1000}
METHODS = {
    "foldless": lambda X: FoldlessSearchCV(LSSVC(standardize=True)),
    "SVC grid": lambda X: GridSearchCV(SVC(), svc_grid(X), cv=5, n_jobs=-1),
    "boosting": lambda X: HistGradientBoostingClassifier(random_state=0),
    "logistic": lambda X: LogisticRegressionCV(Cs=10, cv=5, max_iter=1000, n_jobs=-1),
    "ridge": lambda X: RidgeClassifierCV(np.logspace(-3, 3, 13)),
}


def measured(X, y, X_test, y_test):
    """{method: (test error in per cent, seconds of fit)} of one partition."""
    found = {}
    for name, make in METHODS.items():
        model, seconds = timed(lambda make=make: make(X).fit(X, y))
        found[name] = (100 * float(np.mean(model.predict(X_test) != y_test)), seconds)
    return found


def of_set(options, name):
    """Errors and seconds (splits, methods, 2) of a set."""
    X, y, realisations = rows_of(options.data, name)
    drawn = partitions(y, realisations, options.splits, MOST_TRAIN.get(name, 2000))
    found = [measured(*parts(X, y, train, test)) for train, test in drawn]
    return np.array([list(each.values()) for each in found])


def over_sets(tables):
    """One line a method: mean error and rank, sets won, paired differences to foldless, seconds in all."""
    errors = np.array([table[:, :, 0].mean(0) for table in tables])
    ranks = np.array([rankdata(each.round(9)) for each in errors])
    _, change, spread = (np.array(each) for each in zip(*(compared(t[:, :, 0]) for t in tables), strict=True))
    ahead = np.where(np.abs(change) > 2 * spread, np.sign(change), 0)
    return [
        {
            "method": name,
            "error": float(errors[:, k].mean()),
            "rank": float(ranks[:, k].mean()),
            "wins": int(np.sum(errors[:, k] <= errors.min(1) + 1e-9)),
            "above foldless": float(change[:, k].mean()),
            "se": float(np.sqrt(np.square(spread[:, k]).sum()) / len(spread)),
            "sets above": int(np.sum(change[:, k] > 1e-9)),
            "sets below": int(np.sum(change[:, k] < -1e-9)),
            "clearly above": int(np.sum(ahead[:, k] > 0)),
            "clearly below": int(np.sum(ahead[:, k] < 0)),
            "seconds": float(sum(table[:, k, 1].sum() for table in tables)),
        }
        for k, name in enumerate(METHODS)
    ]


def plot(path, lines, rows):
    """Errors by set and method; mean error against the time of all fits."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 0.26 * len(lines) + 1.5), width_ratios=(3, 2))
    lines = sorted(lines, key=lambda line: line["foldless"])
    errors = np.maximum([[line[name] for name in METHODS] for line in lines], 0.5)
    places = np.arange(len(lines))
    left.hlines(places, errors.min(1), errors.max(1), color="0.85", zorder=0)
    for k, (name, marker) in enumerate(zip(METHODS, "os^vD", strict=True)):
        look = {"marker": marker, "color": f"C{k}", "zorder": 3 - bool(k)}
        left.scatter(errors[:, k], places, label=name, s=26, **look)
        right.scatter(rows[k]["seconds"], rows[k]["error"], s=60, **look)
        below = (0, -14 if k == 1 else 8)
        where = {"textcoords": "offset points", "ha": "center"}
        right.annotate(name, (rows[k]["seconds"], rows[k]["error"]), below, **where)
    left.set(yticks=places, yticklabels=[line["set"] for line in lines], xlabel="test error (%)", xscale="log")
    ticks = [0.5, 1, 2, 5, 10, 20, 40]
    left.set_xticks(ticks, ["up to 0.5", *ticks[1:]])
    left.minorticks_off()
    left.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=len(METHODS), frameon=False)
    right.set(xlabel="seconds of all fits", ylabel="mean test error (%)", xscale="log")
    right.margins(0.2)
    figure.tight_layout()
    figure.savefig(path, dpi=100)
    plt.close(figure)


def main():
    options = parser(__doc__)
    options.add_argument("--data", type=Path)
    options.add_argument("--splits", type=int, default=10)
    options.add_argument("--only", nargs="+", metavar="NAME")
    options.add_argument("--plot", type=Path)
    options = options.parse_args()
    names = list(SKLEARN if options.data is None else (*IDA, *UCI, *SKLEARN, *WCCI))
    if options.fast:
        names, options.splits = [name for name in names if name.endswith(("heart", "iris", "vehicle"))], 2
    names = options.only or names
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.filterwarnings("ignore", category=FutureWarning, module="sklearn")  # of defaults to come
    warnings.filterwarnings("ignore", "The least populated class", UserWarning)  # glass, yeast: fewer rows than folds
    measured(*load_iris(return_X_y=True), *load_iris(return_X_y=True))  # threads and processes are started
    tables, lines = [], []
    for name in names:
        table, seconds = timed(lambda name=name: of_set(options, name))
        tables.append(table)
        means = dict(zip(METHODS, table[:, :, 0].mean(0).tolist(), strict=True))
        times = dict(zip((f"s {each}" for each in METHODS), table[:, :, 1].mean(0).tolist(), strict=True))
        lines.append({"set": name, **means, **times})
        markdown(lines[-1:])
        print(f"{name}: {seconds:.0f} s", file=sys.stderr)
    rows = over_sets(tables)
    markdown(rows)
    if options.plot:
        plot(options.plot, lines, rows)
    report(options, methods=rows, sets=lines)


if __name__ == "__main__":
    main()
