"""How a grid runs: one path of alphas for each kernel setting, then the choice, for all classes or for each of them.

An automatic grid goes beyond its edge once, where the best lies there and the criterion still falls.
"""

from dataclasses import replace

import numpy as np
from joblib import delayed

from foldless.bridge.progress import Progress, run_with_progress
from foldless.model_selection._search_end import warn_of_time
from foldless.model_selection._search_runs import Outcome, Record, what_decided
from foldless.tuning.average import simplest
from foldless.tuning.foresight import foreseen_seconds
from foldless.tuning.grid import choose_candidates, try_alphas
from foldless.tuning.space import on_edge


def grid_search(spec, listed, tried, splits, widen=None):
    """The best of the candidates ``listed``, whose kernel settings are ``tried``.

    ``widen`` makes further ones, of an automatic grid, from the candidates and their losses.
    """
    _foresee(spec, tried, splits)
    found = _try(spec, tried, splits)
    stopped, edge = len(found) < len(tried), ()
    losses = _losses(tried, found) if not stopped else np.empty((0, 0))
    if widen is not None and not stopped and (spec.share == "all" or losses.shape[1] == 1):
        more, further = widen(listed, losses.sum(1))
        if further:
            found_there = _try(spec, further, splits)
            stopped = len(found_there) < len(further)
            listed = listed + more
            tried = tried + further
            found = found + found_there
            edge = tuple(on_edge(listed, _losses(tried, found).sum(1))) if not stopped else ()
    if stopped:
        listed, tried = _only_tried(listed, tried[: len(found)])
    return _outcome(spec, listed, tried, found, splits, spec.ended_by if stopped else None, edge)


def _foresee(spec, tried, splits):
    """Say so in advance where the grid will take long."""
    first = tried[0]

    def evaluate(rows):
        if first.parts:  # each of which has a decomposition, most of the work
            path = first.task.problem.path(rows, len(first.alphas))
            for alpha in first.alphas:
                path.with_alpha(alpha)
            return
        selection = spec.choosing.selection(first.task, splits, rows=rows)
        selection.path(first.task.problem, first.alphas)

    seconds = len(tried) * max(1, len(first.parts)) * foreseen_seconds(first.task, splits, evaluate)
    quicker = 'method="auto" without a param_grid, '
    warn_of_time(seconds, first.n_rows, quicker, stacklevel=8)


def _try(spec, tried, splits):
    """What each kernel setting got, or the first of them where the search was stopped."""
    jobs = (delayed(try_alphas)(spec, each, splits) for each in tried)
    progress = Progress(len(tried), "kernel settings", spec.verbose)
    return run_with_progress(jobs, spec.n_jobs, progress, stop=lambda: spec.out_of_time)


def _losses(tried, found):
    """Losses (n_candidates, m) in the order of the candidates."""
    losses = np.empty((sum(len(each.places) for each in tried), found[0].judged.losses.shape[1]))
    for setting, each in zip(tried, found, strict=True):
        losses[setting.places] = each.judged.losses
    return losses


def _only_tried(listed, tried):
    """The candidates that were looked at, and their settings with the places among these."""
    kept = sorted(place for each in tried for place in each.places)
    new = {place: number for number, place in enumerate(kept)}
    return [listed[place] for place in kept], [
        replace(each, places=[new[place] for place in each.places]) for each in tried
    ]


def _outcome(spec, listed, tried, found, splits, stopped, edge):
    losses, pairs = _losses(tried, found), list(zip(tried, found, strict=True))
    record = Record.of(spec, splits, [(setting.places, each.judged, each.seconds) for setting, each in pairs])
    chosen = choose_candidates(losses, tried, spec.share)
    if spec.one_se:
        chosen = [simplest(listed, record.criterion, chosen[0], record.errors[chosen[0]])]
    alone, n = len(chosen) == 1, tried[0].n_rows
    times = record.seconds + record.score_seconds
    return Outcome(
        classes=tried[0].classes,
        params=listed,
        record=record,
        chosen=chosen,
        best=[listed[place] for place in chosen],
        loss=record.criterion[chosen[0]] if alone else losses[chosen, np.arange(len(chosen))].sum(),
        heldout=None if spec.one_se else next(each.heldout for setting, each in pairs if chosen[0] in setting.places),
        history=[
            {"n_rows": n, "time": float(seconds), **what_decided(spec, loss), **each}
            for seconds, loss, each in zip(times, losses.sum(1), listed, strict=True)
        ],
        stopped=stopped,
        on_edge=edge,
    )
