"""A second kind of arrays: NumPy's, of which the engine may ask for nothing but verbs and operations of the array API.

A :class:`StrictArray` notes what code of the engine's rooms does with it that the array API standard (2024.12) does not
know: functions and attributes of NumPy's own, ``out=``, assignment to entries, operators in place. Verbs of ``linalg``
take strict arrays and give them back (:func:`strict_verbs`); inside a verb anything may happen, and inside NumPy,
SciPy and scikit-learn. Methods count as the functions of the same name.
"""

import sys
from types import SimpleNamespace

import numpy as np

from foldless._engine import linalg
from foldless._engine.linalg import functions
from foldless._engine.linalg import numpy as numpy_verbs

ROOMS = ("heldout", "online", "permutation", "precision", "readout")
MODULES = tuple(f"foldless._engine.{room}." for room in ROOMS)
FUNCTIONS = """
all any argmax argmin argsort astype broadcast_arrays broadcast_to clip concat concatenate copy count_nonzero
cumulative_sum diagonal diff empty_like expand_dims flip full_like isfinite matmul max mean min moveaxis nonzero
ones_like prod repeat reshape roll round searchsorted sort squeeze stack std sum swapaxes take take_along_axis tensordot
tile trace transpose tril triu unique_inverse var vecdot where zeros_like
"""
ATTRIBUTES = {*FUNCTIONS.split(), "T", "mT", "dtype", "ndim", "shape", "size", "device"}

asked: list[str] = []  # what the engine asked for, since it was cleared
forbidden: list[str] = []  # of these, what the array API does not know


def in_engine():
    """The line of the engine that an operation comes from, or None."""
    frame = sys._getframe(2)
    name = frame.f_globals.get("__name__", "")
    if name.startswith(MODULES):
        return f"{name}, line {frame.f_lineno}"
    return None


def note(place, operation, *, allowed):
    """Remember an operation of the engine."""
    if place is not None:
        asked.append(operation)
        if not allowed:
            forbidden.append(f"{place}: {operation}")


def plain(value):
    """Values with NumPy's own arrays in the place of strict ones."""
    if isinstance(value, StrictArray):
        return value.view(np.ndarray)
    if isinstance(value, tuple | list):
        return type(value)(map(plain, value)) if type(value) in (tuple, list) else value
    return value


def strict(value):
    """Values with strict arrays in the place of NumPy's arrays of numbers."""
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return value.view(StrictArray)
    return tuple(map(strict, value)) if type(value) is tuple else value


class StrictArray(np.ndarray):
    """An array of NumPy that notes what is asked of it."""

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
        in_place = out is not None
        note(
            in_engine(), f"{ufunc.__name__}.{method}{' in place' * in_place}", allowed=self._is_known(method, in_place)
        )
        if in_place:
            options["out"] = plain(out)
        return strict(getattr(ufunc, method)(*map(plain, inputs), **options))

    @staticmethod
    def _is_known(method, in_place):
        return method in ("__call__", "reduce") and not in_place

    def __array_function__(self, function, types, arguments, options):
        name = function.__name__
        note(in_engine(), f"numpy.{name}", allowed=name in FUNCTIONS.split() and "out" not in options)
        return strict(super().__array_function__(function, types, arguments, options))

    def __getattribute__(self, name):
        if not name.startswith("_") and name != "view":
            note(in_engine(), f".{name}", allowed=name in ATTRIBUTES)
        return super().__getattribute__(name)

    def __getitem__(self, places):
        parts = places if isinstance(places, tuple) else (places,)
        arrays = [part for part in parts if isinstance(part, np.ndarray | list)]
        allowed = len(arrays) < 2 or (len(arrays) == len(parts) and all(np.ndim(part) == 1 for part in arrays))
        note(in_engine(), "[...]" if allowed else "[arrays and slices]", allowed=allowed)
        return super().__getitem__(places)

    def __setitem__(self, places, values):
        note(in_engine(), "[...] = ", allowed=False)
        super().__setitem__(places, values)


def strict_verbs():
    """Let the verbs that the engine takes from ``linalg`` take strict arrays, and give them back."""

    def wrapped(verb):
        def strict_verb(*arguments, **options):
            return strict(verb(*map(plain, arguments), **{name: plain(value) for name, value in options.items()}))

        return strict_verb

    verbs = {name: wrapped(getattr(numpy_verbs, name)) for name in numpy_verbs.__all__}
    linalg.register(StrictArray, SimpleNamespace(**verbs), functions)
