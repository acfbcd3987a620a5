"""The contract of a kernel and of its parameters, and what the families share.

A kernel is a frozen dataclass and owns all that others ask of it: values, features and derivatives, and how the data it
works on are sliced and joined (X may be the Gram matrix itself). Its fields are its parameters; the kind of each, as in
``gamma: Annotated[float, Width()] = 1.0``, says how a value is checked and made a number, and where searches look for a
better one. Only X and weights of rows are seen, never labels. ``get_params`` and ``set_params`` are scikit-learn's
protocol: ``kernel__gamma`` is a parameter of an estimator.

To add a kernel write one such class; ``kernel=`` of the estimators takes its objects. An entry in
``registry.KERNELS`` gives it a name.
"""

from dataclasses import dataclass, fields, replace
from functools import cache
from numbers import Real
from typing import Any, ClassVar, Self, get_type_hints

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils import gen_batches
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from foldless.linalg import outer_square, product
from foldless.linalg.types import Matrix

MANY_ROWS = 8192  # from which on a Gram matrix is evaluated
BLOCK = 1024  # rows at a time


@dataclass(frozen=True)
class Parameter:
    """A value that is taken as it is; searches move it only where a grid names it."""

    bounds: tuple = ()
    grid: tuple = ()
    differentiable: bool = False
    per_feature: bool = False

    def resolved(self, name: str, value: Any, kernel: str, X: Matrix, sample_weight: ArrayLike | None) -> Any:
        """The value of the parameter ``name`` of the kernel named ``kernel``, for the rows X and their weights."""
        return value

    def from_data(self, value: Any) -> bool:
        """Whether the value is a name for a number that comes from the data."""
        return False

    def limits(self, value: Any) -> tuple[float, float]:
        """(low, high) of continuous searches."""
        return self.bounds

    def values(self, X: Matrix) -> list:
        """Values of the default grid."""
        return list(self.grid)


@dataclass(frozen=True)
class Number(Parameter):
    """A finite number > 0, or >= 0."""

    bounds: tuple = (1e-4, 1e4)
    differentiable: bool = True
    zero: bool = False  # whether 0 is allowed

    def resolved(self, name: str, value: Any, kernel: str, X: Matrix, sample_weight: ArrayLike | None) -> Any:
        if not isinstance(value, Real) or not np.isfinite(float(value)) or value < 0 or (value == 0 and not self.zero):
            low = ">= 0" if self.zero else "> 0"
            raise ValueError(f"{name}={value!r} must be a finite number {low} for kernel={kernel!r}.")
        return value


@dataclass(frozen=True)
class Width(Parameter):
    """A factor of differences or products of features: one number, one for each feature, "scale" or "auto".

    "scale" is 1 / (n_features * X.var()), rows repeated by their weights; "auto" is 1 / n_features. ``bounds`` and
    ``grid`` are factors: of the largest value at the start, and of "scale".
    """

    bounds: tuple = (1e-5, 1e3)
    grid: tuple = tuple(np.logspace(-2, 1, 10).tolist())
    differentiable: bool = True
    per_feature: bool = True

    def resolved(self, name: str, value: Any, kernel: str, X: Matrix, sample_weight: ArrayLike | None) -> Any:
        if isinstance(value, str):
            if value not in ("scale", "auto"):
                choice = "'scale', 'auto', a positive number, or one per feature"
                raise ValueError(f"{name}={value!r} is unknown; use {choice}.")
            return _data_scale(name, X, sample_weight) if value == "scale" else 1.0 / X.shape[1]
        numbers = np.asarray(value, dtype=float)
        shape = numbers.shape
        d = X.shape[1]
        if shape not in ((), (d,)):
            raise ValueError(f"{name} has shape {shape}; use one number or one value for each of the {d} features.")
        if not np.all(np.isfinite(numbers)) or np.any(numbers < 0) or not np.any(numbers > 0):
            raise ValueError(f"{name}={value!r} must be positive and finite (zero only switches single features off).")
        return numbers if numbers.ndim else float(numbers)

    def from_data(self, value: Any) -> bool:
        return isinstance(value, str)

    def limits(self, value: Any) -> tuple[float, float]:
        """(low, high) about the largest value."""
        low, high = self.bounds
        middle = float(np.max(value))
        return low * middle, high * middle

    def values(self, X: Matrix) -> list:
        """Multiples of "scale"."""
        return (_data_scale("gamma", X, None) * np.array(self.grid)).tolist()


@dataclass(frozen=True)
class Kernel:
    """Base of the kernels: a kernel of rows x of a matrix X, without explicit features."""

    name: ClassVar[str] = ""
    takes_rows: ClassVar[bool] = True  # False: X is the Gram matrix itself
    is_linear: ClassVar[bool] = False  # True: features(X) is X itself
    surely_symmetric: ClassVar[bool] = True  # False: what the user gives may not be

    def gram(self, X: Matrix, Z: Matrix | None = None) -> np.ndarray:
        """Gram matrix of shape (len(X), len(Z)); Z=None: that of X with itself."""
        raise NotImplementedError

    def diag(self, X: Matrix) -> np.ndarray:
        """k(x, x) for each row of X."""
        raise NotImplementedError

    def n_features(self, X: Matrix) -> int | None:
        """Number of explicit features of the rows of X; None where there are none."""
        return None

    def features(self, X: Matrix) -> Any:
        """Explicit features (len(X), n_features), dense or sparse; None where there are none."""
        return None

    def pullback(self, R: np.ndarray, X: Matrix, K: np.ndarray) -> dict:
        """{parameter: sum_ij R_ij dK_ij/dparameter} for a symmetric R = dL/dK, which is overwritten, and K = gram(X).

        It costs one n x n product with X, whatever the number of features (Bo, Wang & Jiao 2006 pay d products of size
        n^3).
        """
        return {}

    def caution(self, X: Matrix) -> str | None:
        """What the rows X have that the kernel is not made for, in words; None where all is well."""
        return None

    # -- parameters ----------------------------------------------------------------------------------------------------

    @classmethod
    @cache
    def parameters(cls) -> dict[str, Parameter]:
        """The kinds of the parameters by their names, in order."""
        hints = get_type_hints(cls, include_extras=True)
        extras = {each.name: getattr(hints[each.name], "__metadata__", ()) for each in fields(cls)}
        return {
            name: next((extra for extra in found if isinstance(extra, Parameter)), Parameter())
            for name, found in extras.items()
        }

    @property
    def differentiable(self) -> tuple:
        """Names of the parameters that ``pullback`` has derivatives by."""
        return tuple(name for name, kind in self.parameters().items() if kind.differentiable)

    @property
    def per_feature(self) -> str | None:
        """Name of the parameter that may hold one value for each feature, if there is one."""
        return next((name for name, kind in self.parameters().items() if kind.per_feature), None)

    @property
    def unresolved(self) -> dict:
        """{parameter: value} of those whose numbers come from the data."""
        values = self.get_params()
        return {name: values[name] for name, kind in self.parameters().items() if kind.from_data(values[name])}

    def resolved(self, X: Matrix, sample_weight: ArrayLike | None = None) -> Self:
        """The kernel with its parameters checked and made numbers; weights count as repetitions of rows."""
        label = self.name or type(self).__name__
        given = self.get_params()
        kinds = self.parameters()
        checked = {name: kinds[name].resolved(name, given[name], label, X, sample_weight) for name in kinds}
        return replace(self, **checked)

    def default_grid(self, X: Matrix) -> dict:
        """{parameter: values} to try on the rows X; parameters that hold one value for each feature stay."""
        grid = {name: kind.values(X) for name, kind in self.parameters().items() if not np.ndim(getattr(self, name))}
        return {name: values for name, values in grid.items() if values}

    def limits(self) -> dict:
        """{parameter: (low, high)} for continuous searches that start here."""
        return {name: self.parameters()[name].limits(getattr(self, name)) for name in self.differentiable}

    def get_params(self, deep: bool = True) -> dict:
        """The parameters by name, as scikit-learn asks for them."""
        return {name: getattr(self, name) for name in self.parameters()}

    def set_params(self, **params: Any) -> Self:
        """Change parameters in place, as scikit-learn does for ``estimator.set_params(kernel__name=value)``."""
        for name in params.keys() - self.parameters().keys():
            raise ValueError(
                f"Invalid parameter {name!r} for kernel {self!r}. Valid parameters are: {list(self.parameters())!r}."
            )
        changed = vars(replace(self, **params))
        vars(self).clear()  # what was derived from the old ones goes with them
        vars(self).update(changed)
        return self

    # -- data: how X is sliced and joined ------------------------------------------------------------------------------

    def rows(self, X: Matrix, index: Any) -> Matrix:
        """The data of some rows alone."""
        return X[index]

    def block(self, X: Matrix, rows: Any, columns: Any) -> np.ndarray:
        """K[rows, columns] of the data X."""
        if rows is columns:
            return np.ascontiguousarray(self.gram(X[rows]))
        return self.gram(X[rows], X[columns])

    def against(self, X_new: Matrix, X: Matrix, columns: Any) -> np.ndarray:
        """Kernel between new rows and some rows of the data X."""
        return self.gram(X_new, X[columns])

    def joined(self, X: Matrix, more: Matrix) -> Matrix:
        """The data X with the rows ``more`` behind them."""
        return sp.vstack([X, more]).tocsr() if sp.issparse(X) else np.concatenate([X, more])


class FeatureMap(Kernel):
    """Base of the kernels that are given by explicit features, k(x, z) = phi(x).phi(z); a subclass writes ``features``.

    Models of fewer features than rows are held through them: memory and time grow with the number of features.
    """

    def features(self, X: Matrix) -> Any:
        raise NotImplementedError

    def n_features(self, X: Matrix) -> int:
        return self.features(X[:1]).shape[1]

    def gram(self, X: Matrix, Z: Matrix | None = None) -> np.ndarray:
        Phi = self.features(X)
        return dot(Phi, Phi if Z is None else self.features(Z))

    def diag(self, X: Matrix) -> np.ndarray:
        return row_norms(self.features(X), squared=True)


def dense(X):
    """X as an array."""
    return X.toarray() if sp.issparse(X) else X


def dot(X, Z):
    """X Z' as a dense, C-ordered array."""
    if sp.issparse(X) or sp.issparse(Z):
        return np.ascontiguousarray(safe_sparse_dot(X, Z.T, dense_output=True))
    return outer_square(X) if X is Z else product(Z, X.T).T


def gram_of_all(kernel, X):
    """The Gram matrix of X with itself, C-ordered; of many rows in blocks, so that nothing else of its size is held."""
    n = X.shape[0]
    if n <= MANY_ROWS:
        return np.ascontiguousarray(kernel.gram(X))
    K = np.empty((n, n), X.dtype)
    for rows in gen_batches(n, BLOCK):
        K[rows, rows] = kernel.gram(X[rows])
        if rows.start:
            K[rows, : rows.start] = kernel.gram(X[rows], X[: rows.start])
            K[: rows.start, rows] = K[rows, : rows.start].T
    return K


def scale(X, factors):
    """The columns of X times ``factors`` (a number or one per column)."""
    factors = np.asarray(factors, X.dtype)
    return (X @ sp.diags_array(factors)).tocsr() if sp.issparse(X) and factors.ndim else X * factors


def _data_scale(name, X, sample_weight):
    total = X.shape[1] * _variance(X, sample_weight)
    if not np.isfinite(total):
        raise ValueError(f"{name}='scale' overflows: X is too large to be squared; rescale X or give {name}.")
    return 1.0 / total if total > 1e-307 else 1.0 / X.shape[1]  # no variance, or one without an inverse


def _variance(X, sample_weight):
    """Variance of all entries of X, rows repeated by their weights."""
    share = np.ones(X.shape[0]) if sample_weight is None else np.asarray(sample_weight, float)
    share = share / (share.sum() * X.shape[1])
    # Divided by the largest entry first: squares of 1e200 would overflow.
    largest = float(abs(X).max()) if X.shape[0] else 0.0
    if largest == 0 or not np.isfinite(largest):
        return 0.0
    Z = X / largest
    mean = float(share @ np.asarray(Z.sum(1)).ravel())
    if sp.issparse(Z):
        zeros = Z.shape[1] - np.diff(Z.indptr)
        deviations = sp.csr_array((np.square(Z.data - mean), Z.indices, Z.indptr), Z.shape)
        spread = float(share @ (np.asarray(deviations.sum(1)).ravel() + zeros * mean**2))
    else:
        spread = float(share @ np.square(Z - mean).sum(1))
    return spread * largest * largest if spread > (100 * np.finfo(float).eps) ** 2 else 0.0
