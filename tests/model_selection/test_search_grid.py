"""Losses of a grid against explicit loops over candidates, splits and classes."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn import metrics
from sklearn import model_selection as skl
from sklearn.base import clone, is_classifier
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.metrics.pairwise import rbf_kernel

from foldless import LSSVC, LSSVR, FoldlessSearchCV
from foldless._engine.tuning.criteria import CRITERIA
from foldless.estimators import checks
from foldless.kernels import Boolean
from support.refits import fit_weights, fits_of_candidate, signs, with_fixed_functions
from support.searches import (
    ALPHAS,
    BINARY,
    CODES,
    GROUPS,
    KFDA,
    LABELS,
    RBF_GRID,
    SPLITTERS,
    VALUES,
    WEIGHT,
    D,
    N,
    X,
    losses_of,
    splits_of,
)
from support.tolerances import assert_close

KERNEL_GRIDS = [
    {"kernel": ["rbf", "laplacian"], "gamma": [0.1], "alpha": ALPHAS},
    {"kernel": ["poly"], "degree": [2], "coef0": [0.5, 2.0], "gamma": [0.1], "alpha": [1.0]},
    {"kernel": ["linear"], "alpha": [10.0, 0.3]},
]
CASES = {
    "LSSVC, 2 classes": (LSSVC(), BINARY, RBF_GRID),
    "LSSVC, 3 classes": (LSSVC(), LABELS, RBF_GRID),
    "LSSVC coef": (LSSVC(penalty="coef"), LABELS, RBF_GRID),
    "LSSVC penalties": (LSSVC(gamma=0.1), BINARY, {"penalty": ["rkhs", "coef"], "alpha": ALPHAS}),
    "LSSVC class weights": (LSSVC(gamma=0.1, class_weight={"ant": 3.0, "cat": 0.5}), LABELS, {"alpha": ALPHAS}),
    "LSSVC kernels": (LSSVC(), LABELS, KERNEL_GRIDS),
    "LSSVC linear, no intercept": (LSSVC("linear", fit_intercept=False), BINARY, {"alpha": ALPHAS}),
    "KFDA, 2 classes": (KFDA(), BINARY, RBF_GRID),
    "KFDA, 3 classes": (KFDA(), LABELS, RBF_GRID),
    "KFDA, 2 classes, no intercept": (KFDA(fit_intercept=False), BINARY, RBF_GRID),
    "KFDA, 3 classes, no intercept": (KFDA(fit_intercept=False, penalty="coef"), LABELS, RBF_GRID),
    "RidgeClassifier, 2 classes": (RidgeClassifier(), BINARY, {"alpha": ALPHAS, "fit_intercept": [True, False]}),
    "RidgeClassifier, 3 classes": (RidgeClassifier(), LABELS, {"alpha": ALPHAS}),
    "LSSVR": (LSSVR(), VALUES, RBF_GRID),
    "LSSVR coef": (LSSVR(penalty="coef"), VALUES, RBF_GRID),
    "LSSVR kernels": (LSSVR(), VALUES, KERNEL_GRIDS),
    "LSSVR outputs": (LSSVR(), np.column_stack([VALUES, X[:, 2]]), RBF_GRID),
    "Ridge": (Ridge(), VALUES, {"alpha": ALPHAS}),
    "Ridge outputs": (Ridge(fit_intercept=False), np.column_stack([VALUES, X[:, 2]]), {"alpha": ALPHAS}),
    "KernelRidge": (KernelRidge(kernel="rbf"), VALUES, RBF_GRID),
    "KernelRidge kernels": (KernelRidge(), VALUES, KERNEL_GRIDS),
}
every_case = pytest.mark.parametrize("case", CASES)

every_splitter = pytest.mark.parametrize("splitter", SPLITTERS)


def sign(f):
    return np.where(f > 0, 1.0, -1.0)


METRICS = {
    "press": metrics.mean_squared_error,
    "error": lambda t, f, **options: metrics.zero_one_loss(t, sign(f), **options),
    "ber": lambda t, f, **options: 1 - metrics.balanced_accuracy_score(t, sign(f), **options),
    "hinge": metrics.hinge_loss,
    "auc": lambda t, f, **options: 1 - metrics.roc_auc_score(t, f, **options),
}


def by_hand(criterion, rows, fits, y, weight=None, w=None):
    """The criterion added up over the columns, by scikit-learn's metrics."""
    total, T = 0.0, signs(y)[rows]
    for t, f in zip(T.T, fits.T, strict=True):
        each = np.ones(len(t))
        if weight in ("auto", "sample_weight") and w is not None:
            each = w[rows]
        if weight == "balanced":
            each = np.where(t > 0, 1 / np.sum(t > 0), 1 / np.sum(t < 0))
        total += METRICS[criterion](t, f, sample_weight=each)
    return total


@pytest.mark.many_cases
@every_case
@every_splitter
def test_losses_of_a_grid_equal_refits(case, splitter):
    """Criteria and weights take turns: all pairs of them, of cases and of splitters come up."""
    estimator, y, grid = CASES[case]
    turn = list(CASES).index(case) + list(SPLITTERS).index(splitter)
    w = None if turn % 3 == 0 else WEIGHT * (np.arange(N) % 13 != 4)  # two rows that neither train nor count
    groups = GROUPS if splitter == "GroupKFold" else None
    splits = splits_of(splitter, groups)
    criteria, weights = ["press"], ["auto", None, "sample_weight"]
    if is_classifier(estimator):
        criteria, weights = ["press", list(METRICS)[1 + turn % 4]], ["auto", None, "sample_weight", "balanced"]
    listed = list(skl.ParameterGrid(grid))
    fits = [fits_of_candidate(estimator, params, y, splits, X, w) for params in listed]
    for criterion in criteria:
        weight = weights[(turn // 2 + len(criterion)) % len(weights)]
        search = FoldlessSearchCV(
            estimator, grid, cv=SPLITTERS[splitter], criterion=criterion, criterion_weight=weight, refit=False
        )
        search.fit(X, y, sample_weight=w, groups=groups)
        assert search.cv_results_["params"] == listed
        own = fit_weights(estimator, y, w) if weight == "auto" else w  # of the fit, class weights included
        expected = np.array([by_hand(criterion, *each, y, weight, own) for each in fits])
        assert_close(losses_of(search), expected, scale=1.0 + expected.max())
        best = search.best_index_
        assert expected[best] <= expected.min() + 1e-8
        assert search.best_params_ == listed[best]
        assert search.best_criterion_ == pytest.approx(expected[best], abs=1e-8)


def scikit_loop(estimator, params, y, cv, w=None):
    """Held-out fits by cross_val_predict, one class against the others at a time."""
    single = with_fixed_functions(clone(estimator).set_params(**params), X, w)
    options = {"cv": cv, "params": None if w is None else {"sample_weight": w}}
    if not is_classifier(estimator):
        return skl.cross_val_predict(single, X, y, **options).reshape(len(y), -1)
    columns = [
        skl.cross_val_predict(single, X, t.astype(int), method="decision_function", **options) for t in signs(y).T
    ]
    return np.column_stack(columns)


@pytest.mark.many_cases
@pytest.mark.parametrize("case", [name for name in CASES if "class weights" not in name])
@pytest.mark.parametrize("splitter", ["leave-one-out", "KFold"])
def test_losses_of_a_grid_equal_those_of_scikit_learns_loop(case, splitter):
    """One estimator for each class: a Fisher discriminant of two classes cut at zero is a fit to +-1."""
    estimator, y, grid = CASES[case]
    cv = SPLITTERS[splitter]
    listed = list(skl.ParameterGrid(grid))[-1 if splitter == "leave-one-out" else 0 :: 2]
    grid = [{name: [value] for name, value in params.items()} for params in listed]
    search = FoldlessSearchCV(estimator, grid, cv=cv, refit=False).fit(X, y, sample_weight=WEIGHT)
    for params, found in zip(listed, losses_of(search), strict=True):
        fits = scikit_loop(estimator, params, y, cv or skl.LeaveOneOut(), WEIGHT)
        assert found == pytest.approx(by_hand("press", np.arange(N), fits, y, "auto", WEIGHT), rel=1e-8)


@pytest.mark.parametrize("weight", ["auto", None, "balanced", "sample_weight"])
@pytest.mark.parametrize("criterion", [name for name, each in CRITERIA.items() if not each.of_decisions])
def test_every_criterion_and_weighting_equals_refits(criterion, weight):
    """Whatever is listed, from held-out fits of the loop."""
    w = WEIGHT.copy()
    w[3] = 0.0
    search = FoldlessSearchCV(
        LSSVC(), RBF_GRID, criterion=CRITERIA[criterion].with_slope(3.0), criterion_weight=weight, refit=False
    )
    search.fit(X, LABELS, sample_weight=w)
    rows = np.flatnonzero(w)
    T = signs(LABELS)[rows]
    W = np.ones_like(T)
    if weight in ("auto", "sample_weight"):
        W = np.repeat(w[rows, None], 3, axis=1)
    if weight == "balanced":
        W = np.where(T > 0, 1 / (T > 0).sum(0), 1 / (T < 0).sum(0))
    for params, found in zip(search.cv_results_["params"], losses_of(search), strict=True):
        _, fits = fits_of_candidate(LSSVC(), params, LABELS, splits_of("leave-one-out"), X, w)
        fits = fits[np.arange(len(rows))]
        expected = CRITERIA[criterion].with_slope(3.0)(fits, T, W / W.sum(0))[0].sum()
        assert found == pytest.approx(expected, rel=1e-8)


def test_functions_of_users_are_criteria():
    def absolute(f, t, w):
        return w @ np.abs(t - f)

    search = FoldlessSearchCV(LSSVR(), RBF_GRID, criterion=absolute).fit(X, VALUES)
    for params, found in zip(search.cv_results_["params"], losses_of(search), strict=True):
        _, fits = fits_of_candidate(LSSVR(), params, VALUES, splits_of("leave-one-out"), X)
        assert found == pytest.approx(metrics.mean_absolute_error(VALUES, fits[:, 0]))
    search = FoldlessSearchCV(LSSVC(), RBF_GRID, criterion=lambda f, t, w: w @ (t * f <= 0)).fit(X, LABELS)
    assert_close(losses_of(search), losses_of(FoldlessSearchCV(LSSVC(), RBF_GRID, criterion="error").fit(X, LABELS)))


def test_callable_kernels_stand_in_a_grid_beside_others():
    def mine(X, Z):
        return X @ Z.T

    def other(X, Z):
        return (1 + X @ Z.T) ** 2

    grid = {"kernel": [mine, other, lambda X, Z: X @ Z.T, "linear"], "alpha": ALPHAS}
    found = losses_of(FoldlessSearchCV(LSSVC(), grid).fit(X, LABELS)).reshape(3, 4)  # sorted by name: alpha first
    assert_close(found[:, 0], found[:, 3])
    assert_close(found[:, 2], found[:, 3])
    assert np.abs(found[:, 1] - found[:, 3]).max() > 1e-3


def test_one_gamma_for_each_feature_stands_in_a_grid():
    gammas = [[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1], 0.1]
    search = FoldlessSearchCV(LSSVR(), {"gamma": gammas, "alpha": ALPHAS}).fit(X, VALUES)
    for params, found in zip(search.cv_results_["params"], losses_of(search), strict=True):
        scaled = X * np.sqrt(np.broadcast_to(params["gamma"], D))
        alone = {"alpha": params["alpha"], "gamma": 1.0}
        fits = fits_of_candidate(LSSVR(), alone, VALUES, splits_of("leave-one-out"), scaled)
        assert found == pytest.approx(by_hand("press", *fits, VALUES))


@pytest.mark.parametrize("container", ["csr", "csc", "pandas", "polars", "float32", "list"])
@pytest.mark.parametrize("case", ["LSSVC kernels", "KFDA, 3 classes", "LSSVR", "RidgeClassifier, 3 classes", "Ridge"])
def test_containers_give_the_same_losses(case, container):
    estimator, y, grid = CASES[case]
    frame = pd.DataFrame(X, columns=list("abcd"))
    data = {
        "csr": sp.csr_array(X),
        "csc": sp.csc_matrix(X),
        "pandas": frame,
        "polars": pl.from_pandas(frame),
        "float32": X.astype(np.float32),
        "list": X.tolist(),
    }[container]
    named = {"pandas": pd.Series, "polars": pl.Series, "list": np.ndarray.tolist}
    cv = skl.KFold(4, shuffle=True, random_state=0)
    ours = FoldlessSearchCV(estimator, grid, cv=cv).fit(data, named.get(container, np.asarray)(y))
    plain = FoldlessSearchCV(estimator, grid, cv=cv).fit(X, y)
    assert_close(losses_of(ours), losses_of(plain), rtol=1e-3 if container == "float32" else None)
    np.testing.assert_array_equal(np.shape(ours.predict(data)), np.shape(plain.predict(X)))
    assert ours.n_features_in_ == D
    if container == "pandas":
        assert list(ours.feature_names_in_) == list("abcd")


def test_precomputed_kernels_are_searched_for_alpha():
    K = rbf_kernel(X, gamma=0.3)
    search = FoldlessSearchCV(LSSVC("precomputed"), {"alpha": ALPHAS}).fit(K, LABELS)
    same = FoldlessSearchCV(LSSVC(gamma=0.3), {"alpha": ALPHAS}).fit(X, LABELS)
    assert_close(losses_of(search), losses_of(same))
    np.testing.assert_array_equal(search.predict(K), same.predict(X))
    assert search.__sklearn_tags__().input_tags.pairwise
    scores = skl.cross_val_score(search, K, LABELS, cv=3)
    np.testing.assert_array_equal(scores, skl.cross_val_score(same, X, LABELS, cv=3))


def test_masks_and_lists_are_splits():
    mask = np.arange(N) % 3 == 0
    one = FoldlessSearchCV(LSSVR(), RBF_GRID, cv=[(~mask, mask), (mask, ~mask)]).fit(X, VALUES)
    numbered = [(np.flatnonzero(~mask), np.flatnonzero(mask)), (np.flatnonzero(mask), np.flatnonzero(~mask))]
    two = FoldlessSearchCV(LSSVR(), RBF_GRID, cv=iter(numbered)).fit(X, VALUES)
    assert_close(losses_of(one), losses_of(two))


def test_a_number_of_folds_is_stratified_for_classifiers():
    for estimator, y, cv in ((LSSVC(), LABELS, skl.StratifiedKFold(3)), (LSSVR(), VALUES, skl.KFold(3))):
        one, two = (FoldlessSearchCV(estimator, RBF_GRID, cv=each).fit(X, y) for each in (3, cv))
        np.testing.assert_array_equal(losses_of(one), losses_of(two))


def test_results_have_the_shape_of_grid_searchs():
    search = FoldlessSearchCV(LSSVC(), KERNEL_GRIDS).fit(X, LABELS)
    theirs = skl.GridSearchCV(LSSVC(), KERNEL_GRIDS, cv=3).fit(X, LABELS)
    ours, losses = search.cv_results_, losses_of(search)
    assert set(ours) - set(theirs.cv_results_) == {"mean_test_criterion", "se_test_criterion", "rank_test_criterion"}
    assert ours["params"] == theirs.cv_results_["params"]
    for name in (name for name in theirs.cv_results_ if name.startswith("param_")):
        np.testing.assert_array_equal(np.ma.getmaskarray(ours[name]), np.ma.getmaskarray(theirs.cv_results_[name]))
        assert ours[name].compressed().tolist() == theirs.cv_results_[name].compressed().tolist()
    np.testing.assert_array_equal(ours["rank_test_criterion"], np.searchsorted(np.sort(losses), losses) + 1)
    assert ours["rank_test_criterion"][search.best_index_] == 1
    assert search.best_criterion_ == losses[search.best_index_]
    assert search.best_score_ == ours["mean_test_score"][search.best_index_]
    assert search.best_estimator_.get_params()["kernel"] == search.best_params_["kernel"]
    criteria_of = [step["criterion"] for step in search.history_]
    assert_close(criteria_of, losses)


def test_most_regularised_of_equal_candidates_is_taken():
    """Errors are counts: many candidates tie."""
    far = X + 20 * CODES[:, None]
    search = FoldlessSearchCV(LSSVC("linear"), {"alpha": [1e-3, 1.0, 1e-2, 1e-1]}, criterion="ber").fit(far, BINARY)
    assert np.unique(losses_of(search)).size == 1
    assert search.best_params_ == {"alpha": 1.0}


@pytest.mark.filterwarnings("ignore:.*lies on the edge")
@pytest.mark.parametrize(
    ("estimator", "y", "names"),
    [
        (LSSVC(), LABELS, {"alpha", "gamma"}),
        (LSSVC("poly"), LABELS, {"alpha", "gamma"}),
        (LSSVC("laplacian", penalty="coef"), BINARY, {"alpha", "gamma"}),
        (LSSVC("linear"), LABELS, {"alpha"}),
        (LSSVC("cosine"), LABELS, {"alpha"}),
        (KFDA("boolean"), LABELS, {"alpha"}),
        (KFDA(Boolean()), LABELS, {"alpha", "kernel__eta"}),
        (RidgeClassifier(), LABELS, {"alpha"}),
        (Ridge(), VALUES, {"alpha"}),
        (KernelRidge(kernel="rbf"), VALUES, {"alpha", "gamma"}),
    ],
    ids=lambda value: str(value) if hasattr(value, "fit") else "",
)
def test_without_a_grid_one_is_made_from_the_data(estimator, y, names):
    data = (X > 0).astype(float) if isinstance(estimator, KFDA) else X
    search = FoldlessSearchCV(estimator).fit(data, y)
    assert set(search.best_params_) == names
    assert len(search.cv_results_["params"]) >= 15
    tried = np.unique([params["alpha"] for params in search.cv_results_["params"]])
    assert tried[-1] / tried[0] > 1e5
    assert search.best_criterion_ < 3.0 * (1 if is_classifier(estimator) else VALUES.var())
    # the size of the features is no news to gamma="scale" or to alpha
    if estimator.get_params().get("kernel", "linear") in ("linear", "rbf") and not isinstance(estimator, KernelRidge):
        again = FoldlessSearchCV(estimator).fit(1e3 * data, y)
        assert again.best_index_ == search.best_index_
        assert again.best_criterion_ == pytest.approx(search.best_criterion_, rel=1e-6)


@pytest.mark.parametrize("options", [{}, {"method": "gradient"}, {"steps": "each", "cv": 3}], ids=str)
def test_a_search_checks_its_rows_once(options, monkeypatch):
    checked = []

    def counted(*args, **kwargs):
        checked.append(1)
        return checks.validated_rows(*args, **kwargs)

    monkeypatch.setattr("foldless.estimators.base.validated_rows", counted)
    for labels in (LABELS, LABELS.astype(object)):
        checked.clear()
        FoldlessSearchCV(LSSVC(), None if "method" in options else RBF_GRID, **options).fit(X.tolist(), labels)
        assert len(checked) == 1
