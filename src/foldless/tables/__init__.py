"""Tables of files: reading, guessing what columns are, preparing, leaks, studies, model files (extra ``cli``)."""

from foldless.tables.errors import TableError
from foldless.tables.folds import inner_cv, outer_folds
from foldless.tables.guessing import Wishes, guess
from foldless.tables.model_file import TableModel, load_model, save_model
from foldless.tables.preparing import pipeline
from foldless.tables.reading import Table, read_table
from foldless.tables.rows import Rows
from foldless.tables.running import Run, prepare
from foldless.tables.schema import Schema
from foldless.tables.searching import Options
from foldless.tables.study import Study

__all__ = [
    "Options",
    "Rows",
    "Run",
    "Schema",
    "Study",
    "Table",
    "TableError",
    "TableModel",
    "Wishes",
    "guess",
    "inner_cv",
    "load_model",
    "outer_folds",
    "pipeline",
    "prepare",
    "read_table",
    "save_model",
]
