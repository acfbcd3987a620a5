"""X and y as arrays of other kinds than NumPy's, tensors of torch above all.

LSSVC and LSSVR compute where X lies, and their fits and decisions are arrays of its kind there. Labels, weights and
confounds are few numbers: they become arrays of NumPy, and predicted labels arrays like y. All other estimators, and
the functions that cross-validate, take tensors as arrays of NumPy.
"""

import numpy as np
from sklearn.utils import check_array, check_consistent_length

from foldless._engine.linalg import double, is_tensor, like, namespace, on_host


def check_tensor(estimator, X):
    """A tensor X (n, d) of finite numbers, in single or double precision."""
    name = type(estimator).__name__
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got {X.ndim}D array instead: X has shape {tuple(X.shape)}.")
    for size, what in zip(X.shape, ("sample", "feature"), strict=True):
        if not size:
            raise ValueError(
                f"Found array with 0 {what}(s) (shape={tuple(X.shape)}) while a minimum of 1 is required by {name}."
            )
    X, xp = X.detach() if hasattr(X, "detach") else X, namespace(X)
    if xp.isdtype(X.dtype, "complex floating"):
        raise ValueError("Complex data not supported: X holds complex numbers.")
    if X.dtype not in (xp.float32, xp.float64):
        X = double(X)
    if not xp.all(xp.isfinite(X)):
        raise ValueError("Input X contains NaN, infinity or a value too large for its type.")
    return X


def check_tensors(estimator, X, y):
    """A tensor X and y, an array of NumPy, of the rows that an estimator is fitted to."""
    X = check_tensor(estimator, X)
    y = check_array(on_host(y), ensure_2d=False, dtype=None, input_name="y")
    check_consistent_length(np.empty((X.shape[0], 0)), y)
    vars(estimator).pop("feature_names_in_", None)
    estimator.n_features_in_ = X.shape[1]
    return X, y


def check_new_tensor(estimator, X):
    """New rows X of a model that was fitted to a tensor, with its precision."""
    fitted = estimator.X_fit_
    if type(X) is not type(fitted) or getattr(X, "device", None) != getattr(fitted, "device", None):
        raise ValueError(
            f"X is {_described(X)}, and {type(estimator).__name__} was fitted to {_described(fitted)}. Arrays must be"
            " of the same kind, on the same device: move X, or fit again."
        )
    X = check_tensor(estimator, X)
    if X.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting {estimator.n_features_in_}"
            " features as input."
        )
    return like(fitted, X)


def _described(X):
    device = getattr(X, "device", None)
    return f"a {type(X).__name__}" + ("" if device is None or isinstance(X, np.ndarray) else f" on {device}")


def require_numpy(estimator, what):
    """Raise an error for ``what``, a method or parameter, where an estimator was fitted to a tensor."""
    if is_tensor(estimator.X_fit_):
        raise ValueError(
            f"{what} works on arrays of NumPy, and {type(estimator).__name__} was fitted to a tensor. Fit it to"
            " X.cpu().numpy()."
        )
