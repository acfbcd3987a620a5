"""Gradients of held-out losses against central differences of losses of plain refits."""

from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np
import pytest
import scipy.sparse as sp

from foldless import kernels
from foldless._engine.heldout.gradient import value_and_gradient
from foldless._engine.heldout.leave_out import held_out_residuals
from foldless._engine.heldout.problem import Problem
from foldless._engine.heldout.sets import Sets
from foldless._engine.heldout.solution import Solution
from foldless._engine.tuning.criteria import CRITERIA
from support.cases import penalised
from support.refits import fits
from support.tolerances import assert_close

N, D, M = 15, 3, 2
STEP = 1e-4  # relative; of five points, which err by STEP^4 and leave the last digits to rounding
SMOOTH = {name: each for name, each in CRITERIA.items() if each.smooth}
PER_FEATURE = np.array([0.5, 0.2, 0.35])
KERNELS = {
    "rbf": kernels.RBF(0.3),
    "rbf per feature": kernels.RBF(PER_FEATURE),
    "poly": kernels.Poly(0.3, 2, 0.8),
    "poly per feature": kernels.Poly(PER_FEATURE / 2, 3, 0.8),
    "laplacian": kernels.Laplacian(0.3),
    "laplacian per feature": kernels.Laplacian(PER_FEATURE),
    "boolean": kernels.Boolean(0.6),
    "linear": kernels.Linear(),
}
PENALTIES = ("rkhs", "coef")
WEIGHTS = ("none", "zeros")  # all weights random and positive: further down
SPLITS = ("leave-one-out", "folds", "overlapping", "partial")
FORMS = {"dense": np.asarray, "sparse": sp.csr_array}


STEPS = (2 * STEP, STEP, -STEP, -2 * STEP)


def difference(values):
    """Central difference of values at ``STEPS``."""
    a, b, c, d = values
    return (8 * (b - c) - (a - d)) / (12 * STEP)


@dataclass(frozen=True)
class Setup:
    """One problem: hashable names only, so that what is made for it is made once."""

    kernel: str = "rbf"
    penalty: str = "rkhs"
    weights: str = "none"  # "zeros": random with two rows of weight 0
    split: str = "leave-one-out"
    q: int = 1  # 0: none, 1: an intercept, 3: an intercept and two confounds
    m: int = M
    shape: tuple = (N, D)
    alpha: float = 1.0

    @cached_property
    def X(self):
        X = np.random.default_rng(1).normal(size=self.shape)
        return (X > 0).astype(float) if self.kernel == "boolean" else X

    @cached_property
    def T(self):
        rng = np.random.default_rng(2)
        T = np.where(rng.uniform(size=(self.shape[0], 5)) < 0.5, 1.0, -1.0)
        T[:2], T[3:5] = 1.0, -1.0  # both classes in every column
        return T[:, : self.m]

    @cached_property
    def w(self):
        n = self.shape[0]
        w = np.ones(n) if self.weights == "none" else np.random.default_rng(3).uniform(0.3, 3.0, n)
        if self.weights == "zeros":
            w[[2, 9]] = 0.0
        return w

    @cached_property
    def Q(self):
        n = self.shape[0]
        return np.column_stack([np.ones(n), np.random.default_rng(4).normal(size=(n, 2))])[:, : self.q]

    @cached_property
    def rows(self):
        return np.flatnonzero(self.w)

    @cached_property
    def folds(self):
        """Positions in ``rows``, in no order."""
        n = len(self.rows)
        order = np.random.default_rng(5).permutation(n)
        return {
            "leave-one-out": None,
            "folds": np.array_split(order, 4),
            "overlapping": [order[:4], order[2:7], order[[0, 8]], order[[8]], np.arange(n)[::3]],
            "partial": [order[:3], order[5:9]],
        }[self.split]

    @cached_property
    def sets(self):
        """The held-out sets, leave-one-out spelled out."""
        return [np.array([i]) for i in range(len(self.rows))] if self.folds is None else self.folds

    @cached_property
    def stacked(self):
        """Targets of the stacked held-out rows."""
        return self.T[self.rows][np.concatenate(self.sets)]

    @cached_property
    def W(self):
        """Weights of the criterion: equal, or others for every held-out row and column."""
        shape = self.stacked.shape
        W = np.ones(shape) if self.weights == "none" else np.random.default_rng(6).uniform(0.2, 2.0, shape)
        return W / W.sum(0)

    def problem(self, form="dense", dtype=float):
        X = FORMS[form](self.X.astype(dtype))
        return Problem.of(
            penalised(KERNELS[self.kernel], self.penalty, X, self.w),
            X,
            alpha=self.alpha,
            Q=self.Q.astype(dtype),
            sample_weight=None if self.weights == "none" else self.w,
        )

    # -- the plain loop

    def refits(self, alpha, kernel):
        """Held-out fits, stacked."""
        return self.refits_of(kernel.gram(self.X), alpha, self.rows, self.sets)

    def refits_of(self, K, alpha, rows, sets):
        """Held-out fits of a Gram matrix: delete, refit, evaluate."""
        options = {"w": self.w, "Q": self.Q, "penalty": self.penalty}
        return fits(K, self.T, [(np.delete(rows, te), rows[te]) for te in sets], alpha, **options)

    @cached_property
    def fits(self):
        return self.refits(self.alpha, KERNELS[self.kernel])

    @cached_property
    def moved(self):
        """{parameter: held-out fits at four settings around each of its values}."""
        kernel, result = KERNELS[self.kernel], {}
        result["alpha"] = [[self.refits(self.alpha * (1 + h), kernel) for h in STEPS]]
        for name in kernel.differentiable:
            value = np.asarray(getattr(kernel, name), float)
            units = np.eye(value.size).reshape(-1, *value.shape)
            result[name] = [
                [self.refits(self.alpha, replace(kernel, **{name: value * (1 + h * e)})) for h in STEPS] for e in units
            ]
        return result

    def slopes(self, loss):
        """Derivatives by the logarithms of all parameters, {parameter: array}."""
        return {
            name: np.array([difference(map(loss, fits)) for fits in entries]) for name, entries in self.moved.items()
        }

    def loss(self, name):
        """A criterion summed over columns, as a function of held-out fits."""
        return lambda F: CRITERIA[name](F, self.stacked, self.W)[0].sum()

    def found(self, name, problem):
        """Value and derivatives by the logarithms, from the reverse pass."""
        T, W = self.stacked.astype(problem.dtype), self.W.astype(problem.dtype)

        def loss(E):
            values, slopes = CRITERIA[name](T - E, T, W)
            return values.sum(), -slopes

        return in_logarithms(problem, *self.reverse(problem, loss))

    def reverse(self, problem, loss):
        return value_and_gradient(problem, self.rows, self.T[self.rows].astype(problem.dtype), self.folds, loss)


setup = cache(Setup)  # with everything it has refitted so far


def in_logarithms(problem, value, gradient):
    parameters = problem.kernel.get_params()
    values = {"alpha": problem.alpha, **{name: parameters[name] for name in problem.kernel.differentiable}}
    assert gradient.keys() == values.keys()
    for name, slope in gradient.items():
        assert np.shape(slope) == np.shape(values[name]), name
    return value, {name: np.atleast_1d(slope * values[name]) for name, slope in gradient.items()}


def assert_gradient(found, expected, rtol=1e-6):
    """Differences relative to the size of the whole gradient."""
    scale = max(np.abs(slope).max() for slope in expected.values())
    for name, slope in expected.items():
        assert_close(found[name], slope, scale=scale, rtol=rtol)


def check(one, form="dense", names=tuple(SMOOTH)):
    """Smooth criteria of one setup."""
    problem = one.problem(form)
    for name in names:
        value, gradient = one.found(name, problem)
        try:
            assert value == pytest.approx(one.loss(name)(one.fits), rel=1e-9)
            assert_gradient(gradient, one.slopes(one.loss(name)))
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from error


every_kernel = pytest.mark.parametrize("kernel", KERNELS)
every_penalty = pytest.mark.parametrize("penalty", PENALTIES)
every_weighting = pytest.mark.parametrize("weights", WEIGHTS)
every_split = pytest.mark.parametrize("split", SPLITS)
both_forms = pytest.mark.parametrize("form", FORMS)


def test_every_listed_kernel_with_derivatives_is_in_the_table():
    listed = {kind for kind in kernels.KERNELS.values() if kind().differentiable}
    assert listed <= {type(kernel) for kernel in KERNELS.values()}


@pytest.mark.many_cases
@every_kernel
@every_penalty
@every_weighting
@every_split
def test_gradients_equal_differences_of_refits(kernel, penalty, weights, split):
    check(setup(kernel, penalty, weights, split))


@pytest.mark.many_cases
@every_kernel
@every_penalty
@every_weighting
@every_split
def test_gradients_of_sparse_features_equal_differences_of_refits(kernel, penalty, weights, split):
    """The form of X ends at the Gram matrix and its pullback: the criteria take turns."""
    tables = ((KERNELS, kernel), (PENALTIES, penalty), (WEIGHTS, weights), (SPLITS, split))
    turn = sum(list(table).index(name) for table, name in tables) % len(SMOOTH)
    check(setup(kernel, penalty, weights, split), "sparse", list(SMOOTH)[turn : turn + 1])


@pytest.mark.parametrize("kernel", ["rbf per feature", "linear"])
@every_penalty
@every_split
def test_gradients_with_positive_weights_equal_differences_of_refits(kernel, penalty, split):
    check(setup(kernel, penalty, "random", split))


@pytest.mark.many_cases
@pytest.mark.parametrize("q", [0, 3])
@pytest.mark.parametrize("kernel", ["rbf per feature", "linear"])
@every_penalty
@pytest.mark.parametrize("weights", ["none", "zeros"])
@every_split
def test_gradients_with_other_unpenalised_columns_equal_differences_of_refits(q, kernel, penalty, weights, split):
    check(setup(kernel, penalty, weights, split, q))


@pytest.mark.many_cases
@every_kernel
@every_penalty
@every_weighting
@every_split
@both_forms
def test_held_out_residuals_equal_refits(kernel, penalty, weights, split, form):
    one = setup(kernel, penalty, weights, split)
    solution = Solution.fit(one.problem(form), one.rows, one.T[one.rows])
    sets = Sets.leave_one_out(len(one.rows)) if one.folds is None else Sets.of(one.folds)
    assert_close(held_out_residuals(solution, sets), one.stacked - one.fits)


@pytest.mark.many_cases
@every_penalty
@every_split
@pytest.mark.parametrize("m", [1, 3, 5])
def test_gradient_is_the_sum_over_target_columns(penalty, split, m):
    one = setup("rbf", penalty, "zeros", split, m=m)
    check(one)
    problem, whole = one.problem(), one.found("press", one.problem())
    total = {name: 0.0 for name in whole[1]}
    for k in range(m):

        def loss(E, k=k):
            return (one.W[:, [k]] * E**2).sum(), 2 * one.W[:, [k]] * E

        Y = one.T[one.rows][:, [k]]
        _, single = in_logarithms(problem, *value_and_gradient(problem, one.rows, Y, one.folds, loss))
        total = {name: total[name] + slope for name, slope in single.items()}
    assert_gradient(whole[1], total, rtol=1e-10)


@every_penalty
@every_split
def test_gradient_of_any_function_of_the_residuals(penalty, split):
    """Not a sum over rows: every residual meets every other."""
    one = setup("rbf per feature", penalty, "random", split)
    C = np.random.default_rng(7).normal(size=(len(one.stacked),) * 2)
    C = C @ C.T

    def loss(E):
        total = np.vdot(E, C @ E)
        return np.log(total), 2 * C @ E / total

    _, gradient = in_logarithms(one.problem(), *one.reverse(one.problem(), loss))
    assert_gradient(gradient, one.slopes(lambda F: loss(one.stacked - F)[0]))


@every_penalty
@every_split
@pytest.mark.parametrize("alpha", [1e-4, 1e3])
def test_gradients_at_small_and_large_penalties_equal_differences_of_refits(penalty, split, alpha):
    """Nearly interpolating, and nearly constant: differences lose digits there, the reverse pass does not."""
    one = setup("rbf per feature", penalty, "random", split, alpha=alpha)
    _, gradient = one.found("press", one.problem())
    assert_gradient(gradient, one.slopes(one.loss("press")), rtol=1e-5)


@every_penalty
@every_split
def test_gradients_with_more_features_than_rows_equal_differences_of_refits(penalty, split):
    check(setup("linear", penalty, "zeros", split, shape=(12, 30)))


@every_penalty
@pytest.mark.parametrize("split", ["leave-one-out", "folds"])
def test_gradient_on_some_rows_ignores_the_others(penalty, split):
    """A selection on some of the rows: the others train nothing, but keep their basis functions."""
    one, kernel = setup("rbf per feature", penalty, "zeros", split), KERNELS["rbf per feature"]
    rows = one.rows[2:]
    folds = None if split == "leave-one-out" else np.array_split(np.arange(len(rows)), 3)
    sets = [np.array([i]) for i in range(len(rows))] if folds is None else folds

    def loss(E):
        return (E**2).sum(), 2 * E

    def at(gamma):
        K = replace(kernel, gamma=gamma).gram(one.X)
        return loss(one.T[rows][np.concatenate(sets)] - one.refits_of(K, one.alpha, rows, sets))[0]

    value, gradient = value_and_gradient(one.problem(), rows, one.T[rows], folds, loss)
    assert value == pytest.approx(at(kernel.gamma))
    expected = [difference(at(kernel.gamma + h * e) for h in STEPS) for e in np.eye(D)]
    assert_close(gradient["gamma"], np.array(expected), rtol=1e-6)


@every_penalty
@every_weighting
@pytest.mark.parametrize("split", ["leave-one-out", "folds"])
@pytest.mark.parametrize("kernel", ["cosine", "precomputed", "callable"])
def test_gradient_of_kernels_without_parameters_is_that_by_alpha(kernel, penalty, split, weights):
    one = setup("linear", penalty, weights, split)
    problem, K = one.problem(), one.X @ one.X.T
    if kernel == "precomputed":
        changed = {"kernel": kernels.Precomputed(), "X": K if penalty == "rkhs" else problem.kernel.gram(one.X)}
    elif kernel == "cosine":
        changed, K = {"kernel": kernels.Cosine()}, K / np.sqrt(np.outer(K.diagonal(), K.diagonal()))
    else:
        changed = {"kernel": kernels.Custom(lambda X, Z: X @ Z.T)}
    if kernel != "precomputed":
        changed["kernel"] = penalised(changed["kernel"], penalty, one.X, one.w)
    problem = problem.replace(shift=None, **changed)

    def at(alpha):
        return one.loss("smooth_error")(one.refits_of(K, alpha, one.rows, one.sets))

    value, gradient = one.found("smooth_error", problem)
    assert value == pytest.approx(at(one.alpha))
    assert gradient.keys() == {"alpha"}
    assert_gradient(gradient, {"alpha": np.array([difference(at(one.alpha * (1 + h)) for h in STEPS)])})


@pytest.mark.many_cases
@every_kernel
@every_penalty
@every_split
def test_gradient_in_single_precision_is_near(kernel, penalty, split):
    one = setup(kernel, penalty, "zeros", split)
    rtol = 2e-3 if penalty == "rkhs" else 2e-2  # K K' has the square of the condition of K
    for name in ("press", "smooth_auc"):
        value, gradient = one.found(name, one.problem(dtype=np.float32))
        double, expected = one.found(name, one.problem())
        assert value == pytest.approx(double, rel=rtol)
        assert_gradient(gradient, expected, rtol=rtol)


@every_kernel
@every_penalty
@pytest.mark.parametrize("split", ["leave-one-out", "overlapping"])
def test_a_problem_is_not_changed_by_being_differentiated(kernel, penalty, split):
    """Gram matrices are overwritten on the way; what the caller holds is not."""
    one = setup(kernel, penalty, "zeros", split)
    problem = one.problem()
    X, first = problem.X.copy(), one.found("hinge2", problem)
    second = one.found("hinge2", problem)
    np.testing.assert_array_equal(problem.X, X)
    assert first[0] == second[0]
    for name, slope in first[1].items():
        np.testing.assert_array_equal(second[1][name], slope)


@every_penalty
def test_one_fold_for_each_row_is_leave_one_out(penalty):
    one = setup("rbf per feature", penalty, "zeros")
    problem, Y = one.problem(), one.T[one.rows]

    def loss(E):
        return (one.W * E**4).sum(), 4 * one.W * E**3

    alone = value_and_gradient(problem, one.rows, Y, None, loss)
    listed = value_and_gradient(problem, one.rows, Y, [np.array([i]) for i in range(len(Y))], loss)
    assert listed[0] == pytest.approx(alone[0], rel=1e-10)
    for name, slope in alone[1].items():
        assert_close(listed[1][name], slope)
