"""Where held-out predictions go: into arrays, or into a Parquet file that appears whole or not at all.

Columns are ``fold``, ``decision`` and ``prediction`` of the k-fold models, their ``probability`` where there is a
calibration, ``loo_decision`` and ``loo_prediction`` of leave-one-out; a regression has no decisions. Several classes or
outputs have a column each in a file, such as ``decision_versicolor`` or ``prediction_0``.
"""

import os
import shutil
from collections.abc import Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from foldless.chunked.arrow import needs_pyarrow

LAZY = "dask"  # in the place of a path: arrays that are computed when they are asked for


def is_lazy(predictions):
    """Whether they are wanted as dask arrays."""
    return isinstance(predictions, str) and predictions == LAZY


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


def check_writable(predictions):
    """Tell of folders that are not there before the work begins."""
    if is_lazy(predictions):
        raise ValueError("predictions='dask' are arrays of a cluster: give client=, or rows by chunked.dask.")
    if isinstance(predictions, str | os.PathLike):
        needs_pyarrow("predictions to a Parquet file")
        if not Path(predictions).parent.is_dir():
            raise FileNotFoundError(f"predictions={str(predictions)!r}: its folder does not exist.")


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
    temporary = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    opened: list = []

    def write(start, columns):
        table = pyarrow.table(_flat(columns, plan))
        if not opened:
            opened.append(parquet.ParquetWriter(temporary, table.schema))
        opened[0].write_table(table)

    try:
        yield write
        for each in opened:
            each.close()
        os.replace(temporary, path)
    except BaseException as error:
        with suppress(Exception):
            for each in opened:
                each.close()
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise _not_written(path, error) from error
        raise


def _not_written(path, error):
    return OSError(
        error.errno,
        f"predictions={str(path)!r} could not be written ({error}); nothing is left of them. Is the disk full, or the"
        " folder not there?",
    )


@contextmanager
def folder_for(predictions):
    """A folder for ``write_part``, by another name until the block ends well; None where nothing is asked for."""
    if predictions is None:
        yield None
        return
    path = Path(predictions).absolute()
    temporary = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    try:
        temporary.mkdir()
        yield temporary
        if path.is_dir():
            shutil.rmtree(path)
        os.replace(temporary, path)
    except OSError as error:
        raise _not_written(path, error) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def check_folder(predictions):
    """Tell what cannot be a folder of predictions before the work begins."""
    if predictions is None or is_lazy(predictions):
        return
    if not isinstance(predictions, str | os.PathLike):
        raise ValueError(
            f"predictions: found {type(predictions).__name__}; workers of a cluster write Parquet files: give the path"
            " of a folder that they share, or 'dask' for dask arrays."
        )
    check_writable(predictions)
    if Path(predictions).is_file():
        raise FileExistsError(f"predictions={str(predictions)!r} is a file; workers write into a folder.")


def write_part(folder, start, columns, plan):
    """A Parquet file of rows from number ``start`` on; written twice, it is the same."""
    pyarrow, parquet = needs_pyarrow("predictions to a Parquet file"), needs_pyarrow("predictions", "parquet")
    path = folder / f"rows-{start:012d}.parquet"
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
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
