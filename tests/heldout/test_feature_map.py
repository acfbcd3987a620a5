"""A kernel given by explicit features: models are held through them, and predict by them."""

from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp

from foldless import LSSVC, LSSVR, reference
from foldless._engine.heldout.gradient import value_and_gradient
from foldless._engine.heldout.problem import Problem
from foldless._engine.heldout.solution import Solution, loo_path
from foldless._engine.online import updates
from foldless._engine.permutation.labelings import elsewhere
from foldless.kernels import FeatureMap
from support.cases import odd_splits, penalised
from support.parts import TrainingParts
from support.tolerances import assert_close

ALPHA = 0.1
CALLS: list = []


@dataclass(frozen=True)
class Fourier(FeatureMap):
    """Random Fourier features of a Gaussian kernel; how many rows were evaluated is written down."""

    n: int = 6
    sparse: bool = False

    def n_features(self, X):
        return 2 * self.n

    def features(self, X):
        CALLS.append(X.shape[0])
        angles = X @ np.random.default_rng(0).normal(size=(X.shape[1], self.n)).astype(X.dtype)
        Phi = np.hstack([np.cos(angles), np.sin(angles)]) / np.sqrt(self.n)
        return sp.csr_array(Phi) if self.sparse else Phi


def data(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.column_stack([np.sin(X[:, 0]), X[:, 1] ** 2]) + 0.1 * rng.normal(size=(n, 2)) + 3.0


def problem_of(X, *, kernel=None, penalty="rkhs", q=1, **options):
    kernel = penalised(kernel or Fourier(), penalty, X[:24])
    return Problem.of(kernel, X, alpha=ALPHA, Q=np.ones((len(X), q)), **options)


def oracle(X, q, kernel=None, w=None):
    return (kernel or Fourier()).gram(X), {"w": np.ones(len(X)) if w is None else w, "Q": np.ones((len(X), q))}


@pytest.mark.parametrize("n", [60, 20])  # held through features, and through the kernel matrix
@pytest.mark.parametrize("q", [0, 1])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("strategy", ["part", "solve"])
def test_training_parts_and_leave_one_out_equal_refits(n, q, weighted, strategy):
    X, Y = data(n)
    w = np.random.default_rng(1).uniform(0.5, 2.0, n) if weighted else None
    K, options = oracle(X, q, w=w)
    parts = TrainingParts(problem_of(X, q=q, sample_weight=w), Y, nested=True, strategy=strategy)
    assert parts.full_fit.choice.startswith("low rank: 12 features for 60 rows" if n == 60 else "factored")
    everything = np.arange(n)
    for train, _ in odd_splits(n):
        part = parts.part(train)
        expected = reference.heldout_fits(K, Y, train, everything, ALPHA, **options)
        assert_close(part.fits(everything), expected)
    expected = [reference.heldout_fits(K, Y, np.delete(everything, i), [i], ALPHA, **options)[0] for i in everything]
    assert_close(parts.full_fit.loo().fits[:, 0], np.array(expected))
    path = loo_path(parts.problem, everything, Y, [ALPHA, 10.0])
    assert_close(Y - path[0], np.array(expected))


@pytest.mark.parametrize("n", [60, 20])
def test_features_are_evaluated_once(n):
    X, Y = data(n)
    problem = problem_of(X)
    CALLS.clear()
    for alpha in (0.1, 1.0):
        whole = TrainingParts(problem.replace(alpha=alpha), Y, strategy="part").full_fit
        assert np.isfinite(whole.loo().fits).all()
        whole.without(np.arange(5)).fits(np.arange(n))
    problem.restricted(np.arange(n - 4)).precision(np.arange(n - 4))
    Solution.fit(problem.subset(np.arange(10, n)), np.arange(n - 10), Y[10:])
    assert CALLS == []  # the mean was taken when the problem was made, and later ones have their features from it


@pytest.mark.parametrize("n", [60, 20])
@pytest.mark.parametrize("sparse", [False, True])
def test_weights_of_features_predict_what_the_expansion_does(n, sparse):
    X, Y = data(n + 5)
    kernel = Fourier(sparse=sparse)
    problem = problem_of(X[:n], kernel=kernel)
    solution = Solution.fit(problem, np.arange(n), Y[:n])
    for model in (solution, solution.without(np.arange(4))):
        basis, beta = model.expansion()
        expected, B = kernel.gram(X[n:], X[:n][basis]) @ beta, model.B
        weights, B = model.in_features()
        fits = kernel.features(X[n:]) @ weights + B
        train = model.rows
        K, options = oracle(X, 1)
        assert_close(fits, reference.heldout_fits(K, Y, train, np.arange(n, n + 5), ALPHA, **options))
        assert_close(fits - fits.mean(0), expected - expected.mean(0))
        assert_close(elsewhere(model, np.arange(5))(X[n:]), fits)
        if isinstance(model, Solution):
            loo = model.loo_at(X[n:], np.ones((5, 1)))
            rest = np.delete(np.arange(n), 3)
            assert_close(loo[:, 3], reference.heldout_fits(K, Y, rest, np.arange(n, n + 5), ALPHA, **options))


@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
@pytest.mark.parametrize("folds", [None, 4])
def test_the_slope_by_alpha_is_the_difference_quotient(penalty, folds):
    X, Y = data(60)
    folds = None if folds is None else list(np.arange(60).reshape(folds, -1))

    def loss(E):
        return float(np.square(E).sum()), 2 * E

    def value(alpha):
        problem = problem_of(X, penalty=penalty).replace(alpha=alpha)
        return value_and_gradient(problem, np.arange(60), Y, folds, loss)

    slope = value(ALPHA)[1]["alpha"]
    assert slope == pytest.approx(
        (value(ALPHA * (1 + 1e-5))[0] - value(ALPHA * (1 - 1e-5))[0]) / (2e-5 * ALPHA), rel=1e-5
    )


@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
def test_rows_learnt_and_forgotten_equal_a_new_fit(penalty):
    X, Y = data(30)
    problem = problem_of(X[:24], penalty=penalty, kernel=Fourier(20)).replace(shift=None)
    whole = updates.solve_anew(problem, Y[:24])
    whole = updates.learn(whole, problem.extended(X[24:], np.ones((6, 1))), Y)
    kept = np.delete(np.arange(30), [3, 26])
    whole = updates.forget(whole, whole.problem.subset(kept), Y[kept], np.array([3, 26]))
    assert whole.precision.grows
    new = updates.solve_anew(problem_of(X, penalty=penalty, kernel=Fourier(20)).subset(kept), Y[kept])
    assert_close(whole.fits(np.arange(28)), new.fits(np.arange(28)))
    assert_close(whole.loo().fits, new.loo().fits)


@pytest.mark.parametrize("n", [60, 20])
def test_estimators_predict_by_features_and_have_no_coef(n):
    X, Y = data(n + 5)
    K, options = oracle(X, 1)
    expected = reference.heldout_fits(K, Y, np.arange(n), np.arange(n, n + 5), ALPHA, **options)
    model = LSSVR(kernel=Fourier(), alpha=ALPHA).fit(X[:n], Y[:n, 0])
    CALLS.clear()
    assert_close(model.predict(X[n:]), expected[:, 0])
    assert CALLS == [5]
    with pytest.raises(AttributeError, match="coef_ exists for kernel='linear' only"):
        _ = model.coef_
    labels = (Y[:, 0] > 3).astype(int)
    assert LSSVC(kernel=Fourier(), alpha=ALPHA).fit(X[:n], labels[:n]).predict(X[n:]).shape == (5,)
