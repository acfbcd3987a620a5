"""Counts of the held-out rows of a cross-validation, from which intervals of its scores are computed.

Scores of labels need the number of rows of each class that get each label. Where scikit-learn's loop scores the
splits, additional scorers count them on the same predictions.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sklearn
from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier
from sklearn.metrics import get_scorer, make_scorer

from foldless._engine.inference.counts import ANY_SCORE, HeldOutCounts, ScoreKind
from foldless._sklearn.adapters import FOLDLESS_ESTIMATORS
from foldless._sklearn.pipelines import split_steps
from foldless._sklearn.scorers import named_scorers
from foldless.estimators.metrics import score_kind

PREFIX = "rows of class "
MOST_CLASSES = 30  # of which the labels of rows are counted one pair of classes after the other


@dataclass(frozen=True)
class Counting:
    """The kinds of the scores of a cross-validation, and the counts of its held-out rows."""

    kinds: dict[str, ScoreKind]
    counts: HeldOutCounts | None

    @classmethod
    def of(cls, scoring, estimator, y, groups, splits):
        """The counting for ``scoring=`` of an estimator; rows that no split of a list ``splits`` tests do not count."""
        kinds = _kinds(scoring, estimator)
        if y is None or not is_classifier(estimator) or np.ndim(y) != 1:
            return cls(kinds, None)
        tested = np.ones(len(y), bool)
        if isinstance(splits, list):
            tested[:] = False
            tested[np.concatenate([test for _, test in splits])] = True
        return cls(kinds, HeldOutCounts.of(y, groups, tested))

    @property
    def of_labels(self):
        """Whether a score follows from labels, and labels can be counted."""
        return self.counts is not None and any(kind.of_labels for kind in self.kinds.values())

    def scoring(self, scoring):
        """``scoring=`` with scorers that count labels, where a score follows from labels."""
        classes = () if self.counts is None else self.counts.classes
        if not self.of_labels or len(classes) > MOST_CLASSES:
            return scoring
        scorers: dict[str, Any] = {name: scorer for name, (_, scorer) in named_scorers(scoring).items()}
        routed = sklearn.get_config().get("enable_metadata_routing", False)
        for i, true in enumerate(classes):
            for j, chosen in enumerate(classes):
                scorer = make_scorer(_RowsOf(true, chosen))
                scorers[f"{PREFIX}{i} {j}"] = scorer.set_score_request(sample_weight=False) if routed else scorer
        return scorers

    def taken_from(self, result):
        """(scikit-learn's dictionary without the counts of labels, this object with them)."""
        scores = {name: values for name, values in result.items() if PREFIX not in name}
        of_classes = [values for name, values in result.items() if name.startswith(f"test_{PREFIX}")]
        if not of_classes or not np.isfinite(of_classes).all():
            return scores, self
        return scores, self.with_confusion(np.sum(of_classes, axis=1))

    def with_confusion(self, numbers):
        """The same with numbers (c * c,) of rows of each class that got each label."""
        assert self.counts is not None
        n_classes = len(self.counts.classes)
        return replace(self, counts=self.counts.with_confusion(numbers.reshape(n_classes, n_classes)))

    def kind(self, name):
        """The :class:`ScoreKind` of a score of the result."""
        return replace(self.kinds.get(name, ANY_SCORE), name=name)


@dataclass(frozen=True)
class _RowsOf:
    """The number of rows of one class that get one label."""

    true: Any
    chosen: Any
    __name__ = "rows_of_class"

    def __call__(self, truth, predicted):
        return np.count_nonzero((np.asarray(truth) == self.true) & (np.asarray(predicted) == self.chosen))


def _kinds(scoring, estimator):
    """{name: :class:`ScoreKind`} of ``scoring=``; None is the estimator's own score."""
    if scoring is not None:
        scorers = named_scorers(scoring).items()
        return {name: score_kind(argument, scorer) for name, (argument, scorer) in scorers}
    last = split_steps(estimator).last
    score = getattr(type(last), "score", None)
    if not isinstance(last, FOLDLESS_ESTIMATORS) and score not in (ClassifierMixin.score, RegressorMixin.score):
        return {}
    name = "accuracy" if is_classifier(last) else "r2"
    return {"score": score_kind(name, get_scorer(name))}
