"""Where a search looks: the default grid, and the logarithms of alpha and of the kernel's parameters as one vector."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from foldless._engine.precision.lowrank import TALL

FLAT = 1e-3  # share of the criterion by which an end of a grid must be better than its neighbour to count


@dataclass(frozen=True)
class Space:
    """The logarithms of alpha (one, or one a column) and of the kernel's differentiable parameters.

    ``groups`` numbers the scale of each feature, in the parameter that may hold one value for each; None: one for all.
    ``fixed`` are parameters that stay.
    """

    kernel: Any
    n_alphas: int = 1
    groups: Any = None
    fixed: tuple = ()

    @classmethod
    def of(cls, kernel, n_features, n_alphas, *, feature_scaling=False, feature_groups=None, fixed=()):
        """The space around a kernel: one value for all features, or one for each feature or group of them."""
        name = kernel.per_feature
        if not feature_scaling:
            if name is not None and name not in fixed and np.ndim(kernel.get_params()[name]):
                raise ValueError(
                    f"{name} holds one value for each feature; use Optimizer(feature_scaling=True) to tune them."
                )
            return cls(kernel, n_alphas, fixed=fixed)
        groups = np.arange(n_features) if feature_groups is None else np.asarray(feature_groups)
        if groups.shape != (n_features,):
            raise ValueError(
                f"feature_scaling has shape {groups.shape}; X has {n_features} features, and each needs an entry, equal"
                " for those that share a scale."
            )
        scales = np.broadcast_to(kernel.get_params()[name], n_features).copy()
        return cls(kernel.changed(**{name: scales}), n_alphas, np.unique(groups, return_inverse=True)[1], fixed)

    @cached_property
    def names(self):
        """The parameters of the kernel that move. A constant of exactly 0 is a choice: it has no logarithm.

        Values for each feature stay where these have no scales to tune.
        """
        values, kinds = self.kernel.get_params(), self.kernel.kinds
        scaled = None if self.groups is None else self.kernel.per_feature
        stay = [name for name, kind in kinds.items() if kind.per_feature and np.ndim(values[name]) and name != scaled]
        moving = [name for name in self.kernel.differentiable if name not in (*stay, *self.fixed)]
        return tuple(name for name in moving if np.any(values[name]))

    @cached_property
    def places(self):
        """{name: positions in the vector of its values}, of alpha and of the parameters that move."""
        places, end = {"alpha": np.arange(self.n_alphas)}, self.n_alphas
        values = self.kernel.get_params()
        for name in self.names:
            in_groups = self.groups is not None and name == self.kernel.per_feature
            entries = np.arange(np.size(values[name])).reshape(np.shape(values[name]))
            places[name] = end + (self.groups if in_groups else entries)
            end = int(places[name].max()) + 1
        return places

    @property
    def n_scales(self):
        """Number of groups; 1 without."""
        return 1 if self.groups is None else int(self.groups.max()) + 1

    @property
    def scales(self):
        """Positions of the parameter that may hold one value for each feature."""
        return np.unique(self.places.get(self.kernel.per_feature, np.arange(0)))

    def _gather(self, values):
        """Values of every parameter added up in the entries of the vector."""
        total = np.zeros(1 + max(int(places.max()) for places in self.places.values()))
        for name, places in self.places.items():
            np.add.at(total, *np.broadcast_arrays(places, values[name]))
        return total

    def pack(self, alphas, kernel):
        """The vector of a setting; scales that one group shares start at their geometric mean."""
        parameters = kernel.get_params()
        values = {"alpha": alphas, **{name: parameters[name] for name in self.names}}
        logs = {name: np.log(np.maximum(value, np.finfo(float).tiny)) for name, value in values.items()}
        return self._gather(logs) / self._gather({name: np.ones_like(value) for name, value in logs.items()})

    def unpack(self, x):
        """(alphas, kernel) of a vector."""
        values = {name: np.exp(x)[places] for name, places in self.places.items()}
        alphas = values.pop("alpha")
        parameters = {name: value if value.ndim else float(value) for name, value in values.items()}
        return alphas, self.kernel.changed(**parameters)

    def chain(self, x, by_alpha, by_kernel):
        """Derivatives by the vector, from those by the alphas and by the kernel's parameters."""
        return self._gather({**by_kernel, "alpha": by_alpha}) * np.exp(x)

    def bounds(self, limits):
        """One pair of logarithms for every entry, from {name: (low, high)}."""
        return [tuple(np.log(limits[name])) for name, places in self.places.items() for _ in np.unique(places)]


def alpha_unit(problem):
    """Mean of the diagonal of S: the unit of alpha."""
    return problem.mean_diagonal or 1.0


def default_limits(problem):
    """{parameter: (low, high)} for continuous searches that start at this problem."""
    unit = alpha_unit(problem)
    return {"alpha": (1e-8 * unit, 1e6 * unit), **problem.kernel.limits()}


def default_grid(problem):
    """{parameter: values}: alpha in units of the diagonal of S, and the kernel's own."""
    kernel, n = problem.kernel, len(problem.active)
    kernel_grid = kernel.default_grid(problem.X[problem.active]) if kernel.parameters() else {}
    low, high, steps = -6.0, 2.0, 17
    if not (kernel_grid and kernel.differentiable):
        # Without a width to shrink, as for the linear kernel, eigenvalues go up to n times the diagonal, and far below
        # it where features differ in scale. All alphas cost one decomposition; a cheap one keeps fewer digits.
        low = -4.0 if problem.through_features(n) and problem.n_features >= TALL else -8.0
        high = float(np.log10(n))
        steps = 25
    return {"alpha": (alpha_unit(problem) * np.logspace(low, high, steps)).tolist(), **kernel_grid}


def on_edge(params, losses):
    """Names of the parameters in which the best of a grid lies at an end that the losses fall towards.

    ``params`` lists the settings, {name: value} each. Losses that are flat there promise nothing beyond.
    """
    if np.isnan(losses).all():
        return []
    best = params[int(np.nanargmin(losses))]
    cost = {tuple(setting.values()): loss for setting, loss in zip(params, losses, strict=True)}
    names = []
    for name in best:
        values = sorted({setting[name] for setting in params})
        place = values.index(best[name])
        if len(values) > 2 and place in (0, len(values) - 1):
            inner = cost.get(tuple({**best, name: values[1 if place == 0 else -2]}.values()), np.nan)
            names += [name] if cost[tuple(best.values())] < inner - FLAT * abs(inner) else []
    return names


def beyond(params, losses):
    """Grids beyond the ends of a grid that its best lies on, about the best: one for each such parameter."""
    names = on_edge(params, losses)
    if not names:
        return []
    best = params[int(np.nanargmin(losses))]
    values = {name: sorted({setting[name] for setting in params}) for name in best}
    grids = []
    for name in names:
        step = values[name][1] / values[name][0]
        way = 1 if best[name] == values[name][-1] else -1
        further = [best[name] * step ** (way * k) for k in range(1, 9 if name.endswith("alpha") else 4)]
        near = {}
        for other, entries in values.items():  # all alphas come along with a kernel; of its parameters those next to it
            place = entries.index(best[other])
            near[other] = entries if other.endswith("alpha") else entries[max(place - 1, 0) : place + 2]
        grids.append({**near, name: further})
    return grids
