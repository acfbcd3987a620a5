"""Which code works on an array: the verbs of its kind, and the functions of the array API standard for it.

Arrays of NumPy, sparse matrices and numbers have the verbs of ``linalg.numpy``, tensors of torch those of
``linalg.torch``, which is imported with the first of them. Another kind of arrays joins by :func:`register`.
"""

from functools import wraps
from typing import Any, NamedTuple

import numpy as np

from foldless._engine.linalg import functions, memory
from foldless._engine.linalg import numpy as numpy_verbs
from foldless._engine.linalg.memory import GIB


class Kind(NamedTuple):
    """A kind of arrays: a module of verbs, and one of functions of the array API standard."""

    verbs: Any
    xp: Any


NUMPY = Kind(numpy_verbs, functions)
ROUNDING_UNITS = {8: 2.0**-52, 4: 2.0**-23}  # by bytes of a number
_kinds: dict[type, Kind] = {np.ndarray: NUMPY}


def register(array_type, verbs, functions):
    """Let arrays of this type have these verbs and functions."""
    _kinds[array_type] = Kind(verbs, functions)


def kind_of(A) -> Kind:
    """The kind of an array, or of the first of several."""
    while isinstance(A, list | tuple) and len(A):
        A = A[0]
    kind = _kinds.get(type(A))
    if kind is None:
        kind = _kinds[type(A)] = _torch() if type(A).__module__.partition(".")[0] == "torch" else NUMPY
    return kind


def is_tensor(A):
    """Whether A is an array of another kind than NumPy's. Lists, tables and sparse matrices are none."""
    return not isinstance(A, np.ndarray | list | tuple) and kind_of(A) is not NUMPY


def on_host(values):
    """Values as they are, arrays of other kinds as arrays of NumPy."""
    if isinstance(values, np.ndarray) or not is_tensor(values):
        return values
    return kind_of(values).verbs.to_host(values)


def _torch():
    try:
        from foldless._engine.linalg import torch as torch_verbs
    except ImportError as error:
        raise ImportError(f"tensors of torch need array-api-compat ({error}): pip install array-api-compat") from error
    return Kind(torch_verbs, torch_verbs.functions)


def namespace(A):
    """The functions of the array API standard for arrays of the kind of A."""
    return functions if type(A) is np.ndarray else kind_of(A).xp


def dispatched(name):
    """The verb of this name, of the kind of its first argument."""
    of_numpy = getattr(numpy_verbs, name)

    @wraps(of_numpy)
    def verb(A, *arguments, **options):
        if type(A) is np.ndarray:
            return of_numpy(A, *arguments, **options)
        return getattr(kind_of(A).verbs, name)(A, *arguments, **options)

    return verb


class FloatType(NamedTuple):
    """A type of floating-point numbers: rounding unit, smallest and largest normal number, bytes, and its name."""

    eps: float
    tiny: float
    largest: float
    itemsize: int
    name: str


_float_types: dict[tuple, FloatType] = {}


def float_type(A):
    """The :class:`FloatType` of the numbers of A."""
    key = type(A), A.dtype
    known = _float_types.get(key)
    if known is None:
        on_numpy = kind_of(A) is NUMPY
        info = np.finfo(A.dtype) if on_numpy else kind_of(A).xp.finfo(A.dtype)
        name = f"float{info.bits}"
        largest = info.max if on_numpy else float(info.max)  # a number of Python would be double precision in NumPy 1
        known = FloatType(float(info.eps), float(info.smallest_normal), largest, info.bits // 8, name)
        _float_types[key] = known
    return known


def host_dtype(A):
    """NumPy's type of the numbers of A."""
    return A.dtype if isinstance(A.dtype, np.dtype) else np.dtype(float_type(A).name)


def eps(A):
    """The rounding unit of the numbers of A."""
    return ROUNDING_UNITS[A.dtype.itemsize]


def tiny(A):
    """The smallest normal number of the precision of A."""
    return float_type(A).tiny


# -- memory ------------------------------------------------------------------------------------------------------------


def require_memory(shape, A, what, arrays=1.0):
    """Raise MemoryError before allocations that cannot succeed, with the amount and what would fit.

    ``arrays`` of this shape will be held at the same time, with the precision of A and where A lies. A may be a type of
    numbers as well, for arrays of NumPy.
    """
    if isinstance(A, np.ndarray):
        dtype, free = A.dtype, memory.available_memory()
    elif isinstance(A, type | np.dtype):
        dtype, free = np.dtype(A), memory.available_memory()
    else:
        dtype, free = host_dtype(A), kind_of(A).verbs.free_memory(A)
    needed = arrays * float(np.prod(shape, dtype=float)) * dtype.itemsize
    if free is None or needed <= free:
        return
    size = f"{arrays:.2g} arrays of " * (round(arrays, 1) > 1) + " x ".join(map(str, shape))
    raise MemoryError(
        f"{what} ({size}, {dtype.name}) needs {needed / GIB:.1f} GiB and {free / GIB:.1f} GiB are available."
        f" {_ways_out(shape, dtype, needed, free)}"
    )


def _ways_out(shape, dtype, needed, free):
    """What would fit, in words."""
    *_, n, columns = shape
    share = free / needed
    fewer = int(n * (np.sqrt(share) if n == columns else share))
    ways = [f"fewer rows (about {fewer} fit)"]
    if dtype == np.float64:
        ways.append(f"float32 input ({needed / 2 / GIB:.1f} GiB{', still too much' if share < 0.5 else ''})")
    features = int(free / (4 * n * dtype.itemsize))
    if n == columns and features:
        ways.append(
            f"explicit features, up to {features} of them (kernel=Nystroem(..., n_landmarks={min(500, features)}) of"
            " foldless.kernels)"
        )
    return f"Use {', or '.join(ways)}."
