"""A stand-in that lets scikit-learn's own loop do the book-keeping of a closed-form cross-validation.

scikit-learn's functions are handed row numbers in place of X and a :class:`StandIn` in place of the estimator.
"Fitting" it on the numbers of a training part looks up the model without the other rows; "predicting" at numbers
returns fits that follow from P. Scorers, multi-metric dictionaries, train scores, timings, error scores and column
order are then scikit-learn's, not a copy of them.
"""

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRequest, get_routing_for_object
from sklearn.utils.metaestimators import available_if


def _classifies(standin):
    return standin.run.classes is not None


def _calibrated(standin):
    return standin.run.task.calibration is not None


class StandIn(BaseEstimator):
    """An estimator of row numbers."""

    def __init__(self, run):
        self.run = run

    def __sklearn_clone__(self):
        return StandIn(self.run)

    def __sklearn_tags__(self):
        tags = self.run.estimator.__sklearn_tags__()
        tags.input_tags.pairwise = False
        return tags

    def get_metadata_routing(self):
        """Requests of the estimator's own ``score``; metadata of ``fit`` has been used already."""
        request = MetadataRequest(owner=self)
        for name, alias in get_routing_for_object(self.run.outer).score.requests.items():
            if alias is not None:  # route_metadata has refused unset requests before
                request.score.add_request(param=name, alias=alias)
        return request

    @property
    def _metadata_request(self):
        """Where scikit-learn 1.7 looks for the requests of ``score``."""
        return self.get_metadata_routing()

    def fit(self, rows, y=None, **fit_params):
        """Look up the model of these rows."""
        self.train_ = rows[:, 0]
        self.model_ = self.run.parts.part(self.train_)
        self.rule_ = self.run.task.rule(self.model_, probabilities=False)
        self.classes_ = self.run.classes
        self.calibrated_ = None
        return self

    def _decision(self, rows):
        return self._tied(rows, self.rule_.decision(self.model_.fits(rows[:, 0])))

    def _tied(self, rows, values):
        """Values of these rows, those of equal rows made equal."""
        return self.run.task.problem.tie_equal_rows(rows[:, 0], values)

    def predict(self, rows):
        """Held-out (or training) predictions of these rows."""
        return self.run.outputs(self._decision(rows), "predict")

    @available_if(_classifies)
    def decision_function(self, rows):
        """Held-out (or training) decisions of these rows."""
        return self._decision(rows)

    @available_if(_calibrated)
    def predict_proba(self, rows):
        """Probabilities, calibrated on leave-one-out scores within the training part."""
        if self.calibrated_ is None:
            self.calibrated_ = self.run.task.rule(self.model_)
        return self._tied(rows, self.calibrated_.proba(self.model_.fits(rows[:, 0])))

    @available_if(_calibrated)
    def predict_log_proba(self, rows):
        """Logarithms of the probabilities."""
        return self.run.outputs(self.predict_proba(rows), "predict_log_proba")

    def score(self, rows, y, sample_weight=None):
        """Accuracy or R2, as the estimators' own ``score``."""
        score = accuracy_score if self.run.classes is not None else r2_score
        return score(y, self.predict(rows), sample_weight=sample_weight)

    def materialise(self):
        """The estimator itself, fitted on the training part."""
        return self.run.materialise(self.train_, self.model_)


class Decoded(BaseEstimator):
    """An estimator that is fitted to ``labels`` by their numbers, and whose classes and predictions are numbers.

    For decisions and probabilities scikit-learn's ``cross_val_predict`` fits on 0, 1, ..., so that columns have one
    order for all training parts. Class weights by label would not find their classes.
    """

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
