"""Checks of the estimators' arguments. Errors name the argument, its value and what to give instead."""

import sys
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import date, time, timedelta
from functools import cache
from numbers import Integral, Real
from types import FrameType
from typing import Any, Literal, TypeAlias, get_args, get_origin, get_type_hints

import numpy as np
import scipy.sparse as sp
from sklearn.utils import assert_all_finite, check_array, indexable
from sklearn.utils.validation import _check_sample_weight, validate_data

from foldless._engine.heldout.caution import caution, caution_of_call, caution_of_size, long_fit
from foldless._engine.linalg import host_dtype, is_tensor, on_host
from foldless._engine.readout.codings import chosen_codes
from foldless._engine.readout.strata import chance_if_below
from foldless.kernels.matrices import canonical
from foldless.kernels.parameters import did_you_mean
from foldless.kernels.registry import check_symmetric

FLOATS = [np.float64, np.float32]  # precisions of X that are kept
StandardizeLike: TypeAlias = Literal[False, True, "robust"]
NUMERIC = "fiubc"  # kinds of types of NumPy and pandas
announced: set[str] = set()  # messages about long fits in this process; Python forgets which it has shown
DATES = (date, time, timedelta, np.datetime64, np.timedelta64)


def check_option(name, value, allowed):
    """Refuse a value that is not among those allowed."""
    switches = any(isinstance(option, bool) for option in allowed)
    is_option = value is None or isinstance(value, str) or (switches and isinstance(value, bool | np.bool_))
    if not is_option or value not in allowed:
        hint = (
            did_you_mean(value, [option for option in allowed if isinstance(option, str)])
            if isinstance(value, str)
            else ""
        )
        message = f"{name}={value!r} is unknown; use one of {', '.join(map(repr, allowed))}. {hint}"
        raise ValueError(message.rstrip())


def check_whole(name, value, least):
    """Refuse a value that is not an integer of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name}={value!r} must be a whole number of at least {least}.")


def check_options(estimator):
    """Refuse values of parameters whose type is a Literal or bool and does not allow them."""
    for name, kind in _types(estimator.__class__).items():
        value = getattr(estimator, name, None)
        if get_origin(kind) is Literal:
            check_option(name, value, get_args(kind))
        if kind is bool and not isinstance(value, bool | np.bool_):
            raise ValueError(f"{name}={value!r} must be True or False.")


@cache
def _types(kind):
    """Types of the parameters of an estimator, by name."""
    hints = get_type_hints(kind)
    return {parameter.name: hints[parameter.name] for parameter in fields(kind)}


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
    """Weights of the rows of X, >= 0 and in its precision, as an array of NumPy."""
    if is_tensor(X):
        X = np.empty((X.shape[0], 1), host_dtype(X))
    sample_weight = on_host(sample_weight)
    weights = _check_sample_weight(sample_weight, X, dtype=X.dtype, ensure_non_negative=True)
    largest = weights.max(initial=0)
    normal = np.finfo(X.dtype).tiny
    if 0 < largest < normal:
        raise ValueError(
            f"sample_weight: its largest value is {largest:.3g}, and {X.dtype} loses digits below {normal:.3g}."
            " Multiply all weights by a large number, and alpha as well if the model is to stay the same."
        )
    return weights


@dataclass(frozen=True, eq=False)
class Confounds:
    """Confounds, and whether predictions include what the confounds explain.

    The functions of ``foldless.model_selection`` take it in the place of the array of confounds.

    Parameters
    ----------
    values : array-like of shape (n_samples, n_confounds) or (n_samples,)
        Columns such as age or site.
    in_score : bool, default=False
        Whether held-out predictions include what the confounds explain: they are then features without penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from foldless import LSSVR
    >>> from foldless.model_selection import Confounds, cross_val_score
    >>> rng = np.random.default_rng(0)
    >>> X, age = rng.normal(size=(60, 3)), rng.normal(size=60)
    >>> y = X[:, 0] + 2 * age + rng.normal(size=60)
    >>> print(cross_val_score(LSSVR("linear"), X, y, confounds=age).mean().round(2))
    -0.02
    >>> print(cross_val_score(LSSVR("linear"), X, y, confounds=Confounds(age, in_score=True)).mean().round(2))
    0.87
    """

    values: Any
    in_score: bool = False

    def __post_init__(self):
        """Check that there are values."""
        if self.values is None:
            raise ValueError("confounds=Confounds(None): there are no confounds; give an array, or confounds=None.")
        if not isinstance(self.in_score, bool | np.bool_):
            raise ValueError(f"confounds: in_score={self.in_score!r} must be True or False.")


def as_confounds(confounds):
    """The :class:`Confounds` of the argument ``confounds=``; None where there are none."""
    return confounds if confounds is None or isinstance(confounds, Confounds) else Confounds(confounds)


def confounds_left_out(confounds, what):
    """The array of the argument ``confounds=`` for ``what``, whose predictions leave out the confounds' part."""
    confounds = as_confounds(confounds)
    if confounds is not None and confounds.in_score:
        raise ValueError(
            f"confounds: in_score=True is not possible for {what}, whose predictions leave out what the confounds"
            " explain. Give the array alone."
        )
    return None if confounds is None else confounds.values


def check_confounds(confounds, n):
    """Confounds of n rows as a finite array (n, k) of doubles; one dimension is one column."""
    if isinstance(confounds, Confounds):
        raise ValueError("confounds: Confounds(...) is for the functions of foldless.model_selection; give its values.")
    try:
        C = check_array(confounds, dtype=None, ensure_2d=False, input_name="confounds")
        if C.dtype.kind not in "fiub":
            for value in C.ravel().tolist():
                if not isinstance(value, Real):  # "1.5" is a label as "low" is, and a date counts in days or in years
                    raise ValueError(f"{value!r} is no number.")
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
    """X as a dense or a sparse array, whichever ``stored``, the rows of a model, are."""
    if sp.issparse(stored):
        return X if sp.issparse(X) else sp.csr_array(X)
    return X.toarray() if sp.issparse(X) else X


def value_columns(y, dtype):
    """Finite values y as columns (n, m), a copy: of ``dtype``, or of float64 where ``dtype`` would round them."""
    values, dtype = np.asarray(y), np.dtype(dtype)
    try:
        with np.errstate(over="ignore"):
            values = np.array(values, dtype=dtype if np.can_cast(values.dtype, dtype) else np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"y must hold numbers; found values of type {values.dtype} such as {y[0]!r}.") from None
    if not (np.abs(values) <= np.finfo(dtype).max).all():
        raise ValueError(f"y holds NaN, infinity or values too large for {dtype}; give finite targets.")
    return values.reshape(len(values), -1)


def is_plain_target(y, n):
    """Whether y is an array of n labels or finite numbers."""
    if type(y) is not np.ndarray or y.shape != (n,):
        return False
    return y.dtype.kind in "iubU" or (y.dtype.kind == "f" and bool(np.isfinite(y).all()))


def warn_caller(message, category=UserWarning):
    """Warn at the line of the caller's code that called foldless."""
    level = 1
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "foldless":
        level += 1
        frame = frame.f_back
    warnings.warn(message, category, stacklevel=level)


def warn_of_scale(problem):
    """Warn of data, kernel or alpha from which a model can hardly learn."""
    warning = caution(problem)
    if warning is not None:
        warn_caller(warning)


def warn_of_size(problem):
    """Warn of a fit that takes long, before it begins; once for each size, however often it is refitted."""
    _announce(caution_of_size(problem))


def warn_of_long_call(problem, call, flops, arrays):
    """The same of a ``call``, in words, that takes so many flops and arrays of n x n numbers."""
    warning = caution_of_call(problem, call, flops, arrays)
    if warning is not None:
        _announce(warning)


def warn_of_size_by_cost(n, cost, kernel):
    """The same of a fit in double precision of n rows with this (flops, number of n x n arrays)."""
    flops, arrays = cost
    if not kernel.approximates:
        _announce(long_fit(n, flops, arrays, np.float64, takes_rows=kernel.takes_rows))


def _announce(warning):
    """Warn, once in this process."""
    if warning is not None and str(warning) not in announced:
        warn_caller(warning)
        announced.add(str(warning))  # after the warning, which may have become an error


def warn_of_strata(decisions, codes):
    """Warn where leave-one-out decisions are right far less often than chance: by three standard errors and 5 %."""
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


@dataclass(frozen=True, eq=False)
class ValidatedRows:
    """Rows X that an estimator of foldless has checked, with the names of their features, None where they have none.

    ``fit`` and predictions of foldless' estimators take them in the place of X, and y is then not checked again. They
    are indexed as their array is.
    """

    X: Any
    names: np.ndarray | None = None

    @property
    def shape(self):
        """That of the array."""
        return self.X.shape

    @property
    def dtype(self):
        """That of the array."""
        return self.X.dtype

    def __len__(self):
        return self.X.shape[0]

    def __getitem__(self, key):
        """Some rows, or some rows and columns."""
        names = self.names
        if names is not None and isinstance(key, tuple) and key[1] is not Ellipsis:
            names = names[np.ravel(key[1])]
        return ValidatedRows(self.X[key], names)

    def name_features(self, estimator):
        """Store the number of features, and their names, in an estimator that is fitted to these rows."""
        vars(estimator).pop("feature_names_in_", None)
        estimator.n_features_in_ = self.X.shape[1]
        if self.names is not None:
            estimator.feature_names_in_ = self.names


def rows_and_labels(X, y, *others):
    """X, y and others by scikit-learn's ``indexable``, after a check that no label is missing."""
    if type(X) is not np.ndarray or type(y) is not np.ndarray:
        X, y = on_host(X), on_host(y)
    check_labels_there(y)
    return indexable(X, y, *others)


def validated_X(estimator, X, **options):
    """X of new rows as ``validate_data`` of scikit-learn returns it; of sparse entries at one place the sum."""
    if isinstance(X, ValidatedRows):
        return X.X
    X = on_host(X)
    with _columns_are_numbers(X):
        return canonical(validate_data(estimator, X, accept_sparse="csr", reset=False, **options))


def validated_rows(estimator, X, y, *, dtypes, reset=True, **options):
    """The same of X and y; missing labels are named by their row."""
    if reset and are_plain(X, y, dtypes):
        ValidatedRows(X).name_features(estimator)
        return X, y
    X, y = on_host(X), on_host(y)
    check_labels_there(y)
    with _columns_are_numbers(X):
        if is_plain_target(y, X.shape[0] if hasattr(X, "shape") and len(X.shape) else None):
            X = validate_data(estimator, X, accept_sparse="csr", dtype=dtypes, reset=reset)
        else:
            X, y = validate_data(estimator, X, y, accept_sparse="csr", dtype=dtypes, reset=reset, **options)
    return canonical(X), y


def are_plain(X, y, dtypes):
    """Whether X and y are arrays in which scikit-learn, slower than the rest of a small fit, would find nothing."""
    if not (type(X) is np.ndarray and X.ndim == 2 and X.size and X.dtype in dtypes and is_plain_target(y, len(X))):
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(X.sum()))  # a sum that overflows is looked at entry by entry


@contextmanager
def _columns_are_numbers(X):
    """Name the first column of X that holds dates or texts; NumPy and polars would turn dates into numbers silently."""
    if not isinstance(X, list | tuple):
        _refuse_dates(X)
    try:
        yield
    except (TypeError, ValueError) as error:
        if "could not convert" in str(error) or "must be a string or a real number" in str(error):
            _refuse_dates(X)
            _refuse_texts(X)
        raise


def _refuse_dates(X):
    """Refuse columns of dates, times and durations."""
    for column, values in _columns_of_objects(X):
        if values.dtype.kind in "mM" or any(isinstance(value, DATES) for value in values):
            raise ValueError(
                f"X: column {column} holds dates or times, and numbers are needed. Replace it by numbers, for instance"
                " days since the first date, month or hour, or leave it out; the command foldless report takes tables"
                " as they are."
            ) from None


def _refuse_texts(X):
    """Refuse columns of texts that are not numbers."""
    for column, values in _columns_of_objects(X):
        if any(map(_is_text, values)):
            raise ValueError(
                f"X: column {column} holds texts or categories, and numbers are needed. Encode it, by OneHotEncoder in"
                " a ColumnTransformer (say), or leave it out; the command foldless report takes tables as they are."
            ) from None


def _is_text(value):
    """Whether a value is a text that float does not read; "1.5" is a number to scikit-learn."""
    if not isinstance(value, str | bytes):
        return False
    try:
        float(value)
    except ValueError:
        return True
    return False


def _columns_of_objects(X):
    """(name or number, values) of the columns of X whose type is not a numeric one."""
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        types = [getattr(dtype, "kind", "O") for dtype in X.dtypes]  # polars' types have no kind
        names = [name for name, kind in zip(X.columns, types, strict=True) if kind not in NUMERIC]
        columns = [(repr(name), np.ravel(np.asarray(X[name]))) for name in names]
    else:
        table = np.empty((0, 0)) if sp.issparse(X) else np.asarray(X)
        if table.ndim != 2 or table.dtype.kind in NUMERIC:
            return []
        columns = [(f"{number} (the first is 0)", values) for number, values in enumerate(table.T)]
    return [(name, values) for name, values in columns if values.dtype.kind not in NUMERIC]


def dense(y):
    """y as it is, or as an array if it is sparse."""
    return y.toarray() if sp.issparse(y) else y
