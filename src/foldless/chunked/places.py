"""Files and folders for held-out predictions: nothing is lost that was there, and they are there whole or not at all.

A cluster writes into a folder. One that holds anything but older predictions is refused, and so is one that holds the
data. Older predictions stay until the new ones are complete.
"""

import os
import re
import shutil
from contextlib import contextmanager
from pathlib import Path

from foldless.chunked.arrow import needs_pyarrow

LAZY = "dask"  # in the place of a path: arrays that are computed when they are asked for
OWN = re.compile(
    r"\.?rows-\d{12}\.parquet(\.\d+)?"
)  # what workers write; with a dot and a number while it is unfinished


def is_lazy(predictions):
    """Whether they are wanted as dask arrays."""
    return isinstance(predictions, str) and predictions == LAZY


def is_path(predictions):
    """Whether they go to a file or a folder."""
    return isinstance(predictions, str | os.PathLike) and not is_lazy(predictions)


def part_name(start):
    """The name of the file of rows from number ``start`` on."""
    return f"rows-{start:012d}.parquet"


def unfinished(path):
    """Its name until it is complete."""
    return path.with_name(f".{path.name}.{os.getpid()}.unfinished")


def check_file(predictions, source):
    """Refuse before the work begins what cannot be a file of predictions in this process."""
    if is_lazy(predictions):
        raise ValueError("predictions='dask' are arrays of a cluster: give client=, or rows by chunked.dask.")
    if not is_path(predictions):
        return
    _check_parent(predictions)
    path = Path(predictions)
    if path.is_dir():
        raise IsADirectoryError(f"predictions={str(path)!r} is a folder; give the name of a Parquet file.")
    if any(_is_same(path, file) for file in source.files):
        raise FileExistsError(f"predictions={str(path)!r} is a file of the data; give another name.")


def check_folder(predictions, source):
    """Refuse before the work begins what cannot be a folder of predictions of a cluster."""
    if predictions is None or is_lazy(predictions):
        return
    if not is_path(predictions):
        raise ValueError(
            f"predictions: found {type(predictions).__name__}; workers of a cluster write Parquet files: give the path"
            " of a folder that they share, or 'dask' for dask arrays."
        )
    _check_parent(predictions)
    path = Path(predictions)
    if path.is_file():
        raise FileExistsError(f"predictions={str(path)!r} is a file; workers write into a folder.")
    if not path.is_dir():
        return
    inside = list(path.iterdir())
    foreign = sorted(each.name for each in inside if not _is_own(each))
    if foreign:
        raise FileExistsError(
            f"predictions={str(path)!r} holds {foreign[0]!r}, which is no file of predictions. Give the name of a new"
            " folder, or of one with older predictions alone."
        )
    if any(_is_same(each, file) for each in inside for file in source.files):
        raise FileExistsError(f"predictions={str(path)!r} holds files of the data; give another folder.")


def _check_parent(predictions):
    needs_pyarrow("predictions to a Parquet file")
    if not Path(predictions).absolute().parent.is_dir():
        raise FileNotFoundError(f"predictions={str(predictions)!r}: its folder does not exist.")


def _is_own(path):
    """Whether it is a file that workers wrote."""
    return OWN.fullmatch(path.name) is not None and path.is_file() and not path.is_symlink()


def _is_same(path, file):
    return path.exists() and os.path.exists(file) and os.path.samefile(path, file)


@contextmanager
def folder_for(predictions):
    """A folder for the files of workers, by another name until the block ends well; None for None."""
    if predictions is None:
        yield None
        return
    path = Path(predictions)
    path = path.resolve() if path.is_symlink() else path.absolute()
    temporary = unfinished(path)
    with told(path):
        temporary.mkdir()
    try:
        yield temporary
        with told(path):
            _put(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _put(temporary, path):
    """Give a folder its name; of an older one of that name only the files of workers go."""
    for each in temporary.iterdir():
        if each.name.startswith("."):  # left by a worker that died
            each.unlink()
    if not path.is_dir():
        os.replace(temporary, path)
        return
    older = path.with_name(f".{path.name}.{os.getpid()}.older")
    os.rename(path, older)
    try:
        os.replace(temporary, path)
    except OSError:
        os.rename(older, path)
        raise
    for each in older.iterdir():
        if _is_own(each):
            each.unlink()
        else:  # it came during the run
            os.rename(each, path / each.name)
    older.rmdir()


@contextmanager
def told(path):
    """Errors of the disk, with the name of what could not be written."""
    try:
        yield
    except OSError as error:
        raise OSError(
            error.errno,
            f"predictions={str(path)!r} could not be written ({error}); nothing is left of them. Is the disk full, or"
            " the folder not there?",
        ) from error


def finished(temporary):
    """The name that an unfinished folder will have."""
    return temporary.with_name(temporary.name[1:].rsplit(".", 2)[0])
