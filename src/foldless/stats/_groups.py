"""Group statistics: the same family is tested in several subjects, with separate permutations for each.

Subject s has a pool of 1 + m_s labelings: the true one and its permutations. A draw takes one labeling from each pool,
at random and with replacement (Stelzer, Chen & Turner 2013). If there is no effect, the true labels of all subjects
are such a draw themselves, so p = (1 + b) / (1 + draws) is exact for any number of draws, even for more draws than any
subject has permutations.

    combine           mean of the drawn scores over subjects; null hypothesis: no subject has an effect
    sign_flip_test    mean of d_s = score - mean of the null, with random signs; null hypothesis: d_s symmetric about 0
    prevalence_test   minimum of the drawn scores over N subjects (Allefeld, Goergen & Haynes 2016)

For the prevalence, p_0 is the p-value of the minimum under the null hypothesis that no subject has an effect, and p_F
the p-value of the same by the maximum over a family. Under the null hypothesis that at most a share gamma of the
population has an effect:

    p(gamma)   = ((1 - gamma) p_0^(1/N) + gamma)^N            eq. 19
    p_F(gamma) = p_F + (1 - p_F) p(gamma)                     eq. 21, corrected for the family

The largest gamma that is rejected at a level is a lower bound of the prevalence:

    (level^(1/N) - p_0^(1/N)) / (1 - p_0^(1/N))               eq. 20; corrected: with (level - p_F) / (1 - p_F), eq. 23
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from foldless._engine.linalg.dispatch import require_memory
from foldless._engine.linalg.types import RandomStateLike
from foldless._engine.permutation.nulls import PermutationTestResult, members_of
from foldless.results import Result, lanes, points

LARGEST_MIN_PVALUE = 0.05  # sign flips warn if even the smallest possible p-value is above


def combine(
    results: Sequence[PermutationTestResult],
    *,
    n_permutations: int | None = None,
    random_state: RandomStateLike = 0,
) -> PermutationTestResult:
    """Test the mean score of several subjects, from the permutations of each.

    Parameters
    ----------
    results : sequence of PermutationTestResult
        One for each subject, of the same score and, if they are families, of the same shape. Subjects may have
        different numbers of rows and permutations. Use a different ``random_state`` for each subject in
        :func:`~foldless.model_selection.permutation_test_score`: permutations should be drawn independently.
    n_permutations : int, default=None
        Number of draws of a labeling for each subject; by default the largest number of permutations of a subject.
    random_state : int, RandomState instance or None, default=0

    Returns
    -------
    PermutationTestResult
        ``score`` is the mean over subjects, with its null, p-values, and p-values corrected by the maximum over the
        family. It can be passed to ``cluster_test`` and ``step_down``.

    Notes
    -----
    A small p-value says that some subject has an effect, not that most have: see ``prevalence_test``.

    Examples
    --------
    >>> import numpy as np
    >>> from foldless import LSSVC
    >>> from foldless.model_selection import permutation_test_score
    >>> from foldless.stats import combine
    >>> rng, y = np.random.default_rng(0), np.arange(40) % 2
    >>> subjects = [rng.normal(size=(40, 5, 6)) for _ in range(4)]
    >>> for epochs in subjects:
    ...     epochs[:, 0, 3:] += 0.9 * y[:, None]
    >>> results = [
    ...     permutation_test_score(LSSVC("linear"), epochs, y, random_state=number)
    ...     for number, epochs in enumerate(subjects)
    ... ]
    >>> combine(results, n_permutations=1000).pvalue_fwe <= 0.05
    array([False, False, False,  True,  True,  True])
    """
    results, pools = _check_subjects(results)
    if n_permutations is None:
        n_permutations = max(map(len, pools)) - 1
    means = _draw_scores(pools, n_permutations, random_state, np.add) / len(pools)
    return _group_result(results[0], means, results[0].scoring, f"mean over {len(pools)} subjects")


def sign_flip_test(
    results: Sequence[PermutationTestResult],
    *,
    n_permutations: int = 10_000,
    random_state: RandomStateLike = 0,
) -> PermutationTestResult:
    """Test the mean difference of score and chance over subjects, by random signs of the differences.

    Chance is the mean of each subject's null.

    Parameters
    ----------
    results : sequence of PermutationTestResult, one for each subject, as for :func:`combine`
    n_permutations : int, default=10000
        Number of random signs. If there are no more than that, all 2^subjects signs are used and p-values are exact.
    random_state : int, RandomState instance or None, default=0

    Returns
    -------
    PermutationTestResult
        ``score`` is the mean difference. The sign of a subject is the same for all members of a family. The result can
        be passed to ``cluster_test`` and ``step_down``.

    Notes
    -----
    The smallest possible p-value is 1 / 2^subjects. Scores of a subject without an effect scatter about chance in both
    directions, and scores of a subject with an effect lie above it. No subject's true score is below chance, so the
    mean of a population is at chance only if all its subjects are (Allefeld, Goergen & Haynes 2016).

    Examples
    --------
    >>> import numpy as np
    >>> from foldless.model_selection import PermutationTestResult
    >>> from foldless.stats import sign_flip_test
    >>> nulls = np.random.default_rng(0).normal(0.5, 0.02, size=(8, 100, 2))
    >>> scores = 0.5 + 0.01 * np.array([[3, 4, 1, 5, 2, 3, 4, 2], [1, -2, 0, 3, -1, 1, -4, 2]])
    >>> results = [PermutationTestResult(score, null) for score, null in zip(scores.T, nulls)]
    >>> sign_flip_test(results).pvalue.round(3)
    array([0.004, 0.504])
    """
    results, pools = _check_subjects(results)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # members without any score
        differences = np.array([pool[0] - np.nanmean(pool[1:], axis=0) for pool in pools])
    n_subjects = len(pools)
    if 2**n_subjects - 1 <= n_permutations:
        signs = 1.0 - 2.0 * (np.arange(2**n_subjects)[:, None] >> np.arange(n_subjects) & 1)
        method = "all signs"
    else:
        signs = check_random_state(random_state).choice([1.0, -1.0], (1 + n_permutations, n_subjects))
        signs[0] = 1.0
        method = "random signs"
    if 2.0**-n_subjects > LARGEST_MIN_PVALUE:
        warnings.warn(
            f"results of {n_subjects} subjects have 2^{n_subjects} signs, and no p-value is below"
            f" {2.0**-n_subjects:.3g}: it takes five subjects to reach 0.05. combine, which draws permutations of each"
            " subject, has no such limit.",
            UserWarning,
            stacklevel=2,
        )
    means = np.tensordot(signs, differences, 1) / n_subjects
    scoring = f"{results[0].scoring or 'score'} minus chance"
    return _group_result(results[0], means, scoring, f"{method} of {n_subjects} subjects")


@dataclass(repr=False)
class PrevalenceResult(Result):
    """Tests of how many subjects have an effect; numbers for one test, arrays of the shape of a family's scores.

    Attributes
    ----------
    minimum : the score of the worst subject
    pvalue_global, pvalue_global_fwe : p-values of the null hypothesis that no subject has an effect
    pvalue_majority, pvalue_majority_fwe : p-values of the null hypothesis that at most half of the population has one
    prevalence, prevalence_fwe : lower bounds of the share of the population that has an effect
        They hold with probability 1 - ``level``. A bound of 0 says nothing about the population.
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
        member = f" at member {best} of {np.size(self.minimum)}" if np.ndim(self.minimum) else ""
        return (
            f"prevalence above {bound:.2f}{member} at level {self.level:g}, p of at most half = {p:.4g}"
            f" ({self.n_subjects} subjects, {self.n_permutations} draws)"
        )

    def _columns(self):
        settings = ("level", "n_subjects", "n_permutations")
        columns = {name: np.ravel(value) for name, value in vars(self).items() if name not in settings}
        return members_of(self.minimum) | columns

    def _picture(self):
        bound, significant = np.ravel(self.prevalence_fwe), np.ravel(self.pvalue_majority_fwe) <= self.level
        if len(bound) == 1:
            return lanes([("prevalence", [], (bound[0], 1.0))], "prevalence above its lower bound")
        return points(np.arange(len(bound)), bound, significant, "prevalence; dark: more than half")


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
    results : sequence of PermutationTestResult, one for each subject, as for :func:`combine`
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
    >>> from foldless.model_selection import PermutationTestResult
    >>> from foldless.stats import prevalence_test
    >>> nulls = np.random.default_rng(0).normal(0.5, 0.05, size=(12, 200))
    >>> test = prevalence_test([PermutationTestResult(0.6, null) for null in nulls])
    >>> print(round(test.pvalue_majority, 3), round(test.prevalence, 2))
    0.024 0.59
    """
    results, pools = _check_subjects(results)
    if not 0 < level < 1:
        raise ValueError(f"level={level!r} must be between 0 and 1.")
    greater, n_subjects = results[0].greater_is_better, len(pools)
    worst = _draw_scores(pools, n_permutations, random_state, np.minimum if greater else np.maximum)
    test = PermutationTestResult(worst[0], worst[1:], greater_is_better=greater)
    p_family = 0.0 if test.pvalue_fwe is None else test.pvalue_fwe  # one test needs no correction
    p_majority = (0.5 * test.pvalue ** (1 / n_subjects) + 0.5) ** n_subjects
    return PrevalenceResult(
        minimum=test.score,
        pvalue_global=test.pvalue,
        pvalue_global_fwe=test.pvalue if test.pvalue_fwe is None else test.pvalue_fwe,
        pvalue_majority=p_majority,
        pvalue_majority_fwe=p_family + (1 - p_family) * p_majority,
        prevalence=_prevalence_bound(level, test.pvalue, 0.0, n_subjects),
        prevalence_fwe=_prevalence_bound(level, test.pvalue, p_family, n_subjects),
        level=level,
        n_subjects=n_subjects,
        n_permutations=n_permutations,
    )


def _prevalence_bound(level, p, p_family, n_subjects):
    """The largest gamma with p_F + (1 - p_F) p(gamma) <= level; 0 if there is none."""
    level_left = np.maximum(level - p_family, 0.0) / np.where(np.equal(p_family, 1), 1.0, 1.0 - p_family)
    root = p ** (1 / n_subjects)
    bound = (level_left ** (1 / n_subjects) - root) / np.where(root == 1, 1.0, 1.0 - root)
    return np.maximum(bound, 0.0)[()]


def _check_subjects(results):
    """Check the results of several subjects.

    Returns the results as a list, and scores (1 + m, ...) of all labelings of each subject, the true labels first.
    """
    single = hasattr(results, "permutation_scores") or isinstance(results, dict)
    results = [] if single else list(results)
    if single or not all(hasattr(result, "permutation_scores") for result in results):
        raise ValueError("results must be a list with what permutation_test_score returned for each subject.")
    if len(results) < 2:
        raise ValueError(f"results has {len(results)} subjects; give one result of permutation_test_score for each.")
    for name, values in {
        "shapes of score": [np.shape(result.score) for result in results],
        "scoring": [result.scoring for result in results],
        "greater_is_better": [result.greater_is_better for result in results],
        "generalised": [getattr(result, "generalised", False) for result in results],
    }.items():
        if len(set(values)) > 1:
            raise ValueError(f"results differ in {name}: {sorted(set(values))}; test all subjects in the same way.")
    pools = [np.concatenate([np.asarray(result.score, float)[None], result.permutation_scores]) for result in results]
    if min(map(len, pools)) < 2:
        raise ValueError("results has a subject without permutations; draw some with n_permutations=1000, say.")
    for (i, first), (j, second) in combinations(enumerate(pools), 2):
        if np.array_equal(first, second, equal_nan=True) and np.ptp(first):
            message = f"results[{i}] and results[{j}] have equal scores throughout: is it one subject twice?"
            warnings.warn(message, UserWarning, stacklevel=3)
    return results, pools


def _draw_scores(pools, n_draws, random_state, reduce):
    """Scores (1 + n_draws, ...) of the true labels and of draws, reduced over subjects by a ufunc."""
    random_state = check_random_state(random_state)
    require_memory((1 + n_draws, *pools[0].shape[1:]), np.float64, "the scores of all draws")
    scores = None
    for pool in pools:
        labelings = np.append(0, random_state.randint(len(pool), size=n_draws))
        scores = pool[labelings] if scores is None else reduce(scores, pool[labelings], out=scores)
    return scores


def _group_result(result, scores, scoring, path):
    """A result of the same kind as that of a subject, of scores (1 + m, ...) with the true labels first."""
    return PermutationTestResult(
        scores[0],
        scores[1:],
        scoring=scoring,
        greater_is_better=result.greater_is_better,
        generalised=result.generalised,
        path=path,
    )
