"""Least-squares support vector machines: weighted, with or without intercept (Cawley 2006, eq. 1-4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import gen_batches

from foldless._engine.linalg import copy, on_host, to_host
from foldless._engine.linalg.threads import threads_by_size
from foldless._engine.linalg.types import MatrixLike
from foldless._engine.readout.codings import OneAgainstAll, Regression
from foldless._engine.readout.conformal import POWERS, residual_intervals, value_intervals
from foldless._engine.readout.task import Task
from foldless.estimators.checks import check_option, value_columns
from foldless.estimators.classifier import KernelClassifier
from foldless.estimators.conformal import borders, check_coverage, new_rows
from foldless.estimators.intervals import ScoreIntervals
from foldless.estimators.missing import explain_unknown_arguments
from foldless.estimators.online import OnlineMachine
from foldless.estimators.rows import Ids, PerRow, reads_one_state


@explain_unknown_arguments
@dataclass(kw_only=True, eq=False, repr=False)
class LSSVC(KernelClassifier):
    """Least-squares support vector classifier, one against all, with exact leave-one-out.

    Minimises ``sum_i w_i (y_i - f(x_i))^2 + alpha |f|^2`` over f(x) = k(x)' beta + b for targets y = +-1: one problem
    for two classes, one for each class otherwise, all from the same factorisation.

    Parameters
    ----------
    kernel : str, callable or Kernel, default="rbf"
        "linear", "poly", "rbf", "laplacian", "boolean", "cosine" or "precomputed"; "auto" for the sum of a Gaussian and
        a Laplacian kernel, whose weights, widths and scales of features a search learns; a function that takes two
        matrices and returns their Gram matrix; or an object such as ``kernels.RBF(0.1)``, or a sum of some, whose
        parameters are set and searched as ``kernel__gamma`` (``gamma``, ``degree`` and ``coef0`` are then ignored). For
        many rows ``kernels.Nystroem(RBF("scale"), n_landmarks=500)`` or ``kernels.RandomFeatures`` has explicit
        features in the place of the kernel: time and memory grow with n_samples * n_landmarks.
    gamma : float, array-like of shape (n_features,), "scale" or "auto", default="scale"
        Width for "rbf", "laplacian", "poly"; "scale" is 1 / (n_features * X.var()), for "laplacian" 1 / (n_features *
        X.std()); "auto" 1 / n_features; resolved in
        ``fit`` and stored in ``kernel_``.
    degree : int, default=3; degree of "poly"
    coef0 : float, default=1.0; constant of "poly"
    alpha : float, default=1.0
        Penalty, > 0; larger is smoother. Values from 1e-3 to 1e3 are worth trying, on features of comparable scale. It
        is what 1 / C is to an SVC.
    penalty : {"rkhs", "coef"}, default="rkhs"
        The norm that is penalised: of the function, or of its expansion coefficients. With "coef" the kernel functions
        of the rows given to ``fit`` are features; with ``kernels.Nystroem`` those of the landmarks. They are fixed
        then: rows that are left out, learnt or forgotten later neither take their functions along nor bring new ones.
    fit_intercept : bool, default=True; whether b is fitted; it is not penalised
    standardize : bool or "robust", default=False
        Whether features are divided by their standard deviation and, where X is dense, centred. Both are resolved once
        on the rows given to ``fit``, as ``gamma="scale"`` is: weights count as repetitions, labels are not seen, and
        cross-validation leaves them as they are. ``coef_`` and ``intercept_`` are those of X as it was given. With
        "robust" dense columns that have values beyond 5 standard deviations are replaced by their normal scores.
    class_weight : dict, "balanced" or None, default=None
        Factors on the weights of the classes; "balanced" gives all classes the same total, computed once from the y
        given to ``fit``.
    calibration : {None, "sigmoid", "isotonic"}, default=None
        How ``predict_proba`` is fitted on leave-one-out scores; None: there is no ``predict_proba``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    X_fit_ : training data
    dual_coef_ : ndarray of shape (n_samples, n_problems), beta; with penalty="coef" of rows of positive weight
    intercept_ : ndarray of shape (n_problems,)
    coef_ : ndarray of shape (n_problems, n_features), linear kernel only
    kernel_ : the kernel with its resolved parameters
    confound_coef_ : ndarray of shape (n_problems, n_confounds), only after ``fit`` with confounds
    holder_ : str, how P was held and why
    ids_ : list of the ids of the training rows, or None
    drift_ : float, largest residual met by updates since P was factorised
    loo_score_, stratified_loo_score_ : float, exact leave-one-out accuracy, and that of sets of one row of each class
    n_features_in_, feature_names_in_ : as in scikit-learn

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from foldless import LSSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LSSVC(alpha=0.1).fit((X - X.mean(0)) / X.std(0), y)
    >>> round(model.loo_score_, 3)
    0.977
    """

    _takes_tensors = True

    def _readout(self, n_classes, factors):
        return OneAgainstAll(n_classes, self.fit_intercept)

    def _set_attributes(self):
        self.dual_coef_ = self._dual
        self.intercept_ = self._in_units_of_X()[1]

    def _linear(self, weights, offset):
        return weights.T, offset


@explain_unknown_arguments
@dataclass(kw_only=True, eq=False, repr=False)
class LSSVR(RegressorMixin, MultiOutputMixin, ScoreIntervals, OnlineMachine):
    """Least-squares support vector regression (kernel ridge with an intercept), with exact leave-one-out.

    Minimises ``sum_i w_i (y_i - f(x_i))^2 + alpha |f|^2`` over f(x) = k(x)' beta + b; several outputs share the
    factorisation.

    Parameters
    ----------
    kernel, gamma, degree, coef0, alpha, penalty, fit_intercept, standardize : as in LSSVC

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n_samples,) or (n_samples, n_outputs), beta
    intercept_ : float or ndarray of shape (n_outputs,)
    coef_ : ndarray of shape (n_features,) or (n_outputs, n_features), linear kernel only
    confound_coef_ : ndarray of shape (n_confounds,) or (n_outputs, n_confounds), only after ``fit`` with confounds
    loo_score_ : float, exact leave-one-out R2
    X_fit_, kernel_, holder_, ids_, drift_, n_features_in_, feature_names_in_ : as in LSSVC

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from foldless import LSSVR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = LSSVR(alpha=1.0).fit(X, y)
    >>> round(model.loo_score_, 3)
    0.466
    >>> model.predict_interval(X[:2], coverage=0.8).shape
    (2, 2)
    """

    _takes_tensors = True

    def _make_task(self, X, y, weights, classes=None):
        self._flat = y.ndim == 1
        problem = self._problem(X, weights, weights)
        return Task(problem, problem.placed(value_columns(y, problem.dtype)), Regression())

    def _task_with_more(self, task, y, weights, classes, problem):
        new = value_columns(y, problem.dtype)
        if new.shape[1] != task.Y.shape[1]:
            raise ValueError(f"y has shape {y.shape}; the model was fitted with {task.Y.shape[1]} outputs.")
        return Task(problem.weighted_by(weights), np.concatenate([task.Y, new]), task.readout)

    def _task_with_fewer(self, task, kept, weights, problem):
        return Task(problem.weighted_by(weights), task.Y[kept], task.readout)

    def partial_fit(
        self, X: MatrixLike, y: ArrayLike, sample_weight: PerRow = None, confounds: PerRow = None, ids: Ids = None
    ) -> Self:
        """Learn more rows exactly: the model becomes the one fitted on all of them.

        Arguments are those of ``LSSVC.partial_fit``, with values y of shape (n_samples,) or (n_samples, n_outputs).
        """
        return self._learn(X, y, sample_weight=sample_weight, confounds=confounds, ids=ids)

    def _shaped(self, outputs):
        """Outputs (n,) where y was one column, else (n, m)."""
        return outputs[:, 0] if self._flat else outputs

    def _set_attributes(self):
        self.dual_coef_ = self._shaped(self._dual)
        offset = self._in_units_of_X()[1]
        self.intercept_ = offset[0].item() if self._flat else copy(offset)

    def _linear(self, weights, offset):
        return (weights[:, 0] if self._flat else weights.T), offset

    @reads_one_state
    def predict(self, X: MatrixLike, confounds: PerRow = None) -> np.ndarray:
        """Predicted values, (n_samples,) or (n_samples, n_outputs).

        ``confounds`` (n_samples, n_confounds) are regressed out of the features; without them they count as being at
        their mean of the training rows.
        """
        return self._shaped(self._fits(X, confounds))

    def score(self, X: MatrixLike, y: ArrayLike, sample_weight: PerRow = None, confounds: PerRow = None) -> float:
        """R2 of ``predict``, averaged over outputs."""
        return r2_score(on_host(y), on_host(self.predict(X, confounds)), sample_weight=on_host(sample_weight))

    @reads_one_state
    def loo_predict(self) -> np.ndarray:
        """Predicted values of every training row by the model fitted without it: exact, no refits."""
        return self._shaped(self._loo_decisions())

    @property
    @reads_one_state
    def loo_score_(self) -> float:
        """Leave-one-out R2 on the training data, averaged over outputs, every row counted once."""
        fits = self._loo_decisions()  # first: it raises the error of an estimator that is not fitted
        return r2_score(to_host(self._fitted_task.Y).astype(np.float64), to_host(fits))

    @threads_by_size
    @reads_one_state
    def predict_interval(
        self,
        X: MatrixLike,
        coverage: float = 0.9,
        confounds: PerRow = None,
        *,
        method: Literal["jackknife+", "conformal", "studentised"] = "jackknife+",
    ) -> np.ndarray:
        """Prediction intervals that hold for any distribution of exchangeable rows, (n_samples, [n_outputs,] 2).

        Too few rows for the ``coverage`` give infinite ends. docs/conformal.md compares the methods:

        "jackknife+" (Barber et al. 2021): order statistics of f_(-i)(x) -+ |y_i - f_(-i)(x_i)| over all leave-one-out
        models, which are known in closed form at any x. It holds a new value with probability of at least
        2 coverage - 1, and about ``coverage`` in practice. With confounds the interval is one of y without what these
        explain by themselves; ``confounds`` are those of the new rows, or at their mean, as in ``predict``.

        "conformal" (Nouretdinov et al. 2001; Burnaev & Vovk 2014): values that, learnt with the new row, leave it a
        leave-one-out residual which is not among the largest of all n + 1. The probability is at least ``coverage``.
        Where such values have gaps, the interval is their hull.

        "studentised": the same with residuals divided by their standard deviation: intervals are wider where the model
        knows less, and there are no gaps.

        The last two need penalty="rkhs", features, equal weights and no confounds.
        """
        check_coverage(coverage)
        check_option("method", method, ("jackknife+", *POWERS))
        if method != "jackknife+":
            if confounds is not None:
                raise ValueError(f"confounds: method={method!r} has none; use method='jackknife+'.")
            batches = borders(self, X, f"method={method!r}", " or method='jackknife+'")
            return self._shaped(np.concatenate([value_intervals(new, coverage, POWERS[method]) for new in batches]))
        X = new_rows(self, X)
        solution = self._loo().full_fit
        Q = None if confounds is None else solution.problem.columns(self._new_confounds(confounds, X))
        residual = solution.loo().E[:, 0] / solution.root
        ends = []
        for rows in gen_batches(X.shape[0], max(1, 2**22 // len(residual))):
            F = solution.loo_at(X[rows], None if Q is None else Q[rows])
            ends.append(residual_intervals(F, residual, coverage))
        return self._shaped(np.concatenate(ends))
