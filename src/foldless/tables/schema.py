"""How cells of a table become rows for a model: names, kinds and words of the columns, as found in training.

Reading cells learns nothing from other rows. What is learnt (means, levels, scales) is in the pipeline behind.
"""

import json
from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy.sparse as sp

from foldless.tables.errors import TableError
from foldless.tables.fields import Confound, Field, first_values
from foldless.tables.plain import built, plain

LARGEST = 1e100
SHOWN = 3  # values named in a message
UNSEEN = "they count as a rare level, or as none (all indicators 0) where training had no rare ones"


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
    confounds : columns that were regressed out
    """

    task: str
    target: Field
    classes: tuple[str, ...] = ()
    features: tuple[Field, ...] = ()
    n_sparse: int = 0
    confounds: tuple[Confound, ...] = ()

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
            _check_size(table, field, found)
            columns |= found
            notes += _news(field, found[field.columns[0]])
        return pd.DataFrame(columns, index=table.frame.index), notes

    def confounds_in(self, table):
        """(numbers (n, k) of the confounds or None, names that the table lacks, notes) of a :class:`Table`."""
        absent = [each.field.name for each in self.confounds if each.field.name not in table.frame.columns]
        if absent or not self.confounds:
            return None, absent, []
        columns: list[np.ndarray] = []
        notes: list[str] = []
        for each in self.confounds:
            values, bad = first_values(each.field, table.frame)
            if bad.any():
                raise _not_understood(table, each.field, table.frame[each.field.name], bad)
            _check_size(table, each.field, {each.field.name: values})
            columns += each.numbers(values)
            notes += _news(each.field, values)
        return np.column_stack(columns), [], notes

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


def _check_size(table, field, found):
    """Refuse numbers whose squares are too large for a computer."""
    if field.kind != "number":
        return
    large = np.flatnonzero(np.abs(found[field.name]) > LARGEST)
    if len(large):
        raise TableError(
            f"{table.source}: column {field.name!r} holds {found[field.name][large[0]]:g} in row {large[0] + 1};"
            f" numbers up to {LARGEST:g} can be computed with.",
            f"Correct it, leave it empty, or say --drop {field.name!r}.",
        )


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
