"""Nested cross-validation: its data, checks of outer splits, inner splits, and the result of an outer split."""

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import _safe_indexing

from foldless._engine.heldout.sets import split_that_repeats_rows
from foldless._sklearn.splits import draw_splits


@dataclass(frozen=True)
class NestedData:
    """The data of a nested cross-validation, and its inner splits."""

    search: Any
    X: Any
    y: Any
    groups: Any = None
    sample_weight: Any = None
    confounds: Any = None
    probabilities: bool = False  # whether the scores need them
    steps: Any = None  # transformers in front of the search, fitted on every training part
    keeps: bool = False  # whether the fitted estimators are returned

    def check(self, outer):
        """Refuse outer splits that cannot be scored."""
        if not outer:
            raise ValueError("cv holds no split.")
        inner = self.search.cv
        if not (inner is None or isinstance(inner, Integral) or hasattr(inner, "split")):
            raise ValueError(
                f"cv={inner!r} of the search must be a number or a splitter: a list of splits fits one set of rows."
            )
        active = np.ones(len(self.y), bool) if self.sample_weight is None else self.sample_weight > 0
        one_label = np.ndim(self.y) == 1
        if self.probabilities and not one_label:
            raise ValueError("scoring needs probabilities, and rows with several labels get none; score decisions.")
        classes = np.unique(np.asarray(self.y)) if one_label and is_classifier(self.search.estimator) else None
        repeating = split_that_repeats_rows(outer)
        if repeating is not None:
            raise ValueError(f"cv: the training part of split {repeating} repeats rows.")
        for number, (train, test) in enumerate(outer):
            part = f"the training part of split {number}"
            if np.isin(test, train).any():
                raise ValueError(f"cv: split {number} tests rows that it trains on; such a score says nothing.")
            rows = train[active[train]]
            if len(rows) < 2 or not len(test):
                raise ValueError(f"cv: split {number} trains on {len(rows)} rows and tests {len(test)}.")
            missing: Any = [] if classes is None else np.setdiff1d(classes, np.asarray(self.y)[rows])
            if len(missing):
                raise ValueError(f"cv: {part} lacks class {missing[0]}; use a stratified splitter or fewer folds.")

    def inner_splits(self, train):
        """The splits of ``search`` inside a training part, in row numbers of all data; None for leave-one-out."""
        X, y = _safe_indexing(self.X, train), _safe_indexing(self.y, train)
        groups = None if self.groups is None else _safe_indexing(self.groups, train)
        splits = draw_splits(self.search.cv, self.search.estimator, X, y, groups)
        return None if splits is None else [(train[inside], train[outside]) for inside, outside in splits]

    def selections(self, spec, task, outer, inner):
        """The criterion of a search in every outer training part, with its inner splits."""
        active = task.problem.active
        return [
            spec.selection(task, splits, rows=np.intersect1d(train, active))
            for (train, _), splits in zip(outer, inner, strict=True)
        ]


@dataclass(frozen=True)
class OuterSplitResult:
    """The result of one outer split: the best parameters, and their held-out decisions inside and outside.

    Decisions are (t,) for two classes, (t, c) for more, and values (t, m) of a regression.
    """

    params: Any
    inner_loss: float
    outer_loss: float
    inner_rows: np.ndarray
    inner_decision: np.ndarray
    decision: np.ndarray
    probabilities: np.ndarray | None = None
    estimator: Any = None  # fitted on the training part, where it is to be returned
