"""Least solutions of equations whose rows come and go."""

import numpy as np
import pytest

from foldless._engine.online.minimum_norm import MinimumNorm, RankError, pseudo_solve
from foldless.kernels import resolve
from support.adaptive import X, tolerance
from support.tolerances import assert_close


@pytest.mark.parametrize("alpha", [1e-7, 1e-2, 1e2])
@pytest.mark.parametrize("p", [1, 2, 5, 20])
def test_solutions_after_inserting_and_removing_rows_equal_new_ones(p, alpha):
    rng = np.random.default_rng(5)
    K = resolve("rbf", X, gamma=0.2).gram(X)
    Y = np.eye(3)[rng.integers(3, size=36)]
    rtol = tolerance(K, alpha)
    n = 36 - p
    start, whole = MinimumNorm(K[:n, :n], alpha), MinimumNorm(K, alpha)
    before = start.solve(Y[:n]), whole.solve(Y)
    assert_close(start.insert(K[:n, n:], K[n:, n:]).solve(Y), whole.solve(Y), rtol=rtol)
    for rows in (np.arange(p), np.arange(n, 36), np.sort(rng.permutation(36)[:p])):
        stay = np.delete(np.arange(36), rows)
        shrunk = whole.remove(rows)
        expected = MinimumNorm(K[np.ix_(stay, stay)], alpha)
        assert shrunk.n == n
        assert_close(shrunk.solve(Y[stay]), expected.solve(Y[stay]), rtol=rtol)
        assert_close(shrunk.loo(Y[stay]), expected.loo(Y[stay]), rtol=rtol)
    np.testing.assert_array_equal(start.solve(Y[:n]), before[0])  # updates are new objects
    np.testing.assert_array_equal(whole.solve(Y), before[1])


def test_solutions_solve_the_equations_and_have_least_norm():
    K = resolve("rbf", X, gamma=0.2).gram(X)
    G = np.column_stack([np.ones(36), K + 0.01 * np.eye(36)])
    Y = np.random.default_rng(5).normal(size=(36, 2))
    solution = MinimumNorm(K, 0.01).solve(Y)
    assert_close(G @ solution, Y)
    null = np.linalg.svd(G)[2][-1]
    assert_close(G @ null, np.zeros(36), scale=1.0, rtol=1e-13)
    assert_close(null @ solution, np.zeros(2), scale=np.abs(solution).max())


def test_dependent_equations_are_refused():
    K = np.ones((5, 5))
    with pytest.raises(RankError, match="larger alpha"):
        MinimumNorm(1e3 * K, 1e-14)
    factors = MinimumNorm(K, 0.5)
    with pytest.raises(RankError, match="larger alpha"):
        factors.insert(np.array([[1.5, 1.0, 1.0, 1.0, 1.0]]).T, np.array([[1.0]]))  # the first equation once more
    # [1, M] has full rank, but without its last row the two equations left are the same
    indefinite = np.array([[0.5, 1.5, 0.0], [1.5, 0.5, 1.0], [0.0, 1.0, 2.0]])
    assert np.linalg.matrix_rank(np.column_stack([np.ones(3), indefinite + np.eye(3)])) == 3
    whole = MinimumNorm(indefinite, 1.0)
    for loo in (whole.loo, whole.loo_downdate):
        with pytest.raises(RankError):
            loo(np.eye(3))


def test_pseudo_solve_is_the_least_squares_solution_of_least_norm():
    K = np.ones((4, 4))
    Y = np.array([[1.0], [2.0], [3.0], [6.0]])
    assert_close(pseudo_solve(K, Y), np.full((5, 1), 3.0 / 5))
