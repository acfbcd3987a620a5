"""Labels as they are for scikit-learn's ``cross_val_predict``, which numbers them.

For decisions and probabilities it fits on 0, 1, ..., so that columns have one order whatever classes a training part
holds. Weights by label would then miss their classes: what it fits is a :class:`Decoded`.
"""

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import get_routing_for_object


class Decoded(BaseEstimator):
    """An estimator that is given numbers of ``labels``, learns the labels, and names its classes by number again."""

    def __init__(self, estimator, labels):
        self.estimator, self.labels = estimator, labels

    def __sklearn_clone__(self):
        return Decoded(clone(self.estimator), self.labels)

    def __sklearn_tags__(self):
        return get_tags(self.estimator)

    def get_metadata_routing(self):
        """That of the estimator: parameters of ``fit`` are passed through."""
        return get_routing_for_object(self.estimator)

    def fit(self, X, y, **fit_params):
        """Fit the estimator on the labels themselves."""
        self.estimator.fit(X, self.labels[y], **fit_params)
        return self

    @property
    def classes_(self):
        """Numbers of the classes of the fitted estimator."""
        return np.searchsorted(self.labels, self.estimator.classes_)

    def predict(self, X):
        """Numbers of the predicted labels."""
        return np.searchsorted(self.labels, self.estimator.predict(X))

    def __getattr__(self, name):
        if name in ("decision_function", "predict_proba", "predict_log_proba"):
            return getattr(self.estimator, name)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
