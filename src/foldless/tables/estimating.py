"""Tuning, and how good the tuned model is: nested cross-validation, leave-one-out at the chosen setting, a baseline."""

from typing import Any

import numpy as np
from sklearn.model_selection import LeaveOneGroupOut

from foldless._sklearn.landmarks import MOST_REPEATED
from foldless.model_selection import cross_val_predict, nested_cross_validate
from foldless.tables.folds import all_classes, check_groups, outer_folds
from foldless.tables.parts import Fold, Score
from foldless.tables.scores import (
    CONFIDENCE,
    HeldOutBy,
    Nested,
    bootstrapped,
    calibrated,
    from_interval,
    measures,
    pooled_baseline,
    typical,
)
from foldless.tables.searching import chosen, given, labels, search_of, searched
from foldless.tables.settings import setting

BOOTSTRAP = "from a bootstrap of the held-out {units}; that the setting was chosen on them is not counted"
POOLED = "from a bootstrap of the held-out {units} of all folds together, as some folds lack a class"
EACH_CALIBRATED = 800  # rows times classes up to which probabilities are calibrated anew without each row
CALIBRATED_A_SECOND = 100  # rows times classes, at the least


def tune(rows, options):
    """The search, fitted on all rows; its best pipeline knows probabilities."""
    calibration = {"estimator__model__calibration": "sigmoid"} if rows.classifies else {}
    return searched(rows, options, options.share("tuning"), **calibration)


def nested(rows, options):
    """The :class:`Nested` cross-validation of the search."""
    splits = outer_folds(rows, options.seed)
    search = search_of(rows, options, options.share("nested", 1 / len(splits)))
    asked = measures(rows)
    weights = None if rows.weights is None else {"sample_weight": rows.weights}
    scoring = [each.scorer for each in asked]
    data = given(rows, "groups", "confounds") if search.cv is not None else given(rows, "confounds")
    found = nested_cross_validate(search, rows.X, rows.y, cv=splits, scoring=scoring, params=weights, **data)
    intervals = found.interval(CONFIDENCE)
    scores = tuple(from_interval(each, intervals[each.scorer]) for each in asked)
    prediction = np.empty(len(rows), dtype=rows.y.dtype)
    decisions: list[Any] = [each for each in found.decision if each is not None] or found.predictions
    decision = np.full((len(rows), *np.shape(decisions[0])[1:]), np.nan)
    folds, params = [], [chosen(best) for best in found.best_params]
    for number, (train, test) in enumerate(splits):
        prediction[test], decision[test] = found.predictions[number], decisions[number]
        values = {each.name: each.sign * float(found.test_score[each.scorer][number]) for each in asked}
        folds.append(Fold(len(train), len(test), setting(params[number]), values))
    if not all_classes(rows, (test for _, test in splits)):  # scores of such folds mean little, or nothing
        scores = tuple(bootstrapped(each, rows, prediction, decision, options.seed, POOLED) for each in asked)
    held_out, baseline = HeldOutBy(prediction, decision, scores), _baseline(rows, splits, asked)
    return Nested(tuple(folds), splits, held_out, baseline, tuple(params))


def _baseline(rows, splits, asked):
    """Scores of saying the most frequent class, or the mean, of each training part."""
    how = "the most frequent class, always" if rows.classifies else "the mean, always"
    if not all_classes(rows, (test for _, test in splits)):
        return pooled_baseline(rows, splits, how)
    values: dict[Any, list[float]] = {each: [] for each in asked}
    for train, test in splits:
        said = np.full(len(test), typical(rows, train), dtype=rows.y.dtype)
        for each in asked:
            values[each].append(each.compute(rows.y[test], said, np.zeros(len(test))))
    return tuple(
        Score(each.name, float(np.mean(found)), how=how, greater_is_better=each.greater)
        for each, found in values.items()
    )


def left_out(rows, options, model):
    """Held-out values of every row by the fitted model's setting, each without its row, or without its group."""
    last, influence = model[-1], None
    if rows.groups is not None:
        decision = without_groups(rows, model)
    else:
        decision = last.loo_decision_function() if rows.classifies else last.loo_predict()
        quick = len(rows) <= MOST_REPEATED and rows.confounds is None  # all pairs of rows
        influence = last.forgetting_effects() if quick else None
    prediction = labels(decision, last.classes_) if rows.classifies else decision
    probability = _probabilities(rows, options, last, decision) if rows.classifies else None
    scores = [bootstrapped(each, rows, prediction, decision, options.seed, BOOTSTRAP) for each in measures(rows)]
    return HeldOutBy(prediction, decision, tuple(scores), probability, influence)


def without_groups(rows, model):
    """Decisions or values of all rows by the setting of a fitted model, each without its group."""
    check_groups(rows)
    weights = None if rows.weights is None else {"model__sample_weight": rows.weights}
    asked = {"groups": rows.groups, "cv": LeaveOneGroupOut(), "steps": "once", "params": weights}
    asked |= given(rows, "confounds") | ({"method": "decision_function"} if rows.classifies else {})
    return cross_val_predict(model, rows.X, rows.y, **asked)


def _probabilities(rows, options, last, decision):
    """Held-out probabilities: calibrated without each row, or of many rows and of groups without each fold of them."""
    codes, n_classes = np.searchsorted(last.classes_, rows.y), len(last.classes_)
    seconds = options.share("alone") or np.inf
    if rows.groups is None and len(rows) * n_classes <= min(EACH_CALIBRATED, CALIBRATED_A_SECOND * seconds):
        return last.loo_predict_proba()
    weights = np.ones(len(rows)) if rows.weights is None else rows.weights
    found = np.empty((len(rows), n_classes))
    for train, test in outer_folds(rows, options.seed):
        found[test] = calibrated(decision[train], codes[train], n_classes, weights[train]).proba(decision[test])
    return found
