"""Many held-out sets of one model, each left out alone and all solved at once. Leave-one-out is n sets of one row.

    residuals         E_te = D^-1 A_te,   D = P_te,te           held-out fits  Y_te - E_te
    class matrices    N - Y_te' Y_te,   U - alpha ( Y_te' A_te + (A_te - D Y_te)' E_te ),

Both are differences and lose digits in two cases, which are looked for and computed without them:

- fits that are tiny beside the targets, or differ by next to nothing within a set: they follow from the coefficients of
  the model without the set, f(x) = T(x) (A - P_,te E_te) + q(x)' B_(-te), T(x) being the kernel between x and the rows.
- a set that carries nearly all of the weight of a class, or of what is unexplained of it: the rest is solved by itself.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils import gen_batches

from foldless.heldout.moments import Moments, adds_up, few_digits, nearly_gone, remaining_masses, takes_nearly_all
from foldless.linalg import LinAlgError, solve_definite
from foldless.precision.base import SingularBlockError

MAX_ENTRIES = 2**22  # entries of an intermediate array


@dataclass(frozen=True)
class HeldOut:
    """k sets of t rows, every one left out of one model alone.

    members (k, t) positions, Y (k, t, m) targets, A (k, t, m) coefficients, D (k, t, t) blocks of P and E (k, t, m)
    residuals of each set; whitened. ``model`` is a ``Solution`` or a ``Part``.
    """

    model: Any
    members: np.ndarray
    Y: np.ndarray
    A: np.ndarray
    D: np.ndarray
    E: np.ndarray
    lost: np.ndarray | None = None  # sets (k,) whose blocks have no digits left

    @classmethod
    def solve(cls, model, members, A, D, lost=None):
        """Residuals E = D^-1 A, set by set; those of ``lost`` sets mean nothing, they are solved by themselves."""
        Y = model.Y[members]
        regular = D
        if lost is not None and lost.any():
            regular = np.where(lost[:, None, None], np.eye(D.shape[-1], dtype=D.dtype), D)
        try:
            E = A / regular if D.shape[-1] == 1 else solve_definite(regular, A)
        except LinAlgError:
            raise SingularBlockError.of(range(Y.shape[1]), len(model.rows)) from None
        return cls(model, members, Y, A, D, E, lost)

    @cached_property
    def fits(self):
        """Held-out fits in the units of the targets, shape (k, t, m); equal rows of a set have equal ones."""
        model, t = self.model, self.Y.shape[1]
        F = (self.Y - self.E) / model.root[self.members]
        if model.problem.n_confounds:
            F -= self._columns() @ self._confound_fit.D
        lost, alike = few_digits(F[:, 0], model.target_scale), t > 1
        for row in range(1, t):  # sets are many and small
            lost |= few_digits(F[:, row], model.target_scale)
            alike &= few_digits(F[:, row] - F[:, 0], model.target_scale)
        lost |= alike
        if lost.any():
            sets, columns = np.flatnonzero(lost.any(1)), np.flatnonzero(lost.any(0))
            found, terms = self._from_coefficients(sets, columns)
            places = np.ix_(sets, np.arange(t), columns)
            taken = lost[np.ix_(sets, columns)][:, None, :] & adds_up(terms, model.target_scale[columns])
            F[places] = np.where(taken, found, F[places])
        for number, other in self._solved.items():
            F[number] = other.evaluated(model.rows[self.members[number]])
        numbers = model.problem.equal.value if t > 1 else None
        if numbers is None:
            return F
        numbers = numbers[model.rows[self.members]]
        first = (numbers[:, :, None] == numbers[:, None, :]).argmax(
            2
        )  # (k, t): rows of a set that equal an earlier one
        return np.take_along_axis(F, first[:, :, None], 1)

    def training(self, number):
        """The model without one of the sets."""
        return self.model.without(self.members[number])

    @cached_property
    def residuals(self):
        """What held-out fits leave of the targets, (k, t, m) in their units."""
        model, root = self.model, self.model.root[self.members]
        E = self.E / root
        if model.problem.n_confounds:
            E += self._columns() @ self._confound_fit.D
        for number, other in self._solved.items():
            E[number] = self.Y[number] / root[number] - other.evaluated(model.rows[self.members[number]])
        return E

    @cached_property
    def _solved(self):
        """Models without the sets that P cannot leave out, solved by themselves; by number of the set."""
        if self.lost is None and not self.model.problem.weighted:
            return {}
        sets = takes_nearly_all(self.model, self.members)
        sets = np.flatnonzero(sets if self.lost is None else sets | self.lost)
        return {number: self.model.solve_without(self.members[number]) for number in sets}

    def _from_coefficients(self, sets, columns):
        """Held-out fits (k, t, m) of some sets and targets in their units, and the sizes of what adds up to them.

        No target of theirs is subtracted.
        """
        F, terms = (np.empty((len(sets), self.Y.shape[1], len(columns)), self.Y.dtype) for _ in range(2))
        for batch, T, A, size in self._coefficients(sets, columns):
            F[batch], terms[batch] = T @ A, np.abs(T) @ size
        return F + self._columns(sets) @ self.shown_B(sets)[:, :, columns], terms

    def _coefficients(self, sets, columns=slice(None)):
        """Some sets at a time: a slice of them, T (k, t, n) of their rows, A without each, and its terms in size.

        Both are 0 at the rows of the set.
        """
        model, t = self.model, self.Y.shape[1]
        whole, n = model.A[:, columns], len(model.A)
        for batch in gen_batches(len(sets), max(1, MAX_ENTRIES // (n * (2 * t + whole.shape[1])))):
            members = self.members[sets[batch]]
            k = len(members)
            T = model.functionals(model.rows[members.ravel()]).reshape(k, t, n)
            C = model.precision.columns(members.ravel()).T.reshape(k, t, n)
            C, E = C.transpose(0, 2, 1), self.E[sets[batch]][:, :, columns]
            A, size = whole - C @ E, np.abs(whole) + np.abs(C) @ np.abs(E)
            places = np.broadcast_to(members[:, :, None], E.shape)
            for values in (A, size):
                np.put_along_axis(values, places, 0.0, axis=1)
            yield batch, T, A, size

    def _with_sums(self, found):
        """The class matrices with V of the sets without which all axes are weak."""
        model, problem = self.model, self.model.problem
        weak = found.weak(problem.intercept)
        if problem.more_columns or not weak.any():
            return found
        V = found.sums.copy()
        size = np.zeros_like(found.U)
        sets = np.flatnonzero(weak)
        H, Yt = model.functional_sums(model.Y), (model.root[self.members] * self.Y).transpose(0, 2, 1)
        for batch, T, A, _ in self._coefficients(sets):
            rest = H - Yt[sets[batch]] @ T
            V[sets[batch]], size[sets[batch]] = rest @ A, np.abs(rest) @ np.abs(A)
        if problem.intercept:
            V -= found.mass[:, :, None] * (V.sum(1) / found.mass.sum(1)[:, None])[:, None, :]
        return found.with_sums(weak, V, size)

    def _columns(self, sets=slice(None)):
        """Q of the rows of the sets, (k, t, q)."""
        return self.model.problem.Q[self.model.rows[self.members[sets]]]

    @cached_property
    def _confound_fit(self):
        """What confounds explain by themselves in the training part of each set."""
        return self.model.confound_sums.without(self.members)

    def shown_B(self, sets=slice(None)):
        """Coefficients of the columns of Q in the scores without each set, (k, q, m)."""
        G = self.model.G(slice(None))[:, self.members[sets]]
        B = self.model.B - G.transpose(1, 0, 2) @ self.E[sets]
        return B - self._confound_fit.D[sets] if self.model.problem.n_confounds else B

    def moments(self):
        """N and U, with confounds C, each (k, m, m), of the training part of every set."""
        model = self.model
        whole = model.moments()
        N, present = remaining_masses(whole.N, model.Y, self.Y)
        Yt = self.Y.transpose(0, 2, 1)
        taken = Yt @ self.A + (self.A - self.D @ self.Y).transpose(0, 2, 1) @ self.E
        found = Moments(N, whole.U - model.problem.alpha * taken)
        gone = nearly_gone(found, whole, present)
        if whole.C is not None:
            g, theta, _ = self._confound_fit
            found = found._replace(C=g.transpose(0, 2, 1) @ theta)
        found = self._with_sums(found)
        for number in {*np.flatnonzero(gone), *self._solved}:
            other = self._solved.get(number) or model.solve_without(self.members[number])
            exact = other.moments()
            for mine, theirs in zip(found, exact._replace(V=exact.sums), strict=True):
                if mine is not None:
                    mine[number] = theirs
        return found
