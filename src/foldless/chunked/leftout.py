"""Fits of rows by a model without them, from the sums of all rows of the model.

Without one row (h is its leverage, in the notation of ``models``),

    h = w ( (phi - mu)' V diag(1 / (s + alpha)) V' (phi - mu) + 1 / mass )
    held-out fit = y - (y - f(x)) / (1 - h)
    N <- N - w y y'        U <- U - w (y - f(x)) (y - f(x))' / (1 - h)

(Cawley & Talbot 2003; the update of U is that of a residual sum of squares.) Without a set of rows h is the matrix of
all their pairs, with square roots of both weights, and 1 - h is I - h.

1 - h is alpha P_ii / w, the share of a row that its own target does not explain, as a difference. Other forms, such as
sums from which the row is subtracted, have hardly more digits. Where one row carries a feature nearly alone, the sums
over all rows hold what the others add to it only up to eps of that row's square. So the relative error of a held-out
fit is about eps / (1 - h), 6 digits at 1 - h = 1e-10. More digits take sums over the other rows alone, which is another
pass over the data. Rows that nearly fit themselves (``precision.digits``) are counted, and a warning gives their
number.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from foldless._engine.heldout.moments import Moments
from foldless._engine.linalg import product, solve_definite
from foldless._engine.precision.digits import nearly_fitted
from foldless.chunked.models import Coefficients
from foldless.estimators.checks import warn_caller


@dataclass(frozen=True)
class LeftOut:
    """A model of which rows are left out, for one alpha or several (k); ``model`` is that of the first.

    Eigenvectors V, 1 / (s + alpha) (r, k), V' C, means of features and targets, 1 / mass (0 without an intercept), rows
    of positive weight by class.
    """

    model: Coefficients
    readout: Any
    V: np.ndarray
    inverted: np.ndarray
    VC: np.ndarray
    mean: np.ndarray
    level: np.ndarray
    constant: float
    labels: np.ndarray

    def rows(self, Phi, Y, w):
        """Fits (n, m) and scores of rows, each by the model without it, and how many of them have few digits.

        Phi is overwritten.
        """
        rest = Y - self.model.fits(Phi)
        U = product(np.subtract(Phi, self.mean, out=Phi), self.V)
        free = 1.0 - w * (product(np.square(U, out=U), self.inverted[:, :1])[:, 0] + self.constant)
        E = rest / free[:, None]
        scores = self._scores(*(values[:, None] for values in (Y, w, rest, E)))[:, 0]
        return Y - E, scores, np.count_nonzero(nearly_fitted(free))

    def together(self, Phi, Y, w):
        """Scores of rows of positive weight by the model without all of them."""
        rest, root = Y - self.model.fits(Phi), np.sqrt(w)[:, None]
        U = root * product(Phi - self.mean, self.V)
        free = np.eye(len(w)) - product(U * self.inverted[:, 0], U.T) - self.constant * root * root.T
        E = solve_definite(free[None], (root * rest)[None]) / root
        return self._scores(Y[None], w[None], rest[None], E)[0]

    def errors(self, Phi, Y, w, counted):
        """Sums (k,) of squared errors of the targets (+-1 for labels) for each alpha, rows ``counted`` by these."""
        U = product(Phi - self.mean, self.V)
        free = 1.0 - w[:, None] * (product(U * U, self.inverted) + self.constant)
        found = np.zeros(self.inverted.shape[1])
        for j, inverted in enumerate(self.inverted.T):
            rest = Y - self.level - product(U, inverted[:, None] * self.VC)
            found[j] = counted @ np.square(self.readout.plus_minus_fits(rest) / free[:, j, None]).sum(1)
        return found

    def _scores(self, Y, w, rest, E):
        """Scores (k, t, ...) of k sets of t rows, before any cut, from residuals of the model and held-out ones."""
        return self.readout.scores(Y - E, self._moments(Y, w, rest, E) if self.readout.needs_moments else None)

    def _moments(self, Y, w, rest, E):
        """Class matrices (k, c, c) without each set."""
        own, whole = Y > 0, self.model.moments
        assert whole is not None
        left = self.labels > (own & (w > 0)[:, :, None]).sum(1)
        mass = np.where(left, whole.mass - (w[:, :, None] * own).sum(1), 0.0)
        return Moments(mass[:, :, None] * np.eye(Y.shape[2]), whole.U - np.swapaxes(w[:, :, None] * rest, 1, 2) @ E)


def left_out(part, labels, alphas):
    """The models of a part for these alphas; ``labels`` are its rows of positive weight by class."""
    inverted, constant = 1.0 / (part.s[:, None] + alphas), 1.0 / part.mass if part.plan.intercept else 0.0
    known = (part.V, inverted, part.VC, part.mean, part.level, constant, labels)
    return LeftOut(part.coefficients(alphas[0]), part.plan.readout, *known)


def warn_of_lost(count):
    """A row that fits itself has no digits left in what is held out."""
    if count:
        warn_caller(
            f"leave-one-out: {count:.0f} rows carry a feature nearly alone, and their held-out values have few"
            " digits. Use a larger alpha."
        )
