"""Judgement: is a number of the library within the rounding that the condition of its problem explains?

A :class:`Script` runs the lines that a reader can copy; a :class:`Judge` compares what they return, and keeps count.
"""

import traceback
import warnings
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import scipy.sparse as sp

from fuzz.oracles import LD

TINY = LD(1e-280)  # what underflow leaves
IMPORTS = """import copy
import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn import model_selection as theirs
from sklearn.model_selection import (GroupKFold, KFold, LeaveOneGroupOut, LeaveOneOut, LeavePOut, RepeatedKFold,
    RepeatedStratifiedKFold, ShuffleSplit, StratifiedKFold, StratifiedShuffleSplit)
from foldless import AdaptiveKDA, FoldlessSearchCV, KernelFisherDiscriminant, LSSVC, LSSVR
from foldless.kernels import Boolean
from foldless.model_selection import (Confounds, compare, cross_val_predict, cross_val_score, cross_validate,
    leave_pair_out_auc, nested_cross_validate, permutation_test_score, score_interval)
from fuzz.moments import interrupted_at, moments  # from the root of the repository"""


@cache
def imported():
    """The names of the first lines of every script."""
    names = {}
    exec(IMPORTS, names)
    return names


class LibraryError(Exception):
    """A line of a script that failed."""


def literal(value):
    """Python text that makes the value again, to the last bit."""
    if sp.issparse(value):
        return f"sp.csr_matrix({literal(value.toarray())})"
    if isinstance(value, np.ndarray):
        kind = "" if value.dtype in (np.float64, np.int64, bool) or value.dtype.kind == "U" else f", np.{value.dtype}"
        return f"np.array({value.tolist()!r}{kind})"
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(literal, value))},)"
    return repr(value)


class Skip(Exception):
    """A program whose draw makes no sense: nothing is compared."""


class Script:
    """Lines of Python that are run as they are added."""

    def __init__(self):
        self.lines, self.names = [], imported().copy()

    def let(self, name, value):
        """Name a value."""
        self.names[name] = value
        self.lines.append((name, value))

    def text(self, data=True):
        """The lines so far; data that are long only on request."""
        lines = []
        for line in self.lines:
            if isinstance(line, str):
                lines.append(line)
                continue
            value = literal(line[1])
            lines.append(f"{line[0]} = {value}" if data or len(value) < 160 else f"{line[0]} = ...")
        return "\n".join(lines)

    def run(self, line, name=None):
        """Run an expression, or ``name = expression``, and return its value."""
        self.lines.append(line if name is None else f"{name} = {line}")
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                value = eval(line, self.names)
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{place.filename.rpartition('/')[2]}:{place.name}"
            raise LibraryError(f"{type(error).__name__} in {where}: {error}") from error
        if name is not None:
            self.names[name] = value
        return value


@dataclass
class Finding:
    """One comparison beyond tolerance."""

    area: str
    kind: str
    number: int
    ratio: float
    expected: str
    found: str
    script: str
    short: str


@dataclass
class Count:
    """What was compared in one area."""

    programs: int = 0
    comparisons: int = 0
    unjudged: int = 0
    beyond: int = 0
    ratio: float = 0.0


@dataclass
class Judge:
    """Compares, counts and remembers."""

    area: str = ""
    number: int = 0
    script: Script | None = None
    label: str = ""
    counts: dict = field(default_factory=dict)
    findings: list = field(default_factory=list)

    @property
    def count(self):
        """The figures of the present area."""
        return self.counts.setdefault(self.area, Count())

    def start(self, area, number):
        """A new program."""
        self.area, self.number, self.script, self.label = area, number, Script(), ""
        self.count.programs += 1
        return self.script

    def report(self, what, ratio, expected, found):
        """Remember a finding."""
        self.count.beyond += 1
        self.count.ratio = max(self.count.ratio, ratio)
        kind = f"{what} [{self.label}]" if self.label else what
        if any(other.number == self.number and other.kind == kind for other in self.findings):
            return  # once for each program
        shown = [str(each) for each in (expected, found)]
        script = self.script
        self.findings.append(
            Finding(self.area, kind, self.number, ratio, *shown, f"{IMPORTS}\n{script.text()}", script.text(data=False))
        )

    def skip(self):
        """A comparison that the condition does not allow to judge."""
        self.count.comparisons += 1
        self.count.unjudged += 1

    def values(self, what, found, expected, tolerance, limit=np.inf):
        """Arrays or numbers; entries whose tolerance is not finite, or beyond ``limit``, are not judged."""
        count = self.count
        expected = np.asarray(expected, LD)
        if sp.issparse(found) or np.shape(found) != expected.shape:
            count.comparisons += 1
            return self.report(f"{what}: shape", np.inf, expected.shape, np.shape(found))
        tolerance = np.broadcast_to(np.asarray(tolerance, LD), expected.shape)
        judged = np.isfinite(tolerance) & (tolerance <= limit)
        if not judged.any():
            return self.skip()
        count.comparisons += 1
        with np.errstate(all="ignore"):
            gap = np.abs(np.asarray(found, LD) - expected)
            gap = np.where((np.asarray(found, LD) == expected), 0, gap)
            ratio = np.where(judged, gap / np.maximum(tolerance, TINY), 0)
        ratio = np.where(np.isnan(ratio), np.inf, ratio)
        worst = float(ratio.max(initial=0.0))
        if worst > 1:
            place = np.unravel_index(int(ratio.argmax()), expected.shape)
            return self.report(
                what,
                worst,
                f"{float(expected[place])!r} at {tuple(map(int, place))} within {float(tolerance[place]):.3g}",
                repr(float(np.asarray(found)[place])),
            )
        count.ratio = max(count.ratio, worst)

    def equal(self, what, found, expected):
        """Something that has no tolerance."""
        self.count.comparisons += 1
        same = np.array_equal(found, expected) if isinstance(expected, np.ndarray) else found == expected
        if not same:
            self.report(what, np.inf, expected, found)

    def labels(self, what, found, fits, classes):
        """Labels of decisions; either is right where the margin is within the tolerance."""
        choice, margin, tolerance = choices(fits)
        found, classes = np.asarray(found), np.asarray(classes)
        if found.shape != choice.shape:
            self.count.comparisons += 1
            return self.report(f"{what}: shape", np.inf, choice.shape, found.shape)
        sure = margin > tolerance
        if not sure.any():
            return self.skip()
        self.count.comparisons += 1
        wrong = sure & (found != classes[choice])
        if wrong.any():
            place = int(np.flatnonzero(wrong)[0])
            ratio = float(margin[place] / tolerance[place])
            self.report(what, ratio, f"{classes[choice[place]]!r} at {place}", repr(found[place]))

    def intervals(self, what, found, intervals, rounding=1e-10):
        """Scores of several test sets, each in its interval."""
        low, high = (np.array([float(each[side]) for each in intervals]) for side in (0, 1))
        found = np.asarray(found, float)
        self.count.comparisons += 1
        if found.shape != low.shape:
            return self.report(f"{what}: shape", np.inf, low.shape, found.shape)
        gap = np.maximum(low - found, found - high)
        gap = np.where(np.isnan(gap), np.inf, gap)
        place = int(gap.argmax())
        if gap[place] > rounding:
            expected = f"{low[place]!r} to {high[place]!r} at {place}"
            self.report(what, float(gap[place] / rounding), expected, repr(found[place].item()))

    def within(self, what, found, interval, rounding=1e-10):
        """A score that must lie in an interval; ``None``: not judged."""
        if interval is None:
            return self.skip()
        low, high = (float(each) for each in interval)
        self.count.comparisons += 1
        slack = rounding * max(1.0, abs(low), abs(high))
        if not low - slack <= found <= high + slack:
            gap = max(low - found, found - high)
            ratio = float(gap / slack) if np.isfinite(gap) else np.inf
            text = repr(low) if low == high else f"{low!r} to {high!r}"
            self.report(what, ratio, text, repr(found))


def choices(fits):
    """Chosen class, margin and tolerance of every row of decisions (t,) or (t, c)."""
    fine = np.maximum(np.asarray(fits.fine, LD), TINY)
    if fits.values.ndim == 1:
        return (fits.values > 0).astype(int), np.abs(fits.values), fine
    choice = fits.values.argmax(1)
    ordered = np.sort(fits.values, 1)
    return choice, ordered[:, -1] - ordered[:, -2], 2 * fine.max(1)
