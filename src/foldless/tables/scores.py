"""The scores that a run speaks of, and their intervals.

Nested scores have the interval of Nadeau & Bengio (2003). Leave-one-out scores have one from a bootstrap of the rows
(of whole groups, where there are groups), their held-out predictions kept. Those of classes are widened to what the
numbers of held-out rows allow (``inference.counts``). Every :class:`Score` says which.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata
from sklearn import metrics

from foldless._engine.inference.counts import HeldOutCounts
from foldless._engine.inference.intervals import widened_by_counts
from foldless._engine.readout.calibration import fit_calibration
from foldless.estimators.metrics import score_kind
from foldless.tables.parts import Fold, Score

CONFIDENCE = 0.9
BELOW = (
    "below one half, as all held-out rows are ranked together: without a row (or a group) its class is a little rarer,"
    " and a model that finds nothing leans to the other; it does not mean that predictions are the wrong way round"
)
N_BOOTSTRAP = 200


class Measure(NamedTuple):
    """A score: its name, scikit-learn's, a function of truth, prediction and decision, and its direction."""

    name: str
    scorer: str
    compute: Callable
    greater: bool = True

    @property
    def sign(self):
        """What scikit-learn's score is multiplied by: it turns losses round."""
        return 1.0 if self.greater else -1.0


ACCURACY = Measure("accuracy", "accuracy", lambda y, p, d: np.mean(y == p))
BALANCED = Measure("balanced accuracy", "balanced_accuracy", lambda y, p, d: _balanced(y, p))
ROC = Measure("area under the ROC curve", "roc_auc", lambda y, p, d: _area(y, d))
R2 = Measure("R2", "r2", lambda y, p, d: metrics.r2_score(y, p))
ABSOLUTE = Measure(
    "mean absolute error", "neg_mean_absolute_error", lambda y, p, d: metrics.mean_absolute_error(y, p), False
)
SQUARED = Measure(
    "root mean squared error",
    "neg_root_mean_squared_error",
    lambda y, p, d: metrics.root_mean_squared_error(y, p),
    False,
)


def _balanced(y, prediction):
    names, codes = np.unique(y, return_inverse=True)
    return np.mean(np.bincount(codes, y == prediction) / np.bincount(codes, minlength=len(names)))


def _area(y, decision):
    """Share of pairs of one row of each class that are in the right order, equal ones counted half."""
    second = y == y.max()
    n = np.count_nonzero(second)
    if n == len(y):
        return np.nan
    return (rankdata(decision)[second].sum() - n * (n + 1) / 2) / (n * (len(y) - n))


@dataclass(frozen=True)
class HeldOutBy:
    """Held-out predictions and decisions of all rows, and the scores they have."""

    prediction: np.ndarray
    decision: np.ndarray
    scores: tuple[Score, ...]
    probability: np.ndarray | None = None
    influence: np.ndarray | None = None


@dataclass(frozen=True)
class Nested:
    """The result of a nested cross-validation: folds, held-out values of all rows, scores and those of a baseline.

    ``params`` are the parameters of the machine that the search chose without each fold.
    """

    folds: tuple[Fold, ...]
    splits: list
    held_out: HeldOutBy
    baseline: tuple[Score, ...]
    params: tuple[dict, ...] = ()


def measures(rows):
    """The scores of a run, the one that it speaks of first: that of balanced classes where they are not."""
    if not rows.classifies:
        return (R2, ABSOLUTE, SQUARED)
    first = (BALANCED, ACCURACY) if rows.unbalanced else (ACCURACY, BALANCED)
    return (*first, ROC) if len(rows.schema.classes) == 2 else first


def calibrated(decision, codes, n_classes, weights=None):
    """Sigmoids that make probabilities of decisions, from decisions for held-out rows of classes ``codes``."""
    weights = np.ones(len(codes)) if weights is None else weights
    return fit_calibration("sigmoid", decision, codes, n_classes, weights)


def typical(rows, train):
    """What is said without a look at features: the most frequent class of some rows, or their mean."""
    if not rows.classifies:
        return np.average(rows.y[train], weights=None if rows.weights is None else rows.weights[train])
    names, counts = np.unique(rows.y[train], return_counts=True)
    return names[counts.argmax()]


def pooled_baseline(rows, splits, how):
    """Scores of :func:`typical`, said by each training part of its test rows, of all rows together."""
    said = np.empty(len(rows), dtype=rows.y.dtype)
    for train, test in splits:
        said[test] = typical(rows, train)
    values = [(each, float(each.compute(rows.y, said, np.zeros(len(rows))))) for each in measures(rows)]
    return tuple(Score(each.name, value, how=how, greater_is_better=each.greater) for each, value in values)


def bootstrapped(measure, rows, prediction, decision, seed, how):
    """The score of held-out predictions with an interval."""
    y = rows.y
    if rows.classifies:  # numbers are compared quicker than texts
        names = np.array(rows.schema.classes, dtype=object)
        y, prediction = np.searchsorted(names, y), np.searchsorted(names, prediction)
    value = float(measure.compute(y, prediction, decision))
    found = []
    for drawn in _bootstrap(rows, np.random.default_rng(seed)):
        if np.ptp(y[drawn]) > 0:
            found.append(measure.compute(y[drawn], prediction[drawn], decision[drawn]))
    low, high = (
        np.quantile(found, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]) if len(found) > 20 else (np.nan, np.nan)
    )
    how = how.format(units="rows" if rows.groups is None else "groups")
    if rows.classifies:
        kind = score_kind(measure.scorer, metrics.get_scorer(measure.scorer))
        counts = HeldOutCounts.of(y, rows.groups).with_labels(y, prediction)
        low, high, why = widened_by_counts(low, high, value, CONFIDENCE, kind, counts)
        how += why
    if measure is ROC and value < 0.5:
        how = f"{how}; {BELOW}"
    return Score(measure.name, value, float(low), float(high), CONFIDENCE, how, measure.greater)


def _bootstrap(rows, rng):
    """Row numbers drawn with replacement, or those of groups that are drawn so."""
    if rows.groups is None:
        for _ in range(N_BOOTSTRAP):
            yield rng.integers(len(rows), size=len(rows))
        return
    codes = np.unique(rows.groups, return_inverse=True)[1]
    members = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    for _ in range(N_BOOTSTRAP):
        yield np.concatenate([members[each] for each in rng.integers(len(members), size=len(members))])


def from_interval(measure, interval):
    """A :class:`Score` of the interval of a scikit-learn score."""
    low, high = sorted(measure.sign * end for end in (interval.low, interval.high))
    value = measure.sign * interval.score
    return Score(measure.name, value, low, high, CONFIDENCE, interval.description, measure.greater)
