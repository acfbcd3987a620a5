"""Learn and forget samples: the solution on other rows from the one at hand, always equal to a new fit.

    learn    e = y - f(x),   A <- [A - c s^-1 e; s^-1 e],   B <- B - d s^-1 e     (c, d, s of ``precision.growing``)
    forget   A <- A_tr - P_tr,te E_te,   B <- B - G_te E_te,   E_te = P_te,te^-1 A_te

Kim, Drake & Park (algorithms 5 and 6) update a QR factorisation to the same end. The first update makes P explicit
(2/3 n^3); each one then costs O(n^2) for a few rows, and leave-one-out, which needs the diagonal of P, O(n). Where a
new factorisation is cheaper or more accurate it is taken: for about as many new rows as there are, for so few explicit
features that n r^2 is below n^2, for a tiny alpha where S has a lower rank than rows or a squared condition, for a
Schur complement lost in rounding, and where an update is less accurate than max(1e-9, 10 eps cond(M)) by what can be
seen at its price. Explicit features of many rows go by sums over rows in the place of P (``online.sums``). What can be
seen:

    fits             y - M A - Q B, the residual of the equations, relative to the largest target
    leave-one-out    errors of P relative to its diagonal: what refinement put right in a column of P, P y - A, and
                     eps times what a P_ii has been

A solution that was updated is used up: its P has become that of the new one.
"""

from dataclasses import replace

import numpy as np

from foldless._engine.heldout.solution import Solution
from foldless._engine.linalg import NotPositiveDefiniteError, add_diagonal_, norm, row_major, solve
from foldless._engine.online.sums import changed, keep_digits, recentred, solved, sums_of
from foldless._engine.precision import cost
from foldless._engine.precision.base import SingularBlockError
from foldless._engine.precision.choose import precision
from foldless._engine.precision.growing import Growing

WELL_CONDITIONED = 1e4  # |K| / alpha up to which updates need no refinement
TOLERATED_ERROR = 1e-9  # errors to bear whatever the condition
TOLERATED_DRIFT = {"float64": 1e-6, "float32": 1e-2}  # residuals of updates; beyond, P may be wrong where none looked


def solve_anew(problem, Y):
    """The solution with targets Y (n, m) by a new factorisation."""
    return Solution.fit(problem, problem.active, Y[problem.active])


def learn(solution, problem, Y):
    """The solution with targets Y (n, m) on all rows of ``problem``, of which the first are those of ``solution``."""
    n = len(solution.rows)
    new = problem.active[len(solution.rows) :]
    white = _whitened(problem, Y)
    unchanged = np.array_equal(solution.Y, white[:n])  # a new class changes targets
    if len(new) == 0 and unchanged:
        return replace(solution, problem=problem, rows=problem.active)
    if not update_pays(problem, n, len(new)):
        return _from_sums(solution, problem, Y, problem, new, 1.0)
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # a new factorisation tells what overflows
            P = growing(solution)
            K, among_new = problem.gram_of_new(solution.rows, new)
            columns, corner = _system(problem, solution.rows, new, K), _system(problem, new, new, among_new)
            q = problem.whitened_columns(new)
            border = P.border(columns, q, corner)
    except NotPositiveDefiniteError:
        return solve_anew(problem, Y)
    if not unchanged:
        return _solution(problem, Y, white, border.learn())
    residual = white[n:] - columns.T @ solution.A - q @ solution.B
    A, B = border.solution(solution.A, solution.B, residual)
    return _solution(problem, Y, white, border.learn(), A, B)


def update_pays(problem, n, t):
    """Whether an update by t rows is preferred to a new factorisation, n being the rows that stay."""
    kernel, through_features, r = problem.kernel, problem.through_features(n + t), problem.n_features
    if r is not None and r >= n + t and not (through_features or kernel.squares_condition):
        r = None
    mean_diagonal = 0.0 if r is None else problem.mean_diagonal
    return cost.update_pays(n, t, r, problem.alpha, mean_diagonal, through_features=through_features)


def _from_sums(solution, problem, Y, owner, rows, sign):
    """The solution from sums over all rows, to which these ``rows`` of ``owner`` are added; or by a factorisation."""
    n = len(problem.active)
    if not cost.sums_pay(n, through_features=problem.through_features(n)):
        return solve_anew(problem, Y)
    sums = None if solution.sums is None else changed(solution.sums, owner, rows, sign)
    if sums is None or not keep_digits(sums, problem.alpha):
        sums = sums_of(problem)
    elif sign < 0:
        sums = recentred(sums, problem)
    white = _whitened(problem, Y)
    coefficients = solved(sums, problem, white) if keep_digits(sums, problem.alpha) else None
    if coefficients is None:
        return solve_anew(problem, Y)
    A, B, weights = coefficients
    return Solution(problem, problem.active, white, A, B, holder=None, solved_weights=weights, sums=sums)


def forget(solution, problem, Y, removed):
    """The solution with targets Y on all rows of ``problem``: those of ``solution`` without some.

    ``removed`` are positions among the rows of ``solution``.
    """
    n = len(solution.rows)
    t = len(removed)
    white = _whitened(problem, Y)
    kept = np.delete(np.arange(n), removed)
    unchanged = np.array_equal(solution.Y[kept], white)
    # The origin moves to the mean confounds of the rows that are left.
    moved = not np.array_equal(problem.origin, solution.problem.origin)
    if t == 0 and unchanged and not moved:
        return replace(solution, problem=problem, rows=problem.active)
    if problem.more_columns:
        problem.basis_of_Q(problem.active)  # complains where what is left does not determine them
    if not update_pays(problem, n - t, t):
        return _from_sums(solution, problem, Y, solution.problem, solution.rows[removed], -1.0)
    try:
        removal = growing(solution).removal(removed)
    except SingularBlockError:  # lost in rounding: a new factorisation solves it, or tells why not
        return solve_anew(problem, Y)
    A, B = removal.solution(solution.A, solution.B)
    P = removal.forget()
    if moved:
        T = np.eye(len(B), dtype=B.dtype)
        T[0, -len(problem.origin) :] = solution.problem.origin - problem.origin
        P.square.change_columns(T)
        B = solve(T, B)
    return _solution(problem, Y, white, P, A, B) if unchanged else _solution(problem, Y, white, P)


def growing(solution):
    """The P of a solution in the holder that can be updated."""
    P = solution.own_precision
    if P.grows:
        return P
    problem, rows = solution.problem, solution.rows
    n = len(rows)
    cost.require_updates(n, problem.dtype)
    if P.through_features:
        P = precision(problem, rows, features=False)
    M = _system(problem, rows, rows, problem.gram(rows, rows))
    entry = float(norm(M)) / n
    refines = problem.dtype != np.float64 or entry * n > WELL_CONDITIONED * problem.alpha
    return Growing.of(P.explicit(), P.Omega, M, problem.whitened_columns(rows), entry=entry, refines=refines)


def _system(problem, rows, columns, K):
    """The block of M = W^1/2 K W^1/2 + alpha I at these rows and columns, from that of K."""
    M = problem.root(rows) * K * problem.root(columns).T
    if rows is columns:
        M = add_diagonal_(M, problem.alpha)
    return M


def _solution(problem, Y, white, P, A=None, B=None):
    """The solution by an updated P: with A and B, or from targets that are not what they were.

    Where it is not accurate enough, the one by a new factorisation.
    """
    if A is None:
        A, B = P.solve(white, np.zeros((problem.Q.shape[1], white.shape[1]), white.dtype))
    if P.refines:
        tolerance = _tolerance(problem, P)
        A, B, left = _refined(problem, P, A, B, white, tolerance)
        accurate = left <= tolerance and P.drift <= TOLERATED_DRIFT[problem.dtype.name] and P.error() <= tolerance
    else:  # every eighth update was tested
        shrinkage = P.shrinkage()
        accurate = P.drift * shrinkage <= 1e-10 and shrinkage <= 1e4
    if not accurate:
        return solve_anew(problem, Y)
    return Solution(problem, problem.active, white, A, B, holder=P)


def _refined(problem, P, A, B, white, tolerance):
    """A and B after a step of refinement, and what they leave of the targets, relative to those.

    A step can enlarge the residual, where a P of ill condition is wrong in directions that K enlarges: it is computed
    again there.
    """
    root, least = problem.root(problem.active), np.finfo(A.dtype).tiny
    # Of targets far from zero, what their own spread is worth.
    spread = np.abs(problem.residual_of_Q(problem.active, white)[0] / root).max(initial=0.0)
    size = max(spread, 1e-6 * np.abs(white / root).max(initial=0.0), least)

    def relative(r):
        return float(np.abs(r / root).max(initial=0.0) / size)

    r, head = P.residual_of(A, B, white)
    a, b = P.solve(r, head)
    A, B = A + a, B + b
    left, probed = relative(r), P.is_to_be_probed(tolerance > TOLERATED_ERROR)
    if left > tolerance or P.square.ill_conditioned:
        left = relative(P.residual_of(A, B, white)[0])
    if probed:
        P.probe(A, B, white)
    return A, B, left


def _tolerance(problem, P):
    """max(1e-9, 10 eps cond(M)), the condition being taken as |S + alpha I| max(P_ii).

    |S| is that of the rows at the factorisation, or a bound by diag S where large rows have gone since.
    """
    n = len(problem.active)
    eps = np.finfo(problem.dtype).eps
    largest = min(float(P.diagonal().max()), 1.0 / problem.alpha)
    size = P.entry * n
    if 10 * eps * (size + problem.alpha) * largest > TOLERATED_ERROR:
        rows = np.arange(n)
        size = min(size, float(np.abs(P.system_entries(rows, rows) - problem.alpha).sum()))
    return max(TOLERATED_ERROR, 10 * eps * max(1.0, (size + problem.alpha) * largest))


def _whitened(problem, Y):
    return row_major(problem.root(problem.active) * problem.rounded(Y[problem.active]))
