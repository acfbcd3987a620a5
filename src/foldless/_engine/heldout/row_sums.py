"""Sums over rows: all that a linear model in explicit features needs of them. They add up, and rows leave them again.

Training parts of scaled features (``heldout.scaled``), updates (``online.sums``) and chunks of rows (``chunked.sums``)
are models of these sums.

    T = [Phi, 1, Y],    T' W T    with features Phi (n, r), targets Y (n, m) and weights W

About another origin T is T - 1 v', and T' W T becomes  T' W T - a v' - v a' + s v v'  for a = T' W 1 and s = 1' W 1.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class RowSums:
    """T' W T (..., r + 1 + m, r + 1 + m) of r features; leading axes are a batch of sets of rows."""

    gram: np.ndarray
    r: int

    @classmethod
    def of(cls, Phi, Y, w):
        """The sums of rows with features (..., t, r), targets (..., t, m) and weights (..., t)."""
        T = np.concatenate([Phi, np.ones_like(w)[..., None], Y], -1)
        return cls(np.swapaxes(T, -1, -2) @ (w[..., None] * T), Phi.shape[-1])

    def __add__(self, other):
        return RowSums(self.gram + other.gram, self.r)

    def __sub__(self, other):
        return RowSums(self.gram - other.gram, self.r)

    def __getitem__(self, numbers):
        """The sums of some sets of the batch."""
        return RowSums(self.gram[numbers], self.r)

    def total(self):
        """The sums over the rows of all sets of the batch."""
        return RowSums(self.gram.sum(0), self.r)

    @property
    def mass(self):
        """Sum of the weights, (..., 1)."""
        return self.gram[..., self.r, self.r, None]

    @property
    def mean(self):
        """Weighted mean of the features, (..., r)."""
        return self.gram[..., self.r, : self.r] / self.mass

    @property
    def target_means(self):
        """Weighted means of the targets, (..., m)."""
        return self.target_sums / self.mass

    @property
    def target_sums(self):
        """Weighted sums of the targets, (..., m)."""
        return self.gram[..., self.r, self.r + 1 :]

    @property
    def features(self):
        """Phi' W Phi, (..., r, r)."""
        return self.gram[..., : self.r, : self.r]

    @property
    def cross(self):
        """Phi' W Y, (..., r, m)."""
        return self.gram[..., : self.r, self.r + 1 :]

    @property
    def targets(self):
        """Y' W Y, (..., m, m)."""
        return self.gram[..., self.r + 1 :, self.r + 1 :]

    def about(self, mean, level):
        """The sums of features about ``mean`` (..., r) and targets about ``level`` (..., m)."""
        a = self.gram[..., self.r]
        v = np.concatenate([mean, np.zeros_like(mean[..., :1]), level], -1)
        half = (a - 0.5 * self.mass * v)[..., :, None] * v[..., None, :]
        return RowSums(self.gram - half - np.swapaxes(half, -1, -2), self.r)

    def residual_squares(self, B, b):
        """R' W R (m, m) of the residuals R = Y - Phi B - 1 b' of one set of rows."""
        coefficients = np.vstack([-B, -b, np.eye(len(b))])
        return coefficients.T @ self.gram @ coefficients
