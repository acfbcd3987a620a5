"""dask's collections: rules on a cluster, held-out predictions as arrays, models that predict chunk by chunk."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from foldless import LSSVC, LSSVR, KernelFisherDiscriminant, chunked
from foldless.kernels import RandomFeatures
from support.tolerances import assert_close

distributed = pytest.importorskip("distributed", reason="dask is not installed")
dask = pytest.importorskip("dask", reason="dask is not installed")
da = pytest.importorskip("dask.array", reason="dask is not installed")
dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")

N = 150
X = np.random.default_rng(0).normal(size=(N, 3))
VALUES = X[:, 0] + np.sin(X[:, 1]) + 0.1 * np.random.default_rng(1).normal(size=N)
LABELS = np.array(["a", "b", "c"])[(VALUES > -0.5).astype(int) + (VALUES > 0.6)]
MODEL = LSSVC(RandomFeatures("rbf", 12), calibration="sigmoid")


@pytest.fixture(scope="module")
def client():
    options = {"processes": False, "n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster, set_as_default=False) as client:
        yield client


def in_memory(model, y, **options):
    """Columns of held-out predictions, and the result, of this process."""
    shape = (N, 3)[: 1 + (y is LABELS)]
    if y is VALUES:
        found = {"fold": np.empty(N, int), "prediction": np.empty(N), "loo_prediction": np.empty(N)}
    else:
        found = {"fold": np.empty(N, int), "decision": np.empty(shape), "prediction": np.empty(N, "<U1")}
        found |= {"probability": np.empty((N, 3)), "loo_decision": np.empty(shape)}
    return found, chunked.cross_validate(model, chunked.arrays(X, y), predictions=found, **options)


def source(kind, y):
    if kind == "arrays":
        return chunked.dask(da.from_array(X, chunks=(60, 2)), da.from_array(y, chunks=50))
    if kind == "unknown":
        Z, y = (da.from_array(each, chunks={0: 60, 1: 3}) for each in (X, y))
        some = da.from_array(np.ones(N, bool), chunks=60)
        return chunked.dask(Z[some], y[some])
    if kind == "dataframe":
        frame = pd.DataFrame(X, columns=["u", "v", "w"]).assign(y=y, empty=np.repeat([0, 2, 3], [60, 60, 30]))
        parts = [frame[frame["empty"] == part].drop(columns="empty") for part in (1, 0, 1, 2, 3)]  # some have no rows
        return chunked.dask(dd.from_delayed(list(map(dask.delayed, parts)), meta=parts[0]), "y")
    return chunked.arrays(X, y, rows=60)


@pytest.mark.parametrize("kind", ["arrays", "unknown", "dataframe", "here"])
@pytest.mark.parametrize("model", [MODEL, LSSVR("linear")], ids=["labels", "values"])
def test_held_out_predictions_are_dask_arrays_in_the_chunks_of_the_data(client, kind, model):
    y = VALUES if isinstance(model, LSSVR) else LABELS
    expected, _ = in_memory(model, y, cv=3)
    data = source(kind, y)
    found = chunked.cross_validate(model, data, cv=3, client=client, predictions="dask").predictions
    assert expected.keys() <= found.keys()
    for name, values in expected.items():
        assert found[name].chunks[0] == (60, 60, 30)
        got = found[name].compute(scheduler="synchronous")
        assert got.dtype == found[name].dtype
        assert_array_equal(got, values) if values.dtype.kind in "iU" else assert_close(got, values)
    assert all(len(each) == N for each in dask.compute(*found.values(), scheduler="synchronous"))


def test_columns_of_several_types_and_sparse_chunks(client):
    known = X[:, 0] > 0
    mixed = pd.DataFrame({"known": known, "u": X[:, 1].astype(np.float32), "v": np.arange(N), "y": VALUES})
    data = chunked.dask(dd.from_pandas(mixed, npartitions=3), "y")
    found = chunked.cross_validate(LSSVR("linear"), data, cv=3, client=client)
    Z = mixed[["known", "u", "v"]].astype(float).to_numpy()
    expected = chunked.cross_validate(LSSVR("linear"), chunked.arrays(Z, VALUES), cv=3)
    assert_close(found.test_score, expected.test_score)
    sparse = da.from_array(Z, chunks=(60, 3)).map_blocks(sp.csr_array)
    found = chunked.cross_validate(
        LSSVR("linear"), chunked.dask(sparse, da.from_array(VALUES, chunks=60)), cv=3, client=client
    )
    assert_close(found.test_score, expected.test_score)


def test_every_pass_of_a_cluster_shows_its_progress(client, capsys):
    result = chunked.cross_validate(LSSVR("linear"), source("unknown", VALUES), cv=3, client=client, verbose=1)
    assert list(result.seconds) == ["count", "survey", "sums", "held out"]
    assert {line.split(":")[0] for line in capsys.readouterr().err.splitlines()} == set(result.seconds)


def test_what_is_wrong_is_told(client):
    frame = dd.from_pandas(pd.DataFrame(X, columns=["u", "v", "w"]), npartitions=2)
    with pytest.raises(ValueError, match=r"X has no column 'y'; its columns are \['u', 'v', 'w'\]"):
        chunked.dask(frame, "y")

    def read(number):
        if number == 2:
            raise OSError("no connection")
        return X[:40], VALUES[:40]

    with pytest.raises(OSError, match="no connection") as found:
        chunked.cross_validate(LSSVR("linear"), chunked.numbered(read, 3, rows=40), client=client)
    assert found.value.__notes__ == ["This is about chunk 2."]


def test_rows_are_judged_when_their_predictions_are_asked_for(client):
    seen = []

    def read(number):
        seen.append(number)
        return X[50 * number : 50 * number + 50], VALUES[50 * number : 50 * number + 50]

    data = chunked.numbered(read, 3, rows=50)
    found = chunked.cross_validate(LSSVR("linear"), data, cv=3, client=client, predictions="dask").predictions
    del seen[:]
    expected, _ = in_memory(LSSVR("linear"), VALUES, cv=3)
    assert_close(found["prediction"][60:70].compute(scheduler="synchronous"), expected["prediction"][60:70])
    assert seen == [1]
    dask.compute(*found.values(), scheduler="synchronous")
    assert sorted(seen) == [0, 1, 1, 2]  # once for all columns


def test_rules_of_a_cluster_are_those_of_this_process(client):
    y = np.where(VALUES > 0.4, "yes", "no")
    for model in (
        KernelFisherDiscriminant("linear", threshold="loo", calibration="isotonic"),
        LSSVC("linear", calibration="sigmoid", class_weight="balanced"),
    ):
        options = {"cv": 3, "loo": False, "sample": 90}
        expected = chunked.cross_validate(model, chunked.arrays(X, y), **options)
        found = chunked.cross_validate(model, source("arrays", y), client=client, **options)
        assert_close(found.estimator.predict_proba(X), expected.estimator.predict_proba(X))
        assert_close(found.estimator.decision_function(X), expected.estimator.decision_function(X))
        assert_array_equal(found.test_score, expected.test_score)
        assert found.n_scored == 90


@pytest.mark.parametrize("select", ["kfold", "loo"])
def test_class_weights_are_chosen_on_a_cluster_as_in_this_process(client, select):
    grid = {"class_weight": [{"a": 1, "b": 5, "c": 1}, None]}
    options = {"cv": 3, "alphas": [0.1, 1.0], "param_grid": grid, "select": select}
    expected = chunked.cross_validate(LSSVC("linear"), chunked.arrays(X, LABELS), **options)
    found = chunked.cross_validate(LSSVC("linear"), source("arrays", LABELS), client=client, **options)
    assert_close(found.kfold_press, expected.kfold_press)
    assert found.best_params == expected.best_params


def test_fitted_models_predict_chunk_by_chunk(client):
    model = chunked.cross_validate(MODEL, source("arrays", LABELS), cv=None, client=client).estimator
    Z = da.from_array(X, chunks=(60, 3))
    labels = Z.map_blocks(model.predict, drop_axis=1, dtype=model.classes_.dtype)
    shares = Z.map_blocks(model.predict_proba, chunks=(Z.chunks[0], (3,)), dtype=float)
    assert labels.chunks == ((60, 60, 30),)
    assert_array_equal(labels.compute(scheduler="synchronous"), model.predict(X))
    assert_close(shares.compute(scheduler="synchronous"), model.predict_proba(X))


@pytest.mark.parametrize("rows", [None, 50])
@pytest.mark.parametrize("bad", [0, 2])
def test_errors_of_those_who_read_have_a_note_from_workers(client, rows, bad):
    """Whether chunks are counted first or not."""

    def read(number):
        if number == bad:
            raise OSError("no connection")
        return X[:50], VALUES[:50]

    with pytest.raises(OSError, match="no connection") as found:
        chunked.cross_validate(LSSVR("linear"), chunked.numbered(read, 3, rows=rows), client=client)
    assert found.value.__notes__ == [f"This is about chunk {bad}."]


def test_a_bad_chunk_has_its_number_while_chunks_are_counted(client, tmp_path):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    frame = pd.DataFrame(X, columns=["u", "v", "w"]).assign(y=VALUES)
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.astype({"v": object}).replace({"v": {X[3, 1]: "tall"}}).to_csv(tmp_path / "b.csv", index=False)
    data = chunked.csv(tmp_path, target="y", rows=40)
    with pytest.raises(chunked.ChunkError) as here:
        chunked.cross_validate(LSSVR("linear"), data)
    with pytest.raises(chunked.ChunkError) as there:
        chunked.cross_validate(LSSVR("linear"), data, client=client)
    assert str(there.value) == str(here.value)
    assert here.value.chunk == 4
