"""Which way a cross-validation goes, and why.

one fit          closed-form held-out predictions from one P
one P per fold   one solve on each training part: behind fitted steps of a pipeline, or for a few large folds
refit            scikit-learn fits the estimator on each training part
"""

from dataclasses import dataclass

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import VarianceThreshold
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import get_tags

from foldless.bridge.adapters import FOLDLESS_ESTIMATORS, TASKS, Unsuited
from foldless.estimators.checks import check_confounds

ONE_FIT, ONE_P_PER_FOLD, REFIT = "one fit", "one P per fold", "refit"


class RefitWarning(UserWarning):
    """A cross-validation is done by refitting; the message says why."""


@dataclass(frozen=True)
class Path:
    """The way of one call: ``kind`` ("one fit", "one P per fold", "refit") and the reason."""

    kind: str
    reason: str

    def __str__(self):
        return f"{self.kind}: {self.reason}"


def route(estimator, fit_params):
    """(path, estimator to solve in closed form or None) from types and parameters alone; data may still object."""
    if isinstance(estimator, Pipeline):
        return _route_pipeline(estimator, fit_params)
    name = type(estimator).__name__
    if name == "FoldlessSearchCV":
        reason = "a search is repeated on every training part; nested_cross_validate does that for grids in closed form"
        return Path(REFIT, reason), None
    if type(estimator) not in TASKS:
        return Path(REFIT, f"{name} is not a least-squares model foldless knows"), None
    extra = set(fit_params) - {"sample_weight"} - ({"confounds"} if type(estimator) in FOLDLESS_ESTIMATORS else set())
    if extra:
        return Path(REFIT, f"fit parameters {sorted(extra)} have no closed form"), None
    return Path(ONE_FIT, f"{name} is regularised least squares; all held-out predictions follow from one P"), estimator


def _route_pipeline(pipeline, fit_params):
    *steps, (last_name, last) = pipeline.steps
    steps = [(name, step) for name, step in steps if step is not None and step != "passthrough"]
    if type(last) not in TASKS:
        return Path(REFIT, f"the pipeline ends in {type(last).__name__}, which foldless does not know"), None
    if not steps:
        own = {key.removeprefix(f"{last_name}__"): value for key, value in fit_params.items()}
        return route(last, own)
    for name, step in steps:
        if not never_sees_y(step):
            return Path(REFIT, f"step {name!r} ({type(step).__name__}) may learn from y"), None
    names = ", ".join(type(step).__name__ for _, step in steps)
    reason = f"{names} fitted on each training part, then one solve of {type(last).__name__} there"
    return Path(ONE_P_PER_FOLD, reason), None


# Modules whose transformers take y for the sake of the interface and ignore it. No tag says so: SelectKBest and PCA
# carry the same ones.
BLIND = (
    "sklearn.decomposition",
    "sklearn.feature_extraction",
    "sklearn.impute",
    "sklearn.kernel_approximation",
    "sklearn.preprocessing",
    "sklearn.random_projection",
    "aeon.transformations",
    "sktime.transformations",
)


def never_sees_y(step):
    """Whether a transformer is known to learn from X alone."""
    if step is None or isinstance(step, str):  # "passthrough", "drop"
        return True
    if isinstance(step, Pipeline):
        return all(never_sees_y(inner) for _, inner in step.steps)
    if isinstance(step, FeatureUnion):
        return all(never_sees_y(inner) for _, inner in step.transformer_list)
    if isinstance(step, ColumnTransformer):
        return all(never_sees_y(inner) for _, inner, _ in step.transformers)
    known = isinstance(step, VarianceThreshold) or type(step).__module__.startswith(BLIND)
    return known and not get_tags(step).target_tags.required


def build_task(estimator, X, y, sample_weight, confounds=None, *, in_score=False):
    """(task, classes, flat) or the Path of a refit."""
    try:
        task, classes, flat = TASKS[type(estimator)](estimator, X, y, sample_weight)
    except Unsuited as reason:
        return Path(REFIT, f"{type(estimator).__name__}: {reason}")
    if confounds is not None:
        C = check_confounds(confounds, task.problem.n, task.problem.dtype)
        task = task.with_confounds(C, in_score=in_score)
    return task, classes, flat


def confound_params(estimator, confounds, n, path, *, in_score, routing):
    """Confounds of n rows as a parameter of ``fit``, for scikit-learn's own loop; an error where fit takes none."""
    *_, (name, last) = estimator.steps if isinstance(estimator, Pipeline) else [("", estimator)]
    if not isinstance(last, FOLDLESS_ESTIMATORS):
        raise ValueError(
            f"confounds: {type(estimator).__name__} would be refitted on every training part ({path.reason}), and its"
            f" fit takes none. Use {', '.join(kind.__name__ for kind in FOLDLESS_ESTIMATORS)},"
            " alone or as the last step of a pipeline."
        )
    if in_score:
        raise ValueError(
            f"confounds_in_score=True: {type(estimator).__name__} would be refitted on every training part"
            f" ({path.reason}), and its predictions there leave the confounds' part out. Set confounds_in_score=False."
        )
    return {f"{name}__confounds" if name and not routing else "confounds": check_confounds(confounds, n, np.float64)}


def check_leave_one_out(task):
    """None where every row can be left out in closed form, else the Path of a refit."""
    if task.codes is not None:
        sizes = np.bincount(task.codes[task.problem.active], minlength=task.n_classes)
        if sizes.min() < 2:
            return Path(REFIT, "leaving out a row empties its class")
    return None


def check_splits(task, splits):
    """None where every training part can be solved in closed form, else the Path of a refit."""
    active = np.zeros(task.problem.n, bool)
    active[task.problem.active] = True
    for number, (train, _) in enumerate(splits):
        if np.bincount(train, minlength=1).max(initial=0) > 1:
            return Path(REFIT, f"the training part of split {number} repeats rows")
        if task.codes is not None:
            present = np.bincount(task.codes[train][active[train]], minlength=task.n_classes)
            if (present == 0).any():
                return Path(REFIT, f"the training part of split {number} lacks a class")
        if np.count_nonzero(active[train]) < 2:
            return Path(REFIT, f"the training part of split {number} has fewer than two rows of positive weight")
    return None
