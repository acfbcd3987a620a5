"""From a search's grid to tasks: candidates that differ in alpha alone share one task, hence one decomposition.

A grid search works on :class:`Setting` objects, a continuous one on the starting points of ``tuning.descent``. Both are
made here, where estimators are known.
"""

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from joblib import hash as fingerprint
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils import check_random_state

from foldless.bridge.adapters import FOLDLESS_ESTIMATORS, TASKS, build_task, freeze_class_weights
from foldless.bridge.route import NoClosedForm
from foldless.estimators import OneAgainstAllClassifier
from foldless.heldout.solution import Solution
from foldless.kernels.registry import KERNELS, is_object
from foldless.readout.task import Task
from foldless.tuning.criteria import CRITERIA
from foldless.tuning.descent import Start
from foldless.tuning.fidelity import FEW
from foldless.tuning.selection import Selection
from foldless.tuning.space import Space, beyond, default_grid, default_limits


@dataclass(frozen=True)
class Setting:
    """Everything but alpha fixed: the task, the alphas to try and their places among all candidates."""

    task: Task
    classes: np.ndarray | None
    flat: bool
    alphas: list
    places: list

    def problem(self, alpha):
        """The problem at one alpha."""
        return self.task.problem.replace(alpha=float(alpha))


def check_known(estimator):
    """Refuse what is not regularised least squares."""
    name = type(estimator).__name__
    if type(estimator) not in TASKS:
        known = ", ".join(kind.__name__ for kind in TASKS)
        raise ValueError(
            f"estimator={name} is not a least-squares model foldless knows ({known}). Put preprocessing in front, as in"
            " make_pipeline(StandardScaler(), FoldlessSearchCV(LSSVC())), or use scikit-learn's GridSearchCV."
        )


def with_params(estimator, params):
    """A clone with these parameters, which are cloned too: ``kernel__name`` changes a kernel in place."""
    return clone(estimator).set_params(**clone(params, safe=False))


def closed_form_task(estimator, X, y, sample_weight, confounds=None):
    """(task, classes, flat) of an estimator, or a ValueError that says why it has none."""
    estimator = freeze_class_weights(estimator, y)
    try:
        built = build_task(estimator, X, y, sample_weight, confounds)
    except NoClosedForm as obstacle:
        message = f"FoldlessSearchCV: {obstacle}; use scikit-learn's GridSearchCV for this setting."
        raise ValueError(message) from None
    if built.classes is not None and len(built.classes) < 2:
        name = type(estimator).__name__
        only = built.classes.tolist()[0]
        raise ValueError(f"y holds one class only ({only!r}); {name} needs at least two classes.")
    return built


def kernel_prefix(estimator):
    """What stands in front of the names of the kernel's parameters among those of an estimator."""
    return "kernel__" if is_object(getattr(estimator, "kernel", None)) else ""


# -- grids -------------------------------------------------------------------------------------------------------------


def candidates(estimator, param_grid, *data):
    """The list of parameter dictionaries; without a grid, one made from the data (labels are not looked at)."""
    if param_grid is None:
        task, _, _ = closed_form_task(estimator, *data)
        prefix = kernel_prefix(estimator)
        grid = default_grid(task.problem)
        param_grid = {name if name == "alpha" else prefix + name: values for name, values in grid.items()}
    listed = list(ParameterGrid(param_grid))
    if not listed:
        raise ValueError(f"param_grid={param_grid!r} names no candidate.")
    return listed


def settings(estimator, param_grid, *data):
    """(candidates, their settings): groups by all parameters but alpha, in the order of their first appearance.

    ``data`` are X, y, sample_weight and confounds, the last two of which may be None.
    """
    listed = candidates(estimator, param_grid, *data)
    groups: dict = {}
    for place, params in enumerate(listed):
        rest = {name: value for name, value in params.items() if name != "alpha"}
        alpha: Any = params.get("alpha", estimator.alpha)
        if not isinstance(alpha, Real) or not np.isfinite(float(alpha)) or alpha <= 0:
            raise ValueError(f"param_grid: alpha={alpha!r} must be a finite number > 0.")
        _, alphas, places = groups.setdefault(_key(rest), (rest, [], []))
        alphas.append(float(alpha))
        places.append(place)
    result = []
    for rest, alphas, places in groups.values():
        single = with_params(estimator, {**rest, "alpha": min(alphas)})
        task, classes, flat = closed_form_task(single, *data)
        result.append(Setting(task, classes, flat, alphas, places))
    return listed, result


def widened(estimator, data, listed, losses):
    """(candidates, their settings) beyond the edge of an automatic grid, numbered on from those listed."""
    grids = beyond(listed, losses)
    if not grids:
        return [], []
    more, further = settings(estimator, grids, *data)
    return more, [replace(each, places=[len(listed) + place for place in each.places]) for each in further]


def _key(params):
    """Equal for equal parameters; arrays and kernels by their content, functions by themselves."""
    return tuple((name, _content(value)) for name, value in sorted(params.items()))


def _content(value):
    if is_object(value):
        return type(value), _key(value.get_params())
    if isinstance(value, tuple):  # of kernels, perhaps
        return tuple(map(_content, value))
    return id(value) if callable(value) else fingerprint(value)


# -- starting points ---------------------------------------------------------------------------------------------------


def starting_points(spec, estimator, param_grid, *data):
    """The starting points of a continuous search: every candidate, and further ones around it, for every slope."""
    rng = check_random_state(spec.random_state)
    slopes = spec.slopes if spec.criterion.hard else [None]
    starts = []
    for params in candidates(estimator, param_grid or {}, *data):
        single = with_params(estimator, params)
        task, classes, _ = closed_form_task(single, *data)
        several, prefix = task.n_classes > 2, kernel_prefix(single)
        space = _space(spec, single, task.problem, task.n_classes if several and spec.share == "kernel" else 1)
        bounds = {name: pair for name, pair in spec.bounds.items() if name.startswith(("alpha", prefix))}
        limits = default_limits(task.problem) | {name.removeprefix(prefix): pair for name, pair in bounds.items()}
        prior = spec.prior if space.n_scales > 1 else None
        first = space.pack(task.problem.alpha, task.problem.kernel)
        for column in range(task.n_classes) if several and spec.share == "none" else [None]:
            for number in range(spec.n_starts):
                vector = first + (rng.normal(0.0, 1.5, len(first)) if number else 0.0)
                starts += [
                    Start(task, classes, space, vector, limits, column, slope, prior, params, prefix)
                    for slope in slopes
                ]
    _check_bounded_names(spec.bounds, starts)
    return starts


def _space(spec, estimator, problem, n_alphas):
    """The parameters to move: one alpha (or one a class), one value for all features or one for each or each group."""
    kernel, fixed = problem.kernel, _fixed(spec, estimator)
    free = set(kernel.differentiable) - set(fixed)
    if spec.feature_scaling and (kernel.per_feature not in free or not isinstance(estimator, FOLDLESS_ESTIMATORS)):
        raise ValueError(
            "feature_scaling needs an estimator of foldless with kernel='rbf', 'poly' or 'laplacian';"
            f" {type(estimator).__name__} with {kernel!r} has no scale for each feature."
        )
    options = {"feature_scaling": spec.feature_scaling, "feature_groups": spec.feature_groups, "fixed": fixed}
    return Space.of(kernel, problem.X.shape[1], n_alphas, **options)


def _fixed(spec, estimator):
    """Names of the parameters of the kernel that stay."""
    prefix = kernel_prefix(estimator)
    return tuple(name.removeprefix(prefix) for name, pair in spec.bounds.items() if isinstance(pair, str))


def _check_bounded_names(bounds, starts):
    objects = [each for each in starts if each.prefix]
    known = ["alpha", *(each.prefix + name for each in objects for name in each.space.kernel.differentiable)]
    if not all(each.prefix for each in starts):
        known += [name for kind in KERNELS.values() for name in kind().differentiable]
    *others, last = dict.fromkeys(known)
    for name in bounds:
        if name not in known:
            text = f"{', '.join(others)} and {last}" if others else last
            raise ValueError(f"bounds names {name!r}; the continuous parameters are {text}.")


# -- by fidelity -------------------------------------------------------------------------------------------------------


def has_grid(search):
    """Whether a search is one of a grid, or may be: nothing asks for values between those of a grid."""
    between = search.bounds is not None or search.feature_scaling or search.feature_groups is not None
    return search.method == "grid" or (search.method == "auto" and not between)


def by_grid(search, *data):
    """Whether a search looks at the whole grid: as it was asked to, or since that is quick for such data."""
    if search.method != "auto" or search.param_grid is not None or search.share != "all" or not has_grid(search):
        return has_grid(search)
    problem = closed_form_task(search.estimator, *data).task.problem
    n = len(problem.active)
    if Space(problem.kernel).names and len(default_grid(problem)) == 1:
        return False  # the grid is one of alpha alone, and there is more to tune, as for sums of kernels
    return n <= FEW or problem.n_features(n) is not None


def beginning(spec, estimator, *data):
    """(start, default grid) of a search by fidelity."""
    task, classes, _ = closed_form_task(estimator, *data)
    prefix = kernel_prefix(estimator)
    if spec.feature_scaling:
        _space(spec, estimator, task.problem, 1)  # says so where features have no scales
    space = Space(task.problem.kernel, fixed=_fixed(spec, estimator))
    limits = {name.removeprefix(prefix): pair for name, pair in spec.bounds.items() if not isinstance(pair, str)}
    start = Start(task, classes, space, np.empty(0), limits, None, None, None, {}, prefix)
    _check_bounded_names(spec.bounds, [start])
    grid = {name: each for name, each in default_grid(task.problem).items() if name not in space.fixed}
    values = space.kernel.get_params()
    for name, (low, high) in limits.items():
        if np.ndim(values.get(name)):
            continue  # several values, such as weights: the way down keeps them within
        inside = [value for value in grid.get(name, []) if low <= value <= high]
        grid[name] = inside or [float(np.sqrt(low * high))]
    return start, grid


# -- held-out decisions --------------------------------------------------------------------------------------


def heldout_scores(estimator, X, y, sample_weight, splits, confounds=None):
    """(row numbers, held-out decisions) of one setting: of a known estimator, or of one classifier for each class."""
    if isinstance(estimator, OneAgainstAllClassifier):
        columns = [
            heldout_scores(each, X, np.asarray(y) == label, sample_weight, splits, confounds)
            for label, each in estimator.estimators
        ]
        return columns[0][0], np.column_stack([scores for _, scores in columns])
    task, _, _ = closed_form_task(estimator, X, y, sample_weight, confounds)
    selection = Selection.of(task, CRITERIA["press"], splits=splits)
    model = Solution(task.problem, selection.rows, task.Y[selection.rows])
    return selection.tested_rows, selection.scores(model)[selection.tested]
