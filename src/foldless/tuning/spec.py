"""What a search is asked for, after all checks: its parts work from this and never see the search estimator."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from foldless.tuning.criteria import Criterion
from foldless.tuning.selection import Selection


@dataclass(frozen=True)
class SearchSpec:
    """The checked parameters of a search, under the names of ``FoldlessSearchCV``."""

    criterion: Criterion  # with the first of the slopes, where it has one
    method: str = "grid"
    share: str = "all"
    criterion_weight: str | None = None
    slopes: tuple = (10.0,)
    prior: str | None = None  # the name of the one in force
    bounds: Mapping = field(default_factory=dict)
    feature_scaling: bool = False  # also where there are groups of features
    feature_groups: Any = None
    n_starts: int = 1
    max_iter: int = 50
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int = 0

    def selection(self, task, splits, sample_weight, *, slope=None, train=None):
        """The criterion of the held-out fits of a task, or of its rows ``train``; ``slope`` in place of the first."""
        criterion = self.criterion if slope is None else self.criterion.with_slope(slope)
        options = {"weight": self.criterion_weight, "sample_weight": sample_weight}
        return Selection.of(task, criterion, splits=splits, train=train, **options)
