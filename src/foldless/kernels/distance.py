"""Kernels of distances.

    rbf        exp(-sum_k g_k (x_k - z_k)^2)         laplacian  exp(-sum_k g_k |x_k - z_k|)

``gamma`` (g) is one number for all features or one per feature: a scaling of the columns of X before a distance without
parameters, which also keeps features of size 1e150 away from overflow.
"""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from scipy.special import xlogy
from sklearn.metrics.pairwise import manhattan_distances
from sklearn.utils.extmath import row_norms

from foldless.kernels.base import Kernel, dense, dot, inner_derivative, scale, sum_by_gamma
from foldless.kernels.parameters import Width
from foldless.linalg.types import Matrix

FEW = 4  # rows whose distances are sooner summed up directly than through a product


def _by_filling(X, Z):
    """[(columns, X and Z there)]: columns that Z fills mostly as dense arrays, of no more memory; the others sparse."""
    if not sp.issparse(Z):
        return [(np.arange(Z.shape[1]), (dense(X), Z))]
    X, Z = sp.csr_array(X), sp.csr_array(Z)
    filled = 2 * np.bincount(Z.indices, minlength=Z.shape[1]) > Z.shape[0]
    if not filled.any():
        return [(~filled, (X, Z))]
    full = filled, (X[:, filled].toarray(), Z[:, filled].toarray())
    return [full] if filled.all() else [full, (~filled, (X[:, ~filled], Z[:, ~filled]))]


def _centred(X, Z):
    """Dense X and Z less a point among the rows: distances do not see it, and what follows rounds less."""
    centre = np.median(Z[:: max(1, Z.shape[0] // 100)], axis=0)
    shifted = X - centre
    return shifted, shifted if Z is X else Z - centre


def _minus_distances(X, Z, root):
    """Minus the squared distances between the rows of X and Z, columns times root; Z=None: those of X."""
    K: Any = None
    for columns, (X_part, Z_part) in _by_filling(X, X if Z is None else Z):
        factors = root[columns] if np.ndim(root) else root
        part = _part_of_minus_distances(X_part, Z_part, factors, alike=Z is None)
        K = part if K is None else np.add(K, part, out=K)
    if Z is None:
        np.fill_diagonal(K, 0)
    return K


def _part_of_minus_distances(X, Z, root, *, alike):
    if not sp.issparse(X) and not alike and len(X) <= FEW:
        K = cdist(X, Z, "sqeuclidean", w=root * root) if np.ndim(root) else cdist(X, Z, "sqeuclidean")
        K *= 1.0 if np.ndim(root) else root * root
        if not np.isfinite(K.sum()):  # squares that overflow before they are scaled
            K = cdist(scale(X, root), scale(Z, root), "sqeuclidean")
        return np.negative(K, out=K).astype(X.dtype, copy=False)
    if not sp.issparse(X):
        X, Z = _centred(X, X if alike else Z)  # |x|^2 + |z|^2 - 2 x.z loses fewer digits near the bulk of the rows
    X = scale(X, root)
    Z = X if alike else scale(Z, root)
    K = dot(X, Z)
    K *= 2
    K -= row_norms(X, squared=True)[:, None]
    K -= row_norms(Z, squared=True)[None, :]
    return np.minimum(K, 0, out=K)


@dataclass(frozen=True)
class _OfDistances(Kernel):
    gamma: Annotated[float | np.ndarray | str, Width()] = 1.0

    def diag(self, X: Matrix) -> np.ndarray:
        """k(x, x) for each row of X."""
        return np.ones(X.shape[0], X.dtype)


@dataclass(frozen=True)
class RBF(_OfDistances):
    """exp(-sum_k gamma_k (x_k - z_k)^2)"""

    name: ClassVar[str] = "rbf"

    def gram(self, X: Matrix, Z: Matrix | None = None) -> np.ndarray:
        """Gram matrix of shape (len(X), len(Z))."""
        K = _minus_distances(X, Z, np.sqrt(self.gamma))
        return np.exp(K, out=K)

    def pullback(self, R: np.ndarray, X: Matrix, K: np.ndarray) -> dict[str, Any]:
        """dL/dgamma_k = -2 x_k' (diag(rowsum(R*K)) - R*K) x_k."""
        R *= K
        R.flat[:: len(R) + 1] -= R.sum(1)
        per_feature = np.empty(X.shape[1], X.dtype)
        for columns, part in _by_filling(X, X):
            part = part[0] if sp.issparse(part[0]) else part[0] - part[0].mean(0)
            per_feature[columns] = inner_derivative(R, part)
        return {"gamma": sum_by_gamma(self.gamma, 2 * per_feature)}


@dataclass(frozen=True)
class Laplacian(_OfDistances):
    """exp(-sum_k gamma_k |x_k - z_k|)"""

    name: ClassVar[str] = "laplacian"

    def gram(self, X: Matrix, Z: Matrix | None = None) -> np.ndarray:
        """Gram matrix of shape (len(X), len(Z))."""
        if not sp.issparse(X) and not sp.issparse(Z):
            X, Z = _centred(X, X if Z is None else Z)
        Xs = scale(X, self.gamma)
        K = manhattan_distances(Xs, Xs if Z is None or Z is X else scale(Z, self.gamma)).astype(X.dtype, copy=False)
        np.negative(K, out=K)
        return np.exp(K, out=K)

    def pullback(self, R: np.ndarray, X: Matrix, K: np.ndarray) -> dict[str, Any]:
        """dL/dgamma_k = -sum_ij (R*K)_ij |x_ik - x_jk|; no product gives these, each feature is gone through."""
        if not np.ndim(self.gamma):
            R *= xlogy(K, K)  # -gamma times the distances
            return {"gamma": R.sum() / self.gamma}
        R *= K
        columns = (np.asarray(dense(X[:, [k]])) for k in range(X.shape[1]))
        return {"gamma": -np.array([np.vdot(R, np.abs(x - x.T)) for x in columns])}
