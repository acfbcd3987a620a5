"""Intervals of the score of a fitted estimator, from the P of its fit (the matrix that a fit makes of X alone)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from foldless._engine.heldout.sets import Sets
from foldless._engine.inference.intervals import ScoreInterval, check_confidence, nested_interval
from foldless._engine.inference.partitions import FoldPartitions, ScoreFunction, check_rows, scores_of_models
from foldless._engine.linalg.threads import threads_by_size
from foldless._engine.linalg.types import RandomStateLike
from foldless.estimators.checks import check_option, check_whole
from foldless.estimators.metrics import METRICS, score_kind, scorer_of
from foldless.estimators.rows import reads_one_state
from foldless.estimators.tensors import require_numpy


class ScoreIntervals:
    """Intervals of the score on new rows, for fitted estimators that solve a Task."""

    _fitted_task: Any
    _loo: Any

    @threads_by_size
    @reads_one_state
    def score_interval(
        self,
        *,
        scoring: str | None = None,
        cv: int = 10,
        confidence: float = 0.9,
        n_repeats: int | None = None,
        random_state: RandomStateLike = 0,
    ) -> ScoreInterval:
        """The score on new rows with an interval, from the training rows; ``loo_score_`` is one without an interval.

        Nested cross-validation (Bates, Hastie & Tibshirani 2023) with ``cv`` folds drawn at random, at most one for
        every row of the rarest class, without refits. ``scoring`` is "accuracy", or
        "neg_mean_squared_error" of values, by default; also "balanced_accuracy", "roc_auc", "r2", "correlation" and
        "neg_mean_absolute_error". ``n_repeats=None`` draws folds until the standard error is known within 10 %, at most
        100 times. For other scores, splitters and groups of rows see
        :func:`foldless.model_selection.score_interval`.
        """
        check_is_fitted(self)
        require_numpy(self, "score_interval")
        check_confidence(confidence)
        check_whole("cv", cv, 3)
        if n_repeats is not None:
            check_whole("n_repeats", n_repeats, 1)
        decider = FittedDecider(self._fitted_task, self._loo().full_fit)
        score = _score_function(decider.task, scoring)
        partitions = _partitions(cv, decider.truth, score, check_random_state(random_state))
        (scores,), _ = scores_of_models([lambda sets: decider], partitions, n_repeats)
        return nested_interval(scores, confidence, score.kind)


@dataclass(frozen=True)
class FittedDecider:
    """Held-out decisions of a fitted estimator, for any sets of its rows of positive weight."""

    task: Any
    solution: Any  # on its rows of positive weight
    quick: ClassVar[bool] = True  # all sets follow from one fit

    @property
    def truth(self):
        """Class numbers (n,), or values (m, n)."""
        rows = self.solution.rows
        return self.task.Y[rows].T if self.task.codes is None else self.task.codes[rows]

    def __call__(self, sets):
        """Decisions (b, k, t) of sets (b, t)."""
        D = self.task.held_out_decisions(self.solution, Sets.of(sets)).reshape(*sets.shape, -1)
        return np.swapaxes(D, 1, 2)


def _score_function(task, scoring):
    """The :class:`ScoreFunction` of ``scoring=``."""
    if scoring is None:
        scoring = "neg_mean_squared_error" if task.codes is None else "accuracy"
    metrics = {name: metric for name, metric in METRICS.items() if metric.suits(task) and not metric.pooled}
    by_row = () if task.codes is not None else ("neg_mean_absolute_error",)
    check_option("scoring", scoring, (*metrics, *by_row))
    metric = metrics.get(scoring)
    kind = score_kind(scoring, None if metric is None else scorer_of(metric))
    return ScoreFunction.of_metric(scoring, metric, kind)


def _partitions(cv, truth, score, random_state):
    """Folds of as many rows as the score needs, at most one for every row of the rarest class."""
    n, of_classes = truth.shape[-1], truth.ndim == 1
    check_rows(score, n // 3, truth)
    rarest = np.bincount(truth).min() if of_classes else n
    if rarest < 3:
        raise ValueError(
            f"score_interval needs three folds with rows of every class, but the rarest class has {rarest} rows. Learn"
            " more rows of it."
        )
    most = min(cv, n // score.least, rarest)
    splitter = (StratifiedKFold if of_classes else KFold)(most, shuffle=True)
    X, y = np.empty((n, 1)), truth if of_classes else None
    return FoldPartitions(splitter, lambda: splitter.split(X, y), truth, score, random_state=random_state)
