"""Searches that learn the sum of kernels that kernel="auto" stands for."""

import copy
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from foldless import LSSVC, LSSVR, FoldlessSearchCV, KernelFisherDiscriminant
from foldless._sklearn import landmarks, progress
from foldless._sklearn.route import RefitWarning
from foldless.kernels import RBF, Laplacian, Nystroem, Scaled, Sum
from foldless.model_selection import (
    Optimizer,
    _landmark_search,
    cross_val_score,
    explain,
    nested_cross_validate,
    permutation_test_score,
)


def exclusive_or(n, n_features=20, seed=0):
    """XOR of the signs of two features among others that are noise."""
    X = np.random.default_rng(seed).normal(size=(n, n_features))
    return X, (X[:, 1] > 0) ^ (X[:, 2] > 0)


def table(n=120, seed=0):
    """Features of every kind: smooth, a step, a constant, a binary one and one-hot columns."""
    rng = np.random.default_rng(seed)
    levels = rng.integers(0, 3, n)
    smooth = rng.normal(size=(n, 2))
    binary = rng.integers(0, 2, n).astype(float)
    X = np.column_stack([smooth, np.full(n, 3.0), binary, np.eye(3)[levels]])
    score = np.sin(2 * smooth[:, 0]) + binary * (levels == 1) + 0.3 * rng.normal(size=n)
    return X, score


def learnt(estimator, X, y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return FoldlessSearchCV(estimator, **options).fit(X, y)


@pytest.fixture(scope="module")
def searches():
    X, score = table()
    return {
        "two classes": (learnt(LSSVC("auto"), X, score > 0.3), X, score > 0.3),
        "three classes": (learnt(LSSVC("auto"), X, np.digitize(score, [0, 0.8])), X, np.digitize(score, [0, 0.8])),
        "values": (learnt(LSSVR("auto"), X, score), X, score),
        "two outputs": (learnt(LSSVR("auto"), X, np.c_[score, X[:, 1]]), X, np.c_[score, X[:, 1]]),
        "fisher": (learnt(KernelFisherDiscriminant("auto"), X, score > 0.3), X, score > 0.3),
    }


KINDS = ["two classes", "three classes", "values", "two outputs", "fisher"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_learnt_kernel_is_a_sum_of_unit_weight(searches, kind):
    search, X, _ = searches[kind]
    kernel = search.best_params_["kernel"]
    assert set(search.best_params_) == {"alpha", "kernel"}
    assert isinstance(kernel, Sum)
    gaussian, laplacian = kernel.terms
    assert isinstance(gaussian, RBF)
    assert isinstance(laplacian, Scaled)
    assert isinstance(laplacian.kernel, Laplacian)
    assert sum(kernel.weights) == pytest.approx(1.0)
    assert min(kernel.weights) > 0
    np.testing.assert_array_equal(search.feature_scales_, laplacian.scales)
    assert search.feature_scales_.shape == (X.shape[1],)


@pytest.mark.parametrize("kind", KINDS)
def test_the_best_model_is_a_fit_of_the_best_parameters(searches, kind):
    search, X, y = searches[kind]
    model = clone(search.estimator).set_params(**search.best_params_).fit(X, y)
    np.testing.assert_allclose(model.predict(X), search.best_estimator_.predict(X))
    assert model.loo_score_ == pytest.approx(search.best_estimator_.loo_score_)


@pytest.mark.parametrize("kind", ["two classes", "values"])
def test_the_criterion_is_that_of_refits(searches, kind):
    search, X, y = searches[kind]
    best = search.best_estimator_
    errors = []
    for row in range(len(X)):
        kept = np.arange(len(X)) != row
        refitted = clone(best).fit(X[kept], y[kept])
        if kind == "values":
            errors.append(refitted.predict(X[[row]])[0] - y[row])
        else:
            errors.append(refitted.decision_function(X[[row]])[0] - (2.0 * y[row] - 1))
    criterion = np.nanmin(search.cv_results_["mean_test_criterion"])
    assert criterion == pytest.approx(np.mean(np.square(errors)), rel=1e-6)


def test_planted_features_are_among_those_that_count():
    X, y = exclusive_or(500)
    X_new, y_new = exclusive_or(1000, seed=1)
    search = learnt(LSSVC("auto"), X, y)
    assert set(np.argsort(search.feature_scales_)[-2:]) == {1, 2}
    assert search.score(X_new, y_new) > learnt(LSSVC(), X, y).score(X_new, y_new) + 0.1


@pytest.mark.parametrize("shape", ["sum", "product"])
def test_planted_values_are_learnt(shape):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(400, 15))
    truth = np.abs(X[:, 1]) + np.sign(X[:, 4]) if shape == "sum" else X[:, 1] * X[:, 4]
    y = truth + 0.1 * rng.normal(size=len(X))
    search = learnt(LSSVR("auto"), X[:300], y[:300])
    assert set(np.argsort(search.feature_scales_)[-2:]) == {1, 4}
    assert r2_score(truth[300:], search.predict(X[300:])) > 0.95
    if shape == "sum":
        assert r2_score(truth[300:], learnt(LSSVR(), X[:300], y[:300]).predict(X[300:])) < 0.85


def test_constant_columns_have_no_scale(searches):
    scales = searches["values"][0].feature_scales_
    assert scales[2] == 0.0
    assert np.delete(scales, 2).min() > 0.0


def test_constant_targets_and_features_are_searched():
    X, score = table(60)
    constant = learnt(LSSVR("auto"), X, np.ones(60))
    np.testing.assert_allclose(constant.predict(X), 1.0)
    blind = learnt(LSSVR("auto"), np.ones((60, 2)), score)
    np.testing.assert_allclose(blind.predict(np.ones((60, 2))), score.mean(), rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_the_learnt_kernel_is_kept_by_pickle_copy_and_repr(searches, kind):
    search, X, _ = searches[kind]
    expected = search.predict(X)
    for again in (pickle.loads(pickle.dumps(search)), copy.deepcopy(search)):
        np.testing.assert_array_equal(again.predict(X), expected)
    assert "Scaled" in repr(search.best_params_["kernel"])


def test_the_learnt_model_takes_and_forgets_rows(searches):
    search, X, y = searches["two classes"]
    model = copy.deepcopy(search.best_estimator_)
    new, labels = table(10, seed=3)
    model.partial_fit(new, labels > 0.3)
    model.forget(np.arange(5))
    refitted = clone(model).fit(np.r_[X, new][5:], np.r_[y, labels > 0.3][5:])
    np.testing.assert_allclose(model.decision_function(X), refitted.decision_function(X), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(model.loo_predict(), refitted.loo_predict())


def test_landmarks_of_a_learnt_kernel(searches):
    search, X, y = searches["values"]
    params = {**search.best_params_, "kernel": Nystroem(search.best_params_["kernel"], 40, random_state=0)}
    model = LSSVR(**params).fit(X, y)
    folds = KFold(5)
    scores = cross_val_score(model, X, y, cv=folds)
    fixed = clone(model).set_params(kernel=model.kernel_)
    refits = [
        r2_score(y[test], clone(fixed).fit(X[train], y[train]).predict(X[test])) for train, test in folds.split(X)
    ]
    np.testing.assert_allclose(scores, refits, rtol=1e-6)


def test_without_a_search_weights_and_widths_do_not_see_labels():
    X, score = table()
    kernel = LSSVC("auto").fit(X, score > 0.3).kernel_
    assert kernel.weights == (0.5, 0.5)
    again = LSSVC("auto").fit(X, score < 0.1).kernel_
    np.testing.assert_array_equal(kernel.gram(X), again.gram(X))
    gaussian, laplacian = kernel.terms
    assert gaussian.gamma == pytest.approx(RBF("scale").resolved(X).gamma)
    assert laplacian.gamma == pytest.approx(Laplacian("scale").resolved(X).gamma)


def test_sparse_features_have_no_scales():
    X, y = exclusive_or(150, 6)
    X[np.abs(X) < 0.7] = 0.0
    search = learnt(LSSVC("auto"), sp.csr_array(X), y)
    gaussian, laplacian = search.best_params_["kernel"].terms
    assert isinstance(gaussian, RBF)
    assert isinstance(laplacian, Laplacian)
    assert not hasattr(search, "feature_scales_")
    np.testing.assert_allclose(search.decision_function(sp.csr_array(X)), search.decision_function(X))


def test_a_pipeline_learns_the_kernel_of_its_last_step():
    X, score = table()
    search = learnt(make_pipeline(MinMaxScaler(), LSSVR("auto")), X, score)
    assert set(search.best_params_) == {"lssvr__alpha", "lssvr__kernel"}
    alone = learnt(LSSVR("auto"), MinMaxScaler().fit_transform(X), score)
    np.testing.assert_allclose(search.predict(X), alone.predict(MinMaxScaler().fit_transform(X)))


def test_searches_by_folds_take_slopes_of_models_without_each_fold():
    X, y = exclusive_or(300, 8)
    by_rows = learnt(LSSVC("auto"), X, y)
    by_folds = learnt(LSSVC("auto"), X, y, cv=StratifiedKFold(5, shuffle=True, random_state=0))
    assert set(np.argsort(by_folds.feature_scales_)[-2:]) == {1, 2}
    assert not np.allclose(by_rows.feature_scales_, by_folds.feature_scales_)


@pytest.mark.parametrize("seeds", [(0, 0), (0, 1)])
def test_slopes_of_many_rows_are_sampled_by_the_seed(seeds):
    X, y = exclusive_or(450, 5)
    one, two = (learnt(LSSVC("auto"), X, y, random_state=seed).feature_scales_ for seed in seeds)
    assert np.array_equal(one, two) == (seeds[0] == seeds[1])
    assert set(np.argsort(one)[-2:]) == {1, 2}


@pytest.mark.parametrize("kind", ["rows", "folds"])
def test_nested_scores_relearn_the_scales(kind):
    X, y = exclusive_or(90, 5)
    cv = None if kind == "rows" else 3
    outer = KFold(3)
    search = FoldlessSearchCV(LSSVC("auto"), cv=cv, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scores = nested_cross_validate(search, X, y, cv=outer).test_score
        refits = [
            accuracy_score(y[test], clone(search).fit(X[train], y[train]).predict(X[test]))
            for train, test in outer.split(X)
        ]
    np.testing.assert_allclose(scores, refits)


def test_permutations_relearn_the_scales():
    X, y = exclusive_or(60, 4)
    search = FoldlessSearchCV(LSSVC("auto"), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = permutation_test_score(search, X, y, cv=KFold(3), n_permutations=3, random_state=0)
        score = np.mean(cross_val_score(search, X, y, cv=KFold(3)))
    assert result[0] == pytest.approx(score)
    assert len(set(np.round(result[1], 6))) > 1


OPTIONS = {
    "method": {"method": "gradient"},
    "bounds": {"method": Optimizer(bounds={"gamma": (0.1, 1.0)})},
    "feature_scaling": {"method": Optimizer(feature_scaling=True)},
    "share": {"share": "kernel"},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options_of_other_searches_are_refused(name):
    X, y = exclusive_or(40, 3)
    with pytest.raises(ValueError, match=rf"{name}=.*kernel='auto'.*kernel='rbf'"):
        FoldlessSearchCV(LSSVC("auto"), **OPTIONS[name]).fit(X, y)


def test_a_gamma_is_refused():
    X, y = exclusive_or(40, 3)
    with pytest.raises(ValueError, match=r"gamma=0.5 is not used by kernel='auto'.*RBF"):
        LSSVC("auto", gamma=0.5).fit(X, y)


def test_a_grid_searches_the_kernel_without_labels():
    X, y = exclusive_or(60, 3)
    search = learnt(LSSVC("auto"), X, y, param_grid={"alpha": [0.1, 1.0], "kernel": ["auto", "rbf"]})
    assert search.best_params_["kernel"] in ("auto", "rbf")
    assert len(search.cv_results_["params"]) == 4


def test_a_stopped_search_keeps_the_best_setting():
    X, y = exclusive_or(400, 5)
    with pytest.warns(UserWarning, match="stopped by time_limit"):
        search = FoldlessSearchCV(LSSVC("auto"), time_limit=1e-3).fit(X, y)
    assert search.score(X, y) > 0.4


def test_weights_of_zero_leave_rows_out():
    X, score = table(90)
    weights = np.r_[np.ones(60), np.zeros(30)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        weighted = FoldlessSearchCV(LSSVR("auto", standardize=False), random_state=0)
        weighted.fit(X, score, sample_weight=weights)
        without = FoldlessSearchCV(LSSVR("auto", standardize=False), random_state=0).fit(X[:60], score[:60])
    assert set(np.argsort(weighted.feature_scales_)[-2:]) == set(np.argsort(without.feature_scales_)[-2:])


def test_permutation_tests_tell_that_kernels_are_relearnt():
    X, y = exclusive_or(40, 3)
    search = FoldlessSearchCV(LSSVC("auto"))
    with pytest.warns(RefitWarning, match=r"learns its kernel from the labels.*kernel='rbf'"):
        permutation_test_score(search, X, y, cv=KFold(2), n_permutations=1, random_state=0)


@pytest.mark.parametrize("kernel", ["auto", "rbf"])
def test_long_nested_searches_tell_their_time(kernel, monkeypatch):
    monkeypatch.setattr(progress, "LONG_WITH_REMEDY", 0.0)
    X, y = exclusive_or(40, 3)
    search = FoldlessSearchCV(LSSVC(kernel), method="auto")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        nested_cross_validate(search, X, y, cv=KFold(3))
    messages = [
        str(warning.message) for warning in caught if "outer splits are expected to take about" in str(warning.message)
    ]
    assert len(messages) == (kernel == "auto")
    assert all("kernel='rbf'" in message for message in messages)


LANDMARKS = {"a number to find": "auto", "a given number": 60}


@pytest.mark.parametrize("behind_steps", [False, True], ids=["", "pipeline"])
@pytest.mark.parametrize("count", LANDMARKS.values(), ids=list(LANDMARKS))
def test_landmarks_approximate_the_kernel_that_is_learnt_on_some_of_the_rows(count, behind_steps, monkeypatch):
    monkeypatch.setattr(_landmark_search, "LEARNT_ON", 120)
    monkeypatch.setattr(_landmark_search, "FIRST_OF_LEARNT", 30)
    X, y = exclusive_or(400, 5)
    estimator, prefix = LSSVC(Nystroem("auto", count)), ""
    if behind_steps:
        estimator, prefix = make_pipeline(StandardScaler(), estimator), "lssvc__"
    search = learnt(estimator, X, y)
    kernel = search.best_params_[prefix + "kernel"]
    assert isinstance(kernel, Nystroem)
    assert kernel.n_landmarks in [step["n_landmarks"] for step in search.landmark_path_]
    assert search.landmark_path_[0]["n_landmarks"] == (30 if count == "auto" else 60)
    assert set(np.argsort(search.feature_scales_)[-2:]) == {1, 2}
    np.testing.assert_array_equal(kernel.kernel.terms[1].scales, search.feature_scales_)
    model = clone(search.estimator).set_params(**search.best_params_).fit(X, y)
    np.testing.assert_allclose(search.decision_function(X), model.decision_function(X))
    assert search.score(*exclusive_or(400, 5, seed=1)) > 0.8


def test_many_rows_take_landmarks_of_the_learnt_kernel(monkeypatch):
    monkeypatch.setattr(landmarks, "MOST_SEARCHED", 200)
    monkeypatch.setattr(_landmark_search, "LEARNT_ON", 120)
    X, y = exclusive_or(300, 5)
    with pytest.warns(UserWarning, match=r"exact search of more than 200.*Nystroem.*auto"):
        search = FoldlessSearchCV(LSSVC("auto")).fit(X, y)
    assert isinstance(search.best_params_["kernel"], Nystroem)
    assert isinstance(search.best_params_["kernel"].kernel, Sum)


def test_sparse_rows_and_folds_of_groups_take_landmarks(monkeypatch):
    monkeypatch.setattr(_landmark_search, "LEARNT_ON", 120)
    X, y = exclusive_or(300, 5)
    X[np.abs(X) < 0.3] = 0.0
    groups = np.repeat(np.arange(60), 5)
    search = FoldlessSearchCV(LSSVC(Nystroem("auto", 50)), cv=GroupKFold(4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(sp.csr_array(X), y, groups=groups)
    assert isinstance(search.best_params_["kernel"].kernel.terms[1], Laplacian)
    assert not hasattr(search, "feature_scales_")


def test_a_time_limit_covers_the_learning_of_the_kernel():
    X, y = exclusive_or(900, 5)
    search = FoldlessSearchCV(LSSVC(Nystroem("auto", "auto")), time_limit=1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(X, y)
    assert len(search.landmark_path_) == 1
    assert search.score(X, y) > 0.5


def test_explain_says_that_the_kernel_is_relearnt():
    X, y = exclusive_or(40, 3)
    assert "learns its kernel there" in str(explain(FoldlessSearchCV(LSSVC("auto")), X, y, cv=5))
    assert "learns its kernel" not in str(explain(FoldlessSearchCV(LSSVC()), X, y, cv=5))
