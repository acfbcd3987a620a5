"""Copies of the target, rows that occur twice, ids and perfect scores are found and told."""

import numpy as np
import pytest

pd = pytest.importorskip("pandas", reason="tables need the extra cli")
pytest.importorskip("skops", reason="tables need the extra cli")

from foldless.tables import Table, Wishes, guess, prepare  # noqa: E402
from foldless.tables.leakage import look_at_scores, look_for_leaks  # noqa: E402
from foldless.tables.parts import PermutationTest, Score  # noqa: E402

N = 120
RNG = np.random.default_rng(1)
X = RNG.normal(size=(N, 2))
LABELS = np.where(X[:, 0] + RNG.normal(size=N) > 0, "sick", "well")


def found(wishes=None, rows=slice(None), **columns):
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], **columns})
    frame = frame.assign(y=frame.get("y", LABELS)).iloc[rows].reset_index(drop=True)
    table, wishes = Table(frame, "a.csv", "csv"), wishes or Wishes("y")
    leaks = look_for_leaks(prepare(table, wishes), guess(table, wishes).columns)
    return {(each.kind, *each.columns): each for each in leaks}


def test_clean_tables_have_no_findings():
    assert not found()
    assert not found(y=X @ [1.0, 2.0] + np.random.default_rng(5).normal(size=N))


def test_a_recoded_target_is_found():
    assert found(code=np.where(LABELS == "sick", "A", "B"))["copy of the target", "code"].severity == "high"
    assert ("copy of the target", "code") in found(code=np.where(LABELS == "sick", 3.5, -1.0))
    values = X[:, 0] + np.random.default_rng(5).normal(size=N)
    assert ("copy of the target", "double") in found(y=values, double=-2 * values + 7)


def test_a_column_that_nearly_says_the_target_is_found():
    rng = np.random.default_rng(5)
    after = np.where(LABELS == "sick", rng.uniform(0, 1, N), rng.uniform(1.1, 2, N))
    assert ("nearly the target", "after") in found(after=after)
    only = np.where(LABELS == "sick", rng.uniform(0, 1, N), np.nan)  # known of the sick alone
    assert ("nearly the target", "only") in found(only=only)


def test_the_target_in_other_units_is_found_in_few_rows():
    rng = np.random.default_rng(0)
    celsius = rng.normal(15, 8, 60).round(1)
    fahrenheit = np.where(rng.random(60) < 0.2, np.nan, (1.8 * celsius + 32).round())
    leaks = found(rows=slice(60), y=np.resize(celsius, N), other=np.resize(fahrenheit, N))
    assert "correlation" in leaks["nearly the target", "other"].text
    assert ("nearly the target", "other") in found(
        rows=slice(60), y=np.resize(celsius, N), other=np.resize(np.exp(fahrenheit / 9), N)
    )


def test_a_column_that_says_the_group_does_not_say_the_target():
    rng = np.random.default_rng(5)
    group = np.arange(N) % 12
    number = rng.permutation(12)[group] + 0.1 * rng.random(N)  # tells groups apart, whose rows have one class
    y = np.where(np.isin(group, rng.permutation(12)[:6]), "sick", "well")
    columns = {"ward": number, "y": y, "g": [f"g{v}" for v in group]}
    assert ("nearly the target", "ward") in found(Wishes("y", drop=["g"]), **columns)
    assert not found(Wishes("y", groups="g"), **columns)
    assert not found(Wishes("y", groups="g"), **columns | {"y": rng.normal(size=12)[group]})
    after = np.where(y == "sick", rng.uniform(0, 1, N), rng.uniform(2, 3, N))
    assert ("nearly the target", "after") in found(Wishes("y", groups="g"), after=after, **columns)


def test_twins_are_found_within_and_across_groups():
    twice = np.r_[np.arange(N), np.arange(20)]
    leak = found(rows=twice)["duplicate rows",]
    assert leak.severity == "high"
    assert "40 of 140" in leak.text
    wishes = Wishes("y", groups="g")
    own = pd.Series(np.arange(N) // 4).astype(str) + "g"
    assert not found(wishes, rows=twice, g=own)
    frame = pd.DataFrame({"a": X[twice, 0], "y": LABELS[twice], "g": [f"g{v // 4}" for v in range(len(twice))]})
    table = Table(frame, "a.csv", "csv")
    leaks = look_for_leaks(prepare(table, wishes), guess(table, wishes).columns)
    assert [each.kind for each in leaks] == ["duplicates across groups"]


def test_ids_constants_and_empty_columns_are_told():
    kinds = found(id=np.arange(N), same=["x"] * N, none=[None] * N)
    assert set(kinds) == {("id column", "id"), ("constant column", "same"), ("empty column", "none")}
    assert "--keep" not in kinds["id column", "id"].text  # which would leave all others out


def test_perfect_scores_are_told():
    perfect, least = Score("accuracy", 1.0, 0.99, 1.0), Score("accuracy", 0.5)
    assert [each.kind for each in look_at_scores([perfect], [least], None)] == ["perfect score"]
    chance = Score("accuracy", 0.52, 0.45, 0.59)
    assert [each.kind for each in look_at_scores([chance], [least], None)] == ["no better than the baseline"]
    test = PermutationTest("accuracy", 0.52, np.array([0.5]), 0.4, 9, "labels", within_groups=True)
    assert "beyond what groups have in common" in next(look_at_scores([chance], [least], test)).text


@pytest.mark.parametrize("name", ["patient_id", "PatientID", "customer", "MRN"])
@pytest.mark.parametrize("texts", [True, False])
def test_an_id_that_repeats_is_answered_by_groups(name, texts):
    number = np.repeat(np.random.default_rng(0).permutation(900)[:24] + 100, 5)
    y = np.where(np.isin(number, number[:60]), "sick", "well")  # of patients, so that the id says it
    column = [f"P{v}" for v in number] if texts else number
    for labels in (y, LABELS):
        leak = found(y=labels, **{name: column})["repeated id", name]
        assert leak.severity == "high"
        assert f"say --groups {name!r}" in leak.text
    assert not [each for each in found(y=y, **{name: column}) if each[0] == "nearly the target"]
    assert not found(Wishes("y", groups=name), **{name: column})


def test_columns_that_repeat_otherwise_are_no_ids():
    rng = np.random.default_rng(0)
    assert not found(town=rng.choice([f"town {v}" for v in range(12)], N), age=rng.integers(20, 60, N))
    assert found(shop=np.resize([f"shop {v}" for v in range(12)], N))["repeated id", "shop"].severity == "low"


@pytest.mark.parametrize("name", ["customer_no", "MRN", "CustomerNo", "account number", "patientId"])
def test_unique_numbers_with_names_of_ids_are_ids(name):
    assert ("id column", name) in found(**{name: np.random.default_rng(0).permutation(9000)[:N] + 1000})


@pytest.mark.parametrize("name", ["humid", "piano", "paid", "income"])
def test_words_that_end_alike_are_no_ids(name):
    assert not found(**{name: np.random.default_rng(0).permutation(9000)[:N] + 1000})
