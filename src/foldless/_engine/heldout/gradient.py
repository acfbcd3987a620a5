"""Gradients in reverse: from the derivative by held-out residuals, through P, to alpha and the kernel.

A held-out residual is E_te = P_te,te^-1 A_te with A = P Y (and, of a score, what confounds explain by
themselves, which depends on no hyper-parameter), and P is a block of the inverse of a matrix Z that holds the
hyper-parameters plainly, so dP = -P dZ P. For a loss L with g = dL/dE and z_te = P_te,te^-1 g_te, collected over all
held-out sets,

    dL/dZ = P V P - 1/2 (u A' + A u'),     u = P z,     V = 1/2 sum_te (z_te E_te' + E_te z_te')

(summed over targets). For leave-one-out V is diagonal. A few sets te need no n x n product: with L_te = P_,te z_te and
R_te = P_,te E_te, which are n x m,

    P V P = 1/2 sum_te (L_te R_te' + R_te L_te')

Here Z is W^1/2 K W^1/2 + alpha I, so that dL/dK is W^1/2 dL/dZ W^1/2 and dL/dalpha the trace of dL/dZ. Each kernel then
turns dL/dK into derivatives by its own parameters (``pullback``).

All derivatives together cost, beyond the factor, its inverse, the blocks of the sets (n^2 t for sets of t rows) and one
product of size n^2 d, whatever their number; for leave-one-out, or more sets than rows, also an explicit P and one
product of size n^3. Of r explicit features that approximate a kernel dL/dPhi takes the place of dL/dK: n r^2 in all.
The forward formulas (Bo, Wang & Jiao 2006, eq. 3.7-3.11; in 3.11 the outer factors C and C' are missing) take several
products of size n^3 for each parameter. Exact for any list of held-out sets, overlapping ones included.
"""

import numpy as np

from foldless._engine.heldout.part import TrainingPart
from foldless._engine.heldout.solution import Solution
from foldless._engine.linalg import add_outer_, product, put, scale_, take_block
from foldless._engine.linalg.batches import gen_batches
from foldless._engine.precision import cost

COLUMNS = 256  # columns that P is applied to at a time


def value_and_gradient(problem, rows, Y, folds, loss):
    """A loss of held-out residuals and its derivatives by alpha and by the parameters of the kernel.

    ``rows`` are row numbers in ascending order, all of positive weight, Y (n, m) their targets, ``folds`` a list
    of positions among them that are left out together, or None: every row alone. ``loss`` is a function of the
    residuals (N, m), set by set, that returns (value, derivatives (N, m)). Returns the value, and the gradient as a
    dict {"alpha": float, parameter of the kernel: float or array}.
    """
    tuned = bool(problem.kernel.differentiable)
    if not tuned:
        held_out = _held_out(Solution.fit(problem, rows, Y), folds)
        value, slopes = loss(held_out.residuals)
        return value, {"alpha": held_out.by_alpha(slopes)}
    problem = problem.replace(shift=None)  # pullback takes K as the kernel gives it
    if problem.kernel.approximates and problem.through_features(len(rows)):
        return _through_features(problem, rows, Y, folds, loss)
    cost.require_gradient(len(rows), problem.dtype)
    K = problem.gram(rows, rows)
    held_out = _held_out(Solution.fit(problem, rows, Y, problem.precision(rows, K)), folds)
    value, slopes = loss(held_out.residuals)
    dK, root = held_out.adjoint(slopes), problem.root(rows)
    by_alpha = dK.trace()
    if not (root == 1).all():
        dK = scale_(dK, root[:, 0], root[:, 0])
    return value, {"alpha": by_alpha, **problem.kernel.pullback(dK, problem.data(rows), K)}


def _through_features(problem, rows, Y, folds, loss):
    """The same with dL/dPhi = 2 W^1/2 dL/dZ W^1/2 Phi in the place of dL/dK: nothing n x n is formed."""
    held_out = _held_out(Solution.fit(problem, rows, Y), folds)
    value, slopes = loss(held_out.residuals)
    root, Phi = problem.root(rows), held_out.solution.precision.Phi  # whitened
    by_kernel = problem.kernel.pullback_features(root * held_out.doubled(slopes, Phi), problem.data(rows), Phi / root)
    return value, {"alpha": held_out.by_alpha(slopes), **by_kernel}


def _held_out(solution, folds):
    return SingleRows(solution) if folds is None else RowSets(solution, folds)


def _symmetric(L, R, PV=None, P=None):
    """P V P + (L R' + R L') / 2, (n, n); without P the latter alone."""
    left, right = np.hstack([L, R]), np.hstack([R, L])
    if P is None:
        return product(left, right.T / 2).T
    return add_outer_(product(PV, P).T, left, right, 0.5)


class SingleRows:
    """Every row left out alone: residuals (n, m) in the units of the targets, and the way back from slopes by them.

    ``by_alpha`` is dL/dalpha = tr(V P^2) - u' A alone: nothing n x n is formed where the holder of P forms nothing.
    ``doubled`` is 2 dL/dZ Phi for the features Phi of a holder that goes through them, and ``adjoint`` is dL/dZ.
    """

    def __init__(self, solution):
        self.solution = solution
        self.loo = solution.loo()
        self.residuals = self.loo.residuals[:, 0]

    def _z(self, slopes):
        """z of every row, (n, m)."""
        return slopes / self.solution.root / self.loo.D[:, :, 0]

    def _V(self, z):
        """The diagonal of V, (n,)."""
        return (z * self.loo.E[:, 0]).sum(1)

    def by_alpha(self, slopes):
        P, z = self.solution.precision, self._z(slopes)
        return np.vdot(self._V(z), P.squared_diagonal()) - np.vdot(P.apply(z), self.solution.A)

    def doubled(self, slopes, Phi):
        P = self.solution.precision
        A = self.solution.A
        z = self._z(slopes)
        V, u = self._V(z)[:, None], P.apply(z)
        return 2 * P.apply(V * P.feature_weights(slice(None)).T) - u @ (A.T @ Phi) - A @ (u.T @ Phi)

    def adjoint(self, slopes):
        P, z = self.solution.precision.explicit().P, self._z(slopes)
        return _symmetric(-product(P, z), self.solution.A, P * self._V(z), P)


class RowSets:
    """The same for sets of rows left out together, each factorised once; residuals are stacked, (N, m)."""

    def __init__(self, solution, folds):
        self.solution = solution
        self.parts = []
        residuals = []
        for te in folds:
            model = solution.without(te)
            residuals.append(model.held_out_residuals(solution.rows[te], solution.targets(te)))
            # A model that was solved by itself has no block of P, which the derivatives are taken through.
            self.parts.append(model if isinstance(model, TrainingPart) else TrainingPart.of(solution, te))
        self.residuals = np.concatenate(residuals)

    def _z(self, slopes):
        """The training part without each set, with z of the rows of the set."""
        stops = np.cumsum([len(part.removed) for part in self.parts])[:-1]
        for part, slope in zip(self.parts, np.split(slopes, stops), strict=True):
            yield part, part.block.solve(slope / self.solution.root[part.removed])

    def _spread(self, slopes):
        """P_,te z_te and P_,te E_te of some sets at a time, (n, sets, m) each."""
        A = self.solution.A
        sets = list(self._z(slopes))
        for batch in gen_batches(len(sets), max(1, COLUMNS // A.shape[1])):
            shape = len(A), len(sets[batch]), A.shape[1]
            Z, E = np.zeros(shape, A.dtype), np.zeros(shape, A.dtype)
            for number, (part, z) in enumerate(sets[batch]):
                Z = put(Z, (part.removed, number), z)
                E = put(E, (part.removed, number), part.E)
            apply = self.solution.precision.apply
            yield [apply(columns.reshape(len(A), -1)).reshape(shape) for columns in (Z, E)]

    def by_alpha(self, slopes):
        return sum(np.vdot(L, R) - np.vdot(L.sum(1), self.solution.A) for L, R in self._spread(slopes))

    def doubled(self, slopes, Phi):
        A = self.solution.A
        total = np.zeros_like(self.solution.A)
        D = np.zeros_like(Phi)
        for L, R in self._spread(slopes):
            total += L.sum(1)
            L, R = L.reshape(len(A), -1), R.reshape(len(A), -1)
            D += L @ (R.T @ Phi) + R @ (L.T @ Phi)
        return D - total @ (A.T @ Phi) - A @ (total.T @ Phi)

    def adjoint(self, slopes):
        """By n x m products of each set, or by P V P where sets and targets are more than rows."""
        A = self.solution.A
        n, m = A.shape
        if cost.columns_of_sets_pay(n, m, len(self.parts)):
            L, R = (np.concatenate(batches, 1) for batches in zip(*self._spread(slopes), strict=True))
            return _symmetric(np.hstack([L.reshape(n, -1), -L.sum(1)]), np.hstack([R.reshape(n, -1), A]))
        P = self.solution.precision.explicit().P
        z, V = np.zeros_like(A), np.zeros_like(P)
        for part, z_te in self._z(slopes):
            te = part.removed
            z = put(z, te, z[te] + z_te)
            V = put(V, (te[:, None], te), take_block(V, te, te) + (z_te @ part.E.T + part.E @ z_te.T) / 2)
        return _symmetric(-product(P, z), A, product(P, V), P)
