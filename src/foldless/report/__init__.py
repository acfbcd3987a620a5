"""One self-contained HTML page from a study (extra ``cli``)."""

from foldless.report.page import html, write

__all__ = ["html", "write"]
