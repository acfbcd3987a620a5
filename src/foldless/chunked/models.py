"""Models of all rows and of each training part, for every alpha, from the sums of the folds.

With sums over the rows of a part (``sums``), and means of features and targets mu and nu (0 without an intercept):

    S = (Phi - mu)' W (Phi - mu) = V diag(s) V'     C = (Phi - mu)' W (Y - nu)
    beta = V diag(1 / (s + alpha)) V' C             f(x) = (phi(x) - mu)' beta + nu
    N = Y' W Y                                      U = (Y - nu)' W (Y - nu) - C' beta         (``heldout.moments``)

One eigendecomposition serves all alphas. Training parts are sums over the other folds, not differences: nothing is lost
where a fold holds nearly all of something. The squared error of a held-out fold follows from its own sums.
"""

from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np

from foldless._engine.heldout.moments import Moments
from foldless._engine.linalg import eigh_, product
from foldless._engine.readout.codings import against_all


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
    """The rows with these :class:`RowSums`, ready for every alpha."""

    def __init__(self, plan, sums):
        self.plan, self.mass = plan, sums.mass[0]
        self.mean, self.level, centred = np.zeros(plan.r), np.zeros(plan.m), sums
        if plan.intercept:
            self.mean, self.level = sums.mean, sums.target_means
            centred = sums.about(self.mean, self.level)
        self.C, self.N, self.spread = (values.copy() for values in (centred.cross, sums.targets, centred.targets))
        s, self.V = eigh_(centred.features.copy())
        self.s = np.maximum(s, 0.0)
        self.VC = product(self.V, self.C, transpose_a=True)

    def coefficients(self, alpha):
        """The model of one alpha."""
        weights = product(self.V, self.VC / (self.s + alpha)[:, None])
        moments = None
        if self.plan.readout.needs_moments:
            explained = self.C.T @ weights
            explained = (explained + explained.T) / 2
            moments = Moments(self.N, self.spread - explained)
            moments = moments._replace(V=explained) if moments.weak(self.plan.intercept) else moments
        return Coefficients(weights, self.level - self.mean @ weights, moments)


def training_parts(plans, sums):
    """(training part, sums over the held-out rows) of each fold, one at a time.

    ``plans`` and ``sums`` are those of all rows, and of each fold behind them where it has its own.
    """
    if len(plans) > 1:
        for plan, of_fold in zip(plans[1:], sums[1:], strict=True):
            yield TrainingSums(plan, of_fold.regression[0]), of_fold.regression[1]
        return
    k, of_folds = plans[0].folds.k, sums[0].regression
    for fold in range(k) if k > 1 else ():
        others = reduce(add, [of_folds[other] for other in range(k) if other != fold])
        yield TrainingSums(plans[0], others), of_folds[fold]


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


def squared_errors(plan, sums, coefficients):
    """Weighted sum of squared errors of the targets (+-1 for labels) of rows with these sums."""
    inner = sums.residual_squares(coefficients.weights, coefficients.offset)
    if plan.readout.coding == "indicator":
        inner = against_all(against_all(inner, 0), 1)
    return float(np.trace(inner))
