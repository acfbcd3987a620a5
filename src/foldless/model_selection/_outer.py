"""What both ways of nested cross-validation share: the data, the outer splits, and outputs as scorers take them."""

from dataclasses import dataclass
from numbers import Integral

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_classifier
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import available_if

from foldless.bridge.candidates import draw_splits
from foldless.model_selection._search import FoldlessSearchCV
from foldless.readout.codings import chosen_labels
from foldless.tuning.criteria import class_weights, weights
from foldless.tuning.selection import Selection


@dataclass
class Outer:
    """What is given, and how a training part of it is cut out."""

    search: FoldlessSearchCV
    X: object
    y: object
    groups: object
    sample_weight: object
    probabilities: bool  # whether the scores want them
    steps: object = None  # transformers in front of the search, fitted on every training part

    def checked(self, outer):
        """The outer splits, refused where they cannot be judged."""
        if not outer:
            raise ValueError("cv holds no split.")
        inner = self.search.cv
        if not (inner is None or isinstance(inner, Integral) or hasattr(inner, "split")):
            raise ValueError(
                f"cv={inner!r} of the search must be a number or a splitter: a list of splits fits one set of rows."
            )
        active = np.ones(len(self.y), bool) if self.sample_weight is None else self.sample_weight > 0
        labelled = is_classifier(self.search.estimator)
        classes = np.unique(np.asarray(self.y)) if labelled else None
        for number, (train, test) in enumerate(outer):
            part = f"the training part of split {number}"
            if len(np.unique(train)) < len(train):
                raise ValueError(f"cv: {part} repeats rows.")
            if np.isin(test, train).any():
                raise ValueError(f"cv: split {number} tests rows that it trains on; such a score says nothing.")
            kept = train[active[train]]
            if len(kept) < 2 or not len(test):
                raise ValueError(f"cv: split {number} trains on {len(kept)} rows and tests {len(test)}.")
            if labelled:
                missing = np.setdiff1d(classes, np.asarray(self.y)[kept])
                if len(missing):
                    raise ValueError(f"cv: {part} lacks class {missing[0]}; use a stratified splitter or fewer folds.")
        return outer

    def inner_splits(self, train):
        """The splits of ``search`` inside a training part, in row numbers of all data."""
        given = (self.X, self.y, self.groups)
        X, y, groups = (None if each is None else _safe_indexing(each, train) for each in given)
        splits = draw_splits(self.search.cv, self.search.estimator, X, y, groups)
        return None if splits is None else [(train[inside], train[outside]) for inside, outside in splits]


@dataclass
class OuterSplitResult:
    """One outer split: the choice, its held-out outputs inside and outside."""

    params: object
    inner_loss: float
    outer_loss: float
    inner_rows: np.ndarray
    inside: object  # their outputs as scorers take them
    outside: object

    def scored(self, scorer, data, test):
        """(outer score, inner score)."""
        outer = scorer(self.outside, test[:, None], _safe_indexing(data.y, test))
        if wants_probabilities(scorer):
            return outer, np.nan
        return outer, scorer(self.inside, self.inner_rows[:, None], _safe_indexing(data.y, self.inner_rows))


def wants_probabilities(scorer):
    return getattr(scorer, "_response_method", "") == "predict_proba"


class Values(RegressorMixin, BaseEstimator):
    """A fitted regressor as scorers see it, whose predictions are known already."""

    decision = None

    def __init__(self, values):
        self.values = values

    def predict(self, rows):
        """The values."""
        return self.values


class Labels(ClassifierMixin, BaseEstimator):
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

    @available_if(lambda given: given.probabilities is not None)
    def predict_proba(self, rows):
        """The probabilities."""
        return self.probabilities


def given(setting, decision, probabilities=None):
    """Outputs of a setting's estimator for the scorers."""
    if setting.classes is None:
        return Values(decision[:, 0] if setting.flat else decision)
    return Labels(setting.classes, decision, probabilities)


def outer_loss(data, criterion, setting, test, fits, decision):
    """The criterion of outer held-out fits."""
    task = setting.task
    T = task.plus_minus_targets(test)
    counted, kind = np.ones(len(test)), data.search.criterion_weight
    if kind == "sample_weight" and data.sample_weight is not None:
        counted = data.sample_weight[test]
        if not counted.any():
            return np.nan
    W = class_weights(kind, task.codes[test], counted)[:, None] if criterion.whole else weights(kind, T, counted)
    outside = Selection(task, test, T, None, np.arange(len(test)), W, criterion)
    return float((outside.errors(decision) if criterion.whole else outside.losses_of_fits(fits)).sum())
