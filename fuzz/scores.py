"""Scores of one test set as intervals: every value that rounding of the decisions may explain."""

import numpy as np

from fuzz.judge import TINY, choices
from fuzz.oracles import LD


def accuracy(fits, codes):
    """Lowest and highest share of right labels."""
    choice, margin, tolerance = choices(fits)
    sure = margin > tolerance
    right = choice == codes
    return np.mean(sure & right), np.mean(~sure | right)


def balanced_accuracy(fits, codes):
    """The same, averaged over the classes that occur."""
    choice, margin, tolerance = choices(fits)
    sure, right = margin > tolerance, choice == codes
    parts = [codes == k for k in np.unique(codes)]
    return tuple(np.mean([each[part].mean() for part in parts]) for each in (sure & right, ~sure | right))


def roc_auc(fits, codes, same):
    """Share of pairs in order; rows with the same number in ``same`` are equal and tie."""
    up, down = np.flatnonzero(codes == 1), np.flatnonzero(codes == 0)
    difference = fits.values[up, None] - fits.values[None, down]
    size = np.maximum(np.abs(fits.values[up, None]), np.abs(fits.values[None, down]))
    low, high = wins(difference, fits.fine[up, None] + fits.fine[None, down], size, same[up, None] == same[None, down])
    return low.mean(), high.mean()


def wins(difference, tolerance, size, same):
    """Lowest and highest wins of pairs (positive, negative) by the differences of their scores; ties are a half."""
    tolerance = np.maximum(np.asarray(tolerance, LD), TINY)
    with np.errstate(invalid="ignore"):
        sure = ~same & (np.abs(difference) > tolerance)
    return np.where(same, 0.5, sure & (difference > 0)), np.where(same, 0.5, ~sure | (difference > 0))


def neg_mean_squared_error(fits, Y):
    """Value and tolerance of minus the mean squared error; outputs in columns."""
    gap = fits.values - Y
    t = np.asarray(fits.tolerance, LD)
    square = gap * gap
    return -square.mean(0).mean(), (2 * np.abs(gap) * t + t * t).mean(0).mean() + 1e-12 * square.mean()


def r2(fits, Y):
    """Value and tolerance of the coefficient of determination; infinite for constant values."""
    gap, t = fits.values - Y, np.asarray(fits.tolerance, LD)
    total = ((Y - Y.mean(0)) ** 2).sum(0)
    if np.any(total <= (1e-14 * np.abs(Y).max()) ** 2 * len(Y)):
        return LD(0), np.inf
    values = 1 - (gap * gap).sum(0) / total
    lost = 8 * np.finfo(float).eps * np.abs(Y).max(0) * np.sqrt(len(Y) / total)  # of the spread of Y
    errors = (2 * np.abs(gap) * t + t * t).sum(0) / total + (1e-12 + 2 * lost) * (1 + np.abs(values))
    return values.mean(), errors.mean()


def correlation(fits, Y):
    """Value and tolerance of Pearson's correlation, averaged over outputs; infinite for (nearly) constant ones."""
    D, T = fits.values - fits.values.mean(0), Y - Y.mean(0)
    size, length = np.sqrt((D * D).sum(0)), np.sqrt((T * T).sum(0))
    error = np.sqrt((np.asarray(fits.tolerance, LD) ** 2).sum(0))
    if np.any(size <= 10 * error) or np.any(length <= 1e-14 * np.abs(Y).max()):
        return LD(0), np.inf
    return ((D * T).sum(0) / size / length).mean(), (4 * error / size).mean() + 1e-12
