"""What the two classifiers share: labels, class weights, decisions, probabilities."""

from collections.abc import Mapping

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from foldless.estimators.base import check_option, numbers
from foldless.estimators.online import OnlineMachine
from foldless.readout.calibration import CALIBRATIONS
from foldless.readout.codings import chosen_labels
from foldless.readout.task import Task


def _has_calibration(estimator):
    if estimator.calibration is None:
        raise AttributeError(
            "predict_proba needs calibration='sigmoid' or 'isotonic'; decision_function gives uncalibrated scores."
        )
    return True


class KernelClassifier(ClassifierMixin, OnlineMachine):
    """Base of the classifiers: labels, class weights, probabilities."""

    def _make_task(self, X, y, weights, classes=None):
        y = _checked_labels(y)
        self._named_classes = named_classes(y, classes)
        return self._coded_task(*self._coded(y), weights, X.dtype, lambda total: self._problem(X, total, weights))

    def _more_task(self, task, y, base, classes, problem):
        y = y if y.ndim == 1 and y.dtype.kind in "iubUS" else _checked_labels(y)  # whole numbers and strings are fine
        if classes is not None:
            self._named_classes = np.unique(join_labels(self._named_classes, named_classes(y, classes)))
        elif y.dtype.kind == self.classes_.dtype.kind:
            places = np.searchsorted(self.classes_, y)
            if np.array_equal(self.classes_[np.minimum(places, len(self.classes_) - 1)], y):  # no new ones
                codes = np.concatenate([task.codes, places])
                return self._coded_task(self.classes_, codes, base, problem.dtype, problem.weighted_by)
        labels = join_labels(self.classes_[task.codes], y)
        return self._coded_task(*self._coded(labels), base, problem.dtype, problem.weighted_by)

    def _fewer_task(self, task, kept, base, problem):
        classes, codes = self.classes_, task.codes[kept]
        if not np.bincount(codes, minlength=len(classes)).all():
            labels = classes[codes]
            labels = np.array(labels.tolist()) if labels.dtype.kind == "U" else labels  # as long as they need to be
            classes, codes = self._coded(labels)
        return self._coded_task(classes, codes, base, problem.dtype, problem.weighted_by)

    def _coded(self, y):
        """All classes, those without rows included, and the place of each label among them."""
        classes = np.unique(join_labels(y, self._named_classes))
        return classes, np.searchsorted(classes, y)

    def _coded_task(self, classes, codes, weights, dtype, problem):
        """The task of labels ``classes[codes]``; ``problem`` makes the Problem of the weights of all rows."""
        self.classes_ = classes
        if len(classes) < 2:
            raise ValueError(
                f"y holds one class only ({classes[0]!r}); {type(self).__name__} needs at least two classes."
                " In a stream, name them all in partial_fit(classes=...)."
            )
        if weights is not None and not len(self._named_classes) and np.unique(codes[weights > 0]).size < 2:
            raise ValueError("sample_weight leaves one class only; at least two classes need rows of positive weight.")
        factors = None
        if self.class_weight is not None:
            base = np.ones(len(codes), dtype) if weights is None else weights
            factors = self._class_factors(np.bincount(codes, weights=base, minlength=len(classes)))
        readout = self._readout(len(classes), factors)
        return Task(
            problem(weights if factors is None else base * factors[codes].astype(dtype)),
            readout.targets(codes, dtype),
            readout,
            codes,
            len(classes),
            self.calibration,
        )

    def partial_fit(self, X, y, classes=None, sample_weight=None, confounds=None, ids=None):
        """Learn more rows exactly: the model becomes the one fitted on all of them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            New rows. For ``kernel="precomputed"`` their kernel with the rows of the model, in their order, and with
            each other: (n_new, n_samples + n_new).
        y : array-like of shape (n_samples,)
            Labels; new ones may appear.
        classes : array-like of shape (n_classes,), default=None
            Classes that exist although no row may show them yet, or any more. The first call needs them only where its
            rows are of one class.
        sample_weight : array-like of shape (n_samples,), default=None
        confounds : array-like of shape (n_samples, n_confounds), default=None
            Needed where the model was fitted with confounds.
        ids : array-like of shape (n_samples,), default=None
            Needed where the rows so far have ids.

        Returns
        -------
        self : object
        """
        return self._learn(X, y, classes=classes, sample_weight=sample_weight, confounds=confounds, ids=ids)

    def _check_parameters(self):
        super()._check_parameters()
        check_option("calibration", self.calibration, (None, *CALIBRATIONS))

    def _class_factors(self, mass):
        """class_weight as one number per class; "balanced" is computed once, from all rows given to fit."""
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
        return chosen_labels(self.decision_function(X, confounds), self.classes_)

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
        return self._calibrated_rule().proba(fits)

    def _calibrated_rule(self):
        """The rule with probabilities, which updates leave to the first call that asks for them."""
        if self._rule.calibrator is None:
            if self._fitted_task.calibration is None:
                raise ValueError(f"calibration={self.calibration!r} was set after fit; fit again to get probabilities.")
            self._rule = self._fitted_task.rule(self._loo().whole)
        return self._rule

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
        return self._fitted_task.loo_outputs(holdout, self._calibrated_rule(), "proba")

    def loo_predict(self):
        """Label of every training row by the model fitted without it.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return chosen_labels(self._loo_decisions(), self.classes_)

    @property
    def loo_score_(self):
        """Leave-one-out accuracy on the training data, every row counted once whatever its weight."""
        predictions = self.loo_predict()
        return float(np.mean(predictions == self.classes_[self._fitted_task.codes]))


def _checked_labels(y):
    y = column_or_1d(y, warn=True)
    check_classification_targets(y)
    return y


def named_classes(y, classes):
    """Labels that ``partial_fit(classes=...)`` names; they must be all that y holds, or none."""
    if classes is None:
        return y[:0]
    classes = column_or_1d(classes)
    missing = np.setdiff1d(join_labels(y, classes)[: len(y)], classes).tolist()
    if missing:
        raise ValueError(f"classes={list(classes)!r} lacks {missing[0]!r}, which y holds; name all labels or none.")
    return classes


def join_labels(old, new):
    """Labels in one array; numbers and strings do not mix, since NumPy would turn the numbers into strings."""
    if not len(old) or not len(new):
        return new if len(new) else old
    if (old.dtype.kind in "OUST") != (new.dtype.kind in "OUST"):
        raise ValueError(f"labels of different kinds: {old[0]!r} and {new[0]!r}; use one kind of labels throughout.")
    return np.concatenate([old, new])
