"""P in every holder: equal to the oracle, and its laws."""

import numpy as np
import pytest
from cases import HOLDERS, assert_close, holders

from foldless import reference
from foldless.linalg.numpy import add_outer_, lower_square, outer_square, product, right_solve
from foldless.precision import lowrank
from foldless.precision.base import Explicit, SingularBlockError
from foldless.precision.factored import Factored
from foldless.precision.lowrank import LowRank
from foldless.precision.spectral import IndefiniteError, Spectrum

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
def test_every_verb_equals_the_inverse_of_the_bordered_system(name, q, alpha):
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
    assert_close(holder.block_times(rows, Y[rows]), P[np.ix_(rows, rows)] @ Y[rows])
    assert_close(holder.residual(rows, holder.apply(Y), Y), np.linalg.solve(P[np.ix_(rows, rows)], A[rows]))
    assert_close(holder.loo_residual(holder.apply(Y), Y), A / P.diagonal()[:, None])
    assert_close(holder.diagonal_blocks(rows[:6].reshape(3, 2))[1], P[np.ix_(rows[2:4], rows[2:4])])
    assert_close(holder.explicit().P, P)


@pytest.mark.parametrize("name", HOLDERS)
def test_laws_symmetric_semidefinite_blind_to_Q(name):
    S, Q, alpha = make(3, 0.1)
    P = holders(S, Q, alpha)[name].explicit().P
    assert_close(P, P.T)
    assert np.linalg.eigvalsh(P).min() > -1e-12 * np.abs(P).max()
    assert_close(P @ Q, np.zeros_like(Q), scale=np.abs(P).max())


@pytest.mark.parametrize("name", HOLDERS)
def test_a_part_of_S_in_the_span_of_Q_changes_nothing(name):
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
    holder = Factored(S, Q, alpha)
    assert np.shares_memory(holder._L, S)
    holder.diagonal()
    assert np.shares_memory(holder._L, S)


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
    assert_close(holder.residual(rows, holder.apply(Y), Y), expected)
    if len(rows) == 1:
        assert_close(holder.loo_residual(holder.apply(Y), Y)[rows], expected)


@pytest.mark.parametrize("name", HOLDERS)
def test_holding_out_every_row_but_one_is_defined(name):
    S, Q, alpha = make(1, 0.5)
    holder = holders(S, Q, alpha)[name]
    Y = np.random.default_rng(0).normal(size=(N, 1))
    A = holder.apply(Y)
    rows = np.arange(N - 1)
    # one row and an intercept: the constant Y of that row
    assert_close(Y[rows] - holder.residual(rows, A, Y), np.full((N - 1, 1), Y[-1, 0]), rtol=1e-6)


def test_a_training_part_that_determines_nothing_is_an_error():
    P = np.zeros((3, 3))  # as if three intercepts were fitted to three rows
    with pytest.raises(SingularBlockError, match=r"leaving out 2 of 3 rows .* does not determine the model"):
        Explicit(P, np.eye(3), 1.0).residual(np.arange(2), np.zeros((3, 1)), np.zeros((3, 1)))


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


# -- features through their Gram matrix --------------------------------------------------------------------------------

ROWS, FEATURES = 170, 70


def features(kind, dtype="float64"):
    """Tall enough for the Gram matrix, of every condition; and unpenalised columns."""
    rng = np.random.default_rng(4)
    left = np.linalg.qr(rng.normal(size=(ROWS, FEATURES)))[0]
    right = np.linalg.qr(rng.normal(size=(FEATURES, FEATURES)))[0]
    half = rng.normal(size=(ROWS, FEATURES // 2))
    Phi = {
        "random": lambda: rng.normal(size=(ROWS, FEATURES)),
        "decaying": lambda: 3 * left * np.logspace(0, -6, FEATURES) @ right,
        "decaying to rounding": lambda: left * np.logspace(0, -10, FEATURES) @ right,
        "deficient": lambda: left * (np.arange(FEATURES) < 30) @ right,
        "repeated": lambda: np.hstack([half, half]),
        "with zeros": lambda: rng.normal(size=(ROWS, FEATURES)) * (np.arange(FEATURES) % 3 > 0),
        "constant": lambda: np.ones((ROWS, FEATURES)) * (np.arange(FEATURES) % 3),
        "in other units": lambda: 1e5 * rng.normal(size=(ROWS, FEATURES)),
    }[kind]()
    Q = np.column_stack([np.ones(ROWS), rng.normal(size=(ROWS, 2))])
    return Phi.astype(dtype), Q.astype(dtype)


FEATURE_KINDS = [
    *("random", "decaying", "decaying to rounding", "deficient", "repeated", "with zeros", "constant"),
    "in other units",
]
every_kind = pytest.mark.parametrize("kind", FEATURE_KINDS)


def largest(Phi, Q):
    """The largest eigenvalue of the features beside Q; with Q where nothing is beside it."""
    Phi, Q = Phi.astype(float), Q.astype(float)
    rest = Phi - Q @ np.linalg.lstsq(Q, Phi, rcond=None)[0]
    beside, all_of_it = np.linalg.norm(rest, 2), np.linalg.norm(Phi, 2)
    return (beside if beside > 1e-6 * all_of_it else all_of_it) ** 2


@every_kind
@pytest.mark.parametrize("q", [0, 1, 3])
@pytest.mark.parametrize(("share", "rtol"), [(1e-7, 1e-6), (1e-3, 1e-8), (1e3, 1e-8)])
def test_every_verb_through_the_gram_matrix_equals_the_inverse_of_the_bordered_system(kind, q, share, rtol):
    Phi, Q = features(kind)
    Q = Q[:, :q]
    alpha = share * largest(Phi, Q)
    P, G = reference.precision(Phi @ Phi.T, alpha, Q=Q)
    holder = LowRank(Phi, Q, alpha)
    assert holder._least > 0
    rng = np.random.default_rng(1)
    Y, order = rng.normal(size=(ROWS, 3)), rng.permutation(ROWS)
    A = P @ Y
    assert_close(holder.apply(Y), A, rtol=rtol)
    assert_close(holder.G, G, rtol=rtol) if q else None
    assert_close(holder.diagonal(), P.diagonal(), rtol=rtol)
    assert_close(holder.explicit().P, P, rtol=rtol)
    assert_close(holder.loo_residual(holder.apply(Y), Y), A / P.diagonal()[:, None], rtol=10 * rtol)
    assert_close(holder.diagonal_blocks(order[:6].reshape(3, 2))[1], P[np.ix_(order[2:4], order[2:4])], rtol=rtol)
    for rows in (order[:7], order[:90]):  # fewer and more rows than features
        block = P[np.ix_(rows, rows)]
        assert_close(holder.columns(rows), P[:, rows], rtol=rtol)
        assert_close(holder.block(rows), block, rtol=rtol)
        assert_close(holder.block_times(rows, Y[rows]), block @ Y[rows], rtol=rtol)
        assert_close(holder.residual(rows, holder.apply(Y), Y), np.linalg.solve(block, A[rows]), rtol=10 * rtol)
        assert_close(Phi @ holder.feature_columns(rows), Phi @ Phi.T @ P[:, rows], rtol=10 * rtol, scale=1.0)


@every_kind
@pytest.mark.parametrize("share", [1e-6, 1e-3, 1e3])
def test_every_verb_through_the_gram_matrix_in_single_precision(kind, share):
    Phi, Q = features(kind, "float32")
    alpha = float(share * largest(Phi, Q[:, :1]))
    P, _ = reference.precision(Phi.astype(float) @ Phi.T.astype(float), alpha, Q=Q[:, :1].astype(float))
    holder = LowRank(Phi, Q[:, :1], alpha)
    rng = np.random.default_rng(1)
    Y, rows = rng.normal(size=(ROWS, 3)).astype("float32"), rng.permutation(ROWS)[:9]
    A = P @ Y.astype(float)
    found = {
        "apply": (holder.apply(Y), A),
        "diagonal": (holder.diagonal(), P.diagonal()),
        "columns": (holder.columns(rows), P[:, rows]),
        "block": (holder.block(rows), P[np.ix_(rows, rows)]),
        "residual": (holder.residual(rows, holder.apply(Y), Y), np.linalg.solve(P[np.ix_(rows, rows)], A[rows])),
        "loo_residual": (holder.loo_residual(holder.apply(Y), Y), A / P.diagonal()[:, None]),
        "loo_path": (holder.loo_path(Y, [alpha])[0], A / P.diagonal()[:, None]),
    }
    for name, (ours, expected) in found.items():
        assert ours.dtype == np.float32, name
        assert_close(ours, expected.astype(np.float32))


def ridge_residual(Phi, Q, alpha, Y, row):
    """Y of a row minus the fit without it, as least squares with rows sqrt(alpha) I: no square of Phi is formed."""
    rest = np.arange(len(Y)) != row
    q, r = Q.shape[1], Phi.shape[1]
    design = np.vstack([np.hstack([Q[rest], Phi[rest]]), np.hstack([np.zeros((r, q)), np.sqrt(alpha) * np.eye(r)])])
    beta = np.linalg.lstsq(design, np.vstack([Y[rest], np.zeros((r, Y.shape[1]))]), rcond=None)[0]
    return Y[row] - np.hstack([Q[row], Phi[row]]) @ beta


@pytest.mark.parametrize("kind", ["random", "decaying", "in other units"])
def test_alphas_too_small_for_the_gram_matrix_go_back_to_the_features(kind):
    """Squares keep half the digits: below 1e-8 of the largest eigenvalue they would show."""
    Phi, Q = features(kind)
    Q = Q[:, :1]
    unit = largest(Phi, Q)
    Y = np.random.default_rng(2).normal(size=(ROWS, 2))
    holder = LowRank(Phi.copy(), Q, 1e-3 * unit)
    assert 0 < holder._least <= 1.001e-8 * unit
    alphas = [1e-11 * unit, 1e-2 * unit, 1e-13 * unit]
    path = holder.loo_path(Y, alphas)
    for k, alpha in enumerate(alphas):
        other = holder.with_alpha(alpha)
        assert (other._least == 0) == (alpha < holder._least)
        assert other.alpha == alpha
        loo = other.loo_residual(other.apply(Y), Y)
        for row in (0, 50, ROWS - 1):
            expected = ridge_residual(Phi, Q, alpha, Y, row)
            assert_close(loo[row], expected, rtol=1e-7)
            assert_close(path[k, row], expected, rtol=1e-7)
        rows = np.array([row])
        assert_close(other.residual(rows, other.apply(Y), Y)[0], expected, rtol=1e-7)
    assert LowRank(Phi.copy(), Q, alphas[0])._least == 0
    np.testing.assert_array_equal(holder.Phi, Phi)  # decompositions work on copies


@pytest.mark.parametrize("holder", ["few features", "gram", "spectrum"])
def test_paths_of_leave_one_out_equal_one_holder_for_each_alpha(holder):
    Phi, Q = features("random")
    Phi = Phi[:, :5] if holder == "few features" else Phi
    path = Spectrum(Phi @ Phi.T, Q) if holder == "spectrum" else LowRank(Phi, Q, 0.1)
    Y = np.random.default_rng(2).normal(size=(ROWS, 2))
    alphas = [0.1, 1e3, 1e-2, 7.0]
    E = path.loo_path(Y, alphas)
    assert E.shape == (4, ROWS, 2)
    for k, alpha in enumerate(alphas):
        single = path.with_alpha(alpha)
        assert_close(E[k], single.loo_residual(single.apply(Y), Y))
        P, _ = reference.precision(Phi @ Phi.T, alpha, Q=Q)
        assert_close(E[k], P @ Y / P.diagonal()[:, None])


def test_another_alpha_takes_nothing_along_that_knew_the_old_one():
    Phi, Q = features("random")
    holder, Y = LowRank(Phi, Q, 0.1), np.random.default_rng(2).normal(size=(ROWS, 2))
    rows = np.array([3, 50, 7])
    holder.residual(rows, holder.apply(Y), Y)
    holder.factor(rows)
    for alpha in (5.0, 1e3):
        other = holder.with_alpha(alpha)
        P, _ = reference.precision(Phi @ Phi.T, alpha, Q=Q)
        block = P[np.ix_(rows, rows)]
        assert_close(other.block(rows), block)
        assert_close(other.block_times(rows, Y[rows]), block @ Y[rows])
        assert_close(other.residual(rows, other.apply(Y), Y), np.linalg.solve(block, P[rows] @ Y))
        assert_close(other.factor(rows), np.linalg.cholesky(block))


@pytest.mark.parametrize("batch", [4096, 50])
@pytest.mark.parametrize("r", [5, FEATURES])
def test_rows_that_fit_themselves_are_refitted_along_a_path(r, batch, monkeypatch):
    """A feature of one row alone: its leverage is 1 up to rounding, and the model without it knows nothing of it."""
    monkeypatch.setattr(lowrank, "ROWS", batch)
    Phi, Q = features("random")
    Phi, Q = Phi[:, :r].copy(), Q[:, :1]
    alone = {3: 1e6, 120: 3e5}
    for column, (row, value) in enumerate(alone.items()):
        Phi[:, column] = 0.0
        Phi[row, column] = value
    Y = np.random.default_rng(2).normal(size=(ROWS, 2))
    alphas = [1e5, 1e3]  # leverages of 1 - 1e-7 and less; both above 1e-8 of the largest eigenvalue
    holder = LowRank(Phi, Q, 1e5)
    E = holder.loo_path(Y, alphas)
    for k, alpha in enumerate(alphas):
        single = holder.with_alpha(alpha)
        assert alpha * single.diagonal()[3] < lowrank.FREE
        each = single.loo_residual(single.apply(Y), Y)
        for row in (3, 120, 119, 4):
            expected = ridge_residual(Phi, Q, alpha, Y, row)
            assert_close(E[k, row], expected)
            assert_close(each[row], expected)
            assert_close(single.residual(np.array([row]), single.apply(Y), Y)[0], expected)


def test_gram_matrices_are_summed_over_batches_of_rows(monkeypatch):
    Phi, Q = features("random")
    whole = LowRank(Phi, Q, 1.0)
    monkeypatch.setattr(lowrank, "DOUBLED", 1)  # as many rows as features at a time: 70, 70 and 30
    parts = LowRank(Phi, Q, 1.0)
    assert_close(parts.s, whole.s, rtol=1e-12)
    assert_close(parts.diagonal(), whole.diagonal(), rtol=1e-12)


@pytest.mark.parametrize(("n", "r"), [(128, 64), (127, 64), (400, 63)])
def test_the_gram_matrix_is_for_tall_features_only(n, r):
    rng = np.random.default_rng(0)
    Phi, Q, Y = rng.normal(size=(n, r)), np.ones((n, 1)), rng.normal(size=(n, 2))
    holder = LowRank(Phi, Q, 1.0)
    assert (holder._least > 0) == (n == 128)
    P, _ = reference.precision(Phi @ Phi.T, 1.0, Q=Q)
    assert_close(holder.apply(Y), P @ Y)


@pytest.mark.parametrize("share", [1.1e-8, 1e-6])
def test_small_directions_of_many_rows_keep_their_digits(share, monkeypatch):
    """What is dropped as rounding must be rounding, however many rows were summed."""
    rng = np.random.default_rng(0)
    n, r = 8000, 64
    U, V = np.linalg.qr(rng.normal(size=(n, r)))[0], np.linalg.qr(rng.normal(size=(r, r)))[0]
    Phi, Q = U * np.logspace(0, -6, r) @ V.T, np.ones((n, 1))
    Y = 100 * U[:, -8:].sum(1, keepdims=True)
    gram = LowRank(Phi, Q, share)
    assert gram._least > 0
    monkeypatch.setattr(lowrank, "TALL", n)
    plain = LowRank(Phi, Q, share)
    assert plain._least == 0
    weights = [each.feature_columns(slice(None)) @ Y for each in (gram, plain)]
    assert_close(Phi @ weights[0], Phi @ weights[1], rtol=1e-6)
    assert_close(gram.loo_path(Y, [share])[0], plain.loo_path(Y, [share])[0], rtol=1e-8)


@pytest.mark.parametrize("value", [0.1, 1.0, 7.7])
@pytest.mark.parametrize(("n", "r"), [(30, 1), (170, 2), (170, 70)])
def test_features_that_are_constant_up_to_rounding_are_no_features(n, r, value):
    """What the projection on the complement of Q leaves of them is no direction of its own."""
    Phi, Q = np.full((n, r), value), np.ones((n, 1))
    Y = np.random.default_rng(0).normal(size=(n, 2))
    holder = LowRank(Phi, Q, 0.5)
    mean = (Y.sum(0) - Y) / (n - 1)  # of the other rows
    assert_close(holder.apply(Y), (Y - Y.mean(0)) / 0.5)
    assert_close(holder.loo_residual(holder.apply(Y), Y), Y - mean)
    assert_close(holder.loo_path(Y, [0.5, 7.0]), np.stack([Y - mean] * 2))


# -- P as an array -----------------------------------------------------------------------------------------------------


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
def test_one_set_after_another_is_left_out_as_if_it_were_the_first(name):
    """Blocks and factors are kept for the set asked last, never for another."""
    S, Q, alpha = make(1, 0.1)
    holder = holders(S, Q, alpha)[name]
    rng = np.random.default_rng(1)
    Y, order = rng.normal(size=(N, 2)), rng.permutation(N)
    A, sets = holder.apply(Y), [order[:5], order[5:12], order[3:8]]
    for rows in (*sets, *sets[::-1], order[:5].copy()):
        fresh = holders(S, Q, alpha)[name]
        assert_close(holder.residual(rows, A, Y), fresh.residual(rows, fresh.apply(Y), Y))
        assert_close(holder.block_times(rows, Y[rows]), fresh.block(rows) @ Y[rows])
        assert_close(holder.residual(rows, A[:, :1], Y[:, :1]), fresh.residual(rows, fresh.apply(Y), Y)[:, :1])
        L = holder.factor(rows)
        assert_close(L @ L.T, fresh.block(rows))
        np.testing.assert_array_equal(L, np.tril(L))


# -- arrays ------------------------------------------------------------------------------------------------------------

SIZES = [1, 2, 255, 256, 257, 300]
every_size = pytest.mark.parametrize("n", SIZES)
every_order = pytest.mark.parametrize("order", "CF")
every_dtype = pytest.mark.parametrize("dtype", ["float64", "float32"])
ARRAY_RTOL = {"float64": 1e-12, "float32": 1e-4}


def array(shape, order, dtype, seed=0):
    return np.asarray(np.random.default_rng(seed).normal(size=shape), dtype, order=order)


def triangle(n, order, dtype):
    L = np.tril(array((n, n), "C", "float64")) / np.sqrt(n) + 2 * np.eye(n)
    return np.asarray(L, dtype, order=order)


@every_size
@every_order
@every_dtype
@pytest.mark.parametrize("k", [1, 7, 300])
def test_outer_square(n, k, order, dtype):
    V = array((n, k), order, dtype)
    before = V.copy()
    S = outer_square(V)
    assert_close(S, (V.astype(float) @ V.T.astype(float)).astype(dtype), rtol=ARRAY_RTOL[dtype])
    np.testing.assert_array_equal(S, S.T)
    assert S.flags.c_contiguous
    assert S.dtype == dtype
    np.testing.assert_array_equal(V, before)


def test_outer_square_of_strided_and_empty_arrays():
    V = array((20, 14), "C", "float64")
    assert_close(outer_square(V[::2, 1::3]), V[::2, 1::3] @ V[::2, 1::3].T)
    assert_close(outer_square(V.T[1::2]), V.T[1::2] @ V.T[1::2].T)
    assert outer_square(np.zeros((0, 3))).shape == (0, 0)
    np.testing.assert_array_equal(outer_square(np.zeros((3, 0))), np.zeros((3, 3)))


@every_size
@every_order
@every_dtype
def test_lower_square(n, order, dtype):
    L = triangle(n, order, dtype)
    before = L.copy()
    S = lower_square(L)
    assert_close(S, (L.T.astype(float) @ L.astype(float)).astype(dtype), rtol=ARRAY_RTOL[dtype])
    np.testing.assert_array_equal(S, S.T)
    assert S.flags.c_contiguous
    assert S.dtype == dtype
    np.testing.assert_array_equal(L, before)


@every_size
@every_order
@every_dtype
@pytest.mark.parametrize("k", [0, 1, 40])
def test_right_solve(n, k, order, dtype):
    L, B = triangle(n, "F", dtype), array((k, n), order, dtype)
    before = L.copy(), B.copy()
    found = right_solve(B, L)
    assert found.dtype == dtype
    assert_close(found, np.linalg.solve(L.astype(float), B.T.astype(float)).T.astype(dtype), rtol=ARRAY_RTOL[dtype])
    np.testing.assert_array_equal(L, before[0])
    np.testing.assert_array_equal(B, before[1])


@every_size
@every_order
@every_dtype
@pytest.mark.parametrize("q", [0, 1, 3])
def test_add_outer_in_place(n, q, order, dtype):
    """Q R' is symmetric, as its place in the memory of S asks for."""
    S = array((n, n), "C", dtype)
    S = np.ascontiguousarray(S + S.T)
    Q = array((n, q), order, dtype)
    D = array((q, q), "C", "float64", seed=1)
    R = np.asarray(Q @ (D + D.T), dtype, order=order)
    expected = S.astype(float) - 0.7 * Q.astype(float) @ R.T.astype(float)
    found = add_outer_(S, Q, R, -0.7)
    assert_close(found, expected.astype(dtype), rtol=ARRAY_RTOL[dtype])
    assert np.shares_memory(found, S)
    assert_close(S, expected.astype(dtype), rtol=ARRAY_RTOL[dtype])
