"""The verbs of P, one held-out block of it, and P itself as an array.

For a Gram matrix S, a penalty alpha > 0 and unpenalised columns Q (n x q, q may be 0):

    M = S + alpha I        G = (Q' M^-1 Q)^-1 Q' M^-1        P = M^-1 - M^-1 Q G

P is symmetric, positive semi-definite, P Q = 0, and [P G'; G .] is the inverse of [M Q; Q' 0]. Sample weights are not
seen here: with W^1/2 S W^1/2, W^1/2 Q and W^1/2 Y in place of S, Q, Y the same formulas hold (``heldout.problem``).

Every holder subclasses :class:`Precision`, which only needs ``apply``, ``G``, ``diagonal`` and ``columns``; a holder
overrides the other verbs where it knows a cheaper way. To add a holder, write these and add it to the table of cases
of the tests: the laws and the comparison with refits then run on it.
"""

from abc import ABC, abstractmethod
from copy import copy
from functools import cached_property

import numpy as np
from sklearn.utils import gen_batches

from foldless.linalg.memory import require_memory
from foldless.linalg.numpy import LinAlgError, cholesky_, cholesky_solve, lu_factor, lu_solve, product


class SingularBlockError(ValueError):
    """The training part left by a held-out set does not determine the model."""

    @classmethod
    def of(cls, rows, n):
        """The error for one held-out set."""
        return cls(
            f"leaving out {len(rows)} of {n} rows leaves a training part that does not determine the model: too few"
            " rows for the unpenalised columns, or an alpha too small for this precision."
        )


class HeldOutBlock:
    """The ``block`` P[rows, rows] of one held-out set, factorised once for all that is solved with it."""

    def __init__(self, precision, rows):
        self.precision = precision
        self.rows = rows

    @cached_property
    def block(self):
        return self.precision.block(self.rows)

    @cached_property
    def factor(self):
        return cholesky_(np.array(self.block, order="C"))

    @cached_property
    def _lu(self):
        return lu_factor(self.block)

    def times(self, Y):
        """P[rows, first of them] Y for the first of the rows, as many as Y has."""
        return self.block[:, : len(Y)] @ Y

    def solve(self, B):
        return cholesky_solve(self.factor, B) if self.precision.definite else self.solve_general(B)

    def solve_general(self, B):
        """The same without a Cholesky factor, which J has not and rounding may take from P."""
        return lu_solve(self._lu, B)

    def residual(self, A, Y):
        """Held-out residuals E = P[rows, rows]^-1 A[rows], for A = P Y of shape (n, m)."""
        try:
            return self.solve(A[self.rows])
        except LinAlgError:
            raise SingularBlockError.of(self.rows, self.precision.n) from None

    @property
    def keeps_digits(self):
        """Whether Schur complements of the block can be trusted."""
        return True


class Precision(ABC):
    """P and G of one regularised least-squares problem."""

    n: int
    alpha: float
    G: np.ndarray  # (q, n): B = G Y are the coefficients of the unpenalised columns
    choice: str = ""  # why this holder was taken, for those who want to know
    definite: bool = True  # whether blocks of P are positive definite
    through_features: bool = False  # whether P is held through explicit features, and nothing n x n is formed
    grows: bool = False  # whether rows can be learnt and forgotten
    current: bool = True  # whether P is still that of its rows
    drift: float = 0.0  # largest relative residual that updates of P have met

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
        return self.explicit().diagonal_blocks(rows)

    def held_out(self, rows) -> HeldOutBlock:
        """The block of one held-out set, with what is solved by it."""
        return HeldOutBlock(self, rows)

    def lost(self, blocks):
        """Which of the blocks (k, t, t) of P have no digits left, (k,)."""
        return np.zeros(len(blocks), bool)

    def loo_residual(self, A, Y):
        """E_i = A_i / P_ii for every row."""
        return A / self.diagonal()[:, None]

    def feature_weights(self, rows):
        """(Phi' P)[:, rows] where P is held through features Phi: what targets at these rows add to their weights."""
        return None

    def explicit(self):
        """The same P as an n x n array."""
        require_memory((self.n, self.n), self.G.dtype, "the matrix P")
        return Explicit(self.columns(np.arange(self.n)), self.G, self.alpha)

    def prepare_blocks(self):
        """The same P in the form that serves many blocks."""
        return self.explicit()


class OfEveryAlpha(Precision):
    """P by eigenvalues s, of which all but the weights 1 / (s + alpha) serves every alpha."""

    serves_every_alpha = True
    s: np.ndarray

    @cached_property
    def inverted(self):
        return 1.0 / (self.s + self.alpha)

    def with_alpha(self, alpha):
        """P for another alpha."""
        other = copy(self)
        for name in ("inverted", "_Psi", "G"):
            vars(other).pop(name, None)
        other.alpha = alpha
        return other


class Explicit(Precision):
    """P as an array: for what needs most of its entries (nested leave-one-out, pairs, both bases)."""

    def __init__(self, P, G, alpha, *, definite=True):
        self.P = P
        self.G = G
        self.alpha = alpha
        self.definite = definite
        self.n = P.shape[0]

    def apply(self, Y):
        return product(self.P, Y)

    def diagonal(self):
        return self.P.diagonal().copy()

    def columns(self, rows):
        """P[:, rows]; rows of a symmetric matrix are its columns, and lie together in memory."""
        return self.P[rows].T

    def block(self, rows):
        return self.P[np.ix_(rows, rows)]

    def diagonal_blocks(self, rows):
        return self.P[rows[:, :, None], rows[:, None, :]]

    def explicit(self):
        return self
