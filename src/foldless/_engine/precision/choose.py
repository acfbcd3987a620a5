"""Which holder of P is taken, and why: ``choice`` of the holder says it in words.

``HOLDERS`` is a list in order of preference (``Precision.suits``). A problem keeps the choice for each number of rows
(``Problem.holder``). A holder that finds M without a Cholesky factor leaves it to the next one that suits.

Explicit features where they are fewer than a third of the rows (or than rows, at a tiny alpha; of basis functions, at a
tiny alpha, however many), otherwise one Cholesky factor. Where rounding leaves M without
one (tiny alpha, duplicated rows), the eigendecomposition, which sets the eigenvalues that rounding made negative to
zero. For all alphas at once features or the eigendecomposition, which takes as long as about eight factors and their
inverses: few alphas take a factor each. So do very uneven weights, since eigenvectors are as accurate in the lightest
row as in the heaviest.
"""

from foldless._engine.linalg import NotPositiveDefiniteError
from foldless._engine.precision.base import Path, Precision
from foldless._engine.precision.factored import Factored
from foldless._engine.precision.lowrank import LowRank
from foldless._engine.precision.spectral import Spectrum

HOLDERS: list[type[Precision]] = [LowRank, Factored, Spectrum]
KEPT = 2000  # rows whose kernel matrix is kept for the next alpha


def holder(problem, n, *, after=None, features=True):
    """The first holder that suits n rows, of those after one that failed; None where there is no other.

    Without ``features`` P comes from S itself.
    """
    kinds = HOLDERS if after is None else HOLDERS[HOLDERS.index(after) + 1 :]
    for kind in kinds:
        if (features or not kind.through_features) and kind.suits(problem, n):
            return kind
    return None


def precision(problem, rows, K=None, *, features=True) -> Precision:
    """P of ``rows`` for one alpha; K = gram(rows, rows) where known. Without ``features`` it comes from S itself."""
    n = len(rows)
    kind = problem.holder(n) if features else holder(problem, n, features=False)
    while True:
        try:
            return kind.from_problem(problem, rows, K)
        except NotPositiveDefiniteError:
            kind = holder(problem, n, after=kind, features=features)
            if kind is None:
                raise


def path(problem, rows, n_alphas=None, *, explicit=False) -> Path:
    """What gives P of any alpha, of ``n_alphas`` (None: very many); ``explicit``: as arrays."""
    kind = problem.holder(len(rows))
    return kind.path(problem, rows, n_alphas, explicit=explicit) or EachAlpha(problem, rows)


class EachAlpha(Path):
    """P of every alpha by a factor of its own."""

    def __init__(self, problem, rows):
        self.problem, self.rows = problem, rows
        self._K = problem.gram(rows, rows) if len(rows) <= KEPT else None

    def with_alpha(self, alpha):
        return precision(self.problem.replace(alpha=alpha), self.rows, self._K, features=False)
