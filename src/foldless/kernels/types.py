"""Names for what the estimators take as a kernel and its parameters."""

from collections.abc import Callable
from typing import Literal, TypeAlias

from numpy.typing import ArrayLike

from foldless.kernels.base import Kernel

KernelLike: TypeAlias = str | Callable | Kernel
GammaLike: TypeAlias = float | Literal["scale"] | ArrayLike
