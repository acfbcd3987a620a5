"""partial_fit and forget of the estimators: after any sequence the model is the one fitted on the rows it then has.

``fit`` is the yardstick here (other files compare it with plain refits). A call that fails leaves the model as it was,
wherever it fails; a row that is forgotten leaves nothing behind.
"""

import copy
import gc
import pickle
import re
import struct
import sys
import types
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from cases import assert_close
from sklearn import model_selection as skl
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge, SGDClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator
from sklearn.utils.metadata_routing import get_routing_for_object

import foldless.linalg.memory
import foldless.model_selection as fl
from foldless import LSSVC, LSSVR, FoldlessSearchCV, KernelFisherDiscriminant
from foldless.estimators import SlidingWindow
from foldless.estimators.adaptive import AdaptiveKDA
from foldless.precision import growing

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
EACH = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
EACH_CLASSIFIER = pytest.mark.parametrize("kind", [LSSVC, KernelFisherDiscriminant], ids=["LSSVC", "KFDA"])
WAYS = pytest.mark.parametrize("penalty", ["rkhs", "coef"])


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
        return KINDS[self.kind](**({"gamma": 0.2, "alpha": 0.3, "eta": 0.5, "degree": 2} | dict(self.options)))

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

    def refit(self, rows):
        return self.estimator().fit(self.inputs(rows), self.targets(rows), **self.metadata(rows))


ATTRIBUTES = ("classes_", "dual_coef_", "intercept_", "coef_", "confound_coef_", "centroids_", "n_features_in_")
ATTRIBUTES += ("explained_variance_ratio_", "feature_names_in_", "ids_")
METHODS = ("predict", "decision_function", "predict_proba", "transform")
LOO = ("loo_predict", "loo_decision_function", "predict_interval", "loo_predict_proba", "loo_score_")


def everything(model, new=X_NEW, confounds=None, loo=LOO):
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
    """Two results of ``everything``; the digits that numbers near 0 have are those of their neighbours."""
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


# -- equal to fit ------------------------------------------------------------------------------------------------------

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


def follow(case, start="fit", script=SCRIPT):
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


KERNELS = ("rbf", "linear", "poly", "laplacian", "boolean", "cosine", "precomputed", own_kernel)
PENALTIES = (options(), options(penalty="coef"), options(penalty="coef", basis="all"))
CASES = [
    *[Case(kind, y) for kind in ("LSSVC", "KFDA") for y in (2, 3, 4)],
    *[Case("LSSVR", y, p) for y in ("one", "two") for p in PENALTIES],
    *[Case("KFDA", 2, options(threshold=t) + p) for t in ("fisher", "centroid", "loo") for p in PENALTIES[:2]],
    *[Case(kind, 2, options(calibration=c)) for kind in ("LSSVC", "KFDA") for c in ("sigmoid", "isotonic")],
    *[Case(kind, 3, options(calibration=c)) for kind, c in (("LSSVC", "isotonic"), ("KFDA", "sigmoid"))],
    Case("KFDA", 4, options(calibration="isotonic", penalty="coef"), weights="zeros"),
    Case("KFDA", 2, options(calibration="sigmoid", threshold="loo"), confounds=True),
    *[Case("LSSVR", "one", options(kernel=k)) for k in KERNELS],
    *[Case("KFDA", 3, options(kernel=k, penalty="coef")) for k in KERNELS],
    *[Case("LSSVC", 3, options(kernel=k), "random", form="sparse") for k in ("rbf", "linear", "poly", "cosine")],
    Case("LSSVR", "one", options(kernel="precomputed"), "zeros", form="sparse"),
    *[
        Case("LSSVR", "one", options(kernel="linear", fit_intercept=i), features=f)
        for i in (True, False)
        for f in (1, 2)
    ],
    *[Case(kind, 3, p, weights=w) for kind in ("LSSVC", "KFDA") for p in PENALTIES for w in ("random", "zeros")],
    *[Case("LSSVR", "two", p, weights="zeros", confounds=c) for p in PENALTIES for c in (False, True)],
    *[
        Case(kind, 3, options(class_weight={"ash": 3.0, "cedar": 0.4}), w)
        for kind in ("LSSVC", "KFDA")
        for w in ("none", "zeros")
    ],
    *[Case(kind, y, p, confounds=True) for kind in ("LSSVC", "KFDA") for y in (2, 3) for p in PENALTIES],
    *[Case(kind, 3, p + options(fit_intercept=False)) for kind in ("LSSVC", "KFDA") for p in PENALTIES],
    *[
        Case(kind, y, options(kernel="linear", fit_intercept=i))
        for kind, y in (("LSSVC", 2), ("KFDA", 2), ("KFDA", 3), ("LSSVR", "two"))
        for i in (True, False)
    ],
    Case("KFDA", 2, options(kernel="linear", threshold="centroid", priors=(0.2, 0.8))),
    Case("KFDA", 4, options(n_components=2, priors=(0.1, 0.2, 0.3, 0.4))),
    *[
        Case(kind, 3, options(kernel=k) + p, dtype="float32")
        for kind in ("LSSVC", "KFDA")
        for k in ("rbf", "linear")
        for p in PENALTIES[:2]
    ],
    Case("LSSVR", "two", weights="zeros", confounds=True, dtype="float32"),
    *[Case("LSSVC", 3, options(gamma=(0.1, 0.3, 0.0, 0.2)), form=f) for f in ("pandas", "polars", "dense")],
]


STARTS = [*[("fit", case) for case in CASES], *[("partial_fit", case) for case in CASES[::4]]]


@pytest.mark.parametrize(("start", "case"), STARTS, ids=lambda value: str(value))
def test_updated_models_equal_fits(start, case):
    holders = set()
    for step, (model, rows) in enumerate(follow(case, start)):
        holders.add(model.holder_.split(":")[0])
        last = step == len(SCRIPT) - 1
        if not last and step % 3 != (start == "fit"):
            continue
        new, confounds = case.new_inputs(rows), C_NEW if case.confounds else None
        loo = LOO if last and start == "fit" else LOO[:3]
        expected = everything(case.refit(rows), new, confounds, loo)
        assert_same(everything(model, new, confounds, loo), expected, {"float32": 1e-2}.get(case.dtype))
    assert ("growing" in holders) == (case.features > 1)  # so few linear features are solved anew each time


@pytest.mark.parametrize(
    "case",
    [
        Case("LSSVC", 2, options(alpha=1e-3)),
        Case("KFDA", 3, options(penalty="coef"), weights="zeros"),
        Case("LSSVR", "two", options(kernel="linear", alpha=1e-2), confounds=True),
        Case("LSSVR", "one", options(kernel="precomputed")),
    ],
    ids=str,
)
def test_long_random_sequences(case):
    rng = np.random.default_rng(0)
    rows = list(range(15))
    model = case.refit(rows)
    for step in range(120):
        if rng.random() < (0.7 if len(rows) < 25 else 0.3):
            which = rng.choice(np.setdiff1d(np.arange(N), rows), rng.integers(1, 4), replace=False).tolist()
            model.partial_fit(case.inputs(which, rows), case.targets(which), **case.metadata(which))
            rows += which
        else:
            which = rng.choice(len(rows), rng.integers(1, 4), replace=False)
            model.forget(which)
            rows = np.delete(rows, which).tolist()
        if step % 20 == 19:
            new = case.new_inputs(rows)
            assert_same(everything(model, new, loo=LOO[:3]), everything(case.refit(rows), new, loo=LOO[:3]))
            certificate = model.unlearning_certificate()
            assert certificate.holds
            assert certificate.n_samples == len(rows)
            assert model.drift_ < 1e-6


def test_scale_is_resolved_by_the_first_fit_and_stays():
    model = LSSVC().fit(X[:30], LABELS[3][:30])
    gamma = model.kernel_.gamma
    model.partial_fit(5 * X[30:], LABELS[3][30:]).forget(np.arange(20))
    assert model.kernel_.gamma == gamma == pytest.approx(1 / (D * X[:30].var()))
    rows = np.vstack([X[20:30], 5 * X[30:]])
    assert_same(everything(model), everything(LSSVC(gamma=gamma).fit(rows, LABELS[3][20:])))


def test_scale_from_few_rows_warns_and_from_many_does_not():
    with pytest.warns(UserWarning, match=r"gamma='scale' is resolved from the 5 rows.*Give a number") as caught:
        LSSVC().partial_fit(X[:5], list("ababa"))
    assert caught[0].filename == __file__
    LSSVC().partial_fit(X[:20], LABELS[3][:20])  # warnings are errors here
    LSSVC("linear").partial_fit(X[:5], list("ababa"))
    LSSVC().fit(X[:5], list("ababa"))


# -- which rows: positions, masks, ids ---------------------------------------------------------------------------------


def fitted(kind=LSSVC, n=20, n_classes=3, **options):
    """A model that has been updated: rows 0 to n - 1, by fit, partial_fit and forget."""
    ids = options.pop("ids", None)
    named = (lambda rows: {"ids": [ids[row] for row in rows]}) if ids else (lambda rows: {})
    model = kind(**{"gamma": 0.2, "alpha": 0.3} | options)
    some = [*range(n - 5), N - 1]
    model.fit(X[some], targets(kind, some, n_classes), **named(some))
    rest = list(range(n - 5, n))
    model.partial_fit(X[rest], targets(kind, rest, n_classes), **named(rest))
    return model.forget([n - 5])


def refitted(kind, rows, n_classes=3, **options):
    return kind(**{"gamma": 0.2, "alpha": 0.3} | options).fit(X[rows], targets(kind, rows, n_classes))


@EACH
@pytest.mark.parametrize(
    "which",
    [
        [3],
        3,
        np.int32(3),
        (19, 0, 7),
        np.array([7, 0, 19], np.uint8),
        range(4, 9),
        pd.Series([2, 11]),
        (np.arange(20) % 4 == 1).tolist(),
        np.arange(20) > 15,
        pd.Series(np.arange(20) == 0),
    ],
    ids=["list", "one", "scalar", "tuple", "array", "range", "series", "mask", "mask array", "mask series"],
)
def test_rows_are_named_by_positions_or_masks(kind, which):
    gone = np.flatnonzero(which) if np.asarray(which).dtype == bool else np.atleast_1d(which)
    model = fitted(kind).forget(which)
    assert_same(everything(model) | {"ids_": None}, everything(refitted(kind, np.delete(np.arange(20), gone))))


@EACH
def test_later_rows_move_up(kind):
    model = fitted(kind)
    for _ in range(3):
        model.forget([2])
    np.testing.assert_array_equal(model.X_fit_, X[[0, 1, *range(5, 20)]])
    model.partial_fit(X[[30]], targets(kind, [30])).forget(17)
    np.testing.assert_array_equal(model.X_fit_, X[[0, 1, *range(5, 20)]])
    assert_same(everything(model), everything(refitted(kind, [0, 1, *range(5, 20)])))


@EACH
@pytest.mark.parametrize(
    "none", [[], (), np.zeros(20, bool), np.array([], int)], ids=["list", "tuple", "mask", "array"]
)
def test_forgetting_nothing_changes_nothing(kind, none):
    model = fitted(kind)
    before = pickle.dumps(model)
    assert model.forget(none) is model
    assert pickle.dumps(model) == before


IDS = {
    "strings": [f"p{i:02}" for i in range(N)],
    "integers": [7000 - 3 * i for i in range(N)],
    "pairs": [("p", i) for i in range(N)],
    "mixed": [i if i % 2 else f"p{i}" for i in range(N)],
}


@EACH
@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
def test_ids_stay_with_their_rows(kind, ids):
    model = fitted(kind, ids=ids)
    assert model.ids_ == ids[:20]
    model.forget(ids=[ids[5], ids[2]]).forget([0])
    rows = [1, 3, 4, *range(6, 20)]
    assert model.ids_ == [ids[row] for row in rows]
    model.forget(ids=[ids[19]]).partial_fit(X[[2]], targets(kind, [2]), ids=[ids[2]])  # an id may come back
    rows = [*rows[:-1], 2]
    assert model.ids_ == [ids[row] for row in rows]
    assert_same(everything(model) | {"ids_": None}, everything(refitted(kind, rows)) | {"ids_": None})
    assert clone(model).fit(X, targets(kind)).ids_ is None


@pytest.mark.parametrize(
    "form", [np.array, pd.Series, pl.Series, tuple, iter], ids=["array", "pandas", "polars", "tuple", "iterator"]
)
def test_ids_come_in_any_container(form):
    model = LSSVR(gamma=0.2).fit(X[:20], VALUES[:20], ids=form(IDS["strings"][:20]))
    assert model.ids_ == IDS["strings"][:20]
    assert model.forget(ids=form(IDS["strings"][3:5])).ids_ == IDS["strings"][:3] + IDS["strings"][5:20]


@pytest.mark.parametrize("one", ["p03", np.str_("p03")])
def test_a_string_is_one_id(one):
    assert "p03" not in fitted(ids=IDS["strings"]).forget(ids=one).ids_


# -- classes -----------------------------------------------------------------------------------------------------------


def rows_of(label, n_classes=3, limit=26):
    return np.flatnonzero(LABELS[n_classes][:limit] == label)


@EACH_CLASSIFIER
@WAYS
@pytest.mark.parametrize("class_weight", [None, {"cedar": 3.0}], ids=["plain", "weighted"])
def test_classes_come_and_go(kind, penalty, class_weight):
    """With weights of the classes, which KFDA takes relative to their mean, a new class changes those of all rows."""
    y = LABELS[3]
    order = np.concatenate([rows_of("ash"), rows_of("cedar"), rows_of("beech")])
    n_two = len(order) - len(rows_of("beech"))

    def make(rows):
        return refitted(kind, rows, penalty=penalty, class_weight=class_weight)

    model = make(order[:n_two])
    assert model.decision_function(X_NEW).shape == (7,)
    model.partial_fit(X[order[n_two:]], y[order[n_two:]])
    np.testing.assert_array_equal(model.classes_, ["ash", "beech", "cedar"])
    assert_same(everything(model), everything(make(order)))
    model.partial_fit(X[[40, 41]], ["aspen", "yew"])
    np.testing.assert_array_equal(model.classes_, ["ash", "aspen", "beech", "cedar", "yew"])
    model.forget([len(order), len(order) + 1])  # a few rows, so that P is updated where weights stay
    assert_same(everything(model), everything(make(order)))
    model.forget(np.flatnonzero(y[order] == "ash"))  # 3 -> 2, the first one goes
    kept = order[y[order] != "ash"]
    np.testing.assert_array_equal(model.classes_, ["beech", "cedar"])
    assert_same(everything(model), everything(make(kept)))
    model.partial_fit(X[[42]], ["ash"])
    assert model.decision_function(X_NEW).shape == (7, 3)


@EACH_CLASSIFIER
@pytest.mark.parametrize("class_weight", [None, {"ash": 3.0}], ids=["plain", "weighted"])
def test_a_single_row_brings_and_takes_a_class(kind, class_weight):
    model = fitted(kind, n_classes=2, class_weight=class_weight)
    before = everything(model)
    model.partial_fit(X[[30]], ["yew"])
    expected = kind(gamma=0.2, alpha=0.3, class_weight=class_weight)
    expected.fit(X[[*range(20), 30]], [*LABELS[2][:20], "yew"])
    assert_same(everything(model), everything(expected))
    assert_same(everything(model.forget(20)), before)


@EACH_CLASSIFIER
def test_named_classes_stay_without_rows(kind):
    y = LABELS[3]
    named = ["ash", "beech", "cedar", "yew"]
    model = kind(gamma=0.2, alpha=0.3).partial_fit(X[:20], y[:20], classes=named)
    np.testing.assert_array_equal(model.classes_, named)
    beech = rows_of("beech", limit=20)
    model.forget(beech).partial_fit(X[20:22], np.where(y[20:22] == "beech", "ash", y[20:22]))
    np.testing.assert_array_equal(model.classes_, named)
    assert model.decision_function(X).shape == (N, 4)
    assert set(model.predict(X)) == {"ash", "cedar"}
    assert set(model.loo_predict()) <= {"ash", "cedar"}
    rows = np.setdiff1d(np.arange(22), beech)
    one_by_one = kind(gamma=0.2, alpha=0.3).partial_fit(
        X[rows], model.classes_[model._fitted_task.codes], classes=named
    )
    assert_same(everything(model), everything(one_by_one))
    model.partial_fit(X[30:32], ["fir", "beech"]).partial_fit(X[[32]], ["beech"], classes=["gum", "beech"])
    np.testing.assert_array_equal(model.classes_, ["ash", "beech", "cedar", "fir", "gum", "yew"])
    model.forget([20 - len(beech) + 2])  # the one fir, which nobody named
    np.testing.assert_array_equal(model.classes_, ["ash", "beech", "cedar", "gum", "yew"])
    np.testing.assert_array_equal(model.fit(X, y).classes_, ["ash", "beech", "cedar"])  # fit starts anew
    model.forget(np.flatnonzero(y == "ash"))
    np.testing.assert_array_equal(model.classes_, ["beech", "cedar"])


@pytest.mark.parametrize("threshold", ["fisher", "pm1", "centroid", "loo"])
def test_two_named_classes_of_which_one_has_rows(threshold):
    model = KernelFisherDiscriminant(gamma=0.2, threshold=threshold)
    model.partial_fit(X[:4], ["a"] * 4, classes=["a", "b"])
    assert set(model.predict(X)) == {"a"}
    model.partial_fit(X[4:12], list("babbabab"))
    expected = KernelFisherDiscriminant(gamma=0.2, threshold=threshold).fit(X[:12], list("aaaababbabab"))
    assert_same(everything(model), everything(expected))
    model.forget(np.flatnonzero(np.array(list("aaaababbabab")) == "a"))
    assert set(model.predict(X)) == {"b"}


@EACH_CLASSIFIER
@pytest.mark.parametrize(
    "labels",
    [
        np.array([0, 1, 2]),
        np.array([-1, 5, 70], np.int8),
        np.array([1.0, 2.0, 4.0]),
        np.array(["a", "bb", "ccc"]),
        np.array(["a", "bb", "ccc"], object),
    ],
    ids=["int", "int8", "float", "str", "object"],
)
def test_labels_of_any_kind(kind, labels):
    y = labels[np.searchsorted(["ash", "beech", "cedar"], LABELS[3])]
    model = kind(gamma=0.2).fit(X[:20], y[:20])
    for row in range(20, 26):
        model.partial_fit(X[[row]], y[[row]])
    model.forget(np.flatnonzero(y[:26] == labels[2])).partial_fit(X[26:], y[26:].tolist())
    rows = np.concatenate([np.flatnonzero(y[:26] != labels[2]), np.arange(26, N)])
    assert_same(everything(model), everything(kind(gamma=0.2).fit(X[rows], y[rows])))
    assert set(model.predict(X)) <= set(labels)


# -- the first row, the last row ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kernel", ["rbf", "linear", "precomputed"])
@WAYS
def test_row_by_row_from_the_first(kind, kernel, penalty):
    case = Case(kind, 2, options(kernel=kernel, penalty=penalty))
    given = {} if kind == "LSSVR" else {"classes": ["ash", "beech"]}
    model = case.estimator()
    for row in range(12):
        model.partial_fit(case.inputs([row], range(row)), case.targets([row]), **given)
        assert model.X_fit_.shape[0] == row + 1
    rows = list(range(12))
    assert_same(everything(model, case.new_inputs(rows)), everything(case.refit(rows), case.new_inputs(rows)))
    for _ in range(11):  # and back to the last one
        model.forget(0)
    new = case.new_inputs([11])
    alone = case.estimator().partial_fit(case.inputs([11]), case.targets([11]), **given)
    assert_same(everything(model, new, loo=()), everything(alone, new, loo=()))
    np.testing.assert_array_equal(model.predict(new), np.repeat(case.targets([11]), 7))
    with pytest.raises(ValueError, match="leaving out 1 of 1 rows"):
        _ = model.loo_score_
    with pytest.raises(ValueError, match="would leave none of the 1 rows; make a new estimator"):
        model.forget(0)
    model.partial_fit(case.inputs([0, 1], [11]), case.targets([0, 1]))
    expected = case.estimator().partial_fit(case.inputs([11, 0, 1]), case.targets([11, 0, 1]), **given)
    new = case.new_inputs([11, 0, 1])
    assert_same(everything(model, new, loo=LOO[:3]), everything(expected, new, loo=LOO[:3]))


def test_one_row_without_an_intercept():
    model = LSSVR(gamma=0.2, fit_intercept=False, alpha=0.5).partial_fit(X[:1], [3.0])
    assert_close(model.predict(X_NEW), 3.0 / 1.5 * gram(X_NEW, X[:1])[:, 0])
    assert_close(model.loo_predict(), [0.0], scale=1.0)


# -- a call that fails leaves the model as it was ----------------------------------------------------------------------


def assert_untouched(model, twin, kind):
    """The model is what its twin is, to which nothing happened, and takes the same way from here."""
    assert pickle.dumps(model) == pickle.dumps(twin)
    assert_same(everything(model), everything(twin))
    for each in (model, twin):
        each.partial_fit(X[[40]], targets(kind, [40]), **({"ids": ["new"]} if each.ids_ else {})).forget([0, 3])
    assert_same(everything(model), everything(twin))
    expected = everything(refitted(kind, [1, 2, *range(4, 20), 40]))
    assert_same(everything(model) | {"ids_": None}, expected | {"ids_": None})


def wrong_calls(kind):
    """Calls that must fail, with what they say."""
    y = targets(kind)
    nan = np.where(np.arange(D) == 2, np.nan, X[:2])

    def learn(*args, **options):
        return lambda model: model.partial_fit(*args, **options)

    def forget(*args, **options):
        return lambda model: model.forget(*args, **options)

    odd = [np.nan, 1.0] if kind is LSSVR else [0.5, 1.7]
    return {
        "features": (learn(X[:2, :3], y[:2]), "X has 3 features, but .* is expecting 4 features"),
        "NaN": (learn(nan, y[:2]), "X contains NaN"),
        "infinity": (learn(sp.csr_array(np.where(np.isnan(nan), np.inf, nan)), y[:2]), "X contains infinity"),
        "one dimension": (learn(X[0], y[:1]), "Expected 2D array, got 1D"),
        "no rows": (learn(X[:0], y[:0]), "0 sample"),
        "no y": (learn(X[:2], None), "y"),
        "y too short": (learn(X[:2], y[:1]), "inconsistent numbers of samples"),
        "odd y": (learn(X[:2], odd), "y contains NaN" if kind is LSSVR else "Unknown label type: continuous"),
        "y of words or numbers": (
            learn(X[:2], ["a", "b"] if kind is LSSVR else [1, 2]),
            "y must hold numbers|different kinds",
        ),
        "y in columns": (learn(X[:2], np.ones((2, 2))), r"y has shape \(2, 2\)|1d array"),
        "negative weights": (learn(X[:2], y[:2], sample_weight=[1.0, -1.0]), r"sample_weight .*negative values"),
        "weights too short": (learn(X[:2], y[:2], sample_weight=[1.0]), r"sample_weight .* 2 new rows.*shape \(1,\)"),
        "weights in columns": (learn(X[:2], y[:2], sample_weight=np.ones((2, 1))), r"sample_weight .*shape \(2, 1\)"),
        "weights of NaN": (learn(X[:2], y[:2], sample_weight=[np.nan, 1.0]), "sample_weight contains NaN"),
        "confounds": (learn(X[:2], y[:2], confounds=C[:2]), "confounds: .* was fitted without"),
        "ids": (learn(X[:2], y[:2], ids=[1, 2]), "ids: the rows so far have none; give ids from the first call"),
        "out of range": (forget([3, 20]), "indices: 20 out of range; the model has rows 0 to 19"),
        "negative": (forget([-1]), "indices: -1 out of range"),
        "twice": (forget([4, 4, 2]), "indices: 4 occur more than once"),
        "fractions": (forget([1.0]), "indices must be integers or a boolean mask; found .*float64"),
        "names": (forget(["p01"]), "indices must be integers or a boolean mask"),
        "a table": (forget([[1], [2]]), r"one list of positions; found shape \(2, 1\)"),
        "a short mask": (forget(np.ones(19, bool)), r"a mask of shape \(19,\) was given for 20 rows"),
        "neither": (forget(), "give either indices .* or ids="),
        "both": (forget([1], ids=[1]), "give either indices .* or ids="),
        "unknown ids": (forget(ids=[1]), "ids: the rows of this model have none"),
        "everything": (forget(np.arange(20)), "would leave none of the 20 rows; make a new estimator"),
    }


@EACH
@pytest.mark.parametrize("name", wrong_calls(LSSVC))
def test_wrong_calls_say_what_is_wrong_and_change_nothing(kind, name):
    call, message = wrong_calls(kind)[name]
    model = fitted(kind)
    with pytest.raises((ValueError, TypeError), match=message):
        call(model)
    assert_untouched(model, fitted(kind), kind)


IDS_ERRORS = {
    "unknown": (lambda m: m.forget(ids=["p01", "p77"]), "ids: no row of the model has 'p77'"),
    "gone": (lambda m: m.forget(ids=["p43"]), "ids: no row of the model has 'p43'"),
    "twice": (lambda m: m.forget(ids=["p01", "p01"]), "ids: 'p01' occur"),
    "unhashable": (lambda m: m.forget(ids=[["p01"]]), "hashable"),
    "everything": (lambda m: m.forget(ids=m.ids_), "would leave none"),
    "missing": (
        lambda m: m.partial_fit(X[:1], targets(type(m), [0])),
        "ids: the rows so far have ids; give ids for the new rows",
    ),
    "taken": (
        lambda m: m.partial_fit(X[:1], targets(type(m), [0]), ids=["p04"]),
        "ids: 'p04' belong to rows of the model",
    ),
    "repeated": (
        lambda m: m.partial_fit(X[:2], targets(type(m), [0, 1]), ids=["q", "q"]),
        "ids: 'q' occur more than once",
    ),
    "too few": (
        lambda m: m.partial_fit(X[:2], targets(type(m), [0, 1]), ids=["q"]),
        "ids has 1 entries and X has 2 rows",
    ),
    "lists": (lambda m: m.partial_fit(X[:1], targets(type(m), [0]), ids=[["q"]]), "ids must be hashable"),
}


@EACH
@pytest.mark.parametrize("name", IDS_ERRORS)
def test_wrong_ids_change_nothing(kind, name):
    call, message = IDS_ERRORS[name]
    model = fitted(kind, ids=IDS["strings"])
    with pytest.raises(ValueError, match=message):
        call(model)
    assert_untouched(model, fitted(kind, ids=IDS["strings"]), kind)


CLASS_ERRORS = {
    "one class is left": (
        lambda m: m.forget(rows_of("ash", 2, 20)),
        {"n_classes": 2},
        "y holds one class only .*beech",
    ),
    "classes lacks a label": (
        lambda m: m.partial_fit(X[:2], ["ash", "fir"], classes=["ash"]),
        {},
        "classes=.* lacks 'fir'",
    ),
    "classes of another kind": (lambda m: m.partial_fit(X[:1], ["ash"], classes=[0, 1]), {}, "different kinds|lacks"),
    "a class without weight": (
        lambda m: m.forget(rows_of("ash", limit=20)),
        {"class_weight": {"ash": 2.0}},
        "class_weight names .*ash",
    ),
}
FISHER_ERRORS = {
    "priors": (
        lambda m: m.partial_fit(X[:1], ["fir"]),
        {"priors": [0.2, 0.3, 0.5]},
        "priors=.* must be 4 positive numbers",
    ),
    "axes": (
        lambda m: m.forget(rows_of("ash", limit=20)),
        {"n_components": 2},
        "n_components=2 must be .* from 1 to 1",
    ),
}


@EACH_CLASSIFIER
@pytest.mark.parametrize("name", [*CLASS_ERRORS, *FISHER_ERRORS])
def test_classes_that_do_not_fit_change_nothing(kind, name):
    if kind is LSSVC and name in FISHER_ERRORS:
        pytest.skip("LSSVC has no such parameter")
    call, given, message = (CLASS_ERRORS | FISHER_ERRORS)[name]
    model, twin = fitted(kind, **given), fitted(kind, **given)
    with pytest.raises(ValueError, match=message):
        call(model)
    assert pickle.dumps(model) == pickle.dumps(twin)
    assert_same(everything(model.forget([5])), everything(twin.forget([5])))


@EACH_CLASSIFIER
def test_balanced_weights_are_refused(kind):
    model = kind(gamma=0.2, class_weight="balanced")
    with pytest.raises(ValueError, match=r"class_weight='balanced' changes the weight of every row.*give numbers"):
        model.partial_fit(X, LABELS[3])
    assert not hasattr(model, "classes_")
    model.fit(X, LABELS[3])
    before = pickle.dumps(model)
    for call in (lambda: model.partial_fit(X[:1], ["ash"]), lambda: model.forget([0])):
        with pytest.raises(ValueError, match="class_weight='balanced'"):
            call()
    assert pickle.dumps(model) == before


CHANGES = {
    "alpha": 0.7,
    "gamma": 0.5,
    "kernel": "laplacian",
    "penalty": "coef",
    "basis": "all",
    "fit_intercept": False,
    "calibration": "sigmoid",
    "class_weight": {"ash": 2.0},
    "threshold": "fisher",
    "n_components": 1,
}


@pytest.mark.parametrize("name", CHANGES)
def test_changed_parameters_are_refused_until_they_are_what_they_were(name):
    model, twin = fitted(KernelFisherDiscriminant), fitted(KernelFisherDiscriminant)
    old = model.get_params()[name]
    model.set_params(**{name: CHANGES[name]})
    for call in (lambda: model.partial_fit(X[:1], ["ash"]), lambda: model.forget([0])):
        with pytest.raises(ValueError, match=f"{name}: changed since the model was fitted"):
            call()
    model.set_params(**{name: old})
    assert_untouched(model, twin, KernelFisherDiscriminant)
    equal = copy.deepcopy(old) if name != "gamma" else np.float64(old)
    model.set_params(**{name: equal}).forget([0])


def test_changed_gammas_of_features_are_noticed():
    gammas = np.array([0.1, 0.2, 0.3, 0.4])
    model = LSSVR(gamma=gammas).fit(X, VALUES)
    model.set_params(gamma=gammas.tolist()).forget([0])
    with pytest.raises(ValueError, match="gamma: changed"):
        model.set_params(gamma=gammas * 2).forget([0])


@EACH
def test_a_failed_first_call_leaves_an_unfitted_model(kind):
    model = kind(gamma=0.2)
    bad = {"labels": (X[:3], ["a"] * 3), "weights": (X[:3], list("aba"))}
    if kind is LSSVR:
        bad = {"NaN": (X[:2], [np.nan, 1.0])}
    for data, y in bad.values():
        with pytest.raises(ValueError):
            model.partial_fit(data, y, sample_weight=[0.0] * len(y) if y == list("aba") else None)
    assert vars(model).keys() == kind().get_params().keys()
    for call in (
        lambda: model.forget([0]),
        lambda: model.drift_,
        model.unlearning_certificate,
        model.forgetting_effects,
    ):
        with pytest.raises(NotFittedError):
            call()


def test_a_failed_fit_keeps_the_model():
    model = fitted(LSSVR)
    with pytest.raises(ValueError):
        model.fit(X[:, :2], np.full(N, np.nan))
    assert_untouched(model, fitted(LSSVR), LSSVR)


@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic"])
def test_probabilities_wait_for_enough_rows(calibration):
    y = np.array(list("aaabbbbbbbbb"))
    model = LSSVC(gamma=0.2, calibration=calibration).fit(X[:12], y).forget([0, 1])
    for _ in range(2):
        with pytest.raises(ValueError, match=r"calibration='.*' needs two classes with at least two rows each"):
            model.predict_proba(X_NEW)
    plain = LSSVC(gamma=0.2).fit(X[2:12], y[2:])  # decisions need no calibration
    assert_close(model.decision_function(X_NEW), plain.decision_function(X_NEW))
    assert_close(model.loo_decision_function(), plain.loo_decision_function())
    model.partial_fit(X[:2], y[:2])
    rows = [*range(2, 12), 0, 1]
    assert_same(everything(model), everything(LSSVC(gamma=0.2, calibration=calibration).fit(X[rows], y[rows])))


@pytest.mark.parametrize("updated", [False, True])
@WAYS
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_rows_without_which_confounds_are_not_determined_stay(updated, penalty, kernel):
    confound = (np.arange(N) == 7).astype(float)  # one row alone tells its coefficient

    def make():
        return LSSVR(kernel, gamma=0.2, penalty=penalty).fit(X[:20], VALUES[:20, 0], confounds=confound[:20])

    model, twin = make(), make()
    for each in (model, twin) if updated else ():
        each.partial_fit(X[20:22], VALUES[20:22, 0], confounds=confound[20:22]).forget([0])
    with pytest.raises(ValueError, match="confounds: column 0 is a linear combination"):
        model.forget([7 - updated])
    assert pickle.dumps(model) == pickle.dumps(twin)
    assert_same(everything(model.forget([9]), loo=()), everything(twin.forget([9]), loo=()))


def test_confounds_must_come_with_new_rows():
    model = LSSVR(gamma=0.2).fit(X[:20], VALUES[:20], confounds=C[:20])
    before = pickle.dumps(model)
    for given, message in (
        (None, "confounds: the model was fitted with 2; give"),
        (C[:1, :1], "confounds has 1 columns"),
        (C[:2], "confounds has 2 rows"),
    ):
        with pytest.raises(ValueError, match=message):
            model.partial_fit(X[[30]], VALUES[[30]], confounds=given)
    assert pickle.dumps(model) == before


@EACH
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_rows_of_weight_zero_cannot_be_all_that_is_left(kind, kernel):
    given = {} if kind is LSSVR else {"classes": ["ash", "beech", "cedar"]}

    def make():
        return kind(kernel, gamma=0.2).partial_fit(
            X[:12], targets(kind, range(12)), sample_weight=[1.0] * 3 + [0.0] * 9, **given
        )

    model = make()
    with pytest.raises(ValueError, match="weight"):
        model.forget([0, 1, 2])
    assert pickle.dumps(model) == pickle.dumps(make())
    with pytest.raises(ValueError, match="weight"):
        kind(kernel, gamma=0.2).partial_fit(X[:2], targets(kind, [0, 1]), sample_weight=[0.0, 0.0], **given)


@EACH
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (gram(X[20:22], X[:20]), r"X has shape \(2, 20\).*kernel='precomputed', 2 new rows.*shape \(2, 22\)"),
        (np.ones((2, 23)), r"shape \(2, 22\)"),
        (
            np.hstack([gram(X[20:22], X[:20]), [[1.0, 0.5], [0.2, 1.0]]]),
            "precomputed kernel of the new rows.*symmetric",
        ),
        (np.full((2, 22), np.nan), "X contains NaN"),
    ],
    ids=["old", "wide", "unsymmetric", "NaN"],
)
def test_precomputed_kernels_that_do_not_fit_change_nothing(kind, data, message):
    def make():
        return kind("precomputed").fit(gram(X[:20], X[:20]), targets(kind, range(20)))

    model = make()
    with pytest.raises(ValueError, match=message):
        model.partial_fit(data, targets(kind, [20, 21]))
    with pytest.raises(ValueError, match="y"):
        model.partial_fit(gram(X[20:22], X[:22]), targets(kind, [20, 21, 22]))
    assert pickle.dumps(model) == pickle.dumps(make())
    assert model.n_features_in_ == 20


def interrupted(make, call, only):
    """Models whose call was interrupted: at every line of the files ``only`` that the call comes to."""
    for at in count():
        model, lines = make(), set()

        def trace(frame, event, argument, at=at, lines=lines):
            name = frame.f_code.co_filename
            if event == "line" and re.search(only, name):
                lines.add((name, frame.f_lineno))
                if len(lines) > at:
                    raise KeyboardInterrupt
            return trace if "foldless" in name else None

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            call(model)
            return
        except KeyboardInterrupt:
            sys.settrace(before)
            yield model
        finally:
            sys.settrace(before)


UPDATES = "_online|updates|growing"


@pytest.mark.parametrize(
    ("kind", "options", "verb", "only"),
    [
        (LSSVC, {}, "learn", "foldless"),
        (KernelFisherDiscriminant, {"penalty": "coef"}, "learn", UPDATES),
        (LSSVR, {"kernel": "linear"}, "learn", UPDATES),
        (LSSVR, {}, "forget", "foldless"),
        (KernelFisherDiscriminant, {"penalty": "coef"}, "forget", UPDATES),
    ],
    ids=["LSSVC learn", "KFDA coef learn", "LSSVR linear learn", "LSSVR forget", "KFDA coef forget"],
)
def test_an_interrupt_at_any_line_changes_nothing(kind, options, verb, only):
    def learn(model):
        return model.partial_fit(X[30:32], targets(kind, [30, 31]))

    def make():
        return fitted(kind, **options)

    call = learn if verb == "learn" else lambda model: model.forget([1, 17])
    blob, expected, later = pickle.dumps(make()), make().loo_predict(), learn(make()).forget([2])
    n = 0
    for n, model in enumerate(interrupted(make, call, only), 1):
        assert pickle.dumps(model) == blob
        if n % 3 == 0:
            assert_same({"loo": model.loo_predict()}, {"loo": expected})
        learn(model).forget([2])
        names = ("dual_coef_", "loo_predict", "loo_decision_function")
        for name in names if kind is not LSSVR else names[:2]:
            one, two = (getattr(each, name) for each in (model, later))
            assert_same({name: one() if callable(one) else one}, {name: two() if callable(two) else two})
    assert n > 30


BIG = np.random.default_rng(1).normal(size=(230, D))


def big(*blocks):
    """150 rows in the growing holder, then without blocks of these sizes."""
    model = LSSVR(gamma=0.2, alpha=0.5).fit(BIG[:151], np.sin(BIG[:151, 0])).forget([150])
    for size in blocks:
        model.forget(np.arange(size))
    return model


def more(model, n=70):
    return model.partial_fit(BIG[150 : 150 + n], np.sin(BIG[150 : 150 + n, 0]))


ROOM = {"grows": ((), more), "shrinks": ((50, 33), lambda model: model.forget(np.arange(10)))}


@pytest.mark.parametrize("way", ROOM)
def test_an_interrupt_while_the_array_is_replaced_changes_nothing(way):
    blocks, call = ROOM[way]

    def size(model):
        return len(model._parts.whole.joint._held)

    model = big(*blocks)
    before = size(model)
    assert (size(call(model)) > before) == (way == "grows")  # the array is indeed another one
    assert size(model) != before
    assert "growing" in model.holder_
    rows = model.X_fit_
    for _ in range(10):
        assert "growing" in model.forget([0]).holder_  # no drift that asks for a new factorisation
    assert_close(model.loo_predict(), clone(model).fit(rows[10:], np.sin(rows[10:, 0])).loo_predict())
    expected, later = big(*blocks).loo_predict(), more(big(*blocks), 3).forget([2]).loo_predict()
    n = 0
    for n, model in enumerate(interrupted(lambda: big(*blocks), call, "growing"), 1):
        if n % 2:
            assert_close(model.loo_predict(), expected)
        assert_close(more(model, 3).forget([2]).loo_predict(), later)
    assert n > 20


def half_way(T, V, signs):
    """An update of P that is interrupted when half of it is done."""
    foldless.linalg.numpy.add_signed_(T[: len(T) // 2, : len(T) // 2], V[: len(T) // 2], signs)
    T[: len(T) // 2] += 1.0
    raise KeyboardInterrupt


@EACH
@WAYS
@pytest.mark.parametrize("asked", [False, True])
def test_a_matrix_that_is_half_updated_is_not_used(kind, penalty, asked, monkeypatch):
    for call in (lambda m: m.forget([2, 5]), lambda m: m.partial_fit(X[:2], targets(kind, [0, 1]))):
        model, twin = fitted(kind, penalty=penalty), fitted(kind, penalty=penalty)
        with monkeypatch.context() as patch:
            patch.setattr(growing, "add_signed_", half_way)
            with pytest.raises(KeyboardInterrupt):
                call(model)
        assert pickle.dumps(model) == pickle.dumps(twin)
        if asked:
            assert_same(everything(model), everything(twin))
        for each in (model, twin):
            call(each)
        assert_same(everything(model), everything(twin))


def assert_memory_may_run_out(make, call, monkeypatch):
    """Let every request for memory fail in turn."""
    expected, failures = everything(call(make()), BIG[:5]), 0
    while True:
        model, asked = make(), iter(range(100))
        with monkeypatch.context() as patch:
            patch.setattr(
                foldless.linalg.numpy,
                "available_memory",
                lambda asked=asked, n=failures: 0 if next(asked) >= n else None,
            )
            try:
                call(model)
                break
            except MemoryError:
                pass
        assert pickle.dumps(model) == pickle.dumps(make())
        assert_same(everything(call(model), BIG[:5]), expected)
        failures += 1
    assert failures
    assert_same(everything(model, BIG[:5]), expected)


@EACH
@WAYS
@pytest.mark.parametrize("verb", ["learn", "forget"])
def test_memory_that_runs_out_changes_nothing(kind, penalty, verb, monkeypatch):
    def learn(m):
        return m.partial_fit(X[:2], targets(kind, [0, 1]))

    call = learn if verb == "learn" else lambda m: m.forget([2, 5])
    assert_memory_may_run_out(lambda: refitted(kind, range(20), penalty=penalty), call, monkeypatch)


@pytest.mark.parametrize("way", ROOM)
def test_memory_that_runs_out_while_the_array_is_replaced_changes_nothing(way, monkeypatch):
    blocks, call = ROOM[way]
    assert_memory_may_run_out(lambda: big(*blocks), call, monkeypatch)


# -- forgotten rows leave nothing --------------------------------------------------------------------------------------


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


def written(root, wanted):
    """The same for the bytes of its pickle, to the last digit."""
    blob = pickle.dumps(root)
    strings = {name: [value.encode()] for name, value in wanted.items() if isinstance(value, str)}
    numbers = {name: [struct.pack("<d", v) for v in np.ravel(v)] for name, v in wanted.items() if name not in strings}
    return {name for name, each in (strings | numbers).items() if any(value in blob for value in each)}


def private(case, model, rows, at):
    """What a model knows about the row at one position: as it was given, and what was computed from it."""
    row = rows[at]
    root = np.sqrt(case.metadata([row]).get("sample_weight", [1.0])[0])
    K = np.delete(
        gram(X[[row]], X[rows])[0]
        if case.kernel == "precomputed"
        else model.kernel_.gram(model.X_fit_[[at]], model.X_fit_)[0],
        at,
    )
    given = {"id": f"patient {row:02}", "coefficient": model.dual_coef_[at], "kernel": K[(K != 0) & (K != 1)]}
    if case.kernel != "precomputed":
        x = model.X_fit_[[at]]
        x = x.toarray()[0] if sp.issparse(x) else x[0]
        given |= {"features": x[x != 0], "square": x @ x}
    if case.kind == "LSSVR":
        given |= {"target": case.targets([row])[0], "leave-one-out": model.loo_predict()[at]}
    if case.weights != "none":
        given |= {"weight": W[row], "root": root}
    if case.confounds:
        given["confounds"] = C[row]
    return given


TRACE_CASES = [
    *[
        Case("LSSVR", "one", options(kernel=k))
        for k in ("rbf", "linear", "poly", "laplacian", "cosine", "precomputed", own_kernel)
    ],
    *[Case("LSSVR", "one", options(kernel=k), form="sparse") for k in ("rbf", "linear", "poly", "cosine")],
    *[Case("LSSVR", "two", p, "random", confounds=True) for p in PENALTIES],
    Case("LSSVR", "one", options(kernel="linear"), features=1),
    Case("LSSVR", "one", options(kernel="linear", fit_intercept=False), "random", form="sparse"),
    *[Case("KFDA", 3, options(penalty=p, calibration="isotonic"), "random") for p in ("rkhs", "coef")],
    Case("LSSVC", 2, options(kernel="linear", calibration="sigmoid"), "random", confounds=True),
]


@pytest.mark.parametrize("case", TRACE_CASES, ids=str)
@pytest.mark.parametrize("asked", [False, True])
def test_forgotten_rows_leave_nothing(case, asked):
    """Of two rows, one learnt by fit and one later, and then of all but a few."""

    def name(rows):
        return {"ids": [f"patient {row:02}" for row in rows]}

    rows = list(range(24))
    model = case.estimator().fit(
        case.inputs(rows[:18]), case.targets(rows[:18]), **case.metadata(rows[:18]), **name(rows[:18])
    )
    model.partial_fit(
        case.inputs(rows[18:], rows[:18]), case.targets(rows[18:]), **case.metadata(rows[18:]), **name(rows[18:])
    )
    for gone in ([3, 20], [0], list(range(1, 12))):
        wanted = [private(case, model, rows, at) for at in gone]
        wanted = {f"{key} of {at}": value for at, each in zip(gone, wanted, strict=True) for key, value in each.items()}
        if not asked:
            model._loo_values = None
        seen = traces(model, wanted)
        held = [key for key in wanted if key.split()[0] in ("id", "features", "target", "weight", "confounds")]
        assert seen >= set(held)
        assert written(model, wanted) >= set(held)
        model.forget(gone)
        rows = np.delete(rows, gone).tolist()
        assert not traces(model, wanted)
        assert not written(model, wanted)
        for other in (copy.deepcopy(model), copy.copy(model), pickle.loads(pickle.dumps(model))):
            assert not traces(other, wanted)


def test_the_search_for_traces_sees_the_matrices():
    """Kernel values are in Z, also those of rows in the middle of the array."""
    model = fitted(LSSVR)
    wanted = {"kernel": gram(X[[4]], X[[7]])[0, 0], "row": X[4], "target": VALUES[4, 0]}
    assert traces(model, wanted) == {"kernel", "row", "target"}
    assert traces(pickle.loads(pickle.dumps(model)), wanted) == {"row", "target"}  # pickles hold no P
    assert written(model, wanted) == {"row", "target"}


@WAYS
def test_places_of_forgotten_rows_are_blank(penalty):
    held = fitted(LSSVR, penalty=penalty).forget([2, 7])._parts.whole.joint._held
    for triangle in (np.tril(held.H), np.triu(held.Z)):
        assert not triangle[held.free].any()
        assert not triangle[:, held.free].any()
        assert triangle.any()


@EACH
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_first_single_row_leaves_nothing(kind, kernel):
    """The mean of one row is that row, and the mean of its squared lengths is its own."""
    given = {} if kind is LSSVR else {"classes": ["ash", "beech", "cedar"]}
    model = kind(kernel, gamma=0.2).partial_fit(X[:1], targets(kind, [0]), **given)
    for n in (1, 4, 10):
        model.partial_fit(X[n : n + 4], targets(kind, range(n, n + 4)))
        if n == 1:
            assert "row" in traces(model, {"row": X[0]})
            model.forget([0])
        assert not traces(model, {"row": X[0], "length": X[0] @ X[0]})


def test_means_of_linear_features_are_forgotten():
    for n in (8, 20):
        model = LSSVR("linear").fit(X[:n], VALUES[:n])
        wanted = {"mean": X[:n].mean(0), "mean length": np.mean(np.square(X[:n] - X[:n].mean(0)).sum(1))}
        wanted |= {"length": np.mean(np.square(X[:n]).sum(1))}
        assert "mean" in traces(model, wanted)
        model.forget([2])
        assert not traces(model, wanted)
        wanted = {"length": np.mean(np.square(np.delete(X[:n], 2, 0)).sum(1))}
        model.loo_predict()
        model.forget([2])
        assert not traces(model, wanted)


def test_the_names_of_forgotten_rows_of_a_precomputed_kernel_go_with_them():
    names = [f"patient {i}" for i in range(22)]
    K = pd.DataFrame(gram(X[:22], X[:22]), columns=names)
    model = LSSVR("precomputed").fit(K.iloc[:20, :20], VALUES[:20, 0])
    model.partial_fit(K.iloc[20:], VALUES[20:22, 0]).forget([3])
    assert not traces(model, {"name": "patient 3"})
    rest = np.delete(np.arange(22), 3)
    expected = LSSVR("precomputed").fit(gram(X[rest], X[rest]), VALUES[rest, 0]).predict(gram(X_NEW, X[rest]))
    assert_close(model.predict(gram(X_NEW, X[rest])), expected)


def state(item, path="model"):
    """All that an object holds, by the way to it."""
    if isinstance(item, list | tuple):
        item = dict(enumerate(item))
    parts = item if isinstance(item, dict) else getattr(item, "__dict__", None)
    if parts is None or isinstance(item, np.ndarray | type | types.FunctionType):
        return {path: item}
    return {key: value for name, part in parts.items() for key, value in state(part, f"{path}.{name}").items()}


# A fit takes the mean out of linear features and measures them without it, updates do not; SciPy notes what it found
# out about sparse arrays.
HISTORY = ("_n_forgotten", "holder_", ".shift", ".size", "_has_canonical_format", "_has_sorted_indices")


@pytest.mark.parametrize("case", [*TRACE_CASES, Case("LSSVR", "one", options(kernel="linear"), features=3)], ids=str)
def test_everything_a_model_holds_is_what_a_fit_holds(case):
    script = (("learn", [22, 23]), ("forget", [0, 5, 22]), ("forget", list(range(14))), ("forget", [3]))
    *_, (model, rows) = follow(case, script=script)
    if hasattr(model, "predict_proba"):
        model.predict_proba(case.new_inputs(rows))  # calibrated only when asked for
    ours, theirs = (state(pickle.loads(pickle.dumps(each))) for each in (model, case.refit(rows)))
    ours, theirs = ({k: v for k, v in each.items() if not k.endswith(HISTORY)} for each in (ours, theirs))
    assert ours.keys() == theirs.keys()
    for key, value in theirs.items():
        if np.asarray(value).dtype.kind == "f":
            np.testing.assert_allclose(ours[key], value, rtol=1e-7, atol=1e-7, err_msg=key)
        elif np.asarray(value).dtype.kind in "iubUS":
            np.testing.assert_array_equal(ours[key], value, err_msg=key)


COPIES = {
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
}


@EACH
@WAYS
@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("asked", [False, True])
def test_copies_go_their_own_ways(kind, penalty, way, asked):
    def learn(m):
        return m.partial_fit(X[30:33], targets(kind, [30, 31, 32]), ids=["x", "y", "z"])

    def make():
        return fitted(kind, penalty=penalty, ids=IDS["strings"])

    model = make()
    if asked:
        model.loo_predict()
    other = COPIES[way](model)
    assert pickle.dumps(COPIES[way](model)) == pickle.dumps(other)
    learn(other)
    assert_same(everything(model), everything(make()))
    model.forget([4, 9])
    assert_same(everything(other), everything(learn(make())))
    other.forget([0])
    assert_same(everything(model), everything(make().forget([4, 9])))
    assert_same(everything(other), everything(learn(make()).forget([0])))
    assert not hasattr(clone(model), "classes_")
    assert not hasattr(clone(model), "X_fit_")


def test_updates_do_not_touch_what_they_are_given():
    data, y, w, confounds = X[:26].copy(), VALUES[:26].copy(), W[:26].copy(), C[:26].copy()
    model = LSSVR("linear").fit(data[:20], y[:20], sample_weight=w[:20], confounds=confounds[:20])
    model.partial_fit(data[20:], y[20:], sample_weight=w[20:], confounds=confounds[20:]).forget([0, 22])
    expected = model.predict(X_NEW)
    for given, original in ((data, X), (y, VALUES), (w, W), (confounds, C)):
        np.testing.assert_array_equal(given, original[:26])
        given[:] = 7.0
    assert_close(model.predict(X_NEW), expected, rtol=0)
    rows = np.delete(np.arange(26), [0, 22])
    assert_close(
        model.loo_predict(),
        LSSVR("linear").fit(X[rows], VALUES[rows], sample_weight=W[rows], confounds=C[rows]).loo_predict(),
    )


@EACH
@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize("start", ["partial_fit", "fit"])
def test_a_stream_may_use_its_buffers_again(kind, size, start):
    y, given = targets(kind), {} if kind is LSSVR else {"classes": np.unique(LABELS[3])}
    rows, values, weights, confounds = np.empty((size, D)), np.empty(size, y.dtype), np.empty(size), np.empty((size, 2))
    model = kind(gamma=0.2, alpha=0.3)
    if start == "fit":
        rows, values, weights, confounds = X[:20].copy(), y[:20].copy(), W[:20].copy(), C[:20].copy()
        model.fit(rows, values, sample_weight=weights, confounds=confounds)
        rows, values, weights, confounds = rows[:size], values[:size], weights[:size], confounds[:size]
    for at in range(20 if start == "fit" else 0, N, size):
        some = slice(at, at + size)
        rows[:], values[:], weights[:], confounds[:] = X[some], y[some], W[some], C[some]
        metadata = {"sample_weight": weights} | ({"confounds": confounds} if start == "fit" else {})
        model.partial_fit(rows, values, **metadata, **given)
    metadata = {"sample_weight": W} | ({"confounds": C} if start == "fit" else {})
    assert_same(everything(model), everything(kind(gamma=0.2, alpha=0.3).fit(X, y, **metadata)))


# -- evidence ----------------------------------------------------------------------------------------------------------


def test_the_certificate_says_what_was_compared():
    model = fitted(LSSVR)
    certificate = model.unlearning_certificate()
    refit = refitted(LSSVR, range(20))
    assert certificate.holds
    assert (certificate.n_samples, certificate.n_forgotten, certificate.inherited) == (20, 1, ())
    model.forget([3, 4, 5]).partial_fit(X[30:31], VALUES[30:31, 0])
    assert model.unlearning_certificate().n_forgotten == 4
    assert model.unlearning_certificate().n_samples == 18
    assert 0 < certificate.difference < 1e-11
    assert certificate.loo_difference < 1e-11
    assert certificate.residual < 1e-12
    M = gram(X[:20], X[:20]) + 0.3 * np.eye(20)
    hard = LSSVR(gamma=1e-5, alpha=1e-8).fit(X[:20], VALUES[:20])
    assert certificate.limit == 1e-8 > 1e3 * np.finfo(float).eps * np.linalg.cond(M)
    M = np.exp(-1e-5 * np.square(X[:20, None] - X[None, :20]).sum(-1)) + 1e-8 * np.eye(20)
    assert hard.unlearning_certificate().limit == pytest.approx(1e3 * np.finfo(float).eps * np.linalg.cond(M), rel=0.01)
    assert refit.unlearning_certificate().n_forgotten == 0
    text = str(certificate)
    assert text.startswith("A model of 20 rows, 1 forgotten, equals a new fit on its rows.")
    for value in (certificate.residual, certificate.difference, certificate.loo_difference, certificate.limit):
        assert f"{value:.1e}" in text
    assert model.fit(X, VALUES).unlearning_certificate().n_forgotten == 0


def spoiled(name, model):
    """The model with one of the arrays it predicts with changed a little."""
    values = np.array(getattr(model, name))
    values.flat[0] += 1e-4 * max(1.0, np.abs(values).max())
    setattr(model, name, values)
    return model


SPOILT = [("_dual", LSSVR, "rbf"), ("_dual", LSSVC, "rbf"), ("_dual", KernelFisherDiscriminant, "rbf")]
SPOILT += [("_offset", LSSVR, "rbf"), ("_offset", LSSVC, "linear"), ("_weights", LSSVC, "linear")]


@pytest.mark.parametrize(
    ("name", "kind", "kernel"), SPOILT, ids=[f"{k.__name__}{n} {kernel}" for n, k, kernel in SPOILT]
)
@WAYS
@pytest.mark.parametrize("way", ["itself", "pickle"])
def test_a_model_that_was_tampered_with_gets_no_certificate(name, kind, kernel, penalty, way):
    def make():
        return fitted(kind, kernel=kernel, penalty=penalty)

    model = make() if way == "itself" else pickle.loads(pickle.dumps(make()))
    assert model.unlearning_certificate().holds
    certificate = spoiled(name, model).unlearning_certificate()
    assert certificate.difference > 1e-6
    assert not certificate.holds
    assert "DIFFERS from a new fit" in str(certificate)


def test_coefficients_of_confounds_are_certified():
    model = LSSVR(gamma=0.2).fit(X[:20], VALUES[:20], confounds=C[:20]).forget([3])
    assert model.unlearning_certificate().holds
    assert not spoiled("_confound_B", model).unlearning_certificate().holds


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_none_get_no_certificate(value):
    model = fitted(LSSVR)
    model._dual = np.full_like(model._dual, value)
    certificate = model.unlearning_certificate()
    assert not certificate.holds
    assert "DIFFERS" in str(certificate)


@WAYS
def test_a_matrix_that_went_wrong_gets_no_certificate(penalty):
    model = fitted(LSSVR, penalty=penalty)
    held = model._parts.whole.joint._held
    vars(model._parts.whole.joint).pop("_diagonal", None)
    held.array += 1e-3 * np.random.default_rng(0).normal(size=held.array.shape)
    certificate = model.unlearning_certificate()
    assert certificate.loo_difference > 1e-6
    assert not certificate.holds


def test_rows_that_are_not_those_of_the_model_get_no_certificate():
    """As if one row had been left in when the others were solved."""
    model = fitted(LSSVR)
    one = model._fitted_task.Y[3].copy()
    model._fitted_task.Y[3] += 1.0
    assert not model.unlearning_certificate().holds
    model._fitted_task.Y[3] = one
    assert model.unlearning_certificate().holds


@EACH_CLASSIFIER
def test_what_was_resolved_from_forgotten_rows_is_named(kind):
    model = kind(alpha=0.3).fit(X, LABELS[3])
    assert model.unlearning_certificate().inherited == ("gamma",)
    assert "gamma" not in str(model.unlearning_certificate())  # nothing forgotten yet
    text = str(model.forget([0]).unlearning_certificate())
    assert "resolved once, with forgotten rows: gamma; give numbers to leave no trace of them" in text
    for numeric in (kind(gamma=0.1), kind("linear"), kind("cosine")):
        certificate = numeric.fit(X, LABELS[3]).forget([0]).unlearning_certificate()
        assert certificate.inherited == ()
        assert "resolved" not in str(certificate)


def test_one_row_has_a_certificate_without_leave_one_out():
    certificate = LSSVR(gamma=0.2).partial_fit(X[:1], [2.0]).unlearning_certificate()
    assert np.isnan(certificate.loo_difference)
    assert certificate.holds
    assert "1 rows, 0 forgotten" in str(certificate)


def test_single_precision_has_a_wider_limit():
    model = LSSVR(gamma=0.2).fit(X[:20].astype(np.float32), VALUES[:20]).forget([3])
    certificate = model.unlearning_certificate()
    assert certificate.limit == pytest.approx(1e-3)
    assert certificate.holds
    assert not spoiled("_dual", model).forget([0]).unlearning_certificate().difference > 1e-3  # updates know better
    model._dual = model._dual * 1.01
    assert not model.unlearning_certificate().holds


@EACH
@WAYS
def test_drift_is_what_updates_met(kind, penalty):
    model = refitted(kind, range(20), penalty=penalty)
    assert model.drift_ == 0.0
    for row in range(20, 30):
        model.partial_fit(X[[row]], targets(kind, [row])).forget(0)
    assert isinstance(model.drift_, float)
    assert model.drift_ < 1e-10
    assert pickle.loads(pickle.dumps(model)).drift_ == 0.0
    held = model._parts.whole.joint._held
    held.array += 1e-3 * np.random.default_rng(0).normal(size=held.array.shape)
    for row in range(30, 40):  # what went wrong is noticed, though not at once, and mended
        model.partial_fit(X[[row]], targets(kind, [row])).forget(0)
    assert model.drift_ < 1e-10
    assert_same(everything(model), everything(refitted(kind, range(20, 40), penalty=penalty)))
    assert model.fit(X, targets(kind)).drift_ == 0.0


def press(data, Y, w, **options):
    """Weighted sum of squared leave-one-out residuals, from a fit."""
    model = LSSVR(**options).fit(data, Y, sample_weight=w)
    return np.sum(w[:, None] * np.square(Y - model.loo_predict()), axis=1)


def effects_of_refits(data, Y, w, **options):
    """Change of the criterion over the other rows, row by row, by fitting without it."""
    whole, effects = press(data, Y, w, **options), np.zeros(len(w))
    for i in np.flatnonzero(w):
        rest = np.delete(np.arange(len(w)), i)
        effects[i] = abs(press(data[rest], Y[rest], w[rest], **options).sum() - whole[rest].sum())
    return effects


def coded(kind, y):
    """Targets of the regression behind a classifier."""
    if kind is LSSVR:
        return y.reshape(len(y), -1)
    Y = (y[:, None] == np.unique(y)).astype(float)
    if kind is KernelFisherDiscriminant:
        return Y
    return 2 * (Y[:, 1:] if Y.shape[1] == 2 else Y) - 1


@EACH
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("penalty", [{"penalty": "rkhs"}, {"penalty": "coef"}], ids=["rkhs", "coef"])
@pytest.mark.parametrize("weights", ["none", "zeros"])
def test_effects_of_forgetting_are_those_of_refits(kind, n_classes, penalty, weights):
    w = W_ZEROS[:18] if weights == "zeros" else np.ones(18)
    given = penalty | {"gamma": 0.2, "alpha": 0.3}
    y = targets(kind, range(18), n_classes)
    model = kind(**given).fit(X[:18], y, sample_weight=None if weights == "none" else w)
    expected = effects_of_refits(X[:18], coded(kind, y), w, **given)
    assert_close(model.forgetting_effects(), expected)
    kept = np.delete(np.arange(18), [2, 9])
    expected = effects_of_refits(X[kept], coded(kind, y[kept]), w[kept], **given)
    assert_close(model.forget([2, 9]).forgetting_effects(), expected)


# -- sliding windows ---------------------------------------------------------------------------------------------------


@EACH
@pytest.mark.parametrize("step", [1, 3, 20])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_a_window_of_the_newest_is_a_fit_on_the_last_rows(kind, step, kernel):
    window = SlidingWindow(kind(kernel, gamma=0.2, alpha=0.3), max_samples=16)
    for start in range(0, N, step):
        some = range(start, min(start + step, N))
        window.partial_fit(X[some], targets(kind, some), **({} if kind is LSSVR else {"classes": np.unique(LABELS[3])}))
        last = range(max(0, some[-1] + 1 - 16), some[-1] + 1)
        assert window.n_samples_ == len(last)
        if len(last) > 8:
            expected = refitted(kind, last, kernel=kernel)
            assert_same(everything(window.estimator_), everything(expected))
            np.testing.assert_array_equal(window.predict(X_NEW), window.estimator_.predict(X_NEW))
            assert window.loo_score_ == pytest.approx(expected.loo_score_)
            assert window.score(X, targets(kind)) == pytest.approx(expected.score(X, targets(kind)))
    assert window.estimator_.unlearning_certificate().holds


@EACH
@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
def test_a_window_of_what_matters_forgets_the_least_effect(kind, penalty):
    given = {"gamma": 0.2, "alpha": 0.3, "penalty": penalty}
    window = SlidingWindow(kind(**given), max_samples=12, drop="least").fit(X[:12], targets(kind, range(12)))
    rows = list(range(12))
    for new in ([12], [13, 14, 15]):
        window.partial_fit(X[new], targets(kind, new))
        rows += new
        while len(rows) > 12:
            effects = effects_of_refits(X[rows], coded(kind, targets(kind, rows)), np.ones(len(rows)), **given)
            del rows[int(np.argmin(effects))]
        np.testing.assert_array_equal(window.estimator_.X_fit_, X[rows])
        assert_same(everything(window.estimator_), everything(refitted(kind, rows, penalty=penalty)))


@EACH_CLASSIFIER
def test_classes_stay_when_they_leave_the_window(kind):
    y = np.array(list("abc" * 4 + "ab" * 10))
    window = SlidingWindow(kind(gamma=0.2), max_samples=8)
    for row in range(12, 32):
        if row == 12:
            window.fit(X[:12], y[:12])
            np.testing.assert_array_equal(window.classes_, list("abc"))
        window.partial_fit(X[[row]], y[[row]])
    np.testing.assert_array_equal(window.classes_, list("abc"))
    assert window.decision_function(X).shape == (N, 3)
    assert set(window.predict(X)) <= {"a", "b"}
    window.partial_fit(X[32:34], ["d", "a"], classes=["e", "d", "a"])
    np.testing.assert_array_equal(window.classes_, list("abcde"))
    np.testing.assert_array_equal(window.fit(X[:8], y[12:20]).classes_, list("ab"))


def test_a_window_may_start_with_one_row_of_one_class():
    window = SlidingWindow(LSSVC(gamma=0.2), max_samples=5)
    with pytest.raises(ValueError, match=r"one class only.*classes="):
        window.partial_fit(X[:1], ["a"])
    assert not hasattr(window, "estimator_")
    for row in range(9):
        window.partial_fit(X[[row]], ["a" if row < 7 else "b"], classes=["a", "b"] if row == 0 else None)
    np.testing.assert_array_equal(window.estimator_.X_fit_, X[4:9])


def test_options_pass_through_a_window():
    window = SlidingWindow(LSSVR(gamma=0.2, alpha=0.3), max_samples=10)
    ids = IDS["strings"]
    for start in range(0, 24, 4):
        some = slice(start, start + 4)
        window.partial_fit(X[some], VALUES[some], sample_weight=W[some], confounds=C[some], ids=ids[some])
    assert window.estimator_.ids_ == ids[14:24]
    expected = LSSVR(gamma=0.2, alpha=0.3).fit(X[14:24], VALUES[14:24], sample_weight=W[14:24], confounds=C[14:24])
    assert_same(everything(window.estimator_) | {"ids_": None}, everything(expected))
    with pytest.raises(TypeError, match="colour"):
        window.partial_fit(X[:1], VALUES[:1], colour="red")
    assert window.n_samples_ == 10


def test_a_window_is_as_able_as_its_estimator():
    plain, calibrated = (SlidingWindow(LSSVC(gamma=0.2, calibration=c), 30) for c in (None, "sigmoid"))
    assert not hasattr(plain, "predict_proba")
    assert calibrated.fit(X, LABELS[3]).predict_proba(X).shape == (N, 3)
    assert not hasattr(SlidingWindow(LSSVR()), "decision_function")
    assert clone(calibrated).set_params(estimator__alpha=3.0, max_samples=7).estimator.alpha == 3.0
    assert calibrated.estimator.alpha == 1.0
    assert not hasattr(calibrated.estimator, "classes_")  # it is cloned
    assert calibrated.n_features_in_ == D
    assert not hasattr(calibrated, "feature_names_in_")
    named = SlidingWindow(LSSVR(gamma=0.2)).fit(pd.DataFrame(X, columns=NAMES), VALUES)
    assert list(named.feature_names_in_) == NAMES
    with pytest.raises(NotFittedError):
        plain.predict(X)
    with pytest.raises(NotFittedError):
        _ = plain.n_samples_


def test_windows_of_precomputed_kernels():
    window = SlidingWindow(LSSVC("precomputed", alpha=0.3), 16)
    for start in range(0, N, 4):
        known = np.arange(max(0, start - 16), start + 4)
        window.partial_fit(gram(X[start : start + 4], X[known]), LABELS[2][start : start + 4], classes=["ash", "beech"])
    assert window.n_features_in_ == 16
    assert_close(
        window.decision_function(gram(X_NEW, X[-16:])), refitted(LSSVC, range(N - 16, N), 2).decision_function(X_NEW)
    )
    scores = skl.cross_val_score(SlidingWindow(LSSVC("precomputed")), gram(X, X), LABELS[2], cv=3)
    np.testing.assert_array_equal(scores, skl.cross_val_score(LSSVC(gamma=0.2), X, LABELS[2], cv=3))


def test_a_window_can_be_made_smaller():
    window = SlidingWindow(LSSVR(gamma=0.2, alpha=0.3), 20).fit(X[:20], VALUES[:20, 0])
    window.set_params(max_samples=9).partial_fit(X[20:21], VALUES[20:21, 0])
    assert_same(everything(window.estimator_), everything(refitted(LSSVR, range(12, 21))))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"drop": "newest"}, "drop='newest' is unknown; use one of 'oldest', 'least'"),
        ({"max_samples": 1}, "max_samples=1 must be an integer of at least 2"),
        ({"max_samples": 10.0}, "max_samples=10.0 must be an integer"),
        ({"max_samples": None}, "max_samples=None must be an integer"),
        ({"drop": "least", "estimator": AdaptiveKDA()}, "drop='least' needs forgetting_effects, which AdaptiveKDA"),
    ],
)
def test_windows_refuse_what_they_cannot_do(options, message):
    window = SlidingWindow(LSSVC(gamma=0.2)).set_params(**options)
    for verb in (window.fit, window.partial_fit):
        with pytest.raises(ValueError, match=message):
            verb(X, LABELS[3])
    assert not hasattr(window, "estimator_")


def sliding(forget="oldest", **options):
    window = SlidingWindow(LSSVC(**{"gamma": 0.2, "alpha": 0.3} | options), max_samples=12, drop=forget)
    return window.partial_fit(X[:12], LABELS[2][:12]).partial_fit(X[12:14], LABELS[2][12:14])


@pytest.mark.parametrize("forget", ["oldest", "least"])
def test_a_window_whose_second_half_fails_keeps_its_rows(forget, monkeypatch):
    for when in range(2 if forget == "oldest" else 3):  # learning, and each time it forgets
        window, twin, calls = sliding(forget), sliding(forget), iter(range(9))

        def broken(*args, calls=calls, when=when):
            return half_way(*args) if next(calls) == when else foldless.linalg.numpy.add_signed_(*args)

        with monkeypatch.context() as patch:
            patch.setattr(growing, "add_signed_", broken)
            with pytest.raises(KeyboardInterrupt):
                window.partial_fit(X[14:16], LABELS[2][14:16])
        assert pickle.dumps(window) == pickle.dumps(twin)
        assert_same(everything(window.estimator_), everything(twin.estimator_))
        for each in (window, twin):
            each.partial_fit(X[14:16], LABELS[2][14:16])
        assert_same(everything(window.estimator_), everything(twin.estimator_))


def test_a_window_that_cannot_forget_does_not_learn():
    """Of its first rows one alone tells the coefficient of a confound."""
    confound = (np.arange(N) == 2).astype(float)

    def make():
        return SlidingWindow(LSSVR(gamma=0.2), 12).fit(X[:12], VALUES[:12], confounds=confound[:12])

    window = make()
    with pytest.raises(ValueError, match="confounds: column 0"):
        window.partial_fit(X[12:16], VALUES[12:16], confounds=confound[12:16])
    assert pickle.dumps(window) == pickle.dumps(make())
    window.partial_fit(X[12:14], VALUES[12:14], confounds=confound[12:14])
    np.testing.assert_array_equal(window.estimator_.X_fit_, X[2:14])


@pytest.mark.parametrize("forget", ["oldest", "least"])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_rows_that_left_a_window_leave_nothing(forget, kernel):
    window = SlidingWindow(LSSVR(kernel, gamma=0.2), 10, drop=forget)
    for row in range(16):
        window.partial_fit(X[[row]], VALUES[[row], 0], sample_weight=W[[row]], ids=[f"patient {row:02}"])
        if row == 5:
            wanted = {"row": X[2], "target": VALUES[2, 0], "weight": W[2], "id": "patient 02"}
            assert traces(window, wanted) == wanted.keys() == written(window, wanted)
    gone = set(range(16)) - {int(each[-2:]) for each in window.estimator_.ids_}
    assert len(gone) == 6
    for row in gone:
        wanted = {
            "row": X[row],
            "target": VALUES[row, 0],
            "weight": W[row],
            "root": np.sqrt(W[row]),
            "id": f"patient {row:02}",
        }
        wanted["length"] = X[row] @ X[row]
        assert not traces(window, wanted)
        assert not written(window, wanted)


@pytest.mark.parametrize("way", ["deepcopy", "pickle"])
def test_copies_of_windows_go_their_own_ways(way):
    window = sliding()
    other = COPIES[way](window)
    other.partial_fit(X[14:17], LABELS[2][14:17])
    assert_same(everything(window.estimator_), everything(sliding().estimator_))
    window.partial_fit(X[20:22], LABELS[2][20:22])
    assert_same(everything(other.estimator_), everything(sliding().partial_fit(X[14:17], LABELS[2][14:17]).estimator_))
    assert not hasattr(clone(window), "estimator_")


WINDOWS = [SlidingWindow(LSSVC(gamma=0.1)), SlidingWindow(LSSVR(gamma=0.1), 30, drop="least")]
CHECKS = [pair for window in WINDOWS for pair in estimator_checks_generator(window)]


@pytest.mark.parametrize(
    ("window", "check"),
    CHECKS,
    ids=[f"{type(w.estimator).__name__} {getattr(c, 'func', c).__name__}" for w, c in CHECKS],
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_checks_of_windows(window, check):
    check(window)


# -- scikit-learn ------------------------------------------------------------------------------------------------------


@EACH_CLASSIFIER
def test_streams_as_scikit_learn_writes_them(kind):
    """classes in the first call, then batches in which classes may be missing; the score before each batch."""
    model, theirs = kind(gamma=0.2, alpha=0.3), SGDClassifier(random_state=0)
    classes = np.unique(LABELS[4])
    for start in range(0, N, 4):
        some = slice(start, start + 4)
        first = {"classes": classes} if start == 0 else {}
        model.partial_fit(X[some], LABELS[4][some], **first)
        theirs.partial_fit(X[some], LABELS[4][some], **first)
        np.testing.assert_array_equal(model.classes_, theirs.classes_)
        assert model.decision_function(X).shape == theirs.decision_function(X).shape
    assert_same(everything(model), everything(kind(gamma=0.2, alpha=0.3).fit(X, LABELS[4])))


@pytest.mark.parametrize("form", ["pandas", "polars"])
def test_names_of_features_are_those_of_the_first_rows(form):
    frame = (
        (lambda v, names: pd.DataFrame(v, columns=names))
        if form == "pandas"
        else (lambda v, names: pl.DataFrame(v, schema=names))
    )
    y = LABELS[3]
    model = LSSVC(gamma=0.2).partial_fit(frame(X[:20], NAMES), y[:20])
    if not hasattr(Ridge().fit(frame(X, NAMES), VALUES), "feature_names_in_"):
        pytest.skip("this scikit-learn does not read the names of this polars")
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match="feature names should match"):
        model.partial_fit(frame(X[20:22], NAMES[::-1]), y[20:22])
    for call in (lambda: copy.deepcopy(model).partial_fit(X[20:22], y[20:22]), lambda: model.predict(X_NEW)):
        with pytest.warns(UserWarning, match="does not have valid feature names"):
            call()
    assert pickle.dumps(model) == before
    model.partial_fit(frame(X[20:22], NAMES), y[20:22]).forget([0])
    assert list(model.feature_names_in_) == NAMES


@pytest.mark.parametrize("stored", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    "new", [np.asarray, sp.csr_array, sp.csc_matrix, np.ndarray.tolist], ids=["dense", "csr", "csc", "list"]
)
def test_new_rows_come_in_any_container(stored, new):
    model = LSSVC(gamma=0.2).fit(stored(X[:20]), LABELS[3][:20]).partial_fit(new(X[20:23]), LABELS[3][20:23].tolist())
    assert sp.issparse(model.X_fit_) == (stored is sp.csr_array)
    assert_same(everything(model), everything(LSSVC(gamma=0.2).fit(X[:23], LABELS[3][:23])))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_new_rows_take_the_precision_of_the_model(dtype):
    model = LSSVR(gamma=0.2).fit(X[:20].astype(dtype), VALUES[:20]).partial_fit(X[20:22], VALUES[20:22])
    model.partial_fit(X[22:24].astype(np.float32), VALUES[22:24].astype(np.float32)).partial_fit(
        np.ones((1, D), int), [[1, 2]]
    )
    assert model.X_fit_.dtype == model.dual_coef_.dtype == dtype
    rows = np.vstack([X[:22], X[22:24].astype(np.float32), np.ones((1, D))])
    values = np.vstack([VALUES[:22], VALUES[22:24].astype(np.float32), [[1, 2]]])
    expected = LSSVR(gamma=0.2).fit(rows.astype(dtype), values).predict(X_NEW)
    assert_close(model.predict(X_NEW), expected, rtol=1e-8 if dtype is np.float64 else 1e-4)


@EACH
def test_weights_may_be_one_number_or_come_later(kind):
    model = kind(gamma=0.2).fit(X[:20], targets(kind, range(20)))
    model.partial_fit(X[20:22], targets(kind, [20, 21]), sample_weight=3.0).partial_fit(
        X[22:24], targets(kind, [22, 23])
    )
    w = np.where(np.isin(np.arange(24), [20, 21]), 3.0, 1.0)
    assert_same(everything(model), everything(kind(gamma=0.2).fit(X[:24], targets(kind, range(24)), sample_weight=w)))


@EACH
def test_metadata_can_be_requested(kind):
    names = {"sample_weight", "confounds", "ids"} | ({"classes"} if kind is not LSSVR else set())
    with sklearn.config_context(enable_metadata_routing=True):
        model = (
            kind().set_partial_fit_request(**dict.fromkeys(names, True)).set_fit_request(sample_weight=True, ids=True)
        )
        model.set_score_request(sample_weight=False)
        routing = get_routing_for_object(model)
        assert {name for name, asked in routing.partial_fit.requests.items() if asked} == names
        assert {name for name, asked in routing.fit.requests.items() if asked} == {"sample_weight", "ids"}
        weighted = skl.cross_val_score(model.set_params(gamma=0.2), X, targets(kind), cv=3, params={"sample_weight": W})
    assert weighted.shape == (3,)


def updated(kind, **options):
    model = kind(gamma=0.2, alpha=0.3, **options).fit(X[:30], targets(kind, range(30)))
    return model.partial_fit(X[30:], targets(kind, range(30, N))).forget([0, 7])


@EACH
def test_cross_validation_of_an_updated_model_is_that_of_its_parameters(kind):
    y, cv = targets(kind), skl.KFold(4, shuffle=True, random_state=0)
    model = updated(kind)
    before = pickle.dumps(model)
    np.testing.assert_array_equal(
        fl.cross_val_predict(model, X, y, cv=cv), fl.cross_val_predict(clone(model), X, y, cv=cv)
    )
    np.testing.assert_allclose(fl.cross_val_score(model, X, y, cv=cv), skl.cross_val_score(clone(model), X, y, cv=cv))
    if kind is not LSSVR:
        ours, plain = (
            fl.permutation_test_score(m, X, y, cv=cv, n_permutations=9, random_state=0) for m in (model, clone(model))
        )
        np.testing.assert_array_equal(ours[1], plain[1])
        assert ours[2] == plain[2]
    assert pickle.dumps(model) == before
    assert_same(everything(model.forget([3])), everything(updated(kind).forget([3])))


@EACH
def test_estimators_of_cross_validation_learn_and_forget(kind):
    y = targets(kind)
    splits = list(skl.KFold(4, shuffle=True, random_state=0).split(X))
    found = fl.cross_validate(kind(gamma=0.2, alpha=0.3), X, y, cv=splits, return_estimator=True)["estimator"]
    for (train, test), model in zip(splits, found, strict=True):
        assert model.ids_ is None
        model.partial_fit(X[test[:3]], y[test[:3]]).forget([0, 5])
        rows = [*np.delete(train, [0, 5]), *test[:3]]
        assert_same(everything(model), everything(refitted(kind, rows)))
        assert model.unlearning_certificate().holds


@pytest.mark.parametrize(
    "options", [{}, {"method": "gradient", "feature_scaling": True, "max_iter": 3}], ids=["grid", "gradient"]
)
@EACH
def test_the_best_estimator_of_a_search_learns_and_forgets(kind, options):
    estimator = kind(gamma=0.2)
    grid = {} if options else {"param_grid": {"alpha": [0.1, 1.0], "gamma": [0.1, 0.3]}}
    best = FoldlessSearchCV(estimator, **grid, **options).fit(X[:30], targets(kind, range(30))).best_estimator_
    best.partial_fit(X[30:34], targets(kind, range(30, 34))).forget([2, 31])
    rows = np.delete(np.arange(34), [2, 31])
    gamma = best.kernel_.gamma
    assert_same(everything(best), everything(clone(best).set_params(gamma=gamma).fit(X[rows], targets(kind, rows))))
    assert best.unlearning_certificate().holds


def test_a_window_forgets_on_request():
    window = SlidingWindow(LSSVC(gamma=0.2, alpha=0.3), max_samples=12)
    window.partial_fit(X[:14], LABELS[2][:14], ids=range(14)).forget(ids=[5]).forget([0])
    kept = [3, 4, 6, 7, 8, 9, 10, 11, 12, 13]
    assert window.estimator_.ids_ == kept
    again = LSSVC(gamma=0.2, alpha=0.3).fit(X[kept], LABELS[2][kept], ids=kept)
    assert_same(everything(window.estimator_), everything(again))
    assert window.unlearning_certificate().holds
    assert not hasattr(SlidingWindow(AdaptiveKDA()), "unlearning_certificate")


def test_a_window_refuses_an_estimator_changed_behind_its_back():
    window = sliding()
    before = pickle.dumps(window.estimator_)
    window.set_params(estimator__alpha=7.0)
    with pytest.raises(ValueError, match="alpha: changed since the model was fitted"):
        window.partial_fit(X[14:16], LABELS[2][14:16])
    assert pickle.dumps(window.estimator_) == before
    assert window.fit(X[:12], LABELS[2][:12]).estimator_.alpha == 7.0


def test_a_window_needs_an_estimator_that_learns_and_forgets():
    with pytest.raises(
        ValueError, match=r"estimator=StandardScaler\(\) cannot learn and forget rows; use one of LSSVC"
    ):
        SlidingWindow(StandardScaler()).partial_fit(X, LABELS[2])


@pytest.mark.parametrize("ids", ["abcdefgh", 8])
def test_ids_are_a_list(ids):
    with pytest.raises(ValueError, match=f"ids={ids!r} must be a list with one id for each of the 8 rows"):
        LSSVC(gamma=0.2).fit(X[:8], LABELS[2][:8], ids=ids)


def test_messages_show_ids_as_they_were_given():
    model = LSSVC(gamma=0.2).fit(X[:8], LABELS[2][:8], ids=np.array(list("abcdefgh")))
    with pytest.raises(ValueError, match="no row of the model has 'z'"):
        model.forget(ids=np.array(["a", "z"]))


SMOOTH = {
    "cosine": (LSSVR("cosine", alpha=1e-6), 2),
    "rbf": (LSSVR(gamma=0.02, alpha=1e-6), 3),
    "coef": (LSSVR(gamma=0.02, alpha=1e-4, penalty="coef"), 3),
}


@pytest.mark.parametrize("t", [1, 2, 4])
@pytest.mark.parametrize("which", SMOOTH)
def test_fits_of_smooth_kernels_stay_right_when_rows_go_together(which, t):
    """Coefficients of 1e6 cancel in the fits: errors in directions that the kernel enlarges would show here."""
    model, d = SMOOTH[which]
    for seed in range(6):
        rng = np.random.default_rng(seed)
        rows, new, w = rng.normal(size=(31, d)), rng.normal(size=(20, d)), rng.uniform(0.5, 7, 31)
        y, gone = np.sign(rng.normal(size=31)), rng.permutation(31)[:t]
        kept = np.delete(np.arange(31), gone)
        updated = clone(model).fit(rows, y, w).forget(gone)
        again = clone(model).fit(rows[kept], y[kept], w[kept])
        certificate = updated.unlearning_certificate()
        assert certificate.holds
        assert_close(updated.predict(new), again.predict(new), rtol=certificate.limit)
        assert_close(updated.loo_predict(), again.loo_predict(), rtol=certificate.limit)


def test_an_offset_of_zero_is_no_difference():
    half = np.random.default_rng(0).normal(size=(15, 2))
    rows, y = np.vstack([half, -half]), np.repeat([1.0, -1.0], 15)
    model = LSSVR(gamma=0.3).fit(np.vstack([rows, [[9.0, 9.0]]]), np.append(y, 1.0)).forget([30])
    assert abs(model.intercept_) < 1e-12
    assert model.unlearning_certificate().holds


def test_a_certificate_asks_for_the_equations_too():
    certificate = LSSVR(gamma=0.3).fit(X, RNG.normal(size=len(X))).forget([1]).unlearning_certificate()
    assert certificate.holds
    assert not replace(certificate, residual=1e-3).holds


@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
def test_leave_one_out_after_an_update_makes_nothing_n_by_n(penalty, monkeypatch):
    model = LSSVR(gamma=0.3, penalty=penalty).fit(X, X[:, 0]).forget([1])
    expected = clone(model).fit(np.delete(X, 1, 0), np.delete(X[:, 0], 1)).loo_predict()
    monkeypatch.setattr(growing.Growing, "explicit", lambda _: pytest.fail("P was copied"))
    monkeypatch.setattr(growing.Growing, "columns", lambda *_: pytest.fail("columns of P were copied"))
    assert_close(model.loo_predict(), expected)


def test_labels_are_as_short_as_a_fit_would_have_them():
    y = np.array(["a", "b", "a very long label"])[np.arange(30) % 3]
    model = LSSVC(gamma=0.2).fit(X[:30], y).forget(y == "a very long label")
    assert model.classes_.dtype == np.array(["a", "b"]).dtype
