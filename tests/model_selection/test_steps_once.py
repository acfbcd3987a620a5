"""steps="once": the first steps of a pipeline are fitted once on all rows, and one fit serves all training parts."""

import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import model_selection as skl
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import foldless.model_selection as fl
from foldless import LSSVC, LSSVR, KernelFisherDiscriminant
from support.cross_validation import LABELS, VALUES, WEIGHT, N, X

ESTIMATORS = [
    (LSSVC(gamma=0.1), LABELS),
    (KernelFisherDiscriminant(gamma=0.1), LABELS),
    (RidgeClassifier(), LABELS),
    (LSSVR(gamma=0.1), VALUES),
    (Ridge(), VALUES),
]
everyone = pytest.mark.parametrize(("estimator", "y"), ESTIMATORS, ids=lambda each: type(each).__name__)
CV = skl.KFold(6, shuffle=True, random_state=0)


def pipeline_of(estimator):
    return make_pipeline(StandardScaler(), PCA(3), clone(estimator))


def transformed():
    return make_pipeline(StandardScaler(), PCA(3)).fit_transform(X)


@everyone
def test_scores_equal_refits_behind_steps_fitted_on_all_rows(estimator, y):
    name = type(estimator).__name__.lower()
    params = {f"{name}__sample_weight": WEIGHT}
    ours = fl.cross_validate(pipeline_of(estimator), X, y, cv=CV, params=params, steps="once")
    gamma = {"gamma": 0.1} if hasattr(estimator, "gamma") else {}
    plain = clone(estimator).set_params(**gamma)
    theirs = skl.cross_validate(plain, transformed(), y, cv=CV, params={"sample_weight": WEIGHT})
    assert_allclose(ours["test_score"], theirs["test_score"], rtol=1e-9, atol=1e-12)
    assert ours.path.kind == "one fit"
    assert ours.path.reason.startswith("StandardScaler, PCA fitted once on all rows, labels unseen; ")
    scores = fl.cross_val_score(pipeline_of(estimator), X, y, cv=CV, params=params, steps="once")
    assert_array_equal(scores, ours["test_score"])


@everyone
@pytest.mark.parametrize("cv", [CV, skl.LeaveOneOut()], ids=["folds", "rows"])
def test_predictions_equal_refits_behind_steps_fitted_on_all_rows(estimator, y, cv):
    method = "decision_function" if hasattr(estimator, "decision_function") else "predict"
    ours = fl.cross_val_predict(pipeline_of(estimator), X, y, cv=cv, method=method, steps="once")
    theirs = skl.cross_val_predict(estimator, transformed(), y, cv=cv, method=method)
    assert_allclose(ours, theirs, rtol=1e-8, atol=1e-9)


@everyone
def test_fitted_estimators_are_pipelines(estimator, y):
    result = fl.cross_validate(pipeline_of(estimator), X, y, cv=CV, return_estimator=True, steps="once")
    for (train, test), fitted in zip(CV.split(X), result["estimator"], strict=True):
        assert [name for name, _ in fitted.steps] == [name for name, _ in pipeline_of(estimator).steps]
        expected = clone(estimator).fit(transformed()[train], y[train]).predict(transformed()[test])
        found = fitted.predict(X[test])
        assert_allclose(found, expected, rtol=1e-9) if y is VALUES else assert_array_equal(found, expected)


def test_what_has_no_closed_form_is_refitted_behind_the_steps():
    pipeline = make_pipeline(StandardScaler(), SVC())
    with pytest.warns(fl.RefitWarning, match="StandardScaler fitted once"):
        ours = fl.cross_validate(pipeline, X, LABELS, cv=CV, return_estimator=True, steps="once")
    scaled = StandardScaler().fit_transform(X)
    assert_array_equal(ours["test_score"], skl.cross_val_score(SVC(), scaled, LABELS, cv=CV))
    train = next(CV.split(X))[0]
    expected = SVC().fit(scaled[train], LABELS[train]).predict(scaled)
    assert_array_equal(ours["estimator"][0].predict(X), expected)
    with pytest.warns(fl.RefitWarning):
        predicted = fl.cross_val_predict(pipeline, X, LABELS, cv=CV, steps="once")
    assert_array_equal(predicted, skl.cross_val_predict(SVC(), scaled, LABELS, cv=CV))


def test_parameters_of_steps_go_to_the_steps():
    pipeline = make_pipeline(StandardScaler(), Ridge())
    params = {"standardscaler__sample_weight": WEIGHT, "ridge__sample_weight": WEIGHT}
    ours = fl.cross_val_predict(pipeline, X, VALUES, cv=CV, params=params, steps="once")
    scaled = StandardScaler().fit(X, sample_weight=WEIGHT).transform(X)
    theirs = skl.cross_val_predict(Ridge(), scaled, VALUES, cv=CV, params={"sample_weight": WEIGHT})
    assert_allclose(ours, theirs, rtol=1e-9)


@pytest.mark.parametrize("requested", [False, True])
def test_routed_metadata_go_to_the_steps_that_ask_for_them(requested):
    with sklearn.config_context(enable_metadata_routing=True):
        scaler = StandardScaler().set_fit_request(sample_weight=requested)
        pipeline = make_pipeline(scaler, Ridge().set_fit_request(sample_weight=True))
        ours = fl.cross_val_predict(pipeline, X, VALUES, cv=CV, params={"sample_weight": WEIGHT}, steps="once")
        weights = {"sample_weight": WEIGHT} if requested else {}
    scaled = StandardScaler().fit(X, **weights).transform(X)
    theirs = skl.cross_val_predict(Ridge(), scaled, VALUES, cv=CV, params={"sample_weight": WEIGHT})
    assert_allclose(ours, theirs, rtol=1e-9)


def test_steps_that_may_learn_from_y_are_refused():
    pipeline = make_pipeline(SelectKBest(k=2), LSSVC())
    with pytest.raises(ValueError, match=r"steps='once': step 'selectkbest' .* Use steps='each'"):
        fl.cross_val_score(pipeline, X, LABELS, steps="once")


def test_other_values_are_refused():
    with pytest.raises(ValueError, match="steps='twice'"):
        fl.cross_val_score(LSSVC(), X, LABELS, steps="twice")


def test_explain_says_what_once_would_save():
    pipeline = make_pipeline(StandardScaler(), LSSVC())
    each = fl.explain(pipeline, X, LABELS, cv=skl.LeaveOneOut())
    assert f"steps='once' would take one fit for all {N} parts" in each.reason
    assert fl.explain(pipeline, X, LABELS, cv=skl.LeaveOneOut(), steps="once").kind == "one fit"


def test_results_have_the_keys_of_scikit_learn_alone():
    ours, theirs = (each.cross_validate(LSSVC(), X, LABELS) for each in (fl, skl))
    assert set(ours) == set(theirs)
    assert ours["path"] is ours.path
    with pytest.raises(KeyError):
        ours["paths"]


@everyone
def test_permutation_test_equals_one_behind_the_steps(estimator, y):
    options = {"cv": CV, "n_permutations": 9}
    ours = fl.permutation_test_score(pipeline_of(estimator), X, y, steps="once", **options)
    plain = fl.permutation_test_score(clone(estimator), transformed(), y, **options)
    assert_allclose(ours.permutation_scores, plain.permutation_scores, rtol=1e-10)
    assert ours.path.kind == "one fit"
    assert "fitted once on all rows" in ours.path.reason


def test_each_member_of_a_family_has_steps_of_its_own():
    members = [X, 3 * X[:, ::-1] + 1]
    pipeline = make_pipeline(StandardScaler(), LSSVC(gamma=0.1))
    scaled = [StandardScaler().fit_transform(each) for each in members]
    options = {"cv": CV, "n_permutations": 9}
    ours = fl.permutation_test_score(pipeline, members, LABELS, steps="once", **options)
    plain = fl.permutation_test_score(LSSVC(gamma=0.1), scaled, LABELS, **options)
    assert_allclose(ours.permutation_scores, plain.permutation_scores, rtol=1e-10)


def test_nested_cross_validation_equals_one_behind_the_steps():
    search = fl.FoldlessSearchCV(LSSVC(), {"alpha": [0.1, 1.0], "gamma": [0.03, 0.3]})
    pipeline = make_pipeline(StandardScaler(), PCA(3), search)
    params = {"foldlesssearchcv__sample_weight": WEIGHT}
    ours = fl.nested_cross_validate(pipeline, X, LABELS, cv=CV, params=params, steps="once")
    plain = fl.nested_cross_validate(search, transformed(), LABELS, cv=CV, params={"sample_weight": WEIGHT})
    assert ours.best_params == plain.best_params
    assert_allclose(ours.test_score, plain.test_score, rtol=1e-12)
    assert "fitted once on all rows" in ours.path.reason


def test_pairs_and_patterns_behind_the_steps():
    pipeline = make_pipeline(StandardScaler(), LSSVC("linear"))
    scaled = StandardScaler().fit_transform(X)
    for function in (fl.leave_pair_out_auc, fl.permutation_test_pattern):
        with pytest.raises(ValueError, match="steps='once'"):
            function(pipeline, X, LABELS)
    assert fl.leave_pair_out_auc(pipeline, X, LABELS, steps="once") == pytest.approx(
        fl.leave_pair_out_auc(LSSVC("linear"), scaled, LABELS), rel=1e-12
    )
    ours = fl.permutation_test_pattern(pipeline, X, LABELS, n_permutations=9, steps="once")
    plain = fl.permutation_test_pattern(LSSVC("linear"), scaled, LABELS, n_permutations=9)
    assert_allclose(ours.patterns, plain.patterns, rtol=1e-10)
    assert_array_equal(ours.pvalue, plain.pvalue)
