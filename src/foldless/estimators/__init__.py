"""The scikit-learn estimators."""

from foldless.estimators._adaptive import AdaptiveKDA
from foldless.estimators._fisher import KernelFisherDiscriminant
from foldless.estimators._lssvm import LSSVC, LSSVR
from foldless.estimators._one_against_all import OneAgainstAllClassifier
from foldless.estimators._window import SlidingWindow

__all__ = ["LSSVC", "LSSVR", "AdaptiveKDA", "KernelFisherDiscriminant", "OneAgainstAllClassifier", "SlidingWindow"]
