"""Scores asked of a cross-validation that goes split by split; pooled ones are made of what its scorers are shown."""

import numpy as np
from sklearn.metrics import make_scorer

from foldless._engine.permutation.tally import Found


class Shown:
    """A score of 0 that remembers the labels and predictions that it is shown."""

    __name__ = "shown"  # scorers are named by their functions

    def __init__(self):
        self.pairs = []

    def __call__(self, *pair):
        """0."""
        self.pairs.append(pair)
        return 0.0


class SplitScores:
    """The scores {name: Scoring} of one labeling.

    ``scoring`` is what a cross-validation is to take for them; a pooled score is 0 there, and remembers labels and
    predictions of every split.
    """

    def __init__(self, scorings, n_splits):
        self.scorings, self.n_splits = scorings, n_splits
        self._shown = {name: Shown() for name, each in scorings.items() if each.pooled}
        self.scoring = {name: self._scorer(name, each) for name, each in scorings.items()}
        if len(scorings) == 1 and not self._shown:
            (self.scoring,) = (each.asked for each in scorings.values())  # None as well: the estimator's own

    def _scorer(self, name, scoring):
        if not scoring.pooled:
            return scoring.scorer if scoring.asked is None else scoring.asked
        return make_scorer(self._shown[name], response_method=scoring.metric.response)

    def found(self, result, choices=None):
        """What is found, from {"test_name": scores of all splits} of that cross-validation."""
        means, of_splits = [], []
        for name, scoring in self.scorings.items():
            each = np.asarray(result[f"test_{name}"], float)[:, None]
            mean = np.mean(each[:, 0])
            if scoring.pooled:  # a search scores its inner splits after the outer ones
                shown = zip(*self._shown[name].pairs[: self.n_splits], strict=True)
                mean = scoring.metric.theirs(*map(np.concatenate, shown))
                each = np.full((len(each), scoring.width), np.nan)
            means.append(np.atleast_1d(mean))
            of_splits.append(each)
        return Found(np.concatenate(means)[None], np.hstack(of_splits), choices=choices)
