"""A kernel on some columns of X, and a kernel of columns times numbers."""

from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from foldless._engine.linalg import take
from foldless._engine.linalg.types import Matrix
from foldless.kernels.base import Kernel, check_kernels
from foldless.kernels.matrices import scale
from foldless.kernels.parameters import Scales

FEW = 8  # scales that a representation shows


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


@dataclass(frozen=True, eq=False)
class Scaled(Kernel):
    """A kernel of columns that are multiplied by ``scales`` >= 0, one for each; columns of scale 0 are left out.

    Searches tune the parameters of the kernel, named ``kernel__gamma``, and keep the scales. Metric steps of a search
    with ``kernel="auto"`` learn them.

    Examples
    --------
    >>> import numpy as np
    >>> from foldless.kernels import Laplacian, Scaled
    >>> kernel = Scaled(Laplacian(0.1), [1.0, 0.0, 2.0])
    >>> X = np.random.default_rng(0).normal(size=(5, 3))
    >>> np.allclose(kernel.gram(X), Laplacian([0.1, 0.0, 0.2]).gram(X))
    True
    """

    kernel: Kernel
    scales: Annotated[Any, Scales()]

    def __post_init__(self):
        check_kernels("kernel", [self.kernel])
        vars(self).update(scales=np.asarray(self.scales, float))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scaled) and self.kernel == other.kernel and np.array_equal(self.scales, other.scales)

    def __hash__(self) -> int:
        return hash((self.kernel, self.scales.tobytes()))

    def __repr__(self):
        scales = self.scales.round(3).tolist()
        shown = (
            scales if len(scales) <= FEW else f"<{len(scales)} scales, {np.count_nonzero(self.scales == 0)} of them 0>"
        )
        return f"Scaled({self.kernel!r}, {shown})"

    @property
    def _used(self):
        """The columns that are not left out; all of them if none has a scale above 0."""
        used = self.scales > 0
        return slice(None) if used.all() or not used.any() else np.flatnonzero(used)

    def _scaled(self, X):
        """X as the kernel sees it."""
        used = self._used
        return scale(X[:, used] if sp.issparse(X) else take(X, used, 1), self.scales[used])

    def resolved(self, X: Matrix, sample_weight: ArrayLike | None = None) -> Self:
        kind = self.parameters()["scales"]
        scales = kind.resolved("scales", self.scales, type(self).__name__, X, sample_weight)
        return replace(self, scales=scales, kernel=self.kernel.resolved(self._scaled(X), sample_weight))

    def standardized(self, center: np.ndarray, spread: np.ndarray) -> Self:
        used, scales = self._used, self.scales[self._used]
        if len(center) != len(self.scales):  # ``resolved`` raises the error
            return self
        return replace(self, kernel=self.kernel.standardized(center[used] * scales, spread[used]))

    def default_grid(self, X: Matrix) -> dict:
        return {f"kernel__{name}": values for name, values in self.kernel.default_grid(self._scaled(X)).items()}

    def gram(self, X: Matrix, Z: Matrix | None = None) -> np.ndarray:
        return self.kernel.gram(self._scaled(X), None if Z is None else self._scaled(Z))

    def diag(self, X: Matrix) -> np.ndarray:
        return self.kernel.diag(self._scaled(X))

    def n_features(self, X: Matrix) -> int | None:
        return self.kernel.n_features(self._scaled(X))

    def features(self, X: Matrix) -> Any:
        return self.kernel.features(self._scaled(X))

    def pullback(self, R: np.ndarray, X: Matrix, K: np.ndarray) -> dict:
        return {f"kernel__{name}": value for name, value in self.kernel.pullback(R, self._scaled(X), K).items()}

    def pullback_between(self, R: np.ndarray, X: Matrix, Z: Matrix) -> dict:
        derivatives = self.kernel.pullback_between(R, self._scaled(X), self._scaled(Z))
        return {f"kernel__{name}": value for name, value in derivatives.items()}

    def slopes(self, coefficients: np.ndarray, X: Matrix, Z: Matrix) -> np.ndarray:
        slopes = np.zeros((X.shape[0], X.shape[1], coefficients.shape[2]), coefficients.dtype)
        inner = self.kernel.slopes(coefficients, self._scaled(X), self._scaled(Z))
        slopes[:, self._used] = inner * self.scales[self._used, None]
        return slopes

    def caution(self, X: Matrix) -> str | None:
        return self.kernel.caution(self._scaled(X))
