"""nested_cross_validate against an explicit double loop of refits."""

import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn import metrics
from sklearn import model_selection as skl
from sklearn.base import clone, is_classifier
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge, RidgeClassifier

from foldless import LSSVC, LSSVR, FoldlessSearchCV
from foldless.criteria import CRITERIA as CRITERIA_BY_NAME
from foldless.criteria import Criterion
from foldless.model_selection import nested_cross_validate
from support.nested import (
    ALPHAS,
    BINARY,
    BY_HAND,
    CODES,
    GRID,
    GROUPS,
    KFDA,
    LABELS,
    ORDER,
    OUTPUTS,
    VALUES,
    WEIGHT,
    ZEROS,
    D,
    N,
    X,
    absolute,
    assert_equal_results,
    force_route,
    predicted,
)
from support.refits import Candidate, fit_weights, signs, with_fixed_functions
from support.tolerances import assert_close

KERNELS = [
    {"kernel": ["rbf", "laplacian"], "gamma": [0.1], "alpha": [0.1, 5.0]},
    {"kernel": ["poly"], "degree": [2], "coef0": [0.5], "gamma": [0.1], "alpha": [1.0]},
    {"kernel": ["linear"], "alpha": [10.0, 0.3]},
]
CASES = {
    "LSSVC, 2 classes": (LSSVC(), BINARY, GRID),
    "LSSVC, 3 classes": (LSSVC(), LABELS, GRID),
    "LSSVC coef": (LSSVC(penalty="coef"), LABELS, GRID),
    "LSSVC kernels": (LSSVC(), LABELS, KERNELS),
    "LSSVC penalties": (LSSVC(gamma=0.1), BINARY, {"penalty": ["rkhs", "coef"], "alpha": ALPHAS}),
    "LSSVC class weights": (LSSVC(class_weight={"no": 3.0}, fit_intercept=False), BINARY, GRID),
    "KFDA, 2 classes": (KFDA(), BINARY, GRID),
    "KFDA, 3 classes": (KFDA(), LABELS, GRID),
    "KFDA coef, 3 classes": (KFDA(penalty="coef", gamma=0.1), LABELS, {"alpha": ALPHAS}),
    "KFDA coef, 2 classes": (KFDA(penalty="coef"), BINARY, GRID),
    "KFDA fisher": (KFDA(threshold="fisher"), BINARY, GRID),
    "KFDA centroid": (KFDA(threshold="centroid", priors=[0.7, 0.3]), BINARY, GRID),
    "LSSVR": (LSSVR(), VALUES, GRID),
    "LSSVR coef": (LSSVR(penalty="coef"), VALUES, GRID),
    "LSSVR outputs": (LSSVR(), OUTPUTS, GRID),
    "RidgeClassifier, 2 classes": (RidgeClassifier(), BINARY, {"alpha": ALPHAS, "fit_intercept": [True, False]}),
    "RidgeClassifier, 3 classes": (RidgeClassifier(), LABELS, {"alpha": ALPHAS}),
    "Ridge": (Ridge(), VALUES, {"alpha": ALPHAS}),
    "KernelRidge": (KernelRidge(), VALUES, KERNELS),
}
every_case = pytest.mark.parametrize("case", CASES)

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


CRITERIA = [*BY_HAND, "multiclass_error"]


def named(criterion):
    return criterion if isinstance(criterion, str) else "function"


def of_slope_3(criterion):
    """Smooth criteria with the slope of those by hand."""
    return CRITERIA_BY_NAME[criterion].with_slope(3.0) if str(criterion).startswith("smooth") else criterion


def criterion_by_hand(search, y, w, rows, fits, decision):
    """Loss of held-out fits of these rows, summed over the columns."""
    T = signs(y)[rows]
    each = np.ones(len(rows))
    if search.criterion_weight == "auto":
        each = fit_weights(search.estimator, y, w)[rows]
    elif search.criterion_weight == "sample_weight" and w is not None:
        each = w[rows]
    W = np.repeat((each / each.sum())[:, None], T.shape[1], axis=1)
    if search.criterion_weight == "balanced":
        W = np.stack([np.where(t > 0, 0.5 / max(sum(t > 0), 1), 0.5 / max(sum(t < 0), 1)) for t in T.T], 1)
    if search.criterion == "multiclass_error":
        miss = predicted(decision, y) != y[rows]
        if search.criterion_weight == "balanced":  # the mean of the errors of the classes
            return np.mean([miss[y[rows] == label].mean() for label in np.unique(y[rows])])
        return W[:, 0] @ miss
    name = search.criterion.function.func.__name__ if isinstance(search.criterion, Criterion) else search.criterion
    return sum(BY_HAND[name](f, t, w) for f, t, w in zip(fits.T, T.T, W.T, strict=True))


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
    models = [Candidate(clone(search.estimator).set_params(**params), y, data, w) for params in listed]
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


def kinds(case):
    """The kinds of path of the two forced ways."""
    features = case in ("RidgeClassifier, 2 classes", "RidgeClassifier, 3 classes", "Ridge")
    features = features or case in ("LSSVC kernels", "KernelRidge")  # a linear kernel among them
    return "one P per fold" if features else "one fit", "one P per fold"


@pytest.mark.many_cases
@pytest.mark.filterwarnings("ignore:The groups parameter is ignored", "ignore:R.2 score is not well-defined")
@every_case
@pytest.mark.parametrize("outer", OUTER)
def test_every_number_equals_a_double_loop(case, outer, monkeypatch):
    """Inner splitters, criteria and weights take turns; both ways are held against the same loop."""
    estimator, y, grid = CASES[case]
    classifier = is_classifier(estimator)
    turn, step = list(CASES).index(case), list(OUTER).index(outer)
    inner = list(INNER)[(turn + step) % len(INNER)]
    criterion, weight = (
        CRITERIA[(turn + 2 * step) % len(CRITERIA)],
        ("auto", "balanced", None, "sample_weight")[(turn // 3 + step) % 4],
    )
    if not classifier:
        inner = "KFold" if inner == "StratifiedKFold" else inner
        criterion = "press" if turn % 2 else absolute
        weight = None if weight == "balanced" else weight
    w = ZEROS if (turn + step) % 3 else None
    cv, groups = OUTER[outer], GROUPS if "Group" in outer + inner else None
    splits = cv if isinstance(cv, list) else list(cv.split(X, y if classifier else CODES, groups))
    search = FoldlessSearchCV(
        estimator, grid, cv=INNER[inner], criterion=of_slope_3(criterion), criterion_weight=weight
    )
    verdicts = double_loop(search, y, splits, w, groups)
    results = []
    for shared, kind in zip((True, False), kinds(case), strict=True):
        force_route(monkeypatch, shared)
        params = None if w is None else {"sample_weight": w}
        drawn = cv if classifier else iter(splits)  # values have no strata
        result = nested_cross_validate(search, X, y, cv=drawn, groups=groups, params=params)
        assert_same(result, verdicts, y, splits)
        assert result.path.kind == kind
        results.append(result)
    assert_equal_results(*results)


@pytest.mark.many_cases
@pytest.mark.parametrize("inner", ["leave-one-out", "KFold"])
@pytest.mark.parametrize("weight", ["auto", None, "balanced", "sample_weight"])
@pytest.mark.parametrize("criterion", CRITERIA, ids=named)
def test_every_criterion_and_weighting_equals_refits(criterion, weight, inner, monkeypatch):
    """Inside and outside; two and three classes take turns."""
    turn = CRITERIA.index(criterion) + ("balanced", "sample_weight", None, "auto").index(weight)
    estimator, y = ((LSSVC(), LABELS), (KFDA(), BINARY), (KFDA(), LABELS))[turn % 3]
    cv = skl.StratifiedShuffleSplit(2, test_size=0.3, random_state=turn)
    splits = list(cv.split(X, y))
    grid = {"alpha": [0.05, 20.0], "gamma": [0.03, 0.3]}
    search = FoldlessSearchCV(
        estimator, grid, cv=INNER[inner], criterion=of_slope_3(criterion), criterion_weight=weight
    )
    verdicts = double_loop(search, y, splits, ZEROS)
    for shared in (True, False):
        force_route(monkeypatch, shared)
        assert_same(nested_cross_validate(search, X, y, cv=cv, params={"sample_weight": ZEROS}), verdicts, y, splits)


@pytest.mark.many_cases
@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
@pytest.mark.parametrize(("estimator", "y"), [(LSSVC(), LABELS), (KFDA(), BINARY), (LSSVR(), VALUES)], ids=str)
def test_leave_one_out_inside_leave_one_out(estimator, y, penalty, monkeypatch):
    """Every pair of rows is left out of every candidate."""
    rows = np.concatenate([np.flatnonzero(k == CODES)[:5] for k in range(3)])
    data, y = X[rows], y[rows]
    search = FoldlessSearchCV(clone(estimator).set_params(penalty=penalty), GRID)
    splits = list(skl.LeaveOneOut().split(data))
    score = "accuracy" if is_classifier(estimator) else "neg_mean_squared_error"  # R2 of one row is undefined
    models = [Candidate(clone(search.estimator).set_params(**params), y, data) for params in skl.ParameterGrid(GRID)]
    for shared in (True, False):
        force_route(monkeypatch, shared)
        result = nested_cross_validate(search, data, y, cv=skl.LeaveOneOut(), scoring=score)
        for k, (train, test) in enumerate(splits):
            losses = [
                sum(np.square(signs(y)[i] - model.fits(train[train != i], [i])).sum() for i in train) / len(train)
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
                np.square(signs(y)[test] - best.fits(train, test)).sum(), rel=1e-8
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


@pytest.mark.many_cases
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
    class_weight = getattr(estimator, "class_weight", None) or {}
    counted = w * np.array([class_weight.get(label, 1.0) for label in y]) if class_weight else w
    listed = list(skl.ParameterGrid(grid))
    result = {}
    for shared in (True, False):
        force_route(monkeypatch, shared)
        params = {"sample_weight": w} if weighted else None
        result[shared] = nested_cross_validate(search, X, y, cv=cv, params=params)
    assert_equal_results(result[True], result[False])
    for k, (train, test) in enumerate(cv.split(X)):
        losses, scores = [], []
        for params in listed:
            single = with_fixed_functions(clone(estimator).set_params(**params), X, w)
            held = skl.cross_val_predict(
                single,
                X[train],
                y[train],
                cv=INNER[inner] or skl.LeaveOneOut(),
                method=kind,
                params={"sample_weight": w[train]},
            )
            if classifier:
                wrong = predicted(held, y) != y[train]
                losses.append(np.average(wrong, weights=counted[train]))
                scores.append(1 - wrong.mean())
            else:
                losses.append(
                    np.average(np.square(held - y[train]).reshape(len(train), -1).sum(1), weights=counted[train])
                )
                scores.append(metrics.r2_score(y[train], held))
        best = min(range(len(listed)), key=lambda k: (round(losses[k], 10), -listed[k]["alpha"], k))
        single = with_fixed_functions(clone(estimator).set_params(**listed[best]), X, w)
        single.fit(X[train], y[train], sample_weight=w[train])
        found = result[True]
        assert found.best_params[k] == listed[best]
        assert found.inner_criterion[k] == pytest.approx(losses[best], rel=1e-8)
        assert found.inner_score[k] == pytest.approx(scores[best], rel=1e-8)
        assert found.test_score[k] == pytest.approx(single.score(X[test], y[test]), rel=1e-8)
        expected = single.predict(X[test])
        if classifier:
            np.testing.assert_array_equal(found.predictions[k], expected)
            assert_close(found.decision[k], single.decision_function(X[test]))
            assert found.outer_criterion[k] == pytest.approx(np.average(expected != y[test], weights=counted[test]))
        else:
            assert_close(found.predictions[k], expected)
            loss = np.average(np.square(expected - y[test]).reshape(len(test), -1).sum(1), weights=counted[test])
            assert found.outer_criterion[k] == pytest.approx(loss, rel=1e-8)


@pytest.mark.parametrize("share", ["all", "none"])
@pytest.mark.parametrize("threshold", ["pm1", "fisher", "centroid", "loo"])
def test_thresholds_are_those_of_the_outer_training_part(threshold, share, monkeypatch):
    """Two classes have nothing to share: the loop over fits gives what the algebra gives."""
    grid = {"alpha": [0.05, 1.0], "gamma": [0.03, 0.3]}
    search = FoldlessSearchCV(KFDA(threshold=threshold), grid, share=share)
    force_route(monkeypatch, True)
    result = nested_cross_validate(search, X, BINARY, cv=3)
    for k, (train, test) in enumerate(skl.StratifiedKFold(3).split(X, BINARY)):
        single = clone(search).fit(X[train], BINARY[train])
        assert result.best_params[k] == single.best_params_
        assert_close(result.decision[k], single.decision_function(X[test]))
        np.testing.assert_array_equal(result.predictions[k], single.predict(X[test]))
    other = nested_cross_validate(clone(search).set_params(share="all"), X, BINARY, cv=3)
    assert_equal_results(result, other)


def test_a_hundred_random_splits_equal_a_loop_of_searches(monkeypatch):
    """One call: 100 times 90 % for training and selection by leave-one-out, 10 % for the error."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60)
    data = rng.normal(size=(60, 3)) + 0.3 * y[:, None]
    cv = skl.StratifiedShuffleSplit(100, test_size=0.1, random_state=0)
    search = FoldlessSearchCV(LSSVC(), {"alpha": [0.1, 1.0, 10.0], "gamma": [0.05, 0.5]}, criterion_weight="balanced")
    force_route(monkeypatch, True)
    result = nested_cross_validate(search, data, y, cv=cv)
    force_route(monkeypatch, False)
    assert_equal_results(result, nested_cross_validate(search, data, y, cv=cv))
    assert result.test_score.shape == (100,)
    for k, (train, test) in enumerate(cv.split(data, y)):
        single = clone(search).fit(data[train], y[train])
        assert result.best_params[k] == single.best_params_
        assert result.inner_criterion[k] == pytest.approx(single.best_criterion_, rel=1e-8)
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
        force_route(monkeypatch, shared)
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
@pytest.mark.parametrize("estimator", [LSSVR(), LSSVR(penalty="coef")], ids=str)
def test_choice_ignores_targets_of_test_rows(estimator, shared, monkeypatch):
    force_route(monkeypatch, shared)
    search = FoldlessSearchCV(estimator, GRID)
    train, test = np.arange(20), np.arange(20, N)
    other = VALUES.copy()
    other[test] = 5.0 - VALUES[test]
    one, two = (nested_cross_validate(search, X, y, cv=[(train, test)]) for y in (VALUES, other))
    assert one.best_params == two.best_params
    assert_close(one.predictions[0], two.predictions[0])
    assert_close(one.inner_criterion, two.inner_criterion)
    assert abs(one.test_score - two.test_score) > 0.1


def test_most_regularised_of_equal_candidates_is_taken(monkeypatch):
    """No alpha of these errs: all tie."""
    y = np.repeat(["no", "yes"], 15)
    data = np.where(y == "no", -5.0, 5.0)[:, None] + X
    search = FoldlessSearchCV(LSSVC(), {"gamma": [0.01, 0.02], "alpha": [0.01, 1.0, 0.1]}, criterion="error")
    for shared in (True, False):
        force_route(monkeypatch, shared)
        result = nested_cross_validate(search, data, y, cv=3)
        assert result.best_params == [{"alpha": 1.0, "gamma": 0.01}] * 3
        assert_close(result.inner_criterion, np.zeros(3))


@pytest.mark.parametrize("shared", [True, False])
def test_units_of_the_targets_do_not_change_the_choice(shared, monkeypatch):
    force_route(monkeypatch, shared)
    search = FoldlessSearchCV(LSSVR(gamma=0.1), {"alpha": [0.01, 1.0, 100.0]})
    plain = nested_cross_validate(search, X, VALUES, cv=3)
    small = nested_cross_validate(search, X, VALUES * 1e-9, cv=3)
    assert small.best_params == plain.best_params
    assert_close(small.inner_criterion, plain.inner_criterion * 1e-18)
    assert_close(small.test_score, plain.test_score)
