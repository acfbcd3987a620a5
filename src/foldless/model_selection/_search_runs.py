"""How a search runs, and what it found in the words of the estimator's parameters.

A grid takes one alpha path for each kernel setting, then chooses, for all classes or for each of them. The continuous
searches follow Nelder-Mead or L-BFGS-B from every candidate, every further start and every slope.
"""

import time
from dataclasses import dataclass

import numpy as np
from joblib import delayed

from foldless.bridge.candidates import heldout_scores, targets_of
from foldless.bridge.pipelines import split_steps
from foldless.bridge.progress import Progress, run_with_progress
from foldless.model_selection._search_end import warn_of_time
from foldless.tuning.descent import Objective, choose_descents, follow
from foldless.tuning.foresight import foreseen_seconds
from foldless.tuning.selection import Judged


@dataclass(frozen=True)
class Record:
    """What every setting got: its criterion, the scores of its splits, and the seconds it took."""

    scorings: dict  # {name: Scoring}
    criterion: np.ndarray  # (n,)
    errors: np.ndarray  # (n,): standard errors of the criterion, nan where unknown
    scores: np.ndarray  # (n_scores, n, n_splits)
    seconds: np.ndarray  # (n,)
    score_seconds: np.ndarray  # (n,), those of the scores alone
    by_split: bool  # else one score of all rows, each left out alone

    @classmethod
    def of(cls, spec, splits, entries):
        """From (places, :class:`Judged`, seconds) of settings that were judged together and share the seconds."""
        n, scorings = sum(len(places) for places, _, _ in entries), spec.scoring.scorings
        width = max((judged.scores.shape[2] for _, judged, _ in entries if judged.scores is not None), default=1)
        scores = np.full((len(scorings), n, width), np.nan)
        criterion, errors, seconds, score_seconds = np.full((4, n), np.nan)
        for places, judged, spent in entries:
            criterion[places] = judged.criterion
            errors[places] = np.nan if judged.errors is None else judged.errors
            seconds[places] = (spent - judged.seconds) / len(places)
            score_seconds[places] = judged.seconds / len(places)
            if judged.scores is not None:
                scores[:, places] = judged.scores
        return cls(scorings, criterion, errors, scores, seconds, score_seconds, splits is not None)

    def columns(self):
        """Columns of ``cv_results_``."""
        yield "mean_fit_time", self.seconds
        yield "std_fit_time", np.zeros_like(self.seconds)
        yield "mean_score_time", self.score_seconds
        yield "std_score_time", np.zeros_like(self.seconds)
        for (name, scoring), values in zip(self.scorings.items(), self.scores, strict=True):
            means = values.mean(1)
            for split, mine in enumerate(values.T if self.by_split else ()):
                yield f"split{split}_test_{name}", mine
            yield f"mean_test_{name}", means
            yield f"std_test_{name}", values.std(1) if self.by_split else np.full(len(values), np.nan)
            yield f"rank_test_{name}", ranks(-means if scoring.greater else means)
        yield "mean_test_criterion", self.criterion
        yield "se_test_criterion", self.errors
        yield "rank_test_criterion", ranks(self.criterion)


def ranks(losses):
    """1 for the least; equal ones, up to rounding, share the first of their places, and what is no number is last."""
    losses = np.where(np.isnan(losses), np.inf, losses)
    order = np.argsort(losses, kind="stable")
    found = losses[order]
    with np.errstate(invalid="ignore"):
        apart = (np.diff(found) > 1e-12 * np.abs(found[1:])) | (np.isinf(found[1:]) & np.isfinite(found[:-1]))
    first = np.concatenate([[1], np.where(apart, np.arange(2, len(found) + 1), 1)])
    places = np.empty(len(losses), np.int32)
    places[order] = np.maximum.accumulate(first)
    return places


@dataclass(frozen=True)
class Outcome:
    """All settings with what they got, the chosen ones (one, or one for each class) and the way there."""

    classes: np.ndarray | None
    params: list  # of every setting
    record: Record
    chosen: list  # places of the best among them
    best: list  # their parameters, one dictionary for each alpha
    loss: float  # their criterion
    history: list
    slope: float | None = None  # of the chosen descent
    heldout: tuple | None = None  # row numbers and held-out decisions of the chosen setting, where at hand
    feature_scales: np.ndarray | None = None  # one row for each of the chosen
    stopped: str | None = None  # what ended it before its end: "time_limit" or "interrupted"
    on_edge: tuple = ()  # parameters in which the best lies at an end of an automatic grid that was widened already
    unfinished: bool = False  # a descent came to its last iteration

    def table(self):
        """``cv_results_`` in the shape of GridSearchCV's."""
        columns: dict = {"params": self.params}
        for name in sorted({name for each in self.params for name in each}):
            column = np.ma.masked_all(len(self.params), dtype=object)
            for place, each in enumerate(self.params):
                if name in each:
                    column[place] = each[name]
            columns[f"param_{name}"] = column
        return columns | dict(self.record.columns())


def what_decided(spec, loss):
    """A loss by its name, for the history: the criterion, or the score that it stands for."""
    return {"score": spec.scoring.score_of(loss)} if spec.scoring.decides else {"criterion": float(loss)}


def continuous_search(spec, starts, splits):
    """All starting points, followed down, and the best of them."""
    found = _follow_all(spec, starts, splits)
    descents = [descent for descent, _, _ in found]
    record = Record.of(spec, splits, [([place], *each) for place, (_, *each) in enumerate(found)])
    chosen = choose_descents(descents)
    best = [descents[place] for place in chosen]
    kernels = [each.minimum.kernel for each in best]
    scales = np.array([each.get_params()[each.per_feature] for each in kernels]) if spec.feature_scaling else None
    return Outcome(
        classes=starts[-1].classes,
        params=[each.start.named_together(each.minimum.alphas, each.minimum.kernel) for each in descents],
        record=record,
        chosen=chosen,
        best=[params for each in best for params in each.start.named(each.minimum.alphas, each.minimum.kernel)],
        loss=record.criterion[chosen].sum(),
        slope=best[0].start.slope,
        stopped=spec.ended_by if descents[-1].ended == "stopped" or len(descents) < len(starts) else None,
        unfinished=any(each.ended == "max_iter" for each in best),
        feature_scales=scales,
        history=[
            {
                "start": place,
                "n_rows": n_rows,
                "time": seconds,
                **what_decided(spec, loss),
                "objective": value,
                **each.start.named_together(alphas, kernel),
            }
            for place, each in enumerate(descents)
            for loss, value, alphas, kernel, n_rows, seconds, _ in each.history
        ],
    )


def _follow_all(spec, starts, splits):
    """What :func:`_end_of` says of every starting point, or of the first of them where the search was stopped."""
    task, steps = starts[0].task, spec.max_iter * sum(each.n_descents for each in starts)

    def evaluate(rows):
        selection = spec.choosing.selection(task, splits, rows=rows)
        Objective(selection, starts[0].space, None)(starts[0].vector, spec.method == "gradient")

    seconds = steps * foreseen_seconds(task, splits, evaluate)
    warn_of_time(seconds, len(task.problem.active), 'method="auto", fewer iterations (max_iter=), ', stacklevel=8)
    if spec.n_jobs not in (None, 1):
        jobs = (delayed(_end_of)(each, spec, splits) for each in starts)
        progress = Progress(len(starts), "starting points", spec.verbose)
        return run_with_progress(jobs, spec.n_jobs, progress, stop=lambda: spec.out_of_time)
    progress = Progress(steps, "iterations", spec.verbose)
    found = []
    for start in starts:
        found.append(_end_of(start, spec, splits, progress))
        if found[-1][0].ended == "stopped":
            break
    return found


def _end_of(start, spec, splits, progress=None):
    """(the descent from one starting point, its end :class:`Judged`, seconds); classes apart have no scores."""
    begin = time.perf_counter()
    descent = follow(start, spec, splits, progress)
    end, loss = descent.minimum, np.array([descent.minimum.loss])
    judged = Judged(loss, loss, loss)
    if start.column is None and len(end.alphas) == 1:
        selection = spec.selection(start.task, splits, slope=start.slope)
        judged = selection.judged(start.task.problem.replace(kernel=end.kernel, alpha=float(end.alphas[0])))
        if not spec.scoring.decides:
            judged = judged._replace(criterion=loss)  # to the last digit
    return descent, judged, time.perf_counter() - begin


def score_together(spec, best, data, splits):
    """The score of a classifier with a setting of its own for each class; nan where it takes cuts of every part."""
    estimators = [each for _, each in split_steps(best).last.estimators]
    if any(getattr(each, "threshold", None) == "loo" for each in estimators):
        return np.nan
    rows, decisions = heldout_scores(best, data, splits)
    task, _, _ = targets_of(estimators[0], data.y, data.sample_weight)
    sizes = [len(each) for each in spec.selection(task, splits).tests]
    tests = np.split(np.arange(len(rows)), np.cumsum(sizes)[:-1])
    weights = spec.row_weights[rows] if spec.weighs_scores else None
    return float(spec.scoring(task, rows, tests, decisions[None], weights=weights).mean())
