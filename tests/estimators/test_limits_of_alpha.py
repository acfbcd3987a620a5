"""At the limits of alpha the models are those they are known to become."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, LeaveOneOut, StratifiedKFold
from sklearn.model_selection import cross_val_predict as by_refit

from foldless import LSSVC, LSSVR, KernelFisherDiscriminant
from foldless.model_selection import cross_val_predict
from support.extremes import EPS, GAMMA, condition, design, every_kernel, every_penalty, gram
from support.tolerances import assert_near


@every_kernel
@every_penalty
@pytest.mark.parametrize("rows", ["few features", "more features than rows"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.filterwarnings("ignore::foldless._engine.heldout.caution.HugePenaltyWarning")
def test_a_huge_alpha_leaves_the_mean_of_the_other_rows(kernel, penalty, rows, weighted):
    X, two, three, values = design(rows)
    n = len(X)
    w = np.random.default_rng(54).uniform(0.2, 3.0, n) if weighted else np.ones(n)
    weights = {"sample_weight": w} if weighted else {}
    parameters = {"kernel": kernel, "gamma": GAMMA, "alpha": 1e14, "penalty": penalty}
    others = (w - np.diag(w)) / (w.sum() - w)[:, None]  # row i: shares of all rows but i

    assert_near(LSSVR(**parameters).fit(X, values, **weights).loo_predict(), others @ values, 1e-8)
    assert_near(LSSVR(**parameters).fit(X, values, **weights).predict(X), np.full(n, w @ values / w.sum()), 1e-8)
    sides = others @ (2.0 * two - 1)
    assert_near(LSSVC(**parameters).fit(X, two, **weights).loo_decision_function(), sides, 1e-8)
    model = KernelFisherDiscriminant(threshold="pm1", **parameters).fit(X, two, **weights)
    assert_near(model.loo_decision_function(), sides, 1e-8)
    in_classes = others @ (2.0 * np.eye(3)[three] - 1)
    assert_near(LSSVC(**parameters).fit(X, three, **weights).loo_decision_function(), in_classes, 1e-8)


@pytest.mark.filterwarnings("ignore::foldless._engine.heldout.caution.HugePenaltyWarning")
def test_without_an_intercept_a_huge_alpha_leaves_nothing():
    X, two, _, values = design("few features")
    assert_near(LSSVR(alpha=1e14, fit_intercept=False).fit(X, values).loo_predict(), np.zeros(len(X)), 1e-8)
    assert_near(LSSVC(alpha=1e14, fit_intercept=False).fit(X, two).loo_decision_function(), np.zeros(len(X)), 1e-8)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_huge_alpha_makes_discriminants_a_nearest_mean_rule(n_classes):
    X, two, three, _ = design("few features")
    y, n, alpha = (two if n_classes == 2 else three), len(X), 1e7
    model = KernelFisherDiscriminant("linear", alpha=alpha, threshold="centroid").fit(X, y)

    def nearest_mean(train, rows):
        means = np.array([X[train][y[train] == k].mean(0) for k in range(n_classes)])
        decision = -0.5 * len(train) / alpha * cdist(X[rows], means, "sqeuclidean")
        return decision[:, 1] - decision[:, 0] if n_classes == 2 else decision - decision.mean(1, keepdims=True)

    def centred(decision):
        return decision if n_classes == 2 else decision - decision.mean(1, keepdims=True)

    everything = np.arange(n)
    expected = nearest_mean(everything, everything)
    assert_near(centred(model.decision_function(X)), expected, 1e-4, size=0)
    expected = np.concatenate([nearest_mean(np.delete(everything, i), [i]) for i in range(n)])
    assert_near(centred(model.loo_decision_function()), expected, 1e-4, size=0)


def least_squares(X, y, train, rows, weights=None, intercept=True):
    """Predictions at ``rows`` of ordinary (weighted) least squares on ``train``."""
    Z = np.column_stack([np.ones(len(X)), X]) if intercept else X
    root = np.ones(len(X)) if weights is None else np.sqrt(weights)
    beta = np.linalg.lstsq(root[train, None] * Z[train], root[train] * y[train], rcond=None)[0]
    return Z[rows] @ beta


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weights", ["none", "positive", "some zero"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize(("size", "alpha"), [(1.0, 1e-10), (1e5, 1.0), (1e150, 1.0)])
@pytest.mark.parametrize("shape", [(40, 4), (20, 9)])
def test_a_tiny_alpha_leaves_ordinary_least_squares(shape, size, alpha, form, weights, intercept):
    rng = np.random.default_rng(55)
    n, d = shape
    X = rng.normal(size=shape) + 0.5
    y = X @ rng.normal(size=d) + rng.normal(size=n) + 3
    w = None if weights == "none" else rng.uniform(0.5, 2.0, n)
    if weights == "some zero":
        w[[2, 9]] = 0.0
    model = LSSVR("linear", alpha=alpha, fit_intercept=intercept).fit(form(X * size), y, sample_weight=w)
    everything = np.arange(n)
    splits = list(KFold(4, shuffle=True, random_state=0).split(X))

    def held_out(pairs):
        out = np.empty(n)
        for train, test in pairs:
            out[test] = least_squares(X, y, train, test, w, intercept)
        return out

    assert_near(model.loo_predict(), held_out((np.delete(everything, i), [i]) for i in range(n)), 1e-7)
    params = None if w is None else {"sample_weight": w}
    assert_near(cross_val_predict(model, form(X * size), y, cv=splits, params=params), held_out(splits), 1e-7)
    assert_near(model.predict(form(X * size)), least_squares(X, y, everything, everything, w, intercept), 1e-7)


def test_two_folds_are_as_exact_as_many_at_a_tiny_alpha():
    """Two folds are solved one by one, many from P: both must be least squares."""
    rng = np.random.default_rng(56)
    X = rng.normal(size=(40, 4))
    y = X @ rng.normal(size=4) + rng.normal(size=40)
    for n_folds in (2, 3, 10, 20):
        splits = list(KFold(n_folds).split(X))
        expected = np.concatenate([least_squares(X, y, train, test) for train, test in splits])
        assert_near(cross_val_predict(LSSVR("linear", alpha=1e-10), X, y, cv=splits), expected, 1e-7)


@pytest.mark.parametrize(("size", "alpha"), [(1.0, 1e-10), (1e5, 1.0)])
def test_prediction_intervals_at_a_tiny_alpha_are_those_of_least_squares(size, alpha):
    rng = np.random.default_rng(64)
    n, n_new, coverage = 40, 5, 0.8
    X = rng.normal(size=(n + n_new, 4))
    y = X @ rng.normal(size=4) + rng.normal(size=n + n_new)
    ends = []
    for i in range(n):
        fits = least_squares(X, y, np.delete(np.arange(n), i), np.r_[i, n : n + n_new])
        ends.append(fits[1:, None] + np.array([-1, 1]) * abs(y[i] - fits[0]))
    ends = np.sort(ends, axis=0)
    rank = int(np.ceil(coverage * (n + 1)))
    expected = np.column_stack([ends[n - rank, :, 0], ends[rank - 1, :, 1]])
    model = LSSVR("linear", alpha=alpha).fit(X[:n] * size, y[:n])
    assert_near(model.predict_interval(X[n:] * size, coverage=coverage), expected, 1e-7)


@pytest.mark.many_cases
@pytest.mark.parametrize("alpha", [1e-8, 1e-4, 1.0, 1e4, 1e8])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("rows", ["few features", "more features than rows", "constant features"])
@pytest.mark.parametrize("outputs", [1, 2])
def test_linear_regression_is_ridge(alpha, intercept, rows, outputs):
    X, _, _, y = design(rows)
    y = y if outputs == 1 else np.column_stack([y, y**2])
    tolerance = max(1e-8, 100 * EPS * condition(X @ X.T, "rkhs", alpha)) if X.shape[1] >= len(X) else 1e-8
    ridge = Ridge(alpha=alpha, fit_intercept=intercept, solver="svd")
    model = LSSVR("linear", alpha=alpha, fit_intercept=intercept).fit(X, y)
    assert_near(model.predict(X), ridge.fit(X, y).predict(X), tolerance)
    assert_near(model.coef_, ridge.coef_, tolerance)
    assert_near(model.intercept_, np.broadcast_to(ridge.intercept_, np.shape(model.intercept_)), tolerance)
    assert_near(model.loo_predict(), by_refit(ridge, X, y, cv=LeaveOneOut()), tolerance)
    assert_near(cross_val_predict(model, X, y, cv=KFold(3)), by_refit(ridge, X, y, cv=KFold(3)), tolerance)


@pytest.mark.parametrize("alpha", [1e-6, 1.0, 1e6])
@every_kernel
def test_regression_without_intercept_is_kernel_ridge(alpha, kernel):
    X, _, _, y = design("duplicated rows")
    tolerance = max(1e-8, 100 * EPS * condition(gram(X, kernel), "rkhs", alpha))
    ridge = KernelRidge(kernel=kernel, gamma=GAMMA, alpha=alpha).fit(X, y)
    model = LSSVR(kernel, gamma=GAMMA, alpha=alpha, fit_intercept=False).fit(X, y)
    assert_near(model.predict(X), ridge.predict(X), tolerance)
    assert_near(model.loo_predict(), by_refit(ridge, X, y, cv=LeaveOneOut()), tolerance)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("sizes", ["equal", "unequal"])
@pytest.mark.parametrize("alpha", [1e-10, 1e-8])
def test_a_tiny_alpha_leaves_linear_discriminant_analysis(n_classes, sizes, alpha):
    rng = np.random.default_rng(57)
    share = np.array([10, 20, 30])[:n_classes] if sizes == "unequal" else np.full(n_classes, 20)
    y = np.repeat(np.arange(n_classes), share)
    mixing = np.eye(4) + 0.2 * rng.normal(size=(4, 4))
    X = rng.normal(size=(len(y), 4)) @ mixing + rng.normal(size=(n_classes, 4))[y]
    priors = share / share.sum()
    model = KernelFisherDiscriminant("linear", alpha=alpha, threshold="centroid", priors=priors).fit(X, y)
    lda = LinearDiscriminantAnalysis(solver="lsqr", priors=priors).fit(X, y)

    def centred(decision):
        return decision if n_classes == 2 else decision - decision.mean(1, keepdims=True)

    assert_near(centred(model.decision_function(X)), centred(lda.decision_function(X)), 1e-7)
    np.testing.assert_array_equal(model.predict(X), lda.predict(X))
    # folds that keep the shares of the classes: scikit-learn weighs the covariances by the priors
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    found = cross_val_predict(model, X, y, cv=folds, method="decision_function")
    assert_near(centred(found), centred(by_refit(lda, X, y, cv=folds, method="decision_function")), 1e-7)
    if sizes == "equal":  # the other solver divides by n - c instead of n: the rule is the same for equal priors
        np.testing.assert_array_equal(model.predict(X), LinearDiscriminantAnalysis(solver="svd").fit(X, y).predict(X))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [False, True])
def test_training_parts_without_rows_to_spare_keep_their_digits_at_a_tiny_alpha(dtype, weighted):
    # Gram matrices of 12 rows have rank 6, those of training parts are regular: P is of the size 1 / alpha, theirs not.
    rng = np.random.default_rng(5)
    X, C, y = rng.normal(size=(12, 6)), rng.normal(size=(12, 2)), rng.normal(size=(12, 2))
    params = {"sample_weight": rng.uniform(1.0, 3.0, 12)} if weighted else {}
    cv = KFold(2, shuffle=True, random_state=0)
    for alpha in 10.0 ** np.arange(-13, -8) if dtype == np.float64 else 10.0 ** np.arange(-9, -3):
        model = LSSVR("poly", degree=1, coef0=0.0, gamma=0.1, alpha=alpha)
        actual = cross_val_predict(model, X.astype(dtype), y, cv=cv, params=params, confounds=C)
        for train, test in cv.split(X):
            own = {name: values[train] for name, values in params.items()}
            part = LSSVR("linear", alpha=alpha / 0.1).fit(X[train], y[train], confounds=C[train], **own)
            expected = part.predict(X[test], confounds=C[test])
            np.testing.assert_allclose(actual[test], expected, atol=1e-7 if dtype == np.float64 else 1e-3)
