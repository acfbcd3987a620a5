"""Grids: the default one, the losses of all alphas of a kernel setting, and the choice among candidates.

All alphas of one kernel follow from one decomposition (``Selection.path``), so that a grid costs one of them for each
kernel setting.
"""

import numpy as np

from foldless.precision.lowrank import TALL
from foldless.tuning.selection import best_place
from foldless.tuning.space import alpha_unit


def default_grid(problem):
    """{parameter: values}: alpha in units of the diagonal of S, and the kernel's own."""
    kernel, n = problem.kernel, len(problem.active)
    low, high, steps = -6.0, 2.0, 17
    if not kernel.differentiable:
        # Without a width to shrink, as for the linear kernel, eigenvalues go up to n times the diagonal, and far below
        # it where features differ in scale. All alphas cost one decomposition; a cheap one keeps fewer digits.
        wide = problem.n_features(n) is None or problem.X.shape[1] < TALL
        low, high, steps = -8.0 if wide else -4.0, float(np.log10(n)), 25
    grid = {"alpha": (alpha_unit(problem) * np.logspace(low, high, steps)).tolist()}
    return {**grid, **kernel.default_grid(problem.X[problem.active])} if kernel.parameters() else grid


def losses_of_alphas(spec, task, alphas, splits, sample_weight):
    """Losses (n_alphas, m) of one kernel setting, and (row numbers, held-out fits) at its best alpha."""
    selection = spec.selection(task, splits, sample_weight)
    losses, fits = selection.path(task.problem, alphas)
    return losses, (selection.tested_rows, fits[selection.tested])


def choose_candidates(losses, settings, share="all"):
    """Places of the best candidates, one or one for each column; of equal ones the largest alpha.

    ``losses`` (n_candidates, m), ``settings`` the kernel settings with the ``places`` and ``alphas`` of their
    candidates.
    """
    alphas = np.empty(len(losses))
    for setting in settings:
        alphas[setting.places] = setting.alphas

    def best(values, places):
        return int(places[best_place(values, alphas[places])])

    columns, everything = range(losses.shape[1]), np.arange(len(losses))
    if share == "all" or len(columns) == 1:
        return [best(losses.sum(1), everything)]
    if share == "none":
        return [best(losses[:, k], everything) for k in columns]
    within = [[best(losses[each.places, k], each.places) for k in columns] for each in settings]
    return min(within, key=lambda chosen: losses[chosen, list(columns)].sum())
