"""What the three estimators share: validation, the task, prediction, leave-one-out.

Numerics live below: ``fit`` validates, builds a ``Task``, solves it once and stores the expansion f(x) = k(x)' beta +
b, and the coefficients B of confounds c, whose part c' B is added only where a caller gives them. The factor of P stays
with the fitted estimator for the leave-one-out methods; it is left out of pickles and made again on demand.
"""

from numbers import Real

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, gen_batches
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from foldless.estimators.rows import check_ids
from foldless.estimators.state import all_or_nothing
from foldless.heldout.problem import Problem
from foldless.kernels import check_symmetric, resolve

CHUNK = 2**25  # entries of a kernel matrix evaluated at once in predict


class KernelMachine(BaseEstimator):
    """Base of the estimators: everything but the meaning of y."""

    # -- fitting ---------------------------------------------------------------------------------------------------

    def fit(self, X, y, sample_weight=None, confounds=None, ids=None):
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data; the Gram matrix (n_samples, n_samples) for ``kernel="precomputed"``.
        y : array-like of shape (n_samples,) or, for regression, (n_samples, n_outputs)
            Labels or values.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the squared errors; rows of weight 0 do not count.
        confounds : array-like of shape (n_samples, n_confounds) or (n_samples,), default=None
            Columns fitted beside the intercept, without penalty, and left out of all scores: what they explain of y,
            the features do not. They are taken as given; centre them, so that a cut at 0 keeps its meaning (a constant
            added to a column moves the scores by minus that constant times its coefficient). Categories enter as
            indicators of all levels but one.
        ids : array-like of shape (n_samples,), default=None
            Different hashable values by which ``forget`` can name the rows.

        Returns
        -------
        self : object
        """
        with all_or_nothing(self):
            X, y, weights = self._validated(X, y, sample_weight)
            X, y, weights = self._owned(X, y, weights)
            return self._fit_task(self._make_task(X, y, weights), weights, confounds, ids)

    def _owned(self, X, y, weights):
        """Copies: updates continue from these rows, whatever the caller writes into the arrays by then.

        A precomputed kernel matrix is not copied; it is the largest array of all.
        """
        return (X if self.kernel == "precomputed" else X.copy()), y.copy(), None if weights is None else weights.copy()

    def _fit_task(self, task, weights, confounds, ids):
        """Solve a task of validated data and store it, with all that later updates continue from."""
        if confounds is not None:
            task = task.with_confounds(check_confounds(confounds, task.problem.n, task.problem.dtype))
        self._remember(weights, check_ids(ids, task.problem.n, ()))
        holdout = task.training_parts()
        return self._accept(task, holdout.whole, task.rule(holdout.whole), holdout)

    def _remember(self, weights, ids):
        """What updates continue from, besides the task: the caller's weights and ids, the parameters as they are."""
        self._base_weights, self.ids_ = weights, ids
        self._n_forgotten, self._settings = 0, self.get_params(deep=False)

    def _task(self, X, y, sample_weight):
        """Validated data as a Task; sets only the attributes that describe the input."""
        return self._make_task(*self._validated(X, y, sample_weight))

    def _validated(self, X, y, sample_weight, *, least=2):
        """X, y and weights of a fit."""
        self._check_parameters()
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            multi_output=True,
            y_numeric=False,
        )
        if X.shape[0] < least:
            raise ValueError(f"n_samples={X.shape[0]}: at least two samples are needed, to fit one and leave one out.")
        weights = None
        if sample_weight is not None:
            weights = check_weights(sample_weight, X)
            if np.count_nonzero(weights) < least:
                raise ValueError(
                    f"sample_weight leaves fewer than {'two rows' if least > 1 else 'one row'} with a positive weight."
                )
        if self.kernel == "precomputed":
            check_square(X)
            check_symmetric(X, "the precomputed kernel")
        return X, y, weights

    def _kernel(self, X, base_weights):
        """The kernel of validated X; gamma is resolved with the user's weights only (labels are not seen)."""
        return resolve(
            self.kernel,
            X,
            gamma=self.gamma,
            degree=self.degree,
            coef0=self.coef0,
            eta=self.eta,
            sample_weight=base_weights,
        )

    def _problem(self, X, weights, base_weights):
        """The Problem of validated X."""
        kernel = self._kernel(X, base_weights)
        Q = np.ones((X.shape[0], 1 if self.fit_intercept else 0), X.dtype)
        return Problem(
            kernel,
            X,
            alpha=float(self.alpha),
            Q=Q,
            sample_weight=weights,
            penalty=self.penalty,
            basis=self.basis,
        )

    def _accept(self, task, model, rule, holdout=None):
        """Store a solved model of ``task`` and its trained rule as the fitted state."""
        problem = task.problem
        basis, beta = model.expansion()
        self._fitted_task, self._rule, self._parts, self._loo_values = task, rule, holdout, None
        self.X_fit_ = problem.X
        self.kernel_ = problem.kernel
        self.holder_ = model.choice
        self._dual = np.zeros((problem.n, beta.shape[1]), beta.dtype)
        self._dual[basis] = beta
        self._weights, B = model.linear() if problem.kernel.is_linear else (None, model.B)
        self._offset = B[: problem.intercept].sum(0)  # one row with an intercept, none without
        self._confound_B = B[problem.confounds]
        self._set_attributes()
        return self

    def _check_parameters(self):
        if (
            not isinstance(self.alpha, Real)
            or isinstance(self.alpha, bool)
            or not np.isfinite(self.alpha)
            or self.alpha <= 0
        ):
            raise ValueError(f"alpha={self.alpha!r} must be a finite number > 0; for (nearly) no penalty use 1e-10.")
        check_option("penalty", self.penalty, ("rkhs", "coef"))
        check_option("basis", self.basis, ("train", "all"))

    # -- prediction ------------------------------------------------------------------------------------------------

    def _fits(self, X, confounds=None):
        """Regression fits at new X, shape (n, m); the confounds' part is in them where confounds are given."""
        check_is_fitted(self)
        if not is_plain(self, X):
            X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        offset = self._offset
        if confounds is not None or len(self._confound_B):
            offset = offset + self._new_confounds(confounds, X) @ self._confound_B
        if self._weights is not None:
            return X @ self._weights + offset
        step = max(1, CHUNK // len(self._dual))
        if X.shape[0] <= step:
            return self._gram(X) @ self._dual + offset
        batches = gen_batches(X.shape[0], step)
        return np.concatenate([self._gram(X[rows]) @ self._dual for rows in batches]) + offset

    def _new_confounds(self, confounds, X):
        """Confounds of validated new rows; zeros, which leave their part out, where none are given."""
        k = len(self._confound_B)
        if confounds is None:
            return np.zeros((X.shape[0], k), X.dtype)
        if not k:
            raise ValueError(f"confounds: this {type(self).__name__} was fitted without; give them to fit as well.")
        C = check_confounds(confounds, X.shape[0], X.dtype)
        if C.shape[1] != k:
            raise ValueError(f"confounds has {C.shape[1]} columns; the model was fitted with {k}.")
        return C

    def _gram(self, X):
        """Kernel between validated new rows and the training rows."""
        return self.kernel_.against(X, self.X_fit_, slice(None))

    # -- leave-one-out ---------------------------------------------------------------------------------------------

    def _loo(self):
        """The held-out algebra of the training data, made again after unpickling."""
        check_is_fitted(self)
        if self._parts is None or not self._parts.whole.current:
            self._parts = self._fitted_task.training_parts()
        return self._parts

    def _loo_decisions(self):
        """Fits or decisions of all training rows, each by the model without it."""
        holdout = self._loo()
        if self._loo_values is None:
            self._loo_values = self._fitted_task.loo_outputs(holdout, self._rule, "decision")
        return self._loo_values.copy()

    def __getstate__(self):
        state = super().__getstate__().copy()
        if "_parts" in state:
            state["_parts"] = None
        return state

    # -- scikit-learn ----------------------------------------------------------------------------------------------

    @property
    def coef_(self):
        """Weights of the features; only with ``kernel="linear"``."""
        check_is_fitted(self)
        if self._weights is None:
            raise AttributeError(f"coef_ exists for kernel='linear' only, not for kernel={self.kernel!r}.")
        return self._linear(self._weights, self._offset)[0]

    @property
    def confound_coef_(self):
        """Coefficients of the confounds, as ``coef_`` those of the features; only after ``fit(confounds=...)``."""
        check_is_fitted(self)
        if not len(self._confound_B):
            raise AttributeError("confound_coef_ exists only after fit(X, y, confounds=...).")
        return self._linear(self._confound_B, self._offset)[0]

    def __sklearn_is_fitted__(self):
        return hasattr(self, "_dual")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags


def numbers(values):
    """A finite float array of the values, or None where they are not finite numbers."""
    try:
        array = np.array(list(values), float)
    except (TypeError, ValueError):
        return None
    return array if np.isfinite(array).all() else None


def is_plain(estimator, X):
    """Whether scikit-learn's validation would find nothing to do: an array of the model's own kind.

    It takes longer than a prediction or an update of one row.
    """
    return (
        type(X) is np.ndarray
        and X.ndim == 2
        and len(X) > 0
        and X.dtype == estimator._dual.dtype
        and X.shape[1] == estimator.n_features_in_
        and not hasattr(estimator, "feature_names_in_")
        and bool(np.isfinite(X).all())
    )


def check_confounds(confounds, n, dtype):
    """Confounds of n rows as a finite array (n, k) of this type; one dimension is one column."""
    try:
        with np.errstate(over="ignore"):
            C = check_array(confounds, dtype=dtype, ensure_2d=False, input_name="confounds")
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"confounds: {error} They must be finite numbers, one row for each of X; code categories by indicators of"
            " all levels but one (sklearn.preprocessing.OneHotEncoder(drop='first', sparse_output=False))."
        ) from None
    C = C.reshape(len(C), -1)
    if len(C) != n:
        raise ValueError(f"confounds has {len(C)} rows and X has {n}; give one row for each of X.")
    return C


def check_option(name, value, allowed):
    """Refuse a value that is not among those allowed."""
    if not (value is None or isinstance(value, str)) or value not in allowed:
        raise ValueError(f"{name}={value!r} is unknown; use one of {', '.join(map(repr, allowed))}.")


def check_weights(sample_weight, X):
    """Weights of the rows of X, >= 0 and in its precision."""
    weights = _check_sample_weight(sample_weight, X, dtype=X.dtype, ensure_non_negative=True)
    largest, normal = weights.max(initial=0), np.finfo(X.dtype).tiny
    if 0 < largest < normal:
        raise ValueError(
            f"sample_weight: its largest value is {largest:.3g}, and {X.dtype} loses digits below {normal:.3g}."
            " Multiply all weights by a large number, and alpha as well if the model is to stay the same."
        )
    return weights


def check_square(K):
    """A precomputed training kernel must be square."""
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"Precomputed matrix must be a square matrix: X has shape {K.shape}. kernel='precomputed' expects the Gram"
            " matrix of the training rows in fit, and (n_new, n_train) in predict."
        )
