"""Which way a permutation test goes, from types, parameters and weights, and the words for it.

permutations as columns     everything that is regularised least squares, and grids over it
one P, one by one           the same with a score that takes more than decisions
a P for each permutation    weights that follow the labels
refit                       everything else
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import sklearn
from sklearn.base import clone, is_classifier
from sklearn.metrics._scorer import _BaseScorer
from sklearn.model_selection import check_cv
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import _check_sample_weight

from foldless.bridge.adapters import FOLDLESS_ESTIMATORS, TASKS
from foldless.bridge.path import ONE_FIT, ONE_P_PER_FOLD, REFIT, Path, route
from foldless.model_selection._labelings import (
    Batched,
    Judge,
    RefitEach,
    SharedPrecision,
    StepSolver,
    behind_steps,
    chunk,
    last_step,
)
from foldless.model_selection._nested import nested_cross_validate
from foldless.model_selection._outer import wants_probabilities
from foldless.model_selection._permutation_search import TOGETHER, BatchedGrid
from foldless.model_selection._search import FoldlessSearchCV
from foldless.model_selection._validation import cross_validate
from foldless.permutation.labelings import Solver
from foldless.permutation.metrics import METRICS

FEW = 8  # labelings of a chunk where each takes its own time
FOLLOW = "weights follow the labels, so that every permutation has its own P"


@dataclass
class TestSpec:
    """What is asked of every labeling."""

    estimator: object
    scoring: object  # the name of a metric, or a scorer
    asked: object  # what cross_validate is to take for it
    scorer: object
    first: list  # the splits of the true labels
    own_splits: bool  # whether each labeling has its own
    resplit: bool  # whether they are drawn as scikit-learn draws them, so that its result is to be met
    groups: object
    params: dict  # as given, but for those of the splitter
    fit_params: dict
    score_params: dict | None
    weights: str | None
    generalise: bool
    memory_limit: int

    @property
    def splits(self):
        """The splits of all labelings, or None where each has its own."""
        return None if self.own_splits else self.first

    def judge(self, task, classes, flat):
        """The judge of decisions, or None where the score takes more than them."""
        metric = METRICS.get(self.scoring) if isinstance(self.scoring, str) else None
        if metric is not None:
            self._check(metric, task)
        if wants_probabilities(self.scorer) and task.calibration is None:
            raise ValueError(
                f"scoring={self.scoring!r} needs probabilities, and {type(self.estimator).__name__} gives none here;"
                " set calibration='sigmoid' of foldless' classifiers, or take a score of decisions."
            )
        return None if self.score_params else Judge.of(self.scoring, self.scorer, task, classes, flat, self.resplit)

    def _check(self, metric, task):
        if self.scoring in ("ber", "correlation") and metric.labels != (task.codes is not None):
            raise ValueError(f"scoring={self.scoring!r} is for {'class labels' if metric.labels else 'values'}.")
        smallest = min(len(test) for _, test in self.first)
        if smallest < metric.rows:
            raise ValueError(
                f"scoring={self.scoring!r} needs at least {metric.rows} held-out rows and cv leaves out {smallest}; use"
                " k-fold splits, or a score of single rows such as accuracy or neg_mean_squared_error."
            )


def depends_on_labels(cv):
    """Whether a splitter looks at the labels: scikit-learn's say so by their names."""
    return any("Stratified" in kind.__name__ for kind in type(cv).__mro__)


def choose_way(wanted, given):
    """(way, labelings a chunk, path) for one test."""
    steps, last = last_step(wanted.estimator)
    weight, reason = _sample_weight(wanted, given)
    given = replace(given, sample_weight=weight)
    moving = weights_move(last, given.sample_weight, wanted.weights)
    if isinstance(last, FoldlessSearchCV):
        if reason is not None:
            raise ValueError(f"params: {reason}; only sample_weight is passed to the fits of a search.")
        return _search(wanted, last, steps, given, moving)
    last = frozen(last, given.y) if wanted.weights == "fixed" else last
    if reason is None:
        path, solved = route(last, {})
        reason = path.reason if solved is None else _step_obstacle(wanted, steps, last)
    for number, (train, _) in enumerate(wanted.first):
        if reason is None and len(np.unique(train)) < len(train):
            reason = f"the training part of split {number} repeats rows"
    if reason is None:
        found = _columns(wanted, steps, last, given, moving)
        if not isinstance(found, str):
            return found
        reason = found
    path = Path(ONE_P_PER_FOLD if reason == FOLLOW else REFIT, reason)
    return _anew(wanted, _validated, last, given, reason), 1, path


def _anew(wanted, validate, last, given, reason):
    """A cross-validation for every labeling, refused where weights would not do what is asked for."""
    by_class = has_class_weights(last)
    if by_class and wanted.weights == "fixed":
        raise ValueError(
            f"weights='fixed': {type(wanted.estimator).__name__} would be fitted anew for every permutation ({reason}),"
            " and its class weights follow the labels. Use weights=None, or sample weights in place of class_weight."
        )
    if wanted.score_params and wanted.weights == "permuted":
        raise ValueError("weights='permuted': the score's own parameters stay with the rows; leave one of them out.")
    return RefitEach(partial(validate, wanted), given, wanted.weights == "permuted", by_class and type(last) in TASKS)


def _columns(wanted, steps, last, given, moving):
    """Permutations as columns, or one by one from one P; or the reason why neither is possible."""
    built = (given if steps is None else behind_steps(steps, given, *wanted.first[0])[1]).task(last)
    if isinstance(built, Path):
        return built.reason
    if moving:
        return FOLLOW
    task, classes, flat = built
    judge, size = wanted.judge(task, classes, flat), chunk(task, wanted.memory_limit)
    if steps is not None:
        if judge is None:
            return "behind fitted steps this score is asked of each fitted pipeline"
        behind = partial(StepSolver, steps, last, given)
        names = ", ".join(type(step).__name__ for _, step in steps.steps)
        reason = f"{names} fitted on each training part; all permutations are columns of one P there"
        return Batched(task, judge, behind=behind), size, Path(ONE_P_PER_FOLD, reason)
    solver = Solver(task.problem)
    if judge is not None:
        reason = f"permutations are columns; all held-out predictions follow from one P ({solver.choice})"
        return Batched(task, judge, solver), size, Path(ONE_FIT, reason)
    if (
        has_class_weights(last)
        and not isinstance(last, FOLDLESS_ESTIMATORS)
        and not isinstance(wanted.scorer, _BaseScorer)
    ):
        raise ValueError("weights='fixed': a scorer that is a function is handed refits, whose class weights follow.")
    reason = f"one P for all permutations ({solver.choice}); this score is asked for one by one"
    way = SharedPrecision(wanted.estimator, last, given, task, classes, flat, solver, wanted.asked, wanted.score_params)
    return way, FEW, Path(ONE_FIT, reason)


def _search(wanted, search, steps, given, moving):
    if wanted.generalise:
        raise ValueError("generalise=True: a search is not tested at other members; test an estimator.")
    if given.confounds is not None:
        raise ValueError("confounds are not known to a search; test the estimator with its parameters set.")
    criterion = search._checked().with_slope(float(np.atleast_1d(search.slope)[0]))
    grid = search.method == "grid" and search.share == "all"
    blind = search.cv is None or not depends_on_labels(check_cv(search.cv, given.y, classifier=is_classifier(search)))
    if grid and blind and steps is None and not (wanted.own_splits or moving or wanted.score_params):
        way = BatchedGrid.of(wanted, search, criterion, given)
        if way is not None:
            reason = f"one P for each of {len(way.listed)} candidates; every permutation chooses its own on each part"
            return way, TOGETHER, Path(ONE_FIT, reason)
    reason = "the search is repeated for every permutation (nested_cross_validate)"
    if not blind:
        reason += ", as its inner splits are drawn from the labels"
    return _anew(wanted, _searched, search, given, reason), 1, Path(REFIT, reason)


# -- weights -----------------------------------------------------------------------------------------------------------


def _sample_weight(wanted, given):
    """(weights of the last step or None, the reason for refits or None) from the fit parameters."""
    weight = wanted.fit_params.get(_weight_name(wanted))
    if weight is not None:
        weight = _check_sample_weight(weight, np.empty((len(given.y), 1)), ensure_non_negative=True)
    extra = set(wanted.fit_params) - {_weight_name(wanted)}
    if any(name.endswith("confounds") for name in extra):
        raise ValueError("params: give confounds as confounds=, not as a parameter of fit.")
    return weight, f"fit parameters {sorted(extra)} have no closed form" if extra else None


def _weight_name(wanted):
    """What the fit parameters call the weights of the last step."""
    routing = sklearn.get_config().get("enable_metadata_routing", False)
    named = hasattr(wanted.estimator, "steps") and not routing
    return f"{wanted.estimator.steps[-1][0]}__sample_weight" if named else "sample_weight"


def weights_move(last, weight, weights):
    """Whether weights change with the labels."""
    return (has_class_weights(last) and weights != "fixed") or (weights == "permuted" and weight is not None)


def has_class_weights(last):
    """Whether an estimator, or a candidate of a search, weighs classes."""
    if not isinstance(last, FoldlessSearchCV):
        return getattr(last, "class_weight", None) is not None
    grids = [last.param_grid] if isinstance(last.param_grid, Mapping) else last.param_grid or []
    return has_class_weights(last.estimator) or any("class_weight" in each for each in grids)


def frozen(estimator, y):
    """scikit-learn's balanced class weights as those of the true labels; foldless' own are resolved so in any case."""
    if isinstance(estimator, FOLDLESS_ESTIMATORS) or getattr(estimator, "class_weight", None) != "balanced":
        return estimator
    classes = np.unique(np.asarray(y))
    factors = compute_class_weight("balanced", classes=classes, y=np.asarray(y))
    return clone(estimator).set_params(class_weight=dict(zip(classes, factors, strict=True)))


# -- one labeling at a time ------------------------------------------------------------------------------------------


def _step_obstacle(wanted, steps, last):
    """Why steps in front of a model stand in the way of columns, or None."""
    if steps is None:
        return None
    path, _ = route(wanted.estimator, {})
    if path.kind == REFIT:
        return path.reason
    if getattr(last, "kernel", None) == "precomputed":
        return "steps in front of a precomputed kernel see kernels, not rows"
    if wanted.splits is None:
        return "every permutation has its own splits, and steps are fitted on each training part"
    return None


def _validated(wanted, given, splits):
    """Scores of one labeling's splits."""
    raw = wanted.fit_params.get(_weight_name(wanted))
    params = {name: given.sample_weight if value is raw else value for name, value in wanted.params.items()}
    result = cross_validate(
        wanted.estimator,
        given.X,
        given.y,
        cv=splits,
        scoring=wanted.asked,
        params=params or None,
        error_score="raise",
        confounds=given.confounds,
        confounds_in_score=given.confounds_in_score,
    )
    return result["test_score"]


def _searched(wanted, given, splits):
    """Scores of one labeling's outer splits."""
    params = None if given.sample_weight is None else {"sample_weight": given.sample_weight}
    options = {"groups": wanted.groups, "scoring": wanted.scorer, "params": params, "n_jobs": 1}
    return nested_cross_validate(wanted.estimator, given.X, given.y, cv=splits, **options).test_score
