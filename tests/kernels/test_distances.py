"""Sums of absolute differences by tiles and products, and slopes of kernels by the features."""

import numpy as np
import pytest
import scipy.sparse as sp

from foldless._engine.linalg import threads
from foldless.kernels import RBF, Laplacian, Poly
from foldless.kernels import distances as module
from foldless.kernels.distances import absolute_distances


def loop(X, Z, factors):
    """The definition, difference by difference."""
    return np.array([[np.sum(factors * np.abs(x - z)) for z in Z] for x in X])


def table(kind, n, seed):
    """Rows of six columns: numbers far from zero, two values, a constant, or all of these."""
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(n, 6)) + 1e4
    codes = np.random.default_rng(0).normal(size=(2, 6))[rng.integers(0, 2, (n, 6)), np.arange(6)]
    if kind == "mixed":
        numbers[:, [1, 4]] = codes[:, [1, 4]]
        numbers[:, 5] = 3.0
    return {"numbers": numbers, "two values": codes, "mixed": numbers}[kind]


@pytest.mark.parametrize("kind", ["numbers", "two values", "mixed"])
@pytest.mark.parametrize("factors", [0.7, np.array([0.5, 0.0, 1.5, 2.0, 0.3, 1.0])], ids=["one", "per feature"])
@pytest.mark.parametrize("n", [7, 300])
def test_distances_equal_the_definition(kind, factors, n, monkeypatch):
    monkeypatch.setattr(module, "FEW", 0)
    X, Z = table(kind, n, 1), table(kind, 70, 2)
    np.testing.assert_allclose(absolute_distances(X, Z, factors), loop(X, Z, factors), rtol=1e-9, atol=1e-9)
    D = absolute_distances(X[:70], None, factors)
    np.testing.assert_allclose(D, loop(X[:70], X[:70], factors), rtol=1e-9, atol=1e-9)
    assert (D == D.T).all()
    assert (D.diagonal() == 0).all()


@pytest.mark.parametrize("alike", [True, False])
def test_several_threads_fill_the_same_tiles(alike, monkeypatch):
    X = table("numbers", 600, 3)
    Z = None if alike else table("numbers", 200, 4)
    one = absolute_distances(X, Z, 0.3)
    monkeypatch.setattr(module, "n_threads", lambda: 3)
    monkeypatch.setattr(module, "MOST_ROWS", 64)
    assert (absolute_distances(X, Z, 0.3) == one).all()


def test_threads_are_those_of_the_linear_algebra():
    with threads.one_thread():
        assert threads.n_threads() == 1


@pytest.mark.parametrize("kind", ["numbers", "two values", "indicators"])
@pytest.mark.parametrize("both", [True, False])
def test_sparse_distances_equal_those_of_dense_rows(kind, both):
    rng = np.random.default_rng(5)
    X, Z = rng.random((30, 6)) < 0.4, rng.random((11, 6)) < 0.4
    values = {"numbers": rng.normal(size=(30, 6)), "two values": rng.normal(size=6), "indicators": 1.0}[kind]
    X, Z = X * values, Z * (values[:11] if np.ndim(values) == 2 else values)
    factors = rng.random(6)
    sparse = absolute_distances(sp.csr_array(X), sp.csr_array(Z) if both else Z, factors)
    np.testing.assert_allclose(sparse, loop(X, Z, factors), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(absolute_distances(sp.csr_array(X), None, factors), loop(X, X, factors), atol=1e-12)


def test_single_precision_stays_and_keeps_its_digits():
    X = table("mixed", 40, 6).astype(np.float32)
    D = absolute_distances(X, None, 0.5)
    assert D.dtype == np.float32
    np.testing.assert_allclose(D, loop(X.astype(float), X.astype(float), 0.5), rtol=1e-5, atol=1e-5)


KERNELS = {
    "rbf": RBF(0.3),
    "rbf, a width each": RBF(np.array([0.1, 0.0, 0.5])),
    "laplacian": Laplacian(0.3),
    "laplacian, a width each": Laplacian(np.array([0.1, 0.0, 0.5])),
    "sum": 0.4 * RBF(0.3) + 2.0 * Laplacian(0.1),
}


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=list(KERNELS))
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_slopes_equal_central_differences(kernel, form):
    rng = np.random.default_rng(7)
    X, Z, C = rng.normal(size=(5, 3)), rng.normal(size=(8, 3)), rng.normal(size=(5, 8, 2))
    slopes = kernel.slopes(C, form(X), form(Z))
    for k, step in enumerate(1e-6 * np.eye(3)):
        difference = kernel.gram(X + step, Z) - kernel.gram(X - step, Z)
        np.testing.assert_allclose(slopes[:, k], np.einsum("ij,ijc->ic", difference, C) / 2e-6, atol=1e-8)


def test_a_kernel_without_slopes_is_named():
    with pytest.raises(NotImplementedError, match=r"Poly\(.*has no slopes by features"):
        Poly().slopes(np.ones((1, 1, 1)), np.ones((1, 1)), np.ones((1, 1)))
