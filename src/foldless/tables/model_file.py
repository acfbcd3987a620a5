"""Model files that are safe to load: rows, numbers and words, never code.

A file is a zip archive with

    manifest.json    what it is, and the SHA-256 of the others
    schema.json      the :class:`Schema`: which columns, how their cells are read
    model.skops      what the columns taught (scikit-learn's transformers), the rows behind them, and the parameters

The fit is repeated when a file is loaded, which takes one factorisation, and must decide as it did when it was written.
Rows of a group are alike: decisions for rows that are left out alone are too sure for new groups. A file of rows with
groups therefore holds decisions (or values) of the training rows without their groups, and makes probabilities and
intervals from these.

skops builds objects of named types and runs no code of the file; types beyond a short list are refused before that.
The checksums find damage and careless changes. Whoever makes all of a file anew can make another model, as with any
file: load files from people you trust to mean well, though they can not run anything here.
"""

import hashlib
import io
import json
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import skops.io as sio
from sklearn.pipeline import Pipeline

from foldless import LSSVC, LSSVR, KernelFisherDiscriminant, __version__
from foldless.readout.conformal import group_half_width
from foldless.tables.errors import TableError
from foldless.tables.schema import Schema
from foldless.tables.scores import calibrated

FORMAT = "foldless model 1"
MEMBERS = {"manifest.json", "schema.json", "model.skops"}
MOST_BYTES = 2**32  # unpacked
MACHINES = {each.__name__: each for each in (LSSVC, LSSVR, KernelFisherDiscriminant)}
ALLOWED = {
    "builtins": {"dict", "list", "str", "tuple", "slice", "int", "float", "bool", "NoneType"},
    "numpy": {"ndarray", "dtype", "float64", "int64", "bool", "bool_", "object_", "str_"},
    "scipy.sparse._csr": {"csr_matrix", "csr_array"},
    "sklearn.compose._column_transformer": {"ColumnTransformer", "_RemainderColsList"},
    "sklearn.impute._base": {"SimpleImputer", "MissingIndicator"},
    "sklearn.pipeline": {"Pipeline"},
    "sklearn.preprocessing._data": {"StandardScaler"},
    "sklearn.preprocessing._encoders": {"OneHotEncoder"},
}
LOADERS = {  # kinds of nodes of skops that a model is made of; others would call or import what the file names
    *("CachedNode", "DictNode", "DTypeNode", "JsonNode", "ListNode", "NdArrayNode", "ObjectNode", "SliceNode"),
    *("SparseMatrixNode", "TupleNode", "TypeNode"),
}
ORDER = " The model comes first: foldless predict MODEL DATA."
N_CHECKED = 20  # rows whose decisions are kept to compare with


@dataclass(frozen=True)
class TableModel:
    """A model with the schema of its table, and what was said of it when it was made.

    Attributes
    ----------
    schema : Schema
    pipeline : Pipeline, fitted
    about : dict of texts and numbers
    y, weights : ndarrays, numbers of the classes or values of the training rows, and their weights or None
    groups : ndarray, numbers of their groups; None without
    apart : ndarray, decisions for the training rows (or their values) without their groups; None without groups
    """

    schema: Schema
    pipeline: Pipeline
    about: dict[str, Any]
    y: np.ndarray
    weights: np.ndarray | None = None
    groups: np.ndarray | None = None
    apart: np.ndarray | None = None

    def decisions(self, X, confounds=None) -> np.ndarray:
        """Decisions or values of rows as the last step takes them; confounds that are not given are at their mean."""
        machine = self.pipeline[-1]
        decide = machine.decision_function if self.schema.classes else machine.predict
        return decide(X) if confounds is None else decide(X, confounds=confounds)

    def probabilities(self, X, confounds=None) -> np.ndarray | None:
        """Probabilities (n, n_classes) of such rows; None where the model has none."""
        machine = self.pipeline[-1]
        if getattr(machine, "calibration", None) is None:
            return None
        if self.apart is None:
            return machine.predict_proba(X) if confounds is None else machine.predict_proba(X, confounds=confounds)
        fitted = calibrated(self.apart, self.y.astype(int), len(machine.classes_), self.weights)
        return fitted.proba(self.decisions(X, confounds))

    def intervals(self, X, coverage: float, confounds=None) -> np.ndarray:
        """Ends (n, 2) of intervals of the values of such rows; with confounds from residuals of held-out values."""
        machine, apart, groups = self.pipeline[-1], self.apart, self.groups
        if apart is None and not hasattr(machine, "confound_coef_"):
            return machine.predict_interval(X, coverage=coverage)
        if apart is None:
            apart, groups = machine.loo_predict(), np.arange(len(self.y))
        half = group_half_width(self.y - apart, groups, coverage)
        return self.decisions(X, confounds)[:, None] + [-half, half]


def save_model(path: str | Path, rows, pipeline: Pipeline, about: dict[str, Any], apart=None) -> None:
    """Write a fitted pipeline of some rows; what is there already is replaced when all is written.

    ``apart`` are decisions or values of the rows, each without its group (``Run.without_groups``).
    """
    X = pipeline[:-1].transform(rows.X) if len(pipeline) > 1 else rows.X
    last = pipeline[-1]
    y = np.searchsorted(last.classes_, rows.y) if rows.classifies else rows.y
    state = {
        "table": pipeline[0] if len(pipeline) > 1 else None,
        "machine": type(last).__name__,
        "params": {name: each for name, each in last.get_params().items() if each is not None},
        "X": X,
        "y": y.astype(float),
        "weights": rows.weights,
        "confounds": rows.confounds,
        "decisions": _decisions(last, X),
        "groups": None if rows.groups is None else np.unique(rows.groups, return_inverse=True)[1],
        "apart": apart,
    }
    parts = {"schema.json": rows.schema.to_json().encode(), "model.skops": sio.dumps(state)}
    sums = {name: hashlib.sha256(each).hexdigest() for name, each in parts.items()}
    manifest = {"format": FORMAT, "foldless": __version__, "sha256": sums, "about": about}
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", json.dumps(manifest, ensure_ascii=False, indent=1))
        for name, content in parts.items():
            archive.writestr(name, content)
    beside = Path(path).with_name(Path(path).name + ".part")
    beside.write_bytes(written.getvalue())
    beside.replace(path)


def load_model(path: str | Path) -> TableModel:
    """Read what :func:`save_model` has written; refuse everything else."""
    path = Path(path)
    manifest, parts = _unpacked(path)
    state = _state(path, parts["model.skops"])
    try:
        schema = Schema.from_json(parts["schema.json"].decode())
        machine = MACHINES[state["machine"]](**state["params"])
        y = np.array(schema.classes, dtype=object)[state["y"].astype(int)] if schema.classes else state["y"]
        machine.fit(state["X"], y, sample_weight=state["weights"], confounds=state["confounds"])
        same = np.allclose(_decisions(machine, state["X"]), state["decisions"], rtol=1e-5, atol=1e-7)
        steps = _steps(schema, state)
        model = Pipeline([*steps, ("model", machine)])
        parts = (state[name] for name in ("y", "weights", "groups", "apart"))
        found = TableModel(schema, model, manifest.get("about", {}), *parts)
        _check_apart(found, state["X"][:1])
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise _refused(path, f"what it holds does not fit together ({' '.join(str(error).split())[:80]})") from None
    if not same:
        raise _refused(path, "the model decides otherwise than when it was written")
    return found


def _check_apart(model, X):
    """Decisions without groups must be those of the rows and classes of the model."""
    if model.apart is None:
        return
    if model.apart.shape != (len(model.y), *_decisions(model.pipeline[-1], X).shape[1:]):
        raise ValueError(f"decisions without groups have shape {model.apart.shape}")
    if model.groups is None or model.groups.shape != model.y.shape or model.groups.min() < 0:
        raise ValueError("decisions without groups, and no groups")


def _steps(schema, state):
    """The steps before the machine; they must take the columns of the schema, and make rows of the machine's width."""
    if schema.n_sparse:
        return []
    names = [name for field in schema.features for name in field.columns]
    if list(state["table"].feature_names_in_) != names:
        raise ValueError("the schema has other columns than the model")
    if len(state["table"].get_feature_names_out()) != state["X"].shape[1]:
        raise ValueError("the steps make rows of another width")
    return [("table", state["table"])]


def _decisions(machine, X):
    first = X[:N_CHECKED]
    return machine.decision_function(first) if hasattr(machine, "classes_") else machine.predict(first)


def _refused(path, why, more=""):
    hint = f"Take the file as `foldless report` or `tune` has written it.{more}"
    return TableError(f"{path.name} is refused: {why}.", hint)


def _unpacked(path):
    """(manifest, {name: bytes}) of an archive whose checksums are right."""
    try:
        with zipfile.ZipFile(path) as archive:
            if set(archive.namelist()) != MEMBERS or len(archive.namelist()) != len(MEMBERS):
                raise _refused(path, "it is no model of foldless", ORDER)
            _check_size(path, archive)
            parts = {name: archive.read(name) for name in MEMBERS}
        manifest = json.loads(parts.pop("manifest.json"))
        if manifest.get("format") != FORMAT:
            raise _refused(path, f"its format is {str(manifest.get('format'))[:40]!r}, not {FORMAT!r}")
        sums = {name: hashlib.sha256(each).hexdigest() for name, each in parts.items()}
    except FileNotFoundError:
        raise TableError(f"{path} does not exist.", "Name a model file, such as report/model.foldless.") from None
    except OSError as error:
        raise TableError(f"{path} can not be read: {error.strerror or error}.", "Check the file.") from None
    except TableError:
        raise
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, KeyError, AttributeError, RuntimeError):
        raise _refused(path, "it is damaged, or no model file", ORDER) from None
    if sums != manifest.get("sha256"):
        raise _refused(path, "it was changed after it was written")
    return manifest, parts


def _check_size(path, archive):
    if sum(each.file_size for each in archive.infolist()) > MOST_BYTES:
        raise _refused(path, "it is too large")


def _state(path, content):
    """What skops makes of a file whose types are all allowed."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            _check_size(path, archive)
            described = json.loads(archive.read("schema.json"))
        strange = sorted(
            f"{module}.{name}" for module, name in _types(described) if name not in ALLOWED.get(module, ())
        )
        strange += sorted(set(_values(described, "__loader__")) - LOADERS)
        if strange:
            raise _refused(path, f"it holds objects of type {strange[0]}, which no model has")
        state = sio.loads(content, trusted=[f"{module}.{name}" for module in ALLOWED for name in ALLOWED[module]])
        if not all(isinstance(each, str | int | float | None) for each in state["params"].values()):
            raise _refused(path, "its parameters are not words and numbers")
        return state
    except TableError:
        raise
    except Exception as error:  # skops raises whatever the content leads it to
        raise _refused(path, f"its model can not be read ({type(error).__name__})") from None


def _values(described, key):
    """All that the description of skops has under a name, as text."""
    if isinstance(described, list):
        return [each for one in described for each in _values(one, key)]
    if not isinstance(described, dict):
        return []
    own = [str(described[key])] if key in described else []
    return own + [each for one in described.values() for each in _values(one, key)]


def _types(described):
    """(module, name) of all types that the description of skops asks for."""
    if isinstance(described, list):
        return set().union(*map(_types, described))
    if not isinstance(described, dict):
        return set()
    found = set().union(*map(_types, described.values()))
    if "__class__" in described or "__module__" in described:
        found.add((str(described.get("__module__")), str(described.get("__class__"))))
    return found
