"""Step-down p-values of a family (Westfall & Young 1993, algorithm 2.8; Ge, Dudoit & Speed 2003, box 4).

The best member is compared with the best of all members in every permutation, the second best with the best of all but
the first, and so on. Members in the order of their true values v_0(1) >= v_0(2) >= ...

    p_(k) = max over l <= k of  (1 + #{j : max(v_j(l), v_j(l+1), ...) >= v_0(l)}) / (1 + m)

With v = -p of each labeling at each member this is min-p: every member is judged by its own null, however wide. All
are sorted once, O(m k log m), and the maxima are running ones.
"""

from typing import Literal

import numpy as np

from foldless.permutation.comparable import all_scores, check_unit, comparable
from foldless.permutation.nulls import PermutationTestResult, conjunction, p_values


def step_down(result: PermutationTestResult, *, unit: Literal["p", "z", "score"] = "p") -> np.ndarray:
    """Family-wise p-values that are never larger than those of the best member alone.

    Parameters
    ----------
    result : PermutationTestResult
        Of a family: from :func:`permutation_test_score`, ``combine`` or ``sign_flip_test``.
    unit : {"p", "z", "score"}, default="p"
        What members are compared by. "p": the p-value of each labeling among all (min-p), fair to members with nulls
        of any width and shape. It needs many more permutations than members: with k members the smallest possible
        p-value is about k / n_permutations. "z": score minus the mean of the null, divided by its standard deviation;
        fair to any width, and no such need. "score": score minus the mean of the null.

    Returns
    -------
    ndarray of the shape of ``result.score``
        Adjusted p-values; nan where there is no score. They bound the probability of any false discovery where all
        members without an effect are jointly independent of the labels. For a generalisation each is the largest of
        those of the pair and of its two members by themselves.

    Examples
    --------
    >>> import numpy as np
    >>> from foldless.model_selection import PermutationTestResult, step_down
    >>> rng = np.random.default_rng(0)
    >>> width = np.array([0.2, 0.02, 0.02])             # the first member has few rows, and a wide null
    >>> null = 0.5 + width * rng.normal(size=(999, 3))
    >>> result = PermutationTestResult(np.array([0.6, 0.57, 0.56]), null)
    >>> print(result.pvalue_fwe.round(3), step_down(result).round(3))
    [0.27  0.321 0.346] [0.27  0.002 0.002]
    """
    check_unit(unit)
    scores = all_scores(result)
    known = np.flatnonzero(~np.isnan(scores[0]))
    values = comparable(scores, unit)[:, known]
    order = np.argsort(-values[0], kind="stable")
    best_of_rest = np.maximum.accumulate(values[:, order[::-1]], axis=1)[:, ::-1]
    adjusted = np.full(scores.shape[1], np.nan)
    adjusted[known[order]] = np.maximum.accumulate(p_values(values[0, order], best_of_rest[1:]))
    adjusted = adjusted.reshape(np.shape(result.score))
    return conjunction(adjusted) if result.generalised else adjusted
