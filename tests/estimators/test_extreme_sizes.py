"""Tiny and huge penalties, features, targets and weights: held-out values equal refits."""

import numpy as np
import pytest
from sklearn.model_selection import KFold

from foldless import LSSVR, KernelFisherDiscriminant
from foldless.model_selection import cross_val_predict
from foldless.reference import discriminant
from support.extremes import (
    EPS,
    GAMMA,
    compare_with_refits,
    design,
    estimator_and_targets,
    every_design,
    every_kernel,
    every_kind,
    every_penalty,
    gram,
    loo_values,
)
from support.tolerances import assert_near

# -- any alpha, any shape ----------------------------------------------------------------------------------------------


@pytest.mark.many_cases
@pytest.mark.parametrize("alpha", [1e-12, 1.0, 1e12])  # those between: tests/slow
@every_design
@every_kernel
@every_penalty
@every_kind
@pytest.mark.filterwarnings("ignore::foldless._engine.heldout.caution.HugePenaltyWarning")
def test_heldout_values_are_those_of_refits(kind, penalty, kernel, rows, alpha):
    compare_with_refits(kind, penalty, kernel, rows, alpha)


@pytest.mark.parametrize("alpha", [1e-8, 1e-4, 1.0, 1e4])
@pytest.mark.parametrize("rows", ["few features", "more features than rows"])
@every_kernel
@pytest.mark.parametrize("n_classes", [2, 3])
def test_discriminants_are_those_of_the_eigenproblem(n_classes, kernel, rows, alpha):
    """With separated classes the decisions grow like 1 / alpha."""
    X, two, three, _ = design(rows)
    y, n, K = (two if n_classes == 2 else three), len(X), gram(X, kernel)
    model = KernelFisherDiscriminant(kernel, gamma=GAMMA, alpha=alpha, threshold="centroid").fit(X, y)
    tolerance = max(1e-8, 300 * EPS * (1 + np.linalg.norm(K, 2) / alpha))  # the condition of S_w + alpha I

    def oracle(train, test):
        decision = discriminant(K, y, train, test, alpha)[2]
        return decision[:, 1] - decision[:, 0] if n_classes == 2 else decision

    everything = np.arange(n)
    assert_near(model.decision_function(X), oracle(everything, everything), tolerance)
    expected = np.concatenate([oracle(np.delete(everything, i), [i]) for i in range(n)])
    assert_near(model.loo_decision_function(), expected, tolerance)


@every_kind
@pytest.mark.parametrize("alpha", [1e-12, 1e-8])
def test_penalised_coefficients_at_the_end_of_precision_give_numbers_or_an_error_of_ours(kind, alpha):
    """No digit is promised at such a condition, and no warning of a library below is understood there."""
    X, *ys = design("duplicated rows")
    X = 30 * np.hstack([X, np.random.default_rng(63).normal(size=(len(X) // 2, 36)).repeat(2, axis=0)])
    model, y, method = estimator_and_targets(kind, X, *ys, kernel="linear", alpha=alpha, penalty="coef")
    try:
        found = cross_val_predict(model, X, y, cv=KFold(6, shuffle=True, random_state=0), method=method)
    except ValueError as error:
        assert "alpha" in str(error)  # noqa: PT017
    else:
        assert np.isfinite(found).all()


@every_kind
@every_kernel
@pytest.mark.filterwarnings("ignore::foldless._engine.heldout.caution.HugePenaltyWarning")
def test_labels_do_not_depend_on_a_huge_alpha_where_they_have_settled(kind, kernel):
    """From one huge alpha to the next the decisions shrink, and the labels stay."""
    X, *ys = design("few features")
    labels = []
    for alpha in (1e7, 1e8, 1e9):
        model, y, _ = estimator_and_targets(kind, X, *ys, kernel=kernel, gamma=GAMMA, alpha=alpha)
        labels.append(model.fit(X, y).loo_predict())
    if isinstance(model, LSSVR):
        assert_near(labels[0], labels[2], 1e-5)
    else:
        np.testing.assert_array_equal(labels[0], labels[1])
        np.testing.assert_array_equal(labels[1], labels[2])


@pytest.mark.parametrize("alpha", [1e-12, 1e-3, 1e3])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_explained_variance_is_a_share_however_well_the_classes_separate(kernel, alpha):
    rng = np.random.default_rng(51)
    X, y = 30 * rng.normal(size=(18, 40)), np.arange(18) % 3
    model = KernelFisherDiscriminant(kernel, gamma=1e-5, alpha=alpha).fit(X, y)
    assert np.isfinite(model.explained_variance_ratio_).all()
    assert model.explained_variance_ratio_.sum() == pytest.approx(1.0)
    np.testing.assert_array_equal(model.predict(X), y)


# -- features of any size ----------------------------------------------------------------------------------------------


@pytest.mark.many_cases
@pytest.mark.parametrize("size", [1e150, 1e-150])
@pytest.mark.parametrize("rows", ["few features", "more features than rows", "all of these"])
@pytest.mark.parametrize("alpha", [1e-3, 1.0])
@every_kind
def test_loo_of_linear_kernels_is_the_same_for_scaled_features_and_alpha(kind, alpha, rows, size):
    X, *ys = design(rows)
    model, y, method = estimator_and_targets(kind, X, *ys, kernel="linear", alpha=alpha)
    scaled, _, _ = estimator_and_targets(kind, X, *ys, kernel="linear", alpha=alpha * size**2)
    model.fit(X, y)
    scaled.fit(X * size, y)
    assert_near(loo_values(scaled), loo_values(model), 1e-8)
    assert_near(getattr(scaled, method)(X * size), getattr(model, method)(X), 1e-8)
    folds = KFold(6)
    assert_near(
        cross_val_predict(scaled, X * size, y, cv=folds, method=method),
        cross_val_predict(model, X, y, cv=folds, method=method),
        1e-8,
    )


@pytest.mark.parametrize("size", [1e70, 1e-70])
@pytest.mark.parametrize("rows", ["few features", "more features than rows"])
@every_kind
def test_loo_with_penalised_coefficients_is_the_same_for_scaled_features_and_alpha(kind, rows, size):
    X, *ys = design(rows)
    model, y, method = estimator_and_targets(kind, X, *ys, kernel="linear", alpha=1.0, penalty="coef")
    scaled, _, _ = estimator_and_targets(kind, X, *ys, kernel="linear", alpha=size**4, penalty="coef")
    model.fit(X, y)
    scaled.fit(X * size, y)
    assert_near(loo_values(scaled), loo_values(model), 1e-8)
    assert_near(getattr(scaled, method)(X * size), getattr(model, method)(X), 1e-8)


@pytest.mark.parametrize("size", [1e150, 1e-150])
@every_penalty
@every_kind
def test_loo_of_rbf_kernels_is_the_same_for_scaled_features_and_gamma(kind, penalty, size):
    X, *ys = design("few features")
    model, y, method = estimator_and_targets(kind, X, *ys, gamma=GAMMA, penalty=penalty)
    scaled, _, _ = estimator_and_targets(kind, X, *ys, gamma=GAMMA / size**2, penalty=penalty)
    by_scale, _, _ = estimator_and_targets(kind, X, *ys, gamma="scale", penalty=penalty)
    expected = loo_values(model.fit(X, y))
    assert_near(loo_values(scaled.fit(X * size, y)), expected, 1e-8)
    assert_near(loo_values(by_scale.fit(X * size, y)), loo_values(by_scale.fit(X, y)), 1e-8)
    assert_near(getattr(scaled, method)(X * size), getattr(model, method)(X), 1e-8)


@pytest.mark.parametrize("size", [1e-200, 1e150, 1e200, 1e300])
@every_kernel
@every_penalty
def test_targets_of_any_size_give_predictions_of_that_size(kernel, penalty, size):
    X, _, _, y = design("few features")
    y = y / np.abs(y).max()
    model, scaled = (LSSVR(kernel, gamma=GAMMA, penalty=penalty).fit(X, values) for values in (y, y * size))
    assert_near(scaled.predict(X) / size, model.predict(X), 1e-10)
    assert_near(scaled.loo_predict() / size, model.loo_predict(), 1e-10)
    folds = KFold(5)
    assert_near(
        cross_val_predict(scaled, X, y * size, cv=folds) / size, cross_val_predict(model, X, y, cv=folds), 1e-10
    )


@pytest.mark.parametrize("size", [1e-100, 1e100])
@every_kernel
@every_penalty
@every_kind
def test_loo_is_the_same_for_weights_and_alpha_scaled_together(kind, penalty, kernel, size):
    X, *ys = design("few features")
    weights = np.random.default_rng(52).uniform(0.5, 2.0, len(X))
    model, y, _ = estimator_and_targets(kind, X, *ys, kernel=kernel, gamma=GAMMA, penalty=penalty, alpha=0.3)
    scaled, _, _ = estimator_and_targets(kind, X, *ys, kernel=kernel, gamma=GAMMA, penalty=penalty, alpha=0.3 * size)
    expected = loo_values(model.fit(X, y, sample_weight=weights))
    assert_near(loo_values(scaled.fit(X, y, sample_weight=weights * size)), expected, 1e-8)
