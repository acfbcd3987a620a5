"""The regions of predicted classes in the plane of two features, and the rows with held-out errors."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from foldless.inspection._canvas import DARK, MARKERS, Ax, Display, Style, class_colour, style
from foldless.inspection._held_out import check_classifier, held_out, named

MARGIN = 0.08  # of the range of a feature, around the rows
ENTRIES = 2**22  # of the rows at which predictions are made at a time


@dataclass(kw_only=True, eq=False, repr=False)
class DecisionRegionsDisplay(Display):
    """Regions of the classes in the plane of two features, with the rows; held-out errors have a ring.

    Parameters
    ----------
    x0, x1 : ndarrays of shape (n_across,) and (n_up,), places of a grid
    response : ndarray of shape (n_up, n_across), the predicted class at each, by its number
    X : ndarray of shape (n_samples, 2), the rows
    codes : ndarray of shape (n_samples,), numbers of their classes
    wrong : ndarray of bool of shape (n_samples,), whether the model without the row gets it wrong
    classes : sequence, names of the classes
    names : tuple of two str, of the features
    how : str, default="leave-one-out"; how rows were left out

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    surface_ : QuadMesh of the regions
    points_ : list of PathCollection, one for each class
    wrong_ : PathCollection, rings around the errors

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from foldless import LSSVC
    >>> from foldless.inspection import DecisionRegionsDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LSSVC(gamma=0.5).fit(X[:, 2:], y)
    >>> display = DecisionRegionsDisplay.from_estimator(model, X[:, 2:], y)
    >>> len(display.wrong_.get_offsets()) == round((1 - model.loo_score_) * len(y))
    True
    """

    x0: np.ndarray
    x1: np.ndarray
    response: np.ndarray
    X: np.ndarray
    codes: np.ndarray
    wrong: np.ndarray
    classes: Any
    names: tuple[str, ...] = ("feature 0", "feature 1")
    how: str = "leave-one-out"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        features: tuple = (0, 1),
        cv: Any = None,
        steps: Any = "each",
        grid_resolution: int = 200,
        ax: Ax = None,
        scatter_kw: Style = None,
    ) -> Self:
        """Draw a fitted classifier with its training rows.

        ``features`` are the numbers or names of two columns; others are at their medians in the regions, not in the
        rows. ``cv`` and ``steps`` are those of ``cross_val_predict``; ``cv=None`` is leave-one-out.
        """
        check_classifier(estimator, cls.__name__)
        check_is_fitted(estimator)
        columns = list(X.columns) if hasattr(X, "columns") else None
        rows = X.toarray() if sp.issparse(X) else np.asarray(X, float)
        pair = _columns(features, columns, rows.shape[1])
        classes = np.asarray(estimator.classes_)
        x0, x1 = (_places(rows[:, column], grid_resolution) for column in pair)
        across, up = np.meshgrid(x0, x1)
        grid = np.repeat(np.median(rows, axis=0)[None], across.size, axis=0)
        grid[:, pair] = np.column_stack([across.ravel(), up.ravel()])
        parts = gen_batches(len(grid), max(1, ENTRIES // len(rows)))
        predicted = np.concatenate([estimator.predict(_like(grid[part], X)) for part in parts])
        display = cls(
            x0=x0,
            x1=x1,
            response=np.searchsorted(classes, predicted).reshape(across.shape),
            X=rows[:, pair],
            codes=np.searchsorted(classes, np.asarray(y)),
            wrong=held_out(estimator, X, y, "predict", cv, steps) != np.asarray(y),
            classes=classes,
            names=tuple(str(columns[column]) if columns else f"feature {column}" for column in pair),
            how=named(cv),
        )
        return display.plot(ax, scatter_kw=scatter_kw)

    def plot(self, ax: Ax = None, *, scatter_kw: Style = None) -> Self:
        """Draw into ``ax``, or a new figure; keywords are those of ``Axes.scatter`` of the rows."""
        ax = self._open(ax)
        from matplotlib.collections import PathCollection
        from matplotlib.colors import ListedColormap

        k = len(self.classes)
        tints = ListedColormap([class_colour(code, 0.25) for code in range(k)])
        look: dict[str, Any] = {"cmap": tints, "vmin": -0.5, "vmax": k - 0.5, "shading": "nearest", "rasterized": True}
        self.surface_ = ax.pcolormesh(self.x0, self.x1, self.response, **look)
        self.points_ = []
        for code, name in enumerate(self.classes):
            in_class = self.codes == code
            look = {"color": class_colour(code), "marker": MARKERS[code % len(MARKERS)], "s": 14, "label": str(name)}
            self.points_.append(ax.scatter(*self.X[in_class].T, **style(PathCollection, scatter_kw, **look)))
        label = f"{self.how} errors ({int(np.sum(self.wrong))})"
        ring: dict[str, Any] = {
            "facecolors": "none",
            "edgecolors": DARK,
            "s": 60,
            "linewidths": 1.2,
            "label": label,
            "zorder": 4,
        }
        self.wrong_ = ax.scatter(*self.X[self.wrong].T, **ring)
        ax.set(xlabel=self.names[0], ylabel=self.names[1])
        self._legend_below(2)
        return self


def _columns(features, names, n):
    """Numbers of two columns, given by number or by name."""
    pair = [names.index(feature) if names and feature in names else feature for feature in features]
    if len(pair) != 2 or pair[0] == pair[1] or not all(column in range(n) for column in pair):
        among = f" names among {names}, or" if names else ""
        raise ValueError(f"features={features!r} must be two different{among} numbers from 0 to {n - 1}.")
    return pair


def _places(column, count):
    """Places along a feature, somewhat beyond its rows."""
    low, high = column.min(), column.max()
    more = MARGIN * (high - low) or 1.0
    return np.linspace(low - more, high + more, count)


def _like(rows, X):
    """Rows as a table with the columns of X if X is a table."""
    return type(X)(rows, columns=X.columns) if hasattr(X, "columns") else rows
