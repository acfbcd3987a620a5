"""The checked parameters of a search, so that its parts never see the search estimator."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from foldless.tuning.criteria import Criterion
from foldless.tuning.selection import Selection


@dataclass(frozen=True)
class SearchSpec:
    """The checked parameters of a search, under the names of ``FoldlessSearchCV``."""

    criterion: Criterion  # with the first of the slopes, where it has one
    method: str = "grid"
    share: str = "all"
    criterion_weight: str | None = None  # as it was given
    row_weights: np.ndarray | None = None  # (n,), of the rows in the criterion; None: equal
    slopes: tuple = (10.0,)
    prior: str | None = None  # the name of the one in force
    bounds: Mapping = field(default_factory=dict)
    feature_scaling: bool = False  # also where there are groups of features
    feature_groups: Any = None
    n_starts: int = 1
    max_iter: int = 50
    tolerance: float = 1e-8  # of the criterion, relative, at which a way down ends
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int | None = None
    deadline: float | None = None  # of time.monotonic(), after which the best so far is taken
    scoring: Any = None  # of held-out decisions: ``bridge.scorers.HeldOutScores``
    one_se: bool = False  # whether the simplest setting within a standard error of the best is chosen

    @property
    def choosing(self):
        """The same without scores that decide nothing."""
        return self if self.score_decides else replace(self, scoring=None)

    @property
    def score_decides(self):
        """Whether a score decides in the place of the criterion."""
        return self.scoring is not None and self.scoring.decides

    @property
    def weighs_scores(self):
        """Whether scores take the weights of the rows in the criterion: only if these are asked for by name."""
        return self.criterion_weight == "sample_weight" and self.row_weights is not None

    @property
    def out_of_time(self):
        """Whether the time limit is over."""
        return self.deadline is not None and time.monotonic() > self.deadline

    @property
    def ended_by(self):
        """What ends a search now, before its end."""
        return "time_limit" if self.out_of_time else "interrupted"

    def selection(self, task, splits, *, slope=None, rows=None):
        """The criterion of the held-out fits of a task, or of some rows; ``slope`` in place of the first."""
        criterion = self.criterion if slope is None else self.criterion.with_slope(slope)
        return Selection.of(
            task,
            criterion,
            splits=splits,
            rows=rows,
            balanced=self.criterion_weight == "balanced",
            row_weights=self.row_weights,
            weighted=self.weighs_scores,
            scoring=self.scoring,
        )
