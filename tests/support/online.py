"""Estimators that learn and forget: data, cases, and everything that can be asked of a model."""

import copy
import gc
import pickle
import struct
import types
from dataclasses import dataclass

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from foldless import LSSVC, LSSVR, KernelFisherDiscriminant
from foldless._engine import linalg
from foldless.kernels import Boolean
from support.refits import with_fixed_functions
from support.tolerances import assert_close

RNG = np.random.default_rng(11)
N, D = 44, 4
LABELS = {c: np.array(["ash", "beech", "cedar", "douglas"])[RNG.permutation(np.arange(N) % c)] for c in (2, 3, 4)}
LABELS[2][:3] = "ash"  # classes of unlike size: the sign of their one axis is not left to rounding
X = RNG.normal(size=(N, D)) + 0.8 * (LABELS[4] == "cedar")[:, None] + np.array([0.5, 0, 0, -0.5])
X_NEW = RNG.normal(size=(7, D))
VALUES = X @ RNG.normal(size=(D, 2)) + RNG.normal(size=(N, 2))
W = RNG.uniform(0.3, 3.0, N)
W_ZEROS = np.where(np.isin(np.arange(N), [1, 6, 21, 24, 30]), 0.0, W)
C, C_NEW = RNG.normal((2.0, 0.0), size=(N, 2)), RNG.normal(size=(7, 2))
NAMES = list("pqrs")
KINDS = {"LSSVC": LSSVC, "KFDA": KernelFisherDiscriminant, "LSSVR": LSSVR}
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
every_classifier = pytest.mark.parametrize("kind", [LSSVC, KernelFisherDiscriminant], ids=["LSSVC", "KFDA"])
every_penalty = pytest.mark.parametrize("penalty", ["rkhs", "coef"])


def gram(A, B):
    return np.exp(-0.2 * np.square(A[:, None] - B[None]).sum(-1))


def own_kernel(A, B):
    return np.square(1 + 0.1 * A @ B.T) + 0.1 * gram(A, B)


def targets(kind, rows=slice(None), n_classes=3):
    """Labels or values, as the estimator wants."""
    return VALUES[rows, 0] if kind in (LSSVR, "LSSVR") else LABELS[n_classes][rows]


@dataclass(frozen=True)
class Case:
    """An estimator and what it is fed."""

    kind: str = "LSSVC"
    y: object = 3  # number of classes, or "one" or "two" outputs
    options: tuple = ()
    weights: str = "none"  # "none", "random", "zeros"
    confounds: bool = False
    form: str = "dense"  # "dense", "sparse", "pandas", "polars"
    features: int = D
    dtype: str = "float64"

    def __str__(self):
        options = [f"{k}={getattr(v, '__name__', v)}" for k, v in self.options]
        rest = [str(v) for k, v in vars(self).items() if k not in ("kind", "y", "options") and v != getattr(Case, k)]
        return "-".join([self.kind, str(self.y), *options, *rest])

    @property
    def kernel(self):
        return dict(self.options).get("kernel", "rbf")

    def estimator(self):
        parameters = {"gamma": 0.2, "alpha": 0.3, "degree": 2} | dict(self.options)
        if self.kernel == "boolean":
            parameters["kernel"] = Boolean(0.5)
        return KINDS[self.kind](**parameters)

    def targets(self, rows):
        return VALUES[rows] if self.y == "two" else targets(self.kind, rows, self.y)

    def _data(self, values):
        values = values[:, : self.features].astype(self.dtype)
        if self.kernel == "boolean":
            values = (values > 0).astype(self.dtype)
        if self.form == "sparse":
            return sp.csr_array(np.where(np.abs(values) > 0.3, values, 0.0).astype(self.dtype))
        if self.form == "pandas":
            return pd.DataFrame(values, columns=NAMES)
        return pl.DataFrame(values, schema=NAMES) if self.form == "polars" else values

    def inputs(self, rows, known=()):
        """X of these rows; for a precomputed kernel theirs with the rows known and with each other."""
        if self.kernel != "precomputed":
            return self._data(X[rows])
        K = gram(X[rows], X[[*known, *rows]]).astype(self.dtype)
        return sp.csr_array(K) if self.form == "sparse" else K

    def new_inputs(self, rows):
        return gram(X_NEW, X[rows]).astype(self.dtype) if self.kernel == "precomputed" else self._data(X_NEW)

    def metadata(self, rows):
        weights = {"none": {}, "random": {"sample_weight": W[rows]}, "zeros": {"sample_weight": W_ZEROS[rows]}}
        return weights[self.weights] | ({"confounds": C[rows]} if self.confounds else {})

    def refit(self, rows, first=None):
        """A new fit; with penalty="coef" of the functions of the rows ``first``, unless told of all these rows."""
        estimator = self.estimator()
        if self.kernel != "precomputed":
            first = rows if first is None else first
            weights = self.metadata(first).get("sample_weight")
            estimator = with_fixed_functions(estimator, self.inputs(first), weights)
        return estimator.fit(self.inputs(rows), self.targets(rows), **self.metadata(rows))


ATTRIBUTES = ("classes_", "dual_coef_", "intercept_", "coef_", "confound_coef_", "centroids_", "n_features_in_")
ATTRIBUTES += ("explained_variance_ratio_", "feature_names_in_", "ids_")
METHODS = ("predict", "decision_function", "predict_proba", "transform")
LOO = ("loo_predict", "loo_decision_function", "predict_interval", "loo_predict_proba", "loo_score_")


def all_outputs(model, new=X_NEW, confounds=None, loo=LOO):
    """All that can be asked of a model."""
    found = {name: getattr(model, name) for name in ATTRIBUTES if hasattr(model, name)}
    found["X_fit_"] = model.X_fit_.toarray() if sp.issparse(model.X_fit_) else model.X_fit_
    for name in (*METHODS, *loo):
        if not hasattr(model, name):
            continue
        if name == "loo_score_":
            found[name] = model.loo_score_
        elif name.startswith("loo"):
            found[name] = getattr(model, name)()
        else:
            found[name] = getattr(model, name)(new)
            if confounds is not None:
                found[f"{name} with confounds"] = getattr(model, name)(new, confounds=confounds)
    return found


def assert_same(one, two, rtol=None):
    """Two results of ``all_outputs``; the digits that numbers near 0 have are those of their neighbours."""
    assert one.keys() == two.keys()
    for name, expected in two.items():
        actual, expected = np.asarray(one[name]), np.asarray(expected)
        if expected.dtype.kind != "f":
            np.testing.assert_array_equal(actual, expected, err_msg=name)
            continue
        assert actual.dtype == expected.dtype, name
        extreme = np.abs(expected) >= np.finfo(expected.dtype).max  # classes without rows, intervals without ends
        np.testing.assert_array_equal(actual[extreme], expected[extreme], err_msg=name)
        scale = max(1.0, np.abs(expected[~extreme]).max(initial=0.0))
        assert_close(actual[~extreme], expected[~extreme], scale=scale, rtol=rtol)


# -- scripts of updates ------------------------------------------------------------------------------------------------

START = list(range(22))
SCRIPT = (
    ("learn", [22]),
    ("learn", [23, 24, 25]),
    ("forget", [4]),
    ("forget", [0, 1, 12]),
    ("learn", [26, 30, 29, 28, 27, 31]),
    ("forget", [27]),
    ("learn", [32]),
    ("forget", [0, 3, 5, 6, 9, 10, 11, 13, 16, 19, 20, 22]),  # nearly half of them
    ("learn", list(range(33, 43))),
    ("forget", [2, 25]),
)


def run_script(case, start="fit", script=SCRIPT):
    """The model and the rows it has after every step of the script."""
    rows = START
    model = case.estimator()
    getattr(model, start)(case.inputs(rows), case.targets(rows), **case.metadata(rows))
    for verb, which in script:
        if verb == "learn":
            model.partial_fit(case.inputs(which, rows), case.targets(which), **case.metadata(which))
            rows = [*rows, *which]
        else:
            model.forget(which)
            rows = [row for at, row in enumerate(rows) if at not in which]
        yield model, rows


def options(**given):
    return tuple(given.items())


PENALTIES = (options(), options(penalty="coef"))


# -- models ------------------------------------------------------------------------------------------------------------


def updated_model(kind=LSSVC, n=20, n_classes=3, **options):
    """A model that has been updated: rows 0 to n - 1, by fit, partial_fit and forget."""
    ids = options.pop("ids", None)
    named = (lambda rows: {"ids": [ids[row] for row in rows]}) if ids else (lambda rows: {})
    model = kind(**{"gamma": 0.2, "alpha": 0.3} | options)
    some = [*range(n - 5), N - 1]
    model.fit(X[some], targets(kind, some, n_classes), **named(some))
    rest = list(range(n - 5, n))
    model.partial_fit(X[rest], targets(kind, rest, n_classes), **named(rest))
    return model.forget([n - 5])


def fitted_on(kind, rows, n_classes=3, first=None, **options):
    """A fit of these rows; with penalty="coef" of the functions of the rows ``first``, unless told of its own."""
    model = kind(**{"gamma": 0.2, "alpha": 0.3} | options)
    model = model if first is None else with_fixed_functions(model, X[first])
    return model.fit(X[rows], targets(kind, rows, n_classes))


IDS = {
    "strings": [f"p{i:02}" for i in range(N)],
    "integers": [7000 - 3 * i for i in range(N)],
    "pairs": [("p", i) for i in range(N)],
    "mixed": [i if i % 2 else f"p{i}" for i in range(N)],
}


# -- rows --------------------------------------------------------------------------------------------------------------


def rows_of(label, n_classes=3, limit=26):
    return np.flatnonzero(LABELS[n_classes][:limit] == label)


def interrupted_add(T, V, sign):
    """An update of P that is interrupted when half of it is done."""
    linalg.add_signed_(T[: len(T) // 2, : len(T) // 2], V[: len(T) // 2], sign)
    T[: len(T) // 2] += 1.0
    raise KeyboardInterrupt


# -- traces of rows ----------------------------------------------------------------------------------------------------


def reachable(root):
    """Every object that can be reached from one, arrays with the whole of their memory."""
    seen, stack = {}, [root]
    code = type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType
    while stack:
        item = stack.pop()
        if id(item) in seen or isinstance(item, code):
            continue
        seen[id(item)] = item
        if isinstance(item, np.ndarray):
            stack += [item.base, *(item.ravel().tolist() if item.dtype.kind in "OUS" else [])]
        else:
            stack += gc.get_referents(item)
    return seen.values()


def traces(root, wanted):
    """Which of the wanted values, to nine digits, and words can be reached."""
    items = reachable(root)
    arrays = [item.ravel() for item in items if isinstance(item, np.ndarray) and item.dtype.kind in "fiu"]
    pool = np.sort(np.concatenate([*arrays, [item for item in items if isinstance(item, int | float)]]).astype(float))
    words = {item for item in items if isinstance(item, str)}
    found = set()
    for name, value in wanted.items():
        if isinstance(value, str):
            found |= {name} if value in words else set()
            continue
        values = np.ravel(value)
        low = np.searchsorted(pool, values - 1e-9 * np.abs(values))
        high = np.searchsorted(pool, values + 1e-9 * np.abs(values))
        found |= {name} if (high > low).any() else set()
    return found


def traces_in_pickle(root, wanted):
    """The same for the bytes of its pickle, to the last digit."""
    blob = pickle.dumps(root)
    strings = {name: [value.encode()] for name, value in wanted.items() if isinstance(value, str)}
    numbers = {name: [struct.pack("<d", v) for v in np.ravel(v)] for name, v in wanted.items() if name not in strings}
    return {name for name, each in (strings | numbers).items() if any(value in blob for value in each)}


COPIES = {
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
}


def loo_squares(data, Y, w, **options):
    """Weighted sum of squared leave-one-out residuals, from a fit."""
    model = LSSVR(**options).fit(data, Y, sample_weight=w)
    return np.sum(w[:, None] * np.square(Y - model.loo_predict()), axis=1)


def effects_of_refits(data, Y, w, first=None, **options):
    """Change of the criterion over the other rows, row by row, by fitting without it.

    With penalty="coef" of the functions of the rows ``first``, unless told of those of positive weight.
    """
    parameters = with_fixed_functions(LSSVR(**options), data[w > 0] if first is None else first).get_params(deep=False)
    options = {name: parameters[name] for name in {*options, "kernel"}}
    whole, effects = loo_squares(data, Y, w, **options), np.zeros(len(w))
    for i in np.flatnonzero(w):
        rest = np.delete(np.arange(len(w)), i)
        effects[i] = abs(loo_squares(data[rest], Y[rest], w[rest], **options).sum() - whole[rest].sum())
    return effects


def regression_targets(kind, y):
    """Targets of the regression behind a classifier."""
    if kind is LSSVR:
        return y.reshape(len(y), -1)
    Y = (y[:, None] == np.unique(y)).astype(float)
    if kind is KernelFisherDiscriminant:
        return Y
    return 2 * (Y[:, 1:] if Y.shape[1] == 2 else Y) - 1
