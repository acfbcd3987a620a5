"""Naive refits in plain NumPy: the oracle of the tests, the documentation and the benchmarks.

Nothing here is clever and nothing here imports the rest of the package. A model is fitted by solving

    [ S + alpha W^-1   Q ] [ A ]   [ Y ]
    [ Q'               0 ] [ B ] = [ 0 ]

with ``numpy.linalg.solve``; a held-out prediction is a fit on the training rows and an evaluation at the test rows.
Kernel Fisher discriminants are refitted as the generalised eigenproblem S_b w = lambda (S_w + alpha I) w in an
explicit feature space, which shares no step with the optimal-scoring shortcut; with confounds, of features from which
these were regressed.
"""

from typing import Literal, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray
Penalty: TypeAlias = Literal["rkhs", "coef"]


def fit(
    K: Array, Y: Array, alpha: float, *, w: Array | None = None, Q: Array | None = None, penalty: Penalty = "rkhs"
) -> tuple[Array, Array]:
    """Expansion coefficients beta (n, m) and offsets B (q, m) of one fit: f(x) = k(x)' beta + q(x)' B."""
    n = len(K)
    system = _bordered(K if penalty == "rkhs" else K @ K.T, alpha, w, Q)
    solution = np.linalg.solve(system, np.vstack([Y, np.zeros((len(system) - n, Y.shape[1]))]))
    A, B = solution[:n], solution[n:]
    return (A if penalty == "rkhs" else K.T @ A), B


def _bordered(S, alpha, w, Q):
    w = np.ones(len(S)) if w is None else w
    Q = np.ones((len(S), 1)) if Q is None else Q
    return np.block([[S + alpha * np.diag(1.0 / w), Q], [Q.T, np.zeros((Q.shape[1], Q.shape[1]))]])


def precision(S: Array, alpha: float, *, w: Array | None = None, Q: Array | None = None) -> tuple[Array, Array]:
    """P and G as blocks of the inverse of the bordered system."""
    n = len(S)
    inverse = np.linalg.inv(_bordered(S, alpha, w, Q))
    return inverse[:n, :n], inverse[n:, :n]


def heldout_fits(
    K: Array,
    Y: Array,
    train: Array,
    test: Array,
    alpha: float,
    *,
    w: Array | None = None,
    Q: Array | None = None,
    penalty: Penalty = "rkhs",
    n_confounds: int = 0,
) -> Array:
    """Fits at ``test`` of the model fitted on ``train``: delete, refit, evaluate.

    With penalty="coef" the kernel functions of all rows of positive weight are features, which stay.

    The last ``n_confounds`` columns of Q are confounds: what they explain by themselves of ``train``, about their mean
    there, is left out of the fits.
    """
    n = len(K)
    w = np.ones(n) if w is None else w
    Q = np.ones((n, 1)) if Q is None else Q
    train = np.asarray(train)[w[train] > 0]
    others, C = np.split(Q, [Q.shape[1] - n_confounds], axis=1)
    part = _regressed(others, C, Y, train, test, w)
    if penalty == "coef":
        functions = np.flatnonzero(w > 0)
        design = K[np.ix_(train, functions)]
        A, B = fit(design @ design.T, Y[train], alpha, w=w[train], Q=Q[train])
        return K[np.ix_(test, functions)] @ (design.T @ A) + Q[test] @ B - part
    beta, B = fit(K[np.ix_(train, train)], Y[train], alpha, w=w[train], Q=Q[train])
    return K[np.ix_(test, train)] @ beta + Q[test] @ B - part


def _regressed(others, C, Y, train, test, w):
    """What C explains of Y at ``test`` beyond the other columns, by weighted least squares on ``train``."""
    root = np.sqrt(w[train])[:, None]
    mean = others @ np.linalg.lstsq(root * others[train], root * C[train], rcond=None)[0]
    both = np.hstack([others, C - mean])
    B = np.linalg.lstsq(root * both[train], root * Y[train], rcond=None)[0][others.shape[1] :]
    return (C - mean)[test] @ B


def discriminant(
    K: Array,
    codes: Array,
    train: Array,
    test: Array,
    alpha: float,
    *,
    w: Array | None = None,
    priors: Array | None = None,
    centred: bool = True,
    Q_c: Array | None = None,
) -> tuple[Array, Array, Array]:
    """Kernel Fisher discriminant of ``train`` at ``test``: scores z, centroids, decisions (n_test, c).

    The generalised eigenproblem of between- and within-class scatter in an explicit feature space of K. Confounds Q_c
    (n, k) are regressed out of the features first, with the coefficients of ``train``.
    """
    n = len(K)
    w = np.ones(n) if w is None else w
    s, V = np.linalg.eigh(K)
    X = V * np.sqrt(np.maximum(s, 0.0))
    if Q_c is not None:
        X = X - _regressed(np.ones((n, int(centred))), Q_c, X, train, np.arange(n), w)
    c = codes.max() + 1
    Xt, yt, wt = X[train], codes[train], w[train]
    nu = wt.sum()
    mean = wt @ Xt / nu if centred else np.zeros(X.shape[1])
    centroids = np.array([wt[yt == k] @ Xt[yt == k] / wt[yt == k].sum() for k in range(c)])
    Sw, Sb = np.zeros((n, n)), np.zeros((n, n))
    for k in range(c):
        mine = yt == k
        D = Xt[mine] - centroids[k]
        Sw += (D * wt[mine, None]).T @ D
        Sb += wt[mine].sum() * np.outer(centroids[k] - mean, centroids[k] - mean)
    # whiten by (S_w + alpha I)^-1/2, then an ordinary eigenproblem
    e, U = np.linalg.eigh(Sw + alpha * np.eye(n))
    root = U / np.sqrt(e) @ U.T
    _, vectors = np.linalg.eigh(root @ Sb @ root)
    axes = root @ vectors[:, ::-1][:, : c - 1 if centred else c]
    z, centres = (X[test] - mean) @ axes, (centroids - mean) @ axes
    decision = -0.5 * nu * np.square(z[:, None, :] - centres).sum(-1)
    return z, centres, decision + (0.0 if priors is None else np.log(priors))


def minimum_norm_fits(K: Array, Y: Array, train: Array, test: Array, alpha: float) -> Array:
    """Fits at ``test`` of the least [b; z] with [1, K + alpha I] [b; z] = Y on ``train``, by singular values."""
    G = np.column_stack([np.ones(len(train)), K[np.ix_(train, train)] + alpha * np.eye(len(train))])
    solution = np.linalg.lstsq(G, Y[train], rcond=None)[0]
    return solution[0] + K[np.ix_(test, train)] @ solution[1:]
