"""Learning and forgetting rows: ``partial_fit`` and ``forget``.

After any sequence of them a model equals one fitted on the rows that it then has, with the kernel parameters resolved
by the first ``fit``. Everything is checked and computed before anything is changed: a call that fails leaves the model
as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from foldless._engine.linalg.threads import threads_by_size
from foldless._engine.online import certificate, influence, updates
from foldless._engine.online.certificate import Certificate
from foldless.estimators.base import KernelMachine
from foldless.estimators.checks import as_stored, is_plain_target, validated_rows
from foldless.estimators.rows import Ids, all_or_nothing, check_unchanged, joined_ids, positions, reads_one_state
from foldless.estimators.tensors import require_numpy
from foldless.kernels.matrices import canonical
from foldless.kernels.registry import check_symmetric


class OnlineMachine(KernelMachine):
    """Base of estimators that learn and forget rows."""

    # Subclasses define the meaning of y. ``weights`` are the caller's, of all rows of ``problem``.
    _task_with_more: Callable  # (task, y, weights, classes, problem): the task of problem, whose last rows have y
    _task_with_fewer: Callable  # (task, remaining, weights, problem): the task of the remaining rows of the present one

    # -- learning --------------------------------------------------------------------------------------------------

    @threads_by_size
    def _learn(self, X, y, *, classes=None, sample_weight=None, confounds=None, ids=None):
        """``partial_fit`` of all estimators; the first call fits."""
        with all_or_nothing(self) as model:
            model._check_can_update()
            if model.__sklearn_is_fitted__():
                model._learn_more(X, y, classes, sample_weight, confounds, ids)
            else:
                model._fit_anew(X, y, sample_weight, confounds, ids, classes=classes, least=1)
                model._warn_of_few_rows(stacklevel=5)
        return self

    def _learn_more(self, X, y, classes, sample_weight, confounds, ids):
        problem = self._fitted_task.problem
        X, y = self._checked_new_rows(X, y, problem)
        weights = self._joined_weights(sample_weight, X)
        k = len(self._confound_B)
        if confounds is None and k:
            raise ValueError(f"confounds: the model was fitted with {k}; give those of the new rows as well.")
        C = np.empty((X.shape[0], 0)) if confounds is None else self._new_confounds(confounds, X)
        Q = problem.columns(C)
        ids = joined_ids(self.ids_, ids, X.shape[0])
        new = self._task_with_more(self._fitted_task, y, weights, classes, problem.extended(X, Q))
        solution = self._solution_to_update(new.problem.root_w[: problem.n], problem.root_w)
        learn = updates.solve_anew if solution is None else partial(updates.learn, solution)
        self._store_update(new, learn(new.problem, new.Y), weights, ids)

    def _checked_new_rows(self, X, y, problem):
        if not problem.kernel.takes_rows:
            return self._checked_kernel_of_new_rows(X, y, problem)
        if not (self._is_plain(X) and is_plain_target(y, len(X))):
            options = {"multi_output": True, "y_numeric": False}
            X, y = validated_rows(self, X, y, dtypes=[problem.dtype], reset=False, **options)
        return as_stored(self._seen(X), problem.X), y

    def _checked_kernel_of_new_rows(self, X, y, problem):
        """``kernel="precomputed"``: X is the kernel of new rows with the rows of the model and with each other."""
        X = check_array(X, accept_sparse="csr", dtype=problem.dtype, input_name="X")
        X = as_stored(canonical(X), problem.X)
        t = X.shape[0]
        if X.shape[1] != problem.n + t:
            raise ValueError(
                f"X has shape {X.shape}; with kernel='precomputed', {t} new rows need their kernel with the"
                f" {problem.n} rows of the model and with each other: shape ({t}, {problem.n + t})."
            )
        check_symmetric(X[:, problem.n :], "the precomputed kernel of the new rows")
        y = check_array(y, ensure_2d=False, dtype=None, input_name="y")
        if len(y) != t:
            raise ValueError(f"y has {len(y)} entries and X has {t} rows.")
        self._set_columns(X.shape[1])
        return X, y

    def _set_columns(self, n, kept=None):
        """The number of columns of a precomputed kernel, and of their names those of the rows ``kept``."""
        self.n_features_in_ = n
        names = self.__dict__.pop("feature_names_in_", None)
        if names is not None and kept is not None:
            self.feature_names_in_ = names[kept]

    def _joined_weights(self, sample_weight, X):
        """The caller's weights of all rows, None where no row ever had one; one number is that of every new row."""
        if sample_weight is None and self._base_weights is None:
            return None
        n = X.shape[0]
        if sample_weight is None or np.ndim(sample_weight) == 0:
            sample_weight = np.full(n, 1.0 if sample_weight is None else sample_weight)
        new = check_array(sample_weight, ensure_2d=False, dtype=X.dtype, input_name="sample_weight")
        if new.shape != (n,) or (new < 0).any():
            raise ValueError(
                f"sample_weight must hold one number >= 0 for each of the {n} new rows; found"
                f" {'negative values' if (new < 0).any() else f'shape {new.shape}'}."
            )
        old = np.ones(self._fitted_task.problem.n, X.dtype) if self._base_weights is None else self._base_weights
        return np.concatenate([old, new])

    # -- forgetting ------------------------------------------------------------------------------------------------

    @threads_by_size
    def forget(self, indices: ArrayLike | None = None, *, ids: Ids = None) -> Self:
        """Forget rows exactly: the model becomes the one fitted without them, with no trace of them in any attribute.

        A class that loses its last row goes with it, unless ``partial_fit(classes=...)`` named it.

        Parameters
        ----------
        indices : array-like of int, or of bool with one entry per row, default=None
            Positions of the rows in the order of insertion, from 0; later rows move up.
        ids : array-like, default=None; in place of positions, ids given to ``fit`` and ``partial_fit``
        """
        check_is_fitted(self)
        with all_or_nothing(self) as model:
            model._forget(indices, ids)
        return self

    def _forget(self, indices, ids):
        problem = self._fitted_task.problem
        rows = positions(indices, ids, problem.n, self.ids_)
        if len(rows) == 0:
            return
        if len(rows) == problem.n:
            raise ValueError(f"forget would leave none of the {len(rows)} rows; make a new estimator instead.")
        self._check_can_update()
        remaining = np.delete(np.arange(problem.n), rows)
        if not problem.root_w[remaining].any():
            n_left = len(remaining)
            raise ValueError(f"forget would leave {n_left} rows, all of weight 0; make a new estimator instead.")
        weights = None if self._base_weights is None else self._base_weights[remaining]
        smaller = problem.subset(remaining, shift=None).recentred()
        new = self._task_with_fewer(self._fitted_task, remaining, weights, smaller)
        solution = self._solution_to_update(new.problem.root_w, problem.root_w[remaining])
        if solution is None:
            solution = updates.solve_anew(new.problem, new.Y)
        else:
            active = rows[problem.root_w[rows] > 0]
            solution = updates.forget(solution, new.problem, new.Y, np.searchsorted(solution.rows, active))
        self._n_forgotten += len(rows)
        if not problem.kernel.takes_rows:
            self._set_columns(len(remaining), remaining)
        ids = None if self.ids_ is None else [self.ids_[row] for row in remaining]
        self._store_update(new, solution, weights, ids)

    # -- state -----------------------------------------------------------------------------------------------------

    def _check_can_update(self):
        """Refuse updates with parameters other than those of the fit, and with weights that updates would change."""
        if isinstance(getattr(self, "class_weight", None), str):
            raise ValueError(
                f"class_weight={self.class_weight!r} changes the weight of every row with each label learnt or"
                " forgotten; give numbers, for instance dict(zip(classes, compute_class_weight('balanced', ...)))."
            )
        if self.__sklearn_is_fitted__():
            require_numpy(self, "an update")
            check_unchanged(self, self._settings)

    def _solution_to_update(self, root_w, before):
        """The solution to update; None where its P is gone, or a new class changed the weights of all rows."""
        solution = None if self._parts is None else self._parts.full_fit
        if solution is None or not solution.current or not np.array_equal(root_w, before):
            return None
        if solution.problem.shift is not None:  # a mean depends on forgotten rows; from now on features are not centred
            return updates.solve_anew(solution.problem.replace(shift=None), self._fitted_task.Y)
        return solution

    def _store_update(self, task, solution, weights, ids):
        self._base_weights = weights
        self.ids_ = ids
        rule = task.rule(solution, probabilities=False)  # calibrated by the first call that needs probabilities
        self._accept(task, solution, rule, task.training_parts(solution=solution))

    # -- evidence --------------------------------------------------------------------------------------------------

    @property
    @reads_one_state
    def drift_(self) -> float:
        """Largest relative residual, or loss in a pivot, that updates met since P was last factorised; 0.0 after a fit.

        P is factorised anew when it passes 1e-10, counting by as much more as entries of the diagonal of P have shrunk
        since. With alpha below |K| / 1e4 updates refine what they use, and coefficients are wrong by far less: it may
        reach 1e-2 there, as long as fits and P itself are accurate to max(1e-9, 10 eps cond(M)).
        """
        check_is_fitted(self)
        return 0.0 if self._parts is None else float(self._parts.full_fit.drift)

    @threads_by_size
    @reads_one_state
    def forgetting_effects(self) -> np.ndarray:
        """What forgetting each row would change in the leave-one-out residuals of the others, (n_samples,).

        The absolute change of their sum of squares, in O(n^2) for all rows together; 0 for rows of weight 0. With
        confounds, the residuals include the part that the confounds explain.
        """
        solution = self._loo().full_fit
        effects = np.zeros(solution.problem.n, solution.Y.dtype)
        effects[solution.rows] = influence.effects(solution)
        return effects

    @threads_by_size
    @reads_one_state
    def unlearning_certificate(self) -> Certificate:
        """Evidence that the model equals one fitted from scratch on the rows it has now.

        Fits once more, with the kernel parameters of this model, and compares: ``residual``, ``difference``,
        ``loo_difference``, the ``limit`` that rounding explains, and ``holds``; prints as a short text.
        """
        solution = self._loo().full_fit
        task = self._fitted_task
        new = updates.solve_anew(task.problem, task.Y)
        again = copy(self)._accept(task, new, task.rule(new, probabilities=False))
        about = {"n_forgotten": self._n_forgotten, "inherited": tuple(self._taken_from_rows())}
        return certificate.compare(solution, new, self._stored(), again._stored(), **about)

    def _stored(self):
        arrays = {"dual": self._dual, "offset": np.atleast_1d(self._offset), "confounds": self._confound_B}
        arrays |= {"cut": np.atleast_1d(self._rule.cut), "weights": self._weights}
        if self._rule.readout.needs_moments:
            arrays |= dict(zip("NUC", self._rule.moments, strict=False))
        return {name: array for name, array in arrays.items() if array is not None}
