"""Sparse rows mean the same however they are written: entries that add up, in any order, with zeros, as COO."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge

from foldless import LSSVC, LSSVR, FoldlessSearchCV, KernelFisherDiscriminant, chunked, reduction
from foldless.estimators import AdaptiveKDA
from foldless.kernels import RBF, Nystroem
from foldless.model_selection import cross_val_predict, cross_val_score, permutation_test_score
from support.tolerances import assert_close

RNG = np.random.default_rng(0)
N = 30
ROWS = RNG.normal(size=(N, 6)) * (RNG.random((N, 6)) < 0.5)
Y = (ROWS[:, 0] + RNG.normal(size=N) > 0).astype(int)
VALUES = ROWS[:, 1] + RNG.normal(size=N)


def in_two_parts(X, kind):
    """Every entry as two at one place, in no order, and a zero in every row."""
    rng = np.random.default_rng(1)
    rows, columns = np.nonzero(X)
    part = rng.normal(size=len(rows))
    values = np.concatenate([part, X[rows, columns] - part, np.zeros(len(X))])
    rows = np.concatenate([rows, rows, np.arange(len(X))])
    columns = np.concatenate([columns, columns, np.full(len(X), 2)])
    order = rng.permutation(len(rows))
    if kind == "coo":
        return sp.coo_array((values[order], (rows[order], columns[order])), X.shape)
    order = order[np.argsort(rows[order], kind="stable")]
    ends = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(X)))])
    return sp.csr_array((values[order], columns[order], ends), X.shape)


def learn_and_forget(X, Z):
    model = LSSVC("rbf", gamma=0.3).fit(X[:20], Y[:20]).partial_fit(X[20:], Y[20:]).forget([0, 22])
    return model.decision_function(Z)


def with_landmarks(X, Z):
    return LSSVC(Nystroem(RBF(0.3), landmarks=Z)).fit(X, Y).decision_function(Z)


def searched(X, Z):
    search = FoldlessSearchCV(LSSVC(standardize=True), {"alpha": [0.1, 1.0]})
    return search.fit(X, Y).decision_function(Z)


def adaptive(X, Z):
    model = AdaptiveKDA(gamma=0.3).fit(X[:20], Y[:20]).partial_fit(X[20:], Y[20:])
    return np.append(model.decision_function(Z), model.loo_decision_function())


def in_chunks(X, Z):
    found = chunked.cross_validate(LSSVC("linear"), chunked.arrays(X, Y, rows=7), cv=3)
    return np.append(found.estimator.decision_function(Z), found.loo_score)


def reduced(X, Z):
    few = reduction.reduce_instances(X, Y, kernel="rbf", gamma=0.3, random_state=0)
    return np.append(few.K.ravel(), few.gram(Z).ravel())


CALLS = {
    "standardized": lambda X, Z: LSSVR(standardize=True).fit(X, VALUES).predict(Z),
    "gamma": lambda X, Z: [LSSVC().fit(X, Y).kernel_.gamma],
    "rbf": lambda X, Z: LSSVC(gamma=0.3).fit(X, Y).decision_function(Z),
    "laplacian": lambda X, Z: LSSVC("laplacian", gamma=0.3).fit(X, Y).decision_function(Z),
    "poly": lambda X, Z: KernelFisherDiscriminant("poly", gamma=0.3).fit(X, Y).decision_function(Z),
    "cosine": lambda X, Z: LSSVC("cosine").fit(X, Y).loo_decision_function(),
    "linear": lambda X, Z: LSSVR("linear").fit(X, VALUES).predict(Z),
    "landmarks": lambda X, Z: LSSVC(Nystroem(RBF(0.3), landmarks=X[:8])).fit(X, Y).decision_function(Z),
    "set": lambda X, Z: LSSVC(gamma=0.3).fit(X, Y).conformal_p_values(Z),
    "updates": learn_and_forget,
    "adaptive": adaptive,
    "search": lambda X, Z: (
        FoldlessSearchCV(LSSVC(standardize=True), {"alpha": [0.1, 1.0]}).fit(X, Y).decision_function(Z)
    ),
    "folds": lambda X, Z: cross_val_predict(LSSVR(standardize=True), X, VALUES, cv=3),
    "ridge": lambda X, Z: cross_val_score(Ridge(), X, VALUES, cv=3),
    "permutations": lambda X, Z: permutation_test_score(LSSVC(), X, Y, n_permutations=5, random_state=0)[1],
    "chunks": in_chunks,
    "reduced": reduced,
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("kind", ["csr", "coo"])
def test_entries_that_add_up_are_one_entry(kind, call):
    if kind == "coo" and call in (CALLS["updates"], CALLS["adaptive"]):
        pytest.skip("COO has no slices")
    X, Z = in_two_parts(ROWS, kind), in_two_parts(ROWS[:5] + 1.0, kind)
    before = [each.copy() for each in (X.data, X.row, X.col)] if kind == "coo" else [X.data.copy(), X.indices.copy()]
    assert X.nnz > 2 * np.count_nonzero(ROWS)
    expected = call(sp.csr_array(ROWS), sp.csr_array(ROWS[:5] + 1.0))
    assert_close(call(X, Z), expected, scale=1.0)
    after = [X.data, X.row, X.col] if kind == "coo" else [X.data, X.indices]
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, other)  # the caller's matrix is not changed
