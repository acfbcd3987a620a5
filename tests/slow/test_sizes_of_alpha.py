"""Held-out values equal refits at the penalties between those of the fast tests."""

import pytest

from support.extremes import compare_with_refits, every_design, every_kernel, every_kind, every_penalty


@pytest.mark.parametrize("alpha", [1e-6, 1e6])
@every_design
@every_kernel
@every_penalty
@every_kind
def test_heldout_values_are_those_of_refits(kind, penalty, kernel, rows, alpha):
    compare_with_refits(kind, penalty, kernel, rows, alpha)
