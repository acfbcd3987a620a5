"""The model without a held-out set te, from the P of all rows (the formulas are in ``heldout.solution``).

the P of the training part    P_tr,tr - P_tr,te P_te,te^-1 P_te,tr
its G                         G_tr - G_te P_te,te^-1 P_te,tr
"""

from functools import cached_property

import numpy as np

from foldless.heldout.held_out import HeldOut
from foldless.heldout.model import Model
from foldless.heldout.moments import ALL_COLUMNS, Moments, finished, nearly_gone
from foldless.linalg import NotPositiveDefiniteError, product, right_solve, solve
from foldless.precision.base import Explicit


class Part(Model):
    """The model without the positions ``removed`` of a full solution ``whole``, by P alone. Frozen.

    ``kept`` are the other positions, ``block`` is the block of P of the held-out rows, E their residuals.
    """

    def __init__(self, whole, removed):
        whole._check_rest(len(removed))
        kept = np.ones(len(whole.rows), bool)
        kept[removed] = False
        kept = np.flatnonzero(kept)
        choice = f"{whole.choice}; {len(removed)} of them left out by its blocks"
        fields = {"problem": whole.problem, "rows": whole.rows[kept], "kept": kept, "removed": removed}
        fields |= {"whole": whole, "block": whole.precision.held_out(removed), "choice": choice}
        if whole.problem.more_columns:
            whole.problem.span(fields["rows"])  # complains where these do not determine them
        vars(self).update(fields, E=fields["block"].residual(whole.A, whole.Y))

    def select_targets(self, columns):
        return super().select_targets(columns).changed(whole=self.whole.select_targets(columns))

    def solve_anew(self):
        return self.whole.solve_without(self.removed)

    def solve_without(self, members):
        """The solution without these positions as well, by a factorisation of its own."""
        return self.whole.solve_without(np.concatenate([self.removed, self.kept[members]]))

    def as_solution(self):
        """The training part as a solution of its own: parts of it can be left out in turn.

        From its own P; by a new factorisation where P is held through features.
        """
        anew = self.whole.precision.through_features
        return self.whole.solve_without(self.removed, None if anew else self.precision)

    @cached_property
    def Y(self):
        return self.whole.Y[self.kept]

    @property
    def target_scale(self):
        return self.whole.target_scale

    @cached_property
    def taken(self):
        """P_,te E_te at the rows of the training part."""
        P, E = self.whole.precision, self.E
        if E.shape[1] < len(self.removed) and "columns" not in vars(self):
            everywhere = np.zeros((P.n, E.shape[1]), E.dtype)
            everywhere[self.removed] = E
            return P.apply(everywhere)[self.kept]
        return product(self.columns, E)[self.kept]

    @cached_property
    def A(self):
        """Coefficients of the training part: A - P_,te E_te."""
        return self.whole.A[self.kept] - self.taken

    @property
    def _sizes_of_A(self):
        return np.abs(self.whole.A[self.kept]) + np.abs(self.taken)

    @cached_property
    def B(self):
        return self.whole.B - product(self.whole.precision.G[:, self.removed], self.E)

    @cached_property
    def confound_fit(self):
        return self.whole.confound_sums.without(self.removed)

    @cached_property
    def weights(self):
        taken = self.whole.precision.feature_weights(self.removed)
        return None if taken is None else self.whole.weights - taken @ self.E

    def _known_fits(self):
        """Held-out rows from E as well; rows of weight 0 are not part of P."""
        yield from super()._known_fits()
        Y, root = self.whole.Y[self.removed], self.whole.root[self.removed]
        yield self.whole.rows[self.removed], lambda out: (Y[out] - self.E[out]) / root[out]

    @cached_property
    def columns(self):
        return self.whole.precision.columns(self.removed)

    @cached_property
    def halves(self):
        """V, W (t, n) with V' W = P_,te P_te,te^-1 P_te, : what every Schur complement takes away.

        V = W = L^-1 P_te, by the Cholesky factor L of P_te,te where rounding leaves one.
        """
        try:
            V = right_solve(self.columns, self.block.factor).T
        except NotPositiveDefiniteError:  # a refit of low-rank features may have given E
            return self.columns.T, self.block.solve_general(self.columns.T)
        return V, V

    @cached_property
    def precision(self):
        """The P of the training part, as an array."""
        P, kept = self.whole.precision.explicit(), self.kept
        V, W = (half[:, kept] for half in self.halves)
        own = P.P[np.ix_(kept, kept)] - product(V, W, transpose_a=True)
        return Explicit(own, self.G(slice(None)), P.alpha)

    def G(self, columns):
        G, kept = self.whole.precision.G[columns], self.kept
        return G[:, kept] - solve(self.columns[self.removed].T, G[:, self.removed].T).T @ self.columns[kept].T

    def moments(self, targets=ALL_COLUMNS):
        """Class matrices of the training part without forming its A, unless nearly all of a class is left out."""
        N, present = targets.left_masses(self)
        found = Moments(N, targets.left_unexplained(self))
        gone = nearly_gone(found, targets.whole(self.whole), present)
        if gone.all():
            return self.solve_anew().moments(targets)
        found = finished(self, targets, found)
        return found.where(gone, self.solve_anew().moments(targets)) if gone.any() else found

    @property
    def residuals(self):
        """What held-out fits leave of the targets of the removed rows, (t, m) in their units."""
        E = self.E / self.whole.root[self.removed]
        if self.problem.n_confounds:
            E += self.problem.Q[self.whole.rows[self.removed]] @ self.confound_fit.D
        return E

    def loo(self):
        """Leave-one-out within the training part: A and the diagonal of its own P, without the rest of it."""
        members = np.arange(len(self.rows))[:, None]
        self._check_sets(members)
        if not self.block.keeps_digits:
            return self.solve_anew().loo()
        V, W = self.halves
        D = (self.whole.precision.diagonal() - np.einsum("ti,ti->i", V, W))[self.kept]
        return HeldOut.solve(self, members, self.A[members], D[:, None, None])
