"""Adaptive kernel discriminant analysis: KDA/RMSE that learns and forgets rows (Kim, Drake & Park 2006)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from foldless._engine.heldout.rows import tied
from foldless._engine.linalg import norm
from foldless._engine.linalg.threads import threads_by_size
from foldless._engine.linalg.types import MatrixLike
from foldless._engine.online.minimum_norm import MinimumNorm, pseudo_solve
from foldless._engine.precision.cost import qr_factors
from foldless._engine.readout.codings import against_all, indicator
from foldless.estimators.base import KernelExpansion
from foldless.estimators.checks import (
    as_stored,
    check_gram,
    check_option,
    check_options,
    is_number,
    validated_rows,
    validated_X,
    warn_of_size_by_cost,
)
from foldless.estimators.classifier import LabelledDecisions, check_two_classes, coded, join_labels, named_classes
from foldless.estimators.missing import explain_unknown_arguments
from foldless.estimators.rows import Ids, all_or_nothing, check_unchanged, joined_ids, positions, reads_one_state
from foldless.kernels.registry import given_kernel, is_precomputed

REFRESH = 1000  # updates after which the factors are made anew: their backward error is then some 50 eps
MANY = 24  # rows that leave one by one as slowly as new factors are made, at n from 500 to 2000


@explain_unknown_arguments
@dataclass(kw_only=True, eq=False, repr=False)
class AdaptiveKDA(LabelledDecisions, KernelExpansion):
    """Kernel discriminant analysis by regularised minimum squared errors, exact as rows are learned and forgotten.

    f(x) = k(x)' z + b with the least ``b^2 + |z|^2`` of all solutions of ``[1, K + alpha I] [b; z] = y``: one problem
    for two classes, one against all otherwise, all from one QR factorisation. ``partial_fit`` and ``forget`` update the
    factors in O(n^2) for each row; the model always equals the one fitted from scratch to the rows it has, and its
    leave-one-out estimate follows in closed form. LSSVC differs in that its intercept is not penalised. Everything is
    computed in double precision: the penalties of the paper lie below the rounding of float32.

    Parameters
    ----------
    kernel, gamma, degree, coef0 : as in LSSVC; "precomputed" can be fitted only, not updated
    alpha : float, default=1.0
        The paper's lambda, >= 0; larger is smoother. 0 is KDA/MSE: the pseudo-inverse by singular values, which can be
        fitted only, neither updated nor left out.
    targets : {"pm1", "fisher"}, default="pm1"
        Values given to a class of m_1 among m rows: 1, and -1 for the others; or m / m_1, and -m / (m - m_1), which
        makes the limit of no penalty Fisher's discriminant. A model without a row has the targets of its own rows.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n_samples, n_problems), z
    intercept_ : ndarray of shape (n_problems,), b
    coef_ : ndarray of shape (n_problems, n_features), linear kernel only
    residual_ : float, backward error of the current coefficients
    classes_, X_fit_, kernel_, ids_, loo_score_, n_features_in_, feature_names_in_ : as in LSSVC

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from foldless import AdaptiveKDA
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = (X - X.mean(0)) / X.std(0)
    >>> model = AdaptiveKDA(gamma=0.03).fit(X[:400], y[:400])
    >>> model.partial_fit(X[400:], y[400:]).forget(range(100)).loo_score_ == AdaptiveKDA(gamma=0.03).fit(
    ...     X[100:], y[100:]
    ... ).loo_score_
    True
    """

    targets: Literal["pm1", "fisher"] = "pm1"

    @threads_by_size
    def fit(self, X: MatrixLike, y: ArrayLike, *, ids: Ids = None) -> Self:
        """Fit the model to these rows alone; arguments as in ``LSSVC.fit``."""
        with all_or_nothing(self) as model:
            model._learn_first(X, y, ids, None)
        return self

    @threads_by_size
    def partial_fit(self, X: MatrixLike, y: ArrayLike, classes: ArrayLike | None = None, *, ids: Ids = None) -> Self:
        """Learn more rows; the model then equals one fitted to all of its rows. The first call may be this one.

        New labels may appear. ``classes`` names labels that the model keeps even without a row, until the next
        ``fit``. ``ids`` are needed if the rows so far have ids.
        """
        with all_or_nothing(self) as model:
            if model.__sklearn_is_fitted__():
                model._learn_more(X, y, classes, ids)
            else:
                model._learn_first(X, y, ids, classes)
                model._warn_of_few_rows(stacklevel=4)
        return self

    def _learn_more(self, X, y, classes, ids):
        self._check_can_update("partial_fit")
        X, y = self._validated(X, y, reset=False)
        named = np.unique(join_labels(self._named_classes, named_classes(y, classes)))
        ids = joined_ids(self.ids_, ids, X.shape[0])
        X = as_stored(X, self.X_fit_)
        factors = None
        if 2 * X.shape[0] <= self.X_fit_.shape[0]:  # for larger blocks a factorisation is quicker
            factors = self._factors.insert(self.kernel_.gram(self.X_fit_, X), self.kernel_.gram(X))
        self._solve(self.kernel_.joined(self.X_fit_, X), join_labels(self._y, y), ids, named, factors)

    @threads_by_size
    def forget(self, indices: ArrayLike | None = None, *, ids: Ids = None) -> Self:
        """Forget rows, as ``LSSVC.forget`` does; the model then equals one that never saw them."""
        check_is_fitted(self)
        with all_or_nothing(self) as model:
            model._forget(indices, ids)
        return self

    def _forget(self, indices, ids):
        self._check_can_update("forget")
        n = self.X_fit_.shape[0]
        rows = positions(indices, ids, n, self.ids_)
        if len(rows) == 0:
            return
        if len(rows) == n:
            raise ValueError(f"forget: all {n} rows were named; at least one must stay.")
        remaining = np.delete(np.arange(n), rows)
        factors = self._factors.remove(rows) if len(rows) <= MANY else None
        ids = None if self.ids_ is None else [self.ids_[row] for row in remaining]
        self._solve(self.X_fit_[remaining], self._y[remaining], ids, self._named_classes, factors)

    def _learn_first(self, X, y, ids, classes):
        """Fit the first rows. Parameters are read here and stay until the next ``fit``."""
        check_options(self)
        if not (is_number(self.alpha) and self.alpha >= 0):
            raise ValueError(f"alpha={self.alpha!r} must be a finite number >= 0, for instance 1.0.")
        X, y = self._validated(X, y, reset=True)
        if is_precomputed(self.kernel):
            check_gram(X)
        self.kernel_ = given_kernel(self).resolved(X)
        warn_of_size_by_cost(X.shape[0], qr_factors(X.shape[0]), self.kernel_)
        self._settings = self.get_params()
        self._alpha = float(self.alpha)
        self._coding = self.targets
        self._solve(X.copy(), y.copy(), joined_ids((), ids, X.shape[0]), named_classes(y, classes), None)

    def _validated(self, X, y, reset):
        X, y = validated_rows(self, X, y, dtypes=[np.float64], reset=reset)
        check_classification_targets(y)
        return X, y

    def _solve(self, X, y, ids, named, factors):
        """Store the state for these rows; ``factors=None``: they are computed from the kernel."""
        classes, codes = coded(y, named)
        check_two_classes(classes, self, "Those without a row can be named in partial_fit(classes=...).")
        indicators = indicator(codes, len(classes), np.float64)
        if self._alpha == 0:
            solution = pseudo_solve(self.kernel_.gram(X), indicators)
        else:
            if factors is None or factors.updates > REFRESH:
                factors = MinimumNorm(self.kernel_.gram(X), self._alpha)
            solution = factors.solve(indicators)
        solution = _coded(solution, indicators.sum(0), self._coding)
        self.X_fit_ = X
        self.ids_ = ids
        self.classes_ = classes
        self.intercept_ = solution[0]
        self.dual_coef_ = solution[1:]
        self._y = y
        self._named_classes = named
        self._indicators = indicators
        self._qr = factors
        self._loo_values = None

    def _check_can_update(self, method):
        if not self.kernel_.takes_rows:
            raise ValueError(
                f"{method}: kernel='precomputed' has no rows to compare with new ones; give the kernel as a callable."
            )
        if self._alpha == 0:
            raise ValueError(f"{method}: alpha=0 (KDA/MSE) can only be fitted; use alpha > 0, for instance 1e-7.")
        check_unchanged(self, self._settings)

    @property
    def _factors(self):
        """The factors that solutions come from, which pickles leave out."""
        factors = self._qr
        if factors is None:
            self._qr = factors = MinimumNorm(self.kernel_.gram(self.X_fit_), self._alpha)
        return factors

    @threads_by_size
    @reads_one_state
    def decision_function(self, X: MatrixLike) -> np.ndarray:
        """Decision values: positive for ``classes_[1]`` with two classes, else one column for each class."""
        check_is_fitted(self)
        rows = validated_X(self, X, dtype=np.float64)
        return _flat(tied(self._expand(rows, self.dual_coef_) + self.intercept_, rows))

    @threads_by_size
    @reads_one_state
    def loo_decision_function(self, method: Literal["closed", "downdate"] = "closed") -> np.ndarray:
        """Decision value of every training row by the model fitted without it: exact, no refits.

        A row that is alone in its class leaves the class without rows, not without its name.

        Parameters
        ----------
        method : {"closed", "downdate"}, default="closed"
            All rows at once, or the paper's Algorithm 7, which removes every row from a copy of the factors: the same
            values, some hundred times slower.
        """
        check_is_fitted(self)
        check_option("method", method, ("closed", "downdate"))
        if self._alpha == 0:
            raise ValueError("leave-one-out: alpha=0 (KDA/MSE) has no closed form; use alpha > 0, for instance 1e-7.")
        if len(self._indicators) < 2:
            raise ValueError(
                "leave-one-out: the model has one row; at least two are needed, to fit one and leave one out."
            )
        if method == "downdate":
            return self._held_out(self._factors.loo_downdate(self._indicators))
        if self._loo_values is None:
            self._loo_values = self._held_out(self._factors.loo(self._indicators))
        return self._loo_values.copy()

    def _held_out(self, fits):
        """Decisions from fits of the indicators, coded with the class sizes of each training part."""
        return _flat(_coded(fits, self._indicators.sum(0) - self._indicators, self._coding))

    @property
    @reads_one_state
    def residual_(self) -> float:
        """Backward error of the coefficients x = [b; z] in G x = Y, for a G = [1, K + alpha I] made anew.

        |G x - Y| / (|G| |x| + |Y|) in Frobenius norms: some eps after ``fit``, and no more than some hundred eps after
        any number of updates. It costs one kernel matrix.
        """
        check_is_fitted(self)
        M = self.kernel_.gram(self.X_fit_)
        M.flat[:: len(M) + 1] += self._alpha
        Y = _coded(self._indicators, self._indicators.sum(0), self._coding)
        size = np.hypot(norm(M), np.sqrt(len(Y)))  # |G|
        scale = size * norm(np.vstack([self.intercept_, self.dual_coef_])) + norm(Y)
        return float(norm(M @ self.dual_coef_ + self.intercept_ - Y) / scale)

    @property
    @reads_one_state
    def coef_(self) -> np.ndarray:
        """Weights of the features; only with ``kernel="linear"``."""
        self._check_linear("coef_")
        return (self.X_fit_.T @ self.dual_coef_).T


def _coded(fits, counts, coding):
    """Fits of the targets from fits of the class indicators, (..., c), and the rows of each class in the training part.

    Solutions are linear in the targets: coefficients, held-out fits and the indicators themselves all pass here.
    """
    if coding == "pm1":
        return against_all(fits)
    total = counts.sum(-1, keepdims=True)
    inside, outside = (
        np.divide(total, size, out=np.zeros(np.shape(counts)), where=size > 0) for size in (counts, total - counts)
    )
    columns = fits * inside - (fits.sum(-1, keepdims=True) - fits) * outside
    return columns[..., 1:] if columns.shape[-1] == 2 else columns


def _flat(columns):
    return columns[:, 0] if columns.shape[1] == 1 else columns
