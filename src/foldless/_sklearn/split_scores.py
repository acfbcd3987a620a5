"""Scores of one labeling from a cross-validation that goes split by split; pooled ones are computed at its end."""

import numpy as np
from sklearn.metrics import make_scorer

from foldless._engine.permutation.tally import LabelingScores


class PredictionRecorder:
    """A score function that returns 0 and records the labels and predictions of every call."""

    __name__ = "recorder"  # scorers are named by their functions

    def __init__(self):
        self.pairs = []

    def __call__(self, *pair):
        """0."""
        self.pairs.append(pair)
        return 0.0


class SplitScores:
    """The scores {name: Scoring} of one labeling.

    ``scoring`` is the argument of the cross-validation that finds them. A pooled score is 0 there, and its labels and
    predictions are recorded.
    """

    def __init__(self, scorings, n_splits):
        self.scorings, self.n_splits = scorings, n_splits
        self._recorders = {name: PredictionRecorder() for name, scoring in scorings.items() if scoring.pooled}
        self.scoring = {name: self._scorer(name, scoring) for name, scoring in scorings.items()}
        if len(scorings) == 1 and not self._recorders:
            (self.scoring,) = (scoring.for_sklearn for scoring in scorings.values())  # None: the estimator's own score

    def _scorer(self, name, scoring):
        if not scoring.pooled:
            return scoring.scorer if scoring.for_sklearn is None else scoring.for_sklearn
        return make_scorer(self._recorders[name], response_method=scoring.metric.response)

    def labeling_scores(self, result, choices=None):
        """The scores, from {"test_name": scores of all splits} of that cross-validation."""
        means, of_splits = [], []
        for name, scoring in self.scorings.items():
            scores = np.asarray(result[f"test_{name}"], float)[:, None]
            mean = np.mean(scores[:, 0])
            if scoring.pooled:  # a search scores its inner splits after the outer ones
                truth_and_predictions = zip(*self._recorders[name].pairs[: self.n_splits], strict=True)
                mean = scoring.metric.sklearn_metric(*map(np.concatenate, truth_and_predictions))
                scores = np.full((len(scores), scoring.width), np.nan)
            means.append(np.atleast_1d(mean))
            of_splits.append(scores)
        return LabelingScores(np.concatenate(means)[None], np.hstack(of_splits), choices=choices)
