"""Refits with confounds: scikit-learn's loop hands them to ``fit``, and predictions need them as well.

As for a stand-in, scikit-learn's functions are handed row numbers in the place of X. An estimator of row numbers knows
the rows and the confounds that belong to them.

Labelings of classes that keep what confounds explain (``permutation.confounded``) come from a logistic model.
"""

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.base import clone as cloned
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.metaestimators import available_if

from foldless._engine.heldout.problem import Problem
from foldless._engine.permutation.confounded import ExchangeableGivenConfounds
from foldless._sklearn.pipelines import Search, split_steps
from foldless.estimators.access import rows_of
from foldless.estimators.meta import SlidingWindow
from foldless.kernels import Linear

RIDGE = 100.0  # 1 / penalty of the logistic model of standardised confounds, which separable labels would make infinite


def given_confounds(y, C, strata=None):
    """The null scheme of classes y (n,), or labels (n, m), by a logistic model of them on confounds C and strata."""
    return ExchangeableGivenConfounds.of(y, C, strata, log_probability=_logistic_log_probability)


def _logistic_log_probability(columns, codes):
    """Log-probabilities (n, c) of class numbers (n,), up to a constant in every row."""
    decision = LogisticRegression(C=RIDGE, max_iter=1000).fit(columns, codes).decision_function(columns)
    return np.column_stack([np.zeros_like(decision), decision]) if decision.ndim == 1 else decision


def innermost_estimator(estimator):
    """The estimator that takes the confounds: that of a search or a window, else the last step itself."""
    last = split_steps(estimator).last
    return split_steps(last.estimator).last if isinstance(last, Search | SlidingWindow) else last


def _has(name):
    return lambda self: hasattr(self.estimator, name)


def columns_alone(estimator, confounds):
    """A problem of the confounds (n, k) and the intercept alone, to check that they are determined."""
    ones = np.ones((len(confounds), int(innermost_estimator(estimator).fit_intercept)))
    return Problem.of(Linear(), np.zeros((len(confounds), 1)), 1.0, ones).with_confounds(confounds)


class WithConfounds(BaseEstimator):
    """An estimator of row numbers: it is fitted, and predicts, with these rows of X and their confounds."""

    def __init__(self, estimator, X, confounds):
        self.estimator = estimator
        self.X = X
        self.confounds = confounds

    def __sklearn_clone__(self):
        return WithConfounds(cloned(self.estimator), self.X, self.confounds)

    def __sklearn_tags__(self):
        tags = get_tags(self.estimator)
        tags.input_tags.pairwise = False
        return tags

    def get_metadata_routing(self):
        """That of the estimator: parameters of ``fit`` are passed through."""
        return get_routing_for_object(self.estimator)

    def fit(self, rows, y, **fit_params):
        """Fit the estimator on the rows themselves."""
        self.train_ = rows[:, 0]
        steps = split_steps(self.estimator)
        fit_params[steps.fit_param("confounds")] = self.confounds[self.train_]
        self.estimator.fit(rows_of(innermost_estimator(steps.last), self.X, self.train_, self.train_), y, **fit_params)
        return self

    @property
    def classes_(self):
        """Those of the estimator."""
        return self.estimator.classes_

    def _ask(self, method, rows):
        steps, numbers = split_steps(self.estimator), rows[:, 0]
        X = rows_of(innermost_estimator(steps.last), self.X, numbers, self.train_)
        X = X if steps.first is None else steps.first.transform(X)
        return getattr(steps.last, method)(X, confounds=self.confounds[numbers])

    def predict(self, rows):
        """Predictions of these rows."""
        return self._ask("predict", rows)

    def score(self, rows, y, sample_weight=None):
        """Accuracy or R2, as the estimators' own ``score``."""
        score = accuracy_score if is_classifier(self.estimator) else r2_score
        return score(y, self.predict(rows), sample_weight=sample_weight)

    @available_if(_has("decision_function"))
    def decision_function(self, rows):
        """Decisions of these rows."""
        return self._ask("decision_function", rows)

    @available_if(_has("predict_proba"))
    def predict_proba(self, rows):
        """Probabilities of these rows."""
        return self._ask("predict_proba", rows)

    @available_if(_has("predict_log_proba"))
    def predict_log_proba(self, rows):
        """Their logarithms."""
        return self._ask("predict_log_proba", rows)
