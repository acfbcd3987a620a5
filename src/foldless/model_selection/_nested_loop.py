"""Nested cross-validation by an honest outer loop: continuous searches, and settings that differ between classes."""

from dataclasses import replace

import numpy as np
from joblib import delayed
from sklearn.base import clone, is_classifier
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import _safe_split

from foldless.bridge.adapters import FOLDLESS_ESTIMATORS
from foldless.bridge.candidates import draw_splits, heldout_scores, settings
from foldless.bridge.progress import Progress, run_with_progress
from foldless.estimators import OneAgainstAllClassifier
from foldless.estimators.access import cut_of, fits_of
from foldless.model_selection._outer import OuterSplitResult, given, outer_loss


def nested_loop(data, criterion, outer, n_jobs, verbose):
    jobs = (delayed(_searched)(data, criterion, train, test) for train, test in outer)
    return run_with_progress(jobs, n_jobs, Progress(len(outer), "outer splits", verbose))


def _searched(data, criterion, train, test):
    """One outer split by ``fit`` on its training part."""
    if data.steps is not None:
        steps = clone(data.steps).fit(_safe_indexing(data.X, train), _safe_indexing(data.y, train))
        data = replace(data, X=steps.transform(data.X))
    search = clone(data.search)
    X, y = _safe_split(search, data.X, data.y, train)
    X_test, _ = _safe_split(search, data.X, data.y, test, train)
    options = {
        name: _safe_indexing(value, train)
        for name, value in (("sample_weight", data.sample_weight), ("groups", data.groups))
        if value is not None and (name != "groups" or search.cv is not None)
    }
    search.set_params(refit=True).fit(X, y, **options)
    chosen, weight = search._chosen(), options.get("sample_weight")
    splits = draw_splits(search.cv, search.estimator, X, y, options.get("groups"))
    rows, scores = heldout_scores(chosen, X, y, weight, splits)
    setting = settings(search.estimator, [{}], data.X, data.y, data.sample_weight)[0]
    classifies = setting.classes is not None
    decision = search.decision_function(X_test) if classifies else search.predict(X_test).reshape(len(test), -1)
    fits = _fits(search.best_estimator_, X_test, setting.task)
    return OuterSplitResult(
        params=search.best_params_,
        inner_loss=-search.best_score_,
        outer_loss=outer_loss(data, criterion.with_slope(search.slope_), setting, test, fits, decision),
        inner_rows=train[rows],
        inside=given(setting, scores - _cut(search.best_estimator_)),
        outside=given(setting, decision, search.predict_proba(X_test) if data.probabilities else None),
    )


def _cut(estimator):
    """The cut of threshold="loo" in the decisions of a fitted estimator, for each class where each has its own."""
    if isinstance(estimator, OneAgainstAllClassifier):
        return np.array([_cut(each) for each in estimator.estimators_])
    return cut_of(estimator) if isinstance(estimator, FOLDLESS_ESTIMATORS) else 0.0


def _fits(estimator, X, task):
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
