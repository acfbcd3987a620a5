"""Random partitions of the rows into folds, and the scores of all folds and pairs of folds of several models."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import partial
from itertools import chain
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold, check_cv
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import type_of_target

from foldless._engine.inference.counts import ScoreKind
from foldless._engine.inference.intervals import check_confidence, interval_of
from foldless._engine.inference.partitions import (
    AT_A_TIME,
    ENOUGH_FOR_RANKS,
    MOST,
    PRECISION,
    ROW_SCORES,
    Judge,
    check_folds,
    left_out,
    scores_of_partitions,
)
from foldless._sklearn.adapters import check_probabilities
from foldless._sklearn.progress import Progress
from foldless._sklearn.scorer_checks import check_scorers
from foldless._sklearn.scorers import Scoring, check_single, is_function, score_decisions
from foldless._sklearn.splits import row_numbers
from foldless.estimators.checks import check_option

MOST_REFITTED = 10  # partitions, where their number is not given and models are refitted


@dataclass(frozen=True)
class IntervalRequest:
    """The arguments of an interval beside the model and its rows."""

    scoring: Any
    cv: Any
    confidence: float
    method: str
    n_repeats: int | None
    random_state: Any


@dataclass(frozen=True)
class Partitions:
    """Partitions of the rows by a splitter, drawn anew as often as asked where it shuffles."""

    cv: Any
    X: Any
    y: Any
    groups: Any
    codes: np.ndarray | None  # class numbers
    classes: np.ndarray | None
    random_state: Any  # None: there is one partition

    @classmethod
    def of(cls, cv, X, y, groups, truth, classes, random_state):
        """Of ``cv=``: a number of folds is drawn at random, with groups kept together; a splitter says by itself."""
        codes = None if classes is None else truth
        if cv is None or isinstance(cv, Integral):
            kinds = (KFold, StratifiedKFold) if groups is None else (GroupKFold, StratifiedGroupKFold)
            most = 10 if groups is None else max(3, min(10, len(np.unique(groups)) // 2))
            if groups is None and codes is not None:  # every fold has rows of every class
                most = max(3, min(most, np.bincount(codes).min()))
            drawn = kinds[codes is not None](most if cv is None else cv, shuffle=True)
        else:
            drawn = copy.deepcopy(check_cv(cv, y, classifier=codes is not None))
        random = getattr(drawn, "shuffle", False)
        groups = None if groups is None else np.asarray(groups)
        return cls(drawn, X, y, groups, codes, classes, check_random_state(random_state) if random else None)

    @property
    def shuffled(self):
        """Whether there is more than one."""
        return self.random_state is not None

    def draw(self, number):
        """``number`` partitions, [[rows of each fold]]."""
        found = []
        for _ in range(number):
            if self.shuffled:
                self.cv.random_state = self.random_state.randint(2**31 - 1)
            splits = row_numbers(self.cv.split(self.X, self.y, self.groups), len(self.y))
            found.append([test for _, test in splits])
            self._check(found[-1])
        return found

    def _check(self, tests):
        rows = np.concatenate(tests)
        if len(rows) != len(self.y) or len(np.unique(rows)) != len(rows):
            raise ValueError(
                f"cv={self.cv!r} does not test every row once; folds are left out in pairs, so use KFold or a number of"
                " folds."
            )
        units, what = (
            (tests, "rows") if self.groups is None else ([np.unique(self.groups[rows]) for rows in tests], "groups")
        )
        if len(tests) < 3 or min(map(len, units)) < 2:
            raise ValueError(
                f"cv leaves out {len(tests)} folds, the smallest of {min(map(len, units))} {what}; intervals need"
                f" at least three folds of at least two {what} each."
            )
        if self.codes is None:
            return
        counts = np.array([np.bincount(self.codes[rows], minlength=self.codes.max() + 1) for rows in tests])
        gone = np.flatnonzero(np.sort(counts, axis=0)[-2:].sum(0) == counts.sum(0))
        if len(gone):
            name = None if self.classes is None else self.classes[gone[0]]
            raise ValueError(
                f"cv: two of the folds hold all {counts[:, gone[0]].sum()} rows of class {name}; use other"
                " folds, or leave out classes of few rows."
            )


def truth_and_classes(estimator, y):
    """(class numbers (n,), classes), or (values (m, n), None)."""
    if not is_classifier(estimator):
        return np.asarray(y, float).reshape(len(y), -1).T, None
    kind = type_of_target(y, input_name="y")
    if kind not in ("binary", "multiclass"):
        raise ValueError(f"y is {kind}; intervals and comparisons of classifiers take one label for each row.")
    classes, codes = np.unique(np.ravel(y), return_inverse=True)
    return codes, classes


def judge_of(scoring, estimator, y, classes):
    """(:class:`Judge`, what it judges) of ``scoring=``; None: accuracy or minus the squared error."""
    if scoring is None:
        scoring = "accuracy" if classes is not None else "neg_mean_squared_error"
    found = Scoring.of(scoring, estimator)
    if is_function(found.scorer):
        raise ValueError(f"scoring={scoring!r} is a function of a fitted estimator; use a name or make_scorer.")
    check_scorers([(found.name, found.scorer)], estimator, y)
    response = getattr(found.scorer, "_response_method", "predict")
    response = response if isinstance(response, str) else response[0]
    of_rows = ROW_SCORES.get(scoring) if isinstance(scoring, str) else None
    if found.metric is not None and found.metric.pooled:
        raise ValueError(
            f"scoring={found.name!r} is of all folds together; use 'neg_mean_squared_error', or 'r2' of each."
        )
    if response == "predict_proba" and of_rows is None:
        raise ValueError(f"scoring={found.name!r} judges probabilities; of these neg_log_loss has intervals.")
    metric, kind = found.metric, ScoreKind.of(found.name, found.scorer)
    known = metric is not None and metric.labels == (classes is not None)
    if known and metric.classes in (None, 0 if classes is None else len(classes)):
        least = ENOUGH_FOR_RANKS if metric.rows > 1 and of_rows is None else 2  # R2 of a few rows is anything
        return Judge(metric.function, of_rows, least, kind, classes), response
    score = partial(score_decisions, found.scorer, classes, np.ndim(y) == 1)
    return Judge(score, of_rows, kind=kind, labels=classes), response


def check_repeats(n_repeats):
    """Check that n_repeats is a positive integer or None."""
    if n_repeats is not None and (not isinstance(n_repeats, Integral) or n_repeats < 1):
        raise ValueError(f"n_repeats={n_repeats!r} must be a whole number, at least 1, or None.")


def scores_of_models(models, partitions, truth, judge, n_repeats, watch=None):
    """([FoldScores], [LeftOut]) of models, each given as a function from some of the sets to a ``LeftOut``.

    ``n_repeats=None``: until the standard errors of what ``watch`` makes of the scores are known, within limits.
    Without ``watch`` pairs of folds are not left out.
    """
    pairs = watch is not None
    n_repeats = n_repeats if pairs else n_repeats or 1

    def draw(number):
        folds = partitions.draw(number)
        check_folds(judge, folds, truth)
        return folds

    first = draw(1 if not partitions.shuffled else min(AT_A_TIME, n_repeats or AT_A_TIME))
    ready = [make([rows for *_, rows in chain(*left_out(first[:1], pairs).values())]) for make in models]
    quick = all(each.quick for each in ready) and not isinstance(judge.score, partial)  # of scikit-learn, one by one
    most = n_repeats or (MOST if quick else MOST_REFITTED)
    most = most if partitions.shuffled else 1
    progress = Progress(most, "partitions", None)  # in terminals, after some seconds

    def known(scores):
        return all(estimate.known_within(PRECISION) for estimate in watch(scores))

    scores = scores_of_partitions(
        first,
        draw,
        ready,
        truth,
        judge,
        most=most,
        until=known if n_repeats is None else None,
        groups=partitions.groups,
        pairs=pairs,
        step=lambda number: progress.step(steps=number),
    )
    return scores, ready


def interval_of_model(request, make, estimator, X, y, groups):
    """The :class:`ScoreInterval` of a model; ``make`` is a function from some sets of rows to a ``LeftOut``."""
    check_confidence(request.confidence)
    check_repeats(request.n_repeats)
    check_option("method", request.method, ("nested", "nadeau-bengio"))
    check_single(request.scoring, "score_interval takes one.")
    check_probabilities(request.scoring, estimator)
    truth, classes = truth_and_classes(estimator, y)
    judge, response = judge_of(request.scoring, estimator, y, classes)
    partitions = Partitions.of(request.cv, X, y, groups, truth, classes, request.random_state)
    model = partial(make, classes=classes, response=response)
    watch = (lambda scores: scores) if request.method == "nested" else None
    (scores,), (ready,) = scores_of_models([model], partitions, truth, judge, request.n_repeats, watch)
    return interval_of(scores, request.method, request.confidence, judge.kind, path=ready.route)
