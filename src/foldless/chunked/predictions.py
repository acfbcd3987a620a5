"""Where held-out predictions go: into arrays, or into a Parquet file that appears whole or not at all.

Columns are ``fold``, ``decision`` and ``prediction`` of the k-fold models, their ``probability`` where there is a
calibration, ``loo_decision`` and ``loo_prediction`` of leave-one-out; a regression has no decisions. Several classes or
outputs have a column each in a file, such as ``decision_versicolor`` or ``prediction_0``.
"""

import os
from collections.abc import Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from foldless.chunked.arrow import needs_pyarrow
from foldless.chunked.places import finished, part_name, told, unfinished


@contextmanager
def writer(predictions, plan, n_rows):
    """A function ``write(start, columns)`` for consecutive rows; what it wrote is complete when the block ends well."""
    if predictions is None:
        yield lambda start, columns: None
    elif isinstance(predictions, str | os.PathLike):
        with _parquet(Path(predictions), plan) as write:
            yield write
    else:
        yield _into_arrays(predictions, n_rows)


def check_lengths(predictions, n_rows):
    """Tell of arrays that are too short before the work begins."""
    if predictions is None or isinstance(predictions, str | os.PathLike):
        return
    for name, array in _by_name(predictions).items():
        shown = "predictions" if name is None else f"predictions[{name!r}]"
        if not hasattr(array, "shape") or array.shape[:1] != (n_rows,):
            found = f"shape {array.shape}" if hasattr(array, "shape") else type(array).__name__
            raise ValueError(f"{shown}: an array with an entry for each of {n_rows} rows is needed, not {found}.")


def check_columns(predictions, plan, loo):
    """Tell of columns that no pass will fill before the work begins."""
    outputs = ("decision", "prediction") if plan.n_classes else ("prediction",)
    known = ["fold", *outputs, *["probability"] * (plan.calibration is not None)] if plan.folds.k > 1 else []
    known += [f"loo_{name}" for name in outputs if loo]
    if predictions is not None and not known:
        raise ValueError("predictions: nothing is held out without folds and with loo=False.")
    for name in predictions if isinstance(predictions, Mapping) else ():
        if name not in known:
            raise ValueError(f"predictions: there is no column {name!r}; there are {known}.")


def asks_for(predictions, name):
    """Whether this column is wanted; files take all, a single array only its own."""
    return name in predictions if isinstance(predictions, Mapping) else isinstance(predictions, str | os.PathLike)


def _by_name(predictions):
    """{column: array}; of a single array, whose column is to be found, {None: array}."""
    return predictions if isinstance(predictions, Mapping) else {None: predictions}


def _into_arrays(predictions, n_rows):
    arrays = _by_name(predictions)

    def write(start, columns):
        for name, array in arrays.items():
            name = _first_column(columns) if name is None else name
            values = columns[name]
            if array.shape[1:] != values.shape[1:]:
                shape = (n_rows, *values.shape[1:])
                raise ValueError(f"predictions: {name} has shape {shape}, and the array {array.shape}.")
            array[start : start + len(values)] = values

    return write


def _first_column(columns):
    """What a single array is for: decisions or values, of the k-fold models where there are some."""
    return next(name for name in ("decision", "prediction", "loo_decision", "loo_prediction") if name in columns)


@contextmanager
def _parquet(path, plan):
    """Rows go to a temporary file beside the one asked for, which takes its name at the end."""
    pyarrow, parquet = needs_pyarrow("predictions to a Parquet file"), needs_pyarrow("predictions", "parquet")
    temporary, opened = unfinished(path), list[Any]()

    def write(start, columns):
        table = pyarrow.table(_flat(columns, plan))
        with told(path):
            if not opened:
                opened.append(parquet.ParquetWriter(temporary, table.schema))
            opened[0].write_table(table)

    try:
        yield write
        with told(path):
            for each in opened:
                each.close()
            os.replace(temporary, path)
    except BaseException:
        with suppress(Exception):
            for each in opened:
                each.close()
        temporary.unlink(missing_ok=True)
        raise


def write_part(folder, start, columns, plan):
    """A Parquet file of rows from number ``start`` on; written twice, it is the same."""
    pyarrow, parquet = needs_pyarrow("predictions to a Parquet file"), needs_pyarrow("predictions", "parquet")
    path = folder / part_name(start)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with told(finished(folder)):
        parquet.write_table(pyarrow.table(_flat(columns, plan)), temporary)
        os.replace(temporary, path)


def _flat(columns, plan):
    """Columns of several classes or outputs one by one."""
    flat = {}
    for name, values in columns.items():
        if values.ndim == 1:
            flat[name] = values
            continue
        tags = plan.layout.classes.tolist() if plan.n_classes else range(values.shape[1])
        flat |= {f"{name}_{tag}": np.ascontiguousarray(each) for tag, each in zip(tags, values.T, strict=True)}
    return flat
