"""Probabilities from exact leave-one-out scores.

    "sigmoid"   two classes: p(1 | s) = 1 / (1 + exp(-(a s + b)))                    (Platt 1999)
                more: p(k | s) = softmax_k(a_k s_k + b_k)                            (vector scaling; Guo et al. 2017)
    "isotonic"  a non-decreasing step function of the score, one class against the others, normalised; one more
                observation's worth of the sigmoid keeps it strictly increasing and away from 0 and 1

Both are fitted on held-out scores, one for every training row, so nothing is split off for calibration and no model
is fitted twice. Platt's targets (N_k + 1) / (N_k + 2) in place of 1 keep the slopes finite when the scores separate
the classes; with more classes the remainder is shared by the others. The fit is a Newton iteration on a convex loss,
run to rounding, so that the same scores give the same probabilities to the last digits.

With more than two classes the scores say which is the most probable, unless the sigmoids clearly say otherwise, as they
do where scores know nothing of rare classes: by more than two standard errors of the difference of two logits, from the
inverse Hessian of the loss. Short of that the classes above the largest score and its own get their mean (the nearest
probabilities in the order of the scores).

Priors reweight by Bayes: p(k | s) times prior_k over the share of class k among the rows, normalised. Rows whose class
has no other row are no evidence (left out, their class does not exist) and are set aside.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import log_softmax, softmax

from foldless._engine.linalg import solve

CLEARLY = 2.0  # standard errors
TINY = np.finfo(float).tiny
SAME = np.finfo(float).resolution  # difference of scores below which they are one


def fit_calibration(kind, scores, codes, n_classes, weights, priors=None):
    """Calibrator of ``kind`` from held-out scores (n,) or (n, c), class codes (n,) and weights (n,).

    ``priors`` (c,) are the shares of the classes where it will be used; None: those among the rows.
    """
    mass = np.bincount(codes, minlength=n_classes)
    use = mass[codes] > 1
    if np.count_nonzero(mass > 1) < 2:
        raise ValueError(
            f"calibration={kind!r} needs two classes with at least two rows each; the training part has class sizes"
            f" {mass.tolist()}. Use calibration=None or more data."
        )
    present = np.flatnonzero(mass)
    among = None if len(present) == n_classes else present
    S = _columns(scores, among)[use]
    weights = np.asarray(weights, float)
    fitted = CALIBRATIONS[kind].fit(S, np.searchsorted(present, codes[use]), weights[use])
    if priors is not None:
        fitted = fitted.reweighted((priors / np.bincount(codes, weights, n_classes).clip(TINY))[present])
    return fitted if among is None else Subset(fitted, present, n_classes)


class DeferredSigmoid:
    """Scores, as those of :func:`fit_calibration`, and the sigmoid of them, fitted if it is ever asked for."""

    def __init__(self, *scores):
        self.scores = scores

    @cached_property
    def fitted(self):
        """The fitted sigmoid."""
        return fit_calibration("sigmoid", *self.scores)


def _columns(scores, present=None):
    """Scores of all classes, or of some, in double precision; those of two are zeros and their difference."""
    S = np.asarray(scores, float)
    if present is not None:
        S = S[:, present]
        S = S[:, 1] - S[:, 0] if len(present) == 2 else S
    return np.column_stack([np.zeros_like(S), S]) if S.ndim == 1 else S


@dataclass(frozen=True)
class Subset:
    """Probabilities of the classes that have rows; the others have none."""

    inner: "Sigmoid | Isotonic"
    present: np.ndarray
    n_classes: int

    @property
    def known(self):
        """Whether the scores point to the labels."""
        return self.inner.known

    def proba(self, scores):
        """Class probabilities, shape (n, c)."""
        p = np.zeros((len(scores), self.n_classes))
        p[:, self.present] = self.inner.proba(_columns(scores, self.present))
        return p


@dataclass(frozen=True)
class Sigmoid:
    """Logits slope_k * score_k + offset_k, and the covariance (2c, 2c) of slopes (scores over spread) and offsets."""

    slope: np.ndarray
    offset: np.ndarray
    covariance: np.ndarray
    spread: float

    @classmethod
    def fit(cls, S, codes, w):
        """Minimise the weighted log-loss of smoothed targets."""
        c = S.shape[1]
        mass = np.bincount(codes, weights=w, minlength=c)
        hit = (mass + 1) / (mass + 2)
        T = np.repeat(((1 - hit) / (c - 1))[codes][:, None], c, axis=1)
        T[np.arange(len(codes)), codes] = hit[codes]
        spread = max(S.std(), TINY)
        slope, offset, covariance = _vector_scaling(S / spread, T, w)
        return cls(slope / spread, offset, covariance, spread)

    @property
    def known(self):
        """Whether the scores point to the labels: no slope had to be set to zero."""
        return bool(np.all(self.slope[1 if len(self.slope) == 2 else 0 :] > 0))

    def reweighted(self, factors):
        """The same with probabilities times factors (c,), normalised."""
        return replace(self, offset=self.offset + np.log(factors))

    def proba(self, scores):
        """Class probabilities, shape (n, c)."""
        S = _columns(scores)
        return self.in_order(softmax(self.slope * S + self.offset, axis=1), S)

    def in_order(self, p, S):
        """Probabilities p with that of the largest score first, but where the logits clearly have another first."""
        c, leader = S.shape[1], S.argmax(1)
        rows = np.flatnonzero((p.argmax(1) != leader) & (c > 2))
        if not len(rows):
            return p
        logits, by_score = self.slope * S[rows] + self.offset, leader[rows]
        by_logit, places = logits.argmax(1), np.arange(len(rows))
        pair = np.zeros((len(rows), c))
        pair[places, by_logit] += 1.0
        pair[places, by_score] -= 1.0
        slopes = np.concatenate([pair * np.where(self.slope > 0, S[rows] / self.spread, 0.0), pair], axis=1)
        error = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", slopes, self.covariance, slopes), 0.0))
        unclear = logits[places, by_logit] - logits[places, by_score] <= CLEARLY * error
        for row in rows[unclear]:
            p[row] = _led_by(leader[row], p[row])
        return p


@dataclass(frozen=True)
class MonotoneCurve:
    """Heights of a non-decreasing function at places in ascending order, with straight lines between them."""

    places: np.ndarray
    heights: np.ndarray

    @classmethod
    def fit(cls, s, hits, w):
        """The curve from 0 to 1 with the least weighted squared error to hits (n,), at scores s (n,)."""
        used = np.flatnonzero(w > 0)
        order = used[np.argsort(s[used], kind="stable")]
        s, w, hits = s[order], w[order], hits[order]
        first = np.flatnonzero(np.diff(s, prepend=-np.inf) >= SAME)  # of the rows of one score
        mass = np.add.reduceat(w, first)
        heights = isotonic_regression(np.add.reduceat(w * hits, first) / mass, weights=mass).x
        bends = np.ones(len(first), bool)  # others lie on a level line
        bends[1:-1] = (heights[1:-1] != heights[:-2]) | (heights[1:-1] != heights[2:])
        return cls(s[first][bends], np.clip(heights[bends], 0.0, 1.0))

    def predict(self, s):
        """Heights at scores s (n,); beyond the ends those of the ends."""
        return np.interp(s, self.places, self.heights)


@dataclass(frozen=True)
class Isotonic:
    """One non-decreasing function of the score per class, blended with a sigmoid worth one observation."""

    steps: tuple
    sigmoid: Sigmoid
    n: int
    factors: np.ndarray | float = 1.0  # on the probabilities of the classes

    @classmethod
    def fit(cls, S, codes, w):
        """Pool adjacent violators, class by class."""
        classes = range(S.shape[1]) if S.shape[1] > 2 else (1,)
        steps = tuple(MonotoneCurve.fit(S[:, k], codes == k, w) for k in classes)
        return cls(steps, Sigmoid.fit(S, codes, w), len(S))

    @property
    def known(self):
        """Whether the scores point to the labels."""
        return self.sigmoid.known

    def reweighted(self, factors):
        """The same with probabilities times factors (c,), normalised."""
        return replace(self, factors=factors, sigmoid=self.sigmoid.reweighted(factors))

    def proba(self, scores):
        """Class probabilities, shape (n, c)."""
        S = _columns(scores)
        if len(self.steps) == 1:
            p = self.steps[0].predict(S[:, 1])
            p = np.column_stack([1 - p, p])
        else:
            p = np.column_stack([curve.predict(S[:, k]) for k, curve in enumerate(self.steps)])
        p = p * self.factors
        p /= np.maximum(p.sum(1, keepdims=True), TINY)
        p = self.n * p + self.sigmoid.proba(scores)
        return self.sigmoid.in_order(p / p.sum(1, keepdims=True), S)


def _vector_scaling(S, T, w):
    """Slopes >= 0 and offsets of softmax(slope * S + offset) with the least weighted log-loss to the targets T.

    The third is their covariance. A model that is nearly constant has leave-one-out scores that point away from the
    labels (leaving out a row moves the intercept to the other side); a negative slope would turn its ranking around.
    Such slopes are set to zero.
    """
    slope, offset, covariance = _newton(S, T, w)
    while (slope < 0).any():
        S = np.where(slope < 0, 0.0, S)
        slope, offset, covariance = _newton(S, T, w)
        slope = np.where(S.any(0), slope, 0.0)
    return slope, offset, covariance


def _newton(S, T, w):
    c = S.shape[1]
    k = 1 if c == 2 else c  # two classes have one logit: the first stays at zero
    evaluate, derivatives = _log_loss(S[:, c - k :], T, w)
    theta = np.concatenate([np.ones(k), np.zeros(k)])
    value, p = evaluate(theta)
    size = np.inf
    for _ in range(100):
        gradient, H = derivatives(theta, p)
        step = solve(H, gradient)
        if k > 1:
            step[k:] -= step[k:].mean()  # what is left of a common shift is rounding, which H enlarges
        rate, last = 1.0, value
        while True:
            value, p = evaluate(theta - rate * step)
            if value <= last + 1e-12 * abs(last) or rate < 1e-10:  # differences below rounding say nothing
                break
            rate /= 2
        theta = theta - rate * step
        before, size = size, np.abs(rate * step).max() / (1 + np.abs(theta).max())
        if rate < 1e-10 or size < 1e-13 or (size < 1e-8 and size > before / 2):  # steps of rounding shrink no further
            break
    slope = np.zeros(c)
    offset = np.zeros(c)
    covariance = np.zeros((2 * c, 2 * c))
    slope[c - k :], offset[c - k :] = theta[:k], theta[k:]
    free = np.concatenate([np.arange(c - k, c), np.arange(2 * c - k, 2 * c)])
    covariance[free[:, None], free] = solve(H, np.eye(2 * k))
    return slope, offset, covariance


def _log_loss(S, T, w):
    """Two functions of theta = (slopes, offsets), from the weighted log-loss of softmax(slope * S + offset) to T.

    The first gives loss and probabilities p; the second, of theta and p, gradient and Hessian.
    """
    k, first = S.shape[1], T.shape[1] - S.shape[1]
    features = np.concatenate([S, np.ones_like(S)], axis=1)
    same_class = np.tile(np.eye(k, dtype=bool), (2, 2))
    ridge = 1e-10 * w.sum()  # a common shift of all offsets changes nothing; makes the Hessian definite along it

    def evaluate(theta):
        logits = np.zeros(T.shape)
        logits[:, first:] = S * theta[:k] + theta[k:]
        logs = log_softmax(logits, axis=1)
        return 0.5 * ridge * theta @ theta - w @ np.einsum("ij,ij->i", T, logs), np.exp(logs)

    def derivatives(theta, p):
        R = (w[:, None] * (p - T))[:, first:]
        gradient = np.sum(np.tile(R, 2) * features, 0) + ridge * theta
        # sum_i w_i (diag p - p p') times the features of both classes
        spread = np.tile(p[:, first:], 2) * features
        weighted = w[:, None] * spread
        H = ridge * np.eye(2 * k) - weighted.T @ spread
        H[same_class] += (weighted.T @ features)[same_class]
        return gradient, H

    return evaluate, derivatives


def _led_by(leader, p):
    """Nearest probabilities (c,) whose largest entry is that of ``leader``."""
    p, above = p.copy(), [leader]
    for k in np.argsort(-p):
        if k != leader and p[k] > p[above].mean():
            above.append(k)
    p[above] = p[above].mean()
    p[leader] *= 1 + 1e-12  # first among equals
    return p / p.sum()


Calibrator: TypeAlias = Subset | Sigmoid | Isotonic
CALIBRATIONS: dict = {"sigmoid": Sigmoid, "isotonic": Isotonic}
