"""The fit on some rows, and the model without any held-out set of them, from one P.

For Y (n x m) and a held-out set te with training part tr (Treder 2019, eq. 1 and 4; Cawley & Talbot 2003, appendix A,
is the case of one row):

    the fit           A = P Y,    B = G Y
    residuals         E_te = P_te,te^-1 A_te            held-out fits  Y_te - E_te
    the model         A_tr - P_tr,te E_te               its offset     B - G_te E_te
    class matrices    N = Y_tr' Y_tr,  U = alpha ( Y_tr' A_tr - (A_te - P_te,te Y_te)' E_te ) = alpha Y_tr' A_(tr)
    at a new x        f(x) - c(x)_te' E_te,   c(x) = P s(x) + G' q(x)

With confounds among the columns Q, fits leave out what these explain of the training part by themselves
(``heldout.confounds``).

All exact. Leave-one-out needs the diagonal of P, a fold of t rows n t^2 + t^3/3. Each row owns one site of P, or two of
J (``heldout.penalty``); the formulas do not change. Everything here is whitened by the weights (``heldout.problem``).

A training part of k of n rows can also be solved alone (k^3/3), without the P of all rows (2/3 n^3 once for all parts):
flops decide, and the time that Python takes for each part.
"""

from functools import cached_property

import numpy as np

from foldless.heldout.batch import Batch
from foldless.heldout.confounds import ConfoundSums
from foldless.heldout.model import Model
from foldless.heldout.moments import ALL_COLUMNS, finished, own_moments, takes_nearly_all
from foldless.heldout.part import Part
from foldless.linalg import product
from foldless.linalg.memory import require_memory
from foldless.precision.choose import holder
from foldless.precision.lowrank import TINY

MOST_SOLVED = 10  # fits of all rows that held-out sets without digits may take
BY_ITSELF = 3e6  # flops in the time that a training part takes by itself, beside its algebra


class Solution(Model):
    """The fit of targets Y (n, m) on ``rows`` of a problem. Frozen.

    ``own_precision`` is P, ``joint`` the matrix from which rows are forgotten and ``precision`` the one from which they
    are held out: P or J each. P, and J, may be given.
    """

    def __init__(self, problem, rows, Y, precision=None, *, joint=None):
        P = problem.precision(rows) if precision is None else precision
        Y = np.ascontiguousarray(problem.root(rows) * Y)
        rest, B = problem.beyond_unpenalised(rows, Y)
        A = P.apply(rest)
        B = B + P.G @ rest
        if not (np.isfinite(A).all() and np.isfinite(B).all()):
            raise ValueError(
                f"the fit on {len(rows)} rows overflows: the kernel matrix of {problem.kernel!r} holds values too"
                " large for this precision. Rescale X (for instance with sklearn.preprocessing.StandardScaler)."
            )
        given = {} if joint is None else {"joint": joint}
        vars(self).update(given, problem=problem, rows=rows, Y=Y, A=A, B=B, own_precision=P, choice=P.choice)

    def explicit(self):
        """The same solution with P, or J, as an array: the form that serves very many small sets."""
        return self.changed(precision=self.precision.explicit())

    # -- P ---------------------------------------------------------------------------------------------------------

    @cached_property
    def own_precision(self):
        """P, where the solution was found without it (``online.sums``)."""
        return self.problem.precision(self.rows)

    @cached_property
    def precision(self):
        """P, or J where rows take their basis functions along."""
        return self.joint if self.problem.penalty.sites_per_row > 1 else self.own_precision

    @property
    def definite(self):
        """Whether blocks of the matrix from which rows are held out are positive definite."""
        return self.precision.definite

    @cached_property
    def joint(self):
        """J of rows and basis functions for the coefficient penalty, else P."""
        if not self.problem.penalty.squares_kernel:
            return self.own_precision
        return self.problem.penalty.joint(self.problem, self.rows, self.own_precision)

    @property
    def current(self):
        """Whether P is still that of these rows: a growing one may have learnt or forgotten some since."""
        return "own_precision" not in vars(self) or self.own_precision.current

    @property
    def drift(self):
        """Largest relative residual that updates of P have met."""
        return self.own_precision.drift if "own_precision" in vars(self) else 0.0

    def G(self, columns):
        """Rows of G that give the coefficients of these unpenalised columns."""
        return self.precision.G[columns]

    @cached_property
    def weights(self):
        columns = self.own_precision.feature_weights(slice(None))
        return None if columns is None else columns @ self.problem.beyond_unpenalised(self.rows, self.Y)[0]

    @cached_property
    def joint_A(self):
        """A of rows and basis functions, [A; K' A], for the coefficient penalty, else A."""
        if not self.problem.penalty.squares_kernel:
            return self.A
        columns = self.own_precision.function_weights(slice(None))
        if columns is None:
            beta = self.problem.penalty.expansion(self.problem, self.rows, self.A)
        else:
            beta = columns @ self.problem.beyond_unpenalised(self.rows, self.Y)[0]
        return np.vstack([self.A, beta])

    @property
    def site_A(self):
        return self.joint_A if self.problem.penalty.sites_per_row > 1 else self.A

    @cached_property
    def own_moments(self):
        return own_moments(self)

    def moments(self, targets=ALL_COLUMNS):
        return finished(self, targets, targets.whole(self))

    # -- what is left out ------------------------------------------------------------------------------------------

    def without(self, removed):
        """The model without these positions: by P, or solved by itself where nearly nothing of a target is left."""
        if not len(removed):
            return self
        alone = takes_nearly_all(self, removed) or self._loses_digits(len(removed))
        return self.solve_without(removed) if alone else Part(self, removed)

    def solve_without(self, members, precision=None):
        """The solution without these positions, by a factorisation of its own unless its P is known."""
        rows, Y = (np.delete(each, members, axis=0) for each in (self.rows, self.Y / self.root))
        return Solution(self.problem, rows, Y, precision)

    def _loses_digits(self, t, n_sets=1):
        """Whether P has far fewer digits than models without sets of t rows, which are then solved by themselves.

        Where S is singular and alpha tiny, P is of the size 1 / alpha and so is its rounding. alpha tr P is the number
        of rows beyond the rank; a training part without that many rows can be regular.
        """
        n = len(self.rows)
        if t < 2 or n_sets * (n - t) ** 3 > MOST_SOLVED * n**3:
            return False
        return t >= self._rows_beyond_rank - 0.5

    @cached_property
    def _rows_beyond_rank(self):
        """alpha tr P where S is singular and alpha tiny, else infinite."""
        problem, n = self.problem, len(self.rows)
        if problem.penalty.squares_kernel or self.precision.through_features:
            return np.inf
        size, eps = problem.mean_diagonal * float(np.square(self.root).max()), np.finfo(problem.dtype).eps
        if problem.alpha >= TINY[problem.dtype.itemsize] * size:
            return np.inf
        beyond_rank = problem.alpha * float(self.precision.diagonal().sum())
        singular = beyond_rank > 0.5 or problem.alpha < n * eps * size  # then rounding has made P smaller
        return beyond_rank if singular else np.inf

    def batch(self, members):
        """Held-out fits of the sets ``members`` (k, t), positions in ``rows``, each left out alone."""
        self._check_sets(members)
        sites = self.own_sites(members)
        blocks = self.precision.diagonal_blocks(sites)
        holder = self.own_precision if self.problem.penalty.sites_per_row == 1 else self.precision
        lost = holder.lost(blocks) | self._loses_digits(members.shape[1], len(members))
        return Batch.solve(self, members, self.site_A[sites], blocks, lost=lost)

    def loo(self):
        """Leave-one-out: n sets of one row."""
        members = np.arange(len(self.rows))[:, None]
        if self.problem.penalty.sites_per_row > 1:
            return self.batch(members)
        self._check_sets(members)
        D = self.precision.diagonal()
        E = self.precision.loo_residual(self.A, self.Y, D)[:, None, :]
        return Batch(self, members, self.Y[:, None, :], self.A[:, None, :], D[:, None, None], E)

    def loo_at(self, X, Q=None):
        """Fits of all n leave-one-out models at new rows X with unpenalised columns Q, shape (n_new, n, m).

        Without Q, each model takes the confounds at the mean of its own training rows.
        """
        P = self.precision
        problem = self.problem
        n = len(self.rows)
        loo = self.loo()
        if self.weights is not None:
            Phi = problem.features_new(X)
            f, c = Phi @ self.weights, P.feature_weights(slice(None)).T @ Phi.T
        else:
            K = problem.gram_new(X, problem.basis_rows(self.rows))
            T = problem.penalty.functionals(problem, self.rows, K)
            f, c = T @ self.site_A, P.apply(T.T)
        B = loo.shown_B()  # (n, q, m)
        F = f[:, None, :] + (
            np.einsum("nq,nqm->nm", self._loo_means(), B) if Q is None else np.einsum("xq,nqm->xnm", Q, B)
        )
        for site in range(loo.E.shape[1]):
            F = F - c.T[:, site * n : (site + 1) * n, None] * loo.E[:, site]
        return F

    def _loo_means(self):
        """Weighted means (n, q) of the unpenalised columns without each row; 0 without an intercept."""
        Q, w = self.problem.Q[self.rows], np.square(self.root)
        if not self.problem.intercept:
            return np.zeros_like(Q)
        return ((w * Q).sum(0) - w * Q) / (w.sum() - w)


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
    root, part = problem.root(rows), 0.0
    problem.check_sets(rows, alone := np.arange(len(rows))[:, None])
    if problem.n_confounds:
        part = np.einsum("nq,nqm->nm", problem.Q[rows], ConfoundSums(problem, rows, root * Y).without(alone).D)
    Y = np.ascontiguousarray(problem.beyond_unpenalised(rows, root * Y)[0])
    if problem.penalty.sites_per_row == 1:
        return path.loo_path(Y, alphas) / root + part
    U, H = path.U, product(problem.penalty.functions(problem, rows), path.U, transpose_a=True)
    A, KA = (path.path_apply(Y, alphas, left) for left in (U, H))
    a, b, c = (path.path_diagonal(alphas, left, right) for left, right in ((U, U), (U, H), (H, H)))
    c -= 1.0
    # The first component of the solution of [a b; b c] E = [A; KA], row by row.
    return (c[:, :, None] * A - b[:, :, None] * KA) / (a * c - b * b)[:, :, None] / root + part


class TrainingParts:
    """Models of any training part of one problem with targets Y (n x m), each by the cheaper way.

    ``part(train)`` is a :class:`Part` (everything outside ``train`` removed from the full solution) or a
    :class:`Solution` of the training part, whichever takes fewer operations. ``plan`` is told the sizes first, so
    that the full P is only built where it pays: two or three large folds are cheaper solved one by one. ``nested`` says
    that leave-one-out inside the parts is asked for; from a full solution ``whole`` that is at hand all are left out.
    """

    def __init__(self, problem, Y, *, nested=False, whole=None):
        self.problem, self.Y, self.nested = problem, Y, nested
        self._whole_pays, self._at_hand = True, whole is not None
        if whole is not None:
            self.whole = whole

    @cached_property
    def whole(self):
        """The solution on all rows of positive weight."""
        return Solution(self.problem, self.problem.active, self.Y[self.problem.active])

    @cached_property
    def _prepared(self):
        """The same, ready to be left out of; where nested every part will ask for columns of P."""
        P = self.whole.precision
        return self.whole.changed(precision=P.prepare_blocks()) if self.nested else self.whole

    def plan(self, sizes):
        """Decide from the sizes of all training parts whether the full P is worth building."""
        costs = [self._costs(k) for k in sizes]
        n = len(self.problem.active)
        factor = holder(self.problem, n).solve_cost(self.problem, n, nested=self.nested)
        shared = factor * (3 if self.nested else 2)  # its inverse, and P itself where nested
        self._whole_pays = shared + sum(map(min, costs)) < sum(alone for alone, _ in costs)
        if self._whole_pays and not self._at_hand:
            self.require_memory(min(sizes))
        return self._whole_pays

    def require_memory(self, k):
        """Complain before P of all rows is made, if it and what is held beside it for parts of k rows will not fit."""
        problem, n = self.problem, len(self.problem.active)
        if problem.n_features(n) is None:
            arrays = problem.penalty.arrays + self.nested + (n - k) / n
            require_memory((n, n), problem.dtype, "the matrix P of all rows, from which some are left out", arrays)

    def _costs(self, k):
        """Flops of a training part of k rows, by a solution of its own and by leaving the others out of P."""
        n = len(self.problem.active)
        alone = holder(self.problem, k).solve_cost(self.problem, k, nested=self.nested)
        if not (self.nested or self.problem.penalty.squares_kernel):
            alone += BY_ITSELF  # but nested parts are worked on singly in any case, and J has fewer digits than they
        return alone, holder(self.problem, n).leave_out_cost(self.problem, n, n - k, nested=self.nested)

    def leaves_out(self, k):
        """Whether a training part of k rows is had by leaving the others out of P."""
        alone, left_out = self._costs(k)
        return self._at_hand or (self._whole_pays and left_out <= alone)

    def part(self, train):
        """The model of the training rows ``train`` (rows of weight 0 are ignored)."""
        rows = np.intersect1d(train, self.problem.active)
        if not self.leaves_out(len(rows)):
            return Solution(self.problem, rows, self.Y[rows])
        return self._prepared.without(np.flatnonzero(~np.isin(self.problem.active, rows, assume_unique=True)))
