"""A study is written as JSON and read back."""

import dataclasses
from xml.etree import ElementTree

import numpy as np
import pytest

pytest.importorskip("skops", reason="tables need the extra cli")

from foldless.tables import Study, parts


def example():
    column = parts.Column("<b>", "feature", "number", "numbers", 1, 4, ("1", "2"))
    data = parts.Data("a.csv", "csv", 6, 2, 5, 1, 1, 0, False, (column,), {"no": 3, "yes": 2})
    score = parts.Score("accuracy", 0.8)  # its interval is nan
    trial = parts.Trial({"alpha": 1.0}, 0.5, 5)
    chosen = parts.Chosen("LSSVC", "rbf", {"alpha": 1.0}, "press", 0.5, (trial,), ("scaled",))
    nothing = np.zeros(5)
    held = parts.HeldOutRows(np.arange(5), np.array(["no", "yes", "no", "yes", "no"]), *[nothing] * 5)
    return Study(
        version="0",
        created="today",
        task="classification",
        target="y",
        classes=("no", "yes"),
        data=data,
        findings=(parts.Finding("id column", "low", "An id.", ("id",), (1, 2)),),
        model=chosen,
        nested=(score,),
        leave_one_out=(score,),
        baseline=(score,),
        folds=(parts.Fold(4, 1, {"alpha": 1.0}, {"accuracy": 1.0}),),
        test=parts.PermutationTest("accuracy", 0.8, np.array([0.5, np.nan]), 0.33, 5, "permuted"),
        held_out=held,
        importance=(parts.Importance("<b>", 0.1, 0.01),),
        importance_how="shuffled",
        learning_curve=(parts.LearningPoint(3, (1.0,), (0.5,)),),
        surprising=(parts.SurprisingRow(1, "no", "yes", 1.5, {"<b>": "2"}),),
        notes=("All rows.",),
        timings={"search": 0.1},
        code="print(1)",
    )


def test_a_study_survives_json():
    study = example()
    back = Study.from_json(study.to_json())
    assert back.to_json() == study.to_json()
    for each in dataclasses.fields(Study):
        assert type(getattr(back, each.name)) is type(getattr(study, each.name)), each.name
    assert np.isnan(back.nested[0].low)
    assert np.isnan(back.test.null[1])
    assert back.held_out.truth.tolist() == study.held_out.truth.tolist()
    assert back.held_out.loo_probability is None
    assert back.data.columns[0] == study.data.columns[0]


def test_scores_are_a_tidy_table():
    pytest.importorskip("pandas")
    study = example()
    high = dataclasses.replace(study.nested[0], low=0.7, high=0.9)
    table = dataclasses.replace(study, nested=(high,)).to_frame()
    assert list(table) == ["measure", "by", "value", "low", "high"]
    assert table["by"].tolist() == ["nested", "leave-one-out", "baseline"]
    assert table.iloc[0].tolist() == ["accuracy", "nested", 0.8, 0.7, 0.9]


def test_a_study_in_a_notebook_is_a_card_with_its_texts_escaped():
    shown = dataclasses.replace(example(), target="<b>")._repr_html_()
    assert "&lt;b&gt; in a.csv, 5 rows: accuracy 0.8" in shown
    assert "<b>" not in shown
    assert "<svg" in shown
    ElementTree.fromstring(shown)
