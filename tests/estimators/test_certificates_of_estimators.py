"""Certificates and effects of forgetting, of the estimators."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from foldless import LSSVC, LSSVR, KernelFisherDiscriminant
from support.online import (
    LABELS,
    VALUES,
    W_ZEROS,
    C,
    X,
    all_outputs,
    assert_same,
    effects_of_refits,
    every_classifier,
    every_kind,
    every_penalty,
    fitted_on,
    gram,
    regression_targets,
    targets,
    updated_model,
)
from support.tolerances import assert_close

# -- evidence ----------------------------------------------------------------------------------------------------------


def test_the_certificate_says_what_was_compared():
    model = updated_model(LSSVR)
    certificate = model.unlearning_certificate()
    refit = fitted_on(LSSVR, range(20))
    assert certificate.holds
    assert (certificate.n_samples, certificate.n_forgotten, certificate.inherited) == (20, 1, ())
    model.forget([3, 4, 5]).partial_fit(X[30:31], VALUES[30:31, 0])
    assert model.unlearning_certificate().n_forgotten == 4
    assert model.unlearning_certificate().n_samples == 18
    assert 0 < certificate.difference < 1e-11
    assert certificate.loo_difference < 1e-11
    assert certificate.residual < 1e-12
    M = gram(X[:20], X[:20]) + 0.3 * np.eye(20)
    hard = LSSVR(gamma=1e-5, alpha=1e-8).fit(X[:20], VALUES[:20])
    assert certificate.limit == 1e-8 > 1e3 * np.finfo(float).eps * np.linalg.cond(M)
    M = np.exp(-1e-5 * np.square(X[:20, None] - X[None, :20]).sum(-1)) + 1e-8 * np.eye(20)
    assert hard.unlearning_certificate().limit == pytest.approx(1e3 * np.finfo(float).eps * np.linalg.cond(M), rel=0.01)
    assert refit.unlearning_certificate().n_forgotten == 0
    text = str(certificate)
    assert text.startswith("A model of 20 rows, 1 forgotten, equals a new fit on its rows.")
    for value in (certificate.residual, certificate.difference, certificate.loo_difference, certificate.limit):
        assert f"{value:.1e}" in text
    assert model.fit(X, VALUES).unlearning_certificate().n_forgotten == 0


def spoiled(name, model):
    """The model with one of the arrays it predicts with changed a little."""
    values = np.array(getattr(model, name))
    values.flat[0] += 1e-4 * max(1.0, np.abs(values).max())
    setattr(model, name, values)
    return model


SPOILT = [("_dual", LSSVR, "rbf"), ("_dual", LSSVC, "rbf"), ("_dual", KernelFisherDiscriminant, "rbf")]
SPOILT += [("_offset", LSSVR, "rbf"), ("_offset", LSSVC, "linear"), ("_weights", LSSVC, "linear")]


@pytest.mark.parametrize(
    ("name", "kind", "kernel"), SPOILT, ids=[f"{k.__name__}{n} {kernel}" for n, k, kernel in SPOILT]
)
@every_penalty
@pytest.mark.parametrize("case_name", ["itself", "pickle"])
def test_a_model_that_was_tampered_with_gets_no_certificate(name, kind, kernel, penalty, case_name):
    def make():
        return updated_model(kind, kernel=kernel, penalty=penalty)

    model = make() if case_name == "itself" else pickle.loads(pickle.dumps(make()))
    assert model.unlearning_certificate().holds
    certificate = spoiled(name, model).unlearning_certificate()
    assert certificate.difference > 1e-6
    assert not certificate.holds
    assert "DIFFERS from a new fit" in str(certificate)


def test_coefficients_of_confounds_are_certified():
    model = LSSVR(gamma=0.2).fit(X[:20], VALUES[:20], confounds=C[:20]).forget([3])
    assert model.unlearning_certificate().holds
    assert not spoiled("_confound_B", model).unlearning_certificate().holds


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_coefficients_get_no_certificate(value):
    model = updated_model(LSSVR)
    model._dual = np.full_like(model._dual, value)
    certificate = model.unlearning_certificate()
    assert not certificate.holds
    assert "DIFFERS" in str(certificate)


@every_penalty
def test_a_matrix_that_went_wrong_gets_no_certificate(penalty):
    model = updated_model(LSSVR, penalty=penalty)
    held = model._parts.full_fit.own_precision._held.array
    vars(model._parts.full_fit.own_precision).pop("_diagonal", None)
    held += 1e-3 * np.random.default_rng(0).normal(size=held.shape)
    certificate = model.unlearning_certificate()
    assert certificate.loo_difference > 1e-6
    assert not certificate.holds


def test_rows_that_are_not_those_of_the_model_get_no_certificate():
    """As if one row had been left in when the others were solved."""
    model = updated_model(LSSVR)
    one = model._fitted_task.Y[3].copy()
    model._fitted_task.Y[3] += 1.0
    assert not model.unlearning_certificate().holds
    model._fitted_task.Y[3] = one
    assert model.unlearning_certificate().holds


@every_classifier
def test_certificate_names_parameters_resolved_from_forgotten_rows(kind):
    model = kind(alpha=0.3).fit(X, LABELS[3])
    assert model.unlearning_certificate().inherited == ("gamma",)
    assert "gamma" not in str(model.unlearning_certificate())  # nothing forgotten yet
    text = str(model.forget([0]).unlearning_certificate())
    assert "resolved once, with forgotten rows: gamma; fit anew to leave no trace of them" in text
    text = str(kind(gamma=0.1, penalty="coef").fit(X, LABELS[3]).forget([0]).unlearning_certificate())
    assert "resolved once, with forgotten rows: penalty;" in text
    for numeric in (kind(gamma=0.1), kind("linear"), kind("cosine")):
        certificate = numeric.fit(X, LABELS[3]).forget([0]).unlearning_certificate()
        assert certificate.inherited == ()
        assert "resolved" not in str(certificate)


def test_one_row_has_a_certificate_without_leave_one_out():
    certificate = LSSVR(gamma=0.2).partial_fit(X[:1], [2.0]).unlearning_certificate()
    assert np.isnan(certificate.loo_difference)
    assert certificate.holds
    assert "1 rows, 0 forgotten" in str(certificate)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "cosine", "linear"])
@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
@pytest.mark.filterwarnings("ignore:penalty=.coef. is resolved from the 5 rows")
def test_one_row_without_an_intercept_has_a_certificate_whatever_its_weight(kernel, penalty):
    model = LSSVC(kernel, gamma=0.5, penalty=penalty, fit_intercept=False)
    model.partial_fit(X[:5], LABELS[3][:5], classes=np.unique(LABELS[3]), sample_weight=[1e5, 1, 1, 1, 1])
    assert model.forget([1, 2, 3, 4]).unlearning_certificate().holds


def test_single_precision_has_a_wider_limit():
    model = LSSVR(gamma=0.2).fit(X[:20].astype(np.float32), VALUES[:20]).forget([3])
    certificate = model.unlearning_certificate()
    assert certificate.limit == pytest.approx(1e-3)
    assert certificate.holds
    assert not spoiled("_dual", model).forget([0]).unlearning_certificate().difference > 1e-3  # updates know better
    model._dual = model._dual * 1.01
    assert not model.unlearning_certificate().holds


@every_kind
@every_penalty
def test_drift_attribute_is_the_largest_residual_of_updates(kind, penalty):
    model = fitted_on(kind, range(20), penalty=penalty)
    assert model.drift_ == 0.0
    for row in range(20, 30):
        model.partial_fit(X[[row]], targets(kind, [row])).forget(0)
    assert isinstance(model.drift_, float)
    assert model.drift_ < 1e-10
    assert pickle.loads(pickle.dumps(model)).drift_ == 0.0
    held = model._parts.full_fit.own_precision._held.array
    held += 1e-3 * np.random.default_rng(0).normal(size=held.shape)
    for row in range(30, 40):  # what went wrong is noticed, though not at once, and mended
        model.partial_fit(X[[row]], targets(kind, [row])).forget(0)
    assert model.drift_ < 1e-10
    assert_same(all_outputs(model), all_outputs(fitted_on(kind, range(20, 40), first=range(20), penalty=penalty)))
    assert model.fit(X, targets(kind)).drift_ == 0.0


@pytest.mark.many_cases
@every_kind
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("penalty", [{"penalty": "rkhs"}, {"penalty": "coef"}], ids=["rkhs", "coef"])
@pytest.mark.parametrize("weights", ["none", "zeros"])
def test_effects_of_forgetting_are_those_of_refits(kind, n_classes, penalty, weights):
    w = W_ZEROS[:18] if weights == "zeros" else np.ones(18)
    given = penalty | {"gamma": 0.2, "alpha": 0.3}
    y = targets(kind, range(18), n_classes)
    model = kind(**given).fit(X[:18], y, sample_weight=None if weights == "none" else w)
    expected = effects_of_refits(X[:18], regression_targets(kind, y), w, **given)
    assert_close(model.forgetting_effects(), expected)
    kept = np.delete(np.arange(18), [2, 9])
    expected = effects_of_refits(X[kept], regression_targets(kind, y[kept]), w[kept], first=X[:18][w > 0], **given)
    assert_close(model.forget([2, 9]).forgetting_effects(), expected)


def test_certificate_with_a_large_residual_does_not_hold():
    certificate = (
        LSSVR(gamma=0.3).fit(X, np.random.default_rng(5).normal(size=len(X))).forget([1]).unlearning_certificate()
    )
    assert certificate.holds
    assert not replace(certificate, residual=1e-3).holds


def test_certificate_holds_where_the_intercept_is_zero():
    half = np.random.default_rng(0).normal(size=(15, 2))
    rows, y = np.vstack([half, -half]), np.repeat([1.0, -1.0], 15)
    model = LSSVR(gamma=0.3).fit(np.vstack([rows, [[9.0, 9.0]]]), np.append(y, 1.0)).forget([30])
    assert abs(model.intercept_) < 1e-12
    assert model.unlearning_certificate().holds
