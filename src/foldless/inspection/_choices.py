"""Displays of choices: scales of the features by a search, settings by the outer splits of nested cross-validation."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from foldless._sklearn.pipelines import split_steps
from foldless.inspection._canvas import (
    DARK,
    MARKERS,
    NULL,
    OBSERVED,
    Ax,
    Display,
    Style,
    class_colour,
    plain_log,
    style,
)
from foldless.inspection._search import axis_name, numbers


@dataclass(kw_only=True, eq=False, repr=False)
class FeatureScalesDisplay(Display):
    """The scales that a search gave the features, largest first.

    Parameters
    ----------
    scales : array-like of shape (n_features,) or (n_classes, n_features)
    names : sequence of str, default=None; of the features
    classes : sequence, default=None; names of the classes that have scales of their own
    n_shown : int, default=40; features that are drawn

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    points_ : list of Line2D, one for each class that has scales of its own

    Examples
    --------
    >>> from foldless.inspection import FeatureScalesDisplay
    >>> display = FeatureScalesDisplay(scales=[0.01, 2.0, 0.3], names=["a", "b", "c"]).plot()
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['b', 'c', 'a']
    """

    scales: ArrayLike
    names: Any = None
    classes: Any = None
    n_shown: int = 40

    @classmethod
    def from_search(cls, search: Any, *, ax: Ax = None, line_kw: Style = None) -> Self:
        """Draw the scales of a search with ``method=Optimizer(feature_scaling=True)``."""
        if not hasattr(search, "feature_scales_"):
            raise ValueError(
                f"{cls.__name__} needs a search with method=Optimizer(feature_scaling=True); this one has no scales"
            )
        names, classes = (getattr(search, name, None) for name in ("feature_names_in_", "classes_"))
        return cls(scales=search.feature_scales_, names=names, classes=classes).plot(ax, line_kw=line_kw)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Ax = None, line_kw: Style = None) -> Self:
        """Draw a fitted estimator, or the last step of a pipeline, whose ``gamma`` is one number for each feature."""
        steps = split_steps(estimator)
        gamma = np.asarray(getattr(getattr(steps.last, "kernel_", None), "gamma", 0.0))
        if gamma.ndim != 1:
            raise ValueError(f"{cls.__name__} needs one gamma for each feature; {type(steps.last).__name__} has none.")
        names = getattr(steps.last if steps.first is not None else estimator, "feature_names_in_", None)
        return cls(scales=gamma, names=names).plot(ax, line_kw=line_kw)

    def plot(self, ax: Ax = None, *, line_kw: Style = None) -> Self:
        """Draw the ``n_shown`` largest into ``ax``, or a new figure; keywords are those of ``Axes.plot``."""
        ax = self._open(ax)
        from matplotlib.lines import Line2D

        scales = np.atleast_2d(np.asarray(self.scales, float))
        order = np.argsort(-scales.max(0), kind="stable")[: self.n_shown]
        names = np.arange(scales.shape[1]) if self.names is None else np.asarray(self.names)
        several = len(scales) > 1
        labels = range(len(scales)) if self.classes is None else self.classes
        self.points_: list = []
        for code, (values, label) in enumerate(zip(scales, labels if several else [None], strict=True)):
            look = {"color": class_colour(code), "marker": MARKERS[code % len(MARKERS)], "markersize": 5}
            look |= {"linestyle": "none", "label": None if label is None else str(label)}
            self.points_ += ax.plot(values[order], np.arange(len(order)), **style(Line2D, line_kw, **look))
        ax.set(xscale="log", xlabel="scale", yticks=np.arange(len(order)), yticklabels=names[order])
        ax.set_ylabel("feature" if self.names is None else "")
        plain_log(ax.xaxis)
        ax.tick_params(axis="y", labelsize=7 if len(order) > 12 else "small")
        ax.invert_yaxis()
        if several:
            self._legend_below(3)
        return self


@dataclass(kw_only=True, eq=False, repr=False)
class NestedDisplay(Display):
    """The parameters that the outer splits of nested cross-validation chose, with their held-out scores.

    One parameter is drawn against the score, two against each other, of more every split is a line across them.

    Parameters
    ----------
    values : dict {name: array-like of shape (n_splits,)}, chosen values, positive numbers
    score : array-like of shape (n_splits,), held-out scores

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    points_ : PathCollection of one or two parameters; equal choices are drawn once, larger. None of more
    lines_ : LineCollection of more than two parameters, one line for each split; else None
    colorbar_ : Colorbar of the scores; None of one parameter, which has them on its axis

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from foldless import FoldlessSearchCV, LSSVC
    >>> from foldless.inspection import NestedDisplay
    >>> from foldless.model_selection import nested_cross_validate
    >>> result = nested_cross_validate(FoldlessSearchCV(LSSVC()), *load_iris(return_X_y=True))
    >>> NestedDisplay.from_result(result).ax_.get_ylabel()
    'gamma'
    >>> NestedDisplay.from_result(result, names=["alpha"]).ax_.get_ylabel()
    'held-out score'
    """

    values: dict
    score: ArrayLike

    @classmethod
    def from_result(
        cls, result: Any, *, names: Sequence[str] | None = None, ax: Ax = None, artist_kw: Style = None
    ) -> Self:
        """Draw what ``nested_cross_validate`` returned, of several scores the first.

        ``names`` are some of the parameters that were chosen, by default all that are positive numbers. Several
        numbers, of features or classes, are drawn at their geometric mean.
        """
        steps = [_merged(params) for params in result.best_params]
        values = numbers(steps)
        chosen = tuple(values if names is None else names)
        if not chosen or not set(chosen) <= set(values):
            raise ValueError(f"{cls.__name__} needs parameters that are positive numbers; names can be {list(values)}.")
        score = result.test_score
        first = next(iter(score.values())) if isinstance(score, dict) else score
        display = cls(values={axis_name(name, steps): values[name] for name in chosen}, score=first)
        return display.plot(ax, artist_kw=artist_kw)

    def plot(self, ax: Ax = None, *, artist_kw: Style = None) -> Self:
        """Draw into ``ax``, or a new figure; keywords are those of ``Axes.scatter`` or ``LineCollection``."""
        self._open(ax)
        self.points_: Any = None
        self.lines_: Any = None
        self.colorbar_: Any = None
        columns = [np.asarray(column, float) for column in self.values.values()]
        score = np.asarray(self.score, float)
        if len(columns) > 2:
            self._draw_lines(columns, score, artist_kw)
        else:
            self._draw_points(columns, score, artist_kw)
        return self

    def _draw_points(self, columns, score, artist_kw):
        from matplotlib.collections import PathCollection

        ax, names = self.ax_, list(self.values)
        alone = len(columns) == 1
        pairs = np.column_stack([columns[0], score if alone else columns[1]])
        pairs, which = np.unique(pairs, axis=0, return_inverse=True)
        counts = np.bincount(which.ravel())
        fill = {"facecolor": OBSERVED} if alone else {"cmap": "viridis"}
        look = style(PathCollection, artist_kw, s=40 * counts, edgecolor=DARK, **fill)
        if alone:
            self.points_ = ax.scatter(*pairs.T, **look)
            ax.set(xscale="log", xlabel=names[0], ylabel="held-out score")
        else:
            means = np.bincount(which.ravel(), score) / counts
            self.points_ = ax.scatter(*pairs.T, **{"c": means, **look})
            ax.set(xscale="log", yscale="log", xlabel=names[0], ylabel=names[1])
            self._add_colorbar(self.points_, "mean held-out score")
        ax.margins(0.15)
        plain_log(ax.xaxis)
        if not alone:
            plain_log(ax.yaxis)

    def _draw_lines(self, columns, score, artist_kw):
        """Parallel axes, each from the least to the largest of its logarithms."""
        from matplotlib.collections import LineCollection

        ax, places = self.ax_, np.arange(len(columns))
        logs = np.log(np.column_stack(columns))
        low, size = logs.min(0), np.ptp(logs, axis=0)
        heights = np.where(size > 0, (logs - low) / np.where(size > 0, size, 1.0), 0.5)
        lines = [np.column_stack([places, heights_of_split]) for heights_of_split in heights]
        self.lines_ = LineCollection(lines, **{"cmap": "viridis", "array": score, **style(LineCollection, artist_kw)})
        ax.add_collection(self.lines_)
        ax.vlines(places, 0, 1, color=NULL, linewidth=0.8, zorder=0)
        ends: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "size": "small", "color": DARK}
        for place, column in zip(places, columns, strict=True):
            ax.annotate(f"{column.min():.2g}", (place, 0), (0, -4), va="top", **ends)
            ax.annotate(f"{column.max():.2g}", (place, 1), (0, 4), va="bottom", **ends)
        ax.set(xlim=(-0.3, len(places) - 0.7), ylim=(-0.15, 1.15), yticks=[])
        ax.set_xticks(places, [name.replace(" (", "\n(") for name in self.values], size="small")
        ax.spines["left"].set_visible(False)
        self._add_colorbar(self.lines_, "held-out score")


def _merged(params):
    """The settings of all classes as one: a list of values for each name."""
    if isinstance(params, dict):
        return params
    return {name: [setting[name] for setting in params if name in setting] for name in params[0]}
