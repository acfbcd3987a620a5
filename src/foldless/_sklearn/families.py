"""Families of tests: whether X is one test or many, and the features of each test.

Three axes are (samples, features, times). Estimators of matrices are tested at each time. A pipeline that begins with a
step of three axes takes the whole of X. It must not be given slices: some such steps (mne's Vectorizer) accept slices
without an error, and the test would not be the one of the score of ``cross_validate``.
"""

from collections.abc import Iterator

import numpy as np
from sklearn.pipeline import FeatureUnion, Pipeline

# Modules whose transformers take (samples, channels, times), whether or not their tags say so.
THREE_AXES_MODULES = ("aeon.", "mne.decoding.", "pyriemann.", "sktime.")
MATRIX_MODULES = ("foldless.", "sklearn.")


def axes_taken(estimator):
    """The number of axes of X that an estimator takes, 2 or 3; None where it is unknown."""
    if isinstance(estimator, Pipeline):
        steps = [step for _, step in estimator.steps if step is not None and step != "passthrough"]
        return axes_taken(steps[0]) if steps else None
    if isinstance(estimator, FeatureUnion):
        axes = {axes_taken(step) for _, step in estimator.transformer_list if not isinstance(step, str)}
        return 3 if 3 in axes else 2 if axes == {2} else None
    if hasattr(getattr(estimator, "estimator", None), "fit"):  # searches and the like
        return axes_taken(estimator.estimator)
    module = type(estimator).__module__
    if module.startswith(THREE_AXES_MODULES) and hasattr(estimator, "transform"):
        return 3
    if not hasattr(estimator, "__sklearn_tags__"):
        return None
    tags = estimator.__sklearn_tags__()
    if tags.input_tags.three_d_array:
        return 3
    return 2 if module.startswith(MATRIX_MODULES) and not tags.no_validation else None


def family_members(X, estimator, *, generalise=False):
    """([features of each test], whether they are a family) of X.

    The estimator determines whether three axes are one test or a test for each time. With ``generalise`` they are the
    latter.
    """
    X = list(X) if isinstance(X, Iterator) else X
    if hasattr(X, "get_data") and not hasattr(X, "shape"):
        raise ValueError(f"X is {type(X).__name__}; give its array, X.get_data(), of shape (epochs, channels, times).")
    if isinstance(X, list | tuple) and len(X) and all(len(getattr(member, "shape", ())) == 2 for member in X):
        n_rows = {np.shape(member)[0] for member in X}
        if len(n_rows) > 1:
            raise ValueError(f"X: the matrices of a family have {sorted(n_rows)} rows; all must have the same.")
        return list(X), True
    if np.ndim(X) > 3:
        raise ValueError(f"X has {np.ndim(X)} axes; two (one test) or three (samples, features, times) are possible.")
    if np.ndim(X) == 3:
        return _at_each_time(np.asarray(X), estimator, generalise)
    return [X], False


def _at_each_time(X, estimator, generalise):
    """The members of X with three axes, or X whole."""
    axes, name = axes_taken(estimator), type(estimator).__name__
    if axes == 3 and generalise:
        raise ValueError(
            f"generalise=True tests {name} at each time, on matrices; its first step takes X with three axes. Use steps"
            " that take matrices."
        )
    if axes == 3:
        return [X], False
    if axes is None and not generalise:
        raise ValueError(
            f"X has three axes, and nothing tells whether {name} takes them whole or one time after the other. For a"
            " test of each time give a list of matrices, [X[:, :, t] for t in range(X.shape[2])]. For one test of all"
            " begin the pipeline with a step that has scikit-learn's tag input_tags.three_d_array = True."
        )
    if not X.shape[2]:
        raise ValueError(f"X of shape {X.shape} holds no member: its third axis is empty.")
    return [np.ascontiguousarray(X[:, :, time]) for time in range(X.shape[2])], True
