"""One question of all differences: are there digits left?"""

import numpy as np
import pytest

from foldless._engine.linalg import functions
from foldless._engine.precision import digits
from foldless._engine.precision.factored import Factored


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_difference_has_few_digits_where_little_of_its_size_is_left(dtype):
    size = np.array([1.0, 100.0], dtype)
    share = digits.SMALL[np.dtype(dtype).itemsize]
    values = np.array([[0.9, 0.9], [1.1, 1.1], [-0.9, -1.1], [0.0, 1e6]], dtype) * share * size
    np.testing.assert_array_equal(
        digits.few_digits(values, size), [[True, True], [False, False], [True, False], [True, False]]
    )


def test_shares_of_what_is_left():
    np.testing.assert_array_equal(digits.little_kept(np.array([0.0, 1e-4, 0.5]), 0.6), [True, True, False])
    np.testing.assert_array_equal(digits.nearly_fitted(np.array([0.0, 1e-7, 1e-5, 1.0])), [True, True, False, False])
    np.testing.assert_array_equal(digits.adds_up(np.array([1.0, 1e9]), 1.0), [True, False])
    np.testing.assert_array_equal(digits.nearly_constant(np.array([0.0, 1e-7, 1e-5])), [True, True, False])


def holder(rank, alpha, n=12):
    """P of a Gram matrix of ones on the diagonal and this rank, with an intercept."""
    U = np.linalg.qr(np.random.default_rng(rank).normal(size=(n, n)))[0][:, :rank]
    S = U @ U.T * n / rank
    return Factored(np.ascontiguousarray(S), np.ones((n, 1)), alpha), S.diagonal().mean()


@pytest.mark.parametrize("rank", [3, 8])
def test_rows_beyond_the_rank_are_counted_at_a_tiny_alpha(rank):
    P, size = holder(rank, 1e-10)
    assert digits.rows_beyond_rank(P, size, functions) == pytest.approx(12 - rank - 1, abs=1e-4)


@pytest.mark.parametrize(("rank", "alpha"), [(3, 1e-3), (12, 1e-10)])
def test_no_rows_are_beyond_the_rank_of_regular_matrices_or_with_a_penalty(rank, alpha):
    P, size = holder(rank, alpha)
    assert digits.rows_beyond_rank(P, size, functions) == np.inf
