"""Scores that do not go with the targets are refused before any work, with one that does."""

import re
import warnings

import numpy as np
import pytest
from sklearn import config_context, metrics
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import make_scorer
from sklearn.model_selection import cross_validate as skl_cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from foldless import LSSVC, LSSVR, FoldlessSearchCV
from foldless._engine.heldout.problem import Problem
from foldless.model_selection import (
    compare,
    cross_val_score,
    cross_validate,
    nested_cross_validate,
    permutation_test_score,
    score_interval,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
TEXT = np.where(X[:, 0] > 0, "yes", "no")
THREE = np.where(X[:, 1] > 0.5, "maybe", TEXT)
VALUES = X[:, 0] + RNG.normal(size=60)
MODEL = LSSVC(calibration="sigmoid")
GRID = {"alpha": [0.1, 1.0]}

CALLS = {
    "search": lambda scoring, y: FoldlessSearchCV(MODEL, GRID, scoring=scoring, cv=3).fit(X, y),
    "search of a pipeline": lambda scoring, y: FoldlessSearchCV(
        make_pipeline(StandardScaler(), MODEL), {"lssvc__alpha": [1.0]}, scoring=scoring, cv=3
    ).fit(X, y),
    "nested": lambda scoring, y: nested_cross_validate(FoldlessSearchCV(MODEL, GRID), X, y, scoring=scoring, cv=3),
    "permutations": lambda scoring, y: permutation_test_score(MODEL, X, y, scoring=scoring, n_permutations=2),
    "interval": lambda scoring, y: score_interval(MODEL, X, y, scoring=scoring, n_repeats=1),
    "comparison": lambda scoring, y: compare(MODEL, LSSVC("linear"), X, y, scoring=scoring, n_repeats=1),
    "cross-validation": lambda scoring, y: cross_validate(MODEL, X, y, scoring=scoring, error_score="raise"),
    "scores": lambda scoring, y: cross_val_score(MODEL, X, y, scoring=scoring, error_score="raise"),
}


@pytest.fixture
def no_work(monkeypatch):
    """Fail where a kernel matrix is made, or features are multiplied."""

    def refuse(*_, **__):
        raise AssertionError("work was done")

    monkeypatch.setattr(Problem, "precision", refuse)
    monkeypatch.setattr(Problem, "path", refuse)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("scoring", "y", "message"),
    [
        ("f1", TEXT, r"scoring='f1' .*pos_label=1.*make_scorer\(f1_score, pos_label='yes'\) or 'f1_macro'\."),
        ("precision", THREE, r"scoring='precision' .*(multiclass|pos_label).*Use scoring='precision_macro'\."),
        (make_scorer(metrics.f1_score), TEXT, r"scoring=make_scorer\(f1_score.*pos_label='yes'"),
        ("average_precision", TEXT, r"pos_label='yes', response_method='decision_function'\)"),
    ],
    ids=["f1", "precision", "make_scorer", "average_precision"],
)
def test_a_score_of_other_labels_is_refused_before_any_work(call, scoring, y, message, no_work):
    with pytest.raises(ValueError, match=message):
        CALLS[call](scoring, y)


def test_one_of_several_scores_is_named(no_work):
    with pytest.raises(ValueError, match="scoring='recall' does not go with this y"):
        FoldlessSearchCV(MODEL, GRID, cv=3, scoring=["accuracy", "recall"], refit="accuracy").fit(X, TEXT)


@pytest.mark.parametrize("name", ["f1", "precision", "recall", "jaccard", "average_precision", "neg_brier_score"])
def test_the_scores_that_are_offered_work(name):
    with pytest.raises(ValueError, match=f"scoring='{name}'") as refusal:
        cross_validate(MODEL, X, TEXT, scoring=name, error_score="raise")
    offered = str(refusal.value).partition("Use scoring=")[2].rstrip(".").split(" or ")
    assert len(offered) == 2
    for each in offered:
        score = eval(each, {**vars(metrics), "make_scorer": make_scorer})
        assert np.isfinite(cross_val_score(MODEL, X, TEXT, scoring=score)).all()


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("scoring", "y"), [("f1", (TEXT == "yes").astype(int)), ("f1_macro", THREE), ("accuracy", THREE)]
)
def test_scores_that_go_with_the_labels_pass(call, scoring, y):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CALLS[call](scoring, y)


def test_scores_of_values_are_checked_as_well():
    with pytest.raises(ValueError, match=r"scoring='f1' .*Use scoring='neg_mean_squared_error' or 'r2'"):
        FoldlessSearchCV(LSSVR(), GRID, cv=3, scoring="f1").fit(X, VALUES)
    positive = np.abs(VALUES)
    assert FoldlessSearchCV(LSSVR(), GRID, cv=3, scoring="neg_median_absolute_error").fit(X, positive).best_score_ < 0


def test_a_class_of_few_rows_far_behind_is_among_those_that_are_shown():
    """Of more rows than are looked at; the last class makes it a problem of three."""
    y = np.r_[np.zeros(600), np.ones(600), [2, 2]].astype(int)[:, None].ravel()
    features = np.random.default_rng(0).normal(size=(len(y), 2))
    with pytest.raises(ValueError, match="Use scoring='f1_macro'"):
        cross_validate(RidgeClassifier(), features, y, scoring="f1", error_score="raise")


@pytest.mark.filterwarnings("ignore:SVC is refitted")
def test_estimators_of_others_are_left_to_scikit_learn():
    """Which makes such scores nan, and says so."""
    with pytest.warns(UserWarning, match="Scoring failed"):
        result = cross_validate(SVC(), X, TEXT, scoring="f1")
    assert np.isnan(result["test_score"]).all()


@pytest.mark.parametrize("scoring", [["accuracy", "accuracy"], [make_scorer(metrics.accuracy_score)], {1: "accuracy"}])
def test_scoring_that_scikit_learn_refuses_is_refused_with_its_message(scoring):
    with pytest.raises(ValueError) as expected:
        skl_cross_validate(MODEL, X, TEXT, scoring=scoring)
    with pytest.raises(ValueError, match=re.escape(str(expected.value))):
        cross_validate(MODEL, X, TEXT, scoring=scoring)


@pytest.mark.filterwarnings("ignore::foldless.model_selection.RefitWarning")
@config_context(enable_metadata_routing=True)
def test_scorers_that_request_metadata_are_called_with_it_alone():
    received = []

    def share_of_hits(truth, predicted, sample_weight=None):
        received.append(sample_weight)
        return np.average(truth == predicted, weights=sample_weight)

    scorer = make_scorer(share_of_hits).set_score_request(sample_weight=True)
    model = SVC().set_fit_request(sample_weight=False)
    weights = {"sample_weight": np.ones(60)}
    permutation_test_score(model, X, TEXT, scoring=scorer, n_permutations=2, cv=3, params=weights)
    assert received
    assert all(array is not None for array in received)
