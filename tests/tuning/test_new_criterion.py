"""Criteria that the library does not know, defined here: they go where those with names go."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, StratifiedKFold

from foldless import LSSVC, LSSVR, FoldlessSearchCV, KernelFisherDiscriminant
from foldless._engine.tuning.criteria import CRITERIA, Criterion
from foldless._engine.tuning.descent import Objective
from foldless._engine.tuning.selection import Selection
from foldless._engine.tuning.space import Space
from foldless._sklearn.candidates import SearchData
from foldless.model_selection import Optimizer, nested_cross_validate, permutation_test_score


def logistic(f, t, w):
    """Mean of log(1 + exp(-t f)), rows along the last axis."""
    return (w * np.logaddexp(0, -t * f)).sum(-1), -w * t / (1 + np.exp(t * f))


def confident(f, t, w):
    """Share of rows on the wrong side of 1/4."""
    return (w * (t * f < 0.25)).sum(-1), None


def smooth_confident(f, t, w, slope=10.0):
    """The same with a sigmoid."""
    share = 1 / (1 + np.exp(slope * (t * f - 0.25)))
    return (w * share).sum(-1), -w * slope * t * share * (1 - share)


def relative(f, t, w):
    """Squared relative error of positive values: no function of t - f alone."""
    gap = f / t - 1
    return (w * gap * gap).sum(-1), 2 * w * gap / t


LOGISTIC = Criterion(logistic, smooth=True)
CONFIDENT = Criterion(confident, smooth=False)
SMOOTH_CONFIDENT = Criterion(smooth_confident, smooth=True, has_slope=True)
RELATIVE = Criterion(relative, smooth=True, labels=False)

RNG = np.random.default_rng(0)
N = 40
X = RNG.normal(size=(N, 3))
LABELS = np.where(X[:, 0] * X[:, 1] > 0.2, 2, (X[:, 2] > 0).astype(int))
BINARY = (X[:, 0] * X[:, 1] + 0.3 * RNG.normal(size=N) > 0).astype(int)
VALUES = 5 + np.sin(2 * X[:, 0]) + 0.1 * RNG.normal(size=N)
GRID = {"gamma": [0.05, 0.5], "alpha": [0.01, 0.1, 1.0]}
CASES = {
    "logistic": (LOGISTIC, LSSVC(), LABELS),
    "confident": (CONFIDENT, LSSVC(), LABELS),
    "smooth confident": (SMOOTH_CONFIDENT, LSSVC(), BINARY),
    "relative": (RELATIVE, LSSVR(), VALUES),
}
every_case = pytest.mark.parametrize("case", CASES)
smooth_cases = pytest.mark.parametrize("case", [name for name, (each, _, _) in CASES.items() if each.smooth])


def targets_of(y):
    if y.dtype.kind == "f":
        return y[:, None]
    return 2.0 * y[:, None] - 1 if y.max() == 1 else np.where(y[:, None] == np.unique(y), 1.0, -1.0)


def loss(criterion, estimator, y, cv):
    """The criterion of the held-out fits of refits."""
    fits = np.empty(targets_of(y).shape)
    for train, test in cv.split(X):
        model = clone(estimator).fit(X[train], y[train])
        found = model.decision_function(X[test]) if hasattr(model, "decision_function") else model.predict(X[test])
        fits[test] = found.reshape(len(test), -1)
    w = np.full(N, 1 / N)
    return sum(criterion.function(f, t, w)[0] for f, t in zip(fits.T, targets_of(y).T, strict=True))


@pytest.mark.many_cases
@every_case
@pytest.mark.parametrize("n_splits", [5, N])
def test_grid_search_equals_refits(case, n_splits):
    criterion, estimator, y = CASES[case]
    cv = KFold(n_splits)
    search = FoldlessSearchCV(estimator, GRID, criterion=criterion, cv=cv).fit(X, y)
    for params, found in zip(search.cv_results_["params"], search.cv_results_["mean_test_criterion"], strict=True):
        assert found == pytest.approx(loss(criterion, clone(estimator).set_params(**params), y, cv), rel=1e-8)


@smooth_cases
def test_gradient_equals_central_differences(case):
    criterion, estimator, y = CASES[case]
    task = SearchData(X, y).task(clone(estimator).set_params(gamma=0.3)).task
    space = Space(task.problem.kernel)
    objective = Objective(Selection.of(task, criterion), space, None)
    x, h = space.pack(0.3, task.problem.kernel), 1e-5
    differences = [(objective(x + h * e, False) - objective(x - h * e, False)) / (2 * h) for e in np.eye(2)]
    np.testing.assert_allclose(objective(x)[1], differences, rtol=1e-5, atol=1e-9)


@smooth_cases
def test_gradient_search_ends_below_its_start(case):
    criterion, estimator, y = CASES[case]
    search = FoldlessSearchCV(estimator, criterion=criterion, method=Optimizer("gradient", max_iter=20)).fit(X, y)
    assert search.best_criterion_ < search.history_[0]["criterion"]


@every_case
def test_equal_to_the_same_as_a_plain_function(case):
    criterion, estimator, y = CASES[case]
    found = FoldlessSearchCV(estimator, GRID, criterion=criterion).fit(X, y)
    if criterion.labels and len(np.unique(y)) > 2:
        pytest.skip("plain functions are given +-1 all the same")
    plain = FoldlessSearchCV(estimator, GRID, criterion=criterion.function).fit(X, y)
    np.testing.assert_allclose(
        found.cv_results_["mean_test_criterion"], plain.cv_results_["mean_test_criterion"], rtol=1e-12
    )


def test_a_search_minimises_a_criterion_with_the_slope_that_it_was_given():
    steep = SMOOTH_CONFIDENT.with_slope(30.0)
    search = FoldlessSearchCV(LSSVC(), GRID, criterion=steep).fit(X, BINARY)
    plain = FoldlessSearchCV(LSSVC(), GRID, criterion=lambda f, t, w: smooth_confident(f, t, w, 30.0)).fit(X, BINARY)
    losses = search.cv_results_["mean_test_criterion"]
    np.testing.assert_allclose(losses, plain.cv_results_["mean_test_criterion"], rtol=1e-12)
    other = FoldlessSearchCV(LSSVC(), GRID, criterion=SMOOTH_CONFIDENT).fit(X, BINARY)
    assert not np.allclose(losses, other.cv_results_["mean_test_criterion"], rtol=1e-3)


def test_nested_cross_validation_equals_a_double_loop():
    search = FoldlessSearchCV(LSSVC(), {"gamma": [0.05, 0.5], "alpha": [0.1, 1.0]}, criterion=LOGISTIC)
    cv = StratifiedKFold(3)
    result = nested_cross_validate(search, X, LABELS, cv=cv)
    for number, (train, test) in enumerate(cv.split(X, LABELS)):
        inner = clone(search).fit(X[train], LABELS[train])
        assert result.inner_criterion[number] == pytest.approx(inner.best_criterion_, rel=1e-9)
        np.testing.assert_allclose(result.decision[number], inner.decision_function(X[test]), atol=1e-9)


def test_permutation_test_of_a_search_takes_it():
    search = FoldlessSearchCV(LSSVC(), GRID, criterion=LOGISTIC)
    plain = FoldlessSearchCV(LSSVC(), GRID, criterion=logistic)
    options = {"cv": StratifiedKFold(3), "n_permutations": 6, "random_state": 0}
    found, expected = (permutation_test_score(each, X, BINARY, **options) for each in (search, plain))
    np.testing.assert_array_equal(found[1], expected[1])


def test_known_criteria_are_taken_as_objects_too():
    for name in ("press", "auc", "multiclass_error"):
        options = {"param_grid": GRID, "refit": False}
        one = FoldlessSearchCV(KernelFisherDiscriminant(), criterion=CRITERIA[name], **options).fit(X, LABELS)
        two = FoldlessSearchCV(KernelFisherDiscriminant(), criterion=name, **options).fit(X, LABELS)
        np.testing.assert_array_equal(one.cv_results_["mean_test_criterion"], two.cv_results_["mean_test_criterion"])
    options = {"method": Optimizer("gradient", max_iter=5, feature_scaling=True)}
    one = clone(FoldlessSearchCV(LSSVC(), criterion=CRITERIA["press"], **options)).fit(X, BINARY)
    two = FoldlessSearchCV(LSSVC(), **options).fit(X, BINARY)
    np.testing.assert_array_equal(one.feature_scales_, two.feature_scales_)  # the prior is that of "press"


def test_rules_hold_for_them():
    with pytest.raises(ValueError, match="has no derivative"):
        FoldlessSearchCV(LSSVC(), criterion=CONFIDENT, method="gradient").fit(X, LABELS)
    with pytest.raises(ValueError, match="Ridge has no classes"):
        FoldlessSearchCV(Ridge(), criterion=LOGISTIC).fit(X, VALUES)
    with pytest.raises(ValueError, match="goes with a model of squared residuals"):
        FoldlessSearchCV(
            LSSVC(), criterion=LOGISTIC, method=Optimizer("gradient", prior="cauchy", feature_scaling=True)
        ).fit(X, LABELS)
