"""The one-standard-error rule, and standard errors of the criterion, against plain refits."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import KFold, ParameterGrid, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from foldless import LSSVC, LSSVR, FoldlessSearchCV
from foldless.model_selection import RefitWarning, cross_val_score, nested_cross_validate, permutation_test_score
from foldless.tuning.average import simplest
from support.refits import fits_of_candidate, signs
from support.searches import BINARY, KFDA, LABELS, VALUES, N, X, splits_of

GRID = {"alpha": [0.3, 1.0, 5.0], "gamma": [0.03, 0.3]}


def by_refits(estimator, y, splits):
    """Criterion and standard error of every candidate: means over rows of squared residuals, one against all."""
    found = []
    for params in ParameterGrid(GRID):
        rows, fits = fits_of_candidate(estimator, params, y, splits, X, None)
        of_rows = np.zeros(N)
        losses = (signs(y)[rows] - fits) ** 2
        np.add.at(of_rows, rows, (losses - losses.mean(0)).sum(1) / len(rows))
        found.append((losses.mean(0).sum(), np.sqrt((of_rows**2).sum())))
    return np.array(found).T


@pytest.mark.parametrize(
    ("estimator", "y", "splitter"),
    [
        (LSSVC(), LABELS, "leave-one-out"),
        (LSSVC(), BINARY, "KFold"),
        (KFDA(), LABELS, "KFold"),
        (LSSVR(), VALUES, "leave-one-out"),
    ],
)
def test_the_simplest_setting_within_a_standard_error_equals_refits(estimator, y, splitter):
    splits = splits_of(splitter)
    cv = None if splitter == "leave-one-out" else splits
    search = FoldlessSearchCV(estimator, GRID, cv=cv, refit="one_se").fit(X, y)
    losses, errors = by_refits(estimator, y, splits)
    np.testing.assert_allclose(search.cv_results_["mean_test_criterion"], losses, rtol=1e-8)
    np.testing.assert_allclose(search.cv_results_["se_test_criterion"], errors, rtol=1e-7)
    near = losses <= losses.min() + errors[losses.argmin()]
    settings = list(ParameterGrid(GRID))
    expected = max(np.flatnonzero(near), key=lambda i: (settings[i]["alpha"], -settings[i]["gamma"]))
    assert search.best_index_ == expected
    assert search.best_params_ == settings[expected]
    assert search.best_criterion_ == pytest.approx(losses[expected])
    assert search.best_criterion_se_ == pytest.approx(errors[expected])
    assert search.best_estimator_.alpha == settings[expected]["alpha"]
    if cv is not None:
        assert search.best_score_ == pytest.approx(cross_val_score(search.best_estimator_, X, y, cv=cv).mean())
    best = FoldlessSearchCV(estimator, GRID, cv=cv).fit(X, y)
    assert best.best_index_ == losses.argmin()
    assert best.best_params_["alpha"] <= search.best_params_["alpha"]


def test_the_simplest_has_the_largest_alpha_then_the_least_gamma_then_the_least_loss():
    params = [
        {"svm__alpha": a, "svm__kernel__gamma": g} for a, g in [(1.0, 1.0), (10.0, 2.0), (10.0, 1.0), (99.0, 1.0)]
    ]
    losses = np.array([0.10, 0.12, 0.12, 0.2])
    assert simplest(params, losses, 0, 0.03) == 2
    assert simplest(params, losses, 0, 0.0) == 0
    assert simplest(params, losses, 0, 0.5) == 3
    mixed = [{"alpha": 1.0, "gamma": "scale"}, {"alpha": 1.0, "gamma": "scale"}, {"kernel": "linear"}]
    assert simplest(mixed, np.array([0.2, 0.1, np.nan]), 1, 0.5) == 1


def test_nested_searches_permutation_tests_and_pipelines_follow_the_rule():
    grid = {"alpha": GRID["alpha"]}
    search = FoldlessSearchCV(LSSVC(gamma=0.1), grid, refit="one_se")
    cv = StratifiedKFold(3)
    nested = nested_cross_validate(search, X, BINARY, cv=cv)
    for (train, _), params in zip(cv.split(X, BINARY), nested.best_params, strict=True):
        assert clone(search).fit(X[train], BINARY[train]).best_params_ == params
    with pytest.warns(RefitWarning, match="the search is repeated for every permutation"):
        result = permutation_test_score(search, X, BINARY, cv=cv, n_permutations=3)
    assert result[0] == pytest.approx(nested.mean_test_score)
    pipeline = make_pipeline(StandardScaler(), LSSVC(gamma=0.1))
    behind = FoldlessSearchCV(pipeline, {"lssvc__alpha": GRID["alpha"]}, refit="one_se").fit(X, BINARY)
    scaled = FoldlessSearchCV(LSSVC(gamma=0.1), grid, refit="one_se").fit(StandardScaler().fit_transform(X), BINARY)
    assert behind.best_params_["lssvc__alpha"] == scaled.best_params_["alpha"]


def test_probabilities_of_the_chosen_ridge_classifier_are_its_own():
    search = FoldlessSearchCV(RidgeClassifier(), {"alpha": [1.0, 10.0, 100.0]}, cv=KFold(3), refit="one_se")
    alone = FoldlessSearchCV(RidgeClassifier(), {"alpha": [search.fit(X, BINARY).best_params_["alpha"]]}, cv=KFold(3))
    np.testing.assert_allclose(search.predict_proba(X), alone.fit(X, BINARY).predict_proba(X), rtol=1e-6)


def test_standard_errors_are_unknown_for_criteria_that_are_no_means_over_rows():
    search = FoldlessSearchCV(LSSVC(), {"alpha": [0.1, 1.0]}, criterion="auc").fit(X, BINARY)
    assert np.isnan(search.best_criterion_se_)
    assert np.isnan(search.cv_results_["se_test_criterion"]).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"criterion": "auc"}, "refit='one_se' needs a criterion that is a mean over rows"),
        ({"scoring": "accuracy"}, "refit='one_se' goes by the standard error of the criterion"),
        ({"share": "none"}, "refit='one_se' needs share='all'"),
        ({"method": "gradient"}, "refit='one_se' chooses among the settings of a grid; use method='grid'"),
        ({"average": True}, "average=True takes all nearly best settings"),
        ({"refit": "accuracy"}, "refit='accuracy' names a score"),
    ],
)
def test_what_the_rule_cannot_judge_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        FoldlessSearchCV(LSSVC(), **{"refit": "one_se"} | options).fit(X, BINARY)


def test_searches_by_parts_of_the_rows_are_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"judged on all rows.* use method='grid' or param_grid"):
        FoldlessSearchCV(LSSVC(), refit="one_se").fit(rng.normal(size=(600, 2)), np.arange(600) % 2)
