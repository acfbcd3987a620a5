"""Splitters, groups and strata in permutation tests."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn import model_selection as skl
from sklearn.linear_model import Ridge
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
)

from foldless import LSSVC, LSSVR
from foldless._engine.permutation.nulls import Exchangeable
from foldless.model_selection import RefitWarning, permutation_test_score
from support.permutation import (
    CODES,
    FOLDS,
    GROUPS,
    KFDA,
    LABELS,
    OUTPUTS,
    PARTS,
    STRATA,
    VALUES,
    M,
    N,
    X,
    assert_scores,
    check_scores,
    make_classes,
    margin,
    orders_of,
    splits_drawn_by,
)
from support.refits import scores_of_labelings
from support.tolerances import assert_close

SPLITTERS = {
    "KFold": KFold(5, shuffle=True, random_state=0),
    "overlapping tests": ShuffleSplit(4, test_size=0.4, random_state=0),
    "GroupKFold": GroupKFold(4),
    "gaps": PARTS[:3],
    "masks": [(np.arange(N) % 3 > 0, np.arange(N) % 3 == 0), (np.arange(N) % 3 < 2, np.arange(N) % 3 == 2)],
    "negative indices": [(np.arange(N - 9), np.arange(-9, 0)), (np.arange(-30, 0), np.arange(10))],
}


@pytest.mark.many_cases
@pytest.mark.parametrize("splitter", SPLITTERS)
@pytest.mark.parametrize(
    ("estimator", "y"),
    [(LSSVC(gamma=0.1), LABELS), (KFDA(gamma=0.1, penalty="coef"), LABELS), (Ridge(), OUTPUTS)],
    ids=["LSSVC", "KFDA coef", "Ridge"],
)
def test_any_splitter_equals_refits(estimator, y, splitter):
    cv, groups = SPLITTERS[splitter], GROUPS if splitter == "GroupKFold" else None
    result = permutation_test_score(estimator, X, y, cv=cv, groups=groups, n_permutations=M, random_state=7)
    assert_scores(
        result, scores_of_labelings(estimator, X, y, orders_of(N, groups), splits=splits_drawn_by(cv, y, groups))
    )
    assert result.path.kind == "one fit"
    assert_array_equal(result.strata, groups)


@pytest.mark.parametrize("estimator", [LSSVC(gamma=0.1), KFDA(gamma=0.1, alpha=0.1)], ids=["LSSVC", "KFDA"])
def test_leave_one_out_equals_refits_for_all_labelings(estimator):
    X, y = make_classes(3, n=18)
    check_scores(estimator, X, y, cv=list(LeaveOneOut().split(X)), m=3)


def folds_of(splits):
    """The number of the fold that tests each row."""
    fold = np.empty(N, int)
    for number, (_, test) in enumerate(splits):
        fold[test] = number
    return fold


def test_splits_are_five_by_default():
    folds = list(KFold(5).split(X))
    result = permutation_test_score(Ridge(), X, VALUES, n_permutations=M, random_state=7)
    assert_scores(result, scores_of_labelings(Ridge(), X, VALUES, orders_of(N), splits=folds))
    assert result.strata is None


@pytest.mark.parametrize("cv", [None, 4, StratifiedKFold(4, shuffle=True, random_state=1)], ids=["", "4", "shuffled"])
def test_labels_are_permuted_within_stratified_folds(cv):
    """Stratified folds of the true labels would be unbalanced for labels permuted across them."""
    folds = list(skl.check_cv(cv, LABELS, classifier=True).split(X, LABELS))
    result = permutation_test_score(LSSVC(gamma=0.1), X, LABELS, cv=cv, n_permutations=M, random_state=7)
    fold = folds_of(folds)
    assert_array_equal(result.strata, fold)
    orders = orders_of(N, fold)
    for order in orders:
        assert all(sorted(LABELS[order][test]) == sorted(LABELS[test]) for _, test in folds)
    assert_scores(result, scores_of_labelings(LSSVC(gamma=0.1), X, LABELS, orders, splits=folds))


def test_labels_are_permuted_within_strata_and_stratified_folds():
    for cv, groups, strata in ((StratifiedGroupKFold(3), GROUPS, None), (StratifiedKFold(3), None, STRATA)):
        folds = list(cv.split(X, LABELS, groups))
        options = {"cv": cv, "groups": groups, "null": strata, "n_permutations": M, "random_state": 7}
        result = permutation_test_score(LSSVC(gamma=0.1), X, LABELS, **options)
        pairs = list(zip(GROUPS if strata is None else STRATA, folds_of(folds), strict=True))
        assert len(set(zip(pairs, result.strata, strict=True))) == len(set(pairs)) == len(set(result.strata))
        assert_scores(
            result, scores_of_labelings(LSSVC(gamma=0.1), X, LABELS, orders_of(N, result.strata), splits=folds)
        )


@pytest.mark.parametrize(
    "cv",
    [
        StratifiedShuffleSplit(3, random_state=0),
        StratifiedShuffleSplit(2, test_size=0.5, random_state=0),  # as many tested rows as there are
        RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0),
    ],
    ids=["gaps", "halves", "twice"],
)
def test_stratified_splits_that_overlap_are_permuted_with_the_labels(cv):
    result = permutation_test_score(LSSVC(gamma=0.1), X, LABELS, cv=cv, n_permutations=M, null=STRATA, random_state=7)
    assert_array_equal(result.strata, STRATA)
    expected = []
    for order in orders_of(N, STRATA):
        place = np.argsort(order)  # the row that has taken over the label and the place of each row
        scores = []
        for train, test in cv.split(X, LABELS):
            fitted = LSSVC(gamma=0.1).fit(X[place[train]], LABELS[train])
            scores.append(fitted.score(X[place[test]], LABELS[test]))
        expected.append(np.mean(scores))
    assert_close([result.score, *result.permutation_scores], expected)


@pytest.mark.parametrize("groups", [None, GROUPS], ids=["", "groups"])
@pytest.mark.parametrize("strata", [None, STRATA], ids=["", "strata"])
def test_labels_are_permuted_within_strata_or_else_within_groups(groups, strata):
    options = {"cv": GroupKFold(4) if groups is not None else FOLDS, "groups": groups, "null": strata}
    result = permutation_test_score(LSSVC(gamma=0.1), X, LABELS, n_permutations=M, random_state=7, **options)
    orders = orders_of(N, groups if strata is None else strata)
    splits = FOLDS if groups is None else list(GroupKFold(4).split(X, LABELS, groups))
    assert_scores(result, scores_of_labelings(LSSVC(gamma=0.1), X, LABELS, orders, splits=splits))


def test_permutations_that_change_nothing_warn():
    with pytest.warns(UserWarning, match="y is constant within every group"):
        result = permutation_test_score(LSSVC(), X, CODES, null=CODES, n_permutations=3)
    assert result.pvalue == 1.0


@pytest.mark.filterwarnings("ignore:there are 6 different labelings:UserWarning")
def test_some_permutations_that_change_nothing_do_not_warn():
    y = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    unchanged = [(y[order] == y).all() for order in Exchangeable().orders(6, 10, 0)]
    assert any(unchanged)
    assert not all(unchanged)
    options = {"cv": KFold(2), "n_permutations": 10, "random_state": 0, "scoring": "neg_mean_squared_error"}
    result = permutation_test_score(LSSVR(gamma=0.1), X[:6], y, **options)
    assert_close(result.permutation_scores[unchanged], np.full(sum(unchanged), result.score))


def test_training_parts_that_repeat_rows_are_refitted():
    rng = np.random.default_rng(0)
    splits = [(rng.choice(train, len(train)), test) for train, test in FOLDS]
    with pytest.warns(RefitWarning, match="repeats rows"):
        check_scores(LSSVC(gamma=0.1), X, LABELS, cv=splits, scoring=margin, m=2, kind="refit")


def test_random_states_that_are_instances_are_drawn_from_once():
    state = np.random.RandomState(7)
    result = permutation_test_score(LSSVC(), X, LABELS, cv=FOLDS, n_permutations=M, random_state=state)
    other = permutation_test_score(LSSVC(), X, LABELS, cv=FOLDS, n_permutations=M, random_state=7)
    assert_array_equal(result[1], other[1])
    again = permutation_test_score(LSSVC(), X, LABELS, cv=FOLDS, n_permutations=M, random_state=state)
    assert not np.array_equal(result[1], again[1])
