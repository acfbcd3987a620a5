"""Kernels by name, with parameters made numbers from the data (labels are never seen)."""

from dataclasses import fields
from numbers import Real

import numpy as np
import scipy.sparse as sp

from foldless.kernels.distance import RBF, Laplacian
from foldless.kernels.given import Custom, Precomputed
from foldless.kernels.inner import Boolean, Cosine, Linear, Poly

KERNELS = {
    "linear": Linear,
    "poly": Poly,
    "rbf": RBF,
    "laplacian": Laplacian,
    "boolean": Boolean,
    "cosine": Cosine,
    "precomputed": Precomputed,
}


def resolve(kernel, X, *, gamma="scale", degree=3, coef0=1.0, eta=1.0, sample_weight=None):
    """The kernel object for a name or a callable, its parameters checked and made numbers from X.

    Labels are never seen. ``gamma="scale"`` is 1 / (n_features * X.var()), weights counted as repetitions.
    """
    if callable(kernel):
        return Custom(kernel)
    if not isinstance(kernel, str) or kernel not in KERNELS:
        raise ValueError(f"kernel={kernel!r} is unknown; use one of {sorted(KERNELS)} or a callable k(X, Z).")
    kind = KERNELS[kernel]
    parameters = {"degree": degree, "coef0": coef0, "eta": eta}
    wanted = {field.name for field in fields(kind)}
    if "gamma" in wanted:
        parameters["gamma"] = _resolve_gamma(gamma, X, sample_weight)
    for name in wanted - {"gamma"}:
        value = parameters[name]
        if (
            not isinstance(value, Real)
            or not np.isfinite(float(value))
            or value < 0
            or (name != "coef0" and value == 0)
        ):
            low = ">= 0" if name == "coef0" else "> 0"
            raise ValueError(f"{name}={value!r} must be a finite number {low} for kernel={kernel!r}.")
        if name == "degree" and not float(value).is_integer():
            raise ValueError(f"degree={value!r} must be an integer: other powers are no kernels.")
    return kind(**{name: parameters[name] for name in wanted})


def _resolve_gamma(gamma, X, sample_weight):
    n_features = X.shape[1]
    if isinstance(gamma, str):
        if gamma != "scale":
            raise ValueError(f"gamma={gamma!r} is unknown; use 'scale', a positive number, or one per feature.")
        variance = _variance(X, sample_weight)
        total = n_features * variance
        if not np.isfinite(total):
            raise ValueError("gamma='scale' overflows: X is too large to be squared; rescale X or give gamma.")
        return 1.0 / total if total > 1e-307 else 1.0 / n_features  # no variance, or one without an inverse
    values = np.asarray(gamma, dtype=float)
    if values.ndim > 1 or (values.ndim == 1 and values.shape != (n_features,)):
        raise ValueError(
            f"gamma has shape {values.shape}; use one number or one value for each of the {n_features} features."
        )
    if not np.all(np.isfinite(values)) or np.any(values < 0) or not np.any(values > 0):
        raise ValueError(f"gamma={gamma!r} must be positive and finite (zero only switches single features off).")
    return values if values.ndim else float(values)


def _variance(X, sample_weight):
    """Variance of all entries of X, rows repeated by their weights."""
    share = np.ones(X.shape[0]) if sample_weight is None else np.asarray(sample_weight, float)
    share = share / (share.sum() * X.shape[1])
    # Divided by the largest entry first: squares of 1e200 would overflow.
    largest = float(abs(X).max()) if X.shape[0] else 0.0
    if largest == 0 or not np.isfinite(largest):
        return 0.0
    Z = X / largest
    mean = float(share @ np.asarray(Z.sum(1)).ravel())
    if sp.issparse(Z):
        zeros = Z.shape[1] - np.diff(Z.indptr)
        deviations = sp.csr_array((np.square(Z.data - mean), Z.indices, Z.indptr), Z.shape)
        spread = float(share @ (np.asarray(deviations.sum(1)).ravel() + zeros * mean**2))
    else:
        spread = float(share @ np.square(Z - mean).sum(1))
    return spread * largest * largest if spread > (100 * np.finfo(float).eps) ** 2 else 0.0
