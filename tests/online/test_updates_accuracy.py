"""Accuracy of models that learn and forget, on kernels of any size and condition, beside new fits."""

import warnings

import numpy as np
import pytest

import foldless._engine.online.certificate as certificate
import foldless._engine.online.updates as updates
from foldless import LSSVC, LSSVR, KernelFisherDiscriminant, kernels
from foldless._engine.heldout.problem import Problem
from foldless._engine.precision.growing import Growing
from support.tolerances import assert_close

EPS = np.finfo(float).eps


def excess_error(model, X):
    """Largest difference to a new fit in predictions and leave-one-out residuals, by what rounding explains.

    That is max(1e-8, 1e3 eps cond(M)) of the size of the targets, or of the values where they are larger.
    """
    task, whole = model._fitted_task, model._parts.full_fit
    new = updates.solve_anew(task.problem, task.Y)
    smallest, largest = certificate.eigenvalue_range(task.problem, new.rows)
    allowed = max(1e-8, 1e3 * EPS * largest / smallest)
    basis, beta = new.expansion()
    K = task.problem.kernel.gram(X, task.problem.X[basis])
    pairs = [(model._fits(X), K @ beta + new.B[: task.problem.intercept].sum(0))]
    pairs.append((whole.loo().E[:, 0] / whole.root, new.loo().E[:, 0] / new.root))
    size = new.target_scale.max()
    return max(np.abs(a - b).max() / max(size, np.abs(b).max()) for a, b in pairs) / allowed


def test_updates_of_an_ill_conditioned_kernel_equal_a_new_fit():
    """Coefficients may agree to 1e-6 where fits, which a large K makes of them, are off by 1e8."""
    rng = np.random.default_rng(0)
    X, y = 30 * rng.normal(size=(30, 2)), rng.normal(size=30)
    model = LSSVR(kernel="poly", degree=3, gamma=1.0, alpha=1e-3).fit(X[:20], y[:20])
    for i in range(20, 30):
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    for _ in range(5):
        model.forget([0])
    new = LSSVR(kernel="poly", degree=3, gamma=1.0, alpha=1e-3).fit(X[5:], y[5:])
    assert np.abs(new.predict(X[5:])).max() < 3
    assert_close(model.predict(X[5:]), new.predict(X[5:]), rtol=1.0)
    assert model.unlearning_certificate().holds


def random_updates(seed):
    """A random model after random rows came and went, and rows to predict."""
    rng = np.random.default_rng(seed)
    n, scale = 50, 10.0 ** rng.uniform(-2, 2)
    X = scale * rng.normal(size=(n, int(rng.integers(1, 5))))
    X[40:] = X[rng.permutation(40)[:10]]  # some rows come twice
    kernel = str(rng.choice(["linear", "poly", "rbf", "laplacian"]))
    gamma = float(rng.choice([1.0, 0.3, 1 / scale**2, 0.1 / scale**2]))
    penalty = ["rkhs", "coef", "coef"][rng.integers(3)]
    options = {"kernel": kernel, "gamma": gamma, "alpha": 10.0 ** rng.uniform(-10, 6)}
    model = (LSSVR, LSSVC, KernelFisherDiscriminant)[rng.integers(3)](**options, penalty=penalty)
    y = rng.normal(size=n) if isinstance(model, LSSVR) else rng.integers(0, 2, n)
    w = 10.0 ** rng.uniform(-6, 6, n) if rng.random() < 0.3 else np.ones(n)
    order = rng.permutation(n)
    model.fit(X[order[:20]], y[order[:20]], sample_weight=w[order[:20]])
    for start in range(20, 50, 3):
        new = order[start : start + int(rng.integers(1, 4))]
        model.partial_fit(X[new], y[new], sample_weight=w[new])
        if rng.random() < 0.7:
            model.forget(rng.permutation(15)[: int(rng.integers(1, 3))])
        yield model, X


@pytest.mark.parametrize("seed", [0, 60, 95, 243, 259, 292, 362])
def test_any_sequence_of_updates_equals_a_new_fit(seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for model, X in random_updates(seed):
            assert excess_error(model, X) < 1


@pytest.mark.parametrize("alpha", 10.0 ** np.arange(-12, 13, 3))
@pytest.mark.filterwarnings("ignore::foldless._engine.heldout.caution.HugePenaltyWarning")
def test_updates_with_coefficient_penalty_equal_new_fit_at_any_alpha(alpha):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), rng.normal(size=40)
    model = LSSVR(gamma=0.3, alpha=alpha, penalty="coef").fit(X[:25], y[:25])
    for i in range(25, 40):
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    for gone in ([1, 5, 7], [0], [2, 3]):
        model.forget(gone)
    if alpha >= 1e-3:
        assert isinstance(model._parts.full_fit.own_precision, Growing)
    assert excess_error(model, X) < 1
    if alpha >= 1:
        new = updates.solve_anew(model._fitted_task.problem, model._fitted_task.Y)
        assert_close(model._parts.full_fit.loo().E, new.loo().E, rtol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_rows_that_nearly_determine_the_confounds_alone_may_go(seed):
    """They leave next to nothing of their P_ii; what others have depends on it once they are forgotten."""
    rng = np.random.default_rng(seed)
    X, y, C, w = rng.normal(size=(14, 3)), rng.normal(size=14), rng.normal(size=(14, 2)), np.ones(14)
    w[2:5] = 1e10
    problem = Problem.of(kernels.RBF(0.3), X, alpha=1e7, Q=np.column_stack([np.ones(14), C]), sample_weight=w)
    whole, Y = updates.solve_anew(problem, y[:, None]), y[:, None]
    for gone in (4, 3, 2):
        kept = np.delete(np.arange(whole.problem.n), gone)
        Y = Y[kept]
        whole = updates.forget(whole, whole.problem.subset(kept), Y, np.array([gone]))
    new = updates.solve_anew(whole.problem, Y)
    assert_close(whole.loo().E, new.loo().E, rtol=1e-9)
    assert_close(whole.B, new.B, rtol=1e-9)


def wrong_holder(size):
    """P with noise of this size in one row, its solution and its targets."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(14, 3)), rng.normal(size=(14, 1))
    whole = updates.solve_anew(Problem.of(kernels.RBF(0.2), X, alpha=1e-5, Q=np.ones((14, 1))), Y)
    holder = updates.growing(whole)
    slots = holder.slots
    holder._held.H[slots[5:], slots[5]] += size * rng.normal(size=9)
    return holder, whole, Y


def test_a_probe_finds_the_rows_of_P_that_are_wrong():
    holder, whole, Y = wrong_holder(0.0)
    holder.probe(whole.A, whole.B, Y)
    assert holder.error() < 1e-9
    holder, whole, Y = wrong_holder(1e-3)
    holder.probe(whole.A, whole.B, Y)
    error = holder._held.error[holder.slots]
    assert error[:5].max() < 1e-10
    assert error[5] > 1e-4
    assert holder.error() == pytest.approx((error / holder.diagonal()).max())


def test_forgetting_a_row_notes_errors_of_its_column():
    holder, _, _ = wrong_holder(1e-3)
    found = holder.block(np.arange(14))[:, 5].copy()
    removal = holder.removal(np.array([5]))
    error = holder._held.error[holder.slots]
    assert_close(error, np.abs(removal.h[holder.slots, 0] - found), rtol=1e-12)
    assert holder.error() > 1e-5


def test_noted_errors_stay_with_their_rows():
    holder, _, _ = wrong_holder(1e-3)
    square = holder._held
    square.note(np.arange(len(square), dtype=float)[:, None])
    square.note(np.ones((len(square), 1)))  # the largest stays
    expected = np.maximum(holder.slots, 1.0)
    np.testing.assert_array_equal(square.error[holder.slots], expected)
    square.reserve(100)
    np.testing.assert_array_equal(square.error[holder.slots], expected)
    slots = square.compact(holder.slots[::2])
    np.testing.assert_array_equal(square.error[slots], expected[::2])
    square.wipe(slots[3])
    assert square.error[slots[3]] == 0


def test_ill_conditioned_matrices_are_probed_always_and_others_rarely():
    holder, _, _ = wrong_holder(0.0)
    square = holder._held
    asked = []
    for _ in range(34):
        square.version += 1
        asked.append(holder.now(holder.slots).is_to_be_probed(False))
    assert sum(asked) == 2
    square.version += 1
    assert holder.now(holder.slots).is_to_be_probed(True)
    square.version += 1
    assert holder.now(holder.slots).is_to_be_probed(False)  # what has been ill leaves errors
