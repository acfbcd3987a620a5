"""All displays of ``foldless.inspection`` on one sheet.

    python examples/inspection.py [--out inspection.png]

Wine and breast cancer of scikit-learn, a stream whose concept turns, and simulated recordings. Needs matplotlib.
"""

import argparse

import numpy as np
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.preprocessing import scale

from foldless import LSSVC, FoldlessSearchCV, SlidingWindow, inspection
from foldless import model_selection as ms
from foldless.model_selection import Optimizer

SHAPE, SIZE = (5, 3), (3.0, 2.4)  # panels down and across, inches of each


def models():
    """(title, function of an axis) of displays of a model and its rows."""
    X, y = load_wine(return_X_y=True)
    X, names = scale(X), np.array(["Barolo", "Grignolino", "Barbera"])[y]
    pair = X[:, [6, 9]]
    model = LSSVC(gamma=0.5, alpha=0.3).fit(pair, names)
    X2, y2 = load_breast_cancer(return_X_y=True)
    X2 = scale(X2)
    likely = LSSVC(gamma=0.02, calibration="sigmoid")
    yield (
        "regions, errors left out",
        lambda ax: inspection.DecisionRegionsDisplay.from_estimator(model, pair, names, ax=ax),
    )
    yield "margins", lambda ax: inspection.MarginsDisplay.from_estimator(model, pair, names, ax=ax)
    yield "influence", lambda ax: inspection.InfluenceDisplay.from_estimator(model, pair, names, ax=ax)
    yield "calibration", lambda ax: inspection.CalibrationDisplay.from_estimator(likely, X2, y2, cv=5, n_bins=6, ax=ax)
    yield "learning curve", lambda ax: inspection.LearningCurveDisplay.from_estimator(LSSVC(gamma=0.02), X2, y2, ax=ax)
    yield "stream", stream


def stream(ax):
    """A concept that turns round in the middle, followed by a window."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    y = (X[:, 0] > 0.5 * np.sin(2 * X[:, 1])) ^ (np.arange(600) > 300)
    window = SlidingWindow(LSSVC(gamma=0.5, alpha=0.3), max_samples=120)
    return inspection.StreamDisplay.from_estimator(window, X, y.astype(int), window=60, ax=ax)


def searches():
    """The same of searches, nested cross-validation and comparisons."""
    X, y = load_wine(return_X_y=True)
    X = scale(X)
    search = FoldlessSearchCV(LSSVC()).fit(X, y)
    scaled = FoldlessSearchCV(LSSVC(), method=Optimizer("gradient", max_iter=20, feature_scaling=True)).fit(X, y)
    nested = ms.nested_cross_validate(FoldlessSearchCV(LSSVC()), X, y, cv=10)
    pair = {"rbf": LSSVC(gamma=0.05), "linear": LSSVC("linear"), "poly": LSSVC("poly", degree=2)}
    compared = ms.compare(pair, X[:, :4], y, cv=5, n_repeats=5)
    yield "search", lambda ax: inspection.SearchDisplay.from_search(search, ax=ax)
    yield "path by alpha", lambda ax: inspection.AlphaPathDisplay.from_search(search, ax=ax)
    yield "scales of features", lambda ax: inspection.FeatureScalesDisplay.from_search(scaled, ax=ax)
    yield "nested choices", lambda ax: inspection.NestedDisplay.from_result(nested, ax=ax)
    yield "comparison", lambda ax: inspection.ComparisonDisplay.from_result(compared, ax=ax)


def tests():
    """The same of permutation tests."""
    rng = np.random.default_rng(1)
    hand = np.arange(80) % 2
    epochs = rng.normal(size=(80, 8, 24))
    epochs[:, 2, 8:18] += 1.3 * hand[:, None]
    model = LSSVC("linear", alpha=10.0)
    family = ms.permutation_test_score(model, epochs, hand, n_permutations=199)
    square = ms.permutation_test_score(model, epochs[:, :, ::2], hand, n_permutations=199, generalise=True)
    pattern = ms.permutation_test_pattern(model, epochs[:, :, 12], hand, n_permutations=499)
    one = {"member": int(np.argmax(family.score))}
    times = {"times": np.arange(24) / 24, "unit": "s"}
    yield "null distribution", lambda ax: inspection.PermutationDisplay.from_result(family, **one, ax=ax)
    yield "time course", lambda ax: inspection.TimeCourseDisplay.from_result(family, **times, ax=ax)
    yield "generalisation", lambda ax: inspection.GeneralisationDisplay.from_result(square, ax=ax)
    yield "pattern", lambda ax: inspection.PatternDisplay.from_result(pattern, ax=ax)


def draw(out):
    """All of them, small."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 8, "axes.spines.top": False, "axes.spines.right": False})
    figure = plt.figure(figsize=(SIZE[0] * SHAPE[1], SIZE[1] * SHAPE[0]), layout="constrained")
    panels = figure.subfigures(*SHAPE)
    for panel, (title, display) in zip(panels.flat, [*models(), *searches(), *tests()], strict=True):
        display(panel.subplots())
        panel.suptitle(title, x=0.02, ha="left", fontweight="bold", fontsize=9)
    figure.savefig(out, dpi=90)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="inspection.png")
    draw(parser.parse_args().out)
