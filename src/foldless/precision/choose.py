"""Which holder of P is taken, and why: ``choice`` of the holder says it in words; and when P of all rows pays.

``HOLDERS`` are asked in order (``Precision.suits``); one that finds M without a Cholesky factor leaves it to the next.
Explicit features where they are fewer than a third of the rows (or than rows, at a tiny alpha), the singular values of
the basis functions where S is K K' and alpha is tiny, otherwise one Cholesky factor. Where rounding leaves M without
one (tiny alpha, duplicated rows), the eigendecomposition, which sets the eigenvalues that rounding made negative to
zero. For all alphas at once features or the eigendecomposition, which takes as long as about eight factors and their
inverses: few alphas take a factor each. So do very uneven weights, since eigenvectors are as accurate in the lightest
row as in the heaviest.
"""

from contextlib import suppress

import numpy as np

from foldless.linalg import NotPositiveDefiniteError
from foldless.precision.base import Path, Precision
from foldless.precision.factored import Factored
from foldless.precision.lowrank import LowRank, OfFunctions
from foldless.precision.spectral import Spectrum

HOLDERS: list[type[Precision]] = [LowRank, OfFunctions, Factored, Spectrum]
EIGENDECOMPOSITION = 10.0  # n^3 flops at the speed of a matrix product
FACTOR, EXPLICIT = 1.3, (0.5, 1.1)  # the same of a factor and its inverse; of P as an array from these, and from U
SMALL_STEPS_OF_FACTOR = 2e7  # flops in the time that Python takes for one
KEPT = 2000  # rows whose kernel matrix is kept for the next alpha
SMALL_STEPS = 5e6  # flops in the time of the small steps of one split
MOST_EXPLICIT = 4000  # rows whose P is written out for updates, where explicit features would do


def holder(problem, n):
    """The first holder that suits n rows."""
    return next(each for each in HOLDERS if each.suits(problem, n))


def precision(problem, rows, K=None, *, features=True) -> Precision:
    """P of ``rows`` for one alpha; K = gram(rows, rows) where known. Without ``features`` it comes from S itself."""
    suited = [each for each in HOLDERS if (features or not each.through_features) and each.suits(problem, len(rows))]
    for each in suited[:-1]:
        with suppress(NotPositiveDefiniteError):
            return each.from_problem(problem, rows, K)
    return suited[-1].from_problem(problem, rows, K)


def path(problem, rows, n_alphas=None, *, explicit=False) -> Path:
    """What gives P of any alpha, of ``n_alphas`` (None: very many); ``explicit``: as arrays."""
    own, n = holder(problem, len(rows)), len(rows)
    may = n_alphas is not None and own is Factored and not problem.penalty.squares_kernel
    few = may and _factors_cost(n, n_alphas, explicit) < _spectrum_cost(n, n_alphas, explicit)
    found = None if few else own.path(problem, rows)
    return EachAlpha(problem, rows) if found is None else found


def _factors_cost(n, n_alphas, explicit):
    return n_alphas * ((FACTOR + explicit * EXPLICIT[0]) * n**3 + SMALL_STEPS_OF_FACTOR)


def _spectrum_cost(n, n_alphas, explicit):
    return (EIGENDECOMPOSITION + explicit * n_alphas * EXPLICIT[1]) * n**3


class EachAlpha(Path):
    """P of every alpha by a factor of its own."""

    def __init__(self, problem, rows):
        self.problem, self.rows = problem, rows
        self._K = problem.gram(rows, rows) if len(rows) <= KEPT and not problem.penalty.squares_kernel else None

    def with_alpha(self, alpha):
        return precision(self.problem.replace(alpha=alpha), self.rows, self._K, features=False)


def one_p_pays(n, sizes, n_alphas, *, sites, inner_folds):
    """Whether one P for each alpha, and every training part from it, beats a path of every training part.

    ``sizes`` are those of the parts; ``inner_folds`` says that more than leave-one-out is asked inside them.
    """

    def path_cost(n, explicit):
        by_spectrum = _spectrum_cost(n, n_alphas, explicit)
        return by_spectrum if sites > 1 else np.minimum(_factors_cost(n, n_alphas, explicit), by_spectrum)

    left = sites * (n - sizes)
    split = 2 * sites * n * left**2 + (2 * sizes**2 * left if inner_folds else 0.0) + SMALL_STEPS
    arrays = n_alphas * (sites * n) ** 3 if sites > 1 else 0.0
    shared = path_cost(n, sites == 1) + arrays + n_alphas * np.sum(split)
    return shared < np.sum(path_cost(sizes, False))


def update_pays(problem, n, t):
    """Whether an update by t rows is to be preferred to a new factorisation, n being the rows that stay.

    Few explicit features are solved anew in less time, and at a small alpha with more digits than an explicit P. Those
    of many rows have a way of their own (:func:`sums_pay`).
    """
    if not 0 < 2 * t <= n:
        return False
    r = problem.n_features(n + t)
    return r is None or not (6 * r * r <= n or n > MOST_EXPLICIT or problem.alpha < 1e-4 * problem.mean_diagonal)


def sums_pay(problem, n):
    """Whether n rows are so many that sums of explicit features over them are updated in the place of P."""
    return n > MOST_EXPLICIT and problem.n_features(n) is not None
