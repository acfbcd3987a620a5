"""Base classes of the estimators: the expansion k(x)' beta over training rows; fit, prediction and leave-one-out.

``fit`` validates, builds a ``Task``, solves it once and stores the expansion f(x) = k(x)' beta + b. Of confounds c it
stores the mean and the coefficients B; (c - mean)' B is added where a caller gives confounds. The fitted estimator
keeps the factor of P for the leave-one-out methods. Pickles leave it out, and it is computed again on demand.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from foldless._engine.heldout.problem import Problem
from foldless._engine.heldout.rows import tied
from foldless._engine.linalg import concat, copy, is_tensor, like, ones, put, to_host, zeros
from foldless._engine.linalg.threads import threads_by_size
from foldless._engine.linalg.types import MatrixLike
from foldless.estimators.checks import (
    FLOATS,
    StandardizeLike,
    ValidatedRows,
    check_confounds,
    check_gram,
    check_options,
    check_weights,
    is_number,
    validated_rows,
    validated_X,
    warn_of_scale,
    warn_of_size,
)
from foldless.estimators.rows import Ids, PerRow, all_or_nothing, joined_ids, reads_one_state
from foldless.estimators.scaling import TailScaler, fitted_scaler, standardized
from foldless.estimators.tensors import check_new_tensor, check_tensors
from foldless.estimators.versions import Versioned
from foldless.kernels.registry import GammaLike, KernelLike, given_kernel, is_precomputed, penalised_kernel

FEW_ROWS = 20  # rows too few to resolve the width of a kernel from
CHUNK = 2**25  # entries of a kernel matrix evaluated at once in predict
REMEDIES = {
    "standardize": "Scale X before",
    "landmarks": "Give an array of rows",
    "penalty": "Use penalty='rkhs'",
}
NOT_PICKLED = ("_parts", "_qr")  # attributes with a factorisation, which is made again on demand


@dataclass(kw_only=True, eq=False, repr=False)
class KernelExpansion(Versioned):
    """Base of the estimators: their parameters, and all methods but those that solve for coefficients."""

    kernel: KernelLike = field(default="rbf", kw_only=False)
    gamma: GammaLike = "scale"
    degree: int = 3
    coef0: float = 1.0
    alpha: float = 1.0

    X_fit_: Any = field(init=False)
    kernel_: Any = field(init=False)

    @classmethod
    @cache
    def _get_param_names(cls):
        """Names of the parameters, cached: scikit-learn reads the signature at every call, which slows searches."""
        return super()._get_param_names()

    def _warn_of_few_rows(self, stacklevel):
        """Warn that a kernel parameter was resolved from the first few rows of a stream, and stays."""
        n = self.X_fit_.shape[0]
        for name, value in self._taken_from_rows().items() if n < FEW_ROWS else ():
            remedy = REMEDIES.get(name, "Give a number")
            warnings.warn(
                f"{name}={value!r} is resolved from the {n} rows of the first partial_fit and stays: {self.kernel_!r}."
                f" {remedy}, or start with fit or partial_fit on more rows.",
                stacklevel=stacklevel,
            )

    def _taken_from_rows(self):
        """{name: value} of the parameters that the rows of the first fit resolve to numbers, which then stay."""
        return given_kernel(self).unresolved

    def _expand(self, X, beta):
        """k(x)' beta of validated new rows, some rows at a time."""
        step = max(1, CHUNK // len(beta))
        if X.shape[0] > step:
            return concat([self._expand(X[rows], beta) for rows in gen_batches(X.shape[0], step)])
        return self.kernel_.against(X, self.X_fit_, slice(None)) @ beta

    def _check_linear(self, attribute):
        check_is_fitted(self)
        if not self.kernel_.is_linear:
            reason = "an approximation" if self.kernel_.approximates else f"kernel={self.kernel!r}"
            reason = "penalty='coef'" if self.kernel_.squares_condition else reason
            raise AttributeError(f"{attribute} exists for kernel='linear' only, not for {reason}.")

    def __getstate__(self):
        return {name: None if name in NOT_PICKLED else value for name, value in super().__getstate__().items()}

    def __sklearn_is_fitted__(self):
        return hasattr(self, "kernel_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = is_precomputed(self.kernel)
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class KernelMachine(KernelExpansion):
    """Base of the estimators that solve a Task: all methods that do not depend on the meaning of y."""

    penalty: Literal["rkhs", "coef"] = "rkhs"
    fit_intercept: bool = True
    standardize: StandardizeLike = False

    _takes_tensors: ClassVar[bool] = False  # whether the model of a tensor X is made where it lies
    _y_like: ClassVar[Any] = None  # y without rows, if it was a tensor

    # Subclasses define the meaning of y, and how fits are read out.
    _make_task: ClassVar[Callable]  # the Task of validated X, y (labels may be coded), weights and named classes
    _set_attributes: ClassVar[Callable]  # public attributes of the model that has just been stored
    _linear: ClassVar[Callable]  # (coefficients, intercept) of the decision, for weights and offset of the fits

    # -- fitting ---------------------------------------------------------------------------------------------------

    @threads_by_size
    def fit(
        self, X: MatrixLike, y: ArrayLike, sample_weight: PerRow = None, confounds: PerRow = None, ids: Ids = None
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data; the Gram matrix (n_samples, n_samples) for ``kernel="precomputed"``. ``LSSVC`` and ``LSSVR``
            compute where a tensor of torch lies, and give tensors (docs/scale.md).
        y : array-like of shape (n_samples,) or, for regression, (n_samples, n_outputs), labels or values
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the squared errors; rows of weight 0 do not count.
        confounds : array-like of shape (n_samples, n_confounds) or (n_samples,), default=None
            Columns such as age or site that the features may carry and that shall not help to predict y. Scores are
            those of features from which the confounds were regressed, with the coefficients of the training rows. A
            constant added to a column changes nothing. Categories enter as indicators of all levels but one.
        ids : array-like of shape (n_samples,), default=None
            Different hashable values by which ``forget`` can name the rows.
        """
        with all_or_nothing(self) as model:
            model._fit_anew(X, y, sample_weight, confounds, ids)
        return self

    def _fit_anew(self, X, y, sample_weight, confounds, ids, *, classes=None, least=2):
        """Fit copies of the arrays, which updates will use; a Gram matrix, the largest array, is not copied."""
        self.__dict__.pop("_y_like", None)
        X, y, weights = self._validated(X, y, sample_weight, least)
        X = X if is_precomputed(self.kernel) else copy(X) if is_tensor(X) else X.copy()
        weights = None if weights is None else weights.copy()
        task = self._make_task(X, y, weights, classes)
        if confounds is not None:
            task = task.with_confounds(check_confounds(confounds, task.problem.n))
        self._keep_for_updates(weights, joined_ids((), ids, task.problem.n))
        warn_of_size(task.problem)
        parts = task.training_parts()
        self._accept(task, parts.full_fit, task.rule(parts.full_fit), parts)
        warn_of_scale(task.problem)
        return self

    def _keep_for_updates(self, weights, ids):
        """Store what updates need besides the task: the caller's weights and ids, and the current parameters."""
        self._base_weights = weights
        self.ids_ = ids
        self._n_forgotten = 0
        self._settings = self.get_params()

    def _validated(self, X, y, sample_weight, least=2):
        """X as the kernel sees it, y and weights."""
        if not (is_number(self.alpha) and self.alpha > 0):
            raise ValueError(f"alpha={self.alpha!r} must be a finite number > 0; for (nearly) no penalty use 1e-10.")
        check_options(self)
        X, y = self._checked_rows(X, y)
        if X.shape[0] < least:
            raise ValueError(f"n_samples={X.shape[0]}: at least two samples are needed, to fit one and leave one out.")
        weights = None
        if sample_weight is not None:
            weights = check_weights(sample_weight, X)
            if np.count_nonzero(weights) < least:
                needed = "two rows" if least > 1 else "one row"
                raise ValueError(f"sample_weight leaves fewer than {needed} with a positive weight.")
        if is_precomputed(self.kernel):
            check_gram(X)
        self._scaler = self._fitted_scaler(X, weights)
        return self._seen(X), y, weights

    def _checked_rows(self, X, y):
        """X and y as scikit-learn's ``validate_data`` returns them; :class:`ValidatedRows` and their y as they are."""
        if isinstance(X, ValidatedRows):
            X.name_features(self)
            return X.X, y
        if type(X) is not np.ndarray and self._takes_tensors and is_tensor(X):
            if is_tensor(y):
                self.__dict__["_y_like"] = y[:0]
            return check_tensors(self, X, y)
        return validated_rows(self, X, y, dtypes=FLOATS, multi_output=True, y_numeric=False)

    def _coded_targets(self, y):
        """Checked y in the form that ``_make_task`` takes with the least work."""
        return y

    def _fitted_scaler(self, X, weights):
        """The fitted scaler of the features, or None; weights count as repetitions."""
        if not self.standardize:
            return None
        if is_tensor(X):
            raise ValueError(
                f"standardize={self.standardize!r} works on arrays of NumPy, and X is a tensor. Standardise it before."
            )
        if is_precomputed(self.kernel):
            raise ValueError(
                f"standardize={self.standardize!r} needs features; kernel='precomputed' has none. Standardise them"
                " before."
            )
        return fitted_scaler(self.standardize, X, weights)

    def _taken_from_rows(self):
        return penalised_kernel(self).unresolved | ({"standardize": self.standardize} if self.standardize else {})

    def _seen(self, X):
        """Validated rows as the kernel sees them."""
        return X if self._scaler is None else standardized(self._scaler, X)

    def _problem(self, X, weights, base_weights):
        kernel, scaler = penalised_kernel(self), self._scaler
        if scaler is not None:  # landmarks of the user are in the units of X
            if isinstance(scaler, TailScaler) and len(scaler.tails_) and np.ndim(getattr(kernel, "landmarks", "")):
                raise ValueError(
                    f"standardize='robust' does not go with rows as landmarks, {kernel!r}: use standardize=True, or"
                    " landmarks='kmeans'."
                )
            center = scaler.mean_ if scaler.with_mean else np.zeros(scaler.n_features_in_)
            kernel = kernel.standardized(center, scaler.scale_)
        kernel = kernel.resolved(X, base_weights)
        shape = X.shape[0], 1 if self.fit_intercept else 0
        Q = ones(X, shape) if is_tensor(X) else np.ones(shape, X.dtype)
        return Problem.of(kernel, X, float(self.alpha), Q, sample_weight=weights)

    def _accept(self, task, model, rule, parts=None):
        """Store a solved model of ``task`` and its trained rule as the fitted state."""
        problem = task.problem
        basis, beta = model.expansion()
        self._fitted_task = task
        self._rule = rule
        self._parts = parts
        self._loo_values = None
        self.X_fit_ = problem.X
        self.kernel_ = problem.kernel
        self.holder_ = model.choice
        self._dual = put(zeros(beta, (problem.n, beta.shape[1])), basis, beta)
        self._weights, B = model.in_features()
        if problem.kernel.squares_condition:  # coefficients of the basis functions
            self._dual = self._weights
        mean = problem.mean_columns()
        self._offset = mean @ B  # confounds at their mean
        self._confound_B = B[problem.n_shown :]
        self._confound_mean = problem.origin + to_host(mean[problem.n_shown :])
        self._set_attributes()
        return self

    # -- prediction ------------------------------------------------------------------------------------------------

    @threads_by_size
    @reads_one_state
    def _fits(self, X, confounds=None):
        """Regression fits at new X, shape (n, m), equal for equal rows; missing confounds are at their mean."""
        check_is_fitted(self)
        if not self._is_plain(X):
            X = check_new_tensor(self, X) if is_tensor(self.X_fit_) else validated_X(self, X, dtype=FLOATS)
        X = self._seen(X)
        offset, tables = self._offset, [X]
        if confounds is not None:
            centred = self._new_confounds(confounds, X) - self._confound_mean
            offset, tables = offset + like(self._confound_B, centred) @ self._confound_B, [X, centred]
        by_features = self._weights is not None
        values = self._by_features(X, self._weights) if by_features else self._expand(X, self._dual)
        return tied(values + offset, *tables)

    def _by_features(self, X, weights):
        """phi(x)' weights of validated new rows, by explicit features phi of some rows at a time."""
        step = max(1, CHUNK // len(weights))
        if X.shape[0] > step and not self.kernel_.is_linear:
            return concat([self._by_features(X[rows], weights) for rows in gen_batches(X.shape[0], step)])
        return self.kernel_.features(X) @ weights

    def _is_plain(self, X):
        """Whether scikit-learn's validation, slower than an update of one row, would find nothing to do."""
        return (
            type(X) is np.ndarray
            and X.ndim == 2
            and len(X) > 0
            and X.dtype == self._dual.dtype
            and X.shape[1] == self.n_features_in_
            and bool(np.isfinite(X).all())
            and not hasattr(self, "feature_names_in_")
        )

    def _new_confounds(self, confounds, X):
        """Confounds of validated new rows."""
        k = len(self._confound_B)
        if not k:
            raise ValueError(f"confounds: this {type(self).__name__} was fitted without; give them to fit as well.")
        C = check_confounds(confounds, X.shape[0])
        if C.shape[1] != k:
            raise ValueError(f"confounds has {C.shape[1]} columns; the model was fitted with {k}.")
        return C

    # -- leave-one-out ---------------------------------------------------------------------------------------------

    def _loo(self):
        """The held-out algebra of the training data, made again after unpickling."""
        check_is_fitted(self)
        parts = self._parts
        if parts is None or not parts.full_fit.current:
            self._parts = parts = self._fitted_task.training_parts()
        return parts

    @threads_by_size
    @reads_one_state
    def _loo_decisions(self):
        """Fits or decisions of all training rows, each by the model without it."""
        parts = self._loo()
        if self._loo_values is None:
            self._loo_values = self._fitted_task.loo_outputs(parts, self._rule, "decision")
        return copy(self._loo_values)

    # -- coefficients ----------------------------------------------------------------------------------------------

    @property
    @reads_one_state
    def coef_(self) -> np.ndarray:
        """Weights of the features; only with ``kernel="linear"``."""
        self._check_linear("coef_")
        return self._linear(*self._in_units_of_X())[0]

    def _in_units_of_X(self):
        """(weights, offset) of a linear kernel, for features that are not standardised."""
        if self._scaler is None or not self.kernel_.is_linear:
            return self._weights, self._offset
        if isinstance(self._scaler, TailScaler) and len(self._scaler.tails_):
            columns = self._scaler.tails_[:5].tolist()
            raise AttributeError(
                f"coef_ exists for standardize=True and False: with 'robust' columns {columns} are normal scores, in"
                " which the model is not linear."
            )
        weights = self._weights / self._scaler.scale_.astype(self._weights.dtype)[:, None]
        center = self._scaler.mean_ if self._scaler.with_mean else np.zeros(len(weights))
        return weights, self._offset - center.astype(weights.dtype) @ weights

    @property
    @reads_one_state
    def confound_coef_(self) -> np.ndarray:
        """Coefficients of the confounds about their mean, as ``coef_`` those of the features; only with confounds."""
        check_is_fitted(self)
        if not len(self._confound_B):
            raise AttributeError("confound_coef_ exists only after fit(X, y, confounds=...).")
        return self._linear(self._confound_B, self._offset)[0]
