"""The plots of the search and of the time taken."""

import numpy as np

from foldless.report.svg import Figure, Plot, spread
from foldless.report.words import called, capital, number, params, seconds

SHADES = 5
WIDE = 20  # times the least: the axis is logarithmic above


def search(study):
    """The criterion of all settings in their order."""
    values = np.array([each.criterion for each in study.model.trials], dtype=float)
    finite = values[np.isfinite(values)]
    if len(finite) < 2:
        return None
    log = "y" * bool(0 < WIDE * finite.min() < finite.max())
    ends = (finite.min() / 1.2, finite.max() * 1.2) if log else spread(values)
    name = called(study.model.criterion_name)
    plot = Plot((0.5, len(values) + 0.5), ends, "settings in the order of the search", name, log=log)
    order = np.arange(1, len(values) + 1)
    tips = [f"{params(each.params)}: {number(each.criterion, 4)}" for each in study.model.trials]
    plot.line(order, np.fmin.accumulate(values), "l1").points(order, values, tips)
    text = (
        f"{capital(name)} of {len(values):,} settings; the less, the better. The least is {number(finite.min())}."
        " As it is the least of many, it is no honest estimate of the error."
    )
    return Figure("Criterion over the search", plot, text, (("c0", "a setting"), ("l1", "best so far")))


def settings(study):
    """Where the settings lie in the plane of two parameters; the better, the stronger the colour."""
    chosen, trials = study.model.params, [each for each in study.model.trials if np.isfinite(each.criterion)]
    if len(trials) < SHADES or len(chosen) != 2 or any(set(each.params) != set(chosen) for each in trials):
        return None
    up, across = chosen  # alpha upwards, the parameter of the kernel across
    x, y = (np.array([each.params[name] for each in trials], dtype=float) for name in (across, up))
    if min(x.min(), y.min()) <= 0:
        return None
    plot = Plot((x.min() / 1.6, x.max() * 1.6), (y.min() / 1.6, y.max() * 1.6), across, up, log="xy")
    worst_first = np.argsort([-each.criterion for each in trials], kind="stable")
    shades = SHADES * np.arange(len(trials)) // len(trials) + 1
    tips = [f"{params(trials[i].params)}: {number(trials[i].criterion, 4)}" for i in worst_first]
    plot.points(x[worst_first], y[worst_first], tips, [f"fill{each}" for each in shades], 5)
    plot.points([chosen[across]], [chosen[up]], [f"chosen: {params(chosen)}"], "ring", 8)
    name = called(study.model.criterion_name)
    text = f"The same {len(trials):,} settings; the stronger the colour, the less the {name}. Chosen: {params(chosen)}."
    keys = (("fill5", "among the best fifth"), ("fill1", "among the worst fifth"), ("cring", "chosen"))
    return Figure("Settings that were tried", plot, text, keys)


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
