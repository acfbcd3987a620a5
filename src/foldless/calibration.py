"""Probabilities from exact leave-one-out scores.

    "sigmoid"   two classes: p(1 | s) = 1 / (1 + exp(-(a s + b)))                              (Platt 1999)
                more: p(k | s) = softmax_k(a_k s_k + b_k)              (multinomial; vector scaling, Guo et al. 2017)
    "isotonic"  a non-decreasing step function of the score, one class against the others, normalised

Both are fitted on held-out scores, one for every training row, so nothing is split off for calibration and no model is
fitted twice. Platt's targets (N_k + 1) / (N_k + 2) in place of 1 keep the slope finite when the scores separate the classes;
with more classes the remainder is shared by the others. The fit is a Newton iteration on a convex loss, run to rounding, so
that the same scores give the same probabilities to the last digits.

Rows whose class has no other row are no evidence (left out, their class does not exist) and are set aside.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import log_softmax, softmax
from sklearn.isotonic import IsotonicRegression


def fit_calibration(kind, scores, codes, n_classes, weights):
    """Calibrator of ``kind`` from held-out scores (n,) or (n, c), class codes (n,) and weights (n,)."""
    scores = np.asarray(scores, float)
    columns = scores[:, None] if scores.ndim == 1 else scores
    mass = np.bincount(codes, minlength=n_classes)
    use = (weights > 0) & (mass[codes] > 1) & np.all(np.abs(columns) < 1e300, axis=1)
    if len(np.unique(codes[use])) < 2:
        raise ValueError(
            f"calibration={kind!r} needs two classes with at least two rows each; the training part has class sizes"
            f" {mass.tolist()}. Use calibration=None or more data."
        )
    return CALIBRATIONS[kind].fit(columns[use], codes[use], n_classes, np.asarray(weights, float)[use])


@dataclass(frozen=True)
class Sigmoid:
    """Logits slope_k * score_k + offset_k; one logit, against 0, for two classes."""

    slope: np.ndarray
    offset: np.ndarray

    @classmethod
    def fit(cls, S, codes, n_classes, w):
        """Minimise the weighted log-loss of smoothed targets."""
        mass = np.bincount(codes, weights=w, minlength=n_classes)
        hit = (mass + 1) / (mass + 2)
        T = np.repeat(((1 - hit) / (n_classes - 1))[codes][:, None], n_classes, 1)
        T[np.arange(len(codes)), codes] = hit[codes]
        if S.shape[1] == 1:
            S = np.hstack([np.zeros_like(S), S])
        spread = np.maximum(S.std(), np.finfo(float).tiny)
        slope, offset = _newton(S / spread, T, w, tied=n_classes == 2)
        return cls(slope / spread, offset)

    def proba(self, scores):
        """Class probabilities, shape (n, c)."""
        S = np.asarray(scores, float)
        S = np.column_stack([np.zeros_like(S), S]) if S.ndim == 1 else S
        return softmax(self.slope * S + self.offset, axis=1)


def _newton(S, T, w, *, tied):
    """Slopes and offsets of softmax(slope * S + offset) for targets T; two classes (``tied``) share one logit."""
    n, c = S.shape
    first = 1 if tied else 0
    k = c - first
    # Without the faint ridge a common shift of all offsets would change nothing and the Hessian be singular.
    ridge = 1e-10 * w.sum()
    theta = np.concatenate([np.ones(k), np.zeros(k)])

    def unpack(theta):
        slope, offset = np.zeros(c), np.zeros(c)
        slope[first:], offset[first:] = theta[:k], theta[k:]
        return slope, offset

    def loss(theta):
        slope, offset = unpack(theta)
        return -np.sum(w[:, None] * T * log_softmax(slope * S + offset, axis=1)) + 0.5 * ridge * theta @ theta

    value = loss(theta)
    for _ in range(100):
        slope, offset = unpack(theta)
        p = softmax(slope * S + offset, axis=1)
        R = w[:, None] * (p - T)
        gradient = np.concatenate([(R * S).sum(0)[first:], R.sum(0)[first:]]) + ridge * theta
        # Hessian blocks sum_i w_i (diag p - p p')_kl phi_ik phi_il with phi = (S, 1)
        features = np.concatenate([S[:, first:], np.ones((n, k))], axis=1)
        doubled = np.concatenate([p[:, first:], p[:, first:]], axis=1) * features
        H = -(doubled * w[:, None]).T @ doubled
        for i in range(2):
            for j in range(2):
                diagonal = np.sum(w[:, None] * p[:, first:] * features[:, i * k : (i + 1) * k] * features[:, j * k : (j + 1) * k], 0)
                H[i * k + np.arange(k), j * k + np.arange(k)] += diagonal
        H[np.diag_indices(2 * k)] += ridge
        step = np.linalg.solve(H, gradient)
        rate = 1.0
        while rate > 1e-10 and loss(theta - rate * step) > value:
            rate /= 2
        if rate <= 1e-10:
            break
        theta = theta - rate * step
        value = loss(theta)
        if np.abs(rate * step).max() < 1e-13 * (1 + np.abs(theta).max()):
            break
    return unpack(theta)


@dataclass(frozen=True)
class Isotonic:
    """One non-decreasing function of the score per class."""

    steps: tuple

    @classmethod
    def fit(cls, S, codes, n_classes, w):
        """Pool adjacent violators, class by class."""
        columns = range(1, 2) if S.shape[1] == 1 else range(n_classes)
        steps = []
        for k in columns:
            curve = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
            steps.append(curve.fit(S[:, 0 if S.shape[1] == 1 else k], codes == k, sample_weight=w))
        return cls(tuple(steps))

    def proba(self, scores):
        """Class probabilities, shape (n, c)."""
        S = np.asarray(scores, float)
        if S.ndim == 1:
            p = self.steps[0].predict(S)
            return np.column_stack([1 - p, p])
        p = np.column_stack([curve.predict(S[:, k]) for k, curve in enumerate(self.steps)])
        total = p.sum(1, keepdims=True)
        return np.where(total > 0, p / np.where(total > 0, total, 1.0), 1.0 / p.shape[1])


CALIBRATIONS = {"sigmoid": Sigmoid, "isotonic": Isotonic}
