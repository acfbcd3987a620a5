"""The scikit-learn estimators."""

from foldless.estimators.adaptive import AdaptiveKDA
from foldless.estimators.fisher import KernelFisherDiscriminant
from foldless.estimators.lssvm import LSSVC, LSSVR
from foldless.estimators.one_against_all import OneAgainstAllClassifier
from foldless.estimators.window import SlidingWindow

__all__ = ["LSSVC", "LSSVR", "AdaptiveKDA", "KernelFisherDiscriminant", "OneAgainstAllClassifier", "SlidingWindow"]
