"""Codings: the targets of a regression for labels, decisions from its fits, and labels from decisions.

A readout names the targets Y of the regression and turns fits at any rows, with the class matrices N and U of the
training part that made them, into decisions. It never asks how the fits arose, so the same few lines serve the fitted
model, a fold, n leave-one-out models at once, or thousands of permutations: all arguments may carry leading batch
axes.

Labels are coded in two ways: indicators (one column a class, 1 for its rows) and +-1 one against all (one column a
class, 1 for its rows and -1 for the others; one column in all, that of the second class, for two classes). Fits are
linear in the targets, so fits of the indicators give those of the others (``against_all``).

Fits and decisions are arrays of any kind; class numbers and labels are arrays of NumPy.
"""

from dataclasses import dataclass
from functools import reduce
from typing import ClassVar

import numpy as np

from foldless._engine.linalg import eps, namespace, take


def indicator(codes, n_classes, dtype):
    """Y with a one in the column of each row's class."""
    Y = np.zeros((len(codes), n_classes), dtype)
    Y[np.arange(len(codes)), codes] = 1.0
    return Y


def plus_minus(codes, n_classes, dtype):
    """Targets one against all: +1 in the column of the own class, -1 elsewhere; two classes have one column."""
    if n_classes == 2:
        return (2 * codes[:, None] - 1).astype(dtype)
    return 2 * indicator(codes, n_classes, dtype) - 1


def against_all(fits, axis=-1):
    """Fits of the targets +-1 from those of the indicators: the fit of a column of ones is the sum of all of them."""
    if fits.shape[axis] > 2:
        return 2.0 * fits - namespace(fits).sum(fits, axis=axis, keepdims=True)
    return take(fits, slice(1, 2), axis) - take(fits, slice(1), axis)


def drop_rounding_noise(decision, size):
    """Decisions, 0 where rounding of what was added up, of this size in all, can have made them.

    Rounding depends on the labels, which must not be read off it.
    """
    return namespace(decision).where(abs(decision) <= 16 * eps(decision) * size, 0.0, decision)


def vote_of_one_class(decision, present):
    """Decisions (..., t) of two classes, those of a training part without one of them for the ``present`` (..., 2)."""
    first, second = present[..., None, 0], present[..., None, 1]
    where, size = namespace(decision).where, abs(decision)
    return where(first & second, decision, where(second, size, -size))


def tie_best(decisions, axis, size):
    """Decisions with those that rounding alone tells from the largest of a row made equal to it."""
    xp = namespace(decisions)
    columns = (take(decisions, slice(k, k + 1), axis) for k in range(decisions.shape[axis]))
    best = reduce(xp.maximum, columns)  # the maximum along a short axis is slow
    close = best - decisions <= 16 * eps(decisions) * xp.maximum(abs(best), size)
    return xp.where(close, best, decisions)


def chosen_codes(decision):
    """Class numbers (n,) of decisions: by sign for two classes, (n,), else the first of the largest of (n, c)."""
    return (decision > 0).astype(np.intp) if decision.ndim == 1 else decision.argmax(1)


def chosen_labels(decision, classes, flat=True):
    """Labels of decisions of shape (n,) or (n, c); not ``flat``: 0 or 1 for each of c labels that a row may have."""
    return classes[chosen_codes(decision)] if flat else (decision > 0).astype(int)


def chosen_among_close(D):
    """Class numbers (b, t) of decisions (b, k, t), k = 1 for two classes, else one column a class.

    Decisions that differ from the largest by rounding only are as large; the first of these is taken.
    """
    if D.shape[1] == 1:
        return (D[:, 0] > 0).astype(np.intp)
    best = D[:, 0].copy()
    which = np.zeros(best.shape, np.intp)
    rounding = 16 * np.finfo(D.dtype).eps * np.abs(D.max(1))
    for k in range(1, D.shape[1]):  # a few passes over contiguous rows; argmax along a short axis is slow
        better = D[:, k] > best + rounding
        np.copyto(best, D[:, k], where=better)
        which[better] = k
    return which


CODINGS = {"indicator": indicator, "plus_minus": plus_minus}


class Readout:
    """How fits become decisions: as they are, unless a subclass says otherwise."""

    coding: ClassVar[str]  # what the targets are: "indicator" or "plus_minus" of labels, "values" of a regression
    n_classes: int
    needs_moments: ClassVar[bool] = False  # whether decisions take class matrices
    cuts: ClassVar[bool] = False  # whether the decision is shifted to the best leave-one-out cut
    expected: tuple | None = None  # shares of the classes that probabilities are for; None: those of the training rows

    @property
    def needs_presence(self):
        """Whether decisions take which classes have rows in the training part."""
        return False

    @property
    def needs_axes(self):
        """Whether decisions take more of the class matrices than the masses."""
        return self.needs_moments

    def targets(self, codes, dtype):
        """Y (n, m) of class numbers (n,)."""
        if self.needs_moments and self.coding != "indicator":
            name = type(self).__name__
            raise ValueError(
                f"{name} reads class matrices, which are made from indicators; its coding is {self.coding!r}."
            )
        return CODINGS[self.coding](codes, self.n_classes, dtype)

    def plus_minus_fits(self, fits):
        """Fits (..., m) of the targets +-1 one against all, or of values, from those of the readout's own targets."""
        return against_all(fits) if self.coding == "indicator" else fits

    def scores(self, fits, moments):
        """Decisions of fits (..., t, m), before any cut.

        ``moments`` are the class matrices of the training part, or with ``needs_presence`` which classes (..., c) have
        rows there.
        """
        return fits

    def for_indicators(self, moments):
        """A function from fits (b, c, t) of the indicators to decisions (b, k, t), k = 1 for two classes, else c.

        They are those of ``scores``; where the coding is "indicator", up to a constant a row.
        """

        def decide(fits):
            coded = against_all(fits, 1) if self.coding == "plus_minus" else fits
            transpose = namespace(fits).matrix_transpose
            decisions = self.scores(transpose(coded), moments)
            return decisions[:, None] if decisions.ndim == 2 else transpose(decisions)

        return decide


@dataclass(frozen=True)
class Regression(Readout):
    """Targets are values; decisions are the fits."""

    coding: ClassVar[str] = "values"


@dataclass(frozen=True)
class OneAgainstAll(Readout):
    """Targets +-1, one column a class (one column in all for two classes); decisions are the fits."""

    n_classes: int
    centred: bool = True  # an intercept was fitted: decisions near 0 are differences
    coding: ClassVar[str] = "plus_minus"

    @property
    def needs_presence(self):
        """Without an intercept the fit of a class without rows may be positive; with one it is -1."""
        return not self.centred

    def scores(self, fits, moments):
        """(..., n_classes), or (...,) for two classes; a class without rows never has the largest."""
        if moments is not None:
            fits = self._absent_never_win(fits, moments)
        decisions = self._without_rounding(fits, -1)
        return decisions if self.n_classes > 2 else decisions[..., 0]

    def for_indicators(self, moments):
        """A function from fits (b, c, t) of the indicators to decisions (b, k, t), k = 1 for two classes, else c."""
        return lambda fits: self._without_rounding(against_all(fits, 1), 1)

    def _absent_never_win(self, fits, present):
        """Fits with minus their size for classes that are not ``present`` (..., c); one column leaves the other class.

        Fits of +-1 one against all add up to 2 - c times the fit of ones, and that of an absent class is minus the
        latter: with a minus sign it is below their mean.
        """
        if self.n_classes > 2:
            return namespace(fits).where(present[..., None, :], fits, -abs(fits))
        return vote_of_one_class(fits[..., 0], present)[..., None]

    def _without_rounding(self, fits, axis):
        if self.n_classes > 2:
            return tie_best(fits, axis, float(self.centred))
        return drop_rounding_noise(fits, 1.0) if self.centred else fits


@dataclass(frozen=True)
class Multilabel(Readout):
    """Targets +-1, one column for each of several labels that a row may have; decisions are the fits."""

    centred: bool = True  # as in OneAgainstAll
    coding: ClassVar[str] = "plus_minus"

    def scores(self, fits, moments):
        """(..., n_labels): each column as the decisions of two classes."""
        return drop_rounding_noise(fits, 1.0) if self.centred else fits
