"""Null distributions: which permutations of the labels are drawn, what becomes of the splits, and p-values.

A score s is compared with the scores s_1 ... s_m of m random permutations of the labels (Ojala & Garriga 2010, test 1):

    p = (1 + #{j : s_j >= s}) / (1 + m)                          never 0
    family-wise  p_k = (1 + #{j : max_l s_jl >= s_k}) / (1 + m)   for members k that share their permutations

(<= and min for a loss). The second holds the probability of any false discovery in the family below p (Nichols &
Holmes 2002). Scores that are equal up to rounding count as equal, and a permutation whose score is not defined as one
that is at least as good: both err on the safe side.

A null scheme says which labelings are as likely as the true one where nothing is to be found. It has one method,

    orders(n, n_permutations, random_state) -> row numbers (m, n), row i taking the label of row orders[j, i]

and may have ``strata``, the sets of rows within which it permutes. Splits of the true labels stay, or go with the
labels, or are drawn anew for every labeling.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from foldless.linalg.memory import require_memory

ROUNDING = 1e-10  # relative difference up to which two scores are the same
ROUNDING_SINGLE = 1e-5  # the same for data in single precision


# -- schemes -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NullScheme:
    """Labels are exchangeable among rows with equal entries of ``strata``; None: all of them."""

    strata: Any = None
    draw: Callable | None = None  # (order) -> the splits of that labeling; None: those of the true labels stay

    def orders(self, n, n_permutations, random_state):
        """Row numbers (n_permutations, n): row i takes the label of row orders[j, i]."""
        return permutations(n, n_permutations, random_state, self.strata)


@dataclass(frozen=True)
class UserScheme(NullScheme):
    """A scheme that a user gave: any object with a method ``orders``."""

    given: Any = None

    def orders(self, n, n_permutations, random_state):
        """Those of the object, which must be permutations."""
        orders = np.asarray(self.given.orders(n, n_permutations, random_state))
        if orders.shape != (n_permutations, n) or not (np.sort(orders, axis=1) == np.arange(n)).all():
            raise ValueError(
                f"null: orders of {type(self.given).__name__} must hold the numbers 0 to {n - 1} in each of"
                f" {n_permutations} rows; they have shape {orders.shape}."
            )
        return orders


def choose_scheme(n, strata=None, *, null=None, first=(), from_labels=False, draw=None):
    """The null scheme of a test of n rows.

    ``null`` is the user's or None, ``first`` are the splits of the true labels, ``from_labels`` says whether they were
    made from them, and ``draw`` draws those of a labeling where they are to be drawn anew.
    """
    if draw is None and from_labels:
        if null is None and is_partition(first, n):
            return NullScheme(within_test_sets(first, n, strata))
        draw = partial(moved_splits, first)
    return NullScheme(strata, draw) if null is None else UserScheme(getattr(null, "strata", None), draw, null)


def within_test_sets(splits, n, strata=None):
    """The test sets as strata, within ``strata`` if given.

    Splits that were balanced by the true labels are not balanced for labels permuted across them, which then score
    below chance: the true ones would look better than they are. Within test sets labels are exchangeable.
    """
    fold = np.empty(n, int)
    for number, (_, test) in enumerate(splits):
        fold[test] = number
    if strata is None:
        return fold
    pairs = np.column_stack([np.unique(strata, return_inverse=True)[1], fold])
    return np.unique(pairs, axis=0, return_inverse=True)[1].ravel()


def moved_splits(first, order):
    """Splits that go with the labels: row i takes the place of row order[i] in the splits of the true labels.

    Labels and splits together against the features: that is a permutation of the features, under which splits made from
    the labels stay as they are. For those whose test sets overlap there is no other way to keep them balanced.
    """
    place = np.argsort(order)
    return [(np.sort(place[train]), np.sort(place[test])) for train, test in first]


def is_partition(splits, n):
    """Whether every row is tested once."""
    tested = np.concatenate([test for _, test in splits])
    return len(tested) == n and len(np.unique(tested)) == n


# -- labelings and their splits ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Splits:
    """(train, test) pairs of several labelings: the same for all of them, or with ``own`` a list for each."""

    pairs: list
    own: bool = False

    def of_each(self, n_labelings):
        """A list of pairs for every labeling."""
        return self.pairs if self.own else [self.pairs] * n_labelings

    def select(self, part):
        """The splits of some of the labelings, a slice."""
        return Splits(self.pairs[part], True) if self.own else self


@dataclass(frozen=True)
class Null:
    """The labelings of one test, the true one first, and the splits of each."""

    orders: np.ndarray  # (1 + m, n)
    scheme: NullScheme
    first: Any  # the splits of the true labels

    @classmethod
    def draw(cls, scheme, n, n_permutations, random_state, first=()):
        """The labelings that a scheme draws."""
        require_memory((n_permutations, n), np.int32, "the row numbers of the permutations")
        orders = scheme.orders(n, n_permutations, check_random_state(random_state))
        truth = np.arange(n, dtype=orders.dtype)
        return cls(np.concatenate([truth[None], orders]), scheme, first)

    def __len__(self):
        return len(self.orders)

    def splits(self, part=slice(None)):
        """The splits of some of the labelings, a slice."""
        draw = self.scheme.draw
        if draw is None:
            return Splits(self.first)
        numbers = range(len(self))[part]
        return Splits([draw(self.orders[k]) if k else self.first for k in numbers], own=True)


def permutations(n, n_permutations, random_state, strata=None):
    """Row numbers (m, n), drawn as scikit-learn's ``permutation_test_score`` draws them; within ``strata`` if given."""
    random_state = check_random_state(random_state)
    orders = np.empty((n_permutations, n), np.int32 if n < 2**31 else np.int64)
    levels = None if strata is None else [np.flatnonzero(np.asarray(strata) == level) for level in np.unique(strata)]
    for order in orders:
        if levels is None:
            order[:] = random_state.permutation(n)
            continue
        order[:] = np.arange(n)
        for rows in levels:
            order[rows] = random_state.permutation(rows)
    return orders


# -- p-values ----------------------------------------------------------------------------------------------------------


def p_values(score, null, *, greater=True, rounding=ROUNDING):
    """(1 + number of null scores at least as good) / (1 + m), for scores (...) and null (m, ...)."""
    score, null = np.asarray(score, float), np.asarray(null, float)
    sign = 1.0 if greater else -1.0
    with np.errstate(invalid="ignore"):
        as_good = sign * null >= sign * score - rounding * np.abs(score)
    count = np.sum(as_good | (np.isnan(null) & (rounding > 0)), axis=0)
    return np.where(np.isnan(score), np.nan, (count + 1.0) / (len(null) + 1.0))[()]
