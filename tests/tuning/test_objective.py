"""Objectives of continuous searches, their spaces and priors, against their formulas and central differences."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn import model_selection as skl

from foldless import LSSVC, LSSVR, FoldlessSearchCV, kernels
from foldless._engine.tuning import descent
from foldless._engine.tuning.criteria import CRITERIA
from foldless._engine.tuning.descent import PRIORS, Objective, Point
from foldless._engine.tuning.selection import Selection
from foldless._engine.tuning.space import Space
from foldless._sklearn.adapters import TASKS
from foldless.model_selection import Optimizer
from support.searches import BINARY, LABELS, VALUES, WEIGHT, D, N, X, criterion_by_refits, splits_of, xor
from support.tolerances import assert_close


def task_of(estimator, y=LABELS, w=None, data=X):
    return TASKS[type(estimator)](estimator, data, y, w).task


def objective_of(estimator, groups=None, n_alphas=1, prior=None, criterion="press", splits=None, y=LABELS, w=None):
    task = task_of(estimator, y, w)
    kernel = task.problem.kernel
    if groups is not None:
        groups = np.asarray(groups)
        kernel = kernel.changed(gamma=np.broadcast_to(kernel.get_params()["gamma"], D).copy())
    space = Space(kernel, n_alphas, groups)
    selection = Selection.of(task, CRITERIA[criterion], splits=splits)
    return Objective(selection, space, prior), space.pack(task.problem.alpha, kernel)


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
    search = FoldlessSearchCV(
        LSSVC(), method=Optimizer("gradient", max_iter=30, prior=prior, feature_scaling=True)
    ).fit(data, y)
    assert search.best_criterion_ == pytest.approx(criterion_by_refits(search, data, y), rel=1e-6)
    best = [step for step in search.history_ if np.array_equal(step["gamma"], search.feature_scales_)][-1]
    assert best["criterion"] == search.best_criterion_
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
def test_pack_inverts_unpack(name):
    objective, start = objective_of(**OBJECTIVES[name])
    space = objective.space
    x = start + np.random.default_rng(1).normal(0, 0.5, len(start))
    alphas, kernel = space.unpack(x)
    assert len(alphas) == space.n_alphas
    assert_close(space.pack(alphas, kernel), x)
    assert max(each.max() for each in space.places.values()) + 1 == len(x)
    if space.groups is not None:
        assert_close(np.exp(x[space.scales])[space.groups], kernel.get_params()["gamma"])
    limits = {"alpha": (1.0, 2.0), "gamma": (3.0, 4.0), "coef0": (5.0, 6.0)}
    bounds = np.exp(space.bounds(limits))
    assert bounds.shape == (len(x), 2)
    assert_close(bounds[: len(alphas)], np.tile([1.0, 2.0], (len(alphas), 1)))
    if "gamma" in space.names:
        assert_close(bounds[space.scales], np.tile([3.0, 4.0], (space.n_scales, 1)))
    assert ("coef0" in space.names) == (isinstance(kernel, kernels.Poly) and kernel.coef0 > 0)


def test_repeated_splits_weigh_no_more_against_the_prior():
    folds = list(skl.KFold(5, shuffle=True, random_state=0).split(X))
    options = {"method": Optimizer("gradient", feature_scaling=True)}
    once = FoldlessSearchCV(LSSVC(), cv=folds, **options).fit(X, BINARY)
    often = FoldlessSearchCV(LSSVC(), cv=folds * 4, **options).fit(X, BINARY)
    np.testing.assert_allclose(often.best_criterion_, once.best_criterion_, rtol=1e-4)


@pytest.mark.parametrize(("gain", "taken"), [(0.5, False), (2.0, True)], ids=["by less", "by more"])
def test_scales_that_parted_freely_count_if_better_by_one_unit_a_scale(monkeypatch, gain, taken):
    space = Space(kernels.RBF(np.ones(D)), 1, np.arange(D))
    start = SimpleNamespace(task=None, column=None, vector=None, prior="cauchy", space=space)
    objectives = [10.0, 0.0, 10.0 - gain * space.n_scales]
    ends = [Point(0.0, each, [1.0], space.kernel, 1, 0.0) for each in objectives]
    ways = iter([descent.DescentResult(end, [], "converged") for end in ends])
    monkeypatch.setattr(descent, "descend", lambda *args: next(ways))
    spec = SimpleNamespace(selection=lambda *args, **options: None)
    assert (descent.follow(start, spec, None, None).minimum is ends[2]) == taken
