"""The choice of cases of large tables."""

from itertools import product

import pytest

from support.sampling import sampled_cases


@pytest.mark.parametrize(("n_cases", "n_sampled"), [(1, 1), (2, 2), (3, 3), (37, 3), (111, 3), (370, 10)])
def test_samples_are_different_cases_in_their_order(n_cases, n_sampled):
    cases = list(range(n_cases))
    sample = sampled_cases(cases, 37, "a test", options=lambda case: [case])
    assert len(sample) == n_sampled
    assert sample == sorted(set(sample))
    assert sample == sampled_cases(cases, 37, "a test", options=lambda case: [case])


def test_every_option_of_small_tables_occurs_in_some_test():
    table = list(product(range(4), range(3), range(2)))
    sampled = {case for number in range(200) for case in sampled_cases(table, 37, f"test {number}")}
    assert sampled == set(table)


def test_slow_options_occur_in_every_sample():
    table = list(product(range(3), range(8)))
    assert {case[0] for case in sampled_cases(table, 37, "a test")} == {0, 1, 2}


@pytest.mark.parametrize("seed", range(10))
def test_every_option_of_lists_of_three_occurs_in_every_sample(seed):
    table = list(product("abc", "def", range(3), [True, False]))
    assert {option for case in sampled_cases(table, 37, seed) for option in case} == {*"abcdef", 0, 1, 2}
