"""P by one Cholesky factor, in one n x n array (Cawley 2006, section II, on the weighted LS-SVM system).

    M = L L',   M^-1 = L'^-1 L^-1,   (M^-1)_te,te = V' V  with V = (L^-1)[:, te]

The fit needs L alone (n^3/3). The first question about held-out data inverts L in place (n^3/3 more); the diagonal of
M^-1 is then the squared column norms of L^-1, and a block of t rows costs n t^2. Exact for any alpha that leaves M
numerically positive definite.

P and G do not change when S gains Q C Q', since P Q = 0. ``S + tau Q Q'`` with tau of the size of S therefore removes
the cancellation in M^-1 - M^-1 Q G that a kernel without constant part (centred features) would suffer at small
alpha.
"""

import numpy as np

from foldless import linalg
from foldless.linalg.memory import require_memory
from foldless.precision.base import Explicit, Precision
from foldless.precision.spectral import Spectrum

UNEVEN = 2.0**10  # ratio of roots of weights from which eigenvectors would lose the light rows


class Factored(Precision):
    """P from the Cholesky factor of M = S + alpha I; the C-ordered array S is overwritten."""

    planned = "one Cholesky factor of {n} rows"

    def __init__(self, S, Q, alpha):
        self.n, self.alpha = S.shape[0], alpha
        self.choice = f"factored: one alpha, one Cholesky factor of {self.n} rows"
        tau = 0.0
        if Q.shape[1]:
            tau = np.abs(S.diagonal()).sum() / np.square(Q).sum()
            S = linalg.add_outer_(S, Q, Q, tau)
        S.flat[:: self.n + 1] += alpha
        self._L, self._inverted = linalg.cholesky_(S), False
        self._MQ = self._solve(Q)
        QMQ = Q.T @ self._MQ
        self.G = linalg.solve(QMQ, self._MQ.T) if Q.shape[1] else self._MQ.T
        self.Omega = linalg.inverse(QMQ) - tau * np.eye(Q.shape[1], dtype=Q.dtype)  # of S as it was given

    @classmethod
    def path(cls, problem, rows):
        """By eigenvectors, unless weights are so uneven that a factor for every alpha is more accurate."""
        root = problem.root(rows)
        return None if root.max() > UNEVEN * root.min() else Spectrum.path(problem, rows)

    def _solve(self, Y):
        """M^-1 Y."""
        half = linalg.lower_times if self._inverted else linalg.lower_solve
        return half(self._L, half(self._L, Y), transpose=True)

    @property
    def _Linv(self):
        if not self._inverted:
            self._L, self._inverted = linalg.invert_lower_(self._L), True
        return self._L

    def apply(self, Y):
        return self._solve(Y) - self._MQ @ (self.G @ Y)

    def diagonal(self):
        rows = self._Linv.T  # C-ordered: row i holds column i of L^-1
        return np.einsum("ij,ij->i", rows, rows) - np.einsum("iq,qi->i", self._MQ, self.G)

    def columns(self, rows):
        return linalg.lower_times(self._Linv, self._Linv[:, rows], transpose=True) - self._MQ @ self.G[:, rows]

    def explicit(self):
        """The same P as an n x n array: L'^-1 L^-1, n^3/3 flops more."""
        require_memory((self.n, self.n), self.G.dtype, "P, the matrix of the fit,")
        P = linalg.lower_square(self._Linv)
        if len(self.G):
            P = linalg.add_outer_(P, self._MQ, np.ascontiguousarray(self.G.T), -1.0)
        return Explicit(P, self.G, self.alpha)

    def block(self, rows):
        V = self._Linv[np.min(rows) :, rows]  # zero above the first of these rows
        return linalg.product(V, V, transpose_a=True) - self._MQ[rows] @ self.G[:, rows]
