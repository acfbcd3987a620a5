"""Confounds of the estimators: predictions, containers, what they mean."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn import model_selection as skl
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, Ridge

import foldless.model_selection as fl
from foldless import LSSVC, LSSVR, KernelFisherDiscriminant, kernels
from support.confounds import (
    BINARY,
    C_NEW,
    LABELS,
    NEW,
    SEVERAL,
    VALUES,
    WEIGHT,
    C,
    N,
    X,
    every_estimator,
    method_of,
    refit_with_confounds,
)
from support.refits import refit
from support.tolerances import assert_close


def regressed(X, C, train, weight=None):
    """X without what the confounds explain of it, with coefficients of the rows ``train``."""
    line = LinearRegression().fit(C[train], X[train], sample_weight=None if weight is None else weight[train])
    return X - C @ line.coef_.T


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weights"])
@pytest.mark.parametrize(
    ("estimator", "y"),
    [
        pytest.param(LSSVC("linear"), BINARY, id="LSSVC, 2 classes"),
        pytest.param(LSSVC("linear", alpha=0.1), LABELS, id="LSSVC, 3 classes"),
        pytest.param(LSSVR("linear"), SEVERAL, id="LSSVR"),
        pytest.param(KernelFisherDiscriminant("linear", priors=[0.2, 0.3, 0.5]), LABELS, id="KFDA, 3 classes"),
        pytest.param(KernelFisherDiscriminant("linear", alpha=1e-8), LABELS, id="KFDA, hardly a penalty"),
        *[
            pytest.param(KernelFisherDiscriminant("linear", threshold=t), BINARY, id=f"KFDA {t}, 2 classes")
            for t in ("fisher", "pm1", "centroid", "loo")
        ],
    ],
)
def test_scores_are_those_of_features_without_the_confounds(estimator, y, weight):
    """Confounds regressed out of X with the coefficients of the training part, and no word of them after that.

    Nested leave-one-out (the cut of "loo") regresses within its own training parts.
    """
    cv, method = skl.KFold(4), method_of(estimator)
    params = None if weight is None else {"sample_weight": weight}
    ours = fl.cross_val_predict(estimator, X, y, cv=cv, method=method, confounds=C, params=params)
    for train, test in cv.split(X):
        rest = regressed(X, C, train, weight)
        model = refit(estimator, rest, y, train, sample_weight=weight)
        expected = getattr(model, method)(rest[test])
        if getattr(estimator, "threshold", None) == "loo":  # its own cut is another one: compare before it
            expected = expected + model._rule.cut - refit_with_confounds(estimator, y, train, weight=weight)._rule.cut
        assert_close(ours[test], expected)


@every_estimator
def test_a_constant_added_to_a_confound_changes_nothing(estimator, y):
    """Also where the constant is far larger than what varies. Without an intercept there is no mean to be about."""
    if not estimator.fit_intercept:
        pytest.skip("no intercept")
    method = method_of(estimator)
    for step, rtol in ((50.0, 1e-10), (1e6, 1e-6)):
        one, two = (clone(estimator).fit(X, y, confounds=q) for q in (C, C + step))
        assert_close(getattr(two, method)(NEW), getattr(one, method)(NEW), rtol=rtol)
        assert_close(getattr(two, method)(NEW, C_NEW + step), getattr(one, method)(NEW, C_NEW), rtol=rtol)
        assert_close(two.confound_coef_, one.confound_coef_, rtol=rtol)
        options = {"method": method, "cv": skl.KFold(4)}
        one, two = (fl.cross_val_predict(estimator, X, y, confounds=q, **options) for q in (C, C + step))
        assert_close(two, one, rtol=rtol)


def test_years_of_birth_are_as_good_as_ages_in_single_precision():
    born = 2000 + np.round(5 * C[:, 0])
    one, two = (LSSVC(gamma=0.1).fit(X.astype("float32"), BINARY, confounds=q) for q in (born, born - 2000))
    assert_close(one.decision_function(NEW.astype("float32")), two.decision_function(NEW.astype("float32")), rtol=1e-5)


def test_confounds_kept_in_the_score_are_features_without_penalty():
    """As the penalty on them goes to nothing, linear features of huge scale become confounds kept in the score."""
    huge = np.hstack([X, 1e5 * C])
    cv = skl.StratifiedKFold(4)
    for estimator in (
        KernelFisherDiscriminant("linear"),
        LSSVC("linear"),
        KernelFisherDiscriminant("linear", priors=[0.2, 0.3, 0.5]),
    ):
        options = {"cv": cv, "method": "decision_function"}
        ours = fl.cross_val_predict(estimator, X, LABELS, confounds=fl.Confounds(C, in_score=True), **options)
        assert_close(ours, fl.cross_val_predict(estimator, huge, LABELS, **options), rtol=1e-6)


@every_estimator
def test_predict_without_confounds_takes_them_at_their_mean(estimator, y):
    model = refit_with_confounds(estimator, y, np.arange(N))
    method = getattr(model, method_of(estimator))
    without, with_them = method(NEW), method(NEW, confounds=C_NEW)
    mean = C.mean(0) if estimator.fit_intercept else np.zeros(2)
    if estimator.get_params().get("class_weight"):  # means count weights
        mean = np.average(C, 0, np.where(BINARY == "no", 2.0, 0.5))
    assert_close(method(NEW, confounds=np.tile(mean, (len(NEW), 1))), without)
    added = (C_NEW - mean) @ model.confound_coef_.T
    if y is LABELS and isinstance(estimator, KernelFisherDiscriminant):  # up to a constant a row, as with coef_
        without, with_them, added = (each - each[:, :1] for each in (without, with_them, added))
    assert_close(with_them - without, added.reshape(without.shape), scale=np.abs(with_them).max())
    if hasattr(model, "coef_"):
        linear = (NEW @ model.coef_.T + model.intercept_).reshape(without.shape)
        linear = linear - linear[:, :1] if linear.ndim == 2 and y is LABELS else linear
        assert_close(linear, without)
    if hasattr(model, "transform"):
        z = model.transform(NEW, confounds=C_NEW) - model.transform(NEW)
        assert_close(z, (C_NEW - mean) @ (model._confound_B @ model._scalings))
        assert model.fit_transform(X, y, confounds=C).shape == (N, z.shape[1])


def test_labels_and_probabilities_with_confounds():
    model = KernelFisherDiscriminant(gamma=0.1, calibration="sigmoid").fit(X, BINARY, confounds=C)
    decision = model.decision_function(NEW, confounds=C_NEW)
    np.testing.assert_array_equal(model.predict(NEW, confounds=C_NEW), model.classes_[(decision > 0).astype(int)])
    proba = model.predict_proba(NEW, confounds=C_NEW)
    np.testing.assert_array_equal(np.argsort(proba[:, 1]), np.argsort(decision))
    assert np.abs(proba - model.predict_proba(NEW)).max() > 1e-3
    assert_close(np.exp(model.predict_log_proba(NEW, confounds=C_NEW)), proba)


def test_linear_model_with_confounds_equals_ridge_of_residuals():
    """Frisch, Waugh and Lovell: y, or its residuals, on residuals of X, whose regression gives the confounds' share."""
    line = LinearRegression().fit(C, X)
    model = LSSVR("linear", alpha=0.7).fit(X, VALUES, confounds=C)
    for y in (VALUES, VALUES - LinearRegression().fit(C, VALUES).predict(C)):
        assert_close(model.coef_, Ridge(alpha=0.7).fit(X - line.predict(C), y).coef_)
    assert_close(model.confound_coef_, -line.coef_.T @ model.coef_)
    assert_close(model.intercept_, VALUES.mean() - X.mean(0) @ model.coef_)


def test_confounds_in_any_container_or_of_one_dimension():
    one = C[:, 0]
    expected = LSSVC(gamma=0.1).fit(X, BINARY, confounds=one[:, None])
    forms = [one, list(one), pd.Series(one), pl.Series(one), pd.DataFrame({"age": one}), pl.DataFrame({"age": one})]
    for form in forms:
        model = LSSVC(gamma=0.1).fit(X, BINARY, confounds=form)
        assert_close(model.decision_function(NEW), expected.decision_function(NEW))
        ours = fl.cross_val_predict(LSSVC(gamma=0.1), X, BINARY, confounds=form, method="decision_function")
        theirs = fl.cross_val_predict(LSSVC(gamma=0.1), X, BINARY, confounds=one, method="decision_function")
        np.testing.assert_array_equal(ours, theirs)
    assert_close(expected.confound_coef_, LSSVC(gamma=0.1).fit(X, BINARY, confounds=one).confound_coef_)


@pytest.mark.parametrize("form", ["float32", "sparse", "precomputed"])
def test_confounds_with_float32_sparse_and_precomputed_features(form):
    kernel = kernels.RBF(0.1)
    dense = LSSVC(gamma=0.1).fit(X, BINARY, confounds=C)
    cv = skl.StratifiedKFold(4)
    expected = fl.cross_val_predict(LSSVC(gamma=0.1), X, BINARY, cv=cv, method="decision_function", confounds=C)
    estimator, given, new, rtol = {
        "float32": (LSSVC(gamma=0.1), X.astype("float32"), NEW.astype("float32"), 2e-3),
        "sparse": (LSSVC(gamma=0.1), sp.csr_array(X), sp.csr_array(NEW), None),
        "precomputed": (LSSVC("precomputed"), kernel.gram(X), kernel.gram(NEW, X), None),
    }[form]
    model = estimator.fit(given, BINARY, confounds=C)
    assert_close(
        model.decision_function(new, confounds=C_NEW), dense.decision_function(NEW, confounds=C_NEW), rtol=rtol
    )
    assert_close(model.loo_decision_function(), dense.loo_decision_function(), rtol=rtol)
    ours = fl.cross_val_predict(estimator, given, BINARY, cv=cv, method="decision_function", confounds=C)
    assert_close(ours, expected, rtol=rtol)
    if form == "float32":
        assert ours.dtype == model.decision_function(new, confounds=C_NEW).dtype == np.float32


@pytest.mark.parametrize("kind", [LSSVC, KernelFisherDiscriminant])
def test_confounds_of_rows_of_weight_zero_do_not_count(kind):
    weight = WEIGHT.copy()
    weight[[2, 9, 30]] = 0.0
    kept = np.flatnonzero(weight)
    model = kind(gamma=0.1).fit(X, LABELS, sample_weight=weight, confounds=C)
    without = kind(gamma=0.1).fit(X[kept], LABELS[kept], sample_weight=weight[kept], confounds=C[kept])
    assert_close(model.decision_function(NEW), without.decision_function(NEW))
    assert_close(model.loo_decision_function()[kept], without.loo_decision_function())
    idle = np.flatnonzero(weight == 0)
    assert_close(model.loo_decision_function()[idle], without.decision_function(X[idle], confounds=C[idle]))


def test_a_refit_without_confounds_forgets_them():
    model = LSSVC(gamma=0.1).fit(X, BINARY, confounds=C).fit(X, BINARY)
    assert not hasattr(model, "confound_coef_")
    assert_close(model.decision_function(NEW), LSSVC(gamma=0.1).fit(X, BINARY).decision_function(NEW))
    assert not hasattr(clone(LSSVC(gamma=0.1).fit(X, BINARY, confounds=C)), "_confound_B")


@every_estimator
def test_decisions_depend_on_the_span_of_the_confounds_only(estimator, y):
    mixed = C @ [[2.0, -1.0], [0.5, 3.0]]
    one, two = (fl.cross_val_predict(estimator, X, y, method=method_of(estimator), confounds=q) for q in (C, mixed))
    assert_close(one, two)


@pytest.mark.parametrize("many", [False, True], ids=["one row", "most rows"])
def test_rows_whose_loss_leaves_a_confound_undetermined_are_not_forgotten(many):
    """Without the rows of a level its indicator is constant, as the intercept is."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), np.arange(30) % 2
    level = np.zeros(30)
    level[7] = 1.0
    model = LSSVC(gamma=0.1).fit(X, y, confounds=level)
    before = model.decision_function(X)
    with pytest.raises(ValueError, match="confounds: column 0 is a linear combination of the intercept"):
        model.forget(np.arange(20) if many else [7])
    np.testing.assert_array_equal(model.decision_function(X), before)
