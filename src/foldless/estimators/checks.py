"""Arguments of the estimators: what is wrong with them, and what to give instead."""

import sys
import warnings
from dataclasses import fields
from difflib import get_close_matches
from functools import cache
from numbers import Integral, Real
from types import FrameType
from typing import Literal, get_args, get_origin, get_type_hints

import numpy as np
import scipy.sparse as sp
from sklearn.utils import assert_all_finite, check_array, indexable
from sklearn.utils.validation import _check_sample_weight, validate_data

from foldless.heldout.caution import caution
from foldless.kernels.base import canonical
from foldless.kernels.registry import check_symmetric
from foldless.readout.codings import chosen_codes
from foldless.readout.strata import chance_if_below

FLOATS = [np.float64, np.float32]  # precisions of X that are kept


def check_option(name, value, allowed):
    """Refuse a value that is not among those allowed."""
    if not (value is None or isinstance(value, str)) or value not in allowed:
        near = get_close_matches(value, [each for each in allowed if each], 1) if isinstance(value, str) else []
        meant = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"{name}={value!r} is unknown; use one of {', '.join(map(repr, allowed))}.{meant}")


def check_whole(name, value, least):
    """Refuse what is no whole number, or too small a one."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name}={value!r} must be a whole number of at least {least}.")


def check_options(estimator):
    """Refuse values of parameters that their type does not allow, where it is a Literal or bool."""
    for name, kind in _types(estimator.__class__).items():
        value = getattr(estimator, name, None)
        if get_origin(kind) is Literal:
            check_option(name, value, get_args(kind))
        if kind is bool and not isinstance(value, bool | np.bool_):
            raise ValueError(f"{name}={value!r} must be True or False.")


@cache
def _types(kind):
    """Types of the parameters of an estimator, by name."""
    known = get_type_hints(kind)
    return {each.name: known[each.name] for each in fields(kind)}


def is_number(value):
    """Whether a value is a finite real number; True and False are none."""
    return isinstance(value, Real) and not isinstance(value, bool) and bool(np.isfinite(float(value)))


def numbers(values):
    """A finite float array of the values, or None where they are not finite numbers."""
    try:
        array = np.array(list(values), float)
    except (TypeError, ValueError):
        return None
    return array if np.isfinite(array).all() else None


def check_weights(sample_weight, X):
    """Weights of the rows of X, >= 0 and in its precision."""
    weights = _check_sample_weight(sample_weight, X, dtype=X.dtype, ensure_non_negative=True)
    largest = weights.max(initial=0)
    normal = np.finfo(X.dtype).tiny
    if 0 < largest < normal:
        raise ValueError(
            f"sample_weight: its largest value is {largest:.3g}, and {X.dtype} loses digits below {normal:.3g}."
            " Multiply all weights by a large number, and alpha as well if the model is to stay the same."
        )
    return weights


def check_confounds(confounds, n):
    """Confounds of n rows as a finite array (n, k) of doubles; one dimension is one column."""
    try:
        C = check_array(confounds, dtype=None, ensure_2d=False, input_name="confounds")
        others = (
            [each for each in C.ravel().tolist() if not isinstance(each, Real)] if C.dtype.kind not in "fiub" else []
        )
        if others:  # "1.5" is a label as "low" is, and a date counts in days or in years
            raise ValueError(f"{others[0]!r} is no number.")
        C = C.astype(float)
        assert_all_finite(C, input_name="confounds")
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"confounds: {error} They must be finite numbers, one row for each of X; code categories by indicators of"
            " all levels but one (sklearn.preprocessing.OneHotEncoder(drop='first', sparse_output=False))."
        ) from None
    C = C.reshape(len(C), -1)
    if len(C) != n:
        raise ValueError(f"confounds has {len(C)} rows and X has {n}; give one row for each of X.")
    return C


def check_gram(K):
    """A precomputed training kernel must be square and symmetric."""
    check_square(K)
    check_symmetric(K, "the precomputed kernel")


def check_square(K):
    """A precomputed training kernel must be square."""
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"Precomputed matrix must be a square matrix: X has shape {K.shape}. kernel='precomputed' expects the Gram"
            " matrix of the training rows in fit, and (n_new, n_train) in predict."
        )


def as_stored(X, stored):
    """Rows dense or sparse, as those that a model has."""
    if sp.issparse(stored):
        return X if sp.issparse(X) else sp.csr_array(X)
    return X.toarray() if sp.issparse(X) else X


def is_plain_target(y, n):
    """Whether y is an array of n labels or finite numbers."""
    if type(y) is not np.ndarray or y.shape != (n,):
        return False
    return y.dtype.kind in "iubU" or (y.dtype.kind == "f" and bool(np.isfinite(y).all()))


def warn_caller(message, category=UserWarning):
    """Warn at the line that called foldless, however many of its functions lie between."""
    level = 1
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "foldless":
        level += 1
        frame = frame.f_back
    warnings.warn(message, category, stacklevel=level)


def warn_of_scale(problem):
    """Warn of data, kernel or alpha from which a model can hardly learn."""
    found = caution(problem)
    if found is not None:
        warn_caller(found)


def warn_of_strata(decisions, codes):
    """Warn where leave-one-out decisions are right less often than chance."""
    chance = chance_if_below(decisions, codes)
    if chance is not None:
        warn_caller(
            f"leave-one-out misleads: {np.mean(chosen_codes(decisions) == codes):.0%} of the labels are right, and"
            f" {chance:.0%} would be by chance. Without a row its class is the rarer one, and a strong penalty lets"
            " little else decide. Use stratified_loo_score_ or cv=StratifiedLeaveOneOut(), or a smaller alpha."
        )


def check_labels_there(y):
    """Refuse labels that are missing: None, or nan among texts."""
    values = np.asarray(y) if hasattr(y, "__array__") or isinstance(y, list | tuple) else np.empty(0)
    if values.dtype != object or values.ndim != 1:
        return
    for row, value in enumerate(values.tolist()):
        if value is None or (isinstance(value, float) and value != value):
            raise ValueError(
                f"y holds {value!r} in row {row} (the first is 0): a label is missing. Leave such rows out of X and y."
            )


def rows_and_labels(X, y, *others):
    """All as arrays or frames of the same length, as scikit-learn's ``indexable`` says; no label is missing."""
    check_labels_there(y)
    return indexable(X, y, *others)


def validated_X(estimator, X, **options):
    """X of new rows as ``validate_data`` of scikit-learn returns it; of sparse entries at one place the sum."""
    return canonical(validate_data(estimator, X, accept_sparse="csr", reset=False, **options))


def validated_rows(estimator, X, y, *, dtypes, reset=True, **options):
    """The same of X and y; columns of texts are named, and missing labels by their row."""
    if reset and _are_plain(X, y, dtypes):
        vars(estimator).pop("feature_names_in_", None)
        estimator.n_features_in_ = X.shape[1]
        return X, y
    check_labels_there(y)
    try:
        X, y = validate_data(estimator, X, y, accept_sparse="csr", dtype=dtypes, reset=reset, **options)
        return canonical(X), y
    except ValueError as error:
        texts = _columns_of_texts(X) if "could not convert" in str(error) else []
        if not texts:
            raise
        raise ValueError(
            f"X: column {texts[0]!r} holds texts or categories, and numbers are needed. Encode it, by OneHotEncoder in"
            " a ColumnTransformer (say), or leave it out; the command foldless report takes tables as they are."
        ) from None


def _are_plain(X, y, dtypes):
    """Whether X and y are arrays in which scikit-learn, slower than the rest of a small fit, would find nothing."""
    if not (type(X) is np.ndarray and X.ndim == 2 and X.size and X.dtype in dtypes and is_plain_target(y, len(X))):
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(X.sum()))  # a sum that overflows is looked at entry by entry


def _columns_of_texts(X):
    """Names of the columns of a frame that are no numbers."""
    names = list(getattr(X, "columns", ()))
    return [name for name in names if np.asarray(X[name]).dtype.kind not in "fiub"]


def dense(y):
    """y as it is, or as an array if it is sparse."""
    return y.toarray() if sp.issparse(y) else y
