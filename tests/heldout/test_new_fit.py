"""A fit that the package does not know, least squares on a few features: ``leave_out`` asks six things of it."""

from dataclasses import dataclass

import numpy as np
import pytest

from foldless._engine.heldout.leave_out import held_out_fits, held_out_residuals, leave_out
from foldless._engine.heldout.plan import FEATURES, LeaveOutPlan
from foldless._engine.heldout.sets import Sets
from support.tolerances import assert_close

N, R, M = 20, 3, 2
X = np.random.default_rng(0).normal(size=(N, R))
Y = np.random.default_rng(1).normal(size=(N, M))
SETS = {
    "leave-one-out": Sets.leave_one_out(N),
    "folds": Sets.of([np.arange(start, N, 4) for start in range(4)]),
    "sizes that differ": Sets.of([np.array([3]), np.array([7, 1, 12]), np.array([5, 3])]),
}


@dataclass(frozen=True, eq=False)
class Coefficients:
    """The model of a training part: its fits and residuals at rows of X."""

    X: np.ndarray
    B: np.ndarray

    def fits(self, rows):
        return self.X[rows] @ self.B

    def held_out_residuals(self, rows, targets):
        return targets - self.fits(rows)


@dataclass(frozen=True, eq=False)
class HeldOutFits:
    """A batch of sets (k, t) by the models without them, whose fits and residuals are known."""

    fits: np.ndarray
    residuals: np.ndarray


@dataclass(frozen=True, eq=False)
class LeastSquares:
    """Least squares of targets Y by features X; sets leave the sums over rows, ``together`` of them in a batch."""

    X: np.ndarray
    Y: np.ndarray
    together: int = 0

    @property
    def rows(self):
        return np.arange(len(self.X))

    def targets(self, members):
        return self.Y[members]

    def plan_for(self, sets, *, nested=False):
        batch_sizes = dict.fromkeys(sets.counts, self.together) if self.together else {}
        return LeaveOutPlan(sets.counts, FEATURES, batch_sizes)

    def prepared(self, plan):
        return self

    def without(self, members):
        return Coefficients(self.X, self._coefficients(self.X[members], self.Y[members]))

    def held_out(self, members):
        left, targets = self.X[members], self.Y[members]
        fits = left @ self._coefficients(left, targets)
        return HeldOutFits(fits, targets - fits)

    def _coefficients(self, X, Y):
        """B of all rows but X with targets Y; leading axes are a batch."""
        left = np.swapaxes(X, -1, -2)
        return np.linalg.solve(self.X.T @ self.X - left @ X, self.X.T @ self.Y - left @ Y)


@pytest.mark.parametrize("sets", SETS.values(), ids=SETS)
@pytest.mark.parametrize("together", [0, 3])
def test_sets_left_out_of_a_new_fit_equal_refits(sets, together):
    fit, expected = LeastSquares(X, Y, together), []
    for number in range(len(sets)):
        rest = np.delete(np.arange(N), sets[number])
        expected.append(X[sets[number]] @ np.linalg.lstsq(X[rest], Y[rest], rcond=None)[0])
    expected = np.concatenate(expected)
    assert_close(held_out_fits(fit, sets), expected)
    assert_close(held_out_residuals(fit, sets), Y[sets.rows] - expected)
    sizes = [len(numbers) for numbers, _ in leave_out(fit, sets)]
    assert max(sizes) <= max(together, 1)
    assert sum(sizes) == len(sets)
