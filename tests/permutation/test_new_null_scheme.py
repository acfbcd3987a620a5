"""A null scheme is an object with one method: here circular shifts, for labels that follow each other in time."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import model_selection as skl

from foldless import LSSVC
from foldless.model_selection import permutation_test_score
from foldless.permutation.nulls import Exchangeable

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
        named = permutation_test_score(MODEL, X, Y, strata=strata, **options)
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


def test_a_null_scheme_in_a_family_and_with_splits_drawn_anew():
    family = np.stack([X, X[:, ::-1], X**2], axis=2)
    options: dict[str, Any] = {"cv": 4, "n_permutations": M, "random_state": 5, "null": CircularShifts()}
    whole = permutation_test_score(MODEL, family, Y, **options)
    for k in range(3):
        assert_allclose(whole.permutation_scores[:, k], permutation_test_score(MODEL, family[:, :, k], Y, **options)[1])
    anew = permutation_test_score(MODEL, X, Y, resplit=True, **options)
    orders = CircularShifts().orders(N, M, np.random.RandomState(5))
    assert_allclose(anew.permutation_scores, [refitted(order, 4) for order in orders], rtol=1e-12)


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
        ("shifts", "null='shifts' must have a method orders"),
    ],
)
def test_orders_that_are_no_permutations_are_refused(null, message):
    with pytest.raises(ValueError, match=message):
        permutation_test_score(MODEL, X, Y, cv=BLOCKS, n_permutations=M, null=null)


def test_strata_and_a_null_scheme_together_are_refused():
    with pytest.raises(ValueError, match="strata and null both say which labels are exchangeable"):
        permutation_test_score(MODEL, X, Y, cv=BLOCKS, strata=Y, null=CircularShifts())
