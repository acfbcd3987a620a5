"""Learn and forget samples: the solution on other rows from the one at hand, always equal to a new fit.

    learn    e = y - f(x),   A <- [A - c s^-1 e; s^-1 e],   B <- B - d s^-1 e     (c, d, s of ``precision.growing``)
    forget   A <- A_tr - P_tr,te E_te,   B <- B - G_te E_te,   E_te = P_te,te^-1 A_te

Kim, Drake & Park (algorithms 5 and 6) update a QR factorisation to the same end. The first update makes P explicit
(2/3 n^3); each one then costs O(n^2) for a few rows, and leave-one-out, which needs the diagonal of P, O(n). Where a
new factorisation is cheaper or more accurate it is taken: for about as many new rows as there are, for so few explicit
features that n r^2 is below n^2, for a Schur complement lost in rounding, and where an update is less accurate than
max(1e-9, 10 eps cond(M)) by what can be seen at its price. Explicit features of many rows go by sums over rows in the
place of P (``online.sums``). What can be seen:

    fits             y - M A - Q B, the residual of the equations, relative to the largest target
    leave-one-out    errors of P relative to its diagonal: what refinement put right in a column of P, P y - A, and
                     eps times what a P_ii has been

A solution that was updated is used up: its P has become that of the new one.
"""

import numpy as np

from foldless.heldout.solution import Solution
from foldless.linalg import NotPositiveDefiniteError, norm, solve
from foldless.linalg.memory import require_memory
from foldless.online.sums import changed, keep_digits, recentred, solved, sums_of
from foldless.precision.base import SingularBlockError
from foldless.precision.choose import precision, sums_pay, update_pays
from foldless.precision.growing import Growing

WELL_CONDITIONED = 1e4  # |K| / alpha up to which updates need no refinement
TOLERATED_ERROR = 1e-9  # errors to bear whatever the condition
TOLERATED_DRIFT = {"float64": 1e-6, "float32": 1e-2}  # residuals of updates; beyond, P may be wrong where none looked


def solve_anew(problem, Y):
    """The solution with targets Y (n, m) by a new factorisation."""
    return Solution(problem, problem.active, Y[problem.active])


def learn(whole, problem, Y):
    """The solution with targets Y (n, m) on all rows of ``problem``, of which the first are those of ``whole``."""
    n = len(whole.rows)
    new = problem.active[len(whole.rows) :]
    white = _whitened(problem, Y)
    unchanged = np.array_equal(whole.Y, white[:n])  # a new class changes targets
    if len(new) == 0 and unchanged:
        return whole.changed(problem=problem, rows=problem.active)
    if not update_pays(problem, n, len(new)):
        return _from_sums(whole, problem, Y, problem, new, 1.0)
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # a new factorisation tells what overflows
            joint = growing(whole)
            columns, q, corner, units, order = extension(joint, problem, whole.rows, new)
            border = joint.border(columns, q, corner, units)
    except NotPositiveDefiniteError:
        return solve_anew(problem, Y)
    if not unchanged:
        return _solution(problem, Y, white, border.learn(order))
    A = joint.inward(whole.joint_A)
    residual = _padded(white[n:], len(q)) - columns.T @ A - q @ whole.B
    A, B = border.solution(A, whole.B, residual)
    return _solution(problem, Y, white, border.learn(order), A if order is None else A[order], B)


def _from_sums(whole, problem, Y, owner, rows, sign):
    """The solution from sums over all rows, to which these ``rows`` of ``owner`` are added; or by a factorisation."""
    if not sums_pay(problem, len(problem.active)):
        return solve_anew(problem, Y)
    sums = vars(whole).get("sums")
    sums = None if sums is None else changed(sums, owner, rows, sign)
    if sums is None or not keep_digits(sums, problem.alpha):
        sums = sums_of(problem)
    elif sign < 0:
        sums = recentred(sums, problem)
    white = _whitened(problem, Y)
    found = solved(sums, problem, white) if keep_digits(sums, problem.alpha) else None
    if found is None:
        return solve_anew(problem, Y)
    A, B, weights = found
    fields = {"problem": problem, "rows": problem.active, "Y": white, "A": A, "B": B, "weights": weights, "sums": sums}
    return Solution.of(**fields, choice=f"sums over rows: {len(weights)} features for {len(white)} rows")


def extension(joint, problem, rows, new):
    """What the rows ``new`` add to the system of ``rows``: columns, rows of Q and corner, their units; the order after.

    The sites of all rows come before those of their basis functions; order is None where there are no others.
    """
    n, t, unit = len(rows), len(new), joint.unit
    K, own = problem.gram_of_new(rows, new)
    columns = problem.penalty.system(problem, rows, new, K, unit)
    corner = problem.penalty.system(problem, new, new, own, unit)
    q = _padded(problem.whitened_columns(new), len(corner))
    if joint.n == n:
        return columns, q, corner, None, None
    old, more = np.split(np.arange(joint.n + len(corner)), [joint.n])
    order = np.hstack([old.reshape(-1, n), more.reshape(-1, t)]).ravel()
    return columns, q, corner, np.repeat(joint.units[::n], t), order


def forget(whole, problem, Y, removed):
    """The solution with targets Y on all rows of ``problem``: those of ``whole`` without some.

    ``removed`` are positions among the rows of ``whole``.
    """
    n = len(whole.rows)
    t = len(removed)
    white = _whitened(problem, Y)
    kept = np.ones(n, bool)
    kept[removed] = False
    unchanged = np.array_equal(whole.Y[kept], white)
    moved = not np.array_equal(problem.origin, whole.problem.origin)  # to the mean confounds of the rows that are left
    if t == 0 and unchanged and not moved:
        return whole.changed(problem=problem, rows=problem.active)
    if problem.more_columns:
        problem.span(problem.active)  # complains where what is left does not determine them
    if not update_pays(problem, n - t, t):
        return _from_sums(whole, problem, Y, whole.problem, whole.rows[removed], -1.0)
    joint = growing(whole)
    try:
        removal = joint.removal(np.arange(joint.n).reshape(-1, n)[:, removed].ravel())  # all sites of these rows
    except SingularBlockError:  # lost in rounding: a new factorisation solves it, or tells why not
        return solve_anew(problem, Y)
    A, B = removal.solution(joint.inward(whole.joint_A), whole.B)
    joint = removal.forget()
    if moved:
        T = np.eye(len(B), dtype=B.dtype)
        T[0, -len(problem.origin) :] = whole.problem.origin - problem.origin
        joint.square.change_columns(T)
        B = solve(T, B)
    return _solution(problem, Y, white, joint, A, B) if unchanged else _solution(problem, Y, white, joint)


def growing(whole):
    """The P of a solution, or its J, in the holder that can be updated."""
    if whole.joint.grows:
        return whole.joint
    problem, rows, joint = whole.problem, whole.rows, whole.joint
    n, own = len(rows), whole.own_precision
    require_memory((joint.n, joint.n), problem.dtype, "P, the matrix of the fit, as it is updated,", 3)
    if own.through_features:
        own = joint = precision(problem, rows, features=False)
    units = problem.penalty.units(n, own) if problem.penalty.squares_kernel else None
    unit = 1.0 if units is None else float(units[0])
    M = problem.penalty.system(problem, rows, rows, problem.gram(rows, rows), unit)
    entry = float(norm(M[:n, len(M) - n :]) / unit) / n
    refines = not joint.definite or problem.dtype != np.float64 or entry * n > WELL_CONDITIONED * problem.alpha
    Q = _padded(problem.whitened_columns(rows), len(M))
    return Growing.of(joint.explicit(), own.Omega, M, Q, entry=entry, refines=refines, units=units)


def _solution(problem, Y, white, joint, A=None, B=None):
    """The solution by an updated P or J: with A and B, or from targets that are not what they were.

    Where it is not accurate enough, the one by a new factorisation.
    """
    n, targets = len(white), _padded(white, joint.n)
    P = joint if joint.n == n else joint.at_sites(slice(n))
    if A is None:
        A, B = joint.solve(targets, np.zeros((problem.Q.shape[1], white.shape[1]), white.dtype))
    if joint.refines:
        tolerance = _tolerance(problem, joint)
        A, B, left = _refined(problem, joint, A, B, targets, tolerance)
        accurate = left <= tolerance and joint.drift <= TOLERATED_DRIFT[problem.dtype.name] and P.error() <= tolerance
    else:  # every eighth update was tested
        shrinkage = joint.shrinkage()
        accurate = joint.drift * shrinkage <= 1e-10 and shrinkage <= 1e4
    if not accurate:
        return solve_anew(problem, Y)
    A = joint.outward(A)
    fields = {"problem": problem, "rows": problem.active, "Y": white, "A": A[:n], "joint_A": A, "B": B}
    return Solution.of(**fields, own_precision=P, joint=joint, choice=joint.choice)


def _refined(problem, joint, A, B, targets, tolerance):
    """A and B after a step of refinement, and what they leave of the targets, relative to those.

    A step can enlarge the residual, where a P of ill condition is wrong in directions that K enlarges: it is computed
    again there.
    """
    root = problem.root(problem.active)
    n, unit, least = len(root), joint.unit, np.finfo(A.dtype).tiny
    # Of targets far from zero, what their own spread is worth.
    spread = np.abs(problem.beyond_unpenalised(problem.active, targets[:n])[0] / root).max(initial=0.0)
    size = max(spread, 1e-6 * np.abs(targets[:n] / root).max(initial=0.0), least)

    def relative(r):  # a residual of basis functions counts by what it does to those of rows
        functions = unit * problem.alpha**0.5 * np.abs(r[n:]).max(initial=0.0)
        return float(max(np.abs(r[:n] / root).max(initial=0.0), functions) / size)

    r, head = joint.residual_of(A, B, targets)
    a, b = joint.solve(r, head)
    A, B = A + a, B + b
    left, probed = relative(r), joint.is_to_be_probed(tolerance > TOLERATED_ERROR)
    if left > tolerance or joint.square.ill:
        left = relative(joint.residual_of(A, B, targets)[0])
    if probed:
        joint.probe(A, B, targets)
    return A, B, left


def _tolerance(problem, joint):
    """max(1e-9, 10 eps cond(M)), the condition being taken as |S + alpha I| max(P_ii).

    |S| is that of the rows at the factorisation, or a bound by diag K where large rows have gone since.
    """
    n = len(problem.active)
    eps = np.finfo(problem.dtype).eps
    squared = problem.penalty.squares_kernel
    largest = min(float(joint.diagonal()[:n].max()), 1.0 / problem.alpha)
    norm = (joint.entry * n) ** (2 if squared else 1)
    if 10 * eps * (norm + problem.alpha) * largest > TOLERATED_ERROR:
        rows, root = np.arange(n), problem.root_w[problem.active]
        own = joint.system_entries(rows, rows + joint.n - n)
        if squared:  # the trace of K K', for which K_ij^2 <= K_ii K_jj
            own = np.abs(own) / joint.unit
            bound = float(own @ root) * float((own / root).sum())
        else:
            bound = float(np.abs(own - problem.alpha).sum())
        norm = min(norm, bound)
    return max(TOLERATED_ERROR, 10 * eps * max(1.0, (norm + problem.alpha) * largest))


def _whitened(problem, Y):
    return np.ascontiguousarray(problem.root(problem.active) * Y[problem.active])


def _padded(Y, n_sites):
    """Y of all sites: basis functions have zeros."""
    if len(Y) == n_sites:
        return Y
    padded = np.zeros((n_sites, Y.shape[1]), Y.dtype)
    padded[: len(Y)] = Y
    return padded
