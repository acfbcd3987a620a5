"""The engine asks arrays for nothing but verbs of ``linalg`` and operations of the array API."""

from dataclasses import dataclass

import numpy as np
import pytest

from foldless import kernels
from foldless._engine.heldout.leave_out import leave_out
from foldless._engine.heldout.problem import Problem
from foldless._engine.heldout.sets import Sets
from foldless._engine.heldout.solution import Solution
from foldless._engine.permutation.labelings import Labelings, Solver
from foldless._engine.readout.codings import OneAgainstAll
from foldless._engine.readout.discriminant import Discriminant
from foldless._engine.readout.task import Task
from foldless.kernels import FeatureMap, Kernel
from support import strict_arrays
from support.strict_arrays import StrictArray, strict, strict_verbs
from support.tolerances import assert_close

N, D, CLASSES = 40, 4, 3
CODES = np.random.default_rng(0).permutation(np.arange(N) % CLASSES)
X = np.random.default_rng(1).normal(size=(N, D)) + CODES[:, None]
Y = np.eye(CLASSES)[CODES]
W = np.random.default_rng(2).uniform(0.5, 2.0, N)


@dataclass(frozen=True)
class StrictGram(Kernel):
    """A kernel whose Gram matrices are strict arrays."""

    def gram(self, X, Z=None):
        return strict(kernels.RBF(0.2).gram(X, Z))

    def diag(self, X):
        return strict(np.ones(len(X)))


@dataclass(frozen=True)
class StrictFeatures(FeatureMap):
    """A feature map whose features are strict arrays."""

    def features(self, X):
        return strict(np.hstack([X, np.square(X)]))

    def n_features(self, X):
        return 2 * D


KERNELS = {"dense P": (StrictGram(), kernels.RBF(0.2)), "features": (StrictFeatures(), StrictFeatures())}
SETS = {
    "leave-one-out": Sets.leave_one_out(N),
    "small folds": Sets.of([np.arange(start, N, 10) for start in range(10)]),
    "large folds": Sets.of([np.arange(start, N, 3) for start in range(3)]),
}
READOUTS = {"fits": OneAgainstAll(CLASSES), "class matrices": Discriminant(CLASSES)}


def problem_of(kernel, weights, convert=lambda values: values):
    return Problem.of(kernel, X, 0.1, convert(np.ones((N, 1))), None if weights is None else convert(weights))


def results(problem, Y, sets, readout):
    """Fits, residuals and decisions of all sets, and leave-one-out fits inside a training part."""
    solution = Solution.fit(problem, problem.active, Y)
    for numbers, held_out in leave_out(solution, sets):
        moments = held_out.moments() if readout.needs_moments else None
        inner = held_out.training(0).loo()
        yield numbers, held_out.fits, held_out.residuals, readout.scores(held_out.fits, moments), inner.fits


def judged(call, monkeypatch):
    """What a call returns, all of whose operations are those of any kind of arrays."""
    strict_verbs(monkeypatch)
    strict_arrays.asked.clear()
    strict_arrays.forbidden.clear()
    result = call()
    assert not strict_arrays.forbidden, "\n".join(sorted(set(strict_arrays.forbidden)))
    assert len(strict_arrays.asked) > 50
    return result


@pytest.mark.parametrize("weights", [None, W], ids=["equal weights", "weights"])
@pytest.mark.parametrize("readout", READOUTS)
@pytest.mark.parametrize("sets", SETS)
@pytest.mark.parametrize("form", KERNELS)
def test_held_out_results_need_only_verbs_and_the_array_api(form, sets, readout, weights, monkeypatch):
    kernel, plain_kernel = KERNELS[form]
    sets, readout = SETS[sets], READOUTS[readout]
    expected = list(results(problem_of(plain_kernel, weights), Y, sets, readout))
    found = judged(lambda: list(results(problem_of(kernel, weights, strict), strict(Y), sets, readout)), monkeypatch)
    for (numbers, *arrays), (expected_numbers, *expected_arrays) in zip(found, expected, strict=True):
        np.testing.assert_array_equal(numbers, expected_numbers)
        for array, expected_array in zip(arrays, expected_arrays, strict=True):
            assert type(array) is StrictArray
            assert_close(array.view(np.ndarray), expected_array)


@pytest.mark.parametrize("readout", READOUTS)
@pytest.mark.parametrize("form", KERNELS)
def test_decisions_of_many_labelings_need_only_verbs_and_the_array_api(form, readout, monkeypatch):
    kernel, plain_kernel = KERNELS[form]
    orders = np.random.default_rng(1).permuted(np.tile(np.arange(N), (5, 1)), axis=1)

    def decisions(problem, Y):
        task = Task(problem, Y, READOUTS[readout], CODES, CLASSES)
        labelings = Labelings.of(Solver.of(problem), task, CODES[orders])
        return labelings.decisions(labelings.part(np.arange(10, N)), np.arange(10))

    expected = decisions(problem_of(plain_kernel, None), Y)
    found = judged(lambda: decisions(problem_of(kernel, None, strict), strict(Y)), monkeypatch)
    assert type(found) is StrictArray
    assert_close(found.view(np.ndarray), expected)
