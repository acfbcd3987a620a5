"""Tables of files: reading, guessing what columns are, preparing, leaks, studies, model files (extra ``cli``)."""

from foldless.tables.study import Study

__all__ = ["Study"]
