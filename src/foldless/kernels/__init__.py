"""Kernels: the Gram matrix, its diagonal, and the way back from dL/dK to the parameters (``base`` is the contract)."""

from foldless.kernels.base import FeatureMap, Kernel, Number, Parameter, Width
from foldless.kernels.formulas import RBF, Boolean, Cosine, Laplacian, Linear, Poly
from foldless.kernels.registry import KERNELS, Custom, Precomputed, check_symmetric, resolve

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
