"""Displays of a search: all evaluated settings, and the criterion along alpha.

Criteria on more rows are smaller, whatever the setting. Colours therefore show the criterion as a multiple of the least
one on as many rows, and the size of a point shows the number of rows. A parameter of several numbers, one for each
feature or class, is drawn at their geometric mean.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from foldless._sklearn.pipelines import split_steps
from foldless.inspection._canvas import DARK, ERRORS, LEGEND, NULL, OBSERVED, Ax, Display, Style, plain_log, style
from foldless.inspection.numbers import excess

NOT_PARAMETERS = ("criterion", "score", "objective", "start", "n_rows", "time")


def numbers(steps):
    """{parameter: values} of those parameters of a list of settings that are positive numbers throughout.

    Several numbers are one, their geometric mean.
    """
    names = dict.fromkeys(name for step in steps for name in step if name not in NOT_PARAMETERS)
    columns = {name: [place_of(step.get(name)) for step in steps] for name in names}
    return {name: np.array(values) for name, values in columns.items() if not np.isnan(values).any()}


def place_of(value):
    """A positive number as it is, several as their geometric mean, nan for anything else."""
    values = np.ravel(np.asarray(value))
    if values.dtype.kind not in "iuf" or not len(values) or not (values > 0).all():
        return np.nan
    return float(values[0]) if len(values) == 1 else float(np.exp(np.log(values).mean()))


def axis_name(name, steps):
    """The name of a parameter, with a remark if its values are means."""
    several = any(np.size(step.get(name)) > 1 for step in steps)
    return f"{name} (geometric mean)" if several else name


def _words(params):
    """Parameters in words, numbers with three digits."""
    return ", ".join(
        f"{name}={value:.3g}" if isinstance(value, float) else f"{name}={value}" for name, value in params.items()
    )


def _loss(step):
    """The loss by which a setting was chosen: its criterion, or minus its score."""
    return step["criterion"] if "criterion" in step else -step["score"]


def _history(search, display):
    history = getattr(search, "history_", None)
    if not history:
        raise ValueError(f"{display} draws a fitted FoldlessSearchCV; got {type(search).__name__} without history_")
    return history


@dataclass(kw_only=True, eq=False, repr=False)
class SearchDisplay(Display):
    """All evaluated settings of a search: two parameters, the criterion in colour, the number of rows in size.

    Parameters
    ----------
    x, y : array-like of shape (n_evaluations,), values of two parameters
    criterion : array-like of shape (n_evaluations,), or minus the score that decided
    n_rows : array-like of shape (n_evaluations,), rows that each was scored on; colours compare those of as many rows,
        of all classes together where each is searched alone (``share="none"``)
    best : tuple of two floats, the chosen values; two arrays where every class has a choice of its own
    names : tuple of two str

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    points_ : list of PathCollection, one for each number of rows
    best_ : Line2D at the chosen settings
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
    best: tuple
    names: tuple[str, str] = ("alpha", "gamma")

    @classmethod
    def from_search(
        cls, search: Any, *, names: tuple[str, str] | None = None, ax: Ax = None, scatter_kw: Style = None
    ) -> Self:
        """Draw a fitted search; ``names`` are two of its parameters, by default the first two that are numbers."""
        history = _history(search, cls.__name__)
        values = numbers(history)
        chosen = tuple(values)[:2] if names is None else tuple(names)
        if len(chosen) != 2 or not set(chosen) <= set(values):
            raise ValueError(
                f"{cls.__name__} needs two parameters that are positive numbers; this search has {list(values)}. For"
                " one parameter draw an AlphaPathDisplay, for scales of features a FeatureScalesDisplay."
            )
        best = search.best_params_ if isinstance(search.best_params_, list) else [search.best_params_]
        display = cls(
            x=values[chosen[0]],
            y=values[chosen[1]],
            criterion=[_loss(step) for step in history],
            n_rows=[step["n_rows"] for step in history],
            best=tuple([place_of(params[name]) for params in best] for name in chosen),
            names=tuple(axis_name(name, history) for name in chosen),
        )
        return display.plot(ax, scatter_kw=scatter_kw)

    @property
    def excess(self) -> np.ndarray:
        """Criteria as multiples of the least one on as many rows."""
        return excess(self.criterion, self.n_rows)

    def plot(self, ax: Ax = None, *, scatter_kw: Style = None) -> Self:
        """Draw into ``ax``, or a new figure; keywords are those of ``Axes.scatter``."""
        ax = self._open(ax)
        from matplotlib.collections import PathCollection
        from matplotlib.colors import LogNorm

        x, y, n_rows = (np.asarray(values, float) for values in (self.x, self.y, self.n_rows))
        sizes, above = np.unique(n_rows), self.excess
        highest = float(max(min(np.nanmax(above), 3.0), 1.01))
        norm = LogNorm(1.0, highest, clip=True)
        self.points_ = []
        for place, size in enumerate(sizes):
            of_size = n_rows == size
            label = f"{size:.0f} rows"
            look = {"c": above[of_size], "norm": norm, "cmap": "viridis_r", "s": 12 * 2.5**place, "label": label}
            look |= {"edgecolors": DARK, "linewidths": 0.8 * place / len(sizes), "zorder": 2 + place}
            self.points_.append(ax.scatter(x[of_size], y[of_size], **{**look, **style(PathCollection, scatter_kw)}))
        look = {"color": ERRORS, "markersize": 10, "markeredgewidth": 2.5, "zorder": 9, "label": "chosen"}
        self.best_ = ax.plot(*self.best, "+", **look)[0]
        ax.set(xscale="log", yscale="log", xlabel=self.names[0], ylabel=self.names[1])
        ticks = [tick for tick in ((1, 1.5, 2, 3) if highest > 2 else (1, 1.1, 1.2, 1.5, 2)) if tick <= highest]
        self._add_colorbar(self.points_[0], "loss / least", extend="max", ticks=ticks, format="%g")
        plain_log(ax.xaxis)
        plain_log(ax.yaxis)
        self._legend_below(2)
        return self


@dataclass(kw_only=True, eq=False, repr=False)
class AlphaPathDisplay(Display):
    """The criterion along alpha, one line for each setting of the other parameters.

    Parameters
    ----------
    alpha, criterion : lists of array-likes, one pair for each line
    best : tuple of two floats, the best of the alphas drawn and its criterion
    labels : list of str, the other parameters in words
    ylabel : str, default="criterion"
    chosen : list of floats, default=(); what the search chose in the end, where it went on from here

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    lines_ : list of Line2D; the one of the best setting is blue
    best_ : Line2D at its best alpha
    chosen_ : list of Line2D at the alphas that were chosen in the end

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
    chosen: Any = ()

    @classmethod
    def from_search(cls, search: Any, *, ax: Ax = None, line_kw: Style = None) -> Self:
        """Draw the evaluations of a fitted search on the most frequent number of rows.

        If the search went on to other rows, or every class has its own alpha, the finally chosen alphas are marked.
        """
        history = _history(search, cls.__name__)
        counts = np.unique([step["n_rows"] for step in history], return_counts=True)
        rows = counts[0][np.argmax(counts[1])]
        lines: dict = {}
        alpha = f"{split_steps(getattr(search, 'estimator', None)).prefix}alpha"
        for step in history:
            others = {name: value for name, value in step.items() if name not in (*NOT_PARAMETERS, alpha)}
            if step["n_rows"] == rows and alpha in step and np.ndim(step[alpha]) == 0:
                _, line = lines.setdefault(repr(others), (_words(others), []))
                line.append((step[alpha], _loss(step)))
        pairs = {label: np.array(sorted(line)).T for label, line in lines.values() if len(line) > 2}
        if not pairs:
            raise ValueError(f"{cls.__name__} needs several alphas of one kernel; this search has a path to none")
        least = min(pairs, key=lambda label: pairs[label][1].min())
        place = int(pairs[least][1].argmin())
        what = "criterion" if "criterion" in history[0] else "minus the score"
        params = search.best_params_ if isinstance(search.best_params_, list) else [search.best_params_]
        chosen = {float(setting[alpha]) for setting in params if alpha in setting}
        display = cls(
            alpha=[line[0] for line in pairs.values()],
            criterion=[line[1] for line in pairs.values()],
            best=(float(pairs[least][0][place]), float(pairs[least][1][place])),
            labels=list(pairs),
            ylabel=f"{what} on {rows} rows" if len(counts[0]) > 1 else what,
            chosen=sorted(chosen - {float(pairs[least][0][place])}),
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
        dashed: dict[str, Any] = {"color": ERRORS, "linewidth": 1.2, "linestyle": (0, (4, 2)), "zorder": 2}
        self.chosen_ = [ax.axvline(alpha, **dashed) for alpha in self.chosen]
        for line in self.chosen_[:1]:
            line.set_label("chosen in the end")
        ax.set(xscale="log", xlabel="alpha", ylabel=self.ylabel)
        best_line = next(line for line in self.criterion if self.best[1] == np.min(line))
        size = np.ptp(best_line) or 1.0
        ax.set_ylim(self.best[1] - 0.1 * size, np.max(best_line) + 0.5 * size)  # others may be far above
        if any(self.labels) or self.chosen_:
            ax.legend(**LEGEND)
        return self
