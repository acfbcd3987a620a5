"""pyarrow, which is there only where the user has installed it."""

import importlib


def needs_pyarrow(what, module=None):
    """pyarrow or one of its modules, or an error that says how to get it."""
    try:
        return importlib.import_module("pyarrow" if module is None else f"pyarrow.{module}")
    except ImportError as error:
        raise ImportError(f"{what} needs pyarrow: pip install pyarrow.") from error
