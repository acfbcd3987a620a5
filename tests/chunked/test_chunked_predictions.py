"""Places for held-out predictions: what is refused before any pass, and what is never lost."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from foldless import LSSVR, chunked

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
