"""AdaptiveKDA: failed calls say why and change nothing; pickles, scikit-learn's checks."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from foldless import AdaptiveKDA
from foldless._engine.online.minimum_norm import MinimumNorm, RankError
from foldless.kernels import resolve
from support.adaptive import LABELS, X_NEW, X, assert_same_model, assert_unchanged, state
from support.tolerances import assert_close

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


@pytest.mark.parametrize("rows", [[9], [3, 4, 11], [0]])
def test_forgotten_rows_are_gone_from_the_factors(rows):
    """SciPy's downdating returns views of larger arrays, the rest of which is the kernel of the row removed."""
    model = AdaptiveKDA(gamma=0.3).fit(X, LABELS[3]).forget(rows)
    assert model._qr._Q.base is None
    assert model._qr._R.base is None


def test_updates_copy_the_buffers_they_are_given():
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
