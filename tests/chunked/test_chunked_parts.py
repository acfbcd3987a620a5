"""Parts of sources that workers of a cluster read, and passes over them, with the cluster in this process."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from foldless import LSSVR, chunked
from support.tolerances import assert_close

X = np.random.default_rng(0).normal(size=(100, 3))
Y = X[:, 0] + 0.1 * np.random.default_rng(1).normal(size=100)


def read(number):
    part = slice(25 * number, 25 * number + 25)
    return X[part], Y[part]


def read_in_parts(data):
    """All rows, by parts that went through a pickle."""
    rows, number = [], 0
    for part in pickle.loads(pickle.dumps(data.parts())):
        found = list(part.read(number, *part.arguments))
        number += len(found)
        assert part.chunks in (None, len(found))
        assert part.rows in (None, sum(len(chunk[1]) for chunk in found))
        rows += found
    return np.vstack([np.asarray(chunk[0]) for chunk in rows])


def test_parts_are_all_chunks(tmp_path):
    np.save(tmp_path / "C.npy", X)
    np.save(tmp_path / "F.npy", np.asfortranarray(X))
    maps = [np.load(tmp_path / name, mmap_mode="r") for name in ("C.npy", "F.npy")]
    sources = [chunked.arrays(each, Y, rows=30) for each in (X, *maps)]
    assert all(len(pickle.dumps(each.parts()[0].arguments[0])) < 1000 for each in sources[1:])
    sources += [chunked.arrays(maps[0][10:], Y[10:], rows=30), chunked.numbered(read, 4)]
    for data in sources:
        assert_array_equal(read_in_parts(data), X[-data.n_rows :] if data.n_rows else X)


def test_row_groups_are_parts(tmp_path):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    frame = pd.DataFrame(X, columns=list("uvw")).assign(y=Y)
    frame.to_parquet(tmp_path / "a.parquet", row_group_size=30)
    data = chunked.parquet([tmp_path / "a.parquet"] * 2, target="y", rows=20)
    assert_array_equal(read_in_parts(data), np.vstack([X, X]))
    assert [len(chunk.y) for chunk in data.chunks()] == [20, 10, 20, 10, 20, 10, 10] * 2
    frame.to_csv(tmp_path / "a.csv", index=False)
    assert_close(read_in_parts(chunked.csv(tmp_path / "a.csv", target="y")), X)


def test_numbered_chunks_are_those_of_arrays():
    found = chunked.cross_validate(LSSVR("linear"), chunked.numbered(read, 4))
    expected = chunked.cross_validate(LSSVR("linear"), chunked.arrays(X, Y))
    assert_array_equal(found.test_score, expected.test_score)


def test_a_cluster_in_this_process_gives_the_same():
    distributed = pytest.importorskip("distributed", reason="dask is not installed")
    expected = chunked.cross_validate(LSSVR("linear"), chunked.arrays(X, Y), alphas=[0.1, 1.0])
    options = {"processes": False, "n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        found = chunked.cross_validate(LSSVR("linear"), chunked.numbered(read, 4), alphas=[0.1, 1.0], client=client)
    assert_close(found.kfold_press, expected.kfold_press)
    assert_close(found.test_score, expected.test_score)


def test_names_of_dataframes_are_kept():
    frame = pd.DataFrame(X, columns=["u", "v", "w"])
    found = chunked.cross_validate(LSSVR("linear"), chunked.arrays(frame, Y)).estimator
    assert_array_equal(found.feature_names_in_, ["u", "v", "w"])
    found = chunked.cross_validate(LSSVR("linear"), chunked.arrays(pd.DataFrame(X), Y)).estimator
    assert not hasattr(found, "feature_names_in_")
