"""Rows that determine nothing, kernels without size: updates give a clear error or the right answer."""

import numpy as np
import pytest

import foldless._engine.online.updates as updates
from foldless import kernels
from foldless._engine.heldout.problem import Problem
from foldless._engine.precision.base import SingularBlockError
from foldless._engine.precision.growing import Growing
from support.cases import Case, penalised
from support.tolerances import assert_close
from support.updates import assert_equals_refit, begin, every_penalty, forget, learn


@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
@pytest.mark.parametrize("seed", range(8))
def test_forgetting_the_only_row_that_shows_a_confound_is_an_error(penalty, seed):
    """What P has there is 0 up to rounding, of either sign."""
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(13, 3)), rng.normal(size=(13, 1))
    Q = np.column_stack([np.ones(13), np.arange(13) == 4]).astype(float)
    kernel = penalised(kernels.RBF(0.3), penalty, X[:12])
    whole = updates.solve_anew(Problem.of(kernel, X[:12], alpha=0.1, Q=Q[:12]), Y[:12])
    for _ in range(2):  # from a factor, then from a growing P
        kept = np.delete(np.arange(whole.problem.n), 4)
        with pytest.raises(SingularBlockError, match="confounds: column 0"):
            updates.forget(whole, whole.problem.subset(kept), Y[kept], np.array([4]))
        assert whole.current
        if whole.problem.n == 12:
            whole = updates.learn(whole, whole.problem.extended(X[12:], Q[12:]), Y)
    new = updates.solve_anew(whole.problem, Y)
    assert_close(whole.expansion()[1], new.expansion()[1])
    assert_close(whole.B, new.B)


@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
@pytest.mark.parametrize("seed", range(8))
def test_too_few_rows_for_the_confounds_are_an_error(penalty, seed):
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(3, 3)), rng.normal(size=(3, 1))
    Q = np.column_stack([np.ones(3), rng.normal(size=(3, 2))])
    whole = updates.solve_anew(Problem.of(penalised(kernels.RBF(0.3), penalty, X), X, alpha=0.1, Q=Q), Y)
    with pytest.raises(SingularBlockError, match="confounds: column"):
        updates.forget(whole, whole.problem.subset(np.arange(1, 3)), Y[1:], np.array([0]))


@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
def test_updates_of_a_zero_kernel_predict_the_mean(penalty):
    X, Y = np.zeros((12, 30)), np.random.default_rng(0).normal(size=(12, 1))
    kernel = penalised(kernels.Linear(), penalty, X[:10])
    whole = updates.solve_anew(Problem.of(kernel, X[:10], alpha=0.1, Q=np.ones((10, 1))), Y[:10])
    whole = updates.learn(whole, whole.problem.replace(shift=None).extended(X[10:], np.ones((2, 1))), Y)
    assert isinstance(whole.own_precision, Growing)
    assert_close(whole.B, Y.mean(keepdims=True))
    assert_close(whole.loo().fits[:, 0], (Y.sum() - Y) / 11)


def test_rows_too_large_for_the_kernel_are_an_error_that_changes_nothing():
    case = Case(kernel="linear", shape=(26, 40))
    rows = np.arange(16)
    whole, rows = learn(case, begin(case, rows), rows, np.array([20]))
    for t in (1, 2):
        huge = whole.problem.extended(np.full((t, 40), 1e160), np.ones((t, 1)))
        with pytest.raises(ValueError, match="overflows"):
            updates.learn(whole, huge, case.Y[: 17 + t])
        assert whole.current
    whole, rows = forget(case, whole, rows, np.array([4]))
    assert_equals_refit(case, whole, rows)


@every_penalty
def test_duplicates_at_a_vanishing_alpha_equal_a_new_factorisation(penalty):
    """The Schur complement of a duplicate is alpha: below its own rounding, P is factorised anew."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(12, 2)), rng.normal(size=(14, 1))
    kernel = penalised(kernels.RBF(2.0), penalty, X)
    for new in (X[:1], X[:2]):
        t = len(new)
        whole = updates.solve_anew(Problem.of(kernel, X, alpha=1e-18, Q=np.ones((12, 1))), Y[:12])
        problem = whole.problem.extended(new, np.ones((t, 1)))
        found, expected = updates.learn(whole, problem, Y[: 12 + t]), updates.solve_anew(problem, Y[: 12 + t])
        assert not isinstance(found.own_precision, Growing)
        np.testing.assert_array_equal(found.A, expected.A)
