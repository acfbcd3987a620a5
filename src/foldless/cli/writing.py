"""Where results are written: all files of a run, or none."""

import os
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from foldless.tables import TableError


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
