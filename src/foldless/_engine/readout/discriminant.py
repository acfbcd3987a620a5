"""Kernel Fisher discriminants as optimal scoring: axes, centroids, thresholds, priors.

**Discriminant** (Treder 2019, section 2.2, with the corrections below). Y is the indicator matrix, F its fits, N the
diagonal of class masses and U = N - Y' W F. Kernel Fisher discriminants are optimal scores:

    U theta = (1 - a2) N theta,   theta' N theta = 1,   the constant score removed exactly
    z = F Theta D,   D = diag( 1 / sqrt(a2 (1 - a2)) ),   centroids = N^-1 V Theta D,   V = N - U
    decision_k = -nu/2 |z - centroid_k|^2 + log prior_k,   nu = sum of the masses

The scores z equal those of the eigenproblem (S_b, S_w + alpha I) in feature space, scaled to W' (S_w + alpha I) W = I.
(The paper prints D as the square root instead of its inverse and leaves the masses N out.) 1 - a2 is an eigenvalue,
never a difference; where all axes are weak and V is given, a2 is one. Without an intercept the scatter is taken about
the origin and no constant is removed. With confounds F are the scores, and the discriminant is that of features from
which the confounds were regressed: U + C of ``heldout.moments`` takes the place of U.

Up to -nu/2 |z|^2, which all classes share, decisions are affine in the fits (``affine``); that is enough for labels.

**Two classes** have one score and four thresholds; each is affine in the fits f0, f1 of the two indicators:

    "pm1"       f1 - f0                    targets +-1, cut at 0 (LS-SVM; Cawley 2006; Bo et al. 2006)
    "fisher"    f1 l/l1 - f0 l/l0          targets +l/l1, -l/l0, masses of the training part (Cawley & Talbot 2003)
    "centroid"  decision_1 - decision_0    midpoint of the centroids, moved by priors (Treder 2019)
    "loo"       f1 - f0, cut where the leave-one-out error is least (Cawley 2006, "altering the bias")

Classes without mass in a training part never win there.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from foldless._engine.linalg import eps, float_type, kind_of, like, namespace, tiny
from foldless._engine.precision.digits import SMALL, cancels
from foldless._engine.readout.codings import Readout, drop_rounding_noise, vote_of_one_class

THRESHOLDS = ("fisher", "pm1", "centroid", "loo")


@dataclass(frozen=True)
class Discriminant(Readout):
    """Optimal scoring of the indicator matrix."""

    n_classes: int
    threshold: str = "pm1"
    priors: tuple | None = None
    n_components: int | None = None
    centred: bool = True  # an intercept was fitted: the constant score is trivial
    expected: tuple | None = None  # shares of the classes that probabilities are for; None: those of the training rows

    coding: ClassVar[str] = "indicator"
    needs_moments: ClassVar[bool] = True

    @property
    def cuts(self):  # type: ignore[override]
        """Whether the decision is shifted to the best leave-one-out cut."""
        return self.n_classes == 2 and self.threshold == "loo"

    @property
    def needs_axes(self):
        """Whether decisions take more of the class matrices than the masses."""
        return self.n_classes > 2 or self.threshold == "centroid"

    def scores(self, fits, moments):
        """Decisions before a leave-one-out cut: (..., t, c), or (..., t) for two classes."""
        xp = namespace(fits)
        if self.n_classes == 2:
            slopes, offsets = self.affine(moments)
            # Term by term, not by a matrix product: equal fits give equal decisions.
            terms = slopes[..., None, :, 0] * fits
            sizes = xp.sum(abs(terms), axis=-1) + abs(offsets)
            decision = drop_rounding_noise(terms[..., 0] + terms[..., 1] + offsets, sizes)
            return decision if self.centred else vote_of_one_class(decision, moments.mass > 0)
        mass = moments.mass
        scalings, centroids, _ = self.axes(moments)
        z = fits @ scalings
        squares = xp.sum(xp.square(z[..., :, None, :] - centroids[..., None, :, :]), axis=-1)
        decision = -0.5 * xp.sum(mass, axis=-1)[..., None, None] * squares
        if self.priors is not None:
            decision = decision + like(fits, np.log(self.priors))
        return xp.where(mass[..., None, :] > 0, decision, -float_type(fits).largest)

    def for_indicators(self, moments):
        """A function from fits (b, c, t) to decisions (b, k, t), k = 1 for two classes, else c."""
        if self.n_classes == 2:
            return super().for_indicators(moments)
        slopes, offsets = self.affine(moments)
        slopes, offsets = self._as_pairs(slopes, offsets, moments.mass)
        slopes, offsets = namespace(slopes).matrix_transpose(slopes), offsets[:, :, None]
        return lambda fits: slopes @ fits + offsets

    def _as_pairs(self, slopes, offsets, mass):
        """The same, where two classes are left with the threshold of two classes: a refit sees no others."""
        verbs, xp = kind = kind_of(mass)
        here = mass > 0
        pair = xp.count_nonzero(here, axis=-1) == 2
        if self.threshold == "centroid" or self.priors is not None or not xp.any(pair):
            return slopes, offsets
        if self.threshold == "loo":
            raise ValueError(
                f"threshold='loo': a labeling leaves two of {self.n_classes} classes in a training part, and their cut"
                " would have to be chosen anew. Use a stratified splitter, fewer folds, or threshold='centroid'."
            )
        share = _safe_inverse(mass, kind) if self.threshold == "fisher" else verbs.like(mass, here)
        one_column = share[..., None] * verbs.eye(mass, self.n_classes)
        return xp.where(pair[:, None, None], one_column, slopes), xp.where(pair[:, None] & here, 0.0, offsets)

    def affine(self, moments):
        """(slopes (..., c, k), offsets (..., k)): decisions are F slopes + offsets before a cut; k = c, or 1.
        Two classes have k = 1. Several classes lack -nu/2 |z|^2, which is the same for all of them.
        """
        mass = moments.mass
        verbs, xp = kind = kind_of(mass)
        nu = xp.sum(mass, axis=-1, keepdims=True)
        if not self.needs_axes:
            share = _safe_inverse(mass / nu, kind) if self.threshold == "fisher" else xp.ones_like(mass)
            return (share * verbs.like(mass, [-1, 1]))[..., None], xp.zeros_like(nu)
        scalings, centroids, _ = self.axes(moments)
        slopes = nu[..., None] * (scalings @ xp.matrix_transpose(centroids))
        offsets = -0.5 * nu * xp.sum(xp.square(centroids), axis=-1)
        if self.priors is not None:
            offsets = offsets + verbs.like(mass, np.log(self.priors))
        here = mass > 0
        slopes = xp.where(here[..., None, :], slopes, 0.0)
        offsets = xp.where(here, offsets, -float_type(mass).largest)
        if self.n_classes == 2:
            return slopes[..., 1:] - slopes[..., :1], offsets[..., 1:] - offsets[..., :1]
        return slopes, offsets

    def axes(self, moments):
        """Theta D (c, k), the centroids (c, k) and a2 (k,), k = c - 1 with an intercept, best axis first."""
        verbs, xp = kind = kind_of(moments.N)
        root = xp.sqrt(xp.maximum(verbs.diagonal(moments.N), 0.0))
        scale = _safe_inverse(root, kind)
        floor = 8 * self.n_classes * eps(scale)
        a2, rest, vectors = self._optimal_scores(moments, root, scale, kind)
        D = xp.where(a2 > floor, 1.0 / xp.sqrt(xp.maximum(a2, floor) * rest), 0.0)
        Theta = scale[..., :, None] * vectors
        largest = verbs.take_along(Theta, xp.argmax(abs(Theta), axis=-2)[..., None, :], -2)
        Theta = xp.where(largest < 0, -Theta, Theta)  # axes are then reproducible
        scalings = Theta * D[..., None, :]
        if moments.V is None:
            centroids = scalings - scale[..., :, None] ** 2 * (moments.rest @ scalings)
        else:
            centroids = scale[..., :, None] ** 2 * (moments.V @ scalings)
        k = self.n_components or rest.shape[-1]
        return scalings[..., :k], centroids[..., :k], a2[..., :k]

    def _optimal_scores(self, moments, root, scale, kind):
        """a2 (k,), 1 - a2 (k,) and the scores N^1/2 theta (c, k) of all axes, best first.

        ``root`` is N^1/2, ``scale`` its inverse, 0 for classes without mass.
        """
        T = _scaled(moments.rest, scale)
        verbs, xp = kind
        identity = verbs.eye(T, self.n_classes)
        # A class without mass has no score: eigenvalue 1 - a2 = 1 puts it among the axes that carry nothing.
        T = T + xp.where((root == 0)[..., None], identity, 0.0)
        basis = _complement(root, kind) if self.centred else xp.broadcast_to(identity, T.shape)
        rest, vectors = verbs.eigh(_within(T, basis, xp))
        rest = xp.clip(rest, tiny(T) ** 0.5, 1.0)
        a2 = 1.0 - rest
        if moments.V is not None:
            # Where all axes are weak a2 is an eigenvalue of V, not a difference.
            values, axes = verbs.eigh(_within(_scaled(moments.V, scale), basis, xp))
            weak = cancels(xp.max(a2, axis=-1, keepdims=True), 2.0, SMALL[a2.dtype.itemsize])
            a2 = xp.where(weak, xp.flip(values, axis=-1), a2)
            vectors = xp.where(weak[..., None], xp.flip(axes, axis=-1), vectors)
        return a2, rest, basis @ vectors


def _scaled(matrix, scale):
    """diag(scale) matrix diag(scale)."""
    return scale[..., :, None] * matrix * scale[..., None, :]


def _within(matrix, basis, xp):
    """The symmetric part of a matrix, in a basis."""
    transpose = xp.matrix_transpose
    return transpose(basis) @ (matrix + transpose(matrix)) / 2 @ basis


def _safe_inverse(values, kind):
    """1 / values, and 0 where a value is 0."""
    return kind.verbs.divide(kind.xp.ones_like(values), values)


def _complement(root, kind):
    """Orthonormal basis (c, c - 1) of the complement of a positive vector, from its Householder matrix."""
    u = root / kind.verbs.norm(root, axis=-1, keepdims=True)
    v = kind.xp.concat([u[..., :1] + 1.0, u[..., 1:]], axis=-1)  # u >= 0, so nothing cancels here
    H = kind.verbs.eye(u, u.shape[-1]) - v[..., :, None] * v[..., None, :] / v[..., :1, None]
    return H[..., :, 1:]
