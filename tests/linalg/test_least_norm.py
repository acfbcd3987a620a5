"""QR factors that are updated, and solutions of least norm, against plain NumPy."""

import numpy as np
import pytest

from foldless._engine.linalg import least_norm
from support.tolerances import assert_close

SHAPES = [(1, 1), (2, 1), (5, 3), (40, 12)]  # n rows, m columns
every_shape = pytest.mark.parametrize(("n", "m"), SHAPES)


def matrices(n, m):
    """A regular one (n, n), and one of m more columns."""
    rng = np.random.default_rng(n)
    return rng.normal(size=(n, n)) + 3 * np.eye(n), rng.normal(size=(n, m))


def factored(A):
    """Square Q and R of A, by NumPy, Fortran-ordered."""
    return tuple(np.array(factor, order="F") for factor in np.linalg.qr(A, mode="complete"))


def assert_factors(Q, R, A):
    assert_close(Q @ R, A, rtol=1e-11)
    assert_close(Q @ Q.T, np.eye(len(A)), rtol=1e-11)
    np.testing.assert_array_equal(np.tril(R, -1), 0.0)


@every_shape
def test_qr(n, m):
    _, B = matrices(n, m)
    assert_factors(*least_norm.qr_(B.copy()), B)


@every_shape
def test_rows_are_appended(n, m):
    G, B = matrices(n, m)
    V = np.ascontiguousarray(B.T[: max(1, m // 2)])
    assert_factors(*least_norm.append_rows(*factored(G), V), np.vstack([G, V]))


@pytest.mark.parametrize(("n", "m"), SHAPES[1:])
def test_columns_are_inserted(n, m):
    G, B = matrices(n, m)
    A = np.vstack([G, B.T])
    Q, R = factored(A[:, :-1])
    assert_factors(*least_norm.insert_columns_(Q, R, A[:, -1].copy(), n - 1), A)


@pytest.mark.parametrize("which", ["row", "col"])
@pytest.mark.parametrize(("n", "m"), SHAPES[1:])
def test_rows_and_columns_are_deleted(n, m, which):
    G, B = matrices(n, m)
    A = np.vstack([G, B.T])
    rest = np.delete(A, 0, axis=0 if which == "row" else 1)
    assert_factors(*least_norm.delete(*factored(A), 0, 1, which), rest)


@every_shape
def test_least_squares_of_dependent_columns(n, m):
    _, B = matrices(n, m)
    A, Y = np.hstack([B, B]), np.ones((n, 2))
    assert_close(least_norm.least_squares_(A.copy(), Y, 1e-5), np.linalg.pinv(A, 1e-5) @ Y, rtol=1e-11)
