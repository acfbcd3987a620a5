"""Results as tables and in notebooks: the same numbers, well-formed HTML, every text escaped."""

import sys
from xml.etree import ElementTree

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_equal

from foldless import LSSVC, FoldlessSearchCV, chunked, model_selection, stats
from foldless.model_selection import (
    PermutationTestResult,
    compare,
    cross_validate,
    nested_cross_validate,
    permutation_test_pattern,
    permutation_test_score,
    score_interval,
)
from foldless.results import Result, histogram, lanes, points
from foldless.stats import cluster_test, prevalence_test

SCRIPT = "<script>alert('&')</script>"


def data():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), np.arange(30) % 3
    X[:, 0] += y
    return X, np.array([SCRIPT, "b", "c"])[y]


def search():
    return FoldlessSearchCV(LSSVC(gamma=0.5), {"alpha": [0.1, 1.0], "gamma": [0.3, 0.5]})


def family(seed=0):
    null = np.random.default_rng(seed).normal(0.5, 0.05, (99, 8))
    return PermutationTestResult(np.array([0.5, 0.5, 0.8, 0.8, 0.5, 0.5, 0.9, 0.5]), null, scoring=SCRIPT)


X, Y = data()
MAKE = {
    "cross_validate": lambda: cross_validate(
        LSSVC(), X, Y, scoring=["accuracy", "recall_macro"], cv=3, return_indices=True
    ),
    "nested": lambda: nested_cross_validate(search(), X, Y, cv=3),
    "permutation": lambda: permutation_test_score(LSSVC(), X, Y, cv=3, n_permutations=19),
    "family": family,
    "cluster": lambda: cluster_test(family()),
    "pattern": lambda: permutation_test_pattern(LSSVC("linear"), X, Y, n_permutations=19),
    "prevalence": lambda: prevalence_test([family(seed) for seed in range(4)], n_permutations=99),
    "interval": lambda: score_interval(LSSVC(), X, Y, cv=3, n_repeats=1),
    "compare": lambda: compare({SCRIPT: LSSVC(), "linear": LSSVC("linear")}, X, Y, cv=3, n_repeats=1),
    "certificate": lambda: LSSVC(gamma=0.5).fit(X, Y).forget([4]).unlearning_certificate(),
    "chunked": lambda: chunked.cross_validate(LSSVC("linear"), chunked.arrays(X, Y), alphas=[0.1, 1.0]),
}


@pytest.fixture(scope="module")
def results():
    return {name: make() for name, make in MAKE.items()}


def texts(html):
    """All texts of well-formed HTML, and the names of its elements."""
    tree = ElementTree.fromstring(html)
    return "".join(tree.itertext()), {each.tag.split("}")[-1] for each in tree.iter()}


def test_every_public_result_is_a_table():
    public = [getattr(module, name) for module in (model_selection, stats, chunked) for name in module.__all__]
    kinds = [kind for kind in public if getattr(kind, "__name__", "").endswith(("Result", "Interval"))]
    assert len(kinds) > 6
    assert all(issubclass(kind, Result) for kind in kinds)


@pytest.mark.parametrize("name", MAKE)
def test_html_is_well_formed_and_escapes_what_users_name(results, name):
    text, kinds = texts(results[name]._repr_html_())
    assert "script" not in kinds
    assert {"svg", "table"} <= kinds
    assert str(results[name]).splitlines()[0] in text or name == "cross_validate"
    if name in ("family", "pattern", "compare"):
        assert SCRIPT in text


@pytest.mark.parametrize("name", ["permutation", "nested", "interval"])
def test_plain_texts_are_as_they_were(results, name):
    assert "<" not in repr(results[name])


def test_a_table_of_cross_validation_has_a_row_for_each_split(results):
    table = results["cross_validate"].to_frame()
    assert table["split"].tolist() == [0, 1, 2]
    assert_equal(table["test_accuracy"].to_numpy(), results["cross_validate"]["test_accuracy"])
    assert table["n_train"].tolist() == [20, 20, 20]


def test_a_table_of_nested_cross_validation_has_scores_and_choices(results):
    nested = results["nested"]
    table = nested.to_frame()
    assert_equal(table["test_score"].to_numpy(), nested.test_score)
    assert_equal(table["inner_score"].to_numpy(), nested.inner_score)
    assert_equal(table["param_alpha"].tolist(), [each["alpha"] for each in nested.best_params])
    several = nested_cross_validate(search(), X, Y, cv=3, scoring=["accuracy", "recall_macro"])
    assert_equal(several.to_frame()["inner_recall_macro"].to_numpy(), several.inner_score["recall_macro"])
    assert "test accuracy" in texts(several._repr_html_())[0]


def test_choices_of_each_class_are_lists(results):
    shared = FoldlessSearchCV(LSSVC(gamma=0.5), {"alpha": [0.1, 1.0]}, share="kernel")
    nested = nested_cross_validate(shared, X, Y, cv=3)
    expected = [[one["alpha"] for one in each] for each in nested.best_params]
    assert_equal(nested.to_frame()["param_alpha"].tolist(), expected)


def test_a_table_of_a_test_has_the_true_labels_first(results):
    test = results["permutation"]
    table = test.to_frame()
    assert_equal(table["score"].to_numpy(), [test.score, *test.permutation_scores])
    assert table["permutation"].iloc[-1] == 19


def test_a_table_of_a_family_has_a_row_for_each_member(results):
    found = results["cluster"]
    table = found.to_frame()
    for name in ("score", "pvalue", "pvalue_fwe"):
        assert_equal(table[name].to_numpy(), getattr(found, name))
    assert_equal(table["cluster"].to_numpy() >= 0, np.any(found.clusters, axis=0))
    assert_equal(table["statistic"].to_numpy(), found.statistics)
    square = PermutationTestResult(np.arange(4.0).reshape(2, 2), np.zeros((9, 2, 2)), generalised=True).to_frame()
    assert_equal(square[["train", "test", "score"]].to_numpy(), [[0, 0, 0], [0, 1, 1], [1, 0, 2], [1, 1, 3]])


def test_a_table_of_patterns_has_a_row_for_each_feature_of_each_decision(results):
    found = results["pattern"]
    table = found.to_frame().set_index(["output", "feature"])
    assert len(table) == 9
    assert table.loc[("b", 2), "pattern"] == found.patterns[1, 2]
    assert table.loc[("c", 0), "weights_pvalue"] == found.weights_pvalue[2, 0]


def test_tables_of_one_row(results):
    interval, certificate = results["interval"], results["certificate"]
    assert_equal(interval.to_frame()[["score", "low", "high"]].to_numpy()[0], list(interval))
    assert certificate.to_frame()["residual"].tolist() == [certificate.residual]
    assert certificate.to_frame()["holds"].tolist() == [True]
    assert_equal(results["prevalence"].to_frame()["prevalence"].to_numpy(), results["prevalence"].prevalence)


def test_a_table_of_a_comparison_has_a_row_for_each_pair(results):
    table = results["compare"].to_frame()
    (pair,) = results["compare"].differences
    assert table.to_dict("records") == [vars(pair)]


def test_a_table_in_chunks_has_a_row_for_each_setting(results):
    table = results["chunked"].to_frame()
    assert_equal(table["alpha"].to_numpy(), [0.1, 1.0])
    assert_equal(table["kfold_press"].to_numpy(), results["chunked"].kfold_press[0])


def test_a_search_is_a_table_and_shows_itself_below_its_diagram():
    fitted = search()
    before = fitted._repr_mimebundle_()["text/html"]
    assert "settings" not in before
    fitted.fit(X, Y)
    table = fitted.to_frame()
    assert_equal(table["mean_test_criterion"].to_numpy(), fitted.cv_results_["mean_test_criterion"])
    assert_equal(table["param_gamma"].tolist(), fitted.cv_results_["param_gamma"].tolist())
    html = fitted._repr_mimebundle_()["text/html"]
    assert "LSSVC" in html
    text, _ = texts(html[html.rindex('<div style="max-width') :])
    assert f"best_params_ alpha={fitted.best_params_['alpha']:g}, gamma={fitted.best_params_['gamma']:g};" in text


def test_without_pandas_tables_say_what_to_install(results, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="to_frame needs pandas: pip install pandas"):
        results["nested"].to_frame()
    assert results["nested"]._repr_html_()


# Pictures


def marks(picture, kind):
    found = ElementTree.fromstring(picture).iter(f"{{http://www.w3.org/2000/svg}}{kind}")
    return [{name: float(value) for name, value in each.attrib.items() if name != "stroke"} for each in found]


def test_bars_are_as_high_as_values_are_many():
    bars = marks(histogram([0.1, 0.1, 0.1, 0.9, np.nan], 1.1, "null"), "rect")
    assert_allclose([bar["height"] for bar in bars], [50, 50 / 3], rtol=1e-3)
    assert marks(histogram([0.1, 0.9], 0.5, "null"), "line")[0]["x1"] == 170.0  # the middle


def test_points_of_lanes_are_where_values_are():
    picture = lanes([("a", [0.2, 0.4], None), ("b", 0.3, (0.1, np.nan))], "scores", line=0.0)
    x = [each["cx"] for each in marks(picture, "circle")]
    assert_allclose(np.interp([0.2, 0.4, 0.3], [0.0, 0.4], [150.0, 334.0]), x, rtol=1e-3)


def test_strong_points_are_dark_and_come_last():
    found = marks(points([0, 1, 2, 3], [5.0, 7.0, np.nan, 5.0], [False, True, True, False], "scores"), "circle")
    assert_allclose([each["opacity"] for each in found], [0.35, 0.35, 1.0])
    assert_allclose([each["cy"] for each in found], [66, 66, 6])


@pytest.mark.parametrize("values", [[], [np.nan], [0.5], [0.0, 0.0]])
def test_odd_values_are_drawn(values):
    for picture in (histogram(values, np.nan, ""), lanes([("a", values, None)], "")):
        assert "nan" not in picture
    assert "nan" not in points(values, values, np.zeros(len(values), bool), "")
