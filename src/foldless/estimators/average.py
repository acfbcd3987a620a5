"""An average of estimators: several settings that nobody can tell from the best, in the place of one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from foldless.estimators.rows import PerRow, all_or_nothing
from foldless.estimators.versions import Versioned
from foldless.linalg.types import MatrixLike
from foldless.readout.codings import chosen_labels


def _all_have(method):
    def check(average):
        for each in average.estimators:
            getattr(each, method)
        return True

    return check


class AverageEstimator(Versioned):
    """Several classifiers, or several regressors, fitted on the same rows, whose outputs are averaged.

    scikit-learn's ``VotingClassifier`` averages probabilities or counts labels; here it is the decision functions that
    are averaged, as ``FoldlessSearchCV(average=True)`` does. A prediction asks every member.

    Parameters
    ----------
    estimators : list of classifiers with a decision_function, or of regressors

    Attributes
    ----------
    estimators_ : list of the same, fitted
    classes_ : ndarray of shape (n_classes,), of classifiers

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from foldless import LSSVC
    >>> from foldless.estimators import AverageEstimator
    >>> X, y = load_iris(return_X_y=True)
    >>> model = AverageEstimator([LSSVC(alpha=0.1), LSSVC(alpha=1.0), LSSVC(gamma=0.1)]).fit(X, y)
    >>> round(model.score(X, y), 2)
    0.99
    """

    def __init__(self, estimators: list[BaseEstimator]) -> None:
        self.estimators = estimators

    def fit(self, X: MatrixLike, y: ArrayLike, **fit_params: Any) -> Self:
        """Fit every member; ``fit_params`` are further arguments of ``fit`` of each, such as ``sample_weight``."""
        if not isinstance(self.estimators, list | tuple) or not len(self.estimators):
            raise ValueError(f"estimators={self.estimators!r} must be a list of at least one estimator.")
        with all_or_nothing(self) as average:
            average.estimators_ = [clone(each).fit(X, y, **fit_params) for each in self.estimators]
            average._flat = np.shape(y)[1:] in ((), (1,))
            for name in ("classes_", "n_features_in_", "feature_names_in_"):
                if hasattr(average.estimators_[0], name):
                    setattr(average, name, getattr(average.estimators_[0], name))
        return self

    def _mean(self, method, X, options):
        check_is_fitted(self)
        return np.mean([getattr(each, method)(X, **options) for each in self.estimators_], 0)

    @available_if(_all_have("decision_function"))
    def decision_function(self, X: MatrixLike, **options: Any) -> np.ndarray:
        """Mean of the decisions; ``options`` are further arguments of the members' method, such as ``confounds``."""
        return self._mean("decision_function", X, options)

    def predict(self, X: MatrixLike, **options: Any) -> np.ndarray:
        """Labels by the mean of the decisions, or the mean of the predicted values; ``options`` as there."""
        if not is_classifier(self):
            return self._mean("predict", X, options)
        return chosen_labels(self.decision_function(X, **options), self.classes_, self._flat)

    @available_if(_all_have("predict_proba"))
    def predict_proba(self, X: MatrixLike, **options: Any) -> np.ndarray:
        """Mean of the probabilities; the most probable class need not be that of ``predict``."""
        return self._mean("predict_proba", X, options)

    def score(self, X: MatrixLike, y: ArrayLike, sample_weight: PerRow = None, **options: Any) -> float:
        """Accuracy or R2 of ``predict``."""
        measure = accuracy_score if is_classifier(self) else r2_score
        return measure(y, self.predict(X, **options), sample_weight=sample_weight)

    def __sklearn_tags__(self):
        inner = [get_tags(each) for each in self.estimators]
        sparse = all(each.input_tags.sparse for each in inner)
        return replace(inner[0], transformer_tags=None, input_tags=replace(inner[0].input_tags, sparse=sparse))
