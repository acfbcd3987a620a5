"""Thousands of rows come and go."""

import pytest

from support.updates import long_run


@pytest.mark.parametrize("alpha", [1e-6, 1e-2, 1e2])
def test_ten_thousand_updates_equal_refits(alpha):
    long_run(alpha, 10_000, 50, 1000)


@pytest.mark.parametrize("alpha", [1e-6, 1e-3, 1e-1])
def test_thousands_of_updates_with_coefficient_penalty_equal_refits(alpha):
    long_run(alpha, 2_000, 50, 250, "coef")
