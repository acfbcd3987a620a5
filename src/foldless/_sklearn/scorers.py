"""Scorers of predictions that exist already, scorers that read rows of X, and scores of many labelings at once.

:class:`HeldOutScores` are the scores of a search, from held-out decisions.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_classifier
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import check_scoring, get_scorer, get_scorer_names
from sklearn.metrics._scorer import _BaseScorer
from sklearn.utils.metaestimators import available_if

from foldless._engine.permutation.metrics import Metric
from foldless._engine.readout.codings import chosen_labels
from foldless.estimators.access import EstimatorTask, rows_of
from foldless.estimators.checks import warn_caller
from foldless.estimators.metrics import METRICS, scorer_of

# -- estimators whose predictions exist already ------------------------------------------------------------------------


class StoredValues(RegressorMixin, BaseEstimator):
    """A fitted regressor for scorers, whose predictions exist already."""

    decision = None

    def __init__(self, values):
        self.values = values

    def predict(self, rows):
        """The values."""
        return self.values


class StoredLabels(ClassifierMixin, BaseEstimator):
    """A fitted classifier for scorers; without probabilities it has no ``predict_proba``."""

    def __init__(self, classes, decision, probabilities=None, flat=True):
        self.classes = classes
        self.decision = decision
        self.probabilities = probabilities
        self.flat = flat
        self.classes_ = classes

    def predict(self, rows):
        """Labels of the decisions."""
        return chosen_labels(self.decision, self.classes, self.flat)

    def decision_function(self, rows):
        """The decisions."""
        return self.decision

    @available_if(lambda stored: stored.probabilities is not None)
    def predict_proba(self, rows):
        """The probabilities."""
        return self.probabilities


def stored_outputs(classes, flat, decision, probabilities=None):
    """Decisions (or values, where there are no classes) as a fitted estimator for the scorers."""
    if classes is None:
        return StoredValues(decision[:, 0] if flat else decision)
    return StoredLabels(classes, decision, probabilities, flat)


def stored_with_confounds(estimator, X, confounds):
    """Predictions of a fitted estimator for X with its confounds, which scorers do not pass on."""
    if not is_classifier(estimator):
        return StoredValues(estimator.predict(X, confounds=confounds))
    proba = estimator.predict_proba(X, confounds=confounds) if hasattr(estimator, "predict_proba") else None
    return StoredLabels(estimator.classes_, estimator.decision_function(X, confounds=confounds), proba)


# -- scorers of scikit-learn -------------------------------------------------------------------------------------------


def check_single(scoring, remedy):
    """Refuse several metrics where one is needed."""
    if not (scoring is None or isinstance(scoring, str | Metric) or callable(scoring)):
        raise ValueError(f"scoring={scoring!r} names several metrics; {remedy}")


def wants_probabilities(scorer, *, at_hand=False):
    """Whether a scorer takes probabilities alone; ``at_hand``: or takes them first, where there are any."""
    response = getattr(scorer, "_response_method", "")
    return (response if isinstance(response, str) or not at_hand else response[0]) == "predict_proba"


def named_scorers(scoring):
    """{name: (argument, its scorer)} of one score or several; empty where scikit-learn refuses one."""
    single = isinstance(scoring, str) or callable(scoring)
    try:
        scores = {"score": scoring} if single else scoring
        names = list(scores)
        if len(set(names)) < len(names) or not all(isinstance(name, str) for name in names):
            return {}
        arguments = scores if isinstance(scores, dict) else dict(zip(names, names, strict=True))
        return {name: (argument, get_scorer(argument)) for name, argument in arguments.items()}
    except (ValueError, TypeError):
        return {}


def with_scorers(scoring):
    """``scoring=`` with scikit-learn's scorers in the place of each :class:`Metric`, for scores of single splits."""
    if isinstance(scoring, Mapping):
        return {name: with_scorers(score) for name, score in scoring.items()}
    if not isinstance(scoring, Metric):
        return scoring
    if scoring.pooled:
        raise ValueError(f"scoring={scoring!r} is of all held-out rows together; it is for permutation tests.")
    return scorer_of(scoring)


def is_function(scorer):
    """Whether a scorer is a function that is handed the fitted estimator itself."""
    return callable(scorer) and not isinstance(scorer, _BaseScorer)


def _score_rows(scorer, X, standin, rows, y, **score_params):
    """A user's ``scorer(estimator, X, y)``, called with the fitted estimator of the split and the rows themselves."""
    rows = rows_of(standin.run.estimator, X, rows[:, 0], standin.train_)
    return scorer(standin.materialise(), rows, y, **score_params)


def scoring_of_rows(scoring, X):
    """Scorers for stand-ins: functions of a fitted estimator get that of the split and rows of X."""
    if isinstance(scoring, dict):
        return {name: scoring_of_rows(scorer, X) for name, scorer in scoring.items()}
    return partial(_score_rows, scoring, X) if is_function(scoring) else scoring


def check_scorers_of_confounds(scoring):
    """Refuse functions of a fitted estimator: its predictions of X alone take confounds at their mean."""
    if any(map(is_function, scoring.values() if isinstance(scoring, dict) else [scoring])):
        raise ValueError(
            "confounds: a scorer that is a function asks fitted estimators for predictions of X alone, which take the"
            " confounds at their mean. Use a scorer by name, or make_scorer of a function of labels and predictions."
        )


# -- scores of many labelings ------------------------------------------------------------------------------------------


def score_decisions(scorer, classes, flat, D, truth, probabilities=None, weights=None):
    """Scores (b,) of decisions (b, k, t) by a scorer of scikit-learn, one labeling after the other."""
    rows, scores = np.arange(D.shape[2])[:, None], []
    params = {} if weights is None else {"sample_weight": weights}
    for place, (decision, true) in enumerate(zip(D, truth, strict=True)):
        proba = None if probabilities is None else probabilities[place]
        if classes is None:
            decision, true = decision.T, true[0] if flat else true.T
        elif flat:
            decision, true = decision[0] if len(decision) == 1 else decision.T, classes[true]
        else:
            decision, true = decision.T, chosen_labels(true.T, classes, flat)
        scores.append(scorer(stored_outputs(classes, flat, decision, proba), rows, true, **params))
    return np.array(scores)


def decision_columns(raw):
    """Decisions (b, k, t) of sets, from those of their rows, (b, t) or (b, t, k)."""
    return raw[:, None, :] if raw.ndim == 2 else raw.transpose(0, 2, 1)


def defined_scores(name, metric, D, truth):
    """Scores (b,) by a metric of many labelings; nan, with a warning, where it is not defined for these rows."""
    if D.shape[2] < metric.rows:
        warn_caller(
            f"{name} of a single row is not defined, and nan. Score all held-out predictions together, as loo_score_"
            " does, or take larger test sets.",
            UndefinedMetricWarning,
        )
        return np.full(len(D), np.nan)
    scores = metric.function(D, truth)
    if np.isnan(scores).any():
        warn_caller(f"{name} is not defined for test sets of one class and nan there.", UndefinedMetricWarning)
    return scores


@dataclass(frozen=True)
class Scoring:
    """The score of a permutation test: the argument, its metric of many labelings if it has one, its scorer."""

    argument: Any  # the name of a score, the function of a metric, or a scorer
    metric: Metric | None
    scorer: Any
    for_sklearn: Any  # the argument ``scoring`` of scikit-learn's functions

    @classmethod
    def of(cls, scoring, estimator):
        """The score of one argument ``scoring``; None is accuracy or R2."""
        if isinstance(scoring, Metric):
            return cls(scoring.function, scoring, scorer_of(scoring), scorer_of(scoring))
        metric = METRICS.get(scoring) if isinstance(scoring, str) else None
        for_sklearn = scorer_of(metric) if metric is not None and scoring not in get_scorer_names() else scoring
        scorer = check_scoring(estimator, scoring=for_sklearn)
        if scoring is None:
            scoring = "accuracy" if is_classifier(estimator) else "r2"
            metric = METRICS[scoring]
        return cls(scoring, metric, scorer, for_sklearn)

    @property
    def name(self):
        """The score in words."""
        if isinstance(self.argument, str):
            return self.argument
        return getattr(self.argument, "__name__", None) or str(self.argument)

    @property
    def greater(self):
        """Whether larger is better."""
        return self.metric is None or self.metric.greater

    @property
    def pooled(self):
        """Whether it is of all held-out rows together, not a mean over the splits."""
        return self.metric is not None and self.metric.pooled

    @property
    def width(self):
        """How many numbers it gives."""
        return 1 if self.metric is None else self.metric.width

    def check(self, task, splits):
        """Refuse scores that are not defined for this task or for so few held-out rows."""
        metric = self.metric
        if (
            metric is not None
            and isinstance(self.for_sklearn, _BaseScorer)
            and metric.labels != (task.codes is not None)
        ):
            kind = "class labels, one a row" if metric.labels else "values"
            raise ValueError(f"scoring={self.name!r} is for {kind}.")
        self.check_rows((sum if self.pooled else min)(len(test) for _, test in splits))

    def check_rows(self, smallest):
        """Refuse scores that are not defined for so few held-out rows."""
        if self.metric is not None and smallest < self.metric.rows:
            raise ValueError(
                f"scoring={self.name!r} needs at least {self.metric.rows} held-out rows and cv leaves out {smallest};"
                " use k-fold splits, or a score of single rows such as accuracy or neg_mean_squared_error."
            )

    def _has_metric(self, task):
        """Whether the score has a metric that suits the task; otherwise scikit-learn's scorer checks it."""
        return self.metric is not None and self.metric.suits(task)

    def takes_decisions(self, task):
        """Whether held-out decisions are enough for the score."""
        if task.readout.cuts:  # the cut is made from leave-one-out scores of every labeling
            return False
        if self.for_sklearn is None or self._has_metric(task):  # None: accuracy or R2
            return True
        response = getattr(self.scorer, "_response_method", None)
        # Decisions of columns are the decision function itself, or it up to a constant a row.
        absolute = task.n_classes == 2 or task.readout.coding != "indicator"
        plain = response == "predict" or (response == "decision_function" and absolute)
        return isinstance(self.scorer, _BaseScorer) and plain

    def score_function(self, estimator_task, *, sklearn_rounding=False, **options):
        """A function from decisions (b, k, t) and truth to scores (b,).

        ``sklearn_rounding``: equal to scikit-learn's to the last bit. ``options`` are for scorers of scikit-learn:
        ``probabilities`` (b, t, c) and ``weights`` (t,), or None.
        """
        if self.metric is None or not self._has_metric(estimator_task.task) or options.get("weights") is not None:
            return partial(score_decisions, self.scorer, estimator_task.classes, estimator_task.flat, **options)
        return (self.metric.sklearn_rounding if sklearn_rounding else None) or self.metric.function

    def scores(self, estimator_task, D, truth, **options):
        """Scores (b,) of decisions (b, k, t), nan with a warning where they are not defined; options as above."""
        score = self.score_function(estimator_task, **options)
        if self.metric is None or score is not self.metric.function:  # a scorer of scikit-learn has its own warnings
            return score(D, truth)
        return defined_scores(self.name, self.metric, D, truth)


# -- scores of a search ------------------------------------------------------------------------------------------------


def scores_by_name(estimator, scoring, *, pooled=False):
    """({name: Scoring}, whether there may be several) of ``scoring=``; one score is called "score".

    ``pooled``: whether scores of all held-out rows together are taken.
    """
    several = isinstance(scoring, Mapping | list | tuple | set)
    arguments: Any = {"score": scoring}
    if several:
        arguments = scoring if isinstance(scoring, Mapping) else {name: name for name in scoring}
        if not arguments or len(arguments) < len(scoring) or not all(isinstance(name, str) for name in arguments):
            raise ValueError(
                f"scoring={scoring!r} must be a score, a list of different names, or a dict {{name: score}}."
            )
    scorings = {name: Scoring.of(argument, estimator) for name, argument in arguments.items()}
    for resolved in scorings.values():
        if resolved.pooled and not pooled:
            raise ValueError(
                f"scoring={resolved.name!r} is of all held-out rows together; it is for permutation tests."
            )
    return scorings, several


def deciding_scoring(scoring, refit):
    """The score by which a search with these ``scoring=`` and ``refit=`` decides; None: it decides by the criterion."""
    if not isinstance(scoring, Mapping | list | tuple | set):
        return scoring
    return scoring.get(refit) if isinstance(scoring, Mapping) else refit or None


def search_scores(estimator, scoring, refit, classes):
    """The :class:`HeldOutScores` of ``scoring=`` and ``refit=`` of a search; None is the estimator's own score."""
    scorings, several = scores_by_name(estimator, scoring)
    for resolved in scorings.values():
        if scoring is not None and is_function(resolved.scorer):
            raise ValueError(
                f"scoring={resolved.argument!r} is a function that is handed a fitted estimator, and this search fits"
                " none: it has the held-out predictions of every candidate from one decomposition. Use a name,"
                " make_scorer of a function of y and predictions, or scikit-learn's GridSearchCV."
            )
    deciding = None if scoring is None else refit if several else "score"
    if several and refit is False:
        deciding = None
    elif several and refit not in scorings:
        raise ValueError(
            f"refit={refit!r}: with several scores it must name the one of {sorted(scorings)} that decides, or be False"
            " to compare candidates only."
        )
    return HeldOutScores(scorings, classes, deciding, scoring is not None, several)


@dataclass(frozen=True)
class HeldOutScores:
    """Scores of the held-out decisions of any candidate, and which of them decides."""

    scorings: dict  # {name: Scoring}
    classes: np.ndarray | None
    deciding: str | None  # None: the criterion does
    requested: bool  # by the user; otherwise recorded where they follow without further models
    several: bool  # whether more than one may be there
    probabilities: bool = False  # whether they need a task's probabilities as well

    @cached_property
    def decides(self):
        """Whether one of them decides."""
        return self.deciding is not None

    @property
    def scorer(self):
        """scikit-learn's scorer, or {name: scorer} of several."""
        scorers = {name: scoring.scorer for name, scoring in self.scorings.items()}
        return scorers if self.several else scorers["score"]

    def fitting(self, task, tests, *, alone):
        """The scores of a task's decisions, refused where they do not follow; ``alone``: each row is left out alone."""
        calibrated = task.calibration is not None
        probabilities = any(
            wants_probabilities(scoring.scorer, at_hand=calibrated) for scoring in self.scorings.values()
        )
        rows = min(map(len, tests))
        if not self.requested:
            is_free = not (alone and task.readout.cuts) and rows >= self.scorings["score"].metric.rows
            return self if is_free else None
        if probabilities and not calibrated:
            raise ValueError(
                "scoring needs probabilities, and the estimator gives none; set calibration='sigmoid' of foldless'"
                " classifiers, or take a score of decisions."
            )
        if alone and (probabilities or task.readout.cuts):
            what = "calibrations" if probabilities else "cuts, as of threshold='loo',"
            raise ValueError(f"scoring would take {what} of a training part for each row with cv=None; use cv=5, say.")
        for scoring in self.scorings.values():
            scoring.check_rows(rows)
        return replace(self, probabilities=probabilities)

    def __call__(self, task, rows, tests, decisions, probabilities=None, weights=None):
        """Scores (n_scores, b, n_splits) of decisions (b, N, ...) of the rows, for the places that each split tests."""
        scores = np.empty((len(self.scorings), len(decisions), len(tests)))
        columns = decisions[:, None] if decisions.ndim == 2 else np.swapaxes(decisions, 1, 2)
        estimator_task = EstimatorTask(task, self.classes, task.codes is not None or columns.shape[1] == 1)
        for split, places in enumerate(tests):
            tested = rows[places]
            truth = task.Y[tested].T if task.codes is None else task.codes[tested]
            truth = np.broadcast_to(truth, (len(decisions), *truth.shape))
            proba = None if probabilities is None else probabilities[:, places]
            test_weights = None if weights is None else weights[places]
            for number, scoring in enumerate(self.scorings.values()):
                score = scoring.score_function(estimator_task, probabilities=proba, weights=test_weights)
                scores[number, :, split] = score(np.ascontiguousarray(columns[..., places]), truth)
        return scores

    def losses(self, scores):
        """The losses (b, 1) of the score that decides; smaller is better."""
        place = list(self.scorings).index(self.deciding)
        scoring = self.scorings[self.deciding]
        means = scores[place].mean(-1)
        if np.isnan(means).all():
            raise ValueError(
                f"scoring={scoring.name!r} is no number for any candidate; where a split tests rows of one class only,"
                " use a stratified splitter or fewer folds."
            )
        return (-means if scoring.greater else means)[:, None]

    def score_of(self, loss):
        """The score that decides, of its loss."""
        return -float(loss) if self.scorings[self.deciding].greater else float(loss)
