"""A null scheme is an object with one method: here circular shifts, for labels that follow each other in time."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import model_selection as skl

from foldless import LSSVC
from foldless._engine.permutation.nulls import Exchangeable
from foldless._sklearn.confounded import given_confounds
from foldless.model_selection import WholeGroups, permutation_test_score

N, M = 40, 9
RNG = np.random.default_rng(2)
Y = np.repeat([0, 1, 0, 1, 1, 0, 1, 0], 5)  # labels come in runs
X = RNG.normal(size=(N, 3)) + 0.7 * Y[:, None]
BLOCKS = list(skl.KFold(4).split(X))
MODEL = LSSVC(gamma=0.3)


class CircularShifts:
    """Labels keep their order in time and start somewhere else."""

    def orders(self, n: int, n_permutations: int, random_state: np.random.RandomState) -> np.ndarray:
        shifts = random_state.randint(1, n, n_permutations)
        return (np.arange(n) + shifts[:, None]) % n


@dataclass
class FlipsWithinBlocks:
    """Of two classes, the labels of some blocks are exchanged: rows come in pairs, one of each class."""

    strata: np.ndarray

    def orders(self, n, n_permutations, random_state):
        orders = np.tile(np.arange(n), (n_permutations, 1))
        for order in orders:
            for block in np.unique(self.strata):
                first, second = np.flatnonzero(self.strata == block)
                if random_state.rand() < 0.5:
                    order[[first, second]] = second, first
        return orders


def refitted(order, splits):
    return skl.cross_val_score(MODEL, X, Y[order], cv=splits).mean()


def test_scores_of_shifted_labels_equal_refits():
    result = permutation_test_score(MODEL, X, Y, cv=BLOCKS, n_permutations=M, random_state=5, null=CircularShifts())
    orders = CircularShifts().orders(N, M, np.random.RandomState(5))
    assert_allclose(result.permutation_scores, [refitted(order, BLOCKS) for order in orders], rtol=1e-12)
    assert result.score == refitted(np.arange(N), BLOCKS)
    assert result.path.reason.startswith("permutations are columns")
    assert result.strata is None


def test_flips_within_blocks_say_their_strata():
    pairs = np.repeat(np.arange(N // 2), 2)
    y = np.tile([0, 1], N // 2)
    null = FlipsWithinBlocks(pairs)
    result = permutation_test_score(MODEL, X, y, cv=BLOCKS, n_permutations=M, null=null)
    orders = null.orders(N, M, np.random.RandomState(0))
    expected = [skl.cross_val_score(MODEL, X, y[order], cv=BLOCKS).mean() for order in orders]
    assert_allclose(result.permutation_scores, expected, rtol=1e-12)
    assert_array_equal(result.strata, pairs)


def test_the_librarys_own_scheme_is_one_of_the_same_kind():
    for strata in (None, np.arange(N) // 10):
        options: dict[str, Any] = {"cv": skl.StratifiedKFold(4), "n_permutations": M, "random_state": 5}
        own = permutation_test_score(MODEL, X, Y, null=Exchangeable(strata), **options)
        named = permutation_test_score(MODEL, X, Y, null=strata, **options)
        assert_array_equal(own.permutation_scores, named.permutation_scores)
        assert_array_equal(own.strata, named.strata)


def test_splits_made_from_the_labels_go_with_those_of_a_users_scheme():
    cv = skl.StratifiedKFold(4)
    result = permutation_test_score(MODEL, X, Y, cv=cv, n_permutations=M, random_state=5, null=CircularShifts())
    for order, found in zip(
        CircularShifts().orders(N, M, np.random.RandomState(5)), result.permutation_scores, strict=True
    ):
        place = np.argsort(order)
        moved = [(place[train], place[test]) for train, test in cv.split(X, Y)]
        assert_allclose(found, refitted(order, moved), rtol=1e-12)


def test_a_null_scheme_in_a_family():
    family = np.stack([X, X[:, ::-1], X**2], axis=2)
    options: dict[str, Any] = {"cv": 4, "n_permutations": M, "random_state": 5, "null": CircularShifts()}
    whole = permutation_test_score(MODEL, family, Y, **options)
    for k in range(3):
        assert_allclose(whole.permutation_scores[:, k], permutation_test_score(MODEL, family[:, :, k], Y, **options)[1])


class Wrong:
    def __init__(self, orders):
        self.found = orders

    def orders(self, n, n_permutations, random_state):
        return self.found


@pytest.mark.parametrize(
    ("null", "message"),
    [
        (Wrong(np.zeros((M, N), int)), r"orders of Wrong must hold the numbers 0 to 39 in each of 9 rows"),
        (Wrong(np.tile(np.arange(N), (M - 1, 1))), r"shape \(8, 40\)"),
        ("shifts", "null='shifts' is not possible here.* an object with a method orders"),
    ],
)
def test_orders_that_are_no_permutations_are_refused(null, message):
    with pytest.raises(ValueError, match=message):
        permutation_test_score(MODEL, X, Y, cv=BLOCKS, n_permutations=M, null=null)


def test_null_free_permutes_among_all_rows_whatever_the_groups():
    groups = np.arange(N) // 5
    options: dict[str, Any] = {"cv": skl.GroupKFold(4), "groups": groups, "n_permutations": M, "random_state": 5}
    result = permutation_test_score(MODEL, X, Y, null="free", **options)
    splits = list(skl.GroupKFold(4).split(X, Y, groups))
    orders = Exchangeable().orders(N, M, np.random.RandomState(5))
    assert_allclose(result.permutation_scores, [refitted(order, splits) for order in orders], rtol=1e-12)
    assert result.strata is None


def test_splits_made_from_the_labels_go_with_free_permutations():
    """There are more than a thousand labelings within the test sets: by default the splits stay."""
    cv = skl.StratifiedKFold(4)
    options: dict[str, Any] = {"cv": cv, "n_permutations": M, "random_state": 5}
    result = permutation_test_score(MODEL, X, Y, null="free", **options)
    expected = []
    for order in Exchangeable().orders(N, M, np.random.RandomState(5)):
        place = np.argsort(order)
        expected.append(refitted(order, [(place[train], place[test]) for train, test in cv.split(X, Y)]))
    assert_allclose(result.permutation_scores, expected, rtol=1e-12)
    assert permutation_test_score(MODEL, X, Y, **options).strata is not None


def test_null_within_test_sets_serves_splits_of_any_kind():
    options: dict[str, Any] = {"n_permutations": M, "random_state": 5, "null": "within_test_sets"}
    for cv in (BLOCKS, skl.KFold(4), skl.StratifiedKFold(4)):
        splits = list(skl.check_cv(cv).split(X, Y))
        fold = np.empty(N, int)
        for number, (_, test) in enumerate(splits):
            fold[test] = number
        result = permutation_test_score(MODEL, X, Y, cv=cv, **options)
        orders = Exchangeable(fold).orders(N, M, np.random.RandomState(5))
        assert_allclose(result.permutation_scores, [refitted(order, splits) for order in orders], rtol=1e-12)
        assert_array_equal(result.strata, fold)


def test_orders_of_whole_groups_keep_labels_together():
    groups = np.array(["a", "b", "b", "c", "a", "c"])
    orders = WholeGroups(groups).orders(6, 50, np.random.RandomState(0))
    labels = np.array([1, 2, 2, 3, 1, 3])
    for order in orders:
        assert_array_equal(np.sort(order), np.arange(6))
        moved = labels[order]
        assert all(len(set(moved[groups == each])) == 1 for each in "abc")


def test_whole_groups_exchange_their_labels():
    groups = np.random.default_rng(0).permutation(np.repeat(np.arange(8), 5))
    y = np.array([0, 1, 1, 0, 1, 0, 0, 0])[groups]
    scheme = WholeGroups(groups)
    result = permutation_test_score(MODEL, X, y, cv=BLOCKS, n_permutations=M, random_state=5, null=scheme)
    members = np.array([np.flatnonzero(groups == group) for group in range(8)])
    orders = np.empty((M, N), int)
    orders[:, members] = members[Exchangeable().orders(8, M, np.random.RandomState(5))]
    assert (groups[orders] == groups[orders[:, members[:, 0]]][:, groups]).all()
    expected = [skl.cross_val_score(MODEL, X, y[order], cv=BLOCKS).mean() for order in orders]
    assert_allclose(result.permutation_scores, expected, rtol=1e-12)


def test_whole_groups_of_classes_keep_what_confounds_explain():
    """By the means of the confounds in the groups; classes that differ inside a group have no such means."""
    groups = np.repeat(np.arange(8), 5)
    y, C = np.array([0, 1, 1, 0, 1, 0, 0, 1])[groups], np.random.default_rng(3).normal(size=(N, 2))
    options: dict[str, Any] = {"cv": BLOCKS, "n_permutations": M, "random_state": 5}
    result = permutation_test_score(MODEL, X, y, null=WholeGroups(groups), confounds=C, **options)
    means = C.reshape(8, 5, 2).mean(1)
    among = given_confounds(y[::5], means)
    same = permutation_test_score(MODEL, X, y, null=OwnGroups(groups, among), confounds=C, **options)
    assert_array_equal(result.permutation_scores, same.permutation_scores)
    with pytest.raises(ValueError, match="needs one class for each group, and some groups have several"):
        permutation_test_score(MODEL, X, np.roll(y, 2), null=WholeGroups(groups), confounds=C, **options)


class OwnGroups:
    """A user's scheme of the same orders."""

    def __init__(self, groups, among):
        self.whole = WholeGroups(groups, among)

    def orders(self, n, n_permutations, random_state):
        return self.whole.orders(n, n_permutations, random_state)
