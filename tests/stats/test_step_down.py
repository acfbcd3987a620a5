"""Step-down p-values beside their definition, one member after the other."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from foldless.model_selection import PermutationTestResult
from foldless.stats import step_down

M, K = 60, 12


def family(seed=0, decimals=None, effect=1.0, shape=(K,)):
    """Members with nulls of very different widths; rounded scores have ties."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(M + 1, *shape)) * rng.uniform(0.2, 3.0, size=shape) + rng.normal(size=shape)
    scores[0] += effect * rng.uniform(0, 3, size=shape)
    scores = scores if decimals is None else scores.round(decimals)
    return PermutationTestResult(scores[0], scores[1:])


def plain(result, unit):
    """The definition: the best member against the best of all, then without it, and so on."""
    scores = np.concatenate([[result.score], result.permutation_scores])
    values = {
        "p": -np.array([[np.mean(column >= score) for score in column] for column in scores.T]).T,
        "z": (scores - scores.mean(0)) / scores.std(0),
        "score": scores - scores.mean(0),
    }[unit]
    left, adjusted, largest = set(range(K)), np.empty(K), 0.0
    while left:
        best = max(left, key=lambda member: values[0, member])
        count = sum(max(values[j, member] for member in left) >= values[0, best] - 1e-12 for j in range(M + 1))
        largest = max(largest, count / (M + 1))
        adjusted[best] = largest
        left.remove(best)
    return adjusted


@pytest.mark.parametrize("unit", ["p", "z", "score"])
@pytest.mark.parametrize("decimals", [None, 0])
@pytest.mark.parametrize("seed", [0, 1])
def test_adjusted_p_values_equal_the_definition(unit, decimals, seed):
    result = family(seed, decimals)
    assert_allclose(step_down(result, unit=unit), plain(result, unit))


def test_the_order_of_members_changes_nothing_where_scores_tie():
    result, order = family(decimals=0), np.random.default_rng(1).permutation(K)
    turned = PermutationTestResult(result.score[order], result.permutation_scores[:, order])
    assert len(np.unique(result.pvalue)) < K
    assert_array_equal(step_down(turned), step_down(result)[order])


def test_they_lie_between_single_p_values_and_those_of_one_step():
    result = family(effect=2.0)
    centred = result.permutation_scores - (result.permutation_scores.sum(0) + result.score) / (M + 1)
    truth = result.score - (result.permutation_scores.sum(0) + result.score) / (M + 1)
    one_step = PermutationTestResult(truth, centred).pvalue_fwe
    adjusted = step_down(result, unit="score")
    assert (adjusted >= result.pvalue - 1e-12).all()
    assert (adjusted <= one_step + 1e-12).all()
    assert (adjusted < one_step - 1e-12).any()


def test_a_loss_is_tested_for_being_small():
    result = family()
    loss = PermutationTestResult(-result.score, -result.permutation_scores, greater_is_better=False)
    assert_array_equal(step_down(loss), step_down(result))


def test_members_without_a_score_have_no_p_value_and_take_no_part():
    result = family()
    scores = np.concatenate([[result.score], result.permutation_scores])
    scores[:, 3] = np.nan
    adjusted = step_down(PermutationTestResult(scores[0], scores[1:]))
    others = np.arange(K) != 3
    part = PermutationTestResult(result.score[others], result.permutation_scores[:, others])
    assert np.isnan(adjusted[3])
    assert_array_equal(adjusted[others], step_down(part))


def test_an_undefined_permuted_score_counts_as_the_best():
    result = family()
    score, null = result.score + 100, result.permutation_scores.copy()
    assert_allclose(step_down(PermutationTestResult(score, null), unit="z"), 1 / (M + 1))
    null[5, 2] = np.nan
    adjusted = step_down(PermutationTestResult(score, null), unit="z")
    assert_allclose(adjusted.max(), 2 / (M + 1))


def test_a_pair_of_times_is_found_only_if_both_times_are():
    result = family(shape=(4, 4))
    flat = PermutationTestResult(result.score.ravel(), result.permutation_scores.reshape(M, 16))
    alone = step_down(flat).reshape(4, 4)
    assert_array_equal(step_down(result), alone)  # four channels at four times, say
    adjusted = step_down(PermutationTestResult(result.score, result.permutation_scores, generalised=True))
    for i in range(4):
        for j in range(4):
            assert adjusted[i, j] == max(alone[i, j], alone[i, i], alone[j, j])


def test_an_unknown_unit_is_refused():
    with pytest.raises(ValueError, match="unit='t' is unknown"):
        step_down(family(), unit="t")
