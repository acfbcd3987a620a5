"""Large matrices go panel by panel; here panels are small, so that small matrices are large."""

import numpy as np
import pytest
from scipy.linalg import get_lapack_funcs, solve_triangular
from sklearn.model_selection import KFold, LeaveOneOut
from threadpoolctl import threadpool_info

import foldless._engine.linalg as linalg
from foldless import LSSVC
from foldless._engine.linalg import numpy as verbs
from foldless._engine.linalg import panels
from foldless.kernels import RBF, Laplacian, Linear, Poly, base
from foldless.model_selection import cross_val_predict

SIZES = [6, 7, 8, 13, 50]
DTYPES = pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])


@pytest.fixture(autouse=True)
def small_panels(monkeypatch):
    monkeypatch.setattr(panels, "WIDTH", 7)
    monkeypatch.setattr(verbs, "LARGE", 5)


def definite(n, dtype):
    A = np.random.default_rng(n).standard_normal((n, n))
    return np.ascontiguousarray(A @ A.T + n * np.eye(n), dtype)


def lower(n, dtype):
    return np.asfortranarray(np.linalg.cholesky(definite(n, np.float64)), dtype)


def assert_as_close_as_rounding(found, expected):
    tolerance = 50 * np.finfo(found.dtype).eps * np.abs(expected).max()
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


@DTYPES
@pytest.mark.parametrize("n", SIZES)
def test_the_cholesky_factor_is_that_of_lapack_and_lies_in_the_same_memory(n, dtype):
    M = definite(n, dtype)
    (potrf,) = get_lapack_funcs(("potrf",), (M,))
    expected = potrf(M, lower=1, clean=1)[0]
    L = linalg.cholesky_(M)
    assert np.shares_memory(L, M)
    assert L.flags.f_contiguous
    assert_as_close_as_rounding(L, expected)


@pytest.mark.parametrize("bad", [0, 6, 7, 20, 49])
def test_the_first_minor_that_is_not_positive_is_named(bad):
    M = definite(50, np.float64)
    M[bad, bad] = -1.0
    with pytest.raises(linalg.NotPositiveDefiniteError, match=rf"leading minor {bad + 1} "):
        linalg.cholesky_(M)


@DTYPES
@pytest.mark.parametrize("n", SIZES)
def test_the_inverse_factor_is_that_of_lapack_and_lies_in_the_same_memory(n, dtype):
    L = lower(n, dtype)
    expected = solve_triangular(L, np.eye(n, dtype=dtype), lower=True)
    inverse = linalg.invert_lower_(L)
    assert np.shares_memory(inverse, L)
    assert_as_close_as_rounding(inverse, expected)


@DTYPES
@pytest.mark.parametrize("n", SIZES)
def test_squares_are_products_and_exactly_symmetric(n, dtype):
    L, V = lower(n, dtype), np.random.default_rng(0).standard_normal((n, 3)).astype(dtype)
    for found, expected in ((linalg.lower_square(L), L.T @ L), (linalg.outer_square(V), V @ V.T)):
        assert found.flags.c_contiguous
        assert (found == found.T).all()
        assert_as_close_as_rounding(found, expected)


@DTYPES
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("m", [1, 5])
def test_signed_squares_are_added_to_the_lower_triangle(m, sign, dtype):
    T = np.asfortranarray(definite(20, dtype))
    V = np.asfortranarray(np.random.default_rng(1).standard_normal((20, m)), dtype)
    expected = np.tril(T + np.asarray(sign, dtype) * V @ V.T)
    assert_as_close_as_rounding(np.tril(linalg.add_signed_(T, V, sign)), expected)


def test_eigenvectors_of_large_matrices_are_computed_by_one_thread(monkeypatch):
    seen = []

    def looked_at(S, **options):
        seen.extend(each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas")
        return np.linalg.eigh(S)

    monkeypatch.setattr(verbs.linalg, "eigh", looked_at)
    linalg.eigh_(definite(6, np.float64))
    assert set(seen) == {1}


@DTYPES
@pytest.mark.parametrize("kernel", [RBF(0.3), Laplacian(0.3), Poly(0.5), Linear()], ids=lambda each: each.name)
def test_kernel_matrices_in_blocks_are_those_in_one(monkeypatch, kernel, dtype):
    X = np.random.default_rng(2).standard_normal((23, 3)).astype(dtype)
    expected = kernel.gram(X)
    monkeypatch.setattr(base, "MANY_ROWS", 5)
    monkeypatch.setattr(base, "BLOCK", 7)
    K = base.gram_of_all(kernel, X)
    assert (K.diagonal() == expected.diagonal()).all()
    assert_as_close_as_rounding(K, expected)


@pytest.mark.parametrize("cv", [KFold(10), LeaveOneOut()], ids=["ten-fold", "leave-one-out"])
def test_cross_validation_is_the_same_with_panels(monkeypatch, cv):
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((40, 3)), np.arange(40) % 2
    panelled = cross_val_predict(LSSVC(), X, y, cv=cv, method="decision_function")
    monkeypatch.setattr(verbs, "LARGE", 100)
    whole = cross_val_predict(LSSVC(), X, y, cv=cv, method="decision_function")
    assert_as_close_as_rounding(panelled, whole)
