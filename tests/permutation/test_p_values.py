"""Permutations, p-values and the result of a permutation test against their definitions."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn import model_selection as skl
from sklearn.dummy import DummyClassifier

from foldless import LSSVC
from foldless._engine.permutation.nulls import Exchangeable, PermutationTestResult, p_values
from foldless._sklearn.route import Route
from foldless.model_selection import permutation_test_score
from support.permutation import CODES, GROUPS, STRATA, N, X
from support.refits import p_value


@pytest.mark.parametrize("groups", [None, GROUPS, STRATA], ids=["all rows", "numbers", "strings"])
@pytest.mark.parametrize("random_state", [0, 11, "instance"])
def test_permutations_equal_those_of_scikit_learn(groups, random_state):
    everything, seen = [(np.arange(N), np.arange(N))], []
    states = [np.random.RandomState(3) if random_state == "instance" else random_state for _ in range(2)]
    skl.permutation_test_score(
        DummyClassifier(),
        X,
        np.arange(N),
        groups=groups,
        cv=everything,
        n_permutations=3,
        random_state=states[0],
        scoring=lambda estimator, X, y: seen.append(y) or 0.0,
    )
    assert_array_equal(Exchangeable(groups).orders(N, 3, states[1]), seen[1:])


def test_permutations_within_strata_stay_there():
    orders = Exchangeable(STRATA).orders(N, 20, 0)
    assert (STRATA[orders] == STRATA).all()
    assert_array_equal(np.sort(orders, 1), np.tile(np.arange(N), (20, 1)))
    assert orders.dtype == np.int32


def test_p_values_count_scores_that_are_at_least_as_good():
    null = np.array([0.1, 0.4, 0.5, 0.9])
    assert p_values(0.5, null) == 3 / 5
    assert p_values(0.5, null, greater=False) == 4 / 5
    assert p_values(1.0, null) == 1 / 5  # never 0
    assert p_values(0.0, null) == 1.0
    assert p_values(0.0, [0.0, -1.0]) == p_values(0.0, [0.0, 1.0], greater=False) == 2 / 3
    assert p_values(0.5, null, rounding=0.0) == 3 / 5


def test_p_values_of_scores_that_are_equal_up_to_rounding():
    third = 1 / 3
    below, above = np.nextafter(third, 0), np.nextafter(third, 1)
    assert p_values(above, [below]) == 1.0
    assert p_values(below, [above], greater=False) == 1.0
    assert p_values(above, [below], rounding=0.0) == 0.5
    assert p_values(third, [third * (1 - 1e-9)]) == 0.5
    assert p_values(-third, [-third * (1 + 1e-9)]) == 0.5  # negative scores: the margin is one of their size
    assert p_values(-above, [-third * (1 + 1e-11)]) == 1.0


def test_p_values_of_undefined_scores():
    assert p_values(0.5, [np.nan, 0.1]) == 2 / 3
    assert p_values(0.5, [np.nan, 0.1], greater=False) == 1.0
    assert p_values(0.5, [np.nan, 0.1], count_undefined=False) == 1 / 3  # as scikit-learn counts
    assert np.isnan(p_values(np.nan, [0.1, 0.2]))


def test_p_values_of_a_family_are_those_of_its_members():
    rng = np.random.default_rng(0)
    score, null = rng.normal(size=(2, 3)), rng.normal(size=(19, 2, 3))
    together = p_values(score, null)
    for place in np.ndindex(2, 3):
        assert together[place] == p_values(score[place], null[:, *place])


def test_fields_and_text_of_a_permutation_result():
    result = PermutationTestResult(0.75, np.array([0.5, 0.75, 0.25]), scoring="accuracy", path="by hand")
    score, null, p = result
    assert (score, p) == (0.75, 0.5) == (result.score, result.pvalue)
    assert null is result.permutation_scores is result[1]
    assert isinstance(result, tuple)
    assert repr(result) == "accuracy 0.7500, p = 0.5 (3 permutations; by hand)"
    assert (result.n_permutations, result.greater_is_better) == (3, True)
    assert result.pvalue_fwe is result.max_scores is result.best_params is result.strata is None


@pytest.mark.parametrize("copied", [lambda r: pickle.loads(pickle.dumps(r)), copy.copy, copy.deepcopy])
def test_permutation_results_survive_copies(copied):
    result = permutation_test_score(LSSVC(), X, CODES, n_permutations=3, scoring="ber")
    other = copied(result)
    assert type(other) is PermutationTestResult
    assert repr(other) == repr(result)
    assert_array_equal(other.permutation_scores, result.permutation_scores)
    assert_array_equal(other.strata, result.strata)
    assert (other.scoring, other.path, other.greater_is_better) == (result.scoring, result.path, False)


@pytest.mark.parametrize("greater", [True, False])
def test_fields_and_text_of_the_permutation_result_of_a_family(greater):
    rng = np.random.default_rng(1)
    score, null = rng.normal(size=4), rng.normal(size=(9, 4))
    result = PermutationTestResult(score, null, scoring="r2", greater_is_better=greater, path="by hand")
    best = null.max(1) if greater else null.min(1)
    assert_array_equal(result.max_scores, best)
    assert_array_equal(result.pvalue_fwe, [p_value(s, best, greater) for s in score])
    assert_array_equal(result.pvalue, [p_value(s, column, greater) for s, column in zip(score, null.T, strict=True)])
    k = score.argmax() if greater else score.argmin()
    words = f"r2 of 4 members, best {score[k]:.4f} at {k}, family-wise p = {result.pvalue_fwe[k]:.4g}"
    assert repr(result) == f"{words} (9 permutations; by hand)"


def test_p_values_of_undefined_scores_in_a_family_err_on_the_safe_side():
    score, null = np.array([0.6, 0.9]), np.array([[0.5, 0.5], [np.nan, np.nan], [np.nan, 0.4]])
    result = PermutationTestResult(score, null)
    assert_array_equal(result.pvalue, [3 / 4, 2 / 4])
    assert_array_equal(result.pvalue_fwe, [3 / 4, 3 / 4])
    loss = PermutationTestResult(-score, -null, greater_is_better=False)
    assert_array_equal(loss.pvalue_fwe, result.pvalue_fwe)


def test_p_values_of_a_family_count_scores_equal_up_to_rounding():
    score, null = np.array([0.1 + 0.2, 0.5]), np.array([[0.3, 0.1], [0.1, 0.0]])
    assert_array_equal(PermutationTestResult(score, null).pvalue_fwe, [2 / 3, 1 / 3])
    assert_array_equal(PermutationTestResult(score, null, rounding=0.0).pvalue, [1 / 3, 1 / 3])
    assert_array_equal(PermutationTestResult(score, null, rounding=0.0).pvalue_fwe, [1 / 3, 1 / 3])


def test_p_values_of_a_family_leave_out_undefined_members():
    score, null = np.array([0.6, np.nan]), np.array([[0.5, np.nan], [0.7, np.nan], [0.1, np.nan]])
    result = PermutationTestResult(score, null)
    assert_array_equal(result.pvalue, [2 / 4, np.nan])
    assert_array_equal(result.pvalue_fwe, [2 / 4, np.nan])
    assert " best 0.6000 at 0, " in repr(result)
    undefined = PermutationTestResult(np.full(2, np.nan), null, scoring="r2", path="by hand")
    assert repr(undefined) == "r2 of 2 members, none of them defined (3 permutations; by hand)"


def test_repr_names_the_best_pair_of_a_generalisation():
    score, null = np.diag([0.0, 0.4, 0.4]), np.zeros((4, 3, 3))
    score[1, 2] = 0.5
    result = PermutationTestResult(score, null, generalised=True)
    assert repr(result).endswith("of 9 members, best 0.5000 at (1, 2), family-wise p = 0.2 (4 permutations)")


def test_repr_says_the_way_without_its_reasons():
    path = Route("one fit", "permutations are columns")
    assert repr(PermutationTestResult(0.5, np.zeros(4), scoring="r2", path=path)) == (
        "r2 0.5000, p = 0.2 (4 permutations; one fit)"
    )
