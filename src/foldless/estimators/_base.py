"""What the three estimators share: validation, the task, prediction, leave-one-out.

Numerics live below: ``fit`` validates, builds a ``Task``, solves it once and stores the expansion f(x) = k(x)' beta +
b. The factor of P stays with the fitted estimator for the leave-one-out methods; it is left out of pickles and made
again on demand.
"""

from collections.abc import Mapping
from numbers import Real

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import gen_batches
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d, validate_data

from foldless.calibration import CALIBRATIONS
from foldless.kernels import Linear, Precomputed, check_symmetric, resolve
from foldless.problem import Problem
from foldless.task import Task

CHUNK = 2**25  # entries of a kernel matrix evaluated at once in predict


class KernelMachine(BaseEstimator):
    """Base of the estimators: everything but the meaning of y."""

    # -- fitting ---------------------------------------------------------------------------------------------------

    def fit(self, X, y, sample_weight=None):
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data; the Gram matrix (n_samples, n_samples) for ``kernel="precomputed"``.
        y : array-like of shape (n_samples,) or, for regression, (n_samples, n_outputs)
            Labels or values.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the squared errors; rows of weight 0 do not count.

        Returns
        -------
        self : object
        """
        before = vars(self).copy()
        try:
            task = self._task(X, y, sample_weight)
            holdout = task.holdout()
            return self._accept(task, holdout.whole, task.rule(holdout.whole), holdout)
        except BaseException:
            vars(self).clear()  # a fit that fails leaves an earlier one as it was
            vars(self).update(before)
            raise

    def _task(self, X, y, sample_weight):
        """Validated data as a Task; sets only the attributes that describe the input."""
        self._check_parameters()
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            multi_output=True,
            y_numeric=False,
        )
        if X.shape[0] < 2:
            raise ValueError(f"n_samples={X.shape[0]}: at least two samples are needed, to fit one and leave one out.")
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, X, dtype=X.dtype, ensure_non_negative=True)
            if np.count_nonzero(weights) < 2:
                raise ValueError("sample_weight leaves fewer than two rows with a positive weight.")
        if self.kernel == "precomputed":
            _check_gram(X)
        return self._make_task(X, y, weights)

    def _problem(self, X, weights, base_weights):
        """The Problem of validated X; gamma is resolved with the user's weights only (labels are not seen)."""
        kernel = resolve(
            self.kernel,
            X,
            gamma=self.gamma,
            degree=self.degree,
            coef0=self.coef0,
            eta=self.eta,
            sample_weight=base_weights,
        )
        Q = np.ones((X.shape[0], 1 if self.fit_intercept else 0), X.dtype)
        return Problem(
            kernel,
            X,
            alpha=float(self.alpha),
            Q=Q,
            sample_weight=weights,
            penalty=self.penalty,
            basis=self.basis,
        )

    def _accept(self, task, model, rule, holdout=None):
        """Store a solved model of ``task`` and its trained rule as the fitted state."""
        problem = task.problem
        basis, beta = model.expansion()
        self._fitted_task, self._rule, self._holdout = task, rule, holdout
        self.X_fit_ = problem.X
        self.kernel_ = problem.kernel
        self.holder_ = model.choice
        self._dual = np.zeros((problem.n, beta.shape[1]), beta.dtype)
        self._dual[basis] = beta
        self._weights, B = model.linear() if isinstance(problem.kernel, Linear) else (None, model.B)
        self._offset = B.sum(0)  # one row with an intercept, none without
        self._set_attributes()
        return self

    def _check_parameters(self):
        if not isinstance(self.alpha, Real) or not np.isfinite(self.alpha) or self.alpha <= 0:
            raise ValueError(f"alpha={self.alpha!r} must be a finite number > 0; for (nearly) no penalty use 1e-10.")
        _check_option("penalty", self.penalty, ("rkhs", "coef"))
        _check_option("basis", self.basis, ("train", "all"))

    # -- prediction ------------------------------------------------------------------------------------------------

    def _fits(self, X):
        """Regression fits at new X, shape (n, m)."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        if self._weights is not None:
            return X @ self._weights + self._offset
        return (
            np.concatenate(
                [self._gram(X[rows]) @ self._dual for rows in gen_batches(X.shape[0], max(1, CHUNK // len(self._dual)))]
            )
            + self._offset
        )

    def _gram(self, X):
        """Kernel between validated new rows and the training rows."""
        if isinstance(self.kernel_, Precomputed):
            return X.toarray() if sp.issparse(X) else X
        return self.kernel_.gram(X, self.X_fit_)

    # -- leave-one-out ---------------------------------------------------------------------------------------------

    def _loo(self):
        """The held-out algebra of the training data, made again after unpickling."""
        check_is_fitted(self)
        if self._holdout is None:
            self._holdout = self._fitted_task.holdout()
        return self._holdout

    def _loo_decisions(self):
        """Fits or decisions of all training rows, each by the model without it."""
        holdout = self._loo()
        return self._fitted_task.loo_outputs(holdout, self._rule, "decision")

    def __getstate__(self):
        state = super().__getstate__().copy()
        if "_holdout" in state:
            state["_holdout"] = None
        return state

    # -- scikit-learn ----------------------------------------------------------------------------------------------

    @property
    def coef_(self):
        """Weights of the features; only with ``kernel="linear"``."""
        check_is_fitted(self)
        if self._weights is None:
            raise AttributeError(f"coef_ exists for kernel='linear' only, not for kernel={self.kernel!r}.")
        return self._linear(self._weights, self._offset)[0]

    def __sklearn_is_fitted__(self):
        return hasattr(self, "_dual")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags


def _has_calibration(estimator):
    if estimator.calibration is None:
        raise AttributeError(
            "predict_proba needs calibration='sigmoid' or 'isotonic'; decision_function gives uncalibrated scores."
        )
    return True


class KernelClassifier(ClassifierMixin, KernelMachine):
    """Base of the classifiers: labels, class weights, probabilities."""

    def _make_task(self, X, y, weights):
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y holds one class only ({self.classes_[0]!r}); {type(self).__name__} needs at least two classes."
            )
        if weights is not None and np.unique(codes[weights > 0]).size < 2:
            raise ValueError("sample_weight leaves one class only; at least two classes need rows of positive weight.")
        base = np.ones(len(codes), X.dtype) if weights is None else weights
        factors = self._class_factors(np.bincount(codes, weights=base))
        readout = self._readout(len(self.classes_), factors)
        return Task(
            self._problem(X, weights if factors is None else base * factors[codes].astype(X.dtype), weights),
            readout.targets(codes, X.dtype),
            readout,
            codes,
            len(self.classes_),
            self.calibration,
        )

    def _check_parameters(self):
        super()._check_parameters()
        _check_option("calibration", self.calibration, (None, *CALIBRATIONS))

    def _class_factors(self, mass):
        """class_weight as one number per class; "balanced" is computed once, from all rows given to fit."""
        if self.class_weight is None:
            return None
        if isinstance(self.class_weight, str):
            _check_option("class_weight", self.class_weight, (None, "balanced", "a dict {label: weight}"))
            return mass.sum() / (len(mass) * np.where(mass > 0, mass, 1.0))
        if not isinstance(self.class_weight, Mapping):
            raise ValueError(
                f"class_weight={self.class_weight!r} must be None, 'balanced' or a dict {{label: weight}}."
            )
        unknown = [label for label in self.class_weight if label not in self.classes_]
        if unknown:
            raise ValueError(
                f"class_weight names {unknown!r}, which y does not hold; its classes are {self.classes_!r}."
            )
        factors = numbers(self.class_weight.get(label, 1.0) for label in self.classes_.tolist())
        if factors is None or np.any(factors <= 0):
            raise ValueError(f"class_weight={self.class_weight!r} must hold finite numbers > 0.")
        return factors

    def decision_function(self, X):
        """Decision values: positive for ``classes_[1]`` with two classes, else one column for each class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        fits = self._fits(X)
        return self._rule.decision(fits)

    def predict(self, X):
        """Labels by the sign (two classes) or the largest column of the decision function.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return labels(self.decision_function(X), self.classes_)

    @available_if(_has_calibration)
    def predict_proba(self, X):
        """Class probabilities, calibrated on the exact leave-one-out scores of the training data.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        fits = self._fits(X)
        if self._rule.calibrator is None:
            raise ValueError(f"calibration={self.calibration!r} was set after fit; fit again to get probabilities.")
        return self._rule.proba(fits)

    @available_if(_has_calibration)
    def predict_log_proba(self, X):
        """Logarithms of ``predict_proba``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def loo_decision_function(self):
        """Decision value of every training row by the model fitted without it: exact, no refits.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        return self._loo_decisions()

    def loo_predict(self):
        """Label of every training row by the model fitted without it.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return labels(self._loo_decisions(), self.classes_)

    @property
    def loo_score_(self):
        """Leave-one-out accuracy on the training data."""
        predictions = self.loo_predict()
        return float(np.mean(predictions == self.classes_[self._fitted_task.codes]))


def labels(decision, classes):
    """Labels for decision values of shape (n,) or (n, c)."""
    return classes[(decision > 0).astype(int) if decision.ndim == 1 else decision.argmax(1)]


def numbers(values):
    """A finite float array of the values, or None where they are not finite numbers."""
    try:
        array = np.array(list(values), float)
    except (TypeError, ValueError):
        return None
    return array if np.isfinite(array).all() else None


def _check_option(name, value, allowed):
    if not (value is None or isinstance(value, str)) or value not in allowed:
        raise ValueError(f"{name}={value!r} is unknown; use one of {', '.join(map(repr, allowed))}.")


def _check_gram(K):
    """A precomputed training kernel must be square and symmetric."""
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"Precomputed matrix must be a square matrix: X has shape {K.shape}. kernel='precomputed' expects the Gram"
            " matrix of the training rows in fit, and (n_new, n_train) in predict."
        )
    check_symmetric(K, "the precomputed kernel")
