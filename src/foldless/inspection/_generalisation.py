"""Scores of models trained at one time and tested at another, as an image (King & Dehaene 2014)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from foldless.inspection._canvas import DARK, Keywords, ScoreDisplay, cell_edges, centred, style, unpack_family

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(kw_only=True, eq=False, repr=False)
class GeneralisationDisplay(ScoreDisplay):
    """Image of scores by training time (upwards) and test time (to the right).

    Colours are centred at chance; warm ones are better than chance, for scores and losses alike. Lines enclose the
    cells that are family-wise significant.

    Parameters
    ----------
    score : array-like of shape (k, k)
        Scores by training and test time; nan leaves a blank.
    chance : float
        Mean of the null.
    pvalue_fwe : array-like of shape (k, k)
        Family-wise p-values.
    times : array-like of shape (k,), default=None
        Increasing positions on both axes, in ``unit``; None numbers the members.
    unit : str, default=None
    scoring : str, default="score"
    greater_is_better : bool, default=True
        False for losses.

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

    score: ArrayLike
    chance: float
    pvalue_fwe: ArrayLike
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
        image_kw: Keywords = None,
        outline_kw: Keywords = None,
    ) -> Self:
        """Draw what ``permutation_test_score`` returned for a time-by-time generalisation.

        ``times`` and ``unit`` are those of the class, the other arguments those of ``plot``.
        """
        null, family = unpack_family(result, cls.__name__, 2)
        display = cls(**family, chance=float(np.nanmean(null)), times=times, unit=unit)
        return display.plot(ax, level=level, image_kw=image_kw, outline_kw=outline_kw)

    def plot(
        self, ax: "Axes | None" = None, *, level: float = 0.05, image_kw: Keywords = None, outline_kw: Keywords = None
    ) -> Self:
        """Draw into ``ax``, or a new figure; ``level`` is that of the family-wise test.

        ``image_kw`` are keywords for ``Axes.pcolormesh``, ``outline_kw`` for the ``PathPatch`` of significant cells.
        """
        ax = self._open(ax)
        from matplotlib.collections import QuadMesh

        score = np.asarray(self.score, dtype=float)
        edges = cell_edges(self._checked_times(len(score)))
        ends = edges[[0, -1]]
        look = style(QuadMesh, image_kw, cmap="RdBu_r" if self.greater_is_better else "RdBu", rasterized=True)
        self.image_ = ax.pcolormesh(edges, edges, score, **centred(look, self.chance))
        (self.diagonal_,) = ax.plot(ends, ends, color=DARK, linewidth=0.8, linestyle=(0, (6, 4)))
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
        look = style(PathPatch, outline_kw, **black)
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
