"""The fit on some rows, and the P from which all its held-out fits follow.

    A = P Y,    B = G Y                         the fit
    E_te = P_te,te^-1 A_te                      held-out residuals of any set te (``heldout.part``)
    f(x) - c(x)_te' E_te                        the model without te at a new x,   c(x) = P s(x) + G' q(x)

All exact. Leave-one-out needs the diagonal of P. Each row owns one site of P, or two of J (``heldout.penalty``); the
formulas do not change. Everything here is whitened by the weights (``heldout.problem``).
"""

from functools import cached_property

import numpy as np

from foldless.heldout.batch import Batch
from foldless.heldout.model import Model
from foldless.heldout.moments import takes_nearly_all
from foldless.heldout.part import Part
from foldless.heldout.sites import Sites


class Solution(Model):
    """The fit of targets Y (n, m) on ``rows`` of a problem; P may be given. Frozen."""

    sites: Sites

    def __init__(self, problem, rows, Y, precision=None):
        self._set_targets(Sites(problem, rows, precision), Y)

    def _set_targets(self, sites, Y):
        """Solve for targets in their own units."""
        problem, P = sites.problem, sites.own
        Y = np.ascontiguousarray(problem.root(sites.rows) * Y)
        rest, B = problem.beyond_unpenalised(sites.rows, Y)
        A = P.apply(rest)
        B = B + P.G @ rest
        if not (np.isfinite(A).all() and np.isfinite(B).all()):
            raise ValueError(
                f"the fit on {len(sites.rows)} rows overflows: the kernel matrix of {problem.kernel!r} holds values too"
                " large for this precision. Rescale X (for instance with sklearn.preprocessing.StandardScaler)."
            )
        return self._set(sites, Y, A, B)

    def _set(self, sites, Y, A, B, joint_A=None):
        super().__init__(problem=sites.problem, sites=sites, rows=sites.rows, Y=Y, A=A, B=B, choice=sites.choice)
        if joint_A is not None:
            vars(self)["joint_A"] = joint_A
        return self

    @classmethod
    def of(cls, sites, Y):
        """The solution of targets Y (n, m) whose P is that of ``sites``."""
        return cls.__new__(cls)._set_targets(sites, Y)

    @classmethod
    def known(cls, problem, rows, Y, joint, joint_A, B):
        """The solution of whitened targets Y whose ``joint`` matrix, coefficients and B are known."""
        n = len(rows)
        own = joint if joint.n == n else joint.at_sites(slice(n))
        return cls.__new__(cls)._set(Sites(problem, rows, own, joint=joint), Y, joint_A[:n], B, joint_A)

    def _on(self, sites):
        """The same solution with other sites, which differ in form alone."""
        if sites is self.sites:
            return self
        return type(self).__new__(type(self))._set(sites, self.Y, self.A, self.B, vars(self).get("joint_A"))

    def on(self, problem):
        """The same solution in a problem that differs in rows of weight 0."""
        known = {name: vars(self.sites).get(name) for name in ("joint", "precision")}
        return self._on(Sites(problem, problem.active, self.sites.own, **known, choice=self.choice))

    def prepared(self):
        """The same solution with P in the form that serves many held-out sets."""
        return self._on(self.sites.prepared())

    def explicit(self):
        """The same solution with P, or J, as an array: the form that serves very many small sets."""
        return self._on(self.sites.with_precision(self.precision.explicit()))

    def select_targets(self, columns):
        """The same fit for some of the targets."""
        joint_A = vars(self).get("joint_A")
        joint_A = None if joint_A is None else joint_A[:, columns]
        Y, A, B = self.Y[:, columns], self.A[:, columns], self.B[:, columns]
        return type(self).__new__(type(self))._set(self.sites, Y, A, B, joint_A)

    def solve(self, rows, Y, precision=None):
        """The solution on other rows of the problem with targets Y; P may be given."""
        return Solution(self.problem, rows, Y, precision)

    # -- P ---------------------------------------------------------------------------------------------------------

    @property
    def own_precision(self):
        """P."""
        return self.sites.own

    @property
    def precision(self):
        """P, or J where rows take their basis functions along."""
        return self.sites.precision

    @property
    def joint(self):
        """J of rows and basis functions for the coefficient penalty, else P."""
        return self.sites.joint

    @property
    def span(self):
        """Orthonormal basis of all unpenalised columns of the rows, whitened."""
        return self.sites.span

    @property
    def current(self):
        """Whether P is still that of these rows: a growing one may have learnt or forgotten some since."""
        return self.own_precision.current

    def G(self, columns):
        """Rows of G that give the coefficients of these unpenalised columns."""
        return self.precision.G[columns]

    @cached_property
    def weights(self):  # type: ignore[override]
        """Weights of the explicit features where P is held through them, else None."""
        columns = self.own_precision.feature_weights(slice(None))
        return None if columns is None else columns @ self.problem.beyond_unpenalised(self.rows, self.Y)[0]

    @cached_property
    def joint_A(self):
        """A of rows and basis functions, [A; K' A], for the coefficient penalty, else A."""
        return self.problem.penalty.joint_A(self.problem, self.rows, self.A)

    @property
    def site_A(self):  # type: ignore[override]
        """A at every site."""
        return self.joint_A if self.problem.penalty.sites_per_row > 1 else self.A

    @property
    def _beta(self):
        own = self.problem.penalty.joint_sites_per_row == 1
        return super()._beta if own else self.joint_A[len(self.rows) :]

    # -- what is left out ------------------------------------------------------------------------------------------

    def without(self, removed):
        """The model without these positions: by P, or solved by itself where nearly nothing of a target is left."""
        if not len(removed):
            return self
        return self.solve_without(removed) if takes_nearly_all(self, removed) else Part(self, removed)

    def batch(self, members):
        """Held-out fits of the sets ``members`` (k, t), positions in ``rows``, each left out alone."""
        self._check_sets(members)
        sites = self.sites.of(members)
        blocks = self.precision.diagonal_blocks(sites)
        return Batch.solve(self, members, self.site_A[sites], blocks, lost=self.own_precision.lost(blocks))

    def loo(self):
        """Leave-one-out: n sets of one row."""
        members = np.arange(len(self.rows))[:, None]
        if self.problem.penalty.sites_per_row > 1:
            return self.batch(members)
        self._check_sets(members)
        D = self.precision.diagonal()[:, None, None]
        E = self.precision.loo_residual(self.A, self.Y)[:, None, :]
        return Batch(self, members, self.Y[:, None, :], self.A[:, None, :], D, E)

    def loo_at(self, X, Q):
        """Fits of all n leave-one-out models at new rows X with unpenalised columns Q, shape (n_new, n, m)."""
        P, problem, K_new = self.own_precision, self.problem, None
        if self.weights is not None:
            Phi = problem.features_new(X)
            f, Ps = Phi @ self.weights, P.feature_weights(slice(None)).T @ Phi.T
        else:
            K_new = problem.gram_new(X, problem.basis_rows(self.rows))
            s = problem.penalty.representers(problem, self.rows, K_new)
            f, Ps = s.T @ self.A, P.apply(s)
        c = Ps + P.G.T @ Q.T
        F = (f + Q @ self.B)[:, None, :]
        E = self.loo().E
        for site, part in enumerate(problem.penalty.site_representers(problem, self.rows, c, K_new)):
            F = F - part.T[:, :, None] * E[:, site]
        return F


def loo_path(problem, rows, Y, alphas, path=None):
    """Leave-one-out residuals for all alphas in the units of Y, shape (len(alphas), n, m), from one decomposition.

    ``path`` is ``problem.path(rows)`` where that is at hand.
    """
    path = problem.path(rows) if path is None else path
    if not path.serves_every_alpha:
        solutions = (Solution(problem.replace(alpha=alpha), rows, Y, path.with_alpha(alpha)) for alpha in alphas)
        return np.stack([each.loo().residuals[:, 0] for each in solutions])
    root = problem.root(rows)
    Y = np.ascontiguousarray(problem.beyond_unpenalised(rows, root * Y)[0])
    return problem.penalty.loo_path(problem, rows, Y, alphas, path) / root
