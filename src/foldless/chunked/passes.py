"""Passes over the data on this machine: every chunk is read, checked and mapped to sums, which are added up.

Small chunks are put together, so that products are large enough to be quick; what is held of the data stays below
``TOGETHER`` bytes, or one chunk.
"""

import time
from functools import partial

import numpy as np
import scipy.sparse as sp

from foldless.bridge.progress import Progress
from foldless.chunked.checkpoint import Checkpoint
from foldless.chunked.heldout import held_out_of
from foldless.chunked.predictions import check_writable, writer
from foldless.chunked.rows import ChunkError, Rows, checked, joined
from foldless.chunked.sums import merged, sums_of

ENOUGH = 65536  # rows that are worked on together
TOGETHER = 2**26  # and bytes


SAME = "Every pass over the data must find the same rows: give an iterator that starts anew, with a fixed seed."


class Reader:
    """Reads a source pass by pass; ``seconds`` of the passes by name.

    All that the recipe asks of it is ``layout``, ``names``, ``seconds``, ``run``, ``add_up`` and ``judge``; a reader
    that works on other machines has the same.
    """

    def __init__(self, source, layout, *, checkpoint=None, predictions=None, verbose=None):
        self.source, self.layout, self.names = source, layout, source.names
        self.checkpoint, self.predictions, self.verbose = checkpoint, predictions, verbose
        self.seconds: dict[str, float] = {}
        self._lengths: list[int] = []  # rows of each chunk, from the first pass
        self._checksum = None

    def run(self, name, function, merge, *, first=0, start=0, state=None, after=None):
        """``function(rows)`` of all rows from the chunk ``first`` on, whose first row is ``start``, merged.

        ``state`` is what was merged before; ``after(next chunk, next row, state)`` is told of each step.
        """
        total = sum(self._lengths) or self.source.n_rows
        begin, progress = time.monotonic(), Progress(total, name, self.verbose)
        for following, rows in self._gathered(first, start):
            found = function(rows)
            state = found if state is None else merge(state, found)
            stop = int(rows.numbers[-1]) + 1
            if total is None:
                progress.tell(f"{stop} rows")
            else:
                progress.step("rows", len(rows))
            if after is not None:
                after(following, stop, state)
        progress.close()
        self.seconds[name] = time.monotonic() - begin
        self._check_same(state)
        return state

    def add_up(self, plans, survey):
        """The sums over all rows for each of the plans, from a checkpoint on where there is one."""
        check_writable(self.predictions, survey.n_rows)
        checkpoint = Checkpoint(self.checkpoint, plans, survey)
        first, start, sums = checkpoint.load()
        if start == survey.n_rows:
            return sums
        known = {"first": first, "start": start, "state": sums, "after": checkpoint.save}
        return self.run("sums", partial(sums_of, plans), merged, **known)

    def judge(self, plan, judges, n_rows):
        """Scores of all rows; their predictions are written on the way."""
        with writer(self.predictions, plan, n_rows) as write:

            def judged(rows):
                columns, scores = held_out_of(plan, judges, rows)
                write(int(rows.numbers[0]), columns)
                return scores

            return self.run("held out", judged, merged)

    def _gathered(self, first, start):
        """(number of the next chunk, rows), where small chunks are put together."""
        parts, n, size, number = list[Rows](), 0, 0, first
        for number, chunk in enumerate(self.source.chunks(first), first):
            rows = checked(chunk, number, start, self.layout)
            self._check_length(number, len(rows))
            start += len(rows)
            if len(rows):
                parts.append(rows)
                n, size = n + len(rows), size + _bytes(rows.X)
            if n >= ENOUGH or size >= TOGETHER:
                yield number + 1, joined(parts)
                parts, n, size = [], 0, 0
        if parts:
            yield number + 1, joined(parts)

    def _check_length(self, number, n):
        if self._checksum is None:
            self._lengths.append(n)
        elif number >= len(self._lengths):
            raise ChunkError(f"there were {len(self._lengths)} chunks before. {SAME}", number)
        elif n != self._lengths[number]:
            raise ChunkError(f"it has {n} rows and had {self._lengths[number]} before. {SAME}", number)

    def _check_same(self, state):
        """Refuse a pass that found no rows, or others than the first one."""
        if state is None:
            raise ValueError(
                f"the data have no rows. {SAME}" if self._checksum is not None else "the data have no rows."
            )
        found = (state[0] if isinstance(state, list) else state).checksum
        if self._checksum is None:
            self._checksum = found
        if not np.array_equal(found, self._checksum):
            raise ValueError(f"the rows differ from those of the first pass over the data. {SAME}")


def _bytes(X):
    return X.data.nbytes + X.indices.nbytes if sp.issparse(X) else X.nbytes
