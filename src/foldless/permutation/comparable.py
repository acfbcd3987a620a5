"""Scores of all labelings in a unit that the members of a family share.

Members have nulls of different means and widths. With s_jk the score of labeling j (0 is the true one) at member k,
larger is better, and means and deviations over all 1 + m labelings:

    "score"   s_jk - mean_k
    "z"       (s_jk - mean_k) / deviation_k
    "p"       #{i : s_ik >= s_jk} / (1 + m), the p-value of labeling j among all of them

The true labels take part in every mean and count, as one labeling among equals. Whatever is made of these values, the
true one is then, without an effect, equally likely to have any rank among all: p-values that count it are exact.

A permuted score that is not defined is the best there is, which errs on the safe side. A member without a true score
(of an interrupted family) is no member.
"""

import numpy as np

from foldless.permutation.nulls import ROUNDING

UNITS = ("p", "z", "score")


def check_unit(unit):
    """One of the units."""
    if unit not in UNITS:
        raise ValueError(f"unit={unit!r} is unknown; use one of {', '.join(map(repr, UNITS))}.")


def all_scores(result):
    """Scores (1 + m, members) of all labelings of a family, the true ones first (nan: no member); larger is better."""
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


def comparable(scores, unit):
    """Scores (1 + m, k) in one of the units, "p" as -p: larger is better; -inf where there is no member."""
    values = np.full_like(scores, -np.inf)
    known = ~np.isnan(scores[0])
    values[:, known] = -ranked(scores[:, known]) if unit == "p" else centred(scores[:, known], unit == "z")
    return values


def centred(scores, scaled):
    """Scores minus the mean of each member, ``scaled``: divided by its deviation (0 where all are equal)."""
    finite = np.isfinite(scores)
    number = np.maximum(finite.sum(0), 1)
    mean = np.where(finite, scores, 0.0).sum(0) / number
    values = scores - mean
    if scaled:
        deviation = np.sqrt(np.square(values, where=finite, out=np.zeros_like(values)).sum(0) / number)
        varies = deviation > ROUNDING * np.abs(mean)
        values = np.where(finite, values / np.where(varies, deviation, np.inf), values)
    return values


def ranked(scores):
    """p-values (1 + m, k) of every labeling among all; scores that are equal up to rounding are equal."""
    with np.errstate(invalid="ignore"):
        least = np.where(np.isinf(scores), scores, scores - ROUNDING * np.abs(scores))
    counts = [
        len(column) - np.searchsorted(np.sort(column), low) for column, low in zip(scores.T, least.T, strict=True)
    ]
    return np.reshape(counts, scores.T.shape).T / len(scores)
