"""Kernels of other arrays than NumPy's give the same values, as arrays of the kind of the rows."""

import numpy as np
import pytest

from foldless import kernels
from foldless._engine import linalg
from foldless.kernels import base
from support.arrays import KINDS, Arrays
from support.tolerances import assert_close

X = np.random.default_rng(0).normal(size=(23, 4))
X[3] = 0.0
Z = np.random.default_rng(1).normal(size=(7, 4))
WIDE = np.random.default_rng(2).normal(size=(5, 60))
GAMMAS = np.array([0.1, 0.5, 0.2, 0.0])

OBJECTS = {
    "linear": kernels.Linear(),
    "poly": kernels.Poly(0.5),
    "poly of scaled features": kernels.Poly(GAMMAS, degree=2),
    "rbf": kernels.RBF(0.3),
    "rbf of scaled features": kernels.RBF(GAMMAS),
    "rbf, scale": kernels.RBF("scale"),
    "laplacian": kernels.Laplacian(0.3),
    "laplacian of scaled features": kernels.Laplacian(GAMMAS),
    "cosine": kernels.Cosine(),
    "sum": kernels.RBF(0.3) + 0.5 * kernels.Linear() + kernels.On([0, 2], kernels.RBF(0.1)),
    "scaled": kernels.Scaled(kernels.RBF(0.3), [1.0, 0.0, 2.0, 0.5]),
    "product": kernels.RBF(0.3) * kernels.Poly(1.0),
    "boolean": kernels.Boolean(0.3),
}


def values(kernel, arrays):
    rows, new = arrays(X), arrays(Z)
    kernel = kernel.resolved(rows)
    few = new[:2]
    yield from (kernel.gram(rows), kernel.gram(new, rows), kernel.gram(few, rows), kernel.diag(rows))
    yield base.gram_of_all(kernel, rows)
    if kernel.n_features(rows) is not None:
        yield kernel.features(rows)


@pytest.mark.parametrize("kind", KINDS[1:])
@pytest.mark.parametrize("name", OBJECTS)
def test_kernel_matrices_are_those_of_numpy(name, kind, monkeypatch):
    if name == "boolean" and kind == "array_api_strict":
        pytest.skip("a number of NumPy multiplies, so that single precision keeps its digits")
    monkeypatch.setattr(base, "MANY_ROWS", 5)
    monkeypatch.setattr(base, "BLOCK", 7)
    arrays = Arrays.of(kind)
    found, expected = (list(values(OBJECTS[name], of)) for of in (arrays, Arrays.of("numpy")))
    for array, expected_array in zip(found, expected, strict=True):
        assert arrays.are(array)
        assert_close(linalg.to_host(array), expected_array, rtol=1e-12, scale=1.0)


@pytest.mark.parametrize("kind", KINDS[1:])
def test_distances_of_many_features_are_those_of_numpy(kind):
    arrays, kernel = Arrays.of(kind), kernels.RBF(0.01)
    rows = arrays(WIDE)
    assert_close(linalg.to_host(kernel.gram(rows)), kernel.gram(WIDE), rtol=1e-12, scale=1.0)
    assert_close(linalg.to_host(kernel.gram(rows[:3], rows)), kernel.gram(WIDE[:3], WIDE), rtol=1e-12, scale=1.0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_precomputed_kernel_is_read_from_any_kind_of_arrays(kind):
    arrays, kernel = Arrays.of(kind), kernels.Precomputed()
    K = kernels.RBF(0.3).gram(X)
    rows, columns = np.array([4, 1, 7]), np.array([0, 9])
    given = arrays(K)
    cases = [
        (kernel.gram(given), K),
        (kernel.block(given, rows, columns), K[np.ix_(rows, columns)]),
        (kernel.against(given[:2], given, rows), K[:2, rows]),
        (kernel.diag(given), np.ones(len(X))),
    ]
    for found, expected in cases:
        assert arrays.are(found)
        np.testing.assert_array_equal(linalg.to_host(found), expected)
