"""Requests: the arguments of the public functions as one record each, which the planner and its relatives read.

CallRequest           what all functions share
CrossValidation       cross_val_predict, cross_validate, cross_val_score, explain; the models of intervals
NestedRequest         nested_cross_validate
PermutationRequest    permutation_test_score, permutation_test_pattern
"""

from dataclasses import dataclass, replace
from typing import Any

from foldless._sklearn.steps import FittedSteps, StepsLike, front_of


@dataclass(frozen=True)
class CallRequest:
    """The arguments that the public functions share."""

    estimator: Any
    X: Any
    y: Any = None
    groups: Any = None
    cv: Any = None
    scoring: Any = None
    params: dict | None = None
    confounds: Any = None  # an array or Confounds
    steps: StepsLike = "each"
    n_jobs: int | None = None
    verbose: int = 0

    def behind_steps(self):
        """(:class:`FittedSteps`, the same request behind them) for ``steps="once"``; else the request as it is."""
        front: FittedSteps = front_of(self.estimator, self.X, self.params, self.steps)
        return front, replace(self, estimator=front.estimator, X=front.X, params=front.params)


@dataclass(frozen=True)
class CrossValidation(CallRequest):
    """The request of one cross-validation."""

    function: str = "cross_validate"  # the name of the public function
    method: str = "predict"


@dataclass(frozen=True)
class NestedRequest(CallRequest):
    """The request of a nested cross-validation of a search."""

    return_estimator: bool = False


@dataclass(frozen=True)
class PermutationRequest(CallRequest):
    """The request of a permutation test of scores or of patterns, which has fewer arguments."""

    n_permutations: int = 100
    random_state: Any = 0
    null: Any = None
    generalise: bool = False

    @property
    def null_name(self):
        """The name that ``null=`` gives, None where it is no name."""
        return self.null if isinstance(self.null, str) else None
