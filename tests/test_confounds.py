"""Confounds: columns that are fitted without penalty and left out of the scores, against plain refits everywhere."""

import functools
import pickle
import re
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from cases import SPLITTERS, Case, assert_close, odd_splits, splitters
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn import model_selection as skl
from sklearn.base import clone
from sklearn.feature_selection import SelectKBest
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, Ridge, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import foldless.readout.task
from foldless import LSSVC, LSSVR, FoldlessSearchCV, KernelFisherDiscriminant, kernels, reference
from foldless import model_selection as fl
from foldless.estimators import OneAgainstAllClassifier
from foldless.heldout.parts import TrainingParts
from foldless.heldout.problem import Problem
from foldless.heldout.solution import Part
from foldless.readout.codings import indicator
from foldless.readout.discriminant import Discriminant

# -- the algebra, against the oracle -----------------------------------------------------------------------------------

_base = Case(shape=(26, 4))
CASES = [
    *[
        replace(_base, kernel=k, penalty=p, basis=b, weights=w, q=q)
        for k in ("rbf", "linear")
        for p, b in (("rkhs", "train"), ("coef", "train"), ("coef", "all"))
        for w in ("none", "random", "zeros")
        for q in (0, 1)
    ],
    *[replace(_base, kernel=k) for k in ("poly", "laplacian", "boolean", "cosine")],
    *[replace(_base, kernel="linear", shape=shape, weights="zeros") for shape in ((18, 40), (40, 3))],
    *[replace(_base, dtype="float32", kernel=k, penalty=p) for k in ("rbf", "linear") for p in ("rkhs", "coef")],
]
tables = pytest.mark.parametrize("case", CASES, ids=[str(case) for case in CASES])
both_ways = pytest.mark.parametrize("way", ["part", "solve"])


def columns(case):
    """Two confounds, one of them far from centred."""
    return np.random.default_rng(12).normal((3.0, 0.0), size=(case.shape[0], 2))


def problem_of(case, **options):
    return case.problem().with_confounds(columns(case).astype(case.dtype), **options)


def labels_of(case):
    return indicator(case.codes, 3, case.dtype)


def oracle(case, train, test, *, Y=None, n_confounds=2):
    options = {**case.oracle, "Q": np.hstack([case.Q, columns(case)]), "n_confounds": n_confounds}
    Y = labels_of(case).astype(float) if Y is None else Y
    return reference.heldout_fits(case.K, Y, np.asarray(train), np.asarray(test), case.alpha, **options)


def matrices(case, train):
    """N, U, R and V of a training part, from the fits of a refit and the definitions."""
    train = np.asarray(train)[case.w[train] > 0]
    Y, w = labels_of(case)[train].astype(float), case.w[train]
    YW = Y.T * w
    Q = np.hstack([case.Q, columns(case)])[train]
    N = YW @ Y
    R = N - YW @ Q @ np.linalg.solve(Q.T * w @ Q, Q.T * w @ Y)
    return N, N - YW @ oracle(case, train, train, n_confounds=0), R, YW @ oracle(case, train, train)


def assert_matrices(moments, expected, k=slice(None)):
    for ours, theirs in zip(moments, expected, strict=True):
        assert_close(ours[k], theirs, scale=np.abs(expected[0]).max())


@tables
@both_ways
def test_fits_and_class_matrices_of_any_training_part(case, way):
    holdout = TrainingParts(problem_of(case), labels_of(case), way=way)
    everything = np.arange(case.shape[0])
    for train, test in odd_splits(case.shape[0]):
        model = holdout.part(train)
        expected = oracle(case, train, everything)
        assert_close(model.fits(everything), expected)
        assert_close(model.fits(test), expected[test])
        assert_matrices(model.moments(), matrices(case, train))
        assert model.fits(test).dtype == case.dtype


@tables
def test_kept_in_the_score_they_are_columns_like_any_other(case):
    holdout = TrainingParts(problem_of(case, in_score=True), labels_of(case), way="part")
    train, test = odd_splits(case.shape[0])[2]
    part = holdout.part(train)
    assert_close(part.fits(test), oracle(case, train, test, n_confounds=0))
    assert part.moments().R is None


@tables
@both_ways
def test_leave_one_out_of_all_rows_and_inside_a_training_part(case, way):
    holdout = TrainingParts(problem_of(case), labels_of(case), nested=True, way=way)
    train = odd_splits(case.shape[0])[3][0]
    for model, rows in ((holdout.whole, np.arange(case.shape[0])), (holdout.part(train), train)):
        loo = model.loo()
        expected = [oracle(case, rows[rows != i], [i])[0] for i in model.rows]
        assert_close(loo.fits[:, 0], np.array(expected))
        for k in (0, 4, len(model.rows) - 1):
            assert_matrices(loo.moments(), matrices(case, rows[rows != model.rows[k]]), k)


@tables
def test_pairs_left_out_together(case):
    whole = TrainingParts(problem_of(case), labels_of(case)).whole
    pairs = np.array([[0, 1], [5, 2], [7, 13]])
    batch = whole.batch(pairs)
    fits = batch.fits
    for k, pair in enumerate(whole.rows[pairs]):
        rest = np.setdiff1d(np.arange(case.shape[0]), pair)
        assert_close(fits[k], oracle(case, rest, pair))
        assert_matrices(batch.moments(), matrices(case, rest), k)


@tables
def test_leave_one_out_models_at_new_points(case):
    """Zeros in the place of the confounds leave their part out of all n models."""
    n = case.shape[0] - 5
    old, new = np.arange(n), np.arange(n, n + 5)
    whole = TrainingParts(problem_of(case).subset(old), labels_of(case)[old]).whole
    Q = np.hstack([case.Q, columns(case)])
    w = case.w.copy()
    w[new] = 0.0  # part of the kernel matrix, not of the data
    for n_confounds, shown in ((0, Q), (2, np.hstack([case.Q, np.zeros((n + 5, 2))]))):
        F = whole.loo_at(case.X[new], shown[new].astype(case.dtype))
        for i in (0, 3, len(whole.rows) - 1):
            rest = np.setdiff1d(old, whole.rows[i])
            options = {**case.oracle, "Q": Q, "n_confounds": n_confounds, "w": w}
            expected = reference.heldout_fits(case.K, labels_of(case).astype(float), rest, new, case.alpha, **options)
            assert_close(F[:, i], expected)


# -- discriminants, against the eigenproblem ---------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3, 4, 5])
@pytest.mark.parametrize("weights", ["none", "random"])
@pytest.mark.parametrize("q", [0, 1], ids=["no intercept", "intercept"])
@pytest.mark.parametrize(("penalty", "basis"), [("rkhs", "train"), ("coef", "train"), ("coef", "all")])
def test_discriminants_are_those_of_what_the_confounds_leave_unexplained(n_classes, weights, q, penalty, basis):
    n = 48
    case = Case(shape=(n, 6), weights=weights, q=q, penalty=penalty, basis=basis, alpha=0.3)
    rng = np.random.default_rng(n_classes)
    codes = rng.permutation(np.arange(n) % n_classes)
    C = columns(case) + 0.5 * codes[:, None]
    priors = tuple(rng.dirichlet(np.full(n_classes, 5.0)))
    readout = Discriminant(n_classes, "centroid", priors, centred=bool(q))
    problem = case.problem().with_confounds(C)
    order = rng.permutation(n)
    train, test = np.sort(order[10:]), order[:10]
    # the coefficient penalty is the plain one in the space of the basis functions
    K = case.K
    if penalty == "coef":
        functions = train if basis == "train" else np.arange(n)
        K = K[:, functions] @ K[:, functions].T
    options = {"w": case.w, "priors": priors, "centred": bool(q), "Q_c": C}
    z, centres, decision = reference.discriminant(K, codes, train, test, case.alpha, **options)
    if n_classes == 2:
        decision = decision[:, 1] - decision[:, 0]
    for way in ("part", "solve"):
        part = TrainingParts(problem, indicator(codes, n_classes, float), way=way).part(train)
        moments = part.moments()
        assert_close(readout.scores(part.fits(test), moments), decision)
        scalings, centroids, _ = readout.axes(moments)
        ours, theirs = part.fits(test) @ scalings - centroids[0], z - centres[0]
        assert_close(ours * np.sign((ours * theirs).sum(0)), theirs)
        if not q:  # no constant: the scores themselves are those of the features
            ours = part.fits(test) @ scalings
            assert_close(ours * np.sign((ours * z).sum(0)), z)


def test_classes_that_are_the_confounds_leave_nothing_to_discriminate():
    case = Case(shape=(30, 4))
    codes = np.arange(30) % 3
    C = indicator(codes, 3, float)[:, 1:]
    model = KernelFisherDiscriminant(gamma=0.2, threshold="centroid").fit(case.X, codes, confounds=C)
    assert np.ptp(model.decision_function(case.X)) == 0
    assert np.all(model.transform(case.X) == 0)
    other = codes == 2
    model = KernelFisherDiscriminant(gamma=0.2).fit(case.X, codes, confounds=other)  # one direction is left of two
    z = model.transform(case.X)
    assert np.ptp(z[:, 0]) > 0
    assert np.all(z[:, 1] == 0)


# -- estimators and cross-validation, against loops of refits ----------------------------------------------------------

N = 32
RNG = np.random.default_rng(3)
CODES = RNG.permutation(np.arange(N) % 3)
C = RNG.normal(size=(N, 2)) + 0.6 * CODES[:, None]
X = RNG.normal(size=(N, 5)) + 0.5 * CODES[:, None] + C[:, :1]
NEW, C_NEW = RNG.normal(size=(7, 5)), RNG.normal(size=(7, 2))
GROUPS = np.arange(N) % 6
WEIGHT = RNG.uniform(0.3, 3.0, N)
LABELS = np.array(["ant", "bee", "cat"])[CODES]
BINARY = np.array(["no", "yes"])[(CODES > 0).astype(int)]
VALUES = X[:, 1] ** 2 + C[:, 0] + RNG.normal(size=N)
SEVERAL = np.column_stack([VALUES, X[:, 2] + RNG.normal(size=N)])

PENALTIES = {"rkhs": {}, "coef": {"penalty": "coef"}, "no intercept": {"fit_intercept": False}}
FOLDLESS_ESTIMATORS = [
    *[pytest.param(LSSVC(gamma=0.1, alpha=0.3, **p), LABELS, id=f"LSSVC {k}") for k, p in PENALTIES.items()],
    *[
        pytest.param(KernelFisherDiscriminant(gamma=0.1, alpha=0.3, **p), LABELS, id=f"KFDA {k}")
        for k, p in PENALTIES.items()
    ],
    pytest.param(LSSVC("linear"), BINARY, id="LSSVC linear, 2 classes"),
    pytest.param(LSSVC("linear", class_weight={"no": 2.0, "yes": 0.5}), BINARY, id="LSSVC linear, class weights"),
    pytest.param(KernelFisherDiscriminant("linear", n_components=1), LABELS, id="KFDA linear, one axis"),
    *[
        pytest.param(KernelFisherDiscriminant(gamma=0.1, threshold=t, **p), BINARY, id=f"KFDA {t}, {k}, 2 classes")
        for t in ("fisher", "pm1", "centroid", "loo")
        for k, p in PENALTIES.items()
    ],
    *[pytest.param(LSSVR(gamma=0.1, alpha=0.3, **p), VALUES, id=f"LSSVR {k}") for k, p in PENALTIES.items()],
    pytest.param(LSSVR("linear"), SEVERAL, id="LSSVR linear, two outputs"),
]
own = pytest.mark.parametrize(("estimator", "y"), FOLDLESS_ESTIMATORS)
weighted = pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weights"])


@pytest.fixture(params=["part", "solve"])
def way(request, monkeypatch):
    """Both ways to the model of a training part, whichever would be cheaper."""
    monkeypatch.setattr(foldless.readout.task, "TrainingParts", functools.partial(TrainingParts, way=request.param))
    return request.param


def refitted(estimator, y, train, *, weight=None, X=X, confounds=C):
    options = {} if weight is None else {"sample_weight": weight[train]}
    return clone(estimator).fit(X[train], y[train], confounds=confounds[train], **options)


def method_of(estimator):
    return "predict" if isinstance(estimator, LSSVR) else "decision_function"


def loop(estimator, y, splits, method, weight=None):
    """Outputs of all held-out rows by plain refits, one after the other."""
    return [getattr(refitted(estimator, y, tr, weight=weight), method)(X[te]) for tr, te in splits]


@own
@weighted
def test_every_fold_equals_a_refit(estimator, y, weight, way):
    """Stratified folds, and random splits whose test rows repeat and leave gaps."""
    params = None if weight is None else {"sample_weight": weight}
    method = method_of(estimator)
    options = {"params": params, "confounds": C}
    cv = skl.StratifiedKFold(4) if y.dtype.kind == "U" else skl.KFold(4)
    ours = fl.cross_val_predict(estimator, X, y, cv=cv, method=method, **options)
    for (_, te), expected in zip(cv.split(X, y), loop(estimator, y, cv.split(X, y), method, weight), strict=True):
        assert_close(ours[te], expected, scale=np.abs(ours).max())
    cv = skl.ShuffleSplit(3, train_size=0.6, test_size=0.3, random_state=0)
    result = fl.cross_validate(estimator, X, y, cv=cv, return_estimator=True, return_train_score=True, **options)
    for k, (tr, te) in enumerate(cv.split(X, y)):
        model = refitted(estimator, y, tr, weight=weight)
        assert_close(result["test_score"][k], model.score(X[te], y[te]))
        assert_close(result["train_score"][k], model.score(X[tr], y[tr]))
        given_back = result["estimator"][k]
        for inputs in ((NEW,), (NEW, C_NEW)):
            assert_close(getattr(given_back, method)(*inputs), getattr(model, method)(*inputs))
        assert_close(given_back.confound_coef_, model.confound_coef_)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_estimators_that_keep_the_basis_give_the_held_out_scores_again(kernel):
    """basis="all" has no refit on the training part alone; the estimators given back stand for themselves."""
    estimator = KernelFisherDiscriminant(kernel, gamma=0.1, penalty="coef", basis="all")
    cv = skl.StratifiedKFold(4)
    decision = fl.cross_val_predict(estimator, X, LABELS, cv=cv, method="decision_function", confounds=C)
    fitted = fl.cross_validate(estimator, X, LABELS, cv=cv, return_estimator=True, confounds=C)["estimator"]
    for model, (tr, te) in zip(fitted, cv.split(X, LABELS), strict=True):
        assert_close(model.decision_function(X[te]), decision[te])
        K = kernels.resolve(kernel, X, gamma=0.1).gram(X)
        options = {"Q": np.hstack([np.ones((N, 1)), C]), "penalty": "coef", "basis": "all"}
        with_part, without = (
            reference.heldout_fits(K, indicator(CODES, 3, float), tr, te, 1.0, n_confounds=k, **options) for k in (0, 2)
        )
        assert_close(C[te] @ model._confound_B, with_part - without)


@own
@weighted
def test_leave_one_out_equals_a_loop(estimator, y, weight):
    model = refitted(estimator, y, np.arange(N), weight=weight)
    expected = np.concatenate(loop(estimator, y, skl.LeaveOneOut().split(X), method_of(estimator), weight))
    ours = model.loo_predict() if isinstance(estimator, LSSVR) else model.loo_decision_function()
    assert_close(ours, expected)
    params = None if weight is None else {"sample_weight": weight}
    options = {"cv": skl.LeaveOneOut(), "method": method_of(estimator), "params": params, "confounds": C}
    assert_close(fl.cross_val_predict(estimator, X, y, **options), expected)
    again = pickle.loads(pickle.dumps(model))  # the algebra is made anew, with the confounds
    ours = again.loo_predict() if isinstance(estimator, LSSVR) else again.loo_decision_function()
    assert_close(ours, expected)


@pytest.mark.parametrize("splitter", SPLITTERS)
@pytest.mark.parametrize(
    ("estimator", "y"),
    [
        pytest.param(KernelFisherDiscriminant(gamma=0.1, alpha=0.3), LABELS, id="KFDA"),
        pytest.param(LSSVC("linear", fit_intercept=False), BINARY, id="LSSVC"),
        pytest.param(LSSVR(gamma=0.1, penalty="coef"), VALUES, id="LSSVR"),
    ],
)
def test_every_splitter(estimator, y, splitter):
    cv = splitters(N, CODES)[splitter]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The groups parameter is ignored")
        splits = list(cv.split(X, CODES, GROUPS))[:40]
    splits = [(tr, te) for tr, te in splits if y.dtype.kind == "f" or len(np.unique(y[tr])) == len(np.unique(y))]
    scoring = "neg_mean_squared_error" if y.dtype.kind == "f" else "accuracy"
    ours = fl.cross_val_score(estimator, X, y, cv=splits, scoring=scoring, confounds=C)
    theirs = skl.cross_val_score(estimator, X, y, cv=splits, scoring=scoring, params={"confounds": C})
    assert_close(ours, theirs)


@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic"])
@pytest.mark.parametrize(
    ("estimator", "y"),
    [
        pytest.param(KernelFisherDiscriminant(gamma=0.1, threshold="loo"), BINARY, id="KFDA 2 classes"),
        pytest.param(KernelFisherDiscriminant(gamma=0.1), LABELS, id="KFDA 3 classes"),
        pytest.param(LSSVC(gamma=0.1, penalty="coef"), BINARY, id="LSSVC 2 classes"),
    ],
)
def test_probabilities(estimator, y, calibration, way):
    estimator = clone(estimator).set_params(calibration=calibration)
    cv = skl.StratifiedKFold(3)
    ours = fl.cross_val_predict(estimator, X, y, cv=cv, method="predict_proba", confounds=C)
    for (_, te), expected in zip(
        cv.split(X, y), loop(estimator, y, cv.split(X, y), "predict_proba", None), strict=True
    ):
        np.testing.assert_allclose(ours[te], expected, atol=1e-7)
    few = np.array([0, 7, 20])
    expected = [refitted(estimator, y, np.delete(np.arange(N), i)).predict_proba(X[[i]])[0] for i in few]
    ours = refitted(estimator, y, np.arange(N)).loo_predict_proba()
    np.testing.assert_allclose(ours[few], expected, atol=1e-7)


@pytest.mark.parametrize("in_score", [False, True])
@pytest.mark.parametrize(
    ("estimator", "y", "kernel", "intercept"),
    [
        pytest.param(Ridge(alpha=0.5), VALUES, "linear", 1, id="Ridge"),
        pytest.param(Ridge(alpha=0.5, fit_intercept=False), SEVERAL, "linear", 0, id="Ridge, two outputs"),
        pytest.param(RidgeClassifier(alpha=0.5), LABELS, "linear", 1, id="RidgeClassifier"),
        pytest.param(KernelRidge(alpha=0.5, kernel="rbf", gamma=0.1), VALUES, "rbf", 0, id="KernelRidge"),
    ],
)
def test_estimators_of_scikit_learn_take_confounds_here(estimator, y, kernel, intercept, in_score):
    K = kernels.resolve(kernel, X, gamma=0.1).gram(X)
    Q = np.hstack([np.ones((N, intercept)), C])
    targets = 2.0 * indicator(CODES, 3, float) - 1 if y is LABELS else y.reshape(N, -1)
    cv = skl.KFold(4)
    method = "decision_function" if y is LABELS else "predict"
    options = {"confounds": C, "confounds_in_score": in_score}
    ours = fl.cross_val_predict(estimator, X, y, cv=cv, method=method, **options).reshape(N, -1)
    for tr, te in cv.split(X):
        left_out = {"Q": Q, "w": WEIGHT, "n_confounds": 0 if in_score else 2}
        assert_close(ours[te], reference.heldout_fits(K, targets, tr, te, 0.5, **{**left_out, "w": None}))
    weighted = fl.cross_val_predict(estimator, X, y, cv=cv, method=method, params={"sample_weight": WEIGHT}, **options)
    assert_close(weighted.reshape(N, -1)[te], reference.heldout_fits(K, targets, tr, te, 0.5, **left_out))
    many = skl.KFold(16)
    assert fl.cross_validate(estimator, X, y, cv=many, **options)["path"].kind == "one fit"
    assert fl.explain(estimator, X, y, cv=many, **options).kind == "one fit"


@pytest.mark.parametrize("threshold", ["pm1", "fisher"])
def test_confounds_in_the_score_are_those_given_to_predict(threshold):
    """Two-class cuts at 0 do not depend on what is left out: the part of the training part's B is simply added."""
    for estimator in (KernelFisherDiscriminant(gamma=0.1, threshold=threshold), LSSVC(gamma=0.1)):
        cv = skl.StratifiedKFold(4)
        options = {"cv": cv, "method": "decision_function", "confounds": C, "confounds_in_score": True}
        ours = fl.cross_val_predict(estimator, X, BINARY, **options)
        for tr, te in cv.split(X, BINARY):
            model = refitted(estimator, BINARY, tr)
            assert_close(ours[te], model.decision_function(X[te], confounds=C[te]))


def test_kept_confounds_are_features_without_penalty():
    """As the penalty on them goes to nothing, linear features of huge scale become confounds kept in the score."""
    huge = np.hstack([X, 1e5 * C])
    cv = skl.StratifiedKFold(4)
    for estimator in (
        KernelFisherDiscriminant("linear"),
        LSSVC("linear"),
        KernelFisherDiscriminant("linear", priors=[0.2, 0.3, 0.5]),
    ):
        options = {"cv": cv, "method": "decision_function"}
        ours = fl.cross_val_predict(estimator, X, LABELS, confounds=C, confounds_in_score=True, **options)
        assert_close(ours, fl.cross_val_predict(estimator, huge, LABELS, **options), rtol=1e-6)


@own
def test_what_confounds_add_to_predictions(estimator, y):
    model = refitted(estimator, y, np.arange(N))
    method = getattr(model, method_of(estimator))
    without, with_them = method(NEW), method(NEW, confounds=C_NEW)
    added = C_NEW @ model.confound_coef_.T
    if y is LABELS and isinstance(estimator, KernelFisherDiscriminant):  # up to a constant a row, as with coef_
        without, with_them, added = (each - each[:, :1] for each in (without, with_them, added))
    assert_close(with_them - without, added.reshape(without.shape), scale=np.abs(with_them).max())
    if hasattr(model, "coef_"):
        linear = (NEW @ model.coef_.T + model.intercept_).reshape(without.shape)
        linear = linear - linear[:, :1] if linear.ndim == 2 and y is LABELS else linear
        assert_close(linear, without)
    if hasattr(model, "transform"):
        z = model.transform(NEW, confounds=C_NEW) - model.transform(NEW)
        assert_close(z, C_NEW @ (model._confound_B @ model._scalings))
        assert model.fit_transform(X, y, confounds=C).shape == (N, z.shape[1])


def test_labels_and_probabilities_with_confounds():
    model = KernelFisherDiscriminant(gamma=0.1, calibration="sigmoid").fit(X, BINARY, confounds=C)
    decision = model.decision_function(NEW, confounds=C_NEW)
    np.testing.assert_array_equal(model.predict(NEW, confounds=C_NEW), model.classes_[(decision > 0).astype(int)])
    proba = model.predict_proba(NEW, confounds=C_NEW)
    np.testing.assert_array_equal(np.argsort(proba[:, 1]), np.argsort(decision))
    assert np.abs(proba - model.predict_proba(NEW)).max() > 1e-3
    assert_close(np.exp(model.predict_log_proba(NEW, confounds=C_NEW)), proba)


def test_a_linear_model_is_the_ridge_of_what_confounds_leave():
    """Frisch, Waugh and Lovell: residuals of y on residuals of X, and B from what the features leave."""
    rest = [v - LinearRegression().fit(C, v).predict(C) for v in (X, VALUES)]
    ridge = Ridge(alpha=0.7, fit_intercept=False).fit(*rest)
    model = LSSVR("linear", alpha=0.7).fit(X, VALUES, confounds=C)
    assert_close(model.coef_, ridge.coef_)
    unexplained = LinearRegression().fit(C, VALUES - X @ model.coef_)
    assert_close(model.confound_coef_, unexplained.coef_)
    assert_close(model.intercept_, unexplained.intercept_)


@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
@pytest.mark.parametrize("confounds", [None, C_NEW], ids=["left out", "added"])
def test_intervals_are_those_of_refits(penalty, confounds):
    model = LSSVR(gamma=0.1, penalty=penalty).fit(X, VALUES, confounds=C)
    parts = [refitted(model, VALUES, np.delete(np.arange(N), i)) for i in range(N)]
    residuals = np.abs([VALUES[i] - part.predict(X[[i]], confounds=C[[i]])[0] for i, part in enumerate(parts)])
    fits = np.array([part.predict(NEW, confounds=confounds) for part in parts])
    rank = int(np.ceil(0.8 * (N + 1)))
    low = np.sort(fits - residuals[:, None], axis=0)[N - rank]
    high = np.sort(fits + residuals[:, None], axis=0)[rank - 1]
    assert_close(model.predict_interval(NEW, 0.8, confounds=confounds), np.stack([low, high], 1))


def test_leave_pair_out():
    estimator = KernelFisherDiscriminant(gamma=0.1, threshold="centroid")
    rows = np.arange(16, N)
    y = BINARY[rows]
    pairs = [(i, j) for i in rows[y == "yes"] for j in rows[y == "no"]]
    wins = []
    for pair in pairs:
        model = refitted(estimator, BINARY, np.setdiff1d(rows, pair))
        wins.append(np.greater(*model.decision_function(X[list(pair)])))
    ours = fl.leave_pair_out_auc(estimator, X[rows], y, confounds=C[rows])
    assert ours == pytest.approx(np.mean(wins))
    assert ours == fl.leave_pair_out_auc(estimator, X[rows], y, params={"confounds": C[rows]})
    assert ours != pytest.approx(fl.leave_pair_out_auc(estimator, X[rows], y))


# -- input of every kind -----------------------------------------------------------------------------------------------


def test_containers_and_one_dimension():
    one = C[:, 0]
    expected = LSSVC(gamma=0.1).fit(X, BINARY, confounds=one[:, None])
    forms = [one, list(one), pd.Series(one), pl.Series(one), pd.DataFrame({"age": one}), pl.DataFrame({"age": one})]
    for form in forms:
        model = LSSVC(gamma=0.1).fit(X, BINARY, confounds=form)
        assert_close(model.decision_function(NEW), expected.decision_function(NEW))
        ours = fl.cross_val_predict(LSSVC(gamma=0.1), X, BINARY, confounds=form, method="decision_function")
        theirs = fl.cross_val_predict(LSSVC(gamma=0.1), X, BINARY, confounds=one, method="decision_function")
        np.testing.assert_array_equal(ours, theirs)
    assert_close(expected.confound_coef_, LSSVC(gamma=0.1).fit(X, BINARY, confounds=one).confound_coef_)


@pytest.mark.parametrize("form", ["float32", "sparse", "precomputed"])
def test_features_of_every_kind(form):
    kernel = kernels.RBF(0.1)
    dense = LSSVC(gamma=0.1).fit(X, BINARY, confounds=C)
    cv = skl.StratifiedKFold(4)
    expected = fl.cross_val_predict(LSSVC(gamma=0.1), X, BINARY, cv=cv, method="decision_function", confounds=C)
    estimator, given, new, rtol = {
        "float32": (LSSVC(gamma=0.1), X.astype("float32"), NEW.astype("float32"), 2e-3),
        "sparse": (LSSVC(gamma=0.1), sp.csr_array(X), sp.csr_array(NEW), None),
        "precomputed": (LSSVC("precomputed"), kernel.gram(X), kernel.gram(NEW, X), None),
    }[form]
    model = estimator.fit(given, BINARY, confounds=C)
    assert_close(
        model.decision_function(new, confounds=C_NEW), dense.decision_function(NEW, confounds=C_NEW), rtol=rtol
    )
    assert_close(model.loo_decision_function(), dense.loo_decision_function(), rtol=rtol)
    ours = fl.cross_val_predict(estimator, given, BINARY, cv=cv, method="decision_function", confounds=C)
    assert_close(ours, expected, rtol=rtol)
    if form == "float32":
        assert ours.dtype == model.decision_function(new, confounds=C_NEW).dtype == np.float32


@pytest.mark.parametrize("kind", [LSSVC, KernelFisherDiscriminant])
def test_rows_of_weight_zero_are_outside(kind):
    weight = WEIGHT.copy()
    weight[[2, 9, 30]] = 0.0
    kept = np.flatnonzero(weight)
    model = kind(gamma=0.1).fit(X, LABELS, sample_weight=weight, confounds=C)
    without = kind(gamma=0.1).fit(X[kept], LABELS[kept], sample_weight=weight[kept], confounds=C[kept])
    assert_close(model.decision_function(NEW), without.decision_function(NEW))
    assert_close(model.loo_decision_function()[kept], without.loo_decision_function())
    idle = np.flatnonzero(weight == 0)
    assert_close(model.loo_decision_function()[idle], without.decision_function(X[idle]))


def test_a_refit_without_confounds_forgets_them():
    model = LSSVC(gamma=0.1).fit(X, BINARY, confounds=C).fit(X, BINARY)
    assert not hasattr(model, "confound_coef_")
    assert_close(model.decision_function(NEW), LSSVC(gamma=0.1).fit(X, BINARY).decision_function(NEW))
    assert not hasattr(clone(LSSVC(gamma=0.1).fit(X, BINARY, confounds=C)), "_confound_B")


# -- what confounds mean -----------------------------------------------------------------------------------------------


def test_confounds_alone_cannot_decode():
    """Features that are the confound and noise: at chance on average over data sets; far above it without the confound.

    One data set may lie well off chance to either side: features carry the confound along whatever axis noise chose.
    """
    accuracy = {"without": [], "with": [], "kept": []}
    for seed in range(40):
        rng = np.random.default_rng(seed)
        c = rng.normal(size=150)
        y = (c + 0.7 * rng.normal(size=150) > 0).astype(int)
        features = c[:, None] + rng.normal(size=(150, 8))
        model = LSSVC("linear")
        accuracy["without"].append(fl.cross_val_score(model, features, y).mean())
        accuracy["with"].append(fl.cross_val_score(model, features, y, confounds=c).mean())
        options = {"confounds": c, "confounds_in_score": True}
        accuracy["kept"].append(fl.cross_val_score(model, features, y, **options).mean())
    error = np.std(accuracy["with"]) / np.sqrt(40)
    assert abs(np.mean(accuracy["with"]) - 0.5) < 3 * error < 0.1
    assert np.min(accuracy["without"]) > 0.6
    assert np.mean(accuracy["kept"]) >= np.mean(accuracy["without"])


def test_what_is_beyond_confounds_is_decoded():
    rng = np.random.default_rng(0)
    c = rng.normal(size=150)
    y = (c + 0.7 * rng.normal(size=150) > 0).astype(int)
    features = c[:, None] * (np.arange(8) > 3) + rng.normal(size=(150, 8))
    features[:, 0] += 2 * y
    assert fl.cross_val_score(LSSVC("linear"), features, y, confounds=c).mean() > 0.65


@pytest.mark.parametrize(("estimator", "y"), [each for each in FOLDLESS_ESTIMATORS if each.values[0].fit_intercept])
def test_a_constant_added_to_a_confound_moves_scores_by_its_coefficient(estimator, y):
    """And not at all where centroids decide, which move along."""
    step = np.array([5.0, 0.0])
    one, two = (clone(estimator).fit(X, y, confounds=q) for q in (C, C + step))
    method = method_of(estimator)
    a, b = getattr(one, method)(NEW), getattr(two, method)(NEW)
    if isinstance(estimator, KernelFisherDiscriminant) and (y is LABELS or estimator.threshold == "centroid"):
        assert_close(b, a)
        return
    if not isinstance(estimator, LSSVR):  # the cut of threshold="loo" is chosen anew
        a, b = a + one._rule.cut, b + two._rule.cut
    shift = np.squeeze(one.confound_coef_ @ step)
    assert np.abs(shift).max() > 1e-3
    assert_close(b, a - shift)
    if getattr(estimator, "threshold", None) != "loo":
        assert_close(getattr(two, method)(NEW, C_NEW + step), getattr(one, method)(NEW, C_NEW))


@own
def test_only_the_space_of_the_confounds_counts(estimator, y):
    mixed = C @ [[2.0, -1.0], [0.5, 3.0]]
    one, two = (fl.cross_val_predict(estimator, X, y, method=method_of(estimator), confounds=q) for q in (C, mixed))
    assert_close(one, two)


relaxed = settings(deadline=None, max_examples=40, derandomize=True, suppress_health_check=list(HealthCheck))


@given(
    st.integers(0, 2**32 - 1),
    st.integers(9, 20),
    st.integers(1, 3),
    st.sampled_from(["rbf", "linear", "poly"]),
    st.sampled_from(["rkhs", "coef"]),
    st.booleans(),
    st.sampled_from(["normal", "far", "huge", "tiny", "binary", "outlier"]),
)
@relaxed
def test_odd_confounds(seed, n, k, kernel, penalty, intercept, shape):
    """Confounds of any size and form: closed form and refit agree, or both complain."""
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(n, rng.integers(1, 2 * n))), rng.normal(size=(n, 2))
    C = rng.normal(size=(n, k))
    if shape == "binary":
        C = (C > 0).astype(float)
    if shape == "outlier":
        C[0] *= 1e4
    C = C * {"huge": 1e6, "tiny": 1e-6}.get(shape, 1.0) + {"far": 1e3}.get(shape, 0.0)
    w = 10.0 ** rng.uniform(-1, 1, n)
    w[rng.permutation(n)[:1]] = 0.0
    kernel = kernels.resolve(kernel, X, gamma="scale", degree=2)
    Q = np.hstack([np.ones((n, int(intercept))), C])
    problem = Problem(kernel, X, alpha=0.5, Q=Q, sample_weight=w, penalty=penalty, n_confounds=k)
    train = np.sort(rng.permutation(n)[: rng.integers(k + 3, n)])
    kept = train[w[train] > 0]
    if np.linalg.matrix_rank(Q[kept] / np.maximum(np.abs(Q[kept]).max(0), 1e-300), tol=1e-9) < Q.shape[1]:
        for way in ("part", "solve"):
            with pytest.raises(ValueError, match=r"confounds: column \d is a linear combination"):
                TrainingParts(problem, Y, way=way).part(train)
        return
    options = {"w": w, "Q": Q, "penalty": penalty, "n_confounds": k}
    expected = reference.heldout_fits(kernel.gram(X), Y, train, np.arange(n), 0.5, **options)
    full = reference.heldout_fits(kernel.gram(X), Y, train, np.arange(n), 0.5, **{**options, "n_confounds": 0})
    scale = np.abs(Y).max() + np.abs(expected).max() + np.abs(full).max()
    for way in ("part", "solve"):
        model = TrainingParts(problem, Y, way=way).part(train)
        assert_close(model.fits(np.arange(n)), expected, scale=scale, rtol=1e-7)


# -- other ways: pipelines, refits, routing ----------------------------------------------------------------------------


@pytest.mark.parametrize("step", [StandardScaler(), SelectKBest(k=2)], ids=["scaler", "a step that sees y"])
def test_behind_steps_of_a_pipeline(step):
    pipe = make_pipeline(step, LSSVC(gamma=0.1))
    cv = skl.StratifiedKFold(4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fl.RefitWarning)
        ours = fl.cross_val_predict(pipe, X, BINARY, cv=cv, method="decision_function", confounds=C)
        kind = fl.explain(pipe, X, BINARY, cv=cv, confounds=C).kind
    assert kind == ("one P per fold" if isinstance(step, StandardScaler) else "refit")
    for tr, te in cv.split(X, BINARY):
        first = clone(step).fit(X[tr], BINARY[tr])
        model = LSSVC(gamma=0.1).fit(first.transform(X[tr]), BINARY[tr], confounds=C[tr])
        assert_close(ours[te], model.decision_function(first.transform(X[te])))


def test_a_pipeline_of_one_step_takes_the_closed_form():
    pipe = make_pipeline(LSSVC(gamma=0.1))
    options = {"cv": 4, "method": "decision_function"}
    expected = fl.cross_val_predict(LSSVC(gamma=0.1), X, BINARY, confounds=C, **options)
    assert fl.explain(pipe, X, BINARY, cv=10, confounds=C).kind == "one fit"
    np.testing.assert_array_equal(fl.cross_val_predict(pipe, X, BINARY, confounds=C, **options), expected)
    params = {"lssvc__confounds": C}
    np.testing.assert_array_equal(fl.cross_val_predict(pipe, X, BINARY, params=params, **options), expected)
    weighted = {"lssvc__sample_weight": WEIGHT}
    theirs = fl.cross_val_predict(LSSVC(gamma=0.1), X, BINARY, params={"sample_weight": WEIGHT}, confounds=C, **options)
    np.testing.assert_array_equal(
        fl.cross_val_predict(pipe, X, BINARY, params={**weighted, **params}, **options), theirs
    )


def test_confounds_as_a_parameter_of_fit():
    expected = fl.cross_val_score(LSSVC(gamma=0.1), X, BINARY, confounds=C)
    params = {"confounds": C}
    assert fl.explain(LSSVC(gamma=0.1), X, BINARY, cv=10, params=params).kind == "one fit"
    np.testing.assert_array_equal(fl.cross_val_score(LSSVC(gamma=0.1), X, BINARY, params=params), expected)
    with sklearn.config_context(enable_metadata_routing=True):
        estimator = LSSVC(gamma=0.1).set_fit_request(confounds=True)
        np.testing.assert_array_equal(fl.cross_val_score(estimator, X, BINARY, params=params), expected)
        np.testing.assert_allclose(skl.cross_val_score(estimator, X, BINARY, params=params), expected)
        pipe = make_pipeline(StandardScaler(), estimator)
        ours = fl.cross_val_score(pipe, X, BINARY, confounds=C)
        np.testing.assert_allclose(ours, skl.cross_val_score(pipe, X, BINARY, params=params))


def test_a_training_part_without_a_class_is_refitted_with_the_confounds():
    y = LABELS.copy()
    y[1:] = np.where(y[1:] == "cat", "ant", y[1:])
    y[0] = "cat"  # one row: its fold empties the class
    with pytest.warns(fl.RefitWarning, match="lacks a class"):
        ours = fl.cross_val_predict(LSSVC(gamma=0.1), X, y, cv=skl.KFold(4), confounds=C)
    for tr, te in skl.KFold(4).split(X):
        np.testing.assert_array_equal(ours[te], refitted(LSSVC(gamma=0.1), y, tr).predict(X[te]))
    with pytest.raises(ValueError, match="confounds: RidgeClassifier would be refitted"):
        fl.cross_val_predict(RidgeClassifier(), X, y, cv=skl.KFold(4), confounds=C)


def test_a_training_part_that_repeats_rows_is_refitted_with_the_confounds():
    splits = [(np.r_[:20, :5], np.arange(20, N)), (np.arange(12, N), np.arange(12))]
    with pytest.warns(fl.RefitWarning, match="repeats rows"):
        ours = fl.cross_val_score(LSSVR(gamma=0.1), X, VALUES, cv=splits, confounds=C)
    expected = [refitted(LSSVR(gamma=0.1), VALUES, tr).score(X[te], VALUES[te]) for tr, te in splits]
    assert_close(ours, expected)


def test_scorers_that_are_functions_get_estimators_with_confounds():
    seen = []

    def scorer(estimator, X, y):
        seen.append(estimator.confound_coef_)
        return estimator.score(X, y)

    ours = fl.cross_val_score(LSSVC(gamma=0.1), X, BINARY, cv=4, scoring=scorer, confounds=C)
    np.testing.assert_array_equal(ours, fl.cross_val_score(LSSVC(gamma=0.1), X, BINARY, cv=4, confounds=C))
    assert len(seen) == 4


# -- errors ------------------------------------------------------------------------------------------------------------

BAD = [
    pytest.param(C[:-1], f"confounds has {N - 1} rows and X has {N}", id="too short"),
    pytest.param(np.where(C > 1, np.nan, C), "confounds contains NaN", id="NaN"),
    pytest.param(np.where(C > 1, np.inf, C), "confounds contains infinity", id="infinity"),
    pytest.param(C[:, :, None], "confounds: Found array with dim 3", id="three dimensions"),
    pytest.param(LABELS, "confounds: .*OneHotEncoder", id="strings"),
    pytest.param(sp.csr_array(C), "confounds: Sparse data", id="sparse"),
    pytest.param(3.0, "confounds: ", id="a number"),
    pytest.param(np.ones(N), "confounds: column 0 is a linear combination of the intercept", id="constant"),
    pytest.param(np.column_stack([C, C.sum(1)]), "confounds: column 2 is a linear combination", id="sum"),
    pytest.param(indicator(CODES, 3, float), "confounds: column 2 .*all but one", id="all levels"),
    pytest.param(np.column_stack([C[:, 0], np.zeros(N)]), "confounds: column 1", id="zeros"),
    pytest.param(RNG.normal(size=(N, N)), f"confounds: column {N - 1}", id="as many as rows"),
]


@pytest.mark.parametrize(("confounds", "message"), BAD)
@pytest.mark.parametrize("kind", [LSSVC, KernelFisherDiscriminant, LSSVR])
def test_bad_confounds(kind, confounds, message):
    y = VALUES if kind is LSSVR else BINARY
    with pytest.raises(ValueError, match=message):
        kind(gamma=0.1).fit(X, y, confounds=confounds)
    with pytest.raises(ValueError, match=message):
        fl.cross_val_predict(kind(gamma=0.1), X, y, cv=skl.LeaveOneOut(), confounds=confounds)
    with pytest.raises(ValueError, match=re.sub(r"column \d+", r"column \\d+", message)):
        fl.cross_val_predict(make_pipeline(StandardScaler(), kind(gamma=0.1)), X, y, confounds=confounds)


def test_a_failed_fit_keeps_the_earlier_one():
    model = LSSVC(gamma=0.1).fit(X, BINARY, confounds=C)
    before = model.decision_function(NEW)
    with pytest.raises(ValueError, match="column 0"):
        model.fit(X, BINARY, confounds=np.ones(N))
    np.testing.assert_array_equal(model.decision_function(NEW), before)


@pytest.mark.parametrize("kind", [LSSVC, KernelFisherDiscriminant, LSSVR])
def test_bad_confounds_of_new_rows(kind):
    y = VALUES if kind is LSSVR else BINARY
    plain, model = kind(gamma=0.1).fit(X, y), kind(gamma=0.1).fit(X, y, confounds=C)
    with pytest.raises(ValueError, match=r"confounds: this .* was fitted without"):
        plain.predict(NEW, confounds=C_NEW)
    with pytest.raises(ValueError, match="confounds has 1 columns; the model was fitted with 2"):
        model.predict(NEW, confounds=C_NEW[:, 0])
    with pytest.raises(ValueError, match="confounds has 3 rows and X has 7"):
        model.predict(NEW, confounds=C_NEW[:3])
    with pytest.raises(AttributeError, match="confound_coef_ exists only after"):
        plain.confound_coef_  # noqa: B018
    if kind is LSSVR:
        with pytest.raises(ValueError, match="confounds has 1 columns"):
            model.predict_interval(NEW, confounds=C_NEW[:, 0])


@both_ways
def test_a_training_part_without_rows_of_a_level(way, monkeypatch):
    """A site whose rows are all held out has no coefficient; rounding must not invent one."""
    monkeypatch.setattr(foldless.readout.task, "TrainingParts", functools.partial(TrainingParts, way=way))
    sites = np.arange(N) // 8
    levels = indicator(sites, 4, float)[:, 1:]
    for in_score in (False, True):
        options = {"groups": sites, "confounds": levels, "confounds_in_score": in_score}
        with pytest.raises(ValueError, match=r"confounds: column \d is a linear .* every level"):
            fl.cross_val_predict(LSSVC(gamma=0.1), X, BINARY, cv=skl.LeaveOneGroupOut(), **options)
    alone = np.zeros(N)
    alone[5] = 1.0  # the indicator of one row
    model = LSSVC(gamma=0.1).fit(X, BINARY, confounds=np.column_stack([C, alone]))
    with pytest.raises(ValueError, match="confounds: column 2"):
        model.loo_decision_function()
    part = model._loo().part(np.arange(1, N))
    with pytest.raises(ValueError, match="confounds: column 2"):
        part.loo()
    assert isinstance(part, Part) == (way == "part")
    with pytest.raises(ValueError, match="confounds: column 2"):
        model._loo().whole.batch(np.array([[1, 2], [4, 5]]))


def test_what_takes_no_confounds():
    search = FoldlessSearchCV(LSSVC(), {"alpha": [0.1, 1.0]})
    with pytest.raises(TypeError, match="confounds"):
        search.fit(X, BINARY, confounds=C)
    with pytest.raises(TypeError, match="confounds"):
        OneAgainstAllClassifier([("no", LSSVC()), ("yes", LSSVC())]).fit(X, BINARY, confounds=C)
    for estimator in (
        search,
        SVC(),
        make_pipeline(StandardScaler(), Ridge()),
        RidgeClassifier(class_weight="balanced"),
    ):
        with pytest.raises(ValueError, match=r"confounds: .* would be refitted .* Use LSSVC, LSSVR, KernelFisher"):
            fl.cross_val_score(estimator, X, CODES, confounds=C)
        with pytest.raises(ValueError, match=r"confounds: .* would be refitted"):
            fl.explain(estimator, X, CODES, confounds=C)


def test_confounds_in_the_score_where_that_cannot_be():
    pipe = make_pipeline(StandardScaler(), LSSVC())
    with pytest.raises(ValueError, match="confounds_in_score=True: Pipeline would be refitted"):
        fl.cross_val_score(pipe, X, BINARY, confounds=C, confounds_in_score=True)
    with pytest.raises(ValueError, match="confounds_in_score=True: there are no confounds"):
        fl.cross_val_score(LSSVC(), X, BINARY, confounds_in_score=True)
    for options in ({"return_estimator": True}, {"scoring": lambda estimator, X, y: estimator.score(X, y)}):
        with pytest.raises(ValueError, match="LSSVC with confounds_in_score=True does not"):
            fl.cross_validate(LSSVC(), X, BINARY, confounds=C, confounds_in_score=True, **options)
        with pytest.raises(ValueError, match="Ridge with confounds_in_score=False does not"):
            fl.cross_validate(Ridge(), X, VALUES, confounds=C, **options)


def test_confounds_given_twice():
    pipe = make_pipeline(StandardScaler(), LSSVC())
    for estimator, params in ((LSSVC(), {"confounds": C}), (pipe, {"lssvc__confounds": C})):
        with pytest.raises(ValueError, match="given twice"):
            fl.cross_val_score(estimator, X, BINARY, confounds=C, params=params)
