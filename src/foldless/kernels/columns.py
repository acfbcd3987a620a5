"""A kernel on some columns of X."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from foldless._engine.linalg import take
from foldless._engine.linalg.types import Matrix
from foldless.kernels.base import Kernel, check_kernels


@dataclass(frozen=True)
class On(Kernel):
    """A kernel on some columns of X: numbers, a slice, or a mask with one entry for each column.

    "scale" is that of these columns. Parameters of the kernel are named ``kernel__gamma``.

    Examples
    --------
    >>> import numpy as np
    >>> from foldless.kernels import RBF, Linear, On
    >>> kernel = On([0, 1], RBF("scale")) + On(slice(2, None), Linear())
    >>> kernel.resolved(np.eye(4))
    On([0, 1], RBF(gamma=2.6666666666666665)) + On(slice(2, None, None), Linear())
    """

    columns: Any
    kernel: Kernel

    def __post_init__(self):
        check_kernels("kernel", [self.kernel])

    def __repr__(self):
        return f"On({self.columns!r}, {self.kernel!r})"

    def _selected(self, X):
        """The columns of X that the kernel is applied to."""
        columns = self.columns if isinstance(self.columns, slice) else np.atleast_1d(self.columns)
        return X[:, columns] if sp.issparse(X) else take(X, columns, 1)

    def resolved(self, X: Matrix, sample_weight: ArrayLike | None = None) -> Self:
        try:
            selected = self._selected(X)
        except IndexError:
            selected = None
        if selected is None or selected.ndim != 2 or not selected.shape[1]:
            raise ValueError(
                f"columns={self.columns!r} must be columns of X, which has {X.shape[1]}: numbers from 0, a slice, or a"
                " mask with one entry for each; at least one."
            )
        return replace(self, kernel=self.kernel.resolved(selected, sample_weight))

    def standardized(self, center: np.ndarray, spread: np.ndarray) -> Self:
        try:
            selected = self._selected(np.stack([center, spread]))
        except IndexError:  # ``resolved`` raises the error
            return self
        return replace(self, kernel=self.kernel.standardized(*selected))

    def default_grid(self, X: Matrix) -> dict:
        return {f"kernel__{name}": values for name, values in self.kernel.default_grid(self._selected(X)).items()}

    def gram(self, X: Matrix, Z: Matrix | None = None) -> np.ndarray:
        return self.kernel.gram(self._selected(X), None if Z is None else self._selected(Z))

    def diag(self, X: Matrix) -> np.ndarray:
        return self.kernel.diag(self._selected(X))

    def n_features(self, X: Matrix) -> int | None:
        return self.kernel.n_features(self._selected(X))

    def features(self, X: Matrix) -> Any:
        return self.kernel.features(self._selected(X))

    def pullback(self, R: np.ndarray, X: Matrix, K: np.ndarray) -> dict:
        return {f"kernel__{name}": value for name, value in self.kernel.pullback(R, self._selected(X), K).items()}

    def caution(self, X: Matrix) -> str | None:
        return self.kernel.caution(self._selected(X))
