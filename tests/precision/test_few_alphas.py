"""Grids of few alphas: a factor for each in the place of an eigendecomposition for all, by the count of operations."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from foldless import LSSVC, FoldlessSearchCV
from foldless._engine.heldout.problem import Problem
from foldless._engine.heldout.solution import loo_path
from foldless._engine.precision import cost
from foldless._engine.precision.choose import EachAlpha
from foldless._engine.precision.spectral import Spectrum
from foldless.kernels import RBF, BasisFunctions, Linear
from foldless.model_selection import nested_cross_validate
from support.refits import fits_of_candidate
from support.tolerances import assert_close

ALPHAS = [1e-2, 1.0, 30.0]


def problem_of(n, kernel=None, **options):
    X = np.random.default_rng(0).normal(size=(n, 3))
    return Problem.of((kernel or RBF(0.2)).resolved(X), X, alpha=1.0, Q=np.ones((n, 1)), **options)


def labelled(n):
    rng = np.random.default_rng(1)
    y = np.arange(n) % 3
    return rng.normal(size=(n, 4)) + y[:, None] * [1.0, 0.5, 0.0, 0.0], y


@pytest.fixture
def _no_small_steps(monkeypatch):
    """Few rows choose as many do: Python's own time for each alpha is not counted."""
    monkeypatch.setattr(cost, "STEPS_OF_FACTOR", 0.0)


@pytest.mark.parametrize(
    ("n", "n_alphas", "explicit", "expected"),
    [
        (300, 4, False, EachAlpha),
        (300, 12, False, Spectrum),
        (300, None, False, Spectrum),
        (30, 4, False, Spectrum),  # Python's time for each alpha counts
        (400, 9, True, EachAlpha),  # P as an array is cheaper from factors
        (400, 9, False, Spectrum),
    ],
)
def test_operations_decide_between_factors_and_eigenvectors(n, n_alphas, explicit, expected):
    problem = problem_of(n)
    assert isinstance(problem.path(problem.active, n_alphas, explicit=explicit), expected)


@pytest.mark.usefixtures("_no_small_steps")
def test_features_keep_their_decomposition():
    for kernel in (Linear(), BasisFunctions(RBF(0.2), np.eye(3))):
        problem = problem_of(40, kernel)
        assert problem.path(problem.active, 2).serves_every_alpha


@pytest.mark.parametrize("weighted", [False, True])
def test_both_ways_give_the_same_leave_one_out(weighted):
    n, rng = 60, np.random.default_rng(2)
    problem, Y = problem_of(n, sample_weight=rng.uniform(0.1, 2.0, n) if weighted else None), rng.normal(size=(n, 2))
    paths = EachAlpha(problem, problem.active), Spectrum.path(problem, problem.active)
    by_factors, by_spectrum = (loo_path(problem, problem.active, Y, ALPHAS, path) for path in paths)
    assert_close(by_factors, by_spectrum)


def test_an_alpha_without_a_factor_takes_eigenvectors():
    rng = np.random.default_rng(3)
    X = np.repeat(rng.normal(size=(20, 2)), 2, axis=0)  # every row twice
    problem = Problem.of(RBF(0.01), X, alpha=1.0, Q=np.ones((40, 1)))
    path = EachAlpha(problem, problem.active)
    assert isinstance(path.with_alpha(1e-17), Spectrum)
    assert not isinstance(path.with_alpha(1.0), Spectrum)


@pytest.mark.usefixtures("_no_small_steps")
@pytest.mark.parametrize("cv", [None, StratifiedKFold(4)])
def test_searches_of_few_alphas_score_as_refits(cv):
    (X, y), model = labelled(36), LSSVC(gamma=0.3)
    search = FoldlessSearchCV(model, {"alpha": ALPHAS, "gamma": [0.1, 0.5]}, cv=cv).fit(X, y)
    splits = [(np.delete(np.arange(36), [row]), np.array([row])) for row in range(36)]
    splits = splits if cv is None else list(cv.split(X, y))
    for params, loss in zip(search.cv_results_["params"], search.cv_results_["mean_test_criterion"], strict=True):
        rows, fits = fits_of_candidate(model, params, y, splits, X)
        T = 2.0 * (y[rows, None] == np.arange(3)) - 1
        assert loss == pytest.approx(np.square(T - fits).sum(1).mean(), rel=1e-9)


@pytest.mark.usefixtures("_no_small_steps")
def test_nested_searches_of_few_alphas_choose_as_searches_of_the_parts():
    X, y = labelled(60)
    search = FoldlessSearchCV(LSSVC(), {"alpha": ALPHAS, "gamma": [0.1, 0.5]})
    nested = nested_cross_validate(search, X, y, cv=StratifiedKFold(5))
    for (train, test), params, score in zip(
        StratifiedKFold(5).split(X, y), nested.best_params, nested.test_score, strict=True
    ):
        alone = clone(search).fit(X[train], y[train])
        assert alone.best_params_ == params
        assert alone.score(X[test], y[test]) == pytest.approx(score)
