"""standardize=True: features are centred and scaled once on all rows, and everything else is as on scaled features."""

import copy

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, LeaveOneOut, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import foldless.model_selection as fl
from foldless import LSSVC, LSSVR, FoldlessSearchCV, KernelFisherDiscriminant, SlidingWindow
from foldless.model_selection import Optimizer

RNG = np.random.default_rng(0)
N = 40
LABELS = np.arange(N) % 3
X = (RNG.normal(size=(N, 4)) + LABELS[:, None]) * [1e-3, 1.0, 50.0, 2.0] + [0.0, 3.0, 1e3, 0.0]
NEW = X + 0.1 * X.std(0) * RNG.normal(size=X.shape)
VALUES = X[:, 2] / 50 + RNG.normal(size=N)
WEIGHT = RNG.uniform(0.2, 3.0, N)
KERNELS = ("rbf", "linear", "poly", "laplacian")
KINDS = {LSSVC: LABELS, LSSVR: VALUES, KernelFisherDiscriminant: LABELS}
every_kind = pytest.mark.parametrize("kind", KINDS)
every_kernel = pytest.mark.parametrize("kernel", KERNELS)


def outputs(model, rows):
    return model.decision_function(rows) if hasattr(model, "decision_function") else model.predict(rows)


def scaler_of(weight=None, data=X):
    return StandardScaler(with_mean=not sp.issparse(data)).fit(data, sample_weight=weight)


@pytest.mark.many_cases
@every_kind
@every_kernel
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array, np.float32])
def test_fit_and_leave_one_out_equal_those_of_scaled_features(kind, kernel, weighted, container):
    y, w = KINDS[kind], WEIGHT if weighted else None
    data, new = container(X), container(NEW)
    scaler = scaler_of(w, data)
    model = kind(kernel, standardize=True).fit(data, y, sample_weight=w)
    plain = kind(kernel).fit(scaler.transform(data), y, sample_weight=w)
    tight = {"rtol": 1e-8, "atol": 1e-9} if data.dtype == np.float64 else {"rtol": 2e-2, "atol": 2e-3}
    assert_allclose(outputs(model, new), outputs(plain, scaler.transform(new)), **tight)
    assert model.loo_score_ == pytest.approx(plain.loo_score_, rel=1e-8 if data.dtype == np.float64 else 1e-2)
    method = "decision_function" if kind is not LSSVR else "predict"
    params = {"sample_weight": w}
    for cv in (KFold(8), LeaveOneOut()):
        ours = fl.cross_val_predict(kind(kernel, standardize=True), data, y, cv=cv, method=method, params=params)
        theirs = fl.cross_val_predict(kind(kernel), scaler.transform(data), y, cv=cv, method=method, params=params)
        assert_allclose(ours, theirs, **tight)


@every_kind
def test_coefficients_are_those_of_the_features_as_given(kind):
    y = KINDS[kind] if kind is LSSVR else (LABELS > 0).astype(int)
    model = kind("linear", standardize=True).fit(X, y)
    decision = NEW @ model.coef_.T + model.intercept_
    assert_allclose(decision.reshape(N), outputs(model, NEW), rtol=1e-9, atol=1e-9)


@every_kind
def test_updates_keep_what_was_resolved_first(kind):
    y = KINDS[kind]
    first = slice(0, 25)
    scaler = scaler_of(data=X[first])
    model = kind(standardize=True).fit(X[first], y[first]).partial_fit(X[25:], y[25:]).forget(np.arange(5))
    gamma = kind().fit(scaler.transform(X[first]), y[first]).kernel_.gamma
    plain = kind(gamma=gamma).fit(scaler.transform(X)[5:], y[5:])
    assert_allclose(outputs(model, NEW), outputs(plain, scaler.transform(NEW)), rtol=1e-8, atol=1e-9)
    certificate = model.unlearning_certificate()
    assert certificate.holds
    assert certificate.inherited == ("gamma", "standardize")
    assert_array_equal(outputs(copy.deepcopy(model), NEW), outputs(model, NEW))


@every_kind
def test_a_window_keeps_the_scales_of_its_first_rows(kind):
    y, first = KINDS[kind], slice(0, 25)
    window = SlidingWindow(kind(gamma=0.1, standardize=True), max_samples=30).fit(X[first], y[first])
    for i in range(25, N):
        window.partial_fit(X[i : i + 1], y[i : i + 1])
    scaled = scaler_of(data=X[first]).transform
    plain = kind(gamma=0.1).fit(scaled(X)[-30:], y[-30:])
    assert_allclose(outputs(window, NEW), outputs(plain, scaled(NEW)), rtol=1e-8, atol=1e-9)


def test_scales_of_few_rows_warn_in_partial_fit():
    with pytest.warns(UserWarning, match=r"standardize=True is resolved from the 5 rows.*Scale X before"):
        LSSVC(gamma=0.1, standardize=True).partial_fit(X[:5], LABELS[:5])


def test_search_nested_and_permutations_equal_those_of_scaled_features():
    scaled, grid = scaler_of().transform(X), {"alpha": [0.1, 1.0], "gamma": [0.03, 0.3]}
    ours, plain = (
        (FoldlessSearchCV(LSSVC(standardize=flag), grid), data) for flag, data in ((True, X), (False, scaled))
    )
    searches = [search.fit(data, LABELS) for search, data in (ours, plain)]
    assert searches[0].best_params_ == searches[1].best_params_
    assert_allclose(
        searches[0].cv_results_["mean_test_criterion"], searches[1].cv_results_["mean_test_criterion"], rtol=1e-9
    )
    nested = [fl.nested_cross_validate(search, data, LABELS, cv=KFold(4)) for search, data in (ours, plain)]
    assert_allclose(nested[0].outer_criterion, nested[1].outer_criterion, rtol=1e-9)
    tests = [
        fl.permutation_test_score(LSSVC(standardize=flag), data, LABELS, cv=KFold(5), n_permutations=9)
        for flag, data in ((True, X), (False, scaled))
    ]
    assert_allclose(tests[0].permutation_scores, tests[1].permutation_scores, rtol=1e-9)


@pytest.mark.parametrize("how", [{}, {"method": Optimizer("gradient", max_iter=5, feature_scaling=True)}])
@every_kind
def test_searches_without_a_grid_look_at_scaled_features(kind, how):
    scaler, y = scaler_of(), KINDS[kind]
    ours = FoldlessSearchCV(kind(standardize=True), **how).fit(X, y)
    plain = FoldlessSearchCV(kind(), **how).fit(scaler.transform(X), y)
    assert ours.best_criterion_ == pytest.approx(plain.best_criterion_, rel=1e-6)
    assert_allclose(outputs(ours, NEW), outputs(plain, scaler.transform(NEW)), rtol=1e-4, atol=1e-4)


def test_a_grid_can_ask_whether_to_standardise():
    grid = {"alpha": [0.1, 1.0], "gamma": [0.1]}
    both = FoldlessSearchCV(LSSVC(), {**grid, "standardize": [False, True]}).fit(X, LABELS).cv_results_
    for flag, data in ((False, X), (True, scaler_of().transform(X))):
        own = [params["standardize"] is flag for params in both["params"]]
        alone = FoldlessSearchCV(LSSVC(), grid).fit(data, LABELS).cv_results_
        assert_allclose(both["mean_test_criterion"][own], alone["mean_test_criterion"], rtol=1e-9)


def test_members_of_a_family_are_standardised_by_themselves():
    family = [X, NEW, X[:, :2]]
    scaled = [scaler_of(data=each).transform(each) for each in family]
    ours, plain = (
        fl.permutation_test_score(LSSVC(standardize=flag), data, LABELS, cv=KFold(5), n_permutations=9)
        for flag, data in ((True, family), (False, scaled))
    )
    assert_allclose(ours.permutation_scores, plain.permutation_scores, rtol=1e-9)
    assert_allclose(ours.pvalue_fwe, plain.pvalue_fwe)


def test_patterns_are_those_of_scaled_features():
    ours, plain = (
        fl.permutation_test_pattern(LSSVC("linear", standardize=flag), data, LABELS, n_permutations=9)
        for flag, data in ((True, X), (False, scaler_of().transform(X)))
    )
    assert_allclose(ours.patterns, plain.patterns, rtol=1e-8)
    assert_allclose(ours.pvalue_fwe, plain.pvalue_fwe)


def test_fitted_estimators_of_training_parts_keep_the_scales_of_all_rows():
    result = fl.cross_validate(LSSVC(standardize=True), X, LABELS, cv=KFold(8), return_estimator=True)
    held_out = fl.cross_val_predict(LSSVC(standardize=True), X, LABELS, cv=KFold(8), method="decision_function")
    for (_, test), fitted in zip(KFold(8).split(X), result["estimator"], strict=True):
        assert_allclose(fitted.decision_function(X[test]), held_out[test], rtol=1e-8, atol=1e-10)


def test_intervals_equal_those_of_scaled_features():
    scaler = scaler_of()
    ours = LSSVR(standardize=True).fit(X, VALUES).predict_interval(NEW)
    plain = LSSVR().fit(scaler.transform(X), VALUES).predict_interval(scaler.transform(NEW))
    assert_allclose(ours, plain, rtol=1e-9)


def test_behind_fitted_steps_each_training_part_is_standardised_by_itself():
    pipeline = make_pipeline(PCA(3), LSSVC(gamma=0.1, standardize=True))
    with pytest.warns(fl.RefitWarning, match="standardize=True behind fitted steps"):
        ours = fl.permutation_test_score(pipeline, X, LABELS, cv=KFold(4), n_permutations=2)
    assert ours.score == pytest.approx(cross_val_score(pipeline, X, LABELS, cv=KFold(4)).mean())


def test_generalisation_is_refused():
    with pytest.raises(ValueError, match="generalise=True: standardize=True"):
        fl.permutation_test_score(LSSVC(standardize=True), [X, X], LABELS, generalise=True)


def test_precomputed_kernels_and_words_are_refused():
    with pytest.raises(ValueError, match="standardize=True needs features"):
        LSSVC("precomputed", standardize=True).fit(X @ X.T, LABELS)
    with pytest.raises(ValueError, match="standardize='yes' is unknown; use one of False, True, 'robust'"):
        LSSVC(standardize="yes").fit(X, LABELS)


def test_one_fit_serves_all_training_parts():
    assert fl.explain(LSSVC(standardize=True), X, LABELS, cv=LeaveOneOut()).kind == "one fit"
    assert fl.explain(make_pipeline(StandardScaler(), Ridge()), X, VALUES, cv=LeaveOneOut()).kind == "one P per fold"


def test_dense_rows_are_predicted_by_a_model_of_sparse_ones():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(30, 3)) * (rng.random((30, 3)) > 0.3)
    model = LSSVC(standardize=True).fit(sp.csr_array(rows), np.arange(30) % 2)
    assert_allclose(model.decision_function(rows), model.decision_function(sp.csr_array(rows)), atol=1e-12)
