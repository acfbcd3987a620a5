"""Landmarks of a kernel approximation, chosen from X and weights, never from labels.

    uniform     rows drawn without replacement
    kmeans      centres of k-means (Zhang, Tsang & Kwok 2008); of sparse X the rows nearest to them
    leverage    rows drawn by what a first uniform draw Z explains badly (Musco & Musco 2017, one of their levels):

                p_i ~ min(1, (k_ii - k_i' (K_ZZ + lambda r/n I)^-1 k_i) / lambda),    lambda = tr(K - K_Z) / r

All are drawn from the rows of positive weight and put in the order of the rows.
"""

from contextlib import nullcontext
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import pairwise_distances_argmin
from sklearn.utils import check_random_state, gen_batches
from sklearn.utils.extmath import row_norms
from threadpoolctl import threadpool_limits

from foldless._engine.linalg import (
    NotPositiveDefiniteError,
    add_diagonal_,
    cholesky_,
    copy,
    diagonal,
    lower_solve,
    namespace,
    row_major,
)

CHOICES = ("uniform", "kmeans", "leverage")
BLOCK = 8192  # rows whose kernel with the landmarks is held at once
SMALL = 10**6  # distances from which several threads pay
ENOUGH = 30  # rows for each centre: more would not move the centres by much


def choose(how, kernel, X, count, sample_weight=None, random_state=None):
    """``count`` landmarks for the rows X: rows of X, or centres; all rows if there are no more than that."""
    rows = np.arange(X.shape[0]) if sample_weight is None else np.flatnonzero(np.asarray(sample_weight) > 0)
    if count >= len(rows):
        return X[rows]
    rng = check_random_state(random_state)
    if how == "kmeans":
        return _centres(X, rows, count, rng)
    probabilities = None if how == "uniform" else _leverage(kernel, X, rows, count, rng)
    return X[np.sort(rng.choice(rows, count, replace=False, p=probabilities))]


def _centres(X, rows, count, rng):
    from sklearn.cluster import MiniBatchKMeans  # takes long to import, and few need it

    if len(rows) > ENOUGH * count:
        rows = np.sort(rng.choice(rows, ENOUGH * count, replace=False))
    seen = X[rows]
    options: dict = {"init": "random", "n_init": 1, "max_iter": 20, "batch_size": max(1024, 2 * count)}
    with threadpool_limits(1, "openmp") if seen.shape[0] * count < SMALL else nullcontext():
        means = MiniBatchKMeans(count, random_state=rng, **options).fit(seen)
    centres = means.cluster_centers_.astype(X.dtype)
    if not sp.issparse(X):
        return np.unique(centres, axis=0)
    return X[rows[np.unique(pairwise_distances_argmin(centres, seen))]]


def _leverage(kernel, X, rows, count, rng):
    """Probabilities of the rows; None if the first draw explains everything."""
    Z = X[np.sort(rng.choice(rows, count, replace=False))]
    K = kernel.gram(Z).astype(float)

    def left(penalty):
        L, rest = factor(K, penalty), kernel.diag(X[rows]).astype(float)
        for some in gen_batches(len(rows), BLOCK):
            rest[some] -= row_norms(lower_solve(L, kernel.gram(Z, X[rows[some]]).astype(float)).T, squared=True)
        return np.maximum(rest, 0.0)

    penalty = float(left(0.0).sum()) / count
    if penalty <= 0:
        return None
    scores = np.minimum(1.0, left(penalty * count / len(rows)) / penalty)
    scores += 1e-3 * scores.mean()  # every row may be drawn
    return scores / scores.sum()


def factor(K: np.ndarray, penalty: float = 0.0, least: float = 1e-10) -> Any:
    """Cholesky factor of K + penalty I, with ``least`` of its mean diagonal added, or as much as rounding asks for."""
    for jitter in least * 100.0 ** np.arange(6):
        size = float(namespace(K).mean(diagonal(K)))
        M = add_diagonal_(copy(row_major(K)), penalty + float(jitter) * size)
        try:
            return cholesky_(M)
        except NotPositiveDefiniteError:
            continue
    raise ValueError(
        "the kernel of the landmarks is far from positive definite: it is no kernel that can be approximated."
        " Use it as it is, without Nystroem, or another kernel."
    )
