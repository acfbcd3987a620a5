"""FoldlessSearchCV against explicit loops over candidates, splits and classes, and as an estimator of scikit-learn's.

The loops refit every candidate on every training part (``foldless.reference`` or scikit-learn) and take the criterion
from scikit-learn's metrics.
"""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from cases import assert_close
from sklearn import metrics
from sklearn import model_selection as skl
from sklearn.base import clone, is_classifier
from sklearn.datasets import make_moons
from sklearn.exceptions import NotFittedError
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge, RidgeClassifier, RidgeClassifierCV, RidgeCV
from sklearn.metrics.pairwise import laplacian_kernel, linear_kernel, polynomial_kernel, rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from foldless import LSSVC, LSSVR, FoldlessSearchCV, KernelFisherDiscriminant, kernels, reference
from foldless.bridge.adapters import TASKS
from foldless.estimators import OneAgainstAllClassifier
from foldless.readout.calibration import fit_calibration
from foldless.tuning.criteria import CRITERIA
from foldless.tuning.search import PRIORS, Objective, Space
from foldless.tuning.selection import Selection

N, D = 30, 4
RNG = np.random.default_rng(0)
CODES = RNG.permutation(np.repeat([0, 1, 2], [8, 10, 12]))
X = RNG.normal(size=(N, D)) + 0.8 * CODES[:, None] * [1, 0, -1, 0]
GROUPS = np.arange(N) % 7
WEIGHT = RNG.uniform(0.3, 3.0, N)
LABELS = np.array(["ant", "bee", "cat"])[CODES]
BINARY = np.array(["no", "yes"])[(CODES > 1).astype(int)]
VALUES = X[:, 0] ** 2 + X[:, 1] + RNG.normal(size=N)
KFDA = KernelFisherDiscriminant

ALPHAS = [0.05, 1.0, 20.0]
RBF_GRID = {"alpha": ALPHAS, "gamma": [0.03, 0.3]}
KERNEL_GRIDS = [
    {"kernel": ["rbf", "laplacian"], "gamma": [0.1], "alpha": ALPHAS},
    {"kernel": ["poly"], "degree": [2], "coef0": [0.5, 2.0], "gamma": [0.1], "alpha": [1.0]},
    {"kernel": ["linear"], "alpha": [10.0, 0.3]},
]
CASES = {
    "LSSVC, 2 classes": (LSSVC(), BINARY, RBF_GRID),
    "LSSVC, 3 classes": (LSSVC(), LABELS, RBF_GRID),
    "LSSVC coef": (LSSVC(penalty="coef"), LABELS, RBF_GRID),
    "LSSVC coef, all": (LSSVC(penalty="coef", basis="all"), LABELS, RBF_GRID),
    "LSSVC penalties": (LSSVC(gamma=0.1), BINARY, {"penalty": ["rkhs", "coef"], "basis": ["train", "all"]}),
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
    "LSSVR coef, all": (LSSVR(penalty="coef", basis="all"), VALUES, RBF_GRID),
    "LSSVR kernels": (LSSVR(), VALUES, KERNEL_GRIDS),
    "LSSVR outputs": (LSSVR(), np.column_stack([VALUES, X[:, 2]]), RBF_GRID),
    "Ridge": (Ridge(), VALUES, {"alpha": ALPHAS}),
    "Ridge outputs": (Ridge(fit_intercept=False), np.column_stack([VALUES, X[:, 2]]), {"alpha": ALPHAS}),
    "KernelRidge": (KernelRidge(kernel="rbf"), VALUES, RBF_GRID),
    "KernelRidge kernels": (KernelRidge(), VALUES, KERNEL_GRIDS),
}
every_case = pytest.mark.parametrize("case", CASES)

SPLITTERS = {
    "leave-one-out": None,
    "LeaveOneOut": skl.LeaveOneOut(),
    "KFold": skl.KFold(4, shuffle=True, random_state=0),
    "GroupKFold": skl.GroupKFold(3),
    "RepeatedKFold": skl.RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
    "ShuffleSplit": skl.ShuffleSplit(3, test_size=0.3, random_state=0),
    "ShuffleSplit with a gap": skl.ShuffleSplit(3, train_size=0.5, test_size=0.3, random_state=0),
    "TimeSeriesSplit": skl.TimeSeriesSplit(2, max_train_size=14),
    "PredefinedSplit": skl.PredefinedSplit(np.where(np.arange(N) % 4 < 3, np.arange(N) % 4, -1)),
}
every_splitter = pytest.mark.parametrize("splitter", SPLITTERS)
weighted_or_not = pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])


# -- the loop ----------------------------------------------------------------------------------------------------------


def splits_of(splitter, groups=None):
    return list((SPLITTERS[splitter] or skl.LeaveOneOut()).split(X, CODES, groups))


def targets(y):
    """+-1 for each class, one column for two classes; values as they are."""
    if y.dtype.kind == "f":
        return y.reshape(len(y), -1)
    classes = np.unique(y)
    T = np.where(y[:, None] == classes, 1.0, -1.0)
    return T[:, 1:] if len(classes) == 2 else T


def gram(parameters, X):
    """scikit-learn's kernels."""
    gamma = parameters.get("gamma")
    return {
        "linear": lambda: linear_kernel(X),
        "rbf": lambda: rbf_kernel(X, gamma=gamma),
        "laplacian": lambda: laplacian_kernel(X, gamma=gamma),
        "poly": lambda: polynomial_kernel(
            X, gamma=gamma, degree=parameters.get("degree"), coef0=parameters.get("coef0")
        ),
    }[parameters.get("kernel", "linear")]()


def refitted(estimator, params, y, splits, w=None, data=X):
    """(rows, held-out fits), stacked over the splits, of one candidate refitted on every training part."""
    own = clone(estimator).set_params(**params).get_params()
    w = np.ones(len(y)) if w is None else w
    if own.get("class_weight") is not None:
        w = w * np.array([own["class_weight"].get(label, 1.0) for label in y])
    Q = np.ones((len(y), int(own.get("fit_intercept", False))))
    options = {"w": w, "Q": Q, "penalty": own.get("penalty", "rkhs"), "basis": own.get("basis", "train")}
    K, T = gram(own, data), targets(y)
    rows = [test[w[test] > 0] for _, test in splits]
    fits = [
        reference.heldout_fits(K, T, train, test, own["alpha"], **options)
        for (train, _), test in zip(splits, rows, strict=True)
    ]
    return np.concatenate(rows), np.concatenate(fits)


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
    total, T = 0.0, targets(y)[rows]
    for t, f in zip(T.T, fits.T, strict=True):
        each = np.ones(len(t))
        if weight == "sample_weight" and w is not None:
            each = w[rows]
        if weight == "balanced":
            each = np.where(t > 0, 1 / np.sum(t > 0), 1 / np.sum(t < 0))
        total += METRICS[criterion](t, f, sample_weight=each)
    return total


def losses(search):
    return -search.cv_results_["mean_test_score"]


# -- grids -------------------------------------------------------------------------------------------------------------


@every_case
@every_splitter
def test_losses_of_a_grid_equal_refits(case, splitter):
    """Criteria and weights take turns: all pairs of them, of cases and of splitters come up."""
    estimator, y, grid = CASES[case]
    turn = list(CASES).index(case) + list(SPLITTERS).index(splitter)
    w = None if turn % 3 == 0 else WEIGHT * (np.arange(N) % 13 != 4)  # two rows that neither train nor count
    groups = GROUPS if splitter == "GroupKFold" else None
    splits = splits_of(splitter, groups)
    criteria, weights = ["press"], [None, "sample_weight"]
    if is_classifier(estimator):
        criteria, weights = ["press", list(METRICS)[1 + turn % 4]], [None, "sample_weight", "balanced"]
    listed = list(skl.ParameterGrid(grid))
    fits = [refitted(estimator, params, y, splits, w) for params in listed]
    for criterion in criteria:
        weight = weights[(turn // 2 + len(criterion)) % len(weights)]
        search = FoldlessSearchCV(
            estimator, grid, cv=SPLITTERS[splitter], criterion=criterion, criterion_weight=weight, refit=False
        )
        search.fit(X, y, sample_weight=w, groups=groups)
        assert search.cv_results_["params"] == listed
        expected = np.array([by_hand(criterion, *each, y, weight, w) for each in fits])
        assert_close(losses(search), expected, scale=1.0 + expected.max())
        best = search.best_index_
        assert expected[best] <= expected.min() + 1e-8
        assert search.best_params_ == listed[best]
        assert search.best_score_ == pytest.approx(-expected[best], abs=1e-8)


def scikit_loop(estimator, params, y, cv, w=None):
    """Held-out fits by cross_val_predict, one class against the others at a time."""
    single = clone(estimator).set_params(**params)
    options = {"cv": cv, "params": None if w is None else {"sample_weight": w}}
    if not is_classifier(estimator):
        return skl.cross_val_predict(single, X, y, **options).reshape(len(y), -1)
    columns = [
        skl.cross_val_predict(single, X, t.astype(int), method="decision_function", **options) for t in targets(y).T
    ]
    return np.column_stack(columns)


@pytest.mark.parametrize("case", [name for name in CASES if "all" not in name and "class weights" not in name])
@pytest.mark.parametrize("splitter", ["leave-one-out", "KFold"])
def test_losses_of_a_grid_equal_those_of_scikit_learns_loop(case, splitter):
    """One estimator for each class: a Fisher discriminant of two classes cut at zero is a fit to +-1."""
    estimator, y, grid = CASES[case]
    cv = SPLITTERS[splitter]
    if "basis" in grid:
        grid = {**grid, "basis": ["train"]}
    listed = list(skl.ParameterGrid(grid))[-1 if splitter == "leave-one-out" else 0 :: 2]
    grid = [{name: [value] for name, value in params.items()} for params in listed]
    search = FoldlessSearchCV(estimator, grid, cv=cv, refit=False).fit(X, y, sample_weight=WEIGHT)
    for params, found in zip(listed, losses(search), strict=True):
        fits = scikit_loop(estimator, params, y, cv or skl.LeaveOneOut(), WEIGHT)
        assert found == pytest.approx(by_hand("press", np.arange(N), fits, y), rel=1e-8)


@pytest.mark.parametrize("weight", [None, "balanced", "sample_weight"])
@pytest.mark.parametrize("criterion", [name for name, each in CRITERIA.items() if not each.whole])
def test_every_criterion_and_weighting_of_rows(criterion, weight):
    """Whatever is listed, from held-out fits of the loop."""
    w = WEIGHT.copy()
    w[3] = 0.0
    search = FoldlessSearchCV(LSSVC(), RBF_GRID, criterion=criterion, criterion_weight=weight, slope=3.0, refit=False)
    search.fit(X, LABELS, sample_weight=w)
    rows = np.flatnonzero(w)
    T = targets(LABELS)[rows]
    W = np.ones_like(T)
    if weight == "sample_weight":
        W = np.repeat(w[rows, None], 3, axis=1)
    if weight == "balanced":
        W = np.where(T > 0, 1 / (T > 0).sum(0), 1 / (T < 0).sum(0))
    for params, found in zip(search.cv_results_["params"], losses(search), strict=True):
        _, fits = refitted(LSSVC(), params, LABELS, splits_of("leave-one-out"), w)
        fits = fits[np.arange(len(rows))]
        expected = CRITERIA[criterion].with_slope(3.0)(fits, T, W / W.sum(0))[0].sum()
        assert found == pytest.approx(expected, rel=1e-8)


def test_functions_of_users_are_criteria():
    def absolute(f, t, w):
        return w @ np.abs(t - f)

    search = FoldlessSearchCV(LSSVR(), RBF_GRID, criterion=absolute).fit(X, VALUES)
    for params, found in zip(search.cv_results_["params"], losses(search), strict=True):
        _, fits = refitted(LSSVR(), params, VALUES, splits_of("leave-one-out"))
        assert found == pytest.approx(metrics.mean_absolute_error(VALUES, fits[:, 0]))
    search = FoldlessSearchCV(LSSVC(), RBF_GRID, criterion=lambda f, t, w: w @ (t * f <= 0)).fit(X, LABELS)
    assert_close(losses(search), losses(FoldlessSearchCV(LSSVC(), RBF_GRID, criterion="error").fit(X, LABELS)))


def test_callable_kernels_stand_in_a_grid_beside_others():
    def mine(X, Z):
        return X @ Z.T

    def other(X, Z):
        return (1 + X @ Z.T) ** 2

    grid = {"kernel": [mine, other, lambda X, Z: X @ Z.T, "linear"], "alpha": ALPHAS}
    found = losses(FoldlessSearchCV(LSSVC(), grid).fit(X, LABELS)).reshape(3, 4)  # sorted by name: alpha first
    assert_close(found[:, 0], found[:, 3])
    assert_close(found[:, 2], found[:, 3])
    assert np.abs(found[:, 1] - found[:, 3]).max() > 1e-3


def test_one_gamma_for_each_feature_stands_in_a_grid():
    gammas = [[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1], 0.1]
    search = FoldlessSearchCV(LSSVR(), {"gamma": gammas, "alpha": ALPHAS}).fit(X, VALUES)
    for params, found in zip(search.cv_results_["params"], losses(search), strict=True):
        scaled = X * np.sqrt(np.broadcast_to(params["gamma"], D))
        alone = {"alpha": params["alpha"], "gamma": 1.0}
        fits = refitted(LSSVR(), alone, VALUES, splits_of("leave-one-out"), data=scaled)
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
    assert_close(losses(ours), losses(plain), rtol=1e-3 if container == "float32" else None)
    np.testing.assert_array_equal(np.shape(ours.predict(data)), np.shape(plain.predict(X)))
    assert ours.n_features_in_ == D
    if container == "pandas":
        assert list(ours.feature_names_in_) == list("abcd")


def test_precomputed_kernels_are_searched_for_alpha():
    K = rbf_kernel(X, gamma=0.3)
    search = FoldlessSearchCV(LSSVC("precomputed"), {"alpha": ALPHAS}).fit(K, LABELS)
    same = FoldlessSearchCV(LSSVC(gamma=0.3), {"alpha": ALPHAS}).fit(X, LABELS)
    assert_close(losses(search), losses(same))
    np.testing.assert_array_equal(search.predict(K), same.predict(X))
    assert search.__sklearn_tags__().input_tags.pairwise
    scores = skl.cross_val_score(search, K, LABELS, cv=3)
    np.testing.assert_array_equal(scores, skl.cross_val_score(same, X, LABELS, cv=3))


def test_masks_and_lists_are_splits():
    mask = np.arange(N) % 3 == 0
    one = FoldlessSearchCV(LSSVR(), RBF_GRID, cv=[(~mask, mask), (mask, ~mask)]).fit(X, VALUES)
    numbered = [(np.flatnonzero(~mask), np.flatnonzero(mask)), (np.flatnonzero(mask), np.flatnonzero(~mask))]
    two = FoldlessSearchCV(LSSVR(), RBF_GRID, cv=iter(numbered)).fit(X, VALUES)
    assert_close(losses(one), losses(two))


def test_a_number_of_folds_is_stratified_for_classifiers():
    for estimator, y, cv in ((LSSVC(), LABELS, skl.StratifiedKFold(3)), (LSSVR(), VALUES, skl.KFold(3))):
        one, two = (FoldlessSearchCV(estimator, RBF_GRID, cv=each).fit(X, y) for each in (3, cv))
        np.testing.assert_array_equal(losses(one), losses(two))


def test_results_have_the_shape_of_grid_searchs():
    search = FoldlessSearchCV(LSSVC(), KERNEL_GRIDS).fit(X, LABELS)
    theirs = skl.GridSearchCV(LSSVC(), KERNEL_GRIDS, cv=3).fit(X, LABELS)
    ours = search.cv_results_
    assert set(ours) <= set(theirs.cv_results_)
    assert ours["params"] == theirs.cv_results_["params"]
    for name in (name for name in theirs.cv_results_ if name.startswith("param_")):
        np.testing.assert_array_equal(np.ma.getmaskarray(ours[name]), np.ma.getmaskarray(theirs.cv_results_[name]))
        assert ours[name].compressed().tolist() == theirs.cv_results_[name].compressed().tolist()
    np.testing.assert_array_equal(ours["rank_test_score"], np.searchsorted(np.sort(losses(search)), losses(search)) + 1)
    assert ours["rank_test_score"][search.best_index_] == 1
    assert search.best_score_ == ours["mean_test_score"][search.best_index_]
    assert search.best_estimator_.get_params()["kernel"] == search.best_params_["kernel"]
    criteria_of = [step["criterion"] for step in search.history_]
    assert_close(criteria_of, losses(search))


def test_of_equal_candidates_the_most_regularised_is_taken():
    """Errors are counts: many candidates tie."""
    far = X + 20 * CODES[:, None]
    search = FoldlessSearchCV(LSSVC("linear"), {"alpha": [1e-3, 1.0, 1e-2, 1e-1]}, criterion="ber").fit(far, BINARY)
    assert np.unique(losses(search)).size == 1
    assert search.best_params_ == {"alpha": 1.0}


@pytest.mark.parametrize(
    ("estimator", "y", "names"),
    [
        (LSSVC(), LABELS, {"alpha", "gamma"}),
        (LSSVC("poly"), LABELS, {"alpha", "gamma"}),
        (LSSVC("laplacian", penalty="coef"), BINARY, {"alpha", "gamma"}),
        (LSSVC("linear"), LABELS, {"alpha"}),
        (LSSVC("cosine"), LABELS, {"alpha"}),
        (KFDA("boolean"), LABELS, {"alpha", "eta"}),
        (RidgeClassifier(), LABELS, {"alpha"}),
        (Ridge(), VALUES, {"alpha"}),
        (KernelRidge(kernel="rbf"), VALUES, {"alpha", "gamma"}),
    ],
    ids=lambda value: str(value) if hasattr(value, "fit") else "",
)
def test_without_a_grid_one_is_made_from_the_data(estimator, y, names):
    data = (X > 0).astype(float) if getattr(estimator, "kernel", None) == "boolean" else X
    search = FoldlessSearchCV(estimator).fit(data, y)
    assert set(search.best_params_) == names
    assert len(search.cv_results_["params"]) >= 15
    tried = np.unique([params["alpha"] for params in search.cv_results_["params"]])
    assert tried[-1] / tried[0] > 1e5
    assert search.best_score_ > -3.0 * (1 if is_classifier(estimator) else VALUES.var())
    # the size of the features is no news to gamma="scale" or to alpha
    if estimator.get_params().get("kernel", "linear") in ("linear", "rbf") and not isinstance(estimator, KernelRidge):
        again = FoldlessSearchCV(estimator).fit(1e3 * data, y)
        assert again.best_index_ == search.best_index_
        assert again.best_score_ == pytest.approx(search.best_score_, rel=1e-6)


# -- agreement with scikit-learn's own searches ------------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("wide", [False, True], ids=["tall", "wide"])
@weighted_or_not
def test_ridge_cv_chooses_the_same_alpha(fit_intercept, wide, weighted):
    """RidgeCV weighs its leave-one-out errors as it weighs its fits."""
    data = np.hstack([X, np.random.default_rng(1).normal(size=(N, 40))]) if wide else X
    w, alphas = WEIGHT if weighted else None, np.logspace(-3, 4, 29)
    for y in (VALUES, np.column_stack([VALUES, X[:, 2]])):
        theirs = RidgeCV(alphas, fit_intercept=fit_intercept).fit(data, y, sample_weight=w)
        ours = FoldlessSearchCV(
            Ridge(fit_intercept=fit_intercept), {"alpha": alphas}, criterion_weight="sample_weight"
        ).fit(data, y, sample_weight=w)
        assert ours.alpha_ == theirs.alpha_
        assert_close(ours.coef_, theirs.coef_)
        assert_close(ours.intercept_, theirs.intercept_)
        assert_close(ours.predict(data), theirs.predict(data))
        if not weighted:
            assert ours.best_score_ / np.size(y[0]) == pytest.approx(theirs.best_score_, rel=1e-6)


@pytest.mark.parametrize("y", [BINARY, LABELS], ids=["2 classes", "3 classes"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_ridge_classifier_cv_chooses_the_same_alpha(y, fit_intercept):
    alphas = np.logspace(-3, 4, 29)
    theirs = RidgeClassifierCV(alphas, fit_intercept=fit_intercept).fit(X, y)
    ours = FoldlessSearchCV(RidgeClassifier(fit_intercept=fit_intercept), {"alpha": alphas}).fit(X, y)
    assert ours.alpha_ == theirs.alpha_
    assert_close(ours.decision_function(X), theirs.decision_function(X))
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    columns = 1 if y is BINARY else 3
    assert ours.best_score_ / columns == pytest.approx(theirs.best_score_, rel=1e-6)


@pytest.mark.parametrize("y", [BINARY, LABELS], ids=["2 classes", "3 classes"])
def test_choice_by_accuracy_equals_an_explicit_loop(y):
    """Whatever scikit-learn's own searches score, a loop over refits is beyond doubt."""
    alphas = np.logspace(-1, 2, 4)
    criterion = "error" if y is BINARY else "multiclass_error"
    search = FoldlessSearchCV(RidgeClassifier(), {"alpha": alphas}, criterion=criterion).fit(X, y)
    accuracies = [
        skl.cross_val_score(RidgeClassifier(alpha=alpha), X, y, cv=skl.LeaveOneOut()).mean() for alpha in alphas
    ]
    assert_close(1 - losses(search), np.array(accuracies))
    ties = alphas[np.isclose(accuracies, max(accuracies))]
    assert search.alpha_ == ties.max()


@pytest.mark.parametrize(
    ("estimator", "y"),
    [
        (LSSVC(gamma=0.3), BINARY),
        (LSSVC(gamma=0.3), LABELS),
        (LSSVC(gamma=0.3, penalty="coef"), LABELS),
        (RidgeClassifier(), LABELS),
        (KFDA(gamma=0.3), LABELS),
        (KFDA(gamma=0.3, fit_intercept=False), LABELS),
        (KFDA(gamma=0.3, priors=[0.6, 0.2, 0.2]), LABELS),
        *[(KFDA(gamma=0.3, threshold=t), BINARY) for t in ("pm1", "fisher", "centroid")],
    ],
    ids=lambda value: f"{len(np.unique(value))} classes" if isinstance(value, np.ndarray) else str(value),
)
@pytest.mark.parametrize(("splitter", "weighted"), [("leave-one-out", True), ("KFold", False), ("KFold", True)])
def test_the_error_of_the_classifiers_own_decisions(estimator, y, splitter, weighted):
    w, cv = WEIGHT if weighted else None, SPLITTERS[splitter]
    options = {"cv": cv, "criterion": "multiclass_error"}
    search = FoldlessSearchCV(estimator, {"alpha": ALPHAS[:2]}, **options).fit(X, y, sample_weight=w)
    for alpha, found in zip(ALPHAS[:2], losses(search), strict=True):
        single = clone(estimator).set_params(alpha=alpha)
        params = {"sample_weight": w} if weighted else None
        expected = skl.cross_val_predict(single, X, y, cv=cv or skl.LeaveOneOut(), params=params)
        assert found == pytest.approx(np.mean(expected != y))
    if cv is None and hasattr(search.best_estimator_, "loo_score_"):
        assert search.best_score_ == pytest.approx(search.best_estimator_.loo_score_ - 1)


@pytest.mark.parametrize("weight", ["balanced", "sample_weight"])
@pytest.mark.parametrize("y", [BINARY, LABELS], ids=["2 classes", "3 classes"])
def test_the_error_of_decisions_with_weights_of_rows(weight, y):
    """Balanced: every class the same, as in balanced_accuracy_score."""
    options = {"criterion": "multiclass_error", "criterion_weight": weight}
    search = FoldlessSearchCV(LSSVC(gamma=0.3), {"alpha": ALPHAS}, **options).fit(X, y, sample_weight=WEIGHT)
    for alpha, found in zip(ALPHAS, losses(search), strict=True):
        decided = LSSVC(gamma=0.3, alpha=alpha).fit(X, y, sample_weight=WEIGHT).loo_predict()
        expected = {
            "balanced": 1 - metrics.balanced_accuracy_score(y, decided),
            "sample_weight": metrics.zero_one_loss(y, decided, sample_weight=WEIGHT),
        }[weight]
        assert found == pytest.approx(expected)


@pytest.mark.parametrize("given", ["estimator", "grid"])
def test_a_cut_by_leave_one_out_errors_is_refused_rather_than_half_known(given):
    grid = {"alpha": ALPHAS, **({"threshold": ["pm1", "loo"]} if given == "grid" else {})}
    estimator = KFDA(gamma=0.3, threshold="loo" if given == "estimator" else "pm1")
    with pytest.raises(ValueError, match=r"criterion='multiclass_error' .*cut.*threshold='loo'; use criterion='error'"):
        FoldlessSearchCV(estimator, grid, criterion="multiclass_error").fit(X, BINARY)


# -- continuous searches -----------------------------------------------------------------------------------------------

MORE = np.random.default_rng(3)
MOONS = MORE.normal(size=(60, 2))
RING = (np.abs(np.square(MOONS).sum(1) - 1.2) < 0.7).astype(int)
CURVE = MOONS[:, 0] ** 2 + MOONS[:, 1] + MORE.normal(size=60)
STARTS = {"alpha": [0.01, 1.0], "gamma": [0.1, 1.0]}


def recomputed(search, data, y, criterion="press", slope=10.0):
    """The criterion at ``best_params_`` from a plain loop, classes apart where they have parameters of their own."""
    splits = list(skl.LeaveOneOut().split(data))
    params, T = search.best_params_, targets(y)
    params = [params] * T.shape[1] if isinstance(params, dict) else params
    total = 0.0
    for k, each in enumerate(params):
        scaled, own = data, dict(each)
        if np.ndim(each.get("gamma")):
            scaled, own["gamma"] = data * np.sqrt(each["gamma"]), 1.0
        _, fits = refitted(search.estimator, own, y, splits, data=scaled)
        w = np.full((len(y), 1), 1 / len(y))
        total += CRITERIA[criterion].with_slope(slope)(fits[:, [k]], T[:, [k]], w)[0].item()
    return total


@pytest.mark.parametrize("criterion", [name for name, each in CRITERIA.items() if each.smooth])
def test_the_gradient_search_is_at_least_as_good_as_a_fine_grid(criterion):
    options = {"criterion": criterion, "slope": 3.0}
    fine = {"alpha": np.logspace(-4, 2, 25), "gamma": np.logspace(-2, 1.5, 25)}
    grid = FoldlessSearchCV(LSSVC(), fine, **options).fit(MOONS, RING)
    start = {name: [value] for name, value in grid.best_params_.items()}
    found = FoldlessSearchCV(
        LSSVC(), [STARTS, start], method="gradient", bounds={"alpha": (1e-4, 1e2), "gamma": (1e-2, 10**1.5)}, **options
    ).fit(MOONS, RING)
    assert found.best_score_ >= grid.best_score_
    assert -found.best_score_ == pytest.approx(recomputed(found, MOONS, RING, criterion, 3.0), rel=1e-6)


@pytest.mark.parametrize("criterion", ["press", "smooth_error", "hinge2"])
def test_gradient_and_simplex_meet(criterion):
    ends = [
        FoldlessSearchCV(LSSVC(alpha=0.3, gamma=0.5), method=method, criterion=criterion, slope=2.0, max_iter=200).fit(
            MOONS, RING
        )
        for method in ("gradient", "simplex")
    ]
    assert ends[0].best_score_ == pytest.approx(ends[1].best_score_, rel=1e-4)
    for name in ("alpha", "gamma"):
        one, two = (np.log(end.best_params_[name]) for end in ends)
        assert one == pytest.approx(two, abs=0.1), name


@pytest.mark.parametrize("method", ["gradient", "simplex"])
@pytest.mark.parametrize(
    ("estimator", "y", "names"),
    [
        (LSSVC(), RING, {"alpha", "gamma"}),
        (LSSVC("poly", degree=2), RING, {"alpha", "gamma", "coef0"}),
        (LSSVC("poly", degree=2, coef0=0.0), RING, {"alpha", "gamma"}),
        (LSSVC("laplacian", penalty="coef"), RING, {"alpha", "gamma"}),
        (LSSVC("linear"), RING, {"alpha"}),
        (KFDA(), np.arange(60) % 3, {"alpha", "gamma"}),
        (LSSVR(), CURVE, {"alpha", "gamma"}),
        (KernelRidge(kernel="rbf"), CURVE, {"alpha", "gamma"}),
        (KernelRidge(kernel="poly", degree=2), CURVE, {"alpha", "gamma", "coef0"}),
        (Ridge(), CURVE, {"alpha"}),
        (RidgeClassifier(), RING, {"alpha"}),
    ],
    ids=lambda value: str(value) if hasattr(value, "fit") else "",
)
def test_scores_are_those_of_the_parameters_found(method, estimator, y, names):
    search = FoldlessSearchCV(estimator, method=method, max_iter=15).fit(MOONS, y)
    assert set(search.best_params_) == names
    assert -search.best_score_ == pytest.approx(recomputed(search, MOONS, y), rel=1e-6)
    assert all(set(step) == names | {"start", "criterion", "objective"} for step in search.history_)
    visited = [step["criterion"] for step in search.history_]
    assert -search.best_score_ == min(visited)
    assert -search.best_score_ < visited[0]  # it started at the estimator's own parameters, and moved
    for name in names:
        assert search.best_estimator_.get_params()[name] == search.best_params_[name]


@pytest.mark.parametrize("method", ["gradient", "simplex"])
@pytest.mark.parametrize("weight", [None, "balanced", "sample_weight"])
@pytest.mark.parametrize("splitter", ["leave-one-out", "GroupKFold", "ShuffleSplit with a gap", "RepeatedKFold"])
def test_continuous_searches_judge_as_grids_do(method, weight, splitter):
    """The same splits and weights: the end of a search, put into a grid, has the same score."""
    options = {"cv": SPLITTERS[splitter], "criterion": "smooth_error", "criterion_weight": weight, "slope": 2.0}
    w, groups = WEIGHT * (np.arange(N) > 1), GROUPS if splitter == "GroupKFold" else None
    search = FoldlessSearchCV(KFDA(), method=method, max_iter=4, **options).fit(X, LABELS, w, groups)
    fixed = {name: [value] for name, value in search.best_params_.items()}
    alone = FoldlessSearchCV(KFDA(), fixed, **options).fit(X, LABELS, w, groups)
    assert alone.best_score_ == pytest.approx(search.best_score_, rel=1e-9)
    rows, fits = refitted(KFDA(), search.best_params_, LABELS, splits_of(splitter, groups), w)
    T = targets(LABELS)[rows]
    W = {
        None: np.ones_like(T),
        "balanced": np.where(T > 0, 1 / (T > 0).sum(0), 1 / (T < 0).sum(0)),
        "sample_weight": np.repeat(w[rows, None], 3, axis=1),
    }[weight]
    expected = CRITERIA["smooth_error"].with_slope(2.0)(fits, T, W / W.sum(0))[0].sum()
    assert -search.best_score_ == pytest.approx(expected, rel=1e-8)


def test_a_search_starts_at_the_parameters_it_is_given():
    estimator = LSSVC(alpha=0.123, gamma=0.456)
    for method in ("gradient", "simplex"):
        search = FoldlessSearchCV(estimator, method=method, max_iter=3).fit(MOONS, RING)
        first = search.history_[0]
        assert (first["alpha"], first["gamma"]) == pytest.approx((0.123, 0.456))
        listed = FoldlessSearchCV(estimator, {"alpha": [7.0, 0.1]}, method=method, max_iter=3).fit(MOONS, RING)
        starts = {step["start"]: step for step in reversed(listed.history_)}
        assert [starts[k]["alpha"] for k in (0, 1)] == pytest.approx([7.0, 0.1])
        assert [starts[k]["gamma"] for k in (0, 1)] == pytest.approx([0.456] * 2)


@pytest.mark.parametrize("method", ["gradient", "simplex"])
@pytest.mark.parametrize("scaling", [False, True])
def test_units_of_features_and_targets_do_not_matter(method, scaling):
    options = {"method": method, "feature_scaling": scaling, "max_iter": 10}
    one = FoldlessSearchCV(LSSVR(), **options).fit(MOONS, CURVE)
    two = FoldlessSearchCV(LSSVR(), **options).fit(1e3 * MOONS, 1e-4 * CURVE)
    assert len(one.history_) == len(two.history_)
    assert two.alpha_ == pytest.approx(one.alpha_, rel=1e-5)
    assert_close(1e6 * np.asarray(two.best_params_["gamma"]), np.asarray(one.best_params_["gamma"]), rtol=1e-5)
    assert two.best_score_ == pytest.approx(1e-8 * one.best_score_, rel=1e-6)


@pytest.mark.parametrize("scaling", [False, True])
def test_the_best_estimator_is_a_warm_start(scaling):
    options = {"method": "gradient", "feature_scaling": scaling, "max_iter": 200}
    first = FoldlessSearchCV(LSSVC(), **options).fit(MOONS, RING)
    again = FoldlessSearchCV(first.best_estimator_, **options).fit(MOONS, RING)
    assert again.history_[0]["criterion"] == pytest.approx(-first.best_score_, rel=1e-9)
    assert again.best_score_ >= first.best_score_
    assert again.best_score_ == pytest.approx(first.best_score_, rel=1e-4)
    assert len(again.history_) <= len(first.history_)
    for name in ("alpha", "gamma"):
        moved = np.log(again.best_params_[name]) - np.log(first.best_params_[name])
        assert np.abs(moved).max() < 0.2, name


@pytest.mark.parametrize("method", ["gradient", "simplex"])
def test_bounds_are_kept(method):
    bounds = {"alpha": (0.5, 0.6), "gamma": (0.02, 0.025)}
    search = FoldlessSearchCV(LSSVC(), method=method, bounds=bounds, n_starts=3, random_state=0).fit(MOONS, RING)
    free = FoldlessSearchCV(LSSVC(), method=method).fit(MOONS, RING)
    for name, (low, high) in bounds.items():
        assert not low <= free.best_params_[name] <= high
        for step in search.history_:
            assert low * (1 - 1e-12) <= step[name] <= high * (1 + 1e-12)
    scaled = FoldlessSearchCV(
        LSSVC(), method=method, bounds={"gamma": (0.02, 0.025)}, feature_scaling=True, max_iter=5
    ).fit(MOONS, RING)
    assert scaled.feature_scales_.min() >= 0.02 * (1 - 1e-12)
    assert scaled.feature_scales_.max() <= 0.025 * (1 + 1e-12)


def test_further_starts_are_drawn_from_the_random_state():
    options = {"method": "gradient", "n_starts": 3, "max_iter": 3}
    one, two, other = (FoldlessSearchCV(LSSVC(), random_state=seed, **options).fit(MOONS, RING) for seed in (0, 0, 1))
    assert len(one.cv_results_["params"]) == 3
    np.testing.assert_array_equal(losses(one), losses(two))
    assert one.best_params_ == two.best_params_
    starts = [{step["start"]: step["alpha"] for step in reversed(search.history_)} for search in (one, other)]
    assert starts[0][0] == starts[1][0] == pytest.approx(1.0)  # the first is the estimator's own
    assert starts[0][1] != starts[1][1]
    alone = FoldlessSearchCV(LSSVC(), **{**options, "n_starts": 1}).fit(MOONS, RING)
    assert losses(one)[0] == losses(alone)[0]
    assert one.best_score_ == -losses(one).min()
    listed = FoldlessSearchCV(LSSVC(), {"alpha": [0.1, 1.0]}, **options).fit(MOONS, RING)
    assert len(listed.cv_results_["params"]) == 6


@pytest.mark.parametrize("method", ["grid", "gradient"])
@pytest.mark.parametrize("share", ["all", "none"])
def test_threads_find_the_same(method, share):
    grid = RBF_GRID if method == "grid" else {"alpha": [0.1, 1.0]}
    options = {"method": method, "n_starts": 2, "random_state": 0, "max_iter": 5, "share": share}
    one, two = (FoldlessSearchCV(LSSVC(), grid, n_jobs=jobs, **options).fit(X, LABELS) for jobs in (None, 2))
    assert_close(losses(one), losses(two), rtol=1e-12)
    assert one.best_index_ == two.best_index_


def test_more_iterations_do_no_harm_and_are_counted():
    few, many = (FoldlessSearchCV(LSSVC(), method="gradient", max_iter=k).fit(MOONS, RING) for k in (1, 50))
    assert len(few.history_) < len(many.history_)
    assert few.best_score_ < many.best_score_


def test_of_several_slopes_the_one_with_the_least_error_is_kept():
    slopes = [0.3, 3.0, 30.0]
    for smooth, hard in (("smooth_error", "error"), ("smooth_ber", "ber"), ("smooth_auc", "auc")):
        search = FoldlessSearchCV(LSSVC(), method="gradient", criterion=smooth, slope=slopes, max_iter=10).fit(
            MOONS, RING
        )
        assert len(search.cv_results_["params"]) == 3
        fixed = [{name: [value] for name, value in each.items()} for each in search.cv_results_["params"]]
        errors = losses(FoldlessSearchCV(LSSVC(), fixed, criterion=hard).fit(MOONS, RING))
        assert errors[search.best_index_] == errors.min()
        own = slopes[search.best_index_]
        assert -search.best_score_ == pytest.approx(recomputed(search, MOONS, RING, smooth, own), rel=1e-6)
        for slope, params in zip(slopes, search.cv_results_["params"], strict=True):
            alone = FoldlessSearchCV(LSSVC(), method="gradient", criterion=smooth, slope=slope, max_iter=10).fit(
                MOONS, RING
            )
            assert alone.best_params_ == pytest.approx(params)


# -- one scale for each feature ----------------------------------------------------------------------------------------


def xor(n=90, noise=4, seed=0):
    """Two features that matter together, and others that do not."""
    rng = np.random.default_rng(seed)
    data = rng.normal(size=(n, 2 + noise))
    return data, (data[:, 0] * data[:, 1] > 0).astype(int)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_feature_scales_find_the_features_that_matter(kernel):
    data, y = xor()
    search = FoldlessSearchCV(LSSVC(kernel), method="gradient", feature_scaling=True).fit(data, y)
    scales = search.feature_scales_
    assert scales.shape == (6,)
    assert scales[:2].min() > 10 * scales[2:].max()
    np.testing.assert_array_equal(search.best_params_["gamma"], scales)
    one = FoldlessSearchCV(LSSVC(kernel), method="gradient").fit(data, y)
    new, truth = xor(400, seed=1)
    assert search.score(new, truth) > one.score(new, truth) + 0.03
    assert any(step["criterion"] == -search.best_score_ for step in search.history_)


@pytest.mark.parametrize("groups", [[0, 0, 1, 1], ["b", "a", "a", "b"], np.array([7, 3, 7, 3])], ids=str)
def test_features_of_one_group_share_a_scale(groups):
    search = FoldlessSearchCV(LSSVC(), method="gradient", feature_groups=groups, max_iter=8).fit(X, LABELS)
    scales = search.feature_scales_
    for group in np.unique(groups):
        assert np.unique(scales[np.asarray(groups) == group]).size == 1
    assert np.unique(scales).size == 2
    tied = np.unique(groups, return_inverse=True)[1]
    assert -search.best_score_ == pytest.approx(recomputed(search, X, LABELS), rel=1e-6)
    free = FoldlessSearchCV(LSSVC(), method="gradient", feature_scaling=True, max_iter=8).fit(X, LABELS)
    assert np.unique(free.feature_scales_).size == 4
    assert len(tied) == 4


def test_one_group_for_all_is_one_gamma():
    one = FoldlessSearchCV(LSSVC(), method="gradient").fit(X, LABELS)
    two = FoldlessSearchCV(LSSVC(), method="gradient", feature_groups=[5] * D).fit(X, LABELS)
    assert two.best_score_ == pytest.approx(one.best_score_, rel=1e-8)
    assert_close(two.feature_scales_, np.full(D, one.best_params_["gamma"]), rtol=1e-4)


@pytest.mark.parametrize("method", ["gradient", "simplex"])
@pytest.mark.parametrize("scaling", [False, True])
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_targets_without_variance_leave_nothing_to_search(method, scaling, value):
    search = FoldlessSearchCV(LSSVR(), method=method, feature_scaling=scaling, max_iter=3).fit(X, np.full(N, value))
    assert search.best_score_ == pytest.approx(0.0, abs=1e-20)
    assert_close(search.predict(X), np.full(N, value), scale=1.0)
    assert np.isfinite(np.hstack(list(search.best_params_.values()))).all()


@pytest.mark.parametrize("method", ["gradient", "simplex"])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear"])
def test_features_without_variance_leave_nothing_to_search(method, kernel):
    data = np.full((N, 2), 3.0)
    search = FoldlessSearchCV(LSSVC(kernel), method=method, feature_scaling=kernel != "linear", max_iter=3)
    scores = {search.fit(data, BINARY).best_score_, FoldlessSearchCV(LSSVC(kernel)).fit(data, BINARY).best_score_}
    assert np.ptp(list(scores)) < 1e-6


def test_scales_of_a_single_feature_are_still_a_vector():
    search = FoldlessSearchCV(LSSVC(), method="gradient", feature_scaling=True, max_iter=3).fit(X[:, :1], BINARY)
    assert search.feature_scales_.shape == (1,)
    assert search.predict(X[:, :1]).shape == (N,)


@pytest.mark.parametrize("method", ["gradient", "simplex"])
@pytest.mark.parametrize("estimator", [LSSVR("poly", degree=2), LSSVR("laplacian"), KFDA()], ids=str)
def test_scores_with_feature_scaling_are_those_of_the_scales(estimator, method):
    y = LABELS if is_classifier(estimator) else VALUES
    search = FoldlessSearchCV(estimator, method=method, feature_scaling=True, prior=None, max_iter=5).fit(X, y)
    alone = FoldlessSearchCV(estimator, {k: [v] for k, v in search.best_params_.items()}).fit(X, y)
    assert alone.best_score_ == pytest.approx(search.best_score_, rel=1e-8)
    assert search.best_score_ > FoldlessSearchCV(estimator, {"alpha": [1.0]}).fit(X, y).best_score_


# -- classes with parameters of their own ------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["grid", "gradient", "simplex"])
@pytest.mark.parametrize("estimator", [LSSVC(), KFDA(), LSSVC(penalty="coef"), RidgeClassifier()], ids=str)
def test_nothing_shared_equals_separate_binary_searches(method, estimator):
    grid = {"alpha": ALPHAS} if isinstance(estimator, RidgeClassifier) else RBF_GRID
    options = {"method": method, "max_iter": 6, "param_grid": grid if method == "grid" else None}
    options["criterion_weight"] = "balanced"  # other weights in every column
    search = FoldlessSearchCV(estimator, share="none", **options).fit(X, LABELS, sample_weight=WEIGHT)
    alone = [
        FoldlessSearchCV(estimator, **options).fit(X, label == LABELS, sample_weight=WEIGHT)
        for label in np.unique(LABELS)
    ]
    assert search.best_params_ == [pytest.approx(each.best_params_, rel=1e-6) for each in alone]
    assert search.best_score_ == pytest.approx(sum(each.best_score_ for each in alone), rel=1e-9)
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
        for params, value in zip(alone.cv_results_["params"], losses(alone), strict=True):
            tables.setdefault(params["gamma"], np.empty((3, 3)))[ALPHAS.index(params["alpha"]), k] = value
    gamma = min(tables, key=lambda gamma: tables[gamma].min(0).sum())
    assert search.best_params_ == [{"gamma": gamma, "alpha": ALPHAS[k]} for k in tables[gamma].argmin(0)]
    assert -search.best_score_ == pytest.approx(tables[gamma].min(0).sum())
    shared, none = (FoldlessSearchCV(LSSVC(), RBF_GRID, share=share).fit(X, LABELS) for share in ("all", "none"))
    assert shared.best_score_ <= search.best_score_ <= none.best_score_


@pytest.mark.parametrize("method", ["gradient", "simplex"])
@pytest.mark.parametrize("scaling", [False, True])
def test_a_shared_kernel_with_an_alpha_for_each_class(method, scaling):
    options = {"method": method, "feature_scaling": scaling, "prior": None, "max_iter": 15}
    search = FoldlessSearchCV(LSSVC(), share="kernel", **options).fit(X, LABELS)
    gammas = [each["gamma"] for each in search.best_params_]
    assert len(gammas) == 3
    assert all(np.array_equal(gamma, gammas[0]) for gamma in gammas)
    assert len({each["alpha"] for each in search.best_params_}) == 3
    assert -search.best_score_ == pytest.approx(recomputed(search, X, LABELS), rel=1e-6)
    assert search.best_score_ > FoldlessSearchCV(LSSVC(), {"alpha": [1.0]}).fit(X, LABELS).best_score_
    assert all(len(step["alpha"]) == 3 for step in search.history_)
    if scaling:
        assert search.feature_scales_.shape in ((D,), (3, D))


def test_an_alpha_for_each_class_given_one_kernel_is_that_of_binary_searches():
    """With nothing to tune in the kernel, sharing it changes nothing."""
    shared, none = (
        FoldlessSearchCV(LSSVC("linear"), method="gradient", share=share, max_iter=200).fit(X, LABELS)
        for share in ("kernel", "none")
    )
    assert shared.best_score_ == pytest.approx(none.best_score_, rel=1e-6)
    assert_close(np.log(shared.alpha_), np.log(none.alpha_), scale=1.0, rtol=0.05)


@pytest.mark.parametrize("share", ["kernel", "none"])
@pytest.mark.parametrize("method", ["grid", "gradient"])
def test_two_classes_have_nothing_to_share(share, method):
    options = {"method": method, "max_iter": 5}
    one, two = (FoldlessSearchCV(LSSVC(), share=each, **options).fit(X, BINARY) for each in ("all", share))
    assert one.best_params_ == two.best_params_
    assert one.best_score_ == two.best_score_
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
    held_out = [skl.cross_val_predict(each, X, t, **options) for each, t in zip(single, targets(LABELS).T, strict=True)]
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


# -- objectives, spaces and the prior ----------------------------------------------------------------------------------


def task_of(estimator, y=LABELS, w=None, data=X):
    return TASKS[type(estimator)](estimator, data, y, w)[0]


def objective_of(estimator, groups=None, n_alphas=1, prior=None, criterion="press", splits=None, y=LABELS, w=None):
    task = task_of(estimator, y, w)
    kernel = task.problem.kernel
    if groups is not None:
        groups = np.asarray(groups)
        kernel = replace(kernel, gamma=np.broadcast_to(kernel.gamma, D).copy())
    space = Space(kernel, n_alphas, groups)
    selection = Selection.of(task, CRITERIA[criterion], splits=splits)
    return Objective(task.problem, selection, space, prior), space.pack(task.problem.alpha, kernel)


every_prior = pytest.mark.parametrize("prior", PRIORS)
OBJECTIVES = {
    "rbf": {"estimator": LSSVC()},
    "rbf, scales": {"estimator": LSSVC(), "groups": [0, 1, 2, 3]},
    "rbf, groups": {"estimator": LSSVC(), "groups": [0, 1, 1, 0]},
    "rbf, alphas": {"estimator": LSSVC(), "n_alphas": 3},
    "rbf, alphas and groups": {"estimator": LSSVC(), "n_alphas": 3, "groups": [0, 1, 1, 0]},
    "poly, scales": {"estimator": LSSVC("poly", degree=2), "groups": [0, 1, 2, 3]},
    "poly without constant": {"estimator": LSSVC("poly", degree=2, coef0=0.0), "groups": [0, 1, 2, 2]},
    "laplacian, coef": {"estimator": LSSVC("laplacian", penalty="coef"), "groups": [0, 1, 2, 3]},
    "regression": {"estimator": LSSVR(), "groups": [0, 1, 2, 3], "y": VALUES},
    "weighted": {"estimator": LSSVC(), "groups": [0, 0, 1, 1], "w": WEIGHT * (np.arange(N) > 1)},
    "folds": {"estimator": LSSVC(), "groups": [0, 1, 2, 3], "splits": splits_of("ShuffleSplit with a gap")},
    "smooth error": {"estimator": LSSVC(), "groups": [0, 1, 2, 3], "criterion": "smooth_error"},
    **{
        f"{prior}, {name}": {"estimator": LSSVC(), "prior": prior, **options}
        for name, options in {
            "scales": {"groups": [0, 1, 2, 3]},
            "groups": {"groups": [0, 1, 1, 0]},
            "alphas": {"groups": [0, 1, 1, 0], "n_alphas": 3},
            "two classes": {"groups": [0, 1, 2, 3], "y": BINARY},
            "folds": {"groups": [0, 1, 2, 3], "splits": splits_of("ShuffleSplit with a gap")},
            "coef0": {"estimator": LSSVC("poly", degree=2), "groups": [0, 1, 2, 3]},
        }.items()
        for prior in PRIORS
    },
}


@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_gradient_of_an_objective_equals_central_differences(name):
    objective, start = objective_of(**OBJECTIVES[name])
    x = start + np.random.default_rng(0).normal(0, 0.3, len(start))
    value, gradient = objective(x)
    assert value == pytest.approx(objective(x, False), rel=1e-10)
    h = 1e-5
    expected = [(objective(x + h * e, False) - objective(x - h * e, False)) / (2 * h) for e in np.eye(len(x))]
    assert_close(gradient, np.array(expected), rtol=1e-6)


@every_prior
def test_an_objective_with_a_prior_is_the_likelihood_of_the_residuals_and_the_prior(prior):
    """N/2 log Q minus the logarithm of the prior; the residuals of three classes have two free columns."""
    outputs = np.column_stack([VALUES, X[:, 2], -VALUES])
    for y, columns in ((BINARY, 1), (LABELS, 2), (VALUES, 1), (outputs[:, :2], 2), (outputs, 3)):
        estimator = LSSVR() if y.dtype.kind == "f" else LSSVC()
        options = {"estimator": estimator, "groups": np.arange(D), "y": y}
        objective, start = objective_of(**options, prior=prior)
        plain, _ = objective_of(**options)
        points = [start, start + np.linspace(-1, 1, len(start)), start + np.linspace(0.5, -1.5, len(start))]
        values = np.array([objective(x, False) for x in points])
        criteria = np.array([plain(x, False) for x in points])
        penalties = np.array([PRIORS[prior](x[1:])[0] for x in points])
        expected = N * columns / 2 * np.log(criteria) + penalties
        # up to a constant and a unit
        assert np.ptp(values) > 0
        assert_close((values - values[0]) / np.ptp(values), (expected - expected[0]) / np.ptp(expected))


@every_prior
def test_slopes_of_a_prior_equal_central_differences(prior):
    logs, h = np.random.default_rng(0).normal(size=7), 1e-5
    value, slopes = PRIORS[prior](logs.copy())
    assert np.isfinite(value)
    expected = [(PRIORS[prior](logs + h * e)[0] - PRIORS[prior](logs - h * e)[0]) / (2 * h) for e in np.eye(7)]
    assert_close(slopes, np.array(expected), rtol=1e-7)


@every_prior
def test_a_search_with_a_prior_reports_the_criterion_and_follows_the_objective(prior):
    data, y = xor(60, noise=6)
    search = FoldlessSearchCV(LSSVC(), method="gradient", feature_scaling=True, prior=prior, max_iter=30).fit(data, y)
    assert -search.best_score_ == pytest.approx(recomputed(search, data, y), rel=1e-6)
    best = [step for step in search.history_ if np.array_equal(step["gamma"], search.feature_scales_)][-1]
    assert best["criterion"] == -search.best_score_
    assert best["objective"] < search.history_[0]["objective"]
    assert best["objective"] != best["criterion"]


def test_equal_alphas_for_all_classes_are_one_alpha():
    (one, _), (three, _) = (objective_of(LSSVC(), n_alphas=count) for count in (1, 3))
    for alpha in (1.0, 0.1):
        x = np.log([alpha, 0.2])
        (value, gradient), (same, gradients) = one(x), three(np.r_[[x[0]] * 3, x[1]])
        assert same == pytest.approx(value)
        assert gradients[:3].sum() == pytest.approx(gradient[0])
        assert_close(gradients[3:], gradient[1:])


@pytest.mark.parametrize("name", OBJECTIVES)
def test_spaces_pack_what_they_unpack(name):
    objective, start = objective_of(**OBJECTIVES[name])
    space = objective.space
    x = start + np.random.default_rng(1).normal(0, 0.5, len(start))
    alphas, kernel = space.unpack(x)
    assert len(alphas) == space.n_alphas
    assert_close(space.pack(alphas, kernel), x)
    assert sum(space.sizes()) == len(x)
    if space.groups is not None:
        assert_close(np.exp(x[space.scales])[space.groups], kernel.gamma)
    limits = {"alpha": (1.0, 2.0), "gamma": (3.0, 4.0), "coef0": (5.0, 6.0)}
    bounds = np.exp(space.bounds(limits))
    assert bounds.shape == (len(x), 2)
    assert_close(bounds[: len(alphas)], np.tile([1.0, 2.0], (len(alphas), 1)))
    if "gamma" in space.names:
        assert_close(bounds[space.scales], np.tile([3.0, 4.0], (space.n_scales, 1)))
    assert ("coef0" in space.names) == (isinstance(kernel, kernels.Poly) and kernel.coef0 > 0)


# -- scikit-learn ------------------------------------------------------------------------------------------------------

WEIGHT_CHECKS = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")


def expected_failures(search):
    """A weight is no repetition once rows are left out one by one, and probabilities are no part of RidgeClassifier."""
    kind, reasons = type(search.estimator), {}
    if kind in (KFDA, RidgeClassifier):
        reasons = dict.fromkeys(WEIGHT_CHECKS, "a repeated row stays in training when its twin is left out")
    if kind is RidgeClassifier:
        reason = "predict is RidgeClassifier's; the calibrated probability of one half need not lie at decision 0"
        reasons["check_classifiers_train"] = reason
    return reasons


@parametrize_with_checks(
    [
        FoldlessSearchCV(LSSVC()),
        FoldlessSearchCV(LSSVR()),
        FoldlessSearchCV(RidgeClassifier()),
        FoldlessSearchCV(KFDA(), method="gradient"),
    ],
    expected_failed_checks=expected_failures,
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_checks(estimator, check):
    check(estimator)


SEARCHES = {
    "grid": (FoldlessSearchCV(LSSVC(), RBF_GRID), LABELS),
    "gradient": (FoldlessSearchCV(KFDA(), method="gradient", feature_scaling=True, max_iter=5), LABELS),
    "classes apart": (FoldlessSearchCV(LSSVC(calibration="sigmoid"), {"alpha": ALPHAS}, share="none"), LABELS),
    "ridge": (FoldlessSearchCV(RidgeClassifier(), {"alpha": ALPHAS}, cv=skl.KFold(5)), BINARY),
    "regression": (FoldlessSearchCV(LSSVR(), RBF_GRID), VALUES),
}
every_search = pytest.mark.parametrize(("search", "y"), SEARCHES.values(), ids=SEARCHES)


def outputs(model, X):
    names = ("predict", "decision_function", "predict_proba", "transform")
    return {name: getattr(model, name)(X) for name in names if hasattr(model, name)}


@every_search
def test_clones_are_unfitted_and_fit_to_the_same(search, y):
    fitted = clone(search).fit(X, y)
    again = clone(fitted)
    assert not hasattr(again, "best_params_")
    assert repr(again) == repr(search)
    with pytest.raises(NotFittedError):
        again.predict(X)
    np.testing.assert_array_equal(losses(again.fit(X, y)), losses(fitted))


@every_search
def test_pickles_predict_the_same(search, y):
    fitted = clone(search).fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    one, two = outputs(fitted, X), outputs(again, X)
    assert one.keys() == two.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], two[name])
    np.testing.assert_array_equal(losses(again), losses(fitted))
    assert again.best_score_ == fitted.best_score_


@every_search
def test_the_best_setting_is_fitted_on_all_rows(search, y):
    fitted = clone(search).fit(X, y, sample_weight=WEIGHT)
    if isinstance(fitted.best_params_, list):
        parts = [clone(search.estimator).set_params(**each) for each in fitted.best_params_]
        by_itself = OneAgainstAllClassifier(list(zip(np.unique(y).tolist(), parts, strict=True)))
    else:
        by_itself = clone(search.estimator).set_params(**fitted.best_params_)
    by_itself.fit(X, y, sample_weight=WEIGHT)
    for name, values in outputs(by_itself, X).items():
        np.testing.assert_array_equal(getattr(fitted, name)(X), values)
    assert fitted.score(X, y) == by_itself.score(X, y)
    assert fitted.score(X, y, sample_weight=WEIGHT) == by_itself.score(X, y, sample_weight=WEIGHT)
    assert fitted.n_features_in_ == D
    if is_classifier(search):
        np.testing.assert_array_equal(fitted.classes_, np.unique(y))
    else:
        assert not hasattr(fitted, "classes_")


@every_search
def test_a_search_inside_cross_validation_is_done_anew_on_each_training_part(search, y):
    cv = skl.KFold(3, shuffle=True, random_state=1)
    scores = skl.cross_val_score(search, X, y, cv=cv)
    expected = [clone(search).fit(X[train], y[train]).score(X[test], y[test]) for train, test in cv.split(X)]
    assert_close(scores, np.array(expected), scale=1.0)


@every_search
def test_behind_a_scaler_the_search_sees_scaled_rows(search, y):
    data = X * [1.0, 10.0, 100.0, 1.0]
    pipeline = make_pipeline(StandardScaler(), clone(search)).fit(data, y)
    alone = clone(search).fit(StandardScaler().fit_transform(data), y)
    assert pipeline[-1].best_score_ == pytest.approx(alone.best_score_, rel=1e-9)
    np.testing.assert_array_equal(np.shape(pipeline.predict(data)), np.shape(y))
    assert pipeline.score(data, y) == pytest.approx(alone.score(StandardScaler().fit_transform(data), y))


def test_discriminant_axes_in_the_middle_of_a_pipeline():
    search = FoldlessSearchCV(KFDA(), RBF_GRID).fit(X, LABELS)
    assert search.transform(X).shape == (N, 2)
    assert not hasattr(FoldlessSearchCV(LSSVC()), "transform")
    pipeline = make_pipeline(FoldlessSearchCV(KFDA(), RBF_GRID), LSSVC()).fit(X, LABELS)
    np.testing.assert_array_equal(
        pipeline.predict(X), LSSVC().fit(search.transform(X), LABELS).predict(search.transform(X))
    )
    framed = FoldlessSearchCV(KFDA().set_output(transform="pandas"), RBF_GRID).fit(X, LABELS)
    assert list(framed.transform(X).columns) == ["kernelfisherdiscriminant0", "kernelfisherdiscriminant1"]
    assert_close(framed.transform(X).to_numpy(), search.transform(X))


def test_methods_are_those_of_the_estimator():
    before = {
        "decision_function": {LSSVC: True, LSSVR: False, RidgeClassifier: True, KFDA: True, Ridge: False},
        "predict_proba": {LSSVC: False, LSSVR: False, RidgeClassifier: True, KFDA: False, Ridge: False},
        "transform": {LSSVC: False, LSSVR: False, RidgeClassifier: False, KFDA: True, Ridge: False},
    }
    for method, kinds in before.items():
        for kind, expected in kinds.items():
            search = FoldlessSearchCV(kind(), {"alpha": [1.0]})
            assert hasattr(search, method) == expected, (method, kind)
            y = LABELS if is_classifier(kind()) else VALUES
            assert hasattr(search.fit(X, y), method) == expected, (method, kind)
    assert hasattr(FoldlessSearchCV(LSSVC(calibration="sigmoid")), "predict_proba")
    for kind in (LSSVC, LSSVR, RidgeClassifier, KFDA, Ridge):
        assert is_classifier(FoldlessSearchCV(kind())) == is_classifier(kind())
        assert sklearn.base.is_regressor(FoldlessSearchCV(kind())) == sklearn.base.is_regressor(kind())


@pytest.mark.parametrize("y", [BINARY, LABELS], ids=["2 classes", "3 classes"])
@pytest.mark.parametrize("splitter", ["leave-one-out", "KFold"])
@pytest.mark.parametrize(("criterion", "weighted"), [("press", True), ("error", False), ("multiclass_error", True)])
def test_probabilities_of_ridge_classifiers_are_a_sigmoid_of_held_out_decisions(y, splitter, criterion, weighted):
    w, cv, grid = WEIGHT if weighted else None, SPLITTERS[splitter], {"alpha": ALPHAS, "fit_intercept": [True, False]}
    search = FoldlessSearchCV(RidgeClassifier(), grid, cv=cv, criterion=criterion).fit(X, y, sample_weight=w)
    single = RidgeClassifier(**search.best_params_)
    params = {"sample_weight": w} if weighted else None
    scores = skl.cross_val_predict(single, X, y, cv=cv or skl.LeaveOneOut(), method="decision_function", params=params)
    classes, codes = np.unique(y, return_inverse=True)
    calibrator = fit_calibration("sigmoid", scores, codes, len(classes), np.ones(N) if w is None else w)
    expected = calibrator.proba(single.fit(X, y, sample_weight=w).decision_function(X))
    assert_close(search.predict_proba(X), expected, rtol=1e-6)
    assert_close(search.predict_proba(X).sum(1), np.ones(N))
    assert_close(search.predict_log_proba(X), np.log(expected), rtol=1e-5)


def test_a_class_of_one_row_is_searched_and_only_its_probabilities_are_refused():
    y = np.array(["one"] + ["many"] * (N - 1))
    search = FoldlessSearchCV(RidgeClassifier(), {"alpha": ALPHAS}).fit(X, y)
    assert set(search.predict(X)) <= {"one", "many"}
    with pytest.raises(ValueError, match="two classes with at least two rows"):
        search.predict_proba(X)


def test_without_a_refit_there_are_results_and_no_predictions():
    search = FoldlessSearchCV(LSSVC(), RBF_GRID, refit=False).fit(X, LABELS)
    same = FoldlessSearchCV(LSSVC(), RBF_GRID).fit(X, LABELS)
    assert search.best_params_ == same.best_params_
    np.testing.assert_array_equal(losses(search), losses(same))
    assert not hasattr(search, "best_estimator_")
    for method in ("predict", "decision_function"):
        with pytest.raises(AttributeError, match="refit=False"):
            getattr(search, method)(X)


def test_a_second_fit_leaves_nothing_of_the_first():
    search = FoldlessSearchCV(LSSVC(), method="gradient", feature_scaling=True, max_iter=3).fit(X, LABELS)
    assert hasattr(search, "feature_scales_")
    search.set_params(method="grid", feature_scaling=False, param_grid=RBF_GRID, refit=False).fit(X, BINARY)
    assert not hasattr(search, "feature_scales_")
    assert not hasattr(search, "best_estimator_")
    assert list(search.classes_) == ["no", "yes"]
    search.set_params(estimator=Ridge(), param_grid=None, refit=True).fit(pd.DataFrame(X, columns=list("abcd")), VALUES)
    assert not hasattr(search, "classes_")
    search.fit(X, VALUES)
    assert not hasattr(search, "feature_names_in_")


def test_coefficients_and_alpha_have_the_names_of_ridge_cv():
    search = FoldlessSearchCV(LSSVC("linear"), {"alpha": ALPHAS}).fit(X, LABELS)
    assert_close(search.coef_, search.best_estimator_.coef_)
    assert_close(search.intercept_, search.best_estimator_.intercept_)
    assert search.alpha_ == search.best_params_["alpha"]
    assert FoldlessSearchCV(LSSVC(alpha=0.7), {"gamma": [0.1]}).fit(X, LABELS).alpha_ == 0.7
    assert not hasattr(FoldlessSearchCV(LSSVC(), RBF_GRID).fit(X, LABELS), "coef_")


def test_parameters_of_the_estimator_are_within_reach():
    search = FoldlessSearchCV(LSSVC())
    search.set_params(estimator__alpha=3.0, cv=4)
    assert search.estimator.alpha == 3.0
    assert search.get_params()["estimator__alpha"] == 3.0


def test_the_estimator_given_is_never_fitted():
    estimator = LSSVC()
    FoldlessSearchCV(estimator, RBF_GRID).fit(X, LABELS)
    assert vars(estimator) == vars(LSSVC())


@pytest.mark.parametrize("method", ["grid", "gradient"])
def test_progress_goes_to_standard_error_where_it_is_asked_for(method, capsys):
    for verbose in (0, 1):
        FoldlessSearchCV(LSSVC(), {"alpha": [1.0]}, method=method, max_iter=2, verbose=verbose).fit(X, LABELS)
        out, err = capsys.readouterr()
        assert not out
        assert bool(err) == bool(verbose)


def test_float32_is_searched_in_single_precision():
    search = FoldlessSearchCV(LSSVC(), method="gradient", max_iter=10).fit(X.astype(np.float32), LABELS)
    double = FoldlessSearchCV(LSSVC(), method="gradient", max_iter=10).fit(X, LABELS)
    assert search.decision_function(X.astype(np.float32)).dtype == np.float32
    assert search.best_score_ == pytest.approx(double.best_score_, rel=1e-2)


# -- errors ------------------------------------------------------------------------------------------------------------


def no_slope(f, t, w):
    return w @ np.abs(t - f)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"criterion": "accuracy"}, r"criterion='accuracy' is unknown; use one of .*'press'.* or a callable"),
        ({"criterion": None}, "criterion=None is unknown"),
        ({"method": "bayes"}, r"method='bayes' is unknown; use one of 'grid', 'simplex', 'gradient'"),
        ({"share": "some"}, r"share='some' is unknown; use one of 'all', 'kernel', 'none'"),
        ({"prior": "flat"}, r"prior='flat' is unknown; use one of .*None, 'bayes'"),
        ({"criterion_weight": "equal"}, r"criterion_weight='equal' is unknown; use one of None, 'balanced', 'sample_w"),
        ({"method": "gradient", "criterion": "error"}, r"criterion='error' has no derivative.*'smooth_error'.*simplex"),
        ({"method": "gradient", "criterion": "auc"}, r"criterion='auc' has no derivative"),
        ({"method": "gradient", "criterion": "multiclass_error"}, r"criterion='multiclass_error' has no derivative"),
        ({"method": "gradient", "criterion": no_slope}, r"criterion.*no derivative.*return \(loss.*method='simplex'"),
        ({"share": "none", "criterion": "multiclass_error"}, r"criterion='multiclass_error' .*share='all'"),
        ({"feature_scaling": True}, r"feature_scaling needs method='gradient'"),
        ({"feature_groups": [0, 0, 1, 1]}, r"feature_scaling needs method='gradient'"),
        ({"prior": "bayes", "criterion": "hinge"}, r"prior='bayes' .*criterion='hinge'"),
        ({"n_starts": 0}, r"n_starts=0 must be an integer >= 1"),
        ({"n_starts": 1.5}, r"n_starts=1.5 must be an integer >= 1"),
        ({"max_iter": 0}, r"max_iter=0 must be an integer >= 1"),
        ({"slope": -1}, r"slope=-1 must be a finite number > 0"),
        ({"slope": [1.0, 0.0]}, r"slope=\[1.0, 0.0\] must be a finite number > 0, or several"),
        ({"slope": np.nan}, r"slope=nan must be a finite number > 0"),
        ({"slope": []}, r"slope=\[\] must be a finite number > 0"),
        ({"slope": None}, r"slope=None must be a finite number > 0"),
        ({"slope": "steep"}, r"slope='steep' must be a finite number > 0"),
        ({"param_grid": {"alpha": [1.0, -1.0]}}, r"alpha=-1.0 must be a finite number > 0"),
        ({"param_grid": {"alpha": [np.nan]}}, r"alpha=nan must be a finite number > 0"),
        ({"param_grid": {"alpha": ["1"]}}, r"alpha='1' must be a finite number > 0"),
        ({"param_grid": {"alpha": [-1.0]}, "method": "gradient"}, r"alpha=-1.0 must be a finite number > 0"),
        ({"param_grid": {"C": [1.0]}}, "Invalid parameter 'C' for estimator LSSVC"),
        ({"param_grid": {"gamma": [-1.0]}}, "gamma=-1.0 must be positive"),
        ({"param_grid": []}, "param_grid"),
        ({"param_grid": {"alpha": []}}, "alpha"),
        ({"method": "gradient", "bounds": {"gama": (1, 2)}}, "bounds names 'gama'; .*gamma"),
        ({"method": "gradient", "bounds": {"alpha": (2, 1)}}, r"bounds\['alpha'\]=\(2, 1\) must be .*low <= high"),
        ({"method": "gradient", "bounds": {"alpha": (0, 1)}}, r"bounds\['alpha'\]=\(0, 1\) must be .*0 < low"),
        ({"method": "gradient", "bounds": {"alpha": 3}}, r"bounds\['alpha'\]=3 must be two finite numbers"),
        ({"method": "gradient", "bounds": {"alpha": ("a", "b")}}, r"bounds\['alpha'\]=\('a', 'b'\) must be two finite"),
        ({"method": "gradient", "bounds": [(1, 2)]}, r"bounds=\[\(1, 2\)\] must be a dict"),
        ({"method": "gradient", "feature_groups": [0, 1]}, r"feature_groups has shape \(2,\); X has 4 features"),
        ({"method": "gradient", "feature_groups": np.eye(4)}, r"feature_groups has shape \(4, 4\); X has 4 features"),
        ({"cv": [(np.arange(20), np.arange(15, 25))]}, r"cv: split 0 tests rows that it trains on"),
        (
            {"cv": [(np.arange(20), np.arange(20, 30)), (np.arange(9), [8])]},
            r"cv: split 1 tests rows that it trains on",
        ),
        ({"cv": [(np.arange(30), [])]}, r"cv: no split leaves out a row"),
        ({"cv": []}, r"cv: no split leaves out a row"),
        ({"cv": skl.GroupKFold(3)}, "groups"),
        ({"cv": 1}, "n_splits"),
        ({"estimator": LSSVC(gamma=[1.0] * D), "method": "gradient"}, r"gamma .*each feature.*feature_scaling=True"),
        (
            {"estimator": LSSVC("linear"), "method": "gradient", "feature_scaling": True},
            r"feature_scaling needs .*kernel='rbf', 'poly' or 'laplacian'; LSSVC with Linear\(\)",
        ),
        ({"estimator": SVC()}, r"estimator=SVC is not .*\(LSSVC, .*make_pipeline.*GridSearchCV"),
        ({"estimator": SVC(), "param_grid": {"C": [1.0]}}, r"estimator=SVC is not .*\(LSSVC, .*make_pipeline"),
        ({"estimator": SVC(), "method": "gradient"}, r"estimator=SVC is not"),
        (
            {"estimator": make_pipeline(StandardScaler(), LSSVC()), "param_grid": {"lssvc__alpha": [1.0]}},
            r"estimator=Pipeline is not .*Put preprocessing in front",
        ),
        ({"estimator": LSSVC}, "estimator"),
        ({"estimator": RidgeClassifier(positive=True, solver="lbfgs")}, r"positive=True.*GridSearchCV"),
    ],
    ids=lambda value: str(value)[:60] if isinstance(value, dict) else "",
)
def test_bad_arguments_are_named_with_a_way_out(options, message):
    options = {"estimator": LSSVC(), "param_grid": {"alpha": [1.0]}, **options}
    with pytest.raises((ValueError, TypeError), match=message):
        FoldlessSearchCV(**options).fit(X, LABELS)


@pytest.mark.parametrize(
    "options",
    [
        *[{"criterion": name} for name, each in CRITERIA.items() if each.labels],
        {"criterion_weight": "balanced"},
        {"share": "none"},
    ],
    ids=str,
)
@pytest.mark.parametrize("estimator", [LSSVR(), Ridge(), KernelRidge()], ids=str)
def test_what_needs_classes_is_refused_for_regressors(estimator, options):
    name, value = next(iter(options.items()))
    with pytest.raises(ValueError, match=rf"{type(estimator).__name__} has no classes.*{name}='{value}'.*'press'"):
        FoldlessSearchCV(estimator, {"alpha": [1.0]}, **options).fit(X, VALUES)


@pytest.mark.parametrize("estimator", [Ridge(), KernelRidge(kernel="rbf"), LSSVR("cosine"), LSSVR("boolean")], ids=str)
def test_feature_scaling_needs_a_kernel_with_scales(estimator):
    with pytest.raises(ValueError, match=rf"feature_scaling needs .*'rbf'.*{type(estimator).__name__}"):
        FoldlessSearchCV(estimator, method="gradient", feature_scaling=True).fit(X, VALUES)


@pytest.mark.parametrize("estimator", [LSSVC(), KFDA(), RidgeClassifier()], ids=str)
@pytest.mark.parametrize("method", ["grid", "gradient"])
def test_data_that_cannot_be_learned_from_is_refused(estimator, method):
    search = FoldlessSearchCV(estimator, {"alpha": [1.0]}, method=method)
    with pytest.raises(ValueError, match="X contains NaN"):
        search.fit(np.where(np.arange(D) == 1, np.nan, X), LABELS)
    with pytest.raises(ValueError, match=r"one class|at least two classes|number of classes"):
        search.fit(X, np.zeros(N, int))
    with pytest.raises(ValueError, match="Unknown label type"):
        search.fit(X, VALUES)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        search.fit(X, LABELS[:-1])
    with pytest.raises(ValueError, match="y"):
        search.fit(X, None)
    for w in (WEIGHT[:-1], -WEIGHT, WEIGHT * np.nan):
        with pytest.raises(ValueError, match=r"[Ss]ample.?weight"):
            search.fit(X, LABELS, sample_weight=w)
    assert not hasattr(search, "cv_results_")


@pytest.mark.parametrize("estimator", [LSSVC(), RidgeClassifier(), LSSVR(), Ridge(), KernelRidge()], ids=str)
@pytest.mark.parametrize("method", ["grid", "gradient"])
def test_weights_that_leave_too_little_are_refused(estimator, method):
    search = FoldlessSearchCV(estimator, {"alpha": [1.0]}, method=method)
    y = LABELS if is_classifier(estimator) else VALUES
    with pytest.raises(
        ValueError, match=r"[Ss]ample.weights? (must contain at least one non-zero|leaves fewer than two)"
    ):
        search.fit(X, y, sample_weight=np.zeros(N))
    with pytest.raises(ValueError, match="sample_weight leaves fewer than two rows"):
        search.fit(X, y, sample_weight=(np.arange(N) == 3).astype(float))
    if is_classifier(estimator):
        with pytest.raises(ValueError, match="sample_weight leaves one class only"):
            search.fit(X, y, sample_weight=(CODES == 1).astype(float))


def test_one_number_as_a_weight_weighs_all_rows_the_same():
    for estimator, y in ((LSSVC(), LABELS), (Ridge(), VALUES)):
        for weight in (None, "sample_weight"):
            search = FoldlessSearchCV(estimator, {"alpha": ALPHAS}, criterion_weight=weight)
            same = clone(search).fit(X, y, sample_weight=np.full(N, 2.0))
            assert_close(losses(search.fit(X, y, sample_weight=2.0)), losses(same))


def broken(f, t, w):
    return np.nan


@pytest.mark.parametrize(
    "change",
    [
        {"criterion": "accuracy"},
        {"criterion": broken},
        {"param_grid": {"alpha": [1.0, -1.0]}},
        {"param_grid": {"gamma": [0.1, -0.1]}},
        {"method": "gradient", "criterion": no_slope},
        {"method": "gradient", "bounds": {"alpha": (2, 1)}},
        {"cv": [(np.arange(20), np.arange(15, 25))]},
        {"estimator": SVC()},
    ],
    ids=lambda change: ", ".join(change),
)
def test_a_fit_that_fails_leaves_an_earlier_one_as_it_was(change):
    search = FoldlessSearchCV(LSSVC(), RBF_GRID).fit(X, LABELS)
    predictions = search.predict(X)
    search.set_params(**change)
    before = vars(search).copy()
    with pytest.raises(ValueError):
        search.fit(X[:, :2], BINARY)
    assert vars(search).keys() == before.keys()
    assert all(vars(search)[name] is before[name] for name in before)
    np.testing.assert_array_equal(search.predict(X), predictions)


@pytest.mark.parametrize("step", ["fit", "search"])
def test_a_refit_that_fails_leaves_an_earlier_fit_as_it_was(step, monkeypatch):
    """Whatever happens after the search is over."""
    search = FoldlessSearchCV(LSSVC(), RBF_GRID).fit(X, LABELS)
    before = vars(search).copy()

    def fail(*args, **kwargs):
        raise RuntimeError("interrupted")

    monkeypatch.setattr(LSSVC, "fit" if step == "fit" else "_task", fail)
    with pytest.raises(RuntimeError, match="interrupted"):
        search.fit(X, BINARY)
    assert vars(search) == before
    fresh = FoldlessSearchCV(LSSVC(), RBF_GRID)
    with pytest.raises(RuntimeError, match="interrupted"):
        fresh.fit(X, BINARY)
    with pytest.raises(NotFittedError):
        fresh.predict(X)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda f: (1.0, np.full_like(f, np.nan)), "(?s)criterion=.*finite"),
        (lambda f: (1.0, f[1:]), "(?s)criterion=.*shape"),
        (lambda f: (1.0, 2.0), "(?s)criterion=.*shape"),
        (lambda f: (np.nan, f), "(?s)criterion=.*finite"),
        (lambda f: np.abs(f), "criterion="),
    ],
    ids=["nan slopes", "short", "number", "nan", "vector"],
)
def test_functions_of_users_that_answer_nonsense_are_named(answer, message):
    def mine(f, t, w):
        return answer(f)

    for method in ("grid", "simplex", "gradient"):
        with pytest.raises(ValueError, match=message):
            FoldlessSearchCV(LSSVC(), {"alpha": [1.0]}, method=method, criterion=mine).fit(X, LABELS)


def test_groups_without_a_splitter_that_reads_them_are_warned_about():
    with pytest.warns(UserWarning, match="groups is ignored by cv=None.*GroupKFold"):
        FoldlessSearchCV(LSSVC(), {"alpha": [1.0]}).fit(X, LABELS, groups=np.arange(N) % 5)


def test_scales_part_where_one_gamma_is_a_minimum_of_its_own():
    """Two moons among noise: from equal scales the prior alone would never let the features part."""
    rng = np.random.RandomState(0)
    rows, y = make_moons(150, noise=0.2, random_state=0)
    rows = np.column_stack([rows, rng.randn(150, 15)])
    rows = (rows - rows.mean(0)) / rows.std(0)
    scales = FoldlessSearchCV(LSSVC(), method="gradient", feature_scaling=True).fit(rows, y).feature_scales_
    assert scales[:2].min() > 5 * scales[2:].max()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bounds": {"alpha": (0.1, 1.0)}}, "bounds is for method='gradient'"),
        ({"refit": "accuracy"}, "refit='accuracy' must be True or False"),
        ({"criterion": "roc_auc"}, "criterion='roc_auc' is unknown.*is 'auc' here"),
        ({"criterion": lambda f, t: 0.0}, r"criterion=.*must be a function f\(f, t, w\)"),
    ],
    ids=["bounds", "refit", "their name", "two arguments"],
)
def test_habits_from_elsewhere_are_answered(options, message):
    with pytest.raises(ValueError, match=f"(?s){message}"):
        FoldlessSearchCV(LSSVC(), {"alpha": [1.0]}, **options).fit(X, LABELS)


def test_balanced_class_weights_of_ridge_classifiers_are_resolved_once_from_all_labels():
    shares = dict(zip(*np.unique(LABELS, return_counts=True), strict=True))
    explicit = {label: N / (len(shares) * count) for label, count in shares.items()}
    grid = {"alpha": [0.1, 1.0, 10.0]}
    balanced = FoldlessSearchCV(RidgeClassifier(class_weight="balanced"), grid).fit(X, LABELS)
    given = FoldlessSearchCV(RidgeClassifier(class_weight=explicit), grid).fit(X, LABELS)
    np.testing.assert_allclose(balanced.cv_results_["mean_test_score"], given.cv_results_["mean_test_score"])
    np.testing.assert_allclose(balanced.decision_function(X), given.decision_function(X))


def test_the_default_grid_reaches_penalties_that_raw_features_need():
    scales = np.array([1e3, 1.0, 1e-2, 1.0])
    search = FoldlessSearchCV(RidgeClassifier()).fit(X * scales, BINARY)
    finer = FoldlessSearchCV(RidgeClassifier(), {"alpha": np.logspace(-6, 6, 100)}).fit(X * scales, BINARY)
    assert -search.best_score_ < -finer.best_score_ * 1.02


def test_repeated_splits_do_not_outvote_the_prior():
    folds = list(skl.KFold(5, shuffle=True, random_state=0).split(X))
    options = {"method": "gradient", "feature_scaling": True}
    once = FoldlessSearchCV(LSSVC(), cv=folds, **options).fit(X, BINARY)
    often = FoldlessSearchCV(LSSVC(), cv=folds * 4, **options).fit(X, BINARY)
    np.testing.assert_allclose(often.best_score_, once.best_score_, rtol=1e-4)
