"""Models of any training part, each by the cheaper way.

A training part of k of n rows can be had by leaving the other t = n - k rows out of the P of all rows (n t^2 + t^3/3
flops, after 2/3 n^3 once for all parts) or by solving it alone (k^3/3). Both are exact; flops decide.
"""

from functools import cached_property

import numpy as np

from foldless.heldout.solution import Solution
from foldless.precision import cost


class TrainingParts:
    """Models of any training part of one problem with targets Y (n x m), each by the cheaper way.

    ``part(train)`` is a :class:`Part` (everything outside ``train`` removed from the full solution) or a
    :class:`Solution` of the training part, whichever takes fewer operations. ``plan`` is told the sizes first, so
    that the full P is only built where it pays: two or three large folds are cheaper solved one by one. ``strategy``
    "part" or "solve" decides it for all parts; ``whole`` is the full solution where that is at hand.
    """

    def __init__(self, problem, Y, *, nested=False, strategy=None, whole=None):
        self.problem = problem
        self.Y = Y
        self.nested = nested
        self.strategy = strategy
        self._whole_pays = True
        if whole is not None:
            vars(self)["whole"] = whole

    @cached_property
    def whole(self):
        """The solution on all rows of positive weight."""
        return Solution(self.problem, self.problem.active, self.Y[self.problem.active])

    @cached_property
    def _prepared(self):
        """The same, ready to be left out of; where nested every part will ask for columns of P."""
        return self.whole.prepared() if self.nested else self.whole

    def plan(self, sizes):
        """Decide from the sizes of all training parts whether the full P is worth building."""
        n = len(self.problem.active)
        alone = sum(self._solve_cost(k) for k in sizes)
        shared = cost.explicit_start(self._solve_cost(n), nested=self.nested)
        shared += sum(min(self._solve_cost(k), self._part_cost(n, n - k)) for k in sizes)
        self._whole_pays = shared < alone
        return self._whole_pays

    def _solve_cost(self, k):
        """Flops of a fit on k rows, and of its leave-one-out where nested."""
        squared = self.problem.penalty.squares_kernel
        return cost.solve(k, self.problem.n_features(k), squared=squared, nested=self.nested)

    def _part_cost(self, n, t):
        """Flops of leaving t of n rows out of the full P."""
        sites = self.problem.penalty.sites_per_row
        return cost.leave_out(n, t, self.problem.n_features(n), sites=sites, nested=self.nested)

    def part(self, train):
        """The model of the training rows ``train`` (rows of weight 0 are ignored)."""
        rows = np.intersect1d(train, self.problem.active)
        n, k = len(self.problem.active), len(rows)
        leave_out = self.strategy == "part"
        if self.strategy is None:
            leave_out = self._whole_pays and self._part_cost(n, n - k) <= self._solve_cost(k)
        if not leave_out:
            return Solution(self.problem, rows, self.Y[rows])
        return self._prepared.without(np.flatnonzero(~np.isin(self.problem.active, rows, assume_unique=True)))
