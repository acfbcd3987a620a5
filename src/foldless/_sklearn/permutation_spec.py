"""A permutation test: its request, its data, its specification, and the labelings that are drawn."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin, is_classifier, is_regressor
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, check_array
from sklearn.utils.validation import _check_sample_weight

from foldless._engine.heldout.sets import split_that_repeats_rows
from foldless._engine.permutation.confounded import Residuals
from foldless._engine.permutation.nulls import (
    ENOUGH_LABELINGS,
    ROUNDING,
    Exchangeable,
    WholeGroups,
    draw_null,
    keep_balance,
    scheme_of,
)
from foldless._engine.tuning.spec import SearchSpec
from foldless._sklearn import adapters
from foldless._sklearn.adapters import TASKS
from foldless._sklearn.confounded import given_confounds
from foldless._sklearn.pipelines import Search, split_steps
from foldless._sklearn.route import warn_caller
from foldless._sklearn.routing import Metadata, route_metadata
from foldless._sklearn.scorer_checks import check_scorers
from foldless._sklearn.scorers import Scoring, check_scorers_of_confounds, deciding_scoring, scores_by_name
from foldless._sklearn.splits import depends_on_labels, splits_of_labeling
from foldless.estimators.checks import Confounds, check_confounds
from foldless.estimators.metrics import confusion_metric

CONFUSION = "confusion"  # among scores: counts of the labels of each class
COUNTS_OF_LABELS = "confusion matrix"  # their name beside those of the scores
ENOUGH_FOR_R2 = 10  # rows of a test part below which its R2 has little meaning


@dataclass(frozen=True)
class BatchLimits:
    """How many labelings are worked on at a time: as many columns as fit into ``memory``, in bytes beside P.

    ``labelings_of_search`` share the making of every candidate's P.
    """

    memory: int = 2**29
    labelings_of_search: int = 256


BATCH_LIMITS = BatchLimits()


@dataclass(frozen=True)
class PermutationData:
    """The data of one test."""

    X: Any
    y: Any
    sample_weight: Any = None
    confounds: Confounds | None = None
    residuals: Residuals | None = None  # of values, where these are permuted and not the values
    targets: Any = None  # of y, where they were made before, for all members of a family

    def task(self, estimator):
        """The :class:`EstimatorTask` of an estimator in ``adapters.TASKS``."""
        return adapters.build_task(estimator, self.X, self.y, self.sample_weight, self.confounds, self.targets)

    def with_targets(self, estimator):
        """The same with targets made once for all members of a family, where the estimator is one of foldless."""
        last = split_steps(estimator).last
        if not isinstance(last, adapters.FOLDLESS_ESTIMATORS):
            return self
        return replace(self, targets=adapters.placeholder_task(last, self.y, self.sample_weight))

    def labelled(self, order):
        """The same with the labels or their residuals in another order."""
        y = _safe_indexing(self.y, order) if self.residuals is None else self.residuals.labelled(order)
        return replace(self, y=y, targets=None)


@dataclass(frozen=True)
class PermutationSpec:
    """The specification of a test: the scores, splits and parameters that all labelings share."""

    estimator: Any
    scorings: dict  # {name: Scoring}
    true_splits: list  # (train, test) pairs of the true labels
    moves_splits: bool  # whether each labeling has its own
    groups: Any
    params: dict  # those of the caller
    metadata: Metadata  # the same, split into those of the splitter, of ``fit`` and of scorers
    matches_sklearn: bool  # whether scores equal those of scikit-learn to the last bit
    steps: str  # "each" or "once": those of a search that are not fitted yet
    limits: BatchLimits
    refit: Callable  # (spec, data, splits, SplitScores) -> scores of a cross-validation by refits
    n_labelings: int = 1  # the true labels and all permutations
    search: SearchSpec | None = None  # where a search is tested

    @cached_property
    def split_with_repeats(self):
        """The number of the first split whose training part repeats rows; None where none does."""
        return split_that_repeats_rows(self.true_splits)


def specify_test(request, data, limits, refit, search=None):
    """(:class:`PermutationSpec`, data with their weights, the labelings) of the request of ``permutation_test_score``.

    ``refit`` cross-validates by refitting, ``search`` is the specification of a search that is tested.
    """
    estimator, n = request.estimator, len(data.y)
    cv = check_cv(request.cv, data.y, classifier=is_classifier(estimator))
    matches_sklearn = request.null_name == "resplit"
    scheme = scheme_of(request.null, request.groups, n)
    scorings, metadata = _scores_and_metadata(request, cv, data, matches_sklearn)
    true_splits = splits_of_labeling(cv, data.X, data.y, metadata.split)
    moves = False
    if request.n_permutations:  # else there are only the true labels
        _warn_of_small_parts(scorings, true_splits)
        if request.null_name == "within_test_sets":
            scheme = scheme.within_test_sets(true_splits, n)
        scheme, data = keep_association(estimator, data, scheme)
        scheme, moves = _scheme_of_splits(request, scheme, cv, true_splits, data.y)
    draw = partial(_splits_anew, cv, data, metadata.split) if matches_sklearn else None
    if isinstance(scheme, Exchangeable) and not (moves or matches_sklearn):
        _warn_of_few_labelings(scheme.log_labelings(data.y), request.n_permutations)
    options = {"true_splits": true_splits, "draw": draw, "moves": moves}
    labelings = draw_null(scheme, n, request.n_permutations, request.random_state, **options)
    weight = metadata.fit.get(split_steps(estimator).fit_param("sample_weight"))
    if weight is not None:
        weight = _check_sample_weight(weight, np.empty((n, 1)), ensure_non_negative=True)
    spec = PermutationSpec(
        estimator=estimator,
        scorings=scorings,
        true_splits=true_splits,
        moves_splits=moves or matches_sklearn,
        groups=request.groups,
        params=request.params,
        metadata=metadata,
        matches_sklearn=matches_sklearn,
        steps=request.steps,
        limits=limits,
        refit=refit,
        n_labelings=request.n_permutations + 1,
        search=search,
    )
    return spec, replace(data, sample_weight=weight), labelings


def _scores_and_metadata(request, cv, data, matches_sklearn):
    """({name: Scoring}, :class:`Metadata`) of a test; the counts of labels come last."""
    estimator = request.estimator
    scoring, counts_labels = split_confusion(request.scoring)
    scoring = _default_scoring(estimator, matches_sklearn=matches_sklearn) if scoring is None else scoring
    adapters.check_probabilities(scoring, estimator)
    scorings, _ = scores_by_name(estimator, scoring, pooled=True)
    labels = is_classifier(estimator)  # metrics of other targets are refused by name
    suited = [score for score in scorings.values() if score.metric is None or score.metric.labels == labels]
    check_scorers([(score.name, score.scorer) for score in suited], estimator, data.y)
    if counts_labels:
        scorings |= {COUNTS_OF_LABELS: _confusion_scoring(estimator, data.y)}
    scorers = {name: score.scorer for name, score in scorings.items()}
    scorers = scorers.get("score", scorers)
    metadata = route_metadata("cross_validate", estimator, cv, request.params, request.groups, scorers)
    if any(name.endswith("confounds") for name in metadata.fit):
        raise ValueError("params: give confounds as confounds=, not as a parameter of fit.")
    if data.confounds is not None:
        check_scorers_of_confounds(scoring)
    return scorings, metadata


def split_confusion(scoring):
    """(the scores of ``scoring=``, whether "confusion" is beside them)."""
    several = isinstance(scoring, Mapping | list | tuple | set)
    if isinstance(scoring, Mapping):
        scores: Any = {name: score for name, score in scoring.items() if not _is_confusion(score)}
    else:
        scores = [score for score in (scoring if several else [scoring]) if not _is_confusion(score)]
    if len(scores) == (len(scoring) if several else 1):
        return scoring, False
    if not scores:
        raise ValueError(
            f"scoring={scoring!r}: the counts of labels are no score to test. Use scoring=['accuracy', 'confusion']."
        )
    return scores, True


def _is_confusion(score):
    return isinstance(score, str) and score == CONFUSION


def _scheme_of_splits(request, scheme, cv, true_splits, y):
    """(null scheme, whether splits move with the labels); stratified splits stay stratified."""
    if request.null_name in ("within_test_sets", "resplit") or not depends_on_labels(cv):
        return scheme, False
    if request.null_name == "free":
        return scheme, True
    return keep_balance(scheme, true_splits, y, stay=request.generalise)


def _splits_anew(cv, data, split_params, order):
    return splits_of_labeling(cv, data.X, data.labelled(order).y, split_params)


def keep_association(estimator, data, scheme):
    """(null scheme, data) of permutations that keep the association between labels and confounds.

    For values the residuals are permuted, by any scheme. Classes are permuted by their probabilities given the
    confounds, classes of whole groups given the means of the confounds in the groups. A user's own scheme is taken as
    it is for classes.
    """
    if data.confounds is None:
        return scheme, data
    C, strata = check_confounds(data.confounds.values, len(data.y)), getattr(scheme, "strata", None)
    data = replace(data, confounds=replace(data.confounds, values=C))
    if not is_classifier(estimator):
        y = check_array(data.y, ensure_2d=False, dtype=float, input_name="y")
        return scheme, replace(data, residuals=Residuals.of(y, C, Exchangeable(strata).levels(len(y))))
    if isinstance(scheme, Exchangeable):
        scheme = given_confounds(data.y, C, strata)
    elif isinstance(scheme, WholeGroups):
        scheme = _groups_given_confounds(scheme, data.y, C)
    return scheme, data


def _groups_given_confounds(scheme, y, C):
    """The scheme in which groups exchange their one class with the probabilities that the confounds' means give."""
    members, y = scheme.members, np.asarray(y)
    if (y[members] != y[members[:, :1]]).any():
        raise ValueError(
            "null=WholeGroups(groups) with confounds needs one class for each group, and some groups have several. Use"
            " an object whose method orders keeps what the confounds explain."
        )
    among = given_confounds(y[members[:, 0]], C[members].mean(1), getattr(scheme.among, "strata", None))
    return replace(scheme, among=among)


def _default_scoring(estimator, *, matches_sklearn):
    """The score by which a search decides; else R2 of all held-out rows together, in place of a mean over splits.

    None is the estimator's own score: where it is not R2, and where scikit-learn's result is promised.
    """
    last = split_steps(estimator).last
    if isinstance(last, Search):
        scoring, last = deciding_scoring(last.scoring, last.refit), split_steps(last.estimator).last
        if scoring is not None:
            return scoring
    has_r2 = type(last) in TASKS or getattr(type(last), "score", None) is RegressorMixin.score
    return "r2_pooled" if is_regressor(estimator) and has_r2 and not matches_sklearn else None


def _confusion_scoring(estimator, y):
    """Counts of labels for each class, in the place of a score."""
    if not is_classifier(estimator) or np.ndim(y) > 1:
        raise ValueError("scoring: 'confusion' counts the labels of classifiers with one label a row; leave it out.")
    return Scoring.of(confusion_metric(np.unique(y)), estimator)


def _warn_of_small_parts(scorings, splits):
    """Warn of R2 of test parts of few rows."""
    smallest = min(len(test) for _, test in splits)
    if 1 < smallest < ENOUGH_FOR_R2 and any(scoring.argument == "r2" for scoring in scorings.values()):
        warn_caller(
            f"scoring='r2' of test parts with {smallest} rows: R2 divides by the spread of so few values, and the mean"
            " over splits has little power. Use 'r2_pooled' (the default), R2 of all held-out rows together, or larger"
            " test parts."
        )


def _warn_of_few_labelings(log_labelings, m):
    """Warn where there are so few labelings that no p-value can be small."""
    count = round(np.exp(min(log_labelings, np.log(ENOUGH_LABELINGS))))
    if 1 < count < m and count < ENOUGH_LABELINGS:
        warn_caller(
            f"there are {count} different labelings, fewer than the {m} permutations, and p-values are at least about"
            f" {1 / count:.2g}. Larger strata, fewer folds or splits that do not look at the labels (KFold) leave more."
        )


def check_permutations(y, n_permutations, least=1):
    """Refuse a test without labels, or with fewer permutations than ``least``."""
    if y is None:
        raise ValueError("y=None: there are no labels to permute.")
    if not isinstance(n_permutations, Integral) or isinstance(n_permutations, bool) or n_permutations < least:
        raise ValueError(f"n_permutations={n_permutations!r} must be an integer of at least {least}.")


def has_class_weights(last):
    """Whether an estimator, or a candidate of a search, weighs classes."""
    if not isinstance(last, Search):
        return getattr(last, "class_weight", None) is not None
    return has_class_weights(split_steps(last.estimator).last) or adapters.grid_names(last, "class_weight")


def _unchanged(data, order):
    """Whether labels are as they were after a permutation, values up to rounding."""
    before, after = np.asarray(data.y), np.asarray(data.labelled(order).y)
    if data.residuals is None:
        return (before == after).all()
    return (np.abs(after - before) <= ROUNDING * np.ptp(data.residuals.y, axis=0)).all()


def warn_of_unchanged_labels(data, orders):
    """Warn of permutations that change no label: they test nothing."""
    if len(orders) > 1 and all(_unchanged(data, order) for order in orders[1 : min(len(orders), 11)]):
        reason = "y is constant within every group (or stratum)"
        if data.confounds is not None:
            reason += ", or the confounds determine it there, and nothing is left to be tested beside them"
        warn_caller(
            f"the permutations do not change the labels: {reason}. Where the label belongs to the group, test one row a"
            " group, averages say, or use null=WholeGroups(groups); otherwise give null= an array with larger sets of"
            " exchangeable rows."
        )
