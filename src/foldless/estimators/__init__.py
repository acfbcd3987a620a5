"""The scikit-learn estimators."""

from foldless.estimators._fisher import KernelFisherDiscriminant
from foldless.estimators._lssvm import LSSVC, LSSVR

__all__ = ["LSSVC", "LSSVR", "KernelFisherDiscriminant"]
