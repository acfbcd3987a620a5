"""What scaling costs in leave-one-out: inside the estimator, once in front of it, and on each training part.

    once    LSSVC(standardize=True) and a pipeline with steps="once", in units of LSSVC on the same rows; n = 1000
    each    StandardScaler and a linear model, both fitted on each training part, against scikit-learn's own loop, which
            is run on a sample of the folds and scaled; n = 5000, 50 features. The values there must be equal.

Random data, float64, one thread, which suits such small matrices and both sides.

    python benchmarks/pipelines.py [--fast] [--json FILE]
"""

import numpy as np
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.model_selection import LeaveOneOut
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from common import at_least, at_most, best_times, markdown, parser, report, summary, timed
from foldless import LSSVC
from foldless.model_selection import cross_val_predict

FOLDS = 40  # of scikit-learn's loop


def sample(n, d):
    """n rows of d features of unequal scale and place, and labels that depend on them."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    y = (X @ rng.standard_normal(d) + rng.standard_normal(n) > 0).astype(int)
    return X * rng.uniform(0.1, 50, d) + rng.uniform(-20, 20, d), y


def once(n, repeats):
    """Leave-one-out with features scaled once, in units of that without."""
    X, y = sample(n, 20)
    scaled = StandardScaler().fit_transform(X)

    def of(estimator, rows, **options):
        call = {"cv": LeaveOneOut(), "method": "decision_function", **options}
        return lambda: cross_val_predict(estimator, rows, y, **call)

    times = best_times(
        repeats,
        bare=of(LSSVC(), scaled),
        inside=of(LSSVC(standardize=True), X),
        pipeline=of(make_pipeline(StandardScaler(), LSSVC()), X, steps="once"),
    )
    names = {"inside": "LSSVC(standardize=True)", "pipeline": "StandardScaler, LSSVC, steps='once'"}
    for key, name in names.items():
        yield {
            "name": name,
            "n": n,
            "seconds": times[key],
            "yardstick_seconds": times["bare"],
            "yardstick": "LSSVC; ratio = seconds / yardstick_seconds",
            "ratio": at_most(1.3, times[key] / times["bare"]),
        }


def each(last, method, n, d, repeats):
    """Leave-one-out of StandardScaler and a linear model against scikit-learn's loop over some of the folds."""
    X, y = sample(n, d)
    y = y + np.random.default_rng(1).standard_normal(n) if isinstance(last, Ridge) else y
    pipeline = make_pipeline(StandardScaler(), last)
    rows = np.random.default_rng(2).choice(n, min(n, FOLDS), replace=False)
    seconds = best_times(repeats, it=lambda: cross_val_predict(pipeline, X, y, cv=LeaveOneOut(), method=method))["it"]
    ours = cross_val_predict(pipeline, X, y, cv=LeaveOneOut(), method=method)[rows]
    theirs, times = [], []
    for row in rows:
        train = np.delete(np.arange(n), row)
        value, time = timed(lambda train=train, row=row: getattr(pipeline.fit(X[train], y[train]), method)(X[[row]]))
        theirs.append(value[0])
        times.append(time)
    loop = n * float(np.median(times))
    return {
        "name": f"StandardScaler, {type(last).__name__}, steps='each'",
        "n": n,
        "seconds": seconds,
        "yardstick_seconds": loop,
        "yardstick": f"scikit-learn's loop, from the median of {len(rows)} folds; ratio = yardstick_seconds / seconds",
        "ratio": at_least(50, loop / seconds),
        "largest_difference": at_most(1e-8, float(np.abs(ours - theirs).max() / np.abs(theirs).max())),
    }


@threadpool_limits.wrap(limits=1)
def main():
    options = parser(__doc__).parse_args()
    small, large, repeats = (100, 300, 0) if options.fast else (1000, 5000, 5)
    entries = list(once(small, repeats))
    for last, method in (
        (Ridge(), "predict"),
        (RidgeClassifier(), "decision_function"),
        (LSSVC("linear"), "decision_function"),
    ):
        entries.append(each(last, method, large, 50, repeats))
    markdown([summary(entry) for entry in entries])
    report(options, entries=entries)


if __name__ == "__main__":
    main()
