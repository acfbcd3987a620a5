"""The strategy of a permutation test, chosen from types, parameters and weights.

permutations as columns     everything that is regularised least squares, and grids over it
one P, one by one           the same with a score that takes more than decisions
a P for each permutation    weights that follow the labels
refit                       everything else
"""

import warnings
from dataclasses import replace
from functools import partial

import numpy as np
from sklearn import model_selection as skl
from sklearn.base import is_classifier
from sklearn.model_selection import check_cv

from foldless._engine.permutation.labelings import Solver, count_columns, labelings_that_fit, truth_of
from foldless._engine.permutation.strategies import Batched, BatchedGrid, OneByOne, Strategy, Weighted
from foldless._engine.permutation.tally import DecisionScore
from foldless._engine.tuning.grid import nested_cost
from foldless._sklearn import adapters
from foldless._sklearn.adapters import FOLDLESS_ESTIMATORS, TASKS, learns_kernel
from foldless._sklearn.candidates import SearchData, has_grid, settings
from foldless._sklearn.closed_form import ClosedFormRun
from foldless._sklearn.landmarks import landmarks_to_find
from foldless._sklearn.nested_data import NestedData
from foldless._sklearn.permutation_spec import has_class_weights
from foldless._sklearn.pipelines import check_steps, fit_steps, split_steps, transform_split
from foldless._sklearn.route import (
    ONE_FIT,
    ONE_P_PER_FOLD,
    NoClosedForm,
    NoSharedP,
    RefitWarning,
    Route,
    try_closed_form,
)
from foldless._sklearn.scorers import scoring_of_rows
from foldless._sklearn.split_scores import SplitScores
from foldless._sklearn.splits import check_confounds_determined, depends_on_labels
from foldless._sklearn.standin import StandIn
from foldless._sklearn.steps import fits_steps
from foldless.estimators.access import chooses_landmarks
from foldless.estimators.checks import confounds_left_out, warn_of_long_call, warn_of_scale
from foldless.kernels.registry import is_precomputed, penalised_kernel

FEW = 8  # labelings at a time where each takes its own time
SOME = 64  # labelings that share the kernel matrix where each has a P
ARRAYS = 2  # n x n at the same time: P and its factor, or its eigenvectors
REPEATED = "the search is repeated for every permutation (nested_cross_validate)"
FIXED_CLASSES = "a model without class_weight, with scoring='balanced_accuracy', takes one P for all permutations"
FIXED_SPLITS = (
    "inner splits that do not look at the labels, such as cv=None or cv=KFold(5, shuffle=True, random_state=0) of the"
    " search, take one P of each candidate for all permutations"
)
FIXED_SEARCH = (
    "a search of a model without class_weight, with criterion_weight='balanced' and scoring='balanced_accuracy' here,"
    " takes one P of each candidate for all permutations"
)
NAMED_KERNEL = "a grid for kernel='rbf', which takes one P of each candidate for all permutations"


def choose_strategy(spec, data, members=None, *, cautions=True):
    """The quickest strategy that is exact for this test; with ``members`` models are tested on the features of all.

    Without ``cautions`` nothing warns of rows from which little can be learnt.
    """
    steps = split_steps(spec.estimator)
    quick = _closed_form if spec.search is None else _batched_grid
    strategy: Strategy
    strategy, obstacle = try_closed_form(quick, spec, data, steps, cautions)
    if obstacle is not None:
        needs_classes = has_class_weights(steps.last) and type(steps.last) in TASKS
        strategy = OneByOne(obstacle.route, partial(_refit_labeling, spec, data, needs_classes))
    if members is None:
        return strategy
    if not isinstance(strategy, Batched):
        reason = strategy.route.reason
        raise ValueError(f"generalise=True needs permutations as columns, which is not possible here: {reason}.")
    if getattr(steps.last, "standardize", False):
        raise ValueError(
            "generalise=True: standardize=True is resolved for each member by itself; standardise X before."
        )
    if not strategy.task.problem.kernel.takes_rows:
        raise ValueError(
            "generalise=True needs features: precomputed kernels say nothing of rows of one member against those of"
            " another."
        )
    at_a_time = strategy.n_together
    if any(scoring.pooled for scoring in spec.scorings.values()):  # decisions of all members are held until the end
        at_a_time = max(1, at_a_time // len(members))
    return replace(strategy, members=members, n_together=at_a_time)


def _closed_form(spec, data, steps, cautions):
    """Permutations as columns, or one by one from one P."""
    adapters.check_fit_params(set(spec.metadata.fit) - {steps.fit_param("sample_weight")})
    last = steps.last
    per_part = steps.first is not None or chooses_landmarks(last)
    _check_parts(spec, steps, last, per_part)
    data_of_last = _fit_steps(steps.first, data, *spec.true_splits[0])[1] if per_part else data
    estimator_task = data_of_last.task(last)
    if cautions:
        warn_of_scale(estimator_task.task.problem)
        flops = _flops_of_labelings(spec, estimator_task.task, per_part=per_part, weighted=has_class_weights(last))
        warn_of_long_call(estimator_task.task.problem, "a permutation test", flops, ARRAYS)
    check_confounds_determined(estimator_task.task.problem, spec.true_splits)
    by_columns = not spec.metadata.score and _takes_decisions(spec, estimator_task.task)
    if has_class_weights(last):
        reason = "weights follow the labels, so that every permutation has a P of its own"
        obstacle = NoSharedP(reason, quicker=FIXED_CLASSES)
        if per_part or data.sample_weight is not None or not by_columns:
            raise obstacle
        return Weighted(obstacle.route, SOME, estimator_task.task, _column_scores(spec, estimator_task))
    if per_part:
        if not by_columns:
            raise NoClosedForm("behind fitted steps this score is asked of each fitted pipeline")
        by_split = partial(_solver_behind_steps, steps.first, last, data)
        fitted = f"{steps.names} fitted" if steps.first is not None else "landmarks chosen"
        reason = f"{fitted} on each training part; all permutations are columns of one P there"
        route = Route(ONE_P_PER_FOLD, reason)
        return _batched(spec, estimator_task, route, residuals=data.residuals, solver_of=by_split)
    solver = Solver.of(estimator_task.task.problem)
    if not by_columns:
        return _shared_precision(spec, data, last, estimator_task, solver)
    reason = f"permutations are columns; all held-out predictions follow from one P ({solver.choice})"
    if spec.moves_splits:
        reason += "; each has its own splits"
    route = Route(ONE_FIT, reason, solver.choice)
    return _batched(spec, estimator_task, route, residuals=data.residuals, shared=solver)


def _flops_of_labelings(spec, task, *, per_part, weighted):
    """Flops of all labelings: a P for all, for each training part, or for each labeling (``weighted``)."""
    problem = task.problem
    n = len(problem.active)
    precision = 2 * problem.holder(n).fit_cost(problem, n)
    products = 2.0 * n**2 * count_columns(task)[0] * spec.n_labelings
    if per_part:
        return len(spec.true_splits) * (precision + products)
    removals = sum(n * len(test) ** 2 for _, test in spec.true_splits)
    return (spec.n_labelings if weighted else 1) * (precision + removals) + products


def _check_parts(spec, steps, last, per_part):
    """Refuse estimators, steps and training parts without a closed form."""
    if not chooses_landmarks(last):
        adapters.closed_form_estimator(split_steps(last), {})
    if steps.first is not None:
        check_steps(steps.first)
        if getattr(last, "standardize", False):
            raise NoClosedForm("standardize=True behind fitted steps is resolved on each training part")
        if is_precomputed(getattr(last, "kernel", None)):
            raise NoClosedForm("steps in front of a precomputed kernel see kernels, not rows")
    if per_part and spec.moves_splits:
        raise NoClosedForm("every permutation has its own splits, and steps are fitted on each training part")
    if spec.split_with_repeats is not None:
        raise NoClosedForm(f"the training part of split {spec.split_with_repeats} repeats rows")


def _takes_decisions(spec, task):
    """Whether held-out decisions are enough for all scores, which are refused where they are not defined."""
    for scoring in spec.scorings.values():
        scoring.check(task, spec.true_splits)
    return all(scoring.takes_decisions(task) for scoring in spec.scorings.values())


def _column_scores(spec, estimator_task):
    """The scores of labelings that are columns."""
    options = {"sklearn_rounding": spec.matches_sklearn}
    return [
        DecisionScore(scoring.score_function(estimator_task, **options), scoring.pooled, scoring.width)
        for scoring in spec.scorings.values()
    ]


def _batched(spec, estimator_task, route, **solver):
    """Permutations as columns, as many at a time as fit into memory."""
    n_together = labelings_that_fit(estimator_task.task, spec.limits.memory)
    return Batched(route, n_together, estimator_task.task, _column_scores(spec, estimator_task), **solver)


def _fit_steps(first, data, train, test):
    """(steps fitted on ``train``, the data as they see them)."""
    if first is None:
        return None, data
    fitted = fit_steps(first, data.X, train)
    return fitted, replace(data, X=transform_split(fitted, data.X, len(data.y), train, test))


def _solver_behind_steps(first, last, data, train, test):
    """P of a model ``last`` on a training part, behind steps that are fitted there."""
    fitted, data = _fit_steps(first, data, train, test)
    problem = data.task(last).task.problem
    if isinstance(last, FOLDLESS_ESTIMATORS):  # "scale" and landmarks are those of the training part, as in a refit
        weight = None if data.sample_weight is None else data.sample_weight[train]
        problem = problem.replace(kernel=penalised_kernel(last).resolved(problem.X[train], weight))
    return Solver.of(problem.restricted(train), steps=fitted)


def _shared_precision(spec, data, last, estimator_task, solver):
    """scikit-learn's loop for every labeling, all from one P."""
    reason = f"one P for all permutations ({solver.choice}); this score is asked for one by one"
    validate = partial(_validate_labeling, spec, data, last, estimator_task, solver)
    return OneByOne(Route(ONE_FIT, reason, solver.choice), validate, FEW)


def _validate_labeling(spec, data, last, estimator_task, solver, order, splits):
    """Scores of one labeling's splits by scikit-learn's loop, from the P of all labelings."""
    task, scores = estimator_task.task, SplitScores(spec.scorings, len(splits))
    codes = None if task.codes is None else task.codes[order]
    if codes is not None:
        check_classes(codes, splits)
    Y = task.Y[order] if data.residuals is None else truth_of(task, order[None], data.residuals)[0].T
    task = replace(task, Y=Y, codes=codes)
    parts = task.training_parts(solution=solver.solve(task.Y))
    data = data.labelled(order)
    run = ClosedFormRun(
        outer=spec.estimator,
        estimator=last,
        task=task,
        classes=estimator_task.classes,
        flat=estimator_task.flat,
        checked=estimator_task.checked,
        X=data.X,
        y=data.y,
        sample_weight=data.sample_weight,
        parts=parts,
    )
    scoring = scoring_of_rows(scores.scoring, data.X)
    options = {"cv": splits, "scoring": scoring, "params": spec.metadata.score, "error_score": "raise"}
    return scores.labeling_scores(skl.cross_validate(StandIn(run), run.rows, data.y, **options))


def _refit_labeling(spec, data, needs_classes, order, splits):
    """Scores of one labeling's splits by refits."""
    data = data.labelled(order)
    if needs_classes:
        check_classes(np.asarray(data.y), splits)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RefitWarning)  # the route of the result has the reason, once
        return spec.refit(spec, data, splits, SplitScores(spec.scorings, len(splits)))


def check_classes(labels, splits):
    """Refuse training parts without one of the classes, where fitted estimators or class weights need all of them."""
    classes = np.unique(labels)
    for number, (train, _) in enumerate(splits):
        missing = np.setdiff1d(classes, labels[train]).tolist()
        if missing:
            raise ValueError(
                f"cv: a labeling leaves the training part of split {number} without class {missing[0]!r}, and class"
                " weights, cuts and scores of fitted estimators need all of them. Use a stratified splitter, fewer"
                " folds, or a score by name such as 'balanced_accuracy'."
            )


def _check_one_P_serves(spec, data, steps, search):
    """Refuse searches that choose by more than one P of each candidate, and are repeated for every permutation."""
    if learns_kernel(search):
        raise NoClosedForm(f"{REPEATED}, as it learns its kernel from the labels", NAMED_KERNEL)
    if search.cv is not None and depends_on_labels(check_cv(search.cv, data.y, classifier=is_classifier(search))):
        raise NoClosedForm(f"{REPEATED}, as its inner splits are drawn from the labels", FIXED_SPLITS)
    if landmarks_to_find(search, data.X) is not None:
        raise NoClosedForm(f"{REPEATED}, as it finds its number of landmarks")
    if has_class_weights(search):
        raise NoClosedForm(f"{REPEATED}, as its class weights follow the labels", FIXED_SEARCH)
    fitted_on_parts = steps.first is not None or fits_steps(search, spec.steps)
    fixed = not (spec.moves_splits or fitted_on_parts or spec.metadata.score)
    if not has_grid(search) or search.share != "all" or not fixed:
        raise NoClosedForm(REPEATED)


def _warn_of_long_grid(spec, kernel_settings, inner):
    """Warn in advance if a grid with all labelings as columns will take long."""
    flops = 0.0
    for setting in kernel_settings:
        problem, n_alphas = setting.task.problem, len(setting.alphas)
        products = 2.0 * len(problem.active) ** 2 * count_columns(setting.task)[0] * spec.n_labelings
        flops += nested_cost(problem, n_alphas, spec.true_splits, inner).flops + n_alphas * products
    warn_of_long_call(kernel_settings[0].task.problem, "a permutation test", flops, ARRAYS)


def _batched_grid(spec, data, steps, cautions):
    """The grid of a search with labelings as columns."""
    unknown = set(spec.metadata.fit) - {steps.fit_param("sample_weight")}
    if unknown:
        raise ValueError(
            f"params: fit parameters {sorted(unknown)} have no closed form; only sample_weight is passed to the fits of"
            " a search."
        )
    search, confounds = steps.last, confounds_left_out(data.confounds, "a search")
    _check_one_P_serves(spec, data, steps, search)
    nested = NestedData(search, data.X, data.y, spec.groups, data.sample_weight, confounds)
    nested.check(spec.true_splits)
    search_data = SearchData(data.X, data.y, data.sample_weight, confounds)
    candidates, kernel_settings = settings(search.estimator, search.param_grid, search_data)
    check_confounds_determined(kernel_settings[0].task.problem, spec.true_splits)
    needs_all_classes = spec.search.criterion.of_decisions or search.scoring is not None
    if not all([_takes_decisions(spec, setting.task) for setting in kernel_settings]) or needs_all_classes:
        raise NoClosedForm(REPEATED)
    inner = [nested.inner_splits(train) for train, _ in spec.true_splits]
    if cautions:
        _warn_of_long_grid(spec, kernel_settings, inner)
    balanced = search.criterion_weight == "balanced"  # weights that follow the labels, and are computed with them
    search_spec = replace(spec.search, criterion_weight=None) if balanced else spec.search
    reason = f"one P for each of {len(candidates)} candidates; every permutation chooses its own on each part"
    return BatchedGrid(
        route=Route(ONE_FIT, reason),
        n_together=spec.limits.labelings_of_search,
        settings=kernel_settings,
        candidates=candidates,
        metrics=_column_scores(spec, kernel_settings[0]),
        selections=[
            nested.selections(search_spec, setting.task, spec.true_splits, inner) for setting in kernel_settings
        ],
        weight="balanced" if balanced else None,
        memory_limit=spec.limits.memory,
        residuals=data.residuals,
    )
