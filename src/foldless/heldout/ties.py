"""Equal rows of a data set.

A model gives equal rows equal scores. Held-out scores follow from the targets of the rows, Y - E, and come out equal up
to rounding only; a metric that ranks would let the rounding decide, and rounding knows the targets. Rows that are equal
therefore share the score of the first of them.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp


@dataclass(frozen=True, eq=False)
class EqualRows:
    """Which rows of X, and of the columns ``more`` beside it, are equal; looked up when first asked for."""

    X: Any
    more: np.ndarray

    @cached_property
    def numbers(self):
        """Numbers that rows share whose scores are equal in any model; None where all differ."""
        return equal_rows(self.X, self.more) if self.more.shape[1] else equal_rows(self.X)


def equal_rows(*tables):
    """Numbers (n,) that rows share if they are equal in all tables (arrays or sparse matrices); None if all differ."""
    rows = [_canonical(table) for table in tables]
    sums = np.asarray(rows[0].sum(1)).ravel()  # equal rows are summed in the same order: only their sums can tie
    _, places, counts = np.unique(sums, return_inverse=True, return_counts=True)
    numbers = np.arange(len(sums))
    known: dict[tuple, np.integer] = {}
    for row in np.flatnonzero(counts[places] > 1):
        numbers[row] = known.setdefault(tuple(_contents(table, row) for table in rows), row)
    return numbers if (numbers != np.arange(len(sums))).any() else None


def first_equal(numbers):
    """Place of the first of the equal ones for each of these numbers; None where all differ."""
    values, first, places = np.unique(numbers, return_index=True, return_inverse=True)
    return None if len(values) == len(numbers) else first[places]


def _canonical(table):
    """One way to write each row: sorted indices without zeros, and no -0.0."""
    if not sp.issparse(table):
        return np.ascontiguousarray(table) + 0.0
    table = sp.csr_array(table, copy=True)
    table.sum_duplicates()
    table.eliminate_zeros()
    return table


def _contents(table, row):
    if not sp.issparse(table):
        return table[row].tobytes()
    own = slice(table.indptr[row], table.indptr[row + 1])
    return table.indices[own].tobytes(), table.data[own].tobytes()
