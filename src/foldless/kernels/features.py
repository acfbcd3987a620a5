"""Kernels that are given by explicit features: k(x, z) = phi(x).phi(z).

Models of fewer features than rows are held through them: their memory and time grow with the number of features.
"""

from typing import Any

import numpy as np
from sklearn.utils.extmath import row_norms

from foldless.kernels.base import Kernel, dot
from foldless.linalg.types import Matrix


class FeatureMap(Kernel):
    """Base of the kernels that are given by their features: a subclass writes ``features``."""

    def features(self, X: Matrix) -> Any:
        """Explicit features (len(X), n_features), dense or sparse."""
        raise NotImplementedError

    def n_features(self, X: Matrix) -> int:
        """Number of features, from those of one row."""
        return self.features(X[:1]).shape[1]

    def gram(self, X: Matrix, Z: Matrix | None = None) -> np.ndarray:
        """Gram matrix of shape (len(X), len(Z))."""
        Phi = self.features(X)
        return dot(Phi, Phi if Z is None else self.features(Z))

    def diag(self, X: Matrix) -> np.ndarray:
        """k(x, x) for each row of X."""
        return row_norms(self.features(X), squared=True)
