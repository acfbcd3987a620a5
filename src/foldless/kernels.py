"""Kernels: the Gram matrix, its diagonal, and the way back from dL/dK to the parameters.

    linear       x.z                                   poly      (sum_k g_k x_k z_k + coef0)^degree
    rbf          exp(-sum_k g_k (x_k - z_k)^2)         laplacian exp(-sum_k g_k |x_k - z_k|)
    boolean      (1 + eta)^(x.z)                       cosine    x.z / (|x| |z|)
    precomputed  X is the Gram matrix                  callable  k(X, Z) -> Gram matrix

``gamma`` (g) is one number for all features or one per feature; both are a scaling of the columns of X before a
kernel without parameters, which also keeps features of size 1e150 away from overflow. The boolean kernel is the one
of Cawley (2006, section V) for binary features.

A kernel is a frozen dataclass of resolved parameters with ``gram(X, Z)``, ``diag(X)``, the names of the parameters with
``slopes`` and, where there are any, ``pullback(R, X, K)``: for a symmetric R = dL/dK, which it overwrites, and K =
gram(X) it returns {parameter: sum_ij R_ij dK_ij/dparameter} at the price of one n x n product with X, whatever the
number of features (Bo, Wang & Jiao 2006 pay d products of size n^3).

To add a kernel write one such class and one entry in ``KERNELS``.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from scipy.special import xlogy
from sklearn.metrics.pairwise import manhattan_distances
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from foldless._array import outer_square, product

FEW = 4  # rows whose distances are sooner summed up directly than through a product


def _dot(X, Z):
    """X Z' as a dense, C-ordered array."""
    if sp.issparse(X) or sp.issparse(Z):
        return np.ascontiguousarray(safe_sparse_dot(X, Z.T, dense_output=True))
    return outer_square(X) if X is Z else product(Z, X.T).T


def _scale(X, factors):
    """The columns of X times ``factors`` (a number or one per column)."""
    factors = np.asarray(factors, X.dtype)
    if not sp.issparse(X):
        return X * factors
    return X * factors if factors.ndim == 0 else (X @ sp.diags_array(factors)).tocsr()


def _unit(X):
    """Rows of length 1; their largest entry is taken out first, so that no square over- or underflows."""
    for size in (_largest, row_norms):
        factors = size(X)
        factors = np.divide(1.0, factors, out=np.zeros_like(factors), where=factors > 0)
        X = (sp.diags_array(factors) @ X).tocsr() if sp.issparse(X) else factors[:, None] * X
    return X


def _largest(X):
    """Largest absolute entry of each row."""
    largest = abs(X).max(axis=1)
    return (largest.toarray() if sp.issparse(largest) else np.asarray(largest)).ravel()


def _by_filling(X, Z):
    """[(columns, X and Z there)]: columns that Z fills mostly as dense arrays, of no more memory; the others sparse."""
    if not sp.issparse(Z):
        return [(np.arange(Z.shape[1]), (X.toarray() if sp.issparse(X) else X, Z))]
    X, Z = sp.csr_array(X), sp.csr_array(Z)
    filled = 2 * np.bincount(Z.indices, minlength=Z.shape[1]) > Z.shape[0]
    if not filled.any():
        return [(~filled, (X, Z))]
    dense = filled, (X[:, filled].toarray(), Z[:, filled].toarray())
    return [dense] if filled.all() else [dense, (~filled, (X[:, ~filled], Z[:, ~filled]))]


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
            K = cdist(_scale(X, root), _scale(Z, root), "sqeuclidean")
        return np.negative(K, out=K).astype(X.dtype, copy=False)
    if not sp.issparse(X):
        X, Z = _centred(X, X if alike else Z)  # |x|^2 + |z|^2 - 2 x.z loses fewer digits near the bulk of the rows
    X = _scale(X, root)
    Z = X if alike else _scale(Z, root)
    K = _dot(X, Z)
    K *= 2
    K -= row_norms(X, squared=True)[:, None]
    K -= row_norms(Z, squared=True)[None, :]
    return np.minimum(K, 0, out=K)


def _by_gamma(gamma, per_feature):
    """Sum the derivative by each feature's gamma where one gamma serves them all."""
    return per_feature if np.ndim(gamma) else per_feature.sum()


def _inner_derivative(R, X):
    """sum_ij R_ij x_ik x_jk for every feature k: the derivative through sum_k g_k x_k z_k."""
    if sp.issparse(X):
        return np.asarray(X.multiply((X.T @ R).T).sum(0)).ravel()
    return np.einsum("ki,ki->k", X.T, product(R, X).T)


@dataclass(frozen=True)
class Linear:
    """x.z"""

    slopes: ClassVar[tuple] = ()

    def gram(self, X, Z=None):
        """Gram matrix of shape (len(X), len(Z))."""
        return _dot(X, X if Z is None else Z)

    def diag(self, X):
        """k(x, x) for each row of X."""
        return row_norms(X, squared=True)


@dataclass(frozen=True)
class Poly:
    """(sum_k gamma_k x_k z_k + coef0)^degree"""

    gamma: float | np.ndarray = 1.0
    degree: float = 3
    coef0: float = 1.0
    slopes: ClassVar[tuple] = ("gamma", "coef0")

    def _base(self, X, Z):
        root = np.sqrt(self.gamma)
        Xs = _scale(X, root)
        B = _dot(Xs, Xs if Z is None else _scale(Z, root))
        B += self.coef0
        return B

    def gram(self, X, Z=None):
        """Gram matrix of shape (len(X), len(Z))."""
        B = self._base(X, Z)
        return np.power(B, self.degree, out=B)

    def diag(self, X):
        """k(x, x) for each row of X."""
        return (row_norms(_scale(X, np.sqrt(self.gamma)), squared=True) + self.coef0) ** self.degree

    def pullback(self, R, X, K):
        """Derivatives by gamma and coef0; the degree is a choice, not a slope."""
        R *= self.degree * self._base(X, None) ** (self.degree - 1)
        return {"gamma": _by_gamma(self.gamma, _inner_derivative(R, X)), "coef0": R.sum()}


@dataclass(frozen=True)
class RBF:
    """exp(-sum_k gamma_k (x_k - z_k)^2)"""

    gamma: float | np.ndarray = 1.0
    slopes: ClassVar[tuple] = ("gamma",)

    def gram(self, X, Z=None):
        """Gram matrix of shape (len(X), len(Z))."""
        K = _minus_distances(X, Z, np.sqrt(self.gamma))
        return np.exp(K, out=K)

    def diag(self, X):
        """k(x, x) for each row of X."""
        return np.ones(X.shape[0], X.dtype)

    def pullback(self, R, X, K):
        """dL/dgamma_k = -2 x_k' (diag(rowsum(R*K)) - R*K) x_k."""
        R *= K
        R.flat[:: len(R) + 1] -= R.sum(1)
        per_feature = np.empty(X.shape[1], X.dtype)
        for columns, part in _by_filling(X, X):
            part = part[0] if sp.issparse(part[0]) else part[0] - part[0].mean(0)
            per_feature[columns] = _inner_derivative(R, part)
        return {"gamma": _by_gamma(self.gamma, 2 * per_feature)}


@dataclass(frozen=True)
class Laplacian:
    """exp(-sum_k gamma_k |x_k - z_k|)"""

    gamma: float | np.ndarray = 1.0
    slopes: ClassVar[tuple] = ("gamma",)

    def gram(self, X, Z=None):
        """Gram matrix of shape (len(X), len(Z))."""
        if not sp.issparse(X) and not sp.issparse(Z):
            X, Z = _centred(X, X if Z is None else Z)
        Xs = _scale(X, self.gamma)
        K = manhattan_distances(Xs, Xs if Z is None or Z is X else _scale(Z, self.gamma)).astype(X.dtype, copy=False)
        np.negative(K, out=K)
        return np.exp(K, out=K)

    def diag(self, X):
        """k(x, x) for each row of X."""
        return np.ones(X.shape[0], X.dtype)

    def pullback(self, R, X, K):
        """dL/dgamma_k = -sum_ij (R*K)_ij |x_ik - x_jk|; no product gives these, each feature is gone through."""
        if not np.ndim(self.gamma):
            R *= xlogy(K, K)  # -gamma times the distances
            return {"gamma": R.sum() / self.gamma}
        R *= K
        columns = (np.asarray(X[:, [k]].toarray() if sp.issparse(X) else X[:, [k]]) for k in range(X.shape[1]))
        return {"gamma": -np.array([np.vdot(R, np.abs(x - x.T)) for x in columns])}


@dataclass(frozen=True)
class Boolean:
    """(1 + eta)^(x.z), for 0/1 features: one term for every conjunction they share (Cawley 2006)."""

    eta: float = 1.0
    slopes: ClassVar[tuple] = ("eta",)

    def gram(self, X, Z=None):
        """Gram matrix of shape (len(X), len(Z))."""
        K = _dot(X, X if Z is None else Z)
        K *= np.log1p(self.eta)
        return np.exp(K, out=K)

    def diag(self, X):
        """k(x, x) for each row of X."""
        return np.exp(float(np.log1p(self.eta)) * row_norms(X, squared=True))

    def pullback(self, R, X, K):
        """dK/deta = x.z (1 + eta)^(x.z - 1)."""
        R *= K
        return {"eta": np.vdot(R, _dot(X, X)) / (1 + self.eta)}


@dataclass(frozen=True)
class Cosine:
    """x.z / (|x| |z|); rows of zeros have k = 0."""

    slopes: ClassVar[tuple] = ()

    def gram(self, X, Z=None):
        """Gram matrix of shape (len(X), len(Z))."""
        U = _unit(X)
        return _dot(U, U if Z is None else _unit(Z))

    def diag(self, X):
        """k(x, x) for each row of X."""
        return (_largest(X) > 0).astype(X.dtype)


@dataclass(frozen=True)
class Custom:
    """A user's function k(X, Z) that returns the Gram matrix."""

    function: Callable

    slopes: ClassVar[tuple] = ()

    def gram(self, X, Z=None):
        """Gram matrix of shape (len(X), len(Z))."""
        symmetric, Z = Z is None, X if Z is None else Z
        try:
            K = self.function(X, Z)
        except Exception as error:
            raise ValueError(
                f"kernel={self.function!r} failed on matrices of shapes {X.shape} and {Z.shape}; it must take two"
                f" matrices and return their Gram matrix. It said: {error}"
            ) from error
        K = np.array(K.toarray() if sp.issparse(K) else K, dtype=X.dtype, order="C")
        if K.shape != (X.shape[0], Z.shape[0]):
            raise ValueError(
                f"kernel={self.function!r} returned shape {K.shape} for X of {X.shape[0]} and Z of {Z.shape[0]} rows;"
                f" it must take two matrices and return a Gram matrix of shape {(X.shape[0], Z.shape[0])}."
            )
        if symmetric:
            check_symmetric(K, f"the Gram matrix of kernel={self.function!r}")
        return K

    def diag(self, X):
        """k(x, x) for each row of X."""
        return np.concatenate([self.gram(X[i : i + 1]).ravel() for i in range(X.shape[0])])


@dataclass(frozen=True)
class Precomputed:
    """X is the Gram matrix itself: rows are samples, columns the training rows."""

    slopes: ClassVar[tuple] = ()

    def gram(self, X, Z=None):
        """A copy of X: what is computed from it may overwrite it."""
        if Z is not None:
            raise ValueError("A precomputed kernel has no rows to compare; slice the Gram matrix instead.")
        return np.array(X.toarray() if sp.issparse(X) else X, order="C")

    def diag(self, X):
        """The diagonal of X."""
        return X.diagonal()


KERNELS = {
    "linear": Linear,
    "poly": Poly,
    "rbf": RBF,
    "laplacian": Laplacian,
    "boolean": Boolean,
    "cosine": Cosine,
    "precomputed": Precomputed,
}


def check_symmetric(K, what):
    """Refuse a Gram matrix that differs from its transpose by more than rounding."""
    gap, size = abs(K - K.T).max(), abs(K).max()
    if gap > 1e3 * np.finfo(K.dtype).eps * size:
        raise ValueError(
            f"{what} is not symmetric: entries and their mirror images differ by up to {gap:.3g} (largest entry"
            f" {size:.3g}). Use (K + K.T) / 2 if that is what is meant."
        )


def resolve(kernel, X, *, gamma="scale", degree=3, coef0=1.0, eta=1.0, sample_weight=None):
    """The kernel object for a name or a callable, its parameters checked and made numbers from X.

    Labels are never seen. ``gamma="scale"`` is 1 / (n_features * X.var()), weights counted as repetitions.
    """
    if callable(kernel):
        return Custom(kernel)
    if not isinstance(kernel, str) or kernel not in KERNELS:
        raise ValueError(f"kernel={kernel!r} is unknown; use one of {sorted(KERNELS)} or a callable k(X, Z).")
    kind = KERNELS[kernel]
    parameters = {"degree": degree, "coef0": coef0, "eta": eta}
    wanted = {field.name for field in fields(kind)}
    if "gamma" in wanted:
        parameters["gamma"] = _resolve_gamma(gamma, X, sample_weight)
    for name in wanted - {"gamma"}:
        value = parameters[name]
        if (
            not isinstance(value, Real)
            or not np.isfinite(float(value))
            or value < 0
            or (name != "coef0" and value == 0)
        ):
            low = ">= 0" if name == "coef0" else "> 0"
            raise ValueError(f"{name}={value!r} must be a finite number {low} for kernel={kernel!r}.")
        if name == "degree" and not float(value).is_integer():
            raise ValueError(f"degree={value!r} must be an integer: other powers are no kernels.")
    return kind(**{name: parameters[name] for name in wanted})


def _resolve_gamma(gamma, X, sample_weight):
    n_features = X.shape[1]
    if isinstance(gamma, str):
        if gamma != "scale":
            raise ValueError(f"gamma={gamma!r} is unknown; use 'scale', a positive number, or one per feature.")
        variance = _variance(X, sample_weight)
        total = n_features * variance
        if not np.isfinite(total):
            raise ValueError("gamma='scale' overflows: X is too large to be squared; rescale X or give gamma.")
        return 1.0 / total if total > 1e-307 else 1.0 / n_features  # no variance, or one without an inverse
    values = np.asarray(gamma, dtype=float)
    if values.ndim > 1 or (values.ndim == 1 and values.shape != (n_features,)):
        raise ValueError(
            f"gamma has shape {values.shape}; use one number or one value for each of the {n_features} features."
        )
    if not np.all(np.isfinite(values)) or np.any(values < 0) or not np.any(values > 0):
        raise ValueError(f"gamma={gamma!r} must be positive and finite (zero only switches single features off).")
    return values if values.ndim else float(values)


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
