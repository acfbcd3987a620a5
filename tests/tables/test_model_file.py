"""Model files predict as before; damaged, changed and foreign ones are refused."""

import hashlib
import io
import json
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics.pairwise import rbf_kernel

pd = pytest.importorskip("pandas", reason="tables need the extra cli")
sio = pytest.importorskip("skops.io", reason="tables need the extra cli")

from foldless.kernels import RBF, Custom, Laplacian, Linear, Nystroem, On, Poly, RandomFeatures, Scaled  # noqa: E402
from foldless.tables import Table, TableError, Wishes, load_model, pipeline, prepare, save_model  # noqa: E402

RNG = np.random.default_rng(0)
N = 40
FRAME = pd.DataFrame(
    {
        "a": np.where(RNG.random(N) < 0.1, np.nan, RNG.normal(size=N)),
        "town": RNG.choice(["Ulm", "Bonn"], N),
        "day": pd.date_range("2020-01-01", periods=N).astype(str),
        "flag": RNG.choice(["yes", "no"], N),
        "value": RNG.normal(size=N),
        "label": RNG.choice(["u", "v", "w"], N),
    }
)


def saved(path, target="label", table=None, **params):
    rows = prepare(table or Table(FRAME, "a.csv", "csv"), Wishes(target))
    model = pipeline(rows, alpha=0.3, **params).fit(rows.X, rows.y)
    save_model(path, rows, model, {"score": 0.5})
    return rows, model


def test_classes_and_probabilities_survive(tmp_path):
    rows, model = saved(tmp_path / "m", calibration="sigmoid")
    loaded = load_model(tmp_path / "m")
    assert loaded.about == {"score": 0.5}
    assert loaded.schema == rows.schema
    assert_array_equal(loaded.pipeline.predict(rows.X), model.predict(rows.X))
    assert_allclose(loaded.pipeline.predict_proba(rows.X), model.predict_proba(rows.X))


def test_values_and_intervals_survive(tmp_path):
    rows, model = saved(tmp_path / "m", "value")
    loaded = load_model(tmp_path / "m").pipeline
    X = model[:-1].transform(rows.X)
    assert_allclose(loaded[-1].predict_interval(X), model[-1].predict_interval(X))


def test_sparse_models_survive(tmp_path):
    X = sp.random(N, 30, density=0.2, random_state=0, format="csr")
    table = Table(pd.DataFrame({"target": np.arange(N) % 2}), "a.svmlight", "svmlight", X)
    rows, model = saved(tmp_path / "m", "", table)
    loaded = load_model(tmp_path / "m")
    assert_allclose(loaded.pipeline.decision_function(rows.X), model.decision_function(rows.X))
    wider = Table(table.frame, "b", "svmlight", sp.hstack([X, X]).tocsr())
    found, notes = loaded.schema.rows(wider)
    assert found.shape == (N, 30)
    assert "30 features" in notes[0]


def repacked(path, honest=True, **changes):
    """The file with members exchanged, with checksums that fit or not."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts |= {name.replace("_", "."): content for name, content in changes.items()}
    manifest = json.loads(parts["manifest.json"])
    if honest:
        manifest["sha256"] = {name: hashlib.sha256(parts[name]).hexdigest() for name in manifest["sha256"]}
    parts["manifest.json"] = json.dumps(manifest).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


def test_changed_files_are_refused(tmp_path):
    path = tmp_path / "m"
    saved(path)
    schema = load_model(path).schema.to_json()
    repacked(path, honest=False, schema_json=schema.replace("Ulm", "Rom").encode())
    with pytest.raises(TableError, match="changed after it was written"):
        load_model(path)
    for old, new in [('"town"', '"city"'), ('"u"', '"z"'), ('"classes"', '"types"')]:
        repacked(path, schema_json=schema.replace(old, new).encode())
        with pytest.raises(TableError, match="is refused"):
            load_model(path)


def test_another_model_in_the_file_is_refused(tmp_path):
    path = tmp_path / "m"
    saved(path)
    with zipfile.ZipFile(path) as archive:
        state = sio.loads(archive.read("model.skops"), trusted=["numpy.dtype"])
    state["params"]["alpha"] = 30.0
    repacked(path, model_skops=sio.dumps(state))
    with pytest.raises(TableError, match="decides otherwise"):
        load_model(path)


@pytest.mark.parametrize("strange", [np.exp, __import__("sklearn.svm").svm.SVC(), np.random.default_rng(0)])
def test_other_types_are_refused(tmp_path, strange):
    path = tmp_path / "m"
    saved(path)
    repacked(path, model_skops=sio.dumps({"table": strange}))
    with pytest.raises(TableError, match="objects of type"):
        load_model(path)


@pytest.mark.parametrize("loader", ["MethodNode", "PartialNode", "FunctionNode", "ConstructorFromReduceNode"])
def test_what_would_call_or_import_is_refused_whatever_type_it_claims(tmp_path, loader):
    path = tmp_path / "m"
    saved(path)
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(io.BytesIO(archive.read("model.skops"))) as model:
        parts = {name: model.read(name) for name in model.namelist()}
    parts["schema.json"] = parts["schema.json"].replace(b'"ListNode"', f'"{loader}"'.encode(), 1)
    changed = io.BytesIO()
    with zipfile.ZipFile(changed, "w") as model:
        for name, content in parts.items():
            model.writestr(name, content)
    repacked(path, model_skops=changed.getvalue())
    with pytest.raises(TableError, match=f"objects of type {loader}"):
        load_model(path)


every_kernel = {
    "landmarks by name": lambda width: Nystroem("rbf", 12, landmarks="uniform", random_state=3),
    "landmarks": lambda width: Nystroem(RBF(0.3), 12, per_fold=True, whiten=False),
    "landmarks of the user": lambda width: Nystroem(RBF("scale"), landmarks=np.eye(width)[:5]),
    "waves": lambda width: RandomFeatures(Laplacian(0.2), np.int64(20)),
    "widths": lambda width: RBF(np.linspace(0.1, 0.5, width)),
    "sum": lambda width: 0.5 * RBF("scale") + Nystroem(Poly(), 9) * Linear(),
    "a formula": lambda width: Poly(0.3, 2),
    "a kernel to learn": lambda width: "auto",
    "a learnt kernel": lambda width: learnt(width),
    "landmarks of a learnt kernel": lambda width: Nystroem(learnt(width), 12),
}


def learnt(width):
    """What a search with kernel="auto" ends with; one feature is left out."""
    return 0.3 * RBF(0.1) + 0.7 * Scaled(Laplacian(0.2), np.linspace(0.0, 2.0, width))


@pytest.mark.parametrize("case", every_kernel)
def test_kernels_that_are_objects_survive(tmp_path, case):
    rows, model = saved(tmp_path / "m")
    width = model[-1].n_features_in_
    rows, model = saved(tmp_path / "m", kernel=every_kernel[case](width))
    again = load_model(tmp_path / "m").pipeline
    assert repr(again[-1].kernel) == repr(model[-1].kernel).replace("np.int64(20)", "20")
    assert_allclose(again.decision_function(rows.X), model.decision_function(rows.X), rtol=1e-9, atol=1e-12)


def test_all_scales_of_a_learnt_kernel_survive(tmp_path):
    saved(tmp_path / "m")
    width = load_model(tmp_path / "m").pipeline[-1].n_features_in_
    _, model = saved(tmp_path / "m", kernel=learnt(width))
    again = load_model(tmp_path / "m").pipeline[-1].kernel
    assert again == model[-1].kernel == learnt(width)
    assert_array_equal(again.terms[1].scales, np.linspace(0.0, 2.0, width))


@pytest.mark.parametrize("kernel", [On([0, 1], RBF(0.1)), Custom(rbf_kernel)], ids=["columns", "a function"])
def test_kernels_of_other_kinds_are_not_written(tmp_path, kernel):
    with pytest.raises(TableError, match="a model file holds words and numbers, and not"):
        saved(tmp_path / "m", kernel=kernel)
    assert not (tmp_path / "m").exists()


def test_parameters_that_are_types_are_refused(tmp_path):
    path = tmp_path / "m"
    saved(path)
    with zipfile.ZipFile(path) as archive:
        state = sio.loads(archive.read("model.skops"), trusted=["numpy.dtype"])
    state["params"]["kernel"] = str
    repacked(path, model_skops=sio.dumps(state))
    with pytest.raises(TableError, match="parameters that are not words and numbers"):
        load_model(path)


def test_damaged_and_foreign_files_are_refused(tmp_path):
    path = tmp_path / "m"
    saved(path)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(TableError, match="damaged, or no model"):
        load_model(path)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a", "b")
    path.write_bytes(packed.getvalue())
    with pytest.raises(TableError, match="no model of foldless"):
        load_model(path)
    with pytest.raises(TableError, match="does not exist"):
        load_model(tmp_path / "none")
