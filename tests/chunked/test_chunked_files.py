"""Parquet and CSV files as data, predictions in Parquet files, and files that end too soon."""

import resource
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from foldless import LSSVC, LSSVR, chunked
from support.tolerances import assert_close

pytest.importorskip("pyarrow", reason="files are read and written by pyarrow")

N = 150


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    found = pd.DataFrame(X, columns=["height", "width", "age"])
    found["weight"] = rng.integers(1, 4, N)
    found["site"] = rng.choice(["A", "B", "C", "D", "E", "F"], N)
    found["part"] = rng.choice(["x", "y", "z"], N)
    found["value"] = X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=N)
    found["other"] = X[:, 2] ** 2
    found["label"] = np.where(found["value"] > 0, "high", np.where(found["value"] > -1, "mid", "low"))
    return found


FEATURES = ["height", "width", "age"]


def folder_of(table, path, format):
    """The rows in three files of a folder."""
    path.mkdir()
    for place, part in enumerate(np.array_split(np.arange(N), 3)):
        name = path / f"part-{place}.{format}"
        rows = table.iloc[part]
        rows.to_parquet(name, index=False) if format == "parquet" else rows.to_csv(name, index=False)
    return path


@pytest.mark.parametrize("format", ["parquet", "csv"])
@pytest.mark.parametrize("target", ["label", "value", ["value", "other"]])
def test_files_give_what_arrays_give(table, tmp_path, format, target):
    model = LSSVC("linear") if target == "label" else LSSVR("linear")
    read = getattr(chunked, format)
    known = {"sample_weight": "weight", "groups": "site", "rows": 17, "features": FEATURES}
    data = read(folder_of(table, tmp_path / "data", format), target=target, **known)
    found = chunked.cross_validate(model, data, cv=2)
    given = {"sample_weight": table["weight"].to_numpy(), "groups": table["site"].to_numpy()}
    arrays = chunked.arrays(table[FEATURES].to_numpy(), table[target].to_numpy(), **given)
    expected = chunked.cross_validate(model, arrays, cv=2)
    assert_close(found.test_score, expected.test_score)
    assert_close(found.estimator.coef_, expected.estimator.coef_)
    assert_array_equal(found.estimator.feature_names_in_, FEATURES)
    assert_array_equal(found.estimator.predict(table[FEATURES]), found.estimator.predict(table[FEATURES]))
    with pytest.raises(ValueError, match="feature names"):
        found.estimator.predict(table[FEATURES[::-1]])


def test_all_other_columns_are_features_and_folds_may_be_one(table, tmp_path):
    table[[*FEATURES, "value", "part"]].to_parquet(tmp_path / "all.parquet")
    data = chunked.parquet(tmp_path / "all.parquet", target="value", folds="part")
    assert data.names == FEATURES
    assert data.n_rows == N
    result = chunked.cross_validate(LSSVR("linear"), data, cv=None)
    assert_array_equal(result.fold_sizes, np.unique(table["part"], return_counts=True)[1])


def test_single_precision_stays_until_it_is_added_up(table, tmp_path):
    table[["height", "value"]].astype(np.float32).to_parquet(tmp_path / "single.parquet")
    data = chunked.parquet([tmp_path / "single.parquet"], target="value")
    assert next(data.chunks()).X.dtype == np.float32


def test_predictions_in_a_file_equal_those_in_arrays(table, tmp_path):
    X, path = table[FEATURES].to_numpy(), tmp_path / "out.parquet"
    data = chunked.arrays(X, table["label"].to_numpy(), rows=40)
    found = {"fold": np.empty(N, int), "decision": np.empty((N, 3)), "loo_decision": np.empty((N, 3))}
    found |= {"prediction": np.empty(N, "U4"), "loo_prediction": np.empty(N, "U4")}
    chunked.cross_validate(LSSVC("linear"), data, cv=3, predictions=found)
    chunked.cross_validate(LSSVC("linear"), data, cv=3, predictions=path)
    written = pd.read_parquet(path)
    for name, values in found.items():
        columns = [f"{name}_{label}" for label in ("high", "low", "mid")] if values.ndim > 1 else name
        assert_array_equal(written[columns].to_numpy(), values)
    assert list(tmp_path.iterdir()) == [path]


def test_values_of_several_outputs_have_a_column_each(table, tmp_path):
    data = chunked.arrays(table[FEATURES].to_numpy(), table[["value", "other"]].to_numpy())
    chunked.cross_validate(LSSVR("linear"), data, cv=None, predictions=tmp_path / "out.parquet")
    assert list(pd.read_parquet(tmp_path / "out.parquet")) == ["loo_prediction_0", "loo_prediction_1"]


def test_categories_are_labels(table, tmp_path):
    table.astype({"label": "category"})[[*FEATURES, "label"]].to_parquet(tmp_path / "coded.parquet")
    data = chunked.parquet(tmp_path / "coded.parquet", target="label", rows=40)
    assert_array_equal(chunked.cross_validate(LSSVC("linear"), data).estimator.classes_, ["high", "low", "mid"])


# -- what goes wrong ---------------------------------------------------------------------------------------------------


def test_a_truncated_file_is_named(table, tmp_path):
    folder = folder_of(table, tmp_path / "data", "parquet")
    data = chunked.parquet(folder, target="value", features=FEATURES)
    last = folder / "part-2.parquet"
    last.write_bytes(last.read_bytes()[:-100])
    with pytest.raises(chunked.ChunkError, match=r"chunk 2: .*part-2.parquet cannot be read; is it truncated") as found:
        chunked.cross_validate(LSSVR("linear"), data)
    assert found.value.chunk == 2
    with pytest.raises(ValueError, match=r"part-2.parquet cannot be read; is it truncated"):
        chunked.parquet(last, target="value")


def test_a_line_of_text_in_a_csv_is_named(table, tmp_path):
    path = tmp_path / "data.csv"
    table[["height", "value"]].to_csv(path, index=False)
    with path.open("a") as file:
        file.write("tall,3\n")
    with pytest.raises(ValueError, match=r"data.csv cannot be read.*invalid value 'tall'"):
        chunked.cross_validate(LSSVR("linear"), chunked.csv(path, target="value"))


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_a_file_without_a_column_is_named(table, tmp_path, format, when):
    """Before the source looks at its files, or after."""
    folder = folder_of(table, tmp_path / "data", format)

    def drop():
        rows = table.iloc[100:].drop(columns="width")
        path = folder / f"part-2.{format}"
        rows.to_parquet(path, index=False) if format == "parquet" else rows.to_csv(path, index=False)

    def run():
        data = getattr(chunked, format)(folder, target="value", features=FEATURES)
        if when == "after":
            drop()
        chunked.cross_validate(LSSVR("linear"), data)

    if when == "before":
        drop()
    with pytest.raises(ValueError, match=r"part-2.* has no column 'width'; its columns are 'height', 'age'") as found:
        run()
    assert "damaged" not in str(found.value)
    if when == "after":
        assert found.value.chunk == 2


@pytest.mark.parametrize("line", [0, 149])
def test_text_in_a_csv_is_told_once(table, tmp_path, line):
    path = tmp_path / "data.csv"
    rows = table[[*FEATURES, "value"]].astype({"age": object})
    rows.loc[line, "age"] = "tall"
    rows.to_csv(path, index=False)
    with pytest.raises(chunked.ChunkError, match="invalid value 'tall'") as found:
        chunked.cross_validate(LSSVR("linear"), chunked.csv(path, target="value"))
    assert str(found.value).count("cannot be read") == 1


@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_features_are_columns_that_are_nothing_else(table, tmp_path, format):
    path, read = folder_of(table, tmp_path / "data", format), getattr(chunked, format)
    assert read(path, target="value", features="height").names == ["height"]
    for taken in ({"target": "value"}, {"target": ["other", "value"]}, {"target": "other", "sample_weight": "value"}):
        with pytest.raises(ValueError, match="features: 'value' is the column of the target, weights, groups or folds"):
            read(path, features=["height", "value"], **taken)


def test_wrong_names_are_told(table, tmp_path):
    path = folder_of(table, tmp_path / "data", "parquet")
    with pytest.raises(ValueError, match="has no column 'colour'; its columns are 'height'"):
        chunked.parquet(path, target="colour")
    with pytest.raises(ValueError, match="rows=0 must be"):
        chunked.parquet(path, target="value", rows=0)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        chunked.parquet(tmp_path / "nowhere", target="value")
    with pytest.raises(FileNotFoundError, match=r"has no \.csv file"):
        chunked.csv(path, target="value")
    with pytest.raises(chunked.ChunkError, match="column 'site' has values of type"):
        chunked.cross_validate(LSSVR("linear"), chunked.parquet(path, target="value"))


def test_a_missing_value_is_named(table, tmp_path):
    hollow = table[[*FEATURES, "value"]].copy()
    hollow.loc[70, "age"] = None
    hollow.to_parquet(tmp_path / "hollow.parquet")
    data = chunked.parquet(tmp_path / "hollow.parquet", target="value", rows=50)
    with pytest.raises(chunked.ChunkError, match=r"chunk 1, row 20 \(row 70 of all\): X holds nan in column 2"):
        chunked.cross_validate(LSSVR("linear"), data)


@contextmanager
def files_of_at_most(size):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("older", [False, True])
def test_a_full_disk_leaves_nothing_half_written(table, tmp_path, older):
    path = tmp_path / "out.parquet"
    if older:
        table.to_parquet(path)
    data = chunked.arrays(table[FEATURES].to_numpy(), table["value"].to_numpy(), rows=50)
    with files_of_at_most(1000), pytest.raises(OSError, match=r"out\.parquet.* could not be written") as found:
        chunked.cross_validate(LSSVR("linear"), data, predictions=path)
    assert "disk full" in str(found.value)
    assert list(tmp_path.iterdir()) == [path] * older
    if older:
        assert len(pd.read_parquet(path)) == N


def test_a_folder_that_is_not_there_is_told_before_the_work(table, tmp_path):
    data = chunked.arrays(table[FEATURES].to_numpy(), table["value"].to_numpy())
    with pytest.raises(OSError, match="its folder does not exist"):
        chunked.cross_validate(LSSVR("linear"), data, predictions=tmp_path / "no" / "out.parquet")


def test_a_full_disk_keeps_the_older_checkpoint(table, tmp_path):
    data = chunked.arrays(table[FEATURES].to_numpy(), table["value"].to_numpy())
    with files_of_at_most(1000), pytest.raises(OSError, match=r"checkpoint: .* could not be written"):
        chunked.cross_validate(LSSVR("linear"), data, checkpoint=tmp_path)
    assert not list(tmp_path.iterdir())
