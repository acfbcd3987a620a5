"""The model without a held-out set te, from the P of all rows (the formulas are in ``heldout.solution``).

    the P of the training part    P_tr,tr - P_tr,te P_te,te^-1 P_te,tr
    its G                         G_tr - G_te P_te,te^-1 P_te,tr

Each row owns one site of P, or two of J (``heldout.penalty``).
"""

from functools import cached_property

import numpy as np

from foldless.heldout.batch import Batch
from foldless.heldout.model import Model
from foldless.heldout.moments import ALL_COLUMNS, Moments, finished, nearly_gone
from foldless.linalg import NotPositiveDefiniteError, product, right_solve, solve
from foldless.precision.base import Explicit, SingularBlockError


class Part(Model):
    """The model without the positions ``removed`` of a full solution ``whole``, by P alone. Frozen.

    ``kept`` are the other positions, ``sites`` those of the held-out rows, ``block`` their block of P, E the residuals.
    """

    def __init__(self, whole, removed):
        whole._check_rest(len(removed))
        kept = np.ones(len(whole.rows), bool)
        kept[removed] = False
        kept = np.flatnonzero(kept)
        sites = whole.own_sites(removed)
        choice = f"{whole.choice}; {len(removed)} of them left out by its blocks"
        fields = {"problem": whole.problem, "rows": whole.rows[kept], "kept": kept, "removed": removed}
        fields |= {"whole": whole, "sites": sites, "block": whole.precision.held_out(sites), "choice": choice}
        if whole.problem.more_columns:
            whole.problem.span(fields["rows"])  # complains where these do not determine them
        try:
            vars(self).update(fields, E=fields["block"].residual(whole.site_A, whole.Y))
        except SingularBlockError:  # it counts sites
            raise SingularBlockError.of(removed, len(whole.rows)) from None

    def select_targets(self, columns):
        return super().select_targets(columns).changed(whole=self.whole.select_targets(columns))

    def solve_anew(self):
        return self.whole.solve_without(self.removed)

    def solve_without(self, members):
        """The solution without these positions as well, by a factorisation of its own."""
        return self.whole.solve_without(np.concatenate([self.removed, self.kept[members]]))

    def as_solution(self):
        """The training part as a solution of its own: parts of it can be left out in turn.

        From its own P; by a new factorisation where P is held through features, or J is held, which does not give P.
        """
        anew = self.whole.precision.through_features or self.problem.penalty.sites_per_row > 1
        return self.whole.solve_without(self.removed, None if anew else self.precision)

    @cached_property
    def Y(self):
        return self.whole.Y[self.kept]

    @property
    def target_scale(self):
        return self.whole.target_scale

    @cached_property
    def taken(self):
        """P_,te E_te at every site of the training part."""
        P, E = self.whole.precision, self.E
        if E.shape[1] < len(self.sites) and "columns" not in vars(self):
            everywhere = np.zeros((P.n, E.shape[1]), E.dtype)
            everywhere[self.sites] = E
            return P.apply(everywhere)[self.kept_sites]
        return product(self.columns, E)[self.kept_sites]

    @cached_property
    def site_A(self):
        """Coefficients at every site of the training part: A - P_,te E_te."""
        return self.whole.site_A[self.kept_sites] - self.taken

    @cached_property
    def joint_A(self):
        """A of rows and basis functions where P gives the latter more digits than K' A has, else ``site_A``."""
        of_rows = self.problem.penalty.sites_per_row == 1
        columns = self.whole.own_precision.function_weights(self.removed) if of_rows else None
        if columns is None:
            return self.site_A
        return np.vstack([self.A, self.whole.joint_A[len(self.whole.rows) :] - columns @ self.E])

    @property
    def _site_sizes(self):
        return np.abs(self.whole.site_A[self.kept_sites]) + np.abs(self.taken)

    @property
    def A(self):
        return self.site_A[: len(self.rows)]

    @cached_property
    def B(self):
        return self.whole.B - product(self.whole.precision.G[:, self.sites], self.E)

    @cached_property
    def confound_fit(self):
        return self.whole.confound_sums.without(self.removed)

    @cached_property
    def weights(self):
        taken = self.whole.precision.feature_weights(self.sites)
        return None if taken is None else self.whole.weights - taken @ self.E

    def _known_fits(self):
        """Held-out rows from E as well; rows of weight 0 are not part of P."""
        yield from super()._known_fits()
        Y, root = self.whole.Y[self.removed], self.whole.root[self.removed]
        yield self.whole.rows[self.removed], lambda out: (Y[out] - self.E[out]) / root[out]

    @cached_property
    def kept_sites(self):
        return self.whole.own_sites(self.kept)

    @cached_property
    def columns(self):
        return self.whole.precision.columns(self.sites)

    @cached_property
    def halves(self):
        """V, W (t, sites) with V' W = P_,te P_te,te^-1 P_te, : what every Schur complement takes away.

        V = W = L^-1 P_te, by the Cholesky factor L of P_te,te where there is one; J has none.
        """
        if self.definite:
            try:
                V = right_solve(self.columns, self.block.factor).T
                return V, V
            except NotPositiveDefiniteError:  # rounding; a refit of low-rank features may have given E
                pass
        return self.columns.T, self.block.solve_general(self.columns.T)

    @cached_property
    def precision(self):
        """The P (or J) of the training part, as an array."""
        P, kept = self.whole.precision.explicit(), self.kept_sites
        V, W = (half[:, kept] for half in self.halves)
        own = P.P[np.ix_(kept, kept)] - product(V, W, transpose_a=True)
        return Explicit(own, self.G(slice(None)), P.alpha, definite=P.definite)

    @property
    def definite(self):
        return self.whole.definite  # its own P need not be formed

    def G(self, columns):
        G, kept = self.whole.precision.G[columns], self.kept_sites
        return G[:, kept] - solve(self.columns[self.sites].T, G[:, self.sites].T).T @ self.columns[kept].T

    def moments(self, targets=ALL_COLUMNS):
        """Class matrices of the training part without forming its A, unless nearly all of a class is left out."""
        N, present = targets.left_masses(self)
        found = Moments(N, targets.left_unexplained(self))
        gone = nearly_gone(found, targets.whole(self.whole), present)
        if gone.all():
            return self.solve_anew().moments(targets)
        found = finished(self, targets, found)
        return found.where(gone, self.solve_anew().moments(targets)) if gone.any() else found

    def loo(self):
        """Leave-one-out within the training part: A and the diagonal (blocks) of its own P, without the rest of it."""
        members = np.arange(len(self.rows))[:, None]
        self._check_sets(members)
        if not self.block.keeps_digits:
            return self.solve_anew().loo()
        sites = self.whole.own_sites(self.kept[members])  # (n, 1 or 2)
        V, W = self.halves
        if sites.shape[1] == 1:
            D = (self.whole.precision.diagonal() - np.einsum("ti,ti->i", V, W))[sites][:, :, None]
        else:
            D = self.whole.precision.diagonal_blocks(sites) - V.T[sites] @ W.T[sites].transpose(0, 2, 1)
        return Batch.solve(self, members, self.site_A[self.own_sites(members)], D)
