"""P from basis functions, for penalty="coef" at an alpha that K K' would lose in rounding."""

import numpy as np
import pytest
from sklearn.model_selection import KFold, LeaveOneOut

from foldless import LSSVR, FoldlessSearchCV
from foldless.heldout.problem import Problem
from foldless.kernels import RBF
from foldless.model_selection import cross_val_predict
from foldless.precision.factored import Factored
from foldless.precision.lowrank import OfFunctions
from support.tolerances import assert_close

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 4))
Y = X @ RNG.normal(size=4) + RNG.normal(size=40)
WEIGHT = RNG.uniform(0.5, 2.0, 40)


def ridge(train, rows, alpha, w):
    """|beta|^2 is w' (X' X)^-1 w for the weights w of the features: ridge on X (X' X)^1/2, by least squares."""
    values, vectors = np.linalg.eigh(X[train].T @ X[train])
    C, root = vectors * np.sqrt(values), np.sqrt(w[train])[:, None]
    system = np.hstack([np.ones((len(X), 1)), X @ C])
    penalty = np.sqrt(alpha) * np.eye(5)[1:]
    targets = np.concatenate([root[:, 0] * Y[train], np.zeros(4)])
    return system[rows] @ np.linalg.lstsq(np.vstack([root * system[train], penalty]), targets, rcond=None)[0]


@pytest.mark.many_cases
@pytest.mark.parametrize("cv", [KFold(5), KFold(10), LeaveOneOut()], ids=["5", "10", "loo"])
@pytest.mark.parametrize("alpha", [1e-6, 1e-9, 1e-12])
@pytest.mark.parametrize("w", [np.ones(40), WEIGHT], ids=["", "weighted"])
def test_linear_models_with_few_features_keep_their_digits_at_any_alpha(w, alpha, cv):
    model = LSSVR("linear", penalty="coef", alpha=alpha)
    expected = np.empty(40)
    for train, test in cv.split(X):
        expected[test] = ridge(train, test, alpha, w)
    found = cross_val_predict(model, X, Y, cv=cv, params={"sample_weight": w})
    assert_close(found, expected, rtol=1e-11)
    assert_close(model.fit(X, Y, sample_weight=w).predict(X), ridge(np.arange(40), np.arange(40), alpha, w), rtol=1e-11)


@pytest.mark.parametrize("columns", [0, 1, 3])
def test_all_that_is_asked_of_it_equals_the_factor(columns):
    Q = np.column_stack([np.ones(40), RNG.normal(size=(40, 2))])[:, :columns]
    problem = Problem(RBF(0.3), X, alpha=0.1, Q=Q, sample_weight=WEIGHT, penalty="coef")
    ours, factored = (kind.from_problem(problem, np.arange(40)) for kind in (OfFunctions, Factored))
    K, y = problem.penalty.functions(problem, np.arange(40)), Y[:, None]
    assert_close(ours.explicit().P, factored.explicit().P)
    assert_close(ours.G, factored.G)
    assert_close(ours.Omega, factored.Omega)
    for found, expected in zip(ours.with_functions(K), factored.with_functions(K), strict=True):
        assert_close(found, expected)
    assert_close(ours.function_weights(slice(None)) @ y, K.T @ factored.apply(y))
    assert_close(ours.function_weights(np.array([3, 7])), K.T @ factored.columns(np.array([3, 7])))


def test_paths_of_alphas_equal_single_alphas():
    grid = {"alpha": [1e-9, 1e-2, 10.0]}
    search = FoldlessSearchCV(LSSVR("linear", penalty="coef", alpha=1e-9), grid).fit(X, Y)
    for alpha, loss in zip(grid["alpha"], search.cv_results_["mean_test_criterion"], strict=True):
        one = LSSVR("linear", penalty="coef", alpha=alpha).fit(X, Y)
        assert loss == pytest.approx(np.mean(np.square(Y - one.loo_predict())), rel=1e-3 if alpha < 1 else 1e-9)


def test_features_too_large_to_be_squared_are_named():
    with pytest.raises(ValueError, match="Rescale X"):
        LSSVR("linear", penalty="coef").fit(1e150 * X, Y)
