"""Scores asked of a cross-validation that goes split by split; pooled ones are made of what its scorers are shown."""

import numpy as np
from sklearn.metrics import make_scorer

from foldless.permutation.tally import Found


class SplitScores:
    """The scores {name: Scoring} of one labeling.

    ``scoring`` is what a cross-validation is to take for them; a pooled score is 0 there, and remembers labels and
    predictions of every split.
    """

    def __init__(self, scorings, n_splits):
        self.scorings, self.n_splits = scorings, n_splits
        self._shown: dict = {name: [] for name, each in scorings.items() if each.pooled}
        self.scoring = {name: self._scorer(name, each) for name, each in scorings.items()}
        if len(scorings) == 1 and not self._shown:
            (self.scoring,) = (each.asked for each in scorings.values())  # None as well: the estimator's own

    def _scorer(self, name, scoring):
        if not scoring.pooled:
            return scoring.scorer if scoring.asked is None else scoring.asked
        return make_scorer(
            lambda *shown: self._shown[name].append(shown) or 0.0, response_method=scoring.metric.response
        )

    def found(self, result):
        """The scores, from {"test_name": scores of all splits} of that cross-validation."""
        each = np.column_stack([result[f"test_{name}"] for name in self.scorings]).astype(float)
        means = np.array([np.mean(column) for column in each.T])
        for number, (name, scoring) in enumerate(self.scorings.items()):
            if scoring.pooled:  # a search scores its inner splits after the outer ones
                truth, outputs = zip(*self._shown[name][: self.n_splits], strict=True)
                each[:, number], means[number] = (
                    np.nan,
                    scoring.metric.theirs(np.concatenate(truth), np.concatenate(outputs)),
                )
        return Found(means[None], each)
