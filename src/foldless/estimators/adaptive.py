"""Adaptive kernel discriminant analysis: KDA/RMSE that learns and forgets rows (Kim, Drake & Park 2006)."""

from numbers import Real

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import gen_batches
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from foldless.estimators.base import CHUNK, check_option
from foldless.estimators.classifier import join_labels, named_classes
from foldless.estimators.rows import check_ids, positions
from foldless.estimators.state import all_or_nothing, check_unchanged, warn_of_few_rows
from foldless.kernels import check_symmetric, resolve
from foldless.online.minimum_norm import MinimumNorm, pseudo_solve
from foldless.readout.codings import against_all, chosen_labels

REFRESH = 1000  # updates after which the factors are made anew: their backward error is then some 50 eps
MANY = 24  # rows that leave one by one as slowly as new factors are made, at n from 500 to 2000


class AdaptiveKDA(ClassifierMixin, BaseEstimator):
    """Kernel discriminant analysis by regularised minimum squared errors, exact as rows are learned and forgotten.

    f(x) = k(x)' z + b with the least ``b^2 + |z|^2`` of all solutions of ``[1, K + alpha I] [b; z] = y``: one problem
    for two classes, one against all otherwise, all from one QR factorisation. ``partial_fit`` and ``forget`` update the
    factors in O(n^2) for each row; the model always equals the one fitted from scratch to the rows it has, and its
    leave-one-out estimate follows in closed form. LSSVC differs in that its intercept is not penalised. Everything is
    computed in double precision: the penalties of the paper lie below the rounding of float32.

    Parameters
    ----------
    kernel : {"linear", "poly", "rbf", "laplacian", "boolean", "cosine", "precomputed"} or callable, default="rbf"
        A callable takes two matrices and returns their Gram matrix. "precomputed" can be fitted only, not updated.
    gamma : float, array-like of shape (n_features,) or "scale", default="scale"
        Width for "rbf", "laplacian", "poly"; "scale" is 1 / (n_features * X.var()), resolved in ``fit`` or the first
        ``partial_fit`` and kept in ``kernel_`` until the next ``fit``.
    degree : int, default=3
        Degree of "poly".
    coef0 : float, default=1.0
        Constant of "poly".
    eta : float, default=1.0
        Parameter of "boolean", (1 + eta)^(x.z).
    alpha : float, default=1.0
        The paper's lambda, >= 0; larger is smoother. 0 is KDA/MSE: the pseudo-inverse by singular values, which can be
        fitted only, neither updated nor left out.
    targets : {"pm1", "fisher"}, default="pm1"
        Values given to a class of m_1 among m rows: 1, and -1 for the others; or m / m_1, and -m / (m - m_1), which
        makes the limit of no penalty Fisher's discriminant. A model without a row has the targets of its own rows.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    X_fit_ : training data, in the order of insertion
    dual_coef_ : ndarray of shape (n_samples, n_problems), z
    intercept_ : ndarray of shape (n_problems,), b
    coef_ : ndarray of shape (n_problems, n_features), linear kernel only
    kernel_ : the kernel with its resolved parameters
    ids_ : list of the ids of the training rows, or None
    loo_score_ : float, exact leave-one-out accuracy
    residual_ : float, backward error of the current coefficients
    n_features_in_, feature_names_in_ : as in scikit-learn

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

    def __init__(
        self,
        kernel="rbf",
        *,
        gamma="scale",
        degree=3,
        coef0=1.0,
        eta=1.0,
        alpha=1.0,
        targets="pm1",
    ):
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.eta = eta
        self.alpha = alpha
        self.targets = targets

    # -- learning and forgetting -----------------------------------------------------------------------------------

    def fit(self, X, y, *, ids=None):
        """Fit the model to these rows alone.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data; the Gram matrix (n_samples, n_samples) for ``kernel="precomputed"``.
        y : array-like of shape (n_samples,)
            Labels.
        ids : sequence of n_samples different hashable values, default=None
            Names of the rows for ``forget(ids=...)``.

        Returns
        -------
        self : object
        """
        with all_or_nothing(self):
            return self._start(X, y, ids, None)

    def partial_fit(self, X, y, classes=None, *, ids=None):
        """Learn more rows; the model then equals one fitted to all of its rows. The first call may be this one.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels; new ones may appear.
        classes : array-like, default=None
            Labels that the model shall have even without a row, from now until the next ``fit``.
        ids : sequence of n_samples different hashable values, default=None
            Needed if the rows so far have ids.

        Returns
        -------
        self : object
        """
        with all_or_nothing(self):
            if not self.__sklearn_is_fitted__():
                self._start(X, y, ids, classes)
                warn_of_few_rows(self, self.kernel_, self.X_fit_.shape[0], stacklevel=2)
                return self
            self._check_updates("partial_fit")
            X, y = self._validated(X, y, reset=False)
            named = np.unique(join_labels(self._named, named_classes(y, classes)))
            ids = check_ids(ids, X.shape[0], self.ids_)
            if sp.issparse(X) != sp.issparse(self.X_fit_):
                X = sp.csr_matrix(X) if sp.issparse(self.X_fit_) else X.toarray()
            factors = None
            if 2 * X.shape[0] <= self.X_fit_.shape[0]:  # for larger blocks a factorisation is quicker
                factors = self._factors.insert(self.kernel_.gram(self.X_fit_, X), self.kernel_.gram(X))
            stack = sp.vstack if sp.issparse(X) else np.concatenate
            ids = None if ids is None else self.ids_ + ids
            return self._accept(stack([self.X_fit_, X]), join_labels(self._y, y), ids, named, factors)

    def forget(self, indices=None, *, ids=None):
        """Forget rows; the model then equals one that never saw them.

        A class goes with its last row, unless ``partial_fit(classes=...)`` named it.

        Parameters
        ----------
        indices : array-like of int, or boolean mask of shape (n_samples,), default=None
            Positions in the current order of ``X_fit_``; later rows move up.
        ids : sequence, default=None
            Instead: ids of the rows.

        Returns
        -------
        self : object
        """
        check_is_fitted(self)
        self._check_updates("forget")
        n = self.X_fit_.shape[0]
        rows = positions(indices, ids, n, self.ids_)
        if len(rows) == 0:
            return self
        if len(rows) == n:
            raise ValueError(f"forget: all {n} rows were named; at least one must stay.")
        stay = np.delete(np.arange(n), rows)
        factors = self._factors.remove(rows) if len(rows) <= MANY else None
        kept = None if self.ids_ is None else [self.ids_[i] for i in stay]
        with all_or_nothing(self):
            return self._accept(self.X_fit_[stay], self._y[stay], kept, self._named, factors)

    def _start(self, X, y, ids, classes):
        """The first rows: parameters are read here and hold until the next ``fit``."""
        check_option("targets", self.targets, ("pm1", "fisher"))
        if not isinstance(self.alpha, Real) or isinstance(self.alpha, bool) or not 0 <= self.alpha < np.inf:
            raise ValueError(f"alpha={self.alpha!r} must be a finite number >= 0, for instance 1.0.")
        X, y = self._validated(X, y, reset=True)
        if self.kernel == "precomputed":
            if X.shape[0] != X.shape[1]:
                raise ValueError(
                    f"Precomputed matrix must be a square matrix: X has shape {X.shape}. kernel='precomputed' expects"
                    " the Gram matrix of the training rows in fit, and (n_new, n_train) in predict."
                )
            check_symmetric(X, "the precomputed kernel")
        self.kernel_ = resolve(self.kernel, X, gamma=self.gamma, degree=self.degree, coef0=self.coef0, eta=self.eta)
        self._settings, self._alpha, self._coding = self.get_params(), float(self.alpha), self.targets
        return self._accept(X.copy(), y.copy(), check_ids(ids, X.shape[0], []), named_classes(y, classes), None)

    def _validated(self, X, y, reset):
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, reset=reset)
        check_classification_targets(y)
        return X, y

    def _accept(self, X, y, ids, named, factors):
        """The state for these rows; ``factors`` is None where they are to be made from the kernel."""
        classes, codes = np.unique(join_labels(y, named), return_inverse=True)
        codes = codes[: len(y)]
        if len(classes) < 2:
            raise ValueError(
                f"y holds one class only ({classes[0]!r}); {type(self).__name__} needs at least two classes. Those"
                " without a row can be named in partial_fit(classes=...)."
            )
        indicators = np.eye(len(classes))[codes]
        if self._alpha == 0:
            solution = pseudo_solve(self.kernel_.gram(X), indicators)
        else:
            if factors is None or factors.updates > REFRESH:
                factors = MinimumNorm(self.kernel_.gram(X), self._alpha)
            solution = factors.solve(indicators)
        solution = _coded(solution, indicators.sum(0), self._coding)
        self.X_fit_, self._y, self.ids_, self._named = X, y, ids, named
        self.classes_, self._indicators, self._qr, self._loo_values = classes, indicators, factors, None
        self.intercept_, self.dual_coef_ = solution[0], solution[1:]
        return self

    def _check_updates(self, method):
        if not self.kernel_.takes_rows:
            raise ValueError(
                f"{method}: kernel='precomputed' has no rows to compare with new ones; give the kernel as a callable."
            )
        if self._alpha == 0:
            raise ValueError(f"{method}: alpha=0 (KDA/MSE) can only be fitted; use alpha > 0, for instance 1e-7.")
        check_unchanged(self, self._settings)

    @property
    def _factors(self):
        """The QR factorisation, which pickles leave out."""
        if self._qr is None:
            self._qr = MinimumNorm(self.kernel_.gram(self.X_fit_), self._alpha)
        return self._qr

    # -- prediction ------------------------------------------------------------------------------------------------

    def decision_function(self, X):
        """Decision values: positive for ``classes_[1]`` with two classes, else one column for each class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        batches = gen_batches(X.shape[0], max(1, CHUNK // len(self.dual_coef_)))
        return _flat(np.concatenate([self._gram(X[rows]) @ self.dual_coef_ for rows in batches]) + self.intercept_)

    def _gram(self, X):
        """Kernel between validated new rows and the training rows."""
        return self.kernel_.against(X, self.X_fit_, slice(None))

    def predict(self, X):
        """Labels by the sign (two classes) or the largest column of the decision function.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        decision = self.decision_function(X)
        return chosen_labels(decision, self.classes_)

    # -- leave-one-out ---------------------------------------------------------------------------------------------

    def loo_decision_function(self, method="closed"):
        """Decision value of every training row by the model fitted without it: exact, no refits.

        A row that is alone in its class leaves the class without rows, not without its name.

        Parameters
        ----------
        method : {"closed", "downdate"}, default="closed"
            All rows at once, or the paper's Algorithm 7, which removes every row from a copy of the factors: the same
            values, some hundred times slower.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
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

    def loo_predict(self):
        """Label of every training row by the model fitted without it.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        decision = self.loo_decision_function()
        return chosen_labels(decision, self.classes_)

    @property
    def loo_score_(self):
        """Leave-one-out accuracy on the training data."""
        predictions = self.loo_predict()
        return float(np.mean(predictions == self._y))

    # -- scikit-learn ----------------------------------------------------------------------------------------------

    @property
    def residual_(self):
        """Backward error of the coefficients x = [b; z] in G x = Y, for a G = [1, K + alpha I] made anew.

        |G x - Y| / (|G| |x| + |Y|) in Frobenius norms: some eps after ``fit``, and no more than some hundred eps after
        any number of updates. It costs one kernel matrix.
        """
        check_is_fitted(self)
        K = self.kernel_.gram(self.X_fit_)
        K.flat[:: len(K) + 1] += self._alpha
        Y = _coded(self._indicators, self._indicators.sum(0), self._coding)
        norm = np.linalg.norm
        scale = np.hypot(norm(K), np.sqrt(len(K))) * norm(np.vstack([self.intercept_, self.dual_coef_])) + norm(Y)
        return float(norm(K @ self.dual_coef_ + self.intercept_ - Y) / scale)

    @property
    def coef_(self):
        """Weights of the features; only with ``kernel="linear"``."""
        check_is_fitted(self)
        if not self.kernel_.is_linear:
            raise AttributeError(f"coef_ exists for kernel='linear' only, not for kernel={self.kernel!r}.")
        return (self.X_fit_.T @ self.dual_coef_).T

    def __getstate__(self):
        state = super().__getstate__().copy()
        if "_qr" in state:
            state["_qr"] = None
        return state

    def __sklearn_is_fitted__(self):
        return hasattr(self, "dual_coef_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags


def _coded(fits, counts, coding):
    """Fits of the targets from fits of the class indicators, (..., c), and the rows of each class in the training part.

    Solutions are linear in the targets: coefficients, held-out fits and the indicators themselves all pass here.
    """
    if coding == "pm1":
        return against_all(fits)
    total = counts.sum(-1, keepdims=True)
    own, other = (
        np.divide(total, size, out=np.zeros(np.shape(counts)), where=size > 0) for size in (counts, total - counts)
    )
    columns = fits * own - (fits.sum(-1, keepdims=True) - fits) * other
    return columns[..., 1:] if columns.shape[-1] == 2 else columns


def _flat(columns):
    return columns[:, 0] if columns.shape[1] == 1 else columns
