"""Which holder of P is taken, and why: ``choice`` of the holder says it in words.

Explicit features where they are fewer than a third of the rows (or than rows, at a tiny alpha), otherwise one Cholesky
factor. Where rounding leaves M without one (tiny alpha, duplicated rows), the eigendecomposition, which sets the
eigenvalues that rounding made negative to zero. For all alphas at once features or the eigendecomposition; eigenvectors
are as accurate in the lightest row as in the heaviest, so that very uneven weights take a factor for every alpha.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from foldless.linalg.numpy import NotPositiveDefiniteError, eigenvalues
from foldless.precision.base import Precision
from foldless.precision.factored import Factored
from foldless.precision.lowrank import LowRank
from foldless.precision.spectral import IndefiniteError, Spectrum

UNEVEN = 2.0**10  # ratio of roots of weights from which eigenvectors would lose the light rows
GRADED = 4.0  # the same for features, whose decomposition then takes care of the light rows
TINY = {8: 1e-8, 4: 1e-3}  # alpha by the mean diagonal of K below which features are more accurate, by bytes


def takes_features(n, r, alpha, mean_diagonal, itemsize):
    """Whether P of n rows is held through r features; ``mean_diagonal()`` is that of K."""
    sooner = 3 * r <= n  # about 6 n r^2 flops against 2/3 n^3
    return r < n and (sooner or alpha < TINY[itemsize] * mean_diagonal())


@dataclass(frozen=True)
class Ingredients:
    """What P is made of, whitened: ``gram()`` gives a new S, ``features()`` Phi with S = Phi Phi' (or is None)."""

    gram: Callable
    kernel_matrix: Callable  # K without weights
    Q: np.ndarray
    alpha: float
    root: np.ndarray  # square roots of the weights, as a column
    features: Callable | None = None
    feature_kind: str = "features"  # what they are called in ``choice``

    def precision(self) -> Precision:
        """P of one alpha."""
        if self.features is None:
            return self.dense()
        Phi = self.features()
        P = LowRank(Phi, self.Q, self.alpha, graded=bool(self.root.max() > GRADED * self.root.min()))
        P.choice = f"low rank: {Phi.shape[1]} {self.feature_kind} for {len(Phi)} rows"
        return P

    def dense(self) -> Precision:
        """P of one alpha from S itself."""
        n = len(self.Q)
        P: Precision
        try:
            P = Factored(self.gram(), self.Q, self.alpha)
            P.choice = f"factored: one alpha, one Cholesky factor of {n} rows"
        except NotPositiveDefiniteError:
            P = self.spectrum().with_alpha(self.alpha)
            P.choice = (
                f"spectral: S + alpha I of {n} rows has no Cholesky factor at alpha={self.alpha:g};"
                " eigenvalues lost in rounding are set to zero"
            )
        return P

    def spectrum(self):
        """The eigendecomposition that serves every alpha."""
        try:
            return Spectrum(self.gram(), self.Q)
        except IndefiniteError:
            lowest, *_, largest = eigenvalues(self.kernel_matrix())
            needed = -lowest * np.square(self.root).max()
            raise ValueError(
                f"the kernel matrix is indefinite: its eigenvalues reach from {lowest:.3g} to {largest:.3g}. A kernel"
                " must be positive semi-definite; clip its negative eigenvalues (numpy.linalg.eigh), add their size to"
                f" the diagonal, or use alpha > {needed:.3g}."
            ) from None

    def path(self):
        """What gives P of any alpha by ``with_alpha``."""
        if self.features is not None:
            return self.precision()
        return EachAlpha(self) if self.root.max() > UNEVEN * self.root.min() else self.spectrum()


class EachAlpha:
    """P of every alpha by a Cholesky factor of its own, whose rows are as accurate as they are large."""

    serves_every_alpha = False

    def __init__(self, ingredients):
        self._ingredients = ingredients

    def with_alpha(self, alpha):
        """P for this alpha."""
        return replace(self._ingredients, alpha=alpha).dense()
