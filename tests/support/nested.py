"""Data, searches and the double loop of the tests of nested cross-validation."""

import numpy as np

import foldless.model_selection._nested as _nested
from foldless import KernelFisherDiscriminant
from foldless._engine.tuning.grid import NestedCost
from support.tolerances import assert_close

N, D = 30, 4
RNG = np.random.default_rng(3)
CODES = RNG.permutation(np.repeat([0, 1, 2], [9, 10, 11]))
X = RNG.normal(size=(N, D)) + 0.8 * CODES[:, None] * [1, 0, -1, 0]
GROUPS = np.arange(N) % 5
WEIGHT = RNG.uniform(0.3, 3.0, N)
ZEROS = WEIGHT * (np.arange(N) % 14 != 4)  # rows 4 and 18 neither train nor choose
LABELS = np.array(["ant", "bee", "cat"])[CODES]
BINARY = np.array(["no", "yes"])[(CODES > 1).astype(int)]
VALUES = X[:, 0] ** 2 + X[:, 1] + RNG.normal(size=N)
OUTPUTS = np.column_stack([VALUES, X[:, 2] + RNG.normal(size=N)])
KFDA = KernelFisherDiscriminant

ALPHAS = [0.05, 1.0, 20.0]
GRID = {"alpha": [0.1, 5.0], "gamma": [0.03, 0.3]}

ORDER = np.random.default_rng(5).permutation(N)


def absolute(f, t, w):
    return w @ np.abs(t - f)


def is_wrong(t, f):
    return (t * f <= 0).astype(float)


def balanced_error(f, t, w):
    return sum(np.average(is_wrong(t, f)[side], weights=w[side]) / 2 for side in (t > 0, t < 0) if side.any())


def pairs_in_wrong_order(f, t, w):
    up, down = np.flatnonzero(t > 0), np.flatnonzero(t < 0)
    if not len(up) or not len(down):
        return 0.5
    order = np.heaviside(f[down][None] - f[up][:, None], 0.5)
    return np.average(order, weights=np.outer(w[up], w[down]))


BY_HAND = {
    "press": lambda f, t, w: w @ np.square(t - f),
    "error": lambda f, t, w: w @ is_wrong(t, f),
    "ber": balanced_error,
    "auc": pairs_in_wrong_order,
    "hinge2": lambda f, t, w: w @ np.square(np.maximum(1 - t * f, 0)),
    "smooth_error": lambda f, t, w: w @ (1 - t * np.tanh(3.0 * f)) / 2,
    absolute: absolute,
}


def predicted(decision, y):
    """Labels of decisions; values stay as they are."""
    if y.dtype.kind == "f":
        return decision.reshape(-1, *y.shape[1:])
    return np.unique(y)[(decision > 0).astype(int) if decision.ndim == 1 else decision.argmax(1)]


def assert_equal_results(one, two):
    """Two results of the same splits."""
    assert one.best_params == two.best_params
    for name in ("test_score", "inner_score", "optimism", "inner_criterion", "outer_criterion"):
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), rtol=1e-8, atol=1e-10, err_msg=name)
    for a, b in zip(one.predictions, two.predictions, strict=True):
        np.testing.assert_array_equal(a, b) if a.dtype.kind in "UO" else assert_close(a, b)
    for a, b in zip(one.decision, two.decision, strict=True):
        assert (a is None) == (b is None)
        assert_close(a, b) if a is not None else None


def force_route(monkeypatch, shared):
    """One P for each candidate wherever the algebra allows it, or each training part by itself."""

    def decide(problem, n_alphas, outer, inner):
        features = problem.through_features(len(problem.active))
        return NestedCost(0.0, shared and not features)

    monkeypatch.setattr(_nested, "nested_cost", decide)
