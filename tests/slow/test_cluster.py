"""Chunks on a cluster of dask give what they give in this process, whatever happens to the workers."""

import os
import signal
import threading

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from foldless import LSSVC, LSSVR, chunked
from foldless.kernels import Nystroem
from foldless.model_selection import FoldlessSearchCV, nested_cross_validate, permutation_test_score
from support.tolerances import assert_close

distributed = pytest.importorskip("distributed", reason="dask is not installed")
da = pytest.importorskip("dask.array", reason="dask is not installed")
dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")

N = 240
X = np.random.default_rng(0).normal(size=(N, 3))
VALUES = X[:, 0] + np.sin(X[:, 1]) + 0.1 * np.random.default_rng(1).normal(size=N)
LABELS = np.where(X[:, 0] + X[:, 1] ** 2 > 0.5, "b", "a")
WEIGHTS = np.random.default_rng(2).integers(0, 3, N) / 2
MODEL = LSSVC(Nystroem("rbf", 15, landmarks="uniform"))


@pytest.fixture(scope="module")
def client():
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster, set_as_default=False) as client:
        yield client


def slowly(y, bad=None, seconds=0.0):
    """Eight chunks of 30 rows; functions inside functions travel to workers as they are."""

    def read(number):
        import time

        time.sleep(seconds)
        part = slice(30 * number, 30 * number + 30)
        Z = X[part].copy()
        if number == bad:
            Z[7, 1] = np.nan
        return Z, y[part]

    return chunked.numbered(read, 8, rows=30)


def frame():
    return pd.DataFrame(X, columns=["u", "v", "w"]).assign(label=LABELS, weight=WEIGHTS)


def source(kind, folder):
    if kind == "map":
        np.save(folder / "X.npy", X)
        return chunked.arrays(np.load(folder / "X.npy", mmap_mode="r"), LABELS, sample_weight=WEIGHTS, rows=50)
    if kind == "parquet":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
        frame().to_parquet(folder / "rows.parquet", row_group_size=70)
        return chunked.parquet(folder / "rows.parquet", target="label", sample_weight="weight", rows=40)
    if kind == "csv":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
        frame()[:100].to_csv(folder / "a.csv", index=False)
        frame()[100:].to_csv(folder / "b.csv", index=False)
        return chunked.csv(folder, target="label", sample_weight="weight")
    if kind == "dataframe":
        return chunked.dask(dd.from_pandas(frame(), npartitions=3), "label", sample_weight="weight")
    Z, y, w = (da.from_array(each, chunks=chunks) for each, chunks in ((X, (70, 2)), (LABELS, 50), (WEIGHTS, 240)))
    if kind == "unknown":
        Z, y, w = (each.rechunk({0: 80})[da.from_array(np.ones(N, bool), chunks=80)] for each in (Z, y, w))
    return chunked.dask(Z, y, sample_weight=w)


@pytest.mark.parametrize("kind", ["map", "parquet", "csv", "array", "unknown", "dataframe"])
def test_every_source_gives_the_same_on_a_cluster(client, tmp_path, kind):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    options = {"cv": 3, "alphas": [0.1, 1.0], "sample": 100}
    found = {"fold": np.empty(N, int), "decision": np.empty(N), "loo_decision": np.empty(N)}
    here = chunked.arrays(X, LABELS, sample_weight=WEIGHTS)
    expected = chunked.cross_validate(MODEL, here, predictions=found, **options)
    held_out = tmp_path / "held out"
    result = chunked.cross_validate(MODEL, source(kind, tmp_path), client=client, predictions=held_out, **options)
    assert result.best_params == expected.best_params
    assert_close(result.kfold_press, expected.kfold_press)
    Z = frame()[["u", "v", "w"]] if hasattr(result.estimator, "feature_names_in_") else X
    assert_close(result.estimator.decision_function(Z), expected.estimator.decision_function(X))
    assert_array_equal(result.test_score, expected.test_score)
    assert result.loo_score == expected.loo_score
    written = pd.concat([pd.read_parquet(path) for path in sorted(held_out.iterdir())])
    for name, values in found.items():
        assert_close(written[name].to_numpy(), values)
    assert [path.name for path in tmp_path.iterdir() if "unfinished" in path.name] == []


def test_probabilities_of_folds_are_written_by_workers(client, tmp_path):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    model = LSSVC(Nystroem("rbf", 15, landmarks="uniform"), calibration="sigmoid")
    expected = np.empty((N, 2))
    chunked.cross_validate(model, chunked.arrays(X, LABELS), cv=3, predictions={"probability": expected})
    found = chunked.cross_validate(model, slowly(LABELS), cv=3, client=client, predictions=tmp_path / "held out")
    written = pd.concat([pd.read_parquet(path) for path in sorted((tmp_path / "held out").iterdir())])
    assert_close(written[["probability_a", "probability_b"]].to_numpy(), expected)
    assert found.workers_gone == 0


def test_landmarks_of_each_training_part_on_a_cluster(client):
    model = LSSVC(Nystroem("rbf", 9, landmarks="uniform", per_fold=True))
    expected = chunked.cross_validate(model, chunked.arrays(X, LABELS), cv=3)
    found = chunked.cross_validate(model, slowly(LABELS), cv=3, client=client)
    assert_close(found.kfold_press, expected.kfold_press)


def test_an_active_client_is_taken_by_dask_sources(client):
    with client.as_current():
        data = chunked.dask(da.from_array(X, chunks=(80, 3)), da.from_array(VALUES, chunks=80))
        found = chunked.cross_validate(LSSVR("linear"), data, select="loo", alphas=[0.1, 1.0])
    expected = chunked.cross_validate(LSSVR("linear"), chunked.arrays(X, VALUES), select="loo", alphas=[0.1, 1.0])
    assert_close(found.loo_press, expected.loo_press)


def test_dask_sources_start_a_cluster_for_the_call_where_there_is_none():
    data = chunked.dask(da.from_array(X, chunks=(80, 3)), da.from_array(VALUES, chunks=80))
    found = chunked.cross_validate(LSSVR("linear"), data, cv=3)
    expected = chunked.cross_validate(LSSVR("linear"), chunked.arrays(X, VALUES), cv=3)
    assert_close(found.test_score, expected.test_score)
    with pytest.raises(ValueError, match="client"):
        distributed.get_client()  # it is gone


def test_sums_of_a_checkpoint_are_taken(client, tmp_path):
    chunked.cross_validate(LSSVR("linear"), slowly(VALUES), client=client, checkpoint=tmp_path)
    again = chunked.cross_validate(LSSVR("linear"), slowly(VALUES), client=client, checkpoint=tmp_path)
    assert "sums" not in again.seconds
    here = chunked.cross_validate(LSSVR("linear"), chunked.arrays(X, VALUES), checkpoint=tmp_path)
    assert "sums" not in here.seconds


# -- workers and clusters that go --------------------------------------------------------------------------------------


def test_a_worker_killed_in_mid_run_changes_nothing(client):
    expected = chunked.cross_validate(LSSVR("linear"), chunked.arrays(X, VALUES), cv=3)
    before = client.run(os.getpid)
    victim = next(iter(before.values()))
    killer = threading.Timer(0.6, os.kill, (victim, signal.SIGKILL))
    killer.start()
    found = chunked.cross_validate(LSSVR("linear"), slowly(VALUES, seconds=0.15), cv=3, client=client)
    killer.join()
    client.wait_for_workers(2)
    assert victim not in client.run(os.getpid).values()
    assert sum(found.seconds.values()) > 0.6  # it was in mid-run
    assert found.workers_gone == 1
    assert_close(found.test_score, expected.test_score)
    assert_close(found.loo_score, expected.loo_score)


def test_a_bad_chunk_on_a_worker_is_named(client, tmp_path):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    model = LSSVR("linear")
    with pytest.raises(
        chunked.ChunkError, match=r"chunk 5, row 7 \(row 157 of all\): X holds nan in column 1"
    ) as found:
        chunked.cross_validate(model, slowly(VALUES, bad=5), client=client, predictions=tmp_path / "held out")
    assert (found.value.chunk, found.value.row) == (5, 7)
    assert not hasattr(model, "kernel_")
    assert not list(tmp_path.iterdir())


def test_a_chunk_in_a_parquet_file_has_the_same_number(client, tmp_path):
    data = source("parquet", tmp_path)
    changed = frame()
    changed.loc[200, "v"] = np.nan
    changed.to_parquet(tmp_path / "rows.parquet", row_group_size=70)
    with pytest.raises(chunked.ChunkError) as here:
        chunked.cross_validate(MODEL, data)
    with pytest.raises(chunked.ChunkError) as there:
        chunked.cross_validate(MODEL, data, client=client)
    assert str(there.value) == str(here.value)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_truncated_file_is_named_by_a_worker(client, tmp_path, when):
    """Before the source looks at its files, or after, when a worker comes to it."""
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    for name, part in (("a", frame()[:100]), ("b", frame()[100:])):
        part.to_parquet(tmp_path / f"{name}.parquet")

    def truncate():
        (tmp_path / "b.parquet").write_bytes((tmp_path / "b.parquet").read_bytes()[:-100])

    def run():
        data = chunked.parquet(tmp_path, target="label", sample_weight="weight")
        if when == "after":
            truncate()
        chunked.cross_validate(MODEL, data, client=client)

    if when == "before":
        truncate()
    with pytest.raises(ValueError, match=r"b\.parquet cannot be read; is it truncated"):
        run()


@pytest.mark.parametrize("what", ["cluster", "client"])
def test_a_cluster_that_disappears_is_told(what):
    with (
        distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        closing = threading.Timer(0.5, {"cluster": cluster, "client": client}[what].close)
        closing.start()
        with pytest.raises(ConnectionError, match="the cluster was closed, or its scheduler cannot be reached"):
            chunked.cross_validate(LSSVR("linear"), slowly(VALUES, seconds=0.2), client=client)
        closing.join()
        with pytest.raises(ValueError, match="client: it is closed"):
            chunked.cross_validate(LSSVR("linear"), slowly(VALUES), client=client)


def test_a_full_disk_of_a_worker_is_told(client, tmp_path):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")

    def full(self):
        import pyarrow.parquet

        def write_table(*args):
            raise OSError(28, "No space left on device")

        pyarrow.parquet.kept = pyarrow.parquet.write_table
        pyarrow.parquet.write_table = write_table

    def mended(self):
        import pyarrow.parquet

        pyarrow.parquet.write_table = pyarrow.parquet.kept

    client.run(full, None)
    try:
        with pytest.raises(OSError, match=r"could not be written .*No space left.*nothing is left"):
            chunked.cross_validate(LSSVR("linear"), slowly(VALUES), client=client, predictions=tmp_path / "out")
    finally:
        client.run(mended, None)
    assert not list(tmp_path.iterdir())


def test_wrong_arguments_on_a_cluster(client, tmp_path):
    (tmp_path / "file").touch()
    for options, data, message in [
        ({"client": "tcp://"}, slowly(VALUES), "client: found str"),
        ({"predictions": np.empty(N)}, slowly(VALUES), "predictions: found ndarray"),
        ({}, chunked.iterator(lambda: iter([(X, VALUES)])), r"Use chunked\.numbered"),
        ({}, chunked.numbered(lambda number: (X[:0], VALUES[:0]), 2), "the data have no rows"),
        ({}, chunked.numbered(lambda number: (X, VALUES), 2, rows=7), "240 rows, and 7 were announced"),
    ]:
        with pytest.raises(ValueError, match=message):
            chunked.cross_validate(LSSVR("linear"), data, **{"client": client, **options})
    with pytest.raises(FileExistsError, match="is a file"):
        chunked.cross_validate(LSSVR("linear"), slowly(VALUES), client=client, predictions=tmp_path / "file")
    with pytest.raises(ValueError, match="y: found ndarray; give a dask array"):
        chunked.dask(da.from_array(X), VALUES)
    with pytest.raises(ValueError, match="y has 239 rows and X has 240"):
        chunked.dask(da.from_array(X, chunks=(80, 3)), da.from_array(VALUES[1:]))
    with pytest.raises(ValueError, match="y has 2 partitions and X has 3"):
        chunked.dask(dd.from_pandas(frame()[["u"]], npartitions=3), dd.from_pandas(frame()["v"], npartitions=2))
    with pytest.raises(ValueError, match="count=0"):
        chunked.numbered(lambda number: None, 0)


# -- joblib's dask backend ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["search", "nested", "permutations"])
def test_jobs_of_joblib_run_on_the_cluster(client, what):
    def run(n_jobs):
        if what == "permutations":
            found = permutation_test_score(MODEL, X[:60], LABELS[:60], n_permutations=20, n_jobs=n_jobs, random_state=0)
            return found.permutation_scores
        search = FoldlessSearchCV(LSSVC("rbf"), {"alpha": [0.1, 1.0], "gamma": [0.1, 1.0]}, n_jobs=n_jobs)
        if what == "search":
            return search.fit(X[:60], LABELS[:60]).cv_results_["mean_test_score"]
        return nested_cross_validate(search, X[:60], LABELS[:60], cv=3, n_jobs=n_jobs).test_score

    expected = run(None)
    with client.as_current(), joblib.parallel_config(backend="dask"):
        assert_close(run(2), expected)
