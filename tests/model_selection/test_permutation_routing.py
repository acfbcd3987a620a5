"""Routed groups and weights in permutation tests."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_array_equal
from sklearn import metrics as theirs
from sklearn import model_selection as skl
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from foldless import LSSVC
from foldless.model_selection import RefitWarning, permutation_test_score
from support.permutation import FOLDS, GROUPS, LABELS, WEIGHT, M, N, X, assert_scores, check_scores, orders_of
from support.refits import scores_of_labelings


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def asking(estimator, **requests):
    """The estimator with its requests for sample weights, of fit and of score."""
    return estimator.set_fit_request(**requests.get("fit", {})).set_score_request(**requests.get("score", {}))


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("null", [None, "resplit"])
def test_routed_groups_go_to_the_splitter(null):
    options = {"cv": GroupKFold(4), "params": {"groups": GROUPS}, "n_permutations": M, "random_state": 7}
    result = permutation_test_score(LSSVC(gamma=0.1), X, LABELS, null=null, **options)
    if null is not None:
        assert_array_equal(result[1], skl.permutation_test_score(LSSVC(gamma=0.1), X, LABELS, **options)[1])
    else:
        splits = list(GroupKFold(4).split(X, LABELS, GROUPS))
        assert_scores(result, scores_of_labelings(LSSVC(gamma=0.1), X, LABELS, orders_of(N), splits=splits))
        with pytest.warns(RefitWarning):
            result = permutation_test_score(LogisticRegression(), X, LABELS, **options)
        assert_scores(result, scores_of_labelings(LogisticRegression(), X, LABELS, orders_of(N), splits=splits))


@pytest.mark.usefixtures("routing")
def test_groups_beside_routing_are_refused():
    with pytest.raises(ValueError, match="groups"):
        permutation_test_score(LSSVC(), X, LABELS, groups=GROUPS, n_permutations=2)


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("name", ["sample_weight", "alias"])
def test_routed_weights_of_the_fit_equal_refits(name):
    request = {"sample_weight": True if name == "sample_weight" else name}
    estimator = asking(LSSVC(gamma=0.1), fit=request, score={"sample_weight": False})
    options = {"params": {name: WEIGHT}, "oracle": {"weight": lambda order: WEIGHT}}
    check_scores(estimator, X, LABELS, **options)
    scoring = make_scorer(theirs.cohen_kappa_score).set_score_request(sample_weight=False)
    check_scores(estimator, X, LABELS, scoring=scoring, m=2, **options)


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("scoring", [None, "scorer"])
def test_routed_weights_of_fit_and_score_equal_refits(scoring):
    estimator = asking(LSSVC(gamma=0.1), fit={"sample_weight": True}, score={"sample_weight": True})
    if scoring == "scorer":
        scoring = make_scorer(theirs.accuracy_score).set_score_request(sample_weight=True)
    options = {"cv": FOLDS, "n_permutations": M, "random_state": 7, "params": {"sample_weight": WEIGHT}}
    result = permutation_test_score(estimator, X, LABELS, scoring=scoring, **options)
    scores = []
    for order in orders_of(N):
        labels, own = LABELS[order], []
        for train, test in FOLDS:
            model = LSSVC(gamma=0.1).fit(X[train], labels[train], sample_weight=WEIGHT[train])
            own.append(model.score(X[test], labels[test], sample_weight=WEIGHT[test]))
        scores.append(np.mean(own))
    assert_scores(result, np.array(scores))


@pytest.mark.usefixtures("routing")
def test_routed_weights_of_the_score_alone_equal_refits():
    estimator = asking(LSSVC(gamma=0.1), fit={"sample_weight": False}, score={"sample_weight": False})
    scorer = make_scorer(theirs.accuracy_score).set_score_request(sample_weight=True)
    options = {"cv": FOLDS, "n_permutations": M, "random_state": 7, "params": {"sample_weight": WEIGHT}}
    result = permutation_test_score(estimator, X, LABELS, scoring=scorer, **options)
    scores = []
    for order in orders_of(N):
        labels = LABELS[order]
        own = [
            scorer(estimator.fit(X[train], labels[train]), X[test], labels[test], sample_weight=WEIGHT[test])
            for train, test in FOLDS
        ]
        scores.append(np.mean(own))
    assert_scores(result, np.array(scores))


@pytest.mark.usefixtures("routing")
def test_routed_weights_behind_steps_equal_refits():
    last = asking(LSSVC(gamma=0.1), fit={"sample_weight": True}, score={"sample_weight": False})
    pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), last)
    scoring = make_scorer(theirs.accuracy_score).set_score_request(sample_weight=False)
    options = {"scoring": scoring, "params": {"sample_weight": WEIGHT}, "oracle": {"weight": lambda order: WEIGHT}}
    check_scores(pipeline, X, LABELS, kind="one P per fold", **options)
