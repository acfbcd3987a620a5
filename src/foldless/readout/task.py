"""A problem with its targets and readout: what an estimator learns, ready to be left out of.

:class:`Task` is the meeting point of the estimators (which build it), ``heldout`` (which gives fits of any training
part) and ``model_selection`` (which asks for decisions and probabilities of any training part). A trained
:class:`Rule` turns fits into them. What a rule needs besides fits comes from its own training part alone: class
matrices, and for the "loo" threshold and for calibration the leave-one-out scores *within* that training part, so
that cross-validation of a calibrated classifier stays exact.
"""

from dataclasses import dataclass, replace

import numpy as np

from foldless.heldout.moments import Moments
from foldless.heldout.problem import Problem
from foldless.heldout.solution import TrainingParts
from foldless.readout.calibration import Calibrator, fit_calibration
from foldless.readout.codings import Readout, chosen_codes, plus_minus
from foldless.readout.ranking import best_cut


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


@dataclass(frozen=True)
class Task:
    """Problem, targets Y (n, m), readout; for classifiers the class codes (n,) and the kind of calibration.

    Rows with several labels have no codes: Y says which.
    """

    problem: Problem
    Y: np.ndarray
    readout: Readout
    codes: np.ndarray | None = None
    n_classes: int = 0
    calibration: str | None = None

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
        return replace(self, problem=self.problem.subset(rows), Y=self.Y[rows], codes=codes)

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
            scores, codes, weights = self.loo_scores(model), self.codes[model.rows], np.square(model.root[:, 0])
            cut = best_cut(scores, codes == 1, weights) if self.readout.cuts else 0.0
            if kind is not None:
                calibrator = fit_calibration(kind, scores, codes, self.n_classes, weights, self.readout.expected)
        return Rule(self.readout, moments, cut, calibrator)

    def loo_scores(self, model):
        """Leave-one-out scores of the training rows of ``model``, before any cut."""
        loo = model.loo()
        moments = loo.moments() if self.readout.needs_moments else None
        return self.readout.scores(loo.fits, moments)[:, 0]

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
        out = np.empty((self.problem.n, *held_out.shape[1:]), held_out.dtype)
        out[whole.rows] = held_out
        idle = np.setdiff1d(np.arange(self.problem.n), whole.rows)
        if len(idle):
            out[idle] = getattr(rule, method)(whole.fits(idle))
        return out
