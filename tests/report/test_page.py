"""The page of a study: complete, well formed, escaped, offline. What a browser makes of it: test_browser."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from numpy.testing import assert_allclose

pytest.importorskip("pandas", reason="reports need the extra cli")
pytest.importorskip("skops", reason="reports need the extra cli")
pytest.importorskip("jinja2", reason="reports need the extra cli")

from foldless.report import html, svg, write
from foldless.report.words import number, verdict
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
        "how",
    ]
    assert ("ROC curve" in page.text) == (len(classes) == 2)
    assert ("Confusion matrix" in page.text) == (0 < len(classes) < 13)
    assert ("most frequent confusions" in page.text) == (len(classes) > 12)
    for words in ("Could it be chance?", "Criterion over the search", "Influence of rows", "Learning curve", "Groups"):
        assert words in page.text
    assert "nan" not in re.sub("[a-z]nan|nan[a-z]", "", page.text.lower())


def test_what_a_study_does_not_hold_is_left_out():
    bare = study(importance=(), learning_curve=(), surprising=(), test=None, folds=(), findings=(), code="", notes=())
    held = replace(bare.held_out, loo_probability=None, influence=None)
    page = Page(html(replace(bare, held_out=held, model=replace(bare.model, trials=()), timings={})))
    for words in ("chance?", "Criterion over", "Influence", "Learning", "Calibration", "Warnings", "Python", "p-value"):
        assert words not in page.text
    assert "columns" not in [each["id"] for each in page.all("section")]


def test_three_rows_have_a_page():
    few = study(n=3)
    assert "ROC" not in Page(html(few)).text


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
    assert len(plots) == 10
    for each in plots:
        assert each["role"] == "img"
        assert each["aria-label"]
        assert each["aria-describedby"] in ids
    assert len(page.all("caption")) == len(page.all("table"))
    assert all(each.get("scope") for each in page.all("th"))


def test_the_summary_says_how_good_how_sure_and_beside_what():
    said = verdict(study())
    assert said.level == "good"
    text = " ".join(said.sentences)
    for words in ("90.0 %", "85.0 % to 95.0 %", "most frequent class", "50.0 %", "none did as well", "p = 0.01"):
        assert words in text
    score = study().nested[0]
    assert verdict(study(nested=(replace(score, low=0.4),))).level == "unsure"
    chance = replace(study().test, p_value=0.4)
    assert verdict(study(test=chance)).headline.startswith("These rows do not show")
    assert "39 did as well" in " ".join(verdict(study(test=chance)).sentences)
    grave = replace(study().findings[0], severity="high")
    assert verdict(study(findings=(grave,))).level == "doubt"
    error = replace(score, name="mean absolute error", value=0.3, low=0.2, high=0.4, greater_is_better=False)
    assert verdict(study((), nested=(error,))).level == "good"  # below the baseline's 0.5


def test_ticks_are_round_and_inside():
    assert_allclose(svg.ticks(0, 1), [0, 0.2, 0.4, 0.6, 0.8, 1])
    assert_allclose(svg.ticks(-3.1, 7), [-2, 0, 2, 4, 6])
    assert svg.ticks(2.0, 2.0) == [2.0]
    assert number(float("nan")) == "–"


def test_plots_put_data_where_they_belong():
    plot = svg.Plot((1, 100), (0, 1), log="x")
    across, up = plot.at([1, 10, 100], [0, 0.5, 1])
    assert_allclose(np.diff(across, 2), 0, atol=1e-9)
    assert up[0] > up[1] > up[2]
    marks = len(plot.marks)
    plot.points([1, np.nan], [0.5, 0.5], ["a", "b"])
    assert len(plot.marks) == marks + 1


def test_many_rows_are_thinned_and_it_is_said():
    text = html(study((), n=5000))
    assert "Shown are 1,500 of 5,000 rows" in text
    assert len(text) < 800_000


def test_the_file_is_the_page(tmp_path):
    write(study(), tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == html(study())
