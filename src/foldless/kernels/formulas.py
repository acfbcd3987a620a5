"""Kernels that are given by a formula.

    linear   x.z                  poly       (sum_k g_k x_k z_k + coef0)^degree
    cosine   x.z / (|x| |z|)      boolean    (1 + eta)^(x.z)
    rbf      exp(-sum_k g_k (x_k - z_k)^2)   laplacian  exp(-sum_k g_k |x_k - z_k|)

``gamma`` (g) is one number for all features or one per feature: a scaling of the columns of X before a product or
distance without parameters, which also keeps features of size 1e150 away from overflow. The boolean kernel is the one
of Cawley (2006, section V) for binary features.
"""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist
from scipy.special import xlogy
from sklearn.utils.extmath import row_norms

from foldless._engine.linalg import (
    divide,
    exp_,
    functions,
    is_tensor,
    kind_of,
    like,
    namespace,
    on_host,
    ones,
    power_,
    product,
)
from foldless._engine.linalg.types import Matrix
from foldless.kernels.base import FeatureMap, Kernel
from foldless.kernels.distances import absolute_distances
from foldless.kernels.matrices import dense, dot, scale, squared_norms
from foldless.kernels.parameters import Number, Width

LOOKED_AT = 1000  # rows from which spreads of columns are estimated
ALONE = 1e3  # ratio of the two largest standard deviations above which one column decides all distances
FEW_COLUMNS = 50  # columns up to which the product of a matrix with itself is no slower than half of it
FEW_DISTANCES = 10  # rows up to which summing distances directly is quicker than a product


@dataclass(frozen=True)
class Linear(FeatureMap):
    """x.z"""

    name: ClassVar[str] = "linear"
    is_linear: ClassVar[bool] = True

    def n_features(self, X: Matrix) -> int:
        return X.shape[1]

    def features(self, X: Matrix) -> Matrix:
        return X


@dataclass(frozen=True)
class Poly(Kernel):
    """(sum_k gamma_k x_k z_k + coef0)^degree"""

    name: ClassVar[str] = "poly"
    gamma: Annotated[float | np.ndarray | str, Width(grid=(0.1, 1.0, 10.0))] = 1.0
    degree: Annotated[float, Number(differentiable=False)] = 3
    coef0: Annotated[float, Number(zero=True, bounds=(1e-3, 1e3))] = 1.0

    def resolved(self, X: Matrix, sample_weight: ArrayLike | None = None) -> Self:
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
        return power_(self._base(X, Z), self.degree)

    def diag(self, X: Matrix) -> np.ndarray:
        return (squared_norms(scale(X, np.sqrt(self.gamma))) + self.coef0) ** self.degree

    def pullback(self, R: np.ndarray, X: Matrix, K: np.ndarray) -> dict:
        """Derivatives by gamma and coef0; the degree is a choice, not a slope."""
        R *= self.degree * self._base(X, None) ** (self.degree - 1)
        by_feature = _inner_derivative(R, X)
        return {"gamma": by_feature if np.ndim(self.gamma) else by_feature.sum(), "coef0": R.sum()}


@dataclass(frozen=True)
class Boolean(Kernel):
    """(1 + eta)^(x.z), for 0/1 features: one term for every conjunction they share (Cawley 2006)."""

    name: ClassVar[str] = "boolean"
    eta: Annotated[float, Number(bounds=(1e-4, 1e2), grid=tuple(np.logspace(-2.5, 0.5, 7).tolist()))] = 1.0

    def gram(self, X: Matrix, Z: Matrix | None = None) -> np.ndarray:
        K = dot(X, X if Z is None else Z)
        K *= np.log1p(self.eta)
        return exp_(K)

    def diag(self, X: Matrix) -> np.ndarray:
        return exp_(float(np.log1p(self.eta)) * squared_norms(X))

    def caution(self, X: Matrix) -> str | None:
        values = X.data if sp.issparse(X) else on_host(X)
        others = values[(values != 0) & (values != 1)]
        if not len(others):
            return None
        return (
            f"kernel='boolean' is for features that are 0 or 1, and X holds {others[0]:g}. Binarise X"
            " (sklearn.preprocessing.Binarizer, OneHotEncoder or KBinsDiscretizer), or take another kernel."
        )

    def pullback(self, R: np.ndarray, X: Matrix, K: np.ndarray) -> dict:
        """dK/deta = x.z (1 + eta)^(x.z - 1)."""
        R *= K
        return {"eta": np.vdot(R, dot(X, X)) / (1 + self.eta)}


@dataclass(frozen=True)
class Cosine(Kernel):
    """x.z / (|x| |z|); rows of zeros have k = 0."""

    name: ClassVar[str] = "cosine"

    def gram(self, X: Matrix, Z: Matrix | None = None) -> np.ndarray:
        U = _unit(X)
        return dot(U, U if Z is None else _unit(Z))

    def diag(self, X: Matrix) -> np.ndarray:
        return like(X, _largest(X) > 0)


def _unit(X):
    """Rows of length 1; their largest entry is taken out first, so that no square over- or underflows."""
    for size in (_largest, _norms):
        sizes = size(X)
        factors = divide(namespace(sizes).ones_like(sizes), sizes)
        X = (sp.diags_array(factors) @ X).tocsr() if sp.issparse(X) else factors[:, None] * X
    return X


def _largest(X):
    if sp.issparse(X):
        return np.asarray(dense(abs(X).max(axis=1))).ravel()
    return namespace(X).max(abs(X), axis=1)


def _norms(X):
    return namespace(X).sqrt(squared_norms(X))


def _inner_derivative(R, X):
    """sum_ij R_ij x_ik x_jk for every feature k: the derivative through sum_k g_k x_k z_k."""
    if sp.issparse(X):
        return np.asarray(X.multiply((X.T @ R).T).sum(0)).ravel()
    return np.einsum("ki,ki->k", X.T, product(R, X).T)


@dataclass(frozen=True)
class _OfDistances(Kernel):
    gamma: Annotated[float | np.ndarray | str, Width()] = 1.0

    def diag(self, X: Matrix) -> np.ndarray:
        return ones(X, X.shape[0]) if is_tensor(X) else np.ones(X.shape[0], X.dtype)

    def caution(self, X: Matrix) -> str | None:
        """A warning if one column decides all distances; for dense rows and one width for all features."""
        if sp.issparse(X) or np.ndim(self.gamma) or X.shape[1] < 2:
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            spread = on_host(X[:: max(1, X.shape[0] // LOOKED_AT)]).std(0)
        largest = int(np.argmax(spread))
        others = np.delete(spread, largest).max()
        if not np.isfinite(spread[largest]) or spread[largest] <= ALONE * others or not others > 0:
            return None
        return (
            f"column {largest} of X spreads {spread[largest] / others:.0e} times as far as any other: distances, and so"
            f" kernel={self.name!r}, see little else. Use standardize=True, or scale X."
        )


@dataclass(frozen=True)
class RBF(_OfDistances):
    """exp(-sum_k gamma_k (x_k - z_k)^2)"""

    name: ClassVar[str] = "rbf"

    def gram(self, X: Matrix, Z: Matrix | None = None) -> np.ndarray:
        root, alike, kind = np.sqrt(self.gamma), Z is None, kind_of(X)
        if sp.issparse(X) or sp.issparse(Z):
            K = _minus_sparse_distances(X, X if alike else Z, root, kind, alike=alike)
        else:
            K = _minus_distances(X, X if alike else Z, root, kind, alike=alike)
        if alike:
            K = kind.verbs.set_diagonal_(K, 0)
        return kind.verbs.exp_(K)

    def pullback(self, R: np.ndarray, X: Matrix, K: np.ndarray) -> dict:
        """dL/dgamma_k = -2 x_k' (diag(rowsum(R*K)) - R*K) x_k."""
        R *= K
        R.flat[:: len(R) + 1] -= R.sum(1)
        by_feature = np.empty(X.shape[1], X.dtype)
        for columns, part, _ in _by_filling(X, X):
            by_feature[columns] = 2 * _inner_derivative(R, part if sp.issparse(part) else part - part.mean(0))
        return {"gamma": by_feature if np.ndim(self.gamma) else by_feature.sum()}

    def slopes(self, coefficients: np.ndarray, X: Matrix, Z: Matrix) -> np.ndarray:
        """-2 gamma_k sum_j c_ij k_ij (x_ik - z_jk)"""
        V = coefficients * self.gram(X, Z)[:, :, None]
        X, Z = dense(X), dense(Z)
        n, m, k = V.shape
        sums = product(Z.T, V.transpose(1, 0, 2).reshape(m, n * k)).reshape(-1, n, k)
        return -2 * np.reshape(self.gamma, (-1, 1)) * (X[:, :, None] * V.sum(1)[:, None, :] - sums.transpose(1, 0, 2))

    def pullback_between(self, R: np.ndarray, X: Matrix, Z: Matrix) -> dict:
        """dL/dgamma_k = -sum_ij (R*K)_ij (x_ik - z_jk)^2, the square multiplied out about a point among the rows."""
        if sp.issparse(X) or sp.issparse(Z):
            return super().pullback_between(R, X, Z)
        R = R * self.gram(X, Z)
        X, Z = _centred(X, Z, functions)
        mixed = np.einsum("ik,ik->k", X, product(R, Z))
        by_feature = 2 * mixed - R.sum(1) @ np.square(X) - R.sum(0) @ np.square(Z)
        return {"gamma": by_feature if np.ndim(self.gamma) else by_feature.sum()}

    def waves(self, rng: np.random.RandomState, shape: tuple) -> np.ndarray:
        return rng.standard_normal(shape)

    def wave_scale(self, dtype: Any) -> Any:
        return np.sqrt(2 * np.asarray(self.gamma, dtype))

    def wave_slope(self, dtype: Any) -> Any:
        return 1 / np.maximum(self.wave_scale(dtype), np.finfo(dtype).tiny)


@dataclass(frozen=True)
class Laplacian(_OfDistances):
    """exp(-sum_k gamma_k |x_k - z_k|); "scale" is 1 / (n_features * X.std())"""

    name: ClassVar[str] = "laplacian"
    gamma: Annotated[float | np.ndarray | str, Width(absolute=True)] = 1.0

    def gram(self, X: Matrix, Z: Matrix | None = None) -> np.ndarray:
        K = absolute_distances(X, Z, self.gamma)
        K *= -1.0
        return exp_(K)

    def pullback(self, R: np.ndarray, X: Matrix, K: np.ndarray) -> dict:
        """dL/dgamma_k = -sum_ij (R*K)_ij |x_ik - x_jk|; no product gives these, each feature is gone through."""
        if not np.ndim(self.gamma):
            R *= xlogy(K, K)  # -gamma times the distances
            return {"gamma": R.sum() / self.gamma}
        R *= K
        columns = (np.asarray(dense(X[:, [k]])) for k in range(X.shape[1]))
        return {"gamma": -np.array([np.vdot(R, np.abs(x - x.T)) for x in columns])}

    def slopes(self, coefficients: np.ndarray, X: Matrix, Z: Matrix) -> np.ndarray:
        """-gamma_k sum_j c_ij k_ij sign(x_ik - z_jk)"""
        V = coefficients * self.gram(X, Z)[:, :, None]
        X, Z = dense(X), np.ascontiguousarray(dense(Z).T)
        sums = np.stack([np.sign(x[:, None] - Z) @ v for x, v in zip(X, V, strict=True)])
        return -np.reshape(self.gamma, (-1, 1)) * sums

    def waves(self, rng: np.random.RandomState, shape: tuple) -> np.ndarray:
        return rng.standard_cauchy(shape)

    def wave_scale(self, dtype: Any) -> Any:
        return np.asarray(self.gamma, dtype)

    def wave_slope(self, dtype: Any) -> Any:
        return np.ones((), dtype)


def _by_filling(X, Z):
    """[(columns, X there, Z there)]: columns that Z fills mostly become dense, which takes no more memory."""
    if not sp.issparse(Z):
        return [(slice(None), X.toarray() if sp.issparse(X) else X, Z)]
    X, Z = sp.csr_array(X), sp.csr_array(Z)
    filled = 2 * np.bincount(Z.indices, minlength=Z.shape[1]) > Z.shape[0]
    if not filled.any():
        return [(~filled, X, Z)]
    full = filled, X[:, filled].toarray(), Z[:, filled].toarray()
    return [full] if filled.all() else [full, (~filled, X[:, ~filled], Z[:, ~filled])]


def _minus_sparse_distances(X, Z, root, kind, *, alike):
    """The same as :func:`_minus_distances` where X or Z is sparse."""
    K: Any = None
    for columns, X_part, Z_part in _by_filling(X, Z):
        part = _minus_distances(X_part, Z_part, root[columns] if np.ndim(root) else root, kind, alike=alike)
        K = part if K is None else np.add(K, part, out=K)
    return K


def _minus_distances(X, Z, root, kind, *, alike):
    """Minus the squared distances between the rows of X and Z, columns times root; ``alike``: Z is X."""
    if isinstance(X, np.ndarray) and not alike and len(X) <= FEW_DISTANCES:
        K = cdist(X, Z, "sqeuclidean", w=root * root) if np.ndim(root) else cdist(X, Z, "sqeuclidean")
        K *= -1.0 if np.ndim(root) else -root * root
        if not np.isfinite(K.sum()):  # squares that overflow before they are scaled
            K = -cdist(scale(X, root), scale(Z, root), "sqeuclidean")
        return K.astype(X.dtype, copy=False)
    verbs, xp = kind
    is_sparse = sp.issparse(X)
    if not is_sparse:
        X, Z = _centred(X, X if alike else Z, xp)  # |x|^2 + |z|^2 - 2 x.z loses fewer digits near the bulk of the rows
    X = scale(X, root)
    Z = X if alike else scale(Z, root)
    X_norms = (row_norms(X, squared=True) if is_sparse else verbs.dots(X, X))[:, None]
    Z_norms = X_norms if alike else (row_norms(Z, squared=True) if is_sparse else verbs.dots(Z, Z))[:, None]
    if not is_sparse and X.shape[1] < (FEW_COLUMNS if alike else Z.shape[0]):
        ones = xp.ones_like  # all three terms by one product: K is written once
        left, right = [2 * Z, -ones(Z_norms), -Z_norms], [X, X_norms, ones(X_norms)]
        K = verbs.product(xp.concat(left, axis=1), xp.concat(right, axis=1).T).T
    else:
        K = dot(X, Z)
        K *= 2
        K -= X_norms
        K -= Z_norms.T
    return verbs.minimum_(K, 0)


def _centred(X, Z, xp):
    """Dense X and Z less a point among the rows: distances do not see it, and what follows rounds less."""
    some = Z[:: max(1, Z.shape[0] // 100)]
    centre = xp.sort(some, axis=0)[some.shape[0] // 2, :]  # the median, or the number after it
    shifted = X - centre
    return shifted, shifted if Z is X else Z - centre
