"""Several subjects: means, signs and prevalence beside their formulas, one draw after the other."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from foldless.model_selection import PermutationTestResult
from foldless.stats import cluster_test, combine, prevalence_test, sign_flip_test, step_down

SUBJECTS = 5


def subjects(count=SUBJECTS, shape=(4,), effect=1.0, seed=0, greater=True):
    """Results with different numbers of permutations; the first members have an effect."""
    rng = np.random.default_rng(seed)
    results = []
    for number in range(count):
        scores = rng.normal(number, 1.0, size=(20 + number, *shape))
        scores[0] += effect * (np.arange(int(np.prod(shape))).reshape(shape) < 2)
        scores = scores if greater else -scores
        results.append(PermutationTestResult(scores[0], scores[1:], scoring="score", greater_is_better=greater))
    return results


def draws(results, count, join):
    """Joined scores of the true labels, then of random labelings, the true one among them."""
    rng = np.random.RandomState(0)
    pools = [np.concatenate([np.asarray(result.score)[None], result.permutation_scores]) for result in results]
    chosen = np.array([rng.randint(len(pool), size=count) for pool in pools])
    first = join([pool[0] for pool in pools])
    return np.array([first, *[join([pool[i] for pool, i in zip(pools, row, strict=True)]) for row in chosen.T]])


def mean(scores):
    return np.mean(scores, axis=0)


@pytest.mark.parametrize("shape", [(), (4,), (3, 3)])
def test_the_null_of_a_group_is_that_of_means_of_drawn_labelings(shape):
    results = subjects(shape=shape)
    test = combine(results, n_permutations=200)
    expected = draws(results, 200, mean)
    assert_allclose(test.score, expected[0])
    assert_allclose(test.permutation_scores, expected[1:])
    assert_allclose(test.pvalue, (expected >= expected[0] - 1e-9).mean(0))
    assert test.path == "mean over 5 subjects"
    assert repr(test).startswith("score ")


def test_a_group_has_as_many_draws_as_the_largest_subject_by_default():
    assert combine(subjects()).n_permutations == 23


def test_a_group_is_again_a_family_for_clusters_and_step_down():
    test = combine(subjects(effect=3.0), n_permutations=500)
    assert_array_equal(cluster_test(test).clusters[0], [True, True, False, False])
    assert_array_equal(step_down(test) <= 0.05, [True, True, False, False])


@pytest.mark.parametrize("greater", [True, False])
def test_all_signs_are_taken_where_they_are_few(greater):
    results = subjects(greater=greater)
    test = sign_flip_test(results)
    d = np.array([result.score - result.permutation_scores.mean(0) for result in results])
    means = np.array([mean(np.array(signs)[:, None] * d) for signs in product([1, -1], repeat=SUBJECTS)])
    sign = 1 if greater else -1
    assert test.n_permutations == 2**SUBJECTS - 1
    assert_allclose(test.score, means[0])
    assert_allclose(test.pvalue, (sign * means >= sign * means[0] - 1e-12).mean(0))
    assert_allclose(np.sort(test.permutation_scores, axis=0), np.sort(means[1:], axis=0))
    assert test.scoring == "score minus chance"
    assert test.path == "all signs of 5 subjects"


def test_signs_are_drawn_where_they_are_many():
    results = subjects(12)
    test = sign_flip_test(results, n_permutations=50)
    d = np.array([result.score - result.permutation_scores.mean(0) for result in results])
    assert test.n_permutations == 50
    assert_allclose(test.score, d.mean(0))
    assert test.path == "random signs of 12 subjects"
    possible = np.array(list(product([1.0, -1.0], repeat=12))) @ d / 12
    for row in test.permutation_scores:  # one sign a subject, for all members
        assert np.abs(possible - row).max(1).min() < 1e-12


def test_signs_leave_members_without_a_score_alone():
    results = subjects()
    results[1].score[3] = results[1].permutation_scores[:, 3] = np.nan
    test = sign_flip_test(results)
    assert_array_equal(np.isnan(test.pvalue), [False, False, False, True])


@pytest.mark.parametrize("greater", [True, False])
def test_prevalence_equals_its_formulas_in_a_loop(greater):
    results, level, count = subjects(effect=3.0, greater=greater), 0.05, 400
    test = prevalence_test(results, level=level, n_permutations=count)
    worst = draws(results, count, lambda scores: (np.min if greater else np.max)(scores, axis=0))
    worst = worst if greater else -worst
    for k in range(4):
        p = sum(row[k] >= worst[0, k] for row in worst) / (count + 1)
        p_fwe = sum(row.max() >= worst[0, k] for row in worst) / (count + 1)
        majority = (0.5 * p ** (1 / SUBJECTS) + 0.5) ** SUBJECTS
        corrected_level = (level - p_fwe) / (1 - p_fwe)
        assert_allclose(test.pvalue_global[k], p)
        assert_allclose(test.pvalue_global_fwe[k], p_fwe)
        assert_allclose(test.pvalue_majority[k], majority)
        assert_allclose(test.pvalue_majority_fwe[k], p_fwe + (1 - p_fwe) * majority)
        for bound, at in ((test.prevalence[k], level), (test.prevalence_fwe[k], corrected_level)):
            gammas = np.linspace(0, 1, 10001)  # the largest share that is rejected, by trying them
            rejected = ((1 - gammas) * p ** (1 / SUBJECTS) + gammas) ** SUBJECTS <= at
            assert abs(bound - gammas[rejected].max(initial=0)) < 2e-4
    assert_array_equal(test.minimum, worst[0] if greater else -worst[0])
    assert test.prevalence_fwe[:2].min() > 0
    assert (test.prevalence_fwe <= test.prevalence).all()
    assert_array_equal(test.prevalence_fwe[2:], 0)


def test_prevalence_of_one_test_needs_no_correction():
    test = prevalence_test(subjects(shape=(), effect=3.0))
    assert test.pvalue_majority_fwe == test.pvalue_majority
    assert test.prevalence_fwe == test.prevalence > 0
    assert repr(test).startswith(f"prevalence above {test.prevalence:.2f} at level 0.05, p of at most half = ")


def test_prevalence_of_a_family_is_told_at_its_best_member():
    test = prevalence_test(subjects(effect=3.0))
    assert f" at member {test.prevalence_fwe.argmax()} of 4 at level 0.05" in repr(test)


def test_a_bound_is_zero_where_the_worst_subject_is_the_worst_of_all():
    null = np.arange(1.0, 20.0)
    test = prevalence_test([PermutationTestResult(0.0, null), PermutationTestResult(0.0, null + 0.5)])
    assert test.pvalue_global == 1
    assert test.prevalence == 0


def test_one_subject_twice_is_warned_of():
    results = subjects()
    with pytest.warns(UserWarning, match=r"results\[1\] and results\[5\] have equal scores throughout"):
        combine([*results, results[1]])


ODD = PermutationTestResult(np.zeros(3), np.zeros((9, 3)), scoring="score")
OTHER = PermutationTestResult(np.zeros(4), np.zeros((9, 4)), scoring="accuracy")
LOSS = PermutationTestResult(np.zeros(4), np.zeros((9, 4)), scoring="score", greater_is_better=False)
EMPTY = SimpleNamespace(score=np.zeros(4), permutation_scores=np.zeros((0, 4)), scoring="score", greater_is_better=True)


@pytest.mark.parametrize("function", [combine, sign_flip_test, prevalence_test])
@pytest.mark.parametrize(
    ("results", "message"),
    [
        (subjects(1), "results has 1 subjects"),
        ([*subjects(), ODD], r"results differ in shapes of score: \[\(3,\), \(4,\)\]"),
        ([*subjects(), OTHER], "results differ in scoring"),
        ([*subjects(), LOSS], "results differ in greater_is_better"),
        ([*subjects(), EMPTY], "a subject without permutations"),
    ],
)
def test_errors_say_what_to_do(function, results, message):
    with pytest.raises(ValueError, match=message):
        function(results)


def test_random_signs_of_few_subjects_say_the_smallest_p_value():
    with pytest.warns(UserWarning, match=r"results of 4 subjects have 2\^4 signs, and no p-value is below 0.0625"):
        test = sign_flip_test(subjects(4))
    assert test.pvalue.min() >= 1 / 16


def test_a_group_of_generalisations_is_one():
    results = subjects(6, (3, 3))
    pairs = [PermutationTestResult(*result[:2], scoring="score", generalised=True) for result in results]
    for function in (combine, sign_flip_test):
        test, plain = function(pairs), function(results)
        alone = np.diagonal(plain.pvalue_fwe)
        assert_array_equal(test.pvalue_fwe, np.maximum(plain.pvalue_fwe, np.maximum(alone[:, None], alone)))
    assert cluster_test(test).generalised
    with pytest.raises(ValueError, match="results differ in generalised"):
        combine([*pairs, results[0]])


def test_a_level_beyond_one_is_refused():
    with pytest.raises(ValueError, match="level=5 must be between 0 and 1"):
        prevalence_test(subjects(), level=5)
