"""Decisions of many labelings from other arrays than NumPy's are the same; orders and labels are arrays of NumPy."""

import numpy as np
import pytest

from foldless import kernels
from foldless._engine import linalg
from foldless._engine.heldout.problem import Problem
from foldless._engine.permutation.labelings import Labelings, Moving, Solver, elsewhere, truth_of
from foldless._engine.readout.codings import OneAgainstAll, Regression
from foldless._engine.readout.discriminant import Discriminant
from foldless._engine.readout.task import Task
from support.arrays import KINDS, Arrays
from support.tolerances import assert_close

N, CLASSES = 40, 3
RNG = np.random.default_rng(0)
CODES = RNG.permutation(np.arange(N) % CLASSES)
X = RNG.normal(size=(N, 4)) + CODES[:, None]
X[1] = X[0]  # equal rows have equal decisions
W = RNG.uniform(0.5, 2.0, N)
VALUES = RNG.normal(size=(N, 2))
ORDERS = RNG.permuted(np.tile(np.arange(N), (5, 1)), axis=1)
TEST = np.arange(10)
TRAIN = np.arange(10, N)

FORMS = {"dense P": kernels.RBF(0.2), "features": kernels.Linear()}
READOUTS = {
    "fits": OneAgainstAll(CLASSES),
    "two classes": OneAgainstAll(2),
    "class matrices": Discriminant(CLASSES),
    "masses": Discriminant(2, "fisher"),
    "values": Regression(),
}


def task_of(arrays, kernel, readout, weights):
    rows = arrays(X)
    weights = None if weights is None else arrays(weights)
    problem = Problem.of(kernel, rows, 0.1, linalg.ones(rows, (N, 1)), weights)
    if isinstance(readout, Regression):
        return Task(problem, arrays(VALUES), readout)
    codes = CODES % readout.n_classes
    return Task(problem, arrays(readout.targets(codes, np.float64)), readout, codes, readout.n_classes)


def assert_same(kind, call):
    arrays = Arrays.of(kind)
    for found, expected in zip(call(arrays), call(Arrays.of("numpy")), strict=True):
        assert arrays.are(found)
        assert_close(linalg.to_host(found), expected, rtol=1e-9, scale=np.abs(expected).max())


@pytest.mark.parametrize("kind", KINDS[1:])
@pytest.mark.parametrize("weights", [None, W], ids=["equal weights", "weights"])
@pytest.mark.parametrize("readout", READOUTS)
@pytest.mark.parametrize("form", FORMS)
def test_decisions_of_labelings_are_those_of_numpy(form, readout, weights, kind):
    def decisions(arrays):
        task = task_of(arrays, FORMS[form], READOUTS[readout], weights)
        labelings = Labelings.of(Solver.of(task.problem), task, truth_of(task, ORDERS))
        part = labelings.part(TRAIN)
        yield labelings.decisions(part, TEST)
        yield labelings.select([3, 1]).decisions(labelings.select([3, 1]).part(TRAIN), TEST)
        yield labelings.reader(part)(elsewhere(part, TEST)(arrays(X[TEST])))
        one_class = np.flatnonzero(CODES == 0)  # a training part without the others
        alone = labelings.part(one_class)
        yield labelings.decisions(alone, TEST)

    assert_same(kind, decisions)


@pytest.mark.parametrize("kind", KINDS[1:])
@pytest.mark.parametrize("weights", [None, W], ids=["equal weights", "weights"])
@pytest.mark.parametrize("readout", READOUTS)
@pytest.mark.parametrize("form", FORMS)
def test_decisions_of_labelings_that_take_their_splits_along_are_those_of_numpy(form, readout, weights, kind):
    def decisions(arrays):
        task = task_of(arrays, FORMS[form], READOUTS[readout], weights)
        yield Moving.of(Solver.of(task.problem), task, ORDERS).held_out(TRAIN, TEST)

    assert_same(kind, decisions)
