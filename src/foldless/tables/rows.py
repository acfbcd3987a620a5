"""The rows of a run: features, target, groups, confounds and weights of those rows that have a target."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.utils import _safe_indexing

from foldless.tables.cells import as_numbers, as_text
from foldless.tables.errors import TableError
from foldless.tables.fields import confounds_of
from foldless.tables.schema import Schema

LEAST_OF_A_CLASS = 5  # rows; classes with fewer are left out where there are others
UNBALANCED = 4.0  # rows of the largest class for each of the smallest, from which classes count alike
FEW_ROWS = 12  # below which nothing is tuned
MOST_REFITS = 200  # rows up to which each is left out by a refit


@dataclass(frozen=True)
class Rows:
    """What is learnt from.

    Attributes
    ----------
    schema : Schema
    X : frame of prepared cells, or a sparse matrix
    y : ndarray of classes as text, or of values
    numbers : ndarray, rows as in the file, counted from 0
    groups, weights, confounds : ndarrays or None
    notes : sentences on rows that were left out
    n_without_target : int, rows of the file that are left out because their target is missing
    """

    schema: Schema
    X: Any
    y: np.ndarray
    numbers: np.ndarray
    groups: np.ndarray | None = None
    weights: np.ndarray | None = None
    confounds: np.ndarray | None = None
    notes: tuple[str, ...] = ()
    n_without_target: int = 0

    def __len__(self):
        return len(self.y)

    @property
    def classifies(self):
        """Whether y holds classes."""
        return self.schema.task == "classification"

    @property
    def few(self):
        """Whether there are too few rows (or rows of a class) for a choice that is held out itself."""
        counts = np.unique(self.y, return_counts=True)[1] if self.classifies else [len(self)]
        n_sets = len(self) if self.groups is None else len(np.unique(self.groups))
        return len(self) < FEW_ROWS or n_sets < 4 or min(counts) < LEAST_OF_A_CLASS

    @property
    def unbalanced(self):
        """Whether the largest class has many times the rows of the smallest."""
        counts = np.unique(self.y, return_counts=True)[1]
        return bool(self.classifies and counts.max() >= UNBALANCED * counts.min())

    def take(self, chosen, *notes):
        """Some of the rows, with more notes."""
        parts = {name: getattr(self, name) for name in ("y", "numbers", "groups", "weights", "confounds")}
        parts = {name: None if each is None else each[chosen] for name, each in parts.items()}
        return replace(self, X=_safe_indexing(self.X, chosen), notes=(*self.notes, *notes), **parts)


def rows_of(table, guessed, wishes):
    """The :class:`Rows` of a table: those with a target, of classes with enough of them."""
    frame = table.frame
    schema = replace(guessed.schema, confounds=confounds_of(guessed.confounds, frame))
    X, notes = schema.rows(table)
    target = frame[schema.target.name]
    y = as_text(target) if schema.classes else as_numbers(target)[0]
    there = np.flatnonzero(~pd.isna(y))
    groups = None if wishes.groups is None else as_text(frame[wishes.groups].astype(object).fillna("(missing)"))
    weights = None if wishes.weights is None else _weights(frame[wishes.weights])
    confounds, _, more = schema.confounds_in(table)
    rows = Rows(schema, X, y, np.arange(len(y)), groups, weights, confounds, (*notes, *more))
    if lost := len(y) - len(there):
        rows = replace(rows.take(there, f"{lost} rows without a target are left out."), n_without_target=lost)
    rows = replace(rows, y=rows.y.astype(str).astype(object) if schema.classes else rows.y.astype(float))
    _check_features(rows)
    return _without_small_classes(rows) if schema.classes else rows


def _check_features(rows):
    empty = not rows.X.nnz if sp.issparse(rows.X) else rows.X.isna().all(axis=None)
    if empty:
        raise TableError("no feature has a value in the rows with a target.", "Check the file and --target.")
    if len(rows) < 3:
        raise TableError(f"{len(rows)} rows have a target.", "At least three are needed.")
    if rows.groups is not None and len(np.unique(rows.groups)) < 2:
        raise TableError("--groups: all rows are in one group.", "At least two are needed, to hold one out.")


def _without_small_classes(rows):
    names, counts = np.unique(rows.y, return_counts=True)
    small = names[counts < LEAST_OF_A_CLASS]
    if len(small) and len(names) - len(small) < 2 and len(rows) > MOST_REFITS:
        raise TableError(
            f"class {small[0]!r} of {len(rows)} rows has fewer than {LEAST_OF_A_CLASS}.",
            "Two classes must have that many; add rows of it, or choose another --target.",
        )
    if not len(small) or len(rows) < FEW_ROWS or len(names) - len(small) < 2:
        return rows
    left = ", ".join(f"{each!r}" for each in small[:5]) + (", ..." if len(small) > 5 else "")
    kept = np.flatnonzero(~np.isin(rows.y, small))
    note = f"{len(rows) - len(kept)} rows of classes with fewer than {LEAST_OF_A_CLASS} rows ({left}) are left out."
    schema = replace(rows.schema, classes=tuple(each for each in rows.schema.classes if each not in set(small)))
    return replace(rows.take(kept, note), schema=schema)


def _weights(column):
    values, _ = as_numbers(column)
    if not (np.isfinite(values).all() and values.min() >= 0 and values.max() > 0):
        raise TableError(
            f"--weights: {column.name!r} must hold numbers >= 0 in every row, not all 0.", "Name another column."
        )
    return values
