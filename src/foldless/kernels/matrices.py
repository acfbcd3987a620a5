"""Rows of features as kernels take them: dense or sparse, scaled, multiplied with each other."""

import numpy as np
import scipy.sparse as sp
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from foldless._engine.linalg import dots, functions, like, namespace, outer_square, product


def dense(X):
    """X as an array."""
    return X.toarray() if sp.issparse(X) else X


def canonical(X):
    """X with one entry for each place, in order: a sparse matrix may hold several, which add up. X is not changed."""
    if not sp.issparse(X):
        return X
    X = X.tocsr()
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def dot(X, Z):
    """X Z' as a dense, C-ordered array."""
    if sp.issparse(X) or sp.issparse(Z):
        return np.ascontiguousarray(safe_sparse_dot(X, Z.T, dense_output=True))
    return outer_square(X) if X is Z else product(Z, X.T).T


def scale(X, factors):
    """The columns of X times ``factors`` (a number or one per column)."""
    if not np.ndim(factors):
        return X * float(factors)
    factors = like(X, factors)
    return (X @ sp.diags_array(factors)).tocsr() if sp.issparse(X) else X * factors


def squared_norms(X):
    """|x|^2 of the rows."""
    return dots(X, X) if not sp.issparse(X) and namespace(X) is not functions else row_norms(X, squared=True)
