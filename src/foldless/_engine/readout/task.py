"""A problem with its targets and readout: what an estimator learns, ready to be left out of.

:class:`Task` is the meeting point of the estimators (which build it), ``heldout`` (which gives fits of any training
part) and ``model_selection`` (which asks for decisions and probabilities of any training part). A trained
:class:`Rule` turns fits into them. What a rule needs besides fits comes from its own training part alone: class
matrices, and for the "loo" threshold and for calibration the leave-one-out scores *within* that training part, so
that cross-validation of a calibrated classifier stays exact.
"""

from dataclasses import dataclass, replace
from operator import itemgetter

import numpy as np

from foldless._engine.heldout.leave_out import leave_out
from foldless._engine.heldout.moments import Moments
from foldless._engine.heldout.problem import Problem
from foldless._engine.heldout.sets import Sets
from foldless._engine.heldout.training_parts import TrainingParts
from foldless._engine.linalg import concat, like, row_major, to_host
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
    moments: Moments | np.ndarray | None  # class matrices, or which classes have rows
    cut: float = 0.0
    calibrator: Calibrator | None = None

    def decision(self, fits):
        """Decision values: (t,) for two classes, else (t, c)."""
        return self.readout.scores(fits, self.moments) - self.cut

    def proba(self, fits):
        """Class probabilities (t, c)."""
        assert self.calibrator is not None
        return like(fits, self.calibrator.proba(to_host(self.readout.scores(fits, self.moments))))


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

    Values of a regression keep the precision of y, by which predictions are scored. Problems are solved for values
    rounded to their own precision, that of X.
    Rows with several labels have no codes: Y says which. ``calibration_weights`` (n,) are those of the rows in the
    calibration where class weights make others of them for the fit: these would change how frequent classes are.
    """

    problem: Problem
    Y: np.ndarray
    readout: Readout
    codes: np.ndarray | None = None
    n_classes: int = 0
    calibration: str | None = None
    calibration_weights: np.ndarray | None = None

    def with_confounds(self, C, *, in_score=False):
        """The task with the columns C (n, k) fitted beside the intercept."""
        return replace(self, problem=self.problem.with_confounds(C, in_score=in_score))

    def training_parts(self, *, probabilities=True, solution=None):
        """Models of any training part; ``probabilities=False`` when no calibration is wanted.

        If a ``solution`` on all rows is given, they are left out of it.
        """
        nested = self.readout.cuts or (probabilities and self.calibration is not None)
        return TrainingParts(self.problem, self.Y, nested=nested, solution=solution)

    def subset(self, rows):
        """The task of these rows alone."""
        codes = None if self.codes is None else self.codes[rows]
        weights = None if self.calibration_weights is None else self.calibration_weights[rows]
        return replace(
            self, problem=self.problem.subset(rows), Y=self.Y[rows], codes=codes, calibration_weights=weights
        )

    def labelled(self, order):
        """The task of row i with label and weight of row order[i]."""
        problem = self.problem.replace(root_w=self.problem.root_w[order])
        codes = None if self.codes is None else self.codes[order]
        weights = None if self.calibration_weights is None else self.calibration_weights[order]
        return replace(self, problem=problem, Y=self.Y[order], codes=codes, calibration_weights=weights)

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
            return to_host(self.problem.xp.any((decisions > 0) != (self.Y[rows] > 0), axis=-1))
        return chosen_codes(to_host(decisions)) != self.codes[rows]

    def rule(self, model, *, probabilities=True):
        """The trained readout of one model."""
        moments = self._moments(model)
        kind = self.calibration if probabilities else None
        cut, calibrator = 0.0, None
        cuts = self.readout.cuts and len(model.rows) > 1  # a row alone is not left out
        if cuts or kind is not None:
            assert self.codes is not None
            scores = to_host(self.loo_scores(model))
            codes = self.codes[model.rows]
            weights = np.square(to_host(model.root[:, 0]))
            cut = best_cut(scores, codes == 1, weights) if cuts else 0.0
            if kind is not None:
                if self.calibration_weights is not None:
                    weights = self.calibration_weights[model.rows]
                rows = codes, self.n_classes, weights, self.readout.expected
                calibrator = calibrated(kind, scores, lambda: self.stratified_scores(model, scores), *rows)
        return Rule(self.readout, moments, cut, calibrator)

    # -- held-out sets ---------------------------------------------------------------------------------------------

    def scores(self, held_out):
        """Scores (k, t, ...) of a batch of held-out sets, before any cut."""
        return self.readout.scores(held_out.fits, self._moments(held_out))

    def _moments(self, fitted):
        """What decisions take of the training parts besides fits, of a model or of a batch of held-out sets."""
        if self.readout.needs_moments:
            return fitted.moments()
        return fitted.present_classes() if self.readout.needs_presence else None

    def decide(self, held_out):
        """Decisions (k, t, ...) of a batch of held-out sets, by the rule of every training part, its cut included."""
        return self.outputs(held_out)[0]

    def outputs(self, held_out, *, probabilities=False):
        """(decisions, probabilities or None) of a batch of held-out sets, by the rule of every training part."""
        decisions, shares = [], []
        for number in range(len(held_out.fits)):
            rule, fits = self.rule(held_out.training(number), probabilities=probabilities), held_out.fits[number]
            decisions.append(rule.decision(fits))
            if probabilities:
                shares.append(rule.proba(fits))
        stack = self.problem.xp.stack
        return stack(decisions), stack(shares) if probabilities else None

    def held_out_decisions(self, fit, sets, *, cut=True):
        """Decisions of the rows of all sets, set by set, by the models without each; before any cut if not ``cut``.

        ``fit`` is anything that ``leave_out`` takes.
        """
        cut = cut and self.readout.cuts
        read = self.decide if cut else self.scores
        return self._stacked(fit.rows, sets, leave_out(fit, sets, nested=cut), read)

    def held_out_outputs(self, fit, sets):
        """(decisions, probabilities) of the same by the rule of each training part."""
        outputs = [
            (numbers, self.outputs(held_out, probabilities=True))
            for numbers, held_out in leave_out(fit, sets, nested=True)
        ]
        decisions, shares = (self._stacked(fit.rows, sets, outputs, itemgetter(place)) for place in (0, 1))
        return decisions, shares

    def _stacked(self, rows, sets, batches, read):
        """Values that ``read`` makes of all batches, set by set; equal rows of a set have equal ones."""

        def tied():
            for numbers, held_out in batches:
                values = read(held_out)
                if len(numbers) == 1:  # large sets: a product may round equal rows differently
                    values = self.problem.tie_equal_rows(rows[sets[numbers[0]]], values[0])[None]
                yield numbers, values

        return sets.stacked(tied())

    def loo_scores(self, fit):
        """Leave-one-out scores of the training rows, before any cut."""
        return self.held_out_decisions(fit, Sets.leave_one_out(len(fit.rows)), cut=False)

    def stratified_scores(self, fit, loo_scores, *, cut=False):
        """Scores of the training rows, left out in sets that keep the shares of the classes; before any cut or not."""
        assert self.codes is not None
        codes = self.codes[fit.rows]
        sets = stratified_sets(codes, by_margin(to_host(loo_scores), codes))
        stacked = self.held_out_decisions(fit, Sets.of(sets), cut=cut)
        return stacked[np.argsort(np.concatenate(sets))]

    # -- all rows, those of weight 0 included --------------------------------------------------------------------------

    def loo_outputs(self, parts, rule, method):
        """``method`` ("decision" or "proba") of every row by the model without it; rows of weight 0 by ``rule``."""
        sets = Sets.leave_one_out(len(parts.rows))
        if method == "decision":
            values = self.held_out_decisions(parts, sets)
        else:
            _, values = self.held_out_outputs(parts, sets)
        return self._of_all_rows(parts, rule, method, values)

    def stratified_decisions(self, parts, rule):
        """Decisions of every row, left out in sets that keep the shares of the classes; of weight 0 by ``rule``."""
        decisions = self.stratified_scores(parts, self.loo_scores(parts), cut=True)
        return self._of_all_rows(parts, rule, "decision", decisions)

    def _of_all_rows(self, parts, rule, method, held_out):
        """Held-out values of the rows of positive weight, and those by ``rule`` of the others."""
        if len(parts.rows) == self.problem.n:
            return held_out
        idle = np.setdiff1d(np.arange(self.problem.n), parts.rows)
        values = concat([held_out, getattr(rule, method)(parts.full_fit.fits(idle))])
        return values[np.argsort(np.concatenate([parts.rows, idle]))]
