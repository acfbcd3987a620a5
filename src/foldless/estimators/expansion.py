"""What all estimators share: a kernel, training rows and the expansion k(x)' beta over them."""

from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from foldless.kernels.registry import given_kernel, is_precomputed

CHUNK = 2**25  # entries of a kernel matrix evaluated at once in predict


class KernelExpansion(BaseEstimator):
    """Base of the estimators: everything but how the coefficients are found."""

    X_fit_: Any
    kernel_: Any
    _not_pickled: ClassVar[str]  # the attribute with the factorisation, which is made again on demand

    def __init__(self, kernel, *, gamma, degree, coef0, eta, alpha):
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.eta = eta
        self.alpha = alpha

    @property
    def _is_precomputed(self):
        return is_precomputed(self.kernel)

    def _kernel(self, X, weights=None):
        """The kernel of validated X; gamma is resolved with the user's weights only (labels are not seen)."""
        return given_kernel(self).resolved(X, weights)

    def _expand(self, X, beta):
        """k(x)' beta of validated new rows, some rows at a time."""
        step = max(1, CHUNK // len(beta))
        if X.shape[0] <= step:
            return self._gram(X) @ beta
        return np.concatenate([self._gram(X[rows]) @ beta for rows in gen_batches(X.shape[0], step)])

    def _gram(self, X):
        return self.kernel_.against(X, self.X_fit_, slice(None))

    def _check_linear(self, attribute):
        check_is_fitted(self)
        if not self.kernel_.is_linear:
            raise AttributeError(f"{attribute} exists for kernel='linear' only, not for kernel={self.kernel!r}.")

    def __getstate__(self):
        state = super().__getstate__().copy()
        if self._not_pickled in state:
            state[self._not_pickled] = None
        return state

    def __sklearn_is_fitted__(self):
        return hasattr(self, "kernel_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._is_precomputed
        return tags
