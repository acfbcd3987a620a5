"""The scikit-learn estimators."""

from foldless.estimators.adaptive import AdaptiveKDA
from foldless.estimators.fisher import KernelFisherDiscriminant
from foldless.estimators.lssvm import LSSVC, LSSVR
from foldless.estimators.meta import OneAgainstAllClassifier, SlidingWindow

__all__ = [
    "LSSVC",
    "LSSVR",
    "AdaptiveKDA",
    "KernelFisherDiscriminant",
    "OneAgainstAllClassifier",
    "SlidingWindow",
]
