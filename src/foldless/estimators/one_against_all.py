"""Several classes as binary problems that differ in more than their labels (Bo, Wang & Jiao 2006, section 4)."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from foldless.readout.codings import chosen_labels


def _all_have(method):
    def check(machine):
        for _, estimator in machine.estimators:
            getattr(estimator, method)
        return True

    return check


class OneAgainstAllClassifier(ClassifierMixin, BaseEstimator):
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

    def __init__(self, estimators):
        self.estimators = estimators

    def fit(self, X, y, sample_weight=None):
        """Fit every class against the others.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        self : object
        """
        y = np.asarray(y)
        classes = np.unique(y)
        named = [label for label, _ in self.estimators]
        if named != classes.tolist():
            raise ValueError(f"estimators names the classes {named}; y holds {classes.tolist()}.")
        options = {} if sample_weight is None else {"sample_weight": sample_weight}
        self.estimators_ = [clone(each).fit(X, y == label, **options) for label, each in self.estimators]
        self.classes_, self._codes = classes, np.searchsorted(classes, y)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimators_[0], name):
                setattr(self, name, getattr(self.estimators_[0], name))
        return self

    def decision_function(self, X):
        """Decision of every binary classifier, (n_samples, n_classes)."""
        check_is_fitted(self)
        return np.column_stack([each.decision_function(X) for each in self.estimators_])

    def predict(self, X):
        """Label of the largest decision."""
        decision = self.decision_function(X)
        return chosen_labels(decision, self.classes_)

    @available_if(_all_have("predict_proba"))
    def predict_proba(self, X):
        """Probabilities of the binary problems, divided by their sum."""
        check_is_fitted(self)
        raw = np.column_stack([each.predict_proba(X)[:, 1] for each in self.estimators_])
        total = raw.sum(1, keepdims=True)
        return np.where(total > 0, raw / np.where(total > 0, total, 1.0), 1.0 / len(self.classes_))

    @available_if(_all_have("loo_decision_function"))
    def loo_decision_function(self):
        """Decisions of every training row by the classifiers fitted without it, (n_samples, n_classes)."""
        check_is_fitted(self)
        return np.column_stack([each.loo_decision_function() for each in self.estimators_])

    @available_if(_all_have("loo_decision_function"))
    def loo_predict(self):
        """Label of every training row by the classifiers fitted without it."""
        decision = self.loo_decision_function()
        return chosen_labels(decision, self.classes_)

    @property
    def loo_score_(self):
        """Leave-one-out accuracy on the training data."""
        predictions = self.loo_predict()
        return float(np.mean(predictions == self.classes_[self._codes]))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        inner = [get_tags(each) for _, each in self.estimators]
        tags.input_tags.sparse = all(each.input_tags.sparse for each in inner)
        tags.input_tags.pairwise = any(each.input_tags.pairwise for each in inner)
        return tags
