"""A kernel with explicit features, random Fourier features, defined here: every result equals refits."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold

from foldless import LSSVC, LSSVR, FoldlessSearchCV, KernelFisherDiscriminant
from foldless._engine.heldout.problem import Problem
from foldless._engine.tuning.space import default_grid
from foldless.kernels import FeatureMap, Width
from foldless.model_selection import cross_val_predict, nested_cross_validate, permutation_test_score
from support.refits import with_fixed_functions


@dataclass(frozen=True)
class RandomFourier(FeatureMap):
    """phi(x) = sqrt(2 / m) cos(sqrt(2 gamma) W'x + b), of which phi(x).phi(z) is near the RBF kernel."""

    gamma: Annotated[float | str, Width(differentiable=False, per_feature=False)] = 1.0
    n_components: int = 9
    seed: int = 0

    def features(self, X):
        """phi(x) for each row."""
        rng = np.random.default_rng(self.seed)
        W = rng.normal(size=(X.shape[1], self.n_components))
        b = rng.uniform(0, 2 * np.pi, self.n_components)
        return np.sqrt(2 / self.n_components) * np.cos(np.sqrt(2 * self.gamma) * (X @ W) + b)

    def n_features(self, X):
        """m."""
        return self.n_components


RNG = np.random.default_rng(0)
N = 45
X = RNG.normal(size=(N, 3))
LABELS = np.where(X[:, 0] * X[:, 1] > 0.2, 2, (X[:, 2] > 0).astype(int))
BINARY = (X[:, 0] + 0.3 * RNG.normal(size=N) > 0).astype(int)
VALUES = np.sin(2 * X[:, 0]) + X[:, 1]
EVERY = pytest.mark.parametrize(
    ("estimator", "y"),
    [
        (LSSVC(RandomFourier("scale"), alpha=0.1), LABELS),
        (LSSVR(RandomFourier(0.4), alpha=0.1), VALUES),
        (KernelFisherDiscriminant(RandomFourier(0.4), alpha=0.1), BINARY),
        (LSSVR(RandomFourier(0.4), alpha=0.1, penalty="coef"), VALUES),
    ],
    ids=["LSSVC", "LSSVR", "KFDA", "coef"],
)


def outputs(model, rows):
    return model.decision_function(rows) if hasattr(model, "decision_function") else model.predict(rows)


def resolved(estimator):
    """With gamma and basis functions as resolved from all rows, for refits on some of them."""
    return with_fixed_functions(clone(estimator).set_params(kernel=estimator.kernel.resolved(X)), X)


def test_near_the_kernel_it_stands_for():
    kernel = RandomFourier(0.3, 20000)
    expected = np.exp(-0.3 * np.square(X[:, None] - X).sum(2))
    np.testing.assert_allclose(kernel.gram(X), expected, atol=0.05)


@EVERY
def test_fit_equals_the_kernel_as_a_function(estimator, y):
    model = clone(estimator).fit(X, y)
    kernel = estimator.kernel.resolved(X)
    function = clone(estimator).set_params(kernel=lambda A, B: kernel.gram(A, B)).fit(X, y)
    np.testing.assert_allclose(outputs(model, X + 0.1), outputs(function, X + 0.1), atol=1e-9)


class NeverSquare(RandomFourier):
    """The same, and an error where rows are compared with each other."""

    def gram(self, X, Z=None):
        """Nobody should ask."""
        raise AssertionError("a matrix of rows by rows is made")


@pytest.mark.parametrize("estimator", [LSSVC(alpha=0.1), KernelFisherDiscriminant(alpha=0.1)], ids=["LSSVC", "KFDA"])
def test_features_are_used_and_no_matrix_of_rows_by_rows_is_made(estimator):
    estimator.set_params(kernel=NeverSquare(0.4))
    assert clone(estimator).fit(X, LABELS).holder_ == f"low rank: 9 features for {N} rows"
    cross_val_predict(estimator, X, LABELS, cv=KFold(4))
    grid = {"kernel__gamma": [0.05, 0.5], "alpha": [0.1, 1.0]}
    nested_cross_validate(FoldlessSearchCV(estimator, grid), X, LABELS, cv=StratifiedKFold(3))
    permutation_test_score(estimator, X, LABELS, cv=KFold(4), n_permutations=5)


@EVERY
@pytest.mark.parametrize("n_splits", [4, N])
def test_folds_equal_refits(estimator, y, n_splits):
    cv = KFold(n_splits)
    method = "decision_function" if hasattr(estimator, "decision_function") else "predict"
    found = cross_val_predict(estimator, X, y, cv=cv, method=method)
    for train, test in list(cv.split(X))[:8]:
        expected = outputs(resolved(estimator).fit(X[train], y[train]), X[test])
        np.testing.assert_allclose(found[test], expected, atol=1e-8)


@EVERY
def test_search_equals_refits(estimator, y):
    grid = {"kernel__gamma": [0.05, 0.5, 2.0], "alpha": [0.1, 1.0]}
    search = FoldlessSearchCV(estimator, grid, cv=KFold(5)).fit(X, y)
    targets = {"f": y, "i": np.where(y[:, None] == np.unique(y), 1.0, -1.0)}[y.dtype.kind]
    if isinstance(estimator, KernelFisherDiscriminant):  # of its regression on two classes, not of its decisions
        estimator, targets = LSSVC(estimator.kernel), np.where(y == 1, 1.0, -1.0)
    for params, loss in zip(search.cv_results_["params"], search.cv_results_["mean_test_criterion"], strict=True):
        fits = np.empty_like(targets)
        for train, test in KFold(5).split(X):
            fits[test] = outputs(resolved(clone(estimator).set_params(**params)).fit(X[train], y[train]), X[test])
        assert loss == pytest.approx(np.square(targets - fits).mean(0).sum(), rel=1e-8)
    assert search.best_estimator_.kernel_.get_params()["gamma"] == search.best_params_["kernel__gamma"]


def test_default_grid_has_gamma():
    search = FoldlessSearchCV(LSSVC(RandomFourier("scale"))).fit(X, LABELS)
    assert set(search.best_params_) == {"alpha", "kernel__gamma"}


@pytest.mark.parametrize(("n_components", "n_columns", "decades"), [(64, 3, 4), (9, 70, 8)])
def test_default_alphas_reach_as_far_as_the_features_keep_digits(n_components, n_columns, decades):
    """Many features go through their Gram matrix, which keeps fewer; columns of X do not count."""
    rows = np.random.default_rng(1).normal(size=(200, n_columns))
    kernel = RandomFourier(0.1, n_components=n_components)
    problem = Problem.of(kernel, rows, alpha=1.0, Q=np.ones((200, 1)))
    alphas = default_grid(problem)["alpha"]
    assert np.log10(alphas[-1] / alphas[0]) == pytest.approx(decades + np.log10(200))


def test_nested_cross_validation_equals_a_double_loop():
    search = FoldlessSearchCV(LSSVC(RandomFourier()), {"kernel__gamma": [0.05, 0.5, 2.0], "alpha": [0.1, 1.0]})
    cv = StratifiedKFold(3)
    result = nested_cross_validate(search, X, LABELS, cv=cv)
    for number, (train, test) in enumerate(cv.split(X, LABELS)):
        inner = clone(search).fit(X[train], LABELS[train])
        assert result.best_params[number] == inner.best_params_
        np.testing.assert_allclose(result.decision[number], inner.decision_function(X[test]), atol=1e-8)


@EVERY
def test_permutation_test_equals_one_of_the_kernel_as_a_function(estimator, y):
    options = {"cv": KFold(4), "n_permutations": 8, "random_state": 0}
    kernel = estimator.kernel.resolved(X)
    function = clone(estimator).set_params(kernel=lambda A, B: kernel.gram(A, B))
    found = permutation_test_score(estimator, X, y, **options)
    expected = permutation_test_score(function, X, y, **options)
    np.testing.assert_allclose(found[1], expected[1], atol=1e-9)
    assert found[0] == pytest.approx(expected[0])


def test_permutation_test_of_a_search_equals_one_of_the_kernels_as_functions():
    gammas, options = [0.05, 0.5], {"cv": StratifiedKFold(3), "n_permutations": 6, "random_state": 0}
    search = FoldlessSearchCV(LSSVC(RandomFourier()), {"kernel__gamma": gammas, "alpha": [0.1, 1.0]})
    functions = [lambda A, B, gamma=gamma: RandomFourier(gamma).gram(A, B) for gamma in gammas]
    other = FoldlessSearchCV(LSSVC(), {"kernel": functions, "alpha": [0.1, 1.0]})
    found, expected = (permutation_test_score(each, X, BINARY, **options) for each in (search, other))
    np.testing.assert_array_equal(found[1], expected[1])
