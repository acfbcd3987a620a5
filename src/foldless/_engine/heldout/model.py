"""A fitted training part: its fits anywhere, its expansion, its class matrices.

Everything here is whitened by the weights (``heldout.problem``); fits are given back in the units of the targets.
With confounds among the columns Q, fits leave out what these explain by themselves (``heldout.confounds``).
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from foldless._engine.heldout.confounds import ConfoundSums
from foldless._engine.heldout.moments import present_classes
from foldless._engine.linalg import concat, put, take, take_block, to_host, zeros
from foldless._engine.linalg.batches import gen_batches
from foldless._engine.precision.base import SingularBlockError
from foldless._engine.precision.cost import MAX_ENTRIES
from foldless._engine.precision.digits import adds_up, few_digits, little_kept


class Model:
    """A fitted training part: ``rows`` of a ``problem`` with whitened targets Y, coefficients A and B.

    ``weights`` are those of explicit features where P is held through them (else None), ``choice`` says how P is held,
    and why; ``select_targets`` is the same fit for some of the targets. Subclasses are frozen.
    """

    problem: Any
    rows: np.ndarray
    Y: Any
    A: Any
    B: Any
    weights: Any
    choice: Any
    select_targets: Any

    @cached_property
    def root(self):
        """Square roots of the weights of the training rows, as a column."""
        return self.problem.root(self.rows)

    @cached_property
    def target_scale(self):
        """Size of the targets, one number a column."""
        return self.problem.verbs.largest(abs(self.Y / self.root), 0)

    def targets(self, members):
        """Targets (t, m) of these positions, in their units."""
        return self.Y[members] / self.root[members]

    def held_out_residuals(self, rows, targets):
        """What the fits at these rows of X, which are no rows of the model, leave of their targets."""
        return targets - self.fits(rows)

    def carries_nearly_all(self, members):
        """Whether sets of positions (..., t) carry nearly all squares of a column of the whitened targets, (...,).

        The answer is an array of NumPy.
        """
        xp = self.problem.xp
        if not self.problem.weighted:
            return np.zeros(members.shape[:-1], bool)
        squares = xp.square(self.Y)
        total = xp.sum(squares, axis=0)
        return to_host(xp.any(little_kept(total - xp.sum(squares[members], axis=-2), total), axis=-1))

    def present_classes(self):
        """Which classes of targets +-1 one against all have rows in the training part, (c,)."""
        return present_classes(self.Y)

    def fits(self, rows):
        """Fits at these rows of X without what the confounds explain, in the units of the targets.

        Equal rows have equal fits.
        """
        problem = self.problem
        done = np.zeros(len(rows), bool)
        F = zeros(self.B, (len(rows), self.B.shape[1]))
        for members, fits_of in self._fits_from_targets():
            place = np.full(problem.n, -1)
            place[members] = np.arange(len(members))
            inside = place[rows] >= 0
            if inside.any():
                F = put(F, inside, fits_of(place[rows[inside]]))
                done |= inside
        if problem.n_confounds:
            F = put(F, done, F[done] - problem.Q[rows[done]] @ self.confound_fit.D)
        if not done.all():
            F = put(F, ~done, self.evaluated(rows[~done]))
        return problem.tie_equal_rows(rows, self._with_digits(F, rows))

    def _fits_from_targets(self):
        """Row numbers, and a function from places among them to fits that follow from their targets."""
        yield self.rows, lambda places: (self.Y[places] - self.problem.alpha * self.A[places]) / self.root[places]

    def _with_digits(self, F, rows):
        """The fits F, evaluated where what the kernel adds is tiny beside the targets that it is a difference of.

        Differences below eps * |Y| are rounding noise that correlates with Y.
        """
        xp = self.problem.xp
        cancelled = few_digits(F - self.problem.unpenalised_fits(rows, self.score_offsets), self.target_scale)
        if not xp.any(cancelled):
            return F
        columns = np.flatnonzero(to_host(xp.any(cancelled, axis=0)))
        places = np.flatnonzero(to_host(xp.any(cancelled, axis=1)))
        model = self.select_targets(columns)
        terms = abs(model.functionals(rows[places])) @ model._sizes_of_A
        evaluated = take_block(cancelled, places, columns) & adds_up(terms, self.target_scale[columns])
        values = xp.where(evaluated, model.evaluated(rows[places]), take_block(F, places, columns))
        return put(F, (places[:, None], columns), values)

    @property
    def _sizes_of_A(self):
        """Sizes of what adds up to A."""
        return abs(self.A)

    def evaluated(self, rows, *, from_A=False):
        """Fits at these rows of X from the coefficients of the model, without what the confounds explain.

        ``from_A``: weights of features are made anew, Phi' W^1/2 A.
        """
        offsets = self.problem.unpenalised_fits(rows, self.score_offsets)
        if self.weights is not None or self.problem.kernel.approximates:
            weights = self.feature_weights() if from_A or self.weights is None else self.weights
            return self.problem.features(rows) @ weights + offsets
        basis, beta = self.expansion()
        return self.problem.gram(rows, basis) @ beta + offsets

    def functionals(self, rows):
        """T (len(rows), n) with f(x) = T(x) A + q(x)' B."""
        return self.problem.gram(rows, self.rows) * self.root.T

    def functional_sums(self, Z):
        """Z' W^1/2 T of the training rows (m, n) for whitened Z (n, m)."""
        H = zeros(Z, (Z.shape[1], len(self.rows)))
        for batch in gen_batches(len(Z), max(1, MAX_ENTRIES // len(self.rows))):
            H = H + (self.root[batch] * Z[batch]).T @ self.functionals(self.rows[batch])
        return H

    def expansion(self):
        """(rows, beta): f(x) = k(x, rows)' beta + q(x)' B."""
        return self.rows, self.root * self.A

    def feature_weights(self):
        """Weights (r, m) of the features from A."""
        rows, beta = self.expansion()
        return self.problem.features(rows, dense=False).T @ beta

    def in_features(self):
        """(weights, B) of the score phi(x)' weights + q(x)' B by the features phi of the kernel; (None, B) without."""
        problem, weights, B = self.problem, self.weights, self.score_offsets
        if problem.n_features is None:
            return None, B
        if weights is None:
            weights = self.feature_weights()
        if problem.shift is not None:  # the weights are those of centred features
            B = concat([B[:1] - problem.shift @ weights, B[1:]])
        return weights, B

    def check_rest(self, t):
        """Without t rows, the unpenalised columns must still be determined."""
        if len(self.rows) - t < self.problem.Q.shape[1]:
            raise SingularBlockError.of(range(t), len(self.rows))

    def check_sets(self, members):
        """Without any one of these sets (k, t) of positions, the unpenalised columns must still be determined."""
        self.check_rest(members.shape[1])
        if self.problem.more_columns:
            self.problem.check_sets(self.rows, members)

    @cached_property
    def confound_sums(self):
        """What the confounds of the training rows explain is had from these, and without any set of them."""
        return ConfoundSums(self.problem, self.rows, self.Y)

    @cached_property
    def confound_fit(self):
        """What confounds explain by themselves in the training part, q(x)' D at any x."""
        return self.confound_sums.of_all_rows()

    @property
    def score_offsets(self):
        """Coefficients (q, m) of the unpenalised columns in the scores."""
        return self.B - self.confound_fit.D if self.problem.n_confounds else self.B


@dataclass(frozen=True, eq=False)
class FittedCoefficients(Model):
    """A fitted training part without P: it predicts, and no sets are left out of it."""

    problem: Any
    rows: np.ndarray
    Y: np.ndarray
    A: np.ndarray
    B: np.ndarray
    weights: np.ndarray | None
    choice: str

    def select_targets(self, columns):
        weights = None if self.weights is None else take(self.weights, columns, 1)
        Y, A, B = (take(values, columns, 1) for values in (self.Y, self.A, self.B))
        return replace(self, Y=Y, A=A, B=B, weights=weights)
