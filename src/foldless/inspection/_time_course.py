"""Scores of a family of tests along time, their null, and where the family-wise test rejects.

The max statistic (Nichols & Holmes 2002) gives all tests one threshold: with m permutations, a score is significant at
``level`` if it is better than the r-th best of the nulls of the best member, r = floor(level (m + 1)).
"""

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from foldless.inspection._canvas import (
    DARK,
    FAINT,
    LEGEND,
    NULL,
    OBSERVED,
    Keywords,
    ScoreDisplay,
    cell_edges,
    style,
    unpack_family,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(kw_only=True, eq=False, repr=False)
class TimeCourseDisplay(ScoreDisplay):
    """Scores over time with the null of each (mean, 5 to 95 %) and the family-wise test.

    Parameters
    ----------
    score : array-like of shape (k,)
        Scores of the true labels; nan leaves a gap.
    permutation_scores : array-like of shape (n_permutations, k)
    pvalue_fwe : array-like of shape (k,)
        Family-wise p-values.
    max_scores : array-like of shape (n_permutations,)
        The best score (the least loss) of each permutation over the family.
    times : array-like of shape (k,), default=None
        Increasing positions on the axis, in ``unit``; None numbers the members.
    unit : str, default=None
    scoring : str, default="score"
    greater_is_better : bool, default=True
        False for losses.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    line_ : Line2D of the scores
    band_ : PolyCollection, 5 to 95 % of the null of each member
    chance_ : Line2D, mean of the null of each member
    threshold_ : Line2D that family-wise significant scores are beyond; None where no score could be
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

    score: ArrayLike
    permutation_scores: ArrayLike
    pvalue_fwe: ArrayLike
    max_scores: ArrayLike
    times: ArrayLike | None = None
    unit: str | None = None
    scoring: str = "score"
    greater_is_better: bool = True

    @classmethod
    def from_result(
        cls,
        result: Any,
        *,
        times: ArrayLike | None = None,
        unit: str | None = None,
        level: float = 0.05,
        ax: "Axes | None" = None,
        line_kw: Keywords = None,
        band_kw: Keywords = None,
    ) -> Self:
        """Draw what ``permutation_test_score`` returned for a family of tests.

        ``times`` and ``unit`` are those of the class, the other arguments those of ``plot``.
        """
        null, family = unpack_family(result, cls.__name__, 1)
        display = cls(**family, permutation_scores=null, max_scores=result.max_scores, times=times, unit=unit)
        return display.plot(ax, level=level, line_kw=line_kw, band_kw=band_kw)

    def plot(
        self, ax: "Axes | None" = None, *, level: float = 0.05, line_kw: Keywords = None, band_kw: Keywords = None
    ) -> Self:
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
            self.threshold_ = ax.axhline(threshold, label=label, color=DARK, linewidth=1, linestyle=(0, (4, 3)))
        (self.line_,) = ax.plot(x, score, **style(Line2D, line_kw, color=OBSERVED, linewidth=1.8))
        self._draw_significant(x, level)

        ax.margins(x=0, y=0.15)
        self._label_times(ax.xaxis)
        ax.set_ylabel(self._score_label())
        ax.legend(**LEGEND)
        return self

    def _draw_null(self, x, band_kw):
        """Mean and 5 to 95 % of the null of each member."""
        from matplotlib.collections import PolyCollection

        null = np.asarray(self.permutation_scores, dtype=float)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # members whose null is nan throughout
            mean = np.nanmean(null, axis=0)
            low, high = np.nanquantile(null, [0.05, 0.95], axis=0)
        look = style(PolyCollection, band_kw, facecolor=FAINT, linewidth=0, label="null, 5 to 95 %")
        self.band_ = self.ax_.fill_between(x, low, high, **look)
        (self.chance_,) = self.ax_.plot(x, mean, color=NULL, linewidth=1)

    def _draw_significant(self, x, level):
        """Runs of significant members, each from border to border, with gaps between."""
        changes = np.flatnonzero(np.diff(np.pad(self._significant(level), 1).astype(int)))
        runs = cell_edges(x)[changes.reshape(-1, 2)]
        runs = np.column_stack([runs, np.full(len(runs), np.nan)]).ravel()
        (self.significant_,) = self.ax_.plot(
            runs,
            np.zeros(len(runs)),
            transform=self.ax_.get_xaxis_transform(),
            color=self.line_.get_color(),
            linewidth=8,  # the upper half shows
            solid_capstyle="butt",
        )

    def _threshold(self, level):
        """The score that a test must beat for a family-wise p-value of at most ``level``."""
        best = np.sort(self.max_scores)
        m = len(best)
        rank = np.count_nonzero(np.arange(1, m + 1) / (m + 1) <= level)
        if rank == 0:
            warnings.warn(
                f"no p-value of {m} permutations reaches level={level:g}; take at least {int(np.ceil(1 / level)) - 1}",
                UserWarning,
                stacklevel=4,
            )
            return None
        threshold = best[-rank] if self.greater_is_better else best[rank - 1]
        return threshold if np.isfinite(threshold) else None
