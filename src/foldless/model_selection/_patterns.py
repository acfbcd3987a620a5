"""Weights of a linear model, their forward-model patterns, and a permutation null for every feature.

A weight says how a feature enters the decision s = x' w, not whether the feature carries the signal: a sensor that only
cancels noise has a large weight. The pattern of the equivalent forward model does (Haufe et al. 2014, eq. 6 and 8, for
each decision by itself):

    a = Cov(x, s) / Var(s) = Cov(x) w / (w' Cov(x) w)

Permuted labels give permuted weights from the same P, so the null costs one more product. What is tested is Cov(x, s),
the pattern before the division: under permuted labels Var(s) shrinks, and dividing by it would inflate the null.
"""

from dataclasses import dataclass

import numpy as np
from sklearn.utils import gen_batches, indexable

from foldless._array import require_memory
from foldless.columns import Fitted, Labelings, Solver
from foldless.kernels import Linear
from foldless.model_selection._labelings import Given, chunk
from foldless.model_selection._path import Path, route
from foldless.model_selection._permutation import check_arguments, check_exchangeable, checked_strata
from foldless.model_selection._permutation_way import frozen, weights_move
from foldless.model_selection._progress import Progress
from foldless.permutation import p_values, permutations
from foldless.readout import OneAgainstAll


@dataclass(repr=False)
class PatternTestResult:
    """Weights and patterns of the decisions of a linear model, with p-values for every feature.

    Attributes
    ----------
    weights : ndarray of shape (n_decisions, n_features), ``coef_`` of the fitted estimator
    patterns : ndarray of shape (n_decisions, n_features)
    pvalue, weights_pvalue : ndarray of shape (n_decisions, n_features)
        Two-sided, for each feature by itself.
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
        "fixed": class weights stay with the rows; they must, where there are any.
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
    params = params or {}
    path, solved = route(frozen(estimator, y) if weights == "fixed" else estimator, params)
    given = Given(X, y, params.get("sample_weight"), confounds)
    built = path if solved is None else given.task(solved)
    if isinstance(built, Path):
        raise ValueError(f"patterns need a linear least-squares model: {built.reason}.")
    task, classes, _ = built
    if not isinstance(task.problem.kernel, Linear):
        raise ValueError(f"patterns need kernel='linear'; this one is {task.problem.kernel!r}.")
    if weights == "permuted" or weights_move(estimator, None, weights):
        raise ValueError("weights that follow the labels have no common P; use weights='fixed'.")
    solver = Solver(task.problem)
    n, rows = task.problem.n, task.problem.active
    require_memory((n_permutations, n), np.int32, "the row numbers of the permutations")
    orders = np.vstack(
        [
            np.arange(n),
            permutations(n, n_permutations, random_state, checked_strata(strata, n)),
        ]
    )
    check_exchangeable(y, orders)
    root = task.problem.root_w[rows][:, None]
    features = root * _centred(task.problem.features(rows), root)
    tables, progress, size = [], Progress(n_permutations, "permutations", verbose), _chunk(task, memory_limit)
    for part in gen_batches(len(orders), size):
        W = _weights(Fitted(solver, Labelings.of(task, orders[part])))  # (b, d, k)
        s = features @ W
        tables.append(np.stack([W, features.T @ s / np.square(root).sum()]).transpose(1, 0, 3, 2))  # (b, 2, k, d)
        progress.step(steps=min(size, progress.total - progress.done))
    W, covariance = np.concatenate(tables).transpose(1, 0, 2, 3)
    # Var(s) = w' Cov(x) w
    variance = np.einsum("kd,kd->k", W[0], covariance[0])[:, None]
    patterns = np.divide(covariance[0], variance, out=np.zeros_like(W[0]), where=variance > 0)
    found = [_two_sided(values) for values in (covariance, W)]
    outputs = list(range(W.shape[1])) if classes is None else list(classes[-W.shape[1] :])
    names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
    return PatternTestResult(W[0], patterns, *found[0], *found[1], outputs, names, n_permutations)


def _chunk(task, memory_limit):
    """Labelings to work on at a time: their weights take d entries where their columns take n."""
    n, d = task.problem.n, task.problem.X.shape[1]
    return max(1, chunk(task, memory_limit) * n // max(n, 2 * d))


def _centred(X, root):
    """Features about their weighted means."""
    weight = np.square(root)
    return X - (weight * X).sum(0) / weight.sum()


def _weights(fitted):
    """Weights (b, d, k) of all decisions, as ``coef_`` has them."""
    labelings, task = fitted.labelings, fitted.labelings.task
    coef, _ = fitted.solution.linear()
    W = labelings.split(coef)  # (b, width, d)
    if task.codes is None:
        return W.transpose(0, 2, 1)
    if labelings.spared:
        W = np.concatenate([-W.sum(1, keepdims=True), W], 1)
    if isinstance(task.readout, OneAgainstAll):
        W = W[:, 1:] - W[:, :1] if task.n_classes == 2 else 2.0 * W - W.sum(1, keepdims=True)
        return W.transpose(0, 2, 1)
    slopes, _ = task.readout.affine(fitted.moments(fitted.solution))
    return W.transpose(0, 2, 1) @ slopes


def _two_sided(values):
    """p-values and family-wise p-values (k, d) of values (1 + m, k, d), the true labels' first."""
    size = np.abs(values)
    return p_values(size[0], size[1:]), p_values(size[0], size[1:].max(2, keepdims=True))
