"""AdaptiveKDA with landmarks or random features: fits, leave-one-out and updates equal refits."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from foldless import AdaptiveKDA
from foldless.online.minimum_norm import MinimumNorm
from foldless.online.minimum_norm_features import MinimumNormByFeatures
from support.adaptive import X_NEW, X, assert_same_model, tolerance
from support.refits import adaptive_decision, adaptive_loo_decision
from support.tolerances import assert_close

N = len(X)
LABELS = {c: np.arange(N) * 7 % c for c in (2, 3)}
KINDS = {
    "landmarks": {"approximation": "nystroem", "n_landmarks": 9, "landmarks": "uniform"},
    "given landmarks": {"approximation": "nystroem", "landmarks": X[:6]},
    "waves": {"approximation": "rff", "n_landmarks": 10},
    "nearly as many as rows": {"approximation": "nystroem", "n_landmarks": 30, "landmarks": "uniform"},
}


def approximate(kind, **more):
    return AdaptiveKDA(gamma=0.2, **KINDS[kind], **more)


@pytest.mark.parametrize("targets", ["pm1", "fisher"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("alpha", [1e-9, 1e-4, 1.0, 1e3])
@pytest.mark.parametrize("kind", KINDS)
def test_fits_and_leave_one_out_equal_refits(kind, alpha, n_classes, targets):
    y = LABELS[n_classes]
    model = approximate(kind, alpha=alpha, targets=targets).fit(X, y)
    both = np.vstack([X, X_NEW])
    K = model.kernel_.gram(both)
    rtol = tolerance(K[:N, :N], alpha)
    rows, new = np.arange(N), np.arange(N, len(both))
    found = adaptive_decision(K, np.concatenate([y, y[:9]]), model.classes_, rows, new, alpha, targets)
    assert_close(model.decision_function(X_NEW), found, rtol=rtol)
    expected = adaptive_loo_decision(K[:N, :N], y, model.classes_, alpha, targets)
    assert_close(model.loo_decision_function(), expected, rtol=rtol)
    assert_close(model.loo_decision_function("downdate"), expected, rtol=rtol)
    assert model.residual_ < 1e-12


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("alpha", [1e-9, 1e-3, 1.0])
@pytest.mark.parametrize("kind", ["given landmarks", "landmarks", "nearly as many as rows"])
def test_learning_and_forgetting_equal_a_fit_with_the_same_landmarks(kind, alpha, sparse):
    rows, y = (sp.csr_array(X) if sparse else X), LABELS[3]
    model = approximate(kind, alpha=alpha).fit(rows[:20], y[:20], ids=range(20))
    landmarks = model.kernel_.landmarks
    model.partial_fit(rows[20:21], y[20:21], ids=[20]).partial_fit(rows[21:], y[21:], ids=range(21, N))
    model.forget(ids=[4]).forget(ids=[7, 8, 30])
    kept = np.delete(np.arange(N), [4, 7, 8, 30])
    fresh = approximate(kind, alpha=alpha).set_params(landmarks=landmarks)
    fresh.fit(rows[kept], y[kept], ids=kept.tolist())
    assert_same_model(model, fresh, rtol=tolerance(model.kernel_.gram(X), alpha))
    assert model.residual_ < 1e-12


def test_many_rows_go_by_features_and_few_rows_by_their_kernel():
    y = LABELS[2]
    assert isinstance(approximate("landmarks").fit(X, y)._factors, MinimumNormByFeatures)
    assert isinstance(approximate("nearly as many as rows").fit(X, y)._factors, MinimumNorm)
    assert isinstance(AdaptiveKDA().fit(X, y)._factors, MinimumNorm)


def test_a_model_that_grows_row_by_row_comes_to_go_by_features():
    model = approximate("given landmarks", alpha=0.1).fit(X[:8], LABELS[2][:8])
    assert not model._factors.by_features
    for row in range(8, 20):
        model.partial_fit(X[row : row + 1], LABELS[2][row : row + 1])
        assert model._factors.by_features == (row + 1 >= 12)
    assert_same_model(model, approximate("given landmarks", alpha=0.1).fit(X[:20], LABELS[2][:20]))


def test_an_update_of_one_row_does_not_look_at_the_features_of_the_others(monkeypatch):
    model, seen = approximate("given landmarks").fit(X[:30], LABELS[2][:30]), []
    kind = type(model.kernel_)
    features = kind.features
    monkeypatch.setattr(kind, "features", lambda self, rows: seen.append(len(rows)) or features(self, rows))
    model.partial_fit(X[30:31], LABELS[2][30:31]).forget([3])
    assert seen == [1]


@pytest.mark.parametrize("distance", [8.0, 11.0, 40.0])
def test_a_row_with_a_feature_nearly_of_its_own_is_left_out_as_by_a_refit(distance):
    rows, y = X.copy(), LABELS[2]
    rows[5] = distance, 0.0, 0.0, 0.0
    landmarks = np.vstack([X[:5], rows[5:6]])
    model = AdaptiveKDA(gamma=0.2, approximation="nystroem", landmarks=landmarks, alpha=1e-7).fit(rows, y)
    K = model.kernel_.gram(rows)
    expected = adaptive_loo_decision(K, y, model.classes_, 1e-7, "pm1")
    assert_close(model.loo_decision_function(), expected, rtol=tolerance(K, 1e-7))


def test_an_approximate_model_is_pickled_and_cloned():
    model = approximate("landmarks").fit(X, LABELS[3])
    again = pickle.loads(pickle.dumps(model))
    assert_same_model(model, again)
    assert_same_model(model, clone(model).fit(X, LABELS[3]))
    again.partial_fit(X_NEW, LABELS[3][:9])
    assert_same_model(again, model.partial_fit(X_NEW, LABELS[3][:9]))


def test_alpha_zero_is_the_pseudo_inverse_of_the_approximate_kernel():
    model = approximate("landmarks", alpha=0.0).fit(X, LABELS[2])
    K = model.kernel_.gram(X)
    x = np.linalg.pinv(np.hstack([np.ones((N, 1)), K]), rcond=1e-14) @ np.where(LABELS[2], 1.0, -1.0)
    assert_close(model.decision_function(X), x[0] + K @ x[1:], rtol=1e-6)
