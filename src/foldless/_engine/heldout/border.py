"""New rows bordered onto a fit: residuals of all n + 1 rows, linear in the target of the new one.

For a new row x with kernel k to the n rows, unpenalised columns q and target y (``precision.growing`` learns it):

    f = k' A + q' B,   c = P k + G' q,   s = alpha + k(x, x) - k' c - q' d,   d = G k - Omega q,   e = y - f
    P <- [ P + c c'/s,  -c/s ; -c'/s,  1/s ]           A <- [ A - c e/s ; e/s ]

so that, with p = diag P and h = s p + c^2, leaving out one of the n + 1 rows leaves the residuals

    (s A_i - c_i e) / h_i   of row i,      e   of the new row,

and those divided by their standard deviation, A_i / P_ii^1/2, are (s A_i - c_i e) / h_i^1/2 and e, up to a factor that
all share. Through explicit features phi, of which Phi' c is what the rows reproduce, nothing is subtracted:

    s = alpha (1 + |c|^2) + |phi - Phi' c|^2

O(n^2) a new row, in one product for many. Q is an intercept or nothing. All rows, the new one too, have one weight r^2:
k is r^2 k, q is r q and y is r y.
"""

from dataclasses import dataclass

import numpy as np

from foldless._engine.linalg import dots, row_major


@dataclass(frozen=True)
class Border:
    """t new rows, each bordered alone: fits f (t, m), weights c (t, n), pivots s (t,); A (n, m) and p (n,) as above."""

    f: np.ndarray
    c: np.ndarray
    s: np.ndarray
    A: np.ndarray
    p: np.ndarray

    @property
    def h(self):
        """(t, n)"""
        h = self.s[:, None] * self.p + np.square(self.c)
        return np.maximum(h, np.finfo(h.dtype).tiny)


def border(solution, X):
    """The :class:`Border` of new rows X, of a solution with the function norm, equal weights and no confounds."""
    P = solution.own_precision
    problem = solution.problem
    r = solution.root[0, 0]
    Q = np.ones((X.shape[0], problem.Q.shape[1]), problem.dtype)
    if solution.weights is not None:
        Phi = problem.features_new(X)
        f, c = Phi @ solution.weights + Q @ solution.B, r * (Phi @ P.feature_weights(slice(None)) + Q @ P.G)
        rest = r * (Phi - c @ problem.features(solution.rows))
        s = problem.alpha * (1.0 + dots(c, c)) + dots(rest, rest)
    else:
        K, q = r**2 * problem.gram_new(X, solution.rows), r * Q
        f, c = K @ solution.A / r + Q @ solution.B, P.apply(row_major(K.T)).T + q @ P.G
        s = problem.alpha + r**2 * problem.diag_new(X) - dots(K, c)
        if Q.shape[1]:
            s = s - dots(q, K @ P.G.T - q @ solution.Omega)
    return Border(f, c, np.maximum(s, problem.alpha).astype(c.dtype), solution.A / r, P.diagonal())
