"""What a permutation test is given: the data, what is asked of every labeling, and which labelings are drawn."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin, is_classifier, is_regressor
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_sample_weight

from foldless.bridge import adapters
from foldless.bridge.adapters import TASKS
from foldless.bridge.pipelines import Search, split_steps
from foldless.bridge.route import warn_caller
from foldless.bridge.routing import Metadata, route_metadata
from foldless.bridge.scorers import Scoring, check_scorers_of_confounds, deciding_scoring, scores_by_name
from foldless.bridge.splits import depends_on_labels, splits_of_labeling
from foldless.estimators.checks import check_confounds, check_option
from foldless.permutation.metrics import confusion_metric
from foldless.permutation.nulls import ENOUGH_LABELINGS, Exchangeable, draw_null, keep_balance
from foldless.tuning.selection import SearchSpec

CONFUSION = "confusion matrix"
ENOUGH_FOR_R2 = 10  # rows of a test part below which its own R2 says little
WEIGHTS = (None, "fixed", "permuted")


@dataclass(frozen=True)
class PermutationData:
    """The data of one test."""

    X: Any
    y: Any
    sample_weight: Any = None
    confounds: Any = None
    confounds_in_score: bool = False

    def task(self, estimator):
        """The :class:`EstimatorTask` of a known estimator."""
        in_score = self.confounds_in_score
        return adapters.build_task(estimator, self.X, self.y, self.sample_weight, self.confounds, in_score=in_score)

    def labelled(self, order, *, with_weights=False):
        """The same with the labels, and where asked for the weights, in another order."""
        weight = self.sample_weight
        if weight is not None and with_weights:
            weight = np.asarray(weight)[order]
        return replace(self, y=_safe_indexing(self.y, order), sample_weight=weight)


@dataclass(frozen=True)
class PermutationSpec:
    """What is asked of every labeling."""

    estimator: Any
    scorings: dict  # {name: Scoring}
    first: list  # the splits of the true labels
    moves_splits: bool  # whether each labeling has its own
    groups: Any
    params: dict  # as given
    metadata: Metadata  # these by where they go
    as_theirs: bool  # whether the result of scikit-learn is to be met to the last bit
    weights: str | None
    memory_limit: int
    steps: str  # "each" or "once": those of a search that are not fitted yet
    refit: Callable  # (spec, data, splits, SplitScores) -> what a cross-validation finds that refits
    search: SearchSpec | None = None  # where a search is tested


def specify_test(
    estimator, data, m, random_state, *, cv, groups, scoring, params, strata, null, resplit, stay, confusion, **options
):
    """(:class:`PermutationSpec`, data with their weights, m labelings) that ``permutation_test_score`` is asked for."""
    cv = check_cv(cv, data.y, classifier=is_classifier(estimator))
    scoring = _default_scoring(estimator, as_theirs=resplit) if scoring is None else scoring
    if scoring is None and confusion and type(split_steps(estimator).last) in TASKS:
        scoring = "accuracy"  # beside another score the estimator's own would be asked of fitted estimators
    adapters.check_probabilities(scoring, estimator)
    scorings, _ = scores_by_name(estimator, scoring, pooled=True)
    if confusion:
        scorings |= {CONFUSION: _confusion_scoring(estimator, data.y)}
    scorers = {name: each.scorer for name, each in scorings.items()}
    metadata = route_metadata("cross_validate", estimator, cv, params, groups, scorers.get("score", scorers))
    n, draw = len(data.y), partial(splits_of_labeling, cv, data.X, data.y, metadata.split)
    first = draw(np.arange(n))
    _warn_of_small_parts(scorings, first)
    scheme = Exchangeable(groups if strata is None else strata) if null is None else null
    moves = False
    if depends_on_labels(cv) and not resplit:
        scheme, moves = keep_balance(scheme, first, data.y, stay=stay)
    if isinstance(scheme, Exchangeable) and not (moves or resplit):
        _warn_of_few_labelings(scheme.log_labelings(data.y), m)
    labelings = draw_null(scheme, n, m, random_state, first=first, draw=draw if resplit else None, moves=moves)
    if any(name.endswith("confounds") for name in metadata.fit):
        raise ValueError("params: give confounds as confounds=, not as a parameter of fit.")
    if data.confounds is not None:
        check_scorers_of_confounds(scoring)
        data = replace(data, confounds=check_confounds(data.confounds, n))
    weight = metadata.fit.get(split_steps(estimator).fit_param("sample_weight"))
    if weight is not None:
        weight = _check_sample_weight(weight, np.empty((n, 1)), ensure_non_negative=True)
    spec = PermutationSpec(
        estimator, scorings, first, moves or resplit, groups, params, metadata, as_theirs=resplit, **options
    )
    return spec, replace(data, sample_weight=weight), labelings


def _default_scoring(estimator, *, as_theirs):
    """What decides in a search; else R2 of all held-out rows together, in place of a mean over splits.

    None is the estimator's own score: where it is not R2, and where scikit-learn's result is promised.
    """
    last = split_steps(estimator).last
    if isinstance(last, Search):
        scoring, last = deciding_scoring(last.scoring, last.refit), split_steps(last.estimator).last
        if scoring is not None:
            return scoring
    has_r2 = type(last) in TASKS or getattr(type(last), "score", None) is RegressorMixin.score
    return "r2_pooled" if is_regressor(estimator) and has_r2 and not as_theirs else None


def _confusion_scoring(estimator, y):
    """Counts of labels for each class, in the place of a score."""
    if not is_classifier(estimator) or np.ndim(y) > 1:
        raise ValueError("confusion=True is for classifiers with one label a row.")
    return Scoring.of(confusion_metric(np.unique(y)), estimator)


def _warn_of_small_parts(scorings, splits):
    """Warn of R2 of a few rows each."""
    smallest = min(len(test) for _, test in splits)
    if 1 < smallest < ENOUGH_FOR_R2 and any(each.given == "r2" for each in scorings.values()):
        warn_caller(
            f"scoring='r2' of test parts with {smallest} rows: R2 divides by the spread of so few values, and the mean"
            " over splits has little power. Use 'r2_pooled' (the default), R2 of all held-out rows together, or larger"
            " test parts."
        )


def _warn_of_few_labelings(log_labelings, m):
    """Warn where no p-value can be small, however many permutations are drawn."""
    count = round(np.exp(min(log_labelings, np.log(ENOUGH_LABELINGS))))
    if 1 < count < m and count < ENOUGH_LABELINGS:
        warn_caller(
            f"there are {count} different labelings, fewer than the {m} permutations, and p-values are at least about"
            f" {1 / count:.2g}. Larger strata, fewer folds or splits that do not look at the labels (KFold) leave more."
        )


def check_numbers(y, n_permutations, weights, memory_limit, least=1):
    """Refuse a test without labels, with fewer permutations, with unknown weights or without memory."""
    if y is None:
        raise ValueError("y=None: there are no labels to permute.")
    if not isinstance(n_permutations, Integral) or isinstance(n_permutations, bool) or n_permutations < least:
        raise ValueError(f"n_permutations={n_permutations!r} must be an integer of at least {least}.")
    check_option("weights", weights, WEIGHTS)
    if not isinstance(memory_limit, Integral) or memory_limit < 1:
        raise ValueError(f"memory_limit={memory_limit!r} must be a positive number of bytes.")


def has_class_weights(last):
    """Whether an estimator, or a candidate of a search, weighs classes."""
    if not isinstance(last, Search):
        return getattr(last, "class_weight", None) is not None
    return has_class_weights(split_steps(last.estimator).last) or adapters.grid_names(last, "class_weight")


def weights_move(last, weight, weights):
    """Whether weights change with the labels."""
    return (has_class_weights(last) and weights != "fixed") or (weights == "permuted" and weight is not None)


def warn_of_weak_null(estimator, y, orders, weights):
    """Warn of permutations that never change a label, which test nothing, and of weights that favour the true ones."""
    y = np.asarray(y)
    if len(orders) > 1 and all((y[order] == y).all() for order in orders[1 : min(len(orders), 11)]):
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
