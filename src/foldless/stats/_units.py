"""Scores of all labelings of a family, in a unit in which its members can be compared.

The nulls of the members have different means and widths. With s_jk the score of labeling j (0 is the true one) at
member k, where larger is better, and with means and standard deviations over all 1 + m labelings, the units are:

    "score"   s_jk - mean_k
    "z"       (s_jk - mean_k) / deviation_k
    "p"       #{i : s_ik >= s_jk} / (1 + m), the p-value of labeling j among all labelings

The true labels count as one labeling among equals in every mean and every rank. If there is no effect, any statistic
of these values is therefore equally likely to have any rank, and p-values that count the true labels are exact.

An undefined score of a permutation counts as the best possible score, which makes p-values larger. A member whose true
score is undefined (an interrupted family) is ignored.
"""

import numpy as np

from foldless._engine.permutation.nulls import ROUNDING

UNITS = ("p", "z", "score")


def check_unit(unit):
    """Check that ``unit`` is one of the units."""
    if unit not in UNITS:
        raise ValueError(f"unit={unit!r} is unknown; use one of {', '.join(map(repr, UNITS))}.")


def all_scores(result):
    """Scores (1 + m, k) of all labelings of a family of k members, the true labels first; larger is better.

    The true score is nan where a member has none.
    """
    score, null = np.asarray(result.score, float), np.asarray(result.permutation_scores, float)
    if score.ndim == 0:
        raise ValueError(
            "result is that of one test; give that of a family, which permutation_test_score returns for X with three"
            " axes or a list of matrices."
        )
    if not len(null):
        raise ValueError("result has no permutations; draw some with n_permutations=1000, say.")
    sign = 1.0 if result.greater_is_better else -1.0
    scores = sign * np.concatenate([score[None], null]).reshape(1 + len(null), -1)
    scores[1:][np.isnan(scores[1:])] = np.inf
    return scores


def convert_scores(scores, unit):
    """Scores (1 + m, k) in a unit, -p for "p": larger is better, and -inf where the true score is undefined."""
    values = np.full_like(scores, -np.inf)
    defined = ~np.isnan(scores[0])
    if unit == "p":
        values[:, defined] = -_ranks_as_p_values(scores[:, defined])
    else:
        values[:, defined] = _centred_scores(scores[:, defined], standardize=unit == "z")
    return values


def _centred_scores(scores, standardize):
    """Scores minus the mean of each member, divided by its standard deviation if ``standardize``.

    The scores of a member whose scores are all equal become 0.
    """
    finite = np.isfinite(scores)
    n_finite = np.maximum(finite.sum(0), 1)
    mean = np.where(finite, scores, 0.0).sum(0) / n_finite
    values = scores - mean
    if standardize:
        deviation = np.sqrt(np.square(values, where=finite, out=np.zeros_like(values)).sum(0) / n_finite)
        varies = deviation > ROUNDING * np.abs(mean)
        values = np.where(finite, values / np.where(varies, deviation, np.inf), values)
    return values


def _ranks_as_p_values(scores):
    """p-values (1 + m, k) of every labeling among all labelings; scores that are equal up to rounding are ties."""
    with np.errstate(invalid="ignore"):
        lowest_tie = np.where(np.isinf(scores), scores, scores - ROUNDING * np.abs(scores))
    counts = [
        len(column) - np.searchsorted(np.sort(column), low) for column, low in zip(scores.T, lowest_tie.T, strict=True)
    ]
    return np.reshape(counts, scores.T.shape).T / len(scores)
