"""Texts of the user's file that a spreadsheet would run: written so that it does not, and read back as they were."""

import csv
import io

import numpy as np
import pytest

pd = pytest.importorskip("pandas", reason="the command line needs the extra cli")
pytest.importorskip("skops", reason="the command line needs the extra cli")
pytest.importorskip("typer", reason="the command line needs the extra cli")

from typer.testing import CliRunner  # noqa: E402

from foldless.cli.app import app  # noqa: E402
from foldless.tables import read_table  # noqa: E402
from foldless.tables.spreadsheets import escaped, unescaped  # noqa: E402

RUN = [
    "=1+1",
    "+1+1",
    "-1+1",
    "@SUM(1)",
    "\t=1",
    "\r=1",
    "\n=1",
    " =1",
    "＝1+1",
    "-",
    "+49 170 1234",
    "-x",
    '=cmd|"/c"',
]
NOT_RUN = ["-1", "+5", "-1.5e-3", "-.5", "a=1", "x@y.z", "1-1", "", "'", "'tis", "'-1"]


@pytest.mark.parametrize("cell", RUN)
def test_texts_that_a_spreadsheet_would_run_have_an_apostrophe_in_front(cell):
    frame, n_cells = escaped(pd.DataFrame({"a": [cell, "'" + cell, "b"], cell: [1, 2, 3]}))
    assert frame.iloc[:, 0].tolist() == ["'" + cell, "''" + cell, "b"]
    assert frame.columns.tolist() == ["a", "'" + cell]
    assert n_cells == 2


@pytest.mark.parametrize("cell", NOT_RUN)
def test_numbers_and_other_texts_stay(cell):
    frame, n_cells = escaped(pd.DataFrame({"a": [cell, None], "b": [-1.5, 2.0], "c": [-1, 2]}))
    assert frame["a"][0] == cell
    assert frame[["b", "c"]].to_numpy().tolist() == [[-1.5, -1], [2.0, 2]]
    assert n_cells == 0


@pytest.mark.parametrize("dtype", [object, "str"])
def test_what_is_escaped_is_read_back(dtype):
    texts = pd.DataFrame({"a": pd.Series([*RUN, *NOT_RUN, *("'" + each for each in RUN), None], dtype=dtype)})
    found = unescaped(escaped(texts)[0])
    assert found["a"].tolist()[:-1] == texts["a"].tolist()[:-1]
    assert found["a"].isna().tolist() == texts["a"].isna().tolist()


@pytest.fixture
def model(tmp_path, monkeypatch):
    """A model of the labels =1+1, -1 and @x in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    labels = np.array(["=1+1", "-1", "@x"], dtype=object)[np.arange(60) % 3]
    a = np.arange(60) % 3 + 0.1 * np.random.default_rng(0).normal(size=60)
    pd.DataFrame({"a": a, "y": labels}).to_parquet("a.parquet")
    run("tune", "a.parquet", "--target", "y", "--out", "m", "--quiet")
    return labels.tolist()


def run(*words):
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, (result.output, result.exception)
    return result


def test_predictions_are_texts_in_every_format(model):
    shown = ["'" + each if each in ("=1+1", "@x") else each for each in model]
    for name, separator in (("p.csv", ","), ("p.tsv", "\t"), ("p", ",")):
        said = run("predict", "m", "a.parquet", "--out", name).stderr
        assert "40 cells begin as formulas do" in said
        with open(name, newline="") as file:
            header, *lines = csv.reader(file, delimiter=separator)
        assert [line[1] for line in lines] == shown
        assert header[:2] == ["row", "prediction"]
    result = run("predict", "m", "a.parquet")
    assert [line[1] for line in csv.reader(io.StringIO(result.stdout))][1:] == shown
    assert "begin as formulas" not in run("predict", "m", "a.parquet", "--out", "p.parquet").stderr
    assert pd.read_parquet("p.parquet")["prediction"].tolist() == model
    run("predict", "m", "a.parquet", "--out", "p.xlsx")
    cells = list(pytest.importorskip("openpyxl").load_workbook("p.xlsx").active.iter_rows(min_row=2, max_col=2))
    assert [line[1].value for line in cells] == model
    assert {line[1].data_type for line in cells} == {"s"}
    assert {line[0].data_type for line in cells} == {"n"}


def test_what_predict_writes_is_read_back(model):
    for name in ("p.csv", "p.tsv", "p.xlsx", "p.parquet"):
        run("predict", "m", "a.parquet", "--out", name)
        table = read_table(name).frame
        assert table["prediction"].astype(str).tolist() == model
        new = pd.read_parquet("a.parquet")[["a"]].assign(y=table["prediction"].astype(str))
        new.to_parquet("new.parquet")
        assert "1.000 of 60 rows with a target are right" in run("predict", "m", "new.parquet").stderr
    pd.DataFrame({"a": new["a"], "y": escaped(new[["y"]])[0]["y"]}).to_csv("escaped.csv", index=False)
    assert "1.000 of 60 rows with a target are right" in run("predict", "m", "escaped.csv").stderr


def test_formats_that_are_not_written_are_refused_at_once(model):
    for name in ("p.npz", "p.arff", "p.svmlight", "p.xlsm"):
        result = CliRunner().invoke(app, ["predict", "m", "none.csv", "--out", name])
        assert result.exit_code == 2
        assert f"tables are not written as {name[1:]}" in result.stderr


def test_letters_that_excel_can_not_hold_are_replaced(tmp_path):
    from foldless.cli.writing import write_binary

    write_binary(pd.DataFrame({"a": ["x\x07y", "#N/A"]}), tmp_path / "a.xlsx", "excel")
    book = pytest.importorskip("openpyxl").load_workbook(tmp_path / "a.xlsx")
    assert [line[0].value for line in book.active.iter_rows(min_row=2)] == ["x�y", "#N/A"]
