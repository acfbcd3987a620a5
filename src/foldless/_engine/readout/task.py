"""A problem with its targets and readout: what an estimator learns, ready to be left out of.

:class:`Task` is the meeting point of the estimators (which build it), ``heldout`` (which gives fits of any training
part) and ``model_selection`` (which asks for decisions and probabilities of any training part). A trained
:class:`Rule` turns fits into them. What a rule needs besides fits comes from its own training part alone: class
matrices, and for the "loo" threshold and for calibration the leave-one-out scores *within* that training part, so
that cross-validation of a calibrated classifier stays exact.
"""

from dataclasses import dataclass, replace

import numpy as np

from foldless._engine.heldout.leave_out import leave_out
from foldless._engine.heldout.model import Model
from foldless._engine.heldout.moments import Moments
from foldless._engine.heldout.problem import Problem
from foldless._engine.heldout.sets import Sets
from foldless._engine.heldout.training_parts import TrainingParts
from foldless._engine.linalg import row_major
from foldless._engine.precision.base import SingularBlockError
from foldless._engine.readout.calibration import Calibrator, fit_calibration
from foldless._engine.readout.codings import Readout, chosen_codes, plus_minus
from foldless._engine.readout.ranking import best_cut
from foldless._engine.readout.strata import AT_LEAST, by_margin, stratified_sets

NOISE = 1e-8  # scores that differ by less, beside targets of size 1, know nothing


@dataclass(frozen=True)
class Rule:
    """Decisions and probabilities from fits."""

    readout: Readout
    moments: Moments | None
    cut: float = 0.0
    calibrator: Calibrator | None = None

    def decision(self, fits):
        """Decision values: (t,) for two classes, else (t, c)."""
        return self.readout.scores(fits, self.moments) - self.cut

    def proba(self, fits):
        """Class probabilities (t, c)."""
        assert self.calibrator is not None
        return self.calibrator.proba(self.readout.scores(fits, self.moments))


def calibrated(kind, scores, stratified, *rows):
    """The calibration by leave-one-out scores, or by stratified ones where these point away from the labels.

    ``stratified()`` gives the latter; ``rows`` are what ``fit_calibration`` has to know of them.
    """
    fitted = fit_calibration(kind, scores, *rows)
    if fitted.known or len(scores) < 2 * AT_LEAST:
        return fitted
    try:
        fairer = stratified()
    except SingularBlockError:  # without a set the confounds are not determined
        return fitted
    if fairer.min() == np.finfo(fairer.dtype).min or fairer.std() <= NOISE:  # a set had all rows of a class
        return fitted
    return fit_calibration(kind, fairer, *rows)


@dataclass(frozen=True)
class Task:
    """Problem, targets Y (n, m), readout; for classifiers the class codes (n,) and the kind of calibration.

    Rows with several labels have no codes: Y says which. ``counted`` are the weights (n,) of the rows in the
    calibration where class weights make others of them for the fit: these would change how frequent classes are.
    """

    problem: Problem
    Y: np.ndarray
    readout: Readout
    codes: np.ndarray | None = None
    n_classes: int = 0
    calibration: str | None = None
    counted: np.ndarray | None = None

    def with_confounds(self, C, *, in_score=False):
        """The task with the columns C (n, k) fitted beside the intercept."""
        return replace(self, problem=self.problem.with_confounds(C, in_score=in_score))

    def training_parts(self, *, probabilities=True, **options):
        """Models of any training part; ``probabilities=False`` when no calibration will be asked for.

        ``options`` are those of :class:`TrainingParts`.
        """
        nested = self.readout.cuts or (probabilities and self.calibration is not None)
        return TrainingParts(self.problem, self.Y, nested=nested, **options)

    def subset(self, rows):
        """The task of these rows alone."""
        codes = None if self.codes is None else self.codes[rows]
        counted = None if self.counted is None else self.counted[rows]
        return replace(self, problem=self.problem.subset(rows), Y=self.Y[rows], codes=codes, counted=counted)

    def labelled(self, order):
        """The task of row i with label and weight of row order[i]."""
        problem = self.problem.replace(root_w=self.problem.root_w[order])
        codes = None if self.codes is None else self.codes[order]
        counted = None if self.counted is None else self.counted[order]
        return replace(self, problem=problem, Y=self.Y[order], codes=codes, counted=counted)

    def relabelled(self, truth):
        """The task with other class numbers (n,), or values (m, n); weights stay with the rows."""
        if self.codes is None:
            return replace(self, Y=row_major(truth.T))
        return replace(self, Y=self.readout.targets(truth, self.Y.dtype), codes=truth)

    def restricted(self, rows):
        """The task with the weight of all other rows set to 0; their basis functions stay."""
        return replace(self, problem=self.problem.restricted(rows))

    def plus_minus_targets(self, rows):
        """What a criterion judges at these rows: values of a regression, or targets +-1 one against all."""
        if self.codes is None:
            return self.Y[rows]
        return plus_minus(self.codes[rows], self.n_classes, self.Y.dtype)

    def wrong(self, decisions, rows):
        """Which of these rows are given another class than their own; of several labels a row, all must be right."""
        if self.codes is None:
            return ((decisions > 0) != (self.Y[rows] > 0)).any(-1)
        return chosen_codes(decisions) != self.codes[rows]

    def rule(self, model, *, probabilities=True):
        """The trained readout of one model."""
        moments = model.moments() if self.readout.needs_moments else None
        kind = self.calibration if probabilities else None
        cut, calibrator = 0.0, None
        if self.readout.cuts or kind is not None:
            assert self.codes is not None
            scores = self.loo_scores(model)
            codes = self.codes[model.rows]
            weights = np.square(model.root[:, 0])
            cut = best_cut(scores, codes == 1, weights) if self.readout.cuts else 0.0
            if kind is not None:
                counted = weights if self.counted is None else self.counted[model.rows]
                rows = codes, self.n_classes, counted, self.readout.expected
                calibrator = calibrated(kind, scores, lambda: self.stratified_scores(model, scores), *rows)
        return Rule(self.readout, moments, cut, calibrator)

    # -- held-out sets ---------------------------------------------------------------------------------------------

    def scores(self, held_out):
        """Scores (k, t, ...) of a batch of held-out sets, before any cut."""
        moments = held_out.moments() if self.readout.needs_moments else None
        return self.readout.scores(held_out.fits, moments)

    def decide(self, held_out):
        """Decisions (k, t, ...) of a batch of held-out sets, by the rule of every training part, its cut included."""
        if not self.readout.cuts:
            return self.scores(held_out)
        rules = [self.rule(held_out.training(i), probabilities=False) for i in range(len(held_out.fits))]
        return np.stack([rule.decision(fits) for rule, fits in zip(rules, held_out.fits, strict=True)])

    def held_out_scores(self, model, sets):
        """Scores of the rows of all sets by the model without each set, stacked, before any cut."""
        return self._stacked(leave_out(model, sets), sets, self.scores, model.rows)

    def held_out_decisions(self, model, sets):
        """The same with cuts. ``model`` is a fit, or the training parts of one."""
        if isinstance(model, Model):
            held_out = leave_out(model, sets)
        else:
            held_out = model.leave_out(sets, nested=self.readout.cuts)
        return self._stacked(held_out, sets, self.decide, model.rows)

    def _stacked(self, held_out, sets, read, rows):
        """What ``read`` makes of all batches of held-out sets, equal rows of a set made equal."""

        def values():
            for numbers, batch in held_out:
                of_sets = read(batch)
                if len(numbers) == 1:  # large sets: a product may round equal rows differently
                    members = sets[numbers[0]]
                    of_sets = self.problem.tie_equal_rows(rows[members], of_sets[0])[None]
                yield numbers, of_sets

        return sets.stacked(values())

    def loo_scores(self, model):
        """Leave-one-out scores of the training rows of ``model``, before any cut."""
        return self.held_out_scores(model, Sets.leave_one_out(len(model.rows)))

    def stratified_scores(self, model, loo_scores):
        """Scores of the training rows, left out in sets that keep the shares of the classes, before any cut."""
        return self._in_strata(model, loo_scores, self.held_out_scores)

    def _in_strata(self, model, loo_scores, read):
        """``read(model, sets)`` of sets that keep the shares of the classes, in the order of the rows."""
        assert self.codes is not None
        codes = self.codes[model.rows]
        sets = stratified_sets(codes, by_margin(loo_scores, codes))
        stacked = read(model, Sets.of(sets))
        values = np.empty_like(stacked)
        values[np.concatenate(sets)] = stacked  # the order of the rows does not matter
        return values

    def loo_outputs(self, parts, rule, method):
        """``method`` ("decision" or "proba") of every row by the model without it; rows of weight 0 by ``rule``."""
        solution = parts.whole
        if method == "decision":
            values = self.held_out_decisions(parts, Sets.leave_one_out(len(solution.rows)))
        else:
            values = np.concatenate([self._loo_proba(parts, row) for row in solution.rows])
        return self._of_all_rows(parts, rule, method, values)

    def _loo_proba(self, parts, row):
        part = parts.part(parts.rows[parts.rows != row])
        return self.rule(part).proba(part.fits(np.array([row])))

    def stratified_decisions(self, parts, rule):
        """Decisions of every row, left out in sets that keep the shares of the classes; of weight 0 by ``rule``."""
        values = self._in_strata(parts, self.loo_scores(parts.whole), self.held_out_decisions)
        return self._of_all_rows(parts, rule, "decision", values)

    def _of_all_rows(self, parts, rule, method, held_out):
        """Values of the rows of positive weight, and those by ``rule`` of the others."""
        solution = parts.whole
        out = np.empty((self.problem.n, *held_out.shape[1:]), held_out.dtype)
        out[solution.rows] = held_out
        idle = np.setdiff1d(np.arange(self.problem.n), solution.rows)
        if len(idle):
            out[idle] = getattr(rule, method)(solution.fits(idle))
        return out
