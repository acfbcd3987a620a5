"""Places for held-out predictions: what is refused before any pass, and what is never lost."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from foldless import LSSVC, LSSVR, chunked

pytest.importorskip("pyarrow", reason="pyarrow is not installed")
distributed = pytest.importorskip("distributed", reason="dask is not installed")

N = 60
X = np.random.default_rng(0).normal(size=(N, 3))
VALUES = X[:, 0] + 0.1 * np.random.default_rng(1).normal(size=N)


@pytest.fixture(scope="module")
def client():
    options = {"processes": False, "n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster, set_as_default=False) as client:
        yield client


def numbered(rows=20, before=None):
    """Chunks of so many rows; ``before()`` is called before each is read, wherever that is."""

    def read(number):
        if before is not None:
            before()
        part = slice(rows * number, rows * number + rows)
        return X[part], VALUES[part]

    return chunked.numbered(read, N // rows, rows=rows)


def never():
    raise AssertionError("it is read")


def in_the_last_pass(folder):
    """Predictions are being written."""
    return bool(list(folder.glob(".out.*.unfinished")))


def files_of(folder):
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("foreign", ["notes.txt", "inner/rows-000000000000.parquet", "rows-1.parquet"])
def test_a_folder_with_other_files_is_refused_before_any_pass(client, tmp_path, foreign):
    chunked.cross_validate(LSSVR("linear"), numbered(), cv=3, client=client, predictions=tmp_path / "out")
    (tmp_path / "out" / foreign).parent.mkdir(exist_ok=True)
    (tmp_path / "out" / foreign).write_text("mine")
    before = files_of(tmp_path)
    with pytest.raises(FileExistsError, match=rf"predictions=.*out' holds '{foreign.split('/')[0]}'"):
        chunked.cross_validate(LSSVR("linear"), numbered(20, never), client=client, predictions=tmp_path / "out")
    assert files_of(tmp_path) == before


@pytest.mark.parametrize("kind", ["parquet", "link", "map"])
def test_a_folder_that_holds_the_data_is_refused(client, tmp_path, kind):
    """Even by a name that predictions have."""
    (tmp_path / "out").mkdir()
    path = tmp_path / "out" / "rows-000000000000.parquet"
    if kind == "map":
        with path.open("wb") as file:
            np.save(file, X)
        data = chunked.arrays(np.load(path, mmap_mode="r"), VALUES, rows=20)
    else:
        pd.DataFrame(X, columns=list("uvw")).assign(y=VALUES).to_parquet(path)
        if kind == "link":
            (tmp_path / "link").symlink_to(tmp_path / "out")
        data = chunked.parquet(tmp_path / ("link" if kind == "link" else "out"), target="y")
    before = files_of(tmp_path)
    with pytest.raises(FileExistsError, match=r"predictions=.* the data"):
        chunked.cross_validate(LSSVR("linear"), data, cv=3, client=client, predictions=tmp_path / "out")
    assert files_of(tmp_path) == before


def test_a_file_that_holds_the_data_is_refused(tmp_path):
    path = tmp_path / "rows.parquet"
    pd.DataFrame(X, columns=list("uvw")).assign(y=VALUES).to_parquet(path)
    before = files_of(tmp_path)
    with pytest.raises(FileExistsError, match=r"predictions=.* the data"):
        chunked.cross_validate(LSSVR("linear"), chunked.parquet(path, target="y"), cv=3, predictions=path)
    assert files_of(tmp_path) == before


def test_a_folder_in_the_place_of_a_file_is_told_before_any_pass(tmp_path):
    with pytest.raises(IsADirectoryError, match=r"predictions=.* is a folder; .* Parquet file"):
        chunked.cross_validate(LSSVR("linear"), numbered(20, never), predictions=tmp_path)


def test_older_predictions_are_replaced_by_complete_ones(client, tmp_path):
    def run(data):
        chunked.cross_validate(LSSVR("linear"), data, cv=3, client=client, predictions=tmp_path / "out")

    (tmp_path / "out").mkdir()  # empty
    run(numbered(20))
    older = files_of(tmp_path)
    assert len(older) == 3

    def broken():
        if in_the_last_pass(tmp_path):
            raise OSError("no connection")

    with pytest.raises(OSError, match=r"^no connection"):
        run(numbered(30, broken))
    assert files_of(tmp_path) == older
    run(numbered(30))
    assert [path.name for path in sorted((tmp_path / "out").iterdir())] == [
        "rows-000000000000.parquet",
        "rows-000000000030.parquet",
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_files_that_come_during_the_run_are_kept(client, tmp_path):
    def busy():
        if in_the_last_pass(tmp_path):
            (tmp_path / "out").mkdir(exist_ok=True)
            (tmp_path / "out" / "notes.txt").write_text("mine")

    chunked.cross_validate(LSSVR("linear"), numbered(30, busy), cv=3, client=client, predictions=tmp_path / "out")
    assert (tmp_path / "out" / "notes.txt").read_text() == "mine"
    written = pd.concat(map(pd.read_parquet, sorted((tmp_path / "out").glob("rows-*.parquet"))))
    assert_array_equal(written["fold"].value_counts().to_numpy(), [20, 20, 20])
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


# -- arrays ------------------------------------------------------------------------------------------------------------

LABELS = np.where(X[:, 0] > 0, "longer", "b")
THREE = np.where(X[:, 1] > 1, 300, np.where(X[:, 0] > 0, 1, 0))


def read_only():
    array = np.empty(N)
    array.flags.writeable = False
    return array


EARLY = {
    "integers": ({"decision": np.empty(N, int)}, r"predictions\['decision'\]: decision has values of type float64"),
    "one array": (np.empty(N, int), "predictions: decision has values of type float64, which int64 cannot hold"),
    "words": ({"loo_decision": np.empty(N, "U9")}, r"\['loo_decision'\]: .* which <U9 cannot hold"),
    "read-only": ({"decision": read_only()}, r"predictions\['decision'\]: the array is read-only"),
    "list": ([0.0] * N, "predictions: an array with an entry for each of 60 rows is needed, not list"),
    "rows": (np.empty(N - 1), r"for each of 60 rows is needed, not shape \(59,\)"),
    "column": ({"colour": np.empty(N)}, "predictions: there is no column 'colour'"),
    "fold": ({"fold": np.empty(N, "U3")}, r"predictions\['fold'\]: fold has values of type int64"),
}


@pytest.mark.parametrize("name", EARLY)
def test_arrays_that_suit_no_predictions_are_refused_before_any_pass(name):
    class Unread(type(chunked.arrays(X, LABELS))):
        def chunks(self, first=0):
            never()

    predictions, message = EARLY[name]
    data = chunked.arrays(X, LABELS)
    with pytest.raises(ValueError, match=message):
        chunked.cross_validate(LSSVC("linear"), Unread(data.arrays, 20), cv=3, predictions=predictions)


LATE = {
    "short words": (LABELS, {"prediction": np.empty(N, "U2")}, "such as 'longer', which <U2 cannot hold"),
    "objects": (LABELS.astype(object), {"loo_prediction": np.empty(N, "U2")}, "'longer', which <U2 cannot hold"),
    "floats": (LABELS, {"prediction": np.empty(N)}, "such as 'longer', which float64 cannot hold"),
    "small": (THREE, {"prediction": np.empty(N, np.int8)}, "such as 300, which int8 cannot hold"),
    "classes": (THREE, {"decision": np.empty(N)}, r"decision has shape \(60, 3\), and the array \(60,\)"),
    "one": (THREE, np.empty((N, 2)), r"predictions: decision has shape \(60, 3\), and the array \(60, 2\)"),
    "two": (LABELS, {"decision": np.empty((N, 2))}, r"decision has shape \(60,\), and the array \(60, 2\)"),
    "labels": (LABELS, {"prediction": np.empty((N, 1), object)}, r"prediction has shape \(60,\)"),
}


@pytest.mark.parametrize("name", LATE)
def test_arrays_that_do_not_suit_the_classes_are_refused_before_the_sums(name, monkeypatch):
    y, predictions, message = LATE[name]
    monkeypatch.setattr("foldless.chunked.passes.sums_of", lambda *args: never())
    with pytest.raises(ValueError, match=message):
        chunked.cross_validate(LSSVC("linear"), chunked.arrays(X, y), cv=3, predictions=predictions)


def test_arrays_of_other_types_that_hold_all_values_are_filled():
    types = {"fold": np.uint8, "decision": np.float32, "prediction": "U9", "loo_prediction": object}
    found = {name: np.empty(N, each) for name, each in types.items()}
    expected = {"fold": np.empty(N, int), "decision": np.empty(N), "prediction": np.empty(N, LABELS.dtype)}
    expected |= {"loo_prediction": np.empty(N, LABELS.dtype)}
    for arrays in (found, expected):
        chunked.cross_validate(LSSVC("linear"), chunked.arrays(X, LABELS), cv=3, predictions=arrays)
    for name, values in expected.items():
        assert_array_equal(found[name], values.astype(types[name]))
    small = np.empty(N, np.float32)
    chunked.cross_validate(LSSVC("linear"), chunked.arrays(X, THREE > 0), cv=3, predictions={"prediction": small})
    assert set(small) == {0.0, 1.0}
