"""Which two-class threshold errs least on the IDA benchmark sets? It is the default of KernelFisherDiscriminant.

For every realisation alpha and gamma are chosen by the leave-one-out PRESS on the training part, once for all
thresholds; then each threshold's test error is taken, in per cent. ``--data DIR`` is a folder with ``ida/*.npz``
(X, y, train, test); without it, a two-class set that comes with scikit-learn is drawn at random.

    python benchmarks/thresholds.py --data DIR [--splits 10] [--fast]
"""

from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from common import load, markdown, parser, report, standardised, tune
from foldless import KernelFisherDiscriminant
from foldless._engine.readout.discriminant import THRESHOLDS


def partitions(data, n_splits):
    """The realisations that come with the data, then random ones of the same sizes."""
    n = len(data["y"])
    given = data.get("train", np.empty((0, 2 * n // 3)))
    for k in range(n_splits):
        if k < len(given):
            yield data["train"][k].astype(int), data["test"][k].astype(int)
        else:
            yield np.split(np.random.default_rng(k).permutation(n), [given.shape[1]])


def errors(data, n_splits, standardise):
    """Mean test error in per cent of each threshold."""
    X, y = data["X"].astype(float), data["y"]
    X = standardised(X, np.arange(len(X))) if standardise else X
    wrong = {threshold: [] for threshold in THRESHOLDS}
    for train, test in partitions(data, n_splits):
        alpha, gamma = tune(X[train], y[train])
        for threshold in THRESHOLDS:
            model = KernelFisherDiscriminant(alpha=alpha, gamma=gamma, threshold=threshold).fit(X[train], y[train])
            wrong[threshold].append(100 * np.mean(model.predict(X[test]) != y[test]))
    return {threshold: float(np.mean(values)) for threshold, values in wrong.items()}


@threadpool_limits.wrap(limits=1)  # small matrices are fastest on one thread
def main():
    options = parser(__doc__)
    options.add_argument("--data", type=Path)
    options.add_argument("--splits", type=int, default=10)
    options = options.parse_args()
    names, n_splits = ["breast_cancer"], 1 if options.fast else options.splits
    if options.data is not None:
        names = sorted(f"ida/{path.stem}" for path in (options.data / "ida").glob("*.npz"))
    table = []
    for name in names[:2] if options.fast else names:
        # The IDA sets were standardised by their authors, but for splice.
        plain = name.startswith("ida/") and name != "ida/splice"
        table.append({"set": name, **errors(load(options.data, name), n_splits, standardise=not plain)})
    table.append({"set": "mean", **{t: float(np.mean([row[t] for row in table])) for t in THRESHOLDS}})
    markdown(table)
    report(options, error_in_percent=table)


if __name__ == "__main__":
    main()
