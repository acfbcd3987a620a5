"""How cells of a table become rows for a model: names, kinds and words of the columns, as found in training.

Reading cells learns nothing from other rows. What is learnt (means, levels, scales) is in the pipeline behind.
"""

import json
from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy.sparse as sp

from foldless.tables.cells import CYCLES, DATE_FORMATS, is_far
from foldless.tables.errors import TableError
from foldless.tables.fields import Confound, Field, first_values
from foldless.tables.plain import built, plain

KINDS = ("number", "category", "boolean", "date")  # of columns that a model can use
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
            notes += _news(field, column, found[field.columns[0]])
        return pd.DataFrame(columns, index=table.frame.index), notes

    def confounds_in(self, table):
        """(numbers (n, k) of the confounds or None, names that the table lacks, notes) of a :class:`Table`."""
        absent = [each.field.name for each in self.confounds if each.field.name not in table.frame.columns]
        if absent or not self.confounds:
            return None, absent, []
        columns: list[np.ndarray] = []
        notes: list[str] = []
        for each in self.confounds:
            column = table.frame[each.field.name]
            values, bad = first_values(each.field, table.frame)
            if bad.any():
                raise _not_understood(table, each.field, column, bad)
            _check_size(table, each.field, {each.field.name: values})
            columns += each.numbers(values)
            notes += _news(each.field, column, values)
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
        """The schema that ``to_json`` has written; ValueError or TypeError for what is none."""
        return cls.from_plain(json.loads(text))

    @classmethod
    def from_plain(cls, value) -> "Schema":
        """The same of what JSON holds."""
        schema = built(cls, value)
        schema.check()
        return schema

    def check(self) -> None:
        """Refuse what no table has led to."""
        fields = (self.target, *self.features, *(each.field for each in self.confounds))
        names = [each.name for each in self.features]
        right = {
            "task": self.task in ("classification", "regression"),
            "classes": len(set(self.classes)) == len(self.classes)
            and (self.task == "regression") == (not self.classes),
            "features": len(set(names)) == len(names) and (self.n_sparse > 0) == (not names),
            "kind": all(each.kind in KINDS for each in fields),
            "date_format": all(each.date_format in ("", *DATE_FORMATS) for each in fields),
            "cycles": all(set(each.cycles) <= CYCLES.keys() for each in fields),
            "words": all(len(each.words) in (0, 2) for each in fields),
            "confounds": all(
                each.scale > 0 and abs(each.typical) + abs(each.mean) < LARGEST for each in self.confounds
            ),
        }
        if wrong := [name for name, is_right in right.items() if not is_right]:
            raise ValueError(f"{wrong[0]} of the schema can not be right")
        self.to_json().encode()  # half of a letter (a lone surrogate) could not be printed


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


def _news(field, column, values):
    """Notes on what training had not seen, and on dates that are no usual ones; all of it is dealt with."""
    notes = [*_unusual_dates(field, column, values)] if field.kind == "date" else []
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


def _unusual_dates(field, column, days):
    """Notes on dates that count as missing, and on those that are very early or late."""
    never, far = int((np.isnan(days) & column.notna().to_numpy()).sum()), int(is_far(days).sum())
    if never:
        yield f"{field.name!r}: dates of the years 1 and 9999 count as missing ({never} cells)."
    if far:
        yield (
            f"{field.name!r}: dates before 1678 or after 2261 are used as they are ({far} cells); leave such cells"
            " empty if they mean that there is no date."
        )
