"""The chosen estimator of a search: its methods and attributes, asked for at the search itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from foldless.bridge.adapters import FOLDLESS_ESTIMATORS
from foldless.bridge.scorers import known_with_confounds
from foldless.estimators.rows import PerRow, given
from foldless.linalg.types import MatrixLike


def _best_has(method):
    """Whether the chosen estimator (before ``fit`` the given one) has a method; its own error if not."""

    def check(search):
        getattr(search.best_estimator_ if hasattr(search, "best_estimator_") else search.estimator, method)
        return True

    return check


def _gives_probabilities(search):
    if not is_classifier(search.estimator):
        raise AttributeError("predict_proba is for classifiers.")
    return True if not isinstance(search.estimator, FOLDLESS_ESTIMATORS) else _best_has("predict_proba")(search)


class BestEstimator:
    """What a search hands on to its ``best_estimator_``."""

    estimator: Any
    scoring: Any
    refit: Any
    best_params_: Any
    scorer_: Any
    multimetric_: bool
    fit: Any

    @property
    def _best(self):
        check_is_fitted(self)
        if not hasattr(self, "best_estimator_"):
            raise AttributeError("refit=False leaves no fitted estimator; fit one with best_params_.")
        return self.best_estimator_

    def predict(self, X: MatrixLike, confounds: PerRow = None) -> np.ndarray:
        """``predict`` of the best estimator."""
        return self._best.predict(X, **given(confounds=confounds))

    @available_if(_best_has("decision_function"))
    def decision_function(self, X: MatrixLike, confounds: PerRow = None) -> np.ndarray:
        """``decision_function`` of the best estimator."""
        return self._best.decision_function(X, **given(confounds=confounds))

    @available_if(_gives_probabilities)
    def predict_proba(self, X: MatrixLike, confounds: PerRow = None) -> np.ndarray:
        """``predict_proba`` of the best estimator; for RidgeClassifier a sigmoid fitted to held-out decisions."""
        best = self._best
        if not hasattr(self, "_sigmoid"):
            return best.predict_proba(X, **given(confounds=confounds))
        return self._sigmoid.fitted.proba(best.decision_function(X))

    @available_if(_gives_probabilities)
    def predict_log_proba(self, X: MatrixLike, confounds: PerRow = None) -> np.ndarray:
        """Logarithms of ``predict_proba``."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X, confounds))

    @available_if(_best_has("transform"))
    def transform(self, X: MatrixLike, confounds: PerRow = None) -> np.ndarray:
        """``transform`` of the best estimator."""
        return self._best.transform(X, **given(confounds=confounds))

    @available_if(_best_has("transform"))
    def fit_transform(self, X: MatrixLike, y: ArrayLike, **fit_params: Any) -> np.ndarray:
        """``fit``, then ``transform``."""
        return self.fit(X, y, **fit_params).transform(X, fit_params.get("confounds"))

    def score(self, X: MatrixLike, y: ArrayLike, sample_weight: PerRow = None, confounds: PerRow = None) -> float:
        """The deciding score of the best estimator: that of ``scoring``, else accuracy or R2."""
        best = self._best
        if self.scoring is None:
            return best.score(X, y, sample_weight=sample_weight, **given(confounds=confounds))
        scorer = self.scorer_[self.refit] if self.multimetric_ else self.scorer_
        best = best if confounds is None else known_with_confounds(best, X, confounds)
        return scorer(best, X, y, **given(sample_weight=sample_weight))

    @property
    def alpha_(self) -> Any:
        """The chosen alpha, as RidgeClassifierCV calls it."""
        check_is_fitted(self)
        if isinstance(self.best_params_, dict):
            return self.best_params_.get("alpha", self.estimator.alpha)
        return np.array([each.get("alpha", self.estimator.alpha) for each in self.best_params_])

    @property
    def coef_(self) -> np.ndarray:
        """``coef_`` of the best estimator."""
        return self._best.coef_

    @property
    def intercept_(self) -> Any:
        """``intercept_`` of the best estimator."""
        return self._best.intercept_
