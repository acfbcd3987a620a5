"""The learning curve: held-out scores by the number of training rows.

A model that is fitted to m of n rows is scored on the n - m others. For the estimators of the library such a model
follows from one fit of all rows, or from a solve on the m rows, whichever is less work.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit

import foldless
from foldless.inspection._canvas import FAINT, LEGEND, NULL, OBSERVED, Ax, ScoreDisplay, Style, style

SHARES = (0.1, 0.18, 0.33, 0.56, 0.9)


@dataclass(kw_only=True, eq=False, repr=False)
class LearningCurveDisplay(ScoreDisplay):
    """Scores of held-out rows against the number of rows learnt from: mean, and 10 to 90 % of the repetitions.

    Parameters
    ----------
    train_sizes : array-like of shape (n_sizes,)
    test_scores : array-like of shape (n_sizes, n_repeats), as ``learning_curve`` of scikit-learn returns them
    train_scores : array-like of shape (n_sizes, n_repeats), default=None; those of the rows learnt from
    scoring : str, default="score"
    greater_is_better : bool, default=True; False for losses

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    line_ : Line2D of the means
    train_ : Line2D of the means on rows learnt from, or None
    band_ : PolyCollection, 10 to 90 % of the repetitions

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from foldless import LSSVC
    >>> from foldless.inspection import LearningCurveDisplay
    >>> X, y = load_wine(return_X_y=True)
    >>> display = LearningCurveDisplay.from_estimator(LSSVC(standardize=True), X, y, n_repeats=5)
    >>> display.line_.get_xdata().tolist()
    [18, 32, 59, 100, 160]
    """

    train_sizes: ArrayLike
    test_scores: ArrayLike
    train_scores: ArrayLike | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        train_sizes: ArrayLike = SHARES,
        n_repeats: int = 10,
        scoring: Any = None,
        random_state: Any = 0,
        steps: Any = "each",
        ax: Ax = None,
        line_kw: Style = None,
        band_kw: Style = None,
    ) -> Self:
        """Draw an estimator that is fitted ``n_repeats`` times to rows drawn at random, and scored on all others.

        ``train_sizes`` are shares of the rows, or numbers of them; classes keep their shares. ``scoring`` and ``steps``
        are those of ``cross_validate``; None is accuracy, or R2.
        """
        n = len(np.asarray(y))
        sizes = np.atleast_1d(np.asarray(train_sizes))
        sizes = np.unique(sizes if sizes.dtype.kind in "iu" else np.round(sizes * n).astype(int))
        if not len(sizes) or sizes[0] < 2 or sizes[-1] > n - 2:
            raise ValueError(f"train_sizes={train_sizes!r} must be from 2 to {n - 2} of the {n} rows; found {sizes}.")
        if n_repeats < 1 or isinstance(scoring, list | tuple | set | dict):
            raise ValueError(f"n_repeats={n_repeats} must be at least 1, and scoring={scoring!r} one score.")
        kind = StratifiedShuffleSplit if is_classifier(estimator) else ShuffleSplit
        splits = [
            split
            for m in sizes
            for split in kind(n_repeats, train_size=int(m), test_size=int(n - m), random_state=random_state).split(X, y)
        ]
        scores = foldless.model_selection.cross_validate(estimator, X, y, cv=splits, scoring=scoring, steps=steps)
        usual = "accuracy" if is_classifier(estimator) else "R2"
        name = usual if scoring is None else scoring if isinstance(scoring, str) else "score"
        display = cls(train_sizes=sizes, test_scores=scores["test_score"].reshape(len(sizes), n_repeats), scoring=name)
        return display.plot(ax, line_kw=line_kw, band_kw=band_kw)

    @property
    def means(self) -> np.ndarray:
        """(n_sizes,) mean scores of held-out rows."""
        return np.asarray(self.test_scores, float).mean(1)

    @property
    def train_means(self) -> np.ndarray:
        """(n_sizes,) mean scores of the rows learnt from; nan where they are not known."""
        if self.train_scores is None:
            return np.full(len(self.means), np.nan)
        return np.asarray(self.train_scores, float).mean(1)

    @property
    def band(self) -> np.ndarray:
        """(2, n_sizes) ends of the band that holds 10 to 90 % of the repetitions."""
        return np.quantile(np.asarray(self.test_scores, float), [0.1, 0.9], axis=1)

    def plot(self, ax: Ax = None, *, line_kw: Style = None, band_kw: Style = None) -> Self:
        """Draw into ``ax``, or a new figure; keywords are those of ``Axes.plot`` and ``Axes.fill_between``."""
        ax = self._open(ax)
        from matplotlib.collections import PolyCollection
        from matplotlib.lines import Line2D

        sizes = np.asarray(self.train_sizes)
        self.band_ = ax.fill_between(sizes, *self.band, **style(PolyCollection, band_kw, facecolor=FAINT, linewidth=0))
        look = style(Line2D, line_kw, color=OBSERVED, linewidth=1.8, marker="o", markersize=4)
        self.line_ = ax.plot(sizes, self.means, **look)[0]
        quiet: dict[str, Any] = {"color": NULL, "linewidth": 1.2, "linestyle": "dashed", "label": "rows learnt from"}
        self.train_ = None if self.train_scores is None else ax.plot(sizes, self.train_means, **quiet)[0]
        if self.train_ is not None:
            ax.legend(**LEGEND)
        ax.set(xlabel="rows learnt from", ylabel=f"held-out {self._score_label()}")
        ax.set_xlim(left=0)
        return self
