"""Probabilities from leave-one-out scores against scikit-learn's CalibratedClassifierCV, by their test log-loss.

On each of 20 stratified splits (a third is the test part) X is standardised by the training part, and alpha and gamma
are chosen on it by leave-one-out, once for both: ``calibration="sigmoid"`` (one fit) and ``CalibratedClassifierCV(
estimator, cv=5, method="sigmoid")`` (five fits, averaged). ``--data DIR`` is a folder with ``ida/*.npz`` and
``uci/*.npz`` (X, y); without it, sets that come with scikit-learn are used.

The verdict compares the mean difference of the log-losses with its standard error over the splits. The splits share
rows, so that this standard error is too small rather than too large.

    python benchmarks/calibration.py --data DIR [--splits 20] [--estimator LSSVC] [--criterion log_loss] [--fast]
"""

from pathlib import Path

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedShuffleSplit
from threadpoolctl import threadpool_limits

from common import load, markdown, parser, report, standardised, timed, tune
from foldless import LSSVC, KernelFisherDiscriminant

ESTIMATORS = {"KernelFisherDiscriminant": KernelFisherDiscriminant, "LSSVC": LSSVC}
BUNDLED = ("iris", "wine", "breast_cancer")
IDA = ("breast_cancer", "diabetis", "flare_solar", "german", "heart", "thyroid", "titanic")
UCI = ("glass", "vehicle", "liver_bupa")


def duel(kind, X, y, n_splits, criterion):
    """Log-losses and seconds of (ours, theirs) on every split, each of shape (n_splits, 2)."""
    losses, seconds = [], []
    for train, test in StratifiedShuffleSplit(n_splits, test_size=1 / 3, random_state=0).split(X, y):
        Z = standardised(X, train)
        alpha, gamma = tune(Z[train], y[train], criterion)
        ours = kind(alpha=alpha, gamma=gamma, calibration="sigmoid")
        theirs = CalibratedClassifierCV(kind(alpha=alpha, gamma=gamma), cv=5, method="sigmoid")
        runs = [probabilities(model, Z[train], y[train], Z[test]) for model in (ours, theirs)]
        losses.append([log_loss(y[test], p, labels=np.unique(y)) for p, _ in runs])
        seconds.append([time for _, time in runs])
    return np.array(losses), np.array(seconds)


def probabilities(model, X, y, at):
    """(probabilities, seconds) of fit and predict_proba."""
    return timed(lambda: model.fit(X, y).predict_proba(at))


def row(name, losses, seconds):
    """One line of the table."""
    difference = losses[:, 0] - losses[:, 1]
    mean, error = difference.mean(), difference.std(ddof=1) / np.sqrt(len(difference))
    ours, theirs = seconds.mean(0)
    return {
        "set": name,
        "log-loss": losses[:, 0].mean(),
        "CalibratedClassifierCV": losses[:, 1].mean(),
        "difference": mean,
        "standard error": error,
        "verdict": "within one standard error" if abs(mean) <= error else "better" if mean < 0 else "worse",
        "seconds": ours,
        "CalibratedClassifierCV seconds": theirs,
        "times faster": theirs / ours,
    }


@threadpool_limits.wrap(limits=1)  # small matrices are fastest on one thread
def main():
    options = parser(__doc__)
    options.add_argument("--data", type=Path)
    options.add_argument("--splits", type=int, default=20)
    options.add_argument("--estimator", choices=ESTIMATORS, default="KernelFisherDiscriminant")
    options.add_argument("--criterion", choices=("press", "log_loss"), default="press")
    options = options.parse_args()
    names = BUNDLED if options.data is None else [f"ida/{name}" for name in IDA] + [f"uci/{name}" for name in UCI]
    names, n_splits = (names[:1], 2) if options.fast else (names, options.splits)
    table = []
    for name in names:
        data = load(options.data, name)
        results = duel(ESTIMATORS[options.estimator], data["X"].astype(float), data["y"], n_splits, options.criterion)
        table.append(row(name, *results))
    markdown(table)
    report(options, sets=table)


if __name__ == "__main__":
    main()
