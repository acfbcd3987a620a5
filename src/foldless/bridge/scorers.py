"""Scorers: of predictions that are known already, of rows that a scorer wants to see, of many labelings at once."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_classifier
from sklearn.metrics import check_scoring, get_scorer, get_scorer_names
from sklearn.metrics._scorer import _BaseScorer
from sklearn.utils.metaestimators import available_if

from foldless.estimators.access import rows_of
from foldless.permutation.metrics import METRICS, Metric
from foldless.readout.codings import chosen_labels

# -- estimators whose predictions are known ----------------------------------------------------------------------------


class KnownValues(RegressorMixin, BaseEstimator):
    """A fitted regressor as scorers see it, whose predictions are known already."""

    decision = None

    def __init__(self, values):
        self.values = values

    def predict(self, rows):
        """The values."""
        return self.values


class KnownLabels(ClassifierMixin, BaseEstimator):
    """The same for a classifier; without probabilities there is no ``predict_proba``."""

    def __init__(self, classes, decision, probabilities=None):
        self.classes, self.decision, self.probabilities = classes, decision, probabilities
        self.classes_ = classes

    def predict(self, rows):
        """Labels of the decisions."""
        return chosen_labels(self.decision, self.classes)

    def decision_function(self, rows):
        """The decisions."""
        return self.decision

    @available_if(lambda known: known.probabilities is not None)
    def predict_proba(self, rows):
        """The probabilities."""
        return self.probabilities


def known_outputs(classes, flat, decision, probabilities=None):
    """Decisions (or values, where there are no classes) as a fitted estimator for the scorers."""
    if classes is None:
        return KnownValues(decision[:, 0] if flat else decision)
    return KnownLabels(classes, decision, probabilities)


# -- scorers of scikit-learn -------------------------------------------------------------------------------------------


def check_single(scoring, remedy):
    """Refuse several metrics where one is wanted."""
    if not (scoring is None or isinstance(scoring, str | Metric) or callable(scoring)):
        raise ValueError(f"scoring={scoring!r} names several metrics; {remedy}")


def wants_probabilities(scorer):
    """Whether a scorer judges probabilities."""
    return getattr(scorer, "_response_method", "") == "predict_proba"


def named_scorers(scoring):
    """{name: (what was given, its scorer)} of one score or several; empty where scikit-learn does not know one."""
    single = isinstance(scoring, str) or callable(scoring)
    try:
        given = {"score": scoring} if single else scoring
        given = given if isinstance(given, dict) else {each: each for each in given}
        return {name: (each, get_scorer(each)) for name, each in given.items()}
    except (ValueError, TypeError):
        return {}


def is_function(scorer):
    """Whether a scorer is a function that is handed the fitted estimator itself."""
    return callable(scorer) and not isinstance(scorer, _BaseScorer)


def _score_rows(scorer, X, standin, rows, y, **score_params):
    """A user's ``scorer(estimator, X, y)``, called with the fitted estimator of the split and the rows themselves."""
    rows = rows_of(standin.run.estimator, X, rows[:, 0], standin.train_)
    return scorer(standin.materialise(), rows, y, **score_params)


def scoring_of_rows(scoring, X):
    """Scorers that read X or the estimator itself get both, where others are satisfied with predictions."""
    if isinstance(scoring, dict):
        return {name: scoring_of_rows(scorer, X) for name, scorer in scoring.items()}
    return partial(_score_rows, scoring, X) if is_function(scoring) else scoring


def check_scorers_of_confounds(scoring):
    """Refuse scorers that are handed fitted estimators: asked for X alone, these take confounds at their mean."""
    if any(map(is_function, scoring.values() if isinstance(scoring, dict) else [scoring])):
        raise ValueError(
            "confounds: a scorer that is a function asks fitted estimators for predictions of X alone, which take the"
            " confounds at their mean. Use a scorer by name, or make_scorer of a function of labels and predictions."
        )


# -- scores of many labelings ------------------------------------------------------------------------------------------


def _score_decisions(scorer, classes, flat, D, truth):
    """Scores (b,) of decisions (b, k, t) by a scorer of scikit-learn, one labeling after the other."""
    rows, scores = np.arange(D.shape[2])[:, None], []
    for decision, true in zip(D, truth, strict=True):
        if classes is None:
            known, true = known_outputs(None, flat, decision.T), true[0] if flat else true.T
        else:
            known, true = KnownLabels(classes, decision[0] if len(decision) == 1 else decision.T), classes[true]
        scores.append(scorer(known, rows, true))
    return np.array(scores)


@dataclass(frozen=True)
class Scoring:
    """The score of a permutation test: as it was given, its metric of many labelings if it has one, its scorer."""

    given: Any  # the name of a score, the function of a metric, or a scorer
    metric: Metric | None
    scorer: Any
    asked: Any  # what scikit-learn's functions are to take for it

    @classmethod
    def of(cls, scoring, estimator):
        """The score that ``scoring`` asks of an estimator; None is accuracy or R2."""
        if isinstance(scoring, Metric):
            return cls(scoring.function, scoring, scoring.scorer(), scoring.scorer())
        metric = METRICS.get(scoring) if isinstance(scoring, str) else None
        asked = metric.scorer() if metric is not None and scoring not in get_scorer_names() else scoring
        scorer = check_scoring(estimator, scoring=asked)
        if scoring is None:
            scoring = "accuracy" if is_classifier(estimator) else "r2"
            metric = METRICS[scoring]
        return cls(scoring, metric, scorer, asked)

    @property
    def name(self):
        """The score in words."""
        return self.given if isinstance(self.given, str) else getattr(self.given, "__name__", None) or str(self.given)

    @property
    def greater(self):
        """Whether larger is better."""
        return self.metric is None or self.metric.greater

    def check(self, task, splits):
        """Refuse scores that are not defined for this task or for so few held-out rows."""
        metric = self.metric
        if metric is not None:
            smallest = min(len(test) for _, test in splits)
            if isinstance(self.asked, _BaseScorer) and metric.labels != (task.codes is not None):
                raise ValueError(f"scoring={self.name!r} is for {'class labels' if metric.labels else 'values'}.")
            if smallest < metric.rows:
                raise ValueError(
                    f"scoring={self.name!r} needs at least {metric.rows} held-out rows and cv leaves out {smallest};"
                    " use k-fold splits, or a score of single rows such as accuracy or neg_mean_squared_error."
                )

    def _has_metric(self, task):
        """Whether the metric is one of such a task; scikit-learn says otherwise what it thinks of the score."""
        metric = self.metric
        if metric is None or metric.labels != (task.codes is not None):
            return False
        return metric.classes in (None, task.n_classes)

    def judges_decisions(self, task):
        """Whether held-out decisions are enough for the score."""
        if task.readout.cuts:  # the cut is made from leave-one-out scores of every labeling
            return False
        if self._has_metric(task):
            return True
        response = getattr(self.scorer, "_response_method", None)
        # Decisions of columns are the decision function itself, or it up to a constant a row.
        absolute = task.n_classes == 2 or task.readout.coding != "indicator"
        plain = response == "predict" or (response == "decision_function" and absolute)
        return isinstance(self.scorer, _BaseScorer) and plain

    def judge(self, built, *, as_theirs=False):
        """A function from decisions (b, k, t) and truth to scores (b,); ``as_theirs``: to scikit-learn's last bit."""
        if self.metric is None or not self._has_metric(built.task):
            return partial(_score_decisions, self.scorer, built.classes, built.flat)
        return (self.metric.as_theirs if as_theirs else None) or self.metric.function
