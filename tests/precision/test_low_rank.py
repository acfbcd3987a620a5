"""P of low rank: features through their Gram matrix, paths of alphas, directions that are nearly lost."""

import numpy as np
import pytest

import foldless._engine.precision.lowrank as lowrank
from foldless import reference
from foldless._engine.precision import digits
from foldless._engine.precision.lowrank import LowRank
from foldless._engine.precision.spectral import Spectrum
from support.refits import ridge_fits
from support.tolerances import assert_close

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
def test_every_method_through_the_gram_matrix_equals_the_inverse_of_the_bordered_system(kind, q, share, rtol):
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
    assert_close(holder.loo_residual(holder.apply(Y), Y, holder.diagonal()), A / P.diagonal()[:, None], rtol=10 * rtol)
    assert_close(holder.diagonal_blocks(order[:6].reshape(3, 2))[1], P[np.ix_(order[2:4], order[2:4])], rtol=rtol)
    for rows in (order[:7], order[:90]):  # fewer and more rows than features
        block = P[np.ix_(rows, rows)]
        assert_close(holder.columns(rows), P[:, rows], rtol=rtol)
        assert_close(holder.block(rows), block, rtol=rtol)
        assert_close(
            holder.held_out(rows).residual(holder.apply(Y), Y), np.linalg.solve(block, A[rows]), rtol=10 * rtol
        )
        assert_close(Phi @ holder.feature_weights(rows), Phi @ Phi.T @ P[:, rows], rtol=10 * rtol, scale=1.0)


@every_kind
@pytest.mark.parametrize("share", [1e-6, 1e-3, 1e3])
def test_every_method_through_the_gram_matrix_is_near_in_single_precision(kind, share):
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
        "residual": (
            holder.held_out(rows).residual(holder.apply(Y), Y),
            np.linalg.solve(P[np.ix_(rows, rows)], A[rows]),
        ),
        "loo_residual": (holder.loo_residual(holder.apply(Y), Y, holder.diagonal()), A / P.diagonal()[:, None]),
        "loo_path": (holder.loo_path(Y, [alpha])[0], A / P.diagonal()[:, None]),
    }
    for name, (ours, expected) in found.items():
        assert ours.dtype == np.float32, name
        assert_close(ours, expected.astype(np.float32))


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
        loo = other.loo_residual(other.apply(Y), Y, other.diagonal())
        for row in (0, 50, ROWS - 1):
            expected = Y[row] - ridge_fits(Phi, Y, Q, np.delete(np.arange(len(Y)), row), [row], alpha)[0]
            assert_close(loo[row], expected, rtol=1e-7)
            assert_close(path[k, row], expected, rtol=1e-7)
        rows = np.array([row])
        assert_close(other.held_out(rows).residual(other.apply(Y), Y)[0], expected, rtol=1e-7)
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
        assert_close(E[k], single.loo_residual(single.apply(Y), Y, single.diagonal()))
        P, _ = reference.precision(Phi @ Phi.T, alpha, Q=Q)
        assert_close(E[k], P @ Y / P.diagonal()[:, None])


def test_moved_alpha_uses_nothing_cached_for_the_old_one():
    Phi, Q = features("random")
    holder, Y = LowRank(Phi, Q, 0.1), np.random.default_rng(2).normal(size=(ROWS, 2))
    rows = np.array([3, 50, 7])
    holder.held_out(rows).residual(holder.apply(Y), Y)
    assert holder.held_out(rows).factor.shape == (3, 3)
    for alpha in (5.0, 1e3):
        other = holder.with_alpha(alpha)
        P, _ = reference.precision(Phi @ Phi.T, alpha, Q=Q)
        block = P[np.ix_(rows, rows)]
        assert_close(other.block(rows), block)
        assert_close(other.held_out(rows).residual(other.apply(Y), Y), np.linalg.solve(block, P[rows] @ Y))
        assert_close(other.held_out(rows).factor, np.linalg.cholesky(block))


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
        assert alpha * single.diagonal()[3] < digits.FREE
        each = single.loo_residual(single.apply(Y), Y, single.diagonal())
        for row in (3, 120, 119, 4):
            expected = Y[row] - ridge_fits(Phi, Y, Q, np.delete(np.arange(len(Y)), row), [row], alpha)[0]
            assert_close(E[k, row], expected)
            assert_close(each[row], expected)
            assert_close(single.held_out(np.array([row])).residual(single.apply(Y), Y)[0], expected)


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
    weights = [each.feature_weights(slice(None)) @ Y for each in (gram, plain)]
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
    assert_close(holder.loo_residual(holder.apply(Y), Y, holder.diagonal()), Y - mean)
    assert_close(holder.loo_path(Y, [0.5, 7.0]), np.stack([Y - mean] * 2))
