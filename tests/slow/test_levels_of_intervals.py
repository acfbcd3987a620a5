"""Simulations: intervals of scores hold as often as they promise, and equal models seldom differ."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, mean_squared_error

from foldless import LSSVC, LSSVR
from foldless.kernels import Linear, On
from foldless.model_selection import compare, score_interval

SETS = 100


def classes(n, rng):
    y = rng.permutation(np.arange(n) % 2)
    return rng.normal(size=(n, 10)) + 0.5 * y[:, None], y


def values(n, rng):
    X = rng.normal(size=(n, 10))
    return X, X.sum(1) / 2 + rng.normal(size=n)


def right(y, predicted):
    return accuracy_score(y, predicted)


def squares(y, predicted):
    return -mean_squared_error(y, predicted)


@pytest.mark.parametrize("method", ["nested", "nadeau-bengio"])
@pytest.mark.parametrize(
    ("model", "draw", "score"),
    [(LSSVC("linear"), classes, right), (LSSVR("linear"), values, squares)],
    ids=["classes", "values"],
)
def test_intervals_of_40_rows_hold_about_as_often_as_they_promise(model, draw, score, method):
    rng, held = np.random.default_rng(0), 0
    for seed in range(SETS):
        (X, y), (new, labels) = draw(40, rng), draw(2000, rng)
        n_repeats = 10 if method == "nested" else 1
        found = score_interval(model, X, y, method=method, n_repeats=n_repeats, random_state=seed)
        held += found.low <= score(labels, model.fit(X, y).predict(new)) <= found.high
    # Folds of four rows are few: intervals of values hold a little less often than they promise.
    assert held / SETS > 0.87 - 3 * np.sqrt(0.87 * 0.13 / SETS)


def test_models_of_equal_columns_seldom_differ():
    rng, apart = np.random.default_rng(1), 0
    first, second = (LSSVC(On(range(*ends), Linear())) for ends in ((0, 5), (5, 10)))
    for seed in range(SETS):
        X, y = classes(40, rng)
        apart += compare(first, second, X, y, n_repeats=10, random_state=seed).differences[0].pvalue <= 0.05
    assert apart / SETS < 0.05 + 3 * np.sqrt(0.05 * 0.95 / SETS)
