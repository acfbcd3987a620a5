"""Kernels: the Gram matrix, its diagonal, and the way back from dL/dK to the parameters (``base`` is the contract)."""

from foldless.kernels.base import FeatureMap, Kernel
from foldless.kernels.distance import RBF, Laplacian
from foldless.kernels.given import Custom, Precomputed, check_symmetric
from foldless.kernels.inner import Boolean, Cosine, Linear, Poly
from foldless.kernels.parameters import Number, Parameter, Width
from foldless.kernels.registry import KERNELS, resolve

__all__ = [
    "KERNELS",
    "RBF",
    "Boolean",
    "Cosine",
    "Custom",
    "FeatureMap",
    "Kernel",
    "Laplacian",
    "Linear",
    "Number",
    "Parameter",
    "Poly",
    "Precomputed",
    "Width",
    "check_symmetric",
    "resolve",
]
