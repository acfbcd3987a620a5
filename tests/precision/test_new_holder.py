"""A holder that the package does not know: four verbs are enough for everything that is left out."""

import numpy as np
import pytest

from foldless import reference
from foldless.heldout.solution import Solution
from foldless.precision.base import Precision
from support.cases import Case, odd_splits
from support.parts import TrainingParts
from support.tolerances import assert_close


class Bordered(Precision):
    """P as the corner of the inverse of [M Q; Q' 0], whose columns are read one by one."""

    choice = "bordered"

    def __init__(self, S, Q, alpha):
        self.n, q = Q.shape
        self.alpha = alpha
        M = S + alpha * np.eye(self.n)
        self._inverse = np.linalg.inv(np.block([[M, Q], [Q.T, np.zeros((q, q))]]))

    @property
    def G(self):
        return self._inverse[self.n :, : self.n]

    def apply(self, Y):
        return self._inverse[: self.n, : self.n] @ Y

    def diagonal(self):
        return self._inverse.diagonal()[: self.n].copy()

    def columns(self, rows):
        return self._inverse[: self.n, rows]


def whitened(case, rows):
    root = np.sqrt(case.w[rows])[:, None]
    return root * case.K[np.ix_(rows, rows)] * root.T, root * case.Q[rows]


def solution(case):
    problem = case.problem()
    rows = problem.active
    return Solution(problem, rows, case.Y[rows], Bordered(*whitened(case, rows), case.alpha))


CASES = [Case(weights=weights, q=q) for weights in ("none", "zeros") for q in (0, 1, 3)]
cases = pytest.mark.parametrize("case", CASES, ids=str)


def refit(case, train, rows):
    return reference.heldout_fits(case.K, case.Y, train, rows, case.alpha, **case.oracle)


@cases
def test_every_verb_follows_from_four(case):
    rows = np.flatnonzero(case.w)
    S, Q = whitened(case, rows)
    P, G = reference.precision(S, case.alpha, Q=Q)
    holder, Y, te = Bordered(S, Q, case.alpha), case.Y[rows], np.array([5, 2, 9])
    A, block = P @ Y, P[np.ix_(te, te)]
    assert_close(holder.apply(Y), A)
    if case.q:
        assert_close(holder.G, G)
    assert_close(holder.block(te), block)
    assert_close(holder.squared_diagonal(), np.square(P).sum(0))
    assert_close(holder.diagonal_blocks(te[:, None])[:, 0, 0], P.diagonal()[te])
    assert_close(holder.diagonal_blocks(te[None])[0], block)
    assert_close(holder.loo_residual(A, Y), A / P.diagonal()[:, None])
    assert_close(holder.explicit().P, P)
    assert_close(holder.prepare_blocks().P, P)
    held = holder.held_out(te)
    assert_close(held.factor @ held.factor.T, block)
    assert_close(held.solve(A[te]), np.linalg.solve(block, A[te]))
    assert_close(held.solve_general(A[te]), np.linalg.solve(block, A[te]))
    assert_close(held.residual(A, Y), np.linalg.solve(block, A[te]))
    assert held.keeps_digits
    assert not holder.lost(block[None]).any()
    assert holder.feature_weights(te) is None
    assert holder.current
    assert not holder.grows
    assert not holder.through_features
    assert holder.drift == 0.0


@cases
def test_leave_one_out_equals_refits(case):
    whole = solution(case)
    expected = [refit(case, np.setdiff1d(whole.rows, row), [row])[0] for row in whole.rows]
    assert_close(whole.loo().fits[:, 0], np.array(expected))


@cases
@pytest.mark.parametrize("nested", [False, True])
def test_training_parts_equal_refits(case, nested):
    parts = TrainingParts(case.problem(), case.Y, nested=nested, strategy="part", whole=solution(case))
    everything = np.arange(len(case.K))
    for train, _ in odd_splits(len(case.K)):
        part = parts.part(train)
        assert_close(part.fits(everything), refit(case, train, everything))
    part = parts.part(np.arange(4, 26))
    inner = [refit(case, np.setdiff1d(part.rows, row), [row])[0] for row in part.rows]
    assert_close(part.loo().fits[:, 0], np.array(inner))
    assert_close(part.as_solution().fits(everything), refit(case, part.rows, everything))


@cases
def test_pairs_and_class_matrices_equal_refits(case):
    whole = solution(case)
    pairs = np.array([[0, 1], [5, 2], [7, 16]])
    batch = whole.batch(pairs)
    for k, pair in enumerate(whole.rows[pairs]):
        train = np.setdiff1d(whole.rows, pair)
        assert_close(batch.fits[k], refit(case, train, pair))
        N, U = batch.moments()[:2]
        weighted = case.Y[train] * case.w[train, None]
        assert_close(N[k], weighted.T @ case.Y[train])
        assert_close(U[k], weighted.T @ (case.Y[train] - refit(case, train, train)), scale=np.abs(N[k]).max())
        alone = whole.without(pairs[k]).moments()
        assert_close(alone.U, U[k], scale=np.abs(N[k]).max())
