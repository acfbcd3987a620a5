"""Whether a search finds a number of landmarks: :func:`landmarks_to_find` alone decides, for all searches.

    kernel=Nystroem(..., n_landmarks="auto")    the search finds the number, of RandomFeatures as well
    kernel=Nystroem("auto", ...)                the kernel is learnt on ``LEARNT_ON`` rows, then approximated
    an exact kernel                             the search takes landmarks by itself and finds their number where two
                                                n x n matrices do not fit into memory, and above ``MOST_SEARCHED`` rows
                                                if neither a grid, a method nor a time limit is given

Studies of tables (``foldless.tables``) repeat their search in outer folds. Above ``MOST_REPEATED`` rows they take
``Nystroem(kernel)`` with its default number of landmarks: finding a number takes several times as long as the exact
search of so many rows.

A kernel that is linear or precomputed stays as it is, and a grid that names numbers of landmarks is looked at as it is.
A fit never takes landmarks by itself. How the number is found: ``model_selection._landmark_search``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import _num_samples

from foldless._engine.linalg.memory import GIB, available_memory
from foldless._engine.tuning.spec import optimizer_of
from foldless._sklearn.adapters import FOLDLESS_ESTIMATORS, grid_names, learns_kernel
from foldless._sklearn.pipelines import split_steps
from foldless.kernels.approximations import Nystroem
from foldless.kernels.registry import build, is_automatic, is_object

MOST_SEARCHED = 25_000  # rows whose exact search takes about ten minutes of two cores
MOST_REPEATED = 6000  # rows of exact searches that outer folds repeat: with more a time limit of a minute is not kept
LEARNT_ON = 4000  # rows that an approximated kernel="auto" is learnt on


@dataclass(frozen=True)
class LandmarksToFind:
    """What a search does to find a number of landmarks: with every number it is another search."""

    search: Any
    kernel: Any  # one whose number of landmarks is to be found
    reason: str = ""  # why landmarks take the place of an exact kernel; empty where the kernel has them already

    @property
    def prefix(self):
        """What stands in front of the names of the estimator's parameters."""
        return split_steps(self.search.estimator).prefix

    @property
    def learns_kernel(self):
        """Whether the kernel is learnt before it is approximated."""
        return is_automatic(self.kernel.kernel)

    def with_exact_kernel(self):
        """The search of the kernel itself, without landmarks."""
        params = {self.prefix + "kernel": self.kernel.kernel}
        return clone(self.search).set_params(estimator=clone(self.search.estimator).set_params(**params))

    def learnt(self, params):
        """The same for a search of an estimator with these learnt parameters, an exact kernel among them."""
        kernel = replace(self.kernel, kernel=params[self.prefix + "kernel"])
        estimator = clone(self.search.estimator).set_params(**{**params, self.prefix + "kernel": kernel})
        return replace(self, search=clone(self.search).set_params(estimator=estimator), kernel=kernel)

    @property
    def _original(self):
        """The kernel of the estimator, as the caller set it."""
        return split_steps(self.search.estimator).last.kernel

    def params(self, count):
        """Parameters by which the estimator has so many landmarks, for settings that name no kernel."""
        if _finds_number(self._original):
            return {self.prefix + "kernel__n_landmarks": count}
        kernel = self._with_number(self._original, count)
        return {} if kernel is self._original else {self.prefix + "kernel": kernel}

    def with_number(self, count):
        """The search with so many landmarks."""
        name, search = self.prefix + "kernel", clone(self.search)
        kernel = self._with_number(self._original, count)
        search.set_params(estimator=clone(self.search.estimator).set_params(**{name: kernel}))
        if not grid_names(search, "kernel"):
            return search
        grids = [dict(grid) for grid in _grids(search)]
        for grid in grids:
            if name in grid:
                grid[name] = [self._with_number(value, count) for value in grid[name]]
        return search.set_params(param_grid=grids)

    def _with_number(self, kernel, count):
        """A kernel with so many landmarks, where their number is to be found."""
        if _finds_number(kernel):
            return kernel.changed(n_landmarks=count)
        return Nystroem(kernel, count) if self.reason and _is_replaceable(kernel) else kernel


def landmarks_to_find(search, X):
    """The :class:`LandmarksToFind` of a search of the rows X; None where it finds no number."""
    last: Any = split_steps(search.estimator).last
    if not isinstance(last, FOLDLESS_ESTIMATORS) or grid_names(search, "kernel__n_landmarks"):
        return None
    name = split_steps(search.estimator).prefix + "kernel"
    kernels = [kernel for grid in _grids(search) for kernel in grid.get(name, [last.kernel])]
    to_find = [kernel for kernel in kernels if _finds_number(kernel)]
    if learns_kernel(search) and is_object(last.kernel):
        to_find = [last.kernel]
    if to_find:
        return LandmarksToFind(search, to_find[0])
    unlimited = optimizer_of(search).method == "auto" and search.param_grid is None and search.time_limit is None
    itemsize = 4 if getattr(X, "dtype", None) == np.float32 else 8
    reason = _reason(_num_samples(X), itemsize, unlimited=unlimited)
    replaceable = [kernel for kernel in kernels if reason and _is_replaceable(kernel)]
    return LandmarksToFind(search, Nystroem(replaceable[0], "auto"), reason) if replaceable else None


def _reason(n, itemsize, *, unlimited):
    """Why a search of n rows does not take an exact kernel; empty where it does."""
    free = available_memory()
    if free is not None and 2 * n * n * itemsize > free:  # the Gram matrix and one more of its size
        return f"an exact kernel matrix takes {n * n * itemsize / GIB:.0f} GiB and {free / GIB:.0f} GiB are free"
    if unlimited and n > MOST_SEARCHED:
        return f"an exact search of more than {MOST_SEARCHED} takes long, which time_limit= allows"
    return ""


def _grids(search):
    """The grids of a search as a list of dictionaries."""
    return [search.param_grid] if isinstance(search.param_grid, Mapping) else search.param_grid or [{}]


def _finds_number(kernel):
    """Whether a kernel, as estimators take it, leaves its number of landmarks to a search."""
    count = getattr(kernel, "n_landmarks", None) if is_object(kernel) else None
    return isinstance(count, str) and count == "auto"


def _is_replaceable(kernel):
    """Whether landmarks may take the place of a kernel, as estimators take it."""
    exact = build(kernel, gamma="scale", degree=3, coef0=1.0)
    return exact.takes_rows and not exact.is_linear and not exact.approximates
