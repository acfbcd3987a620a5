"""What a search found, in the words of the estimator's parameters."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata


@dataclass(frozen=True)
class Outcome:
    """All settings with their losses, the chosen ones (one, or one for each class) and the way there."""

    classes: np.ndarray | None
    params: list  # of every setting
    losses: np.ndarray
    chosen: list  # places of the best among them
    best: list  # their parameters, one dictionary for each alpha
    loss: float
    history: list
    slope: float | None = None  # of the chosen descent
    heldout: tuple | None = None  # row numbers and held-out fits (or decisions) of the chosen setting, where at hand
    feature_scales: np.ndarray | None = None  # one row for each of the chosen

    def table(self):
        """``cv_results_`` in the shape of GridSearchCV's."""
        columns: dict = {"params": self.params}
        for name in sorted({name for each in self.params for name in each}):
            column = np.ma.masked_all(len(self.params), dtype=object)
            for place, each in enumerate(self.params):
                if name in each:
                    column[place] = each[name]
            columns[f"param_{name}"] = column
        columns["mean_test_score"] = -self.losses
        columns["rank_test_score"] = rankdata(self.losses, method="min").astype(int)
        return columns
