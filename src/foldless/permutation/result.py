"""What a permutation test returns."""

from collections import namedtuple
from typing import Any

import numpy as np

from foldless.permutation.nulls import ROUNDING, p_values


class PermutationTestResult(namedtuple("_Three", "score permutation_scores pvalue")):
    """scikit-learn's three values, and what displays and readers want besides.

    For one test ``score`` and ``pvalue`` are numbers and ``permutation_scores`` has shape (n_permutations,). For a
    family of k members they are (k,) and (n_permutations, k), for a generalisation (k, k) and (n_permutations, k, k)
    with the member trained on first.

    Attributes
    ----------
    score, permutation_scores, pvalue
    pvalue_fwe : p-values by the maximum over the family, shape of ``score``; None for one test
    max_scores : ndarray of shape (n_permutations,), the best score of every permutation; None for one test
    n_permutations : int
    scoring : str
    greater_is_better : bool
    strata : ndarray of shape (n_samples,) or None, the sets of rows within which labels were permuted
    best_params : list of dicts, the choice of every outer split for the true labels; None unless one search was tested
    path : Path, how it was computed and why
    """

    pvalue_fwe: Any = None
    max_scores: Any = None
    n_permutations: int = 0
    scoring: str = ""
    greater_is_better: bool = True
    best_params: list | None = None
    strata: np.ndarray | None = None
    path: object = None

    def __new__(  # noqa: D102
        cls,
        score,
        permutation_scores,
        pvalue=None,
        *,
        scoring="",
        greater_is_better=True,
        path=None,
        best_params=None,
        strata=None,
        rounding=ROUNDING,
    ):
        if pvalue is None:
            pvalue = p_values(score, permutation_scores, greater=greater_is_better, rounding=rounding)
        self = super().__new__(cls, score, permutation_scores, pvalue)
        self.scoring, self.greater_is_better, self.path = scoring, greater_is_better, path
        self.n_permutations, self.best_params, self.strata = len(permutation_scores), best_params, strata
        if np.ndim(score):
            best, extreme = (np.max, np.inf) if greater_is_better else (np.min, -np.inf)
            known = ~np.isnan(np.ravel(score))  # members without a score (an interrupted family) are no members
            flat = np.reshape(permutation_scores, (len(permutation_scores), -1))[:, known]
            self.max_scores = best(np.where(np.isnan(flat), extreme, flat), axis=1, initial=-extreme)
            null = self.max_scores.reshape(-1, *[1] * np.ndim(score))
            self.pvalue_fwe = p_values(score, null, greater=greater_is_better, rounding=rounding)
        return self

    def __repr__(self):
        how = f"{self.n_permutations} permutations; {self.path}"
        if not np.ndim(self.score):
            return f"{self.scoring} {self.score:.4f}, p = {self.pvalue:.4g} ({how})"
        if np.isnan(self.score).all():
            return f"{self.scoring} of {np.size(self.score)} members, none of them defined ({how})"
        pick = np.nanargmax if self.greater_is_better else np.nanargmin
        best = np.unravel_index(pick(self.score), np.shape(self.score))
        place = best[0] if len(best) == 1 else tuple(map(int, best))
        return (
            f"{self.scoring} of {np.size(self.score)} members, best {self.score[best]:.4f} at {place}, family-wise"
            f" p = {self.pvalue_fwe[best]:.4g} ({how})"
        )
