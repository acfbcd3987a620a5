"""Kernels that the user gives: a function, or the Gram matrix itself."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from foldless.kernels.base import Kernel, dense
from foldless.linalg.types import Matrix


@dataclass(frozen=True)
class Custom(Kernel):
    """A user's function k(X, Z) that returns the Gram matrix."""

    function: Callable
    surely_symmetric: ClassVar[bool] = False

    def gram(self, X: Matrix, Z: Matrix | None = None) -> np.ndarray:
        """Gram matrix of shape (len(X), len(Z))."""
        symmetric, Z = Z is None, X if Z is None else Z
        try:
            K = self.function(X, Z)
        except Exception as error:
            raise ValueError(
                f"kernel={self.function!r} failed on matrices of shapes {X.shape} and {Z.shape}; it must take two"
                f" matrices and return their Gram matrix. It said: {error}"
            ) from error
        K = np.array(dense(K), dtype=X.dtype, order="C")
        if K.shape != (X.shape[0], Z.shape[0]):
            raise ValueError(
                f"kernel={self.function!r} returned shape {K.shape} for X of {X.shape[0]} and Z of {Z.shape[0]} rows;"
                f" it must take two matrices and return a Gram matrix of shape {(X.shape[0], Z.shape[0])}."
            )
        if symmetric:
            check_symmetric(K, f"the Gram matrix of kernel={self.function!r}")
        return K

    def diag(self, X: Matrix) -> np.ndarray:
        """k(x, x) for each row of X."""
        return np.concatenate([self.gram(X[i : i + 1]).ravel() for i in range(X.shape[0])])


@dataclass(frozen=True)
class Precomputed(Kernel):
    """X is the Gram matrix itself: rows are samples, columns the training rows."""

    name: ClassVar[str] = "precomputed"
    takes_rows: ClassVar[bool] = False
    surely_symmetric: ClassVar[bool] = False

    def rows(self, X: Matrix, index: Any) -> Matrix:
        """Rows and columns of the Gram matrix."""
        return X[index][:, index]

    def block(self, X: Matrix, rows: Any, columns: Any) -> np.ndarray:
        """K[rows, columns]."""
        return np.ascontiguousarray(dense(X[rows][:, columns]))

    def against(self, X_new: Matrix, X: Matrix, columns: Any) -> np.ndarray:
        """Columns of the kernel between new rows and all rows."""
        return dense(X_new[:, columns])

    def joined(self, X: Matrix, more: Matrix) -> Matrix:
        """The Gram matrix of all rows; ``more`` holds the kernel of the new rows with all, old and new."""
        n = X.shape[0]
        parts = [[X, more[:, :n].T], [more[:, :n], more[:, n:]]]
        return sp.block_array(parts).tocsr() if sp.issparse(more) else np.block(parts)

    def gram(self, X: Matrix, Z: Matrix | None = None) -> np.ndarray:
        """A copy of X: what is computed from it may overwrite it."""
        if Z is not None:
            raise ValueError("A precomputed kernel has no rows to compare; slice the Gram matrix instead.")
        return np.array(dense(X), order="C")

    def diag(self, X: Matrix) -> np.ndarray:
        """The diagonal of X."""
        return X.diagonal()


def check_symmetric(K: Matrix, what: str) -> None:
    """Refuse a Gram matrix that differs from its transpose by more than rounding."""
    gap, size = abs(K - K.T).max(), abs(K).max()
    if gap > 1e3 * np.finfo(K.dtype).eps * size:
        raise ValueError(
            f"{what} is not symmetric: entries and their mirror images differ by up to {gap:.3g} (largest entry"
            f" {size:.3g}). Use (K + K.T) / 2 if that is what is meant."
        )
