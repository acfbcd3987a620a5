"""permutation_test_score against a plain loop of refits: every estimator and container."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.decomposition import PCA
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from foldless import LSSVC, LSSVR, kernels, reference
from foldless._engine.heldout.moments import Moments
from foldless._sklearn.permutation_spec import PermutationData
from foldless.model_selection import permutation_test_score
from support.permutation import (
    BINARY,
    CODES,
    EVERYONE,
    FOLDS,
    KFDA,
    LABELS,
    STRATA,
    VALUES,
    WEIGHT,
    WIDE,
    M,
    N,
    X,
    assert_scores,
    check_scores,
    make_classes,
    orders_of,
    plain_score,
)
from support.refits import class_matrices

everyone = pytest.mark.parametrize(("estimator", "y"), EVERYONE)


@pytest.mark.many_cases
@everyone
def test_permutation_scores_equal_refits(estimator, y):
    check_scores(estimator, X, y)


@pytest.mark.many_cases
@pytest.mark.parametrize("n_classes", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
@pytest.mark.parametrize("estimator", [LSSVC, KFDA])
def test_permutation_scores_of_any_number_of_classes_equal_refits(n_classes, penalty, estimator):
    X, y = make_classes(n_classes, n=54)
    assert np.bincount(y).max() > 1.5 * np.bincount(y).min()
    folds = list(KFold(3, shuffle=True, random_state=0).split(X))
    check_scores(estimator(gamma=0.1, alpha=0.1, penalty=penalty), X, y, cv=folds)


@pytest.mark.parametrize("y", [LABELS, BINARY], ids=["3", "2"])
@pytest.mark.parametrize("estimator", [LSSVC, KFDA])
def test_permutation_scores_with_basis_functions_of_all_rows_equal_the_oracle(estimator, y):
    """The oracle solves for the fits and applies the readout."""
    estimator = estimator(gamma=0.1, penalty="coef")
    orders = orders_of(N)
    K = kernels.resolve("rbf", X, gamma=0.1).gram(X)
    settings = {"w": np.ones(N), "penalty": "coef"}
    built = PermutationData(X, y).task(estimator)
    task, classes = built.task, built.classes
    scores = []
    for order in orders:
        codes, own = task.codes[order], []
        Y = task.readout.targets(codes, float)
        for train, test in FOLDS:
            moments = Moments(*class_matrices(K, Y, train, 1.0, **settings)) if task.readout.needs_moments else None
            D = task.readout.scores(reference.heldout_fits(K, Y, train, test, 1.0, **settings), moments)
            own.append(np.mean((D > 0 if len(classes) == 2 else D.argmax(1)) == codes[test]))
        scores.append(np.mean(own))
    assert_scores(permutation_test_score(estimator, X, y, cv=FOLDS, n_permutations=M, random_state=7), np.array(scores))


@pytest.mark.parametrize(
    ("features", "holder"), [(X, "low rank: 4 linear features"), (WIDE, "factored: one alpha")], ids=["few", "many"]
)
@pytest.mark.parametrize("estimator", [LSSVC("linear"), KFDA("linear"), RidgeClassifier()], ids=str)
def test_permutation_scores_of_linear_kernels_equal_refits_and_name_the_holder(estimator, features, holder):
    assert holder in check_scores(estimator, features, LABELS).path.reason


@pytest.mark.parametrize("y", [LABELS, VALUES], ids=["labels", "values"])
def test_permutation_scores_of_precomputed_kernels_equal_refits(y):
    K = kernels.resolve("rbf", X, gamma=0.1).gram(X)
    for estimator in [LSSVC("precomputed"), KFDA("precomputed")] if y is LABELS else [LSSVR("precomputed")]:
        check_scores(estimator, K, y)
        check_scores(estimator, K, y, scoring=plain_score, m=2)
    if y is VALUES:
        check_scores(KernelRidge(kernel="precomputed"), K, y)


@pytest.mark.parametrize("estimator", [LSSVR(gamma=0.1), LSSVR("linear"), Ridge()], ids=str)
def test_permutation_scores_in_single_precision_are_near(estimator):
    result = check_scores(estimator, X.astype(np.float32), VALUES, atol=2e-4)
    double = permutation_test_score(estimator, X, VALUES, cv=FOLDS, n_permutations=M, random_state=7)
    assert 0 < np.abs(result.permutation_scores - double.permutation_scores).max() < 2e-4


@pytest.mark.parametrize("convert", [sp.csr_matrix, sp.csr_array, sp.csc_array], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("estimator", [LSSVC(gamma=0.1), LSSVC("linear"), RidgeClassifier()], ids=str)
def test_permutation_scores_of_sparse_features_equal_refits(estimator, convert):
    check_scores(estimator, convert(np.where(np.abs(X) < 0.5, 0.0, X)), LABELS, m=2)


@pytest.mark.parametrize("estimator", [LSSVC(gamma=0.1), make_pipeline(StandardScaler(), LSSVC(gamma=0.1))], ids=str)
def test_tables_and_lists_give_the_same_permutation_scores(estimator):
    options = {"cv": FOLDS, "n_permutations": M}
    expected = permutation_test_score(estimator, X, LABELS, null=STRATA, **options)
    names, index = list("abcd"), np.random.default_rng(5).permutation(N) + 100
    tables = [
        (pd.DataFrame(X, index, names), pd.Series(LABELS, index), pd.Series(STRATA, index)),
        (pd.DataFrame(X, index, names), pd.Series(LABELS, index).astype("category"), STRATA),
        (pl.DataFrame(X, names), pl.Series(LABELS), pl.Series(STRATA)),
        (X.tolist(), LABELS.tolist(), STRATA.tolist()),
    ]
    for X_, y_, strata in tables:
        for scoring in (None, plain_score):
            if scoring is not None and hasattr(estimator, "steps"):
                continue
            result = permutation_test_score(estimator, X_, y_, null=strata, scoring=scoring, **options)
            assert_array_equal(result.permutation_scores, expected.permutation_scores)
            assert result[::2] == expected[::2]


def test_labels_of_any_kind_give_the_same_permutation_scores():
    """Names of classes make no difference, where their order stays."""
    options = {"cv": FOLDS, "n_permutations": M}
    expected = permutation_test_score(KFDA(), X, CODES, **options)
    for labels in (LABELS, CODES * 10 - 7, CODES + 0.0, CODES.astype(np.int8), LABELS.astype(object)):
        assert_array_equal(permutation_test_score(KFDA(), X, labels, **options)[1], expected[1])
    expected = permutation_test_score(KFDA(), X, BINARY, **options)
    assert_array_equal(permutation_test_score(KFDA(), X, BINARY == "yes", **options)[1], expected[1])


@pytest.mark.parametrize("y", [LABELS, VALUES], ids=["labels", "values"])
def test_gamma_scale_is_resolved_once_on_all_rows(y):
    """Behind steps of a pipeline on each training part, as a refit does."""
    kind = LSSVC if y is LABELS else LSSVR
    check_scores(kind(), X, y, oracle={"estimator": kind(gamma=1 / (4 * X.var()))})
    gamma = 1 / (4 * kernels.resolve("rbf", X, gamma="scale", sample_weight=WEIGHT).gamma ** -1 / 4)
    weighted = {"weight": lambda order: WEIGHT, "estimator": kind(gamma=gamma)}
    check_scores(kind(), X, y, params={"sample_weight": WEIGHT}, oracle=weighted)
    check_scores(make_pipeline(PCA(3), kind()), X, y, kind="one P per fold")
    name = f"{kind.__name__.lower()}__sample_weight"
    weighted = {"weight": lambda order: WEIGHT, "name": name}
    check_scores(make_pipeline(PCA(3), kind()), X, y, kind="one P per fold", params={name: WEIGHT}, oracle=weighted)
