"""A problem with its targets and readout: what an estimator learns, ready to be left out of.

:class:`Task` is the meeting point of the estimators (which build it), ``heldout`` (which gives fits of any training
part) and ``model_selection`` (which asks for decisions and probabilities of any training part). A trained
:class:`Rule` turns fits into them. What a rule needs besides fits comes from its own training part alone: class
matrices, and for the "loo" threshold and for calibration the leave-one-out scores *within* that training part, so
that cross-validation of a calibrated classifier stays exact.
"""

from dataclasses import dataclass, replace

import numpy as np
from sklearn.utils import gen_batches

from foldless.heldout.batch import MAX_ENTRIES, stacked
from foldless.heldout.moments import Moments
from foldless.heldout.part import Part
from foldless.heldout.problem import Problem
from foldless.heldout.solution import TrainingParts
from foldless.precision.base import SingularBlockError
from foldless.readout.calibration import Calibrator, fit_calibration
from foldless.readout.codings import Readout, chosen_codes, plus_minus
from foldless.readout.ranking import best_cut
from foldless.readout.strata import AT_LEAST, by_margin, stratified_sets

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
        codes, counted = (None if each is None else each[rows] for each in (self.codes, self.counted))
        return replace(self, problem=self.problem.subset(rows), Y=self.Y[rows], codes=codes, counted=counted)

    def labelled(self, order):
        """The task of row i with label and weight of row order[i]."""
        problem = self.problem.replace(root_w=self.problem.root_w[order])
        codes, counted = (None if each is None else each[order] for each in (self.codes, self.counted))
        return replace(self, problem=problem, Y=self.Y[order], codes=codes, counted=counted)

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
                known = codes, self.n_classes, counted, self.readout.expected
                calibrator = calibrated(kind, scores, lambda: self.stratified_scores(model, scores), *known)
        return Rule(self.readout, moments, cut, calibrator)

    def loo_scores(self, model):
        """Leave-one-out scores of the training rows of ``model``, before any cut."""
        loo = model.loo()
        moments = loo.moments() if self.readout.needs_moments else None
        return self.readout.scores(loo.fits, moments)[:, 0]

    def held_out_scores(self, model, sets):
        """Scores of the rows of each of these sets of positions by the model without them, stacked, before any cut."""
        readout, problem = self.readout, self.problem

        def of_batch(batch):
            return readout.scores(batch.fits, batch.moments() if readout.needs_moments else None)

        def of_set(members):
            part, rows = model.without(members), model.rows[members]
            moments = part.moments() if readout.needs_moments else None
            return problem.tie_equal_rows(rows, readout.scores(part.fits(rows), moments))

        return stacked(model, sets, of_batch, of_set)

    def held_out_decisions(self, whole, sets):
        """Decisions (k, t), or (k, t, c), of the rows of k sets (k, t) of positions by the model without each.

        Many sets of one size; small ones, or such that overlap, are worth P as an array.
        """
        if self.readout.cuts:
            return np.stack([self._decisions_without(whole, members) for members in sets])
        found, size = [], sets.shape[1] ** 2 * self.Y.shape[1]
        whole = whole if sets.shape[1] == 1 or whole.precision.through_features else whole.explicit()
        for some in gen_batches(len(sets), max(1, MAX_ENTRIES // size)):
            batch = whole.batch(sets[some])
            found.append(self.readout.scores(batch.fits, batch.moments() if self.readout.needs_moments else None))
        return np.concatenate(found)

    def _decisions_without(self, whole, members):
        part = whole.without(members)
        return self.rule(part, probabilities=False).decision(part.fits(whole.rows[members]))

    def stratified_scores(self, model, loo_scores):
        """Scores of the training rows, left out in sets that keep the shares of the classes, before any cut."""
        sets = self._strata(model, loo_scores)
        model = model.as_solution() if isinstance(model, Part) else model
        found = self.held_out_scores(model, sets)
        scores = np.empty_like(found)
        scores[np.concatenate(sets)] = found
        return scores

    def _strata(self, model, loo_scores):
        """Sets of positions; the order of the rows does not matter."""
        assert self.codes is not None
        codes = self.codes[model.rows]
        return stratified_sets(codes, by_margin(loo_scores, codes))

    def loo_outputs(self, parts, rule, method):
        """``method`` ("decision" or "proba") of every row by the model without it; rows of weight 0 by ``rule``.

        All at once where a rule needs no leave-one-out scores of its own, row by row otherwise.
        """
        whole = parts.whole

        def left_out(row):
            part = parts.part(whole.rows[whole.rows != row])
            rule = self.rule(part, probabilities=method == "proba")
            return getattr(rule, method)(part.fits(np.array([row])))

        if method == "decision" and not self.readout.cuts:
            held_out = self.loo_scores(whole)
        else:
            held_out = np.concatenate([left_out(row) for row in whole.rows])
        return self._of_all_rows(parts, rule, method, held_out)

    def stratified_decisions(self, parts, rule):
        """Decisions of every row, left out in sets that keep the shares of the classes; of weight 0 by ``rule``."""
        whole = parts.whole
        scores = self.loo_scores(whole)
        if not self.readout.cuts:
            return self._of_all_rows(parts, rule, "decision", self.stratified_scores(whole, scores))
        held_out = np.empty_like(scores)
        for members in self._strata(whole, scores):
            part = parts.part(np.delete(whole.rows, members))
            held_out[members] = self.rule(part, probabilities=False).decision(part.fits(whole.rows[members]))
        return self._of_all_rows(parts, rule, "decision", held_out)

    def _of_all_rows(self, parts, rule, method, held_out):
        """Values of the rows of positive weight, and those by ``rule`` of the others."""
        whole = parts.whole
        out = np.empty((self.problem.n, *held_out.shape[1:]), held_out.dtype)
        out[whole.rows] = held_out
        idle = np.setdiff1d(np.arange(self.problem.n), whole.rows)
        if len(idle):
            out[idle] = getattr(rule, method)(whole.fits(idle))
        return out
