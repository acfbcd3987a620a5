"""Gradients in reverse: from the derivative by held-out residuals, through P, to alpha and the kernel.

A held-out residual is E_te = P_te,te^-1 A_te with A = P Y, and P is a block of the inverse of a matrix Z that holds the
hyper-parameters plainly, so dP = -P dZ P. For a loss L with g = dL/dE and z_te = P_te,te^-1 g_te, collected over all
held-out sets,

    dL/dZ = P V P - 1/2 (u A' + A u'),     u = P z,     V = 1/2 sum_te (z_te E_te' + E_te z_te')

(summed over targets; V is diagonal for leave-one-out, block-diagonal for disjoint sets). What Z is depends on the
penalty, and so does the way on to K and alpha:

    rkhs                Z = K + alpha I             dL/dK = dL/dZ
    coef, basis all     Z = K K' + alpha I          dL/dK = 2 dL/dZ K
    coef, basis train   Z = [alpha I, K; K', -I]    dL/dK = 2 (dL/dZ)_12        the matrix whose inverse holds J

in each case dL/dalpha is the trace over the rows. Weights whiten: K stands for W^1/2 K W^1/2 or W^1/2 K. Each kernel
then turns dL/dK into derivatives by its own parameters (``pullback``).

All derivatives together cost one explicit P (n^3 beyond the factor), one product of size n^3 and one of size n^2 d,
whatever their number; the forward formulas (Bo, Wang & Jiao 2006, eq. 3.7-3.11; in 3.11 the outer factors C and C' are
missing) take several products of size n^3 for each parameter. Exact for any list of held-out sets, overlapping ones
included.
"""

import numpy as np

from foldless.heldout.solution import Part, Solution
from foldless.linalg.numpy import add_outer_, product, solve


def residuals(solution, folds):
    """Held-out residuals in the units of the targets, (N, m): one row for each row left out.

    ``folds`` is a list of positions in ``solution.rows``, each left out together, or None: every row alone.
    """
    if folds is None:
        return solution.loo().residuals[:, 0]
    return np.concatenate([_residual(solution, te) for te in folds])


def _residual(solution, te):
    part = solution.without(te)
    if isinstance(part, Part):
        return part.E[: len(te)] / solution.root[te]
    return solution.Y[te] / solution.root[te] - part.fits(solution.rows[te])  # solved by itself


def value_and_gradient(problem, rows, Y, folds, loss):
    """A loss of held-out residuals and its derivatives by alpha and by the parameters of the kernel.

    Parameters
    ----------
    problem : Problem
    rows : row numbers of the data in ascending order, all of positive weight
    Y : targets of these rows, (n, m)
    folds : as in :func:`residuals`
    loss : function of the residuals (N, m) that returns (value, derivatives (N, m))

    Returns
    -------
    value : float
    gradient : dict {"alpha": float, parameter of the kernel: float or array}
    """
    if not problem.kernel.differentiable and not problem.drops_basis:
        solution = Solution(problem, rows, Y)
        value, slopes = loss(residuals(solution, folds))
        return value, {"alpha": _by_alpha(solution, folds, slopes)}
    functions = problem.basis_rows(rows)  # these rows, unless basis functions of other rows stay
    K = problem.gram(functions, functions)
    places = np.searchsorted(functions, rows)
    solution = Solution(problem, rows, Y, problem.precision(rows, K if len(functions) == len(rows) else None))
    value, slopes = loss(residuals(solution, folds))
    dK, dalpha = _backward(solution, K, places, folds, slopes)
    by_kernel = problem.kernel.pullback(dK, problem._take(functions), K) if problem.kernel.differentiable else {}
    return value, {"alpha": dalpha, **by_kernel}


def _by_alpha(solution, folds, slopes):
    """dL/dalpha = tr(V P^2) - u' A alone: nothing n x n is formed where the holder of P forms nothing."""
    P, A = solution.precision, solution.A
    if folds is None:
        each = slopes / solution.root / P.diagonal()[:, None]
        E = P.loo_residual(A, solution.Y)
        return np.vdot((each * E).sum(1), P.squared_diagonal()) - np.vdot(P.apply(each), A)
    z, trace, start = np.zeros_like(A), 0.0, 0
    for te in folds:
        columns, g = P.columns(te), slopes[start : start + len(te)] / solution.root[te]
        start += len(te)
        each, E = solve(columns[te], g), Part(solution, te).E
        z[te] += each
        trace += np.vdot(columns @ each, columns @ E)
    return trace - np.vdot(P.apply(z), A)


def _backward(solution, K, places, folds, slopes):
    """dL/dK, symmetric, and dL/dalpha; the rows of the model are at ``places`` of K."""
    problem, root, n = solution.problem, solution.root, len(solution.rows)
    P, A = solution.precision.explicit().P, solution.site_A
    z, PV = _adjoint(solution, P, folds, slopes)
    u = product(P, z)
    if problem.drops_basis:
        dK = root * (2 * product(PV[:n], P[:, n:]) - u[:n] @ A[n:].T - A[:n] @ u[n:].T)
        dalpha = np.vdot(PV[:n], P[:n]) - np.vdot(u[:n], A[:n])
        return (dK + dK.T) / 2, dalpha
    D = add_outer_(product(PV, P).T, np.hstack([u, A]), np.hstack([A, u]), -0.5)
    dalpha = D.trace()
    if problem.penalty == "coef":
        dK = np.zeros_like(K)
        dK[places] = 2 * root * product(D, root * K[places])
        return (dK + dK.T) / 2, dalpha
    if not (root == 1).all():
        D *= root
        D *= root.T
    return D, dalpha


def _adjoint(solution, P, folds, slopes):
    """z at every site, and P V."""
    n, m = solution.Y.shape
    z = np.zeros((len(P), m), P.dtype)
    if folds is None:
        loo = solution.loo()
        sites = solution.sites(np.arange(n)[:, None])  # (n, 1 or 2)
        g = np.zeros_like(loo.E)
        g[:, 0] = slopes / solution.root
        each = g / loo.D if sites.shape[1] == 1 else solve(loo.D, g)
        z[sites] = each
        V = each @ loo.E.transpose(0, 2, 1)
        V = (V + V.transpose(0, 2, 1)) / 2
        if sites.shape[1] == 1:
            return z, P * V[:, 0, 0]
        blocks = [P[:, :n], P[:, n:]]
        return z, np.hstack([blocks[0] * V[:, 0, k] + blocks[1] * V[:, 1, k] for k in (0, 1)])
    PV, start = np.zeros_like(P), 0
    for te in folds:
        sites, t = solution.sites(te), len(te)
        g = np.zeros((len(sites), m), P.dtype)
        g[:t] = slopes[start : start + t] / solution.root[te]
        start += t
        block = P[np.ix_(sites, sites)]
        each, E = solve(block, g), Part(solution, te).E
        z[sites] += each
        V = (each @ E.T + E @ each.T) / 2
        PV[:, sites] += product(P[:, sites], V)
    return z, PV
