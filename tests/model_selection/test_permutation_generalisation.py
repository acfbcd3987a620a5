"""Models tested at the features of other members of a family."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.decomposition import PCA
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, Ridge, RidgeClassifier
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from foldless import LSSVC, LSSVR, FoldlessSearchCV, reference
from foldless.model_selection import Confounds, PermutationTestResult, permutation_test_score
from support.families import (
    BINARY,
    CONFOUNDS,
    CV,
    FOUR,
    GRID,
    KFDA,
    MEMBERS,
    OUTPUTS,
    THREE,
    TIMES,
    VALUES,
    WEIGHT,
    ZEROS,
    N,
    X,
    named,
)
from support.permutation import orders_of, permutation_test_in_memory
from support.refits import labelings, p_value, relabelled, scores_of_members
from support.tolerances import assert_close

SQUARES = {
    "LSSVC": (LSSVC(gamma=0.1), THREE, {}),
    "LSSVC coef": (LSSVC(gamma=0.1, penalty="coef"), BINARY, {"scoring": "roc_auc"}),
    "LSSVC coef, linear": (LSSVC("linear", penalty="coef"), THREE, {}),
    "LSSVC low rank": (LSSVC("linear"), FOUR, {"scoring": "ber"}),
    "LSSVC linear, wide": (LSSVC("linear"), THREE, {}),
    "LSSVC no intercept": (LSSVC("linear", fit_intercept=False), BINARY, {}),
    "KFDA": (KFDA(gamma=0.1), FOUR, {"scoring": "balanced_accuracy"}),
    "KFDA low rank": (KFDA("linear", threshold="fisher"), BINARY, {}),
    "KFDA centroid": (KFDA("linear", threshold="centroid"), BINARY, {"scoring": "roc_auc"}),
    "LSSVR": (LSSVR(gamma=0.1), OUTPUTS, {}),
    "LSSVR low rank": (LSSVR("linear"), VALUES, {"scoring": "correlation"}),
    "Ridge": (Ridge(), OUTPUTS, {"scoring": "neg_mean_squared_error"}),
    "RidgeClassifier": (RidgeClassifier(), THREE, {"scoring": "f1_macro"}),
    "KernelRidge": (KernelRidge(kernel="laplacian", gamma=0.1), VALUES, {"scoring": "neg_median_absolute_error"}),
    "poly": (LSSVC("poly", degree=2, gamma=0.1), THREE, {}),
    "weights": (LSSVC(gamma=0.1), THREE, {"w": ZEROS}),
    "weights, low rank": (KFDA("linear"), THREE, {"w": ZEROS}),
    "confounds": (LSSVC(gamma=0.1), THREE, {"confounds": CONFOUNDS}),
    "confounds, low rank": (KFDA("linear"), THREE, {"confounds": CONFOUNDS, "w": WEIGHT}),
    "confounds, coef": (LSSVR(gamma=0.1, penalty="coef"), VALUES, {"confounds": CONFOUNDS}),
    "scaled": (make_pipeline(StandardScaler(), LSSVC("linear")), THREE, {}),
    "scaled, rbf": (make_pipeline(StandardScaler(), PCA(2), KFDA()), THREE, {}),  # gamma="scale" of the training part
    "scaled, coef": (make_pipeline(StandardScaler(), LSSVC(gamma=0.1, penalty="coef")), BINARY, {"w": ZEROS}),
    "scaled, confounds": (make_pipeline(StandardScaler(), LSSVC("linear")), THREE, {"confounds": CONFOUNDS}),
    "scaled regression": (make_pipeline(StandardScaler(with_std=False), Ridge()), VALUES, {"scoring": "r2"}),
}


@pytest.mark.many_cases
@pytest.mark.parametrize("case", SQUARES)
def test_generalisation_equals_refits_tested_at_every_member(case):
    estimator, y, options = SQUARES[case]
    family = np.concatenate([TIMES, TIMES**2, TIMES[:, ::-1] ** 3, np.sin(TIMES)], 1) if "wide" in case else TIMES
    members = [family[:, :, time] for time in range(3)]
    scoring, w, confounds = (options.get(name) for name in ("scoring", "w", "confounds"))
    name = f"{estimator.steps[-1][0]}__" if isinstance(estimator, Pipeline) else ""
    result = permutation_test_score(
        estimator,
        family,
        y,
        cv=CV,
        n_permutations=3,
        scoring=scoring,
        params=None if w is None else {f"{name}sample_weight": w},
        confounds=confounds,
        generalise=True,
    )
    found = np.concatenate([result.score[None], result.permutation_scores])
    outer = list(CV.split(X))
    given = {f"{name}sample_weight": w, f"{name}confounds": confounds}
    expected = np.array(
        [
            scores_of_members(estimator, members, relabelled(y, order, confounds), outer, scoring, **given)
            for order in orders_of(N, m=3, labels=y, confounds=confounds, seed=0)
        ]
    )
    assert_close(found, expected, scale=max(1.0, np.abs(expected).max()))
    assert np.ptp(expected[0]) > 0
    greater = result.greater_is_better
    best = (np.max if greater else np.min)(found[1:], (1, 2))
    np.testing.assert_array_equal(result.max_scores, best)
    np.testing.assert_array_equal(result.pvalue, p_value(found[0], found[1:], greater))
    corrected = p_value(found[0], best[:, None, None], greater)
    of_both = [[max(corrected[s, t], corrected[s, s], corrected[t, t]) for t in range(3)] for s in range(3)]
    np.testing.assert_array_equal(result.pvalue_fwe, of_both)
    assert result.score.shape == result.pvalue_fwe.shape == (3, 3)


def test_a_pair_is_found_only_if_both_of_its_members_are():
    score = np.array([[0.9, 0.9, 0.5], [0.9, 0.5, 0.5], [0.9, 0.5, 0.9]])
    result = PermutationTestResult(score, np.full((19, 3, 3), 0.6), generalised=True)
    np.testing.assert_array_equal(result.pvalue_fwe == 0.05, [[1, 0, 0], [0, 0, 0], [1, 0, 1]])


@pytest.mark.parametrize("in_score", [False, True])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_generalisation_with_confounds_equals_refits(kernel, in_score):
    """Ridge regressions with columns beside the intercept, by the reference; scores with and without their part."""
    estimator = Ridge(alpha=0.7) if kernel == "linear" else LSSVR(gamma=0.1, alpha=0.7)
    result = permutation_test_score(
        estimator,
        TIMES,
        VALUES,
        cv=CV,
        n_permutations=3,
        scoring="neg_mean_squared_error",
        confounds=Confounds(CONFOUNDS, in_score=in_score),
        generalise=True,
    )
    gram = linear_kernel if kernel == "linear" else lambda a, b: rbf_kernel(a, b, gamma=0.1)
    Q = np.column_stack([np.ones(N), CONFOUNDS])
    for order, table in zip(labelings(N, 3), [result.score, *result.permutation_scores], strict=True):
        expected = np.zeros((3, 3))
        values = relabelled(VALUES, order, CONFOUNDS)
        for train, test in CV.split(X):
            for s, seen in enumerate(MEMBERS):
                targets = values[:, None]
                beta, B = reference.fit(gram(seen[train], seen[train]), targets[train], 0.7, Q=Q[train])
                if not in_score:
                    alone = LinearRegression().fit(CONFOUNDS[train], targets[train])
                    B = B - np.vstack([-alone.coef_ @ CONFOUNDS[train].mean(0), alone.coef_.T])
                for t, other in enumerate(MEMBERS):
                    fits = (gram(other[test], seen[train]) @ beta + Q[test] @ B)[:, 0]
                    expected[s, t] -= np.square(values[test] - fits).mean() / 3
        assert_close(table, expected)


@pytest.mark.parametrize("case", ["LSSVC", "KFDA low rank", "confounds", "scaled, rbf"])
def test_the_diagonal_of_a_generalisation_is_the_family(case):
    estimator, y, options = SQUARES[case]
    options = {"cv": CV, "n_permutations": 4, "confounds": options.get("confounds")}
    square = permutation_test_score(estimator, TIMES, y, generalise=True, **options)
    family = permutation_test_score(estimator, TIMES, y, **options)
    assert_close(np.diagonal(square.score), family.score)
    assert_close(np.diagonal(square.permutation_scores, axis1=1, axis2=2), family.permutation_scores)
    assert str(square.path) == str(family.path)


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_matrix, pd.DataFrame], ids=named)
@pytest.mark.parametrize("estimator", [LSSVC(gamma=0.1), LSSVC("linear")], ids=["rbf", "linear"])
def test_generalisation_in_any_container(estimator, form):
    given = [form(each) for each in MEMBERS]
    options = {"cv": CV, "n_permutations": 4, "generalise": True}
    result = permutation_test_score(estimator, given, THREE, **options)
    plain = permutation_test_score(estimator, TIMES, THREE, **options)
    assert_close(result.score, plain.score)
    assert_close(result.permutation_scores, plain.permutation_scores)


def test_generalisation_in_batches_is_the_same():
    options = {"cv": CV, "n_permutations": 7, "generalise": True}
    whole = permutation_test_score(KFDA(gamma=0.1), TIMES, THREE, **options)
    parts = permutation_test_in_memory(1, KFDA(gamma=0.1), TIMES, THREE, **options)
    assert_close(whole.permutation_scores, parts.permutation_scores)


@pytest.mark.parametrize("columns", [list("abcd"), None], ids=["named", "numbered"])
def test_steps_see_frames_of_all_members_alike(columns):
    estimator = make_pipeline(StandardScaler(), LSSVC("linear"))
    options = {"cv": CV, "n_permutations": 4, "generalise": True}
    given = [pd.DataFrame(each, columns=columns) for each in MEMBERS]
    result = permutation_test_score(estimator, given, THREE, **options)
    assert_close(result.score, permutation_test_score(estimator, TIMES, THREE, **options).score)


@pytest.mark.filterwarnings("ignore::foldless.model_selection.RefitWarning")
@pytest.mark.parametrize(
    ("estimator", "options"),
    [
        (SVC(), {}),
        (LSSVC(class_weight="balanced"), {}),
        (LSSVC(calibration="sigmoid"), {"scoring": "neg_log_loss"}),
    ],
    ids=["SVC", "class weights", "probabilities"],
)
def test_generalisation_takes_columns(estimator, options):
    with pytest.raises(ValueError, match="generalise=True needs permutations as columns, which is not possible here"):
        permutation_test_score(estimator, TIMES, BINARY, cv=3, n_permutations=2, generalise=True, **options)


@pytest.mark.parametrize("steps", [False, True])
def test_a_search_is_not_tested_at_other_members(steps):
    search = FoldlessSearchCV(LSSVC(), GRID)
    search = make_pipeline(StandardScaler(), search) if steps else search
    with pytest.raises(ValueError, match="generalise=True: a search is not tested at other members"):
        permutation_test_score(search, TIMES, BINARY, cv=3, n_permutations=2, generalise=True)
