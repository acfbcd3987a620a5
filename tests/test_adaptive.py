"""AdaptiveKDA against plain refits: fits, updates in blocks, leave-one-out, the meaning of rows, ids and classes."""

import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from cases import assert_close
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from foldless import AdaptiveKDA, reference
from foldless.estimators import adaptive as _adaptive
from foldless.kernels import resolve
from foldless.online.minimum_norm import MinimumNorm, RankError, pseudo_solve

EPS = np.finfo(float).eps
RNG = np.random.default_rng(3)
X = RNG.normal(size=(36, 4))
X_NEW = RNG.normal(size=(9, 4))
LABELS = {c: np.array(["ash", "beech", "cedar", "douglas"])[RNG.permutation(np.arange(36) % c)] for c in (2, 3, 4)}
OPTIONS = {"gamma": 0.2, "eta": 0.5, "degree": 2}


def target_columns(y, classes, targets, train):
    """Targets of all rows by the class sizes of ``train``; one column for two classes, else one for each."""
    columns = []
    for label in classes[1:] if len(classes) == 2 else classes:
        own = np.sum(y[train] == label)
        rest = len(train) - own
        if targets == "pm1":
            values = (1.0, -1.0)
        else:
            values = (len(train) / own if own else 0.0, -len(train) / rest if rest else 0.0)
        columns.append(np.where(y == label, *values))
    return np.column_stack(columns)


def refitted(K, y, classes, train, test, alpha, targets):
    """Decisions at ``test`` of the model fitted to ``train``, by the oracle."""
    fits = reference.minimum_norm_fits(K, target_columns(y, classes, targets, train), train, test, alpha)
    return fits[:, 0] if len(classes) == 2 else fits


def refitted_loo(K, y, classes, alpha, targets):
    rows = np.arange(len(y))
    return np.concatenate([refitted(K, y, classes, np.delete(rows, i), [i], alpha, targets) for i in rows])


def tolerance(K, alpha):
    return max(1e-8, 100 * EPS * np.linalg.cond(K + alpha * np.eye(len(K))))


def assert_same_model(model, other, rtol=1e-8):
    """Everything that can be seen of two models agrees."""
    np.testing.assert_array_equal(model.classes_, other.classes_)
    np.testing.assert_array_equal(model._y, other._y)
    assert model.ids_ == other.ids_
    assert_close(model.decision_function(X_NEW), other.decision_function(X_NEW), rtol=rtol)
    assert_close(model.dual_coef_, other.dual_coef_, rtol=rtol)
    assert_close(model.intercept_, other.intercept_, scale=np.abs(other.dual_coef_).max(), rtol=rtol)
    assert_close(model.loo_decision_function(), other.loo_decision_function(), rtol=rtol)


# -- fits and leave-one-out -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("targets", ["pm1", "fisher"])
@pytest.mark.parametrize("alpha", [1e-7, 1e-3, 1.0, 1e2])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "laplacian", "boolean", "cosine"])
def test_fits_and_leave_one_out_equal_refits(kernel, alpha, targets, n_classes):
    rows = np.vstack([X, X_NEW])
    rows = (rows > 0).astype(float) if kernel == "boolean" else rows
    y = LABELS[n_classes]
    model = AdaptiveKDA(kernel, alpha=alpha, targets=targets, **OPTIONS).fit(rows[:36], y)
    K = resolve(kernel, rows, **OPTIONS).gram(rows)
    inner, rtol = K[:36, :36], tolerance(K[:36, :36], alpha)
    padded = np.append(y, y[:9])  # the oracle takes one array of labels; those of new rows are not looked at
    expected = refitted(K, padded, model.classes_, np.arange(36), np.arange(36, 45), alpha, targets)
    assert_close(model.decision_function(rows[36:]), expected, rtol=rtol)
    expected = refitted_loo(inner, y, model.classes_, alpha, targets)
    # Held-out fits that are small beside the targets are differences of numbers of the size of the targets.
    scale = max(1.0, np.abs(expected).max())
    assert_close(model.loo_decision_function(), expected, rtol=rtol, scale=scale)
    assert_close(model.loo_decision_function("downdate"), expected, rtol=rtol, scale=scale)


@pytest.mark.parametrize("targets", ["pm1", "fisher"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_predictions_and_scores_follow_decisions(n_classes, targets):
    model = AdaptiveKDA(gamma=0.2, targets=targets).fit(X, LABELS[n_classes])
    for decision, predicted in (
        (model.decision_function(X_NEW), model.predict(X_NEW)),
        (model.loo_decision_function(), model.loo_predict()),
    ):
        codes = (decision > 0).astype(int) if n_classes == 2 else decision.argmax(1)
        np.testing.assert_array_equal(predicted, model.classes_[codes])
    assert model.loo_score_ == np.mean(model.loo_predict() == LABELS[n_classes])


@pytest.mark.parametrize("targets", ["pm1", "fisher"])
def test_a_row_alone_in_its_class_leaves_the_class_without_rows(targets):
    y = np.where(np.arange(12) == 5, "rare", np.array(["a", "b"])[np.arange(12) % 2])
    for labels in (y, np.where(y == "rare", "rare", "other")):
        model = AdaptiveKDA(gamma=0.2, alpha=0.1, targets=targets).fit(X[:12], labels)
        K = resolve("rbf", X[:12], gamma=0.2).gram(X[:12])
        expected = refitted_loo(K, labels, model.classes_, 0.1, targets)
        for method in ("closed", "downdate"):
            assert_close(model.loo_decision_function(method), expected)


def test_two_rows_are_enough_to_leave_one_out_and_one_is_not():
    model = AdaptiveKDA(gamma=0.2, alpha=0.1).fit(X[:2], ["a", "b"])
    K = resolve("rbf", X[:2], gamma=0.2).gram(X[:2])
    expected = refitted_loo(K, np.array(["a", "b"]), model.classes_, 0.1, "pm1")
    assert_close(model.loo_decision_function(), expected)
    assert_close(model.loo_decision_function("downdate"), expected)
    alone = AdaptiveKDA(gamma=0.2).partial_fit(X[:1], ["a"], classes=["a", "b"])
    assert alone.predict(X_NEW[:1]) == "a"
    with pytest.raises(ValueError, match="one row"):
        alone.loo_decision_function()


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("targets", ["pm1", "fisher"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_no_penalty_is_the_pseudo_inverse(kernel, targets, n_classes):
    rows, y = np.vstack([X, X[:6]]), np.append(LABELS[n_classes], LABELS[n_classes][6:12])  # equal rows, other labels
    model = AdaptiveKDA(kernel, gamma=1.0, alpha=0, targets=targets).fit(rows, y)
    everything = np.vstack([rows, X_NEW])
    K = resolve(kernel, everything, gamma=1.0).gram(everything)
    padded = np.append(y, y[:9])
    expected = refitted(K, padded, model.classes_, np.arange(42), np.arange(42, 51), 0.0, targets)
    assert_close(model.decision_function(X_NEW), expected)
    for call in (
        lambda: model.partial_fit(X_NEW, y[:9]),
        lambda: model.forget([0]),
        model.loo_decision_function,
        model.loo_predict,
    ):
        with pytest.raises(ValueError, match="alpha=0"):
            call()


def test_the_limit_of_a_small_penalty_is_no_penalty():
    small, none = (AdaptiveKDA("linear", alpha=alpha).fit(X, LABELS[3]) for alpha in (1e-9, 0))
    # z is unique up to what the kernel cannot see; the smallest of them is approached for n > d
    assert_close(small.decision_function(X_NEW), none.decision_function(X_NEW), rtol=1e-5)


def test_float32_input_is_computed_in_double_precision():
    single = X.astype(np.float32)
    model, double = (AdaptiveKDA(gamma=0.2, alpha=1e-6).fit(data, LABELS[3]) for data in (single, single.astype(float)))
    assert_same_model(model, double, rtol=0)
    model.partial_fit(X_NEW.astype(np.float32), LABELS[3][:9]).forget([0, 7])
    double.partial_fit(X_NEW.astype(np.float32).astype(float), LABELS[3][:9]).forget([0, 7])
    assert_same_model(model, double, rtol=0)


# -- the factorisation ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [1e-7, 1e-2, 1e2])
@pytest.mark.parametrize("p", [1, 2, 5, 20])
def test_blocks_of_rows_come_and_go(p, alpha):
    K = resolve("rbf", X, gamma=0.2).gram(X)
    Y = np.eye(3)[RNG.integers(3, size=36)]
    rtol = tolerance(K, alpha)
    n = 36 - p
    start, whole = MinimumNorm(K[:n, :n], alpha), MinimumNorm(K, alpha)
    before = start.solve(Y[:n]), whole.solve(Y)
    assert_close(start.insert(K[:n, n:], K[n:, n:]).solve(Y), whole.solve(Y), rtol=rtol)
    for rows in (np.arange(p), np.arange(n, 36), np.sort(RNG.permutation(36)[:p])):
        stay = np.delete(np.arange(36), rows)
        shrunk = whole.remove(rows)
        expected = MinimumNorm(K[np.ix_(stay, stay)], alpha)
        assert shrunk.n == n
        assert_close(shrunk.solve(Y[stay]), expected.solve(Y[stay]), rtol=rtol)
        assert_close(shrunk.loo(Y[stay]), expected.loo(Y[stay]), rtol=rtol)
    np.testing.assert_array_equal(start.solve(Y[:n]), before[0])  # updates are new objects
    np.testing.assert_array_equal(whole.solve(Y), before[1])


def test_solutions_solve_the_equations_and_are_the_least_ones():
    K = resolve("rbf", X, gamma=0.2).gram(X)
    G = np.column_stack([np.ones(36), K + 0.01 * np.eye(36)])
    Y = RNG.normal(size=(36, 2))
    solution = MinimumNorm(K, 0.01).solve(Y)
    assert_close(G @ solution, Y)
    null = np.linalg.svd(G)[2][-1]
    assert_close(G @ null, np.zeros(36), scale=1.0, rtol=1e-13)
    assert_close(null @ solution, np.zeros(2), scale=np.abs(solution).max())


def test_dependent_equations_are_refused():
    K = np.ones((5, 5))
    with pytest.raises(RankError, match="larger alpha"):
        MinimumNorm(1e3 * K, 1e-14)
    factors = MinimumNorm(K, 0.5)
    with pytest.raises(RankError, match="larger alpha"):
        factors.insert(np.array([[1.5, 1.0, 1.0, 1.0, 1.0]]).T, np.array([[1.0]]))  # the first equation once more
    # [1, M] has full rank, but without its last row the two equations left are the same
    indefinite = np.array([[0.5, 1.5, 0.0], [1.5, 0.5, 1.0], [0.0, 1.0, 2.0]])
    assert np.linalg.matrix_rank(np.column_stack([np.ones(3), indefinite + np.eye(3)])) == 3
    whole = MinimumNorm(indefinite, 1.0)
    for loo in (whole.loo, whole.loo_downdate):
        with pytest.raises(RankError):
            loo(np.eye(3))


def test_pseudo_solve_is_the_least_squares_solution_of_least_norm():
    K = np.ones((4, 4))
    Y = np.array([[1.0], [2.0], [3.0], [6.0]])
    assert_close(pseudo_solve(K, Y), np.full((5, 1), 3.0 / 5))


# -- updates of the model ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("targets", ["pm1", "fisher"])
@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("alpha", [1e-7, 1e-3, 1e2])
@pytest.mark.parametrize("sparse", [False, True])
def test_learning_and_forgetting_equal_a_fit_from_scratch(sparse, alpha, n_classes, targets):
    rng = np.random.default_rng(11)
    data = sp.csr_matrix(X) if sparse else X
    y = LABELS[n_classes]
    model = AdaptiveKDA(gamma=0.2, alpha=alpha, targets=targets)
    rows = []
    K = resolve("rbf", X, gamma=0.2).gram(X)
    for first, last in pairwise([0, 8, 9, 12, 20, 21, 36]):
        model.partial_fit(data[first:last], y[first:last])
        rows += range(first, last)
        gone = np.sort(rng.permutation(len(rows))[: rng.integers(1, 4)])
        model.forget(gone)
        rows = np.delete(rows, gone).tolist()
        fresh = clone(model).fit(data[rows], y[rows])
        assert sp.issparse(model.X_fit_) == sparse
        assert_same_model(model, fresh, rtol=tolerance(K[np.ix_(rows, rows)], alpha))


def test_many_updates_stay_with_the_refit(monkeypatch):
    rng = np.random.default_rng(5)
    monkeypatch.setattr(_adaptive, "REFRESH", 10_000)  # none of the steps below is a factorisation
    pool = rng.normal(size=(400, 3))
    y = (pool[:, 0] + rng.normal(size=400) > 0).astype(int)
    model = AdaptiveKDA(gamma=0.3, alpha=1e-4, targets="fisher").fit(pool[:60], y[:60])
    rows = list(range(60))
    for step in range(600):
        if (rng.random() < 0.5 and len(rows) < 75) or len(rows) < 50:
            new = np.setdiff1d(rng.integers(0, 400, rng.integers(1, 4)), rows)
            if len(new):
                model.partial_fit(pool[new], y[new])
                rows += new.tolist()
        else:
            gone = np.sort(rng.permutation(len(rows))[: rng.integers(1, 4)])
            model.forget(gone)
            rows = np.delete(rows, gone).tolist()
        if step % 100 == 99:
            fresh = clone(model).fit(pool[rows], y[rows])
            rtol = tolerance(fresh.kernel_.gram(pool[rows]), 1e-4)
            assert_close(model.dual_coef_, fresh.dual_coef_, rtol=rtol)
            assert_close(model.loo_decision_function(), fresh.loo_decision_function(), rtol=rtol)
            assert fresh.residual_ < 10 * EPS
            assert model.residual_ < 100 * EPS
    assert model._qr.updates > 500


def test_factors_are_made_anew_after_many_updates(monkeypatch):
    monkeypatch.setattr(_adaptive, "REFRESH", 3)
    model = AdaptiveKDA(gamma=0.2).fit(X, LABELS[3])
    seen = []
    for step in range(8):
        model.partial_fit(X_NEW[[step]], LABELS[3][[step]])
        seen.append(model._qr.updates)
    assert seen == [1, 2, 3, 0, 1, 2, 3, 0]
    assert_same_model(model, clone(model).fit(model.X_fit_, model._y))


def test_the_residual_shows_wrong_factors():
    model = AdaptiveKDA(gamma=0.2).fit(X, LABELS[3])
    model._qr._R[3, 7] += 1e-3
    model.partial_fit(X_NEW[:1], LABELS[3][:1])
    assert model.residual_ > 1e-7


@pytest.mark.parametrize("n_gone", [1, 3, 24, 25, 30])
def test_any_number_of_rows_may_go_at_once(n_gone):
    model = AdaptiveKDA(gamma=0.2).fit(X, LABELS[2])
    gone = np.sort(RNG.permutation(36)[:n_gone])
    model.forget(gone)
    stay = np.delete(np.arange(36), gone)
    assert_same_model(model, clone(model).fit(X[stay], LABELS[2][stay]))


def test_gamma_scale_is_resolved_once():
    model = AdaptiveKDA().fit(X, LABELS[2])
    gamma = model.kernel_.gamma
    model.partial_fit(10 * X_NEW, LABELS[2][:9])
    assert model.kernel_.gamma == gamma
    assert_same_model(
        model, AdaptiveKDA(gamma=gamma).fit(np.vstack([X, 10 * X_NEW]), np.append(LABELS[2], LABELS[2][:9]))
    )
    assert model.fit(10 * X, LABELS[2]).kernel_.gamma == pytest.approx(gamma / 100)


def test_updates_continue_the_fit_they_were_made_with():
    model = AdaptiveKDA(gamma=0.2, alpha=0.1).fit(X, LABELS[2]).set_params(alpha=5.0, targets="fisher")
    before = state(model)
    for call in (lambda: model.partial_fit(X_NEW, LABELS[2][:9]), lambda: model.forget([0])):
        with pytest.raises(ValueError, match="alpha, targets: changed"):
            call()
    assert_unchanged(model, before)
    expected = AdaptiveKDA(gamma=0.2, alpha=0.1).fit(X, LABELS[2])
    assert_same_model(model, expected)
    assert_same_model(model.set_params(alpha=0.1, targets="pm1").forget([0]), expected.forget([0]))


def test_a_width_told_from_few_rows_is_warned_of():
    with pytest.warns(UserWarning, match="from the 6 rows") as seen:
        AdaptiveKDA().partial_fit(X[:6], LABELS[2][:6], classes=np.unique(LABELS[2]))
    assert seen[0].filename == __file__
    AdaptiveKDA(gamma=0.1).partial_fit(X[:6], LABELS[2][:6], classes=np.unique(LABELS[2]))
    AdaptiveKDA("linear").partial_fit(X[:6], LABELS[2][:6], classes=np.unique(LABELS[2]))
    AdaptiveKDA().partial_fit(X, LABELS[2])
    AdaptiveKDA().fit(X[:6], LABELS[3][:6])


def test_dense_and_sparse_rows_may_follow_each_other():
    y = LABELS[3]
    expected = AdaptiveKDA(gamma=0.2).fit(X, y)
    for first, second in ((X, sp.csr_matrix(X)), (sp.csr_array(X), X)):
        model = AdaptiveKDA(gamma=0.2).partial_fit(first[:30], y[:30]).partial_fit(second[30:], y[30:])
        assert sp.issparse(model.X_fit_) == sp.issparse(first)
        assert_same_model(model, expected)


def test_rows_are_copied():
    data = X.copy()
    model = AdaptiveKDA(gamma=0.2).fit(data, LABELS[2])
    data[:] = 0.0
    model.partial_fit(X_NEW, LABELS[2][:9])
    assert_same_model(model, clone(model).fit(np.vstack([X, X_NEW]), np.append(LABELS[2], LABELS[2][:9])))


def test_linear_weights():
    for c in (2, 3):
        model = AdaptiveKDA("linear").fit(X, LABELS[c]).forget([1, 2])
        decision = model.decision_function(X_NEW)
        assert_close((X_NEW @ model.coef_.T + model.intercept_).reshape(decision.shape), decision)
    with pytest.raises(AttributeError, match="linear"):
        AdaptiveKDA().fit(X, LABELS[2]).coef_  # noqa: B018


# -- rows, ids and classes --------------------------------------------------------------------------------------------


def test_positions_masks_and_ids_name_the_same_rows():
    names = [f"row {i}" for i in range(36)]
    start = AdaptiveKDA(gamma=0.2).fit(X, LABELS[3], ids=names)
    stay = np.delete(np.arange(36), [2, 3, 30])
    expected = clone(start).fit(X[stay], LABELS[3][stay], ids=[names[i] for i in stay])
    mask = np.isin(np.arange(36), [2, 3, 30])
    for arguments in ({"indices": [30, 2, 3]}, {"indices": mask}, {"ids": ["row 3", "row 30", "row 2"]}):
        model = clone(start).fit(X, LABELS[3], ids=names).forget(**arguments)
        assert_same_model(model, expected)
    assert_same_model(start.forget([]), clone(start).fit(X, LABELS[3], ids=names))
    later = start.forget(ids=["row 0"]).forget([0]).partial_fit(X_NEW[:1], ["ash"], ids=["row 0"])
    assert later.ids_ == [*names[2:], "row 0"]
    np.testing.assert_array_equal(later.forget(ids="row 0").X_fit_, X[2:])


def test_classes_come_and_go_with_their_rows():
    y = LABELS[3]
    model = AdaptiveKDA(gamma=0.2).fit(X, y).partial_fit(X_NEW[:2], ["dogwood", "ash"])
    assert model.classes_.tolist() == ["ash", "beech", "cedar", "dogwood"]
    assert model.decision_function(X_NEW).shape == (9, 4)
    model.forget([36])
    assert model.classes_.tolist() == ["ash", "beech", "cedar"]
    assert_same_model(model, clone(model).fit(np.vstack([X, X_NEW[1:2]]), np.append(y, "ash")))
    model.forget(model._y == "cedar")
    assert model.classes_.tolist() == ["ash", "beech"]
    assert model.decision_function(X_NEW).shape == (9,)
    with pytest.raises(ValueError, match="one class only"):
        model.forget(model._y == "ash")
    assert model.classes_.tolist() == ["ash", "beech"]


@pytest.mark.parametrize("targets", ["pm1", "fisher"])
def test_named_classes_stay_without_rows(targets):
    y = LABELS[3]
    model = AdaptiveKDA(gamma=0.2, targets=targets).partial_fit(X, y, classes=["ash", "beech", "cedar", "elm"])
    assert model.classes_.tolist() == ["ash", "beech", "cedar", "elm"]
    K = resolve("rbf", np.vstack([X, X_NEW]), gamma=0.2).gram(np.vstack([X, X_NEW]))
    padded = np.append(y, y[:9])

    def expected(train):
        return refitted(K, padded, model.classes_, train, np.arange(36, 45), 1.0, targets)

    assert_close(model.decision_function(X_NEW), expected(np.arange(36)))
    model.forget(y == "ash")
    assert model.classes_.tolist() == ["ash", "beech", "cedar", "elm"]
    assert_close(model.decision_function(X_NEW), expected(np.flatnonzero(y != "ash")))
    model.partial_fit(X_NEW[:1], ["fir"]).forget([len(model.X_fit_) - 1])  # one that was not named
    assert model.classes_.tolist() == ["ash", "beech", "cedar", "elm"]
    model.partial_fit(X_NEW[:1], ["fir"], classes=["fir"]).forget([len(model.X_fit_) - 1])
    assert model.classes_.tolist() == ["ash", "beech", "cedar", "elm", "fir"]
    assert model.fit(X, y).classes_.tolist() == ["ash", "beech", "cedar"]


def test_the_first_call_may_hold_one_class_of_those_named():
    model = AdaptiveKDA(gamma=0.2).partial_fit(X[:3], [1, 1, 1], classes=[0, 1])
    assert (model.predict(X_NEW) == 1).all()
    model.partial_fit(X[3:9], [0, 1, 0, 1, 0, 1])
    assert_same_model(model, clone(model).fit(X[:9], [1, 1, 1, 0, 1, 0, 1, 0, 1]))


def state(model):
    """The attributes with a copy of every array."""
    return {key: value.copy() if hasattr(value, "copy") else value for key, value in vars(model).items()}


def assert_unchanged(model, before):
    after = vars(model)
    assert after.keys() == before.keys()
    for key, value in before.items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(after[key], value)
        else:
            assert after[key] is value or after[key] == value, key


BAD = {
    "NaN": ("partial_fit", {"X": np.full((1, 4), np.nan), "y": ["ash"]}, "NaN"),
    "other features": ("partial_fit", {"X": np.ones((1, 3)), "y": ["ash"]}, "3 features"),
    "lengths": ("partial_fit", {"X": X_NEW[:2], "y": ["ash"]}, "inconsistent"),
    "no ids": ("partial_fit", {"X": X_NEW[:1], "y": ["ash"]}, "have ids"),
    "id taken": ("partial_fit", {"X": X_NEW[:1], "y": ["ash"], "ids": [3]}, "belong to rows"),
    "id twice": ("partial_fit", {"X": X_NEW[:2], "y": ["ash", "ash"], "ids": [90, 90]}, "more than once"),
    "kind of label": ("partial_fit", {"X": X_NEW[:1], "y": [7], "ids": [90]}, "different kinds"),
    "kind of class": ("partial_fit", {"X": X_NEW[:1], "y": ["ash"], "classes": [7], "ids": [90]}, "different kinds"),
    "class not named": ("partial_fit", {"X": X_NEW[:1], "y": ["ash"], "classes": ["elm"], "ids": [90]}, "lacks"),
    "regression": ("partial_fit", {"X": X_NEW[:2], "y": [0.5, 0.7], "ids": [90, 91]}, "label type"),
    "out of range": ("forget", {"indices": [36]}, "out of range"),
    "negative": ("forget", {"indices": [-1]}, "out of range"),
    "position twice": ("forget", {"indices": [3, 3]}, "more than once"),
    "mask": ("forget", {"indices": np.ones(35, bool)}, "mask"),
    "unknown id": ("forget", {"ids": [3, 77]}, "77"),
    "neither": ("forget", {}, "either"),
    "all": ("forget", {"indices": range(36)}, "at least one"),
    "fit": ("fit", {"X": X, "y": ["ash"] * 36}, "one class only"),
    "fit, other features": ("fit", {"X": X[:, :2], "y": ["ash"] * 36}, "one class only"),
}


@pytest.mark.parametrize(("method", "arguments", "message"), BAD.values(), ids=BAD)
def test_a_failed_call_says_why_and_leaves_the_model_as_it_was(method, arguments, message):
    model = AdaptiveKDA(gamma=0.2).fit(X, LABELS[3], ids=range(36))
    model.loo_decision_function()
    before = state(model)
    with pytest.raises(ValueError, match=message):
        getattr(model, method)(**arguments)
    assert_unchanged(model, before)


def test_a_kernel_that_fails_leaves_the_model_as_it_was():
    def kernel(A, B):
        if (B > 50).any():
            raise MemoryError("no room")
        return np.exp(-0.2 * np.square(A[:, None] - B).sum(-1))

    model = AdaptiveKDA(kernel, alpha=0.1).fit(X, LABELS[3])
    before = state(model)
    with pytest.raises(ValueError, match="no room"):
        model.partial_fit(np.full((1, 4), 99.0), ["elm"])
    assert_unchanged(model, before)
    with pytest.raises(RankError):
        AdaptiveKDA("linear", alpha=1e-12).fit(1e4 * X, LABELS[3])


@pytest.mark.parametrize("failing", ["insert", "remove", "solve"])
def test_an_update_that_breaks_off_leaves_the_model_as_it_was(failing, monkeypatch):
    model = AdaptiveKDA(gamma=0.2).fit(X, LABELS[3])
    before, decisions = state(model), model.decision_function(X_NEW)

    def broken(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(MinimumNorm, failing, broken)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(X_NEW, LABELS[3][:9]).forget([0])
    if failing == "remove":  # the first of the two calls went through
        assert len(model.X_fit_) == 45
    else:
        assert_unchanged(model, before)
        np.testing.assert_array_equal(model.decision_function(X_NEW), decisions)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": -1.0}, "alpha=-1.0"),
        ({"alpha": np.inf}, "alpha=inf"),
        ({"alpha": True}, "alpha=True"),
        ({"targets": "centroid"}, "targets='centroid'"),
        ({"kernel": "tanh"}, "kernel='tanh'"),
    ],
)
def test_bad_parameters_are_named(options, message):
    model = AdaptiveKDA(**options)
    with pytest.raises(ValueError, match=message):
        model.fit(X, LABELS[2])
    assert not hasattr(model, "n_features_in_")
    fitted = AdaptiveKDA().fit(X, LABELS[2])
    with pytest.raises(ValueError, match="method='fast'"):
        fitted.loo_decision_function("fast")


def test_precomputed_kernels_are_fitted_but_not_updated():
    everything = np.vstack([X, X_NEW])
    K = resolve("rbf", everything, gamma=0.2).gram(everything)
    expected = AdaptiveKDA(gamma=0.2).fit(X, LABELS[3])
    for gram in (K[:36, :36], sp.csr_array(K[:36, :36])):
        model = AdaptiveKDA("precomputed").fit(gram, LABELS[3])
        assert_close(model.decision_function(K[36:, :36]), expected.decision_function(X_NEW))
        assert_close(model.loo_decision_function(), expected.loo_decision_function())
        for call in (lambda: model.partial_fit(K[36:, :36], LABELS[3][:9]), lambda: model.forget([0])):  # noqa: B023
            with pytest.raises(ValueError, match="precomputed"):
                call()
    with pytest.raises(ValueError, match="square"):
        AdaptiveKDA("precomputed").fit(X, LABELS[3])
    with pytest.raises(ValueError, match="symmetric"):
        AdaptiveKDA("precomputed").fit(np.triu(K[:36, :36]), LABELS[3])


# -- pickles and scikit-learn -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [[9], [3, 4, 11], [0]])
def test_forgotten_rows_are_gone_from_the_factors(rows):
    """SciPy's downdating returns views of larger arrays, the rest of which is the kernel of the row removed."""
    model = AdaptiveKDA(gamma=0.3).fit(X, LABELS[3]).forget(rows)
    assert model._qr._Q.base is None
    assert model._qr._R.base is None


def test_a_stream_may_use_its_buffers_again():
    rows, labels, model = np.empty((4, 4)), np.empty(4, LABELS[2].dtype), AdaptiveKDA(gamma=0.3)
    for start in range(0, 36, 4):
        rows[:], labels[:] = X[start : start + 4], LABELS[2][start : start + 4]
        model = model.partial_fit(rows, labels) if start else model.fit(rows, labels)
    assert_same_model(model, AdaptiveKDA(gamma=0.3).fit(X, LABELS[2]))


@pytest.mark.parametrize("sparse", [False, True])
def test_forgotten_rows_are_gone_from_the_pickle(sparse):
    data = X.copy()
    data[7] = [123456.789, -0.1234567, 98765.4321, 5.4321e-5]
    y = np.where(np.arange(36) == 7, "secretive", LABELS[3]).astype(object)
    given = sp.csr_matrix(data) if sparse else data
    model = AdaptiveKDA(gamma=1e-3).fit(given, y, ids=[f"person {i}" for i in range(36)])
    model.loo_decision_function()
    traces = [value.tobytes() for value in data[7]] + [b"secretive", b"person 7'"[:-1]]
    assert all(trace in pickle.dumps(model) for trace in traces)
    model.forget(ids=["person 7"])
    assert not any(trace in pickle.dumps(model) for trace in traces)
    stay = np.delete(np.arange(36), 7)
    assert_same_model(model, clone(model).fit(given[stay], y[stay], ids=[f"person {i}" for i in stay]))


def test_pickles_leave_the_factors_behind_and_go_on_learning():
    model = AdaptiveKDA(gamma=0.2).fit(X, LABELS[3])
    again = pickle.loads(pickle.dumps(model))
    assert again._qr is None
    np.testing.assert_array_equal(again.decision_function(X_NEW), model.decision_function(X_NEW))
    assert_same_model(
        again.partial_fit(X_NEW, LABELS[3][:9]).forget([4]), model.partial_fit(X_NEW, LABELS[3][:9]).forget([4])
    )


def expected_failures(estimator):
    if estimator.alpha == 0:
        reason = "KDA/MSE can be fitted only; its partial_fit says so"
        return dict.fromkeys(("check_fit_score_takes_y", "check_n_features_in_after_fitting"), reason)
    return {}


@parametrize_with_checks(
    [AdaptiveKDA(), AdaptiveKDA("linear", targets="fisher"), AdaptiveKDA(alpha=1e-6), AdaptiveKDA(alpha=0)],
    expected_failed_checks=expected_failures,
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_data_frames_and_their_names():
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = AdaptiveKDA(gamma=0.2).partial_fit(frame[:30], LABELS[3][:30]).partial_fit(frame[30:], LABELS[3][30:])
    assert model.feature_names_in_.tolist() == list("abcd")
    assert_same_model(clone(model).fit(X, LABELS[3]), clone(model).fit(X, pd.Series(LABELS[3])))
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(frame[list("dcba")], LABELS[3])


# -- odd data ---------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(st.integers(-2, 2), st.integers(-1, 1)), min_size=5, max_size=14),
    seed=st.integers(0, 2**16),
    kernel=st.sampled_from(["rbf", "linear", "laplacian", "cosine", "poly"]),
    alpha=st.sampled_from([1e-5, 1e-2, 1.0, 50.0]),
    targets=st.sampled_from(["pm1", "fisher"]),
)
def test_repeated_constant_and_zero_rows(rows, seed, kernel, alpha, targets):
    rng = np.random.default_rng(seed)
    data = np.array(rows, float)
    n = len(data)
    y = rng.permutation(np.arange(n) % 3)
    model = AdaptiveKDA(kernel, gamma=0.5, degree=2, alpha=alpha, targets=targets)
    model.partial_fit(data[:3], y[:3], classes=[0, 1, 2]).partial_fit(data[3:], y[3:])
    gone = np.sort(rng.permutation(n)[: rng.integers(1, n - 2)])
    model.forget(gone)
    stay = np.delete(np.arange(n), gone)
    K = resolve(kernel, data, gamma=0.5, degree=2).gram(data)
    # Equal rows with unlike labels have coefficients of opposite sign and size 1 / alpha, which cancel in the fits.
    classes, scale, rtol = np.arange(3), max(1.0, np.abs(model.dual_coef_).max()), tolerance(K, alpha) / 10
    expected = refitted(K, y, classes, stay, np.arange(n), alpha, targets)
    assert_close(model.decision_function(data), expected, rtol=rtol, scale=scale)
    expected = refitted_loo(K[np.ix_(stay, stay)], y[stay], classes, alpha, targets)
    for method in ("closed", "downdate"):
        assert_close(model.loo_decision_function(method), expected, rtol=rtol, scale=scale)


# -- the paper's example ----------------------------------------------------------------------------------------------

# Section 6.2, read from a damaged table: twelve first coordinates, but thirteen digits for the second ones, the last
# four of them 9 4 1 4. The classes are "nonlinearly separable"; those of the first eleven points lie on either side of
# x1 + x2 = 10.5, and it takes (4, 1) or (4, 4) as the twelfth to mix them. The last digit, beside a lost bracket, is
# taken for the stray one.
POINTS = np.column_stack([[2, 3, 2, 8, 6, 4, 9, 9, 9, 6, 7, 4], [7, 6, 2, 1, 4, 8, 5, 9, 4, 9, 4, 1]]).astype(float)
SIGNS = np.array([-1] * 5 + [1] * 7)


@pytest.mark.parametrize("last", [(4.0, 1.0), (4.0, 4.0)], ids=["(4, 1)", "(4, 4)"])
def test_boundaries_of_the_papers_example(last):
    points = POINTS.copy()
    points[11] = last
    side = np.sign(points.sum(1) - 10.5)
    assert (side[:11] == SIGNS[:11]).all()
    assert side[11] != SIGNS[11]
    axis = np.linspace(0, 11, 45)
    grid = np.column_stack([each.ravel() for each in np.meshgrid(axis, axis)])
    model = AdaptiveKDA(gamma=0.1, alpha=1e-7)
    removed = model.fit(points, SIGNS).forget([11]).decision_function(grid)
    inserted = model.fit(points, SIGNS).partial_fit([[9, 8]], [1]).decision_function(grid)
    for adaptive, rows, y in (
        (removed, points[:11], SIGNS[:11]),
        (inserted, np.vstack([points, [9, 8]]), np.append(SIGNS, 1)),
    ):
        both = np.vstack([rows, grid])
        K = np.exp(-0.1 * np.square(both[:, None] - both).sum(-1))
        train, test = np.arange(len(rows)), np.arange(len(rows), len(both))
        padded = np.append(y, np.ones(len(grid)))
        refit = refitted(K, padded, np.array([-1, 1]), train, test, 1e-7, "pm1")
        assert_close(adaptive, refit)
        np.testing.assert_array_equal(adaptive > 0, refit > 0)
