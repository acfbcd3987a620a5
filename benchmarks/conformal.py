"""What conformal sets and intervals cost, in fits, and how often they hold the truth.

    python benchmarks/conformal.py [--fast] [--repeats 100] [--json FILE]

``entries``: n = 1000 rows with an RBF kernel, 1000 new rows; seconds, those of one fit in the same run, their ratio, a
limit in seconds and whether it is kept. ``coverage``: the share of new values, or labels, that sets of nominal coverage
0.9 hold, its standard error over data sets, and the median width or mean size of the sets; for a model that is given,
and for one that is chosen by leave-one-out from a grid of 24 settings on the same rows.
"""

import warnings

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold
from threadpoolctl import threadpool_limits

from common import at_most, best_times, markdown, parser, report
from foldless import LSSVC, LSSVR, FoldlessSearchCV
from foldless.model_selection import nested_cross_validate

LIMIT = 2.0  # seconds
GRID = {"alpha": np.logspace(-3, 2, 6), "gamma": [0.03, 0.1, 0.3, 1.0]}
NEW = 50


def sample(rng, n):
    """Rows, values and labels."""
    X = rng.standard_normal((n, 5))
    return X, np.sin(X[:, 0]) + 0.5 * rng.standard_normal(n), (X[:, 0] + rng.standard_normal(n) > 0).astype(int)


def costs(n, n_new, repeats):
    """Seconds of sets and intervals of n_new rows beside one fit."""
    X, values, labels = sample(np.random.default_rng(0), n + n_new)
    three, new = labels + (X[:, 1] > 0.5), X[n:]
    models = {"2 classes": LSSVC().fit(X[:n], labels[:n]), "3 classes": LSSVC().fit(X[:n], three[:n])}
    regression = LSSVR().fit(X[:n], values[:n])
    calls = {"fit": lambda: LSSVC().fit(X[:n], labels[:n])}
    for name, model in models.items():
        calls[f"sets, {name}"] = lambda model=model: model.predict_set(new)
        calls[f"sets, {name}, class-conditional"] = lambda model=model: model.predict_set(new, class_conditional=True)
    for method in ("jackknife+", "conformal", "studentised"):
        calls[f"intervals, {method}"] = lambda method=method: regression.predict_interval(new, method=method)
    seconds = best_times(repeats, **calls)
    yardstick = seconds.pop("fit")
    return [
        {"name": name, "n": n, "new rows": n_new, "yardstick_seconds": yardstick, "ratio": taken / yardstick}
        | {"seconds": at_most(LIMIT, taken)}
        for name, taken in seconds.items()
    ]


def coverage(n, repeats):
    """Shares of new rows whose truth is held."""
    rng, held, sizes = np.random.default_rng(n), {}, {}
    for _ in range(repeats):
        X, values, labels = sample(rng, n + NEW)
        models = {"given": LSSVR(gamma=0.1, alpha=0.3), "chosen": FoldlessSearchCV(LSSVR(), GRID)}
        for name, model in models.items():
            best = model.fit(X[:n], values[:n])
            intervals = {}
            if name == "chosen":
                best = model.best_estimator_
                folds = KFold(10, shuffle=True, random_state=0)
                nested = nested_cross_validate(model, X[:n], values[:n], cv=folds, return_estimator=True)
                intervals["nested"] = nested.predict_interval(X[n:])
            for method in ("jackknife+", "conformal", "studentised"):
                intervals[method] = best.predict_interval(X[n:], method=method)
            for method, interval in intervals.items():
                low, high = interval.T
                held.setdefault((name, method), []).append(np.mean((low <= values[n:]) & (values[n:] <= high)))
                sizes.setdefault((name, method), []).append(np.median(high - low))
        models = {"given": LSSVC(gamma=0.1, alpha=0.3), "chosen": FoldlessSearchCV(LSSVC(), GRID)}
        for name, model in models.items():
            predictors = {"conformal": model.fit(X[:n], labels[:n])}
            if name == "chosen":
                n_splits = max(2, min(10, *np.bincount(labels[:n])))
                folds = StratifiedKFold(n_splits, shuffle=True, random_state=0)
                nested = nested_cross_validate(model, X[:n], labels[:n], cv=folds, return_estimator=True)
                predictors = {"conformal": model.best_estimator_, "nested": nested}
            for method, predictor in predictors.items():
                for options in ({}, {"class_conditional": True}):
                    key = (name, f"{method} sets{', class-conditional' if options else ''}")
                    sets = predictor.predict_set(X[n:], **options)
                    held.setdefault(key, []).append(sets[np.arange(NEW), labels[n:]].mean())
                    sizes.setdefault(key, []).append(sets.sum(1).mean())
    return [
        {"n": n, "setting": name, "method": method, "coverage": np.mean(shares)}
        | {"standard error": np.std(shares) / np.sqrt(repeats), "size": np.mean(sizes[name, method])}
        for (name, method), shares in held.items()
    ]


@threadpool_limits.wrap(limits=1)  # small matrices are fastest on one thread
def main():
    options = parser(__doc__)
    options.add_argument("--repeats", type=int, default=100)
    options = options.parse_args()
    warnings.simplefilter("ignore")
    fast = options.fast
    entries = costs(*((100, 100, 0) if fast else (1000, 1000, 5)))
    table = [row for n in ((20,) if fast else (20, 40, 100)) for row in coverage(n, 2 if fast else options.repeats)]
    markdown([{**each, "seconds": each["seconds"]["value"], "kept": each["seconds"]["kept"]} for each in entries])
    markdown(table)
    report(options, entries=entries, coverage=table)


if __name__ == "__main__":
    main()
