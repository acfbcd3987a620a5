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

All exact. Leave-one-out needs the diagonal of P, a fold of t rows n t^2 + t^3/3. Everything here is whitened by the
weights (``heldout.problem``).
"""

from functools import cached_property

import numpy as np

from foldless.heldout.confounds import ConfoundSums
from foldless.heldout.held_out import HeldOut
from foldless.heldout.model import Model
from foldless.heldout.moments import ALL_COLUMNS, finished, own_moments, takes_nearly_all
from foldless.heldout.part import Part
from foldless.precision import cost
from foldless.precision.lowrank import TINY


class Solution(Model):
    """The fit of targets Y (n, m) on ``rows`` of a problem. Frozen.

    ``own_precision`` is P as the fit made it, ``precision`` P in the form from which sets are held out.
    """

    def __init__(self, problem, rows, Y, precision=None):
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
        vars(self).update(problem=problem, rows=rows, Y=Y, A=A, B=B, own_precision=P, choice=P.choice)

    def explicit(self):
        """The same solution with P as an array: the form that serves very many small sets."""
        return self.changed(precision=self.precision.explicit())

    # -- P ---------------------------------------------------------------------------------------------------------

    @cached_property
    def own_precision(self):
        """P, where the solution was found without it (``online.sums``)."""
        return self.problem.precision(self.rows)

    @cached_property
    def precision(self):
        return self.own_precision

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
        if not cost.solving_alone_pays(n, t, n_sets):
            return False
        return t >= self._rows_beyond_rank - 0.5

    @cached_property
    def _rows_beyond_rank(self):
        """alpha tr P where S is singular and alpha tiny, else infinite."""
        problem, n = self.problem, len(self.rows)
        if self.precision.through_features:
            return np.inf
        size, eps = problem.mean_diagonal * float(np.square(self.root).max()), np.finfo(problem.dtype).eps
        if problem.alpha >= TINY[problem.dtype.itemsize] * size:
            return np.inf
        beyond_rank = problem.alpha * float(self.precision.diagonal().sum())
        singular = beyond_rank > 0.5 or problem.alpha < n * eps * size  # then rounding has made P smaller
        return beyond_rank if singular else np.inf

    def as_solution(self):
        """Itself: any sets can be left out."""
        return self

    def held_out(self, members):
        """:class:`HeldOut` of sets ``members`` (k, t) of positions in ``rows``, every one left out alone."""
        self._check_sets(members)
        blocks = self.precision.diagonal_blocks(members)
        lost = self.own_precision.lost(blocks) | self._loses_digits(members.shape[1], len(members))
        return HeldOut.solve(self, members, self.A[members], blocks, lost=lost)

    def loo(self):
        """Leave-one-out: n sets of one row."""
        members = np.arange(len(self.rows))[:, None]
        self._check_sets(members)
        D = self.precision.diagonal()
        E = self.precision.loo_residual(self.A, self.Y, D)[:, None, :]
        return HeldOut(self, members, self.Y[:, None, :], self.A[:, None, :], D[:, None, None], E)

    def loo_at(self, X, Q=None):
        """Fits of all n leave-one-out models at new rows X with unpenalised columns Q, shape (n_new, n, m).

        Without Q, each model takes the confounds at the mean of its own training rows.
        """
        if cost.models_without_each_row_pay(len(self.rows)) and self._rows_beyond_rank <= 1.5:
            return self._solved_loo_at(X, Q)
        P = self.precision
        problem = self.problem
        loo = self.loo()
        if self.weights is not None:
            Phi = problem.features_new(X)
            f, c = Phi @ self.weights, P.feature_weights(slice(None)).T @ Phi.T
        else:
            T = problem.gram_new(X, self.rows) * self.root.T
            f, c = T @ self.A, P.apply(T.T)
        B = loo.shown_B()  # (n, q, m)
        F = f[:, None, :] + (
            np.einsum("nq,nqm->nm", self._loo_means(), B) if Q is None else np.einsum("xq,nqm->xnm", Q, B)
        )
        return F - c.T[:, :, None] * loo.E[:, 0]

    def _solved_loo_at(self, X, Q):
        """The same by a factorisation for every row, where one row makes P of the size 1 / alpha."""
        self._check_sets(np.arange(len(self.rows))[:, None])
        K, means = self.problem.gram_new(X, self.rows), self._loo_means()
        F = np.empty((len(K), *self.Y.shape), K.dtype)
        for i, mean in enumerate(means):
            model = self.solve_without([i])
            F[:, i] = np.delete(K, i, axis=1) @ model.expansion()[1] + (mean if Q is None else Q) @ model.shown_B
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
    return path.loo_path(Y, alphas) / root + part
