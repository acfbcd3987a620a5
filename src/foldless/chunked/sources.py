"""Sources of chunks: arrays and memory maps, and iterators. Files are in ``files``.

A source has ``chunks(first)``, a fresh iterator over its chunks from the one of this number on. Every pass over the
data asks for one. Sources whose chunks can be read one by one have ``parts()`` as well: a cluster reads these.
"""

import mmap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from foldless._engine.linalg.types import MatrixLike
from foldless.chunked.rows import OPTIONAL, Chunk


@dataclass(frozen=True)
class Partition:
    """Some chunks that any machine can read by itself: ``read(number, *arguments)`` yields them.

    ``number`` is that of the first. ``rows`` and ``chunks`` are how many there are, None where they are to be counted.
    """

    read: Callable
    arguments: tuple
    rows: int | None = None
    chunks: int | None = 1


class Source:
    """Base of the sources; ``n_rows`` and ``names`` of the features are None where they are not known.

    ``files`` are those that rows are read from, as far as they are known; ``has_folds`` says whether rows bring folds,
    None where that is not known. ``y`` is there where it can be had without a look at the chunks.
    """

    n_rows: int | None = None
    names: list | None = None
    files: tuple = ()
    has_folds: bool | None = None
    y: Any = None

    def chunks(self, first: int = 0) -> Iterator:
        """The chunks from number ``first`` on."""
        raise NotImplementedError

    def parts(self) -> list[Partition]:
        """All chunks, in parts that can be read in any order."""
        raise ValueError(
            "client: chunks of an iterator come one after the other, and workers cannot share them. Use"
            " chunked.numbered, with a function from the number of a chunk to its rows."
        )


@dataclass(frozen=True)
class Arrays(Source):
    """Rows of arrays, some at a time."""

    arrays: Chunk
    rows: int
    names: list | None = None

    @property
    def n_rows(self):  # type: ignore[override]
        """Number of all rows."""
        return self.arrays.X.shape[0]

    @property
    def y(self):
        """That of all rows."""
        return self.arrays.y

    @property
    def has_folds(self):  # type: ignore[override]
        """Whether there is an array of them."""
        return self.arrays.folds is not None

    @property
    def files(self):  # type: ignore[override]
        """Files of memory maps."""
        return tuple(str(each.filename) for each in self.arrays if getattr(each, "filename", None) is not None)

    def chunks(self, first=0):
        """Slices of the arrays."""
        for start in range(first * self.rows, self.n_rows, self.rows):
            part = slice(start, start + self.rows)
            yield Chunk(*(None if each is None else each[part] for each in self.arrays))

    def parts(self):
        """Each slice; of a memory map only where it lies in the file."""
        found = []
        for start in range(0, self.n_rows, self.rows):
            part = slice(start, min(start + self.rows, self.n_rows))
            found.append(Partition(_slices, tuple(_sent(each, part) for each in self.arrays), part.stop - start))
        return found


class Mapped(NamedTuple):
    """Some rows of an array in a file."""

    file: str
    dtype: np.dtype
    offset: int
    shape: tuple
    order: Literal["C", "F"]
    part: slice


def _sent(array, part):
    """What a worker needs to have these rows."""
    if array is None or not isinstance(array, np.memmap) or not isinstance(array.base, mmap.mmap):
        return None if array is None else array[part]
    order = "C" if array.flags.c_contiguous else "F"
    return Mapped(str(array.filename), array.dtype, array.offset, array.shape, order, part)


def _slices(number, *arrays):
    """One chunk."""
    opened = []
    for each in arrays:
        if isinstance(each, Mapped):
            each = np.memmap(each.file, each.dtype, "r", each.offset, each.shape, each.order)[each.part]
        opened.append(each)
    return [Chunk(*opened)]


@dataclass(frozen=True)
class Numbered(Source):
    """Chunks that a function makes of their numbers."""

    read: Callable[[int], Any]
    count: int
    rows: int | None = None

    def chunks(self, first=0):
        """One after the other."""
        return map(self.read, range(first, self.count))

    def parts(self):
        """Each chunk."""
        return [Partition(_one, (self.read,), self.rows)] * self.count


def _one(number, read):
    yield read(number)


@dataclass(frozen=True)
class Made(Source):
    """Chunks that a function makes."""

    make: Callable[[], Iterable]

    def chunks(self, first=0):
        """A fresh iterator; chunks before the first are made and dropped."""
        return islice(iter(self.make()), first, None)


def check_rows(rows):
    """Refuse a number of rows of a chunk that is none."""
    if not isinstance(rows, int | np.integer) or rows < 1:
        raise ValueError(f"rows={rows!r} must be an integer of at least 1.")


def arrays(
    X: MatrixLike,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    folds: ArrayLike | None = None,
    rows: int = 65536,
) -> Source:
    """Chunks of arrays: NumPy's, memory maps, sparse matrices, dataframes, or anything else with a shape and slices.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
    y : array of shape (n_samples,) or, for regression, (n_samples, n_outputs)
    sample_weight, groups, folds : arrays of shape (n_samples,) or None; as in :class:`Chunk`
    rows : int, default=65536; rows of a chunk

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from foldless import chunked
    >>> file = tempfile.NamedTemporaryFile(suffix=".npy")
    >>> X = np.lib.format.open_memmap(file.name, "w+", np.float32, (1000, 3))
    >>> X[:] = np.random.default_rng(0).normal(size=X.shape)
    >>> data = chunked.arrays(X, X[:, 0] > 0, rows=256)
    >>> [len(chunk.y) for chunk in data.chunks()]
    [256, 256, 256, 232]
    """
    check_rows(rows)
    given: dict[str, Any] = {"X": X, "y": y, "sample_weight": sample_weight, "groups": groups, "folds": folds}
    names = list(getattr(X, "columns", ()))
    given = {name: each if each is None or hasattr(each, "shape") else np.asarray(each) for name, each in given.items()}
    given = {name: getattr(each, "values", each) if hasattr(each, "iloc") else each for name, each in given.items()}
    given["X"] = sp.csr_array(X) if sp.issparse(X) else given["X"]  # other formats have no quick slices, or none
    n = given["X"].shape[0]
    for name in ("y", *OPTIONAL):
        if given[name] is not None and given[name].shape[0] != n:
            raise ValueError(f"{name} has {given[name].shape[0]} rows and X has {n}.")
    known = bool(names) and all(isinstance(name, str) for name in names)
    return Arrays(Chunk(**given), int(rows), names if known else None)


def iterator(make: Callable[[], Iterable]) -> Source:
    """Chunks from a function: ``make()`` returns a fresh iterator over tuples (X, y), (X, y, sample_weight) or Chunk.

    It is called once for every pass over the data and must yield the same rows each time.

    Examples
    --------
    >>> import numpy as np
    >>> from foldless import chunked
    >>> def make():
    ...     for seed in range(3):
    ...         X = np.random.default_rng(seed).normal(size=(100, 2))
    ...         yield X, X[:, 0] > 0
    >>> data = chunked.iterator(make)
    """
    if not callable(make):
        raise ValueError(
            f"iterator: found {type(make).__name__}; give a function that returns a fresh iterator, for instance"
            " lambda: iter(chunks), since the data are read several times."
        )
    return Made(make)


def numbered(read: Callable[[int], Any], count: int, *, rows: int | None = None) -> Source:
    """Chunks from a function of their number: ``read(i)`` returns chunk i of ``count``, as (X, y) or Chunk.

    Workers of a cluster call it for their own chunks. It must return the same rows each time. ``rows`` is the number of
    rows where all chunks have as many; without it a cluster counts them first.

    Examples
    --------
    >>> import numpy as np
    >>> from foldless import chunked
    >>> def read(seed):
    ...     X = np.random.default_rng(seed).normal(size=(100, 2))
    ...     return X, X[:, 0] > 0
    >>> data = chunked.numbered(read, 3, rows=100)
    >>> [len(y) for X, y in data.chunks()]
    [100, 100, 100]
    """
    if not callable(read):
        raise ValueError(f"numbered: found {type(read).__name__}; give a function from a number to a chunk.")
    if not isinstance(count, int | np.integer) or count < 1:
        raise ValueError(f"count={count!r} must be an integer of at least 1.")
    return Numbered(read, int(count), rows)
