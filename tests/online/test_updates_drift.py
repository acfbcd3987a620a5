"""Rounding that adds up over updates is noticed, mended, or ended by a new factorisation."""

import numpy as np
import pytest

import foldless._engine.online.updates as updates
from foldless import KernelFisherDiscriminant, kernels
from foldless._engine.heldout.problem import Problem
from foldless._engine.precision import cost
from foldless._engine.precision.base import SingularBlockError
from foldless._engine.precision.growing import Growing
from support.cases import Case, penalised
from support.refits import fits
from support.tolerances import assert_close
from support.updates import (
    EPS,
    assert_equals_refit,
    begin,
    data,
    every_dtype,
    every_penalty,
    forget,
    learn,
    long_run,
    problem_of,
)


def noisy(whole, size):
    """Noise of this relative size in the matrix behind a solution."""
    square, slots = whole.own_precision._held, whole.own_precision.slots
    rng = np.random.default_rng(0)
    scale = size * np.abs(np.tril(square.H)).max()
    for slot in slots:
        below = slots[slots >= slot]
        square.H[below, slot] += scale * rng.normal(size=len(below))


@every_penalty
@pytest.mark.parametrize("step", ["learn", "forget", "learn other targets", "forget other targets"])
def test_a_drifted_matrix_is_factorised_anew(penalty, step):
    case = Case(penalty=penalty, alpha=1e-4)
    rows = np.arange(16)
    whole, rows = learn(case, begin(case, rows), rows, np.array([16, 17]))
    noisy(whole, 1e-2)
    if "other" in step:
        vars(whole)["Y"] = whole.Y + 1.0  # not the targets it will be asked for
    change = (learn, np.array([19])) if "learn" in step else (forget, np.array([4]))
    whole, rows = change[0](case, whole, rows, change[1])
    assert not isinstance(whole.own_precision, Growing)
    assert_equals_refit(case, whole, rows)
    whole, rows = learn(case, whole, rows, np.array([21, 22]))
    assert whole.own_precision.drift < 1e-6  # counted from the new factorisation
    assert_equals_refit(case, whole, rows)


def test_drift_is_noticed_within_eight_unrefined_updates():
    case = Case(alpha=1.0)
    rows = np.arange(16)
    whole, rows = learn(case, begin(case, rows), rows, np.array([16]))
    noisy(whole, 1e-5)
    for count in range(1, 9):
        step = (learn, np.array([16 + count])) if count % 2 else (forget, np.array([3]))
        whole, rows = step[0](case, whole, rows, step[1])
        if not isinstance(whole.own_precision, Growing):
            break
    assert 1 < count <= 8
    assert not isinstance(whole.own_precision, Growing)
    assert_equals_refit(case, whole, rows)


@every_penalty
@pytest.mark.parametrize("step", ["learn", "forget"])
@pytest.mark.parametrize("found", ["residual", "error", "drift"])
def test_updates_beyond_the_tolerance_are_factorised_anew(penalty, step, found, monkeypatch):
    case = Case(alpha=1e-4, penalty=penalty)
    for size, anew in ((0.9, False), (1.1, True)):
        rows = np.arange(16)
        whole, rows = learn(case, begin(case, rows), rows, np.array([16]))
        with monkeypatch.context() as patched:
            patched.setattr(updates, "_tolerance", lambda *_: 1e-5)
            if found == "residual":
                refined = updates._refined
                patched.setattr(updates, "_refined", lambda *args, s=size, f=refined: (*f(*args)[:2], s * 1e-5))
            elif found == "error":
                patched.setattr(Growing, "error", lambda _, s=size: s * 1e-5)
            else:
                whole.own_precision._held.drift = size * updates.TOLERATED_DRIFT["float64"]
            change = (learn, np.array([19])) if step == "learn" else (forget, np.array([3]))
            whole, rows = change[0](case, whole, rows, change[1])
        assert isinstance(whole.own_precision, Growing) is not anew
        assert_close(whole.expansion()[1], begin(case, rows).expansion()[1])


@every_dtype
@every_penalty
@pytest.mark.parametrize("weights", ["none", "random"])
def test_tolerance_of_updates_follows_the_condition(dtype, penalty, weights):
    """The tolerance is max(1e-9, 10 eps cond(M)), with |S + alpha I| max P_ii for the condition."""
    for alpha in (1e2, 0.1, 1e-3, 1e-7):
        case = Case(dtype=dtype, penalty=penalty, alpha=alpha, weights=weights, q=0, shape=(14, 20))
        holder = updates.growing(begin(case, np.arange(13)))
        root, eps, k = np.sqrt(case.w)[:, None], np.finfo(dtype).eps, case.K.diagonal()[:13]
        K = case.K * root * root.T + alpha * np.eye(14)
        size, P = np.linalg.norm(K[:13, :13]), holder.diagonal().max()
        assert holder.refines is bool(dtype == "float32" or size > 1e4 * alpha)
        size = min(size, case.w[:13] @ k)
        expected = max(1e-9, 10 * eps * max(1.0, (size + alpha) * min(P, 1 / alpha)))
        assert updates._tolerance(problem_of(case, np.arange(13)), holder) == pytest.approx(expected, rel=1e-3)


@every_penalty
def test_tolerance_of_updates_follows_the_rows_that_remain(penalty):
    """A condition that a large row brought goes with it."""
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(12, 3)), np.ones(12)
    w[2] = 1e10
    kernel = penalised(kernels.RBF(0.2), penalty, X, w)
    problem = Problem.of(kernel, X, alpha=1e-3, Q=np.ones((12, 1)), sample_weight=w)
    holder = updates.growing(updates.solve_anew(problem, X[:, :1]))
    assert updates._tolerance(problem, holder) > 1e-4
    kept = np.delete(np.arange(12), 2)
    holder = holder.removal(np.array([2])).forget()
    assert updates._tolerance(problem.subset(kept), holder) < 1e-8


def test_P_that_shrank_too_far_is_factorised_anew(monkeypatch):
    """By 1e4 where updates are not refined; its rounding must not pass the tolerance where they are."""
    for alpha, most in ((1.0, 1e4), (1e-4, 1e-9 / EPS)):
        case = Case(alpha=alpha)
        for shrinkage, anew in ((0.9 * most, False), (1.1 * most, True)):
            rows = np.arange(16)
            whole, rows = learn(case, begin(case, rows), rows, np.array([16]))
            with monkeypatch.context() as patched:
                patched.setattr(updates, "_tolerance", lambda *_: 1e-9)
                patched.setattr(Growing, "shrinkage", lambda _, found=shrinkage: found)
                whole, rows = forget(case, whole, rows, np.array([3]))
            assert isinstance(whole.own_precision, Growing) is not anew


def test_drift_is_multiplied_by_shrinkage_where_updates_are_not_refined(monkeypatch):
    case = Case(alpha=1.0)
    for shrinkage, anew in ((9.0, False), (11.0, True)):
        rows = np.arange(16)
        whole, rows = learn(case, begin(case, rows), rows, np.array([16]))
        whole.own_precision._held.drift = 1e-11
        with monkeypatch.context() as patched:
            patched.setattr(Growing, "shrinkage", lambda _, found=shrinkage: found)
            whole, rows = forget(case, whole, rows, np.array([3]))
        assert isinstance(whole.own_precision, Growing) is not anew


@every_penalty
@pytest.mark.parametrize("step", ["learn", "forget"])
def test_updates_of_ill_conditioned_problems_mend_the_coefficients(penalty, step):
    """A wrong A is put right by the next update; without refinement its error would stay."""
    case = Case(alpha={"rkhs": 1e-6, "coef": 1e-4}[penalty], penalty=penalty)
    rows = np.arange(16)
    whole, rows = learn(case, begin(case, rows), rows, np.array([16]))
    assert whole.own_precision.refines
    vars(whole)["A"] = whole.A * (1 + 1e-4 * np.sin(np.arange(17))[:, None])
    if step == "learn":
        whole, rows = learn(case, whole, rows, np.array([17]))
    else:
        whole, rows = forget(case, whole, rows, np.array([4]))
    assert isinstance(whole.own_precision, Growing)
    assert_close(whole.expansion()[1], begin(case, rows).expansion()[1], rtol=1e-7)


def test_a_removal_lost_in_rounding_is_factorised_anew(monkeypatch):
    case, rows = Case(), np.arange(16)
    whole, rows = learn(case, begin(case, rows), rows, np.array([16]))

    def lost(self, rows):
        raise SingularBlockError.of(rows, self.n)

    monkeypatch.setattr(Growing, "removal", lost)
    whole, rows = forget(case, whole, rows, np.array([3]))
    assert not isinstance(whole.own_precision, Growing)
    assert_close(whole.A, begin(case, rows).A)


def test_shrinkage_counts_from_the_factorisation():
    """The first update of all may be the one that makes P small."""
    case, rows = Case(alpha=1e-4), np.arange(16)
    holder = updates.growing(begin(case, rows))
    diagonal = np.abs(holder.diagonal())
    np.testing.assert_allclose(holder._held.peak[holder.slots], diagonal)
    smaller = holder.removal(np.array([2])).forget()
    expected = (np.delete(diagonal, 2) / np.abs(smaller.diagonal())).max()
    assert expected > 1.5
    assert smaller.shrinkage() == pytest.approx(expected)


@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
def test_shrinkage_remembers_the_largest_past_entries_of_P(penalty, monkeypatch):
    """A row and its twin make P large; errors of that size stay when one of them goes."""
    monkeypatch.setattr(cost, "LOSING_ALPHA", 0.0)  # updates at any alpha
    case = Case(alpha=1e-5, penalty=penalty)
    X, Y = case.X[:14].copy(), case.Y[:14]
    X[13] = X[3]
    kernel = penalised(kernels.RBF(0.2), penalty, X)
    problem = Problem.of(kernel, X[:12], alpha=case.alpha, Q=np.ones((12, 1)))
    whole = updates.solve_anew(problem, Y[:12])
    whole = updates.learn(whole, whole.problem.extended(X[12:13], np.ones((1, 1))), Y[:13])
    before = whole.own_precision.diagonal()[3]
    assert 1.0 <= whole.own_precision.shrinkage() < 2.0
    whole = updates.learn(whole, whole.problem.extended(X[13:], np.ones((1, 1))), Y)
    large = whole.own_precision.diagonal()[3]
    assert large > 100 * before
    own = whole.own_precision.removal(np.array([13])).forget()
    assert own.shrinkage() == pytest.approx(large / before, rel=1e-3)
    assert own.shrinkage() == pytest.approx(large / before, rel=1e-3)  # until the next factorisation
    other = own.removal(np.array([3])).forget()
    assert other.shrinkage() < 10  # a slot that is free has no past


@every_penalty
def test_drift_stays_tiny_where_conditions_are_good(penalty):
    case = Case(penalty=penalty, alpha=10.0)
    rows = np.arange(16)
    whole = begin(case, rows)
    for i in range(100):
        new = np.setdiff1d(np.arange(26), rows)[[i % 10]]
        whole, rows = learn(case, whole, rows, new)
        whole, rows = forget(case, whole, rows, np.array([i % 15]))
        assert 0 < whole.own_precision.drift < 1e-12
    assert_equals_refit(case, whole, rows)


@pytest.mark.many_cases
@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
@pytest.mark.parametrize("alpha", [1e-6, 1e-3, 1.0, 1e2])
@pytest.mark.parametrize("twice", [False, True])
def test_three_hundred_updates_equal_refits(alpha, penalty, twice):
    """A row that comes twice makes P large; what P has been leaves no trace when it goes again."""
    long_run(alpha, 300, 20, 70, penalty, every=20, twice=twice)


@pytest.mark.parametrize(("penalty", "alpha"), [("rkhs", 1e-4), ("coef", 1e-2)])
def test_updates_are_judged_by_the_spread_of_the_targets(penalty, alpha):
    """A wrong P leaves errors that are tiny beside an offset of 1e6, and large beside what the targets differ by."""
    case = Case(penalty=penalty, alpha=alpha)
    Y, K, at = case.Y[:19], case.K[:19, :19], np.arange(19)
    whole = updates.solve_anew(problem_of(case, np.arange(16)), Y[:16] + 1e6)
    whole = updates.learn(whole, whole.problem.extended(*data(case, np.array([16, 17]))), Y[:18] + 1e6)
    assert isinstance(whole.own_precision, Growing)
    noisy(whole, 1e-5)
    whole = updates.learn(whole, whole.problem.extended(*data(case, np.array([18]))), Y + 1e6)
    expected = fits(K, Y, [(at, at)], alpha, Q=case.Q[:19])
    assert_close(whole.fits(at) - 1e6, expected)


def test_a_cubic_kernel_of_large_values_keeps_its_leave_one_out():
    """Entries of K up to 1e12: the residuals of a few updates reach 2e-3 and leave-one-out lost 1e-4 of its digits."""
    rows = [
        *[[67, -31, -23, 13, 19], [48, 76, -33, 8, 90], [-23, 30, -14, -9, 22], [74, -45, 3, -35, -20]],
        *[[2, 7, 20, 21, -55], [87, 1, 1, -40, 28], [77, 4, 63, 21, -16], [78, -22, 23, -22, -27]],
        *[[55, -7, -19, -42, 28], [-5, 43, 28, -8, -22], [-12, 20, -36, -14, 6], [96, -34, 16, 34, 74]],
        *[[73, -27, 36, 11, -26], [19, -22, 28, 0, -23], [74, 14, -17, -7, 40], [72, 5, 6, -39, -2]],
    ]
    X, y = np.array(rows, float), np.array([1, 1, 0, 1, 0, 1, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1])
    options = {"alpha": 1e-3, "gamma": 1.0, "degree": 3, "coef0": 1.0, "penalty": "coef", "fit_intercept": False}
    model = KernelFisherDiscriminant(kernel="poly", threshold="fisher", **options)
    with pytest.warns(UserWarning, match="penalty='coef' is resolved from the 11 rows"):
        model.partial_fit(X[:11], y[:11], classes=[0, 1])
    model.forget([2, 4, 5]).partial_fit(X[11:12], y[11:12])
    model.forget([5]).forget([0, 3, 7]).partial_fit(X[12:], y[12:]).forget([1]).forget([2, 5])
    certificate = model.unlearning_certificate()
    assert certificate.holds, certificate
