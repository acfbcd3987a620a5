"""Permutation tests of weights and patterns against refits."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, Ridge, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from foldless import LSSVC, LSSVR, FoldlessSearchCV
from foldless._engine.permutation import patterns
from foldless.model_selection import permutation_test_pattern
from support.families import (
    BINARY,
    CONFOUNDS,
    FOUR,
    GROUPS,
    KFDA,
    MEMBERS,
    OUTPUTS,
    THREE,
    VALUES,
    WEIGHT,
    ZEROS,
    D,
    N,
    X,
    named,
)
from support.permutation import orders_of, pattern_test_in_memory
from support.refits import labelings, p_value, relabelled
from support.tolerances import assert_close

WIDE = np.hstack([X, MEMBERS[1], MEMBERS[2], X**2, X**3, *np.random.default_rng(0).normal(size=(6, N, D))])  # 44 > 36
PATTERNS = {
    "LSSVC, 2 classes": (LSSVC("linear"), BINARY, X, {}),
    "LSSVC, 3 classes": (LSSVC("linear"), THREE, X, {}),
    "LSSVC, 4 classes, wide": (LSSVC("linear"), FOUR, WIDE, {}),
    "LSSVC no intercept": (LSSVC("linear", fit_intercept=False), THREE, X + 1, {}),
    "LSSVC no intercept, 2 classes": (LSSVC("linear", fit_intercept=False), BINARY, X + 1, {}),
    "KFDA, 2 classes": (KFDA("linear"), BINARY, X, {}),
    "KFDA fisher": (KFDA("linear", threshold="fisher"), BINARY, X, {}),
    "KFDA centroid": (KFDA("linear", threshold="centroid"), BINARY, WIDE, {}),
    "KFDA, 3 classes": (KFDA("linear"), THREE, X, {}),
    "KFDA, 4 classes, wide": (KFDA("linear", n_components=2), FOUR, WIDE, {}),
    "LSSVR": (LSSVR("linear"), VALUES, X, {}),
    "LSSVR outputs": (LSSVR("linear"), OUTPUTS, WIDE, {}),
    "Ridge": (Ridge(), VALUES, X, {}),
    "Ridge outputs": (Ridge(fit_intercept=False), OUTPUTS, X, {}),
    "RidgeClassifier, 2 classes": (RidgeClassifier(), BINARY, X, {}),
    "RidgeClassifier, 4 classes": (RidgeClassifier(), FOUR, WIDE, {}),
    "KernelRidge": (KernelRidge(), OUTPUTS, X, {}),
    "weights": (LSSVC("linear"), THREE, X, {"w": ZEROS}),
    "weights, wide": (KFDA("linear"), THREE, WIDE, {"w": ZEROS}),
    "confounds": (LSSVC("linear"), THREE, X, {"confounds": CONFOUNDS}),
    "confounds, weights": (KFDA("linear"), FOUR, WIDE, {"confounds": CONFOUNDS, "w": ZEROS}),
    "confounds, values": (LSSVR("linear"), OUTPUTS, X, {"confounds": CONFOUNDS, "w": WEIGHT}),
    "confounds, 2 classes": (KFDA("linear", threshold="centroid"), BINARY, X, {"confounds": CONFOUNDS}),
    "sparse": (LSSVC("linear"), THREE, sp.csr_array(WIDE), {"w": WEIGHT}),
    "sparse, few features": (LSSVC("linear"), BINARY, sp.csr_array(X), {}),
}


def coefficients(estimator, data, y, **options):
    """coef_ of a refit with one row for each fit of targets +-1; discriminants are made of these fits."""
    if isinstance(estimator, KFDA):
        estimator = LSSVC("linear", alpha=estimator.alpha, fit_intercept=estimator.fit_intercept)
    model = clone(estimator).fit(data, y, **options)
    return (data.T @ model.dual_coef_).T if isinstance(model, KernelRidge) else np.atleast_2d(model.coef_)


def two_sided(values):
    """p-values and family-wise p-values (k, d) of values (1 + m, k, d)."""
    size = np.abs(values)
    largest = size[1:].max(2, keepdims=True)
    return p_value(size[0], size[1:] * (1 + 1e-9)), p_value(size[0], largest * (1 + 1e-9))


@pytest.mark.many_cases
@pytest.mark.parametrize("case", PATTERNS)
def test_weights_and_patterns_equal_refits(case):
    """Cov(x) w / (w' Cov(x) w) with weighted covariances, and |Cov(x) w| against that of every permutation."""
    estimator, y, data, options = PATTERNS[case]
    w, confounds = options.get("w"), options.get("confounds")
    m = 29
    result = permutation_test_pattern(
        estimator,
        data,
        y,
        n_permutations=m,
        confounds=confounds,
        params=None if w is None else {"sample_weight": w},
        random_state=5,
    )
    fit = {name: value for name, value in (("sample_weight", w), ("confounds", confounds)) if value is not None}
    orders = orders_of(N, m=m, labels=y, confounds=confounds, seed=5)
    weights = np.array([coefficients(estimator, data, relabelled(y, order, confounds), **fit) for order in orders])
    dense = data.toarray() if sp.issparse(data) else data
    if confounds is not None:  # patterns are those of what confounds leave of the features
        dense = dense - LinearRegression().fit(confounds, dense, sample_weight=w).predict(confounds)
    covariance = np.cov(dense.T, aweights=w, ddof=1)
    along = weights @ covariance
    assert_close(result.weights, weights[0])
    assert_close(result.patterns, along[0] / np.einsum("kd,kd->k", weights[0], along[0])[:, None])
    scores = dense @ weights[0].T
    mass = np.ones(N) if w is None else w
    for k, s in enumerate(scores.T):  # the slope of a regression of each feature on the decision
        centred = s - np.average(s, weights=mass)
        assert_close(result.patterns[k], (mass * centred) @ dense / ((mass * centred) @ s))
    for found, values in (
        ((result.pvalue, result.pvalue_fwe), along),
        ((result.weights_pvalue, result.weights_pvalue_fwe), weights),
    ):
        expected = two_sided(values)
        np.testing.assert_allclose(found[0], expected[0])
        np.testing.assert_allclose(found[1], expected[1])
        assert (found[0] <= found[1]).all()
        assert len(np.unique(found[0])) > 2
    assert result.n_permutations == m
    classes = np.unique(y) if is_classifier(estimator) else np.arange(weights.shape[1])
    assert result.outputs == list(classes[-weights.shape[1] :])
    assert result.feature_names is None


def test_patterns_in_batches_are_the_same():
    options = {"n_permutations": 20, "random_state": 1}
    whole = permutation_test_pattern(KFDA("linear"), X, THREE, **options)
    for limit in (1, 8 * 8 * N * 2 * 7):
        parts = pattern_test_in_memory(limit, KFDA("linear"), X, THREE, **options)
        assert_close(parts.patterns, whole.patterns)
        np.testing.assert_array_equal(parts.pvalue, whole.pvalue)
        np.testing.assert_array_equal(parts.weights_pvalue_fwe, whole.weights_pvalue_fwe)


def test_batches_count_the_memory_of_weights(monkeypatch):
    """Their memory, not that of the columns: 396 features of 36 rows leave few labelings at a time."""
    seen, truth_of = [], patterns.truth_of

    def noted(task, orders, residuals):
        seen.append(len(orders))
        return truth_of(task, orders, residuals)

    monkeypatch.setattr(patterns, "truth_of", noted)
    wide = np.hstack([WIDE] * 9)
    limits = {}
    for name, data in (("few", X), ("many", wide)):
        seen.clear()
        pattern_test_in_memory(8 * 10 * N * 2 * 40, LSSVC("linear"), data, THREE, n_permutations=60)
        assert sum(seen) == 61
        limits[name] = max(seen)
    assert limits["few"] > 30
    assert limits["many"] * wide.shape[1] <= limits["few"] * N


def test_constant_decisions_have_a_zero_pattern():
    result = permutation_test_pattern(LSSVC("linear"), 0 * X, THREE, n_permutations=3)
    np.testing.assert_array_equal(result.patterns, np.zeros((3, D)))
    np.testing.assert_array_equal(result.pvalue, np.ones((3, D)))


def test_patterns_within_strata_equal_refits():
    result = permutation_test_pattern(Ridge(), X, VALUES, n_permutations=19, null=GROUPS, random_state=2)
    weights = np.array([[Ridge().fit(X, VALUES[order]).coef_] for order in labelings(N, 19, GROUPS, 2)])
    np.testing.assert_allclose(result.weights_pvalue, two_sided(weights)[0])
    np.testing.assert_allclose(result.pvalue, two_sided(weights @ np.cov(X.T))[0])


def test_patterns_with_class_weights_that_stay_equal_refits():
    """Those of the true labels are sample weights."""
    rows = balanced(THREE)
    result = permutation_test_pattern(RidgeClassifier(), X, THREE, n_permutations=19, params={"sample_weight": rows})
    weights = np.array([RidgeClassifier().fit(X, THREE[order], sample_weight=rows).coef_ for order in labelings(N, 19)])
    assert_close(result.weights, weights[0])
    np.testing.assert_allclose(result.weights_pvalue, two_sided(weights)[0])
    np.testing.assert_allclose(result.pvalue, two_sided(weights @ np.cov(X.T, aweights=rows))[0])


def balanced(y):
    """Balanced class weights as row weights."""
    classes, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    return (len(y) / (len(classes) * counts))[codes]


@pytest.mark.parametrize("estimator", [LSSVC("linear"), RidgeClassifier()], ids=named)
def test_patterns_with_class_weights_that_follow_equal_refits(estimator):
    """Every labeling has its own P, and its own weights in Cov(x)."""
    factors = {"ant": 2.0, "bee": 1.0, "cat": 0.5}
    given = clone(estimator).set_params(class_weight=factors)
    result = permutation_test_pattern(given, X, THREE, n_permutations=19, params={"sample_weight": WEIGHT})
    weights, along = [], []
    for order in labelings(N, 19):
        rows = WEIGHT * np.array([factors[label] for label in THREE[order]])
        weights.append(clone(estimator).fit(X, THREE[order], sample_weight=rows).coef_)
        along.append(weights[-1] @ np.cov(X.T, aweights=rows, ddof=0))
    assert_close(result.weights, weights[0])
    assert_close(result.patterns, along[0] / np.einsum("kd,kd->k", weights[0], along[0])[:, None])
    for found, values in (
        ((result.weights_pvalue, result.weights_pvalue_fwe), weights),
        ((result.pvalue, result.pvalue_fwe), along),
    ):
        np.testing.assert_allclose(found, two_sided(np.array(values)))


def test_a_pattern_names_its_features_and_counts_what_it_found():
    frame = pd.DataFrame(X, columns=["left", "right", "up", "down"])
    result = permutation_test_pattern(LSSVC("linear"), frame, THREE, n_permutations=99)
    assert result.feature_names == ["left", "right", "up", "down"]
    numbered = permutation_test_pattern(LSSVC("linear"), pd.DataFrame(X), THREE, n_permutations=1)
    assert numbered.feature_names == ["0", "1", "2", "3"]
    counts = (result.pvalue_fwe <= 0.05).sum(1)
    found = f"ant: {counts[0]}, bee: {counts[1]}, cat: {counts[2]}"
    assert repr(result) == f"patterns of 4 features, 99 permutations; family-wise p <= 0.05 for {found}"
    assert (result.pvalue_fwe <= 0.05).any()


def test_progress_of_patterns(capsys):
    for limit in (1, 2**29):
        pattern_test_in_memory(limit, Ridge(), X, VALUES, n_permutations=5, verbose=1)
        assert "permutations: 5/5" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("estimator", "options", "message"),
    [
        (LSSVC(), {}, "patterns need kernel='linear' and penalty='rkhs'; this one is RBF"),
        (SVC(kernel="linear"), {}, "patterns need a linear least-squares model: SVC is not"),
        (FoldlessSearchCV(LSSVC("linear")), {}, "patterns need a linear least-squares model: a search"),
        (make_pipeline(StandardScaler(), LSSVC("linear")), {}, "patterns are those of one fit to all rows"),
        (RidgeClassifier(class_weight="balanced"), {}, "class_weight='balanced' is computed anew"),
        (LSSVC("linear"), {"null": "resplit"}, "null='resplit' is not possible here. Use None, 'free', an array"),
        (LSSVC("linear"), {"null": GROUPS[1:]}, "null of shape .* is not possible here"),
        (LSSVC("linear"), {"n_permutations": 0}, "n_permutations=0"),
        (LSSVC("linear"), {"params": {"nonsense": 1}}, "nonsense"),
        (LSSVC("linear"), {"confounds": np.ones((3, 1))}, "confounds has 3 rows"),
    ],
    ids=[
        "rbf",
        "SVC",
        "search",
        "pipeline",
        "class weights",
        "null",
        "strata",
        "none",
        "params",
        "rows",
    ],
)
def test_bad_arguments_of_patterns_are_refused(estimator, options, message):
    with pytest.raises(ValueError, match=message):
        permutation_test_pattern(estimator, X, THREE, **options)


def test_patterns_need_labels_that_change():
    with pytest.raises(ValueError, match="y=None"):
        permutation_test_pattern(LSSVC("linear"), X, None)
    with pytest.warns(UserWarning, match="do not change the labels"):
        result = permutation_test_pattern(LSSVC("linear"), X, THREE, null=THREE, n_permutations=3)
    for name in ("pvalue", "pvalue_fwe", "weights_pvalue"):  # what is equal up to rounding is equal
        np.testing.assert_array_equal(getattr(result, name), np.ones((3, D)))


@pytest.mark.parametrize("y", [BINARY, THREE], ids=["2 classes", "3 classes"])
def test_patterns_times_the_variance_of_decisions_are_those_of_mne(y):
    """``LinearModel.patterns_`` of mne: the covariance of the features times the weights."""
    result = permutation_test_pattern(LSSVC("linear"), X, y, n_permutations=2)
    coef = np.atleast_2d(LSSVC("linear").fit(X, y).coef_)
    theirs = np.cov(X.T).dot(coef.T).T
    factors = (X @ result.weights.T).var(0, ddof=1)
    assert_close(result.patterns * factors[:, None], theirs)
