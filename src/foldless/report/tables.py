"""The tables of the page: plain lists of cells, each a text or a (text, value to sort by) pair."""

from dataclasses import dataclass

import numpy as np

from foldless.report.words import cell, interval, number, params, percent, score_text, seconds, worth

MOST_LINES = 300
MOST_CLASSES = 12  # of a confusion matrix that fits on a page
MOST_CELLS = 10  # columns of a surprising row


@dataclass(frozen=True)
class Grid:
    """A table: a caption, names of columns, lines of (text, value) cells, and a remark on what is left out."""

    caption: str
    header: tuple[str, ...]
    lines: list
    more: str = ""


def _grid(caption, header, lines):
    lines = list(lines)
    left = len(lines) - MOST_LINES
    more = f"{left:,} more are in the JSON file." if left > 0 else ""
    shown = [[each if isinstance(each, tuple) else (each, each) for each in line] for line in lines[:MOST_LINES]]
    return Grid(caption, tuple(header), shown, more) if shown else None


def columns(study):
    """The columns and what they were taken for."""
    lines = [
        (each.name, each.role, each.kind, each.n_missing, each.n_distinct, ", ".join(each.examples), each.why)
        for each in study.data.columns
    ]
    header = ("column", "role", "kind", "missing", "distinct", "examples", "why")
    return _grid("Columns of the file", header, lines)


def scores(study):
    """All scores: nested, leave-one-out, baseline."""
    alone, base = ({each.name: each for each in some} for some in (study.leave_one_out, study.baseline))
    lines = []
    for each in study.nested:
        line = [each.name, (worth(each), each.value), (interval(each), each.low)]
        for other in (alone.get(each.name), base.get(each.name)):
            line.append(("–", "") if other is None else (worth(other), other.value))
        line.insert(4, (interval(alone[each.name]) if each.name in alone else "–", ""))
        lines.append(line)
    sure = f"{100 * study.nested[0].confidence:g} % interval" if study.nested else "interval"
    header = ("score", "nested", f"{sure}, nested", "leave-one-out", f"{sure}, leave-one-out", "baseline")
    return _grid("Scores of held-out rows", header, lines)


def folds(study):
    """The outer folds."""
    names = list(study.folds[0].scores) if study.folds else []
    lines = [
        (k, each.n_train, each.n_test, params(each.params), *((score_text(n, v), v) for n, v in each.scores.items()))
        for k, each in enumerate(study.folds, 1)
    ]
    return _grid("Outer folds, nested", ("fold", "trained", "tested", "chosen", *names), lines)


def _crossed(study):
    """Rows of each true class (lines) that were taken for each class (columns), nested."""
    held, names = study.held_out, {name: k for k, name in enumerate(study.classes)}
    counts = np.zeros((len(names), len(names)), dtype=int)
    for truth, said in zip(np.asarray(held.truth)[held.fold >= 0], held.nested_prediction[held.fold >= 0], strict=True):
        if truth in names and said in names:
            counts[names[truth], names[said]] += 1
    return counts


def confusion(study):
    """(classes, lines of (count, shade from 0 to 5)) of few classes, or None."""
    if not 2 <= len(study.classes) <= MOST_CLASSES:
        return None
    counts = _crossed(study)
    shades = np.ceil(5 * counts / np.maximum(counts.sum(1, keepdims=True), 1)).astype(int)
    return [
        (name, list(zip(line.tolist(), shade.tolist(), strict=True)))
        for name, line, shade in zip(study.classes, counts, shades, strict=True)
    ]


def confusions(study):
    """The most frequent confusions of many classes."""
    if len(study.classes) <= MOST_CLASSES:
        return None
    counts = _crossed(study)
    np.fill_diagonal(counts, 0)
    worst = [divmod(int(each), len(counts)) for each in np.argsort(-counts, axis=None, kind="stable")[:20]]
    lines = [(study.classes[i], study.classes[j], int(counts[i, j])) for i, j in worst if counts[i, j]]
    return _grid("The most frequent confusions", ("true class", "taken for", "rows"), lines)


def classes(study):
    """Each class: rows, how many are found, how many called so are right."""
    if not study.classes:
        return None
    counts = _crossed(study)
    right, rows, said = np.diag(counts), counts.sum(1), counts.sum(0)
    lines = [
        (name, int(rows[k]), _share(right[k], rows[k]), _share(right[k], said[k]))
        for k, name in enumerate(study.classes)
    ]
    return _grid("Classes, nested", ("class", "rows", "found (recall)", "right when said (precision)"), lines)


def _share(part, whole):
    return (percent(part / whole), part / whole) if whole else ("–", "")


def importance(study):
    """All columns by what they are worth."""
    lines = [(each.column, (number(each.mean), each.mean), number(each.deviation)) for each in study.importance]
    return _grid("What columns are worth", ("column", "loss of score", "deviation"), lines)


def surprising(study):
    """The most surprising rows with cells of the most important columns."""
    order = [each.column for each in study.importance]
    lines = []
    for each in study.surprising:
        names = sorted(each.cells, key=lambda name: order.index(name) if name in order else len(order))
        names = [name for name in names if name != study.target]
        text = "; ".join(f"{name} = {each.cells[name]}" for name in names[:MOST_CELLS])
        rest = len(names) - MOST_CELLS
        text += f"; {rest} more" if rest > 0 else ""
        shown = percent(each.surprise) if study.classes else number(each.surprise)
        lines.append((each.row, each.truth, each.prediction, (shown, each.surprise), text))
    how = "probability against it" if study.classes else "off by"
    return _grid("Rows that surprise most", ("row", "in the file", "predicted", how, "cells"), lines)


def influential(study):
    """The rows of most influence."""
    values = study.held_out.influence
    if values is None:
        return None
    held, worst = study.held_out, np.argsort(-values, kind="stable")[:10]
    lines = [(int(held.rows[i]), cell(held.truth[i]), (number(values[i]), float(values[i]))) for i in worst]
    return _grid("Rows of most influence", ("row", "in the file", "change of the squared error without it"), lines)


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
            shown = percent(value)
        else:
            value = float(np.mean(np.abs(truth[members].astype(float) - said[members].astype(float))))
            shown = number(value)
        found.append((str(name), int(members.sum()), (shown, value)))
    found.sort(key=lambda line: line[2][1], reverse=not study.classes)
    how = "predicted right" if study.classes else "mean absolute error"
    return _grid("Groups, the worst first, nested", ("group", "rows", how), found)


def timings(study):
    """Seconds of each phase."""
    lines = [(name, (seconds(value), value)) for name, value in study.timings.items()]
    return _grid("Time taken", ("phase", "time"), lines)
