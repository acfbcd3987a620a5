"""Slopes of the models without single rows or folds, against central differences of refits."""

import numpy as np
import pytest

from foldless import LSSVR
from foldless._engine.heldout.slopes import mean_squared_slopes
from foldless.kernels import RBF, Laplacian, Scaled

KERNELS = {
    "rbf": RBF(0.3),
    "laplacian": Laplacian(0.4),
    "scaled": Scaled(Laplacian(0.4), [1.0, 0.0, 2.0]),
    "sum": 0.3 * RBF(0.2) + Scaled(Laplacian(0.5), [0.5, 1.0, 1.5]),
}
FOLDS = [np.array([0, 3, 5]), np.array([1, 2]), np.array([4, 7, 9, 11])]


def refitted_slopes(kernel, X, Y, weights, held_out, row, penalty):
    """Central differences at a row, by a refit without the rows that are held out."""
    kept = np.setdiff1d(np.arange(len(X)), held_out)
    fitted = LSSVR(kernel, alpha=0.2, fit_intercept=penalty).fit(X[kept], Y[kept], sample_weight=weights[kept])
    steps = 1e-5 * np.eye(X.shape[1])
    return np.array([(fitted.predict(X[[row]] + e) - fitted.predict(X[[row]] - e))[0] / 2e-5 for e in steps])


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("folds", [None, FOLDS], ids=["single rows", "folds"])
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=list(KERNELS))
def test_mean_squared_slopes_equal_those_of_refits(kernel, folds, intercept):
    rng = np.random.default_rng(0)
    X, Y, weights = rng.normal(size=(14, 3)), rng.normal(size=(14, 2)), rng.uniform(0.5, 2.0, 14)
    model = LSSVR(kernel, alpha=0.2, fit_intercept=intercept).fit(X, Y, sample_weight=weights)
    sets = [np.array([row]) for row in range(14)] if folds is None else folds
    pairs = [(row, held_out) for held_out in sets for row in held_out]
    squares = [
        np.square(refitted_slopes(kernel, X, Y, weights, held_out, row, intercept)).sum(1) for row, held_out in pairs
    ]
    expected = np.average(squares, axis=0, weights=weights[[row for row, _ in pairs]])
    solution = model._loo().full_fit
    result = mean_squared_slopes(solution, folds, 100, np.random.RandomState(0))
    np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("folds", [None, [np.arange(k, 40, 8) for k in range(8)]], ids=["single rows", "folds"])
def test_a_sample_of_rows_has_slopes_near_those_of_all(folds):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 3))
    solution = LSSVR(gamma=0.3).fit(X, np.sin(2 * X[:, 0]))._loo().full_fit
    of_all = mean_squared_slopes(solution, folds, 40, np.random.RandomState(0))
    some = mean_squared_slopes(solution, folds, 16, np.random.RandomState(0))
    assert of_all.argmax() == some.argmax() == 0
    assert not np.allclose(some, of_all, rtol=1e-3)
