"""Sources of chunks: arrays and memory maps, and iterators. Files are in ``files``.

A source has ``chunks(first)``, a fresh iterator over its chunks from the one of this number on. Every pass over the
data asks for one.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from foldless.chunked.rows import OPTIONAL, Chunk
from foldless.linalg.types import MatrixLike


class Source:
    """Base of the sources; ``n_rows`` and ``names`` of the features are None where they are not known."""

    n_rows: int | None = None
    names: list | None = None

    def chunks(self, first: int = 0) -> Iterator:
        """The chunks from number ``first`` on."""
        raise NotImplementedError


@dataclass(frozen=True)
class Arrays(Source):
    """Rows of arrays, some at a time."""

    arrays: Chunk
    rows: int

    @property
    def n_rows(self):  # type: ignore[override]
        """Number of all rows."""
        return self.arrays.X.shape[0]

    def chunks(self, first=0):
        """Slices of the arrays."""
        for start in range(first * self.rows, self.n_rows, self.rows):
            part = slice(start, start + self.rows)
            yield Chunk(*(None if each is None else each[part] for each in self.arrays))


@dataclass(frozen=True)
class Made(Source):
    """Chunks that a function makes."""

    make: Callable[[], Iterable]

    def chunks(self, first=0):
        """A fresh iterator; chunks before the first are made and dropped."""
        return islice(iter(self.make()), first, None)


def arrays(
    X: MatrixLike,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    folds: ArrayLike | None = None,
    rows: int = 65536,
) -> Source:
    """Chunks of arrays: NumPy's, memory maps, sparse matrices in CSR, or anything else with a shape and slices.

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
    if not isinstance(rows, int | np.integer) or rows < 1:
        raise ValueError(f"rows={rows!r} must be an integer of at least 1.")
    given: dict[str, Any] = {"X": X, "y": y, "sample_weight": sample_weight, "groups": groups, "folds": folds}
    given = {name: each if each is None or hasattr(each, "shape") else np.asarray(each) for name, each in given.items()}
    given = {name: getattr(each, "values", each) if hasattr(each, "iloc") else each for name, each in given.items()}
    n = given["X"].shape[0]
    for name in ("y", *OPTIONAL):
        if given[name] is not None and given[name].shape[0] != n:
            raise ValueError(f"{name} has {given[name].shape[0]} rows and X has {n}.")
    return Arrays(Chunk(**given), int(rows))


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
