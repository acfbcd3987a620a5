"""Dates of any year: those that mean "never" count as missing, others are read whatever the unit of the file."""

import datetime

import numpy as np
import pytest
from numpy.testing import assert_allclose

pd = pytest.importorskip("pandas", reason="tables need the extra cli")
pytest.importorskip("skops", reason="tables need the extra cli")

from foldless.cli.predicting import predicted  # noqa: E402
from foldless.tables import TableError, Wishes, guess, load_model, pipeline, prepare, read_table, save_model  # noqa: E402
from foldless.tables.cells import as_dates, as_numbers  # noqa: E402

N = 40
USUAL = [f"2020-0{1 + k // 20}-{1 + k % 20:02d}" for k in range(N)]
DAYS = [(datetime.date.fromisoformat(each) - datetime.date(1970, 1, 1)).days for each in USUAL]
NEVER = ("9999-12-31", "0001-01-01")
PLACES = (3, 10)


def texts(form="{2}-{1}-{0}", never=NEVER):
    """Dates as text by a form of day, month and year, two of which stand for "never"."""
    chosen = list(USUAL)
    for place, each in zip(PLACES, never, strict=True):
        chosen[place] = each
    return [form.format(*reversed(each.split("-"))) for each in chosen]


def frame(dates):
    rng = np.random.default_rng(0)
    return pd.DataFrame({"a": rng.normal(size=N), "until": dates, "y": np.arange(N) % 2})


def ticks(unit, zone=None):
    found = pd.Series(np.array(texts(), dtype=f"datetime64[{unit}]"))
    return found if zone is None else found.dt.tz_localize("UTC").dt.tz_convert(zone)


def as_csv(path, dates):
    frame(dates).to_csv(path / "a.csv", index=False)
    return read_table(path / "a.csv")


def as_parquet(path, dates):
    frame(dates).to_parquet(path / "a.parquet")
    return read_table(path / "a.parquet")


def as_excel(path, dates):
    frame(dates).to_excel(path / "a.xlsx", index=False)
    return read_table(path / "a.xlsx")


def as_objects():
    return [datetime.date.fromisoformat(each) for each in texts()]


def as_times(never=("9999-12-31", "9999-12-30")):  # Excel has no dates before 1900
    return [datetime.datetime.fromisoformat(each) for each in texts(never=never)]


FILES = {
    "csv": (as_csv, texts),
    "csv, German": (as_csv, lambda: texts("{0}.{1}.{2}")),
    "csv, nanoseconds": (as_csv, lambda: [f"{each}T00:00:00.000000000" for each in texts()]),
    "csv, time zones": (as_csv, lambda: [f"{each}T02:00:00+02:00" for each in texts()]),
    "parquet, days": (as_parquet, as_objects),
    "parquet, s": (as_parquet, lambda: ticks("s")),
    "parquet, us": (as_parquet, lambda: ticks("us")),
    "parquet, UTC": (as_parquet, lambda: ticks("ms", "UTC")),
    "parquet, Berlin": (as_parquet, lambda: ticks("us", "Europe/Berlin")),
    "excel": (as_excel, as_times),
    "excel, text": (as_excel, texts),
}


@pytest.fixture(params=FILES)
def table(request, tmp_path):
    write, dates = FILES[request.param]
    return write(tmp_path, dates())


def test_dates_that_mean_never_count_as_missing(table):
    rows = prepare(table, Wishes("y"))
    assert [each.kind for each in rows.schema.features] == ["number", "date"]
    assert rows.schema.features[1].missing
    expected = np.array(DAYS, dtype=float)
    expected[list(PLACES)] = np.nan
    assert_allclose(rows.X["until"], expected, rtol=0, atol=1e-9)
    assert "'until': dates of the years 1 and 9999 count as missing (2 cells)." in rows.notes
    until = next(each for each in guess(table, Wishes("y")).columns if each.name == "until")
    assert "2 cells such as" in until.why


def test_a_model_of_one_file_predicts_dates_of_another(table, tmp_path):
    rows = prepare(table, Wishes("y"))
    save_model(tmp_path / "m", rows, pipeline(rows, alpha=1.0).fit(rows.X, rows.y), {})
    model = load_model(tmp_path / "m")
    expected = model.pipeline.predict(rows.X)
    others = [as_parquet(tmp_path, ticks("us")), as_parquet(tmp_path, as_objects()), as_excel(tmp_path, as_times())]
    others += [as_csv(tmp_path, texts())] if model.schema.features[1].date_format in ("", "ISO8601") else []
    for other in others:
        found, notes, _ = predicted(model, other, 0.9)
        assert found["prediction"].tolist() == expected.tolist()
        assert "'until': dates of the years 1 and 9999 count as missing (2 cells)." in notes


def test_dates_beyond_the_reach_of_nanoseconds_are_read(tmp_path):
    table = as_csv(tmp_path, texts(never=("1066-10-14", "2500-01-01")))
    rows = prepare(table, Wishes("y"))
    expected = [(datetime.date(*each) - datetime.date(1970, 1, 1)).days for each in ((1066, 10, 14), (2500, 1, 1))]
    assert_allclose(rows.X["until"].iloc[list(PLACES)], expected)
    assert not rows.schema.features[1].missing
    (note,) = rows.notes
    assert note.startswith("'until': dates before 1678 or after 2261 are used as they are (2 cells)")


def test_confounds_of_dates_are_told_too(tmp_path):
    rows = prepare(as_csv(tmp_path, texts()), Wishes("y", confounds=("until",)))
    assert np.isfinite(rows.confounds).all()
    assert "'until': dates of the years 1 and 9999 count as missing (2 cells)." in rows.notes


@pytest.mark.parametrize("dates", [lambda: [NEVER[k % 2] for k in range(N)], lambda: [NEVER[0], None] * (N // 2)])
@pytest.mark.parametrize("write", [as_csv, as_parquet])
def test_a_column_of_nothing_but_never_is_a_category(write, dates, tmp_path):
    found = dates() if write is as_csv else np.array([each or "NaT" for each in dates()], dtype="datetime64[us]")
    rows = prepare(write(tmp_path, found), Wishes("y"))
    assert rows.schema.features[1].kind == "category"
    assert rows.X["until"].nunique() == len(set(dates()) - {None})


def test_years_beyond_9999_of_parquet_files_count_as_missing(tmp_path):
    dates = np.array(USUAL, dtype="datetime64[s]")
    dates[3] = np.datetime64("20000-01-01")
    for each in (pd.Series(dates), pd.Series(dates).astype("date32[pyarrow]")):
        rows = prepare(as_parquet(tmp_path, each), Wishes("y"))
        assert_allclose(np.delete(rows.X["until"].to_numpy(), 3), np.delete(np.array(DAYS), 3))
        assert np.isnan(rows.X["until"][3])


def test_texts_that_are_no_dates_stay_so():
    for each in ("9999-99-99", "never", "9999", "0001"):
        assert as_dates(pd.Series([*USUAL, each]), "ISO8601")[1].tolist() == [False] * N + [
            each in ("9999-99-99", "never")
        ]


def test_ticks_of_dates_are_no_numbers(tmp_path):
    """They would be other ones in a file of another unit."""
    table = as_parquet(tmp_path, ticks("us"))
    with pytest.raises(TableError, match="'until' holds no numbers"):
        prepare(table, Wishes("y", numeric=("until",)))
    with pytest.raises(TableError, match="the target 'until' holds '2020-01-01"):
        prepare(table, Wishes("until", task="regression"))
    for unit in ("s", "ns"):
        assert_allclose(
            as_numbers(pd.Series(np.array([90, 30], dtype="timedelta64[s]")).astype(f"m8[{unit}]"))[0], [90, 30]
        )


def test_days_are_those_of_the_calendar():
    rng = np.random.default_rng(1)
    days = rng.integers(-700_000, 2_900_000, 200)
    dates = [datetime.date(1970, 1, 1) + datetime.timedelta(days=int(each)) for each in days]
    for column in (pd.Series([each.isoformat() for each in dates]), pd.Series(dates, dtype=object)):
        found, bad = as_dates(column, "ISO8601")
        assert not bad.any()
        assert_allclose(found, days, rtol=0, atol=1e-9)
