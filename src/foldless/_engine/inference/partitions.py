"""Scores of all folds, and of all pairs of folds, of random partitions: what intervals are made from.

Every fold, and every pair of folds, is a set of rows that is left out; held-out decisions of all of them follow from
one P (the matrix that a fit makes of X alone): E_H = P_HH^-1 A_H for each set H. Sets of equally many rows are one
batch.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from foldless._engine.inference.counts import ANY_SCORE, PAIRS, HeldOutCounts, ScoreKind
from foldless._engine.inference.intervals import FoldScores
from foldless._engine.permutation.metrics import confusions
from foldless._engine.readout.codings import chosen_among_close

GROUPS = 20  # into which a fold is divided for a jackknife
AT_A_TIME = 10  # partitions
MOST = 100  # partitions, where their number is not given
PRECISION = 0.1  # of the standard error, at which more partitions tell nothing new
ENOUGH_FOR_RANKS = 10  # rows of a fold by which areas, correlations and R2 can be told


def _right(D, codes):
    return (chosen_among_close(D) == codes).astype(float)


def _minus_square(D, T):
    return -np.square(T - D).mean(1)


def _minus_distance(D, T):
    return -np.abs(T - D).mean(1)


def _log_probability(D, codes):
    mine = np.take_along_axis(D, codes[:, None], 1)[:, 0]
    return np.log(np.maximum(mine, np.finfo(D.dtype).eps))


# Scores that are means over rows: decisions (b, k, t) and truth to the scores (b, t) of rows.
ROW_SCORES: dict[str, Callable] = {
    "accuracy": _right,
    "neg_mean_squared_error": _minus_square,
    "neg_mean_absolute_error": _minus_distance,
    "neg_log_loss": _log_probability,
}


@dataclass(frozen=True)
class Judge:
    """A score of decisions (b, k, t) with its truth, and what it is the mean of."""

    score: Callable | None  # (decisions, truth) -> (b,)
    of_rows: Callable | None  # the same -> (b, t), where the score is a mean over rows: it is taken
    least: int = 2  # rows of a fold
    kind: ScoreKind = ANY_SCORE
    labels: np.ndarray | None = None  # of the class numbers

    def scores(self, D, truth):
        """Scores (b,)."""
        if self.of_rows is not None:
            return self.of_rows(D, truth).mean(1)
        assert self.score is not None
        return self.score(D, truth)

    def parts(self, D, truth, groups=None):
        """What the scores are means of, [(p,)]: scores of rows, or pseudo-values without one group of rows each.

        Rows of equal ``groups`` (b, t) depend on each other and are left out together.
        """
        if groups is None and self.of_rows is not None:
            return self.of_rows(D, truth)
        if groups is None:
            return self._pseudo(D, truth, np.arange(D.shape[2]) % min(GROUPS, D.shape[2]))
        sets = zip(D, truth, groups, strict=True)
        return [self._pseudo(one[None], true[None], np.unique(of, return_inverse=True)[1])[0] for one, true, of in sets]

    def counts(self, truth, groups=None):
        """The :class:`HeldOutCounts` of class numbers (n,), where the score has an interval from them."""
        if truth.ndim > 1 or self.kind.counting is None:
            return None
        return HeldOutCounts.of(truth if self.labels is None else self.labels[truth], groups)

    def _pseudo(self, D, truth, group):
        n_groups, score = group.max() + 1, self.scores(D, truth)
        without = [self.scores(D[..., group != g], truth[..., group != g]) for g in range(n_groups)]
        return n_groups * score[:, None] - (n_groups - 1) * np.stack(without, 1)


def check_folds(judge, folds, truth):
    """Refuse partitions with folds that are too small for the score, or that lack a class where it compares classes."""
    check_rows(judge, min(len(rows) for tests in folds for rows in tests), truth)
    if judge.kind.counting != PAIRS or truth.ndim > 1:
        return
    n_classes = truth.max() + 1
    for rows in (rows for tests in folds for rows in tests):
        lacking = np.flatnonzero(np.bincount(truth[rows], minlength=n_classes) == 0)
        if len(lacking):
            label = lacking[0] if judge.labels is None else judge.labels[lacking[0]]
            raise ValueError(
                f"scoring={judge.kind.name!r} needs rows of every class in every fold, but a fold has none of the"
                f" {np.count_nonzero(truth == lacking[0])} rows of class {label}. Use fewer folds (for example cv=3),"
                " which are stratified by class."
            )


def check_rows(judge, smallest, truth):
    """Refuse folds of fewer rows than the score needs."""
    if smallest >= judge.least:
        return
    others = "'accuracy' and 'balanced_accuracy'" if truth.ndim == 1 else "'neg_mean_squared_error'"
    remedy = f"Learn more rows, or use another score: {others.replace(' and ', ' or ')}."
    if truth.shape[-1] >= 3 * judge.least:
        remedy = "Use fewer folds (for example cv=3)."
        remedy += f" {others} take smaller ones." if truth.ndim == 1 else ""
    raise ValueError(
        f"scoring={judge.kind.name!r} needs at least {judge.least} rows per fold, but the smallest fold has"
        f" {smallest}. {remedy}"
    )


def left_out(folds, pairs=True):
    """{(rows of the first fold, of the second or 0): [(partition, i, j, rows)]} of all folds, and pairs of them."""
    sets = defaultdict(list)
    for partition, tests in enumerate(folds):
        for i, rows in enumerate(tests):
            sets[len(rows), 0].append((partition, i, i, rows))
        for i, j in combinations(range(len(tests)), 2 if pairs else len(tests) + 1):
            rows = np.concatenate([tests[i], tests[j]])
            sets[len(tests[i]), len(tests[j])].append((partition, i, j, rows))
    return dict(sets)


def fold_scores(folds, decide, truth, judge, groups=None, pairs=True):
    """:class:`FoldScores` of partitions ``folds``, [[rows of each fold]]; without pairs nan beside the diagonal.

    ``decide(sets)`` gives decisions (b, k, t) of the rows of each set (b, t) by the model without it; ``truth`` is
    (n,) class numbers or (m, n) values.
    """
    counts = judge.counts(truth, groups)
    n_folds = len(folds[0])
    longest = max(len(rows) for tests in folds for rows in tests)
    S = np.full((len(folds), n_folds, n_folds), np.nan)
    parts = np.full((len(folds), n_folds, longest), np.nan)
    for (first, second), members in left_out(folds, pairs).items():
        partition, i, j = np.transpose([member[:3] for member in members])
        sets = np.stack([member[3] for member in members])
        D, T = decide(sets), np.moveaxis(truth[..., sets], -2, 0)
        S[partition, i, j] = judge.scores(D[..., :first], T[..., :first])
        if second:
            S[partition, j, i] = judge.scores(D[..., first:], T[..., first:])
            continue
        if judge.kind.of_labels and counts is not None:
            n_classes = len(counts.classes)
            counts = counts.with_confusion(confusions(n_classes, D, T).sum(0).reshape(n_classes, n_classes))
        values_of_folds = judge.parts(D, T, None if groups is None else groups[sets])
        for place, values in zip(zip(partition, i, strict=True), values_of_folds, strict=True):
            parts[place][: len(values)] = values
    rows = np.array([[len(rows) for rows in tests] for tests in folds], float)
    weight = np.ones_like(rows) if judge.of_rows is None else rows
    return FoldScores(S, parts, weight, of_values=truth.ndim > 1, counts=counts)


def scores_of_partitions(first, draw, deciders, truth, judge, *, most, until=None, groups=None, pairs=True, step=None):
    """:class:`FoldScores` of every function of ``deciders``, from ``most`` partitions or until they are known.

    ``first`` are some partitions, ``draw(number)`` gives more of them. ``until(scores)`` says whether the scores so far
    suffice; None: never. ``step(number)`` is called after so many partitions.
    """
    folds = first
    scores: list = []
    while True:
        new = [fold_scores(folds, decide, truth, judge, groups, pairs) for decide in deciders]
        scores = new if not scores else [old.extended(more) for old, more in zip(scores, new, strict=True)]
        if step is not None:
            step(len(folds))
        remaining = most - len(scores[0].S)
        if remaining <= 0 or (until is not None and until(scores)):
            return scores
        folds = draw(min(AT_A_TIME, remaining))
