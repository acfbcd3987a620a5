"""Are there digits left? One question about every difference that held-out values are made of.

A difference of numbers of some size has few digits where next to nothing of that size is left (:func:`cancels`). What
is left is compared with a share of the size, one for each kind of difference:

    fits              Y - E beside the targets Y                                        SMALL
    sums of terms     the targets beside the sizes of all terms that add up to a fit    LEAST_OF_TERMS
    class matrices    what a training part keeps of a class, or of a column of Y        LEAST_KEPT
    blocks of P       alpha P_te,te, that is I - Psi_te Psi_te', beside one             FREE
    variances         of a feature in a training part beside that of all rows           LEAST_VARIANCE
    alpha             beside the mean diagonal of the kernel                            TINY, SINGULAR
    alpha             beside squares of features                                        SQUARED, SUMMED

Fits then follow from the coefficients, where their terms add up (:func:`adds_up`). In all other cases the repair is
one: the training part is solved by itself, without the P of all rows.
"""

import numpy as np

from foldless._engine.linalg import eps

SMALL = {8: 2.0**-21, 4: 2.0**-12}  # share of the targets below which a difference has few digits, by bytes of a number
LEAST_OF_TERMS = {8: 2.0**-12, 4: 2.0**-6}  # share of terms down to which their sum loses no more than that
LEAST_KEPT = 2.0**-10  # share of a class below which a difference would have lost more than three digits
LEAST_VARIANCE = 1e-6  # share of the variance below which the sums of a training part are taken from its rows
SQUARED = 1e-8  # alpha by the largest eigenvalue of Phi' Phi, down to which that keeps 8 digits
SUMMED = 1e-10  # the same down to which it keeps 6, where rows are seen in chunks and there is no other way
FREE = 1e-6  # share of a row not explained by its own target, below which A / P would lose more than 6 digits
TINY = {8: 1e-8, 4: 1e-3}  # alpha by the mean diagonal of K below which features are more accurate, by bytes
SINGULAR = {8: 1e-6, 4: 1e-3}  # the same below which a singular S costs its regular parts digits


def cancels(left, size, share):
    """Whether differences of numbers of this size leave less than this share of it."""
    return left < share * size


def few_digits(values, size):
    """Whether differences of targets of this size (m,) that come out as ``values`` (..., m) have lost most digits."""
    return cancels(abs(values), size, SMALL[values.dtype.itemsize])


def adds_up(terms, size):
    """Whether a sum of targets' size (m,) of terms of these sizes in all (..., m) keeps its digits."""
    return ~cancels(size, terms, LEAST_OF_TERMS[terms.dtype.itemsize])


def little_kept(kept, before):
    """Whether a training part keeps next to nothing of what there was before."""
    return cancels(kept, before, LEAST_KEPT)


def nearly_fitted(free):
    """Whether rows nearly fit themselves: ``free`` is the share of them that their own targets do not explain."""
    return cancels(free, 1.0, FREE)


def nearly_constant(variance):
    """Whether features have nearly no variance left, of 1 among all rows, in a training part."""
    return cancels(variance, 1.0, LEAST_VARIANCE)


def rows_beyond_rank(precision, size, xp):
    """alpha tr P, the number of rows beyond the rank of S, where S is singular and alpha tiny; else infinite.

    P is then of the size 1 / alpha, and so is its rounding. A training part without that many rows can be regular.
    ``size`` is the mean diagonal of S.
    """
    alpha = precision.alpha
    G = precision.G
    if not cancels(alpha, size, SINGULAR[G.dtype.itemsize]):
        return np.inf
    beyond_rank = alpha * float(xp.sum(precision.diagonal()))
    singular = beyond_rank > 0.5 or cancels(alpha, size, precision.n * eps(G))  # rounding made P smaller
    return beyond_rank if singular else np.inf
