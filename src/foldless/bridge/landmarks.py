"""When a search has a number of landmarks to find: where it is asked to, and where an exact kernel would be too much.

``n_landmarks="auto"`` asks. Where the exact kernel matrix does not fit into memory, landmarks take its place, with a
warning. So they do above ``MOST_SEARCHED`` rows in a search that is told neither where to look nor how long it may
take. A grid that names ``n_landmarks`` or ``approximation`` is looked at as it is.
"""

from typing import Any

import numpy as np
from sklearn.utils.validation import _num_samples

from foldless.bridge.adapters import grid_names
from foldless.bridge.pipelines import split_steps
from foldless.estimators.approximate import fits_into_memory, needs_approximation
from foldless.estimators.checks import warn_caller
from foldless.kernels.registry import given_kernel
from foldless.linalg.memory import GIB, available_memory

MOST_SEARCHED = 25_000  # rows whose exact search takes about ten minutes of two cores; time grows with their cube


def landmarks_to_find(search, X):
    """Parameters of the approximation whose number of landmarks a search has to find; None where there is none."""
    last: Any = split_steps(search.estimator).last
    how = getattr(last, "approximation", "unknown")
    if how == "unknown" or grid_names(search, "n_landmarks"):
        return None
    asked = last.n_landmarks == "auto"
    if grid_names(search, "approximation"):
        if asked:
            raise ValueError("n_landmarks='auto' is for one approximation, and param_grid names some; give a number.")
        return None
    if how is None:
        return {"approximation": "nystroem"} if _too_much(search, last, X) else None
    if how == "auto":
        how = "nystroem" if needs_approximation(given_kernel(last), _num_samples(X), _itemsize(X)) else None
    return {"approximation": how} if asked and how is not None else None


def warn_of_landmarks(X):
    """Say that landmarks take the place of an exact kernel that nobody asked to approximate."""
    n, itemsize = _num_samples(X), _itemsize(X)
    why, instead = f"an exact search of more than {MOST_SEARCHED} takes long", " Give time_limit= to have it exact."
    if not fits_into_memory(n, itemsize):
        needed, free = n * n * itemsize / GIB, (available_memory() or 0) / GIB
        why, instead = f"an exact kernel matrix takes {needed:.0f} GiB and {free:.0f} GiB are free", ""
    warn_caller(
        f"{n} rows: {why}. The kernel is approximated by landmarks (approximation='nystroem'); results are exact for"
        f" that model.{instead}"
    )


def _too_much(search, last, X):
    """Whether the exact kernel of an estimator does not fit, or would take long and nobody said how long it may."""
    kernel, n = given_kernel(last), _num_samples(X)
    if not kernel.takes_rows or kernel.is_linear or kernel.approximates:
        return False
    told = search.method != "auto" or search.param_grid is not None or search.time_limit is not None
    return not fits_into_memory(n, _itemsize(X)) or (n > MOST_SEARCHED and not told)


def _itemsize(X):
    return 4 if getattr(X, "dtype", None) == np.float32 else 8
