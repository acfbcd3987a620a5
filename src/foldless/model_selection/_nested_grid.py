"""Nested cross-validation of a grid without refits (the algebra: ``tuning.grid``)."""

import numpy as np
from joblib import delayed

from foldless.bridge.adapters import FOLDLESS_ESTIMATORS
from foldless.bridge.candidates import settings
from foldless.bridge.nested_data import OuterSplitResult
from foldless.bridge.progress import Progress, run_with_progress
from foldless.bridge.route import ONE_FIT, ONE_P_PER_FOLD, Route
from foldless.bridge.scorers import known_outputs
from foldless.readout.calibration import fit_calibration
from foldless.tuning.grid import choose_candidates, heldout_of_candidate, losses_from_one_P, outer_loss, sharing_pays


def nested_grid(data, spec, outer, n_jobs, verbose):
    """(results of the outer splits, route) of a grid search."""
    search = data.search
    listed, tried = settings(search.estimator, search.param_grid, data.X, data.y, data.sample_weight)
    inner = [data.inner_splits(train) for train, _ in outer]
    shared = [sharing_pays(each.task.problem, len(each.alphas), outer, inner) for each in tried]
    jobs = (
        delayed(_inner_losses)(data, spec, setting, share, outer, inner)
        for setting, share in zip(tried, shared, strict=True)
    )
    found = run_with_progress(jobs, n_jobs, Progress(len(tried), "kernel settings", verbose))
    losses = np.empty((len(outer), len(listed), found[0].shape[-1]))
    for setting, values in zip(tried, found, strict=True):
        losses[:, setting.places] = values
    chosen = [choose_candidates(each, tried)[0] for each in losses]
    results: dict[int, OuterSplitResult] = {}
    for setting in tried:
        for alpha, place in zip(setting.alphas, setting.places, strict=True):
            mine = [number for number, best in enumerate(chosen) if best == place]
            if mine:
                splits = [outer[number] for number in mine], [inner[number] for number in mine]
                held = _held_out(data, spec, setting, alpha, *splits)
                for number, split in zip(mine, held, strict=True):
                    loss = losses[number, place].sum()
                    results[number] = _result(data, spec, setting, outer[number][1], listed[place], loss, split)
    return [results[number] for number in range(len(outer))], _describe(shared)


def _inner_losses(data, spec, setting, share, outer, inner):
    """Inner losses (n_splits, n_alphas, m) of one kernel setting."""
    selections = data.selections(spec, setting.task, outer, inner)
    if share:
        return losses_from_one_P(setting.task, setting.alphas, selections)
    return np.stack([each.path(setting.task.problem, setting.alphas)[0] for each in selections])


def _held_out(data, spec, setting, alpha, outer, inner):
    """Held-out outputs of one candidate in the outer splits that chose it."""
    selections = data.selections(spec, setting.task, outer, inner)
    return heldout_of_candidate(setting.task, setting.problem(alpha), outer, selections, data.probabilities)


def _result(data, spec, setting, test, params, inner_loss, held):
    task, classes, flat = setting.task, setting.classes, setting.flat
    return OuterSplitResult(
        params=params,
        inner_loss=inner_loss,
        outer_loss=outer_loss(spec, task, test, held.fits, held.decision, data.sample_weight),
        inner_rows=held.inner_rows,
        inside=known_outputs(classes, flat, held.inner_scores - held.rule.cut),
        outside=known_outputs(classes, flat, held.decision, _probabilities(data, task, held)),
    )


def _probabilities(data, task, held):
    """Probabilities of the outer test rows, where scores want them."""
    own = isinstance(data.search.estimator, FOLDLESS_ESTIMATORS)
    if not data.probabilities or held.probabilities is not None or own:
        return held.probabilities
    rows = held.inner_rows  # as the search's own predict_proba
    counted = np.ones(len(rows)) if data.sample_weight is None else data.sample_weight[rows]
    sigmoid = fit_calibration("sigmoid", held.inner_scores, task.codes[rows], task.n_classes, counted)
    return sigmoid.proba(held.decision)


def _count(number):
    return f"{number} kernel setting{'' if number == 1 else 's'}"


def _describe(shared):
    """The route, from whether each kernel setting had one P for all training parts."""
    once = sum(shared)
    alone = len(shared) - once
    text = f"one matrix P for each alpha of {_count(once)}; every training part follows from it"
    other = f"each training part decomposed by itself for {_count(alone)}, which is less work there"
    if not alone:
        return Route(ONE_FIT, text)
    return Route(ONE_P_PER_FOLD, other if not once else f"{text}; {other}")
