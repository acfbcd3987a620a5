"""Kernel approximations: r explicit features in place of an n x n matrix.

    Nystroem          phi(x) = L^-1 k(Z, x),  L L' = M:    k(x, Z) M^-1 k(Z, x') of r landmarks Z,  M = k(Z, Z) + e I
    RandomFeatures    phi(x) = [cos(x' W), sin(x' W)] / sqrt(q): the mean of q = r/2 waves, for rbf and laplacian
                      (Rahimi & Recht 2007)
    BasisFunctions    phi(x) = k(Z, x) for all training rows Z: penalty="coef"

(Williams & Seeger 2001.) The jitter e, 1e-10 of the mean of diag k(Z, Z) (1e-5 in float32), makes M definite where
landmarks nearly coincide in feature space; where rounding leaves no Cholesky factor, 100 times as much is taken, and so
on. With the features k(Z, x) alpha penalises the coefficients of the functions k(Z, .), |f|^2 = beta' beta (Cawley &
Talbot 2003, eq. 5; Bo, Wang & Jiao 2006): of the landmarks, or of all training rows. The Gram matrix of the features of
all rows is K K'. Rows that are left out of a fit keep their functions, as they keep the landmarks.

Results of a model of these features are exact: held-out results equal refits with the same landmarks. The parameters
of the kernel keep their names: ``kernel__gamma`` of an estimator, beside ``kernel__n_landmarks``. With
D = dL/dPhi the way back to them is, for C = k(X, Z),

    dL/dC = D L^-1,     dL/dk(Z, Z) = -1/2 L'^-1 Phi' D L^-1

and then the kernel's own way: n r d operations.
"""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import check_random_state, gen_batches

from foldless._engine.linalg import (
    double,
    host_dtype,
    invert_lower_,
    like,
    lower_times_,
    namespace,
    product,
    put,
    row_major,
    to_host,
    zeros,
)
from foldless._engine.linalg.types import Matrix
from foldless.kernels.base import FeatureMap, Kernel, gram_of_all
from foldless.kernels.landmarks import BLOCK, CHOICES, choose, factor
from foldless.kernels.matrices import canonical, dense, dot, scale
from foldless.kernels.parameters import DERIVED, Parameter

JITTER = {8: 1e-10, 4: 1e-5}  # share of the mean diagonal that is added to k(Z, Z), by bytes: phi keeps half the digits


@dataclass(frozen=True, eq=False)
class KernelFeatures(FeatureMap):
    """Base of explicit features of a kernel, whose parameters keep their names.

    ``_resolved`` names what a subclass draws or chooses from the data; ``_features`` takes some rows at a time. The
    kernel may be a name or a function where an estimator takes the object (``registry.build``).
    """

    approximates: ClassVar[bool] = True
    _resolved: ClassVar[tuple]
    _features: ClassVar[Callable]

    kernel: Any

    def __eq__(self, other):
        if type(self) is not type(other):
            return NotImplemented
        mine, theirs = vars(self), vars(other)
        alike = all(_is_same(mine[name], theirs[name]) for name in self._resolved)
        settings = self.parameters().keys() - self._resolved
        return alike and all(mine[name] == theirs[name] for name in settings)

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
        Phi = zeros(X, (X.shape[0], self.n_features(X)))
        for rows in gen_batches(X.shape[0], BLOCK):
            Phi = put(Phi, rows, self._features(X[rows]))
        return Phi

    def unwhitened(self) -> Self:
        """The features whose coefficients are those of kernel functions, where there are such."""
        return self

    # -- parameters: their own, and those of the kernel under the names they have there ----------------------------

    def __sklearn_clone__(self) -> Self:
        return replace(self, kernel=clone(self.kernel, safe=False))

    @property
    def parts(self) -> dict[str, Any]:
        return self.kernel.parts if isinstance(self.kernel, Kernel) else {}

    def get_params(self, deep: bool = True) -> dict:
        settings = {name: getattr(self, name) for name in self.parameters()}
        inside = self.kernel.get_params() if deep and hasattr(self.kernel, "get_params") else {}
        return {**inside, **settings}

    def changed(self, **params: Any) -> Self:
        settings = {name: params.pop(name) for name in self.parameters().keys() & params.keys()}
        new = replace(self, **settings)
        if not params:
            return new
        unknown = [name for name in params if name not in new.get_params()]
        if unknown:
            names = list(new.get_params())
            raise ValueError(f"Invalid parameter {unknown[0]!r} for kernel {new!r}. Valid parameters are: {names!r}.")
        return replace(new, kernel=new.kernel.changed(**params))

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


def _is_same(one, other):
    return one is other or (isinstance(one, str) and isinstance(other, str) and one == other)


@dataclass(frozen=True, eq=False, repr=False)
class KernelApproximation(KernelFeatures):
    """Base of the approximations of a kernel; ``_placed`` draws or chooses what they are made from."""

    _placed: ClassVar[Callable]

    n_landmarks: int | Literal["auto"] = 500
    _: KW_ONLY
    random_state: Any = 0

    def __repr__(self):
        settings = [repr(self.kernel), *(f"{name}={text}" for name, text in self._settings().items())]
        return f"{type(self).__name__}({', '.join(settings)})"

    def _settings(self):
        """{parameter: text} for the representation: the number of landmarks, and what differs from the default."""
        values = self.get_params(deep=False)
        changed = {name: value for name, value in values.items() if name not in ("kernel", "n_landmarks")}
        changed = {name: value for name, value in changed.items() if not _is_same(value, getattr(type(self), name))}
        return {name: repr(value) for name, value in [("n_landmarks", self.n_landmarks), *changed.items()]}

    def __sklearn_clone__(self) -> Self:
        random_state = clone(self.random_state, safe=False)  # a generator is copied, as that of an estimator
        return replace(super().__sklearn_clone__(), random_state=random_state)

    def resolved(self, X: Matrix, sample_weight: ArrayLike | None = None) -> Self:
        name, count = type(self).__name__, self.n_landmarks
        if not isinstance(self.kernel, Kernel):
            raise ValueError(
                f"{name}: kernel={self.kernel!r} is a name or a function, which only estimators take. Give an object,"
                " such as kernels.RBF('scale') or kernels.Custom(f)."
            )
        if not self.kernel.takes_rows:
            raise ValueError(f"{name} needs rows; for kernel='precomputed' X is none. Give rows and their kernel.")
        if not isinstance(count, int | np.integer) or isinstance(count, bool) or count < 1:
            also = (
                "; 'auto' is found by a search, FoldlessSearchCV, of the kernel alone" if isinstance(count, str) else ""
            )
            raise ValueError(f"n_landmarks={count!r} must be an integer >= 1{also}.")
        return self._placed(self.kernel.resolved(X, sample_weight), X, sample_weight)


@dataclass(frozen=True, eq=False, repr=False)
class Nystroem(KernelApproximation):
    """Nystroem approximation of a kernel, for many rows: features at ``n_landmarks`` rows in place of an n x n matrix.

    The features are L^-1 k(Z, x) with L L' = k(Z, Z) + e I for landmarks Z, and the kernel is
    k(x, Z) (k(Z, Z) + e I)^-1 k(Z, x'), where e is 1e-10 of the mean diagonal of k(Z, Z), 1e-5 in float32, or more if
    rounding leaves no Cholesky factor. ``Nystroem`` of scikit-learn has no such e, but a least singular value of 1e-12:
    models agree as far as the eigenvalues of k(Z, Z) that they use exceed e (docs/approximation.md).

    Parameters
    ----------
    kernel : Kernel, str or callable
        The kernel that is approximated. Its parameters keep their names: ``kernel__gamma`` of an estimator. A name such
        as "rbf" takes ``gamma``, ``degree`` and ``coef0`` of the estimator, as ``kernel="rbf"`` does.
    n_landmarks : int or "auto", default=500
        Number of features. "auto" is found by ``FoldlessSearchCV``.
    landmarks : {"kmeans", "uniform", "leverage"} or array-like of shape (n_landmarks, n_features), default="kmeans"
        Centres of k-means, rows drawn at random, rows drawn by their leverage scores, or an array of rows in the units
        of X. They are chosen once from the rows of ``fit``; labels are not used.
    per_fold : bool, default=False
        Whether cross-validation chooses landmarks anew from each training part (and resolves "scale" there), or keeps
        those of all rows, as ``loo_score_`` and the other methods of a fitted model do in any case.
    random_state : int, RandomState instance or None, default=0; draws the landmarks
    whiten : bool, default=True
        Without it the features are k(x, Z) as they are, without e, as with ``penalty="coef"`` of an estimator.

    Examples
    --------
    >>> import numpy as np
    >>> from foldless import LSSVC
    >>> from foldless.kernels import RBF, Nystroem
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> kernel = Nystroem(RBF(0.1), n_landmarks=40).resolved(X)
    >>> kernel.features(X).shape
    (200, 40)
    >>> bool(abs(kernel.gram(X) - RBF(0.1).gram(X)).max() < 1e-2)
    True
    >>> model = LSSVC(Nystroem(RBF("scale"), n_landmarks=40)).fit(X, X[:, 0] > 0)
    >>> round(model.loo_score_, 1)
    1.0
    """

    _: KW_ONLY
    landmarks: Any = "kmeans"
    per_fold: bool = False
    whiten: bool = True
    as_seen: bool = field(default=False, metadata=DERIVED)  # whether landmarks are rows as the kernel sees them

    _resolved: ClassVar[tuple] = ("landmarks",)

    @property
    def unresolved(self) -> dict:
        named = {"landmarks": self.landmarks} if isinstance(self.landmarks, str) else {}
        return super().unresolved | named

    @property
    def landmarks_per_fold(self) -> bool | None:
        return bool(self.per_fold) if isinstance(self.landmarks, str) else None

    def _settings(self):
        settings = super()._settings()
        if isinstance(self.landmarks, str):
            return settings
        others = {name: text for name, text in settings.items() if name == "whiten"}
        return {"landmarks": f"<{np.shape(self.landmarks)[0]} rows>", **others}

    def unwhitened(self) -> Self:
        return replace(self, whiten=False)

    def changed(self, **params: Any) -> Self:
        new = super().changed(**params)
        return replace(new, as_seen=False) if "landmarks" in params else new

    def standardized(self, center: np.ndarray, spread: np.ndarray) -> Self:
        Z: Any = self.landmarks
        if isinstance(Z, str) or self.as_seen:
            return self
        Z = Z if sp.issparse(Z) else np.asarray(Z)
        if Z.ndim != 2 or Z.shape[1] != len(spread) or Z.dtype.kind not in "fiub":
            return self  # ``resolved`` raises the error
        if sp.issparse(Z) and not center.any():
            return replace(self, landmarks=(Z @ sp.diags_array(1 / spread)).tocsr())
        return replace(self, landmarks=(dense(Z).astype(float) - center) / spread)

    def _placed(self, kernel, X, sample_weight):
        how, count = self.landmarks, self.n_landmarks
        for name in ("per_fold", "whiten"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise ValueError(f"{name}={getattr(self, name)!r} must be True or False.")
        if isinstance(how, str):
            if how not in CHOICES:
                names = ", ".join(map(repr, CHOICES))
                raise ValueError(f"landmarks={how!r} is unknown; use one of {names}, or an array of rows.")
            chosen = choose(how, kernel, to_host(X), count, sample_weight, self.random_state)
            chosen = chosen if sp.issparse(chosen) else like(X, chosen)
            return replace(self, kernel=kernel, landmarks=chosen, as_seen=True)
        Z = canonical(how) if sp.issparse(how) else np.asarray(to_host(how))
        if Z.ndim != 2 or Z.shape[1] != X.shape[1] or not Z.shape[0]:
            raise ValueError(
                f"landmarks has shape {Z.shape}; give at least one row of {X.shape[1]} features, as X has."
            )
        if Z.dtype.kind not in "fiub" or not np.isfinite(Z.data if sp.issparse(Z) else Z).all():
            raise ValueError("landmarks holds values that are no finite numbers.")
        Z = Z.astype(X.dtype, copy=False) if sp.issparse(Z) else like(X, Z)
        return replace(self, kernel=kernel, landmarks=Z, as_seen=True)

    @cached_property
    def _root(self):
        """L^-1, lower."""
        Z = self.landmarks
        K = self.kernel.gram(Z.astype(float) if sp.issparse(Z) else double(Z))
        root = invert_lower_(factor(K, least=JITTER[Z.dtype.itemsize]))
        return root.astype(Z.dtype, copy=False) if sp.issparse(Z) else like(Z, root)

    def n_features(self, X: Matrix) -> int:
        return self.landmarks.shape[0]

    def _features(self, X):
        C = self.kernel.gram(X, self.landmarks)
        return lower_times_(C.T, self._root).T if self.whiten else C

    def pullback_features(self, D: np.ndarray, X: Matrix, Phi: np.ndarray) -> dict:
        kernel, Z = self.kernel, self.landmarks
        if not self.whiten:
            return kernel.pullback_between(D, X, Z)
        slopes = kernel.pullback_between(product(D, self._root), X, Z)
        inner = product(Phi, D, transpose_a=True)
        R = -0.25 * self._root.T @ (inner + inner.T) @ self._root  # by the kernel matrix of the landmarks
        return {name: slopes[name] + value for name, value in kernel.pullback(R, Z, kernel.gram(Z)).items()}


@dataclass(frozen=True, eq=False, repr=False)
class RandomFeatures(KernelApproximation):
    """A kernel of differences, "rbf" or "laplacian", as a mean of random waves (Rahimi & Recht 2007).

    Parameters
    ----------
    kernel : RBF, Laplacian or their names; as in Nystroem
    n_landmarks : int or "auto", default=500; number of cosines and sines in all, an even one
    random_state : int, RandomState instance or None, default=0; draws the waves

    Examples
    --------
    >>> import numpy as np
    >>> from foldless.kernels import RBF, RandomFeatures
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> kernel = RandomFeatures(RBF(0.1), n_landmarks=1000).resolved(X)
    >>> bool(abs(kernel.gram(X) - RBF(0.1).gram(X)).max() < 0.2)
    True
    """

    _: KW_ONLY
    waves: Any = field(default=None, metadata=DERIVED)  # (n_features, n_landmarks / 2), of a width of 1

    _resolved: ClassVar[tuple] = ("waves",)

    def _placed(self, kernel, X, sample_weight):
        rng = check_random_state(self.random_state)
        waves = kernel.waves(rng, (X.shape[1], max(1, int(self.n_landmarks) // 2)))
        if waves is None:
            raise ValueError(f"RandomFeatures is for 'rbf' and 'laplacian', not for {kernel!r}; use Nystroem.")
        waves = waves.astype(host_dtype(X))
        return replace(self, kernel=kernel, waves=waves if sp.issparse(X) else like(X, waves))

    def n_features(self, X: Matrix) -> int:
        return 2 * self.waves.shape[1]

    def _angles(self, X):
        return dot(X, scale(self.waves.T, self.kernel.wave_scale(host_dtype(X))))

    def _features(self, X):
        angles, q = self._angles(X), self.waves.shape[1]
        xp = namespace(angles)
        Phi = xp.concat([xp.cos(angles), xp.sin(angles)], axis=1)
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
        return row_major(gram_of_all(self.kernel, X)) if X is self.Z else super().features(X)

    def _features(self, X):
        return self.kernel.gram(X, self.Z)

    def pullback_features(self, D: np.ndarray, X: Matrix, Phi: np.ndarray) -> dict:
        if X is self.Z:  # one symmetric matrix
            return self.kernel.pullback((D + D.T) / 2, X, Phi)
        return self.kernel.pullback_between(D, X, self.Z)
