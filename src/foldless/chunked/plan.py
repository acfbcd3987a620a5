"""What is decided before the first product: kernel, scales, classes, targets, folds, and origins of features and y.

Everything here follows from a sample of the rows, which fixes widths, scales and landmarks, and from the classes of all
rows; labels decide about targets and weights alone. A plan is frozen, small and can be pickled: it is all that a
machine needs to work on a chunk.

An intercept lets origins be moved at will: features and values are taken about their means in the sample, which saves
the digits that sums of squares would lose.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from foldless.chunked.arguments import basis_of_rows, without_features
from foldless.chunked.folds import Folds, OneFold
from foldless.chunked.rows import Layout
from foldless.estimators.access import chooses_landmarks, class_factors, prepared, seen_by

ENTRIES_TOGETHER = 2**20  # entries of a block of features: a few thousand rows, which stay in the cache


@dataclass(frozen=True)
class Plan:
    """The prepared ``model`` with what its task consists of; ``origin`` of the features, ``level`` of the targets."""

    model: Any
    kernel: Any
    readout: Any
    layout: Layout
    folds: Folds | OneFold
    intercept: bool
    origin: np.ndarray
    level: np.ndarray
    factors: np.ndarray | None = None

    @property
    def r(self):
        """Number of features."""
        return len(self.origin)

    @property
    def m(self):
        """Number of targets."""
        return len(self.level)

    @property
    def n_sums(self):
        """Columns whose products are added up: features, a column of ones, and targets."""
        return self.r + 1 + self.m

    @property
    def n_classes(self):
        """Number of classes, 0 of a regression."""
        return len(self.layout.classes) if self.layout.labels else 0

    @property
    def calibration(self):
        """The kind of calibration, None without one."""
        return getattr(self.model, "calibration", None)

    @property
    def block(self):
        """Rows whose features are looked at together."""
        return max(64, ENTRIES_TOGETHER // self.n_sums)

    def features(self, X, out=None):
        """Features (n, r) of some rows about their origin, in double precision, as a new array or in ``out``."""
        found = features_of(self.kernel, seen_by(self.model, X.astype(np.float64)))
        return np.subtract(found, self.origin if self.intercept else 0.0, out=out)

    def codes(self, y):
        """Class numbers of labels."""
        return np.searchsorted(self.layout.classes, y)

    def targets(self, y):
        """Targets (n, m) about their level."""
        if self.n_classes:
            return self.readout.targets(self.codes(y), np.float64)
        return y.reshape(len(y), -1) - self.level

    def weights(self, rows):
        """Weights (n,) of the rows, factors of their classes included."""
        return rows.weights if self.factors is None else rows.weights * self.factors[self.codes(rows.y)]


def features_of(kernel, X):
    """Explicit features of rows, as a new dense array or X itself."""
    found = kernel.features(X)
    return found.toarray() if sp.issparse(found) else np.asarray(found)


def plan_of(estimator, survey, layout, folds, names=None):
    """The plan for an estimator from a survey of all rows."""
    sample = survey.sample
    if not len(sample):
        raise ValueError("no row has a positive weight.")
    classes = survey.classes if layout.labels and layout.classes is None else layout.classes
    model, task = _prepared(estimator, sample, classes, names)
    kernel, intercept = task.problem.kernel, bool(estimator.fit_intercept)
    factors = None
    if classes is not None:
        masses = np.zeros(len(classes))
        masses[np.searchsorted(classes, survey.classes)] = survey.masses
        factors = class_factors(model, masses)
    origin = features_of(kernel, seen_by(model, sample.X.astype(np.float64))).mean(0)
    level = np.zeros(task.Y.shape[1])
    if intercept and classes is None:
        level = sample.y.reshape(len(sample), -1).mean(0)
    layout = replace(layout, classes=classes)
    return Plan(model, kernel, task.readout, layout, folds, intercept, origin, level, factors)


def plans_of(estimator, survey, layout, folds, names=None):
    """The plan for all rows, and behind it one for each fold where landmarks are chosen on each training part.

    Scales and kernel parameters are then those of the training part as well, as in a refit.
    """
    plans = [plan_of(estimator, survey, layout, folds, names)]
    if chooses_landmarks(estimator) and folds.k > 1:
        own = folds.of(survey.sample)
        for fold in range(folds.k):
            part = replace(survey, sample=survey.sample.taken(np.flatnonzero(own != fold)))
            plans.append(plan_of(estimator, part, layout, OneFold(folds, fold), names))
    return plans


def _prepared(estimator, sample, classes, names):
    """The model and its task, whose kernel needs features."""
    X = sample.X.astype(np.float64)
    model, task = prepared(estimator, X, sample.y, sample.sample_weight, classes, names)
    if task.problem.kernel.n_features(X) is None:
        raise without_features(estimator)
    if task.problem.kernel.squares_condition:
        raise basis_of_rows(estimator)
    return model, task
