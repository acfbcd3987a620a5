"""Which estimators take the closed form, which are refitted, and what is said about it."""

import warnings

import numpy as np
import pytest
import sklearn
from sklearn import model_selection as skl
from sklearn.base import clone
from sklearn.feature_selection import SelectKBest
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import foldless.model_selection as fl
from foldless import LSSVC, LSSVR, AdaptiveKDA, FoldlessSearchCV, SlidingWindow
from foldless._engine.linalg import NotPositiveDefiniteError
from foldless._engine.precision.factored import Factored
from foldless.estimators import OneAgainstAllClassifier
from foldless.model_selection import RefitWarning
from support.cross_validation import CODES, LABELS, VALUES, WEIGHT, N, X, compare_validate
from support.tolerances import assert_close


def test_foreign_estimators_are_refitted_with_one_warning_that_says_why():
    estimator = LogisticRegression()
    with pytest.warns(RefitWarning, match=r"LogisticRegression is refitted .*: .*not a least-squares") as caught:
        ours = fl.cross_validate(estimator, X, CODES, cv=3)
    assert len(caught) == 1
    assert ours["path"].kind == "refit"
    np.testing.assert_array_equal(ours["test_score"], skl.cross_val_score(estimator, X, CODES, cv=3))
    with pytest.warns(RefitWarning, match="is refitted"):
        np.testing.assert_array_equal(
            fl.cross_val_predict(estimator, X, CODES, cv=3), skl.cross_val_predict(estimator, X, CODES, cv=3)
        )


@pytest.mark.parametrize(
    ("estimator", "reason"),
    [
        (Ridge(positive=True, solver="lbfgs"), "positive=True"),
        (Ridge(alpha=0.0, solver="svd"), "alpha=0.0 is not positive"),
        (KernelRidge(alpha=0, kernel="laplacian"), "alpha=0 is not positive"),
        (KernelRidge(kernel="sigmoid", gamma=0.5, alpha=0.1), "not positive semi-definite"),
        (RidgeClassifier(class_weight="balanced"), "computed anew on each training part"),
        (make_pipeline(SelectKBest(k=2), LSSVC()), r"step 'selectkbest' \(SelectKBest\) may learn from y"),
        (make_pipeline(StandardScaler(), LogisticRegression()), "ends in LogisticRegression"),
        (skl.GridSearchCV(LSSVC(), {"alpha": [1.0]}), "GridSearchCV is not"),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:Singular matrix in solving dual problem")  # scikit-learn's, of such a kernel
def test_what_has_no_closed_form_is_refitted(estimator, reason):
    y = VALUES if sklearn.base.is_regressor(estimator) else CODES
    with pytest.warns(RefitWarning, match=reason):
        ours = fl.cross_val_score(estimator, X, y, cv=3)
    np.testing.assert_array_equal(ours, skl.cross_val_score(estimator, X, y, cv=3))


def test_one_alpha_per_target_is_refitted():
    Y = np.column_stack([VALUES, X[:, 0]])
    estimator = Ridge(alpha=np.array([0.1, 10.0]))
    with pytest.warns(RefitWarning, match="one number per target"):
        ours = fl.cross_val_predict(estimator, X, Y, cv=3)
    assert_close(ours, skl.cross_val_predict(estimator, X, Y, cv=3))


def test_subclasses_are_refitted_because_they_may_differ():
    class Mine(LSSVC):
        pass

    assert fl.explain(Mine(), X, LABELS).kind == "refit"


def test_a_pipeline_without_fitted_steps_is_one_fit():
    pipeline = make_pipeline("passthrough", LSSVC(gamma=0.1))
    params = {"lssvc__sample_weight": WEIGHT}
    path = compare_validate(pipeline, X, LABELS, "one fit", cv=10, params=params)
    assert "LSSVC" in str(path)
    for one in fl.cross_validate(pipeline, X, LABELS, cv=10, params=params, return_estimator=True)["estimator"]:
        assert type(one) is type(pipeline)
        assert one.predict(X).shape == (N,)


@pytest.mark.parametrize("cv", [skl.KFold(3), skl.LeaveOneOut()], ids=str)
def test_a_fold_that_empties_a_class_is_refitted(cv):
    y = np.array([0] * 14 + [1] * 15 + [2])
    with pytest.warns() as caught:
        ours = fl.cross_val_predict(LSSVC(gamma=0.1), X, y, cv=cv)
    assert any(issubclass(w.category, RefitWarning) and "class" in str(w.message) for w in caught)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_array_equal(ours, skl.cross_val_predict(LSSVC(gamma=0.1), X, y, cv=cv))


def test_a_training_part_with_repeated_rows_is_refitted():
    splits = [(np.r_[np.arange(20), 3, 4], np.arange(20, 30))]
    with pytest.warns(RefitWarning, match="repeats rows"):
        ours = fl.cross_val_score(LSSVR(gamma=0.1), X, VALUES, cv=splits)
    assert_close(ours, skl.cross_val_score(LSSVR(gamma=0.1), X, VALUES, cv=splits))


def test_two_large_folds_of_many_rows_are_solved_one_by_one_and_the_path_says_so():
    rows, values = np.tile(X, (20, 1)), np.tile(VALUES, 20)
    path = compare_validate(LSSVR(gamma=0.1), rows, values, "one P per fold", cv=skl.KFold(2), scoring="r2")
    assert "solving each training part alone" in str(path)


def test_a_path_that_names_P_says_what_it_is():
    words = "P is the matrix that a fit makes of X alone"
    assert words in str(fl.explain(LSSVC(), X, LABELS, cv=skl.LeaveOneOut()))
    assert words in str(fl.explain(make_pipeline(StandardScaler(), LSSVC()), X, LABELS))
    assert words not in str(fl.explain(LogisticRegression(), X, LABELS))


@pytest.mark.parametrize("folds", [2, 3, 5])
def test_large_folds_of_few_rows_follow_from_one_fit(folds):
    for estimator, y in ((LSSVR(gamma=0.1), VALUES), (Ridge(), VALUES), (RidgeClassifier(), CODES)):
        compare_validate(estimator, X, y, "one fit", cv=skl.KFold(folds, shuffle=True, random_state=1))
        assert "few large folds" not in str(fl.explain(estimator, X, y, cv=folds))


def test_gamma_scale_and_balanced_weights_are_resolved_once_on_all_rows():
    estimator = LSSVC(class_weight="balanced")
    y = np.minimum(CODES, 1)
    ours = fl.cross_val_predict(estimator, X, y, cv=4, method="decision_function")
    fitted = clone(estimator).fit(X, y)
    resolved = LSSVC(gamma=fitted.kernel_.gamma, class_weight=dict(enumerate(N / (2 * np.bincount(y)))))
    assert_close(ours, skl.cross_val_predict(resolved, X, y, cv=4, method="decision_function"))


def test_explain_fits_nothing_and_names_the_holder():
    assert "low rank, 5 features" in str(fl.explain(Ridge(), X, VALUES, cv=10))
    assert "one Cholesky factor of 30 rows" in str(fl.explain(LSSVR(), X, VALUES, cv=skl.LeaveOneOut()))
    assert fl.explain(LSSVC(), X).reason == "there is no y"


@pytest.mark.parametrize(
    ("estimator", "reason"),
    [
        (FoldlessSearchCV(LSSVC()), "a search is repeated on every training part"),
        (AdaptiveKDA(), "AdaptiveKDA has a closed form for its own leave-one-out"),
        (SlidingWindow(LSSVC()), "SlidingWindow forgets old rows as new ones come"),
        (OneAgainstAllClassifier([(0, LSSVC()), (1, LSSVC())]), "has parameters of its own for each class"),
    ],
    ids=lambda each: type(each).__name__,
)
@pytest.mark.parametrize("piped", [False, True])
def test_our_own_estimators_are_known_where_they_are_refitted(estimator, reason, piped):
    route = fl.explain(make_pipeline(StandardScaler(), estimator) if piped else estimator, X, CODES)
    assert route.kind == "refit"
    assert reason in route.reason


def test_the_path_names_the_holder_that_was_used_not_the_one_foreseen(monkeypatch):
    """Whether a kernel matrix has a Cholesky factor in this precision is known when it has been tried."""

    def fail(*args):
        raise NotPositiveDefiniteError

    monkeypatch.setattr(Factored, "__init__", fail)
    path = fl.cross_validate(LSSVR(), X, VALUES, cv=skl.KFold(10))["path"]
    assert path.holder == LSSVR().fit(X, VALUES).holder_
    assert path.holder.startswith("spectral")
    assert path.holder in path.reason
