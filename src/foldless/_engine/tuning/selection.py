"""What a search minimises: a criterion of the held-out fits of one task.

A :class:`Selection` fixes the targets, the rows that are left out together (each alone: leave-one-out), the criterion
and its weights. It then judges any model, or all alphas of a kernel along one decomposition (``path``).

Scores are taken of the held-out decisions of the task's own readout: one of them may decide in the place of the
criterion, others are recorded beside it. Who makes them (``_sklearn.scorers.HeldOutScores``) is not known here.

Behind steps that are fitted on each of them, training parts see X in different ways, and nothing can be left out of one
P: a :class:`SelectionOfParts` has a task, a decomposition and a path of alphas for every training part.

A criterion that is a mean of losses l_i of rows, with weights w_i of sum 1, has the standard error

    se^2 = sum w_i^2 (l_i - sum_j w_j l_j)^2.
"""

import time
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from foldless._engine.heldout.leave_out import OneHeldOut, held_out_fits, held_out_residuals
from foldless._engine.heldout.part import TrainingPart
from foldless._engine.heldout.sets import Sets, folds_of
from foldless._engine.heldout.solution import Solution, loo_path
from foldless._engine.precision.digits import few_digits
from foldless._engine.readout.task import Task
from foldless._engine.tuning.criteria import Criterion, weights

BLOCK = 2**18  # losses of rows that are computed together


class Evaluation(NamedTuple):
    """Losses and scores of settings that differ in alpha alone."""

    losses: np.ndarray  # (n_alphas, m): losses that decide, of every column, or minus the score of all columns
    best: np.ndarray  # held-out decisions at the best alpha, set by set; fits if the criterion needs no decisions
    criterion: np.ndarray  # (n_alphas,)
    scores: np.ndarray | None = None  # (n_scores, n_alphas, n_splits)
    seconds: float = 0.0  # that the scores took
    errors: np.ndarray | None = None  # (n_alphas,): standard errors of the criterion, where it is a mean over rows

    def scores_at(self, place, n_alphas):
        """The scores of a single setting at its place among ``n_alphas``, nan elsewhere."""
        assert self.scores is not None
        scores = np.full((len(self.scores), n_alphas, self.scores.shape[2]), np.nan)
        scores[:, place] = self.scores[:, 0]
        return scores


@dataclass(frozen=True)
class Selection:
    """A criterion of the held-out fits of one task.

    ``rows`` are the rows of positive weight, ``T`` their targets (+-1 one against all, or the values of a regression),
    ``folds`` positions in ``rows`` that are left out together (None: each alone), ``where`` the positions of the
    stacked held-out fits, ``W`` their weights in the criterion, ``tests`` the places among them that have a score
    together: those that each split tests, or all.
    """

    task: Task
    rows: np.ndarray
    T: np.ndarray
    folds: list | None
    where: np.ndarray
    W: np.ndarray
    criterion: Criterion
    tests: list
    scoring: Any = None
    weighted: bool = False  # whether W are the weights of the rows, which scores then take as well

    @classmethod
    def of(
        cls, task, criterion, *, splits=None, balanced=False, row_weights=None, weighted=False, rows=None, scoring=None
    ):
        """The selection of a task, or of some of its rows; ``splits`` as (train, test) row numbers, None for LOO.

        ``row_weights`` (n,) weigh the criterion, and with ``weighted`` the scores; ``balanced`` halves it by class.
        """
        if criterion.of_decisions and task.readout.cuts and splits is None:
            raise ValueError(
                "criterion='multiclass_error' would need a cut, as of threshold='loo', for every row that is left out;"
                " use criterion='error', or folds (cv=5)."
            )
        rows = task.problem.active if rows is None else rows
        T = task.plus_minus_targets(rows)
        folds, where, counted = None, np.arange(len(rows)), np.ones(len(rows))
        tests = [where]
        if splits is not None:
            folds, tests = folds_of(splits, rows, task.problem.n)
            where = np.concatenate(folds)
            counted = np.zeros(len(where))
            counted[np.concatenate(tests)] = 1.0
        scoring = None if scoring is None else scoring.fitting(task, tests, alone=folds is None)
        if row_weights is not None:
            counted = counted * row_weights[rows][where]
        if criterion.of_decisions:
            if balanced:  # every class that occurs has the same share
                codes = task.codes[rows[where]]
                mass = np.bincount(codes, counted)
                counted = counted / np.where(mass > 0, mass, 1.0)[codes]
            W = (counted / counted.sum())[:, None]
        else:
            W = weights("balanced" if balanced else None, T[where], counted)
        return cls(task, rows, T, folds, where, W, criterion, tests, scoring, weighted)

    def column(self, k):
        """The selection of one target alone, which no score of all of them judges."""
        return replace(self, T=self.T[:, [k]], W=self.W[:, [k]], scoring=None)

    def problems(self, alphas, kernel):
        """[(selection, problem)] of a setting: all targets by one P, or each by the P of its own alpha."""
        columns = [self] if len(alphas) == 1 else [self.column(k) for k in range(len(alphas))]
        problems = [self.task.problem.replace(kernel=kernel, alpha=float(alpha)) for alpha in alphas]
        return list(zip(columns, problems, strict=True))

    @cached_property
    def sets(self):
        """The sets of positions in ``rows`` that are left out."""
        return Sets.leave_one_out(len(self.rows)) if self.folds is None else Sets.of(self.folds)

    @cached_property
    def held_out_targets(self):
        """Those of the stacked held-out fits."""
        return self.T[self.where]

    @cached_property
    def _rounding(self):
        """What targets lose in the precision of the problem, stacked; None where they have no other."""
        T, rounded = self.held_out_targets, self.task.problem.rounded(self.held_out_targets)
        return None if T.dtype == rounded.dtype else T - rounded

    def of_targets(self, E):
        """Stacked held-out residuals E of rounded targets, which a model has, as those of the targets."""
        return E if self._rounding is None else E + self._rounding

    @property
    def tested(self):
        """Which of the stacked held-out fits count; rows that are left out and not tested do not."""
        return self.W.any(1)

    @property
    def tested_rows(self):
        """Row numbers of those."""
        return self.rows[self.where][self.tested]

    @property
    def score_decides(self):
        """Whether a score decides in the place of the criterion."""
        return self.scoring is not None and self.scoring.decides

    @property
    def judges_loo_residuals(self):
        """Whether leave-one-out residuals of the criterion's targets are all that decides."""
        return self.folds is None and not (self.score_decides or self.criterion.of_decisions or self.criterion.ranks)

    @property
    def Y(self):
        """What the models regress on: the targets of the criterion, or those of the task's own readout."""
        return self.task.Y[self.rows] if self.criterion.of_decisions or self.score_decides else self.T

    def inner_model(self, part):
        """The model of a training part, ready for its inner splits."""
        return part.as_solution() if self.folds is not None and isinstance(part, TrainingPart) else part

    # -- judging -------------------------------------------------------------------------------------------------------

    def judge(self, model):
        """Losses (m,) that decide about one model of ``rows`` and ``Y``."""
        if self.score_decides:
            decisions, probabilities = self.decisions(model)
            return self.scoring.losses(self._scores([decisions], [probabilities]))[0]
        return self.losses(self.decisions(model)[0] if self.criterion.of_decisions else self._heldout(model))

    def judged(self, problem):
        """:class:`Evaluation` of one setting, by one factorisation."""
        return self.judged_by([self.outputs(problem)], [problem.alpha])

    def path(self, problem, alphas):
        """:class:`Evaluation` of every alpha, by one decomposition.

        Scores that nobody asked for are those of the best alpha alone where they take models of their own.
        """
        path = problem.path(self.rows, len(alphas), explicit=self.folds is not None)
        known: list = [None] * len(alphas)
        if path.serves_every_alpha and self.folds is None and not self.criterion.of_decisions:
            known = self.of_targets(loo_path(problem, self.rows, self.T, alphas, path))

        def outputs(selection, place):
            alpha = alphas[place]
            return selection._outputs(problem.replace(alpha=alpha), partial(path.with_alpha, alpha), known[place])

        chooses = self if self._scores_all else replace(self, scoring=None)
        together = chooses._outputs_of_residuals(known) if isinstance(known, np.ndarray) else None
        judged = chooses.judged_by(together or [outputs(chooses, place) for place in range(len(alphas))], alphas)
        if chooses is self:
            return judged
        place = best_place(judged.losses.sum(1), alphas)
        best = self.judged_by([outputs(self, place)], alphas[place : place + 1])
        return judged._replace(best=best.best, scores=best.scores_at(place, len(alphas)), seconds=best.seconds)

    def judged_by(self, outputs, alphas):
        """Settings judged by their outputs."""
        fits, decisions, probabilities = zip(*outputs, strict=True)
        errors, outputs = None, decisions if self.criterion.of_decisions else fits
        if self.criterion.rowwise:
            of_rows = row_losses(self, outputs)
            losses = of_rows.sum(1)
            errors = standard_errors(self, of_rows, losses)
        else:
            losses = np.array([self.losses(output) for output in outputs])
        criterion, scores = losses.sum(1), None
        begin = time.perf_counter()
        if self.scoring is not None:
            scores = self._scores(decisions, probabilities)
        seconds = time.perf_counter() - begin
        if self.score_decides:
            losses = self.scoring.losses(scores)
        place = best_place(losses.sum(1), alphas)
        best = decisions[place]
        if best is None:
            best = fits[place] if self.criterion.ranks else self._fits_beside(fits[place])
        return Evaluation(losses, best, criterion, scores, seconds, errors)

    def _scores(self, decisions, probabilities):
        """Scores (n_scores, n_alphas, n_splits) of decisions."""
        known = None if probabilities[0] is None else np.stack(probabilities)
        weights = self.W[:, 0] if self.weighted else None
        return self.scoring(self.task, self.rows[self.where], self.tests, np.stack(decisions), known, weights)

    def losses(self, outputs):
        """Losses (m,) by the criterion of held-out residuals, or of fits or decisions where it takes these."""
        if self.criterion.of_decisions:
            return np.array([self.W[:, 0] @ self.wrong(outputs)])
        if self.criterion.ranks:
            return self.criterion(outputs, self.held_out_targets, self.W.astype(outputs.dtype, copy=False))[0]
        return self.losses_and_slopes(outputs)[0]

    def wrong(self, decisions):
        """Which of the stacked rows are given another class than their own."""
        return self.task.wrong(decisions, self.rows[self.where])

    def losses_and_slopes(self, E):
        """Loss of every column and its derivatives by the residuals E, stacked."""
        T = self.held_out_targets
        if self.criterion.residuals:  # nothing is added to them, and no digit lost
            T = np.broadcast_to(T.dtype.type(0), T.shape)
        values, slopes = self.criterion(T - E, T, self.W.astype(T.dtype, copy=False))
        return values, None if slopes is None else -slopes

    # -- held-out outputs ----------------------------------------------------------------------------------------------

    def outputs(self, problem):
        """(residuals or fits of the criterion, decisions, probabilities) of one setting; None: not asked for."""
        return self._outputs(problem, partial(problem.precision, self.rows))

    def _outputs(self, problem, precision, E=None):
        """The same by a P that is made where it is needed; E: residuals, where known."""
        precision, ranks, fits = cache(precision), self.criterion.ranks, E

        def model(Y):
            return Solution.fit(problem, self.rows, Y, precision())

        if E is None and not self.criterion.of_decisions:
            fits = self._heldout(model(self.T))
        elif ranks and not self.criterion.of_decisions:
            fits = self._fits(E, model)
        if self.scoring is None and not self.criterion.of_decisions:
            return fits, None, None
        if fits is None or not self._reads_fits:
            return fits, *self.decisions(model(self.task.Y[self.rows]))
        return fits, self._read(fits if ranks else self._fits(fits, model)), None

    def _outputs_of_residuals(self, E):
        """``outputs`` of all settings from their leave-one-out residuals (k, n, m); None where these do not suffice."""
        ranks = self.criterion.ranks
        if not ranks and self.scoring is None:
            return [(residuals, None, None) for residuals in E]
        fits = self._fits_beside(E)
        if self._few_digits(fits) or not (self.scoring is None or self._reads_fits):
            return None
        decisions = [None] * len(E) if self.scoring is None else self._read(fits)
        return [(outputs, read, None) for outputs, read in zip(fits if ranks else E, decisions, strict=True)]

    def _heldout(self, model):
        """What the criterion is computed from: fits, or residuals, which keep more digits."""
        if self.criterion.ranks:
            return held_out_fits(model, self.sets)
        return self.of_targets(held_out_residuals(model, self.sets))

    def _fits_beside(self, E):
        """Held-out fits, in the precision of the problem, that leave the residuals E of the targets."""
        return self.task.problem.rounded(self.held_out_targets - E)

    def _fits(self, E, model):
        """Fits of residuals E; evaluated by a model where their differences have few digits."""
        fits = self._fits_beside(E)
        return held_out_fits(model(self.T), self.sets) if self._few_digits(fits) else fits

    def _few_digits(self, fits):
        """Whether some of such fits have lost most of their digits."""
        return few_digits(fits, np.abs(self.T).max(0, initial=0.0)).any()

    @property
    def _reads_fits(self):
        """Whether decisions are read off the fits of the criterion's targets, without a look at the training part."""
        readout = self.task.readout
        plain = readout.coding != "indicator" and not readout.needs_moments and not readout.cuts
        plain = plain and not (readout.needs_presence and self._removes_a_class)
        return plain and not (self.scoring is not None and self.scoring.probabilities)

    @cached_property
    def _removes_a_class(self):
        """Whether a training part lacks a class that has rows."""
        assert self.task.codes is not None
        codes = self.task.codes[self.rows]
        counts = np.bincount(codes)
        if self.folds is None:
            return bool((counts == 1).any())
        removed = [np.bincount(codes[fold], minlength=len(counts)) for fold in self.folds]
        return bool(((np.array(removed) == counts) & (counts > 0)).any())

    @property
    def _scores_all(self):
        """Whether every setting is scored: as asked for, or since that takes no further solves."""
        return self.scoring is None or self.scoring.requested or self.criterion.of_decisions or self._reads_fits

    def _read(self, fits):
        """Decisions of such fits."""
        scores = self.task.readout.scores(fits, None)
        if self.folds is None:
            return scores
        ends = np.cumsum([len(te) for te in self.folds])[:-1]
        parts = zip(self.folds, np.split(scores, ends), strict=True)
        return np.concatenate([self.task.problem.tie_equal_rows(self.rows[te], fold) for te, fold in parts])

    def scores(self, model):
        """Held-out decisions of the task's own readout, stacked, before any cut; ``model`` is one of the task's Y."""
        return self.task.held_out_decisions(model, self.sets, cut=False)

    def decisions(self, model):
        """(decisions, probabilities or None) of the same by the rule of each training part, its cut included."""
        if self.scoring is not None and self.scoring.probabilities:
            return self.task.held_out_outputs(model, self.sets)
        return self.task.held_out_decisions(model, self.sets), None


# -- training parts of their own ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SelectionOfParts(Selection):
    """A criterion of the held-out fits of many tasks, one for each of ``folds``; rows left out have weight 0 there.

    The held-out fits of all parts are judged together, as those of one task are.
    """

    tasks: tuple = ()

    def path(self, problem, alphas):
        """:class:`Evaluation` of every alpha, by one decomposition of each training part (``problem`` is of none)."""
        return self.judged_by(self._outputs_at(alphas), alphas)

    def outputs(self, problem):
        """As that of one task, for the alpha of ``problem``."""
        return self._outputs_at([problem.alpha])[0]

    def _outputs_at(self, alphas):
        outputs = []
        for outputs_of_parts in self._of_parts(self._outputs_of_part, alphas):
            columns = zip(*outputs_of_parts, strict=True)
            outputs.append([None if arrays[0] is None else np.concatenate(arrays) for arrays in columns])
        return outputs

    def scores_at(self, alpha):
        """Held-out decisions of the tasks' own readouts, stacked, before any cut."""

        def scores(task, model, rows):
            held_out = OneHeldOut(model(task.Y), rows, task.Y[rows])
            return task.problem.tie_equal_rows(rows, task.scores(held_out)[0])

        return np.concatenate(self._of_parts(scores, [alpha])[0])

    def _of_parts(self, function, alphas):
        """``function(task, model, rows)`` of all training parts and the rows they leave out, a list for each alpha.

        ``model`` is a function from targets (n, m) to the fit of the training part.
        """
        assert self.folds is not None
        values: list = [[] for _ in alphas]
        for task, fold in zip(self.tasks, self.folds, strict=True):
            problem, train = task.problem, task.problem.active
            path = problem.path(train, len(alphas))
            for place, alpha in enumerate(alphas):
                problem_at_alpha, precision = problem.replace(alpha=alpha), path.with_alpha(alpha)

                def model(Y, problem=problem_at_alpha, precision=precision, train=train):
                    return Solution.fit(problem, train, Y[train], precision)

                values[place].append(function(task, model, self.rows[fold]))
        return values

    def _outputs_of_part(self, task, model, rows):
        """(residuals or fits of the criterion, decisions, probabilities) of one training part, None if not needed."""
        outputs = decisions = probabilities = None
        if not self.criterion.of_decisions:
            T = task.plus_minus_targets(np.arange(task.problem.n))
            held_out = OneHeldOut(model(T), rows, T[rows])
            (outputs,) = held_out.fits if self.criterion.ranks else held_out.residuals
        if self.criterion.of_decisions or self.scoring is not None:
            held_out = OneHeldOut(model(task.Y), rows, task.Y[rows])
            with_probabilities = self.scoring is not None and self.scoring.probabilities
            decisions, probabilities = task.outputs(held_out, probabilities=with_probabilities)
            decisions = task.problem.tie_equal_rows(rows, decisions[0])
            if with_probabilities:
                probabilities = task.problem.tie_equal_rows(rows, probabilities[0])
        return outputs, decisions, probabilities


def selection_of_parts(spec, tasks, splits, rows):
    """The selection of tasks, one for each of the (train, test) pairs ``splits``; None: for each row left out alone.

    ``rows`` are those of positive weight.
    """
    selection = spec.selection(tasks[0], splits, rows=rows)
    if splits is None:
        selection = replace(selection, folds=list(np.arange(len(rows))[:, None]))
        tasks = [tasks[row] for row in rows]
    else:  # those that leave out some of the rows, and have a fold
        pairs = zip(tasks, splits, strict=True)
        tasks = [task for task, (train, _) in pairs if 0 < np.isin(rows, train).sum() < len(rows)]
    settings = {field.name: getattr(selection, field.name) for field in fields(selection)}
    return SelectionOfParts(**settings, tasks=tuple(tasks))


# -- losses of rows, and the best setting ------------------------------------------------------------------------------


def best_place(losses, alphas):
    """Place of the least loss; counts of errors tie often, and of equal ones the largest alpha is taken."""
    losses, alphas = np.asarray(losses), np.asarray(alphas)
    if np.isnan(losses).all():
        raise ValueError(
            "the criterion is no number for any candidate: alpha too small for this precision, or kernel values too"
            " large. Rescale X (for instance with sklearn.preprocessing.StandardScaler) or raise alpha."
        )
    losses = np.where(np.isnan(losses), np.inf, losses)
    slack = 1e-12 * abs(losses.min())  # weighted sums tie up to rounding
    tied = np.flatnonzero(losses <= losses.min() + slack)
    return int(tied[np.argmax(alphas[tied])])


def row_losses(selection, outputs):
    """Losses (k, N, m) of the held-out rows of k settings, times their weights: the criterion is their sum."""
    if selection.criterion.of_decisions:
        return np.stack([selection.W * selection.wrong(decisions)[:, None] for decisions in outputs])
    T, W = selection.held_out_targets, selection.W
    together = max(1, BLOCK // max(T.size, 1))  # settings
    losses = []
    for start in range(0, len(outputs), together):
        block = np.stack(outputs[start : start + together])
        columns = [np.broadcast_to(array, block.shape).reshape(1, -1) for array in (T, W)]
        single_rows = replace(selection, T=columns[0], W=columns[1], where=np.zeros(1, int))
        losses.append(single_rows.losses(block.reshape(1, -1)).reshape(block.shape))  # each row a problem of its own
    return np.concatenate(losses)


def standard_errors(selection, of_rows, losses):
    """Standard errors (k,) of the criterion by its ``row_losses`` (k, N, m) and their sums ``losses`` (k, m).

    A row's columns and tests are added up first.
    """
    deviations = of_rows @ np.ones(of_rows.shape[2]) - losses @ selection.W.T
    if selection.folds is not None:  # a row may be tested several times
        deviations = np.stack([np.bincount(selection.where, values) for values in deviations])
    return np.sqrt(np.square(deviations).sum(1))
