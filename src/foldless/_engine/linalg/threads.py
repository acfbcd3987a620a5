"""Threads of the BLAS: one for small problems, all of them for large ones.

Products of small matrices are many and short. Threads that wait for each other make them slower, a little on an idle
machine, and ten times and more on a busy one or one of many cores. The number of threads belongs to the whole process:
the first block sets it and the last one restores it, so that calls may be nested, or be made from several threads of
Python. Blocks are counted by their objects: one that an interrupt has kept from being left goes with its object.

Factorisations of some hundred rows take up to a third less time with two threads, but only where processors are idle,
and many threads are slower than one. Linux tells how many tasks run; other systems keep to the size of the problem.
"""

import inspect
import math
import os
import time
from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from functools import cache, wraps
from pathlib import Path
from threading import RLock, get_ident
from typing import Any, TypeVar
from weakref import ref

from joblib import delayed
from threadpoolctl import ThreadpoolController

__all__ = ["jobs_as_here", "n_threads", "one_thread", "threads_by_size", "threads_for", "two_threads_where_idle"]

SMALL = 1500.0**3  # multiplications: of 1500 rows, about where 16 threads, or 2 on a busy machine, begin to pay

LOOK_AGAIN = 0.1  # seconds for which the number of running tasks is taken for known

Function = TypeVar("Function", bound=Callable)


@cache
def _libraries():
    """The BLAS of NumPy and SciPy; to look for them takes longer than a small fit."""
    return ThreadpoolController().select(user_api="blas").lib_controllers


_lock = RLock()
_blocks: dict[int, ref] = {}  # those that were entered and not left, by id
_callers: dict[int, int] = {}  # the Python thread of every block, by the id of the block
_threads_before: dict[Any, int] = {}  # of each library, while there are blocks


class one_thread:
    """A block in which the BLAS works with one thread."""

    def __enter__(self):
        key = id(self)
        with _lock:
            first = not _blocks
            _blocks[key] = ref(self, lambda _: _leave(key))  # called only for a block that was not left
            _callers[key] = get_ident()
            if first:
                for library in _libraries():
                    _threads_before[library] = library.num_threads
                for library in _threads_before:
                    library.set_num_threads(1)

    def __exit__(self, *error):
        _leave(id(self))


def _leave(key):
    with _lock:
        if _blocks.keys() == {key}:
            for library, number in _threads_before.items():
                library.set_num_threads(number)
            _threads_before.clear()
        _callers.pop(key, None)
        _blocks.pop(key, None)  # after all else: what an interrupt leaves undone is done when the block is gone


def n_threads():
    """How many threads the BLAS works with at present."""
    return max((library.num_threads for library in _libraries()), default=1)


def two_threads_where_idle(n_rows, least):
    """Inside :class:`one_thread`, a block with two threads for a factorisation of at least ``least`` rows.

    One thread is kept where other tasks need the processors, another Python thread computes, or the caller has one.
    """
    if n_rows < least or not _blocks or len(set(_callers.values())) > 1 or not _processors_are_idle():
        return nullcontext()
    return _two_threads()


@contextmanager
def _two_threads():
    for library, number in _threads_before.items():
        library.set_num_threads(min(number, 2))
    try:
        yield
    finally:
        with _lock:
            for library in _threads_before:
                library.set_num_threads(1)


class _LastLook:
    """When running tasks were counted last, and whether processors were idle."""

    time = -math.inf
    idle = False


def _processors_are_idle():
    """Whether the tasks of other programs leave two processors."""
    now = time.monotonic()
    if now - _LastLook.time > LOOK_AGAIN:
        processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
        _LastLook.idle = processors - _running_elsewhere() >= 2
        _LastLook.time = now
    return _LastLook.idle


def _running_elsewhere():
    """The number of running tasks of other programs; infinite where the system does not tell."""
    try:
        running = int(Path("/proc/loadavg").read_text().split()[3].partition("/")[0])
        ours = sum(_state(task) == "R" for task in Path("/proc/self/task").iterdir())
    except (OSError, ValueError, IndexError):
        return math.inf
    return max(running - ours, 0)


def _state(task):
    """The letter of the state of a task of this process, such as "R" for running."""
    return (task / "stat").read_text().rpartition(")")[2].split()[0]


def threads_for(n_rows, n_columns=0):
    """A block in which the BLAS works with one thread if a kernel matrix of so many rows, and its factor, are small."""
    return one_thread() if n_rows * n_rows * (n_rows + n_columns) <= SMALL else nullcontext()


def threads_by_size(function: Function) -> Function:
    """Let a function of an estimator, or a method, have the threads for its rows X, or for those of its model."""
    names = list(inspect.signature(function).parameters)
    place = names.index("X") if "X" in names else len(names)

    @wraps(function)
    def limited(*args, **options):
        X = args[place] if place < len(args) else options.get("X", ())
        shapes = _shape(X), _shape(getattr(args[0], "X_fit_", ()) if args else ())
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
    return (delayed(_alone)(*job) for job in jobs) if _blocks else jobs


def _alone(function, args, options):
    with one_thread():
        return function(*args, **options)
