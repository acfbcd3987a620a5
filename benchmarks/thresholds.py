"""Which two-class threshold errs least on the IDA benchmark sets? It is the default of KernelFisherDiscriminant.

For every realisation alpha and gamma are chosen by the leave-one-out PRESS on the training part, once for all
thresholds; then each threshold's test error is taken. ``--data DIR`` is a folder with ``ida/*.npz`` (X, y, train, test).

    python benchmarks/thresholds.py --data DIR [--splits 10] [--fast]
"""

import argparse
import json
from pathlib import Path

import numpy as np

from foldless import KernelFisherDiscriminant
from foldless.holdout import loo_path
from foldless.kernels import resolve
from foldless.problem import Problem
from foldless.readout import THRESHOLDS

ALPHAS = np.logspace(-4, 3, 15)
WIDTHS = np.logspace(-2.5, 0.5, 7)


def tune(X, y):
    """alpha and gamma with the least leave-one-out PRESS of targets +-1."""
    best = (np.inf, None, None)
    Y = np.where(y > 0, 1.0, -1.0)[:, None]
    for width in WIDTHS / X.shape[1] * 10:
        problem = Problem(resolve("rbf", X, gamma=width), X, alpha=1.0, Q=np.ones((len(X), 1)))
        E = loo_path(problem.spectrum(problem.active), Y, ALPHAS)
        press = np.square(E).sum((1, 2))
        if press.min() < best[0]:
            best = (press.min(), ALPHAS[press.argmin()], width)
    return best[1], best[2]


def partitions(data, n_splits):
    for k in range(n_splits):
        if k < len(data["train"]):
            yield data["train"][k].astype(int), data["test"][k].astype(int)
        else:
            order = np.random.default_rng(k).permutation(len(data["y"]))
            n_train = data["train"].shape[1]
            yield order[:n_train], order[n_train:]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--fast", action="store_true")
    options = parser.parse_args()
    table = {}
    for path in sorted((options.data / "ida").glob("*.npz")):
        data = np.load(path)
        X, y = data["X"].astype(float), data["y"]
        if path.stem == "splice":
            X = (X - X.mean(0)) / X.std(0)
        errors = {threshold: [] for threshold in THRESHOLDS}
        for train, test in partitions(data, 1 if options.fast else options.splits):
            alpha, gamma = tune(X[train], y[train])
            for threshold in THRESHOLDS:
                model = KernelFisherDiscriminant(alpha=alpha, gamma=gamma, threshold=threshold).fit(X[train], y[train])
                errors[threshold].append(100 * np.mean(model.predict(X[test]) != y[test]))
        table[path.stem] = {threshold: round(float(np.mean(values)), 2) for threshold, values in errors.items()}
        print(json.dumps({path.stem: table[path.stem]}), flush=True)
    mean = {threshold: round(float(np.mean([row[threshold] for row in table.values()])), 3) for threshold in THRESHOLDS}
    print(json.dumps({"mean error in percent": mean}))


if __name__ == "__main__":
    main()
