"""Searches that find the number of landmarks, and those that take landmarks since the exact kernel does not fit."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn import model_selection as skl
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from foldless import LSSVC, LSSVR, FoldlessSearchCV
from foldless._sklearn import landmarks
from foldless._sklearn.landmarks import landmarks_to_find
from foldless.kernels import RBF, Laplacian, Nystroem, RandomFeatures
from foldless.model_selection import (
    Optimizer,
    RefitWarning,
    _landmark_search,
    nested_cross_validate,
    permutation_test_score,
)

RNG = np.random.default_rng(0)
X = RNG.uniform(-3, 3, (240, 2))
WAVES = np.sin(2 * X[:, 0]) * np.cos(2 * X[:, 1])


@pytest.fixture(autouse=True)
def few_landmarks(monkeypatch):
    monkeypatch.setattr(_landmark_search, "FIRST_LANDMARKS", 5)


def search_of(estimator, **options):
    name = "gamma" if isinstance(estimator.kernel, str) else "kernel__gamma"
    return FoldlessSearchCV(estimator, {"alpha": [1e-3, 1e-1], name: [0.1, 0.5, 2.0]}, **options)


def auto(kind=LSSVR, **more):
    return kind(Nystroem(RBF("scale"), n_landmarks="auto"), **more)


def test_landmarks_double_until_the_criterion_stops_falling():
    search = search_of(auto()).fit(X, WAVES)
    path = search.landmark_path_
    counts, losses = [each["n_landmarks"] for each in path], [each["criterion"] for each in path]
    assert counts == [5 * 2**k for k in range(len(path))]
    least = min(losses[-3:])
    assert search.best_params_["kernel__n_landmarks"] == next(
        count for count, loss in zip(counts[-3:], losses[-3:], strict=True) if 0.99 * loss <= least
    )
    assert search.best_estimator_.kernel.n_landmarks == search.best_params_["kernel__n_landmarks"]
    for count, loss in zip(counts, losses, strict=True):
        assert_allclose(search_of(auto().set_params(kernel__n_landmarks=count)).fit(X, WAVES).best_criterion_, loss)


def test_searches_with_more_landmarks_look_around_the_best_so_far():
    search = FoldlessSearchCV(auto()).fit(X, WAVES)
    first, second = FoldlessSearchCV(auto().set_params(kernel__n_landmarks=5)).fit(X, WAVES), search.landmark_path_[1]
    alpha, gamma = first.best_params_["alpha"], first.best_params_["kernel__gamma"]
    grid = {"alpha": alpha * np.logspace(-3, 2, 21), "kernel__gamma": [gamma / 2, gamma, 2 * gamma]}
    around = FoldlessSearchCV(auto().set_params(kernel__n_landmarks=10), grid).fit(X, WAVES)
    assert_allclose([each["criterion"] for each in search.landmark_path_[:1]], first.best_criterion_)
    assert_allclose(second["criterion"], around.best_criterion_)
    assert len(search.cv_results_["params"]) == 3 * 21


@pytest.mark.parametrize("options", [{"bounds": {"kernel__gamma": (0.1, 1.0)}}, {"method": "gradient"}])
def test_searches_that_are_told_where_to_look_look_there_with_more_landmarks(options):
    optimizer = Optimizer(max_iter=3, **options)
    search = FoldlessSearchCV(auto(), method=optimizer).fit(X, WAVES)
    for each in search.landmark_path_:
        plain = FoldlessSearchCV(auto().set_params(kernel__n_landmarks=each["n_landmarks"]), method=optimizer)
        assert_allclose(plain.fit(X, WAVES).best_criterion_, each["criterion"])


def test_a_smooth_function_needs_few_landmarks():
    smooth = search_of(auto()).fit(X, X[:, 0] + np.random.default_rng(5).normal(0, 0.5, 240))
    rough = search_of(auto()).fit(X, WAVES)
    assert smooth.best_params_["kernel__n_landmarks"] < rough.best_params_["kernel__n_landmarks"]


def test_the_search_is_the_one_with_that_number():
    search = search_of(auto(LSSVC)).fit(X, WAVES > 0)
    number = search.best_params_["kernel__n_landmarks"]
    plain = search_of(LSSVC(Nystroem(RBF("scale"), number))).fit(X, WAVES > 0)
    assert_allclose(search.decision_function(X), plain.decision_function(X))
    assert search.best_params_ == {**plain.best_params_, "kernel__n_landmarks": number}
    assert search.estimator.kernel.n_landmarks == "auto"
    again = clone(search.estimator).set_params(**search.best_params_).fit(X, WAVES > 0)
    assert_allclose(search.decision_function(X), again.decision_function(X))
    assert_allclose(clone(search).fit(X, WAVES > 0).best_criterion_, search.best_criterion_)


def test_a_pipeline_finds_the_number_of_its_last_step():
    pipeline = make_pipeline(StandardScaler(), auto())
    search = FoldlessSearchCV(pipeline, {"lssvr__alpha": [1e-3], "lssvr__kernel__gamma": [5.0]}, cv=3).fit(X, WAVES)
    assert search.best_params_["lssvr__kernel__n_landmarks"] > 5


def test_the_time_limit_ends_the_doubling(monkeypatch):
    monkeypatch.setattr(_landmark_search, "GROWTH", 1e9)
    search = search_of(auto(), time_limit=1000.0).fit(X, WAVES)
    assert [each["n_landmarks"] for each in search.landmark_path_] == [5]


def test_the_second_search_looks_at_less_and_is_expected_to_grow_less(monkeypatch):
    monkeypatch.setattr(_landmark_search, "GROWTH", 1e9)
    search = FoldlessSearchCV(auto(), time_limit=1000.0).fit(X, WAVES)
    assert [each["n_landmarks"] for each in search.landmark_path_] == [5, 10]


def test_waves_are_counted_as_landmarks():
    search = search_of(LSSVR(RandomFeatures(RBF("scale"), "auto"))).fit(X, WAVES)
    number = search.best_params_["kernel__n_landmarks"]
    plain = search_of(LSSVR(RandomFeatures(RBF("scale"), number))).fit(X, WAVES)
    assert_allclose(search.predict(X), plain.predict(X))


def test_a_kernel_that_does_not_fit_is_approximated_with_a_warning(monkeypatch):
    for module in (landmarks, _landmark_search):
        monkeypatch.setattr(module, "available_memory", lambda: 900_000)
    message = r"240 rows: an exact kernel matrix takes 0 GiB.*kernel=Nystroem\('rbf', n_landmarks='auto'\)"
    with pytest.warns(UserWarning, match=message):
        search = search_of(LSSVR()).fit(X, WAVES)
    best, params = search.best_estimator_, search.best_params_
    assert best.kernel_.approximates
    assert set(params) == {"alpha", "gamma", "kernel"}
    assert params["kernel"] == best.kernel == Nystroem("rbf", params["kernel"].n_landmarks)
    assert params["kernel"].n_landmarks in [step["n_landmarks"] for step in search.landmark_path_]
    assert_allclose(LSSVR().set_params(**params).fit(X, WAVES).predict(X), search.predict(X))


@pytest.mark.parametrize("kernel", [RBF("scale"), Laplacian("scale")], ids=repr)
def test_a_search_of_very_many_rows_is_approximated_with_a_warning(monkeypatch, kernel):
    monkeypatch.setattr(landmarks, "MOST_SEARCHED", 239)
    with pytest.warns(UserWarning, match="an exact search of more than 239 takes long, which time_limit= allows"):
        search = FoldlessSearchCV(LSSVR(kernel)).fit(X, WAVES)
    assert search.best_estimator_.kernel_.approximates
    assert set(search.best_params_) == {"alpha", "kernel", "kernel__gamma"}
    again = LSSVR(kernel).set_params(**search.best_params_).fit(X, WAVES)
    assert_allclose(again.predict(X), search.predict(X))
    named = FoldlessSearchCV(LSSVR(Nystroem(kernel, "auto"))).fit(X, WAVES)  # the same search, asked for
    assert_allclose(named.best_criterion_, search.best_criterion_)


@pytest.mark.parametrize("told", [{"time_limit": 1000.0}, {"param_grid": {"alpha": [0.1]}}, {"method": "grid"}])
def test_a_search_that_is_told_what_to_do_stays_exact(monkeypatch, told):
    monkeypatch.setattr(landmarks, "MOST_SEARCHED", 239)
    values = WAVES + np.random.default_rng(1).normal(0, 0.3, len(X))
    assert not FoldlessSearchCV(LSSVR(), **told).fit(X, values).best_estimator_.kernel_.approximates


def rows(n, dtype=float):
    return np.empty((n, 0), dtype)


def test_one_function_says_whether_a_search_finds_landmarks_and_why(monkeypatch):
    monkeypatch.setattr(landmarks, "available_memory", lambda: 2 * 30_000**2 * 8)
    search, limited = FoldlessSearchCV(LSSVR()), FoldlessSearchCV(LSSVR(), time_limit=9.0)
    assert landmarks_to_find(search, rows(25_000)) is None
    assert landmarks_to_find(limited, rows(30_000)) is None
    long, large = landmarks_to_find(search, rows(25_001)), landmarks_to_find(limited, rows(30_001))
    assert long.reason == "an exact search of more than 25000 takes long, which time_limit= allows"
    assert large.reason == "an exact kernel matrix takes 7 GiB and 13 GiB are free"
    assert large.kernel == Nystroem("rbf", "auto")
    assert landmarks_to_find(limited, rows(30_001, np.float32)) is None
    assert landmarks_to_find(FoldlessSearchCV(auto()), rows(20)).reason == ""
    for kernel in ("linear", "precomputed", Nystroem("rbf")):
        assert landmarks_to_find(FoldlessSearchCV(LSSVR(kernel)), rows(10**6)) is None


def test_a_linear_kernel_of_very_many_rows_stays_exact(monkeypatch):
    monkeypatch.setattr(landmarks, "MOST_SEARCHED", 239)
    assert not FoldlessSearchCV(LSSVR("linear")).fit(X, WAVES).best_estimator_.kernel_.approximates


def test_kernels_of_a_grid_share_the_number_that_is_found():
    names = ("rbf", "laplacian")
    grid = {"alpha": [1e-3, 1e-1], "kernel": [*(Nystroem(name, "auto") for name in names), "linear"]}
    search = FoldlessSearchCV(LSSVR(), grid).fit(X, WAVES)
    number = search.best_params_["kernel"].n_landmarks
    assert number in [step["n_landmarks"] for step in search.landmark_path_]
    fixed = {"alpha": grid["alpha"], "kernel": [*(Nystroem(name, number) for name in names), "linear"]}
    plain = FoldlessSearchCV(LSSVR(), fixed).fit(X, WAVES)
    assert search.best_params_ == plain.best_params_
    assert_allclose(search.cv_results_["mean_test_criterion"], plain.cv_results_["mean_test_criterion"])
    assert search.param_grid is grid


def test_settings_without_landmarks_may_be_the_best():
    values = X @ [1.0, -2.0] + np.random.default_rng(2).normal(0, 0.1, len(X))
    grids = [{"alpha": [1e-2]}, {"alpha": [1e-2], "kernel": [Nystroem(RBF(50.0), "auto")]}]
    search = FoldlessSearchCV(LSSVR("linear"), grids).fit(X, values)
    assert search.best_params_ == {"alpha": 1e-2}
    assert len(search.landmark_path_) > 1


def test_exact_kernels_of_a_grid_that_do_not_fit_are_approximated(monkeypatch):
    for module in (landmarks, _landmark_search):
        monkeypatch.setattr(module, "available_memory", lambda: 900_000)
    grid = {"alpha": [1e-3, 1e-1], "kernel": ["linear", RBF(0.5), "laplacian"]}
    with pytest.warns(UserWarning, match="240 rows: an exact kernel matrix takes 0 GiB"):
        search = FoldlessSearchCV(LSSVR(), grid).fit(X, WAVES)
    kernels = {str(kernel) for kernel in search.cv_results_["param_kernel"]}
    count = search.best_params_["kernel"].n_landmarks
    assert kernels == {
        "linear",
        *(f"Nystroem({inner}, n_landmarks={count})" for inner in ("RBF(gamma=0.5)", "'laplacian'")),
    }


def test_one_number_for_each_class_is_refused():
    with pytest.raises(ValueError, match="n_landmarks='auto' is one number for all classes; share='none'"):
        FoldlessSearchCV(auto(LSSVC), method="gradient", share="none").fit(X, np.digitize(WAVES, [-0.3, 0.3]))


def test_an_estimator_alone_does_not_find_the_number():
    with pytest.raises(ValueError, match="n_landmarks='auto' must be an integer >= 1; 'auto' is found by a search"):
        auto().fit(X, WAVES)


def test_a_search_that_fails_leaves_an_earlier_fit_as_it_was():
    search = search_of(auto()).fit(X, WAVES)
    before = search.best_params_
    with pytest.raises(ValueError, match="NaN"):
        search.fit(np.full_like(X, np.nan), WAVES)
    assert search.best_params_ is before


# -- grids that name landmarks, and searches inside other functions ----------------------------------------------------

FIXED = Nystroem(RBF(0.5), 10)


def test_a_grid_that_names_the_number_is_looked_at_as_it_is():
    search = FoldlessSearchCV(LSSVR(Nystroem(RBF(0.5), "auto")), {"kernel__n_landmarks": [5, 20], "alpha": [0.1]}).fit(
        X, WAVES
    )
    assert search.best_params_["kernel__n_landmarks"] == search.best_estimator_.kernel.n_landmarks == 20


@pytest.mark.parametrize(
    ("kernel", "grid"),
    [
        (FIXED, {"kernel__per_fold": [True]}),
        (FIXED, {"kernel": [FIXED.changed(per_fold=True)]}),
        ("rbf", {"kernel": [FIXED.changed(per_fold=True, landmarks="uniform")]}),
        (FIXED.changed(per_fold=True, landmarks=X[:10]), {"kernel__landmarks": ["uniform"]}),
    ],
    ids=["per_fold", "kernel", "landmarks in the place of a name", "landmarks"],
)
def test_settings_of_a_grid_choose_landmarks_on_every_part(kernel, grid):
    rows, values, estimator = X[:80], WAVES[:80], LSSVR(clone(kernel, safe=False), alpha=0.1)
    setting = {name: each for name, (each,) in grid.items()}
    cv = KFold(3)
    search = FoldlessSearchCV(estimator, grid, cv=cv).fit(rows, values)
    plain = clone(estimator).set_params(**setting)
    expected = skl.cross_val_predict(plain, rows, values, cv=cv)
    assert_allclose(search.best_criterion_, np.mean((values - expected) ** 2), rtol=1e-8)
    nested = nested_cross_validate(search, rows, values, cv=KFold(4))
    for (train, test), found in zip(KFold(4).split(rows), nested.predictions, strict=True):
        assert_allclose(found, clone(plain).fit(rows[train], values[train]).predict(rows[test]), rtol=1e-8)


def test_landmarks_of_parts_for_some_settings_only_are_refused():
    for grid in ({"kernel__per_fold": [True, False]}, {"kernel": [FIXED, FIXED.changed(per_fold=True)]}):
        with pytest.raises(ValueError, match="per_fold is one for all kernels of landmarks; set it of the estimator's"):
            FoldlessSearchCV(LSSVR(clone(FIXED)), grid, cv=3).fit(X, WAVES)


def test_exact_kernels_beside_landmarks_of_parts_are_resolved_on_parts():
    kernels, cv = [RBF("scale"), Nystroem(RBF("scale"), 10, per_fold=True)], KFold(3)
    search = FoldlessSearchCV(LSSVR(alpha=0.1), {"kernel": kernels}, cv=cv).fit(X[:80], WAVES[:80])
    for kernel, criterion in zip(kernels, search.cv_results_["mean_test_criterion"], strict=True):
        expected = skl.cross_val_predict(LSSVR(kernel, alpha=0.1), X[:80], WAVES[:80], cv=cv)
        assert_allclose(criterion, np.mean((WAVES[:80] - expected) ** 2), rtol=1e-8)


def test_nested_cross_validation_finds_a_number_in_every_part():
    search, cv = search_of(auto()), KFold(3)
    found = nested_cross_validate(search, X[:90], WAVES[:90], cv=cv)
    for (train, test), predictions, params in zip(cv.split(X[:90]), found.predictions, found.best_params, strict=True):
        own = clone(search).fit(X[train], WAVES[train])
        assert params == own.best_params_
        assert_allclose(predictions, own.predict(X[test]))


def test_permutation_tests_find_a_number_for_every_labeling():
    search = FoldlessSearchCV(auto(), {"alpha": [1e-2, 1.0]}, cv=3)
    with pytest.warns(RefitWarning, match="finds its number of landmarks"):
        found = permutation_test_score(search, X[:40], WAVES[:40], cv=KFold(2), n_permutations=3)
    assert found.permutation_scores.shape == (3,)
