"""Which holder of P is taken, and why: ``choice`` of the holder says it in words.

``HOLDERS`` are asked in order (``Precision.suits``); one that finds M without a Cholesky factor leaves it to the next.
Explicit features where they are fewer than a third of the rows (or than rows, at a tiny alpha; of basis functions, at a
tiny alpha, however many), otherwise one Cholesky factor. Where rounding leaves M without
one (tiny alpha, duplicated rows), the eigendecomposition, which sets the eigenvalues that rounding made negative to
zero. For all alphas at once features or the eigendecomposition, which takes as long as about eight factors and their
inverses: few alphas take a factor each. So do very uneven weights, since eigenvectors are as accurate in the lightest
row as in the heaviest.
"""

from contextlib import suppress

from foldless._engine.linalg import NotPositiveDefiniteError
from foldless._engine.precision import cost
from foldless._engine.precision.base import Path, Precision
from foldless._engine.precision.factored import Factored
from foldless._engine.precision.lowrank import LowRank
from foldless._engine.precision.spectral import Spectrum

HOLDERS: list[type[Precision]] = [LowRank, Factored, Spectrum]
KEPT = 2000  # rows whose kernel matrix is kept for the next alpha


def holder(problem, n):
    """The first holder that suits n rows."""
    return next(kind for kind in HOLDERS if kind.suits(problem, n))


def precision(problem, rows, K=None, *, features=True) -> Precision:
    """P of ``rows`` for one alpha; K = gram(rows, rows) where known. Without ``features`` it comes from S itself."""
    suited = [kind for kind in HOLDERS if (features or not kind.through_features) and kind.suits(problem, len(rows))]
    for kind in suited[:-1]:
        with suppress(NotPositiveDefiniteError):
            return kind.from_problem(problem, rows, K)
    return suited[-1].from_problem(problem, rows, K)


def path(problem, rows, n_alphas=None, *, explicit=False) -> Path:
    """What gives P of any alpha, of ``n_alphas`` (None: very many); ``explicit``: as arrays."""
    n, kind = len(rows), holder(problem, len(rows))
    if kind is Factored and n_alphas is not None and cost.factors_pay(n, n_alphas, explicit=explicit):
        return EachAlpha(problem, rows)
    return kind.path(problem, rows) or EachAlpha(problem, rows)


class EachAlpha(Path):
    """P of every alpha by a factor of its own."""

    def __init__(self, problem, rows):
        self.problem, self.rows = problem, rows
        self._K = problem.gram(rows, rows) if len(rows) <= KEPT else None

    def with_alpha(self, alpha):
        return precision(self.problem.replace(alpha=alpha), self.rows, self._K, features=False)
