"""What a continuous search minimises, and how: L-BFGS-B or Nelder-Mead on logarithms.

The criterion, and minus the logarithm of a prior where there is one (``tuning.priors``), as a function of the vector of
a :class:`~foldless.tuning.space.Space`. Gradients are exact and go in reverse (``heldout.gradient``): all of them cost
about as much as the value. (Bo, Wang & Jiao 2006, section 5; Cawley 2006, section II-G.)
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from foldless.heldout.gradient import value_and_gradient
from foldless.heldout.solution import Solution
from foldless.tuning.priors import PRIORS


@dataclass(frozen=True)
class Minimum:
    """Where a continuous search ended."""

    alphas: np.ndarray
    kernel: Any
    loss: float  # the criterion, without the prior
    objective: float
    history: list  # (loss, objective, alphas, kernel) of every evaluation
    n_iter: int


class Objective:
    """Criterion, and prior where there is one, as a function of the vector of a :class:`Space`."""

    def __init__(self, problem, selection, space, prior):
        self.problem, self.selection, self.space, self.prior = problem, selection, space, prior
        self.history: list = []
        self.best: Any = None  # the entry of the history with the least objective
        self._unit: float | None = None
        n, m = len(np.unique(selection.where[selection.tested])), selection.T.shape[1]
        classes = selection.task.codes is not None and m > 2
        self._n_residuals = n * (m - 1 if classes else m)  # one against all, a column is nearly told by the others

    def __call__(self, x, gradient=True):
        """The objective, and its gradient where that is asked for."""
        alphas, kernel = self.space.unpack(x)
        loss, slope = self._criterion(x, alphas, kernel, gradient)
        if self._unit is None:  # steps shall not depend on the units of the targets
            self._unit = abs(loss) or 1.0 if self.prior is None else self._n_residuals / 2
        value = loss
        if self.prior is not None:
            value, slope = self._with_prior(x, loss, slope)
        self.history.append((loss, value, alphas, kernel))
        if self.best is None or value < self.best[1]:
            self.best = self.history[-1]
        return value / self._unit if slope is None else (value / self._unit, slope / self._unit)

    def _criterion(self, x, alphas, kernel, gradient):
        """The criterion and its derivatives, or None, by the vector."""
        loss, by_alpha, by_kernel = 0.0, [], dict.fromkeys(self.space.names, 0.0)
        for part, problem in self.selection.parts(self.problem.replace(kernel=kernel), alphas):
            if gradient:
                value, slopes = value_and_gradient(problem, part.rows, part.T, part.folds, _summed(part))
                by_alpha.append(slopes.pop("alpha"))
                by_kernel = {name: by_kernel[name] + slopes[name] for name in by_kernel}
            else:
                value = float(part.judge(Solution(problem, part.rows, part.Y)).sum())
            loss += value
        return loss, self.space.chain(x, by_alpha, by_kernel) if gradient else None

    def _with_prior(self, x, loss, slope):
        """N/2 log Q and minus the logarithm of the prior."""
        scales, half = self.space.scales, self._n_residuals / 2
        loss = max(loss, np.finfo(float).tiny)  # targets without variance are fitted exactly
        penalty, pull = PRIORS[self.prior](x[scales])
        if slope is not None:
            slope = half * slope / loss
            slope[scales] += pull
        return half * np.log(loss) + penalty, slope


def _summed(selection):
    def loss(E):
        values, slopes = selection.losses(E)
        if slopes is None:
            raise ValueError(
                "criterion: the function returned no derivative, which method='gradient' needs; return (loss,"
                " derivative by f) or use method='simplex'."
            )
        return float(values.sum()), slopes

    return loss


def minimise(problem, selection, space, start, *, method, limits, prior=None, max_iter=50, watch=None):
    """The least criterion (and prior) from one starting vector; ``watch(criterion)`` is called after each iteration."""
    bounds = space.bounds(limits)
    start = np.clip(start, *np.transpose(bounds))
    objective = Objective(problem, selection, space, prior)
    n_iter = 0

    def callback(_):
        nonlocal n_iter
        n_iter += 1
        if watch is not None:
            watch(objective.best[0])

    if method == "gradient":
        own: dict = {"method": "L-BFGS-B", "jac": True}
        options = {"maxiter": max_iter, "ftol": 1e-8, "gtol": 1e-6}
    else:
        # Criteria that count errors have steps: a simplex smaller than them would see nothing but plains.
        corners = np.vstack([start, start + np.diag(np.where(start + 2.0 > np.transpose(bounds)[1], -2.0, 2.0))])
        own = {"method": "Nelder-Mead", "args": (False,)}
        options = {"maxiter": max_iter, "initial_simplex": corners, "xatol": 1e-3, "fatol": 1e-6}
    minimize(objective, start, bounds=bounds, callback=callback, options=options, **own)
    loss, value, alphas, kernel = objective.best
    return Minimum(alphas, kernel, loss, value, objective.history, n_iter)
