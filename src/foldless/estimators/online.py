"""Learning and forgetting rows behind scikit-learn's ``partial_fit``.

A model after any sequence of ``partial_fit`` and ``forget`` equals one fitted on the rows it then has, with the kernel
parameters resolved by the first ``fit``. Everything is checked and computed before anything is changed; what fails
leaves the model as it was.
"""

from collections.abc import Callable, Iterable
from copy import copy
from functools import partial
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted, validate_data

from foldless.estimators.base import KernelMachine
from foldless.estimators.checks import as_stored, check_more_gram, check_more_weights, check_targets, is_plain_target
from foldless.estimators.rows import check_ids, fewer_ids, more_ids, positions
from foldless.estimators.state import all_or_nothing, check_unchanged, warn_of_few_rows
from foldless.kernels.registry import given_kernel
from foldless.online import certificate, influence, updates
from foldless.online.certificate import Certificate


class OnlineMachine(KernelMachine):
    """Base of estimators that learn and forget rows."""

    # What subclasses know: y. ``weights`` are the caller's, of all rows of ``problem``.
    _task_with_more: Callable  # (task, y, weights, classes, problem): the task of problem, whose last rows have y
    _task_with_fewer: Callable  # (task, kept, weights, problem): the task of problem, the rows kept of the present one

    # -- learning --------------------------------------------------------------------------------------------------

    def _learn(self, X, y, *, classes=None, sample_weight=None, confounds=None, ids=None):
        """``partial_fit`` of every estimator; the first one is a fit."""
        with all_or_nothing(self):
            if not self.__sklearn_is_fitted__():
                return self._learn_first(X, y, classes, sample_weight, confounds, ids)
            self._check_can_update()
            problem = self._fitted_task.problem
            X, y = self._checked_new_rows(X, y)
            weights = self._joined_weights(sample_weight, X)
            Q = np.hstack([np.ones((X.shape[0], problem.intercept), X.dtype), self._confounds_to_learn(confounds, X)])
            ids = more_ids(self.ids_, check_ids(ids, X.shape[0], self.ids_))
            new = self._task_with_more(self._fitted_task, y, weights, classes, problem.extended(X, Q))
            whole = self._solution_to_update(new.problem.root_w[: problem.n], problem.root_w)
            learn = updates.solve_anew if whole is None else partial(updates.learn, whole)
            return self._store_update(new, learn(new.problem, new.Y), weights, ids)

    def _learn_first(self, X, y, classes, sample_weight, confounds, ids):
        self._refuse_balanced()
        X, y, weights = self._copied(*self._validated(X, y, sample_weight, least=1))
        task = self._make_task(X, y, weights, classes)
        warn_of_few_rows(given_kernel(self), task.problem.kernel, task.problem.n, stacklevel=4)
        return self._fit_task(task, weights, confounds, ids)

    def _checked_new_rows(self, X, y):
        problem = self._fitted_task.problem
        if not problem.kernel.takes_rows:
            X = check_more_gram(X, problem)
            self._set_columns(X.shape[1])
            return X, check_targets(y, X.shape[0])
        if not (self._is_plain(X) and is_plain_target(y, len(X))):
            options = {"accept_sparse": "csr", "multi_output": True, "y_numeric": False}
            X, y = validate_data(self, X, y, reset=False, dtype=problem.dtype, **options)
        return as_stored(X, problem.X), y

    def _set_columns(self, n, kept=None):
        """The number of columns of a precomputed kernel, and of their names those of the rows ``kept``."""
        self.n_features_in_ = n
        names = self.__dict__.pop("feature_names_in_", None)
        if names is not None and kept is not None:
            self.feature_names_in_ = names[kept]

    def _joined_weights(self, sample_weight, X):
        """The caller's weights of all rows, None where no row ever had one."""
        if sample_weight is None and self._base_weights is None:
            return None
        old = np.ones(self._fitted_task.problem.n, X.dtype) if self._base_weights is None else self._base_weights
        return np.concatenate([old, check_more_weights(sample_weight, X)])

    def _confounds_to_learn(self, confounds, X):
        if confounds is None and len(self._confound_B):
            raise ValueError(
                f"confounds: the model was fitted with {len(self._confound_B)}; give those of the new rows as well."
            )
        return self._new_confounds(confounds, X)

    # -- forgetting ------------------------------------------------------------------------------------------------

    def forget(self, indices: ArrayLike | None = None, *, ids: Iterable | None = None) -> Self:
        """Forget rows exactly: the model becomes the one fitted without them, with no trace of them in any attribute.

        A class that loses its last row goes with it, unless ``partial_fit(classes=...)`` named it.

        Parameters
        ----------
        indices : array-like of int, or of bool with one entry per row, default=None
            Positions of the rows in the order of insertion, from 0; later rows move up.
        ids : array-like, default=None
            In place of positions, ids given to ``fit`` and ``partial_fit``.
        """
        check_is_fitted(self)
        problem = self._fitted_task.problem
        rows = positions(indices, ids, problem.n, self.ids_)
        if len(rows) == 0:
            return self
        if len(rows) == problem.n:
            raise ValueError(f"forget would leave none of the {len(rows)} rows; make a new estimator instead.")
        self._check_can_update()
        kept = np.delete(np.arange(problem.n), rows)
        if not problem.root_w[kept].any():
            raise ValueError(f"forget would leave {len(kept)} rows, all of weight 0; make a new estimator instead.")
        with all_or_nothing(self):
            return self._forget(rows, kept)

    def _forget(self, rows, kept):
        problem = self._fitted_task.problem
        weights = None if self._base_weights is None else self._base_weights[kept]
        without = problem.subset(kept, shift=None)
        new = self._task_with_fewer(self._fitted_task, kept, weights, without)
        whole = self._solution_to_update(new.problem.root_w, problem.root_w[kept])
        if whole is None:
            whole = updates.solve_anew(new.problem, new.Y)
        else:
            active = rows[problem.root_w[rows] > 0]
            whole = updates.forget(whole, new.problem, new.Y, np.searchsorted(whole.rows, active))
        self._n_forgotten += len(rows)
        if not without.kernel.takes_rows:
            self._set_columns(len(kept), kept)
        return self._store_update(new, whole, weights, fewer_ids(self.ids_, kept))

    # -- state -----------------------------------------------------------------------------------------------------

    def _check_can_update(self):
        """Updates continue a fit: what it was made with must be what it is still asked for."""
        self._refuse_balanced()
        check_unchanged(self, self._settings)

    def _refuse_balanced(self):
        if isinstance(getattr(self, "class_weight", None), str):
            raise ValueError(
                f"class_weight={self.class_weight!r} changes the weight of every row with each label learnt or"
                " forgotten; give numbers, for instance dict(zip(classes, compute_class_weight('balanced', ...)))."
            )

    def _solution_to_update(self, root_w, before):
        """The solution at hand; None where its P is gone, or a new class changed the weights of all rows."""
        whole = None if self._parts is None else self._parts.whole
        if whole is None or not whole.current or not np.array_equal(root_w, before):
            return None
        if whole.problem.shift is not None:  # a mean remembers rows; P is that of the rows as they are from now on
            return updates.solve_anew(whole.problem.replace(shift=None), self._fitted_task.Y)
        return whole

    def _store_update(self, task, whole, weights, ids):
        parts = task.training_parts(whole=whole)
        self._base_weights = weights
        self.ids_ = ids
        rule = task.rule(whole, probabilities=False)  # calibrated when first asked for
        return self._accept(task, whole, rule, parts)

    # -- evidence --------------------------------------------------------------------------------------------------

    @property
    def drift_(self) -> float:
        """Largest relative residual, or loss in a pivot, that updates met since P was last factorised; 0.0 after a fit.

        P is factorised anew when it passes 1e-10, counting by as much more as entries of the diagonal of P have shrunk
        since. With alpha below |K| / 1e4 updates refine what they use, and coefficients are wrong by far less: it may
        reach 1e-2 there, as long as fits and P itself are accurate to max(1e-9, 10 eps cond(M)).
        """
        check_is_fitted(self)
        whole = None if self._parts is None else self._parts.whole
        return float(whole.own_precision.drift) if whole is not None else 0.0

    def forgetting_effects(self) -> np.ndarray:
        """What forgetting each row would change in the leave-one-out residuals of the others, (n_samples,).

        The absolute change of their sum of squares, in O(n^2) for all rows together; 0 for rows of weight 0.
        """
        whole = self._loo().whole
        effects = np.zeros(whole.problem.n, whole.Y.dtype)
        effects[whole.rows] = influence.effects(whole)
        return effects

    def unlearning_certificate(self) -> Certificate:
        """Evidence that the model equals one fitted from scratch on the rows it has now.

        Fits once more, with the kernel parameters of this model, and compares: ``residual``, ``difference``,
        ``loo_difference``, the ``limit`` that rounding explains, and ``holds``; prints as a short text.
        """
        whole = self._loo().whole
        task = self._fitted_task
        new = updates.solve_anew(task.problem, task.Y)
        again = copy(self)._accept(task, new, task.rule(new, probabilities=False))
        about = {"n_forgotten": self._n_forgotten, "inherited": tuple(given_kernel(self).unresolved)}
        return certificate.compare(whole, new, self._stored(), again._stored(), **about)

    def _stored(self):
        arrays = {"dual": self._dual, "offset": np.atleast_1d(self._offset), "confounds": self._confound_B}
        arrays |= {"cut": np.atleast_1d(self._rule.cut), "weights": self._weights}
        arrays |= dict(zip("NUR", self._rule.moments or (), strict=False))
        return {name: array for name, array in arrays.items() if array is not None}
