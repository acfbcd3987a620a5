"""Differences of models with their intervals: one line for each pair."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from foldless.inspection._canvas import DARK, NULL, OBSERVED, Ax, Display, Style, p_label, style


@dataclass(kw_only=True, eq=False, repr=False)
class ComparisonDisplay(Display):
    """Differences of the scores of models, each with its interval; a grey line is no difference.

    Parameters
    ----------
    names : list of str, what each difference is of
    difference, low, high : array-like of shape (n_pairs,)
    pvalue : array-like of shape (n_pairs,), default=None; written beside the intervals
    scoring : str, default="score"

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    points_, intervals_ : Line2D of the differences, LineCollection of the intervals
    line_ : Line2D at no difference

    Examples
    --------
    >>> from foldless.inspection import ComparisonDisplay
    >>> display = ComparisonDisplay(names=["rbf - linear"], difference=[0.02], low=[-0.01], high=[0.05]).plot()
    >>> display.ax_.get_xlabel()
    'difference of score'
    """

    names: list
    difference: Any
    low: Any
    high: Any
    pvalue: Any = None
    scoring: str = "score"

    @classmethod
    def from_result(cls, result: Any, *, ax: Ax = None, point_kw: Style = None, interval_kw: Style = None) -> Self:
        """Draw what ``compare`` returned; the other arguments are those of ``plot``."""
        if not hasattr(result, "differences"):
            raise ValueError(f"result must be what compare returns; got {type(result).__name__}")
        pairs = result.differences
        columns = {name: [getattr(pair, name) for pair in pairs] for name in ("difference", "low", "high")}
        names = [f"{pair.first} - {pair.second}" for pair in pairs]
        pvalue = [pair.pvalue_corrected for pair in pairs]
        display = cls(names=names, **columns, pvalue=pvalue, scoring=result.scoring)
        return display.plot(ax, point_kw=point_kw, interval_kw=interval_kw)

    def plot(self, ax: Ax = None, *, point_kw: Style = None, interval_kw: Style = None) -> Self:
        """Draw into ``ax``, or a new figure; keywords are those of ``Axes.plot`` and ``Axes.hlines``."""
        ax = self._open(ax)
        from matplotlib.collections import LineCollection
        from matplotlib.lines import Line2D

        places = np.arange(len(self.names))[::-1]
        self.line_ = ax.axvline(0.0, color=NULL, linewidth=1, zorder=0)
        look = style(LineCollection, interval_kw, color=OBSERVED, linewidth=2)
        self.intervals_ = ax.hlines(places, self.low, self.high, **look)
        look = style(Line2D, point_kw, marker="o", linestyle="none", color=OBSERVED)
        self.points_ = ax.plot(self.difference, places, **look)[0]
        beside: dict[str, Any] = {"textcoords": "offset points", "va": "center", "color": DARK, "size": "small"}
        for place, high, p in zip(places, self.high, () if self.pvalue is None else self.pvalue, strict=False):
            ax.annotate(p_label(p), (high, place), (6, 0), **beside)
        ax.set(yticks=places, yticklabels=self.names, xlabel=f"difference of {self.scoring.replace('_', ' ')}")
        ax.margins(x=0.2, y=0.4 / max(len(self.names), 1) + 0.1)
        return self
