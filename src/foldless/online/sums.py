"""Learn and forget rows of a model by explicit features from sums over its rows, in r x r.

With whitened features Phi (n, r), columns Q = Qo R and C = I - Qo Qo' (the other side of Woodbury's identity for P):

    (Phi' C Phi + alpha I) w = Phi' C Y,    B = R^-1 Qo' (Y - Phi w),    A = P Y = (Y - Phi w - Q B) / alpha

Phi' Phi, about an origin that stays where it is, is a sum over rows: t rows come and go for t r^2 operations. What
follows costs r^3 / 3 and n r for each target. Leave-one-out takes a decomposition of all rows, n r^2, when it is asked
for.

Squares keep 8 digits down to alpha = 1e-8 |Phi' Phi| (``precision.lowrank``), rounding stays from rows that have left,
and adds up: below that alpha, where half of the sum is gone, and after a hundred changes, there is no solution from
here.
"""

from typing import NamedTuple

import numpy as np
from sklearn.utils import gen_batches

from foldless.linalg import (
    NotPositiveDefiniteError,
    add_square_,
    cholesky_,
    cholesky_solve,
    mirror_,
    orthonormal,
    product,
    upper_solve,
)

SQUARED = 1e-8  # alpha by the trace of the sum, down to which it keeps 8 digits
GONE = 0.5  # share of the largest trace so far, below which rounding of rows that have left may count
MANY = 100  # changes
BLOCK = 2**22  # entries of features that are looked at together


class FeatureSums(NamedTuple):
    """The ``gram`` matrix (r, r) of features about ``origin``, its largest trace so far, and changes it has seen."""

    gram: np.ndarray
    origin: np.ndarray
    peak: float = 0.0
    changes: int = 0


def sums_of(problem):
    """The sums over all rows of a problem, n r^2."""
    r = problem.kernel.n_features(problem.X)
    origin = np.zeros(r)
    if problem.intercept:
        weights = np.square(problem.root_w[problem.active], dtype=float)
        origin = product(problem.features(problem.active), (weights / weights.sum())[:, None], transpose_a=True)[:, 0]
    return changed(FeatureSums(np.zeros((r, r)), origin), problem, problem.active, 1.0)._replace(changes=0)


def changed(sums, problem, rows, sign):
    """The sums with these rows of a problem (sign 1), or without them (-1)."""
    added = np.zeros_like(sums.gram)
    for batch in gen_batches(len(rows), max(1, BLOCK // len(added))):
        some = rows[batch]
        T = problem.root(some) * (problem.features(some) - sums.origin)
        add_square_(added, np.ascontiguousarray(T, dtype=np.float64).T)
    gram = sums.gram + sign * mirror_(added)
    return sums._replace(gram=gram, peak=max(sums.peak, float(gram.trace())), changes=sums.changes + 1)


def solved(sums, problem, Y):
    """(A, B, w) of the whitened targets Y of all rows of a problem; None where sums have too few digits."""
    trace = float(sums.gram.trace())
    if not (sums.changes <= MANY and GONE * sums.peak <= trace and SQUARED * sums.peak <= problem.alpha):
        return None
    rows, dtype = problem.active, problem.dtype
    root, Phi = problem.root(rows), problem.features(rows)
    rest, B = problem.beyond_unpenalised(rows, Y)
    Qo, R = orthonormal(problem.whitened_columns(rows))
    found = product(Phi, root * np.hstack([Qo, rest]), transpose_a=True).astype(np.float64)
    q = Qo.shape[1]
    taken = found[:, :q] - np.outer(sums.origin, root.T.astype(float) @ Qo)  # (Phi about its origin)' Qo
    M = sums.gram - taken @ taken.T
    M.flat[:: len(M) + 1] += problem.alpha
    try:
        w = cholesky_solve(cholesky_(M), found[:, q:]).astype(dtype)
    except NotPositiveDefiniteError:
        return None
    rest = rest - root * product(Phi, w)
    inside = Qo.T @ rest
    return (rest - Qo @ inside) / dtype.type(problem.alpha), B + upper_solve(R, inside), w
