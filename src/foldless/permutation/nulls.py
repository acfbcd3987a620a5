"""Null distributions: which permutations of the labels are drawn, what becomes of the splits, and p-values.

A score s is compared with the scores s_1 ... s_m of m random permutations of the labels (Ojala & Garriga 2010, test 1):

    p = (1 + #{j : s_j >= s}) / (1 + m)                          never 0
    family-wise  p_k = (1 + #{j : max_l s_jl >= s_k}) / (1 + m)   for members k that share their permutations

(<= and min for a loss). The second holds the probability of any false discovery in the family below p (Nichols &
Holmes 2002). Scores that are equal up to rounding count as equal, and a permutation whose score is not defined as one
that is at least as good: both err on the safe side.

A null scheme says which labelings are as likely as the true one where nothing is to be found. It has one method,

    orders(n, n_permutations, random_state) -> row numbers (m, n), row i taking the label of row orders[j, i]

and may have ``strata``, the sets of rows within which it permutes. :class:`MovingSplits` and :class:`Resplit` put a
rule for the splits of every labeling around another scheme; with the others the splits of the true labels stay.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state

from foldless.linalg.memory import require_memory

ROUNDING = 1e-10  # relative difference up to which two scores are the same
ROUNDING_SINGLE = 1e-5  # the same for data in single precision


# -- schemes -----------------------------------------------------------------------------------------------------------


class NullScheme:
    """What a permutation test asks of a null scheme; splits stay unless a scheme says otherwise."""

    strata: np.ndarray | None = None  # sets of rows within which labels are permuted
    moves_splits: ClassVar[bool] = False  # whether ``splits(order)`` gives every labeling its own

    def orders(self, n, n_permutations, random_state):
        """Row numbers (n_permutations, n): row i takes the label of row orders[j, i]."""
        raise NotImplementedError

    def splits(self, order):
        """The splits of one labeling."""
        raise NotImplementedError


class Free(NullScheme):
    """All labels are exchangeable."""

    def orders(self, n, n_permutations, random_state):
        """Permutations of all rows."""
        return permutations(n, n_permutations, random_state)


@dataclass(frozen=True)
class UserScheme(NullScheme):
    """A scheme that a user gave: any object with a method ``orders``."""

    scheme: Any

    @property
    def strata(self):  # type: ignore[override]
        """Those of the object, if it has any."""
        return getattr(self.scheme, "strata", None)

    def orders(self, n, n_permutations, random_state):
        """Those of the object, which must be permutations."""
        orders = np.asarray(self.scheme.orders(n, n_permutations, random_state))
        if orders.shape != (n_permutations, n) or not (np.sort(orders, axis=1) == np.arange(n)).all():
            raise ValueError(
                f"null: orders of {type(self.scheme).__name__} must hold the numbers 0 to {n - 1} in each of"
                f" {n_permutations} rows; they have shape {orders.shape}."
            )
        return orders


@dataclass(frozen=True)
class WithinStrata(NullScheme):
    """Labels are exchangeable among rows with equal entries of ``strata``."""

    strata: np.ndarray

    def orders(self, n, n_permutations, random_state):
        """Permutations that stay within the strata."""
        return permutations(n, n_permutations, random_state, self.strata)


class WithinTestSets(WithinStrata):
    """Labels are exchangeable within the test sets of a splitter that looked at them, and within ``strata`` if given.

    Splits that were balanced by the true labels are not balanced for labels permuted across them, which then score
    below chance: the true ones would look better than they are. Within test sets labels are exchangeable.
    """

    def __init__(self, splits, n, strata=None):
        fold = np.empty(n, int)
        for number, (_, test) in enumerate(splits):
            fold[test] = number
        if strata is not None:
            pairs = np.column_stack([np.unique(strata, return_inverse=True)[1], fold])
            fold = np.unique(pairs, axis=0, return_inverse=True)[1].ravel()
        super().__init__(fold)


@dataclass(frozen=True)
class MovingSplits(NullScheme):
    """Splits go with the labels: row i takes the place of row order[i] in the splits ``first`` of the true labels.

    Labels and splits together against the features: that is a permutation of the features, under which splits made from
    the labels stay as they are. For those whose test sets overlap there is no other way to keep them balanced.
    """

    scheme: NullScheme
    first: list
    moves_splits: ClassVar[bool] = True

    @property
    def strata(self):  # type: ignore[override]
        """Those of the scheme."""
        return self.scheme.strata

    def orders(self, n, n_permutations, random_state):
        """Those of the scheme."""
        return self.scheme.orders(n, n_permutations, random_state)

    def splits(self, order):
        """The splits ``first`` with rows in their new places."""
        place = np.argsort(order)
        return [(np.sort(place[train]), np.sort(place[test])) for train, test in self.first]


@dataclass(frozen=True)
class Resplit(MovingSplits):
    """Splits are drawn anew for every labeling: ``draw(order)`` gives them."""

    draw: Callable

    def splits(self, order):
        """The splits that are drawn from the labels in this order."""
        return self.draw(order)


def choose_scheme(n, strata=None, *, null=None, first=(), from_labels=False, draw=None):
    """The null scheme of a test of n rows.

    ``null`` is the user's or None, ``first`` are the splits of the true labels, ``from_labels`` says whether they were
    made from them, and ``draw`` draws those of a labeling where they are to be drawn anew.
    """
    scheme: NullScheme
    if null is not None:
        scheme = UserScheme(null)
    elif from_labels and draw is None and is_partition(first, n):
        return WithinTestSets(first, n, strata)
    else:
        scheme = Free() if strata is None else WithinStrata(strata)
    if draw is not None:
        return Resplit(scheme, first, draw)
    return MovingSplits(scheme, first) if from_labels else scheme


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
        return cls(with_truth(orders), scheme, first)

    def __len__(self):
        return len(self.orders)

    def splits(self, part=slice(None)):
        """The splits of some of the labelings, a slice."""
        if not self.scheme.moves_splits:
            return Splits(self.first)
        numbers = range(len(self))[part]
        return Splits([self.scheme.splits(self.orders[k]) if k else self.first for k in numbers], own=True)


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


def with_truth(orders):
    """Row numbers of the true labels and of their permutations, (1 + m, n)."""
    return np.concatenate([np.arange(orders.shape[1], dtype=orders.dtype)[None], orders])


# -- p-values ----------------------------------------------------------------------------------------------------------


def p_values(score, null, *, greater=True, rounding=ROUNDING):
    """(1 + number of null scores at least as good) / (1 + m), for scores (...) and null (m, ...)."""
    score, null = np.asarray(score, float), np.asarray(null, float)
    sign = 1.0 if greater else -1.0
    with np.errstate(invalid="ignore"):
        as_good = sign * null >= sign * score - rounding * np.abs(score)
    count = np.sum(as_good | (np.isnan(null) & (rounding > 0)), axis=0)
    return np.where(np.isnan(score), np.nan, (count + 1.0) / (len(null) + 1.0))[()]
