"""Solutions that learn and forget rows of the table of cases, and what they have to equal."""

from dataclasses import replace

import numpy as np
import pytest

import foldless._engine.online.updates as updates
from foldless import kernels, reference
from foldless._engine.heldout.problem import Problem
from foldless._engine.precision.growing import Growing
from support.cases import CASES, Case, penalised
from support.refits import loo_fits
from support.tolerances import assert_close

EPS = np.finfo(float).eps
every_dtype = pytest.mark.parametrize("dtype", ["float64", "float32"])


# -- learn and forget against refits ---------------------------------------------------------------------------------


def data(case, rows):
    return case.X[rows], case.Q[rows].astype(case.dtype)


def targets(case, rows):
    return np.ascontiguousarray(case.Y[rows].astype(case.dtype))


def problem_of(case, rows):
    return case.problem().replace(shift=None).subset(rows)


def begin(case, rows):
    return updates.solve_anew(problem_of(case, rows), targets(case, rows))


def learn(case, whole, rows, new):
    """The solution with the rows ``new`` of the case behind those it has, and all of them."""
    rows = np.concatenate([rows, new])
    problem = whole.problem.extended(*data(case, new))
    if case.weights != "none":
        problem = problem.weighted_by(case.w[rows])
    return updates.learn(whole, problem, targets(case, rows)), rows


def forget(case, whole, rows, places):
    """The solution without these places, and the rows that stay."""
    kept = np.delete(np.arange(len(rows)), places)
    gone = np.flatnonzero(np.isin(whole.rows, places))
    return updates.forget(whole, whole.problem.subset(kept), targets(case, rows[kept]), gone), rows[kept]


def condition(K, w, alpha):
    """cond(M) of the whitened problem."""
    root = np.sqrt(w)
    e = np.linalg.eigvalsh(K * root * root[:, None])
    return (e[-1] + alpha) / (max(e[0], 0.0) + alpha)


def allowed(case, rows):
    """max(1e-8, 100 eps cond(M))."""
    rows = rows[case.w[rows] > 0]
    cond = condition(case.K[np.ix_(rows, rows)], case.w[rows], case.alpha)
    return max(1e-8, 100 * np.finfo(case.dtype).eps * cond)


def loo_residuals(case, rows, *, n_confounds=0):
    """By a refit for every row of positive weight."""
    K, w, Q, Y = case.K[np.ix_(rows, rows)], case.w[rows], case.Q[rows], case.Y[rows]
    options = {"w": w, "Q": Q, "n_confounds": n_confounds}
    active = np.flatnonzero(w)
    return Y[active] - loo_fits(K, Y, case.alpha, at=active, **options)


def assert_equals_refit(case, whole, rows):
    rtol, active = allowed(case, rows), np.flatnonzero(case.w[rows])
    mine, Y = rows[active], case.Y[rows]
    beta, B = reference.fit(*(case.K[np.ix_(mine, mine)], case.Y[mine], case.alpha), w=case.w[mine], Q=case.Q[mine])
    expanded, found = whole.expansion()
    np.testing.assert_array_equal(expanded, active)
    np.testing.assert_array_equal(whole.rows, active)
    assert found.dtype == case.dtype
    assert_close(found, beta, rtol=rtol)
    assert_close(whole.B, B, rtol=rtol, scale=max(np.abs(B).max(initial=0.0), np.abs(Y).max()))
    fits = case.K[np.ix_(rows, mine)] @ beta + case.Q[rows] @ B
    assert_close(whole.fits(np.arange(len(rows))), fits, rtol=rtol, scale=np.abs(Y).max())
    if len(active) > case.q:
        assert_close(whole.loo().E[:, 0] / whole.root, loo_residuals(case, rows), rtol=rtol)


UPDATED = [
    *CASES,
    *[replace(Case(), weights="random", penalty=p) for p in ("rkhs", "coef")],
    *[replace(Case(), dtype="float32", weights="zeros", q=q, penalty=p) for q in (0, 3) for p in ("rkhs", "coef")],
    *[replace(Case(), alpha=a, penalty="coef") for a in (1e-3, 1e2)],
]
UPDATED = list(dict.fromkeys(UPDATED))
every_case = pytest.mark.parametrize("case", UPDATED, ids=str)

every_penalty = pytest.mark.parametrize("penalty", ["rkhs", "coef"])


# -- long runs -----------------------------------------------------------------------------------------------------


def long_run(alpha, steps, least, most, penalty="rkhs", every=100, twice=False):
    """Random rows come and go, one or several at a time; coefficients and residuals against plain inverses."""
    rng = np.random.default_rng(0)
    pool = rng.normal(size=(2 * most, 5))
    if twice:
        pool[1::40] = pool[::40]
    Y = np.sign(pool[:, :1] * pool[:, 1:2] + 0.3 * rng.normal(size=(2 * most, 1)))
    kernel, K = kernels.RBF(0.2), kernels.RBF(0.2).gram(pool)
    rows, sizes, grown, pays = rng.permutation(2 * most)[: 2 * least], [], 0, 0
    if penalty == "coef":
        K = K[:, rows] @ K[:, rows].T
    problem = Problem.of(penalised(kernel, penalty, pool[rows]), pool[rows], alpha=alpha, Q=np.ones((len(rows), 1)))
    whole, upward = updates.solve_anew(problem, Y[rows]), True
    for step in range(1, steps + 1):
        t = 1 if rng.random() < 0.7 else int(rng.integers(2, 13))
        upward = (upward or len(rows) < least + 13) and len(rows) <= most - 13
        if (rng.random() < (0.7 if upward else 0.3) or len(rows) - t < least) and len(rows) + t <= most:
            new = rng.permutation(np.setdiff1d(np.arange(2 * most), rows))[:t]
            rows = np.concatenate([rows, new])
            whole = updates.learn(whole, whole.problem.extended(pool[new], np.ones((t, 1))), Y[rows])
        else:
            places = rng.permutation(len(rows))[:t]
            kept = np.delete(np.arange(len(rows)), places)
            rows = rows[kept]
            whole = updates.forget(whole, whole.problem.subset(kept), Y[rows], np.sort(places))
        before = sizes[-1] if sizes else 2 * least
        sizes.append(len(rows))
        pays += updates.update_pays(whole.problem, min(before, len(rows)), abs(len(rows) - before))
        grown += isinstance(whole.precision, Growing)
        if step % every == 0:
            S = K[np.ix_(rows, rows)]
            e = np.linalg.eigvalsh(S)
            rtol = max(1e-8, 100 * EPS * (e[-1] + alpha) / (max(e[0], 0.0) + alpha))
            P, G = reference.precision(S, alpha)
            A, B = P @ Y[rows], G @ Y[rows]
            assert_close(whole.expansion()[1], A, rtol=rtol)
            assert_close(whole.B, B, rtol=rtol, scale=max(np.abs(B).max(), 1.0))
            assert_close(whole.loo().E[:, 0], A / P.diagonal()[:, None], rtol=rtol)
    assert min(sizes) >= least
    assert max(sizes) <= most
    assert min(sizes) < least + 20
    assert max(sizes) > most - 20
    assert 0.8 * pays <= grown <= pays
    if penalty == "coef" and alpha < 1e-5:
        assert pays == 0
    else:
        assert pays > 0.8 * steps
