"""Standard errors of the criterion of a search, against plain refits."""

import numpy as np
import pytest
from sklearn.model_selection import KFold, ParameterGrid

from foldless import LSSVC, LSSVR, FoldlessSearchCV, criteria
from foldless.criteria import Criterion
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
def test_criteria_and_their_standard_errors_equal_refits(estimator, y, splitter):
    splits = splits_of(splitter)
    cv = None if splitter == "leave-one-out" else splits
    search = FoldlessSearchCV(estimator, GRID, cv=cv).fit(X, y)
    losses, errors = by_refits(estimator, y, splits)
    np.testing.assert_allclose(search.cv_results_["mean_test_criterion"], losses, rtol=1e-8)
    np.testing.assert_allclose(search.cv_results_["se_test_criterion"], errors, rtol=1e-7)
    assert search.best_index_ == losses.argmin()
    assert search.best_criterion_se_ == pytest.approx(errors[losses.argmin()])


@pytest.mark.parametrize("estimator", [LSSVC(), KFDA()], ids=str)
def test_errors_of_the_classifiers_own_decisions_have_their_standard_error(estimator):
    search = FoldlessSearchCV(estimator, GRID, criterion="multiclass_error").fit(X, LABELS)
    params = search.best_params_
    wrong = estimator.__class__(**params).fit(X, LABELS).loo_predict() != LABELS
    assert search.best_criterion_ == pytest.approx(wrong.mean())
    assert search.best_criterion_se_ == pytest.approx(wrong.std() / np.sqrt(N))


def test_rows_that_are_tested_twice_are_no_more_rows():
    once, twice = (
        FoldlessSearchCV(LSSVR(), GRID, cv=list(KFold(5).split(X)) * repeats).fit(X, VALUES) for repeats in (1, 2)
    )
    np.testing.assert_allclose(
        once.cv_results_["se_test_criterion"], twice.cv_results_["se_test_criterion"], rtol=1e-10
    )


def test_a_criterion_of_ones_own_may_say_that_it_is_a_mean_over_rows():
    for rowwise in (False, True):
        own = Criterion(criteria.press, smooth=True, labels=False, rowwise=rowwise)
        search = FoldlessSearchCV(LSSVR(), GRID, criterion=own).fit(X, VALUES)
        assert np.isfinite(search.best_criterion_se_) == rowwise


def test_standard_errors_are_unknown_for_criteria_that_are_no_means_over_rows():
    search = FoldlessSearchCV(LSSVC(), {"alpha": [0.1, 1.0]}, criterion="auc").fit(X, BINARY)
    assert np.isnan(search.best_criterion_se_)
    assert np.isnan(search.cv_results_["se_test_criterion"]).all()


@pytest.mark.parametrize("refit", ["one_se", "accuracy"])
def test_a_score_that_is_not_asked_for_cannot_decide(refit):
    with pytest.raises(ValueError, match=f"refit='{refit}' names a score"):
        FoldlessSearchCV(LSSVC(), refit=refit).fit(X, BINARY)
