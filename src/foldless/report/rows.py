"""The plots of rows: what the model without a row (or its group) says of it, and its influence.

Of very many rows some are shown.
"""

import numpy as np

from foldless.inspection import InfluenceDisplay, MarginsDisplay
from foldless.report.svg import BOTTOM, HEIGHT, TOP, Figure, Plot, spread
from foldless.report.words import cell, counted, number, percent, without

MOST_POINTS = 1500
MOST_LANES = 30


def _some(order):
    """At most so many rows: the first of an order, and an even sample of the others."""
    if len(order) <= MOST_POINTS:
        return order
    rest = np.linspace(MOST_POINTS // 3, len(order) - 1, MOST_POINTS - MOST_POINTS // 3).astype(int)
    return np.concatenate([order[: MOST_POINTS // 3], order[rest]])


def _not_all(study, shown):
    total = len(study.held_out.rows)
    return "" if len(shown) == total else f" Shown are {len(shown):,} of {total:,} rows, the most striking among them."


def held_out(study):
    """Leave-one-out values: predictions beside numbers, or margins of the true class in lanes of classes."""
    return _classes(study) if study.classes else _values(study)


def _values(study):
    held = study.held_out
    truth, said = (np.asarray(each, dtype=float) for each in (held.truth, held.loo_prediction))
    shown = _some(np.argsort(-np.abs(truth - said), kind="stable"))
    ends = spread(truth, said)
    plot = Plot(ends, ends, "in the file", f"predicted {without(study, 'the row')}")
    tips = [f"row {held.rows[i]}: {number(truth[i])} in the file, {number(said[i])} predicted" for i in shown]
    plot.line(ends, ends, "chance").points(truth[shown], said[shown], tips, "c0", 3, held.rows[shown])
    off = number(np.median(np.abs(truth - said)))
    text = f"Every row as predicted by the model {without(study)}. Half of them are off by less than {off}."
    return Figure("Predicted and true values", plot, text + _not_all(study, shown), (("chance", "perfect"),))


def _classes(study):
    held, names = study.held_out, list(study.classes)
    if len(names) > MOST_LANES:
        return None
    truth, said = np.asarray(held.truth), np.asarray(held.loo_prediction)
    display = MarginsDisplay.of(truth, held.loo_decision, classes=names)
    margins, lane = np.asarray(display.margins), np.asarray(display.codes)
    shown = _some(np.argsort(margins, kind="stable"))
    jitter = np.random.default_rng(0).uniform(-0.4, 0.4, len(lane))
    height = max(12.0, (HEIGHT - TOP - BOTTOM) / len(names))
    plot = Plot(spread(margins, [0.0]), x_label="margin of the true class", lanes=names, lane=height)
    tips = [f"row {held.rows[i]}: {truth[i]}, taken for {said[i]}{_sure(held, i, lane[i])}" for i in shown]
    kinds = ["c0" if truth[i] == said[i] else "c1" for i in shown]
    plot.segments(0, -0.5, 0, len(names) - 0.5, "chance")
    plot.points(margins[shown], (lane + jitter)[shown], tips, kinds, 3, held.rows[shown])
    wrong = np.count_nonzero(truth != said)
    text = (
        f"How clearly the model {without(study, 'a row', 'a row’s')} tells its class from the others: its decision for"
        f" the true class minus the largest for another. Below 0 a row is taken for another class, as are {wrong:,} of"
        f" {counted(len(lane), 'row')}."
    )
    keys = (("c0", "taken for its class"), ("c1", "taken for another"))[: 2 if wrong else 1]
    return Figure("How clear is each row?", plot, text + _not_all(study, shown), keys)


def _sure(held, row, code):
    """The probability of a class as the end of a tip, where it is known."""
    known = held.loo_probability
    return "" if known is None else f", probability of {held.truth[row]} {percent(known[row, code])}"


def influence(study):
    """How much forgetting a row would change the leave-one-out error of the others, beside its margin or residual."""
    held = study.held_out
    if held.influence is None or not np.isfinite(held.influence).any():
        return None
    display = InfluenceDisplay.of(held.truth, held.loo_decision, held.influence, classes=study.classes or None)
    x, values = np.asarray(display.x), np.asarray(display.influence)
    order = np.argsort(-values, kind="stable")
    shown = _some(order)
    label = "margin of the true class" if study.classes else "in the file minus predicted"
    plot = Plot(spread(x, [0.0]), (0, 1.05 * (float(np.nanmax(values)) or 1.0)), label, "change of squared error")
    tips = [f"row {held.rows[i]} ({cell(held.truth[i])}): {number(values[i])}" for i in shown]
    wrong = np.zeros(len(x), bool) if display.wrong is None else np.asarray(display.wrong)
    plot.segments(0, 0, 0, plot.ends["y"][1], "chance")
    plot.points(x[shown], values[shown], tips, ["c1" if each else "c0" for each in wrong[shown]], 3, held.rows[shown])
    first = ", ".join(f"{held.rows[i]} ({number(values[i])})" for i in order[:3])
    text = (
        "How much the summed squared error of all other rows, each predicted without itself, would change if this row"
        f" were forgotten too. The largest: rows {first}."
    )
    keys = (("c0", "taken for its class"), ("c1", "taken for another")) if wrong.any() else ()
    text += " Rows at the upper left are wrong, and others lean on them: look at these first." * bool(keys)
    return Figure("Influence of rows", plot, text + _not_all(study, shown), keys)
