"""Intervals of cross-validated scores: pairs of folds are left out by the hundred, from one fit where that is exact.

Random partitions of the rows into folds are drawn, every fold and every pair of folds is left out, and the interval is
made from the scores of all of them. Sets of rows are row numbers (b, t) and their held-out decisions (b, k, t): k is 1
for two classes, else the number of classes, or of outputs of a regression.
"""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass, fields, replace
from functools import partial
from numbers import Integral
from typing import Any, Literal

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold, check_cv
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _check_method_params

from foldless._engine.heldout.sets import Sets
from foldless._engine.inference.intervals import ScoreInterval, check_confidence, interval_of
from foldless._engine.inference.partitions import (
    ROW_SCORES,
    FoldPartitions,
    ScoreFunction,
    all_scores,
    scores_of_models,
)
from foldless._engine.linalg.threads import jobs_as_here, threads_by_size
from foldless._engine.linalg.types import MatrixLike, RandomStateLike
from foldless._sklearn.adapters import check_probabilities
from foldless._sklearn.pipelines import Search, split_steps
from foldless._sklearn.planner import CrossValidationPlan, plan
from foldless._sklearn.progress import Progress
from foldless._sklearn.request import CallRequest, CrossValidation, NestedRequest
from foldless._sklearn.route import RefitWarning, Route, warn_of_refits
from foldless._sklearn.routing import check_groups
from foldless._sklearn.scorer_checks import check_scorers
from foldless._sklearn.scorers import Scoring, check_single, is_function, score_decisions
from foldless._sklearn.splits import row_numbers
from foldless._sklearn.standin import StandIn
from foldless._sklearn.steps import StepsLike
from foldless.estimators.checks import check_option, dense, rows_and_labels
from foldless.estimators.metrics import score_kind
from foldless.model_selection._nested import NestedSearch
from foldless.model_selection._types import ConfoundsLike, CVLike, Params, ScoringLike

EVERY_SET = "without every fold and every pair of folds"


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
    """A cross-validated score with an interval that covers the score on new rows as often as stated.

    The standard error of the scores of folds is too small, since their models share training rows: intervals made from
    it miss the score on new rows far too often. The nested cross-validation of Bates, Hastie & Tibshirani (2023)
    leaves out pairs of folds, many times with new folds, and measures how far inner scores are from outer scores. For
    estimators with a closed form all of them follow from one fit.

    Intervals of scores of classes are widened for small numbers of held-out rows (``docs/inference.md``), which their
    ``description`` mentions.

    Parameters
    ----------
    estimator : estimator
        LSSVC, LSSVR, KernelFisherDiscriminant, Ridge, RidgeClassifier, KernelRidge: one fit. A FoldlessSearchCV, or a
        pipeline that ends in one, is repeated without every fold and every pair of folds. All others are refitted as
        often, with a ``RefitWarning``.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
    scoring : str or scorer, default=None
        None: accuracy, or "neg_mean_squared_error" of a regression. Scores that are means over rows (these two,
        "neg_mean_absolute_error", "neg_log_loss") have the variance of their rows. Of others ("roc_auc", "r2",
        "balanced_accuracy", ...) the mean over folds is taken, with the variance by a jackknife over groups of rows.
    cv : int or splitter, default=None; 10 folds by default, no more than the rarest class has rows
        A number of folds: partitions are drawn at random, stratified by class. A splitter must test each row once; one
        that does not shuffle gives a single partition.
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
    Progress is shown in terminals and notebooks after some seconds.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from foldless import LSSVC
    >>> from foldless.model_selection import score_interval
    >>> X, y = load_wine(return_X_y=True)
    >>> interval = score_interval(LSSVC("linear", alpha=10.0, standardize=True), X, y, n_repeats=20)
    >>> print(interval)
    accuracy 0.9871, 90 % interval 0.9626 to 1.0000 (nested, widened by counts, 10 folds, 20 times)
    """
    check_groups(groups)
    X, y, groups = rows_and_labels(X, dense(y), groups)
    check_confidence(confidence)
    check_repeats(n_repeats)
    check_option("method", method, ("nested", "nadeau-bengio"))
    check_single(scoring, "score_interval takes one.")
    check_probabilities(scoring, estimator)
    truth, classes = truth_and_classes(estimator, y)
    score, response = score_function(scoring, estimator, y, classes)
    partitions = fold_partitions(cv, X, y, groups, truth, score, random_state)
    request = CrossValidation(
        function="cross_val_predict",
        estimator=estimator,
        X=X,
        y=y,
        groups=groups,
        params=params,
        confounds=confounds,
        steps=steps,
        n_jobs=n_jobs,
        method=response,
    )
    model = partial(held_out_decisions, request, classes)
    watch = all_scores if method == "nested" else None
    (scores,), (decisions,) = scores_of_models([model], partitions, n_repeats, watch=watch, progress=partition_progress)
    return interval_of(scores, method, confidence, score.kind, path=decisions.route)


def fold_partitions(cv, X, y, groups, truth, score, random_state):
    """Partitions by ``cv``: a splitter, or a number of folds, drawn at random with the rows of a group together."""
    of_classes = truth.ndim == 1
    if cv is None or isinstance(cv, Integral):
        kinds = (KFold, StratifiedKFold) if groups is None else (GroupKFold, StratifiedGroupKFold)
        most = 10 if groups is None else max(3, min(10, len(np.unique(groups)) // 2))
        if groups is None and of_classes:  # every fold has rows of every class
            most = max(3, min(most, np.bincount(truth).min()))
        splitter = kinds[of_classes](most if cv is None else cv, shuffle=True)
    else:
        splitter = copy.deepcopy(check_cv(cv, y, classifier=of_classes))
    groups = None if groups is None else np.asarray(groups)
    random_state = check_random_state(random_state) if getattr(splitter, "shuffle", False) else None

    def split():
        return row_numbers(splitter.split(X, y, groups), truth.shape[-1])

    return FoldPartitions(splitter, split, truth, score, groups, random_state)


def partition_progress(most):
    """A function that counts partitions on a line in terminals, after some seconds."""
    progress = Progress(most, "partitions", None)
    return lambda number: progress.step(steps=number)


def truth_and_classes(estimator, y):
    """(class numbers (n,), classes), or (values (m, n), None)."""
    if not is_classifier(estimator):
        return np.asarray(y, float).reshape(len(y), -1).T, None
    kind = type_of_target(y, input_name="y")
    if kind not in ("binary", "multiclass"):
        raise ValueError(f"y is {kind}; intervals and comparisons of classifiers take one label for each row.")
    classes, codes = np.unique(np.ravel(y), return_inverse=True)
    return codes, classes


def score_function(scoring, estimator, y, classes):
    """(:class:`ScoreFunction` of ``scoring``, the response that it scores); None: accuracy, minus the squared error."""
    if scoring is None:
        scoring = "accuracy" if classes is not None else "neg_mean_squared_error"
    resolved = Scoring.of(scoring, estimator)
    name, scorer, metric = resolved.name, resolved.scorer, resolved.metric
    if is_function(scorer):
        raise ValueError(f"scoring={scoring!r} is a function of a fitted estimator; use a name or make_scorer.")
    check_scorers([(name, scorer)], estimator, y)
    response = getattr(scorer, "_response_method", "predict")
    response = response if isinstance(response, str) else response[0]
    by_rows = isinstance(scoring, str) and scoring in ROW_SCORES
    if metric is not None and metric.pooled:
        raise ValueError(f"scoring={name!r} is of all folds together; use 'neg_mean_squared_error', or 'r2' of each.")
    if response == "predict_proba" and not by_rows:
        raise ValueError(f"scoring={name!r} is a score of probabilities; of these neg_log_loss has intervals.")
    kind = score_kind(name, scorer)
    suits = metric is not None and metric.labels == (classes is not None)
    if by_rows or (suits and metric.classes in (None, 0 if classes is None else len(classes))):
        return ScoreFunction.of_metric(scoring, metric, kind, classes), response
    function = partial(score_decisions, scorer, classes, np.ndim(y) == 1)
    return ScoreFunction(function, None, kind=kind, labels=classes, one_by_one=True), response


def check_repeats(n_repeats):
    """Check that n_repeats is a positive integer or None."""
    if n_repeats is not None and (not isinstance(n_repeats, Integral) or n_repeats < 1):
        raise ValueError(f"n_repeats={n_repeats!r} must be a whole number, at least 1, or None.")


# -- held-out decisions of one model -----------------------------------------------------------------------------------


def held_out_decisions(request, classes, sets):
    """:class:`HeldOutDecisions` of the estimator of a request, or :class:`NestedDecisions` of a search.

    How they are computed is planned for ``sets``, some of those that will be left out. The method of the request is the
    response that is scored: "predict", "decision_function" or "predict_proba".
    """
    estimator = request.estimator
    front, request = request.behind_steps()
    X, y = rows_and_labels(request.X, request.y)
    request = replace(request, X=X, y=y)
    last = split_steps(request.estimator).last
    if isinstance(last, Search):
        if request.method == "predict_proba":
            raise ValueError("scoring is one of probabilities, and a search has no held-out ones; use another score.")
        route = Route("nested", f"{type(last).__name__} is repeated without every set of rows")
        return NestedDecisions(NestedSearch.of(nested_request(request)), classes, route)
    planned = plan(replace(request, groups=None, cv=splits_of(sets, len(y))))
    warn_of_refits(estimator, planned.route, EVERY_SET)
    return HeldOutDecisions(y, classes, request.method, planned, front.route(planned.route), request.n_jobs)


def nested_request(request):
    """The :class:`NestedRequest` with the arguments of a request of a search."""
    shared = {field.name: getattr(request, field.name) for field in fields(CallRequest)}
    return NestedRequest(**shared)


@dataclass(frozen=True)
class HeldOutDecisions:
    """Decisions of an estimator, from one fit where that is exact, else by refits.

    If predictions are scored and do not follow from the decisions (a refitted SVC votes), the decisions are 1 for the
    predicted class.
    """

    y: Any
    classes: np.ndarray | None
    response: str
    plan: CrossValidationPlan
    route: Route
    n_jobs: int | None  # of refits

    @property
    def quick(self):
        """Whether all sets follow from one fit, without a calibration for each of them."""
        return self.plan.run is not None and self.response != "predict_proba"

    def __call__(self, sets):
        """Decisions (b, k, t) of sets (b, t)."""
        run = self.plan.run
        if run is None:
            return self._refitted(self.plan.loop, sets)
        if not run.all_rows_count:  # sets may test rows of weight 0
            return self._refitted({"estimator": StandIn(run), "X": run.rows, "params": None}, sets)
        of_sets = Sets.of(sets)
        if self.response == "predict_proba":
            _, raw = run.decide_with_probabilities(of_sets)
        else:
            raw = run.decide(of_sets)
        raw = raw.reshape(*sets.shape, *raw.shape[1:])
        return raw[:, None] if raw.ndim == 2 else np.swapaxes(raw, 1, 2)

    def _refitted(self, loop, sets):
        splits = splits_of(sets, len(self.y))
        jobs = (delayed(_refit)(loop, self.y, train, test, self.response) for train, test in splits)
        outputs = Parallel(n_jobs=self.n_jobs)(jobs_as_here(jobs))
        return np.stack([as_decisions(values, response, self.classes) for values, response in outputs])


@dataclass(frozen=True)
class NestedDecisions:
    """Decisions of a search, or of a pipeline that ends in one; the search is repeated without every set."""

    search: NestedSearch
    classes: np.ndarray | None
    route: Route
    quick = False  # not all sets follow from one fit

    def __call__(self, sets):
        """Decisions (b, k, t) of sets (b, t)."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RefitWarning)
            results, _ = self.search.results(splits_of(sets, len(self.search.data.y)))
        return np.stack([as_decisions(result.decision, "decision_function", self.classes) for result in results])


def splits_of(sets, n):
    """(train, test) pairs of sets of rows (b, t)."""
    rows = np.arange(n)
    return [(np.delete(rows, test), test) for test in sets]


def as_decisions(values, response, classes):
    """Predictions or decisions of the rows of one set as (k, t)."""
    values = np.asarray(values)
    if classes is None:
        return values.reshape(len(values), -1).T
    if response == "predict":
        is_predicted = values == classes[:, None]
        if len(is_predicted) == 2:
            return np.where(is_predicted[1:], 1.0, -1.0)
        return is_predicted.astype(float)
    return values[None] if values.ndim == 1 else values.T


def _refit(loop, y, train, test, response):
    """(predictions, decisions or probabilities of the test rows, which of the three) of a refit."""
    estimator = clone(loop["estimator"])
    params = _check_method_params(loop["X"], loop["params"] or {}, train)
    fitted = estimator.fit(*_safe_split(estimator, loop["X"], y, train), **params)
    rows, _ = _safe_split(estimator, loop["X"], y, test, train)
    if response == "decision_function" and not hasattr(fitted, "decision_function"):
        proba = fitted.predict_proba(rows)
        return proba[:, 1] - 0.5 if proba.shape[1] == 2 else proba, response
    return getattr(fitted, response)(rows), response
