"""A cross-validation in closed form: held-out outputs of all splits at once, without a loop of scikit-learn.

Where every training part is all but its test set, sets of equally many rows are one batch of small systems in P (large
ones are taken one by one), and the common scores are array operations over the batch. What does not fit in here (other
training parts, rows of weight 0, fitted estimators, scores of training rows) goes through scikit-learn's own loop and a
stand-in (``standin``), which costs about a millisecond a split, more than a small fit.
"""

import time
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.model_selection import LeaveOneOut, LeavePOut
from sklearn.utils import _safe_indexing

from foldless._engine.heldout.sets import Sets
from foldless._engine.permutation.metrics import confusions
from foldless._engine.precision.base import SingularBlockError
from foldless._engine.readout.codings import chosen_labels
from foldless._engine.readout.task import Task
from foldless._sklearn.adapters import FOLDLESS_ESTIMATORS
from foldless._sklearn.pipelines import split_steps, with_last
from foldless._sklearn.scorers import (
    decision_columns,
    defined_scores,
    named_scorers,
    stored_outputs,
    wants_probabilities,
)
from foldless.estimators.access import fitted_on_part, rows_of
from foldless.estimators.checks import warn_of_strata
from foldless.estimators.metrics import METRICS

RESPONSES = ("predict", "decision_function", ("decision_function", "predict_proba"))


@dataclass(frozen=True)
class ClosedFormRun:
    """One estimator on one data set, whose training parts have models in closed form."""

    outer: BaseEstimator  # the caller's: the estimator, or a pipeline that ends in it
    estimator: BaseEstimator
    task: Task
    classes: np.ndarray | None  # labels; None for a regression
    flat: bool  # whether y is one column
    X: Any
    y: Any
    sample_weight: Any
    parts: Any  # models of training parts
    checked: Any = None  # that of the :class:`EstimatorTask`

    @property
    def rows(self):
        """Row numbers, in the place of X."""
        return np.arange(self.task.problem.n)[:, None]

    def outputs(self, raw, method):
        """Decisions or probabilities as the estimator's ``method`` would return them."""
        if method == "predict":
            if self.classes is not None:
                labels = chosen_labels(raw, self.classes, self.flat)
                return sp.csr_matrix(labels) if sp.issparse(self.y) else labels
            return raw[:, 0] if self.flat else raw
        if method == "predict_log_proba":
            with np.errstate(divide="ignore"):
                return np.log(raw)
        return raw

    def loo(self, method):
        """``method`` of all rows, each by the model without it."""
        if not method.endswith("proba") and len(self.parts.rows) == self.task.problem.n:
            return self.outputs(self.decide(Sets.leave_one_out(self.task.problem.n)), method)
        kind = "proba" if method.endswith("proba") else "decision"
        idle = len(self.task.problem.active) < self.task.problem.n
        rule = self.task.rule(self.parts.full_fit, probabilities=kind == "proba") if idle else None
        return self.outputs(self.task.loo_outputs(self.parts, rule, kind), method)

    @property
    def all_rows_count(self):
        """Whether no row has a weight of 0: held-out rows of weight 0 need the models of training parts themselves."""
        return len(self.task.problem.active) == self.task.problem.n

    def decide(self, sets):
        """Decisions (N,) or (N, c), or values (N, m), of the rows of all sets by the models without each."""
        return self.task.held_out_decisions(self.parts, sets)

    def decide_with_probabilities(self, sets):
        """(decisions, probabilities (N, c)) of the same, each calibrated inside its training part."""
        return self.task.held_out_outputs(self.parts, sets)

    def check_materialises(self):
        """Refuse fitted estimators of training parts where they could not give the held-out predictions again."""
        confounds, in_score = len(self.task.problem.origin) > 0, self.task.problem.n_confounds == 0
        if confounds and (in_score or not isinstance(self.estimator, FOLDLESS_ESTIMATORS)):
            raise ValueError(
                "confounds: return_estimator=True needs fitted estimators that regress the confounds out by themselves;"
                f" {type(self.estimator).__name__} with in_score={in_score} does not. Use one of"
                f" {', '.join(kind.__name__ for kind in FOLDLESS_ESTIMATORS)} with in_score=False."
            )

    def materialise(self, train, model):
        """The caller's estimator, fitted on a training part: from P for one of foldless' own, else refitted."""
        steps = split_steps(self.outer)
        if steps.first is None and isinstance(self.estimator, FOLDLESS_ESTIMATORS):
            fitted = fitted_on_part(self.checked, self.task, model, train, self.sample_weight)
            return fitted if self.outer is self.estimator else with_last(self.outer, fitted)
        weight = None if self.sample_weight is None else np.asarray(self.sample_weight)[train]
        rows = rows_of(self.estimator, self.X, train, train)
        return clone(self.outer).fit(rows, _safe_indexing(self.y, train), **steps.fit_params(sample_weight=weight))


# -- all splits at once ------------------------------------------------------------------------------------------------


def left_out_sets(cv, n):
    """The test sets of a splitter or of splits; None where a training part is not all other rows."""
    if isinstance(cv, LeaveOneOut):
        return Sets.leave_one_out(n)
    if isinstance(cv, LeavePOut):
        return Sets.of(np.array(list(combinations(range(n), cv.p)), dtype=np.intp))
    return Sets.from_splits(cv, n)


def predict(run, splits, method):
    """``method`` of every row by the model without its test set, or None."""
    n = run.task.problem.n
    sets = left_out_sets(splits, n) if run.all_rows_count else None
    if sets is None:
        return None
    rows = sets.rows
    if len(rows) != n or (np.bincount(rows, minlength=n) != 1).any():  # no partition
        return None
    values = run.decide_with_probabilities(sets)[1] if method.endswith("proba") else run.decide(sets)
    return run.outputs(values[np.argsort(rows)], method)


def validate(run, splits, scoring, counting):
    """(scikit-learn's dictionary of times and scores of all splits, ``counting`` with the labels of rows), or None."""
    start = time.perf_counter()
    scorers = _scorers(scoring, run)
    sets = left_out_sets(splits, run.task.problem.n) if scorers and run.all_rows_count else None
    if sets is None:
        return None
    calibrated = any(wants_probabilities(scorer) for _, scorer in scorers.values())
    try:
        decisions, probabilities = run.decide_with_probabilities(sets) if calibrated else (run.decide(sets), None)
    except SingularBlockError:  # leave-one-out inside a training part, for its cut or calibration
        return None
    if isinstance(splits, LeaveOneOut) and run.task.codes is not None:
        warn_of_strata(decisions, run.task.codes)
    by_size = sets.by_size(decisions)
    shares = [None] * len(by_size) if probabilities is None else [raw for *_, raw in sets.by_size(probabilities)]
    fitted = time.perf_counter()
    n_splits = len(sets)
    scores = {name: np.empty(n_splits) for name in scorers}
    for (numbers, rows, raw), proba in zip(by_size, shares, strict=True):
        for name, (metric_name, scorer) in scorers.items():
            try:
                scores[name][numbers] = _scores(run, metric_name, scorer, rows, raw, proba)
            except Exception:  # as here, scikit-learn's loop reports the error of every split
                return None
    times = {"fit_time": fitted - start, "score_time": time.perf_counter() - fitted}
    result = {name: np.full(n_splits, seconds / n_splits) for name, seconds in times.items()}
    if counting.of_labels:
        counts = np.zeros(len(run.classes) ** 2, int)
        for _, rows, raw in by_size:
            counts += confusions(len(run.classes), decision_columns(raw), run.task.codes[rows]).sum(0)
        counting = counting.with_confusion(counts)
    return result | {f"test_{name}": values for name, values in scores.items()}, counting


def _scorers(scoring, run):
    """{name: (name of a metric, scorer)} of scores that follow from what is held out; None where one does not."""
    if scoring is None:
        scoring = "accuracy" if is_classifier(run.estimator) else "r2"
    scorers = named_scorers(scoring)
    known = RESPONSES if run.task.calibration is None else (*RESPONSES, "predict_proba")
    responses = (getattr(scorer, "_response_method", None) for _, scorer in scorers.values())
    return scorers if all(response in known for response in responses) else None


def _scores(run, name, scorer, sets, raw, probabilities):
    """Scores (k,) of decisions of the sets, and of their probabilities where some score takes them."""
    task = run.task
    metric = METRICS.get(name) if isinstance(name, str) else None
    if metric is not None and metric.suits(task):
        # Values in their own precision, which may be higher than that of X.
        truth = task.codes[sets] if metric.labels else np.reshape(run.y, task.Y.shape)[sets].transpose(0, 2, 1)
        return defined_scores(name, metric, decision_columns(raw), truth)
    probabilities = [None] * len(sets) if probabilities is None else probabilities
    return [
        scorer(stored_outputs(run.classes, run.flat, decisions, proba), rows[:, None], _safe_indexing(run.y, rows))
        for decisions, proba, rows in zip(raw, probabilities, sets, strict=True)
    ]
