"""Nested cross-validation of a grid without refits.

Two exact ways for a grid, the cheaper by operations is taken (n rows, t of them left out, k alphas, s outer splits):

    one P for each candidate     10 n^3 for the decomposition of each kernel, then n^3 for each alpha's P; every outer
                                 training part is a Schur complement of it, whose diagonal gives the inner leave-one-out
                                 criterion and whose blocks give the outer predictions: n t^2 for each split
    the search on every part     10 (n - t)^3 for each kernel and split
"""

from dataclasses import dataclass

import numpy as np

from foldless.heldout.solution import Solution, TrainingParts
from foldless.precision.choose import one_p_pays
from foldless.readout.task import Rule
from foldless.tuning.criteria import class_weights, weights
from foldless.tuning.selection import Selection


def sharing_pays(problem, n_alphas, outer, inner):
    """Whether one P for each alpha takes fewer operations than a decomposition of every training part."""
    n = len(problem.active)
    sites, folds = problem.penalty.sites_per_row, inner[0] is not None
    if problem.n_features(n) is not None or (sites > 1 and folds):
        return False
    sizes = np.array([np.intersect1d(train, problem.active).size for train, _ in outer], float)
    return one_p_pays(n, sizes, n_alphas, sites=sites, inner_folds=folds)


def losses_from_one_P(task, alphas, selections):
    """Inner losses (n_splits, n_alphas, m) from one P for each alpha: a training part is P without the other rows."""
    problem, rows = task.problem, task.problem.active
    whole = Selection.of(task, selections[0].criterion)
    removed = [np.flatnonzero(~np.isin(rows, each.rows, assume_unique=True)) for each in selections]
    path, losses = problem.path(rows), []
    for alpha in alphas:
        model = Solution(problem.replace(alpha=alpha), rows, whole.Y, path.with_alpha(alpha).explicit())
        each = zip(selections, removed, strict=True)
        losses.append([selection.judge(selection.inner_model(model.without(out))) for selection, out in each])
    return np.array(losses).transpose(1, 0, 2)


@dataclass(frozen=True)
class HeldOut:
    """Held-out outputs of a candidate in one outer split: of its inner splits, and of the outer test rows."""

    inner_rows: np.ndarray
    inner_scores: np.ndarray  # before any cut
    rule: Rule
    fits: np.ndarray  # of the criterion's targets at the test rows
    decision: np.ndarray
    probabilities: np.ndarray | None  # by the rule, where asked for


def heldout_of_candidate(task, problem, outer, selections, probabilities):
    """:class:`HeldOut` of every outer split for the candidate whose problem this is, with its inner selections."""
    parts = TrainingParts(problem, task.Y, nested=True)
    parts.plan([len(train) for train, _ in outer])
    for (train, test), selection in zip(outer, selections, strict=True):
        model = parts.part(train)
        rule = task.rule(model, probabilities=probabilities)
        fits = model.fits(test)
        own = model if selection.folds is None else Solution(problem, model.rows, task.Y[model.rows])
        yield HeldOut(
            inner_rows=selection.tested_rows,
            inner_scores=selection.scores(own)[selection.tested],
            rule=rule,
            fits=problem.tie_equal_rows(test, task.plus_minus_fits(fits)),
            decision=problem.tie_equal_rows(test, rule.decision(fits)),
            probabilities=problem.tie_equal_rows(test, rule.proba(fits)) if rule.calibrator is not None else None,
        )


def outer_loss(spec, task, test, fits, decision, sample_weight):
    """The criterion of a search for the outer held-out fits of the rows ``test``."""
    criterion, weight, T = spec.criterion, spec.criterion_weight, task.plus_minus_targets(test)
    counted = np.ones(len(test))
    if weight == "sample_weight" and sample_weight is not None:
        counted = sample_weight[test]
        if not counted.any():
            return np.nan
    W = class_weights(weight, task.codes[test], counted)[:, None] if criterion.whole else weights(weight, T, counted)
    outside = Selection(task, test, T, None, np.arange(len(test)), W, criterion)
    return float((outside.errors(decision) if criterion.whole else outside.losses_of_fits(fits)).sum())
