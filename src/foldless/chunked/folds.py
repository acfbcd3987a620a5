"""The fold of each row: from its number and a seed, from its group, or as it was given. Chunks have no say.

Rows are taken k at a time, in their order. Each of the k goes to another fold, in a random order that follows from the
numbers of the rows: folds differ in size by one row at most. Groups go to the fold of their random word.
"""

from dataclasses import dataclass

import numpy as np

from foldless.chunked.hashing import mixed, row_words, words


@dataclass(frozen=True)
class Folds:
    """k folds; ``names`` are those of given ones. k = 1: there are none."""

    k: int
    seed: int = 0
    by_group: bool = False
    names: np.ndarray | None = None

    def of(self, rows):
        """Numbers of the folds of these rows, (n,)."""
        if self.k == 1:
            return np.zeros(len(rows), np.intp)
        if self.names is not None:
            return np.searchsorted(self.names, rows.folds)
        if self.by_group:
            return (mixed(words(rows.groups), self.seed) % np.uint64(self.k)).astype(np.intp)
        together = (rows.numbers // self.k * self.k)[:, None] + np.arange(self.k)
        random = row_words(together, self.seed)
        own = np.take_along_axis(random, (rows.numbers % self.k)[:, None], 1)
        return (random < own).sum(1)


@dataclass(frozen=True)
class OneFold:
    """Two folds: 1 is the fold of this number, 0 all others."""

    folds: Folds
    number: int
    k = 2

    def of(self, rows):
        """Numbers of the folds of these rows, (n,)."""
        return (self.folds.of(rows) == self.number).astype(np.intp)


def folds_for(cv, survey, layout, seed):
    """The folds that ``cv`` asks for: a number, or None for those given with the rows, and none without these."""
    if "folds" in layout.present:
        if len(survey.folds) < 2:
            raise ValueError("folds: all rows are in one fold; at least two are needed.")
        return Folds(len(survey.folds), names=survey.folds)
    return Folds(1) if cv is None else Folds(int(cv), seed, "groups" in layout.present)
