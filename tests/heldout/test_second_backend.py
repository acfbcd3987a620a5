"""The engine asks arrays for nothing but verbs of ``linalg``, functions of the array API and rows by their numbers."""

import numpy as np
import pytest

from foldless import kernels
from foldless._engine import linalg
from foldless._engine.heldout.leave_out import leave_out, loo_within
from foldless._engine.heldout.plan import ALONE, BLOCKS, LeaveOutPlan
from foldless._engine.heldout.problem import Problem
from foldless._engine.heldout.sets import Sets
from foldless._engine.heldout.solution import Solution, loo_path
from foldless._engine.heldout.training_parts import TrainingParts
from foldless._engine.precision.choose import EachAlpha
from foldless._engine.precision.spectral import Spectrum
from support.arrays import KINDS, Arrays
from support.tolerances import assert_close

N, D, CLASSES = 40, 4, 3
CODES = np.random.default_rng(0).permutation(np.arange(N) % CLASSES)
X = np.random.default_rng(1).normal(size=(N, D)) + CODES[:, None]
Y = np.eye(CLASSES)[CODES]
W = np.random.default_rng(2).uniform(0.5, 2.0, N)
C = np.random.default_rng(3).normal(size=(N, 2))
RTOL = 1e-10

KERNELS = {
    "rbf": kernels.RBF(0.2),
    "rbf of features": kernels.RBF(np.linspace(0.1, 0.3, D)),
    "poly": kernels.Poly(0.1, degree=2),
    "linear, many features": kernels.Linear(),
}
SETS = {
    "leave-one-out": Sets.leave_one_out(N),
    "ten folds": Sets.of([np.arange(start, N, 10) for start in range(10)]),
    "three folds": Sets.of([np.arange(start, N, 3) for start in range(3)]),
}
other_kinds = pytest.mark.parametrize("kind", KINDS[1:])


def problem_of(arrays, kernel, *, X=X, alpha=0.1, weights=None, confounds=None):
    rows = arrays(X)
    weights = None if weights is None else arrays(weights)
    problem = Problem.of(kernel, rows, alpha, linalg.ones(rows, (len(X), 1)), weights)
    return problem if confounds is None else problem.with_confounds(confounds)


def results(problem, Y, sets):
    """Fits, residuals and class matrices of all sets, and leave-one-out inside training parts."""
    solution = Solution.fit(problem, problem.active, Y)
    for _, held_out in leave_out(solution, sets):
        moments = held_out.moments()
        inner = held_out.training(0).loo()
        yield held_out.fits, held_out.residuals, moments.N, moments.U, moments.sums, inner.fits, inner.residuals
    yield (*loo_within(solution, [np.arange(3), np.arange(5, 8)]), sets.stacked(sets.groups))


def assert_same(arrays, call):
    """A call gives arrays of this kind, equal to those of NumPy."""
    found, expected = list(call(arrays)), list(call(Arrays.of("numpy")))
    for batch, expected_batch in zip(found, expected, strict=True):
        for array, expected_array in zip(batch, expected_batch, strict=True):
            assert arrays.are(array) or isinstance(array, np.ndarray) is (expected_array.dtype.kind == "i")
            assert_close(linalg.to_host(array), expected_array, rtol=RTOL, scale=max(1.0, np.abs(expected_array).max()))


@other_kinds
@pytest.mark.parametrize("weights", [None, W], ids=["equal weights", "weights"])
@pytest.mark.parametrize("sets", SETS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_held_out_results_are_those_of_numpy(kernel, sets, weights, kind):
    rows = np.hstack([X, X**2, X**3, X**4]) if kernel.startswith("linear") else X

    def of(arrays):
        problem = problem_of(arrays, KERNELS[kernel], X=rows, weights=weights)
        assert not problem.through_features(N)
        return results(problem, arrays(Y), SETS[sets])

    assert_same(Arrays.of(kind), of)


@other_kinds
@pytest.mark.parametrize("sets", SETS)
def test_confounds_are_left_out_as_with_numpy(sets, kind):
    def of(arrays):
        return results(problem_of(arrays, KERNELS["rbf"], weights=W, confounds=C), arrays(Y), SETS[sets])

    assert_same(Arrays.of(kind), of)


@other_kinds
@pytest.mark.parametrize("sets", SETS)
def test_eigenvectors_serve_every_alpha_as_with_numpy(sets, kind):
    rows = np.vstack([X[: N // 2], X[: N // 2]])  # equal rows have equal fits

    def of(arrays):
        problem = problem_of(arrays, KERNELS["rbf"], X=rows)
        path = problem.path(problem.active)
        assert path.serves_every_alpha
        for alpha in (0.1, 10.0):
            P = path.with_alpha(alpha)
            solution = Solution.fit(problem.replace(alpha=alpha), problem.active, arrays(Y), P)
            yield P.G, P.Omega, P.diagonal(), P.explicit().P
            for _, held_out in leave_out(solution, SETS[sets]):
                yield held_out.fits, held_out.residuals

    assert_same(Arrays.of(kind), of)


@other_kinds
@pytest.mark.parametrize("confounds", [None, C], ids=["no confounds", "confounds"])
@pytest.mark.parametrize("path_of", [Spectrum.path, EachAlpha], ids=["eigenvectors", "factors"])
def test_leave_one_out_residuals_of_every_alpha_are_those_of_numpy(path_of, confounds, kind):
    def of(arrays):
        problem = problem_of(arrays, KERNELS["rbf"], weights=W, confounds=confounds)
        path = path_of(problem, problem.active)
        yield (loo_path(problem, problem.active, arrays(Y), [0.01, 1.0], path),)

    assert_same(Arrays.of(kind), of)


WIDE = np.random.default_rng(5).normal(size=(200, 66))  # features that are held by their Gram matrix
OF_ONE_ROW = np.hstack([X, np.arange(N)[:, None] == 3])  # one row carries a feature alone
FEATURES = {
    "linear": (kernels.Linear(), X),
    "linear, a feature of one row": (kernels.Linear(), OF_ONE_ROW),
    "linear, many rows": (kernels.Linear(), WIDE),
    "landmarks": (kernels.Nystroem(kernels.RBF(0.2), 8), X),
    "given landmarks": (kernels.Nystroem(kernels.RBF(0.2), landmarks=X[:8]), X),
    "landmarks by leverage": (kernels.Nystroem(kernels.RBF(0.2), 8, landmarks="leverage", whiten=False), X),
    "random features": (kernels.RandomFeatures(kernels.RBF(0.2), 8), X),
    "basis functions": (kernels.BasisFunctions(kernels.RBF(0.2)), X),
}


@other_kinds
@pytest.mark.parametrize("weights", [False, True], ids=["equal weights", "uneven weights"])
@pytest.mark.parametrize("sets", SETS)
@pytest.mark.parametrize("features", FEATURES)
def test_held_out_results_through_features_are_those_of_numpy(features, sets, weights, kind):
    kernel, rows = FEATURES[features]
    if features == "random features" and kind == "array_api_strict":
        pytest.skip("a number of NumPy divides the waves, so that single precision keeps its digits")
    n, alpha = len(rows), 1e-11 if features == "basis functions" else 0.1

    def of(arrays):
        w = np.geomspace(1e-6, 1.0, n) if weights else None
        problem = problem_of(arrays, kernel.resolved(arrays(rows)), X=rows, alpha=alpha, weights=w)
        assert problem.through_features(n)
        yield from results(
            problem, arrays(np.resize(Y, (n, CLASSES))), Sets.of([np.arange(n)[rows] for rows in SETS[sets]])
        )
        path = problem.path(problem.active)
        yield (loo_path(problem, problem.active, arrays(np.resize(Y, (n, CLASSES))), [0.01, 1.0], path),)

    assert_same(Arrays.of(kind), of)


ODD_TARGETS = {
    "indicators": Y,
    "few digits": Y * 1e12 + np.arange(N)[:, None] % 2,
}
ODD_WEIGHTS = np.where(CODES == 0, np.where(np.cumsum(CODES == 0) <= 2, 1e9, 1.0), 1.0)  # two rows carry a class
CARRIERS = np.flatnonzero(ODD_WEIGHTS > 1)


@other_kinds
@pytest.mark.parametrize("weights", [None, ODD_WEIGHTS], ids=["equal weights", "uneven weights"])
@pytest.mark.parametrize("targets", ODD_TARGETS)
@pytest.mark.parametrize("alpha", [1e-3, 1e9])
def test_lost_digits_are_repaired_as_with_numpy(alpha, targets, weights, kind):
    def of(arrays):
        problem = problem_of(arrays, KERNELS["rbf"], alpha=alpha, weights=weights)
        solution = Solution.fit(problem, problem.active, arrays(ODD_TARGETS[targets]))
        others = np.setdiff1d(np.arange(N), CARRIERS)
        held_out, part = solution.held_out(np.array([CARRIERS, others[:2], others[2:4]])), solution.without(CARRIERS)
        yield from (held_out.fits, held_out.residuals, part.fits(np.arange(N)))
        if targets == "indicators":
            for moments in (held_out.moments(), part.moments()):
                yield from (moments.N, moments.U, moments.sums)

    found, expected = ([*map(linalg.to_host, of(arrays))] for arrays in (Arrays.of(kind), Arrays.of("numpy")))
    for array, expected_array in zip(found, expected, strict=True):
        assert_close(array, expected_array, rtol=1e-6, scale=np.abs(expected_array).max())


@other_kinds
@pytest.mark.parametrize("alone", [False, True], ids=["from P", "alone"])
def test_models_of_training_parts_are_those_of_numpy(alone, kind):
    new = np.random.default_rng(4).normal(size=(5, D))

    def of(arrays):
        problem = problem_of(arrays, KERNELS["rbf"], weights=np.where(np.arange(N) == 7, 0.0, W))
        plan = LeaveOutPlan({4: 10}, ALONE if alone else BLOCKS)
        part = TrainingParts(problem, arrays(Y), plan=plan).part(np.arange(4, N))
        assert isinstance(part, Solution) is alone
        rows, beta = part.expansion()
        yield part.fits(np.arange(N)), part.evaluated(np.arange(6)), part.A, part.B, beta, part.moments().U
        yield (
            problem.gram_new(arrays(new), rows) @ beta + part.score_offsets[:1],
            part.select_targets([0, 2]).fits(rows),
        )
        inner = (part if alone else part.as_solution()).without(np.arange(3))
        yield inner.fits(np.arange(N)), inner.loo().fits
        for _, held_out in leave_out(part, Sets.of([np.arange(5), np.arange(5, 10)])):
            yield held_out.fits, held_out.residuals

    assert_same(Arrays.of(kind), of)
