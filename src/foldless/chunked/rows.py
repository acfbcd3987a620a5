"""Rows of a chunk, checked: what is wrong with them is told with the number of the chunk and of the row.

A source yields chunks (X, y), (X, y, weights) or :class:`Chunk`. :class:`Layout` is what all chunks of a source have in
common, read off the first one. ``checked`` turns a chunk into :class:`CheckedRows`.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from foldless.kernels.matrices import canonical


class Chunk(NamedTuple):
    """Some rows of the data.

    Attributes
    ----------
    X : array or sparse matrix of shape (rows, n_features)
    y : array of shape (rows,) or, for regression, (rows, n_outputs)
    sample_weight : array of shape (rows,) or None
    groups : array of shape (rows,) or None; rows of a group are held out together
    folds : array of shape (rows,) or None; the fold of each row, where the folds are given
    """

    X: Any
    y: Any
    sample_weight: Any = None
    groups: Any = None
    folds: Any = None


class ChunkError(ValueError):
    """A chunk that cannot be used; ``chunk`` is its number, ``row`` that of the row in it, where one is to blame."""

    def __init__(self, message, chunk, row=None, start=0):
        self.chunk, self.row, self._arguments = chunk, row, (message, chunk, row, start)
        place = "" if row is None else f", row {row} (row {start + row} of all)"
        super().__init__(f"chunk {chunk}{place}: {message}")

    def moved(self, by):
        """The same of the chunk so many behind."""
        message, chunk, *others = self._arguments
        return type(self)(message, chunk + by, *others)

    def __reduce__(self):
        return type(self), self._arguments


@dataclass(frozen=True)
class Layout:
    """What the chunks of a source have in common."""

    n_features: int
    labels: bool  # y holds labels, not values
    text: bool = False  # labels are text, not numbers
    n_outputs: int | None = None  # None: y is one column without an axis of its own
    present: tuple = ()  # which of sample_weight, groups and folds the chunks have
    classes: Any = None  # those that may occur, where they are known


@dataclass(frozen=True)
class CheckedRows:
    """Checked rows, and their ``numbers`` among all rows; X is dense or CSR, of floats, y of labels or doubles."""

    X: Any
    y: np.ndarray
    sample_weight: np.ndarray | None
    groups: np.ndarray | None
    folds: np.ndarray | None
    numbers: np.ndarray

    def __len__(self):
        return len(self.y)

    @property
    def weights(self):
        """Weights (n,), of ones where they came with none."""
        return np.ones(len(self)) if self.sample_weight is None else self.sample_weight

    def taken(self, places):
        """Some of the rows."""
        found: dict[str, Any] = {name: None if each is None else each[places] for name, each in vars(self).items()}
        return CheckedRows(**found)


OPTIONAL = ("sample_weight", "groups", "folds")


def with_numbers(chunks, first):
    """(number, chunk); an error of whoever reads them has a note about the number of the chunk."""
    chunks, number = iter(chunks), first
    while True:
        try:
            chunk = next(chunks)
        except StopIteration:
            return
        except ChunkError:
            raise
        except Exception as error:
            error.add_note(f"This is about chunk {number}.")
            raise
        yield number, chunk
        number += 1


def layout_of(chunks, labels, classes=None, first=0):
    """The layout of a source with these chunks, read off the first that has rows; None where there is none.

    ``first`` is the number of the first chunk.
    """
    for number, chunk in with_numbers(chunks, first):
        chunk = as_chunk(chunk, number)
        if np.shape(chunk.y)[:1] != (0,):
            return _layout(chunk, number, labels, classes)
    return None


def _layout(chunk, number, labels, classes):
    X = chunk.X if sp.issparse(chunk.X) else np.asarray(chunk.X)
    if X.ndim != 2:
        raise ChunkError(f"X has shape {X.shape}; it must have rows and columns.", number)
    y = np.asarray(chunk.y)
    outputs = None if labels or y.ndim < 2 else y.shape[1]
    present = tuple(name for name in OPTIONAL if getattr(chunk, name) is not None)
    classes = None if classes is None else np.unique(np.asarray(classes))
    return Layout(X.shape[1], labels, _is_text(y if classes is None else classes), outputs, present, classes)


def checked(chunk, number, start, layout):
    """The rows of the chunk of this number, the first of which has the number ``start`` among all."""
    chunk = as_chunk(chunk, number)
    for name in OPTIONAL:
        if (getattr(chunk, name) is not None) != (name in layout.present):
            there, first = ("no", "has") if name in layout.present else ("", "has none")
            raise ChunkError(f"it has {there} {name}, and the first chunk {first}.".replace("  ", " "), number)

    def refuse(bad, message):
        """Refuse the first row of which ``bad`` (rows,) is true."""
        if bad.any():
            row = int(np.argmax(bad))
            raise ChunkError(message(row), number, row, start)

    X = _features(chunk.X, number, layout, refuse)
    others = {name: getattr(chunk, name) for name in ("y", *OPTIONAL)}
    others = {name: None if each is None else np.asarray(each) for name, each in others.items()}
    for name, values in others.items():
        if values is not None and (not values.ndim or len(values) != X.shape[0]):
            raise ChunkError(f"{name} has shape {values.shape} and X has {X.shape[0]} rows.", number)
    y = others.pop("y")
    y = (_labels if layout.labels else _values)(y, number, layout, refuse)
    if others["sample_weight"] is not None:
        others["sample_weight"] = _weights(others["sample_weight"], number, refuse)
    for name in ("groups", "folds"):
        if others[name] is not None:
            refuse(_missing(others[name]), lambda row, name=name: f"its value of {name} is missing.")
    return CheckedRows(X, y, **others, numbers=np.arange(start, start + len(y)))


def as_chunk(chunk, number):
    """What a source yields, as a :class:`Chunk`."""
    if isinstance(chunk, Chunk):
        return chunk
    if isinstance(chunk, tuple | list) and 2 <= len(chunk) <= 5:
        return Chunk(*chunk)
    raise ChunkError(
        f"found {type(chunk).__name__}; a chunk is a tuple (X, y), (X, y, sample_weight), or a chunked.Chunk.", number
    )


def _features(X, number, layout, refuse):
    X = canonical(sp.csr_array(X)) if sp.issparse(X) else np.asarray(X)
    if X.ndim != 2 or X.shape[1] != layout.n_features:
        raise ChunkError(f"X has shape {X.shape}; rows of {layout.n_features} features are expected.", number)
    if X.dtype.kind not in "fiub" and X.shape[0]:
        raise ChunkError(f"X has values of type {X.dtype}; numbers are expected.", number)
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    values = X.data if sp.issparse(X) else X
    if not np.isfinite(values).all():
        owners = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)) if sp.issparse(X) else None
        wrong = ~np.isfinite(values)
        bad = wrong.any(1) if owners is None else np.bincount(owners[wrong], minlength=X.shape[0]) > 0

        def message(row):
            if owners is not None:
                return "X holds NaN or infinity."
            column = int(np.argmax(wrong[row]))
            return f"X holds {X[row, column]} in column {column}; numbers must be finite."

        refuse(bad, message)
    return X


def _labels(y, number, layout, refuse):
    if y.ndim != 1:
        raise ChunkError(f"y has shape {y.shape}; labels are one column.", number)
    if not len(y):
        return y
    refuse(_missing(y), lambda row: f"its label is missing ({y[row]}).")
    if _is_text(y) != layout.text:
        kinds = ("text", "numbers") if layout.text else ("numbers", "text")
        raise ChunkError(f"labels were {kinds[0]} and are {kinds[1]} here, such as {_plain(y, 0)!r}.", number)
    if y.dtype.kind == "f":
        refuse(np.trunc(y) != y, lambda row: f"its label {y[row]} is not a whole number; labels are whole or text.")
    classes = layout.classes
    if classes is not None:
        places = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
        refuse(
            classes[places] != y, lambda row: f"its label {_plain(y, row)!r} is not among the classes {_some(classes)}."
        )
    return y


def _values(y, number, layout, refuse):
    expected = (len(y),) if layout.n_outputs is None else (len(y), layout.n_outputs)
    if y.shape != expected:
        raise ChunkError(f"y has shape {y.shape}; {expected} is expected.", number)
    try:
        y = y.astype(np.float64)
    except (TypeError, ValueError):
        raise ChunkError(f"y has values of type {y.dtype}; numbers are expected.", number) from None
    refuse(~np.isfinite(y).all(tuple(range(1, y.ndim))), lambda row: f"y holds {y[row]}; numbers must be finite.")
    return y


def _weights(weights, number, refuse):
    if weights.ndim != 1 or weights.dtype.kind not in "fiub":
        found = f"shape {weights.shape} and type {weights.dtype}"
        raise ChunkError(f"sample_weight has {found}; one number a row is expected.", number)
    weights = weights.astype(np.float64)
    bad = ~(np.isfinite(weights) & (weights >= 0))
    refuse(bad, lambda row: f"its sample_weight is {weights[row]}; weights must be finite and not negative.")
    return weights


def _is_text(labels):
    return labels.dtype.kind in "OUST"


def _missing(values):
    """Which of the values are NaN, None or pandas' NA."""
    if values.dtype.kind == "f":
        return np.isnan(values)
    return np.array([not _is_itself(each) for each in values], bool) if values.dtype == object else np.False_


def _is_itself(value):
    same = value is not None and value == value  # of NA that is NA
    return isinstance(same, bool | np.bool_) and bool(same)


def _plain(values, place):
    """A value as Python shows it."""
    return values[place : place + 1].tolist()[0]


def _some(classes):
    shown = ", ".join(map(repr, classes[:5].tolist()))
    return f"[{shown}{', ...' if len(classes) > 5 else ''}]"


def joined(parts):
    """The rows of all parts."""
    if len(parts) == 1:
        return parts[0]
    found: dict[str, Any] = {}
    for name in vars(parts[0]):
        values = [getattr(part, name) for part in parts]
        if sp.issparse(values[0]):
            found[name] = sp.vstack(values).tocsr()
        else:
            found[name] = None if values[0] is None else np.concatenate(values)
    return CheckedRows(**found)
