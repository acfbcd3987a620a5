"""Splits drawn anew for every permutation, and scores that tie."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import metrics as theirs
from sklearn import model_selection as skl
from sklearn.dummy import DummyClassifier
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold, StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import foldless._engine.permutation.metrics as metrics
from foldless import LSSVC, LSSVR
from foldless._engine.permutation.nulls import ROUNDING
from foldless.model_selection import permutation_test_score
from support.permutation import (
    BINARY,
    CODES,
    FOLDS,
    GROUPS,
    KFDA,
    LABELS,
    OUTPUTS,
    VALUES,
    WEIGHT,
    N,
    X,
    orders_of,
    permutation_test_in_memory,
    scorer_returning,
)
from support.refits import scores_of_labelings
from support.tolerances import assert_close

ANEW = {
    "LSSVC": (LSSVC(gamma=0.1), LABELS, [None, "balanced_accuracy", "f1_macro"]),
    "LSSVC two classes": (LSSVC(gamma=0.1), CODES > 0, [None, "roc_auc"]),
    "KFDA": (KFDA(gamma=0.1), LABELS, [None]),
    "KFDA loo": (KFDA(gamma=0.1, threshold="loo"), BINARY, [None]),
    "RidgeClassifier": (RidgeClassifier(), LABELS, [None]),
    "Ridge": (Ridge(), VALUES, [None, "neg_mean_squared_error", "neg_mean_absolute_error"]),
    "KernelRidge": (KernelRidge(kernel="rbf", gamma=0.1), OUTPUTS, [None]),
    "pipeline": (make_pipeline(StandardScaler(), LSSVC(gamma=0.1)), LABELS, [None]),
    "LogisticRegression": (LogisticRegression(), LABELS, [None]),
}
ANEW_SPLITTERS = {
    "3": 3,
    "StratifiedGroupKFold": StratifiedGroupKFold(3, shuffle=True, random_state=0),
    "StratifiedKFold": StratifiedKFold(4, shuffle=True, random_state=3),
    "KFold": KFold(3, shuffle=True, random_state=1),
    "StratifiedShuffleSplit": StratifiedShuffleSplit(2, test_size=0.3, random_state=1),
    "GroupKFold": GroupKFold(3),
    "list": FOLDS,
}

ANEW_CASES = [(name, "3") for name in ANEW] + [(name, "GroupKFold") for name in ANEW]
for _name in ("LSSVC", "KFDA loo"):
    ANEW_CASES += [(_name, splitter) for splitter in ANEW_SPLITTERS if splitter not in ("3", "GroupKFold")]


@pytest.mark.many_cases
@pytest.mark.filterwarnings("ignore::foldless.model_selection.RefitWarning", "ignore:y_pred contains classes")
@pytest.mark.parametrize(("name", "splitter"), ANEW_CASES)
def test_resplit_equals_scikit_learn(name, splitter):
    estimator, y, scorings = ANEW[name]
    groups = GROUPS if "Group" in splitter else None
    for scoring in scorings:
        options = {"groups": groups, "scoring": scoring, "n_permutations": 5, "random_state": 5}
        score, null, p = skl.permutation_test_score(estimator, X, y, cv=ANEW_SPLITTERS[splitter], **options)
        result = permutation_test_score(estimator, X, y, cv=ANEW_SPLITTERS[splitter], null="resplit", **options)
        assert_allclose(result.score, score, rtol=0, atol=1e-12)
        assert_allclose(result.permutation_scores, null, rtol=0, atol=1e-12)
        assert result.pvalue == p


def test_resplit_differs_from_fixed_splits():
    """And follow the permuted labels: every fold has its share of every class."""
    options = {"cv": 4, "n_permutations": 20, "random_state": 5}
    fixed = permutation_test_score(LSSVC(gamma=0.1), X, LABELS, **options)
    anew = permutation_test_score(LSSVC(gamma=0.1), X, LABELS, null="resplit", **options)
    assert fixed.score == anew.score
    assert not np.array_equal(fixed.permutation_scores, anew.permutation_scores)


@pytest.mark.filterwarnings("ignore::foldless.model_selection.RefitWarning")
def test_scores_that_are_equal_up_to_rounding_are_equal():
    """In the precision of X; without a margin when scikit-learn's numbers are promised."""
    options = {"cv": [(np.arange(30), np.arange(30, N))], "n_permutations": 3}
    last_digit, seventh_digit = [0.1 + 0.2, 0.3, 0.3, 0.1 + 0.2], [0.3 + 1e-7, 0.3, 0.3, 0.3 + 1e-7]
    single = X.astype(np.float32)
    for features, scores, null, p in (
        (X, last_digit, None, 1.0),
        (X, last_digit, "resplit", 0.5),
        (X, seventh_digit, None, 0.5),
        (single, seventh_digit, None, 1.0),
        (single, seventh_digit, "resplit", 0.5),
    ):
        options |= {"scoring": scorer_returning(scores), "null": null}
        assert permutation_test_score(DummyClassifier(), features, LABELS, **options).pvalue == p


BINARY_24 = np.arange(24) % 2


def test_equal_rows_tie_with_resplit():
    """P knows them as different rows, and rounds their decisions differently."""
    features = np.random.default_rng(0).normal(size=(24, 3)).round()
    options = {"cv": 4, "scoring": "roc_auc", "n_permutations": 20}
    for estimator in (LSSVC("linear"), RidgeClassifier()):
        score, null, p = skl.permutation_test_score(estimator, features, BINARY_24, **options)
        result = permutation_test_score(estimator, features, BINARY_24, null="resplit", **options)
        assert_array_equal(np.r_[result.score, result.permutation_scores], np.r_[score, null])
        assert result.pvalue == p


@pytest.mark.filterwarnings("ignore:y_pred contains classes")
@pytest.mark.parametrize("n_classes", [2, 3, 7, 8, 9, 20])
def test_balanced_accuracy_is_scikit_learns_to_the_last_bit(n_classes):
    rng = np.random.default_rng(n_classes)
    D, codes = rng.normal(size=(30, n_classes if n_classes > 2 else 1, 25)), rng.integers(0, n_classes, (30, 25))
    expected = [
        theirs.balanced_accuracy_score(*pair) for pair in zip(codes, metrics.chosen_among_close(D), strict=True)
    ]
    assert_array_equal(metrics.balanced_accuracy(D, codes), expected)


@pytest.mark.filterwarnings("ignore:The groups parameter is ignored")
@pytest.mark.parametrize("estimator", [LSSVR(gamma=0.1), LSSVR("linear"), Ridge(), KernelRidge()], ids=str)
def test_permutations_that_change_nothing_tie_with_the_true_score(estimator):
    """Half of the permutations of two rows change nothing; how many are worked on at a time must not matter."""
    rng = np.random.default_rng(0)
    features, y = rng.normal(size=(N, 300)), rng.normal(size=N)
    options = {"groups": np.r_[0, np.arange(N - 1)], "cv": KFold(4), "n_permutations": 10, "random_state": 0}
    for scoring in ("r2", "neg_mean_squared_error"):
        score, null, p = skl.permutation_test_score(estimator, features, y, scoring=scoring, **options)
        for memory_limit in (2**29, 800 * N):  # all at once; ten, then the last alone
            more = {"scoring": scoring, "null": "resplit"}
            result = permutation_test_in_memory(memory_limit, estimator, features, y, **options, **more)
            assert_array_equal(
                np.isclose(result.permutation_scores, result.score, rtol=ROUNDING, atol=0), null == score
            )
            assert result.pvalue == p


@pytest.mark.filterwarnings("ignore:Only one class is present")
def test_undefined_true_score_with_resplit():
    """scikit-learn counts no permutation then; without its promise there is no p-value."""
    y = np.arange(24) // 12
    features = np.random.default_rng(0).normal(size=(24, 3))
    options = {"cv": KFold(4), "scoring": "roc_auc", "n_permutations": 20}
    for estimator in (LSSVC(gamma=0.5), RidgeClassifier()):
        score, null, p = skl.permutation_test_score(estimator, features, y, **options)
        assert np.isnan(score)
        for family in (False, True):
            X = np.dstack([features] * 2) if family else features
            with pytest.warns(
                UserWarning, match="score of the true labels is not defined .* p-value is 0.0476, scikit"
            ):
                result = permutation_test_score(estimator, X, y, null="resplit", **options)
            assert_array_equal(result.permutation_scores, np.column_stack([null] * 2) if family else null)
            assert np.isnan(result.score).all()
            assert np.all(result.pvalue == p)
            assert not family or np.isnan(result.pvalue_fwe).all()
        with pytest.warns(UserWarning, match="score of the true labels is not defined .* its p-value is nan"):
            assert np.isnan(permutation_test_score(estimator, features, y, **options).pvalue)


def test_weights_with_resplit_equal_refits():
    options = {"n_permutations": 3, "random_state": 7, "params": {"sample_weight": WEIGHT}, "null": "resplit"}
    result = permutation_test_score(LSSVC(gamma=0.1), X, LABELS, cv=4, **options)
    for score, order in zip(np.r_[result.score, result.permutation_scores], orders_of(N, m=3), strict=True):
        splits = list(StratifiedKFold(4).split(X, LABELS[order]))
        (expected,) = scores_of_labelings(LSSVC(gamma=0.1), X, LABELS, [order], splits=splits, sample_weight=WEIGHT)
        assert_close(score, expected)
