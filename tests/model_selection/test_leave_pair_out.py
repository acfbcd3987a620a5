"""leave_pair_out_auc against refits without every pair."""

import numpy as np
import pytest
import sklearn
from sklearn import model_selection as skl
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import roc_auc_score

import foldless.model_selection as fl
from foldless import LSSVC, LSSVR, KernelFisherDiscriminant, kernels
from foldless._engine.heldout.problem import Problem
from foldless._engine.heldout.solution import Solution
from foldless._engine.precision.lowrank import LowRank
from support.cross_validation import BINARY_CLASSIFIERS, CODES, VALUES, X
from support.refits import refit, ridge_fits, share_of_pairs_in_order, signs
from support.tolerances import assert_close


@pytest.mark.many_cases
@pytest.mark.parametrize(
    "estimator",
    [*BINARY_CLASSIFIERS.values(), LSSVC(gamma=0.1, penalty="coef"), LSSVR(gamma=0.1), KernelRidge(kernel="rbf")],
    ids=repr,
)
def test_leave_pair_out_equals_refits(estimator):
    rows = np.arange(16)
    y = (CODES[rows] > 0).astype(int) if sklearn.base.is_classifier(estimator) else VALUES[rows]
    method = "decision_function" if sklearn.base.is_classifier(estimator) else "predict"
    expected = share_of_pairs_in_order(estimator, X[rows], y, method)
    assert fl.leave_pair_out_auc(estimator, X[rows], y) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    "estimator", [LSSVC(gamma=0.3), KernelFisherDiscriminant(gamma=0.3), RidgeClassifier()], ids=repr
)
def test_equal_rows_of_different_classes_are_ties(estimator):
    """Titanic-like tables: few distinct rows, many of them in both classes."""
    rows = np.random.default_rng(0).integers(0, 2, size=(18, 2)).astype(float)
    y = np.arange(18) % 2
    expected = share_of_pairs_in_order(estimator, rows, y, digits=10)
    assert fl.leave_pair_out_auc(estimator, rows, y) == pytest.approx(expected, abs=1e-12)
    assert fl.leave_pair_out_auc(estimator, np.zeros((18, 2)), y) == 0.5


def test_leave_pair_out_of_three_classes_averages_one_against_the_others():
    rows, estimator = np.arange(15), KernelFisherDiscriminant(gamma=0.1)
    y = np.arange(15) % 3
    expected = []
    for k in range(3):
        wins = []
        for i in np.flatnonzero(y == k):
            for j in np.flatnonzero(y != k):
                rest = np.setdiff1d(rows, [i, j])
                d = refit(estimator, X, y, rest).decision_function(X[[i, j]])[:, k]
                wins.append(np.sign(d[0] - d[1]) / 2 + 0.5)
        expected.append(np.mean(wins))
    assert fl.leave_pair_out_auc(estimator, X[rows], y) == pytest.approx(np.mean(expected), abs=1e-12)


def test_pooled_mean_and_leave_pair_out_auc_differ():
    """Pooled over held-out scores, averaged over folds, leave-pair-out."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 80)
    X, estimator = rng.normal(size=(80, 3)) + 0.5 * y[:, None], LSSVC(gamma=0.1)
    cv = skl.StratifiedKFold(5, shuffle=True, random_state=0)
    pooled = roc_auc_score(y, fl.cross_val_predict(estimator, X, y, cv=cv, method="decision_function"))
    mean = fl.cross_val_score(estimator, X, y, cv=cv, scoring="roc_auc").mean()
    pairs = fl.leave_pair_out_auc(estimator, X, y)
    assert len({round(value, 6) for value in (pooled, mean, pairs)}) == 3
    assert pairs == pytest.approx(mean, abs=0.1)


def feature_of_two_rows(seed=0, n=16, elsewhere=1e-3):
    """The last feature is huge in the first two rows, of different classes, and next to nothing elsewhere."""
    rng = np.random.default_rng(seed)
    rows, y = rng.normal(size=(n, 3)), np.arange(n) % 2
    rows[:, 2] *= elsewhere
    rows[:2, 2] = 1e7, 1.00001e7
    return rows, y


@pytest.mark.parametrize(
    "estimator", [LSSVC("linear"), KernelFisherDiscriminant("linear"), RidgeClassifier()], ids=repr
)
@pytest.mark.parametrize("seed", range(2))
def test_auc_of_pairs_that_carry_a_feature_nearly_alone_equals_refits(estimator, seed):
    rows, y = feature_of_two_rows(seed)
    expected = share_of_pairs_in_order(estimator, rows, y)
    assert fl.leave_pair_out_auc(estimator, rows, y) == pytest.approx(expected, abs=1e-12)


@pytest.mark.many_cases
@pytest.mark.parametrize("seed", range(20))
def test_auc_of_a_pair_whose_block_of_P_is_singular_equals_refits(seed):
    """Without the pair a feature is 0 in all rows; refits do without it, and so does the rest solved by itself."""
    rows, y = feature_of_two_rows(seed, elsewhere=0.0)
    rows[:2, 2] = 10.0 ** (7 + seed % 4) * np.random.default_rng(seed).normal(size=2)
    estimator = LSSVC("linear", alpha=0.1)
    expected = share_of_pairs_in_order(estimator, rows, y)
    assert fl.leave_pair_out_auc(estimator, rows, y) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("q", [0, 1])
def test_batch_of_pairs_that_carry_a_feature_nearly_alone_equals_refits(q):
    """Their blocks of a P of low rank have no digits left: the rest is solved by itself."""
    rows, y = feature_of_two_rows()
    Y, Q = signs(y), np.ones((16, q))
    whole = Solution.fit(Problem.of(kernels.Linear(), rows, alpha=0.1, Q=Q), np.arange(16), Y)
    assert isinstance(whole.precision, LowRank)
    pairs = np.array([[0, 1], [1, 0]])
    batch = whole.held_out(pairs)
    assert batch.ill_conditioned.all()
    for pair, found, U in zip(pairs, batch.fits, batch.moments().U, strict=True):
        train = np.setdiff1d(np.arange(16), pair)
        assert_close(found, ridge_fits(rows, Y, Q, train, pair, 0.1), rtol=1e-6)
        assert_close(U, Y[train].T @ (Y[train] - ridge_fits(rows, Y, Q, train, train, 0.1)), scale=16.0)
