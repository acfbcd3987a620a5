"""What the rooms above ask of foldless' estimators: their task, their kernel, fits, and a model of a training part.

Nobody else reads an estimator's private attributes.
"""

from typing import NamedTuple

import numpy as np
from sklearn.base import clone

from foldless.heldout.model import Model
from foldless.kernels.registry import is_precomputed
from foldless.readout.task import Task


class EstimatorTask(NamedTuple):
    """What an estimator would solve: the task, the labels (None for regression), and whether y is one column."""

    task: Task
    classes: np.ndarray | None
    flat: bool


def task_of(estimator, X, y, sample_weight=None):
    """The task an estimator would solve in ``fit``; the estimator itself stays as it is."""
    probe = clone(estimator)
    task = probe._task(X, y, sample_weight)
    return EstimatorTask(task, getattr(probe, "classes_", None), getattr(probe, "_flat", True))


def kernel_of(estimator, X, sample_weight=None):
    """The kernel an estimator would use for validated X and the caller's weights: "scale" is resolved from both."""
    return estimator._kernel(X, sample_weight)


def fits_of(estimator, X):
    """Fits (n, m) of the regression behind a fitted estimator at X, before they are read out."""
    return estimator._fits(X)


def cut_of(estimator):
    """What a fitted estimator subtracts from its scores: the cut of ``threshold="loo"``, else 0."""
    return estimator._rule.cut


def fitted_on_part(estimator, task, model, train, X, y, sample_weight=None):
    """A copy of the estimator, fitted on the rows ``train`` of X, from the model of that training part.

    ``task`` is the task of all rows, as ``task_of`` built it from X, y and sample_weight.
    """
    fitted = clone(estimator)
    fitted._task(X, y, sample_weight)  # names and number of features, classes
    rule = task.rule(model)
    if task.problem.penalty.keeps_basis:  # the other rows still carry the model
        task = task.restricted(train)
    else:
        task = task.subset(train)
        model = _reindexed(task.problem, model, train)
    if is_precomputed(fitted.kernel):
        fitted.n_features_in_ = task.problem.n
        if hasattr(fitted, "feature_names_in_") and task.problem.n == len(train):
            fitted.feature_names_in_ = fitted.feature_names_in_[train]
    fitted._keep_for_updates(_weights_of(task.problem, train, len(y), sample_weight), None)
    return fitted._accept(task, model, rule)


def _weights_of(problem, train, n, sample_weight):
    """The caller's weights of the rows of ``problem``: 0 for those that only lend their basis functions."""
    weights = np.ones(n) if sample_weight is None else np.asarray(sample_weight)
    if problem.n == len(train):
        return None if sample_weight is None else weights[train].astype(problem.dtype)
    shown = np.zeros(problem.n, problem.dtype)
    shown[train] = weights[train]
    return shown


def _reindexed(problem, model, train):
    """The model with its rows counted within its own training part, in the order of the split."""
    order = np.searchsorted(model.rows, train[problem.active])
    A = model.A[order]
    known = {"Y": model.Y[order], "A": A, "site_A": A, "B": model.B, "weights": model.weights, "choice": model.choice}
    return Model.of(problem=problem, rows=problem.active, **known)
