"""What all estimators that learn and forget agree on: nothing half done, nothing changed behind a fit's back."""

import warnings
from collections.abc import Mapping
from contextlib import contextmanager

import numpy as np

from foldless.kernels.registry import is_object

FEW = 20  # rows from which a width for the kernel can hardly be told


@contextmanager
def all_or_nothing(estimator):
    """A call that fails leaves the estimator as it was."""
    before = vars(estimator).copy()
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def check_unchanged(estimator, settings):
    """Updates continue a fit: the parameters it was made with must be those the estimator still has."""
    changed = [name for name, value in settings.items() if not _same(value, _value(estimator, name))]
    if changed:
        raise ValueError(
            f"{', '.join(changed)}: changed since the model was fitted; updates continue that fit. Set the old values,"
            " or fit again."
        )


def _value(estimator, name):
    """A parameter by name; ``kernel__gamma`` is one of the kernel."""
    for part in name.split("__"):
        estimator = getattr(estimator, part, None)
    return estimator


def _same(a, b):
    if a is b or (is_object(a) and type(a) is type(b)):  # its parameters have names of their own
        return True
    return a == b if isinstance(a, Mapping) or isinstance(b, Mapping) else np.array_equal(a, b)


def warn_of_few_rows(given, kernel, n, stacklevel):
    """A parameter of the kernel ``given`` that is taken from the first few rows of a stream stays with the model."""
    for name, value in given.unresolved.items() if n < FEW else ():
        warnings.warn(
            f"{name}={value!r} is resolved from the {n} rows of the first partial_fit and stays: {kernel!r}."
            " Give a number, or start with fit or partial_fit on more rows.",
            stacklevel=stacklevel + 1,
        )
