"""Should estimators standardise features by themselves? Test errors with standardize=False and True.

LSSVC with an rbf and a linear kernel, as it comes (alpha=1, gamma="scale") and tuned by FoldlessSearchCV with its own
grid, on random partitions: two thirds of the rows are for training, at most 400, the others for testing, at most 2000.
Scales are those of the training part. Sets are in three groups, by what their features look like:

    standardised    by those who made them: no mean is further than 0.2 from 0
    alike           raw, but the largest standard deviation is below three times the least
    apart           raw, in units that have nothing to do with each other

``--data DIR`` is a folder with ``ida/*.npz`` and ``uci/*.npz``; without it, sets that come with scikit-learn stand in.
Errors and differences (True minus False: negative is better) are in per cent; the sets are given and only partitions
are random, so the standard error of a mean over sets is that of its partitions.

    python benchmarks/standardize.py --data DIR [--splits 10] [--fast]
"""

from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from common import load, markdown, parser, report
from foldless import LSSVC, FoldlessSearchCV

MODELS = {
    "rbf": lambda flag: LSSVC(standardize=flag),
    "rbf, tuned": lambda flag: FoldlessSearchCV(LSSVC(standardize=flag)),
    "linear": lambda flag: LSSVC("linear", standardize=flag),
    "linear, tuned": lambda flag: FoldlessSearchCV(LSSVC("linear", standardize=flag)),
}
STAND_INS = ("breast_cancer", "iris", "wine")
GROUPS = ("standardised", "alike", "apart")


def names(folder):
    """All sets but the yeast genes with missing values, of which most rows would be lost."""
    files = sorted([*(folder / "ida").glob("*.npz"), *(folder / "uci").glob("*.npz")])
    return [f"{file.parent.name}/{file.stem}" for file in files if file.stem != "yeast_brown3"]


def rows_of(folder, name):
    """X and y of a set, without rows that miss a value."""
    data = load(folder, name)
    X, y = data.get("X24", data["X"]).astype(float), data["y"]
    whole = np.isfinite(X).all(1)
    return X[whole], y[whole]


def group(X):
    """What the features look like."""
    spread = X.std(0)
    if np.abs(X.mean(0)).max() <= 0.2:
        return "standardised"
    return "alike" if spread.max() < 3 * spread[spread > 0].min() else "apart"


def errors(X, y, n_splits):
    """{model: test errors in per cent, (2, n_splits), without and with standardising}."""
    n_train = min(2 * len(y) // 3, 400)
    wrong = {name: np.empty((2, n_splits)) for name in MODELS}
    for k in range(n_splits):
        train, test = np.split(np.random.default_rng(k).permutation(len(y)), [n_train])
        test = test[:2000]
        for name, make in MODELS.items():
            for flag in (False, True):
                predicted = make(flag).fit(X[train], y[train]).predict(X[test])
                wrong[name][int(flag), k] = 100 * np.mean(predicted != y[test])
    return wrong


def difference(wrong):
    """(mean, standard error) of the paired differences of one set."""
    change = wrong[1] - wrong[0]
    return float(change.mean()), float(change.std(ddof=1) / np.sqrt(len(change))) if len(change) > 1 else 0.0


def over_sets(table, name):
    """One model over the sets of a group: mean errors, mean difference, its standard error, sets won, equal and lost.

    A set is won or lost where its mean difference is beyond twice its standard error.
    """
    change, spread = np.array([difference(row["errors"][name]) for row in table]).T
    without, with_it = np.mean([row["errors"][name].mean(1) for row in table], 0)
    clear = np.where(np.abs(change) > 2 * spread, np.sign(change), 0)
    return {
        "model": name,
        "sets": len(table),
        "False": float(without),
        "True": float(with_it),
        "difference": float(change.mean()),
        "se": float(np.sqrt(np.square(spread).sum()) / len(spread)),
        "better": int(np.sum(clear < 0)),
        "equal": int(np.sum(clear == 0)),
        "worse": int(np.sum(clear > 0)),
    }


@threadpool_limits.wrap(limits=1)  # small matrices are fastest on one thread
def main():
    options = parser(__doc__)
    options.add_argument("--data", type=Path)
    options.add_argument("--splits", type=int, default=10)
    options = options.parse_args()
    chosen, n_splits = STAND_INS if options.data is None else names(options.data), options.splits
    if options.fast:
        chosen, n_splits = chosen[:2], 2
    table = []
    for name in chosen:
        X, y = rows_of(options.data, name)
        table.append({"set": name, "group": group(X), "errors": errors(X, y, n_splits)})
        text = {model: "{:+.2f} +- {:.2f}".format(*difference(each)) for model, each in table[-1]["errors"].items()}
        markdown([{"set": name, "group": table[-1]["group"], **text}])
    parts = {key: [row for row in table if row["group"] == key] for key in GROUPS} | {"all": table}
    groups = {key: [over_sets(rows, name) for name in MODELS] for key, rows in parts.items() if rows}
    for key, rows in groups.items():
        markdown([{"group": key, **row} for row in rows])
    sets = [{**row, "errors": {name: each.mean(1).tolist() for name, each in row["errors"].items()}} for row in table]
    report(options, sets=sets, groups=groups)


if __name__ == "__main__":
    main()
