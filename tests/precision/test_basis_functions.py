"""P from basis functions, for penalty="coef" at an alpha that K K' would lose in rounding."""

import numpy as np
import pytest
from sklearn.model_selection import KFold, LeaveOneOut

from foldless import LSSVR, FoldlessSearchCV
from foldless._engine.heldout.leave_out import held_out_residuals
from foldless._engine.heldout.problem import Problem
from foldless._engine.heldout.sets import Sets
from foldless._engine.heldout.solution import Solution
from foldless._engine.precision.factored import Factored
from foldless._engine.precision.lowrank import LowRank
from foldless.kernels import RBF, BasisFunctions, Laplacian, Linear, Poly
from foldless.model_selection import cross_val_predict
from support.refits import leave_one_out, ridge_fits
from support.tolerances import assert_close

RNG = np.random.default_rng(0)
N = 40
X = RNG.normal(size=(N, 4))
Y = X @ RNG.normal(size=4) + RNG.normal(size=N)
TWO = np.column_stack([Y, RNG.normal(size=N)])
WEIGHT = RNG.uniform(0.5, 2.0, N)
FUNCTIONS = {"fewer": X[:25], "as many": X, "more": np.vstack([X, RNG.normal(size=(25, 4))])}
FOLDS = np.array_split(RNG.permutation(N), 5)

every_weighting = pytest.mark.parametrize("w", [np.ones(N), WEIGHT], ids=["", "weighted"])


def refits(Phi, Q, alpha, w, sets):
    """Held-out fits, stacked, by singular values of the features: their square is never formed."""
    root = np.sqrt(w)[:, None]
    parts = (np.delete(np.arange(N), te) for te in sets)
    fits = [
        ridge_fits(root * Phi, root * TWO, root * Q, train, te, alpha) for train, te in zip(parts, sets, strict=True)
    ]
    return np.concatenate(fits) / root[np.concatenate(sets)]


@pytest.mark.many_cases
@pytest.mark.parametrize("kernel", [RBF(0.3), Laplacian(0.3), Poly(0.3, 2, 1.0), Linear()], ids=lambda each: each.name)
@pytest.mark.parametrize("count", FUNCTIONS)
@pytest.mark.parametrize("q", [0, 1], ids=["no intercept", ""])
@every_weighting
@pytest.mark.parametrize("share", [1e-9, 1e-12])
@pytest.mark.parametrize("folds", [None, FOLDS], ids=["each alone", "folds"])
def test_residuals_at_a_tiny_alpha_keep_their_digits(folds, share, w, q, count, kernel):
    """``share`` is alpha by the mean diagonal of K K'."""
    functions, Q = BasisFunctions(kernel, FUNCTIONS[count]), np.ones((N, q))
    problem = Problem.of(functions, X, alpha=1.0, Q=Q, sample_weight=w)
    problem = problem.replace(alpha=share * problem.mean_diagonal)
    solution = Solution.fit(problem, np.arange(N), TWO)
    assert isinstance(solution.precision, LowRank)
    sets = [test for _, test in leave_one_out(N)] if folds is None else folds
    expected = TWO[np.concatenate(sets)] - refits(functions.features(X), Q, problem.alpha, w, sets)
    assert_close(held_out_residuals(solution, Sets.of(sets)), expected, rtol=1e-8)


def test_functions_of_all_rows_span_all_of_them():
    """Nothing is left beyond them that would be subtracted."""
    for count, spans_all in (("fewer", False), ("as many", True), ("more", True)):
        problem = Problem.of(BasisFunctions(RBF(0.3), FUNCTIONS[count]), X, alpha=1e-9, Q=np.ones((N, 1)))
        assert problem.precision(np.arange(N)).spans_all is spans_all


def ridge(train, rows, alpha, w):
    """|beta|^2 is w' (X' X)^-1 w for the weights w of the features: ridge on X (X' X)^1/2, by least squares."""
    values, vectors = np.linalg.eigh(X.T @ X)
    C, root = vectors * np.sqrt(values), np.sqrt(w[train])[:, None]
    system = np.hstack([np.ones((len(X), 1)), X @ C])
    penalty = np.sqrt(alpha) * np.eye(5)[1:]
    targets = np.concatenate([root[:, 0] * Y[train], np.zeros(4)])
    return system[rows] @ np.linalg.lstsq(np.vstack([root * system[train], penalty]), targets, rcond=None)[0]


@pytest.mark.many_cases
@pytest.mark.parametrize("cv", [KFold(5), KFold(10), LeaveOneOut()], ids=["5", "10", "loo"])
@pytest.mark.parametrize("alpha", [1e-6, 1e-9, 1e-12])
@every_weighting
def test_linear_models_with_few_features_keep_their_digits_at_any_alpha(w, alpha, cv):
    model = LSSVR("linear", penalty="coef", alpha=alpha)
    expected = np.empty(40)
    for train, test in cv.split(X):
        expected[test] = ridge(train, test, alpha, w)
    found = cross_val_predict(model, X, Y, cv=cv, params={"sample_weight": w})
    assert_close(found, expected, rtol=1e-11)
    assert_close(model.fit(X, Y, sample_weight=w).predict(X), ridge(np.arange(40), np.arange(40), alpha, w), rtol=1e-11)


@pytest.mark.parametrize("columns", [0, 1, 3])
@pytest.mark.parametrize("count", FUNCTIONS)
def test_all_that_is_asked_of_it_equals_the_factor(count, columns):
    Q = np.column_stack([np.ones(N), np.random.default_rng(1).normal(size=(N, 2))])[:, :columns]
    functions = BasisFunctions(RBF(0.3), FUNCTIONS[count])
    problem = Problem.of(functions, X, alpha=0.1, Q=Q, sample_weight=WEIGHT)
    ours, factored = (kind.from_problem(problem, np.arange(N)) for kind in (LowRank, Factored))
    Phi, rows = np.sqrt(WEIGHT)[:, None] * functions.features(X), np.array([3, 7, 30])
    assert_close(ours.explicit().P, factored.explicit().P)
    assert_close(ours.G, factored.G)
    assert_close(ours.apply(TWO), factored.apply(TWO))
    assert_close(ours.diagonal(), factored.diagonal())
    assert_close(ours.squared_diagonal(), factored.squared_diagonal())
    assert_close(ours.block(rows), factored.block(rows))
    assert_close(ours.diagonal_blocks(np.array([[3, 7], [1, 0]])), factored.diagonal_blocks(np.array([[3, 7], [1, 0]])))
    assert_close(ours.feature_weights(slice(None)) @ TWO, Phi.T @ factored.apply(TWO))
    assert_close(ours.feature_weights(rows), Phi.T @ factored.columns(rows))
    found = ours.held_out(rows).residual(ours.apply(TWO), TWO)
    assert_close(found, factored.held_out(rows).residual(factored.apply(TWO), TWO))


def test_paths_of_alphas_equal_single_alphas():
    grid = {"alpha": [1e-9, 1e-2, 10.0]}
    search = FoldlessSearchCV(LSSVR("linear", penalty="coef", alpha=1e-9), grid).fit(X, Y)
    for alpha, loss in zip(grid["alpha"], search.cv_results_["mean_test_criterion"], strict=True):
        one = LSSVR("linear", penalty="coef", alpha=alpha).fit(X, Y)
        assert loss == pytest.approx(np.mean(np.square(Y - one.loo_predict())), rel=1e-9)


def test_features_too_large_to_be_squared_are_named():
    with pytest.raises(ValueError, match="Rescale X"):
        LSSVR("linear", penalty="coef").fit(1e150 * X, Y)
