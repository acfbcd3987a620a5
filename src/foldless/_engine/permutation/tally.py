"""Scores of labelings, added up as the splits come in.

A score of a labeling is the mean over its splits, or, where it is *pooled*, one of all held-out rows together:

    mean      1/s sum_s f(D_te, Y_te)                      as in scikit-learn
    pooled    f(D, Y), D of all held-out rows              R2 of splits of a few rows says little, this one all there is
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from foldless._engine.linalg import row_major, to_host


class DecisionScore(NamedTuple):
    """A function from decisions (b, k, t) and truth to numbers (b,), of one split or of all held-out rows together.

    A pooled one may give several numbers, (b, width): counts of a confusion matrix.
    """

    function: Callable
    pooled: bool = False
    width: int = 1


@dataclass(frozen=True)
class LabelingScores:
    """Scores of b labelings, with the splits, decisions and choices of the first of them."""

    scores: np.ndarray  # (b, ..., q), of q scores
    split_scores: np.ndarray  # (..., n_splits, q), of the first labeling; nan for pooled ones
    decisions: np.ndarray | None = None  # (n, k, ...), of the first labeling, if no row is tested twice; nan for none
    choices: list | None = None  # what a search chose in each split, of all labelings; of a family of the first alone

    def undefined(self):
        """The same of a member that was not reached."""
        decisions = None if self.decisions is None else np.full_like(self.decisions, np.nan)
        choices = None if self.choices is None else [None]
        return LabelingScores(
            np.full_like(self.scores, np.nan), np.full_like(self.split_scores, np.nan), decisions, choices
        )

    @classmethod
    def joined(cls, batches):
        """All labelings of one test, from batches of them."""
        scores, choices = np.concatenate([batch.scores for batch in batches]), None
        if batches[0].choices is not None:
            choices = [choice for batch in batches for choice in batch.choices]
        return cls(scores, batches[0].split_scores, batches[0].decisions, choices)

    @classmethod
    def stacked(cls, members):
        """The labelings of a family, from its members."""
        scores = np.stack([member.scores for member in members], 1)
        split_scores = [member.split_scores for member in members]
        decisions = [member.decisions for member in members]
        choices = [member.choices for member in members]
        return cls(
            scores,
            np.stack(split_scores),
            None if decisions[0] is None else np.stack(decisions, 2),
            None if choices[0] is None else [[choice[0] for choice in choices]],
        )


class Tally:
    """Scores of b labelings that share the numbers of held-out rows in their splits."""

    def __init__(self, scores):
        self.scores = scores
        self._of_splits: list = []  # [split][score] (b,)
        self._held: list = []  # decisions and truth of each split, where a score is pooled
        self._first: list = []  # rows and decisions of each split, of the first labeling

    def add(self, D, truth, test):
        """The next split: decisions (b, k, t), their truth, and the rows of the first labeling."""
        D = to_host(D)
        of_split = [
            np.full((score.width, len(D)), np.nan) if score.pooled else [score.function(D, truth)]
            for score in self.scores
        ]
        self._of_splits.append(np.concatenate(of_split))
        self._first.append((test, D[0].copy()))
        if any(score.pooled for score in self.scores):
            self._held.append((D, truth))

    def labeling_scores(self, n, choices=None):
        """The :class:`LabelingScores` of all splits of n rows that were added."""
        of_splits = np.array(self._of_splits)  # (n_splits, q, b)
        # Summed as NumPy sums a vector: equal scores stay equal.
        scores, place = row_major(of_splits.transpose(2, 1, 0)).mean(-1), 0
        for score in self.scores:
            if score.pooled:
                D, truth = (np.concatenate(parts, -1) for parts in zip(*self._held, strict=True))
                scores[:, place : place + score.width] = score.function(D, truth).reshape(len(scores), -1)
            place += score.width
        return LabelingScores(scores, of_splits[:, :, 0], self._decisions(n), choices)

    def _decisions(self, n):
        """Decisions (n, k) of the first labeling."""
        rows, D = (np.concatenate(parts, -1) for parts in zip(*self._first, strict=True))
        if len(np.unique(rows)) < len(rows):
            return None
        everywhere = np.full((n, len(D)), np.nan, D.dtype)
        everywhere[rows] = D.T
        return everywhere
