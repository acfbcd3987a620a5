"""Pairs of a positive and a negative row: which of them are in the right order, and what a tie is.

    AUC = (pairs in the right order + half of the ties) / all pairs          (Wilcoxon, Mann & Whitney)

Scores of one model tie where they are equal: rounding was taken out of them before (``readout.codings``, equal rows of
X). Scores of a pair by a model of its own tie where rounding alone can tell them apart.
"""

import numpy as np

ROUNDING = 8 * np.finfo(float).eps  # relative difference of scores of equal fits
ROUNDING_OF_SQUARES = 1e-10  # the same of decisions that are squared distances to centroids


def pairs_won(scores, positive, weights=None):
    """(pairs in the right order, ties counted half, and all pairs), in weights of both rows of a pair.

    All arguments are (..., n); the results have their leading axes. Costs one sort. Scores in a perfectly wrong order
    win exactly 0.
    """
    order = np.argsort(scores, axis=-1)
    scores, positive = (np.take_along_axis(each, order, -1) for each in (scores, positive))
    if weights is None:
        high, low = positive, ~positive
    else:
        mass = np.take_along_axis(np.asarray(weights, float), order, -1)
        high, low = np.where(positive, mass, 0.0), np.where(positive, 0.0, mass)
    below = np.cumsum(low, axis=-1)
    pairs = high.sum(-1) * below[..., -1]
    tied = scores[..., 1:] == scores[..., :-1]
    if tied.any():
        below = _halfway(below, tied)
    return (high * below).sum(-1), pairs


def _halfway(below, tied):
    """The mean of what lies below the first and below the end of each run of ties."""
    places = np.broadcast_to(np.arange(below.shape[-1]), below.shape)
    edge = np.ones((*below.shape[:-1], 1), bool)
    first = np.maximum.accumulate(np.where(np.concatenate([edge, ~tied], -1), places, 0), axis=-1)
    last = np.where(np.concatenate([~tied, edge], -1), places, below.shape[-1])
    last = np.minimum.accumulate(last[..., ::-1], axis=-1)[..., ::-1]
    padded = np.concatenate([np.zeros_like(below[..., :1]), below], -1)
    return (np.take_along_axis(padded, first, -1) + np.take_along_axis(below, last, -1)) / 2


def scored_pairs_won(scores, *, squares=False):
    """Pairs in the right order, ties counted half, for scores (n_pairs, 2) of a positive and a negative row."""
    difference = scores[:, 0] - scores[:, 1]
    tied = np.abs(difference) <= (ROUNDING_OF_SQUARES if squares else ROUNDING) * np.abs(scores).max(1)
    return np.count_nonzero((difference > 0) & ~tied) + 0.5 * np.count_nonzero(tied)
