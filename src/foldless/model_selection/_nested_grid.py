"""Nested cross-validation of a grid without refits (the algebra: ``tuning.nested``)."""

from typing import NamedTuple

import numpy as np
from joblib import delayed

from foldless.bridge.adapters import FOLDLESS_ESTIMATORS
from foldless.bridge.candidates import Setting, candidates, settings
from foldless.bridge.nested_data import OuterSplitResult
from foldless.bridge.progress import Progress, run_with_progress
from foldless.bridge.route import ONE_FIT, ONE_P_PER_FOLD, Route
from foldless.bridge.scorers import known_outputs
from foldless.readout.calibration import fit_calibration
from foldless.tuning.grid import choose_candidates
from foldless.tuning.nested import (
    heldout_of_candidate,
    losses_by_part,
    losses_from_one_P,
    outer_loss,
    sharing_pays,
)
from foldless.tuning.selection import Selection


def nested_grid(data, criterion, outer, n_jobs, verbose):
    """(results of the outer splits, route) of a grid search."""
    search, triple = data.search, (data.X, data.y, data.sample_weight)
    listed = candidates(search.estimator, search.param_grid, *triple)
    tried = settings(search.estimator, listed, *triple)
    inner = [data.inner_splits(train) for train, _ in outer]
    shared = [sharing_pays(each.task.problem, len(each.alphas), outer, inner) for each in tried]
    jobs = (
        delayed(_inner_losses)(data, criterion, setting, share, outer, inner)
        for setting, share in zip(tried, shared, strict=True)
    )
    found = run_with_progress(jobs, n_jobs, Progress(len(tried), "kernel settings", verbose))
    losses = np.empty((len(outer), len(listed), found[0].shape[-1]))
    for setting, values in zip(tried, found, strict=True):
        losses[:, setting.places] = values
    places = [choose_candidates(each, tried)[0] for each in losses]
    results: dict[int, OuterSplitResult] = {}
    for place in set(places):
        mine = [number for number, chosen in enumerate(places) if chosen == place]
        setting = next(each for each in tried if place in each.places)
        candidate = _Candidate(setting, listed[place], setting.alphas[setting.places.index(place)])
        splits = [(*outer[number], inner[number], losses[number, place].sum()) for number in mine]
        results |= zip(mine, _results(data, criterion, candidate, splits), strict=True)
    return [results[number] for number in range(len(outer))], _describe(shared)


class _Candidate(NamedTuple):
    setting: Setting
    params: dict
    alpha: float


def _inner_losses(data, criterion, setting, share, outer, inner):
    """Inner losses (n_splits, n_alphas, m) of one kernel setting."""
    each = zip(outer, inner, strict=True)
    selections = [_selection(data, criterion, setting, train, splits) for (train, _), splits in each]
    if share:
        return losses_from_one_P(setting.task, setting.alphas, selections)
    return losses_by_part(setting.task.problem, setting.alphas, selections)


def _selection(data, criterion, setting, train, inner):
    options = {"weight": data.search.criterion_weight, "sample_weight": data.sample_weight}
    return Selection.of(setting.task, criterion, splits=inner, train=train, **options)


def _results(data, criterion, candidate, splits):
    """Results of the outer splits (train, test, inner splits, inner loss) that chose a candidate."""
    setting = candidate.setting
    task, classes, flat = setting.task, setting.classes, setting.flat
    outer = [(train, test) for train, test, _, _ in splits]
    selections = [_selection(data, criterion, setting, train, inner) for train, _, inner, _ in splits]
    problem = setting.problem(candidate.alpha)
    judged = heldout_of_candidate(task, problem, outer, selections, probabilities=data.probabilities)
    options = {"weight": data.search.criterion_weight, "sample_weight": data.sample_weight}
    for (_, test, _, loss), held in zip(splits, judged, strict=True):
        yield OuterSplitResult(
            params=candidate.params,
            inner_loss=loss,
            outer_loss=outer_loss(task, criterion, test, held.fits, held.decision, **options),
            inner_rows=held.inner_rows,
            inside=known_outputs(classes, flat, held.inner_scores - held.rule.cut),
            outside=known_outputs(classes, flat, held.decision, _probabilities(data, setting, held)),
        )


def _probabilities(data, setting, held):
    """Probabilities of the outer test rows, where scores want them."""
    if not data.probabilities or held.probabilities is not None or isinstance(setting.estimator, FOLDLESS_ESTIMATORS):
        return held.probabilities
    rows, task = held.inner_rows, setting.task  # as the search's own predict_proba
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
