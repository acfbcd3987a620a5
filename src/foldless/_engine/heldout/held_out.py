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

from foldless._engine.heldout.moments import Moments, nearly_gone, present_classes, remaining_masses
from foldless._engine.linalg import (
    LinAlgError,
    concat,
    copy,
    product,
    put,
    take,
    take_along,
    take_block,
    to_host,
)
from foldless._engine.linalg.batches import gen_batches
from foldless._engine.precision.base import HeldOutBlock, SingularBlockError
from foldless._engine.precision.cost import MAX_ENTRIES
from foldless._engine.precision.digits import adds_up, few_digits

AT_ONCE = 2**12  # fits up to which NumPy reduces over the rows of sets sooner than a loop over these


@dataclass(frozen=True, eq=False)
class HeldOut:
    """k sets of t rows, every one left out of one model alone.

    members (k, t) positions, Y (k, t, m) targets, A (k, t, m) coefficients, D (k, t, t) blocks of P and E (k, t, m)
    residuals of each set; whitened. ``model`` is a ``Solution`` or a ``TrainingPart``.
    """

    model: Any
    members: np.ndarray
    Y: np.ndarray
    A: np.ndarray
    D: np.ndarray
    E: np.ndarray
    ill_conditioned: np.ndarray  # sets (k,) that P has too few digits for; an array of NumPy

    @classmethod
    def solve(cls, model, members, A, D, ill_conditioned):
        """Residuals E = D^-1 A, set by set; those of ill-conditioned sets, solved by themselves, mean nothing."""
        try:
            E = residuals_of_blocks(D, A, ill_conditioned, model.problem.verbs)
        except LinAlgError:
            raise SingularBlockError.of(range(members.shape[1]), len(model.rows)) from None
        return cls(model, members, model.Y[members], A, D, E, ill_conditioned)

    @cached_property
    def fits(self):
        """Held-out fits in the units of the targets, shape (k, t, m); equal rows of a set have equal ones."""
        model, t = self.model, self.Y.shape[1]
        F = (self.Y - self.E) / model.root[self.members]
        if model.problem.n_confounds:
            F = F - self._columns() @ self._confound_fit.D
        F = self._with_digits(F)
        for number, solution in self._solved.items():
            F = put(F, number, solution.evaluated(model.rows[self.members[number]]))
        numbers = model.problem.equal.value if t > 1 else None
        if numbers is None:
            return F
        numbers = numbers[model.rows[self.members]]
        # (k, t): the first row of the set that a row equals
        first = (numbers[:, :, None] == numbers[:, None, :]).argmax(2)
        return take_along(F, first[:, :, None], 1)

    def _with_digits(self, F):
        """The fits F, those from the coefficients where differences have few digits."""
        model, t, xp = self.model, F.shape[1], self.model.problem.xp
        cancelled = few_digits_of_sets(F, model.target_scale, xp)
        if not xp.any(cancelled):
            return F
        sets, columns = (np.flatnonzero(to_host(xp.any(cancelled, axis=axis))) for axis in (1, 0))
        values, terms = self._from_coefficients(sets, columns)
        better = take_block(cancelled, sets, columns)[:, None, :] & adds_up(terms, model.target_scale[columns])
        values = xp.where(better, values, take(F[sets], columns, 2))
        return put(F, (sets[:, None, None], np.arange(t)[:, None], columns), values)

    def training(self, number):
        """The model without one of the sets."""
        return self.model.without(self.members[number])

    def loo_within(self):
        """Yield leave-one-out residuals (n - t, m) of the model without each of the sets, in the units of the targets.

        As ``TrainingPart.loo`` computes them, with the columns of P and the residuals of all sets at once. Where
        weights or confounds need more, or P has too few digits, the training part does.
        """
        model, t = self.model, self.members.shape[1]
        model.check_rest(t + 1)
        if model.problem.weighted or model.problem.more_columns:
            yield from (self._loo_of_training(number) for number in range(len(self.members)))
            return
        P = model.precision
        columns, diagonal = P.columns(self.members.ravel()), P.diagonal()
        for number, members in enumerate(self.members):
            block = HeldOutBlock(P, members, self.D[number], columns[:, number * t : (number + 1) * t])
            if self.ill_conditioned[number] or not block.has_factor:
                yield self._loo_of_training(number)
                continue
            A = model.A - product(block.columns, self.E[number])
            kept = np.ones(len(model.rows), bool)
            kept[members] = False
            yield A[kept] / block.remaining_diagonal(diagonal)[kept, None]

    def _loo_of_training(self, number):
        """Leave-one-out residuals of the model without one of the sets, by itself."""
        return self.training(number).loo().residuals[:, 0]

    @cached_property
    def residuals(self):
        """What held-out fits leave of the targets, (k, t, m) in their units."""
        model, root = self.model, self.model.root[self.members]
        E = self.E / root
        if model.problem.n_confounds:
            E = E + self._columns() @ self._confound_fit.D
        for number, solution in self._solved.items():
            fits = solution.evaluated(model.rows[self.members[number]])
            E = put(E, number, self.Y[number] / root[number] - fits)
        return E

    @cached_property
    def _solved(self):
        """Models without the sets that P cannot leave out, solved by themselves; by number of the set."""
        if not self.ill_conditioned.any():
            return {}
        sets = np.flatnonzero(self.ill_conditioned)
        return {number: self.model.solve_without(self.members[number]) for number in sets}

    def _from_coefficients(self, sets, columns):
        """Held-out fits (k, t, m) of some sets and targets in their units, and the sizes of what adds up to them.

        No target of theirs is subtracted.
        """
        batches = [(T @ A, abs(T) @ size) for _, T, A, size in self._coefficients(sets, columns)]
        F, terms = (concat(values) for values in zip(*batches, strict=True))
        return F + self._columns(sets) @ take(self.score_offsets(sets), columns, 2), terms

    def _coefficients(self, sets, columns=slice(None)):
        """Some sets at a time: a slice of them, T (k, t, n) of their rows, A without each, and its terms in size.

        Both are 0 at the rows of the set.
        """
        model, t, xp = self.model, self.Y.shape[1], self.model.problem.xp
        A, n = take(model.A, columns, 1), len(model.rows)
        for batch in gen_batches(len(sets), max(1, MAX_ENTRIES // (n * (2 * t + A.shape[1])))):
            members = self.members[sets[batch]]
            k = len(members)
            T = xp.reshape(model.functionals(model.rows[members.reshape(-1)]), (k, t, n))
            C = xp.reshape(model.precision.columns(members.reshape(-1)).T, (k, t, n))
            C, E = xp.permute_dims(C, (0, 2, 1)), take(self.E[sets[batch]], columns, 2)
            places = np.arange(k)[:, None], members
            yield batch, T, put(A - C @ E, places, 0.0), put(abs(A) + abs(C) @ abs(E), places, 0.0)

    def _with_sums(self, moments):
        """The class matrices with V of the sets without which all axes are weak."""
        model, problem, xp = self.model, self.model.problem, self.model.problem.xp
        weak = moments.weak(problem.intercept)
        if problem.more_columns or not xp.any(weak):
            return moments
        sets = np.flatnonzero(to_host(weak))
        H, Yt = model.functional_sums(model.Y), xp.permute_dims(model.root[self.members] * self.Y, (0, 2, 1))
        V, size = [], []
        for batch, T, A, _ in self._coefficients(sets):
            rest = H - Yt[sets[batch]] @ T
            V.append(rest @ A)
            size.append(abs(rest) @ abs(A))
        sums = put(copy(moments.sums), sets, concat(V))
        if problem.intercept:
            mass = moments.mass
            means = xp.sum(sums, axis=1) / xp.sum(mass, axis=1)[:, None]
            sums = sums - mass[:, :, None] * means[:, None, :]
        return moments.with_sums(weak, sums, put(xp.zeros_like(moments.U), sets, concat(size)))

    def _columns(self, sets=slice(None)):
        """Q of the rows of the sets, (k, t, q)."""
        return self.model.problem.Q[self.model.rows[self.members[sets]]]

    @cached_property
    def _confound_fit(self):
        """What confounds explain by themselves in the training part of each set."""
        return self.model.confound_sums.without(self.members)

    def score_offsets(self, sets=slice(None)):
        """Coefficients of the columns of Q in the scores without each set, (k, q, m)."""
        G = take(self.model.G(slice(None)), self.members[sets], 1)
        B = self.model.B - self.model.problem.xp.permute_dims(G, (1, 0, 2)) @ self.E[sets]
        return B - self._confound_fit.D[sets] if self.model.problem.n_confounds else B

    def present_classes(self):
        """Which classes of targets +-1 one against all have rows in the training part of every set, (k, c)."""
        return present_classes(self.model.Y, self.Y)

    def moments(self):
        """N and U, with confounds C, each (k, m, m), of the training part of every set."""
        model, xp = self.model, self.model.problem.xp
        full = model.moments()
        N, present = remaining_masses(full.N, model.Y, self.Y)
        Yt = xp.permute_dims(self.Y, (0, 2, 1))
        left_out = Yt @ self.A + xp.permute_dims(self.A - self.D @ self.Y, (0, 2, 1)) @ self.E
        moments = Moments(N, full.U - model.problem.alpha * left_out)
        gone = nearly_gone(moments, full, present)
        if full.C is not None:
            g, theta, _ = self._confound_fit
            moments = moments._replace(C=xp.permute_dims(g, (0, 2, 1)) @ theta)
        moments = self._with_sums(moments)
        for number in np.flatnonzero(to_host(gone) | self.ill_conditioned):
            solution = self._solved.get(number) or model.solve_without(self.members[number])
            exact = solution.moments()
            moments = moments.put(number, exact)
        return moments


def residuals_of_blocks(D, A, ill_conditioned, verbs):
    """Residuals D^-1 A (k, t, m) of sets with blocks D (k, t, t) of P; those of ill-conditioned ones mean nothing."""
    if ill_conditioned.any():
        D = verbs.put(verbs.copy(D), np.flatnonzero(ill_conditioned), verbs.eye(D, D.shape[-1]))
    return A / D if D.shape[-1] == 1 else verbs.solve_definite(D, A)


def few_digits_of_sets(F, size, xp):
    """Whether fits F (k, t, m) have lost most digits, (k, m): one of a set is tiny, or all of them are alike."""
    k, t, m = F.shape
    if t > 1 and (t > k or k * t * m < AT_ONCE):
        return xp.any(few_digits(F, size), axis=1) | xp.all(few_digits(F[:, 1:] - F[:, :1], size), axis=1)
    cancelled, alike = few_digits(F[:, 0], size), t > 1
    for row in range(1, t):
        cancelled = cancelled | few_digits(F[:, row], size)
        alike = alike & few_digits(F[:, row] - F[:, 0], size)
    return cancelled | alike
