"""The least coefficients that reproduce the targets: one QR factorisation, updated as rows come and go.

With M = K + alpha I, G = [1, M] (n x (n + 1)) and targets Y (n x m), KDA/RMSE (Kim, Drake & Park 2006, eq. 16-20) is

    x = [b; z] = G^+ Y = Q1 R^-T Y         G' = [Q1, q] [R; 0]         f(x) = k(x)' z + b

A new row borders G with a row and a column, a forgotten one takes both away (Algorithms 5 and 6): O(n^2) for each row,
by rotations, without loss of orthogonality. Leaving every row out of a copy of the factors (Algorithm 7) costs O(n^3)
with a large constant. The same follows at once from one set of factors. With g_i = G^+ e_i, p_i = |g_i|^2 and r_i the
entry of g_i at z_i:

    without equation i       x - g_i E_i, E_i = g_i' x / p_i; the null space is now spanned by q and g_i
    and without unknown z_i  which is m_i = z_i - r_i E_i there: the least step in the null space that makes it 0 is
                             m_i / h_i times the projection of its axis, h_i = q_i^2 + r_i^2 / p_i
    held-out fit             y_i - E_i - (r_i / p_i) m_i / h_i

p, r and q are read off R^-1 and Q: n^3/3 flops, and errors of the order of eps cond(M), since G G' = M^2 + 1 1' is not
formed.

Exact for alpha > 0 and any symmetric K for which G has full row rank (every positive semi-definite one). For alpha = 0,
KDA/MSE, ``pseudo_solve`` takes the singular values above rounding (eq. 14).
"""

import numpy as np

from foldless._engine import linalg
from foldless._engine.linalg import least_norm
from foldless._engine.precision import cost

EPS = np.finfo(np.float64).eps


class RankError(linalg.LinAlgError):
    """The rows of G = [1, K + alpha I] are dependent in double precision."""


class MinimumNorm:
    """The factors Q ((n + 1) x (n + 1)) and R ((n + 1) x n) of G'; ``insert`` and ``remove`` return new ones.

    K is the symmetric kernel matrix (n, n), alpha > 0 is added to its diagonal. ``updates`` counts those between these
    factors and a factorisation; their backward error grows like its square root.

    >>> import numpy as np
    >>> from foldless._engine.online.minimum_norm import MinimumNorm
    >>> K = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 2.0]])
    >>> Y = np.array([[1.0], [-1.0], [1.0]])
    >>> MinimumNorm(K[:2, :2], 0.1).insert(K[:2, 2:], K[2:, 2:]).solve(Y).ravel().round(3)
    array([ 0.778,  0.931, -1.734,  0.931])
    >>> MinimumNorm(K, 0.1).loo(Y).ravel().round(3)
    array([-0.909,  0.967, -0.909])
    """

    def __init__(self, K, alpha):
        n = len(K)
        cost.require_qr(n)
        columns = np.empty((n + 1, n), order="F")
        columns[0], columns[1:] = 1.0, K
        linalg.add_diagonal_(columns[1:], alpha)
        Q, R = least_norm.qr_(columns)
        self._set(Q, R, float(alpha), 0)

    def _set(self, Q, R, alpha, updates):
        size = np.abs(R.diagonal())
        if not size.min() > len(size) * EPS * size.max():  # NaN as well
            raise RankError(
                f"alpha={alpha:.3g} is lost in the rounding of this kernel matrix: the equations are dependent in"
                " double precision. Use a larger alpha, or rescale X or the kernel."
            )
        # SciPy returns views of larger factors, in which the row that was removed can still be read.
        Q, R = (part if part.base is None else part.copy(order="F") for part in (Q, R))
        self._Q, self._R, self.n = Q, R, len(size)
        self.alpha, self.updates = alpha, updates
        return self

    def _next(self, Q, R):
        return MinimumNorm.__new__(MinimumNorm)._set(Q, R, self.alpha, self.updates + 1)

    def insert(self, C, D):
        """The factors with p more rows at the end (Algorithm 5, for a block).

        C (n, p) is the kernel between the rows so far and the new ones, D (p, p) that of the new rows.
        """
        p = C.shape[1]
        Q, R = least_norm.append_rows(self._Q, self._R, C.T)
        columns = np.vstack([np.ones((1, p)), C, D + self.alpha * np.eye(p)])
        return self._next(*least_norm.insert_columns_(Q, R, columns, self.n))

    def remove(self, rows):
        """The factors without ``rows``, sorted positions; neighbours go together (Algorithm 6, for blocks)."""
        rows = np.asarray(rows)
        Q, R = self._Q, self._R
        for run in reversed(np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1)):
            ours = Q is not self._Q  # the factors of this object stay as they are
            Q, R = least_norm.delete(Q, R, run[0], len(run), "col", overwrite=ours)
            Q, R = least_norm.delete(Q, R, run[0] + 1, len(run), "row")
        return self._next(Q, R)

    def solve(self, Y):
        """[b; z] of shape (n + 1, m) for targets Y of shape (n, m)."""
        return linalg.product(self._Q[:, : self.n], self._whitened(Y))

    def _whitened(self, Y):
        return linalg.upper_solve(self._R[: self.n].T, Y, lower=True)

    def loo(self, Y):
        """Fits of all rows, each by the solution without it, (n, m): the closed form, n^3/3 flops."""
        n, q = self.n, self._Q[1:, -1]
        inverse = linalg.invert_lower_(self._R[:n].T.copy("F")).T  # no zero pivot: the rank was looked at
        Y1 = self._whitened(Y)
        p = np.einsum("ij,ij->i", inverse, inverse)[:, None]
        r = np.einsum("ij,ij->i", inverse, self._Q[1:, :n])[:, None]
        E = linalg.product(inverse, Y1) / p
        m = linalg.product(self._Q[1:, :n], Y1) - r * E
        h = q[:, None] ** 2 + r**2 / p
        if not h.min() > (10 * n * EPS) ** 2:
            raise RankError(
                f"without row {h.argmin()} the equations are dependent: the kernel is not positive semi-definite."
            )
        return Y - E - r / p * m / h

    def loo_downdate(self, Y):
        """The same by Algorithm 7: every row removed from a copy of the factors, solved and evaluated."""
        fits = np.empty_like(Y)
        for i in range(self.n):
            row = linalg.product(self._Q, self._R[:, [i]])  # [1; K_i] with alpha at its own place, which is left out
            fits[i] = np.delete(row[:, 0], i + 1) @ self.remove([i]).solve(np.delete(Y, i, axis=0))
        return fits


def pseudo_solve(K, Y):
    """[b; z] = [1, K]^+ Y by the singular value decomposition (eq. 14): KDA/MSE, dependent rows allowed."""
    G = np.hstack([np.ones((len(K), 1)), K])
    return least_norm.least_squares_(G, Y, EPS * max(G.shape))
