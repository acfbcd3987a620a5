"""The plots of the search, of the scales that it has learnt, and of the time taken."""

import numpy as np

from foldless.inspection import SearchDisplay
from foldless.inspection.numbers import excess
from foldless.report.svg import Figure, Plot, spread
from foldless.report.words import called, counted, number, params, quoted, seconds

SHADES = 5
WIDE = 20  # times the least: the axis is logarithmic above
MOST_SCALES = 15


def search(study):
    """The criterion of all settings in their order, as a multiple of the least on as many rows."""
    trials = [each for each in study.model.trials if np.isfinite(each.criterion)]
    if len(trials) < 2:
        return None
    n_rows = np.array([each.n_rows for each in trials])
    above = excess([each.criterion for each in trials], n_rows)
    log = "y" * bool(above.max() > WIDE)
    ends = (1 / 1.2, above.max() * 1.2) if log else spread(above)
    name = called(study.model.criterion_name)
    plot = Plot((0.5, len(trials) + 0.5), ends, "settings in the order of the search", "loss / least", log=log)
    order = np.arange(1, len(trials) + 1)
    for size in np.unique(n_rows):
        mine = n_rows == size
        plot.line(order[mine], np.minimum.accumulate(above[mine]), "l1")
    tips = [f"{_tip(each)}, {number(ratio)} times the least" for each, ratio in zip(trials, above, strict=True)]
    plot.points(order, above, tips)
    least = min(each.criterion for each in trials if each.n_rows == n_rows.max())
    text = (
        f"The loss of a setting is the {name}. Drawn is how many times the least it is, of {len(trials):,} settings; 1"
        f" is the best. The least on {counted(n_rows.max(), 'row')} is {number(least)}. As it is the least of many, it"
        " is no honest estimate of the error."
    )
    some = " Settings are compared with those on as many rows." * bool(n_rows.min() < n_rows.max())
    return Figure("Criterion over the search", plot, text + some, (("c0", "a setting"), ("l1", "best so far")))


def _tip(trial):
    return f"{params(trial.params)}: {number(trial.criterion, 4)} on {counted(trial.n_rows, 'row')}"


def settings(study):
    """Where the settings lie in the plane of two parameters, the better, the stronger the colour; or along one."""
    chosen, trials = study.model.params, [each for each in study.model.trials if np.isfinite(each.criterion)]
    if len(trials) < SHADES or any(set(each.params) != set(chosen) for each in trials):
        return None
    if len(chosen) == 1:
        return _path(chosen, trials)
    if len(chosen) > 2:
        return None
    up, across = chosen  # alpha upwards, the parameter of the kernel across
    display = SearchDisplay(
        x=np.array([each.params[across] for each in trials], dtype=float),
        y=np.array([each.params[up] for each in trials], dtype=float),
        criterion=[each.criterion for each in trials],
        n_rows=[each.n_rows for each in trials],
        best=(chosen[across], chosen[up]),
        names=(across, up),
    )
    x, y = np.asarray(display.x), np.asarray(display.y)
    if min(x.min(), y.min()) <= 0:
        return None
    plot = Plot((x.min() / 1.6, x.max() * 1.6), (y.min() / 1.6, y.max() * 1.6), *display.names, log="xy")
    worst_first = np.argsort(-display.excess, kind="stable")
    shades = SHADES * np.arange(len(trials)) // len(trials) + 1
    tips = [_tip(trials[i]) for i in worst_first]
    plot.points(x[worst_first], y[worst_first], tips, [f"fill{each}" for each in shades], 5)
    plot.points([display.best[0]], [display.best[1]], [f"chosen: {params(chosen)}"], "ring", 8)
    text = f"The same {len(trials):,} settings; the stronger the colour, the less the loss. Chosen: {params(chosen)}."
    keys = (("fill5", "among the best fifth"), ("fill1", "among the worst fifth"), ("cring", "chosen"))
    return Figure("Settings that were tried", plot, text, keys)


def _path(chosen, trials):
    """The loss along the one parameter, on the most rows that there were."""
    ((name, value),) = chosen.items()
    most = max(each.n_rows for each in trials)
    mine = sorted((each for each in trials if each.n_rows == most), key=lambda each: each.params[name])
    x = np.array([each.params[name] for each in mine], dtype=float)
    if x.min() <= 0 or len(x) < 2:
        return None
    above = excess([each.criterion for each in mine], [most] * len(mine))
    log = "xy" if above.max() > WIDE else "x"
    ends = (1 / 1.2, above.max() * 1.2) if log == "xy" else spread(above)
    plot = Plot((x.min() / 1.6, x.max() * 1.6), ends, name, "loss / least", log=log)
    plot.line(x, above).points(x, above, [_tip(each) for each in mine])
    plot.segments(value, ends[0], value, ends[1], "truth")
    text = f"The loss along {name} on {counted(most, 'row')}. Chosen: {params(chosen)}."
    return Figure("Settings that were tried", plot, text, (("l0", "loss"), ("truth", "chosen")))


def scales(study):
    """Bars of the largest scales of a learnt kernel."""
    top = study.model.scales[:MOST_SCALES]
    if not top:
        return None
    values = np.array([each.scale for each in top])
    plot = Plot((0, 1.05 * values.max() or 1.0), x_label="scale", lanes=[each.feature for each in top])
    lanes = np.arange(len(top))
    plot.boxes(0 * values, lanes - 0.3, values, lanes + 0.3, [f"{each.feature}: {number(each.scale)}" for each in top])
    first = ", ".join(f"{quoted(each.feature)} ({number(each.scale)})" for each in top[:3])
    n_features, n_unused = len(study.model.scales), sum(each.scale == 0 for each in study.model.scales)
    text = (
        "The Laplacian kernel multiplies the differences of two rows in a feature by its scale; numbers are in units of"
        " their standard deviation, indicators are 0 or 1. The kernel was learnt from all rows: scales say what this"
        f" model looks at, and test nothing. The largest: {first}."
    )
    if n_features > len(top):
        text += f" Shown are {len(top)} of {n_features} features."
    if n_unused:
        text += f" {counted(n_unused, 'feature has', 'features have')} the scale 0."
    return Figure("What the learnt kernel looks at", plot, text)


def timings(study):
    """Seconds of each phase."""
    if not study.timings:
        return None
    names, values = list(study.timings), np.array(list(study.timings.values()), dtype=float)
    plot = Plot((0, 1.05 * values.max() or 1.0), x_label="seconds", lanes=names)
    lanes = np.arange(len(names))
    tips = [f"{name}: {seconds(value)}" for name, value in study.timings.items()]
    plot.boxes(0 * values, lanes - 0.3, values, lanes + 0.3, tips)
    return Figure("Time taken", plot, f"{seconds(values.sum())} in all: {'; '.join(tips)}.")
