"""Threads of the BLAS: one for small problems, all of them for large ones.

Products of small matrices are many and short. Threads that wait for each other make them slower, a little on an idle
machine, and ten times and more on a busy one or one of many cores. The number of threads belongs to the whole process:
whoever comes first sets it, and whoever leaves last restores it, so that calls may be nested, or be made from several
threads of Python.
"""

import inspect
import math
from collections.abc import Callable
from contextlib import nullcontext
from functools import cache, wraps
from threading import RLock
from typing import Any, TypeVar

from joblib import delayed
from threadpoolctl import ThreadpoolController

__all__ = ["jobs_as_here", "one_thread", "threads_by_size", "threads_for"]

SMALL = 1500.0**3  # multiplications: of 1500 rows, about where 16 threads, or 2 on a busy machine, begin to pay

Function = TypeVar("Function", bound=Callable)


@cache
def _libraries():
    """Those of NumPy and SciPy; to look for them takes longer than a small fit."""
    return ThreadpoolController()


class _OneThread:
    """A block in which the BLAS works with one thread."""

    def __init__(self):
        self.inside = 0
        self._lock = RLock()
        self._limit: Any = None

    def __enter__(self):
        with self._lock:
            if self._limit is None:
                self._limit = _libraries().limit(limits=1, user_api="blas")
            self.inside += 1

    def __exit__(self, *error):
        with self._lock:
            self.inside -= 1
            if not self.inside:
                self._limit.restore_original_limits()
                self._limit = None


one_thread = _OneThread()


def threads_for(n_rows, n_columns=0):
    """A block in which the BLAS works with one thread if a kernel matrix of so many rows, and its factor, are small."""
    return one_thread if n_rows * n_rows * (n_rows + n_columns) <= SMALL else nullcontext()


def threads_by_size(function: Function) -> Function:
    """Let a function of an estimator, or a method, have the threads for its rows X, or for those of its model."""
    names = list(inspect.signature(function).parameters)
    place = names.index("X") if "X" in names else len(names)

    @wraps(function)
    def limited(*args, **options):
        given = args[place] if place < len(args) else options.get("X", ())
        shapes = _shape(given), _shape(getattr(args[0], "X_fit_", ()) if args else ())
        with threads_for(*max(shapes)):
            return function(*args, **options)

    return limited  # type: ignore[return-value]


def _shape(X: Any):
    """(rows, columns) as far as they can be told without reading, else very many; of a family, those of the first."""
    if isinstance(X, list | tuple) and len(X) and len(getattr(X[0], "shape", ())) > 1:
        X = X[0]
    if hasattr(X, "shape"):
        return (*X.shape, 0, 0)[:2]
    return (len(X) if hasattr(X, "__len__") else math.inf), 0


def jobs_as_here(jobs):
    """joblib's ``jobs``, with one thread each where that is so here: other processes do not know."""
    return (delayed(_alone)(*job) for job in jobs) if one_thread.inside else jobs


def _alone(function, args, options):
    with one_thread:
        return function(*args, **options)
