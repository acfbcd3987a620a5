"""Test, then train: how good a model is along a stream, each row predicted before it is learnt.

The prequential accuracy is the mean of the last rows, a window (Gama, Sebastiao & Rodrigues 2013). Beside it is the
exact leave-one-out accuracy of the rows that the model holds at that moment.
"""

import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone, is_classifier

from foldless.inspection._canvas import NULL, OBSERVED, Ax, Display, Style, style

WATCHED = 100  # moments at which the leave-one-out score is computed


@dataclass(kw_only=True, eq=False, repr=False)
class StreamDisplay(Display):
    """Accuracy along a stream (for values the mean absolute error), over the last ``window`` rows.

    Parameters
    ----------
    outcome : array-like of shape (n_tested,), 1 where a row was predicted right and 0 elsewhere; or absolute errors
    start : int, default=0; number of the first row that was tested
    window : int, default=100
    loo_rows, loo_score : array-likes, default=(); rows after which the leave-one-out score is known, and the score
    ylabel : str, default="accuracy"

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    line_ : Line2D of the means of windows; fewer rows at the beginning
    loo_ : Line2D of the leave-one-out scores, or None

    Examples
    --------
    >>> import numpy as np
    >>> from foldless import LSSVC, SlidingWindow
    >>> from foldless.inspection import StreamDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(150, 2))
    >>> y = (X[:, 0] > 0) ^ (np.arange(150) > 60)  # a concept that turns round
    >>> model = SlidingWindow(LSSVC(gamma=0.5), max_samples=40)
    >>> display = StreamDisplay.from_estimator(model, X, y, window=20)
    >>> bool(display.line_.get_ydata()[-1] > 0.8 > display.line_.get_ydata().min())
    True
    """

    outcome: ArrayLike
    start: int = 0
    window: int = 100
    loo_rows: ArrayLike = ()
    loo_score: ArrayLike = ()
    ylabel: str = "accuracy"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        y: ArrayLike,
        *,
        start: int = 20,
        window: int = 100,
        ax: Ax = None,
        line_kw: Style = None,
    ) -> Self:
        """Fit a clone to the first ``start`` rows, then let it predict each row and learn it with ``partial_fit``."""
        if not hasattr(estimator, "partial_fit"):
            raise ValueError(f"{cls.__name__} needs partial_fit, which {type(estimator).__name__} has not.")
        X, y, model = np.asarray(X), np.asarray(y), clone(estimator)
        if not 1 < start < len(y):
            raise ValueError(f"start={start} must leave rows to fit and rows to test; there are {len(y)}.")
        classes = {"classes": np.unique(y)} if is_classifier(getattr(model, "estimator", model)) else {}
        model.partial_fit(X[:start], y[:start], **classes)
        predictions, watched, scores = [], [], []
        every = max(1, (len(y) - start) // WATCHED)
        for row in range(start, len(y)):
            predictions.append(model.predict(X[row : row + 1])[0])
            model.partial_fit(X[row : row + 1], y[row : row + 1])
            if classes and (row - start) % every == 0:
                watched.append(row)
                scores.append(_loo_score(model))
        loo = {"loo_rows": watched, "loo_score": scores} if np.isfinite(scores).any() else {}
        display = cls._of(y[start:], np.array(predictions), window, classes=bool(classes), start=start, **loo)
        return display.plot(ax, line_kw=line_kw)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        start: int = 0,
        window: int = 100,
        ax: Ax = None,
        line_kw: Style = None,
    ) -> Self:
        """Draw what was predicted of each row before it was learnt: labels, or values (floats)."""
        y = np.asarray(y_true)
        return cls._of(y, np.asarray(y_pred), window, classes=y.dtype.kind != "f", start=start).plot(
            ax, line_kw=line_kw
        )

    @classmethod
    def _of(cls, y, y_pred, window, *, classes, **fields):
        if len(y) != len(y_pred) or window < 1:
            raise ValueError(
                f"window={window} must be at least 1, and y_true ({len(y)}) as long as y_pred ({len(y_pred)})."
            )
        outcome = (y_pred == y).astype(float) if classes else np.abs(y_pred - y)
        return cls(outcome=outcome, window=window, ylabel="accuracy" if classes else "mean absolute error", **fields)

    def plot(self, ax: Ax = None, *, line_kw: Style = None) -> Self:
        """Draw into ``ax``, or a new figure; keywords are those of ``Axes.plot``."""
        ax = self._open(ax)
        from matplotlib.lines import Line2D

        outcome = np.asarray(self.outcome, float)
        rows = self.start + np.arange(len(outcome))
        look = {"color": OBSERVED, "linewidth": 1.8, "label": f"last {self.window} rows, when they came"}
        self.line_, self.loo_ = ax.plot(rows, trailing(outcome, self.window), **style(Line2D, line_kw, **look))[0], None
        if len(np.atleast_1d(self.loo_rows)):
            label = "rows held, leave-one-out"
            self.loo_ = ax.plot(self.loo_rows, self.loo_score, color=NULL, linewidth=1.2, label=label)[0]
        ax.set(xlabel="row of the stream", ylabel=self.ylabel)
        self._legend_below(1)
        return self


def trailing(values, window):
    """Means of the last ``window`` values at every place, of fewer at the beginning."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.arange(1, len(sums))
    starts = np.maximum(ends - window, 0)
    return (sums[ends] - sums[starts]) / (ends - starts)


def _loo_score(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that classes of few rows mislead, at every moment
        return getattr(model, "loo_score_", np.nan)
