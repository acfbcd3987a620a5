"""The functions of the array API standard that the engine takes, for arrays of NumPy.

They are those of NumPy by their standard names, which old versions of NumPy lack. Reductions are methods of arrays:
these take a microsecond less than NumPy's functions, and small problems have many of them.
"""

from numpy import (
    abs,
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
    logical_not,
    maximum,
    minimum,
    ndarray,
    ones_like,
    sin,
    sort,
    sqrt,
    square,
    stack,
    tanh,
    where,
    zeros_like,
)

__all__ = [
    "abs",
    "all",
    "any",
    "argmax",
    "argmin",
    "argsort",
    "broadcast_to",
    "clip",
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


all, any, max, mean = ndarray.all, ndarray.any, ndarray.max, ndarray.mean
min, std, sum = ndarray.min, ndarray.std, ndarray.sum
reshape, permute_dims = ndarray.reshape, ndarray.transpose


def matrix_transpose(A):
    """A with its last two axes exchanged."""
    return A.swapaxes(-1, -2)
