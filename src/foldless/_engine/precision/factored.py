"""P by one Cholesky factor, in one n x n array (Cawley 2006, section II, on the weighted LS-SVM system).

    M = L L',   M^-1 = L'^-1 L^-1,   (M^-1)_te,te = V' V  with V = (L^-1)[:, te]

The fit needs L alone (n^3/3). The first question about held-out data inverts L in place (n^3/3 more); the diagonal of
M^-1 is then the squared column norms of L^-1, and a block of t rows costs n t^2. Exact for any alpha that leaves M
numerically positive definite.

P and G do not change when S gains Q C Q', since P Q = 0. ``S + tau Q Q'`` with tau of the size of S therefore removes
the cancellation in M^-1 - M^-1 Q G that a kernel without a constant (centred features) would suffer at small
alpha.

**Interrupts and threads.** L^-1 replaces L in the same memory, so that a half-inverted array exists for a while. It is
never visible: L is given up before the inversion begins, and is computed again from the kernel if an interrupt stops
it. A lock makes other threads wait; once L^-1 is there, it is only read. The pivots of L tell whether a Gram matrix of
the user, which is not copied, is still the one of the fit.
"""

from functools import cached_property, partial
from threading import RLock
from typing import Any

import numpy as np

from foldless._engine.linalg import kind_of, largest
from foldless._engine.precision import cost
from foldless._engine.precision.base import Explicit, Precision
from foldless._engine.precision.spectral import Spectrum

SAME = 1e-3  # of the largest pivot, what pivots of the same matrix may differ by
UNEVEN = 2.0**10  # ratio of roots of weights from which eigenvectors would lose the light rows


class Factored(Precision):
    """P from the Cholesky factor of M = S + alpha I; the C-ordered array S is overwritten.

    ``gram`` computes S again. Without it L^-1 takes an array of its own.
    """

    planned = "one Cholesky factor of {n} rows"

    def __init__(self, S, Q, alpha, gram=None):
        self.n = len(S)
        self.alpha = alpha
        self.choice = f"factored: one alpha, one Cholesky factor of {self.n} rows"
        self._verbs, xp = kind_of(S)
        tau = float(xp.sum(abs(self._verbs.diagonal(S))) / xp.sum(xp.square(Q))) if Q.shape[1] else 0.0
        self._Q = Q
        self._tau = tau
        self._gram = gram
        self._lock = RLock()
        self._L = self._factor(S)
        self._inverse = None
        self._pivots: Any = None
        self._MQ = self._verbs.cholesky_solve(self._L, Q)
        self._QMQ = Q.T @ self._MQ
        self.G = self._verbs.solve(self._QMQ, self._MQ.T) if Q.shape[1] else self._MQ.T

    @classmethod
    def from_problem(cls, problem, rows, K=None):
        gram = partial(problem.whitened_gram, rows)
        return cls(problem.whitened_gram(rows, K), problem.whitened_columns(rows), problem.alpha, gram)

    @classmethod
    def path(cls, problem, rows, n_alphas=None, *, explicit=False):
        """By eigenvectors; None for few alphas, and for weights so uneven that a factor for each is more accurate."""
        if n_alphas is not None and cost.factors_pay(len(rows), n_alphas, explicit=explicit):
            return None
        root = problem.root(rows)
        xp = problem.xp
        return None if xp.max(root) > UNEVEN * xp.min(root) else Spectrum.path(problem, rows)

    def __getstate__(self):
        with self._lock:
            state = self.__dict__.copy()
        del state["_lock"], state["_verbs"]
        return state

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._verbs = kind_of(self._Q).verbs
        self._lock = RLock()

    def _factor(self, S):
        """The Cholesky factor of S + tau Q Q' + alpha I, in the memory of S."""
        if self._Q.shape[1]:
            S = self._verbs.add_outer_(S, self._Q, self._Q, self._tau)
        return self._verbs.cholesky_(self._verbs.add_diagonal_(S, self.alpha))

    def _lower(self):
        """L, computed again if an interrupted inversion has destroyed it; the caller holds the lock."""
        if self._L is None:
            L = self._factor(self._gram())
            pivots = self._verbs.diagonal(L) ** 2
            if largest(abs(pivots - self._pivots)) > SAME * largest(self._pivots):
                raise RuntimeError(
                    f"the kernel matrix of {self.n} rows is not the one of the fit any more: X was changed in place."
                    " Fit again; kernel='precomputed' does not copy X."
                )
            self._L = L
        return self._L

    def _solve(self, Y):
        """M^-1 Y."""
        if self._inverse is None:
            with self._lock:
                if self._inverse is None:
                    L = self._lower()
                    return self._verbs.cholesky_solve(L, Y)
        return self._verbs.lower_times(self._inverse, self._verbs.lower_times(self._inverse, Y), transpose=True)

    @property
    def _Linv(self):
        if self._inverse is None:
            with self._lock:
                if self._inverse is None:
                    self._invert()
        return self._inverse

    def _invert(self):
        """Replace L by its inverse; the caller holds the lock."""
        L = self._lower()
        if self._gram is None:
            L = self._verbs.copy(L)
        else:
            self._pivots = self._verbs.diagonal(L) ** 2
            self._L = None  # before the inversion overwrites it
        self._inverse = self._verbs.invert_lower_(L)
        self._L = None

    @cached_property
    def Omega(self):  # type: ignore[override]
        """(Q' M^-1 Q)^-1 of the M without tau Q Q'."""
        return self._verbs.inverse(self._QMQ) - self._tau * self._verbs.eye(self._Q, self._Q.shape[1])

    def apply(self, Y):
        return self._solve(Y) - self._MQ @ (self.G @ Y)

    def diagonal(self):
        rows = self._Linv.T  # C-ordered: row i holds column i of L^-1
        return self._verbs.dots(rows, rows) - self._verbs.dots(self._MQ, self.G.T)

    def columns(self, rows):
        columns = self._verbs.lower_times(self._Linv, self._verbs.take(self._Linv, rows, 1), transpose=True)
        return columns - self._MQ @ self._verbs.take(self.G, rows, 1)

    def explicit(self):
        """The same P as an n x n array: L'^-1 L^-1, n^3/3 flops more."""
        cost.require_explicit(self.n, self.G)
        P = self._verbs.lower_square(self._Linv)
        if len(self.G):
            P = self._verbs.add_outer_(P, self._MQ, self._verbs.row_major(self.G.T), -1.0)
        return Explicit(P, self.G, self.alpha)

    def block(self, rows):
        V = self._verbs.take(self._Linv[np.min(rows) :], rows, 1)  # zero above the first of these rows
        return self._verbs.product(V, V, transpose_a=True) - self._MQ[rows] @ self._verbs.take(self.G, rows, 1)
