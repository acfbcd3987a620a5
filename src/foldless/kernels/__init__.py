"""Kernels: the Gram matrix, its diagonal, and the way back from dL/dK to the parameters (``base`` is the contract)."""

from foldless.kernels.base import FeatureMap, Kernel, Product, Sum
from foldless.kernels.columns import On
from foldless.kernels.formulas import RBF, Boolean, Cosine, Laplacian, Linear, Poly
from foldless.kernels.parameters import Number, Parameter, Width
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
    "On",
    "Parameter",
    "Poly",
    "Precomputed",
    "Product",
    "Sum",
    "Width",
    "check_symmetric",
    "resolve",
]
