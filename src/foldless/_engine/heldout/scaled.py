"""Training parts of a linear model behind features that are centred and scaled on each part.

With the sums of a training part (weights w, features x of r columns, targets y), all of which are those of all rows
minus those of the rows left out,

    G = sum w x x',   g = sum w x,   C = sum w x y',   c = sum w y,   s = sum w
    m, d              mean and standard deviation of the features, without weights

a ridge regression with intercept on z = (x - m) / d has, in the units of x, the coefficients

    B = (G - g g'/s + alpha diag(d^2))^-1 (C - g c'/s),   b = (c - B' g) / s

and without one, on z = (x - m) / d,  B = (G - m g' - g m' + s m m' + alpha diag(d^2))^-1 (C - m c'),  b = -B' m.
A training part takes r^3 flops, whatever its number of rows.

Sums are kept of features standardised by all rows, so that differences keep their digits. Where a feature has nearly no
variance left in a training part, its sums are taken anew from the rows.
"""

from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property

import numpy as np

from foldless._engine.heldout.moments import Moments
from foldless._engine.heldout.plan import FEATURES, LeaveOutPlan
from foldless._engine.heldout.row_sums import RowSums
from foldless._engine.linalg import solve
from foldless._engine.precision.digits import nearly_constant

ENTRIES = 2**21  # entries of an intermediate array


@dataclass(frozen=True)
class ScaledSums:
    """Sums over rows; leading axes are a batch of sets of rows. Scaling takes no weights, the regression does."""

    n: np.ndarray  # rows
    x: np.ndarray  # features, without weights
    xx: np.ndarray
    weighted: RowSums

    @classmethod
    def of(cls, X, Y, w):
        """The sums of rows X (..., t, r), Y (..., t, m), w (..., t)."""
        n = np.full(X.shape[:-2], float(X.shape[-2]))
        return cls(n, X.sum(-2), np.square(X).sum(-2), RowSums.of(X, Y, w))

    def __sub__(self, other):
        return ScaledSums(self.n - other.n, self.x - other.x, self.xx - other.xx, self.weighted - other.weighted)


@dataclass(frozen=True)
class ScaledModel:
    """Models of a batch of training parts: coefficients B (..., r, m) and b (..., m) of the features ``X``."""

    X: np.ndarray
    B: np.ndarray
    b: np.ndarray
    matrices: Moments

    def fits(self, rows):
        """Fits at these rows (..., t), as (..., t, m)."""
        return self.X[rows] @ self.B + self.b[..., None, :]

    def moments(self):
        """Class matrices of the training parts."""
        return self.matrices

    def present_classes(self):
        """All of them, (..., c): where a training part lacks a class, the model is refitted."""
        m = self.B.shape[-1]
        return np.ones((*self.B.shape[:-2], max(m, 2)), bool)


@dataclass(frozen=True)
class HeldOutScaled:
    """k sets of t rows, every one left out alone, from the models without them."""

    models: ScaledModel
    members: np.ndarray

    @property
    def fits(self):
        """(k, t, m)"""
        return self.models.fits(self.members)

    def present_classes(self):
        """Which classes have rows in the training parts, (k, c)."""
        return self.models.present_classes()

    def moments(self):
        """Class matrices of the training parts."""
        return self.models.moments()


@dataclass(frozen=True, eq=False)
class Standardised:
    """Features of all rows without their mean ``center`` and divided by their ``unit``; constant ones do not vary."""

    X: np.ndarray
    center: np.ndarray
    unit: np.ndarray
    varies: np.ndarray

    @classmethod
    def of(cls, X):
        """Those of the features X (n, r)."""
        center, spread = X.mean(0), X.std(0)
        constant = _constant(np.square(spread), center, len(X))
        unit = np.where(constant, 1.0, spread)
        return cls(np.where(constant, 0.0, (X - center) / unit), center, unit, ~constant)


@dataclass(frozen=True, eq=False)
class ScaledParts:
    """Models of any training part, the features centred and scaled there.

    ``X`` (n, r) and ``Y`` (n, m) are dense, ``w`` (n,) the weights of the fit; ``with_mean`` and ``with_std`` say what
    is done to the features in front of it.
    """

    X: np.ndarray
    Y: np.ndarray
    w: np.ndarray
    alpha: float
    _: KW_ONLY
    intercept: bool
    with_mean: bool = True
    with_std: bool = True

    @cached_property
    def standardised(self):
        """The features by the mean and the standard deviation of all rows."""
        return Standardised.of(self.X)

    @cached_property
    def sums(self):
        """Sums of all rows."""
        return ScaledSums.of(self.standardised.X, self.Y, self.w)

    def part(self, train):
        """The model of the rows ``train``."""
        left = np.setdiff1d(np.arange(len(self.X)), train)
        sums = self.sums - self._sums(left[None]) if len(left) < len(train) else self._sums(np.asarray(train)[None])
        models = self._solve(sums, lambda _: train)
        matrices = Moments(models.matrices.N[0], models.matrices.U[0])
        return replace(models, B=models.B[0], b=models.b[0], matrices=matrices)

    @cached_property
    def rows(self):
        """All rows: those of weight 0 are scaled by as well."""
        return np.arange(len(self.X))

    def plan_for(self, sets, *, nested=False):
        """The plan for sets of positions in ``rows``: as many models together as memory holds, of any sets."""
        r = self.X.shape[1]
        together = max(1, ENTRIES // (r * (r + self.Y.shape[1])))
        return LeaveOutPlan(sets.counts, FEATURES, dict.fromkeys(sets.counts, together), reason=f"sums of {r} features")

    def prepared(self, plan):
        """Itself: sums serve any sets."""
        return self

    def held_out(self, members):
        """Results of the sets (k, t) by the models without them."""
        sums = self.sums - self._sums(members)
        models = self._solve(sums, lambda number: np.delete(self.rows, members[number]))
        return HeldOutScaled(models, members)

    def _sums(self, rows):
        return ScaledSums.of(self.standardised.X[rows], self.Y[rows], self.w[rows])

    def _solve(self, sums, rows_of):
        """Models of k training parts from their sums; ``rows_of(number)`` are the rows of one of them."""
        n, mean, features = sums.n[:, None], sums.x / sums.n[:, None], self.standardised
        variance = sums.xx / n - np.square(mean)
        uneven = (features.varies & nearly_constant(variance)).any(1)
        variance = np.where(features.varies & (variance > 0), variance, 1.0)
        squares = variance if self.with_std else np.broadcast_to(1 / np.square(features.unit), variance.shape)
        weighted = sums.weighted
        if self.intercept:
            mean, level = weighted.mean, weighted.target_means
        else:
            mean = mean if self.with_mean else np.broadcast_to(-features.center / features.unit, mean.shape)
            level = np.zeros_like(weighted.target_sums)
        centred = weighted.about(mean, level)
        M = centred.features.copy()
        diagonal = np.arange(M.shape[1])
        M[:, diagonal, diagonal] += self.alpha * squares
        B = solve(M, centred.cross)
        b = level - np.einsum("kr,krm->km", mean, B)
        unexplained = centred.targets - np.swapaxes(centred.cross, 1, 2) @ B
        models = ScaledModel(features.X, B, b, Moments(weighted.targets.copy(), unexplained))
        for number in np.flatnonzero(uneven):
            self._solve_alone(models, number, rows_of(number))
        return models

    def _solve_alone(self, models, number, rows):
        """Put one model in its place, from features that are standardised by its own rows."""
        alone = replace(self, X=self.X[rows], Y=self.Y[rows], w=self.w[rows])
        model, by_all, by_these = alone.part(alone.rows), self.standardised, alone.standardised
        models.B[number] = model.B * (by_all.unit / by_these.unit)[:, None]
        models.b[number] = model.b + ((by_all.center - by_these.center) / by_these.unit) @ model.B
        for matrices, matrix in zip(models.matrices[:2], model.matrices[:2], strict=True):
            matrices[number] = matrix


def _constant(variance, mean, n):
    """Whether features are constant up to rounding, as StandardScaler sees it."""
    eps = np.finfo(variance.dtype).eps
    return variance <= n * eps * variance + np.square(n * mean * eps)
