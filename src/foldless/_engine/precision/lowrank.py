"""P from explicit features, fewer than samples (Treder 2019, section 3; Woodbury).

S = Phi Phi' with Phi of shape (n, r). With Q = Qo R and the thin decomposition (I - Qo Qo') Phi = U diag(sqrt s) V':

    P(alpha) = U diag(1 / (s + alpha)) U' + (I - Qo Qo' - U U') / alpha

Nothing n x n is ever formed: n r^2 once, O(n r) for each alpha and each target. A held-out set of t rows is solved on
its smaller side. With Psi = [Qo, U sqrt(s / (s + alpha))], P = (I - Psi Psi') / alpha and

    P_te,te^-1 = alpha (I - Psi_te Psi_te')^-1 = alpha (I + Psi_te (I - Psi_te' Psi_te)^-1 Psi_te')

Held-out rows that carry most of a feature leave I - Psi_te Psi_te' without digits (leverage above 1 - 1e-6); these sets
are fitted anew without them, n r^2 each. Where U and Qo span all of the n dimensions, as the functions of all rows may,
P is U diag(1 / (s + alpha)) U' and nothing is subtracted.
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np

from foldless._engine import linalg
from foldless._engine.linalg.batches import gen_batches
from foldless._engine.precision import cost
from foldless._engine.precision.base import AlphaPath, HeldOutBlock, SingularBlockError
from foldless._engine.precision.digits import SQUARED, TINY, cancels, nearly_fitted

ROWS = 4096  # rows looked at together where no whole array of their size is wanted
GATHERED = 2**22  # entries of Psi that are put together for many held-out sets
DOUBLED = 2**25  # entries of the features that are held in double precision at a time
TALL = 64  # features from which the Gram matrix is worth its precautions
GRADED = 4.0  # ratio of roots of weights from which the decomposition takes care of the light rows


class Decomposition(NamedTuple):
    """Q = Qo R, (I - Qo Qo') Phi = U diag(sqrt s) V', and the ``least`` alpha that they serve.

    ``outside`` (n,) is what is left of each unit vector outside Q and U, ``spans_all`` whether these span everything.
    """

    Qo: np.ndarray
    R: np.ndarray
    U: np.ndarray
    s: np.ndarray
    Vt: np.ndarray
    least: float
    outside: np.ndarray
    spans_all: bool

    @classmethod
    def of(cls, Phi, Q, alpha, graded):
        """That of features Phi and columns Q, for this alpha and larger ones."""
        n, q = Q.shape
        Qo, R = linalg.orthonormal(Q)
        rest = 8 * linalg.eps(Phi) * linalg.norm(Phi)  # rounding left of columns that Q explains
        centred = Phi - Qo @ (Qo.T @ Phi)
        U, s, Vt, least = _decomposed(centred, Qo, alpha, float(rest), graded)
        spans_all = U.shape[1] + q >= n
        # Exactly zero where rounding is all there is.
        outside = 1.0 - linalg.dots(U, U) - linalg.dots(Qo, Qo)
        least_outside = np.inf if spans_all else 8 * (U.shape[1] + q) * linalg.eps(U)
        outside = linalg.namespace(U).where(outside < least_outside, 0.0, outside)
        return cls(Qo, R, U, s, Vt, least, outside, spans_all)


def _decomposed(Phi, Qo, alpha, rest, graded):
    """U, s, V' and the least alpha they serve; singular values up to ``rest`` are rounding.

    With ``graded`` rows the rows of U are as accurate as they are large, and its columns orthogonal to Qo, which Phi is
    only up to its own size.

    Tall features go through their r x r Gram matrix in double precision, n r^2 instead of 6 n r^2 flops. Its small
    eigenvectors are wrong by eps s_max / s_j but enter P with weight s_j / (s_j + alpha): in all eps s_max / alpha.
    """
    n, r = Phi.shape
    if r >= TALL and n >= 2 * r:
        gram = 0.0
        for rows in gen_batches(n, max(r, DOUBLED // r)):
            gram = gram + linalg.outer_square(linalg.double(Phi[rows]).T)
        s, V = linalg.eigh_(gram)
        size = float(s[-1])
        least = SQUARED * max(size, 0.0)
        if alpha >= least:
            keep = np.flatnonzero(linalg.to_host(s) > max(10 * np.finfo(np.float64).eps * size, rest**2))
            s, V = s[keep], linalg.take(V, keep, 1)
            U = linalg.product(Phi, linalg.like(Phi, V / linalg.namespace(s).sqrt(s)))
            return U, linalg.like(Phi, s), linalg.like(Phi, V.T), least
    U, sigma, Vt = linalg.svd(Phi, overwrite=not graded)
    sizes, eps = linalg.to_host(sigma), linalg.eps(U)
    keep = np.flatnonzero(sizes > max(max(n, r) * eps * sizes.max(initial=0.0), rest))
    keep = keep[keep < n - Qo.shape[1]]  # there are no more dimensions
    U, sigma, Vt = linalg.take(U, keep, 1), sigma[keep], Vt[keep]
    if graded:
        U = (Phi @ Vt.T) / sigma
    if graded or linalg.largest(abs(Qo.T @ U)) > 64 * eps:
        U = linalg.orthonormal(linalg.concat([Qo, U], 1))[0][:, Qo.shape[1] :]
    return U, sigma**2, Vt, 0.0


class LowRank(AlphaPath):
    """P at one alpha from the features Phi of S = Phi Phi'; ``with_alpha`` gives another alpha for O(r).

    ``graded`` says that rows differ in size by far, as those of very different weights do.
    """

    through_features = True
    planned = "low rank, {r} features"

    def __init__(self, Phi, Q, alpha, *, graded=False, decomposition=None):
        self.n = len(Q)
        self.alpha = alpha
        self.Phi = Phi
        self.Q = Q
        self._graded = graded
        self._decomposition = Decomposition.of(Phi, Q, alpha, graded) if decomposition is None else decomposition
        self.Qo, self.R, self.U, self.s, self._Vt, self._least, self._outside, self.spans_all = self._decomposition

    # -- when it is taken ------------------------------------------------------------------------------------------

    @classmethod
    def suits(cls, problem, n):
        """Whether there are fewer features than a third of the rows, or than rows at a tiny alpha.

        A Gram matrix with the squared condition of a kernel is never formed at a tiny alpha.
        """
        r = problem.n_features
        if r is None or (r >= n and not problem.kernel.squares_condition):
            return False
        tiny = TINY[problem.dtype.itemsize]
        return cost.features_pay(n, r) or cancels(problem.alpha, problem.mean_diagonal, tiny)

    @classmethod
    def fit_cost(cls, problem, n, *, nested=False):
        return cost.feature_fit(n, problem.n_features)

    @classmethod
    def removal_cost(cls, problem, n, t, *, nested=False):
        return cost.feature_removal(n, t, problem.n_features, nested=nested)

    @classmethod
    def from_problem(cls, problem, rows, K=None):
        root, Phi = problem.root(rows), problem.whitened_features(rows)
        graded = bool(problem.xp.max(root) > GRADED * problem.xp.min(root))
        P = cls(Phi, problem.whitened_columns(rows), problem.alpha, graded=graded)
        kind = "linear features" if problem.kernel.is_linear else "features"
        P.choice = f"low rank: {Phi.shape[1]} {kind} for {P.n} rows"
        return P

    @classmethod
    def path(cls, problem, rows, n_alphas=None, *, explicit=False):
        return problem.precision(rows)

    # -- the verbs of P --------------------------------------------------------------------------------------------

    @cached_property
    def _Psi(self):
        return linalg.concat([self.Qo, self.U * linalg.namespace(self.s).sqrt(self.s * self.inverted)], 1)

    def with_alpha(self, alpha):
        decomposition = None if alpha < self._least else self._decomposition
        other = LowRank(self.Phi, self.Q, alpha, graded=self._graded, decomposition=decomposition)
        other.choice = self.choice
        return other

    def loo_path(self, Y, alphas):
        """Leave-one-out residuals for all alphas, shape (len(alphas), n, m); n r for each alpha and target."""
        if min(alphas) < self._least:
            return self.with_alpha(min(alphas)).loo_path(Y, alphas)
        k, m, xp = len(alphas), Y.shape[1], linalg.namespace(Y)
        alphas = linalg.like(self.s, alphas)
        weights = 1.0 / (self.s[:, None] + alphas)  # (r, k)
        stacked = xp.reshape(weights[:, :, None] * (self.U.T @ Y)[:, None, :], (-1, k * m))
        outside = self._complement(Y)
        E = linalg.zeros(Y, (k, self.n, m))
        for rows in gen_batches(self.n, ROWS):  # the squares of U are never held whole
            U = self.U[rows]
            A = xp.reshape(U @ stacked, (-1, k, m)) + outside[rows][:, None, :] / alphas[:, None]
            p = (U * U) @ weights + self._outside[rows][:, None] / alphas
            E = linalg.put(E, (slice(None), rows), xp.permute_dims(A / p[:, :, None], (1, 0, 2)))
            for i, j in () if self.spans_all else np.argwhere(linalg.to_host(nearly_fitted(alphas * p))):
                row = rows.start + i
                refitted = self.with_alpha(float(alphas[j])).refit_residual(np.array([row]), Y)
                E = linalg.put(E, (j, row), refitted[0])
        return E

    def _complement(self, Y):
        """(I - Qo Qo' - U U') Y; with an orthonormal U twice, as the second pass removes the rounding of the first."""
        if self.spans_all:
            return linalg.namespace(Y).zeros_like(Y)
        for _ in range(1 if self._least else 2):
            Y = Y - self.Qo @ (self.Qo.T @ Y) - self.U @ (self.U.T @ Y)
        return Y

    @cached_property
    def G(self):  # type: ignore[override]
        return linalg.upper_solve(self.R, self.Qo.T - (self.Qo.T @ self.Phi) @ self.feature_weights(slice(None)))

    def feature_weights(self, rows):
        """(Phi' P)[:, rows]: what targets at these rows add to the weights of the features.

        V diag(sqrt s / (s + alpha)) U', not Phi' times P: P is of the size of 1 / alpha, and Phi' takes it back.
        """
        return (self._Vt.T * (linalg.namespace(self.s).sqrt(self.s) * self.inverted)) @ self.U[rows].T

    def apply(self, Y):
        if self._least:  # alpha is not small: nothing is lost in I - Psi Psi', at half the work
            fits = self.U @ ((self.s * self.inverted)[:, None] * (self.U.T @ Y)) + self.Qo @ (self.Qo.T @ Y)
            return (Y - fits) / self.alpha
        return self.U @ (self.inverted[:, None] * (self.U.T @ Y)) + self._complement(Y) / self.alpha

    def diagonal(self):
        return (self.U * self.U) @ self.inverted + self._outside / self.alpha

    def squared_diagonal(self):
        return (self.U * self.U) @ (self.inverted * self.inverted) + self._outside / self.alpha**2

    def prepare_blocks(self):
        """Blocks come from the features: nothing n x n is formed."""
        return self

    def columns(self, rows):
        unit = linalg.zeros(self.U, (self.n, len(rows)))
        return self.apply(linalg.put(unit, (rows, np.arange(len(rows))), 1.0))

    def block(self, rows):
        if self.spans_all:
            return (self.U[rows] * self.inverted) @ self.U[rows].T
        V = self._Psi[rows]
        return (linalg.eye(V, len(rows)) - V @ V.T) / self.alpha

    def diagonal_blocks(self, rows):
        k, t = rows.shape
        if t == 1:
            return super().diagonal_blocks(rows)
        step = max(1, GATHERED // (t * max(1, self._Psi.shape[1])))
        batches = [self._blocks(rows[batch]) for batch in gen_batches(k, step)]
        return batches[0] if len(batches) == 1 else linalg.concat(batches)

    def _blocks(self, rows):
        if self.spans_all:
            V = self.U[rows]
            return (V * self.inverted) @ linalg.namespace(V).matrix_transpose(V)
        V = self._Psi[rows]
        return (linalg.eye(V, rows.shape[1]) - V @ linalg.namespace(V).matrix_transpose(V)) / self.alpha

    def held_out(self, rows):
        return HeldOutBlock(self, rows) if self.spans_all else LowRankBlock(self, rows)

    def ill_conditioned(self, blocks):
        """Which of the blocks (k, t, t) of P have no digits left: their rows carry a feature nearly alone, (k,)."""
        if self.spans_all:
            return super().ill_conditioned(blocks)
        return linalg.to_host(nearly_fitted(self.alpha * linalg.eigenvalues(blocks)[:, 0]))

    def loo_residual(self, A, Y, diagonal):
        """E_i = A_i / P_ii, and a fit without the row where the row nearly fits itself."""
        E = A / diagonal[:, None]
        for row in () if self.spans_all else np.flatnonzero(linalg.to_host(nearly_fitted(self.alpha * diagonal))):
            E = linalg.put(E, row, self.refit_residual(np.array([row]), Y)[0])
        return E

    def refit_residual(self, rows, Y):
        """Fit the training rows by themselves and evaluate: n r^2, and nothing of the held-out rows enters."""
        rest = np.delete(np.arange(self.n), rows)
        Q, Y_rest = self.Q[rest], Y[rest]
        try:
            alone = LowRank(self.Phi[rest], Q, self.alpha, graded=self._graded)
            B = linalg.upper_solve(alone.R, alone.Qo.T @ Y_rest)
            Y_rest = Y_rest - Q @ B  # P sees nothing of Q, and digits are spared
            B = B + alone.G @ Y_rest
        except linalg.LinAlgError:
            raise SingularBlockError.of(rows, self.n) from None
        weights = alone.feature_weights(slice(None)) @ Y_rest
        return Y[rows] - self.Phi[rows] @ weights - self.Q[rows] @ B


class LowRankBlock(HeldOutBlock):
    """P[rows, rows] through its features: solved on the smaller side, the rows or the features."""

    @cached_property
    def _V(self):
        return self.precision._Psi[self.rows]

    @cached_property
    def _small_factor(self):
        """Cholesky factor L of I - V V' or I - V' V; None where no digits are left.

        The smallest eigenvalue is at least 1 / |L^-1|^2. No pivot need be as small.
        """
        V = self._V
        t, r = V.shape
        unit = linalg.eye(V, min(t, r))
        try:
            L = linalg.cholesky_(unit - (V @ V.T if t <= r else V.T @ V))
        except linalg.LinAlgError:
            return None
        xp = linalg.namespace(L)
        size = float(xp.sum(xp.square(linalg.lower_solve(L, unit))))
        return None if nearly_fitted(1.0 / (1.0 + size)) else L

    def times(self, Y):
        return (Y - self._V @ (self._V.T @ Y)) / self.precision.alpha

    def solve(self, B):
        V = self._V
        L = self._small_factor
        alpha = self.precision.alpha
        if not V.shape[1]:  # no feature and no unpenalised column: the model is 0
            return alpha * B
        if L is None:
            return self.solve_general(B)
        if V.shape[0] <= V.shape[1]:
            return alpha * linalg.cholesky_solve(L, B)
        return alpha * (B + V @ linalg.cholesky_solve(L, V.T @ B))

    def residual(self, A, Y):
        """Held-out residuals; by a fit without the rows where they nearly fit themselves."""
        return self.solve(A[self.rows]) if self.keeps_digits else self.precision.refit_residual(self.rows, Y)

    @property
    def keeps_digits(self):
        """Whether the block has digits left: its rows do not carry a feature nearly alone."""
        return not self._V.shape[1] or self._small_factor is not None
