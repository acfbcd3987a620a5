"""P of the rows of a fit, and one held-out set of them as P sees it: all that does not depend on targets.

For a held-out set te with training part tr:

    the P of the training part    P_tr,tr - P_tr,te P_te,te^-1 P_te,tr
    its G                         G_tr - G_te P_te,te^-1 P_te,tr

Each row owns one site of P, or two of J (``heldout.penalty``).
"""

from functools import cached_property

import numpy as np

from foldless.heldout.penalty import sites_of
from foldless.linalg.numpy import NotPositiveDefiniteError, product, right_solve, solve
from foldless.precision.base import Explicit, Precision


class Sites:
    """The rows of a fit with their P, and J where they take basis functions along; many targets share it.

    ``own`` is P, ``joint`` the matrix from which rows are forgotten and ``precision`` the one from which they are held
    out: P or J each; what is at hand may be given.
    """

    def __init__(self, problem, rows, own=None, *, joint=None, precision=None, choice=None):
        self.problem = problem
        self.rows = rows
        self.own: Precision = problem.precision(rows) if own is None else own
        self.choice = (joint or self.own).choice if choice is None else choice
        known = {"joint": joint, "precision": precision}
        vars(self).update({name: P for name, P in known.items() if P is not None})

    @cached_property
    def joint(self) -> Precision:
        """J of rows and basis functions for the coefficient penalty, else P."""
        return self.problem.penalty.joint(self.problem, self.rows, self.own)

    @cached_property
    def precision(self) -> Precision:
        """P, or J where rows that are held out take their basis functions along."""
        return self.joint if self.problem.penalty.sites_per_row > 1 else self.own

    def of(self, members):
        """Sites that belong to these positions among the rows; the last axis doubles for J."""
        return sites_of(self.problem.penalty.sites_per_row, members, len(self.rows))

    def with_precision(self, precision):
        """The same with P, or J, in another holder."""
        if precision is self.precision:
            return self
        joint = vars(self).get("joint")
        return Sites(self.problem, self.rows, self.own, joint=joint, precision=precision, choice=self.choice)


class HeldOutSet:
    """The positions ``removed`` left out of the rows of a fit."""

    def __init__(self, fit: Sites, removed):
        self.fit = fit
        self.removed = removed
        kept = np.ones(len(fit.rows), bool)
        kept[removed] = False
        self.kept = np.flatnonzero(kept)
        self.rows = fit.rows[self.kept]
        self.sites = fit.of(removed)
        self.block = fit.precision.held_out(self.sites)

    @cached_property
    def kept_sites(self):
        """Sites of the training part."""
        return self.fit.of(self.kept)

    @cached_property
    def columns(self):
        """P[:, te]."""
        return self.fit.precision.columns(self.sites)

    def spread(self, E):
        """P_,te E at the sites of the training part."""
        if E.shape[1] < len(self.sites) and "columns" not in vars(self):
            everywhere = np.zeros((self.fit.precision.n, E.shape[1]), E.dtype)
            everywhere[self.sites] = E
            return self.fit.precision.apply(everywhere)[self.kept_sites]
        return product(self.columns, E)[self.kept_sites]

    @cached_property
    def halves(self):
        """V, W (t, sites) with V' W = P_,te P_te,te^-1 P_te, : what every Schur complement takes away.

        V = W = L^-1 P_te, by the Cholesky factor L of P_te,te where there is one; J has none.
        """
        if self.fit.precision.definite:
            try:
                V = right_solve(self.columns, self.block.factor).T
                return V, V
            except NotPositiveDefiniteError:  # rounding; a refit of low-rank features may have given E
                pass
        return self.columns.T, self.block.solve_general(self.columns.T)

    @cached_property
    def precision(self) -> Precision:
        """The P (or J) of the training part, as an array."""
        P, kept = self.fit.precision.explicit(), self.kept_sites
        V, W = (half[:, kept] for half in self.halves)
        own = P.P[np.ix_(kept, kept)] - product(V, W, transpose_a=True)
        return Explicit(own, self.G(slice(None)), P.alpha, definite=P.definite)

    def G(self, columns):
        """Rows of the G of the training part, for these unpenalised columns."""
        G, kept = self.fit.precision.G[columns], self.kept_sites
        return G[:, kept] - solve(self.columns[self.sites].T, G[:, self.sites].T).T @ self.columns[kept].T

    def inner_blocks(self, members):
        """Diagonal blocks of the P (or J) of the training part for every row of it, without the rest of it.

        ``members`` (k, 1) are positions in the training part.
        """
        sites = self.fit.of(self.kept[members])  # (k, 1 or 2)
        V, W = self.halves
        if sites.shape[1] == 1:
            taken = np.einsum("ti,ti->i", V, W)[sites][:, :, None]
        else:
            taken = V.T[sites] @ W.T[sites].transpose(0, 2, 1)
        return self.fit.precision.diagonal_blocks(sites) - taken
