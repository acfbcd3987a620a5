"""How commands end: 0 all is well, 2 a file, an option or the data do not serve, 1 an error that nobody foresaw.

Each error is a line with the cause and one with a hint. ``FOLDLESS_TRACEBACK=1`` shows where it came from.
"""

import functools
import os
import sys

import typer

from foldless.cli import show
from foldless.tables import TableError

VARIABLE = "FOLDLESS_TRACEBACK"
SHOW = f"Set {VARIABLE}=1 to see where it comes from."


def told(function):
    """A command whose errors are told in two lines."""

    @functools.wraps(function)
    def command(**given):
        try:
            return function(**given)
        except (typer.Exit, typer.Abort):
            raise
        except BrokenPipeError:  # whoever read the output has enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except Exception as error:
            if os.environ.get(VARIABLE):
                raise
            code, cause, hint = _in_words(error)
            show.complain(cause, hint)
        raise typer.Exit(code)

    return command


def _in_words(error):
    """(exit code, cause, hint) of an error."""
    said = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, TableError):
        return 2, error.cause, error.hint
    if isinstance(error, MemoryError):
        return 2, f"not enough memory: {said}.", "Give fewer rows, or --drop columns."
    if isinstance(error, OSError):
        name = f"{error.filename}: " if error.filename else ""
        return 2, f"{name}{error.strerror or said}.", "Check the path, its permissions and the space left."
    if isinstance(error, ValueError):  # the library's own words for data that it can not work with
        return 2, said, f"Look at the columns that are used (--drop, --keep). {SHOW}"
    return 1, f"{type(error).__name__}: {said}", f"This is a mistake of foldless, not of yours. {SHOW}"
