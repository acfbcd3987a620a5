"""Rows in the order of their scores: pairs of a positive and a negative row in the right order, and the best cut.

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
    scores = np.take_along_axis(scores, order, -1)
    positive = np.take_along_axis(positive, order, -1)
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


def best_cut(scores, positive, weights):
    """The cut between sorted scores with the least weighted error; of equal ones the nearest to 0.

    Rows with a score above the cut are called positive; ties cannot be separated (Cawley 2006, "altering the bias").
    """
    order = np.argsort(scores, kind="stable")
    s, w = scores[order], weights[order]
    sign = np.where(positive[order], w, -w)
    # errors[i]: everything from position i on is called positive
    errors = np.concatenate([[0.0], np.cumsum(sign)]) + w[~positive[order]].sum()
    cuts = np.concatenate([[s[0] - 1.0], (s[1:] + s[:-1]) / 2, [s[-1] + 1.0]])
    allowed = np.concatenate([[True], s[1:] > s[:-1], [True]])
    slack = 1e-12 * w.sum()  # sums of weights in another order differ by rounding
    best = allowed & (errors <= errors[allowed].min() + slack)
    candidates = cuts[best]
    # a whole interval may be free of scores around 0: then 0 itself
    lower = np.concatenate([[-np.inf], s])[best]
    upper = np.concatenate([s, [np.inf]])[best]
    if np.any((lower < 0) & (upper > 0)):
        return 0.0
    return float(candidates[np.abs(candidates).argmin()])
