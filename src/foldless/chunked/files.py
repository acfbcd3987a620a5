"""Parquet and CSV files as sources of chunks, by pyarrow."""

import os
from collections.abc import Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from foldless.chunked.arrow import needs_pyarrow
from foldless.chunked.rows import Chunk, ChunkError
from foldless.chunked.sources import Partition, Source, check_rows

Paths = str | os.PathLike | Sequence


@dataclass(frozen=True)
class Files(Source):
    """Columns of files in their order; ``others`` are the columns of weights, groups and folds by what they are."""

    paths: tuple
    format: str
    target: Any
    features: tuple
    others: dict
    rows: int
    n_rows: int | None = None

    @property
    def names(self):  # type: ignore[override]
        """Names of the features."""
        return list(self.features)

    @property
    def has_folds(self):  # type: ignore[override]
        """Whether there is a column of them."""
        return "folds" in self.others

    @property
    def files(self):  # type: ignore[override]
        """Those that are read."""
        return self.paths

    def chunks(self, first=0):
        """Batches of rows, none of which spans two files."""
        return islice(self._chunks(), first, None)

    def parts(self):
        """Row groups of Parquet files, whole CSV files."""
        if self.format == "csv":
            return [Partition(self.read, (path,), None, None) for path in self.paths]
        found = list[Partition]()
        for path in self.paths:
            for group in _row_groups(path):
                found.append(Partition(self.read, (path, group.id), group.num_rows, -(-group.num_rows // self.rows)))
        return found

    def _chunks(self):
        number = 0
        for path in self.paths:
            for chunk in self.read(number, path):
                yield chunk
                number += 1

    def read(self, number, path, group=None):
        """Chunks of a file, or of a row group of it; the first has this number."""
        columns = list(dict.fromkeys([*self.features, *_columns(self.target), *self.others.values()]))
        try:
            rows: Any = _open(path, self.format, self.features)
            _check_columns(path, columns, rows.schema.names)
            if group is not None:
                [rows] = rows.get_fragments()
                rows = rows.subset(row_group_ids=[group])
            for batch in rows.to_batches(columns=columns, batch_size=self.rows):
                yield self._chunk(batch, number)
                number += 1
        except ChunkError:
            raise
        except NoColumnError as error:
            raise ChunkError(str(error), number) from None
        except (OSError, ValueError) as error:  # pyarrow's own errors are among these
            raise ChunkError(_damaged(path, error), number) from error

    def _chunk(self, batch, number):
        def column(name):
            values = batch.column(name)
            return values.to_numpy(zero_copy_only=False)

        X = [column(name) for name in self.features]
        for name, values in zip(self.features, X, strict=True):
            if values.dtype.kind not in "fiub":
                raise ChunkError(f"column {name!r} has values of type {batch.column(name).type}, not numbers.", number)
        several = not isinstance(self.target, str)
        y = np.column_stack([column(name) for name in self.target]) if several else column(self.target)
        kept = np.float32 if all(each.dtype == np.float32 for each in X) else np.float64
        table = np.empty((batch.num_rows, len(X)), kept)
        for place, values in enumerate(X):
            table[:, place] = values
        return Chunk(table, y, **{what: column(name) for what, name in self.others.items()})


def parquet(
    paths: Paths,
    *,
    target: str | Sequence[str],
    features: str | Iterable[str] | None = None,
    sample_weight: str | None = None,
    groups: str | None = None,
    folds: str | None = None,
    rows: int = 65536,
) -> Source:
    """Chunks of Parquet files.

    Parameters
    ----------
    paths : path or list of paths; a folder stands for all its .parquet files, in the order of their names
    target : str or list of str; the column of labels or values, or several of values
    features : str or list of str, default=None; columns of X; None: all that are not named otherwise
    sample_weight, groups, folds : str or None; columns of these, as in :class:`Chunk`
    rows : int, default=65536; rows of a chunk at most

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_iris
    >>> from foldless import chunked
    >>> file = tempfile.NamedTemporaryFile(suffix=".parquet")
    >>> load_iris(as_frame=True).frame.to_parquet(file.name)
    >>> data = chunked.parquet(file.name, target="target", rows=64)
    >>> [len(chunk.y) for chunk in data.chunks()]
    [64, 64, 22]
    """
    return _files(paths, "parquet", target, features, sample_weight, groups, folds, rows)


def csv(
    paths: Paths,
    *,
    target: str | Sequence[str],
    features: str | Iterable[str] | None = None,
    sample_weight: str | None = None,
    groups: str | None = None,
    folds: str | None = None,
    rows: int = 65536,
) -> Source:
    """Chunks of CSV files with a line of column names; parameters as in :func:`parquet`.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_iris
    >>> from foldless import chunked
    >>> file = tempfile.NamedTemporaryFile(suffix=".csv")
    >>> load_iris(as_frame=True).frame.to_csv(file.name, index=False)
    >>> data = chunked.csv(file.name, target="target")
    >>> [len(chunk.y) for chunk in data.chunks()]
    [150]
    """
    return _files(paths, "csv", target, features, sample_weight, groups, folds, rows)


def _files(paths, format, target, features, sample_weight, groups, folds, rows):
    needs_pyarrow(f"chunked.{format}")
    check_rows(rows)
    paths = _listed(paths, format)
    known = _names(paths[0], format)
    others = {"sample_weight": sample_weight, "groups": groups, "folds": folds}
    others = {what: name for what, name in others.items() if name is not None}
    taken = [*_columns(target), *others.values()]
    features = [features] if isinstance(features, str) else features
    features = tuple(name for name in known if name not in taken) if features is None else tuple(features)
    both = [name for name in features if name in taken]
    if both:
        raise ValueError(f"features: {both[0]!r} is the column of the target, weights, groups or folds as well.")
    for path in paths[:1] if format == "csv" else paths:
        _check_columns(path, [*features, *taken], known if path == paths[0] else _names(path, format))
    n_rows = None
    if format == "parquet":
        n_rows = sum(group.num_rows for path in paths for group in _row_groups(path))
    target = target if isinstance(target, str) else tuple(target)
    return Files(paths, format, target, features, others, rows, n_rows)


class NoColumnError(ValueError):
    """A file lacks a column."""


def _check_columns(path, columns, known):
    missing = [name for name in columns if name not in known]
    if missing:
        raise NoColumnError(f"{path} has no column {missing[0]!r}; its columns are {', '.join(map(repr, known))}.")


def _columns(target):
    return [target] if isinstance(target, str) else list(target)


def _listed(paths, format):
    """Files in the order given, those of a folder by name."""
    found = []
    for path in [paths] if isinstance(paths, str | os.PathLike) else paths:
        path = Path(path)
        found += sorted(path.rglob(f"*.{format}")) if path.is_dir() else [path]
    lost = [path for path in found if not path.exists()]
    if lost or not found:
        raise FileNotFoundError(f"{lost[0]} does not exist." if lost else f"{paths} has no .{format} file.")
    return tuple(map(str, found))


def _open(path, format, features=()):
    """A dataset of pyarrow; text in the columns ``features`` of a CSV file is an error, wherever it comes."""
    dataset = needs_pyarrow(f"chunked.{format}", "dataset")
    kind = format
    if format == "csv":
        numbers = dict.fromkeys(features, needs_pyarrow("chunked.csv").float64())
        kind = dataset.CsvFileFormat(
            convert_options=needs_pyarrow("chunked.csv", "csv").ConvertOptions(column_types=numbers)
        )
    return dataset.dataset([path], format=kind)


@contextmanager
def _told(path):
    """Errors of pyarrow with the name of the file."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise ValueError(_damaged(path, error)) from error


def _names(path, format):
    """Names of the columns of a file."""
    with _told(path):
        return _open(path, format).schema.names


def _row_groups(path):
    """Those of a Parquet file, from its end."""
    with _told(path):
        [fragment] = _open(path, "parquet").get_fragments()
        return fragment.row_groups


def _damaged(path, error):
    return f"{path} cannot be read; is it truncated or damaged? ({error})"
