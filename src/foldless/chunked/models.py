"""Models of all rows and of each training part, for every alpha, from the sums of the folds.

With G the sum of T' W T (``sums``) over the folds of a part, mass w = 1' W 1, means of features and targets mu = Phi' W
1 / w and nu = Y' W 1 / w (0 without an intercept):

    S = Phi' W Phi - w mu mu' = V diag(s) V'        C = Phi' W Y - w mu nu'
    beta = V diag(1 / (s + alpha)) V' C             f(x) = (phi(x) - mu)' beta + nu
    N = Y' W Y                                      U = N - w nu nu' - C' beta         (``heldout.moments``)

One eigendecomposition serves all alphas. Training parts are sums over the other folds, not differences: nothing is lost
where a fold holds nearly all of something. The squared error of a held-out fold follows from its own sums.
"""

from dataclasses import dataclass

import numpy as np

from foldless._engine.heldout.moments import Moments
from foldless._engine.linalg import eigh_, product
from foldless._engine.readout.codings import against_all

SIX_DIGITS = 1e-10  # alpha over the largest eigenvalue down to which a Gram matrix keeps 6 digits


@dataclass(frozen=True)
class Coefficients:
    """f(x) = phi(x)' weights + offset for features about their origin, and the class matrices where they are read."""

    weights: np.ndarray
    offset: np.ndarray
    moments: Moments | None

    def fits(self, Phi):
        """Fits (n, m) of targets about their level."""
        return product(Phi, self.weights) + self.offset


class TrainingSums:
    """The rows whose sums these are, ready for every alpha."""

    def __init__(self, plan, gram):
        r, y = plan.r, slice(plan.r + plan.intercept, None)
        self.plan, self.mass = plan, 0.0
        self.mean, self.level = np.zeros(r), np.zeros(plan.m)
        self.S, self.C, self.YY = gram[:r, :r].copy(), gram[:r, y].copy(), gram[y, y]
        if plan.intercept:
            self.mass = gram[r, r]
            self.mean, self.level = gram[:r, r] / self.mass, gram[y, r] / self.mass
            self.S -= np.outer(gram[:r, r], self.mean)
            self.C -= np.outer(gram[:r, r], self.level)
        self.s, self.V = eigh_(self.S)
        del self.S  # overwritten
        self.s = np.maximum(self.s, 0.0)
        self.VC = product(self.V, self.C, transpose_a=True)

    def coefficients(self, alpha):
        """The model of one alpha."""
        weights = product(self.V, self.VC / (self.s + alpha)[:, None])
        moments = None
        if self.plan.readout.needs_moments:
            explained = self.C.T @ weights
            explained = (explained + explained.T) / 2
            moments = Moments(self.YY, self.YY - self.mass * np.outer(self.level, self.level) - explained)
            moments = moments._replace(V=explained) if moments.weak(self.plan.intercept) else moments
        return Coefficients(weights, self.level - self.mean @ weights, moments)


def training_parts(plans, sums):
    """(training part, Gram matrix of the held-out rows) of each fold, one at a time.

    ``plans`` and ``sums`` are those of all rows, and of each fold behind them where it has its own.
    """
    if len(plans) > 1:
        for plan, own in zip(plans[1:], sums[1:], strict=True):
            yield TrainingSums(plan, own.gram[0]), own.gram[1]
    elif plans[0].folds.k > 1:
        for fold, held_out in enumerate(sums[0].gram):
            others = sum(gram for other, gram in enumerate(sums[0].gram) if other != fold)
            yield TrainingSums(plans[0], others), held_out


def check_folds(plan, sums):
    """Refuse empty folds, and folds that hold all rows of a class."""
    k = plan.folds.k
    if k == 1:
        return
    empty = np.flatnonzero(sums.rows == 0)
    if len(empty):
        why = "fewer groups than that differ in their random word" if plan.folds.by_group else "there are few rows"
        raise ValueError(f"cv={k}: fold {empty[0]} has no rows, since {why}. Use a smaller cv or another random_state.")
    total = sums.labels.sum(0)
    for fold, label in np.argwhere((sums.labels == total) & (total > 0)):
        named = plan.layout.classes.tolist()[label]
        raise ValueError(
            f"cv={k}: all rows of class {named!r} are in fold {fold}, and its training part has none. Use fewer folds,"
            " another random_state, or folds of your own."
        )


def squared_errors(plan, gram, coefficients):
    """Weighted sum of squared errors of the targets (+-1 for labels), from the sums of the rows that are judged."""
    whole = np.vstack([coefficients.weights, np.tile(coefficients.offset, (plan.intercept, 1)), -np.eye(plan.m)])
    inner = whole.T @ gram @ whole
    if plan.readout.coding == "indicator":
        inner = against_all(against_all(inner, 0), 1)
    return float(np.trace(inner))
