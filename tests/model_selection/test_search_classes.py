"""Searches with parameters for each class, and the classifier that comes of it."""

import pickle

import numpy as np
import pytest
from sklearn import model_selection as skl
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import RidgeClassifier

from foldless import LSSVC, FoldlessSearchCV
from foldless._engine.readout.calibration import fit_calibration
from foldless.estimators import OneAgainstAllClassifier
from foldless.model_selection import Optimizer
from support.refits import signs
from support.searches import (
    ALPHAS,
    BINARY,
    CODES,
    KFDA,
    LABELS,
    RBF_GRID,
    WEIGHT,
    D,
    N,
    X,
    criterion_by_refits,
    losses_of,
)
from support.tolerances import assert_close

# -- classes with parameters of their own ------------------------------------------------------------------------------


@pytest.mark.many_cases
@pytest.mark.parametrize("method", ["grid", "gradient", "simplex"])
@pytest.mark.parametrize("estimator", [LSSVC(), KFDA(), LSSVC(penalty="coef"), RidgeClassifier()], ids=str)
def test_share_none_equals_separate_binary_searches(method, estimator):
    grid = {"alpha": ALPHAS} if isinstance(estimator, RidgeClassifier) else RBF_GRID
    options = {"method": Optimizer(method, max_iter=6), "param_grid": grid if method == "grid" else None}
    options["criterion_weight"] = "balanced"  # other weights in every column
    search = FoldlessSearchCV(estimator, share="none", **options).fit(X, LABELS, sample_weight=WEIGHT)
    alone = [
        FoldlessSearchCV(estimator, **options).fit(X, label == LABELS, sample_weight=WEIGHT)
        for label in np.unique(LABELS)
    ]
    assert search.best_params_ == [pytest.approx(each.best_params_, rel=1e-6) for each in alone]
    assert search.best_criterion_ == pytest.approx(sum(each.best_criterion_ for each in alone), rel=1e-9)
    assert_close(search.alpha_, np.array([each.alpha_ for each in alone]), rtol=1e-6)
    decisions = np.column_stack([each.decision_function(X) for each in alone])
    assert_close(search.decision_function(X), decisions, rtol=1e-5)
    np.testing.assert_array_equal(search.predict(X), np.unique(LABELS)[decisions.argmax(1)])
    assert isinstance(search.best_estimator_, OneAgainstAllClassifier)
    assert len(search.best_index_) == 3


def test_a_shared_kernel_of_a_grid_is_the_one_with_the_least_sum():
    search = FoldlessSearchCV(LSSVC(), RBF_GRID, share="kernel").fit(X, LABELS)
    tables = {}
    for k, label in enumerate(np.unique(LABELS)):
        alone = FoldlessSearchCV(LSSVC(), RBF_GRID).fit(X, label == LABELS)
        for params, value in zip(alone.cv_results_["params"], losses_of(alone), strict=True):
            tables.setdefault(params["gamma"], np.empty((3, 3)))[ALPHAS.index(params["alpha"]), k] = value
    gamma = min(tables, key=lambda gamma: tables[gamma].min(0).sum())
    assert search.best_params_ == [{"gamma": gamma, "alpha": ALPHAS[k]} for k in tables[gamma].argmin(0)]
    assert search.best_criterion_ == pytest.approx(tables[gamma].min(0).sum())
    shared, none = (FoldlessSearchCV(LSSVC(), RBF_GRID, share=share).fit(X, LABELS) for share in ("all", "none"))
    assert shared.best_criterion_ >= search.best_criterion_ >= none.best_criterion_


@pytest.mark.parametrize("method", ["gradient", "simplex"])
@pytest.mark.parametrize("scaling", [False, True])
def test_a_shared_kernel_with_an_alpha_for_each_class(method, scaling):
    options = {"method": Optimizer(method, max_iter=15, prior=None, feature_scaling=scaling)}
    search = FoldlessSearchCV(LSSVC(), share="kernel", **options).fit(X, LABELS)
    gammas = [each["gamma"] for each in search.best_params_]
    assert len(gammas) == 3
    assert all(np.array_equal(gamma, gammas[0]) for gamma in gammas)
    assert len({each["alpha"] for each in search.best_params_}) == 3
    assert search.best_criterion_ == pytest.approx(criterion_by_refits(search, X, LABELS), rel=1e-6)
    assert search.best_criterion_ < FoldlessSearchCV(LSSVC(), {"alpha": [1.0]}).fit(X, LABELS).best_criterion_
    assert all(len(step["alpha"]) == 3 for step in search.history_)
    if scaling:
        assert search.feature_scales_.shape in ((D,), (3, D))


def test_an_alpha_for_each_class_given_one_kernel_is_that_of_binary_searches():
    """With nothing to tune in the kernel, sharing it changes nothing."""
    shared, none = (
        FoldlessSearchCV(LSSVC("linear"), method=Optimizer("gradient", max_iter=200), share=share).fit(X, LABELS)
        for share in ("kernel", "none")
    )
    assert shared.best_criterion_ == pytest.approx(none.best_criterion_, rel=1e-6)
    assert_close(np.log(shared.alpha_), np.log(none.alpha_), scale=1.0, rtol=0.05)


@pytest.mark.filterwarnings("ignore:.*lies on the edge")
@pytest.mark.parametrize("share", ["kernel", "none"])
@pytest.mark.parametrize("method", ["grid", "gradient"])
def test_share_changes_nothing_for_two_classes(share, method):
    options = {"method": Optimizer(method, max_iter=5)}
    one, two = (FoldlessSearchCV(LSSVC(), share=each, **options).fit(X, BINARY) for each in ("all", share))
    assert one.best_params_ == two.best_params_
    assert one.best_criterion_ == two.best_criterion_
    assert isinstance(two.best_estimator_, LSSVC)


def test_alphas_of_classes_without_an_alpha_in_the_grid_are_the_estimators():
    search = FoldlessSearchCV(LSSVC(alpha=0.7), {"gamma": [0.1, 1.0]}, share="none").fit(X, LABELS)
    assert_close(search.alpha_, np.full(3, 0.7))


@pytest.mark.parametrize("share", ["kernel", "none"])
def test_probabilities_of_classes_with_parameters_of_their_own(share):
    search = FoldlessSearchCV(LSSVC(calibration="sigmoid"), {"alpha": ALPHAS}, share=share).fit(X, LABELS)
    binary = np.column_stack([each.predict_proba(X)[:, 1] for each in search.best_estimator_.estimators_])
    assert_close(search.predict_proba(X), binary / binary.sum(1, keepdims=True))
    ridge = FoldlessSearchCV(RidgeClassifier(), {"alpha": np.logspace(-1, 3, 13)}, share=share).fit(X, LABELS)
    single = [RidgeClassifier(**params) for params in ridge.best_params_]
    assert len(set(ridge.alpha_)) > 1
    options = {"cv": skl.LeaveOneOut(), "method": "decision_function"}
    held_out = [skl.cross_val_predict(each, X, t, **options) for each, t in zip(single, signs(LABELS).T, strict=True)]
    calibrator = fit_calibration("sigmoid", np.column_stack(held_out), CODES, 3, np.ones(N))
    assert_close(ridge.predict_proba(X), calibrator.proba(ridge.decision_function(X)), rtol=1e-6)
    for each in (search, ridge):
        assert_close(each.predict_proba(X).sum(1), np.ones(N))
        assert_close(each.predict_log_proba(X), np.log(each.predict_proba(X)))


@pytest.mark.parametrize("name", ["class_weight", "priors"])
@pytest.mark.parametrize("share", ["kernel", "none"])
def test_parameters_that_name_classes_are_refused_where_classes_are_apart(name, share):
    value = {"ant": 2.0} if name == "class_weight" else [0.2, 0.3, 0.5]
    for estimator, grid in ((KFDA(**{name: value}), {"alpha": ALPHAS}), (KFDA(), {name: [value]})):
        with pytest.raises(ValueError, match=rf"{name} .*share='{share}'.*share='all'"):
            FoldlessSearchCV(estimator, grid, share=share).fit(X, LABELS)


# -- the classifier that comes of it -----------------------------------------------------------------------------------


def test_one_classifier_for_each_class_decides_by_the_largest():
    parts = [("ant", LSSVC(alpha=0.1)), ("bee", LSSVC(alpha=1.0, gamma=0.3)), ("cat", LSSVC(alpha=3.0))]
    model = OneAgainstAllClassifier(parts).fit(X, LABELS, sample_weight=WEIGHT)
    alone = [clone(each).fit(X, label == LABELS, sample_weight=WEIGHT) for label, each in parts]
    decisions = np.column_stack([each.decision_function(X) for each in alone])
    assert_close(model.decision_function(X), decisions)
    assert list(model.classes_) == ["ant", "bee", "cat"]
    np.testing.assert_array_equal(model.predict(X), model.classes_[decisions.argmax(1)])
    left_out = np.column_stack([each.loo_decision_function() for each in alone])
    assert_close(model.loo_decision_function(), left_out)
    np.testing.assert_array_equal(model.loo_predict(), model.classes_[left_out.argmax(1)])
    assert model.loo_score_ == pytest.approx(np.mean(model.loo_predict() == LABELS))
    assert model.n_features_in_ == D
    assert not hasattr(model, "predict_proba")
    again = pickle.loads(pickle.dumps(model))
    assert_close(again.decision_function(X), decisions)
    assert not hasattr(clone(model), "classes_")


def test_leave_one_out_of_several_classifiers_equals_refits():
    parts = [(0, LSSVC(alpha=0.1, gamma=0.1)), (1, LSSVC(gamma=0.3)), (2, LSSVC(alpha=3.0, gamma=1.0))]
    model = OneAgainstAllClassifier(parts)
    theirs = skl.cross_val_predict(model, X, CODES, cv=skl.LeaveOneOut(), method="decision_function")
    assert_close(model.fit(X, CODES).loo_decision_function(), theirs)


def test_classes_of_several_classifiers_must_be_those_of_y():
    parts = [("ant", LSSVC()), ("bee", LSSVC())]
    with pytest.raises(ValueError, match=r"estimators names the classes \['ant', 'bee'\]; y holds .*'cat'"):
        OneAgainstAllClassifier(parts).fit(X, LABELS)
    with pytest.raises(NotFittedError):
        OneAgainstAllClassifier(parts).predict(X)


def test_a_row_that_no_class_wants_has_equal_probabilities():
    never = DummyClassifier(strategy="constant", constant=False)
    model = OneAgainstAllClassifier([(label, never) for label in (0, 1, 2)]).fit(X[:9], np.arange(9) % 3)
    assert_close(model.predict_proba(X[:2]), np.full((2, 3), 1 / 3))
