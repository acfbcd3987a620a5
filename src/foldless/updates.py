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
from foldless.precision import Growing, LowRank


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
        return _checked(_solved(problem, white, border.learn(order)), Y)
    target = np.zeros((len(q), white.shape[1]), white.dtype)
    target[:t] = white[n:]
    A, B = border.solution(whole.joint_A, whole.B, target - columns.T @ whole.joint_A - q @ whole.B)
    A = A if order is None else A[order]
    return _checked(Solution.known(problem, problem.active, white, border.learn(order), A, B), Y)


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
    removal = growing(whole).removal(sites)
    A, B = removal.solution(whole.joint_A, whole.B)
    joint = removal.forget()
    if not same:
        return _checked(_solved(problem, white, joint), Y)
    return _checked(Solution.known(problem, problem.active, white, joint, A, B), Y)


def growing(whole):
    """The P of a solution, or its J, in the holder that can be updated."""
    if isinstance(whole.joint, Growing):
        return whole.joint
    problem, own = whole.problem, whole.own_precision
    if isinstance(own, LowRank):
        own = problem.dense(whole.rows)
    M, Q = problem.system(whole.rows), whole.root * problem.Q[whole.rows]
    care = _care(problem, M)
    if problem.penalty == "rkhs":
        return Growing.of(own.explicit(), own.Omega, M, Q, **care)
    return Growing.of(whole.joint.explicit(), own.Omega, M, np.vstack([Q, np.zeros_like(Q)]), **care)


def _care(problem, M):
    """How much drift to bear before P is factorised anew, and whether to refine updates.

    Both go by |K| / alpha, which is about cond(S + alpha I). J never squares K as S = K K' does, and bears a hundred
    times as much. Measured: within these bounds, errors stay below max(1e-8, 100 eps cond(S + alpha I)).
    """
    n = len(M) if problem.penalty == "rkhs" else len(M) // 2
    size, eps = float(np.linalg.norm(M[:n, len(M) - n :])), np.finfo(M.dtype).eps  # M = [alpha I, K; K', -I] for J
    if problem.penalty == "coef":
        bound = 1e4 * eps * size**2 / problem.alpha
    elif eps < 1e-10 and size <= 1e4 * problem.alpha:
        return {"tolerance": 1e-10, "refines": False}
    else:
        bound = 1e2 * eps * size / problem.alpha
    return {"tolerance": min(max(2e-7 if eps < 1e-10 else 1e-2, bound), 0.1), "refines": True}


def _checked(whole, Y):
    """The solution, or one by a new factorisation where it has drifted too far."""
    return whole if whole.joint.drift <= whole.joint.tolerance else anew(whole.problem, Y)


def _pays(problem, n, t):
    """Whether an update by t rows is cheaper than a new factorisation, n being the rows that stay."""
    r = problem.n_features(n + t)
    few_features = r is not None and (6 * r * r <= n or problem.alpha < 1e-8 * problem.size)
    return 0 < 2 * t <= n and not few_features


def _whitened(problem, Y):
    return np.ascontiguousarray(problem.root_w[problem.active][:, None] * Y[problem.active])


def _same(before, now):
    """Whether rows keep their targets: a new class changes them."""
    return before.shape == now.shape and np.array_equal(before, now)


def _solved(problem, white, joint):
    """The solution for other targets than before."""
    padded = np.zeros((joint.n, white.shape[1]), white.dtype)
    padded[: len(white)] = white
    return Solution.known(problem, problem.active, white, joint, joint.apply(padded), joint.G @ padded)
