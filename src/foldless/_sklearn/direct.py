"""Held-out decisions and scores of all splits at once, without a loop of scikit-learn.

A stand-in costs scikit-learn about a millisecond a split, more than a small fit. Where every training part is all but
its test set, sets of equally many rows are one batch of small systems in P (large ones are taken one by one), and the
common scores are array operations over the batch. What does not fit in here (other training parts, probabilities,
fitted estimators, scores of training rows) goes through the stand-in.
"""

import time
from itertools import combinations

import numpy as np
from sklearn.base import is_classifier
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.model_selection import LeaveOneOut, LeavePOut
from sklearn.utils import _safe_indexing

from foldless._engine.permutation.metrics import METRICS, confusions
from foldless._sklearn.route import warn_caller
from foldless._sklearn.scorers import known_outputs, named_scorers
from foldless.estimators.checks import warn_of_strata

RESPONSES = ("predict", "decision_function", ("decision_function", "predict_proba"))


def left_out_sets(cv, n):
    """[(numbers of splits, their test sets (k, t))] by size; None where a training part is not all other rows."""
    if isinstance(cv, LeaveOneOut | LeavePOut):
        size = 1 if isinstance(cv, LeaveOneOut) else cv.p
        sets = np.array(list(combinations(range(n), size)), dtype=np.intp)
        return [(np.arange(len(sets)), sets)]
    by_size: dict = {}
    for number, (train, test) in enumerate(cv):
        if len(train) + len(test) != n or not len(test):
            return None
        by_size.setdefault(len(test), []).append((number, train, test))
    for splits in by_size.values():
        for _, train, test in splits:
            if (np.bincount(np.concatenate([train, test]), minlength=n) != 1).any():
                return None
    return [(np.array([s[0] for s in each]), np.stack([s[2] for s in each])) for each in by_size.values()]


def _can_answer(plan):
    """Whether held-out decisions, of rows that all count, are all that is needed."""
    task = plan.run.task
    return not task.readout.cuts and len(task.problem.active) == task.problem.n


def predict(plan, method):
    """``method`` of every row by the model without its test set, or None."""
    if method not in ("predict", "decision_function") or not _can_answer(plan):
        return None
    n = plan.run.task.problem.n
    groups = left_out_sets(plan.splits, n)
    rows = np.concatenate([sets.ravel() for _, sets in groups]) if groups else np.empty(0, int)
    if len(rows) != n or len(np.unique(rows)) != n:  # no partition
        return None
    found = [plan.run.decide(sets) for _, sets in groups]
    raw = np.concatenate([each.reshape(-1, *each.shape[2:]) for each in found])
    return plan.run.outputs(raw[np.argsort(rows)], method)


def validate(plan, scoring, counting):
    """(scikit-learn's dictionary of times and scores of all splits, ``counting`` with the labels of rows), or None."""
    run, start = plan.run, time.perf_counter()
    scorers = _scorers(scoring, run.estimator)
    groups = left_out_sets(plan.splits, run.task.problem.n) if scorers and _can_answer(plan) else None
    if groups is None:
        return None
    found = [run.decide(sets) for _, sets in groups]
    if isinstance(plan.splits, LeaveOneOut) and run.task.codes is not None:
        ((_, rows),) = groups
        warn_of_strata(found[0][:, 0], run.task.codes[rows[:, 0]])
    fitted = time.perf_counter()
    n_splits = sum(len(numbers) for numbers, _ in groups)
    scores = {name: np.empty(n_splits) for name in scorers}
    for (numbers, sets), raw in zip(groups, found, strict=True):
        for name, (metric, scorer) in scorers.items():
            try:
                scores[name][numbers] = _scores(run, metric, scorer, sets, raw)
            except Exception:  # scikit-learn's loop says what is wrong, split by split
                return None
    times = {"fit_time": fitted - start, "score_time": time.perf_counter() - fitted}
    result = {name: np.full(n_splits, seconds / n_splits) for name, seconds in times.items()}
    if counting.of_labels:
        decided = [(_columns(raw), run.task.codes[sets]) for (_, sets), raw in zip(groups, found, strict=True)]
        counted = [confusions(len(run.classes), *each).sum(0) for each in decided]
        counting = counting.with_confusion(np.sum(counted, axis=0))
    return result | {f"test_{name}": values for name, values in scores.items()}, counting


def _columns(raw):
    """Decisions (b, k, t) of sets, from those of their rows."""
    return raw[:, None, :] if raw.ndim == 2 else raw.transpose(0, 2, 1)


def _scorers(scoring, estimator):
    """{name: (name of a metric, scorer)} of scores that judge predictions or decisions; else None."""
    if scoring is None:
        scoring = "accuracy" if is_classifier(estimator) else "r2"
    found = named_scorers(scoring)
    responses = (getattr(scorer, "_response_method", None) for _, scorer in found.values())
    return found if all(each in RESPONSES for each in responses) else None


def _scores(run, metric, scorer, sets, raw):
    """Scores (k,) of decisions of the sets."""
    task = run.task
    known = METRICS.get(metric) if isinstance(metric, str) else None
    if known is not None and known.suits(task):
        if sets.shape[1] < known.rows:
            warn_caller(
                f"{metric} of a single row is not defined, and nan. Score all held-out predictions together, as"
                " loo_score_ does, or take larger test sets.",
                UndefinedMetricWarning,
            )
            return np.full(len(sets), np.nan)
        D = _columns(raw)
        # Values in their own precision, which may be higher than that of X.
        truth = task.codes[sets] if known.labels else np.reshape(run.y, task.Y.shape)[sets].transpose(0, 2, 1)
        scores = known.function(D, truth)
        if np.isnan(scores).any():
            warn_caller(f"{metric} is not defined for test sets of one class and nan there.", UndefinedMetricWarning)
        return scores
    outputs = (known_outputs(run.classes, run.built.flat, each) for each in raw)
    return [scorer(each, rows[:, None], _safe_indexing(run.y, rows)) for each, rows in zip(outputs, sets, strict=True)]
