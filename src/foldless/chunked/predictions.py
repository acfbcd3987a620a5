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

NUMBERS = np.empty(0)  # some floats, whatever they are
TEXT = "UST"


@contextmanager
def writer(predictions, plan):
    """A function ``write(start, columns)`` for consecutive rows; what it wrote is complete when the block ends well."""
    if predictions is None:
        yield lambda start, columns: None
    elif isinstance(predictions, str | os.PathLike):
        with _parquet(Path(predictions), plan) as write:
            yield write
    else:
        yield _into_arrays(predictions)


def check_arrays(predictions, n_rows, labels):
    """Refuse arrays that would suit no labels, or values, before the first chunk is read."""
    if predictions is None or isinstance(predictions, str | os.PathLike):
        return
    outputs = {"decision": NUMBERS, "prediction": None, "probability": NUMBERS} if labels else {"prediction": NUMBERS}
    known = {"fold": np.zeros(1, int), **outputs, **{f"loo_{name}": each for name, each in outputs.items()}}
    known.pop("loo_probability", None)
    _check_each(predictions, {name: (None, like) for name, like in known.items()}, n_rows)


def check_columns(predictions, plan, loo, n_rows):
    """Refuse columns that no pass will fill, and arrays that do not suit them, as soon as the classes are known."""
    labels = plan.layout.classes if plan.n_classes else None
    several = (plan.n_classes,) if plan.n_classes > 2 else ()
    outputs = {"decision": (several, NUMBERS), "prediction": ((), labels)}
    if labels is None:
        outputs = {"prediction": (() if plan.layout.n_outputs is None else (plan.m,), NUMBERS)}
    known: dict[str, tuple] = {"fold": ((), np.arange(plan.folds.k)), **outputs} if plan.folds.k > 1 else {}
    if plan.folds.k > 1 and plan.calibration is not None:
        known["probability"] = (plan.n_classes,), NUMBERS
    known |= {f"loo_{name}": each for name, each in outputs.items() if loo}
    if predictions is not None and not known:
        raise ValueError("predictions: nothing is held out without folds and with loo=False.")
    if predictions is not None and not isinstance(predictions, str | os.PathLike):
        _check_each(predictions, known, n_rows)


def _check_each(predictions, known, n_rows):
    """Refuse arrays that are not like ``known``, {column: (its second dimension, values that it may have)}.

    None stands for what is not known yet.
    """
    for given, array in _by_name(predictions).items():
        name = _first_column(known) if given is None else given
        shown = "predictions" if given is None else f"predictions[{given!r}]"
        if name not in known:
            raise ValueError(f"predictions: there is no column {name!r}; there are {list(known)}.")
        if not hasattr(array, "shape") or (n_rows is not None and array.shape[:1] != (n_rows,)):
            found = f"shape {array.shape}" if hasattr(array, "shape") else type(array).__name__
            rows = "the" if n_rows is None else n_rows
            raise ValueError(f"{shown}: an array with an entry for each of {rows} rows is needed, not {found}.")
        if not getattr(getattr(array, "flags", None), "writeable", True):
            raise ValueError(f"{shown}: the array is read-only.")
        shape, like = known[name]
        if shape is not None and array.shape[1:] != shape:
            raise ValueError(f"{shown}: {name} has shape {(n_rows, *shape)}, and the array {array.shape}.")
        dtype = getattr(array, "dtype", None)
        if like is not None and isinstance(dtype, np.dtype) and not _holds(dtype, like):
            some = f", such as {max(like.tolist(), key=lambda each: len(str(each)))!r}" if len(like) else ""
            raise ValueError(f"{shown}: {name} has values of type {like.dtype}{some}, which {dtype} cannot hold.")


def _holds(dtype, like):
    """Whether an array of this type keeps values of the type of ``like``, and these values as they are."""
    like = np.asarray(like.tolist()) if like.dtype.kind == "O" else like
    if dtype.kind == "O":
        return True
    if (dtype.kind in TEXT) != (like.dtype.kind in TEXT):
        return False
    if not len(like):
        return np.can_cast(like.dtype, dtype, "same_kind")
    return bool((like.astype(dtype).astype(like.dtype) == like).all())


def asks_for(predictions, name):
    """Whether this column is wanted; files take all, a single array only its own."""
    return name in predictions if isinstance(predictions, Mapping) else isinstance(predictions, str | os.PathLike)


def _by_name(predictions):
    """{column: array}; of a single array, whose column is to be found, {None: array}."""
    return predictions if isinstance(predictions, Mapping) else {None: predictions}


def _into_arrays(predictions):
    arrays = _by_name(predictions)

    def write(start, columns):
        for name, array in arrays.items():
            name = _first_column(columns) if name is None else name
            array[start : start + len(columns[name])] = columns[name]

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
