"""Estimators as tasks: which ones are regularised least squares, and with which kernel, weights and targets.

``TASKS`` maps a class to a function ``(estimator, X, y, sample_weight) -> (Task, classes or None, flat)``. Only the
classes themselves are listed: a subclass may have changed anything. A function raises :class:`Unsuited` when a
parameter takes the estimator outside the closed form; the message ends up in ``explain`` and in the warning of a
refit.
"""

from numbers import Real

import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_X_y

from foldless.estimators import LSSVC, LSSVR, KernelFisherDiscriminant
from foldless.estimators.access import task_of
from foldless.estimators.checks import check_square, check_weights
from foldless.heldout.problem import Problem
from foldless.kernels import Custom, Linear, Precomputed, check_symmetric, resolve
from foldless.readout.codings import OneAgainstAll, Regression
from foldless.readout.task import Task

POSITIVE = ("poly", "polynomial", "rbf", "laplacian", "cosine", "chi2")  # of scikit-learn's kernels by name


class Unsuited(Exception):
    """The estimator as configured has no closed form here; the message says why."""


def _checked(estimator, X, y, sample_weight, *, numeric, widened=False):
    """X, y and weights; ``widened`` to the precision that X and y have together."""
    if not isinstance(estimator.alpha, Real):
        raise Unsuited("alpha is one number per target")
    if not np.isfinite(estimator.alpha) or estimator.alpha <= 0:
        raise Unsuited(f"alpha={estimator.alpha!r} is not positive")
    if isinstance(X, np.ndarray | list) and np.asarray(X).dtype.kind in "US":
        raise ValueError("X holds strings, which scikit-learn's estimators refuse; convert it, X.astype(float) say.")
    X, y = check_X_y(X, y, accept_sparse="csr", dtype=[np.float64, np.float32], multi_output=True, y_numeric=numeric)
    if widened and y.dtype.kind in "fiub" and np.result_type(X.dtype, y.dtype) != np.float32:
        X = X.astype(np.float64, copy=False)
    return X, y, None if sample_weight is None else check_weights(sample_weight, X)


def _linear(estimator, X, weights):
    if estimator.positive:
        raise Unsuited("positive=True constrains the coefficients")
    Q = np.ones((X.shape[0], 1 if estimator.fit_intercept else 0), X.dtype)
    return Problem(Linear(), X, alpha=float(estimator.alpha), Q=Q, sample_weight=weights)


def _ridge(estimator, X, y, sample_weight):
    X, y, weights = _checked(estimator, X, y, sample_weight, numeric=True)
    Y = y.astype(X.dtype, copy=False).reshape(len(y), -1)
    return Task(_linear(estimator, X, weights), Y, Regression()), None, Y.shape[1] == 1


def _ridge_classifier(estimator, X, y, sample_weight):
    if isinstance(estimator.class_weight, str):
        raise Unsuited(
            "class_weight='balanced' is computed anew on each training part; a dict would be exact from one fit"
        )
    X, y, weights = _checked(estimator, X, y, sample_weight, numeric=False)
    check_classification_targets(y)
    if type_of_target(y) not in ("binary", "multiclass") or y.ndim > 1:
        raise Unsuited("y is not a vector of labels")
    classes, codes = np.unique(y, return_inverse=True)
    if estimator.class_weight is not None:
        factors = compute_class_weight(estimator.class_weight, classes=classes, y=y).astype(X.dtype)
        weights = factors[codes] * (1 if weights is None else weights)
    readout = OneAgainstAll(len(classes), estimator.fit_intercept)
    task = Task(_linear(estimator, X, weights), readout.targets(codes, X.dtype), readout, codes, len(classes))
    return task, classes, True


def _kernel_ridge(estimator, X, y, sample_weight):
    X, y, weights = _checked(estimator, X, y, sample_weight, numeric=True, widened=True)
    if estimator.kernel == "linear":
        kernel = Linear()
    elif estimator.kernel == "precomputed":
        kernel = Precomputed()
        check_square(X)
        try:
            check_symmetric(X, "the precomputed kernel")
        except ValueError as reason:
            raise Unsuited(str(reason).split(".")[0]) from None
    elif isinstance(estimator.kernel, str) and estimator.kernel not in POSITIVE:
        raise Unsuited(f"kernel={estimator.kernel!r} is not positive semi-definite")
    else:
        kernel = _named(estimator, X) or Custom(_PairwiseKernel(estimator))
    Q = np.ones((X.shape[0], 0), X.dtype)
    problem = Problem(kernel, X, alpha=float(estimator.alpha), Q=Q, sample_weight=weights)
    return Task(problem, y.astype(X.dtype, copy=False).reshape(len(y), -1), Regression()), None, y.ndim == 1


def _named(estimator, X):
    """KernelRidge's kernel as one of ours, whose parameters have slopes; None where it is not one of them."""
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


TASKS = {
    LSSVC: task_of,
    LSSVR: task_of,
    KernelFisherDiscriminant: task_of,
    Ridge: _ridge,
    RidgeClassifier: _ridge_classifier,
    KernelRidge: _kernel_ridge,
}
FOLDLESS_ESTIMATORS = (LSSVC, LSSVR, KernelFisherDiscriminant)
