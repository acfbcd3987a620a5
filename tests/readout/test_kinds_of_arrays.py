"""Decisions from other arrays than NumPy's are the same, as arrays of their kind."""

import numpy as np
import pytest

from foldless import kernels
from foldless._engine import linalg
from foldless._engine.heldout.problem import Problem
from foldless._engine.heldout.sets import Sets
from foldless._engine.readout.codings import Multilabel, OneAgainstAll, Regression
from foldless._engine.readout.discriminant import Discriminant
from foldless._engine.readout.task import Task
from support.arrays import KINDS, Arrays
from support.tolerances import assert_close

N = 36
CODES = np.random.default_rng(0).permutation(np.arange(N) % 3)
X = np.random.default_rng(1).normal(size=(N, 3)) + CODES[:, None]
W = np.where(np.arange(N) % 7 == 6, 0.0, np.random.default_rng(2).uniform(0.5, 2.0, N))
VALUES = np.random.default_rng(3).normal(size=(N, 2))
SETS = [np.arange(start, N, 9) for start in range(9)]

READOUTS = {
    "one against all": OneAgainstAll(3),
    "two classes": OneAgainstAll(2),
    "without intercept": OneAgainstAll(3, centred=False),
    "discriminant": Discriminant(3),
    "two components and priors": Discriminant(3, priors=(0.2, 0.3, 0.5), n_components=1),
    "without intercept, discriminant": Discriminant(3, centred=False),
    **{threshold: Discriminant(2, threshold) for threshold in ("pm1", "fisher", "centroid", "loo")},
    "priors of two classes": Discriminant(2, "centroid", priors=(0.2, 0.8)),
    "values": Regression(),
    "labels": Multilabel(),
}


def task_of(arrays, readout, weights=None, calibration=None):
    rows = arrays(X)
    centred = getattr(readout, "centred", True)
    weights = None if weights is None else arrays(weights)
    problem = Problem.of(kernels.RBF(0.2), rows, 0.1, linalg.ones(rows, (N, int(centred))), weights)
    if isinstance(readout, Regression | Multilabel):
        Y = VALUES if isinstance(readout, Regression) else np.sign(VALUES)
        return Task(problem, arrays(Y), readout)
    codes = CODES % readout.n_classes
    Y = readout.targets(codes, np.float64)
    return Task(problem, arrays(Y), readout, codes, readout.n_classes, calibration)


def assert_same(kind, call):
    arrays = Arrays.of(kind)
    for found, expected in zip(call(arrays), call(Arrays.of("numpy")), strict=True):
        assert arrays.are(found)
        assert_close(linalg.to_host(found), expected, rtol=1e-9, scale=np.abs(expected).max())


@pytest.mark.parametrize("kind", KINDS[1:])
@pytest.mark.parametrize("weights", [None, W], ids=["equal weights", "weights"])
@pytest.mark.parametrize("readout", READOUTS)
def test_held_out_decisions_are_those_of_numpy(readout, weights, kind):
    def decisions(arrays):
        task = task_of(arrays, READOUTS[readout], weights)
        parts = task.training_parts()
        rule = task.rule(parts.full_fit)
        yield task.held_out_decisions(
            parts, Sets.of([np.intersect1d(rows, np.arange(len(parts.rows))) for rows in SETS])
        )
        yield task.loo_outputs(parts, rule, "decision")
        yield rule.decision(parts.full_fit.fits(np.arange(N)))
        assert (task.codes is None) or task.wrong(task.loo_scores(parts), parts.rows).shape == (len(parts.rows),)

    assert_same(kind, decisions)


@pytest.mark.parametrize("kind", KINDS[1:])
@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("readout", ["one against all", "pm1"])
def test_probabilities_are_those_of_numpy(readout, calibration, kind):
    def probabilities(arrays):
        task = task_of(arrays, READOUTS[readout], W, calibration)
        parts = task.training_parts()
        rule = task.rule(parts.full_fit)
        yield rule.proba(parts.full_fit.fits(np.arange(N)))
        yield task.loo_outputs(parts, rule, "proba")
        yield task.stratified_decisions(parts, rule)

    assert_same(kind, probabilities)


INDICATORS = ["one against all", "two classes", "discriminant", "two components and priors", "fisher", "centroid"]


@pytest.mark.parametrize("kind", KINDS[1:])
@pytest.mark.parametrize("readout", INDICATORS)
def test_decisions_of_indicators_are_those_of_numpy(readout, kind):
    def decisions(arrays):
        task = task_of(arrays, READOUTS[readout])
        model = task.training_parts().full_fit
        batch = arrays(np.random.default_rng(4).normal(size=(2, 3, 5))[:, : task.n_classes])
        moments = model.moments() if task.readout.needs_moments else None
        if moments is not None:
            moments = type(moments)(*(None if A is None else linalg.namespace(A).stack([A, A]) for A in moments))
        yield task.readout.for_indicators(moments)(batch)

    assert_same(kind, decisions)
