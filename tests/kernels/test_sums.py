"""Sums and products of kernels, and kernels on some columns, against their formulas written out."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics.pairwise import laplacian_kernel, linear_kernel, polynomial_kernel, rbf_kernel

from foldless.kernels import RBF, Boolean, Custom, Laplacian, Linear, On, Poly, Precomputed, Product, Sum
from support.tolerances import assert_close

RNG = np.random.default_rng(0)
X, Z = RNG.normal(size=(12, 5)), RNG.normal(size=(7, 5))
MASK = np.array([True, False, False, True, True])
EXPRESSIONS = {
    "sum": (RBF(0.3) + Linear(), lambda A, B: rbf_kernel(A, B, gamma=0.3) + linear_kernel(A, B)),
    "weighted": (
        0.5 * RBF(0.3) + Poly(0.2, 2) * 3,
        lambda A, B: 0.5 * rbf_kernel(A, B, gamma=0.3) + 3 * polynomial_kernel(A, B, gamma=0.2, degree=2, coef0=1),
    ),
    "product": (
        RBF(0.1) * Poly(0.2, 2, 0.7) * Linear(),
        lambda A, B: (
            rbf_kernel(A, B, gamma=0.1) * polynomial_kernel(A, B, gamma=0.2, degree=2, coef0=0.7) * linear_kernel(A, B)
        ),
    ),
    "on columns": (
        On([0, 3], RBF(0.4)) + 2 * On(slice(1, 3), Laplacian(0.2)),
        lambda A, B: (
            rbf_kernel(A[:, [0, 3]], B[:, [0, 3]], gamma=0.4) + 2 * laplacian_kernel(A[:, 1:3], B[:, 1:3], gamma=0.2)
        ),
    ),
    "nested": (
        (RBF(0.3) + 0.5 * Linear()) * On(MASK, Poly(0.1, 2)) + 4 * Linear(),
        lambda A, B: (
            (rbf_kernel(A, B, gamma=0.3) + 0.5 * linear_kernel(A, B))
            * polynomial_kernel(A[:, MASK], B[:, MASK], gamma=0.1, degree=2, coef0=1)
            + 4 * linear_kernel(A, B)
        ),
    ),
    "linear": (On([0, 1], Linear()) + 2 * On([2, 3, 4], Linear()), lambda A, B: (A * [1, 1, 2, 2, 2]) @ B.T),
}
every_expression = pytest.mark.parametrize(("kernel", "formula"), EXPRESSIONS.values(), ids=EXPRESSIONS)


@every_expression
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_values_are_those_of_the_formula(kernel, formula, form, dtype):
    rtol = 1e-12 if dtype is np.float64 else 1e-5
    A, B = form(X.astype(dtype)), form(Z.astype(dtype))
    kernel = kernel.resolved(A)
    for found, expected in (
        (kernel.gram(A), formula(X, X)),
        (kernel.gram(A, B), formula(X, Z)),
        (kernel.block(A, np.arange(3), np.arange(2, 9)), formula(X[:3], X[2:9])),
        (kernel.against(B, A, np.arange(4)), formula(Z, X[:4])),
        (kernel.diag(A), formula(X, X).diagonal()),
    ):
        assert found.dtype == dtype
        assert_close(found, expected, rtol=rtol)


@every_expression
def test_pullbacks_equal_central_differences(kernel, formula):
    R = np.random.default_rng(5).normal(size=(12, 12))
    R, step = R + R.T, 1e-6
    found = kernel.pullback(R.copy(), X, kernel.gram(X))
    assert found.keys() == set(kernel.differentiable)
    for name in kernel.differentiable:
        value = np.asarray(kernel.get_params()[name], float)
        for unit in np.eye(value.size).reshape(-1, *value.shape):
            high, low = (kernel.changed(**{name: value + h * unit}).gram(X) for h in (step, -step))
            expected = np.vdot(R, high - low) / (2 * step)
            assert np.sum(found[name] * unit) == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_sums_of_kernels_with_features_have_features():
    kernel, formula = EXPRESSIONS["linear"]
    assert kernel.n_features(X) == 5
    for form in (np.asarray, sp.csr_array):
        Phi = kernel.features(form(X))
        Phi = Phi.toarray() if sp.issparse(Phi) else Phi
        assert_close(Phi @ Phi.T, formula(X, X))
    assert (RBF() + Linear()).n_features(X) is None
    assert (RBF() + Linear()).features(X) is None


# -- expressions -------------------------------------------------------------------------------------------------------


def test_sums_and_products_are_flat():
    a, b, c = RBF(), Linear(), Poly()
    assert a + b + c == a + (b + c) == Sum((a, b, c), (1.0, 1.0, 1.0))
    assert 2 * (a + 0.5 * b) == Sum((a, b), (2.0, 1.0))
    assert sum([a, b, c]) == a + b + c
    assert a * b * c == a * (b * c) == Product((a, b, c))
    assert (2 * a) * (0.25 * b) == 0.5 * (a * b) == Sum((a * b,), (0.5,))
    assert (a + b) * c == Product((a + b, c))
    assert np.float64(2) * a == a * 2 == Sum([a], np.array([2.0]))


@every_expression
def test_the_text_of_a_kernel_is_its_expression(kernel, formula):
    again = eval(repr(kernel), {**globals(), "array": np.array})
    assert repr(again) == repr(kernel)
    assert_close(again.gram(X), kernel.gram(X))


@every_expression
def test_copies_are_equal(kernel, formula):
    for other in (clone(kernel, safe=False), pickle.loads(pickle.dumps(kernel)), kernel.changed()):
        assert other is not kernel
        assert repr(other) == repr(kernel)
        assert_close(other.gram(X), kernel.gram(X))


@pytest.mark.parametrize("columns", [[1, 3], (1, 3), np.array([1, 3]), [-4, -2], slice(1, 4, 2), np.arange(5) % 2 == 1])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_columns_are_numbers_slices_or_masks(columns, form):
    kernel = On(columns, RBF("scale")).resolved(form(X))
    assert kernel.kernel.gamma == pytest.approx(1 / (2 * X[:, [1, 3]].var()))
    assert_close(kernel.gram(form(X)), RBF(kernel.kernel.gamma).gram(X[:, [1, 3]]))


def test_one_column_may_be_a_number():
    assert_close(On(2, RBF(0.3)).gram(X), RBF(0.3).gram(X[:, [2]]))


# -- parameters --------------------------------------------------------------------------------------------------------


def test_parameters_are_named_by_the_way_to_them():
    kernel = On([0, 1], RBF("scale")) + 0.5 * (Linear() * Poly(0.1))
    assert set(kernel.get_params(deep=False)) == {"terms", "weights"}
    assert kernel.get_params()["terms__0__kernel__gamma"] == "scale"
    assert kernel.unresolved == {"terms__0__kernel__gamma": "scale"}
    tuned = ("weights", "terms__0__kernel__gamma", "terms__1__factors__1__gamma", "terms__1__factors__1__coef0")
    assert kernel.differentiable == tuned
    assert kernel.resolved(X).limits().keys() == set(tuned)
    other = kernel.changed(terms__0__kernel__gamma=3.0, terms__1__factors__0=RBF(2.0), weights=[1, 2])
    assert other == On([0, 1], RBF(3.0)) + 2.0 * (RBF(2.0) * Poly(0.1))
    assert kernel.get_params()["terms__0__kernel__gamma"] == "scale"


def test_setting_a_parameter_changes_the_kernel_and_not_those_it_was_made_of():
    first = RBF(1.0)
    kernel = first + Linear()
    assert kernel.set_params(terms__0__gamma=2.0) is kernel
    assert kernel == RBF(2.0) + Linear()
    assert first == RBF(1.0)


def test_what_is_inside_speaks_for_the_whole():
    assert (RBF() + Linear()).surely_symmetric
    assert not (RBF() * Custom(linear_kernel)).surely_symmetric
    assert "0 or 1" in (RBF() + On([0], Boolean())).caution(X)
    assert (RBF() + On([0], Boolean())).caution(np.column_stack([X[:, 0] > 0, X])) is None


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: RBF() + Precomputed(), r"terms: Precomputed\(\) is no kernel of rows.*kernel='precomputed'"),
        (lambda: Product((RBF(), rbf_kernel)), r"factors: .* is no kernel of rows of X.*Custom\(f\)"),
        (lambda: On([0], "rbf"), "kernel: 'rbf' is no kernel of rows"),
        (lambda: Sum([]), "terms is empty"),
        (lambda: Sum([RBF(), Linear()], 2.0), r"weights=2.0 must be numbers, one for each of the 2 terms"),
        (lambda: (RBF() + Linear()).set_params(weights=[1.0]), r"weights=\[1.0\] must be numbers"),
        (lambda: (RBF() + Linear()).set_params(terms__0__length=1.0), r"'length' for kernel RBF\(gamma=1.0\)"),
        (lambda: (RBF() + Linear()).set_params(terms__2__gamma=1.0), "Invalid parameter 'terms__2__gamma'"),
        (lambda: (RBF() + -1 * Linear()).resolved(X), r"weights=-1.0 must be a finite number > 0"),
        (lambda: (RBF() + np.nan * Linear()).resolved(X), r"weights=nan must be a finite number > 0"),
        (lambda: On([0, 5], RBF()).resolved(X), r"columns=\[0, 5\] must be columns of X, which has 5"),
        (lambda: On([0, 5], RBF()).resolved(sp.csr_array(X)), r"columns=\[0, 5\] must be columns of X, which has 5"),
        (lambda: On([], RBF()).resolved(X), r"columns=\[\] must be columns of X"),
        (lambda: On(slice(5, 9), RBF()).resolved(X), "at least one"),
        (lambda: On([True, False], RBF()).resolved(X), "a mask with one entry for each"),
        (lambda: On("age", RBF()).resolved(X), "columns='age' must be columns of X"),
        (lambda: On([[0, 1]], RBF()).resolved(X), "must be columns of X"),
    ],
)
def test_what_makes_no_kernel_is_refused(make, said):
    with pytest.raises(ValueError, match=said):
        make()


@pytest.mark.parametrize("other", ["linear", 1.0, None, rbf_kernel])
def test_kernels_are_added_to_kernels_only(other):
    with pytest.raises(TypeError, match="unsupported operand"):
        RBF() + other
    with pytest.raises(TypeError):
        other + RBF()
