"""AdaptiveKDA that learns and forgets equals a fit from scratch."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import foldless.estimators.adaptive as _adaptive
from foldless import AdaptiveKDA
from foldless.kernels import resolve
from support.adaptive import EPS, LABELS, X_NEW, X, assert_same_model, assert_unchanged, state, tolerance
from support.refits import adaptive_decision
from support.tolerances import assert_close

# -- updates of the model ---------------------------------------------------------------------------------------------


@pytest.mark.many_cases
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


def test_many_updates_equal_refit(monkeypatch):
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


def test_residual_is_large_for_wrong_factors():
    model = AdaptiveKDA(gamma=0.2).fit(X, LABELS[3])
    model._qr._R[3, 7] += 1e-3
    model.partial_fit(X_NEW[:1], LABELS[3][:1])
    assert model.residual_ > 1e-7


@pytest.mark.parametrize("n_gone", [1, 3, 24, 25, 30])
def test_forgetting_any_number_of_rows_at_once_equals_refit(n_gone):
    model = AdaptiveKDA(gamma=0.2).fit(X, LABELS[2])
    gone = np.sort(np.random.default_rng(5).permutation(36)[:n_gone])
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


def test_updates_with_changed_parameters_are_refused():
    model = AdaptiveKDA(gamma=0.2, alpha=0.1).fit(X, LABELS[2]).set_params(alpha=5.0, targets="fisher")
    before = state(model)
    for call in (lambda: model.partial_fit(X_NEW, LABELS[2][:9]), lambda: model.forget([0])):
        with pytest.raises(ValueError, match="alpha, targets: changed"):
            call()
    assert_unchanged(model, before)
    expected = AdaptiveKDA(gamma=0.2, alpha=0.1).fit(X, LABELS[2])
    assert_same_model(model, expected)
    assert_same_model(model.set_params(alpha=0.1, targets="pm1").forget([0]), expected.forget([0]))


def test_gamma_scale_from_few_rows_warns():
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


def test_coef_of_the_linear_kernel_gives_the_decision():
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
        return adaptive_decision(K, padded, model.classes_, train, np.arange(36, 45), 1.0, targets)

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
