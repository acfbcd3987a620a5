"""Bad parameters and kernels are refused with an error that says what was found and what to try."""

import re

import numpy as np
import pytest
import scipy.sparse as sp

from foldless import LSSVC, LSSVR, KernelFisherDiscriminant
from foldless.kernels import Boolean
from foldless.model_selection import cross_val_predict
from foldless.reference import heldout_fits
from support.bad_input import D, N, data, every_classifier, every_kind


def gram(kind, seed=0):
    """A positive definite Gram matrix and a y."""
    X, y = data(kind, seed)
    return np.exp(-0.3 * np.square(X[:, None] - X[None]).sum(-1)), y


# -- parameters --------------------------------------------------------------------------------------------------------


@every_kind
@pytest.mark.parametrize("alpha", [-1, 0, -0.0, np.nan, np.inf, "1", None, [1.0], 1 + 0j], ids=repr)
def test_alpha_must_be_a_positive_number(kind, alpha):
    message = rf"alpha={re.escape(repr(alpha))} must be a finite number > 0; for \(nearly\) no penalty use"
    with pytest.raises(ValueError, match=message):
        kind(alpha=alpha).fit(*data(kind))
    with pytest.raises(ValueError, match=message):
        cross_val_predict(kind(alpha=alpha), *data(kind))


@every_kind
@pytest.mark.parametrize("value", ["nonsense", None, 1, ["rkhs"]], ids=repr)
def test_unknown_penalties_are_refused(kind, value):
    with pytest.raises(ValueError, match=rf"penalty={re.escape(repr(value))} is unknown; use one of 'rkhs', 'coef'"):
        kind(penalty=value).fit(*data(kind))


@every_classifier
@pytest.mark.parametrize("value", ["platt", 1, True, ["sigmoid"]], ids=repr)
def test_unknown_calibration_is_refused(kind, value):
    message = rf"calibration={re.escape(repr(value))} is unknown; use one of None, 'sigmoid', 'isotonic'"
    with pytest.raises(ValueError, match=message):
        kind(calibration=value).fit(*data(kind))


@every_kind
@pytest.mark.parametrize("value", ["no", None, 1, 0.0], ids=repr)
def test_fit_intercept_is_true_or_false(kind, value):
    with pytest.raises(ValueError, match=rf"fit_intercept={re.escape(repr(value))} must be True or False"):
        kind(fit_intercept=value).fit(*data(kind))


@every_classifier
@pytest.mark.parametrize("method", ["predict_proba", "predict_log_proba", "loo_predict_proba"])
def test_probabilities_without_calibration_are_refused_with_the_remedy(kind, method):
    model = kind().fit(*data(kind))
    assert not hasattr(model, method)
    with pytest.raises(
        AttributeError, match=rf"{kind.__name__} has no {method} with calibration=None. Probabilities need calibration="
    ):
        getattr(model, method)


@every_classifier
@pytest.mark.parametrize(("y", "shown"), [(0.0, "0.0"), (1, "1"), ("a", "'a'")])
def test_a_single_class_is_shown_as_a_plain_value(kind, y, shown):
    with pytest.raises(ValueError, match=re.escape(f"y holds one class only ({shown})")):
        kind().fit(np.eye(4), np.full(4, y))


@pytest.mark.parametrize("value", ["zero", None, 0.5], ids=repr)
def test_unknown_threshold_is_refused(value):
    with pytest.raises(ValueError, match=rf"threshold={re.escape(repr(value))} is unknown; use one of .*'pm1'"):
        KernelFisherDiscriminant(threshold=value).fit(*data(LSSVC))


@every_kind
@pytest.mark.parametrize("value", ["gauss", None, 3], ids=repr)
def test_unknown_kernel_is_refused(kind, value):
    with pytest.raises(ValueError, match=rf"kernel={re.escape(repr(value))} is unknown; use one of .*'rbf'"):
        kind(value).fit(*data(kind))


@every_kind
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"gamma": -1.0}, r"gamma=-1.0 must be positive and finite"),
        ({"gamma": "large"}, r"gamma='large' is unknown; use 'scale'"),
        ({"gamma": [1.0, 2.0]}, rf"gamma has shape \(2,\); .*{D} features"),
        ({"kernel": "poly", "degree": 0}, r"degree=0 must be a finite number > 0"),
        ({"kernel": "poly", "coef0": -1}, r"coef0=-1 must be a finite number >= 0"),
        ({"kernel": Boolean(0)}, r"eta=0 must be a finite number > 0"),
    ],
    ids=str,
)
def test_bad_kernel_parameters_are_refused(kind, parameters, message):
    with pytest.raises(ValueError, match=message):
        kind(**parameters).fit(*data(kind))


@every_kind
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_fractional_degree_of_negative_numbers_is_refused_by_name(kind):
    """(x.z + coef0)^2.5 does not exist for x.z < -coef0; rescaling X, the way out of an overflow, would not help."""
    with pytest.raises(ValueError, match=r"degree=2\.5") as error:
        kind("poly", degree=2.5, gamma=5.0).fit(*data(kind))
    assert "rescale" not in str(error.value).lower()


@every_kind
def test_callable_kernel_that_returns_no_gram_matrix(kind):
    with pytest.raises(ValueError, match=rf"returned shape \({N},\).*must .*return a Gram matrix of shape"):
        kind(lambda X, Z: np.ones(len(X))).fit(*data(kind))


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_bad_number_of_components_is_refused(n_classes, fit_intercept):
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


@every_classifier
def test_class_weight_of_an_unknown_label_is_named_with_the_known_ones(kind):
    X, y = data(kind)
    with pytest.raises(ValueError, match=r"class_weight names \['cat'\].*classes are .*'a', 'b'"):
        kind(class_weight={"a": 1.0, "cat": 2.0}).fit(X, np.array(["a", "b"])[y])


@every_classifier
@pytest.mark.parametrize("weight", [-1.0, 0.0, np.nan, np.inf, "heavy"])
def test_class_weight_must_be_positive(kind, weight):
    with pytest.raises(ValueError, match=r"class_weight=.* must hold finite numbers > 0"):
        kind(class_weight={0: weight}).fit(*data(kind))


@every_classifier
@pytest.mark.parametrize("value", ["equal", 3, [0, 1], [2.0, 1.0]], ids=repr)
def test_class_weight_that_is_no_dict_is_told_what_to_use(kind, value):
    with pytest.raises((ValueError, TypeError), match=rf"class_weight={re.escape(repr(value))}.*'balanced'.*dict"):
        kind(class_weight=value).fit(*data(kind))


# -- precomputed kernels -----------------------------------------------------------------------------------------------


@every_kind
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_precomputed_kernel_that_is_not_symmetric_is_refused(kind, form):
    K, y = gram(kind)
    K[0, 1] += 0.25
    with pytest.raises(ValueError, match=r"precomputed kernel is not symmetric: .* differ by up to 0.25.*\(K \+ K.T\)"):
        kind("precomputed").fit(form(K), y)


@every_kind
def test_precomputed_kernel_that_is_not_square_is_refused(kind):
    K, y = gram(kind)
    with pytest.raises(ValueError, match=rf"must be a square matrix: X has shape \({N}, {N - 2}\).*\(n_new, n_train\)"):
        kind("precomputed").fit(K[:, 2:], y)


@every_kind
def test_precomputed_kernel_of_wrong_width_in_predict_is_refused(kind):
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


@every_kind
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


@every_kind
def test_a_parameter_that_does_not_exist_is_refused_by_the_name_of_the_estimator(kind):
    with pytest.raises(TypeError, match=rf"^{kind.__name__}\(\) got an unexpected keyword argument 'C'"):
        kind(C=1.0)
