"""Digits that differences would lose: extreme weights, targets far from zero, equal rows, tiny and constant fits.

Held-out values are compared with plain refits of the estimators (clone, fit, predict). The allowed difference is
max(1e-8, 1e3 eps cond(M)) of the size of the values.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import model_selection as skl
from sklearn.base import clone
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.metrics import r2_score, roc_auc_score

from foldless import LSSVC, LSSVR, FoldlessSearchCV, KernelFisherDiscriminant
from foldless.heldout.solution import Solution
from foldless.heldout.ties import equal_rows, first_equal
from foldless.model_selection import (
    cross_val_predict,
    cross_val_score,
    cross_validate,
    leave_pair_out_auc,
    nested_cross_validate,
    permutation_test_score,
)
from foldless.permutation.labelings import Fitted, Labelings, Solver
from foldless.readout.discriminant import Discriminant

FISHER = KernelFisherDiscriminant


def refits(estimator, X, y, splits, method, w=None):
    """Values of all tested rows by models fitted on the training parts, nan for rows that are not tested."""
    out = None
    for train, test in splits:
        weight = {} if w is None else {"sample_weight": w[train]}
        values = getattr(clone(estimator).fit(X[train], y[train], **weight), method)(X[test])
        out = np.full((len(y), *values.shape[1:]), np.nan) if out is None else out
        out[test] = values
    return out


def each_alone(n):
    return list(skl.LeaveOneOut().split(np.zeros((n, 1))))


def assert_near(actual, expected, tolerance):
    size = np.abs(expected).max()
    assert np.abs(actual - expected).max() <= tolerance * size, np.abs(actual - expected).max() / size


# -- one row carries nearly all the weight of its class ---------------------------------------------------------------

READOUTS = {
    "three classes": (FISHER(gamma=0.3), 3),
    "three classes, coefficients": (FISHER(gamma=0.3, penalty="coef"), 3),
    "three classes, no intercept": (FISHER(gamma=0.3, fit_intercept=False), 3),
    "three classes, linear": (FISHER("linear"), 3),
    "fisher": (FISHER(gamma=0.3, threshold="fisher"), 2),
    "centroid": (FISHER(gamma=0.3, threshold="centroid"), 2),
    "one against all": (LSSVC(gamma=0.3), 3),
}


def one_heavy_row(n_classes, small, large, n=30):
    X = np.random.default_rng(0).normal(size=(n, 3))
    y = np.arange(n) % n_classes
    w = np.where(y == 0, small, 1.0)
    w[0] = large
    return X, y, w


@pytest.mark.parametrize("name", READOUTS)
@pytest.mark.parametrize("size", [1e2, 1e4, 1e6])
def test_a_row_with_nearly_all_weight_of_its_class_is_left_out_as_by_a_refit(name, size):
    estimator, n_classes = READOUTS[name]
    X, y, w = one_heavy_row(n_classes, 1 / size, size)
    expected = refits(estimator, X, y, each_alone(30), "decision_function", w)
    actual = clone(estimator).fit(X, y, sample_weight=w).loo_decision_function()
    for row, other in zip(actual, expected, strict=True):
        assert_near(row, other, 1e-8)


@pytest.mark.parametrize("name", READOUTS)
def test_a_row_with_nearly_all_weight_in_single_precision(name):
    estimator, n_classes = READOUTS[name]
    X, y, w = one_heavy_row(n_classes, 1e-4, 1e4)
    X = X.astype(np.float32)
    expected = refits(estimator, X, y, each_alone(30), "decision_function", w)
    actual = clone(estimator).fit(X, y, sample_weight=w).loo_decision_function()
    for row, other in zip(actual, expected, strict=True):
        assert_near(row, other, 2e-3)


@pytest.mark.parametrize("name", READOUTS)
def test_a_heavy_row_in_folds(name):
    estimator, n_classes = READOUTS[name]
    X, y, w = one_heavy_row(n_classes, 1e-6, 1e6, n=60)
    splits = list(skl.StratifiedKFold(20, shuffle=True, random_state=1).split(X, y))
    result = cross_validate(estimator, X, y, cv=splits, params={"sample_weight": w}, scoring="accuracy")
    assert result["path"].kind == "one fit"
    actual = cross_val_predict(estimator, X, y, cv=splits, method="decision_function", params={"sample_weight": w})
    expected = refits(estimator, X, y, splits, "decision_function", w)
    for row, other in zip(actual, expected, strict=True):
        assert_near(row, other, 1e-8)


@pytest.mark.parametrize("threshold", ["fisher", "centroid"])
def test_a_heavy_row_in_pairs(threshold):
    estimator = FISHER(gamma=0.3, threshold=threshold)
    X, y, w = one_heavy_row(2, 1e-6, 1e6, n=16)
    wins = []
    for high in np.flatnonzero(y == 1):
        for low in np.flatnonzero(y == 0):
            train = np.delete(np.arange(16), [high, low])
            model = clone(estimator).fit(X[train], y[train], sample_weight=w[train])
            up, down = model.decision_function(X[[high, low]])
            wins.append((up > down) + 0.5 * (up == down))
    assert leave_pair_out_auc(estimator, X, y, params={"sample_weight": w}) == pytest.approx(np.mean(wins), abs=1e-12)


@pytest.mark.parametrize("name", ["three classes", "three classes, coefficients", "centroid", "fisher"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_heavy_row_under_permutations(name, dtype):
    estimator, n_classes = READOUTS[name]
    X, y, w = one_heavy_row(n_classes, 1e-4, 1e4, n=36)
    X = X.astype(dtype)
    splits = list(skl.KFold(12).split(X))
    result = permutation_test_score(
        estimator, X, y, cv=splits, n_permutations=12, params={"sample_weight": w}, random_state=3
    )
    assert result.path.kind == "one fit"
    rng = np.random.RandomState(3)
    for score in result.permutation_scores:
        labels = y[rng.permutation(36)]
        predicted = refits(estimator, X, labels, splits, "predict", w)
        assert score == pytest.approx(np.mean(predicted == labels), abs=1e-12)


@pytest.mark.parametrize("threshold", ["centroid", "loo"])
def test_a_heavy_row_inside_a_tuned_discriminant(threshold):
    X, y, w = one_heavy_row(2, 1e-5, 1e5, n=24)
    search = FoldlessSearchCV(FISHER(gamma=0.3, threshold=threshold), {"alpha": [0.1, 1.0, 10.0]}, criterion="press")
    splits = list(skl.StratifiedKFold(4).split(X, y))
    result = nested_cross_validate(search, X, y, cv=splits, params={"sample_weight": w})
    for (train, test), params, score in zip(splits, result.best_params, result.test_score, strict=True):
        alone = clone(search).fit(X[train], y[train], sample_weight=w[train])
        assert params == alone.best_params_
        assert score == pytest.approx(np.mean(alone.predict(X[test]) == y[test]), abs=1e-12)


# -- targets far from zero -------------------------------------------------------------------------------------------


def far_targets(offset, dtype="float64", n=200):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 5)).astype(dtype)
    return X, (offset + X[:, 0] + 0.3 * rng.normal(size=n)).astype(dtype)


REGRESSIONS = {
    "Ridge": Ridge(),
    "linear": LSSVR("linear"),
    "rbf": LSSVR(gamma=0.1),
    "coefficients": LSSVR(gamma=0.1, penalty="coef"),
    "all functions": LSSVR(gamma=0.1, penalty="coef", basis="all"),
}


@pytest.mark.parametrize("name", REGRESSIONS)
@pytest.mark.parametrize("cv", [skl.LeaveOneOut(), skl.KFold(20)], ids=["each alone", "folds"])
@pytest.mark.parametrize(("offset", "dtype"), [(1e5, "float32"), (1e13, "float64"), (-1e10, "float64")])
def test_predictions_keep_the_digits_that_targets_far_from_zero_leave_them(name, cv, offset, dtype):
    estimator = REGRESSIONS[name]
    X, y = far_targets(offset, dtype)
    actual = cross_val_predict(estimator, X, y, cv=cv)
    expected = np.empty_like(y)
    centre = y.mean()
    for train, test in cv.split(X):
        # as many digits as there are: targets about their mean, in double precision
        alone = clone(estimator).fit(X[train].astype(float), y[train].astype(float) - centre)
        if name == "all functions":
            continue
        expected[test] = alone.predict(X[test].astype(float)) + centre
    if name == "all functions":
        expected = cross_val_predict(estimator, X, y.astype(float) - centre, cv=cv) + centre
    spacing = np.spacing(np.abs(y).max())
    assert np.abs(actual - expected).max() <= 2 * spacing + (1e-3 if dtype == "float32" else 1e-8)
    assert r2_score(y, actual) == pytest.approx(r2_score(y, expected), abs=0.02)


def test_ridge_on_targets_far_from_zero_has_as_many_different_predictions_as_scikit_learn():
    X, y = far_targets(1e5, "float32")
    ours, theirs = (each(Ridge(), X, y, cv=skl.LeaveOneOut()) for each in (cross_val_predict, skl.cross_val_predict))
    assert abs(len(np.unique(ours)) - len(np.unique(theirs))) <= 10
    assert r2_score(y, ours) == pytest.approx(r2_score(y, theirs), abs=2e-3)


def test_a_search_on_targets_far_from_zero_chooses_as_on_centred_ones():
    X, y = far_targets(1e13)
    grid = {"alpha": np.logspace(-3, 3, 7).tolist()}
    for cv in (None, 10):
        far, near = (FoldlessSearchCV(LSSVR(gamma=0.1), grid, cv=cv).fit(X, t) for t in (y, y - 1e13))
        assert_near(far.cv_results_["mean_test_score"], near.cv_results_["mean_test_score"], 1e-8)
        assert far.best_params_ == near.best_params_


# -- equal rows ------------------------------------------------------------------------------------------------------


def lattice(seed, n=120, wide=3):
    rng = np.random.default_rng(seed)
    return rng.integers(0, wide, (n, 2)) * 1.0, np.arange(n) % 2


CLASSIFIERS = {
    "rbf": LSSVC(gamma=0.5, alpha=0.01),
    "coefficients": LSSVC(gamma=0.5, alpha=0.01, penalty="coef"),
    "all functions": LSSVC(gamma=0.5, alpha=0.01, penalty="coef", basis="all"),
    "linear": LSSVC("linear"),
    "fisher": FISHER(gamma=0.5, alpha=1e-4, threshold="fisher"),
    "centroid": FISHER(gamma=0.5, alpha=1e-4, threshold="centroid"),
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


@pytest.mark.parametrize("name", ["rbf", "coefficients", "linear", "centroid", "RidgeClassifier"])
@pytest.mark.parametrize("seed", range(4))
def test_auc_of_equal_rows_is_that_of_refits(name, seed):
    estimator, (X, y) = CLASSIFIERS[name], lattice(seed)
    cv = skl.StratifiedKFold(10, shuffle=True, random_state=0)
    actual = cross_val_score(estimator, X, y, cv=cv, scoring="roc_auc")
    expected = []
    for train, test in cv.split(X, y):
        rows, places = np.unique(X[test], axis=0, return_inverse=True)  # scores of different rows only: no rounding
        scores = clone(estimator).fit(X[train], y[train]).decision_function(rows)[places.ravel()]
        expected.append(roc_auc_score(y[test], scores))
    np.testing.assert_allclose(actual, expected, atol=1e-12)


@pytest.mark.parametrize("alpha", [1e-4, 1.0])
def test_auc_of_equal_rows_under_permutations(alpha):
    X, y = lattice(5, n=60)
    cv, estimator = list(skl.KFold(5, shuffle=True, random_state=0).split(X)), LSSVC(gamma=0.5, alpha=alpha)
    result = permutation_test_score(estimator, X, y, cv=cv, n_permutations=15, scoring="roc_auc", random_state=1)
    rng = np.random.RandomState(1)
    for score in result.permutation_scores:
        labels, aucs = y[rng.permutation(60)], []
        for train, test in cv:
            rows, places = np.unique(X[test], axis=0, return_inverse=True)
            scores = clone(estimator).fit(X[train], labels[train]).decision_function(rows)[places.ravel()]
            aucs.append(roc_auc_score(labels[test], scores))
        assert score == pytest.approx(np.mean(aucs), abs=1e-12)


def test_equal_rows_tie_in_pairs_and_in_the_criterion_of_a_search():
    X, y = lattice(2, n=40, wide=2)
    estimator, wins = LSSVC(gamma=0.5, alpha=1e-3), []
    for high in np.flatnonzero(y == 1):
        for low in np.flatnonzero(y == 0):
            train = np.delete(np.arange(40), [high, low])
            up, down = clone(estimator).fit(X[train], y[train]).decision_function(X[[high, low]])
            tie = (X[high] == X[low]).all()
            wins.append(0.5 if tie else float(up > down))
    assert leave_pair_out_auc(estimator, X, y) == pytest.approx(np.mean(wins), abs=1e-12)
    splits = list(skl.StratifiedKFold(4, shuffle=True, random_state=0).split(X, y))
    search = FoldlessSearchCV(estimator, {"alpha": [1e-3, 1.0]}, cv=splits, criterion="auc").fit(X, y)
    for alpha, score in zip([1e-3, 1.0], search.cv_results_["mean_test_score"], strict=True):
        pooled = np.empty(40)
        for train, test in splits:
            rows, places = np.unique(X[test], axis=0, return_inverse=True)
            model = LSSVC(gamma=0.5, alpha=alpha).fit(X[train], y[train])
            pooled[test] = model.decision_function(rows)[places.ravel()]
        assert -score == pytest.approx(1 - roc_auc_score(y, pooled), abs=1e-12)


def test_equal_rows_with_different_confounds_tie_unless_the_confounds_stay_in_the_score():
    X, y = lattice(1, n=60)
    C = np.random.default_rng(0).normal(size=60)
    for in_score in (False, True):
        values = cross_val_predict(
            LSSVC(gamma=0.5), X, y, cv=5, method="decision_function", confounds=C, confounds_in_score=in_score
        )
        test = next(iter(skl.StratifiedKFold(5).split(X, y)))[1]
        same = values[test[(X[test] == X[test][0]).all(1)]]
        assert len(same) > 1
        assert (len(np.unique(same)) == 1) != in_score


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_equal_rows_are_found(form):
    X = np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0], [0.0, 0.0], [-0.0, 0.0], [3.0, 0.0]])
    assert equal_rows(form(X)).tolist() == [0, 1, 0, 3, 3, 5]
    assert equal_rows(form(X[[0, 1, 3, 5]])) is None
    assert equal_rows(form(X), np.arange(6.0)[:, None]) is None
    assert first_equal(np.array([7, 4, 7, 4, 5])).tolist() == [0, 1, 0, 1, 4]
    assert first_equal(np.array([7, 4])) is None


# -- rows of tiny weight ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("n_features", [3, 70])
@pytest.mark.parametrize("make", [Ridge, lambda **options: LSSVR("linear", **options)], ids=["Ridge", "LSSVR"])
@pytest.mark.parametrize("order", ["light first", "heavy first"])
def test_rows_of_tiny_weight_are_predicted_as_by_refits(make, n_features, intercept, order):
    rng, n = np.random.default_rng(0), 400
    X = rng.normal(size=(n, n_features))
    y = X[:, 0] + 0.3 * rng.normal(size=n) + 5
    w = np.exp(-(n - 1 - np.arange(n)) / 5)
    w = w if order == "light first" else w[::-1].copy()
    cv, estimator = skl.KFold(40, shuffle=True, random_state=0), make(fit_intercept=intercept)
    params = {"sample_weight": w}
    actual = cross_val_predict(estimator, X, y, cv=cv, params=params)
    assert_near(actual, skl.cross_val_predict(estimator, X, y, cv=cv, params=params), 1e-8)
    one = cross_val_predict(estimator, X, y, cv=skl.LeaveOneOut(), params=params)
    assert_near(one, skl.cross_val_predict(estimator, X, y, cv=skl.LeaveOneOut(), params=params), 1e-8)


def test_rows_of_tiny_weight_with_confounds():
    rng, n = np.random.default_rng(0), 90
    X, C = rng.normal(size=(n, 2)), rng.normal(size=(n, 2))
    y, w = X[:, 0] + C[:, 1] + 0.1 * rng.normal(size=n) + 5, np.exp(-np.arange(n) / 2.0)
    splits = list(skl.KFold(30).split(X))
    actual = cross_val_predict(LSSVR("linear"), X, y, cv=splits, params={"sample_weight": w}, confounds=C)
    expected = np.empty(n)
    for train, test in splits:
        model = LSSVR("linear").fit(X[train], y[train], sample_weight=w[train], confounds=C[train])
        expected[test] = model.predict(X[test])
    assert_near(actual, expected, 1e-8)


# -- fits that are tiny, or next to constant -------------------------------------------------------------------------


def apart(n=60):
    rng, y = np.random.default_rng(0), np.arange(n) % 2
    return rng.normal(size=(n, 2)) * 0.6 + np.column_stack([3 * y, 0 * y]), y


NARROW = {
    "rkhs": LSSVC(gamma=1000, fit_intercept=False),
    "coefficients": LSSVC(gamma=1000, fit_intercept=False, penalty="coef"),
    "weak": LSSVC(gamma=0.1, alpha=1e14, fit_intercept=False),
    "linear, weak": LSSVC("linear", alpha=1e15, fit_intercept=False),
    "fisher": FISHER(gamma=1000, fit_intercept=False),
}


@pytest.mark.parametrize("name", NARROW)
def test_tiny_decisions_keep_their_digits(name):
    (X, y), estimator = apart(), NARROW[name]
    expected = refits(estimator, X, y, each_alone(60), "decision_function")
    actual = clone(estimator).fit(X, y).loo_decision_function()
    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-300)
    splits = list(skl.StratifiedKFold(20).split(X, y))
    actual = cross_val_predict(estimator, X, y, cv=splits, method="decision_function")
    np.testing.assert_allclose(actual, refits(estimator, X, y, splits, "decision_function"), rtol=1e-6, atol=1e-300)


def test_tiny_decisions_of_all_functions_keep_their_signs():
    X, y = apart()
    estimator = LSSVC(gamma=1000, fit_intercept=False, penalty="coef", basis="all")
    assert clone(estimator).fit(X, y).loo_score_ == clone(NARROW["coefficients"]).fit(X, y).loo_score_ == 1.0


def test_tiny_decisions_in_searches_pairs_and_permutations():
    X, y = apart()
    estimator = NARROW["rkhs"]
    search = FoldlessSearchCV(estimator, {"alpha": [0.1, 1.0]}, criterion="error").fit(X, y)
    assert (search.cv_results_["mean_test_score"] == 0).all()
    assert leave_pair_out_auc(estimator, X, y) == 1.0
    result = permutation_test_score(estimator, X, y, cv=20, n_permutations=5)
    assert result.score == np.mean(refits(estimator, X, y, skl.StratifiedKFold(20).split(X, y), "predict") == y)


@pytest.mark.parametrize("estimator", [LSSVC(gamma=1e6), FISHER(gamma=1e6, threshold="centroid"), LSSVR(gamma=1e6)])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_constant_fits_tell_nothing_of_the_labels(estimator, dtype):
    X = np.random.default_rng(0).normal(size=(60, 3)).astype(dtype)
    y = np.arange(60) % 2 if not isinstance(estimator, LSSVR) else np.random.default_rng(1).normal(size=60)
    cv = skl.KFold(6)
    method = "predict" if isinstance(estimator, LSSVR) else "decision_function"
    values = cross_val_predict(estimator, X, y, cv=cv, method=method)
    for _, test in cv.split(X):
        assert len(np.unique(values[test])) == 1
    if method == "decision_function":
        assert (cross_val_score(estimator, X, y, cv=cv, scoring="roc_auc") == 0.5).all()
        result = permutation_test_score(estimator, X, y, cv=cv, scoring="roc_auc", n_permutations=10)
        assert (result.permutation_scores == 0.5).all()
        search = FoldlessSearchCV(estimator, {"alpha": [1.0]}, cv=cv, criterion="auc").fit(X, y)
        pooled = cross_val_predict(LSSVC(gamma=1e6), X, y, cv=cv, method="decision_function")
        assert -search.best_score_ == pytest.approx(1 - roc_auc_score(y, pooled), abs=1e-12)


# -- weak axes ---------------------------------------------------------------------------------------------------------


def weak_decisions(K, y, w, alpha, train, test, *, intercept, coef=False):
    """Decisions of a discriminant at a penalty far above the kernel, in extended precision.

    A = (Y - g - mean) / alpha, g = S A, repeated, is the solution; a2 are eigenvalues of the class sums of g.
    """
    K, w = np.asarray(K, np.longdouble), np.asarray(w, np.longdouble)[train, None]
    Y = np.eye(y.max() + 1, dtype=K.dtype)[y[train]]
    S, s = K[np.ix_(train, train)], K[np.ix_(test, train)]
    S, s = (S @ S.T, s @ S.T) if coef else (S, s)

    def centred(values, own):
        return values - (w * own).sum(0) / w.sum() if intercept else values

    beta = np.zeros_like(Y)
    for _ in range(8):
        residual = Y - S @ beta
        beta = w * centred(residual, residual) / alpha
    g, new = S @ beta, s @ beta
    g, new = centred(g, g), centred(new, g)
    mass, V = (w * Y).sum(0), (w * Y).T @ g
    root = np.sqrt(mass)
    size = np.abs(V).max()
    a2, vectors = np.linalg.eigh(np.asarray((V + V.T) / 2 / size / np.outer(root, root), float))
    kept = slice(int(intercept), None)  # the constant comes out as the smallest, 0
    a2 = a2[kept] * size
    scalings = vectors[:, kept] / root[:, None] / np.sqrt(a2 * (1 - a2))
    z, centroids = new @ scalings, V @ scalings / mass[:, None]
    return np.asarray(-w.sum() / 2 * ((z[:, None] - centroids) ** 2).sum(-1), float)


def far_rows(c=3, n=45, seed=0):
    """Classes beside each other, the last five rows far from all others; weights."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % c
    X = rng.normal(size=(n, 4)) + 2 * rng.normal(size=(c, 4))[y]
    X[-5:] *= 1e3
    return X, y, rng.uniform(0.5, 2, n)


def worst(found, expected):
    """Largest error relative to the size of its row."""
    return (np.abs(found - expected).max(1) / np.abs(expected).max(1)).max()


@pytest.mark.parametrize("options", [{}, {"penalty": "coef"}, {"fit_intercept": False}], ids=str)
@pytest.mark.parametrize("c", [3, 4])
def test_rows_far_from_a_discriminant_of_weak_axes(c, options):
    X, y, w = far_rows(c)
    coef, intercept = "penalty" in options, options.get("fit_intercept", True)
    alpha = 1e15 if coef else 1e12
    model = FISHER("linear", alpha=alpha, **options)

    def expected(train, test):
        return weak_decisions(X @ X.T, y, w, alpha, train, test, intercept=intercept, coef=coef)

    near, far = np.arange(40), np.arange(40, 45)
    found = clone(model).fit(X[near], y[near], sample_weight=w[near]).decision_function(X[far])
    assert worst(found, expected(near, far)) < (1e-7 if intercept else 1e-12)

    rows = np.arange(41)  # one of them, left out
    loo = clone(model).fit(X[rows], y[rows], sample_weight=w[rows]).loo_decision_function()[40:]
    assert worst(loo, expected(near, rows[40:])) < 1e-7

    fold = clone(model).fit(X, y, sample_weight=w)._loo().part(near)
    found = Discriminant(c, centred=intercept).scores(fold.fits(far), fold.moments())
    assert worst(found, expected(near, far)) < 1e-7


@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
def test_weak_axes_without_an_intercept_keep_all_digits(penalty):
    X, y, w = far_rows(4)
    X, y, w = X[:40], y[:40], w[:40]
    K = np.exp(-0.1 * np.square(X[:, None] - X).sum(-1))
    model = FISHER(gamma=0.1, alpha=1e10, penalty=penalty, fit_intercept=False).fit(X, y, sample_weight=w)
    folds = skl.KFold(4)
    found = cross_val_predict(model, X, y, cv=folds, method="decision_function", params={"sample_weight": w})
    for splits, values in ((folds.split(X), found), (each_alone(len(y)), model.loo_decision_function())):
        for train, test in splits:
            expected = weak_decisions(K, y, w, 1e10, train, test, intercept=False, coef=penalty == "coef")
            assert worst(values[test], expected) < 1e-12


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_class_sums_of_weak_axes_under_permutations(weighted, intercept):
    X, y, w = far_rows(4)
    model = FISHER("rbf", gamma=0.1, alpha=1e10, fit_intercept=intercept).fit(
        X, y, sample_weight=w if weighted else None
    )
    task = model._fitted_task
    orders = np.stack([np.random.default_rng(seed).permutation(len(y)) for seed in range(3)])
    fitted = Fitted(Solver(task.problem), Labelings.of(task, orders))
    train = np.arange(5, 45)
    for part in (fitted.solution, fitted.part(train)):
        found = fitted.moments(part).V
        for order, V in zip(orders, found, strict=True):
            alone = Solution(task.problem, part.rows, task.Y[order][part.rows]).moments().V
            assert np.abs(V - alone).max() < 1e-11 * np.abs(alone).max()
