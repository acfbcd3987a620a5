"""Methods of the best estimator, asked for at the search: of an estimator, or of the last step of a pipeline."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from foldless import LSSVC, LSSVR, FoldlessSearchCV
from support.searches import ALPHAS, BINARY, KFDA, LABELS, VALUES, WEIGHT, N, X

OLD, NEW = np.arange(20), np.arange(20, N)


def search_of(last, behind, **options):
    """A search of an estimator alone, or behind a scaler."""
    name = f"{type(last).__name__.lower()}__" if behind else ""
    estimator = make_pipeline(StandardScaler(), last) if behind else last
    return FoldlessSearchCV(estimator, {f"{name}alpha": ALPHAS, f"{name}gamma": [0.1]}, **options)


def seen(behind, rows=slice(None), scales=slice(None)):
    """Rows as the last step sees them, with the scales of some rows."""
    return StandardScaler().fit(X[scales]).transform(X[rows]) if behind else X[rows]


behind_steps = pytest.mark.parametrize("behind", [False, True], ids=["alone", "pipeline"])


@behind_steps
def test_methods_of_the_best_estimator_are_those_of_the_search(behind):
    search = search_of(LSSVC(calibration="sigmoid"), behind).fit(X[OLD], BINARY[OLD])
    best = LSSVC(gamma=0.1, alpha=search.alpha_, calibration="sigmoid").fit(seen(behind, OLD, OLD), BINARY[OLD])
    for name in ("loo_decision_function", "loo_predict_proba", "forgetting_effects"):
        assert_allclose(getattr(search, name)(), getattr(best, name)(), rtol=1e-9)
    for name in ("decision_function", "predict_proba", "predict_log_proba"):
        assert_allclose(getattr(search, name)(X), getattr(best, name)(seen(behind, scales=OLD)), rtol=1e-9)
    assert_array_equal(search.loo_predict(), best.loo_predict())
    assert search.loo_score_ == best.loo_score_
    assert search.unlearning_certificate().residual < 1e-8
    fisher = search_of(KFDA(), behind).fit(X, LABELS)
    expected = KFDA(gamma=0.1, alpha=fisher.alpha_).fit_transform(seen(behind), LABELS)
    assert_allclose(fisher.transform(X), expected, rtol=1e-9)


@behind_steps
def test_rows_come_and_go_at_the_chosen_setting(behind):
    search = search_of(LSSVC(), behind).fit(X[OLD], LABELS[OLD], sample_weight=WEIGHT[OLD])
    chosen, best = search.best_params_, search.best_estimator_
    assert search.partial_fit(X[NEW], LABELS[NEW], sample_weight=WEIGHT[NEW]) is search
    plain = LSSVC(gamma=0.1, alpha=search.alpha_).fit(seen(behind, scales=OLD), LABELS, sample_weight=WEIGHT)
    assert_allclose(search.decision_function(X), plain.decision_function(seen(behind, scales=OLD)), rtol=1e-8)
    search.forget(np.arange(7))
    plain.fit(seen(behind, slice(7, None), OLD), LABELS[7:], sample_weight=WEIGHT[7:])
    assert_allclose(search.decision_function(X), plain.decision_function(seen(behind, scales=OLD)), rtol=1e-8)
    assert search.best_params_ is chosen
    assert search.best_estimator_ is best


@behind_steps
def test_new_classes_are_those_of_the_search_as_well(behind):
    search = search_of(LSSVC(), behind).fit(X[LABELS != "cat"], LABELS[LABELS != "cat"])
    search.partial_fit(X, LABELS)
    assert_array_equal(search.classes_, ["ant", "bee", "cat"])
    assert search.decision_function(X).shape == (N, 3)


@behind_steps
def test_updates_that_fail_leave_all_as_it_was(behind):
    search = search_of(LSSVC(), behind).fit(X, BINARY)
    before = search.decision_function(X)
    for fails in (
        lambda: search.partial_fit(X[:, :2], BINARY),
        lambda: search.partial_fit(X, np.arange(N) / 3),
        lambda: search.partial_fit(X, BINARY, sample_weight=-WEIGHT),
        lambda: search.forget([N]),
        lambda: search.forget(ids=["a"]),
    ):
        with pytest.raises(ValueError, match=r"\w"):
            fails()
        assert_array_equal(search.decision_function(X), before)
        assert_array_equal(search.classes_, ["no", "yes"])


@behind_steps
def test_the_first_partial_fit_is_a_search(behind):
    search = search_of(LSSVC(), behind).partial_fit(X, LABELS, classes=["ant", "bee", "cat"])
    assert search.best_params_ == clone(search).fit(X, LABELS).best_params_
    with pytest.raises(ValueError, match="classes: 'dog' is not in y"):
        clone(search).partial_fit(X, LABELS, classes=["ant", "dog"])


@behind_steps
def test_only_what_the_best_estimator_has_is_there(behind):
    updates = {"partial_fit", "forget", "forgetting_effects", "unlearning_certificate"}
    labels = {"loo_decision_function", "decision_function"}
    expected = {
        LSSVC(): updates | labels | {"loo_predict"},
        LSSVR(): updates | {"loo_predict"},
        KFDA(calibration="sigmoid"): updates | labels | {"loo_predict", "loo_predict_proba", "transform"},
    }
    names = set().union(*expected.values())
    for last, present in expected.items():
        search = search_of(last, behind)
        assert {name for name in names if hasattr(search, name)} == present
        search.fit(X, VALUES if isinstance(last, LSSVR) else LABELS)
        assert {name for name in names if hasattr(search, name)} == present
    ridge = make_pipeline(StandardScaler(), RidgeClassifier()) if behind else RidgeClassifier()
    assert {name for name in names if hasattr(FoldlessSearchCV(ridge), name)} == {"decision_function"}
    apart = search_of(LSSVC(), behind, share="kernel").fit(X, LABELS)
    assert {name for name in names if hasattr(apart, name)} == labels | {"loo_predict"}
    assert apart.loo_score_ == np.mean(apart.loo_predict() == LABELS)
