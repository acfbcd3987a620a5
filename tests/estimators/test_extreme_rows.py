"""Two rows, outlying, one-hot and repeated rows: held-out values equal refits."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, LeaveOneOut
from sklearn.model_selection import cross_val_predict as by_refit

from foldless import LSSVC, LSSVR, KernelFisherDiscriminant
from foldless.model_selection import cross_val_predict
from foldless.reference import heldout_fits
from support.extremes import (
    EPS,
    GAMMA,
    condition,
    design,
    estimator_and_targets,
    every_kernel,
    every_penalty,
    gram,
    loo_values,
)
from support.refits import signs
from support.tolerances import assert_near

# -- few rows ----------------------------------------------------------------------------------------------------------


@every_kernel
@every_penalty
@pytest.mark.parametrize("alpha", [1e-6, 1.0, 1e6])
@pytest.mark.filterwarnings("ignore::foldless._engine.heldout.caution.HugePenaltyWarning")
def test_of_two_rows_each_is_predicted_by_the_other(kernel, penalty, alpha):
    X = np.random.default_rng(53).normal(size=(2, 3))
    parameters = {"kernel": kernel, "gamma": GAMMA, "alpha": alpha, "penalty": penalty}
    tolerance = max(1e-8, 100 * EPS * condition(gram(X, kernel), penalty, alpha))
    assert_near(LSSVR(**parameters).fit(X, [1.0, 5.0]).loo_predict(), [5.0, 1.0], tolerance)
    assert_near(LSSVC(**parameters).fit(X, ["a", "b"]).loo_decision_function(), [1.0, -1.0], tolerance)
    for threshold in ("pm1", "fisher", "centroid"):
        model = KernelFisherDiscriminant(threshold=threshold, **parameters).fit(X, ["a", "b"])
        assert np.isfinite(model.loo_decision_function()).all()
        assert model.loo_predict().tolist() == ["b", "a"]
        assert model.predict(X).tolist() == ["a", "b"]


@every_kernel
@every_penalty
def test_a_training_part_of_one_row_has_no_cut(kernel, penalty):
    X = np.random.default_rng(53).normal(size=(2, 3))
    model = KernelFisherDiscriminant(kernel, gamma=GAMMA, penalty=penalty, threshold="loo").fit(X, [0, 1])
    assert model.loo_predict().tolist() == [1, 0]


@every_kernel
@every_penalty
@pytest.mark.parametrize("n", [3, 4, 5])
def test_loo_of_a_handful_of_rows_equals_refits(kernel, penalty, n):
    X, _, _, values = (part[:n] for part in design("few features"))
    model = LSSVR(kernel, gamma=GAMMA, penalty=penalty, alpha=0.1).fit(X, values)
    K = gram(X, kernel)
    folds = [(np.delete(np.arange(n), i), [i]) for i in range(n)]
    expected = [heldout_fits(K, values[:, None], train, test, 0.1, penalty=penalty)[0, 0] for train, test in folds]
    assert_near(model.loo_predict(), expected, 1e-8)


# -- leverage ----------------------------------------------------------------------------------------------------------


def ridge_splits(X, y, alpha, splits, outputs):
    """Held-out ridge fits of the regression targets."""
    fits = np.empty((len(X), outputs))
    for train, test in splits:
        ridge = Ridge(alpha=alpha, solver="svd").fit(X[train], y[train])
        fits[test] = ridge.predict(X[test]).reshape(len(test), outputs)
    return fits


def assert_near_by_row(found, expected, tolerance):
    """Every row within ``tolerance`` of its own size, or of one."""
    assert np.isfinite(found).all()
    worst = np.abs(found - expected) / np.maximum(1.0, np.abs(expected))
    assert worst.max() <= tolerance, f"row {worst.argmax()} differs by {worst.max():.3g}, allowed {tolerance:.3g}"


@pytest.mark.many_cases
@pytest.mark.parametrize("alpha", [1e-6, 1e-3, 1.0, 1e3])
@pytest.mark.parametrize("kind", ["LSSVC, two classes", "LSSVC, three classes", "LSSVR"])
@pytest.mark.parametrize("intercept", [True, False])
def test_loo_with_a_huge_outlier_equals_refits(kind, alpha, intercept):
    rng = np.random.default_rng(58)
    n = 40
    X = rng.normal(size=(n, 4))
    codes, values = rng.permutation(n), X[:, 0] + rng.normal(size=n)
    X[7] *= 1e6
    model, y, method = estimator_and_targets(
        kind, X, codes % 2, codes % 3, values, kernel="linear", alpha=alpha, fit_intercept=intercept
    )
    Y = signs(y)
    ridge = Ridge(alpha=alpha, solver="svd", fit_intercept=intercept)
    loo, folds = by_refit(ridge, X, Y, cv=LeaveOneOut()), by_refit(ridge, X, Y, cv=KFold(8))
    assert_near_by_row(loo_values(model.fit(X, y)).reshape(Y.shape), loo.reshape(Y.shape), 1e-8)
    found = cross_val_predict(model, X, y, cv=KFold(8), method=method)
    assert_near_by_row(found.reshape(Y.shape), folds.reshape(Y.shape), 1e-8)
    fits = ridge.fit(X, Y).predict(X).reshape(Y.shape)
    assert_near_by_row(getattr(model, method)(X).reshape(Y.shape), fits, 1e-8)


@pytest.mark.parametrize("kind", ["Fisher, two classes", "Fisher, two centroids", "Fisher, three classes"])
@pytest.mark.parametrize("alpha", [1.0, 1e3])
def test_discriminants_without_an_outlier_are_those_of_a_refit(kind, alpha):
    rng = np.random.default_rng(59)
    n = 40
    codes = rng.permutation(n)
    X = rng.normal(size=(n, 4)) + (codes % 3)[:, None] * [1.0, 0.5, 0.0, 0.0]
    X[7] *= 1e6
    model, y, _ = estimator_and_targets(kind, X, codes % 2, codes % 3, None, kernel="linear", alpha=alpha)
    found = loo_values(model.fit(X, y))
    # without the outlier everything is well conditioned, and a refit has all its digits
    without = np.delete(np.arange(n), 7)
    expected = type(model)(**model.get_params()).fit(X[without], y[without]).decision_function(X[7:8])
    np.testing.assert_allclose(found[7], expected[0], rtol=1e-8 if len(model.classes_) == 2 else 1e-7)


@pytest.mark.many_cases
@pytest.mark.parametrize("alpha", [1e-10, 1e-6, 1e-2, 1.0])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("kind", ["LSSVC, two classes", "LSSVC, three classes", "LSSVR"])
def test_loo_of_rows_with_a_feature_of_their_own_equals_refits(kind, form, alpha):
    """Left out, such a row is predicted by the features it shares; its own has no weight."""
    rng = np.random.default_rng(60)
    n, own = 40, 6
    X = np.hstack([rng.normal(size=(n, 3)), np.eye(n)[:, :own]])
    codes, values = rng.permutation(n), X[:, 0] + rng.normal(size=n)
    model, y, method = estimator_and_targets(kind, X, codes % 2, codes % 3, values, kernel="linear", alpha=alpha)
    Y = signs(y)
    folds = list(KFold(8).split(X))
    loo = [(np.delete(np.arange(n), i), [i]) for i in range(n)]
    found = loo_values(model.fit(form(X), y)).reshape(Y.shape)
    assert_near(found, ridge_splits(X, Y, alpha, loo, Y.shape[1]), 1e-7)
    for i in range(own):  # the same without the column
        kept = np.delete(np.arange(X.shape[1]), 3 + i)
        expected = ridge_splits(X[:, kept], Y, alpha, [loo[i]], Y.shape[1])[i]
        assert_near(found[i], expected, 1e-7)
    found = cross_val_predict(model, form(X), y, cv=folds, method=method).reshape(Y.shape)
    assert_near(found, ridge_splits(X, Y, alpha, folds, Y.shape[1]), 1e-7)


@pytest.mark.parametrize("alpha", [1e-10, 1e-2, 1.0, 1e4])
@every_penalty
def test_rows_that_share_nothing_are_predicted_by_the_mean_of_the_others(alpha, penalty):
    n = 12
    y = np.random.default_rng(61).normal(size=n)
    model = LSSVR("linear", alpha=alpha, penalty=penalty).fit(np.eye(n), y)
    assert_near(model.loo_predict(), (y.sum() - y) / (n - 1), 1e-8)


@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
@pytest.mark.parametrize("alpha", [1e-10, 1e-2, 1.0])
def test_repeated_rows_equal_integer_weights(alpha, penalty):
    """Rows given twice fit as rows of weight two (with penalised coefficients the two share the coefficient)."""
    X, _, _, y = design("few features")
    times = np.random.default_rng(62).integers(1, 4, len(X))
    if penalty == "coef":
        times[:] = 1
    weighted = LSSVR("linear", alpha=alpha, penalty=penalty).fit(X, y, sample_weight=times)
    repeated = LSSVR("linear", alpha=alpha, penalty=penalty).fit(np.repeat(X, times, 0), np.repeat(y, times))
    assert_near(weighted.predict(X), repeated.predict(X), max(1e-8, 100 * EPS * condition(X @ X.T, penalty, alpha)))


# -- kernels that are positive only next to an intercept ---------------------------------------------------------------


@pytest.mark.parametrize("alpha", [1e-4, 1e-2, 1.0, 1e2])
def test_squared_distances_with_an_intercept_are_the_linear_kernel(alpha):
    """-|x - z|^2 / 2 and x.z differ by what an intercept absorbs; refusing the former would do as well."""
    X, _, _, y = design("few features")
    K = -0.5 * cdist(X, X, "sqeuclidean")
    try:
        model = LSSVR("precomputed", alpha=alpha).fit(K, y)
    except ValueError as error:
        assert "indefinite" in str(error)  # noqa: PT017
        return
    expected = LSSVR("linear", alpha=alpha).fit(X, y)
    assert_near(model.loo_predict(), expected.loo_predict(), 1e-8)
    assert_near(model.predict(K), expected.predict(X), 1e-8)
