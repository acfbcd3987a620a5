"""P in every holder equals the inverse of the bordered system and keeps its laws."""

import numpy as np
import pytest

from foldless import reference
from foldless._engine.linalg import product
from foldless._engine.precision.base import Explicit, SingularBlockError
from foldless._engine.precision.factored import Factored
from foldless._engine.precision.lowrank import LowRank
from foldless._engine.precision.spectral import IndefiniteError, Spectrum
from support.cases import HOLDERS, holders
from support.tolerances import assert_close

N = 23
PROBLEMS = [(q, alpha) for q in (0, 1, 3) for alpha in (1e-4, 1.0, 1e4)]


def make(q, alpha, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 6))
    S = np.exp(-0.2 * np.square(X[:, None] - X).sum(-1))
    Q = np.column_stack([np.ones(N), rng.normal(size=(N, 2))])[:, :q]
    return S, Q, alpha


@pytest.mark.parametrize("name", HOLDERS)
@pytest.mark.parametrize(("q", "alpha"), PROBLEMS)
def test_every_method_of_a_holder_equals_the_inverse_of_the_bordered_system(name, q, alpha):
    S, Q, alpha = make(q, alpha)
    P, G = reference.precision(S, alpha, Q=Q)
    holder = holders(S, Q, alpha)[name]
    rng = np.random.default_rng(1)
    Y, rows = rng.normal(size=(N, 3)), rng.permutation(N)[:7]
    A = P @ Y
    assert_close(holder.apply(Y), A)
    assert_close(holder.G, G) if q else None
    assert_close(holder.diagonal(), P.diagonal())
    assert_close(holder.columns(rows), P[:, rows])
    assert_close(holder.block(rows), P[np.ix_(rows, rows)])
    assert_close(holder.held_out(rows).residual(holder.apply(Y), Y), np.linalg.solve(P[np.ix_(rows, rows)], A[rows]))
    assert_close(holder.loo_residual(holder.apply(Y), Y, holder.diagonal()), A / P.diagonal()[:, None])
    assert_close(holder.diagonal_blocks(rows[:6].reshape(3, 2))[1], P[np.ix_(rows[2:4], rows[2:4])])
    assert_close(holder.explicit().P, P)


@pytest.mark.parametrize("name", HOLDERS)
def test_P_is_symmetric_semidefinite_and_vanishes_on_Q(name):
    S, Q, alpha = make(3, 0.1)
    P = holders(S, Q, alpha)[name].explicit().P
    assert_close(P, P.T)
    assert np.linalg.eigvalsh(P).min() > -1e-12 * np.abs(P).max()
    assert_close(P @ Q, np.zeros_like(Q), scale=np.abs(P).max())


@pytest.mark.parametrize("name", HOLDERS)
def test_P_ignores_the_part_of_S_in_the_span_of_Q(name):
    S, Q, alpha = make(1, 0.1)
    rng = np.random.default_rng(3)
    features = np.linalg.cholesky(S + 1e-10 * np.eye(N)) + 3 * Q @ rng.normal(size=(1, N))
    Y = rng.normal(size=(N, 2))
    assert_close(holders(features @ features.T, Q, alpha)[name].apply(Y), holders(S, Q, alpha)[name].apply(Y))


def test_trace_of_the_hat_matrix_falls_as_alpha_grows():
    S, Q, _ = make(1, None)
    traces = [N - alpha * Factored(S.copy(), Q, alpha).diagonal().sum() for alpha in np.logspace(-6, 6, 13)]
    assert np.all(np.diff(traces) < 0)
    assert traces[-1] == pytest.approx(1.0, abs=1e-3)  # the intercept stays


def test_the_alpha_path_equals_one_holder_per_alpha():
    S, Q, _ = make(1, None)
    Y = np.random.default_rng(2).normal(size=(N, 2))
    alphas = np.logspace(-5, 5, 9)
    spectrum = Spectrum(S.copy(), Q)
    A, D = spectrum.path_apply(Y, alphas), spectrum.path_diagonal(alphas)
    for k, alpha in enumerate(alphas):
        single = Factored(S.copy(), Q, alpha)
        assert_close(A[k], single.apply(Y))
        assert_close(D[k], single.diagonal())


def test_the_factor_is_made_in_the_memory_of_S():
    S, Q, alpha = make(1, 0.1)
    holder = Factored(S, Q, alpha, gram=lambda: make(1, 0.1)[0])
    assert np.shares_memory(holder._L, S)
    holder.diagonal()
    assert np.shares_memory(holder._inverse, S)
    assert holder._L is None


@pytest.mark.parametrize("alpha", [1e-3, 1e-6, 1e-9, 1e-12])
def test_no_digits_are_lost_where_S_has_no_constant_part(alpha):
    """Centred features at tiny alpha: M^-1 - M^-1 Q G would cancel without the added Q Q'."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 60))
    X -= X.mean(0)
    Q = np.ones((12, 1))
    # exact: P is the inverse of S + alpha on the complement of the constant
    basis = np.linalg.svd(Q)[0][:, 1:]
    S = X @ X.T
    P = basis @ np.linalg.inv(basis.T @ S @ basis + alpha * np.eye(11)) @ basis.T
    assert_close(Factored(S.copy(), Q, alpha).diagonal(), P.diagonal(), rtol=1e-10)
    assert_close(Spectrum(S.copy(), Q).with_alpha(alpha).diagonal(), P.diagonal(), rtol=1e-10)


@pytest.mark.parametrize("rows", [[3], [3, 4, 5], list(range(3, 20))])
def test_low_rank_refits_where_held_out_rows_carry_the_features(rows):
    """Leverage near 1: both sides of the block would cancel, the training side does not."""
    rng = np.random.default_rng(0)
    Phi = rng.normal(size=(30, 4))
    Phi[rows] *= 1e7
    Q, Y, rows = np.ones((30, 1)), rng.normal(size=(30, 2)), np.array(rows)
    holder = LowRank(Phi, Q, 1e-3)
    rest = np.setdiff1d(np.arange(30), rows)
    design = np.hstack([Q, Phi])
    ridge = np.diag([0.0, *[1e-3] * 4])
    beta = np.linalg.solve(design[rest].T @ design[rest] + ridge, design[rest].T @ Y[rest])
    expected = Y[rows] - design[rows] @ beta
    assert_close(holder.held_out(rows).residual(holder.apply(Y), Y), expected)
    if len(rows) == 1:
        assert_close(holder.loo_residual(holder.apply(Y), Y, holder.diagonal())[rows], expected)


@pytest.mark.parametrize("name", HOLDERS)
def test_leaving_out_all_rows_but_one_is_defined(name):
    S, Q, alpha = make(1, 0.5)
    holder = holders(S, Q, alpha)[name]
    Y = np.random.default_rng(0).normal(size=(N, 1))
    A = holder.apply(Y)
    rows = np.arange(N - 1)
    # one row and an intercept: the constant Y of that row
    assert_close(Y[rows] - holder.held_out(rows).residual(A, Y), np.full((N - 1, 1), Y[-1, 0]), rtol=1e-6)


def test_a_training_part_that_determines_nothing_is_an_error():
    P = np.zeros((3, 3))  # as if three intercepts were fitted to three rows
    with pytest.raises(SingularBlockError, match=r"leaving out 2 of 3 rows .* does not determine the model"):
        Explicit(P, np.eye(3), 1.0).held_out(np.arange(2)).residual(np.zeros((3, 1)), np.zeros((3, 1)))


def test_indefinite_matrices_are_refused_with_their_eigenvalues():
    S = np.diag([1.0, 1.0, -0.5, 1.0])
    with pytest.raises(IndefiniteError, match=r"eigenvalues reach from -0\.5 to 1"):
        Spectrum(S, np.zeros((4, 0)))


@pytest.mark.parametrize("order_a", "CF")
@pytest.mark.parametrize("order_b", "CF")
@pytest.mark.parametrize("transpose", [False, True])
def test_product_in_every_memory_order(order_a, order_b, transpose):
    rng = np.random.default_rng(0)
    A = np.asarray(rng.normal(size=(4, 5)), order=order_a)
    B = np.asarray(rng.normal(size=(4 if transpose else 5, 3)), order=order_b)
    assert_close(product(A, B, transpose_a=transpose), (A.T if transpose else A) @ B)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("q", [0, 1, 3])
@pytest.mark.parametrize("n", [2 + 1, 23, 257, 300])
def test_explicit_is_symmetric_and_equal_to_columns(n, q, dtype):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 6))
    S = np.exp(-0.2 * np.square(X[:, None] - X).sum(-1)).astype(dtype)
    q = min(q, n - 1)
    Q = np.column_stack([np.ones(n), rng.normal(size=(n, 2))])[:, :q].astype(dtype)
    P, _ = reference.precision(S.astype(float), 0.1, Q=Q.astype(float))
    rtol = 1e-9 if dtype == "float64" else 2e-3
    for holder in (Factored(S.copy(), Q, 0.1), Spectrum(S.copy(), Q).with_alpha(0.1)):
        before = holder.apply(Q + 1) if q else holder.apply(S[:, :2])
        explicit = holder.explicit()
        assert explicit.P.dtype == dtype
        assert_close(explicit.P, P.astype(dtype), rtol=rtol)
        assert_close(explicit.P, explicit.P.T, rtol=rtol / 1000)
        assert_close(explicit.P, holder.columns(np.arange(n)), rtol=rtol)
        assert_close(explicit.diagonal(), holder.diagonal(), rtol=rtol)
        assert_close(explicit.G, holder.G, rtol=rtol) if q else None
        assert_close(holder.apply(Q + 1) if q else holder.apply(S[:, :2]), before, rtol=rtol, scale=np.abs(P).max())


@pytest.mark.parametrize("name", HOLDERS)
def test_sets_left_out_one_after_another_are_independent(name):
    """Blocks and factors are kept for the set asked last, never for another."""
    S, Q, alpha = make(1, 0.1)
    holder = holders(S, Q, alpha)[name]
    rng = np.random.default_rng(1)
    Y, order = rng.normal(size=(N, 2)), rng.permutation(N)
    A, sets = holder.apply(Y), [order[:5], order[5:12], order[3:8]]
    for rows in (*sets, *sets[::-1], order[:5].copy()):
        fresh = holders(S, Q, alpha)[name]
        assert_close(holder.held_out(rows).residual(A, Y), fresh.held_out(rows).residual(fresh.apply(Y), Y))
        assert_close(
            holder.held_out(rows).residual(A[:, :1], Y[:, :1]), fresh.held_out(rows).residual(fresh.apply(Y), Y)[:, :1]
        )
        L = holder.held_out(rows).factor
        assert_close(L @ L.T, fresh.block(rows))
        np.testing.assert_array_equal(L, np.tril(L))
