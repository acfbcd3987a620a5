"""Models of any training part of one problem, by the plan: left out of the P of all rows, or solved by themselves."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from foldless._engine.heldout.plan import ALONE, ARRAY, LeaveOutPlan, plan_of_fit, plan_of_problem
from foldless._engine.heldout.problem import Problem
from foldless._engine.heldout.solution import Solution
from foldless._engine.precision import cost


@dataclass(frozen=True, eq=False)
class TrainingParts:
    """Models of any training part of one problem with targets Y (n x m).

    ``nested`` says that leave-one-out inside the training parts is wanted as well. If a ``solution`` on all rows is
    given, all training parts are left out of it. Without a ``plan`` P of all rows is made in any case.
    """

    problem: Problem
    Y: np.ndarray
    nested: bool = False
    solution: Solution | None = None
    plan: LeaveOutPlan | None = None

    def planned(self, counts):
        """The same with the plan for so many sets of each size; an error where P of all rows would be too large."""
        plan = self._make_plan(counts, needs_P=False)
        cost.require_P(len(self.problem.active), self.problem.Q, plan.arrays)
        return replace(self, plan=plan)

    def plan_for(self, sets, *, nested=False):
        """The plan for sets of positions in ``rows``; there is another for other sets than those planned for."""
        if self.plan is not None and (self.plan.form == ALONE or self.plan.counts == sets.counts):
            return self.plan
        return self._make_plan(sets.counts, nested=nested)

    def _make_plan(self, counts, *, nested=False, needs_P=True):
        m, nested = self.Y.shape[1], nested or self.nested
        if self.solution is not None:
            return plan_of_fit(type(self.solution.precision), len(self.rows), counts, m, nested=nested)
        return plan_of_problem(self.problem, counts, m, nested=nested, needs_P=needs_P)

    # -- fits ------------------------------------------------------------------------------------------------------

    @property
    def rows(self):
        """Rows of positive weight."""
        return self.problem.active

    @cached_property
    def full_fit(self):
        """The fit on all rows of positive weight."""
        if self.solution is not None:
            return self.solution
        return Solution.fit(self.problem, self.problem.active, self.Y[self.problem.active])

    @cached_property
    def _with_array(self):
        return self.full_fit.with_precision(self.full_fit.precision.prepare_blocks())

    def prepared(self, plan):
        """What sets are left out of: the solution on all rows, or these training parts where some are solved alone."""
        if plan.form == ALONE or plan.alone:
            return self
        return self._with_array if plan.form == ARRAY else self.full_fit

    def part(self, train):
        """The model of the training rows ``train`` (rows of weight 0 are ignored)."""
        rows = np.intersect1d(train, self.problem.active)
        t = len(self.problem.active) - len(rows)
        plan = self._make_plan({t: 1}) if self.plan is None else self.plan
        if plan.solves_alone(t):
            return Solution.fit(self.problem, rows, self.Y[rows])
        fit = self._with_array if plan.form == ARRAY else self.full_fit
        return fit.without(np.flatnonzero(~np.isin(self.problem.active, rows, assume_unique=True)))

    def without(self, members):
        """The model without these positions among the rows of positive weight."""
        return self.part(np.delete(self.rows, members))

    def targets(self, members):
        """Targets (t, m) of these positions, as they are solved for."""
        return self.problem.rounded(self.Y[self.rows[members]])
