"""Strategies: ways to the cross-validated scores of many labelings, from the quickest to the most general.

    Batched       labelings are columns: one P for all of them, or one for each split, behind fitted steps of a
                  pipeline; with ``members`` models are tested at the features of every member of a family as well
                  (time-by-time generalisation); splits may go with the labels (``labelings.Moving``)
    BatchedGrid   a whole grid search: every labeling chooses its own setting in every outer training part
    Weighted      class weights that follow the labels: rows and kernel stay, and every labeling has a P of its own,
                  an update of one P of equal weights where most rows share theirs (``precision.reweighted``)
    OneByOne      a cross-validation for every labeling: scores that take more than decisions (all from one P), other
                  weights that follow the labels, no closed form

:class:`Strategy` says what they have in common.

A grid search has the algebra of ``tuning.grid`` with labelings as columns. For each candidate one P; its Schur
complements give the inner held-out residuals of all labelings in all outer training parts (2 n^2 flops a column and
candidate, once more for the training parts), hence all criteria. Then, for the candidates that were chosen at all, the
outer decisions of the labelings that chose them: together about one more product P Y for each split. No model is
refitted.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from foldless._engine.heldout.leave_out import held_out_fits
from foldless._engine.heldout.sets import Sets
from foldless._engine.heldout.solution import Solution
from foldless._engine.linalg import to_host
from foldless._engine.linalg.batches import gen_batches
from foldless._engine.permutation.confounded import Residuals
from foldless._engine.permutation.labelings import Labelings, Moving, Solver, elsewhere, labelings_that_fit, truth_of
from foldless._engine.permutation.nulls import Null
from foldless._engine.permutation.tally import LabelingScores, Tally
from foldless._engine.precision.reweighted import SharedWeights
from foldless._engine.readout.codings import against_all
from foldless._engine.readout.task import Task
from foldless._engine.tuning.criteria import weights
from foldless._engine.tuning.grid import choose_candidates


class Strategy(Protocol):
    """A way to the scores of labelings."""

    @property
    def route(self) -> Any:
        """The way in words, and why it was chosen."""
        ...

    @property
    def n_together(self) -> int:
        """How many labelings it works on at a time."""
        ...

    def scores(self, null: Null) -> LabelingScores:
        """Scores (b, q) of labelings with their splits, with members (b, k, q); choices of a search."""
        ...


@dataclass(frozen=True)
class Batched:
    """Scores of columns."""

    route: Any
    n_together: int
    task: Task
    metrics: list  # of DecisionScore
    shared: Solver | None = None  # of all splits
    solver_of: Callable | None = None  # else (train, test) -> the Solver of a split, of which one is held at a time
    members: np.ndarray | None = None  # (k, n, d): other features of the held-out rows, to test every model at
    residuals: Residuals | None = None  # of values, where these move and not the values

    def scores(self, null):
        """Scores of the labelings, all at once where they share their splits."""
        if null.moves and self.members is None:
            return self._moving(null.orders, null.true_splits)
        truth = truth_of(self.task, null.orders, self.residuals)
        if null.moves or null.drawn is not None:
            return self._one_by_one(truth, null.splits)
        if self.solver_of is not None:
            behind = ((Labelings.of(self.solver_of(*split), self.task, truth), split) for split in null.true_splits)
            return self._tallied(behind)
        if len(truth) == 1 and self.members is None:
            task = self.task.relabelled(truth[0])
            sets = sets_of_one(task, null.true_splits)
            if sets is not None:
                return self._single_labeling(task, self.shared, null.true_splits, sets)
        labelings = Labelings.of(self.shared, self.task, truth)
        return self._tallied((labelings, split) for split in null.true_splits)

    def _single_labeling(self, task, solver, splits, sets):
        """Scores of a single labeling: its sets are batches of small systems."""
        tally = Tally(self.metrics)
        truth = task.Y.T[None] if task.codes is None else task.codes[None]
        decisions = decisions_of_one(task, solver.solve(task.Y), sets)
        for D, (_, test) in zip(decisions, splits, strict=True):
            tally.add(D, truth[..., test], test)
        return tally.labeling_scores(task.problem.n)

    def _tallied(self, pairs):
        """The :class:`LabelingScores` of labelings, from (labelings, split) of all splits."""
        tallies = [Tally(self.metrics) for _ in ([None] if self.members is None else self.members)]
        for labelings, (train, test) in pairs:
            truth = labelings.truth[..., test]
            for tally, D in zip(tallies, self._decisions(labelings, train, test), strict=True):
                tally.add(D, truth, test)
        members = [tally.labeling_scores(self.task.problem.n) for tally in tallies]
        return members[0] if self.members is None else LabelingScores.stacked(members)

    def _moving(self, orders, splits):
        labelings, tally = Moving.of(self.shared, self.task, orders, self.residuals), Tally(self.metrics)
        for train, test in splits:
            tally.add(labelings.held_out(train, test), labelings.truth_of_places[..., test], labelings.places[0, test])
        return tally.labeling_scores(self.task.problem.n)

    def _one_by_one(self, truth, splits):
        labelings = Labelings.of(self.shared, self.task, truth)
        same = (truth == truth_of(self.task, np.arange(self.task.problem.n)[None])).reshape(len(truth), -1).all(1)
        # Rounding depends on the number of columns: labels that stay as they are must give the very same score.
        alone = Labelings.of(self.shared, self.task, truth[same][:1]) if same.any() else None
        results = []
        for j, pairs in enumerate(splits):
            one = alone if same[j] else labelings.select([j])
            results.append(self._tallied((one, pair) for pair in pairs))
        return LabelingScores.joined(results)

    def _decisions(self, labelings, train, test):
        """Decisions (b, k, t) of one split, at the features of every member."""
        model = labelings.part(train)
        if self.members is None:
            yield labelings.decisions(model, test)
            return
        read = labelings.reader(model)
        fits = elsewhere(model, test)
        steps = labelings.solver.steps
        for X in self.members:
            yield read(fits(X[test] if steps is None else steps.transform(X[test])))


@dataclass(frozen=True)
class BatchedGrid:
    """Scores and choices of a grid search for any labelings; splits, outer and inner, are those of the true labels."""

    route: Any
    n_together: int  # labelings that share the making of every candidate's P
    settings: list  # of kernels
    candidates: list
    metrics: list  # of DecisionScore
    selections: list  # [setting][outer split]
    weight: str | None  # of the rows in the criterion
    memory_limit: int
    residuals: Residuals | None = None  # of values, where these move and not the values

    def scores(self, null):
        """Scores of the labelings and the candidates that they chose."""
        truth = truth_of(self.settings[0].task, null.orders, self.residuals)
        places, tally = self._choices(truth, null.true_splits), Tally(self.metrics)
        held = self._outer_decisions(truth, null.true_splits, places)
        for D, (_, test) in zip(held, null.true_splits, strict=True):
            tally.add(D, truth[..., test], test)
        return tally.labeling_scores(
            truth.shape[-1], [[self.candidates[place] for place in chosen] for chosen in places.T]
        )

    def _choices(self, truth, splits):
        """Numbers (n_splits, b) of the chosen candidates."""
        losses = np.empty((len(splits), len(self.candidates), len(truth)))
        for setting, selections in zip(self.settings, self.selections, strict=True):
            problem = setting.task.problem
            path = problem.path(problem.active, len(setting.alphas), explicit=True)
            for alpha, place in zip(setting.alphas, setting.places, strict=True):
                solver = Solver.of(setting.problem(alpha), path.with_alpha(alpha))
                for block in self._blocks(setting, len(truth)):
                    labelings = Labelings.of(solver, setting.task, truth[block])
                    for s, (selection, (train, _)) in enumerate(zip(selections, splits, strict=True)):
                        losses[s, place, block] = self._losses(labelings, selection, train)
        return np.array([[choose_candidates(loss[:, None], self.settings)[0] for loss in split.T] for split in losses])

    def _blocks(self, setting, n_labelings):
        return gen_batches(n_labelings, labelings_that_fit(setting.task, self.memory_limit))

    def _losses(self, labelings, selection, train):
        """Criterion (b,) of the inner held-out fits of one outer training part, all columns of a labeling added up."""
        rows = selection.rows[selection.where]
        fits = held_out_fits(selection.inner_model(labelings.part(train)), selection.sets)
        if labelings.task.codes is None:
            F, T = labelings.split(fits), labelings.truth[:, :, rows]
        else:  # +-1 one against all
            F, codes = against_all(labelings.classes(fits), axis=1), labelings.truth[:, None, rows]
            classes = np.arange(labelings.task.n_classes)[-F.shape[1] :, None]
            T = np.where(codes == classes, 1.0, -1.0).astype(F.dtype)
        F = F.reshape(-1, len(rows)).T
        T = T.reshape(-1, len(rows)).T
        W = weights(self.weight, T, selection.W[:, 0].astype(F.dtype))
        return selection.criterion(F, T, W)[0].reshape(len(labelings), -1).sum(1)

    def _outer_decisions(self, truth, splits, places):
        """Outer decisions (b, k, t) of the chosen candidates in every split."""
        outer: list = [None] * len(splits)
        for setting in self.settings:
            for alpha, place in zip(setting.alphas, setting.places, strict=True):
                members = np.flatnonzero((places == place).any(0))
                if not len(members):
                    continue
                solver = Solver.of(setting.problem(alpha))
                for block in self._blocks(setting, len(members)):
                    block_members = members[block]
                    labelings = Labelings.of(solver, setting.task, truth[block_members])
                    for s, (train, test) in enumerate(splits):
                        those = np.flatnonzero(places[s, block_members] == place)
                        if len(those):
                            some = labelings.select(those)
                            D = some.decisions(some.part(train), test)
                            if outer[s] is None:
                                outer[s] = np.empty((len(truth), *D.shape[1:]), D.dtype)
                            outer[s][block_members[those]] = D
        return outer


@dataclass(frozen=True)
class Weighted:
    """Scores of labelings that take the weights of their rows along: a P each, of the same rows and kernel."""

    route: Any
    n_together: int
    task: Task
    metrics: list  # of DecisionScore

    def scores(self, null):
        """Scores of the labelings, one after the other."""
        shared = SharedWeights(_gram(self.task.problem))
        held = [self._held_out(order, splits, shared) for order, splits in zip(null.orders, null.splits, strict=True)]
        if null.drawn is None:
            return self._tallied(held)
        return LabelingScores.joined([self._tallied([labeling]) for labeling in held])

    def _held_out(self, order, splits, shared):
        """(decisions, truth, test) of every split of one labeling."""
        task = self.task.labelled(order)
        problem = task.problem
        P = shared.precision(problem)
        sets = sets_of_one(task, splits)
        if sets is not None:
            decisions = decisions_of_one(task, Solution.fit(problem, problem.active, task.Y, P), sets)
        else:
            one = Labelings.of(Solver.of(problem, P), task, task.codes[None])
            decisions = [one.decisions(one.part(train), test) for train, test in splits]
        return [(D, task.codes[None, test], test) for D, (_, test) in zip(decisions, splits, strict=True)]

    def _tallied(self, held):
        """The :class:`LabelingScores` of labelings whose test sets have the same sizes."""
        tally = Tally(self.metrics)
        for split in zip(*held, strict=True):
            D, truth, test = zip(*split, strict=True)
            tally.add(np.concatenate(D), np.concatenate(truth), test[0])
        return tally.labeling_scores(self.task.problem.n)


def _gram(problem):
    """The Gram matrix of all rows; None where P is held through features."""
    rows = problem.active
    return None if problem.through_features(len(rows)) else problem.gram(rows, rows)


def sets_of_one(task, splits):
    """The test sets of splits that train on all other rows, none of weight 0, and on every class; None for others."""
    n = task.problem.n
    sets = Sets.from_splits(splits, n) if len(task.problem.active) == n else None
    if sets is None or task.codes is None:
        return sets
    counts = np.bincount(task.codes, minlength=task.n_classes)
    keep_all = (counts > np.bincount(task.codes[test], minlength=task.n_classes) for _, test in splits)
    return sets if all(kept.all() for kept in keep_all) else None


def decisions_of_one(task, model, sets):
    """Decisions (1, k, t) of every set of a single labeling."""
    D = to_host(task.held_out_decisions(model, sets))
    return np.split(D.reshape(len(D), -1).T[None], np.cumsum(sets.sizes)[:-1], 2)


@dataclass(frozen=True)
class OneByOne:
    """A cross-validation for every labeling: ``validate(order, splits)`` gives its :class:`LabelingScores`."""

    route: Any
    validate: Callable
    n_together: int = 1

    def scores(self, null):
        """Scores of the labelings, one after the other."""
        labelings = zip(null.orders, null.splits, strict=True)
        return LabelingScores.joined([self.validate(order, splits) for order, splits in labelings])
