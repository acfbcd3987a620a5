"""P of a few weights unlike the others, by an update of the P of equal weights, beside a factor of its own."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from foldless._engine.heldout.problem import Problem
from foldless._engine.precision.factored import Factored
from foldless._engine.precision.reweighted import Reweighted, SharedWeights
from foldless.kernels import RBF

N = 30
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
TEST = np.array([1, 4, 5, 20])
WEIGHTS = {
    "a rare class": np.where(np.arange(N) % 10 == 4, 8.0, 0.6),
    "three classes": np.select([np.arange(N) % 10 == 4, np.arange(N) % 15 == 1], [8.0, 0.01], 0.6),
    "one row": np.where(np.arange(N) == 7, 100.0, 1.0),
}


def problem_of(weights, alpha, intercept):
    return Problem.of(RBF(0.2), X, alpha=alpha, Q=np.ones((N, int(intercept))), sample_weight=weights)


def gram(problem):
    return problem.gram(np.arange(N), np.arange(N))


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("alpha", [1e-3, 0.3, 100.0])
@pytest.mark.parametrize("case", WEIGHTS)
def test_every_verb_equals_that_of_a_factor_of_its_own(case, alpha, intercept):
    problem = problem_of(WEIGHTS[case], alpha, intercept)
    found, own = SharedWeights(gram(problem)).precision(problem), problem.precision(np.arange(N))
    assert isinstance(found, Reweighted)
    assert isinstance(own, Factored)
    Y = np.random.default_rng(5).normal(size=(N, 2))
    size = np.abs(own.explicit().P).max()
    for one, other in (
        (found.apply(Y), own.apply(Y)),
        (found.diagonal(), own.diagonal()),
        (found.columns(TEST), own.columns(TEST)),
        (found.block(TEST), own.block(TEST)),
        (found.explicit().P, own.explicit().P),
        (found.held_out(TEST).residual(found.apply(Y), Y), own.held_out(TEST).residual(own.apply(Y), Y)),
    ):
        assert_allclose(one, other, rtol=1e-9, atol=1e-11 * size)
    assert_allclose(found.G, own.G, rtol=1e-9, atol=1e-11)
    assert found.alpha == alpha


def test_one_P_serves_all_places_of_the_weights(monkeypatch):
    factors, made = [], Factored.from_problem.__func__
    monkeypatch.setattr(Factored, "from_problem", classmethod(lambda cls, *args: factors.append(1) or made(cls, *args)))
    weights = WEIGHTS["a rare class"]
    first = problem_of(weights, 0.3, True)
    shared = SharedWeights(gram(first))
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(N)
        problem = problem_of(weights[order], 0.3, True)
        P = shared.precision(problem).explicit().P
        assert_allclose(P @ problem.whitened_columns(np.arange(N)), 0, atol=1e-10)
    assert len(factors) == 1


@pytest.mark.parametrize(
    "weights",
    [np.arange(1.0, N + 1), np.ones(N), np.where(np.arange(N) % 2, 1.0, 3.0), np.where(np.arange(N) == 3, 1e6, 1.0)],
    ids=["all different", "all the same", "halves", "far apart"],
)
def test_other_weights_have_a_factor_of_their_own(weights):
    problem = problem_of(weights, 0.3, True)
    assert isinstance(SharedWeights(gram(problem)).precision(problem), Factored)
    assert isinstance(SharedWeights(None).precision(problem_of(WEIGHTS["one row"], 0.3, True)), Factored)
