"""RidgeClassifier with several labels a row: equal to scikit-learn's refits, dense or sparse."""

import warnings
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import model_selection as skl
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import f1_score
from sklearn.model_selection import KFold, LeaveOneOut, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from foldless import LSSVC, FoldlessSearchCV
from foldless import model_selection as ours
from foldless._sklearn.route import RefitWarning
from foldless.model_selection import Optimizer

ALPHAS = {"alpha": [0.1, 3.0, 100.0]}
SCORES = ["accuracy", "f1_micro", "f1_samples", "roc_auc", "r2"]
rng = np.random.default_rng(3)
X = rng.normal(size=(30, 5))
y = (X[:, :3] + rng.normal(size=(30, 3)) > 0).astype(int)
rare = np.column_stack([y, np.arange(30) > 0, np.zeros(30)]).astype(int)  # constant in a training part, and in all
weights = rng.uniform(0.5, 2.0, 30)

pytestmark = pytest.mark.filterwarnings("error::foldless._sklearn.route.RefitWarning")


@pytest.fixture(autouse=True)
def _quiet_scores():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)  # scikit-learn's, of rows without a label
        yield


def assert_same_results(ours, theirs):
    for name in theirs:
        if "time" not in name and name != "estimator":
            np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-9, err_msg=name)


@pytest.mark.parametrize("method", ["predict", "decision_function"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("cv", [KFold(4), LeaveOneOut()], ids=["folds", "each row"])
def test_held_out_predictions_are_those_of_refits(cv, intercept, method):
    model = RidgeClassifier(2.0, fit_intercept=intercept)
    options = {"cv": cv, "method": method, "params": {"sample_weight": weights} if intercept else None}
    found = ours.cross_val_predict(model, X, rare, **options)
    expected = skl.cross_val_predict(model, X, rare, **options)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("cv", [KFold(3), ShuffleSplit(2, random_state=0)], ids=["folds", "shuffled"])
@pytest.mark.parametrize("options", [{}, {"return_train_score": True}], ids=["test", "train"])
def test_scores_are_those_of_refits(cv, options):
    options = options | {"scoring": SCORES, "cv": cv}
    found = ours.cross_validate(RidgeClassifier(), X, y, **options)
    assert found.path.kind == "one fit"
    assert_same_results(found, skl.cross_validate(RidgeClassifier(), X, y, **options))


def test_two_labels_are_not_two_classes():
    found = ours.cross_val_predict(RidgeClassifier(), X, y[:, :2], cv=5)
    np.testing.assert_array_equal(found, skl.cross_val_predict(RidgeClassifier(), X, y[:, :2], cv=5))
    auc = [each.cross_val_score(RidgeClassifier(), X, y[:, :2], cv=3, scoring="roc_auc") for each in (ours, skl)]
    np.testing.assert_allclose(*auc)


def test_labels_are_not_read_off_rounding():
    pairs = np.column_stack([np.arange(30) % 2, (np.arange(30) + 1) % 2])  # of equal weight: decisions are 0
    params = {"sample_weight": np.repeat(weights[:15], 2)}
    constant = np.full((30, 1), 0.3)
    options = {"cv": KFold(15), "params": params}
    assert not ours.cross_val_predict(RidgeClassifier(), constant, pairs, **options).any()
    test = ours.permutation_test_score(
        RidgeClassifier(), constant, pairs, **options, n_permutations=2, null=np.arange(30) // 2
    )
    assert test.score == 0.0
    assert not test.permutation_scores.any()


def test_a_scaler_in_front_changes_nothing():
    model = make_pipeline(StandardScaler(), RidgeClassifier())
    found = ours.cross_val_predict(model, X, y, cv=5, method="decision_function")
    np.testing.assert_allclose(found, skl.cross_val_predict(model, X, y, cv=5, method="decision_function"))


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_array])
def test_sparse_labels_are_predicted_as_sparse_ones(kind):
    found = ours.cross_val_predict(RidgeClassifier(), X, kind(y), cv=5)
    expected = skl.cross_val_predict(RidgeClassifier(), X, kind(y), cv=5)
    assert type(found) is type(expected)
    np.testing.assert_array_equal(found.toarray(), expected.toarray())
    params = {"sample_weight": np.minimum(np.arange(30), 1)}  # rows that do not count go another way
    decisions = [
        ours.cross_val_predict(RidgeClassifier(), X, each, params=params, method="decision_function", cv=5)
        for each in (y, kind(y))
    ]
    np.testing.assert_allclose(*decisions)
    search = FoldlessSearchCV(RidgeClassifier(), ALPHAS, cv=5).fit(X, kind(y))
    best = RidgeClassifier(**search.best_params_).fit(X, kind(y))
    assert type(search.predict(X)) is type(best.predict(X))
    assert search.score(X, kind(y)) == best.score(X, y)


def test_scores_of_sparse_labels_are_those_of_dense_ones():
    for function in (ours.cross_val_score, lambda *data, **options: ours.permutation_test_score(*data, **options)[1]):
        options = {} if function is ours.cross_val_score else {"n_permutations": 5, "random_state": 0}
        sparse, dense = (function(RidgeClassifier(), X, each, cv=3, **options) for each in (sp.csr_array(y), y))
        np.testing.assert_array_equal(sparse, dense)


@pytest.mark.parametrize(
    ("scoring", "scaled"), [("accuracy", False), ("f1_samples", False), ("roc_auc", False), ("f1_micro", True)]
)
def test_a_search_has_the_scores_of_grid_search(scoring, scaled):
    model, grid, options = RidgeClassifier(), ALPHAS, {}
    if scaled:
        model, options = make_pipeline(StandardScaler(), model), {"steps": "each"}
        grid = {"ridgeclassifier__alpha": ALPHAS["alpha"]}
    search = FoldlessSearchCV(model, grid, cv=KFold(3), scoring=scoring, **options).fit(X, y)
    theirs = skl.GridSearchCV(model, grid, cv=KFold(3), scoring=scoring).fit(X, y)
    for name in [f"split{k}_test_score" for k in range(3)] + ["mean_test_score", "rank_test_score"]:
        np.testing.assert_allclose(search.cv_results_[name], theirs.cv_results_[name], rtol=1e-9)
    np.testing.assert_array_equal(search.classes_, theirs.classes_)
    assert search.best_score_ == pytest.approx(theirs.best_score_)


@cache
def _loo_fits(alpha):
    return skl.cross_val_predict(RidgeClassifier(alpha), X, y, cv=LeaveOneOut(), method="decision_function")


@pytest.mark.parametrize(
    ("criterion", "loss"),
    [
        ("press", lambda F: np.square(2 * y - 1 - F).mean(0).sum()),
        ("error", lambda F: ((F > 0) != y).mean(0).sum()),
        ("multiclass_error", lambda F: ((F > 0) != y).any(1).mean()),
    ],
)
def test_criteria_add_up_over_labels_or_judge_whole_rows(criterion, loss):
    search = FoldlessSearchCV(RidgeClassifier(), ALPHAS, criterion=criterion).fit(X, y)
    fits = [_loo_fits(alpha) for alpha in ALPHAS["alpha"]]
    np.testing.assert_allclose(search.cv_results_["mean_test_criterion"], [loss(each) for each in fits])
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], [((F > 0) == y).all(1).mean() for F in fits])


@pytest.mark.parametrize("method", ["auto", "simplex", "gradient"])
def test_searches_without_a_grid_find_a_good_alpha(method):
    search = FoldlessSearchCV(RidgeClassifier(), method=method).fit(X, y)
    fixed = FoldlessSearchCV(RidgeClassifier(), ALPHAS).fit(X, y)
    assert search.best_criterion_ < fixed.best_criterion_
    assert not hasattr(search, "predict_proba")


@pytest.mark.parametrize("method", ["grid", "simplex"])
def test_nested_predictions_are_those_of_searches_on_training_parts(method):
    search = FoldlessSearchCV(
        RidgeClassifier(), ALPHAS if method == "grid" else None, method=Optimizer(method, max_iter=5)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # five iterations are few
        result = ours.nested_cross_validate(search, X, y, cv=KFold(3), scoring="f1_micro")
        for (train, test), found, decision, score in zip(
            KFold(3).split(X), result.predictions, result.decision, result.test_score, strict=True
        ):
            fitted = search.fit(X[train], y[train])
            np.testing.assert_array_equal(found, fitted.predict(X[test]))
            np.testing.assert_allclose(decision, fitted.decision_function(X[test]), rtol=1e-8)
            assert score == pytest.approx(f1_score(y[test], found, average="micro"))


@pytest.mark.parametrize("scoring", [None, "f1_micro"])
def test_permuted_scores_are_those_of_refits(scoring):
    options = {"cv": KFold(3), "n_permutations": 4, "random_state": 1, "scoring": scoring}
    found = ours.permutation_test_score(RidgeClassifier(), X, rare, **options)
    score, null, p = skl.permutation_test_score(RidgeClassifier(), X, rare, **options)
    np.testing.assert_allclose(found[1], null)
    assert (found[0], found[2]) == pytest.approx((score, p))


def test_every_permutation_of_a_search_chooses_its_own_alpha():
    options = {"cv": KFold(3), "n_permutations": 2, "random_state": 1}
    search = FoldlessSearchCV(RidgeClassifier(), ALPHAS)
    found = ours.permutation_test_score(search, X, y, **options)
    np.testing.assert_allclose(found[1], skl.permutation_test_score(search, X, y, **options)[1])


@pytest.mark.parametrize("labels", [y.astype(bool), 2 * y - 1], ids=["booleans", "-1 and 1"])
def test_other_numbers_than_0_and_1_are_refitted(labels):
    with pytest.warns(RefitWarning, match="numbers 0 and 1"):
        found = ours.cross_val_predict(RidgeClassifier(), X, labels, cv=3)
    np.testing.assert_array_equal(found, skl.cross_val_predict(RidgeClassifier(), X, labels, cv=3))


@pytest.mark.parametrize(
    ("search", "labels", "message"),
    [
        (FoldlessSearchCV(RidgeClassifier()), y.astype(bool), "numbers 0 and 1, as of y.astype"),
        (FoldlessSearchCV(RidgeClassifier()), y + y[:, :1], "1d array"),
        (FoldlessSearchCV(LSSVC()), y, "1d array"),
        (FoldlessSearchCV(RidgeClassifier(class_weight="balanced")), y, "class_weight with several labels"),
        (FoldlessSearchCV(RidgeClassifier(), ALPHAS, share="none"), y, "share='none' is for classes"),
        (FoldlessSearchCV(RidgeClassifier(), scoring="neg_log_loss"), y, "needs probabilities"),
        (
            FoldlessSearchCV(RidgeClassifier(), criterion="multiclass_error", criterion_weight="balanced"),
            y,
            "use criterion='ber'",
        ),
    ],
)
def test_searches_say_what_several_labels_do_not_go_with(search, labels, message):
    with pytest.raises(ValueError, match=message):
        search.fit(X, labels)


def test_functions_say_what_several_labels_do_not_go_with():
    with pytest.raises(ValueError, match="ranks one output"):
        ours.leave_pair_out_auc(RidgeClassifier(), X, y)
    with pytest.raises(ValueError, match="'ber' is for class labels, one a row"):
        ours.permutation_test_score(RidgeClassifier(), X, y, scoring="ber", n_permutations=2)
    with pytest.raises(ValueError, match="rows with several labels get none"):
        ours.nested_cross_validate(FoldlessSearchCV(RidgeClassifier()), X, y, scoring="neg_log_loss")
