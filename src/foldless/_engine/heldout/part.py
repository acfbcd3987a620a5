"""The model without a held-out set te, from the P of all rows (the formulas are in ``heldout.solution``).

the P of the training part    P_tr,tr - P_tr,te P_te,te^-1 P_te,tr
its G                         G_tr - G_te P_te,te^-1 P_te,tr
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from foldless._engine.heldout.held_out import HeldOut
from foldless._engine.heldout.model import Model
from foldless._engine.heldout.moments import ALL_COLUMNS, Moments, finished, nearly_gone
from foldless._engine.heldout.plan import BLOCKS, LeaveOutPlan, plan_of_fit
from foldless._engine.linalg import product, put, solve, take, take_block, zeros
from foldless._engine.precision.base import Explicit, HeldOutBlock


@dataclass(frozen=True, eq=False)
class TrainingPart(Model):
    """The model without the positions ``removed`` of a full ``solution``, by P alone.

    ``rows`` are those of the other positions ``kept``, ``block`` is the block of P of the held-out rows, E (t, m) their
    residuals.
    """

    solution: Any
    removed: np.ndarray
    kept: np.ndarray
    rows: np.ndarray
    block: HeldOutBlock
    E: np.ndarray
    problem: Any

    @classmethod
    def of(cls, solution, removed):
        """The model without these positions."""
        solution.check_rest(len(removed))
        is_kept = np.ones(len(solution.rows), bool)
        is_kept[removed] = False
        kept = np.flatnonzero(is_kept)
        rows = solution.rows[kept]
        problem = solution.problem
        if problem.more_columns:
            problem.basis_of_Q(rows)  # complains where these do not determine them
        block = solution.precision.held_out(removed)
        return cls(solution, removed, kept, rows, block, block.residual(solution.A, solution.Y), problem)

    @property
    def choice(self):
        return f"{self.solution.choice}; {len(self.removed)} of them left out by its blocks"

    def select_targets(self, columns):
        solution = self.solution.select_targets(columns)
        E = take(self.E, columns, 1)
        return TrainingPart(solution, self.removed, self.kept, self.rows, self.block, E, self.problem)

    def solve_anew(self):
        return self.solution.solve_without(self.removed)

    def solve_without(self, members):
        return self.solution.solve_without(np.concatenate([self.removed, self.kept[members]]))

    def as_solution(self):
        """The training part as a solution of its own: parts of it can be left out in turn.

        From its own P; by a new factorisation where P is held through features.
        """
        anew = self.solution.precision.through_features
        return self.solution.solve_without(self.removed, None if anew else self.precision)

    @cached_property
    def Y(self):
        return self.solution.Y[self.kept]

    @property
    def target_scale(self):
        return self.solution.target_scale

    @cached_property
    def correction(self):
        """P_,te E_te at the rows of the training part: what A loses."""
        P, E = self.solution.precision, self.E
        if E.shape[1] < len(self.removed) and not self.block.has_columns:
            everywhere = zeros(E, (P.n, E.shape[1]))
            return P.apply(put(everywhere, self.removed, E))[self.kept]
        return product(self.block.columns, E)[self.kept]

    @cached_property
    def A(self):
        """Coefficients of the training part: A - P_,te E_te."""
        return self.solution.A[self.kept] - self.correction

    @property
    def _sizes_of_A(self):
        return abs(self.solution.A[self.kept]) + abs(self.correction)

    @cached_property
    def B(self):
        return self.solution.B - product(take(self.solution.precision.G, self.removed, 1), self.E)

    @cached_property
    def confound_fit(self):
        return self.solution.confound_sums.without(self.removed)

    @cached_property
    def weights(self):
        columns = self.solution.precision.feature_weights(self.removed)
        return None if columns is None else self.solution.weights - columns @ self.E

    def _fits_from_targets(self):
        """Held-out rows from E as well; rows of weight 0 are not part of P."""
        yield from super()._fits_from_targets()
        Y, root = self.solution.Y[self.removed], self.solution.root[self.removed]
        yield self.solution.rows[self.removed], lambda places: (Y[places] - self.E[places]) / root[places]

    @cached_property
    def precision(self):
        """The P of the training part, as an array."""
        P = self.solution.precision.explicit()
        kept = self.kept
        V, W = (take(half, kept, 1) for half in self.block.halves)
        P_kept = take_block(P.P, kept, kept) - product(V, W, transpose_a=True)
        return Explicit(P_kept, self.G(slice(None)), P.alpha)

    def G(self, columns):
        """Rows of G that give the coefficients of these unpenalised columns."""
        G = self.solution.precision.G[columns]
        P_te = self.block.columns
        left = solve(P_te[self.removed].T, take(G, self.removed, 1).T).T
        return take(G, self.kept, 1) - left @ P_te[self.kept].T

    def moments(self, groups=ALL_COLUMNS):
        """Class matrices of the training part without forming its A, unless nearly all of a class is left out."""
        N, present = groups.left_masses(self)
        difference = Moments(N, groups.left_unexplained(self))
        gone = nearly_gone(difference, groups.full_moments(self.solution), present)
        xp = self.problem.xp
        if xp.all(gone):
            return self.solve_anew().moments(groups)
        moments = finished(self, groups, difference)
        return moments.where(gone, self.solve_anew().moments(groups)) if xp.any(gone) else moments

    def held_out_residuals(self, rows, targets):
        """By E, as differences would lose digits; ``rows`` are those that were removed."""
        E = self.E / self.solution.root[self.removed]
        if self.problem.n_confounds:
            E = E + self.problem.Q[rows] @ self.confound_fit.D
        return E

    def plan_for(self, sets, *, nested=False):
        """The plan for sets of positions in ``rows``: single rows follow from the P of all rows."""
        n = len(self.rows)
        if sets.are_all_rows_of(n):
            return LeaveOutPlan(sets.counts, BLOCKS, batch_sizes={1: n})
        return plan_of_fit(type(self.solution.precision), n, sets.counts, self.Y.shape[1], nested=True)

    def prepared(self, plan):
        """Itself for single rows; for others the solution by P of the training part, which is an array."""
        return self if plan.form == BLOCKS else self.as_solution()

    def held_out(self, members):
        """Leave-one-out, the only batch there is."""
        return self.loo()

    def loo(self):
        """Leave-one-out within the training part: A and the diagonal of its own P, without the rest of it."""
        members = np.arange(len(self.rows))[:, None]
        self.check_sets(members)
        if not self.block.keeps_digits:
            return self.solve_anew().loo()
        D = self.block.remaining_diagonal(self.solution.precision.diagonal())[self.kept]
        return HeldOut.solve(self, members, self.A[members], D[:, None, None], self.carries_nearly_all(members))
