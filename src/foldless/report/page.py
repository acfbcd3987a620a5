"""The page: a study in sections, through one template that escapes every value.

The style sheet and the script are in the page, and its security policy names them by their hashes: nothing else runs,
and nothing is loaded, whatever the user's file contains.
"""

import base64
import hashlib
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from foldless.report import columns, confusion, curves, rows, scores, search, tables, words
from foldless.report.summary import verdict
from foldless.tables.study import Study

FOLDER = Path(__file__).parent / "templates"
FIGURES = {
    "overview": scores.overview,
    "target": columns.target,
    "scores": scores.scores,
    "null": scores.null,
    "roc": curves.roc,
    "precision_recall": curves.precision_recall,
    "calibration": curves.calibration,
    "learning": scores.learning,
    "confusion": confusion.picture,
    "importance": columns.importance,
    "held_out": rows.held_out,
    "influence": rows.influence,
    "search": search.search,
    "settings": search.settings,
    "scales": search.scales,
    "timings": search.timings,
}
GRIDS = {
    "columns": tables.columns,
    "scores": tables.scores,
    "folds": tables.folds,
    "confusions": confusion.worst,
    "classes": confusion.classes,
    "groups": tables.groups,
    "importance": tables.importance,
    "surprising": tables.surprising,
    "settings": tables.settings,
}


def write(study: Study, path) -> None:
    """Write a study as one HTML file.

    Parameters
    ----------
    study : Study, such as ``Study.from_json`` reads
    path : str or Path, the file
    """
    Path(path).write_text(html(study), encoding="utf-8", errors="replace")


def html(study: Study) -> str:
    """The page of a study as text."""
    environment = Environment(
        loader=PackageLoader("foldless.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style, script = ((FOLDER / name).read_text(encoding="utf-8") for name in ("style.css", "script.js"))
    return environment.get_template("page.html").render(
        study=study,
        verdict=verdict(study),
        words=words,
        figures={name: make(study) for name, make in FIGURES.items()},
        grids={name: make(study) for name, make in GRIDS.items()},
        matrix=confusion.matrix(study),
        style=Markup(style),
        script=Markup(script),
        policy=f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}",
    )


def _hash(text):
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
