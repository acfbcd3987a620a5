"""The functions of the array API standard that the engine takes, for arrays of NumPy.

They are those of NumPy by their standard names, which old versions of NumPy lack. Reductions are methods: these take a
microsecond less, and small problems have many of them.
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


def all(A, axis=None, keepdims=False):
    """Whether all entries are true."""
    return A.all(axis, keepdims=keepdims)


def any(A, axis=None, keepdims=False):
    """Whether an entry is true."""
    return A.any(axis, keepdims=keepdims)


def max(A, axis=None, keepdims=False):
    """The largest entry."""
    return A.max(axis, keepdims=keepdims)


def min(A, axis=None, keepdims=False):
    """The smallest entry."""
    return A.min(axis, keepdims=keepdims)


def sum(A, axis=None, keepdims=False):
    """The sum of the entries."""
    return A.sum(axis, keepdims=keepdims)


def mean(A, axis=None, keepdims=False):
    """The mean of the entries."""
    return A.mean(axis, keepdims=keepdims)


def std(A, axis=None, keepdims=False):
    """The standard deviation of the entries, divided by their number."""
    return A.std(axis, keepdims=keepdims)


def reshape(A, shape):
    """A in another shape."""
    return A.reshape(shape)


def permute_dims(A, axes):
    """A with its axes in another order."""
    return A.transpose(axes)


def matrix_transpose(A):
    """A with its last two axes exchanged."""
    return A.swapaxes(-1, -2)
