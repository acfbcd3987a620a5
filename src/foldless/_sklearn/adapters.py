"""Estimators as tasks: those that are regularised least squares, with their kernel, weights and targets.

``TASKS`` maps a class to a function ``(estimator, X, y, sample_weight) -> EstimatorTask``. Only the classes themselves
are listed: a subclass may have changed anything. A function raises :class:`~foldless._sklearn.route.NoClosedForm` when
a parameter takes the estimator outside the closed form; the message ends up in ``explain`` and in the warning of a
refit.
"""

from collections.abc import Mapping
from dataclasses import replace
from numbers import Real

import numpy as np
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_X_y

from foldless._engine.heldout.problem import Problem
from foldless._engine.readout.codings import Multilabel, OneAgainstAll, Regression
from foldless._engine.readout.task import Task
from foldless._sklearn.pipelines import Search, check_steps, split_steps
from foldless._sklearn.route import NoClosedForm, NoSharedP
from foldless._sklearn.scorers import named_scorers, wants_probabilities
from foldless.estimators.access import EstimatorTask, checked_rows_of, chooses_landmarks, task_of, task_on_rows
from foldless.estimators.adaptive import AdaptiveKDA
from foldless.estimators.checks import (
    FLOATS,
    are_plain,
    as_confounds,
    check_confounds,
    check_square,
    check_weights,
    dense,
    value_columns,
)
from foldless.estimators.fisher import KernelFisherDiscriminant
from foldless.estimators.lssvm import LSSVC, LSSVR
from foldless.estimators.meta import OneAgainstAllClassifier, SlidingWindow
from foldless.kernels import Custom, Linear, Precomputed, check_symmetric, resolve
from foldless.kernels.base import Kernel
from foldless.kernels.matrices import canonical
from foldless.kernels.registry import is_automatic

POSITIVE = ("poly", "polynomial", "rbf", "laplacian", "cosine", "chi2")  # of scikit-learn's kernels by name


def _no_closed_form(estimator, reason):
    return NoClosedForm(f"{type(estimator).__name__}: {reason}")


def _checked(estimator, X, y, sample_weight, *, numeric, widened=False):
    """Checked X, y and weights; ``widened``: in the precision that X and y have together."""
    if not isinstance(estimator.alpha, Real):
        raise _no_closed_form(estimator, "alpha is one number per target")
    if not np.isfinite(float(estimator.alpha)) or estimator.alpha <= 0:
        raise _no_closed_form(estimator, f"alpha={estimator.alpha!r} is not positive")
    if isinstance(X, np.ndarray | list) and np.asarray(X).dtype.kind in "US":
        raise ValueError("X holds strings, which scikit-learn's estimators refuse; convert it, X.astype(float) say.")
    if not are_plain(X, y, FLOATS) or (numeric and y.dtype.kind == "U"):
        X, y = check_X_y(X, y, accept_sparse="csr", dtype=FLOATS, multi_output=True, y_numeric=numeric)
    X = canonical(X)
    if widened and y.dtype.kind in "fiub" and np.result_type(X.dtype, y.dtype) != np.float32:
        X = X.astype(np.float64, copy=False)
    return X, y, None if sample_weight is None else check_weights(sample_weight, X)


def _linear(estimator, X, weights):
    if estimator.positive:
        raise _no_closed_form(estimator, "positive=True constrains the coefficients")
    Q = np.ones((X.shape[0], 1 if estimator.fit_intercept else 0), X.dtype)
    return Problem.of(Linear(), X, alpha=float(estimator.alpha), Q=Q, sample_weight=weights)


def _ridge(estimator, X, y, sample_weight):
    X, y, weights = _checked(estimator, X, y, sample_weight, numeric=True)
    Y = value_columns(y, X.dtype)
    return EstimatorTask(Task(_linear(estimator, X, weights), Y, Regression()), None, Y.shape[1] == 1)


def _ridge_classifier(estimator, X, y, sample_weight):
    X, y, weights = _checked(estimator, X, y, sample_weight, numeric=False)
    check_classification_targets(y)
    if type_of_target(y) == "multilabel-indicator":
        return _ridge_multilabel(estimator, X, y, weights)
    if isinstance(estimator.class_weight, str):
        raise _no_closed_form(
            estimator,
            "class_weight='balanced' is computed anew on each training part; a dict would be exact from one fit",
        )
    if type_of_target(y) not in ("binary", "multiclass") or y.ndim > 1:
        raise _no_closed_form(estimator, "y is not a vector of labels")
    classes, codes = np.unique(y, return_inverse=True)
    if estimator.class_weight is not None:
        factors = compute_class_weight(estimator.class_weight, classes=classes, y=y).astype(X.dtype)
        weights = factors[codes] * (1 if weights is None else weights)
    readout = OneAgainstAll(len(classes), estimator.fit_intercept)
    task = Task(_linear(estimator, X, weights), readout.targets(codes, X.dtype), readout, codes, len(classes))
    return EstimatorTask(task, classes, True)


def _ridge_multilabel(estimator, X, y, weights):
    """Every column of y is a problem of two classes, also where it is constant in a training part."""
    if estimator.class_weight is not None:
        raise _no_closed_form(estimator, "class_weight with several labels a row")
    Y = dense(y)
    if Y.dtype.kind not in "if" or not np.isin(Y, (0, 1)).all():  # scikit-learn makes other targets of these than +-1
        raise _no_closed_form(estimator, "several labels a row are to be numbers 0 and 1, as of y.astype(int)")
    task = Task(_linear(estimator, X, weights), 2 * Y.astype(X.dtype) - 1, Multilabel(estimator.fit_intercept))
    return EstimatorTask(task, np.arange(Y.shape[1]), False)


def _kernel_ridge(estimator, X, y, sample_weight):
    X, y, weights = _checked(estimator, X, y, sample_weight, numeric=True, widened=True)
    kernel: Kernel
    if estimator.kernel == "linear":
        kernel = Linear()
    elif estimator.kernel == "precomputed":
        kernel = Precomputed()
        check_square(X)
        try:
            check_symmetric(X, "the precomputed kernel")
        except ValueError as reason:
            raise _no_closed_form(estimator, str(reason).split(".")[0]) from None
    elif isinstance(estimator.kernel, str) and estimator.kernel not in POSITIVE:
        raise _no_closed_form(estimator, f"kernel={estimator.kernel!r} is not positive semi-definite")
    else:
        kernel = _named(estimator, X) or Custom(_PairwiseKernel(estimator))
    Q = np.ones((X.shape[0], 0), X.dtype)
    problem = Problem.of(kernel, X, alpha=float(estimator.alpha), Q=Q, sample_weight=weights)
    task = Task(problem, value_columns(y, X.dtype), Regression())
    return EstimatorTask(task, None, y.ndim == 1)


def _named(estimator, X):
    """KernelRidge's kernel as a kernel of foldless, which has gradients; None where there is none."""
    if estimator.kernel not in ("rbf", "laplacian", "poly", "polynomial"):
        return None
    gamma = 1.0 / X.shape[1] if estimator.gamma is None else estimator.gamma
    try:
        name = estimator.kernel.removesuffix("nomial")
        return resolve(name, X, gamma=gamma, degree=estimator.degree, coef0=estimator.coef0)
    except ValueError:  # a degree of 2.5, say
        return None


class _PairwiseKernel:
    """KernelRidge's kernel as a function of two matrices."""

    def __init__(self, estimator):
        self.metric = estimator.kernel
        if callable(estimator.kernel):
            self.options = estimator.kernel_params or {}
        else:
            names = ("gamma", "degree", "coef0")
            self.options = {"filter_params": True} | {name: getattr(estimator, name) for name in names}

    def __call__(self, X, Z):
        return pairwise_kernels(X, Z, metric=self.metric, **self.options)

    def __repr__(self):
        return f"{self.metric!r}"


FOLDLESS_ESTIMATORS = (LSSVC, LSSVR, KernelFisherDiscriminant)
TASKS = {
    **dict.fromkeys(FOLDLESS_ESTIMATORS, task_of),
    Ridge: _ridge,
    RidgeClassifier: _ridge_classifier,
    KernelRidge: _kernel_ridge,
}


NO_CLOSED_FORM = {
    AdaptiveKDA: "has a closed form for its own leave-one-out (loo_score_), not for other splits",
    SlidingWindow: "forgets old rows as new ones come, so that their order counts",
    OneAgainstAllClassifier: "has parameters of its own for each class",
}


def closed_form_estimator(steps, fit_params):
    """The least-squares estimator to solve: the last of the :class:`Steps` of an estimator, if the others pass X on.

    From types and parameters alone, those of ``fit`` by the names that the last step has for them; data may still
    object.
    """
    last, kind = steps.last, type(steps.last)
    reason = f"{kind.__name__} is not a least-squares model foldless knows"
    if isinstance(last, Search):
        reason = "a search is repeated on every training part; nested_cross_validate does that for grids in closed form"
        if learns_kernel(last):
            reason = (
                "the search is repeated on every training part and learns its kernel there; scales of features that"
                " have seen the labels of test rows would flatter the scores"
            )
    if kind in NO_CLOSED_FORM:
        reason = f"{kind.__name__} {NO_CLOSED_FORM[kind]}"
    if kind not in TASKS:
        raise NoClosedForm(f"the pipeline ends in {kind.__name__}: {reason}" if steps.name else reason)
    if steps.first is not None:
        check_steps(steps.first)
        raise NoSharedP(f"{steps.names} fitted on each training part, then one solve of {kind.__name__} there")
    allowed = {"sample_weight", "confounds"} if kind in FOLDLESS_ESTIMATORS else {"sample_weight"}
    check_fit_params(fit_params.keys() - allowed)
    if chooses_landmarks(last):
        reason = f"landmarks chosen on each training part, then one solve of {kind.__name__} there"
        raise NoSharedP(reason, "per_fold=False of the kernel")
    return last


def check_fit_params(unknown):
    """Refuse parameters of ``fit`` that have no closed form."""
    if unknown:
        raise NoClosedForm(f"fit parameters {sorted(unknown)} have no closed form")


def grid_names(search, name):
    """Whether candidates of a search differ in a parameter of the estimator, or of the last step of a pipeline."""
    grids = [search.param_grid] if isinstance(search.param_grid, Mapping) else search.param_grid or []
    return any(split_steps(search.estimator).prefix + name in grid for grid in grids)


def learns_kernel(search):
    """Whether a search learns the sum of kernels that ``kernel="auto"`` stands for."""
    kernel = getattr(split_steps(search.estimator).last, "kernel", None)
    exact = getattr(kernel, "kernel", kernel)  # of landmarks: the kernel that they approximate
    return is_automatic(exact) and search.param_grid is None


def check_probabilities(scoring, estimator):
    """Refuse scores of probabilities of a model of foldless that has none; in scikit-learn they would be nan."""
    last = split_steps(estimator).last
    is_decided = type(last) in TASKS or type(last) in NO_CLOSED_FORM  # whether there will be probabilities
    if isinstance(last, Search):
        is_decided = not grid_names(last, "calibration")
    if not is_decided or hasattr(estimator, "predict_proba"):
        return
    for argument, scorer in named_scorers(scoring).values():
        if wants_probabilities(scorer):
            raise ValueError(
                f"scoring={argument!r} needs probabilities, and {type(estimator).__name__} gives none here;"
                " set calibration='sigmoid' of foldless' classifiers, or take a score of decisions."
            )


def freeze_class_weights(estimator, y):
    """A copy whose balanced class weights are those of all labels; foldless' estimators resolve them so themselves."""
    if isinstance(estimator, FOLDLESS_ESTIMATORS) or getattr(estimator, "class_weight", None) != "balanced":
        return estimator
    if np.shape(y)[1:] > (1,):  # several labels a row: the task itself refuses them
        return estimator
    classes = np.unique(np.asarray(y))
    factors = compute_class_weight("balanced", classes=classes, y=np.asarray(y))
    return clone(estimator).set_params(class_weight=dict(zip(classes, factors, strict=True)))


def placeholder_task(estimator, y, sample_weight):
    """The :class:`EstimatorTask` of the targets of an estimator of foldless, on a placeholder for X; y is checked."""
    estimator, X = clone(estimator).set_params(kernel="linear"), np.arange(len(y), dtype=float)[:, None]
    rows, y = checked_rows_of(estimator, X, y)
    return task_of(estimator, rows, y, sample_weight)


def build_task(estimator, X, y, sample_weight=None, confounds=None, targets=None):
    """The :class:`EstimatorTask` of an estimator in ``TASKS`` on these data.

    ``targets`` are those of y where they are known, for one of foldless' estimators (:func:`placeholder_task`).
    ``confounds`` are an array or :class:`~foldless.estimators.checks.Confounds`.
    """
    if targets is None:
        estimator_task = TASKS[type(estimator)](estimator, X, y, sample_weight)
    else:
        estimator_task = task_on_rows(estimator, X, targets, sample_weight)
    if confounds is None:
        return estimator_task
    confounds = as_confounds(confounds)
    C = check_confounds(confounds.values, estimator_task.task.problem.n)
    return replace(estimator_task, task=estimator_task.task.with_confounds(C, in_score=confounds.in_score))
