"""Cells as people write them, and columns that are easily taken for something else."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

pd = pytest.importorskip("pandas", reason="tables need the extra cli")
pytest.importorskip("skops", reason="tables need the extra cli")
pytest.importorskip("typer", reason="the command line needs the extra cli")

from foldless.cli.predicting import predicted  # noqa: E402
from foldless.tables import Run, Schema, Table, TableError, Wishes, guess, load_model, prepare, save_model  # noqa: E402

N = 60
RNG = np.random.default_rng(0)


def table(n=N, **columns):
    frame = pd.DataFrame({"x": np.random.default_rng(1).normal(size=n), **columns})
    if "y" not in frame:
        frame["y"] = np.where(np.arange(n) % 3, "no", "yes")
    return Table(frame, "a.csv", "csv")


def column(values, name="c"):
    return next(each for each in guess(table(**{name: values}), Wishes("y")).columns if each.name == name)


@pytest.mark.parametrize("words", [["yes", "no"], [1, 0], [True, False], ["T", "F"], ["Y", "n"]])
def test_other_words_for_yes_and_no_mean_the_same_in_new_rows(words):
    schema = guess(table(flag=[True, False] * 30), Wishes("y")).schema
    new = pd.DataFrame({"x": [1.0, 2.0], "flag": words})
    rows, _ = Schema.from_json(schema.to_json()).rows(Table(new, "new.csv", "csv"))
    assert rows["flag"].tolist() == [1.0, 0.0]


def test_agreement_counts_other_words_for_yes_and_no(tmp_path):
    x = np.random.default_rng(5).normal(size=N)
    run = Run(table(x=x, y=x > 0), Wishes("y"))
    _, model = run.tuned()
    save_model(tmp_path / "m", run.rows, model, {})
    for truth in (x > 0, (x > 0).astype(int), np.where(x > 0, "yes", "no")):
        notes = predicted(load_model(tmp_path / "m"), table(x=x, y=truth), 0.9)[1]
        assert any(float(each.split()[0]) > 0.9 for each in notes if "with a target are right" in each)


def test_columns_beside_a_sparse_matrix_are_shown_as_left_out():
    X = sp.random(N, 20, density=0.3, random_state=0, format="csr")
    data = Table(
        pd.DataFrame({"age": np.random.default_rng(5).normal(size=N), "y": np.arange(N) % 2}), "a.npz", "npz", X
    )
    roles = {each.name: each for each in guess(data, Wishes("y")).columns}
    assert roles["age"].role == "dropped"
    assert "sparse matrix" in roles["age"].why


@pytest.mark.parametrize(
    ("values", "task", "doubt"),
    [
        (20 + np.arange(410) % 41, "regression", "--task classification"),
        (np.arange(410) % 5, "classification", "--task regression"),
        (np.arange(410) % 15, "classification", "--task regression"),
        (np.arange(410) % 2, "classification", ""),
        (np.arange(410) / 7, "regression", ""),
        (np.array(["u", "v"])[np.arange(410) % 2], "classification", ""),
    ],
)
def test_a_doubtful_task_is_told(values, task, doubt):
    found = guess(table(410, y=values), Wishes("y"))
    assert found.schema.task == task
    assert (doubt in found.doubt) if doubt else not found.doubt
    assert not guess(table(410, y=np.arange(410) % 5), Wishes("y", task="regression")).doubt


def test_huge_numbers_are_dealt_with_or_their_column_is_named():
    large = np.random.default_rng(5).normal(size=N) * 1e60
    study, _ = Run(table(c=large), Wishes("y")).study()
    assert np.isfinite(study.nested[0].value)
    large[6] = 1e300
    with pytest.raises(TableError, match=r"column 'c' holds 1e\+300 in row 7"):
        prepare(table(c=large), Wishes("y"))
    with pytest.raises(TableError, match=r"'y' holds 1e\+300"):
        prepare(table(y=large), Wishes("y"))
    assert_allclose(prepare(table(c=large), Wishes("y", drop=["c"])).X["x"].iloc[0], table().frame["x"].iloc[0])


INCOME = np.random.default_rng(2).permutation(200_000)[:N] + 500
MARKS = {
    "thousands separators": [f"{v:,}" for v in INCOME],
    "the sign '$'": [f"${v / 100:.2f}" for v in INCOME],
    "the sign '€'": [f"{v / 100:.2f} €" for v in INCOME],
    "a per cent sign": [f"{v / 1000}%" for v in INCOME],
    "the sign '$' and thousands separators": [f"-${v:,}" for v in INCOME],
}
NUMBERS = dict(zip(MARKS, (INCOME, INCOME / 100, INCOME / 100, INCOME / 1000, -INCOME), strict=True))


@pytest.mark.parametrize("mark", MARKS)
def test_numbers_with_signs_and_separators_are_numbers(mark):
    data = table(c=MARKS[mark])
    found = guess(data, Wishes("y"))
    described = next(each for each in found.columns if each.name == "c")
    assert (described.kind, described.role) == ("number", "feature")
    assert f"numbers with {mark}" in described.why
    assert_allclose(prepare(data, Wishes("y")).X["c"], np.round(NUMBERS[mark], 3))
    assert_allclose(prepare(data, Wishes("y", numeric=["c"])).X["c"], np.round(NUMBERS[mark], 3))
    new = Table(pd.DataFrame({"x": [1.0, 2.0], "c": [MARKS[mark][0], "7"]}), "new.csv", "csv")
    assert_allclose(found.schema.rows(new)[0]["c"], [np.round(NUMBERS[mark][0], 3), 7])
    rows = prepare(table(y=MARKS[mark]), Wishes("y"))
    assert not rows.classifies
    assert_allclose(rows.y, np.round(NUMBERS[mark], 3))


def test_signs_that_differ_are_no_numbers():
    mixed = [f"${v}" if v % 2 else f"{v}%" for v in INCOME]
    assert column(mixed).kind == "id"
    missing = column(["unknown", *MARKS["thousands separators"][1:]])
    assert missing.why == "numbers with thousands separators; 1 cells with 'unknown' count as missing"
    assert column(["1,2", "3,4"] * 30).kind == "category"


@pytest.mark.parametrize("format", ["%m/%d/%Y %H:%M", "%d.%m.%Y %H:%M:%S", "%m/%d/%Y %I:%M %p"])
def test_dates_with_times_are_dates(format):
    days = pd.date_range("2024-01-20 07:00", periods=N, freq="31h")
    data = table(c=days.strftime(format))
    found = next(each for each in guess(data, Wishes("y")).columns if each.name == "c")
    assert found.kind == "date"
    expected = (days - pd.Timestamp(0)).total_seconds() / 86400
    assert_allclose(prepare(data, Wishes("y")).X["c"], expected)
