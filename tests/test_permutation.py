"""Permutation tests of one X against a plain loop of refits: the same scores and p-values, from one P."""

import copy
import os
import pickle
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from cases import assert_close
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import metrics as theirs
from sklearn import model_selection as skl
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.decomposition import PCA
from sklearn.dummy import DummyClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.metrics import check_scoring, make_scorer
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KernelCenterer, OneHotEncoder, StandardScaler
from sklearn.utils import _safe_indexing

from foldless import LSSVC, LSSVR, KernelFisherDiscriminant, kernels, reference
from foldless.heldout.moments import Moments
from foldless.model_selection import RefitWarning, _labelings, permutation_test_score
from foldless.model_selection._labelings import TestData
from foldless.permutation import metrics
from foldless.permutation.labelings import Fitted, Labelings, Solver, elsewhere
from foldless.permutation.metrics import METRICS
from foldless.permutation.nulls import p_values, permutations
from foldless.permutation.result import PermutationTestResult
from foldless.readout.codings import indicator
from foldless.readout.discriminant import Discriminant

KFDA = KernelFisherDiscriminant
N = 40
M = 4  # permutations


def labelled(n_classes, n=N, d=4, seed=0):
    """X and class numbers; the first class is the largest, the last the smallest."""
    rng = np.random.default_rng(seed)
    sizes = np.linspace(2.5, 1.0, n_classes)
    shares = np.cumsum(sizes / sizes.sum() * n).round()
    codes = rng.permutation(np.searchsorted(shares, np.arange(n), side="right"))
    return rng.normal(size=(n, d)) + 0.6 * np.eye(n_classes, d)[codes] * (1 + codes[:, None]), codes


X, CODES = labelled(3)
LABELS = np.array(["ant", "bee", "cat"])[CODES]
BINARY = np.array(["no", "yes"])[(CODES > 0).astype(int)]
RNG = np.random.default_rng(1)
VALUES = X[:, 0] ** 2 + RNG.normal(size=N)
OUTPUTS = np.column_stack([VALUES, X[:, 1] + RNG.normal(size=N), RNG.normal(size=N)])
WIDE = np.hstack([X, RNG.normal(size=(N, 60))])
GROUPS = RNG.permutation(np.arange(N) % 8)
STRATA = np.array(["left", "right"])[RNG.permutation(np.arange(N) % 2)]
WEIGHT = RNG.uniform(0.3, 3.0, N)
WEIGHT[[2, 17, 30]] = 0.0
CONFOUNDS = RNG.normal((2.0, 0.0), size=(N, 2)) + CODES[:, None]
FOLDS = list(StratifiedKFold(4, shuffle=True, random_state=0).split(X, CODES))


# -- the oracle --------------------------------------------------------------------------------------------------------


def orders_of(n, strata=None, m=M):
    return np.vstack([np.arange(n), permutations(n, m, 7, strata)])


def part(estimator, X, rows, train):
    """These rows of X as the estimator fitted on ``train`` takes them."""
    last = estimator[-1] if hasattr(estimator, "steps") else estimator
    if getattr(last, "kernel", None) == "precomputed":
        return X[np.ix_(rows, train)]
    return _safe_indexing(X, rows)


def refits(estimator, X, y, orders, *, splits=FOLDS, scoring=None, weight=None, name="sample_weight", **rows):
    """Mean scores of every labeling: clone, fit on train, score on test. ``weight(order)`` are a labeling's weights,
    ``rows`` arguments of fit that stay with the rows.
    """
    scorer = check_scoring(estimator, scoring=scoring)
    means = []
    for order in orders:
        labels, scores = _safe_indexing(y, order), []
        given = dict(rows) if weight is None else {**rows, name: weight(order)}
        for train, test in splits:
            own = {key: values[train] for key, values in given.items()}
            model = clone(estimator).fit(part(estimator, X, train, train), _safe_indexing(labels, train), **own)
            scores.append(scorer(model, part(estimator, X, test, train), _safe_indexing(labels, test)))
        means.append(np.mean(scores))
    return np.array(means)


def share(score, null, greater=True):
    """(b + 1) / (m + 1), scores equal up to rounding being equal."""
    better = [s >= score - 1e-9 if greater else s <= score + 1e-9 for s in null]
    return (sum(better) + 1) / (len(null) + 1)


def assert_scores(result, scores, *, atol=1e-8, greater=True):
    score, null, p = result
    assert null.shape == (len(scores) - 1,)
    assert np.ptp(scores) > 0, "the labelings have the same scores: nothing was tested"
    assert_allclose(np.r_[score, null], scores, rtol=0, atol=atol)
    assert p == share(scores[0], scores[1:], greater)


def check(
    estimator, X, y, *, cv=FOLDS, scoring=None, m=M, strata=None, kind="one fit", atol=1e-8, oracle=None, **options
):
    """permutation_test_score equals the loop; ``oracle`` holds arguments of ``refits``, or the estimator to refit."""
    oracle = dict(oracle or {})
    options = {"cv": cv, "scoring": scoring, "n_permutations": m, "random_state": 7, "strata": strata, **options}
    result = permutation_test_score(estimator, X, y, **options)
    orders = orders_of(len(y), strata, m)
    scores = refits(oracle.pop("estimator", estimator), X, y, orders, **{"splits": cv, "scoring": scoring, **oracle})
    assert_scores(result, scores, atol=atol)
    assert result.path.kind == kind
    return result


def _margin(truth, decision):
    """How far decisions are on the right side: continuous, so that it sees what accuracy does not."""
    if decision.ndim == 1:
        return np.mean(np.where(truth == "yes", decision, -decision))
    own = np.searchsorted(np.unique(LABELS), truth)
    return np.mean(decision[np.arange(len(truth)), own] - decision.mean(1))


margin = make_scorer(_margin, response_method="decision_function")


def plain_score(model, X, y):
    """A scorer that reads the fitted estimator."""
    return model.score(X, y)


# -- permutations, p-values and the result -----------------------------------------------------------------------------


@pytest.mark.parametrize("groups", [None, GROUPS, STRATA], ids=["all rows", "numbers", "strings"])
@pytest.mark.parametrize("random_state", [0, 11, "instance"])
def test_permutations_are_scikit_learns(groups, random_state):
    everything, seen = [(np.arange(N), np.arange(N))], []
    states = [np.random.RandomState(3) if random_state == "instance" else random_state for _ in range(2)]
    skl.permutation_test_score(
        DummyClassifier(),
        X,
        np.arange(N),
        groups=groups,
        cv=everything,
        n_permutations=3,
        random_state=states[0],
        scoring=lambda estimator, X, y: seen.append(y) or 0.0,
    )
    assert_array_equal(permutations(N, 3, states[1], groups), seen[1:])


def test_permutations_within_strata_stay_there():
    orders = permutations(N, 20, 0, STRATA)
    assert (STRATA[orders] == STRATA).all()
    assert_array_equal(np.sort(orders, 1), np.tile(np.arange(N), (20, 1)))
    assert orders.dtype == np.int32


def test_p_values_count_scores_that_are_at_least_as_good():
    null = np.array([0.1, 0.4, 0.5, 0.9])
    assert p_values(0.5, null) == 3 / 5
    assert p_values(0.5, null, greater=False) == 4 / 5
    assert p_values(1.0, null) == 1 / 5  # never 0
    assert p_values(0.0, null) == 1.0
    assert p_values(0.0, [0.0, -1.0]) == p_values(0.0, [0.0, 1.0], greater=False) == 2 / 3
    assert p_values(0.5, null, rounding=0.0) == 3 / 5


def test_p_values_of_scores_that_are_equal_up_to_rounding():
    third = 1 / 3
    below, above = np.nextafter(third, 0), np.nextafter(third, 1)
    assert p_values(above, [below]) == 1.0
    assert p_values(below, [above], greater=False) == 1.0
    assert p_values(above, [below], rounding=0.0) == 0.5
    assert p_values(third, [third * (1 - 1e-9)]) == 0.5
    assert p_values(-third, [-third * (1 + 1e-9)]) == 0.5  # negative scores: the margin is one of their size
    assert p_values(-above, [-third * (1 + 1e-11)]) == 1.0


def test_p_values_of_undefined_scores():
    assert p_values(0.5, [np.nan, 0.1]) == 2 / 3
    assert p_values(0.5, [np.nan, 0.1], greater=False) == 1.0
    assert p_values(0.5, [np.nan, 0.1], rounding=0.0) == 1 / 3  # as scikit-learn counts
    assert np.isnan(p_values(np.nan, [0.1, 0.2]))


def test_p_values_of_a_family_are_those_of_its_members():
    rng = np.random.default_rng(0)
    score, null = rng.normal(size=(2, 3)), rng.normal(size=(19, 2, 3))
    together = p_values(score, null)
    for place in np.ndindex(2, 3):
        assert together[place] == p_values(score[place], null[:, *place])


def test_the_result_of_one_test():
    result = PermutationTestResult(0.75, np.array([0.5, 0.75, 0.25]), scoring="accuracy", path="by hand")
    score, null, p = result
    assert (score, p) == (0.75, 0.5) == (result.score, result.pvalue)
    assert null is result.permutation_scores is result[1]
    assert isinstance(result, tuple)
    assert repr(result) == "accuracy 0.7500, p = 0.5 (3 permutations; by hand)"
    assert (result.n_permutations, result.greater_is_better) == (3, True)
    assert result.pvalue_fwe is result.max_scores is result.best_params is result.strata is None


@pytest.mark.parametrize("copied", [lambda r: pickle.loads(pickle.dumps(r)), copy.copy, copy.deepcopy])
def test_results_survive_copies(copied):
    result = permutation_test_score(LSSVC(), X, CODES, n_permutations=3, scoring="ber")
    other = copied(result)
    assert type(other) is PermutationTestResult
    assert repr(other) == repr(result)
    assert_array_equal(other.permutation_scores, result.permutation_scores)
    assert_array_equal(other.strata, result.strata)
    assert (other.scoring, other.path, other.greater_is_better) == (result.scoring, result.path, False)


@pytest.mark.parametrize("greater", [True, False])
def test_the_result_of_a_family(greater):
    rng = np.random.default_rng(1)
    score, null = rng.normal(size=4), rng.normal(size=(9, 4))
    result = PermutationTestResult(score, null, scoring="r2", greater_is_better=greater, path="by hand")
    best = null.max(1) if greater else null.min(1)
    assert_array_equal(result.max_scores, best)
    assert_array_equal(result.pvalue_fwe, [share(s, best, greater) for s in score])
    assert_array_equal(result.pvalue, [share(s, column, greater) for s, column in zip(score, null.T, strict=True)])
    k = score.argmax() if greater else score.argmin()
    words = f"r2 of 4 members, best {score[k]:.4f} at {k}, family-wise p = {result.pvalue_fwe[k]:.4g}"
    assert repr(result) == f"{words} (9 permutations; by hand)"


def test_undefined_scores_in_a_family_err_on_the_safe_side():
    score, null = np.array([0.6, 0.9]), np.array([[0.5, 0.5], [np.nan, np.nan], [np.nan, 0.4]])
    result = PermutationTestResult(score, null)
    assert_array_equal(result.pvalue, [3 / 4, 2 / 4])
    assert_array_equal(result.pvalue_fwe, [3 / 4, 3 / 4])
    loss = PermutationTestResult(-score, -null, greater_is_better=False)
    assert_array_equal(loss.pvalue_fwe, result.pvalue_fwe)


def test_rounding_in_a_family():
    score, null = np.array([0.1 + 0.2, 0.5]), np.array([[0.3, 0.1], [0.1, 0.0]])
    assert_array_equal(PermutationTestResult(score, null).pvalue_fwe, [2 / 3, 1 / 3])
    assert_array_equal(PermutationTestResult(score, null, rounding=0.0).pvalue, [1 / 3, 1 / 3])
    assert_array_equal(PermutationTestResult(score, null, rounding=0.0).pvalue_fwe, [1 / 3, 1 / 3])


def test_members_without_a_score_are_no_members():
    score, null = np.array([0.6, np.nan]), np.array([[0.5, np.nan], [0.7, np.nan], [0.1, np.nan]])
    result = PermutationTestResult(score, null)
    assert_array_equal(result.pvalue, [2 / 4, np.nan])
    assert_array_equal(result.pvalue_fwe, [2 / 4, np.nan])
    assert " best 0.6000 at 0, " in repr(result)
    undefined = PermutationTestResult(np.full(2, np.nan), null, scoring="r2", path="by hand")
    assert repr(undefined) == "r2 of 2 members, none of them defined (3 permutations; by hand)"


def test_the_place_of_the_best_pair_of_a_generalisation():
    score, null = np.zeros((2, 3)), np.zeros((4, 2, 3))
    score[1, 2] = 0.5
    assert "of 6 members, best 0.5000 at (1, 2), family-wise p = 0.2 " in repr(PermutationTestResult(score, null))


# -- metrics -----------------------------------------------------------------------------------------------------------


def tied_decisions(n_classes, b=12, t=15, seed=0):
    """Decisions with many ties, and class numbers; one labeling lacks the last class, another all others."""
    rng = np.random.default_rng(seed)
    D = rng.integers(-2, 3, (b, 1 if n_classes == 2 else n_classes, t)).astype(float)
    codes = rng.integers(0, n_classes, (b, t))
    codes[1] = rng.integers(0, n_classes - 1, t)
    codes[2] = n_classes - 1
    return D, codes


def values(b=12, k=2, t=15, seed=0):
    """Predictions and values of k outputs; constant in places, and met exactly in some of them."""
    rng = np.random.default_rng(seed)
    D, T = rng.normal(size=(2, b, k, t))
    T[1, 0] = 3.0
    T[2] = D[2] = 0.25
    D[3, 1] = 0.5
    T[4], D[4] = 2.0, 2.0
    D[4, 0, 3] += 0.5
    return D, T


@pytest.mark.parametrize("n_classes", [2, 3, 4, 6])
def test_chosen_classes_are_the_estimators(n_classes):
    D, _ = tied_decisions(n_classes)
    expected = (D[:, 0] > 0).astype(int) if n_classes == 2 else D.argmax(1)
    assert_array_equal(metrics.chosen_among_close(D), expected)


@pytest.mark.parametrize("n_classes", [2, 3, 4, 6])
@pytest.mark.parametrize("name", ["accuracy", "balanced_accuracy", "ber"])
@pytest.mark.filterwarnings("ignore:y_pred contains classes not in y_true", "ignore:A single label was found")
def test_metrics_of_labels_are_scikit_learns_row_by_row(name, n_classes):
    D, codes = tied_decisions(n_classes)
    found = METRICS[name].function(D, codes)
    labels = (D[:, 0] > 0) if n_classes == 2 else D.argmax(1)
    function = theirs.accuracy_score if name == "accuracy" else theirs.balanced_accuracy_score
    expected = [function(true, label.astype(int)) for true, label in zip(codes, labels, strict=True)]
    expected = 1 - np.array(expected) if name == "ber" else expected
    assert_allclose(found, expected, rtol=0, atol=1e-15)
    one = [METRICS[name].theirs(true, label.astype(int)) for true, label in zip(codes, labels, strict=True)]
    assert_allclose(one, expected, rtol=0, atol=1e-15)


@pytest.mark.filterwarnings("ignore:Only one class is present")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_areas_under_the_curve_are_scikit_learns_row_by_row(dtype):
    D, codes = tied_decisions(2)
    D[5] = 0.5  # all the same
    D = D.astype(dtype)
    found = metrics.roc_auc(D, codes)
    expected = [theirs.roc_auc_score(true, d[0]) for true, d in zip(codes, D, strict=True)]
    assert np.isnan(expected[2])
    assert_allclose(found, expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("model", [LSSVC(gamma=5.0), KFDA(gamma=5.0), LSSVR(gamma=5.0)], ids=lambda m: type(m).__name__)
def test_labels_cannot_be_read_off_the_rounding(model):
    """Where every kernel value is 0 held-out decisions are constant, and 0 = Y - E up to rounding that knows Y."""
    far = np.random.default_rng(0).normal(size=(60, 60))
    y = np.arange(60) % 2
    scoring, chance = ("correlation", 0.0) if isinstance(model, LSSVR) else ("roc_auc", 0.5)
    splits = list(KFold(5, shuffle=True, random_state=0).split(far))
    result = permutation_test_score(model, far, y, cv=splits, n_permutations=20, scoring=scoring)
    assert_close(np.append(result.permutation_scores, result.score), np.full(21, chance))


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("name", ["r2", "neg_mean_squared_error", "correlation"])
def test_metrics_of_values_are_scikit_learns_row_by_row(name, k):
    D, T = values(k=max(k, 2))
    D, T = D[:, -k:], T[:, -k:]

    def correlation(true, predicted):
        flat = [np.ptp(true[:, j]) == 0 or np.ptp(predicted[:, j]) == 0 for j in range(k)]
        return np.mean([0.0 if flat[j] else np.corrcoef(true[:, j], predicted[:, j])[0, 1] for j in range(k)])

    def loss(true, predicted):
        return -theirs.mean_squared_error(true, predicted)

    expected = {"r2": theirs.r2_score, "neg_mean_squared_error": loss, "correlation": correlation}[name]
    rows = [(t.T, d.T) for t, d in zip(T, D, strict=True)]
    assert_allclose(METRICS[name].function(D, T), [expected(*row) for row in rows], rtol=1e-12, atol=1e-14)
    assert_allclose(
        [METRICS[name].theirs(*row) for row in rows], [expected(*row) for row in rows], rtol=1e-12, atol=1e-14
    )


def test_metrics_are_scorers():
    model = Ridge().fit(X, VALUES)
    r = np.corrcoef(model.predict(X), VALUES)[0, 1]
    assert_close(METRICS["correlation"].scorer()(model, X, VALUES), r)
    model = LogisticRegression().fit(X, BINARY)
    assert METRICS["ber"].scorer()(model, X, BINARY) == 1 - theirs.balanced_accuracy_score(BINARY, model.predict(X))
    assert METRICS["roc_auc"].scorer()(model, X, BINARY) == theirs.roc_auc_score(BINARY, model.decision_function(X))
    assert [name for name, metric in METRICS.items() if not metric.greater] == ["ber"]


# -- columns -----------------------------------------------------------------------------------------------------------

MANY = {
    "LSSVC": LSSVC(gamma=0.1, alpha=0.3),
    "LSSVC coef": LSSVC(gamma=0.1, alpha=0.3, penalty="coef"),
    "LSSVC no intercept": LSSVC(gamma=0.1, fit_intercept=False),
    "LSSVC coef no intercept": LSSVC(gamma=0.1, penalty="coef", fit_intercept=False),
    "LSSVC linear": LSSVC("linear"),
    "LSSVC poly": LSSVC("poly", gamma=0.2, degree=2),
    "KFDA": KFDA(gamma=0.1, alpha=0.3),
    "KFDA coef": KFDA(gamma=0.1, penalty="coef"),
    "KFDA no intercept": KFDA(gamma=0.1, fit_intercept=False),
    "KFDA coef no intercept": KFDA(gamma=0.1, penalty="coef", fit_intercept=False),
    "KFDA linear, priors": KFDA("linear", priors=[0.2, 0.3, 0.5]),
    "KFDA one component": KFDA(gamma=0.1, n_components=1),
    "RidgeClassifier": RidgeClassifier(alpha=0.5),
    "RidgeClassifier no intercept": RidgeClassifier(alpha=0.5, fit_intercept=False),
}
TWO = {
    **{f"KFDA {t}": KFDA(gamma=0.1, threshold=t) for t in ("fisher", "pm1", "centroid", "loo")},
    **{f"KFDA {t} no intercept": KFDA(gamma=0.1, threshold=t, fit_intercept=False) for t in ("fisher", "centroid")},
    "KFDA coef centroid": KFDA(gamma=0.1, threshold="centroid", penalty="coef"),
    "KFDA coef loo": KFDA(gamma=0.1, threshold="loo", penalty="coef"),
    "KFDA priors": KFDA(gamma=0.1, threshold="centroid", priors=[0.8, 0.2]),
    "LSSVC": LSSVC(gamma=0.1),
    "LSSVC no intercept": LSSVC(gamma=0.1, fit_intercept=False),
    "RidgeClassifier": RidgeClassifier(),
}
REGRESSORS = {
    "LSSVR": LSSVR(gamma=0.1, alpha=0.3),
    "LSSVR coef": LSSVR(gamma=0.1, penalty="coef"),
    "Ridge": Ridge(alpha=0.5),
    "Ridge no intercept": Ridge(alpha=0.5, fit_intercept=False),
    "KernelRidge": KernelRidge(kernel="rbf", gamma=0.1),
    "KernelRidge poly": KernelRidge(kernel="poly", degree=2, gamma=0.1),
}
CLASSIFIERS = [pytest.param(e, LABELS, id=f"{k}-3") for k, e in MANY.items()] + [
    pytest.param(e, BINARY, id=f"{k}-2") for k, e in TWO.items()
]
EVERYONE = (
    CLASSIFIERS
    + [pytest.param(e, VALUES, id=k) for k, e in REGRESSORS.items()]
    + [pytest.param(e, OUTPUTS, id=f"{k}-3 outputs") for k, e in REGRESSORS.items()]
)
everyone = pytest.mark.parametrize(("estimator", "y"), EVERYONE)
WITH_COLUMNS = [each for each in EVERYONE if "loo" not in each.id]

_order = np.random.default_rng(5).permutation(N)
PARTS = [
    (_order[10:], _order[:10]),
    (_order[10:], _order[:3]),  # rows that belong to neither
    (_order[:18], _order[14:]),  # some test rows were trained on
    (np.arange(N), np.arange(N)),
]


def fitted_columns(estimator, X, y, orders, weight=None):
    task, *_ = TestData(X, y, weight).task(estimator)
    return Fitted(Solver(task.problem), Labelings.of(task, orders))


def decisions(fitted, train, test):
    """Decisions (b, k, t) of all labelings at ``test`` by the models of ``train``."""
    model = fitted.part(train)
    return fitted.reader(model)(model.fits(test))


def as_columns(model, X):
    """Decisions or predictions of a fitted estimator, (k, t)."""
    D = model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)
    return D.reshape(len(D), -1).T


def shared_constant(fitted):
    """Whether decisions are the estimator's up to a constant a row."""
    task = fitted.labelings.task
    return isinstance(task.readout, Discriminant) and task.n_classes > 2


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weights"])
@pytest.mark.parametrize(("estimator", "y"), WITH_COLUMNS)
def test_decisions_of_all_labelings_are_those_of_refits(estimator, y, weight):
    orders = orders_of(N, m=2)
    fitted = fitted_columns(estimator, X, y, orders, weight)
    for train, test in PARTS:
        for order, own in zip(orders, decisions(fitted, train, test), strict=True):
            extra = {} if weight is None else {"sample_weight": weight[train]}
            expected = as_columns(clone(estimator).fit(X[train], y[order][train], **extra), X[test])
            if shared_constant(fitted):
                own, expected = own - own.mean(0), expected - expected.mean(0)
            assert_close(own, expected)


@pytest.mark.parametrize("name", ["LSSVC", "LSSVC linear", "LSSVC no intercept", "KFDA", "KFDA coef"])
@pytest.mark.parametrize("lacking", [False, True], ids=["", "a class is missing"])
def test_decisions_in_single_precision(name, lacking):
    train, test = (CODES < 2).nonzero()[0] if lacking else PARTS[0][0], PARTS[0][1]
    expected = decisions(fitted_columns(MANY[name], X, LABELS, [np.arange(N)]), train, test)
    D = decisions(fitted_columns(MANY[name], X.astype(np.float32), LABELS, [np.arange(N)]), train, test)
    assert D.dtype == np.float32
    if lacking:
        assert (D[:, 2] == np.finfo(np.float32).min).all()
        D, expected = D[:, :2], expected[:, :2]
    assert_close(D - D.mean(1, keepdims=True), expected - expected.mean(1, keepdims=True), rtol=2e-3)


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weights"])
@pytest.mark.parametrize("estimator", [LSSVC, KFDA])
@pytest.mark.parametrize("y", [LABELS, BINARY], ids=["3", "2"])
@pytest.mark.parametrize("intercept", [True, False], ids=["", "no intercept"])
def test_decisions_where_basis_functions_stay(estimator, y, intercept, weight):
    options = {"threshold": "centroid"} if estimator is KFDA else {}
    estimator = estimator(gamma=0.1, penalty="coef", basis="all", fit_intercept=intercept, **options)
    orders = orders_of(N, m=2)
    fitted = fitted_columns(estimator, X, y, orders, weight)
    K = kernels.resolve("rbf", X, gamma=0.1).gram(X)
    w = np.ones(N) if weight is None else weight
    settings = {"w": w, "Q": np.ones((N, int(intercept))), "penalty": "coef", "basis": "all"}
    readout = fitted.labelings.task.readout
    codes = np.unique(y, return_inverse=True)[1]
    for train, test in PARTS[:3]:
        for order, own in zip(orders, decisions(fitted, train, test), strict=True):
            Y = readout.targets(codes[order], float)
            F = reference.heldout_fits(K, Y, train, test, 1.0, **settings)
            moments = class_matrices(K, Y, train, settings) if isinstance(readout, Discriminant) else None
            expected = readout.scores(F, moments).reshape(len(test), -1).T
            if shared_constant(fitted):
                own, expected = own - own.mean(0), expected - expected.mean(0)
            assert_close(own, expected)


def class_matrices(K, Y, train, settings):
    """N and U of a training part by their definitions."""
    YW = Y[train].T * settings["w"][train]
    masses = YW @ Y[train]
    return Moments(masses, masses - YW @ reference.heldout_fits(K, Y, train, train, 1.0, **settings))


@pytest.mark.parametrize(("estimator", "y"), WITH_COLUMNS)
def test_some_of_the_labelings(estimator, y):
    """Whatever was computed of all of them before."""
    orders = orders_of(N, m=4)
    fitted = fitted_columns(estimator, X, y, orders, WEIGHT)
    D = decisions(fitted, *PARTS[0])
    for chosen in ([3], [4, 0], slice(1, 3)):
        some = fitted.select(chosen)
        assert len(some.labelings) == len(orders[chosen])
        assert_close(decisions(some, *PARTS[0]), D[chosen])


def test_two_classes_are_one_column_and_every_other_class_one_more():
    for n_classes in (2, 3, 6):
        X, y = labelled(n_classes)
        for intercept in (True, False):
            labelings = fitted_columns(LSSVC(fit_intercept=intercept), X, y, orders_of(N, m=2)).labelings
            assert labelings.width == n_classes - intercept
            assert labelings.columns().shape == (N, 3 * labelings.width)
    assert fitted_columns(Ridge(), X, VALUES, orders_of(N, m=2)).labelings.width == 1


@pytest.mark.parametrize("kind", ["LSSVC", "KFDA coef", "LSSVC linear", "RidgeClassifier", "LSSVC no intercept"])
def test_a_solver_serves_any_number_of_columns(kind):
    """Also of some of the rows, with a P that is known already."""
    task, *_ = TestData(X, LABELS, WEIGHT).task(MANY[kind])
    problem, rows, everything = task.problem, np.flatnonzero(WEIGHT)[3:], np.arange(N)
    Y, orders = np.random.default_rng(0).normal(size=(N, 5)), orders_of(N, m=1)
    known = problem.precision(rows)

    def oracle(Y, rows):
        options = {"w": WEIGHT, "Q": problem.Q, "penalty": problem.penalty}
        return reference.heldout_fits(
            problem.gram(everything, everything), Y, rows, everything, problem.alpha, **options
        )

    blind = copy.copy(problem)
    blind.precision = None  # a P that is known is not made again
    for solver in (Solver(problem, rows), Solver(blind, rows, known)):
        assert solver.choice == known.choice
        assert_close(solver.solve(Y).fits(everything), oracle(Y, rows))
        labelings = Labelings.of(task, orders)
        model = Fitted(solver, labelings).part(rows[5:])
        for order, own in zip(orders, np.split(model.fits(everything), 2, axis=1), strict=True):
            shown = indicator(task.codes[order], 3, float)[:, labelings.n_implied :]
            assert_close(own, oracle(shown, rows[5:]))


@pytest.mark.parametrize("confounds", [None, CONFOUNDS], ids=["", "confounds"])
@pytest.mark.parametrize("kind", ["LSSVC", "LSSVC linear", "LSSVC coef", "LSSVC no intercept"])
def test_fits_at_other_features_of_the_held_out_rows(kind, confounds):
    task, *_ = TestData(X, LABELS, WEIGHT, confounds).task(MANY[kind])
    others = np.random.default_rng(3).normal(size=X.shape)
    orders = orders_of(N, m=2)
    fitted = Fitted(Solver(task.problem), Labelings.of(task, orders))
    train, test = PARTS[1]
    model = fitted.part(train)
    D = fitted.reader(model)(elsewhere(model, test)(others[test]))
    for order, own in zip(orders, D, strict=True):
        extra = {} if confounds is None else {"confounds": confounds[train]}
        refit = clone(MANY[kind]).fit(X[train], LABELS[order][train], sample_weight=WEIGHT[train], **extra)
        assert_close(own, as_columns(refit, others[test]))


# -- scores against refits ---------------------------------------------------------------------------------------------


@everyone
def test_scores_are_those_of_refits(estimator, y):
    check(estimator, X, y)


@pytest.mark.parametrize("n_classes", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
@pytest.mark.parametrize("estimator", [LSSVC, KFDA])
def test_any_number_of_classes(n_classes, penalty, estimator):
    X, y = labelled(n_classes, n=54)
    assert np.bincount(y).max() > 1.5 * np.bincount(y).min()
    folds = list(KFold(3, shuffle=True, random_state=0).split(X))
    check(estimator(gamma=0.1, alpha=0.1, penalty=penalty), X, y, cv=folds)


@pytest.mark.parametrize("y", [LABELS, BINARY], ids=["3", "2"])
@pytest.mark.parametrize("estimator", [LSSVC, KFDA])
def test_basis_functions_that_stay(estimator, y):
    """No refit keeps them: the oracle solves for the fits and applies the readout."""
    estimator = estimator(gamma=0.1, penalty="coef", basis="all")
    orders = orders_of(N)
    K = kernels.resolve("rbf", X, gamma=0.1).gram(X)
    settings = {"w": np.ones(N), "penalty": "coef", "basis": "all"}
    task, classes, _ = TestData(X, y).task(estimator)
    scores = []
    for order in orders:
        codes, own = task.codes[order], []
        Y = task.readout.targets(codes, float)
        for train, test in FOLDS:
            moments = class_matrices(K, Y, train, settings) if task.readout.needs_moments else None
            D = task.readout.scores(reference.heldout_fits(K, Y, train, test, 1.0, **settings), moments)
            own.append(np.mean((D > 0 if len(classes) == 2 else D.argmax(1)) == codes[test]))
        scores.append(np.mean(own))
    assert_scores(permutation_test_score(estimator, X, y, cv=FOLDS, n_permutations=M, random_state=7), np.array(scores))


@pytest.mark.parametrize(
    ("features", "holder"), [(X, "low rank: 4 linear features"), (WIDE, "factored: one alpha")], ids=["few", "many"]
)
@pytest.mark.parametrize("estimator", [LSSVC("linear"), KFDA("linear"), RidgeClassifier()], ids=str)
def test_linear_kernels_hold_p_in_the_way_that_suits_them(estimator, features, holder):
    assert holder in check(estimator, features, LABELS).path.reason


@pytest.mark.parametrize("y", [LABELS, VALUES], ids=["labels", "values"])
def test_precomputed_kernels(y):
    K = kernels.resolve("rbf", X, gamma=0.1).gram(X)
    for estimator in [LSSVC("precomputed"), KFDA("precomputed")] if y is LABELS else [LSSVR("precomputed")]:
        check(estimator, K, y)
        check(estimator, K, y, scoring=plain_score, m=2)
    if y is VALUES:
        check(KernelRidge(kernel="precomputed"), K, y)


@pytest.mark.parametrize("estimator", [LSSVR(gamma=0.1), LSSVR("linear"), Ridge()], ids=str)
def test_single_precision(estimator):
    result = check(estimator, X.astype(np.float32), VALUES, atol=2e-4)
    double = permutation_test_score(estimator, X, VALUES, cv=FOLDS, n_permutations=M, random_state=7)
    assert 0 < np.abs(result.permutation_scores - double.permutation_scores).max() < 2e-4


@pytest.mark.parametrize("convert", [sp.csr_matrix, sp.csr_array, sp.csc_array], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("estimator", [LSSVC(gamma=0.1), LSSVC("linear"), RidgeClassifier()], ids=str)
def test_sparse_features(estimator, convert):
    check(estimator, convert(np.where(np.abs(X) < 0.5, 0.0, X)), LABELS, m=2)


@pytest.mark.parametrize("estimator", [LSSVC(gamma=0.1), make_pipeline(StandardScaler(), LSSVC(gamma=0.1))], ids=str)
def test_tables_and_lists(estimator):
    options = {"cv": FOLDS, "n_permutations": M}
    expected = permutation_test_score(estimator, X, LABELS, strata=STRATA, **options)
    names, index = list("abcd"), RNG.permutation(N) + 100
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
            result = permutation_test_score(estimator, X_, y_, strata=strata, scoring=scoring, **options)
            assert_array_equal(result.permutation_scores, expected.permutation_scores)
            assert result[::2] == expected[::2]


def test_labels_of_any_kind():
    """Names of classes make no difference, where their order stays."""
    options = {"cv": FOLDS, "n_permutations": M}
    expected = permutation_test_score(KFDA(), X, CODES, **options)
    for labels in (LABELS, CODES * 10 - 7, CODES + 0.0, CODES.astype(np.int8), LABELS.astype(object)):
        assert_array_equal(permutation_test_score(KFDA(), X, labels, **options)[1], expected[1])
    expected = permutation_test_score(KFDA(), X, BINARY, **options)
    assert_array_equal(permutation_test_score(KFDA(), X, BINARY == "yes", **options)[1], expected[1])


@pytest.mark.parametrize("y", [LABELS, VALUES], ids=["labels", "values"])
def test_scale_is_resolved_once_on_all_rows(y):
    """Behind steps of a pipeline on each training part, as a refit does."""
    kind = LSSVC if y is LABELS else LSSVR
    check(kind(), X, y, oracle={"estimator": kind(gamma=1 / (4 * X.var()))})
    gamma = 1 / (4 * kernels.resolve("rbf", X, gamma="scale", sample_weight=WEIGHT).gamma ** -1 / 4)
    weighted = {"weight": lambda order: WEIGHT, "estimator": kind(gamma=gamma)}
    check(kind(), X, y, params={"sample_weight": WEIGHT}, oracle=weighted)
    check(make_pipeline(PCA(3), kind()), X, y, kind="one P per fold")
    name = f"{kind.__name__.lower()}__sample_weight"
    weighted = {"weight": lambda order: WEIGHT, "name": name}
    check(make_pipeline(PCA(3), kind()), X, y, kind="one P per fold", params={name: WEIGHT}, oracle=weighted)


# -- weights -----------------------------------------------------------------------------------------------------------

BY_CLASS = {0: 3.0, 1: 0.5, 2: 1.5}
OWN_WEIGHTED = {"LSSVC": LSSVC(gamma=0.1), "KFDA": KFDA(gamma=0.1), "KFDA coef": KFDA(gamma=0.1, penalty="coef")}
fixed_are_warned_of = pytest.mark.filterwarnings("ignore:weights='fixed' keeps weights")
weighting = pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weights"])


def factors(estimator, class_weight, codes, base):
    """class_weight of foldless' estimators as numbers: "balanced" is taken from all labels, weights are repetitions."""
    if class_weight == "balanced":
        mass = np.bincount(codes, weights=base)
        return mass.sum() / (len(mass) * mass)
    own = np.array([class_weight[k] for k in range(len(class_weight))])
    return own / own.mean() if isinstance(estimator, KFDA) else own


def unweighted(estimator, class_weight):
    """The estimator whose sample weights hold the class weights; a discriminant takes priors from a dict as well."""
    if isinstance(estimator, KFDA) and class_weight != "balanced":
        own = factors(estimator, class_weight, None, None)
        return clone(estimator).set_params(priors=own / own.sum())
    return estimator


@pytest.mark.parametrize(
    ("estimator", "y"), [e for e in EVERYONE if e.id.startswith(("LSSVC-3", "KFDA loo", "KFDA coef-3", "KernelRidge"))]
)
def test_sample_weights_that_stay_are_no_obstacle(estimator, y):
    options = {"params": {"sample_weight": WEIGHT}, "oracle": {"weight": lambda order: WEIGHT}}
    check(estimator, X, y, **options)
    check(estimator, X, y, weights="fixed", m=2, **options)


@pytest.mark.parametrize(
    ("estimator", "y"),
    [(LSSVC(gamma=0.1), LABELS), (KFDA(gamma=0.1), LABELS), (RidgeClassifier(), LABELS), (Ridge(), OUTPUTS)],
    ids=["LSSVC", "KFDA", "RidgeClassifier", "Ridge"],
)
def test_sample_weights_that_follow_the_labels(estimator, y):
    oracle = {"weight": lambda order: WEIGHT[order]}
    options = {"params": {"sample_weight": WEIGHT}, "weights": "permuted", "kind": "one P per fold"}
    result = check(estimator, X, y, oracle=oracle, **options)
    assert "every permutation has its own P" in result.path.reason
    callable_too = {"scoring": plain_score, "m": 2}
    check(estimator, X, y, oracle=oracle, **options, **callable_too)


@weighting
@pytest.mark.parametrize("class_weight", [BY_CLASS, "balanced"], ids=["dict", "balanced"])
@pytest.mark.parametrize("weights", [None, "permuted"])
@pytest.mark.parametrize("name", OWN_WEIGHTED)
def test_class_weights_that_follow_the_labels(name, class_weight, weights, weight):
    estimator = OWN_WEIGHTED[name]
    base = np.ones(N) if weight is None else weight

    def of_labeling(order):
        own, codes = (base[order] if weights == "permuted" else base), CODES[order]
        return own * factors(estimator, class_weight, codes, own)[codes]

    check(
        clone(estimator).set_params(class_weight=class_weight),
        X,
        CODES,
        weights=weights,
        params=None if weight is None else {"sample_weight": weight},
        kind="one P per fold",
        oracle={"estimator": unweighted(estimator, class_weight), "weight": of_labeling},
    )


@fixed_are_warned_of
@weighting
@pytest.mark.parametrize("class_weight", [BY_CLASS, "balanced"], ids=["dict", "balanced"])
@pytest.mark.parametrize("name", [*OWN_WEIGHTED, "RidgeClassifier"])
def test_class_weights_that_stay_with_the_rows(name, class_weight, weight):
    estimator = {**OWN_WEIGHTED, "RidgeClassifier": RidgeClassifier()}[name]
    base = np.ones(N) if weight is None else weight
    counted = np.ones(N) if name == "RidgeClassifier" else base  # scikit-learn counts rows
    fixed = base * factors(estimator, class_weight, CODES, counted)[CODES]
    options = {
        "weights": "fixed",
        "params": None if weight is None else {"sample_weight": weight},
        "oracle": {"estimator": unweighted(estimator, class_weight), "weight": lambda order: fixed},
    }
    weighted = clone(estimator).set_params(class_weight=class_weight)
    check(weighted, X, CODES, **options)
    if name != "RidgeClassifier":
        check(weighted, X, CODES, scoring=plain_score, m=1, **options)
        return
    del options["oracle"]
    with pytest.raises(ValueError, match="weights='fixed'"):
        permutation_test_score(weighted, X, CODES, scoring=plain_score, **options)


@weighting
def test_ridge_classifiers_whose_class_weights_follow_the_labels(weight):
    options = {
        "params": None if weight is None else {"sample_weight": weight},
        "oracle": {} if weight is None else {"weight": lambda order: weight},
    }
    check(RidgeClassifier(class_weight=BY_CLASS), X, CODES, kind="one P per fold", **options)
    with pytest.warns(RefitWarning, match="balanced"):
        check(RidgeClassifier(class_weight="balanced"), X, CODES, kind="refit", **options)


@fixed_are_warned_of
@pytest.mark.parametrize(
    "estimator",
    [LogisticRegression(class_weight="balanced"), make_pipeline(SelectKBest(k=2), LSSVC(class_weight=BY_CLASS))],
    ids=["LogisticRegression", "SelectKBest"],
)
def test_class_weights_of_refits_cannot_stay(estimator):
    with pytest.raises(ValueError, match="weights='fixed'"):
        permutation_test_score(estimator, X, CODES, cv=FOLDS, n_permutations=2, weights="fixed")


@pytest.mark.parametrize("class_weight", [BY_CLASS, "balanced"], ids=["dict", "balanced"])
def test_class_weights_behind_steps(class_weight):
    last = LSSVC(gamma=0.1, class_weight=class_weight)
    fixed = factors(last, class_weight, CODES, np.ones(N))[CODES]
    plain = make_pipeline(StandardScaler(), LSSVC(gamma=0.1))
    oracle = {"estimator": plain, "weight": lambda order: fixed, "name": "lssvc__sample_weight"}
    with pytest.warns(UserWarning, match="weights='fixed' keeps weights"):
        check(make_pipeline(StandardScaler(), last), X, CODES, weights="fixed", kind="one P per fold", oracle=oracle)
    if class_weight is BY_CLASS:  # a refit of foldless' own resolves "balanced" on its training part
        check(make_pipeline(StandardScaler(), last), X, CODES, kind="one P per fold")


# -- groups, strata, splitters -----------------------------------------------------------------------------------------

SPLITTERS = {
    "KFold": KFold(5, shuffle=True, random_state=0),
    "overlapping tests": ShuffleSplit(4, test_size=0.4, random_state=0),
    "GroupKFold": GroupKFold(4),
    "gaps": PARTS[:3],
    "masks": [(np.arange(N) % 3 > 0, np.arange(N) % 3 == 0), (np.arange(N) % 3 < 2, np.arange(N) % 3 == 2)],
    "negative indices": [(np.arange(N - 9), np.arange(-9, 0)), (np.arange(-30, 0), np.arange(10))],
}


def drawn(cv, y, groups=None):
    return [(np.arange(N)[train], np.arange(N)[test]) for train, test in skl.check_cv(cv, y).split(X, y, groups)]


@pytest.mark.parametrize("splitter", SPLITTERS)
@pytest.mark.parametrize(
    ("estimator", "y"),
    [(LSSVC(gamma=0.1), LABELS), (KFDA(gamma=0.1, penalty="coef"), LABELS), (Ridge(), OUTPUTS)],
    ids=["LSSVC", "KFDA coef", "Ridge"],
)
def test_any_splitter(estimator, y, splitter):
    cv, groups = SPLITTERS[splitter], GROUPS if splitter == "GroupKFold" else None
    result = permutation_test_score(estimator, X, y, cv=cv, groups=groups, n_permutations=M, random_state=7)
    assert_scores(result, refits(estimator, X, y, orders_of(N, groups), splits=drawn(cv, y, groups)))
    assert result.path.kind == "one fit"
    assert_array_equal(result.strata, groups)


@pytest.mark.parametrize("estimator", [LSSVC(gamma=0.1), KFDA(gamma=0.1, alpha=0.1)], ids=["LSSVC", "KFDA"])
def test_leave_one_out(estimator):
    X, y = labelled(3, n=18)
    check(estimator, X, y, cv=list(LeaveOneOut().split(X)), m=3)


def folds_of(splits):
    """The number of the fold that tests each row."""
    fold = np.empty(N, int)
    for number, (_, test) in enumerate(splits):
        fold[test] = number
    return fold


def test_splits_are_five_by_default():
    folds = list(KFold(5).split(X))
    result = permutation_test_score(Ridge(), X, VALUES, n_permutations=M, random_state=7)
    assert_scores(result, refits(Ridge(), X, VALUES, orders_of(N), splits=folds))
    assert result.strata is None


@pytest.mark.parametrize("cv", [None, 4, StratifiedKFold(4, shuffle=True, random_state=1)], ids=["", "4", "shuffled"])
def test_labels_stay_in_folds_that_were_balanced_by_them(cv):
    """Stratified folds of the true labels would be unbalanced for labels permuted across them."""
    folds = list(skl.check_cv(cv, LABELS, classifier=True).split(X, LABELS))
    result = permutation_test_score(LSSVC(gamma=0.1), X, LABELS, cv=cv, n_permutations=M, random_state=7)
    fold = folds_of(folds)
    assert_array_equal(result.strata, fold)
    orders = orders_of(N, fold)
    for order in orders:
        assert all(sorted(LABELS[order][test]) == sorted(LABELS[test]) for _, test in folds)
    assert_scores(result, refits(LSSVC(gamma=0.1), X, LABELS, orders, splits=folds))


def test_labels_stay_in_strata_within_balanced_folds():
    for cv, groups, strata in ((StratifiedGroupKFold(3), GROUPS, None), (StratifiedKFold(3), None, STRATA)):
        folds = list(cv.split(X, LABELS, groups))
        options = {"cv": cv, "groups": groups, "strata": strata, "n_permutations": M, "random_state": 7}
        result = permutation_test_score(LSSVC(gamma=0.1), X, LABELS, **options)
        pairs = list(zip(GROUPS if strata is None else STRATA, folds_of(folds), strict=True))
        assert len(set(zip(pairs, result.strata, strict=True))) == len(set(pairs)) == len(set(result.strata))
        assert_scores(result, refits(LSSVC(gamma=0.1), X, LABELS, orders_of(N, result.strata), splits=folds))


@pytest.mark.parametrize(
    "cv",
    [
        StratifiedShuffleSplit(3, random_state=0),
        StratifiedShuffleSplit(2, test_size=0.5, random_state=0),  # as many tested rows as there are
        RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0),
    ],
    ids=["gaps", "halves", "twice"],
)
def test_balanced_splits_that_are_no_partition_go_with_the_labels(cv):
    result = permutation_test_score(LSSVC(gamma=0.1), X, LABELS, cv=cv, n_permutations=M, strata=STRATA, random_state=7)
    assert_array_equal(result.strata, STRATA)
    expected = []
    for order in orders_of(N, STRATA):
        place = np.argsort(order)  # the row that has taken over the label and the place of each row
        scores = []
        for train, test in cv.split(X, LABELS):
            fitted = LSSVC(gamma=0.1).fit(X[place[train]], LABELS[train])
            scores.append(fitted.score(X[place[test]], LABELS[test]))
        expected.append(np.mean(scores))
    assert_close([result.score, *result.permutation_scores], expected)


def test_fixed_class_weights_are_said_to_favour_the_true_labels():
    with pytest.warns(UserWarning, match="p-values may be too small"):
        permutation_test_score(LSSVC(class_weight="balanced"), X, LABELS, weights="fixed", n_permutations=2)


@pytest.mark.parametrize("groups", [None, GROUPS], ids=["", "groups"])
@pytest.mark.parametrize("strata", [None, STRATA], ids=["", "strata"])
def test_labels_are_permuted_within_strata_or_else_within_groups(groups, strata):
    options = {"cv": GroupKFold(4) if groups is not None else FOLDS, "groups": groups, "strata": strata}
    result = permutation_test_score(LSSVC(gamma=0.1), X, LABELS, n_permutations=M, random_state=7, **options)
    orders = orders_of(N, groups if strata is None else strata)
    splits = FOLDS if groups is None else list(GroupKFold(4).split(X, LABELS, groups))
    assert_scores(result, refits(LSSVC(gamma=0.1), X, LABELS, orders, splits=splits))


def test_permutations_that_change_nothing_are_pointed_out():
    with pytest.warns(UserWarning, match="y is constant within every group"):
        result = permutation_test_score(LSSVC(), X, CODES, strata=CODES, n_permutations=3)
    assert result.pvalue == 1.0


def test_a_permutation_that_happens_to_change_nothing_is_one_of_many():
    y = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    unchanged = [(y[order] == y).all() for order in permutations(6, 10, 0)]
    assert any(unchanged)
    assert not all(unchanged)
    options = {"cv": KFold(2), "n_permutations": 10, "random_state": 0, "scoring": "neg_mean_squared_error"}
    result = permutation_test_score(LSSVR(gamma=0.1), X[:6], y, **options)
    assert_close(result.permutation_scores[unchanged], np.full(sum(unchanged), result.score))


def test_training_parts_that_repeat_rows_are_refitted():
    rng = np.random.default_rng(0)
    splits = [(rng.choice(train, len(train)), test) for train, test in FOLDS]
    with pytest.warns(RefitWarning, match="repeats rows"):
        check(LSSVC(gamma=0.1), X, LABELS, cv=splits, scoring=margin, m=2, kind="refit")


def test_random_states_that_are_instances_are_drawn_from_once():
    state = np.random.RandomState(7)
    result = permutation_test_score(LSSVC(), X, LABELS, cv=FOLDS, n_permutations=M, random_state=state)
    other = permutation_test_score(LSSVC(), X, LABELS, cv=FOLDS, n_permutations=M, random_state=7)
    assert_array_equal(result[1], other[1])
    again = permutation_test_score(LSSVC(), X, LABELS, cv=FOLDS, n_permutations=M, random_state=state)
    assert not np.array_equal(result[1], again[1])


# -- pipelines and other estimators ------------------------------------------------------------------------------------

MISSING = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
WORDS = np.column_stack([LABELS, RNG.choice(["x", "y", "z"], N), RNG.choice(["p", "q"], N)]).astype(object)
WORDS[::2, 0] = "ant"
PIPELINES = {
    "scaler": (make_pipeline(StandardScaler(), LSSVC(gamma=0.1)), X, LABELS),
    "scaler, PCA": (make_pipeline(StandardScaler(), PCA(3), KFDA(gamma=0.1)), X, LABELS),
    "PCA, two classes": (make_pipeline(PCA(3), KFDA(gamma=0.1, threshold="centroid")), X, BINARY),
    "PCA, coef": (make_pipeline(PCA(3), KFDA(gamma=0.1, penalty="coef")), X, LABELS),
    "imputer": (make_pipeline(SimpleImputer(), RidgeClassifier()), MISSING, LABELS),
    "one hot": (make_pipeline(OneHotEncoder(handle_unknown="ignore"), LSSVC("linear")), WORDS, LABELS),
    "scaler, values": (make_pipeline(StandardScaler(), Ridge()), X, OUTPUTS),
    "imputer, values": (make_pipeline(SimpleImputer(), KernelRidge(kernel="rbf", gamma=0.1)), MISSING, VALUES),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_behind_steps_that_never_see_y(name):
    pipeline, features, y = PIPELINES[name]
    result = check(pipeline, features, y, kind="one P per fold")
    assert type(pipeline[0]).__name__ in result.path.reason


@pytest.mark.parametrize("cv", [PARTS[:3], drawn(ShuffleSplit(3, test_size=0.4, random_state=0), LABELS)])
def test_odd_splits_behind_steps(cv):
    check(make_pipeline(StandardScaler(), LSSVC(gamma=0.1)), X, LABELS, cv=cv, scoring=margin, kind="one P per fold")


@pytest.mark.parametrize("last", [LSSVC(gamma=0.1), KFDA(gamma=0.1), RidgeClassifier()], ids=str)
def test_weights_behind_steps(last):
    pipeline = make_pipeline(StandardScaler(), last)
    name = f"{type(last).__name__.lower()}__sample_weight"
    oracle = {"weight": lambda order: WEIGHT, "name": name}
    check(pipeline, X, LABELS, params={name: WEIGHT}, kind="one P per fold", oracle=oracle)
    oracle["weight"] = lambda order: WEIGHT[order]
    options = {"params": {name: WEIGHT}, "weights": "permuted", "kind": "one P per fold"}
    check(pipeline, X, LABELS, oracle=oracle, **options)


def test_weights_of_several_steps():
    pipeline = make_pipeline(StandardScaler(), LSSVC(gamma=0.1))
    params = {"standardscaler__sample_weight": WEIGHT + 0.1, "lssvc__sample_weight": WEIGHT}
    with pytest.warns(RefitWarning, match="standardscaler__sample_weight"):
        check(pipeline, X, LABELS, scoring=margin, params=params, m=2, kind="refit", oracle=params)


def test_rows_that_are_neither_trained_on_nor_tested_are_not_looked_at():
    words = WORDS.copy()
    words[0, 1] = "never seen elsewhere"
    splits = [(np.setdiff1d(train, [0]), np.setdiff1d(test, [0])) for train, test in FOLDS]
    pipeline = make_pipeline(OneHotEncoder(), LSSVC("linear"))
    check(pipeline, words, LABELS, cv=splits, m=2, kind="one P per fold")


def test_steps_that_only_pass_on():
    pipeline = make_pipeline("passthrough", LSSVC(gamma=0.1))
    check(pipeline, X, LABELS)
    check(pipeline, X, LABELS, scoring=lambda model, X, y: model.score(X, y) + len(model.steps), m=2)
    params = {"params": {"lssvc__sample_weight": WEIGHT}}
    oracle = {"weight": lambda order: WEIGHT, "name": "lssvc__sample_weight"}
    check(pipeline, X, LABELS, oracle=oracle, **params)


def test_scores_that_steps_stand_in_the_way_of():
    """Of a threshold that leave-one-out scores choose, and of functions of the fitted pipeline."""
    for last, scoring in ((KFDA(gamma=0.1, threshold="loo"), None), (LSSVC(gamma=0.1), plain_score)):
        with pytest.warns(RefitWarning, match="behind fitted steps"):
            check(make_pipeline(StandardScaler(), last), X, BINARY, scoring=scoring, m=2, kind="refit")


@pytest.mark.parametrize(
    ("estimator", "y", "reason"),
    [
        (LogisticRegression(), LABELS, "not a least-squares model"),
        (make_pipeline(SelectKBest(k=2), LSSVC(gamma=0.1)), LABELS, "may learn from y"),
        (make_pipeline(StandardScaler(), LogisticRegression()), LABELS, "not a least-squares model"),
        (Ridge(positive=True), VALUES, "positive=True"),
        (KernelRidge(kernel="sigmoid", gamma=0.01), VALUES, "not positive semi-definite"),
    ],
    ids=["LogisticRegression", "SelectKBest", "scaler, LogisticRegression", "positive", "sigmoid"],
)
def test_what_has_no_closed_form_is_refitted_and_says_so(estimator, y, reason):
    with pytest.warns(RefitWarning, match=f"is refitted for every permutation: .*{reason}") as caught:
        result = check(estimator, X, y, m=2, kind="refit")
    assert len(caught) == 1
    assert reason in result.path.reason


def test_steps_that_see_kernels():
    K = kernels.resolve("rbf", X, gamma=0.1).gram(X)
    pipeline = make_pipeline(KernelCenterer(), LSSVC("precomputed"))
    with pytest.warns(RefitWarning, match="see kernels, not rows"):
        check(pipeline, K, LABELS, m=2, kind="refit")


def test_weights_of_refits():
    for weights, weight in ((None, lambda order: WEIGHT), ("permuted", lambda order: WEIGHT[order])):
        with pytest.warns(RefitWarning, match="LogisticRegression"):
            check(
                LogisticRegression(),
                X,
                LABELS,
                m=2,
                weights=weights,
                params={"sample_weight": WEIGHT},
                kind="refit",
                oracle={"weight": weight},
            )


# -- confounds ---------------------------------------------------------------------------------------------------------


class Shown(ClassifierMixin, BaseEstimator):
    """An estimator whose X carries its confounds behind the features, to show them in predictions."""

    def __init__(self, estimator):
        self.estimator = estimator

    def fit(self, X, y, sample_weight=None):
        self.model_ = clone(self.estimator).fit(X[:, :-2], y, sample_weight, confounds=X[:, -2:])
        self.classes_ = getattr(self.model_, "classes_", None)
        return self

    def predict(self, X):
        return self.model_.predict(X[:, :-2], confounds=X[:, -2:])


BOTH = np.hstack([X, CONFOUNDS])


@pytest.mark.parametrize(
    ("estimator", "y"),
    [each for each in EVERYONE if not each.id.startswith(("Ridge", "KernelRidge", "LSSVC poly", "KFDA linear"))],
)
def test_confounds_are_left_out_of_the_scores(estimator, y):
    check(estimator, X, y, confounds=CONFOUNDS, oracle={"confounds": CONFOUNDS})


def test_confounds_and_weights():
    for estimator in (LSSVC(gamma=0.1), KFDA(gamma=0.1), KFDA(gamma=0.1, penalty="coef", fit_intercept=False)):
        options = {"confounds": CONFOUNDS, "params": {"sample_weight": WEIGHT}}
        check(estimator, X, LABELS, oracle={"weight": lambda order: WEIGHT, "confounds": CONFOUNDS}, **options)
        oracle = {"weight": lambda order: WEIGHT[order], "confounds": CONFOUNDS}
        check(estimator, X, LABELS, weights="permuted", kind="one P per fold", oracle=oracle, m=2, **options)


@pytest.mark.parametrize("kind", ["Ridge", "RidgeClassifier", "KernelRidge"])
def test_confounds_of_scikit_learns_estimators(kind):
    """Their fit takes none: foldless' equivalent stands in for them."""
    estimator, twin, y = {
        "Ridge": (Ridge(alpha=2.0), LSSVR("linear", alpha=2.0), OUTPUTS),
        "RidgeClassifier": (RidgeClassifier(alpha=2.0), LSSVC("linear", alpha=2.0), LABELS),
        "KernelRidge": (KernelRidge(kernel="rbf", gamma=0.1), LSSVR(gamma=0.1, fit_intercept=False), VALUES),
    }[kind]
    check(estimator, X, y, confounds=CONFOUNDS, oracle={"estimator": twin, "confounds": CONFOUNDS})


@pytest.mark.parametrize(
    ("estimator", "y"),
    [(LSSVC(gamma=0.1), LABELS), (LSSVC("linear", fit_intercept=False), BINARY), (KFDA(gamma=0.1), BINARY)],
    ids=["LSSVC", "no intercept", "KFDA"],
)
def test_confounds_kept_in_the_score(estimator, y):
    result = permutation_test_score(
        estimator, X, y, cv=FOLDS, n_permutations=M, random_state=7, confounds=CONFOUNDS, confounds_in_score=True
    )
    scores = refits(Shown(estimator), BOTH, y, orders_of(N), scoring="accuracy")
    assert_scores(result, scores)
    assert not np.array_equal(scores, refits(estimator, X, y, orders_of(N), confounds=CONFOUNDS))


def test_confounds_kept_in_the_score_where_weights_follow():
    options = {"confounds": CONFOUNDS, "confounds_in_score": True, "weights": "permuted", "cv": FOLDS}
    options |= {"params": {"sample_weight": WEIGHT}, "n_permutations": M, "random_state": 7}
    result = permutation_test_score(LSSVC(gamma=0.1), X, LABELS, **options)
    shown = {"scoring": "accuracy", "weight": lambda order: WEIGHT[order]}
    assert_scores(result, refits(Shown(LSSVC(gamma=0.1)), BOTH, LABELS, orders_of(N), **shown))


def test_confounds_behind_steps():
    for last in (LSSVC(gamma=0.1), KFDA(gamma=0.1)):
        name = f"{type(last).__name__.lower()}__confounds"
        options = {"confounds": CONFOUNDS, "oracle": {name: CONFOUNDS}}
        check(make_pipeline(StandardScaler(), last), X, LABELS, kind="one P per fold", **options)
        with pytest.warns(RefitWarning):
            check(make_pipeline(SelectKBest(k=3), last), X, LABELS, m=2, kind="refit", **options)


def test_confounds_and_functions_of_the_estimator():
    oracle = {"confounds": CONFOUNDS}
    for estimator in (LSSVC(gamma=0.1), KFDA(gamma=0.1)):
        check(estimator, X, LABELS, confounds=CONFOUNDS, scoring=plain_score, m=2, oracle=oracle)
    for estimator, in_score in ((LSSVC(gamma=0.1), True), (RidgeClassifier(), False)):
        options = {"confounds": CONFOUNDS, "confounds_in_score": in_score, "scoring": plain_score}
        with pytest.raises(ValueError, match="confounds"):
            permutation_test_score(estimator, X, LABELS, n_permutations=2, **options)


def test_confounds_of_a_refit_are_refused():
    with pytest.raises(ValueError, match="confounds: LogisticRegression"), pytest.warns(RefitWarning):
        permutation_test_score(LogisticRegression(), X, LABELS, n_permutations=2, confounds=CONFOUNDS)


def test_confounds_stay_with_the_rows_when_splits_are_drawn_anew():
    options = {"n_permutations": 3, "random_state": 7, "confounds": CONFOUNDS, "resplit": True}
    result = permutation_test_score(KFDA(gamma=0.1), X, LABELS, cv=4, **options)
    cv = StratifiedKFold(4)
    for score, order in zip(np.r_[result.score, result.permutation_scores], orders_of(N, m=3), strict=True):
        splits = list(cv.split(X, LABELS[order]))
        assert_close(score, refits(KFDA(gamma=0.1), X, LABELS, [order], splits=splits, confounds=CONFOUNDS)[0])


# -- training parts that lack a class ----------------------------------------------------------------------------------


class Present(ClassifierMixin, BaseEstimator):
    """The estimator refitted on the classes there are; one class is voted for."""

    def __init__(self, estimator):
        self.estimator = estimator

    def fit(self, X, y, sample_weight=None):
        self.classes_, model = np.unique(y), clone(self.estimator)
        last = model[-1] if hasattr(model, "steps") else model
        if getattr(last, "priors", None) is not None:
            last.set_params(priors=np.asarray(last.priors)[self.classes_])
        if getattr(last, "n_components", None) is not None:
            last.set_params(n_components=min(last.n_components, len(self.classes_) - 1))
        if isinstance(getattr(last, "class_weight", None), dict):
            last.set_params(class_weight={k: v for k, v in last.class_weight.items() if k in self.classes_})
        extra = {} if sample_weight is None else {"sample_weight": sample_weight}
        self.model_ = model.fit(X, y, **extra) if len(self.classes_) > 1 else None
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0]) if self.model_ is None else self.model_.predict(X)


RARE = np.repeat([0, 1, 2], [9, 8, 3])
TWO_RARE = (RARE == 2).astype(int)
FEW_X = np.random.default_rng(2).normal(size=(20, 3)) + 0.7 * RARE[:, None]
FEW_WEIGHT = np.random.default_rng(3).uniform(0.3, 3.0, 20)
HALVES = [(np.arange(0, 20, 2), np.arange(1, 20, 2)), (np.arange(1, 20, 3), np.arange(0, 20, 3))]
LACKING = {
    "LSSVC": LSSVC(gamma=0.1),
    "LSSVC coef": LSSVC(gamma=0.1, penalty="coef"),
    "LSSVC no intercept": LSSVC("linear", fit_intercept=False),
    "RidgeClassifier": RidgeClassifier(),
    "RidgeClassifier no intercept": RidgeClassifier(fit_intercept=False),
    "KFDA": KFDA(gamma=0.1, threshold="centroid"),
    "KFDA coef": KFDA(gamma=0.1, penalty="coef", threshold="centroid"),
    "KFDA no intercept": KFDA("linear", fit_intercept=False, threshold="centroid"),
    "KFDA two components": KFDA(gamma=0.1, n_components=2, threshold="centroid"),
    "KFDA priors": KFDA(gamma=0.1, priors=[0.2, 0.3, 0.5], threshold="centroid"),
}
LACKING_OF_TWO = {
    **{k: e for k, e in LACKING.items() if "components" not in k and "priors" not in k},
    **{f"KFDA {t}": KFDA(gamma=0.1, threshold=t) for t in ("pm1", "fisher")},
    **{f"KFDA {t} linear": KFDA("linear", threshold=t, fit_intercept=False) for t in ("pm1", "fisher")},
    "KFDA priors": KFDA(gamma=0.1, priors=[0.2, 0.8], threshold="centroid"),
}


def check_lacking(estimator, y, *, weight=None, scoring=None, cv=HALVES, m=12, **options):
    """The loop of refits on the classes present; some labelings must lack a class in some training part."""
    orders = orders_of(len(y), m=m)
    missing = sum(len(np.unique(y[order][train])) < len(np.unique(y)) for order in orders for train, _ in cv)
    assert missing >= 2
    given = {"cv": cv, "n_permutations": m, "random_state": 7, "scoring": scoring, **options}
    if weight is not None:
        given["params"] = {"sample_weight": weight}
    result = permutation_test_score(estimator, FEW_X, y, **given)
    own = None if weight is None else lambda order: weight[order] if options.get("weights") == "permuted" else weight
    assert_scores(result, refits(Present(estimator), FEW_X, y, orders, splits=cv, scoring="accuracy", weight=own))
    return result


@pytest.mark.parametrize("weight", [None, FEW_WEIGHT], ids=["", "weights"])
@pytest.mark.parametrize("name", LACKING)
def test_a_class_that_a_training_part_lacks_never_wins(name, weight):
    check_lacking(LACKING[name], RARE, weight=weight)


@pytest.mark.parametrize("weight", [None, FEW_WEIGHT], ids=["", "weights"])
@pytest.mark.parametrize("name", LACKING_OF_TWO)
def test_a_training_part_of_one_class_votes_for_it(name, weight):
    check_lacking(LACKING_OF_TWO[name], TWO_RARE, weight=weight)


def test_a_scorer_agrees_where_a_training_part_lacks_a_class():
    scoring = make_scorer(theirs.accuracy_score)
    for name in ("LSSVC no intercept", "KFDA"):
        for y in (RARE, TWO_RARE):
            assert "columns" in check_lacking(LACKING[name], y, scoring=scoring).path.reason


@pytest.mark.parametrize("name", ["LSSVC", "KFDA", "RidgeClassifier", "KFDA priors", "KFDA two components"])
def test_behind_steps_a_training_part_may_lack_a_class(name):
    """Of the true labels, too."""
    splits = [(np.arange(17), np.arange(17, 20)), *HALVES]
    check_lacking(make_pipeline(StandardScaler(), LACKING[name]), RARE, cv=splits, m=6)
    if name in ("LSSVC", "KFDA", "RidgeClassifier"):
        check_lacking(make_pipeline(StandardScaler(), LACKING[name]), TWO_RARE, cv=splits, m=6)


def test_with_three_of_four_classes_left_a_discriminant_is_the_refit():
    y = np.repeat([0, 1, 2, 3], [7, 6, 4, 3])
    check_lacking(KFDA(gamma=0.1), y)
    check_lacking(KFDA(gamma=0.1, priors=[0.1, 0.2, 0.3, 0.4]), y)


@pytest.mark.parametrize(
    "options",
    [
        {"estimator": LSSVC(), "scoring": plain_score},
        {"estimator": KFDA(threshold="loo")},
        {"estimator": LSSVC(class_weight={0: 2.0})},
        {"estimator": RidgeClassifier(class_weight={0: 2.0})},
    ],
    ids=["callable", "loo", "class weights", "RidgeClassifier"],
)
def test_what_needs_all_classes_says_which_split_lacks_one(options):
    with pytest.raises(ValueError, match=r"cv: a labeling leaves the training part of split . without class .*1"):
        permutation_test_score(X=FEW_X, y=TWO_RARE, cv=HALVES, n_permutations=12, random_state=7, **options)


def test_sample_weights_that_follow_where_a_training_part_lacks_a_class():
    check_lacking(LSSVC(gamma=0.1), RARE, weight=FEW_WEIGHT, weights="permuted")


# -- splits drawn anew -------------------------------------------------------------------------------------------------

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


@pytest.mark.filterwarnings("ignore::foldless.model_selection.RefitWarning", "ignore:y_pred contains classes")
@pytest.mark.parametrize(("name", "splitter"), ANEW_CASES)
def test_splits_drawn_anew_give_scikit_learns_numbers(name, splitter):
    estimator, y, scorings = ANEW[name]
    groups = GROUPS if "Group" in splitter else None
    for scoring in scorings:
        options = {"groups": groups, "scoring": scoring, "n_permutations": 5, "random_state": 5}
        score, null, p = skl.permutation_test_score(estimator, X, y, cv=ANEW_SPLITTERS[splitter], **options)
        result = permutation_test_score(estimator, X, y, cv=ANEW_SPLITTERS[splitter], resplit=True, **options)
        assert_allclose(result.score, score, rtol=0, atol=1e-12)
        assert_allclose(result.permutation_scores, null, rtol=0, atol=1e-12)
        assert result.pvalue == p


def test_splits_drawn_anew_differ_from_those_that_stay():
    """And follow the permuted labels: every fold has its share of every class."""
    options = {"cv": 4, "n_permutations": 20, "random_state": 5}
    fixed = permutation_test_score(LSSVC(gamma=0.1), X, LABELS, **options)
    anew = permutation_test_score(LSSVC(gamma=0.1), X, LABELS, resplit=True, **options)
    assert fixed.score == anew.score
    assert not np.array_equal(fixed.permutation_scores, anew.permutation_scores)


def score_of(values):
    """A scorer that returns these values, one after the other."""
    left = iter(values)
    return lambda model, X, y: next(left)


@pytest.mark.filterwarnings("ignore::foldless.model_selection.RefitWarning")
def test_scores_that_are_equal_up_to_rounding_are_equal():
    """In the precision of X; without a margin when scikit-learn's numbers are promised."""
    options = {"cv": [(np.arange(30), np.arange(30, N))], "n_permutations": 3}
    last_digit, seventh_digit = [0.1 + 0.2, 0.3, 0.3, 0.1 + 0.2], [0.3 + 1e-7, 0.3, 0.3, 0.3 + 1e-7]
    single = X.astype(np.float32)
    for features, scores, resplit, p in (
        (X, last_digit, False, 1.0),
        (X, last_digit, True, 0.5),
        (X, seventh_digit, False, 0.5),
        (single, seventh_digit, False, 1.0),
        (single, seventh_digit, True, 0.5),
    ):
        options |= {"scoring": score_of(scores), "resplit": resplit}
        assert permutation_test_score(DummyClassifier(), features, LABELS, **options).pvalue == p


BINARY_24, NINE = np.arange(24) % 2, np.arange(36) % 9
TIED = {  # estimator, y, splitter, scoring
    "LSSVC": (LSSVC(gamma=0.5), BINARY_24, StratifiedKFold(4), "roc_auc"),
    "LSSVC linear": (LSSVC("linear"), BINARY_24, StratifiedKFold(4), "roc_auc"),
    "KFDA": (KFDA(gamma=0.5), BINARY_24, StratifiedKFold(4), "roc_auc"),
    "RidgeClassifier": (RidgeClassifier(), BINARY_24, StratifiedKFold(4), "roc_auc"),
    "one class in some test parts": (RidgeClassifier(), BINARY_24, KFold(8), "roc_auc"),
    "LSSVC, nine classes": (LSSVC(gamma=0.5), NINE, StratifiedKFold(4), "balanced_accuracy"),
    "RidgeClassifier, nine classes": (RidgeClassifier(), NINE, StratifiedKFold(3), "balanced_accuracy"),
    "KFDA, accuracy": (KFDA(gamma=0.5), NINE, StratifiedKFold(4), "accuracy"),
}


@pytest.mark.filterwarnings("ignore:.* permuted scores are not defined", "ignore:Only one class is present")
@pytest.mark.parametrize("name", TIED)
def test_scores_of_labels_are_scikit_learns_to_the_last_bit(name):
    """Scores of few rows tie with the true one all the time; a last bit decides whether they count."""
    estimator, y, cv, scoring = TIED[name]
    for seed in (0, 33):
        features = np.random.default_rng(seed).normal(size=(len(y), 3))
        options = {"cv": cv, "scoring": scoring, "n_permutations": 20, "random_state": seed}
        score, null, p = skl.permutation_test_score(estimator, features, y, **options)
        result = permutation_test_score(estimator, features, y, resplit=True, **options)
        assert_array_equal(np.r_[result.score, result.permutation_scores], np.r_[score, null])
        assert result.pvalue == p


def test_rows_that_are_equal_tie_when_splits_are_drawn_anew():
    """P knows them as different rows, and rounds their decisions differently."""
    features = np.random.default_rng(0).normal(size=(24, 3)).round()
    options = {"cv": 4, "scoring": "roc_auc", "n_permutations": 20}
    for estimator in (LSSVC("linear"), RidgeClassifier()):
        score, null, p = skl.permutation_test_score(estimator, features, BINARY_24, **options)
        result = permutation_test_score(estimator, features, BINARY_24, resplit=True, **options)
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
def test_values_that_stay_in_place_tie_with_the_true_ones(estimator):
    """Half of the permutations of two rows change nothing; how many are worked on at a time must not matter."""
    rng = np.random.default_rng(0)
    features, y = rng.normal(size=(N, 300)), rng.normal(size=N)
    options = {"groups": np.r_[0, np.arange(N - 1)], "cv": KFold(4), "n_permutations": 10, "random_state": 0}
    for scoring in ("r2", "neg_mean_squared_error"):
        score, null, p = skl.permutation_test_score(estimator, features, y, scoring=scoring, **options)
        for memory_limit in (2**29, 800 * N):  # all at once; ten, then the last alone
            more = {"scoring": scoring, "memory_limit": memory_limit}
            result = permutation_test_score(estimator, features, y, resplit=True, **options, **more)
            assert_array_equal(result.permutation_scores == result.score, null == score)
            assert result.pvalue == p


@pytest.mark.filterwarnings("ignore:Only one class is present")
def test_a_true_score_that_is_not_defined():
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
                result = permutation_test_score(estimator, X, y, resplit=True, **options)
            assert_array_equal(result.permutation_scores, np.column_stack([null] * 2) if family else null)
            assert np.isnan(result.score).all()
            assert np.all(result.pvalue == p)
            assert not family or np.isnan(result.pvalue_fwe).all()
        with pytest.warns(UserWarning, match="score of the true labels is not defined .* its p-value is nan"):
            assert np.isnan(permutation_test_score(estimator, features, y, **options).pvalue)


def test_weights_with_splits_drawn_anew():
    for weights in (None, "permuted"):
        options = {"n_permutations": 3, "random_state": 7, "params": {"sample_weight": WEIGHT}, "resplit": True}
        result = permutation_test_score(LSSVC(gamma=0.1), X, LABELS, cv=4, weights=weights, **options)
        for score, order in zip(np.r_[result.score, result.permutation_scores], orders_of(N, m=3), strict=True):
            splits = list(StratifiedKFold(4).split(X, LABELS[order]))
            own = WEIGHT[order] if weights == "permuted" else WEIGHT
            assert_close(score, refits(LSSVC(gamma=0.1), X, LABELS, [order], splits=splits, sample_weight=own)[0])


# -- scorers -----------------------------------------------------------------------------------------------------------

LARGE_TESTS = list(StratifiedKFold(2, shuffle=True, random_state=1).split(X, CODES))


@pytest.mark.parametrize("name", [name for name, metric in METRICS.items() if metric.greater])
def test_metrics_by_name(name):
    metric = METRICS[name]
    y = VALUES if not metric.labels else CODES > 0
    estimator = LSSVC(gamma=0.1) if metric.labels else LSSVR(gamma=0.1)
    scoring = metric.scorer() if name == "correlation" else name
    result = check(estimator, X, y, cv=LARGE_TESTS, scoring=name, oracle={"scoring": scoring})
    assert (result.scoring, result.greater_is_better) == (name, True)
    if not metric.labels:
        check(LSSVR(gamma=0.1), X, OUTPUTS, scoring=name, oracle={"scoring": scoring})
    elif metric.classes is None:
        check(KFDA(gamma=0.1), X, LABELS, cv=LARGE_TESTS, scoring=name)


@pytest.mark.parametrize(
    ("estimator", "kind"),
    [(LSSVC(gamma=0.1), "one fit"), (KFDA(gamma=0.1), "one fit"), (LogisticRegression(), "refit")],
    ids=["LSSVC", "KFDA", "LogisticRegression"],
)
@pytest.mark.filterwarnings("ignore::foldless.model_selection.RefitWarning")
def test_of_a_loss_the_smaller_scores_count(estimator, kind):
    scoring = make_scorer(lambda truth, labels: 1 - theirs.balanced_accuracy_score(truth, labels))
    options = {"cv": LARGE_TESTS, "n_permutations": 9, "random_state": 7}
    result = permutation_test_score(estimator, X, LABELS, scoring="ber", **options)
    scores = refits(estimator, X, LABELS, orders_of(N, m=9), splits=LARGE_TESTS, scoring=scoring)
    assert_scores(result, scores, greater=False)
    assert not result.greater_is_better
    assert result.path.kind == kind
    accuracy = permutation_test_score(estimator, X, LABELS, scoring="balanced_accuracy", **options)
    assert result.pvalue == accuracy.pvalue < 0.5
    assert_close(result.permutation_scores, 1 - accuracy.permutation_scores)


@pytest.mark.parametrize(
    ("scoring", "y"),
    [
        ("f1_macro", LABELS),
        (make_scorer(theirs.cohen_kappa_score, weights="linear"), CODES),
        (make_scorer(theirs.fbeta_score, beta=2, pos_label="yes"), BINARY),
        (margin, LABELS),
        (margin, BINARY),
        ("explained_variance", OUTPUTS),
        ("neg_mean_absolute_error", VALUES),
        (make_scorer(theirs.median_absolute_error, greater_is_better=False), VALUES),
        (make_scorer(np.dot), VALUES),
        ("r2", CODES),
    ],
    ids=["f1", "kappa", "fbeta", "margin-3", "margin-2", "outputs", "values", "loss", "vectors", "values of labels"],
)
def test_scorers_of_predictions_and_decisions_take_columns(scoring, y):
    estimator = LSSVR(gamma=0.1) if y.dtype == float else LSSVC(gamma=0.1)
    result = check(estimator, X, y, cv=LARGE_TESTS, scoring=scoring)
    assert "permutations are columns" in result.path.reason
    if isinstance(scoring, str):
        assert result.scoring == scoring
    check(make_pipeline(PCA(3), estimator), X, y, cv=LARGE_TESTS, scoring=scoring, kind="one P per fold", m=2)


@pytest.mark.parametrize(
    ("estimator", "scoring", "y"),
    [
        (LSSVC(gamma=0.1), "top_k_accuracy", LABELS),
        (KFDA(gamma=0.1), margin, LABELS),
        (LSSVC(gamma=0.1), "average_precision", CODES > 0),
        (KFDA(gamma=0.1, threshold="loo"), "roc_auc", BINARY),
        (KFDA(gamma=0.1, threshold="loo"), "f1_macro", BINARY),
        (LSSVC(gamma=0.1, calibration="sigmoid"), "neg_log_loss", LABELS),
        (KFDA(gamma=0.1, calibration="sigmoid"), "roc_auc_ovr", LABELS),
        (KFDA(gamma=0.1, calibration="isotonic", penalty="coef"), "neg_brier_score", CODES > 0),
        (LSSVC(gamma=0.1), plain_score, LABELS),
        (LSSVC("linear"), lambda model, X, y: np.abs(model.coef_).sum() + model.score(X, y), LABELS),
        (RidgeClassifier(), lambda model, X, y: np.abs(model.coef_).sum(), LABELS),
        (LSSVR(gamma=0.1), lambda model, X, y: -np.abs(model.predict(X) - y).max(), VALUES),
        (Ridge(), lambda model, X, y: np.abs(model.coef_).sum(), OUTPUTS),
    ],
    ids=[
        "top k",
        "margin of KFDA",
        "average precision",
        "cut",
        "cut, f1",
        "log loss",
        "roc_auc_ovr",
        "brier",
        "callable",
        "coef_",
        "RidgeClassifier",
        "values",
        "Ridge",
    ],
)
def test_other_scorers_are_asked_one_by_one(estimator, scoring, y):
    result = check(estimator, X, y, cv=LARGE_TESTS, scoring=scoring, m=3)
    assert "this score is asked for one by one" in result.path.reason


def test_scorers_asked_one_by_one_with_weights_and_splits_drawn_anew():
    options = {"n_permutations": 3, "random_state": 7, "params": {"sample_weight": WEIGHT}, "resplit": True}
    result = permutation_test_score(LSSVC(gamma=0.1), X, LABELS, cv=3, scoring=plain_score, **options)
    for score, order in zip(np.r_[result.score, result.permutation_scores], orders_of(N, m=3), strict=True):
        splits = list(StratifiedKFold(3).split(X, LABELS[order]))
        assert_close(score, refits(LSSVC(gamma=0.1), X, LABELS, [order], splits=splits, sample_weight=WEIGHT)[0])


def test_names_of_scorers():
    def own_score(model, X, y):
        return model.score(X, y)

    names = [(None, "accuracy"), ("f1_macro", "f1_macro"), (own_score, "own_score")]
    for scoring, name in names:
        assert permutation_test_score(LSSVC(), X, LABELS, n_permutations=1, scoring=scoring).scoring == name
    scoring = make_scorer(theirs.accuracy_score)
    assert permutation_test_score(LSSVC(), X, LABELS, n_permutations=1, scoring=scoring).scoring == str(scoring)
    assert permutation_test_score(Ridge(), X, VALUES, n_permutations=1).scoring == "r2"


def test_scores_that_are_not_defined_count_as_at_least_as_good():
    """A permuted test part with one class has no area under the curve."""
    y = (CODES > 0).astype(int)
    tests = [np.r_[np.flatnonzero(y == 0)[k : k + 2], np.flatnonzero(y == 1)[k : k + 2]] for k in (4, 8)]
    splits = [(np.setdiff1d(np.arange(N), test), test) for test in tests]
    undefined = np.array([any(np.ptp(y[order][test]) == 0 for test in tests) for order in orders_of(N, m=12)])
    assert 0 < undefined.sum() < 12
    with pytest.warns(UserWarning, match=f"{undefined.sum()} of 12 permuted scores are not defined"):
        result = permutation_test_score(LSSVC(), X, y, cv=splits, n_permutations=12, random_state=7, scoring="roc_auc")
    assert_array_equal(np.isnan(result.permutation_scores), undefined[1:])
    worse = result.permutation_scores < result.score - 1e-9
    assert worse.any()
    assert result.pvalue == (13 - worse.sum()) / 13


def test_a_true_score_that_is_not_defined_has_no_p_value():
    with pytest.warns(UserWarning, match="the score of the true labels is not defined"):
        result = permutation_test_score(LSSVC(), X, LABELS, n_permutations=2, scoring=lambda model, X, y: np.nan)
    assert np.isnan(result.pvalue)
    assert "nan" in repr(result)


# -- running -----------------------------------------------------------------------------------------------------------

WAYS = {
    "columns": (LSSVR(gamma=0.1), VALUES, None),
    "columns, labels": (KFDA(gamma=0.1), LABELS, None),
    "steps": (make_pipeline(PCA(3), LSSVC(gamma=0.1)), LABELS, margin),
    "one by one": (KFDA(gamma=0.1), LABELS, margin),
    "a P each": (LSSVC(gamma=0.1, class_weight="balanced"), LABELS, margin),
}


@pytest.mark.parametrize(
    ("way", "resplit"), [(way, False) for way in WAYS] + [(way, True) for way in WAYS if way != "steps"]
)
def test_the_batch_size_makes_no_difference(way, resplit):
    estimator, y, scoring = WAYS[way]
    options = {"cv": 3, "n_permutations": 9, "scoring": scoring, "resplit": resplit}
    expected = permutation_test_score(estimator, X, y, **options)
    for memory_limit in (1, 3 * 8 * 8 * N * 2):
        result = permutation_test_score(estimator, X, y, memory_limit=memory_limit, **options)
        assert_allclose(result.permutation_scores, expected.permutation_scores, rtol=1e-12, atol=1e-14)
        assert (result.score, result.pvalue) == pytest.approx((expected.score, expected.pvalue), rel=1e-12)


def test_batches_fit_the_memory_they_are_given(monkeypatch):
    widths = []

    class Watched(Fitted):
        def __init__(self, solver, labelings):
            widths.append(len(labelings))
            super().__init__(solver, labelings)

    monkeypatch.setattr(_labelings, "Fitted", Watched)
    column = N * 8 * _labelings.ARRAYS
    for estimator, columns in ((LSSVC(), 2), (LSSVC(fit_intercept=False), 3)):
        for per_batch in (1, 2, 5):
            widths.clear()
            permutation_test_score(
                estimator, X, LABELS, cv=3, n_permutations=8, memory_limit=columns * column * per_batch + 1
            )
            assert max(widths) == per_batch
            assert sum(widths) == 9
    widths.clear()
    permutation_test_score(LSSVC(), X, LABELS, cv=3, n_permutations=8)
    assert widths == [9]


def process(model, X, y):
    """The process that scores, as a score."""
    return float(os.getpid())


def test_the_number_of_jobs_makes_no_difference():
    for way in ("columns", "one by one"):
        estimator, y, scoring = WAYS[way]
        options = {"cv": FOLDS, "n_permutations": 12, "scoring": scoring, "memory_limit": 1}
        expected = permutation_test_score(estimator, X, y, **options)
        result = permutation_test_score(estimator, X, y, n_jobs=2, **options)
        assert_allclose(result.permutation_scores, expected.permutation_scores, rtol=1e-12, atol=1e-14)
        assert result.pvalue == expected.pvalue
    elsewhere = permutation_test_score(LSSVC(), X, LABELS, n_permutations=2, n_jobs=2, scoring=process)
    assert os.getpid() not in [elsewhere.score, *elsewhere.permutation_scores]


def test_progress_goes_to_standard_error(capsys):
    permutation_test_score(LSSVC(), X, LABELS, n_permutations=3, memory_limit=1)
    assert capsys.readouterr() == ("", "")
    permutation_test_score(LSSVC(), X, LABELS, n_permutations=3, memory_limit=1, verbose=1)
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(r"(permutations: 3/3, \d+ s\n)+", err)


def interrupted(calls):
    """Accuracy, interrupted from the keyboard after so many calls."""
    left = iter(range(calls))

    def accuracy(truth, labels):
        if next(left, None) is None:
            raise KeyboardInterrupt
        return theirs.accuracy_score(truth, labels)

    return make_scorer(accuracy)


def test_an_interrupt_returns_what_is_done():
    options = {"cv": FOLDS, "n_permutations": 9, "random_state": 7, "memory_limit": 1}
    expected = permutation_test_score(LSSVC(gamma=0.1), X, LABELS, **options)
    scoring = interrupted(4 * (1 + 4) + 2)  # the true labels and four permutations, four folds each
    with pytest.warns(UserWarning, match="interrupted: the result rests on 4 of 9 permutations"):
        result = permutation_test_score(LSSVC(gamma=0.1), X, LABELS, scoring=scoring, **options)
    assert result.n_permutations == 4
    assert_array_equal(result.permutation_scores, expected.permutation_scores[:4])
    assert result.pvalue == share(expected.score, expected.permutation_scores[:4])


@pytest.mark.parametrize("calls", [0, 3, 4, 7])
def test_an_interrupt_before_the_first_permutation_is_done_is_one(calls):
    options = {"cv": FOLDS, "n_permutations": 9, "memory_limit": 1}
    with pytest.raises(KeyboardInterrupt):
        permutation_test_score(LSSVC(), X, LABELS, scoring=interrupted(calls), **options)


WARNED = {
    "is refitted for every permutation": lambda: {"estimator": LogisticRegression()},
    "do not change the labels": lambda: {"strata": CODES},
    "weights='fixed' keeps": lambda: {"weights": "fixed", "estimator": LSSVC(class_weight="balanced")},
    "are not defined": lambda: {"scoring": score_of([1.0, 0.5, np.nan]), "cv": FOLDS[:1]},
    "interrupted": lambda: {"scoring": interrupted(4 * 2), "memory_limit": 1},
}


@pytest.mark.parametrize("words", WARNED)
def test_warnings_point_to_the_call(words):
    options = {"estimator": LSSVC(), "cv": FOLDS, "n_permutations": 2, **WARNED[words]()}
    with pytest.warns(UserWarning, match=words) as caught:
        permutation_test_score(X=X, y=LABELS, **options)
    assert [warning.filename for warning in caught] == [__file__]


def test_features_that_say_nothing():
    """Decisions of all rows are equal: rounding decides no label and no order."""
    y = np.arange(N) % 2
    for scoring in ("roc_auc", "accuracy"):
        options = {"cv": FOLDS, "n_permutations": 20, "scoring": scoring}
        for estimator in (LSSVC(), LSSVC("linear", fit_intercept=False), KFDA(threshold="centroid")):
            result = permutation_test_score(estimator, np.zeros((N, 2)), y, **options)
            alone = permutation_test_score(estimator, np.zeros((N, 2)), y, memory_limit=1, **options)
            assert_array_equal(alone.permutation_scores, result.permutation_scores)
            if scoring == "roc_auc":
                assert (result.permutation_scores == 0.5).all()


def test_p_values_are_never_zero():
    X = np.r_[np.full((20, 1), -1.0), np.full((20, 1), 1.0)] + np.random.default_rng(0).normal(size=(40, 1)) * 1e-3
    y = np.arange(40) >= 20
    result = permutation_test_score(LSSVC("linear"), X, y, n_permutations=99)
    assert (result.score, result.pvalue) == (1.0, 1 / 100)


# -- metadata routing --------------------------------------------------------------------------------------------------


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def asking(estimator, **requests):
    """The estimator with its requests for sample weights, of fit and of score."""
    return estimator.set_fit_request(**requests.get("fit", {})).set_score_request(**requests.get("score", {}))


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("resplit", [False, True], ids=["", "resplit"])
def test_routed_groups_go_to_the_splitter(resplit):
    options = {"cv": GroupKFold(4), "params": {"groups": GROUPS}, "n_permutations": M, "random_state": 7}
    result = permutation_test_score(LSSVC(gamma=0.1), X, LABELS, resplit=resplit, **options)
    if resplit:
        assert_array_equal(result[1], skl.permutation_test_score(LSSVC(gamma=0.1), X, LABELS, **options)[1])
    else:
        splits = list(GroupKFold(4).split(X, LABELS, GROUPS))
        assert_scores(result, refits(LSSVC(gamma=0.1), X, LABELS, orders_of(N), splits=splits))
        with pytest.warns(RefitWarning):
            result = permutation_test_score(LogisticRegression(), X, LABELS, **options)
        assert_scores(result, refits(LogisticRegression(), X, LABELS, orders_of(N), splits=splits))


@pytest.mark.usefixtures("routing")
def test_groups_beside_routing_are_refused():
    with pytest.raises(ValueError, match="groups"):
        permutation_test_score(LSSVC(), X, LABELS, groups=GROUPS, n_permutations=2)


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("name", ["sample_weight", "alias"])
@pytest.mark.parametrize("weights", [None, "permuted"])
def test_routed_weights_of_the_fit(name, weights):
    request = {"sample_weight": True if name == "sample_weight" else name}
    estimator = asking(LSSVC(gamma=0.1), fit=request, score={"sample_weight": False})
    own = (lambda order: WEIGHT[order]) if weights == "permuted" else (lambda order: WEIGHT)
    kind = "one P per fold" if weights == "permuted" else "one fit"
    options = {"params": {name: WEIGHT}, "weights": weights, "kind": kind, "oracle": {"weight": own}}
    check(estimator, X, LABELS, **options)
    scoring = make_scorer(theirs.cohen_kappa_score).set_score_request(sample_weight=False)
    check(estimator, X, LABELS, scoring=scoring, m=2, **options)


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("scoring", [None, "scorer"])
def test_routed_weights_of_fit_and_score(scoring):
    estimator = asking(LSSVC(gamma=0.1), fit={"sample_weight": True}, score={"sample_weight": True})
    if scoring == "scorer":
        scoring = make_scorer(theirs.accuracy_score).set_score_request(sample_weight=True)
    options = {"cv": FOLDS, "n_permutations": M, "random_state": 7, "params": {"sample_weight": WEIGHT}}
    result = permutation_test_score(estimator, X, LABELS, scoring=scoring, **options)
    scores = []
    for order in orders_of(N):
        labels, own = LABELS[order], []
        for train, test in FOLDS:
            model = LSSVC(gamma=0.1).fit(X[train], labels[train], sample_weight=WEIGHT[train])
            own.append(model.score(X[test], labels[test], sample_weight=WEIGHT[test]))
        scores.append(np.mean(own))
    assert_scores(result, np.array(scores))


@pytest.mark.usefixtures("routing")
def test_routed_weights_of_a_score_alone():
    estimator = asking(LSSVC(gamma=0.1), fit={"sample_weight": False}, score={"sample_weight": False})
    scorer = make_scorer(theirs.accuracy_score).set_score_request(sample_weight=True)
    options = {"cv": FOLDS, "n_permutations": M, "random_state": 7, "params": {"sample_weight": WEIGHT}}
    result = permutation_test_score(estimator, X, LABELS, scoring=scorer, **options)
    scores = []
    for order in orders_of(N):
        labels = LABELS[order]
        own = [
            scorer(estimator.fit(X[train], labels[train]), X[test], labels[test], sample_weight=WEIGHT[test])
            for train, test in FOLDS
        ]
        scores.append(np.mean(own))
    assert_scores(result, np.array(scores))


@pytest.mark.usefixtures("routing")
def test_weights_that_follow_the_labels_and_weights_of_the_score_are_refused():
    estimator = asking(LSSVC(), fit={"sample_weight": True}, score={"sample_weight": True})
    with pytest.raises(ValueError, match="weights='permuted'"):
        permutation_test_score(
            estimator, X, LABELS, n_permutations=2, weights="permuted", params={"sample_weight": WEIGHT}
        )


@pytest.mark.usefixtures("routing")
def test_routed_weights_behind_steps():
    last = asking(LSSVC(gamma=0.1), fit={"sample_weight": True}, score={"sample_weight": False})
    pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), last)
    scoring = make_scorer(theirs.accuracy_score).set_score_request(sample_weight=False)
    options = {"scoring": scoring, "params": {"sample_weight": WEIGHT}, "oracle": {"weight": lambda order: WEIGHT}}
    check(pipeline, X, LABELS, kind="one P per fold", **options)


# -- bad arguments -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_permutations": 0}, "n_permutations=0 must be a positive integer"),
        ({"n_permutations": 2.5}, "n_permutations=2.5 must be"),
        ({"n_permutations": True}, "n_permutations=True must be"),
        ({"scoring": ["accuracy", "f1"]}, "scoring=.* takes one"),
        ({"scoring": {"a": "accuracy"}}, "scoring=.* takes one"),
        ({"scoring": "nonsense"}, "scoring"),
        ({"scoring": "correlation"}, "scoring='correlation' is for values"),
        ({"scoring": "neg_log_loss"}, "scoring='neg_log_loss' needs probabilities"),
        ({"weights": "free"}, "weights='free' is unknown; use one of None, 'fixed', 'permuted'"),
        ({"memory_limit": 0}, "memory_limit=0 must be a positive number of bytes"),
        ({"memory_limit": 1e9}, "memory_limit=1000000000.0 must be"),
        ({"confounds": CONFOUNDS[1:]}, "confounds has 39 rows and X has 40"),
        ({"confounds": np.full((N, 1), np.nan)}, "confounds: .*NaN"),
        ({"confounds": np.ones((N, 1))}, "confounds: column 0 is a linear combination of the intercept"),
        ({"confounds_in_score": True}, "confounds_in_score=True: there are no confounds"),
        ({"cv": []}, "cv holds no split"),
        ({"cv": [(np.arange(30), [])]}, "cv: split 0 trains on 30 rows and tests 0"),
        ({"cv": [FOLDS[0], ([], np.arange(30))]}, "cv: split 1 trains on 0 rows and tests 30"),
        ({"cv": [(np.arange(30), np.arange(30, 50))]}, "cv: .* out of bounds"),
        ({"cv": 1}, "cross-validation"),
        ({"cv": "five"}, "cv"),
        ({"params": {"sample_weight": WEIGHT[1:]}}, "sample_weight"),
        ({"params": {"sample_weight": -WEIGHT}}, "sample_weight"),
        ({"params": {"confounds": CONFOUNDS}}, "params: give confounds as confounds="),
        ({"params": {"sample_weight": np.where(WEIGHT, WEIGHT, np.nan)}}, "sample_weight"),
        ({"generalise": True}, "generalise=True needs a family"),
        ({"random_state": "seed"}, "seed"),
        ({"groups": GROUPS[1:]}, "inconsistent numbers of samples"),
        ({"strata": STRATA[1:]}, "strata"),
        ({"strata": np.column_stack([GROUPS, GROUPS])}, "strata"),
        ({"strata": np.where(GROUPS > 3, np.nan, 1.0)}, "strata.* NaN"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else "",
)
def test_bad_arguments_are_named(options, message):
    with pytest.raises((ValueError, AttributeError), match=message):
        permutation_test_score(LSSVC(), X, LABELS, **{"n_permutations": 2, **options})


@pytest.mark.parametrize(
    ("estimator", "features", "y", "message"),
    [
        (LSSVC(), X, None, "y=None: there are no labels to permute"),
        (LSSVC(), X[1:], LABELS, "inconsistent numbers of samples"),
        (LSSVC(), X[None, None], LABELS, "X has 4 axes"),
        (LSSVC(), X, np.zeros(N), "y holds one class only"),
        (LSSVC(), X, np.column_stack([CODES, CODES]), "y should be a 1d array"),
        (LSSVC(), MISSING, LABELS, "X contains NaN"),
        (LSSVR(), X, np.where(CODES, VALUES, np.nan), "y contains NaN"),
        (LSSVR(), X, LABELS, "y must hold numbers"),
        (LSSVC(alpha=-1.0), X, LABELS, "alpha=-1.0 must be"),
        (LSSVC("spline"), X, LABELS, "kernel='spline' is unknown"),
    ],
    ids=["no y", "rows", "axes", "one class", "two columns", "missing", "missing y", "strings", "alpha", "kernel"],
)
def test_bad_data_are_named(estimator, features, y, message):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # labels that do not change are pointed out first
        with pytest.raises(ValueError, match=message):
            permutation_test_score(estimator, features, y, n_permutations=2)


class Epochs:
    """Looks like those of MNE."""

    def get_data(self):
        return X[:, :, None]


def test_epochs_are_asked_for_their_array():
    with pytest.raises(ValueError, match=r"X is Epochs; give its array, X.get_data\(\)"):
        permutation_test_score(LSSVC(), Epochs(), LABELS)


@pytest.mark.parametrize("scoring", ["roc_auc", "r2", "correlation", None])
def test_scores_of_several_rows_need_several_rows(scoring):
    labels = scoring == "roc_auc"
    with pytest.raises(ValueError, match="needs at least 2 held-out rows and cv leaves out 1"):
        permutation_test_score(
            LSSVC() if labels else LSSVR(), X, BINARY if labels else VALUES, cv=LeaveOneOut(), scoring=scoring
        )


def test_two_rows_are_several():
    splits = [(np.arange(2, N), np.arange(2)), (np.arange(N - 2), np.arange(N - 2, N))]
    check(LSSVR(gamma=0.1), X, VALUES, cv=splits, scoring="r2")


def test_metrics_of_the_wrong_kind_of_target():
    with pytest.raises(ValueError, match="scoring='ber' is for class labels"):
        permutation_test_score(LSSVR(), X, VALUES, scoring="ber")
    with pytest.raises(ValueError, match="multi_class"):
        permutation_test_score(LSSVC(), X, LABELS, scoring="roc_auc")


# -- odd data ----------------------------------------------------------------------------------------------------------


@st.composite
def odd_data(draw):
    """A few rows on a coarse grid: duplicates, constant columns, single-row classes."""
    n, d = draw(st.integers(4, 9)), draw(st.integers(1, 3))
    cells = draw(st.lists(st.integers(-1, 1), min_size=n * d, max_size=n * d))
    labels = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n).filter(lambda each: len(set(each)) > 1))
    train = draw(st.lists(st.booleans(), min_size=n, max_size=n).filter(lambda each: 0 < sum(each) < n))
    return np.array(cells, float).reshape(n, d), np.array(labels), np.array(train)


odd = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@odd
@given(odd_data(), st.sampled_from(["rbf", "linear"]), st.sampled_from(["rkhs", "coef"]), st.booleans())
def test_regressions_of_odd_data(data, kernel, penalty, intercept):
    X, y, train = data
    if train.sum() < 2:
        train = ~train
    estimator = LSSVR(kernel, gamma=0.5, penalty=penalty, fit_intercept=intercept)
    splits = [(np.flatnonzero(train), np.flatnonzero(~train))]
    options = {"cv": splits, "n_permutations": 3, "random_state": 7, "scoring": "neg_mean_squared_error"}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the permutations do not change the labels")
        result = permutation_test_score(estimator, X, y.astype(float), **options)
    orders = orders_of(len(y), m=3)
    scores = refits(estimator, X, y.astype(float), orders, splits=splits, scoring="neg_mean_squared_error")
    assert_allclose(np.r_[result.score, result.permutation_scores], scores, rtol=1e-8, atol=1e-8)
    assert result.pvalue == share(scores[0], scores[1:])


@odd
@given(odd_data(), st.sampled_from(["rbf", "linear"]), st.sampled_from(["rkhs", "coef"]), st.booleans())
def test_decisions_of_odd_data(data, kernel, penalty, intercept):
    """Of the classes a training part has; the others never win."""
    X, y, train = data
    train, test = np.flatnonzero(train), np.flatnonzero(~train)
    orders = np.vstack([np.arange(len(y)), permutations(len(y), 3, 7)])
    for kind in (LSSVC, KFDA):
        options = {"threshold": "centroid"} if kind is KFDA else {}
        estimator = kind(kernel, gamma=0.5, penalty=penalty, fit_intercept=intercept, **options)
        fitted = fitted_columns(estimator, X, y, orders)
        codes = np.unique(y, return_inverse=True)[1]
        for order, own in zip(orders, decisions(fitted, train, test), strict=True):
            here = np.unique(codes[order][train])
            assert np.isin(metrics.chosen_among_close(own[None])[0], here).all()
            if len(here) == 1 or len(train) < 2:
                continue
            expected = as_columns(clone(estimator).fit(X[train], codes[order][train]), X[test])
            if len(here) == 2 and len(own) > 1:
                own, expected = own[here[1:]] - own[here[:1]], expected * (1 if kind is KFDA else 2)
            elif kind is KFDA and len(own) > 1:
                own, expected = own[here] - own[here].mean(0), expected - expected.mean(0)
            assert_close(own, expected, rtol=1e-6, scale=1.0 + np.abs(expected).max())


@odd
@given(odd_data(), st.sampled_from(["accuracy", "balanced_accuracy", "ber"]), st.booleans())
def test_results_of_odd_data(data, scoring, resplit):
    X, y, train = data
    splits = [(np.flatnonzero(part), np.flatnonzero(~part)) for part in (train, ~train)]
    options = {"cv": splits, "n_permutations": 5, "scoring": scoring, "resplit": resplit}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the permutations do not change the labels")
        for estimator in (LSSVC(), KFDA()):
            result = permutation_test_score(estimator, X, y, **options)
            assert 0 < result.pvalue <= 1
            assert result.permutation_scores.shape == (5,)
            assert ((result.permutation_scores >= 0) & (result.permutation_scores <= 1)).all()
            # Decisions of a lattice can tie, and rounding depends on the batch: without ties nothing does.
            apart = X + 0.1 * np.random.default_rng(0).normal(size=X.shape)
            one, other = (
                permutation_test_score(estimator, apart, y, memory_limit=limit, **options) for limit in (1, 2**29)
            )
            assert_allclose(one.permutation_scores, other.permutation_scores, rtol=0, atol=1e-12)
