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

from foldless.bridge.progress import Progress
from foldless.bridge.scorers import Scoring, is_function, score_decisions
from foldless.bridge.splits import row_numbers
from foldless.inference.partitions import ROW_SCORES, Judge, fold_scores, left_out

AT_A_TIME = 10  # partitions
MOST, MOST_REFITTED = 200, 10  # partitions, where their number is not given
PRECISION = 0.05  # of the standard error, at which more partitions tell nothing new


@dataclass(frozen=True)
class Partitions:
    """Partitions of the rows by a splitter, drawn anew as often as asked where it shuffles."""

    cv: Any
    X: Any
    y: Any
    groups: Any
    codes: np.ndarray | None  # class numbers
    random_state: Any  # None: there is one partition

    @classmethod
    def of(cls, cv, X, y, groups, codes, random_state):
        """Of ``cv=``: a number of folds is drawn at random, with groups kept together; a splitter says by itself."""
        if cv is None or isinstance(cv, Integral):
            kinds = (KFold, StratifiedKFold) if groups is None else (GroupKFold, StratifiedGroupKFold)
            drawn = kinds[codes is not None](10 if cv is None else cv, shuffle=True)
        else:
            drawn = copy.deepcopy(check_cv(cv, y, classifier=codes is not None))
        random = getattr(drawn, "shuffle", False)
        return cls(drawn, X, y, groups, codes, check_random_state(random_state) if random else None)

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
        if len(tests) < 3 or min(map(len, tests)) < 2:
            raise ValueError(
                f"cv leaves out {len(tests)} folds, the smallest of {min(map(len, tests))} rows; intervals need"
                " at least three folds of at least two rows each."
            )
        if self.codes is None:
            return
        counts = np.array([np.bincount(self.codes[rows], minlength=self.codes.max() + 1) for rows in tests])
        gone = np.flatnonzero(np.sort(counts, axis=0)[-2:].sum(0) == counts.sum(0))
        if len(gone):
            raise ValueError(
                f"cv: two of the folds hold all {counts[:, gone[0]].sum()} rows of class number {gone[0]}; use other"
                " folds, or leave out classes of few rows."
            )


def truth_and_classes(estimator, y):
    """(class numbers (n,), classes), or (values (m, n), None)."""
    if not is_classifier(estimator):
        return np.asarray(y, float).reshape(len(y), -1).T, None
    if type_of_target(y) not in ("binary", "multiclass"):
        raise ValueError("y holds several labels a row; intervals and comparisons take one.")
    classes, codes = np.unique(y, return_inverse=True)
    return codes, classes


def judge_of(scoring, estimator, classes, flat):
    """(:class:`Scoring`, :class:`Judge`, what it judges) of ``scoring=``; None: accuracy or minus the squared error."""
    if scoring is None:
        scoring = "accuracy" if classes is not None else "neg_mean_squared_error"
    found = Scoring.of(scoring, estimator)
    if is_function(found.scorer):
        raise ValueError(f"scoring={scoring!r} is a function of a fitted estimator; use a name or make_scorer.")
    response = getattr(found.scorer, "_response_method", "predict")
    response = response if isinstance(response, str) else response[0]
    of_rows = ROW_SCORES.get(scoring) if isinstance(scoring, str) else None
    if response == "predict_proba" and of_rows is None:
        raise ValueError(f"scoring={found.name!r} judges probabilities; of these neg_log_loss has intervals.")
    metric = found.metric
    known = metric is not None and metric.labels == (classes is not None)
    if known and metric.classes in (None, 0 if classes is None else len(classes)):
        return found, Judge(metric.function, of_rows), response
    return found, Judge(partial(score_decisions, found.scorer, classes, flat), of_rows), response


def scores_of_models(models, partitions, truth, judge, n_repeats, verbose, watch):
    """([FoldScores], [LeftOut]) of models, each given as a function from some of the sets to a ``LeftOut``.

    ``n_repeats=None``: until the standard errors of what ``watch`` makes of the scores are known, within limits.
    """
    first = partitions.draw(1 if not partitions.shuffled else min(AT_A_TIME, n_repeats or AT_A_TIME))
    ready = [make([rows for *_, rows in chain(*left_out(first[:1]).values())]) for make in models]
    most = n_repeats or (MOST if all(each.quick for each in ready) else MOST_REFITTED)
    most = most if partitions.shuffled else 1
    progress = Progress(most, "partitions", verbose)
    found = None
    while found is None or len(found[0].S) < most:
        drawn = first if found is None else partitions.draw(min(AT_A_TIME, most - len(found[0].S)))
        new = [fold_scores(drawn, each, truth, [judge])[0] for each in ready]
        found = new if found is None else [old.extended(more) for old, more in zip(found, new, strict=True)]
        progress.step(steps=len(drawn))
        if n_repeats is None and all(each.known_within(PRECISION) for each in watch(found)):
            break
    return found, ready
