"""Held-out decisions of many labelings at once (Treder 2019, section 2.5 and "Permutation tests").

P never sees Y, so labelings are columns: one product P Y for all of them, then for every held-out set te

    E_te = P_te,te^-1 A_te,    F_te = Y_te - E_te,    U = alpha (Y' A - E_te' A_te),    A = P Y

and for a discriminant one c x c problem a labeling. U is the form of ``heldout.solution`` with A_te = P_te,te E_te put
in. With an intercept the fits of all indicators add up to one (P 1 = 0), so one class needs no column: two classes
are one column a labeling. Decisions are those of the estimator refitted on the training part, up to a constant a row
that all classes share. A class that a training part lacks never wins there; a training part of one class votes for it.

Cost: 2 n^2 flops a column, and t^2 for every held-out set.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from foldless._engine.heldout.held_out import residuals_of_blocks
from foldless._engine.heldout.moments import ColumnGroups, Moments, moments_of, nearly_gone
from foldless._engine.heldout.part import TrainingPart
from foldless._engine.heldout.problem import Problem
from foldless._engine.heldout.solution import Solution
from foldless._engine.linalg import (
    concat,
    diagonal,
    eye,
    float_type,
    host_dtype,
    like,
    namespace,
    put,
    row_major,
    take,
    take_along,
    to_host,
)
from foldless._engine.linalg.batches import gen_batches
from foldless._engine.precision import cost
from foldless._engine.precision.base import Precision
from foldless._engine.precision.digits import few_digits

ARRAYS = 10  # arrays of the size of the columns alive at a time
ENTRIES = 2**21  # entries of an array of columns beyond which larger ones are no quicker


@dataclass(frozen=True, eq=False)
class Solver:
    """P of one problem in the form that serves many blocks, for any number of columns.

    ``choice`` says how P was made. ``steps`` are transformers that were fitted in front of it, where there are any.
    """

    problem: Problem
    precision: Precision
    choice: str
    steps: Any = None

    @classmethod
    def of(cls, problem, precision=None, steps=None) -> Self:
        """The solver of a problem; P is made of the problem unless it is known."""
        rows = problem.active
        if precision is None:
            if not problem.through_features(len(rows)):
                cost.require_P_and_factor(len(rows), problem.Q, problem.kernel)
            precision = problem.precision(rows)
        return cls(problem, precision.prepare_blocks(), precision.choice, steps)

    @property
    def rows(self):
        """Rows of positive weight."""
        return self.problem.active

    def solve(self, Y):
        """The fit of the columns Y (n, m), all rows of X."""
        Y = Y if len(self.rows) == len(Y) else Y[self.rows]
        return Solution.fit(self.problem, self.rows, Y, self.precision)


def truth_of(task, orders, residuals=None):
    """The labels of rows that take those of the rows ``orders[j, i]``: class numbers (b, n), or values (b, m, n).

    Values have the precision of y, which may be higher than that of the problem.
    With :class:`~foldless._engine.permutation.confounded.Residuals` the rows take the residuals of these rows.
    """
    if task.codes is not None:
        return task.codes[orders]
    if residuals is not None:
        return residuals.permuted(orders).astype(host_dtype(task.Y), copy=False)
    return row_major(to_host(task.Y)[orders].transpose(0, 2, 1))


def count_columns(task):
    """(columns of a labeling, classes without one: their fits follow from the others').

    All have one where class matrices of weighted rows are wanted: of a class of little weight a difference keeps
    nothing.
    """
    if task.codes is None:
        return task.Y.shape[1], 0
    n_implied = int(task.problem.intercept and not (task.readout.needs_axes and task.problem.weighted))
    return task.n_classes - n_implied, n_implied


def labelings_that_fit(task, memory_limit):
    """Labelings to work on at a time within so many bytes."""
    entries = min(ENTRIES, memory_limit // (ARRAYS * task.Y.dtype.itemsize))
    return max(1, int(entries // (task.problem.n * count_columns(task)[0])))


@dataclass(frozen=True, eq=False)
class Labelings(ColumnGroups):
    """b labelings of one task, whose ``truth`` is known, with P applied: decisions of all for any training part.

    ``solution`` is the fit of (n, b * width) targets: values, or indicators of the classes that have a column.
    """

    solver: Solver
    task: Any
    truth: np.ndarray
    solution: Solution

    @classmethod
    def of(cls, solver, task, truth) -> "Labelings":
        """Labelings with these labels, solved: class numbers (b, n), or values (b, m, n)."""
        Y = truth
        if task.codes is not None:
            Y = truth[:, None, :] == np.arange(count_columns(task)[1], task.n_classes)[:, None]
        columns = task.problem.rounded(Y.reshape(-1, task.problem.n).T)
        return Labelings(solver, task, truth, solver.solve(columns))

    def __len__(self):
        return len(self.truth)

    @property
    def xp(self):
        """Functions for the arrays of the solution."""
        return self.task.problem.xp

    @cached_property
    def width(self):
        """Columns of a labeling."""
        return count_columns(self.task)[0]

    @cached_property
    def n_implied(self):
        """Number of classes without a column: 0 or 1."""
        return count_columns(self.task)[1]

    def select(self, chosen):
        """The same for some of the labelings."""
        columns = (np.arange(len(self))[chosen][:, None] * self.width + np.arange(self.width)).ravel()
        return Labelings(self.solver, self.task, self.truth[chosen], self.solution.select_targets(columns))

    def split(self, columns):
        """Columns (t, b * width) as (b, width, t), contiguous."""
        return self.xp.reshape(row_major(columns.T), (len(self), self.width, -1))

    def take_rows(self, columns, rows):
        """Columns (n, b * width) at the rows (b, t) of each labeling, (b, width, t)."""
        return take_along(self.split(columns), rows[:, None, :], 2)

    def classes(self, fits):
        """Fits (t, b * width) of indicators as those of all classes, (b, c, t)."""
        F = self.split(fits)
        return concat([1.0 - self.xp.sum(F, axis=1, keepdims=True), F], 1) if self.n_implied else F

    def part(self, train):
        """The model of the rows ``train``."""
        removed = np.flatnonzero(~np.isin(self.solution.rows, train))
        return self.solution.without(removed)

    def decisions(self, model, rows):
        """Decisions (b, k, t) of a model of all columns at rows of X; equal rows have equal ones."""
        D = self.reader(model)(model.fits(rows))
        first = self.solver.problem.first_equal(rows)
        return D if first is None else take(D, first, -1)

    def reader(self, model):
        """A function from fits (t, b * width) of a model of all columns to decisions (b, k, t)."""
        readout = self.task.readout
        if self.task.codes is None:
            return lambda fits: readout.scores(self.split(fits), None)
        return self.reader_of_classes(self.masses(model), self.moments(model) if readout.needs_moments else None)

    def reader_of_classes(self, mass, moments):
        """The same from the masses (b, c) and class matrices of a training part."""
        decide = self.task.readout.for_indicators(moments)
        return lambda fits: _present(decide(self.classes(fits)), mass)

    @cached_property
    def _mass(self):
        """Numbers of rows (b, width) of the classes with a column among all rows, none of them weighted."""
        return self.xp.reshape(self.xp.sum(self.solution.Y, axis=0), (len(self), -1))

    def masses(self, model):
        """Masses (b, c) of the classes in the training part."""
        if self.solver.problem.weighted:  # a difference would lose the digits of a class that is nearly gone
            truth, weights = self.truth[:, model.rows], np.square(to_host(model.root[:, 0]))
            classes = range(self.task.n_classes)
            return like(model.root, np.stack([(truth == k).astype(weights.dtype) @ weights for k in classes], 1))
        xp = self.xp
        if isinstance(model, TrainingPart):  # counts: differences are exact
            left = xp.sum(self.solution.Y[model.removed], axis=0)
            mass = self._mass - xp.reshape(left, self._mass.shape)
        elif model is self.solution:
            mass = self._mass
        else:  # a training part that was solved by itself
            mass = xp.reshape(xp.sum(model.Y, axis=0), self._mass.shape)
        if not self.n_implied:
            return mass
        return concat([len(model.rows) - xp.sum(mass, axis=1, keepdims=True), mass], 1)

    def moments(self, model):
        """Class matrices (b, c, c) of the training part; masses alone where no more is asked for."""
        if self.task.readout.needs_axes:
            return model.moments(self)
        N = self.mass_matrix(model)
        return Moments(N, self.xp.zeros_like(N))

    # -- the classes of each labeling, as ``heldout.moments`` asks for them

    @cached_property
    def _full(self):
        """The matrix (c, width) from the classes with a column to all: indicators add up to one, their A to zero."""
        full = np.eye(self.task.n_classes)[:, self.n_implied :].copy()
        full[: self.n_implied] = -1.0
        return like(self.solution.Y, full)

    def products(self, X, Z):
        """X' Z (b, c, c), labeling by labeling."""
        return self._products(X, Z, self._full)

    def sizes(self, X, Z):
        """Sizes of what adds up to them."""
        return self._products(abs(X), abs(Z), abs(self._full))

    def _products(self, X, Z, full):
        return full @ (self.split(X) @ self.xp.permute_dims(self.split(Z), (0, 2, 1))) @ full.T

    def mass_matrix(self, model):
        """N (b, c, c) of a training part."""
        mass = self.masses(model)
        return mass[:, :, None] * eye(mass, mass.shape[1])

    def left_masses(self, part):
        """N of a training part, and which classes have rows in it."""
        N = self.mass_matrix(part)
        return N, diagonal(N) > 0

    def left_unexplained(self, part):
        """U of a training part: alpha (Y' A - E_te' A_te), as indicators add up to one and their A to zero."""
        A = self.split(part.solution.A[part.removed])
        return self.full_moments(part.solution).U - self.unexplained_of(self.split(part.E), A)

    def unexplained_of(self, E, A):
        """alpha E_te' A_te (b, c, c) of residuals and coefficients (b, width, t) of a set of every labeling."""
        return self.solver.problem.alpha * (self._full @ (E @ self.xp.permute_dims(A, (0, 2, 1))) @ self._full.T)

    @cached_property
    def _full_moments(self):
        return moments_of(self.solution, self)

    def full_moments(self, solution):
        """N and U of a solution of all columns."""
        return self._full_moments if solution is self.solution else moments_of(solution, self)


def _present(D, mass):
    """Decisions by which no class wins that the training part lacks."""
    lacks, xp = mass == 0, namespace(D)
    if not xp.any(lacks):
        return D
    if D.shape[1] == 1:
        return xp.where(lacks[:, :1, None], 1.0, xp.where(lacks[:, 1:, None], -1.0, D))
    return xp.where(lacks[:, :, None], -float_type(D).largest, D)


@dataclass(frozen=True, eq=False)
class MovedSets:
    """A held-out set of every labeling, ``rows`` (b, t): A and residuals E (b, width, t) of the labeling's columns.

    ``train`` are the places trained on, ``wanted`` those of the t rows that are tested. ``leave_out`` would take all
    columns out with every set, b times as many as these; the blocks of P are solved alike.
    """

    labelings: Labelings
    train: np.ndarray
    wanted: np.ndarray
    rows: np.ndarray
    A: np.ndarray
    E: np.ndarray
    ill_conditioned: np.ndarray  # labelings (b,) that P has too few digits for

    @classmethod
    def of(cls, labelings, train, wanted, rows) -> Self:
        """All labelings without their rows."""
        P, verbs, (b, t) = labelings.solver.precision, labelings.task.problem.verbs, rows.shape
        A, transpose = labelings.take_rows(labelings.solution.A, rows), labelings.xp.matrix_transpose
        E, ill_conditioned = labelings.xp.zeros_like(A), np.zeros(b, bool)
        for batch in gen_batches(b, max(1, ENTRIES // (t * t))):
            blocks = P.diagonal_blocks(rows[batch])
            few = P.ill_conditioned(blocks)
            ill_conditioned[batch] = few
            E = verbs.put(E, batch, transpose(residuals_of_blocks(blocks, transpose(A[batch]), few, verbs)))
        return cls(labelings, train, wanted, rows, A, E, ill_conditioned)

    @cached_property
    def fits(self):
        """Held-out fits (b, width, k) of the wanted rows."""
        Y = self.labelings.take_rows(self.labelings.solution.Y, self.rows)
        return take(Y - self.E, self.wanted, 2)

    @cached_property
    def masses(self):
        """Masses (b, c) of the classes in the training parts: places have the same labels in all labelings."""
        task = self.labelings.task
        counts = np.bincount(task.codes[self.train], minlength=task.n_classes)
        return like(self.A, np.broadcast_to(counts, (len(self.rows), len(counts))))

    @cached_property
    def moments(self):
        """Class matrices (b, c, c) of the training parts; masses alone where no more is needed."""
        N = self.masses[:, :, None] * eye(self.masses, self.masses.shape[1])
        if not self.labelings.task.readout.needs_axes:
            return Moments(N, self.labelings.xp.zeros_like(N))
        labelings, solution = self.labelings, self.labelings.solution
        return Moments(N, labelings.full_moments(solution).U - labelings.unexplained_of(self.E, self.A))

    def decisions(self):
        """Decisions (b, k, t) of the wanted rows."""
        labelings, readout = self.labelings, self.labelings.task.readout
        xp = labelings.xp
        fits = xp.reshape(xp.permute_dims(self.fits, (2, 0, 1)), (len(self.wanted), -1))
        if labelings.task.codes is None:
            return readout.scores(labelings.split(fits), None)
        return labelings.reader_of_classes(self.masses, self.moments if readout.needs_moments else None)(fits)

    def without_digits(self):
        """Labelings (b,) whose fits or class matrices are differences without digits, as an array of NumPy."""
        labelings, task = self.labelings, self.labelings.task
        problem, solution, offset = labelings.solver.problem, labelings.solution, 0.0
        if problem.intercept:
            correction = labelings.xp.sum(labelings.solver.precision.G[0][self.rows][:, None, :] * self.E, axis=2)
            offset = labelings.split(solution.B) - correction[:, :, None]
        few = few_digits(self.fits - offset, labelings.split(solution.target_scale[None]))
        few = labelings.xp.any(few, axis=(1, 2))
        if task.codes is not None and task.readout.needs_moments and task.readout.needs_axes:
            few = few | nearly_gone(self.moments, labelings.full_moments(solution), self.moments.mass > 0)
            few = few | self.moments.weak(problem.intercept)
        return to_host(few) | self.ill_conditioned


@dataclass(frozen=True, eq=False)
class Moving:
    """Labelings whose splits go with the labels, and for any split of the true labels the decisions of all.

    Labels and splits move together against the features. Row i of labeling j takes the place of row order_j[i], so that
    the place r is taken by row place_j[r] = argsort(order_j)[r]. In terms of places all labelings have the labels and
    splits of the truth, and each has its own P, whose rows and columns are in another order. For a held-out set te of t
    places:

        E_j = P[te_j, te_j]^-1 (P Y_j)[te_j],    te_j = place_j[te],    held-out fits  Y[te] - E_j

    One product P Y for all labelings, as ever, and a stack of t x t systems for every split: b t^3 / 3 flops, where a
    loop over labelings would take a millisecond for each. Class matrices follow as in :class:`Labelings`.

    Labelings whose fits or class matrices would be differences without digits (``heldout.moments``) are left out one by
    one, and so are all where rows have weights or confounds.
    """

    labelings: Labelings
    places: np.ndarray

    @classmethod
    def of(cls, solver, task, orders, residuals=None) -> Self:
        """The labelings of these orders (b, n) of the rows."""
        return cls(Labelings.of(solver, task, truth_of(task, orders, residuals)), np.argsort(orders, axis=1))

    @cached_property
    def truth_of_places(self):
        """The labels of the places, (b, n) or (b, m, n): the same for all labelings, unless residuals move alone."""
        truth = self.labelings.truth
        return np.take_along_axis(truth, self.places if truth.ndim == 2 else self.places[:, None, :], -1)

    def held_out(self, train, test):
        """Decisions (b, k, t) of all labelings at the places ``test`` by their models of the places ``train``."""
        problem = self.labelings.solver.problem
        removed = np.setdiff1d(np.arange(problem.n), train)
        if problem.weighted or problem.more_columns or not np.isin(test, removed).all():
            return concat([self._alone(j, train, test) for j in range(len(self.places))])
        sets = MovedSets.of(self.labelings, train, np.searchsorted(removed, test), self.places[:, removed])
        D, numbers = sets.decisions(), problem.equal.value
        if numbers is not None:  # equal rows have equal decisions
            numbers = numbers[self.places[:, test]]
            first = (numbers[:, :, None] == numbers[:, None, :]).argmax(2)
            D = take_along(D, first[:, None, :], 2)
        for j in np.flatnonzero(sets.without_digits()):
            D = put(D, j, self._alone(j, train, test)[0])
        return D

    def _alone(self, j, train, test):
        """The same for one labeling."""
        one, place = self.labelings.select([j]), self.places[j]
        return one.decisions(one.part(np.sort(place[train])), place[test])


def elsewhere(model, rows):
    """A function from other features X of the rows ``rows`` to fits (t, m): what generalisation asks for."""
    problem = model.problem
    weights, B = model.in_features()
    offset = problem.Q[rows] @ B
    if weights is not None:
        return lambda X: problem.kernel.features(X) @ weights + offset
    basis, beta = model.expansion()
    return lambda X: problem.gram_new(X, basis) @ beta + offset
