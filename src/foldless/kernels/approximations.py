"""Kernels by explicit features: r of them in the place of an n x n matrix.

    Nystroem          phi(x) = L^-1 k(Z, x),  L L' = M:    k(x, Z) M^-1 k(Z, x') of r landmarks Z,  M = k(Z, Z) + e I
    RandomFeatures    phi(x) = [cos(x' W), sin(x' W)] / sqrt(q): the mean of q = r/2 waves, for rbf and laplacian
                      (Rahimi & Recht 2007)
    BasisFunctions    phi(x) = k(Z, x) for all training rows Z: penalty="coef"

(Williams & Seeger 2001.) The jitter e, 1e-10 of the mean of diag k(Z, Z) (1e-5 in float32), makes M definite where
landmarks nearly coincide in feature space; where rounding leaves no Cholesky factor, 100 times as much is taken, and so
on. With the features k(Z, x) alpha penalises the coefficients of the functions k(Z, .), |f|^2 = beta' beta (Cawley &
Talbot 2003, eq. 5; Bo, Wang & Jiao 2006): of the landmarks, or of all training rows. The Gram matrix of the features of
all rows is K K'. Rows that are left out of a fit keep their functions, as they keep the landmarks.

All that a model of these features is asked for is exact: held-out results equal refits with the same landmarks. The
parameters are those of the kernel that is approximated. With D = dL/dPhi the way back to them is, for C = k(X, Z),

    dL/dC = D L^-1,     dL/dk(Z, Z) = -1/2 L'^-1 Phi' D L^-1

and then the kernel's own way: n r d operations.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import check_random_state, gen_batches

from foldless.kernels.base import FeatureMap, canonical, dot, gram_of_all
from foldless.kernels.landmarks import BLOCK, CHOICES, choose, factor
from foldless.kernels.parameters import Parameter
from foldless.linalg import invert_lower_, lower_times_, product
from foldless.linalg.types import Matrix

JITTER = {8: 1e-10, 4: 1e-5}  # share of the mean diagonal that is added to k(Z, Z), by bytes: phi keeps half the digits


@dataclass(frozen=True, eq=False)
class KernelFeatures(FeatureMap):
    """Base of the features that are made of a kernel: the parameters are those of this kernel.

    ``_resolved`` names what a subclass draws or chooses from the data; ``_features`` takes some rows at a time.
    """

    approximates: ClassVar[bool] = True
    _resolved: ClassVar[tuple]
    _features: ClassVar[Callable]

    kernel: Any

    def __eq__(self, other):
        if type(self) is not type(other):
            return NotImplemented
        mine, theirs = vars(self), vars(other)
        return self.kernel == other.kernel and all(mine[name] is theirs[name] for name in self._resolved)

    __hash__ = None  # type: ignore[assignment]

    def pullback_features(self, D: np.ndarray, X: Matrix, Phi: np.ndarray) -> dict:
        """{parameter: sum_ij D_ij dPhi_ij/dparameter} for Phi = features(X)."""
        raise NotImplementedError

    def pullback(self, R: np.ndarray, X: Matrix, K: np.ndarray) -> dict:
        Phi = self.features(X)
        return self.pullback_features(2 * product(R, Phi), X, Phi)

    def features(self, X: Matrix) -> np.ndarray:
        if X.shape[0] <= BLOCK:
            return self._features(X)
        Phi = np.empty((X.shape[0], self.n_features(X)), X.dtype)
        for rows in gen_batches(X.shape[0], BLOCK):
            Phi[rows] = self._features(X[rows])
        return Phi

    # -- parameters: those of the kernel ---------------------------------------------------------------------------

    def __sklearn_clone__(self) -> Self:
        return replace(self, kernel=clone(self.kernel))

    @property
    def parts(self) -> dict[str, Any]:
        return self.kernel.parts

    def get_params(self, deep: bool = True) -> dict:
        return self.kernel.get_params(deep)

    def changed(self, **params: Any) -> Self:
        return replace(self, kernel=self.kernel.changed(**params))

    @property
    def kinds(self) -> dict[str, Parameter]:
        return self.kernel.kinds

    @property
    def per_feature(self) -> str | None:
        return self.kernel.per_feature

    @property
    def unresolved(self) -> dict:
        return self.kernel.unresolved

    def default_grid(self, X: Matrix) -> dict:
        return self.kernel.default_grid(X)

    def caution(self, X: Matrix) -> str | None:
        return self.kernel.caution(X)


@dataclass(frozen=True, eq=False)
class KernelApproximation(KernelFeatures):
    """Base of the approximations of a kernel; ``_placed`` draws or chooses what they are made from."""

    _placed: ClassVar[Callable]

    n_landmarks: int = 500
    random_state: Any = 0

    def resolved(self, X: Matrix, sample_weight: ArrayLike | None = None) -> Self:
        if not self.kernel.takes_rows:
            raise ValueError(
                "approximation needs rows; for kernel='precomputed' X is none. Give rows and their kernel."
            )
        count = self.n_landmarks
        if not isinstance(count, int | np.integer) or isinstance(count, bool) or count < 1:
            also = "; 'auto' is found by a search, FoldlessSearchCV" if isinstance(count, str) else ""
            raise ValueError(f"n_landmarks={count!r} must be an integer >= 1{also}.")
        return self._placed(self.kernel.resolved(X, sample_weight), X, sample_weight)


@dataclass(frozen=True, eq=False)
class Nystroem(KernelApproximation):
    """A kernel through its values at ``n_landmarks`` rows.

    ``landmarks`` are "uniform", "kmeans" or "leverage" (``kernels.landmarks``), or the rows themselves, and become rows
    when the kernel is resolved. The features are L^-1 k(Z, x) with L L' = k(Z, Z) + e I, and the kernel is
    k(x, Z) (k(Z, Z) + e I)^-1 k(Z, x'), where e is 1e-10 of the mean diagonal of k(Z, Z), 1e-5 in float32, or more if
    rounding leaves no Cholesky factor. ``Nystroem`` of scikit-learn has no such e, but a least singular value of 1e-12:
    models agree as far as the eigenvalues of k(Z, Z) that they use exceed e (docs/approximation.md). Without ``whiten``
    the features are k(x, Z) as they are, without e.

    Examples
    --------
    >>> import numpy as np
    >>> from foldless.kernels import RBF, Nystroem
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> kernel = Nystroem(RBF(0.1), n_landmarks=40).resolved(X)
    >>> kernel.features(X).shape
    (200, 40)
    >>> bool(abs(kernel.gram(X) - RBF(0.1).gram(X)).max() < 1e-2)
    True
    """

    landmarks: Any = "kmeans"
    whiten: bool = True

    _resolved: ClassVar[tuple] = ("landmarks",)

    @property
    def unresolved(self) -> dict:
        named = {"landmarks": self.landmarks} if isinstance(self.landmarks, str) else {}
        return super().unresolved | named

    def _placed(self, kernel, X, sample_weight):
        how, count = self.landmarks, self.n_landmarks
        if isinstance(how, str):
            if how not in CHOICES:
                names = ", ".join(map(repr, CHOICES))
                raise ValueError(f"landmarks={how!r} is unknown; use one of {names}, or an array of rows.")
            chosen = choose(how, kernel, X, count, sample_weight, self.random_state)
            return replace(self, kernel=kernel, landmarks=chosen)
        Z = canonical(how) if sp.issparse(how) else np.asarray(how)
        if Z.ndim != 2 or Z.shape[1] != X.shape[1] or not Z.shape[0]:
            raise ValueError(
                f"landmarks has shape {Z.shape}; give at least one row of {X.shape[1]} features, as X has."
            )
        if Z.dtype.kind not in "fiub" or not np.isfinite(Z.data if sp.issparse(Z) else Z).all():
            raise ValueError("landmarks holds values that are no finite numbers.")
        return replace(self, kernel=kernel, landmarks=Z.astype(X.dtype, copy=False))

    @cached_property
    def _root(self):
        """L^-1, lower."""
        Z = self.landmarks
        L = factor(self.kernel.gram(Z.astype(float)), least=JITTER[Z.dtype.itemsize])
        return invert_lower_(L).astype(Z.dtype, copy=False)

    def n_features(self, X: Matrix) -> int:
        return self.landmarks.shape[0]

    def _features(self, X):
        C = self.kernel.gram(X, self.landmarks)
        return lower_times_(C.T, self._root).T if self.whiten else C

    def pullback_features(self, D: np.ndarray, X: Matrix, Phi: np.ndarray) -> dict:
        kernel, Z = self.kernel, self.landmarks
        if not self.whiten:
            return kernel.pullback_between(D, X, Z)
        found = kernel.pullback_between(product(D, self._root), X, Z)
        inner = product(Phi, D, transpose_a=True)
        own = -0.25 * self._root.T @ (inner + inner.T) @ self._root
        return {name: found[name] + value for name, value in kernel.pullback(own, Z, kernel.gram(Z)).items()}


@dataclass(frozen=True, eq=False)
class RandomFeatures(KernelApproximation):
    """A kernel of differences as a mean of waves; ``n_landmarks`` cosines and sines in all.

    Examples
    --------
    >>> import numpy as np
    >>> from foldless.kernels import RBF, RandomFeatures
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> kernel = RandomFeatures(RBF(0.1), n_landmarks=1000).resolved(X)
    >>> bool(abs(kernel.gram(X) - RBF(0.1).gram(X)).max() < 0.2)
    True
    """

    waves: Any = field(default=None, repr=False)  # (n_features, n_landmarks / 2), of a width of 1

    _resolved: ClassVar[tuple] = ("waves",)

    def _placed(self, kernel, X, sample_weight):
        rng = check_random_state(self.random_state)
        waves = kernel.waves(rng, (X.shape[1], max(1, self.n_landmarks // 2)))
        if waves is None:
            raise ValueError(f"approximation='rff' is for 'rbf' and 'laplacian', not for {kernel!r}; use 'nystroem'.")
        return replace(self, kernel=kernel, waves=waves.astype(X.dtype))

    def n_features(self, X: Matrix) -> int:
        return 2 * self.waves.shape[1]

    def _angles(self, X):
        return dot(X, (self.kernel.wave_scale(X.dtype) * self.waves.T))

    def _features(self, X):
        angles, q = self._angles(X), self.waves.shape[1]
        Phi = np.empty((len(angles), 2 * q), angles.dtype)
        np.cos(angles, out=Phi[:, :q])
        np.sin(angles, out=Phi[:, q:])
        Phi /= np.sqrt(q)
        return Phi

    def pullback_features(self, D: np.ndarray, X: Matrix, Phi: np.ndarray) -> dict:
        """By x_k' the derivative of a wave is a_k = x_k w_k s'(gamma_k), for the scale s of the waves."""
        q = self.waves.shape[1]
        slopes = D[:, q:] * Phi[:, :q] - D[:, :q] * Phi[:, q:]
        back = product(slopes, self.waves.T) if not sp.issparse(X) else slopes @ self.waves.T
        by_feature = np.asarray(X.multiply(back).sum(0)).ravel() if sp.issparse(X) else np.einsum("ij,ij->j", X, back)
        by_feature = by_feature * self.kernel.wave_slope(X.dtype)
        return {"gamma": by_feature if np.ndim(self.kernel.get_params()["gamma"]) else by_feature.sum()}


@dataclass(frozen=True, eq=False, repr=False)
class BasisFunctions(KernelFeatures):
    """The functions k(z, .) of rows Z as features: alpha penalises their coefficients.

    Without Z these are the rows that the kernel is resolved with, all but those of weight 0.

    Examples
    --------
    >>> import numpy as np
    >>> from foldless.kernels import RBF, BasisFunctions
    >>> X = np.random.default_rng(0).normal(size=(20, 2))
    >>> kernel = BasisFunctions(RBF(0.1)).resolved(X)
    >>> np.allclose(kernel.gram(X), RBF(0.1).gram(X) @ RBF(0.1).gram(X))
    True
    """

    Z: Any = None

    squares_condition: ClassVar[bool] = True
    _resolved: ClassVar[tuple] = ("Z",)

    def __repr__(self):
        return f"{type(self).__name__}({self.kernel!r})"

    @property
    def unresolved(self) -> dict:
        return super().unresolved | ({"penalty": "coef"} if self.Z is None else {})

    def resolved(self, X: Matrix, sample_weight: ArrayLike | None = None) -> Self:
        if not self.kernel.takes_rows:
            raise ValueError(
                "penalty='coef' takes the values of the kernel as features. With kernel='precomputed' use"
                " kernel='linear', penalty='rkhs' and the Gram matrix as X, which is the same model."
            )
        Z = self.Z
        if Z is None:
            Z = X if sample_weight is None or np.all(sample_weight) else X[np.flatnonzero(sample_weight)]
        return replace(self, kernel=self.kernel.resolved(X, sample_weight), Z=Z)

    def n_features(self, X: Matrix) -> int:
        return X.shape[0] if self.Z is None else self.Z.shape[0]

    def features(self, X: Matrix) -> np.ndarray:
        return gram_of_all(self.kernel, X) if X is self.Z else super().features(X)

    def _features(self, X):
        return self.kernel.gram(X, self.Z)

    def pullback_features(self, D: np.ndarray, X: Matrix, Phi: np.ndarray) -> dict:
        if X is self.Z:  # one symmetric matrix
            return self.kernel.pullback((D + D.T) / 2, X, Phi)
        return self.kernel.pullback_between(D, X, self.Z)
