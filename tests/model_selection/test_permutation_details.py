"""What a permutation test computes on its way, and gives: splits, decisions, confusions, choices, several scores."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn import model_selection as skl
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.metrics import confusion_matrix
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from foldless import LSSVC, FoldlessSearchCV
from foldless.model_selection import cross_val_score, nested_cross_validate, permutation_test_score
from support.families import BINARY, CV, GRID, KFDA, MEMBERS, OUTPUTS, THREE, TIMES, VALUES, WEIGHT, N, X
from support.refits import held_out, labelings
from support.tolerances import assert_close

SPLITS = list(CV.split(X))
M = 3
refits = pytest.mark.filterwarnings("ignore::foldless.model_selection.RefitWarning")
WAYS = {
    "columns": LSSVC(gamma=0.1),
    "pipeline": make_pipeline(StandardScaler(), LSSVC(gamma=0.1)),
    "search": FoldlessSearchCV(LSSVC(gamma=0.1), {"alpha": [0.1, 5.0]}),
    "one by one": RidgeClassifier(class_weight="balanced"),
    "refit": LogisticRegression(),
}


def run(estimator, y, data=X, **options):
    return permutation_test_score(estimator, data, y, **{"cv": CV, "n_permutations": M, **options})


@refits
@pytest.mark.parametrize("way", WAYS)
def test_split_scores_are_those_of_the_true_labels(way):
    result = run(WAYS[way], BINARY)
    assert_close(result.split_scores, skl.cross_val_score(WAYS[way], X, BINARY, cv=CV))
    assert_close(result.split_scores.mean(), result.score)


@refits
@pytest.mark.parametrize("way", WAYS)
def test_several_scores_are_those_of_tests_of_each(way):
    asked = {"share": "accuracy", "area": "roc_auc", "loss": "ber"}
    several = run(WAYS[way], BINARY, scoring=asked)
    assert list(several.results) == list(asked)
    assert several is several.results["share"]
    for name, scoring in asked.items():
        one, mine = run(WAYS[way], BINARY, scoring=scoring), several.results[name]
        assert_close(mine.score, one.score)
        assert_close(mine.permutation_scores, one.permutation_scores)
        assert (mine.pvalue, mine.scoring, mine.greater_is_better) == (one.pvalue, scoring, scoring != "ber")
        assert_close(mine.split_scores, one.split_scores)
    assert one.results is None


def test_several_scores_of_values_may_be_pooled_or_means():
    several = run(Ridge(), VALUES, TIMES, scoring=["r2_pooled", "neg_mean_squared_error"], generalise=True)
    assert several.split_scores is None
    assert several.results["neg_mean_squared_error"].split_scores.shape == (3, 3, 3)
    for name, mine in several.results.items():
        assert_close(mine.permutation_scores, run(Ridge(), VALUES, TIMES, scoring=name, generalise=True)[1])


@pytest.mark.parametrize(
    ("estimator", "y", "method"),
    [
        (LSSVC(gamma=0.1), BINARY, "decision_function"),
        (LSSVC(gamma=0.1), THREE, "decision_function"),
        (KFDA(gamma=0.1), THREE, "decision_function"),
        (Ridge(), VALUES, "predict"),
        (Ridge(), OUTPUTS, "predict"),
        (WAYS["pipeline"], THREE, "decision_function"),
        (WAYS["search"], BINARY, "decision_function"),
    ],
    ids=["two", "three", "KFDA", "value", "outputs", "pipeline", "search"],
)
def test_decisions_of_the_true_labels_equal_refits(estimator, y, method):
    splits = SPLITS[:2]  # a third of the rows is never tested
    result = run(estimator, y, cv=splits)
    expected, rows = (
        np.concatenate(held_out(estimator, X, y, splits, method)),
        np.concatenate([SPLITS[0][1], SPLITS[1][1]]),
    )
    found = result.decisions[rows]
    if isinstance(estimator, KFDA):  # up to a constant a row
        found, expected = (each - each.mean(1, keepdims=True) for each in (found, expected))
    assert found.shape == expected.shape
    assert_close(found, expected)
    assert np.isnan(result.decisions[SPLITS[2][1]]).all()


def test_decisions_of_families_have_their_members_last():
    result, square = (run(LSSVC(gamma=0.1), BINARY, TIMES, generalise=each) for each in (False, True))
    assert result.decisions.shape == (N, 3)
    assert square.decisions.shape == (N, 3, 3)
    for time, data in enumerate(MEMBERS):
        assert_close(result.decisions[:, time], run(LSSVC(gamma=0.1), BINARY, data).decisions)
        assert_close(square.decisions[:, time, time], result.decisions[:, time])
    train, test = SPLITS[0]
    model = LSSVC(gamma=0.1).fit(MEMBERS[0][train], BINARY[train])
    assert_close(square.decisions[test, 0, 2], model.decision_function(MEMBERS[2][test]))
    assert run(LSSVC(), THREE, TIMES).decisions.shape == (N, 3, 3)


def test_rows_that_are_tested_twice_have_no_decision():
    assert run(LSSVC(), BINARY, cv=skl.RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)).decisions is None


@refits
@pytest.mark.parametrize("way", WAYS)
def test_confusions_of_all_labelings_equal_refits(way):
    result = run(WAYS[way], THREE, scoring=["accuracy", "confusion"])
    for order, found in zip(labelings(N, M), [result.confusion, *result.permutation_confusions], strict=True):
        predicted = np.concatenate(held_out(WAYS[way], X, THREE[order], SPLITS, "predict"))
        rows = np.concatenate([test for _, test in SPLITS])
        assert_array_equal(found, confusion_matrix(THREE[order][rows], predicted))
    assert result.results is None
    assert run(LSSVC(), THREE).confusion is None


def test_confusions_of_families_and_of_what_has_no_labels():
    result = run(LSSVC(), THREE, TIMES, scoring=["accuracy", "confusion"])
    assert result.confusion.shape == (3, 3, 3)
    assert_array_equal(result.confusion.sum((1, 2)), N)
    assert_close(np.trace(result.confusion, axis1=1, axis2=2) / N, result.score)
    with pytest.raises(ValueError, match="'confusion' counts the labels of classifiers"):
        run(Ridge(), VALUES, scoring=["r2_pooled", "confusion"])


def test_counts_of_labels_are_no_score_and_may_have_a_name():
    for scoring in ("confusion", ["confusion"], {"counts": "confusion"}):
        with pytest.raises(ValueError, match="the counts of labels are no score to test"):
            run(LSSVC(), THREE, scoring=scoring)
    named = run(LSSVC(), THREE, scoring={"counts": "confusion", "share": "accuracy", "mean": "balanced_accuracy"})
    assert list(named.results) == ["share", "mean"]
    named_so = run(LSSVC(), THREE, scoring={"confusion": "accuracy", "counts": "confusion"})
    assert (named_so.scoring, np.shape(named_so.score)) == ("accuracy", ())
    assert_array_equal(named_so.confusion, named.confusion)
    plain = run(LSSVC(), THREE, scoring=["accuracy", "confusion"])
    assert (plain.scoring, plain.score) == ("accuracy", run(LSSVC(), THREE).score)
    for result in named.results.values():
        assert_array_equal(result.confusion, plain.confusion)


@refits
def test_choices_of_a_search_are_given_for_every_member():
    search = FoldlessSearchCV(LSSVC(), GRID)
    inner = FoldlessSearchCV(LSSVC(gamma=0.1), {"alpha": [0.1, 5.0]}, cv=skl.StratifiedKFold(2))  # repeated each time
    for each in (search, inner):
        result = run(each, BINARY, TIMES[:, :, :2], n_permutations=1, cv=SPLITS[:2])
        expected = [nested_cross_validate(each, data, BINARY, cv=SPLITS[:2]).best_params for data in MEMBERS[:2]]
        assert result.best_params == expected


@pytest.mark.parametrize("family", [False, True])
def test_scores_without_a_null(family):
    data = TIMES if family else X
    result, whole = (run(LSSVC(), BINARY, data, n_permutations=m) for m in (0, M))
    assert_close(result.score, whole.score)
    assert result.permutation_scores.shape == (0, *np.shape(whole.score))
    assert np.all(result.pvalue == 1)
    assert "0 permutations" in repr(result)


@pytest.mark.parametrize("estimator", [LSSVC(gamma=0.1), make_pipeline(StandardScaler(), LSSVC(gamma=0.1))])
def test_cross_val_score_of_three_axes_scores_each_time(estimator):
    found = cross_val_score(estimator, TIMES, BINARY, cv=CV)
    assert found.shape == (3, 3)
    for time, data in enumerate(MEMBERS):
        assert_close(found[:, time], skl.cross_val_score(estimator, data, BINARY, cv=CV))
    assert_close(found.T, run(estimator, BINARY, TIMES).split_scores)


def test_weights_reach_the_split_scores():
    result = run(LSSVC(gamma=0.1), BINARY, params={"sample_weight": WEIGHT})
    assert_close(
        result.split_scores, skl.cross_val_score(LSSVC(gamma=0.1), X, BINARY, cv=CV, params={"sample_weight": WEIGHT})
    )
