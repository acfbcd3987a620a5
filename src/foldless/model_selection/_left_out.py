"""Held-out decisions of one model for any sets of rows, each left out alone: what intervals and comparisons ask for."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.utils import indexable
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import _check_method_params

from foldless.bridge.pipelines import Search, split_steps
from foldless.bridge.planner import CrossValidation, Plan, plan
from foldless.bridge.route import RefitWarning, Route, warn_of_refits
from foldless.bridge.standin import StandIn
from foldless.bridge.steps import front_of
from foldless.linalg.threads import jobs_as_here

EVERY_SET = "without every fold and every pair of folds"


def splits_of(sets, n):
    """(train, test) pairs of sets of rows (b, t)."""
    rows = np.arange(n)
    return [(np.delete(rows, test), test) for test in sets]


@dataclass(frozen=True)
class LeftOut:
    """A model on its rows, ready to be asked for decisions (b, k, t) of the rows of sets (b, t) by the model without.

    k is 1 for two classes, else the number of classes, or of outputs of a regression. Where decisions do not tell what
    is predicted (a refitted SVC votes), and predictions are judged, decisions are 1 for the predicted class.
    """

    estimator: Any
    X: Any
    y: Any
    classes: np.ndarray | None
    response: str  # "predict", "decision_function" or "predict_proba": what is judged
    plan: Plan | None  # None for a search
    route: Route
    options: dict  # of ``nested`` for a search, n_jobs of refits
    nested: Any  # ``nested_cross_validate``

    @classmethod
    def of(cls, estimator, X, y, first, *, classes, response, nested, params=None, steps="each", **options):
        """The model, with its way chosen by some sets that are going to be asked for.

        ``options`` are groups, confounds and n_jobs.
        """
        front = front_of(estimator, X, params, steps)
        taken = split_steps(front.estimator).last
        X, y = indexable(front.X, y)
        if isinstance(taken, Search):
            if response == "predict_proba":
                raise ValueError("scoring judges probabilities, which a search has no held-out ones of; use another.")
            options |= {"params": front.params or None, "steps": steps}
            route = Route("nested", f"{type(taken).__name__} chooses anew without every set of rows")
            return cls(front.estimator, X, y, classes, response, None, route, options, nested)
        splits = splits_of(first, len(y))
        given = (front.estimator, X, y, splits, None, front.params, options.get("confounds"), False)
        chosen = plan(CrossValidation("cross_val_predict", *given))
        warn_of_refits(estimator, chosen.route, EVERY_SET)
        jobs = {"n_jobs": options.get("n_jobs")}
        return cls(front.estimator, X, y, classes, response, chosen, front.route(chosen.route), jobs, nested)

    @property
    def quick(self):
        """Whether all sets follow from one fit."""
        return self.plan is not None and self.plan.run is not None

    def __call__(self, sets):
        """Decisions (b, k, t)."""
        if self.plan is None:
            return self._searched(sets)
        if self.plan.run is None:
            return self._refitted(self.plan.loop, sets)
        run = self.plan.run
        task = run.task
        if self.response == "predict_proba" or task.readout.cuts or len(task.problem.active) < task.problem.n:
            return self._refitted({"estimator": StandIn(run), "X": run.rows, "params": None}, sets)
        raw = run.decide(sets)
        return raw[:, None] if raw.ndim == 2 else np.swapaxes(raw, 1, 2)

    def _searched(self, sets):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RefitWarning)
            found = self.nested(self.estimator, self.X, self.y, cv=splits_of(sets, len(self.y)), **self.options)
        values = found.predictions if self.classes is None else found.decision
        return np.stack([self._columns(each, "decision_function") for each in values])

    def _refitted(self, loop, sets):
        jobs = (
            delayed(_refit)(loop, self.y, train, test, self.response) for train, test in splits_of(sets, len(self.y))
        )
        found = Parallel(n_jobs=self.options.get("n_jobs"))(jobs_as_here(jobs))
        return np.stack([self._columns(*each) for each in found])

    def _columns(self, values, response):
        """Predictions or decisions of one set as (k, t)."""
        values = np.asarray(values)
        if self.classes is None:
            return values.reshape(len(values), -1).T
        if response == "predict":
            chosen = values == self.classes[:, None]
            return np.where(chosen[1:], 1.0, -1.0) if len(chosen) == 2 else chosen.astype(float)
        return values[None] if values.ndim == 1 else values.T


def _refit(loop, y, train, test, response):
    """(predictions, decisions or probabilities of the test rows, what they are) of a refit."""
    estimator = clone(loop["estimator"])
    params = _check_method_params(loop["X"], loop["params"] or {}, train)
    fitted = estimator.fit(*_safe_split(estimator, loop["X"], y, train), **params)
    rows, _ = _safe_split(estimator, loop["X"], y, test, train)
    if response == "decision_function" and not hasattr(fitted, "decision_function"):
        proba = fitted.predict_proba(rows)
        return proba[:, 1] - 0.5 if proba.shape[1] == 2 else proba, response
    return getattr(fitted, response)(rows), response
