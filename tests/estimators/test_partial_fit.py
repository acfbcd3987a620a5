"""partial_fit and forget: after any sequence the model is the one fitted on the rows it then has."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

import foldless._engine.precision.growing as growing
from foldless import LSSVC, LSSVR
from support.online import (
    C_NEW,
    IDS,
    LABELS,
    LOO,
    PENALTIES,
    SCRIPT,
    START,
    VALUES,
    Case,
    D,
    N,
    X,
    all_outputs,
    assert_same,
    every_kind,
    fitted_on,
    options,
    own_kernel,
    run_script,
    targets,
    updated_model,
)
from support.refits import with_fixed_functions
from support.tolerances import assert_close

KERNELS = ("rbf", "linear", "poly", "laplacian", "boolean", "cosine", "precomputed", own_kernel)

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


@pytest.mark.many_cases
@pytest.mark.parametrize(("start", "case"), STARTS, ids=lambda value: str(value))
def test_updated_models_equal_refits(start, case):
    holders = set()
    for step, (model, rows) in enumerate(run_script(case, start)):
        holders.add(model.holder_.split(":")[0])
        last = step == len(SCRIPT) - 1
        if not last and step % 3 != (start == "fit"):
            continue
        new, confounds = case.new_inputs(rows), C_NEW if case.confounds else None
        loo = LOO if last and start == "fit" else LOO[:3]
        expected = all_outputs(case.refit(rows, START), new, confounds, loo)
        assert_same(all_outputs(model, new, confounds, loo), expected, {"float32": 1e-2}.get(case.dtype))
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
def test_long_random_sequences_of_updates_equal_refits(case):
    rng = np.random.default_rng(0)
    rows = first = list(range(15))
    model = case.estimator().fit(case.inputs(rows), case.targets(rows), **case.metadata(rows))
    for step in range(120):
        if rng.random() < (0.7 if len(rows) < 25 else 0.3):
            which = rng.choice(np.setdiff1d(np.arange(N), rows), rng.integers(1, 4), replace=False).tolist()
            model.partial_fit(case.inputs(which, rows), case.targets(which), **case.metadata(which))
            rows = [*rows, *which]
        else:
            which = rng.choice(len(rows), rng.integers(1, 4), replace=False)
            model.forget(which)
            rows = np.delete(rows, which).tolist()
        if step % 20 == 19:
            new = case.new_inputs(rows)
            assert_same(all_outputs(model, new, loo=LOO[:3]), all_outputs(case.refit(rows, first), new, loo=LOO[:3]))
            certificate = model.unlearning_certificate()
            assert certificate.holds
            assert certificate.n_samples == len(rows)
            assert model.drift_ < 1e-6


def test_gamma_scale_stays_as_the_first_fit_resolved_it():
    model = LSSVC().fit(X[:30], LABELS[3][:30])
    gamma = model.kernel_.gamma
    model.partial_fit(5 * X[30:], LABELS[3][30:]).forget(np.arange(20))
    assert model.kernel_.gamma == gamma == pytest.approx(1 / (D * X[:30].var()))
    rows = np.vstack([X[20:30], 5 * X[30:]])
    assert_same(all_outputs(model), all_outputs(LSSVC(gamma=gamma).fit(rows, LABELS[3][20:])))


def test_gamma_scale_from_few_rows_warns_in_partial_fit():
    with pytest.warns(UserWarning, match=r"gamma='scale' is resolved from the 5 rows.*Give a number") as caught:
        LSSVC().partial_fit(X[:5], list("ababa"))
    assert caught[0].filename == __file__
    LSSVC().partial_fit(X[:20], LABELS[3][:20])  # warnings are errors here
    LSSVC("linear").partial_fit(X[:5], list("ababa"))
    LSSVC().fit(X[:5], list("ababa"))


@every_kind
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
    model = updated_model(kind).forget(which)
    assert_same(all_outputs(model) | {"ids_": None}, all_outputs(fitted_on(kind, np.delete(np.arange(20), gone))))


@every_kind
def test_positions_of_later_rows_move_up_after_forgetting(kind):
    model = updated_model(kind)
    for _ in range(3):
        model.forget([2])
    np.testing.assert_array_equal(model.X_fit_, X[[0, 1, *range(5, 20)]])
    model.partial_fit(X[[30]], targets(kind, [30])).forget(17)
    np.testing.assert_array_equal(model.X_fit_, X[[0, 1, *range(5, 20)]])
    assert_same(all_outputs(model), all_outputs(fitted_on(kind, [0, 1, *range(5, 20)])))


@every_kind
@pytest.mark.parametrize(
    "none", [[], (), np.zeros(20, bool), np.array([], int)], ids=["list", "tuple", "mask", "array"]
)
def test_forgetting_nothing_changes_nothing(kind, none):
    model = updated_model(kind)
    before = pickle.dumps(model)
    assert model.forget(none) is model
    assert pickle.dumps(model) == before


@every_kind
@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
def test_ids_stay_with_their_rows(kind, ids):
    model = updated_model(kind, ids=ids)
    assert model.ids_ == ids[:20]
    model.forget(ids=[ids[5], ids[2]]).forget([0])
    rows = [1, 3, 4, *range(6, 20)]
    assert model.ids_ == [ids[row] for row in rows]
    model.forget(ids=[ids[19]]).partial_fit(X[[2]], targets(kind, [2]), ids=[ids[2]])  # an id may come back
    rows = [*rows[:-1], 2]
    assert model.ids_ == [ids[row] for row in rows]
    assert_same(all_outputs(model) | {"ids_": None}, all_outputs(fitted_on(kind, rows)) | {"ids_": None})
    assert clone(model).fit(X, targets(kind)).ids_ is None


@pytest.mark.parametrize(
    "form", [np.array, pd.Series, pl.Series, tuple, iter], ids=["array", "pandas", "polars", "tuple", "iterator"]
)
def test_ids_come_in_any_container(form):
    model = LSSVR(gamma=0.2).fit(X[:20], VALUES[:20], ids=form(IDS["strings"][:20]))
    assert model.ids_ == IDS["strings"][:20]
    assert model.forget(ids=form(IDS["strings"][3:5])).ids_ == IDS["strings"][:3] + IDS["strings"][5:20]


@pytest.mark.parametrize("one", ["p03", np.str_("p03")])
def test_single_string_is_one_id(one):
    assert "p03" not in updated_model(ids=IDS["strings"]).forget(ids=one).ids_


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
        again = with_fixed_functions(clone(model), rows).fit(rows[kept], y[kept], w[kept])
        certificate = updated.unlearning_certificate()
        assert certificate.holds
        assert_close(updated.predict(new), again.predict(new), rtol=certificate.limit)
        assert_close(updated.loo_predict(), again.loo_predict(), rtol=certificate.limit)


@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
def test_loo_after_an_update_copies_no_matrix(penalty, monkeypatch):
    model = LSSVR(gamma=0.3, penalty=penalty).fit(X, X[:, 0]).forget([1])
    again = with_fixed_functions(model, X)
    expected = clone(again).fit(np.delete(X, 1, 0), np.delete(X[:, 0], 1)).loo_predict()
    monkeypatch.setattr(growing.Growing, "explicit", lambda _: pytest.fail("P was copied"))
    monkeypatch.setattr(growing.Growing, "columns", lambda *_: pytest.fail("columns of P were copied"))
    assert_close(model.loo_predict(), expected)


def test_dtype_of_classes_is_that_of_a_fit():
    y = np.array(["a", "b", "a very long label"])[np.arange(30) % 3]
    model = LSSVC(gamma=0.2).fit(X[:30], y).forget(y == "a very long label")
    assert model.classes_.dtype == np.array(["a", "b"]).dtype


def test_of_many_unknown_ids_five_are_shown():
    model = LSSVC().fit(np.eye(4), [0, 1, 0, 1], ids=list("abcd"))
    with pytest.raises(ValueError, match=r"no row of the model has 'p', 'q', 'r', 's', 't', \.\.\.\."):
        model.forget(ids=list("pqrstu"))
    with pytest.raises(ValueError, match=r"no row of the model has 'p', 'q', 'r', 's', 't'\."):
        model.forget(ids=list("pqrst"))
