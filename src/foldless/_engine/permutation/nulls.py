"""Null distributions: which permutations of the labels are drawn, what becomes of the splits, p-values, the result.

A score s is compared with the scores s_1 ... s_m of m random permutations of the labels (Ojala & Garriga 2010, test 1):

    p = (1 + #{j : s_j >= s}) / (1 + m)                          never 0
    family-wise  p_k = (1 + #{j : max_l s_jl >= s_k}) / (1 + m)   for members k that share their permutations
    of pairs     max(p_ij, p_ii, p_jj)                            for models of member i tested at member j

(<= and min for a loss). The second holds the probability of any false discovery in the family below p (Nichols & Holmes
2002) where all members without an effect are jointly independent of the labels: permuted labels then have with them the
distribution of the true ones, whatever the other members do. A pair of a member without an effect and one with an
effect is no such member: the model of noise points anywhere, and the true labels reward it where it meets the effect
by luck, which permuted labels never do. So a pair is found only if both of its members are (conjunction; Nichols et
al. 2005): a false one takes a false member, whose probability is bounded.

Scores that are equal up to rounding count as equal, and a permutation whose score is not defined as one that is at
least as good: both err on the safe side.

A null scheme says which labelings are as likely as the true one where nothing is to be found. It has the method

    orders(n, n_permutations, random_state) -> row numbers (m, n), row i taking the label of row orders[j, i]

and may have ``strata``, the sets of rows within which it permutes. :class:`Exchangeable` and :class:`WholeGroups` are
the library's own; users write others. :func:`scheme_of` makes one of the argument ``null=``.
Splits of the true labels stay, or are a function of a labeling's order: they go with it, or are drawn anew for it.
"""

from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from foldless._engine.linalg.random_state import check_random_state
from foldless._engine.precision import cost
from foldless.results import Result, histogram, points

ROUNDING = 1e-10  # relative difference up to which two scores are the same
ROUNDING_SINGLE = 1e-5  # the same for data in single precision
ENOUGH_LABELINGS = 1000  # different ones within test sets, below which splits go with the labels
NULL_NAMES = ("within_test_sets", "free", "resplit")


@dataclass(frozen=True)
class Null:
    """The labelings of one test, the true one first, and their splits."""

    orders: np.ndarray  # (1 + m, n): labeling j gives row i the label of row orders[j, i]
    true_splits: Any = ()  # (train, test) pairs of the true labels, and of all labelings unless they have others
    draw: Callable | None = None  # (order) -> the splits of that labeling, drawn when they are asked for
    drawn: list | None = None  # splits of each labeling, once they are drawn
    moves: bool = False  # whether the splits go with the labels
    strata: Any = None  # the sets of rows within which labels were permuted; None: all of them

    def select(self, chosen):
        """Some of the labelings, a slice, with their splits drawn."""
        drawn = None if self.drawn is None else self.drawn[chosen]
        if self.draw is not None:
            drawn = [self.draw(self.orders[k]) if k else self.true_splits for k in range(len(self.orders))[chosen]]
        return replace(self, orders=self.orders[chosen], draw=None, drawn=drawn)

    @property
    def splits(self):
        """The splits of each labeling."""
        if self.moves:
            return [moved_splits(self.true_splits, order) for order in self.orders]
        return [self.true_splits] * len(self.orders) if self.drawn is None else self.drawn


class NullScheme(Protocol):
    """Which labelings are as likely as the true one."""

    def orders(self, n: int, n_permutations: int, random_state: np.random.RandomState, /) -> np.ndarray:
        """Row numbers (m, n), row i taking the label of row orders[j, i]."""
        ...


@dataclass(frozen=True)
class Exchangeable:
    """Labels are exchangeable among all rows, or among those with equal ``strata`` (n,)."""

    strata: ArrayLike | None = None

    def levels(self, n):
        """The number of each row's stratum (n,)."""
        if self.strata is None:
            return np.zeros(n, int)
        strata = np.asarray(self.strata)
        if strata.shape != (n,):
            raise ValueError(f"null: strata of shape {strata.shape}; give one stratum for each of the {n} rows of X.")
        if (strata != strata).any():
            raise ValueError("null: the strata hold NaN; give every row a stratum.")
        return np.unique(strata, return_inverse=True)[1]

    def within_test_sets(self, splits, n):
        """The same within the test sets of splits that test each of n rows once.

        Splits that were balanced by the true labels are not balanced for labels permuted across them, which then score
        below chance: the true ones would look better than they are. Within test sets labels are exchangeable.
        """
        if not tests_every_row_once(splits, n):
            raise ValueError(
                "null='within_test_sets' needs splits that test every row once, and those of cv do not. Use"
                " null='free', or an array with the stratum of every row."
            )
        fold = np.empty(n, int)
        for number, (_, test) in enumerate(splits):
            fold[test] = number
        pairs = np.column_stack([self.levels(n), fold])
        return replace(self, strata=np.unique(pairs, axis=0, return_inverse=True)[1].ravel())

    def log_labelings(self, y):
        """The logarithm of the number of different labelings of y: a multinomial coefficient for each stratum."""
        y = np.asarray(y)
        labels = np.unique(y, axis=None if y.ndim == 1 else 0, return_inverse=True)[1].ravel()
        levels = self.levels(len(labels))
        counts = np.zeros((levels.max() + 1, labels.max() + 1))
        np.add.at(counts, (levels, labels), 1)
        return float(gammaln(counts.sum(1) + 1).sum() - gammaln(counts + 1).sum())

    def orders(self, n, n_permutations, random_state):
        """Row numbers (m, n), drawn as scikit-learn's ``permutation_test_score`` draws them."""
        random_state, levels = check_random_state(random_state), self.levels(n)
        orders = np.empty((n_permutations, n), np.int32 if n < 2**31 else np.int64)
        orders[:] = np.arange(n)
        sets = [np.flatnonzero(levels == level) for level in np.unique(levels)]
        for order in orders:
            for rows in sets:
                order[rows] = random_state.permutation(rows)
        return orders


@dataclass(frozen=True)
class WholeGroups:
    """A null scheme in which groups of equally many rows exchange their labels, row by row.

    For labels that belong to groups, such as the diagnosis of a subject with several trials, or to blocks of trials.

    Parameters
    ----------
    groups : array-like of shape (n_samples,)
        The group of every row. All groups have equally many rows; the first row of a group takes the label of the first
        row of another, and so on.
    among : object with a method ``orders``, default=Exchangeable()
        The null scheme of the groups, in sorted order.

    Examples
    --------
    >>> import numpy as np
    >>> from foldless import LSSVC
    >>> from foldless.model_selection import WholeGroups, permutation_test_score
    >>> from sklearn.model_selection import GroupKFold
    >>> rng, subject = np.random.default_rng(0), np.repeat(np.arange(12), 3)
    >>> patient = np.isin(subject, [0, 2, 3, 5, 8, 9])
    >>> X = rng.normal(size=(36, 4)) + 0.8 * patient[:, None]
    >>> options = {"groups": subject, "cv": GroupKFold(4), "n_permutations": 200}
    >>> result = permutation_test_score(LSSVC(), X, patient, null=WholeGroups(subject), **options)
    >>> print(f"p = {result.pvalue:.3f}")
    p = 0.020
    """

    groups: ArrayLike
    among: NullScheme = field(default_factory=Exchangeable)

    @property
    def members(self) -> np.ndarray:
        """Row numbers (n_groups, size), one row for each group."""
        sizes = np.unique(np.asarray(self.groups), return_counts=True)[1]
        if sizes.min() < sizes.max():
            raise ValueError(
                f"null=WholeGroups(groups): groups have {sizes.min()} to {sizes.max()} rows, and only groups of equally"
                " many rows can exchange their labels. Leave out rows of the larger ones."
            )
        return np.argsort(np.asarray(self.groups), kind="stable").reshape(len(sizes), -1)

    def orders(self, n: int, n_permutations: int, random_state: np.random.RandomState, /) -> np.ndarray:
        """Row numbers (m, n), row i taking the label of row orders[j, i]."""
        if np.shape(self.groups) != (n,):
            raise ValueError(
                f"null=WholeGroups(groups): groups have shape {np.shape(self.groups)}; give one for each of {n} rows."
            )
        members = self.members
        orders = np.empty((n_permutations, n), dtype=int)
        orders[:, members] = members[self.among.orders(len(members), n_permutations, random_state)]
        return orders


def scheme_of(null, groups, n, names=NULL_NAMES):
    """The null scheme of the argument ``null=`` for n rows; None permutes within ``groups``, if there are any.

    ``names`` are the strings that are possible here. "resplit" permutes within groups too, as scikit-learn does.
    """
    if null is None or (isinstance(null, str) and null == "resplit" and null in names):
        return Exchangeable(groups)
    if isinstance(null, str) and null in names:
        return Exchangeable()
    if not isinstance(null, type) and callable(getattr(null, "orders", None)):
        return null
    strata = np.asarray(null)
    if isinstance(null, str) or strata.shape != (n,):
        value = f"null of shape {strata.shape}" if strata.ndim else f"null={null!r}"
        raise ValueError(
            f"{value} is not possible here. Use None, {', '.join(map(repr, names))}, an array of shape ({n},) with the"
            " stratum of every row, or an object with a method orders(n_samples, n_permutations, random_state)."
        )
    return Exchangeable(strata)


def tests_every_row_once(splits, n):
    """Whether the test sets of splits are a partition of n rows."""
    tested = np.sort(np.concatenate([test for _, test in splits]))
    return np.array_equal(tested, np.arange(n))


def moved_splits(true_splits, order):
    """Splits that go with the labels: row i takes the place of row order[i] in the splits of the true labels.

    Labels and splits together against the features: that is a permutation of the features, under which splits made from
    the labels stay as they are. For those whose test sets overlap there is no other way to keep them balanced.
    """
    place = np.argsort(order)
    return [(np.sort(place[train]), np.sort(place[test])) for train, test in true_splits]


def keep_balance(scheme, true_splits, y, *, stay=False):
    """(null scheme, whether splits go with the labels) that keep splits ``true_splits`` of the true labels y balanced.

    Within test sets there may be few labelings: where most hold rows of one class alone next to none, and no p-value
    can be small. Splits that go with the labels have no such limit. ``stay``: they cannot go if there is another way.
    """
    if not isinstance(scheme, Exchangeable) or not tests_every_row_once(true_splits, len(y)):
        return scheme, True
    within = scheme.within_test_sets(true_splits, len(y))
    few = within.log_labelings(y) < np.log(ENOUGH_LABELINGS)
    return (scheme, True) if few and not stay else (within, False)


def draw_null(scheme, n, n_permutations, random_state, *, true_splits=(), draw=None, moves=False):
    """The :class:`Null` of n rows by a null scheme; ``true_splits``, ``draw`` and ``moves`` say what its splits are."""
    cost.require_orders(n_permutations, n)
    orders = np.asarray(scheme.orders(n, n_permutations, check_random_state(random_state)))
    ours = isinstance(scheme, Exchangeable)
    if not ours and (orders.shape != (n_permutations, n) or not (np.sort(orders, axis=1) == np.arange(n)).all()):
        raise ValueError(
            f"null: orders of {type(scheme).__name__} must hold the numbers 0 to {n - 1} in each of"
            f" {n_permutations} rows; they have shape {orders.shape}."
        )
    truth = np.arange(n, dtype=orders.dtype)
    strata = getattr(scheme, "strata", None)
    strata = None if strata is None else np.asarray(strata)
    return Null(np.concatenate([truth[None], orders]), true_splits, draw, moves=moves, strata=strata)


def p_values(score, null, *, greater=True, rounding=ROUNDING, count_undefined=True):
    """(1 + number of null scores at least as good) / (1 + m), for scores (...) and null (m, ...).

    ``count_undefined`` counts null scores of nan as at least as good; scikit-learn does not count them.
    """
    score, null = np.asarray(score, float), np.asarray(null, float)
    sign = 1.0 if greater else -1.0
    with np.errstate(invalid="ignore"):
        as_good = sign * null >= sign * score - rounding * np.abs(score)
    count = np.sum(as_good | (np.isnan(null) & count_undefined), axis=0)
    return np.where(np.isnan(score), np.nan, (count + 1.0) / (len(null) + 1.0))[()]


def conjunction(pvalue):
    """p-values (k, k) of pairs, each no less than those of its two members by themselves."""
    alone = np.diagonal(pvalue)
    return np.maximum(pvalue, np.maximum(alone[:, None], alone))


class PermutationTestResult(Result, namedtuple("_Three", "score permutation_scores pvalue")):
    """scikit-learn's three values, and what displays and readers want besides.

    For one test ``score`` and ``pvalue`` are numbers and ``permutation_scores`` has shape (n_permutations,). For a
    family of k members they are (k,) and (n_permutations, k), for a generalisation (k, k) and (n_permutations, k, k)
    with the member trained on first. Families made by hand may have any shape.

    Attributes
    ----------
    score, permutation_scores, pvalue
    pvalue_fwe : p-values by the maximum over the family, shape of ``score``; None for one test
        Of a generalisation the largest of those of the pair and of its two members by themselves.
    max_scores : ndarray of shape (n_permutations,), the best score of every permutation; None for one test
    n_permutations : int
    scoring : str
    greater_is_better : bool
    generalised : bool, whether the members are pairs of one trained on and one tested at
    strata : ndarray of shape (n_samples,) or None, the sets of rows within which labels were permuted
    best_params : list of dicts, the choice of every outer split for the true labels; None unless a search was tested
        Of a family a list for each member.
    split_scores : ndarray of shape (..., n_splits), scores of the true labels in each split, for each member
        None for a score of all held-out rows together, such as "r2_pooled".
    decisions : ndarray of shape (n_samples, ...), held-out decisions of the true labels, or predicted values
        (n_samples, n_classes, ...) for more than two classes, up to a constant a row that all of them share. Members of
        a family are the last axis. nan for rows that are never tested, None where a row is tested twice and where
        models were refitted.
    confusion : ndarray of shape (..., n_classes, n_classes), how many held-out rows of each class (in sorted order) got
        which label; None unless ``scoring`` names "confusion"
    permutation_confusions : ndarray of shape (n_permutations, ..., n_classes, n_classes), the same of every permutation
    results : dict {name: PermutationTestResult}, of all scores where ``scoring`` names several; None for one
    path : Route, how it was computed and why

    ``to_frame()`` of one test has one row for each labeling, the true one first, as permutation 0; of a family one row
    for each member.
    """

    pvalue_fwe: Any = None
    max_scores: Any = None
    n_permutations: int = 0
    scoring: str = ""
    greater_is_better: bool = True
    generalised: bool = False
    best_params: list | None = None
    strata: np.ndarray | None = None
    path: Any = None
    split_scores: np.ndarray | None = None
    decisions: np.ndarray | None = None
    confusion: np.ndarray | None = None
    permutation_confusions: np.ndarray | None = None
    results: dict | None = None

    def __new__(
        cls,
        score,
        permutation_scores,
        pvalue=None,
        *,
        scoring="",
        greater_is_better=True,
        generalised=False,
        path=None,
        best_params=None,
        strata=None,
        rounding=ROUNDING,
    ):
        counted = partial(p_values, score, greater=greater_is_better, rounding=rounding)
        pvalue = counted(permutation_scores) if pvalue is None else pvalue
        self = super().__new__(cls, score, permutation_scores, pvalue)
        self.scoring = scoring
        self.greater_is_better = greater_is_better
        self.path = path
        self.generalised = generalised
        self.n_permutations = len(permutation_scores)
        self.best_params = best_params
        self.strata = strata
        if np.ndim(score):
            best, extreme = (np.max, np.inf) if greater_is_better else (np.min, -np.inf)
            known = ~np.isnan(np.ravel(score))  # members without a score (an interrupted family) are no members
            flat = np.reshape(permutation_scores, (len(permutation_scores), np.size(score)))[:, known]
            self.max_scores = best(np.where(np.isnan(flat), extreme, flat), axis=1, initial=-extreme)
            self.pvalue_fwe = counted(self.max_scores.reshape(-1, *[1] * np.ndim(score)))
        if generalised:
            self.pvalue_fwe = conjunction(self.pvalue_fwe)
        return self

    def __repr__(self):
        way = getattr(self.path, "kind", self.path)  # without its reason
        how = f"{self.n_permutations} permutations" + (f"; {way}" if way else "")
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

    def _columns(self):
        if not np.ndim(self.score):
            scores = np.append(self.score, self.permutation_scores)
            return {"permutation": np.arange(len(scores)), "score": scores}
        names = ("score", "pvalue", "pvalue_fwe")
        return members_of(self.score, self.generalised) | {name: np.ravel(getattr(self, name)) for name in names}

    def _picture(self):
        if not np.ndim(self.score):
            return histogram(self.permutation_scores, self.score, f"{self.scoring} of permuted labels; line: true ones")
        flat = np.diagonal if self.generalised else np.ravel
        score, p = flat(self.score), flat(self.pvalue_fwe)
        return points(
            np.arange(len(score)), score, p <= 0.05, f"{self.scoring} of the members; dark: family-wise p <= 0.05"
        )


def members_of(score, generalised=False):
    """Columns that name the members of a family by their places; none for one test."""
    if np.ndim(score) < 2:
        return {"member": np.arange(np.size(score))} if np.ndim(score) else {}
    names = ("train", "test") if generalised else [f"axis_{axis}" for axis in range(np.ndim(score))]
    return {name: place.ravel() for name, place in zip(names, np.indices(np.shape(score)), strict=True)}
