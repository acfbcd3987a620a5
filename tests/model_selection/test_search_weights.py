"""Weights of the rows in the criterion of a search: by default those of the fit."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn import model_selection as skl
from sklearn.base import clone
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.class_weight import compute_class_weight, compute_sample_weight

from foldless import LSSVC, LSSVR, FoldlessSearchCV, KernelFisherDiscriminant
from foldless._engine.tuning import fidelity
from foldless._sklearn import candidates
from foldless.model_selection import Optimizer, nested_cross_validate, permutation_test_score
from support.refits import held_out, refit, signs
from support.searches import BINARY, LABELS, VALUES, WEIGHT, N, X, losses_of

FOLDS = skl.KFold(4, shuffle=True, random_state=0)
GRID = {"alpha": [0.05, 1.0, 20.0], "gamma": [0.03, 0.3]}
DICT = {"ant": 5.0, "bee": 0.5, "cat": 1.0}


def frozen(estimator, y, w=None):
    """The estimator with its balanced class weights as those of all rows, as dictionaries."""
    if estimator.get_params().get("class_weight") != "balanced":
        return estimator
    masses = np.array([np.sum(y == label) if w is None else w[y == label].sum() for label in np.unique(y)])
    return clone(estimator).set_params(
        class_weight=dict(zip(np.unique(y), masses.sum() / (len(masses) * masses), strict=True))
    )


def weights_of(estimator, y, w=None):
    """Weights of the rows in the fit of such an estimator."""
    rows = np.ones(len(y)) if w is None else w
    given = frozen(estimator, y, w).get_params().get("class_weight")
    return (
        rows
        if given is None
        else rows * compute_sample_weight({label: given.get(label, 1.0) for label in np.unique(y)}, y)
    )


def press_of_refits(estimator, params, y, splits, weight, **given):
    """Weighted mean squares of what refits leave of held-out targets +-1, or values."""
    T, rows = signs(y), np.concatenate([test for _, test in splits])
    method = "predict" if y.dtype.kind == "f" else "decision_function"
    model = clone(estimator).set_params(**params)
    fits = np.concatenate(held_out(model, X, y, splits, method, **given)).reshape(-1, T.shape[1])
    return np.average(np.square(T[rows] - fits).sum(1), weights=weight[rows])


CASES = {
    "balanced, 2 classes": (LSSVC(class_weight="balanced"), BINARY, None),
    "balanced, 3 classes": (LSSVC(class_weight="balanced"), LABELS, None),
    "balanced, weights": (LSSVC(class_weight="balanced"), LABELS, WEIGHT),
    "dictionary": (LSSVC(class_weight=DICT), LABELS, None),
    "dictionary, weights": (LSSVC(class_weight=DICT), LABELS, WEIGHT),
    "coefficients": (LSSVC(class_weight="balanced", penalty="coef"), BINARY, None),
    "discriminant": (KernelFisherDiscriminant(class_weight={"no": 4.0}), BINARY, WEIGHT),
    "ridge, balanced": (RidgeClassifier(class_weight="balanced"), LABELS, None),
    "ridge, dictionary": (RidgeClassifier(class_weight=DICT), LABELS, WEIGHT),
    "values": (LSSVR(), VALUES, WEIGHT),
}


@pytest.mark.parametrize("cv", [None, FOLDS], ids=["leave-one-out", "folds"])
@pytest.mark.parametrize("case", CASES)
def test_by_default_rows_count_as_in_the_fit(case, cv):
    estimator, y, w = CASES[case]
    grid = {"alpha": GRID["alpha"]} if isinstance(estimator, RidgeClassifier) else GRID
    search = FoldlessSearchCV(estimator, grid, cv=cv).fit(X, y, sample_weight=w)
    splits = list((cv or skl.LeaveOneOut()).split(X))
    given = {} if w is None else {"sample_weight": w}
    own = frozen(estimator, y, w)
    weight = weights_of(own, y, w)
    expected = [press_of_refits(own, each, y, splits, weight, **given) for each in search.cv_results_["params"]]
    assert_allclose(losses_of(search), expected, rtol=1e-8)
    assert search.best_criterion_ == pytest.approx(min(expected))
    equal = FoldlessSearchCV(estimator, grid, cv=cv, criterion_weight=None).fit(X, y, sample_weight=w)
    expected = [press_of_refits(own, each, y, splits, np.ones(N), **given) for each in grid_of(equal)]
    assert_allclose(losses_of(equal), expected, rtol=1e-8)


def grid_of(search):
    return search.cv_results_["params"]


@pytest.mark.parametrize("method", ["gradient", "simplex", "auto"])
def test_every_method_takes_the_weights_of_the_fit(method, monkeypatch):
    for name, size in {"FEW": 10, "PER_CLASS": 4, "MOST_AT_FIRST": 12, "AT_ONCE": 14}.items():
        monkeypatch.setattr(fidelity, name, size)
    monkeypatch.setattr(candidates, "FEW", 10)
    model = LSSVC(class_weight="balanced")
    search = FoldlessSearchCV(model, method=Optimizer(method, max_iter=4)).fit(X, BINARY)
    assert len({step["n_rows"] for step in search.history_}) == (3 if method == "auto" else 1)
    splits, own = list(skl.LeaveOneOut().split(X)), frozen(model, BINARY)
    expected = press_of_refits(own, search.best_params_, BINARY, splits, weights_of(own, BINARY))
    assert search.best_criterion_ == pytest.approx(expected, rel=1e-6)


def test_balanced_classes_are_balanced_in_the_criterion_of_two_classes():
    model, rows = LSSVC(class_weight="balanced"), BINARY
    auto = FoldlessSearchCV(model, GRID).fit(X, rows)
    balanced = FoldlessSearchCV(model, GRID, criterion_weight="balanced").fit(X, rows)
    assert_allclose(losses_of(auto), losses_of(balanced), rtol=1e-12)


def test_a_rare_class_is_not_given_up():
    """6 % positives: with rows that count equally the chosen model calls nearly all rows negative."""
    rng = np.random.default_rng(0)
    y = (np.arange(300) % 17 == 0).astype(int)
    features = rng.normal(size=(300, 8))
    features[:, 0] += 2.0 * y
    search = FoldlessSearchCV(LSSVC(class_weight="balanced"))
    found = nested_cross_validate(search, features, y, cv=5, scoring="balanced_accuracy")
    equal = nested_cross_validate(
        clone(search).set_params(criterion_weight=None), features, y, cv=5, scoring="balanced_accuracy"
    )
    assert found.mean_test_score > equal.mean_test_score + 0.1


@pytest.mark.parametrize(
    ("model", "options", "weighs"),
    [
        (LSSVC(class_weight="balanced"), {}, True),
        (make_pipeline(StandardScaler(), LSSVC(class_weight=DICT)), {}, True),
        (LSSVC(class_weight="balanced"), {"criterion_weight": None}, False),
        (LSSVC(), {}, False),
    ],
)
def test_the_route_says_where_class_weights_weigh_the_criterion(model, options, weighs):
    search = FoldlessSearchCV(model, {f"{'lssvc__' if hasattr(model, 'steps') else ''}alpha": [0.1, 1.0]}, **options)
    reason = nested_cross_validate(search, X, LABELS, cv=3).path.reason
    assert ("class weights weigh the criterion as well" in reason) == weighs


@pytest.mark.parametrize(
    ("grid", "same"),
    [
        ({"class_weight": ["balanced"], **GRID}, True),
        ([{"class_weight": ["balanced"], **GRID}, {"class_weight": ["balanced"], "alpha": [7.0]}], True),
        ({"class_weight": [None, "balanced"], **GRID}, False),
        ([{"class_weight": [DICT], **GRID}, {"alpha": [7.0]}], False),
    ],
)
def test_all_candidates_have_one_criterion(grid, same):
    """Class weights that only some candidates have stay out of it."""
    search = FoldlessSearchCV(LSSVC(gamma=0.1), grid).fit(X, LABELS)
    weight = weights_of(LSSVC(class_weight="balanced"), LABELS) if same else np.ones(N)
    splits = list(skl.LeaveOneOut().split(X))
    expected = []
    for params in grid_of(search):
        own = frozen(LSSVC(gamma=0.1).set_params(**params), LABELS)
        expected.append(press_of_refits(own, {}, LABELS, splits, weight))
    assert_allclose(losses_of(search), expected, rtol=1e-8)


def test_class_weights_of_a_whole_last_step_in_the_grid_count():
    model = make_pipeline(StandardScaler(), LSSVC())
    steps = [LSSVC(class_weight="balanced", alpha=alpha) for alpha in (0.1, 10.0)]
    listed = FoldlessSearchCV(model, {"lssvc": steps}).fit(X, BINARY)
    plain = FoldlessSearchCV(make_pipeline(StandardScaler(), steps[0]), {"lssvc__alpha": [0.1, 10.0]}).fit(X, BINARY)
    assert_allclose(losses_of(listed), losses_of(plain), rtol=1e-12)


@pytest.mark.parametrize("cv", [None, FOLDS], ids=["leave-one-out", "folds"])
def test_nested_cross_validation_judges_inside_and_outside_by_these_weights(cv):
    model, outer = frozen(LSSVC(class_weight="balanced"), LABELS), skl.StratifiedKFold(3)
    search = FoldlessSearchCV(LSSVC(class_weight="balanced"), GRID, cv=cv)
    result, weight = nested_cross_validate(search, X, LABELS, cv=outer), weights_of(model, LABELS)
    for number, (train, test) in enumerate(outer.split(X, LABELS)):
        inner = [(train[a], train[b]) for a, b in (cv or skl.LeaveOneOut()).split(train)]
        losses = [
            press_of_refits(model.set_params(gamma=0.3), each, LABELS, inner, weight)
            for each in skl.ParameterGrid(GRID)
        ]
        assert result.inner_criterion[number] == pytest.approx(min(losses), rel=1e-8)
        chosen = refit(clone(model).set_params(**result.best_params[number]), X, LABELS, train)
        missed = np.square(signs(LABELS)[test] - chosen.decision_function(X[test])).sum(1)
        assert result.outer_criterion[number] == pytest.approx(np.average(missed, weights=weight[test]), rel=1e-8)


def test_permutations_keep_sample_weights_in_the_criterion():
    """The choices for the true labels are those of nested cross-validation with these weights."""
    cv = skl.KFold(3, shuffle=True, random_state=1)
    search, params = FoldlessSearchCV(LSSVC(), GRID), {"sample_weight": compute_sample_weight("balanced", BINARY)}
    result = permutation_test_score(search, X, BINARY, cv=cv, n_permutations=3, params=params)
    nested = nested_cross_validate(search, X, BINARY, cv=cv, params=params)
    assert result.path.kind == "one fit"
    assert result.best_params == nested.best_params
    assert_allclose(result.score, nested.test_score.mean())


def test_scores_count_rows_equally_all_the_same():
    search = FoldlessSearchCV(LSSVC(class_weight="balanced"), GRID).fit(X, LABELS, sample_weight=WEIGHT)
    assert search.best_score_ == np.mean(search.loo_predict() == LABELS)


def test_balanced_weights_are_those_of_scikit_learn():
    factors = compute_class_weight("balanced", classes=np.unique(LABELS), y=LABELS)
    assert_allclose(np.unique(weights_of(LSSVC(class_weight="balanced"), LABELS)), np.unique(factors))
