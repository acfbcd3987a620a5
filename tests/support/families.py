"""Data of the permutation tests of searches, families and patterns, and the loops they are compared with."""

import numpy as np
from sklearn import model_selection as skl

from foldless import KernelFisherDiscriminant

KFDA = KernelFisherDiscriminant
N, D = 36, 4
RNG = np.random.default_rng(4)
FOUR = RNG.permutation(np.arange(N) % 4)
X = RNG.normal(size=(N, D)) + 0.6 * FOUR[:, None] * [1, 0, -1, 0]
THREE = np.array(["ant", "bee", "cat"])[np.minimum(FOUR, 2)]  # cats are half of all
BINARY = np.array(["no", "yes"])[(FOUR > 1).astype(int)]
VALUES = X[:, 0] ** 2 + X[:, 1] + RNG.normal(size=N)
OUTPUTS = np.column_stack([VALUES, X[:, 2] + RNG.normal(size=N)])
GROUPS = np.arange(N) % 6
WEIGHT = RNG.uniform(0.3, 3.0, N)
ZEROS = WEIGHT * (np.arange(N) % 14 != 4)  # rows 4, 18 and 32 neither train nor choose
CONFOUNDS = np.column_stack([X[:, 0] + RNG.normal(size=N), FOUR % 2 - 0.5])


def named(given):
    return given if isinstance(given, str) else getattr(given, "__name__", type(given).__name__)


ALPHAS = [0.05, 1.0, 20.0]
GRID = {"alpha": [0.1, 5.0], "gamma": [0.03, 0.3]}

OUTER = list(skl.KFold(3, shuffle=True, random_state=1).split(X))


TIMES = np.stack([X, 0.5 * X + RNG.normal(size=X.shape), RNG.normal(size=X.shape)], 2)  # (samples, features, times)
MEMBERS = [np.ascontiguousarray(TIMES[:, :, time]) for time in range(3)]

CV = skl.KFold(3, shuffle=True, random_state=0)


def random_labels(rng, n=30, shape=(3,)):
    """Features and labels that have nothing to do with each other."""
    return rng.normal(size=(n, *shape)), rng.permutation(np.arange(n) % 2)
