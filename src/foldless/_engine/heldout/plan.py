"""How sets of rows are left out of the fits of one problem: decided here, once; ``leave_out`` follows the plan.

A training part of k of n rows can be solved by itself (k^3/3 flops), without the P of all rows (2/3 n^3 once for all
training parts). While sets are left out, P of all rows has one of three forms:

    "blocks"      as the fit made it: single rows follow from its diagonal, other sets from their blocks
    "array"       n x n numbers, from which the blocks of many small sets are taken together
    "features"    r x r numbers for r explicit features; nothing n x n is formed

and in the plan "alone" there is no P of all rows. ``precision.cost`` counts what each takes.
"""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from foldless._engine.precision import cost
from foldless._engine.precision.base import Precision

ALONE, BLOCKS, ARRAY, FEATURES = "alone", "blocks", "array", "features"


@dataclass(frozen=True)
class LeaveOutPlan:
    """How sets of rows are left out.

    counts : the sets that it is for, {rows of a set: number of sets}
    form : "alone", "blocks", "array" or "features", of P of all rows
    batch_sizes : {rows of a set: number of sets that are left out together}; other sets are left out one by one
    alone : sizes of the sets whose training parts are solved by themselves, although there is a P of all rows
    holder : class that holds P of all rows; None where there is none
    held : how it does, in words
    arrays : n x n arrays that are held at a time
    flops : those of all training parts
    reason : why, in words
    """

    counts: dict[int, int]
    form: str
    batch_sizes: dict[int, int] = field(default_factory=dict)
    alone: frozenset[int] = frozenset()
    holder: type[Precision] | None = None
    held: str = ""
    arrays: float = 0.0
    reason: str = ""
    flops: float = 0.0

    def solves_alone(self, t):
        """Whether the training part without t rows is solved by itself."""
        return self.form == ALONE or t in self.alone


def plan_of_problem(problem, counts, m, *, nested=False, needs_P=False):
    """The :class:`LeaveOutPlan` for sets of rows of a problem with m targets.

    ``nested`` says that leave-one-out inside the training parts is wanted, ``needs_P`` that P of all rows is made in
    any case. Without it, P is made only where it pays: two or three large folds are cheaper solved one by one.
    """
    n = len(problem.active)
    holder = problem.holder(n)
    steps = 0.0 if nested else cost.STEPS_OF_FIT  # nested, training parts are never in batches
    alone, removal, cheaper_alone = {}, {}, []  # flops of a training part, by size of the set that it leaves out
    for t in counts:
        alone[t] = problem.holder(n - t).fit_cost(problem, n - t, nested=nested) + steps
        removal[t] = holder.removal_cost(problem, n, t, nested=nested)
        if removal[t] > alone[t]:
            cheaper_alone.append(t)
    fit = holder.fit_cost(problem, n, nested=nested)
    shared, each_alone = cost.of_training_parts(fit, alone, removal, counts, nested=nested)
    if not needs_P and each_alone <= shared:
        reason = "few large folds: solving each training part alone is less work than P of all rows"
        return LeaveOutPlan(counts, ALONE, reason=reason, flops=each_alone)
    form, batch_sizes = _form_and_batches(holder, n, counts, m, nested, one_by_one=bool(cheaper_alone))
    held = holder.planned.format(n=n, r=problem.n_features)
    arrays = 0.0
    if form != FEATURES:
        arrays = cost.arrays_of_P(problem.kernel, left_out=max(counts, default=0) / n, as_array=form == ARRAY)
    reason = f"all held-out predictions follow from one P ({held})"
    return LeaveOutPlan(counts, form, batch_sizes, frozenset(cheaper_alone), holder, held, arrays, reason, shared)


def plan_of_fit(holder, n, counts, m, *, nested=False):
    """The :class:`LeaveOutPlan` for sets of rows of a fit of n rows and m targets, whose P is there in this holder."""
    form, batch_sizes = _form_and_batches(holder, n, counts, m, nested)
    return LeaveOutPlan(counts, form, batch_sizes, holder=holder)


def _form_and_batches(holder, n, counts, m, nested, *, one_by_one=False):
    """The form of P, and which sets are left out together."""
    through_features = holder.through_features
    batches = not one_by_one and cost.batches_pay(n, counts, through_features=through_features)
    batch_sizes = {t: cost.batch_size(n, t, m) for t in counts} if batches else {}
    if through_features:
        return FEATURES, batch_sizes
    return ARRAY if nested or max(batch_sizes, default=1) > 1 else BLOCKS, batch_sizes


def counts_of_splits(splits, problem):
    """How many of the splits leave out how many rows of positive weight, {rows: number of splits}."""
    is_active = np.zeros(problem.n, bool)
    is_active[problem.active] = True
    return Counter([len(problem.active) - int(np.count_nonzero(is_active[train])) for train, _ in splits])
