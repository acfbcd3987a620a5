"""Splits that go with the labels: where test sets overlap, or leave few labelings within them."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn import model_selection as skl

from foldless import LSSVC, LSSVR
from foldless._engine.permutation.labelings import Moving, Solver
from foldless._engine.permutation.nulls import Exchangeable, keep_balance
from foldless._sklearn.permutation_spec import PermutationData
from foldless.model_selection import permutation_test_score
from support.families import BINARY, CONFOUNDS, KFDA, OUTPUTS, THREE, VALUES, WEIGHT, N, X
from support.permutation import permutation_test_in_memory
from support.refits import at_rows, labelings, p_value, refit
from support.tolerances import assert_close

EVERY = np.arange(N)
SPLITS = {
    "the others are tested": (EVERY[EVERY % 5 > 0], EVERY[EVERY % 5 == 0]),
    "not all others are tested": (EVERY[EVERY % 5 > 1], EVERY[EVERY % 5 == 0][::-1]),
    "training rows are tested": (EVERY[EVERY % 5 > 0], EVERY[:4]),
}
EQUAL = np.round(X)[:, :1]  # rows that are the same
STACKED = {
    "LSSVC": (LSSVC(gamma=0.1), X, BINARY),
    "LSSVC, three classes": (LSSVC(gamma=0.1), X, THREE),
    "LSSVC, low rank": (LSSVC("linear"), X, THREE),
    "LSSVC, no intercept": (LSSVC(gamma=0.1, fit_intercept=False), X, THREE),
    "LSSVC, equal rows": (LSSVC("linear"), EQUAL, THREE),
    "LSSVR": (LSSVR(gamma=0.1), X, VALUES),
    "LSSVR, outputs": (LSSVR("linear"), X, OUTPUTS),
    "LSSVC, basis functions": (LSSVC(gamma=0.1, penalty="coef"), X, BINARY),
    "KFDA": (KFDA(gamma=0.1), X, THREE),
    "KFDA, low rank": (KFDA("linear"), X, THREE),
    "KFDA, centroid": (KFDA(gamma=0.1, threshold="centroid"), X, BINARY),
    "KFDA, fisher": (KFDA(gamma=0.1, threshold="fisher"), X, BINARY),
    "KFDA, no intercept": (KFDA(gamma=0.1, fit_intercept=False), X, THREE),
}
ALONE = {
    "weights": (LSSVC(gamma=0.1), X, THREE, {"sample_weight": WEIGHT}),
    "confounds": (LSSVC(gamma=0.1), X, BINARY, {"confounds": CONFOUNDS}),
    "huge penalty": (LSSVC(gamma=0.1, alpha=2e7), X, BINARY, {}),
    "huge penalty, discriminant": (KFDA(gamma=0.1, alpha=2e7), X, THREE, {}),
}


@pytest.fixture
def one_by_one(monkeypatch):
    """Labelings that were not part of a stack, as they come."""
    found, alone = [], Moving._alone
    monkeypatch.setattr(Moving, "_alone", lambda moving, j, *split: found.append(j) or alone(moving, j, *split))
    return found


def assert_held_out(estimator, data, y, split, m=4, **given):
    """Decisions of all labelings, against refits of features in another order; they may share a constant a row."""
    task = PermutationData(data, y, **given).task(estimator).task
    orders = labelings(N, m)
    moving, (train, test) = Moving.of(Solver.of(task.problem), task, orders), split
    D = moving.held_out(train, test)
    for order, found in zip(orders, D, strict=True):
        place = np.argsort(order)
        moved = {name: each[place] for name, each in given.items()}
        model = at_rows(refit(estimator, data[place], y, train, **moved), test, moved)
        ask = getattr(model, "decision_function", model.predict)
        expected = ask(data[place][test]).reshape(len(test), -1).T
        if isinstance(estimator, KFDA) and len(expected) > 1:
            found, expected = found - found.mean(0), expected - expected.mean(0)
        assert_close(found, expected, scale=np.abs(expected).max())


@pytest.mark.parametrize("name", SPLITS)
@pytest.mark.parametrize("case", STACKED)
def test_decisions_of_moved_splits_equal_refits_of_features_in_another_order(case, name, one_by_one):
    assert_held_out(*STACKED[case], SPLITS[name])
    assert bool(one_by_one) == (name == "training rows are tested")


@pytest.mark.parametrize("name", SPLITS)
@pytest.mark.parametrize("case", ALONE)
def test_labelings_that_no_stack_can_hold_equal_refits(case, name, one_by_one):
    estimator, data, y, given = ALONE[case]
    assert_held_out(estimator, data, y, SPLITS[name], **given)
    assert sorted(one_by_one) == list(range(5))


def test_stacks_are_made_of_any_number_of_labelings(monkeypatch):
    cv = skl.RepeatedStratifiedKFold(n_splits=4, n_repeats=2, random_state=0)
    options = {"cv": cv, "n_permutations": 7, "scoring": "accuracy"}
    whole = permutation_test_score(KFDA(gamma=0.1), X, THREE, **options)
    monkeypatch.setattr("foldless._engine.permutation.labelings.ENTRIES", 100)
    parts = permutation_test_in_memory(1, KFDA(gamma=0.1), X, THREE, **options)
    assert_array_equal(whole.permutation_scores, parts.permutation_scores)
    assert whole.path.reason.endswith("each has its own splits")


# -- few labelings -----------------------------------------------------------------------------------------------------

FEW = np.repeat([0, 1], [17, 3])
CLEAR = np.random.default_rng(0).normal(size=(20, 3)) + 8 * FEW[:, None] * [1, 0, 0]


def test_labelings_are_counted():
    assert_close(np.exp(Exchangeable().log_labelings(FEW)), 1140)
    assert_close(np.exp(Exchangeable(FEW).log_labelings(FEW)), 1)
    assert_close(np.exp(Exchangeable(np.arange(20) // 10).log_labelings(FEW)), 120)
    assert_close(np.exp(Exchangeable().log_labelings(np.array(["b", "a", "b"], object))), 3)
    assert_close(np.exp(Exchangeable().log_labelings(np.eye(3))), 6)


@pytest.mark.filterwarnings("ignore:The least populated class:UserWarning")
def test_splits_go_with_the_labels_where_test_sets_leave_few_labelings():
    """Three test sets hold a row of the rarer class each: eight labelings within them, and 1140 of all rows."""
    options = {"n_permutations": 1000, "scoring": "balanced_accuracy"}
    result = permutation_test_score(LSSVC("linear", alpha=0.1), CLEAR, FEW, cv=10, **options)
    assert result.score == 1
    assert result.pvalue < 0.005
    assert result.strata is None
    first = list(skl.StratifiedKFold(10).split(CLEAR, FEW))
    scheme, moves = keep_balance(Exchangeable(), first, FEW)
    assert (scheme.strata, moves) == (None, True)
    scheme, moves = keep_balance(Exchangeable(), first, FEW, stay=True)
    assert (len(np.unique(scheme.strata)), moves) == (10, False)


@pytest.mark.filterwarnings("ignore:The least populated class:UserWarning")
def test_generalisation_warns_of_few_labelings_within_test_sets():
    family = np.stack([CLEAR, CLEAR[::-1]], 2)
    with pytest.warns(UserWarning, match="there are 8 different labelings, fewer than the 50 permutations"):
        result = permutation_test_score(
            LSSVC("linear"), family, FEW, cv=10, n_permutations=50, scoring="accuracy", generalise=True
        )
    assert result.pvalue.min() > 0.05


def test_few_labelings_of_splits_that_ignore_the_labels_warn():
    with pytest.warns(UserWarning, match="at least about 0.17"):
        permutation_test_score(LSSVC(), X[:6], [0, 0, 0, 1, 0, 0], cv=skl.KFold(2), n_permutations=20)


def test_labels_move_with_their_splits_within_strata():
    strata = np.arange(20) % 2
    options = {"cv": skl.StratifiedKFold(3), "n_permutations": 9, "null": strata, "scoring": "accuracy"}
    result = permutation_test_score(LSSVC("linear"), CLEAR, FEW, **options)
    expected = []
    for order in labelings(20, 9, strata):
        place = np.argsort(order)
        expected.append(skl.cross_val_score(LSSVC("linear"), CLEAR[place], FEW, cv=skl.StratifiedKFold(3)).mean())
    assert_close([result.score, *result.permutation_scores], expected)
    assert result.pvalue == p_value(expected[0], expected[1:])
