"""In how many subjects is there an effect? Prevalence by the minimum over subjects (Allefeld, Goergen & Haynes 2016).

The statistic is the score of the worst of N subjects. p_0 is its p-value if no subject has an effect, p_F the same by
the maximum over a family; labelings are drawn as in ``group``. For the null hypothesis that at most a share gamma of
the population has an effect:

    p(gamma)   = ((1 - gamma) p_0^(1/N) + gamma)^N            eq. 19
    p_F(gamma) = p_F + (1 - p_F) p(gamma)                     eq. 21, corrected for the family

The largest gamma that is rejected at a level is a lower bound of the prevalence:

    (level^(1/N) - p_0^(1/N)) / (1 - p_0^(1/N))               eq. 20; corrected: with (level - p_F) / (1 - p_F), eq. 23
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from foldless.linalg.types import RandomStateLike
from foldless.permutation.group import check_subjects, drawn
from foldless.permutation.nulls import PermutationTestResult, members_of
from foldless.results import Result, lanes, points


@dataclass(repr=False)
class PrevalenceResult(Result):
    """Tests of how many subjects have an effect; numbers for one test, arrays of the shape of a family's scores.

    Attributes
    ----------
    minimum : the score of the worst subject
    pvalue_global, pvalue_global_fwe : p-values of the null hypothesis that no subject has an effect
    pvalue_majority, pvalue_majority_fwe : the same of: at most half of the population has an effect
    prevalence, prevalence_fwe : lower bounds of the share of the population that has an effect
        They hold with probability 1 - ``level``; 0 where not even one subject can be claimed.
    level : float
    n_subjects, n_permutations : int

    ``_fwe`` are corrected for the number of members of a family (and the same as the others for one test).
    ``to_frame()`` has one row for each member.
    """

    minimum: Any
    pvalue_global: Any
    pvalue_global_fwe: Any
    pvalue_majority: Any
    pvalue_majority_fwe: Any
    prevalence: Any
    prevalence_fwe: Any
    level: float
    n_subjects: int
    n_permutations: int

    def __repr__(self):
        best = np.nanargmax(self.prevalence_fwe) if not np.isnan(self.prevalence_fwe).all() else 0
        bound, p = np.ravel(self.prevalence_fwe)[best], np.ravel(self.pvalue_majority_fwe)[best]
        where = f" at member {best} of {np.size(self.minimum)}" if np.ndim(self.minimum) else ""
        return (
            f"prevalence above {bound:.2f}{where} at level {self.level:g}, p of at most half = {p:.4g}"
            f" ({self.n_subjects} subjects, {self.n_permutations} draws)"
        )

    def _columns(self):
        found = {
            name: value for name, value in vars(self).items() if name not in ("level", "n_subjects", "n_permutations")
        }
        return members_of(self.minimum) | {name: np.ravel(value) for name, value in found.items()}

    def _picture(self):
        bound, strong = np.ravel(self.prevalence_fwe), np.ravel(self.pvalue_majority_fwe) <= self.level
        if len(bound) == 1:
            return lanes([("prevalence", [], (bound[0], 1.0))], "prevalence above its lower bound")
        return points(np.arange(len(bound)), bound, strong, "prevalence; dark: more than half")


def prevalence_test(
    results: Sequence[PermutationTestResult],
    *,
    level: float = 0.05,
    n_permutations: int = 10_000,
    random_state: RandomStateLike = 0,
) -> PrevalenceResult:
    """A lower bound of the share of the population that has an effect, by the worst subject's score.

    Parameters
    ----------
    results : sequence of PermutationTestResult, one for each subject, as for ``combine``
    level : float, default=0.05; of the lower bounds
    n_permutations : int, default=10000; number of draws of a labeling for each subject
        With N subjects the bound cannot exceed (level^(1/N) - r) / (1 - r), r = (1 + n_permutations)^(-1/N).
    random_state : int, RandomState instance or None, default=0

    Returns
    -------
    PrevalenceResult

    Examples
    --------
    >>> import numpy as np
    >>> from foldless.model_selection import PermutationTestResult, prevalence_test
    >>> null = np.random.default_rng(0).normal(0.5, 0.05, size=(12, 200))
    >>> found = prevalence_test([PermutationTestResult(0.6, each) for each in null])
    >>> print(round(found.pvalue_majority, 3), round(found.prevalence, 2))
    0.024 0.59
    """
    results, pools = check_subjects(results)
    if not 0 < level < 1:
        raise ValueError(f"level={level!r} must be between 0 and 1.")
    greater, count = results[0].greater_is_better, len(pools)
    worst = drawn(pools, n_permutations, random_state, np.minimum if greater else np.maximum)
    test = PermutationTestResult(worst[0], worst[1:], greater_is_better=greater)
    corrected = 0.0 if test.pvalue_fwe is None else test.pvalue_fwe  # one test needs no correction
    majority = (0.5 * test.pvalue ** (1 / count) + 0.5) ** count
    return PrevalenceResult(
        minimum=test.score,
        pvalue_global=test.pvalue,
        pvalue_global_fwe=test.pvalue if test.pvalue_fwe is None else test.pvalue_fwe,
        pvalue_majority=majority,
        pvalue_majority_fwe=corrected + (1 - corrected) * majority,
        prevalence=_bound(level, test.pvalue, 0.0, count),
        prevalence_fwe=_bound(level, test.pvalue, corrected, count),
        level=level,
        n_subjects=count,
        n_permutations=n_permutations,
    )


def _bound(level, p, corrected, count):
    """The largest gamma with corrected + (1 - corrected) p(gamma) <= level; 0 where there is none."""
    open_to = np.maximum(level - corrected, 0.0) / np.where(np.equal(corrected, 1), 1.0, 1.0 - corrected)
    root = p ** (1 / count)
    share = (open_to ** (1 / count) - root) / np.where(root == 1, 1.0, 1.0 - root)
    return np.maximum(share, 0.0)[()]
