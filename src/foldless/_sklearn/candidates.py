"""From the grid of a search to tasks: candidates that differ in alpha alone share one task, hence one decomposition.

A grid search works on :class:`Setting` objects, a continuous search on the starting points of ``tuning.descent``.
"""

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils import _safe_indexing, check_random_state, get_tags
from sklearn.utils.metaestimators import _safe_split

from foldless._engine.heldout.solution import Solution
from foldless._engine.readout.task import Task
from foldless._engine.tuning.criteria import CRITERIA
from foldless._engine.tuning.descent import Start
from foldless._engine.tuning.fidelity import FEW
from foldless._engine.tuning.selection import selection_of_parts
from foldless._engine.tuning.space import Space, beyond, default_grid, default_limits
from foldless._engine.tuning.spec import SearchSpec, optimizer_of, scales_features
from foldless._sklearn.adapters import (
    FOLDLESS_ESTIMATORS,
    TASKS,
    build_task,
    freeze_class_weights,
    learns_kernel,
)
from foldless._sklearn.pipelines import split_steps, with_fitted_steps, with_last
from foldless._sklearn.route import require_closed_form
from foldless._sklearn.steps import RowsBehindSteps, content
from foldless.estimators import OneAgainstAllClassifier
from foldless.estimators.checks import ValidatedRows
from foldless.estimators.missing import parameter_hint
from foldless.estimators.rows import without_none
from foldless.kernels.registry import (
    KERNELS,
    SHORTHANDS,
    check_shorthands,
    has_parameters,
    is_automatic,
    is_precomputed,
)


@dataclass(frozen=True)
class Setting:
    """Candidates that differ in alpha alone: their task, the alphas and their places among all candidates."""

    task: Task
    classes: np.ndarray | None
    flat: bool
    alphas: list
    places: list
    parts: tuple = ()  # tasks of the training parts, where steps are fitted on each of them
    rows: np.ndarray | None = None  # those of positive weight, beside such parts

    def problem(self, alpha):
        """The problem at one alpha."""
        return self.task.problem.replace(alpha=float(alpha))

    @property
    def n_rows(self):
        """Rows that count."""
        tasks = self.parts or (self.task,)
        return len(np.unique(np.concatenate([task.problem.active for task in tasks])))

    def selection(self, spec, splits):
        """The criterion of the held-out fits of this setting."""
        if not self.parts:
            return spec.selection(self.task, splits)
        return selection_of_parts(spec, self.parts, splits, self.rows)


def check_known(estimator):
    """The estimator, or the last step of a pipeline; refused where that is not regularised least squares."""
    steps = split_steps(estimator)
    if type(steps.last) not in TASKS:
        name = type(steps.last).__name__
        what = f"estimator: the last step {steps.name!r}, {name}," if steps.name else f"estimator={name}"
        kinds = ", ".join(kind.__name__ for kind in TASKS)
        raise ValueError(
            f"{what} is not a least-squares model foldless knows ({kinds}). Give one of them, alone or at the end of a"
            " pipeline as in make_pipeline(StandardScaler(), LSSVC()), or use scikit-learn's GridSearchCV."
        )
    return steps.last


def with_params(estimator, params):
    """A clone with these parameters, which are cloned too: ``kernel__name`` changes a kernel in place."""
    try:
        return clone(estimator).set_params(**clone(params, safe=False))
    except (AttributeError, ValueError) as error:  # the former where a kernel is a name, and has no parameters
        prefix, names = split_steps(estimator).prefix, estimator.get_params()
        unknown = [name for name in params if name not in names]
        hints = {name: parameter_hint(name, names, prefix) for name in unknown}
        what = str(error) if isinstance(error, ValueError) else f"param_grid: {sorted(params)} cannot be set."
        more = [f"{name!r}: {hint}" for name, hint in hints.items() if hint and not what.endswith(hint)]
        raise ValueError(" ".join([what, *more])) from None


def chosen_setting(estimator, params, classes):
    """An estimator with these parameters; with a list of parameters, one classifier for each class."""
    if isinstance(params, dict):
        return with_params(estimator, params)
    of_classes = [with_params(estimator, params_of_class) for params_of_class in params]
    classifiers = [split_steps(of_class).last for of_class in of_classes]
    one_against_all = OneAgainstAllClassifier(list(zip(classes.tolist(), classifiers, strict=True)))
    return with_last(of_classes[0], one_against_all)


def _task_of(estimator, X, y, sample_weight, confounds):
    """The :class:`EstimatorTask` of an estimator without steps in front; a ValueError says why there is none."""
    estimator = freeze_class_weights(estimator, y)
    estimator_task = require_closed_form(
        lambda: build_task(estimator, X, y, sample_weight, confounds),
        lambda obstacle: f"FoldlessSearchCV: {obstacle}; use scikit-learn's GridSearchCV for this setting.",
    )
    if estimator_task.classes is not None and len(estimator_task.classes) < 2:
        name = type(estimator).__name__
        only = estimator_task.classes.tolist()[0]
        raise ValueError(f"y holds one class only ({only!r}); {name} needs at least two classes.")
    return estimator_task


def targets_of(estimator, y, sample_weight):
    """The :class:`EstimatorTask` of an estimator with the right targets, and a placeholder for X."""
    last = clone(split_steps(estimator).last)
    if hasattr(last, "kernel"):
        last.set_params(kernel="linear")
    X: Any = np.arange(len(y), dtype=float)[:, None]
    X = ValidatedRows(X) if isinstance(last, FOLDLESS_ESTIMATORS) else X
    return _task_of(last, X, y, sample_weight, None)


def kernel_prefix(estimator):
    """What stands in front of the names of the kernel's parameters among those of an estimator."""
    steps = split_steps(estimator)
    return steps.prefix + ("kernel__" if has_parameters(getattr(steps.last, "kernel", None)) else "")


def _not_settable(estimator, kernel):
    """Names of the parameters that a kernel by name has and its estimator has not, such as eta of "boolean"."""
    prefix, names = kernel_prefix(estimator), estimator.get_params()
    return tuple(name for name in kernel.differentiable if prefix + name not in names)


def grid_from_data(estimator, problem):
    """The default grid of the parameters that an estimator can set, for its task."""
    fixed = _not_settable(estimator, problem.kernel)
    return {name: values for name, values in default_grid(problem).items() if name not in fixed}


class SearchData:
    """The data of a search, and the tasks of its estimators on them.

    ``parts`` are (train, test) pairs, where the first steps of pipelines are fitted on each training part; None: they
    are fitted on all rows.
    """

    def __init__(self, X, y, sample_weight=None, confounds=None, parts=None):
        self.X = X
        self.y = y
        self.sample_weight = sample_weight
        self.confounds = confounds
        self.parts = parts
        self.rows = RowsBehindSteps(X, y, sample_weight, parts)

    @property
    def active(self):
        """Rows of positive weight."""
        return np.arange(len(self.y)) if self.sample_weight is None else np.flatnonzero(self.sample_weight)

    def task(self, estimator):
        """The :class:`EstimatorTask` of an estimator behind its steps; where these are fitted on parts, of one."""
        return self.tasks(estimator)[0]

    def tasks(self, estimator, labels=None):
        """A list with the task of all rows, or one for each of the parts; ``labels`` in the place of y."""
        last, y = check_known(estimator), self.y if labels is None else labels
        if self.parts is None:
            (rows,) = self.rows.behind(estimator)
            return [self._task(last, rows, y, self.sample_weight)]
        if is_precomputed(getattr(last, "kernel", None)):
            raise ValueError("steps='each' needs features; with kernel='precomputed' use steps='once'.")
        weight = np.ones(len(y)) if self.sample_weight is None else self.sample_weight
        tasks = []
        for rows, (train, _) in zip(self.rows.behind(estimator), self.parts, strict=True):
            # Rows of weight 0 do not count: "scale" and balanced weights are those of the training part.
            inside = np.where(np.isin(np.arange(len(y)), train), weight, 0.0)
            of_part = freeze_class_weights(last, _safe_indexing(y, train))
            tasks.append(self._task(of_part, rows, y, inside))
        return tasks

    def _task(self, last, rows, y, weight):
        """The task of a last step; X and y are checked once for all settings of an estimator of foldless."""
        if not isinstance(last, FOLDLESS_ESTIMATORS):
            return _task_of(last, rows.X, y, weight, self.confounds)
        X, checked_y = rows.checked(last, self.y)
        y = checked_y if y is self.y else y  # else indicators of one class
        return _task_of(last, X, y, weight, self.confounds)

    def with_parts(self, parts):
        """The same data with steps that are fitted on the training rows of these parts."""
        return self if parts is None else SearchData(self.X, self.y, self.sample_weight, self.confounds, parts)

    def checked_rows(self, estimator):
        """X as an estimator of foldless checks it, once for all; None behind first steps, and for other estimators."""
        steps = split_steps(estimator)
        if steps.first is not None or not isinstance(steps.last, FOLDLESS_ESTIMATORS) or self.parts is not None:
            return None
        return self.rows.behind(estimator)[0].checked(steps.last, self.y)[0]

    def subset(self, rows, estimator):
        """The data of some rows; those that were checked are not checked again."""
        pairwise = get_tags(estimator).input_tags.pairwise
        X, y = _safe_split(estimator, self.X, self.y, rows)
        weight = None if self.sample_weight is None else self.sample_weight[rows]
        confounds = None if self.confounds is None else self.confounds[rows]
        part = SearchData(X, y, weight, confounds)
        if self.checked_rows(estimator) is not None:
            everything = self.rows.behind(estimator)[0]
            part.rows.transformed[None] = [everything.subset(X, rows, np.ix_(rows, rows) if pairwise else rows)], None
        return part

    def rows_to_predict(self, estimator, rows, train):
        """Some rows of X for an estimator that was fitted on the rows ``train``."""
        checked = self.checked_rows(estimator)
        if checked is None:
            return _safe_split(estimator, self.X, self.y, rows, train)[0]
        return checked[np.ix_(rows, train) if get_tags(estimator).input_tags.pairwise else rows]

    def fit(self, estimator, y):
        """Fit an estimator with its steps to all rows, which are transformed and checked already."""
        steps = split_steps(estimator)
        params = {"sample_weight": self.sample_weight, "confounds": self.confounds}
        if steps.first is not None and self.parts is not None:
            return estimator.fit(self.X, y, **steps.fit_params(**params))
        rows, last = self.rows.behind(estimator)[0], steps.last
        X = rows.X
        if isinstance(last, OneAgainstAllClassifier):
            first = last.estimators[0][1]
            X = rows.checked(first, self.y)[0] if isinstance(first, FOLDLESS_ESTIMATORS) else X
        elif isinstance(last, FOLDLESS_ESTIMATORS):
            X, y = rows.checked(last, self.y)
        last.fit(X, y, **without_none(**params))
        return with_fitted_steps(estimator, rows.fitted, last)


# -- grids -------------------------------------------------------------------------------------------------------------


def candidates(estimator, param_grid, data):
    """The list of parameter dictionaries; without a grid, those of a default grid made from X."""
    return list(ParameterGrid(_checked_grids(estimator, param_grid, data)))


def _checked_grids(estimator, param_grid, data):
    """The dictionaries of a grid, {name: values}; without a grid, the default grid made from X."""
    steps = split_steps(estimator)
    if param_grid is None:
        kernel_names = kernel_prefix(estimator)
        grid = grid_from_data(estimator, data.task(estimator).task.problem)
        return [{(steps.prefix if name == "alpha" else kernel_names) + name: grid[name] for name in grid}]
    grids = list(ParameterGrid(param_grid).param_grid)
    if not grids:
        raise ValueError(f"param_grid={param_grid!r} names no candidate.")
    for grid in grids:
        check_shorthands(getattr(steps.last, "kernel", None), grid, steps.prefix)
    return grids


def settings(estimator, param_grid, data):
    """(candidates, their settings): groups by all parameters but alpha, in the order of their first appearance."""
    candidate_list: list = []
    groups: dict = {}
    name = f"{split_steps(estimator).prefix}alpha"
    for grid in _checked_grids(estimator, param_grid, data):
        contents = {key: [content(value) for value in values] for key, values in grid.items()}
        for params, kinds in zip(ParameterGrid(grid), ParameterGrid(contents), strict=True):
            kernel_params = params.copy()
            kinds.pop(name, None)
            alpha: Any = kernel_params.pop(name, None)
            if name not in params:
                alpha = check_known(with_params(estimator, kernel_params)).alpha
            if not isinstance(alpha, Real) or not np.isfinite(float(alpha)) or alpha <= 0:
                raise ValueError(f"param_grid: {name}={alpha!r} must be a finite number > 0.")
            _, alphas, places = groups.setdefault(tuple(kinds.items()), (kernel_params, [], []))
            alphas.append(float(alpha))
            places.append(len(candidate_list))
            candidate_list.append(params)
    result = []
    for kernel_params, alphas, places in groups.values():
        estimator_task = data.tasks(with_params(estimator, {**kernel_params, name: min(alphas)}))
        tasks = () if data.parts is None else tuple(part.task for part in estimator_task)
        first = estimator_task[0]
        result.append(Setting(first.task, first.classes, first.flat, alphas, places, tasks, data.active))
    return candidate_list, result


def widened(estimator, data, listed, losses):
    """(candidates, their settings) beyond the edge of an automatic grid, numbered on from those listed."""
    grids = beyond(listed, losses)
    if not grids:
        return [], []
    more, further = settings(estimator, grids, data)
    for number, setting in enumerate(further):
        further[number] = replace(setting, places=[len(listed) + place for place in setting.places])
    return more, further


# -- starting points ---------------------------------------------------------------------------------------------------


def starting_points(spec, estimator, param_grid, data):
    """The starting points of a continuous search: every candidate, and further ones around it."""
    rng = check_random_state(spec.random_state)
    starts = []
    step_prefix = split_steps(estimator).prefix
    for params in candidates(estimator, param_grid or {}, data):
        single = with_params(estimator, params)
        estimator_task = data.task(single)
        task, classes = estimator_task.task, estimator_task.classes
        several, prefix = task.n_classes > 2, kernel_prefix(single)
        space = _space(spec, single, task.problem, task.n_classes if several and spec.share == "kernel" else 1)
        bounds = {name: pair for name, pair in spec.bounds.items() if name.startswith((step_prefix + "alpha", prefix))}
        named = {name.removeprefix(prefix).removeprefix(step_prefix): pair for name, pair in bounds.items()}
        limits = default_limits(task.problem) | named
        prior = spec.prior if space.n_scales > 1 else None
        first = space.pack(task.problem.alpha, task.problem.kernel)
        for column in range(task.n_classes) if several and spec.share == "none" else [None]:
            for number in range(spec.n_starts):
                vector = first + (rng.normal(0.0, 1.5, len(first)) if number else 0.0)
                starts.append(
                    Start(task, classes, space, vector, limits, column, prior, params, prefix, step_prefix + "alpha")
                )
    _check_bounded_names(spec.bounds, starts, step_prefix)
    return starts


def _space(spec, estimator, problem, n_alphas):
    """The parameters to move: one alpha (or one a class), one value for all features or one for each or each group."""
    kernel = problem.kernel
    fixed = _fixed(spec, estimator, kernel)
    last = split_steps(estimator).last
    free = set(kernel.differentiable) - set(fixed)
    if spec.feature_scaling and (kernel.per_feature not in free or not isinstance(last, FOLDLESS_ESTIMATORS)):
        raise ValueError(
            "feature_scaling needs an estimator of foldless with kernel='rbf', 'poly' or 'laplacian';"
            f" {type(last).__name__} with {kernel!r} has no scale for each feature."
        )
    options = {"feature_scaling": spec.feature_scaling, "feature_groups": spec.feature_groups, "fixed": fixed}
    return Space.of(kernel, problem.X.shape[1], n_alphas, **options)


def _fixed(spec, estimator, kernel):
    """Names of the parameters of the kernel that stay."""
    prefix = kernel_prefix(estimator)
    named = (name.removeprefix(prefix) for name, pair in spec.bounds.items() if isinstance(pair, str))
    return (*named, *_not_settable(estimator, kernel))


def _check_bounded_names(bounds, starts, step_prefix):
    """Refuse bounds of names that are no continuous parameters."""
    with_objects = [start for start in starts if start.prefix != step_prefix]  # kernels that are objects
    names = [step_prefix + "alpha"]
    for start in with_objects:
        names += [start.prefix + name for name in start.space.kernel.differentiable]
    if len(with_objects) < len(starts):
        shorthands = [name for kind in KERNELS.values() for name in kind().differentiable if name in SHORTHANDS]
        names += [step_prefix + name for name in shorthands]
    *first, last = dict.fromkeys(names)
    for name in bounds:
        if name not in names:
            text = f"{', '.join(first)} and {last}" if first else last
            raise ValueError(f"bounds names {name!r}; the continuous parameters are {text}.")


# -- by fidelity -------------------------------------------------------------------------------------------------------


def has_grid(search):
    """Whether a search may be one of a grid: no option needs values between those of a grid."""
    if learns_kernel(search):
        return False
    optimizer = optimizer_of(search)
    between = optimizer.bounds is not None or scales_features(optimizer)
    return optimizer.method == "grid" or (optimizer.method == "auto" and not between)


def by_grid(search, data):
    """Whether a search evaluates the whole grid: because it has to, or since that is quick for such data."""
    is_fixed = search.param_grid is not None or data.parts is not None
    if optimizer_of(search).method != "auto" or is_fixed or search.share != "all" or not has_grid(search):
        return has_grid(search)
    problem = data.task(search.estimator).task.problem
    n = len(problem.active)
    space = Space(problem.kernel, fixed=_not_settable(search.estimator, problem.kernel))
    if space.names and len(grid_from_data(search.estimator, problem)) == 1:
        return False  # the grid is one of alpha alone, and there is more to tune, as for sums of kernels
    return n <= FEW or (problem.through_features(n) and not problem.kernel.approximates)


def beginning(spec, estimator, data):
    """(start, default grid) of a search by fidelity."""
    estimator_task = data.task(estimator)
    task, classes = estimator_task.task, estimator_task.classes
    prefix, step_prefix = kernel_prefix(estimator), split_steps(estimator).prefix
    if spec.feature_scaling:
        _space(spec, estimator, task.problem, 1)  # raises an error where features have no scales
    automatic = is_automatic(getattr(split_steps(estimator).last, "kernel", None))
    fixed = () if automatic else _fixed(spec, estimator, task.problem.kernel)
    space = Space(task.problem.kernel, fixed=fixed)
    bounds = {name: pair for name, pair in spec.bounds.items() if not isinstance(pair, str)}
    limits = {name.removeprefix(prefix).removeprefix(step_prefix): pair for name, pair in bounds.items()}
    start = Start(task, classes, space, np.empty(0), limits, None, None, {}, prefix, step_prefix + "alpha")
    _check_bounded_names(spec.bounds, [start], step_prefix)
    grid = {name: values for name, values in default_grid(task.problem).items() if name not in space.fixed}
    values = space.kernel.get_params()
    for name, (low, high) in limits.items():
        if np.ndim(values.get(name)):
            continue  # several values, such as weights: the descent keeps them within the limits
        inside = [value for value in grid.get(name, []) if low <= value <= high]
        grid[name] = inside or [float(np.sqrt(low * high))]
    return start, grid


# -- held-out decisions --------------------------------------------------------------------------------------


def heldout_scores(estimator, data, splits):
    """(row numbers, held-out decisions) of an estimator in ``TASKS``, or of one classifier for each class."""
    last = split_steps(estimator).last
    if not isinstance(last, OneAgainstAllClassifier):
        return _heldout_scores(data.tasks(estimator), data, splits)
    columns = []
    for label, classifier in last.estimators:
        tasks = data.tasks(with_last(estimator, classifier), np.asarray(data.y) == label)
        columns.append(_heldout_scores(tasks, data, splits))
    return columns[0][0], np.column_stack([scores for _, scores in columns])


def _heldout_scores(estimator_task, data, splits):
    task, spec = estimator_task[0].task, SearchSpec(CRITERIA["press"])
    if data.parts is None:
        selection = spec.selection(task, splits)
        scores = selection.scores(Solution.fit(task.problem, selection.rows, task.Y[selection.rows]))
    else:
        selection = selection_of_parts(spec, [part.task for part in estimator_task], splits, data.active)
        scores = selection.scores_at(task.problem.alpha)
    return selection.tested_rows, scores[selection.tested]
