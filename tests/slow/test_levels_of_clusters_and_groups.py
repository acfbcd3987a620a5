"""Levels under the null: clusters, TFCE, step-down and groups find nothing more often than they say."""

import numpy as np
import pytest
from scipy import stats
from sklearn.model_selection import KFold

from foldless import LSSVC
from foldless.model_selection import PermutationTestResult, permutation_test_score
from foldless.stats import cluster_test, combine, prevalence_test, sign_flip_test, step_down

M, ALARM = 99, 1e-4  # permutations, and the share of false alarms of these tests
LEVELS = np.array([0.01, 0.05, 0.1])


def noise(rng, times=6, effect=0.0):
    """Trials x features x times, neighbouring times alike; an effect at the first two times."""
    data = rng.normal(size=(24, 2, times + 2))
    data = data[:, :, :-2] + data[:, :, 1:-1] + data[:, :, 2:]
    y = rng.permutation(np.arange(24) % 2)
    data[:, 0, :2] += effect * y[:, None]
    return data, y


def course(data, y, number):
    options = {"cv": KFold(2), "scoring": "roc_auc", "n_permutations": M, "random_state": number}
    return permutation_test_score(LSSVC("linear"), data, y, **options)


def lot(truth, null, rng):
    """Where the true value lies among all, ties broken by lot: uniform if it is one among equals."""
    above, ties = np.sum(null > truth + 1e-10), np.sum(np.abs(null - truth) <= 1e-10)
    return (above + rng.uniform() * (ties + 1)) / (len(null) + 1)


def assert_uniform(values):
    assert stats.kstest(values, "uniform").pvalue > ALARM


def assert_no_more_than_nominal(p):
    """Shares of p-values at or below the levels, up to three standard errors."""
    shares = np.array([np.mean(np.asarray(p) <= level) for level in LEVELS])
    assert (shares <= LEVELS + 3 * np.sqrt(LEVELS * (1 - LEVELS) / len(p))).all(), shares


def test_the_largest_cluster_and_tfce_of_noise_have_any_rank():
    rng, ranks, p = np.random.default_rng(0), [], []
    for number in range(200):
        result = course(*noise(rng), number)
        found = [cluster_test(result), cluster_test(result, threshold=1.0, unit="z")]
        found.append(cluster_test(result, statistic="tfce"))
        ranks.append([lot(each.statistics.max(), each.max_statistics, rng) for each in found])
        p.append([each.pvalue_fwe.min() for each in found])
    for column, smallest in zip(np.transpose(ranks), np.transpose(p), strict=True):
        assert_uniform(column)
        assert_no_more_than_nominal(smallest)


def test_step_down_finds_few_members_without_an_effect():
    rng, p = np.random.default_rng(1), []
    for number in range(200):
        data, y = noise(rng, effect=3.0)
        result = course(data, y, number)
        p.append([step_down(result, unit=unit)[2:].min() for unit in ("p", "z", "score")])
    for smallest in np.transpose(p):
        assert_no_more_than_nominal(smallest)


@pytest.mark.filterwarnings("ignore:results of 4 subjects")
def test_groups_of_noise_have_any_rank_and_few_findings():
    rng, ranks, p = np.random.default_rng(2), [], []
    for number in range(100):
        results = [course(*noise(rng, times=4), 4 * number + subject) for subject in range(4)]
        mean = combine(results, n_permutations=300, random_state=number)
        signs = sign_flip_test(results)
        share = prevalence_test(results, n_permutations=300, random_state=number)
        ranks.append(lot(mean.score.max(), mean.max_scores, rng))
        p.append([mean.pvalue_fwe.min(), signs.pvalue_fwe.min(), share.pvalue_global_fwe.min()])
        p[-1].append(cluster_test(mean).pvalue_fwe.min())
    assert_uniform(ranks)
    for smallest in np.transpose(p):
        assert_no_more_than_nominal(smallest)


@pytest.mark.parametrize("shared", [False, True])
def test_bounds_of_prevalence_are_rarely_above_it(shared):
    """Half of the population has an effect, in all members or in the first."""
    rng, bounds = np.random.default_rng(3), []
    for number in range(400):
        results = []
        for _ in range(6):
            scores = rng.normal(size=(M + 1, 3))
            scores[0, : 3 if shared else 1] += 6 * (rng.uniform() < 0.5)
            results.append(PermutationTestResult(scores[0], scores[1:]))
        found = prevalence_test(results, n_permutations=500, random_state=number)
        bounds.append([found.prevalence[0], found.prevalence_fwe.max()])
    for bound in np.transpose(bounds):
        assert np.mean(bound > 0.5) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / len(bound))
