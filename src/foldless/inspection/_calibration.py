"""Reliability of held-out probabilities: what happens how often, among rows that are given a probability.

Bins hold equally many rows. Shares have intervals of Wilson (1927), which never leave 0 to 1.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from foldless._engine.inference.counts import wilson
from foldless.inspection._canvas import LEGEND, MARKERS, NULL, Ax, Display, Style, class_colour, style
from foldless.inspection._held_out import check_classifier, held_out, named
from foldless.inspection.numbers import coded, reliability

MOST_CLASSES = 8  # drawn as lines of their own


@dataclass(kw_only=True, eq=False, repr=False)
class CalibrationDisplay(Display):
    """Shares of a class against the probabilities given to it, one line for each class; the diagonal is perfect.

    Parameters
    ----------
    prob_pred, prob_true : lists of ndarrays of shape (n_bins,), mean probability and share of the class in each bin
    counts : list of ndarrays of shape (n_bins,), rows of the bins
    labels : list of str, one for each line
    confidence : float, default=0.9; of the intervals of the shares
    how : str, default="held-out"; how rows were left out

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    lines_ : list of Line2D
    intervals_ : list of LineCollection
    perfect_ : Line2D, the diagonal

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from foldless import LSSVC
    >>> from foldless.inspection import CalibrationDisplay
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LSSVC(standardize=True, calibration="sigmoid")
    >>> display = CalibrationDisplay.from_estimator(model, X[::3], y[::3], cv=3, n_bins=5)
    >>> display.lines_[0].get_xdata().shape
    (5,)
    """

    prob_pred: list
    prob_true: list
    counts: list
    labels: list
    confidence: float = 0.9
    how: str = "held-out"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        cv: Any = None,
        steps: Any = "each",
        n_bins: int = 10,
        confidence: float = 0.9,
        ax: Ax = None,
        line_kw: Style = None,
    ) -> Self:
        """Draw the held-out probabilities of a classifier that has ``predict_proba``, calibrated without these rows.

        ``cv`` and ``steps`` are those of ``cross_val_predict``; ``cv=None`` leaves out each row.
        """
        check_classifier(estimator, cls.__name__)
        prob = held_out(estimator, X, y, "predict_proba", cv, steps)
        display = cls.of(y, prob, n_bins=n_bins, confidence=confidence, how=named(cv))
        return display.plot(ax, line_kw=line_kw)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        *,
        n_bins: int = 10,
        confidence: float = 0.9,
        ax: Ax = None,
        line_kw: Style = None,
    ) -> Self:
        """Draw probabilities (n_samples,) of the second class, or (n_samples, n_classes) in sorted order."""
        return cls.of(y_true, y_prob, n_bins=n_bins, confidence=confidence).plot(ax, line_kw=line_kw)

    @classmethod
    def of(
        cls,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        *,
        classes: Any = None,
        n_bins: int = 10,
        confidence: float = 0.9,
        how: str = "held-out",
    ) -> Self:
        """The display of predictions, not drawn yet; ``classes`` in the order of y_prob, None: sorted."""
        (classes, codes), prob = coded(np.asarray(y_true), classes), np.asarray(y_prob, float)
        columns = np.column_stack([1 - prob, prob]) if prob.ndim == 1 else prob
        if columns.shape != (len(codes), len(classes)) or not (columns.min() >= 0 and columns.max() <= 1):
            raise ValueError(
                f"y_prob must hold numbers from 0 to 1 for {len(codes)} rows and {len(classes)} classes; its shape is"
                f" {prob.shape}."
            )
        codes_shown = [1] if len(classes) == 2 else range(min(len(classes), MOST_CLASSES))
        bins = [reliability(columns[:, code], codes == code, n_bins) for code in codes_shown]
        pred, true, counts = (list(column) for column in zip(*bins, strict=True))
        labels = [f"{classes[code]}" for code in codes_shown]
        return cls(prob_pred=pred, prob_true=true, counts=counts, labels=labels, confidence=confidence, how=how)

    @property
    def intervals(self) -> list:
        """(low, high) of the shares of each line, by Wilson (1927)."""
        pairs = zip(self.prob_true, self.counts, strict=True)
        return [wilson(true, counts, self.confidence) for true, counts in pairs]

    def plot(self, ax: Ax = None, *, line_kw: Style = None) -> Self:
        """Draw into ``ax``, or a new figure; keywords are those of ``Axes.plot``."""
        ax = self._open(ax)
        from matplotlib.lines import Line2D

        self.perfect_ = ax.plot([0, 1], [0, 1], color=NULL, linewidth=1, zorder=0)[0]
        self.lines_: list = []
        self.intervals_: list = []
        for number, label in enumerate(self.labels):
            pred, true = self.prob_pred[number], self.prob_true[number]
            colour = class_colour(number)
            low, high = self.intervals[number]
            self.intervals_.append(ax.vlines(pred, low, high, color=colour, linewidth=1, alpha=0.6))
            look = {"color": colour, "marker": MARKERS[number % len(MARKERS)], "markersize": 4, "linewidth": 1.2}
            self.lines_ += ax.plot(pred, true, **style(Line2D, line_kw, **look, label=label))
        one = f" of {self.labels[0]}" if len(self.labels) == 1 else ""
        ax.set(xlabel=f"{self.how} probability{one}", ylabel="share of rows", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
        if not one:
            ax.legend(**LEGEND)
        return self
