"""Grids: the losses of all alphas of a kernel setting, the choice among candidates, nested cross-validation.

All alphas of one kernel follow from one decomposition (``Selection.path``), so that a grid costs one of them for each
kernel setting. Nested cross-validation has two exact ways without refits, of which the cheaper by operations is taken
(n rows, t of them left out, k alphas, s outer splits):

    one P for each candidate     10 n^3 for the decomposition of each kernel, then n^3 for each alpha's P; every outer
                                 training part is a Schur complement of it, whose diagonal gives the inner leave-one-out
                                 criterion and whose blocks give the outer predictions: n t^2 for each split
    the search on every part     10 (n - t)^3 for each kernel and split
"""

import time
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from foldless._engine.heldout.leave_out import loo_within
from foldless._engine.heldout.plan import counts_of_splits
from foldless._engine.heldout.solution import Solution
from foldless._engine.heldout.training_parts import TrainingParts
from foldless._engine.precision import cost
from foldless._engine.readout.task import Rule
from foldless._engine.tuning.selection import Evaluation, best_place


class KernelResult(NamedTuple):
    """A kernel setting with all its alphas, judged."""

    judged: Evaluation
    heldout: tuple  # row numbers, and held-out decisions or fits at the best alpha
    seconds: float  # that it took


def judge_alphas(spec, setting, splits):
    """:class:`KernelResult` of one kernel setting."""
    begin = time.perf_counter()
    selection = setting.selection(spec, splits)
    judged = selection.path(setting.task.problem, setting.alphas)
    heldout = selection.tested_rows, judged.best[selection.tested]
    return KernelResult(judged, heldout, time.perf_counter() - begin)


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
    within = [[best(losses[setting.places, k], setting.places) for k in columns] for setting in settings]
    return min(within, key=lambda chosen: losses[chosen, list(columns)].sum())


# -- nested cross-validation -------------------------------------------------------------------------------------------


class NestedCost(NamedTuple):
    """The flops of a kernel setting in all outer splits, and whether one P serves all training parts."""

    flops: float
    shared: bool


def nested_cost(problem, n_alphas, outer, inner):
    """The :class:`NestedCost` of a kernel setting: of one P for each alpha, or of a path of every training part."""
    n = len(problem.active)
    sizes = np.array([np.intersect1d(train, problem.active).size for train, _ in outer], float)
    alone = float(cost.paths_of_parts(sizes, n_alphas))
    if problem.through_features(n):
        return NestedCost(alone, False)
    shared = float(cost.from_one_P(n, sizes, n_alphas, inner_folds=inner[0] is not None))
    return NestedCost(min(shared, alone), shared < alone)


def losses_from_one_P(task, alphas, selections):
    """Inner losses (n_splits, n_alphas, m) from one P for each alpha: a training part is P without the other rows."""
    problem, rows = task.problem, task.problem.active
    first = selections[0]
    Y = task.Y[rows] if first.criterion.of_decisions or first.score_decides else task.plus_minus_targets(rows)
    removed = [np.flatnonzero(~np.isin(rows, selection.rows, assume_unique=True)) for selection in selections]
    path, losses = problem.path(rows, len(alphas), explicit=True), []
    for alpha in alphas:
        model = Solution.fit(problem.replace(alpha=alpha), rows, Y, path.with_alpha(alpha).explicit())
        if all(selection.judges_loo_residuals for selection in selections):
            E = loo_within(model, removed)
            pairs = zip(selections, E, strict=True)
            losses.append([selection.losses(selection.of_targets(of_part)) for selection, of_part in pairs])
            continue
        parts = [model.without(out) for out in removed]
        pairs = zip(selections, parts, strict=True)
        losses.append([selection.judge(selection.inner_model(part)) for selection, part in pairs])
    return np.array(losses).transpose(1, 0, 2)


@dataclass(frozen=True)
class CandidateOutputs:
    """Held-out outputs of a candidate in one outer split: of its inner splits, and of the outer test rows."""

    inner_rows: np.ndarray
    inner_scores: np.ndarray  # before any cut
    rule: Rule
    fits: np.ndarray  # of the criterion's targets at the test rows
    decision: np.ndarray
    probabilities: np.ndarray | None  # by the rule, where asked for


def heldout_of_candidate(task, problem, outer, selections, probabilities):
    """:class:`CandidateOutputs` of every outer split, for the candidate whose problem this is and its selections."""
    parts = TrainingParts(problem, task.Y, nested=True).planned(counts_of_splits(outer, problem))
    for (train, test), selection in zip(outer, selections, strict=True):
        model = parts.part(train)
        rule = task.rule(model, probabilities=probabilities)
        fits = model.fits(test)
        inner = model if selection.folds is None else Solution.fit(problem, model.rows, task.Y[model.rows])
        yield CandidateOutputs(
            inner_rows=selection.tested_rows,
            inner_scores=selection.scores(inner)[selection.tested],
            rule=rule,
            fits=problem.tie_equal_rows(test, task.readout.plus_minus_fits(fits)),
            decision=problem.tie_equal_rows(test, rule.decision(fits)),
            probabilities=problem.tie_equal_rows(test, rule.proba(fits)) if rule.calibrator is not None else None,
        )


def inner_criterion(problem, selection):
    """The criterion inside a training part of a candidate that a score has chosen."""
    selection = replace(selection, scoring=None)
    return selection.judge(Solution.fit(problem, selection.rows, selection.Y)).sum()


def outer_loss(spec, task, test, fits, decision):
    """The criterion of a search for the outer held-out fits of the rows ``test``."""
    if spec.row_weights is not None and not spec.row_weights[test].any():
        return np.nan
    selection = replace(spec, scoring=None).selection(task, None, rows=test)
    fits = fits if spec.criterion.ranks else selection.T - fits
    return float(selection.losses(decision if spec.criterion.of_decisions else fits).sum())
