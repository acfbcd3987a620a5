"""Prediction sets and intervals of a tuned model that count the tuning: cross-conformal, from nested cross-validation.

Rows by which hyper-parameters were chosen are fitted better than new ones, also when they are left out, and intervals
made from their residuals are too short. Here each row is judged by a model that was chosen and fitted without its fold:

    values    f_k(x) -+ |y_i - f_k(x_i)|, k the fold of row i: CV+ (Barber, Candes, Ramdas & Tibshirani 2021)
    labels    p = (1 + #{ i : margin of row i <= margin of the label at x, both by f_k }) / (n + 1)   (Vovk 2015)

For exchangeable rows the truth is held with a probability of at least 2 coverage - 1, up to a term of order n^-1/2, and
of about ``coverage`` in practice (docs/conformal.md).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.metaestimators import _safe_split

from foldless._engine.linalg.types import MatrixLike
from foldless._engine.readout.conformal import cross_p_values, in_set, residual_intervals
from foldless.estimators.conformal import check_coverage


class Tested(NamedTuple):
    """What the estimator of an outer split was fitted on, and what it says of the rows that it is tested on."""

    train: np.ndarray
    y: Any
    output: np.ndarray  # decisions, or predicted values


def tested(estimator, X, y, train, test):
    """:class:`Tested` of a fitted estimator."""
    X, y = _safe_split(estimator, X, y, test, train)
    return Tested(train, np.asarray(y), _output(estimator, X))


def _output(estimator, X):
    return estimator.decision_function(X) if is_classifier(estimator) else estimator.predict(X)


class NestedSets:
    """Sets and intervals by the estimators of the outer splits."""

    estimator: list | None
    tested: list | None
    test_indices: list

    def _outputs(self, X, of_labels):
        """What every estimator says of new rows X."""
        if self.estimator is None or self.tested is None:
            raise ValueError("return_estimator=False kept no models for new rows; nested_cross_validate with True.")
        if is_classifier(self.estimator[0]) != of_labels or (of_labels and self.tested[0].y.ndim > 1):
            raise AttributeError("sets are for classifiers of one label a row, intervals for regressors.")
        rows = np.concatenate(self.test_indices)
        if len(np.unique(rows)) < len(rows):
            raise ValueError("cv tests rows more than once; sets and intervals need splits that do not, such as KFold.")
        found = []
        for model, (train, *_) in zip(self.estimator, self.tested, strict=True):
            own = _safe_indexing(X, train, axis=1) if get_tags(model).input_tags.pairwise else X
            found.append(_output(model, own))
        return found

    def predict_interval(self, X: MatrixLike, coverage: float = 0.9) -> np.ndarray:
        """CV+ intervals (n_samples, 2) or (n_samples, n_outputs, 2) of new rows; the tuning is counted."""
        check_coverage(coverage)
        new, known = self._outputs(X, False), self.tested or []
        residuals = np.concatenate([each.y - each.output for each in known])
        flat = residuals.ndim == 1
        fits = np.stack([each for each, own in zip(new, known, strict=True) for _ in own.y], 1)
        ends = residual_intervals(fits[..., None] if flat else fits, residuals.reshape(len(residuals), -1), coverage)
        return ends[:, 0] if flat else ends

    def conformal_p_values(self, X: MatrixLike, *, class_conditional: bool = False) -> np.ndarray:
        """Cross-conformal p-values (n_samples, n_classes) of the labels of new rows; the tuning is counted."""
        new = self._outputs(X, True)
        classes = self.estimator[0].classes_  # type: ignore[index]
        known = [(each.output, np.searchsorted(classes, each.y)) for each in self.tested or []]
        return cross_p_values(new, known, class_conditional=class_conditional)

    def predict_set(self, X: MatrixLike, coverage: float = 0.9, *, class_conditional: bool = False) -> np.ndarray:
        """Sets of labels, boolean (n_samples, n_classes), whose p-value exceeds 1 - coverage; the tuning is counted."""
        check_coverage(coverage)
        return in_set(self.conformal_p_values(X, class_conditional=class_conditional), coverage)
