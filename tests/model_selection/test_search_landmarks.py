"""Searches that find the number of landmarks, and those that take landmarks since the exact kernel does not fit."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn import model_selection as skl
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import foldless.estimators.approximate as approximate
from foldless import LSSVC, LSSVR, FoldlessSearchCV
from foldless.model_selection import (
    Optimizer,
    RefitWarning,
    _search_landmarks,
    nested_cross_validate,
    permutation_test_score,
)

RNG = np.random.default_rng(0)
X = RNG.uniform(-3, 3, (240, 2))
WAVES = np.sin(2 * X[:, 0]) * np.cos(2 * X[:, 1])


@pytest.fixture(autouse=True)
def few_landmarks(monkeypatch):
    monkeypatch.setattr(_search_landmarks, "FIRST", 5)


def search_of(estimator, **options):
    return FoldlessSearchCV(estimator, {"alpha": [1e-3, 1e-1], "gamma": [0.1, 0.5, 2.0]}, **options)


def auto(kind=LSSVR, **more):
    return kind(approximation="nystroem", n_landmarks="auto", **more)


def test_landmarks_double_until_the_criterion_stops_falling():
    search = search_of(auto()).fit(X, WAVES)
    path = search.landmark_path_
    counts, losses = [each["n_landmarks"] for each in path], [each["criterion"] for each in path]
    assert counts == [5 * 2**k for k in range(len(path))]
    least = min(losses[-3:])
    assert search.best_params_["n_landmarks"] == next(
        count for count, loss in zip(counts[-3:], losses[-3:], strict=True) if 0.99 * loss <= least
    )
    assert search.best_estimator_.n_landmarks == search.best_params_["n_landmarks"]
    for count, loss in zip(counts, losses, strict=True):
        assert_allclose(search_of(auto().set_params(n_landmarks=count)).fit(X, WAVES).best_criterion_, loss)


def test_searches_with_more_landmarks_look_around_the_best_so_far():
    search = FoldlessSearchCV(auto()).fit(X, WAVES)
    first, second = FoldlessSearchCV(auto().set_params(n_landmarks=5)).fit(X, WAVES), search.landmark_path_[1]
    alpha, gamma = first.best_params_["alpha"], first.best_params_["gamma"]
    grid = {"alpha": alpha * np.logspace(-3, 2, 21), "gamma": [gamma / 2, gamma, 2 * gamma]}
    around = FoldlessSearchCV(auto().set_params(n_landmarks=10), grid).fit(X, WAVES)
    assert_allclose([each["criterion"] for each in search.landmark_path_[:1]], first.best_criterion_)
    assert_allclose(second["criterion"], around.best_criterion_)
    assert len(search.cv_results_["params"]) == 3 * 21


@pytest.mark.parametrize("options", [{"bounds": {"gamma": (0.1, 1.0)}}, {"method": "gradient"}])
def test_searches_that_are_told_where_to_look_look_there_with_more_landmarks(options):
    optimizer = Optimizer(max_iter=3, **options)
    search = FoldlessSearchCV(auto(), method=optimizer).fit(X, WAVES)
    for each in search.landmark_path_:
        plain = FoldlessSearchCV(auto().set_params(n_landmarks=each["n_landmarks"]), method=optimizer)
        assert_allclose(plain.fit(X, WAVES).best_criterion_, each["criterion"])


def test_a_smooth_function_needs_few_landmarks():
    smooth = search_of(auto()).fit(X, X[:, 0] + np.random.default_rng(5).normal(0, 0.5, 240))
    rough = search_of(auto()).fit(X, WAVES)
    assert smooth.best_params_["n_landmarks"] < rough.best_params_["n_landmarks"]


def test_the_search_is_the_one_with_that_number():
    search = search_of(auto(LSSVC)).fit(X, WAVES > 0)
    number = search.best_params_["n_landmarks"]
    plain = search_of(LSSVC(approximation="nystroem", n_landmarks=number)).fit(X, WAVES > 0)
    assert_allclose(search.decision_function(X), plain.decision_function(X))
    assert search.best_params_ == {**plain.best_params_, "approximation": "nystroem", "n_landmarks": number}
    assert search.estimator.n_landmarks == "auto"
    assert_allclose(clone(search).fit(X, WAVES > 0).best_criterion_, search.best_criterion_)


def test_a_pipeline_finds_the_number_of_its_last_step():
    pipeline = make_pipeline(StandardScaler(), auto())
    search = FoldlessSearchCV(pipeline, {"lssvr__alpha": [1e-3], "lssvr__gamma": [5.0]}, cv=3).fit(X, WAVES)
    assert search.best_params_["lssvr__n_landmarks"] > 5


def test_the_time_limit_ends_the_doubling(monkeypatch):
    monkeypatch.setattr(_search_landmarks, "GROWTH", 1e9)
    search = search_of(auto(), time_limit=1000.0).fit(X, WAVES)
    assert [each["n_landmarks"] for each in search.landmark_path_] == [5]


def test_the_second_search_looks_at_less_and_is_expected_to_grow_less(monkeypatch):
    monkeypatch.setattr(_search_landmarks, "GROWTH", 1e9)
    search = FoldlessSearchCV(auto(), time_limit=1000.0).fit(X, WAVES)
    assert [each["n_landmarks"] for each in search.landmark_path_] == [5, 10]


def test_a_kernel_that_does_not_fit_is_approximated_with_a_warning(monkeypatch):
    for module in (approximate, _search_landmarks):
        monkeypatch.setattr(module, "available_memory", lambda: 900_000)
    with pytest.warns(UserWarning, match="240 rows: an exact kernel matrix takes 0 GiB.*approximation='nystroem'"):
        search = search_of(LSSVR()).fit(X, WAVES)
    assert search.best_estimator_.kernel_.approximates
    assert search.best_params_["approximation"] == "nystroem"


def test_a_search_of_very_many_rows_is_approximated_with_a_warning(monkeypatch):
    monkeypatch.setattr(approximate, "MOST_SEARCHED", 239)
    with pytest.warns(UserWarning, match="an exact search of more than 239 takes long, which time_limit= allows"):
        search = FoldlessSearchCV(LSSVR()).fit(X, WAVES)
    assert search.best_estimator_.kernel_.approximates


@pytest.mark.parametrize("told", [{"time_limit": 1000.0}, {"param_grid": {"alpha": [0.1]}}, {"method": "grid"}])
def test_a_search_that_is_told_what_to_do_stays_exact(monkeypatch, told):
    monkeypatch.setattr(approximate, "MOST_SEARCHED", 239)
    values = WAVES + np.random.default_rng(1).normal(0, 0.3, len(X))
    assert not FoldlessSearchCV(LSSVR(), **told).fit(X, values).best_estimator_.kernel_.approximates


def test_one_function_says_what_takes_the_place_of_a_kernel_and_why(monkeypatch):
    choose = approximate.choose_approximation
    monkeypatch.setattr(approximate, "available_memory", lambda: 2 * 30_000**2 * 8)
    auto_model, exact = LSSVR(approximation="auto"), LSSVR()
    assert choose(exact, 10**9).kind is None  # a fit is what was asked for
    assert choose(auto_model, 12_000).kind is None
    assert choose(auto_model, 12_001) == approximate.Approximation(
        "nystroem", False, "an exact kernel of more than 12000 rows takes long"
    )
    assert choose(exact, 25_001, searched=True).kind is None
    assert choose(exact, 25_001, searched=True, unlimited=True).finds_number
    assert choose(exact, 30_000, searched=True).kind is None
    too_large = choose(exact, 30_001, searched=True)
    assert too_large.finds_number
    assert too_large.reason == "an exact kernel matrix takes 7 GiB and 13 GiB are free"
    assert choose(exact, 30_001, itemsize=4, searched=True).kind is None
    assert choose(auto(), 20) == approximate.Approximation("nystroem", True, "approximation='nystroem'")
    for linear in ("linear", "precomputed"):
        assert choose(LSSVR(linear, approximation="auto"), 10**6, searched=True).kind is None


def test_a_linear_kernel_of_very_many_rows_stays_exact(monkeypatch):
    monkeypatch.setattr(approximate, "MOST_SEARCHED", 239)
    assert not FoldlessSearchCV(LSSVR("linear")).fit(X, WAVES).best_estimator_.kernel_.approximates


def test_auto_of_few_rows_stays_exact():
    search = search_of(LSSVR(approximation="auto", n_landmarks="auto")).fit(X, WAVES)
    assert not search.best_estimator_.kernel_.approximates
    assert not hasattr(search, "landmark_path_")


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

FIXED = {"gamma": 0.5, "alpha": 0.1, "approximation": "nystroem", "n_landmarks": 10}


def test_a_grid_that_names_the_number_is_looked_at_as_it_is():
    search = FoldlessSearchCV(auto(LSSVR, gamma=0.5), {"n_landmarks": [5, 20], "alpha": [0.1]}).fit(X, WAVES)
    assert search.best_params_["n_landmarks"] == search.best_estimator_.n_landmarks == 20


def test_the_number_for_several_approximations_is_refused():
    with pytest.raises(ValueError, match="n_landmarks='auto' is for one approximation, and param_grid names some"):
        FoldlessSearchCV(auto(), {"approximation": ["rff", None]}).fit(X, WAVES)


@pytest.mark.parametrize(
    ("estimator", "grid"),
    [
        (LSSVR(**FIXED), {"landmarks_per_fold": [True]}),
        (LSSVR(**FIXED, landmarks_per_fold=True).set_params(approximation=None), {"approximation": ["nystroem"]}),
        (LSSVR(**FIXED, landmarks_per_fold=True, landmarks=X[:10]), {"landmarks": ["uniform"]}),
    ],
    ids=["landmarks_per_fold", "approximation", "landmarks"],
)
def test_settings_of_a_grid_choose_landmarks_on_every_part(estimator, grid):
    rows, values = X[:80], WAVES[:80]
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
    with pytest.raises(ValueError, match="landmarks_per_fold is one for all settings; set it of the estimator"):
        FoldlessSearchCV(LSSVR(**FIXED), {"landmarks_per_fold": [True, False]}, cv=3).fit(X, WAVES)


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
