"""Leave sets of rows out of a fit, every set alone: held-out fits of any fit come from this function.

    E_te = P_te,te^-1 A_te,        held-out fits  Y_te - E_te

:func:`leave_out` yields batches of sets with their held-out fits, residuals and class matrices, as the plan of the fit
says (``heldout.plan``): many small sets are one batch (``heldout.held_out``), few or large ones are left out one by one
(:class:`OneHeldOut`).

A fit is a ``Solution``, a ``TrainingPart`` of one, ``TrainingParts`` of a problem or ``ScaledParts``. It has

    rows                numbers of its rows in X; sets hold positions among them
    plan_for(sets)      its ``LeaveOutPlan`` for these sets
    prepared(plan)      the fit from which the sets are left out, which has

        held_out(members)   the result of a batch of sets (k, t), where the plan has batches of this size
        without(members)    the model without one set (t,), where it has none
        targets(members)    targets (t, m) of one set

A model has ``fits(rows)`` and ``held_out_residuals(rows, targets)``; classifiers need ``moments()`` or
``present_classes()``.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from foldless._engine.heldout.moments import Moments
from foldless._engine.heldout.sets import Sets


def leave_out(fit, sets, *, nested=False):
    """Yield (numbers of sets, held-out results) until every set of positions in ``fit.rows`` was left out of a fit.

    Results have ``fits`` and ``residuals`` (k, t, m), ``moments()`` and ``present_classes()`` of the training parts,
    and ``training(i)``, the model without set i of the batch; those of ``ScaledParts`` have neither ``residuals`` nor
    ``training``. ``nested``: leave-one-out inside the training parts will be needed.
    """
    plan = fit.plan_for(sets, nested=nested)
    fit = fit.prepared(plan)
    for numbers, members in sets.groups:
        together = plan.batch_sizes.get(members.shape[1])
        for start in range(0, len(members), together or 1):
            batch = slice(start, start + (together or 1))
            held_out = fit.held_out(members[batch]) if together else OneHeldOut.of(fit, members[start])
            yield numbers[batch], held_out


def held_out_fits(fit, sets):
    """Held-out fits of all sets in the units of the targets, (N, m), set by set."""
    return sets.stacked((numbers, held_out.fits) for numbers, held_out in leave_out(fit, sets))


def held_out_residuals(fit, sets):
    """Held-out residuals of all sets in the units of the targets, (N, m); they keep more digits than fits."""
    return sets.stacked((numbers, held_out.residuals) for numbers, held_out in leave_out(fit, sets))


def loo_within(solution, sets):
    """Leave-one-out residuals [(n - t, m)] of the models without each of ``sets``, a list of positions."""
    residuals = [None] * len(sets)
    for numbers, members in Sets.of(sets).groups:
        for number, of_set in zip(numbers, solution.held_out(members).loo_within(), strict=True):
            residuals[number] = of_set
    return residuals


@dataclass(frozen=True)
class OneHeldOut:
    """A batch of one held-out set, from the ``model`` without it: the numbers and the targets (t, m) of its rows."""

    model: Any
    rows: np.ndarray
    targets: np.ndarray

    @classmethod
    def of(cls, fit, members) -> Self:
        """One set of positions (t,), left out of a fit."""
        return cls(fit.without(members), fit.rows[members], fit.targets(members))

    @cached_property
    def fits(self):
        """(1, t, m) in the units of the targets."""
        return self.model.fits(self.rows)[None]

    @cached_property
    def residuals(self):
        """(1, t, m) in the units of the targets."""
        return self.model.held_out_residuals(self.rows, self.targets)[None]

    def moments(self):
        """Class matrices (1, m, m) of the training part."""
        N, U, C, V = self.model.moments()
        return Moments(N[None], U[None], None if C is None else C[None], None if V is None else V[None])

    def present_classes(self):
        """Which classes have rows in the training part, (1, c)."""
        return self.model.present_classes()[None]

    def training(self, number):
        """The model of the training part."""
        return self.model
