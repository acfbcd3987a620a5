"""Kernels of inner products.

    linear   x.z                  poly     (sum_k g_k x_k z_k + coef0)^degree
    cosine   x.z / (|x| |z|)      boolean  (1 + eta)^(x.z)

``gamma`` (g) is one number for all features or one per feature: a scaling of the columns of X. The boolean kernel is
the one of Cawley (2006, section V) for binary features.
"""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils.extmath import row_norms

from foldless.kernels.base import FeatureMap, Kernel, dense, dot, inner_derivative, scale, sum_by_gamma
from foldless.kernels.parameters import Number, Width
from foldless.linalg.types import Matrix


def _unit(X):
    """Rows of length 1; their largest entry is taken out first, so that no square over- or underflows."""
    for size in (_largest, row_norms):
        factors = size(X)
        factors = np.divide(1.0, factors, out=np.zeros_like(factors), where=factors > 0)
        X = (sp.diags_array(factors) @ X).tocsr() if sp.issparse(X) else factors[:, None] * X
    return X


def _largest(X):
    """Largest absolute entry of each row."""
    return np.asarray(dense(abs(X).max(axis=1))).ravel()


@dataclass(frozen=True)
class Linear(FeatureMap):
    """x.z"""

    name: ClassVar[str] = "linear"
    is_linear: ClassVar[bool] = True

    def n_features(self, X: Matrix) -> int:
        """Columns of X."""
        return X.shape[1]

    def features(self, X: Matrix) -> Matrix:
        """X itself."""
        return X


@dataclass(frozen=True)
class Poly(Kernel):
    """(sum_k gamma_k x_k z_k + coef0)^degree"""

    name: ClassVar[str] = "poly"
    gamma: Annotated[float | np.ndarray | str, Width(grid=(0.1, 1.0, 10.0))] = 1.0
    degree: Annotated[float, Number(differentiable=False)] = 3
    coef0: Annotated[float, Number(zero=True, bounds=(1e-3, 1e3))] = 1.0

    def resolved(self, X: Matrix, sample_weight: ArrayLike | None = None) -> Self:
        """The kernel with its parameters checked and made numbers."""
        kernel = super().resolved(X, sample_weight)
        if not float(self.degree).is_integer():
            raise ValueError(f"degree={self.degree!r} must be an integer: other powers are no kernels.")
        return kernel

    def _base(self, X, Z):
        root = np.sqrt(self.gamma)
        Xs = scale(X, root)
        B = dot(Xs, Xs if Z is None else scale(Z, root))
        B += self.coef0
        return B

    def gram(self, X: Matrix, Z: Matrix | None = None) -> np.ndarray:
        """Gram matrix of shape (len(X), len(Z))."""
        B = self._base(X, Z)
        return np.power(B, self.degree, out=B)

    def diag(self, X: Matrix) -> np.ndarray:
        """k(x, x) for each row of X."""
        return (row_norms(scale(X, np.sqrt(self.gamma)), squared=True) + self.coef0) ** self.degree

    def pullback(self, R: np.ndarray, X: Matrix, K: np.ndarray) -> dict[str, Any]:
        """Derivatives by gamma and coef0; the degree is a choice, not a slope."""
        R *= self.degree * self._base(X, None) ** (self.degree - 1)
        return {"gamma": sum_by_gamma(self.gamma, inner_derivative(R, X)), "coef0": R.sum()}


@dataclass(frozen=True)
class Boolean(Kernel):
    """(1 + eta)^(x.z), for 0/1 features: one term for every conjunction they share (Cawley 2006)."""

    name: ClassVar[str] = "boolean"
    eta: Annotated[float, Number(bounds=(1e-4, 1e2), grid=tuple(np.logspace(-2.5, 0.5, 7).tolist()))] = 1.0

    def gram(self, X: Matrix, Z: Matrix | None = None) -> np.ndarray:
        """Gram matrix of shape (len(X), len(Z))."""
        K = dot(X, X if Z is None else Z)
        K *= np.log1p(self.eta)
        return np.exp(K, out=K)

    def diag(self, X: Matrix) -> np.ndarray:
        """k(x, x) for each row of X."""
        return np.exp(float(np.log1p(self.eta)) * row_norms(X, squared=True))

    def pullback(self, R: np.ndarray, X: Matrix, K: np.ndarray) -> dict[str, Any]:
        """dK/deta = x.z (1 + eta)^(x.z - 1)."""
        R *= K
        return {"eta": np.vdot(R, dot(X, X)) / (1 + self.eta)}


@dataclass(frozen=True)
class Cosine(Kernel):
    """x.z / (|x| |z|); rows of zeros have k = 0."""

    name: ClassVar[str] = "cosine"

    def gram(self, X: Matrix, Z: Matrix | None = None) -> np.ndarray:
        """Gram matrix of shape (len(X), len(Z))."""
        U = _unit(X)
        return dot(U, U if Z is None else _unit(Z))

    def diag(self, X: Matrix) -> np.ndarray:
        """k(x, x) for each row of X."""
        return (_largest(X) > 0).astype(X.dtype)
