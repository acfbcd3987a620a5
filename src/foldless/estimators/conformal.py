"""Conformal sets and intervals of the estimators: which fits they are for, and new rows some at a time."""

from typing import Any

import numpy as np
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from foldless._engine.heldout.border import Border, border
from foldless._engine.linalg.threads import threads_by_size
from foldless._engine.linalg.types import MatrixLike
from foldless._engine.readout.conformal import in_set, label_p_values, one_a_class
from foldless.estimators.checks import FLOATS, is_number, validated_X
from foldless.estimators.rows import reads_one_state
from foldless.estimators.tensors import require_numpy

ENTRIES = 2**21  # of an intermediate array


def check_coverage(coverage):
    """Refuse a coverage that is not between 0 and 1."""
    if not is_number(coverage) or not 0 < coverage < 1:
        raise ValueError(f"coverage={coverage!r} must lie between 0 and 1, for instance 0.9.")


def new_rows(estimator, X):
    """Validated new rows, as the kernel sees them."""
    check_is_fitted(estimator)
    require_numpy(estimator, "a prediction set or interval")
    return estimator._seen(validated_X(estimator, X, dtype=FLOATS))


def borders(estimator, X, what, instead=""):
    """Yield the :class:`Border` of new rows X, some at a time, for ``what``; errors end with ``instead``."""
    X = new_rows(estimator, X)
    _check_exchangeable(estimator._fitted_task.problem, what, instead)
    solution = estimator._loo().full_fit
    for rows in gen_batches(X.shape[0], max(1, ENTRIES // len(solution.rows))):
        yield border(solution, X[rows])


def _check_exchangeable(problem, what, instead):
    """Refuse fits in which a new row is not exchangeable with the others, or whose border has no closed form."""
    if np.ptp(problem.root_w) > 0:
        raise ValueError(
            f"sample_weight, class_weight: {what} ranks a new row among those of the fit, which rows of different"
            f" weights do not allow. Fit without weights{instead}."
        )
    if problem.Q.shape[1] > problem.intercept:
        raise ValueError(f"confounds: {what} has none. Fit without confounds{instead}.")
    if problem.kernel.squares_condition:
        raise ValueError(
            f"penalty='coef': {what} has no closed form, as a new row has no basis function of its own. Use"
            f" penalty='rkhs'{instead}."
        )
    if not problem.kernel.takes_rows:
        raise ValueError(
            f"kernel='precomputed': {what} needs k(x, x) of new rows, which X does not hold. Give a kernel function and"
            f" the rows themselves{instead}."
        )


class ConformalSets:
    """Full conformal prediction sets of a classifier that solves a Task."""

    _fitted_task: Any

    @threads_by_size
    @reads_one_state
    def conformal_p_values(self, X: MatrixLike, *, class_conditional: bool = False) -> np.ndarray:
        """p-values (n_samples, n_classes) of the hypotheses that a new row has each of the labels ``classes_``.

        With a label tried, the model is fitted to all rows and the new one; p is the share of these n + 1 rows whose
        leave-one-out margin, the fit of the own class minus the largest one of the others, is as small as that of the
        new row, or smaller. All fits are exact, and none is made. ``class_conditional`` counts among the rows of the
        label that is tried.
        """
        check_is_fitted(self)
        task, p_values = self._fitted_task, []
        for new in borders(self, X, "conformal prediction"):
            f, A = (one_a_class(task.readout.plus_minus_fits(values)) for values in (new.f, new.A))
            new = Border(f, new.c, new.s, A, new.p)
            p_values.append(label_p_values(new, task.codes, task.n_classes, class_conditional=class_conditional))
        return np.concatenate(p_values)

    def predict_set(self, X: MatrixLike, coverage: float = 0.9, *, class_conditional: bool = False) -> np.ndarray:
        """Sets of labels that hold the true one with a probability of at least ``coverage``, whatever the model.

        A boolean array (n_samples, n_classes) in the order of ``classes_``: True for labels whose p-value
        (``conformal_p_values``) exceeds 1 - coverage. Full conformal prediction, exact for exchangeable rows, old and
        new. A set may be empty, where no label suits the row, or hold several. ``class_conditional`` promises the
        coverage for the rows of every class rather than for all together; a class of fewer rows than
        1 / (1 - coverage) - 1 is then in all sets.
        """
        check_coverage(coverage)
        return in_set(self.conformal_p_values(X, class_conditional=class_conditional), coverage)
