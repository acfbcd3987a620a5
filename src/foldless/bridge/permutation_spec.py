"""What a permutation test is given: the data, what is asked of every labeling, and which labelings are drawn."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin, is_classifier, is_regressor
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, check_array
from sklearn.utils.validation import _check_sample_weight

from foldless.bridge import adapters
from foldless.bridge.adapters import TASKS
from foldless.bridge.pipelines import Search, split_steps
from foldless.bridge.route import warn_caller
from foldless.bridge.routing import Metadata, route_metadata
from foldless.bridge.scorer_checks import check_scorers
from foldless.bridge.scorers import Scoring, check_scorers_of_confounds, deciding_scoring, scores_by_name
from foldless.bridge.splits import depends_on_labels, splits_of_labeling
from foldless.estimators.checks import check_confounds, check_option
from foldless.permutation.confounded import ExchangeableGivenConfounds, Residuals
from foldless.permutation.metrics import confusion_metric
from foldless.permutation.nulls import ENOUGH_LABELINGS, ROUNDING, Exchangeable, draw_null, keep_balance
from foldless.tuning.spec import SearchSpec

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
    residuals: Residuals | None = None  # of values, where these are permuted and not the values

    def task(self, estimator):
        """The :class:`EstimatorTask` of a known estimator."""
        in_score = self.confounds_in_score
        return adapters.build_task(estimator, self.X, self.y, self.sample_weight, self.confounds, in_score=in_score)

    def labelled(self, order, *, with_weights=False):
        """The same with the labels or their residuals, and where asked for the weights, in another order."""
        weight = self.sample_weight
        if weight is not None and with_weights:
            weight = np.asarray(weight)[order]
        y = _safe_indexing(self.y, order) if self.residuals is None else self.residuals.labelled(order)
        return replace(self, y=y, sample_weight=weight)


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
    made_for = is_classifier(estimator)  # metrics of other targets are refused by name
    fitting = [each for each in scorings.values() if each.metric is None or each.metric.labels == made_for]
    check_scorers([(each.name, each.scorer) for each in fitting], estimator, data.y)
    if confusion:
        scorings |= {CONFUSION: _confusion_scoring(estimator, data.y)}
    scorers = {name: each.scorer for name, each in scorings.items()}
    metadata = route_metadata("cross_validate", estimator, cv, params, groups, scorers.get("score", scorers))
    if any(name.endswith("confounds") for name in metadata.fit):
        raise ValueError("params: give confounds as confounds=, not as a parameter of fit.")
    if data.confounds is not None:
        check_scorers_of_confounds(scoring)
    n, first = len(data.y), splits_of_labeling(cv, data.X, data.y, metadata.split)
    _warn_of_small_parts(scorings, first)
    scheme = Exchangeable(groups if strata is None else strata) if null is None else null
    scheme, data = keep_association(estimator, data, scheme)
    moves = False
    if depends_on_labels(cv) and not resplit:
        scheme, moves = keep_balance(scheme, first, data.y, stay=stay)
    if isinstance(scheme, Exchangeable) and not (moves or resplit):
        _warn_of_few_labelings(scheme.log_labelings(data.y), m)
    draw = partial(_splits_anew, cv, data, metadata.split) if resplit else None
    labelings = draw_null(scheme, n, m, random_state, first=first, draw=draw, moves=moves)
    weight = metadata.fit.get(split_steps(estimator).fit_param("sample_weight"))
    if weight is not None:
        weight = _check_sample_weight(weight, np.empty((n, 1)), ensure_non_negative=True)
    spec = PermutationSpec(
        estimator, scorings, first, moves or resplit, groups, params, metadata, as_theirs=resplit, **options
    )
    return spec, replace(data, sample_weight=weight), labelings


def _splits_anew(cv, data, split_params, order):
    return splits_of_labeling(cv, data.X, data.labelled(order).y, split_params)


def keep_association(estimator, data, scheme):
    """(null scheme, data) of permutations after which the confounds explain as much of the labels as they do.

    Of values the residuals are permuted, by any scheme. Classes are permuted by their probabilities given the
    confounds; but a user's scheme says itself which labelings of classes are as likely as the true one.
    """
    if data.confounds is None:
        return scheme, data
    C, strata = check_confounds(data.confounds, len(data.y)), getattr(scheme, "strata", None)
    data = replace(data, confounds=C)
    if not is_classifier(estimator):
        y = check_array(data.y, ensure_2d=False, dtype=float, input_name="y")
        return scheme, replace(data, residuals=Residuals.of(y, C, Exchangeable(strata).levels(len(y))))
    if isinstance(scheme, Exchangeable):
        scheme = ExchangeableGivenConfounds.of(data.y, C, strata)
    return scheme, data


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


def _unchanged(data, order):
    """Whether labels are as they were after a permutation, values up to rounding."""
    before, after = np.asarray(data.y), np.asarray(data.labelled(order).y)
    if data.residuals is None:
        return (before == after).all()
    return (np.abs(after - before) <= ROUNDING * np.ptp(data.residuals.y, axis=0)).all()


def warn_of_weak_null(estimator, data, orders, weights):
    """Warn of permutations that never change a label, which test nothing, and of weights that favour the true ones."""
    if len(orders) > 1 and all(_unchanged(data, order) for order in orders[1 : min(len(orders), 11)]):
        reason = "y is constant within every group (or stratum)"
        if data.confounds is not None:
            reason += ", or the confounds determine it there, and nothing is left to be tested beside them"
        warn_caller(
            f"the permutations do not change the labels: {reason}. Where the label belongs to the group, test one row a"
            " group, averages say; otherwise pass strata= with larger sets of exchangeable rows."
        )
    if weights == "fixed" and has_class_weights(split_steps(estimator).last):
        warn_caller(
            "weights='fixed' keeps weights that were made from the true labels: permuted labels do not fit them as"
            " well, and p-values may be too small. Prefer weights=None, or no class weights and a balanced score."
        )
