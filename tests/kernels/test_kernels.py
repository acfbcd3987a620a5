"""Kernels against double loops over their formulas, and pullbacks against central differences of those loops."""

from dataclasses import fields, is_dataclass

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.svm import SVC

from foldless.kernels import KERNELS, Custom, resolve

GAMMA = {"scalar": 0.35, "per feature": np.array([0.1, 0.7, 0.0, 1.3, 0.4])}
D = len(GAMMA["per feature"])
# the definition of every kernel, for two rows; g is one value per feature
FORMULA = {
    "linear": lambda x, z, g, degree, coef0, eta: sum(x * z),
    "poly": lambda x, z, g, degree, coef0, eta: (sum(g * x * z) + coef0) ** degree,
    "rbf": lambda x, z, g, degree, coef0, eta: np.exp(-sum(g * (x - z) ** 2)),
    "laplacian": lambda x, z, g, degree, coef0, eta: np.exp(-sum(g * abs(x - z))),
    "boolean": lambda x, z, g, degree, coef0, eta: (1 + eta) ** sum(x * z),
    "cosine": lambda x, z, g, degree, coef0, eta: (
        sum(x * z) / np.sqrt(sum(x * x) * sum(z * z)) if any(x) and any(z) else 0.0
    ),
}
TOLERANCE = {np.float64: 1e-12, np.float32: 2e-5}
BOTH_FORMS = pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csr_matrix], ids=lambda f: f.__name__)
BOTH_DTYPES = pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=lambda t: t.__name__)
BOTH_GAMMAS = pytest.mark.parametrize("gamma", GAMMA.values(), ids=GAMMA.keys())
ALL_NAMED = pytest.mark.parametrize("name", FORMULA)


def loops(name, X, Z, gamma=1.0, degree=3, coef0=1.0, eta=1.0):
    """Gram matrix by two loops over the rows, in double precision."""
    X, Z = np.asarray(X, float), np.asarray(Z, float)
    g = np.broadcast_to(np.asarray(gamma, float), X.shape[1:])
    return np.array([[FORMULA[name](x, z, g, degree, coef0, eta) for z in Z] for x in X])


def rows(n, seed, *, name="rbf"):
    """Rows with zeros in them, a row of zeros and two equal rows; 0/1 for the boolean kernel."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D)) * (rng.random((n, D)) < 0.7)
    X[1] = 0.0
    X[2] = X[0]
    return (X != 0).astype(float) if name == "boolean" else X


def close(found, expected, tolerance):
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * max(1.0, np.abs(expected).max()))


# -- the Gram matrix ---------------------------------------------------------------------------------------------------


@ALL_NAMED
@BOTH_GAMMAS
@BOTH_FORMS
@BOTH_DTYPES
def test_gram_between_two_samples_is_the_formula(name, gamma, form, dtype):
    X, Z = rows(9, 1, name=name).astype(dtype), rows(6, 2, name=name).astype(dtype)
    kernel = resolve(name, form(X), gamma=gamma, degree=2, coef0=0.6, eta=0.4)
    K = kernel.gram(form(X), form(Z))
    assert isinstance(K, np.ndarray)
    assert K.shape == (9, 6)
    close(K, loops(name, X, Z, gamma, degree=2, coef0=0.6, eta=0.4), TOLERANCE[dtype])


@ALL_NAMED
@BOTH_GAMMAS
@BOTH_FORMS
@BOTH_DTYPES
def test_gram_of_one_sample_is_the_formula_and_diag_its_diagonal(name, gamma, form, dtype):
    X = rows(8, 3, name=name).astype(dtype)
    kernel = resolve(name, form(X), gamma=gamma, degree=3, coef0=0.0, eta=2.0)
    expected = loops(name, X, X, gamma, degree=3, coef0=0.0, eta=2.0)
    K = kernel.gram(form(X))
    close(K, expected, TOLERANCE[dtype])
    close(kernel.diag(form(X)), np.diagonal(expected), TOLERANCE[dtype])
    close(kernel.diag(form(X)), np.diagonal(K), TOLERANCE[dtype])


@ALL_NAMED
@BOTH_GAMMAS
@BOTH_FORMS
@BOTH_DTYPES
def test_gram_and_diag_keep_the_precision_of_x(name, gamma, form, dtype):
    X = form(rows(5, 4, name=name).astype(dtype))
    kernel = resolve(name, X, gamma=gamma)
    assert kernel.gram(X).dtype == dtype
    assert kernel.gram(X, X[:3]).dtype == dtype
    assert kernel.diag(X).dtype == dtype


@ALL_NAMED
@BOTH_GAMMAS
@BOTH_FORMS
def test_gram_of_one_sample_is_that_with_itself_and_symmetric(name, gamma, form):
    X = form(rows(12, 5, name=name))
    kernel = resolve(name, X, gamma=gamma)
    K = kernel.gram(X)
    close(K, kernel.gram(X, X.copy()), 1e-13)
    close(K, K.T, 1e-14)
    close(kernel.gram(X[:4], X[3:]), K[:4, 3:], 1e-13)


@ALL_NAMED
@BOTH_GAMMAS
@BOTH_FORMS
def test_gram_is_positive_semi_definite(name, gamma, form):
    X = form(rows(20, 6, name=name))
    s = np.linalg.eigvalsh(resolve(name, X, gamma=gamma, coef0=0.5).gram(X))
    assert s.min() > -1e-13 * s.max()


@ALL_NAMED
@BOTH_FORMS
def test_gram_and_diag_leave_their_arguments_alone(name, form):
    X, Z = form(rows(6, 7, name=name)), form(rows(4, 8, name=name))
    before = X.copy(), Z.copy()
    kernel = resolve(name, X, gamma=GAMMA["per feature"])
    kernel.gram(X)[:] = 0.0
    kernel.gram(X, Z)[:] = 0.0
    kernel.diag(X)
    assert abs(X - before[0]).max() == 0
    assert abs(Z - before[1]).max() == 0


def test_switching_a_feature_off_equals_leaving_it_out():
    X = rows(10, 9)
    gamma = GAMMA["per feature"]
    on = gamma > 0
    assert not on.all()
    for name in ("rbf", "laplacian", "poly"):
        whole, part = resolve(name, X, gamma=gamma), resolve(name, X[:, on], gamma=gamma[on])
        close(whole.gram(X), part.gram(X[:, on]), 1e-13)


@pytest.mark.parametrize("degree", [1, 2, 5])
@pytest.mark.parametrize("coef0", [0.0, 2.5])
def test_poly_of_several_degrees(degree, coef0):
    X = rows(7, 10)
    kernel = resolve("poly", X, gamma=0.2, degree=degree, coef0=coef0)
    close(kernel.gram(X), loops("poly", X, X, 0.2, degree=degree, coef0=coef0), 1e-12)


def test_poly_of_degree_one_without_constant_is_the_linear_kernel():
    X = rows(7, 11)
    close(resolve("poly", X, gamma=1.0, degree=1, coef0=0.0).gram(X), resolve("linear", X).gram(X), 1e-14)


def test_boolean_counts_shared_conjunctions():
    X = rows(6, 12, name="boolean")
    # all 2^D conjunctions as explicit features: eta = 1 gives each the weight 1
    subsets = (np.arange(2**D)[:, None] >> np.arange(D)) & 1
    conjunctions = np.array([[all(x[s == 1]) for s in subsets] for x in X], float)
    close(resolve("boolean", X, eta=1.0).gram(X), conjunctions @ conjunctions.T, 1e-13)


# -- callables and precomputed -----------------------------------------------------------------------------------------


@BOTH_FORMS
@BOTH_DTYPES
def test_callable_is_called_with_the_rows_themselves(form, dtype):
    def kernel(X, Z):
        product = X @ Z.T
        product = product.toarray() if sp.issparse(product) else product
        return (product + 1.0) ** 2

    X, Z = rows(7, 13).astype(dtype), rows(5, 14).astype(dtype)
    resolved = resolve(kernel, form(X), gamma="nonsense that a callable does not see")
    assert isinstance(resolved, Custom)
    tolerance = TOLERANCE[dtype]
    close(resolved.gram(form(X), form(Z)), loops("poly", X, Z, 1.0, degree=2, coef0=1.0), tolerance)
    expected = loops("poly", X, X, 1.0, degree=2, coef0=1.0)
    close(resolved.gram(form(X)), expected, tolerance)
    close(resolved.diag(form(X)), np.diagonal(expected), tolerance)
    assert resolved.gram(form(X)).dtype == dtype
    assert resolved.diag(form(X)).dtype == dtype


def test_callable_may_return_a_sparse_gram_matrix():
    X, Z = rows(7, 38), rows(5, 39)
    kernel = resolve(lambda A, B: A @ B.T, sp.csr_array(X))
    close(kernel.gram(sp.csr_array(X), sp.csr_array(Z)), loops("linear", X, Z), 1e-12)
    close(kernel.diag(sp.csr_array(X)), np.square(X).sum(1), 1e-12)


def test_callable_keeps_the_matrix_it_returned():
    X = rows(6, 15)
    K = loops("rbf", X, X)
    before = K.copy()
    found = resolve(lambda A, B: K, X).gram(X)
    found[:] = 0.0
    np.testing.assert_array_equal(K, before)


@pytest.mark.parametrize("shape", [(6,), (6, 5), (1, 6), ()])
def test_callable_of_wrong_shape_is_told_which_shape_to_return(shape):
    X = rows(6, 16)
    kernel = resolve(lambda A, B: np.ones(shape), X)
    with pytest.raises(ValueError, match=r"kernel=.*returned shape .*must .*return a Gram matrix of shape \(6, 6\)"):
        kernel.gram(X)


@BOTH_FORMS
def test_precomputed_is_a_copy_of_the_gram_matrix(form):
    X = rows(6, 17)
    K = loops("rbf", X, X)
    kernel = resolve("precomputed", form(K))
    found = kernel.gram(form(K))
    np.testing.assert_array_equal(found, K)
    np.testing.assert_array_equal(kernel.diag(form(K)), np.diagonal(K))
    dense = K.copy()
    resolve("precomputed", dense).gram(dense)[:] = 0.0
    np.testing.assert_array_equal(dense, K)


def test_precomputed_has_no_rows_to_compare():
    K = np.eye(4)
    with pytest.raises(ValueError, match="slice the Gram matrix"):
        resolve("precomputed", K).gram(K, K)


# -- the registry ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KERNELS)
def test_registered_kernels_have_gram_and_diag_and_frozen_parameters(name):
    kind = KERNELS[name]
    assert callable(kind.gram)
    assert callable(kind.diag)
    assert is_dataclass(kind)
    assert kind.__dataclass_params__.frozen
    assert {field.name for field in fields(kind)} <= {"gamma", "degree", "coef0", "eta"}
    assert isinstance(resolve(name, np.eye(D)), kind)


def test_formulas_of_all_registered_kernels_are_tested_here():
    assert set(FORMULA) | {"precomputed"} == set(KERNELS)


@pytest.mark.parametrize(
    ("name", "tuned"),
    [
        ("linear", set()),
        ("poly", {"gamma", "coef0"}),
        ("rbf", {"gamma"}),
        ("laplacian", {"gamma"}),
        ("boolean", {"eta"}),
    ],
)
def test_pullbacks_answer_for_the_parameters_that_have_a_slope(name, tuned):
    X = rows(5, 18, name=name)
    kernel = resolve(name, X)
    assert set(kernel.differentiable) == tuned
    if tuned:
        assert set(kernel.pullback(np.eye(5), X, kernel.gram(X))) == tuned


# -- gamma="scale" -----------------------------------------------------------------------------------------------------


@BOTH_DTYPES
def test_gamma_scale_is_that_of_scikit_learn(dtype):
    X = (3 * rows(30, 19) + 1).astype(dtype)
    svc = SVC(gamma="scale").fit(X, np.arange(30) % 2)
    tolerance = 1e-12 if dtype == np.float64 else 1e-5
    for name in ("rbf", "poly"):
        gamma = resolve(name, X).gamma
        assert gamma == pytest.approx(svc._gamma, rel=tolerance)
        assert gamma == pytest.approx(1 / (D * np.asarray(X, float).var()), rel=tolerance)
    assert resolve("laplacian", X).gamma == pytest.approx(1 / (D * np.asarray(X, float).std()), rel=tolerance)


@pytest.mark.parametrize("name", ["rbf", "laplacian"])
def test_a_kernel_of_differences_of_width_scale_does_not_see_the_unit(name):
    X = rows(20, 19)
    close(resolve(name, 1000 * X).gram(1000 * X), resolve(name, X).gram(X), 1e-12)


@pytest.mark.parametrize("offset", [0.0, 100.0])
def test_gamma_scale_of_sparse_rows_is_that_of_dense_rows(offset):
    X = rows(25, 20) + offset
    assert resolve("rbf", sp.csr_array(X)).gamma == pytest.approx(resolve("rbf", X).gamma, rel=1e-9)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_gamma_scale_counts_integer_weights_as_repetitions(form):
    X = rows(12, 21) + 0.5
    times = np.random.default_rng(22).integers(0, 5, 12)
    assert {0, 1} < set(times.tolist())
    repeated = resolve("rbf", form(np.repeat(X, times, axis=0))).gamma
    assert resolve("rbf", form(X), sample_weight=times.astype(float)).gamma == pytest.approx(repeated, rel=1e-12)
    assert resolve("rbf", form(X), sample_weight=times * 0.3).gamma == pytest.approx(repeated, rel=1e-12)
    assert resolve("rbf", form(X)).gamma != pytest.approx(repeated, rel=1e-3)


def test_gamma_scale_of_unit_weights_is_that_without_weights():
    X = rows(12, 23)
    assert resolve("rbf", X, sample_weight=np.ones(12)).gamma == pytest.approx(resolve("rbf", X).gamma, rel=1e-14)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(
    ("value", "shape"), [(0.0, (7, 3)), (1.0, (7, 3)), (0.1, (10, 3)), (7.7, (13, 7)), (7.7, (49, 1))]
)
def test_gamma_scale_of_rows_without_variance_does_not_come_from_rounding(form, value, shape):
    X = np.full(shape, value)
    kernel = resolve("rbf", form(X))
    assert kernel.gamma == resolve("rbf", np.zeros(shape)).gamma
    np.testing.assert_array_equal(kernel.gram(form(X)), np.ones((shape[0], shape[0])))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_gamma_scale_of_weights_that_leave_no_variance(form):
    X = np.full((8, 3), 0.1)
    X[:2] = rows(2 + 6, 35)[:2, :3]
    weights = np.repeat([0.0, 1.0], [2, 6])
    assert resolve("rbf", form(X), sample_weight=weights).gamma == resolve("rbf", np.zeros((6, 3))).gamma


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("size", [1e150, 1e-150])
@pytest.mark.parametrize("name", ["rbf", "poly"])
def test_gamma_scale_makes_kernels_free_of_the_size_of_the_features(name, size, form):
    X, Z = rows(12, 24) + 0.3, rows(5, 25)
    small, huge = resolve(name, form(X)), resolve(name, form(size * X))
    assert huge.gamma * size * size == pytest.approx(small.gamma, rel=1e-12)
    close(huge.gram(form(size * X)), small.gram(form(X)), 1e-12)
    close(huge.gram(form(size * X), form(size * Z)), small.gram(form(X), form(Z)), 1e-12)
    close(huge.diag(form(size * X)), small.diag(form(X)), 1e-12)


@pytest.mark.parametrize("power", [-200, -170, -162, -160, -157, -155, -154, -153, 152])
def test_gamma_scale_is_finite_however_small_the_features(power):
    X = rows(12, 26) * 10.0**power
    kernel = resolve("rbf", X)
    assert 0 < kernel.gamma < np.inf
    assert np.isfinite(kernel.gram(X)).all()


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("power", [155, 160, 200, 300])
def test_gamma_scale_of_features_too_large_to_be_squared_is_refused(power, form):
    with pytest.raises(ValueError, match=r"gamma='scale' overflows: .*; rescale X or give gamma"):
        resolve("rbf", form(rows(12, 26) * 10.0**power))


# -- large numbers -----------------------------------------------------------------------------------------------------


@BOTH_GAMMAS
@pytest.mark.parametrize("offset", [1e6, -1e6])
def test_rbf_distances_survive_a_large_common_offset(gamma, offset):
    X, Z = rows(15, 27) + offset, rows(8, 28) + offset
    weights = np.broadcast_to(np.asarray(gamma, float), D)
    kernel = resolve("rbf", X, gamma=gamma)
    # moving by the offset rounds X to offset * eps itself; cdist sees the same rounded X
    np.testing.assert_allclose(kernel.gram(X, Z), np.exp(-cdist(X, Z, "sqeuclidean", w=weights)), atol=1e-8)
    np.testing.assert_allclose(kernel.gram(X), np.exp(-cdist(X, X, "sqeuclidean", w=weights)), atol=1e-8)


@pytest.mark.parametrize("size", [1e4, 1e8])
def test_rbf_distances_of_the_others_survive_an_outlier(size):
    X = rows(25, 36)
    X[0] = size
    K = resolve("rbf", X, gamma=GAMMA["scalar"]).gram(X)
    np.testing.assert_allclose(K, np.exp(-GAMMA["scalar"] * cdist(X, X, "sqeuclidean")), atol=1e-12)


@pytest.mark.parametrize("size", [1e-170, 1e-20, 1e160])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_cosine_does_not_see_the_size_of_the_features(size, form):
    X = rows(8, 37)
    kernel = resolve("cosine", X)
    close(kernel.gram(form(X * size)), kernel.gram(form(X)), 1e-12)
    np.testing.assert_array_equal(kernel.diag(form(X * size)), kernel.diag(form(X)))


def test_rbf_of_a_row_with_itself_is_one_however_large_the_rows():
    X = np.random.default_rng(29).normal(size=(30, 50)) * 1e8
    K = resolve("rbf", X, gamma=1.0).gram(X)
    np.testing.assert_array_equal(np.diagonal(K), 1.0)
    assert K.max() <= 1.0


# -- parameters that cannot be -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["RBF", "sigmoid", "", None, 3, ["rbf"]])
def test_unknown_kernel_is_named_with_those_that_exist(kernel):
    with pytest.raises(ValueError, match=r"kernel=.* is unknown; use one of .*'rbf'.* or a callable") as error:
        resolve(kernel, np.eye(3))
    assert repr(kernel) in str(error.value)


@pytest.mark.parametrize("name", ["rbf", "laplacian", "poly"])
@pytest.mark.parametrize("gamma", [-1.0, 0.0, np.nan, np.inf, [1.0, -1.0, 1.0], [0.0, 0.0, 0.0], [1.0, np.nan, 1.0]])
def test_gamma_must_be_positive_and_finite(name, gamma):
    with pytest.raises(ValueError, match=r"gamma=.* must be positive and finite"):
        resolve(name, np.eye(3), gamma=gamma)


@pytest.mark.parametrize("gamma", [[1.0, 2.0], np.ones(4), np.ones((3, 1)), np.ones((1, 3)), []])
def test_gamma_of_wrong_shape_is_told_the_number_of_features(gamma):
    with pytest.raises(ValueError, match=r"gamma has shape \(.*\); .*one value for each of the 3 features"):
        resolve("rbf", np.eye(3), gamma=gamma)


def test_gamma_auto_is_one_by_the_number_of_features():
    for name in ("rbf", "laplacian", "poly"):
        assert resolve(name, 7 * np.eye(3), gamma="auto").gamma == 1 / 3


@pytest.mark.parametrize("gamma", ["Auto", "Scale", ""])
def test_gamma_of_an_unknown_name_is_told_the_known_ones(gamma):
    with pytest.raises(ValueError, match=r"gamma='.*' is unknown; use 'scale', 'auto'"):
        resolve("rbf", np.eye(3), gamma=gamma)


@pytest.mark.parametrize(
    ("name", "parameter", "value"),
    [
        *(("poly", "degree", value) for value in (0, -1, np.nan, np.inf, "3", None)),
        *(("poly", "coef0", value) for value in (-0.5, np.nan, np.inf, "1", None)),
        *(("boolean", "eta", value) for value in (0, -0.5, np.nan, np.inf, "1", None)),
    ],
)
def test_bad_parameters_are_named_with_their_value_and_range(name, parameter, value):
    low = ">= 0" if parameter == "coef0" else "> 0"
    with pytest.raises(ValueError, match=rf"{parameter}=.* must be a finite number {low} for kernel='{name}'") as error:
        resolve(name, np.eye(3), **{parameter: value})
    assert repr(value) in str(error.value)


def test_parameters_of_other_kernels_are_not_looked_at():
    nonsense = {"degree": -1, "coef0": "x", "eta": None, "gamma": "x"}
    for name in ("linear", "cosine", "precomputed"):
        resolve(name, np.eye(3), **nonsense)
    resolve("rbf", np.eye(3), **{**nonsense, "gamma": 1.0})


# -- derivatives -------------------------------------------------------------------------------------------------------


def central_difference(name, R, X, parameters, parameter):
    """Derivatives of sum_ij R_ij K_ij by one parameter, from the loops."""
    h, value = 1e-5, np.asarray(parameters[parameter], float)

    def at(moved):
        return np.sum(R * loops(name, X, X, **{**parameters, parameter: moved}))

    unit = np.eye(value.size).reshape(-1, *value.shape)
    slopes = np.array([(at(value + h * e) - at(value - h * e)) / (2 * h) for e in unit])
    return slopes if value.ndim else slopes[0]


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csr_matrix], ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        *((name, {"gamma": gamma}) for name in ("rbf", "laplacian") for gamma in GAMMA.values()),
        *(
            ("poly", {"gamma": gamma, "coef0": coef0, "degree": degree})
            for gamma in GAMMA.values()
            for coef0, degree in ((1.0, 3), (0.4, 2), (0.0, 1), (0.0, 2))
        ),
        *(("boolean", {"eta": eta}) for eta in (0.3, 2.0)),
    ],
    ids=str,
)
def test_pullback_is_the_derivative_of_the_gram_matrix(name, parameters, form):
    X = rows(7, 30, name=name)
    R = np.random.default_rng(31).normal(size=(7, 7))
    R = R + R.T
    kernel = resolve(name, form(X), **parameters)
    found = kernel.pullback(R.copy(), form(X), kernel.gram(form(X)))
    assert set(found) == set(parameters) - {"degree"}
    for parameter, slope in found.items():
        expected = central_difference(name, R, X, parameters, parameter)
        assert np.shape(slope) == np.shape(parameters[parameter])
        np.testing.assert_allclose(slope, expected, rtol=1e-6, atol=1e-7 * np.abs(expected).max())


def test_rbf_pullback_survives_a_large_common_offset():
    X = rows(9, 33)
    R = np.random.default_rng(34).normal(size=(9, 9))
    R = R + R.T
    kernel = resolve("rbf", X, gamma=GAMMA["per feature"])
    moved = np.round(X * 2**10) / 2**10  # so that adding the offset rounds nothing
    slopes = [kernel.pullback(R.copy(), Z, kernel.gram(Z))["gamma"] for Z in (moved, moved + 2.0**20)]
    np.testing.assert_allclose(slopes[1], slopes[0], rtol=1e-7)


@pytest.mark.parametrize("form", [sp.csr_array, sp.csr_matrix])
@BOTH_GAMMAS
def test_rbf_of_sparse_rows_far_from_zero_keeps_its_digits(gamma, form):
    """Columns that are mostly filled are centred; those that are mostly empty stay sparse."""
    X, Z = rows(30, 0), rows(12, 1)
    for data in (X, Z):
        data[:, [0, 3]] += 1e4
    kernel = resolve("rbf", X, gamma=gamma)
    expected = np.exp(-cdist(X * np.sqrt(gamma), Z * np.sqrt(gamma), "sqeuclidean"))
    for few in (12, 3):
        close(kernel.gram(form(Z[:few]), form(X)), expected.T[:few], 1e-10)
        close(kernel.gram(Z[:few], form(X)), expected.T[:few], 1e-10)
        close(kernel.gram(form(Z[:few]), X), expected.T[:few], 1e-10)
    K = kernel.gram(X)
    close(kernel.gram(form(X)), K, 1e-10)
    R = np.random.default_rng(2).normal(size=K.shape)
    R += R.T
    dense, sparse = (kernel.pullback(R.copy(), data, K)["gamma"] for data in (X, form(X)))
    close(sparse, dense, 1e-9)


def test_rbf_of_rows_that_are_mostly_empty_stays_sparse():
    """A dense copy of these features would not fit into memory."""
    rng = np.random.default_rng(0)
    entries = rng.uniform(size=400), (rng.integers(0, 40, 400), rng.integers(0, 10**7, 400))
    X = sp.csr_array(entries, shape=(40, 10**7))
    X = sp.hstack([X, sp.csr_array(1e4 + np.random.default_rng(1).normal(size=(40, 1)))]).tocsr()
    K = resolve("rbf", X, gamma=0.1).gram(X)
    used = X[:, np.unique(X.indices)].toarray()
    close(K, np.exp(-0.1 * cdist(used, used, "sqeuclidean")), 1e-10)


@pytest.mark.parametrize("name", ["rbf", "laplacian"])
@BOTH_GAMMAS
def test_gram_of_float32_rows_shifted_by_1e7_is_that_of_the_rows(name, gamma):
    """Whole numbers, so that the shift itself rounds nothing; few rows and many take different ways."""
    rng = np.random.default_rng(3)
    X, Z = (rng.integers(-6, 7, size=(n, D)).astype(np.float32) for n in (25, 12))
    gamma, shift = np.asarray(gamma) / 30, np.float32(1e7)
    kernel = resolve(name, X, gamma=gamma)
    np.testing.assert_array_equal((X + shift) - shift, X)
    np.testing.assert_allclose(kernel.gram(X + shift), kernel.gram(X), rtol=1e-5)
    for few in (12, 3):
        found = kernel.gram(Z[:few] + shift, X + shift)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, loops(name, Z[:few], X, gamma=gamma), rtol=1e-5)
