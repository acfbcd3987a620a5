"""Approximate kernels: how far from the exact model, by the number and the choice of landmarks; and beside peers.

choice    LSSVC with kernel and alpha of a search, exact and approximate, on 4,000 rows for training and 4,000 for
          test: relative difference of decisions (root mean square) and error, for r features by uniform, kmeans and
          leverage landmarks and by random Fourier features (mean of three seeds)
peers     test error and seconds, everything included, on all rows but --test of skin, kddcup99 and mnist_t10k:
          FoldlessSearchCV with n_landmarks="auto" (its own leave-one-out error beside it), scikit-learn's Nystroem
          of as many features with RidgeClassifierCV and with GridSearchCV over gamma and alpha, SVC on 5,000 rows,
          HistGradientBoostingClassifier; up to 12,000 rows the exact kernel as well. Features are standardised on the
          training part; pixels are divided by 255, counts of connections go by their logarithms.

python benchmarks/landmarks.py --data DIR [--only choice|peers] [--rows 60000] [--figure FILE] [--fast]
"""

import time
from pathlib import Path

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import RidgeClassifier, RidgeClassifierCV
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from common import load, markdown, parser, report, standardised, svc_grid
from foldless import LSSVC, FoldlessSearchCV, kernels

SEEDS = 3
COUNTS = (50, 100, 200, 400, 800, 1600)
EXACT = 12_000  # rows up to which the exact kernel is searched too
CHOICES = ("uniform", "kmeans", "leverage", "rff")


def data_of(folder, name, rows, rng):
    """(X, y, X_test, y_test): at most ``rows`` for training, as many or 20,000 for test."""
    if folder is None:
        X = rng.uniform(-3, 3, (2 * rows, 5))
        y = np.sin(2 * X[:, 0]) * X[:, 1] + np.cos(X[:, 3] * X[:, 4]) + rng.normal(0, 0.3, 2 * rows) > 0
        return X[:rows], y[:rows], X[rows:], y[rows:]
    data = load(Path(folder), f"large/{name}")
    X, y = (data["X_train"], data["y_train"]) if "X_train" in data else (data["X"], data["y"])
    X, y = X.astype(float), y.astype(int)
    order = rng.permutation(len(X))
    train, test = order[: min(rows, len(X) // 2)], order[-min(20_000, len(X) // 2) :]
    learnt = np.flatnonzero(np.bincount(y[train] - y.min()) >= 10) + y.min()  # classes of ten rows and more
    train, test = train[np.isin(y[train], learnt)], test[np.isin(y[test], learnt)]
    X = X / 255 if name.startswith("mnist") else standardised(np.log1p(X) if name.startswith("kdd") else X, train)
    return X[train], y[train], X[test], y[test]


# -- choice ------------------------------------------------------------------------------------------------------------


def choice(options, name, rng):
    rows = 300 if options.fast else 4000
    X, y, X_test, y_test = data_of(options.data, name, rows, rng)
    X_test, y_test = X_test[:rows], y_test[:rows]
    search = FoldlessSearchCV(LSSVC()).fit(X, y)
    exact = search.decision_function(X_test)
    table = [{"set": name, "choice": "exact", "r": len(X), "difference": 0.0, "error": wrong(search, X_test, y_test)}]
    for how in CHOICES:
        for count in COUNTS[:2] if options.fast else COUNTS:
            found = []
            for seed in range(1 if options.fast else SEEDS):
                if how == "rff":
                    kernel = kernels.RandomFeatures("rbf", count, random_state=seed)
                else:
                    kernel = kernels.Nystroem("rbf", count, landmarks=how, random_state=seed)
                model = LSSVC(kernel, **search.best_params_).fit(X, y)
                gap = model.decision_function(X_test) - exact
                found.append((np.sqrt(np.mean(gap**2) / np.mean(exact**2)), wrong(model, X_test, y_test)))
            difference, error = np.mean(found, axis=0)
            table.append({"set": name, "choice": how, "r": count, "difference": difference, "error": error})
    markdown(table)
    return table


def wrong(model, X, y):
    return 100 * float(np.mean(model.predict(X) != y))


def draw(table, path):
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(row["set"] for row in table))
    figure, axes = plt.subplots(1, len(names), figsize=(3.6 * len(names), 3.2), layout="constrained", squeeze=False)
    for name, ax in zip(names, axes[0], strict=True):
        for how, mark in zip(CHOICES, "osD^", strict=True):
            own = [row for row in table if row["set"] == name and row["choice"] == how]
            ax.loglog([row["r"] for row in own], [row["difference"] for row in own], marker=mark, label=how)
        ax.set(title=name, xlabel="features r", ylabel="difference to the exact decisions")
        ax.grid(alpha=0.3)
    axes[0][0].legend()
    figure.savefig(path, dpi=100)


# -- peers -------------------------------------------------------------------------------------------------------------


def peers(options, name, rng):
    X, y, X_test, y_test = data_of(options.data, name, 600 if options.fast else options.rows, rng)
    table = []

    def measured(what, model, rows=slice(None), estimate=lambda model: None):
        start = time.perf_counter()
        model.fit(X[rows], y[rows])
        seconds = time.perf_counter() - start
        own = estimate(model)
        error = wrong(model, X_test, y_test)
        table.append({"set": name, "n": len(y[rows]), "what": what, "seconds": seconds, "error": error, "own": own})
        markdown(table[-1:])
        return model

    ours = FoldlessSearchCV(LSSVC(kernels.Nystroem("rbf", n_landmarks="auto")))
    ours = measured("foldless", ours, estimate=lambda model: 100 * (1 - model.loo_score_))
    r = ours.best_params_["kernel__n_landmarks"]
    table[-1] |= {"what": f"foldless, r = {r}"}
    if len(y) <= EXACT:
        measured("foldless, exact", FoldlessSearchCV(LSSVC()), estimate=lambda model: 100 * (1 - model.loo_score_))
    features = Nystroem(n_components=r, random_state=0)
    widths = (np.array([0.1, 1.0, 10.0]) / (X.shape[1] * X.var())).tolist()
    alphas = np.logspace(-4, 2, 7)
    middle = make_pipeline(Nystroem(gamma=widths[1], n_components=r, random_state=0), RidgeClassifierCV(alphas))
    measured("Nystroem, RidgeClassifierCV", middle)
    grid = {"nystroem__gamma": widths, "ridgeclassifier__alpha": alphas[::2].tolist()}
    measured("Nystroem, GridSearchCV", GridSearchCV(make_pipeline(features, RidgeClassifier()), grid, cv=5))
    some = slice(300 if options.fast else 5000)
    measured("SVC on 5,000 rows", GridSearchCV(SVC(), svc_grid(X), cv=5), some)
    measured("HistGradientBoosting", HistGradientBoostingClassifier(random_state=0))
    return table


def main():
    arguments = parser(__doc__)
    arguments.add_argument("--data", help="folder of the data sets")
    arguments.add_argument("--only", choices=("choice", "peers"))
    arguments.add_argument("--rows", type=int, default=60_000)
    arguments.add_argument("--sets", nargs="+", default=["skin", "kddcup99_10percent", "mnist_t10k"])
    arguments.add_argument("--figure")
    options = arguments.parse_args()
    rng = np.random.default_rng(0)
    names, results = ["waves"] if options.data is None else options.sets, {}
    for part in (choice, peers):
        if options.only in (None, part.__name__):
            results[part.__name__] = [row for name in names for row in part(options, name, rng)]
    if options.figure and "choice" in results:
        draw(results["choice"], options.figure)
    report(options, **results)


if __name__ == "__main__":
    main()
