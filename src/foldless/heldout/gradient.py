"""Gradients in reverse: from the derivative by held-out residuals, through P, to alpha and the kernel.

A held-out residual is E_te = P_te,te^-1 A_te with A = P Y (and, of a score, the part that confounds explain by
themselves, which depends on no hyper-parameter), and P is a block of the inverse of a matrix Z that holds the
hyper-parameters plainly, so dP = -P dZ P. For a loss L with g = dL/dE and z_te = P_te,te^-1 g_te, collected over all
held-out sets,

    dL/dZ = P V P - 1/2 (u A' + A u'),     u = P z,     V = 1/2 sum_te (z_te E_te' + E_te z_te')

(summed over targets). For leave-one-out V is diagonal. A few sets te need no n x n product: with L_te = P_,te z_te and
R_te = P_,te E_te, which are n x m,

    P V P = 1/2 sum_te (L_te R_te' + R_te L_te')

What Z is depends on the penalty, and so does the way on to K and alpha (``heldout.penalty``). Weights whiten. Each
kernel then turns dL/dK into derivatives by its own parameters (``pullback``).

All derivatives together cost, beyond the factor, its inverse, the blocks of the sets (n^2 t for sets of t rows) and one
product of size n^2 d, whatever their number; for leave-one-out, or more sets than rows, also an explicit P and one
product of size n^3. Of r explicit features that approximate a kernel dL/dPhi takes the place of dL/dK: n r^2 in all.
The forward formulas (Bo, Wang & Jiao 2006, eq. 3.7-3.11; in 3.11 the outer factors C and C' are missing) take several
products of size n^3 for each parameter. Exact for any list of held-out sets, overlapping ones included.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from sklearn.utils import gen_batches

from foldless.heldout.batch import stacked
from foldless.heldout.moments import takes_nearly_all
from foldless.heldout.part import Part
from foldless.heldout.solution import Solution
from foldless.linalg import add_outer_, product, solve
from foldless.linalg.memory import require_memory

COLUMNS = 256  # columns that P is applied to at a time
ARRAYS = 5  # n x n: K, its factor, P, and two products


def residuals(model, folds):
    """Held-out residuals in the units of the targets, (N, m): one row for each row left out.

    ``folds`` is a list of positions in ``model.rows``, each left out together, or None: every row alone.
    """
    if folds is None:
        return model.loo().residuals[:, 0]
    return stacked(model, folds, lambda batch: batch.residuals, partial(_fold_residuals, model))


def _fold_residuals(model, te, part=None):
    """Residuals of one set, by its part or by a solution of its own where nearly nothing of a target is left."""
    rows = model.rows[te]
    if takes_nearly_all(model, te):
        return model.Y[te] / model.root[te] - model.solve_without(te).fits(rows)
    part = part or Part(model, te)
    E = part.E[: len(te)] / model.root[te]
    return E + model.problem.Q[rows] @ part.confound_fit.D if model.problem.n_confounds else E


def value_and_gradient(problem, rows, Y, folds, loss):
    """A loss of held-out residuals and its derivatives by alpha and by the parameters of the kernel.

    ``rows`` are row numbers in ascending order, all of positive weight, Y (n, m) their targets, ``folds`` as in
    :func:`residuals`; ``loss`` is a function of the residuals (N, m) that returns (value, derivatives (N, m)). Returns
    the value, and the gradient as a dict {"alpha": float, parameter of the kernel: float or array}.
    """
    tuned = bool(problem.kernel.differentiable)
    if not tuned and problem.penalty.sites_per_row == 1:
        held = _held_out(Solution(problem, rows, Y), folds)
        value, slopes = loss(held.residuals)
        return value, {"alpha": held.by_alpha(slopes)}
    problem = problem.replace(shift=None) if tuned else problem  # pullback takes K as the kernel gives it
    if problem.kernel.approximates and problem.n_features(len(rows)) is not None:
        return _through_features(problem, rows, Y, folds, loss)
    functions = problem.basis_rows(rows)  # these rows, unless basis functions of other rows stay
    n = len(functions)
    require_memory((n, n), problem.dtype, "the derivatives by the kernel", ARRAYS * problem.penalty.sites_per_row**2)
    K = problem.gram(functions, functions)
    P = problem.precision(rows, K if len(functions) == len(rows) else None)
    held = _held_out(Solution(problem, rows, Y, P), folds)
    value, slopes = loss(held.residuals)
    places = np.searchsorted(functions, rows)
    dK, dalpha = problem.penalty.gradient(held.adjoint(slopes), problem, rows, K, places)
    by_kernel = problem.kernel.pullback(dK, problem.data(functions), K) if tuned else {}
    return value, {"alpha": dalpha, **by_kernel}


def _through_features(problem, rows, Y, folds, loss):
    """The same with dL/dPhi = 2 W^1/2 dL/dZ W^1/2 Phi in the place of dL/dK: nothing n x n is formed."""
    held = _held_out(Solution(problem, rows, Y), folds)
    value, slopes = loss(held.residuals)
    root, Phi = problem.root(rows), held.solution.precision.Phi  # whitened
    by_kernel = problem.kernel.pullback_features(root * held.doubled(slopes, Phi), problem.data(rows), Phi / root)
    return value, {"alpha": held.by_alpha(slopes), **by_kernel}


def _held_out(solution, folds):
    return EachRow(solution) if folds is None else Folds(solution, folds)


@dataclass(frozen=True)
class Adjoint:
    """dL/dZ = PV P + (L R' + R L') / 2, block by block; PV and P are None where L and R hold all of it."""

    L: np.ndarray
    R: np.ndarray
    PV: np.ndarray | None = None
    P: np.ndarray | None = None

    def block(self, rows=slice(None), columns=slice(None)):
        left, right = np.hstack([self.L[columns], self.R[columns]]), np.hstack([self.R[rows], self.L[rows]])
        if self.PV is None or self.P is None:
            return product(left, right.T / 2).T
        return add_outer_(product(self.PV[columns], self.P[:, rows]).T, left, right, 0.5)  # dL/dZ is symmetric

    def trace(self, rows=slice(None)):
        own = np.vdot(self.L[rows], self.R[rows])
        return own if self.PV is None or self.P is None else own + np.vdot(self.PV[rows], self.P[rows])


class EachRow:
    """Every row left out alone: residuals (n, m) in the units of the targets, and the way back from slopes by them.

    ``by_alpha`` is dL/dalpha = tr(V P^2) - u' A alone: nothing n x n is formed where the holder of P forms nothing.
    ``doubled`` is 2 dL/dZ Phi for the features Phi of a holder that goes through them, and ``adjoint`` is dL/dZ.
    """

    def __init__(self, solution):
        self.solution = solution
        self.loo = solution.loo()
        self.residuals = self.loo.residuals[:, 0]

    def _z(self, slopes):
        """z of every row at its sites, (n, s, m)."""
        g = np.zeros_like(self.loo.E)
        g[:, 0] = slopes / self.solution.root
        return g / self.loo.D if g.shape[1] == 1 else solve(self.loo.D, g)

    def by_alpha(self, slopes):
        P, z = self.solution.precision, self._z(slopes)[:, 0]
        return np.vdot((z * self.loo.E[:, 0]).sum(1), P.squared_diagonal()) - np.vdot(P.apply(z), self.solution.A)

    def doubled(self, slopes, Phi):
        P = self.solution.precision
        A = self.solution.A
        z = self._z(slopes)[:, 0]
        V, u = (z * self.loo.E[:, 0]).sum(1)[:, None], P.apply(z)
        return 2 * P.apply(V * P.feature_weights(slice(None)).T) - u @ (A.T @ Phi) - A @ (u.T @ Phi)

    def adjoint(self, slopes):
        P = self.solution.precision.explicit().P
        A = self.solution.site_A
        n = len(self.solution.rows)
        each = self._z(slopes)
        z = np.zeros_like(A)
        z[self.solution.own_sites(np.arange(n)[:, None])] = each
        V = each @ self.loo.E.transpose(0, 2, 1)
        V = (V + V.transpose(0, 2, 1)) / 2
        if V.shape[1] == 1:
            PV = P * V[:, 0, 0]
        else:
            PV = np.hstack([P[:, :n] * V[:, 0, k] + P[:, n:] * V[:, 1, k] for k in (0, 1)])
        return Adjoint(-product(P, z), A, PV, P)


class Folds:
    """The same for sets of rows left out together, each factorised once; residuals are stacked, (N, m)."""

    def __init__(self, solution, folds):
        self.solution = solution
        self.parts = [Part(solution, te) for te in folds]
        self.residuals = np.concatenate([_fold_residuals(solution, part.removed, part) for part in self.parts])

    def _z(self, slopes):
        """Each set as a part, with z at its sites."""
        stops = np.cumsum([len(part.removed) for part in self.parts])[:-1]
        for part, slope in zip(self.parts, np.split(slopes, stops), strict=True):
            g = np.zeros_like(part.E)
            g[: len(slope)] = slope / self.solution.root[part.removed]
            yield part, part.block.solve(g)

    def _spread(self, slopes):
        """P_,te z_te and P_,te E_te of some sets at a time, (n, sets, m) each."""
        A = self.solution.site_A
        sets = list(self._z(slopes))
        for batch in gen_batches(len(sets), max(1, COLUMNS // A.shape[1])):
            both = np.zeros((2, len(A), len(sets[batch]), A.shape[1]), A.dtype)
            for number, (part, z) in enumerate(sets[batch]):
                both[0, part.sites, number] = z
                both[1, part.sites, number] = part.E
            yield [self.solution.precision.apply(each.reshape(len(A), -1)).reshape(each.shape) for each in both]

    def by_alpha(self, slopes):
        return sum(np.vdot(L, R) - np.vdot(L.sum(1), self.solution.A) for L, R in self._spread(slopes))

    def doubled(self, slopes, Phi):
        A = self.solution.A
        total = np.zeros_like(self.solution.A)
        D = np.zeros_like(Phi)
        for L, R in self._spread(slopes):
            total += L.sum(1)
            L, R = (each.reshape(len(A), -1) for each in (L, R))
            D += L @ (R.T @ Phi) + R @ (L.T @ Phi)
        return D - total @ (A.T @ Phi) - A @ (total.T @ Phi)

    def adjoint(self, slopes):
        """By n x m products of each set, or by P V P where sets and targets are more than rows."""
        A = self.solution.site_A
        n, m = A.shape
        if len(self.parts) * m <= n // 2:
            L, R = (np.concatenate(each, 1) for each in zip(*self._spread(slopes), strict=True))
            return Adjoint(np.hstack([L.reshape(n, -1), -L.sum(1)]), np.hstack([R.reshape(n, -1), A]))
        P = self.solution.precision.explicit().P
        z, V = np.zeros_like(A), np.zeros_like(P)
        for part, each in self._z(slopes):
            z[part.sites] += each
            V[np.ix_(part.sites, part.sites)] += (each @ part.E.T + part.E @ each.T) / 2
        return Adjoint(-product(P, z), A, product(P, V), P)
