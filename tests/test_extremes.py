"""Ends of the range: tiny and huge penalties and features, duplicated, constant, one-hot and outlying rows, two rows.

Held-out values are compared with refits, by the estimators themselves and by code that shares nothing with them
(``foldless.reference``, ``numpy.linalg.lstsq``, scikit-learn). The allowed difference is max(1e-8, 100 eps cond(M)) of
the size of the values, which is that of the targets at least.
"""

from functools import cache

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
from foldless.reference import discriminant, heldout_fits

EPS = np.finfo(float).eps
GAMMA = 0.1
KINDS = {
    "LSSVC, two classes": (LSSVC, {}, 2),
    "LSSVC, three classes": (LSSVC, {}, 3),
    "LSSVR": (LSSVR, {}, 0),
    "Fisher, two classes": (KernelFisherDiscriminant, {"threshold": "fisher"}, 2),
    "Fisher, two centroids": (KernelFisherDiscriminant, {"threshold": "centroid"}, 2),
    "Fisher, three classes": (KernelFisherDiscriminant, {}, 3),
}
EACH_KIND = pytest.mark.parametrize("kind", KINDS)
EACH_KERNEL = pytest.mark.parametrize("kernel", ["linear", "rbf"])
EACH_PENALTY = pytest.mark.parametrize("penalty", ["rkhs", "coef"])


@cache
def design(name):
    """(X, codes of two classes, codes of three classes, values)."""
    rng = np.random.default_rng(50)
    n = 16
    X = {
        "few features": lambda: rng.normal(size=(n, 4)),
        "duplicated rows": lambda: np.repeat(rng.normal(size=(n // 2, 4)), 2, axis=0),
        "more features than rows": lambda: rng.normal(size=(n, 40)),
        "constant features": lambda: np.hstack([rng.normal(size=(n, 3)), np.full((n, 1), 3.0), np.zeros((n, 1))]),
        "nothing but constants": lambda: np.full((n, 3), 2.5),
        "all of these": lambda: np.hstack([np.repeat(rng.normal(size=(n // 2, 35)), 2, axis=0), np.full((n, 5), -7.0)]),
    }[name]()
    codes = rng.permutation(n)
    return X, codes % 2, codes % 3, X[:, 0] + rng.normal(size=n)


def case(kind, X, two, three, values, **parameters):
    """The estimator, its y, and the method with continuous values."""
    cls, own, n_classes = KINDS[kind]
    y = {0: values, 2: two, 3: three}[n_classes]
    return cls(**own, **parameters), y, "decision_function" if n_classes else "predict"


def loo_values(model):
    return model.loo_predict() if isinstance(model, LSSVR) else model.loo_decision_function()


def gram(X, kernel, gamma=GAMMA):
    return X @ X.T if kernel == "linear" else np.exp(-gamma * cdist(X, X, "sqeuclidean"))


def condition(K, penalty, alpha):
    S = K if penalty == "rkhs" else K @ K.T
    return np.linalg.cond(S + alpha * np.eye(len(K)))


def assert_near(found, expected, tolerance, size=1.0):
    """Within ``tolerance`` of the largest value, or of ``size``."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    assert np.isfinite(found).all()
    worst, scale = np.abs(found - expected).max(), max(size, np.abs(expected).max())
    assert worst <= tolerance * scale, f"differs by {worst:.3g}, allowed {tolerance * scale:.3g}"


def targets(y, n_classes):
    """The regression targets of LSSVC and LSSVR."""
    if not n_classes:
        return y[:, None]
    Y = 2.0 * np.eye(n_classes)[y] - 1
    return Y[:, 1:] if n_classes == 2 else Y


# -- any alpha, any shape ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [1e-12, 1e-6, 1.0, 1e6, 1e12])
@pytest.mark.parametrize(
    "rows",
    [
        "few features",
        "duplicated rows",
        "more features than rows",
        "constant features",
        "nothing but constants",
        "all of these",
    ],
)
@EACH_KERNEL
@EACH_PENALTY
@EACH_KIND
def test_heldout_values_are_those_of_refits(kind, penalty, kernel, rows, alpha):
    X, *ys = design(rows)
    model, y, method = case(kind, X, *ys, kernel=kernel, gamma=GAMMA, alpha=alpha, penalty=penalty)
    K = gram(X, kernel)
    tolerance = max(1e-8, 100 * EPS * condition(K, penalty, alpha))
    folds = KFold(5, shuffle=True, random_state=0)

    loo = loo_values(model.fit(X, y))
    assert_near(loo, by_refit(model, X, y, cv=LeaveOneOut(), method=method), tolerance)
    assert_near(cross_val_predict(model, X, y, cv=LeaveOneOut(), method=method), loo, 1e-12)
    in_folds = cross_val_predict(model, X, y, cv=folds, method=method)
    assert_near(in_folds, by_refit(model, X, y, cv=folds, method=method), tolerance)

    labels = loo if isinstance(model, LSSVR) else model.classes_[loo.argmax(1) if loo.ndim == 2 else 1 * (loo > 0)]
    np.testing.assert_array_equal(model.loo_predict(), labels)

    # the decisions of a discriminant are no fits; beyond all digits the oracle has none either
    if not isinstance(model, KernelFisherDiscriminant) and tolerance < 1:
        Y = targets(y, KINDS[kind][2])
        for found, splits in ((loo, LeaveOneOut()), (in_folds, folds)):
            fits = np.empty_like(Y)
            for train, test in splits.split(X):
                fits[test] = heldout_fits(K, Y, train, test, alpha, penalty=penalty)
            assert_near(found.reshape(Y.shape), fits, tolerance)


@pytest.mark.parametrize("alpha", [1e-8, 1e-4, 1.0, 1e4])
@pytest.mark.parametrize("rows", ["few features", "more features than rows"])
@EACH_KERNEL
@pytest.mark.parametrize("n_classes", [2, 3])
def test_discriminants_are_those_of_the_eigenproblem(n_classes, kernel, rows, alpha):
    """With separated classes the decisions grow like 1 / alpha."""
    X, two, three, _ = design(rows)
    y, n, K = (two if n_classes == 2 else three), len(X), gram(X, kernel)
    model = KernelFisherDiscriminant(kernel, gamma=GAMMA, alpha=alpha, threshold="centroid").fit(X, y)
    tolerance = max(1e-8, 100 * EPS * (1 + np.linalg.norm(K, 2) / alpha))  # the condition of S_w + alpha I

    def oracle(train, test):
        decision = discriminant(K, y, train, test, alpha)[2]
        return decision[:, 1] - decision[:, 0] if n_classes == 2 else decision

    everything = np.arange(n)
    assert_near(model.decision_function(X), oracle(everything, everything), tolerance)
    expected = np.concatenate([oracle(np.delete(everything, i), [i]) for i in range(n)])
    assert_near(model.loo_decision_function(), expected, tolerance)


@EACH_KIND
@pytest.mark.parametrize("alpha", [1e-12, 1e-8])
def test_basis_functions_left_out_at_the_end_of_precision_give_numbers_or_an_error_of_ours(kind, alpha):
    """No digit is promised at such a condition, and no warning of a library below is understood there."""
    X, *ys = design("duplicated rows")
    X = 30 * np.hstack([X, np.random.default_rng(63).normal(size=(len(X) // 2, 36)).repeat(2, axis=0)])
    model, y, method = case(kind, X, *ys, kernel="linear", alpha=alpha, penalty="coef")
    try:
        found = cross_val_predict(model, X, y, cv=KFold(6, shuffle=True, random_state=0), method=method)
    except ValueError as error:
        assert "alpha" in str(error)  # noqa: PT017
    else:
        assert np.isfinite(found).all()


@EACH_KIND
@EACH_KERNEL
def test_labels_do_not_depend_on_a_huge_alpha_where_they_have_settled(kind, kernel):
    """From one huge alpha to the next the decisions shrink, and the labels stay."""
    X, *ys = design("few features")
    labels = []
    for alpha in (1e7, 1e8, 1e9):
        model, y, _ = case(kind, X, *ys, kernel=kernel, gamma=GAMMA, alpha=alpha)
        labels.append(model.fit(X, y).loo_predict())
    if isinstance(model, LSSVR):
        assert_near(labels[0], labels[2], 1e-5)
    else:
        np.testing.assert_array_equal(labels[0], labels[1])
        np.testing.assert_array_equal(labels[1], labels[2])


@pytest.mark.parametrize("alpha", [1e-12, 1e-3, 1e3])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_explained_variance_is_a_share_however_well_the_classes_separate(kernel, alpha):
    rng = np.random.default_rng(51)
    X, y = 30 * rng.normal(size=(18, 40)), np.arange(18) % 3
    model = KernelFisherDiscriminant(kernel, gamma=1e-5, alpha=alpha).fit(X, y)
    assert np.isfinite(model.explained_variance_ratio_).all()
    assert model.explained_variance_ratio_.sum() == pytest.approx(1.0)
    np.testing.assert_array_equal(model.predict(X), y)


# -- features of any size ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e150, 1e-150])
@pytest.mark.parametrize("rows", ["few features", "more features than rows", "all of these"])
@pytest.mark.parametrize("alpha", [1e-3, 1.0])
@EACH_KIND
def test_linear_kernels_of_scaled_features_with_scaled_alpha(kind, alpha, rows, size):
    X, *ys = design(rows)
    model, y, method = case(kind, X, *ys, kernel="linear", alpha=alpha)
    scaled, _, _ = case(kind, X, *ys, kernel="linear", alpha=alpha * size**2)
    model.fit(X, y)
    scaled.fit(X * size, y)
    assert_near(loo_values(scaled), loo_values(model), 1e-8)
    assert_near(getattr(scaled, method)(X * size), getattr(model, method)(X), 1e-8)
    folds = KFold(6)
    assert_near(
        cross_val_predict(scaled, X * size, y, cv=folds, method=method),
        cross_val_predict(model, X, y, cv=folds, method=method),
        1e-8,
    )


@pytest.mark.parametrize("size", [1e70, 1e-70])
@pytest.mark.parametrize("rows", ["few features", "more features than rows"])
@EACH_KIND
def test_linear_kernels_of_scaled_features_with_scaled_alpha_and_penalised_coefficients(kind, rows, size):
    X, *ys = design(rows)
    model, y, method = case(kind, X, *ys, kernel="linear", alpha=1.0, penalty="coef")
    scaled, _, _ = case(kind, X, *ys, kernel="linear", alpha=size**4, penalty="coef")
    model.fit(X, y)
    scaled.fit(X * size, y)
    assert_near(loo_values(scaled), loo_values(model), 1e-8)
    assert_near(getattr(scaled, method)(X * size), getattr(model, method)(X), 1e-8)


@pytest.mark.parametrize("size", [1e150, 1e-150])
@EACH_PENALTY
@EACH_KIND
def test_rbf_kernels_of_scaled_features_with_scaled_gamma(kind, penalty, size):
    X, *ys = design("few features")
    model, y, method = case(kind, X, *ys, gamma=GAMMA, penalty=penalty)
    scaled, _, _ = case(kind, X, *ys, gamma=GAMMA / size**2, penalty=penalty)
    by_scale, _, _ = case(kind, X, *ys, gamma="scale", penalty=penalty)
    expected = loo_values(model.fit(X, y))
    assert_near(loo_values(scaled.fit(X * size, y)), expected, 1e-8)
    assert_near(loo_values(by_scale.fit(X * size, y)), loo_values(by_scale.fit(X, y)), 1e-8)
    assert_near(getattr(scaled, method)(X * size), getattr(model, method)(X), 1e-8)


@pytest.mark.parametrize("size", [1e-200, 1e150, 1e200, 1e300])
@EACH_KERNEL
@EACH_PENALTY
def test_targets_of_any_size_give_predictions_of_that_size(kernel, penalty, size):
    X, _, _, y = design("few features")
    y = y / np.abs(y).max()
    model, scaled = (LSSVR(kernel, gamma=GAMMA, penalty=penalty).fit(X, values) for values in (y, y * size))
    assert_near(scaled.predict(X) / size, model.predict(X), 1e-10)
    assert_near(scaled.loo_predict() / size, model.loo_predict(), 1e-10)
    folds = KFold(5)
    assert_near(
        cross_val_predict(scaled, X, y * size, cv=folds) / size, cross_val_predict(model, X, y, cv=folds), 1e-10
    )


@pytest.mark.parametrize("size", [1e-100, 1e100])
@EACH_KERNEL
@EACH_PENALTY
@EACH_KIND
def test_weights_and_alpha_of_any_common_size(kind, penalty, kernel, size):
    X, *ys = design("few features")
    weights = np.random.default_rng(52).uniform(0.5, 2.0, len(X))
    model, y, _ = case(kind, X, *ys, kernel=kernel, gamma=GAMMA, penalty=penalty, alpha=0.3)
    scaled, _, _ = case(kind, X, *ys, kernel=kernel, gamma=GAMMA, penalty=penalty, alpha=0.3 * size)
    expected = loo_values(model.fit(X, y, sample_weight=weights))
    assert_near(loo_values(scaled.fit(X, y, sample_weight=weights * size)), expected, 1e-8)


# -- few rows ----------------------------------------------------------------------------------------------------------


@EACH_KERNEL
@EACH_PENALTY
@pytest.mark.parametrize("basis", ["train", "all"])
@pytest.mark.parametrize("alpha", [1e-6, 1.0, 1e6])
def test_of_two_rows_each_is_predicted_by_the_other(kernel, penalty, basis, alpha):
    X = np.random.default_rng(53).normal(size=(2, 3))
    parameters = {"kernel": kernel, "gamma": GAMMA, "alpha": alpha, "penalty": penalty, "basis": basis}
    tolerance = max(1e-8, 100 * EPS * condition(gram(X, kernel), penalty, alpha))
    assert_near(LSSVR(**parameters).fit(X, [1.0, 5.0]).loo_predict(), [5.0, 1.0], tolerance)
    assert_near(LSSVC(**parameters).fit(X, ["a", "b"]).loo_decision_function(), [1.0, -1.0], tolerance)
    for threshold in ("pm1", "fisher", "centroid"):
        model = KernelFisherDiscriminant(threshold=threshold, **parameters).fit(X, ["a", "b"])
        assert np.isfinite(model.loo_decision_function()).all()
        assert model.loo_predict().tolist() == ["b", "a"]
        assert model.predict(X).tolist() == ["a", "b"]


@EACH_KERNEL
@EACH_PENALTY
def test_a_cut_from_leave_one_out_within_one_row_is_refused(kernel, penalty):
    X = np.random.default_rng(53).normal(size=(2, 3))
    model = KernelFisherDiscriminant(kernel, gamma=GAMMA, penalty=penalty, threshold="loo").fit(X, [0, 1])
    with pytest.raises(ValueError, match="training part that does not determine the model"):
        model.loo_decision_function()


@EACH_KERNEL
@EACH_PENALTY
@pytest.mark.parametrize("n", [3, 4, 5])
def test_a_handful_of_rows(kernel, penalty, n):
    X, _, _, values = (part[:n] for part in design("few features"))
    model = LSSVR(kernel, gamma=GAMMA, penalty=penalty, alpha=0.1).fit(X, values)
    K = gram(X, kernel)
    folds = [(np.delete(np.arange(n), i), [i]) for i in range(n)]
    expected = [heldout_fits(K, values[:, None], train, test, 0.1, penalty=penalty)[0, 0] for train, test in folds]
    assert_near(model.loo_predict(), expected, 1e-8)


# -- limits of alpha ---------------------------------------------------------------------------------------------------


@EACH_KERNEL
@EACH_PENALTY
@pytest.mark.parametrize("rows", ["few features", "more features than rows"])
@pytest.mark.parametrize("weighted", [False, True])
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
@EACH_KERNEL
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


# -- leverage ----------------------------------------------------------------------------------------------------------


def ridge_splits(X, y, alpha, splits, outputs):
    """Held-out ridge fits of the regression targets."""
    fits = np.empty((len(X), outputs))
    for train, test in splits:
        ridge = Ridge(alpha=alpha, solver="svd").fit(X[train], y[train])
        fits[test] = ridge.predict(X[test]).reshape(len(test), outputs)
    return fits


def assert_near_by_row(found, expected, tolerance):
    """Every row within ``tolerance`` of its own size, or of one."""
    assert np.isfinite(found).all()
    worst = np.abs(found - expected) / np.maximum(1.0, np.abs(expected))
    assert worst.max() <= tolerance, f"row {worst.argmax()} differs by {worst.max():.3g}, allowed {tolerance:.3g}"


@pytest.mark.parametrize("alpha", [1e-6, 1e-3, 1.0, 1e3])
@pytest.mark.parametrize("kind", ["LSSVC, two classes", "LSSVC, three classes", "LSSVR"])
@pytest.mark.parametrize("intercept", [True, False])
def test_an_outlier_a_million_times_larger_than_the_others(kind, alpha, intercept):
    rng = np.random.default_rng(58)
    n = 40
    X = rng.normal(size=(n, 4))
    codes, values = rng.permutation(n), X[:, 0] + rng.normal(size=n)
    X[7] *= 1e6
    model, y, method = case(
        kind, X, codes % 2, codes % 3, values, kernel="linear", alpha=alpha, fit_intercept=intercept
    )
    Y = targets(y, KINDS[kind][2])
    ridge = Ridge(alpha=alpha, solver="svd", fit_intercept=intercept)
    loo, folds = by_refit(ridge, X, Y, cv=LeaveOneOut()), by_refit(ridge, X, Y, cv=KFold(8))
    assert_near_by_row(loo_values(model.fit(X, y)).reshape(Y.shape), loo.reshape(Y.shape), 1e-8)
    found = cross_val_predict(model, X, y, cv=KFold(8), method=method)
    assert_near_by_row(found.reshape(Y.shape), folds.reshape(Y.shape), 1e-8)
    fits = ridge.fit(X, Y).predict(X).reshape(Y.shape)
    assert_near_by_row(getattr(model, method)(X).reshape(Y.shape), fits, 1e-8)


@pytest.mark.parametrize("kind", ["Fisher, two classes", "Fisher, two centroids", "Fisher, three classes"])
@pytest.mark.parametrize("alpha", [1.0, 1e3])
def test_discriminants_without_an_outlier_are_those_of_a_refit(kind, alpha):
    rng = np.random.default_rng(59)
    n = 40
    codes = rng.permutation(n)
    X = rng.normal(size=(n, 4)) + (codes % 3)[:, None] * [1.0, 0.5, 0.0, 0.0]
    X[7] *= 1e6
    model, y, _ = case(kind, X, codes % 2, codes % 3, None, kernel="linear", alpha=alpha)
    found = loo_values(model.fit(X, y))
    # without the outlier everything is well conditioned, and a refit has all its digits
    without = np.delete(np.arange(n), 7)
    expected = type(model)(**model.get_params()).fit(X[without], y[without]).decision_function(X[7:8])
    np.testing.assert_allclose(found[7], expected[0], rtol=1e-8 if len(model.classes_) == 2 else 1e-7)


@pytest.mark.parametrize("alpha", [1e-10, 1e-6, 1e-2, 1.0])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("kind", ["LSSVC, two classes", "LSSVC, three classes", "LSSVR"])
def test_rows_with_a_feature_of_their_own(kind, form, alpha):
    """Left out, such a row is predicted by the features it shares; its own has no weight."""
    rng = np.random.default_rng(60)
    n, own = 40, 6
    X = np.hstack([rng.normal(size=(n, 3)), np.eye(n)[:, :own]])
    codes, values = rng.permutation(n), X[:, 0] + rng.normal(size=n)
    model, y, method = case(kind, X, codes % 2, codes % 3, values, kernel="linear", alpha=alpha)
    Y = targets(y, KINDS[kind][2])
    folds = list(KFold(8).split(X))
    loo = [(np.delete(np.arange(n), i), [i]) for i in range(n)]
    found = loo_values(model.fit(form(X), y)).reshape(Y.shape)
    assert_near(found, ridge_splits(X, Y, alpha, loo, Y.shape[1]), 1e-7)
    for i in range(own):  # the same without the column
        kept = np.delete(np.arange(X.shape[1]), 3 + i)
        expected = ridge_splits(X[:, kept], Y, alpha, [loo[i]], Y.shape[1])[i]
        assert_near(found[i], expected, 1e-7)
    found = cross_val_predict(model, form(X), y, cv=folds, method=method).reshape(Y.shape)
    assert_near(found, ridge_splits(X, Y, alpha, folds, Y.shape[1]), 1e-7)


@pytest.mark.parametrize("alpha", [1e-10, 1e-2, 1.0, 1e4])
@EACH_PENALTY
def test_rows_that_share_nothing_are_predicted_by_the_mean_of_the_others(alpha, penalty):
    n = 12
    y = np.random.default_rng(61).normal(size=n)
    model = LSSVR("linear", alpha=alpha, penalty=penalty).fit(np.eye(n), y)
    assert_near(model.loo_predict(), (y.sum() - y) / (n - 1), 1e-8)


@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
@pytest.mark.parametrize("alpha", [1e-10, 1e-2, 1.0])
def test_repeated_rows_are_weights(alpha, penalty):
    """Rows given twice fit as rows of weight two (with penalised coefficients the two share the coefficient)."""
    X, _, _, y = design("few features")
    times = np.random.default_rng(62).integers(1, 4, len(X))
    if penalty == "coef":
        times[:] = 1
    weighted = LSSVR("linear", alpha=alpha, penalty=penalty).fit(X, y, sample_weight=times)
    repeated = LSSVR("linear", alpha=alpha, penalty=penalty).fit(np.repeat(X, times, 0), np.repeat(y, times))
    assert_near(weighted.predict(X), repeated.predict(X), max(1e-8, 100 * EPS * condition(X @ X.T, penalty, alpha)))


# -- kernels that are positive only next to an intercept ---------------------------------------------------------------


@pytest.mark.parametrize("alpha", [1e-4, 1e-2, 1.0, 1e2])
def test_squared_distances_with_an_intercept_are_the_linear_kernel(alpha):
    """-|x - z|^2 / 2 and x.z differ by what an intercept absorbs; refusing the former would do as well."""
    X, _, _, y = design("few features")
    K = -0.5 * cdist(X, X, "sqeuclidean")
    try:
        model = LSSVR("precomputed", alpha=alpha).fit(K, y)
    except ValueError as error:
        assert "indefinite" in str(error)  # noqa: PT017
        return
    expected = LSSVR("linear", alpha=alpha).fit(X, y)
    assert_near(model.loo_predict(), expected.loo_predict(), 1e-8)
    assert_near(model.predict(K), expected.predict(X), 1e-8)


# -- single precision --------------------------------------------------------------------------------------------------


@EACH_KIND
@EACH_KERNEL
@EACH_PENALTY
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("alpha", [1.0, 10.0])
def test_single_precision_keeps_three_digits(kind, kernel, penalty, form, alpha):
    X, *ys = design("few features")
    model, y, method = case(kind, X, *ys, kernel=kernel, gamma=GAMMA, alpha=alpha, penalty=penalty)
    expected = loo_values(model.fit(X, y))
    folds = KFold(6)
    expected_in_folds = cross_val_predict(model, X, y, cv=folds, method=method)
    low = form(X.astype(np.float32))
    assert_near(loo_values(model.fit(low, y)), expected, 1e-3)
    assert_near(cross_val_predict(model, low, y, cv=folds, method=method), expected_in_folds, 1e-3)


@EACH_KIND
@EACH_KERNEL
@EACH_PENALTY
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_single_precision_stays_single(kind, kernel, penalty, form):
    X, *ys = design("few features")
    model, y, method = case(kind, X, *ys, kernel=kernel, gamma=GAMMA, penalty=penalty)
    low = form(X.astype(np.float32))
    assert loo_values(model.fit(low, y)).dtype == np.float32
    assert getattr(model, method)(low).dtype == np.float32
    assert model.dual_coef_.dtype == np.float32


@EACH_KIND
@EACH_KERNEL
@EACH_PENALTY
@pytest.mark.parametrize("rows", ["few features", "duplicated rows", "all of these"])
@pytest.mark.parametrize("alpha", [1e-12, 1e-6, 1e6, 1e12])
def test_single_precision_stays_finite_at_any_alpha(kind, kernel, penalty, rows, alpha):
    X, *ys = design(rows)
    model, y, method = case(kind, X, *ys, kernel=kernel, gamma=GAMMA, alpha=alpha, penalty=penalty)
    low = X.astype(np.float32)
    model.fit(low, y)
    assert np.isfinite(loo_values(model)).all()
    assert np.isfinite(getattr(model, method)(low)).all()
