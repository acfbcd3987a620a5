"""What a search is asked for and what it minimises: a criterion of the held-out fits of one task.

A :class:`SearchSpec` holds the checked parameters of a search, so that its parts never see the search estimator. A
:class:`Selection` fixes the targets, the rows that are left out together (each alone: leave-one-out), the criterion
and its weights. It then judges any model, or all alphas of a kernel along one decomposition (``path``).
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from foldless.heldout.gradient import residuals
from foldless.heldout.moments import few_digits
from foldless.heldout.part import Part
from foldless.heldout.solution import Solution, loo_path
from foldless.readout.codings import chosen_codes
from foldless.readout.task import Task
from foldless.tuning.criteria import Criterion, weights


@dataclass(frozen=True)
class Selection:
    """A criterion of the held-out fits of one task.

    ``rows`` are the rows of positive weight, ``T`` their targets (+-1 one against all, or the values of a regression),
    ``folds`` positions in ``rows`` that are left out together (None: each alone), ``where`` the positions of the
    stacked held-out fits, ``W`` their weights in the criterion.
    """

    task: Task
    rows: np.ndarray
    T: np.ndarray
    folds: list | None
    where: np.ndarray
    W: np.ndarray
    criterion: Criterion

    @classmethod
    def of(cls, task, criterion, *, splits=None, weight=None, sample_weight=None, rows=None):
        """The selection of a task, or of some of its rows; ``splits`` as (train, test) row numbers, None for LOO."""
        if criterion.whole and task.readout.cuts:
            raise ValueError("criterion='multiclass_error' knows no cut as of threshold='loo'; use criterion='error'.")
        rows = task.problem.active if rows is None else rows
        T = task.plus_minus_targets(rows)
        folds, where, counted = None, np.arange(len(rows)), np.ones(len(rows))
        if splits is not None:
            folds, counted = _folds(splits, rows, task.problem.n)
            where = np.concatenate(folds)
        if weight == "sample_weight" and sample_weight is not None:
            counted = counted * np.broadcast_to(sample_weight, task.problem.n)[rows][where]
        if criterion.whole:
            if weight == "balanced":  # every class that occurs has the same share
                codes = task.codes[rows[where]]
                mass = np.bincount(codes, counted)
                counted = counted / np.where(mass > 0, mass, 1.0)[codes]
            W = (counted / counted.sum())[:, None]
        else:
            W = weights(weight, T[where], counted)
        return cls(task, rows, T, folds, where, W, criterion)

    def column(self, k):
        """The selection of one target alone."""
        return replace(self, T=self.T[:, [k]], W=self.W[:, [k]])

    def parts(self, alphas, kernel):
        """[(selection, problem)] of a setting: all targets by one P, or each by the P of its own alpha."""
        columns = [self] if len(alphas) == 1 else [self.column(k) for k in range(len(alphas))]
        problems = [self.task.problem.replace(kernel=kernel, alpha=float(alpha)) for alpha in alphas]
        return list(zip(columns, problems, strict=True))

    @property
    def tested(self):
        """Which of the stacked held-out fits count; rows that are left out and not tested do not."""
        return self.W.any(1)

    @property
    def tested_rows(self):
        """Row numbers of those."""
        return self.rows[self.where][self.tested]

    @property
    def Y(self):
        """What the models regress on: the targets of the criterion, or those of the task's own readout."""
        return self.task.Y[self.rows] if self.criterion.whole else self.T

    def inner_model(self, part):
        """The model of a training part, ready for its inner splits."""
        return part.as_solution() if self.folds is not None and isinstance(part, Part) else part

    def judge(self, model):
        """Losses (m,) of the held-out fits of one model of ``rows`` and ``Y``."""
        return self.losses(self._outputs(model))

    def _outputs(self, model):
        """What the criterion is computed from: held-out decisions, fits, or residuals, which keep more digits."""
        if self.criterion.whole:
            return self.scores(model)
        return heldout_fits(model, self.folds) if self.criterion.ranks else residuals(model, self.folds)

    def losses(self, outputs):
        """Losses (m,) of such outputs, stacked."""
        if self.criterion.whole:
            assert self.task.codes is not None
            wrong = chosen_codes(outputs) != self.task.codes[self.rows[self.where]]
            return np.array([self.W[:, 0] @ wrong])
        if self.criterion.ranks:
            return self.criterion(outputs, self.T[self.where], self.W.astype(outputs.dtype))[0]
        return self.losses_and_slopes(outputs)[0]

    def losses_and_slopes(self, E):
        """Loss of every column and its derivatives by the residuals E, stacked."""
        T = self.T[self.where]
        if self.criterion.residuals:  # nothing is added to them, and no digit lost
            T = np.zeros_like(T)
        values, slopes = self.criterion(T - E, T, self.W.astype(T.dtype))
        return values, None if slopes is None else -slopes

    def scores(self, model):
        """Held-out decisions of the task's own readout, stacked, before any cut; ``model`` is one of the task's Y."""
        if self.folds is None:
            return self.task.loo_scores(model)
        readout, scores = self.task.readout, []
        for te in self.folds:
            part, rows = model.without(te), self.rows[te]
            moments = part.moments() if readout.needs_moments else None
            scores.append(self.task.problem.tie_equal_rows(rows, readout.scores(part.fits(rows), moments)))
        return np.concatenate(scores)

    def path(self, problem, alphas):
        """Losses of every alpha and column, (len(alphas), m), and the held-out fits (or decisions) at the best."""
        path = problem.path(self.rows)

        def model(alpha):
            return Solution(problem.replace(alpha=alpha), self.rows, self.Y, path.with_alpha(alpha))

        if self.folds is None and not self.criterion.whole:
            outputs = loo_path(problem, self.rows, self.T, alphas, path)
            if self.criterion.ranks:
                outputs = self.T - outputs
                size = np.abs(self.T).max(0, initial=0.0)
                for fits, alpha in zip(outputs, alphas, strict=True):
                    if few_digits(fits, size).any():
                        fits[:] = heldout_fits(model(alpha), None)
        else:
            outputs = [self._outputs(model(alpha)) for alpha in alphas]
        losses = np.array([self.losses(each) for each in outputs])
        best = outputs[best_place(losses.sum(1), alphas)]
        return losses, best if self.criterion.whole or self.criterion.ranks else self.T[self.where] - best


def _folds(splits, rows, n):
    """Positions in ``rows`` that each split leaves out, and 1 for those that it tests, stacked."""
    place = np.full(n, -1)
    place[rows] = np.arange(len(rows))
    folds, tested = [], []
    for number, (train, test) in enumerate(splits):
        if len(np.unique(train)) < len(train):
            raise ValueError(
                f"cv: the training part of split {number} repeats rows; give rows that count more a larger"
                " sample_weight instead."
            )
        inside = np.zeros(n, bool)
        inside[train] = True
        if inside[test].any():
            raise ValueError(f"cv: split {number} tests rows that it trains on; such a score says nothing.")
        out = rows[~inside[rows]]
        if len(out) and len(out) < len(rows):
            folds.append(place[out])
            tested.append(np.isin(out, test).astype(float))
    if not folds or not any(map(np.any, tested)):
        raise ValueError("cv: no split leaves out a row of positive weight and keeps another.")
    return folds, np.concatenate(tested)


def heldout_fits(model, folds):
    """Held-out fits in the units of the targets, (N, m), stacked as the residuals of ``heldout.gradient``."""
    if folds is None:
        return model.loo().fits[:, 0]
    return np.concatenate([model.without(te).fits(model.rows[te]) for te in folds])


def best_place(losses, alphas):
    """Place of the least loss; counts of errors tie often, and of equal ones the largest alpha is taken."""
    losses, alphas = np.asarray(losses), np.asarray(alphas)
    if np.isnan(losses).all():
        raise ValueError(
            "the criterion is no number for any candidate: alpha too small for this precision, or kernel values too"
            " large. Rescale X (for instance with sklearn.preprocessing.StandardScaler) or raise alpha."
        )
    losses = np.where(np.isnan(losses), np.inf, losses)
    slack = 1e-12 * abs(losses.min())  # weighted sums tie up to rounding
    tied = np.flatnonzero(losses <= losses.min() + slack)
    return int(tied[np.argmax(alphas[tied])])


@dataclass(frozen=True)
class SearchSpec:
    """The checked parameters of a search, under the names of ``FoldlessSearchCV``."""

    criterion: Criterion  # with the first of the slopes, where it has one
    method: str = "grid"
    share: str = "all"
    criterion_weight: str | None = None
    slopes: tuple = (10.0,)
    prior: str | None = None  # the name of the one in force
    bounds: Mapping = field(default_factory=dict)
    feature_scaling: bool = False  # also where there are groups of features
    feature_groups: Any = None
    n_starts: int = 1
    max_iter: int = 50
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int | None = None
    deadline: float | None = None  # of time.monotonic(), after which the best so far is taken

    @property
    def out_of_time(self):
        """Whether the time limit is over."""
        return self.deadline is not None and time.monotonic() > self.deadline

    def selection(self, task, splits, sample_weight, *, slope=None, rows=None):
        """The criterion of the held-out fits of a task, or of some rows; ``slope`` in place of the first."""
        criterion = self.criterion if slope is None else self.criterion.with_slope(slope)
        options = {"weight": self.criterion_weight, "sample_weight": sample_weight}
        return Selection.of(task, criterion, splits=splits, rows=rows, **options)
