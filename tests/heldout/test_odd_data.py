"""Odd data drawn by hypothesis: whatever the shape, closed form and refit agree."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn import model_selection as skl

from foldless import LSSVC, LSSVR, KernelFisherDiscriminant, kernels, reference
from foldless._engine.heldout.problem import Problem
from support.cases import penalised
from support.parts import TrainingParts
from support.tolerances import assert_close

relaxed = settings(deadline=None, max_examples=60, derandomize=True, suppress_health_check=list(HealthCheck))


@st.composite
def problems(draw):
    """Rows with duplicates, constant and huge or tiny columns, few or many features, weights with zeros and gaps."""
    n = draw(st.integers(4, 18))
    d = draw(st.integers(1, 25))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.normal(size=(n, d)) * 10.0 ** draw(st.integers(-3, 3))
    if draw(st.booleans()):
        X[:, 0] = draw(st.floats(-1e3, 1e3))
    if draw(st.booleans()):
        X[n // 2] = X[0]
    if draw(st.booleans()):
        X += draw(st.sampled_from([1e3, -50.0]))
    w = np.ones(n)
    if draw(st.booleans()):
        w = 10.0 ** rng.uniform(-2, 2, n)
        w[rng.permutation(n)[: draw(st.integers(0, n - 3))]] = 0.0
    alpha = 10.0 ** draw(st.integers(-4, 6))
    return X, rng, w, alpha


def tolerance(S, w, alpha):
    """100 eps cond(M), M whitened, and never below 1e-8."""
    root = np.sqrt(w[w > 0])
    S = S[np.ix_(w > 0, w > 0)] * root * root[:, None]
    largest = np.linalg.eigvalsh(S)[-1]
    return max(1e-8, 100 * np.finfo(float).eps * (largest + alpha) / alpha)


@given(problems(), st.sampled_from(["rbf", "linear", "poly"]), st.sampled_from(["rkhs", "coef"]), st.booleans())
@relaxed
def test_any_held_out_set_equals_a_refit(problem, kernel, penalty, intercept):
    X, rng, w, alpha = problem
    n = len(X)
    kernel = kernels.resolve(kernel, X, gamma="scale", degree=2)
    K = kernel.gram(X)
    Q = np.ones((n, int(intercept)))
    Y = rng.normal(size=(n, 2))
    active = np.flatnonzero(w)
    train = rng.permutation(active)[: rng.integers(2, len(active) + 1)]
    S = K if penalty == "rkhs" else K @ K
    rtol = tolerance(S, w, alpha)
    if rtol > 1e-3:
        return  # nothing is determined to more than three digits
    expected = reference.heldout_fits(K, Y, train, np.arange(n), alpha, w=w, Q=Q, penalty=penalty)
    for strategy in ("part", "solve"):
        model = TrainingParts(
            Problem.of(penalised(kernel, penalty, X, w), X, alpha=alpha, Q=Q, sample_weight=w), Y, strategy=strategy
        ).part(train)
        assert_close(model.fits(np.arange(n)), expected, scale=np.abs(expected).max() + np.abs(Y).max(), rtol=rtol)


@pytest.mark.filterwarnings("ignore::foldless._engine.heldout.caution.NothingLearntWarning")
@given(problems(), st.integers(2, 4), st.sampled_from([LSSVC, KernelFisherDiscriminant]))
@relaxed
def test_leave_one_out_of_any_classes_equals_a_loop(problem, n_classes, kind):
    X, _, _, alpha = problem
    y = np.arange(len(X)) % min(n_classes, len(X) // 2)
    K = kernels.RBF(1.0 / X.shape[1]).gram(X)
    estimator = kind(gamma=1.0 / X.shape[1], alpha=alpha)
    ours = estimator.fit(X, y).loo_decision_function()
    theirs = skl.cross_val_predict(estimator, X, y, cv=skl.LeaveOneOut(), method="decision_function")
    rtol = tolerance(K, np.ones(len(X)), alpha)
    if kind is KernelFisherDiscriminant:
        # what the kernel explains of the classes, about largest / alpha, is read off fits that are nearly constant
        centred = K - K.mean(0) - K.mean(1)[:, None] + K.mean()
        rtol = max(rtol, 1e4 * np.finfo(float).eps * alpha / np.linalg.eigvalsh(centred)[-1])
    if rtol < 1e-3:
        assert_close(ours, theirs, rtol=rtol)


@given(problems())
@relaxed
def test_rows_of_weight_zero_equal_deleted_rows(problem):
    X, rng, w, alpha = problem
    y = rng.normal(size=len(X))
    keep = w > 0
    one = LSSVR(gamma=0.1, alpha=alpha).fit(X, y, sample_weight=w)
    two = LSSVR(gamma=0.1, alpha=alpha).fit(X[keep], y[keep], sample_weight=w[keep])
    rtol = tolerance(kernels.RBF(0.1).gram(X), w, alpha)
    assert_close(one.predict(X), two.predict(X), scale=np.abs(y).max(), rtol=rtol)
    assert_close(one.loo_predict()[keep], two.loo_predict(), scale=np.abs(y).max() * 10, rtol=rtol)
    assert_close(one.loo_predict()[~keep], two.predict(X)[~keep], scale=np.abs(y).max(), rtol=rtol)
