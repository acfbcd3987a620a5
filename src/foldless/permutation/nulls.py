"""Null distributions: which permutations of the labels are drawn, what becomes of the splits, p-values, the result.

A score s is compared with the scores s_1 ... s_m of m random permutations of the labels (Ojala & Garriga 2010, test 1):

    p = (1 + #{j : s_j >= s}) / (1 + m)                          never 0
    family-wise  p_k = (1 + #{j : max_l s_jl >= s_k}) / (1 + m)   for members k that share their permutations

(<= and min for a loss). The second holds the probability of any false discovery in the family below p (Nichols &
Holmes 2002). Scores that are equal up to rounding count as equal, and a permutation whose score is not defined as one
that is at least as good: both err on the safe side.

A null scheme says which labelings are as likely as the true one where nothing is to be found: labels are exchangeable
among all rows, within ``strata``, or as an object says that has the method

    orders(n, n_permutations, random_state) -> row numbers (m, n), row i taking the label of row orders[j, i]

and may have ``strata``, the sets of rows within which it permutes. Splits of the true labels stay, or go with the
labels, or are drawn anew for every labeling.
"""

from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from foldless.linalg.memory import require_memory

ROUNDING = 1e-10  # relative difference up to which two scores are the same
ROUNDING_SINGLE = 1e-5  # the same for data in single precision


@dataclass(frozen=True)
class Null:
    """The labelings of one test, the true one first, and their splits."""

    orders: np.ndarray  # (1 + m, n): labeling j gives row i the label of row orders[j, i]
    first: Any = ()  # (train, test) pairs of the true labels, and of all labelings unless they have their own
    draw: Callable | None = None  # (order) -> the splits of that labeling, drawn when they are asked for
    own: list | None = None  # splits of each labeling, once they are drawn
    strata: Any = None  # the sets of rows within which labels were permuted; None: all of them

    def select(self, part):
        """Some of the labelings, a slice, with their splits drawn."""
        own = None if self.own is None else self.own[part]
        if self.draw is not None:
            own = [self.draw(self.orders[k]) if k else self.first for k in range(len(self.orders))[part]]
        return replace(self, orders=self.orders[part], draw=None, own=own)


def draw_null(n, n_permutations, random_state, strata=None, *, null=None, first=(), from_labels=False, redraw=None):
    """The :class:`Null` of a test of n rows.

    ``null`` is the user's scheme or None, ``first`` are the splits of the true labels, ``from_labels`` says whether
    they were made from them, and ``redraw`` draws those of a labeling where they are to be drawn anew.
    """
    if strata is not None:
        strata = np.asarray(strata)
        if strata.shape != (n,):
            raise ValueError(f"strata has shape {strata.shape}; give one entry for each of the {n} rows of X.")
        if (strata != strata).any():
            raise ValueError("strata holds NaN; give every row a stratum.")
    if redraw is None and from_labels:
        tested = np.sort(np.concatenate([test for _, test in first]))
        if null is None and np.array_equal(tested, np.arange(n)):
            strata = within_test_sets(first, n, strata)
        else:
            redraw = partial(moved_splits, first)
    require_memory((n_permutations, n), np.int32, "the row numbers of the permutations")
    if null is None:
        orders = permutations(n, n_permutations, random_state, strata)
    else:
        strata = getattr(null, "strata", None)
        orders = np.asarray(null.orders(n, n_permutations, check_random_state(random_state)))
        if orders.shape != (n_permutations, n) or not (np.sort(orders, axis=1) == np.arange(n)).all():
            raise ValueError(
                f"null: orders of {type(null).__name__} must hold the numbers 0 to {n - 1} in each of"
                f" {n_permutations} rows; they have shape {orders.shape}."
            )
    truth = np.arange(n, dtype=orders.dtype)
    return Null(np.concatenate([truth[None], orders]), first, redraw, strata=strata)


def permutations(n, n_permutations, random_state, strata=None):
    """Row numbers (m, n), drawn as scikit-learn's ``permutation_test_score`` draws them; within ``strata`` if given."""
    random_state = check_random_state(random_state)
    orders = np.empty((n_permutations, n), np.int32 if n < 2**31 else np.int64)
    orders[:] = np.arange(n)
    sets = [np.arange(n)]
    if strata is not None:
        sets = [np.flatnonzero(np.asarray(strata) == level) for level in np.unique(strata)]
    for order in orders:
        for rows in sets:
            order[rows] = random_state.permutation(rows)
    return orders


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


def p_values(score, null, *, greater=True, rounding=ROUNDING):
    """(1 + number of null scores at least as good) / (1 + m), for scores (...) and null (m, ...)."""
    score, null = np.asarray(score, float), np.asarray(null, float)
    sign = 1.0 if greater else -1.0
    with np.errstate(invalid="ignore"):
        as_good = sign * null >= sign * score - rounding * np.abs(score)
    count = np.sum(as_good | (np.isnan(null) & (rounding > 0)), axis=0)
    return np.where(np.isnan(score), np.nan, (count + 1.0) / (len(null) + 1.0))[()]


class PermutationTestResult(namedtuple("_Three", "score permutation_scores pvalue")):
    """scikit-learn's three values, and what displays and readers want besides.

    For one test ``score`` and ``pvalue`` are numbers and ``permutation_scores`` has shape (n_permutations,). For a
    family of k members they are (k,) and (n_permutations, k), for a generalisation (k, k) and (n_permutations, k, k)
    with the member trained on first.

    Attributes
    ----------
    score, permutation_scores, pvalue
    pvalue_fwe : p-values by the maximum over the family, shape of ``score``; None for one test
    max_scores : ndarray of shape (n_permutations,), the best score of every permutation; None for one test
    n_permutations : int
    scoring : str
    greater_is_better : bool
    strata : ndarray of shape (n_samples,) or None, the sets of rows within which labels were permuted
    best_params : list of dicts, the choice of every outer split for the true labels; None unless one search was tested
    path : Path, how it was computed and why
    """

    pvalue_fwe: Any = None
    max_scores: Any = None
    n_permutations: int = 0
    scoring: str = ""
    greater_is_better: bool = True
    best_params: list | None = None
    strata: np.ndarray | None = None
    path: object = None

    def __new__(  # noqa: D102
        cls,
        score,
        permutation_scores,
        pvalue=None,
        *,
        scoring="",
        greater_is_better=True,
        path=None,
        best_params=None,
        strata=None,
        rounding=ROUNDING,
    ):
        counted = partial(p_values, score, greater=greater_is_better, rounding=rounding)
        pvalue = counted(permutation_scores) if pvalue is None else pvalue
        self = super().__new__(cls, score, permutation_scores, pvalue)
        self.scoring, self.greater_is_better, self.path = scoring, greater_is_better, path
        self.n_permutations, self.best_params, self.strata = len(permutation_scores), best_params, strata
        if np.ndim(score):
            best, extreme = (np.max, np.inf) if greater_is_better else (np.min, -np.inf)
            known = ~np.isnan(np.ravel(score))  # members without a score (an interrupted family) are no members
            flat = np.reshape(permutation_scores, (len(permutation_scores), -1))[:, known]
            self.max_scores = best(np.where(np.isnan(flat), extreme, flat), axis=1, initial=-extreme)
            self.pvalue_fwe = counted(self.max_scores.reshape(-1, *[1] * np.ndim(score)))
        return self

    def __repr__(self):
        how = f"{self.n_permutations} permutations; {self.path}"
        if not np.ndim(self.score):
            return f"{self.scoring} {self.score:.4f}, p = {self.pvalue:.4g} ({how})"
        if np.isnan(self.score).all():
            return f"{self.scoring} of {np.size(self.score)} members, none of them defined ({how})"
        pick = np.nanargmax if self.greater_is_better else np.nanargmin
        best = np.unravel_index(pick(self.score), np.shape(self.score))
        place = best[0] if len(best) == 1 else tuple(map(int, best))
        return (
            f"{self.scoring} of {np.size(self.score)} members, best {self.score[best]:.4f} at {place}, family-wise"
            f" p = {self.pvalue_fwe[best]:.4g} ({how})"
        )
