"""Held-out fits of every kind, from one P.

For Y (n x m), A = P Y, B = G Y and a held-out set te with training part tr (Treder 2019, eq. 1 and 4; Cawley & Talbot
2003, appendix A, is the case of one row):

    residuals         E_te = P_te,te^-1 A_te            held-out fits  Y_te - E_te
    the model         A_tr - P_tr,te E_te               its offset     B - G_te E_te
    its own P         P_tr,tr - P_tr,te P_te,te^-1 P_te,tr
    class matrices    N = Y_tr' Y_tr,  U = alpha ( Y_tr' A_tr - (A_te - P_te,te Y_te)' E_te ) = alpha Y_tr' A_(tr)
    at a new x        f(x) - c(x)_te' E_te,   c(x) = P s(x) + G' q(x)

With confounds among the columns Q, fits leave their part q' B out, with B of the training part, and the class matrices
R and V (``heldout.moments``) are those of the training part as well.

All exact. Leave-one-out needs the diagonal of P, a fold of t rows n t^2 + t^3/3.

**Both bases of the coefficient penalty.** With ``basis="train"`` a row takes its basis function along. Rows and basis
functions are then removed together from one larger symmetric matrix,

    J = [ P,  P K ; K' P,  K' P K - I ],    A <- [ A ; K' A ],    G <- [ G, G K ],    c(x) <- [ c(x) ; K' c(x) - k(x) ],

because eliminating the basis functions te from it leaves P + P K_te (I - K_te' P K_te)^-1 K_te' P, the P of the Gram
matrix K K' - K_te K_te'. Each row owns one *site* of P, or two of J; the formulas above do not change.

Everything here is whitened by the weights (``heldout.problem``); ``fits`` are given back in the caller's units.
"""

from copy import copy
from functools import cached_property

import numpy as np
from sklearn.utils import gen_batches

from foldless.heldout.batch import ENTRIES, Batch, adds_up, few_digits, takes_nearly_all
from foldless.heldout.moments import Moments, nearly_gone
from foldless.heldout.problem import Problem
from foldless.linalg.memory import require_memory
from foldless.linalg.numpy import NotPositiveDefiniteError, eigenvalues, product, right_solve, solve
from foldless.precision.base import Explicit, Precision, SingularBlockError


class Model:
    """A fitted training part: ``rows`` with whitened targets Y, coefficients A and B."""

    problem: Problem
    rows: np.ndarray
    Y: np.ndarray
    A: np.ndarray
    B: np.ndarray
    site_A: np.ndarray  # A at every site
    choice: str  # how P is held, and why

    @property
    def root(self):
        """Square roots of the weights of the training rows, as a column."""
        return self.problem.root_w[self.rows][:, None]

    @cached_property
    def size(self):
        """Size of the targets, one number a column."""
        return np.abs(self.Y / self.root).max(0, initial=0.0)

    def fits(self, at):
        """Fits at the rows ``at`` of X without the confounds' part, in the units of the targets.

        Equal rows have equal fits.
        """
        F = np.empty((len(at), self.B.shape[1]), self.B.dtype)
        place = np.full(self.problem.n, -1)
        place[self.rows] = np.arange(len(self.rows))
        own = place[at] >= 0
        if own.any():
            mine = place[at[own]]
            F[own] = (self.Y[mine] - self.problem.alpha * self.A[mine]) / self.root[mine]
            self._leave_confounds_out(F, own, at)
        if not own.all():
            F[~own] = self._fits_elsewhere(at[~own])
        self._restore_digits(F, at)
        return self.problem.tied(at, F)

    def _leave_confounds_out(self, F, places, at):
        """Take the confounds' part out of the fits F of the rows ``at``, at these places."""
        if self.problem.n_confounds:
            F[places] -= self.problem.Q[at[places], self.problem.confounds] @ self.confound_B

    def _restore_digits(self, F, at):
        """Evaluate the model where the kernel's part of the fits F is tiny beside the targets they are differences of.

        What is left there below eps |Y| depends on Y: labels would be read off the rounding.
        """
        lost = few_digits(F - self.problem.scored_part(at, self.B), self.size)
        if lost.any():
            columns, rows = np.flatnonzero(lost.any(0)), np.flatnonzero(lost.any(1))
            places, model = np.ix_(rows, columns), self.select(columns)
            taken = lost[places] & adds_up(model.terms(at[rows]), self.size[columns])
            F[places] = np.where(taken, model.evaluated(at[rows]), F[places])

    def _fits_elsewhere(self, at):
        return self.evaluated(at)

    def evaluated(self, at):
        """Fits at the rows ``at`` of X from the coefficients of the model, without the confounds' part."""
        shown = self.problem.scored_part(at, self.B)
        if self.weights is not None:
            return self.problem.features(at) @ self.weights + shown
        basis, beta = self.expansion()
        return self.problem.gram(at, basis) @ beta + shown

    def terms(self, at):
        """Sizes of what adds up to the kernel's part of the fits at the rows ``at``, (len(at), m)."""
        return np.abs(self.functionals(at)) @ self._site_sizes

    @property
    def _site_sizes(self):
        """Sizes of what adds up to A at every site."""
        return np.abs(self.site_A)

    def functionals(self, at):
        """T (len(at), sites) with f(x) = T(x) A + q(x)' B for the coefficients A of all sites."""
        problem, functions = self.problem, self.problem.basis_rows(self.rows)
        K = problem.gram(at, functions)
        if problem.penalty == "rkhs":
            return K * self.root.T
        return np.hstack([np.zeros_like(K), K]) if problem.drops_basis else K @ problem.basis_functions(self.rows).T

    def pulled(self, Z):
        """Z' W^1/2 T of the training rows (m, sites) for whitened Z (n, m)."""
        H = np.zeros((Z.shape[1], len(self.site_A)), Z.dtype)
        for batch in gen_batches(len(Z), max(1, ENTRIES // len(self.site_A))):
            H += (self.root[batch] * Z[batch]).T @ self.functionals(self.rows[batch])
        return H

    def expansion(self):
        """(basis rows, beta): f(x) = k(x, basis)' beta + q(x)' B."""
        return self.problem.basis_rows(self.rows), self._beta

    @property
    def _beta(self):
        if self.problem.penalty == "rkhs":
            return self.root * self.A
        return self.problem.basis_functions(self.rows).T @ self.A

    @property
    def weights(self):
        """Weights of the explicit features where P is held through them, else None."""
        return None

    def linear(self):
        """(coef, B) of f(x) = x' coef + q(x)' B for the linear kernel, in the units of X."""
        basis, beta = self.expansion()
        return self.problem.linear(self.weights, basis, beta, self.B)

    def select(self, columns):
        """The same fit for some of the targets."""
        other = copy(self)
        for name in ("joint_A", "weights", "unexplained", "size"):
            vars(other).pop(name, None)
        other.Y, other.A, other.B = self.Y[:, columns], self.A[:, columns], self.B[:, columns]
        return other

    def solved_without(self, members):
        """The solution without these positions, solved by itself."""
        rows, Y = (np.delete(each, members, axis=0) for each in (self.rows, self.Y / self.root))
        return Solution(self.problem, rows, Y)

    def _check_rest(self, t):
        """Without t rows, the unpenalised columns must still be determined."""
        if len(self.rows) - t < self.problem.Q.shape[1]:
            raise SingularBlockError.of(range(t), len(self.rows))

    def _check_sets(self, members):
        """Without any one of these sets (k, t) of positions, the unpenalised columns must still be determined."""
        self._check_rest(members.shape[1])
        if self.problem.more_columns:
            Qo = self.span[members]
            kept = eigenvalues(np.eye(members.shape[1], dtype=Qo.dtype) - Qo @ Qo.transpose(0, 2, 1))[:, 0]
            if kept.min() <= 16 * Qo.shape[2] * np.finfo(Qo.dtype).eps:
                worst = members[kept.argmin()]
                self.problem.span(np.delete(self.rows, worst))  # says which column
                raise SingularBlockError.of(worst, len(self.rows))

    def moments(self):
        """N = Y' Y and U = alpha Y' A = N - Y' F, with confounds R and V, each (m, m)."""
        return self._with_sums(self._differences())

    def _differences(self):
        """The class matrices with V as a difference, however few digits it has."""
        return self._moments(self.Y.T @ self.Y, self.problem.alpha * (self.Y.T @ self.A))

    def _with_sums(self, found):
        """The class matrices with V where all axes are weak."""
        weak = found.weak(self.problem.intercept)
        if self.problem.more_columns or not weak:
            return found
        H = self.pulled(self.problem.beyond_unpenalised(self.rows, self.Y)[0])
        return found.with_sums(weak, H @ self.site_A, np.abs(H) @ np.abs(self.site_A))

    # -- confounds -------------------------------------------------------------------------------------------------

    def _moments(self, N, U):
        if not self.problem.n_confounds:
            return Moments(N, U)
        return Moments(N, U, self.unexplained.T @ self.unexplained, N - U - (self.Y.T @ self.C) @ self.confound_B)

    @property
    def C(self):
        """The whitened confounds of the training rows."""
        return self.root * self.problem.Q[self.rows, self.problem.confounds]

    @property
    def confound_B(self):
        """Their coefficients."""
        return self.B[self.problem.confounds]

    @cached_property
    def span(self):
        """Orthonormal basis of all unpenalised columns of the training rows, whitened."""
        return self.problem.span(self.rows)

    @cached_property
    def unexplained(self):
        """What the unpenalised columns alone leave of Y."""
        return self.Y - self.span @ (self.span.T @ self.Y)

    def own_sites(self, members):
        """Sites that belong to these positions among those of this training part; the last axis doubles for J."""
        return np.concatenate([members, members + len(self.rows)], -1) if self.problem.drops_basis else members


class Solution(Model):
    """The fit on ``rows``, and the P from which all its held-out fits follow."""

    def __init__(self, problem, rows, Y, precision=None):
        self.problem, self.rows = problem, rows
        self.Y = np.ascontiguousarray(self.root * Y)
        self.own_precision = problem.precision(rows) if precision is None else precision
        self.choice = self.own_precision.choice
        rest, B = problem.beyond_unpenalised(rows, self.Y)
        self.A = self.own_precision.apply(rest)
        self.B = B + self.own_precision.G @ rest
        if not (np.isfinite(self.A).all() and np.isfinite(self.B).all()):
            raise ValueError(
                f"the fit on {len(rows)} rows overflows: the kernel matrix of {problem.kernel!r} holds values too large"
                " for this precision. Rescale X (for instance with sklearn.preprocessing.StandardScaler)."
            )

    @cached_property
    def weights(self):
        """Weights of the explicit features where P is held through them, else None."""
        return _weights(self.own_precision, slice(None), self.problem.beyond_unpenalised(self.rows, self.Y)[0])

    @classmethod
    def known(cls, problem, rows, Y, joint, joint_A, B):
        """The solution of whitened targets Y whose ``joint`` matrix, coefficients and B are known."""
        self, n = object.__new__(cls), len(rows)
        self.problem, self.rows, self.Y, self.B = problem, rows, Y, B
        self.joint, self.joint_A, self.A = joint, joint_A, joint_A[:n]
        self.own_precision = joint.at_sites(slice(n)) if problem.penalty == "coef" else joint
        self.choice = joint.choice
        return self

    def on(self, problem):
        """The same solution in a problem that differs in rows of weight 0."""
        other = copy(self)
        other.problem, other.rows = problem, problem.active
        return other

    @property
    def current(self):
        """Whether P is still that of these rows: a growing one may have learnt or forgotten some since."""
        return self.own_precision.current

    @cached_property
    def precision(self) -> Precision:
        """P, or J where rows take their basis functions along."""
        return self.joint if self.problem.drops_basis else self.own_precision

    @cached_property
    def joint(self) -> Precision:
        """J of rows and basis functions for the coefficient penalty, else P."""
        if self.problem.penalty == "rkhs":
            return self.own_precision
        require_memory((2 * len(self.rows), 2 * len(self.rows)), self.Y.dtype, "P of rows and basis functions")
        K, P = self.problem.basis_functions(self.rows), self.own_precision.explicit()
        PK = P.apply(K)
        KPK = product(K, PK, transpose_a=True)
        KPK.flat[:: len(self.rows) + 1] -= 1.0
        return Explicit(np.block([[P.P, PK], [PK.T, KPK]]), np.hstack([P.G, P.G @ K]), P.alpha, definite=False)

    def without(self, removed):
        """The model without these positions: by P, or solved by itself where nearly nothing of a target is left."""
        if not len(removed):
            return self
        return self.solved_without(removed) if takes_nearly_all(self, removed) else Part(self, removed)

    def sites(self, members):
        """Sites of P (or J) that belong to these positions; the last axis doubles for J."""
        return self.own_sites(members)

    def G(self, columns):
        """Rows of G that give the coefficients of these unpenalised columns."""
        return self.precision.G[columns]

    @property
    def site_A(self):  # type: ignore[override]
        """A at every site."""
        return self.joint_A if self.problem.drops_basis else self.A

    @cached_property
    def joint_A(self):
        """A of rows and basis functions, [A; K' A], for the coefficient penalty, else A."""
        return self.A if self.problem.penalty == "rkhs" else np.vstack([self.A, super()._beta])

    @property
    def _beta(self):
        return super()._beta if self.problem.penalty == "rkhs" else self.joint_A[len(self.rows) :]

    def batch(self, members):
        """Held-out fits of the sets ``members`` (k, t), positions in ``rows``, each left out alone."""
        self._check_sets(members)
        sites = self.sites(members)
        blocks = self.precision.diagonal_blocks(sites)
        return Batch.solve(self, members, self.site_A[sites], blocks, alone=self.own_precision.lost(blocks))

    def loo(self):
        """Leave-one-out: n sets of one row."""
        members = np.arange(len(self.rows))[:, None]
        if self.problem.drops_basis:
            return self.batch(members)
        self._check_sets(members)
        D = self.precision.diagonal()[:, None, None]
        E = self.precision.loo_residual(self.A, self.Y)[:, None, :]
        return Batch(self, members, self.Y[:, None, :], self.A[:, None, :], D, E)

    def loo_at(self, X, Q):
        """Fits of all n leave-one-out models at new rows X with unpenalised columns Q, shape (n_new, n, m)."""
        P = self.own_precision
        if self.weights is not None:
            Phi = self.problem.features_new(X)
            f, Ps = Phi @ self.weights, P.feature_weights(slice(None)).T @ Phi.T
        else:
            K_new, s = self.problem.gram_new(X, self.rows), None
            if self.problem.penalty == "coef":
                K = self.problem.basis_functions(self.rows)
                s = K @ K_new.T
            s = self.root * K_new.T if s is None else s
            f, Ps = s.T @ self.A, P.apply(s)
        c = Ps + P.G.T @ Q.T
        E = self.loo().E
        F = (f + Q @ self.B)[:, None, :] - c.T[:, :, None] * E[:, 0]
        if self.problem.drops_basis:
            F -= (K.T @ c - K_new.T).T[:, :, None] * E[:, 1]
        return F


class Part(Model):
    """The model without the positions ``removed`` of a full solution, by P alone."""

    def __init__(self, whole: Solution, removed):
        self.problem, self.whole, self.removed = whole.problem, whole, removed
        kept = np.ones(len(whole.rows), bool)
        kept[removed] = False
        self.kept = np.flatnonzero(kept)
        self.rows = whole.rows[self.kept]
        self.sites = whole.sites(removed)
        self.choice = f"{whole.choice}; {len(removed)} of them left out by its blocks"
        whole._check_rest(len(removed))
        if self.problem.more_columns:
            self.span = self.problem.span(self.rows)
        try:
            self.E = self.block.residual(whole.site_A, whole.Y)
        except SingularBlockError:  # it counts sites
            raise SingularBlockError.of(removed, len(whole.rows)) from None

    @cached_property
    def Y(self):  # type: ignore[override]
        """Targets of the training rows."""
        return self.whole.Y[self.kept]

    def select(self, columns):
        """The same model of some of the targets."""
        other = copy(self)
        for name in ("Y", "B", "site_A", "_taken", "weights", "unexplained"):
            vars(other).pop(name, None)
        other.whole, other.E = self.whole.select(columns), self.E[:, columns]
        return other

    @property
    def size(self):
        """Size of the targets, one number a column."""
        return self.whole.size

    @cached_property
    def block(self):
        """The block of P that belongs to what is left out."""
        return self.whole.precision.held_out(self.sites)

    @cached_property
    def _columns(self):
        return self.whole.precision.columns(self.sites)

    @cached_property
    def _taken(self):
        """P_,te E_te at every site of the training part."""
        if self.E.shape[1] < len(self.sites) and "_columns" not in vars(self):
            E = np.zeros_like(self.whole.site_A)
            E[self.sites] = self.E
            taken = self.whole.precision.apply(E)
        else:
            taken = product(self._columns, self.E)
        return taken[self.whole.sites(self.kept)]

    @cached_property
    def site_A(self):  # type: ignore[override]
        """Coefficients at every site of the training part: A - P_,te E_te."""
        return self.whole.site_A[self.whole.sites(self.kept)] - self._taken

    @property
    def _site_sizes(self):
        return np.abs(self.whole.site_A[self.whole.sites(self.kept)]) + np.abs(self._taken)

    @property
    def A(self):  # type: ignore[override]
        """Coefficients of the training rows."""
        return self.site_A[: len(self.kept)]

    @property
    def _beta(self):
        return self.site_A[len(self.kept) :] if self.problem.drops_basis else super()._beta

    @cached_property
    def B(self):  # type: ignore[override]
        """Coefficients of the unpenalised columns."""
        return self.whole.B - product(self.whole.precision.G[:, self.sites], self.E)

    @cached_property
    def _halves(self):
        """V, W (t, sites) with V' W = P_,te P_te,te^-1 P_te, : what every Schur complement takes away.

        V = W = L^-1 P_te, by the Cholesky factor L of P_te,te where there is one; J has none.
        """
        if self.whole.precision.definite:
            try:
                V = right_solve(self._columns, self.block.factor).T
                return V, V
            except NotPositiveDefiniteError:  # rounding; a refit of low-rank features may have given E
                pass
        return self._columns.T, self.block.solve_general(self._columns.T)

    @cached_property
    def precision(self):
        """The P (or J) of the training part: the Schur complement P_tr,tr - P_tr,te P_te,te^-1 P_te,tr."""
        P, kept = self.whole.precision.explicit(), self.whole.sites(self.kept)
        V, W = (half[:, kept] for half in self._halves)
        own = P.P[np.ix_(kept, kept)] - product(V, W, transpose_a=True)
        return Explicit(own, self.G(slice(None)), P.alpha, definite=P.definite)

    def G(self, columns):
        """Rows of the G of the training part, for these unpenalised columns: G_tr - G_te P_te,te^-1 P_te,tr."""
        G, kept = self.whole.precision.G[columns], self.whole.sites(self.kept)
        return G[:, kept] - solve(self._columns[self.sites].T, G[:, self.sites].T).T @ self._columns[kept].T

    def alone(self):
        """The training part as a solution of its own, from its own P: parts of it can be left out in turn."""
        if self.problem.drops_basis:
            raise NotImplementedError("J of a training part does not give its P")
        return Solution(self.problem, self.rows, self.Y / self.root, self.precision)

    @cached_property
    def weights(self):
        """Weights of the explicit features where P is held through them, else None."""
        taken = _weights(self.whole.precision, self.sites, self.E)
        return None if taken is None else self.whole.weights - taken

    def _fits_elsewhere(self, at):
        """Held-out rows from E; rows of weight 0, which are not part of P, from the coefficients."""
        place = np.full(self.problem.n, -1)
        place[self.whole.rows[self.removed]] = np.arange(len(self.removed))
        F = np.empty((len(at), self.E.shape[1]), self.E.dtype)
        out = place[at] >= 0
        mine = place[at[out]]
        members = self.removed[mine]
        F[out] = (self.whole.Y[members] - self.E[mine]) / self.whole.root[members]
        self._leave_confounds_out(F, out, at)
        if not out.all():
            F[~out] = super()._fits_elsewhere(at[~out])
        return F

    def moments(self):
        """N, U, with confounds R and V, of the training part without forming its A."""
        Y, t = self.whole.Y[self.removed], len(self.removed)
        padded = np.zeros((len(self.sites), Y.shape[1]), Y.dtype)
        padded[:t] = Y
        A = self.whole.site_A[self.sites]
        present = np.count_nonzero(self.whole.Y, axis=0) > np.count_nonzero(Y, axis=0)
        N = np.where(present[:, None], self.whole.Y.T @ self.whole.Y - Y.T @ Y, 0.0)
        inner = self.whole.Y.T @ self.whole.A - Y.T @ A[:t]
        PY = self.block.block @ padded
        found = self._moments(N, self.problem.alpha * (inner - (A - PY).T @ self.E))
        # Without nearly all of a class these differences have no digits left.
        gone = nearly_gone(found, self.whole._differences(), present)
        return self.solved_alone().moments() if gone else self._with_sums(found)

    def solved_alone(self):
        """The training part as a solution by a factorisation of its own."""
        return Solution(self.problem, self.rows, self.Y / self.root)

    def loo(self):
        """Leave-one-out within the training part: A and the diagonal (blocks) of its own P."""
        members = np.arange(len(self.rows))[:, None]
        self._check_sets(members)
        P = self.whole.precision
        if not self.block.keeps_digits:
            return self.solved_alone().loo()
        sites = self.whole.sites(self.kept[:, None])  # (n_tr, 1 or 2)
        # the diagonal blocks of the Schur complement, (n_tr, s, s), without the rest of it
        V, W = self._halves
        if sites.shape[1] == 1:
            taken = np.einsum("ti,ti->i", V, W)[sites][:, :, None]
        else:
            taken = V.T[sites] @ W.T[sites].transpose(0, 2, 1)
        A = self.site_A[self.own_sites(members)]
        return Batch.solve(self, members, A, P.diagonal_blocks(sites) - taken)


def _weights(P, rows, Y):
    """What targets Y at these rows add to the weights of features; None where P is not held through them."""
    columns = P.feature_weights(rows)
    return None if columns is None else columns @ Y


def loo_path(problem, rows, Y, alphas, path=None):
    """Leave-one-out residuals for all alphas in the units of Y, shape (len(alphas), n, m), from one decomposition.

    ``path`` is ``problem.path(rows)`` where that is at hand.

    With J the 2 x 2 blocks of every row are needed. From P(alpha) = U D U' and H = K' U their entries are sums over the
    eigenvectors, (U*U) d, (U*H) d and (H*H) d - 1: one n^3 product more, then again O(n^2) for each alpha.
    """
    path = problem.path(rows) if path is None else path
    if not path.serves_every_alpha:
        solutions = (Solution(problem.replace(alpha=alpha), rows, Y, path.with_alpha(alpha)) for alpha in alphas)
        return np.stack([each.loo().residuals[:, 0] for each in solutions])
    root = problem.root_w[rows][:, None]
    Y = np.ascontiguousarray(problem.beyond_unpenalised(rows, root * Y)[0])
    if not problem.drops_basis:
        return path.loo_path(Y, alphas) / root
    H = product(problem.basis_functions(rows), path.U, transpose_a=True)
    A = path.path_apply(Y, alphas)
    KA = path.path_apply(Y, alphas, H)
    a, b, c = (path.path_diagonal(alphas, left, right) for left, right in ((path.U, path.U), (path.U, H), (H, H)))
    c -= 1.0
    # The first component of the solution of [a b; b c] E = [A; KA], row by row.
    return (c[:, :, None] * A - b[:, :, None] * KA) / (a * c - b * b)[:, :, None] / root
