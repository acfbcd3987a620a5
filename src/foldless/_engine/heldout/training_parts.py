"""Models of any training part, each by the cheaper way: left out of the P of all rows, or fitted alone.

A training part of k of n rows can be fitted alone (k^3/3 flops), without the P of all rows (2/3 n^3 once for all
parts). :class:`PartsPlan` holds the decision and its reason in words.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from foldless._engine.heldout.leave_out import SetBySet
from foldless._engine.heldout.solution import Solution
from foldless._engine.linalg.memory import require_memory
from foldless._engine.precision import cost
from foldless._engine.precision.choose import holder


@dataclass(frozen=True)
class PartsPlan:
    """How the training parts of some splits are made.

    ``from_P`` says whether P of all rows is made; ``reason`` says why, in words. ``flops`` are those of all parts,
    ``arrays`` the n x n arrays that are held at a time.
    """

    from_P: bool
    reason: str
    flops: float
    arrays: float


class TrainingParts:
    """Models of any training part of one problem with targets Y (n x m).

    ``plan`` takes the sizes of all training parts first, so that the P of all rows is only made where it pays: two or
    three large folds are cheaper fitted one by one. ``nested`` says that leave-one-out inside the parts is wanted as
    well. If a solution ``whole`` on all rows is given, all parts are left out of it.
    """

    def __init__(self, problem, Y, *, nested=False, whole=None):
        self.problem = problem
        self.Y = Y
        self.nested = nested
        self._from_P = True
        self._is_solved = whole is not None
        self._removals: dict[int, bool] = {}  # whether parts of so many rows are left out of P
        if whole is not None:
            self.whole = whole

    @property
    def rows(self):
        """Rows of positive weight."""
        return self.problem.active

    @cached_property
    def whole(self):
        """The solution on all rows of positive weight."""
        return Solution.fit(self.problem, self.problem.active, self.Y[self.problem.active])

    @cached_property
    def _prepared(self):
        """The same, ready to be left out of; where nested, every part will need columns of P."""
        P = self.whole.precision
        return self.whole.with_precision(P.prepare_blocks()) if self.nested else self.whole

    # -- decisions -------------------------------------------------------------------------------------------------

    def plan(self, sizes):
        """The :class:`PartsPlan` for training parts of these sizes."""
        counts = dict(zip(*np.unique(sizes, return_counts=True), strict=True))
        costs = {k: self._costs(k) for k in counts}
        n = len(self.problem.active)
        shared = self._cost_of_fit(n) * (3 if self.nested else 2)  # its inverse, and P itself where nested
        shared += sum(count * min(costs[k]) for k, count in counts.items())
        alone = sum(count * costs[k][0] for k, count in counts.items())
        self._from_P = bool(shared < alone)
        if not self._from_P:
            reason = "few large folds: solving each training part alone is less work than P of all rows"
            return PartsPlan(False, reason, alone, (max(sizes) / n) ** 2 * cost.arrays_of_P(self.problem.kernel))
        if not self._is_solved:
            self.require_memory(min(sizes))
        reason = f"all held-out predictions follow from one P ({self.problem.describe_holder()})"
        return PartsPlan(True, reason, shared, self._arrays(min(sizes)))

    def require_memory(self, k):
        """Raise an error if P of all rows, and what is held beside it for parts of k rows, will not fit into memory."""
        problem, n = self.problem, len(self.problem.active)
        if problem.n_features(n) is None:
            what = "the matrix P of all rows, from which some are left out"
            require_memory((n, n), problem.dtype, what, self._arrays(k))

    def _arrays(self, k):
        """n x n arrays that are held at a time for parts of k rows."""
        n = len(self.problem.active)
        return cost.arrays_of_P(self.problem.kernel, left_out=(n - k) / n, nested=self.nested)

    def _cost_of_fit(self, k):
        problem = self.problem
        through_features = holder(problem, k).through_features
        return cost.fit(problem.kernel, problem.X, k, through_features=through_features, nested=self.nested)

    def _costs(self, k):
        """Flops of a training part of k rows, by a fit of its own and by leaving the others out of P."""
        problem, n = self.problem, len(self.problem.active)
        through_features = holder(problem, n).through_features
        removal = cost.removal(
            problem.kernel, problem.X, n, n - k, through_features=through_features, nested=self.nested
        )
        alone = self._cost_of_fit(k)
        return alone if self.nested else alone + cost.STEPS_OF_FIT, removal  # nested parts are never in batches

    def leaves_out(self, k):
        """Whether a training part of k rows is made by leaving the others out of P."""
        if self._is_solved or not self._from_P:
            return self._is_solved
        if k not in self._removals:
            alone, removal = self._costs(k)
            self._removals[k] = bool(removal <= alone)
        return self._removals[k]

    # -- models ----------------------------------------------------------------------------------------------------

    def part(self, train):
        """The model of the training rows ``train`` (rows of weight 0 are ignored)."""
        rows = np.intersect1d(train, self.problem.active)
        if not self.leaves_out(len(rows)):
            return Solution.fit(self.problem, rows, self.Y[rows])
        return self._prepared.without(np.flatnonzero(~np.isin(self.problem.active, rows, assume_unique=True)))

    def without(self, members):
        """The model without these positions among the rows of positive weight."""
        return self.part(np.delete(self.rows, members))

    def targets(self, members):
        """Targets (t, m) of these positions."""
        return self.Y[self.rows[members]]

    def ready_for(self, sets, *, nested=False):
        """The fit that ``leave_out`` takes sets from: P of all rows, or models of the training parts one by one."""
        n = len(self.rows)
        if not all(self.leaves_out(n - t) for t in np.unique(sets.sizes)):
            return SetBySet(self)
        return (self._prepared if nested else self.whole).ready_for(sets)
