"""The base of results: a tidy table, and a card for notebooks with a picture of a few lines.

A result names its columns, each with one entry for every row (``_columns``), and draws itself (``_picture``) with
:func:`histogram`, :func:`lanes` or :func:`points`. Pictures are SVG in the colour of the text around them: they suit
light and dark pages, and need no library. Every text is escaped.
"""

import importlib
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

WIDTH, LANE, EDGE = 340.0, 18.0, 6.0  # of pictures, in pixels; the room around marks
NAMES, NUMBERS = 150.0, 50.0  # where marks begin, to the right of names or numbers
LETTERS = 22  # of such names
MOST_ROWS, MOST_POINTS, MOST_LETTERS = 10, 400, 60  # of a card
FAINT = 0.35


class Result:
    """Base of results: ``to_frame`` for pandas, and HTML for notebooks."""

    def _columns(self) -> Mapping[str, Sequence]:
        """{name: values} of the table."""
        raise NotImplementedError

    def _picture(self) -> str:
        return ""

    def _caption(self) -> str:
        return str(self).splitlines()[0]

    def to_frame(self) -> Any:
        """The result as a table of pandas; the class says what its rows are."""
        return frame(self._columns())

    def _repr_html_(self) -> str:
        return card(self._caption(), self._picture(), self._columns())


def frame(columns):
    """The ``DataFrame`` of columns."""
    try:
        pandas = importlib.import_module("pandas")
    except ImportError as error:
        raise ImportError("to_frame needs pandas: pip install pandas") from error
    return pandas.DataFrame({name: list(values) for name, values in columns.items()})


def by_name(dicts, prefix=""):
    """Columns of a list of dicts, None where one lacks a name; those of lists of dicts hold lists."""
    flat = [params for entry in dicts for params in (entry if isinstance(entry, list) else [entry])]
    names = dict.fromkeys(name for params in flat for name in params)

    def value(entry, name):
        return [params.get(name) for params in entry] if isinstance(entry, list) else entry.get(name)

    return {f"{prefix}{name}": [value(entry, name) for entry in dicts] for name in names}


# -- HTML --------------------------------------------------------------------------------------------------------------


def element(name, *inside, **attributes):
    """An element of HTML around ``inside``, which is not escaped; attributes are, and their underscores are hyphens."""
    text = "".join(f' {key.replace("_", "-")}="{escape(short(value))}"' for key, value in attributes.items())
    return f"<{name}{text}>{''.join(inside)}</{name}>"


def short(value):
    """A number with four digits, parameters by name, anything else as text."""
    if isinstance(value, dict):
        return ", ".join(f"{name}={short(entry)}" for name, entry in value.items())
    if isinstance(value, float | np.floating):
        return f"{value:.4g}"
    if isinstance(value, list | tuple | np.ndarray):
        return f"[{', '.join(map(short, value))}]"
    return str(value)


def card(caption, picture, columns):
    """A caption, a picture, and the first rows of a table."""
    names, n = list(columns), len(next(iter(columns.values()), ()))
    head = element("tr", *(element("th", escape(str(name))) for name in names))
    rows = [
        element("tr", *(element("td", escape(_cut(short(columns[name][row]), MOST_LETTERS))) for name in names))
        for row in range(min(n, MOST_ROWS))
    ]
    more = f", the first {MOST_ROWS} of them" if n > MOST_ROWS else ""
    table = element("table", element("thead", head), element("tbody", *rows))
    summary = element("summary", f"{n} row{'s' * (n != 1)}{more}", style="cursor: pointer")
    parts = element("p", escape(caption)), picture, element("details", summary, table)
    return element("div", *parts, style="max-width: 100%; overflow-x: auto")


def _cut(text, most):
    return text if len(text) <= most else f"{text[: most - 1]}…"


# -- pictures ----------------------------------------------------------------------------------------------------------


def histogram(values, mark, label):
    """How often values occur, with a line at ``mark``."""
    values = np.asarray(values, float)
    values = values[np.isfinite(values)]
    low, high = _ends([values, [mark]])
    counts, edges = np.histogram(values, bins=30, range=(low, high))
    heights = 50.0 * counts / max(counts.max(initial=0), 1)
    x = _across(edges, low, high)
    bars = [
        element("rect", x=x[i], y=54 - heights[i], width=x[i + 1] - x[i] - 0.5, height=heights[i], opacity=FAINT)
        for i in np.flatnonzero(counts)
    ]
    line = [] if not np.isfinite(mark) else [_stroke(_across(mark, low, high), 2.0, 54.0)]
    return _svg(54.0, label, *bars, *line, *_axis(54.0, low, high))


def lanes(rows, label, line=None):
    """A lane for each name: its values as points, and its interval (low, high) if it has one.

    ``rows`` are (name, values, interval or None); ``line`` is a value to compare with.
    """
    numbers = [np.ravel(values) for _, values, _ in rows]
    numbers += [np.ravel(interval) for *_, interval in rows if interval is not None]
    if line is not None:
        numbers.append(np.array([line]))
    low, high = _ends(numbers)
    marks = [] if line is None else [_stroke(_across(line, low, high, NAMES), 0.0, LANE * len(rows), FAINT)]
    for number, (name, values, interval) in enumerate(rows):
        y = (number + 0.5) * LANE
        marks.append(_text(_cut(name, LETTERS), NAMES - 8, y + 4, "end"))
        if interval is not None and np.isfinite(interval).all():
            x0, x1 = _across(np.array(interval), low, high, NAMES)
            marks.append(element("line", x1=x0, x2=x1, y1=y, y2=y, stroke="currentColor", stroke_width=2))
        marks += _circles(_across(np.ravel(values), low, high, NAMES), y, 1.0 if np.size(values) == 1 else 0.6)
    floor = LANE * len(rows)
    return _svg(floor, label, *marks, *_axis(floor, low, high, NAMES))


def points(x, y, strong, label):
    """Points at (x, y), those that are ``strong`` dark and the others faint; the ends of both are written."""
    x, y, strong = np.asarray(x, float), np.asarray(y, float), np.asarray(strong, bool)
    (left, right), (low, high) = _ends([x]), _ends([y])
    across, up = _across(x, left, right, NUMBERS), 66 - 60 * (y - low) / (high - low)
    marks = [
        mark
        for dark in (False, True)
        for mark in _circles(across[strong == dark], up[strong == dark], FAINT + 0.65 * dark)
    ]
    ends = _text(short(low), NUMBERS - 8, 70, "end"), _text(short(high), NUMBERS - 8, 12, "end")
    return _svg(70.0, label, *marks, *ends, *_axis(70.0, left, right, NUMBERS))


def _ends(parts):
    """The least and the largest finite number of several arrays, never equal."""
    values = np.concatenate([np.ravel(np.asarray(part, float)) for part in parts])
    values = values[np.isfinite(values)]
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    more = 0.0 if high > low else abs(low) * 0.1 or 1.0
    return low - more, high + more


def _across(values, low, high, left=EDGE):
    return left + (np.asarray(values, float) - low) / (high - low) * (WIDTH - EDGE - left)


def _circles(x, y, opacity):
    places = np.column_stack(np.broadcast_arrays(x, y))
    places = places[np.isfinite(places).all(1)][:MOST_POINTS]
    return [element("circle", cx=across, cy=up, r=2.5, opacity=opacity) for across, up in places.tolist()]


def _stroke(x, top, bottom, opacity=1.0):
    ends = {"x1": float(x), "x2": float(x), "y1": top, "y2": bottom}
    return element("line", **ends, stroke="currentColor", stroke_width=2, opacity=opacity)


def _text(text, x, y, anchor):
    return element("text", escape(text), x=x, y=y, text_anchor=anchor, font_size=11)


def _axis(floor, low, high, left=EDGE):
    rule = element("line", x1=left, x2=WIDTH - EDGE, y1=floor + 1, y2=floor + 1, stroke="currentColor", opacity=FAINT)
    return rule, _text(short(low), left, floor + 13, "start"), _text(short(high), WIDTH - EDGE, floor + 13, "end")


def _svg(floor, label, *marks):
    """The marks with the label below them."""
    size = {"width": WIDTH, "height": floor + 18, "viewBox": f"0 0 {WIDTH:g} {floor + 18:g}"}
    drawn = element(
        "svg", *marks, xmlns="http://www.w3.org/2000/svg", role="img", aria_label=label, fill="currentColor", **size
    )
    return element("figure", drawn, element("figcaption", escape(label), style="font-size: smaller"), style="margin: 0")
