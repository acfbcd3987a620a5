"""Solutions that learn and forget rows equal plain refits on the rows they then have."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import foldless._engine.online.influence as influence
import foldless._engine.online.updates as updates
from foldless import kernels
from foldless._engine.heldout.part import TrainingPart
from foldless._engine.heldout.problem import Problem
from foldless._engine.precision.base import SingularBlockError
from foldless._engine.precision.growing import Growing, StaleError
from support.cases import Case
from support.tolerances import assert_close
from support.updates import (
    allowed,
    assert_equals_refit,
    begin,
    data,
    every_case,
    every_penalty,
    forget,
    learn,
    loo_residuals,
    problem_of,
)


@pytest.mark.many_cases
@every_case
def test_loo_and_coefficients_equal_refit_after_learning_and_forgetting(case):
    """Single rows and blocks; rows 1 and 11 have weight 0 in some cases."""
    n = case.shape[0]
    rows = np.array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    whole = begin(case, rows)
    steps = [
        *((learn, [10]), (forget, [3]), (learn, [11, 12, 13, 14]), (forget, [0, 13, 5]), (forget, [1]), (learn, [11])),
        *((learn, [3, 15, 16]), (forget, [0, 1, 2, 3]), (learn, [17]), (learn, np.arange(18, n)), (forget, [6])),
    ]
    updated = []
    for step, argument in steps:
        argument = np.asarray(argument)
        if step is learn:
            argument = np.setdiff1d(argument, rows)
        before = len(rows)
        whole, rows = step(case, whole, rows, argument)
        if updates.update_pays(whole.problem, min(before, len(rows)), abs(len(rows) - before)):
            updated.append(isinstance(whole.own_precision, Growing))
        assert_equals_refit(case, whole, rows)
    features_of_a_tiny_alpha = case.kernel == "linear" and case.alpha < 1e-5
    assert any(updated) is not features_of_a_tiny_alpha


@pytest.mark.many_cases
@every_case
@pytest.mark.parametrize("n", [9, 14])
def test_effects_of_forgetting_equal_refits_without_each_row(case, n):
    case = replace(case, shape=(n, case.shape[1]), weights="random" if case.weights == "zeros" else case.weights)
    rows = np.arange(n - 2)
    whole, rows = learn(case, begin(case, rows), rows, np.arange(n - 2, n))

    def press(kept):
        return (case.w[kept][:, None] * np.square(loo_residuals(case, kept))).sum(-1)

    every = press(rows)
    expected = [abs(press(np.delete(rows, i)).sum() - np.delete(every, i).sum()) for i in range(n)]
    rtol = max(allowed(case, np.delete(rows, i)) for i in range(n))
    assert_close(influence.effects(whole), np.array(expected), rtol=4 * rtol, scale=every.sum() + max(expected))
    assert_close(influence.effects(begin(case, rows)), influence.effects(whole), rtol=4 * rtol)


@pytest.mark.parametrize("entries", [1, 40, 100])
@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
def test_effects_do_not_depend_on_the_batches(entries, penalty, monkeypatch):
    case = Case(penalty=penalty)
    whole = begin(case, np.arange(26))
    expected = influence.effects(whole)
    monkeypatch.setattr(influence, "MAX_ENTRIES", entries)
    assert_close(influence.effects(whole), expected, rtol=1e-12)


@pytest.mark.parametrize(("n", "q"), [(1, 1), (2, 1), (3, 3), (4, 3)])
@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
def test_effects_of_rows_that_cannot_be_left_out_are_an_error(n, q, penalty):
    case = Case(q=q, penalty=penalty)
    with pytest.raises(ValueError, match="determine"):
        influence.effects(begin(case, np.arange(n)))


@pytest.mark.parametrize("seed", range(8))
def test_effects_where_two_rows_alone_show_a_confound_are_an_error(seed):
    """Without both of them P is 0 up to rounding, of either sign."""
    rng = np.random.default_rng(seed)
    Q = np.column_stack([np.ones(12), np.isin(np.arange(12), [4, 7])])
    problem = Problem.of(kernels.RBF(0.3), rng.normal(size=(12, 3)), alpha=0.1, Q=Q)
    with pytest.raises(SingularBlockError, match="leaving out 2 of 12 rows"):
        influence.effects(updates.solve_anew(problem, rng.normal(size=(12, 1))))


@every_penalty
@pytest.mark.parametrize("weights", ["none", "zeros"])
def test_updates_with_other_targets_equal_refit(penalty, weights):
    """A new class brings a column and changes those of the old rows; one that goes takes its column."""
    case = Case(penalty=penalty, weights=weights)
    rows = np.arange(20)
    whole = begin(case, rows)
    problem = whole.problem.extended(*data(case, np.arange(20, 23)))
    problem = problem if weights == "none" else problem.weighted_by(case.w[:23])
    rng = np.random.default_rng(0)
    for m in (2, 3):
        Y = rng.normal(size=(23, m))
        now = updates.learn(updates.solve_anew(whole.problem, case.Y[:20]), problem, Y)
        assert isinstance(now.own_precision, Growing)
        expected = updates.solve_anew(problem, Y)
        for found in (now, now.select_targets(slice(None))):
            assert_close(found.expansion()[1], expected.expansion()[1])
            assert_close(found.B, expected.B)
            assert_close(found.loo().E, expected.loo().E)
        kept = np.delete(np.arange(23), [2, 21])
        fewer = problem.subset(kept)
        Y = rng.normal(size=(21, 5 - m))
        now = updates.forget(now, fewer, Y, np.flatnonzero(np.isin(now.rows, [2, 21])))
        assert isinstance(now.own_precision, Growing)
        expected = updates.solve_anew(fewer, Y)
        assert_close(now.expansion()[1], expected.expansion()[1])
        assert_close(now.B, expected.B)
        assert_close(now.loo().E, expected.loo().E)


@every_penalty
def test_scores_without_confounds_after_updates_equal_refits(penalty):
    case = Case(q=3, penalty=penalty)
    rows = np.arange(16)
    whole = begin(case, rows)
    vars(whole)["problem"] = whole.problem.replace(n_confounds=2)
    whole, rows = learn(case, whole, rows, np.arange(16, 20))
    whole, rows = forget(case, whole, rows, np.array([2, 17]))
    expected = case.Y[rows] - loo_residuals(case, rows, n_confounds=2)
    assert_close(whole.loo().fits[:, 0], expected)


@every_penalty
@pytest.mark.parametrize("weights", ["none", "random"])
def test_held_out_fits_after_updates_equal_refits(penalty, weights):
    """Folds, parts, leave-one-out models at new rows and class matrices are those of a new factorisation."""
    case = Case(penalty=penalty, weights=weights)
    whole, rows = learn(case, begin(case, np.arange(16)), np.arange(16), np.arange(16, 22))
    whole, rows = forget(case, whole, rows, np.array([3, 18]))
    new = begin(case, rows)
    sets = np.random.default_rng(0).permutation(20).reshape(5, 4)
    X, Q = data(case, np.arange(22, 26))
    assert_close(whole.held_out(sets).fits, new.held_out(sets).fits)
    for found, expected in zip(whole.held_out(sets).moments()[:2], new.held_out(sets).moments()[:2], strict=True):
        assert_close(found, expected)
    assert_close(whole.loo_at(X, Q), new.loo_at(X, Q))
    one, other = TrainingPart.of(whole, sets[0]), TrainingPart.of(new, sets[0])
    assert_close(one.fits(np.arange(20)), other.fits(np.arange(20)))
    assert_close(one.loo().fits, other.loo().fits)
    assert_close(one.precision.P, other.precision.P)
    assert_close(one.B, other.B)


@every_penalty
def test_solution_is_stale_after_its_update(penalty):
    case = Case(penalty=penalty)
    rows = np.arange(16)
    first = begin(case, rows)
    second, rows = learn(case, first, rows, np.array([20]))
    assert first.current  # its P was another holder's
    assert_equals_refit(case, first, rows[:16])
    third, rows = forget(case, second, rows, np.array([4]))
    assert not second.current
    assert third.current
    with pytest.raises(StaleError):
        second.held_out(np.arange(16).reshape(8, 2))
    with pytest.raises(StaleError):
        learn(case, second, np.arange(17), np.array([22]))
    assert_equals_refit(case, third, rows)


def holder_after(case, n, t, step):
    rows = np.arange(n)
    whole = begin(case, rows)
    change = (learn, np.arange(n, n + t)) if step == "learn" else (forget, np.arange(t))
    whole, rows = change[0](case, whole, rows, change[1])
    assert_equals_refit(case, whole, rows)
    return whole.choice.split(":")[0]


def test_updates_are_used_only_where_they_are_cheaper():
    case = Case()
    assert holder_after(case, 16, 8, "learn") == "growing"
    assert holder_after(case, 16, 9, "learn") == "factored"
    assert holder_after(case, 15, 5, "forget") == "growing"
    assert holder_after(case, 16, 6, "forget") == "factored"
    assert holder_after(case, 16, 0, "learn") == "factored"
    assert holder_after(case, 16, 0, "forget") == "factored"
    few = Case(kernel="linear", shape=(26, 2))
    assert holder_after(few, 25, 1, "learn") == "low rank"  # 6 r^2 = 24 <= 25
    assert holder_after(few, 25, 1, "forget") == "low rank"
    assert holder_after(few, 23, 1, "learn") == "growing"
    assert holder_after(few, 24, 1, "forget") == "growing"
    assert holder_after(replace(few, alpha=1e-5), 12, 1, "learn") == "low rank"  # for accuracy


def test_updates_that_would_lose_their_digits_are_factorised_anew():
    """Where S has a lower rank than it has rows, or the squared condition of K, and alpha is tiny."""
    assert holder_after(Case(penalty="coef", alpha=1e-3), 16, 1, "learn") == "growing"
    assert holder_after(Case(penalty="coef", alpha=1e-6), 16, 1, "learn") == "factored"
    assert holder_after(Case(penalty="coef", alpha=1e-6), 16, 1, "forget") == "factored"
    assert holder_after(Case(kernel="linear", alpha=1e-3), 9, 1, "learn") == "growing"
    assert holder_after(Case(kernel="linear", alpha=1e-6), 9, 1, "learn") == "factored"
    assert holder_after(Case(alpha=1e-6), 16, 1, "learn") == "growing"


@every_penalty
def test_rows_of_weight_zero_leave_P_as_it_is(penalty):
    case = Case(penalty=penalty, weights="zeros")
    rows = np.array([0, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    whole, rows = learn(case, begin(case, rows), rows, np.array([12, 13]))
    more, rows = learn(case, whole, rows, np.array([11]))
    assert more.own_precision is whole.own_precision
    assert_equals_refit(case, more, rows)
    more, rows = learn(case, more, rows, np.array([1, 14]))
    assert_equals_refit(case, more, rows)
    less, rows = forget(case, more, rows, np.flatnonzero(rows == 11))
    assert less.own_precision is more.own_precision
    assert_equals_refit(case, less, rows)
    less, rows = forget(case, less, rows, np.array([3]))
    assert_equals_refit(case, less, rows)


def test_size_of_linear_features_follows_the_rows_that_remain():
    case = Case(kernel="linear")
    problem = problem_of(case, np.arange(16))
    squares = np.square(case.X).sum(1)
    assert problem.mean_diagonal == pytest.approx(squares[:16].mean())
    assert problem.subset(np.arange(3, 9)).mean_diagonal == pytest.approx(squares[3:9].mean())
    assert problem.extended(*data(case, np.arange(16, 20))).mean_diagonal == pytest.approx(squares[:20].mean())
    assert problem.weighted_by(np.arange(16) % 2).mean_diagonal == pytest.approx(squares[1:16:2].mean())


def test_extended_linear_problem_has_no_shift():
    """The mean that rounding likes taken out is one of rows that may go."""
    case = Case(kernel="linear", shape=(26, 40))
    problem = case.problem().subset(np.arange(16))
    assert problem.shift is not None
    assert problem.extended(*data(case, np.arange(16, 18))).shift is None


@pytest.mark.parametrize("sparse", [False, True])
@every_penalty
def test_updates_of_a_precomputed_kernel_equal_refit(sparse, penalty):
    case = Case(penalty=penalty)
    rows = np.array([3, 1, 7, 0, 9, 12, 5, 20])
    as_given = sp.csr_array if sparse else np.asarray
    start = as_given(case.K[np.ix_(rows, rows)])
    Q = np.ones((len(rows), 1))
    problem = Problem.of(kernels.Precomputed(), start, alpha=case.alpha, Q=Q)
    whole = updates.solve_anew(problem, case.Y[rows])
    for new in ([2], [24, 4], [6]):
        rows = np.concatenate([rows, new])
        K_new = as_given(case.K[np.ix_(new, rows)])
        whole = updates.learn(whole, whole.problem.extended(K_new, np.ones((len(new), 1))), case.Y[rows])
        assert isinstance(whole.own_precision, Growing)
        assert_equals_refit(case, whole, rows)
        whole, rows = forget(case, whole, rows, np.array([1]))
        assert_equals_refit(case, whole, rows)


def test_updates_of_sparse_rows_equal_refit():
    case = Case(kernel="rbf")
    rows = np.arange(16)
    problem = Problem.of(kernels.RBF(0.2), sp.csr_array(case.X[:16]), alpha=case.alpha, Q=np.ones((16, 1)))
    whole = updates.solve_anew(problem, case.Y[:16])
    whole = updates.learn(whole, problem.extended(sp.csr_array(case.X[16:20]), np.ones((4, 1))), case.Y[:20])
    assert isinstance(whole.own_precision, Growing)
    whole, rows = forget(case, whole, np.arange(20), np.array([0, 18]))
    assert sp.issparse(whole.problem.X)
    assert_equals_refit(case, whole, rows)
