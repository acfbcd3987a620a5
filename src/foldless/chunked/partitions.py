"""dask's arrays and dataframes as sources: each partition is a chunk, which stays where dask makes it."""

import importlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from foldless.chunked.rows import OPTIONAL, Chunk
from foldless.chunked.sources import Partition, Source


def needs_dask(what, module="dask"):
    """dask or one of its modules, or an error that says how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"{what} needs dask: pip install 'dask[array,dataframe,distributed]'.") from error


@dataclass(frozen=True)
class Partitions(Source):
    """Delayed columns of chunks: a tuple (X, y, sample_weight, groups, folds) for each."""

    delayed: tuple
    lengths: tuple
    names: Any = None

    @property
    def n_rows(self):  # type: ignore[override]
        """Number of all rows, where dask knows it."""
        return None if None in self.lengths else sum(self.lengths)

    @property
    def has_folds(self):  # type: ignore[override]
        """Whether there is a collection of them."""
        return self.delayed[0][-1] is not None if self.delayed else None

    def chunks(self, first=0):
        """Partitions, brought here one at a time."""
        compute = needs_dask("chunked.dask").compute
        for columns in self.delayed[first:]:
            yield Chunk(*compute(*columns))

    def parts(self):
        """Each partition."""
        return [Partition(_partition, each, n) for each, n in zip(self.delayed, self.lengths, strict=True)]


def _partition(number, *columns):
    return [Chunk(*map(_array, columns))]


def _array(values):
    """An array, or None and sparse matrices as they are; of a dataframe column by column, whatever their types."""
    if values is None or sp.issparse(values):
        return values
    return np.column_stack([values[name] for name in values]) if hasattr(values, "columns") else np.asarray(values)


def dask(X: Any, y: Any, *, sample_weight: Any = None, groups: Any = None, folds: Any = None) -> Source:
    """Chunks of dask arrays and dataframes: their partitions, which workers of a cluster make and work on.

    Parameters
    ----------
    X : dask array of shape (n_samples, n_features), or dask dataframe
    y : dask array or series; of a dataframe X also the name of a column of it
    sample_weight, groups, folds : the same, or None; as in :class:`Chunk`

    Rows of all must be in the same order. Partitions of unknown length are counted in a first pass.

    Examples
    --------
    >>> import dask.array as da
    >>> from foldless import chunked
    >>> X = da.random.default_rng(0).normal(size=(1000, 3), chunks=(400, 3))
    >>> data = chunked.dask(X, X[:, 0] > 0)
    >>> data.n_rows
    1000
    """
    needs_dask("chunked.dask", "dask.array")
    given = {"X": X, "y": y, "sample_weight": sample_weight, "groups": groups, "folds": folds}
    named = [each for name, each in given.items() if name != "X" and isinstance(each, str)]
    missing = [each for each in named if each not in getattr(X, "columns", ())]
    if missing:
        raise ValueError(f"X has no column {missing[0]!r}; its columns are {list(getattr(X, 'columns', ()))}.")
    if named:
        given |= {name: X[each] for name, each in given.items() if name != "X" and isinstance(each, str)}
        given["X"] = X.drop(columns=named)
    for name, each in given.items():
        if each is not None and not hasattr(each, "to_delayed"):
            raise ValueError(f"{name}: found {type(each).__name__}; give a dask array or dataframe.")
    names = list(map(str, given["X"].columns)) if hasattr(given["X"], "columns") else None
    lengths = _lengths(given["X"])
    delayed: dict[str, list] = {}
    for name, each in given.items():
        delayed[name] = [None] * len(lengths) if each is None else _delayed(each, lengths, name)
    columns = [delayed[name] for name in ("X", "y", *OPTIONAL)]
    return Partitions(tuple(zip(*columns, strict=True)), lengths, names)


def _lengths(X):
    """Rows of each partition, None where dask does not know."""
    if not hasattr(X, "chunks"):
        return (None,) * X.npartitions
    return tuple(None if np.isnan(n) else int(n) for n in X.chunks[0])


def _delayed(values, lengths, name):
    """One object for each partition of X."""
    known = _lengths(values)
    if hasattr(values, "chunks"):
        together = {axis: -1 for axis in range(1, values.ndim)}
        if None not in known and None not in lengths and known != lengths:
            if sum(known) != sum(lengths):
                raise ValueError(f"{name} has {sum(known)} rows and X has {sum(lengths)}.")
            together[0] = lengths
        values = values.rechunk(together) if together else values
        known = _lengths(values)
    if len(known) != len(lengths):
        raise ValueError(f"{name} has {len(known)} partitions and X has {len(lengths)}; repartition one of them.")
    return np.ravel(values.to_delayed()).tolist()
