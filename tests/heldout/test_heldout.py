"""Held-out fits, models, class matrices and nested leave-one-out against plain refits."""

import numpy as np
import pytest

from foldless import kernels, reference
from foldless._engine.heldout.part import TrainingPart
from foldless._engine.heldout.problem import Problem
from foldless._engine.heldout.solution import Solution, loo_path
from foldless._engine.linalg import NotPositiveDefiniteError
from foldless._engine.precision.base import HeldOutBlock
from support.cases import CASES, NAMES, Case, odd_splits
from support.parts import TrainingParts
from support.refits import class_matrices, loo_fits, ridge_fits
from support.tolerances import assert_close

every_case = pytest.mark.parametrize("case", CASES, ids=NAMES)
every_strategy = pytest.mark.parametrize("strategy", ["part", "solve", None])


def target(case):
    return case.Y.astype(case.dtype)


@every_case
def test_leave_one_out_equals_refits(case):
    whole = TrainingParts(case.problem(), target(case)).full_fit
    loo = whole.loo()
    fits = loo.fits[:, 0]
    expected = loo_fits(case.K, case.Y, case.alpha, at=whole.rows, **case.oracle)
    assert_close(fits, expected)
    assert fits.dtype == case.dtype


@pytest.mark.many_cases
@every_case
@every_strategy
def test_any_split_at_any_rows_equals_refits(case, strategy):
    """Held-out rows, training rows, rows in neither part, rows of weight 0: all from one model."""
    parts = TrainingParts(case.problem(), target(case), strategy=strategy)
    everything = np.arange(len(case.K))
    for train, test in odd_splits(len(case.K)):
        model = parts.part(train)
        expected = reference.heldout_fits(case.K, case.Y, train, everything, case.alpha, **case.oracle)
        assert_close(model.fits(everything), expected)
        assert_close(model.fits(test), expected[test])


@every_case
@pytest.mark.parametrize("strategy", ["part", "solve"])
def test_the_model_without_a_set_has_the_coefficients_of_a_refit(case, strategy):
    train = odd_splits(len(case.K))[2][0]
    model = TrainingParts(case.problem(), target(case), strategy=strategy).part(train)
    basis, beta = model.expansion()
    train = np.sort(train[case.w[train] > 0])
    expected, offset = reference.fit(
        case.K[np.ix_(train, train)],
        case.Y[train],
        case.alpha,
        w=case.w[train],
        Q=case.Q[train],
    )
    np.testing.assert_array_equal(basis, train)
    if case.kernel != "linear":  # features centred for accuracy shift the constant between beta and B
        assert_close(model.B, offset) if case.q else None
    assert_close(beta, expected)


@every_case
def test_schur_complement_equals_P_of_the_training_part(case):
    parts = TrainingParts(case.problem(), target(case), strategy="part")
    train, _ = odd_splits(len(case.K))[2]
    part = parts.part(train)
    expected = Solution.fit(part.problem, part.rows, target(case)[part.rows]).precision.explicit()
    assert_close(part.precision.P, expected.P)
    assert_close(part.precision.G, expected.G) if case.q else None


@pytest.mark.many_cases
@every_case
@pytest.mark.parametrize("strategy", ["part", "solve"])
def test_class_matrices_equal_those_of_the_refit(case, strategy):
    parts = TrainingParts(case.problem(), target(case), strategy=strategy)
    for train, _ in odd_splits(len(case.K)):
        N, U, *_ = parts.part(train).moments()
        train = train[case.w[train] > 0]
        masses, expected = class_matrices(case.K, case.Y, train, case.alpha, **case.oracle)
        assert_close(N, masses)
        assert_close(U, expected, scale=np.abs(N).max())


@every_case
@pytest.mark.parametrize("strategy", ["part", "solve"])
def test_leave_one_out_inside_a_training_part_equals_a_double_refit(case, strategy):
    parts = TrainingParts(case.problem(), target(case), nested=True, strategy=strategy)
    train = odd_splits(len(case.K))[3][0]
    model = parts.part(train)
    inner = model.loo()
    expected = loo_fits(case.K, case.Y, case.alpha, rows=train, at=model.rows, **case.oracle)
    assert_close(inner.fits[:, 0], expected)
    N, U, *_ = inner.moments()
    i = 4
    rest = np.setdiff1d(model.rows, model.rows[i])
    masses, expected = class_matrices(case.K, case.Y, rest, case.alpha, **case.oracle)
    assert_close(N[i], masses)
    assert_close(U[i], expected, scale=np.abs(N[i]).max())


@every_case
def test_pairs_left_out_together_equal_refits(case):
    whole = TrainingParts(case.problem(), target(case)).full_fit
    pairs = np.array([[0, 1], [5, 2], [7, 16]])
    batch = whole.held_out(pairs)
    fits = batch.fits
    for k, pair in enumerate(whole.rows[pairs]):
        train = np.setdiff1d(np.arange(len(case.K)), pair)
        expected = reference.heldout_fits(case.K, case.Y, train, pair, case.alpha, **case.oracle)
        assert_close(fits[k], expected)
        masses, expected = class_matrices(case.K, case.Y, train, case.alpha, **case.oracle)
        assert_close(batch.moments()[1][k], expected, scale=np.abs(masses).max())


@every_case
def test_leave_one_out_models_at_new_points_equal_refits(case):
    """The last five rows are the new points; the rest is the data."""
    n = len(case.K) - 5
    old, new = np.arange(n), np.arange(n, n + 5)
    whole = TrainingParts(case.problem().subset(old), target(case)[old]).full_fit
    F = whole.loo_at(case.X[new], case.Q[new].astype(case.dtype))
    for i in (0, 3, len(whole.rows) - 1):
        rest = np.setdiff1d(old, whole.rows[i])
        expected = reference.heldout_fits(case.K, case.Y, rest, new, case.alpha, **case.oracle)
        assert_close(F[:, i], expected)


@pytest.mark.parametrize("weights", ["none", "random"])
@pytest.mark.parametrize("q", [1, 3])
def test_leave_one_out_models_at_new_points_keep_their_digits_beside_one_row_beyond_the_rank(q, weights):
    """P of all rows is of the size 1 / alpha, that of all but one is not."""
    n = 5 + q
    case = Case(kernel="linear", q=q, alpha=1e-8, shape=(n + 3, 4), weights=weights)
    X, K = 40 * case.X, 1600 * case.X @ case.X.T + 1
    kernel, w = kernels.Poly(gamma=1.0, degree=1, coef0=1.0), case.w
    old, new = np.arange(n), np.arange(n, n + 3)
    problem = Problem.of(kernel, X[old], alpha=1e-8, Q=case.Q[old], sample_weight=None if weights == "none" else w[old])
    whole = Solution.fit(problem, problem.active, case.Y[old])
    F = whole.loo_at(X[new], case.Q[new])
    for i in old:
        expected = reference.heldout_fits(K, case.Y, np.delete(old, i), new, 1e-8, w=w, Q=case.Q)
        assert_close(F[:, i], expected, rtol=1e-8)


def test_changing_y_leaves_P_identical():
    case = Case()
    first = Solution.fit(case.problem(), np.arange(26), case.Y).precision.explicit().P
    second = Solution.fit(case.problem(), np.arange(26), case.Y[::-1] ** 2).precision.explicit().P
    np.testing.assert_array_equal(first, second)


def test_shuffling_rows_shuffles_results():
    case = Case(weights="random")
    order = np.random.default_rng(0).permutation(26)
    one = TrainingParts(case.problem(), case.Y).full_fit.loo().fits[order]
    two = TrainingParts(case.problem().subset(order), case.Y[order]).full_fit.loo().fits
    assert_close(two, one)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_a_row_of_weight_two_is_fitted_like_a_doubled_row(kernel):
    case = Case(kernel=kernel)
    problem = case.problem()
    w = np.ones(26)
    w[3] = 2
    problem = problem.replace(root_w=np.sqrt(w))
    doubled = np.r_[np.arange(26), 3]
    one = TrainingParts(problem, case.Y).full_fit.fits(np.arange(26))
    two = TrainingParts(case.problem().subset(doubled), case.Y[doubled]).full_fit.fits(np.arange(26))
    assert_close(one, two)


def test_training_parts_take_the_cheaper_way(monkeypatch):
    monkeypatch.setattr("foldless._engine.precision.cost.STEPS_OF_FIT", 0.0)  # flops alone
    case = Case(shape=(40, 3))
    halves = TrainingParts(case.problem(), case.Y).planned({20: 2})  # two small fits
    assert halves.plan.form == "alone"
    assert isinstance(halves.part(np.arange(20)), Solution)
    folds = TrainingParts(case.problem(), case.Y).planned({4: 10, 36: 1})  # P of all rows
    assert folds.plan.form == "blocks"
    assert isinstance(folds.part(np.arange(36)), TrainingPart)
    assert isinstance(folds.part(np.arange(4)), Solution)  # the training part is the small side


@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("weights", ["none", "zeros"])
def test_the_alpha_path_gives_leave_one_out_for_every_alpha(weights, kernel, penalty):
    case = Case(weights=weights, kernel=kernel, penalty=penalty)
    problem = case.problem()
    rows, alphas = problem.active, np.logspace(-3, 3, 7)
    E = loo_path(problem, rows, case.Y[rows], alphas)
    for k, alpha in enumerate(alphas):
        for i, row in enumerate(rows[:4]):
            train = np.setdiff1d(np.arange(26), row)
            expected = reference.heldout_fits(case.K, case.Y, train, [row], alpha, **case.oracle)[0]
            assert_close(case.Y[row] - E[k, i], expected)


REMOVED = {
    "one row": lambda n: [4],
    "some rows": lambda n: [n - 6, 3, 11, 0, 7],
    "most rows": lambda n: np.delete(np.arange(n), [0, 4, 8, 9, 12, 15, -2, -1]),
    "the last rows": lambda n: [n - 1, n - 2, n - 3],
}
every_removal = pytest.mark.parametrize("which", REMOVED)


def part_of(case, which):
    whole = TrainingParts(case.problem(), target(case)).full_fit
    return TrainingPart.of(whole, np.array(REMOVED[which](len(whole.rows))))


def whitened_precision(case, rows):
    """P and G of these rows from the bordered system, whitened."""
    root = np.sqrt(case.w[rows])[:, None]
    P, G = reference.precision(case.K[np.ix_(rows, rows)], case.alpha, w=case.w[rows], Q=case.Q[rows])
    return P / root / root.T, G / root.T


@every_case
@every_removal
def test_the_precision_of_a_part_is_that_of_its_rows_alone(case, which):
    part = part_of(case, which)
    P, G = whitened_precision(case, part.rows)
    rtol = {1e-6: 1e-5, 0.1: 1e-7}.get(case.alpha) if case.dtype == "float64" else 5e-3
    assert_close(part.precision.P, P.astype(case.dtype), rtol=rtol)
    if case.q and case.kernel != "linear":  # centred features shift the constant between weights and Q
        assert_close(part.precision.G, G.astype(case.dtype), rtol=rtol)
    assert_close(part.precision.P, part.precision.P.T, rtol=rtol)


@every_case
@every_removal
def test_factors_of_a_removal_multiply_to_the_removed_matrix(case, which):
    """V' W = P_,te P_te,te^-1 P_te, of one factor."""
    part = part_of(case, which)
    V, W = part.block.halves
    P = part.solution.precision.explicit().P.astype(float)
    te = part.removed
    assert_close(
        V.T @ W,
        (P[:, te] @ np.linalg.solve(P[np.ix_(te, te)], P[te])).astype(case.dtype),
        scale=np.abs(P).max(),
        rtol=1e-7 if case.dtype == "float64" else 5e-3,
    )
    assert V is W


@every_case
@every_removal
def test_leave_one_out_inside_any_part_equals_refits(case, which):
    part = part_of(case, which)
    loo = part.loo()
    expected = loo_fits(case.K, case.Y, case.alpha, rows=part.rows, **case.oracle)
    rtol = 1e-6 if case.alpha == 1e-6 else None
    assert_close(loo.fits[:, 0], expected.astype(case.dtype), rtol=rtol)
    P = part.precision
    assert_close(loo.D[:, 0, 0], P.diagonal(), scale=np.abs(P.P).max())


@pytest.mark.many_cases
@every_case
@every_removal
def test_parts_of_parts_equal_refits(case, which):
    """A part of a part, and leave-one-out and pairs inside it: three times left out, never refitted."""
    part = part_of(case, which)
    alone = part.as_solution()
    np.testing.assert_array_equal(alone.rows, part.rows)
    everything = np.arange(len(case.K))
    rtol = 1e-6 if case.alpha == 1e-6 else None

    def refit(train, at):
        return reference.heldout_fits(case.K, case.Y, train, at, case.alpha, **case.oracle).astype(case.dtype)

    assert_close(alone.fits(part.rows), refit(part.rows, part.rows), rtol=rtol)
    assert_close(alone.loo().fits[:, 0], part.loo().fits[:, 0], rtol=rtol)
    again = TrainingPart.of(alone, np.array([2, 0]))
    kept = np.delete(part.rows, [0, 2])
    np.testing.assert_array_equal(again.rows, kept)
    assert_close(again.fits(everything), refit(kept, everything), rtol=rtol)
    P, _ = whitened_precision(case, kept)
    wide = {1e-6: 1e-5}.get(case.alpha, 1e-7) if case.dtype == "float64" else 5e-3
    assert_close(again.precision.P, P.astype(case.dtype), rtol=wide)
    inner = again.loo().fits[:, 0]
    assert_close(inner[1], refit(np.delete(kept, 1), kept[[1]])[0], scale=1.0 + np.abs(inner).max())
    third = TrainingPart.of(again.as_solution(), np.array([1]))
    assert_close(third.fits(kept), refit(np.delete(kept, 1), kept), rtol=rtol)
    N, U, *_ = again.moments()
    F = refit(kept, kept)
    Yw = case.Y[kept] * case.w[kept, None]
    assert_close(N, (Yw.T @ case.Y[kept]).astype(case.dtype))
    assert_close(U, (Yw.T @ (case.Y[kept] - F)).astype(case.dtype), scale=np.abs(N).max())
    batch = alone.held_out(np.array([[0, 1], [3, 2]]))
    train = np.delete(part.rows, [2, 3])
    assert_close(batch.fits[1], refit(train, part.rows[[3, 2]]), rtol=rtol)


@pytest.mark.parametrize("rows", [[3], [3, 4, 5], list(range(3, 12))])
def test_loo_of_a_part_without_the_rows_that_carried_its_features(rows):
    """The rows left out had all the leverage: what remains is small beside it and keeps its digits."""
    rng = np.random.default_rng(0)
    n, alpha = 40, 1e-3
    X, Y = rng.normal(size=(n, 4)), rng.normal(size=(n, 2))
    X[rows] *= 1e6
    problem = Problem.of(kernels.Linear(), X, alpha=alpha, Q=np.ones((n, 1)))
    part = TrainingPart.of(Solution.fit(problem, np.arange(n), Y), np.array(rows))
    splits = [(np.setdiff1d(part.rows, row), [row]) for row in part.rows]
    expected = [ridge_fits(X, Y, np.ones((n, 1)), train, row, alpha)[0] for train, row in splits]
    assert_close(part.loo().fits[:, 0], np.array(expected), rtol=1e-6)


def test_part_without_a_cholesky_factor_is_solved_directly(monkeypatch):
    """Rounding may leave no Cholesky factor for V; E is there already, and V' W does not change."""
    case = Case()
    part, other = part_of(case, "some rows"), part_of(case, "some rows")
    assert other.E is not None

    def none(_):
        raise NotPositiveDefiniteError("rounding")

    monkeypatch.setattr(HeldOutBlock, "factor", property(none))
    assert_close(other.precision.P, part.precision.P)
    assert_close(other.loo().fits, part.loo().fits)
