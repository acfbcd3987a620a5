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

from foldless.inference.intervals import FoldScores
from foldless.readout.codings import chosen_among_close

GROUPS = 20  # into which a fold is divided for a jackknife
AT_A_TIME = 10  # partitions
MOST = 100  # partitions, where their number is not given
PRECISION = 0.1  # of the standard error, at which more partitions tell nothing new


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

    def _pseudo(self, D, truth, group):
        n_groups, whole = group.max() + 1, self.scores(D, truth)
        without = [self.scores(D[..., group != g], truth[..., group != g]) for g in range(n_groups)]
        return n_groups * whole[:, None] - (n_groups - 1) * np.stack(without, 1)


def left_out(folds, pairs=True):
    """{(rows of the first fold, of the second or 0): [(partition, i, j, rows)]} of all folds, and pairs of them."""
    found = defaultdict(list)
    for partition, tests in enumerate(folds):
        for i, rows in enumerate(tests):
            found[len(rows), 0].append((partition, i, i, rows))
        for i, j in combinations(range(len(tests)), 2 if pairs else len(tests) + 1):
            rows = np.concatenate([tests[i], tests[j]])
            found[len(tests[i]), len(tests[j])].append((partition, i, j, rows))
    return dict(found)


def fold_scores(folds, decide, truth, judge, groups=None, pairs=True):
    """:class:`FoldScores` of partitions ``folds``, [[rows of each fold]]; without pairs nan beside the diagonal.

    ``decide(sets)`` gives decisions (b, k, t) of the rows of each set (b, t) by the model without it; ``truth`` is
    (n,) class numbers or (m, n) values.
    """
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
        found = judge.parts(D, T, None if groups is None else groups[sets])
        for place, values in zip(zip(partition, i, strict=True), found, strict=True):
            parts[place][: len(values)] = values
    rows = np.array([[len(rows) for rows in tests] for tests in folds], float)
    return FoldScores(S, parts, np.ones_like(rows) if judge.of_rows is None else rows)
