"""nested_cross_validate against an explicit double loop: every candidate refitted on every inner training part.

The loop uses ``foldless.reference`` or scikit-learn for the refits and plain NumPy for the criteria; it shares nothing
with what it judges. Both ways of a grid are forced and compared with it.
"""

import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from cases import assert_close
from sklearn import metrics
from sklearn import model_selection as skl
from sklearn.base import clone, is_classifier
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.metrics.pairwise import laplacian_kernel, linear_kernel, polynomial_kernel, rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from foldless import LSSVC, LSSVR, FoldlessSearchCV, KernelFisherDiscriminant, reference
from foldless.estimators import OneAgainstAllClassifier
from foldless.model_selection import _nested, _nested_grid, nested_cross_validate

N, D = 30, 4
RNG = np.random.default_rng(3)
CODES = RNG.permutation(np.repeat([0, 1, 2], [9, 10, 11]))
X = RNG.normal(size=(N, D)) + 0.8 * CODES[:, None] * [1, 0, -1, 0]
GROUPS = np.arange(N) % 5
WEIGHT = RNG.uniform(0.3, 3.0, N)
ZEROS = WEIGHT * (np.arange(N) % 14 != 4)  # rows 4 and 18 neither train nor choose
LABELS = np.array(["ant", "bee", "cat"])[CODES]
BINARY = np.array(["no", "yes"])[(CODES > 1).astype(int)]
VALUES = X[:, 0] ** 2 + X[:, 1] + RNG.normal(size=N)
OUTPUTS = np.column_stack([VALUES, X[:, 2] + RNG.normal(size=N)])
KFDA = KernelFisherDiscriminant

ALPHAS = [0.05, 1.0, 20.0]
GRID = {"alpha": [0.1, 5.0], "gamma": [0.03, 0.3]}
KERNELS = [
    {"kernel": ["rbf", "laplacian"], "gamma": [0.1], "alpha": [0.1, 5.0]},
    {"kernel": ["poly"], "degree": [2], "coef0": [0.5], "gamma": [0.1], "alpha": [1.0]},
    {"kernel": ["linear"], "alpha": [10.0, 0.3]},
]
CASES = {
    "LSSVC, 2 classes": (LSSVC(), BINARY, GRID),
    "LSSVC, 3 classes": (LSSVC(), LABELS, GRID),
    "LSSVC coef": (LSSVC(penalty="coef"), LABELS, GRID),
    "LSSVC coef, all": (LSSVC(penalty="coef", basis="all"), LABELS, GRID),
    "LSSVC kernels": (LSSVC(), LABELS, KERNELS),
    "LSSVC penalties": (LSSVC(gamma=0.1), BINARY, {"penalty": ["rkhs", "coef"], "alpha": ALPHAS}),
    "LSSVC class weights": (LSSVC(class_weight={"no": 3.0}, fit_intercept=False), BINARY, GRID),
    "KFDA, 2 classes": (KFDA(), BINARY, GRID),
    "KFDA, 3 classes": (KFDA(), LABELS, GRID),
    "KFDA coef, 3 classes": (KFDA(penalty="coef", gamma=0.1), LABELS, {"alpha": ALPHAS}),
    "KFDA coef, all, 2 classes": (KFDA(penalty="coef", basis="all"), BINARY, GRID),
    "KFDA fisher": (KFDA(threshold="fisher"), BINARY, GRID),
    "KFDA centroid": (KFDA(threshold="centroid", priors=[0.7, 0.3]), BINARY, GRID),
    "LSSVR": (LSSVR(), VALUES, GRID),
    "LSSVR coef": (LSSVR(penalty="coef"), VALUES, GRID),
    "LSSVR coef, all": (LSSVR(penalty="coef", basis="all"), VALUES, GRID),
    "LSSVR outputs": (LSSVR(), OUTPUTS, GRID),
    "RidgeClassifier, 2 classes": (RidgeClassifier(), BINARY, {"alpha": ALPHAS, "fit_intercept": [True, False]}),
    "RidgeClassifier, 3 classes": (RidgeClassifier(), LABELS, {"alpha": ALPHAS}),
    "Ridge": (Ridge(), VALUES, {"alpha": ALPHAS}),
    "KernelRidge": (KernelRidge(), VALUES, KERNELS),
}
every_case = pytest.mark.parametrize("case", CASES)

ORDER = np.random.default_rng(5).permutation(N)
OUTER = {
    "StratifiedKFold": skl.StratifiedKFold(3, shuffle=True, random_state=0),
    "ShuffleSplit": skl.ShuffleSplit(4, test_size=0.4, random_state=0),  # test parts overlap
    "ShuffleSplit with a gap": skl.ShuffleSplit(3, train_size=0.6, test_size=0.2, random_state=1),
    "LeaveOneGroupOut": skl.LeaveOneGroupOut(),
    "a list": [(ORDER[8:], ORDER[:8]), (ORDER[:24], ORDER[[27]]), (ORDER[::-1][:20].tolist(), ORDER[:9].tolist())],
}
INNER = {
    "leave-one-out": None,
    "KFold": skl.KFold(3, shuffle=True, random_state=0),
    "StratifiedKFold": skl.StratifiedKFold(3),
    "GroupKFold": skl.GroupKFold(3),
    "ShuffleSplit with a gap": skl.ShuffleSplit(3, train_size=0.6, test_size=0.2, random_state=0),
}


def absolute(f, t, w):
    return w @ np.abs(t - f)


# -- the loop ----------------------------------------------------------------------------------------------------------


def targets(y):
    """+-1 for each class, one column for two classes; values as they are."""
    if y.dtype.kind == "f":
        return y.reshape(len(y), -1)
    classes = np.unique(y)
    T = np.where(y[:, None] == classes, 1.0, -1.0)
    return T[:, 1:] if len(classes) == 2 else T


def gram(own, data):
    """scikit-learn's kernels."""
    gamma = own.get("gamma")
    return {
        "linear": lambda: linear_kernel(data),
        "rbf": lambda: rbf_kernel(data, gamma=gamma),
        "laplacian": lambda: laplacian_kernel(data, gamma=gamma),
        "poly": lambda: polynomial_kernel(data, gamma=gamma, degree=own.get("degree"), coef0=own.get("coef0")),
    }[own.get("kernel", "linear")]()


class Refits:
    """One candidate, fitted anew on any training part."""

    def __init__(self, estimator, y, w=None, data=X):
        self.own, self.kind = estimator.get_params(), type(estimator)
        self.K, self.y = gram(self.own, data), y
        self.w = np.ones(len(y)) if w is None else w
        factors = self.own.get("class_weight")
        if factors is not None:
            self.w = self.w * np.array([factors.get(label, 1.0) for label in y])

    def _fits(self, Y, train, at):
        Q = np.ones((len(Y), int(self.own.get("fit_intercept", False))))
        options = {name: self.own[name] for name in ("penalty", "basis") if name in self.own}
        return reference.heldout_fits(self.K, Y, train, at, self.own["alpha"], w=self.w, Q=Q, **options)

    def fits(self, train, at):
        """Fits of the targets of the criterion."""
        return self._fits(targets(self.y), np.asarray(train), at)

    def decision(self, train, at):
        """The estimator's own decision."""
        train = np.asarray(train)[self.w[train] > 0]
        classes, codes = np.unique(self.y, return_inverse=True)
        threshold = self.own.get("threshold")
        if self.kind is KFDA and (len(classes) > 2 or threshold == "centroid"):
            K = self.K
            if self.own["penalty"] == "coef":
                functions = train if self.own["basis"] == "train" else np.flatnonzero(self.w > 0)
                K = K[:, functions] @ K[:, functions].T
            options = {"w": self.w, "priors": self.own["priors"], "centred": self.own["fit_intercept"]}
            decision = reference.discriminant(K, codes, train, at, self.own["alpha"], **options)[2]
            return decision[:, 1] - decision[:, 0] if len(classes) == 2 else decision
        if threshold == "fisher":
            mass = np.bincount(codes[train], self.w[train])
            fits = self._fits(np.eye(2)[codes], train, at) * mass.sum() / mass
            return fits[:, 1] - fits[:, 0]
        fits = self.fits(train, at)
        return fits[:, 0] if len(classes) == 2 else fits


def wrong(t, f):
    return (t * f <= 0).astype(float)


def balanced_error(f, t, w):
    return sum(np.average(wrong(t, f)[side], weights=w[side]) / 2 for side in (t > 0, t < 0) if side.any())


def pairs_in_wrong_order(f, t, w):
    up, down = np.flatnonzero(t > 0), np.flatnonzero(t < 0)
    if not len(up) or not len(down):
        return 0.5
    order = np.heaviside(f[down][None] - f[up][:, None], 0.5)
    return np.average(order, weights=np.outer(w[up], w[down]))


BY_HAND = {
    "press": lambda f, t, w: w @ np.square(t - f),
    "error": lambda f, t, w: w @ wrong(t, f),
    "ber": balanced_error,
    "auc": pairs_in_wrong_order,
    "hinge2": lambda f, t, w: w @ np.square(np.maximum(1 - t * f, 0)),
    "smooth_error": lambda f, t, w: w @ (1 - t * np.tanh(3.0 * f)) / 2,
    absolute: absolute,
}
CRITERIA = [*BY_HAND, "multiclass_error"]


def named(criterion):
    return criterion if isinstance(criterion, str) else "function"


def predicted(decision, y):
    """Labels of decisions; values stay as they are."""
    if y.dtype.kind == "f":
        return decision.reshape(-1, *y.shape[1:])
    return np.unique(y)[(decision > 0).astype(int) if decision.ndim == 1 else decision.argmax(1)]


def criterion_by_hand(search, y, w, rows, fits, decision):
    """Loss of held-out fits of these rows, summed over the columns."""
    T = targets(y)[rows]
    each = w[rows] if search.criterion_weight == "sample_weight" and w is not None else np.ones(len(rows))
    W = np.repeat((each / each.sum())[:, None], T.shape[1], axis=1)
    if search.criterion_weight == "balanced":
        W = np.stack([np.where(t > 0, 0.5 / max(sum(t > 0), 1), 0.5 / max(sum(t < 0), 1)) for t in T.T], 1)
    if search.criterion == "multiclass_error":
        miss = predicted(decision, y) != y[rows]
        if search.criterion_weight == "balanced":  # the mean of the errors of the classes
            return np.mean([miss[y[rows] == label].mean() for label in np.unique(y[rows])])
        return W[:, 0] @ miss
    return sum(BY_HAND[search.criterion](f, t, w) for f, t, w in zip(fits.T, T.T, W.T, strict=True))


@dataclass
class OuterSplitResult:
    """One outer split, by hand."""

    params: dict
    losses: np.ndarray
    inner_criterion: float
    outer_criterion: float
    inner_rows: np.ndarray
    inner_decision: np.ndarray
    decision: np.ndarray


def inner_splits(cv, train, y, groups):
    """Row numbers of all data."""
    given = (X[train], y[train], None if groups is None else groups[train])
    return [(train[a], train[b]) for a, b in (cv or skl.LeaveOneOut()).split(*given)]


def double_loop(search, y, outer, w=None, groups=None, data=X):
    """A verdict for every outer split."""
    listed = list(skl.ParameterGrid(search.param_grid))
    models = [Refits(clone(search.estimator).set_params(**params), y, w, data) for params in listed]
    alphas = [model.own["alpha"] for model in models]
    verdicts = []
    for train, test in outer:
        train, test = np.asarray(train), np.asarray(test)
        inner = [(a, b if w is None else b[w[b] > 0]) for a, b in inner_splits(search.cv, train, y, groups)]
        inner = [(a, b) for a, b in inner if len(b)]
        rows = np.concatenate([b for _, b in inner])

        def held(model, kind, inner=inner):
            return np.concatenate([getattr(model, kind)(a, b) for a, b in inner])

        losses = []
        for model in models:
            decision = held(model, "decision") if search.criterion == "multiclass_error" else None
            losses.append(criterion_by_hand(search, y, w, rows, held(model, "fits"), decision))
        # of equal losses the largest alpha, of equal alphas the first
        best = min(range(len(listed)), key=lambda k: (round(losses[k], 10), -alphas[k], k))
        decision = models[best].decision(train, test)
        fits = models[best].fits(train, test)
        verdicts.append(
            OuterSplitResult(
                params=listed[best],
                losses=np.array(losses),
                inner_criterion=losses[best],
                outer_criterion=criterion_by_hand(search, y, w, test, fits, decision),
                inner_rows=rows,
                inner_decision=held(models[best], "decision"),
                decision=decision,
            )
        )
    return verdicts


def default_score(y, rows, decision):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", metrics._regression.UndefinedMetricWarning)  # R2 of a single row
        score = metrics.r2_score if y.dtype.kind == "f" else metrics.accuracy_score
        return score(y[rows], predicted(decision, y))


def assert_same(result, verdicts, y, outer):
    """Every number of a result against those of the loop."""
    tests = [np.asarray(test) for _, test in outer]
    for ours, theirs in zip(result.test_indices, tests, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert result.best_params == [verdict.params for verdict in verdicts]
    for name in ("inner_criterion", "outer_criterion"):
        expected = np.array([getattr(verdict, name) for verdict in verdicts])
        np.testing.assert_allclose(getattr(result, name), expected, rtol=1e-8, atol=1e-10, err_msg=name)
    for k, (verdict, test) in enumerate(zip(verdicts, tests, strict=True)):
        if y.dtype.kind == "f":
            assert result.decision[k] is None
            assert_close(result.predictions[k], predicted(verdict.decision, y))
        else:
            assert_close(result.decision[k], verdict.decision)
            np.testing.assert_array_equal(result.predictions[k], predicted(verdict.decision, y))
        expected = default_score(y, test, verdict.decision)
        np.testing.assert_allclose(result.test_score[k], expected, rtol=1e-8)
        inner = default_score(y, verdict.inner_rows, verdict.inner_decision)
        np.testing.assert_allclose(result.inner_score[k], inner, rtol=1e-8)
        np.testing.assert_allclose(result.optimism[k], inner - expected, rtol=1e-8, atol=1e-10)


def assert_equal_results(one, two):
    """Two results of the same splits."""
    assert one.best_params == two.best_params
    for name in ("test_score", "inner_score", "optimism", "inner_criterion", "outer_criterion"):
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), rtol=1e-8, atol=1e-10, err_msg=name)
    for a, b in zip(one.predictions, two.predictions, strict=True):
        np.testing.assert_array_equal(a, b) if a.dtype.kind in "UO" else assert_close(a, b)
    for a, b in zip(one.decision, two.decision, strict=True):
        assert (a is None) == (b is None)
        assert_close(a, b) if a is not None else None


def force(monkeypatch, shared):
    """One P for each candidate wherever the algebra allows it, or each training part by itself."""

    def decide(setting, outer, inner):
        problem = setting.task.problem
        features = problem.n_features(len(problem.active)) is not None
        return shared and not features and not (problem.drops_basis and inner[0] is not None)

    monkeypatch.setattr(_nested_grid, "_sharing_pays", decide)


def kinds(case, inner):
    """The kinds of path of the two forced ways."""
    features = case in ("RidgeClassifier, 2 classes", "RidgeClassifier, 3 classes", "Ridge")
    features = features or case in ("LSSVC kernels", "KernelRidge")  # a linear kernel among them
    drops = case in ("LSSVC coef", "LSSVC penalties", "KFDA coef, 3 classes", "LSSVR coef") and inner is not None
    return "one P per fold" if features or drops else "one fit", "one P per fold"


# -- grids -------------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:The groups parameter is ignored", "ignore:R.2 score is not well-defined")
@every_case
@pytest.mark.parametrize("outer", OUTER)
def test_every_number_equals_a_double_loop(case, outer, monkeypatch):
    """Inner splitters, criteria and weights take turns; both ways are held against the same loop."""
    estimator, y, grid = CASES[case]
    classifier = is_classifier(estimator)
    turn, step = list(CASES).index(case), list(OUTER).index(outer)
    inner = list(INNER)[(turn + step) % len(INNER)]
    criterion, weight = CRITERIA[(turn + 2 * step) % len(CRITERIA)], (None, "balanced", "sample_weight")[step % 3]
    if not classifier:
        inner = "KFold" if inner == "StratifiedKFold" else inner
        criterion = "press" if turn % 2 else absolute
        weight = None if weight == "balanced" else weight
    w = ZEROS if (turn + step) % 3 else None
    cv, groups = OUTER[outer], GROUPS if "Group" in outer + inner else None
    splits = cv if isinstance(cv, list) else list(cv.split(X, y if classifier else CODES, groups))
    search = FoldlessSearchCV(estimator, grid, cv=INNER[inner], criterion=criterion, criterion_weight=weight, slope=3.0)
    verdicts = double_loop(search, y, splits, w, groups)
    results = []
    for shared, kind in zip((True, False), kinds(case, INNER[inner]), strict=True):
        force(monkeypatch, shared)
        params = None if w is None else {"sample_weight": w}
        drawn = cv if classifier else iter(splits)  # values have no strata
        result = nested_cross_validate(search, X, y, cv=drawn, groups=groups, params=params)
        assert_same(result, verdicts, y, splits)
        assert result.path.kind == kind
        results.append(result)
    assert_equal_results(*results)


@pytest.mark.parametrize("inner", ["leave-one-out", "KFold"])
@pytest.mark.parametrize("weight", [None, "balanced", "sample_weight"])
@pytest.mark.parametrize("criterion", CRITERIA, ids=named)
def test_every_criterion_and_weighting_of_rows(criterion, weight, inner, monkeypatch):
    """Inside and outside; two and three classes take turns."""
    turn = CRITERIA.index(criterion) + ("balanced", "sample_weight", None).index(weight)
    estimator, y = ((LSSVC(), LABELS), (KFDA(), BINARY), (KFDA(), LABELS))[turn % 3]
    cv = skl.StratifiedShuffleSplit(2, test_size=0.3, random_state=turn)
    splits = list(cv.split(X, y))
    grid = {"alpha": [0.05, 20.0], "gamma": [0.03, 0.3]}
    search = FoldlessSearchCV(estimator, grid, cv=INNER[inner], criterion=criterion, criterion_weight=weight, slope=3.0)
    verdicts = double_loop(search, y, splits, ZEROS)
    for shared in (True, False):
        force(monkeypatch, shared)
        assert_same(nested_cross_validate(search, X, y, cv=cv, params={"sample_weight": ZEROS}), verdicts, y, splits)


@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
@pytest.mark.parametrize(("estimator", "y"), [(LSSVC(), LABELS), (KFDA(), BINARY), (LSSVR(), VALUES)], ids=str)
def test_leave_one_out_inside_leave_one_out(estimator, y, penalty, monkeypatch):
    """Every pair of rows is left out of every candidate."""
    rows = np.concatenate([np.flatnonzero(k == CODES)[:5] for k in range(3)])
    data, y = X[rows], y[rows]
    search = FoldlessSearchCV(clone(estimator).set_params(penalty=penalty), GRID)
    splits = list(skl.LeaveOneOut().split(data))
    score = "accuracy" if is_classifier(estimator) else "neg_mean_squared_error"  # R2 of one row is undefined
    models = [Refits(clone(search.estimator).set_params(**params), y, data=data) for params in skl.ParameterGrid(GRID)]
    for shared in (True, False):
        force(monkeypatch, shared)
        result = nested_cross_validate(search, data, y, cv=skl.LeaveOneOut(), scoring=score)
        for k, (train, test) in enumerate(splits):
            losses = [
                sum(np.square(targets(y)[i] - model.fits(train[train != i], [i])).sum() for i in train) / len(train)
                for model in models
            ]
            assert result.inner_criterion[k] == pytest.approx(min(losses), rel=1e-8)
            best = models[int(np.argmin(losses))]
            assert result.best_params[k] == {name: best.own[name] for name in GRID}
            np.testing.assert_array_equal(result.test_indices[k], test)
            expected = best.decision(train, test)
            if is_classifier(estimator):
                assert_close(result.decision[k], expected)
                assert result.test_score[k] == float(predicted(expected, y)[0] == y[k])
            else:
                assert_close(result.predictions[k], expected[:, 0])
                assert result.test_score[k] == pytest.approx(-np.square(y[k] - expected[0, 0]), rel=1e-8)
            assert result.outer_criterion[k] == pytest.approx(
                np.square(targets(y)[test] - best.fits(train, test)).sum(), rel=1e-8
            )


FEW = {"alpha": [0.05, 1.0], "gamma": [0.1]}
SCIKIT = {
    "RidgeClassifier": (RidgeClassifier(), LABELS, {"alpha": [0.05, 1.0]}),
    "RidgeClassifier class weights": (
        RidgeClassifier(class_weight={0: 2.0, 1: 1, 2: 1}),
        CODES,
        {"alpha": [0.05, 1.0]},
    ),
    "Ridge": (Ridge(), VALUES, {"alpha": [0.05, 1.0], "fit_intercept": [True, False]}),
    "Ridge outputs": (Ridge(), OUTPUTS, {"alpha": [0.05, 1.0]}),
    "KernelRidge": (KernelRidge(kernel="rbf"), VALUES, FEW),
    "KernelRidge, a gamma for the number of features": (
        KernelRidge(kernel="laplacian"),
        VALUES,
        {"alpha": [0.05, 1.0]},
    ),
    "LSSVC": (LSSVC(), LABELS, FEW),
    "KFDA class weights": (KFDA(class_weight={0: 3.0}), CODES, FEW),
    "KFDA one axis": (KFDA(n_components=1, priors=[0.2, 0.3, 0.5]), CODES, FEW),
    "KFDA no intercept": (KFDA(fit_intercept=False, penalty="coef"), CODES, FEW),
    "LSSVR coef": (LSSVR(penalty="coef"), VALUES, FEW),
}


@pytest.mark.parametrize("inner", ["leave-one-out", "KFold"])
@pytest.mark.parametrize("case", SCIKIT)
def test_every_number_equals_scikit_learns_loop(case, inner, monkeypatch):
    """The estimators themselves, by cross_val_predict on every outer training part."""
    estimator, y, grid = SCIKIT[case]
    weighted = (list(SCIKIT).index(case) + (inner == "KFold")) % 2 == 0
    classifier = is_classifier(estimator)
    kind, criterion = ("decision_function", "multiclass_error") if classifier else ("predict", "press")
    search = FoldlessSearchCV(estimator, grid, cv=INNER[inner], criterion=criterion)
    cv = skl.KFold(3, shuffle=True, random_state=2)
    w = WEIGHT if weighted else np.ones(N)
    listed = list(skl.ParameterGrid(grid))
    result = {}
    for shared in (True, False):
        force(monkeypatch, shared)
        params = {"sample_weight": w} if weighted else None
        result[shared] = nested_cross_validate(search, X, y, cv=cv, params=params)
    assert_equal_results(result[True], result[False])
    for k, (train, test) in enumerate(cv.split(X)):
        losses, scores = [], []
        for params in listed:
            single = clone(estimator).set_params(**params)
            held = skl.cross_val_predict(
                single,
                X[train],
                y[train],
                cv=INNER[inner] or skl.LeaveOneOut(),
                method=kind,
                params={"sample_weight": w[train]},
            )
            if classifier:
                losses.append(np.mean(predicted(held, y) != y[train]))
                scores.append(1 - losses[-1])
            else:
                losses.append(np.square(held - y[train]).reshape(len(train), -1).mean(0).sum())
                scores.append(metrics.r2_score(y[train], held))
        best = min(range(len(listed)), key=lambda k: (round(losses[k], 10), -listed[k]["alpha"], k))
        single = clone(estimator).set_params(**listed[best]).fit(X[train], y[train], sample_weight=w[train])
        found = result[True]
        assert found.best_params[k] == listed[best]
        assert found.inner_criterion[k] == pytest.approx(losses[best], rel=1e-8)
        assert found.inner_score[k] == pytest.approx(scores[best], rel=1e-8)
        assert found.test_score[k] == pytest.approx(single.score(X[test], y[test]), rel=1e-8)
        expected = single.predict(X[test])
        if classifier:
            np.testing.assert_array_equal(found.predictions[k], expected)
            assert_close(found.decision[k], single.decision_function(X[test]))
            assert found.outer_criterion[k] == pytest.approx(np.mean(expected != y[test]))
        else:
            assert_close(found.predictions[k], expected)
            loss = np.square(expected - y[test]).reshape(len(test), -1).mean(0).sum()
            assert found.outer_criterion[k] == pytest.approx(loss, rel=1e-8)


@pytest.mark.parametrize("share", ["all", "none"])
@pytest.mark.parametrize("threshold", ["pm1", "fisher", "centroid", "loo"])
def test_thresholds_are_those_of_the_outer_training_part(threshold, share, monkeypatch):
    """Two classes have nothing to share: the loop over fits gives what the algebra gives."""
    grid = {"alpha": [0.05, 1.0], "gamma": [0.03, 0.3]}
    search = FoldlessSearchCV(KFDA(threshold=threshold), grid, share=share)
    force(monkeypatch, True)
    result = nested_cross_validate(search, X, BINARY, cv=3)
    for k, (train, test) in enumerate(skl.StratifiedKFold(3).split(X, BINARY)):
        single = clone(search).fit(X[train], BINARY[train])
        assert result.best_params[k] == single.best_params_
        assert_close(result.decision[k], single.decision_function(X[test]))
        np.testing.assert_array_equal(result.predictions[k], single.predict(X[test]))
    other = nested_cross_validate(clone(search).set_params(share="all"), X, BINARY, cv=3)
    assert_equal_results(result, other)


def test_a_hundred_random_splits_as_in_the_practice_of_cawley(monkeypatch):
    """One call: 100 times 90 % for training and selection by leave-one-out, 10 % for the error."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60)
    data = rng.normal(size=(60, 3)) + 0.3 * y[:, None]
    cv = skl.StratifiedShuffleSplit(100, test_size=0.1, random_state=0)
    search = FoldlessSearchCV(LSSVC(), {"alpha": [0.1, 1.0, 10.0], "gamma": [0.05, 0.5]}, criterion_weight="balanced")
    force(monkeypatch, True)
    result = nested_cross_validate(search, data, y, cv=cv)
    force(monkeypatch, False)
    assert_equal_results(result, nested_cross_validate(search, data, y, cv=cv))
    assert result.test_score.shape == (100,)
    for k, (train, test) in enumerate(cv.split(data, y)):
        single = clone(search).fit(data[train], y[train])
        assert result.best_params[k] == single.best_params_
        assert result.inner_criterion[k] == pytest.approx(-single.best_score_, rel=1e-8)
        assert_close(result.decision[k], single.decision_function(data[test]))
        assert result.test_score[k] == single.score(data[test], y[test])
    assert len({tuple(each.values()) for each in result.best_params}) > 1  # the choice does vary


def test_without_a_grid_candidates_and_scales_come_from_all_rows(monkeypatch):
    """gamma="scale", the grid and balanced class weights are resolved once; y has a say in the last only."""
    rng = np.random.default_rng(1)
    data = X * np.where(np.arange(N) < 15, 1.0, 3.0)[:, None]  # training parts have another variance
    cv = [(np.arange(15), np.arange(15, N)), (np.arange(15, N), np.arange(15))]
    order = rng.permutation(N)
    data, y = data[order], LABELS[order]
    gamma = 1 / (D * data.var())
    for shared in (True, False):
        force(monkeypatch, shared)
        scaled = nested_cross_validate(FoldlessSearchCV(LSSVC(), {"alpha": ALPHAS}), data, y, cv=cv)
        given = nested_cross_validate(FoldlessSearchCV(LSSVC(gamma=gamma), {"alpha": ALPHAS}), data, y, cv=cv)
        assert_equal_results(scaled, given)
        factors = {label: N / (3 * np.sum(y == label)) for label in np.unique(y)}
        balanced = FoldlessSearchCV(LSSVC(gamma=0.1, class_weight="balanced"), {"alpha": ALPHAS})
        explicit = FoldlessSearchCV(LSSVC(gamma=0.1, class_weight=factors), {"alpha": ALPHAS})
        assert_equal_results(*(nested_cross_validate(each, data, y, cv=cv) for each in (balanced, explicit)))
        made = FoldlessSearchCV(LSSVC()).fit(data, y).cv_results_["params"]
        listed = [{name: [value] for name, value in each.items()} for each in made]
        one = nested_cross_validate(FoldlessSearchCV(LSSVC()), data, y, cv=cv)
        assert_equal_results(one, nested_cross_validate(FoldlessSearchCV(LSSVC(), listed), data, y, cv=cv))


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("estimator", [LSSVR(), LSSVR(penalty="coef"), LSSVR(penalty="coef", basis="all")], ids=str)
def test_targets_of_test_rows_have_no_say(estimator, shared, monkeypatch):
    force(monkeypatch, shared)
    search = FoldlessSearchCV(estimator, GRID)
    train, test = np.arange(20), np.arange(20, N)
    other = VALUES.copy()
    other[test] = 5.0 - VALUES[test]
    one, two = (nested_cross_validate(search, X, y, cv=[(train, test)]) for y in (VALUES, other))
    assert one.best_params == two.best_params
    assert_close(one.predictions[0], two.predictions[0])
    assert_close(one.inner_criterion, two.inner_criterion)
    assert abs(one.test_score - two.test_score) > 0.1


def test_of_equal_candidates_the_most_regularised_is_taken(monkeypatch):
    """No alpha of these errs: all tie."""
    y = np.repeat(["no", "yes"], 15)
    data = np.where(y == "no", -5.0, 5.0)[:, None] + X
    search = FoldlessSearchCV(LSSVC(), {"gamma": [0.01, 0.02], "alpha": [0.01, 1.0, 0.1]}, criterion="error")
    for shared in (True, False):
        force(monkeypatch, shared)
        result = nested_cross_validate(search, data, y, cv=3)
        assert result.best_params == [{"alpha": 1.0, "gamma": 0.01}] * 3
        assert_close(result.inner_criterion, np.zeros(3))


@pytest.mark.parametrize("shared", [True, False])
def test_units_of_the_targets_do_not_change_the_choice(shared, monkeypatch):
    force(monkeypatch, shared)
    search = FoldlessSearchCV(LSSVR(gamma=0.1), {"alpha": [0.01, 1.0, 100.0]})
    plain = nested_cross_validate(search, X, VALUES, cv=3)
    small = nested_cross_validate(search, X, VALUES * 1e-9, cv=3)
    assert small.best_params == plain.best_params
    assert_close(small.inner_criterion, plain.inner_criterion * 1e-18)
    assert_close(small.test_score, plain.test_score)


# -- the cheaper way ---------------------------------------------------------------------------------------------------


def wide(n=150):
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    return rng.normal(size=(n, 3)) + 0.5 * y[:, None], y


def test_many_splits_share_one_P_and_few_do_not():
    data, y = wide()
    search = FoldlessSearchCV(LSSVC(), {"alpha": [0.1, 1.0], "gamma": [0.1, 1.0]})
    many = nested_cross_validate(search, data, y, cv=skl.StratifiedShuffleSplit(30, test_size=0.1, random_state=0))
    assert many.path.kind == "one fit"
    assert "one matrix P for each alpha of 2 kernel settings" in many.path.reason
    few = nested_cross_validate(search, data, y, cv=2)
    assert few.path.kind == "one P per fold"
    assert "each training part decomposed by itself for 2 kernel settings, which is less work there" in few.path.reason
    assert "one P for each candidate" not in few.path.reason
    # the many splits as few calls, each by the other way
    cv = list(skl.StratifiedShuffleSplit(30, test_size=0.1, random_state=0).split(data, y))
    alone = [nested_cross_validate(search, data, y, cv=[split]) for split in cv[:3]]
    assert {each.path.kind for each in alone} == {"one P per fold"}
    assert_close(many.inner_criterion[:3], np.array([each.inner_criterion[0] for each in alone]))
    for k, each in enumerate(alone):
        assert_close(many.decision[k], each.decision[0])


def test_each_kernel_setting_goes_its_own_way():
    """Explicit features are decomposed for each training part, kernels share one P: the reason names both."""
    data, y = wide()
    cv = skl.StratifiedShuffleSplit(30, test_size=0.1, random_state=0)
    grid = [{"kernel": ["linear"], "alpha": [0.1, 1.0]}, {"kernel": ["rbf"], "gamma": [0.1, 1.0], "alpha": [0.1]}]
    result = nested_cross_validate(FoldlessSearchCV(LSSVC(), grid), data, y, cv=cv)
    assert result.path.kind == "one P per fold"
    assert "one matrix P for each alpha of 2 kernel settings" in result.path.reason
    assert "each training part decomposed by itself for 1 kernel setting," in result.path.reason


def test_basis_functions_that_leave_with_inner_folds_are_never_shared():
    """J of a training part does not give its P."""
    data, y = wide()
    cv = skl.StratifiedShuffleSplit(30, test_size=0.05, random_state=0)
    for inner, kind in ((None, "one fit"), (3, "one P per fold")):
        search = FoldlessSearchCV(LSSVC(penalty="coef", gamma=0.1), {"alpha": [0.1]}, cv=inner)
        assert nested_cross_validate(search, data, y, cv=cv).path.kind == kind
    result = nested_cross_validate(FoldlessSearchCV(LSSVC(), GRID, share="none"), X, LABELS, cv=3)
    assert result.path.kind == "refit"
    assert "searched by itself" in result.path.reason


# -- searches that are repeated ----------------------------------------------------------------------------------------


LOOPED = {
    "simplex": FoldlessSearchCV(LSSVC(), method="simplex", max_iter=8),
    "gradient": FoldlessSearchCV(LSSVC(), method="gradient", criterion="smooth_error", slope=3.0, max_iter=4),
    "gradient, folds": FoldlessSearchCV(LSSVC(), {"alpha": [0.1, 1.0]}, method="gradient", cv=3, max_iter=3),
    "feature scales": FoldlessSearchCV(LSSVC(), method="gradient", feature_scaling=True, max_iter=4),
    "decisions": FoldlessSearchCV(KFDA(), method="simplex", criterion="multiclass_error", max_iter=4),
    "a kernel for all": FoldlessSearchCV(LSSVC(), GRID, share="kernel", criterion="auc"),
    "nothing shared": FoldlessSearchCV(LSSVC(), GRID, share="none", cv=skl.KFold(3, shuffle=True, random_state=0)),
    "nothing shared, KFDA": FoldlessSearchCV(KFDA(), GRID, share="none"),
    "nothing shared, ridge": FoldlessSearchCV(RidgeClassifier(), {"alpha": ALPHAS}, share="none", criterion="error"),
    "an alpha each": FoldlessSearchCV(LSSVC(), method="gradient", share="kernel", max_iter=3),
    "regression": FoldlessSearchCV(LSSVR(), method="gradient", max_iter=4),
    "ridge": FoldlessSearchCV(Ridge(), method="simplex", cv=4, max_iter=4),
    "kernel ridge": FoldlessSearchCV(KernelRidge(kernel="rbf"), method="gradient", max_iter=3),
}


@pytest.mark.parametrize("case", LOOPED)
def test_other_searches_equal_a_fit_on_every_training_part(case):
    search = LOOPED[case]
    y = LABELS if is_classifier(search.estimator) else VALUES
    cv = list(skl.StratifiedKFold(3, shuffle=True, random_state=1).split(X, CODES))
    weight = "sample_weight" if search.criterion in ("press", "error") else None
    search = clone(search).set_params(criterion_weight=weight, refit=False)
    result = nested_cross_validate(search, X, y, cv=cv, params={"sample_weight": ZEROS})
    assert result.path.kind == "refit"
    for k, (train, test) in enumerate(cv):
        single = clone(search).set_params(refit=True).fit(X[train], y[train], sample_weight=ZEROS[train])
        assert repr(result.best_params[k]) == repr(single.best_params_)
        assert result.inner_criterion[k] == pytest.approx(-single.best_score_, rel=1e-10)
        np.testing.assert_array_equal(result.predictions[k], single.predict(X[test]))
        assert result.test_score[k] == pytest.approx(single.score(X[test], y[test]))
        if y is LABELS:
            np.testing.assert_array_equal(result.decision[k], single.decision_function(X[test]))
        parts = single.best_estimator_
        if isinstance(parts, OneAgainstAllClassifier):
            parts = OneAgainstAllClassifier(parts.estimators)
        inner = search.cv if search.cv is not None else skl.LeaveOneOut()
        held = skl.cross_val_predict(clone(parts), X[train], y[train], cv=inner, params={"sample_weight": ZEROS[train]})
        rows = ZEROS[train] > 0
        score = metrics.accuracy_score if y is LABELS else metrics.r2_score
        assert result.inner_score[k] == pytest.approx(score(y[train][rows], held[rows]), rel=1e-8)
        # every class against the others, by a model of its own
        each, T = single.best_params_, targets(y)[test]
        each = each if isinstance(each, list) else [each] * T.shape[1]
        w = ZEROS[test] / ZEROS[test].sum() if weight else np.full(len(test), 1 / len(test))
        loss = 0.0
        for params, t, column in zip(each, T.T, targets(y).T, strict=True):
            part = clone(search.estimator).set_params(**params).fit(X[train], column[train], sample_weight=ZEROS[train])
            f = part.decision_function(X[test]) if y is LABELS else part.predict(X[test])
            loss += BY_HAND[search.criterion](f, t, w) if search.criterion != "multiclass_error" else 0.0
        if search.criterion == "multiclass_error":
            loss = w @ (single.predict(X[test]) != y[test])
        assert result.outer_criterion[k] == pytest.approx(loss, rel=1e-8)


def test_groups_reach_both_splitters_of_a_repeated_search():
    search = FoldlessSearchCV(LSSVC(), GRID, share="none", cv=skl.GroupKFold(2))
    result = nested_cross_validate(search, X, LABELS, cv=skl.LeaveOneGroupOut(), groups=GROUPS)
    for k in range(5):
        train, test = np.flatnonzero(k != GROUPS), np.flatnonzero(k == GROUPS)
        np.testing.assert_array_equal(result.test_indices[k], test)
        single = clone(search).fit(X[train], LABELS[train], groups=GROUPS[train])
        assert result.best_params[k] == single.best_params_
        assert_close(result.decision[k], single.decision_function(X[test]))


def test_several_processes_or_threads_find_the_same():
    for search in (
        FoldlessSearchCV(LSSVC(), GRID),
        FoldlessSearchCV(LSSVC(), GRID, share="none"),
    ):
        one, two = (nested_cross_validate(search, X, LABELS, cv=3, n_jobs=jobs) for jobs in (None, 2))
        assert_equal_results(one, two)
        assert one.path == two.path


# -- scores ------------------------------------------------------------------------------------------------------------


def error_of_the_first_class(estimator, rows, y):
    return -np.mean((estimator.predict(rows) == "no") != (y == "no"))


@pytest.mark.parametrize("share", ["all", "none"])
@pytest.mark.parametrize(
    "scoring",
    [None, "balanced_accuracy", "roc_auc", "f1_macro", error_of_the_first_class],
    ids=["None", "balanced_accuracy", "roc_auc", "f1_macro", "own"],
)
def test_scores_are_those_of_scikit_learn(scoring, share):
    search = FoldlessSearchCV(LSSVC(), GRID, share=share)
    result = nested_cross_validate(search, X, BINARY, cv=3, scoring=scoring)
    score = {
        None: lambda y, d: metrics.accuracy_score(y, predicted(d, BINARY)),
        "balanced_accuracy": lambda y, d: metrics.balanced_accuracy_score(y, predicted(d, BINARY)),
        "roc_auc": metrics.roc_auc_score,
        "f1_macro": lambda y, d: metrics.f1_score(y, predicted(d, BINARY), average="macro"),
        error_of_the_first_class: lambda y, d: -np.mean(predicted(d, BINARY) != y),
    }[scoring]
    for k, (train, test) in enumerate(skl.StratifiedKFold(3).split(X, BINARY)):
        single = clone(search).fit(X[train], BINARY[train])
        assert result.test_score[k] == pytest.approx(score(BINARY[test], single.decision_function(X[test])))
        held = single.best_estimator_.loo_decision_function()
        assert result.inner_score[k] == pytest.approx(score(BINARY[train], held))
    assert_close(result.optimism, result.inner_score - result.test_score)


@pytest.mark.parametrize("scoring", ["neg_log_loss", "neg_brier_score", "roc_auc_ovr"])
@pytest.mark.parametrize("share", ["all", "none"])
@pytest.mark.parametrize("estimator", [LSSVC(calibration="sigmoid"), KFDA(calibration="isotonic")], ids=str)
def test_probabilities_are_calibrated_on_the_outer_training_part(estimator, share, scoring):
    """They are no part of the inner fits: the inner score is not known."""
    search = FoldlessSearchCV(estimator, {"alpha": [0.1, 1.0], "gamma": [0.1]}, share=share)
    result = nested_cross_validate(search, X, LABELS, cv=3, scoring=scoring)
    expected = skl.cross_val_score(search, X, LABELS, cv=3, scoring=scoring)
    assert_close(result.test_score, expected)
    assert np.isnan(result.inner_score).all()
    assert np.isnan(result.optimism).all()
    assert "inner score" not in str(result)


@pytest.mark.parametrize("share", ["all", "none"])
@pytest.mark.parametrize("y", [BINARY, LABELS], ids=["2 classes", "3 classes"])
def test_ridge_classifiers_have_the_probabilities_of_their_search(y, share):
    """A sigmoid of the inner held-out decisions, as in the predict_proba of the search."""
    search = FoldlessSearchCV(RidgeClassifier(), {"alpha": ALPHAS}, share=share)
    result = nested_cross_validate(search, X, y, cv=3, scoring="neg_log_loss", params={"sample_weight": WEIGHT})
    for k, (train, test) in enumerate(skl.StratifiedKFold(3).split(X, y)):
        single = clone(search).fit(X[train], y[train], sample_weight=WEIGHT[train])
        expected = -metrics.log_loss(y[test], single.predict_proba(X[test]), labels=np.unique(y))
        assert result.test_score[k] == pytest.approx(expected, rel=1e-6)
    assert np.isnan(result.inner_score).all()


@pytest.mark.parametrize("share", ["all", "none"])
def test_a_class_of_one_row_is_no_obstacle_where_no_probabilities_are_asked_for(share):
    y = np.where(np.arange(N) == ORDER[0], "dog", "cat")
    search = FoldlessSearchCV(RidgeClassifier(), {"alpha": ALPHAS}, share=share)
    train, test = ORDER[:20], ORDER[20:]
    result = nested_cross_validate(search, X, y, cv=[(train, test)])
    single = clone(search).fit(X[train], y[train])
    assert_close(result.decision[0], single.decision_function(X[test]))
    with pytest.raises(ValueError, match="needs two classes with at least two rows each"):
        nested_cross_validate(search, X, y, cv=[(train, test)], scoring="neg_log_loss")


@pytest.mark.parametrize("share", ["all", "none"])
def test_scores_of_probabilities_need_a_calibration(share):
    search = FoldlessSearchCV(LSSVC(), GRID, share=share)
    with pytest.raises((ValueError, AttributeError), match=r"predict_proba|calibration") as error:
        nested_cross_validate(search, X, LABELS, cv=3, scoring="neg_log_loss")
    assert "Labels" not in str(error.value)


@pytest.mark.parametrize(
    ("scoring", "message"),
    [
        ("nonsense", "scoring.*must be a str among|nonsense"),
        (["r2", "max_error"], "scoring"),
        ({"a": "r2"}, "scoring"),
        (3, "scoring"),
    ],
)
def test_one_known_scorer_is_asked_for_before_any_work(scoring, message, monkeypatch):
    def nothing(*given):
        raise AssertionError("work was done first")

    monkeypatch.setattr(_nested, "nested_grid", nothing)
    with pytest.raises(ValueError, match=message):
        nested_cross_validate(FoldlessSearchCV(LSSVR(), GRID), X, VALUES, cv=3, scoring=scoring)


def test_other_errors_of_a_scorer_are_not_hidden():
    def broken(estimator, rows, y):
        raise ValueError("this scorer is broken")

    with pytest.raises(ValueError, match="this scorer is broken"):
        nested_cross_validate(FoldlessSearchCV(LSSVC(), GRID), X, LABELS, cv=3, scoring=broken)


# -- what is given -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", ["all", "none"])
@pytest.mark.parametrize("container", ["csr", "csc", "pandas", "polars", "float32", "list"])
def test_containers_give_the_same(container, share):
    frame = pd.DataFrame(X, columns=list("abcd"), index=np.arange(N)[::-1])
    data = {
        "csr": sp.csr_array(X),
        "csc": sp.csc_matrix(X),
        "pandas": frame,
        "polars": pl.from_pandas(frame),
        "float32": X.astype(np.float32),
        "list": X.tolist(),
    }[container]
    series = {"pandas": lambda v: pd.Series(v, frame.index), "polars": pl.Series, "list": np.ndarray.tolist}
    series = series.get(container, np.asarray)
    search = FoldlessSearchCV(LSSVC(), GRID, cv=skl.GroupKFold(3), share=share)
    cv = skl.LeaveOneGroupOut()
    plain = nested_cross_validate(search, X, LABELS, cv=cv, groups=GROUPS, params={"sample_weight": WEIGHT})
    ours = nested_cross_validate(
        search, data, series(LABELS), cv=cv, groups=series(GROUPS), params={"sample_weight": series(WEIGHT)}
    )
    if container != "float32":
        assert_equal_results(ours, plain)
    else:
        assert ours.decision[0].dtype == np.float32 or share == "none"
        assert_close(ours.inner_criterion, plain.inner_criterion, rtol=1e-3)
        assert ours.best_params == plain.best_params
        assert_close(np.concatenate(ours.decision), np.concatenate(plain.decision), rtol=2e-3)


@pytest.mark.parametrize("share", ["all", "none"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_precomputed_kernels_are_cut_on_both_sides(form, share, monkeypatch):
    K = rbf_kernel(X, gamma=0.3)
    given = nested_cross_validate(
        FoldlessSearchCV(LSSVC(gamma=0.3), {"alpha": ALPHAS}, share=share, cv=3), X, LABELS, cv=3
    )
    for shared in (True, False):
        force(monkeypatch, shared)
        search = FoldlessSearchCV(LSSVC("precomputed"), {"alpha": ALPHAS}, share=share, cv=3)
        assert_equal_results(nested_cross_validate(search, form(K), LABELS, cv=3), given)


@pytest.mark.parametrize("share", ["all", "none"])
def test_one_number_as_a_weight_weighs_all_rows_the_same(share):
    search = FoldlessSearchCV(LSSVC(gamma=0.1), {"alpha": ALPHAS}, share=share)
    one = nested_cross_validate(search, X, LABELS, cv=3, params={"sample_weight": 2.0})
    two = nested_cross_validate(search, X, LABELS, cv=3, params={"sample_weight": np.full(N, 2.0)})
    assert_equal_results(one, two)


def test_masks_and_lists_are_splits():
    mask = np.arange(N) % 3 == 0
    search = FoldlessSearchCV(LSSVR(), GRID)
    one = nested_cross_validate(search, X, VALUES, cv=[(~mask, mask), (mask, ~mask)])
    numbered = [(np.flatnonzero(~mask).tolist(), np.flatnonzero(mask).tolist()), (np.flatnonzero(mask), ~mask)]
    assert_equal_results(one, nested_cross_validate(search, X, VALUES, cv=iter(numbered)))
    np.testing.assert_array_equal(one.test_indices[0], np.flatnonzero(mask))


def test_without_splits_five_folds_are_taken_by_class():
    search = FoldlessSearchCV(LSSVC(), GRID)
    assert_equal_results(
        nested_cross_validate(search, X, LABELS), nested_cross_validate(search, X, LABELS, cv=skl.StratifiedKFold(5))
    )


def test_the_search_given_is_left_as_it_was():
    for share in ("all", "none"):
        search = FoldlessSearchCV(LSSVC(), GRID, share=share, refit=False)
        before = repr(search)
        nested_cross_validate(search, X, LABELS, cv=3)
        assert repr(search) == before
        assert not hasattr(search, "cv_results_")
        assert not hasattr(search.estimator, "X_fit_")


# -- what is told ------------------------------------------------------------------------------------------------------


def test_the_text_of_a_result_holds_its_numbers():
    result = nested_cross_validate(FoldlessSearchCV(LSSVC(), GRID), X, LABELS, cv=3)
    text = str(result)
    assert (
        f"test score {result.test_score.mean():.4f} (standard deviation {result.test_score.std():.4f}, 3 splits)"
        in text
    )
    assert f"inner score {result.inner_score.mean():.4f}" in text
    assert f"optimism {(result.inner_score - result.test_score).mean():.4f}" in text
    assert str(result.path) in text


@pytest.mark.parametrize(("share", "words"), [("all", "kernel settings: 2/2"), ("none", "outer splits: 3/3")])
def test_progress_goes_to_standard_error(share, words, capsys):
    search = FoldlessSearchCV(LSSVC(), GRID, share=share)
    nested_cross_validate(search, X, LABELS, cv=3, verbose=1)
    told = capsys.readouterr()
    assert words in told.err
    assert told.out == ""
    nested_cross_validate(search, X, LABELS, cv=3)
    assert capsys.readouterr().err == ""


def test_a_search_that_overfits_looks_better_to_itself_than_it_is():
    """Labels by a coin: the least of many leave-one-out errors says nothing, the outer one says one half."""
    rng = np.random.default_rng(0)
    data, y = rng.normal(size=(40, 8)), rng.permutation(np.arange(40) % 2)
    scales = rng.permutation(np.logspace(-3, 1, 8 * 60)).reshape(60, 8)
    search = FoldlessSearchCV(LSSVC(), {"alpha": [0.1, 1.0], "gamma": scales.tolist()}, criterion="error")
    cv = skl.StratifiedShuffleSplit(10, test_size=0.5, random_state=0)
    result = nested_cross_validate(search, data, y, cv=cv)
    assert result.optimism.mean() > 0.1
    assert abs(result.test_score.mean() - 0.5) < 0.2
    assert_close(result.inner_score, 1 - result.inner_criterion)
    assert_close(result.test_score, 1 - result.outer_criterion)


# -- errors ------------------------------------------------------------------------------------------------------------

SHARES = pytest.mark.parametrize("share", ["all", "none"])


@pytest.mark.parametrize("given", [LSSVC(), skl.GridSearchCV(SVC(), {"C": [1.0]}), None, "search"], ids=str)
def test_what_is_no_search_of_this_package_is_refused(given):
    with pytest.raises(ValueError, match="must be a FoldlessSearchCV"):
        nested_cross_validate(given, X, LABELS)


def test_parameters_of_fits_other_than_weights_are_named():
    with pytest.raises(ValueError, match=r"params holds \['groups', 'sample_weights'\]; only sample_weight"):
        nested_cross_validate(FoldlessSearchCV(LSSVC()), X, LABELS, params={"sample_weights": WEIGHT, "groups": GROUPS})


@SHARES
@pytest.mark.parametrize("y", [LABELS, BINARY], ids=["3 classes", "2 classes"])
@pytest.mark.parametrize("by", ["rows", "weights"])
def test_a_training_part_that_lacks_a_class_is_refused_by_its_number(by, y, share):
    """A decision of fewer classes would be read as one of all."""
    lacking = y != np.unique(y)[-1]
    weight = np.ones(N)
    first = (ORDER[10:], ORDER[:10])
    second = (np.flatnonzero(lacking), np.flatnonzero(~lacking))
    if by == "weights":
        second = (ORDER[5:], ORDER[:5])
        weight[ORDER[5:][~lacking[ORDER[5:]]]] = 0.0
        first = (ORDER[:25], ORDER[25:])
    search = FoldlessSearchCV(LSSVC(), GRID, share=share)
    label = np.unique(y)[-1]
    with pytest.raises(ValueError, match=rf"cv: .*split 1 .*{label}"):
        nested_cross_validate(search, X, y, cv=[first, second], params={"sample_weight": weight})


@SHARES
def test_one_class_is_named_and_two_are_asked_for(share):
    with pytest.raises(ValueError, match=r"y holds one class only .*'ant'.* at least two classes"):
        nested_cross_validate(FoldlessSearchCV(LSSVC(), GRID, share=share), X, np.repeat("ant", N), cv=3)


@SHARES
@pytest.mark.parametrize("spoiled", ["X", "y", "sample_weight"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_named(value, spoiled, share):
    given = {"X": X.copy(), "y": CODES.astype(float), "sample_weight": WEIGHT.copy()}
    given[spoiled].flat[7] = value
    search = FoldlessSearchCV(LSSVC(), GRID, share=share)
    with pytest.raises(ValueError, match=rf"Input {spoiled} contains"):
        nested_cross_validate(
            search, given["X"], given["y"], cv=skl.KFold(3), params={"sample_weight": given["sample_weight"]}
        )


@SHARES
@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (WEIGHT[:-1], "sample_weight.shape"),
        (np.r_[WEIGHT, 1.0], "sample_weight.shape"),
        (-WEIGHT, "[Nn]egative.*sample_weight"),
        (np.ones((N, 2)), "[Ss]ample.?weight"),
    ],
    ids=["short", "long", "negative", "two columns"],
)
def test_bad_weights_are_named(weight, message, share):
    search = FoldlessSearchCV(LSSVC(), GRID, share=share)
    with pytest.raises(ValueError, match=message):
        nested_cross_validate(search, X, LABELS, cv=3, params={"sample_weight": weight})


@SHARES
@pytest.mark.parametrize(
    ("cv", "message"),
    [
        ([(np.arange(25), np.arange(20, N))], "cv: split 0 tests rows that it trains on"),
        ([(ORDER[10:], ORDER[:10]), (np.r_[ORDER[10:], ORDER[12]], ORDER[:10])], r"cv: .*split 1 repeats rows"),
        ([], "cv holds no split"),
        ([(ORDER[10:], ORDER[:0])], "cv: split 0 trains on 20 rows and tests 0"),
        (1, "n_splits=2 or more"),
        ("5", "cv"),
    ],
    ids=["trained and tested", "repeated", "none", "nothing tested", "one fold", "a word"],
)
def test_splits_that_make_no_sense_are_refused(cv, message, share):
    search = FoldlessSearchCV(LSSVC(), GRID, share=share)
    with pytest.raises(ValueError, match=message):
        nested_cross_validate(search, X, LABELS, cv=cv)


@pytest.mark.parametrize("rows", [0, 1])
def test_training_parts_too_small_to_leave_a_row_out_are_refused(rows):
    cv = [(ORDER[10:], ORDER[:10]), (ORDER[:rows], ORDER[10:])]
    with pytest.raises(ValueError, match=r"(?s)cv.*split 1|fewer than two rows|too few"):
        nested_cross_validate(FoldlessSearchCV(LSSVR(), GRID), X, VALUES, cv=cv)


@SHARES
def test_inner_splits_must_be_drawn_anew_for_every_training_part(share):
    search = FoldlessSearchCV(LSSVC(), GRID, cv=[(np.arange(12), np.arange(10, 18))], share=share)
    with pytest.raises(ValueError, match="of the search must be a number or a splitter"):
        nested_cross_validate(search, X, LABELS, cv=3)


@SHARES
def test_y_is_required_and_as_long_as_X(share):
    search = FoldlessSearchCV(LSSVC(), GRID, share=share)
    with pytest.raises(ValueError, match="y=None"):
        nested_cross_validate(search, X, None, cv=3)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        nested_cross_validate(search, X, LABELS[:-1], cv=3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"criterion": "nonsense"}, "criterion='nonsense' is unknown"),
        ({"param_grid": {"alpha": [-1.0]}}, "alpha=-1.0 must be a finite number > 0"),
        ({"param_grid": {"alpha": []}}, "alpha|no candidate"),
        ({"param_grid": {"nonsense": [1.0]}}, "Invalid parameter 'nonsense'"),
        ({"method": "newton"}, "method='newton' is unknown"),
        ({"estimator": SVC()}, "estimator=SVC is not a least-squares model"),
    ],
)
def test_a_search_that_cannot_be_done_is_refused_as_by_fit(options, message):
    search = FoldlessSearchCV(LSSVC(), GRID).set_params(**options)
    with pytest.raises(ValueError, match=message):
        search.fit(X, LABELS)
    with pytest.raises(ValueError, match=message):
        nested_cross_validate(search, X, LABELS, cv=3)


def test_a_test_part_without_weight_has_no_criterion_by_weight():
    """Row 4 counts for nothing: its criterion is not a number, and nothing warns."""
    search = FoldlessSearchCV(LSSVR(), GRID, criterion_weight="sample_weight")
    cv = [(np.setdiff1d(np.arange(N), [4, 18]), np.array([4, 18])), (ORDER[10:], ORDER[:10])]
    result = nested_cross_validate(search, X, VALUES, cv=cv, params={"sample_weight": ZEROS})
    np.testing.assert_array_equal(np.isnan(result.outer_criterion), [True, False])
    assert np.isfinite(result.test_score).all()


# -- pipelines ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"method": "gradient"}], ids=["grid", "gradient"])
def test_a_pipeline_fits_its_steps_on_every_outer_training_part(options):
    search = FoldlessSearchCV(LSSVC(), None if options else {"alpha": [0.1, 1.0], "gamma": [0.05, 0.2]}, **options)
    raw = X * np.array([1.0, 10.0, 0.1, 3.0])[: X.shape[1]] + 5.0
    cv = skl.StratifiedKFold(3)
    result = nested_cross_validate(make_pipeline(StandardScaler(), search), raw, LABELS, cv=cv)
    assert result.path.kind == "refit"
    for number, (train, test) in enumerate(cv.split(raw, LABELS)):
        whole = make_pipeline(StandardScaler(), clone(search)).fit(raw[train], LABELS[train])
        assert whole[-1].best_params_ == result.best_params[number]
        assert_close(result.decision[number], whole.decision_function(raw[test]))
        assert result.test_score[number] == whole.score(raw[test], LABELS[test])
        assert_close(result.inner_criterion[number], -whole[-1].best_score_)


def test_a_result_shows_itself_in_one_line():
    result = nested_cross_validate(FoldlessSearchCV(LSSVC(), {"alpha": [1.0]}), X, LABELS, cv=3)
    assert repr(result) == str(result)
    assert "\n" not in repr(result)
