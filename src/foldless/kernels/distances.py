"""Sums of absolute differences between rows, for kernels of them.

    D_ij = sum_k g_k |x_ik - z_jk|

Columns of two values a < b need no differences: with u = (x - a) / (b - a), which is 0 or 1,

    |x - z| = (b - a) (u + v - 2 u v),

so that one matrix product adds up all of them, indicators of categories above all. The other columns are gone through
by tiles of rows that stay in the processor's cache, several tiles at a time where the linear algebra has several
threads. A symmetric matrix needs half of the tiles. Columns with g_k = 0 are left out.
"""

from concurrent.futures import ThreadPoolExecutor
from itertools import product as pairs

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import manhattan_distances

from foldless._engine.linalg import is_tensor, manhattan
from foldless._engine.linalg.threads import n_threads
from foldless.kernels.matrices import dot, scale

TILE = 2**15  # entries of the rows of a tile
MOST_ROWS = 512  # of a tile
FEW = 2**20  # differences that are quickly added up without tiles


def absolute_distances(X, Z, factors):
    """D (len(X), len(Z)) with one of the ``factors`` >= 0 for each column, or one for all; Z=None: of X with itself."""
    alike = Z is None
    if is_tensor(X):
        return manhattan(scale(X, factors), scale(X if alike else Z, factors))
    factors = np.broadcast_to(np.asarray(factors, X.dtype), X.shape[1])
    if sp.issparse(X) or sp.issparse(Z):
        return _sparse_distances(X, X if alike else Z, factors)
    used = factors > 0
    if not used.all():
        X, Z, factors = X[:, used], None if alike else Z[:, used], factors[used]
    low, high = _extremes(X, Z)
    spread = high - low
    two_valued = _has_two_values(X, Z, low, high)
    others = (spread > 0) & ~two_valued
    if others.all():
        return _by_tiles((X - low) * factors, None if alike else (Z - low) * factors)
    K = np.zeros((len(X), len(X if alike else Z)), X.dtype)
    if others.any():
        moved = ((rows[:, others] - low[others]) * factors[others] for rows in (X, X if alike else Z))
        K += _by_tiles(next(moved), None if alike else next(moved))
    if two_valued.any():
        root = np.sqrt(spread[two_valued] * factors[two_valued])
        U = (X[:, two_valued] > low[two_valued]) * root
        K += _of_indicators(U, U if alike else (Z[:, two_valued] > low[two_valued]) * root)
    if alike:
        np.fill_diagonal(K, 0.0)
    return K


def _extremes(X, Z):
    """The least and the largest value of each column."""
    tables = [X] if Z is None else [X, Z]
    low = np.min([table.min(0, initial=np.inf) for table in tables], axis=0)
    return low, np.max([table.max(0, initial=-np.inf) for table in tables], axis=0)


def _has_two_values(X, Z, low, high):
    """Which columns hold their least and their largest value alone, and these differ."""
    tables = [X] if Z is None else [X, Z]
    candidates = np.flatnonzero(high > low)
    for table in tables:  # a few rows tell most of the others
        some = table[:64, candidates]
        candidates = candidates[((some == low[candidates]) | (some == high[candidates])).all(0)]
    result = np.zeros(X.shape[1], bool)
    for column in candidates:
        values = (table[:, column] for table in tables)
        result[column] = all(((v == low[column]) | (v == high[column])).all() for v in values)
    return result


def _of_indicators(U, V):
    """sum_k (u_k - v_k)^2 of columns that are 0 or a number of their own."""
    K = dot(U, V)
    K *= -2
    K += np.add.outer(np.square(U).sum(1), np.square(V).sum(1))
    return np.maximum(K, 0.0, out=K)


def _by_tiles(X, Z):
    """The sums for scaled rows; Z=None: of X with itself."""
    alike = Z is None
    Z = X if alike else Z
    n, m = len(X), len(Z)
    if n * m * X.shape[1] <= FEW:
        return cdist(X, Z, "cityblock").astype(X.dtype, copy=False)
    K = np.empty((n, m), X.dtype)
    size = int(np.clip(TILE // X.shape[1], 64, MOST_ROWS))

    def fill(start):
        rows, columns = (slice(first, first + size) for first in start)
        tile = cdist(X[rows], Z[columns], "cityblock")
        K[rows, columns] = tile
        if alike and rows.start > columns.start:
            K[columns, rows] = tile.T

    starts = [start for start in pairs(range(0, n, size), range(0, m, size)) if not alike or start[0] >= start[1]]
    workers = min(n_threads(), len(starts))
    if workers <= 1:
        for start in starts:
            fill(start)
        return K
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(fill, starts))
    return K


def _sparse_distances(X, Z, factors):
    """The same where X or Z is sparse. Entries that are the same in each column are indicators."""
    X, Z = (sp.csr_array(rows) for rows in (X, Z))
    values = np.maximum(*(np.asarray(abs(rows).max(axis=0).todense()).ravel() for rows in (X, Z)))
    if all((rows.data == values[rows.indices]).all() for rows in (X, Z)):
        U, V = ((rows != 0) @ sp.diags_array(np.sqrt(values * factors)) for rows in (X, Z))
        squares = [np.asarray(rows.multiply(rows).sum(1)).ravel() for rows in (U, V)]
        K = -2 * dot(U, V) + squares[0][:, None] + squares[1]
        return np.maximum(K, 0.0).astype(X.dtype, copy=False)
    return manhattan_distances(*(_narrow(scale(rows, factors)) for rows in (X, Z))).astype(X.dtype, copy=False)


def _narrow(X):
    """A sparse X with the indices of 32 bits that distances of scikit-learn take."""
    X = sp.csr_array(X)
    return sp.csr_array((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), X.shape)
