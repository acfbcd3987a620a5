"""Held-out decisions of labelings whose splits go with the labels.

Labels and splits move together against the features. Row i of labeling j takes the place of row order_j[i], so that the
place r is taken by row place_j[r] = argsort(order_j)[r]. In terms of places all labelings have the labels and splits of
the truth, and each has its own P, whose rows and columns are in another order. For a held-out set te of t places:

    E_j = P[te_j, te_j]^-1 (P Y_j)[te_j],    te_j = place_j[te],    held-out fits  Y[te] - E_j

One product P Y for all labelings, as ever, and a stack of t x t systems for every split: b t^3 / 3 flops, where a loop
over labelings would take a millisecond for each. Class matrices follow as in ``permutation.labelings``.

Labelings whose fits or class matrices would be differences without digits (``heldout.moments``) are left out one by
one, and so are all where rows have weights or confounds.
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np
from sklearn.utils import gen_batches

from foldless._engine.heldout.moments import Moments, nearly_gone
from foldless._engine.linalg import put, solve_definite
from foldless._engine.permutation.labelings import ENTRIES, Labelings, truth_of
from foldless._engine.precision.digits import few_digits


class LeftOut(NamedTuple):
    """A held-out set of every labeling: places trained on, coefficients and residuals (b, width, t) of the others."""

    train: np.ndarray
    A: np.ndarray
    E: np.ndarray
    ill_conditioned: np.ndarray  # labelings (b,) without digits, which are left out one by one


class Moving(Labelings):
    """b labelings of one task with P applied, and for any split of the true labels the decisions of all."""

    def __init__(self, solver, task, orders, residuals=None):
        super().__init__(solver, task, truth_of(task, orders, residuals))
        self.places, problem = np.argsort(orders, axis=1), solver.problem
        self.stacks = not (problem.weighted or problem.more_columns)

    @cached_property
    def truth_of_places(self):
        """The labels of the places, (b, n) or (b, m, n): the same for all labelings, unless residuals move alone."""
        places = self.places if self.truth.ndim == 2 else self.places[:, None, :]
        return np.take_along_axis(self.truth, places, -1)

    def held_out(self, train, test):
        """Decisions (b, k, t) of all labelings at the places ``test`` by their models of the places ``train``."""
        removed = np.setdiff1d(np.arange(self.task.problem.n), train)
        if not self.stacks or not np.isin(test, removed).all():
            return np.concatenate([self._alone(j, train, test) for j in range(len(self))])
        left, rows = self._leave_out(train, self.places[:, removed]), self.places[:, test]
        F = self._fits(left, self.places[:, removed], np.searchsorted(removed, test))
        D = self.reader(left)(F.transpose(2, 0, 1).reshape(len(test), -1))
        numbers = self.solver.problem.equal.value
        if numbers is not None:  # equal rows have equal decisions
            first = (numbers[rows][:, :, None] == numbers[rows][:, None, :]).argmax(2)
            D = np.take_along_axis(D, first[:, None, :], 2)
        for j in np.flatnonzero(left.ill_conditioned):
            D[j] = self._alone(j, train, test)[0]
        return D

    def _alone(self, j, train, test):
        """The same for one labeling."""
        one, place = self.select([j]), self.places[j]
        return one.decisions(one.part(np.sort(place[train])), place[test])

    def _leave_out(self, train, rows):
        """All labelings without the rows (b, t)."""
        P, (b, t) = self.solver.precision, rows.shape
        A = np.take_along_axis(self.split(self.solution.A), rows[:, None, :], 2)
        E, ill_conditioned = np.empty_like(A), np.zeros(b, bool)
        for batch in gen_batches(b, max(1, ENTRIES // (t * t))):
            blocks = P.diagonal_blocks(rows[batch])
            few = P.ill_conditioned(blocks)
            ill_conditioned[batch] = few
            blocks = put(blocks, few, np.eye(t, dtype=blocks.dtype))
            E[batch] = solve_definite(blocks, A[batch].transpose(0, 2, 1)).transpose(0, 2, 1)
        return LeftOut(train, A, E, ill_conditioned)

    def _fits(self, left, rows, wanted):
        """Held-out fits (b, width, t) of the wanted ones of the rows; tiny ones, beside the targets, have no digits."""
        Y = np.take_along_axis(self.split(self.solution.Y), rows[:, None, :], 2)
        F, offset = (Y - left.E)[:, :, wanted], 0.0
        if self.solver.problem.intercept:
            correction = np.einsum("bt,bwt->bw", self.solver.precision.G[0][rows], left.E)
            offset = self.split(self.solution.B) - correction[:, :, None]
        few = few_digits(F - offset, self.split(self.solution.target_scale[None])).any((1, 2))
        left.ill_conditioned[few] = True
        return F

    def masses(self, model):
        """Masses (b, c) of the classes in a training part; of one without places the same for all labelings."""
        if not isinstance(model, LeftOut):
            return super().masses(model)
        counts = np.bincount(self.task.codes[model.train], minlength=self.task.n_classes)
        return np.broadcast_to(counts.astype(self.solution.Y.dtype), (len(self), len(counts)))

    def moments(self, model):
        """Class matrices (b, c, c) of the training parts; those that are differences without digits are marked."""
        N = self.mass_matrix(model)
        if not self.task.readout.needs_axes:
            return Moments(N, np.zeros_like(N))
        correction = self._full @ (model.E @ model.A.transpose(0, 2, 1)) @ self._full.T
        full = self.full_moments(self.solution)
        moments = Moments(N, full.U - self.solver.problem.alpha * correction)
        gone = nearly_gone(moments, full, moments.mass > 0)
        model.ill_conditioned[gone | moments.weak(self.solver.problem.intercept)] = True
        return moments
