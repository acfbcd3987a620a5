"""Columns as numbers, texts, truth values and dates, each cell by itself: nothing is learnt here."""

import re
from datetime import datetime, timedelta

import numpy as np
import pandas as pd

WORDS = (("no", "yes"), ("false", "true"), ("n", "y"), ("f", "t"), ("0", "1"))  # of booleans, in small letters
DAYS = ("%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%m/%d/%y", "%d/%m/%y", "%d.%m.%y", "%d-%b-%Y")
TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p")
DATE_FORMATS = ("ISO8601", *(day + time for time in TIMES for day in DAYS))
MARKED = re.compile(r"([-+]?)([$€£¥]?)\s?([-+]?)(\d{1,3}(?:,\d{3})+(?:\.\d*)?|\d+(?:\.\d*)?|\.\d+)\s?([$€£¥%]?)")
EPOCH, DAY = datetime(1970, 1, 1), timedelta(days=1)
FIRST_DAY, LAST_DAY = (datetime(2, 1, 1) - EPOCH) / DAY, (datetime(9999, 1, 1) - EPOCH) / DAY - 1  # 1: time zones


def is_number(column):
    """Whether a column was read as numbers; truth values are none."""
    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)


def as_numbers(column, marked=True):
    """(numbers, whether a cell holds something that is no number); infinite numbers are none.

    Texts such as 44,045 and $12.50 are numbers, 12.5% is 12.5; unless not ``marked``. Times that something took are
    seconds, and dates are no numbers: their ticks would depend on the unit of the file.
    """
    if pd.api.types.is_datetime64_any_dtype(column):
        return np.full(len(column), np.nan), column.notna().to_numpy()
    if pd.api.types.is_timedelta64_dtype(column):
        column = column.dt.total_seconds()
    if pd.api.types.is_bool_dtype(column):
        column = column.astype(float)
    values = pd.to_numeric(column, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
    values = np.where(np.isfinite(values), values, np.nan)
    bad = np.isnan(values) & column.notna().to_numpy()
    if marked and bad.any() and not is_number(column):
        codes, texts = pd.factorize(column[bad])
        values[bad] = np.array([_unmarked(each)[0] for each in texts], dtype=float)[codes]
        bad &= np.isnan(values)
    return values, bad


def _unmarked(cell):
    """(number, mark) of a text with thousands separators, a sign of a currency or of per cent; (nan, "") of others."""
    found = MARKED.fullmatch(str(cell).strip())
    if found is None:
        return np.nan, ""
    sign, before, again, digits, after = found.groups()
    if (sign and again) or (before and after):
        return np.nan, ""
    return float(f"{sign or again}{digits.replace(',', '')}"), before or after


def marks_of(column):
    """("thousands", or signs of a currency or of per cent) in the texts of a column that are numbers, sorted.

    Cells without a sign count as "" where others have one.
    """
    texts = [str(each).strip() for each in column.dropna().unique()]
    found = [(each, *_unmarked(each)) for each in texts]
    signs = {mark for _, value, mark in found if not np.isnan(value)}
    commas = {"thousands"} if any("," in each for each, value, _ in found if not np.isnan(value)) else set()
    return tuple(sorted((signs if signs != {""} else set()) | commas))


def as_text(column):
    """Cells as text in an array of objects, missing ones as nan; whole numbers have no decimal point."""
    codes, values = pd.factorize(column)  # every different cell once, missing ones as -1
    if is_number(column):
        values = np.asarray(values, dtype=float)
        texts = [str(int(each)) if each.is_integer() else repr(each) for each in values.tolist()]
    else:
        texts = [str(each).strip() for each in values]
    return np.array([*texts, np.nan], dtype=object)[codes]


def as_booleans(column):
    """(1.0 for yes, 0.0 for no and nan for missing cells, whether a cell is another): any of the WORDS for them."""
    texts = as_text(column)
    missing = column.isna().to_numpy()
    small = np.array([each if isinstance(each, float) else each.lower() for each in texts], dtype=object)
    no, yes = ({pair[place] for pair in WORDS} for place in (0, 1))
    values = np.array([0.0 if each in no else 1.0 if each in yes else np.nan for each in small], dtype=float)
    return values, np.isnan(values) & ~missing


def as_dates(column, format):
    """(days since 1970, whether a cell is no date in this format); "" is the format of cells that were read as dates.

    Dates of the years 1 and 9999 stand for "never": they are nan, as missing cells are.
    """
    there = column.notna().to_numpy()
    if pd.api.types.is_datetime64_any_dtype(column):
        days = _days(column)
    else:
        format = format or "ISO8601"
        texts = column if format == "ISO8601" else column.astype(object)
        days = _days(pd.to_datetime(texts, format=format, errors="coerce", utc=True))
        lost = np.isnan(days) & there
        codes, cells = pd.factorize(column[lost])
        days[lost] = np.array([_far_day(str(each), format) for each in cells], dtype=float)[codes]
    bad = np.isnan(days) & there
    days[(days < FIRST_DAY) | (days > LAST_DAY)] = np.nan
    return days, bad


def _days(dates):
    """Days since 1970 of dates in any unit, missing ones nan; nanoseconds would end in the year 2262."""
    dates = dates.dt.tz_convert(None) if dates.dt.tz is not None else dates
    ticks = dates.to_numpy()
    ticks_a_day = np.timedelta64(1, "D") / np.ones(1, dtype=ticks.dtype.str.replace("M8", "m8"))[0]
    return np.where(np.isnat(ticks), np.nan, ticks.astype(np.int64) / ticks_a_day)


def _far_day(cell, format):
    """Days since 1970 of a date that nanoseconds do not reach, which pandas may read all of a column as; else nan."""
    try:
        date = datetime.fromisoformat(cell) if format == "ISO8601" else datetime.strptime(cell, format)
    except ValueError:
        return np.nan
    if pd.Timestamp.min.year <= date.year <= pd.Timestamp.max.year:
        return np.nan
    return (date.replace(tzinfo=None) - EPOCH - (date.utcoffset() or timedelta())) / DAY


def is_far(days):
    """Whether days since 1970 are beyond the years that nanoseconds reach."""
    ends = (pd.Timestamp.min.year + 1, pd.Timestamp.max.year)
    low, high = ((datetime(year, 1, 1) - EPOCH) / DAY for year in ends)
    return (days < low) | (days >= high)


CYCLES = {"year": 365.2425, "week": 7.0, "day": 1.0}  # days


def date_parts(name, days, cycles):
    """Columns of numbers by name: the days, and sine and cosine of the place in each of the cycles."""
    columns = {name: days}
    for cycle in cycles:
        angle = 2 * np.pi * days / CYCLES[cycle]
        columns |= {f"{name} (sine of the {cycle})": np.sin(angle), f"{name} (cosine of the {cycle})": np.cos(angle)}
    return columns


def cycles_of(days):
    """The cycles that dates go through: a year after more than one, a week, a day where there are times of day."""
    days = days[np.isfinite(days)]
    span = np.ptp(days) if len(days) else 0.0
    goes = {
        "year": span > 1.2 * CYCLES["year"],
        "week": span > 20 and len(np.unique(np.floor(days) % 7)) > 4,
        "day": len(np.unique(days % 1)) > 10,
    }
    return tuple(cycle for cycle, does in goes.items() if does)


def rare(n):
    """Rows below which a level of a category is rare: 10, and 5 % of few rows."""
    return int(min(10, max(1, n // 20)))
