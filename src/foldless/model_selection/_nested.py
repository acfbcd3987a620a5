"""Nested cross-validation: a search is repeated on every outer training part, and scored on the outer test rows.

A grid takes no refits (the algebra: ``tuning.grid``). Its parameters from data are resolved once on all rows: "scale",
balanced class weights and the default grid, of which only the second depends on labels. Continuous searches and
searches of one setting for each class (``share``) are refitted on every training part.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from joblib import delayed
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.model_selection import check_cv
from sklearn.pipeline import make_pipeline
from sklearn.utils import _safe_indexing

from foldless._engine.linalg.threads import threads_by_size, threads_for
from foldless._engine.linalg.types import MatrixLike
from foldless._engine.readout.calibration import fit_calibration
from foldless._engine.readout.codings import chosen_labels
from foldless._engine.tuning.grid import (
    choose_candidates,
    heldout_of_candidate,
    inner_criterion,
    losses_from_one_P,
    nested_cost,
    outer_loss,
)
from foldless._engine.tuning.spec import SearchSpec
from foldless._sklearn.adapters import FOLDLESS_ESTIMATORS, check_probabilities, learns_kernel
from foldless._sklearn.candidates import (
    SearchData,
    by_grid,
    heldout_scores,
    settings,
    targets_of,
    with_params,
)
from foldless._sklearn.confounded import columns_alone
from foldless._sklearn.counting import Counting
from foldless._sklearn.landmarks import landmarks_to_find
from foldless._sklearn.nested_data import NestedData, OuterSplitResult
from foldless._sklearn.pipelines import Search, fit_steps, split_steps
from foldless._sklearn.progress import Progress, run_with_progress
from foldless._sklearn.request import NestedRequest
from foldless._sklearn.route import ONE_FIT, ONE_P_PER_FOLD, REFIT, Route
from foldless._sklearn.scorer_checks import check_scorers
from foldless._sklearn.scorers import deciding_scoring, decision_columns, scores_by_name, wants_probabilities
from foldless._sklearn.splits import check_confounds_determined, draw_splits, row_numbers
from foldless._sklearn.steps import StepsLike, fits_steps, parts_of
from foldless._sklearn.weights import route_with_weights, with_row_weights
from foldless.estimators.access import EstimatorTask, chooses_landmarks, cut_of, fits_of, loo_scores_of
from foldless.estimators.checks import confounds_left_out, rows_and_labels, warn_of_long_call
from foldless.estimators.meta import OneAgainstAllClassifier
from foldless.estimators.metrics import score_kind, scorer_of
from foldless.model_selection._nested_result import NestedResult, tested
from foldless.model_selection._search_spec import check_search_with_confounds, checked_rows, search_spec, with_scores
from foldless.model_selection._types import ConfoundsLike, CVLike, Params, ScoringLike

ARRAYS = 2  # n x n at the same time: P and its factor, or its eigenvectors


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
    request = NestedRequest(
        estimator=search,
        X=X,
        y=y,
        groups=groups,
        cv=cv,
        scoring=scoring,
        params=params,
        confounds=confounds,
        steps=steps,
        n_jobs=n_jobs,
        verbose=verbose,
        return_estimator=return_estimator,
    )
    return run_nested(request)


def run_nested(request):
    """The :class:`NestedResult` of a request."""
    front, request = request.behind_steps()
    nested = NestedSearch.of(request)
    data, search = nested.data, nested.data.search
    scorings, several = _scorings(search, request.scoring, data.y)
    nested = nested.with_probabilities(any(wants_probabilities(scoring.scorer) for scoring in scorings.values()))
    cv = check_cv(request.cv, data.y, classifier=is_classifier(search.estimator))
    outer = row_numbers(cv.split(data.X, data.y, data.groups), len(data.y))
    results, route = nested.results(outer)
    test_scores, inner_scores = _scores(scorings, nested, results, outer)
    predictions = [nested.predictions(result.decision) for result in results]
    return NestedResult(
        test_score=test_scores if several else test_scores["score"],
        inner_score=inner_scores if several else inner_scores["score"],
        inner_criterion=np.array([result.inner_loss for result in results]),
        outer_criterion=np.array([result.outer_loss for result in results]),
        best_params=[result.params for result in results],
        predictions=predictions,
        decision=[None if nested.targets.classes is None else result.decision for result in results],
        test_indices=[test for _, test in outer],
        path=front.route(route_with_weights(route, search, nested.spec)),
        **_fitted_models(front, nested, results, outer) if request.return_estimator else {},
        test_share=float(np.mean([len(test) / len(train) for train, test in outer])),
        counting=_counting(scorings, data, outer, predictions),
    )


@dataclass(frozen=True)
class NestedSearch:
    """A search that is repeated without the test rows of any outer splits: its checked data, spec and targets."""

    data: NestedData
    spec: SearchSpec
    rows: SearchData  # all rows, checked once where no steps are fitted on the outer training parts
    targets: EstimatorTask  # of all rows; X has a placeholder
    by_grid: bool  # whether a whole grid is evaluated without refits
    n_jobs: int | None
    verbose: int | None

    @classmethod
    def of(cls, request):
        """The search of a request; its outer splits are not drawn yet."""
        pipeline = split_steps(request.estimator)
        search, params = pipeline.last, request.params or {}
        _check(search, request.y, params)
        X, y, groups = rows_and_labels(request.X, request.y, request.groups)
        spec, confounds = search_spec(search), confounds_left_out(request.confounds, "a search")
        y, sample_weight = checked_rows(search, y, params.get("sample_weight"))
        if search.scoring is not None:
            spec = with_scores(spec, search, y)
            if not spec.score_decides:
                raise ValueError(f"refit={search.refit!r} of the search must name the one of its scores that decides.")
        spec = with_row_weights(spec, search, y, sample_weight)
        if confounds is not None:
            confounds = check_search_with_confounds(search, confounds, len(y))
        data = NestedData(search, X, y, groups, sample_weight, confounds, steps=pipeline.first)
        data = replace(data, keeps=request.return_estimator)
        rows = SearchData(X, y, sample_weight, confounds)
        if data.steps is None:
            rows.checked_rows(search.estimator)  # before any process has a copy
        return cls(
            data=data,
            spec=spec,
            rows=rows,
            targets=targets_of(search.estimator, y, sample_weight),
            by_grid=_in_closed_form(data, rows, request.steps),
            n_jobs=search.n_jobs if request.n_jobs is None else request.n_jobs,
            verbose=request.verbose or search.verbose,
        )

    def with_probabilities(self, probabilities):
        """The same, with probabilities of the outer test rows where these are scored."""
        return replace(self, data=replace(self.data, probabilities=probabilities))

    def results(self, outer):
        """([:class:`OuterSplitResult`], route) of outer splits, pairs of row numbers."""
        self.data.check(outer)
        if self.data.confounds is not None:
            check_confounds_determined(columns_alone(self.data.search, self.data.confounds), outer)
        return (nested_grid if self.by_grid else nested_loop)(self, outer)

    @property
    def model_rows(self):
        """All rows as the models of the outer splits take them."""
        checked = None if self.data.steps is not None else self.rows.checked_rows(self.data.search.estimator)
        return self.data.X if checked is None else checked

    def predictions(self, decision):
        """Labels of decisions, or values of shape (t,) where y is one column."""
        classes, flat = self.targets.classes, self.targets.flat
        if classes is None:
            return decision[:, 0] if flat else decision
        return chosen_labels(decision, classes, flat)

    def score(self, scoring, rows, decision, probabilities=None):
        """The score of decisions of some rows; nan where it is not defined."""
        task, D = self.targets.task, decision_columns(decision[None])
        truth = task.Y[rows].T if task.codes is None else task.codes[rows]
        probabilities = None if probabilities is None else probabilities[None]
        (score,) = scoring.scores(self.targets, D, truth[None], probabilities=probabilities)
        return float(score)


def _scores(scorings, nested, results, outer):
    """{name: scores of the outer splits}, and the same of the rows that the choice was made by.

    Scores of probabilities are nan for the latter.
    """
    test_scores, inner_scores = {}, {}
    for name, scoring in scorings.items():
        pairs = zip(results, outer, strict=True)
        outside = [nested.score(scoring, test, result.decision, result.probabilities) for result, (_, test) in pairs]
        inside = [np.nan] * len(results)
        if not wants_probabilities(scoring.scorer):
            inside = [nested.score(scoring, result.inner_rows, result.inner_decision) for result in results]
        test_scores[name], inner_scores[name] = np.array(outside), np.array(inside)
    return test_scores, inner_scores


def _counting(scorings, data, outer, predictions):
    """The :class:`Counting` of the predictions of the outer splits."""
    counting = Counting.of(None, data.search.estimator, data.y, data.groups, outer)
    kinds = {}
    for name, scoring in scorings.items():  # the estimator's own score has a metric too
        scorer = scoring.scorer if scoring.metric is None else scorer_of(scoring.metric)
        kinds[name] = score_kind(scoring.argument, scorer)
    if counting.counts is None:
        return Counting(kinds, None)
    tested_rows = np.concatenate([test for _, test in outer])
    return Counting(kinds, counting.counts.with_labels(np.ravel(data.y)[tested_rows], np.concatenate(predictions)))


def _fitted_models(front, nested, results, outer):
    """The fitted estimators of the outer splits, and their outputs for the test rows."""
    models, X = [result.estimator for result in results], nested.model_rows
    outputs = [tested(model, X, nested.data.y, *split) for model, split in zip(models, outer, strict=True)]
    return {"estimator": [front.in_pipeline(model) for model in models], "tested": outputs}


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


def _in_closed_form(data, rows, steps):
    """Whether one setting of a whole grid is chosen without refits: no steps are fitted on the training parts."""
    search = data.search
    if data.steps is not None or search.share != "all" or fits_steps(search, steps):
        return False
    return landmarks_to_find(search, data.X) is None and by_grid(search, rows)


def _scorings(search, scoring, y):
    """({name: Scoring} of ``scoring``, whether there may be several); None: the score that decides in the search."""
    scoring = deciding_scoring(search.scoring, search.refit) if scoring is None else scoring
    scorings, several = scores_by_name(search, scoring)
    check_probabilities(scoring, search)
    check_scorers([(scoring.name, scoring.scorer) for scoring in scorings.values()], search.estimator, y)
    return scorings, several


# -- grids -------------------------------------------------------------------------------------------------------------


def nested_grid(nested, outer):
    """(results of the outer splits, route) of a grid search."""
    data, spec, search = nested.data, nested.spec, nested.data.search
    candidates, kernel_settings = settings(search.estimator, search.param_grid, nested.rows)
    inner = [data.inner_splits(train) for train, _ in outer]
    costs = [nested_cost(setting.task.problem, len(setting.alphas), outer, inner) for setting in kernel_settings]
    shared, flops = [cost.shared for cost in costs], sum(cost.flops for cost in costs)
    warn_of_long_call(kernel_settings[0].task.problem, "a nested cross-validation", flops, ARRAYS)
    jobs = (
        delayed(_inner_losses)(data, spec, setting, share, outer, inner)
        for setting, share in zip(kernel_settings, shared, strict=True)
    )
    progress = Progress(len(kernel_settings), "kernel settings", nested.verbose)
    losses_of_settings = run_with_progress(jobs, nested.n_jobs, progress)
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
            fitted = _fitted_on(nested, train, candidates[chosen[split]])
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
    task, rows = setting.task, held_out.inner_rows
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
        inner_decision=held_out.inner_scores - held_out.rule.cut,
        decision=held_out.decision,
        probabilities=probabilities,
    )


def _fitted_on(nested, train, params):
    """The estimator of a search with these parameters, fitted on a training part."""
    estimator = nested.data.search.estimator
    part = nested.rows.subset(train, estimator)
    return part.fit(with_params(estimator, params), part.y)


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


def nested_loop(nested, outer):
    """(results of the outer splits, route) of any search, fitted on every training part."""
    jobs = (delayed(_one_split)(nested, train, test) for train, test in outer)
    progress = Progress(len(outer), "outer splits", nested.verbose)
    reason, remedy = "every training part is searched by itself", ""
    if learns_kernel(nested.data.search):
        reason = f"{reason}, and learns a kernel of its own"
        remedy = "Quicker are n_jobs=, fewer outer splits, and kernel='rbf', which has no scales to learn."
    results = run_with_progress(jobs, nested.n_jobs, progress, remedy=remedy)
    return results, Route(REFIT, reason)


def _one_split(nested, train, test):
    """One outer split by ``fit`` on its training part."""
    data, rows, first = nested.data, nested.rows, None
    if data.steps is not None:
        first = fit_steps(data.steps, data.X, train, data.y)
        rows = SearchData(first.transform(data.X), data.y, data.sample_weight, data.confounds)
    search = clone(data.search).set_params(refit=data.search.refit or True)
    part = rows.subset(train, search.estimator)
    groups = None if search.cv is None or data.groups is None else _safe_indexing(data.groups, train)
    with threads_for(*np.shape(part.X)):
        search._fit_data(search_spec(search), part, groups)
    if search.stopped_ == "interrupted":  # the user means the nested cross-validation, not this one search
        raise KeyboardInterrupt
    best, task = search.best_estimator_, nested.targets.task
    inner_rows, inner_scores = _inner_scores(search, part, groups)
    new_rows = [rows.rows_to_predict(search.estimator, test, train)]
    if data.confounds is not None:
        new_rows.append(data.confounds[test])
    if nested.targets.classes is None:
        decision = search.predict(*new_rows).reshape(len(test), -1)
    else:
        decision = search.decision_function(*new_rows)
    fits = _criterion_fits(best, *new_rows)
    fitted = best if first is None else make_pipeline(*first, best)
    return OuterSplitResult(
        params=search.best_params_,
        inner_loss=search.best_criterion_,
        outer_loss=outer_loss(nested.spec, task, test, fits, decision),
        inner_rows=train[inner_rows],
        inner_decision=inner_scores - _cut(best),
        decision=decision,
        probabilities=search.predict_proba(*new_rows) if data.probabilities else None,
        estimator=fitted if data.keeps else None,
    )


def _inner_scores(search, part, groups):
    """(row numbers, held-out decisions) of a fitted search's best estimator, by its inner splits."""
    last = split_steps(search.best_estimator_).last
    in_closed_form = part.confounds is None and isinstance(last, FOLDLESS_ESTIMATORS) and not chooses_landmarks(last)
    if search.cv is None and in_closed_form:
        return loo_scores_of(last)
    splits = draw_splits(search.cv, search.estimator, part.X, part.y, groups)
    part = part.with_parts(parts_of(search, splits, len(part.y)))
    return heldout_scores(clone(search.best_estimator_), part, splits)


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
