"""Forgotten rows leave no trace in a model, its pickles or its copies."""

import copy
import pickle
import types

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from foldless import LSSVR
from support.online import (
    COPIES,
    IDS,
    LABELS,
    PENALTIES,
    VALUES,
    X_NEW,
    C,
    Case,
    D,
    N,
    W,
    X,
    all_outputs,
    assert_same,
    every_kind,
    every_penalty,
    gram,
    options,
    own_kernel,
    run_script,
    targets,
    traces,
    traces_in_pickle,
    updated_model,
)
from support.refits import with_fixed_functions
from support.tolerances import assert_close


def values_of_row(case, model, rows, at):
    """What a model knows about the row at one position: as it was given, and what was computed from it.

    With penalty="coef" the rows of the first fit stay, in the basis functions; the certificate says so.
    """
    row = rows[at]
    root = np.sqrt(case.metadata([row]).get("sample_weight", [1.0])[0])
    K = np.delete(
        gram(X[[row]], X[rows])[0]
        if case.kernel == "precomputed"
        else model.kernel_.gram(model.X_fit_[[at]], model.X_fit_)[0],
        at,
    )
    given = {"id": f"patient {row:02}", "kernel": K[(K != 0) & (K != 1)]}
    keeps_functions = model.penalty == "coef"
    if not keeps_functions:
        given["coefficient"] = model.dual_coef_[at]
    if case.kernel != "precomputed" and not keeps_functions:
        x = model.X_fit_[[at]]
        x = x.toarray()[0] if sp.issparse(x) else x[0]
        given |= {"features": x[x != 0], "square": x @ x}
    if case.kind == "LSSVR":
        given |= {"target": case.targets([row])[0], "leave-one-out": model.loo_predict()[at]}
    if case.weights != "none":
        given |= {"weight": W[row], "root": root}
    if case.confounds:
        given["confounds"] = model._fitted_task.problem.Q[at, -C.shape[1] :]  # as they are stored
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


@pytest.mark.many_cases
@pytest.mark.parametrize("case", TRACE_CASES, ids=str)
@pytest.mark.parametrize("asked", [False, True])
def test_forgotten_rows_leave_no_trace(case, asked):
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
        wanted = [values_of_row(case, model, rows, at) for at in gone]
        wanted = {f"{key} of {at}": value for at, each in zip(gone, wanted, strict=True) for key, value in each.items()}
        if not asked:
            model._loo_values = None
        seen = traces(model, wanted)
        held = [key for key in wanted if key.split()[0] in ("id", "features", "target", "weight", "confounds")]
        assert seen >= set(held)
        assert traces_in_pickle(model, wanted) >= set(held)
        model.forget(gone)
        rows = np.delete(rows, gone).tolist()
        assert not traces(model, wanted)
        assert not traces_in_pickle(model, wanted)
        for other in (copy.deepcopy(model), copy.copy(model), pickle.loads(pickle.dumps(model))):
            assert not traces(other, wanted)


@every_penalty
def test_confounds_are_about_the_mean_of_the_rows_that_are_left(penalty):
    """A mean remembers rows: that of the first fit goes with them, and P with it."""
    confounds = C + 100.0
    model = LSSVR(gamma=0.1, penalty=penalty).fit(X[:20], VALUES[:20], confounds=confounds[:20])
    model.partial_fit(X[20:24], VALUES[20:24], confounds=confounds[20:24])
    model.forget([0, 2, 5])
    assert model._parts.full_fit.own_precision.grows
    rest = np.delete(np.arange(24), [0, 2, 5])
    for origin in (model._fitted_task.problem.origin, model._confound_mean):
        np.testing.assert_allclose(origin, confounds[rest].mean(0), rtol=1e-14)
    new = with_fixed_functions(LSSVR(gamma=0.1, penalty=penalty), X[:20])
    new.fit(X[rest], VALUES[rest], confounds=confounds[rest])
    np.testing.assert_allclose(model.predict(X, confounds), new.predict(X, confounds), rtol=1e-9)
    np.testing.assert_allclose(model.loo_predict(), new.loo_predict(), rtol=1e-9)
    assert model.unlearning_certificate().holds


@every_kind
@every_penalty
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("n_confounds", [1, 2])
def test_rows_with_confounds_come_and_go(kind, penalty, fit_intercept, n_confounds):
    """Also rows of weight 0: without them the mean of the confounds is what it was, but not that of the last fit."""
    confounds, weights, y = C[:, :n_confounds] + 2.0, np.where(np.arange(N) % 3, W, 0.0), targets(kind)

    def given(rows):
        return {"sample_weight": weights[rows], "confounds": confounds[rows]}

    estimator = kind(gamma=0.2, alpha=0.5, penalty=penalty, fit_intercept=fit_intercept)
    rows = np.arange(20)
    model = clone(estimator).fit(X[rows], y[rows], **given(rows))
    refitted = with_fixed_functions(estimator, X[rows], weights[rows])
    new, more = np.arange(20, 28), np.arange(28, 31)
    for learnt, forgotten in (([], [1]), (new, []), ([], [2]), ([], [0, 3, 10]), (more, [5])):
        if len(learnt):
            model.partial_fit(X[learnt], y[learnt], **given(learnt))
        model.forget(forgotten)
        rows = np.delete(np.append(rows, learnt).astype(int), forgotten)
        again = clone(refitted).fit(X[rows], y[rows], **given(rows))
        method = "predict" if kind is LSSVR else "decision_function"
        assert_close(getattr(model, method)(X, confounds), getattr(again, method)(X, confounds))
        assert_close(getattr(model, f"loo_{method}")(), getattr(again, f"loo_{method}")())


def test_traces_are_found_while_rows_are_in_the_model():
    """Kernel values are in Z, also those of rows in the middle of the array."""
    model = updated_model(LSSVR)
    wanted = {"kernel": gram(X[[4]], X[[7]])[0, 0], "row": X[4], "target": VALUES[4, 0]}
    assert traces(model, wanted) == {"kernel", "row", "target"}
    assert traces(pickle.loads(pickle.dumps(model)), wanted) == {"row", "target"}  # pickles hold no P
    assert traces_in_pickle(model, wanted) == {"row", "target"}


@every_penalty
def test_arrays_are_zero_at_forgotten_rows(penalty):
    held = updated_model(LSSVR, penalty=penalty).forget([2, 7])._parts.full_fit.own_precision._held
    for triangle in (np.tril(held.H), np.triu(held.Z)):
        assert not triangle[held.free].any()
        assert not triangle[:, held.free].any()
        assert triangle.any()


@every_kind
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_first_single_row_leaves_no_trace_when_forgotten(kind, kernel):
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
    if parts is None or isinstance(item, np.ndarray | type | types.FunctionType | types.ModuleType):
        return {path: item}
    return {key: value for name, part in parts.items() for key, value in state(part, f"{path}.{name}").items()}


# A fit takes the mean out of linear features and measures them without it, updates do not; SciPy notes what it found
# out about sparse arrays.
HISTORY = ("_n_forgotten", "holder_", ".shift", "_has_canonical_format", "_has_sorted_indices")


def is_history(key):
    return key.endswith(HISTORY) or ".lazy_mean_diagonal." in key


STATE_CASES = [case for case in TRACE_CASES if dict(case.options).get("penalty") != "coef"]
STATE_CASES.append(Case("LSSVR", "one", options(kernel="linear"), features=3))


@pytest.mark.parametrize("case", STATE_CASES, ids=str)
def test_state_after_updates_holds_what_a_fit_holds(case):
    script = (("learn", [22, 23]), ("forget", [0, 5, 22]), ("forget", list(range(14))), ("forget", [3]))
    *_, (model, rows) = run_script(case, script=script)
    if hasattr(model, "predict_proba"):
        model.predict_proba(case.new_inputs(rows))  # calibrated only when asked for
    ours, theirs = (state(pickle.loads(pickle.dumps(each))) for each in (model, case.refit(rows)))
    ours, theirs = ({k: v for k, v in each.items() if not is_history(k)} for each in (ours, theirs))
    assert ours.keys() == theirs.keys()
    for key, value in theirs.items():
        if np.asarray(value).dtype.kind == "f":
            np.testing.assert_allclose(ours[key], value, rtol=1e-7, atol=1e-7, err_msg=key)
        elif np.asarray(value).dtype.kind in "iubUS":
            np.testing.assert_array_equal(ours[key], value, err_msg=key)


@pytest.mark.many_cases
@every_kind
@every_penalty
@pytest.mark.parametrize("case_name", COPIES)
@pytest.mark.parametrize("asked", [False, True])
def test_copies_are_independent(kind, penalty, case_name, asked):
    def learn(m):
        return m.partial_fit(X[30:33], targets(kind, [30, 31, 32]), ids=["x", "y", "z"])

    def make():
        return updated_model(kind, penalty=penalty, ids=IDS["strings"])

    model = make()
    if asked:
        model.loo_predict()
    other = COPIES[case_name](model)
    assert pickle.dumps(COPIES[case_name](model)) == pickle.dumps(other)
    learn(other)
    assert_same(all_outputs(model), all_outputs(make()))
    model.forget([4, 9])
    assert_same(all_outputs(other), all_outputs(learn(make())))
    other.forget([0])
    assert_same(all_outputs(model), all_outputs(make().forget([4, 9])))
    assert_same(all_outputs(other), all_outputs(learn(make()).forget([0])))
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


@every_kind
@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize("start", ["partial_fit", "fit"])
def test_updates_copy_the_buffers_they_are_given(kind, size, start):
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
    assert_same(all_outputs(model), all_outputs(kind(gamma=0.2, alpha=0.3).fit(X, y, **metadata)))
