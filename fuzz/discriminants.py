"""Kernel Fisher discriminants by plain refits: indicator fits, a small eigenproblem, thresholds.

With N the class masses, F the fits of the indicators and U = Y' W (Y - F): U theta = (1 - a2) N theta without the
constant score; z = F Theta D, D = 1 / sqrt(a2 (1 - a2)); centroids N^-1 (N - U) Theta D; decisions
-nu/2 |z - centroid|^2 + log prior.
"""

import numpy as np

from fuzz.oracles import LD, Fits, Refit

NOTHING = 1e-13  # share of a2 below which an axis carries nothing
SOMETHING = 1e-17  # share above which it may: in between, rounding decides whether an axis counts


def jacobi(T, sweeps=60):
    """Eigenvalues, smallest first, and vectors of a small symmetric matrix by rotations."""
    T, V = np.array(T, LD), np.eye(len(T), dtype=LD)
    for _ in range(sweeps):
        off = np.abs(T - np.diag(np.diag(T))).max(initial=0)
        if off <= np.abs(np.diag(T)).max(initial=0) * LD(1e-24) or off == 0:
            break
        for i in range(len(T)):
            for j in range(i + 1, len(T)):
                if T[i, j] == 0:
                    continue
                theta = (T[j, j] - T[i, i]) / (2 * T[i, j])
                t = (1 if theta >= 0 else -1) / (abs(theta) + np.sqrt(theta * theta + 1))
                c = 1 / np.sqrt(t * t + 1)
                R = np.eye(len(T), dtype=LD)
                R[i, i] = R[j, j] = c
                R[i, j], R[j, i] = t * c, -t * c
                T = R.T @ T @ R
                V = V @ R
                T = (T + T.T) / 2
    order = np.argsort(np.diag(T), kind="stable")
    return np.diag(T)[order], V[:, order]


def complement(u):
    """Orthonormal columns orthogonal to u, by Gram and Schmidt, twice."""
    basis = [u / np.sqrt(u @ u)]
    for unit in np.eye(len(u), dtype=LD)[np.argsort(-np.abs(u))[::-1]]:
        v = unit
        for _ in range(2):
            for b in basis:
                v = v - (b @ v) * b
        length = np.sqrt(v @ v)
        if length > 1e-6 and len(basis) < len(u):
            basis.append(v / length)
    return np.stack(basis[1:], 1)


class Discriminant:
    """The discriminant of one training part; ``codes`` number the classes, all of which have mass in it."""

    def __init__(self, problem, train, codes, c, threshold="pm1", priors=None, n_components=None):
        self.problem, self.c, self.threshold = problem, c, threshold
        self.priors = None if priors is None else np.asarray(priors, LD) / np.sum(np.asarray(priors, LD))
        self.refit = refit = Refit(problem, train)
        rows = refit.train
        w, Y = np.asarray(problem.w, LD)[rows], np.eye(c, dtype=LD)[codes[rows]]
        self.codes, self.rows, self.weights = codes, rows, w
        self.mass = Y.T @ w
        self.U = Y.T @ refit.residuals
        self.nu = w.sum()
        root = np.sqrt(self.mass)
        T = self.U / root[:, None] / root[None, :]
        basis = complement(root) if problem.intercept else np.eye(c, dtype=LD)
        self.rest, V = jacobi(basis.T @ (T + T.T) @ basis / 2)
        self.a2 = 1 - self.rest
        self.alive = self.a2 > NOTHING
        self.clear = bool(np.all(self.alive | (self.a2 < SOMETHING)))
        self.k = len(self.rest) if n_components is None else n_components
        D = np.where(self.alive, 1 / np.sqrt(np.maximum(self.a2, LD(1e-30)) * np.maximum(self.rest, LD(1e-300))), 0)
        self.scalings = (basis @ V / root[:, None] * D)[:, : self.k]
        self.D = D[: self.k]
        self.centroids = self.scalings - (self.U @ self.scalings) / self.mass[:, None]

    def amplification(self, vectors):
        """How much the eigenproblem magnifies relative errors; with the gaps where single axes matter."""
        shown = slice(0, self.k)
        a2, rest = np.asarray(self.a2[shown], float), np.asarray(self.rest[shown], float)
        alive = self.alive[shown]
        small = np.concatenate([a2[alive], rest]) if alive.any() else rest
        worst = 1.0 / max(float(small.min()), 1e-300)
        if vectors or self.k < len(self.rest):
            values = np.sort(np.asarray(self.rest, float))
            gaps = np.diff(values)
            gap = gaps.min() if vectors and len(gaps) else (gaps[self.k - 1] if self.k < len(values) else 1.0)
            worst *= 1.0 / max(float(gap), 1e-300)
        return worst

    def indicator_fits(self, test):
        """Fits of the indicators at rows."""
        return self.refit.at(test)

    def transform(self, test):
        """Scores z, columns up to their signs."""
        fits = self.indicator_fits(test)
        z = fits.values @ self.scalings
        return Fits(z, *(2 * [self._error(fits, vectors=True) + np.zeros(z.shape)]))

    def _error(self, fits, vectors):
        """Error of z that rounding may explain, for each row (t, 1)."""
        size = float(1 / np.sqrt(self.mass.min()) * max(float(self.D.max(initial=0)), 1.0))
        return np.asarray(fits.tolerance.max(1, keepdims=True), float) * size * self.amplification(vectors)

    def decisions(self, test):
        """(t, c) decisions, or (t,) for two classes."""
        test = np.asarray(test)
        fits = self.indicator_fits(test)
        if self.c == 2 and self.threshold != "centroid":
            f0, f1 = fits.values.T
            t0, t1 = fits.tolerance.T
            share = self.nu / self.mass if self.threshold == "fisher" else np.ones(2, LD)
            values = f1 * share[1] - f0 * share[0]
            tolerance = np.asarray(t1 * share[1] + t0 * share[0], float)
            fine = np.minimum(fits.fine[:, 1] * share[1] + fits.fine[:, 0] * share[0], tolerance)
            if self.threshold == "loo":
                cut, error = self.best_cut()
                values, tolerance = values - cut, tolerance + error
                fine = tolerance
            return Fits(values, tolerance, fine)
        z = fits.values @ self.scalings
        distance = z[:, None, :] - self.centroids[None]
        squares = (distance * distance).sum(2)
        values = -self.nu / 2 * squares
        error = self._error(fits, vectors=False)
        length = np.asarray(np.sqrt(squares), float)
        tolerance = float(self.nu) * (length * error + error * error)
        if not self.alive[: self.k].all():
            tolerance = tolerance + float(self.nu / self.mass.min()) * fits.tolerance.max(1, keepdims=True)
        if self.priors is not None:
            values = values + np.log(self.priors)
        relative = self.refit.relative if self.refit.judged and self.clear else np.inf
        tolerance = np.maximum(tolerance, relative * np.asarray(np.abs(values), float).max(1, keepdims=True))
        if self.c == 2:
            values, tolerance = values[:, 1] - values[:, 0], tolerance.sum(1)
        return Fits(values, tolerance, tolerance)

    def best_cut(self):
        """The cut of f1 - f0 with the least leave-one-out error and its uncertainty; infinite where it is a toss-up."""
        parts = [Refit(self.problem, np.delete(self.rows, i)).at([row]) for i, row in enumerate(self.rows)]
        s = np.array([part.values[0, 1] - part.values[0, 0] for part in parts])
        for i in range(len(s)):
            classes = np.unique(self.codes[np.delete(self.rows, i)])
            if len(classes) == 1:  # the only one is voted for
                s[i] = np.abs(s[i]) * (1 if classes[0] == 1 else -1)
        errors = np.array([part.tolerance[0].sum() for part in parts])
        order = np.argsort(s, kind="stable")
        s, w, error = s[order], np.asarray(self.weights, LD)[order], float(errors.max())
        up = self.codes[self.rows][order] == 1
        if np.any(np.diff(s) <= 2 * error) or np.any(np.abs(s) <= error):
            return LD(0), np.inf
        cuts = np.concatenate([[s[0] - 1], (s[1:] + s[:-1]) / 2, [s[-1] + 1]])
        lower, upper = np.concatenate([[-np.inf], s]), np.concatenate([s, [np.inf]])
        cuts = np.where((lower < 0) & (upper > 0), 0, cuts)
        losses = np.array([w[up & (s <= cut)].sum() + w[~up & (s > cut)].sum() for cut in cuts])
        near = losses <= losses.min() + 1e-9 * w.sum()
        if np.any(near & (losses > losses.min() + 1e-14 * w.sum())):
            return LD(0), np.inf
        sizes = np.sort(np.abs(cuts[near]))
        if len(sizes) > 1 and sizes[1] - sizes[0] <= 2 * error:
            return LD(0), np.inf
        return cuts[near][np.abs(cuts[near]).argmin()], error
