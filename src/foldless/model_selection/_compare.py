"""A paired comparison of models on the same rows and the same folds."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier
from sklearn.model_selection import check_cv
from sklearn.pipeline import Pipeline

from foldless._engine.inference.comparison import (
    ComparisonResult,
    all_pairs,
    corrected_difference,
    flipped_difference,
    nested_difference,
)
from foldless._engine.inference.intervals import check_confidence, interval_of, row_interval
from foldless._engine.inference.partitions import scores_of_models
from foldless._engine.linalg.types import RandomStateLike
from foldless._sklearn.adapters import check_probabilities
from foldless._sklearn.request import CrossValidation
from foldless._sklearn.routing import check_groups
from foldless._sklearn.scorers import check_single
from foldless._sklearn.splits import row_numbers
from foldless._sklearn.steps import StepsLike
from foldless.estimators.checks import check_option, dense, rows_and_labels
from foldless.model_selection._intervals import (
    check_repeats,
    fold_partitions,
    held_out_decisions,
    partition_progress,
    score_function,
    truth_and_classes,
)
from foldless.model_selection._types import ConfoundsLike, CVLike, Params, ScoringLike

DIFFERENCES = {"nested": nested_difference, "nadeau-bengio": corrected_difference}


def compare(
    *models_X_y: Any,
    scoring: ScoringLike = None,
    cv: CVLike = None,
    groups: ArrayLike | None = None,
    confidence: float = 0.9,
    method: Literal["nested", "nadeau-bengio", "sign-flip"] = "nested",
    n_repeats: int | None = None,
    random_state: RandomStateLike = 0,
    params: Params = None,
    confounds: ConfoundsLike = None,
    steps: StepsLike = "each",
    n_jobs: int | None = None,
) -> ComparisonResult:
    """Compare models on the same rows: ``compare(a, b, X, y)``.

    A t-test of held-out scores, of rows or of folds, has far more false positives than its level, since the models of
    the folds share training rows. Here the scores of all models on the same folds are subtracted, and the differences
    have the standard errors of :func:`score_interval`.

    Parameters
    ----------
    *models_X_y : two or more estimators, then X and y
        Any estimators that :func:`score_interval` takes, all classifiers or all regressors. A single dictionary {name:
        estimator} gives them names.
    scoring, cv, groups, n_repeats, random_state : as in :func:`score_interval`
    params, confounds, steps, n_jobs : as there
    confidence : float, default=0.9; of each interval by itself
    method : {"nested", "nadeau-bengio", "sign-flip"}, default="nested"
        The first two as in :func:`score_interval`. "sign-flip" flips the signs of the differences of single rows, in
        all ways if these are few. It is valid for one held-out set of rows, so ``cv`` must have one split, such as
        ``ShuffleSplit(1, test_size=0.3)``. It compares these fitted models, the other methods compare models fitted to
        as many rows.

    Returns
    -------
    ComparisonResult
        Scores with intervals, differences with intervals and p-values, corrected for the number of pairs.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from foldless import LSSVC
    >>> from foldless.model_selection import compare
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> models = {"rbf": LSSVC(standardize=True), "linear": LSSVC("linear", standardize=True)}
    >>> comparison = compare(models, X, y, cv=5, n_repeats=10)
    >>> print(comparison)
    accuracy, 90 % intervals (nested)
      rbf       0.9766    0.9633 to   0.9895
      linear    0.9599    0.9436 to   0.9750
    differences, p-values (of each alone; corrected for their number)
      rbf - linear       0.0167    0.0046 to   0.0304  p = 0.02537; 0.02537
    """
    models, X, y = _models_and_rows(models_X_y)
    check_groups(groups)
    check_confidence(confidence)
    check_repeats(n_repeats)
    check_option("method", method, (*DIFFERENCES, "sign-flip"))
    check_single(scoring, "compare takes one.")
    for model in models.values():
        check_probabilities(scoring, model)
    X, y, groups = rows_and_labels(X, dense(y), groups)
    estimator = next(iter(models.values()))
    truth, classes = truth_and_classes(estimator, y)
    score, response = score_function(scoring, estimator, y, classes)
    request = CrossValidation(
        function="cross_val_predict",
        estimator=estimator,
        X=X,
        y=y,
        groups=groups,
        params=params,
        confounds=confounds,
        steps=steps,
        n_jobs=n_jobs,
        method=response,
    )
    deferred = [partial(held_out_decisions, replace(request, estimator=model), classes) for model in models.values()]
    names = list(models)
    if method == "sign-flip":
        test = _single_test_set(cv, X, y, groups, score, is_classifier(estimator))
        scores, deciders, counts = _scores_of_rows(deferred, test, truth, score, groups)
        difference = partial(flipped_difference, confidence=confidence, random_state=random_state)
        intervals = [row_interval(values, confidence, score.kind, counts) for values in scores]
    else:
        partitions = fold_partitions(cv, X, y, groups, truth, score, random_state)
        watch = _differences if method == "nested" else None
        scores, deciders = scores_of_models(deferred, partitions, n_repeats, watch=watch, progress=partition_progress)
        difference = partial(DIFFERENCES[method], confidence=confidence)
        intervals = [interval_of(values, method, confidence, score.kind) for values in scores]
    pairs = all_pairs(names, scores, difference)
    routes = [decisions.route for decisions in deciders]
    return ComparisonResult(names, intervals, pairs, score.kind.name, method, confidence, routes)


def _differences(scores):
    return [first - second for first, second in combinations(scores, 2)]


def _models_and_rows(arguments):
    """({name: estimator}, X, y) of the positional arguments."""
    models, (X, y) = arguments[:-2], arguments[-2:] if len(arguments) > 2 else (None, None)
    if len(models) == 1 and isinstance(models[0], dict):
        named = {str(name): model for name, model in models[0].items()}
    else:
        kinds = [_kind(model) for model in models]
        named = {
            kind if kinds.count(kind) == 1 else f"{kind} {kinds[: place + 1].count(kind)}": model
            for place, (kind, model) in enumerate(zip(kinds, models, strict=True))
        }
    wrong = [name for name, model in named.items() if not hasattr(model, "fit")]
    if len(named) < 2 or wrong:
        what = f"{wrong} cannot be fitted" if wrong else f"there are {len(named)} models"
        raise ValueError(f"compare(a, b, X, y) takes two or more estimators, or a dict of them, then X and y; {what}.")
    if len({is_classifier(model) for model in named.values()}) > 1:
        raise ValueError("compare: some models are classifiers and some are not; their scores cannot be compared.")
    return named, X, y


def _kind(model):
    """The name of its class; of a pipeline, those of its steps."""
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    return " + ".join(type(step).__name__ for step in steps if step not in (None, "passthrough"))


def _single_test_set(cv, X, y, groups, score, classifier):
    """The one test set (t,) of ``cv``, sorted; an error if ``cv`` has several splits, or leaves out rows."""
    splits = row_numbers(check_cv(cv, y, classifier=classifier).split(X, y, groups), len(y))
    if len(splits) != 1 or len(splits[0][0]) + len(splits[0][1]) < len(y):
        raise ValueError(
            f"method='sign-flip' needs cv with one split that trains on all rows but the tested ones; cv={cv!r} has"
            f" {len(splits)}. Use ShuffleSplit(1, test_size=0.3), say, or method='nested'."
        )
    if score.of_rows is None:
        raise ValueError("method='sign-flip' needs a score that is a mean over rows, such as accuracy.")
    return np.sort(splits[0][1])


def _scores_of_rows(deferred, test, truth, score, groups):
    """(scores (t,) of the rows of a test set, or of its groups, by each model; the models' decisions; counts)."""
    deciders = [decide_without(test[None]) for decide_without in deferred]
    T = np.moveaxis(truth[..., test[None]], -2, 0)
    # Rows of a group depend on each other: their scores are added up, and the signs of whole groups are flipped.
    groups = None if groups is None else np.asarray(groups)[test]
    unit = np.arange(len(test)) if groups is None else np.unique(groups, return_inverse=True)[1]
    n_units = unit.max() + 1
    if n_units < 2:
        raise ValueError(
            "method='sign-flip' needs at least two rows to test, or two groups of rows; use a larger test_size."
        )
    share = n_units / len(test)
    scores = [share * np.bincount(unit, score.of_rows(decisions(test[None]), T)[0]) for decisions in deciders]
    return scores, deciders, score.counts(T[0], groups)
