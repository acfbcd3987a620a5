"""Readers of single formats: each returns (frame, sparse matrix or None), or says what is wrong."""

import csv
import re
import warnings
from contextlib import contextmanager
from itertools import islice
from zipfile import BadZipFile

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.io import arff
from sklearn.datasets import load_svmlight_file

from foldless.tables.errors import TableError
from foldless.tables.spreadsheets import unescaped

MOST_COLUMNS = 20_000
MISSING = ["?", ".", "-"]  # beside what pandas takes for missing: "", NA, NaN, null, None and others
SEPARATORS = ",;\t|"
CUT_OFF = "The file may be cut off; write it again."


@contextmanager
def broken(path, what, *errors):
    """Errors of other libraries as one line with a cause and a hint."""
    try:
        yield
    except TableError:
        raise
    except UnicodeDecodeError as error:
        raise TableError(
            f"{path.name} is not {error.encoding}: byte {error.object[error.start]:#x} is no text in it.",
            "Say --encoding latin-1 (or cp1252, utf-16), or save the file as UTF-8.",
        ) from None
    except errors as error:
        said = " ".join(str(error).split())[:120]
        raise TableError(f"{path.name} is no readable {what}{': ' + said if said else '.'}", CUT_OFF) from None


def check_width(path, n_columns):
    """Refuse tables so wide that they are something else, or turned on their side."""
    if n_columns > MOST_COLUMNS:
        raise TableError(
            f"{path.name} has {n_columns:,} columns; tables of up to {MOST_COLUMNS:,} are read.",
            "Are rows and columns exchanged? Wide data with many zeros go in as svmlight, other wide data as NPZ.",
        )


# -- text --------------------------------------------------------------------------------------------------------------


def read_csv(path, encoding, separator=None):
    """Comma separated values, or what the header separates by."""
    with broken(path, "CSV", csv.Error, pd.errors.ParserError, LookupError, OverflowError):
        encoding = "utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding
        with path.open(encoding=encoding, newline="") as file:
            head = "".join(islice(file, 50))
        first = head.splitlines()[0] if head.strip() else ""
        separator = separator or max(SEPARATORS, key=first.count)
        names, n_rows = _check_lines(path, encoding, separator)
        decimal = "," if separator != "," and re.search(r"(^|[;\t|])-?\d+,\d+($|[;\t|\r\n])", head, flags=re.M) else "."
        options = {"sep": separator, "encoding": encoding, "decimal": decimal, "na_values": MISSING}
        frame = pd.read_csv(path, header=0, index_col=False, low_memory=False, **options)
        if len(frame) != n_rows:
            raise TableError(f"{path.name}: {n_rows} lines were read as {len(frame)} rows.", "Check the quotes.")
        return unescaped(frame.set_axis(names, axis=1)), None


def read_tsv(path, encoding):
    """Values separated by tabs."""
    return read_csv(path, encoding, "\t")


def _check_lines(path, encoding, separator):
    """(names of the columns, number of rows); every line must have as many fields as the header, all quotes an end."""
    with path.open(encoding=encoding, newline="") as file:
        lines = csv.reader(file, delimiter=separator, strict=True)
        try:
            names = next((line for line in lines if line), [])
            if not names:
                raise TableError(f"{path.name} holds blank lines alone.", "Was it written to the end?")
            check_width(path, len(names))
            n_rows = 0
            for line in lines:
                n_rows += bool(line)
                if line and len(line) != len(names):
                    raise TableError(
                        f"{path.name}, line {lines.line_num}: {len(line)} fields where the header has {len(names)}.",
                        "The file may be cut off, a quote may be missing, or a cell may hold the separator unquoted.",
                    )
        except csv.Error as error:
            raise TableError(
                f"{path.name}, line {lines.line_num}: {error}.", "A quote may be missing, or the file be cut off."
            ) from None
    return names, n_rows


def read_arff(path, encoding):
    """ARFF with numbers and nominal attributes."""
    with broken(path, "ARFF", arff.ParseArffError, ValueError, StopIteration, IndexError, NotImplementedError):
        text = path.read_text(encoding=encoding)
        if "@data" not in text.lower():
            raise TableError(f"{path.name} has no @data.", CUT_OFF)
        if re.search(r"@data\s*(%.*\s*)*\{", text, flags=re.I):
            raise TableError(f"{path.name} is sparse ARFF, which is not read.", "Write it as svmlight or dense ARFF.")
        if re.search(r"^\s*@attribute\s+\S+\s+(string|relational)\b", text, flags=re.I | re.M):
            raise TableError(
                f"{path.name} has a string or relational attribute, which is not read.", "Write it as CSV."
            )
        with path.open(encoding=encoding) as file:
            rows, _ = arff.loadarff(file)
        check_width(path, len(rows.dtype.names or ()))
        columns = {}
        for name in rows.dtype.names or ():
            values = rows[name]
            if values.dtype.kind == "S":
                words = pd.Series([each.decode() for each in values.tolist()], dtype=object)
                values = words.where(words != "?", np.nan)
            columns[name] = values
        return pd.DataFrame(columns), None


def read_svmlight(path, encoding):
    """svmlight: the target first, then index:value pairs; the matrix stays sparse."""
    with broken(path, "svmlight file", ValueError, OverflowError):
        X, y, query = load_svmlight_file(str(path), query_id=True, zero_based=True)
        if not X.shape[1]:
            raise TableError(f"{path.name} has no features.", "Lines look like: 1 3:0.5 17:1.0")
        frame = pd.DataFrame({"target": y})
        if len(query) == len(y) and query.any():
            frame["qid"] = query
        return frame, X.tocsr()


# -- binary ------------------------------------------------------------------------------------------------------------


def read_parquet(path, encoding):
    """Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with broken(path, "Parquet file", pa.ArrowException, ValueError):
        schema = pq.read_schema(path)
        check_width(path, len(schema.names))
        nested = [field.name for field in schema if pa.types.is_nested(field.type)]
        if nested:
            raise TableError(f"{path.name}: column {nested[0]!r} holds lists or structures.", "Leave it out.")
        twice = {name for name in schema.names if schema.names.count(name) > 1}
        if twice:
            raise TableError(f"{path.name}: the column name {min(twice)!r} occurs more than once.", "Rename one.")
        return _without_index(pq.read_table(path)), None


def _without_index(table):
    """A table of arrow as a frame of NumPy's types, whatever types the frame had that it comes from.

    Its index becomes columns, named as ``reset_index`` would. As objects, dates would end in the year 9999.
    """
    frame = table.to_pandas(ignore_metadata=True, date_as_object=False)
    index = (table.schema.pandas_metadata or {}).get("index_columns", ())
    index = [each for each in index if isinstance(each, str) and each in frame]
    names = {f"__index_level_{k}__": f"level_{k}" if len(index) > 1 else "index" for k in range(len(index))}
    return frame[[*index, *frame.columns.difference(index, sort=False)]].rename(columns=names)


def read_excel(path, encoding):
    """The first sheet of an Excel file."""
    with broken(path, "Excel file", BadZipFile, ValueError, KeyError, EOFError), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # styles and extensions that hold no values
        cells = pd.read_excel(path, header=None, na_values=MISSING)
        if len(cells) < 2:
            raise TableError(f"{path.name} has no rows.", "The first sheet is read, its first row has the names.")
        check_width(path, cells.shape[1])
        names = ["" if pd.isna(each) else str(each) for each in cells.iloc[0]]
        return cells.iloc[1:].infer_objects().set_axis(names, axis=1), None


def read_npz(path, encoding):
    """NPZ: arrays of one axis are columns, a matrix has columns NAME 0, NAME 1, ...; or a sparse matrix of SciPy."""
    with broken(path, "NPZ file", BadZipFile, ValueError, KeyError, EOFError, TypeError):
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: _array(path, stored, name) for name in stored.files}
        sparse = None
        if {"format", "shape", "data"} <= set(arrays):
            own = {"format", "shape", "data", "indices", "indptr", "row", "col", "offsets", "_is_array"}
            matrix = sp.load_npz(path)
            if hasattr(matrix, "check_format"):
                matrix.check_format(full_check=True)  # indices beyond its columns would be read from other memory
            sparse = sp.csr_matrix(matrix)
            arrays = {name: each for name, each in arrays.items() if name not in own}
        n = {len(each) for each in arrays.values() if each.ndim} | ({sparse.shape[0]} if sparse is not None else set())
        if len(n) != 1 or any(each.ndim not in (1, 2) for each in arrays.values()):
            shapes = ", ".join(f"{name} {each.shape}" for name, each in arrays.items())
            raise TableError(f"{path.name} holds arrays whose rows do not agree: {shapes}.", "Align them.")
        check_width(path, sum(each.shape[1] if each.ndim == 2 else 1 for each in arrays.values()))
        columns: dict[str, np.ndarray] = {}
        for name, each in arrays.items():
            parts = {name: each} if each.ndim == 1 else {f"{name} {j}": each[:, j] for j in range(each.shape[1])}
            columns |= parts
        return pd.DataFrame(columns), sparse


def _array(path, stored, name):
    """One array of an NPZ file; arrays of Python objects are refused, as to load them may run code."""
    try:
        return stored[name]
    except ValueError as error:
        if "allow_pickle" not in str(error):
            raise
        raise TableError(
            f"{path.name}: the array {name!r} holds Python objects, which are not read.",
            "Save texts as array.astype(str) and numbers as array.astype(float).",
        ) from None
