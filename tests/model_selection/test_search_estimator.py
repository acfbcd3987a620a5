"""FoldlessSearchCV as an estimator of scikit-learn's."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn import model_selection as skl
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from foldless import LSSVC, LSSVR, FoldlessSearchCV
from foldless._engine.readout.calibration import fit_calibration
from foldless.estimators import OneAgainstAllClassifier
from foldless.model_selection import Optimizer
from support.searches import ALPHAS, BINARY, KFDA, LABELS, RBF_GRID, SPLITTERS, VALUES, WEIGHT, D, N, X, losses_of
from support.tolerances import assert_close

WEIGHT_CHECKS = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")


def expected_failures(search):
    """A weight is no repetition once rows are left out one by one, and probabilities are no part of RidgeClassifier."""
    kind, reasons = type(search.estimator), {}
    if kind in (KFDA, RidgeClassifier):
        reasons = dict.fromkeys(WEIGHT_CHECKS, "a repeated row stays in training when its twin is left out")
    if kind is RidgeClassifier:
        reason = "predict is RidgeClassifier's; the calibrated probability of one half need not lie at decision 0"
        reasons["check_classifiers_train"] = reason
    return reasons


@pytest.mark.many_cases
@parametrize_with_checks(
    [
        FoldlessSearchCV(LSSVC()),
        FoldlessSearchCV(LSSVR()),
        FoldlessSearchCV(RidgeClassifier()),
        FoldlessSearchCV(KFDA(), method="gradient"),
    ],
    expected_failed_checks=expected_failures,
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_checks(estimator, check):
    check(estimator)


SEARCHES = {
    "grid": (FoldlessSearchCV(LSSVC(), RBF_GRID), LABELS),
    "gradient": (FoldlessSearchCV(KFDA(), method=Optimizer("gradient", max_iter=5, feature_scaling=True)), LABELS),
    "classes apart": (FoldlessSearchCV(LSSVC(calibration="sigmoid"), {"alpha": ALPHAS}, share="none"), LABELS),
    "ridge": (FoldlessSearchCV(RidgeClassifier(), {"alpha": ALPHAS}, cv=skl.KFold(5)), BINARY),
    "regression": (FoldlessSearchCV(LSSVR(), RBF_GRID), VALUES),
}
every_search = pytest.mark.parametrize(("search", "y"), SEARCHES.values(), ids=SEARCHES)


def outputs(model, X):
    names = ("predict", "decision_function", "predict_proba", "transform")
    return {name: getattr(model, name)(X) for name in names if hasattr(model, name)}


@every_search
def test_clones_are_unfitted_and_fit_to_the_same(search, y):
    fitted = clone(search).fit(X, y)
    again = clone(fitted)
    assert not hasattr(again, "best_params_")
    assert repr(again) == repr(search)
    with pytest.raises(NotFittedError):
        again.predict(X)
    np.testing.assert_array_equal(losses_of(again.fit(X, y)), losses_of(fitted))


@every_search
def test_pickles_predict_the_same(search, y):
    fitted = clone(search).fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    one, two = outputs(fitted, X), outputs(again, X)
    assert one.keys() == two.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], two[name])
    np.testing.assert_array_equal(losses_of(again), losses_of(fitted))
    assert again.best_criterion_ == fitted.best_criterion_


@every_search
def test_the_best_setting_is_fitted_on_all_rows(search, y):
    fitted = clone(search).fit(X, y, sample_weight=WEIGHT)
    if isinstance(fitted.best_params_, list):
        parts = [clone(search.estimator).set_params(**each) for each in fitted.best_params_]
        by_itself = OneAgainstAllClassifier(list(zip(np.unique(y).tolist(), parts, strict=True)))
    else:
        by_itself = clone(search.estimator).set_params(**fitted.best_params_)
    by_itself.fit(X, y, sample_weight=WEIGHT)
    for name, values in outputs(by_itself, X).items():
        np.testing.assert_array_equal(getattr(fitted, name)(X), values)
    assert fitted.score(X, y) == by_itself.score(X, y)
    assert fitted.score(X, y, sample_weight=WEIGHT) == by_itself.score(X, y, sample_weight=WEIGHT)
    assert fitted.n_features_in_ == D
    if is_classifier(search):
        np.testing.assert_array_equal(fitted.classes_, np.unique(y))
    else:
        assert not hasattr(fitted, "classes_")


@every_search
def test_search_inside_cross_validation_is_repeated_on_each_training_part(search, y):
    cv = skl.KFold(3, shuffle=True, random_state=1)
    scores = skl.cross_val_score(search, X, y, cv=cv)
    expected = [clone(search).fit(X[train], y[train]).score(X[test], y[test]) for train, test in cv.split(X)]
    assert_close(scores, np.array(expected), scale=1.0)


@every_search
def test_behind_a_scaler_the_search_sees_scaled_rows(search, y):
    data = X * [1.0, 10.0, 100.0, 1.0]
    pipeline = make_pipeline(StandardScaler(), clone(search)).fit(data, y)
    alone = clone(search).fit(StandardScaler().fit_transform(data), y)
    assert pipeline[-1].best_criterion_ == pytest.approx(alone.best_criterion_, rel=1e-9)
    np.testing.assert_array_equal(np.shape(pipeline.predict(data)), np.shape(y))
    assert pipeline.score(data, y) == pytest.approx(alone.score(StandardScaler().fit_transform(data), y))


def test_discriminant_axes_in_the_middle_of_a_pipeline():
    search = FoldlessSearchCV(KFDA(), RBF_GRID).fit(X, LABELS)
    assert search.transform(X).shape == (N, 2)
    assert not hasattr(FoldlessSearchCV(LSSVC()), "transform")
    pipeline = make_pipeline(FoldlessSearchCV(KFDA(), RBF_GRID), LSSVC()).fit(X, LABELS)
    np.testing.assert_array_equal(
        pipeline.predict(X), LSSVC().fit(search.transform(X), LABELS).predict(search.transform(X))
    )
    framed = FoldlessSearchCV(KFDA().set_output(transform="pandas"), RBF_GRID).fit(X, LABELS)
    assert list(framed.transform(X).columns) == ["kernelfisherdiscriminant0", "kernelfisherdiscriminant1"]
    assert_close(framed.transform(X).to_numpy(), search.transform(X))


def test_methods_are_those_of_the_estimator():
    before = {
        "decision_function": {LSSVC: True, LSSVR: False, RidgeClassifier: True, KFDA: True, Ridge: False},
        "predict_proba": {LSSVC: False, LSSVR: False, RidgeClassifier: True, KFDA: False, Ridge: False},
        "transform": {LSSVC: False, LSSVR: False, RidgeClassifier: False, KFDA: True, Ridge: False},
    }
    for method, kinds in before.items():
        for kind, expected in kinds.items():
            search = FoldlessSearchCV(kind(), {"alpha": [1.0]})
            assert hasattr(search, method) == expected, (method, kind)
            y = LABELS if is_classifier(kind()) else VALUES
            assert hasattr(search.fit(X, y), method) == expected, (method, kind)
    assert hasattr(FoldlessSearchCV(LSSVC(calibration="sigmoid")), "predict_proba")
    for kind in (LSSVC, LSSVR, RidgeClassifier, KFDA, Ridge):
        assert is_classifier(FoldlessSearchCV(kind())) == is_classifier(kind())
        assert sklearn.base.is_regressor(FoldlessSearchCV(kind())) == sklearn.base.is_regressor(kind())


@pytest.mark.many_cases
@pytest.mark.parametrize("y", [BINARY, LABELS], ids=["2 classes", "3 classes"])
@pytest.mark.parametrize("splitter", ["leave-one-out", "KFold"])
@pytest.mark.parametrize(("criterion", "weighted"), [("press", True), ("error", False), ("multiclass_error", True)])
def test_probabilities_of_ridge_classifiers_are_a_sigmoid_of_held_out_decisions(y, splitter, criterion, weighted):
    w, cv, grid = WEIGHT if weighted else None, SPLITTERS[splitter], {"alpha": ALPHAS, "fit_intercept": [True, False]}
    search = FoldlessSearchCV(RidgeClassifier(), grid, cv=cv, criterion=criterion).fit(X, y, sample_weight=w)
    single = RidgeClassifier(**search.best_params_)
    params = {"sample_weight": w} if weighted else None
    scores = skl.cross_val_predict(single, X, y, cv=cv or skl.LeaveOneOut(), method="decision_function", params=params)
    classes, codes = np.unique(y, return_inverse=True)
    calibrator = fit_calibration("sigmoid", scores, codes, len(classes), np.ones(N) if w is None else w)
    expected = calibrator.proba(single.fit(X, y, sample_weight=w).decision_function(X))
    assert_close(search.predict_proba(X), expected, rtol=1e-6)
    assert_close(search.predict_proba(X).sum(1), np.ones(N))
    assert_close(search.predict_log_proba(X), np.log(expected), rtol=1e-5)


def test_a_class_of_one_row_is_searched_and_only_its_probabilities_are_refused():
    y = np.array(["one"] + ["many"] * (N - 1))
    search = FoldlessSearchCV(RidgeClassifier(), {"alpha": ALPHAS}).fit(X, y)
    assert set(search.predict(X)) <= {"one", "many"}
    with pytest.raises(ValueError, match="two classes with at least two rows"):
        search.predict_proba(X)


def test_without_a_refit_there_are_results_and_no_predictions():
    search = FoldlessSearchCV(LSSVC(), RBF_GRID, refit=False).fit(X, LABELS)
    same = FoldlessSearchCV(LSSVC(), RBF_GRID).fit(X, LABELS)
    assert search.best_params_ == same.best_params_
    np.testing.assert_array_equal(losses_of(search), losses_of(same))
    assert not hasattr(search, "best_estimator_")
    for method in ("predict", "decision_function"):
        with pytest.raises(AttributeError, match="refit=False"):
            getattr(search, method)(X)


def test_a_second_fit_leaves_nothing_of_the_first():
    search = FoldlessSearchCV(LSSVC(), method=Optimizer("gradient", max_iter=3, feature_scaling=True)).fit(X, LABELS)
    assert hasattr(search, "feature_scales_")
    search.set_params(method="grid", param_grid=RBF_GRID, refit=False).fit(X, BINARY)
    assert not hasattr(search, "feature_scales_")
    assert not hasattr(search, "best_estimator_")
    assert list(search.classes_) == ["no", "yes"]
    search.set_params(estimator=Ridge(), param_grid=None, refit=True).fit(pd.DataFrame(X, columns=list("abcd")), VALUES)
    assert not hasattr(search, "classes_")
    search.fit(X, VALUES)
    assert not hasattr(search, "feature_names_in_")


def test_coefficients_and_alpha_have_the_names_of_ridge_cv():
    search = FoldlessSearchCV(LSSVC("linear"), {"alpha": ALPHAS}).fit(X, LABELS)
    assert_close(search.coef_, search.best_estimator_.coef_)
    assert_close(search.intercept_, search.best_estimator_.intercept_)
    assert search.alpha_ == search.best_params_["alpha"]
    assert FoldlessSearchCV(LSSVC(alpha=0.7), {"gamma": [0.1]}).fit(X, LABELS).alpha_ == 0.7
    assert not hasattr(FoldlessSearchCV(LSSVC(), RBF_GRID).fit(X, LABELS), "coef_")


def test_parameters_of_the_estimator_are_within_reach():
    search = FoldlessSearchCV(LSSVC())
    search.set_params(estimator__alpha=3.0, cv=4)
    assert search.estimator.alpha == 3.0
    assert search.get_params()["estimator__alpha"] == 3.0


def test_the_estimator_given_is_never_fitted():
    estimator = LSSVC()
    FoldlessSearchCV(estimator, RBF_GRID).fit(X, LABELS)
    assert vars(estimator) == vars(LSSVC())


@pytest.mark.parametrize("method", ["grid", "gradient"])
def test_progress_goes_to_standard_error_where_it_is_asked_for(method, capsys):
    for verbose in (0, 1):
        FoldlessSearchCV(LSSVC(), {"alpha": [1.0]}, method=Optimizer(method, max_iter=2), verbose=verbose).fit(
            X, LABELS
        )
        out, err = capsys.readouterr()
        assert not out
        assert bool(err) == bool(verbose)


def test_float32_is_searched_in_single_precision():
    search = FoldlessSearchCV(LSSVC(), method=Optimizer("gradient", max_iter=10)).fit(X.astype(np.float32), LABELS)
    double = FoldlessSearchCV(LSSVC(), method=Optimizer("gradient", max_iter=10)).fit(X, LABELS)
    assert search.decision_function(X.astype(np.float32)).dtype == np.float32
    assert search.best_criterion_ == pytest.approx(double.best_criterion_, rel=1e-2)


def test_a_fitted_search_keeps_the_rows_in_its_best_estimator_alone():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 500)), np.arange(40) % 2
    search = FoldlessSearchCV(LSSVC("linear"), {"alpha": [0.1, 1.0]}).fit(X, y)
    del search.best_estimator_
    assert len(pickle.dumps(search)) < X.nbytes / 2
