"""The verbs of P, one held-out block of it, and P itself as an array.

For a Gram matrix S, a penalty alpha > 0 and unpenalised columns Q (n x q, q may be 0):

    M = S + alpha I        G = (Q' M^-1 Q)^-1 Q' M^-1        P = M^-1 - M^-1 Q G

P is symmetric, positive semi-definite, P Q = 0, and [P G'; G .] is the inverse of [M Q; Q' 0]. Sample weights are not
seen here: with W^1/2 S W^1/2, W^1/2 Q and W^1/2 Y in place of S, Q, Y the same formulas hold (``heldout.problem``).

Every holder subclasses :class:`Precision`, which only needs ``apply``, ``G``, ``diagonal`` and ``columns``; a holder
overrides the other verbs where it knows a cheaper way, and says when it is to be taken (``suits``). To add one, write
these, put it into the list of ``precision.choose``, and add it to the table of cases of the tests: the laws and the
comparison with refits then run on it. Its costs are those of n x n arrays unless it states others (``fit_cost``,
``removal_cost``).
"""

from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np

from foldless._engine.linalg import (
    LinAlgError,
    NotPositiveDefiniteError,
    cholesky_,
    cholesky_solve,
    concat,
    copy,
    diagonal,
    dots,
    like,
    lu_factor,
    lu_solve,
    namespace,
    orthonormal,
    product,
    right_solve,
    take_block,
    take_blocks,
    upper_solve,
)
from foldless._engine.linalg.batches import gen_batches
from foldless._engine.precision import cost


def omega_of(M, Q, G):
    """(Q' M^-1 Q)^-1 from M G' = Q Omega."""
    Qo, R = orthonormal(Q)
    return upper_solve(R, Qo.T @ (M @ G.T))


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
    """The ``block`` P[rows, rows] of one held-out set, factorised once for all that is solved with it.

    It knows nothing of targets: models of any targets share it. ``block`` and ``columns`` are computed unless they are
    known.
    """

    def __init__(self, precision, rows, block=None, columns=None):
        self.precision = precision
        self.rows = rows
        self.has_columns = columns is not None  # or whether they have been computed
        if block is not None:
            self.block = block
        if columns is not None:
            self.columns = columns

    @cached_property
    def block(self):
        return self.precision.block(self.rows)

    @cached_property
    def factor(self):
        return cholesky_(copy(self.block))

    @cached_property
    def has_factor(self):
        """Whether rounding leaves the block a Cholesky factor."""
        try:
            _ = self.factor
        except NotPositiveDefiniteError:
            return False
        return True

    @cached_property
    def _lu(self):
        return lu_factor(self.block)

    @cached_property
    def columns(self):
        """P[:, rows]."""
        columns = self.precision.columns(self.rows)
        self.has_columns = True
        return columns

    @cached_property
    def halves(self):
        """V, W (t, n) with V' W = P_,te P_te,te^-1 P_te, : what every Schur complement takes away.

        V = W = L^-1 P_te, by the Cholesky factor L of P_te,te where rounding leaves one.
        """
        if not self.has_factor:  # a refit of low-rank features may have given E
            return self.columns.T, self.solve_general(self.columns.T)
        V = right_solve(self.columns, self.factor).T
        return V, V

    def remaining_diagonal(self, diagonal):
        """The diagonal (n,) of the P without these rows, at the others; from the ``diagonal`` of P."""
        return diagonal - dots(*self.halves, axis=0)

    def times(self, Y):
        """P[rows, first of them] Y for the first of the rows, as many as Y has."""
        return self.block[:, : len(Y)] @ Y

    def solve(self, B):
        return cholesky_solve(self.factor, B)

    def solve_general(self, B):
        """The same without a Cholesky factor, which rounding may take from P."""
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
    Omega: np.ndarray | None = None  # (Q' M^-1 Q)^-1 where that is known; P and G alone do not give it
    planned: str = "{n} rows"  # how P of n rows, or of r features, will be held
    choice: str = ""  # why this holder was taken, for those who want to know
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
        xp = namespace(self.G)
        columns = (self.columns(np.arange(self.n)[rows]) for rows in gen_batches(self.n, 512))
        return concat([xp.sum(xp.square(values), axis=0) for values in columns])

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

    def ill_conditioned(self, blocks):
        """Which of the blocks (k, t, t) of P have no digits left, (k,), as an array of NumPy."""
        return np.zeros(len(blocks), bool)

    def loo_residual(self, A, Y, diagonal):
        """E_i = A_i / P_ii for every row, with ``diagonal`` = diag P."""
        return A / diagonal[:, None]

    def feature_weights(self, rows):
        """(Phi' P)[:, rows] where P is held through features Phi: what targets at these rows add to their weights."""
        return None

    def explicit(self):
        """The same P as an n x n array."""
        cost.require_explicit(self.n, self.G)
        return Explicit(self.columns(np.arange(self.n)), self.G, self.alpha)

    def prepare_blocks(self):
        """The same P in the form that serves many blocks."""
        return self.explicit()

    # -- when it is taken; a ``problem`` (``heldout.problem``) brings what P is made of, whitened ---------------------

    @classmethod
    def suits(cls, problem, n):
        """Whether P of n rows is to be held so."""
        return True

    @classmethod
    def from_problem(cls, problem, rows, K=None):
        """P of ``rows``; K = gram(rows, rows) where known. NotPositiveDefiniteError leaves it to the next holder."""
        return cls(problem.whitened_gram(rows, K), problem.whitened_columns(rows), problem.alpha)  # type: ignore[call-arg]

    @classmethod
    def path(cls, problem, rows, n_alphas=None, *, explicit=False):
        """The :class:`Path` of ``rows`` for ``n_alphas`` (None: very many); None where every alpha is held by itself.

        ``explicit``: P will be wanted as an array.
        """
        return None

    @classmethod
    def fit_cost(cls, problem, n, *, nested=False):
        """Flops of a fit of n rows; ``nested``: with leave-one-out inside."""
        return cost.dense_fit(n, problem.n_features if problem.kernel.approximates else None, nested=nested)

    @classmethod
    def removal_cost(cls, problem, n, t, *, nested=False):
        """Flops of leaving t of n rows out of P; ``nested``: with leave-one-out among the others."""
        return cost.dense_removal(n, t, nested=nested)


class Path(ABC):
    """P of any alpha; one that ``serves_every_alpha`` by one decomposition is an :class:`AlphaPath`."""

    serves_every_alpha = False

    @abstractmethod
    def with_alpha(self, alpha) -> Precision:
        """P for this alpha."""


class AlphaPath(Precision, Path):
    """P by eigenvectors U and eigenvalues s, of which all but the weights 1 / (s + alpha) serves every alpha."""

    serves_every_alpha = True
    s: np.ndarray
    U: np.ndarray

    @cached_property
    def inverted(self):
        return 1.0 / (self.s + self.alpha)

    def loo_path(self, Y, alphas):
        """Leave-one-out residuals for all alphas, shape (len(alphas), n, m)."""
        return self.path_apply(Y, alphas) / self.path_diagonal(alphas)[:, :, None]

    def path_apply(self, Y, alphas):
        """U diag(1 / (s + alpha)) U' Y for all alphas, (len(alphas), n, m)."""
        k, m = len(alphas), Y.shape[1]
        xp = namespace(self.U)
        weights = 1.0 / (self.s[:, None] + like(self.s, alphas))  # (n - q, k)
        stacked = weights[:, :, None] * product(self.U, Y, transpose_a=True)[:, None, :]
        applied = product(self.U, xp.reshape(stacked, (-1, k * m)))
        return xp.permute_dims(xp.reshape(applied, (-1, k, m)), (1, 0, 2))

    def path_diagonal(self, alphas):
        """The diagonal of the same, shape (len(alphas), n)."""
        weights = 1.0 / (self.s[:, None] + like(self.s, alphas))
        return product(self.U * self.U, weights).T


class Explicit(Precision):
    """P as an array: for what needs most of its entries (nested leave-one-out, pairs)."""

    def __init__(self, P, G, alpha):
        self.P = P
        self.G = G
        self.n = P.shape[0]
        self.alpha = alpha

    def apply(self, Y):
        return product(self.P, Y)

    def diagonal(self):
        return copy(diagonal(self.P))

    def columns(self, rows):
        """P[:, rows]; rows of a symmetric matrix are its columns, and lie together in memory."""
        return self.P[rows].T

    def block(self, rows):
        return take_block(self.P, rows, rows)

    def diagonal_blocks(self, rows):
        return take_blocks(self.P, rows)

    def explicit(self):
        return self
