"""Every kind of table has a report that says what it should; leaks are found and told."""

import pytest

pytest.importorskip("pandas", reason="reports need the extra cli")
pytest.importorskip("skops", reason="reports need the extra cli")
pytest.importorskip("jinja2", reason="reports need the extra cli")
pytest.importorskip("typer", reason="reports need the extra cli")

from typer.testing import CliRunner

from foldless.cli.app import app
from foldless.tables import Study
from support.tables import FRAMES, written

SAID = {
    "passengers": ("“Survived”, which is “0” or “1”", "ROC curve", "Column &#39;Name&#39; is left out"),
    "unbalanced": ("if classes count alike", "that answer is right more often than the model"),
    "many classes": ("one of 30 classes", "The most frequent confusions", "How clear is each row?"),
    "values": ("of the variance of new rows", "Predicted and true values", "Dates are days"),
    "categories": ("Categories are indicators of their levels",),
    "three rows": ("too few rows to tell", "taken for another class"),
    "two columns": ("It uses 1 other column", "The other column helps"),
    "leaks": ("See the warnings first",),
    "patients": ("Groups, the worst first", "Weights count in fits", "those of new groups"),
    "words": ("Features are a sparse matrix",),
}


@pytest.mark.parametrize("name", [*FRAMES, "words"])
def test_every_kind_of_table_has_its_report(name, tmp_path):
    words = [*written(name, tmp_path), "--permutations", "19", "--quiet", "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(app, ["report", *words])
    assert result.exit_code == 0, (result.output, result.exception)
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    for said in SAID[name]:
        assert said in page
    study = Study.from_json((tmp_path / "out" / "study.json").read_text(encoding="utf-8"))
    grave = {each.kind for each in study.findings if each.severity == "high"}
    told = {"copy of the target", "duplicate rows", "perfect score"} if name == "leaks" else set()
    assert grave - {"duplicates across groups"} == told
    if name == "leaks":
        assert {each.columns for each in study.findings if each.columns} == {("boat",), ("PassengerId",)}
