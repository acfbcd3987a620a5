"""Permutation tests of weights and patterns of a linear model (the algebra: ``permutation.patterns``)."""

from __future__ import annotations

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import gen_batches

from foldless._engine.linalg.threads import threads_by_size
from foldless._engine.linalg.types import MatrixLike, RandomStateLike
from foldless._engine.permutation.labelings import Solver
from foldless._engine.permutation.nulls import draw_null, scheme_of
from foldless._engine.permutation.patterns import (
    PatternTestResult,
    pattern_result,
    patterns_that_fit,
    weights_and_covariances,
)
from foldless._sklearn.adapters import closed_form_estimator
from foldless._sklearn.permutation_spec import (
    BATCH_LIMITS,
    PermutationData,
    check_permutations,
    has_class_weights,
    keep_association,
    warn_of_unchanged_labels,
)
from foldless._sklearn.pipelines import split_steps
from foldless._sklearn.progress import Progress
from foldless._sklearn.request import PermutationRequest
from foldless._sklearn.route import NoSharedP, require_closed_form
from foldless._sklearn.steps import StepsLike
from foldless.estimators.checks import as_confounds, confounds_left_out, rows_and_labels, warn_of_scale
from foldless.model_selection._types import ConfoundsLike, NullLike, Params


@threads_by_size
def permutation_test_pattern(
    estimator: BaseEstimator,
    X: MatrixLike,
    y: ArrayLike,
    *,
    n_permutations: int = 1000,
    null: NullLike = None,
    random_state: RandomStateLike = 0,
    params: Params = None,
    confounds: ConfoundsLike = None,
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
    null : {None, "free"}, array-like of shape (n_samples,) or null scheme, default=None
        As in :func:`permutation_test_score`: labels are permuted among all rows, among those with equal entries of an
        array, or by the orders of an object such as :class:`WholeGroups`. (There are no test sets here.)
    random_state : int, RandomState instance or None, default=0
    params : dict, default=None
        {"sample_weight": weights} for the fits; they stay with the rows. Class weights follow the labels, with a P for
        each permutation.
    confounds : array-like of shape (n_samples, n_confounds), default=None
        As in :func:`cross_validate`: regressed out of the features. Patterns are those of the features without them.
        What they explain of y stays in permutations, as in :func:`permutation_test_score`.
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
    request = PermutationRequest(
        estimator=estimator,
        X=X,
        y=y,
        n_permutations=n_permutations,
        random_state=random_state,
        verbose=verbose,
        params=params,
        confounds=confounds,
        null=null,
        steps=steps,
    )
    return run_pattern_test(request)


def run_pattern_test(request, limits=BATCH_LIMITS):
    """The :class:`PatternTestResult` of a request."""
    names = [str(name) for name in request.X.columns] if hasattr(request.X, "columns") else None
    _, request = request.behind_steps()
    estimator, params = request.estimator, request.params
    X, y = rows_and_labels(request.X, request.y)
    check_permutations(y, request.n_permutations)
    confounds = as_confounds(confounds_left_out(request.confounds, "patterns"))
    data = PermutationData(X, y, params.get("sample_weight"), confounds)
    solved, estimator_task = require_closed_form(lambda: _solved(data, estimator, params), _refusal)
    warn_of_scale(estimator_task.task.problem)
    kernel, n = estimator_task.task.problem.kernel, estimator_task.task.problem.n
    if not kernel.is_linear:
        raise ValueError(f"patterns need kernel='linear' and penalty='rkhs'; this one is {kernel!r}.")
    scheme = scheme_of(request.null, None, n, names=("free",))
    scheme, data = keep_association(estimator, data, scheme)
    orders = draw_null(scheme, n, request.n_permutations, request.random_state).orders
    warn_of_unchanged_labels(data, orders)
    moving = has_class_weights(estimator)
    size = 1 if moving else patterns_that_fit(estimator_task.task, limits.memory)
    progress = Progress(request.n_permutations, "permutations", request.verbose)
    batches = _batches(data, solved, None if moving else estimator_task.task, orders, size, progress)
    names = names if names is not None and len(names) == estimator_task.task.problem.X.shape[1] else None
    return pattern_result(batches, request.n_permutations, estimator_task.classes, names)


def _solved(data, estimator, params):
    """(the estimator to solve, its :class:`EstimatorTask`)."""
    steps = split_steps(estimator)
    solved = closed_form_estimator(steps, steps.fit_params_of_last(params))
    return solved, data.task(solved)


def _refusal(obstacle):
    """Why there is no model of all rows, in words."""
    if isinstance(obstacle, NoSharedP):
        return f"patterns are those of one fit to all rows: {obstacle}. Use {obstacle.otherwise}."
    return f"patterns need a linear least-squares model: {obstacle}."


def _batches(data, estimator, task, orders, size, progress):
    """Weights and covariances of the labelings, in batches, all from one P; without a task each has a P of its own."""
    solver = None if task is None else Solver.of(task.problem)
    for part in gen_batches(len(orders), size):
        if task is None:  # class weights follow the labels
            weighted = data.labelled(orders[part.start]).task(estimator).task
            batch = weights_and_covariances(Solver.of(weighted.problem), weighted, orders[:1])
        else:
            batch = weights_and_covariances(solver, task, orders[part], data.residuals)
        yield batch
        progress.step(steps=size)
