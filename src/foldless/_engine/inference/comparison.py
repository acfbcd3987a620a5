"""Two or more models on the same rows: differences of their scores, with intervals and p-values.

Scores of two models on one row go up and down together, and what is common to both cancels in their difference, row by
row. The differences of a cross-validation are as dependent as its scores, and have the same two remedies
(``inference.intervals``). Where one set of rows is held out, and no model has seen any of them, the differences are
independent given the models: their signs may be flipped at random if both models err alike.
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student

from foldless._engine.inference.intervals import corrected_error, nested_error, two_sided
from foldless._engine.linalg.random_state import check_random_state
from foldless.results import Result, by_name, lanes

FLIPS = 9999  # where there are more ways to flip the signs than that
ROUNDING = 1e-10  # of the scores of a row: differences that are no larger are rounding, and none


@dataclass(frozen=True)
class Difference:
    """The score of ``first`` minus that of ``second``."""

    first: str
    second: str
    difference: float
    low: float
    high: float
    standard_error: float
    pvalue: float  # of no difference, two-sided
    pvalue_corrected: float = np.nan  # for the number of pairs, by Holm (1979)


@dataclass(frozen=True, repr=False)
class ComparisonResult(Result):
    """Models on the same rows.

    Attributes
    ----------
    names : list of str
    scores : list of ScoreInterval, one for each model
    differences : list of Difference, one for each pair of models
        With ``first``, ``second``, ``difference`` (score of the first minus that of the second), ``low``, ``high``,
        ``standard_error``, ``pvalue`` and ``pvalue_corrected``, which is Holm's for the number of pairs.
    scoring, method : str
    confidence : float
    paths : list of Route, how the held-out scores of each model were computed and why

    ``to_frame()`` has one row for each difference.
    """

    names: list
    scores: list
    differences: list
    scoring: str
    method: str
    confidence: float
    paths: list

    def _columns(self):
        return by_name([vars(difference) for difference in self.differences])

    def _picture(self):
        rows = [(f"{pair.first} - {pair.second}", pair.difference, (pair.low, pair.high)) for pair in self.differences]
        return lanes(rows, f"differences of {self.scoring}; line: none", 0.0)

    def __repr__(self):
        width = max(map(len, self.names))
        lines = [f"{self.scoring}, {100 * self.confidence:g} % intervals ({self.method})"]
        for name, score in zip(self.names, self.scores, strict=True):
            lines.append(f"  {name:{width}}  {score.score:8.4f}  {score.low:8.4f} to {score.high:8.4f}")
        lines.append("differences, p-values (of each alone; corrected for their number)")
        for pair in self.differences:
            names = f"{pair.first} - {pair.second}"
            interval = f"{pair.difference:8.4f}  {pair.low:8.4f} to {pair.high:8.4f}"
            lines.append(f"  {names:{2 * width + 3}}  {interval}  p = {pair.pvalue:.4g}; {pair.pvalue_corrected:.4g}")
        return "\n".join(lines)


def holm(pvalues):
    """p-values corrected for their number (Holm 1979)."""
    pvalues = np.asarray(pvalues, float)
    order, n = np.argsort(pvalues), len(pvalues)
    corrected = np.empty(n)
    corrected[order] = np.minimum(np.maximum.accumulate(pvalues[order] * np.arange(n, 0, -1)), 1.0)
    return corrected


def nested_difference(first, second, confidence):
    """(difference, low, high, standard error, p-value) of two ``FoldScores`` by nested cross-validation."""
    difference = first - second
    centre, error = nested_error(difference)
    half = error * norm.ppf(0.5 + confidence / 2)
    return difference.score, centre - half, centre + half, error, two_sided(centre, error)


def corrected_difference(first, second, confidence):
    """The same of the differences of fold scores, by Nadeau & Bengio (2003)."""
    n_folds = first.S.shape[1]
    mean, error, freedom = corrected_error((first - second).outside.ravel(), 1 / (n_folds - 1))
    half = error * student.ppf(0.5 + confidence / 2, freedom)
    return mean, mean - half, mean + half, error, two_sided(mean, error, freedom)


def flipped_difference(first, second, confidence, random_state=0):
    """The same of scores (t,) of rows that no model has seen, with the p-value of flipped signs.

    All 2^t ways to flip are counted where they are few.
    """
    first, second = np.asarray(first, float), np.asarray(second, float)
    d = first - second
    mean, error = float(d.mean()), float(d.std(ddof=1) / np.sqrt(len(d)))
    half = error * student.ppf(0.5 + confidence / 2, len(d) - 1)
    rounding = ROUNDING * np.maximum(np.abs(first), np.abs(second))
    apart = d[np.abs(d) > rounding]  # flipping a zero changes nothing
    if not len(apart):
        return mean, mean - half, mean + half, error, 1.0
    n, rng = len(apart), check_random_state(random_state)
    if 2**n <= FLIPS:
        signs = 1 - 2 * (np.arange(2**n)[:, None] >> np.arange(n) & 1)
    else:
        signs = np.vstack([np.ones(n), rng.choice([-1, 1], (FLIPS, n))])  # the true signs are one way
    sums = np.abs(signs @ apart)
    pvalue = np.mean(sums >= abs(apart.sum()) - rounding.sum())
    return mean, mean - half, mean + half, error, float(pvalue)


def all_pairs(names, held, difference):
    """[Difference] of all pairs of models, with corrected p-values; ``difference`` compares two entries of ``held``."""
    pairs = [(i, j) for i in range(len(names)) for j in range(i + 1, len(names))]
    results = [difference(held[i], held[j]) for i, j in pairs]
    corrected = holm([result[-1] for result in results]).tolist()
    rows = zip(pairs, results, corrected, strict=True)
    return [Difference(names[i], names[j], *(*result, p)) for (i, j), result, p in rows]
