"""scikit-learn's cross_val_score, of matrices or of a matrix at each time."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, is_classifier
from sklearn.model_selection import LeaveOneOut

from foldless._engine.linalg.threads import threads_by_size
from foldless._engine.linalg.types import MatrixLike
from foldless._sklearn.adapters import TASKS
from foldless._sklearn.families import axes_taken
from foldless._sklearn.pipelines import Search, split_steps
from foldless._sklearn.request import PermutationRequest
from foldless._sklearn.scorer_checks import objections
from foldless._sklearn.scorers import check_single, named_scorers
from foldless._sklearn.steps import StepsLike
from foldless.estimators.checks import dense
from foldless.model_selection._permutation import family_split_scores
from foldless.model_selection._types import ConfoundsLike, CVLike, Params, ScoringLike
from foldless.model_selection._validation import cross_validate


@threads_by_size
def cross_val_score(
    estimator: BaseEstimator,
    X: MatrixLike,
    y: MatrixLike | None = None,
    *,
    groups: ArrayLike | None = None,
    scoring: ScoringLike = None,
    cv: CVLike = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    params: Params = None,
    pre_dispatch: int | str = "2*n_jobs",
    error_score: float | Literal["raise"] = np.nan,
    confounds: ConfoundsLike = None,
    steps: StepsLike = "each",
) -> np.ndarray:
    """Score of every split; :func:`sklearn.model_selection.cross_val_score` from one fit where that is exact.

    The parameters are those of :func:`cross_validate`. X may have three axes, (n_samples, n_features, n_times), where
    the estimator takes matrices: it is then scored at each time.

    Returns
    -------
    ndarray of shape (n_splits,), or (n_splits, n_times)

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from foldless.model_selection import cross_val_score
    >>> X, y = load_diabetes(return_X_y=True)
    >>> cross_val_score(Ridge(alpha=0.1), X, y, cv=3).round(3)
    array([0.459, 0.495, 0.512])
    """
    check_single(scoring, "cross_val_score takes one, cross_validate takes many.")
    validate = partial(
        cross_validate,
        estimator,
        y=y,
        groups=groups,
        scoring=scoring,
        cv=cv,
        n_jobs=n_jobs,
        verbose=verbose,
        params=params,
        pre_dispatch=pre_dispatch,
        error_score=error_score,
        confounds=confounds,
        steps=steps,
    )
    last = split_steps(estimator).last
    takes_matrices = type(last) in TASKS or isinstance(last, Search)  # other estimators may take three axes
    if getattr(X, "ndim", 0) != 3 or not takes_matrices or axes_taken(estimator) != 2:
        return _single_score(validate(X=X))
    request = PermutationRequest(
        estimator=estimator,
        X=X,
        y=y,
        groups=groups,
        cv=cv,
        scoring=scoring,
        params=params,
        confounds=confounds,
        steps=steps,
        n_jobs=n_jobs,
        verbose=verbose,
    )
    scores = _scores_of_times(request)
    if scores is None:
        scores = np.stack([_single_score(validate(X=features)) for features in np.moveaxis(np.asarray(X), 2, 0)], 1)
    return scores


def _scores_of_times(request):
    """Scores (n_splits, n_times) as a family without permutations; None where every time is validated by itself."""
    estimator, y = request.estimator, request.y
    is_known = y is not None and type(split_steps(estimator).last) in TASKS
    # Leave-one-out warns of decisions worse than chance, and scores that do not go with y are warned of.
    if not is_known or isinstance(request.cv, LeaveOneOut):
        return None
    if any(True for _ in objections(named_scorers(request.scoring).values(), estimator, dense(y))):
        return None
    if request.scoring is None:
        request = replace(request, scoring="accuracy" if is_classifier(estimator) else "r2")
    return family_split_scores(request)


def _single_score(result):
    """The scores of the splits; an error if a scorer returned several values."""
    if "test_score" not in result:
        raise ValueError("scoring returned several values; cross_val_score takes one, cross_validate takes many.")
    return result["test_score"]
