"""The verbs of P, and P itself as an array.

For a Gram matrix S, a penalty alpha > 0 and unpenalised columns Q (n x q, q may be 0):

    M = S + alpha I        G = (Q' M^-1 Q)^-1 Q' M^-1        P = M^-1 - M^-1 Q G

P is symmetric, positive semi-definite, P Q = 0, and [P G'; G .] is the inverse of [M Q; Q' 0]. Sample weights are not
seen here: with W^1/2 S W^1/2, W^1/2 Q and W^1/2 Y in place of S, Q, Y the same formulas hold (``heldout.problem``).

Every holder subclasses :class:`Precision`, which only needs ``apply``, ``G``, ``diagonal`` and ``columns``; a holder
overrides ``block_times`` and ``residual`` where it knows a cheaper way. To add a holder, write these and add it to
the table of cases in ``tests/cases.py``: the laws and the comparison with refits then run on it.
"""

from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np
from sklearn.utils import gen_batches

from foldless.linalg.memory import require_memory
from foldless.linalg.numpy import LinAlgError, cholesky_, cholesky_solve, product, solve


class SingularBlockError(ValueError):
    """The training part left by a held-out set does not determine the model."""

    @classmethod
    def of(cls, rows, n):
        """The error for one held-out set."""
        return cls(
            f"leaving out {len(rows)} of {n} rows leaves a training part that does not determine the model: too few"
            " rows for the unpenalised columns, or an alpha too small for this precision."
        )


class Precision(ABC):
    """P and G of one regularised least-squares problem."""

    n: int
    alpha: float
    definite: bool = True  # whether blocks of P are positive definite
    choice: str = ""  # why this holder was taken, for those who want to know
    _last: tuple = (None, None)

    @property
    @abstractmethod
    def G(self):
        """(q, n): B = G Y are the coefficients of the unpenalised columns."""

    @abstractmethod
    def apply(self, Y):
        """P Y for Y of shape (n, m)."""

    @abstractmethod
    def diagonal(self):
        """diag P, shape (n,)."""

    @abstractmethod
    def columns(self, rows):
        """P[:, rows]."""

    def squared_diagonal(self):
        """diag P^2, shape (n,): squared norms of the columns, some at a time."""
        batches = gen_batches(self.n, 512)
        return np.concatenate([np.square(self.columns(np.arange(self.n)[rows])).sum(0) for rows in batches])

    def block(self, rows):
        """P[rows, rows]."""
        return self.columns(rows)[rows]

    def diagonal_blocks(self, rows):
        """P[rows_i, rows_i] for each row_i of ``rows`` (k, t), shape (k, t, t)."""
        if rows.shape[1] == 1:
            return self.diagonal()[rows][:, :, None]
        return np.stack([self.block(each) for each in rows])

    def _same_block(self, rows):
        """``block(rows)``, kept while the same held-out set is asked again."""
        if self._last[0] is not rows:
            self._last = rows, self.block(rows)
        return self._last[1]

    def block_times(self, rows, Y):
        """P[rows, rows] Y."""
        return self._same_block(rows) @ Y

    def factor(self, rows):
        """Lower Cholesky factor of P[rows, rows], kept like the block."""
        block = self._same_block(rows)
        if len(self._last) == 2:
            self._last = rows, block, cholesky_(np.array(block, order="C"))
        return self._last[2]

    def lost(self, blocks):
        """Which of the blocks (k, t, t) of P have no digits left, (k,)."""
        return np.zeros(len(blocks), bool)

    def keeps_digits(self, rows):
        """Whether Schur complements of P[rows, rows] can be trusted; holders that know better say so."""
        return True

    def residual(self, rows, A, Y):
        """Held-out residuals E = P[rows, rows]^-1 A[rows], for A = P Y of shape (n, m)."""
        try:
            if self.definite:
                return cholesky_solve(self.factor(rows), A[rows])
            return solve(self._same_block(rows), A[rows])
        except LinAlgError:
            raise SingularBlockError.of(rows, self.n) from None

    def loo_residual(self, A, Y):
        """E_i = A_i / P_ii for every row."""
        return A / self.diagonal()[:, None]

    def explicit(self):
        """The same P as an n x n array."""
        require_memory((self.n, self.n), self.G.dtype, "the matrix P")
        return Explicit(self.columns(np.arange(self.n)), self.G, self.alpha)


class Explicit(Precision):
    """P as an array: for what needs most of its entries (nested leave-one-out, pairs, both bases)."""

    def __init__(self, P, G, alpha, *, definite=True):
        self.P, self._G, self.alpha, self.definite = P, G, alpha, definite
        self.n = P.shape[0]

    @property
    def G(self):
        """(q, n): B = G Y are the coefficients of the unpenalised columns."""
        return self._G

    def apply(self, Y):
        """P Y for Y of shape (n, m)."""
        return product(self.P, Y)

    @cached_property
    def _diagonal(self):
        return self.P.diagonal().copy()

    def diagonal(self):
        """diag P, shape (n,)."""
        return self._diagonal

    def columns(self, rows):
        """P[:, rows]; rows of a symmetric matrix are its columns, and lie together in memory."""
        return self.P[rows].T

    def block(self, rows):
        """P[rows, rows]."""
        return self.P[np.ix_(rows, rows)]

    def diagonal_blocks(self, rows):
        """P[rows_i, rows_i] for each row_i of ``rows`` (k, t), shape (k, t, t)."""
        return self.P[rows[:, :, None], rows[:, None, :]]

    def explicit(self):
        """P is explicit already."""
        return self
