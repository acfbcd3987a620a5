"""Data of the tests of AdaptiveKDA, and what its models have to equal."""

import numpy as np

from support.tolerances import assert_close

EPS = np.finfo(float).eps
RNG = np.random.default_rng(3)
X = RNG.normal(size=(36, 4))
X_NEW = RNG.normal(size=(9, 4))
LABELS = {c: np.array(["ash", "beech", "cedar", "douglas"])[RNG.permutation(np.arange(36) % c)] for c in (2, 3, 4)}


def tolerance(K, alpha):
    return max(1e-8, 100 * EPS * np.linalg.cond(K + alpha * np.eye(len(K))))


def assert_same_model(model, other, rtol=1e-8):
    """Everything that can be seen of two models agrees."""
    np.testing.assert_array_equal(model.classes_, other.classes_)
    np.testing.assert_array_equal(model._y, other._y)
    assert model.ids_ == other.ids_
    assert_close(model.decision_function(X_NEW), other.decision_function(X_NEW), rtol=rtol)
    assert_close(model.dual_coef_, other.dual_coef_, rtol=rtol)
    assert_close(model.intercept_, other.intercept_, scale=np.abs(other.dual_coef_).max(), rtol=rtol)
    assert_close(model.loo_decision_function(), other.loo_decision_function(), rtol=rtol)


def state(model):
    """The attributes with a copy of every array."""
    return {key: value.copy() if hasattr(value, "copy") else value for key, value in vars(model).items()}


def assert_unchanged(model, before):
    after = vars(model)
    assert after.keys() == before.keys()
    for key, value in before.items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(after[key], value)
        else:
            assert after[key] is value or after[key] == value, key
