"""Plain refits in extended precision: what every number of the library is compared with.

Nothing here comes from the library. A model is fitted by Gaussian elimination on its equations, a held-out fit is a fit
on the training rows and an evaluation at the test rows, and a kernel is evaluated entry by entry.
"""

from dataclasses import dataclass

import numpy as np

EXTENDED = np.finfo(np.longdouble).eps < 1e-18
LD = np.longdouble if EXTENDED else np.float64
BASE = {np.dtype(np.float64): 1e-8, np.dtype(np.float32): 1e-3}  # what rounding may cost in the best of conditions
LIMIT = {np.dtype(np.float64): 1e-2, np.dtype(np.float32): 5e-2}  # beyond this nothing is judged
SEEN = []  # whether the refits of the present program could be judged
OFFSET = 64  # units in the last place of the largest target


def solve(A, B):
    """The solution of A X = B by elimination with row pivoting."""
    n = len(A)
    T = np.concatenate([A, B], axis=1).astype(LD)
    for k in range(n):
        pivot = k + int(np.abs(T[k:, k]).argmax())
        if pivot != k:
            T[[k, pivot]] = T[[pivot, k]]
        if T[k, k] == 0:
            raise ZeroDivisionError("singular equations")
        T[k + 1 :, k:] -= (T[k + 1 :, k] / T[k, k])[:, None] * T[k, k:]
    X = T[:, n:].copy()
    for k in range(n - 1, -1, -1):
        X[k] = (X[k] - T[k, k + 1 : n] @ X[k + 1 :]) / T[k, k]
    return X


def kernel_matrix(kernel, X, Z):
    """Gram matrix of {"kernel": name, parameters ...} between the rows of X and Z."""
    X, Z = np.asarray(X, LD), np.asarray(Z, LD)
    name = kernel["kernel"]
    gamma = np.asarray(kernel.get("gamma", 1.0), LD)
    if name == "linear":
        return X @ Z.T
    if name == "poly":
        return ((X * gamma) @ Z.T + LD(kernel["coef0"])) ** int(kernel["degree"])
    if name == "boolean":
        return (1 + LD(kernel["eta"])) ** (X @ Z.T)
    if name == "cosine":
        lengths = [np.sqrt((A * A).sum(1)) for A in (X, Z)]
        lengths = [np.where(length > 0, length, 1) for length in lengths]
        return (X / lengths[0][:, None]) @ (Z / lengths[1][:, None]).T
    difference = X[:, None, :] - Z[None, :, :]
    if name == "rbf":
        return np.exp(-(gamma * difference * difference).sum(2))
    if name == "laplacian":
        return np.exp(-(gamma * np.abs(difference)).sum(2))
    raise ValueError(name)


def kernel_rounding(kernel, X, centred=True):
    """How far an error of one unit in X is magnified by the exponent of the kernel.

    The library centres dense rows; sparse rows, and those of scikit-learn's kernels, are taken as they are.
    """
    X = np.asarray(X, float)
    gamma = np.asarray(kernel.get("gamma", 1.0), float)
    spread = X - X.mean(0) if centred else X
    if kernel["kernel"] == "rbf":
        return 1.0 + float((gamma * spread * spread).sum(1).max())
    if kernel["kernel"] == "laplacian":
        return 1.0 + float((gamma * np.abs(spread)).sum(1).max())
    return 1.0


@dataclass
class Fits:
    """Values with the error that rounding may explain, and a smaller one for signs and orders."""

    values: np.ndarray
    tolerance: np.ndarray
    fine: np.ndarray

    def column(self, k):
        """One output."""
        return Fits(self.values[:, k], self.tolerance[:, k], self.fine[:, k])


@dataclass
class Problem:
    """Rows, targets and penalties of a regularised least-squares model; rows of the test part are among the rows."""

    K: np.ndarray  # all rows against all rows
    Y: np.ndarray  # (n, m)
    w: np.ndarray
    alpha: float
    intercept: bool = True
    penalty: str = "rkhs"
    C: np.ndarray | None = None
    dtype: type = np.float64
    rounding: float = 1.0
    functions: np.ndarray | None = None  # rows whose functions penalty="coef" takes; None: all of positive weight
    calls: int = 1  # that made the model, a fit and updates: each rounds the targets anew

    def Q(self, rows):
        """Columns without penalty."""
        ones = np.ones((len(rows), int(self.intercept)), LD)
        return ones if self.C is None else np.hstack([ones, np.asarray(self.C[rows], LD)])


class Refit:
    """The model fitted on ``train`` alone, row numbers of a problem; repeated numbers are repeated rows."""

    def __init__(self, problem, train):
        p = self.problem = problem
        train = np.asarray(train)
        self.train = train[np.asarray(p.w, float)[train] > 0]
        self.functions = self.train
        if p.penalty == "coef":
            self.functions = np.flatnonzero(np.asarray(p.w, float) > 0) if p.functions is None else p.functions
        root = np.sqrt(np.asarray(p.w, LD)[self.train])[:, None]
        Q = root * p.Q(self.train)
        Y = np.asarray(p.Y, LD)[self.train]
        self.middle = (root * root * Y).sum(0) / (root * root).sum() if p.intercept else np.zeros(Y.shape[1], LD)
        Y = root * (Y - self.middle)
        K = p.K[np.ix_(self.train, self.functions)]
        n, q, m = len(self.train), Q.shape[1], Y.shape[1]
        if p.penalty == "rkhs":
            M = root * K * root.T + LD(p.alpha) * np.eye(n, dtype=LD)
            system = np.block([[M, Q], [Q.T, np.zeros((q, q), LD)]])
            solution = solve(system, np.vstack([Y, np.zeros((q, m), LD)]))
            self.beta, self.residuals = root * solution[:n], LD(p.alpha) * root * solution[:n]  # w (y - f)
        else:
            scale = 1 / np.sqrt(LD(p.alpha))
            k = len(self.functions)
            D = root * K * scale
            system = np.block(
                [
                    [np.eye(n, dtype=LD), D, Q],
                    [D.T, -np.eye(k, dtype=LD), np.zeros((k, q), LD)],
                    [Q.T, np.zeros((q, k + q), LD)],
                ]
            )
            solution = solve(system, np.vstack([Y, np.zeros((k + q, m), LD)]))
            self.beta, self.residuals = scale * solution[n : n + k], root * solution[:n]
        self.B = solution[len(solution) - q :]
        self._condition(root, K)

    def _condition(self, root, K):
        """Condition of the penalised matrix, whitened by the weights, and the tolerance it allows."""
        p = self.problem
        white = np.asarray(root * K if p.penalty == "coef" else root * K * root.T, float)
        with np.errstate(all="ignore"):
            if p.penalty == "coef":
                s = np.linalg.svd(white, compute_uv=False) ** 2
                low = s[-1] if len(s) == len(white) and len(self.functions) >= len(white) else 0.0
                high = s[0]
            else:
                s = np.linalg.eigvalsh(white)
                low, high = max(s[0], 0.0), s[-1]
        self.cond = float((high + p.alpha) / (low + p.alpha))
        if p.C is not None:
            Q = np.asarray(root * p.Q(self.train), float)
            s = np.linalg.svd(Q / np.maximum(np.sqrt((Q * Q).sum(0)), 1e-300), compute_uv=False)
            self.cond *= float(s[0] / max(s[-1], 1e-300)) if len(s) else 1.0
        dtype = np.dtype(p.dtype)
        self.relative = max(BASE[dtype], 1e3 * np.finfo(dtype).eps * p.rounding * self.cond)
        self.judged = bool(self.relative <= LIMIT[dtype])
        if (
            np.finfo(dtype).eps * p.rounding * high > low
        ):  # rounding may take all but alpha from the smallest eigenvalue
            self.relative = max(self.relative, 1e3 * np.finfo(dtype).eps * p.rounding * float(high / p.alpha))
        SEEN.append(self.judged)

    def reach(self, rows):
        """How much the fit at each row can magnify errors of the targets: the sum of its weights, at least 1."""
        p = self.problem
        n, q = len(self.train), self.B.shape[0]
        w = np.asarray(p.w, float)[self.train]
        K = np.asarray(p.K, float)
        inner = K[np.ix_(self.train, self.functions)]
        outer = K[np.ix_(rows, self.functions)]
        S = inner if p.penalty == "rkhs" else inner @ inner.T
        s = outer if p.penalty == "rkhs" else outer @ inner.T
        Q, q_new = np.asarray(p.Q(self.train), float), np.asarray(p.Q(rows), float)
        root = np.sqrt(w)[:, None]
        M = root * S * root.T + p.alpha * np.eye(n)
        system = np.block([[M, root * Q], [(root * Q).T, np.zeros((q, q))]])
        try:
            weights = np.linalg.solve(system, np.hstack([s * root.T, q_new]).T)[:n].T * root.T
        except np.linalg.LinAlgError:
            return np.full(len(rows), np.inf)
        return np.maximum(1.0, np.abs(weights).sum(1))

    def at(self, rows, more=1.0):
        """Fits at rows of the problem; ``more`` magnifies the tolerance."""
        p = self.problem
        rows = np.asarray(rows)
        Q = p.Q(rows)
        k = p.K[np.ix_(rows, self.functions)]
        values = k @ self.beta + Q @ self.B + self.middle
        Y = np.asarray(p.Y, LD)
        eps = np.finfo(p.dtype).eps
        size = np.abs(Y - self.middle).max(0)
        largest = np.abs(Y).max(0)
        reach = self.reach(rows)[:, None] * more
        relative = self.relative if self.judged else np.inf
        tolerance = relative * reach * np.maximum(size, np.abs(values - self.middle))
        tolerance = tolerance + (OFFSET * p.calls * eps * largest if p.intercept else 0.0)
        fine = tolerance
        if not p.intercept and p.C is None:
            size_of_beta = np.abs(self.beta)
            if p.penalty == "coef":  # beta = K'r / alpha may cancel: labels of both kinds at equal functions
                inner = np.abs(p.K[np.ix_(self.train, self.functions)])
                size_of_beta = inner.T @ np.abs(self.residuals) / LD(p.alpha)
            local = np.abs(k) @ size_of_beta
            lost = 1e3 * np.finfo(p.dtype).tiny * np.abs(self.beta).sum(0)  # kernel values that underflow
            fine = np.minimum(tolerance, relative * reach * local + lost)
        return Fits(values, np.asarray(tolerance, float), np.asarray(fine, LD))


def stack(parts):
    """Fits of several parts one after the other."""
    return Fits(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("values", "tolerance", "fine")))


def minimum_norm(K, Y, train, test, alpha):
    """Fits at ``test`` of the least [b; z] with [1, M] [b; z] = Y on ``train``, M = K + alpha I, and their conditions.

    All solutions are z = M^-1 Y - b M^-1 1; b^2 + |z|^2 is least at b = t'u / (1 + t't), u = M^-1 Y, t = M^-1 1. Errors
    of the equations move the solution along [1; -t], by the more the longer it is; a row sees that by its share in it.
    """
    train = np.asarray(train)
    n = len(train)
    M = K[np.ix_(train, train)] + LD(alpha) * np.eye(n, dtype=LD)
    solution = solve(M, np.hstack([np.asarray(Y, LD)[train], np.ones((n, 1), LD)]))
    u, t = solution[:, :-1], solution[:, -1:]
    b = (t * u).sum(0) / (1 + (t * t).sum())
    z, k = u - t * b, K[np.ix_(test, train)]
    s = np.linalg.svd(np.asarray(M, float), compute_uv=False)
    cond = float(s[0] / s[-1]) if s[-1] > 0 else np.inf
    share = np.abs(1 - k @ t) / np.sqrt(1 + (t * t).sum())
    length = np.sqrt((b * b + (z * z).sum(0)).max())
    return b + k @ z, cond * np.maximum(1.0, np.asarray(share * length, float))
