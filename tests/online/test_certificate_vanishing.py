"""Certificates of models whose coefficients or residuals vanish: right ones hold, wrong ones do not."""

import numpy as np
import pytest

from foldless import LSSVC, LSSVR, KernelFisherDiscriminant
from foldless._engine.online.certificate import _relative

RNG = np.random.default_rng(0)
X, Y, C = RNG.normal(size=(30, 3)), RNG.normal(size=30), RNG.normal(size=(30, 1)) * [[1e3]]
SAME = np.ones((30, 3))


def updated(model, X, y, confounds=None):
    """After ten rows were learnt and three forgotten."""
    some = [{} if confounds is None else {"confounds": confounds[rows]} for rows in (slice(20), slice(20, 30))]
    return model.fit(X[:20], y[:20], **some[0]).partial_fit(X[20:], y[20:], **some[1]).forget([0, 1, 4])


# One class left; targets that a constant or the confounds explain; rows that tell nothing.
VANISHING = {
    "constant y": lambda **kw: updated(LSSVR(**kw), X, np.full(30, 7.0)),
    "tiny constant y": lambda **kw: updated(LSSVR(**kw), X, np.full(30, 1e-200)),
    "y of confounds": lambda **kw: updated(LSSVR(**kw), X, 1 + 3e-3 * C[:, 0], C),
    "constant X": lambda **kw: updated(LSSVR(**kw), SAME, Y),
    "constant X, classes": lambda **kw: updated(LSSVC(**kw), SAME, (Y > 0)),
    "constant X, discriminant": lambda **kw: updated(KernelFisherDiscriminant(**kw), SAME, (Y > 0)),
    "constant X, confounds": lambda **kw: updated(KernelFisherDiscriminant(**kw), SAME, (Y > 0), C),
    "one class left": lambda **kw: one_class_left(KernelFisherDiscriminant(**kw)),
    "one class left of LSSVC": lambda **kw: one_class_left(LSSVC(**kw)),
}
every_model = pytest.mark.parametrize("make", VANISHING.values(), ids=VANISHING.keys())
every_kernel = pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
every_penalty = pytest.mark.parametrize("penalty", ["rkhs", "coef"])


def one_class_left(model):
    y = np.r_[np.ones(10), np.zeros(20)]
    return model.partial_fit(X, y, classes=[0, 1]).forget(np.arange(10))


@pytest.mark.filterwarnings("ignore")
@every_model
@every_kernel
@every_penalty
@pytest.mark.parametrize("alpha", [1e-4, 0.1, 1e4])
def test_the_certificate_of_a_right_model_holds(make, kernel, penalty, alpha):
    found = make(kernel=kernel, gamma=0.3, alpha=alpha, penalty=penalty).unlearning_certificate()
    assert found.holds, str(found)


@pytest.mark.filterwarnings("ignore")
@every_model
@every_kernel
@every_penalty
def test_the_certificate_of_a_wrong_model_does_not_hold(make, kernel, penalty):
    model = make(kernel=kernel, gamma=0.3, alpha=0.1, penalty=penalty)
    change = 1e3 * model.unlearning_certificate().limit * model._parts.full_fit.target_scale.max()
    for part in ("_dual", "_offset", "_weights", "_confound_B"):
        values = getattr(model, part)
        if values is not None and np.size(values):
            setattr(model, part, values + change)
            assert not model.unlearning_certificate().holds
            setattr(model, part, values)
    assert model.unlearning_certificate().holds


@pytest.mark.filterwarnings("ignore")
@every_penalty
def test_the_certificate_of_a_wrong_P_does_not_hold(penalty):
    model = updated(LSSVR(gamma=0.3, alpha=0.1, penalty=penalty), X, Y)
    assert model.unlearning_certificate().holds
    square, slots = model._parts.full_fit.own_precision._held, model._parts.full_fit.own_precision.slots
    square.H[slots[3], slots[3]] *= 1 + 1e-5
    vars(model._parts.full_fit.own_precision).pop("_diagonal", None)
    found = model.unlearning_certificate()
    assert not found.holds
    assert found.difference < 1e-10 < found.loo_difference


def test_certificate_differences_are_relative_to_the_size_of_the_values():
    a, b = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 2.0], [3.0, 5.0]])
    assert _relative(a, b, 0.0) == 0.2
    assert _relative(a, b, 4.0) == 0.2
    assert _relative(a, b, 10.0) == 0.1
    assert _relative(a, b, np.array([[10.0], [100.0]])) == 0.01
    assert _relative(a, 0 * a, 0.0) == 4.0
    assert _relative(a[:0], b[:0], np.zeros((0, 1))) == 0.0
    assert _relative(a, b[:1], 1.0) == np.inf
    assert _relative(np.full((2, 2), np.nan), b, 1.0) == np.inf
