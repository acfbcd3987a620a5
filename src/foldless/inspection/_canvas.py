"""The base of the displays: the display of a result, axes, times, colours, and texts of numbers.

Blue (Okabe & Ito 2008) is observed and greys are the null: told apart in print and by colour-blind readers. Classes
have their colours, and markers or dashes of their own as well.
"""

from dataclasses import dataclass
from math import floor, log10
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from sklearn.utils._optional_dependencies import check_matplotlib_support

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OBSERVED = "#0072B2"
ERRORS = "#D55E00"
NULL = "#8C8C8C"
FAINT = "#D9D9D9"
DARK = "#333333"
CLASSES = (OBSERVED, ERRORS, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999933")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES: tuple = ("solid", (0, (5, 1.5)), (0, (1, 1)), (0, (4, 1, 1, 1)))
LEGEND: dict[str, Any] = {"framealpha": 0.8, "edgecolor": "none", "fontsize": "small", "handlelength": 1.4}
LEGEND |= {"borderpad": 0.3, "labelspacing": 0.3, "handletextpad": 0.5, "columnspacing": 1.0}

Ax: TypeAlias = "Axes | None"
Style: TypeAlias = dict[str, Any] | None  # keywords of an artist, for matplotlib

HOMES = {
    0: "one test; draw it with PermutationDisplay",
    1: "a family of tests; draw it with TimeCourseDisplay, or one of them with PermutationDisplay and member=",
    2: "a time-by-time generalisation; draw it with GeneralisationDisplay, or one of its tests with PermutationDisplay"
    " and member=(train, test)",
}


def unpack(result, display, ndims):
    """Score, permutation scores and p-value as arrays, if the score has one of the ``ndims`` that ``display`` draws."""
    if hasattr(result, "patterns"):
        raise ValueError(f"{display} draws permutation tests, result holds patterns; draw it with PatternDisplay")
    try:
        score, null, pvalue = (np.asarray(part, dtype=float) for part in result)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"result must be what permutation_test_score returns, (score, permutation_scores, pvalue); "
            f"got {type(result).__name__}"
        ) from error
    if null.ndim != score.ndim + 1 or null.shape[1:] != score.shape or not len(null) or pvalue.shape != score.shape:
        raise ValueError(
            "result must be (score, permutation_scores, pvalue) with a row of permutation_scores for each permutation;"
            f" their shapes are {score.shape}, {null.shape} and {pvalue.shape}"
        )
    if score.ndim not in ndims:
        raise ValueError(
            f"{display} cannot draw a score of shape {score.shape}: "
            f"this is {HOMES.get(score.ndim, 'no result of permutation_test_score')}"
        )
    return score, null, pvalue


def new_axes(caller, count):
    """Axes side by side in a new figure, without the lines that carry nothing."""
    check_matplotlib_support(caller)
    import matplotlib.pyplot as plt

    width, height = plt.rcParams["figure.figsize"]
    size = (width * min(count, 3) * 0.75, height * 0.75) if count > 1 else None
    _, axes = plt.subplots(1, count, layout="constrained", squeeze=False, figsize=size)
    for ax in axes[0]:
        ax.spines[["top", "right"]].set_visible(False)
    return axes[0]


class Display:
    """Base of the displays: ``plot`` opens the axes and draws into them."""

    pvalue_fwe: Any

    def _open(self, ax):
        """The caller's axes untouched, or new ones without the lines that carry nothing."""
        self.ax_ = ax = new_axes(f"{type(self).__name__}.plot", 1)[0] if ax is None else ax
        self.figure_ = ax.figure
        return ax

    def _add_colorbar(self, artist, label, **options):
        self.colorbar_ = self.figure_.colorbar(artist, ax=self.ax_, label=label, **options)
        self.colorbar_.outline.set_visible(False)

    def _legend_below(self, ncols):
        """A legend below the label of the x axis, where it covers nothing, and titles have their place."""
        from matplotlib.transforms import ScaledTranslation

        lines = 3.8 * letters() / 72  # of ticks and label, in inches
        below = self.ax_.transAxes + ScaledTranslation(0, -lines, self.figure_.dpi_scale_trans)
        place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (0, 0), "borderaxespad": 0.0}
        self.ax_.legend(**LEGEND, **place, bbox_transform=below, ncols=ncols)

    def _significant(self, level):
        """Where the family-wise test rejects."""
        return np.asarray(self.pvalue_fwe) <= level


@dataclass(kw_only=True, eq=False, repr=False)
class ScoreDisplay(Display):
    """Base of the displays of scores, one or a family along time."""

    scoring: str = "score"
    greater_is_better: bool = True

    def _score_label(self):
        """The label of an axis of scores, with a remark for losses."""
        return self.scoring.replace("_", " ") + ("" if self.greater_is_better else " (lower is better)")


def style(artist, keywords, **default):
    """Keywords of an artist: those of the caller, under any alias (``lw`` for ``linewidth``), override the defaults."""
    from matplotlib.cbook import normalize_kwargs

    keywords = normalize_kwargs(keywords, artist)
    if "color" in keywords:  # one colour for all would lose against defaults for face and edge
        default = {key: value for key, value in default.items() if key not in ("facecolor", "edgecolor")}
    return {**default, **keywords}


def letters():
    """The size of letters, in points."""
    from matplotlib import rcParams

    return rcParams["font.size"]


def plain_log(axis):
    """An axis of logarithms over less than about a decade with a few plain numbers; matplotlib would crowd them."""
    from matplotlib.ticker import FormatStrFormatter, MaxNLocator, NullFormatter

    low, high = axis.get_view_interval()
    if high < 20 * low:
        axis.set_major_locator(MaxNLocator(3))
        axis.set_major_formatter(FormatStrFormatter("%.3g"))
        axis.set_minor_formatter(NullFormatter())


def class_colour(code, strength=1.0):
    """The colour of a class, mixed with white where ``strength`` is below 1."""
    from matplotlib.colors import to_rgb

    colour = np.array(to_rgb(CLASSES[code % len(CLASSES)]))
    return tuple(1 - strength * (1 - colour))


def centred(look, value):
    """Keywords of an image whose colours are centred at a value, unless the caller has other limits."""
    from matplotlib.colors import CenteredNorm

    return look if {"norm", "vmin", "vmax"} & set(look) else {**look, "norm": CenteredNorm(value)}


def p_label(pvalue):
    """``p = 0.0304``; below 0.001 the next power of ten: ``p < 0.0001``."""
    if pvalue < 0.001:
        digits = -floor(log10(pvalue)) - 1
        return f"p < {10.0**-digits:.{digits}f}"
    return f"p = {pvalue:.3g}"
