"""Strategies: ways to the cross-validated scores of many labelings, from the quickest to the most general.

    Batched          labelings are columns: one P for all of them; with ``members`` models are tested at the features of
                     every member of a family as well (time-by-time generalisation)
    BatchedBySplit   the same with one P for each split, behind fitted steps of a pipeline
    BatchedGrid      a whole grid search: one P for each candidate (``permutation.grid``)
    RefitEach        a cross-validation for every labeling: scores that take more than decisions (all from one P),
                     weights that follow the labels, no closed form

All of them have a route, which says how and why, and work on ``n_together`` labelings at a time. Their one method

    scores(orders, splits) -> Scores

takes labelings (b, n), of which number j gives row i the label of row orders[j, i].
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from foldless.permutation.labelings import Fitted, Labelings, elsewhere
from foldless.readout.task import Task


@dataclass(frozen=True)
class Scores:
    """Scores of b labelings, means over the splits."""

    values: np.ndarray  # (b,), or (b, k) where models are tested at the features of k members of a family
    choices: np.ndarray | None = None  # (b, n_splits), numbers of the candidates that a search chose

    @classmethod
    def join(cls, parts):
        """Scores of labelings one after the other."""
        choices = None if parts[0].choices is None else np.concatenate([each.choices for each in parts])
        return cls(np.concatenate([each.values for each in parts]), choices)


@dataclass(frozen=True)
class Batched:
    """Scores of columns, all from the P of ``solver``; ``judge(D, truth)`` scores decisions (b, k, t)."""

    route: Any
    n_together: int
    task: Task
    judge: Callable
    solver: Any  # a Solver
    members: np.ndarray | None = None  # (k, n, d): other features of the held-out rows, to test every model at

    def fitter(self, labelings):
        """A function of (train, test) that gives the labelings with P applied."""
        fitted = Fitted(self.solver, labelings)
        return lambda train, test: fitted

    def scores(self, orders, splits):
        """Scores of the labelings, all at once where they share their splits."""
        labelings = Labelings.of(self.task, orders)
        if splits.own:
            return self._one_by_one(labelings, splits.pairs)
        fit = self.fitter(labelings)
        scores = np.array([self._of_split(fit(*pair), *pair) for pair in splits.pairs])
        # Summed as NumPy sums a vector: equal scores stay equal.
        return Scores(np.ascontiguousarray(scores.T).mean(-1))

    def _one_by_one(self, labelings, splits):
        fitted, true = Fitted(self.solver, labelings), self._true_ones(labelings)
        # Rounding depends on the number of columns: labels that stay as they are must give the very same score.
        alone = Fitted(self.solver, labelings.select(true[:1])) if len(true) else fitted
        scores = np.empty(len(labelings))
        for j, pairs in enumerate(splits):
            one = alone if j in true else fitted.select([j])
            scores[j] = np.mean([self._of_split(one, train, test)[0] for train, test in pairs])
        return Scores(scores)

    def _true_ones(self, labelings):
        true = Labelings.of(self.task, np.arange(self.task.problem.n)[None]).truth
        return np.flatnonzero((labelings.truth == true).reshape(len(labelings), -1).all(1))

    def _of_split(self, fitted, train, test):
        """Scores of one split, (b,) or (k, b)."""
        model, truth = fitted.part(train), fitted.labelings.truth[..., test]
        if self.members is None:
            return self.judge(fitted.decisions(model, test), truth)
        read, fits = fitted.reader(model), elsewhere(model, test)
        return [self.judge(read(fits(fitted.solver.rows_of(X, test))), truth) for X in self.members]


@dataclass(frozen=True)
class BatchedBySplit(Batched):
    """Scores of columns where every split has its P: ``solver(train, test)`` makes it, and one is held at a time."""

    def fitter(self, labelings):
        """A function of (train, test) that gives the labelings with the P of that split applied."""
        return lambda train, test: Fitted(self.solver(train, test), labelings)


@dataclass(frozen=True)
class RefitEach:
    """A cross-validation for every labeling: ``validate(order, splits)`` gives the scores of its splits."""

    route: Any
    validate: Callable
    n_together: int = 1

    def scores(self, orders, splits):
        """Scores of the labelings, one after the other."""
        each = zip(orders, splits.of_each(len(orders)), strict=True)
        return Scores(np.array([np.mean(self.validate(order, own)) for order, own in each]))
