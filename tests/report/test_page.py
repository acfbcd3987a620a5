"""The page of a study: complete, well formed, escaped, offline. In a browser: tests/slow/test_report_in_browser.py."""

import re
import sys
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from numpy.testing import assert_allclose

pytest.importorskip("pandas", reason="reports need the extra cli")
pytest.importorskip("skops", reason="reports need the extra cli")
pytest.importorskip("jinja2", reason="reports need the extra cli")

from foldless.inspection import CalibrationDisplay, InfluenceDisplay, MarginsDisplay, PermutationDisplay
from foldless.report import confusion, curves, html, rows, scores, search, svg, tables, words, write
from foldless.report.summary import verdict
from foldless.tables import parts
from support.studies import study

VOID = {"meta", "link", "br", "img", "input"}
NASTY = "</script><script>alert(1)</script>\"'><img src=x onerror=alert(2)>{{ 7 * 7 }}<!--"


class Page(HTMLParser):
    """The elements of a page; it fails where tags do not close in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.text = [], [], ""
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


def many():
    return tuple(f"class {k}" for k in range(14))


@pytest.mark.parametrize("classes", [("benign", "malignant"), ("a", "b", "c"), many(), ()])
def test_every_section_is_there_and_tags_close(classes):
    page = Page(html(study(classes, n=70, groups=np.arange(70) % 5)))
    assert [each["id"] for each in page.all("section")] == [
        "summary",
        "data",
        "scores",
        "columns",
        "rows",
        "model",
        "method",
    ]
    for said in ("ROC curve", "Precision and recall", "Are probabilities right?", "Confusion matrix", "Every class"):
        assert (said in page.text) == bool(classes)
    assert ("most frequent confusions" in page.text) == (len(classes) > 8)
    for said in (
        "Scores of shuffled targets",
        "Criterion over the search",
        "Influence of rows",
        "Would more rows help?",
    ):
        assert said in page.text
    for said in ("Groups", "Python that repeats it", "Time taken", "Which columns matter", "The most surprising rows"):
        assert said in page.text
    assert "nan" not in re.sub("[a-z]nan|nan[a-z]", "", page.text.lower())


def test_what_a_study_does_not_hold_is_left_out():
    bare = study(importance=(), learning_curve=(), surprising=(), test=None, folds=(), findings=(), code="", notes=())
    held = replace(bare.held_out, loo_probability=None, influence=None)
    page = Page(html(replace(bare, held_out=held, model=replace(bare.model, trials=()), timings={})))
    for said in (
        "Scores of shuffled",
        "Criterion over",
        "Influence",
        "more rows help",
        "probabilities right",
        "Python",
        "p, permutation test",
    ):
        assert said not in page.text
    assert "Good to know" not in page.text
    assert "Warnings" not in page.text
    assert "columns" not in [each["id"] for each in page.all("section")]


def test_three_rows_have_a_page():
    text = Page(html(study(n=3, folds=(), test=None))).text
    assert "ROC curve" not in text
    assert "too few rows" in text
    assert "confidence interval lies" not in text


@pytest.mark.parametrize("classes", [(NASTY, "b" + NASTY), ()])
def test_names_and_cells_of_the_file_are_text_alone(classes):
    plain = study(("u", "v") if classes else ())
    nasty = study(classes, name=NASTY, target=NASTY, groups=np.full(60, NASTY, dtype=object))
    nasty = replace(nasty, data=replace(nasty.data, source=NASTY), version=NASTY)
    expected, found = Page(html(plain)), Page(html(nasty))
    assert NASTY in found.text
    assert len(found.all("script")) == len(expected.all("script")) == 1
    assert not found.all("img")
    assert not [name for _, attributes in found.elements for name in attributes if name.startswith("on")]
    assert found.all("meta") == expected.all("meta")


def test_nothing_is_loaded():
    text = html(study())
    page = Page(text)
    assert "http" not in text.replace("http-equiv", "")
    assert "url(" not in text
    assert "@import" not in text
    loaded = [each.get(key) for _, each in page.elements for key in ("src", "href", "srcset", "data") if each.get(key)]
    assert {each[0] for each in loaded} == {"#", "d"}
    assert [each for each in loaded if each[0] == "d"] == ["data:,"]
    policy = page.all("meta")[1]["content"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert not [each for _, each in page.elements if "style" in each]  # the policy would ignore them


def test_plots_and_tables_are_named_and_described():
    page = Page(html(study()))
    ids = [each["id"] for _, each in page.elements if "id" in each]
    assert len(ids) == len(set(ids))
    plots = [each for each in page.all("svg") if "aria-hidden" not in each]
    assert len(plots) == 14
    for each in plots:
        assert each["role"] == "img"
        assert each["aria-label"]
        assert each["aria-describedby"] in ids
    assert len(page.all("caption")) == len(page.all("table"))
    assert all(each.get("scope") for each in page.all("th"))


def test_the_summary_says_how_good_how_sure_and_beside_what():
    said = verdict(study())
    assert said.level == "good"
    text = " ".join(said.sentences).replace("\N{NO-BREAK SPACE}", " ")
    for part in (
        "90.0 %",
        "between 85.0 % and 95.0 %",
        "“benign”, the most frequent class",
        "50.0 %",
        "none of 99 runs with targets shuffled did as well as the true ones, 90.0 %",
        "would occur in about 1 of 100 runs (p = 0.01)",
        "The test is of a smaller search: p belongs to its score, not to the accuracy above.",
    ):
        assert part in text
    assert "p = 0.01" in text
    score = study().nested[0]
    assert verdict(study(nested=(replace(score, low=0.4),))).level == "unsure"
    chance = replace(study().test, p_value=0.4)
    assert verdict(study(test=chance)).headline.startswith("These rows do not show")
    said = " ".join(verdict(study(test=chance)).sentences)
    assert "39 of 99 runs" in said
    assert "in about 40 of 100 runs (p = 0.4). This is no evidence that they do, and none that they do not." in said
    grave = replace(study().findings[0], severity="high")
    assert verdict(study(findings=(grave,))).level == "doubt"
    error = replace(score, name="mean absolute error", value=0.3, low=0.2, high=0.4, greater_is_better=False)
    assert verdict(study((), nested=(error,))).level == "good"  # below the baseline's 0.5


def test_ticks_are_round_and_inside():
    assert_allclose(svg.ticks(0, 1), [0, 0.2, 0.4, 0.6, 0.8, 1])
    assert_allclose(svg.ticks(-3.1, 7), [-2, 0, 2, 4, 6])
    assert svg.ticks(2.0, 2.0) == [2.0]
    assert words.number(float("nan")) == "–"


def test_plots_put_data_where_they_belong():
    plot = svg.Plot((1, 100), (0, 1), log="x")
    across, up = plot.at([1, 10, 100], [0, 0.5, 1])
    assert_allclose(np.diff(across, 2), 0, atol=1e-9)
    assert up[0] > up[1] > up[2]
    marks = len(plot.marks)
    plot.points([1, np.nan], [0.5, 0.5], ["a", "b"])
    assert len(plot.marks) == marks + 1


def test_ticks_of_logarithmic_axes_are_round_too():
    assert_allclose(svg.log_ticks(0.004, 30000, most=9), [0.01, 0.1, 1, 10, 100, 1000, 10000])
    assert_allclose(svg.log_ticks(0.9, 60), [1, 2, 5, 10, 20, 50])
    axis = "".join(svg.Plot((1e-6, 1e6), (0, 1), log="x").marks)
    assert ">10⁻⁶<" in axis
    assert ">1<" in axis


def test_numbers_have_few_digits():
    space = "\N{NO-BREAK SPACE}"
    given = (0, -0.5, 1234.56, 12345678.9, 0.00012345, np.float64(3.0), None)
    assert [words.number(each) for each in given] == ["0", "−0.5", "1,235", f"12.3{space}million", "0.000123", "3", "–"]
    assert words.score_text("accuracy", 0.8765) == f"87.6{space}%"
    assert words.score_text("R2", -0.00123) == "−0.001"
    assert words.score_text("mean absolute error", 43.789) == "43.8"
    assert [words.seconds(each) for each in (1e-5, 0.0123, 2.345, 1234.5)] == [
        "under 0.01 s",
        "0.012 s",
        "2.3 s",
        "1,234 s",
    ]


def test_long_and_wide_names_are_cut():
    assert words.cut("a" * 23) == "a" * 23
    assert words.cut("a" * 24) == "a" * 22 + "…"
    assert words.cut("年" * 12) == "年" * 11 + "…"
    assert words.quoted("y") == "“y”"
    assert words.quoted("السن") == "“\u2068السن\u2069”"  # what follows is not turned round


def test_curves_of_several_classes_are_those_of_each_against_the_others():
    some = study(("a", "b", "c"), n=90)
    found = curves.one_against_others(some)
    assert [name for name, *_ in found] == ["a", "b", "c"]
    for place, (name, of_it, decision) in enumerate(found):
        assert np.array_equal(of_it, some.held_out.truth == name)
        assert np.array_equal(decision, some.held_out.nested_decision[:, place])
    assert curves.roc(some).text.startswith("Every class against all others.")
    assert "of the class “malignant”" in curves.roc(study()).text


def test_the_confusion_matrix_counts_nested_predictions():
    for classes in (("a", "b", "c"), many()):
        some = study(classes, n=140)
        counts, held = confusion.crossed(some), some.held_out
        for i, truth in enumerate(classes):
            for j, said in enumerate(classes):
                assert counts[i, j] == np.sum((held.truth == truth) & (held.nested_prediction == said))
    assert f"{np.trace(counts)} of 140 rows" in confusion.picture(some).text


def test_what_was_approximated_is_said_in_the_summary():
    note = "Approximation: 300 landmarks."
    assert verdict(study(notes=(note, "Rows were shuffled."))).cautions == (note,)


def test_many_rows_are_thinned_and_it_is_said():
    text = html(study((), n=5000))
    assert "Shown are 1,500 of 5,000 rows" in text
    assert len(text) < 800_000


def test_the_file_is_the_page(tmp_path):
    write(study(), tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == html(study())


def marks(figure, shape="circle"):
    """Attributes of the marks of a figure that have a tip."""
    found = Page("".join(figure.plot.marks)).all(shape)
    return [each for each in found if each["class"].startswith("mark")]


def places(figure, x, y):
    """(x, y) in the box of a figure, as written into it."""
    return np.round(np.column_stack(figure.plot.at(np.asarray(x, float), np.asarray(y, float))), 1)


def drawn(figure):
    return np.array([(each["cx"], each["cy"]) for each in marks(figure)], dtype=float)


@pytest.mark.parametrize("classes", [("a", "b"), ("a", "b", "c"), ()])
def test_plots_have_the_numbers_of_the_displays(classes):
    some = study(classes, n=90)
    held = some.held_out
    found = rows.influence(some)
    display = InfluenceDisplay.of(held.truth, held.loo_decision, held.influence)
    order = np.argsort(-held.influence)
    assert_allclose(drawn(found), places(found, display.x[order], held.influence[order]), atol=0.051)
    test = PermutationDisplay(score=0.9, permutation_scores=some.test.null, pvalue=0.01)
    bars = [int(each["data-tip"].split()[0]) for each in marks(scores.null(some), "rect")]
    assert bars == test.histogram()[0].tolist()
    if classes:
        found = rows.held_out(some)
        margins = np.sort(MarginsDisplay.of(held.truth, held.loo_decision).margins)
        assert_allclose(drawn(found)[:, 0], places(found, margins, margins)[:, 0], atol=0.051)
        wrong = [each["class"] == "mark c1" for each in marks(found)]
        assert_allclose(wrong, margins < 0)
    if len(classes) == 2:
        found = curves.calibration(some)
        display = CalibrationDisplay.of(held.truth, held.loo_probability)
        assert_allclose(drawn(found), places(found, display.prob_pred[0], display.prob_true[0]), atol=0.051)


def test_settings_are_compared_on_as_many_rows():
    some = study()
    trials = [
        replace(each, criterion=loss, n_rows=n)
        for each, loss, n in zip(
            some.model.trials, (8.0, 4.0, 2.0, 3.0, 2.0, 1.0), (10, 10, 30, 30, 60, 60), strict=True
        )
    ]
    found = search.search(replace(some, model=replace(some.model, trials=tuple(trials))))
    assert_allclose(drawn(found), places(found, range(1, 7), [2, 1, 1, 1.5, 2, 1]), atol=0.051)
    assert "with those on as many rows" in found.text


def with_learnt_kernel(n_features, landmarks=0):
    numbers = {"gaussian_weight": 0.25, "gaussian_gamma": 0.01, "laplacian_weight": 0.75, "laplacian_gamma": 0.02}
    scales = tuple(parts.FeatureScale(f"column {k}", float(max(n_features - 3 - k, 0))) for k in range(n_features))
    some = study()
    return replace(
        some,
        model=replace(
            some.model, kernel="learnt", params={"alpha": 1.0, **numbers}, landmarks=landmarks, scales=scales
        ),
    )


def test_the_largest_scales_of_a_learnt_kernel_are_bars():
    found = search.scales(with_learnt_kernel(20))
    lengths = [float(width) for width in re.findall(r'<rect[^>]* width="([\d.]+)"', str(found.plot.drawn("t", "t")))]
    assert_allclose(np.array(lengths) / lengths[0], np.arange(17, 2, -1) / 17, atol=0.01)
    assert "“column 0” (17), “column 1” (16), “column 2” (15)" in found.text
    assert "Shown are 15 of 20 features. 3 features have the scale 0." in found.text
    assert search.scales(study()) is None


def test_a_learnt_kernel_is_told_by_its_weights_and_widths():
    text = Page(html(with_learnt_kernel(4, landmarks=500))).text
    assert "a kernel that the search has learnt, the sum of a Gaussian and a Laplacian one" in text
    assert "approximated by 500 landmarks" in text
    for name in ("gaussian_weight", "gaussian_gamma", "laplacian_weight", "laplacian_gamma"):
        assert tables.MEANINGS[name] in text
    assert "What the learnt kernel looks at" in text
    named = Page(html(study())).text
    assert "with the kernel rbf" in named
    assert "What the learnt kernel looks at" not in named


def test_intervals_are_told_by_their_names():
    score = study().nested[0]
    other = replace(score, name="area under the ROC curve", how="from Wilson")
    assert words.origins((score, replace(other, how=score.how))) == "from the folds"
    assert words.origins((score, other)) == "from the folds (accuracy); from Wilson (area under the ROC curve)"


def test_a_page_needs_no_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "ROC curve" in html(study())


def test_rows_without_probabilities_are_told_right_or_wrong():
    some = study(n=4, surprising=tuple(replace(study().surprising[0], row=k, surprise=float(k == 2)) for k in (2, 3)))
    held = replace(some.held_out, loo_probability=None)
    found = tables.surprising(replace(some, held_out=held))
    assert found.header[3] == "taken for another class"
    assert [(line[0][1], line[3][0]) for line in found.lines] == [(2, "yes")]
    assert tables.surprising(some).header[3] == "probability of another class"


def test_columns_with_gaps_are_those_of_numbers():
    found = tables.grid("a", ("n", "t"), [(("–", ""), "b"), (("3", 3), "c")])
    assert found.numeric == [True, False]


def test_counts_have_whole_numbers():
    axis = Page("".join(svg.Plot((0, 2.1), whole="x", lanes=["a"]).marks)).text
    assert "0.5" not in axis
    assert "12" in axis


def test_one_other_column_is_one():
    some = study()
    one = replace(some, data=replace(some.data, columns=some.data.columns[:1]))
    assert verdict(one).headline == "The other column helps to predict “y”."
    assert verdict(some).headline == "The other columns help to predict “y”."


def test_shuffles_within_groups_are_called_so():
    some = study(test=replace(study().test, within_groups=True))
    assert "targets shuffled within groups" in " ".join(verdict(some).sentences)


def test_predictions_that_are_not_the_likeliest_are_counted():
    some = study(("a", "b"), n=90)
    assert "predictions follow the decision" not in curves.calibration(some).text
    turned = some.held_out.loo_prediction.copy()
    turned[:2] = np.where(turned[:2] == "a", "b", "a")
    found = curves.calibration(replace(some, held_out=replace(some.held_out, loo_prediction=turned)))
    assert "In 2 rows the predicted class is not the most probable one" in found.text


def test_the_settings_of_one_parameter_are_a_path():
    some = study()
    found = search.settings(some)
    loss = np.array([each.criterion for each in some.model.trials])
    assert_allclose(drawn(found), places(found, 10.0 ** np.arange(-3, 3), loss / loss.min()), atol=0.051)
    assert "Chosen: alpha = 1." in found.text
