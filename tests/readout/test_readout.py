"""Discriminants against the generalised eigenproblem refitted per fold; thresholds against their definitions."""

import numpy as np
import pytest

from foldless import kernels, reference
from foldless._engine.heldout.problem import Problem
from foldless._engine.readout.codings import OneAgainstAll, indicator
from foldless._engine.readout.discriminant import Discriminant
from foldless._engine.readout.ranking import best_cut
from support.parts import TrainingParts
from support.tolerances import assert_close

N = 30
X = np.random.default_rng(0).normal(size=(N, 4))


def make(c, weighted, centred, alpha=0.2):
    rng = np.random.default_rng(c)
    codes = rng.permutation(np.arange(N) % c)
    w = rng.uniform(0.3, 3.0, N) if weighted else np.ones(N)
    kernel = kernels.RBF(0.2)
    Q = np.ones((N, 1 if centred else 0))
    problem = Problem.of(kernel, X, alpha=alpha, Q=Q, sample_weight=w)
    return codes, w, kernel.gram(X), TrainingParts(problem, indicator(codes, c, float))


FOLDS = [np.arange(4), np.arange(3, 20), np.array([29, 2, 15])]


@pytest.mark.parametrize("c", [2, 3, 5])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("alpha", [1e-3, 0.2, 30.0])
@pytest.mark.parametrize("test", FOLDS, ids=len)
def test_discriminant_scores_equal_the_eigenproblem_refitted_on_the_training_part(c, weighted, centred, alpha, test):
    codes, w, K, holdout = make(c, weighted, centred, alpha)
    train = np.setdiff1d(np.arange(N), test)
    z, centroids, decision = reference.discriminant(K, codes, train, test, alpha, w=w, centred=centred)
    readout = Discriminant(c, "centroid", centred=centred)
    model = holdout.part(train)
    scalings, ours, _ = readout.axes(model.moments())
    fits = model.fits(test)
    signs = np.sign(np.sum(centroids * ours, 0))  # axes are known up to sign
    assert_close(fits @ scalings * signs, z)
    assert_close(ours * signs, centroids)
    scores = readout.scores(fits, model.moments())
    expected = decision[:, 1] - decision[:, 0] if c == 2 else decision
    assert_close(scores, expected)


@pytest.mark.parametrize("c", [3, 5])
def test_discriminant_scores_of_many_training_parts_equal_one_by_one(c):
    codes, w, K, holdout = make(c, True, True)
    loo = holdout.full_fit.loo()
    readout = Discriminant(c, priors=tuple(np.arange(1, c + 1) / sum(range(1, c + 1))))
    batch = readout.scores(loo.fits, loo.moments())[:, 0]
    for i in (0, 7, 29):
        train = np.delete(np.arange(N), i)
        *_, expected = reference.discriminant(K, codes, train, [i], 0.2, w=w, priors=np.array(readout.priors))
        assert_close(batch[i], expected[0])


def test_two_class_discriminant_is_the_multi_class_path_with_two_columns():
    """Nearest centroid in one dimension: the sign of decision_1 - decision_0 is the side of the midpoint."""
    *_, holdout = make(2, False, True)
    moments = holdout.full_fit.moments()
    readout = Discriminant(2, "centroid")
    fits = holdout.full_fit.fits(np.arange(N))
    scalings, centroids, _ = readout.axes(moments)
    z = (fits @ scalings)[:, 0]
    midpoint = centroids.mean()
    side = (z > midpoint) == (centroids[1, 0] > midpoint)
    np.testing.assert_array_equal(readout.scores(fits, moments) > 0, side)


@pytest.mark.parametrize("weighted", [False, True])
def test_fisher_and_pm1_scores_are_regressions_on_their_targets(weighted):
    """Cawley & Talbot 2003: targets +l/l1 and -l/l0; LS-SVM: +-1. Refitted on a training part with its own masses."""
    codes, w, K, holdout = make(2, weighted, True)
    test = np.arange(5)
    train = np.arange(5, N)
    model = holdout.part(train)
    mass = np.bincount(codes[train], weights=w[train])
    for threshold, positive, negative in (("fisher", mass.sum() / mass[1], -mass.sum() / mass[0]), ("pm1", 1, -1)):
        y = np.where(codes == 1, positive, negative)[:, None]
        expected = reference.heldout_fits(K, y, train, test, 0.2, w=w)
        scores = Discriminant(2, threshold).scores(model.fits(test), model.moments())
        assert_close(scores, expected[:, 0])


def test_the_bias_of_the_fisher_coding_is_minus_the_mean_projection():
    """Cawley & Talbot 2003, after eq. 4: b = -alpha'(l1 M1 + l2 M2) / l, here the mean of the fits is 0."""
    *_, holdout = make(2, False, True)
    fits = holdout.full_fit.fits(np.arange(N))
    assert abs(Discriminant(2, "fisher").scores(fits, holdout.full_fit.moments()).mean()) < 1e-12


def test_one_against_all_targets():
    codes = np.array([0, 2, 1])
    np.testing.assert_array_equal(
        OneAgainstAll(3).targets(codes, float), np.array([[1, -1, -1], [-1, -1, 1], [-1, 1, -1]], float)
    )
    np.testing.assert_array_equal(OneAgainstAll(2).targets(np.array([0, 1]), float), [[-1.0], [1.0]])


def test_discriminants_never_choose_a_class_without_mass_and_keep_the_rest():
    codes, _, K, holdout = make(3, False, True)
    train = np.flatnonzero(codes != 2)
    model = holdout.part(train)
    test = np.flatnonzero(codes == 2)
    scores = Discriminant(3).scores(model.fits(test), model.moments())
    assert np.all(scores[:, 2] == np.finfo(float).min)
    *_, expected = reference.discriminant(K, np.minimum(codes, 1), train, test, 0.2)
    assert_close(scores[:, 1] - scores[:, 0], expected[:, 1] - expected[:, 0])


def test_discriminants_separate_a_class_of_identical_rows_without_overflow():
    S = np.kron(np.eye(2), np.ones((3, 3)))
    problem = Problem.of(kernels.Precomputed(), S, alpha=1e-9, Q=np.ones((6, 1)))
    holdout = TrainingParts(problem, indicator(np.repeat([0, 1], 3), 2, float))
    scores = Discriminant(2, "centroid").scores(holdout.full_fit.fits(np.arange(6)), holdout.full_fit.moments())
    assert np.isfinite(scores).all()
    np.testing.assert_array_equal(scores > 0, [False] * 3 + [True] * 3)


def brute_cut(scores, positive, weights):
    s = np.sort(scores)
    candidates = [s[0] - 1, *(s[1:] + s[:-1]) / 2, s[-1] + 1]
    return min(np.sum(weights * ((scores > cut) != positive)) for cut in candidates)


@pytest.mark.parametrize("seed", range(20))
def test_best_cut_has_the_least_weighted_error(seed):
    rng = np.random.default_rng(seed)
    scores = np.round(rng.normal(size=25), 1)  # with ties
    positive = rng.random(25) < 0.5
    weights = rng.uniform(0.1, 2.0, 25)
    cut = best_cut(scores, positive, weights)
    errors = np.sum(weights * ((scores > cut) != positive))
    assert errors == pytest.approx(brute_cut(scores, positive, weights))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_best_cut_of_one_class_is_zero_where_that_leaves_all_on_its_side(sign):
    scores = sign * np.array([0.5, 1.0, 2.0])
    assert best_cut(scores, np.full(3, sign > 0), np.ones(3)) == 0.0
    assert sign * best_cut(scores - 3 * sign, np.full(3, sign > 0), np.ones(3)) < -2.5


def test_best_cut_prefers_zero_among_equals():
    scores, positive = np.array([-2.0, -1.0, 1.0, 3.0]), np.array([False, False, True, True])
    assert best_cut(scores, positive, np.ones(4)) == 0.0
    assert best_cut(scores + 5, positive, np.ones(4)) == 5.0
