"""What a permutation test is given: its data, what is asked of every labeling, which weights follow the labels."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_sample_weight

from foldless.bridge.adapters import Search, build_task
from foldless.bridge.pipelines import split_steps
from foldless.bridge.route import warn_caller
from foldless.bridge.routing import route_metadata
from foldless.bridge.scorers import Scoring
from foldless.bridge.splits import depends_on_labels, splits_of_labeling
from foldless.estimators.checks import check_option
from foldless.permutation.nulls import draw_null
from foldless.tuning.selection import SearchSpec

WEIGHTS = (None, "fixed", "permuted")


@dataclass(frozen=True)
class TestData:
    """The data of one test."""

    __test__ = False  # no test of pytest

    X: Any
    y: Any
    sample_weight: Any = None
    confounds: Any = None
    confounds_in_score: bool = False

    def task(self, estimator):
        """The :class:`EstimatorTask` of a known estimator."""
        in_score = self.confounds_in_score
        return build_task(estimator, self.X, self.y, self.sample_weight, self.confounds, in_score=in_score)

    def labelled(self, order, *, with_weights=False):
        """The same with the labels, and where asked for the weights, in another order."""
        weight = self.sample_weight
        if weight is not None and with_weights:
            weight = np.asarray(weight)[order]
        return replace(self, y=_safe_indexing(self.y, order), sample_weight=weight)


@dataclass(frozen=True)
class TestSpec:
    """What is asked of every labeling."""

    __test__ = False  # no test of pytest

    estimator: Any
    scoring: Scoring
    first: list  # the splits of the true labels
    moves_splits: bool  # whether each labeling has its own
    groups: Any
    params: dict  # as given, but for those of the splitter
    fit_params: dict
    score_params: dict | None
    as_theirs: bool  # whether the result of scikit-learn is to be met to the last bit
    weights: str | None
    memory_limit: int
    refit: Callable  # (spec, data, splits) -> scores of a cross-validation that refits
    search: SearchSpec | None = None  # where a search is tested


def specify_test(estimator, data, m, random_state, *, cv, groups, scoring, params, strata, null, resplit, **options):
    """(:class:`TestSpec`, data with their weights, m labelings) that ``permutation_test_score`` is asked for."""
    cv = check_cv(cv, data.y, classifier=is_classifier(estimator))
    score = Scoring.of(scoring, estimator)
    metadata = route_metadata("cross_validate", estimator, cv, params, groups, score.scorer)
    n, draw = len(data.y), partial(splits_of_labeling, cv, data.X, data.y, metadata.split)
    first = draw(np.arange(n))
    strata = groups if strata is None else checked_strata(strata, n)
    redraw, from_labels = draw if resplit else None, depends_on_labels(cv)
    labelings = draw_null(n, m, random_state, strata, null=null, first=first, from_labels=from_labels, redraw=redraw)
    if any(name.endswith("confounds") for name in metadata.fit):
        raise ValueError("params: give confounds as confounds=, not as a parameter of fit.")
    weight = metadata.fit.get(split_steps(estimator).fit_param("sample_weight"))
    if weight is not None:
        weight = _check_sample_weight(weight, np.empty((n, 1)), ensure_non_negative=True)
    kept = {name: value for name, value in params.items() if name not in metadata.split}
    routed = {"params": kept, "fit_params": metadata.fit, "score_params": metadata.score}
    moves = labelings.draw is not None
    spec = TestSpec(estimator, score, first, moves, groups, as_theirs=resplit, **routed, **options)
    return spec, replace(data, sample_weight=weight), labelings


# -- arguments ---------------------------------------------------------------------------------------------------------


def family_members(X):
    """The members of a family of tests; of one test, X alone, and whether there is a family."""
    if hasattr(X, "get_data") and not hasattr(X, "shape"):
        raise ValueError(f"X is {type(X).__name__}; give its array, X.get_data(), of shape (epochs, channels, times).")
    if isinstance(X, list | tuple) and len(X) and all(len(getattr(each, "shape", ())) == 2 for each in X):
        rows = {np.shape(each)[0] for each in X}
        if len(rows) > 1:
            raise ValueError(f"X: the matrices of a family have {sorted(rows)} rows; all must have the same.")
        return list(X), True
    if np.ndim(X) == 3:
        X = np.asarray(X)
        if not X.shape[2]:
            raise ValueError(f"X of shape {X.shape} holds no member: its third axis is empty.")
        return [np.ascontiguousarray(X[:, :, time]) for time in range(X.shape[2])], True
    if np.ndim(X) > 3:
        raise ValueError(f"X has {np.ndim(X)} axes; two (one test) or three (samples, features, times) are possible.")
    return [X], False


def stack_members(members):
    """The members of a family as one array, which processes share."""
    shapes = {np.shape(each) for each in members}
    if len(shapes) > 1:
        raise ValueError(f"generalise=True needs members of the same features; X has shapes {sorted(shapes)}.")
    return np.stack([each.toarray() if hasattr(each, "toarray") else np.asarray(each) for each in members])


def check_numbers(y, n_permutations, weights, memory_limit):
    """Refuse a test without labels, without permutations, with unknown weights or without memory."""
    if y is None:
        raise ValueError("y=None: there are no labels to permute.")
    if not isinstance(n_permutations, Integral) or isinstance(n_permutations, bool) or n_permutations < 1:
        raise ValueError(f"n_permutations={n_permutations!r} must be a positive integer.")
    check_option("weights", weights, WEIGHTS)
    if not isinstance(memory_limit, Integral) or memory_limit < 1:
        raise ValueError(f"memory_limit={memory_limit!r} must be a positive number of bytes.")


def checked_strata(strata, n):
    """Strata as an array of n entries, or None."""
    if strata is None:
        return None
    strata = np.asarray(strata)
    if strata.shape != (n,):
        raise ValueError(f"strata has shape {strata.shape}; give one entry for each of the {n} rows of X.")
    if (strata != strata).any():
        raise ValueError("strata holds NaN; give every row a stratum.")
    return strata


# -- weights -----------------------------------------------------------------------------------------------------------


def has_class_weights(last):
    """Whether an estimator, or a candidate of a search, weighs classes."""
    if not isinstance(last, Search):
        return getattr(last, "class_weight", None) is not None
    grids = [last.param_grid] if isinstance(last.param_grid, Mapping) else last.param_grid or []
    return has_class_weights(last.estimator) or any("class_weight" in each for each in grids)


def weights_move(last, weight, weights):
    """Whether weights change with the labels."""
    return (has_class_weights(last) and weights != "fixed") or (weights == "permuted" and weight is not None)


def warn_of_weak_null(estimator, y, orders, weights):
    """Warn of permutations that never change a label, which test nothing, and of weights that favour the true ones."""
    y = np.asarray(y)
    if all((y[order] == y).all() for order in orders[1 : min(len(orders), 11)]):
        warn_caller(
            "the permutations do not change the labels: y is constant within every group (or stratum). Where the label"
            " belongs to the group, test one row a group, averages say; otherwise pass strata= with larger sets of"
            " exchangeable rows."
        )
    if weights == "fixed" and has_class_weights(split_steps(estimator).last):
        warn_caller(
            "weights='fixed' keeps weights that were made from the true labels: permuted labels do not fit them as"
            " well, and p-values may be too small. Prefer weights=None, or no class weights and a balanced score."
        )
