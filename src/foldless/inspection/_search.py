"""A search in pictures: every setting it looked at, the criterion along alpha, scales of features, nested choices.

Criteria on more rows are smaller, whatever the setting. Colours therefore show the criterion as a multiple of the least
one on as many rows, and the size of a point shows how many these are.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from foldless.bridge.pipelines import split_steps
from foldless.inspection._canvas import DARK, LEGEND, NULL, OBSERVED, Ax, Display, Style, style

NOT_PARAMETERS = ("criterion", "score", "objective", "start", "n_rows", "time")


def _numbers(history):
    """{parameter: values} of those parameters of a history that are positive numbers throughout."""
    names = [name for name in history[0] if name not in NOT_PARAMETERS]
    columns = {name: [step.get(name) for step in history] for name in names}
    return {
        name: np.array(values, float)
        for name, values in columns.items()
        if all(isinstance(value, int | float) and value > 0 for value in values)
    }


def _words(params):
    """Parameters in words, numbers with three digits."""
    return ", ".join(
        f"{name}={value:.3g}" if isinstance(value, float) else f"{name}={value}" for name, value in params.items()
    )


def _loss(step):
    """What decided about a setting: its criterion, or minus its score."""
    return step["criterion"] if "criterion" in step else -step["score"]


def _history(search, display):
    history = getattr(search, "history_", None)
    if not history:
        raise ValueError(f"{display} draws a fitted FoldlessSearchCV; got {type(search).__name__} without history_")
    return history


@dataclass(kw_only=True, eq=False, repr=False)
class SearchDisplay(Display):
    """Every setting that a search looked at: two parameters, the criterion in colour, the number of rows in size.

    Parameters
    ----------
    x, y : array-like of shape (n_evaluations,), values of two parameters
    criterion : array-like of shape (n_evaluations,), or minus the score that decided
    n_rows : array-like of shape (n_evaluations,), rows that each was judged on
    best : tuple of two floats, the chosen values
    names : tuple of two str

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    points_ : list of PathCollection, one for each number of rows
    best_ : Line2D at the chosen setting
    colorbar_ : Colorbar

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from foldless import FoldlessSearchCV, LSSVC
    >>> from foldless.inspection import SearchDisplay
    >>> search = FoldlessSearchCV(LSSVC()).fit(*load_iris(return_X_y=True))
    >>> display = SearchDisplay.from_search(search)
    >>> display.ax_.get_xlabel(), display.ax_.get_ylabel()
    ('alpha', 'gamma')
    """

    x: ArrayLike
    y: ArrayLike
    criterion: ArrayLike
    n_rows: ArrayLike
    best: tuple[float, float]
    names: tuple[str, str] = ("alpha", "gamma")

    @classmethod
    def from_search(
        cls, search: Any, *, names: tuple[str, str] | None = None, ax: Ax = None, scatter_kw: Style = None
    ) -> Self:
        """Draw a fitted search; ``names`` are two of its parameters, by default the first two that are numbers."""
        history = _history(search, cls.__name__)
        values = _numbers(history)
        chosen = tuple(values)[:2] if names is None else tuple(names)
        if len(chosen) != 2 or not set(chosen) <= set(values):
            raise ValueError(
                f"{cls.__name__} needs two parameters that are positive numbers; this search has {list(values)}. For"
                " one parameter draw an AlphaPathDisplay, for scales of features a FeatureScalesDisplay."
            )
        display = cls(
            x=values[chosen[0]],
            y=values[chosen[1]],
            criterion=[_loss(step) for step in history],
            n_rows=[step["n_rows"] for step in history],
            best=(search.best_params_[chosen[0]], search.best_params_[chosen[1]]),
            names=chosen,
        )
        return display.plot(ax, scatter_kw=scatter_kw)

    def plot(self, ax: Ax = None, *, scatter_kw: Style = None) -> Self:
        """Draw into ``ax``, or a new figure; keywords are those of ``Axes.scatter``."""
        ax = self._open(ax)
        from matplotlib.collections import PathCollection
        from matplotlib.colors import LogNorm

        x, y, criterion, n_rows = (np.asarray(each, float) for each in (self.x, self.y, self.criterion, self.n_rows))
        sizes = np.unique(n_rows)
        least = np.array([np.nanmin(criterion[n_rows == size]) for size in sizes])[np.searchsorted(sizes, n_rows)]
        excess = 1 + (criterion - least) / np.where(least, np.abs(least), 1.0)
        highest = float(max(min(np.nanmax(excess), 3.0), 1.01))
        norm = LogNorm(1.0, highest, clip=True)
        self.points_ = []
        for place, size in enumerate(sizes):
            mine = n_rows == size
            label = f"{size:.0f} rows"
            look = {"c": excess[mine], "norm": norm, "cmap": "viridis_r", "s": 12 * 2.5**place, "label": label}
            look |= {"edgecolors": DARK, "linewidths": 0.8 * place / len(sizes), "zorder": 2 + place}
            self.points_.append(ax.scatter(x[mine], y[mine], **{**look, **style(PathCollection, scatter_kw)}))
        look = {"color": "red", "markersize": 16, "markeredgewidth": 2, "zorder": 9, "label": "chosen"}
        self.best_ = ax.plot(*self.best, "+", **look)[0]
        ax.set(xscale="log", yscale="log", xlabel=self.names[0], ylabel=self.names[1])
        ticks = [tick for tick in (1, 1.1, 1.2, 1.5, 2, 3) if tick <= highest]
        self._add_colorbar(self.points_[0], "loss / least on as many rows", extend="max", ticks=ticks, format="%g")
        ax.legend(**LEGEND, loc="upper left", bbox_to_anchor=(0, -0.12), ncols=len(sizes) + 1)
        return self


@dataclass(kw_only=True, eq=False, repr=False)
class AlphaPathDisplay(Display):
    """The criterion along alpha, one line for each setting of the other parameters.

    Parameters
    ----------
    alpha, criterion : lists of array-likes, one pair for each line
    best : tuple of two floats, the chosen alpha and its criterion
    labels : list of str, the other parameters in words
    ylabel : str, default="criterion"

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    lines_ : list of Line2D; the one of the chosen setting is blue
    best_ : Line2D at the chosen alpha

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.linear_model import RidgeClassifier
    >>> from foldless import FoldlessSearchCV
    >>> from foldless.inspection import AlphaPathDisplay
    >>> search = FoldlessSearchCV(RidgeClassifier()).fit(*load_wine(return_X_y=True))
    >>> len(AlphaPathDisplay.from_search(search).lines_)
    1
    """

    alpha: list
    criterion: list
    best: tuple[float, float]
    labels: list
    ylabel: str = "criterion"

    @classmethod
    def from_search(cls, search: Any, *, ax: Ax = None, line_kw: Style = None) -> Self:
        """Draw the evaluations of a fitted search on the number of rows that it has most of."""
        history = _history(search, cls.__name__)
        counts = np.unique([step["n_rows"] for step in history], return_counts=True)
        rows = counts[0][np.argmax(counts[1])]
        lines: dict = {}
        alpha = f"{split_steps(getattr(search, 'estimator', None)).prefix}alpha"
        for step in history:
            others = {name: each for name, each in step.items() if name not in (*NOT_PARAMETERS, alpha)}
            if step["n_rows"] == rows and alpha in step and np.ndim(step[alpha]) == 0:
                found = lines.setdefault(repr(others), (_words(others), []))
                found[1].append((step[alpha], _loss(step)))
        pairs = {label: np.array(sorted(line)).T for label, line in lines.values() if len(line) > 2}
        if not pairs:
            raise ValueError(f"{cls.__name__} needs several alphas of one kernel; this search has a path to none")
        least = min(pairs, key=lambda label: pairs[label][1].min())
        place = int(pairs[least][1].argmin())
        what = "criterion" if "criterion" in history[0] else "minus the score"
        display = cls(
            alpha=[line[0] for line in pairs.values()],
            criterion=[line[1] for line in pairs.values()],
            best=(float(pairs[least][0][place]), float(pairs[least][1][place])),
            labels=list(pairs),
            ylabel=what,
        )
        return display.plot(ax, line_kw=line_kw)

    def plot(self, ax: Ax = None, *, line_kw: Style = None) -> Self:
        """Draw into ``ax``, or a new figure; keywords are those of ``Axes.plot``."""
        ax = self._open(ax)
        from matplotlib.lines import Line2D

        self.lines_: list = []
        for alpha, criterion, label in zip(self.alpha, self.criterion, self.labels, strict=True):
            chosen = self.best[1] == np.min(criterion)
            look = {"color": OBSERVED, "zorder": 3, "label": label} if chosen else {"color": NULL, "linewidth": 0.8}
            self.lines_ += ax.plot(alpha, criterion, **style(Line2D, line_kw, **look))
        self.best_ = ax.plot(*self.best, "o", color=OBSERVED, zorder=4)[0]
        ax.set(xscale="log", xlabel="alpha", ylabel=self.ylabel)
        if any(self.labels):
            ax.legend(**LEGEND)
        return self


@dataclass(kw_only=True, eq=False, repr=False)
class FeatureScalesDisplay(Display):
    """The scales that a search gave the features, largest first.

    Parameters
    ----------
    scales : array-like of shape (n_features,) or (n_classes, n_features)
    names : sequence of str, default=None; of the features

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
    n_shown: int = 40

    @classmethod
    def from_search(cls, search: Any, *, ax: Ax = None, line_kw: Style = None) -> Self:
        """Draw the scales of a search with ``feature_scaling=True``."""
        if not hasattr(search, "feature_scales_"):
            raise ValueError(f"{cls.__name__} needs a search fitted with feature_scaling=True; this one has no scales")
        names = getattr(search, "feature_names_in_", None)
        return cls(scales=search.feature_scales_, names=names).plot(ax, line_kw=line_kw)

    def plot(self, ax: Ax = None, *, line_kw: Style = None) -> Self:
        """Draw the ``n_shown`` largest into ``ax``, or a new figure; keywords are those of ``Axes.plot``."""
        ax = self._open(ax)
        from matplotlib.lines import Line2D

        scales = np.atleast_2d(np.asarray(self.scales, float))
        order = np.argsort(-scales.max(0), kind="stable")[: self.n_shown]
        names = np.arange(scales.shape[1]) if self.names is None else np.asarray(self.names)
        look = style(Line2D, line_kw, marker="o", linestyle="none")
        self.points_ = [ax.plot(each[order], np.arange(len(order)), **look)[0] for each in scales]
        ax.set(xscale="log", xlabel="scale", ylabel="feature", yticks=np.arange(len(order)), yticklabels=names[order])
        ax.invert_yaxis()
        return self


@dataclass(kw_only=True, eq=False, repr=False)
class NestedDisplay(Display):
    """What the outer splits of nested cross-validation chose, and what each choice was worth.

    Parameters
    ----------
    x, y : array-like of shape (n_splits,), values of two parameters
    score : array-like of shape (n_splits,), held-out scores
    names : tuple of two str

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    points_ : PathCollection; equal choices are drawn once, larger
    colorbar_ : Colorbar

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from foldless import FoldlessSearchCV, LSSVC
    >>> from foldless.inspection import NestedDisplay
    >>> from foldless.model_selection import nested_cross_validate
    >>> result = nested_cross_validate(FoldlessSearchCV(LSSVC()), *load_iris(return_X_y=True))
    >>> display = NestedDisplay.from_result(result)
    >>> display.ax_.get_xlabel()
    'alpha'
    """

    x: ArrayLike
    y: ArrayLike
    score: ArrayLike
    names: tuple[str, str] = ("alpha", "gamma")

    @classmethod
    def from_result(
        cls, result: Any, *, names: tuple[str, str] | None = None, ax: Ax = None, scatter_kw: Style = None
    ) -> Self:
        """Draw what ``nested_cross_validate`` returned, of several scores the first.

        ``names`` are two of the parameters that were chosen.
        """
        values = _numbers(result.best_params)
        chosen = tuple(values)[:2] if names is None else tuple(names)
        if len(chosen) != 2 or not set(chosen) <= set(values):
            raise ValueError(f"{cls.__name__} needs two parameters that are positive numbers; found {list(values)}")
        score = result.test_score
        first = next(iter(score.values())) if isinstance(score, dict) else score
        display = cls(x=values[chosen[0]], y=values[chosen[1]], score=first, names=chosen)
        return display.plot(ax, scatter_kw=scatter_kw)

    def plot(self, ax: Ax = None, *, scatter_kw: Style = None) -> Self:
        """Draw into ``ax``, or a new figure; keywords are those of ``Axes.scatter``."""
        ax = self._open(ax)
        from matplotlib.collections import PathCollection

        pairs, which = np.unique(np.column_stack([self.x, self.y]), axis=0, return_inverse=True)
        counts = np.bincount(which.ravel())
        means = np.bincount(which.ravel(), np.asarray(self.score, float)) / counts
        look = style(PathCollection, scatter_kw, cmap="viridis", s=60 * counts, edgecolors=DARK)
        self.points_ = ax.scatter(*pairs.T, **{"c": means, **look})
        ax.set(xscale="log", yscale="log", xlabel=self.names[0], ylabel=self.names[1])
        self._add_colorbar(self.points_, "mean held-out score of the splits that chose it")
        return self
