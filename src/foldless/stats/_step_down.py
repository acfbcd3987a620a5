"""Step-down p-values of a family (Westfall & Young 1993, algorithm 2.8; Ge, Dudoit & Speed 2003, box 4).

In every permutation, the best member is compared with the maximum over all members, the second best with the maximum
over all members but the best, and so on. With members in the order of their true values v_0(1) >= v_0(2) >= ...

    p_(k) = max over l <= k of  (1 + #{j : max(v_j(l), v_j(l+1), ...) >= v_0(l)}) / (1 + m)

With v = -p, where p is the p-value of each labeling at each member, this is the min-p procedure: every member is
compared with its own null, whatever its width. Sorting all values once costs O(m k log m); the maxima are cumulative.
"""

from typing import Literal

import numpy as np

from foldless._engine.permutation.nulls import PermutationTestResult, conjunction, p_values
from foldless.stats._units import all_scores, check_unit, convert_scores


def step_down(result: PermutationTestResult, *, unit: Literal["p", "z", "score"] = "p") -> np.ndarray:
    """Family-wise p-values of all members by a step-down procedure.

    In a given unit they are never larger than family-wise p-values by the maximum over the whole family.

    Parameters
    ----------
    result : PermutationTestResult
        Of a family: from :func:`~foldless.model_selection.permutation_test_score`, ``combine`` or ``sign_flip_test``.
    unit : {"p", "z", "score"}, default="p"
        Unit in which members are compared. "p": the p-value of each labeling among all labelings (min-p). It suits
        members with nulls of any width and shape, but it needs many more permutations than members: with k members
        the smallest possible p-value is about k / n_permutations. "z": score minus the mean of the null, divided by
        its standard deviation. It suits nulls of any width and needs no more permutations than members. "score":
        score minus the mean of the null.

    Returns
    -------
    ndarray of the shape of ``result.score``
        Adjusted p-values; nan where the score is undefined. They bound the probability of any false discovery if all
        members without an effect are jointly independent of the labels. For a generalisation the p-value of a pair is
        at least as large as those of its two members.

    Examples
    --------
    >>> import numpy as np
    >>> from foldless.model_selection import PermutationTestResult
    >>> from foldless.stats import step_down
    >>> rng = np.random.default_rng(0)
    >>> width = np.array([0.2, 0.02, 0.02])             # the first member has few rows, and a wide null
    >>> null = 0.5 + width * rng.normal(size=(999, 3))
    >>> result = PermutationTestResult(np.array([0.6, 0.57, 0.56]), null)
    >>> print(result.pvalue_fwe.round(3), step_down(result).round(3))
    [0.27  0.321 0.346] [0.27  0.002 0.002]
    """
    check_unit(unit)
    scores = all_scores(result)
    defined = np.flatnonzero(~np.isnan(scores[0]))
    values = convert_scores(scores, unit)[:, defined]
    order = np.argsort(-values[0], kind="stable")
    max_of_remaining = np.maximum.accumulate(values[:, order[::-1]], axis=1)[:, ::-1]
    adjusted = np.full(scores.shape[1], np.nan)
    adjusted[defined[order]] = np.maximum.accumulate(p_values(values[0, order], max_of_remaining[1:]))
    adjusted = adjusted.reshape(np.shape(result.score))
    return conjunction(adjusted) if result.generalised else adjusted
