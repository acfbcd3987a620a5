"""The cut with the fewest leave-one-out errors (Cawley 2006, "altering the bias")."""

import numpy as np


def best_cut(scores, positive, weights):
    """The cut between sorted scores with the least weighted error; of equal ones the nearest to 0.

    Rows with a score above the cut are called positive. Ties in the scores cannot be separated.
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
