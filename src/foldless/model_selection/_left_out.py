"""Held-out decisions of one model for any sets of rows, each left out alone: what intervals and comparisons ask for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import _check_method_params

from foldless._engine.linalg.threads import jobs_as_here
from foldless._sklearn.pipelines import Search, split_steps
from foldless._sklearn.planner import CrossValidation, CrossValidationPlan, plan
from foldless._sklearn.route import Route, warn_of_refits
from foldless._sklearn.standin import StandIn
from foldless._sklearn.steps import front_of
from foldless.estimators.checks import rows_and_labels
from foldless.model_selection._searched import Searched, columns_of, splits_of

EVERY_SET = "without every fold and every pair of folds"


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
    plan: CrossValidationPlan
    route: Route
    n_jobs: int | None  # of refits

    @classmethod
    def of(cls, estimator, X, y, options, first, *, classes, response):
        """The model with its :class:`FitOptions`; its way is chosen by some sets that are going to be asked for."""
        front = front_of(estimator, X, options.params, options.steps)
        X, y = rows_and_labels(front.X, y)
        if isinstance(split_steps(front.estimator).last, Search):
            options = replace(options, params=front.params or None)
            return Searched.of(front.estimator, X, y, options, classes=classes, response=response)
        splits = splits_of(first, len(y))
        request = CrossValidation(
            "cross_val_predict", front.estimator, X, y, splits, params=front.params, confounds=options.confounds
        )
        chosen = plan(request)
        warn_of_refits(estimator, chosen.route, EVERY_SET)
        return cls(front.estimator, X, y, classes, response, chosen, front.route(chosen.route), options.n_jobs)

    @property
    def quick(self):
        """Whether all sets follow from one fit."""
        return self.plan.run is not None

    def __call__(self, sets):
        """Decisions (b, k, t)."""
        if self.plan.run is None:
            return self._refitted(self.plan.loop, sets)
        run = self.plan.run
        task = run.task
        if self.response == "predict_proba" or task.readout.cuts or len(task.problem.active) < task.problem.n:
            return self._refitted({"estimator": StandIn(run), "X": run.rows, "params": None}, sets)
        raw = run.decide(sets)
        return raw[:, None] if raw.ndim == 2 else np.swapaxes(raw, 1, 2)

    def _refitted(self, loop, sets):
        jobs = (
            delayed(_refit)(loop, self.y, train, test, self.response) for train, test in splits_of(sets, len(self.y))
        )
        found = Parallel(n_jobs=self.n_jobs)(jobs_as_here(jobs))
        return np.stack([columns_of(values, what, self.classes) for values, what in found])


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
