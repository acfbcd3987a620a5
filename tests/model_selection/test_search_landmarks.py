"""Searches that find the number of landmarks, and those that take landmarks since the exact kernel does not fit."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import foldless.estimators.approximate as approximate
from foldless import LSSVC, LSSVR, FoldlessSearchCV
from foldless.model_selection import _search_landmarks

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


@pytest.mark.parametrize("given", [{"bounds": {"gamma": (0.1, 1.0)}}, {"method": "gradient"}])
def test_searches_that_are_told_where_to_look_look_there_with_more_landmarks(given):
    search = FoldlessSearchCV(auto(), max_iter=3, **given).fit(X, WAVES)
    for each in search.landmark_path_:
        plain = FoldlessSearchCV(auto().set_params(n_landmarks=each["n_landmarks"]), max_iter=3, **given)
        assert_allclose(plain.fit(X, WAVES).best_criterion_, each["criterion"])


def test_a_smooth_function_needs_few_landmarks():
    smooth = search_of(auto()).fit(X, X[:, 0] + RNG.normal(0, 0.5, 240))
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


def test_the_second_search_looks_at_less_and_is_expected_to_take_no_longer(monkeypatch):
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
    monkeypatch.setattr(_search_landmarks, "MOST_EXACT", 239)
    with pytest.warns(UserWarning, match="240 rows: an exact search of more than 239 takes long.*Give time_limit="):
        search = FoldlessSearchCV(LSSVR()).fit(X, WAVES)
    assert search.best_estimator_.kernel_.approximates


@pytest.mark.parametrize("told", [{"time_limit": 1000.0}, {"param_grid": {"alpha": [0.1]}}, {"method": "grid"}])
def test_a_search_that_is_told_what_to_do_stays_exact(monkeypatch, told):
    monkeypatch.setattr(_search_landmarks, "MOST_EXACT", 239)
    values = WAVES + np.random.default_rng(1).normal(0, 0.3, len(X))
    assert not FoldlessSearchCV(LSSVR(), **told).fit(X, values).best_estimator_.kernel_.approximates


def test_a_linear_kernel_of_very_many_rows_stays_exact(monkeypatch):
    monkeypatch.setattr(_search_landmarks, "MOST_EXACT", 239)
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
