"""The plan of a cross-validation: in closed form where that is exact, else by scikit-learn's own loop.

Code that finds a closed form impossible raises :class:`~foldless._sklearn.route.NoClosedForm`. The plan then holds the
arguments of scikit-learn's function, which refits.
"""

from dataclasses import dataclass, field, replace
from math import comb
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn
from sklearn.base import is_classifier
from sklearn.model_selection import LeaveOneOut, LeavePOut, check_cv
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import _num_samples

from foldless._engine.heldout.plan import counts_of_splits
from foldless._engine.heldout.scaled import ScaledParts
from foldless._sklearn.adapters import FOLDLESS_ESTIMATORS, TASKS, build_task, closed_form_estimator
from foldless._sklearn.closed_form import ClosedFormRun
from foldless._sklearn.confounded import WithConfounds, columns_alone, innermost_estimator
from foldless._sklearn.pipelines import Search, split_steps
from foldless._sklearn.route import ONE_FIT, ONE_P_PER_FOLD, NoClosedForm, NoSharedP, Route, try_closed_form
from foldless._sklearn.routing import route_metadata
from foldless._sklearn.scorers import check_scorers_of_confounds
from foldless._sklearn.splits import (
    check_confounds_determined,
    check_leave_out,
    check_splits,
    is_leave_one_out,
    row_numbers,
)
from foldless.estimators.checks import as_confounds, check_confounds, warn_of_long_call, warn_of_scale

METHODS = ("predict", "decision_function", "predict_proba", "predict_log_proba")

FIXED_FEATURES = "landmarks, random features or basis functions are fixed once from all rows, labels unseen"


@dataclass(frozen=True)
class CrossValidationPlan:
    """How one call is answered: by ``run`` on its rows and ``splits``, or by scikit-learn's loop with ``loop``."""

    route: Route
    run: ClosedFormRun | None = None
    splits: Any = None  # (train, test) pairs, or a splitter whose test sets need not be drawn
    score_params: dict | None = None
    loop: dict = field(default_factory=dict)

    @property
    def drawn(self):
        """The (train, test) pairs, or the splitter where these were not drawn here."""
        return self.loop["cv"] if self.run is None else self.splits

    @property
    def test_share(self):
        """Tested rows for each training row, averaged over the splits."""
        splits, X = self.drawn, self.loop["X"] if self.run is None else self.run.X
        if not isinstance(splits, LeaveOneOut | LeavePOut):
            shares = [len(test) / len(train) for train, test in splits if len(train)]  # others have no score
            return float(np.mean(shares))
        n_out = getattr(splits, "p", 1)
        return n_out / (_num_samples(X) - n_out)

    def route_taken(self):
        """The route after the work is done: P may have been held in another way than was foreseen."""
        if self.run is None or self.route.kind != ONE_FIT:
            return self.route
        holder = self.run.parts.full_fit.choice
        return Route(ONE_FIT, self.route.reason.replace(self.route.holder, holder), holder)


def plan(request):
    """The :class:`CrossValidationPlan` of a call."""
    cv = check_cv(request.cv, request.y, classifier=is_classifier(request.estimator))
    request = replace(request, cv=cv, params=request.params or {}, confounds=as_confounds(request.confounds))
    metadata = route_metadata(
        request.function, request.estimator, cv, request.params, request.groups, scoring=request.scoring
    )
    steps = split_steps(request.estimator)
    fit_params = steps.fit_params_of_last(metadata.fit)
    request = _with_confounds(request, steps.last, fit_params)
    if request.confounds is not None and metadata.score:  # predictions include their effect already
        remaining = {name: value for name, value in metadata.score.items() if value is not request.confounds.values}
        metadata = metadata._replace(score=remaining or None)
    run, obstacle = try_closed_form(_closed_form, request, steps, fit_params)
    if run is not None:
        if not isinstance(cv, LeaveOneOut | LeavePOut):
            request = _with_splits(request, metadata)  # a refit must not draw others
        solved, obstacle = try_closed_form(_solve, request, run, metadata.score)
        if solved is not None:
            return solved
    if isinstance(obstacle, NoSharedP):
        n_splits = cv.get_n_splits(request.X, request.y, **metadata.split)
        obstacle = NoSharedP(f"{obstacle}; {obstacle.otherwise} would take one fit for all {n_splits} parts")
    return _refit(request, obstacle, metadata)


def _with_confounds(request, last, fit_params):
    """The same call with confounds as ``confounds``, also where they came as a parameter of ``fit``."""
    if "confounds" in fit_params and isinstance(last, (*FOLDLESS_ESTIMATORS, Search)):
        if request.confounds is not None:
            raise ValueError("confounds are given twice: as confounds= and in params.")
        params = {name: value for name, value in request.params.items() if value is not fit_params["confounds"]}
        request = replace(request, confounds=as_confounds(fit_params["confounds"]), params=params)
    if request.confounds is not None:
        check_scorers_of_confounds(request.scoring)
    return request


def _closed_form(request, steps, fit_params):
    """The run of a call whose estimator, data and method have a closed form; splits may still have none."""
    if request.method not in METHODS:
        raise NoClosedForm(f"method={request.method!r} is asked of each fitted estimator")
    if request.y is None:
        raise NoClosedForm("there is no y")
    weight = fit_params.get("sample_weight")
    scaled = None if steps.first is None else _scaled_parts(request, steps, fit_params)
    if scaled is not None:
        estimator, (estimator_task, parts) = steps.last, scaled
    else:
        estimator = closed_form_estimator(steps, fit_params)
        estimator_task = build_task(estimator, request.X, request.y, weight, request.confounds)
        wants_probabilities = request.method.endswith("proba") or request.scoring is not None
        parts = estimator_task.task.training_parts(probabilities=wants_probabilities)
    return ClosedFormRun(
        outer=request.estimator,
        estimator=estimator,
        task=estimator_task.task,
        classes=estimator_task.classes,
        flat=estimator_task.flat,
        checked=estimator_task.checked,
        X=request.X,
        y=request.y,
        sample_weight=weight,
        parts=parts,
    )


def _scaled_parts(request, steps, fit_params):
    """(task, :class:`ScaledParts`) of a linear model behind StandardScaler; None for other pipelines and data."""
    if [type(step) for _, step in steps.first.steps] != [StandardScaler]:
        return None
    last, scaler = steps.last, steps.first.steps[0][1]
    probabilities = request.method.endswith("proba") or getattr(last, "calibration", None) is not None
    # By each training part, as in a refit:
    balanced = isinstance(getattr(last, "class_weight", None), str) or getattr(last, "standardize", False)
    more_params = fit_params.keys() - {"sample_weight"} or request.confounds is not None
    routed = fit_params and sklearn.get_config().get("enable_metadata_routing", False)
    if type(last) not in TASKS or probabilities or balanced or more_params or routed:
        return None
    estimator_task = build_task(last, request.X, request.y, fit_params.get("sample_weight"))
    task, problem = estimator_task.task, estimator_task.task.problem
    dense_and_linear = problem.kernel.is_linear and not sp.issparse(problem.X) and problem.dtype == np.float64
    if not dense_and_linear or task.readout.cuts or problem.X.shape[1] >= problem.n:
        return None
    options = {"with_mean": scaler.with_mean, "with_std": scaler.with_std, "intercept": bool(problem.intercept)}
    return estimator_task, ScaledParts(problem.X, task.Y, np.square(problem.root_w), problem.alpha, **options)


def _with_splits(request, metadata):
    """The same call with its splits drawn: groups and other parameters of the splitter have done their work."""
    splits = row_numbers(request.cv.split(request.X, request.y, **metadata.split), _num_samples(request.X))
    return replace(request, cv=splits, groups=None, params=metadata.but_splitter(request.params))


def _solve(request, run, score_params):
    """The plan of a call all of whose training parts have a closed form."""
    task, splits = run.task, request.cv
    if isinstance(splits, LeaveOneOut | LeavePOut):
        check_leave_out(task, getattr(splits, "p", 1))
    else:
        check_splits(task, splits)
        if task.problem.more_columns:
            check_confounds_determined(task.problem, splits)
        if is_leave_one_out(splits, task.problem.n):
            splits = LeaveOneOut() if request.function != "cross_validate" else splits
    name = type(run.estimator).__name__
    if isinstance(run.parts, ScaledParts):
        reason = f"StandardScaler and {name} on each training part, from sums of its {task.problem.X.shape[1]} features"
        route = Route(ONE_P_PER_FOLD, reason)
    else:
        warn_of_scale(task.problem)
        run = replace(run, parts=_planned(run.parts, splits))
        plan_of_parts = run.parts.plan
        if request.function != "explain":
            n = len(task.problem.active)
            arrays = plan_of_parts.arrays or (1 - min(plan_of_parts.counts) / n) ** 2  # of training parts by themselves
            warn_of_long_call(task.problem, "a cross-validation", plan_of_parts.flops, arrays)
        route = _route_of(name, plan_of_parts)
    if task.problem.kernel.approximates:
        route = replace(route, reason=f"{route.reason}; {FIXED_FEATURES}")
    return CrossValidationPlan(route, run, splits, score_params)


def _planned(parts, splits):
    """The training parts with the plan of these splits; an error where P of all rows would be too large."""
    if isinstance(splits, LeaveOneOut | LeavePOut):
        p = getattr(splits, "p", 1)
        return parts.planned({p: comb(parts.problem.n, p)})
    return parts.planned(counts_of_splits(splits, parts.problem))


def _route_of(name, plan):
    if plan.holder is None:
        return Route(ONE_P_PER_FOLD, plan.reason)
    return Route(ONE_FIT, f"{name} is regularised least squares; {plan.reason}", plan.held)


def _refit(request, obstacle, metadata):
    """The plan of a call that scikit-learn's own loop answers."""
    estimator, X = request.estimator, request.X
    if request.confounds is not None:
        _check_refit_with_confounds(request, obstacle)
    drawn = list if request.confounds is not None else list | LeaveOneOut | LeavePOut
    explained = request.function == "explain" and request.confounds is None  # without splits
    if not explained and not isinstance(request.cv, drawn):
        request = _with_splits(request, metadata)
    if request.confounds is not None:
        C = check_confounds(request.confounds.values, _num_samples(X))
        check_confounds_determined(columns_alone(estimator, C), request.cv)
        estimator, X = WithConfounds(estimator, X, C), np.arange(len(C))[:, None]
    loop = {
        "estimator": estimator,
        "X": X,
        "cv": request.cv,
        "groups": request.groups,
        "params": request.params or None,
    }
    return CrossValidationPlan(obstacle.route, loop=loop)


def _check_refit_with_confounds(request, obstacle):
    """Refuse confounds where ``fit`` takes none, or where predictions cannot include what the confounds explain."""
    estimator = innermost_estimator(request.estimator)
    if not isinstance(estimator, FOLDLESS_ESTIMATORS):
        raise ValueError(
            f"confounds: {type(estimator).__name__} would be refitted on every training part ({obstacle}), and its"
            f" fit takes none. Use {', '.join(kind.__name__ for kind in FOLDLESS_ESTIMATORS)},"
            " alone or as the last step of a pipeline."
        )
    if request.confounds.in_score:
        raise ValueError(
            f"confounds: in_score=True is not possible here: {type(request.estimator).__name__} would be refitted on"
            f" every training part ({obstacle}), and its predictions there leave the confounds' part out. Give the"
            " array alone."
        )
