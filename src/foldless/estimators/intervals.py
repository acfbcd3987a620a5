"""Intervals of the score of a fitted estimator, from the P of its fit (the matrix that a fit makes of X alone)."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from foldless._engine.heldout.sets import Sets
from foldless._engine.inference.intervals import ScoreInterval, check_confidence, nested_interval
from foldless._engine.inference.partitions import (
    AT_A_TIME,
    ENOUGH_FOR_RANKS,
    MOST,
    PRECISION,
    ROW_SCORES,
    Judge,
    check_rows,
    scores_of_partitions,
)
from foldless._engine.linalg.threads import threads_by_size
from foldless._engine.linalg.types import RandomStateLike
from foldless.estimators.checks import check_option, check_whole
from foldless.estimators.metrics import METRICS, score_kind, scorer_of
from foldless.estimators.rows import reads_one_state


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
        check_confidence(confidence)
        check_whole("cv", cv, 3)
        if n_repeats is not None:
            check_whole("n_repeats", n_repeats, 1)
        task, solution = self._fitted_task, self._loo().whole
        judge = _judge(task, scoring)
        of_classes = task.codes is not None
        truth = task.codes[solution.rows] if of_classes else task.Y[solution.rows].T
        splitter = _splitter(cv, truth, judge, of_classes)
        random_state = check_random_state(random_state)

        def decide(sets):
            D = task.held_out_decisions(solution, Sets.of(sets)).reshape(*sets.shape, -1)
            return D[:, None] if D.ndim == 2 else np.swapaxes(D, 1, 2)

        def draw(number):
            return [_folds(splitter, truth, random_state) for _ in range(number)]

        def precise(scores):
            return scores[0].known_within(PRECISION)

        most, until = (MOST, precise) if n_repeats is None else (n_repeats, None)
        first = draw(min(AT_A_TIME, most))
        (scores,) = scores_of_partitions(first, draw, [decide], truth, judge, most=most, until=until)
        return nested_interval(scores, confidence, judge.kind)


def _judge(task, scoring):
    """The :class:`Judge` of ``scoring=``."""
    if scoring is None:
        scoring = "neg_mean_squared_error" if task.codes is None else "accuracy"
    metrics = {name: metric for name, metric in METRICS.items() if metric.suits(task) and not metric.pooled}
    by_row = () if task.codes is not None else ("neg_mean_absolute_error",)
    check_option("scoring", scoring, (*metrics, *by_row))
    of_rows, metric = ROW_SCORES.get(scoring), metrics.get(scoring)
    ranks = metric is not None and metric.rows > 1
    kind = score_kind(scoring, None if metric is None else scorer_of(metric))
    return Judge(None if metric is None else metric.function, of_rows, ENOUGH_FOR_RANKS if ranks else 2, kind)


def _splitter(cv, truth, judge, of_classes):
    """Folds of as many rows as the score needs, at most one for every row of the rarest class."""
    n = truth.shape[-1]
    check_rows(judge, n // 3, truth)
    rarest = np.bincount(truth).min() if of_classes else n
    if rarest < 3:
        raise ValueError(
            f"score_interval needs three folds with rows of every class, but the rarest class has {rarest} rows. Learn"
            " more rows of it."
        )
    most = min(cv, n // judge.least, rarest)
    return (StratifiedKFold if of_classes else KFold)(most, shuffle=True)


def _folds(splitter, truth, random_state):
    """The rows of each fold."""
    splitter.random_state = random_state.randint(2**31 - 1)
    n = truth.shape[-1]
    return [test for _, test in splitter.split(np.empty((n, 1)), truth if truth.ndim == 1 else None)]
