"""Passes over the data on a cluster of dask: workers read their chunks and map them to sums, merged by a tree.

What a pass needs of the model is sent to every worker once. Parts of the data become delayed objects of a dask bag,
whose ``fold`` merges eight at a time, so that no machine holds more than a few sums and the client one. A worker that
dies takes nothing with it: dask repeats what it did.
"""

import time
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np

from foldless._sklearn.progress import Progress
from foldless.chunked.checkpoint import Checkpoint
from foldless.chunked.gather import SAME, gathered, same_checksum
from foldless.chunked.heldout import held_out_of
from foldless.chunked.partitions import needs_dask
from foldless.chunked.places import folder_for, is_lazy
from foldless.chunked.predictions import write_part
from foldless.chunked.rows import ChunkError, as_chunk, layout_of, with_numbers
from foldless.chunked.sums import merged, sums_of

PREDICTIONS = "predictions='dask'"
SPLIT_EVERY = 8  # states that are merged at a time
ATTEMPTS = 3  # for passes whose model was lost with the only worker that had it
POLL = 0.2  # seconds between two looks at a pass
PATIENCE = 30.0  # seconds without a scheduler until it is given up


@contextmanager
def connected(client):
    """The client given, or the one that is active, or one of a LocalCluster for the time being."""
    distributed = needs_dask("client=", "distributed")
    if client is None:
        try:
            client = distributed.get_client()
        except ValueError:
            options = {"threads_per_worker": 1, "dashboard_address": ":0"}
            with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
                yield client
            return
    if not isinstance(client, distributed.Client):
        raise ValueError(f"client: found {type(client).__name__}; give a dask.distributed.Client.")
    if client.asynchronous or client.status != "running":
        raise ValueError(
            f"client: it is {'asynchronous' if client.asynchronous else client.status}; give one that runs."
        )
    with client.as_current():  # it need not be the default one
        yield client


@dataclass(frozen=True)
class Work:
    """``function(rows)`` of the rows of a part, merged; a list of it, which is empty without rows.

    ``topic`` is where it tells how far it is, None: nowhere.
    """

    function: Any
    merge: Any
    layout: Any
    topic: str | None = None

    def of(self, read, arguments, number, start, stop):
        """For the part whose first chunk and row, and first row behind it, have these numbers."""
        state, counts = None, dict[int, int]()
        for rows in gathered(read(number, *arguments), self.layout, number, start, counts.__setitem__):
            found = self.function(rows)
            state = found if state is None else self.merge(state, found)
            if self.topic is not None:
                _tell(self.topic, len(rows))
        found = sum(counts.values())
        if found != stop - start:
            raise ChunkError(f"it has {found} rows, and {stop - start} were announced. {SAME}", number)
        return [] if state is None else [state]


@dataclass(frozen=True)
class HeldOutScoring:
    """Scores of rows; their predictions are written on the way."""

    plan: Any
    held_out_models: Any
    folder: Any

    def __call__(self, rows):
        """For some rows."""
        columns, scores = held_out_of(self.plan, self.held_out_models, rows)
        if self.folder is not None:
            write_part(self.folder, int(rows.numbers[0]), columns, self.plan)
        return scores


@dataclass(frozen=True)
class Columns:
    """Held-out predictions of rows by name."""

    plan: Any
    held_out_models: Any

    def __call__(self, rows):
        """For some rows."""
        return held_out_of(self.plan, self.held_out_models, rows)[0]


class ClusterReader:
    """Runs passes by the workers of a client; for the recipe the same as ``passes.Reader``."""

    def __init__(self, client, source, labels, classes, *, checkpoint=None, predictions=None, verbose=None):
        self.client, self.names = client, source.names
        self.checkpoint, self.predictions, self.verbose = checkpoint, predictions, verbose
        self.seconds: dict[str, float] = {}
        self._checksum = None
        self._workers = set(client.nthreads())
        self._parts = source.parts()
        if not self._parts:
            raise ValueError("data: there are no chunks.")
        self._count()
        place = next(i for i, n in enumerate(self._rows[1:]) if n)
        first, look = self._parts[place], needs_dask("client=").delayed(_layout, pure=False)
        known = self._numbers[place], labels, classes
        self.layout = self._computed(look(first.read, list(first.arguments), *known))

    @property
    def workers_gone(self):
        """How many of the workers that were there at the beginning are there no more."""
        return len(self._workers - set(self.client.nthreads()))

    def run(self, name, function, merge):
        """``function(rows)`` of all rows, merged."""
        with self._watched(name, self.n_rows, "rows") as topic:
            state = self._reduced(Work(function, merge, self.layout, topic))
        self._checksum = same_checksum(state, self._checksum)
        return state

    @contextmanager
    def _watched(self, name, total, what):
        """The topic on which workers tell of a pass: how many more of ``total`` are done. Keeps its seconds."""
        begin, topic = time.monotonic(), f"foldless-{id(self)}-{name}"
        progress = Progress(total, name, self.verbose)
        self.client.subscribe_topic(topic, lambda event: progress.step(what, event[1]))
        try:
            yield topic
        finally:
            if self.client.status == "running":
                self.client.unsubscribe_topic(topic)
        progress.close()
        self.seconds[name] = time.monotonic() - begin

    def add_up(self, plans, survey):
        """The sums over all rows for each of the plans, or those of a checkpoint that is complete."""
        checkpoint = Checkpoint(self.checkpoint, plans, survey)
        row, sums = checkpoint.load()
        if row < survey.n_rows:
            sums = self.run("sums", partial(sums_of, plans), merged)
            checkpoint.save(survey.n_rows, sums)
        return sums

    def judge(self, plan, held_out_models, survey):
        """(scores of all rows, predictions); workers write these, or they are dask arrays that nobody has made yet."""
        lazy = is_lazy(self.predictions)
        with folder_for(None if lazy else self.predictions) as folder:
            scores = self.run("held out", HeldOutScoring(plan, held_out_models, folder), merged)
        return scores, self._arrays(Columns(plan, held_out_models), survey.sample.taken([0])) if lazy else None

    def _arrays(self, columns, row):
        """{name: dask array} of columns, in chunks of the parts; those of one row say what they are like.

        Parts without rows have no chunk: ``concatenate`` drops them.
        """
        array, delayed = needs_dask(PREDICTIONS, "dask.array"), needs_dask(PREDICTIONS).delayed
        work, worked = delayed(Work(columns, _stacked, self.layout), pure=False, traverse=False), delayed(_worked)
        like = columns(row)
        found: dict[str, list] = {name: [] for name in like}
        for part, place in zip(self._parts, self._places, strict=True):
            own, n = worked(work, part.read, list(part.arguments), *place)[0], place[2] - place[1]
            for name, one in like.items():
                found[name].append(array.from_delayed(own[name], (n, *one.shape[1:]), one.dtype))
        return {name: array.concatenate(each) for name, each in found.items()}

    @property
    def _places(self):
        """Of each part: numbers of its first chunk and row, and of the first row behind it."""
        return list(zip(self._numbers, self._rows, self._rows[1:], strict=False))

    def _count(self):
        """Numbers of the first chunk and row of each part, and of all."""
        delayed = needs_dask("client=").delayed
        parts, unknown = self._parts, [i for i, part in enumerate(self._parts) if part.rows is None]
        counts = [(part.chunks, part.rows) for part in parts]
        if unknown:
            with self._watched("count", len(unknown), "parts") as topic:
                count = delayed(_counted, pure=False)
                found = [count(parts[i].read, list(parts[i].arguments), i, topic) for i in unknown]
                for i, each in zip(unknown, self._computed(delayed(found)), strict=True):
                    if isinstance(each, ChunkError):  # its chunk was counted from number i on
                        raise each.moved(sum(chunks for chunks, _ in counts[:i]) - i)
                    counts[i] = each
        self._numbers = [0, *accumulate(chunks for chunks, _ in counts)]
        self._rows = [0, *accumulate(rows for _, rows in counts)]
        self.n_rows = self._rows[-1]
        if not self.n_rows:
            raise ValueError("the data have no rows.")

    def _reduced(self, work):
        """What ``work`` finds of all parts, merged in a tree."""
        bag, worked = needs_dask("client=", "dask.bag"), needs_dask("client=").delayed(_worked, pure=False)
        cancelled = None
        for _ in range(ATTEMPTS):
            with self._told():
                try:
                    sent = self.client.scatter(work, broadcast=True, hash=False)
                    found = [
                        worked(sent, part.read, list(part.arguments), *place)
                        for part, place in zip(self._parts, self._places, strict=True)
                    ]
                    return self._wait(bag.from_delayed(found).fold(work.merge, split_every=SPLIT_EVERY))
                except CancelledError as error:
                    if self.client.status != "running":
                        raise
                    cancelled = error
        raise RuntimeError(
            "the workers of the cluster were lost again and again. Is their memory enough?"
        ) from cancelled

    def _computed(self, collection):
        with self._told():
            return self._wait(collection)

    def _wait(self, collection):
        """The result of a collection; looks now and then whether there is still a cluster."""
        distributed = needs_dask("client=", "distributed")
        future, seen = self.client.compute(collection), time.monotonic()
        try:
            while not future.done():
                try:
                    distributed.wait(future, timeout=POLL)
                except TimeoutError:
                    connected = self.client.scheduler is not None and self.client.status == "running"
                    seen = time.monotonic() if connected else seen
                    if self.client.status == "closed" or time.monotonic() - seen > PATIENCE:
                        raise CancelledError("no scheduler") from None
            return future.result()
        finally:
            if self.client.status == "running":
                future.cancel()

    @contextmanager
    def _told(self):
        """Errors of the cluster, not of the work, as a sentence."""
        distributed = needs_dask("client=", "distributed")
        kept = "" if self.checkpoint is None else " Sums that were complete are in the checkpoint."
        try:
            yield
        except distributed.scheduler.KilledWorker as error:
            raise RuntimeError(
                "workers of the cluster died one after the other at the same chunk. Give them more memory, or make"
                f" chunks smaller. ({error})"
            ) from error
        except (CancelledError, distributed.comm.CommClosedError) as error:
            raise ConnectionError(
                f"the cluster was closed, or its scheduler cannot be reached; there is no result.{kept} Connect a new"
                " client and call again."
            ) from error


def _worked(work, *place):
    return work.of(*place)


def _stacked(first, second):
    """Columns of the rows of both."""
    return {name: np.concatenate([values, second[name]]) for name, values in first.items()}


def _layout(read, arguments, number, labels, classes):
    return layout_of(read(number, *arguments), labels, classes, number)


def _tell(topic, done):
    needs_dask("client=", "distributed").get_worker().log_event(topic, done)


def _counted(read, arguments, number, topic):
    """(chunks, rows) of a part, or what is wrong with one of its chunks, as if the first had this number."""
    try:
        lengths = [len(as_chunk(chunk, i).y) for i, chunk in with_numbers(read(number, *arguments), number)]
    except ChunkError as error:
        return error
    _tell(topic, 1)
    return len(lengths), sum(lengths)
