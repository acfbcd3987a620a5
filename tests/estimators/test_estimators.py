"""The estimators as scikit-learn's: its own checks, containers, clones, pickles, attributes, leave-one-out methods."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn import model_selection as skl
from sklearn.base import clone
from sklearn.datasets import make_classification, make_regression
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.utils import estimator_html_repr
from sklearn.utils.estimator_checks import parametrize_with_checks

from foldless import LSSVC, LSSVR, KernelFisherDiscriminant
from support.refits import jackknife_plus
from support.tolerances import assert_close

X, Y3 = make_classification(60, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
Y2 = (Y3 > 0).astype(int)
LABELS = np.array(["low", "mid", "top"])[Y3]
VALUES = make_regression(60, 5, random_state=0)[1]
MODELS = {
    "LSSVC 2": (LSSVC(gamma=0.1), Y2),
    "LSSVC 3": (LSSVC(gamma=0.1), LABELS),
    "LSSVC coef": (LSSVC(gamma=0.1, penalty="coef"), LABELS),
    "LSSVC linear": (LSSVC("linear"), LABELS),
    **{f"KFDA {t}": (KernelFisherDiscriminant(gamma=0.1, threshold=t), Y2) for t in ("fisher", "centroid", "loo")},
    "KFDA 3": (KernelFisherDiscriminant(gamma=0.1, calibration="sigmoid"), LABELS),
    "KFDA linear": (KernelFisherDiscriminant("linear", priors=[0.2, 0.3, 0.5]), LABELS),
    "KFDA coef": (KernelFisherDiscriminant(gamma=0.1, penalty="coef", calibration="isotonic"), LABELS),
    "LSSVR": (LSSVR(gamma=0.1), VALUES),
    "LSSVR linear": (LSSVR("linear", fit_intercept=False), VALUES),
    "LSSVR outputs": (LSSVR("poly", gamma=0.1, degree=2), np.column_stack([VALUES, X[:, 0]])),
}
every_model = pytest.mark.parametrize(("estimator", "y"), MODELS.values(), ids=MODELS)

WEIGHT_CHECKS = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")

UPDATE_CHECKS = (
    "check_fit_score_takes_y",
    "check_n_features_in_after_fitting",
    "check_estimators_partial_fit_n_features",
)


def expected_failures(estimator):
    """scikit-learn's own reason for CalibratedClassifierCV holds here too; so does the nature of basis functions."""
    if getattr(estimator, "calibration", None) is not None:
        reason = "Due to the cross-validation, removing a sample is not strictly equal to putting its weight to zero."
        return dict.fromkeys(WEIGHT_CHECKS, reason)
    if getattr(estimator, "class_weight", None) == "balanced":
        return dict.fromkeys(UPDATE_CHECKS, "partial_fit refuses balanced weights, as SGDClassifier's does")
    if estimator.penalty == "coef":
        return dict.fromkeys(WEIGHT_CHECKS, "a repeated row brings another basis function, a weight does not")
    return {}


@parametrize_with_checks(
    [
        LSSVC(),
        LSSVR(),
        KernelFisherDiscriminant(),
        LSSVC("linear"),
        LSSVR("linear", fit_intercept=False),
        LSSVC(class_weight="balanced"),
        KernelFisherDiscriminant("linear", threshold="centroid"),
        KernelFisherDiscriminant(threshold="loo"),
        LSSVC(penalty="coef"),
        LSSVC(calibration="sigmoid"),
        KernelFisherDiscriminant(calibration="sigmoid"),
        KernelFisherDiscriminant(calibration="isotonic"),
    ],
    expected_failed_checks=expected_failures,
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def outputs(model, X):
    names = ("decision_function", "predict", "predict_proba", "transform")
    return {name: getattr(model, name)(X) for name in names if hasattr(model, name)}


def assert_same(one, two, **options):
    assert one.keys() == two.keys()
    for name, values in two.items():
        if values.dtype.kind == "f":
            assert_close(one[name], values, **options)
        else:
            np.testing.assert_array_equal(one[name], values)


@pytest.mark.many_cases
@every_model
def test_leave_one_out_methods_equal_scikit_learns_loop(estimator, y):
    model = clone(estimator).fit(X, y)
    cv = skl.LeaveOneOut()
    predictions = skl.cross_val_predict(estimator, X, y, cv=cv)
    if hasattr(model, "decision_function"):
        decisions = skl.cross_val_predict(estimator, X, y, cv=cv, method="decision_function")
        assert_close(model.loo_decision_function(), decisions)
        if hasattr(model, "predict_proba"):
            expected = skl.cross_val_predict(estimator, X, y, cv=cv, method="predict_proba")
            assert_close(model.loo_predict_proba(), expected)
        np.testing.assert_array_equal(model.loo_predict(), predictions)
        assert model.loo_score_ == pytest.approx(np.mean(predictions == y))
    else:
        assert_close(model.loo_predict(), predictions)
        residual = ((y - predictions) ** 2).sum(0) / ((y - y.mean(0)) ** 2).sum(0)
        assert model.loo_score_ == pytest.approx(np.mean(1 - residual))


@every_model
def test_predictions_follow_decisions_and_labels(estimator, y):
    model = clone(estimator).fit(X, y)
    if not hasattr(model, "classes_"):
        return
    decision = model.decision_function(X)
    if len(model.classes_) == 2:
        assert decision.shape == (60,)
        np.testing.assert_array_equal(model.predict(X), model.classes_[(decision > 0).astype(int)])
    else:
        assert decision.shape == (60, 3)
        np.testing.assert_array_equal(model.predict(X), model.classes_[decision.argmax(1)])
    assert model.score(X, y) > 0.6


@pytest.mark.many_cases
@every_model
@pytest.mark.parametrize("container", ["csr", "csc", "pandas", "polars", "list"])
def test_containers_give_the_same_outputs(estimator, y, container):
    frame = pd.DataFrame(X, columns=list("abcde"))
    data = {
        "csr": sp.csr_array(X),
        "csc": sp.csc_matrix(X),
        "pandas": frame,
        "polars": pl.from_pandas(frame),
        "list": X.tolist(),
    }[container]
    model = clone(estimator).fit(data, y)
    assert_same(outputs(model, data), outputs(clone(estimator).fit(X, y), X))
    theirs = Ridge().fit(data, Y2)  # older versions of scikit-learn do not read the names of newer polars
    assert hasattr(model, "feature_names_in_") == hasattr(theirs, "feature_names_in_")
    if container == "pandas":
        assert list(model.feature_names_in_) == list("abcde")
    assert model.n_features_in_ == 5
    assert model.loo_score_ == pytest.approx(clone(estimator).fit(X, y).loo_score_)


@every_model
def test_float32_stays_float32(estimator, y):
    model = clone(estimator).fit(X.astype(np.float32), y)
    for name, values in outputs(model, X.astype(np.float32)).items():
        if name != "predict_proba" and values.dtype.kind == "f":
            assert values.dtype == np.float32, name
    if hasattr(model, "decision_function"):
        double = clone(estimator).fit(X, y).decision_function(X)
        assert_close(model.decision_function(X.astype(np.float32)), double, rtol=1e-2)


@every_model
def test_pickles_predict_the_same_and_leave_the_factor_behind(estimator, y):
    model = clone(estimator).fit(X, y)
    blob = pickle.dumps(model)
    again = pickle.loads(blob)
    assert_same(outputs(again, X), outputs(model, X), rtol=1e-15)
    assert_close(again.loo_predict(), model.loo_predict()) if not hasattr(model, "classes_") else None
    assert again.loo_score_ == pytest.approx(model.loo_score_)
    big = clone(estimator).set_params(gamma=0.1) if "gamma" in estimator.get_params() else clone(estimator)
    rows = np.tile(X, (10, 1)) + np.random.default_rng(0).normal(size=(600, 5))
    size = len(pickle.dumps(big.fit(rows, np.tile(y, (10, 1)) if np.ndim(y) == 2 else np.tile(y, 10))))
    assert size < 0.2 * 600**2 * 8  # a factor alone would be 1.0


@pytest.mark.parametrize("y", [Y2, LABELS], ids=["2", "3"])
@pytest.mark.parametrize("kind", [LSSVC, KernelFisherDiscriminant])
@pytest.mark.parametrize("shape", ["tall", "wide"])
def test_linear_coefficients_are_the_decision_function(kind, y, shape):
    data = X if shape == "tall" else np.hstack([X, np.random.default_rng(0).normal(size=(60, 90))])
    model = kind("linear").fit(data, y)
    linear = data @ model.coef_.T + model.intercept_
    decision = model.decision_function(data)
    if kind is KernelFisherDiscriminant and len(model.classes_) == 3:  # up to a constant for each row
        linear, decision = (d - d.mean(1, keepdims=True) for d in (linear, decision))
    assert_close(linear, decision if decision.ndim == 2 else decision[:, None])
    assert not hasattr(kind("rbf").fit(data, y), "coef_")


def test_linear_models_are_scikit_learns():
    for weight in (None, np.random.default_rng(0).uniform(0.2, 2.0, 60)):
        ours = LSSVR("linear", alpha=0.7).fit(X + 50, VALUES, sample_weight=weight)
        theirs = Ridge(alpha=0.7).fit(X + 50, VALUES, sample_weight=weight)
        assert_close(ours.coef_, theirs.coef_)
        assert ours.intercept_ == pytest.approx(theirs.intercept_)
        ours = LSSVC("linear", alpha=0.7, class_weight={"low": 3.0}).fit(X, LABELS, sample_weight=weight)
        theirs = RidgeClassifier(alpha=0.7, class_weight={"low": 3.0, "mid": 1.0, "top": 1.0})
        assert_close(ours.decision_function(X), theirs.fit(X, LABELS, sample_weight=weight).decision_function(X))


def test_dual_coefficients_are_the_expansion():
    model = LSSVR(gamma=0.1).fit(X, VALUES)
    new = X[:5] + 0.1
    assert_close(model.kernel_.gram(new, model.X_fit_) @ model.dual_coef_ + model.intercept_, model.predict(new))
    model = KernelFisherDiscriminant(gamma=0.1).fit(X, LABELS)
    z = model.kernel_.gram(new, model.X_fit_) @ model.dual_coef_
    assert_close(np.diff(z, axis=0), np.diff(model.transform(new), axis=0))


def test_transform_puts_centroids_where_the_classes_are():
    model = KernelFisherDiscriminant(gamma=0.1).fit(X, LABELS)
    z = model.transform(X)
    for k, name in enumerate(model.classes_):
        assert_close(model.centroids_[k], z[name == LABELS].mean(0))
    assert model.explained_variance_ratio_.sum() == pytest.approx(1.0)
    assert np.all(np.diff(model.explained_variance_ratio_) <= 0)
    assert KernelFisherDiscriminant(gamma=0.1, n_components=1).fit(X, LABELS).transform(X).shape == (60, 1)


def test_transform_follows_set_output_and_names_its_features():
    model = KernelFisherDiscriminant(gamma=0.1).set_output(transform="pandas").fit(X, LABELS)
    assert list(model.transform(X).columns) == ["kernelfisherdiscriminant0", "kernelfisherdiscriminant1"]
    assert model.set_output(transform="polars").transform(X).shape == (60, 2)


@every_model
def test_holder_attribute_says_how_P_is_held(estimator, y):
    model = clone(estimator).fit(X, y)
    expected = "low rank: 5 linear features for 60 rows" if model.kernel == "linear" else "factored: one alpha"
    assert expected in model.holder_
    twice = np.vstack([X, X])
    again = clone(estimator).set_params(alpha=1e-18).fit(twice, np.concatenate([y, y]))
    if model.kernel != "linear":
        expected = "low rank: 120 features" if model.penalty == "coef" else "alpha=1e-18"
        assert expected in again.holder_
        assert ("spectral" in again.holder_) == (model.penalty == "rkhs")


def test_html_repr_and_tags():
    assert "LSSVC" in estimator_html_repr(LSSVC())
    assert LSSVC("precomputed").__sklearn_tags__().input_tags.pairwise
    assert not LSSVC().__sklearn_tags__().input_tags.pairwise
    assert LSSVR().__sklearn_tags__().target_tags.multi_output


def test_weights_routed_through_grid_search():
    w = np.random.default_rng(0).uniform(0.1, 2.0, 60)
    search = skl.GridSearchCV(LSSVC(), {"alpha": [0.1, 1.0], "gamma": [0.1, "scale"]}, cv=3)
    search.fit(X, LABELS, sample_weight=w)
    assert search.best_score_ > 0.5


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("columns", [1, 2])
def test_intervals_are_jackknife_plus_of_refits(kernel, penalty, weighted, columns):
    rng = np.random.default_rng(0)
    data, new = X[:25], X[25:31]
    y = np.column_stack([VALUES, X[:, 1]])[:25, :columns]
    y = y[:, 0] if columns == 1 else y
    w = rng.uniform(0.2, 2.0, 25) if weighted else None
    model = LSSVR(kernel, gamma=0.1, penalty=penalty).fit(data, y, sample_weight=w)
    coverages = (0.5, 0.8, 0.9)
    intervals = jackknife_plus(model, data, y, new, coverages, sample_weight=w)
    for coverage, expected in zip(coverages, intervals, strict=True):
        assert_close(model.predict_interval(new, coverage), expected)
    assert np.isinf(model.predict_interval(new, 0.99)).all()


def test_intervals_cover_the_share_asked_for():
    rng = np.random.default_rng(0)
    data = rng.uniform(-2, 2, size=(400, 1))
    y = np.sin(2 * data[:, 0]) + 0.3 * rng.normal(size=400)
    ends = LSSVR(gamma=1.0, alpha=0.1).fit(data[:150], y[:150]).predict_interval(data[150:], coverage=0.9)
    inside = np.mean((ends[:, 0] <= y[150:]) & (y[150:] <= ends[:, 1]))
    assert 0.84 < inside < 0.96


def test_loo_of_a_class_of_one_row_is_defined():
    y = Y2.copy()
    y[0] = 2
    for model in (LSSVC(gamma=0.1), KernelFisherDiscriminant(gamma=0.1)):
        model.fit(X, y)
        assert np.isfinite(model.loo_decision_function()).all()
        assert model.loo_predict()[0] != 2


def test_balanced_weights_equal_given_ones():
    counts = np.bincount(Y3)
    w = (60 / (3 * counts))[Y3]
    assert_close(
        LSSVC(gamma=0.1, class_weight="balanced").fit(X, Y3).decision_function(X),
        LSSVC(gamma=0.1).fit(X, Y3, sample_weight=w).decision_function(X),
    )


def test_priors_count_in_proportion():
    shares = np.array([0.2, 0.3, 0.5])
    one, two = (KernelFisherDiscriminant(gamma=0.1, priors=each).fit(X, LABELS) for each in (shares, 10 * shares))
    assert_close(two.decision_function(X), one.decision_function(X))
    assert not np.allclose(
        one.decision_function(X), KernelFisherDiscriminant(gamma=0.1).fit(X, LABELS).decision_function(X)
    )
