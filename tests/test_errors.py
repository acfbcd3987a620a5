"""Bad input gets an error that names the argument, says what was found and what to try; and a failed fit loses nothing.

The messages are part of the interface: each test looks for the argument's name, the offending value and the way out.
"""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, LeaveOneOut, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import foldless.linalg.memory
from foldless import LSSVC, LSSVR, KernelFisherDiscriminant
from foldless.model_selection import cross_val_predict, cross_val_score, cross_validate, leave_pair_out_auc
from foldless.reference import heldout_fits

N, D = 24, 3
ALL = (LSSVC, LSSVR, KernelFisherDiscriminant)
CLASSIFIERS = (LSSVC, KernelFisherDiscriminant)
EACH = pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
EACH_CLASSIFIER = pytest.mark.parametrize("kind", CLASSIFIERS, ids=lambda kind: kind.__name__)
OVERFLOWING = pytest.mark.filterwarnings("ignore:(overflow|invalid value):RuntimeWarning")


def data(kind, seed=0, n_classes=2):
    """X and a y that suits the estimator."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D))
    codes = np.arange(N) % n_classes
    X[:, 0] += codes
    return X, (X @ rng.normal(size=D) + rng.normal(size=N) if kind is LSSVR else codes)


def gram(kind, seed=0):
    """A positive definite Gram matrix and a y."""
    X, y = data(kind, seed)
    return np.exp(-0.3 * np.square(X[:, None] - X[None]).sum(-1)), y


def spoiled(values, value, at=5):
    values = np.array(values, float)
    values.flat[at] = value
    return values


# -- X and y -----------------------------------------------------------------------------------------------------------


@EACH
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize(("value", "found"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
def test_x_that_is_not_finite_is_refused_in_fit_and_predict(kind, form, value, found):
    X, y = data(kind)
    with pytest.raises(ValueError, match=f"X contains {found}"):
        kind().fit(form(spoiled(X, value)), y)
    with pytest.raises(ValueError, match=f"X contains {found}"):
        kind().fit(X, y).predict(form(spoiled(X, value)))


@EACH
@pytest.mark.parametrize(("value", "found"), [(np.nan, "NaN"), (np.inf, "infinity")])
def test_y_that_is_not_finite_is_refused(kind, value, found):
    X, y = data(kind)
    with pytest.raises(ValueError, match=f"y contains {found}"):
        kind().fit(X, spoiled(y, value))


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_targets_that_are_not_finite_are_refused_as_python_objects_too(value):
    X, y = data(LSSVR)
    with pytest.raises(ValueError, match=r"\by\b.*(infinity|finite)"):
        LSSVR().fit(X, np.array(list(spoiled(y, value)), dtype=object))


def test_targets_that_are_words_are_refused_by_name():
    X, _ = data(LSSVR)
    with pytest.raises(ValueError, match=r"\by\b"):
        LSSVR().fit(X, np.array(["low", "high"] * (N // 2)))


def test_targets_too_large_for_the_precision_of_x_are_refused_by_name():
    X, y = data(LSSVR)
    with pytest.raises(ValueError, match=r"\by\b.*float32"), np.errstate(over="ignore"):
        LSSVR().fit(X.astype(np.float32), y * 1e39)


@EACH_CLASSIFIER
def test_continuous_labels_are_refused(kind):
    X, _ = data(kind)
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        kind().fit(X, X[:, 0])


@EACH
@pytest.mark.parametrize(
    ("shape", "message"),
    [((N,), "Expected 2D array, got 1D"), ((N, D, 1), "dim 3"), ((0, D), "0 sample"), ((N, 0), "0 feature")],
)
def test_x_of_wrong_shape(kind, shape, message):
    with pytest.raises(ValueError, match=message):
        kind().fit(np.zeros(shape), data(kind)[1][: shape[0]])


@EACH
def test_y_of_wrong_length(kind):
    X, y = data(kind)
    with pytest.raises(ValueError, match=rf"inconsistent numbers of samples: \[{N}, {N - 1}\]"):
        kind().fit(X, y[:-1])


@EACH
def test_missing_y(kind):
    with pytest.raises(ValueError, match="requires y to be passed"):
        kind().fit(data(kind)[0], None)


@EACH_CLASSIFIER
def test_labels_in_two_columns(kind):
    X, y = data(kind)
    with pytest.raises(ValueError, match=rf"y should be a 1d array, got an array of shape \({N}, 2\)"):
        kind().fit(X, np.column_stack([y, y]))


def test_targets_in_three_dimensions():
    with pytest.raises(ValueError, match="dim 3"):
        LSSVR().fit(data(LSSVR)[0], np.zeros((N, 2, 2)))


@EACH_CLASSIFIER
@pytest.mark.parametrize("label", [0, "cat"])
def test_one_class_is_named_and_two_are_asked_for(kind, label):
    with pytest.raises(ValueError, match=f"one class only .*{label}.*needs at least two classes"):
        kind().fit(data(kind)[0], [label] * N)


@EACH
def test_one_sample_is_too_few(kind):
    X, y = data(kind)
    with pytest.raises(ValueError, match="n_samples=1: at least two samples are needed"):
        kind().fit(X[:1], y[:1])


@EACH
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_predict_with_another_number_of_features(kind, kernel):
    X, y = data(kind)
    model = kind(kernel).fit(X, y)
    for method in ("predict", "decision_function", "transform", "predict_interval"):
        if hasattr(model, method):
            with pytest.raises(ValueError, match=f"X has {D - 1} features, but {kind.__name__} is expecting {D}"):
                getattr(model, method)(X[:, 1:])


# -- parameters --------------------------------------------------------------------------------------------------------


@EACH
@pytest.mark.parametrize("alpha", [-1, 0, -0.0, np.nan, np.inf, "1", None, [1.0], 1 + 0j], ids=repr)
def test_alpha_must_be_a_positive_number(kind, alpha):
    message = rf"alpha={re.escape(repr(alpha))} must be a finite number > 0; for \(nearly\) no penalty use"
    with pytest.raises(ValueError, match=message):
        kind(alpha=alpha).fit(*data(kind))
    with pytest.raises(ValueError, match=message):
        cross_val_predict(kind(alpha=alpha), *data(kind))


@EACH
@pytest.mark.parametrize("value", ["nonsense", None, 1, ["rkhs"]], ids=repr)
@pytest.mark.parametrize(("name", "known"), [("penalty", "'rkhs', 'coef'"), ("basis", "'train', 'all'")])
def test_unknown_penalty_and_basis(kind, name, known, value):
    with pytest.raises(ValueError, match=rf"{name}={re.escape(repr(value))} is unknown; use one of {known}"):
        kind(**{name: value}).fit(*data(kind))


@EACH_CLASSIFIER
@pytest.mark.parametrize("value", ["platt", 1, True, ["sigmoid"]], ids=repr)
def test_unknown_calibration(kind, value):
    message = rf"calibration={re.escape(repr(value))} is unknown; use one of None, 'sigmoid', 'isotonic'"
    with pytest.raises(ValueError, match=message):
        kind(calibration=value).fit(*data(kind))


@pytest.mark.parametrize("value", ["zero", None, 0.5], ids=repr)
def test_unknown_threshold(value):
    with pytest.raises(ValueError, match=rf"threshold={re.escape(repr(value))} is unknown; use one of .*'pm1'"):
        KernelFisherDiscriminant(threshold=value).fit(*data(LSSVC))


@EACH
@pytest.mark.parametrize("value", ["gauss", None, 3], ids=repr)
def test_unknown_kernel(kind, value):
    with pytest.raises(ValueError, match=rf"kernel={re.escape(repr(value))} is unknown; use one of .*'rbf'"):
        kind(value).fit(*data(kind))


@EACH
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"gamma": -1.0}, r"gamma=-1.0 must be positive and finite"),
        ({"gamma": "auto"}, r"gamma='auto' is unknown; use 'scale'"),
        ({"gamma": [1.0, 2.0]}, rf"gamma has shape \(2,\); .*{D} features"),
        ({"kernel": "poly", "degree": 0}, r"degree=0 must be a finite number > 0"),
        ({"kernel": "poly", "coef0": -1}, r"coef0=-1 must be a finite number >= 0"),
        ({"kernel": "boolean", "eta": 0}, r"eta=0 must be a finite number > 0"),
    ],
    ids=str,
)
def test_bad_kernel_parameters(kind, parameters, message):
    with pytest.raises(ValueError, match=message):
        kind(**parameters).fit(*data(kind))


@EACH
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_root_of_a_negative_number_is_the_degree_and_not_the_size_of_x(kind):
    """(x.z + coef0)^2.5 does not exist for x.z < -coef0; rescaling X, the way out of an overflow, would not help."""
    with pytest.raises(ValueError, match=r"degree=2\.5") as error:
        kind("poly", degree=2.5, gamma=5.0).fit(*data(kind))
    assert "rescale" not in str(error.value).lower()


@EACH
def test_callable_kernel_that_returns_no_gram_matrix(kind):
    with pytest.raises(ValueError, match=rf"returned shape \({N},\).*must .*return a Gram matrix of shape"):
        kind(lambda X, Z: np.ones(len(X))).fit(*data(kind))


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_number_of_components(n_classes, fit_intercept):
    most = n_classes - 1 if fit_intercept else n_classes
    X, y = data(LSSVC, n_classes=n_classes)
    for value in (0, -1, most + 1, 1.0, "1"):
        message = rf"n_components={value!r} must be an integer from 1 to {most} for {n_classes} classes"
        with pytest.raises(ValueError, match=message):
            KernelFisherDiscriminant(n_components=value, fit_intercept=fit_intercept).fit(X, y)
    model = KernelFisherDiscriminant(n_components=most, fit_intercept=fit_intercept).fit(X, y)
    assert model.transform(X).shape == (N, most)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("priors", [[1.0], [0.25] * 4, "short", "negative", "zero", "nan", "inf", "words"])
def test_priors_must_be_positive_and_one_per_class(n_classes, priors):
    ends = {"negative": -1.0, "zero": 0.0, "nan": np.nan, "inf": np.inf, "words": "many"}
    if priors == "short":
        priors = [1 / n_classes] * (n_classes - 1)
    elif priors in list(ends):
        priors = [1.0] * (n_classes - 1) + [ends[priors]]
    with pytest.raises(ValueError, match=rf"priors=.* must be {n_classes} positive numbers, one for each"):
        KernelFisherDiscriminant(priors=priors, threshold="centroid").fit(*data(LSSVC, n_classes=n_classes))


@pytest.mark.parametrize("threshold", ["pm1", "fisher", "loo"])
def test_priors_with_a_threshold_that_uses_none(threshold):
    with pytest.raises(ValueError, match=f"priors .*threshold='{threshold}'.*set threshold='centroid' or priors=None"):
        KernelFisherDiscriminant(priors=[0.5, 0.5], threshold=threshold).fit(*data(LSSVC))
    # more classes always use centroids, whatever the threshold says
    KernelFisherDiscriminant(priors=[0.2, 0.5, 0.3], threshold=threshold).fit(*data(LSSVC, n_classes=3))


@EACH_CLASSIFIER
def test_class_weight_of_an_unknown_label_is_named_with_the_known_ones(kind):
    X, y = data(kind)
    with pytest.raises(ValueError, match=r"class_weight names \['cat'\].*classes are .*'a', 'b'"):
        kind(class_weight={"a": 1.0, "cat": 2.0}).fit(X, np.array(["a", "b"])[y])


@EACH_CLASSIFIER
@pytest.mark.parametrize("weight", [-1.0, 0.0, np.nan, np.inf, "heavy"])
def test_class_weight_must_be_positive(kind, weight):
    with pytest.raises(ValueError, match=r"class_weight=.* must hold finite numbers > 0"):
        kind(class_weight={0: weight}).fit(*data(kind))


@EACH_CLASSIFIER
@pytest.mark.parametrize("value", ["equal", 3, [0, 1], [2.0, 1.0]], ids=repr)
def test_class_weight_that_is_no_dict_is_told_what_to_use(kind, value):
    with pytest.raises((ValueError, TypeError), match=rf"class_weight={re.escape(repr(value))}.*'balanced'.*dict"):
        kind(class_weight=value).fit(*data(kind))


# -- weights -----------------------------------------------------------------------------------------------------------


@EACH
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (spoiled(np.ones(N), -1.0), "Negative values in data passed to `sample_weight`"),
        (spoiled(np.ones(N), np.nan), "sample_weight contains NaN"),
        (spoiled(np.ones(N), np.inf), "sample_weight contains infinity"),
        (np.ones(N - 1), rf"sample_weight.shape == \({N - 1},\), expected \({N},\)"),
        (np.ones((N, 2)), "Sample weights must be 1D"),
        (np.zeros(N), "Sample weights must contain at least one non-zero|sample_weight leaves fewer than two rows"),
        (spoiled(np.zeros(N), 1.0), "sample_weight leaves fewer than two rows with a positive weight"),
    ],
    ids=["negative", "nan", "inf", "short", "2d", "zero", "one row"],
)
def test_bad_sample_weights(kind, weights, message):
    X, y = data(kind)
    with pytest.raises(ValueError, match=message):
        kind().fit(X, y, sample_weight=weights)
    with pytest.raises(ValueError, match=message):
        cross_val_predict(kind(), X, y, params={"sample_weight": weights})


@EACH_CLASSIFIER
def test_sample_weights_that_leave_one_class(kind):
    X, y = data(kind)
    with pytest.raises(ValueError, match=r"sample_weight leaves one class only; at least two classes need rows"):
        kind().fit(X, y, sample_weight=(y == 1).astype(float))


# -- precomputed kernels -----------------------------------------------------------------------------------------------


@EACH
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_precomputed_kernel_that_is_not_symmetric(kind, form):
    K, y = gram(kind)
    K[0, 1] += 0.25
    with pytest.raises(ValueError, match=r"precomputed kernel is not symmetric: .* differ by up to 0.25.*\(K \+ K.T\)"):
        kind("precomputed").fit(form(K), y)


@EACH
def test_precomputed_kernel_that_is_not_square(kind):
    K, y = gram(kind)
    with pytest.raises(ValueError, match=rf"must be a square matrix: X has shape \({N}, {N - 2}\).*\(n_new, n_train\)"):
        kind("precomputed").fit(K[:, 2:], y)


@EACH
def test_precomputed_kernel_of_wrong_width_in_predict(kind):
    K, y = gram(kind)
    with pytest.raises(ValueError, match=rf"X has {N - 1} features, but {kind.__name__} is expecting {N}"):
        kind("precomputed").fit(K, y).predict(K[:, 1:])


def indefinite(shape, lowest):
    """A symmetric matrix with the constant vector among its eigenvectors and the smallest eigenvalue ``lowest``."""
    rng = np.random.default_rng(40)
    basis, _ = np.linalg.qr(np.column_stack([np.ones(N), rng.normal(size=(N, N - 1))]))
    others = {
        "one negative eigenvalue": np.linspace(1.0, 3.0, N - 2),
        "mostly negative eigenvalues": np.linspace(0.9 * lowest, 1.0, N - 2),
    }
    values = np.concatenate([[0.0, lowest], others[shape]])
    K = (basis * values) @ basis.T
    return (K + K.T) / 2


INDEFINITE = pytest.mark.parametrize(
    ("shape", "lowest"),
    [
        ("one negative eigenvalue", -0.5),
        ("one negative eigenvalue", -20.0),
        ("mostly negative eigenvalues", -0.5),
        ("mostly negative eigenvalues", -20.0),
    ],
)


@EACH
@INDEFINITE
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_indefinite_kernel_is_refused_with_its_lowest_eigenvalue(kind, shape, lowest, fit_intercept):
    K, y = indefinite(shape, lowest), data(kind)[1]
    with pytest.raises(ValueError, match=r"indefinite: its eigenvalues reach from \S+ to \S+\. ") as error:
        kind("precomputed", alpha=1e-9, fit_intercept=fit_intercept).fit(K, y)
    message = str(error.value)
    told, largest = map(float, re.search(r"reach from (\S+) to (\S+)\. ", message).groups())
    assert told == pytest.approx(lowest, rel=1e-2)
    assert largest == pytest.approx(np.linalg.eigvalsh(K).max(), rel=1e-2)
    assert "positive semi-definite" in message
    assert float(re.search(r"alpha > (\S+)\.", message).group(1)) == pytest.approx(-lowest, rel=1e-2)


@INDEFINITE
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_alpha_that_the_error_of_an_indefinite_kernel_recommends_works(shape, lowest, fit_intercept):
    K, y = indefinite(shape, lowest), data(LSSVR)[1]
    alpha = -lowest * 1.05
    found = LSSVR("precomputed", alpha=alpha, fit_intercept=fit_intercept).fit(K, y).loo_predict()
    Q = np.ones((N, int(fit_intercept)))
    expected = [heldout_fits(K, y[:, None], np.delete(np.arange(N), i), [i], alpha, Q=Q)[0, 0] for i in range(N)]
    np.testing.assert_allclose(found, expected, rtol=1e-8)


# -- memory ------------------------------------------------------------------------------------------------------------


@EACH
@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
def test_memory_that_will_not_suffice_is_told_before_it_is_asked_for(monkeypatch, kind, penalty, dtype):
    n = 100_000
    monkeypatch.setattr(foldless.linalg.memory, "available_memory", lambda: 16 * 2**30)
    X, y = np.arange(n, dtype=dtype)[:, None], np.arange(n) % 2
    with pytest.raises(MemoryError) as error:
        kind(gamma=1.0, penalty=penalty).fit(X, y)
    message, needed = str(error.value), n * n * np.dtype(dtype).itemsize / 2**30
    assert f"{n} x {n}, {np.dtype(dtype).name}" in message
    assert f"needs {needed:.1f} GiB and 16.0 GiB are available" in message
    for way_out in ("fewer rows", "float32", "kernel='linear'", "Nystroem"):
        assert way_out in message


@EACH
def test_linear_kernels_with_few_features_ask_for_little_memory(monkeypatch, kind):
    X, y = data(kind)
    expected = kind("linear").fit(X, y).loo_predict()
    monkeypatch.setattr(foldless.linalg.memory, "available_memory", lambda: N * N * 8 - 1)
    np.testing.assert_array_equal(kind("linear").fit(X, y).loo_predict(), expected)


@EACH
def test_a_system_that_does_not_tell_its_memory_is_not_asked(monkeypatch, kind):
    monkeypatch.setattr(foldless.linalg.memory, "available_memory", lambda: None)
    kind().fit(*data(kind)).loo_predict()


@pytest.mark.parametrize("kind", CLASSIFIERS, ids=lambda kind: kind.__name__)
def test_pairs_of_a_linear_kernel_need_the_whole_of_p_and_say_so(monkeypatch, kind):
    X, y = data(kind)
    monkeypatch.setattr(foldless.linalg.memory, "available_memory", lambda: N * N * 8 - 1)
    with pytest.raises(MemoryError, match=r"GiB are available"):
        leave_pair_out_auc(kind("linear"), X, y)


@EACH
def test_leaving_out_basis_functions_needs_four_times_the_memory_and_says_so(monkeypatch, kind):
    X, y = data(kind)
    model = kind(penalty="coef", basis="train").fit(X, y)
    monkeypatch.setattr(foldless.linalg.memory, "available_memory", lambda: 2 * N * N * 8)
    with pytest.raises(MemoryError, match=rf"{2 * N} x {2 * N}.*GiB are available"):
        model.loo_predict()


# -- what is not there -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("coverage", [0, 1, -0.1, 1.5, 90, np.nan, "0.9", None], ids=repr)
def test_coverage_must_lie_between_zero_and_one(coverage):
    X, y = data(LSSVR)
    model = LSSVR().fit(X, y)
    message = rf"coverage={re.escape(repr(coverage))} must .*between 0 and 1, for instance 0.9"
    with pytest.raises((ValueError, TypeError), match=message):
        model.predict_interval(X, coverage=coverage)


@EACH_CLASSIFIER
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


@EACH_CLASSIFIER
def test_calibration_switched_on_after_fit_asks_for_another_fit(kind):
    X, y = data(kind)
    model = kind().fit(X, y).set_params(calibration="sigmoid")
    with pytest.raises((NotFittedError, AttributeError, ValueError), match=r"calibration.*fit"):
        model.predict_proba(X)


@EACH
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


METHODS = ("predict", "decision_function", "predict_proba", "predict_log_proba", "transform", "predict_interval")
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


@EACH
@pytest.mark.parametrize("name", ["coef_", "loo_score_"])
def test_attributes_of_estimators_that_are_not_fitted_say_so(kind, name):
    with pytest.raises(NotFittedError, match=f"{kind.__name__} instance is not fitted yet"):
        getattr(unfitted(kind), name)


@EACH
def test_a_first_fit_that_fails_leaves_the_estimator_not_fitted(kind):
    X, y = data(kind)
    model = kind("precomputed")
    with pytest.raises(ValueError, match="square"):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)


# -- calibration -------------------------------------------------------------------------------------------------------


@EACH_CLASSIFIER
@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("sizes", [[1, 1], [2, 1], [1, 7], [1, 1, 1], [5, 1, 1]], ids=str)
def test_calibration_with_too_few_rows_tells_the_class_sizes(kind, calibration, sizes):
    y = np.repeat(np.arange(len(sizes)), sizes)
    message = rf"calibration='{calibration}' needs two classes with at least two rows.*{re.escape(str(sizes))}.*None"
    with pytest.raises(ValueError, match=message):
        kind(calibration=calibration).fit(data(kind)[0][: len(y)], y)


@EACH_CLASSIFIER
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


@EACH
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
        ({"kernel": "linear", "penalty": "coef", "basis": "all"}, 1e150),
        ({"kernel": "linear", "penalty": "coef"}, 1e200),
        ({"kernel": "linear"}, 1e160),
        ({"kernel": "linear"}, 1e200),
        ({"kernel": "linear"}, 1e300),
    ],
    ids=str,
)
def test_features_too_large_for_the_kernel_are_to_be_rescaled(kind, parameters, size):
    X, y = data(kind)
    with pytest.raises(ValueError, match=r"[Rr]escale X"):
        kind(**parameters).fit(X * size, y)
    with pytest.raises(ValueError, match=r"[Rr]escale X"):
        cross_val_predict(kind(**parameters), X * size, y, cv=KFold(12))


@EACH
@OVERFLOWING
def test_more_features_than_rows_that_are_too_large_are_to_be_rescaled(kind):
    X = np.random.default_rng(41).normal(size=(N, 2 * N)) * 1e160
    with pytest.raises(ValueError, match=r"[Rr]escale X"):
        kind("linear").fit(X, data(kind)[1])


# -- cross-validation --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "estimator",
    [SVC(), make_pipeline(StandardScaler(), LSSVC()), Ridge(alpha=0.0), Ridge(positive=True)],
    ids=lambda estimator: type(estimator).__name__,
)
def test_pairs_of_estimators_without_closed_form_are_not_refitted_in_silence(estimator):
    X, y = data(LSSVC)
    name = type(estimator).__name__
    with pytest.raises(ValueError, match=rf"no closed form for {name} \(.+\).*refit for every pair.*scoring='roc_auc'"):
        leave_pair_out_auc(estimator, X, y)


@EACH_CLASSIFIER
@pytest.mark.parametrize("n_classes", [2, 3])
def test_pairs_of_a_class_with_one_row(kind, n_classes):
    X, y = data(kind)
    y = np.where(np.arange(N) == 5, n_classes - 1, y * (n_classes - 2))
    assert np.bincount(y).min() == 1
    with pytest.raises(ValueError, match="at least two rows of every class: leaving out a pair empties a class"):
        leave_pair_out_auc(kind(), X, y)


def test_pairs_of_a_class_with_one_row_of_positive_weight():
    X, y = data(LSSVC)
    weights = np.where(y == 0, 1.0, np.arange(N) == 5)
    with pytest.raises(ValueError, match="at least two rows of every class"):
        leave_pair_out_auc(LSSVC(), X, y, params={"sample_weight": weights})


def test_pairs_of_several_outputs_or_of_equal_values():
    X, y = data(LSSVR)
    with pytest.raises(ValueError, match="ranks one output; y has several"):
        leave_pair_out_auc(LSSVR(), X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="no pair of different values"):
        leave_pair_out_auc(LSSVR(), X, np.ones(N))


@EACH
@pytest.mark.parametrize("several", [["max_error"], ("max_error",), {"worst": "max_error"}], ids=repr)
def test_cross_val_score_of_several_metrics_points_to_cross_validate(kind, several):
    message = rf"scoring={re.escape(repr(several))} names several metrics.*cross_validate"
    with pytest.raises(ValueError, match=message):
        cross_val_score(kind(), *data(kind), scoring=several)


@EACH
def test_unknown_scoring_is_refused(kind):
    with pytest.raises(ValueError, match="'nonsense'"):
        cross_val_score(kind(), *data(kind), scoring="nonsense")


@EACH
@pytest.mark.parametrize(
    "cv",
    [
        ShuffleSplit(4, random_state=0),
        [(np.arange(2, N), np.arange(2))],
        [(np.arange(2, N), np.arange(2)), (np.arange(2, N), np.arange(2))],
    ],
    ids=["shuffled", "part", "twice"],
)
def test_splits_that_are_no_partition_have_no_prediction_for_every_row(kind, cv):
    with pytest.raises(ValueError, match="cross_val_predict only works for partitions"):
        cross_val_predict(kind(), *data(kind), cv=cv)


@EACH
def test_more_folds_than_rows(kind):
    with pytest.raises(ValueError, match=f"n_splits={N + 1}"):
        cross_val_score(kind(), *data(kind), cv=KFold(N + 1))


@EACH
@pytest.mark.parametrize("function", [cross_val_predict, cross_val_score, cross_validate])
def test_cross_validation_refuses_what_fit_refuses(kind, function):
    X, y = data(kind)
    with pytest.raises(ValueError, match="X contains NaN"):
        function(kind(), spoiled(X, np.nan), y)
    with pytest.raises(ValueError, match=rf"inconsistent numbers of samples: \[{N}, {N - 1}\]"):
        function(kind(), X, y[:-1])


@EACH
@pytest.mark.parametrize("function", [cross_val_predict, cross_val_score, cross_validate])
def test_cross_validation_leaves_the_estimator_as_it_was(kind, function):
    X, y = data(kind)
    fresh, fitted = kind(), kind(alpha=3.0).fit(X[:10], y[:10])
    before = fitted.predict(X)
    function(fresh, X, y)
    function(fitted, X, y)
    assert not hasattr(fresh, "X_fit_")
    np.testing.assert_array_equal(fitted.predict(X), before)


# -- nothing is lost ---------------------------------------------------------------------------------------------------


def one_class_of_fewer_features(model, X, y):
    model.fit(X[:, 1:], np.ones(N))


def nan_in_fewer_features(model, X, y):
    model.fit(spoiled(X[:, 1:], np.nan), y)


def wrong_length_of_y(model, X, y):
    model.fit(X, y[:-1])


def bad_alpha(model, X, y):
    model.set_params(alpha=-1.0).fit(X, y)


def weights_of_one_row(model, X, y):
    model.fit(X[:, 1:], y, sample_weight=spoiled(np.zeros(N), 1.0))


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
        patch.setattr(foldless.linalg.memory, "available_memory", lambda: 0)
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
