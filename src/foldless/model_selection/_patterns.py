"""Weights of a linear model, their forward-model patterns, and a permutation null for every feature.

A weight says how a feature enters the decision s = x' w, not whether the feature carries the signal: a sensor that only
cancels noise has a large weight. The pattern of the equivalent forward model does (Haufe et al. 2014, eq. 6 and 8, for
each decision by itself):

    a = Cov(x, s) / Var(s) = Cov(x) w / (w' Cov(x) w)

Permuted labels give permuted weights from the same P, so the null costs one more product. What is tested is Cov(x, s),
the pattern before the division: under permuted labels Var(s) shrinks, and dividing by it would inflate the null.

s is the fit of targets +-1, one against all: of a fixed scale, as a null distribution needs it. Two-class decisions are
that fit up to a factor; those of a discriminant of several classes are made of these fits, but grow with the distance
of the classes, and a feature of pure noise would seem to grow with them.
"""

from dataclasses import dataclass, replace

import numpy as np
from sklearn.utils import _safe_indexing, gen_batches, indexable

from foldless.bridge.path import Path, route
from foldless.bridge.progress import Progress
from foldless.linalg.memory import require_memory
from foldless.model_selection._labelings import TestData, chunk
from foldless.model_selection._permutation_arguments import (
    check_arguments,
    check_exchangeable,
    checked_strata,
    warn_of_fixed,
)
from foldless.model_selection._permutation_way import frozen, weights_move
from foldless.permutation.labelings import Labelings, Solver
from foldless.permutation.nulls import ROUNDING, permutations, with_truth
from foldless.readout.codings import against_all


@dataclass(repr=False)
class PatternTestResult:
    """Weights and patterns of the decisions of a linear model, with p-values for every feature.

    Attributes
    ----------
    weights : ndarray of shape (n_decisions, n_features)
        Of the fits of targets +-1, one against all: ``coef_`` of LSSVC.
    patterns : ndarray of shape (n_decisions, n_features)
        Cov(x, s) / Var(s) of these fits s.
    pvalue, weights_pvalue : ndarray of shape (n_decisions, n_features)
        Two-sided, for each feature by itself: of Cov(x, s), the pattern up to the scale of s, and of the weights.
    pvalue_fwe, weights_pvalue_fwe : ndarray of shape (n_decisions, n_features)
        Corrected for the number of features by the largest one of every permutation, for each decision. Features should
        be on one scale for this to be fair.
    outputs : list, what each decision is for: the class it favours, or the number of the output
    feature_names : list of str or None
    n_permutations : int
    """

    weights: np.ndarray
    patterns: np.ndarray
    pvalue: np.ndarray
    pvalue_fwe: np.ndarray
    weights_pvalue: np.ndarray
    weights_pvalue_fwe: np.ndarray
    outputs: list
    feature_names: list | None
    n_permutations: int

    def __repr__(self):
        few = (self.pvalue_fwe <= 0.05).sum(1)
        found = ", ".join(f"{output}: {count}" for output, count in zip(self.outputs, few, strict=True))
        return (
            f"patterns of {self.patterns.shape[1]} features, {self.n_permutations} permutations; family-wise p <= 0.05"
            f" for {found}"
        )


def permutation_test_pattern(
    estimator,
    X,
    y,
    *,
    n_permutations=1000,
    strata=None,
    random_state=0,
    params=None,
    weights=None,
    confounds=None,
    memory_limit=2**29,
    verbose=0,
):
    """Weights and forward-model patterns of a linear model fitted on all rows, with a permutation null per feature.

    Parameters
    ----------
    estimator : LSSVC, LSSVR, KernelFisherDiscriminant with kernel="linear", Ridge, RidgeClassifier
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
    n_permutations : int, default=1000
    strata : array-like of shape (n_samples,), default=None
        Labels are permuted among rows with equal entries only.
    random_state : int, RandomState instance or None, default=0
    params : dict, default=None
        {"sample_weight": weights} for the fits; they stay with the rows.
    weights : {None, "fixed"}, default=None
        None: class weights follow the labels, with a factorisation for each permutation; "fixed": they stay with the
        rows, and p-values may be too small.
    confounds : array-like of shape (n_samples, n_confounds), default=None
        Columns that are fitted without penalty; decisions leave their part out.
    memory_limit : int, default=2**29
        Bytes for the columns that are worked on at a time.
    verbose : int, default=0
        1 prints progress to standard error.

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
    X, y = indexable(X, y)
    check_arguments(y, n_permutations, None, weights, memory_limit)
    if weights == "permuted":
        raise ValueError("weights='permuted': patterns know sample weights that stay with their rows only.")
    params = params or {}
    path, solved = route(frozen(estimator, y) if weights == "fixed" else estimator, params)
    given = TestData(X, y, params.get("sample_weight"), confounds)
    built = path if solved is None else given.task(solved)
    if isinstance(built, Path):
        raise ValueError(f"patterns need a linear least-squares model: {built.reason}.")
    task, classes, _ = built
    if not task.problem.kernel.is_linear:
        raise ValueError(f"patterns need kernel='linear'; this one is {task.problem.kernel!r}.")
    warn_of_fixed(estimator, weights)
    n = task.problem.n
    require_memory((n_permutations, n), np.int32, "the row numbers of the permutations")
    orders = with_truth(permutations(n, n_permutations, random_state, checked_strata(strata, n)))
    check_exchangeable(y, orders)
    progress, size = Progress(n_permutations, "permutations", verbose), _chunk(task, memory_limit)
    if weights_move(estimator, None, weights):  # every permutation has its own P
        tasks = (replace(given, y=_safe_indexing(y, order)).task(solved)[0] for order in orders)
        batches = (_weights(Solver(each.problem), Labelings.of(each, np.arange(n)[None])) for each in tasks)
    else:
        solver = Solver(task.problem)
        parts = gen_batches(len(orders), size)
        batches = (_weights(solver, Labelings.of(task, orders[part])) for part in parts)
    true, counts = None, 0
    for batch in batches:  # weights and covariances, (2, b, k, d)
        if true is None:
            true, batch = batch[:, 0], batch[:, 1:]
        counts = counts + _as_large(true, batch)
        progress.step(steps=min(batch.shape[1], progress.total - progress.done))
    W, covariance = true
    variance = np.einsum("kd,kd->k", W, covariance)[:, None]  # Var(s) = w' Cov(x) w
    patterns = np.divide(covariance, variance, out=np.zeros_like(W), where=variance > 0)
    (weights_alone, alone), (weights_all, everywhere) = (1.0 + counts) / (1.0 + n_permutations)
    outputs = list(range(len(W))) if classes is None else classes[-len(W) :].tolist()
    names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
    return PatternTestResult(W, patterns, alone, everywhere, weights_alone, weights_all, outputs, names, n_permutations)


def _chunk(task, memory_limit):
    """Labelings to work on at a time: their weights take d entries where their columns take n."""
    n, d = task.problem.n, task.problem.X.shape[1]
    return max(1, chunk(task, memory_limit) * n // max(n, 2 * d))


def _weights(solver, labelings):
    """Weights w and covariances Cov(x) w of all decisions one against all, (2, b, k, d)."""
    problem, task = solver.problem, labelings.task
    W = labelings.split(solver.solve(labelings.columns()).linear()[0])  # (b, width, d)
    if task.codes is not None:
        W = np.concatenate([-W.sum(1, keepdims=True), W], 1) if labelings.n_implied else W
        W = against_all(W, axis=1)
    weight = np.square(problem.root_w[solver.rows])[:, None]
    X = problem.features(solver.rows)
    X = X - (weight * X).sum(0) / weight.sum()  # about the weighted means
    return np.stack([W, (W @ X.T * weight[:, 0]) @ X / weight.sum()])


def _as_large(true, values):
    """How many values (2, b, k, d) are as large as the true ones (2, k, d): each, and the largest over the features."""
    true, size = np.abs(true)[:, None] * (1.0 - ROUNDING), np.abs(values)
    return np.stack([(size >= true).sum(1), (size.max(3, keepdims=True) >= true).sum(1)])
