"""The least coefficients that reproduce the targets, for a kernel of r explicit features, fewer than rows.

With K = Phi Phi' (n rows), M = K + alpha I and G = [1, M], x = [b; z] = G^+ Y is what ``online.minimum_norm`` finds by
QR (Kim, Drake & Park 2006, eq. 16-20). Here M^-1 is known by the features (Woodbury). With t = M^-1 1, tau = 1 + t't:

    b = t' M^-1 Y / tau                    z = R Y,    R = (I - t t' / tau) M^-1
    B = (G G')^-1 = M^-1 R                 p = diag B,    rho = diag R,    h = t^2 / tau + rho^2 / p
    held-out fit                           y - (B y) / p - (rho / p) m / h,    m = R y - rho (B y) / p

Solving takes sums over rows, Phi' Phi, and costs r^3 / 3 and n r for each target: rows come and go for r^2 each.
Leave-one-out takes a decomposition of all rows, n r^2, when it is asked for.

Exact for alpha > 0, with errors of the order of eps cond(M).
"""

import numpy as np

from foldless import linalg
from foldless.online.minimum_norm import MinimumNorm
from foldless.online.sums import FeatureSums, added, keep_digits
from foldless.precision.lowrank import OfColumns

FEWER = 2  # rows for each feature, from which on features are the shorter way


class MinimumNormByFeatures:
    """Features ``Phi`` (n, r) of the rows and the sums over them; ``learn`` and ``remove`` return new ones.

    >>> import numpy as np
    >>> from foldless.online.minimum_norm_features import MinimumNormByFeatures
    >>> Phi = np.array([[1.0], [2.0], [0.0], [1.0]])
    >>> Y = np.array([[1.0], [2.0], [0.0], [3.0]])
    >>> found = MinimumNormByFeatures(Phi, 0.5)
    >>> b, *z = found.solve(Y).ravel()
    >>> bool(np.allclose(b + Phi @ (Phi.T @ z) + 0.5 * np.array(z), Y.ravel()))
    True
    """

    by_features = True

    def __init__(self, Phi, alpha, sums=None):
        self.Phi, self.alpha, self.n = Phi, float(alpha), len(Phi)
        if sums is None or not keep_digits(sums, alpha):
            r = Phi.shape[1]
            sums = added(FeatureSums(np.zeros((r, r)), np.zeros(r)), [Phi], 1.0)._replace(changes=0)
        self.sums = sums
        self.updates = sums.changes
        self._precision = None

    @classmethod
    def of(cls, kernel, X, alpha):
        """Those of the rows X of a kernel."""
        return cls(kernel.features(X), alpha)

    def learn(self, kernel, X, more):
        """With rows ``more`` of the kernel behind those so far, X."""
        new = kernel.features(more)
        return type(self)(np.vstack([self.Phi, new]), self.alpha, added(self.sums, [new], 1.0))

    def remove(self, rows):
        """Without ``rows``, sorted positions."""
        return type(self)(np.delete(self.Phi, rows, axis=0), self.alpha, added(self.sums, [self.Phi[rows]], -1.0))

    def solve(self, Y):
        """[b; z] of shape (n + 1, m) for targets Y of shape (n, m)."""
        return self._least(self._inverse(), Y)

    def feature_weights(self, z):
        """Weights of the features from coefficients of the rows."""
        return self.Phi.T @ z

    def _least(self, inverse, Y):
        """[b; z] by a function that multiplies with M^-1."""
        found = inverse(np.hstack([np.ones((self.n, 1)), Y]))
        t, MY = found[:, :1], found[:, 1:]
        b = t.T @ MY / (1.0 + t.T @ t)
        return np.vstack([b, MY - t * b])

    def _inverse(self):
        """The product with M^-1: by sums over rows, or by a decomposition of the rows where these lack digits."""
        if not keep_digits(self.sums, self.alpha):
            return self.precision.apply
        system = self.sums.gram.copy()
        system.flat[:: len(system) + 1] += self.alpha
        L = linalg.cholesky_(system)
        return lambda Y: (Y - self.Phi @ linalg.cholesky_solve(L, self.Phi.T @ Y)) / self.alpha

    @property
    def precision(self):
        """M^-1 by a decomposition of all rows, made when first asked for."""
        if self._precision is None:
            self._precision = OfColumns(self.Phi, np.empty((self.n, 0)), self.alpha)
        return self._precision

    def loo(self, Y):
        """Fits of all rows, each by the solution without it, (n, m): the closed form, n r^2 flops."""
        P = self.precision
        t = P.apply(np.ones((self.n, 1)))
        tau, Mt = 1.0 + t.T @ t, P.apply(t)
        RY = self._least(P.apply, Y)[1:]
        BY = P.apply(RY)
        p = P.squared_diagonal()[:, None] - Mt * Mt / tau
        rho = P.diagonal()[:, None] - t * Mt / tau
        h = t * t / tau + rho * rho / p
        return Y - BY / p - rho / p * (RY - rho * BY / p) / h

    def loo_downdate(self, Y):
        """The same, every row removed by itself."""
        fits = np.empty_like(Y)
        for i in range(self.n):
            rest = self.remove([i])
            x = rest.solve(np.delete(Y, i, axis=0))
            fits[i] = x[0] + self.Phi[i] @ rest.feature_weights(x[1:])
        return fits


def minimum_norm(kernel, X, alpha, known=None):
    """The least solutions for the rows X of a kernel: by its features where it is approximated by few, else by QR.

    ``known`` are those of the same rows by either way, if there are some: they stay unless features are shorter.
    """
    few = kernel.approximates and FEWER * kernel.n_features(X) <= X.shape[0]
    if known is not None and (known.by_features or not few):
        return known
    return (MinimumNormByFeatures if few else MinimumNorm).of(kernel, X, alpha)


def system_times(kernel, X, alpha, z):
    """(M z, |M|) for M = K + alpha I made anew, its norm that of Frobenius; by features where K is approximated."""
    if kernel.approximates:
        Phi = kernel.features(X)
        gram = linalg.outer_square(Phi.T)  # its norm and its trace are those of K
        squared = np.square(gram).sum() + 2 * alpha * gram.trace() + len(Phi) * alpha**2
        return Phi @ (Phi.T @ z) + alpha * z, np.sqrt(squared)
    M = kernel.gram(X)
    M.flat[:: len(M) + 1] += alpha
    return M @ z, linalg.norm(M)
