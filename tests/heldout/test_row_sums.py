"""Sums over rows against the rows themselves."""

import numpy as np
import pytest

from foldless._engine.heldout.row_sums import RowSums
from support.tolerances import assert_close

RNG = np.random.default_rng(0)
PHI, Y, W = RNG.normal(size=(3, 20, 4)) + 5, RNG.normal(size=(3, 20, 2)) - 3, RNG.uniform(0.5, 2, size=(3, 20))
ALL = tuple(np.concatenate(rows) for rows in (PHI, Y, W))


def test_sums_of_sets_add_up_and_leave_again():
    sets = RowSums.of(PHI, Y, W)
    assert_close(sets.total().gram, RowSums.of(*ALL).gram)
    assert_close((sets.total() - sets[1]).gram, (sets[0] + sets[2]).gram)


def test_sums_about_the_means_are_those_of_centred_rows():
    sums = RowSums.of(*ALL)
    mean, level = np.average(ALL[0], 0, ALL[2]), np.average(ALL[1], 0, ALL[2])
    assert_close(sums.mean, mean)
    assert_close(sums.target_means, level)
    assert_close(sums.about(mean, level).gram, RowSums.of(ALL[0] - mean, ALL[1] - level, ALL[2]).gram)


@pytest.mark.parametrize("number", range(3))
def test_squares_of_residuals_are_those_of_the_rows(number):
    B, b = np.random.default_rng(1).normal(size=(4, 2)), np.array([0.5, -2.0])
    residuals = Y[number] - PHI[number] @ B - b
    squares = RowSums.of(PHI, Y, W)[number].residual_squares(B, b)
    assert_close(squares, residuals.T @ (W[number][:, None] * residuals))
