"""Linear models behind features that are centred and scaled on each training part: equal to scikit-learn's pipeline."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from foldless._engine.heldout.leave_out import leave_out
from foldless._engine.heldout.scaled import ScaledParts
from foldless._engine.heldout.sets import Sets
from support.tolerances import assert_close

N = 40
RNG = np.random.default_rng(0)
FEATURES = {
    "plain": RNG.normal(size=(N, 5)),
    "of odd sizes": RNG.normal(size=(N, 5)) * [1e-6, 1.0, 1e6, 10.0, 1e-3] + [1e-3, 100.0, 1e8, 0.0, 5.0],
    "constant": np.column_stack([RNG.normal(size=(N, 3)), np.full(N, 2.5), np.zeros(N)]),
    "of one row alone": np.column_stack([RNG.normal(size=(N, 3)), np.arange(N) == 7, 3.0 + (np.arange(N) == 8)]),
    "with one huge value": np.column_stack(
        [RNG.normal(size=(N, 3)), np.where(np.arange(N) == 9, 1e9, RNG.normal(size=N))]
    ),
    "more than rows": RNG.normal(size=(N, N + 5)),
}
Y = RNG.normal(size=(N, 2))
SETS = np.arange(N).reshape(-1, 4)
options = pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "none"])
means = pytest.mark.parametrize("with_mean", [True, False], ids=["centred", "not centred"])
scales = pytest.mark.parametrize("with_std", [True, False], ids=["scaled", "not scaled"])
weighted = pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])


def refit(X, w, train, rows, *, intercept, with_mean, with_std):
    scaler = StandardScaler(with_mean=with_mean, with_std=with_std)
    pipeline = make_pipeline(scaler, Ridge(alpha=0.7, fit_intercept=intercept, solver="svd"))
    return pipeline.fit(X[train], Y[train], ridge__sample_weight=w[train]).predict(X[rows])


@pytest.mark.many_cases
@options
@means
@scales
@weighted
@pytest.mark.parametrize("name", FEATURES)
def test_sets_left_out_equal_refits(name, weighted, with_std, with_mean, intercept):
    choice = {"intercept": intercept, "with_mean": with_mean, "with_std": with_std}
    X, w = FEATURES[name], np.random.default_rng(5).uniform(0.2, 3.0, N) if weighted else np.ones(N)
    parts = ScaledParts(X, Y, w, 0.7, **choice)
    for numbers, held_out in leave_out(parts, Sets.of(SETS)):
        for sets, fits in zip(SETS[numbers], held_out.fits, strict=True):
            train = np.setdiff1d(np.arange(N), sets)
            assert_close(fits, refit(X, w, train, sets, **choice), rtol=1e-7)


@options
@weighted
@pytest.mark.parametrize("name", FEATURES)
def test_any_training_part_equals_a_refit(name, weighted, intercept):
    rng = np.random.default_rng(5)
    X, w = FEATURES[name], rng.uniform(0.2, 3.0, N) if weighted else np.ones(N)
    choice = {"intercept": intercept, "with_mean": True, "with_std": True}
    parts = ScaledParts(X, Y, w, 0.7, **choice)
    for train in (np.arange(12), np.arange(5, N), rng.permutation(N)[:25]):
        assert_close(parts.part(train).fits(np.arange(N)), refit(X, w, train, np.arange(N), **choice), rtol=1e-7)


@options
@weighted
def test_class_matrices_are_those_of_the_fits(weighted, intercept):
    X, w = FEATURES["of one row alone"], np.random.default_rng(5).uniform(0.2, 3.0, N) if weighted else np.ones(N)
    parts = ScaledParts(X, Y, w, 0.7, intercept=intercept)
    for numbers, held_out in leave_out(parts, Sets.of(SETS)):
        N_, U = held_out.moments()[:2]
        for number, sets in enumerate(SETS[numbers]):
            train = np.setdiff1d(np.arange(N), sets)
            W, F = w[train][:, None], refit(X, w, train, train, intercept=intercept, with_mean=True, with_std=True)
            assert_close(N_[number], Y[train].T @ (W * Y[train]))
            assert_close(U[number], Y[train].T @ (W * (Y[train] - F)), rtol=1e-7)
