"""Which classes are taken for which, by the nested predictions: a matrix, as a picture of many, and a line for each."""

import numpy as np

from foldless.report.svg import Figure, Plot
from foldless.report.tables import grid
from foldless.report.words import counted, percent

MOST_IN_TABLE, MOST_IN_PICTURE = 8, 60
SHADES = 5


def crossed(study):
    """Rows of each true class (lines) that were taken for each class (columns)."""
    held, names = study.held_out, {name: k for k, name in enumerate(study.classes)}
    counts = np.zeros((len(names), len(names)), dtype=int)
    for truth, said in zip(np.asarray(held.truth)[held.fold >= 0], held.nested_prediction[held.fold >= 0], strict=True):
        if truth in names and said in names:
            counts[names[truth], names[said]] += 1
    return counts


def _shades(counts):
    """From 0 to 5 by the share of the true class."""
    return np.ceil(SHADES * counts / np.maximum(counts.sum(1, keepdims=True), 1)).astype(int)


def matrix(study):
    """[(class, [(count, shade)])] of few classes, or None."""
    if not 2 <= len(study.classes) <= MOST_IN_TABLE:
        return None
    counts = crossed(study)
    return [
        (name, list(zip(line.tolist(), shade.tolist(), strict=True)))
        for name, line, shade in zip(study.classes, counts, _shades(counts), strict=True)
    ]


def picture(study):
    """The matrix of many classes as coloured boxes."""
    names = study.classes
    if not MOST_IN_TABLE < len(names) <= MOST_IN_PICTURE:
        return None
    counts = crossed(study)
    lines, places = np.nonzero(counts)
    plot = Plot(
        (-0.5, len(names) - 0.5),
        x_label="taken for, classes in the same order",
        lanes=names,
        lane=max(8.0, 300 / len(names)),
        numbers=False,
    )
    pairs = zip(lines, places, strict=True)
    tips = [f"{names[i]} taken for {names[j]}: {counted(counts[i, j], 'row')}" for i, j in pairs]
    kinds = [f"fill{each}" for each in _shades(counts)[lines, places]]
    plot.boxes(places - 0.5, lines - 0.5, places + 0.5, lines + 0.5, tips, kinds)
    right = np.trace(counts)
    text = (
        "True classes from top to bottom, what they are taken for from left to right. The stronger the colour, the"
        f" larger the share of the true class. {right:,} of {counted(counts.sum(), 'row')} are on the diagonal, which"
        " is right."
    )
    return Figure("Confusion matrix", plot, text)


def worst(study):
    """The most frequent confusions of many classes."""
    if len(study.classes) <= MOST_IN_TABLE:
        return None
    counts = crossed(study)
    np.fill_diagonal(counts, 0)
    order = [divmod(int(each), len(counts)) for each in np.argsort(-counts, axis=None, kind="stable")[:20]]
    lines = [(study.classes[i], study.classes[j], int(counts[i, j])) for i, j in order if counts[i, j]]
    return grid("The most frequent confusions", ("true class", "taken for", "rows"), lines)


def classes(study):
    """Each class: rows, how many are found, how many called so are right."""
    if not study.classes:
        return None
    counts = crossed(study)
    right, rows, said = np.diag(counts), counts.sum(1), counts.sum(0)
    lines = [
        (name, int(rows[k]), _share(right[k], rows[k]), _share(right[k], said[k]))
        for k, name in enumerate(study.classes)
    ]
    note = (
        "Recall: how many rows of the class are found. Precision: how many rows that are given the class belong to it."
    )
    return grid("Every class", ("class", "rows", "recall", "precision"), lines, note)


def _share(part, whole):
    return (percent(part / whole), float(part / whole)) if whole else ("–", "")
