"""Where results are written: all files of a run, or none; and tables, by the ending of their file."""

import os
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from foldless.tables import TableError
from foldless.tables.reading import ENDINGS
from foldless.tables.spreadsheets import escaped

ESCAPED = (
    "{n} cells begin as formulas do (with =, +, - or @): they are written with an apostrophe in front, so that"
    " spreadsheets do not run them."
)
SEPARATORS = {"csv": ",", "tsv": "\t"}
BINARY = ("parquet", "excel")


@contextmanager
def written(folder):
    """A folder to write into; when the block ends well its files take their places in ``folder``."""
    made = [each for each in (folder, *folder.absolute().parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with TemporaryDirectory(prefix=".foldless-", dir=folder) as beside:
            yield Path(beside)
            for each in Path(beside).iterdir():
                each.replace(folder / each.name)
    except BaseException:
        for each in made:
            each.rmdir()
        raise


@contextmanager
def written_file(path):
    """The same of one file: a path to write to. A link stays one."""
    path = path.resolve()
    with written(path.parent) as beside:
        yield beside / path.name


def check_folder(folder):
    """Refuse, before anything is computed, a folder that can not be written into."""
    if folder.exists() and not folder.is_dir():
        raise TableError(f"--out: {folder} is a file.", "Name a folder.")
    near = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    if not near.is_dir():
        raise TableError(f"--out: {near} is a file.", "Name a folder that is in none.")
    if not os.access(near, os.W_OK):
        raise TableError(f"--out: {near} may not be written into.", "Name another folder.")


def check_file(path):
    """The same of a file."""
    if path.is_dir():
        raise TableError(f"--out: {path} is a directory.", "Name a file.")
    if path.exists() and not path.is_file():
        raise TableError(f"--out: {path} is a pipe or a device, not a file.", "Name a file.")
    check_folder(path.parent)


def table_format(path):
    """The format of a table by the ending of its file; CSV for standard output, and where the ending tells nothing."""
    ending = "" if path is None else path.suffix.lstrip(".").lower()
    format = next((name for name, endings in ENDINGS.items() if ending in endings), "csv")
    if format not in (*SEPARATORS, *BINARY) or ending == "xlsm":
        raise TableError(f"--out: tables are not written as .{ending}.", "Use .csv, .tsv, .parquet or .xlsx.")
    return format


def as_text(frame, format):
    """(a table as text, notes on it), or (None, no notes) in a binary format."""
    if format == "json":
        return frame.to_json(orient="records", indent=1, force_ascii=False), []
    if format in BINARY:
        return None, []
    safe, n_cells = escaped(frame)
    return safe.to_csv(index=False, sep=SEPARATORS[format]), [ESCAPED.format(n=n_cells)] if n_cells else []


def write_binary(frame, path, format):
    """Write a table as Parquet, or as Excel file in which texts are texts, whatever they begin with."""
    if format == "parquet":
        frame.to_parquet(path, index=False)
        return
    import pandas as pd
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

    def shown(cell):
        return ILLEGAL_CHARACTERS_RE.sub("\N{REPLACEMENT CHARACTER}", cell) if isinstance(cell, str) else cell

    with pd.ExcelWriter(path, engine="openpyxl") as writer:
        frame.map(shown).rename(columns=shown).to_excel(writer, index=False)
        for line in writer.book.active.iter_rows():
            for cell in line:
                if cell.data_type in ("f", "e"):  # a formula, an error: a text such as =1+1 or #N/A
                    cell.data_type = "s"
