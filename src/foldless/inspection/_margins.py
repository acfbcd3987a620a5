"""Displays of the held-out margins of the rows, and of their influence on the other rows.

The margin of a row is the held-out decision for its own class minus the largest one for another class; with two
classes the decision itself, with the sign of the class. Below 0 the row is wrong. The distribution of margins is that
of Schapire et al. (1998); influence is ``forgetting_effects`` of the estimators.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone, is_classifier

from foldless._sklearn.pipelines import split_steps
from foldless.inspection._canvas import (
    DARK,
    DASHES,
    ERRORS,
    LEGEND,
    NULL,
    OBSERVED,
    Ax,
    Display,
    Style,
    class_colour,
    style,
)
from foldless.inspection._held_out import check_classifier, held_out, named
from foldless.inspection.numbers import coded, margins_of

NAMED = 5  # rows with a number beside them


@dataclass(kw_only=True, eq=False, repr=False)
class MarginsDisplay(Display):
    """The share of the rows of each class with at most a margin; at 0 the share that is wrong.

    Parameters
    ----------
    margins : array-like of shape (n_samples,), of held-out rows; below 0 a row is wrong
    codes : array-like of shape (n_samples,), numbers of their classes
    classes : sequence, names of the classes
    how : str, default="held-out"; how rows were left out

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    lines_ : list of Line2D, one for each class
    border_ : Line2D at margin 0

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from foldless import LSSVC
    >>> from foldless.inspection import MarginsDisplay
    >>> X, y = load_wine(return_X_y=True)
    >>> display = MarginsDisplay.from_estimator(LSSVC(standardize=True), X, y)
    >>> display.ax_.get_xlabel()
    'leave-one-out margin'
    """

    margins: ArrayLike
    codes: ArrayLike
    classes: Any
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
        ax: Ax = None,
        line_kw: Style = None,
    ) -> Self:
        """Draw the held-out margins of a classifier; ``cv=None`` leaves out each row, from one fit where that is exact.

        ``cv`` and ``steps`` are those of ``cross_val_predict``. Of a fitted search it is the best estimator.
        """
        check_classifier(estimator, cls.__name__)
        decision = held_out(estimator, X, y, "decision_function", cv, steps)
        return cls.of(y, decision, how=named(cv)).plot(ax, line_kw=line_kw)

    @classmethod
    def from_predictions(cls, y_true: ArrayLike, decision: ArrayLike, *, ax: Ax = None, line_kw: Style = None) -> Self:
        """Draw held-out decisions (n_samples,) for the second class, or (n_samples, n_classes) in sorted order."""
        return cls.of(y_true, decision).plot(ax, line_kw=line_kw)

    @classmethod
    def of(cls, y_true: ArrayLike, decision: ArrayLike, *, classes: Any = None, how: str = "held-out") -> Self:
        """The display of decisions, not drawn yet; ``classes`` in the order of decisions, None: sorted."""
        classes, codes = coded(np.asarray(y_true), classes)
        k = 2 if np.ndim(decision) == 1 else np.shape(decision)[1]
        if k != len(classes):
            raise ValueError(
                f"decision is one of {k} classes, and y holds {len(classes)}; give all classes of the model."
            )
        return cls(margins=margins_of(decision, codes), codes=codes, classes=classes, how=how)

    def plot(self, ax: Ax = None, *, line_kw: Style = None) -> Self:
        """Draw into ``ax``, or a new figure; keywords are those of ``Axes.plot``."""
        ax = self._open(ax)
        from matplotlib.lines import Line2D

        margins, codes = np.asarray(self.margins, float), np.asarray(self.codes)
        self.border_ = ax.axvline(0.0, color=NULL, linewidth=1, zorder=0)
        self.lines_: list = []
        for code, name in enumerate(self.classes):
            of_class = np.sort(margins[codes == code])
            share = np.arange(1, len(of_class) + 1) / max(len(of_class), 1)
            label = f"{name}: {100 * np.mean(of_class < 0):.1f} % wrong" if len(of_class) else str(name)
            look = {"color": class_colour(code), "linestyle": DASHES[code % len(DASHES)], "label": label}
            self.lines_ += ax.plot(of_class, share, drawstyle="steps-post", **style(Line2D, line_kw, **look))
        ax.set(xlabel=f"{self.how} margin", ylabel="share of rows", ylim=(0, 1.02))
        ax.legend(**LEGEND)
        return self


@dataclass(kw_only=True, eq=False, repr=False)
class InfluenceDisplay(Display):
    """Leave-one-out margins (residuals of values) against influence; the most influential rows have their numbers.

    Rows at the upper left are wrong and matter: errors in labels are often among them.

    Parameters
    ----------
    x : array-like of shape (n_samples,), margins, or residuals of values
    influence : array-like of shape (n_samples,)
        How much forgetting a row would change the sum of squared leave-one-out residuals of the others.
    wrong : array-like of bool of shape (n_samples,), default=None; drawn in another colour
    xlabel : str, default="leave-one-out margin"

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    points_, wrong_ : PathCollection of the rows, and of those that are wrong (None if that is not known)
    numbers_ : list of Annotation, of the most influential rows

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from foldless import LSSVC
    >>> from foldless.inspection import InfluenceDisplay
    >>> X, y = load_wine(return_X_y=True)
    >>> display = InfluenceDisplay.from_estimator(LSSVC(standardize=True), X, y)
    >>> len(display.numbers_)
    5
    """

    x: ArrayLike
    influence: ArrayLike
    wrong: ArrayLike | None = None
    xlabel: str = "leave-one-out margin"

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: ArrayLike, *, ax: Ax = None, scatter_kw: Style = None) -> Self:
        """Fit an estimator that has ``forgetting_effects`` and draw its rows.

        Of a fitted search it is the best estimator; steps of a pipeline are fitted once.
        """
        model = clone(getattr(estimator, "best_estimator_", estimator))
        if not hasattr(split_steps(model).last, "forgetting_effects"):
            kind = type(split_steps(model).last).__name__
            raise ValueError(f"{cls.__name__} needs forgetting_effects, which {kind} has not; draw LSSVC or LSSVR.")
        last = split_steps(model.fit(X, y)).last
        y_pred = last.loo_decision_function() if is_classifier(model) else last.loo_predict()
        y = np.asarray(y) if is_classifier(model) else np.asarray(y, float)
        display = cls._of(y, y_pred, last.forgetting_effects(), of_classes=is_classifier(model))
        return display.plot(ax, scatter_kw=scatter_kw)

    @classmethod
    def from_predictions(
        cls, y_true: ArrayLike, y_pred: ArrayLike, influence: ArrayLike, *, ax: Ax = None, scatter_kw: Style = None
    ) -> Self:
        """Draw leave-one-out decisions for labels, or predictions of values (floats), beside the influence of rows."""
        return cls.of(y_true, y_pred, influence).plot(ax, scatter_kw=scatter_kw)

    @classmethod
    def of(cls, y_true: ArrayLike, y_pred: ArrayLike, influence: ArrayLike, *, classes: Any = None) -> Self:
        """The display of decisions or values, and of influence, not drawn yet; ``classes`` as in ``MarginsDisplay``."""
        y, influence = np.asarray(y_true), np.asarray(influence, float)
        if influence.shape != (len(y),) or len(np.asarray(y_pred)) != len(y):
            raise ValueError(
                f"y_true ({len(y)} rows), y_pred ({len(np.asarray(y_pred))}) and influence (shape {influence.shape})"
                " must have one entry for each row."
            )
        return cls._of(y, y_pred, influence, of_classes=y.dtype.kind != "f", classes=classes)

    @classmethod
    def _of(cls, y, y_pred, influence, *, of_classes, classes=None):
        if y.ndim > 1:
            raise ValueError(f"{cls.__name__} draws one output; y has shape {y.shape}.")
        if not of_classes:
            return cls(x=y - np.asarray(y_pred, float), influence=influence, xlabel="leave-one-out residual")
        margins = np.asarray(MarginsDisplay.of(y, y_pred, classes=classes).margins)
        return cls(x=margins, influence=influence, wrong=margins < 0)

    def plot(self, ax: Ax = None, *, scatter_kw: Style = None) -> Self:
        """Draw into ``ax``, or a new figure; keywords are those of ``Axes.scatter``."""
        ax = self._open(ax)
        from matplotlib.collections import PathCollection

        x, influence = np.asarray(self.x, float), np.asarray(self.influence, float)
        wrong = np.zeros(len(x), bool) if self.wrong is None else np.asarray(self.wrong, bool)
        look = style(PathCollection, scatter_kw, color=OBSERVED, s=12, alpha=0.7, linewidth=0)
        self.points_, self.wrong_ = ax.scatter(x[~wrong], influence[~wrong], **look), None
        if self.wrong is not None:
            ax.axvline(0.0, color=NULL, linewidth=1, zorder=0)
            look = {**look, "color": ERRORS, "marker": "X", "s": 30, "label": f"wrong ({wrong.sum()})"}
            self.wrong_ = ax.scatter(x[wrong], influence[wrong], **look)
        most = np.argsort(-influence)[:NAMED]
        beside: dict[str, Any] = {"textcoords": "offset points", "va": "center", "color": DARK, "size": "small"}
        self.numbers_ = [ax.annotate(str(row), (x[row], influence[row]), (6, 0), **beside) for row in most]
        ax.set(xlabel=self.xlabel, ylabel="influence on the others")
        ax.margins(x=0.1)
        if wrong.any():
            ax.legend(**LEGEND)
        return self
