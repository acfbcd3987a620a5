"""Models by explicit features of many rows learn and forget through sums over rows, and equal refits."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import foldless._engine.online.sums as sums
from foldless import LSSVC, LSSVR, KernelFisherDiscriminant
from foldless._engine.online import updates
from foldless._engine.precision import cost
from foldless.kernels import RBF, Nystroem, RandomFeatures
from support.tolerances import assert_close

RNG = np.random.default_rng(0)
N = 90
X = RNG.normal(size=(N, 4)) + 3.0
VALUES = 1e3 + X[:, 0] * X[:, 1] + 0.1 * RNG.normal(size=N)
TWO = np.where(X[:, 0] * X[:, 1] > 9, "yes", "no")
THREE = np.digitize(X[:, 0] + X[:, 1], [5.5, 6.5])
WEIGHTS = RNG.integers(0, 4, N) / 2
CONFOUNDS = RNG.normal(size=(N, 2)) + 5.0
LANDMARKS = {"kernel": Nystroem(RBF(0.1), landmarks=X[:12]), "alpha": 0.3}
MODELS = {
    "two classes": (LSSVC(**LANDMARKS), TWO),
    "three classes": (KernelFisherDiscriminant(**LANDMARKS), THREE),
    "Fisher's cut": (KernelFisherDiscriminant(**LANDMARKS, threshold="fisher"), TWO),
    "values": (LSSVR(**LANDMARKS), VALUES),
    "no intercept": (LSSVR(**LANDMARKS, fit_intercept=False), VALUES),
    "two outputs": (LSSVR(**LANDMARKS), np.column_stack([VALUES, X[:, 2]])),
    "waves": (LSSVC(RandomFeatures(RBF(0.1), 12), alpha=0.3), TWO),
    "linear": (LSSVC("linear", alpha=2.0), TWO),
}


@pytest.fixture(autouse=True)
def few_rows_are_many(monkeypatch):
    monkeypatch.setattr(cost, "MANY_EXPLICIT", 36)


def given(rows, weights, confounds):
    found = {"sample_weight": WEIGHTS[rows]} if weights else {}
    return found | ({"confounds": CONFOUNDS[rows]} if confounds else {})


def learnt_and_forgotten(model, y, X=X, **more):
    """The model after some updates, and one fitted to the rows that it then has."""
    rows = np.arange(60)
    model = clone(model).fit(X[rows], y[rows], **given(rows, **more))
    for start, stop in ((60, 61), (61, 75), (75, N)):
        new = np.arange(start, stop)
        model.partial_fit(X[new], y[new], **given(new, **more))
    model.forget([3]).forget(np.arange(10, 30))
    kept = np.delete(np.delete(np.arange(N), 3), np.arange(10, 30))
    fresh = clone(model).fit(X[kept], y[kept], **given(kept, **more))
    return model, fresh


def outputs(model, X):
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


@pytest.mark.parametrize("confounds", [False, True], ids=["", "confounds"])
@pytest.mark.parametrize("weights", [False, True], ids=["", "weights"])
@pytest.mark.parametrize("name", MODELS)
def test_updates_equal_refits(name, weights, confounds):
    model, y = MODELS[name]
    found, fresh = learnt_and_forgotten(model, y, weights=weights, confounds=confounds)
    assert found.holder_.startswith("sums over rows")
    assert not fresh.holder_.startswith("sums over rows")
    at = X[::7]
    assert_close(outputs(found, at), outputs(fresh, at))
    loo = "loo_decision_function" if hasattr(found, "loo_decision_function") else "loo_predict"
    assert_close(getattr(found, loo)(), getattr(fresh, loo)())
    assert found.loo_score_ == pytest.approx(fresh.loo_score_)
    assert found.drift_ == 0.0
    assert found.unlearning_certificate().holds


def test_single_precision_and_sparse_rows():
    found, fresh = learnt_and_forgotten(
        MODELS["two classes"][0], TWO, X.astype(np.float32), weights=False, confounds=False
    )
    assert found.holder_.startswith("sums over rows")
    assert found.decision_function(X.astype(np.float32)).dtype == np.float32
    assert_close(found.decision_function(X.astype(np.float32)), fresh.decision_function(X.astype(np.float32)))
    rows = sp.csr_array(np.where(X > 3, X, 0.0))
    found, fresh = learnt_and_forgotten(LSSVC("linear"), TWO, rows, weights=False, confounds=False)
    assert found.holder_.startswith("sums over rows")
    assert_close(found.decision_function(rows), fresh.decision_function(rows))


def test_a_new_class_changes_the_targets_of_all_rows():
    model, y = LSSVC(**LANDMARKS), THREE.copy()
    y[:60] = np.minimum(y[:60], 1)
    model.fit(X[:60], y[:60]).partial_fit(X[60:70], y[60:70]).partial_fit(X[70:], y[70:])
    assert len(model.classes_) == 3
    assert model.holder_.startswith("sums over rows")
    assert_close(model.decision_function(X), LSSVC(**LANDMARKS).fit(X, y).decision_function(X))


def test_sums_are_made_anew_where_they_lose_digits_and_not_otherwise(monkeypatch):
    made = []
    monkeypatch.setattr(updates, "sums_of", lambda problem: made.append(len(problem.active)) or sums.sums_of(problem))
    model = LSSVC(**LANDMARKS).fit(X[:60], TWO[:60])
    for row in range(60, 70):
        model.partial_fit(X[row : row + 1], TWO[row : row + 1])
    assert made == [61]
    far = X[:1] + np.array([[1e3, 0, 0, 0]])
    linear = (
        LSSVC("linear", alpha=1.0).fit(X[:60], TWO[:60]).partial_fit(far, TWO[:1]).partial_fit(X[60:62], TWO[60:62])
    )
    made.clear()
    linear.forget([60])  # nearly all of the sum goes with it
    assert made == [62]
    assert_close(linear.decision_function(X), LSSVC("linear").fit(X[:62], TWO[:62]).decision_function(X))
    monkeypatch.setattr(sums, "MANY", 3)
    made.clear()
    for row in range(70, 78):
        model.partial_fit(X[row : row + 1], TWO[row : row + 1])
    assert len(made) == 2


def test_no_mean_of_rows_that_have_left_is_kept():
    model = LSSVC("linear").fit(X[:60], TWO[:60], sample_weight=WEIGHTS[:60])
    model.partial_fit(X[60:], TWO[60:], sample_weight=WEIGHTS[60:]).forget(np.arange(5))
    kept = model._parts.full_fit.sums
    mean = np.average(X[5:], axis=0, weights=WEIGHTS[5:])
    assert_close(kept.origin, mean)
    rows = np.sqrt(WEIGHTS[5:, None]) * (X[5:] - mean)
    assert_close(kept.gram, rows.T @ rows)
    assert kept.peak == pytest.approx(np.trace(rows.T @ rows))


def test_single_precision_keeps_its_digits_far_from_zero():
    far = (X + 1000).astype(np.float32)
    model = LSSVC("linear", alpha=0.5).fit(far[:60], TWO[:60], sample_weight=WEIGHTS[:60])
    model.partial_fit(far[60:], TWO[60:], sample_weight=WEIGHTS[60:])
    assert model.holder_.startswith("sums over rows")
    exact = LSSVC("linear", alpha=0.5).fit(X, TWO, sample_weight=WEIGHTS)
    assert_close(model.loo_decision_function(), exact.loo_decision_function(), rtol=5e-3)
    assert_close(model.coef_, exact.coef_, rtol=5e-3)


def test_a_tiny_alpha_is_factorised_anew():
    model = LSSVC("linear", alpha=1e-7).fit(X[:60], TWO[:60]).partial_fit(X[60:], TWO[60:])
    assert not model.holder_.startswith("sums over rows")
    assert_close(model.decision_function(X), LSSVC("linear", alpha=1e-7).fit(X, TWO).decision_function(X))


def test_the_residual_of_the_certificate_tells_that_a_sum_is_wrong(monkeypatch):
    model = LSSVC(**LANDMARKS).fit(X[:60], TWO[:60]).partial_fit(X[60:75], TWO[60:75])
    assert model.unlearning_certificate().residual < 1e-10
    wrong = sums.changed

    def twice(found, *given):
        return wrong(wrong(found, *given), *given)

    monkeypatch.setattr(updates, "changed", twice)
    found = model.partial_fit(X[75:], TWO[75:]).unlearning_certificate()
    assert model.holder_.startswith("sums over rows")
    assert found.residual > 1e-4
    assert not found.holds
