"""Rows of data as a kernel sees them: Gram matrices, and explicit features where the kernel has them.

Features are evaluated once for all rows. Where their mean is taken out (``shift``), Gram matrices are those of the
centred features.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from foldless.kernels.base import dot
from foldless.linalg.memory import require_memory


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """Explicit features of all rows of X, evaluated when first asked for."""

    kernel: Any
    X: Any

    @cached_property
    def values(self):
        """Features (n, r), dense or sparse."""
        return self.kernel.features(self.X)

    def changed(self, X, change):
        """The table of X, whose features follow from these by ``change`` if they are known."""
        other = FeatureTable(self.kernel, X)
        if "values" in vars(self) and not self.kernel.is_linear:  # features of a linear kernel are X itself
            vars(other)["values"] = change(self.values)
        return other


class KernelRows:
    """What a problem knows of its rows through the kernel."""

    kernel: Any
    X: Any
    shift: Any
    table: Any

    @property
    def n(self):
        """Number of rows, those of weight 0 included."""
        return self.X.shape[0]

    @property
    def dtype(self):
        """The precision of X, and of all that is computed."""
        return self.X.dtype

    @property
    def has_features(self):
        """Whether the kernel has explicit features."""
        return self.kernel.n_features(self.X) is not None

    def mean_of_features(self, rows):
        """Mean of the features of these rows; None where there are none, or they are sparse."""
        if not self.has_features or sp.issparse(self.table.values):
            return None
        return self.table.values[rows].mean(0)

    def data(self, rows):
        """These rows of X."""
        return self.X if self._all(rows) else self.X[rows]

    def _all(self, rows):
        return len(rows) == self.n and np.array_equal(rows, np.arange(self.n))

    def _features(self, rows):
        """Explicit features of these rows, dense or sparse, without their mean."""
        values = self.table.values if self._all(rows) else self.table.values[rows]
        return values if self.shift is None else values - self.shift

    def features(self, rows):
        """Explicit features of these rows as a dense array."""
        return self._dense(self._features(rows))

    def features_new(self, X):
        """Explicit features of new rows X, as those of the training rows."""
        values = self._dense(self.kernel.features(X))
        return values if self.shift is None else values - self.shift

    def _dense(self, values):
        if not sp.issparse(values):
            return values
        require_memory(values.shape, self.dtype, "the features as a dense array")
        return values.toarray()

    def gram(self, rows, columns):
        """K[rows, columns]."""
        if self.kernel.takes_rows:
            require_memory((len(rows), len(columns)), self.dtype, "the kernel matrix")
        return self._gram(rows, columns)

    def _gram(self, rows, columns):
        if not self.kernel.takes_rows:
            return self.kernel.block(self.X, rows, columns)
        if self.has_features:
            values = self._features(rows)
            return dot(values, values if rows is columns else self._features(columns))
        if rows is columns:
            return np.ascontiguousarray(self.kernel.gram(self.data(rows)))
        return self.kernel.gram(self.data(rows), self.data(columns))

    def gram_of_new(self, rows, new):
        """Kernel between ``rows`` and the rows ``new``, and among the latter, symmetric."""
        both = self._gram(new, np.concatenate([rows, new]))
        own = both[:, len(rows) :]
        return both[:, : len(rows)].T, (own + own.T) / 2

    def gram_new(self, X, rows):
        """Kernel between new rows X and these rows."""
        if not self.kernel.takes_rows:
            return self.kernel.against(X, self.X, rows)
        if not self.has_features:
            return self.kernel.gram(X, self.data(rows))
        values = self.kernel.features(X) if self.shift is None else self.features_new(X)
        return dot(values, self._features(rows))

    def weights_of_expansion(self, basis, beta):
        """Weights of the features, from f(x) = k(x, basis)' beta."""
        return np.asarray(self._features(basis).T @ beta)

    def uncentred(self, weights, B):
        """B of f(x) = phi(x)' weights + q(x)' B for the kernel's own features, from that for centred ones."""
        if self.shift is None:
            return B
        B = B.copy()
        B[0] -= self.shift @ weights
        return B
