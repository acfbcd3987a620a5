"""The plots of columns and rows: importance, held-out values, influence. Of very many rows some are shown."""

import numpy as np

from foldless.report.pictures import Figure
from foldless.report.svg import Plot, spread
from foldless.report.words import cell, number, percent

MOST_BARS = 20
MOST_POINTS = 1500
MOST_LANES = 12


def importance(study):
    """Bars of the most important columns."""
    top = study.importance[:MOST_BARS]
    if not top:
        return None
    mean = np.array([each.mean for each in top])
    deviation = np.array([each.deviation for each in top])
    name = study.nested[0].name
    share = "x" * (name in ("accuracy", "balanced accuracy"))
    ends = spread(mean - deviation, mean + deviation, [0.0])
    plot = Plot(ends, x_label=f"loss of {name}", lanes=[each.column for each in top], percent=share)
    lanes = np.arange(len(top))
    shown = percent if share else number
    tips = [f"{each.column}: {shown(each.mean)} ± {shown(each.deviation)}" for each in top]
    plot.boxes(0 * mean, lanes - 0.3, mean, lanes + 0.3, tips, "c0")
    plot.segments(mean - deviation, lanes, mean + deviation, lanes)
    first = ", ".join(f"“{each.column}” ({shown(each.mean)})" for each in top[:3])
    return Figure("What columns are worth", plot, f"{study.importance_how} The largest: {first}.")


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
    """Leave-one-out values: predictions beside numbers, or probabilities of the true class in lanes of classes."""
    return _classes(study) if study.classes else _values(study)


def _values(study):
    held = study.held_out
    truth, said = (np.asarray(each, dtype=float) for each in (held.truth, held.loo_prediction))
    shown = _some(np.argsort(-np.abs(truth - said), kind="stable"))
    ends = spread(truth, said)
    plot = Plot(ends, ends, "observed", "predicted without the row")
    tips = [f"row {held.rows[i]}: observed {number(truth[i])}, predicted {number(said[i])}" for i in shown]
    plot.line(ends, ends, "chance").points(truth[shown], said[shown], tips, "c0", 3)
    text = (
        f"Predictions of rows by models without them; half are off by less than {number(np.median(abs(truth - said)))}."
    )
    return Figure("Observed and predicted", plot, text + _not_all(study, shown), (("chance", "perfect"),))


def _classes(study):
    held, names = study.held_out, list(study.classes)
    if held.loo_probability is None or len(names) > MOST_LANES:
        return None
    truth, said = np.asarray(held.truth), np.asarray(held.loo_prediction)
    lane = np.array([names.index(each) for each in truth])
    sure = held.loo_probability[np.arange(len(lane)), lane]
    shown = _some(np.argsort(sure, kind="stable"))
    jitter = np.random.default_rng(0).uniform(-0.35, 0.35, len(lane))
    label = "probability of the true class, without the row"
    plot = Plot((-0.02, 1.02), x_label=label, lanes=names, percent="x", lane=60 if len(names) < 5 else 30)
    tips = [f"row {held.rows[i]}: {truth[i]}, taken for {said[i]}, probability {percent(sure[i])}" for i in shown]
    kinds = ["c0" if truth[i] == said[i] else "c1" for i in shown]
    plot.points(sure[shown], (lane + jitter)[shown], tips, kinds, 3)
    wrong = np.count_nonzero(truth != said)
    text = f"{wrong:,} of {len(lane):,} rows are taken for another class by the model without them."
    keys = (("c0", "taken for its class"), ("c1", "for another"))
    return Figure("How sure of each row", plot, text + _not_all(study, shown), keys)


def influence(study):
    """How much forgetting each row would change the leave-one-out error of the others."""
    held = study.held_out
    if held.influence is None or not np.isfinite(held.influence).any():
        return None
    values = np.asarray(held.influence, dtype=float)
    order = np.argsort(-values, kind="stable")
    shown = _some(order)
    high = float(np.nanmax(values)) or 1.0
    plot = Plot(spread(held.rows), (0, 1.05 * high), "row of the file", "change of the squared error")
    tips = [f"row {held.rows[i]} ({cell(held.truth[i])}): {number(values[i])}" for i in shown]
    plot.points(held.rows[shown], values[shown], tips, "c0", 3)
    first = ", ".join(f"{held.rows[i]} ({number(values[i])})" for i in order[:3])
    text = (
        "How much the sum of squared leave-one-out errors of the other rows would change, up or down, if a row were"
        f" forgotten. The largest: rows {first}."
    )
    return Figure("Influence of rows", plot, text + _not_all(study, shown))
