"""Permutation tests of searches that are repeated or refused."""

import numpy as np
import pytest
from sklearn import metrics
from sklearn import model_selection as skl
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import make_scorer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from foldless import LSSVC, LSSVR, FoldlessSearchCV
from foldless.model_selection import Optimizer, RefitWarning, nested_cross_validate, permutation_test_score
from support.families import ALPHAS, BINARY, GRID, KFDA, OUTER, THREE, VALUES, WEIGHT, ZEROS, N, X
from support.refits import labelings, p_value
from support.tolerances import assert_close


def of_estimators(estimator, rows, y):
    """A scorer that is a function."""
    return np.mean(estimator.predict(rows) == y)


OTHER_WAYS = {
    "multiclass_error": (FoldlessSearchCV(KFDA(), GRID, criterion="multiclass_error"), THREE, {}),
    "gradient": (FoldlessSearchCV(LSSVC(), method=Optimizer("gradient", max_iter=3)), BINARY, {}),
    "share": (FoldlessSearchCV(LSSVC(), GRID, share="none"), THREE, {}),
    "class weights": (FoldlessSearchCV(LSSVC(class_weight="balanced"), GRID), THREE, {}),
    "class weights in the grid": (
        FoldlessSearchCV(RidgeClassifier(), [{"alpha": ALPHAS}, {"class_weight": [{"no": 3.0}], "alpha": ALPHAS}]),
        BINARY,
        {},
    ),
    "a pipeline": (make_pipeline(StandardScaler(), FoldlessSearchCV(LSSVC(), GRID)), THREE, {}),
    "a pipeline that sees y": (make_pipeline(SelectKBest(k=2), FoldlessSearchCV(LSSVC(), GRID)), THREE, {}),
    "threshold loo": (FoldlessSearchCV(KFDA(threshold="loo"), GRID), BINARY, {}),
    "threshold loo in the grid": (FoldlessSearchCV(KFDA(gamma=0.1), {"threshold": ["pm1", "loo"]}), BINARY, {}),
    "probabilities": (FoldlessSearchCV(LSSVC(calibration="sigmoid"), GRID), BINARY, {"scoring": "neg_log_loss"}),
    "a function": (FoldlessSearchCV(LSSVC(), GRID), THREE, {"scoring": of_estimators}),
    "strata inside": (FoldlessSearchCV(LSSVC(), GRID, cv=skl.StratifiedKFold(2)), THREE, {}),
    "folds of classes inside": (FoldlessSearchCV(LSSVC(), GRID, cv=3), BINARY, {}),
    "decisions up to a constant": (FoldlessSearchCV(KFDA(), GRID), THREE, {"scoring": "top"}),
}


def second_best(truth, decision):
    return metrics.top_k_accuracy_score(truth, decision, k=2)


@pytest.mark.many_cases
@pytest.mark.parametrize("case", OTHER_WAYS)
def test_other_searches_are_repeated_and_say_so(case):
    """Weighted rows, by nested_cross_validate of every labeling."""
    search, y, options = OTHER_WAYS[case]
    if options.get("scoring") == "top":
        options = {"scoring": make_scorer(second_best, response_method="decision_function")}
    name = "foldlesssearchcv__sample_weight" if isinstance(search, Pipeline) else "sample_weight"
    why = "drawn from the labels" if "inside" in case else "for every permutation"
    with pytest.warns(RefitWarning, match=rf"refitted for every permutation: the search is repeated.*{why}") as told:
        result = permutation_test_score(search, X, y, cv=OUTER, n_permutations=3, params={name: ZEROS}, **options)
    assert len(told) == 1
    assert result.path.kind == "refit"
    expected = [
        nested_cross_validate(
            search,
            X,
            y[order],
            cv=OUTER,
            scoring=options.get("scoring"),
            params={"sample_weight": ZEROS},
        ).test_score.mean()
        for order in labelings(N, 3)
    ]
    assert_close(np.r_[result.score, result.permutation_scores], expected)
    assert result.pvalue == p_value(expected[0], expected[1:])


def test_splits_drawn_anew_are_those_of_permuted_labels():
    search, cv = FoldlessSearchCV(LSSVC(), GRID), skl.StratifiedKFold(3)
    with pytest.warns(RefitWarning, match="the search is repeated"):
        result = permutation_test_score(search, X, THREE, cv=cv, n_permutations=3, null="resplit")
    expected = [nested_cross_validate(search, X, THREE[order], cv=cv).test_score.mean() for order in labelings(N, 3)]
    assert_close(np.r_[result.score, result.permutation_scores], expected)


def test_without_splits_five_folds_are_taken_by_class():
    search = FoldlessSearchCV(LSSVC(), GRID)
    ours = permutation_test_score(search, X, THREE, n_permutations=3)
    other = permutation_test_score(search, X, THREE, cv=skl.StratifiedKFold(5), n_permutations=3)
    np.testing.assert_array_equal(ours.permutation_scores, other.permutation_scores)


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        ([(np.arange(25), np.arange(20, N))], "cv: split 0 tests rows that it trains on"),
        ([OUTER[0], (np.flatnonzero(THREE != "bee"), np.flatnonzero(THREE == "bee"))], "split 1 lacks class bee"),
        ([(np.r_[OUTER[0][0], OUTER[0][0][:1]], OUTER[0][1])], "split 0 repeats rows"),
    ],
)
def test_bad_outer_splits_are_refused(cv, message):
    with pytest.raises(ValueError, match=message):
        permutation_test_score(FoldlessSearchCV(LSSVC(), GRID), X, THREE, cv=cv)


def test_a_search_that_cannot_be_done_is_refused_as_by_fit():
    for search, message in (
        (FoldlessSearchCV(LSSVC(), {"alpha": [-1.0]}), "alpha=-1.0"),
        (FoldlessSearchCV(LSSVC(), GRID, criterion="nonsense"), "criterion='nonsense' is unknown"),
        (FoldlessSearchCV(SVC(), GRID), "estimator=SVC is not a least-squares model"),
    ):
        with pytest.raises(ValueError, match=message):
            permutation_test_score(search, X, THREE, cv=OUTER)
    with pytest.raises(ValueError, match="scoring='ber' is for class labels"):
        permutation_test_score(FoldlessSearchCV(LSSVR(), GRID), X, VALUES, cv=OUTER, scoring="ber")


def test_parameters_of_a_search_that_nobody_takes_are_named():
    """They must not take the weights with them."""
    params = {"nonsense": X, "sample_weight": WEIGHT}
    with pytest.raises(ValueError, match=r"params: .*'nonsense'.*only sample_weight"):
        permutation_test_score(FoldlessSearchCV(LSSVC(), GRID), X, THREE, cv=OUTER, params=params)


def test_inner_splits_must_be_drawn_anew_for_every_training_part():
    search = FoldlessSearchCV(LSSVC(), GRID, cv=[(np.arange(10), np.arange(10, 20))])
    with pytest.raises(ValueError, match="of the search must be a number or a splitter"):
        permutation_test_score(search, X, THREE, cv=OUTER)
