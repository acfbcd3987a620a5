"""p-values under the null are uniform, and wrong ones are not."""

import numpy as np
import pytest
from scipy import stats
from sklearn import model_selection as skl
from sklearn.base import clone
from sklearn.metrics.pairwise import linear_kernel

from foldless import LSSVC, LSSVR, FoldlessSearchCV, reference
from foldless.model_selection import permutation_test_pattern, permutation_test_score
from support.families import KFDA, random_labels

M, LEVEL = 99, 1e-4  # permutations, and the share of false alarms
HALVES = skl.KFold(2)


def uniform_p_value(result, rng):
    """Where the true score lies among all, ties broken by lot: uniform if labelings are exchangeable.

    Of a family, the best member among the best of all permutations.
    """
    score, null, reported = result
    if result.max_scores is not None:
        score, null, reported = score.max(), result.max_scores, result.pvalue_fwe.min()
    above, ties = np.sum(null > score + 1e-10), np.sum(np.abs(null - score) <= 1e-10)
    assert reported == (above + ties + 1) / (len(null) + 1)
    return (above + rng.uniform() * (ties + 1)) / (len(null) + 1)


def repeated(count, problem, seed=0):
    """p-values of so many problems, each drawn anew."""
    rng = np.random.default_rng(seed)
    return np.array([problem(rng, number) for number in range(count)])


def assert_uniform(values):
    assert stats.kstest(values, "uniform").pvalue > LEVEL


def assert_too_small(values):
    """Far from uniform: what an invalid procedure gives."""
    assert stats.kstest(values, "uniform", alternative="greater").pvalue < LEVEL / 100


def null_options(estimator, data, y, number, **options):
    options = {"cv": HALVES, "n_permutations": M, "random_state": number, **options}
    return permutation_test_score(estimator, data, y, **options)


NULLS = {
    "accuracy": (LSSVC("linear"), {"scoring": "accuracy"}),
    "AUC": (KFDA(gamma=0.2), {"scoring": "roc_auc"}),
    "correlation": (LSSVR(gamma=0.2), {"scoring": "correlation"}),
    "folds by class": (LSSVC("linear"), {"cv": 5}),
    "folds by class, the majority wins": (LSSVC("linear", alpha=1000.0), {"cv": 5}),
    "folds that go with the labels": (LSSVC("linear"), {"cv": skl.RepeatedStratifiedKFold(n_splits=5, n_repeats=2)}),
    "values": (LSSVR("linear"), {"cv": skl.KFold(10)}),
}


@pytest.mark.parametrize("case", NULLS)
def test_p_values_are_uniform_under_the_null(case):
    estimator, options = NULLS[case]
    assert_uniform(
        repeated(
            250,
            lambda rng, number: uniform_p_value(null_options(estimator, *random_labels(rng), number, **options), rng),
        )
    )


def test_p_values_of_a_whole_search_are_uniform_and_those_of_one_choice_are_not():
    """One feature of four is chosen. What the true labels chose suits them better than any permutation of them."""
    search = FoldlessSearchCV(LSSVC(), {"gamma": (0.5 * np.eye(4)).tolist()})
    options = {"scoring": "roc_auc"}

    def both(rng, number):
        data, y = random_labels(rng, 24, (4,))
        once = clone(search).fit(data, y).best_estimator_
        return [uniform_p_value(null_options(each, data, y, number, **options), rng) for each in (search, once)]

    whole, once = repeated(150, both).T
    assert_uniform(whole)
    assert_too_small(once)


def test_the_family_wise_p_value_is_uniform_and_the_smallest_of_all_is_not():
    def both(rng, number):
        data, y = random_labels(rng, shape=(2, 4))
        result = null_options(LSSVC("linear"), data, y, number, scoring="roc_auc")
        return uniform_p_value(result, rng), result.pvalue.min()

    corrected, smallest = repeated(150, both).T
    assert_uniform(corrected)
    assert_too_small(smallest)


@pytest.mark.filterwarnings("ignore:there are .* different labelings")
def test_labels_that_follow_a_confound_are_permuted_within_it():
    """Features and labels both follow z, and each other only through it."""

    def problem(rng, number):
        z = np.arange(30) % 2
        data = rng.normal(size=(30, 3)) + z[:, None]
        y = np.where(rng.uniform(size=30) < 0.8, z, 1 - z)
        cv = skl.KFold(3, shuffle=True, random_state=number)
        for options in ({"null": z, "confounds": z - 0.5}, {"null": z}, {}):
            yield uniform_p_value(null_options(LSSVC("linear"), data, y, number, cv=cv, **options), rng)

    both, strata, neither = repeated(200, lambda rng, number: list(problem(rng, number))).T
    assert_uniform(both)
    assert_uniform(strata)
    assert_too_small(neither)


def test_p_values_of_features_that_know_only_the_confound():
    """Two sites: labels lean on the site, features know it and nothing else.

    Within sites p-values are uniform. Free permutations lose the tie of labels and site, which costs nothing where
    scores do not see the site.
    """

    def problem(rng, number):
        site = np.arange(120) % 2
        y = (rng.uniform(size=120) < np.where(site, 0.75, 0.25)).astype(int)
        data = rng.normal(size=(120, 10)) + 2 * site[:, None]
        options = {"cv": skl.KFold(5, shuffle=True, random_state=number), "confounds": site}
        free = null_options(LSSVC("linear"), data, y, number, **options)
        within = null_options(LSSVC("linear"), data, y, number, null=site, **options)
        return free.pvalue, uniform_p_value(within, rng), free.score

    free, within, score = repeated(300, problem).T
    assert_uniform(within)
    assert np.mean(free <= 0.05) <= 0.07
    chance = np.sqrt(0.25 / 120)
    assert abs(score.mean() - 0.5) < 0.3 * chance
    assert score.std() < 1.3 * chance


def test_p_values_of_patterns_are_uniform():
    def problem(rng, number):
        data, y = random_labels(rng, shape=(4,))
        result = permutation_test_pattern(KFDA("linear"), data, y, n_permutations=M, random_state=number)
        each = [result.pvalue[0, 0], result.weights_pvalue[0, 1]]
        smallest = [result.pvalue_fwe.min(), result.weights_pvalue_fwe.min()]
        return np.array([*each, *smallest]) - rng.uniform(size=4) / (M + 1), result.pvalue.min()

    found = repeated(250, lambda rng, number: np.hstack(problem(rng, number))).T
    for values in found[:4]:
        assert_uniform(values)
    assert_too_small(found[4])


def test_permuting_training_labels_only_gives_wrong_p_values():
    """True test labels lean away from true training labels, and not from permuted ones: this null is another one."""

    def problem(rng, number):
        data, y = rng.normal(size=(30, 3)), rng.normal(size=30)
        columns = np.column_stack([y, *[rng.permutation(y) for _ in range(M)]])
        errors = np.zeros(M + 1)
        for train, test in skl.KFold(10).split(data):
            K = linear_kernel(data[train])
            beta, B = reference.fit(K, columns[train], 1.0)
            errors += np.square(y[test, None] - linear_kernel(data[test], data[train]) @ beta - B).sum(0)
        return (np.sum(errors[1:] < errors[0]) + rng.uniform()) / (M + 1)

    assert stats.kstest(repeated(250, problem), "uniform").pvalue < LEVEL / 100


def test_pairs_of_a_time_without_an_effect_are_found_as_rarely_as_promised():
    """Six times, two with an effect: the maximum alone finds models of noise that meet the effect by luck."""

    def problem(rng, number):
        y = np.arange(40) % 2
        data = rng.normal(size=(40, 4, 6))
        data[:, 0, 2:4] += 2.0 * (y[:, None] - 0.5)
        result = null_options(LSSVC("linear"), data, y, number, cv=3, scoring="roc_auc", generalise=True)
        by_maximum = (result.max_scores[:, None, None] >= result.score - 1e-10).sum(0) + 1 <= 0.05 * (M + 1)
        false = np.ones((6, 6), bool)
        false[2:4, 2:4] = False
        found = result.pvalue_fwe <= 0.05
        return (found & false).any(), (by_maximum & false).any(), found[~false].mean(), by_maximum[~false].mean()

    false, by_maximum, power, power_by_maximum = repeated(150, problem).mean(0)
    assert false <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 150)
    assert by_maximum > 0.15
    assert power > power_by_maximum - 0.1 > 0.5
