"""Several classes as binary problems that differ in more than their labels (Bo, Wang & Jiao 2006, section 4)."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from foldless.estimators.classifier import LabelledDecisions
from foldless.linalg.types import MatrixLike


def _all_have(method):
    def check(machine):
        for _, estimator in machine.estimators:
            getattr(estimator, method)
        return True

    return check


class OneAgainstAllClassifier(LabelledDecisions, BaseEstimator):
    """One binary classifier for each class, each with hyper-parameters of its own; the largest decision wins.

    scikit-learn's ``OneVsRestClassifier`` fits copies of one estimator; here every class may have another penalty or
    kernel, as ``FoldlessSearchCV(share="kernel")`` and ``share="none"`` choose them.

    Parameters
    ----------
    estimators : list of (label, classifier)
        One for each class, in the order of the sorted labels.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    estimators_ : list of fitted binary classifiers, in the order of ``classes_``

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from foldless import LSSVC
    >>> from foldless.estimators import OneAgainstAllClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> parts = [(0, LSSVC(alpha=1.0)), (1, LSSVC(alpha=0.1)), (2, LSSVC(alpha=0.1))]
    >>> model = OneAgainstAllClassifier(parts).fit(X, y)
    >>> round(model.loo_score_, 3)
    0.98
    """

    def __init__(self, estimators: list[tuple[Any, BaseEstimator]]) -> None:
        self.estimators = estimators

    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit every class against the others; ``sample_weight`` goes to each classifier."""
        labels = np.asarray(y)
        classes = np.unique(labels)
        named = [label for label, _ in self.estimators]
        if named != classes.tolist():
            raise ValueError(f"estimators names the classes {named}; y holds {classes.tolist()}.")
        options = {} if sample_weight is None else {"sample_weight": sample_weight}
        self.estimators_ = [clone(each).fit(X, labels == label, **options) for label, each in self.estimators]
        self.classes_ = classes
        self._y = labels.copy()
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimators_[0], name):
                setattr(self, name, getattr(self.estimators_[0], name))
        return self

    def decision_function(self, X: MatrixLike) -> np.ndarray:
        """Decision of every binary classifier, (n_samples, n_classes)."""
        check_is_fitted(self)
        return np.column_stack([each.decision_function(X) for each in self.estimators_])

    @available_if(_all_have("predict_proba"))
    def predict_proba(self, X: MatrixLike) -> np.ndarray:
        """Probabilities of the binary problems, divided by their sum."""
        check_is_fitted(self)
        raw = np.column_stack([each.predict_proba(X)[:, 1] for each in self.estimators_])
        total = raw.sum(1, keepdims=True)
        return np.where(total > 0, raw / np.where(total > 0, total, 1.0), 1.0 / len(self.classes_))

    @available_if(_all_have("loo_decision_function"))
    def loo_decision_function(self) -> np.ndarray:
        """Decisions of every training row by the classifiers fitted without it, (n_samples, n_classes)."""
        check_is_fitted(self)
        return np.column_stack([each.loo_decision_function() for each in self.estimators_])

    @available_if(_all_have("loo_decision_function"))
    def loo_predict(self) -> np.ndarray:
        """Label of every training row by the classifiers fitted without it."""
        return super().loo_predict()

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        inner = [get_tags(each) for _, each in self.estimators]
        tags.input_tags.sparse = all(each.input_tags.sparse for each in inner)
        tags.input_tags.pairwise = any(each.input_tags.pairwise for each in inner)
        return tags
