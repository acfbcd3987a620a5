"""Cluster masses and TFCE beside a plain loop over labelings, members and heights."""

import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from foldless.model_selection import PermutationTestResult
from foldless.stats import _clusters, cluster_test

M = 29
RING = sparse.coo_array(np.eye(5, k=1) + np.eye(5, k=-4) + np.eye(5))  # one direction only, and itself
ANY = sparse.csr_array(np.random.default_rng(3).uniform(size=(18, 18)) < 0.1)

LAYOUTS = {
    "times": ((20,), {}),
    "pairs of times": ((5, 5), {}),
    "channels x times": ((20,), {"shape": (5, 4), "adjacency": (RING, None)}),
    "three axes": ((24,), {"shape": (2, 3, 4)}),
    "any neighbours": ((18,), {"adjacency": ANY}),
    "any neighbours, dense": ((18,), {"adjacency": ANY.toarray()}),
}


def family(shape, seed=0, effect=1.0):
    """A result whose members have nulls of different means and widths."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(M + 1, *shape)) * rng.uniform(0.5, 2.0, size=shape) + rng.normal(size=shape)
    scores[0] += effect * rng.uniform(size=shape)
    return PermutationTestResult(scores[0], scores[1:], scoring="score")


def adjacent(one, other, shape, adjacency):
    """Whether two members are neighbours: by definition."""
    if adjacency is not None and not isinstance(adjacency, tuple):
        dense = sparse.coo_array(adjacency).toarray()
        return bool(dense[one, other] or dense[other, one])
    places = np.transpose(np.unravel_index([one, other], shape))
    differ = np.flatnonzero(places[0] != places[1])
    if len(differ) != 1:
        return False
    matrix = None if adjacency is None else adjacency[differ[0]]
    i, j = places[:, differ[0]]
    return abs(i - j) == 1 if matrix is None else bool(matrix.toarray()[i, j] or matrix.toarray()[j, i])


def clusters_of(above, linked):
    """Sets of members that hang together, by visiting one after the other."""
    left, clusters = set(np.flatnonzero(above)), []
    while left:
        cluster, queue = set(), [min(left)]
        while queue:
            member = queue.pop()
            if member in left:
                left.remove(member)
                cluster.add(member)
                queue += np.flatnonzero(linked[member]).tolist()
        clusters.append(sorted(cluster))
    return clusters


def plain(result, statistic, threshold, unit, shape, adjacency):
    """Statistics (1 + m, members) of all labelings."""
    scores = np.concatenate([[result.score], result.permutation_scores]).reshape(M + 1, -1)
    k = scores.shape[1]
    linked = np.array([[adjacent(i, j, shape, adjacency) for j in range(k)] for i in range(k)])
    values = scores - scores.mean(0)
    step = 0.1 * values.std()
    if unit != "score":
        values, step = values / scores.std(0), 0.1
    statistics = np.zeros((M + 1, k))
    for j in range(M + 1):
        if statistic == "mass":
            p = np.array([np.mean(scores[:, i] >= scores[j, i]) for i in range(k)])
            for cluster in clusters_of(p <= threshold if unit == "p" else values[j] > threshold, linked):
                statistics[j, cluster] = values[j, cluster].sum()
        else:
            for h in step * np.arange(1, 1 + int(values.max() / step) + 1):
                for cluster in clusters_of(values[j] > h, linked):
                    statistics[j, cluster] += len(cluster) ** 0.5 * h**2 * step
    return statistics


CASES = [(name, "mass", unit) for name in LAYOUTS for unit in ("p", "z", "score")]
CASES += [(name, "tfce", "z") for name in ("times", "channels x times")] + [("any neighbours", "tfce", "score")]


@pytest.mark.parametrize(("name", "statistic", "unit"), CASES)
def test_statistics_and_p_values_equal_a_plain_loop(name, statistic, unit):
    shape, options = LAYOUTS[name]
    result = family(shape)
    threshold = {"p": 0.3, "z": 0.5, "score": 0.4}[unit]
    test = cluster_test(result, statistic=statistic, threshold=threshold, unit=unit, **options)
    places = options.get("shape", shape)
    expected = plain(result, statistic, threshold, unit, places, options.get("adjacency"))
    assert_allclose(test.statistics.ravel(), expected[0], atol=1e-10)
    assert_allclose(test.max_statistics, expected[1:].max(1), atol=1e-10)
    counts = 1 + (expected[1:].max(1)[:, None] >= expected[0] - 1e-9).sum(0)  # the true labels are counted
    assert_allclose(test.pvalue_fwe.ravel(), counts / (M + 1))
    assert test.pvalue_fwe.shape == result.score.shape


def test_clusters_are_listed_with_the_largest_first():
    result = family((30,), effect=2.0)
    test = cluster_test(result, threshold=0.3)
    above = result.pvalue <= 0.3
    assert_array_equal(np.sum(test.clusters, axis=0), above)  # each member above is in one of them
    runs = np.split(np.flatnonzero(above), np.flatnonzero(np.diff(np.flatnonzero(above)) > 1) + 1)
    assert sorted(np.flatnonzero(mask).tolist() for mask in test.clusters) == [run.tolist() for run in runs]
    assert len(test.clusters) > 2
    assert (np.diff(test.cluster_masses) <= 0).all()
    for mask, mass, pvalue in zip(test.clusters, test.cluster_masses, test.cluster_pvalues, strict=True):
        assert_allclose(test.values[mask].sum(), mass)
        assert_array_equal(test.statistics[mask], mass)
        assert_array_equal(test.pvalue_fwe[mask], pvalue)
    assert (test.pvalue_fwe[~above] == 1).all()


def test_a_loss_is_tested_for_being_small():
    result = family((20,))
    loss = PermutationTestResult(-result.score, -result.permutation_scores, greater_is_better=False)
    for statistic in ("mass", "tfce"):
        one, other = (cluster_test(tested, statistic=statistic, threshold=0.2) for tested in (result, loss))
        assert_allclose(one.pvalue_fwe, other.pvalue_fwe)
        assert_allclose(one.statistics, other.statistics)


@pytest.mark.parametrize("statistic", ["mass", "tfce"])
def test_a_permutation_with_an_undefined_score_counts_as_the_best(statistic):
    result = family((12,), effect=4.0)
    null = result.permutation_scores.copy()
    null[3, 5] = np.nan
    test = cluster_test(PermutationTestResult(result.score, null), statistic=statistic, threshold=0.2)
    assert np.isinf(test.max_statistics[3])
    assert np.isfinite(np.delete(test.max_statistics, 3)).all()
    assert test.pvalue_fwe.min() == 2 / (M + 1)


@pytest.mark.parametrize("statistic", ["mass", "tfce"])
def test_members_that_were_not_reached_are_no_members(statistic):
    result = family((12,))
    scores = np.concatenate([[result.score], result.permutation_scores])
    scores[:, 8:] = np.nan
    test = cluster_test(PermutationTestResult(scores[0], scores[1:]), statistic=statistic, threshold=0.2)
    part = PermutationTestResult(result.score[:8], result.permutation_scores[:, :8])
    expected = cluster_test(part, statistic=statistic, threshold=0.2)
    assert_array_equal(test.pvalue_fwe[:8], expected.pvalue_fwe)
    assert np.isnan(test.pvalue_fwe[8:]).all()
    assert np.isnan(test.statistics[8:]).all()


def test_a_member_whose_scores_are_all_equal_is_at_chance():
    result = family((6,))
    scores = np.concatenate([[result.score], result.permutation_scores])
    scores[:, 2] = 0.5
    scores[0, 2] = np.nextafter(0.5, 1)  # larger by rounding, which must not make it a finding
    test = cluster_test(PermutationTestResult(scores[0], scores[1:]))
    assert test.values[2] == 0
    assert test.pvalue_fwe[2] == 1


def test_no_member_above_the_threshold_gives_no_cluster():
    result = family((10,))
    test = cluster_test(result, threshold=100.0, unit="z")
    assert len(test.clusters) == len(test.cluster_masses) == len(test.cluster_pvalues) == 0
    assert (test.pvalue_fwe == 1).all()
    assert repr(test).startswith(
        "cluster masses of score: 0 of 0 clusters, 0 of 10 members with p <= 0.05, smallest p = 1"
    )


@pytest.mark.parametrize("statistic", ["mass", "tfce"])
def test_the_size_of_batches_changes_nothing(statistic, monkeypatch):
    expected = cluster_test(family((5, 5)), statistic=statistic)
    monkeypatch.setattr(_clusters, "MAX_GRAPH_SIZE", 200)
    test = cluster_test(family((5, 5)), statistic=statistic)
    assert_array_equal(test.max_statistics, expected.max_statistics)
    assert_array_equal(test.statistics, expected.statistics)


def test_a_result_unpacks_and_survives_pickling():
    result = family((10,), effect=5.0)
    test = pickle.loads(pickle.dumps(cluster_test(result, statistic="tfce")))
    score, null, pvalue = test
    assert_array_equal(score, result.score)
    assert_array_equal(null, result.permutation_scores)
    assert_array_equal(pvalue, result.pvalue)
    assert test.pvalue_fwe.min() == 1 / (M + 1)
    assert repr(test).startswith("TFCE of score: 1 of 10 members")


def single():
    return PermutationTestResult(0.7, np.full(9, 0.5))


def without_null():
    return SimpleNamespace(score=np.zeros(3), permutation_scores=np.zeros((0, 3)), greater_is_better=True)


@pytest.mark.parametrize(
    ("result", "options", "message"),
    [
        (single(), {}, "one test; give that of a family"),
        (without_null(), {}, "no permutations"),
        (family((6,)), {"statistic": "size"}, "statistic='size' is unknown"),
        (family((6,)), {"unit": "t"}, "unit='t' is unknown; use one of 'p', 'z', 'score'"),
        (family((6,)), {"threshold": 2.0}, "threshold=2.0 must be between 0 and 1, a p-value; or set unit='z'"),
        (family((6,)), {"threshold": "high", "unit": "z"}, "threshold='high' must be a number, in the unit 'z'"),
        (family((6,)), {"threshold": None}, "threshold=None must be a number"),
        (family((6,)), {"shape": "times"}, "shape='times' must be a tuple of lengths"),
        (family((6,)), {"shape": (2.0, 3.0)}, r"shape=\(2.0, 3.0\) must be a tuple of lengths"),
        (family((6,)), {"shape": 5}, r"shape=\(5,\) has 5 places"),
        (family((6,)), {"adjacency": "grid"}, "adjacency holds a str that is no matrix of numbers"),
        (family((6,)), {"adjacency": [[1, 0], [0]]}, "adjacency holds a list that is no matrix of numbers"),
        (family((6,)), {"shape": (2, 4)}, r"shape=\(2, 4\) has 8 places, and there are 6 members"),
        (family((6,)), {"adjacency": np.eye(3)}, r"matrix of shape \(3, 3\) for 6 members"),
        (family((6,)), {"shape": (2, 3), "adjacency": (None,)}, "adjacency has 1 entries; give one for each axis"),
    ],
)
def test_errors_say_what_to_do(result, options, message):
    with pytest.raises(ValueError, match=message):
        cluster_test(result, **options)
