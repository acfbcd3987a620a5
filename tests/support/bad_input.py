"""Data and estimators of the tests of errors."""

import numpy as np
import pytest

from foldless import LSSVC, LSSVR, KernelFisherDiscriminant

N, D = 24, 3
ALL = (LSSVC, LSSVR, KernelFisherDiscriminant)
CLASSIFIERS = (LSSVC, KernelFisherDiscriminant)
every_kind = pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
every_classifier = pytest.mark.parametrize("kind", CLASSIFIERS, ids=lambda kind: kind.__name__)


def data(kind, seed=0, n_classes=2):
    """X and a y that suits the estimator."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D))
    codes = np.arange(N) % n_classes
    X[:, 0] += codes
    return X, (X @ rng.normal(size=D) + rng.normal(size=N) if kind is LSSVR else codes)


def with_value(values, value, at=5):
    values = np.array(values, float)
    values.flat[at] = value
    return values
