"""A classifier that forgets a point and learns another: figure 2 of Kim, Drake & Park (2006), redrawn.

Twelve points of two classes, the kernel exp(-0.1 |x - z|^2), alpha = 1e-7. On the left the twelfth point is forgotten,
on the right the point [9, 8] is learned, both by updating a QR factorisation; each boundary is drawn over that of a
fit from scratch, and the largest difference of their decision values is printed.

    python examples/adaptive_kda.py [--figure adaptive_kda.png]

The figure needs matplotlib.
"""

import argparse
from pathlib import Path

import numpy as np

from foldless import AdaptiveKDA

# Read from a damaged table with a digit too many in the second row (... 9 4 1 4). The last one is taken for the stray
# one: like the classes of the text, these are "nonlinearly separable", and are so because of the twelfth point.
POINTS = np.column_stack([[2, 3, 2, 8, 6, 4, 9, 9, 9, 6, 7, 4], [7, 6, 2, 1, 4, 8, 5, 9, 4, 9, 4, 1]])
CLASSES = np.array([-1] * 5 + [1] * 7)
AXIS = np.linspace(0, 11, 221)


def models():
    """(title, point in question, points and classes afterwards, updated model, model from scratch) of both panels."""
    options = {"gamma": 0.1, "alpha": 1e-7}
    model = AdaptiveKDA(**options).fit(POINTS, CLASSES).forget([11])
    X, y = POINTS[:11], CLASSES[:11]
    yield "the 12th point forgotten", POINTS[11], X, y, model, AdaptiveKDA(**options).fit(X, y)
    model = AdaptiveKDA(**options).fit(POINTS, CLASSES).partial_fit([[9, 8]], [1])
    X, y = np.vstack([POINTS, [9, 8]]), np.append(CLASSES, 1)
    yield "the point [9, 8] learned", X[-1], X, y, model, AdaptiveKDA(**options).fit(X, y)


def draw(panels, path):
    """Both boundaries on top of each other, the points, and the one that went or came."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.lines import Line2D

    blue, orange, grey = "#0072b2", "#d55e00", "0.6"
    figure, axes = plt.subplots(1, 2, figsize=(9, 4.6), sharey=True, layout="constrained")
    for ax, (title, point, X, y, updated, scratch) in zip(axes, panels, strict=True):
        ax.contourf(AXIS, AXIS, updated, levels=[-np.inf, 0, np.inf], colors=[blue, orange], alpha=0.12)
        ax.contour(AXIS, AXIS, scratch, levels=[0], colors=[grey], linewidths=4)
        ax.contour(AXIS, AXIS, updated, levels=[0], colors=["black"], linewidths=1.2, linestyles="dashed")
        for label, colour, marker in ((-1, blue, "o"), (1, orange, "s")):
            ax.scatter(*X[y == label].T, s=45, color=colour, marker=marker, edgecolor="white", zorder=3)
        ax.scatter(*point, s=190, facecolor="none", edgecolor="black", zorder=4)
        ax.set(title=title, xlabel="$x_1$", xlim=(0, 11), ylim=(0, 11), aspect="equal")
    axes[0].set_ylabel("$x_2$")
    lines = [
        Line2D([], [], color=grey, linewidth=4, label="fitted from scratch"),
        Line2D([], [], color="black", linewidth=1.2, linestyle="dashed", label="updated"),
        Line2D([], [], color=blue, marker="o", linestyle="", label="class -1"),
        Line2D([], [], color=orange, marker="s", linestyle="", label="class 1"),
        Line2D([], [], color="black", marker="o", markersize=12, fillstyle="none", linestyle="", label="gone or new"),
    ]
    figure.legend(handles=lines, loc="outside lower center", ncols=5, frameon=False)
    figure.savefig(path, dpi=150)
    print(f"written: {path}")


def main():
    """Print the differences, draw the figure."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--figure", type=Path, default=Path("adaptive_kda.png"))
    options = options.parse_args()
    grid = np.column_stack([each.ravel() for each in np.meshgrid(AXIS, AXIS)])
    panels = []
    for title, point, X, y, *pair in models():
        updated, scratch = (model.decision_function(grid).reshape(len(AXIS), -1) for model in pair)
        difference = np.abs(updated - scratch).max()
        print(f"{title}: decision values of {grid.shape[0]:,} points differ by at most {difference:.1e}")
        panels.append((title, point, X, y, updated, scratch))
    draw(panels, options.figure)


if __name__ == "__main__":
    main()
