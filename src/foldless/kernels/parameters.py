"""Parameters of kernels: how a value is checked and made a number, and where searches look for a better one.

A parameter is a field of the kernel's class, ``gamma: Annotated[float, Width()] = 1.0``, and this its kind. Only X and
weights of rows are seen, never labels.
"""

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from foldless.linalg.types import Matrix


@dataclass(frozen=True)
class Parameter:
    """A value that is taken as it is; searches move it only where a grid names it."""

    bounds: tuple = ()
    grid: tuple = ()
    differentiable: bool = False
    per_feature: bool = False

    def resolved(self, name: str, value: Any, kernel: str, X: Matrix, sample_weight: ArrayLike | None) -> Any:
        """The value of the parameter ``name`` of the kernel named ``kernel``, for the rows X and their weights."""
        return value

    def from_data(self, value: Any) -> bool:
        """Whether the value is a name for a number that comes from the data."""
        return False

    def limits(self, value: Any) -> tuple[float, float]:
        """(low, high) of continuous searches."""
        return self.bounds

    def values(self, X: Matrix) -> list:
        """Values of the default grid."""
        return list(self.grid)


@dataclass(frozen=True)
class Number(Parameter):
    """A finite number > 0, or >= 0."""

    bounds: tuple = (1e-4, 1e4)
    differentiable: bool = True
    zero: bool = False  # whether 0 is allowed

    def resolved(self, name: str, value: Any, kernel: str, X: Matrix, sample_weight: ArrayLike | None) -> Any:
        if not isinstance(value, Real) or not np.isfinite(float(value)) or value < 0 or (value == 0 and not self.zero):
            low = ">= 0" if self.zero else "> 0"
            raise ValueError(f"{name}={value!r} must be a finite number {low} for kernel={kernel!r}.")
        return value


@dataclass(frozen=True)
class Width(Parameter):
    """A factor of differences or products of features: one number, one for each feature, or "scale".

    "scale" is 1 / (n_features * X.var()), rows repeated by their weights. ``bounds`` and ``grid`` are factors: of the
    largest value at the start, and of "scale".
    """

    bounds: tuple = (1e-5, 1e3)
    grid: tuple = tuple(np.logspace(-2, 1, 10).tolist())
    differentiable: bool = True
    per_feature: bool = True

    def resolved(self, name: str, value: Any, kernel: str, X: Matrix, sample_weight: ArrayLike | None) -> Any:
        if isinstance(value, str):
            if value != "scale":
                raise ValueError(f"{name}={value!r} is unknown; use 'scale', a positive number, or one per feature.")
            return _scale(name, X, sample_weight)
        numbers = np.asarray(value, dtype=float)
        shape = numbers.shape
        d = X.shape[1]
        if shape not in ((), (d,)):
            raise ValueError(f"{name} has shape {shape}; use one number or one value for each of the {d} features.")
        if not np.all(np.isfinite(numbers)) or np.any(numbers < 0) or not np.any(numbers > 0):
            raise ValueError(f"{name}={value!r} must be positive and finite (zero only switches single features off).")
        return numbers if numbers.ndim else float(numbers)

    def from_data(self, value: Any) -> bool:
        return isinstance(value, str)

    def limits(self, value: Any) -> tuple[float, float]:
        """(low, high) about the largest value."""
        low, high = self.bounds
        middle = float(np.max(value))
        return low * middle, high * middle

    def values(self, X: Matrix) -> list:
        """Multiples of "scale"."""
        return (_scale("gamma", X, None) * np.array(self.grid)).tolist()


def _scale(name, X, sample_weight):
    total = X.shape[1] * _variance(X, sample_weight)
    if not np.isfinite(total):
        raise ValueError(f"{name}='scale' overflows: X is too large to be squared; rescale X or give {name}.")
    return 1.0 / total if total > 1e-307 else 1.0 / X.shape[1]  # no variance, or one without an inverse


def _variance(X, sample_weight):
    """Variance of all entries of X, rows repeated by their weights."""
    share = np.ones(X.shape[0]) if sample_weight is None else np.asarray(sample_weight, float)
    share = share / (share.sum() * X.shape[1])
    # Divided by the largest entry first: squares of 1e200 would overflow.
    largest = float(abs(X).max()) if X.shape[0] else 0.0
    if largest == 0 or not np.isfinite(largest):
        return 0.0
    Z = X / largest
    mean = float(share @ np.asarray(Z.sum(1)).ravel())
    if sp.issparse(Z):
        zeros = Z.shape[1] - np.diff(Z.indptr)
        deviations = sp.csr_array((np.square(Z.data - mean), Z.indices, Z.indptr), Z.shape)
        spread = float(share @ (np.asarray(deviations.sum(1)).ravel() + zeros * mean**2))
    else:
        spread = float(share @ np.square(Z - mean).sum(1))
    return spread * largest * largest if spread > (100 * np.finfo(float).eps) ** 2 else 0.0
