"""Continuous searches from one starting point: what is moved, where it leads, and which of several is the best."""

from dataclasses import dataclass, replace

import numpy as np

from foldless.heldout.solution import Solution
from foldless.readout.task import Task
from foldless.tuning import criteria
from foldless.tuning.objective import Minimum, minimise
from foldless.tuning.space import Space


@dataclass(frozen=True)
class Start:
    """One starting point of a continuous search."""

    task: Task
    classes: np.ndarray | None
    space: Space
    vector: np.ndarray
    limits: dict  # {parameter: (low, high)}
    column: int | None  # of a single class; None: all together
    slope: float | None  # steepness of a smooth criterion
    prior: str | None
    params: dict  # of the candidate it belongs to
    prefix: str  # what the estimator puts in front of the names of the kernel's parameters

    @property
    def n_descents(self):
        """Descents from here: under a prior also a free one, and one from its end."""
        return 1 if self.prior is None else 3

    def named(self, alphas, kernel):
        """A setting as parameters of the estimator, one dictionary for each alpha."""
        tuned = {self.prefix + name: getattr(kernel, name) for name in self.space.names}
        return [{**self.params, "alpha": float(alpha), **tuned} for alpha in alphas]

    def named_together(self, alphas, kernel):
        """The same as one dictionary; classes that share all but alpha have a list of alphas."""
        first, *others = self.named(alphas, kernel)
        return {**first, "alpha": [first["alpha"], *(each["alpha"] for each in others)]} if others else first


@dataclass(frozen=True)
class Descent:
    """Where a starting point led."""

    start: Start
    minimum: Minimum
    history: list
    rank: tuple  # (error where several slopes are compared, objective): the least is the best


def follow(start, spec, splits, sample_weight, progress=None):
    """The descent from one starting point; ``progress`` counts iterations."""
    selection = spec.selection(start.task, splits, sample_weight, slope=start.slope)
    selection = selection if start.column is None else selection.column(start.column)
    minimum = _descend(start, spec, selection, start.vector, start.prior, progress)
    history = minimum.history
    if start.prior is not None:
        # One gamma for all may be a minimum of its own. Come from where the scales part freely as well, and believe
        # that end where it is better by more than chance gives so many scales: one unit of log-likelihood for each.
        free = _descend(start, spec, selection, start.vector, None, progress)
        parted_start = start.space.pack(free.alphas, free.kernel)
        parted = _descend(start, spec, selection, parted_start, start.prior, progress)
        history = [*history, *free.history, *parted.history]
        if parted.objective < minimum.objective - start.space.n_scales:
            minimum = parted
    # Slopes differ in what they minimise; the error they all stand for does not.
    error = _hard_loss(selection, minimum) if len(spec.slopes) > 1 else 0.0
    return Descent(start, minimum, history, (error, minimum.objective))


def _descend(start, spec, selection, vector, prior, progress):
    minimum = minimise(
        start.task.problem,
        selection,
        start.space,
        vector,
        method=spec.method,
        limits=start.limits,
        prior=prior,
        max_iter=spec.max_iter,
        watch=None if progress is None else lambda loss: progress.step(f"criterion {loss:.4g}"),
    )
    if progress is not None:
        progress.skip(spec.max_iter - minimum.n_iter)
    return minimum


def _hard_loss(selection, minimum):
    """The error, ber or auc at the minimum of its smooth version; 0 for other criteria."""
    if selection.criterion.hard is None:
        return 0.0
    hard = replace(selection, criterion=criteria.resolve(selection.criterion.hard))
    parts = hard.parts(selection.task.problem.replace(kernel=minimum.kernel), minimum.alphas)
    return sum(part.judge(Solution(problem, part.rows, part.Y)).sum() for part, problem in parts)


def choose_descents(descents):
    """Places of the best descents: one, or one for each class that is searched by itself."""
    best: dict = {}
    for place, each in enumerate(descents):
        column = each.start.column
        if column not in best or each.rank < descents[best[column]].rank:
            best[column] = place
    return list(best.values())
