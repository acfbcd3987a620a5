"""From fits to decisions: codings, optimal scoring, centroids, thresholds, priors.

A readout names the targets Y of the regression and turns fits at any rows, with the class matrices N and U of the
training part that made them, into decisions. It never asks how the fits arose, so the same few lines serve the fitted
model, a fold, n leave-one-out models at once, or thousands of permutations: all arguments may carry leading batch
axes.

**Discriminant** (Treder 2019, section 2.2, with the corrections below). Y is the indicator matrix, F its fits, N the
diagonal of class masses and U = N - Y' W F. Kernel Fisher discriminants are optimal scores:

    U theta = (1 - a2) N theta,   theta' N theta = 1,   the constant score removed exactly
    z = F Theta D,   D = diag( 1 / sqrt(a2 (1 - a2)) ),   centroids = N^-1 V Theta D,   V = N - U
    decision_k = -nu/2 |z - centroid_k|^2 + log prior_k,   nu = sum of the masses

The scores z equal those of the eigenproblem (S_b, S_w + alpha I) in feature space, scaled to W' (S_w + alpha I) W = I.
(The paper prints D as the square root instead of its inverse and leaves the masses N out.) 1 - a2 is an eigenvalue,
never a difference; where all axes are weak and V is given, a2 is one. Without an intercept the scatter is taken about
the origin and no constant is removed. With confounds the scatters are those of what the confounds leave unexplained: R
of ``foldless.moments`` takes the place of N in the eigenproblem, and the centroids are means of the scores without the
confounds' part.

Up to -nu/2 |z|^2, which all classes share, decisions are affine in the fits (``affine``); that is enough for labels.

**Two classes** have one score and four thresholds; each is affine in the fits f0, f1 of the two indicators:

    "pm1"       f1 - f0                    targets +-1, cut at 0 (LS-SVM; Cawley 2006; Bo et al. 2006)
    "fisher"    f1 l/l1 - f0 l/l0          targets +l/l1, -l/l0, masses of the training part (Cawley & Talbot 2003)
    "centroid"  decision_1 - decision_0    midpoint of the centroids, moved by priors (Treder 2019)
    "loo"       f1 - f0, cut where the leave-one-out error is least (Cawley 2006, "altering the bias")

Classes without mass in a training part never win there.
"""

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from foldless.moments import SMALL

THRESHOLDS = ("fisher", "pm1", "centroid", "loo")


class Readout(Protocol):
    """What ``foldless.task`` asks of a readout."""

    needs_moments: ClassVar[bool]

    @property
    def needs_axes(self) -> bool:
        """Whether decisions take more of the class matrices than the masses."""

    @property
    def cuts(self) -> bool:
        """Whether the decision is shifted to the best leave-one-out cut."""

    def scores(self, fits, moments):
        """Decisions of fits (..., t, m) by the class matrices of their training part, before any cut."""

    def affine(self, moments):
        """(slopes (..., m, k), offsets (..., k)) of decisions that are affine in the fits; None where they are them."""


def settle(decision, size):
    """Decisions in place, 0 where rounding of what was added up, of this size in all, can have made them.

    Rounding depends on the labels, which must not be read off it.
    """
    decision[np.abs(decision) <= 16 * np.finfo(decision.dtype).eps * size] = 0.0
    return decision


def tie_best(decisions, axis, size):
    """Decisions with those that rounding alone tells from the largest of a row made equal to it."""
    best = decisions.max(axis, keepdims=True)
    close = best - decisions <= 16 * np.finfo(decisions.dtype).eps * np.maximum(np.abs(best), size)
    return np.where(close, best, decisions)


def indicator(codes, n_classes, dtype):
    """Y with a one in the column of each row's class."""
    Y = np.zeros((len(codes), n_classes), dtype)
    Y[np.arange(len(codes)), codes] = 1.0
    return Y


@dataclass(frozen=True)
class Regression:
    """Targets are values; decisions are the fits."""

    needs_moments: ClassVar[bool] = False
    needs_axes: ClassVar[bool] = False
    cuts: ClassVar[bool] = False

    def scores(self, fits, moments=None):
        """The fits themselves."""
        return fits

    def affine(self, moments=None):
        """None: decisions are the fits."""


@dataclass(frozen=True)
class OneAgainstAll:
    """Targets +-1, one column a class (one column in all for two classes); decisions are the fits."""

    n_classes: int
    centred: bool = True  # an intercept was fitted: decisions near 0 are differences
    needs_moments: ClassVar[bool] = False
    needs_axes: ClassVar[bool] = False
    cuts: ClassVar[bool] = False

    def targets(self, codes, dtype):
        """+1 in the column of the own class, -1 elsewhere."""
        if self.n_classes == 2:
            return (2 * codes[:, None] - 1).astype(dtype)
        return 2 * indicator(codes, self.n_classes, dtype) - 1

    def scores(self, fits, moments=None):
        """(..., n_classes), or (...,) for two classes."""
        if self.n_classes > 2:
            return tie_best(fits, -1, float(self.centred))
        return settle(fits[..., 0].copy(), 1.0) if self.centred else fits[..., 0]

    def affine(self, moments=None):
        """None: decisions are the fits."""


@dataclass(frozen=True)
class Discriminant:
    """Optimal scoring of the indicator matrix."""

    n_classes: int
    threshold: str = "pm1"
    priors: tuple | None = None
    n_components: int | None = None
    centred: bool = True  # an intercept was fitted: the constant score is trivial

    needs_moments: ClassVar[bool] = True

    @property
    def cuts(self):
        """Whether the decision is shifted to the best leave-one-out cut."""
        return self.n_classes == 2 and self.threshold == "loo"

    @property
    def needs_axes(self):
        """Whether decisions take more of the class matrices than the masses."""
        return self.n_classes > 2 or self.threshold == "centroid"

    def targets(self, codes, dtype):
        """The indicator matrix."""
        return indicator(codes, self.n_classes, dtype)

    def scores(self, fits, moments):
        """Decisions before a leave-one-out cut: (..., t, c), or (..., t) for two classes."""
        if self.n_classes == 2:
            slopes, offsets = self.affine(moments)
            return combine(slopes[..., None, 0, 0], fits[..., 0], slopes[..., None, 1, 0], fits[..., 1], offsets)
        mass = moments.mass
        scalings, centroids, _ = self.axes(moments)
        z = fits @ scalings
        squares = np.square(z[..., :, None, :] - centroids[..., None, :, :]).sum(-1)
        decision = -0.5 * mass.sum(-1)[..., None, None] * squares
        if self.priors is not None:
            decision = decision + np.log(self.priors).astype(fits.dtype)
        return np.where(mass[..., None, :] > 0, decision, np.finfo(fits.dtype).min)

    def affine(self, moments):
        """(slopes (..., c, k), offsets (..., k)): decisions are F slopes + offsets before a cut; k = c, or 1.
        Two classes have k = 1. Several classes lack -nu/2 |z|^2, which is the same for all of them.
        """
        mass = moments.mass
        nu = mass.sum(-1, keepdims=True)
        if not self.needs_axes:
            share = _safe_inverse(mass / nu) if self.threshold == "fisher" else np.ones_like(mass)
            return (share * np.array([-1, 1], mass.dtype))[..., None], np.zeros_like(nu)
        scalings, centroids, _ = self.axes(moments)
        slopes = nu[..., None] * (scalings @ np.swapaxes(centroids, -1, -2))
        offsets = -0.5 * nu * np.square(centroids).sum(-1)
        if self.priors is not None:
            offsets = offsets + np.log(self.priors).astype(mass.dtype)
        here = mass > 0
        slopes = np.where(here[..., None, :], slopes, 0.0)
        offsets = np.where(here, offsets, np.finfo(mass.dtype).min)
        if self.n_classes == 2:
            return slopes[..., 1:] - slopes[..., :1], offsets[..., 1:] - offsets[..., :1]
        return slopes, offsets

    def axes(self, moments):
        """Theta D (c, k), the centroids (c, k) and a2 (k,), k = c - 1 with an intercept, best axis first."""
        mass, U = moments.mass, moments.U
        empty = mass <= 0
        root = np.sqrt(np.maximum(mass, 0))
        scale = _safe_inverse(root)
        T = scale[..., :, None] * U * scale[..., None, :]
        # A class without mass has no score: eigenvalue 1 - a2 = 1 puts it among the axes that carry nothing.
        T = T + empty[..., None].astype(T.dtype) * np.eye(self.n_classes, dtype=T.dtype)
        basis = _complement(root) if self.centred else np.broadcast_to(np.eye(self.n_classes, dtype=T.dtype), T.shape)
        floor = 8 * self.n_classes * np.finfo(T.dtype).eps
        lost = np.zeros((), T.dtype)
        if moments.R is not None:
            basis, lost = _whitened(basis, scale[..., :, None] * moments.R * scale[..., None, :], floor)
        T = np.swapaxes(basis, -1, -2) @ (T + np.swapaxes(T, -1, -2)) / 2 @ basis + lost
        rest, V = np.linalg.eigh(T)
        rest = np.clip(rest, np.finfo(T.dtype).tiny ** 0.5, 1.0)
        a2 = 1.0 - rest
        if moments.R is None and moments.V is not None:
            a2, V = self._weak_axes(a2, V, scale[..., :, None] * moments.V * scale[..., None, :], basis)
        D = (a2 > floor) / np.sqrt(np.maximum(a2, floor) * rest)
        Theta = scale[..., :, None] * (basis @ V)
        Theta = Theta * _signs(Theta)
        scalings = Theta * D[..., None, :]
        if moments.V is None:
            centroids = scalings - scale[..., :, None] ** 2 * (U @ scalings)
        else:
            centroids = scale[..., :, None] ** 2 * (moments.V @ scalings)
        k = self.n_components or rest.shape[-1]
        return scalings[..., :k], centroids[..., :k], a2[..., :k]

    def _weak_axes(self, a2, vectors, V, basis):
        """a2 and the vectors, from V where all axes are weak: a2 is an eigenvalue there, not a difference."""
        values, own = np.linalg.eigh(np.swapaxes(basis, -1, -2) @ (V + np.swapaxes(V, -1, -2)) / 2 @ basis)
        weak = a2.max(-1, keepdims=True) < 2 * SMALL[a2.dtype.itemsize]
        return np.where(weak, values[..., ::-1], a2), np.where(weak[..., None], own[..., ::-1], vectors)


def combine(slope_0, fits_0, slope_1, fits_1, offset):
    """Decisions of two classes, affine in their fits.

    Term by term, not by a matrix product: equal fits give equal decisions.
    """
    terms = slope_0 * fits_0, slope_1 * fits_1
    return settle(terms[0] + terms[1] + offset, np.abs(terms[0]) + np.abs(terms[1]) + np.abs(offset))


def _safe_inverse(values):
    """1 / values, and 0 where a value is 0."""
    return np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)


def _complement(root):
    """Orthonormal basis (c, c - 1) of the complement of a positive vector, from its Householder matrix."""
    u = root / np.linalg.norm(root, axis=-1, keepdims=True)
    v = u.copy()
    v[..., 0] += 1.0  # u >= 0, so nothing cancels here
    H = np.eye(u.shape[-1], dtype=u.dtype) - v[..., :, None] * v[..., None, :] / v[..., :1, None]
    return H[..., :, 1:]


def _whitened(basis, R, floor):
    """A basis in which R is the identity, and a diagonal of ones for directions that have no R, which come out as 0."""
    e, Z = np.linalg.eigh(np.swapaxes(basis, -1, -2) @ R @ basis)
    lost = e <= floor
    basis = basis @ (Z * np.where(lost, 0.0, 1.0 / np.sqrt(np.where(lost, 1.0, e)))[..., None, :])
    return basis, lost[..., None].astype(R.dtype) * np.eye(e.shape[-1], dtype=R.dtype)


def _signs(Theta):
    """Signs that make the largest entry of every score vector positive: axes are then reproducible."""
    largest = np.take_along_axis(Theta, np.abs(Theta).argmax(-2)[..., None, :], -2)
    return np.where(largest < 0, -1.0, 1.0).astype(Theta.dtype)


def best_cut(scores, positive, weights):
    """The cut between sorted scores with the least weighted error; of equal ones the nearest to 0.

    Rows with a score above the cut are called positive. Ties in the scores cannot be separated.
    """
    order = np.argsort(scores, kind="stable")
    s, w = scores[order], weights[order]
    sign = np.where(positive[order], w, -w)
    # errors[i]: everything from position i on is called positive
    errors = np.concatenate([[0.0], np.cumsum(sign)]) + w[~positive[order]].sum()
    cuts = np.concatenate([[s[0] - 1.0], (s[1:] + s[:-1]) / 2, [s[-1] + 1.0]])
    allowed = np.concatenate([[True], s[1:] > s[:-1], [True]])
    slack = 1e-12 * w.sum()  # sums of weights in another order differ by rounding
    best = allowed & (errors <= errors[allowed].min() + slack)
    candidates = cuts[best]
    # a whole interval may be free of scores around 0: then 0 itself
    lower = np.concatenate([[-np.inf], s])[best]
    upper = np.concatenate([s, [np.inf]])[best]
    if np.any((lower < 0) & (upper > 0)):
        return 0.0
    return float(candidates[np.abs(candidates).argmin()])
