"""The null distribution of a permutation test and the observed score in it.

p = (b + 1) / (m + 1) with b the number of the m permutations that score at least as well (Phipson & Smyth 2010): it is
never 0, and neither is its label.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from foldless.inspection._canvas import FAINT, NULL, OBSERVED, Ax, ScoreDisplay, Style, p_label, style, unpack
from foldless.inspection.numbers import whole_steps


@dataclass(kw_only=True, eq=False, repr=False)
class PermutationDisplay(ScoreDisplay):
    """Histogram of the scores of permuted labels, with a line at the score of the true ones.

    Parameters
    ----------
    score : float, score of the true labels
    permutation_scores : array-like of shape (n_permutations,)
        Scores of permuted labels; those that are not finite are left out of the histogram.
    pvalue : float
    pvalue_fwe : float, default=None; family-wise p-value, for a member of a family of tests
    scoring : str, default="score"
    greater_is_better : bool, default=True; False for losses

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    bars_ : BarContainer of the histogram
    line_ : Line2D at the score

    Examples
    --------
    >>> import numpy as np
    >>> from foldless.inspection import PermutationDisplay
    >>> null = np.random.default_rng(0).binomial(100, 0.5, 999) / 100
    >>> display = PermutationDisplay(score=0.71, permutation_scores=null, pvalue=0.001, scoring="accuracy").plot()
    >>> display.line_.get_label()
    'accuracy 0.71, p = 0.001'
    """

    score: float
    permutation_scores: ArrayLike
    pvalue: float
    pvalue_fwe: float | None = None

    @classmethod
    def from_result(
        cls,
        result: Any,
        *,
        member: int | tuple[int, int] | None = None,
        ax: Ax = None,
        bins: Any = None,
        hist_kw: Style = None,
        line_kw: Style = None,
    ) -> Self:
        """Draw what ``permutation_test_score`` returned (scikit-learn's three values will do).

        ``member`` is the test of a family, or the (train, test) of a time-by-time generalisation; the other arguments
        are those of ``plot``.
        """
        score, null, pvalue = unpack(result, cls.__name__, (0,) if member is None else (1, 2))
        pvalue_fwe = None
        if member is not None:
            index = tuple(np.atleast_1d(member))
            if len(index) != score.ndim or not all(-k <= i < k for i, k in zip(index, score.shape, strict=True)):
                raise ValueError(f"member={member!r} is none of the tests of a family of shape {score.shape}")
            score, null, pvalue = score[index], null[(slice(None), *index)], pvalue[index]
            pvalue_fwe = float(result.pvalue_fwe[index])
        names = [name for name in ("scoring", "greater_is_better") if hasattr(result, name)]
        scoring = {name: getattr(result, name) for name in names}
        display = cls(
            score=float(score), permutation_scores=null, pvalue=float(pvalue), pvalue_fwe=pvalue_fwe, **scoring
        )
        return display.plot(ax, bins=bins, hist_kw=hist_kw, line_kw=line_kw)

    @property
    def _finite(self):
        null = np.asarray(self.permutation_scores, dtype=float)
        return null[np.isfinite(null)]

    def histogram(self, bins: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """(counts, edges) of the finite scores of permuted labels; ``bins`` as in ``plot``."""
        return np.histogram(self._finite, whole_steps(self._finite) if bins is None else bins)

    def plot(self, ax: Ax = None, *, bins: Any = None, hist_kw: Style = None, line_kw: Style = None) -> Self:
        """Draw into ``ax``, or a new figure; keywords are those of ``Axes.hist`` and ``Axes.axvline``.

        ``bins`` are those of ``numpy.histogram``. None takes NumPy's automatic width, rounded up to whole steps between
        scores: shares of few samples come in steps, and unequal numbers of steps in the bins would look like a comb.
        """
        ax = self._open(ax)
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        look = style(Patch, hist_kw, facecolor=FAINT, edgecolor=NULL, linewidth=0.6)
        edges = self.histogram(bins)[1]
        self.bars_ = ax.hist(self._finite, **{"bins": edges, "label": "permuted labels", **look})[2]

        name = self.scoring.replace("_", " ")
        label = f"{name} {self.score:.3g}, {p_label(self.pvalue)}"
        if self.pvalue_fwe is not None:
            label += f"\nfamily-wise {p_label(self.pvalue_fwe)}"
        look = style(Line2D, line_kw, color=OBSERVED, linewidth=2, label=label)
        self.line_ = ax.axvline(self.score, **look)

        ax.set(xlabel=self._score_label(), ylabel="permutations")
        self._legend_below(1)
        return self
