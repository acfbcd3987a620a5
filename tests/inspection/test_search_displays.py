"""Displays of searches: what is drawn are the settings that were looked at, and their criteria."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_equal
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from foldless import LSSVC
from foldless.inspection import AlphaPathDisplay, FeatureScalesDisplay, NestedDisplay, SearchDisplay

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:matplotlib")

ALPHAS, GAMMAS = [0.01, 0.1, 1.0, 10.0], [0.5, 5.0]


def step(n_rows, alpha, gamma, criterion):
    return {"n_rows": n_rows, "time": 0.1, "criterion": criterion, "alpha": alpha, "gamma": gamma, "kernel": "rbf"}


def searched():
    """A grid on 100 rows, and two settings on 400."""
    grid = [step(100, a, g, 1 + np.log10(a) ** 2 + g) for a in ALPHAS for g in GAMMAS]
    history = [*grid, step(400, 0.9, 0.6, 0.5), step(400, 1.1, 0.7, 0.4)]
    return SimpleNamespace(history_=history, best_params_={"alpha": 1.1, "gamma": 0.7, "kernel": "rbf"})


def test_every_setting_is_a_point_and_colours_compare_equal_numbers_of_rows():
    display = SearchDisplay.from_search(searched())
    few, all_rows = display.points_
    assert_equal(len(few.get_offsets()), 8)
    assert_allclose(all_rows.get_offsets(), [[0.9, 0.6], [1.1, 0.7]])
    assert_allclose(all_rows.get_array(), [1.25, 1.0])
    assert_allclose(np.min(few.get_array()), 1.0)
    assert all_rows.get_sizes()[0] > few.get_sizes()[0]
    assert_allclose(display.best_.get_xydata(), [[1.1, 0.7]])
    assert display.ax_.get_xlabel() == "alpha"
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["100 rows", "400 rows", "chosen"]


def test_searches_that_a_score_decided_are_drawn_by_it():
    search = searched()
    search.history_ = [
        {**{name: each for name, each in step.items() if name != "criterion"}, "score": 1 - step["criterion"] / 100}
        for step in search.history_
    ]
    display = SearchDisplay.from_search(search)
    assert_allclose(display.points_[1].get_array(), [1 + 0.001 / 0.996, 1.0])
    path = AlphaPathDisplay.from_search(search)
    assert path.ax_.get_ylabel() == "minus the score on 100 rows"
    assert_allclose(path.best_.get_xydata(), [[1.0, -0.985]])


def test_parameters_may_be_named():
    display = SearchDisplay.from_search(searched(), names=("gamma", "alpha"))
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("gamma", "alpha")
    with pytest.raises(ValueError, match=r"two parameters that are positive numbers.*\['alpha', 'gamma'\]"):
        SearchDisplay.from_search(searched(), names=("alpha", "kernel"))


@pytest.mark.parametrize("display", [SearchDisplay, AlphaPathDisplay])
def test_only_fitted_searches_can_be_drawn(display):
    with pytest.raises(ValueError, match="draws a fitted FoldlessSearchCV"):
        display.from_search(SimpleNamespace())


def test_the_path_by_alpha_has_a_line_for_each_kernel():
    display = AlphaPathDisplay.from_search(searched())
    assert_equal([line.get_xdata() for line in display.lines_], [ALPHAS, ALPHAS])
    assert_allclose(display.lines_[0].get_ydata(), [5.5, 2.5, 1.5, 2.5])
    assert_allclose(display.best_.get_xydata(), [[1.0, 1.5]])
    assert [line.get_color() == display.best_.get_color() for line in display.lines_] == [True, False]


def test_the_path_by_alpha_of_a_pipeline_has_its_name():
    search = searched()
    search.estimator = make_pipeline(StandardScaler(), LSSVC())
    search.history_ = [
        {f"lssvc__{name}" * (name in ("alpha", "gamma")) or name: value for name, value in each.items()}
        for each in search.history_
    ]
    assert_equal([line.get_xdata() for line in AlphaPathDisplay.from_search(search).lines_], [ALPHAS, ALPHAS])


def test_a_search_without_a_path_says_so():
    search = searched()
    search.history_ = search.history_[-2:]
    with pytest.raises(ValueError, match="several alphas of one kernel"):
        AlphaPathDisplay.from_search(search)


def test_scales_of_features_are_drawn_largest_first():
    search = SimpleNamespace(
        feature_scales_=np.array([[0.1, 3.0, 0.2], [0.5, 1.0, 0.1]]), feature_names_in_=list("abc")
    )
    display = FeatureScalesDisplay.from_search(search)
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == ["b", "a", "c"]
    assert_allclose(display.points_[1].get_xdata(), [1.0, 0.5, 0.1])
    with pytest.raises(ValueError, match="feature_scaling=True"):
        FeatureScalesDisplay.from_search(searched())


def test_nested_choices_are_drawn_once_with_their_mean_score():
    params = [{"alpha": 1.0, "gamma": 0.5}, {"alpha": 1.0, "gamma": 0.5}, {"alpha": 2.0, "gamma": 0.5}]
    result = SimpleNamespace(best_params=params, test_score=np.array([0.8, 0.9, 0.7]))
    display = NestedDisplay.from_result(result)
    assert_allclose(display.points_.get_offsets(), [[1.0, 0.5], [2.0, 0.5]])
    assert_allclose(display.points_.get_array(), [0.85, 0.7])
    assert display.points_.get_sizes()[0] == 2 * display.points_.get_sizes()[1]
    with pytest.raises(ValueError, match=r"positive numbers; names can be \['alpha', 'gamma'\]"):
        NestedDisplay.from_result(result, names=["kernel"])


def test_one_nested_parameter_is_drawn_against_the_score():
    params = [{"alpha": 1.0}, {"alpha": 10.0}, {"alpha": 1.0}]
    display = NestedDisplay.from_result(SimpleNamespace(best_params=params, test_score=np.array([0.8, 0.9, 0.8])))
    assert_allclose(display.points_.get_offsets(), [[1.0, 0.8], [10.0, 0.9]])
    assert_allclose(display.points_.get_sizes(), [80, 40])
    assert display.ax_.get_ylabel() == "held-out score"
    assert display.colorbar_ is None


def test_of_several_nested_parameters_every_split_is_a_line():
    params = [
        {"alpha": 1.0, "gamma": [1.0, 4.0], "degree": 2, "kernel": "poly"},
        {"alpha": 10.0, "gamma": [2.0, 8.0], "degree": 2, "kernel": "poly"},
        {"alpha": 100.0, "gamma": [1.0, 4.0], "degree": 2, "kernel": "rbf"},
    ]
    scores = np.array([0.8, 0.9, 0.7])
    display = NestedDisplay.from_result(SimpleNamespace(best_params=params, test_score={"a": scores, "b": 0 * scores}))
    heights = np.array([line[:, 1] for line in display.lines_.get_segments()])
    assert_allclose(heights, [[0, 0, 0.5], [0.5, 1, 0.5], [1, 0, 0.5]])  # between the ends, on a log scale
    assert_allclose(display.lines_.get_array(), scores)
    assert_equal(list(display.values), ["alpha", "gamma (geometric mean)", "degree"])
    assert_allclose(display.values["gamma (geometric mean)"], [2, 4, 2])


def test_choices_of_each_class_are_all_marked():
    search = searched()
    search.best_params_ = [{"alpha": 1.0, "gamma": 0.5}, {"alpha": 0.1, "gamma": 5.0}, {"alpha": 1.0, "gamma": 5.0}]
    assert_allclose(SearchDisplay.from_search(search).best_.get_xydata(), [[1.0, 0.5], [0.1, 5.0], [1.0, 5.0]])
    path = AlphaPathDisplay.from_search(search)
    assert_allclose([line.get_xdata()[0] for line in path.chosen_], [0.1])  # 1.0 is the best of the path


def test_scales_of_features_are_one_number_in_a_search():
    search = searched()
    for each in (*search.history_, search.best_params_):
        each["gamma"] = np.array([each["gamma"] / 3, each["gamma"] * 3])
    display = SearchDisplay.from_search(search)
    assert_allclose(display.points_[1].get_offsets(), [[0.9, 0.6], [1.1, 0.7]])
    assert_allclose(display.best_.get_xydata(), [[1.1, 0.7]])
    assert display.ax_.get_ylabel() == "gamma (geometric mean)"


def test_the_path_on_some_rows_marks_what_was_chosen_on_more():
    display = AlphaPathDisplay.from_search(searched())
    assert_allclose([line.get_xdata() for line in display.chosen_], [[1.1, 1.1]])
    assert display.ax_.get_ylabel() == "criterion on 100 rows"
    low, high = display.ax_.get_ylim()
    assert low < 1.5 < 5.5 < high < 10.0  # the best line is in sight


def test_scales_of_a_fitted_estimator_are_those_of_its_kernel():
    X = np.random.default_rng(0).normal(size=(20, 3))
    model = make_pipeline(StandardScaler(), LSSVC(gamma=[0.1, 3.0, 0.2])).fit(X, np.arange(20) % 2)
    display = FeatureScalesDisplay.from_estimator(model)
    assert_allclose(display.points_[0].get_xdata(), [3.0, 0.2, 0.1])
    with pytest.raises(ValueError, match="one gamma for each feature; LSSVC has none"):
        FeatureScalesDisplay.from_estimator(LSSVC().fit(X, np.arange(20) % 2))
