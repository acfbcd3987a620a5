"""A linear model behind StandardScaler, both fitted on each training part from sums: equal to scikit-learn's loop."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn import model_selection as skl
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import foldless.model_selection as fl
from foldless import LSSVC, LSSVR, KernelFisherDiscriminant
from support.cases import odd_splits, splitters
from support.cross_validation import BINARY, CODES, LABELS, VALUES, WEIGHT, N, X

KFDA = KernelFisherDiscriminant
FEATURES = X * [1e-3, 1.0, 50.0, 1.0, 1.0] + [0.0, 3.0, 1e3, 0.0, -1.0]
ESTIMATORS = [
    (Ridge(), VALUES),
    (Ridge(fit_intercept=False), VALUES),
    (Ridge(alpha=3.0), np.column_stack([VALUES, X[:, 1]])),
    (LSSVR("linear"), VALUES),
    (KernelRidge(), VALUES),
    (RidgeClassifier(), LABELS),
    (RidgeClassifier(class_weight={0: 2.0, 1: 1.0, 2: 0.5}), CODES),
    (LSSVC("linear"), LABELS),
    (LSSVC("linear", fit_intercept=False), BINARY),
    (KFDA("linear"), LABELS),
    (KFDA("linear", threshold="centroid"), BINARY),
    (KFDA("linear", fit_intercept=False), LABELS),
]
everyone = pytest.mark.parametrize(("estimator", "y"), ESTIMATORS, ids=lambda each: repr(each)[:60])
scalers = pytest.mark.parametrize(
    "scaler", [StandardScaler(), StandardScaler(with_mean=False), StandardScaler(with_std=False)]
)


def weights_of(pipeline):
    return {f"{pipeline.steps[-1][0]}__sample_weight": WEIGHT}


@pytest.mark.many_cases
@everyone
@scalers
@pytest.mark.parametrize("splitter", ["KFold", "LeaveOneOut", "ShuffleSplit with a gap", "odd"])
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
def test_scores_equal_refits(estimator, y, scaler, splitter, weighted):
    pipeline = make_pipeline(scaler, estimator)
    cv = odd_splits(N)[:4] if splitter == "odd" else splitters(N, CODES)[splitter]
    scoring = "neg_mean_squared_error" if y.dtype.kind == "f" else "accuracy"
    options = {"cv": cv, "scoring": scoring, "params": weights_of(pipeline) if weighted else None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, theirs = (
            each.cross_validate(pipeline, FEATURES, y, return_train_score=True, **options) for each in (fl, skl)
        )
        direct = fl.cross_val_score(pipeline, FEATURES, y, **options)
    assert "from sums of its 5 features" in ours.path.reason
    assert_allclose(ours["train_score"], theirs["train_score"], rtol=1e-8, atol=1e-10)
    assert_allclose(ours["test_score"], theirs["test_score"], rtol=1e-8, atol=1e-10)
    assert_allclose(direct, theirs["test_score"], rtol=1e-8, atol=1e-10)


@pytest.mark.many_cases
@everyone
@scalers
@pytest.mark.parametrize("cv", [skl.KFold(7), skl.LeaveOneOut()], ids=["folds", "rows"])
def test_predictions_equal_refits(estimator, y, scaler, cv):
    pipeline = make_pipeline(scaler, estimator)
    method = "decision_function" if hasattr(estimator, "decision_function") else "predict"
    ours, theirs = (each.cross_val_predict(pipeline, FEATURES, y, cv=cv, method=method) for each in (fl, skl))
    assert_allclose(ours, theirs, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(("estimator", "y"), [(LSSVC("linear"), LABELS), (Ridge(), VALUES)], ids=["LSSVC", "Ridge"])
def test_fitted_pipelines_are_those_of_refits(estimator, y):
    pipeline = make_pipeline(StandardScaler(), estimator)
    options = {"cv": 4, "return_estimator": True, "params": weights_of(pipeline)}
    ours, theirs = (each.cross_validate(pipeline, FEATURES, y, **options)["estimator"] for each in (fl, skl))
    method = "decision_function" if y is LABELS else "predict"
    for mine, other in zip(ours, theirs, strict=True):
        assert_allclose(getattr(mine, method)(FEATURES), getattr(other, method)(FEATURES), rtol=1e-12)


@pytest.mark.parametrize(
    ("pipeline", "params"),
    [
        (make_pipeline(StandardScaler(), LSSVC(gamma=0.1)), None),
        (make_pipeline(StandardScaler(), LSSVC("linear", class_weight="balanced")), None),
        (make_pipeline(StandardScaler(), LSSVC("linear", penalty="coef")), None),
        (make_pipeline(StandardScaler(), LSSVC("linear")), {"standardscaler__sample_weight": WEIGHT}),
        (make_pipeline(StandardScaler(), StandardScaler(), LSSVC("linear")), None),
    ],
    ids=["rbf", "balanced", "coef", "weights of the scaler", "two steps"],
)
def test_what_is_not_covered_goes_through_the_loop(pipeline, params):
    options = {"cv": 5, "params": params}
    ours, theirs = (each.cross_validate(pipeline, FEATURES, BINARY, **options) for each in (fl, skl))
    assert "from sums" not in ours.path.reason
    assert_allclose(ours["test_score"], theirs["test_score"], rtol=1e-9)


def test_as_many_features_as_rows_go_through_the_loop():
    wide = np.random.default_rng(0).normal(size=(N, N))
    path = fl.explain(make_pipeline(StandardScaler(), LSSVC("linear")), wide, BINARY)
    assert "from sums" not in path.reason
