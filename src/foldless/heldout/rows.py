"""Rows of data as a kernel sees them: Gram matrices, explicit features where the kernel has them, and equal rows.

Features are evaluated once for all rows. Where their mean is taken out (``shift``), Gram matrices are those of the
centred features.

A model gives equal rows equal scores. Held-out scores follow from the targets of the rows, Y - E, and come out equal up
to rounding only; a metric that ranks would let the rounding decide, and rounding knows the targets. Rows that are equal
therefore share the score of the first of them.
"""

from dataclasses import FrozenInstanceError
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.extmath import row_norms

from foldless.kernels.base import dot, gram_of_all
from foldless.linalg.memory import require_memory


class Frozen:
    """An object whose fields are set once; others follow from it by ``changed``."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...  # fields, described by the classes

    @classmethod
    def of(cls, **fields: Any) -> Self:
        self = object.__new__(cls)
        vars(self).update(fields)
        return self

    def changed(self, **fields: Any) -> Self:
        """The same with other fields; all that was computed stays."""
        return self.of(**{**vars(self), **fields})

    def __setattr__(self, name, value):
        raise FrozenInstanceError(f"{type(self).__name__} is frozen: {name} cannot be set")


class Lazy:
    """``function(*arguments)``, computed when first asked for, once for all problems that share it."""

    def __init__(self, function, *arguments):
        self.function, self.arguments = function, arguments

    @cached_property
    def value(self):
        return self.function(*self.arguments)


class KernelRows(Frozen):
    """What a problem knows of its n rows X through the kernel; ``dtype`` is that of X, and of all that is computed.

    ``table`` holds the features of all rows, ``shift`` is their mean where that is taken out, else None.
    """

    @property
    def has_features(self):
        return self.kernel.n_features(self.X) is not None

    def data(self, rows):
        return self._taken(self.X, rows)

    def _taken(self, table, rows):
        return table if len(rows) == self.n and np.array_equal(rows, np.arange(self.n)) else table[rows]

    def features(self, rows, *, dense=True):
        """Explicit features of these rows; as they are, perhaps sparse, unless ``dense``."""
        if self.kernel.approximates and 2 * len(rows) < self.n and "value" not in vars(self.table):
            return self._centred(self.kernel.features(self.data(rows)), dense)  # others may never be asked for
        return self._centred(self._taken(self.table.value, rows), dense)

    def features_new(self, X, *, dense=True):
        """Explicit features of new rows X, as those of the training rows."""
        return self._centred(self.kernel.features(X), dense)

    def _centred(self, values, dense):
        if sp.issparse(values) and (dense or self.shift is not None):
            require_memory(values.shape, self.dtype, "the features as a dense array")
            values = values.toarray()
        return values if self.shift is None else values - self.shift

    def gram(self, rows, columns, *, check=True):
        """K[rows, columns]; ``check`` whether there is memory for it."""
        if not (len(rows) and len(columns)):  # kernels need not know what they make of no rows
            return np.zeros((len(rows), len(columns)), self.dtype)
        if not self.kernel.takes_rows:
            return self.kernel.block(self.X, rows, columns)
        if check:
            features_too = self.kernel.squares_condition and "value" not in vars(self.table)
            require_memory((len(rows), len(columns)), self.dtype, "the kernel matrix", 1 + features_too)
        if self.has_features:
            values = self.features(rows, dense=False)
            return dot(values, values if rows is columns else self.features(columns, dense=False))
        if rows is columns:
            return gram_of_all(self.kernel, self.data(rows))
        return self.kernel.gram(self.data(rows), self.data(columns))

    def gram_of_new(self, rows, new):
        """Kernel between ``rows`` and the rows ``new``, and among the latter, symmetric."""
        both = self.gram(new, np.concatenate([rows, new]), check=False)
        own = both[:, len(rows) :]
        return both[:, : len(rows)].T, (own + own.T) / 2

    def diag_new(self, X):
        """k(x, x) of new rows X."""
        return self.kernel.diag(X) if self.shift is None else row_norms(self.features_new(X), squared=True)

    def gram_new(self, X, rows):
        """Kernel between new rows X and these rows."""
        if not self.kernel.takes_rows:
            return self.kernel.against(X, self.X, rows)
        if not self.has_features:
            return self.kernel.gram(X, self.data(rows))
        return dot(self.features_new(X, dense=False), self.features(rows, dense=False))


def equal_rows(*tables):
    """Numbers (n,) that rows share if they are equal in all tables (arrays or sparse matrices); None if all differ.

    The number is that of the first of the rows.
    """
    sums = _row_sums(tables[0])
    numbers, order = np.arange(len(sums)), np.argsort(sums)
    begins = np.flatnonzero(np.concatenate([[True], sums[order[1:]] != sums[order[:-1]]]))
    if len(begins) == len(sums):
        return None
    # Equal rows have equal sums: rows of one sum are compared with the first of them.
    first = np.empty(len(sums), int)
    first[order] = np.repeat(np.minimum.reduceat(order, begins), np.diff(begins, append=len(sums)))
    rows, canonical = np.flatnonzero(first != numbers), [_canonical(table) for table in tables]
    equal = np.logical_and.reduce([_equal(table, rows, first[rows]) for table in canonical])
    numbers[rows[equal]] = first[rows[equal]]
    known: dict[tuple, np.integer] = {}
    for row in rows[~equal]:  # different rows with one sum
        numbers[row] = known.setdefault(tuple(_contents(table, row) for table in canonical), row)
    return numbers if (numbers != np.arange(len(sums))).any() else None


def tied(values, *tables):
    """Values (n, ...) of rows with those of equal rows made equal; products of matrices round them by their places."""
    numbers = equal_rows(*tables) if len(values) > 1 else None
    return values if numbers is None else values[numbers]


def _row_sums(table):
    """Sums (n,) of each row times fixed numbers, added up in the same order in every row."""
    numbers = _row_weights(table.shape[1], table.dtype)
    return _canonical(table) @ numbers if sp.issparse(table) else np.einsum("ij,j->i", table, numbers)


@lru_cache(maxsize=16)
def _row_weights(n, dtype):
    return np.sin(np.arange(1, n + 1)).astype(dtype)


def _canonical(table):
    """One way to write each row: sorted indices without zeros."""
    if not sp.issparse(table):
        return np.ascontiguousarray(table)
    if table.format == "csr" and table.has_canonical_format and table.data.all():
        return table
    table = sp.csr_array(table, copy=True)
    table.sum_duplicates()
    table.eliminate_zeros()
    return table


def _equal(table, rows, others):
    """Whether these rows equal these others, one by one."""
    if not sp.issparse(table):
        return (table[rows] == table[others]).all(1)
    different = (table[rows] != table[others]).sum(1)
    return np.asarray(different).ravel() == 0


def _contents(table, row):
    if not sp.issparse(table):
        return (table[row] + 0.0).tobytes()  # -0.0 is 0.0
    own = slice(table.indptr[row], table.indptr[row + 1])
    return table.indices[own].tobytes(), table.data[own].tobytes()
