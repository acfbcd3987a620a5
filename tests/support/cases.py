"""The table of cases that every holder, readout and splitter runs through."""

from dataclasses import dataclass, replace

import numpy as np
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    LeavePOut,
    PredefinedSplit,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)

from foldless import kernels
from foldless._engine.heldout.problem import Problem
from foldless._engine.precision.factored import Factored
from foldless._engine.precision.growing import Growing
from foldless._engine.precision.lowrank import LowRank
from foldless._engine.precision.spectral import Spectrum


def penalised(kernel, penalty, X, w=None):
    """A resolved kernel, or with penalty="coef" the features it gives these rows by their functions."""
    return kernel if penalty == "rkhs" else kernels.BasisFunctions(kernel).resolved(X, w)


@dataclass(frozen=True)
class Case:
    """One regularised least-squares problem."""

    kernel: str = "rbf"
    penalty: str = "rkhs"
    weights: str = "none"  # "none", "random", "zeros": random with two rows of weight 0
    q: int = 1  # 0: none, 1: an intercept, 3: an intercept and two confounds
    alpha: float = 0.1
    shape: tuple = (26, 4)
    dtype: str = "float64"

    def __str__(self):
        return "-".join(map(str, vars(self).values()))

    @property
    def X(self):
        rng = np.random.default_rng(7)
        X = rng.normal(size=self.shape)
        return ((X > 0) if self.kernel == "boolean" else X).astype(self.dtype)

    @property
    def codes(self):
        rng = np.random.default_rng(8)
        return rng.permutation(np.arange(self.shape[0]) % 3)

    @property
    def w(self):
        rng = np.random.default_rng(9)
        w = np.ones(self.shape[0]) if self.weights == "none" else rng.uniform(0.3, 3.0, self.shape[0])
        if self.weights == "zeros":
            w[[1, 11]] = 0.0
        return w

    @property
    def Q(self):
        rng = np.random.default_rng(10)
        n = self.shape[0]
        return np.column_stack([np.ones(n), rng.normal(size=(n, 2))])[:, : self.q]

    @property
    def Y(self):
        rng = np.random.default_rng(11)
        return rng.normal(size=(self.shape[0], 2)) + self.codes[:, None]

    @property
    def K(self):
        """The Gram matrix in double precision: with penalty="coef" of the kernel functions of all rows as features."""
        X = self.X.astype(float)
        K = kernels.resolve(self.kernel, X, gamma=0.2, eta=0.5).gram(X)
        if self.penalty == "rkhs":
            return K
        functions = K[:, np.flatnonzero(self.w)]
        return functions @ functions.T

    def problem(self):
        X = self.X
        kernel = kernels.resolve(self.kernel, X, gamma=0.2, eta=0.5)
        return Problem.of(
            penalised(kernel, self.penalty, X, self.w),
            X,
            alpha=self.alpha,
            Q=self.Q.astype(self.dtype),
            sample_weight=None if self.weights == "none" else self.w,
        )

    @property
    def oracle(self):
        """Keyword arguments for ``foldless.reference``."""
        return {"w": self.w, "Q": self.Q}


_base = Case()
CASES = [
    *[replace(_base, kernel=k) for k in ("rbf", "linear", "poly", "laplacian", "boolean", "cosine")],
    *[
        replace(_base, kernel=k, penalty=p, weights=w, q=q)
        for k in ("rbf", "linear")
        for p in ("rkhs", "coef")
        for w in ("none", "zeros")
        for q in (0, 1, 3)
    ],
    *[replace(_base, kernel="linear", shape=(18, 40), weights=w, q=q) for w in ("none", "random") for q in (0, 1)],
    *[replace(_base, alpha=a, kernel=k) for a in (1e-6, 1e3) for k in ("rbf", "linear")],
    *[replace(_base, dtype="float32", kernel=k, penalty=p) for k in ("rbf", "linear") for p in ("rkhs", "coef")],
]
CASES = list(dict.fromkeys(CASES))
NAMES = [str(case) for case in CASES]


def grown(S, Q, alpha):
    """P of some rows that has learnt the others and a stranger, and forgotten the stranger."""
    n = len(S)
    order, M = np.random.default_rng(6).permutation(n), S + alpha * np.eye(n, dtype=S.dtype)
    first, rest = order[: 2 * n // 3], order[2 * n // 3 :]
    start = Factored(S[np.ix_(first, first)], Q[first], alpha)
    M_first = np.ascontiguousarray(M[np.ix_(first, first)])
    P = Growing.of(start.explicit(), start.Omega, M_first, Q[first], entry=1.0, refines=True)
    P = P.border(S[first, :1] / 2, Q[:1], M[:1, :1]).learn()
    to_rest = np.vstack([M[np.ix_(first, rest)], S[:1, rest] / 2])
    P = P.border(to_rest, Q[rest], M[np.ix_(rest, rest)]).learn()
    P = P.removal(np.array([len(first)])).forget()
    return P.now(P.slots[np.argsort(order)])


def holders(S, Q, alpha):
    """The same P in every holder that can take a Gram matrix; LowRank from a factor of S."""
    s, V = np.linalg.eigh(S)
    Phi = V * np.sqrt(np.maximum(s, 0.0))
    factored = Factored(S.copy(), Q, alpha)
    return {
        "factored": factored,
        "spectral": Spectrum(S.copy(), Q).with_alpha(alpha),
        "low rank": LowRank(Phi, Q, alpha),
        "low rank, alpha moved": LowRank(Phi, Q, alpha * 7).with_alpha(alpha),
        "explicit": Factored(S.copy(), Q, alpha).explicit(),
        "growing": grown(S, Q, alpha),
    }


HOLDERS = ["factored", "spectral", "low rank", "low rank, alpha moved", "explicit", "growing"]


def splitters(n, codes):
    """Every splitter of scikit-learn with a point of its own, by name, with groups for those that need them."""
    return {
        "KFold": KFold(4, shuffle=True, random_state=0),
        "StratifiedKFold": StratifiedKFold(4),
        "GroupKFold": GroupKFold(3),
        "LeaveOneOut": LeaveOneOut(),
        "LeaveOneGroupOut": LeaveOneGroupOut(),
        "LeavePOut(2)": LeavePOut(2),
        "RepeatedStratifiedKFold": RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0),
        "ShuffleSplit with a gap": ShuffleSplit(4, train_size=0.5, test_size=0.2, random_state=0),
        "TimeSeriesSplit": TimeSeriesSplit(3),
        "PredefinedSplit": PredefinedSplit(np.where(np.arange(n) % 5 < 4, np.arange(n) % 5, -1)),
    }


SPLITTERS = list(splitters(30, None))


def odd_splits(n):
    """Splits no splitter makes: overlapping tests, tests inside the training part, tiny parts, unordered rows."""
    rng = np.random.default_rng(5)
    order = rng.permutation(n)
    return [
        (order[: n // 2], order[n // 2 :]),
        (order[: n // 2], order[n // 3 :]),  # some test rows were trained on
        (order[5:], order[:5]),
        (order[5:], order[:3]),  # two rows belong to neither
        (order[:6], order[6:]),  # the training part is the small side
        (np.arange(n), np.arange(n)),  # everything is trained on and tested
    ]
