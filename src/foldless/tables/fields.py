"""A column that a model needs, as a feature or to be regressed out: its kind, and how its cells are read."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from foldless.tables.cells import as_booleans, as_dates, as_numbers, as_text, date_parts
from foldless.tables.errors import TableError


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
            values, bad = as_booleans(column)
        elif self.kind == "date":
            values, bad = as_dates(column, self.date_format)
            return date_parts(self.name, values, self.cycles), bad
        else:
            values, bad = as_numbers(column)
        return {self.name: values}, bad


@dataclass(frozen=True)
class Confound:
    """A column that is regressed out.

    Attributes
    ----------
    field : Field
    indicated : levels of a category that have an indicator
    typical, mean, scale : float, of numbers: what missing ones become, and how they are standardised
    """

    field: Field
    indicated: tuple[str, ...] = ()
    typical: float = 0.0
    mean: float = 0.0
    scale: float = 1.0

    def numbers(self, values):
        """Columns of numbers, from values as the field reads them."""
        if self.field.kind == "category":
            return [(values == each).astype(float) for each in self.indicated]
        filled = np.where(np.isfinite(values), values, self.typical)
        return [(filled - self.mean) / self.scale]


def first_values(field, frame):
    """(values of the first column that a field becomes, cells that were understood as nothing)."""
    found, bad = field.read(frame[field.name])
    return found[field.columns[0]], bad


def confounds_of(fields, frame):
    """The :class:`Confound` of each field, by the rows of training."""
    found = [_learnt(field, first_values(field, frame)[0]) for field in fields]
    if found and not any(each.indicated or each.field.kind != "category" for each in found):
        raise TableError("--confounds: no level of the categories occurs twice.", "Leave them out.")
    return tuple(found)


def _learnt(field, values):
    if field.kind == "category":
        return Confound(field, tuple(each for each in field.levels[1:] if (values == each).sum() > 1))
    if not np.isfinite(values).any() or np.nanstd(values) == 0:
        raise TableError(f"--confounds: {field.name!r} does not vary.", "Leave it out.")
    typical = float(np.nanmedian(values))
    filled = np.where(np.isfinite(values), values, typical)
    return Confound(field, (), typical, float(filled.mean()), float(filled.std()))
