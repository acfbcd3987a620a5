"""Confounds in permutation tests."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.feature_selection import SelectKBest
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from foldless import LSSVC, LSSVR, FoldlessSearchCV
from foldless._sklearn.confounded import given_confounds
from foldless.model_selection import Confounds, RefitWarning, nested_cross_validate, permutation_test_score
from support.permutation import (
    BINARY,
    CONFOUNDS,
    EVERYONE,
    FOLDS,
    KFDA,
    LABELS,
    OUTPUTS,
    VALUES,
    WEIGHT,
    M,
    N,
    X,
    assert_scores,
    check_scores,
    orders_of,
    plain_score,
)
from support.refits import scores_of_labelings, signs
from support.tolerances import assert_close


class WithConfoundsInX(ClassifierMixin, BaseEstimator):
    """An estimator whose X carries its confounds behind the features, and what they explain stays in predictions."""

    def __init__(self, estimator):
        self.estimator = estimator

    def fit(self, X, y, sample_weight=None):
        self.model_ = clone(self.estimator).fit(X[:, :-2], y, sample_weight, confounds=X[:, -2:])
        self.classes_ = self.model_.classes_
        line = LinearRegression(fit_intercept=self.estimator.fit_intercept)
        self.line_ = line.fit(X[:, -2:], signs(y), sample_weight)
        centred = self.estimator.fit_intercept
        self.mean_ = np.average(X[:, -2:], 0, sample_weight) if centred else np.zeros(2)
        return self

    def predict(self, X):
        C = X[:, -2:]
        decision = self.model_.decision_function(X[:, :-2], confounds=C).reshape(len(X), -1)
        decision = decision + (C - self.mean_) @ self.line_.coef_.T
        largest = decision.argmax(1) if decision.shape[1] > 1 else (decision[:, 0] > 0).astype(int)
        return self.classes_[largest]


X_AND_CONFOUNDS = np.hstack([X, CONFOUNDS])


@pytest.mark.many_cases
@pytest.mark.parametrize(
    ("estimator", "y"),
    [each for each in EVERYONE if not each.id.startswith(("Ridge", "KernelRidge", "LSSVC poly", "KFDA linear"))],
)
def test_confounds_are_left_out_of_the_scores(estimator, y):
    check_scores(estimator, X, y, confounds=CONFOUNDS, oracle={"confounds": CONFOUNDS})


def test_confounds_with_weights_equal_refits():
    for estimator in (LSSVC(gamma=0.1), KFDA(gamma=0.1), KFDA(gamma=0.1, penalty="coef", fit_intercept=False)):
        options = {"confounds": CONFOUNDS, "params": {"sample_weight": WEIGHT}}
        check_scores(estimator, X, LABELS, oracle={"weight": lambda order: WEIGHT, "confounds": CONFOUNDS}, **options)


@pytest.mark.parametrize("kind", ["Ridge", "RidgeClassifier", "KernelRidge"])
def test_confounds_of_scikit_learns_estimators_equal_refits(kind):
    """Their fit takes none: foldless' equivalent stands in for them."""
    estimator, twin, y = {
        "Ridge": (Ridge(alpha=2.0), LSSVR("linear", alpha=2.0), OUTPUTS),
        "RidgeClassifier": (RidgeClassifier(alpha=2.0), LSSVC("linear", alpha=2.0), LABELS),
        "KernelRidge": (KernelRidge(kernel="rbf", gamma=0.1), LSSVR(gamma=0.1, fit_intercept=False), VALUES),
    }[kind]
    check_scores(estimator, X, y, confounds=CONFOUNDS, oracle={"estimator": twin, "confounds": CONFOUNDS})


@pytest.mark.parametrize(
    ("estimator", "y"),
    [(LSSVC(gamma=0.1), LABELS), (LSSVC("linear", fit_intercept=False), BINARY), (KFDA(gamma=0.1), BINARY)],
    ids=["LSSVC", "no intercept", "KFDA"],
)
def test_confounds_kept_in_the_score_equal_refits(estimator, y):
    kept = Confounds(CONFOUNDS, in_score=True)
    result = permutation_test_score(estimator, X, y, cv=FOLDS, n_permutations=M, random_state=7, confounds=kept)
    orders = orders_of(N, labels=y, confounds=CONFOUNDS)
    scores = scores_of_labelings(
        WithConfoundsInX(estimator), X_AND_CONFOUNDS, y, orders, splits=FOLDS, scoring="accuracy"
    )
    assert_scores(result, scores)
    assert not np.array_equal(scores, scores_of_labelings(estimator, X, y, orders, splits=FOLDS, confounds=CONFOUNDS))


def test_confounds_kept_in_the_score_with_weights_equal_refits():
    options = {"confounds": Confounds(CONFOUNDS, in_score=True), "cv": FOLDS}
    options |= {"params": {"sample_weight": WEIGHT}, "n_permutations": M, "random_state": 7}
    result = permutation_test_score(LSSVC(gamma=0.1), X, LABELS, **options)
    shown = {"scoring": "accuracy", "weight": lambda order: WEIGHT}
    orders = orders_of(N, labels=LABELS, confounds=CONFOUNDS)
    assert_scores(
        result,
        scores_of_labelings(WithConfoundsInX(LSSVC(gamma=0.1)), X_AND_CONFOUNDS, LABELS, orders, splits=FOLDS, **shown),
    )


def test_confounds_behind_steps_equal_refits():
    for last in (LSSVC(gamma=0.1), KFDA(gamma=0.1)):
        name = f"{type(last).__name__.lower()}__confounds"
        options = {"confounds": CONFOUNDS, "oracle": {name: CONFOUNDS}}
        check_scores(make_pipeline(StandardScaler(), last), X, LABELS, kind="one P per fold", **options)
        with pytest.warns(RefitWarning):
            check_scores(make_pipeline(SelectKBest(k=3), last), X, LABELS, m=2, kind="refit", **options)


def test_confounds_with_scorers_of_the_estimator_are_refused():
    for estimator in (LSSVC(gamma=0.1), make_pipeline(StandardScaler(), KFDA(gamma=0.1))):
        with pytest.raises(ValueError, match="confounds: a scorer that is a function"):
            permutation_test_score(estimator, X, LABELS, n_permutations=2, confounds=CONFOUNDS, scoring=plain_score)


@pytest.mark.parametrize("inner", [None, 3], ids=["leave-one-out", "3-fold"])
@pytest.mark.parametrize("family", [False, True], ids=["", "family"])
def test_searches_with_confounds_choose_and_score_as_nested_refits(inner, family):
    """One labeling after the other, each by nested cross-validation, which is held to refits elsewhere."""
    search = FoldlessSearchCV(
        LSSVC(gamma=0.1), {"alpha": [1e-3, 0.3, 100.0]}, cv=None if inner is None else KFold(inner)
    )
    members = [X, X[:, ::-1] ** 2] if family else [X]
    options = {"cv": FOLDS, "n_permutations": 3, "random_state": 7, "confounds": CONFOUNDS}
    result = permutation_test_score(search, members if family else X, LABELS, **options)
    assert result.path.kind == "one fit"
    found = np.vstack([result.score, result.permutation_scores.reshape(3, -1)])
    for row, order in zip(found, orders_of(N, m=3, labels=LABELS, confounds=CONFOUNDS), strict=True):
        each = [nested_cross_validate(search, one, LABELS[order], cv=FOLDS, confounds=CONFOUNDS) for one in members]
        assert_close(row, [nested.test_score.mean() for nested in each])
    plain = permutation_test_score(search, X, LABELS, **options | {"confounds": None})
    assert not np.array_equal(plain.permutation_scores, found[1:, 0])


def test_confounds_of_a_refit_are_refused():
    with pytest.raises(ValueError, match="confounds: LogisticRegression"), pytest.warns(RefitWarning):
        permutation_test_score(LogisticRegression(), X, LABELS, n_permutations=2, confounds=CONFOUNDS)


def test_confounds_stay_with_the_rows_when_splits_are_drawn_anew():
    options = {"n_permutations": 3, "random_state": 7, "confounds": CONFOUNDS, "null": "resplit"}
    result = permutation_test_score(KFDA(gamma=0.1), X, LABELS, cv=4, **options)
    cv = StratifiedKFold(4)
    orders = orders_of(N, m=3, labels=LABELS, confounds=CONFOUNDS)
    for score, order in zip(np.r_[result.score, result.permutation_scores], orders, strict=True):
        splits = list(cv.split(X, LABELS[order]))
        assert_close(
            score, scores_of_labelings(KFDA(gamma=0.1), X, LABELS, [order], splits=splits, confounds=CONFOUNDS)[0]
        )


def test_stratified_folds_permute_within_test_sets_given_the_confounds():
    cv = StratifiedKFold(4)
    splits = list(cv.split(X, LABELS))
    result = permutation_test_score(
        LSSVC(gamma=0.1), X, LABELS, cv=cv, n_permutations=M, random_state=7, confounds=CONFOUNDS
    )
    fold = np.empty(N, int)
    for number, (_, test) in enumerate(splits):
        fold[test] = number
    scheme = replace(given_confounds(LABELS, CONFOUNDS), strata=fold)  # the model has no strata
    orders = np.vstack([np.arange(N), scheme.orders(N, M, 7)])
    scores = scores_of_labelings(LSSVC(gamma=0.1), X, LABELS, orders, splits=splits, confounds=CONFOUNDS)
    assert_scores(result, scores)
    for _, test in splits:
        assert (np.sort(orders[:, test], 1) == np.sort(test)).all()


def test_orders_of_classes_by_a_users_null_scheme_are_taken_as_they_are():
    class Shifts:
        def orders(self, n, n_permutations, random_state):
            return (np.arange(n) + np.arange(1, n_permutations + 1)[:, None]) % n

    result = permutation_test_score(
        LSSVC(gamma=0.1), X, LABELS, cv=FOLDS, n_permutations=M, confounds=CONFOUNDS, null=Shifts()
    )
    orders = np.vstack([np.arange(N), Shifts().orders(N, M, None)])
    scores = scores_of_labelings(LSSVC(gamma=0.1), X, LABELS, orders, splits=FOLDS, confounds=CONFOUNDS)
    assert_scores(result, scores)
