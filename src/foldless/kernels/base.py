"""The contract of a kernel, and what the families share.

A kernel is a frozen dataclass whose fields are its parameters. It owns all that others ask of it:

    gram(X, Z), diag(X)      its values
    features(X)              explicit features phi with k(x, z) = phi(x).phi(z) where it has them, else None
    rows(X, index), ...      how the data it works on are sliced and joined: X may be the Gram matrix itself
    differentiable           names of the parameters that have a derivative
    pullback(R, X, K)        for a symmetric R = dL/dK, which it overwrites, and K = gram(X):
                             {parameter: sum_ij R_ij dK_ij/dparameter}, at the price of one n x n product with X,
                             whatever the number of features (Bo, Wang & Jiao 2006 pay d products of size n^3)

To add a kernel write one such class; ``kernel=`` of the estimators takes its objects. An entry in
``registry.KERNELS`` gives it a name.
"""

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils.extmath import safe_sparse_dot

from foldless.linalg.numpy import outer_square, product


class Kernel:
    """Base of the kernels: a kernel of rows x of a matrix X, without explicit features."""

    differentiable: ClassVar[tuple] = ()
    takes_rows: ClassVar[bool] = True  # False: X is the Gram matrix itself
    is_linear: ClassVar[bool] = False  # True: features(X) is X itself
    surely_symmetric: ClassVar[bool] = True  # False: what the user gives may not be

    def gram(self, X, Z=None):
        """Gram matrix of shape (len(X), len(Z)); Z=None: that of X with itself."""
        raise NotImplementedError

    def diag(self, X):
        """k(x, x) for each row of X."""
        raise NotImplementedError

    def n_features(self, X) -> int | None:
        """Number of explicit features of the rows of X; None where there are none."""
        return None

    def features(self, X) -> Any:
        """Explicit features (len(X), n_features), dense or sparse; None where there are none."""
        return None

    def pullback(self, R, X, K) -> dict:
        """Derivatives by the parameters ``differentiable``; R is overwritten."""
        return {}

    # -- data: how X is sliced and joined ------------------------------------------------------------------------------

    def rows(self, X, index):
        """The data of some rows alone."""
        return X[index]

    def block(self, X, rows, columns):
        """K[rows, columns] of the data X."""
        if rows is columns:
            return np.ascontiguousarray(self.gram(X[rows]))
        return self.gram(X[rows], X[columns])

    def against(self, X_new, X, columns):
        """Kernel between new rows and some rows of the data X."""
        return self.gram(X_new, X[columns])

    def joined(self, X, more):
        """The data X with the rows ``more`` behind them."""
        return sp.vstack([X, more]).tocsr() if sp.issparse(X) else np.concatenate([X, more])


def dot(X, Z):
    """X Z' as a dense, C-ordered array."""
    if sp.issparse(X) or sp.issparse(Z):
        return np.ascontiguousarray(safe_sparse_dot(X, Z.T, dense_output=True))
    return outer_square(X) if X is Z else product(Z, X.T).T


def scale(X, factors):
    """The columns of X times ``factors`` (a number or one per column)."""
    factors = np.asarray(factors, X.dtype)
    if not sp.issparse(X):
        return X * factors
    return X * factors if factors.ndim == 0 else (X @ sp.diags_array(factors)).tocsr()


def sum_by_gamma(gamma, per_feature):
    """Sum the derivative by each feature's gamma where one gamma serves them all."""
    return per_feature if np.ndim(gamma) else per_feature.sum()


def inner_derivative(R, X):
    """sum_ij R_ij x_ik x_jk for every feature k: the derivative through sum_k g_k x_k z_k."""
    if sp.issparse(X):
        return np.asarray(X.multiply((X.T @ R).T).sum(0)).ravel()
    return np.einsum("ki,ki->k", X.T, product(R, X).T)
