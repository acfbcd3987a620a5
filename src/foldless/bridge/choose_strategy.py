"""Which strategy a permutation test takes, from types, parameters and weights, and the words for it.

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
from sklearn.utils.validation import _check_sample_weight

from foldless.bridge.adapters import (
    FOLDLESS_ESTIMATORS,
    TASKS,
    check_fit_params,
    closed_form_estimator,
    freeze_class_weights,
)
from foldless.bridge.candidates import settings
from foldless.bridge.nested_data import NestedData
from foldless.bridge.permutation_spec import has_class_weights, weights_move
from foldless.bridge.pipelines import check_steps, fit_steps, split_steps, transform_split
from foldless.bridge.route import ONE_FIT, ONE_P_PER_FOLD, NoClosedForm, NoSharedP, RefitWarning, Route, closed_form_or
from foldless.bridge.scorers import is_function, reads_estimators, scoring_of_rows
from foldless.bridge.splits import depends_on_labels
from foldless.bridge.standin import Run, StandIn
from foldless.kernels.registry import given_kernel, is_precomputed
from foldless.permutation.grid import BatchedGrid
from foldless.permutation.labelings import Solver, labelings_that_fit
from foldless.permutation.strategies import Batched, BatchedBySplit, RefitEach

FEW = 8  # labelings at a time where each takes its own time
TOGETHER = 256  # labelings that share the making of every candidate's P


def choose_strategy(spec, data):
    """The quickest strategy that is exact for this test."""
    steps = split_steps(spec.estimator)
    data = replace(data, sample_weight=_sample_weight(spec, steps, data))
    quick = _closed_form if spec.search is None else _batched_grid
    return closed_form_or(partial(_refit_each, spec, data, steps.last), partial(quick, spec, data, steps))


def generalised(strategy, members):
    """A strategy whose models are tested at the features of all members of a family."""
    if not isinstance(strategy, Batched):
        reason = strategy.route.reason
        raise ValueError(f"generalise=True needs permutations as columns, which is not possible here: {reason}.")
    if not strategy.task.problem.kernel.takes_rows:
        raise ValueError(
            "generalise=True needs features: precomputed kernels say nothing of rows of one member against those of"
            " another."
        )
    return replace(strategy, members=members)


def _sample_weight(spec, steps, data):
    """Weights of the last step among the fit parameters, or None."""
    if any(name.endswith("confounds") for name in spec.fit_params):
        raise ValueError("params: give confounds as confounds=, not as a parameter of fit.")
    weight = spec.fit_params.get(steps.fit_param("sample_weight"))
    if weight is None:
        return None
    return _check_sample_weight(weight, np.empty((len(data.y), 1)), ensure_non_negative=True)


# -- one P for all labelings -------------------------------------------------------------------------------------------


def _closed_form(spec, data, steps):
    """Permutations as columns, or one by one from one P."""
    check_fit_params(set(spec.fit_params) - {steps.fit_param("sample_weight")})
    last = freeze_class_weights(steps.last, data.y) if spec.weights == "fixed" else steps.last
    closed_form_estimator(last, {})
    if steps.first is not None:
        _check_steps(spec, steps.first, last)
    for number, (train, _) in enumerate(spec.first):
        if len(np.unique(train)) < len(train):
            raise NoClosedForm(f"the training part of split {number} repeats rows")
    built = (data if steps.first is None else _fit_steps(steps.first, data, *spec.first[0])[1]).task(last)
    if weights_move(last, data.sample_weight, spec.weights):
        raise NoSharedP("weights follow the labels, so that every permutation has its own P")
    spec.scoring.check(spec.estimator, built.task, spec.first)
    n_together = labelings_that_fit(built.task, spec.memory_limit)
    if not spec.score_params and spec.scoring.judges_decisions(built.task):
        judge = spec.scoring.judge(built, as_theirs=spec.as_theirs)
        if steps.first is not None:
            by_split = partial(StepSolver, steps.first, last, data)
            reason = f"{steps.names} fitted on each training part; all permutations are columns of one P there"
            return BatchedBySplit(Route(ONE_P_PER_FOLD, reason), n_together, built.task, judge, by_split)
        solver = Solver(built.task.problem)
        reason = f"permutations are columns; all held-out predictions follow from one P ({solver.choice})"
        return Batched(Route(ONE_FIT, reason, solver.choice), n_together, built.task, judge, solver)
    if steps.first is not None:
        raise NoClosedForm("behind fitted steps this score is asked of each fitted pipeline")
    return _shared_precision(spec, data, last, built)


def _check_steps(spec, first, last):
    """Refuse steps in front of a model that stand in the way of columns."""
    check_steps(first)
    if is_precomputed(getattr(last, "kernel", None)):
        raise NoClosedForm("steps in front of a precomputed kernel see kernels, not rows")
    if spec.moves_splits:
        raise NoClosedForm("every permutation has its own splits, and steps are fitted on each training part")


def _fit_steps(first, data, train, test):
    """(steps fitted on ``train``, the data as they see them)."""
    fitted = fit_steps(first, data.X, train)
    return fitted, replace(data, X=transform_split(fitted, data.X, len(data.y), train, test))


class StepSolver(Solver):
    """P of a model ``last`` on a training part, behind steps that are fitted there."""

    def __init__(self, first, last, data, train, test):
        self.fitted, data = _fit_steps(first, data, train, test)
        problem = data.task(last).task.problem
        if isinstance(last, FOLDLESS_ESTIMATORS):  # "scale" is resolved on the training part, as in a refit
            weight = None if data.sample_weight is None else data.sample_weight[train]
            problem = problem.replace(kernel=given_kernel(last).resolved(problem.X[train], weight))
        super().__init__(problem.trained_on(train))

    def rows_of(self, X, rows):
        """These rows of other features X, transformed by the steps."""
        return self.fitted.transform(super().rows_of(X, rows))


# -- one labeling at a time --------------------------------------------------------------------------------------------


def _shared_precision(spec, data, last, built):
    """scikit-learn's loop for every labeling, all from one P."""
    if has_class_weights(last) and not isinstance(last, FOLDLESS_ESTIMATORS) and is_function(spec.scoring.scorer):
        raise ValueError("weights='fixed': a scorer that is a function is handed refits, whose class weights follow.")
    solver = Solver(built.task.problem)
    reason = f"one P for all permutations ({solver.choice}); this score is asked for one by one"
    validate = partial(_validate_labeling, spec, data, last, built, solver)
    return RefitEach(Route(ONE_FIT, reason, solver.choice), validate, FEW)


def _validate_labeling(spec, data, last, built, solver, order, splits):
    """Scores of one labeling's splits by scikit-learn's loop, from the P of all labelings."""
    task, scoring = built.task, spec.scoring.asked
    codes = None if task.codes is None else task.codes[order]
    if codes is not None:
        check_classes(codes, splits)
    task = replace(task, Y=task.Y[order], codes=codes)
    parts = task.training_parts(strategy="part", whole=solver.solve(task.Y))
    data = data.labelled(order)
    run = Run(spec.estimator, last, built._replace(task=task), data.X, data.y, data.sample_weight, parts)
    if data.confounds is not None and reads_estimators(scoring):
        run.check_materialises(data.confounds_in_score)
    scoring = scoring_of_rows(scoring, data.X)
    options = {"cv": splits, "scoring": scoring, "params": spec.score_params, "error_score": "raise"}
    return skl.cross_validate(StandIn(run), run.rows, data.y, **options)["test_score"]


def _refit_each(spec, data, last, obstacle):
    """A cross-validation for every labeling, refused where weights would not do what is asked for."""
    by_class = has_class_weights(last)
    if by_class and spec.weights == "fixed":
        raise ValueError(
            f"weights='fixed': {type(spec.estimator).__name__} would be fitted anew for every permutation ({obstacle}),"
            " and its class weights follow the labels. Use weights=None, or sample weights in place of class_weight."
        )
    if spec.score_params and spec.weights == "permuted":
        raise ValueError("weights='permuted': the score's own parameters stay with the rows; leave one of them out.")
    validate = partial(_refit_labeling, spec, data, by_class and type(last) in TASKS)
    return RefitEach(obstacle.route, validate)


def _refit_labeling(spec, data, needs_classes, order, splits):
    data = data.labelled(order, with_weights=spec.weights == "permuted")
    if needs_classes:
        check_classes(np.asarray(data.y), splits)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RefitWarning)  # said once, in the route of the result
        return spec.refit(spec, data, splits)


def check_classes(labels, splits):
    """Refuse training parts without one of the classes, where fitted estimators or class weights are asked for."""
    classes = np.unique(labels)
    for number, (train, _) in enumerate(splits):
        missing = np.setdiff1d(classes, labels[train])
        if len(missing):
            raise ValueError(
                f"cv: a labeling leaves the training part of split {number} without class {missing[0]!r}, and class"
                " weights, cuts and scores of fitted estimators need all of them. Use a stratified splitter, fewer"
                " folds, or a score by name such as 'balanced_accuracy'."
            )


# -- searches ----------------------------------------------------------------------------------------------------------


def _batched_grid(spec, data, steps):
    """The grid of a search with labelings as columns."""
    unknown = set(spec.fit_params) - {steps.fit_param("sample_weight")}
    if unknown:
        raise ValueError(
            f"params: fit parameters {sorted(unknown)} have no closed form; only sample_weight is passed to the fits of"
            " a search."
        )
    if data.confounds is not None:
        raise ValueError("confounds are not known to a search; test the estimator with its parameters set.")
    search, repeated = steps.last, "the search is repeated for every permutation (nested_cross_validate)"
    if search.cv is not None and depends_on_labels(check_cv(search.cv, data.y, classifier=is_classifier(search))):
        raise NoClosedForm(f"{repeated}, as its inner splits are drawn from the labels")
    moving = spec.moves_splits or weights_move(search, data.sample_weight, spec.weights)
    grid = search.method == "grid" and search.share == "all"
    if not grid or moving or steps.first is not None or spec.score_params:
        raise NoClosedForm(repeated)
    nested = NestedData(search, data.X, data.y, spec.groups, data.sample_weight)
    nested.check(spec.first)
    listed, tried = settings(search.estimator, search.param_grid, data.X, data.y, data.sample_weight)
    for setting in tried:
        spec.scoring.check(spec.estimator, setting.task, spec.first)
    if spec.search.criterion.whole or not all(spec.scoring.judges_decisions(setting.task) for setting in tried):
        raise NoClosedForm(repeated)
    inner = [nested.inner_splits(train) for train, _ in spec.first]
    # Balanced weights follow the labels, and are made with them.
    known = replace(spec.search, criterion_weight=None) if search.criterion_weight == "balanced" else spec.search
    reason = f"one P for each of {len(listed)} candidates; every permutation chooses its own on each part"
    return BatchedGrid(
        route=Route(ONE_FIT, reason),
        n_together=TOGETHER,
        tried=tried,
        listed=listed,
        judges=[spec.scoring.judge(each, as_theirs=spec.as_theirs) for each in tried],
        selections=[nested.selections(known, each.task, spec.first, inner) for each in tried],
        weight=search.criterion_weight,
        memory_limit=spec.memory_limit,
    )
