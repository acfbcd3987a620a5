"""The continuous searches: Nelder-Mead or L-BFGS-B from every candidate, every further start and every slope."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from joblib import delayed
from sklearn.base import clone
from sklearn.utils import check_random_state

from foldless.bridge.adapters import FOLDLESS_ESTIMATORS
from foldless.bridge.candidates import Outcome, candidates, solved
from foldless.bridge.progress import Progress, run_with_progress
from foldless.estimators.checks import numbers
from foldless.heldout.solution import Solution
from foldless.readout.task import Task
from foldless.tuning import criteria
from foldless.tuning.search import Found, Space, default_limits, minimise
from foldless.tuning.selection import Selection


@dataclass
class Descent:
    """One starting point: where it came from, where it ended, and by what it is compared with others."""

    params: dict  # of the candidate
    task: Task
    column: int | None  # a single class, or all
    space: Space
    start: np.ndarray
    slope: float | None
    prior: str | None
    found: Found | None = None
    merit: tuple = ()

    def named(self, alphas, kernel):
        """A setting as parameters of the estimator, one dictionary for each alpha."""
        tuned = {name: getattr(kernel, name) for name in self.space.names}
        return [{**self.params, "alpha": float(alpha), **tuned} for alpha in alphas]

    @property
    def n_roads(self):
        """Descents from here: under a prior also a free one, and from its end."""
        return 1 if self.prior is None else 3

    @property
    def ends(self):
        """The parameters found, one dictionary for each alpha."""
        return self.named(self.found.alphas, self.found.kernel)


def descend(search, criterion, X, y, sample_weight, splits):
    """All starting points of ``search``, followed down, and the best of them."""
    descents, classes = _starts(search, criterion, X, y, sample_weight)
    options = {"splits": splits, "weight": search.criterion_weight, "sample_weight": sample_weight}
    if search.n_jobs in (None, 1):
        progress = Progress(search.max_iter * sum(each.n_roads for each in descents), "iterations", search.verbose)
        descents = [_follow(each, search, criterion, options, progress) for each in descents]
    else:
        jobs = (delayed(_follow)(each, search, criterion, options) for each in descents)
        descents = run_with_progress(jobs, search.n_jobs, Progress(len(descents), "starting points", search.verbose))
    chosen = [
        min((number for number, each in enumerate(descents) if each.column == column), key=lambda k: descents[k].merit)
        for column in dict.fromkeys(each.column for each in descents)
    ]
    return Outcome(
        classes=classes,
        params=[_merged(each.ends) for each in descents],
        losses=np.array([each.found.loss for each in descents]),
        chosen=chosen,
        best=[params for number in chosen for params in descents[number].ends],
        loss=sum(descents[number].found.loss for number in chosen),
        slope=descents[chosen[0]].slope,
        history=[
            {"start": number, "criterion": loss, "objective": value, **_merged(each.named(alphas, kernel))}
            for number, each in enumerate(descents)
            for loss, value, alphas, kernel in each.found.history
        ],
    )


def _follow(descent, search, criterion, options, progress=None):
    """One starting point, followed down."""
    problem, space = descent.task.problem, descent.space
    own = criterion if descent.slope is None else criterion.with_slope(descent.slope)
    selection = Selection.of(descent.task, own, **options)
    selection = selection if descent.column is None else selection.column(descent.column)
    limits, history = {**default_limits(problem), **_checked_bounds(search.bounds)}, []

    def go(start, prior):
        found = minimise(
            problem,
            selection,
            space,
            start,
            method=search.method,
            limits=limits,
            prior=prior,
            max_iter=search.max_iter,
            watch=None if progress is None else lambda loss: progress.step(f"criterion {loss:.4g}"),
        )
        if progress is not None:
            progress.skip(search.max_iter - found.n_iter)
        history.extend(found.history)
        return found

    found = go(descent.start, descent.prior)
    if descent.prior is not None:
        # One gamma for all may be a minimum of its own. Come from where the scales part freely as well, and believe
        # that end where it is better by more than chance gives so many scales: one unit of log-likelihood for each.
        free = go(descent.start, None)
        parted = go(space.pack(free.alphas, free.kernel), descent.prior)
        found = parted if parted.objective < found.objective - space.n_scales else found
    found.history = history
    # Slopes differ in what they minimise; the error they all stand for does not.
    hard = _hard(criterion, selection, found) if np.size(search.slope) > 1 else 0.0
    return replace(descent, found=found, merit=(hard, found.objective))


def _starts(search, criterion, X, y, sample_weight):
    rng = check_random_state(search.random_state)
    slopes = [float(slope) for slope in np.atleast_1d(search.slope)] if criterion.hard else [None]
    descents = []
    for params in candidates(search.estimator, search.param_grid or {}, X, y, sample_weight):
        task, classes, _ = solved(clone(search.estimator).set_params(**params), X, y, sample_weight)
        several = task.n_classes > 2
        for column in range(task.n_classes) if several and search.share == "none" else [None]:
            space = _space(search, task, task.n_classes if several and search.share == "kernel" else 1)
            first = space.pack(task.problem.alpha, task.problem.kernel)
            for number in range(search.n_starts):
                start = first + (rng.normal(0.0, 1.5, len(first)) if number else 0.0)
                prior = search._prior if space.n_scales > 1 else None
                descents += [Descent(params, task, column, space, start, slope, prior) for slope in slopes]
    return descents, classes


def _space(search, task, n_alphas):
    """The parameters to move: one alpha (or one a class), one gamma or one for each feature or group."""
    kernel, n_features = task.problem.kernel, task.problem.X.shape[1]
    if not search._scaled:
        if "gamma" in kernel.differentiable and np.ndim(kernel.gamma):
            raise ValueError("gamma holds one value for each feature; use feature_scaling=True to tune them.")
        return Space(kernel, n_alphas)
    if "gamma" not in kernel.differentiable or not isinstance(search.estimator, FOLDLESS_ESTIMATORS):
        raise ValueError(
            "feature_scaling needs an estimator of foldless with kernel='rbf', 'poly' or 'laplacian';"
            f" {type(search.estimator).__name__} with {kernel!r} has no scale for each feature."
        )
    groups = np.arange(n_features)
    if search.feature_groups is not None:
        groups = np.asarray(search.feature_groups)
    if groups.shape != (n_features,):
        raise ValueError(
            f"feature_groups has shape {groups.shape}; X has {n_features} features, and each needs an entry, equal for"
            " those that share a scale."
        )
    groups = np.unique(groups, return_inverse=True)[1]
    return Space(replace(kernel, gamma=np.broadcast_to(kernel.gamma, n_features).copy()), n_alphas, groups)


def _checked_bounds(bounds):
    """Pairs of positive numbers for names that exist."""
    if not isinstance(bounds, Mapping | None):
        raise ValueError(f"bounds={bounds!r} must be a dict {{parameter: (low, high)}}.")
    for name, pair in (bounds or {}).items():
        if name not in ("alpha", "gamma", "coef0", "eta"):
            raise ValueError(f"bounds names {name!r}; the continuous parameters are alpha, gamma, coef0 and eta.")
        values = numbers(np.atleast_1d(pair).tolist())
        if values is None or values.shape != (2,) or not 0 < values[0] <= values[1]:
            raise ValueError(f"bounds[{name!r}]={pair!r} must be two finite numbers 0 < low <= high.")
    return bounds or {}


def _hard(criterion, selection, found):
    """The error, ber or auc at the end of a descent of its smooth version; 0 for other criteria."""
    if criterion.hard is None:
        return 0.0
    hard = replace(selection, criterion=criteria.CRITERIA[criterion.hard])
    columns = [hard] if len(found.alphas) == 1 else [hard.column(k) for k in range(len(found.alphas))]
    problems = (selection.task.problem.replace(kernel=found.kernel, alpha=float(alpha)) for alpha in found.alphas)
    return sum(part.judge(Solution(at, part.rows, part.Y)).sum() for part, at in zip(columns, problems, strict=True))


def _merged(ends):
    """One dictionary; classes that share all but alpha have a list of alphas."""
    return ends[0] if len(ends) == 1 else {**ends[0], "alpha": [each["alpha"] for each in ends]}
