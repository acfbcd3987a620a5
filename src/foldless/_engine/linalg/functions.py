"""The functions of the array API standard that the engine takes, for arrays of NumPy.

They are those of NumPy by their standard names, which old versions of NumPy lack. Reductions are those of ufuncs: these
take a microsecond less than NumPy's functions, and small problems have many of them.
"""

from functools import partial
from operator import methodcaller

from numpy import (
    abs,
    add,
    argmax,
    argmin,
    argsort,
    broadcast_to,
    clip,
    cos,
    count_nonzero,
    empty_like,
    exp,
    flip,
    full_like,
    isfinite,
    isnan,
    log,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    mean,
    minimum,
    ndarray,
    ones_like,
    sin,
    sort,
    sqrt,
    square,
    stack,
    std,
    tanh,
    where,
    zeros_like,
)
from numpy import concatenate as concat

__all__ = [
    "abs",
    "all",
    "any",
    "argmax",
    "argmin",
    "argsort",
    "broadcast_to",
    "clip",
    "concat",
    "cos",
    "count_nonzero",
    "empty_like",
    "exp",
    "flip",
    "full_like",
    "isfinite",
    "isnan",
    "log",
    "logical_not",
    "matrix_transpose",
    "max",
    "maximum",
    "mean",
    "min",
    "minimum",
    "ones_like",
    "permute_dims",
    "reshape",
    "sin",
    "sort",
    "sqrt",
    "square",
    "stack",
    "std",
    "sum",
    "tanh",
    "where",
    "zeros_like",
]


all, any, max, min, sum = (
    partial(ufunc.reduce, axis=None) for ufunc in (logical_and, logical_or, maximum, minimum, add)
)
reshape, permute_dims, matrix_transpose = ndarray.reshape, ndarray.transpose, methodcaller("swapaxes", -1, -2)
