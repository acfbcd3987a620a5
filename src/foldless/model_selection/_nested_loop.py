"""Nested cross-validation by an honest outer loop: continuous searches, and settings that differ between classes."""

from dataclasses import replace

import numpy as np
from joblib import delayed
from sklearn.base import clone, is_classifier
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import _safe_split

from foldless.bridge.adapters import FOLDLESS_ESTIMATORS
from foldless.bridge.candidates import closed_form_task, heldout_scores
from foldless.bridge.nested_data import OuterSplitResult
from foldless.bridge.pipelines import fit_steps
from foldless.bridge.progress import Progress, run_with_progress
from foldless.bridge.route import REFIT, Route
from foldless.bridge.scorers import known_outputs
from foldless.bridge.splits import draw_splits
from foldless.estimators.access import cut_of, fits_of
from foldless.estimators.one_against_all import OneAgainstAllClassifier
from foldless.tuning.grid import outer_loss


def nested_loop(data, spec, outer, n_jobs, verbose):
    """(results of the outer splits, route) of any search, fitted on every training part."""
    jobs = (delayed(_one_split)(data, spec, train, test) for train, test in outer)
    results = run_with_progress(jobs, n_jobs, Progress(len(outer), "outer splits", verbose))
    return results, Route(REFIT, "every training part is searched by itself")


def _one_split(data, spec, train, test):
    """One outer split by ``fit`` on its training part."""
    if data.steps is not None:
        data = replace(data, X=fit_steps(data.steps, data.X, train, data.y).transform(data.X))
    search = clone(data.search).set_params(refit=True)
    X, y = _safe_split(search, data.X, data.y, train)
    X_test, _ = _safe_split(search, data.X, data.y, test, train)
    given = (data.sample_weight, None if search.cv is None else data.groups)
    weight, groups = (None if each is None else _safe_indexing(each, train) for each in given)
    search.fit(X, y, sample_weight=weight, groups=groups)
    best = search.best_estimator_
    splits = draw_splits(search.cv, search.estimator, X, y, groups)
    rows, scores = heldout_scores(clone(best), X, y, weight, splits)
    task, classes, flat = closed_form_task(search.estimator, data.X, data.y, data.sample_weight)
    decision = search.predict(X_test).reshape(len(test), -1) if classes is None else search.decision_function(X_test)
    spec = replace(spec, criterion=spec.criterion.with_slope(search.slope_))
    fits = _criterion_fits(best, X_test, task)
    return OuterSplitResult(
        params=search.best_params_,
        inner_loss=-search.best_score_,
        outer_loss=outer_loss(spec, task, test, fits, decision, data.sample_weight),
        inner_rows=train[rows],
        inside=known_outputs(classes, flat, scores - _cut(best)),
        outside=known_outputs(classes, flat, decision, search.predict_proba(X_test) if data.probabilities else None),
    )


def _cut(estimator):
    """The cut of threshold="loo" in the decisions of a fitted estimator, for each class where each has its own."""
    if isinstance(estimator, OneAgainstAllClassifier):
        return np.array([_cut(each) for each in estimator.estimators_])
    return cut_of(estimator) if isinstance(estimator, FOLDLESS_ESTIMATORS) else 0.0


def _criterion_fits(estimator, X, task):
    """Fits (n, m) of the criterion's targets by a fitted estimator."""
    if isinstance(estimator, OneAgainstAllClassifier):
        pairs = [
            fits_of(each, X) if isinstance(each, FOLDLESS_ESTIMATORS) else each.decision_function(X)[:, None]
            for each in estimator.estimators_
        ]
        return np.column_stack([pair[:, -1] - (pair[:, 0] if pair.shape[1] == 2 else 0.0) for pair in pairs])
    if isinstance(estimator, FOLDLESS_ESTIMATORS):
        return task.plus_minus_fits(fits_of(estimator, X))
    output = estimator.decision_function(X) if is_classifier(estimator) else estimator.predict(X)
    return output.reshape(len(output), -1)
