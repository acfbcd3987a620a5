"""Intervals of cross-validated scores: pairs of folds are left out by the hundred, from one fit where that is exact."""

from __future__ import annotations

from functools import partial
from typing import Literal

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from foldless._engine.inference.intervals import ScoreInterval
from foldless._engine.linalg.threads import threads_by_size
from foldless._engine.linalg.types import MatrixLike, RandomStateLike
from foldless._sklearn.routing import check_groups
from foldless._sklearn.steps import StepsLike
from foldless.estimators.checks import dense, rows_and_labels
from foldless.model_selection._left_out import LeftOut
from foldless.model_selection._partitions import IntervalRequest, interval_of_model
from foldless.model_selection._searched import FitOptions
from foldless.model_selection._types import ConfoundsLike, CVLike, Params, ScoringLike


@threads_by_size
def score_interval(
    estimator: BaseEstimator,
    X: MatrixLike,
    y: MatrixLike,
    *,
    scoring: ScoringLike = None,
    cv: CVLike = None,
    groups: ArrayLike | None = None,
    confidence: float = 0.9,
    method: Literal["nested", "nadeau-bengio"] = "nested",
    n_repeats: int | None = None,
    random_state: RandomStateLike = 0,
    params: Params = None,
    confounds: ConfoundsLike = None,
    steps: StepsLike = "each",
    n_jobs: int | None = None,
) -> ScoreInterval:
    """A cross-validated score with an interval that holds what it promises.

    The standard error of the scores of folds is too small, since their models share training rows: intervals made from
    it miss the score on new rows far too often. The nested cross-validation of Bates, Hastie & Tibshirani (2023)
    leaves out pairs of folds, many times with new folds, and measures how far scores inside are from scores outside.
    For the estimators that have a closed form all of it follows from one fit.

    Intervals of scores of classes are widened to what the numbers of held-out rows allow (``docs/inference.md``); their
    ``description`` says so.

    Parameters
    ----------
    estimator : estimator
        LSSVC, LSSVR, KernelFisherDiscriminant, Ridge, RidgeClassifier, KernelRidge: one fit. A FoldlessSearchCV, or a
        pipeline that ends in one, chooses its setting anew without every fold and every pair of folds. Everything else
        is refitted as often, with a ``RefitWarning``.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
    scoring : str or scorer, default=None
        None: accuracy, or "neg_mean_squared_error" of a regression. Scores that are means over rows (these two,
        "neg_mean_absolute_error", "neg_log_loss") have the variance of their rows. Of others ("roc_auc", "r2",
        "balanced_accuracy", ...) the mean over folds is taken, with the variance by a jackknife over groups of rows.
    cv : int or splitter, default=None; 10 folds by default, no more than the rarest class has rows
        A number of folds is drawn at random again and again, stratified by class. A splitter must test each row once;
        one that does not shuffle has one partition.
    groups : array-like of shape (n_samples,), default=None; rows of a group stay in one fold
    confidence : float, default=0.9
    method : {"nested", "nadeau-bengio"}, default="nested"
        The second corrects the variance of the scores of folds for their shared training rows (Nadeau & Bengio 2003),
        without leaving out pairs.
    n_repeats : int, default=None
        Partitions into folds. None: until the standard error is known within 10 %, at most 100 times (10 times where
        models are searched or refitted). Once for "nadeau-bengio", whose intervals of more partitions are too narrow.
    random_state : int, RandomState instance or None, default=0; draws the partitions
    params : dict, default=None; {"sample_weight": weights} for the fits; scores are not weighted
    confounds : array-like of shape (n_samples, n_confounds) or Confounds, default=None; as in :func:`cross_validate`
    steps : {"each", "once"}, default="each"; as in :func:`cross_validate`
    n_jobs : int, default=None; processes for refits

    Returns
    -------
    ScoreInterval
        Unpacks to score, low, high.

    Notes
    -----
    A line of progress appears by itself in terminals and notebooks after some seconds.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from foldless import LSSVC
    >>> from foldless.model_selection import score_interval
    >>> X, y = load_wine(return_X_y=True)
    >>> found = score_interval(LSSVC("linear", alpha=10.0, standardize=True), X, y, n_repeats=20)
    >>> print(found)
    accuracy 0.9871, 90 % interval 0.9626 to 1.0000 (nested, widened by counts, 10 folds, 20 times)
    """
    check_groups(groups)
    X, y, groups = rows_and_labels(X, dense(y), groups)
    options = FitOptions(groups=groups, params=params, confounds=confounds, steps=steps, n_jobs=n_jobs)
    request = IntervalRequest(scoring, cv, confidence, method, n_repeats, random_state)
    return interval_of_model(request, partial(LeftOut.of, estimator, X, y, options), estimator, X, y, groups)
