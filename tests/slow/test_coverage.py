"""Sets and intervals hold the truth as often as they promise, for few rows, many, and after tuning."""

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.model_selection import KFold, StratifiedKFold

from foldless import LSSVC, LSSVR, FoldlessSearchCV
from foldless.model_selection import nested_cross_validate

NEW, COVERAGE = 40, 0.9
GRID = {"alpha": [0.01, 0.1, 1.0, 10.0], "gamma": [0.03, 0.3]}


def sample(rng, n):
    """Rows, values whose spread differs, labels of unequal classes."""
    X = rng.normal(size=(n, 4))
    values = np.sin(X[:, 0]) + (0.3 + 0.3 * (X[:, 1] > 0)) * rng.normal(size=n)
    return X, values, (X[:, 0] + 0.7 * rng.normal(size=n) > 0.3).astype(int)


def check(shares, most=1.0):
    """The mean is not below the coverage, nor above ``most``, by more than three standard errors."""
    mean, error = np.mean(shares), np.std(shares) / np.sqrt(len(shares))
    assert COVERAGE - 3 * error <= mean <= most + 3 * error, (mean, error)


def fitted(model, X, y):
    """The fitted model; of a search its nested cross-validation, which counts the tuning."""
    if not isinstance(model, FoldlessSearchCV):
        return model.fit(X, y)
    kind = StratifiedKFold if is_classifier(model) else KFold
    n_splits = min(10, np.unique(y, return_counts=True)[1].min()) if is_classifier(model) else 10
    folds = kind(max(2, n_splits), shuffle=True, random_state=0)
    return nested_cross_validate(model, X, y, cv=folds, return_estimator=True)


def share_of_intervals(model, n, rng, **options):
    X, y, _ = sample(rng, n + NEW)
    low, high = fitted(model, X[:n], y[:n]).predict_interval(X[n:], COVERAGE, **options).T
    return np.mean((low <= y[n:]) & (y[n:] <= high))


def shares_of_sets(model, n, rng, **options):
    """Share of the new rows whose label is held, and of those of each class."""
    y = np.zeros(n)
    while np.bincount(y[:n].astype(int), minlength=2).min() < 2:
        X, _, y = sample(rng, n + NEW)
    held = fitted(model, X[:n], y[:n]).predict_set(X[n:], COVERAGE, **options)[np.arange(NEW), y[n:]]
    return [held.mean(), *(held[y[n:] == label].mean() for label in (0, 1) if (y[n:] == label).any())]


@pytest.mark.parametrize("n", [20, 40, 100])
@pytest.mark.parametrize("method", ["conformal", "studentised"])
def test_conformal_intervals(n, method):
    """No less than promised, and no more than one rank above it."""
    rng = np.random.default_rng(n)
    shares = [share_of_intervals(LSSVR(gamma=0.2, alpha=0.3), n, rng, method=method) for _ in range(300)]
    check(shares, most=COVERAGE + 1 / (n + 1))


@pytest.mark.parametrize("n", [20, 40, 100])
def test_conformal_sets(n):
    rng = np.random.default_rng(n)
    shares = [shares_of_sets(LSSVC(gamma=0.2, alpha=0.3), n, rng)[0] for _ in range(300)]
    check(shares, most=COVERAGE + 1 / (n + 1))


@pytest.mark.parametrize("n", [20, 40, 100])
def test_class_conditional_sets_cover_every_class(n):
    rng = np.random.default_rng(n)
    model = LSSVC(gamma=0.2, alpha=0.3)
    shares = [shares_of_sets(model, n, rng, class_conditional=True) for _ in range(300)]
    for label in (0, 1):
        check([each[1 + label] for each in shares if len(each) == 3])


@pytest.mark.parametrize(("n", "repeats"), [(20, 40), (40, 30), (100, 20)])
def test_intervals_and_sets_of_searches_count_the_tuning(n, repeats):
    rng = np.random.default_rng(n)
    check([share_of_intervals(FoldlessSearchCV(LSSVR(), GRID), n, rng) for _ in range(repeats)])
    check([shares_of_sets(FoldlessSearchCV(LSSVC(), GRID), n, rng)[0] for _ in range(repeats)])
