"""The space of a continuous search: logarithms of alpha and of the kernel's parameters as one vector."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Space:
    """The logarithms of alpha (one, or one a column) and of the kernel's differentiable parameters.

    ``groups`` numbers the scale of each feature, in the parameter that may hold one value for each; None: one for all.
    """

    kernel: Any
    n_alphas: int = 1
    groups: Any = None

    @classmethod
    def of(cls, kernel, n_features, n_alphas, *, feature_scaling=False, feature_groups=None):
        """The space around a kernel: one value for all features, or one for each feature or group of them."""
        name = kernel.per_feature
        if not feature_scaling:
            if name is not None and np.ndim(getattr(kernel, name)):
                raise ValueError(f"{name} holds one value for each feature; use feature_scaling=True to tune them.")
            return cls(kernel, n_alphas)
        groups = np.arange(n_features) if feature_groups is None else np.asarray(feature_groups)
        if groups.shape != (n_features,):
            raise ValueError(
                f"feature_groups has shape {groups.shape}; X has {n_features} features, and each needs an entry, equal"
                " for those that share a scale."
            )
        scales = np.broadcast_to(getattr(kernel, name), n_features).copy()
        return cls(replace(kernel, **{name: scales}), n_alphas, np.unique(groups, return_inverse=True)[1])

    @cached_property
    def names(self):
        """The parameters of the kernel that move. A constant of exactly 0 is a choice: it has no logarithm."""
        return tuple(name for name in self.kernel.differentiable if np.any(getattr(self.kernel, name)))

    def _in_groups(self, name):
        """Whether the parameter has a value for each group."""
        return self.groups is not None and name == self.kernel.per_feature

    @property
    def n_scales(self):
        """Number of groups; 1 without."""
        return 1 if self.groups is None else int(self.groups.max()) + 1

    def sizes(self):
        """Number of values of alpha and of every parameter of the kernel."""
        return [self.n_alphas, *(self.n_scales if self._in_groups(name) else 1 for name in self.names)]

    @property
    def scales(self):
        """Positions of the parameter that may hold one value for each feature."""
        name = self.kernel.per_feature
        if name not in self.names:
            return slice(0, 0)
        start = int(np.sum(self.sizes()[: 1 + self.names.index(name)]))
        return slice(start, start + self.n_scales)

    def pack(self, alphas, kernel):
        """The vector of a setting; scales that one group shares start at their geometric mean."""
        parts = [np.log(np.broadcast_to(alphas, self.n_alphas))]
        for name in self.names:
            logs = np.log(np.maximum(getattr(kernel, name), np.finfo(float).tiny))
            if self._in_groups(name):
                logs = np.bincount(self.groups, np.broadcast_to(logs, self.groups.shape)) / np.bincount(self.groups)
                parts.append(logs)
            else:
                parts.append(np.atleast_1d(np.mean(logs)))
        return np.concatenate(parts)

    def unpack(self, x):
        """(alphas, kernel) of a vector."""
        alphas, *values = np.split(np.exp(x), np.cumsum(self.sizes())[:-1])
        parameters = {}
        for name, value in zip(self.names, values, strict=True):
            parameters[name] = value[self.groups] if self._in_groups(name) else float(value[0])
        return alphas, replace(self.kernel, **parameters) if parameters else self.kernel

    def chain(self, x, by_alpha, by_kernel):
        """Derivatives by the vector, from those by the alphas and by the kernel's parameters."""
        parts = [np.asarray(by_alpha, float)]
        for name in self.names:
            slope = np.asarray(by_kernel[name], float)
            if self._in_groups(name):
                parts.append(np.bincount(self.groups, slope, self.n_scales))
            else:
                parts.append(np.atleast_1d(slope.sum()))
        return np.concatenate(parts) * np.exp(x)

    def bounds(self, limits):
        """One pair of logarithms for every entry, from {name: (low, high)}."""
        pairs = [np.log(limits[name]) for name in ("alpha", *self.names)]
        return [tuple(pair) for pair, size in zip(pairs, self.sizes(), strict=True) for _ in range(size)]


def alpha_unit(problem):
    """Mean of the diagonal of S: the unit of alpha."""
    return problem.penalty.mean_diagonal(problem) or 1.0


def default_limits(problem):
    """{parameter: (low, high)} for continuous searches that start at this problem."""
    unit = alpha_unit(problem)
    return {"alpha": (1e-8 * unit, 1e6 * unit), **problem.kernel.limits()}
