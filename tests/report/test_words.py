"""The words of the page: whose scores they are, which of two numbers is meant, which class is looked for."""

import math
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("pandas", reason="reports need the extra cli")
pytest.importorskip("skops", reason="reports need the extra cli")
pytest.importorskip("jinja2", reason="reports need the extra cli")

from sklearn import metrics

from foldless.report import columns, curves, html, rows, scores, tables, words
from foldless.report.summary import verdict
from foldless.tables import parts
from support.studies import study

PATIENT = parts.Column("patient", "groups", "category", "--groups", 0, 10, ("P0",))


def of_patients(classes=("ill", "well"), n=60):
    """A study of rows that are held out by patient."""
    some = study(classes, n=n, groups=np.array([f"P{k % 10}" for k in range(n)], dtype=object))
    return replace(some, data=replace(some.data, columns=(*some.data.columns, PATIENT)))


def told(some):
    return " ".join(verdict(some).sentences).replace(words.SPACE, " ")


@pytest.mark.parametrize(("classes", "what"), [(("ill", "well"), "90.0 % of rows"), ((), "the variance of rows")])
def test_scores_of_groups_are_those_of_new_groups(classes, what):
    some = of_patients(classes)
    assert f"{what} with a new “patient”" in told(some)
    assert "on rows whose “patient” the model had not seen" in told(some)
    assert scores.overview(some).title.endswith("on rows with a new “patient”")
    assert "new rows" in told(study(classes))


def test_the_one_that_is_left_out_is_the_group():
    some = of_patients()
    assert "leave-one-group-out" in tables.scores(some).header
    assert "leave-one-group-out" in scores.scores(some).text
    page = html(some)
    assert "Leave-one-group-out" in page
    assert "leave-one-out" not in page.lower()
    assert "without a row’s “patient”" in rows.held_out(some).text
    assert "without its “patient”" in rows.held_out(of_patients(())).text
    assert "without the row’s “patient”" in curves.calibration(some).text
    assert "had not seen its “patient”" in page
    assert "leave-one-out" in tables.scores(study()).header
    assert "the model without a row tells" in rows.held_out(study()).text


def test_surprising_rows_show_their_group():
    found = tables.surprising(of_patients())
    assert found.header[:2] == ("row", "patient")
    assert [line[1][0] for line in found.lines] == ["P6"]  # of row 7
    assert tables.groups(of_patients()).header[0] == "patient"
    assert tables.surprising(study()).header[1] == "in the file"


def score(name, value):
    return parts.Score(name, value, value - 0.05, value + 0.05, 0.9, "from the folds")


def test_a_model_with_fewer_right_answers_than_none_says_so():
    nested, base = (
        tuple(map(score, ("balanced accuracy", "accuracy"), values)) for values in ((0.844, 0.703), (0.5, 0.953))
    )
    some = study(("no", "yes"), n=61, nested=nested, baseline=base)
    said = told(some)
    assert "right more often than the model: 95.3 % of rows, the model 70.3 %" in said
    assert "missing a “yes” costs more" in said
    better = (nested[0], score("accuracy", 0.96))
    assert "right more often" not in told(replace(some, nested=better))
    many = study(("a", "b", "c"), n=61, nested=nested, baseline=base)
    assert "missing a rare class costs more" in told(many)


@pytest.mark.parametrize("rare", [0, 1])
def test_curves_and_probabilities_are_those_of_the_rarer_class(rare):
    some = study(("ill", "well"), n=90)
    kept = (np.arange(90) % 2 != rare) | (np.arange(90) % 3 == 0)
    held = some.held_out
    parts_of = {
        each: getattr(held, each)[kept] for each in held.__dataclass_fields__ if getattr(held, each) is not None
    }
    counts = {name: int(np.sum(parts_of["truth"] == name)) for name in some.classes}
    some = replace(some, held_out=replace(held, **parts_of), data=replace(some.data, class_counts=counts))
    name = some.classes[rare]
    ((found, of_it, values),) = curves.one_against_others(some)
    assert found == name == words.positive(some)
    assert metrics.roc_auc_score(of_it, values) > 0.8
    for make in (curves.roc, curves.precision_recall, curves.calibration):
        assert f"the class “{name}”, the rarer one," in make(some).text
    equal = study(("ill", "well"), n=90)
    assert "the class “well”, the second of two," in curves.roc(equal).text


def test_it_is_said_which_number_is_meant():
    some = study(nested=(score("accuracy", 0.9), score("area under the ROC curve", 0.8)))
    assert "(the accuracy, mean of 3 folds)" in told(some)
    assert "all folds together; the table of scores has the mean of the folds" in curves.roc(some).text
    assert "all folds together" in curves.precision_recall(some).text
    assert "the mean of the folds of the test, not the nested score" in scores.null(some).text
    assert "that of all held-out rows of the test together, not" in scores.null(study(())).text
    assert "it is not the probability that they have nothing to do with it" in scores.null(some).text
    assert "of the permutation test, of a smaller search;" in scores.overview(study()).text


def test_a_p_value_is_one_of_rows_within_groups_and_beyond_confounds():
    some = study()
    age = parts.Column("age", "confound", "number", "--confounds", 0, 60, ("1",))
    some = replace(some, data=replace(some.data, columns=(*some.data.columns, age)))
    some = replace(some, test=replace(some.test, within_groups=True, given_confounds=True))
    assert "targets shuffled within groups given the confounds did as well" in told(some)
    assert "If the other columns had nothing to do with “y” within groups beyond the confounds, a score" in told(some)
    assert "There is no permutation test." in told(replace(some, test=None))


def test_columns_that_are_worth_nothing_are_not_the_largest():
    def text(*means):
        found = tuple(parts.Importance(f"c{k}", mean, 0.0) for k, mean in enumerate(means))
        return columns.importance(study(importance=found)).text.replace(words.SPACE, " ")

    assert text(0.3, 0.1, 0.0).endswith("The largest: “c0” (30.0 %), “c1” (10.0 %).")
    assert text(0.312, 0.0001, -0.1).endswith("Only “c0” (31.2 %) makes a difference.")
    assert text(0.0, -0.1).endswith("No column alone makes a difference.")


def test_predictions_that_are_not_the_likeliest_are_told_in_plain_words():
    some = study(("a", "b"), n=90)
    turned = some.held_out.loo_prediction.copy()
    turned[:1] = np.where(turned[:1] == "a", "b", "a")
    found = curves.calibration(replace(some, held_out=replace(some.held_out, loo_prediction=turned)))
    assert "In 1 row the predicted class is not the most probable one" in found.text


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (9.86e8, "986 million"),
        (9.997e8, "1 billion"),
        (-4.2e9, "−4.2 billion"),
        (1.2e15, "1.2·10¹⁵"),
        (3e-5, "3·10⁻⁵"),
        (1234567.8, "1,234,568"),
        (0.25, "0.25"),
    ],
)
def test_large_and_small_numbers_can_be_read(value, expected):
    assert words.number(value).replace(words.SPACE, " ") == expected


def test_what_is_no_number_sorts_last():
    found = tables.grid("a", ("n",), [(("–", math.nan),), (("∞", math.inf),), (("1", 1.0),)])
    assert [line[0][1] for line in found.lines] == ["", "Infinity", 1.0]


def test_tables_that_scroll_say_how_many_lines_they_have():
    assert "14 lines" not in html(study([f"c{k}" for k in range(14)], n=140))
    assert '<span class="count">20 lines</span>' in html(study([f"c{k}" for k in range(20)], n=140))
