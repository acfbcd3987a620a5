"""Base classes of the classifiers: classes, coded labels, class weights, decisions, probabilities.

Classes are those of the rows and those that ``partial_fit(classes=...)`` named. The latter stay without a row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from foldless._engine.linalg import host_dtype, like, namespace, on_host, to_host
from foldless._engine.linalg.threads import threads_by_size
from foldless._engine.linalg.types import MatrixLike
from foldless._engine.readout.codings import chosen_labels
from foldless._engine.readout.task import Task
from foldless.estimators.checks import numbers, warn_caller, warn_of_strata
from foldless.estimators.conformal import ConformalSets
from foldless.estimators.intervals import ScoreIntervals
from foldless.estimators.missing import available_where
from foldless.estimators.online import OnlineMachine
from foldless.estimators.rows import Ids, PerRow, reads_one_state

ENOUGH_FOR_STEPS = 50  # rows of every class, for isotonic calibration (docs/calibration.md)


class LabelledDecisions(ClassifierMixin):
    """Labels by the decision function of an estimator: of new rows, and of training rows left out."""

    classes_: np.ndarray
    _y: Any  # labels of the training rows

    @reads_one_state
    def predict(self, X: MatrixLike) -> np.ndarray:
        """Labels (n_samples,) by the sign (two classes) or the largest column of ``decision_function``."""
        return self._labels(self.decision_function(X))

    @reads_one_state
    def loo_predict(self) -> np.ndarray:
        """Label of every training row by the model fitted without it."""
        return self._labels(self.loo_decision_function())

    def _labels(self, decisions):
        """Labels of decisions, as y was given."""
        return chosen_labels(decisions, self.classes_)

    @property
    @reads_one_state
    def loo_score_(self) -> float:
        """Leave-one-out accuracy on the training data, every row counted once, without weights."""
        return float(np.mean(self.loo_predict() == self._y))


def checked_labels(y):
    """Labels as one column."""
    if type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "iubU" and 2 * len(np.unique(y)) <= len(y):
        return y  # scikit-learn, which takes longer than a small fit, would find nothing
    y = column_or_1d(y, warn=True)
    check_classification_targets(y)
    return y


def named_classes(y, classes):
    """The labels that ``partial_fit(classes=...)`` names, which must include all labels of y."""
    if classes is None:
        return y[:0]
    classes = column_or_1d(classes)
    missing = np.setdiff1d(join_labels(y, classes)[: len(y)], classes).tolist()
    if missing:
        raise ValueError(f"classes={classes.tolist()!r} lacks {missing[0]!r}, which y holds; name all labels or none.")
    return classes


def join_labels(old, new):
    """Labels in one array; numbers and strings do not mix, since NumPy would turn the numbers into strings."""
    if not len(old) or not len(new):
        return new if len(new) else old
    if (old.dtype.kind in "OUST") != (new.dtype.kind in "OUST"):
        one, other = old[:1].tolist() + new[:1].tolist()  # plain numbers or texts
        raise ValueError(f"labels of different kinds: {one!r} and {other!r}; use one kind of labels throughout.")
    return np.concatenate([old, new])


class CodedLabels(NamedTuple):
    """All classes, and the place of each label among them."""

    classes: np.ndarray
    codes: np.ndarray

    def select(self, rows):
        """The labels of some rows, among which are all classes."""
        return CodedLabels(self.classes, self.codes[rows])


def coded(y, named):
    """The :class:`CodedLabels` of y; classes that are named may have no rows."""
    classes = np.unique(join_labels(y, named))
    return CodedLabels(classes, np.searchsorted(classes, y))


def check_two_classes(classes, estimator, hint):
    """Refuse a single class."""
    if len(classes) < 2:
        name = type(estimator).__name__
        only = classes.tolist()[0]  # a plain number or text
        raise ValueError(f"y holds one class only ({only!r}); {name} needs at least two classes. {hint}")


def warn_of_few_rows(codes, classes):
    """Warn of isotonic calibration of few rows of a class, whose step functions overfit."""
    sizes = np.bincount(codes, minlength=len(classes))
    if sizes.min() < ENOUGH_FOR_STEPS:
        warn_caller(
            f"calibration='isotonic' of {sizes.min()} rows of class {classes.tolist()[sizes.argmin()]!r}: step"
            f" functions of fewer than {ENOUGH_FOR_STEPS} rows of a class follow their chance. Use 'sigmoid'."
        )


def needs_calibration(method):
    """Decorate a method that exists with ``calibration`` only."""

    def check(estimator):
        if estimator.calibration is None:
            raise AttributeError(
                f"{type(estimator).__name__} has no {method.__name__} with calibration=None. Probabilities need"
                " calibration='sigmoid' or 'isotonic' of the estimator; decision_function gives uncalibrated scores."
            )

    return available_where(check)(method)


@dataclass(kw_only=True, eq=False, repr=False)
class KernelClassifier(LabelledDecisions, ConformalSets, ScoreIntervals, OnlineMachine):
    """Base of the classifiers that solve a Task: labels, class weights, probabilities."""

    class_weight: Mapping[Any, float] | Literal["balanced"] | None = None
    calibration: Literal[None, "sigmoid", "isotonic"] = None

    _readout: ClassVar[Callable]  # the readout of a number of classes, and of factors on their weights if there are any

    def _coded_targets(self, y):
        y = checked_labels(y)
        return coded(y, y[:0])

    def _make_task(self, X, y, weights, classes=None):
        if isinstance(y, CodedLabels):
            self._named_classes = y.classes[:0]
        else:
            y = checked_labels(y)
            self._named_classes = named_classes(y, classes)
            y = coded(y, self._named_classes)
        self.classes_, codes = y
        if self.calibration == "isotonic":
            warn_of_few_rows(codes, self.classes_)
        return self._task_of_codes(codes, weights, X, lambda total: self._problem(X, total, weights))

    def _task_with_more(self, task, y, weights, classes, problem):
        y = y if y.ndim == 1 and y.dtype.kind in "iubUS" else checked_labels(y)  # whole numbers and strings are fine
        if classes is not None:
            self._named_classes = np.unique(join_labels(self._named_classes, named_classes(y, classes)))
        elif y.dtype.kind == self.classes_.dtype.kind:
            places = np.minimum(np.searchsorted(self.classes_, y), len(self.classes_) - 1)
            if np.array_equal(self.classes_[places], y):  # no label is new
                codes = np.concatenate([task.codes, places])
                return self._task_of_codes(codes, weights, problem, problem.weighted_by)
        self.classes_, codes = coded(join_labels(self.classes_[task.codes], y), self._named_classes)
        return self._task_of_codes(codes, weights, problem, problem.weighted_by)

    def _task_with_fewer(self, task, kept, weights, problem):
        codes = task.codes[kept]
        if not np.bincount(codes, minlength=len(self.classes_)).all():
            labels = self.classes_[codes]
            labels = np.array(labels.tolist()) if labels.dtype.kind == "U" else labels  # as long as they need to be
            self.classes_, codes = coded(labels, self._named_classes)
        return self._task_of_codes(codes, weights, problem, problem.weighted_by)

    def _task_of_codes(self, codes, weights, X, problem_of):
        """The task of labels ``classes_[codes]``; ``problem_of`` makes the Problem of the weights of all rows.

        Weights have the precision of X.
        """
        n_classes = len(self.classes_)
        check_two_classes(self.classes_, self, "In a stream, name them all in partial_fit(classes=...).")
        if weights is not None and not len(self._named_classes) and np.unique(codes[weights > 0]).size < 2:
            raise ValueError("sample_weight leaves one class only; at least two classes need rows of positive weight.")
        factors = None
        base = None
        total = weights
        if self.class_weight is not None:
            dtype = host_dtype(X)
            base = np.ones(len(codes), dtype) if weights is None else weights
            factors = self._class_factors(np.bincount(codes, weights=base, minlength=n_classes))
            total = base * factors[codes].astype(dtype)
        readout = self._readout(n_classes, factors)
        problem = problem_of(total)
        Y = problem.verbs.like(problem.Q, readout.targets(codes, problem.dtype))
        return Task(problem, Y, readout, codes, n_classes, self.calibration, base)

    def partial_fit(
        self,
        X: MatrixLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: PerRow = None,
        confounds: PerRow = None,
        ids: Ids = None,
    ) -> Self:
        """Learn more rows exactly: the model becomes the one fitted on all of them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            New rows. For ``kernel="precomputed"`` their kernel with the rows of the model, in their order, and with
            each other: (n_new, n_samples + n_new).
        y : array-like of shape (n_samples,), labels; new ones may appear
        classes : array-like of shape (n_classes,), default=None
            Classes that exist although no row may show them yet, or any more. The first call needs them only where its
            rows are of one class.
        sample_weight, confounds, ids : as in ``fit``; the last two are needed where the rows so far have them
        """
        return self._learn(X, y, classes=classes, sample_weight=sample_weight, confounds=confounds, ids=ids)

    def _class_factors(self, mass):
        """class_weight as one number per class; "balanced" is computed once, from all rows given to fit."""
        class_weight = self.class_weight
        if isinstance(class_weight, str) and class_weight == "balanced":
            return mass.sum() / (len(mass) * np.where(mass > 0, mass, 1.0))
        if not isinstance(class_weight, Mapping):
            raise ValueError(f"class_weight={class_weight!r} must be None, 'balanced' or a dict {{label: weight}}.")
        classes = self.classes_
        unknown = [label for label in class_weight if label not in classes]
        if unknown:
            raise ValueError(f"class_weight names {unknown!r}, which y does not hold; its classes are {classes!r}.")
        factors = numbers(class_weight.get(label, 1.0) for label in classes.tolist())
        if factors is None or np.any(factors <= 0):
            raise ValueError(f"class_weight={class_weight!r} must hold finite numbers > 0.")
        return factors

    @reads_one_state
    def decision_function(self, X: MatrixLike, confounds: PerRow = None) -> np.ndarray:
        """Decision values: positive for ``classes_[1]`` with two classes, else one column for each class.

        ``confounds`` (n_samples, n_confounds) are regressed out of the features; without them they count as being at
        their mean of the training rows.
        """
        fits = self._fits(X, confounds)  # first: it raises the error of an estimator that is not fitted
        return self._rule.decision(fits)

    @reads_one_state
    def predict(self, X: MatrixLike, confounds: PerRow = None) -> np.ndarray:
        """Labels (n_samples,) by the sign (two classes) or the largest column of ``decision_function``."""
        return self._labels(self.decision_function(X, confounds))

    def _labels(self, decisions):
        labels = chosen_labels(to_host(decisions), self.classes_)
        return labels if self._y_like is None else like(self._y_like, labels)

    def score(self, X: MatrixLike, y: ArrayLike, sample_weight: PerRow = None, confounds: PerRow = None) -> float:
        """Accuracy of ``predict``."""
        labels = on_host(self.predict(X, confounds))
        return accuracy_score(on_host(y), labels, sample_weight=on_host(sample_weight))

    @needs_calibration
    @threads_by_size
    @reads_one_state
    def predict_proba(self, X: MatrixLike, confounds: PerRow = None) -> np.ndarray:
        """Class probabilities (n_samples, n_classes), calibrated on exact leave-one-out scores of the training data."""
        fits = self._fits(X, confounds)
        return self._calibrated_rule().proba(fits)

    def _calibrated_rule(self):
        """The rule with probabilities; after an update the first call calibrates it."""
        rule = self._rule
        if rule.calibrator is None:
            if self._fitted_task.calibration is None:
                raise ValueError(f"calibration={self.calibration!r} was set after fit; fit again to get probabilities.")
            self._rule = rule = self._fitted_task.rule(self._loo().full_fit)
        return rule

    @needs_calibration
    def predict_log_proba(self, X: MatrixLike, confounds: PerRow = None) -> np.ndarray:
        """Logarithms of ``predict_proba``."""
        with np.errstate(divide="ignore"):
            probabilities = self.predict_proba(X, confounds)
            return namespace(probabilities).log(probabilities)

    def loo_decision_function(self) -> np.ndarray:
        """Decision values of every training row by the model fitted without it: exact, no refits."""
        return self._loo_decisions()

    @needs_calibration
    @threads_by_size
    @reads_one_state
    def loo_predict_proba(self) -> np.ndarray:
        """Class probabilities of every training row by the model fitted, and calibrated, without it."""
        parts = self._loo()
        return self._fitted_task.loo_outputs(parts, self._calibrated_rule(), "proba")

    @property
    @reads_one_state
    def loo_score_(self) -> float:
        """Leave-one-out accuracy on the training data, every row counted once, without weights.

        It warns where it is far below chance; ``stratified_loo_score_`` is the remedy.
        """
        decisions = to_host(self.loo_decision_function())
        rows = self._fitted_task.problem.active
        warn_of_strata(decisions[rows], self._fitted_task.codes[rows])
        return float(np.mean(chosen_labels(decisions, self.classes_) == self._y))

    @property
    @reads_one_state
    def stratified_loo_score_(self) -> float:
        """The same with rows left out in sets that keep the shares of the classes: of equal classes one row of each.

        Classes of a single row each leave no such sets: there it equals ``loo_score_``.
        """
        decisions = to_host(self._fitted_task.stratified_decisions(self._loo(), self._rule))
        return float(np.mean(chosen_labels(decisions, self.classes_) == self._y))

    @property
    def _y(self):
        return self.classes_[self._fitted_task.codes]
