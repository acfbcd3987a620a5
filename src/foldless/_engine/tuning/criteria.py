"""Selection criteria: one function each, from held-out fits to a loss and its derivative.

Derivatives are arrays of the kind of the fits; losses, and what functions of users get, are arrays of NumPy.

A criterion takes the held-out fits f, the targets t and the weights w of one problem, rows along the last axis, w with
sum 1, and returns the loss and its derivative by f (None where it has none). For labels t is +-1; several classes are
that many problems, one against all, and their losses are added up: the sum bounds the multi-class error (Bo, Wang &
Jiao 2006, theorem 1). ``multiclass_error`` is the error of the classifier's own decision, whatever its readout; it
looks at no single column, and of several labels a row all must be right.

To add a criterion write one function and wrap it: ``Criterion(function, smooth=True)`` is taken wherever the names are;
an entry in ``CRITERIA`` gives it one. A user's plain function is called in the same way, one problem at a time, and
returns the loss or (loss, derivative).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import Any

import numpy as np

from foldless._engine.linalg import like, namespace, to_host
from foldless._engine.readout.ranking import pairs_won

WEIGHTS = ("auto", None, "balanced", "sample_weight")  # of rows in a criterion
PAIRS_TOGETHER = 2**22  # of a smooth AUC


def press(f, t, w):
    """sum w (t - f)^2: Allen's statistic (Cawley 2006, section II-G)."""
    e = t - f
    return namespace(f).sum(w * e * e, axis=-1), -2 * w * e


def error(f, t, w):
    """sum w [t f <= 0]: share of wrong signs; a fit of exactly 0 is wrong."""
    xp = namespace(f)
    return xp.sum(xp.where(t * f <= 0, w, 0.0), axis=-1), None


def smooth_error(f, t, w, slope=10.0):
    """sum w (1 - t tanh(slope f)) / 2 (Bo et al. 2006, eq. 3.4)."""
    xp = namespace(f)
    bent = xp.tanh(slope * f)
    return xp.sum(w * (1 - t * bent), axis=-1) / 2, -slope / 2 * w * t * (1 - bent * bent)


def balanced_halves(t, w):
    """The weights with a total of one half for each sign of t; a sign that is missing leaves its half out."""
    xp = namespace(t)
    sides = [xp.where(side, w, 0.0) for side in (t > 0, t <= 0)]
    masses = [xp.sum(side, axis=-1, keepdims=True) for side in sides]
    return sum(side / xp.where(mass > 0, 2 * mass, 1.0) for side, mass in zip(sides, masses, strict=True))


def ber(f, t, w):
    """Balanced error rate: error, both classes with half the weight (Cawley 2006, section I-A)."""
    return error(f, t, balanced_halves(t, w))


def smooth_ber(f, t, w, slope=10.0):
    """smooth_error with these weights."""
    return smooth_error(f, t, balanced_halves(t, w), slope)


def hinge(f, t, w):
    """sum w [1 - t f]+, an upper bound of the error (Cawley 2006, section II-G)."""
    xp = namespace(f)
    gap = xp.maximum(1 - t * f, 0.0)
    return xp.sum(w * gap, axis=-1), xp.where(gap > 0, -w * t, 0.0)


def hinge2(f, t, w):
    """sum w [1 - t f]+^2."""
    xp = namespace(f)
    gap = xp.maximum(1 - t * f, 0.0)
    return xp.sum(w * gap * gap, axis=-1), -2 * w * t * gap


def auc(f, t, w):
    """1 - AUC: share of pairs (+, -) in the wrong order, ties count half; one half where a class is missing."""
    f, t, w = np.broadcast_arrays(*map(to_host, (f, t, w)))  # sorted there
    wrong, pairs = pairs_won(-f, t > 0, w)
    return np.divide(wrong, pairs, out=np.full(np.shape(pairs), 0.5), where=pairs > 0)[()], None


def smooth_auc(f, t, w, slope=10.0, *, together=PAIRS_TOGETHER):
    """Mean over pairs of (1 - tanh(slope (f+ - f-))) / 2; ``together`` pairs are looked at at a time."""
    value, slopes = _smooth_auc(*map(to_host, (f, t, w)), slope, together)
    return value[()], like(f, slopes)


@partial(np.vectorize, signature="(n),(n),(n),(),()->(),(n)")
def _smooth_auc(f, t, w, slope, together):
    up, down = np.flatnonzero(t > 0), np.flatnonzero(t <= 0)
    pairs = w[up].sum() * w[down].sum()
    derivative = np.zeros_like(f)
    if pairs == 0:
        return 0.5, derivative
    value = 0.0
    size = max(1, together // len(down))
    for start in range(0, len(up), size):
        rows = up[start : start + size]
        bent = np.tanh(slope * (f[rows, None] - f[down]))
        value += w[rows] @ (1 - bent) @ w[down] / (2 * pairs)
        steep = slope / (2 * pairs) * (1 - bent * bent)
        derivative[rows] = -w[rows] * (steep @ w[down])
        derivative[down] += w[down] * (w[rows] @ steep)
    return value, derivative


@dataclass(frozen=True)
class Criterion:
    """A loss with what a search must know about it."""

    function: Callable
    smooth: bool  # whether there is a derivative to follow
    labels: bool = True  # whether it wants targets of +-1
    has_slope: bool = False  # whether the function takes a ``slope``, the steepness of a smooth sign
    of_decisions: bool = False  # a loss of decisions, not of single columns
    user: bool = False  # a plain function, asked for one column at a time
    residuals: bool = False  # a function of t - f alone
    rowwise: bool = False  # a sum over rows of a loss of each, times its weight

    @property
    def ranks(self):
        """Whether the order or the sign of the fits may decide, so that their last digits matter."""
        return self.user or not self.smooth

    def __call__(self, F, T, W):
        """Loss of every column (m,) and derivatives (n, m) or None, for fits F, targets T and weights W of (n, m)."""
        if not self.user:
            values, slopes = self.function(F.T, T.T, W.T)
            return to_host(values), None if slopes is None else slopes.T
        answers = [self._ask(f, t, w) for f, t, w in zip(*(to_host(A).T for A in (F, T, W)), strict=True)]
        values = np.array([value for value, _ in answers], float)
        if any(slopes is None for _, slopes in answers):
            return values, None
        return values, like(F, np.stack([slopes for _, slopes in answers], 1))

    def _ask(self, f, t, w):
        """(loss, derivative or None) of one column by a user's function."""
        try:
            answer: Any = self.function(f, t, w)
        except Exception as error:
            raise ValueError(
                f"criterion={self.function!r} failed; it must be a function f(f, t, w) of held-out fits, targets"
                f" and weights, all of shape (n,). It said: {error}"
            ) from error
        value, slopes = answer if isinstance(answer, tuple) and len(answer) == 2 else (answer, None)
        if not isinstance(value, Real | np.ndarray) or np.ndim(value) or not np.isfinite(value):  # type: ignore
            description = f"of shape {np.shape(value)}" if isinstance(value, np.ndarray) else repr(value)
            raise ValueError(
                f"criterion={self.function!r} returned the loss {description}; it must return one finite loss, or"
                " (loss, derivative by the fits)."
            )
        if slopes is not None and (np.shape(slopes) != f.shape or not np.isfinite(slopes).all()):
            raise ValueError(
                f"criterion={self.function!r} returned a derivative of shape {np.shape(slopes)}; it must hold one"
                f" finite number for each of the {len(f)} fits."
            )
        return value, slopes

    def with_slope(self, slope):
        """The same criterion with another steepness; one that has none as it is."""
        if not self.has_slope:
            return self
        if not isinstance(slope, Real) or not 0 < float(slope) < np.inf:
            raise ValueError(f"slope={slope!r} must be a finite number > 0.")
        return replace(self, function=partial(self.function, slope=slope))


CRITERIA = {
    "press": Criterion(press, True, labels=False, residuals=True, rowwise=True),
    "error": Criterion(error, False, rowwise=True),
    "smooth_error": Criterion(smooth_error, True, has_slope=True, rowwise=True),
    "ber": Criterion(ber, False),
    "smooth_ber": Criterion(smooth_ber, True, has_slope=True),
    "hinge": Criterion(hinge, True, rowwise=True),
    "hinge2": Criterion(hinge2, True, rowwise=True),
    "auc": Criterion(auc, False),
    "smooth_auc": Criterion(smooth_auc, True, has_slope=True),
    "multiclass_error": Criterion(error, False, of_decisions=True, rowwise=True),
}
SKLEARN_NAMES = {  # scikit-learn's scores, whose counterparts here are losses
    "accuracy": "error",
    "balanced_accuracy": "ber",
    "roc_auc": "auc",
    "neg_mean_squared_error": "press",
    "r2": "press",
}


def resolve(criterion):
    """The :class:`Criterion` of a name or of a user's function; one that is given is taken as it is."""
    if isinstance(criterion, Criterion):
        return criterion
    if callable(criterion):
        return Criterion(criterion, True, labels=False, user=True)
    if not isinstance(criterion, str) or criterion not in CRITERIA:
        hint = (
            f" scikit-learn's {criterion!r} is {SKLEARN_NAMES[criterion]!r} here, or scoring={criterion!r} as it is."
            if str(criterion) in SKLEARN_NAMES
            else ""
        )
        raise ValueError(
            f"criterion={criterion!r} is unknown; use one of {sorted(CRITERIA)} or a callable f(f, t, w).{hint}"
        )
    return CRITERIA[criterion]


def weights(kind, T, counted):
    """Weights (n, m), columns of sum 1, in proportion to ``counted`` (n,); "balanced" halves them by the sign of T."""
    W = np.broadcast_to((counted / counted.sum())[:, None], T.shape)
    return balanced_halves(to_host(T).T, W.T).T if kind == "balanced" else W
