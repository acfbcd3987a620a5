"""From a search's grid to tasks: candidates that differ in alpha alone share one task, hence one decomposition."""

from dataclasses import dataclass
from numbers import Real

import numpy as np
from joblib import hash as fingerprint
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils.class_weight import compute_class_weight

from foldless.bridge.adapters import FOLDLESS_ESTIMATORS, TASKS, build_task
from foldless.bridge.route import closed_form_or
from foldless.estimators import OneAgainstAllClassifier
from foldless.heldout.solution import Solution
from foldless.readout.task import Task
from foldless.tuning.criteria import CRITERIA
from foldless.tuning.search import default_grid
from foldless.tuning.selection import Selection


@dataclass
class Setting:
    """Everything but alpha fixed: the estimator, its task, the alphas to try and their places among all candidates."""

    params: dict
    estimator: object
    task: Task
    classes: np.ndarray | None
    flat: bool
    alphas: list
    places: list

    def problem(self, alpha):
        """The problem at one alpha."""
        return self.task.problem.replace(alpha=float(alpha))


@dataclass
class Outcome:
    """What a search found: all settings with their losses, the chosen (one, or one for each class), the way there."""

    classes: np.ndarray | None
    params: list
    losses: np.ndarray
    chosen: list
    best: list
    loss: float
    history: list
    slope: float | None = None  # of the chosen descent
    held: tuple | None = None  # row numbers and held-out fits (or decisions) of the chosen setting, where at hand


def check_known(estimator):
    """Refuse what is not regularised least squares."""
    name = type(estimator).__name__
    if type(estimator) not in TASKS:
        known = ", ".join(kind.__name__ for kind in TASKS)
        raise ValueError(
            f"estimator={name} is not a least-squares model foldless knows ({known}). Put preprocessing in front, as in"
            " make_pipeline(StandardScaler(), FoldlessSearchCV(LSSVC())), or use scikit-learn's GridSearchCV."
        )


def solved(estimator, X, y, sample_weight):
    """(task, classes, flat) of an estimator, or a ValueError that says why it has none."""
    if not isinstance(estimator, FOLDLESS_ESTIMATORS) and getattr(estimator, "class_weight", None) == "balanced":
        classes = np.unique(y)  # once, from all labels, as foldless' own estimators do
        factors = compute_class_weight("balanced", classes=classes, y=np.asarray(y))
        estimator = clone(estimator).set_params(class_weight=dict(zip(classes, factors, strict=True)))
    built = closed_form_or(_refuse, lambda: build_task(estimator, X, y, sample_weight))
    classes = built.classes
    if classes is not None and len(classes) < 2:
        raise ValueError(
            f"y holds one class only ({classes[0]!r}); {type(estimator).__name__} needs at least two classes."
        )
    return built


def _refuse(obstacle):
    raise ValueError(f"FoldlessSearchCV: {obstacle}; use scikit-learn's GridSearchCV for this setting.")


def candidates(estimator, param_grid, X, y, sample_weight):
    """The list of parameter dictionaries; without a grid, one made from the data (labels are not looked at)."""
    if param_grid is None:
        task, _, _ = solved(estimator, X, y, sample_weight)
        param_grid = default_grid(task.problem)
    listed = list(ParameterGrid(param_grid))
    if not listed:
        raise ValueError(f"param_grid={param_grid!r} names no candidate.")
    return listed


def _key(params):
    """Equal for equal parameters; arrays by their content, functions by themselves."""
    return tuple((name, id(value) if callable(value) else fingerprint(value)) for name, value in sorted(params.items()))


def settings(estimator, listed, X, y, sample_weight):
    """Candidates grouped by all parameters but alpha, in the order of their first appearance."""
    groups = {}
    for place, params in enumerate(listed):
        rest = {name: value for name, value in params.items() if name != "alpha"}
        alpha = params.get("alpha", estimator.alpha)
        if not isinstance(alpha, Real) or not np.isfinite(alpha) or alpha <= 0:
            raise ValueError(f"param_grid: alpha={alpha!r} must be a finite number > 0.")
        _, alphas, places = groups.setdefault(_key(rest), (rest, [], []))
        alphas.append(float(alpha))
        places.append(place)
    result = []
    for rest, alphas, places in groups.values():
        single = clone(estimator).set_params(**rest, alpha=min(alphas))
        result.append(Setting(rest, single, *solved(single, X, y, sample_weight), alphas, places))
    return result


def heldout_scores(estimator, X, y, sample_weight, splits):
    """(row numbers, held-out decisions) of one setting: of a known estimator, or of one classifier for each class."""
    if isinstance(estimator, OneAgainstAllClassifier):
        columns = [
            heldout_scores(each, X, np.asarray(y) == label, sample_weight, splits)
            for label, each in estimator.estimators
        ]
        return columns[0][0], np.column_stack([scores for _, scores in columns])
    task, _, _ = solved(estimator, X, y, sample_weight)
    selection = Selection.of(task, CRITERIA["press"], splits=splits)
    model = Solution(task.problem, selection.rows, task.Y[selection.rows])
    return selection.tested_rows, selection.scores(model)[selection.tested]
