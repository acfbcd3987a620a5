"""Held-out decisions of a search for any sets of rows, each left out alone: it chooses anew without every one."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from foldless._sklearn.pipelines import split_steps
from foldless._sklearn.route import RefitWarning, Route
from foldless._sklearn.steps import StepsLike


def splits_of(sets, n):
    """(train, test) pairs of sets of rows (b, t)."""
    rows = np.arange(n)
    return [(np.delete(rows, test), test) for test in sets]


def columns_of(values, response, classes):
    """Predictions or decisions of one set as (k, t)."""
    values = np.asarray(values)
    if classes is None:
        return values.reshape(len(values), -1).T
    if response == "predict":
        chosen = values == classes[:, None]
        return np.where(chosen[1:], 1.0, -1.0) if len(chosen) == 2 else chosen.astype(float)
    return values[None] if values.ndim == 1 else values.T


@dataclass(frozen=True)
class FitOptions:
    """Arguments that go with the rows of the models of an interval or a comparison."""

    groups: Any = None
    params: dict | None = None
    confounds: Any = None
    steps: StepsLike = "each"
    n_jobs: int | None = None  # of refits


@dataclass(frozen=True)
class Searched:
    """A search, or a pipeline that ends in one, on its rows; called with sets (b, t) it gives decisions (b, k, t)."""

    estimator: Any
    X: Any
    y: Any
    classes: np.ndarray | None
    route: Route
    options: FitOptions
    quick = False  # whether all sets follow from one fit

    @classmethod
    def of(cls, estimator, X, y, options, *, classes, response):
        """The search, unless probabilities are to be judged."""
        if response == "predict_proba":
            raise ValueError("scoring judges probabilities, which a search has no held-out ones of; use another.")
        name = type(split_steps(estimator).last).__name__
        return cls(estimator, X, y, classes, Route("nested", f"{name} chooses anew without every set of rows"), options)

    def __call__(self, sets):
        """Decisions (b, k, t)."""
        nested, options = type(split_steps(self.estimator).last)._nested_cross_validate, self.options
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RefitWarning)
            result = nested(
                self.estimator,
                self.X,
                self.y,
                cv=splits_of(sets, len(self.y)),
                groups=options.groups,
                params=options.params,
                confounds=options.confounds,
                steps=options.steps,
                n_jobs=options.n_jobs,
            )
        values = result.predictions if self.classes is None else result.decision
        return np.stack([columns_of(each, "decision_function", self.classes) for each in values])
