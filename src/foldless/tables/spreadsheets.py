"""Texts in CSV and TSV files that a spreadsheet would run as a formula: an apostrophe in front keeps it from that.

Such texts begin with =, +, -, @, a tab or a line break (OWASP, "CSV injection"). Numbers stay numbers. Files are read
back without the apostrophe.
"""

import re

import pandas as pd

WIDE = "\N{FULLWIDTH EQUALS SIGN}\N{FULLWIDTH PLUS SIGN}\N{FULLWIDTH HYPHEN-MINUS}\N{FULLWIDTH COMMERCIAL AT}"
FORMULA = re.compile(rf"\s*[=+@{WIDE}-]|[\t\r\n]")
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
APOSTROPHE = "'"


def _is_run(text):
    """Whether a spreadsheet may run a text, apostrophes in front apart."""
    text = text.lstrip(APOSTROPHE)
    return FORMULA.match(text) is not None and NUMBER.fullmatch(text) is None


def escaped(frame):
    """(the frame with an apostrophe before each text that a spreadsheet may run, how many cells these are)."""
    columns, n_cells = {}, 0
    for name, column in frame.items():
        columns[name] = column
        if _holds_texts(column):
            run = column.map(lambda cell: isinstance(cell, str) and _is_run(cell)).astype(bool)
            columns[name] = column.where(~run, APOSTROPHE + column.astype(str))
            n_cells += int(run.sum())
    found = pd.DataFrame(columns, index=frame.index)
    return found.set_axis([APOSTROPHE + each if _is_run(each) else each for each in frame.columns], axis=1), n_cells


def unescaped(frame):
    """The frame that was escaped, but for names of columns, which stay as the file has them."""
    for place, (_, column) in enumerate(frame.items()):
        if _holds_texts(column) and any(map(_is_escaped, column.unique())):
            frame.isetitem(place, column.map(lambda cell: cell[1:] if _is_escaped(cell) else cell, na_action="ignore"))
    return frame


def _is_escaped(cell):
    return isinstance(cell, str) and cell.startswith(APOSTROPHE) and _is_run(cell)


def _holds_texts(column):
    return pd.api.types.is_object_dtype(column) or pd.api.types.is_string_dtype(column)
