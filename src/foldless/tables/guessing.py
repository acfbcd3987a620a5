"""The guess of a whole table: which columns are features of which kind, what the target is, and why."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from foldless.tables.cells import as_dates, as_numbers, as_text, cycles_of, is_number
from foldless.tables.errors import TableError, unknown_column
from foldless.tables.fields import Field
from foldless.tables.kinds import Guess, guess_kind
from foldless.tables.parts import Column
from foldless.tables.schema import KINDS, LARGEST, Schema

MOST_CLASSES = 200
MOST_CODES = 20  # whole numbers without a gap that are taken for classes
FEW_VALUES = 50  # different whole numbers up to which it is said that they could be classes


@dataclass(frozen=True)
class Wishes:
    """What the user says of the columns; names as in the file.

    Attributes
    ----------
    target : str, the column to predict; "" for the target of a svmlight file
    task : {"classification", "regression"} or None
    drop, keep : columns that are no features; columns that alone are features
    categorical, numeric : columns that are categories, or numbers, whatever they look like
    groups, weights : str or None
    confounds : columns
    """

    target: str = ""
    task: str | None = None
    drop: Sequence[str] = ()
    keep: Sequence[str] = ()
    categorical: Sequence[str] = ()
    numeric: Sequence[str] = ()
    groups: str | None = None
    weights: str | None = None
    confounds: Sequence[str] = ()

    def check(self, table):
        """These wishes with the name of the target, if the table has all columns that they name."""
        names = list(table.frame.columns)
        target = self.target or ("target" if table.sparse is not None and "target" in names else "")
        if not target:
            raise TableError("--target is not given.", f"Name the column to predict, such as {names[-1]!r}.")
        lists = ("drop", "keep", "categorical", "numeric", "confounds")
        asked = [("--target", target), ("--groups", self.groups), ("--weights", self.weights)]
        asked += [(f"--{option}", name) for option in lists for name in getattr(self, option)]
        for option, name in asked:
            if name is not None and name not in names:
                raise unknown_column(option, name, names)
            if option != "--target" and name == target:
                raise TableError(f"{option}: {name!r} is the target.", "Name another column.")
        both = set(self.categorical) & set(self.numeric)
        if both:
            raise TableError(f"{min(both)!r} is in --categorical and in --numeric.", "Name it once.")
        return replace(self, target=target)

    def role(self, name):
        """The role of a column that is not the target, and why; ("feature", "") where nothing is said."""
        roles = {self.groups: "groups", self.weights: "weights"} | dict.fromkeys(self.confounds, "confound")
        if name in roles:
            return roles[name], "--confounds" if roles[name] == "confound" else f"--{roles[name]}"
        if name in self.drop:
            return "dropped", "--drop"
        if self.keep and name not in self.keep:
            return "dropped", "not in --keep"
        return "feature", ""


@dataclass(frozen=True)
class Guessed:
    """The guess: the schema, the columns with their roles, the fields of confounds, and doubts about the task."""

    schema: Schema
    columns: tuple[Column, ...]
    confounds: tuple[Field, ...]
    doubt: str = ""


def guess(table, wishes: Wishes) -> Guessed:
    """What the columns of a table are, with the wishes of the user."""
    wishes = wishes.check(table)
    columns: list[Column] = []
    features: list[Field] = []
    confounds: list[Field] = []
    for name, column in table.frame.items():
        if name == wishes.target:
            columns.append(_described(name, column, "target", _unpooled(guess_kind(name, column))))
            continue
        role, why = wishes.role(name)
        found = _wished(name, column, wishes) or guess_kind(name, column)
        if role == "feature" and found.kind not in KINDS:
            role = "dropped"
        elif role == "feature" and table.sparse is not None:
            role, why = "dropped", "beside a sparse matrix, which alone is learnt from"
        if role in ("feature", "confound"):
            field = _field(name, column, found)
            (features if role == "feature" else confounds).append(field)
        columns.append(_described(name, column, role, found._replace(why=why or found.why)))
    if not features and table.sparse is None:
        shown = "; ".join(f"{each.name!r}: {each.why}" for each in columns if each.role == "dropped")
        raise TableError("no column is left to predict from.", f"Left out were {shown[:200] or 'none'}.")
    n_sparse = 0 if table.sparse is None else table.sparse.shape[1]
    task, target, classes = _target(table, wishes)
    schema = Schema(task, target, classes, () if n_sparse else tuple(features), n_sparse)
    doubt = "" if wishes.task else _doubt(table.frame[wishes.target], schema)
    return Guessed(schema, tuple(columns), tuple(confounds), doubt)


def _unpooled(found):
    """The guess of a target: classes are not pooled, however rare."""
    return found._replace(why=found.why.split(",")[0]) if found.kind == "category" else found


def _wished(name, column, wishes):
    """The guess that an option makes."""
    if name in wishes.categorical:
        return Guess("category", "--categorical")
    if name in wishes.numeric:
        values, bad = as_numbers(column)
        if not np.isfinite(values).any():
            raise TableError(f"--numeric: {name!r} holds no numbers.", "Leave it out of --numeric.")
        return Guess("number", "--numeric", tuple(sorted(set(as_text(column[bad])))))
    found = guess_kind(name, column) if name in wishes.keep or name in wishes.confounds else None
    if found is not None and found.kind in ("id", "text"):
        return Guess("number" if is_number(column) else "category", "--keep")
    return found


def _field(name, column, found):
    field = Field(name, found.kind, bool(column.isna().any()), found.missing_words, found.words, found.date_format)
    field = replace(field, missing=field.missing or bool(found.missing_words))
    if found.kind == "date":
        days = as_dates(column, found.date_format)[0]
        return replace(field, missing=bool(np.isnan(days).any()), cycles=cycles_of(days))
    if found.kind == "category":
        return replace(field, levels=tuple(sorted(set(as_text(column.dropna())))))
    return field


def _described(name, column, role, found):
    present = column.dropna()
    if found.kind == "number" and len(present):
        values, _ = as_numbers(present)
        values = values[np.isfinite(values)]
        shown = [f"{each:.4g}" for each in (values.min(), np.median(values), values.max())] if len(values) else []
    else:
        shown = [str(each)[:40] for each in pd.Series(as_text(present)).value_counts().index[:3]]
    missing = int(column.isna().sum())
    return Column(name, role, found.kind, found.why, missing, int(present.nunique()), tuple(shown))


def _target(table, wishes):
    """(task, field of the target, classes)."""
    column = table.frame[wishes.target]
    present = column.dropna()
    if not len(present):
        raise TableError(f"the target {wishes.target!r} has no values.", "All of its cells are missing.")
    task = wishes.task or _task(present)
    if task == "regression":
        values, bad = as_numbers(present)
        if bad.any():
            cell = str(present[bad].iloc[0])[:40]
            raise TableError(f"the target {wishes.target!r} holds {cell!r}, no number.", "Say --task classification.")
        if np.abs(values).max() > LARGEST:
            cause = f"the target {wishes.target!r} holds {values[np.abs(values).argmax()]:g};"
            raise TableError(f"{cause} numbers up to {LARGEST:g} can be computed with.", "Give it in other units.")
        if len(np.unique(values)) < 2:
            raise TableError(f"the target {wishes.target!r} is {values[0]:g} in every row.", "Choose another target.")
        return task, Field(wishes.target, "number"), ()
    classes = sorted(set(as_text(present)))
    if len(classes) < 2:
        raise TableError(
            f"the target {wishes.target!r} has one class only, {classes[0]!r}.", "Two are needed, to tell them apart."
        )
    if len(classes) > max(2, min(MOST_CLASSES, len(present) // 2)) and len(present) > 3:
        raise TableError(
            f"the target {wishes.target!r} has {len(classes)} classes in {len(present)} rows.",
            "Is it an id? Then choose another." if as_numbers(present)[1].any() else "Say --task regression.",
        )
    return task, Field(wishes.target, "category", levels=tuple(classes)), tuple(classes)


def _doubt(column, schema):
    """What to say if the task is meant otherwise; "" where only one makes sense."""
    values, bad = as_numbers(column)
    values = np.unique(values[np.isfinite(values)])
    if bad.any() or pd.api.types.is_bool_dtype(column) or len(values) < 3:
        return ""
    if schema.classes:
        return "Say --task regression if its numbers are amounts."
    whole = np.all(values == np.round(values)) and len(values) <= FEW_VALUES
    return "Say --task classification if its numbers stand for classes." if whole else ""


def _task(present):
    """Values for numbers with many values or with fractions, else classes."""
    if not is_number(present):
        numbers, bad = as_numbers(present)
        if bad.any() or pd.api.types.is_bool_dtype(present):
            return "classification"
        present = pd.Series(numbers)
    values, counts = np.unique(present.to_numpy(dtype=float), return_counts=True)
    whole = bool(np.all(values == np.round(values)))
    codes = whole and np.ptp(values) + 1 == len(values) <= MOST_CODES and counts.min() >= 5
    few = len(values) <= 10 and len(values) <= len(present) / 2
    return "classification" if len(values) == 2 or (whole and few) or codes else "regression"
