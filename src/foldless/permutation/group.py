"""Groups: the same family tested in several subjects, with permutations of each by itself.

Subject s has a pool of 1 + m_s labelings, the true one and its permutations. A draw takes one labeling out of each
pool, at random and with replacement (Stelzer, Chen & Turner 2013). Without an effect the true labels of all subjects
are such a draw themselves, so p = (1 + b) / (1 + draws) is exact for any number of draws, also for more than any
subject has permutations.

    combine           mean of the drawn scores over subjects; null hypothesis: no subject has an effect
    sign_flip_test    mean of d_s = score - mean of the null, with random signs; null hypothesis: d_s symmetric about 0
"""

import warnings
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from sklearn.utils import check_random_state

from foldless.linalg.memory import require_memory
from foldless.linalg.types import RandomStateLike
from foldless.permutation.nulls import PermutationTestResult

FEW_SIGNS = 0.05  # smallest possible p-value of random signs above which they are said to be few


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
        different numbers of rows and permutations. Give each a ``random_state`` of its own in
        :func:`permutation_test_score`: permutations should be drawn independently for each.
    n_permutations : int, default=None
        Number of draws of a labeling for each subject; by default the largest number of permutations of a subject.
    random_state : int, RandomState instance or None, default=0

    Returns
    -------
    PermutationTestResult
        ``score`` is the mean over subjects, with its null, p-values, and those corrected by the maximum over the
        family. ``cluster_test`` and ``step_down`` take it.

    Notes
    -----
    A small p-value says that some subject has an effect, not that most have: see ``prevalence_test``.

    Examples
    --------
    >>> import numpy as np
    >>> from foldless import LSSVC
    >>> from foldless.model_selection import combine, permutation_test_score
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
    results, pools = check_subjects(results)
    if n_permutations is None:
        n_permutations = max(map(len, pools)) - 1
    means = drawn(pools, n_permutations, random_state, np.add) / len(pools)
    return _like(results[0], means, results[0].scoring, f"mean over {len(pools)} subjects")


def sign_flip_test(
    results: Sequence[PermutationTestResult],
    *,
    n_permutations: int = 10_000,
    random_state: RandomStateLike = 0,
) -> PermutationTestResult:
    """Test the mean difference of score and chance over subjects, by random signs of the differences.

    Chance is the mean of each subject's own null.

    Parameters
    ----------
    results : sequence of PermutationTestResult, one for each subject, as for :func:`combine`
    n_permutations : int, default=10000
        Number of random signs. All 2^subjects are taken, and p-values are exact, where they are no more than that.
    random_state : int, RandomState instance or None, default=0

    Returns
    -------
    PermutationTestResult
        ``score`` is the mean difference, signs of all subjects being the same for all members of a family.
        ``cluster_test`` and ``step_down`` take it.

    Notes
    -----
    The smallest possible p-value is 1 / 2^subjects. Scores of a subject without an effect scatter about chance in both
    directions, those of one with an effect lie above: no subject's true score is below chance, so that the mean of a
    population is at chance only if all its subjects are (Allefeld, Goergen & Haynes 2016).

    Examples
    --------
    >>> import numpy as np
    >>> from foldless.model_selection import PermutationTestResult, sign_flip_test
    >>> null = np.random.default_rng(0).normal(0.5, 0.02, size=(8, 100, 2))
    >>> scores = 0.5 + 0.01 * np.array([[3, 4, 1, 5, 2, 3, 4, 2], [1, -2, 0, 3, -1, 1, -4, 2]])
    >>> results = [PermutationTestResult(*each) for each in zip(scores.T, null)]
    >>> sign_flip_test(results).pvalue.round(3)
    array([0.004, 0.504])
    """
    results, pools = check_subjects(results)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of members without any score
        differences = np.array([pool[0] - np.nanmean(pool[1:], axis=0) for pool in pools])
    count = len(pools)
    if 2**count - 1 <= n_permutations:
        signs, how = 1.0 - 2.0 * (np.arange(2**count)[:, None] >> np.arange(count) & 1), "all signs"
    else:
        signs = check_random_state(random_state).choice([1.0, -1.0], (1 + n_permutations, count))
        signs[0], how = 1.0, "random signs"
    if 2.0**-count > FEW_SIGNS:
        warnings.warn(
            f"results of {count} subjects have 2^{count} signs, and no p-value is below {2.0**-count:.3g}: it takes"
            " five subjects to reach 0.05. combine, which draws permutations of each subject, has no such limit.",
            UserWarning,
            stacklevel=2,
        )
    means = np.tensordot(signs, differences, 1) / count
    scoring = f"{results[0].scoring or 'score'} minus chance"
    return _like(results[0], means, scoring, f"{how} of {count} subjects")


def check_subjects(results):
    """(results, scores (1 + m, ...) of all labelings of each subject, the true ones first)."""
    single = hasattr(results, "permutation_scores") or isinstance(results, dict)
    results = [] if single else list(results)
    if single or not all(hasattr(each, "permutation_scores") for each in results):
        raise ValueError("results must be a list with what permutation_test_score returned for each subject.")
    if len(results) < 2:
        raise ValueError(f"results has {len(results)} subjects; give one result of permutation_test_score for each.")
    for name, values in {
        "shapes of score": [np.shape(each.score) for each in results],
        "scoring": [each.scoring for each in results],
        "greater_is_better": [each.greater_is_better for each in results],
        "generalised": [getattr(each, "generalised", False) for each in results],
    }.items():
        if len(set(values)) > 1:
            raise ValueError(f"results differ in {name}: {sorted(set(values))}; test all subjects in the same way.")
    pools = [np.concatenate([np.asarray(each.score, float)[None], each.permutation_scores]) for each in results]
    if min(map(len, pools)) < 2:
        raise ValueError("results has a subject without permutations; draw some with n_permutations=1000, say.")
    for (one, pool), (other, same) in combinations(enumerate(pools), 2):
        if np.array_equal(pool, same, equal_nan=True) and np.ptp(pool):
            message = f"results[{one}] and results[{other}] have equal scores throughout: is it one subject twice?"
            warnings.warn(message, UserWarning, stacklevel=3)
    return results, pools


def drawn(pools, n_draws, random_state, join):
    """Scores (1 + draws, ...) of the true labels and of random labelings of all subjects, joined over subjects."""
    random_state = check_random_state(random_state)
    require_memory((1 + n_draws, *pools[0].shape[1:]), np.float64, "the scores of all draws")
    result = None
    for pool in pools:
        labelings = np.append(0, random_state.randint(len(pool), size=n_draws))
        result = pool[labelings] if result is None else join(result, pool[labelings], out=result)
    return result


def _like(result, scores, scoring, path):
    """A result of the same kind, of scores (1 + m, ...) with the true ones first."""
    known = {name: getattr(result, name) for name in ("greater_is_better", "generalised")}
    known |= {"scoring": scoring, "path": path}
    return PermutationTestResult(scores[0], scores[1:], **known)
