"""What a column holds, guessed from its cells: numbers, categories, truth values, dates, ids or nothing."""

import re
from typing import NamedTuple

import numpy as np
import pandas as pd

from foldless.tables.cells import DATE_FORMATS, WORDS, as_dates, as_numbers, as_text, is_number, marks_of, rare

FEW_WORDS = 3  # different ones among numbers, which then count as missing ("unknown")
NUMBERS_SHARE = 0.9  # of cells that are numbers, from which the others count as missing
LONG_TEXT = 40  # letters on average
START = r"(^|[_\s.-])"
ID_NAME = re.compile(
    START + r"(id|uuid|guid|key|index|no|nr|num|number|mrn|ssn|serial|barcode|accession|unnamed( \d+)?)$"
    r"|(?<=[a-z])(?-i:I[dD]|N[or]|Num|Number)$",
    flags=re.I,
)
WHOSE_NAME = re.compile(  # of whom, or what, rows are: several rows can be of one
    START
    + r"(id|uuid|guid|mrn|ssn)$|(?<=[a-z])(?-i:I[dD])$|^(patient|subject|person|participant|proband|customer|client"
    r"|user|member|employee|student|pupil|animal|mouse|donor|family|household)s?([_\s.-]?(no|nr|num|number|code|name))?$",
    flags=re.I,
)


class Guess(NamedTuple):
    """What a column is taken for and why; words that count as missing, words of booleans, the format of dates."""

    kind: str
    why: str
    missing_words: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    date_format: str = ""


def guess_kind(name, column):
    """The :class:`Guess` of a column."""
    present = column.dropna()
    n, distinct = len(present), present.nunique()
    if not n:
        return Guess("empty", "no cell has a value")
    if distinct == 1 and n == len(column):
        return Guess("constant", f"every cell is {str(present.iloc[0])[:30]!r}")
    if pd.api.types.is_datetime64_any_dtype(column):
        return _date("read as dates", present, "") or _levels(column, present, distinct)
    truth = _truth(present) if distinct <= 6 else ()  # such as Yes, yes, YES, No
    if truth:
        return Guess("boolean", f"only {truth[0]!r} and {truth[1]!r}", words=truth)
    if is_number(column):
        return _number(name, present, distinct)
    return _words(column, present, distinct)


def _truth(present):
    words = {each.lower() for each in as_text(present.drop_duplicates())}
    return next((pair for pair in WORDS if words == set(pair)), ())


def _number(name, present, distinct):
    values = present.to_numpy(dtype=float)
    if distinct == len(values) > 9 and np.all(values == np.round(values)):
        if np.all(np.diff(np.sort(values)) == 1):
            return Guess("id", "whole numbers without a gap, each once")
        if ID_NAME.search(str(name)):
            return Guess("id", "its name, and every number occurs once")
    return Guess("number", "numbers")


def _words(column, present, distinct):
    marks = marks_of(present)
    one = len(set(marks) - {"thousands"}) <= 1  # the same in every cell
    values, bad = as_numbers(column, marked=one)
    others = sorted(set(as_text(column[bad])))
    said = _marks_in_words(marks) if one else ""
    if not bad.any():
        return Guess("number", said or "numbers written as text")
    if np.isfinite(values).sum() >= NUMBERS_SHARE * len(present) and len(others) <= FEW_WORDS:
        shown = ", ".join(map(repr, others))
        why = f"{said or 'numbers'}; {int(bad.sum())} cells with {shown} count as missing"
        return Guess("number", why, tuple(others))
    dated = any(each.isdigit() for each in str(present.iloc[0]))
    fitting = [format for format in DATE_FORMATS if dated and not _dates_fail(column, present, format)]
    if fitting:
        other = f", not {fitting[1]}" if len(fitting) > 1 and fitting[0] != "ISO8601" else ""
        found = _date(f"dates, {fitting[0]}{other}", present, fitting[0])
        return found or _levels(column, present, distinct)
    return _levels(column, present, distinct)


def _marks_in_words(marks):
    words = {"thousands": "thousands separators", "%": "a per cent sign (12.5% is 12.5)"}
    named = [words.get(each, f"the sign {each!r}") for each in sorted(marks, key=lambda each: each == "thousands")]
    return f"numbers with {' and '.join(named)}" if named else ""


def _dates_fail(column, present, format):
    """Whether a cell is no date in a format; a few cells tell most often."""
    first = present.iloc[:20]
    return any(as_dates(each, format)[1].any() for each in (first, column))


def _date(why, present, format):
    """The guess of a column of dates; None where all of them stand for "never"."""
    never = np.isnan(as_dates(present, format)[0])
    if never.all():
        return None
    if never.any():
        why = f"{why}; {int(never.sum())} cells such as {str(present[never].iloc[0])[:10]!r} count as missing"
    return Guess("date", why, date_format=format)


def _levels(column, present, distinct):
    texts = pd.Series(as_text(present))
    counts = texts.value_counts()
    missing = len(column) - len(present)
    if counts.iloc[0] < max(2, rare(len(column))) and distinct > len(present) / 2 and missing < rare(len(column)):
        if texts.str.len().mean() > LONG_TEXT:
            return Guess("text", "long texts, nearly every one different")
        return Guess("id", f"{distinct} different texts in {len(present)} rows")
    pooled = int((counts < rare(len(column))).sum())
    note = f", {pooled} of them rare, pooled" if pooled > 1 else ""
    return Guess("category", f"{distinct} different texts{note}")
