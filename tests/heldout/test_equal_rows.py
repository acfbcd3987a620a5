"""Rows that are equal have equal held-out scores, and tie."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import model_selection as skl
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import roc_auc_score

from foldless import LSSVC, LSSVR, AdaptiveKDA, FoldlessSearchCV, KernelFisherDiscriminant
from foldless._engine.heldout import rows as rows_module
from foldless._engine.heldout.problem import Problem
from foldless._engine.heldout.rows import equal_rows
from foldless.kernels import RBF, Linear, RandomFeatures
from foldless.model_selection import (
    Confounds,
    RefitWarning,
    cross_val_predict,
    cross_val_score,
    leave_pair_out_auc,
    permutation_test_score,
)
from support.refits import labelings, refit, share_of_pairs_in_order


def lattice(seed, n=120, wide=3):
    rng = np.random.default_rng(seed)
    return rng.integers(0, wide, (n, 2)) * 1.0, np.arange(n) % 2


CLASSIFIERS = {
    "rbf": LSSVC(gamma=0.5, alpha=0.01),
    "coefficients": LSSVC(gamma=0.5, alpha=0.01, penalty="coef"),
    "linear": LSSVC("linear"),
    "fisher": KernelFisherDiscriminant(gamma=0.5, alpha=1e-4, threshold="fisher"),
    "centroid": KernelFisherDiscriminant(gamma=0.5, alpha=1e-4, threshold="centroid"),
    "RidgeClassifier": RidgeClassifier(),
    "calibrated": LSSVC(gamma=0.5, alpha=0.01, calibration="sigmoid"),
}


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_equal_rows_of_a_test_set_have_equal_scores(name, form):
    X, y = lattice(0)
    cv = skl.StratifiedKFold(10, shuffle=True, random_state=0)
    method = "predict_proba" if name == "calibrated" else "decision_function"
    values = cross_val_predict(CLASSIFIERS[name], form(X), y, cv=cv, method=method)
    for _, test in cv.split(X, y):
        for row in np.unique(X[test], axis=0):
            same = values[test[(X[test] == row).all(1)]]
            assert (same == same[0]).all()


@pytest.mark.many_cases
@pytest.mark.parametrize("name", ["rbf", "coefficients", "linear", "centroid", "RidgeClassifier"])
@pytest.mark.parametrize("seed", range(4))
def test_auc_of_equal_rows_is_that_of_refits(name, seed):
    estimator, (X, y) = CLASSIFIERS[name], lattice(seed)
    cv = skl.StratifiedKFold(10, shuffle=True, random_state=0)
    actual = cross_val_score(estimator, X, y, cv=cv, scoring="roc_auc")
    expected = []
    for train, test in cv.split(X, y):
        rows, places = np.unique(X[test], axis=0, return_inverse=True)  # scores of different rows only: no rounding
        scores = refit(estimator, X, y, train).decision_function(rows)[places.ravel()]
        expected.append(roc_auc_score(y[test], scores))
    np.testing.assert_allclose(actual, expected, atol=1e-12)


@pytest.mark.parametrize("alpha", [1e-4, 1.0])
def test_permutation_auc_of_equal_rows_equals_refits(alpha):
    X, y = lattice(5, n=60)
    cv, estimator = list(skl.KFold(5, shuffle=True, random_state=0).split(X)), LSSVC(gamma=0.5, alpha=alpha)
    result = permutation_test_score(estimator, X, y, cv=cv, n_permutations=15, scoring="roc_auc", random_state=1)
    for score, order in zip(result.permutation_scores, labelings(60, 15, seed=1)[1:], strict=True):
        labels, aucs = y[order], []
        for train, test in cv:
            rows, places = np.unique(X[test], axis=0, return_inverse=True)
            scores = refit(estimator, X, labels, train).decision_function(rows)[places.ravel()]
            aucs.append(roc_auc_score(labels[test], scores))
        assert score == pytest.approx(np.mean(aucs), abs=1e-12)


def test_equal_rows_tie_in_pairs_and_in_the_criterion_of_a_search():
    X, y = lattice(2, n=40, wide=2)
    estimator = LSSVC(gamma=0.5, alpha=1e-3)
    expected = share_of_pairs_in_order(estimator, X, y, digits=10)
    assert leave_pair_out_auc(estimator, X, y) == pytest.approx(expected, abs=1e-12)
    splits = list(skl.StratifiedKFold(4, shuffle=True, random_state=0).split(X, y))
    search = FoldlessSearchCV(estimator, {"alpha": [1e-3, 1.0]}, cv=splits, criterion="auc").fit(X, y)
    for alpha, loss in zip([1e-3, 1.0], search.cv_results_["mean_test_criterion"], strict=True):
        pooled = np.empty(40)
        for train, test in splits:
            rows, places = np.unique(X[test], axis=0, return_inverse=True)
            model = refit(LSSVC(gamma=0.5, alpha=alpha), X, y, train)
            pooled[test] = model.decision_function(rows)[places.ravel()]
        assert loss == pytest.approx(1 - roc_auc_score(y, pooled), abs=1e-12)


FITTED = {
    "LSSVR": (LSSVR(gamma=0.5), "predict"),
    "LSSVC": (LSSVC(gamma=0.5), "decision_function"),
    "linear": (LSSVC("linear"), "decision_function"),
    "features": (LSSVC(RandomFeatures(RBF(0.5), 7)), "decision_function"),
    "calibrated": (LSSVC(gamma=0.5, calibration="sigmoid"), "predict_proba"),
    "centroid": (KernelFisherDiscriminant(gamma=0.5, threshold="centroid"), "decision_function"),
    "axes": (KernelFisherDiscriminant(gamma=0.5), "transform"),
    "adaptive": (AdaptiveKDA(gamma=0.5), "decision_function"),
}


@pytest.mark.parametrize("name", FITTED)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_fitted_models_give_equal_new_rows_equal_values(name, n_classes, form):
    estimator, method = FITTED[name]
    for seed in range(10):  # products of matrices round by the place of a row in some shapes only
        rng = np.random.default_rng(seed)
        n = int(rng.integers(10, 40))
        X, y = rng.integers(0, 2, (n, 3)) * 0.7, np.arange(n) % n_classes
        new = rng.integers(0, 2, (int(rng.integers(5, 23)), 3)) * 0.7
        values = getattr(estimator.fit(form(X), y), method)(form(new))
        places = np.unique(new, axis=0, return_inverse=True)[1].ravel()
        for place in range(places.max() + 1):
            assert (values[places == place] == values[places == place][0]).all()


def test_auc_ties_equal_rows_where_models_are_refitted_too():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, y = rng.integers(0, 2, (26, 3)) * 0.7, np.arange(26) % 2
        splits = [(np.append(train, train[0]), test) for train, test in skl.StratifiedKFold(4).split(X, y)]
        estimator = LSSVC(gamma=0.5, alpha=0.1)
        with pytest.warns(RefitWarning):
            actual = cross_val_score(estimator, X, y, cv=splits, scoring="roc_auc")
        for (train, test), score in zip(splits, actual, strict=True):
            rows, places = np.unique(X[test], axis=0, return_inverse=True)
            scores = refit(estimator, X, y, train).decision_function(rows)[places.ravel()]
            assert score == pytest.approx(roc_auc_score(y[test], scores.round(12)), abs=1e-12)


def test_values_with_confounds_tie_where_these_are_equal_too():
    X, y = lattice(1, n=60)
    C = np.random.default_rng(0).integers(0, 2, 60)
    values = LSSVC(gamma=0.5).fit(X, y, confounds=C).decision_function(X, confounds=C)
    rows, places = np.unique(np.column_stack([X, C]), axis=0, return_inverse=True)
    assert len(np.unique(values)) == len(rows)
    assert (values == values[np.unique(places.ravel(), return_index=True)[1]][places.ravel()]).all()


@pytest.mark.parametrize("levels", [1, 30])
def test_equal_rows_tie_where_their_confounds_are_equal_too(levels):
    X, y = lattice(1, n=60)
    C = np.random.default_rng(0).integers(0, 2, 60) + np.arange(60) % levels
    for in_score in (False, True):
        values = cross_val_predict(
            LSSVC(gamma=0.5), X, y, cv=5, method="decision_function", confounds=Confounds(C, in_score)
        )
        test = next(iter(skl.StratifiedKFold(5).split(X, y)))[1]
        same = test[(X[test] == X[test][0]).all(1)]
        assert len(same) > 1
        assert len(np.unique(values[same])) == len(np.unique(C[same]))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_equal_rows_are_found(form):
    X = np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0], [0.0, 0.0], [-0.0, 0.0], [3.0, 0.0]])
    assert equal_rows(form(X)).tolist() == [0, 1, 0, 3, 3, 5]
    assert equal_rows(form(X[[0, 1, 3, 5]])) is None
    assert equal_rows(form(X), np.arange(6.0)[:, None]) is None
    assert equal_rows(form(X)[[5, 0, 2]], np.array([[1.0], [2.0], [2.0]])).tolist() == [0, 1, 1]
    problem = Problem.of(Linear(), form(X), alpha=1.0, Q=np.ones((6, 1)))
    assert problem.first_equal(np.array([4, 0, 3, 2, 5])).tolist() == [0, 1, 0, 1, 4]
    assert problem.first_equal(np.array([4, 0])) is None


def test_rows_of_equal_sums_are_told_apart(monkeypatch):
    monkeypatch.setattr(rows_module, "_row_sums", lambda table: np.zeros(table.shape[0]))
    table = np.random.default_rng(3).integers(0, 2, (30, 3)).astype(float)
    expected = [int(np.flatnonzero((table == row).all(1))[0]) for row in table]
    for form in (np.asarray, sp.csr_array):
        assert equal_rows(form(table)).tolist() == expected
