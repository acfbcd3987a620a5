"""Leave sets of rows out of a fit, every set alone: the one function that held-out fits of any kind come from.

    E_te = P_te,te^-1 A_te,        held-out fits  Y_te - E_te

:func:`leave_out` yields batches of sets with their held-out fits, residuals and class matrices. Many small sets are one
batch (``heldout.held_out``), few or large ones are left out one by one (:class:`SetBySet`): ``precision.cost`` decides.

A fit is a ``Solution``, a ``TrainingPart`` of one, ``TrainingParts`` of a problem or ``ScaledParts``. It has two verbs:
``ready_for(sets, nested)`` gives the form of the fit from which these sets are left out with the least work, and that
form has ``batch_size(t)``, the number of sets of t rows that are left out together, and ``held_out(members)``.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from foldless._engine.heldout.moments import Moments
from foldless._engine.heldout.sets import Sets


def leave_out(fit, sets, *, nested=False):
    """Yield (numbers of sets, held-out results) until every set of positions in ``fit.rows`` was left out of a fit.

    Results have ``fits`` and ``residuals`` (k, t, m), ``moments()`` of the training parts, and ``training(i)``, the
    model without set i of the batch. ``nested``: leave-one-out inside the training parts will be needed.
    """
    fit = fit.ready_for(sets, nested=nested)
    for numbers, members in sets.groups:
        size = fit.batch_size(members.shape[1])
        for start in range(0, len(members), size):
            batch = slice(start, start + size)
            yield numbers[batch], fit.held_out(members[batch])


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
class SetBySet:
    """A fit whose sets are left out one after the other: ``fit.without(members)`` is the model without one of them."""

    fit: Any

    def batch_size(self, t):
        """Every set is a batch."""
        return 1

    def held_out(self, members):
        """:class:`OneHeldOut` of one set, positions (1, t)."""
        (members,) = members
        return OneHeldOut(self.fit.without(members), self.fit.rows[members], self.fit.targets(members))


@dataclass(frozen=True)
class OneHeldOut:
    """A batch of one held-out set, from the ``model`` without it: the numbers and the targets (t, m) of its rows."""

    model: Any
    rows: np.ndarray
    targets: np.ndarray

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

    def training(self, number):
        """The model of the training part."""
        return self.model
