"""P for every alpha from one eigendecomposition.

With Q = Qo R (QR), C = I - Qo Qo' and C S C = U diag(s) U' on the complement of Q (U is n x (n - q)):

    P(alpha) = U diag(1 / (s + alpha)) U'         diag P(alpha) = (U * U) (1 / (s + alpha))
    G(alpha) = R^-1 Qo' (I - S P(alpha))          since Q' A = 0

There is no subtraction: P Q = 0 holds to rounding, eigenvalues that rounding made negative are set to zero, and the
result stays finite for any alpha > 0. One eigendecomposition (about 9 n^3 flops), then O(n^2) for each alpha; a path
of k values costs one n x n by n x k product for all the diagonals. A kernel matrix with eigenvalues below -tolerance
is no kernel matrix and is refused.
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np

from foldless._engine.linalg import (
    add_outer_,
    concat,
    eigenvalues,
    eigh_,
    eps,
    eye,
    largest,
    namespace,
    orthonormal,
    outer_square,
    product,
    row_major,
    smallest,
    tiny,
    to_host,
    upper_solve,
)
from foldless._engine.precision import cost
from foldless._engine.precision.base import AlphaPath, Explicit


class IndefiniteError(ValueError):
    """S is no Gram matrix: it has eigenvalues below zero that are not rounding."""


class Eigenvectors(NamedTuple):
    """Q = Qo R, QS = Qo' S, and the eigenvectors U and eigenvalues s of C S C on the complement of Q."""

    Qo: np.ndarray
    R: np.ndarray
    QS: np.ndarray
    U: np.ndarray
    s: np.ndarray

    @classmethod
    def of(cls, S, Q):
        """Those of a C-ordered array S, which is overwritten."""
        q = Q.shape[1]
        xp = namespace(S)
        size = max(float(largest(abs(S))), tiny(S))
        Qo, R = orthonormal(Q)
        QS = product(Qo, S, transpose_a=True)
        if q:
            # C S C - size Qo Qo' = S - Qo H' - H Qo': the columns of Qo become the q lowest eigenvectors, apart.
            H = QS.T - Qo @ (QS @ Qo - size * eye(S, q)) / 2
            S = add_outer_(S, concat([Qo, H], 1), concat([H, Qo], 1), -1.0)
        s, U = eigh_(S)
        U, s = U[:, q:], s[q:]
        lowest, highest = float(smallest(s)), max(float(largest(s)), size)
        if lowest < -np.sqrt(eps(U)) * highest:
            raise IndefiniteError(f"eigenvalues reach from {lowest:.3g} to {highest:.3g}")
        return cls(Qo, R, QS, U, xp.where(s < 0, 0.0, s))


class Spectrum(AlphaPath):
    """P of any alpha by its eigenvectors; of none before ``with_alpha``. The C-ordered array S is overwritten."""

    def __init__(self, S, Q):
        self._share(Eigenvectors.of(S, Q))

    def _share(self, eigenvectors):
        self._eigenvectors = eigenvectors
        self.Qo, self.R, self.QS, self.U, self.s = eigenvectors
        self.n = len(self.Qo)

    def with_alpha(self, alpha):
        other = Spectrum.__new__(Spectrum)
        other._share(self._eigenvectors)
        other.alpha = alpha
        other.choice = self.choice
        return other

    @classmethod
    def from_problem(cls, problem, rows, K=None):
        P = cls._of_rows(problem, rows, K).with_alpha(problem.alpha)
        P.choice = (
            f"spectral: S + alpha I of {len(rows)} rows has no Cholesky factor at alpha={problem.alpha:g};"
            " eigenvalues lost in rounding are set to zero"
        )
        return P

    @classmethod
    def path(cls, problem, rows, n_alphas=None, *, explicit=False):
        return cls._of_rows(problem, rows)

    @classmethod
    def _of_rows(cls, problem, rows, K=None):
        """The eigenvectors of ``rows``; K = gram(rows, rows) where known."""
        cost.require_eigenvectors(len(rows), problem.Q)
        try:
            return cls(problem.whitened_gram(rows, K), problem.whitened_columns(rows))
        except IndefiniteError:
            lowest, *_, highest = to_host(eigenvalues(problem.gram(rows, rows)))
            needed = -lowest * np.square(to_host(problem.root(rows))).max()
            raise ValueError(
                f"the kernel matrix is indefinite: its eigenvalues reach from {lowest:.3g} to {highest:.3g}. A kernel"
                " must be positive semi-definite; clip its negative eigenvalues (numpy.linalg.eigh), add their size to"
                f" the diagonal, or use alpha > {needed:.3g}."
            ) from None

    @cached_property
    def G(self):  # type: ignore[override]
        return upper_solve(self.R, self.Qo.T - self.apply(row_major(self.QS.T)).T)

    @property
    def Omega(self):  # type: ignore[override]
        """(Q' M^-1 Q)^-1 = R^-1 Qo' M G', since M G' = Q Omega."""
        return upper_solve(self.R, (self.QS + self.alpha * self.Qo.T) @ self.G.T)

    def apply(self, Y):
        return product(self.U, self.inverted[:, None] * product(self.U, Y, transpose_a=True))

    def diagonal(self):
        return self.path_diagonal([self.alpha])[0]

    def columns(self, rows):
        return product(self.U, self.inverted[:, None] * self.U[rows].T)

    def explicit(self):
        """The same P as an n x n array, n^3 flops."""
        cost.require_explicit(self.n, self.s)
        P = outer_square(self.U * namespace(self.U).sqrt(self.inverted))
        return Explicit(P, upper_solve(self.R, self.Qo.T - product(self.QS, P)), self.alpha)

    def block(self, rows):
        V = self.U[rows]
        return product(V * self.inverted, V.T)
