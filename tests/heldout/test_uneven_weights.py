"""Rows of nearly all or nearly no weight are left out as by a refit."""

import numpy as np
import pytest
from sklearn import model_selection as skl
from sklearn.base import clone
from sklearn.linear_model import Ridge

from foldless import LSSVC, LSSVR, FoldlessSearchCV, KernelFisherDiscriminant, kernels
from foldless._engine.heldout.leave_out import held_out_residuals
from foldless._engine.heldout.problem import Problem
from foldless._engine.heldout.sets import Sets
from foldless._engine.heldout.solution import Solution, loo_path
from foldless._engine.precision.choose import EachAlpha
from foldless._engine.tuning.criteria import CRITERIA
from foldless.model_selection import (
    Optimizer,
    cross_val_predict,
    cross_validate,
    leave_pair_out_auc,
    nested_cross_validate,
    permutation_test_score,
)
from support.cases import penalised
from support.refits import held_out_rows, labelings, leave_one_out, loo_fits, refit, share_of_pairs_in_order, signs
from support.tolerances import assert_close

# -- one row carries nearly all the weight of its class ---------------------------------------------------------------

READOUTS = {
    "three classes": (KernelFisherDiscriminant(gamma=0.3), 3),
    "three classes, coefficients": (KernelFisherDiscriminant(gamma=0.3, penalty="coef"), 3),
    "three classes, no intercept": (KernelFisherDiscriminant(gamma=0.3, fit_intercept=False), 3),
    "three classes, linear": (KernelFisherDiscriminant("linear"), 3),
    "fisher": (KernelFisherDiscriminant(gamma=0.3, threshold="fisher"), 2),
    "centroid": (KernelFisherDiscriminant(gamma=0.3, threshold="centroid"), 2),
    "one against all": (LSSVC(gamma=0.3), 3),
}


def one_heavy_row(n_classes, small, large, n=30):
    X = np.random.default_rng(0).normal(size=(n, 3))
    y = np.arange(n) % n_classes
    w = np.where(y == 0, small, 1.0)
    w[0] = large
    return X, y, w


@pytest.mark.many_cases
@pytest.mark.parametrize("name", READOUTS)
@pytest.mark.parametrize("size", [1e2, 1e4, 1e6])
def test_loo_of_a_row_with_nearly_all_weight_of_its_class_equals_refit(name, size):
    estimator, n_classes = READOUTS[name]
    X, y, w = one_heavy_row(n_classes, 1 / size, size)
    expected = held_out_rows(estimator, X, y, leave_one_out(30), "decision_function", sample_weight=w)
    actual = clone(estimator).fit(X, y, sample_weight=w).loo_decision_function()
    for row, other in zip(actual, expected, strict=True):
        assert_close(row, other, rtol=1e-8)


@pytest.mark.parametrize("name", READOUTS)
def test_loo_of_a_row_with_nearly_all_weight_equals_refit_in_single_precision(name):
    estimator, n_classes = READOUTS[name]
    X, y, w = one_heavy_row(n_classes, 1e-4, 1e4)
    X = X.astype(np.float32)
    expected = held_out_rows(estimator, X, y, leave_one_out(30), "decision_function", sample_weight=w)
    actual = clone(estimator).fit(X, y, sample_weight=w).loo_decision_function()
    for row, other in zip(actual, expected, strict=True):
        assert_close(row, other, rtol=2e-3)


@pytest.mark.parametrize("name", READOUTS)
def test_folds_with_a_heavy_row_equal_refits(name):
    estimator, n_classes = READOUTS[name]
    X, y, w = one_heavy_row(n_classes, 1e-6, 1e6, n=60)
    splits = list(skl.StratifiedKFold(20, shuffle=True, random_state=1).split(X, y))
    result = cross_validate(estimator, X, y, cv=splits, params={"sample_weight": w}, scoring="accuracy")
    assert result["path"].kind == "one fit"
    actual = cross_val_predict(estimator, X, y, cv=splits, method="decision_function", params={"sample_weight": w})
    expected = held_out_rows(estimator, X, y, splits, "decision_function", sample_weight=w)
    for row, other in zip(actual, expected, strict=True):
        assert_close(row, other, rtol=1e-8)


@pytest.mark.parametrize("threshold", ["fisher", "centroid"])
def test_pairs_with_a_heavy_row_equal_refits(threshold):
    estimator = KernelFisherDiscriminant(gamma=0.3, threshold=threshold)
    X, y, w = one_heavy_row(2, 1e-6, 1e6, n=16)
    expected = share_of_pairs_in_order(estimator, X, y, sample_weight=w)
    assert leave_pair_out_auc(estimator, X, y, params={"sample_weight": w}) == pytest.approx(expected, abs=1e-12)


@pytest.mark.many_cases
@pytest.mark.parametrize("name", ["three classes", "three classes, coefficients", "centroid", "fisher"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_permutation_scores_with_a_heavy_row_equal_refits(name, dtype):
    estimator, n_classes = READOUTS[name]
    X, y, w = one_heavy_row(n_classes, 1e-4, 1e4, n=36)
    X = X.astype(dtype)
    splits = list(skl.KFold(12).split(X))
    result = permutation_test_score(
        estimator, X, y, cv=splits, n_permutations=12, params={"sample_weight": w}, random_state=3
    )
    assert result.path.kind == "one fit"
    for score, order in zip(result.permutation_scores, labelings(36, 12, seed=3)[1:], strict=True):
        labels = y[order]
        predicted = held_out_rows(estimator, X, labels, splits, "predict", sample_weight=w)
        assert score == pytest.approx(np.mean(predicted == labels), abs=1e-12)


@pytest.mark.parametrize("threshold", ["centroid", "loo"])
def test_nested_search_with_a_heavy_row_equals_refits(threshold):
    X, y, w = one_heavy_row(2, 1e-5, 1e5, n=24)
    search = FoldlessSearchCV(
        KernelFisherDiscriminant(gamma=0.3, threshold=threshold), {"alpha": [0.1, 1.0, 10.0]}, criterion="press"
    )
    splits = list(skl.StratifiedKFold(4).split(X, y))
    result = nested_cross_validate(search, X, y, cv=splits, params={"sample_weight": w})
    for (train, test), params, score in zip(splits, result.best_params, result.test_score, strict=True):
        alone = refit(search, X, y, train, sample_weight=w)
        assert params == alone.best_params_
        assert score == pytest.approx(np.mean(alone.predict(X[test]) == y[test]), abs=1e-12)


# -- rows of tiny weight ---------------------------------------------------------------------------------------------


@pytest.mark.many_cases
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("n_features", [3, 70])
@pytest.mark.parametrize("make", [Ridge, lambda **options: LSSVR("linear", **options)], ids=["Ridge", "LSSVR"])
@pytest.mark.parametrize("order", ["light first", "heavy first"])
def test_rows_of_tiny_weight_are_predicted_as_by_refits(make, n_features, intercept, order):
    rng, n = np.random.default_rng(0), 400
    X = rng.normal(size=(n, n_features))
    y = X[:, 0] + 0.3 * rng.normal(size=n) + 5
    w = np.exp(-(n - 1 - np.arange(n)) / 5)
    w = w if order == "light first" else w[::-1].copy()
    cv, estimator = skl.KFold(40, shuffle=True, random_state=0), make(fit_intercept=intercept)
    params = {"sample_weight": w}
    actual = cross_val_predict(estimator, X, y, cv=cv, params=params)
    assert_close(actual, skl.cross_val_predict(estimator, X, y, cv=cv, params=params), rtol=1e-8)
    one = cross_val_predict(estimator, X, y, cv=skl.LeaveOneOut(), params=params)
    assert_close(one, skl.cross_val_predict(estimator, X, y, cv=skl.LeaveOneOut(), params=params), rtol=1e-8)


def test_rows_of_tiny_weight_with_confounds_equal_refits():
    rng, n = np.random.default_rng(0), 90
    X, C = rng.normal(size=(n, 2)), rng.normal(size=(n, 2))
    y, w = X[:, 0] + C[:, 1] + 0.1 * rng.normal(size=n) + 5, np.exp(-np.arange(n) / 2.0)
    splits = list(skl.KFold(30).split(X))
    actual = cross_val_predict(LSSVR("linear"), X, y, cv=splits, params={"sample_weight": w}, confounds=C)
    expected = held_out_rows(LSSVR("linear"), X, y, splits, "predict", sample_weight=w, confounds=C)
    assert_close(actual, expected, rtol=1e-8)


# -- grids of alphas, smooth criteria ----------------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
@pytest.mark.parametrize("q", [0, 1, 2])
def test_loo_of_light_rows_along_a_grid_of_alphas_equals_refits(penalty, q):
    """Eigenvectors would lose the light rows: each alpha has a factor of its own."""
    rng, n, alphas = np.random.default_rng(0), 24, [1e-2, 1.0, 30.0]
    X, Y, w = rng.normal(size=(n, 3)), rng.normal(size=(n, 2)), 10.0 ** np.linspace(-14, 0, n)
    Q, kernel = np.column_stack([np.ones(n), rng.normal(size=n)])[:, :q], kernels.RBF(0.2)
    problem = Problem.of(penalised(kernel, penalty, X, w), X, alpha=1.0, Q=Q, sample_weight=w)
    assert isinstance(problem.path(np.arange(n)), EachAlpha)
    found = Y - loo_path(problem, np.arange(n), Y, alphas)
    for alpha, fits in zip(alphas, found, strict=True):
        expected = loo_fits(kernel.gram(X), Y, alpha, w=w, Q=Q, penalty=penalty)
        for row, other in zip(fits, expected, strict=True):
            assert_close(row, other, scale=1.0)


@pytest.mark.parametrize("ratio", [1e3, 1e7])
def test_search_with_light_rows_scores_as_refits(ratio):
    """The roots of the weights differ by less and by more than 2^10; the criterion counts all rows alike."""
    rng, n = np.random.default_rng(0), 24
    X, y, w = rng.normal(size=(n, 3)), rng.normal(size=n), np.geomspace(1.0, ratio, n) ** 2 / ratio
    grid = {"alpha": [1e-2, 1.0, 30.0]}
    search = FoldlessSearchCV(LSSVR(gamma=0.2), grid, criterion_weight=None).fit(X, y, sample_weight=w)
    for alpha, loss in zip(grid["alpha"], search.cv_results_["mean_test_criterion"], strict=True):
        fits = held_out_rows(LSSVR(gamma=0.2, alpha=alpha), X, y, leave_one_out(n), "predict", sample_weight=w)
        assert loss == pytest.approx(np.mean((y - fits) ** 2), rel=1e-8)


@pytest.mark.parametrize("n_confounds", [0, 2])
@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
def test_loo_residual_of_a_row_with_nearly_all_weight_equals_refit(penalty, n_confounds):
    """Those that smooth criteria and their gradients are made of: what the scores leave of the targets."""
    rng, n = np.random.default_rng(0), 20
    X, Y, w = rng.normal(size=(n, 3)), rng.normal(size=(n, 2)), np.full(n, 1e-6)
    w[4] = 1e6
    Q, kernel = np.column_stack([np.ones(n), rng.normal(size=(n, n_confounds))]), kernels.RBF(0.2)
    functions = penalised(kernel, penalty, X, w)
    problem = Problem.of(functions, X, alpha=1e6, Q=Q, sample_weight=w, n_confounds=n_confounds)
    found = held_out_residuals(Solution.fit(problem, np.arange(n), Y), Sets.leave_one_out(n))
    options = {"Q": Q, "penalty": penalty, "n_confounds": n_confounds}
    assert_close(found[4], Y[4] - loo_fits(kernel.gram(X), Y, 1e6, at=[4], w=w, **options)[0])


@pytest.mark.filterwarnings("ignore::foldless._engine.heldout.caution.HugePenaltyWarning")  # without the heavy row
@pytest.mark.parametrize("criterion", ["smooth_error", "smooth_ber", "smooth_auc", "hinge2"])
def test_smooth_criterion_with_a_row_of_nearly_all_weight_equals_refits(criterion):
    X, y, w = one_heavy_row(2, 1e-6, 1e6, n=24)
    w[1:] = 1e-6
    estimator = LSSVC(gamma=0.3, alpha=1e6)
    options = {"criterion": criterion, "criterion_weight": None, "refit": False}
    search = FoldlessSearchCV(estimator, method=Optimizer("gradient", max_iter=1), **options)
    search.fit(X, y, sample_weight=w)
    estimator.set_params(**search.best_params_)
    fits = held_out_rows(estimator, X, y, leave_one_out(24), "decision_function", sample_weight=w)
    expected = CRITERIA[criterion](fits[:, None], signs(y), np.full((24, 1), 1 / 24))[0].sum()
    assert search.best_criterion_ == pytest.approx(expected, rel=1e-9)
