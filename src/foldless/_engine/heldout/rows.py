"""Rows that are equal, and share their scores.

A model gives equal rows equal scores. Held-out scores follow from the targets of the rows, Y - E, and come out equal up
to rounding only; a metric that ranks would let the rounding decide, and rounding knows the targets. Rows that are equal
therefore share the score of the first of them.
"""

from functools import lru_cache

import numpy as np
import scipy.sparse as sp

from foldless._engine.linalg import to_host


def equal_rows(*tables):
    """Numbers (n,) that rows share if they are equal in all tables (arrays or sparse matrices); None if all differ.

    The number is that of the first of the rows.
    """
    if not isinstance(tables[0], np.ndarray):
        tables = tuple(map(to_host, tables))
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
    first_of: dict[tuple, np.integer] = {}
    for row in rows[~equal]:  # different rows with one sum
        numbers[row] = first_of.setdefault(tuple(_contents(table, row) for table in canonical), row)
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
    entries = slice(table.indptr[row], table.indptr[row + 1])
    return table.indices[entries].tobytes(), table.data[entries].tobytes()
