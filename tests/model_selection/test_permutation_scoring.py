"""Scorers of every kind in permutation tests."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn import metrics as theirs
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.metrics import make_scorer
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline

from foldless import LSSVC, LSSVR
from foldless.estimators.metrics import METRICS, scorer_of
from foldless.model_selection import permutation_test_score
from support.permutation import (
    BINARY,
    CODES,
    KFDA,
    LABELS,
    OUTPUTS,
    VALUES,
    WEIGHT,
    N,
    X,
    assert_scores,
    check_scores,
    margin,
    orders_of,
    plain_score,
)
from support.refits import scores_of_labelings
from support.tolerances import assert_close

LARGE_TESTS = list(StratifiedKFold(2, shuffle=True, random_state=1).split(X, CODES))


@pytest.mark.parametrize("name", [name for name, metric in METRICS.items() if metric.greater])
def test_metrics_by_name_equal_refits(name):
    metric = METRICS[name]
    y = VALUES if not metric.labels else CODES > 0
    estimator = LSSVC(gamma=0.1) if metric.labels else LSSVR(gamma=0.1)
    scoring = name if metric.pooled or name in theirs.get_scorer_names() else scorer_of(metric)
    result = check_scores(estimator, X, y, cv=LARGE_TESTS, scoring=name, oracle={"scoring": scoring})
    assert (result.scoring, result.greater_is_better) == (name, True)
    if not metric.labels:
        check_scores(LSSVR(gamma=0.1), X, OUTPUTS, scoring=name, oracle={"scoring": scoring})
    elif metric.classes is None:
        check_scores(KFDA(gamma=0.1), X, LABELS, cv=LARGE_TESTS, scoring=name, oracle={"scoring": scoring})


@pytest.mark.parametrize(
    ("estimator", "kind"),
    [(LSSVC(gamma=0.1), "one fit"), (KFDA(gamma=0.1), "one fit"), (LogisticRegression(), "refit")],
    ids=["LSSVC", "KFDA", "LogisticRegression"],
)
@pytest.mark.filterwarnings("ignore::foldless.model_selection.RefitWarning")
def test_smaller_scores_of_a_loss_count_as_better(estimator, kind):
    scoring = make_scorer(lambda truth, labels: 1 - theirs.balanced_accuracy_score(truth, labels))
    options = {"cv": LARGE_TESTS, "n_permutations": 9, "random_state": 7}
    result = permutation_test_score(estimator, X, LABELS, scoring="ber", **options)
    scores = scores_of_labelings(estimator, X, LABELS, orders_of(N, m=9), splits=LARGE_TESTS, scoring=scoring)
    assert_scores(result, scores, greater=False)
    assert not result.greater_is_better
    assert result.path.kind == kind
    accuracy = permutation_test_score(estimator, X, LABELS, scoring="balanced_accuracy", **options)
    assert result.pvalue == accuracy.pvalue < 0.5
    assert_close(result.permutation_scores, 1 - accuracy.permutation_scores)


@pytest.mark.parametrize(
    ("scoring", "y"),
    [
        ("f1_macro", LABELS),
        (make_scorer(theirs.cohen_kappa_score, weights="linear"), CODES),
        (make_scorer(theirs.fbeta_score, beta=2, pos_label="yes"), BINARY),
        (margin, LABELS),
        (margin, BINARY),
        ("explained_variance", OUTPUTS),
        ("neg_mean_absolute_error", VALUES),
        (make_scorer(theirs.median_absolute_error, greater_is_better=False), VALUES),
        (make_scorer(np.dot), VALUES),
        ("r2", CODES),
    ],
    ids=["f1", "kappa", "fbeta", "margin-3", "margin-2", "outputs", "values", "loss", "vectors", "values of labels"],
)
def test_scorers_of_predictions_and_decisions_take_columns(scoring, y):
    estimator = LSSVR(gamma=0.1) if y.dtype == float else LSSVC(gamma=0.1)
    result = check_scores(estimator, X, y, cv=LARGE_TESTS, scoring=scoring)
    assert "permutations are columns" in result.path.reason
    if isinstance(scoring, str):
        assert result.scoring == scoring
    check_scores(make_pipeline(PCA(3), estimator), X, y, cv=LARGE_TESTS, scoring=scoring, kind="one P per fold", m=2)


@pytest.mark.many_cases
@pytest.mark.parametrize(
    ("estimator", "scoring", "y"),
    [
        (LSSVC(gamma=0.1), "top_k_accuracy", LABELS),
        (KFDA(gamma=0.1), margin, LABELS),
        (LSSVC(gamma=0.1), "average_precision", CODES > 0),
        (KFDA(gamma=0.1, threshold="loo"), "roc_auc", BINARY),
        (KFDA(gamma=0.1, threshold="loo"), "f1_macro", BINARY),
        (LSSVC(gamma=0.1, calibration="sigmoid"), "neg_log_loss", LABELS),
        (KFDA(gamma=0.1, calibration="sigmoid"), "roc_auc_ovr", LABELS),
        (KFDA(gamma=0.1, calibration="isotonic", penalty="coef"), "neg_brier_score", CODES > 0),
        (LSSVC(gamma=0.1), plain_score, LABELS),
        (LSSVC("linear"), lambda model, X, y: np.abs(model.coef_).sum() + model.score(X, y), LABELS),
        (RidgeClassifier(), lambda model, X, y: np.abs(model.coef_).sum(), LABELS),
        (LSSVR(gamma=0.1), lambda model, X, y: -np.abs(model.predict(X) - y).max(), VALUES),
        (Ridge(), lambda model, X, y: np.abs(model.coef_).sum(), OUTPUTS),
    ],
    ids=[
        "top k",
        "margin of KFDA",
        "average precision",
        "cut",
        "cut, f1",
        "log loss",
        "roc_auc_ovr",
        "brier",
        "callable",
        "coef_",
        "RidgeClassifier",
        "values",
        "Ridge",
    ],
)
def test_scorers_of_the_estimator_are_called_for_each_labeling(estimator, scoring, y):
    result = check_scores(estimator, X, y, cv=LARGE_TESTS, scoring=scoring, m=3)
    assert "this score is asked for one by one" in result.path.reason


def test_scorers_of_the_estimator_with_weights_and_resplit():
    options = {"n_permutations": 3, "random_state": 7, "params": {"sample_weight": WEIGHT}, "null": "resplit"}
    result = permutation_test_score(LSSVC(gamma=0.1), X, LABELS, cv=3, scoring=plain_score, **options)
    for score, order in zip(np.r_[result.score, result.permutation_scores], orders_of(N, m=3), strict=True):
        splits = list(StratifiedKFold(3).split(X, LABELS[order]))
        assert_close(
            score, scores_of_labelings(LSSVC(gamma=0.1), X, LABELS, [order], splits=splits, sample_weight=WEIGHT)[0]
        )


def test_names_of_scorers_in_results():
    def own_score(model, X, y):
        return model.score(X, y)

    names = [(None, "accuracy"), ("f1_macro", "f1_macro"), (own_score, "own_score")]
    for scoring, name in names:
        assert permutation_test_score(LSSVC(), X, LABELS, n_permutations=1, scoring=scoring).scoring == name
    scoring = make_scorer(theirs.accuracy_score)
    assert permutation_test_score(LSSVC(), X, LABELS, n_permutations=1, scoring=scoring).scoring == str(scoring)
    assert permutation_test_score(Ridge(), X, VALUES, n_permutations=1).scoring == "r2_pooled"


def test_scores_that_are_not_defined_count_as_at_least_as_good():
    """A permuted test part with one class has no area under the curve."""
    y = (CODES > 0).astype(int)
    tests = [np.r_[np.flatnonzero(y == 0)[k : k + 2], np.flatnonzero(y == 1)[k : k + 2]] for k in (4, 8)]
    splits = [(np.setdiff1d(np.arange(N), test), test) for test in tests]
    undefined = np.array([any(np.ptp(y[order][test]) == 0 for test in tests) for order in orders_of(N, m=12)])
    assert 0 < undefined.sum() < 12
    with pytest.warns(UserWarning, match=f"{undefined.sum()} of 12 permuted scores are not defined"):
        result = permutation_test_score(LSSVC(), X, y, cv=splits, n_permutations=12, random_state=7, scoring="roc_auc")
    assert_array_equal(np.isnan(result.permutation_scores), undefined[1:])
    worse = result.permutation_scores < result.score - 1e-9
    assert worse.any()
    assert result.pvalue == (13 - worse.sum()) / 13


def test_a_true_score_that_is_not_defined_has_no_p_value():
    with pytest.warns(UserWarning, match="the score of the true labels is not defined"):
        result = permutation_test_score(LSSVC(), X, LABELS, n_permutations=2, scoring=lambda model, X, y: np.nan)
    assert np.isnan(result.pvalue)
    assert "nan" in repr(result)


@pytest.mark.filterwarnings("ignore:The least populated class", "ignore:.*permuted scores are not defined")
def test_a_class_rarer_than_the_folds_is_named():
    rare = (np.arange(N) < 3).astype(int)
    with pytest.warns(UserWarning, match="The rarest class has 3 rows: use a stratified splitter of at most as many"):
        permutation_test_score(LSSVC(), X, rare, cv=5, scoring="roc_auc", n_permutations=3)
