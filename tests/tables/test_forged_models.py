"""Model files that were forged: refused for what they ask for, before it is computed, in one line."""

import contextlib
import hashlib
import io
import json
import struct
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp

pd = pytest.importorskip("pandas", reason="tables need the extra cli")
sio = pytest.importorskip("skops.io", reason="tables need the extra cli")
pytest.importorskip("typer", reason="the command line needs the extra cli")

from typer.testing import CliRunner  # noqa: E402

from foldless.cli.app import app  # noqa: E402
from foldless.tables import Table, TableError, Wishes, load_model, model_file, pipeline, prepare, save_model  # noqa: E402

N = 40


def frame():
    rng = np.random.default_rng(0)
    days = pd.date_range("2020-01-01", periods=N).astype(str)
    numbers = {"a": rng.normal(size=N), "town": rng.choice(["Ulm", "Bonn"], N), "day": days}
    return pd.DataFrame({**numbers, "age": rng.normal(size=N), "y": rng.choice(["u", "v"], N)})


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    """{kind: the members of an honest file}: of a table, and of a sparse matrix."""
    folder, found = tmp_path_factory.mktemp("models"), {}
    X = sp.random(N, 30, density=0.2, random_state=0, format="csr")
    sparse = Table(pd.DataFrame({"target": np.arange(N) % 2}), "a.svmlight", "svmlight", X)
    tables = {"table": (Table(frame(), "a.csv", "csv"), Wishes("y", confounds=("age",))), "sparse": (sparse, Wishes())}
    for kind, (table, wishes) in tables.items():
        rows = prepare(table, wishes)
        more = {} if rows.confounds is None else {"model__confounds": rows.confounds}
        save_model(folder / kind, rows, pipeline(rows, alpha=0.3).fit(rows.X, rows.y, **more), {})
        assert load_model(folder / kind).schema == rows.schema
        found[kind] = unpacked((folder / kind).read_bytes())
    return found


def unpacked(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(parts, compression=zipfile.ZIP_DEFLATED):
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", compression) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return written.getvalue()


def forged(parts, **changes):
    """The file of changed members, with checksums that are right."""
    parts = parts | {name.replace("_", "."): content for name, content in changes.items()}
    sums = {name: hashlib.sha256(parts[name]).hexdigest() for name in ("schema.json", "model.skops")}
    manifest = json.loads(parts["manifest.json"]) | {"sha256": sums}
    return packed({**parts, "manifest.json": json.dumps(manifest).encode()})


def refused(path, content, why, code=2):
    """Refused by the command line with an exit code of 2, and two lines."""
    (path / "m").write_bytes(content)
    frame().to_csv(path / "a.csv")
    result = CliRunner().invoke(app, ["predict", str(path / "m"), str(path / "a.csv")])
    assert result.exit_code == code, (result.output, result.exception)
    lines = result.stderr.splitlines()
    assert [line.split(":")[0] for line in lines] == ["error", "hint"]
    assert why in lines[0]


def deep(n):
    return b"[" * n + b"]" * n


SCHEMAS = {
    "deep": (lambda text: deep(100_000), "too much for a file of its size"),
    "less deep": (lambda text: deep(900), "nested more than 60 deep"),
    "deep inside": (lambda text: text.replace(b'"levels": [', b'"levels": [' + deep(500) + b",", 1), "60 deep"),
    "deep in another encoding": (lambda text: deep(900).decode().encode("utf-16"), "codec can't decode"),
    "many lists": (lambda text: b"[" + b"[]," * 10**6 + b"0]", "too much for a file of its size"),
    "many numbers": (lambda text: b"[" + b"0," * 10**6 + b"0]", "too much for a file of its size"),
    "unpacked far too large": (lambda text: b" " * 2**25, "too many for a file of its size"),
    "a huge number": (lambda text: text.replace(b'"n_sparse": 0', b'"n_sparse": 1' + b"0" * 10_000), "digits"),
    "NaN": (lambda text: text.replace(b'"n_sparse": 0', b'"n_sparse": NaN'), "holds NaN"),
    "a name twice": (lambda text: text.replace(b'"task":', b'"task": "regression", "task":'), "something twice"),
    "half a letter": (lambda text: text.replace(b'"u"', b'"\\ud800"'), "surrogates"),
    "another class": (lambda text: text.replace(b'"u"', b'"u", "w"'), "classes have no targets"),
    "no text": (lambda text: text.replace(b'"name": "a"', b'"name": 5'), "'5' is of another type"),
    "a text for a list": (lambda text: text.replace(b'"classes": [', b'"classes": "uv", "x": ['), "another type"),
    "another kind": (lambda text: text.replace(b'"date"', b'"wide"'), "kind of the schema"),
    "another format of dates": (lambda text: text.replace(b'"ISO8601"', b'"%Y%Y%Y"'), "date_format of the schema"),
    "another cycle": (lambda text: text.replace(b'"week"', b'"moon"'), "cycles of the schema"),
    "another task": (lambda text: text.replace(b'"task": "classification"', b'"task": "guess"'), "task of the schema"),
    "a huge confound": (lambda text: text.replace(b'"typical": ', b'"typical": 1e200, "scale": '), "twice"),
    "no scale": (lambda text: text.replace(b'"scale": ', b'"scale": -'), "confounds of the schema"),
    "not a dictionary": (lambda text: b"5", "'5' is of another type"),
    "texts without an end": (lambda text: b'{"a":' + b'"\\' * 10**6 + b"}", "does not fit together"),
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_forged_schemas_are_refused(tmp_path, honest, name):
    change, why = SCHEMAS[name]
    text = honest["table"]["schema.json"]
    assert change(text) != text
    refused(tmp_path, forged(honest["table"], schema_json=change(text)), why)


def node(loader="ListNode", kind="list", module="builtins", **more):
    return {"__class__": kind, "__module__": module, "__loader__": loader, **more}


def laughs(n):
    """Lists of twice the list before: a short text of 2^n lists."""
    found = node(content=[], __id__=0)
    for k in range(n):
        found = node(content=[found, node(content=[], __id__=k)], __id__=k + 1)
    return found


def inside(n):
    found = node(content=[])
    for _ in range(n):
        found = node(content=[found])
    return found


def read_often(members):
    name = next(each for each in members if each.endswith(".npy"))
    return node(content=[node("NdArrayNode", "ndarray", "numpy", type="numpy", file=name) for _ in range(2000)])


DESCRIPTIONS = {
    "doubled": (lambda members: laughs(15), "describes different objects as one"),
    "deep": (lambda members: inside(100), "nested more than 60 deep"),
    "deep in a text": (lambda members: node("JsonNode", "str", content=deep(50_000).decode()), "inside of a text"),
    "one array, often": (read_often, "reads an array more than once"),
    "no such member": (lambda members: node("NdArrayNode", "ndarray", "numpy", type="numpy", file="x.npy"), "lacks"),
    "types": (lambda members: node(content=[node(kind=f"T{k}") for k in range(2000)]), "objects of type builtins.T0"),
    "a file that is no name": (lambda members: node("NdArrayNode", type="numpy", file=[1]), "unhashable"),
    "code": (lambda members: node("FunctionNode", "system", "os"), "objects of type os.system"),
}


@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_forged_descriptions_are_refused(tmp_path, honest, name):
    make, why = DESCRIPTIONS[name]
    members = unpacked(honest["table"]["model.skops"])
    described = json.loads(members["schema.json"])
    described["content"]["content"] = described["content"].get("content")
    described["content"]["weights"] = make(members)
    members["schema.json"] = json.dumps(described).encode()
    refused(tmp_path, forged(honest["table"], model_skops=packed(members, zipfile.ZIP_STORED)), why)


def array(shape, data=b"", dtype="<f8"):
    written = io.BytesIO()
    np.lib.format.write_array_header_1_0(written, {"descr": dtype, "fortran_order": False, "shape": shape})
    return written.getvalue() + data


ARRAYS = {
    "huge": (array((10**12,)), "an array that is no 1000000000000"),
    "huge, of nothing": (array((10**12,), dtype="|S0"), "an array that is no 1000000000000"),
    "negative": (array((-1,)), "an array that is no -1"),
    "cut off": (array((20,), b"x"), "an array that is no 20"),
    "of objects": (array((1,), b"cos\nsystem\n", "|O"), "an array of type object"),
    "no header": (b"\x93NUMPY\x01\x00" + struct.pack("<H", 9000) + b"(" * 9000, "can not be read"),
    "too large": (bytes(2**25), "too many for a file of its size"),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_forged_arrays_are_refused(tmp_path, honest, name):
    content, why = ARRAYS[name]
    members = unpacked(honest["table"]["model.skops"])
    first = next(each for each in members if each.endswith(".npy"))
    inner = packed(members | {first: content})
    refused(tmp_path, forged(honest["table"], model_skops=inner), why)


def zeros(n):
    return lambda state: {"X": np.zeros((n, state["X"].shape[1])), "y": np.arange(n) % 2.0}


def kernel(described):
    """A change of the kernel among the parameters of a model."""
    return lambda state: {"params": state["params"] | {"kernel": described}}


def scaled(scales, inner=None):
    """The description of a kernel of scaled features."""
    return {"class": "Scaled", "kernel": inner or {"class": "Laplacian", "gamma": 0.3}, "scales": scales}


STATES = {
    "rows, as many as would take hours": ("table", zeros(100_000), "is larger than any of a file of"),
    "rows, as many as would take a minute": ("table", zeros(3000), "is larger than any of a file of"),
    "functions": ("table", kernel({"class": "RandomFeatures", "kernel": "rbf", "n_landmarks": 10**9}), "larger"),
    "landmarks of random features": (
        "table",
        kernel({"class": "RandomFeatures", "kernel": {"class": "Nystroem", "kernel": "rbf", "n_landmarks": 10**9}}),
        "larger",
    ),
    "landmarks beside a kernel": (
        "table",
        kernel({"class": "Sum", "terms": [{"class": "Linear"}, {"class": "Nystroem", "kernel": {"class": "RBF"}}]}),
        "decides otherwise",
    ),
    "landmarks of scaled features": (
        "table",
        kernel(scaled(np.ones(6), {"class": "Nystroem", "kernel": {"class": "RBF"}, "n_landmarks": 10**9})),
        "larger",
    ),
    "scales of other features": ("table", kernel(scaled(np.ones(10**6))), "one number for each of the 6"),
    "scales of no features": ("table", kernel(scaled(np.ones(0))), "one number for each of the 6"),
    "negative scales": ("table", kernel(scaled(-np.ones(6))), "scales"),
    "scales without end": ("table", kernel(scaled(np.full(6, np.inf))), "scales"),
    "scales that are texts": ("table", kernel(scaled(np.array(["1"] * 6))), "not words and numbers"),
    "scales of objects": ("table", kernel(scaled(np.array([{}] * 6, dtype=object))), "not words and numbers"),
    "scaled without a kernel": ("table", kernel(scaled(np.ones(6), "rbf")), "kernel"),
    "other scales": ("table", kernel(scaled(np.arange(6.0))), "decides otherwise"),
    "a kernel of another kind": ("table", kernel({"class": "Custom", "function": "print"}), "not words and numbers"),
    "a parameter that is none": ("table", kernel({"class": "Nystroem", "as_seen": True}), "not words and numbers"),
    "another kernel": ("table", lambda s: {"params": s["params"] | {"kernel": "laplacian"}}, "decides otherwise"),
    "an unknown kernel": ("table", lambda s: {"params": s["params"] | {"kernel": "quantum"}}, "quantum"),
    "a huge alpha": ("table", lambda s: {"params": s["params"] | {"alpha": 10**4000}}, "too large to convert"),
    "one axis": ("table", lambda s: {"X": np.zeros(N)}, "does not fit together"),
    "texts": ("table", lambda s: {"X": s["X"].astype(str)}, "does not fit together"),
    "nan": ("table", lambda s: {"X": s["X"] * np.nan}, "contains NaN"),
    "few targets": ("table", lambda s: {"y": s["y"][:5]}, "5 targets for rows of shape"),
    "targets that are no class": ("table", lambda s: {"y": -s["y"] - 1}, "none of the classes"),
    "no steps": ("table", lambda s: {"table": "x"}, "no attribute"),
    "indices beyond the columns": ("sparse", lambda s: {"X": beyond(s["X"])}, "indices must be < 30"),
    "very wide": ("sparse", lambda s: {"X": sp.csr_matrix((N, 10**12))}, "1000000000000"),
    "very tall": ("sparse", lambda s: {"X": sp.csr_matrix((10**7, 30))}, "too many for a file"),
}


def beyond(X):
    X = X.copy()
    X.indices[:] = 10**8
    return X


@pytest.mark.parametrize("name", STATES)
def test_forged_models_are_refused(tmp_path, honest, name):
    kind, change, why = STATES[name]
    content = honest[kind]["model.skops"]
    state = sio.loads(content, trusted=sio.get_untrusted_types(data=content))
    refused(tmp_path, forged(honest[kind], model_skops=sio.dumps(state | change(state))), why)


@pytest.mark.parametrize(
    ("width", "params"),
    [
        (2**25, {"kernel": {"class": "RandomFeatures", "kernel": "laplacian", "n_landmarks": 50}}),
        (10**6, {"kernel": {"class": "Nystroem", "kernel": "rbf", "n_landmarks": 30}}),
        (2**25, {"standardize": True}),
    ],
    ids=["frequencies", "landmarks", "deviations"],
)
def test_sparse_rows_that_ask_for_large_dense_arrays_are_refused(tmp_path, honest, width, params):
    parts = honest["sparse"]
    content, schema = parts["model.skops"], parts["schema.json"].replace(b'"n_sparse": 30', b'"n_sparse": %d' % width)
    state = sio.loads(content, trusted=sio.get_untrusted_types(data=content))
    X = sp.csr_matrix((state["X"].data, state["X"].indices, state["X"].indptr), (N, width))
    state |= {"X": X, "params": state["params"] | params}
    assert schema != parts["schema.json"]
    refused(
        tmp_path, forged(parts, model_skops=sio.dumps(state), schema_json=schema), "is larger than any of a file of"
    )


def test_steps_that_can_not_work_are_refused(tmp_path, honest):
    content = honest["table"]["model.skops"]
    for change, why in ((np.full(4, np.nan), "no numbers"), (np.ones(3), "broadcast")):
        state = sio.loads(content, trusted=sio.get_untrusted_types(data=content))
        state["table"].named_transformers_["numbers"][1].scale_ = change
        refused(tmp_path, forged(honest["table"], model_skops=sio.dumps(state)), why)


def test_forged_archives_are_refused(tmp_path, honest):
    parts = honest["table"]
    whole = forged(parts)
    names = {name: name.replace("schema", "../schema") for name in parts}
    for content, why in (
        (packed({**parts, "../../evil": b""}), "holds 4 members"),
        (packed({names[name]: content for name, content in parts.items()}), "no model of foldless"),
        (packed(parts, zipfile.ZIP_LZMA), "packed in another way"),
        (forged(parts, schema_json=parts["model.skops"], model_skops=parts["schema.json"]), "does not fit together"),
        (b"xyz" + whole, "damaged"),
        (whole + b"xyz", "damaged"),
        (b"", "damaged"),
        (with_number(whole, b"PK\x01\x02", 24, "<L", 0xFFFFFFF0), "would unpack to 4,29"),
        (with_number(whole, b"PK\x01\x02", 24, "<L", 10), "damaged"),
        (with_number(whole, b"PK\x05\x06", 8, "<2H", 60_000, 60_000), "holds 60,000 members"),
        (forged(parts | {"manifest.json": b'{"format": "foldless model 2"}'}), "its format is 'foldless model 2'"),
        (packed({**parts, "manifest.json": deep(900)}), "nested more than 60 deep"),
        (packed({**parts, "manifest.json": b"[]"}), "damaged"),
        (packed({**parts, "manifest.json": b'{"a":' + b'"\\' * 10**6 + b"}"}), "damaged"),
    ):
        refused(tmp_path, content, why)


def with_number(content, mark, place, form, *values):
    changed = bytearray(content)
    struct.pack_into(form, changed, changed.rfind(mark) + place, *values)
    return bytes(changed)


def test_any_flipped_bit_is_refused_or_means_nothing(tmp_path, honest):
    content = forged(honest["table"])
    for place in np.random.default_rng(0).integers(len(content), size=60):
        changed = bytearray(content)
        changed[place] ^= 0x55
        (tmp_path / "m").write_bytes(changed)
        harmless = False
        with contextlib.suppress(Exception):  # such as in the date of a member
            harmless = unpacked(bytes(changed)) == unpacked(content)
        with contextlib.suppress(TableError) if harmless else pytest.raises(TableError, match="is refused"):
            load_model(tmp_path / "m")


def test_honest_files_of_few_different_numbers_are_read(tmp_path, monkeypatch):
    """They pack so well that they are left unpacked."""
    monkeypatch.setattr(model_file, "FREE_ROWS", 10)
    truth = np.arange(2000) % 2
    data = Table(pd.DataFrame({"a": truth, "b": 1 - truth, "y": truth}), "a.csv", "csv")
    rows = prepare(data, Wishes("y"))
    save_model(tmp_path / "m", rows, pipeline(rows, kernel="linear").fit(rows.X, rows.y), {"score": np.nan})
    assert load_model(tmp_path / "m").about == {"score": None}
    assert (tmp_path / "m").stat().st_size > 16 * 2000
