"""A stream whose concept changes: what a model that learns and forgets exactly is worth at every moment.

    python examples/stream.py [--samples 3000] [--out stream.png] [--river]

Two classes in the plane lie on the two sides of a wave; 5 % of the labels are wrong. After a quarter of the stream the
wave jumps by 120 degrees; in the third quarter it turns slowly by 180 degrees. Every row is predicted first and learnt
then (test, then train) by four models with the same kernel and penalty, which differ in what they forget. The window
knows its exact leave-one-out accuracy after every step and sees the drift by itself. It judges the rows held: while the
concept moves on, the next row is harder than that. Forgetting what matters least keeps rows of influence, and outdated
rows and wrong labels have much of it. ``--river`` adds an adaptive tree of river and the window in river's own
evaluation. The figure needs matplotlib.
"""

import argparse
import sys
import time

import numpy as np
from threadpoolctl import threadpool_limits

from foldless import LSSVC
from foldless.estimators import SlidingWindow

JUMP, TURN, REST = 0.25, 0.5, 0.75  # parts of the stream: the jump, the start and the end of the slow turn
WRONG = 0.05  # share of wrong labels
WINDOW, LIMIT = 200, 1000  # rows of the windows, and of the model that never forgets
MODEL = LSSVC(gamma=0.5, alpha=0.3)
COLOURS = {"oldest": "#0072b2", "least": "#cc79a7", "never": "#d55e00", "static": "0.45"}
LABELS = {
    "oldest": f"last {WINDOW} rows",
    "least": f"{WINDOW} rows, forgets\nwhat matters least",
    "never": f"never forgets\n(first {LIMIT} rows)",
    "static": f"static\n(first {WINDOW} rows)",
}


def simulate(n, rng):
    """Rows, labels and the angle of the wave at every step."""
    t = np.arange(n) / n
    angle = np.where(t < JUMP, 0.0, 2 / 3 * np.pi) + np.pi * np.clip((t - TURN) / (REST - TURN), 0, 1)
    X = rng.normal(size=(n, 2))
    along = np.cos(angle) * X[:, 0] + np.sin(angle) * X[:, 1]
    across = np.cos(angle) * X[:, 1] - np.sin(angle) * X[:, 0]
    y = (across > 0.8 * np.sin(2 * along)) ^ (rng.random(n) < WRONG)
    return X, y.astype(int), angle


# -- test, then train ------------------------------------------------------------------------------------------------


def run(model, X, y, last, watch=False):
    """Hits before learning, leave-one-out accuracy after it, and seconds; rows from ``last`` on are only predicted."""
    hits, loo = np.full((2, len(y)), np.nan)
    start = time.perf_counter()
    model.fit(X[:WINDOW], y[:WINDOW])
    for i in range(WINDOW, len(y)):
        hits[i] = model.predict(X[i : i + 1])[0] == y[i]
        if i < last:
            model.partial_fit(X[i : i + 1], y[i : i + 1])
        if watch:
            loo[i] = model.loo_score_
    return hits, loo, time.perf_counter() - start


def compare(X, y):
    """Results of the four models by name."""
    n = len(y)
    return {
        "oldest": run(SlidingWindow(MODEL, WINDOW), X, y, n, watch=True),
        "least": run(SlidingWindow(MODEL, WINDOW, drop="least"), X, y, n),
        "never": run(LSSVC(**MODEL.get_params()), X, y, LIMIT),
        "static": run(LSSVC(**MODEL.get_params()), X, y, 0),
    }


def trailing(hits, rows):
    """Mean of the last ``rows`` hits at every step; nan as long as there are fewer."""
    sums = np.cumsum(np.nan_to_num(hits))
    means = np.full(len(hits), np.nan)
    first = np.flatnonzero(np.isfinite(hits))[0]
    means[first + rows - 1 :] = (sums[first + rows - 1 :] - np.append(0, sums)[first : len(hits) - rows + 1]) / rows
    return means


# -- report ----------------------------------------------------------------------------------------------------------


def report(results):
    """Accuracy by part of the stream, and how well the leave-one-out accuracy knew it."""
    n = len(results["oldest"][0])
    parts = {"before": (WINDOW / n, JUMP), "jump": (JUMP, TURN), "slow turn": (TURN, REST), "after": (REST, 1.0)}
    print("   " + "accuracy, test then train".ljust(38) + "".join(f"{part:>11}" for part in parts) + "    all   time")
    for name, (hits, _, seconds) in results.items():
        cells = [np.nanmean(hits[int(a * n) : int(b * n)]) for a, b in parts.values()]
        label = LABELS[name].replace("\n", " ")
        print(f"   {label:38}" + "".join(f"{cell:11.3f}" for cell in cells), end="")
        print(f"  {np.nanmean(hits):.3f}  {seconds:4.1f} s")
    hits, loo, _ = results["oldest"]
    tested = trailing(hits, WINDOW)
    both = np.isfinite(tested)
    print(f"\n   the last {WINDOW} rows: leave-one-out accuracy of the window, and accuracy when they came")
    print(f"   correlation {np.corrcoef(loo[both], tested[both])[0, 1]:.2f},", end=" ")
    print(f"mean difference {np.mean(loo[both] - tested[both]):+.3f}\n")


def peers(X, y):
    """An adaptive tree of river, and the window in river's evaluation."""
    try:
        from river import evaluate, metrics, tree
    except ImportError:
        sys.exit('--river needs river: pip install "river>=0.26"')
    from foldless.river import RiverClassifier

    rows = [({"x": a, "y": b}, label) for (a, b), label in zip(X.tolist(), y.tolist(), strict=True)]
    print("   in river's progressive_val_score, from the first row on")
    for name, model in (
        ("HoeffdingAdaptiveTreeClassifier", tree.HoeffdingAdaptiveTreeClassifier(seed=0)),
        (f"RiverClassifier, last {WINDOW} rows", RiverClassifier(SlidingWindow(MODEL, WINDOW))),
    ):
        start = time.perf_counter()
        accuracy = evaluate.progressive_val_score(rows, model, metrics.Accuracy())
        print(f"   {name:38}{accuracy.get():11.3f}  {time.perf_counter() - start:4.1f} s")
    print()


# -- figure ----------------------------------------------------------------------------------------------------------


def draw(path, X, y, angle, results):
    """The concept at four moments, accuracy over time, and the window's own view of it."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    n = len(y)
    figure = plt.figure(figsize=(10, 8.2), layout="constrained")
    grid = figure.add_gridspec(3, 4, height_ratios=[1, 2.1, 1.5])
    for column, (moment, title) in enumerate(
        ((JUMP / 2, "before"), ((JUMP + TURN) / 2, "after the jump"), ((TURN + REST) / 2, "turning"), (0.95, "at rest"))
    ):
        draw_concept(figure.add_subplot(grid[0, column]), X, y, angle, int(moment * n), title)
    above = figure.add_subplot(grid[1, :])
    below = figure.add_subplot(grid[2, :], sharex=above)

    ends = {name: trailing(hits, WINDOW // 2) for name, (hits, _, _) in results.items()}
    for name, accuracy in ends.items():
        above.plot(accuracy, color=COLOURS[name], linewidth=2.2 if name == "oldest" else 1.4)
    name_lines(above, {name: accuracy[-1] for name, accuracy in ends.items()})
    above.set_title(f"Accuracy of the last {WINDOW // 2} predictions, each made before the row was learnt", loc="left")

    hits, loo, _ = results["oldest"]
    around = slice(int(JUMP * n), int(TURN * n))
    for curve, text, colour, width in (
        (trailing(hits, WINDOW), "predicted as they came", "0.4", 1.4),
        (loo, "exact leave-one-out, now", COLOURS["oldest"], 2.2),
    ):
        below.plot(curve, color=colour, linewidth=width)
        dip = around.start + np.argmin(curve[around])
        below.annotate(text, (dip, curve[dip]), (9, -7), textcoords="offset points", color=colour, va="center")
    below.set_title(f"The last {WINDOW} rows: accuracy as the window holding them judges, and as they came", loc="left")
    below.set_xlabel("rows seen")
    above.tick_params(labelbottom=False)
    for ax, low in ((above, 0.0), (below, 0.5)):
        ax.set(ylim=(low, 1.0), xlim=(0, n), ylabel="accuracy")
        ax.axhline(1 - WRONG, color="0.6", linestyle=":", linewidth=1)
        ax.axvline(JUMP * n, color="0.25", linewidth=1, linestyle="--")
        ax.axvspan(TURN * n, REST * n, color="0.93", zorder=0)
        ax.spines[["top", "right"]].set_visible(False)
    below.text(JUMP * n, 0.52, " jump by 120°", color="0.25")
    below.text((TURN + REST) / 2 * n, 0.52, "slow turn by 180°", color="0.25", ha="center")
    above.text(0, 1 - WRONG, " best possible", color="0.45", fontsize="small", va="bottom")
    figure.savefig(path, dpi=150)
    print(f"   figure: {path}\n")


def draw_concept(ax, X, y, angle, i, title):
    """Rows around step i and the wave of that moment."""
    rows = slice(i - 40, i + 40)
    for label, colour, marker in ((0, "#56b4e9", "o"), (1, "#e69f00", "s")):
        ax.scatter(*X[rows][y[rows] == label].T, s=9, color=colour, marker=marker, linewidth=0)
    along = np.linspace(-4, 4, 200)
    wave = 0.8 * np.sin(2 * along)
    c, s = np.cos(angle[i]), np.sin(angle[i])
    ax.plot(c * along - s * wave, s * along + c * wave, color="0.2", linewidth=1.2)
    ax.set(xlim=(-2.8, 2.8), ylim=(-2.2, 2.2), xticks=[], yticks=[], aspect="equal")
    ax.set_title(f"{title}, row {i}", fontsize="small", color="0.25")
    ax.spines[:].set_color("0.85")


def name_lines(ax, ends, gap=0.13):
    """Names beside the ends of the lines, pushed apart where they would overlap."""
    names = sorted(ends, key=ends.get)
    places = np.array([ends[name] for name in names])
    for _ in range(50):
        for k in range(len(places) - 1):
            excess = gap - (places[k + 1] - places[k])
            if excess > 0:
                places[k : k + 2] += [-excess / 2, excess / 2]
    for name, place in zip(names, places, strict=True):
        text = ax.annotate(LABELS[name], (1.01, place), xycoords=("axes fraction", "data"), va="center")
        text.set(color=COLOURS[name], fontweight="bold" if name == "oldest" else "normal", linespacing=1.1)


def main():
    """Simulate, compare, report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=3000, help="rows of the stream, at least 1200")
    parser.add_argument("--out", metavar="PATH", help="where to save the figure")
    parser.add_argument("--river", action="store_true", help="run a tree of river as well")
    arguments = parser.parse_args()
    if arguments.samples < 1200:
        parser.error(f"--samples {arguments.samples}: each quarter must be longer than a window; give 1200 or more.")

    X, y, angle = simulate(arguments.samples, np.random.default_rng(0))
    print(f"\n{len(X)} rows; the concept jumps at row {JUMP * len(X):.0f} and turns slowly", end=" ")
    print(f"from row {TURN * len(X):.0f} to {REST * len(X):.0f}; at best {1 - WRONG:.2f} is right\n")
    results = compare(X, y)
    report(results)
    if arguments.river:
        peers(X, y)
    if arguments.out:
        draw(arguments.out, X, y, angle, results)


if __name__ == "__main__":
    with threadpool_limits(1):  # the better setting for matrices of this size
        main()
