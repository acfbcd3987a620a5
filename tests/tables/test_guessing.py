"""What columns are taken for, and how their cells become rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

pd = pytest.importorskip("pandas", reason="tables need the extra cli")
pytest.importorskip("skops", reason="tables need the extra cli")

from foldless.tables import Schema, Table, TableError, Wishes, guess, pipeline, prepare  # noqa: E402

N = 60
RNG = np.random.default_rng(0)


def table(**columns):
    frame = pd.DataFrame({"x": np.random.default_rng(5).normal(size=N), **columns})
    if "y" not in frame:
        frame["y"] = np.where(np.arange(N) % 3, "no", "yes")
    return Table(frame, "a.csv", "csv")


def kind(values, name="c"):
    found = {each.name: each for each in guess(table(**{name: values}), Wishes("y")).columns}
    return found[name].kind, found[name].role


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.arange(N) * 0.5, ("number", "feature")),
        ([str(v) for v in range(0, 2 * N, 2)], ("number", "feature")),
        (["unknown"] * 3 + [str(v * 1.5) for v in range(N - 3)], ("number", "feature")),
        (["red", "green", "blue"] * 20, ("category", "feature")),
        (["Yes", "no", None] * 20, ("boolean", "feature")),
        ([True, False] * 30, ("boolean", "feature")),
        ([0, 1] * 30, ("boolean", "feature")),
        ([f"2024-{1 + v % 12:02d}-11" for v in range(N)], ("date", "feature")),
        ([f"{1 + v % 28}.{1 + v % 12}.2024" for v in range(N)], ("date", "feature")),
        (pd.date_range("2020-01-01", periods=N), ("date", "feature")),
        (np.arange(N), ("id", "dropped")),
        ([f"person {v}" for v in range(N)], ("id", "dropped")),
        (["a long text that goes on and on, about the number " + str(v) for v in range(N)], ("text", "dropped")),
        (["same"] * N, ("constant", "dropped")),
        ([None] * N, ("empty", "dropped")),
    ],
)
def test_kinds_are_guessed(values, expected):
    assert kind(values) == expected


def test_an_id_is_known_by_its_name():
    numbers = np.random.default_rng(5).permutation(10 * N)[:N]
    assert kind(numbers, "patient_id")[0] == "id"
    assert kind(numbers, "income")[0] == "number"


@pytest.mark.parametrize(
    ("values", "task"),
    [
        (["a", "b"] * 30, "classification"),
        ([1, 2, 3] * 20, "classification"),
        (RNG.normal(size=N), "regression"),
        (RNG.poisson(30, N), "regression"),
        ([0.5, 1.5] * 30, "classification"),
    ],
)
def test_the_task_follows_the_target(values, task):
    assert guess(table(y=values), Wishes("y")).schema.task == task


def test_options_overrule_the_guess():
    data = table(code=[1, 2, 3] * 20, id=np.arange(N), note=["a", "b"] * 30)
    roles = {each.name: each for each in guess(data, Wishes("y", drop=["note"], categorical=["code"])).columns}
    assert (roles["code"].kind, roles["note"].role, roles["id"].role) == ("category", "dropped", "dropped")
    assert [each.name for each in guess(data, Wishes("y", keep=["id"])).schema.features] == ["id"]
    with pytest.raises(TableError, match=r"'Note'.*Did you mean 'note'"):
        guess(data, Wishes("y", drop=["Note"]))
    with pytest.raises(TableError, match="no column 'z'"):
        guess(data, Wishes("z"))
    with pytest.raises(TableError, match="is the target"):
        guess(data, Wishes("y", drop=["y"]))


def test_hints_for_targets_do_not_go_in_circles():
    with pytest.raises(TableError, match="classes in 60 rows") as told:
        guess(table(y=[f"person {v}" for v in range(N)]), Wishes("y"))
    assert "--task" not in told.value.hint
    with pytest.raises(TableError, match="classes in 60 rows") as told:
        guess(table(y=np.arange(N) * 7), Wishes("y", task="classification"))
    assert "--task regression" in told.value.hint


@pytest.mark.parametrize(
    ("columns", "cause"),
    [
        ({"y": ["a"] * N}, "one class only"),
        ({"y": [None] * N}, "has no values"),
        ({"y": [f"person {v}" for v in range(N)]}, "60 classes"),
        ({"x": [np.nan] * N}, "no column is left"),
        ({"x": [7.0] * N}, "no column is left"),
    ],
)
def test_targets_and_features_without_content_are_refused(columns, cause):
    with pytest.raises(TableError, match=cause):
        prepare(table(**columns), Wishes("y"))


def test_rows_are_numbers_with_gaps_filled_and_rare_levels_pooled():
    town = ["Ulm"] * 30 + ["Bonn"] * 28 + ["Rom", "Oslo"]
    day = pd.date_range("2020-01-01", periods=N, freq="20D").astype(str)
    data = table(town=town, day=day, flag=["yes", "no"] * 30, gap=[np.nan, *np.arange(1, N) / 8])
    rows = prepare(data, Wishes("y"))
    steps = pipeline(rows)[0]
    X = steps.fit_transform(rows.X)
    names = [each.split("__")[1] for each in steps.get_feature_names_out()]
    assert np.isfinite(X).all()
    assert {"town_Ulm", "town_Bonn", "town_infrequent_sklearn", "day (sine of the year)", "flag"} <= set(names)
    assert "town_Rom" not in names
    scaled = X[:, [names.index("x"), names.index("day")]]
    assert_allclose(scaled.std(0), 1.0)
    assert X[:, names.index("missingindicator_gap")].tolist() == [1.0] + [0.0] * (N - 1)


def test_rows_without_target_and_tiny_classes_are_left_out_and_told():
    y = [None] * 3 + ["rare"] * 2 + ["a", "b"] * 27 + ["a"]
    rows = prepare(table(y=y), Wishes("y"))
    assert len(rows) == N - 5
    assert rows.schema.classes == ("a", "b")
    assert any("without a target" in each for each in rows.notes)
    assert any("'rare'" in each for each in rows.notes)


def test_a_schema_reads_other_tables_or_says_what_is_wrong():
    data = table(town=["Ulm", "Bonn"] * 30, flag=["yes", "no"] * 30)
    schema = Schema.from_json(guess(data, Wishes("y")).schema.to_json())
    new = pd.DataFrame({"extra": [1, 2], "flag": ["NO", "yes"], "town": ["Rom", "Ulm"], "x": ["1.5", None]})
    rows, notes = schema.rows(Table(new, "new.csv", "csv"))
    assert rows.columns.tolist() == ["x", "town", "flag"]
    assert rows["flag"].tolist() == [0.0, 1.0]
    assert any("'Rom'" in each for each in notes)
    assert any("missing" in each for each in notes)
    with pytest.raises(TableError, match="lacks 1 of the 3 columns of the model: 'town'"):
        schema.rows(Table(new.drop(columns="town"), "new.csv", "csv"))
    with pytest.raises(TableError, match="'old' in row 1, no number"):
        schema.rows(Table(new.assign(x=["old", "1"]), "new.csv", "csv"))
    with pytest.raises(TableError, match="neither of 'no' and 'yes'"):
        schema.rows(Table(new.assign(flag=["perhaps", "no"]), "new.csv", "csv"))


def test_classes_are_not_called_pooled():
    towns = [f"town {k}" for k in range(5)] * 11 + ["Rom", "Rom", "Oslo", "Oslo", "Ulm"]
    found = {each.name: each.why for each in guess(table(y=towns, c=towns), Wishes("y")).columns}
    assert found["y"] == "8 different texts"
    assert found["c"] == "8 different texts, 3 of them rare, pooled"


def test_an_option_is_called_by_its_name():
    found = guess(table(site=["u", "v"] * 30), Wishes("y", confounds=("site",))).columns
    assert [each.why for each in found if each.role == "confound"] == ["--confounds"]


def test_missing_categories_that_training_had_not_are_told_as_they_are():
    schema = guess(table(town=["Ulm", "Bonn"] * 30), Wishes("y")).schema
    _, notes = schema.rows(Table(pd.DataFrame({"x": [1.0, np.nan], "town": ["Ulm", None]}), "new.csv", "csv"))
    assert any(each.startswith("'x'") and each.endswith("filled in as typical.") for each in notes)
    assert any(each.startswith("'town'") and "as none (all indicators 0)" in each for each in notes)
    rows = prepare(table(town=["Ulm", "Bonn"] * 30), Wishes("y"))
    steps = pipeline(rows)[0].fit(rows.X)
    places = [k for k, name in enumerate(steps.get_feature_names_out()) if "town" in name]
    unseen = rows.X.iloc[:1].assign(town=np.nan).astype({"town": object})
    assert_allclose(steps.transform(unseen)[:, places], 0.0)


def test_what_there_is_is_no_question():
    with pytest.raises(TableError) as caught:
        guess(table(), Wishes("zzz"))
    assert caught.value.hint == "There are 'x', 'y'."
