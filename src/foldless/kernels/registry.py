"""Kernels by name, as a function of the user, as an object, or as the Gram matrix itself."""

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from foldless._engine.linalg import copy, diagonal, eps, row_major, take
from foldless._engine.linalg.types import Matrix
from foldless.kernels.approximations import BasisFunctions
from foldless.kernels.base import Kernel, Sum
from foldless.kernels.formulas import RBF, Boolean, Cosine, Laplacian, Linear, Poly
from foldless.kernels.matrices import dense
from foldless.kernels.parameters import did_you_mean

KernelLike: TypeAlias = str | Callable | Kernel
GammaLike: TypeAlias = float | Literal["scale", "auto"] | ArrayLike


@dataclass(frozen=True)
class Custom(Kernel):
    """A user's function k(X, Z) that returns the Gram matrix."""

    function: Callable

    @property
    def surely_symmetric(self) -> bool:
        return False

    def gram(self, X: Matrix, Z: Matrix | None = None) -> np.ndarray:
        alike = Z is None
        Z = X if Z is None else Z
        try:
            K = self.function(X, Z)
        except Exception as error:
            raise ValueError(
                f"kernel={self.function!r} failed on matrices of shapes {X.shape} and {Z.shape}; it must take two"
                f" matrices and return their Gram matrix. It said: {error}"
            ) from error
        K = np.array(dense(K), dtype=X.dtype, order="C")
        if K.shape != (X.shape[0], Z.shape[0]):
            raise ValueError(
                f"kernel={self.function!r} returned shape {K.shape} for X of {X.shape[0]} and Z of {Z.shape[0]} rows;"
                f" it must take two matrices and return a Gram matrix of shape {(X.shape[0], Z.shape[0])}."
            )
        if alike:
            check_symmetric(K, f"the Gram matrix of kernel={self.function!r}")
        return K

    def diag(self, X: Matrix) -> np.ndarray:
        return np.concatenate([self.gram(X[i : i + 1]).ravel() for i in range(X.shape[0])])


@dataclass(frozen=True)
class Precomputed(Kernel):
    """X is the Gram matrix itself: rows are samples, columns the training rows."""

    name: ClassVar[str] = "precomputed"
    takes_rows: ClassVar[bool] = False

    @property
    def surely_symmetric(self) -> bool:
        return False

    def rows(self, X: Matrix, index: Any) -> Matrix:
        return X[index][:, index]

    def block(self, X: Matrix, rows: Any, columns: Any) -> np.ndarray:
        return row_major(dense(X[rows][:, columns] if sp.issparse(X) else take(X[rows], columns, 1)))

    def against(self, X_new: Matrix, X: Matrix, columns: Any) -> np.ndarray:
        return dense(X_new[:, columns] if sp.issparse(X_new) else take(X_new, columns, 1))

    def joined(self, X: Matrix, more: Matrix) -> Matrix:
        """The Gram matrix of all rows; ``more`` holds the kernel of the new rows with all, old and new."""
        n = X.shape[0]
        parts = [[X, more[:, :n].T], [more[:, :n], more[:, n:]]]
        return sp.block_array(parts).tocsr() if sp.issparse(more) else np.block(parts)

    def gram(self, X: Matrix, Z: Matrix | None = None) -> np.ndarray:
        """A copy of X, which callers may overwrite."""
        if Z is not None:
            raise ValueError("A precomputed kernel has no rows to compare; slice the Gram matrix instead.")
        return copy(row_major(dense(X)))

    def diag(self, X: Matrix) -> np.ndarray:
        return X.diagonal() if sp.issparse(X) else diagonal(X)


def check_symmetric(K: Matrix, what: str) -> None:
    """Raise an error if a Gram matrix differs from its transpose by more than rounding."""
    gap, size = float(abs(K - K.T).max()), float(abs(K).max())
    if gap > 1e3 * eps(K) * size:
        raise ValueError(
            f"{what} is not symmetric: entries and their mirror images differ by up to {gap:.3g} (largest entry"
            f" {size:.3g}). Use (K + K.T) / 2 if that is what is meant."
        )


KERNELS = {kind.name: kind for kind in (Linear, Poly, RBF, Laplacian, Boolean, Cosine, Precomputed)}
AUTO = "auto"  # the sum of a Gaussian and a Laplacian kernel, whose parameters searches learn
SHORTHANDS = ("gamma", "degree", "coef0")  # parameters of named kernels that estimators take by themselves


def build(kernel, **shorthands):
    """The kernel object of a kernel as estimators take it: an object, a callable, or a name with ``shorthands``.

    A name inside of an approximation, as in ``Nystroem("rbf")``, has these parameters as well.
    """
    if isinstance(kernel, str) and kernel in KERNELS:
        kind = KERNELS[kernel]
        return kind(**{name: shorthands[name] for name in kind.parameters() if name in shorthands})
    if is_automatic(kernel):
        _check_unused(shorthands)
        return automatic_kernel()
    if is_object(kernel):
        if kernel.approximates and not is_object(kernel.kernel):
            return replace(kernel, kernel=build(kernel.kernel, **shorthands))
        return kernel
    if isinstance(kernel, type) and issubclass(kernel, Kernel):
        needed = [entry.name for entry in fields(kernel) if entry.default is MISSING]
        example = f"{kernel.__name__}({', '.join(f'{name}=...' for name in needed)})"
        raise ValueError(f"kernel={kernel.__name__} is a class; give an object, for instance {example}.")
    if callable(kernel):
        return Custom(kernel)
    names = sorted([*KERNELS, AUTO])
    hint = did_you_mean(kernel, names) if isinstance(kernel, str) else ""
    message = f"kernel={kernel!r} is unknown; use one of {names} or a callable k(X, Z). {hint}"
    raise ValueError(message.rstrip())


def automatic_kernel():
    """What ``kernel="auto"`` is before a search: both kernels with "scale" widths and equal weights."""
    return Sum((RBF("scale"), Laplacian("scale")), (0.5, 0.5))


def is_automatic(kernel):
    """Whether a kernel, as estimators take it, is to be learnt by a search."""
    return isinstance(kernel, str) and kernel == AUTO


def _check_unused(shorthands):
    gamma = shorthands.get("gamma", "scale")
    if not isinstance(gamma, str) or gamma != "scale":
        raise ValueError(
            f"gamma={gamma!r} is not used by kernel='auto', whose widths a search learns. Leave it out, or give kernel"
            " objects: kernel=RBF(...) + Laplacian(...)."
        )


def is_object(kernel):
    """Whether a kernel, as estimators take it, is an object with parameters of its own."""
    return isinstance(kernel, Kernel)


def has_parameters(kernel):
    """Whether a kernel, as estimators take it, has parameters of its own; those of a name are the estimator's."""
    return is_object(kernel) and (not kernel.approximates or is_object(kernel.kernel))


def check_shorthands(kernel, params, prefix=""):
    """Raise an error for parameters of a grid that an estimator with a kernel object ignores."""
    ignored = [name for name in SHORTHANDS if prefix + name in params]
    if ignored and has_parameters(kernel) and f"{prefix}kernel" not in params:
        names = ", ".join(f"{prefix}kernel__{name}" for name in kernel.get_params())
        raise ValueError(
            f"param_grid: {prefix}{ignored[0]} is ignored, since kernel={kernel!r} has parameters of its own. Use their"
            f" names: {names}."
        )


def given_kernel(estimator):
    """The kernel object of an estimator with ``kernel`` and the shorthands, as it was given."""
    return build(estimator.kernel, **{name: getattr(estimator, name) for name in SHORTHANDS})


def penalised_kernel(estimator):
    """The same behind the penalty: "coef" is one of the coefficients of features, which are kernel functions."""
    kernel = given_kernel(estimator)
    if estimator.penalty == "rkhs":
        return kernel
    return kernel.unwhitened() if kernel.approximates else BasisFunctions(kernel)


def is_precomputed(kernel):
    """Whether a kernel, as estimators take it, means that X is the Gram matrix."""
    return not kernel.takes_rows if isinstance(kernel, Kernel) else isinstance(kernel, str) and kernel == "precomputed"


def resolve(
    kernel: KernelLike,
    X: Matrix,
    *,
    gamma: GammaLike = "scale",
    degree: int = 3,
    coef0: float = 1.0,
    eta: float = 1.0,
    sample_weight: ArrayLike | None = None,
) -> Kernel:
    """The kernel object for an object, a name or a callable, its parameters checked and made numbers from X.

    Labels are never seen. ``gamma="scale"`` is 1 / (n_features * X.var()), weights counted as repetitions.
    """
    return build(kernel, gamma=gamma, degree=degree, coef0=coef0, eta=eta).resolved(X, sample_weight)
