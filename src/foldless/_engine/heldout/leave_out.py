"""Leave sets of rows out of a fit, every set alone: the one function that held-out fits of any kind come from.

    E_te = P_te,te^-1 A_te,        held-out fits  Y_te - E_te

:func:`leave_out` yields batches of sets with their held-out fits, residuals and class matrices. Many small sets are one
batch (``heldout.held_out``); few or large ones are left out one by one (``heldout.part``). ``precision.cost`` decides.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from foldless._engine.heldout.held_out import MAX_ENTRIES
from foldless._engine.heldout.moments import Moments
from foldless._engine.heldout.part import Part
from foldless._engine.heldout.sets import Sets
from foldless._engine.precision import cost


def leave_out(fit, sets):
    """Yield (numbers of sets, held-out results) until every set was left out of a :class:`Solution` or ``Part``.

    Results have ``fits`` and ``residuals`` (k, t, m), ``moments()`` of the training parts, and ``training(i)``, the
    model without set i of the batch.
    """
    n = len(fit.rows)
    if sets.are_all_rows_of(n):
        yield sets.groups[0][0], fit.loo()
        return
    fit = fit.as_solution()
    through_features = fit.precision.through_features
    if not cost.batches_pay(n, sets.sizes, through_features=through_features):
        yield from one_by_one(sets, lambda members: OneHeldOut.of(fit, members))
        return
    if sets.sizes.max() > 1 and not through_features:
        fit = fit.explicit()
    for numbers, members in sets.groups:
        entries = members.shape[1] ** 2 * fit.Y.shape[1]
        size = max(1, MAX_ENTRIES // entries)
        for start in range(0, len(members), size):
            some = slice(start, start + size)
            yield numbers[some], fit.held_out(members[some])


def loo_within(solution, sets):
    """Leave-one-out residuals [(n - t, m)] of the models without each of ``sets``, a list of positions."""
    residuals = [None] * len(sets)
    for numbers, members in Sets.of(sets).groups:
        for number, of_set in zip(numbers, solution.held_out(members).loo_within(), strict=True):
            residuals[number] = of_set
    return residuals


def one_by_one(sets, of_set):
    """Yield (number (1,), ``of_set(members)``) of every set."""
    for numbers, members in sets.groups:
        for place, number in enumerate(numbers):
            yield np.array([number]), of_set(members[place])


@dataclass(frozen=True)
class OneHeldOut:
    """A batch of one held-out set, from the ``model`` without it: the numbers and the targets (t, m) of its rows."""

    model: Any
    rows: np.ndarray
    targets: np.ndarray

    @classmethod
    def of(cls, fit, members):
        """The set of these positions left out of a fit."""
        return cls(fit.without(members), fit.rows[members], fit.Y[members] / fit.root[members])

    @cached_property
    def fits(self):
        return self.model.fits(self.rows)[None]

    @cached_property
    def residuals(self):
        """(1, t, m) in the units of the targets; by E where P gives it, as differences would lose digits."""
        if isinstance(self.model, Part):
            return self.model.residuals[None]
        return self.targets[None] - self.fits

    def moments(self):
        """Class matrices (1, m, m) of the training part."""
        N, U, C, V = self.model.moments()
        return Moments(N[None], U[None], None if C is None else C[None], None if V is None else V[None])

    def training(self, number):
        """The model of the training part."""
        return self.model
