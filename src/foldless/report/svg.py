"""Small plots as SVG: axes, points, lines, bars. Colours are classes that the page's style sheet fills in.

A :class:`Plot` maps data to a box and gathers marks. All text passes through ``markupsafe.Markup``, which escapes it.
Marks with a ``tip`` show it under the pointer and to arrow keys; marks of the same ``row`` light up together.
"""

import math
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from foldless.report.words import RAISED, cut, powers, width

RIGHT, TOP, BOTTOM = 24, 12, 46
WIDTH, HEIGHT = 440, 300
LANE = 24  # height of a labelled bar
LABEL = 38  # room for the label of an axis
LETTER = 7.7  # room for each letter left of it


def tag(name, *inside, **attributes):
    """An element; a trailing underscore of an attribute falls away, others become hyphens."""
    said = Markup("").join(
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), _short(value))
        for key, value in attributes.items()
        if value is not None
    )
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(name), said, Markup("").join(inside))


def _short(value):
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float | np.floating) else value


def ticks(low, high, most=6):
    """Round numbers between two ends: steps of 1, 2 or 5 times a power of ten, at most so many."""
    if not high > low:
        return [low]
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * each for each in (1, 2, 5, 10) if power * each >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [step * each for each in range(first, last + 1)]


def log_ticks(low, high, most=6):
    """Powers of ten between two (not their logarithms), with 2 and 5 times them where there are few; not too many."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    steps = (1, 2, 5) if last - first <= 3 else (1,)
    found = [step * 10.0**power for power in range(first, last + 1) for step in steps]
    found = [each for each in found if low * 0.999 <= each <= high * 1.001]
    return found[:: -(-len(found) // most)] if found else [low]


def spread(*values, margin=0.05):
    """The range of some values with a margin; never of length zero."""
    finite = np.concatenate([np.ravel(np.asarray(each, dtype=float)) for each in values])
    finite = finite[np.isfinite(finite)]
    if not len(finite):
        return 0.0, 1.0
    low, high = float(finite.min()), float(finite.max())
    more = margin * (high - low) or abs(low) * 0.1 or 1.0
    return low - more, high + more


def _tick(value, digits):
    """A number at an axis."""
    if abs(value) >= 1e6:
        return f"{value / 1e6:g}M" if abs(value) < 1e9 else powers(f"{value:.2g}")
    return f"{value:,.{digits}f}" if digits < 5 else powers(f"{value:.2g}")


def _power(value):
    """A number at a logarithmic axis: small and large ones as powers of ten."""
    if 1e-3 <= value < 1e4:
        return f"{value:g}"
    power = math.floor(math.log10(value) + 1e-9)
    factor = round(value / 10.0**power)
    small = str(power).translate(RAISED)
    return f"{factor}·10{small}" if factor > 1 else f"10{small}"


class Plot:
    """A plot that marks are added to.

    Parameters
    ----------
    x, y : (low, high), the ends of the axes
    x_label, y_label : str
    lanes : names at the left in place of numbers, the first on top; y then counts lanes from 0
    percent : str, which axes are shares, such as "xy"
    whole : str, which axes have whole numbers alone
    log : str, which axes are logarithmic
    lane : float, height of a lane
    numbers : bool, whether the axis of x has numbers
    """

    def __init__(
        self,
        x,
        y=(0.0, 1.0),
        x_label="",
        y_label="",
        *,
        lanes=(),
        percent="",
        whole="",
        log="",
        lane=LANE,
        numbers=True,
    ):
        self.lanes, self.percent, self.whole, self.log = tuple(lanes), percent, whole, log
        self.lane, self.height = lane, TOP + BOTTOM + lane * len(lanes) if lanes else HEIGHT
        self.ends = {"x": self._scaled("x", x), "y": (len(lanes) - 0.5, -0.5) if lanes else self._scaled("y", y)}
        texts = [cut(each) for each in lanes] or [text for _, text in self._numbers("y")]
        self.left = (18 if lanes else LABEL) + LETTER * max(map(width, texts))
        self.marks = []
        self._axis_x(x_label, numbers)
        self._axis_y(y_label)

    def _scaled(self, axis, values):
        return np.log10(values) if axis in self.log else np.asarray(values, dtype=float)

    def at(self, x, y):
        """Data as places in the box."""
        (x0, x1), (y0, y1) = self.ends["x"], self.ends["y"]
        across = (self._scaled("x", x) - x0) / (x1 - x0)
        up = (self._scaled("y", y) - y0) / (y1 - y0)
        floor = self.height - BOTTOM
        return self.left + across * (WIDTH - RIGHT - self.left), floor - up * (floor - TOP)

    def _numbers(self, axis):
        low, high = self.ends[axis]
        if axis in self.log:
            return [(each, _power(each)) for each in log_ticks(10.0**low, 10.0**high)]
        found = ticks(low, high, 5 if axis == "x" and self.lanes else 6)
        if axis in self.whole:
            found = [each for each in found if each == round(each)]
        digits = max(0, -math.floor(math.log10(found[1] - found[0]) + 1e-9)) if len(found) > 1 else 2
        if axis in self.percent:
            return [(each, f"{100 * each:.{max(0, digits - 2)}f} %") for each in found]
        return [(each, _tick(each, digits)) for each in found]

    def _axis_x(self, label, numbers):
        floor = self.height - BOTTOM
        for value, text in self._numbers("x") if numbers else ():
            across = float(self.at(value, 1.0)[0])
            self.marks.append(tag("line", class_="grid", x1=across, x2=across, y1=TOP, y2=floor))
            self.marks.append(tag("text", text.replace("-", "−"), x=across, y=floor + 17, text_anchor="middle"))
        middle = (self.left + WIDTH - RIGHT) / 2
        self._label(label, x=middle, y=self.height - 8)

    def _axis_y(self, label):
        size = "tiny" if self.lane < 14 else "lane"
        for number, name in enumerate(self.lanes):
            up = TOP + (number + 0.5) * self.lane
            self.marks.append(tag("text", cut(name), class_=size, x=self.left - 10, y=up + 4, text_anchor="end"))
        for value, text in () if self.lanes else self._numbers("y"):
            up = float(self.at(1.0, value)[1])
            self.marks.append(tag("line", class_="grid", x1=self.left, x2=WIDTH - RIGHT, y1=up, y2=up))
            self.marks.append(tag("text", text.replace("-", "−"), x=self.left - 6, y=up + 4, text_anchor="end"))
        middle = (TOP + self.height - BOTTOM) / 2
        self._label(label, x=14, y=middle, transform=f"rotate(-90 14 {middle:.0f})")

    def _label(self, text, **place):
        if text:
            self.marks.append(tag("text", text, class_="axis", text_anchor="middle", **place))

    def points(self, x, y, tips=None, kind="c0", radius=3.5, rows=None):
        """Circles; ``kind`` is a class or one for each, ``rows`` are numbers of rows."""
        kinds = [kind] * len(x) if isinstance(kind, str) else kind
        across, up = self.at(np.asarray(x, dtype=float), np.asarray(y, dtype=float))
        for number in np.flatnonzero(np.isfinite(across) & np.isfinite(up)):
            more = {"class_": kinds[number]}
            if tips is not None:
                more = {"class_": f"mark {kinds[number]}", "data_tip": tips[number]}
            if rows is not None:
                more["data_row"] = rows[number]
            self.marks.append(tag("circle", cx=across[number], cy=up[number], r=radius, **more))
        return self

    def line(self, x, y, kind="l0"):
        """A line through points."""
        places = zip(*self.at(np.asarray(x, dtype=float), np.asarray(y, dtype=float)), strict=True)
        path = " ".join(f"{across:.1f},{up:.1f}" for across, up in places if math.isfinite(across + up))
        self.marks.append(tag("polyline", class_=f"line {kind}", points=path))
        return self

    def segments(self, x0, y0, x1, y1, kind="whisker"):
        """Straight lines from (x0, y0) to (x1, y1)."""
        starts, ends = self.at(np.atleast_1d(x0), np.atleast_1d(y0)), self.at(np.atleast_1d(x1), np.atleast_1d(y1))
        for ax, ay, bx, by in np.broadcast(*starts, *ends):
            if np.isfinite([ax, ay, bx, by]).all():
                self.marks.append(tag("line", class_=kind, x1=ax, y1=ay, x2=bx, y2=by))
        return self

    def boxes(self, x0, y0, x1, y1, tips, kind="c0"):
        """Filled boxes between corners; ``kind`` is a class or one for each."""
        kinds = [kind] * len(tips) if isinstance(kind, str) else kind
        corners = zip(*self.at(np.asarray(x0), np.asarray(y0)), *self.at(np.asarray(x1), np.asarray(y1)), strict=True)
        for (ax, ay, bx, by), tip, each in zip(corners, tips, kinds, strict=True):
            size = {"x": min(ax, bx), "y": min(ay, by), "width": max(abs(bx - ax), 0.5), "height": abs(by - ay)}
            self.marks.append(tag("rect", class_=f"mark {each}", data_tip=tip, **size))
        return self

    def drawn(self, label, described_by):
        """The SVG element, named for screen readers."""
        box = f"0 0 {WIDTH} {self.height:g}"
        return tag("svg", *self.marks, viewBox=box, role="img", aria_label=label, aria_describedby=described_by)


@dataclass(frozen=True)
class Figure:
    """A plot with its title and a text that says what it shows; ``keys`` are (class of the colour, meaning) pairs."""

    title: str
    plot: Plot
    text: str
    keys: tuple[tuple[str, str], ...] = ()
