"""Passes over the data on this machine: every chunk is read, checked and mapped to sums, which are added up."""

import time
from functools import partial

import numpy as np

from foldless._sklearn.progress import Progress
from foldless.chunked.checkpoint import Checkpoint
from foldless.chunked.gather import SAME, gathered, same_checksum
from foldless.chunked.heldout import held_out_of
from foldless.chunked.predictions import writer
from foldless.chunked.rows import ChunkError
from foldless.chunked.sums import merged, sums_of


class Reader:
    """Reads a source pass by pass; ``seconds`` of the passes by name.

    All that the recipe asks of it is ``layout``, ``names``, ``seconds``, ``workers_gone``, ``run``, ``add_up`` and
    ``judge``; a reader that works on other machines has the same.
    """

    workers_gone = None  # there are none

    def __init__(self, source, layout, *, checkpoint=None, predictions=None, verbose=None):
        self.source, self.layout, self.names = source, layout, source.names
        self.checkpoint, self.predictions, self.verbose = checkpoint, predictions, verbose
        self.seconds: dict[str, float] = {}
        self._lengths: list[int] = []  # rows of each chunk, from the first pass
        self._checksum = None

    def run(self, name, function, merge, *, start=0, state=None, after=None):
        """``function(rows)`` of all rows from number ``start`` on, merged.

        ``state`` is what was merged before; ``after(next row, state)`` is told of each step.
        """
        total = sum(self._lengths) or self.source.n_rows
        begin, progress = time.monotonic(), Progress(total, name, self.verbose)
        if start:
            progress.step("rows", start)
        first, row = self._chunk_of(start)
        for rows in gathered(self.source.chunks(first), self.layout, first, row, self._check_length):
            if rows.numbers[0] < start:  # its first rows were there before
                rows = rows.taken(np.flatnonzero(rows.numbers >= start))
            found = function(rows)
            state = found if state is None else merge(state, found)
            stop = int(rows.numbers[-1]) + 1
            if total is None:
                progress.tell(f"{stop} rows")
            else:
                progress.step("rows", len(rows))
            if after is not None:
                after(stop, state)
        progress.close()
        self.seconds[name] = time.monotonic() - begin
        self._checksum = same_checksum(state, self._checksum)
        return state

    def add_up(self, plans, survey):
        """The sums over all rows for each of the plans, from a checkpoint on where there is one."""
        checkpoint = Checkpoint(self.checkpoint, plans, survey)
        start, sums = checkpoint.load()
        if start == survey.n_rows:
            return sums
        known = {"start": start, "state": sums, "after": checkpoint.save}
        return self.run("sums", partial(sums_of, plans), merged, **known)

    def judge(self, plan, held_out_models, survey):
        """(scores of all rows, None); their predictions are written on the way."""
        with writer(self.predictions, plan) as write:

            def judged(rows):
                columns, scores = held_out_of(plan, held_out_models, rows)
                write(int(rows.numbers[0]), columns)
                return scores

            return self.run("held out", judged, merged), None

    def _chunk_of(self, row):
        """(number of the chunk that has this row, its first row); chunks may differ from those of an earlier run."""
        ends = np.cumsum([0, *self._lengths])
        number = int(np.searchsorted(ends, row, "right")) - 1
        return (number, int(ends[number])) if row else (0, 0)

    def _check_length(self, number, n):
        if self._checksum is None:
            self._lengths.append(n)
        elif number >= len(self._lengths):
            raise ChunkError(f"there were {len(self._lengths)} chunks before. {SAME}", number)
        elif n != self._lengths[number]:
            raise ChunkError(f"it has {n} rows and had {self._lengths[number]} before. {SAME}", number)
