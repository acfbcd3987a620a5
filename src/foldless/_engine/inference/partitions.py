"""Scores of all folds, and of all pairs of folds, of random partitions: what intervals are made from.

Every fold, and every pair of folds, is a set of rows that is left out; held-out decisions of all of them follow from
one P (the matrix that a fit makes of X alone): E_H = P_HH^-1 A_H for each set H. Sets of equally many rows are one
batch.

:func:`scores_of_models` is the recipe of all intervals: partitions are drawn until the standard error is known.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any

import numpy as np

from foldless._engine.inference.counts import ANY_SCORE, PAIRS, HeldOutCounts, ScoreKind
from foldless._engine.inference.intervals import FoldScores
from foldless._engine.permutation.metrics import confusions
from foldless._engine.readout.codings import chosen_among_close

GROUPS = 20  # into which a fold is divided for a jackknife
AT_A_TIME = 10  # partitions
MOST = 100  # partitions, where their number is not given
MOST_REFITTED = 10  # the same where models are refitted
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
class ScoreFunction:
    """A score of decisions (b, k, t) with their truth, and what it is the mean of."""

    function: Callable | None  # (decisions, truth) -> (b,); None: the mean of ``of_rows``
    of_rows: Callable | None  # the same -> (b, t), where the score is a mean over rows: it is taken
    least: int = 2  # rows of a fold
    kind: ScoreKind = ANY_SCORE
    labels: np.ndarray | None = None  # of the class numbers
    one_by_one: bool = False  # whether ``function`` is a scorer of scikit-learn, which takes its time for every set

    @classmethod
    def of_metric(cls, name, metric, kind, labels=None):
        """The score of a metric of many labelings; without a metric that of rows by this name."""
        of_rows = ROW_SCORES.get(name) if isinstance(name, str) else None
        if metric is None:
            return cls(None, of_rows, kind=kind, labels=labels)
        ranks = metric.rows > 1 and of_rows is None  # R2 of a few rows can be any number
        return cls(metric.function, of_rows, ENOUGH_FOR_RANKS if ranks else 2, kind, labels)

    def scores(self, D, truth):
        """Scores (b,)."""
        if self.of_rows is not None:
            return self.of_rows(D, truth).mean(1)
        assert self.function is not None
        return self.function(D, truth)

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


def check_folds(score, folds, truth):
    """Refuse partitions with folds that are too small for the score, or that lack a class where it compares classes."""
    check_rows(score, min(len(rows) for tests in folds for rows in tests), truth)
    if score.kind.counting != PAIRS or truth.ndim > 1:
        return
    n_classes = truth.max() + 1
    for rows in (rows for tests in folds for rows in tests):
        lacking = np.flatnonzero(np.bincount(truth[rows], minlength=n_classes) == 0)
        if len(lacking):
            label = lacking[0] if score.labels is None else score.labels[lacking[0]]
            raise ValueError(
                f"scoring={score.kind.name!r} needs rows of every class in every fold, but a fold has none of the"
                f" {np.count_nonzero(truth == lacking[0])} rows of class {label}. Use fewer folds (for example cv=3),"
                " which are stratified by class."
            )


def check_rows(score, smallest, truth):
    """Refuse folds of fewer rows than the score needs."""
    if smallest >= score.least:
        return
    others = "'accuracy' and 'balanced_accuracy'" if truth.ndim == 1 else "'neg_mean_squared_error'"
    remedy = f"Learn more rows, or use another score: {others.replace(' and ', ' or ')}."
    if truth.shape[-1] >= 3 * score.least:
        remedy = "Use fewer folds (for example cv=3)."
        remedy += f" {others} take smaller ones." if truth.ndim == 1 else ""
    raise ValueError(
        f"scoring={score.kind.name!r} needs at least {score.least} rows per fold, but the smallest fold has"
        f" {smallest}. {remedy}"
    )


@dataclass(frozen=True)
class FoldPartitions:
    """Partitions of the rows into folds by a splitter, which draws as many as are needed if it shuffles."""

    splitter: Any  # of scikit-learn
    split: Callable  # () -> [(train, test)] of the splitter, as row numbers
    truth: np.ndarray  # (n,) class numbers or (m, n) values
    score: ScoreFunction
    groups: np.ndarray | None = None
    random_state: Any = None  # None: there is one partition

    @property
    def shuffled(self):
        """Whether more than one partition can be drawn."""
        return self.random_state is not None

    def draw(self, number):
        """``number`` partitions, [[rows of each fold]]."""
        partitions = []
        for _ in range(number):
            if self.shuffled:
                self.splitter.random_state = self.random_state.randint(2**31 - 1)
            partitions.append([test for _, test in self.split()])
            self._check(partitions[-1])
        check_folds(self.score, partitions, self.truth)
        return partitions

    def _check(self, tests):
        """Raise an error where folds overlap, are too few or too small, or two of them hold all rows of a class."""
        rows, n = np.concatenate(tests), self.truth.shape[-1]
        if len(rows) != n or len(np.unique(rows)) != n:
            raise ValueError(
                f"cv={self.splitter!r} does not test every row once; folds are left out in pairs, so use KFold or a"
                " number of folds."
            )
        units, what = tests, "rows"
        if self.groups is not None:
            units, what = [np.unique(self.groups[rows]) for rows in tests], "groups"
        if len(tests) < 3 or min(map(len, units)) < 2:
            raise ValueError(
                f"cv leaves out {len(tests)} folds, the smallest of {min(map(len, units))} {what}; intervals need"
                f" at least three folds of at least two {what} each."
            )
        if self.truth.ndim > 1:
            return
        counts = np.array([np.bincount(self.truth[rows], minlength=self.truth.max() + 1) for rows in tests])
        lost = np.flatnonzero(np.sort(counts, axis=0)[-2:].sum(0) == counts.sum(0))
        if len(lost):
            label = lost[0] if self.score.labels is None else self.score.labels[lost[0]]
            raise ValueError(
                f"cv: two of the folds hold all {counts[:, lost[0]].sum()} rows of class {label}; use other"
                " folds, or leave out classes of few rows."
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


def fold_scores(folds, decide, partitions, pairs=True):
    """:class:`FoldScores` of some of the ``partitions``, [[rows of each fold]]; without pairs nan beside the diagonal.

    ``decide(sets)`` gives decisions (b, k, t) of the rows of each set (b, t) by the model without it.
    """
    truth, score, groups = partitions.truth, partitions.score, partitions.groups
    counts = score.counts(truth, groups)
    n_folds = len(folds[0])
    longest = max(len(rows) for tests in folds for rows in tests)
    S = np.full((len(folds), n_folds, n_folds), np.nan)
    parts = np.full((len(folds), n_folds, longest), np.nan)
    for (first, second), members in left_out(folds, pairs).items():
        partition, i, j = np.transpose([member[:3] for member in members])
        sets = np.stack([member[3] for member in members])
        D, T = decide(sets), np.moveaxis(truth[..., sets], -2, 0)
        S[partition, i, j] = score.scores(D[..., :first], T[..., :first])
        if second:
            S[partition, j, i] = score.scores(D[..., first:], T[..., first:])
            continue
        if score.kind.of_labels and counts is not None:
            n_classes = len(counts.classes)
            counts = counts.with_confusion(confusions(n_classes, D, T).sum(0).reshape(n_classes, n_classes))
        values_of_folds = score.parts(D, T, None if groups is None else groups[sets])
        for place, values in zip(zip(partition, i, strict=True), values_of_folds, strict=True):
            parts[place][: len(values)] = values
    rows = np.array([[len(rows) for rows in tests] for tests in folds], float)
    weight = np.ones_like(rows) if score.of_rows is None else rows
    return FoldScores(S, parts, weight, of_values=truth.ndim > 1, counts=counts)


def all_scores(scores):
    """The quantities whose standard errors decide how many partitions are drawn: here the scores of every model."""
    return scores


def scores_of_models(models, partitions, n_repeats=None, *, watch=all_scores, progress=None):
    """([:class:`FoldScores`], [deciders]) of models, each a function from some of the sets to its decider.

    A decider is a function from sets (b, t) to held-out decisions (b, k, t), and ``quick`` where all sets follow from
    one fit. If ``n_repeats`` is None, partitions are drawn until the standard errors of ``watch(scores)`` are known
    within 10 %, at most 100. Without ``watch`` pairs of folds are not left out. ``progress(most)`` gives a function of
    the number of partitions that were just scored.
    """
    pairs = watch is not None
    n_repeats = n_repeats if pairs else n_repeats or 1
    folds = partitions.draw(min(AT_A_TIME, n_repeats or AT_A_TIME) if partitions.shuffled else 1)
    sets = [rows for *_, rows in chain(*left_out(folds[:1], pairs).values())]
    deciders = [model(sets) for model in models]
    quick = all(decider.quick for decider in deciders) and not partitions.score.one_by_one
    most = (n_repeats or (MOST if quick else MOST_REFITTED)) if partitions.shuffled else 1
    report = None if progress is None else progress(most)
    scores: list = []
    while True:
        new = [fold_scores(folds, decider, partitions, pairs) for decider in deciders]
        scores = new if not scores else [old.extended(more) for old, more in zip(scores, new, strict=True)]
        if report is not None:
            report(len(folds))
        remaining = most - len(scores[0].S)
        if remaining <= 0 or (n_repeats is None and _are_known(watch(scores))):
            return scores, deciders
        folds = partitions.draw(min(AT_A_TIME, remaining))


def _are_known(scores):
    """Whether more partitions would hardly change the standard errors of these scores."""
    return all(score.known_within(PRECISION) for score in scores)
