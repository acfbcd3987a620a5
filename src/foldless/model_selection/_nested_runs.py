"""Nested cross-validation of a search: a grid without refits (the algebra: ``tuning.grid``), any other by a loop."""

from dataclasses import replace

import numpy as np
from joblib import delayed
from sklearn.base import clone, is_classifier
from sklearn.pipeline import make_pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import _safe_split

from foldless._engine.readout.calibration import fit_calibration
from foldless._engine.tuning.grid import (
    choose_candidates,
    heldout_of_candidate,
    inner_criterion,
    losses_from_one_P,
    outer_loss,
    sharing_pays,
)
from foldless._sklearn.adapters import FOLDLESS_ESTIMATORS
from foldless._sklearn.candidates import SearchData, heldout_scores, settings, targets_of, with_params
from foldless._sklearn.nested_data import OuterSplitResult
from foldless._sklearn.pipelines import fit_steps, split_steps
from foldless._sklearn.progress import Progress, run_with_progress
from foldless._sklearn.route import ONE_FIT, ONE_P_PER_FOLD, REFIT, Route
from foldless._sklearn.scorers import known_outputs
from foldless._sklearn.splits import draw_splits
from foldless._sklearn.steps import parts_of
from foldless.estimators.access import chooses_landmarks, cut_of, fits_of, loo_scores_of
from foldless.estimators.meta import OneAgainstAllClassifier

# -- grids -------------------------------------------------------------------------------------------------------------


def nested_grid(data, spec, outer, n_jobs, verbose):
    """(results of the outer splits, route) of a grid search."""
    search = data.search
    shown = SearchData(data.X, data.y, data.sample_weight, data.confounds)
    listed, tried = settings(search.estimator, search.param_grid, shown)
    inner = [data.inner_splits(train) for train, _ in outer]
    shared = [sharing_pays(each.task.problem, len(each.alphas), outer, inner) for each in tried]
    each_setting = zip(tried, shared, strict=True)
    jobs = (delayed(_inner_losses)(data, spec, setting, share, outer, inner) for setting, share in each_setting)
    found = run_with_progress(jobs, n_jobs, Progress(len(tried), "kernel settings", verbose))
    losses = np.empty((len(outer), len(listed), found[0].shape[-1]))
    for setting, values in zip(tried, found, strict=True):
        losses[:, setting.places] = values
    chosen = np.array([choose_candidates(each, tried)[0] for each in losses])
    results: dict = {}
    for setting in tried:
        for alpha, place in zip(setting.alphas, setting.places, strict=True):
            numbers = np.flatnonzero(chosen == place)
            if not len(numbers):
                continue
            splits = [outer[number] for number in numbers]
            selections = data.selections(spec, setting.task, splits, [inner[number] for number in numbers])
            held = heldout_of_candidate(setting.task, setting.problem(alpha), splits, selections, data.probabilities)
            for number, (_, test), each, selection in zip(numbers, splits, held, selections, strict=True):
                loss = losses[number, place].sum()
                if spec.score_decides:
                    loss = inner_criterion(setting.problem(alpha), selection)
                results[number] = _result(data, spec, setting, test, listed[place], loss, each)
    if data.keeps:
        for split, (train, _) in enumerate(outer):
            results[split] = replace(results[split], estimator=_fitted_on(data, train, listed[chosen[split]]))
    return [results[number] for number in range(len(outer))], _describe(shared)


def _inner_losses(data, spec, setting, share, outer, inner):
    """Inner losses (n_splits, n_alphas, m) of one kernel setting."""
    selections = data.selections(spec, setting.task, outer, inner)
    if share:
        return losses_from_one_P(setting.task, setting.alphas, selections)
    return np.stack([each.path(setting.task.problem, setting.alphas).losses for each in selections])


def _result(data, spec, setting, test, params, inner_loss, held):
    task = setting.task
    classes = setting.classes
    flat = setting.flat
    rows = held.inner_rows
    probabilities = held.probabilities
    last = split_steps(data.search.estimator).last
    if data.probabilities and probabilities is None and not isinstance(last, FOLDLESS_ESTIMATORS):
        weights = np.ones(len(rows)) if data.sample_weight is None else data.sample_weight[rows]
        sigmoid = fit_calibration("sigmoid", held.inner_scores, task.codes[rows], task.n_classes, weights)
        probabilities = sigmoid.proba(held.decision)  # as the search's own predict_proba
    return OuterSplitResult(
        params=params,
        inner_loss=inner_loss,
        outer_loss=outer_loss(spec, task, test, held.fits, held.decision),
        inner_rows=rows,
        inside=known_outputs(classes, flat, held.inner_scores - held.rule.cut),
        outside=known_outputs(classes, flat, held.decision, probabilities),
    )


def _fitted_on(data, train, params):
    """The estimator of a search with these parameters, fitted on a training part."""
    estimator = with_params(data.search.estimator, params)
    given = split_steps(estimator).fit_params(sample_weight=data.sample_weight, confounds=data.confounds)
    given = {name: _safe_indexing(each, train) for name, each in given.items()}
    return estimator.fit(*_safe_split(estimator, data.X, data.y, train), **given)


def _describe(shared):
    """The route, from whether each kernel setting had one P for all training parts."""

    def count(number):
        return f"{number} kernel setting{'' if number == 1 else 's'}"

    once = sum(shared)
    alone = len(shared) - once
    text = f"one matrix P for each alpha of {count(once)}; every training part follows from it"
    other = f"each training part decomposed by itself for {count(alone)}, which is less work there"
    if not alone:
        return Route(ONE_FIT, text)
    return Route(ONE_P_PER_FOLD, f"{text}; {other}" if once else other)


# -- continuous searches, and settings that differ between classes -----------------------------------------------------


def nested_loop(data, spec, outer, n_jobs, verbose):
    """(results of the outer splits, route) of any search, fitted on every training part."""
    jobs = (delayed(_one_split)(data, spec, train, test) for train, test in outer)
    results = run_with_progress(jobs, n_jobs, Progress(len(outer), "outer splits", verbose))
    return results, Route(REFIT, "every training part is searched by itself")


def _one_split(data, spec, train, test):
    """One outer split by ``fit`` on its training part."""
    first = None if data.steps is None else fit_steps(data.steps, data.X, train, data.y)
    if first is not None:
        data = replace(data, X=first.transform(data.X))
    search = clone(data.search).set_params(refit=data.search.refit or True)
    X, y = _safe_split(search, data.X, data.y, train)
    X_test, _ = _safe_split(search, data.X, data.y, test, train)
    given = (data.sample_weight, None if search.cv is None else data.groups, data.confounds)
    weight, groups, confounds = (None if each is None else _safe_indexing(each, train) for each in given)
    search.fit(X, y, sample_weight=weight, groups=groups, confounds=confounds)
    if search.stopped_ == "interrupted":  # the user means the whole, not this one search
        raise KeyboardInterrupt
    whole = search.best_estimator_
    rows, scores = _inner_scores(search, X, y, weight, confounds, groups)
    task, classes, flat = targets_of(search.estimator, data.y, data.sample_weight)
    new = (X_test,) if confounds is None else (X_test, _safe_indexing(data.confounds, test))
    decision = search.predict(*new).reshape(len(test), -1) if classes is None else search.decision_function(*new)
    fits = _criterion_fits(whole, *new)
    return OuterSplitResult(
        params=search.best_params_,
        inner_loss=search.best_criterion_,
        outer_loss=outer_loss(spec, task, test, fits, decision),
        inner_rows=train[rows],
        inside=known_outputs(classes, flat, scores - _cut(whole)),
        outside=known_outputs(classes, flat, decision, search.predict_proba(*new) if data.probabilities else None),
        estimator=(whole if first is None else make_pipeline(*first, whole)) if data.keeps else None,
    )


def _inner_scores(search, X, y, weight, confounds, groups):
    """(row numbers, held-out decisions) of a fitted search's best estimator, by its inner splits."""
    last = split_steps(search.best_estimator_).last
    plain = confounds is None and isinstance(last, FOLDLESS_ESTIMATORS) and not chooses_landmarks(last)
    if search.cv is None and plain:
        return loo_scores_of(last)
    splits = draw_splits(search.cv, search.estimator, X, y, groups)
    parts = parts_of(search, splits, len(y))
    return heldout_scores(clone(search.best_estimator_), SearchData(X, y, weight, confounds, parts), splits)


def _cut(estimator):
    """The cut of threshold="loo" in the decisions of a fitted estimator, for each class where each has its own."""
    estimator = split_steps(estimator).last
    if isinstance(estimator, OneAgainstAllClassifier):
        return np.array([_cut(each) for each in estimator.estimators_])
    return cut_of(estimator) if isinstance(estimator, FOLDLESS_ESTIMATORS) else 0.0


def _criterion_fits(estimator, X, *confounds):
    """Fits (n, m) of the criterion's targets by a fitted estimator."""
    steps = split_steps(estimator)
    estimator, new = steps.last, (steps.transform(X), *confounds)
    if isinstance(estimator, OneAgainstAllClassifier):
        return np.column_stack([_criterion_fits(each, *new) for each in estimator.estimators_])
    if isinstance(estimator, FOLDLESS_ESTIMATORS):
        return fits_of(estimator, *new)
    output = estimator.decision_function(*new) if is_classifier(estimator) else estimator.predict(*new)
    return output.reshape(len(output), -1)
