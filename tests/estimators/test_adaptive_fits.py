"""AdaptiveKDA against plain refits: fits, leave-one-out, odd data, the example of the paper."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foldless import AdaptiveKDA
from foldless.kernels import RBF, Boolean, Nystroem, resolve
from support.adaptive import LABELS, X_NEW, X, assert_same_model, tolerance
from support.refits import adaptive_decision, adaptive_loo_decision
from support.tolerances import assert_close

OPTIONS = {"gamma": 0.2, "degree": 2}


# -- fits and leave-one-out -------------------------------------------------------------------------------------------


@pytest.mark.many_cases
@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("targets", ["pm1", "fisher"])
@pytest.mark.parametrize("alpha", [1e-7, 1e-3, 1.0, 1e2])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "laplacian", "boolean", "cosine"])
def test_fits_and_leave_one_out_equal_refits(kernel, alpha, targets, n_classes):
    rows = np.vstack([X, X_NEW])
    rows = (rows > 0).astype(float) if kernel == "boolean" else rows
    y = LABELS[n_classes]
    kernel = Boolean(0.5) if kernel == "boolean" else kernel
    model = AdaptiveKDA(kernel, alpha=alpha, targets=targets, **OPTIONS).fit(rows[:36], y)
    K = resolve(kernel, rows, **OPTIONS).gram(rows)
    inner, rtol = K[:36, :36], tolerance(K[:36, :36], alpha)
    padded = np.append(y, y[:9])  # the oracle takes one array of labels; those of new rows are not looked at
    expected = adaptive_decision(K, padded, model.classes_, np.arange(36), np.arange(36, 45), alpha, targets)
    assert_close(model.decision_function(rows[36:]), expected, rtol=rtol)
    expected = adaptive_loo_decision(inner, y, model.classes_, alpha, targets)
    # Held-out fits that are small beside the targets are differences of numbers of the size of the targets.
    scale = max(1.0, np.abs(expected).max())
    assert_close(model.loo_decision_function(), expected, rtol=rtol, scale=scale)
    assert_close(model.loo_decision_function("downdate"), expected, rtol=rtol, scale=scale)


def test_a_kernel_object_of_landmarks_is_used_like_any_other_kernel():
    kernel, y = Nystroem(RBF(0.2), landmarks=X[:6]), LABELS[3]
    rows, labels = np.vstack([X, X_NEW]), np.append(y, y[:9])
    model = AdaptiveKDA(kernel, alpha=1e-3).fit(X[:30], y[:30]).partial_fit(X[30:], y[30:]).forget([0, 7])
    train, new = np.delete(np.arange(36), [0, 7]), np.arange(36, 45)
    K = model.kernel_.gram(rows)
    rtol = tolerance(K[:36, :36], 1e-3)
    expected = adaptive_decision(K, labels, model.classes_, train, new, 1e-3, "pm1")
    assert_close(model.decision_function(X_NEW), expected, rtol=rtol)
    expected = adaptive_loo_decision(K[np.ix_(train, train)], y[train], model.classes_, 1e-3, "pm1")
    assert_close(model.loo_decision_function(), expected, rtol=rtol)


@pytest.mark.parametrize("targets", ["pm1", "fisher"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_predictions_and_scores_follow_decisions(n_classes, targets):
    model = AdaptiveKDA(gamma=0.2, targets=targets).fit(X, LABELS[n_classes])
    for decision, predicted in (
        (model.decision_function(X_NEW), model.predict(X_NEW)),
        (model.loo_decision_function(), model.loo_predict()),
    ):
        codes = (decision > 0).astype(int) if n_classes == 2 else decision.argmax(1)
        np.testing.assert_array_equal(predicted, model.classes_[codes])
    assert model.loo_score_ == np.mean(model.loo_predict() == LABELS[n_classes])


@pytest.mark.parametrize("targets", ["pm1", "fisher"])
def test_loo_of_the_only_row_of_a_class_equals_refit(targets):
    y = np.where(np.arange(12) == 5, "rare", np.array(["a", "b"])[np.arange(12) % 2])
    for labels in (y, np.where(y == "rare", "rare", "other")):
        model = AdaptiveKDA(gamma=0.2, alpha=0.1, targets=targets).fit(X[:12], labels)
        K = resolve("rbf", X[:12], gamma=0.2).gram(X[:12])
        expected = adaptive_loo_decision(K, labels, model.classes_, 0.1, targets)
        for method in ("closed", "downdate"):
            assert_close(model.loo_decision_function(method), expected)


def test_two_rows_are_enough_to_leave_one_out_and_one_is_not():
    model = AdaptiveKDA(gamma=0.2, alpha=0.1).fit(X[:2], ["a", "b"])
    K = resolve("rbf", X[:2], gamma=0.2).gram(X[:2])
    expected = adaptive_loo_decision(K, np.array(["a", "b"]), model.classes_, 0.1, "pm1")
    assert_close(model.loo_decision_function(), expected)
    assert_close(model.loo_decision_function("downdate"), expected)
    alone = AdaptiveKDA(gamma=0.2).partial_fit(X[:1], ["a"], classes=["a", "b"])
    assert alone.predict(X_NEW[:1]) == "a"
    with pytest.raises(ValueError, match="one row"):
        alone.loo_decision_function()


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("targets", ["pm1", "fisher"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_alpha_zero_equals_the_pseudo_inverse(kernel, targets, n_classes):
    rows, y = np.vstack([X, X[:6]]), np.append(LABELS[n_classes], LABELS[n_classes][6:12])  # equal rows, other labels
    model = AdaptiveKDA(kernel, gamma=1.0, alpha=0, targets=targets).fit(rows, y)
    everything = np.vstack([rows, X_NEW])
    K = resolve(kernel, everything, gamma=1.0).gram(everything)
    padded = np.append(y, y[:9])
    expected = adaptive_decision(K, padded, model.classes_, np.arange(42), np.arange(42, 51), 0.0, targets)
    assert_close(model.decision_function(X_NEW), expected)
    for call in (
        lambda: model.partial_fit(X_NEW, y[:9]),
        lambda: model.forget([0]),
        model.loo_decision_function,
        model.loo_predict,
    ):
        with pytest.raises(ValueError, match="alpha=0"):
            call()


def test_tiny_alpha_approaches_alpha_zero():
    small, none = (AdaptiveKDA("linear", alpha=alpha).fit(X, LABELS[3]) for alpha in (1e-9, 0))
    # z is unique up to what the kernel cannot see; the smallest of them is approached for n > d
    assert_close(small.decision_function(X_NEW), none.decision_function(X_NEW), rtol=1e-5)


def test_float32_input_is_computed_in_double_precision():
    single = X.astype(np.float32)
    model, double = (AdaptiveKDA(gamma=0.2, alpha=1e-6).fit(data, LABELS[3]) for data in (single, single.astype(float)))
    assert_same_model(model, double, rtol=0)
    model.partial_fit(X_NEW.astype(np.float32), LABELS[3][:9]).forget([0, 7])
    double.partial_fit(X_NEW.astype(np.float32).astype(float), LABELS[3][:9]).forget([0, 7])
    assert_same_model(model, double, rtol=0)


# -- odd data ---------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(st.integers(-2, 2), st.integers(-1, 1)), min_size=5, max_size=14),
    seed=st.integers(0, 2**16),
    kernel=st.sampled_from(["rbf", "linear", "laplacian", "cosine", "poly"]),
    alpha=st.sampled_from([1e-5, 1e-2, 1.0, 50.0]),
    targets=st.sampled_from(["pm1", "fisher"]),
)
def test_repeated_constant_and_zero_rows(rows, seed, kernel, alpha, targets):
    rng = np.random.default_rng(seed)
    data = np.array(rows, float)
    n = len(data)
    y = rng.permutation(np.arange(n) % 3)
    model = AdaptiveKDA(kernel, gamma=0.5, degree=2, alpha=alpha, targets=targets)
    model.partial_fit(data[:3], y[:3], classes=[0, 1, 2]).partial_fit(data[3:], y[3:])
    gone = np.sort(rng.permutation(n)[: rng.integers(1, n - 2)])
    model.forget(gone)
    stay = np.delete(np.arange(n), gone)
    K = resolve(kernel, data, gamma=0.5, degree=2).gram(data)
    # Equal rows with unlike labels have coefficients of opposite sign and size 1 / alpha, which cancel in the fits.
    classes, scale, rtol = np.arange(3), max(1.0, np.abs(model.dual_coef_).max()), tolerance(K, alpha) / 10
    expected = adaptive_decision(K, y, classes, stay, np.arange(n), alpha, targets)
    assert_close(model.decision_function(data), expected, rtol=rtol, scale=scale)
    expected = adaptive_loo_decision(K[np.ix_(stay, stay)], y[stay], classes, alpha, targets)
    for method in ("closed", "downdate"):
        assert_close(model.loo_decision_function(method), expected, rtol=rtol, scale=scale)


# -- the paper's example ----------------------------------------------------------------------------------------------

# Section 6.2, read from a damaged table: twelve first coordinates, but thirteen digits for the second ones, the last
# four of them 9 4 1 4. The classes are "nonlinearly separable"; those of the first eleven points lie on either side of
# x1 + x2 = 10.5, and it takes (4, 1) or (4, 4) as the twelfth to mix them. The last digit, beside a lost bracket, is
# taken for the stray one.

POINTS = np.column_stack([[2, 3, 2, 8, 6, 4, 9, 9, 9, 6, 7, 4], [7, 6, 2, 1, 4, 8, 5, 9, 4, 9, 4, 1]]).astype(float)
SIGNS = np.array([-1] * 5 + [1] * 7)


@pytest.mark.parametrize("last", [(4.0, 1.0), (4.0, 4.0)], ids=["(4, 1)", "(4, 4)"])
def test_boundaries_of_the_papers_example(last):
    points = POINTS.copy()
    points[11] = last
    side = np.sign(points.sum(1) - 10.5)
    assert (side[:11] == SIGNS[:11]).all()
    assert side[11] != SIGNS[11]
    axis = np.linspace(0, 11, 45)
    grid = np.column_stack([each.ravel() for each in np.meshgrid(axis, axis)])
    model = AdaptiveKDA(gamma=0.1, alpha=1e-7)
    removed = model.fit(points, SIGNS).forget([11]).decision_function(grid)
    inserted = model.fit(points, SIGNS).partial_fit([[9, 8]], [1]).decision_function(grid)
    for adaptive, rows, y in (
        (removed, points[:11], SIGNS[:11]),
        (inserted, np.vstack([points, [9, 8]]), np.append(SIGNS, 1)),
    ):
        both = np.vstack([rows, grid])
        K = np.exp(-0.1 * np.square(both[:, None] - both).sum(-1))
        train, test = np.arange(len(rows)), np.arange(len(rows), len(both))
        padded = np.append(y, np.ones(len(grid)))
        refit = adaptive_decision(K, padded, np.array([-1, 1]), train, test, 1e-7, "pm1")
        assert_close(adaptive, refit)
        np.testing.assert_array_equal(adaptive > 0, refit > 0)
