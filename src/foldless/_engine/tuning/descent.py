"""Continuous searches from one starting point: what is minimised, how, and which of several ends is the best.

The criterion, as a function of the vector of a :class:`~foldless._engine.tuning.space.Space`, goes down by L-BFGS-B or
Nelder-Mead. Gradients are exact and go in reverse (``heldout.gradient``): all of them cost about as much as the value.
(Bo, Wang & Jiao 2006, section 5; Cawley 2006, section II-G.)

A criterion with one scale for every feature can be over-fitted. With a normal model of the held-out residuals
(precision zeta, Q half the sum of squares of N residuals), zeta integrated out under Jeffreys' prior,

    int zeta^(N/2 - 1) exp(-zeta Q) dzeta = Gamma(N/2) Q^(-N/2)      leaves  N/2 log Q - log p(theta)

to be minimised in the place of Q, and there are two priors p of the d scales theta:

    bayes    normal of precision xi, that integrated out as zeta was: d/2 log Omega, Omega = |theta|^2 / 2 (Cawley &
             Talbot, JMLR 8, 2007). It draws all scales to 0, where it is minus infinity: only bounds and a local search
             keep it sensible.
    cauchy   on the logarithms about their mean: sum_k log(1 + u_k^2 / s^2), u = log theta - mean log theta, s = 0.3; a
             normal u_k with a precision of its own, integrated out under Gamma(1/2, s^2/2). Its mode is one gamma for
             all features, its tails let features leave, and it does not see the units of X.
"""

import time
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from foldless._engine.heldout.gradient import value_and_gradient
from foldless._engine.heldout.solution import Solution
from foldless._engine.readout.task import Task
from foldless._engine.tuning.space import Space


def bayes(logs):
    """d/2 log(|theta|^2 / 2) and its derivatives by log theta."""
    top = logs.max()
    squares = np.exp(2 * (logs - top))
    d, total = len(logs), squares.sum()
    return d / 2 * (np.log(total / 2) + 2 * top), d * squares / total


def cauchy(logs, width=0.3):
    """sum_k log(1 + u_k^2 / width^2) and its derivatives by log theta."""
    u = logs - logs.mean()
    slope = 2 * u / (width**2 + u * u)
    return np.log1p(np.square(u / width)).sum(), slope - slope.mean()


PRIORS = {"bayes": bayes, "cauchy": cauchy}


class Point(NamedTuple):
    """One setting, judged on some of the rows or on all."""

    loss: float  # the criterion, without the prior
    objective: float
    alphas: np.ndarray
    kernel: Any
    n_rows: int
    seconds: float  # that it took
    judged: Any = None  # where it was judged by itself: a ``tuning.selection.Evaluation``


class Objective:
    """Criterion, and prior where there is one, as a function of the vector of a :class:`Space`."""

    def __init__(self, selection, space, prior):
        self.selection = selection
        self.space = space
        self.prior = prior
        self.history: list[Point] = []
        self._unit: float | None = None
        n, m = len(np.unique(selection.where[selection.tested])), selection.T.shape[1]
        classes = selection.task.codes is not None and m > 2
        self._n_residuals = n * (m - 1 if classes else m)  # the last class nearly follows from the others

    @property
    def best(self):
        """The evaluation with the least objective."""
        return min(self.history, key=lambda point: point.objective)

    def __call__(self, x, gradient=True):
        """The objective, and its gradient where that is asked for."""
        begin = time.perf_counter()
        alphas, kernel = self.space.unpack(x)
        loss, slope = self._criterion(x, alphas, kernel, gradient)
        if self._unit is None:  # steps shall not depend on the units of the targets
            self._unit = abs(loss) or 1.0 if self.prior is None else self._n_residuals / 2
        value = loss
        if self.prior is not None:  # N/2 log Q and minus the logarithm of the prior
            half, scales = self._n_residuals / 2, self.space.scales
            squares = max(loss, np.finfo(float).tiny)  # targets without variance are fitted exactly
            penalty, pull = PRIORS[self.prior](x[scales])
            value = half * np.log(squares) + penalty
            if slope is not None:
                slope = half * slope / squares
                slope[scales] += pull
        n_rows, seconds = len(self.selection.rows), time.perf_counter() - begin
        self.history.append(Point(loss, value, alphas, kernel, n_rows, seconds))
        return value / self._unit if slope is None else (value / self._unit, slope / self._unit)

    def _criterion(self, x, alphas, kernel, gradient):
        """The criterion and its derivatives, or None, by the vector."""
        loss = 0.0
        by_alpha = []
        by_kernel = dict.fromkeys(self.space.names, 0.0)
        for selection, problem in self.selection.problems(alphas, kernel):
            if not gradient:
                loss += float(selection.judge(Solution.fit(problem, selection.rows, selection.Y)).sum())
                continue
            losses = partial(_summed, selection)
            value, slopes = value_and_gradient(problem, selection.rows, selection.T, selection.folds, losses)
            loss += value
            by_alpha.append(slopes.pop("alpha"))
            _check_slopes(kernel, slopes, by_kernel)
            by_kernel = {name: by_kernel[name] + slopes[name] for name in by_kernel}
        return loss, self.space.chain(x, by_alpha, by_kernel) if gradient else None


def _check_slopes(kernel, slopes, names):
    """Raise an error where ``pullback`` of a kernel gives no derivative by a parameter that is searched by gradient."""
    missing = sorted(set(names) - set(slopes))
    if missing:
        raise ValueError(
            f"kernel={kernel!r} has no derivative by {', '.join(missing)}: add it to pullback, or declare the parameter"
            " with differentiable=False."
        )


def _summed(selection, E):
    values, slopes = selection.losses_and_slopes(selection.of_targets(E))
    if slopes is None:
        raise ValueError(
            "criterion: the function returned no derivative, which method='gradient' needs; return (loss, derivative by"
            " f) or use method='simplex'."
        )
    return float(values.sum()), selection.task.problem.rounded(slopes)


@dataclass(frozen=True)
class Start:
    """One starting point of a continuous search."""

    task: Task
    classes: np.ndarray | None
    space: Space
    vector: np.ndarray
    limits: dict  # {parameter: (low, high)}
    column: int | None  # of a single class; None: all together
    prior: str | None
    params: dict  # of the candidate it belongs to
    prefix: str  # what the estimator puts in front of the names of the kernel's parameters
    alpha: str = "alpha"  # what it calls that

    @property
    def n_descents(self):
        """Descents from here: under a prior also a free one, and one from its end."""
        return 1 if self.prior is None else 3

    def named(self, alphas, kernel, names=None):
        """A setting as parameters of the estimator, one dictionary for each alpha; ``names`` of the kernel's."""
        values = kernel.get_params()
        tuned = {self.prefix + name: values[name] for name in (self.space.names if names is None else names)}
        return [{**self.params, self.alpha: float(alpha), **tuned} for alpha in alphas]

    def named_together(self, alphas, kernel):
        """The same as one dictionary; classes that share all but alpha have a list of alphas."""
        first, *others = self.named(alphas, kernel)
        alpha = [first[self.alpha], *(setting[self.alpha] for setting in others)]
        return {**first, self.alpha: alpha} if others else first


class DescentResult(NamedTuple):
    """The way down from one vector."""

    minimum: Point
    history: list
    ended: str  # "converged", "max_iter" where it was still falling, or "stopped" by the time limit or the user


@dataclass(frozen=True)
class StartResult:
    """Where a starting point led."""

    start: Start
    minimum: Point
    history: list
    ended: str  # as that of the way to the minimum


def follow(start, spec, splits, progress=None, rows=None):
    """The descent from one starting point, on all rows or some; ``progress`` counts iterations."""
    selection = spec.selection(start.task, splits, rows=rows)
    selection = selection if start.column is None else selection.column(start.column)
    way = descend(start, spec, selection, start.vector, start.prior, progress)
    history = way.history
    if start.prior is not None and way.ended != "stopped":
        # One gamma for all may be a minimum of its own. Come from where the scales part freely as well, and believe
        # that end where it is better by more than chance gives so many scales: one unit of log-likelihood for each.
        free = descend(start, spec, selection, start.vector, None, progress)
        vector = start.space.pack(free.minimum.alphas, free.minimum.kernel)
        parted = descend(start, spec, selection, vector, start.prior, progress)
        history = [*history, *free.history, *parted.history]
        if parted.minimum.objective < way.minimum.objective - start.space.n_scales:
            way = parted
        elif parted.ended == "stopped":
            way = way._replace(ended="stopped")
    return StartResult(start, way.minimum, history, way.ended)


def descend(start, spec, selection, vector, prior=None, progress=None):
    """The :class:`DescentResult` from one vector to the least objective. Time is looked at after each iteration."""
    bounds = start.space.bounds(start.limits)
    low, high = np.transpose(bounds)
    vector = np.clip(vector, low, high)
    objective = Objective(selection, start.space, prior)
    reached: list[float] = []  # the least objective after each iteration

    def callback(_):
        reached.append(objective.best.objective)
        if progress is not None:
            progress.step(f"criterion {objective.best.loss:.4g}")
        if spec.out_of_time:
            raise StopIteration

    if spec.method == "gradient":
        algorithm: dict = {"method": "L-BFGS-B", "jac": True}
        options = {"maxiter": spec.max_iter, "ftol": spec.tolerance, "gtol": 1e-6}
    else:
        # Criteria that count errors have steps: a simplex smaller than them would see nothing but plains.
        corners = np.vstack([vector, vector + np.diag(np.where(vector + 2.0 > high, -2.0, 2.0))])
        algorithm = {"method": "Nelder-Mead", "args": (False,)}
        ends = {"xatol": 10 * spec.tolerance**0.5, "fatol": max(spec.tolerance, 1e-6)}
        options = {"maxiter": spec.max_iter, "initial_simplex": corners, **ends}
    try:
        result = minimize(objective, vector, bounds=bounds, callback=callback, options=options, **algorithm)
        falling = result.nit >= spec.max_iter and _still_falls(reached, objective.best.objective)
        ended = "stopped" if spec.out_of_time else "max_iter" if falling else "converged"
    except KeyboardInterrupt:
        if not objective.history:
            raise
        ended = "stopped"
    if progress is not None:
        progress.skip(spec.max_iter - len(reached))
    return DescentResult(objective.best, objective.history, ended)


def _still_falls(reached, end):
    """Whether the last fifth of the iterations lowered the objective by more than a hundredth."""
    return not reached or reached[max(len(reached) * 4 // 5 - 1, 0)] - end > 0.01 * abs(end)


def choose_descents(descents):
    """Places of the best descents: one, or one for each class that is searched by itself."""
    places: dict = {}
    for place, descent in enumerate(descents):
        places.setdefault(descent.start.column, []).append(place)
    return [min(same, key=lambda place: descents[place].minimum.objective) for same in places.values()]
