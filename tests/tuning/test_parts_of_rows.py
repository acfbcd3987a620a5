"""Parts of the rows that stand for the whole: classes and test sets in their shares, each part within the next."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn import model_selection as skl

from foldless._engine.tuning.fidelity import order_of_rows, place_within

CODES = np.random.default_rng(0).permutation(np.repeat([0, 1, 2, 3], [600, 300, 94, 6]))


def task(codes=CODES, active=None):
    n = len(CODES)
    problem = SimpleNamespace(n=n, active=np.arange(n) if active is None else active)
    return SimpleNamespace(problem=problem, codes=codes)


def test_places_count_the_equal_entries_before():
    np.testing.assert_array_equal(place_within(np.array([5, 7, 5, 5, 7])), [0, 0, 1, 2, 1])
    assert len(place_within(np.array([], int))) == 0


@pytest.mark.parametrize("size", [50, 200, 640])
def test_every_beginning_holds_the_classes_in_their_shares(size):
    part = order_of_rows(task(), None, 0)[:size]
    counts = np.bincount(CODES[part], minlength=4)
    np.testing.assert_allclose(counts, size * np.bincount(CODES) / len(CODES), atol=4)
    assert counts.min() >= 3


def test_test_sets_of_splits_keep_their_shares():
    splits = list(skl.PredefinedSplit(np.where(np.arange(1000) % 20 == 0, 0, -1)).split())
    part = order_of_rows(task(), splits, 0)[:200]
    assert 8 <= np.isin(part, splits[0][1]).sum() <= 13


def test_all_rows_of_positive_weight_come_once():
    active = np.flatnonzero(np.arange(1000) % 3)
    for codes in (CODES, None):
        np.testing.assert_array_equal(np.sort(order_of_rows(task(codes, active), None, 0)), active)


def test_the_random_state_draws_the_order():
    one, two, other = (order_of_rows(task(), None, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, two)
    assert (one[:100] != other[:100]).any()
