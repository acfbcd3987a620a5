"""The tables of the page: a function from a study to a :class:`Grid` each, or None where there is nothing to show."""

import math
from dataclasses import dataclass

import numpy as np

from foldless.report.words import called, interval, left_out, number, params, percent, score_text, worth

MOST_LINES = 300
SHOWN_CELLS = 5  # columns of a surprising row
MEANINGS = {
    "alpha": "how strongly the model is smoothed: the larger, the simpler it is",
    "gamma": "how quickly predictions change from row to row: the larger, the more they bend",
    "gaussian_weight": "share of the Gaussian kernel, which is for smooth relations",
    "gaussian_gamma": "how quickly the Gaussian kernel falls with the distance of two rows",
    "laplacian_weight": "share of the Laplacian kernel, which is for steps, and looks at the features by their scales",
    "laplacian_gamma": "how quickly the Laplacian kernel falls with the distance of two rows",
}


@dataclass(frozen=True)
class Grid:
    """A table.

    Attributes
    ----------
    caption : str
    header : names of the columns
    lines : lists of (text, value to sort by) cells
    note : str, a remark below
    of_rows : bool, whether lines are rows of the file, whose numbers come first
    """

    caption: str
    header: tuple[str, ...]
    lines: list
    note: str = ""
    of_rows: bool = False

    @property
    def numeric(self):
        """Which columns hold numbers, but for gaps."""
        return [any(isinstance(each[1], int | float) for each in cells) for cells in zip(*self.lines, strict=True)]


def grid(caption, header, lines, note="", of_rows=False):
    """A :class:`Grid` of the first lines; a cell that is no pair is its own text."""
    lines = list(lines)
    left = len(lines) - MOST_LINES
    note = f"{note} {left:,} more are in the JSON file.".strip() if left > 0 else note
    shown = [[_cell(each) for each in line] for line in lines[:MOST_LINES]]
    return Grid(caption, tuple(header), shown, note, of_rows) if shown else None


def _cell(each):
    """(text, value to sort by); no number sorts last, as empty cells do, and infinity is spelt for the script."""
    text, value = each if isinstance(each, tuple) else (f"{each:,}" if isinstance(each, int) else each, each)
    if isinstance(value, float) and not math.isfinite(value):
        value = "" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return text, value


def columns(study):
    """The columns and what they were taken for."""
    lines = [
        (each.name, each.role, each.kind, each.n_missing, each.n_distinct, ", ".join(each.examples), each.why)
        for each in study.data.columns
    ]
    header = ("column", "role", "taken for", "missing", "different", "such as", "why")
    return grid("Columns of the file", header, lines)


def settings(study):
    """The chosen setting."""
    lines = [
        (name, (number(value), value) if isinstance(value, int | float) else value, MEANINGS.get(name, ""))
        for name, value in study.model.params.items()
    ]
    return grid("The chosen setting", ("parameter", "value", "meaning"), lines)


def scores(study):
    """All scores: nested, leave-one-out (of groups, where there are groups), baseline."""
    alone, base = ({each.name: each for each in some} for some in (study.leave_one_out, study.baseline))
    lines = []
    for each in study.nested:
        found = [each, alone.get(each.name), base.get(each.name)]
        cells = [("–", "") if one is None else (worth(one), one.value) for one in found]
        ends = ["–" if one is None else (interval(one), one.low) for one in found[:2]]
        lines.append((called(each.name), cells[0], ends[0], cells[1], ends[1], cells[2]))
    sure = f"{100 * study.nested[0].confidence:g} % interval" if study.nested else "interval"
    return grid("Scores of held-out rows", ("score", "nested", sure, left_out(study), sure, "baseline"), lines)


def folds(study):
    """The outer folds."""
    names = list(study.folds[0].scores) if study.folds else []
    lines = [
        (k, each.n_train, each.n_test, *((score_text(n, v), v) for n, v in each.scores.items()), params(each.params))
        for k, each in enumerate(study.folds, 1)
    ]
    header = ("fold", "rows learnt from", "rows judged", *map(called, names), "chosen")
    return grid("Folds of the nested estimate", header, lines)


def importance(study):
    """All columns by what they are worth."""
    name = study.nested[0].name
    lines = [
        (each.column, *((score_text(name, value), value) for value in (each.mean, each.deviation)))
        for each in study.importance
    ]
    return grid("All columns", ("column", f"{called(name)} lost", "deviation"), lines)


def surprising(study):
    """The most surprising rows with their cells in the most important columns."""
    order = [each.column for each in study.importance]
    features = [each.name for each in study.data.columns if each.role == "feature"]
    names = sorted(features, key=lambda name: order.index(name) if name in order else len(order))[:SHOWN_CELLS]
    lines = []
    for each in study.surprising:
        shown = percent(each.surprise) if study.classes else number(each.surprise)
        cells = [_as_number(each.cells.get(name, "")) for name in names]
        ends = (each.truth, each.prediction) if study.classes else map(_as_number, (each.truth, each.prediction))
        lines.append((each.row, *ends, (shown, each.surprise), *cells))
    how = "probability of another class" if study.classes else "off by"
    if study.classes and study.held_out.loo_probability is None:
        how, lines = "taken for another class", [(*line[:3], "yes", *line[4:]) for line in lines if line[3][1]]
    header = ["row", "in the file", "predicted", how, *names]
    if study.held_out.groups is not None:
        lines, header[1:1] = _with_groups(study, lines), [_group_column(study)]
    return grid("The most surprising rows", header, lines, of_rows=True)


def _with_groups(study, lines):
    """Lines that begin with the number of a row, and its group behind it."""
    of = dict(zip(study.held_out.rows.tolist(), map(str, study.held_out.groups), strict=True))
    return [(line[0], of.get(line[0], "–"), *line[1:]) for line in lines]


def _group_column(study):
    return next((each.name for each in study.data.columns if each.role == "groups"), "group")


def _as_number(text):
    """A cell that is aligned and sorted as a number where it is one."""
    try:
        return text, float(text)
    except ValueError:
        return text or "–", text


def groups(study):
    """Each group: rows and how well it is predicted without it."""
    held = study.held_out
    if held.groups is None:
        return None
    truth, said, kept = np.asarray(held.truth), np.asarray(held.nested_prediction), held.fold >= 0
    found = []
    for name in np.unique(held.groups[kept]):
        members = kept & (held.groups == name)
        if study.classes:
            value = float(np.mean(truth[members] == said[members]))
        else:
            value = float(np.mean(np.abs(truth[members].astype(float) - said[members].astype(float))))
        shown = percent(value) if study.classes else number(value)
        found.append((str(name), int(members.sum()), (shown, value)))
    found.sort(key=lambda line: line[2][1], reverse=not study.classes)
    how = "predicted right" if study.classes else "mean absolute error"
    return grid("Groups, the worst first", (_group_column(study), "rows", how), found)
