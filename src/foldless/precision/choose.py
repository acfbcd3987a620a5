"""Which holder of P is taken, and why: ``choice`` of the holder says it in words; and what each way costs.

Explicit features where they are fewer than a third of the rows (or than rows, at a tiny alpha), otherwise one Cholesky
factor. Where rounding leaves M without one (tiny alpha, duplicated rows), the eigendecomposition, which sets the
eigenvalues that rounding made negative to zero. For all alphas at once features or the eigendecomposition; eigenvectors
are as accurate in the lightest row as in the heaviest, so that very uneven weights take a factor for every alpha.

A ``problem`` (``heldout.problem``) brings what P of some rows is made of, whitened: Gram matrix, features, columns.

**Cost.** n rows, t of them left out, k of them kept. A Cholesky factor takes k^3/3 flops, its inverse as much again, P
as an array once more, an eigendecomposition about 10 k^3 at the speed of a matrix product. ``nested`` says that
leave-one-out inside the training part is asked for as well. All ways are exact: flops only decide which one is taken.
"""

import numpy as np

from foldless.linalg.numpy import NotPositiveDefiniteError, eigenvalues
from foldless.precision.base import Precision
from foldless.precision.factored import Factored
from foldless.precision.lowrank import LowRank
from foldless.precision.spectral import IndefiniteError, Spectrum

UNEVEN = 2.0**10  # ratio of roots of weights from which eigenvectors would lose the light rows
GRADED = 4.0  # the same for features, whose decomposition then takes care of the light rows
EIGENDECOMPOSITION = 10.0  # n^3 flops at the speed of a matrix product
SMALL_STEPS = 5e6  # flops in the time of the small steps of one split


def precision(problem, rows, K=None) -> Precision:
    """P of ``rows`` for one alpha; K = gram(rows, rows) where known."""
    if problem.n_features(len(rows)) is None:
        return dense(problem, rows, K)
    Phi, root = problem.whitened_features(rows), problem.root(rows)
    graded = bool(root.max() > GRADED * root.min())
    P = LowRank(Phi, problem.whitened_columns(rows), problem.alpha, graded=graded)
    kind = "linear features" if problem.kernel.is_linear else "features"
    P.choice = f"low rank: {Phi.shape[1]} {kind} for {len(Phi)} rows"
    return P


def dense(problem, rows, K=None) -> Precision:
    """P of ``rows`` for one alpha from S itself."""
    P: Precision
    try:
        P = Factored(problem.whitened_gram(rows, K), problem.whitened_columns(rows), problem.alpha)
        P.choice = f"factored: one alpha, one Cholesky factor of {len(rows)} rows"
    except NotPositiveDefiniteError:
        P = _spectrum(problem, rows, K).with_alpha(problem.alpha)
        P.choice = (
            f"spectral: S + alpha I of {len(rows)} rows has no Cholesky factor at alpha={problem.alpha:g};"
            " eigenvalues lost in rounding are set to zero"
        )
    return P


def _spectrum(problem, rows, K=None):
    try:
        return Spectrum(problem.whitened_gram(rows, K), problem.whitened_columns(rows))
    except IndefiniteError:
        lowest, *_, largest = eigenvalues(problem.gram(rows, rows))
        needed = -lowest * np.square(problem.root(rows)).max()
        raise ValueError(
            f"the kernel matrix is indefinite: its eigenvalues reach from {lowest:.3g} to {largest:.3g}. A kernel"
            " must be positive semi-definite; clip its negative eigenvalues (numpy.linalg.eigh), add their size to"
            f" the diagonal, or use alpha > {needed:.3g}."
        ) from None


def path(problem, rows):
    """What gives P of any alpha by ``with_alpha``."""
    if problem.n_features(len(rows)) is not None:
        return problem.precision(rows)
    root = problem.root(rows)
    return EachAlpha(problem, rows) if root.max() > UNEVEN * root.min() else _spectrum(problem, rows)


class EachAlpha:
    """P of every alpha by a Cholesky factor of its own, whose rows are as accurate as they are large."""

    serves_every_alpha = False

    def __init__(self, problem, rows):
        self.problem = problem
        self.rows = rows

    def with_alpha(self, alpha):
        return dense(self.problem.replace(alpha=alpha), self.rows)


def solve_cost(problem, k, *, nested):
    """Flops of a fit on k rows; where S is K K', that product takes 2 k^3 more."""
    r = problem.n_features(k)
    if r is not None:
        return 6.0 * k * r**2
    return k**3 / 3 * (2 if nested else 1) + (2.0 * k**3 if problem.penalty.squares_kernel else 0.0)


def leave_out_cost(problem, n, t, *, nested):
    """Flops of leaving t of n rows out of the P of all, all their sites."""
    r, t = problem.n_features(n), problem.penalty.sites_per_row * t
    if r is None:
        return n * t**2 + t**3 / 3 + (2.0 * n * t**2 if nested else 0.0)
    inside = 2.0 * n * t**2 + 2.0 * n * t * r if nested else 0.0
    return t * min(t, r) * r + min(t, r) ** 3 / 3 + inside


def one_p_pays(n, sizes, n_alphas, *, sites, inner_folds):
    """Whether one P for each alpha, and every training part from it, beats a decomposition of every training part.

    ``sizes`` are those of the parts; ``inner_folds`` says that more than leave-one-out is asked inside them.
    """
    left = sites * (n - sizes)
    split = 2 * sites * n * left**2 + (2 * sizes**2 * left if inner_folds else 0.0) + SMALL_STEPS
    shared = EIGENDECOMPOSITION * n**3 + n_alphas * ((sites * n) ** 3 + np.sum(split))
    return shared < EIGENDECOMPOSITION * np.sum(sizes**3)


def update_pays(problem, n, t):
    """Whether an update by t rows is to be preferred to a new factorisation, n being the rows that stay.

    Few explicit features are solved anew in less time, and at a small alpha with more digits than an explicit P.
    """
    if not 0 < 2 * t <= n:
        return False
    r = problem.n_features(n + t)
    return r is None or not (6 * r * r <= n or problem.alpha < 1e-4 * problem.mean_diagonal)
