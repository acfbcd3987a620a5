"""Kernels by name, by function or as objects; what the estimators' ``kernel``, ``gamma``, ``degree``, ... stand for."""

from numpy.typing import ArrayLike

from foldless.kernels.base import Kernel
from foldless.kernels.distance import RBF, Laplacian
from foldless.kernels.given import Custom, Precomputed
from foldless.kernels.inner import Boolean, Cosine, Linear, Poly
from foldless.kernels.types import GammaLike, KernelLike
from foldless.linalg.types import Matrix

KERNELS = {kind.name: kind for kind in (Linear, Poly, RBF, Laplacian, Boolean, Cosine, Precomputed)}
SHORTHANDS = ("gamma", "degree", "coef0", "eta")  # parameters of named kernels that estimators take by themselves


def build(kernel, **shorthands):
    """The kernel object for an object, a name or a callable; its parameters are as they were given.

    ``shorthands`` are the parameters of a kernel that is given by name. An object has its own.
    """
    if is_object(kernel):
        return kernel
    if isinstance(kernel, type) and issubclass(kernel, Kernel):
        raise ValueError(f"kernel={kernel.__name__} is a class; give an object, for instance {kernel.__name__}().")
    if callable(kernel):
        return Custom(kernel)
    if not isinstance(kernel, str) or kernel not in KERNELS:
        raise ValueError(f"kernel={kernel!r} is unknown; use one of {sorted(KERNELS)} or a callable k(X, Z).")
    kind = KERNELS[kernel]
    return kind(**{name: shorthands[name] for name in kind.parameters()})


def is_object(kernel):
    """Whether a kernel, as estimators take it, is an object with parameters of its own."""
    return isinstance(kernel, Kernel)


def given_kernel(estimator):
    """The kernel object of an estimator with ``kernel`` and the shorthands, as it was given."""
    return build(estimator.kernel, **{name: getattr(estimator, name) for name in SHORTHANDS})


def is_precomputed(kernel):
    """Whether a kernel, as estimators take it, means that X is the Gram matrix."""
    return not kernel.takes_rows if is_object(kernel) else isinstance(kernel, str) and kernel == "precomputed"


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
