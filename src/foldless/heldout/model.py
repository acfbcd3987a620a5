"""A fitted training part: its fits anywhere, its expansion, its class matrices.

Everything here is whitened by the weights (``heldout.problem``); fits are given back in the units of the targets.
With confounds among the columns Q, fits leave their part q' B out.
"""

from dataclasses import FrozenInstanceError
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils import gen_batches

from foldless.heldout.moments import adds_up, few_digits
from foldless.heldout.penalty import sites_of
from foldless.linalg.numpy import eigenvalues
from foldless.precision.base import SingularBlockError

ENTRIES = 2**22  # entries of an intermediate array


class Model:
    """A fitted training part: ``rows`` with whitened targets Y, coefficients A and B. Frozen.

    ``site_A`` holds A at every site, ``weights`` those of explicit features where P is held through them (else None),
    ``choice`` says how P is held, and why.
    """

    problem: Any
    rows: np.ndarray
    Y: np.ndarray
    A: np.ndarray
    B: np.ndarray
    site_A: np.ndarray
    weights: np.ndarray | None
    choice: str

    def __init__(self, **known):
        vars(self).update(known)

    def __setattr__(self, name, value):
        raise FrozenInstanceError(f"{type(self).__name__} is frozen: {name} cannot be set")

    @property
    def root(self):
        """Square roots of the weights of the training rows, as a column."""
        return self.problem.root(self.rows)

    @cached_property
    def target_scale(self):
        """Size of the targets, one number a column."""
        return np.abs(self.Y / self.root).max(0, initial=0.0)

    # -- fits ------------------------------------------------------------------------------------------------------

    def fits(self, rows):
        """Fits at these rows of X without the confounds' part, in the units of the targets.

        Equal rows have equal fits.
        """
        F = np.empty((len(rows), self.B.shape[1]), self.B.dtype)
        place = np.full(self.problem.n, -1)
        place[self.rows] = np.arange(len(self.rows))
        own = place[rows] >= 0
        if own.any():
            mine = place[rows[own]]
            F[own] = (self.Y[mine] - self.problem.alpha * self.A[mine]) / self.root[mine]
            self._leave_confounds_out(F, own, rows)
        if not own.all():
            F[~own] = self._fits_elsewhere(rows[~own])
        self._restore_digits(F, rows)
        return self.problem.tie_equal_rows(rows, F)

    def _leave_confounds_out(self, F, places, rows):
        """Take the confounds' part out of the fits F of the rows, at these places."""
        if self.problem.n_confounds:
            F[places] -= self.problem.Q[rows[places], self.problem.confounds] @ self.confound_B

    def _restore_digits(self, F, rows):
        """Evaluate the model where the kernel's part of the fits F is tiny beside the targets they are differences of.

        What is left there below eps |Y| depends on Y: labels would be read off the rounding.
        """
        lost = few_digits(F - self.problem.scored_part(rows, self.B), self.target_scale)
        if lost.any():
            columns, places = np.flatnonzero(lost.any(0)), np.flatnonzero(lost.any(1))
            here, model = np.ix_(places, columns), self.select_targets(columns)
            taken = lost[here] & adds_up(model.terms(rows[places]), self.target_scale[columns])
            F[here] = np.where(taken, model.evaluated(rows[places]), F[here])

    def _fits_elsewhere(self, rows):
        return self.evaluated(rows)

    def evaluated(self, rows):
        """Fits at these rows of X from the coefficients of the model, without the confounds' part."""
        shown = self.problem.scored_part(rows, self.B)
        if self.weights is not None:
            return self.problem.features(rows) @ self.weights + shown
        basis, beta = self.expansion()
        return self.problem.gram(rows, basis) @ beta + shown

    def terms(self, rows):
        """Sizes of what adds up to the kernel's part of the fits at these rows, (len(rows), m)."""
        return np.abs(self.functionals(rows)) @ self._site_sizes

    @property
    def _site_sizes(self):
        """Sizes of what adds up to A at every site."""
        return np.abs(self.site_A)

    # -- the function ----------------------------------------------------------------------------------------------

    def functionals(self, rows):
        """T (len(rows), sites) with f(x) = T(x) A + q(x)' B for the coefficients A of all sites."""
        return self.problem.penalty.functionals(self.problem, self.rows, rows)

    def functional_sums(self, Z):
        """Z' W^1/2 T of the training rows (m, sites) for whitened Z (n, m)."""
        H = np.zeros((Z.shape[1], len(self.site_A)), Z.dtype)
        for batch in gen_batches(len(Z), max(1, ENTRIES // len(self.site_A))):
            H += (self.root[batch] * Z[batch]).T @ self.functionals(self.rows[batch])
        return H

    def expansion(self):
        """(basis rows, beta): f(x) = k(x, basis)' beta + q(x)' B."""
        return self.problem.basis_rows(self.rows), self._beta

    @property
    def _beta(self):
        return self.problem.penalty.expansion(self.problem, self.rows, self.A)

    def in_features(self):
        """(weights, B) of f(x) = phi(x)' weights + q(x)' B by the features phi of the kernel; (None, B) without."""
        if not self.problem.has_features:
            return None, self.B
        weights = self.weights
        if weights is None:
            weights = self.problem.weights_of_expansion(*self.expansion())
        return weights, self.problem.uncentred(weights, self.B)

    # -- training parts --------------------------------------------------------------------------------------------

    def own_sites(self, members):
        """Sites that belong to these positions among those of this training part; the last axis doubles for J."""
        return sites_of(self.problem.penalty.sites_per_row, members, len(self.rows))

    def select_targets(self, columns):
        """The same fit for some of the targets."""
        raise NotImplementedError

    def _check_rest(self, t):
        """Without t rows, the unpenalised columns must still be determined."""
        if len(self.rows) - t < self.problem.Q.shape[1]:
            raise SingularBlockError.of(range(t), len(self.rows))

    def _check_sets(self, members):
        """Without any one of these sets (k, t) of positions, the unpenalised columns must still be determined."""
        self._check_rest(members.shape[1])
        if self.problem.more_columns:
            Qo = self.span[members]
            kept = eigenvalues(np.eye(members.shape[1], dtype=Qo.dtype) - Qo @ Qo.transpose(0, 2, 1))[:, 0]
            if kept.min() <= 16 * Qo.shape[2] * np.finfo(Qo.dtype).eps:
                worst = members[kept.argmin()]
                self.problem.span(np.delete(self.rows, worst))  # says which column
                raise SingularBlockError.of(worst, len(self.rows))

    # -- classes and confounds -------------------------------------------------------------------------------------

    @property
    def C(self):
        """The whitened confounds of the training rows."""
        return self.root * self.problem.Q[self.rows, self.problem.confounds]

    @property
    def confound_B(self):
        """Their coefficients."""
        return self.B[self.problem.confounds]

    @cached_property
    def span(self):
        """Orthonormal basis of all unpenalised columns of the training rows, whitened."""
        return self.problem.span(self.rows)

    @cached_property
    def unexplained(self):
        """What the unpenalised columns alone leave of Y."""
        return self.Y - self.span @ (self.span.T @ self.Y)
