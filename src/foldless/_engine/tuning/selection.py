"""What a search minimises: a criterion of the held-out fits of one task.

A :class:`Selection` fixes the targets, the rows that are left out together (each alone: leave-one-out), the criterion
and its weights. It then judges any model, or all alphas of a kernel along one decomposition (``path``).

Scores are taken of the held-out decisions of the task's own readout: one of them may decide in the place of the
criterion, others are recorded beside it. Who makes them (``_sklearn.scorers.HeldOutScores``) is not known here.

A criterion that is a mean of losses l_i of rows, with weights w_i of sum 1, has the standard error

    se^2 = sum w_i^2 (l_i - sum_j w_j l_j)^2.
"""

import time
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from foldless._engine.heldout.gradient import residuals
from foldless._engine.heldout.part import Part
from foldless._engine.heldout.sets import Sets
from foldless._engine.heldout.solution import Solution, loo_path
from foldless._engine.precision.digits import few_digits
from foldless._engine.readout.task import Task
from foldless._engine.tuning.criteria import Criterion, weights
from foldless._engine.tuning.folds import folds_of, heldout_fits

BLOCK = 2**18  # losses of rows that are computed together


class Judged(NamedTuple):
    """Settings that differ in alpha alone, judged."""

    losses: np.ndarray  # (n_alphas, m): what decides, of every column, or minus the score of all
    best: np.ndarray  # held-out decisions, or fits where none were asked for, of the best of them, stacked
    criterion: np.ndarray  # (n_alphas,)
    scores: np.ndarray | None = None  # (n_scores, n_alphas, n_splits)
    seconds: float = 0.0  # that the scores took
    errors: np.ndarray | None = None  # (n_alphas,): standard errors of the criterion, where it is a mean over rows

    def only_at(self, place, n_alphas):
        """The scores of a single setting as one of many, of which the others have none."""
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
        if criterion.whole and task.readout.cuts and splits is None:
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
        if criterion.whole:
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

    def parts(self, alphas, kernel):
        """[(selection, problem)] of a setting: all targets by one P, or each by the P of its own alpha."""
        columns = [self] if len(alphas) == 1 else [self.column(k) for k in range(len(alphas))]
        problems = [self.task.problem.replace(kernel=kernel, alpha=float(alpha)) for alpha in alphas]
        return list(zip(columns, problems, strict=True))

    @cached_property
    def held_out_targets(self):
        """Those of the stacked held-out fits."""
        return self.T[self.where]

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
        return self.folds is None and not (self.score_decides or self.criterion.whole or self.criterion.ranks)

    @property
    def Y(self):
        """What the models regress on: the targets of the criterion, or those of the task's own readout."""
        return self.task.Y[self.rows] if self.criterion.whole or self.score_decides else self.T

    def inner_model(self, part):
        """The model of a training part, ready for its inner splits."""
        return part.as_solution() if self.folds is not None and isinstance(part, Part) else part

    # -- judging -------------------------------------------------------------------------------------------------------

    def judge(self, model):
        """Losses (m,) that decide about one model of ``rows`` and ``Y``."""
        if self.score_decides:
            decisions, probabilities = self.decisions(model)
            return self.scoring.losses(self._scores([decisions], [probabilities]))[0]
        return self.losses(self.decisions(model)[0] if self.criterion.whole else self._heldout(model))

    def judged(self, problem):
        """:class:`Judged` of one setting, by one factorisation."""
        return self.judged_by([self.outputs(problem)], [problem.alpha])

    def path(self, problem, alphas):
        """:class:`Judged` of every alpha, by one decomposition.

        Scores that nobody asked for are those of the best alpha alone where they take models of their own.
        """
        path = problem.path(self.rows, len(alphas), explicit=self.folds is not None)
        known: list = [None] * len(alphas)
        if path.serves_every_alpha and self.folds is None and not self.criterion.whole:
            known = loo_path(problem, self.rows, self.T, alphas, path)

        def outputs(selection, place):
            alpha = alphas[place]
            own = problem.replace(alpha=alpha)
            return selection._outputs(own, partial(path.with_alpha, alpha), known[place])

        chooses = self if self._scores_all else replace(self, scoring=None)
        together = chooses._outputs_of_residuals(known) if isinstance(known, np.ndarray) else None
        judged = chooses.judged_by(together or [outputs(chooses, place) for place in range(len(alphas))], alphas)
        if chooses is self:
            return judged
        place = best_place(judged.losses.sum(1), alphas)
        best = self.judged_by([outputs(self, place)], alphas[place : place + 1])
        return judged._replace(best=best.best, scores=best.only_at(place, len(alphas)), seconds=best.seconds)

    def judged_by(self, outputs, alphas):
        """Settings judged by their outputs."""
        fits, decisions, probabilities = zip(*outputs, strict=True)
        errors, outputs = None, decisions if self.criterion.whole else fits
        if self.criterion.rowwise:
            of_rows = row_losses(self, outputs)
            errors = standard_errors(self, of_rows)
            losses = of_rows.sum(1)
        else:
            losses = np.array([self.losses(each) for each in outputs])
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
            best = fits[place] if self.criterion.ranks else self.held_out_targets - fits[place]
        return Judged(losses, best, criterion, scores, seconds, errors)

    def _scores(self, decisions, probabilities):
        """Scores (n_scores, n_alphas, n_splits) of decisions."""
        known = None if probabilities[0] is None else np.stack(probabilities)
        weights = self.W[:, 0] if self.weighted else None
        return self.scoring(self.task, self.rows[self.where], self.tests, np.stack(decisions), known, weights)

    def losses(self, outputs):
        """Losses (m,) by the criterion of held-out residuals, or of fits or decisions where it takes these."""
        if self.criterion.whole:
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

        if E is None and not self.criterion.whole:
            fits = self._heldout(model(self.T))
        elif ranks and not self.criterion.whole:
            fits = self._fits(E, model)
        if self.scoring is None and not self.criterion.whole:
            return fits, None, None
        if fits is None or not self._reads_fits:
            return fits, *self.decisions(model(self.task.Y[self.rows]))
        return fits, self._read(fits if ranks else self._fits(fits, model)), None

    def _outputs_of_residuals(self, E):
        """``outputs`` of all settings from their leave-one-out residuals (k, n, m); None where these do not suffice."""
        ranks = self.criterion.ranks
        if not ranks and self.scoring is None:
            return [(residuals, None, None) for residuals in E]
        fits = self.held_out_targets - E
        if self._few_digits(fits) or not (self.scoring is None or self._reads_fits):
            return None
        decisions = [None] * len(E) if self.scoring is None else self._read(fits)
        return [(outputs, read, None) for outputs, read in zip(fits if ranks else E, decisions, strict=True)]

    def _heldout(self, model):
        """What the criterion is computed from: fits, or residuals, which keep more digits."""
        return heldout_fits(model, self.folds) if self.criterion.ranks else residuals(model, self.folds)

    def _fits(self, E, model):
        """Fits of residuals E; evaluated by a model where their differences have few digits."""
        fits = self.held_out_targets - E
        return heldout_fits(model(self.T), self.folds) if self._few_digits(fits) else fits

    def _few_digits(self, fits):
        """Whether some of such fits have lost most of their digits."""
        return few_digits(fits, np.abs(self.T).max(0, initial=0.0)).any()

    @property
    def _reads_fits(self):
        """Whether decisions are read off the fits of the criterion's targets, without a look at the training part."""
        readout = self.task.readout
        plain = readout.coding != "indicator" and not readout.needs_moments and not readout.cuts
        return plain and not (self.scoring is not None and self.scoring.probabilities)

    @property
    def _scores_all(self):
        """Whether every setting is scored: as asked for, or since that takes no further solves."""
        return self.scoring is None or self.scoring.requested or self.criterion.whole or self._reads_fits

    def _read(self, fits):
        """Decisions of such fits."""
        scores = self.task.readout.scores(fits, None)
        if self.folds is None:
            return scores
        ends = np.cumsum([len(te) for te in self.folds])[:-1]
        parts = zip(self.folds, np.split(scores, ends), strict=True)
        return np.concatenate([self.task.problem.tie_equal_rows(self.rows[te], each) for te, each in parts])

    def scores(self, model):
        """Held-out decisions of the task's own readout, stacked, before any cut; ``model`` is one of the task's Y."""
        return self.task.held_out_scores(model, self.sets(model))

    def sets(self, model):
        """The sets of rows of a model that are left out."""
        return Sets.leave_one_out(len(model.rows)) if self.folds is None else Sets.of(self.folds)

    def decisions(self, model):
        """(decisions, probabilities or None) of the same by the rule of each training part, its cut included."""
        wanted = self.scoring is not None and self.scoring.probabilities
        if not (wanted or self.task.readout.cuts):
            return self.scores(model), None
        assert self.folds is not None
        found, tie = [], self.task.problem.tie_equal_rows
        for te in self.folds:
            part, rows = model.without(te), self.rows[te]
            rule, fits = self.task.rule(part, probabilities=wanted), part.fits(rows)
            found.append((tie(rows, rule.decision(fits)), tie(rows, rule.proba(fits)) if wanted else None))
        decisions, probabilities = zip(*found, strict=True)
        return np.concatenate(decisions), np.concatenate(probabilities) if wanted else None


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
    if selection.criterion.whole:
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


def standard_errors(selection, losses):
    """Standard errors (k,) of the criterion by its ``row_losses``; a row's columns and tests are added up first."""
    deviations = (losses - selection.W * losses.sum(1, keepdims=True)).sum(2)
    if selection.folds is not None:  # a row may be tested several times
        deviations = np.stack([np.bincount(selection.where, values) for values in deviations])
    return np.sqrt(np.square(deviations).sum(1))
