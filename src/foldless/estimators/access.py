"""Access to foldless' estimators for the rooms above: their tasks, their fits, and models of training parts.

No other module reads private attributes of an estimator.
"""

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from foldless._engine.heldout.model import FittedCoefficients
from foldless._engine.readout.task import Task
from foldless.estimators.checks import ValidatedRows
from foldless.estimators.rows import with_fields
from foldless.kernels.registry import is_object, is_precomputed


@dataclass(frozen=True)
class EstimatorTask:
    """What an estimator would solve: the task, the labels (None for regression), and whether y is one column.

    ``checked`` is a copy of an estimator of foldless with what its checks have set: classes, names of features, scales.
    """

    task: Task
    classes: np.ndarray | None
    flat: bool
    checked: Any = None


def checked_rows_of(estimator, X, y):
    """(:class:`ValidatedRows`, y with coded labels) as ``fit`` of an estimator checks them; it stays as it is."""
    checked = with_fields(estimator, estimator.get_params(deep=False))
    X, y = checked._checked_rows(X, y)
    names = getattr(checked, "feature_names_in_", None)
    return ValidatedRows(X, names), estimator._coded_targets(y)


def task_of(estimator, X, y, sample_weight=None):
    """The task an estimator would solve in ``fit``; the estimator itself stays as it is."""
    checked = with_fields(estimator, estimator.get_params(deep=False))
    task = checked._make_task(*checked._validated(X, y, sample_weight))
    return EstimatorTask(task, getattr(checked, "classes_", None), getattr(checked, "_flat", True), checked)


def task_on_rows(estimator, X, targets, sample_weight=None):
    """The :class:`EstimatorTask` of rows X with the ``targets`` of another one, of the same y and weights.

    X is checked; y is neither checked nor coded again.
    """
    checked = with_fields(estimator, estimator.get_params(deep=False))
    of_y = ("classes_", "_named_classes", "_flat")
    vars(checked).update({name: vars(targets.checked)[name] for name in of_y if name in vars(targets.checked)})
    task = targets.task
    X, _, weights = checked._validated(X, task.Y[:, 0] if task.codes is None else task.codes, sample_weight)
    problem = checked._problem(X, np.square(task.problem.root_w) if task.problem.weighted else None, weights)
    dtype = np.result_type(task.Y, problem.dtype) if task.readout.coding == "values" else problem.dtype
    task = replace(task, problem=problem, Y=task.Y.astype(dtype, copy=False))
    return EstimatorTask(task, targets.classes, targets.flat, checked)


def fits_of(estimator, X, confounds=None):
    """Fits (n, m) of a fitted estimator at X before they are read out: of values, or of targets +-1 one against all."""
    return estimator._rule.readout.plus_minus_fits(estimator._fits(X, confounds))


def loo_scores_of(estimator):
    """(row numbers, leave-one-out decisions before any cut) of a fitted estimator, from the factors of its fit."""
    solution = estimator._loo().full_fit
    return solution.rows, estimator._fitted_task.loo_scores(solution)


def cut_of(estimator):
    """What a fitted estimator subtracts from its scores: the cut of ``threshold="loo"``, else 0."""
    return estimator._rule.cut


def fitted_on_part(checked, task, model, train, sample_weight=None):
    """A copy of an estimator, fitted on the rows ``train``, from the model of that training part.

    ``task`` is the task of all rows with these sample weights, ``checked`` that of its :class:`EstimatorTask`.
    """
    params = checked.get_params(deep=False)
    fitted = clone(checked)
    vars(fitted).update({name: value for name, value in vars(checked).items() if name not in params})
    rule = task.rule(model)
    weights = np.zeros(task.problem.n, task.problem.dtype)
    weights[train] = 1 if sample_weight is None else np.asarray(sample_weight)[train]
    task = task.subset(train)
    active = task.problem.active  # rows are counted within the part from now on, in the order of the split
    order = np.searchsorted(model.rows, train[active])
    A, B = model.A[order], model.B
    model = FittedCoefficients(task.problem, active, model.Y[order], A, B, model.weights, model.choice)
    if is_precomputed(fitted.kernel):
        fitted._set_columns(len(train), train)
    fitted._keep_for_updates(None if sample_weight is None else weights[train], None)
    return fitted._accept(task, model, rule)


def chooses_landmarks(estimator):
    """Whether cross-validation chooses the landmarks of an estimator anew on every training part."""
    kernel: Any = getattr(estimator, "kernel", None)
    return is_object(kernel) and bool(kernel.landmarks_per_fold)


def rows_of(estimator, X, rows, train):
    """These rows of X as an estimator fitted on ``train`` takes them: of a precomputed kernel the columns of train."""
    if not is_precomputed(getattr(estimator, "kernel", None)):
        return _safe_indexing(X, rows)
    K = X if hasattr(X, "shape") else np.asarray(X)
    return _safe_indexing(_safe_indexing(K, rows), train, axis=1)


class NoRows:
    """Takes the place of the training rows in a model that was fitted without keeping them."""

    def __getattr__(self, name):
        raise AttributeError(
            "this model was fitted in chunks and keeps no training rows: it predicts, but does not learn, forget or"
            " leave out rows. Leave-one-out values are in the result of foldless.chunked.cross_validate."
        )


def prepared(estimator, X, y, sample_weight=None, classes=None, names=None):
    """A copy of the estimator with all fitted state but the coefficients, and its task, from a sample of the rows.

    ``classes`` are all classes of the data, ``names`` the names of the features.
    """
    model = clone(estimator)
    X, y, weights = model._validated(X, y, sample_weight)
    task = model._make_task(X, y, weights, *([classes] if classes is not None else []))
    if names is not None:
        model.feature_names_in_ = np.asarray(names, object)
    return model, task


def class_factors(model, masses):
    """Factors (c,) on the weights of the classes, whose total weights are ``masses``; None without ``class_weight``."""
    return None if getattr(model, "class_weight", None) is None else model._class_factors(masses)


def seen_by(model, X):
    """Rows as the kernel of a prepared model sees them."""
    return model._seen(X)


def with_coefficients(model, params, kernel, weights, offset, rule, choice):
    """A prepared model with these parameters, fitted: f(x) = features(x)' weights + offset, read out by the rule."""
    fitted, m = copy(model).set_params(**params), weights.shape[1]
    fitted.X_fit_ = np.empty((0, model.n_features_in_))
    fitted.kernel_ = kernel
    fitted.holder_ = choice
    fitted.ids_ = None
    fitted._weights = weights
    fitted._offset = offset
    fitted._rule = rule
    fitted._dual = np.empty((0, m))
    fitted._confound_B = np.empty((0, m))
    fitted._confound_mean = np.empty(0)
    fitted._base_weights = None
    fitted._n_forgotten = 0
    fitted._fitted_task = NoRows()
    fitted._parts = None
    fitted._loo_values = None
    fitted._settings = fitted.get_params()
    fitted._set_attributes()
    return fitted
