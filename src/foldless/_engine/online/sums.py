"""Learn and forget rows of a model by explicit features from sums over its rows, in r x r.

With whitened features Phi (n, r), columns Q = Qo R and C = I - Qo Qo' (the other side of Woodbury's identity for P):

    (Phi' C Phi + alpha I) w = Phi' C Y,    B = R^-1 Qo' (Y - Phi w),    A = P Y = (Y - Phi w - Q B) / alpha

Phi' Phi about an origin is a sum over rows: t rows come and go for t r^2 operations. What
follows costs r^3 / 3 and n r for each target. Leave-one-out takes a decomposition of all rows, n r^2, when it is asked
for.

Squares keep 8 digits down to alpha = 1e-8 |Phi' Phi| (``precision.lowrank``). Rounding of rows that have left stays,
and adds up. There is no solution from here below that alpha, where half of the sum is gone, and after a hundred
changes. A mean remembers rows: when some leave, the origin moves to the mean of those that are left.
"""

from typing import NamedTuple

import numpy as np

from foldless._engine.heldout.row_sums import RowSums
from foldless._engine.linalg import (
    NotPositiveDefiniteError,
    add_diagonal_,
    add_square_,
    cholesky_,
    cholesky_solve,
    mirror_,
    orthonormal,
    product,
    row_major,
    upper_solve,
)
from foldless._engine.linalg.batches import gen_batches
from foldless._engine.precision.digits import SQUARED, cancels

GONE = 0.5  # share of the largest trace so far, below which rounding of rows that have left may count
MANY = 100  # changes
BLOCK = 2**22  # entries of features that are looked at together


class FeatureSums(NamedTuple):
    """Sums of the features about ``origin``, the largest trace of their squares so far, and the number of changes."""

    sums: RowSums
    origin: np.ndarray
    peak: float = 0.0
    changes: int = 0

    @property
    def gram(self):
        """Phi' W Phi about the origin, (r, r)."""
        return self.sums.features


def sums_of(problem):
    """The sums over all rows of a problem, n r^2."""
    r = problem.n_features
    origin = np.zeros(r)
    if problem.intercept:
        weights = np.square(problem.root_w[problem.active], dtype=float)
        origin = product(problem.features(problem.active), (weights / weights.sum())[:, None], transpose_a=True)[:, 0]
    nothing = FeatureSums(RowSums(np.zeros((r + 1, r + 1)), r), origin)
    return changed(nothing, problem, problem.active, 1.0)._replace(changes=0)


def changed(sums, problem, rows, sign):
    """The sums with these rows of a problem (sign 1), or without them (-1)."""
    if not len(rows):
        return sums
    square = np.zeros_like(sums.sums.gram)
    for batch in gen_batches(len(rows), max(1, BLOCK // len(square))):
        members = rows[batch]
        T = np.hstack([problem.features(members) - sums.origin, np.ones((len(members), 1))])
        add_square_(square, row_major(problem.root(members) * T).T)
    added = RowSums(mirror_(square), sums.sums.r)
    total = sums.sums + added if sign > 0 else sums.sums - added
    return FeatureSums(total, sums.origin, max(sums.peak, float(total.features.trace())), sums.changes + 1)


def recentred(sums, problem):
    """The sums about the mean of the rows, which are those of a problem."""
    if not problem.intercept:
        return sums._replace(peak=float(sums.gram.trace()))
    mean = sums.sums.mean
    centred = sums.sums.about(mean, np.empty(0))
    return sums._replace(sums=centred, origin=sums.origin + mean, peak=float(centred.features.trace()))


def keep_digits(sums, alpha):
    """Whether a solution from these sums has 8 digits."""
    gone = cancels(sums.gram.trace(), sums.peak, GONE) or cancels(alpha, sums.peak, SQUARED)
    return sums.changes <= MANY and not gone


def solved(sums, problem, Y):
    """(A, B, w) of the whitened targets Y of all rows of a problem; None where that cannot be had."""
    rows, dtype = problem.active, problem.dtype
    root, Phi = problem.root(rows), problem.features(rows)
    rest, B = problem.residual_of_Q(rows, Y)
    Qo, R = orthonormal(problem.whitened_columns(rows))
    q = Qo.shape[1]
    products = np.zeros((len(sums.gram), q + Y.shape[1]))  # Phi' Qo and Phi' Y
    for batch in gen_batches(len(rows), max(1, BLOCK // len(products))):  # in double precision, about the origin
        T = root[batch] * (Phi[batch] - sums.origin)
        products = products + product(T, np.hstack([Qo[batch], rest[batch]]).astype(np.float64), transpose_a=True)
    of_Q = products[:, :q]
    M = add_diagonal_(sums.gram - of_Q @ of_Q.T, problem.alpha)
    try:
        w = cholesky_solve(cholesky_(M), products[:, q:]).astype(dtype)
    except NotPositiveDefiniteError:
        return None
    rest = rest - root * product(Phi, w)
    inside = Qo.T @ rest
    A, B = (rest - Qo @ inside) / dtype.type(problem.alpha), B + upper_solve(R, inside)
    return (A, B, w) if np.isfinite(A).all() and np.isfinite(B).all() else None
