"""Chunks become checked rows, small ones put together, so that products are large enough to be quick.

What is held of the data stays below ``BYTES_TOGETHER`` bytes, or one chunk.
"""

import numpy as np
import scipy.sparse as sp

from foldless.chunked.rows import CheckedRows, checked, joined, with_numbers

ROWS_TOGETHER = 65536  # rows that are worked on together
BYTES_TOGETHER = 2**26  # and bytes

SAME = "Every pass over the data must find the same rows: give an iterator that starts anew, with a fixed seed."


def gathered(chunks, layout, first, start, counted):
    """Rows of chunks, as many as are worked on together; the first chunk is number ``first``, its first row ``start``.

    ``counted(number, rows)`` is told how many rows each chunk has.
    """
    parts, n, size = list[CheckedRows](), 0, 0
    for number, chunk in with_numbers(chunks, first):
        rows = checked(chunk, number, start, layout)
        counted(number, len(rows))
        start += len(rows)
        if len(rows):
            parts.append(rows)
            n, size = n + len(rows), size + _bytes(rows.X)
        if n >= ROWS_TOGETHER or size >= BYTES_TOGETHER:
            yield joined(parts)
            parts, n, size = [], 0, 0
    if parts:
        yield joined(parts)


def _bytes(X):
    return X.data.nbytes + X.indices.nbytes if sp.issparse(X) else X.nbytes


def same_checksum(state, known):
    """The checksum of what a pass found; refuse no rows, or others than those of the checksum ``known``."""
    if state is None:
        raise ValueError("the data have no rows." if known is None else f"the data have no rows. {SAME}")
    found = (state[0] if isinstance(state, list) else state).checksum
    if known is not None and not np.array_equal(found, known):
        raise ValueError(f"the rows differ from those of the first pass over the data. {SAME}")
    return found
