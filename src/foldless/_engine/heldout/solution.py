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

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from foldless._engine.heldout.confounds import ConfoundSums
from foldless._engine.heldout.held_out import HeldOut
from foldless._engine.heldout.model import Model
from foldless._engine.heldout.moments import ALL_COLUMNS, finished, moments_of
from foldless._engine.heldout.part import TrainingPart
from foldless._engine.heldout.plan import ARRAY, plan_of_fit
from foldless._engine.heldout.sets import are_all_rows
from foldless._engine.linalg import add_diagonal_, take
from foldless._engine.precision import cost
from foldless._engine.precision.base import Precision, omega_of
from foldless._engine.precision.digits import rows_beyond_rank


@dataclass(frozen=True, eq=False)
class Solution(Model):
    """The fit of whitened targets Y (n, m) on ``rows`` of a problem: :meth:`fit` solves it.

    ``holder`` is P as the fit made it; None where the solution was found without P (``online.sums``), by the ``sums``
    that gave the weights of the features (``solved_weights``). ``for_blocks`` is P in the form from which sets are
    held out, if it is another.
    """

    problem: Any
    rows: np.ndarray
    Y: np.ndarray
    A: np.ndarray
    B: np.ndarray
    holder: Precision | None
    for_blocks: Precision | None = None
    solved_weights: np.ndarray | None = None
    sums: Any = None

    @classmethod
    def fit(cls, problem, rows, Y, precision=None):
        """The solution for targets Y in their units, rounded to the precision of the problem.

        P is made of the problem unless it is known.
        """
        P = problem.precision(rows) if precision is None else precision
        Y = problem.verbs.row_major(problem.root(rows) * problem.rounded(Y))
        residual, B = problem.residual_of_Q(rows, Y)
        A = P.apply(residual)
        B = B + P.G @ residual
        xp = problem.xp
        if not (xp.all(xp.isfinite(A)) and xp.all(xp.isfinite(B))):
            raise ValueError(
                f"the fit on {len(rows)} rows overflows: the kernel matrix of {problem.kernel!r} holds values too"
                " large for this precision. Rescale X (for instance with sklearn.preprocessing.StandardScaler)."
            )
        return cls(problem, rows, Y, A, B, P)

    def with_precision(self, precision):
        """The same solution with P in another form."""
        return Solution(
            self.problem, self.rows, self.Y, self.A, self.B, self.holder, precision, self.solved_weights, self.sums
        )

    def explicit(self):
        """The same solution with P as an array: the form that serves very many small sets."""
        return self.with_precision(self.precision.explicit())

    def select_targets(self, columns):
        weights = None if self.solved_weights is None else take(self.solved_weights, columns, 1)
        Y, A, B = (take(values, columns, 1) for values in (self.Y, self.A, self.B))
        return replace(self, Y=Y, A=A, B=B, solved_weights=weights)

    # -- P ---------------------------------------------------------------------------------------------------------

    @cached_property
    def own_precision(self):
        """P as the fit made it, or made now where the solution was found without it."""
        return self.problem.precision(self.rows) if self.holder is None else self.holder

    @cached_property
    def precision(self):
        """P in the form from which sets are held out."""
        return self.own_precision if self.for_blocks is None else self.for_blocks

    @property
    def choice(self):
        if self.holder is None:
            return f"sums over rows: {len(self.weights)} features for {len(self.rows)} rows"
        return self.holder.choice

    @property
    def current(self):
        """Whether P is still that of these rows: a growing one may have learnt or forgotten some since."""
        return self.holder is None or self.holder.current

    @property
    def drift(self):
        """Largest relative residual that updates of P have met."""
        return 0.0 if self.holder is None else self.holder.drift

    def G(self, columns):
        """Rows of G that give the coefficients of these unpenalised columns."""
        return self.precision.G[columns]

    @cached_property
    def Omega(self):
        """(Q' M^-1 Q)^-1; not every holder knows it."""
        P, problem = self.own_precision, self.problem
        if P.Omega is not None:
            return P.Omega
        M = add_diagonal_(problem.whitened_gram(self.rows), problem.alpha)
        return omega_of(M, problem.whitened_columns(self.rows), P.G)

    @cached_property
    def weights(self):
        if self.solved_weights is not None:
            return self.solved_weights
        columns = self.own_precision.feature_weights(slice(None))
        return None if columns is None else columns @ self.problem.residual_of_Q(self.rows, self.Y)[0]

    @cached_property
    def unfinished_moments(self):
        """N and U, from which those of training parts are differences."""
        return moments_of(self)

    def moments(self, groups=ALL_COLUMNS):
        return finished(self, groups, groups.full_moments(self))

    # -- what is left out ------------------------------------------------------------------------------------------

    def without(self, removed):
        """The model without these positions: by P, or solved by itself where P has too few digits for it."""
        if not len(removed):
            return self
        if self.carries_nearly_all(removed) or self._loses_digits(len(removed)):
            return self.solve_without(removed)
        part = TrainingPart.of(self, removed)
        return part if part.block.keeps_digits else part.solve_anew()

    def solve_without(self, members, precision=None):
        """The solution without these positions, by a factorisation of its own unless its P is known."""
        kept = np.delete(np.arange(len(self.rows)), members)
        return Solution.fit(self.problem, self.rows[kept], self.targets(kept), precision)

    def _loses_digits(self, t, n_sets=1):
        """Whether P has far fewer digits than models without sets of t rows, at a price that is worth it."""
        pays = cost.solving_alone_pays(len(self.rows), t, n_sets)
        return pays and t >= self._rows_beyond_rank - 0.5

    @cached_property
    def _rows_beyond_rank(self):
        problem = self.problem
        if self.precision.through_features:
            return np.inf
        size = problem.mean_diagonal * float(problem.xp.max(problem.xp.square(self.root)))
        return rows_beyond_rank(self.precision, size, problem.xp)

    def _ill_conditioned(self, members, blocks):
        """Which sets (k, t) P cannot be left out of with digits, (k,): they are solved by themselves."""
        few = self.own_precision.ill_conditioned(blocks) | self._loses_digits(members.shape[1], len(members))
        return few | self.carries_nearly_all(members)

    def plan_for(self, sets, *, nested=False):
        """The plan for sets of positions in ``rows``."""
        return plan_of_fit(type(self.precision), len(self.rows), sets.counts, self.Y.shape[1], nested=nested)

    def prepared(self, plan):
        """The same with P in the form of the plan."""
        return self.with_precision(self.precision.prepare_blocks()) if plan.form == ARRAY else self

    def held_out(self, members):
        """:class:`HeldOut` of sets ``members`` (k, t) of positions in ``rows``, every one left out alone."""
        if are_all_rows(members, len(self.rows)):
            return self.loo()
        self.check_sets(members)
        blocks = self.precision.diagonal_blocks(members)
        return HeldOut.solve(self, members, self.A[members], blocks, self._ill_conditioned(members, blocks))

    def loo(self):
        """Leave-one-out: n sets of one row."""
        members = np.arange(len(self.rows))[:, None]
        self.check_sets(members)
        D = self.precision.diagonal()
        E = self.precision.loo_residual(self.A, self.Y, D)[:, None, :]
        alone = self.carries_nearly_all(members)
        return HeldOut(self, members, self.Y[:, None, :], self.A[:, None, :], D[:, None, None], E, alone)

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
        B = loo.score_offsets()  # (n, q, m)
        F = f[:, None, :] + (
            np.einsum("nq,nqm->nm", self._loo_means(), B) if Q is None else np.einsum("xq,nqm->xnm", Q, B)
        )
        return F - c.T[:, :, None] * loo.E[:, 0]

    def _solved_loo_at(self, X, Q):
        """The same by a factorisation for every row, where one row makes P of the size 1 / alpha."""
        self.check_sets(np.arange(len(self.rows))[:, None])
        K, means = self.problem.gram_new(X, self.rows), self._loo_means()
        F = np.empty((len(K), *self.Y.shape), K.dtype)
        for i, mean in enumerate(means):
            model = self.solve_without([i])
            F[:, i] = np.delete(K, i, axis=1) @ model.expansion()[1] + (mean if Q is None else Q) @ model.score_offsets
        return F

    def _loo_means(self):
        """Weighted means (n, q) of the unpenalised columns without each row; 0 without an intercept."""
        Q, w = self.problem.Q[self.rows], np.square(self.root)
        if not self.problem.intercept:
            return np.zeros_like(Q)
        return ((w * Q).sum(0) - w * Q) / (w.sum() - w)


def loo_path(problem, rows, Y, alphas, path=None):
    """Leave-one-out residuals for all alphas in the units of Y, shape (len(alphas), n, m), from one decomposition.

    They are those of Y rounded to the precision of the problem. ``path`` is ``problem.path(rows)`` where that is at
    hand.
    """
    path = problem.path(rows) if path is None else path
    if not path.serves_every_alpha:
        solutions = (Solution.fit(problem.replace(alpha=alpha), rows, Y, path.with_alpha(alpha)) for alpha in alphas)
        return problem.xp.stack([solution.loo().residuals[:, 0] for solution in solutions])
    root = problem.root(rows)
    Y = problem.rounded(Y)
    explained = 0.0  # by the confounds of each training part
    alone = np.arange(len(rows))[:, None]
    problem.check_sets(rows, alone)
    if problem.n_confounds:
        D = ConfoundSums(problem, rows, root * Y).without(alone).D
        explained = (problem.Q[rows][:, None, :] @ D)[:, 0]
    Y = problem.verbs.row_major(problem.residual_of_Q(rows, root * Y)[0])
    return path.loo_path(Y, alphas) / root + explained
