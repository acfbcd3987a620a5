"""P of rows with a few weights unlike the others, from the P0 of equal weights: one of those serves all places of them.

With weights W, and w the weight of most rows,

    M = S + alpha W^-1 = M0 + sum_R d_i e_i e_i'      M0 = S + (alpha / w) I,   d_i = alpha / w_i - alpha / w

so that, by Woodbury's identity for the bordered inverse of which P and G are blocks, over the other rows R

    P = P0 - P0_,R C^-1 P0_R,      G = G0 - G0_,R C^-1 P0_R      C = diag(1 / d) + P0_R,R

n |R|^2 operations in the place of n^3. Here as everywhere P is whitened: W^-1/2 P W^-1/2 and G W^-1/2.
"""

import numpy as np

from foldless._engine.linalg import NotPositiveDefiniteError, add_diagonal_, dots, product, scale_, solve, take_block
from foldless._engine.precision import cost
from foldless._engine.precision.base import Explicit, Precision

UNEVEN = 1e3  # ratio of weights beyond which digits are lost


class Reweighted(Precision):
    """P of weights that most rows share, from the P of equal ones."""

    def __init__(self, base, weights, weight, alpha):
        self.n = base.n
        self.alpha = alpha
        self.choice = "one P of equal weights, updated for the others"
        self._base = base
        self._scale = 1.0 / np.sqrt(weights)
        rows = np.flatnonzero(weights != weight)
        self._P_rows = base.P[rows]
        C = add_diagonal_(take_block(base.P, rows, rows), 1.0 / (alpha / weights[rows] - alpha / weight))
        self._solved = solve(C, self._P_rows)
        self.G = (base.G - base.G[:, rows] @ self._solved) * self._scale

    def apply(self, Y):
        Y = self._scale[:, None] * Y
        update = product(self._P_rows, product(self._solved, Y), transpose_a=True)
        return self._scale[:, None] * (self._base.apply(Y) - update)

    def diagonal(self):
        return np.square(self._scale) * (self._base.diagonal() - dots(self._P_rows, self._solved, axis=0))

    def columns(self, rows):
        update = product(self._P_rows, self._solved[:, rows], transpose_a=True)
        return self._scale[:, None] * (self._base.columns(rows) - update) * self._scale[rows]

    def block(self, rows):
        update = product(self._P_rows[:, rows], self._solved[:, rows], transpose_a=True)
        return self._scale[rows, None] * (self._base.block(rows) - update) * self._scale[rows]

    def explicit(self):
        P = self._base.P - product(self._P_rows, self._solved, transpose_a=True)
        return Explicit(scale_(P, self._scale, self._scale), self.G, self.alpha)


class SharedWeights:
    """P of any weights of the same rows and kernel; those that are nearly all the same follow from one P.

    ``K`` is the Gram matrix of all rows, or None where P is held through features.
    """

    def __init__(self, K):
        self.K = K
        self._bases: dict = {}

    def precision(self, problem):
        """P of the active rows of a problem, which differs from others in its weights alone."""
        rows = problem.active
        weights = np.square(problem.root_w[rows])
        values, counts = np.unique(weights, return_counts=True)
        most = values[np.argmax(counts)]
        if self._suits(problem, rows, values, counts):
            base = self._base(problem, rows, most)
            if base is not None:
                return Reweighted(base, weights, most, problem.alpha)
        return problem.precision(rows, None if self.K is None else self.K.copy())

    def _suits(self, problem, rows, values, counts):
        if self.K is None or problem.more_columns or problem.through_features(len(rows)):
            return False
        even = values.max() <= UNEVEN * values.min()
        return even and cost.reweighting_pays(len(rows), len(rows) - counts.max())

    def _base(self, problem, rows, weight):
        """P of equal weights, unwhitened; None where rounding leaves it without a factor."""
        key = (float(weight), rows.tobytes())
        if key not in self._bases:
            equal = problem.weighted_by(None).replace(alpha=problem.alpha / weight)
            try:
                self._bases[key] = equal.holder(len(rows)).from_problem(equal, rows, self.K.copy()).explicit()
            except NotPositiveDefiniteError:
                self._bases[key] = None
        return self._bases[key]
