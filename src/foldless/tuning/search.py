"""Continuous searches of hyper-parameters, a prior against over-fitting, and where to look.

:func:`minimise` follows L-BFGS-B (gradients in reverse, ``heldout.gradient``) or Nelder-Mead, both SciPy's, on the
logarithms of alpha and of the kernel's parameters (Bo, Wang & Jiao 2006, section 5; Cawley 2006, section II-G).

**Priors.** A criterion with one scale for every feature can be over-fitted. With a normal model of the held-out
residuals (precision zeta, Q half the sum of squares of N residuals), zeta integrated out under Jeffreys' prior,

    int zeta^(N/2 - 1) exp(-zeta Q) dzeta = Gamma(N/2) Q^(-N/2)      leaves  N/2 log Q - log p(theta)

to be minimised in the place of Q, and there are two priors p of the d scales theta:

    bayes    normal of precision xi, that integrated out as zeta was: d/2 log Omega, Omega = |theta|^2 / 2 (Cawley &
             Talbot, JMLR 8, 2007). It draws all scales to 0, where it is minus infinity: only bounds and a local search
             keep it sensible.
    cauchy   on the logarithms about their mean: sum_k log(1 + u_k^2 / s^2), u = log theta - mean log theta, s = 0.3; a
             normal u_k with a precision of its own, integrated out under Gamma(1/2, s^2/2). Its mode is one gamma for
             all features, its tails let features leave, and it does not see the units of X.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize

from foldless.heldout.gradient import value_and_gradient
from foldless.heldout.solution import Solution
from foldless.precision.lowrank import TALL


@dataclass(frozen=True)
class Space:
    """The logarithms of alpha (one, or one a column) and of the kernel's parameters as one vector.

    ``groups`` numbers the scale of each feature; None: one gamma for all.
    """

    kernel: Any
    n_alphas: int = 1
    groups: np.ndarray | None = None
    names: tuple = field(init=False)

    def __post_init__(self):
        # A constant of exactly 0 is a choice: it has no logarithm.
        tuned = tuple(name for name in self.kernel.differentiable if np.any(getattr(self.kernel, name)))
        object.__setattr__(self, "names", tuned)

    def sizes(self):
        """Number of values of alpha and of every parameter of the kernel."""
        return [self.n_alphas, *(self.n_scales if name == "gamma" else 1 for name in self.names)]

    @property
    def n_scales(self):
        """Number of free values of gamma."""
        return 1 if self.groups is None else int(self.groups.max()) + 1

    def pack(self, alphas, kernel):
        """The vector of a setting; scales that one group shares start at their geometric mean."""
        parts = [np.log(np.broadcast_to(alphas, self.n_alphas))]
        for name in self.names:
            value = np.log(np.maximum(getattr(kernel, name), np.finfo(float).tiny))
            if name == "gamma" and self.groups is not None:
                value = np.broadcast_to(value, self.groups.shape)
                value = np.bincount(self.groups, value) / np.bincount(self.groups)
            parts.append(np.atleast_1d(np.mean(value) if name != "gamma" or self.groups is None else value))
        return np.concatenate(parts)

    def unpack(self, x):
        """(alphas, kernel) of a vector."""
        alphas, *values = np.split(np.exp(x), np.cumsum(self.sizes())[:-1])
        parameters = {}
        for name, value in zip(self.names, values, strict=True):
            parameters[name] = value[self.groups] if name == "gamma" and self.groups is not None else float(value[0])
        return alphas, replace(self.kernel, **parameters) if parameters else self.kernel

    def chain(self, x, by_alpha, by_kernel):
        """Derivatives by the vector, from those by the alphas and by the kernel's parameters."""
        parts = [np.asarray(by_alpha, float)]
        for name in self.names:
            slope = np.asarray(by_kernel[name], float)
            if name == "gamma" and self.groups is not None:
                parts.append(np.bincount(self.groups, slope, self.n_scales))
            else:
                parts.append(np.atleast_1d(slope.sum()))
        return np.concatenate(parts) * np.exp(x)

    def bounds(self, limits):
        """One pair of logarithms for every entry, from {name: (low, high)}."""
        pairs = [np.log(limits[name]) for name in ("alpha", *self.names)]
        return [tuple(pair) for pair, size in zip(pairs, self.sizes(), strict=True) for _ in range(size)]

    @property
    def scales(self):
        """Positions of the free values of gamma in the vector."""
        if "gamma" not in self.names:
            return slice(0, 0)
        start = int(np.sum(self.sizes()[: 1 + self.names.index("gamma")]))
        return slice(start, start + self.n_scales)


@dataclass
class Found:
    """Where a continuous search ended."""

    alphas: np.ndarray
    kernel: object
    loss: float  # the criterion, without the prior
    objective: float
    history: list
    n_iter: int


class Objective:
    """Criterion, and prior where there is one, as a function of the vector of a :class:`Space`."""

    def __init__(self, problem, selection, space, prior):
        self.problem, self.selection, self.space, self.prior = problem, selection, space, prior
        self.history: list = []
        self.best: Any = None
        self._unit: float | None = None
        n, m = len(np.unique(selection.where[selection.tested])), selection.T.shape[1]
        classes = selection.task.codes is not None and m > 2
        self._n_residuals = n * (m - 1 if classes else m)  # one against all, a column is nearly told by the others

    def __call__(self, x, gradient=True):
        """The objective, and its gradient where that is asked for."""
        alphas, kernel = self.space.unpack(x)
        loss, by_alpha, by_kernel = 0.0, [], dict.fromkeys(self.space.names, 0.0)
        # One alpha for all columns: they share one P. One alpha a column: a P each.
        columns = [self.selection] if len(alphas) == 1 else [self.selection.column(k) for k in range(len(alphas))]
        for alpha, part in zip(alphas, columns, strict=True):
            problem = self.problem.replace(kernel=kernel, alpha=float(alpha))
            if gradient:
                value, slopes = value_and_gradient(problem, part.rows, part.T, part.folds, _summed(part))
                by_alpha.append(slopes.pop("alpha"))
                by_kernel = {name: by_kernel[name] + slopes[name] for name in by_kernel}
            else:
                value = float(part.judge(Solution(problem, part.rows, part.Y)).sum())
            loss += value
        value, slope = loss, self.space.chain(x, by_alpha, by_kernel) if gradient else None
        if self._unit is None:  # steps shall not depend on the units of the targets
            self._unit = abs(loss) or 1.0 if self.prior is None else self._n_residuals / 2
        if self.prior is not None:
            value, slope = self._with_prior(x, loss, slope)
        self.history.append((loss, value, alphas, kernel))
        if self.best is None or value < self.best[0]:
            self.best = value, loss, alphas, kernel
        return value / self._unit if slope is None else (value / self._unit, slope / self._unit)

    def _with_prior(self, x, loss, slope):
        """N/2 log Q and minus the logarithm of the prior."""
        scales, half = self.space.scales, self._n_residuals / 2
        loss = max(loss, np.finfo(float).tiny)  # targets without variance are fitted exactly
        penalty, pull = PRIORS[self.prior](x[scales])
        if slope is not None:
            slope = half * slope / loss
            slope[scales] += pull
        return half * np.log(loss) + penalty, slope


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
    seen = []

    def callback(_):
        seen.append(objective.best[1])
        if watch is not None:
            watch(seen[-1])

    options = {"bounds": bounds, "callback": callback}
    if method == "gradient":
        minimize(
            objective,
            start,
            jac=True,
            method="L-BFGS-B",
            **options,
            options={"maxiter": max_iter, "ftol": 1e-8, "gtol": 1e-6},
        )
    else:
        # Criteria that count errors have steps: a simplex smaller than them would see nothing but plains.
        corners = np.vstack([start, start + np.diag(np.where(start + 2.0 > np.transpose(bounds)[1], -2.0, 2.0))])
        minimize(
            objective,
            start,
            args=(False,),
            method="Nelder-Mead",
            **options,
            options={"maxiter": max_iter, "initial_simplex": corners, "xatol": 1e-3, "fatol": 1e-6},
        )
    value, loss, alphas, kernel = objective.best
    return Found(alphas, kernel, loss, value, objective.history, len(seen))


# -- where to look -----------------------------------------------------------------------------------------------------


def size(problem):
    """Mean of the diagonal of S: the unit of alpha."""
    rows = problem.active
    if problem.penalty == "rkhs":
        return float(np.mean(problem.kernel.diag(problem._take(rows)))) or 1.0
    some = rows[:: max(1, len(rows) // 100)]
    return float(np.square(problem.gram(some, problem.basis_rows(rows))).sum(1).mean()) or 1.0


def default_grid(problem):
    """{parameter: values} around the kernel's own setting; alpha in units of the diagonal of S."""
    kernel = problem.kernel
    n = len(problem.active)
    low, high, steps = -6.0, 2.0, 17
    if not kernel.differentiable:
        # Without a width to shrink, as for the linear kernel, eigenvalues go up to n times the diagonal, and far below
        # it where features differ in scale. All alphas cost one decomposition; a cheap one keeps fewer digits.
        wide = problem.n_features(n) is None or problem.X.shape[1] < TALL
        low, high, steps = -8.0 if wide else -4.0, float(np.log10(n)), 25
    grid = {"alpha": (size(problem) * np.logspace(low, high, steps)).tolist()}
    return {**grid, **kernel.default_grid(problem.X[problem.active])}


def default_limits(problem):
    """{parameter: (low, high)} for continuous searches."""
    unit = size(problem)
    return {"alpha": (1e-8 * unit, 1e6 * unit), **problem.kernel.limits()}
