"""Class matrices of a training part: all that a discriminant asks of it besides fits.

For targets Y (n x m), weights W, fits F of the training part and A its coefficients:

    N = Y' W Y                                             masses of the classes
    U = alpha Y' A = N - Y' W F                            what the fits leave unexplained, without cancellation
    C                                                      what confounds explain by themselves (``heldout.confounds``)
    U + C = N - Y' W (F - Q D)                             what the scores leave unexplained
    V = N - U - C                                          class sums of the scores

C is there only where Q holds confounds that the scores leave out. Without a held-out set te,

    U <- U - alpha ( Y_te' A_te + (A_te - P_te,te Y_te)' E_te )

Differences lose digits in two cases (``precision.digits``):

- a training part that keeps next to nothing of a class, or of what is unexplained of it, is solved by itself.
- where the kernel explains next to nothing of all classes, V = N - U has few digits. With three classes or more V is
  then Y' W (g - mean) instead, from g, what the kernel adds to the fits, which differ from it by the constant alone.

A ``model`` brings the numbers of a training part, a :class:`ColumnGroups` says which of its
columns form the classes of one problem. Leading axes are a batch: of labelings, or of held-out sets.
"""

from typing import NamedTuple

import numpy as np

from foldless._engine.linalg import concat, copy, diagonal, eps, kind_of, namespace, put
from foldless._engine.precision.digits import SMALL, cancels, little_kept


class Moments(NamedTuple):
    """N, U and, where the scores leave confounds out, C; each (..., m, m), leading axes are a batch.

    V is given where N - U has few digits.
    """

    N: np.ndarray
    U: np.ndarray
    C: np.ndarray | None = None
    V: np.ndarray | None = None

    @property
    def mass(self):
        """Masses of the classes, (..., m)."""
        return diagonal(self.N)

    @property
    def rest(self):
        """What the scores leave unexplained, U + C, (..., m, m)."""
        return self.U if self.C is None else self.U + self.C

    @property
    def sums(self):
        """Class sums of the scores, (..., m, m)."""
        return self.N - self.rest if self.V is None else self.V

    def weak(self, intercept):
        """Whether all axes of several classes are weak: the sum of a2, a difference in U, has few digits, (...,)."""
        verbs, xp = kind_of(self.N)
        mass = verbs.diagonal(self.N)
        here = mass > 0
        rest = verbs.diagonal(self.U) / xp.where(here, mass, 1.0)
        a2 = xp.sum(xp.where(here, 1.0 - rest, 0.0), axis=-1) - intercept
        return cancels(a2, 1.0, SMALL[mass.dtype.itemsize]) & (mass.shape[-1] > 2)

    def with_sums(self, weak, V, size):
        """V put in where axes are weak, unless it rounds more than N - U does: it adds up terms of this size."""
        mass, xp = self.mass, namespace(self.N)
        limit = xp.sqrt(mass[..., :, None] * mass[..., None, :])
        fine = xp.all((size <= limit) | (limit == 0), axis=(-1, -2))
        return self._replace(V=xp.where((weak & fine)[..., None, None], V, self.sums))

    def put(self, number, other):
        """These matrices with those of ``other`` in the place of one of the batch; V of both, if either has it."""
        V = None if self.V is None and other.V is None else put(copy(self.sums), number, other.sums)
        C = None if self.C is None else put(self.C, number, other.C)
        return Moments(put(self.N, number, other.N), put(self.U, number, other.U), C, V)

    def where(self, chosen, other):
        """These matrices, and those of ``other`` where ``chosen`` (...,); both as V, if either has it."""
        where, chosen = namespace(self.N).where, chosen[..., None, None]
        V = None if self.V is None and other.V is None else where(chosen, other.sums, self.sums)
        C = None if self.C is None else where(chosen, other.C, self.C)
        return Moments(where(chosen, other.N, self.N), where(chosen, other.U, self.U), C, V)


class ColumnGroups:
    """All columns of a model form the classes of one problem."""

    def products(self, X, Z):
        """X' Z over all rows, (..., m, m)."""
        return namespace(X).matrix_transpose(X) @ Z

    def sizes(self, X, Z):
        """|X|' |Z|: the sizes of what adds up to the products."""
        return self.products(abs(X), abs(Z))

    def mass_matrix(self, model):
        """N of a model."""
        return self.products(model.Y, model.Y)

    def left_masses(self, part):
        """N of a training part as a difference, and which classes have rows in it."""
        solution = part.solution
        return remaining_masses(self.full_moments(solution).N, solution.Y, solution.Y[part.removed])

    def left_unexplained(self, part):
        """U of a training part as a difference."""
        solution = part.solution
        Y = solution.Y[part.removed]
        A = solution.A[part.removed]
        inner = self.products(solution.Y, solution.A) - self.products(Y, A)
        return part.problem.alpha * (inner - self.products(A - part.block.times(Y), part.E))

    def full_moments(self, solution):
        """N and U of the solution from which sets are held out."""
        return solution.unfinished_moments


ALL_COLUMNS = ColumnGroups()


def present_classes(Y, left=None):
    """Which classes of the targets Y (n, m), +-1 one against all, have rows besides ``left`` (k, t, m), (..., c)."""
    count = namespace(Y).count_nonzero
    rest = [count(sign * Y > 0, axis=0) for sign in (-1, 1)]
    if left is not None:
        rest = [counts - count(sign * left > 0, axis=-2) for counts, sign in zip(rest, (-1, 1), strict=True)]
    return (concat(rest, -1) if Y.shape[1] == 1 else rest[1]) > 0


def remaining_masses(N, Y, left):
    """N without the rows ``left`` (..., t, m) of the targets Y, and which columns have others, (..., m)."""
    xp = namespace(N)
    present = xp.count_nonzero(Y, axis=0) > xp.count_nonzero(left, axis=-2)
    return xp.where(present[..., None], N - xp.matrix_transpose(left) @ left, 0.0), present


def moments_of(model, groups=ALL_COLUMNS):
    """N and U of a model from its coefficients."""
    return Moments(groups.mass_matrix(model), model.problem.alpha * groups.products(model.Y, model.A))


def finished(model, groups, moments):
    """The class matrices with C and V where these are needed: with confounds, and where all axes are weak."""
    problem = model.problem
    if problem.n_confounds:
        g, theta, _ = model.confound_fit
        return moments._replace(C=groups.products(g, theta))
    weak = moments.weak(problem.intercept)
    if problem.more_columns or not problem.xp.any(weak):
        return moments
    H = model.functional_sums(problem.residual_of_Q(model.rows, model.Y)[0]).T
    return moments.with_sums(weak, groups.products(H, model.A), groups.sizes(H, model.A))


def nearly_gone(part, full, present):
    """Whether a training part keeps next to nothing of a class, or of what is unexplained of it, (...,).

    ``part`` and ``full`` are the class matrices of the training part and of all rows; ``present`` (..., m) says which
    classes have rows in the training part.
    """
    verbs, xp = kind_of(full.U)
    rest, rest_before, mass, mass_before = (verbs.diagonal(A) for A in (part.U, full.U, part.N, full.N))
    noise = 1e3 * eps(rest) * mass_before  # all that is left of U where one class is all there is
    little_unexplained = little_kept(rest, xp.where(rest_before > noise, rest_before, 0.0))
    return xp.any((little_kept(mass, mass_before) | little_unexplained) & present, axis=-1)
