"""The kinds of arrays that the engine works on, each with a precision: NumPy, the array API standard, and torch.

Arrays of ``array_api_strict`` allow nothing but what the standard knows, and what all kinds of arrays have besides
(:func:`loosened`). Their verbs are those of NumPy on the arrays inside.
"""

from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from foldless._engine import linalg
from foldless._engine.linalg import numpy as numpy_verbs

KINDS = ["numpy", "array_api_strict", "torch"]
RTOL = {"float64": 1e-8, "float32": 2e-3}


def _inside(value):
    """Values with NumPy's arrays in the place of strict ones."""
    if isinstance(value, tuple | list):
        return type(value)(map(_inside, value))
    return value._array if hasattr(value, "_array") else value


def _strict(value):
    """Values with strict arrays in the place of NumPy's."""
    import array_api_strict

    if isinstance(value, tuple):
        return tuple(map(_strict, value))
    if isinstance(value, np.generic):
        return array_api_strict.asarray(np.array(value))
    return array_api_strict.asarray(value, copy=False) if isinstance(value, np.ndarray) else value


def _strict_verb(name):
    verb = getattr(numpy_verbs, name)

    def strict_verb(*arguments, **options):
        result = verb(*map(_inside, arguments), **{key: _inside(value) for key, value in options.items()})
        return result if name in ("to_host", "free_memory") else _strict(result)

    return strict_verb


@cache
def register_strict():
    """Let the engine work on arrays of ``array_api_strict``."""
    import array_api_strict

    verbs = {name: _strict_verb(name) for name in numpy_verbs.__all__}
    strict_type = loosened(type(array_api_strict.zeros(1)))
    linalg.register(strict_type, SimpleNamespace(**verbs), array_api_strict)


def loosened(strict_type):
    """The type with a length, bytes of a number, indices of some axes, and row numbers of NumPy for the first axis."""
    strict_getitem = strict_type.__getitem__

    def getitem(A, index):
        places = index if isinstance(index, tuple) else (index,)
        if any(isinstance(place, strict_type) for place in places):
            return strict_getitem(A, index)
        if any(isinstance(place, np.ndarray | list) for place in places[1:]):
            raise IndexError("row numbers are for the first axis alone; verbs take those of other axes")
        return strict_type._new(np.asarray(A._array[index]), device=A.device)

    strict_type.__getitem__ = getitem
    strict_type.__len__ = lambda A: A.shape[0]
    type(strict_type._new(np.zeros(1), device=None).dtype).itemsize = property(lambda dtype: dtype._np_dtype.itemsize)
    return strict_type


@dataclass(frozen=True)
class Arrays:
    """A kind of arrays and a precision."""

    kind: str
    dtype: str
    device: str = "cpu"

    def __str__(self):
        return f"{self.kind} {self.dtype}" + (f" {self.device}" if self.device != "cpu" else "")

    @classmethod
    def of(cls, kind, dtype="float64"):
        """This kind of arrays, if its library is installed."""
        if find_spec(kind) is None or (kind == "torch" and find_spec("array_api_compat") is None):
            pytest.skip(f"{kind} is not installed")
        if kind == "array_api_strict":
            register_strict()
        return cls(kind, dtype, default_device() if kind == "torch" else "cpu")

    def __call__(self, values) -> Any:
        """Values as a new array of this kind and precision, in the same order in memory."""
        values = np.array(values, self.dtype)
        if self.kind == "numpy":
            return values
        if self.kind == "array_api_strict":
            return _strict(values)
        import torch

        return torch.from_numpy(values).to(self.device)

    def are(self, A):
        """Whether A is an array of this kind and precision."""
        own = self(0.0)
        return type(A) is type(own) and A.dtype == own.dtype and (self.kind != "torch" or A.device == own.device)

    @property
    def rtol(self):
        """Relative differences to results in double precision that tests allow."""
        return RTOL[self.dtype]


def default_device():
    """The device of tensors: a graphics card where there is one."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


ALL = [("numpy", "float64"), ("array_api_strict", "float64"), ("torch", "float64"), ("torch", "float32")]
