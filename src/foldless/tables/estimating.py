"""Tuning, and how good the tuned model is: nested cross-validation, leave-one-out at the chosen setting, a baseline."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import LeaveOneGroupOut, cross_val_predict

import foldless
from foldless.tables.folds import inner_cv, outer_folds
from foldless.tables.preparing import EXACT_ROWS, pipeline
from foldless.tables.scores import CONFIDENCE, bootstrapped, from_interval, measures
from foldless.tables.study import Fold, Score

NADEAU_BENGIO = "from the scores of the folds (Nadeau & Bengio 2003)"
BOOTSTRAP = "from a bootstrap of the held-out rows; that the setting was chosen on them is not counted"
SEARCHED: dict[str, Any] | None = None  # the grid of the search; None: the one that it makes from the data
EACH_CALIBRATED = 400  # rows up to which probabilities are calibrated anew without each of them


@dataclass(frozen=True)
class Options:
    """How a run goes.

    Attributes
    ----------
    impute : {"median", "mean", "most_frequent"}, what missing numbers are filled in with
    kernel : str, "auto" or one of the kernels of LSSVC
    permutations : int, 0 for no test
    seed : int
    time_limit : float or None, seconds for tuning, estimating and testing together
    """

    impute: str = "median"
    kernel: str = "auto"
    permutations: int = 1000
    seed: int = 0
    time_limit: float | None = None

    def share(self, part):
        """Seconds for a part of the run; None: as long as it takes."""
        return None if self.time_limit is None else part * self.time_limit


@dataclass(frozen=True)
class HeldOutBy:
    """Held-out predictions and decisions of all rows, and the scores they have."""

    prediction: np.ndarray
    decision: np.ndarray
    scores: tuple[Score, ...]
    probability: np.ndarray | None = None
    influence: np.ndarray | None = None


@dataclass(frozen=True)
class Nested:
    """The result of a nested cross-validation: folds, held-out values of all rows, scores and those of a baseline."""

    folds: tuple[Fold, ...]
    splits: list
    held_out: HeldOutBy
    baseline: tuple[Score, ...]


def search_of(rows, options, limit=None):
    """A search of the pipeline for some rows, not fitted; with few rows the setting is the default."""
    first = pipeline(rows, options.impute, options.kernel)
    grid = {"model__alpha": [1.0]} if rows.few else SEARCHED
    cv = None if rows.few else inner_cv(rows, options.seed)
    said = {"random_state": options.seed, "verbose": 0, "time_limit": limit}
    return foldless.FoldlessSearchCV(first, grid, cv=cv, **said)


def given(rows, *names):
    """Arguments of ``fit`` and of the functions of ``model_selection`` that the rows have."""
    found = {"groups": rows.groups, "confounds": rows.confounds, "sample_weight": rows.weights}
    return {name: found[name] for name in names if found[name] is not None}


def tune(rows, options):
    """The search, fitted on all rows."""
    search = search_of(rows, options, options.share(0.25))
    names = ("confounds", "sample_weight") if search.cv is None else ("groups", "confounds", "sample_weight")
    return search.fit(rows.X, rows.y, **given(rows, *names))


def final_model(rows, options, search):
    """The chosen pipeline fitted on all rows, with probabilities."""
    params = {"calibration": "sigmoid"} if rows.classifies else {}
    model = pipeline(rows, options.impute, options.kernel, **chosen(search.best_params_), **params)
    if rows.schema.n_sparse == 0:
        model = model.set_params(table=clone(search.best_estimator_[0]))
    data = {f"model__{name}": value for name, value in given(rows, "confounds", "sample_weight").items()}
    return model.fit(rows.X, rows.y, **data)


def chosen(params):
    """Parameters of the machine by its own names."""
    return {name.removeprefix("model__"): value for name, value in params.items()}


def nested(rows, options):
    """The :class:`Nested` cross-validation of the search."""
    splits = outer_folds(rows, options.seed)
    search = search_of(rows, options, options.share(0.5 / len(splits)))
    asked = measures(rows)
    weights = None if rows.weights is None else {"sample_weight": rows.weights}
    scoring = [each.scorer for each in asked]
    data = given(rows, "groups", "confounds") if search.cv is not None else given(rows, "confounds")
    found = foldless.model_selection.nested_cross_validate(
        search, rows.X, rows.y, cv=splits, scoring=scoring, params=weights, **data
    )
    intervals = found.interval(CONFIDENCE)
    scores = tuple(from_interval(each, intervals[each.scorer], len(rows), NADEAU_BENGIO) for each in asked)
    prediction = np.empty(len(rows), dtype=rows.y.dtype)
    decisions: list[Any] = [each for each in found.decision if each is not None] or found.predictions
    decision = np.full((len(rows), *np.shape(decisions[0])[1:]), np.nan)
    folds = []
    for number, (train, test) in enumerate(splits):
        prediction[test], decision[test] = found.predictions[number], decisions[number]
        values = {each.name: each.sign * float(found.test_score[each.scorer][number]) for each in asked}
        folds.append(Fold(len(train), len(test), chosen(found.best_params[number]), values))
    return Nested(tuple(folds), splits, HeldOutBy(prediction, decision, scores), _baseline(rows, splits, asked))


def _baseline(rows, splits, asked):
    """Scores of saying the most frequent class, or the mean, of each training part."""
    values: dict[Any, list[float]] = {each: [] for each in asked}
    for train, test in splits:
        if rows.classifies:
            names, counts = np.unique(rows.y[train], return_counts=True)
            said = np.full(len(test), names[counts.argmax()], dtype=object)
        else:
            said = np.full(len(test), np.average(rows.y[train], weights=_at(rows.weights, train)))
        for each in asked:
            values[each].append(each.compute(rows.y[test], said, np.zeros(len(test))))
    how = "the most frequent class, always" if rows.classifies else "the mean, always"
    return tuple(
        Score(each.name, float(np.mean(found)), how=how, greater_is_better=each.greater)
        for each, found in values.items()
    )


def _at(values, rows):
    return None if values is None else values[rows]


def left_out(rows, options, model):
    """Held-out values of every row by the fitted model's setting, each without its row, or without its group."""
    last, influence = model[-1], None
    if rows.groups is not None:
        decision = _without_groups(rows, model)
    else:
        decision = last.loo_decision_function() if rows.classifies else last.loo_predict()
        quick = len(rows) <= EXACT_ROWS and rows.confounds is None  # all pairs of rows
        influence = last.forgetting_effects() if quick else None
    prediction = labels(decision, last.classes_) if rows.classifies else decision
    probability = _probabilities(rows, options, last, decision) if rows.classifies else None
    scores = [bootstrapped(each, rows, prediction, decision, options.seed, BOOTSTRAP) for each in measures(rows)]
    return HeldOutBy(prediction, decision, tuple(scores), probability, influence)


def labels(decision, classes):
    """The classes that decisions stand for."""
    return classes[(decision > 0).astype(int) if decision.ndim == 1 else decision.argmax(1)]


def _without_groups(rows, model):
    weights = None if rows.weights is None else {"model__sample_weight": rows.weights}
    asked = {"groups": rows.groups, "cv": LeaveOneGroupOut(), "steps": "once", "params": weights}
    asked |= given(rows, "confounds") | ({"method": "decision_function"} if rows.classifies else {})
    return foldless.model_selection.cross_val_predict(model, rows.X, rows.y, **asked)


def _probabilities(rows, options, last, decision):
    """Held-out probabilities: calibrated without each row, or of many rows and of groups without each fold of them."""
    if rows.groups is None and len(rows) <= EACH_CALIBRATED:
        return last.loo_predict_proba()
    logistic = LogisticRegression(C=1e3, max_iter=1000)
    columns = decision.reshape(len(rows), -1)
    folds = outer_folds(rows, options.seed)
    return cross_val_predict(logistic, columns / columns.std(), rows.y, cv=folds, method="predict_proba")
