"""What the two classifiers share: labels, class weights, decisions, probabilities."""

from collections.abc import Mapping

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from foldless.calibration import CALIBRATIONS
from foldless.estimators._base import KernelMachine, check_option, numbers
from foldless.task import Task


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
        check_option("calibration", self.calibration, (None, *CALIBRATIONS))

    def _class_factors(self, mass):
        """class_weight as one number per class; "balanced" is computed once, from all rows given to fit."""
        if self.class_weight is None:
            return None
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
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

    def decision_function(self, X, confounds=None):
        """Decision values: positive for ``classes_[1]`` with two classes, else one column for each class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        confounds : array-like of shape (n_samples, n_confounds), default=None
            Adds the confounds' part back; without them it is left out.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        fits = self._fits(X, confounds)
        return self._rule.decision(fits)

    def predict(self, X, confounds=None):
        """Labels by the sign (two classes) or the largest column of the decision function.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        confounds : array-like of shape (n_samples, n_confounds), default=None
            Adds the confounds' part back; without them it is left out.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return labels(self.decision_function(X, confounds), self.classes_)

    @available_if(_has_calibration)
    def predict_proba(self, X, confounds=None):
        """Class probabilities, calibrated on the exact leave-one-out scores of the training data.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        confounds : array-like of shape (n_samples, n_confounds), default=None
            Adds the confounds' part back; without them it is left out.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        fits = self._fits(X, confounds)
        if self._rule.calibrator is None:
            raise ValueError(f"calibration={self.calibration!r} was set after fit; fit again to get probabilities.")
        return self._rule.proba(fits)

    @available_if(_has_calibration)
    def predict_log_proba(self, X, confounds=None):
        """Logarithms of ``predict_proba``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        confounds : array-like of shape (n_samples, n_confounds), default=None
            Adds the confounds' part back; without them it is left out.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X, confounds))

    def loo_decision_function(self):
        """Decision value of every training row by the model fitted without it: exact, no refits.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        return self._loo_decisions()

    @available_if(_has_calibration)
    def loo_predict_proba(self):
        """Class probabilities of every training row by the model fitted, and calibrated, without it.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        holdout = self._loo()
        return self._fitted_task.loo_outputs(holdout, self._rule, "proba")

    def loo_predict(self):
        """Label of every training row by the model fitted without it.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return labels(self._loo_decisions(), self.classes_)

    @property
    def loo_score_(self):
        """Leave-one-out accuracy on the training data, every row counted once whatever its weight."""
        predictions = self.loo_predict()
        return float(np.mean(predictions == self.classes_[self._fitted_task.codes]))


def labels(decision, classes):
    """Labels for decision values of shape (n,) or (n, c)."""
    return classes[(decision > 0).astype(int) if decision.ndim == 1 else decision.argmax(1)]
