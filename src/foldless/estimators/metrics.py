"""Scores of scikit-learn beside those of many labelings: ``METRICS``, their scorers, and how a scorer counts rows.

The functions of many labelings are in ``permutation.metrics``, what the numbers of rows allow in ``inference.counts``.
"""

import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn import metrics as sklearn_metrics
from sklearn.exceptions import UndefinedMetricWarning

from foldless._engine.inference.counts import ANY, PAIRS, PRECISION, ROWS, ScoreKind, limits_of
from foldless._engine.permutation.metrics import (
    Metric,
    accuracy,
    balanced_accuracy,
    ber,
    confusions,
    correlation,
    neg_mean_squared_error,
    r2,
    roc_auc,
)

KNOWN = "sklearn.metrics", "foldless"  # modules whose functions of labels are known to be functions of counts


def roc_auc_in_trapezoids(D, codes):
    """The same to the last bit of scikit-learn's, whose sums differ from those of ranks by rounding."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        return np.array([sklearn_metrics.roc_auc_score(truth, d) for truth, d in zip(codes, D[:, 0], strict=True)])


def _ber(truth, predictions, sample_weight=None):
    return 1.0 - sklearn_metrics.balanced_accuracy_score(truth, predictions, sample_weight=sample_weight)


METRICS = {
    "accuracy": Metric(accuracy, True, sklearn_metrics.accuracy_score),
    "balanced_accuracy": Metric(balanced_accuracy, True, sklearn_metrics.balanced_accuracy_score),
    "ber": Metric(ber, True, _ber, greater=False),
    "roc_auc": Metric(
        roc_auc,
        True,
        sklearn_metrics.roc_auc_score,
        "decision_function",
        sklearn_rounding=roc_auc_in_trapezoids,
        rows=2,
        classes=2,
    ),
    "r2": Metric(r2, False, sklearn_metrics.r2_score, rows=2),
    "r2_pooled": Metric(r2, False, sklearn_metrics.r2_score, rows=2, pooled=True),
    "neg_mean_squared_error": Metric(neg_mean_squared_error, False),
    "correlation": Metric(correlation, False, rows=2),
}


def confusion_metric(classes):
    """Confusion matrices as a :class:`Metric` of c * c numbers."""
    of_one = partial(_confusion, classes)
    return Metric(partial(confusions, len(classes)), True, of_one, pooled=True, width=len(classes) ** 2)


def _confusion(classes, truth, predictions):
    return sklearn_metrics.confusion_matrix(truth, predictions, labels=classes).ravel()


def scorer_of(metric):
    """scikit-learn's scorer of the plain value of a metric."""
    return sklearn_metrics.make_scorer(metric.sklearn_metric, response_method=metric.response)


# -- what intervals know of a score ------------------------------------------------------------------------------------


def score_kind(name, scorer=None):
    """The :class:`ScoreKind` of a score that was given by this name, or as something else, with its scorer."""
    name = name if isinstance(name, str) else "score"
    function: Any = getattr(scorer, "_score_func", None)
    limits = limits_of(name)
    if limits == ANY and getattr(function, "__module__", "").startswith("sklearn.metrics") and scorer._sign > 0:
        limits = limits_of(function.__name__.removesuffix("_score"))
    return ScoreKind(name, limits, _counting_of(scorer))


def _counting_of(scorer):
    """How a scorer of scikit-learn counts rows."""
    function: Any = getattr(scorer, "_score_func", None)
    if not getattr(function, "__module__", "").startswith(KNOWN):
        return None
    sign, options = scorer._sign, scorer._kwargs
    if function is sklearn_metrics.accuracy_score and sign > 0 and not options:
        return ROWS
    if function is sklearn_metrics.roc_auc_score and sign > 0 and options.get("max_fpr") is None:
        return PAIRS
    if function is sklearn_metrics.average_precision_score and sign > 0 and "pos_label" not in options:
        return PRECISION
    weighted = "sample_weight" in inspect.signature(function).parameters
    return _Weighted(function, sign, options) if weighted and scorer._response_method == "predict" else None


@dataclass(frozen=True)
class _Weighted:
    """The score of a scorer of labels, as a function of labels and the weights of rows."""

    function: Callable
    sign: int
    options: dict

    def __call__(self, truth, predicted, weight):
        return self.sign * self.function(truth, predicted, sample_weight=weight, **self.options)
