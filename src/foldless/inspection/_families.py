"""Scores of a family of tests: along time, or of models trained at one time and tested at another.

The max statistic (Nichols & Holmes 2002) gives all tests one threshold: with m permutations, a score is significant at
``level`` if it is better than the r-th best of the nulls of the best member, r = floor(level (m + 1)). The image of
training by test times is that of King & Dehaene (2014).
"""

import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from foldless.inspection import _canvas as canvas
from foldless.inspection._canvas import Ax, Style


@dataclass(kw_only=True, eq=False, repr=False)
class FamilyDisplay(canvas.ScoreDisplay):
    """Base of the displays of a family of tests."""

    score: ArrayLike
    pvalue_fwe: ArrayLike
    times: ArrayLike | None = None
    unit: str | None = None

    @classmethod
    def _unpacked(cls, result, ndim):
        """Permutation scores of a family of tests, and the fields of its display."""
        score, null, _ = canvas.unpack(result, cls.__name__, (ndim,))
        values = {name: getattr(result, name) for name in ("pvalue_fwe", "scoring", "greater_is_better")}
        return null, {"score": score, **values}

    def _checked_times(self, k):
        """Positions of ``k`` tests along an axis: 0, 1, ... unless given."""
        if self.times is None:
            return np.arange(k, dtype=float)
        times = np.asarray(self.times, dtype=float)
        if times.shape != (k,) or not (np.diff(times) > 0).all():
            raise ValueError(f"times must be {k} increasing numbers, one for each test; got shape {times.shape}")
        return times

    def _label_times(self, axis, prefix=""):
        """The label of an axis of times; of members without times, whole numbers."""
        from matplotlib.ticker import MaxNLocator

        if self.times is None:
            axis.set_label_text(f"{prefix}member")
            axis.set_major_locator(MaxNLocator("auto", integer=True))
        else:
            axis.set_label_text(f"{prefix}time" + (f" ({self.unit})" if self.unit else ""))


@dataclass(kw_only=True, eq=False, repr=False)
class TimeCourseDisplay(FamilyDisplay):
    """Scores over time with the null of each (mean, 5 to 95 %) and the family-wise test.

    Parameters
    ----------
    score : array-like of shape (k,), scores of the true labels; nan leaves a gap
    permutation_scores : array-like of shape (n_permutations, k)
    pvalue_fwe : array-like of shape (k,), family-wise p-values
    max_scores : array-like of shape (n_permutations,) or None
        The best score (the least loss) of each permutation over the family; None if clusters were tested.
    times : array-like of shape (k,), default=None
        Increasing positions on the axis, in ``unit``; None numbers the members.
    unit : str, default=None
    scoring : str, default="score"
    greater_is_better : bool, default=True; False for losses

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    line_ : Line2D of the scores
    band_ : PolyCollection, 5 to 95 % of the null of each member
    chance_ : Line2D, mean of the null of each member
    threshold_ : Line2D that family-wise significant scores are beyond; None if no score could be, or for clusters
    significant_ : Line2D, thick along the bottom below significant members

    Examples
    --------
    >>> import numpy as np
    >>> from foldless.inspection import TimeCourseDisplay
    >>> null = np.random.default_rng(0).normal(0.5, 0.02, (99, 4))
    >>> score = np.array([0.50, 0.53, 0.70, 0.68])
    >>> best = null.max(axis=1)
    >>> pvalue_fwe = (1 + (best[:, None] >= score).sum(axis=0)) / 100
    >>> display = TimeCourseDisplay(
    ...     score=score, permutation_scores=null, pvalue_fwe=pvalue_fwe, max_scores=best, times=[0, 10, 20, 30]
    ... ).plot()
    >>> display.significant_.get_xdata()[:2].tolist()
    [15.0, 35.0]
    """

    permutation_scores: ArrayLike
    max_scores: ArrayLike | None

    @classmethod
    def from_result(
        cls,
        result: Any,
        *,
        times: ArrayLike | None = None,
        unit: str | None = None,
        level: float = 0.05,
        ax: Ax = None,
        line_kw: Style = None,
        band_kw: Style = None,
    ) -> Self:
        """Draw what ``permutation_test_score``, ``combine`` or ``cluster_test`` returned for a family of tests.

        ``times`` and ``unit`` are those of the class, the other arguments those of ``plot``.
        """
        null, family = cls._unpacked(result, 1)
        display = cls(**family, permutation_scores=null, max_scores=result.max_scores, times=times, unit=unit)
        return display.plot(ax, level=level, line_kw=line_kw, band_kw=band_kw)

    def plot(self, ax: Ax = None, *, level: float = 0.05, line_kw: Style = None, band_kw: Style = None) -> Self:
        """Draw into ``ax``, or a new figure; ``level`` is that of the family-wise test.

        ``line_kw`` are keywords for ``Axes.plot`` of the scores, ``band_kw`` for ``Axes.fill_between`` of the null.
        """
        ax = self._open(ax)
        from matplotlib.lines import Line2D

        score = np.asarray(self.score, dtype=float)
        x = self._checked_times(len(score))
        self._draw_null(x, band_kw)
        threshold = self._threshold(level)
        self.threshold_ = None
        if threshold is not None:
            label = f"family-wise p = {level:g}"
            self.threshold_ = ax.axhline(threshold, label=label, color=canvas.DARK, linewidth=1, linestyle=(0, (4, 3)))
        self.line_ = ax.plot(x, score, **canvas.style(Line2D, line_kw, color=canvas.OBSERVED, linewidth=1.8))[0]
        self._draw_significant(x, level)

        ax.margins(x=0, y=0.15)
        self._label_times(ax.xaxis)
        ax.set_ylabel(self._score_label())
        self._legend_below(1)
        return self

    def _draw_null(self, x, band_kw):
        """Mean and 5 to 95 % of the null of each member."""
        from matplotlib.collections import PolyCollection

        null = np.asarray(self.permutation_scores, dtype=float)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # members whose null is nan throughout
            mean = np.nanmean(null, axis=0)
            low, high = np.nanquantile(null, [0.05, 0.95], axis=0)
        look = canvas.style(PolyCollection, band_kw, facecolor=canvas.FAINT, linewidth=0, label="null, 5 to 95 %")
        self.band_ = self.ax_.fill_between(x, low, high, **look)
        self.chance_ = self.ax_.plot(x, mean, color=canvas.NULL, linewidth=1)[0]

    def _draw_significant(self, x, level):
        """Runs of significant members, each from border to border, with gaps between."""
        changes = np.flatnonzero(np.diff(np.pad(self._significant(level), 1).astype(int)))
        runs = cell_edges(x)[changes.reshape(-1, 2)]
        runs = np.column_stack([runs, np.full(len(runs), np.nan)]).ravel()
        look = {"color": self.line_.get_color(), "linewidth": 8, "solid_capstyle": "butt"}  # the upper half shows
        if len(runs):
            look["label"] = f"significant at {level:g}"
        along_bottom = self.ax_.get_xaxis_transform()
        self.significant_ = self.ax_.plot(runs, np.zeros(len(runs)), transform=along_bottom, **look)[0]

    def _threshold(self, level):
        """The score that a test must beat for a family-wise p-value of at most ``level``, if one score decides."""
        if self.max_scores is None:
            return None
        best = np.sort(self.max_scores)
        m = len(best)
        rank = np.count_nonzero(np.arange(1, m + 1) / (m + 1) <= level)
        if rank == 0:
            enough = int(np.ceil(1 / level)) - 1
            message = f"no p-value of {m} permutations reaches level={level:g}; take at least {enough}"
            warnings.warn(message, UserWarning, stacklevel=4)
            return None
        threshold = best[-rank] if self.greater_is_better else best[rank - 1]
        return threshold if np.isfinite(threshold) else None


@dataclass(kw_only=True, eq=False, repr=False)
class GeneralisationDisplay(FamilyDisplay):
    """Image of scores by training time (upwards) and test time (to the right).

    Colours are centred at chance; warm ones are better than chance, for scores and losses alike. Lines enclose the
    cells that are family-wise significant.

    Parameters
    ----------
    score : array-like of shape (k, k), scores by training and test time; nan leaves a blank
    chance : float, mean of the null
    pvalue_fwe : array-like of shape (k, k), family-wise p-values
    times, unit, scoring, greater_is_better : as in TimeCourseDisplay; the times are those of both axes

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    image_ : QuadMesh of the scores
    diagonal_ : Line2D
    outline_ : PathPatch, straight pieces around significant cells
    colorbar_ : Colorbar

    Examples
    --------
    >>> import numpy as np
    >>> from foldless.inspection import GeneralisationDisplay
    >>> score = np.array([[0.8, 0.5], [0.4, 0.9]])
    >>> pvalue_fwe = np.array([[0.01, 0.9], [1.0, 0.01]])
    >>> display = GeneralisationDisplay(score=score, chance=0.5, pvalue_fwe=pvalue_fwe, scoring="accuracy").plot()
    >>> len(display.outline_.get_path()) // 2
    8
    """

    chance: float

    @classmethod
    def from_result(
        cls,
        result: Any,
        *,
        times: ArrayLike | None = None,
        unit: str | None = None,
        level: float = 0.05,
        ax: Ax = None,
        image_kw: Style = None,
        outline_kw: Style = None,
    ) -> Self:
        """Draw what ``permutation_test_score``, ``combine`` or ``cluster_test`` returned for a generalisation.

        ``times`` and ``unit`` are those of the class, the other arguments those of ``plot``.
        """
        null, family = cls._unpacked(result, 2)
        display = cls(**family, chance=float(np.nanmean(null)), times=times, unit=unit)
        return display.plot(ax, level=level, image_kw=image_kw, outline_kw=outline_kw)

    def plot(self, ax: Ax = None, *, level: float = 0.05, image_kw: Style = None, outline_kw: Style = None) -> Self:
        """Draw into ``ax``, or a new figure; ``level`` is that of the family-wise test.

        ``image_kw`` are keywords for ``Axes.pcolormesh``, ``outline_kw`` for the ``PathPatch`` of significant cells.
        """
        ax = self._open(ax)
        from matplotlib.collections import QuadMesh

        score = np.asarray(self.score, dtype=float)
        edges = cell_edges(self._checked_times(len(score)))
        ends = edges[[0, -1]]
        look = canvas.style(QuadMesh, image_kw, cmap="RdBu_r" if self.greater_is_better else "RdBu", rasterized=True)
        self.image_ = ax.pcolormesh(edges, edges, score, **canvas.centred(look, self.chance))
        self.diagonal_ = ax.plot(ends, ends, color=canvas.DARK, linewidth=0.8, linestyle=(0, (6, 4)))[0]
        self._draw_outline(outline(self._significant(level), edges), outline_kw)
        self._add_colorbar(self.image_, self._score_label())
        ax.set(aspect="equal", xlim=ends, ylim=ends)
        self._label_times(ax.xaxis, "test ")
        self._label_times(ax.yaxis, "training ")
        return self

    def _draw_outline(self, borders, outline_kw):
        from matplotlib.patches import PathPatch
        from matplotlib.path import Path
        from matplotlib.patheffects import withStroke

        black = {"fill": False, "edgecolor": "black", "linewidth": 1.3, "capstyle": "projecting", "zorder": 3}
        look = canvas.style(PathPatch, outline_kw, **black)
        halo = withStroke(linewidth=look["linewidth"] + 1.7, foreground="white")  # seen on dark colours
        path = Path(borders.reshape(-1, 2), [Path.MOVETO, Path.LINETO] * len(borders))
        self.outline_ = self.ax_.add_patch(PathPatch(path, **{"path_effects": [halo], **look}))


def outline(mask: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Segments ((x, y), (x, y)) between cells in and out of ``mask``; its rows go along y."""

    def vertical(mask):
        inside = np.pad(mask, ((0, 0), (1, 1)))
        row, column = np.nonzero(inside[:, 1:] != inside[:, :-1])
        x, low, high = edges[column], edges[row], edges[row + 1]
        return np.stack([np.stack([x, low], axis=-1), np.stack([x, high], axis=-1)], axis=1)

    return np.concatenate([vertical(mask), vertical(mask.T)[:, :, ::-1]])


def cell_edges(times):
    """Borders half way between neighbours, (k + 1,)."""
    if len(times) == 1:
        return times[0] + np.array([-0.5, 0.5])
    middle = (times[1:] + times[:-1]) / 2
    return np.concatenate([[2 * times[0] - middle[0]], middle, [2 * times[-1] - middle[-1]]])
