"""Kernels: the Gram matrix, its diagonal, and the way back from dL/dK to the parameters (``base`` is the contract)."""

from foldless.kernels.approximations import BasisFunctions, Nystroem, RandomFeatures
from foldless.kernels.base import FeatureMap, Kernel, Product, Sum
from foldless.kernels.columns import On, Scaled
from foldless.kernels.formulas import RBF, Boolean, Cosine, Laplacian, Linear, Poly
from foldless.kernels.parameters import Number, Parameter, Width
from foldless.kernels.registry import KERNELS, Custom, Precomputed, check_symmetric, resolve

__all__ = [
    "KERNELS",
    "RBF",
    "BasisFunctions",
    "Boolean",
    "Cosine",
    "Custom",
    "FeatureMap",
    "Kernel",
    "Laplacian",
    "Linear",
    "Number",
    "Nystroem",
    "On",
    "Parameter",
    "Poly",
    "Precomputed",
    "Product",
    "RandomFeatures",
    "Scaled",
    "Sum",
    "Width",
    "check_symmetric",
    "resolve",
]
