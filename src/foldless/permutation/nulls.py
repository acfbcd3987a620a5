"""Null distributions: permutations, p-values and what a permutation test returns.

A score s is compared with the scores s_1 ... s_m of m random permutations of the labels (Ojala & Garriga 2010, test 1):

    p = (1 + #{j : s_j >= s}) / (1 + m)                          never 0
    family-wise  p_k = (1 + #{j : max_l s_jl >= s_k}) / (1 + m)   for members k that share their permutations

(<= and min for a loss). The second holds the probability of any false discovery in the family below p (Nichols &
Holmes 2002). Scores that are equal up to rounding count as equal, and a permutation whose score is not defined as one
that is at least as good: both err on the safe side.
"""

import numpy as np
from sklearn.utils import check_random_state

ROUNDING = 1e-10  # relative difference up to which two scores are the same
ROUNDING_SINGLE = 1e-5  # the same for data in single precision


def permutations(n, n_permutations, random_state, strata=None):
    """Row numbers (m, n), drawn as scikit-learn's ``permutation_test_score`` draws them; within ``strata`` if given."""
    random_state = check_random_state(random_state)
    orders = np.empty((n_permutations, n), np.int32 if n < 2**31 else np.int64)
    levels = None if strata is None else [np.flatnonzero(np.asarray(strata) == level) for level in np.unique(strata)]
    for order in orders:
        if levels is None:
            order[:] = random_state.permutation(n)
            continue
        order[:] = np.arange(n)
        for rows in levels:
            order[rows] = random_state.permutation(rows)
    return orders


def with_truth(orders):
    """Row numbers of the true labels and of their permutations, (1 + m, n)."""
    return np.concatenate([np.arange(orders.shape[1], dtype=orders.dtype)[None], orders])


def p_values(score, null, *, greater=True, rounding=ROUNDING):
    """(1 + number of null scores at least as good) / (1 + m), for scores (...) and null (m, ...)."""
    score, null = np.asarray(score, float), np.asarray(null, float)
    sign = 1.0 if greater else -1.0
    with np.errstate(invalid="ignore"):
        as_good = sign * null >= sign * score - rounding * np.abs(score)
    count = np.sum(as_good | (np.isnan(null) & (rounding > 0)), axis=0)
    return np.where(np.isnan(score), np.nan, (count + 1.0) / (len(null) + 1.0))[()]
