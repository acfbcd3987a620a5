"""The cost model: how many flops each way to the same numbers takes.

n rows, t of them left out, k of them kept, r explicit features (None: P is held without). A Cholesky factor takes
k^3/3, its inverse as much again, P as an array once more, an eigendecomposition about 10 k^3 at the speed of a matrix
product. ``sites`` is 2 where a row that is left out takes its basis function along, else 1. Where S is K K'
(``squared``), that product takes 2 k^3 more.

All ways are exact: the model only decides which one is taken.
"""

import numpy as np

EIGENDECOMPOSITION = 10.0  # n^3 flops at the speed of a matrix product
SMALL_STEPS = 5e6  # flops in the time of the small steps of one split


def solve(k, r, *, squared, nested):
    """Flops of a fit on k rows, and of its leave-one-out where ``nested``."""
    if r is not None:
        return 6.0 * k * r**2
    return k**3 / 3 * (2 if nested else 1) + (2.0 * k**3 if squared else 0.0)


def leave_out(n, t, r, *, sites, nested):
    """Flops of leaving t of n rows out of the P of all, and of leave-one-out inside the rest where ``nested``."""
    t = sites * t
    if r is None:
        return n * t**2 + t**3 / 3 + (2.0 * n * t**2 if nested else 0.0)
    inside = 2.0 * n * t**2 + 2.0 * n * t * r if nested else 0.0
    return t * min(t, r) * r + min(t, r) ** 3 / 3 + inside


def explicit_start(solve_all, *, nested):
    """Flops before the first row is left out: the factor, its inverse, and P itself where ``nested``."""
    return solve_all * (3 if nested else 2)


def one_p_pays(n, sizes, n_alphas, *, sites, inner_folds):
    """Whether one P for each alpha, and every training part from it, beats a decomposition of every training part.

    ``sizes`` are those of the parts; ``inner_folds`` says that more than leave-one-out is asked inside them.
    """
    left = sites * (n - sizes)
    split = 2 * sites * n * left**2 + (2 * sizes**2 * left if inner_folds else 0.0) + SMALL_STEPS
    shared = EIGENDECOMPOSITION * n**3 + n_alphas * ((sites * n) ** 3 + np.sum(split))
    return shared < EIGENDECOMPOSITION * np.sum(sizes**3)


def update_pays(n, t, r, *, small_alpha):
    """Whether an update by t rows is to be preferred to a new factorisation, n being the rows that stay.

    Few explicit features are solved anew in less time, and at a ``small_alpha()`` with more digits than an explicit P.
    """
    few_features = r is not None and (6 * r * r <= n or small_alpha())
    return 0 < 2 * t <= n and not few_features
