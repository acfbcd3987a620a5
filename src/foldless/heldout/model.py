"""A fitted training part: its fits anywhere, its expansion, its class matrices.

Everything here is whitened by the weights (``heldout.problem``); fits are given back in the units of the targets.
With confounds among the columns Q, fits leave out what these explain by themselves (``heldout.confounds``).
"""

from functools import cached_property

import numpy as np
from sklearn.utils import gen_batches

from foldless.heldout.confounds import ConfoundSums
from foldless.heldout.moments import adds_up, few_digits
from foldless.heldout.rows import Frozen
from foldless.precision.base import SingularBlockError

MAX_ENTRIES = 2**22  # entries of an intermediate array
OF_TARGETS = {"Y", "A", "B", "E", "taken", "weights", "target_scale"}
OF_ALL = {"own_moments", "confound_sums", "confound_fit"}  # made again where targets are selected


class Model(Frozen):
    """A fitted training part: ``rows`` of a ``problem`` with whitened targets Y, coefficients A and B. Frozen.

    ``weights`` are those of explicit features where P is held through them (else None), ``choice`` says how P is held,
    and why.
    """

    @property
    def root(self):
        """Square roots of the weights of the training rows, as a column."""
        return self.problem.root(self.rows)

    @cached_property
    def target_scale(self):
        """Size of the targets, one number a column."""
        return np.abs(self.Y / self.root).max(0, initial=0.0)

    def select_targets(self, columns):
        """The same fit for some of the targets."""
        known = {**vars(self)}  # a copy: another thread may compute a cached field meanwhile
        for name in OF_ALL:
            known.pop(name, None)
        mine = {name: known[name][..., columns] for name in OF_TARGETS & known.keys() if known[name] is not None}
        return self.of(**known | mine)

    def fits(self, rows):
        """Fits at these rows of X without the confounds' part, in the units of the targets.

        Equal rows have equal fits.
        """
        problem, known = self.problem, np.zeros(len(rows), bool)
        F = np.empty((len(rows), self.B.shape[1]), self.B.dtype)
        for members, fitted in self._known_fits():
            place = np.full(problem.n, -1)
            place[members] = np.arange(len(members))
            here = place[rows] >= 0
            if here.any():
                F[here] = fitted(place[rows[here]])
                known |= here
        if problem.n_confounds:
            F[known] -= problem.Q[rows[known]] @ self.confound_fit.D
        if not known.all():
            F[~known] = self.evaluated(rows[~known])
        self._restore_digits(F, rows)
        return problem.tie_equal_rows(rows, F)

    def _known_fits(self):
        """Row numbers, and a function from places among them to fits that follow from their targets."""
        yield self.rows, lambda own: (self.Y[own] - self.problem.alpha * self.A[own]) / self.root[own]

    def _restore_digits(self, F, rows):
        """Evaluate the model where the kernel's part of the fits F is tiny beside the targets they are differences of.

        What is left there below eps |Y| depends on Y: labels would be read off the rounding.
        """
        lost = few_digits(F - self.problem.unpenalised_part(rows, self.shown_B), self.target_scale)
        if lost.any():
            columns, places = np.flatnonzero(lost.any(0)), np.flatnonzero(lost.any(1))
            here, model = np.ix_(places, columns), self.select_targets(columns)
            terms = np.abs(model.functionals(rows[places])) @ model._sizes_of_A
            taken = lost[here] & adds_up(terms, self.target_scale[columns])
            F[here] = np.where(taken, model.evaluated(rows[places]), F[here])

    @property
    def _sizes_of_A(self):
        """Sizes of what adds up to A."""
        return np.abs(self.A)

    def evaluated(self, rows, *, from_A=False):
        """Fits at these rows of X from the coefficients of the model, without the confounds' part.

        ``from_A``: weights of features are made anew, Phi' W^1/2 A.
        """
        shown = self.problem.unpenalised_part(rows, self.shown_B)
        if self.weights is not None or self.problem.kernel.approximates:
            weights = self.feature_weights() if from_A or self.weights is None else self.weights
            return self.problem.features(rows) @ weights + shown
        basis, beta = self.expansion()
        return self.problem.gram(rows, basis) @ beta + shown

    def functionals(self, rows):
        """T (len(rows), n) with f(x) = T(x) A + q(x)' B."""
        return self.problem.gram(rows, self.rows) * self.root.T

    def functional_sums(self, Z):
        """Z' W^1/2 T of the training rows (m, n) for whitened Z (n, m)."""
        H = np.zeros((Z.shape[1], len(self.rows)), Z.dtype)
        for batch in gen_batches(len(Z), max(1, MAX_ENTRIES // len(self.rows))):
            H += (self.root[batch] * Z[batch]).T @ self.functionals(self.rows[batch])
        return H

    def expansion(self):
        """(rows, beta): f(x) = k(x, rows)' beta + q(x)' B."""
        return self.rows, self.root * self.A

    def feature_weights(self):
        """Weights (r, m) of the features from A."""
        rows, beta = self.expansion()
        return np.asarray(self.problem.features(rows, dense=False).T @ beta)

    def in_features(self):
        """(weights, B) of the score phi(x)' weights + q(x)' B by the features phi of the kernel; (None, B) without."""
        problem, weights, B = self.problem, self.weights, self.shown_B
        if not problem.has_features:
            return None, B
        if weights is None:
            weights = self.feature_weights()
        if problem.shift is not None:  # the weights are those of centred features
            B = B.copy()
            B[0] -= problem.shift @ weights
        return weights, B

    def _check_rest(self, t):
        """Without t rows, the unpenalised columns must still be determined."""
        if len(self.rows) - t < self.problem.Q.shape[1]:
            raise SingularBlockError.of(range(t), len(self.rows))

    def _check_sets(self, members):
        """Without any one of these sets (k, t) of positions, the unpenalised columns must still be determined."""
        self._check_rest(members.shape[1])
        self.problem.check_sets(self.rows, members)

    @cached_property
    def confound_sums(self):
        """What the confounds of the training rows explain is had from these, and without any set of them."""
        return ConfoundSums(self.problem, self.rows, self.Y)

    @cached_property
    def confound_fit(self):
        """What confounds explain by themselves in the training part, q(x)' D at any x."""
        return self.confound_sums.whole()

    @property
    def shown_B(self):
        """Coefficients (q, m) of the unpenalised columns in the scores."""
        return self.B - self.confound_fit.D if self.problem.n_confounds else self.B
