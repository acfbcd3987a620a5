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
import os
import warnings
import zipfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
import skops.io as sio
from sklearn.pipeline import Pipeline

from foldless import LSSVC, LSSVR, KernelFisherDiscriminant, __version__, kernels
from foldless._engine.readout.conformal import group_half_width
from foldless._sklearn.landmarks import MOST_REPEATED
from foldless.tables import archive
from foldless.tables.errors import TableError
from foldless.tables.plain import plain
from foldless.tables.schema import Schema
from foldless.tables.scores import calibrated

FORMAT = "foldless model 1"
MEMBERS = {"manifest.json", "schema.json", "model.skops"}
MACHINES = {each.__name__: each for each in (LSSVC, LSSVR, KernelFisherDiscriminant)}
KERNELS = {
    kind.__name__: kind
    for kind in (
        *(kernels.RBF, kernels.Laplacian, kernels.Poly, kernels.Linear, kernels.Boolean, kernels.Cosine),
        *(kernels.Nystroem, kernels.RandomFeatures, kernels.Sum, kernels.Product, kernels.Scaled),
    )
}
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
    *("DictNode", "DTypeNode", "JsonNode", "ListNode", "NdArrayNode", "ObjectNode", "SliceNode", "SparseMatrixNode"),
    *("TupleNode", "TypeNode"),
}
ORDER = " The model comes first: foldless predict MODEL DATA."
FREE_ROWS, BYTES_A_ROW = 1000, 16  # rows of every model, and bytes of the file for each where there are more
MOST_WIDE = 2**25  # numbers in a row, however small the file is
MOST_DENSE = 2**22  # numbers of landmarks, random frequencies or scales, likewise
NUMBERS_A_BYTE = 300  # of such arrays and of fits, where the file is large
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
        "params": _described_params(last),
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
    manifest = {"format": FORMAT, "foldless": __version__, "sha256": sums, "about": plain(about)}
    parts = {"manifest.json": json.dumps(manifest, ensure_ascii=False, indent=1).encode(), **parts}
    written = _packed(parts, zipfile.ZIP_DEFLATED)
    size = sum(map(len, parts.values()))
    if size > archive.most_bytes(len(written)) or len(y) > _most_rows(len(written)):  # few different numbers
        written = _packed(parts, zipfile.ZIP_STORED)
    _check_fit(last, X, len(written))
    beside = Path(path).with_name(Path(path).name + ".part")
    beside.write_bytes(written)
    beside.replace(path)


def _described_params(machine):
    """The parameters of a machine that are not None, its kernel in words and numbers."""
    params = {name: value for name, value in machine.get_params(deep=False).items() if value is not None}
    return params | {"kernel": _described(machine.kernel)}


def _described(value):
    """A parameter of a kernel; a kernel as its class and parameters."""
    if isinstance(value, tuple | list):
        return [_described(entry) for entry in value]
    if isinstance(value, str | int | float | np.ndarray | np.generic | None):
        return value.item() if isinstance(value, np.generic) else value
    kind = type(value).__name__
    if KERNELS.get(kind) is not type(value):
        hint = f"Use a kernel by name, or of {', '.join(KERNELS)}, with numbers as parameters."
        raise TableError(f"a model file holds words and numbers, and not {value!r}.", hint)
    return {"class": kind, **{name: _described(entry) for name, entry in value.get_params(deep=False).items()}}


def _kernel_of(described):
    """The kernel, or the parameter of one, that :func:`_described` has described."""
    if isinstance(described, str | int | float | None):
        return described
    if isinstance(described, np.ndarray) and described.dtype.kind in "fiu":
        return described
    if isinstance(described, list):
        return tuple(map(_kernel_of, described))
    params = dict(described) if isinstance(described, dict) else {}
    kind = KERNELS.get(str(params.pop("class", "")))
    if kind is None or not params.keys() <= kind.parameters().keys():
        raise archive.ArchiveError("has parameters that are not words and numbers")
    return kind(**{name: _kernel_of(value) for name, value in params.items()})


def _packed(parts, compression):
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", compression) as file:
        for name, content in parts.items():
            file.writestr(name, content)
    return written.getvalue()


def load_model(path: str | Path) -> TableModel:
    """Read what :func:`save_model` has written; refuse everything else."""
    path = Path(path)
    packed, manifest, parts = _unpacked(path)
    with _refusing(path, "what it holds does not fit together ({error})"):
        schema = Schema.from_plain(archive.parsed(parts["schema.json"], packed))
    with _refusing(path, "its model can not be read ({error})"):
        state = _state(parts["model.skops"], packed)
    with _refusing(path, "what it holds does not fit together ({error})"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the fit: they were told when it was made
        machine = MACHINES[state["machine"]](**state["params"])
        steps = _steps(schema, state)
        _check_rows(schema, machine, state, packed)
        y = np.array(schema.classes, dtype=object)[state["y"].astype(int)] if schema.classes else state["y"]
        machine.fit(state["X"], y, sample_weight=state["weights"], confounds=state["confounds"])
        if not np.allclose(_decisions(machine, state["X"]), state["decisions"], rtol=1e-5, atol=1e-7):
            raise _refused(path, "the model decides otherwise than when it was written")
        kept = (state[name] for name in ("y", "weights", "groups", "apart"))
        model = TableModel(schema, Pipeline([*steps, ("model", machine)]), manifest.get("about", {}), *kept)
        _check_apart(model, state["X"][:1])
    return model


def _check_rows(schema, machine, state, packed):
    """Refuse rows that do not fit together, and fits that are too large."""
    X, y = state["X"], state["y"]
    if sp.issparse(X):
        X.check_format(full_check=True)  # products read and write where its indices point to
    if (
        X.dtype.kind != "f"
        or X.ndim != 2
        or y.shape != X.shape[:1]
        or (schema.n_sparse and X.shape[1] != schema.n_sparse)
    ):
        raise ValueError(f"{len(y)} targets for rows of shape {X.shape}")
    if schema.classes and not np.array_equal(np.unique(y), np.arange(len(schema.classes))):
        raise ValueError("targets are none of the classes, or classes have no targets")
    _check_fit(machine, X, packed)


def _check_fit(machine, X, packed):
    """Refuse fits that no model in a file of this size needs: a small file must not ask for hours."""
    n, width = X.shape
    counts = list(_numbers_of_landmarks(machine.kernel))
    size = sum(counts) if counts else min(n, width) if machine.kernel == "linear" else n
    if counts and not machine.kernel.approximates:  # beside exact kernels
        size += n
    dense = size * width if counts else width  # landmarks or frequencies; means and deviations
    small = n <= _most_rows(packed) and width <= max(MOST_WIDE, packed)
    if sp.issparse(X) and (counts or machine.standardize):
        small = small and dense <= max(MOST_DENSE, NUMBERS_A_BYTE * packed)
    if not small or min(n, size) > MOST_REPEATED or n * size > max(MOST_REPEATED**2, NUMBERS_A_BYTE * packed):
        raise ValueError(
            f"a fit to {n:,} rows of {width:,} numbers by {size:,} functions is larger than any of a file of"
            f" {packed:,} bytes"
        )


def _numbers_of_landmarks(value):
    """Numbers of landmarks or waves of all approximations in a kernel."""
    if isinstance(value, tuple | list):
        for entry in value:
            yield from _numbers_of_landmarks(entry)
    elif hasattr(value, "get_params"):
        params = value.get_params(deep=False)
        if "n_landmarks" in params:
            landmarks = params.get("landmarks", "")
            yield params["n_landmarks"] if isinstance(landmarks, str) else len(landmarks)
        for name in params.keys() - {"landmarks"}:
            yield from _numbers_of_landmarks(params[name])


def _most_rows(packed):
    """Rows that a file of so many bytes can hold; the writer leaves them unpacked if there are more."""
    return max(FREE_ROWS, packed // BYTES_A_ROW)


def _check_apart(model, X):
    """Decisions without groups must be those of the rows and classes of the model."""
    if model.apart is None:
        return
    if model.apart.shape != (len(model.y), *_decisions(model.pipeline[-1], X).shape[1:]):
        raise ValueError(f"decisions without groups have shape {model.apart.shape}")
    if not np.isfinite(model.apart).all():
        raise ValueError("decisions without groups are no numbers")
    if model.groups is None or model.groups.shape != model.y.shape or model.groups.min() < 0:
        raise ValueError("decisions without groups, and no groups")


def _steps(schema, state):
    """The steps before the machine; they must take the columns of the schema, and make rows of the machine's width."""
    if schema.n_sparse:
        return []
    table, names = state["table"], [name for field in schema.features for name in field.columns]
    if list(table.feature_names_in_) != names:
        raise ValueError("the schema has other columns than the model")
    table.set_params(n_jobs=None, verbose=False, transformer_weights=None)
    words = [field.name for field in schema.features if field.kind == "category"]
    probe = pd.DataFrame(np.full((1, len(names)), np.nan), columns=names).astype(dict.fromkeys(words, object))
    row = table.transform(probe)
    if row.shape != (1, state["X"].shape[1]) or not np.isfinite(row).all():
        raise ValueError("the steps make rows of another width, or no numbers")
    return [("table", table)]


def _decisions(machine, X):
    first = X[:N_CHECKED]
    return machine.decision_function(first) if hasattr(machine, "classes_") else machine.predict(first)


def _refused(path, why, more=""):
    hint = f"Take the file as `foldless report` or `tune` has written it.{more}"
    return TableError(f"{path.name} is refused: {why}.", hint)


@contextmanager
def _refusing(path, why, more=""):
    """Errors of a file that holds something else than it should as one line with a cause and a hint."""
    try:
        yield
    except TableError:
        raise
    except archive.ArchiveError as error:
        raise _refused(path, f"it {error}", more) from None
    except MemoryError:
        raise TableError(f"{path.name}: its model does not fit into memory.", "Use a machine with more.") from None
    except Exception as error:  # whatever the content leads other libraries to
        said = " ".join(str(error).split())[:120]
        raise _refused(path, why.format(error=said or type(error).__name__), more) from None


def _unpacked(path):
    """(size of the file, manifest, {name: bytes}) of an archive whose checksums are right."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        raise TableError(f"{path} does not exist.", "Name a model file, such as report/model.foldless.") from None
    except OSError as error:
        raise TableError(f"{path} can not be read: {error.strerror or error}.", "Check the file.") from None
    with file, _refusing(path, "it is damaged, or no model file", ORDER):
        packed = os.fstat(file.fileno()).st_size
        parts = archive.unpacked(file, packed, MEMBERS)
        manifest = archive.parsed(parts.pop("manifest.json"), packed)
        if manifest.get("format") != FORMAT:
            raise _refused(path, f"its format is {str(manifest.get('format'))[:40]!r}, not {FORMAT!r}")
        sums = {name: hashlib.sha256(each).hexdigest() for name, each in parts.items()}
        if sums != manifest.get("sha256"):
            raise _refused(path, "it was changed after it was written")
        if not isinstance(manifest.get("about", {}), dict):
            raise TypeError("about")
    return packed, manifest, parts


def _state(content, packed):
    """What skops makes of a file whose types are all allowed."""
    members = archive.unpacked(content, packed)
    described = archive.parsed(members["schema.json"], packed)
    archive.check_description(described, members.keys())
    archive.check_arrays(members, packed)
    strange = sorted(f"{module}.{name}" for module, name in _types(described) if name not in ALLOWED.get(module, ()))
    strange += sorted(set(_values(described, "__loader__")) - LOADERS)
    if strange:
        raise archive.ArchiveError(f"holds objects of type {strange[0][:60]}, which no model has")
    state = sio.loads(content, trusted=[f"{module}.{name}" for module in ALLOWED for name in ALLOWED[module]])
    params = state["params"]
    if not all(isinstance(value, str | int | float | None) for name, value in params.items() if name != "kernel"):
        raise archive.ArchiveError("has parameters that are not words and numbers")
    return state | {"params": params | {"kernel": _kernel_of(params.get("kernel"))}}


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
