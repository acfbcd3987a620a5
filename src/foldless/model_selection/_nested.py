"""Nested cross-validation: a search is repeated on every outer training part, and scored on the outer test rows.

A grid takes no refits (the algebra: ``tuning.grid``). Its parameters from data are resolved once on all rows: "scale",
balanced class weights and the default grid, of which only the second depends on labels. Continuous searches and
searches of one setting for each class (``share``) are refitted on every training part.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from joblib import delayed
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.model_selection import check_cv
from sklearn.pipeline import make_pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import _safe_split

from foldless._engine.inference.counts import ScoreKind
from foldless._engine.linalg.threads import threads_by_size
from foldless._engine.linalg.types import MatrixLike
from foldless._engine.readout.calibration import fit_calibration
from foldless._engine.tuning.grid import (
    choose_candidates,
    heldout_of_candidate,
    inner_criterion,
    losses_from_one_P,
    outer_loss,
    sharing_pays,
)
from foldless._sklearn.adapters import FOLDLESS_ESTIMATORS, check_probabilities
from foldless._sklearn.candidates import SearchData, by_grid, heldout_scores, settings, targets_of, with_params
from foldless._sklearn.confounded import columns_alone
from foldless._sklearn.counting import Counting
from foldless._sklearn.landmarks import landmarks_to_find
from foldless._sklearn.nested_data import NestedData, OuterSplitResult
from foldless._sklearn.pipelines import Search, fit_steps, split_steps
from foldless._sklearn.progress import Progress, run_with_progress
from foldless._sklearn.route import ONE_FIT, ONE_P_PER_FOLD, REFIT, Route
from foldless._sklearn.scorer_checks import check_scorers
from foldless._sklearn.scorers import deciding_scoring, scores_by_name, stored_outputs, wants_probabilities
from foldless._sklearn.splits import check_confounds_determined, draw_splits, row_numbers
from foldless._sklearn.steps import StepsLike, fits_steps, front_of, parts_of
from foldless._sklearn.weights import route_with_weights, with_row_weights
from foldless.estimators.access import chooses_landmarks, cut_of, fits_of, loo_scores_of
from foldless.estimators.checks import confounds_left_out, rows_and_labels
from foldless.estimators.meta import OneAgainstAllClassifier
from foldless.model_selection._nested_result import NestedResult, tested
from foldless.model_selection._search_spec import check_search_with_confounds, checked_rows, search_spec, with_scores
from foldless.model_selection._types import ConfoundsLike, CVLike, Params, ScoringLike


@threads_by_size
def nested_cross_validate(
    search: BaseEstimator,
    X: MatrixLike,
    y: MatrixLike,
    *,
    cv: CVLike = None,
    groups: ArrayLike | None = None,
    scoring: ScoringLike = None,
    params: Params = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    confounds: ConfoundsLike = None,
    steps: StepsLike = "each",
    return_estimator: bool = False,
) -> NestedResult:
    """Exact nested cross-validation: the search is repeated on every outer training part, and scored on its test rows.

    A criterion that was optimised is a biased estimate of performance. Here every outer split chooses its own
    hyper-parameters; for grids no model is refitted.

    Parameters
    ----------
    search : FoldlessSearchCV, or a pipeline that ends in one
        Earlier steps of a pipeline are fitted on every outer training part (the inner splits see their output), and so
        are those of a pipeline inside the search (the inner splits by its own ``steps``).
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
    cv : int, splitter or iterable, default=None
        The outer splits, 5-fold by default; ``StratifiedShuffleSplit(100, test_size=0.1)`` is the practice of Cawley
        (2006). The inner ones are those of ``search``.
    groups : array-like of shape (n_samples,), default=None
        For the outer and for the inner splitter.
    scoring : str, scorer, list or dict of them, default=None
        None: the deciding score of ``search`` if it has a ``scoring``, else accuracy or R2. Several give dicts.
    params : dict, default=None
        {"sample_weight": weights} for the fits.
    n_jobs : int, default=None
        Kernel settings, or outer splits, worked on at a time; None: that of ``search``.
    verbose : int, default=0
        1 prints progress to standard error.
    confounds : array-like of shape (n_samples, n_confounds), default=None
        As in :func:`cross_validate`; regressed out anew in every outer and inner training part.
    steps : {"each", "once"}, default="each"
        As in :func:`cross_validate`: "once" fits the first steps of a pipeline on all rows, labels unseen.
    return_estimator : bool, default=False
        Whether to return the estimators with the chosen parameters, each fitted on its outer training part. Parameters
        from data ("scale", balanced weights) are then resolved on that part.

    Returns
    -------
    NestedResult

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from foldless import FoldlessSearchCV, LSSVC
    >>> from foldless.model_selection import nested_cross_validate
    >>> X, y = load_wine(return_X_y=True)
    >>> X = (X - X.mean(0)) / X.std(0)
    >>> result = nested_cross_validate(FoldlessSearchCV(LSSVC()), X, y, cv=10)
    >>> print(result.test_score.mean().round(3), result.inner_score.mean().round(3))
    0.983 0.988
    """
    front = front_of(search, X, params, steps)
    pipeline = split_steps(front.estimator)
    search, params = pipeline.last, front.params
    _check(search, y, params)
    X, y, groups = rows_and_labels(front.X, y, groups)
    spec, confounds = search_spec(search), confounds_left_out(confounds, "a search")
    targets, sample_weight = checked_rows(search, y, (params or {}).get("sample_weight"))
    if search.scoring is not None:
        spec = with_scores(spec, search, targets)
    spec = with_row_weights(spec, search, targets, sample_weight)
    scorings, several = _scorings(search, spec, scoring, targets)
    scorers = {name: scoring.scorer for name, scoring in scorings.items()}
    if confounds is not None:
        confounds = check_search_with_confounds(search, confounds, len(targets))
    probabilities = any(map(wants_probabilities, scorers.values()))
    data = NestedData(
        search, X, targets, groups, sample_weight, confounds, probabilities, pipeline.first, return_estimator
    )
    splits = check_cv(cv, targets, classifier=is_classifier(search.estimator)).split(X, targets, groups)
    outer = row_numbers(splits, len(targets))
    data.check(outer)
    if confounds is not None:
        check_confounds_determined(columns_alone(search, confounds), outer)
    run = nested_grid if _in_closed_form(data, steps) else nested_loop
    results, route = run(data, spec, outer, search.n_jobs if n_jobs is None else n_jobs, verbose or search.verbose)
    test_scores, inner_scores = _scores(scorers, results, targets, outer)
    return NestedResult(
        test_score=test_scores if several else test_scores["score"],
        inner_score=inner_scores if several else inner_scores["score"],
        inner_criterion=np.array([result.inner_loss for result in results]),
        outer_criterion=np.array([result.outer_loss for result in results]),
        best_params=[result.params for result in results],
        predictions=[result.outside.predict(None) for result in results],
        decision=[result.outside.decision for result in results],
        test_indices=[test for _, test in outer],
        path=front.route(route_with_weights(route, search, spec)),
        **_fitted_models(front, results, targets, outer) if return_estimator else {},
        test_share=float(np.mean([len(test) / len(train) for train, test in outer])),
        counting=_counting(scorings, search, targets, groups, outer, results),
    )


def _scores(scorers, results, y, outer):
    """{name: scores of the outer splits}, and the same of the rows that the choice was made by."""
    test_scores, inner_scores = {}, {}
    for name, scorer in scorers.items():
        pairs = zip(results, outer, strict=True)
        test_scores[name] = np.array([result.outer_score(scorer, y, test) for result, (_, test) in pairs])
        inner_scores[name] = np.array([result.inner_score(scorer, y) for result in results])
    return test_scores, inner_scores


def _counting(scorings, search, y, groups, outer, results):
    """The :class:`Counting` of the predictions of the outer splits."""
    counting = Counting.of(None, search.estimator, y, groups, outer)
    kinds = {}
    for name, scoring in scorings.items():  # the estimator's own score has a metric too
        scorer = scoring.scorer if scoring.metric is None else scoring.metric.scorer()
        kinds[name] = ScoreKind.of(scoring.argument, scorer)
    if counting.counts is None:
        return Counting(kinds, None)
    rows = np.concatenate([test for _, test in outer])
    predicted = np.concatenate([result.outside.predict(None) for result in results])
    return Counting(kinds, counting.counts.with_labels(np.ravel(y)[rows], predicted))


def _fitted_models(front, results, y, outer):
    """The fitted estimators of the outer splits, and their outputs for the test rows."""
    models = [result.estimator for result in results]
    outputs = [tested(model, front.X, y, *split) for model, split in zip(models, outer, strict=True)]
    return {"estimator": [front.whole(model) for model in models], "tested": outputs}


def _check(search, y, params):
    """Raise an error if this is no search, or if params holds parameters that are not passed on."""
    if not isinstance(search, Search):
        raise ValueError(
            f"search={search!r} must be a FoldlessSearchCV, or a pipeline that ends in one; scikit-learn's"
            " cross_validate takes others."
        )
    unknown = set(params or {}) - {"sample_weight"}
    if unknown:
        raise ValueError(f"params holds {sorted(unknown)}; only sample_weight is passed to the fits.")
    if y is None:
        raise ValueError("y=None: there is nothing to predict.")


def _in_closed_form(data, steps):
    """Whether one setting of a whole grid is chosen without refits: no steps are fitted on the training parts."""
    search = data.search
    if data.steps is not None or search.share != "all" or fits_steps(search, steps):
        return False
    if landmarks_to_find(search, data.X) is not None:
        return False
    return by_grid(search, SearchData(data.X, data.y, data.sample_weight, data.confounds))


def _scorings(search, spec, scoring, y):
    """({name: Scoring} of ``scoring``, whether there may be several); None: the score that decides in the search."""
    if search.scoring is not None and not spec.score_decides:
        raise ValueError(f"refit={search.refit!r} of the search must name the one of its scores that decides.")
    scoring = deciding_scoring(search.scoring, search.refit) if scoring is None else scoring
    scorings, several = scores_by_name(search, scoring)
    check_probabilities(scoring, search)
    check_scorers([(scoring.name, scoring.scorer) for scoring in scorings.values()], search.estimator, y)
    return scorings, several


# -- grids -------------------------------------------------------------------------------------------------------------


def nested_grid(data, spec, outer, n_jobs, verbose):
    """(results of the outer splits, route) of a grid search."""
    search = data.search
    all_rows = SearchData(data.X, data.y, data.sample_weight, data.confounds)
    candidates, kernel_settings = settings(search.estimator, search.param_grid, all_rows)
    inner = [data.inner_splits(train) for train, _ in outer]
    shared = [sharing_pays(setting.task.problem, len(setting.alphas), outer, inner) for setting in kernel_settings]
    jobs = (
        delayed(_inner_losses)(data, spec, setting, share, outer, inner)
        for setting, share in zip(kernel_settings, shared, strict=True)
    )
    progress = Progress(len(kernel_settings), "kernel settings", verbose)
    losses_of_settings = run_with_progress(jobs, n_jobs, progress)
    losses = np.empty((len(outer), len(candidates), losses_of_settings[0].shape[-1]))
    for setting, values in zip(kernel_settings, losses_of_settings, strict=True):
        losses[:, setting.places] = values
    chosen = np.array([choose_candidates(losses_of_split, kernel_settings)[0] for losses_of_split in losses])
    results: dict = {}
    for setting in kernel_settings:
        for alpha, place in zip(setting.alphas, setting.places, strict=True):
            splits = np.flatnonzero(chosen == place)
            if len(splits):
                criterion = losses[splits, place].sum(-1)
                results |= _results_of_candidate(
                    data, spec, setting, alpha, candidates[place], splits, criterion, outer, inner
                )
    if data.keeps:
        for split, (train, _) in enumerate(outer):
            fitted = _fitted_on(data, train, candidates[chosen[split]])
            results[split] = replace(results[split], estimator=fitted)
    return [results[split] for split in range(len(outer))], _describe(shared)


def _results_of_candidate(data, spec, setting, alpha, params, splits, criterion, outer, inner):
    """{split: :class:`OuterSplitResult`} of the outer splits that chose one candidate, by their inner criterion."""
    problem = setting.problem(alpha)
    pairs = [outer[split] for split in splits]
    selections = data.selections(spec, setting.task, pairs, [inner[split] for split in splits])
    held_out = heldout_of_candidate(setting.task, problem, pairs, selections, data.probabilities)
    if spec.score_decides:
        criterion = [inner_criterion(problem, selection) for selection in selections]
    return {
        split: _result(data, spec, setting, test, params, loss, part)
        for split, (_, test), loss, part in zip(splits, pairs, criterion, held_out, strict=True)
    }


def _inner_losses(data, spec, setting, share, outer, inner):
    """Inner losses (n_splits, n_alphas, m) of one kernel setting."""
    selections = data.selections(spec, setting.task, outer, inner)
    if share:
        return losses_from_one_P(setting.task, setting.alphas, selections)
    return np.stack([selection.path(setting.task.problem, setting.alphas).losses for selection in selections])


def _result(data, spec, setting, test, params, inner_loss, held_out):
    task = setting.task
    classes = setting.classes
    flat = setting.flat
    rows = held_out.inner_rows
    probabilities = held_out.probabilities
    last = split_steps(data.search.estimator).last
    if data.probabilities and probabilities is None and not isinstance(last, FOLDLESS_ESTIMATORS):
        weights = np.ones(len(rows)) if data.sample_weight is None else data.sample_weight[rows]
        sigmoid = fit_calibration("sigmoid", held_out.inner_scores, task.codes[rows], task.n_classes, weights)
        probabilities = sigmoid.proba(held_out.decision)  # as the search's own predict_proba
    return OuterSplitResult(
        params=params,
        inner_loss=inner_loss,
        outer_loss=outer_loss(spec, task, test, held_out.fits, held_out.decision),
        inner_rows=rows,
        inside=stored_outputs(classes, flat, held_out.inner_scores - held_out.rule.cut),
        outside=stored_outputs(classes, flat, held_out.decision, probabilities),
    )


def _fitted_on(data, train, params):
    """The estimator of a search with these parameters, fitted on a training part."""
    estimator = with_params(data.search.estimator, params)
    options = split_steps(estimator).fit_params(sample_weight=data.sample_weight, confounds=data.confounds)
    options = {name: _safe_indexing(values, train) for name, values in options.items()}
    return estimator.fit(*_safe_split(estimator, data.X, data.y, train), **options)


def _describe(shared):
    """The route; ``shared`` holds for each kernel setting whether it had one P for all training parts."""

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
    groups = None if search.cv is None else data.groups
    weight, groups, confounds = (
        None if values is None else _safe_indexing(values, train)
        for values in (data.sample_weight, groups, data.confounds)
    )
    search.fit(X, y, sample_weight=weight, groups=groups, confounds=confounds)
    if search.stopped_ == "interrupted":  # the user means the nested cross-validation, not this one search
        raise KeyboardInterrupt
    best = search.best_estimator_
    rows, scores = _inner_scores(search, X, y, weight, confounds, groups)
    targets = targets_of(search.estimator, data.y, data.sample_weight)
    task, classes, flat = targets.task, targets.classes, targets.flat
    new_rows = (X_test,) if confounds is None else (X_test, _safe_indexing(data.confounds, test))
    if classes is None:
        decision = search.predict(*new_rows).reshape(len(test), -1)
    else:
        decision = search.decision_function(*new_rows)
    fits = _criterion_fits(best, *new_rows)
    probabilities = search.predict_proba(*new_rows) if data.probabilities else None
    fitted = best if first is None else make_pipeline(*first, best)
    return OuterSplitResult(
        params=search.best_params_,
        inner_loss=search.best_criterion_,
        outer_loss=outer_loss(spec, task, test, fits, decision),
        inner_rows=train[rows],
        inside=stored_outputs(classes, flat, scores - _cut(best)),
        outside=stored_outputs(classes, flat, decision, probabilities),
        estimator=fitted if data.keeps else None,
    )


def _inner_scores(search, X, y, weight, confounds, groups):
    """(row numbers, held-out decisions) of a fitted search's best estimator, by its inner splits."""
    last = split_steps(search.best_estimator_).last
    in_closed_form = confounds is None and isinstance(last, FOLDLESS_ESTIMATORS) and not chooses_landmarks(last)
    if search.cv is None and in_closed_form:
        return loo_scores_of(last)
    splits = draw_splits(search.cv, search.estimator, X, y, groups)
    parts = parts_of(search, splits, len(y))
    return heldout_scores(clone(search.best_estimator_), SearchData(X, y, weight, confounds, parts), splits)


def _cut(estimator):
    """The cut of threshold="loo" in the decisions of a fitted estimator, one for each class if they have their own."""
    last = split_steps(estimator).last
    if isinstance(last, OneAgainstAllClassifier):
        return np.array([_cut(classifier) for classifier in last.estimators_])
    return cut_of(last) if isinstance(last, FOLDLESS_ESTIMATORS) else 0.0


def _criterion_fits(estimator, X, *confounds):
    """Fits (n, m) of the criterion's targets by a fitted estimator."""
    steps = split_steps(estimator)
    last, new_rows = steps.last, (steps.transform(X), *confounds)
    if isinstance(last, OneAgainstAllClassifier):
        return np.column_stack([_criterion_fits(classifier, *new_rows) for classifier in last.estimators_])
    if isinstance(last, FOLDLESS_ESTIMATORS):
        return fits_of(last, *new_rows)
    output = last.decision_function(*new_rows) if is_classifier(last) else last.predict(*new_rows)
    return output.reshape(len(output), -1)
