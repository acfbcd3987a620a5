"""The page: a study in sections, through one template that escapes every value.

The style sheet and the script are in the page, and its security policy names them by their hashes: nothing else runs,
and nothing is loaded, whatever the user's file contains.
"""

import base64
import hashlib
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from foldless.report import pictures, rows, tables, words
from foldless.tables.study import Study

FOLDER = Path(__file__).parent / "templates"


def write(study: Study, path) -> None:
    """Write a study as one HTML file.

    Parameters
    ----------
    study : Study, such as ``Study.from_json`` reads
    path : str or Path, the file
    """
    Path(path).write_text(html(study), encoding="utf-8")


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
        verdict=words.verdict(study),
        words=words,
        figures=_figures(study),
        grids=_grids(study),
        confusion=tables.confusion(study),
        style=Markup(style),
        script=Markup(script),
        policy=f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}",
    )


def _hash(text):
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _figures(study) -> dict[str, Any]:
    asked = {
        "scores": pictures.scores,
        "null": pictures.null,
        "roc": pictures.roc,
        "precision_recall": pictures.precision_recall,
        "calibration": pictures.calibration,
        "search": pictures.search,
        "learning": pictures.learning,
        "importance": rows.importance,
        "held_out": rows.held_out,
        "influence": rows.influence,
    }
    return {name: make(study) for name, make in asked.items()}


def _grids(study) -> dict[str, Any]:
    asked = (
        tables.columns,
        tables.scores,
        tables.folds,
        tables.confusions,
        tables.classes,
        tables.importance,
        tables.surprising,
        tables.influential,
        tables.groups,
        tables.timings,
    )
    return {make.__name__: make(study) for make in asked}
