"""The checked parameters of a search, so that its parts never see the search estimator."""

import time
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from foldless._engine.tuning.criteria import Criterion
from foldless._engine.tuning.selection import Selection


@dataclass(frozen=True)
class Optimizer:
    """How a search looks for values between those of a grid: ``method=`` of ``FoldlessSearchCV`` with its details.

    Parameters
    ----------
    method : {"auto", "grid", "simplex", "gradient"}, default="auto"
        As ``method=`` of the search.
    bounds : dict, default=None
        {parameter: (low, high)} for "simplex", "gradient" and "auto" without a grid; the rest from the data. A
        parameter of the kernel that is "fixed" stays as it is. Those of a kernel object are named ``kernel__gamma``
        here, in ``param_grid`` and in ``best_params_``.
    n_starts : int, default=1
        Starting points for each candidate, the first at its own parameters, the others around it.
    max_iter : int, default=50
        Iterations from each starting point.
    feature_scaling : bool or array-like of shape (n_features,), default=False
        One gamma for each feature, or for each group of features with equal entries, for "rbf", "poly" and "laplacian"
        by "gradient" (or, for very few, "simplex"); "auto" first finds one gamma for all of them and starts from it.
    prior : {"auto", "cauchy", "bayes", None}, default="auto"
        Guards "press" against over-fitting where features have scales of their own: "cauchy" draws them to one gamma,
        "bayes" to 0 (Cawley & Talbot 2007), None leaves them free. "auto" is "cauchy" for "press", None otherwise
        (docs/benchmarks.md: better than no prior, not better than a single gamma).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from foldless import FoldlessSearchCV, LSSVC
    >>> from foldless.model_selection import Optimizer
    >>> X, y = load_iris(return_X_y=True)
    >>> optimizer = Optimizer("gradient", bounds={"gamma": (0.5, 2.0)}, max_iter=20)
    >>> search = FoldlessSearchCV(LSSVC(), method=optimizer).fit(X, y)
    >>> 0.5 <= search.best_params_["gamma"] <= 2.0
    True
    """

    method: Literal["auto", "grid", "simplex", "gradient"] = "auto"
    _: KW_ONLY
    bounds: Mapping[str, tuple[float, float] | Literal["fixed"]] | None = None
    n_starts: int = 1
    max_iter: int = 50
    feature_scaling: bool | ArrayLike = False
    prior: Literal["auto", "cauchy", "bayes"] | None = "auto"


def optimizer_of(search):
    """The :class:`Optimizer` of a search, whose ``method`` may be a name."""
    return search.method if isinstance(search.method, Optimizer) else Optimizer(search.method)


def scales_features(optimizer):
    """Whether every feature, or group of features, has a scale of its own."""
    scaling = optimizer.feature_scaling
    return bool(scaling) if isinstance(scaling, bool | np.bool_) else True


@dataclass(frozen=True)
class SearchSpec:
    """The checked parameters of a search and of its optimizer, under their names."""

    criterion: Criterion
    method: str = "grid"
    share: str = "all"
    criterion_weight: str | None = None  # as it was given
    row_weights: np.ndarray | None = None  # (n,), of the rows in the criterion; None: equal
    prior: str | None = None  # the name of the one in force
    bounds: Mapping = field(default_factory=dict)
    feature_scaling: bool = False  # also where there are groups of features
    feature_groups: Any = None  # of features that share a scale; None: each has its own
    n_starts: int = 1
    max_iter: int = 50
    tolerance: float = 1e-8  # of the criterion, relative, at which a way down ends
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int | None = None
    deadline: float | None = None  # of time.monotonic(), after which the best so far is taken
    scoring: Any = None  # of held-out decisions: ``_sklearn.scorers.HeldOutScores``

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

    def selection(self, task, splits, *, rows=None):
        """The criterion of the held-out fits of a task, or of some rows."""
        return Selection.of(
            task,
            self.criterion,
            splits=splits,
            rows=rows,
            balanced=self.criterion_weight == "balanced",
            row_weights=self.row_weights,
            weighted=self.weighs_scores,
            scoring=self.scoring,
        )
