"""The kernel functions of given rows as features: what penalty="coef" penalises the coefficients of."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from foldless import LSSVR
from foldless.kernels import RBF, BasisFunctions, Custom, Laplacian, Linear, Poly, Precomputed

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))
Z = RNG.normal(size=(8, 3))
NEW = RNG.normal(size=(5, 3))
NOISE = RNG.normal(size=30)
PER_FEATURE = np.array([0.1, 0.5, 0.2])
KERNELS = [
    RBF(0.3),
    RBF(PER_FEATURE),
    Laplacian(0.2),
    Laplacian(PER_FEATURE),
    Poly(0.3, 2, 1.0),
    Poly(PER_FEATURE, 3, 0.8),
    RBF(0.3) + 0.5 * Linear(),
]


def squared_products(A, B):
    return (A @ B.T) ** 2


def name_of(kernel):
    return "Custom" if isinstance(kernel, Custom) else repr(kernel)  # its function's address differs by process


every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=repr)
every_form = pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
every_choice = pytest.mark.parametrize("own", [True, False], ids=["rows of the fit", "given rows"])


@every_form
@every_choice
@pytest.mark.parametrize("kernel", [*KERNELS, Linear(), Custom(squared_products)], ids=name_of)
def test_features_are_the_values_of_the_functions(kernel, own, form):
    rows, functions = form(X), form(X if own else Z)
    found = BasisFunctions(kernel, None if own else functions).resolved(rows)
    K = kernel.gram(rows, functions)
    new = form(NEW)
    assert found.n_features(rows) == K.shape[1]
    assert_allclose(found.features(rows), K, atol=1e-14)
    assert_allclose(found.features(new), kernel.gram(new, functions), atol=1e-14)
    assert_allclose(found.gram(rows), K @ K.T, rtol=1e-12)
    assert_allclose(found.gram(new, rows), kernel.gram(new, functions) @ K.T, rtol=1e-12)
    assert_allclose(found.diag(rows), np.square(K).sum(1), rtol=1e-12)


@every_form
def test_features_of_many_rows_are_evaluated_in_blocks(form, monkeypatch):
    found = BasisFunctions(RBF(0.3), form(Z)).resolved(form(X))
    whole = found.features(form(X))
    monkeypatch.setattr("foldless.kernels.approximations.BLOCK", 7)
    assert_allclose(found.features(form(X)), whole, atol=1e-14)


def test_float32_rows_have_float32_features():
    rows = X.astype(np.float32)
    found = BasisFunctions(RBF(0.3)).resolved(rows)
    assert found.features(rows).dtype == np.float32
    assert_allclose(found.features(rows), RBF(0.3).gram(X), atol=1e-6)


@every_form
def test_rows_without_weight_have_no_functions(form):
    weight = np.arange(30) % 3.0
    found = BasisFunctions(RBF("scale")).resolved(form(X), weight)
    expected = RBF("scale").resolved(form(X), weight)
    assert found.n_features(form(X)) == 20
    assert_allclose(found.features(form(X)), expected.gram(form(X), form(X[weight > 0])), atol=1e-14)


def test_functions_that_are_given_stay():
    found = BasisFunctions(RBF(0.3), Z)
    for rows, weight in ((X, None), (X[:4], np.array([1.0, 0.0, 2.0, 1.0]))):
        assert found.resolved(rows, weight).Z is Z
    assert clone(found).Z is Z
    assert found.changed(gamma=0.5).Z is Z


def test_a_model_of_given_functions_is_that_of_the_coefficient_penalty():
    """And their coefficients are ``dual_coef_``."""
    y, weight = X[:, 0] + NOISE, np.arange(30) % 4.0
    coefficients = LSSVR(gamma=0.3, penalty="coef").fit(X, y, sample_weight=weight)
    given = LSSVR(kernel=BasisFunctions(RBF(0.3), X[weight > 0])).fit(X, y, sample_weight=weight)
    assert_allclose(coefficients.predict(Z), given.predict(Z), rtol=1e-12)
    assert_allclose(coefficients.loo_predict(), given.loo_predict(), rtol=1e-12)
    fits = RBF(0.3).gram(Z, X[weight > 0]) @ coefficients.dual_coef_ + coefficients.intercept_
    assert_allclose(fits, coefficients.predict(Z), rtol=1e-10)


def test_a_precomputed_kernel_is_refused():
    message = "use kernel='linear', penalty='rkhs' and the Gram matrix as X"
    K = RBF(0.3).gram(X)
    with pytest.raises(ValueError, match=message):
        BasisFunctions(Precomputed()).resolved(K)
    with pytest.raises(ValueError, match=message):
        LSSVR("precomputed", penalty="coef").fit(K, X[:, 0])
    same = LSSVR("linear").fit(K, X[:, 0]).predict(K)
    assert_allclose(same, LSSVR(gamma=0.3, penalty="coef").fit(X, X[:, 0]).predict(X), rtol=1e-8)


def test_parameters_of_the_kernel_keep_their_names():
    found = BasisFunctions(RBF("scale"))
    assert found.unresolved == {"gamma": "scale", "penalty": "coef"}
    found = found.resolved(X)
    assert found.unresolved == {}
    kernel = RBF("scale").resolved(X)
    assert found.get_params() == {**kernel.get_params(), "kernel": kernel, "Z": found.Z}
    assert found == found.changed(gamma=found.get_params()["gamma"])
    assert found != found.changed(gamma=7.0)
    assert found != BasisFunctions(found.kernel, X.copy())  # functions are not compared value by value
    assert found.default_grid(X) == RBF(1.0).default_grid(X)


def slopes(value, kernel):
    """Derivatives of value(kernel) by each parameter, by central differences."""
    found = {}
    for name in kernel.differentiable:
        at = np.array(kernel.get_params()[name], float)
        by_entry = []
        for place in np.ndindex(at.shape):
            step = np.zeros(at.shape)
            step[place] = 1e-5 * at[place]
            ends = [at + step, at - step]
            ends = [float(end) if not end.ndim else (tuple(end) if name == "weights" else end) for end in ends]
            up, down = (value(kernel.changed(**{name: end})) for end in ends)
            by_entry.append((up - down) / (2 * step[place]))
        found[name] = np.reshape(by_entry, at.shape)
    return found


def assert_slopes(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert np.shape(found[name]) == value.shape
        assert_allclose(found[name], value, rtol=1e-5, atol=1e-6 * abs(value).max())


@pytest.mark.many_cases
@every_form
@every_choice
@every_kernel
def test_pullback_is_the_derivative_of_the_gram_matrix(kernel, own, form):
    rows = form(X)
    kernel = BasisFunctions(kernel, None if own else form(Z)).resolved(rows)
    R = np.random.default_rng(2).normal(size=(30, 30))
    R = R + R.T
    found = kernel.pullback(R.copy(), rows, kernel.gram(rows))
    assert_slopes(found, slopes(lambda other: np.vdot(R, other.gram(rows)), kernel))


@pytest.mark.many_cases
@every_form
@every_choice
@every_kernel
def test_pullback_of_features_is_their_derivative(kernel, own, form):
    rows = form(X)
    kernel = BasisFunctions(kernel, None if own else form(Z)).resolved(rows)
    Phi = kernel.features(rows)
    D = np.random.default_rng(2).normal(size=Phi.shape)
    found = kernel.pullback_features(D.copy(), rows, Phi.copy())
    assert_slopes(found, slopes(lambda other: np.vdot(D, other.features(rows)), kernel))


@every_form
def test_pullback_at_some_of_the_rows_is_the_derivative(form):
    """A part of the rows that the functions are of."""
    rows = form(X)[np.arange(3, 20)]
    kernel = BasisFunctions(RBF(PER_FEATURE)).resolved(form(X))
    D = np.random.default_rng(2).normal(size=(17, 30))
    found = kernel.pullback_features(D, rows, kernel.features(rows))
    assert_slopes(found, slopes(lambda other: np.vdot(D, other.features(rows)), kernel))


def test_pullback_leaves_what_it_is_given():
    kernel = BasisFunctions(RBF(0.3)).resolved(X)
    Phi = kernel.features(X)
    D = np.random.default_rng(2).normal(size=Phi.shape)
    given = D.copy()
    kernel.pullback_features(D, X, Phi.copy())
    assert_array_equal(D, given)
