"""Files with rows and columns as one :class:`Table`: what is broken is refused with a cause and a hint."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from foldless.tables import formats
from foldless.tables.errors import TableError

ENDINGS = {
    "csv": ("csv",),
    "tsv": ("tsv", "tab"),
    "parquet": ("parquet", "pq"),
    "arff": ("arff",),
    "npz": ("npz",),
    "svmlight": ("svmlight", "libsvm", "svm"),
    "excel": ("xlsx", "xlsm"),
}
READERS: dict[str, Callable] = {
    "csv": formats.read_csv,
    "tsv": formats.read_tsv,
    "parquet": formats.read_parquet,
    "arff": formats.read_arff,
    "npz": formats.read_npz,
    "svmlight": formats.read_svmlight,
    "excel": formats.read_excel,
}


@dataclass(frozen=True)
class Table:
    """The columns of a file, and beside them a sparse matrix where the file holds one.

    Attributes
    ----------
    frame : pandas.DataFrame, one column for each of the file's
    source : str, name of the file
    format : str, one of those that ``read_table`` takes
    sparse : sparse matrix of features, or None
    encoding : str, that the file was read with
    """

    frame: pd.DataFrame
    source: str
    format: str
    sparse: Any = None
    encoding: str = "utf-8"


def read_table(path: str | Path, format: str | None = None, encoding: str = "utf-8") -> Table:
    """Read a file with rows and columns.

    Parameters
    ----------
    path : str or Path
    format : {"csv", "tsv", "parquet", "arff", "npz", "svmlight", "excel"}, default=None; None: by the ending
    encoding : str, default="utf-8"; of CSV, TSV and ARFF

    Returns
    -------
    Table

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from foldless.tables import read_table
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "visits.csv")
    ...     _ = path.write_text("age,sick\\n41,yes\\n23,no\\n")
    ...     read_table(path).frame["age"].tolist()
    [41, 23]
    """
    path = Path(path)
    try:
        if path.is_dir():
            raise TableError(f"{path} is a directory.", "Name a file in it.")
        with path.open("rb") as file:
            empty = not file.read(1)
        if empty:
            raise TableError(f"{path} is empty.", "Was it written to the end?")
        kind = format or _by_ending(path)
        if kind not in READERS:
            raise TableError(f"--format {kind!r} is not known.", f"Use one of {', '.join(READERS)}.")
        frame, sparse = READERS[kind](path, encoding)
    except FileNotFoundError:
        raise TableError(f"{path} does not exist.", "Check the path.") from None
    except PermissionError:
        raise TableError(f"{path} may not be read: no permission.", f"Try chmod u+r {path}") from None
    except OSError as error:
        raise TableError(f"{path} can not be read: {error.strerror or error}.", "Check the file.") from None
    except MemoryError:
        raise TableError(f"{path} does not fit into memory.", "Give fewer rows or columns.") from None
    return Table(_checked(frame, path), path.name, kind, sparse, encoding)


def _by_ending(path):
    ending = path.suffix.lstrip(".").lower()
    for kind, endings in ENDINGS.items():
        if ending in endings:
            return kind
    known = ", ".join(f".{each}" for endings in ENDINGS.values() for each in endings)
    raise TableError(f"{path.name}: the ending does not tell the format.", f"Known are {known}; or say --format csv.")


def _checked(frame, path):
    names = [str(name).strip() or f"unnamed {number}" for number, name in enumerate(frame.columns, 1)]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise TableError(
            f"{path.name}: the column name {twice[0]!r} occurs more than once.", "Give every column a name of its own."
        )
    if not len(frame):
        raise TableError(f"{path.name} has no rows.", "It may hold a header alone; was it written to the end?")
    return frame.set_axis(names, axis=1).reset_index(drop=True)
