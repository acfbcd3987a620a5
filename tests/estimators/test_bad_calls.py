"""Methods that do not apply, memory that does not suffice and fits that fail say so and lose nothing."""

import re

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold, LeaveOneOut

import foldless._engine.linalg.memory as memory
from foldless import LSSVC, LSSVR, KernelFisherDiscriminant
from foldless.model_selection import FoldlessSearchCV, cross_val_predict, leave_pair_out_auc
from support.bad_input import ALL, CLASSIFIERS, N, data, every_classifier, every_kind, with_value

OVERFLOWING = pytest.mark.filterwarnings("ignore:(overflow|invalid value):RuntimeWarning")


# -- memory ------------------------------------------------------------------------------------------------------------


@every_kind
@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
def test_memory_that_will_not_suffice_is_told_before_it_is_asked_for(monkeypatch, kind, penalty, dtype):
    n = 100_000
    monkeypatch.setattr(memory, "available_memory", lambda: 16 * 2**30)
    X, y = np.arange(n, dtype=dtype)[:, None], np.arange(n) % 2
    with pytest.raises(MemoryError) as error:
        kind(gamma=1.0, penalty=penalty).fit(X, y)
    arrays, itemsize = 1 if penalty == "rkhs" else 2, np.dtype(dtype).itemsize
    message, needed = str(error.value), arrays * n * n * itemsize
    assert f"{n} x {n}, {np.dtype(dtype).name}" in message
    assert f"needs {needed / 2**30:.1f} GiB and 16.0 GiB are available" in message
    fewer = int(n * np.sqrt(16 * 2**30 / needed))
    assert f"fewer rows (about {fewer} fit)" in message
    assert (f"float32 input ({needed / 2**31:.1f} GiB, still too much)" in message) == (dtype == np.float64)
    assert "explicit features, up to" in message
    assert "kernel=Nystroem(..., n_landmarks=500) of foldless.kernels" in message


@every_kind
def test_linear_kernels_with_few_features_ask_for_little_memory(monkeypatch, kind):
    X, y = data(kind)
    expected = kind("linear").fit(X, y).loo_predict()
    monkeypatch.setattr(memory, "available_memory", lambda: N * N * 8 - 1)
    np.testing.assert_array_equal(kind("linear").fit(X, y).loo_predict(), expected)


@every_kind
def test_fit_works_where_the_size_of_memory_is_unknown(monkeypatch, kind):
    monkeypatch.setattr(memory, "available_memory", lambda: None)
    kind().fit(*data(kind)).loo_predict()


@pytest.mark.parametrize("kind", CLASSIFIERS, ids=lambda kind: kind.__name__)
def test_pairs_of_a_linear_kernel_need_the_whole_of_p_and_say_so(monkeypatch, kind):
    X, y = data(kind)
    monkeypatch.setattr(memory, "available_memory", lambda: N * N * 8 - 1)
    with pytest.raises(MemoryError, match=r"GiB are available"):
        leave_pair_out_auc(kind("linear"), X, y)


@every_kind
def test_folds_that_fit_beside_the_matrix_are_counted_with_it(monkeypatch, kind):
    X, y = data(kind)
    monkeypatch.setattr(memory, "available_memory", lambda: int(1.05 * N * N * 8))
    cross_val_predict(kind(gamma=1.0), X, y, cv=LeaveOneOut())
    with pytest.raises(MemoryError, match=r"2.1 arrays of .* float32 input"):
        cross_val_predict(kind(gamma=1.0), X, y, cv=KFold(10))


def test_searches_count_the_eigenvectors_and_derivatives_they_hold(monkeypatch):
    X, y = data(LSSVC)
    monkeypatch.setattr(memory, "available_memory", lambda: int(2.5 * N * N * 8))
    with pytest.raises(MemoryError, match=rf"eigendecomposition .*3 arrays of {N} x {N}"):
        FoldlessSearchCV(LSSVC(), {"alpha": [0.1, 1.0]}).fit(X, y)
    with pytest.raises(MemoryError, match=rf"derivatives .*5 arrays of {N} x {N}"):
        FoldlessSearchCV(LSSVC(), method="gradient").fit(X, y)


# -- what is not there -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("coverage", [0, 1, -0.1, 1.5, 90, np.nan, "0.9", None], ids=repr)
def test_coverage_must_lie_between_zero_and_one(coverage):
    X, y = data(LSSVR)
    model = LSSVR().fit(X, y)
    message = rf"coverage={re.escape(repr(coverage))} must .*between 0 and 1, for instance 0.9"
    with pytest.raises((ValueError, TypeError), match=message):
        model.predict_interval(X, coverage=coverage)


@every_classifier
@pytest.mark.parametrize("method", ["predict_proba", "predict_log_proba"])
def test_probabilities_without_calibration_do_not_exist_and_say_why(kind, method):
    X, y = data(kind)
    for model in (kind(), kind().fit(X, y)):
        assert not hasattr(model, method)
        with pytest.raises(AttributeError) as error:
            getattr(model, method)
        assert "calibration='sigmoid'" in f"{error.value} {error.value.__cause__}"
    assert hasattr(kind(calibration="sigmoid"), method)
    with pytest.raises(AttributeError, match=method):
        cross_val_predict(kind(), X, y, method=method)
    with pytest.raises(AttributeError, match=method):
        cross_val_predict(kind(), X, y, method=method, cv=LeaveOneOut())


@every_classifier
def test_calibration_switched_on_after_fit_asks_for_another_fit(kind):
    X, y = data(kind)
    model = kind().fit(X, y).set_params(calibration="sigmoid")
    with pytest.raises((NotFittedError, AttributeError, ValueError), match=r"calibration.*fit"):
        model.predict_proba(X)


@every_kind
def test_coefficients_exist_for_the_linear_kernel_only(kind):
    X, y = data(kind)
    model = kind("rbf").fit(X, y)
    assert not hasattr(model, "coef_")
    with pytest.raises(AttributeError, match=r"coef_ exists for kernel='linear' only, not for kernel='rbf'"):
        _ = model.coef_
    assert hasattr(kind("linear").fit(X, y), "coef_")
    assert not hasattr(kind("linear"), "coef_")


def test_intercept_of_a_discriminant_exists_for_the_linear_kernel_only():
    X, y = data(KernelFisherDiscriminant)
    model = KernelFisherDiscriminant("rbf").fit(X, y)
    assert not hasattr(model, "intercept_")
    with pytest.raises(AttributeError, match=r"intercept_ exists for kernel='linear' only"):
        _ = model.intercept_
    assert not hasattr(KernelFisherDiscriminant("linear"), "intercept_")


METHODS = (
    "predict",
    "decision_function",
    "predict_proba",
    "predict_log_proba",
    "transform",
    "predict_interval",
    "predict_set",
    "conformal_p_values",
)
LOO_METHODS = ("loo_predict", "loo_decision_function")


def unfitted(kind):
    return kind("linear") if kind is LSSVR else kind("linear", calibration="sigmoid")


@pytest.mark.parametrize(
    ("kind", "method"), [(kind, name) for kind in ALL for name in METHODS + LOO_METHODS if hasattr(kind, name)]
)
def test_methods_of_estimators_that_are_not_fitted_say_so(kind, method):
    arguments = () if method in LOO_METHODS else data(kind)[:1]
    asked = getattr(unfitted(kind), method)
    with pytest.raises(NotFittedError, match=f"{kind.__name__} instance is not fitted yet"):
        asked(*arguments)


@every_kind
@pytest.mark.parametrize("name", ["coef_", "loo_score_"])
def test_attributes_of_estimators_that_are_not_fitted_say_so(kind, name):
    with pytest.raises(NotFittedError, match=f"{kind.__name__} instance is not fitted yet"):
        getattr(unfitted(kind), name)


@every_kind
def test_a_first_fit_that_fails_leaves_the_estimator_not_fitted(kind):
    X, y = data(kind)
    model = kind("precomputed")
    with pytest.raises(ValueError, match="square"):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)


# -- calibration -------------------------------------------------------------------------------------------------------


@every_classifier
@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("sizes", [[1, 1], [2, 1], [1, 7], [1, 1, 1], [5, 1, 1]], ids=str)
def test_calibration_with_too_few_rows_tells_the_class_sizes(kind, calibration, sizes):
    y = np.repeat(np.arange(len(sizes)), sizes)
    message = rf"calibration='{calibration}' needs two classes with at least two rows.*{re.escape(str(sizes))}.*None"
    with pytest.raises(ValueError, match=message):
        kind(calibration=calibration).fit(data(kind)[0][: len(y)], y)


@every_classifier
def test_calibration_with_too_few_rows_in_a_training_part(kind):
    X, _ = data(kind)
    y = np.repeat([0, 1], [4, 3])
    model = kind(calibration="sigmoid").fit(X[:7], y)
    assert model.predict_proba(X).shape == (N, 2)
    splits = [(np.array([0, 1, 2, 3, 6]), np.array([4, 5])), (np.array([1, 2, 4, 5]), np.array([0, 3, 6]))]
    splits.append((np.array([0, 3, 4, 5]), np.array([1, 2])))
    with pytest.raises(ValueError, match=r"calibration='sigmoid' needs .* class sizes \[4, 1\]"):
        cross_val_predict(model, X[:7], y, cv=splits, method="predict_proba")


# -- features that are too large ---------------------------------------------------------------------------------------


@every_kind
@OVERFLOWING
@pytest.mark.parametrize(
    ("parameters", "size"),
    [
        ({"kernel": "poly", "gamma": 1.0}, 1e150),
        ({"kernel": "poly", "gamma": 1.0}, 1e200),
        ({"kernel": "poly"}, 1e200),
        ({"kernel": "boolean"}, 1e150),
        ({"kernel": "boolean"}, 1e200),
        ({"kernel": "rbf"}, 1e200),
        ({"kernel": "rbf", "gamma": 1.0}, 1e200),
        ({"kernel": "linear", "penalty": "coef"}, 1e150),
        ({"kernel": "linear", "penalty": "coef"}, 1e200),
        ({"kernel": "linear"}, 1e160),
        ({"kernel": "linear"}, 1e200),
        ({"kernel": "linear"}, 1e300),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:kernel=.boolean. is for")
def test_features_too_large_for_the_kernel_are_to_be_rescaled(kind, parameters, size):
    X, y = data(kind)
    with pytest.raises(ValueError, match=r"[Rr]escale X"):
        kind(**parameters).fit(X * size, y)
    with pytest.raises(ValueError, match=r"[Rr]escale X"):
        cross_val_predict(kind(**parameters), X * size, y, cv=KFold(12))


@every_kind
@OVERFLOWING
def test_more_features_than_rows_that_are_too_large_are_to_be_rescaled(kind):
    X = np.random.default_rng(41).normal(size=(N, 2 * N)) * 1e160
    with pytest.raises(ValueError, match=r"[Rr]escale X"):
        kind("linear").fit(X, data(kind)[1])


# -- nothing is lost ---------------------------------------------------------------------------------------------------


def one_class_of_fewer_features(model, X, y):
    model.fit(X[:, 1:], np.ones(N))


def nan_in_fewer_features(model, X, y):
    model.fit(with_value(X[:, 1:], np.nan), y)


def wrong_length_of_y(model, X, y):
    model.fit(X, y[:-1])


def bad_alpha(model, X, y):
    model.set_params(alpha=-1.0).fit(X, y)


def weights_of_one_row(model, X, y):
    model.fit(X[:, 1:], y, sample_weight=with_value(np.zeros(N), 1.0))


def asymmetric_gram(model, X, y):
    model.set_params(kernel="precomputed").fit(np.triu(np.ones((N, N))), y)


def bad_gamma_with_other_labels(model, X, y):
    labels = np.array(list("abc"))[np.arange(N) % 3]
    target = np.column_stack([y, y]) if isinstance(model, LSSVR) else labels
    model.set_params(gamma=-1.0).fit(X, target)


def bad_class_weight_with_other_labels(model, X, y):
    model.set_params(class_weight={"d": 1.0}).fit(X, np.array(list("abc"))[np.arange(N) % 3])


def too_few_to_calibrate(model, X, y):
    model.set_params(calibration="sigmoid").fit(X[:4], np.array(list("abcd")))


def no_memory(model, X, y):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "available_memory", lambda: 0)
        target = np.column_stack([y, y]) if isinstance(model, LSSVR) else 1 - y
        model.fit(X[:, 1:], target)


ANY = (
    nan_in_fewer_features,
    wrong_length_of_y,
    bad_alpha,
    weights_of_one_row,
    asymmetric_gram,
    bad_gamma_with_other_labels,
    no_memory,
)
OF_LABELS = (one_class_of_fewer_features, bad_class_weight_with_other_labels, too_few_to_calibrate)


@pytest.mark.parametrize(
    ("kind", "spoil"),
    [(kind, spoil) for kind in ALL for spoil in (ANY if kind is LSSVR else ANY + OF_LABELS)],
    ids=lambda value: value.__name__,
)
def test_a_fit_that_fails_leaves_the_previous_fit_usable(kind, spoil):
    X, y = data(kind)
    model = kind().fit(X, y)
    before = model.predict(X), model.loo_predict(), model.n_features_in_, model.loo_score_
    with pytest.raises((ValueError, MemoryError)):
        spoil(model, X, y)
    assert model.n_features_in_ == before[2]
    np.testing.assert_array_equal(model.predict(X), before[0])
    np.testing.assert_array_equal(model.loo_predict(), before[1])
    assert model.loo_score_ == before[3]
