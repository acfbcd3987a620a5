"""Kernels of columns that are multiplied by scales."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from foldless import LSSVC, LSSVR
from foldless.kernels import RBF, Laplacian, Linear, Nystroem, Poly, Scaled

X, Z = np.split(np.random.default_rng(3).normal(size=(17, 4)), [12])
SCALES = np.array([0.5, 2.0, 0.0, 1.0])
INNER = {"rbf": RBF(0.3), "laplacian": Laplacian(0.2), "linear": Linear(), "poly": Poly(0.4)}


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("kernel", INNER.values(), ids=list(INNER))
def test_it_equals_the_kernel_of_scaled_columns(kernel, form):
    scaled = Scaled(kernel, SCALES)
    np.testing.assert_allclose(scaled.gram(form(X), form(Z)), kernel.gram(X * SCALES, Z * SCALES), rtol=1e-12)
    np.testing.assert_allclose(scaled.gram(form(X)), kernel.gram(X * SCALES), rtol=1e-12)
    np.testing.assert_allclose(scaled.diag(form(X)), kernel.diag(X * SCALES), rtol=1e-12)


@pytest.mark.parametrize("kernel", [RBF(0.3), Laplacian(0.2), Poly(0.4)], ids=["rbf", "laplacian", "poly"])
def test_derivatives_are_those_of_the_kernel(kernel):
    rng = np.random.default_rng(4)
    R = rng.normal(size=(12, 12))
    R = R + R.T
    scaled = Scaled(kernel, SCALES)
    by_name = scaled.pullback(R.copy(), X, scaled.gram(X))
    step = 1e-6
    for name in scaled.differentiable:
        value = scaled.get_params()[name]
        up, down = (scaled.changed(**{name: value + e}).gram(X) for e in (step, -step))
        assert by_name[name] == pytest.approx(np.vdot(R, up - down) / (2 * step), rel=1e-6)
    between = rng.normal(size=(12, 5))
    up, down = (scaled.changed(kernel__gamma=kernel.gamma + e).gram(X, Z) for e in (step, -step))
    slope = np.vdot(between, up - down) / (2 * step)
    assert scaled.pullback_between(between, X, Z)["kernel__gamma"] == pytest.approx(slope, rel=1e-6)


def test_scale_is_resolved_from_the_scaled_columns():
    resolved = Scaled(RBF("scale"), SCALES).resolved(X)
    used = X[:, [0, 1, 3]] * SCALES[[0, 1, 3]]
    assert resolved.kernel.gamma == pytest.approx(1 / (3 * used.var()))


def test_it_is_copied_compared_and_shown_as_other_kernels_are():
    kernel = Scaled(Laplacian(0.2), SCALES)
    assert clone(LSSVC(kernel)).kernel == kernel == pickle.loads(pickle.dumps(kernel))
    assert kernel != Scaled(Laplacian(0.2), 2 * SCALES)
    assert len({kernel, Scaled(Laplacian(0.2), SCALES)}) == 1
    assert repr(kernel) == "Scaled(Laplacian(gamma=0.2), [0.5, 2.0, 0.0, 1.0])"
    assert repr(Scaled(Linear(), np.arange(20))) == "Scaled(Linear(), <20 scales, 1 of them 0>)"
    assert LSSVC(kernel).set_params(kernel__kernel__gamma=1.5).kernel.kernel == Laplacian(1.5)


@pytest.mark.parametrize(
    ("scales", "message"),
    [
        ([1.0, 2.0], r"scales has shape \(2,\); use one number for each of the 4 features"),
        ([1.0, -2.0, 1.0, 1.0], "must be finite numbers >= 0"),
        (np.zeros(4), "at least one of them above 0"),
        ([1.0, np.nan, 1.0, 1.0], "must be finite numbers"),
    ],
)
def test_scales_that_are_none_are_refused(scales, message):
    with pytest.raises(ValueError, match=message):
        LSSVC(Scaled(RBF(), scales)).fit(X, np.arange(12) % 2)


@pytest.mark.parametrize("kernel", [Scaled(Laplacian(0.2), SCALES), 0.3 * RBF(0.1) + Scaled(Laplacian(0.2), SCALES)])
@pytest.mark.parametrize("approximate", [False, True])
def test_models_with_it_learn_and_forget_as_refits(kernel, approximate):
    kernel = Nystroem(kernel, n_landmarks=6, landmarks=X[:6]) if approximate else kernel
    values = np.sin(X[:, 0]) + X[:, 1]
    model = LSSVR(kernel, alpha=0.1).fit(X[:8], values[:8]).partial_fit(X[8:], values[8:]).forget([2, 9])
    kept = np.delete(np.arange(12), [2, 9])
    refitted = LSSVR(kernel, alpha=0.1).fit(X[kept], values[kept])
    np.testing.assert_allclose(model.predict(Z), refitted.predict(Z), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.loo_predict(), refitted.loo_predict(), rtol=1e-8, atol=1e-10)
