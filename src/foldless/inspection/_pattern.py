"""Weights of a linear model, or the forward-model patterns they answer to (Haufe et al. 2014), feature by feature."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from foldless.inspection._canvas import DARK, LEGEND, NULL, OBSERVED, Ax, Display, Style, centred, new_axes, style

KINDS = {"patterns": ("patterns", "pvalue_fwe"), "weights": ("weights", "weights_pvalue_fwe")}
MOST_NAMES = 64


@dataclass(kw_only=True, eq=False, repr=False)
class PatternDisplay(Display):
    """One value a feature, as stems or as a map of sensors; family-wise significant features are marked.

    Parameters
    ----------
    values : array-like of shape (d,), pattern or weights of one output
    pvalue_fwe : array-like of shape (d,), family-wise p-values
    feature_names : list of d str, default=None; up to 64 names are written on the axis of stems
    positions : array-like of shape (d, 2), default=None
        Where the sensors are, x to the right and y upwards; None draws stems.
    label : str, default="pattern"; what the values are

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    points_ : PathCollection, one point a feature
    marked_ : PathCollection, the significant ones again: filled on stems, ringed on a map
    stems_ : LineCollection from 0 to each value; None on a map
    colorbar_ : Colorbar of a map; None for stems
    displays_ : list of the displays of all outputs, where ``from_result`` drew several

    Examples
    --------
    >>> from foldless.inspection import PatternDisplay
    >>> display = PatternDisplay(
    ...     values=[0.1, -0.8, 0.3], pvalue_fwe=[0.9, 0.01, 0.4], feature_names=["C3", "Cz", "C4"]
    ... ).plot()
    >>> display.marked_.get_offsets().tolist()
    [[1.0, -0.8]]
    """

    values: ArrayLike
    pvalue_fwe: ArrayLike
    feature_names: Sequence[str] | None = None
    positions: ArrayLike | None = None
    label: str = "pattern"
    displays_: list = field(init=False, default_factory=list)

    @classmethod
    def from_result(
        cls,
        result: Any,
        *,
        output: Any = None,
        kind: Literal["patterns", "weights"] = "patterns",
        positions: ArrayLike | None = None,
        level: float = 0.05,
        ax: Ax = None,
        point_kw: Style = None,
        marked_kw: Style = None,
    ) -> Self:
        """Draw a test of patterns: one ``output`` of ``result.outputs``, or all of them side by side.

        ``positions`` are those of the class, the arguments that follow those of ``plot``. Of several outputs the
        display of the first is returned; ``displays_`` lists all.
        """
        if not hasattr(result, "patterns"):
            raise ValueError(
                f"{cls.__name__} draws patterns, got {type(result).__name__}; permutation tests are drawn with "
                "PermutationDisplay, TimeCourseDisplay or GeneralisationDisplay"
            )
        if kind not in KINDS:
            raise ValueError(f'kind must be "patterns" or "weights", got {kind!r}')
        outputs = list(result.outputs)
        if output is None and len(outputs) > 1 and ax is None:
            options: dict[str, Any] = {"kind": kind, "positions": positions, "level": level}
            options |= {"point_kw": point_kw, "marked_kw": marked_kw}
            axes = new_axes(cls.__name__, len(outputs))
            displays = [
                cls.from_result(result, output=name, ax=panel, **options)
                for name, panel in zip(outputs, axes, strict=True)
            ]
            displays[0].displays_ = displays
            return displays[0]
        if output is None and len(outputs) == 1:
            output = outputs[0]
        if output not in outputs:
            raise ValueError(f"output must be one of {outputs}, got {output!r}")
        values, pvalue_fwe = (getattr(result, name)[outputs.index(output)] for name in KINDS[kind])
        display = cls(
            values=values,
            pvalue_fwe=pvalue_fwe,
            positions=positions,
            feature_names=result.feature_names,
            label=f"{kind.removesuffix('s')} for {output}",
        )
        return display.plot(ax, level=level, point_kw=point_kw, marked_kw=marked_kw)

    def plot(self, ax: Ax = None, *, level: float = 0.05, point_kw: Style = None, marked_kw: Style = None) -> Self:
        """Draw into ``ax``, or a new figure; ``level`` is that of the family-wise test.

        ``point_kw`` and ``marked_kw`` are keywords for ``Axes.scatter`` of all features and of the significant ones.
        """
        ax = self._open(ax)
        values = np.asarray(self.values, dtype=float)
        marked = self._significant(level)
        draw = self._stems if self.positions is None else self._map
        draw(ax, values, marked, point_kw, {"label": f"family-wise p ≤ {level:g}", **(marked_kw or {})})
        return self

    def _stems(self, ax, values, marked, point_kw, marked_kw):
        from matplotlib.collections import PathCollection

        x = np.arange(len(values))
        self.colorbar_ = None
        ax.axhline(0, color=DARK, linewidth=0.8)
        self.stems_ = ax.vlines(x, 0, values, colors=np.where(marked, OBSERVED, NULL), linewidth=1.2)
        size = np.clip(1000 / len(x), 4, 16)
        look = style(PathCollection, point_kw, s=size, facecolor="white", edgecolor=NULL, zorder=3)
        self.points_ = ax.scatter(x, values, **look)
        look = style(PathCollection, marked_kw, s=30, color=OBSERVED, zorder=4)
        self.marked_ = ax.scatter(x[marked], values[marked], **look)
        ax.margins(y=0.15)
        ax.set(xlabel="feature", ylabel=self.label)
        if self.feature_names is not None and len(values) <= MOST_NAMES:
            crowded = sum(len(str(name)) for name in self.feature_names) > 60
            ax.set_xticks(x, self.feature_names, rotation=90 if crowded else 0, fontsize=7 if len(x) > 30 else None)
        if marked.any():
            ax.legend(**LEGEND)

    def _map(self, ax, values, marked, point_kw, marked_kw):
        from matplotlib.collections import PathCollection

        positions = np.asarray(self.positions, dtype=float)
        shape = positions.shape
        if shape != (len(values), 2):
            raise ValueError(f"positions must have shape ({len(values)}, 2), one point for each feature; got {shape}")
        x, y = positions.T
        size = np.clip(10000 / len(values), 20, 300)
        look = style(PathCollection, point_kw, s=size, cmap="RdBu_r", edgecolor=NULL, linewidth=0.5)
        self.stems_ = None
        self.points_ = ax.scatter(x, y, c=values, **centred(look, 0))
        look = style(PathCollection, marked_kw, s=size, facecolor="none", edgecolor="black", linewidth=1.8)
        self.marked_ = ax.scatter(x[marked], y[marked], **look)
        ax.set_aspect("equal")
        ax.set_axis_off()
        ax.margins(0.1)
        self._add_colorbar(self.points_, self.label, shrink=0.7)
        if marked.any():
            ax.legend(**LEGEND, loc="upper center", bbox_to_anchor=(0.5, 0.02))
