"""How a search runs: over a grid, by parts of the rows, or continuously.

A grid takes one path of alphas for each kernel setting, then chooses, for all classes or for each of them. An automatic
grid is extended once beyond an edge where the best setting lies, if the criterion still falls there. A search by parts
of the rows (``tuning.fidelity``) reports its progress after every evaluation and may be stopped at any time. A
continuous continuous search follows Nelder-Mead or L-BFGS-B from every candidate and every further start.
"""

import time
from dataclasses import replace
from functools import partial

import numpy as np
from joblib import delayed
from sklearn.exceptions import ConvergenceWarning

from foldless._engine.linalg.threads import threads_for
from foldless._engine.tuning.descent import Objective, choose_descents, follow
from foldless._engine.tuning.fidelity import Fidelity, StoppedSearch, growth, order_of_rows
from foldless._engine.tuning.grid import choose_candidates, judge_alphas
from foldless._engine.tuning.kernel_search import KernelSearch
from foldless._engine.tuning.selection import Evaluation
from foldless._engine.tuning.space import on_edge
from foldless._engine.tuning.spec import optimizer_of
from foldless._sklearn.adapters import learns_kernel
from foldless._sklearn.candidates import beginning, by_grid, settings, starting_points, widened
from foldless._sklearn.confounded import columns_alone
from foldless._sklearn.progress import Progress, run_with_progress
from foldless._sklearn.splits import check_confounds_determined, draw_splits
from foldless._sklearn.steps import parts_of
from foldless._sklearn.weights import with_row_weights
from foldless.estimators.checks import warn_caller
from foldless.model_selection._search_outcome import Outcome, Record, deciding_value
from foldless.model_selection._search_spec import with_scores

LONG = 600.0  # seconds above which a warning tells the expected time
SHORT = 2000  # rows up to which every search is quick
MEASURED = 500  # rows whose time is measured to predict that of all rows


# -- time and ends -----------------------------------------------------------------------------------------------------


def foreseen_seconds(task, splits, evaluate):
    """Expected seconds of ``evaluate(rows)`` for all rows of a task; 0 if these are few."""
    problem = task.problem
    n = len(problem.active)
    if n <= SHORT:
        return 0.0
    rows = np.sort(order_of_rows(task, splits, 0)[:MEASURED])
    begin = time.perf_counter()
    with threads_for(MEASURED, problem.X.shape[1]):
        evaluate(rows)
    return (time.perf_counter() - begin) * growth(problem, MEASURED, n)


def warn_of_time(seconds, n, quicker=""):
    """Warn if a search of n rows will take long, and name what is quicker."""
    if seconds > LONG:
        warn_caller(
            f"this search of {n} rows is expected to take about {seconds / 60:.0f} minutes. Quicker are {quicker}"
            "time_limit=, which takes the best found so far, X in float32, fewer rows"
            " (foldless.reduction.reduce_instances), and kernels of explicit features."
        )


def warn_of_end(search, outcome):
    """Warn of a search that was stopped, did not converge, or has its best setting at an edge."""
    messages = []
    if outcome.stopped is not None:
        by = "time_limit" if outcome.stopped == "time_limit" else "the user"
        rows = max(setting["n_rows"] for setting in outcome.history)
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
    for message in messages:
        warn_caller(f"FoldlessSearchCV: {message}", ConvergenceWarning)


def prepared(search, spec, data, groups):
    """(spec, data, splits) of a search: with its scores and weights, and the training parts of its first steps."""
    splits = draw_splits(search.cv, search.estimator, data.X, data.y, groups)
    if data.confounds is not None:
        check_confounds_determined(columns_alone(search, data.confounds), splits or ())
    spec = with_row_weights(with_scores(spec, search, data.y), search, data.y, data.sample_weight)
    return spec, data.with_parts(parts_of(search, splits, len(data.y))), splits


def run_search(spec, search, data, splits):
    """The :class:`Outcome` of a search by its method, or by the one that suits the data."""
    estimator, grid = search.estimator, search.param_grid
    if by_grid(search, data):
        candidates, kernel_settings = settings(estimator, grid, data)
        widen = partial(widened, estimator, data) if grid is None else None
        return grid_search(spec, candidates, kernel_settings, splits, widen)
    if spec.method == "auto":
        start, first_grid = beginning(spec, estimator, data)
        kind = KernelSearch if learns_kernel(search) else Fidelity
        return fidelity_search(spec, kind(start, first_grid, spec, splits), splits)
    return continuous_search(spec, starting_points(spec, estimator, grid, data), splits)


# -- grids -------------------------------------------------------------------------------------------------------------


def grid_search(spec, candidates, settings, splits, widen=None):
    """The :class:`Outcome` of a grid of candidates, whose kernel settings are ``settings``.

    For an automatic grid ``widen(candidates, losses)`` makes further candidates beyond an edge.
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
    """Warn in advance if the grid will take long."""
    first = settings[0]

    def evaluate(rows):
        if first.parts:  # a decomposition for every part is most of the work
            path = first.task.problem.path(rows, len(first.alphas))
            for alpha in first.alphas:
                path.with_alpha(alpha)
            return
        selection = spec.choosing.selection(first.task, splits, rows=rows)
        selection.path(first.task.problem, first.alphas)

    seconds = len(settings) * max(1, len(first.parts)) * foreseen_seconds(first.task, splits, evaluate)
    quicker = 'method="auto" without a param_grid, '
    warn_of_time(seconds, first.n_rows, quicker)


def _judge_settings(spec, settings, splits):
    """The results of all kernel settings, or of the first of them if the search was stopped."""
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
    places = sorted(place for setting in settings for place in setting.places)
    new_place = {place: number for number, place in enumerate(places)}
    renumbered = [replace(setting, places=[new_place[place] for place in setting.places]) for setting in settings]
    return [candidates[place] for place in places], renumbered


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


def fidelity_search(spec, search, splits):
    """The :class:`Outcome` of a search on parts of the rows, with a few evaluations of all (``tuning.fidelity``)."""
    points, stopped = evaluate_points(search, spec)
    best = search.best(points)
    last = [point for point in points if point.n_rows == best.n_rows]
    if spec.score_decides:  # points of a descent have no scores of single splits
        last = [point for point in last if point is best or point.judged is not None]
    place = next(place for place, point in enumerate(last) if point is best)
    record = _record_of_points(spec, splits, search, last, place)
    return Outcome(
        classes=search.start.classes,
        params=[search.named(point) for point in last],
        record=record,
        chosen=[place],
        best=[search.named(best)],
        loss=record.criterion[place],
        feature_scales=search.feature_scales,
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
        on_edge=tuple(search.at_limits(best)) if search.feature_scales is None else (),
    )


def _value_of(spec, search, point):
    """The value that decided about a point; on parts it may be the criterion though a score decides on all rows."""
    return deciding_value(spec, point.loss) if search.of(point).score_decides else {"criterion": float(point.loss)}


def evaluate_points(search, spec):
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
                warn_of_time(seconds, len(search.task.problem.active))
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
    """The :class:`Record` of the points on the most rows; those of a descent have a criterion and no scores."""
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
    """The :class:`Outcome` of descents from all starting points."""
    results = _follow_all(spec, starts, splits)
    descents = [descent for descent, _, _ in results]
    entries = [([place], judged, seconds) for place, (_, judged, seconds) in enumerate(results)]
    record = Record.of(spec, splits, entries)
    chosen = choose_descents(descents)
    best = [descents[place] for place in chosen]
    scales = None
    if spec.feature_scaling:
        kernels = [descent.minimum.kernel for descent in best]
        scales = np.array([kernel.get_params()[kernel.per_feature] for kernel in kernels])
    return Outcome(
        classes=starts[-1].classes,
        params=[_params_of_all_classes(descent) for descent in descents],
        record=record,
        chosen=chosen,
        best=[params for descent in best for params in _params_by_class(descent)],
        loss=record.criterion[chosen].sum(),
        stopped=spec.ended_by if descents[-1].ended == "stopped" or len(descents) < len(starts) else None,
        unfinished=any(descent.ended == "max_iter" for descent in best),
        feature_scales=scales,
        history=[
            {
                "start": place,
                "n_rows": n_rows,
                "time": seconds,
                **deciding_value(spec, loss),
                "objective": value,
                **descent.start.named_together(alphas, kernel),
            }
            for place, descent in enumerate(descents)
            for loss, value, alphas, kernel, n_rows, seconds, _ in descent.history
        ],
    )


def _params_of_all_classes(descent):
    return descent.start.named_together(descent.minimum.alphas, descent.minimum.kernel)


def _params_by_class(descent):
    return descent.start.named(descent.minimum.alphas, descent.minimum.kernel)


def _follow_all(spec, starts, splits):
    """The results of :func:`_follow_and_judge` for all starting points, or for the first of them after a stop."""
    task = starts[0].task
    n_steps = spec.max_iter * sum(start.n_descents for start in starts)

    def evaluate(rows):
        selection = spec.choosing.selection(task, splits, rows=rows)
        Objective(selection, starts[0].space, None)(starts[0].vector, spec.method == "gradient")

    seconds = n_steps * foreseen_seconds(task, splits, evaluate)
    quicker = 'method="auto", fewer iterations (max_iter= of Optimizer), '
    warn_of_time(seconds, len(task.problem.active), quicker)
    if spec.n_jobs not in (None, 1):
        jobs = (delayed(_follow_and_judge)(start, spec, splits) for start in starts)
        progress = Progress(len(starts), "starting points", spec.verbose)
        return run_with_progress(jobs, spec.n_jobs, progress, stop=lambda: spec.out_of_time)
    progress = Progress(n_steps, "iterations", spec.verbose)
    results = []
    for start in starts:
        results.append(_follow_and_judge(start, spec, splits, progress))
        descent, _, _ = results[-1]
        if descent.ended == "stopped":
            break
    return results


def _follow_and_judge(start, spec, splits, progress=None):
    """(the descent from one starting point, its end :class:`Evaluation`, seconds).

    A class that is searched by itself has no scores.
    """
    begin = time.perf_counter()
    descent = follow(start, spec, splits, progress)
    end = descent.minimum
    loss = np.array([end.loss])
    judged = Evaluation(loss, loss, loss)
    if start.column is None and len(end.alphas) == 1:
        selection = spec.selection(start.task, splits)
        judged = selection.judged(start.task.problem.replace(kernel=end.kernel, alpha=float(end.alphas[0])))
        if not spec.scoring.decides:
            judged = judged._replace(criterion=loss)  # to the last digit
    return descent, judged, time.perf_counter() - begin
