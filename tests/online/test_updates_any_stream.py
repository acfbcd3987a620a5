"""Any sequence of updates on odd rows drawn by hypothesis equals a refit or is a clear error."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import foldless._engine.online.updates as updates
from foldless import kernels
from foldless._engine.heldout.problem import Problem
from support.cases import penalised
from support.tolerances import assert_close
from support.updates import EPS, condition


@st.composite
def streams(draw):
    """Few rows, some of them twice or constant, of any size, weights with zeros, and what to do with them."""
    n, d = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.normal(size=(60, d)) * 10.0 ** draw(st.integers(-2, 2))
    if draw(st.booleans()):
        X[1::2] = X[::2]
    if draw(st.booleans()):
        X[::3] = draw(st.sampled_from([0.0, 1.0, -7.0]))
    w = np.ones(60)
    if draw(st.booleans()):
        w = 10.0 ** rng.uniform(-2, 2, 60)
        w[rng.random(60) < 0.15] = 0.0
        w[0] = 1.0
    steps = draw(st.lists(st.tuples(st.booleans(), st.integers(1, 4), st.integers(0, 2**16)), max_size=14))
    return X, w, 10.0 ** draw(st.integers(-12, 6)), n, steps, rng.normal(size=(60, 2))


@given(
    streams(),
    st.sampled_from(["rbf", "linear", "poly"]),
    st.sampled_from(["rkhs", "coef"]),
    st.sampled_from([0, 1, 3]),
)
@settings(deadline=None, max_examples=150, derandomize=True, suppress_health_check=list(HealthCheck))
def test_any_sequence_on_any_rows_equals_a_refit_or_is_a_clear_error(stream, kernel, penalty, q):
    X, w, alpha, n, steps, Y = stream
    kernel = kernels.resolve(kernel, X, gamma=0.3, degree=2)
    Q = np.column_stack([np.ones(60), np.sin(np.arange(60)), np.arange(60) % 5 == 2])[:, :q]
    rows, unseen = np.arange(n), list(range(n, 60))
    kernel = penalised(kernel, penalty, X[rows], w[rows])
    problem = Problem.of(kernel, X[rows], alpha=alpha, Q=Q[rows], sample_weight=w[rows])
    try:
        whole = updates.solve_anew(problem.replace(shift=None), Y[rows])
    except ValueError:
        return  # not determined from the start
    for grows, t, seed in steps:
        before = whole
        if grows:
            then = np.concatenate([rows, unseen[:t]])
            problem = whole.problem.extended(X[unseen[:t]], Q[unseen[:t]]).weighted_by(w[then])
            change = (updates.learn, ())
        else:
            places = np.random.default_rng(seed).permutation(len(rows))[:t]
            kept = np.delete(np.arange(len(rows)), places)
            then, problem = rows[kept], whole.problem.subset(kept)
            if not len(problem.active):
                continue
            change = (updates.forget, (np.flatnonzero(np.isin(whole.rows, places)),))
        try:
            expected = updates.solve_anew(problem, Y[then])
        except ValueError:
            with pytest.raises(ValueError, match=r"determine|confounds"):
                change[0](whole, problem, Y[then], *change[1])
            assert before.current
            continue
        whole, rows = change[0](whole, problem, Y[then], *change[1]), then
        unseen = unseen[t:] if grows else unseen
        active = rows[w[rows] > 0]
        rtol = max(1e-8, 300 * EPS * condition(kernel.gram(X[active]), w[active], alpha))
        if rtol > 1e-4:
            continue  # nothing is determined to more than four digits
        beta, B = expected.expansion()[1], expected.B
        least = np.abs(Y).max() / alpha if len(active) <= q else 1e-300  # as many rows as columns leave nothing to P
        assert_close(whole.expansion()[1], beta, rtol=rtol, scale=max(np.abs(beta).max(), least))
        assert_close(whole.B, B, rtol=rtol, scale=max(np.abs(B).max(initial=0.0), np.abs(Y).max()))
        try:
            E = expected.loo().E
        except ValueError:
            with pytest.raises(ValueError, match=r"determine|confounds"):
                whole.loo()
            continue
        assert_close(whole.loo().E, E, rtol=rtol)
