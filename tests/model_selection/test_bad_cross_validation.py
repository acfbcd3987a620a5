"""Cross-validation refuses what it cannot do, and leaves the estimator as it was."""

import re

import numpy as np
import pytest
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from foldless import LSSVC, LSSVR, AdaptiveKDA, FoldlessSearchCV
from foldless.model_selection import (
    RefitWarning,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    leave_pair_out_auc,
)
from support.bad_input import N, data, every_classifier, every_kind, with_value


@pytest.mark.parametrize(
    "estimator",
    [SVC(), make_pipeline(StandardScaler(), LSSVC()), Ridge(alpha=0.0), Ridge(positive=True)],
    ids=lambda estimator: type(estimator).__name__,
)
def test_pairs_of_estimators_without_closed_form_are_not_refitted_in_silence(estimator):
    X, y = data(LSSVC)
    name = type(estimator).__name__
    with pytest.raises(ValueError, match=rf"no closed form for {name} \(.+\).*refit for every pair.*scoring='roc_auc'"):
        leave_pair_out_auc(estimator, X, y)


@every_classifier
@pytest.mark.parametrize("n_classes", [2, 3])
def test_pairs_of_a_class_with_one_row_are_refused(kind, n_classes):
    X, y = data(kind)
    y = np.where(np.arange(N) == 5, n_classes - 1, y * (n_classes - 2))
    assert np.bincount(y).min() == 1
    with pytest.raises(ValueError, match="at least two rows of every class: leaving out a pair empties a class"):
        leave_pair_out_auc(kind(), X, y)


def test_pairs_of_a_class_with_one_row_of_positive_weight_are_refused():
    X, y = data(LSSVC)
    weights = np.where(y == 0, 1.0, np.arange(N) == 5)
    with pytest.raises(ValueError, match="at least two rows of every class"):
        leave_pair_out_auc(LSSVC(), X, y, params={"sample_weight": weights})


def test_pairs_of_several_outputs_or_of_equal_values_are_refused():
    X, y = data(LSSVR)
    with pytest.raises(ValueError, match="ranks one output; y has several"):
        leave_pair_out_auc(LSSVR(), X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="no pair of different values"):
        leave_pair_out_auc(LSSVR(), X, np.ones(N))


@every_kind
@pytest.mark.parametrize("several", [["max_error"], ("max_error",), {"worst": "max_error"}], ids=repr)
def test_cross_val_score_of_several_metrics_points_to_cross_validate(kind, several):
    message = rf"scoring={re.escape(repr(several))} names several metrics.*cross_validate"
    with pytest.raises(ValueError, match=message):
        cross_val_score(kind(), *data(kind), scoring=several)


@every_kind
def test_unknown_scoring_is_refused(kind):
    with pytest.raises(ValueError, match="'nonsense'"):
        cross_val_score(kind(), *data(kind), scoring="nonsense")


@every_kind
@pytest.mark.parametrize(
    "cv",
    [
        ShuffleSplit(4, random_state=0),
        [(np.arange(2, N), np.arange(2))],
        [(np.arange(2, N), np.arange(2)), (np.arange(2, N), np.arange(2))],
    ],
    ids=["shuffled", "part", "twice"],
)
def test_splits_that_are_no_partition_have_no_prediction_for_every_row(kind, cv):
    with pytest.raises(ValueError, match="cross_val_predict only works for partitions"):
        cross_val_predict(kind(), *data(kind), cv=cv)


@every_kind
def test_more_folds_than_rows_are_refused(kind):
    with pytest.raises(ValueError, match=f"n_splits={N + 1}"):
        cross_val_score(kind(), *data(kind), cv=KFold(N + 1))


@every_kind
@pytest.mark.parametrize("function", [cross_val_predict, cross_val_score, cross_validate])
def test_cross_validation_refuses_what_fit_refuses(kind, function):
    X, y = data(kind)
    with pytest.raises(ValueError, match="X contains NaN"):
        function(kind(), with_value(X, np.nan), y)
    with pytest.raises(ValueError, match=rf"inconsistent numbers of samples: \[{N}, {N - 1}\]"):
        function(kind(), X, y[:-1])


@every_kind
@pytest.mark.parametrize("function", [cross_val_predict, cross_val_score, cross_validate])
def test_cross_validation_leaves_the_estimator_as_it_was(kind, function):
    X, y = data(kind)
    fresh, fitted = kind(), kind(alpha=3.0).fit(X[:10], y[:10])
    before = fitted.predict(X)
    function(fresh, X, y)
    function(fitted, X, y)
    assert not hasattr(fresh, "X_fit_")
    np.testing.assert_array_equal(fitted.predict(X), before)


WITHOUT_PROBABILITIES = {
    "LSSVC": LSSVC(),
    "RidgeClassifier": RidgeClassifier(),
    "AdaptiveKDA": AdaptiveKDA(),
    "Pipeline": make_pipeline(StandardScaler(), LSSVC()),
    "FoldlessSearchCV": FoldlessSearchCV(LSSVC(), {"alpha": [0.1, 1.0]}),
}


@pytest.mark.parametrize(
    "scoring", ["neg_log_loss", ["accuracy", "neg_brier_score"], {"mine": "roc_auc_ovr"}], ids=repr
)
@pytest.mark.parametrize("name", WITHOUT_PROBABILITIES)
def test_scores_of_probabilities_are_refused_without_calibration_not_made_nan(name, scoring):
    asked = scoring if isinstance(scoring, str) else [*(scoring.values() if isinstance(scoring, dict) else scoring)][-1]
    message = f"scoring='{asked}' needs probabilities, and {name} gives none here; set calibration='sigmoid'"
    with pytest.raises(ValueError, match=message):
        cross_validate(WITHOUT_PROBABILITIES[name], *data(LSSVC), scoring=scoring)


def test_a_search_among_calibrations_is_scored_by_its_probabilities():
    search = FoldlessSearchCV(LSSVC(), {"calibration": ["sigmoid"]})
    with pytest.warns(RefitWarning):
        assert np.isfinite(cross_val_score(search, *data(LSSVC), scoring="neg_log_loss")).all()
