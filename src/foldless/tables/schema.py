"""How cells of a table become rows for a model: names, kinds and words of the columns, as found in training.

Reading cells learns nothing from other rows. What is learnt (means, levels, scales) is in the pipeline behind.
"""

import json
from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy.sparse as sp

from foldless.tables.cells import as_booleans, as_dates, as_numbers, as_text, date_parts
from foldless.tables.errors import TableError
from foldless.tables.plain import built, plain

SHOWN = 3  # values named in a message
UNSEEN = "they count as a rare level, or as none (all indicators 0) where training had no rare ones"


@dataclass(frozen=True)
class Field:
    """A column that the model needs.

    Attributes
    ----------
    name : str
    kind : {"number", "category", "boolean", "date"}
    missing : bool, whether it had missing cells in training
    missing_words : texts that count as missing
    words : the words for no and yes, in small letters
    date_format : str
    cycles : those of dates: "year", "week", "day"
    levels : texts of a category that were seen in training
    """

    name: str
    kind: str
    missing: bool = False
    missing_words: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    date_format: str = ""
    cycles: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of rows that it becomes."""
        return tuple(date_parts(self.name, np.zeros(0), self.cycles)) if self.kind == "date" else (self.name,)

    def read(self, column):
        """({name: values} for the rows, cells that were understood as nothing)."""
        if self.missing_words:
            column = column.mask(pd.Series(as_text(column), index=column.index).isin(self.missing_words))
        if self.kind == "category":
            return {self.name: as_text(column)}, np.zeros(len(column), dtype=bool)
        if self.kind == "boolean":
            values, bad = as_booleans(column, self.words)
        elif self.kind == "date":
            values, bad = as_dates(column, self.date_format)
            return date_parts(self.name, values, self.cycles), bad
        else:
            values, bad = as_numbers(column)
        return {self.name: values}, bad


@dataclass(frozen=True)
class Schema:
    """What a model was trained to read.

    Attributes
    ----------
    task : {"classification", "regression"}
    target : Field, the column to predict
    classes : names of the classes, in order
    features : the fields of a row, in order
    n_sparse : int, number of features where they are a sparse matrix, else 0
    """

    task: str
    target: Field
    classes: tuple[str, ...] = ()
    features: tuple[Field, ...] = ()
    n_sparse: int = 0

    def rows(self, table):
        """(rows for the pipeline, notes on what was found) of a :class:`Table`; raises where it does not fit."""
        if self.n_sparse:
            return self._sparse_rows(table)
        names = list(table.frame.columns)
        absent = [field.name for field in self.features if field.name not in names]
        if absent:
            shown = ", ".join(map(repr, absent[:SHOWN])) + (", ..." if len(absent) > SHOWN else "")
            raise TableError(
                f"{table.source} lacks {len(absent)} of the {len(self.features)} columns of the model: {shown}.",
                f"It has {', '.join(map(repr, names[:6]))}{', ...' if len(names) > 6 else ''}.",
            )
        columns: dict[str, np.ndarray] = {}
        notes: list[str] = []
        for field in self.features:
            column = table.frame[field.name]
            found, bad = field.read(column)
            if bad.any():
                raise _not_understood(table, field, column, bad)
            columns |= found
            notes += _news(field, found[field.columns[0]])
        return pd.DataFrame(columns, index=table.frame.index), notes

    def _sparse_rows(self, table):
        if table.sparse is None:
            raise TableError(f"{table.source} is no sparse matrix.", "The model was trained on svmlight or sparse NPZ.")
        X, more = table.sparse, table.sparse.shape[1] - self.n_sparse
        if more > 0:
            note = f"{more} features that the model has not seen are left out."
            return X[:, : self.n_sparse], [note]
        return sp.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], self.n_sparse)), []

    def to_json(self) -> str:
        """The schema as JSON."""
        return json.dumps(plain(self), ensure_ascii=False, indent=1)

    @classmethod
    def from_json(cls, text: str) -> "Schema":
        """The schema that ``to_json`` has written."""
        return built(cls, json.loads(text))


def _not_understood(table, field, column, bad):
    row = int(np.flatnonzero(bad)[0])
    what = {"number": "no number", "date": f"no date in the format {field.date_format or 'of the training table'}"}
    text = what.get(field.kind, f"neither of {' and '.join(map(repr, field.words))}")
    cell = str(column.iloc[row])[:40]
    return TableError(
        f"{table.source}: column {field.name!r} holds {cell!r} in row {row + 1}, {text} ({int(bad.sum())} such cells).",
        "Leave such cells empty if they mean nothing, or correct them.",
    )


def _news(field, values):
    """Notes on what training had not seen; it is dealt with."""
    notes = []
    missing = int(pd.isna(values).sum())
    if missing and not field.missing:
        how = UNSEEN if field.kind == "category" else "they are filled in as typical"
        notes.append(f"{field.name!r}: {missing} missing cells, none in training; {how}.")
    if field.kind == "category":
        texts = pd.Series(values).dropna()
        new = texts[~texts.isin(field.levels)]
        if len(new):
            shown = ", ".join(map(repr, sorted(new.unique())[:SHOWN]))
            notes.append(f"{field.name!r}: {len(new)} cells with levels that training had not ({shown}).")
    return notes
