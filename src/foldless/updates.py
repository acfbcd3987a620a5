"""Learn and forget samples: the solution on other rows from the one at hand, always equal to a new fit.

    learn    e = y - f(x),   A <- [A - c s^-1 e; s^-1 e],   B <- B - d s^-1 e     (c, d, s of ``precision.growing``)
    forget   A <- A_tr - P_tr,te E_te,   B <- B - G_te E_te,   E_te = P_te,te^-1 A_te

Kim, Drake & Park (algorithms 5 and 6) update a QR factorisation to the same end. The first update makes P explicit
(2/3 n^3); each one then costs O(n^2) for a few rows, and leave-one-out, which needs the diagonal of P, O(n). Where a
new factorisation is cheaper or more accurate it is taken: for about as many new rows as there are, for so few explicit
features that n r^2 is below n^2, for a Schur complement lost in rounding, and when the drift of P (the residuals that
updates met) passes a tolerance.

A solution that was updated is used up: its P has become that of the new one.
"""

import numpy as np

from foldless._array import NotPositiveDefiniteError
from foldless.holdout import Solution
from foldless.precision import Growing, LowRank, SingularBlockError

WELL = 1e4  # |K| / alpha up to which updates need no refinement


def anew(problem, Y):
    """The solution with targets Y (n, m) by a new factorisation."""
    return Solution(problem, problem.active, Y[problem.active])


def learn(whole, problem, Y):
    """The solution with targets Y (n, m) on all rows of ``problem``, of which the first are those of ``whole``."""
    n, new, white = len(whole.rows), problem.active[len(whole.rows) :], _whitened(problem, Y)
    t, same = len(new), _same(whole.Y, white[: len(whole.rows)])
    if t == 0 and same:
        return whole.on(problem)
    if not _pays(problem, n, t):
        return anew(problem, Y)
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # a new factorisation tells what overflows
            columns, corner = problem.border(whole.rows, new)
            q = problem.root_w[new][:, None] * problem.Q[new]
            order = None
            if problem.penalty == "coef":  # sites of rows come before those of basis functions
                q = np.vstack([q, np.zeros_like(q)])
                order = np.r_[:n, 2 * n : 2 * n + t, n : 2 * n, 2 * n + t : 2 * (n + t)]
            border = growing(whole).border(columns, q, corner)
    except NotPositiveDefiniteError:
        return anew(problem, Y)
    if not same:
        return _solved(problem, Y, white, border.learn(order))
    e = _padded(white[n:], len(q)) - columns.T @ whole.joint_A - q @ whole.B
    A, B = border.solution(whole.joint_A, whole.B, e)
    return _solved(problem, Y, white, border.learn(order), A if order is None else A[order], B)


def forget(whole, problem, Y, removed):
    """The solution with targets Y on all rows of ``problem``: those of ``whole`` without some.

    ``removed`` are positions among the rows of ``whole``.
    """
    n, t, white = len(whole.rows), len(removed), _whitened(problem, Y)
    same = _same(np.delete(whole.Y, removed, axis=0), white)
    if t == 0 and same:
        return whole.on(problem)
    if problem.more_columns:
        problem.span(problem.active)  # complains where what is left does not determine them
    if not _pays(problem, n - t, t):
        return anew(problem, Y)
    sites = removed if problem.penalty == "rkhs" else np.concatenate([removed, removed + n])
    try:
        removal = growing(whole).removal(sites)
    except SingularBlockError:  # lost in rounding: a new factorisation solves it, or tells why not
        return anew(problem, Y)
    if not same:
        return _solved(problem, Y, white, removal.forget())
    A, B = removal.solution(whole.joint_A, whole.B)
    return _solved(problem, Y, white, removal.forget(), A, B)


def growing(whole):
    """The P of a solution, or its J, in the holder that can be updated."""
    if isinstance(whole.joint, Growing):
        return whole.joint
    problem, own = whole.problem, whole.own_precision
    if isinstance(own, LowRank):
        own = problem.dense(whole.rows)
    n, M, Q = len(whole.rows), problem.system(whole.rows), whole.root * problem.Q[whole.rows]
    size = float(np.linalg.norm(M[:n, len(M) - n :]))  # of K; M = [alpha I, K; K', -I] for J
    if problem.penalty == "coef":
        joint = whole.joint.explicit()
        return Growing.of(joint, own.Omega, M, np.vstack([Q, np.zeros_like(Q)]), entry=size / n, refines=True)
    refines = M.dtype != np.float64 or size > WELL * problem.alpha
    return Growing.of(own.explicit(), own.Omega, M, Q, entry=size / n, refines=refines)


def _solved(problem, Y, white, joint, A=None, B=None):
    """The solution by an updated P or J: with A and B, or from targets that are not what they were.

    Where it has drifted too far, the one by a new factorisation.
    """
    targets = _padded(white, joint.n)
    if A is None:
        A, B = joint.apply(targets), joint.G @ targets
    A, B = joint.refined(A, B, targets)
    whole = Solution.known(problem, problem.active, white, joint, A, B)
    shrinkage, (tolerance, most) = whole.own_precision.shrinkage(), _bounds(whole)
    fine = joint.drift * shrinkage <= tolerance and shrinkage <= most
    return whole if fine else anew(problem, Y)


def _bounds(whole):
    """Drift and shrinkage to bear: measured, so that errors stay below max(1e-8, 100 eps cond(S + alpha I)).

    The condition is taken as |K| max(P_ii). J never squares K as S = K K' does, and bears ten times as much.
    """
    joint, eps = whole.joint, np.finfo(whole.Y.dtype).eps
    if not joint.refines:
        return 1e-10, 1e4
    size, largest = joint.entry * len(whole.rows), float(whole.own_precision.diagonal().max())
    bound = 1e2 * eps * size * largest if whole.problem.penalty == "rkhs" else 1e3 * eps * size**2 * largest
    least = 2e-7 if eps < 1e-10 else 1e-2
    tolerance = min(max(least, bound), 1e-2)
    return tolerance, 1e4 * tolerance / least


def _pays(problem, n, t):
    """Whether an update by t rows is to be preferred to a new factorisation, n being the rows that stay.

    Few explicit features are solved anew in less time, and at small alpha with more digits than an explicit P has.
    """
    r = problem.n_features(n + t)
    few_features = r is not None and (6 * r * r <= n or problem.alpha < 1e-4 * problem.size)
    return 0 < 2 * t <= n and not few_features


def _whitened(problem, Y):
    return np.ascontiguousarray(problem.root_w[problem.active][:, None] * Y[problem.active])


def _same(before, now):
    """Whether rows keep their targets: a new class changes them."""
    return before.shape == now.shape and np.array_equal(before, now)


def _padded(Y, n_sites):
    """Targets of all sites: basis functions have zeros."""
    if len(Y) == n_sites:
        return Y
    padded = np.zeros((n_sites, Y.shape[1]), Y.dtype)
    padded[: len(Y)] = Y
    return padded
