"""Learning and forgetting rows behind scikit-learn's ``partial_fit``.

A model after any sequence of ``partial_fit`` and ``forget`` equals one fitted on the rows it then has, with the kernel
parameters resolved by the first ``fit``. Everything is checked and computed before anything is changed; what fails
leaves the model as it was.
"""

from copy import copy

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from foldless.estimators.base import KernelMachine, is_plain
from foldless.estimators.rows import check_ids, positions
from foldless.estimators.state import all_or_nothing, check_unchanged, warn_of_few_rows
from foldless.kernels import check_symmetric
from foldless.online import certificate, influence, updates


class OnlineMachine(KernelMachine):
    """Base of estimators that learn and forget rows."""

    # -- what subclasses know: y -----------------------------------------------------------------------------------

    def _more_task(self, task, y, base, classes, problem):
        """The task of ``problem``, whose last rows have targets y; ``base`` are the caller's weights of all rows."""
        raise NotImplementedError

    def _fewer_task(self, task, kept, base, problem):
        """The task of ``problem``, the rows ``kept`` of the present one."""
        raise NotImplementedError

    # -- learning --------------------------------------------------------------------------------------------------

    def _learn(self, X, y, *, classes=None, sample_weight=None, confounds=None, ids=None):
        """``partial_fit`` of every estimator; the first one is a fit."""
        with all_or_nothing(self):
            if not self.__sklearn_is_fitted__():
                return self._begin(X, y, classes, sample_weight, confounds, ids)
            self._check_frozen()
            task = self._fitted_task
            X, y = self._new_rows(X, y)
            n, t = task.problem.n, X.shape[0]
            base = self._joined_weights(sample_weight, X)
            Q = np.hstack([np.ones((t, task.problem.intercept), X.dtype), self._confounds_to_learn(confounds, X)])
            ids = check_ids(ids, t, self.ids_)
            extended = task.problem.extended(X, Q)
            new = self._more_task(task, y, base, classes, extended)
            whole = self._current()
            if whole is None or not np.array_equal(new.problem.root_w[:n], task.problem.root_w):
                whole = updates.anew(new.problem, new.Y)  # no P at hand, or a new class changed the weights of all
            else:
                whole = updates.learn(whole, new.problem, new.Y)
            self._take_over(new, whole, base)
            if ids is not None:
                self.ids_ = [*self.ids_, *ids]
            return self

    def _begin(self, X, y, classes, sample_weight, confounds, ids):
        self._refuse_balanced()
        X, y, weights = self._validated(X, y, sample_weight, least=1)
        X, y, weights = self._owned(X, y, weights)
        task = self._make_task(X, y, weights, classes)
        warn_of_few_rows(self, task.problem.kernel, task.problem.n, stacklevel=4)
        return self._fit_task(task, weights, confounds, ids)

    def _new_rows(self, X, y):
        """New rows validated against those the model has."""
        problem = self._fitted_task.problem
        if problem.kernel.takes_rows:
            if is_plain(self, X) and _is_plain_target(y, len(X)):
                return _as_stored(X, problem.X), y
            X, y = validate_data(
                self, X, y, reset=False, accept_sparse="csr", dtype=problem.dtype, multi_output=True, y_numeric=False
            )
            return _as_stored(X, problem.X), y
        X = check_array(X, accept_sparse="csr", dtype=problem.dtype, input_name="X")
        t = X.shape[0]
        if X.shape[1] != problem.n + t:
            raise ValueError(
                f"X has shape {X.shape}; with kernel='precomputed', {t} new rows need their kernel with the"
                f" {problem.n} rows of the model and with each other: shape ({t}, {problem.n + t})."
            )
        X = _as_stored(X, problem.X)
        check_symmetric(X[:, problem.n :], "the precomputed kernel of the new rows")
        self._count_features(problem.n + t)
        return X, _as_targets(y, t)

    def _count_features(self, n, kept=None):
        """Columns of a precomputed kernel are rows of the model."""
        self.n_features_in_ = n
        names = vars(self).pop("feature_names_in_", None)
        if names is not None and kept is not None:
            self.feature_names_in_ = names[kept]

    def _joined_weights(self, sample_weight, X):
        """The caller's weights of all rows, None where no row ever had one."""
        if sample_weight is None and self._base_weights is None:
            return None
        n, dtype = self._fitted_task.problem.n, X.dtype
        old = np.ones(n, dtype) if self._base_weights is None else self._base_weights
        if sample_weight is None or np.ndim(sample_weight) == 0:
            sample_weight = np.full(X.shape[0], 1.0 if sample_weight is None else sample_weight)
        new = check_array(sample_weight, ensure_2d=False, dtype=dtype, input_name="sample_weight")
        if new.shape != (X.shape[0],) or (new < 0).any():
            raise ValueError(
                f"sample_weight must hold one number >= 0 for each of the {X.shape[0]} new rows; found"
                f" {'negative values' if (new < 0).any() else f'shape {new.shape}'}."
            )
        return np.concatenate([old, new])

    def _confounds_to_learn(self, confounds, X):
        if confounds is None and len(self._confound_B):
            raise ValueError(
                f"confounds: the model was fitted with {len(self._confound_B)}; give those of the new rows as well."
            )
        return self._new_confounds(confounds, X)

    # -- forgetting ------------------------------------------------------------------------------------------------

    def forget(self, indices=None, *, ids=None):
        """Forget rows exactly: the model becomes the one fitted without them.

        Parameters
        ----------
        indices : array-like of int, or of bool with one entry per row, default=None
            Positions of the rows in the order of insertion, from 0; later rows move up.
        ids : array-like, default=None
            In place of positions, ids given to ``fit`` and ``partial_fit``.

        Returns
        -------
        self : object
            Without a trace of these rows in any attribute. A class that loses its last row goes with it, unless it was
            named in ``partial_fit(classes=...)``.
        """
        check_is_fitted(self)
        task = self._fitted_task
        rows = positions(indices, ids, task.problem.n, self.ids_)
        if len(rows) == 0:
            return self
        if len(rows) == task.problem.n:
            raise ValueError(f"forget would leave none of the {len(rows)} rows; make a new estimator instead.")
        self._check_frozen()
        kept = np.delete(np.arange(task.problem.n), rows)
        if not task.problem.root_w[kept].any():
            raise ValueError(f"forget would leave {len(kept)} rows, all of weight 0; make a new estimator instead.")
        base = None if self._base_weights is None else self._base_weights[kept]
        with all_or_nothing(self):
            new = self._fewer_task(task, kept, base, task.problem.subset(kept).replace(shift=None))
            whole = self._current()
            if whole is None or not np.array_equal(new.problem.root_w, task.problem.root_w[kept]):
                whole = updates.anew(new.problem, new.Y)
            else:
                active = rows[task.problem.root_w[rows] > 0]
                whole = updates.forget(whole, new.problem, new.Y, np.searchsorted(whole.rows, active))
            self._take_over(new, whole, base)
            self._n_forgotten += len(rows)
            if self.ids_ is not None:
                self.ids_ = [self.ids_[i] for i in kept]
            if not new.problem.kernel.takes_rows:
                self._count_features(new.problem.n, kept)
            return self

    # -- state -----------------------------------------------------------------------------------------------------

    def _check_frozen(self):
        """Updates continue a fit: what it was made with must be what it is still asked for."""
        self._refuse_balanced()
        check_unchanged(self, self._settings)

    def _refuse_balanced(self):
        if isinstance(getattr(self, "class_weight", None), str):
            raise ValueError(
                f"class_weight={self.class_weight!r} changes the weight of every row with each label learnt or"
                " forgotten; give numbers, for instance dict(zip(classes, compute_class_weight('balanced', ...)))."
            )

    def _current(self):
        """The solution at hand, None where its P is gone."""
        whole = None if self._parts is None else self._parts.whole
        if whole is None or not whole.current:
            return None
        if whole.problem.shift is not None:  # a mean remembers rows; P is that of the rows as they are from now on
            return updates.anew(whole.problem.replace(shift=None), self._fitted_task.Y)
        return whole

    def _take_over(self, task, whole, base):
        holdout = task.training_parts()
        holdout.whole = whole
        self._base_weights = base
        self._accept(task, whole, task.rule(whole, probabilities=False), holdout)  # calibrated when first asked for

    # -- evidence --------------------------------------------------------------------------------------------------

    @property
    def drift_(self):
        """Largest relative residual, or loss in a pivot, that updates met since P was last factorised; 0.0 after a fit.

        P is factorised anew when it passes 1e-10, counting by as much more as entries of the diagonal of P have shrunk
        since. With alpha below |K| / 1e4 updates refine what they use, and coefficients are wrong by far less: it may
        reach 1e-2 there, as long as fits and P itself are accurate to max(1e-9, 10 eps cond(M)).
        """
        check_is_fitted(self)
        whole = None if self._parts is None else self._parts.whole
        return float(getattr(whole.own_precision, "drift", 0.0)) if whole is not None else 0.0

    def forgetting_effects(self):
        """What forgetting each row would change in the leave-one-out residuals of the others.

        Returns
        -------
        ndarray of shape (n_samples,)
            Absolute change of their sum of squares, in O(n^2) for all rows together; 0 for rows of weight 0.
        """
        whole = self._loo().whole
        effects = np.zeros(whole.problem.n, whole.Y.dtype)
        effects[whole.rows] = influence.effects(whole)
        return effects

    def unlearning_certificate(self):
        """Evidence that the model equals one fitted from scratch on the rows it has now.

        Fits once more, with the kernel parameters of this model, and compares.

        Returns
        -------
        Certificate
            With ``residual``, ``difference``, ``loo_difference``, the ``limit`` that rounding explains, and ``holds``;
            prints as a short text.
        """
        whole, task = self._loo().whole, self._fitted_task
        new = updates.anew(task.problem, task.Y)
        again = copy(self)._accept(task, new, task.rule(new, probabilities=False))
        return certificate.compare(
            whole,
            new,
            self._stored(),
            again._stored(),
            n_forgotten=self._n_forgotten,
            inherited=("gamma",) if isinstance(self.gamma, str) and hasattr(task.problem.kernel, "gamma") else (),
        )

    def _stored(self):
        """The arrays that decisions are made of."""
        arrays = {"dual": self._dual, "offset": np.atleast_1d(self._offset), "confounds": self._confound_B}
        arrays |= {"cut": np.atleast_1d(self._rule.cut), "weights": self._weights}
        arrays |= dict(zip("NUR", self._rule.moments or (), strict=False))
        return {name: array for name, array in arrays.items() if array is not None}


def _is_plain_target(y, n):
    if type(y) is not np.ndarray or y.shape != (n,):
        return False
    return y.dtype.kind in "iubU" or (y.dtype.kind == "f" and bool(np.isfinite(y).all()))


def _as_stored(X, stored):
    """Dense or sparse like the rows there are."""
    if sp.issparse(stored):
        return X if sp.issparse(X) else sp.csr_array(X)
    return X.toarray() if sp.issparse(X) else X


def _as_targets(y, n):
    y = check_array(y, ensure_2d=False, dtype=None, input_name="y")
    if len(y) != n:
        raise ValueError(f"y has {len(y)} entries and X has {n} rows.")
    return y
