"""The small studies behind the pages for newcomers.

    svc        docs/from-svc.md: labels and decisions of SVC(C=k/alpha) beside LSSVC(alpha), on eight two-class sets
    classes    docs/choosing.md: test errors of LSSVC and KernelFisherDiscriminant, tuned, on five sets of many classes
    leak       docs/scaling.md: accuracy with steps fitted on all rows and on each training part, on random data

``--data DIR`` is a folder with ``ida/*.npz`` and ``uci/*.npz``; without it, sets that come with scikit-learn stand in.

    python benchmarks/comparisons.py --data DIR [--only svc|classes|leak] [--fast]
"""

from pathlib import Path

import numpy as np
from sklearn.feature_selection import SelectKBest
from sklearn.model_selection import StratifiedKFold
from sklearn.model_selection import cross_val_score as refitted_scores
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from common import load, markdown, parser, report, standardised
from foldless import LSSVC, FoldlessSearchCV, KernelFisherDiscriminant
from foldless.model_selection import cross_val_score

TWO = ("uci/breast_cancer_wisconsin", "ida/heart", "ida/diabetis", "ida/german")
TWO += ("uci/vote", "ida/banana", "ida/waveform", "ida/thyroid")
MANY = ("uci/glass", "uci/vehicle", "uci/segment", "uci/dna_statlog180", "uci/yeast_brown5")
ALPHAS, FACTORS = (0.01, 0.1, 1.0, 10.0), (0.1, 0.5, 1.0, 2.0, 5.0)
FOLDS = StratifiedKFold(5)


def partition(folder, name, seed, n_train):
    """X, y of a training and of a test part, at most 2000 rows, standardised by the former."""
    data = load(folder, name)
    X, y = data["X"].astype(float), data["y"]
    whole = np.isfinite(X).all(1)
    X, y = X[whole], y[whole]
    train, test = np.split(np.random.default_rng(seed).permutation(len(y)), [min(2 * len(y) // 3, n_train)])
    X = standardised(X, train)
    return X[train], y[train], X[test[:2000]], y[test[:2000]]


def mean_and_error(values):
    """(mean, standard error)."""
    return float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values)))


def svc(options):
    """Share of equal labels and correlation of decisions, over the sets."""
    names = TWO if options.data is not None else ("breast_cancer",)
    table = []
    for alpha in ALPHAS:
        found = np.empty((len(names), len(FACTORS), 3))
        for i, name in enumerate(names):
            X, y, X_test, y_test = partition(options.data, name, 0, 400)
            gamma = 1 / X.shape[1]
            ours = LSSVC(alpha=alpha, gamma=gamma).fit(X, y)
            for j, k in enumerate(FACTORS):
                theirs = SVC(C=k / alpha, gamma=gamma).fit(X, y)
                decisions = [each.decision_function(X_test) for each in (ours, theirs)]
                labels = [each.predict(X_test) for each in (ours, theirs)]
                errors = [np.mean(each != y_test) for each in labels]
                same = np.mean(labels[0] == labels[1])
                found[i, j] = same, np.corrcoef(decisions)[0, 1], abs(errors[0] - errors[1])
        same, correlation, apart = found.mean(0).T
        lines = zip(FACTORS, same, correlation, apart, strict=True)
        keys = ("alpha", "k", "same labels", "correlation", "difference of errors")
        table += [dict(zip(keys, (alpha, *map(float, line)), strict=True)) for line in lines]
    return table


def classes(options):
    """Test errors in per cent, and the paired difference of the two classifiers."""
    table, splits = [], 2 if options.fast else 10
    for name in MANY if options.data is not None else ("wine",):
        for kernel in ("linear", "rbf"):
            errors = np.empty((splits, 2))
            for seed in range(splits):
                X, y, X_test, y_test = partition(options.data, name, seed, 300)
                for j, kind in enumerate((LSSVC, KernelFisherDiscriminant)):
                    tuned = FoldlessSearchCV(kind(kernel), method="grid").fit(X, y)
                    errors[seed, j] = 100 * np.mean(tuned.predict(X_test) != y_test)
            difference, error = mean_and_error(errors[:, 1] - errors[:, 0])
            ours = dict(zip(("LSSVC", "discriminant"), errors.mean(0).tolist(), strict=True))
            table.append({"set": name, "kernel": kernel, **ours, "difference": difference, "se": error})
    return table


def scaled(n, tails, signal, seed):
    """Accuracy with scales of all rows and of each training part: 20 features of unequal scale, five with a signal."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = rng.standard_t(1.5, (n, 20)) if tails == "heavy" else rng.normal(size=(n, 20))
    X[:, :5] += signal * y[:, None]
    X *= 10.0 ** rng.uniform(-2, 2, 20)
    pipeline = make_pipeline(StandardScaler(), LSSVC(gamma=1 / 20))
    return [cross_val_score(pipeline, X, y, cv=FOLDS, steps=steps).mean() for steps in ("once", "each")]


def selected(seed):
    """Accuracy on noise with the 20 best of 1000 features chosen from all rows and from each training part."""
    X, y = np.random.default_rng(seed).normal(size=(50, 1000)), np.arange(50) % 2
    best, model = SelectKBest(k=20), LSSVC(gamma=1 / 20)
    outside = cross_val_score(model, best.fit_transform(X, y), y, cv=FOLDS).mean()
    return [outside, refitted_scores(make_pipeline(best, model), X, y, cv=FOLDS).mean()]


def leak(options):
    """Means of both ways and of their difference, with its standard error and the size of a single one."""
    draws = 5 if options.fast else 200
    cases = [(n, tails, 0.5) for tails in ("normal", "heavy") for n in (20, 50, 200)] + [(50, "normal", 0.0)]
    found = {str(case): [scaled(*case, seed) for seed in range(draws)] for case in cases}
    found["features selected by their labels"] = [selected(seed) for seed in range(max(2, draws // 4))]
    table = []
    for name, pairs in found.items():
        once, each = np.array(pairs).T
        difference, error = mean_and_error(once - each)
        line = {"once": float(once.mean()), "each": float(each.mean()), "difference": difference, "se": error}
        table.append({"rows, tails, signal": name, **line, "size of one": float(np.std(once - each))})
    return table


PARTS = {"svc": svc, "classes": classes, "leak": leak}


@threadpool_limits.wrap(limits=1)
def main():
    options = parser(__doc__)
    options.add_argument("--data", type=Path)
    options.add_argument("--only", choices=PARTS)
    options = options.parse_args()
    results = {}
    for name in PARTS if options.only is None else [options.only]:
        results[name] = PARTS[name](options)
        markdown(results[name])
    report(options, **results)


if __name__ == "__main__":
    main()
