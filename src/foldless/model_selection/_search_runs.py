"""How a search runs: over a grid, by parts of the rows, or continuously, and what it found.

A grid takes one path of alphas for each kernel setting, then chooses, for all classes or for each of them. An automatic
grid is extended once beyond an edge where the best setting lies, if the criterion still falls there. A search by parts
of the rows (``tuning.fidelity``) tells its progress after every evaluation and may be stopped at any time. A continuous
search follows Nelder-Mead or L-BFGS-B from every candidate and every further start.
"""

import time
import warnings
from dataclasses import dataclass, replace

import numpy as np
from joblib import delayed
from sklearn.exceptions import ConvergenceWarning

from foldless._engine.linalg.threads import threads_for
from foldless._engine.tuning.descent import Objective, choose_descents, follow
from foldless._engine.tuning.fidelity import Fidelity, StoppedSearch, growth, order_of_rows
from foldless._engine.tuning.grid import choose_candidates, judge_alphas
from foldless._engine.tuning.selection import Evaluation
from foldless._engine.tuning.space import on_edge
from foldless._engine.tuning.spec import optimizer_of
from foldless._sklearn.candidates import heldout_scores, targets_of
from foldless._sklearn.pipelines import split_steps
from foldless._sklearn.progress import Progress, run_with_progress

LONG = 600.0  # seconds from which on a warning says how long
SHORT = 2000  # rows up to which nobody waits long
MEASURED = 500  # rows by which the time of all rows is foreseen


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
        """From (places, :class:`Evaluation`, seconds) of settings that were judged together and share the seconds."""
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


def deciding_value(spec, loss):
    """A loss by its name, for the history: the criterion, or the score that it stands for."""
    return {"score": spec.scoring.score_of(loss)} if spec.scoring.decides else {"criterion": float(loss)}


# -- time and ends -----------------------------------------------------------------------------------------------------


def foreseen_seconds(task, splits, evaluate):
    """Seconds that ``evaluate(rows)`` would take for all rows of a task; 0 where these are few."""
    problem = task.problem
    n = len(problem.active)
    if n <= SHORT:
        return 0.0
    rows = np.sort(order_of_rows(task, splits, 0)[:MEASURED])
    begin = time.perf_counter()
    with threads_for(MEASURED, problem.X.shape[1]):
        evaluate(rows)
    return (time.perf_counter() - begin) * growth(problem, MEASURED, n)


def warn_of_time(seconds, n, quicker="", stacklevel=6):
    """Say so where a search of n rows will take long, and what is quicker."""
    if seconds > LONG:
        warnings.warn(
            f"this search of {n} rows is expected to take about {seconds / 60:.0f} minutes. Quicker are {quicker}"
            "time_limit=, which takes the best found so far, X in float32, fewer rows"
            " (foldless.reduction.reduce_instances), and kernels of explicit features.",
            UserWarning,
            stacklevel=stacklevel,
        )


def warn_of_end(search, outcome, stacklevel):
    """Say why a search ended where it did, unless it came to its end inside of where it looked."""
    messages = []
    if outcome.stopped is not None:
        by = "time_limit" if outcome.stopped == "time_limit" else "the user"
        rows = max(each["n_rows"] for each in outcome.history)
        messages.append(
            f"stopped by {by} after {len(outcome.history)} evaluations: best_params_ are the best so far, judged on"
            f" {rows} rows. A longer search may find better ones."
        )
    if outcome.unfinished:
        max_iter = optimizer_of(search).max_iter
        messages.append(
            f"the criterion was still falling after all max_iter={max_iter} iterations. Raise max_iter, as in"
            f" method=Optimizer(max_iter={4 * max_iter}), or search again from best_estimator_."
        )
    for name in outcome.on_edge:
        messages.append(
            f"the best {name}, {outcome.best[0][name]:.3g}, lies on the edge of the automatic grid, even after it was"
            f" widened, or of the default bounds. Give param_grid, or bounds, with further values of {name}; if {name}"
            " has no end, the model is not the one for these data."
        )
    for each in messages:
        warnings.warn(f"FoldlessSearchCV: {each}", ConvergenceWarning, stacklevel=stacklevel + 1)


# -- grids -------------------------------------------------------------------------------------------------------------


def grid_search(spec, candidates, settings, splits, widen=None):
    """The best of the candidates, whose kernel settings are ``settings``.

    ``widen`` makes further ones, of an automatic grid, from the candidates and their losses.
    """
    _warn_of_grid_time(spec, settings, splits)
    results = _judge_settings(spec, settings, splits)
    stopped, edge = len(results) < len(settings), ()
    losses = _losses(settings, results) if not stopped else np.empty((0, 0))
    if widen is not None and not stopped and (spec.share == "all" or losses.shape[1] == 1):
        more_candidates, more_settings = widen(candidates, losses.sum(1))
        if more_settings:
            more_results = _judge_settings(spec, more_settings, splits)
            stopped = len(more_results) < len(more_settings)
            candidates = candidates + more_candidates
            settings = settings + more_settings
            results = results + more_results
            edge = tuple(on_edge(candidates, _losses(settings, results).sum(1))) if not stopped else ()
    if stopped:
        candidates, settings = _only_judged(candidates, settings[: len(results)])
    return _grid_outcome(spec, candidates, settings, results, splits, spec.ended_by if stopped else None, edge)


def _warn_of_grid_time(spec, settings, splits):
    """Say so in advance where the grid will take long."""
    first = settings[0]

    def evaluate(rows):
        if first.parts:  # each of which has a decomposition, most of the work
            path = first.task.problem.path(rows, len(first.alphas))
            for alpha in first.alphas:
                path.with_alpha(alpha)
            return
        selection = spec.choosing.selection(first.task, splits, rows=rows)
        selection.path(first.task.problem, first.alphas)

    seconds = len(settings) * max(1, len(first.parts)) * foreseen_seconds(first.task, splits, evaluate)
    quicker = 'method="auto" without a param_grid, '
    warn_of_time(seconds, first.n_rows, quicker, stacklevel=8)


def _judge_settings(spec, settings, splits):
    """The results of all kernel settings, or of the first of them where the search was stopped."""
    jobs = (delayed(judge_alphas)(spec, setting, splits) for setting in settings)
    progress = Progress(len(settings), "kernel settings", spec.verbose)
    return run_with_progress(jobs, spec.n_jobs, progress, stop=lambda: spec.out_of_time)


def _losses(settings, results):
    """Losses (n_candidates, m) in the order of the candidates."""
    n_candidates = sum(len(setting.places) for setting in settings)
    losses = np.empty((n_candidates, results[0].judged.losses.shape[1]))
    for setting, result in zip(settings, results, strict=True):
        losses[setting.places] = result.judged.losses
    return losses


def _only_judged(candidates, settings):
    """The candidates of these settings, and the settings with the places among these candidates."""
    kept = sorted(place for setting in settings for place in setting.places)
    new_place = {place: number for number, place in enumerate(kept)}
    renumbered = [replace(setting, places=[new_place[place] for place in setting.places]) for setting in settings]
    return [candidates[place] for place in kept], renumbered


def _grid_outcome(spec, candidates, settings, results, splits, stopped, edge):
    losses, pairs = _losses(settings, results), list(zip(settings, results, strict=True))
    record = Record.of(spec, splits, [(setting.places, result.judged, result.seconds) for setting, result in pairs])
    chosen = choose_candidates(losses, settings, spec.share)
    alone, n = len(chosen) == 1, settings[0].n_rows
    times = record.seconds + record.score_seconds
    return Outcome(
        classes=settings[0].classes,
        params=candidates,
        record=record,
        chosen=chosen,
        best=[candidates[place] for place in chosen],
        loss=record.criterion[chosen[0]] if alone else losses[chosen, np.arange(len(chosen))].sum(),
        heldout=next(result.heldout for setting, result in pairs if chosen[0] in setting.places),
        history=[
            {"n_rows": n, "time": float(seconds), **deciding_value(spec, loss), **params}
            for seconds, loss, params in zip(times, losses.sum(1), candidates, strict=True)
        ],
        stopped=stopped,
        on_edge=edge,
    )


# -- by parts of the rows ----------------------------------------------------------------------------------------------


def fidelity_search(spec, start, grid, splits):
    """The best setting by parts of the rows and a few evaluations of all (``tuning.fidelity``)."""
    search = Fidelity(start, grid, spec, splits)
    points, stopped = _evaluate_points(search, spec)
    best = search.best(points)
    last = [point for point in points if point.n_rows == best.n_rows]
    if spec.score_decides:  # points on a way down have no scores of single splits
        last = [point for point in last if point is best or point.judged is not None]
    place = next(place for place, point in enumerate(last) if point is best)
    record = _record_of_points(spec, splits, search, last, place)
    return Outcome(
        classes=start.classes,
        params=[search.named(point) for point in last],
        record=record,
        chosen=[place],
        best=[search.named(best)],
        loss=record.criterion[place],
        feature_scales=None if search.chosen is None else np.array([best.kernel.get_params()[best.kernel.per_feature]]),
        history=[
            {
                "n_rows": point.n_rows,
                "time": point.seconds,
                **_value_of(spec, search, point),
                **search.named(point),
            }
            for point in points
        ],
        stopped=stopped,
        on_edge=tuple(search.at_limits(best)) if search.chosen is None else (),
    )


def _value_of(spec, search, point):
    """What decided about a point; on parts that may be the criterion where a score decides on all rows."""
    return deciding_value(spec, point.loss) if search.of(point).score_decides else {"criterion": float(point.loss)}


def _evaluate_points(search, spec):
    """(the points of a search, what stopped it before its end)."""
    progress = Progress(None, "search", spec.verbose)
    points: list = []

    def tell(doing, ahead):
        best = _value_of(spec, search, search.best(points)) if points else {}
        so_far = "".join(f"; best {name} so far {value:.4g}" for name, value in best.items())
        progress.tell(f"{doing}{so_far}", ahead)

    search.tell = tell
    stopped, warned = None, False
    try:
        for batch in search.points():
            points += batch
            if not warned and search.ahead is not None:
                warned = True
                seconds = search.ahead if spec.deadline is None else 0.0
                warn_of_time(seconds, len(search.task.problem.active), stacklevel=7)
            if spec.out_of_time:
                stopped = "time_limit"
                break
    except (KeyboardInterrupt, StoppedSearch):
        if not points:
            raise
        stopped = spec.ended_by
    progress.close()
    return points, "time_limit" if search.short_of_time else stopped


def _record_of_points(spec, splits, search, last, best):
    """What the points on the most rows got; on a way down nothing but what decided is known, and scores are nan."""
    entries = []
    for place, point in enumerate(last):
        judged = search.judged(point) if place == best else point.judged
        if judged is None:
            judged = Evaluation(np.array([[point.loss]]), np.empty(0), np.array([np.nan]))
        if not spec.score_decides:
            judged = judged._replace(criterion=np.array([point.loss]))
        entries.append(([place], judged, point.seconds))
    return Record.of(spec, splits, entries)


# -- continuous searches -----------------------------------------------------------------------------------------------


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
        stopped=spec.ended_by if descents[-1].ended == "stopped" or len(descents) < len(starts) else None,
        unfinished=any(each.ended == "max_iter" for each in best),
        feature_scales=scales,
        history=[
            {
                "start": place,
                "n_rows": n_rows,
                "time": seconds,
                **deciding_value(spec, loss),
                "objective": value,
                **each.start.named_together(alphas, kernel),
            }
            for place, each in enumerate(descents)
            for loss, value, alphas, kernel, n_rows, seconds, _ in each.history
        ],
    )


def _follow_all(spec, starts, splits):
    """What :func:`_follow_and_judge` returns for every starting point, or for the first of them after a stop."""
    task, steps = starts[0].task, spec.max_iter * sum(each.n_descents for each in starts)

    def evaluate(rows):
        selection = spec.choosing.selection(task, splits, rows=rows)
        Objective(selection, starts[0].space, None)(starts[0].vector, spec.method == "gradient")

    seconds = steps * foreseen_seconds(task, splits, evaluate)
    quicker = 'method="auto", fewer iterations (max_iter= of Optimizer), '
    warn_of_time(seconds, len(task.problem.active), quicker, stacklevel=8)
    if spec.n_jobs not in (None, 1):
        jobs = (delayed(_follow_and_judge)(each, spec, splits) for each in starts)
        progress = Progress(len(starts), "starting points", spec.verbose)
        return run_with_progress(jobs, spec.n_jobs, progress, stop=lambda: spec.out_of_time)
    progress = Progress(steps, "iterations", spec.verbose)
    found = []
    for start in starts:
        found.append(_follow_and_judge(start, spec, splits, progress))
        if found[-1][0].ended == "stopped":
            break
    return found


def _follow_and_judge(start, spec, splits, progress=None):
    """(the descent from one starting point, its end :class:`Evaluation`, seconds); classes apart have no scores."""
    begin = time.perf_counter()
    descent = follow(start, spec, splits, progress)
    end, loss = descent.minimum, np.array([descent.minimum.loss])
    judged = Evaluation(loss, loss, loss)
    if start.column is None and len(end.alphas) == 1:
        selection = spec.selection(start.task, splits)
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
