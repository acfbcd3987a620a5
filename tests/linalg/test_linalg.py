"""Products and solutions in place, in every memory order and precision, against plain NumPy."""

import numpy as np
import pytest

from foldless._engine import linalg
from foldless._engine.linalg import (
    NotPositiveDefiniteError,
    add_outer_,
    cholesky_,
    invert_lower_,
    lower_square,
    outer_square,
    right_solve,
)
from support.tolerances import assert_close

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


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 129, 300])
@pytest.mark.parametrize("halved", [2048, 100])
@every_dtype
def test_triangles_are_inverted_in_their_memory(n, halved, dtype, monkeypatch):
    monkeypatch.setattr(linalg.numpy, "HALVED", halved)
    L = triangle(n, "F", dtype)
    inverse = invert_lower_(L.copy(order="F"))
    assert inverse.flags.f_contiguous
    assert inverse.dtype == dtype
    np.testing.assert_array_equal(np.triu(inverse, 1), 0.0)
    some = np.linspace(0, n - 1, min(n, 20)).astype(int)
    assert_close((L @ inverse[:, some]), np.eye(n, dtype=dtype)[:, some], rtol=ARRAY_RTOL[dtype])
    assert np.shares_memory(invert_lower_(L), L)


@pytest.mark.parametrize("place", [0, 70, 99])
def test_a_triangle_with_a_zero_on_its_diagonal_has_no_inverse(place):
    L = triangle(100, "F", "float64")
    L[place, place] = 0.0
    before = L.copy()
    with pytest.raises(NotPositiveDefiniteError, match=f"zero pivot {place + 1}"):
        invert_lower_(L)
    np.testing.assert_array_equal(L, before)


@pytest.mark.parametrize("n", [1, 63, 64, 65, 200])
@every_dtype
def test_factors_have_zeros_above_the_diagonal(n, dtype):
    V = array((n, 2 * n), "C", "float64")
    M = (V @ V.T / n + np.eye(n)).astype(dtype)
    L = cholesky_(M.copy())
    np.testing.assert_array_equal(np.triu(L, 1), 0.0)
    assert_close(L @ L.T, M, rtol=ARRAY_RTOL[dtype])
