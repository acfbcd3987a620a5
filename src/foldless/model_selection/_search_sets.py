"""Intervals and sets of a search, which count that its setting was chosen by the same rows."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Literal

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from foldless.bridge.scorers import deciding_scoring
from foldless.estimators.checks import check_option, warn_caller
from foldless.estimators.conformal import check_coverage
from foldless.estimators.rows import PerRow, given, reads_one_state
from foldless.inference.intervals import ScoreInterval
from foldless.linalg.types import MatrixLike, RandomStateLike
from foldless.model_selection._partitions import interval_of_model
from foldless.model_selection._search_best import BestEstimator
from foldless.model_selection._search_end import LONG
from foldless.model_selection._searched import Searched
from foldless.model_selection._types import CVLike, ScoringLike
from foldless.readout.conformal import POWERS, in_set

FOLDS = 10  # without each of which the search is repeated

classifiers_only = available_if(lambda search: is_classifier(search.estimator))
regressors_only = available_if(lambda search: is_regressor(search.estimator))


class SearchSets(BestEstimator):
    """Intervals and sets of new rows: by a search repeated in folds, or by the best estimator as it is."""

    random_state: Any
    scoring: Any
    refit: Any
    _nested_cross_validate: Any
    history_: list
    _learnt: dict | None  # the rows of the last fit
    _nested: Any  # nested cross-validation on them, once it is asked for

    @regressors_only
    def predict_interval(
        self, X: MatrixLike, coverage: float = 0.9, confounds: PerRow = None, *, method: str = "nested"
    ) -> np.ndarray:
        """Prediction intervals, (n_samples, 2) or (n_samples, n_outputs, 2).

        "nested", the default, counts the choice of the hyper-parameters: at the first call the search is repeated
        without each of ten folds, which takes up to ten times as long as ``fit``, and residuals are those of rows that
        a choice has not seen (CV+; of groups where ``fit`` was given some). Other methods are those of the best
        estimator, at no further cost: they take the setting as given, and cover too little where it was chosen by few
        rows (docs/conformal.md).
        """
        check_option("method", method, ("nested", "jackknife+", *POWERS))
        if method != "nested":
            self._check_known("predict_interval", method)
            return self._ask("predict_interval", X, coverage, confounds=confounds, method=method)
        if confounds is not None:
            raise ValueError("confounds: method='nested' takes none; use method='jackknife+'.")
        return self._nested_result().predict_interval(X, coverage)

    @classifiers_only
    def conformal_p_values(
        self, X: MatrixLike, *, class_conditional: bool = False, method: Literal["nested", "conformal"] = "nested"
    ) -> np.ndarray:
        """p-values (n_samples, n_classes) of the labels of new rows; arguments as in ``predict_set``."""
        check_option("method", method, ("nested", "conformal"))
        if method == "conformal":
            self._check_known("conformal_p_values", method)
            return self._ask("conformal_p_values", X, class_conditional=class_conditional)
        return self._nested_result().conformal_p_values(X, class_conditional=class_conditional)

    @classifiers_only
    def predict_set(
        self,
        X: MatrixLike,
        coverage: float = 0.9,
        *,
        class_conditional: bool = False,
        method: Literal["nested", "conformal"] = "nested",
    ) -> np.ndarray:
        """Sets of labels that hold the true one with this probability, boolean (n_samples, n_classes).

        "nested" counts the choice of the hyper-parameters, as in ``predict_interval``; "conformal" is ``predict_set``
        of the best estimator, which takes the setting as given. ``class_conditional`` promises the coverage for the
        rows of every class.
        """
        check_coverage(coverage)
        return in_set(self.conformal_p_values(X, class_conditional=class_conditional, method=method), coverage)

    def _check_known(self, name, method):
        """Refuse what the best estimator does not have."""
        if not hasattr(self._last, name):
            kind = "classifiers" if is_classifier(self.estimator) else "LSSVR"
            raise ValueError(
                f"method={method!r} is one of foldless' {kind}, and {type(self._last).__name__} has none; use"
                " method='nested'."
            )

    def score_interval(
        self,
        *,
        scoring: ScoringLike = None,
        cv: CVLike = None,
        confidence: float = 0.9,
        method: Literal["nested", "nadeau-bengio"] = "nested",
        n_repeats: int | None = None,
        random_state: RandomStateLike = 0,
        verbose: int | None = None,
    ) -> ScoreInterval:
        """An interval for the score of the search on new rows: ``best_score_`` is too good, it was chosen for that.

        The search is repeated on the rows, groups, weights and confounds of ``fit``, without every fold and every pair
        of folds. Arguments are those of :func:`foldless.model_selection.score_interval`; ``scoring=None`` is the
        deciding score, else accuracy or "neg_mean_squared_error".
        """
        X, y, groups, confounds, params = self._rows("score_interval").values()

        def searched(_, **asked):
            return Searched.of(self, X, y, groups=groups, confounds=confounds, params=params, **asked)

        if scoring is None:
            scoring = deciding_scoring(self.scoring, self.refit)
        asked = {"scoring": scoring, "cv": cv, "confidence": confidence, "method": method, "n_repeats": n_repeats}
        return interval_of_model(searched, self, X, y, groups, **asked, random_state=random_state, verbose=verbose)

    def _rows(self, what):
        """Those of the last fit."""
        check_is_fitted(self)
        if self._learnt is None:
            raise ValueError(f"{what} needs all rows, and some came or went since fit: fit again.")
        return self._learnt

    @reads_one_state
    def _nested_result(self):
        rows = self._rows("method='nested'")
        if self._nested is None:
            cv = _folds(self, rows["y"], rows["groups"])
            self._warn_of_time(cv.get_n_splits())
            self._nested = self._nested_cross_validate(**rows, cv=cv, return_estimator=True)
        return self._nested

    def _warn_of_time(self, n_folds):
        """Say so where the searches without each fold will take long, judged by the one that was done."""
        seconds = n_folds * sum(each["time"] for each in self.history_)
        if seconds > LONG:
            other = "conformal" if is_classifier(self.estimator) else "jackknife+"
            warn_caller(
                f"method='nested' repeats the search without each of {n_folds} folds, once: about {seconds / 60:.0f}"
                f" minutes. method={other!r} takes the setting as given, and no time; n_jobs= works on several folds."
            )

    def _keep(self, X, y, groups, confounds, sample_weight):
        """Keep the rows of a fit: copies, but of a Gram matrix, which is the largest array of all."""
        rows = {"y": y, "groups": groups, "confounds": confounds, "params": given(sample_weight=sample_weight)}
        X = X if get_tags(self).input_tags.pairwise else deepcopy(X)
        self._learnt, self._nested = {"X": X, **deepcopy(rows)}, None

    def _updated(self, model):
        self._learnt = self._nested = None  # not the rows of the model any more
        super()._updated(model)


def _folds(search, y, groups):
    """Folds of groups where there are some, else drawn; those of labels keep the shares of the classes."""
    drawn, most = {"shuffle": True, "random_state": search.random_state}, FOLDS
    if is_classifier(search.estimator):
        most = max(2, min(FOLDS, *np.unique(y, return_counts=True)[1]))
    if groups is not None:
        kind = StratifiedGroupKFold if is_classifier(search.estimator) else GroupKFold
        return kind(min(most, len(np.unique(groups))))
    return StratifiedKFold(most, **drawn) if is_classifier(search.estimator) else KFold(min(FOLDS, len(y)), **drawn)
