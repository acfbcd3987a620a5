"""Pickled models hold the version that wrote them; models of another layout raise an error.

Pickles hold the fields of an estimator and of the objects in it, whose names belong to no public interface. ``LAYOUT``
is raised whenever they change. ``tests/estimators/test_layout.py`` fails where it has to be raised.
"""

from sklearn.base import BaseEstimator

import foldless

LAYOUT = 1


class Versioned(BaseEstimator):
    """Base of all estimators: pickle, joblib and skops write the version, and check it when they read."""

    def __getstate__(self):
        return {**super().__getstate__(), "_foldless_layout": LAYOUT, "_foldless_version": foldless.__version__}

    def __setstate__(self, state):
        check_layout(type(self), state.get("_foldless_layout"), state.get("_foldless_version"))
        super().__setstate__({name: value for name, value in state.items() if not name.startswith("_foldless_")})

    def __reduce__(self):
        """The layout is checked first: classes of another layout may not exist any more."""
        return empty, (type(self), LAYOUT, foldless.__version__), self.__getstate__()


def empty(kind, layout, version):
    """An estimator of this class without fields."""
    check_layout(kind, layout, version)
    return object.__new__(kind)


def check_layout(kind, layout, version):
    """Refuse an estimator that was written with another layout."""
    if layout != LAYOUT:
        writer = "an earlier version of foldless" if version is None else f"foldless {version}"
        raise ValueError(
            f"this {kind.__name__} was written by {writer}, whose models have other fields than those of foldless"
            f" {foldless.__version__}, which reads it. Fit it again, or read it with the version that wrote it."
        )
