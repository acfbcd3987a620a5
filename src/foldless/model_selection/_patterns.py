"""Permutation tests of weights and patterns of a linear model (the algebra: ``permutation.patterns``)."""

from __future__ import annotations

from typing import Literal

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import gen_batches

from foldless.bridge.adapters import closed_form_estimator, freeze_class_weights
from foldless.bridge.permutation_spec import (
    PermutationData,
    check_numbers,
    keep_association,
    warn_of_weak_null,
    weights_move,
)
from foldless.bridge.progress import Progress
from foldless.bridge.route import NoClosedForm, NoSharedP
from foldless.bridge.steps import StepsLike, front_of
from foldless.estimators.checks import rows_and_labels, warn_of_scale
from foldless.linalg.threads import threads_by_size
from foldless.linalg.types import MatrixLike, RandomStateLike
from foldless.model_selection._types import Params
from foldless.permutation.labelings import Solver
from foldless.permutation.nulls import Exchangeable, draw_null
from foldless.permutation.patterns import PatternTestResult, pattern_result, patterns_that_fit, weights_and_covariances


@threads_by_size
def permutation_test_pattern(
    estimator: BaseEstimator,
    X: MatrixLike,
    y: ArrayLike,
    *,
    n_permutations: int = 1000,
    strata: ArrayLike | None = None,
    random_state: RandomStateLike = 0,
    params: Params = None,
    weights: Literal["fixed"] | None = None,
    confounds: ArrayLike | None = None,
    memory_limit: int = 2**29,
    verbose: int = 0,
    steps: StepsLike = "each",
) -> PatternTestResult:
    """Weights and forward-model patterns of a linear model fitted on all rows, with a permutation null per feature.

    Parameters
    ----------
    estimator : LSSVC, LSSVR, KernelFisherDiscriminant with kernel="linear", Ridge, RidgeClassifier
        With ``standardize=True`` weights and patterns are those of the standardised features.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
    n_permutations : int, default=1000
    strata : array-like of shape (n_samples,), default=None; labels are permuted among rows with equal entries only
    random_state : int, RandomState instance or None, default=0
    params : dict, default=None; {"sample_weight": weights} for the fits; they stay with the rows
    weights : {None, "fixed"}, default=None
        None: class weights follow the labels, with a P for each permutation; "fixed": they stay with the
        rows, and p-values may be too small.
    confounds : array-like of shape (n_samples, n_confounds), default=None
        As in :func:`cross_validate`: regressed out of the features. Patterns are those of the features without them.
        What they explain of y stays in permutations, as in :func:`permutation_test_score`.
    memory_limit : int, default=2**29; bytes for the columns that are worked on at a time
    verbose : int, default=0; 1 prints progress to standard error
    steps : {"each", "once"}, default="each"
        "once" for a pipeline: its first steps are fitted on all rows, labels unseen, and weights and patterns are those
        of the features behind them. The model is fitted on all rows in any case.

    Returns
    -------
    PatternTestResult

    Examples
    --------
    >>> import numpy as np
    >>> from foldless import LSSVC
    >>> from foldless.model_selection import permutation_test_pattern
    >>> rng = np.random.default_rng(0)
    >>> noise, y = rng.normal(size=100), np.arange(100) % 2
    >>> X = np.column_stack([y + noise, noise, rng.normal(size=100)])  # signal and noise, noise alone, neither
    >>> result = permutation_test_pattern(LSSVC("linear"), X, y)
    >>> result.weights_pvalue_fwe[0] < 0.05                            # the second feature cancels noise ...
    array([ True,  True, False])
    >>> result.pvalue_fwe[0] < 0.05                                    # ... but carries no signal
    array([ True, False, False])
    """
    front = front_of(estimator, X, params, steps)
    estimator, params = front.estimator, front.params
    names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
    X, y = rows_and_labels(front.X, y)
    check_numbers(y, n_permutations, weights, memory_limit)
    if weights == "permuted":
        raise ValueError("weights='permuted': patterns know sample weights that stay with their rows only.")
    data = PermutationData(X, y, params.get("sample_weight"), confounds)
    fixed = freeze_class_weights(estimator, y) if weights == "fixed" else estimator
    try:
        solved = closed_form_estimator(fixed, params)
        built = data.task(solved)
    except NoClosedForm as obstacle:
        if isinstance(obstacle, NoSharedP):
            raise ValueError(
                f"patterns are those of one fit to all rows: {obstacle}. Use {obstacle.otherwise}."
            ) from None
        raise ValueError(f"patterns need a linear least-squares model: {obstacle}.") from None
    warn_of_scale(built.task.problem)
    kernel, n = built.task.problem.kernel, built.task.problem.n
    if not kernel.is_linear:
        raise ValueError(f"patterns need kernel='linear' and penalty='rkhs'; this one is {kernel!r}.")
    scheme, data = keep_association(estimator, data, Exchangeable(strata))
    orders = draw_null(scheme, n, n_permutations, random_state).orders
    warn_of_weak_null(estimator, data, orders, weights)
    moving = weights_move(estimator, None, weights)
    size = 1 if moving else patterns_that_fit(built.task, memory_limit)
    progress = Progress(n_permutations, "permutations", verbose)
    batches = _batches(data, solved, None if moving else built.task, orders, size, progress)
    names = names if names is not None and len(names) == built.task.problem.X.shape[1] else None
    return pattern_result(batches, n_permutations, built.classes, names)


def _batches(data, estimator, task, orders, size, progress):
    """Weights and covariances of the labelings, in batches, all from one P; without a task each has a P of its own."""
    solver = None if task is None else Solver(task.problem)
    for part in gen_batches(len(orders), size):
        if task is None:  # class weights follow the labels
            own = data.labelled(orders[part.start]).task(estimator).task
            batch = weights_and_covariances(Solver(own.problem), own, orders[:1])
        else:
            batch = weights_and_covariances(solver, task, orders[part], data.residuals)
        yield batch
        progress.step(steps=size)
