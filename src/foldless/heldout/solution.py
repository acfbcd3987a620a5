"""The fit on some rows, and the model without any held-out set of them, from one P.

For Y (n x m) and a held-out set te with training part tr (Treder 2019, eq. 1 and 4; Cawley & Talbot 2003, appendix A,
is the case of one row):

    the fit           A = P Y,    B = G Y
    residuals         E_te = P_te,te^-1 A_te            held-out fits  Y_te - E_te
    the model         A_tr - P_tr,te E_te               its offset     B - G_te E_te
    class matrices    N = Y_tr' Y_tr,  U = alpha ( Y_tr' A_tr - (A_te - P_te,te Y_te)' E_te ) = alpha Y_tr' A_(tr)
    at a new x        f(x) - c(x)_te' E_te,   c(x) = P s(x) + G' q(x)

With confounds among the columns Q, fits leave their part q' B out, with B of the training part, and the class matrices
R and V (``heldout.moments``) are those of the training part as well.

All exact. Leave-one-out needs the diagonal of P, a fold of t rows n t^2 + t^3/3. Each row owns one site of P, or two of
J (``heldout.penalty``); the formulas do not change. Everything here is whitened by the weights (``heldout.problem``).
"""

from functools import cached_property

import numpy as np

from foldless.heldout.batch import Batch
from foldless.heldout.model import Model
from foldless.heldout.moments import EVERYTHING, Moments, finished, nearly_gone, own_moments, takes_nearly_all
from foldless.heldout.sites import HeldOutSet, Sites
from foldless.linalg.numpy import product
from foldless.precision.base import SingularBlockError


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
        return Solution.__new__(Solution)._set_targets(sites, Y)

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
        return Solution.__new__(Solution)._set(sites, self.Y, self.A, self.B, vars(self).get("joint_A"))

    def on(self, problem):
        """The same solution in a problem that differs in rows of weight 0."""
        known = {name: vars(self.sites).get(name) for name in ("joint", "precision")}
        return self._on(Sites(problem, problem.active, self.sites.own, **known, choice=self.choice))

    def prepared(self):
        """The same solution with P in the form that serves many held-out sets."""
        return self._on(self.sites.with_precision(self.precision.prepare_blocks()))

    def explicit(self):
        """The same solution with P, or J, as an array: the form that serves very many small sets."""
        return self._on(self.sites.with_precision(self.precision.explicit()))

    def select_targets(self, columns):
        """The same fit for some of the targets."""
        known = {name: vars(self)[name][:, columns] for name in ("Y", "A", "B", "joint_A") if name in vars(self)}
        return Solution.__new__(Solution)._set(self.sites, **known)

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

    @cached_property
    def own_moments(self):
        """N and U of all targets."""
        return own_moments(self)

    def moments(self, targets=EVERYTHING):
        """Class matrices of the rows."""
        return finished(self, targets, targets.whole(self))

    # -- what is left out ------------------------------------------------------------------------------------------

    def without(self, removed):
        """The model without these positions: by P, or solved by itself where nearly nothing of a target is left."""
        if not len(removed):
            return self
        return self.solve_without(removed) if takes_nearly_all(self, removed) else Part(self, removed)

    def solve_without(self, members):
        """The solution without these positions, by a factorisation of its own."""
        rows, Y = (np.delete(each, members, axis=0) for each in (self.rows, self.Y / self.root))
        return Solution(self.problem, rows, Y)

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


class Part(Model):
    """The model without the positions ``removed`` of a full solution ``whole``, by P alone."""

    whole: Solution
    held: HeldOutSet
    removed: np.ndarray
    E: np.ndarray

    def __init__(self, whole, removed):
        whole._check_rest(len(removed))
        held = HeldOutSet(whole.sites, removed)
        if whole.problem.more_columns:
            vars(self)["span"] = whole.problem.span(held.rows)
        try:
            E = held.block.residual(whole.site_A, whole.Y)
        except SingularBlockError:  # it counts sites
            raise SingularBlockError.of(removed, len(whole.rows)) from None
        self._set(whole, held, E)

    def _set(self, whole, held, E):
        choice = f"{whole.choice}; {len(held.removed)} of them left out by its blocks"
        known = {"problem": whole.problem, "rows": held.rows, "removed": held.removed, "choice": choice}
        super().__init__(**known, whole=whole, held=held, E=E)
        return self

    def select_targets(self, columns):
        """The same model of some of the targets."""
        return Part.__new__(Part)._set(self.whole.select_targets(columns), self.held, self.E[:, columns])

    def solve_anew(self):
        """The training part as a solution by a factorisation of its own."""
        return Solution(self.problem, self.rows, self.Y / self.root)

    def solve_without(self, members):
        """The solution without these positions as well, by a factorisation of its own."""
        return self.whole.solve_without(np.concatenate([self.removed, self.held.kept[members]]))

    def as_solution(self):
        """The training part as a solution of its own: parts of it can be left out in turn.

        From its own P; by a new factorisation where P is held through features, or J is held, which does not give P.
        """
        if self.whole.precision.through_features or self.problem.penalty.sites_per_row > 1:
            return self.solve_anew()
        return Solution(self.problem, self.rows, self.Y / self.root, self.precision)

    # -- the model -------------------------------------------------------------------------------------------------

    @cached_property
    def Y(self):  # type: ignore[override]
        """Targets of the training rows."""
        return self.whole.Y[self.held.kept]

    @property
    def target_scale(self):
        """Size of the targets, one number a column."""
        return self.whole.target_scale

    @cached_property
    def _taken(self):
        """P_,te E_te at every site of the training part."""
        return self.held.spread(self.E)

    @cached_property
    def site_A(self):  # type: ignore[override]
        """Coefficients at every site of the training part: A - P_,te E_te."""
        return self.whole.site_A[self.held.kept_sites] - self._taken

    @property
    def _site_sizes(self):
        return np.abs(self.whole.site_A[self.held.kept_sites]) + np.abs(self._taken)

    @property
    def A(self):  # type: ignore[override]
        """Coefficients of the training rows."""
        return self.site_A[: len(self.rows)]

    @property
    def _beta(self):
        own = len(self.site_A) == len(self.rows)
        return super()._beta if own else self.site_A[len(self.rows) :]

    @cached_property
    def B(self):  # type: ignore[override]
        """Coefficients of the unpenalised columns."""
        return self.whole.B - product(self.whole.precision.G[:, self.held.sites], self.E)

    @cached_property
    def weights(self):  # type: ignore[override]
        """Weights of the explicit features where P is held through them, else None."""
        taken = self.whole.precision.feature_weights(self.held.sites)
        return None if taken is None else self.whole.weights - taken @ self.E

    @property
    def precision(self):
        """The P (or J) of the training part, as an array."""
        return self.held.precision

    def G(self, columns):
        """Rows of the G of the training part, for these unpenalised columns."""
        return self.held.G(columns)

    def _fits_elsewhere(self, rows):
        """Held-out rows from E; rows of weight 0, which are not part of P, from the coefficients."""
        place = np.full(self.problem.n, -1)
        place[self.whole.rows[self.removed]] = np.arange(len(self.removed))
        F = np.empty((len(rows), self.E.shape[1]), self.E.dtype)
        out = place[rows] >= 0
        mine = place[rows[out]]
        members = self.removed[mine]
        F[out] = (self.whole.Y[members] - self.E[mine]) / self.whole.root[members]
        self._leave_confounds_out(F, out, rows)
        if not out.all():
            F[~out] = super()._fits_elsewhere(rows[~out])
        return F

    # -- classes, and what is left out of it -----------------------------------------------------------------------

    def moments(self, targets=EVERYTHING):
        """Class matrices of the training part without forming its A, unless nearly all of a class is left out."""
        N, present = targets.left_masses(self)
        found = Moments(N, targets.left_unexplained(self))
        gone = nearly_gone(found, targets.whole(self.whole), present)
        if gone.all():
            return self.solve_anew().moments(targets)
        found = finished(self, targets, found)
        return found.where(gone, self.solve_anew().moments(targets)) if gone.any() else found

    def loo(self):
        """Leave-one-out within the training part: A and the diagonal (blocks) of its own P."""
        members = np.arange(len(self.rows))[:, None]
        self._check_sets(members)
        if not self.held.block.keeps_digits:
            return self.solve_anew().loo()
        return Batch.solve(self, members, self.site_A[self.own_sites(members)], self.held.inner_blocks(members))


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
