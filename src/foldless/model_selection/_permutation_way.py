"""Which way a permutation test goes, from types, parameters and weights, and the words for it.

permutations as columns     everything that is regularised least squares, and grids over it
one P, one by one           the same with a score that takes more than decisions
a P for each permutation    weights that follow the labels
refit                       everything else
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from sklearn.base import clone
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import _check_sample_weight

from foldless.columns import Solver
from foldless.metrics import METRICS
from foldless.model_selection._adapters import OWN
from foldless.model_selection._labelings import (
    Anew,
    ByColumns,
    Judge,
    OneByOne,
    StepSolver,
    behind_steps,
    chunk,
    last_step,
)
from foldless.model_selection._nested import nested_cross_validate
from foldless.model_selection._path import ONE_FIT, ONE_P_PER_FOLD, REFIT, Path, route
from foldless.model_selection._permutation_search import TOGETHER, Tuned
from foldless.model_selection._search import FoldlessSearchCV
from foldless.model_selection._validation import cross_validate

FOLLOW = "weights follow the labels, so that every permutation has its own P"


@dataclass
class Wanted:
    """What is asked of every labeling."""

    estimator: object
    scoring: object
    scorer: object
    splits: list | None  # None: drawn for every labeling
    groups: object
    fit_params: dict
    score_params: dict | None
    weights: str | None
    memory_limit: int

    def judge(self, task, classes, flat):
        """The judge of decisions, or None where the score takes more than them."""
        metric = METRICS.get(self.scoring) if isinstance(self.scoring, str) else None
        if metric is not None:
            self._check(metric, task)
        return None if self.score_params else Judge.of(self.scoring, self.scorer, task, classes, flat)

    def _check(self, metric, task):
        if self.scoring in ("ber", "correlation") and metric.labels != (task.codes is not None):
            raise ValueError(f"scoring={self.scoring!r} is for {'class labels' if metric.labels else 'values'}.")
        smallest = metric.rows if self.splits is None else min(len(test) for _, test in self.splits)
        if smallest < metric.rows:
            raise ValueError(
                f"scoring={self.scoring!r} needs at least {metric.rows} held-out rows and cv leaves out {smallest}; use"
                " k-fold splits, or a score of single rows such as accuracy or neg_mean_squared_error."
            )


def choose_way(wanted, given):
    """(way, labelings a chunk, path) for one test."""
    steps, last = last_step(wanted.estimator)
    given.sample_weight, reason = _sample_weight(wanted, given)
    moving = weights_move(last, given.sample_weight, wanted.weights)
    if isinstance(last, FoldlessSearchCV):
        return _search(wanted, last, steps, given, moving)
    last = frozen(last, given.y) if wanted.weights == "fixed" else last
    if reason is None:
        path, solved = route(last, {})
        reason = path.reason if solved is None else _step_obstacle(wanted, steps, last)
    if reason is None:
        found = _columns(wanted, steps, last, given, moving)
        if not isinstance(found, str):
            return found
        reason = found
    path = Path(ONE_P_PER_FOLD if reason == FOLLOW else REFIT, reason)
    return Anew(partial(_validated, wanted), given, wanted.weights == "permuted"), 1, path


def _columns(wanted, steps, last, given, moving):
    """Permutations as columns, or one by one from one P; or the reason why neither is possible."""
    prepared = [] if steps is None else [behind_steps(steps, given, train) for train, _ in wanted.splits]
    built = (prepared[0].given if prepared else given).task(last)
    if isinstance(built, Path):
        return built.reason
    if moving:
        return FOLLOW
    task, classes, flat = built
    judge, size = wanted.judge(task, classes, flat), chunk(task, wanted.memory_limit)
    if steps is not None:
        if judge is None:
            return "behind fitted steps this score is asked of each fitted pipeline"
        folds = [StepSolver(each, last) for each in prepared]
        names = ", ".join(type(step).__name__ for _, step in steps.steps)
        reason = f"{names} fitted on each training part; all permutations are columns of one P there"
        return ByColumns(task, judge, folds=folds), size, Path(ONE_P_PER_FOLD, reason)
    solver = Solver(task.problem)
    if judge is not None:
        reason = f"permutations are columns; all held-out predictions follow from one P ({solver.choice})"
        return ByColumns(task, judge, solver), size, Path(ONE_FIT, reason)
    reason = f"one P for all permutations ({solver.choice}); this score is asked for one by one"
    way = OneByOne(wanted.estimator, last, given, task, classes, flat, solver, wanted.scorer, wanted.score_params)
    return way, 1, Path(ONE_FIT, reason)


def _search(wanted, search, steps, given, moving):
    if given.confounds is not None:
        raise ValueError("confounds are not known to a search; test the estimator with its parameters set.")
    criterion = search._checked().at(float(np.atleast_1d(search.slope)[0]))
    grid = search.method == "grid" and search.share == "all"
    if grid and steps is None and wanted.splits is not None and not moving and not wanted.score_params:
        way = Tuned.of(wanted, search, criterion, given)
        if way is not None:
            reason = f"one P for each of {len(way.listed)} candidates; every permutation chooses its own on each part"
            return way, TOGETHER, Path(ONE_FIT, reason)
    path = Path(REFIT, "the search is repeated for every permutation (nested_cross_validate)")
    return Anew(partial(_searched, wanted), given, wanted.weights == "permuted"), 1, path


# -- weights -----------------------------------------------------------------------------------------------------------


def _sample_weight(wanted, given):
    """(weights, None) of the fit parameters, or (None, the reason for refits)."""
    prefix = f"{wanted.estimator.steps[-1][0]}__" if hasattr(wanted.estimator, "steps") else ""
    extra = set(wanted.fit_params) - {f"{prefix}sample_weight"}
    if extra:
        return None, f"fit parameters {sorted(extra)} have no closed form"
    weight = wanted.fit_params.get(f"{prefix}sample_weight")
    if weight is not None:
        weight = _check_sample_weight(weight, np.empty((len(given.y), 1)), ensure_non_negative=True)
    return weight, None


def weights_move(last, weight, weights):
    """Whether weights change with the labels."""
    by_class = getattr(last, "class_weight", None) is not None
    if isinstance(last, FoldlessSearchCV):
        grids = [last.param_grid] if isinstance(last.param_grid, Mapping) else last.param_grid or []
        by_class = getattr(last.estimator, "class_weight", None) is not None
        by_class = by_class or any("class_weight" in each for each in grids)
    return (by_class and weights != "fixed") or (weights == "permuted" and weight is not None)


def frozen(estimator, y):
    """scikit-learn's balanced class weights as those of the true labels; foldless' own are resolved so in any case."""
    if isinstance(estimator, OWN) or getattr(estimator, "class_weight", None) != "balanced":
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
        return "splits are drawn for every permutation, and the steps fitted on each training part"
    return None


def _validated(wanted, given, splits):
    """Scores of one labeling's splits."""
    weight = {name: given.sample_weight for name in wanted.fit_params if name.endswith("sample_weight")}
    result = cross_validate(
        wanted.estimator,
        given.X,
        given.y,
        cv=splits,
        scoring=wanted.scorer,
        params={**wanted.fit_params, **weight, **(wanted.score_params or {})} or None,
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
