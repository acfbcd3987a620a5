"""What is found for labelings: scores, as the splits come in.

A score of a labeling is the mean over its splits, or, where it is *pooled*, one of all held-out rows together:

    mean      1/s sum_s f(D_te, Y_te)                      as in scikit-learn
    pooled    f(D, Y), D of all held-out rows              R2 of splits of a few rows says little, this one all there is
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


class Score(NamedTuple):
    """A function from decisions (b, k, t) and truth to numbers (b,), of one split or of all held-out rows together."""

    judge: Callable
    pooled: bool = False


@dataclass(frozen=True)
class Found:
    """Scores of b labelings, and what else is known of the first of them."""

    scores: np.ndarray  # (b, ..., q), of q scores
    split_scores: np.ndarray  # (..., n_splits, q), of the first labeling; nan for pooled ones
    choices: list | None = None  # what a search chose in each split, of all labelings

    def undefined(self):
        """The same of a member that was not reached."""
        return Found(np.full_like(self.scores, np.nan), np.full_like(self.split_scores, np.nan))

    @classmethod
    def joined(cls, batches):
        """All labelings of one test, from batches of them."""
        scores, choices = np.concatenate([each.scores for each in batches]), None
        if batches[0].choices is not None:
            choices = [each for batch in batches for each in batch.choices]
        return cls(scores, batches[0].split_scores, choices)

    @classmethod
    def stacked(cls, members):
        """The labelings of a family, from its members."""
        scores, split_scores = np.stack([each.scores for each in members], 1), [each.split_scores for each in members]
        return cls(scores, np.stack(split_scores))


class Tally:
    """Scores of b labelings that share the numbers of held-out rows in their splits."""

    def __init__(self, scores):
        self.scores = scores
        self._each: list = []  # [split][score] (b,)
        self._held: list = []  # decisions and truth of each split, where a score is pooled

    def add(self, D, truth):
        """The next split: decisions (b, k, t), and their truth."""
        self._each.append([np.full(len(D), np.nan) if pooled else judge(D, truth) for judge, pooled in self.scores])
        if any(pooled for _, pooled in self.scores):
            self._held.append((D, truth))

    def found(self, choices=None):
        """The scores of all splits that came in."""
        each = np.array(self._each)  # (n_splits, q, b)
        # Summed as NumPy sums a vector: equal scores stay equal.
        scores = np.ascontiguousarray(each.transpose(2, 1, 0)).mean(-1)
        for number, (judge, pooled) in enumerate(self.scores):
            if pooled:
                D, truth = (np.concatenate(parts, -1) for parts in zip(*self._held, strict=True))
                scores[:, number] = judge(D, truth)
        return Found(scores, each[:, :, 0], choices)
