"""The plots of columns: what the target looks like, and what other columns are worth."""

import numpy as np

from foldless.report.svg import Figure, Plot, spread
from foldless.report.words import SHARES, called, counted, number, percent, quoted, score_text

MOST_BARS = 20
MOST_CLASSES = 30
LINES = "Thin lines are one standard deviation of the shuffles to each side."


def target(study):
    """How often each class occurs, or a histogram of the values."""
    return _counts(study) if study.classes else _histogram(study)


def _counts(study):
    counts = study.data.class_counts
    if not counts:
        return None
    order = sorted(counts, key=lambda name: -counts[name])
    shown, total = order[:MOST_CLASSES], sum(counts.values())
    heights = np.array([counts[name] for name in shown], dtype=float)
    plot = Plot(
        (0, 1.05 * heights.max()), x_label="rows", lanes=shown, lane=float(np.clip(240 / len(shown), 10, 60)), whole="x"
    )
    lanes = np.arange(len(shown))
    tips = [f"{name}: {counted(counts[name], 'row')}, {percent(counts[name] / total)}" for name in shown]
    plot.boxes(0 * heights, lanes - 0.35, heights, lanes + 0.35, tips)
    first, last = (f"{quoted(name)} with {counted(counts[name], 'row')}" for name in (order[0], order[-1]))
    text = f"The most frequent of {len(order)} classes is {first}, the least frequent {last}."
    if len(order) > len(shown):
        text += f" Shown are the {MOST_CLASSES} most frequent."
    return Figure("How often each class occurs", plot, text)


def _histogram(study):
    values = np.asarray(study.held_out.truth, dtype=float)
    if len(values) < 5:
        return None
    counts, edges = np.histogram(values, bins=min(30, max(5, len(values) // 10)))
    plot = Plot(spread(values), (0, 1.1 * counts.max()), "value", "rows", whole="y")
    ends = [number(each) for each in edges]
    tips = [f"{counted(int(count), 'row')} from {ends[k]} to {ends[k + 1]}" for k, count in enumerate(counts)]
    plot.boxes(edges[:-1], 0 * counts, edges[1:], counts, tips)
    low, middle, high = (number(each) for each in np.quantile(values, [0, 0.5, 1]))
    text = f"Values of {quoted(study.target)} go from {low} to {high}; half are below {middle}."
    return Figure("What is predicted", plot, text)


def importance(study):
    """Bars of the most important columns."""
    top = study.importance[:MOST_BARS]
    if not top:
        return None
    mean = np.array([each.mean for each in top])
    deviation = np.array([each.deviation for each in top])
    name = study.nested[0].name
    share = "x" * (name in SHARES)
    ends = spread(mean - deviation, mean + deviation, [0.0])
    plot = Plot(ends, x_label=f"{called(name)} lost", lanes=[each.column for each in top], percent=share)
    lanes = np.arange(len(top))
    tips = [f"{each.column}: {score_text(name, each.mean)} ± {score_text(name, each.deviation)}" for each in top]
    plot.boxes(0 * mean, lanes - 0.3, mean, lanes + 0.3, tips)
    plot.segments(mean - deviation, lanes, mean + deviation, lanes)
    text = f"{study.importance_how.replace(name, called(name))} {LINES} {_largest(top, name)}"
    if len(study.importance) > MOST_BARS:
        text += f" Shown are {MOST_BARS} of {len(study.importance)} columns."
    return Figure("Which columns matter", plot, text)


def _largest(top, name):
    """The first columns that are worth something, in a sentence."""
    none = score_text(name, 0.0)
    worth = [each for each in top if each.mean > 0 and score_text(name, each.mean) != none]
    if not worth:
        return "No column alone makes a difference."
    first = ", ".join(f"{quoted(each.column)} ({score_text(name, each.mean)})" for each in worth[:3])
    return f"The largest: {first}." if len(worth) > 1 else f"Only {first} makes a difference."
