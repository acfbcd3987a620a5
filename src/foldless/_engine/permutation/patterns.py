"""Weights of a linear model, their forward-model patterns, and a permutation null for every feature.

A weight says how a feature enters the decision s = x' w, not whether the feature carries the signal: a sensor that only
cancels noise has a large weight. The pattern of the equivalent forward model does (Haufe et al. 2014, eq. 6 and 8, for
each decision by itself):

    a = Cov(x, s) / Var(s) = Cov(x) w / (w' Cov(x) w)

With confounds x are the features from which these were regressed, as the decision sees them.

Permuted labels give permuted weights from the same P, so the null costs one more product. What is tested is Cov(x, s),
the pattern before the division: under permuted labels Var(s) shrinks, and dividing by it would inflate the null.

s is the fit of targets +-1, one against all: of a fixed scale, as a null distribution needs it. Two-class decisions are
that fit up to a factor; those of a discriminant of several classes are made of these fits, but grow with the distance
of the classes, and a feature of pure noise would seem to grow with them.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from foldless._engine.heldout.confounds import ConfoundSums
from foldless._engine.linalg import divide
from foldless._engine.permutation.labelings import Labelings, labelings_that_fit, truth_of
from foldless._engine.permutation.nulls import ROUNDING
from foldless._engine.readout.codings import against_all
from foldless.results import Result, points


@dataclass(repr=False)
class PatternTestResult(Result):
    """Weights and patterns of the decisions of a linear model, with p-values for every feature.

    Attributes
    ----------
    weights : ndarray of shape (n_decisions, n_features), of fits of targets +-1, one against all: ``coef_`` of LSSVC
    patterns : ndarray of shape (n_decisions, n_features), Cov(x, s) / Var(s) of these fits s
        mne's ``LinearModel.patterns_`` (of labels, or of one value) is Cov(x, s) alone: times the sample variance
        of s = X @ w, divided by n - 1.
    pvalue, weights_pvalue : ndarray of shape (n_decisions, n_features)
        Two-sided, for each feature by itself: of Cov(x, s), the pattern up to the scale of s, and of the weights.
    pvalue_fwe, weights_pvalue_fwe : ndarray of shape (n_decisions, n_features)
        Corrected for the number of features by the largest one of every permutation, for each decision. Features should
        be on one scale for this to be fair.
    outputs : list, what each decision is for: the class it favours, or the number of the output
    feature_names : list of str or None
    n_permutations : int

    ``to_frame()`` has one row for each feature of each decision.
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
        counts = ", ".join(f"{output}: {count}" for output, count in zip(self.outputs, few, strict=True))
        return (
            f"patterns of {self.patterns.shape[1]} features, {self.n_permutations} permutations; family-wise p <= 0.05"
            f" for {counts}"
        )

    def _columns(self):
        k, d = self.patterns.shape
        names = range(d) if self.feature_names is None else self.feature_names
        columns = {"weight": self.weights, "pattern": self.patterns}
        columns |= {"pvalue": self.pvalue, "pvalue_fwe": self.pvalue_fwe}
        columns |= {"weights_pvalue": self.weights_pvalue, "weights_pvalue_fwe": self.weights_pvalue_fwe}
        places = {"output": [output for output in self.outputs for _ in range(d)], "feature": [*names] * k}
        return places | {name: values.ravel() for name, values in columns.items()}

    def _picture(self):
        features = np.broadcast_to(np.arange(self.patterns.shape[1]), self.patterns.shape)
        strong = self.pvalue_fwe <= 0.05
        return points(features.ravel(), self.patterns.ravel(), strong.ravel(), "patterns; dark: family-wise p <= 0.05")


def pattern_result(batches, n_permutations, classes=None, feature_names=None):
    """The result of batches of weights and covariances (2, b, k, d), the true labels first of all."""
    true: Any = None
    counts: Any = 0
    for batch in batches:
        true = batch[:, 0] if true is None else true
        least, size = np.abs(true)[:, None] * (1.0 - ROUNDING), np.abs(batch)
        # Of each feature by itself, and of the largest of all features.
        counts = counts + np.stack([(size >= least).sum(1), (size.max(3, keepdims=True) >= least).sum(1)])
    W, covariance = true
    variance = np.einsum("kd,kd->k", W, covariance)[:, None]  # Var(s) = w' Cov(x) w
    (weights_alone, alone), (weights_all, everywhere) = counts / (1.0 + n_permutations)  # the true ones are counted
    return PatternTestResult(
        weights=W,
        patterns=divide(covariance, variance),
        pvalue=alone,
        pvalue_fwe=everywhere,
        weights_pvalue=weights_alone,
        weights_pvalue_fwe=weights_all,
        outputs=list(range(len(W))) if classes is None else classes[-len(W) :].tolist(),
        feature_names=feature_names,
        n_permutations=n_permutations,
    )


def patterns_that_fit(task, memory_limit):
    """Labelings to work on at a time: their weights take d entries where their columns take n."""
    n, d = task.problem.n, task.problem.X.shape[1]
    return max(1, labelings_that_fit(task, memory_limit) * n // max(n, 2 * d))


def weights_and_covariances(solver, task, orders, residuals=None):
    """Weights w and covariances Cov(x) w of all decisions one against all, (2, b, k, d)."""
    problem, labelings = solver.problem, Labelings.of(solver, task, truth_of(task, orders, residuals))
    W = labelings.split(labelings.solution.in_features()[0])  # (b, width, d)
    if task.codes is not None:
        W = np.concatenate([-W.sum(1, keepdims=True), W], 1) if labelings.n_implied else W
        W = against_all(W, axis=1)
    weight = np.square(problem.root_w[solver.rows])[:, None]
    X = problem.features(solver.rows)
    if problem.n_confounds:
        X = X - problem.Q[solver.rows] @ ConfoundSums(problem, solver.rows, np.sqrt(weight) * X).of_all_rows().D
    X = X - (weight * X).sum(0) / weight.sum()  # about the weighted means
    return np.stack([W, (W @ X.T * weight[:, 0]) @ X / weight.sum()])
