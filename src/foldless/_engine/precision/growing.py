"""P of samples that come and go: an explicit inverse under bordering and Schur complements.

P, G and Omega = (Q' M^-1 Q)^-1 are blocks of one symmetric matrix, the inverse of the bordered system Z:

    H = Z^-1 = [ M  Q ; Q'  0 ]^-1 = [ P  G' ; G  -Omega ]

Learning t samples borders Z by b = [m; q'] (their columns of M and of Q') and the corner mu:

    u = H b = [c; d],   s = mu - b' u,   H <- [ H + u s^-1 u',  -u s^-1 ; -s^-1 u',  s^-1 ] = H + v v',
    v = [u; -I] R'  for  s^-1 = R' R:  R = L^-1 by the Cholesky factor L of s.

Forgetting samples te is the Schur complement H <- H - h h_te,te^-1 h' with h = H[:, te]; their rows are zero then. Both
are symmetric updates of low rank in place: half of a matrix is read for each product, half of one read and written for
the update. (Kim, Drake & Park, section 4, reach O(n^2) by QR updating.)

**Rounding.** H carries errors of the size eps |H|, which a small s would amplify. Z is therefore kept as well, and what
an update is made of is put back into the equations: with r = b - Z u, one step of refinement gives u + H r and

    s = mu - b' u - r' u       (the error of u enters squared)

``drift`` is the largest relative residual |b - Z u| / |b| met since the factorisation, before refinement; or, where
nothing is refined, eps max(P_ii) / P_te,te of a removal, if that is larger. A refined u is not what H makes of b, and
H and Z are torn apart by the difference; ``error`` keeps watch over that.

Well-conditioned systems do without refinement: H then stays the exact inverse of a slightly wrong Z, errors grow
slowly, and only every eighth update is put to the test. (Refining some updates and not others would be worse than
either: it tears H and the wrong Z apart.)

``Growing`` shows the slots of a :class:`Square`, which holds Z and H, in the order of the samples. Samples own slots,
unpenalised columns the first ones. A forgotten sample's slot is wiped and used again; the array grows and shrinks by
copies that are rare enough to cost O(n) per sample. Products read one triangle, half the memory.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from foldless._engine.linalg import (
    LinAlgError,
    NotPositiveDefiniteError,
    add_signed_,
    cholesky_,
    column_major,
    inverse,
    lower_solve,
    norm,
    put,
    row_major,
    solve,
    symmetric_times,
)
from foldless._engine.precision import cost
from foldless._engine.precision.base import Explicit, Precision, SingularBlockError, omega_of

EVERY = 8  # how often an update is tested where none is refined
PROBED = 17  # how often H is where they are; odd, as rows often come and go in turn
STALE = "P, the matrix of the fit, has learnt or forgotten samples since"


class StaleError(RuntimeError):
    """The matrix behind a :class:`Growing` has been updated since: it shows samples that are gone."""


def room(size):
    """Slots to spare: every one costs a pass over its zeros in each product, too few a copy too often."""
    return max(16, size // 32)


def _blank(size, dtype):
    cost.require_square(size, dtype)
    return np.zeros((size, size + 1), dtype, order="F")


class Slots(NamedTuple):
    """The array of a :class:`Square` and what is known of its slots."""

    array: np.ndarray
    free: list
    peak: np.ndarray  # what a diagonal entry of H has been
    error: np.ndarray  # errors of rows of H that were met


class Square:
    """H in the lower triangle of a (size, size + 1) array, Z in the upper one of its last ``size`` columns.

    The array and the state of its slots are replaced together: an interrupt, or another thread, finds all or none.
    """

    def __init__(self, size, dtype, n_columns, entry, refines):
        self.entry = entry
        self.refines = refines
        self.q = n_columns
        self.version = 0
        self.drift = 0.0
        self.ill_conditioned = False
        self._slots = Slots(_blank(size, dtype), list(range(size)), np.zeros(size, dtype), np.zeros(size, dtype))

    def __len__(self):
        return len(self._slots.array)

    @property
    def array(self):
        """What H and Z lie in."""
        return self._slots.array

    @property
    def H(self):
        return self._slots.array[:, :-1]

    @property
    def Z(self):
        return self._slots.array[:, 1:]

    @property
    def free(self):
        """Slots without a sample, a list."""
        return self._slots.free

    @property
    def peak(self):
        """What each diagonal entry of H has been at most."""
        return self._slots.peak

    @property
    def error(self):
        """Errors of each row of H that were met."""
        return self._slots.error

    def reserve(self, t):
        """Room for t slots more: the square grows by a share of its size, so that growth costs O(n) per sample."""
        array, free, peak, error = self._slots
        if len(free) >= t:
            return
        size = len(array)
        more = max(room(size), t - len(free))
        grown = _blank(size + more, array.dtype)
        grown[:size, : size + 1] = array
        free = [*free, *range(size, size + more)]
        self._slots = Slots(grown, free, np.pad(peak, (0, more)), np.pad(error, (0, more)))

    def compact(self, slots):
        """Only these slots and those of the unpenalised columns, in a smaller array; their new numbers."""
        kept = np.sort(np.concatenate([np.arange(self.q), slots]))
        H, Z, size = self.H, self.Z, len(kept)
        array = _blank(size + room(size), H.dtype)
        for new, slot in enumerate(kept):
            array[new:size, new] = H[kept[new:], slot]
            array[: new + 1, new + 1] = Z[kept[: new + 1], slot]
        more = (0, len(array) - size)
        free = list(range(size, len(array)))
        self._slots = Slots(array, free, np.pad(self.peak[kept], more), np.pad(self.error[kept], more))
        return np.searchsorted(kept, slots)

    def wipe(self, slot):
        """Zeros in the place of a slot."""
        array, free, peak, error = self._slots
        array[slot] = 0.0
        self.H[slot:, slot] = 0.0
        self.Z[: slot + 1, slot] = 0.0
        peak[slot] = error[slot] = 0.0
        free.append(slot)

    def change_columns(self, T):
        """The matrices with Q T in the place of the unpenalised columns Q, for an invertible T (q, q)."""
        q, back, lower = self.q, inverse(T), np.tril_indices(self.q)
        corner = np.tril(self.H[:q, :q])
        corner = back @ (corner + np.tril(corner, -1).T) @ back.T
        self.H[:q, :q][lower] = corner[lower]
        self.H[q:, :q] = self.H[q:, :q] @ back.T
        self.Z[:q, q:] = T.T @ self.Z[:q, q:]

    def times_H(self, X):
        return symmetric_times(self.H, X, lower=True)

    def times_Z(self, X):
        return symmetric_times(self.Z, X, lower=False)

    def columns_of_H(self, slots):
        below = np.arange(len(self))[:, None] >= slots
        return column_major(np.where(below, self.H[:, slots], self.H[slots].T))

    def entries_of_H(self, i, j):
        return self.H[np.maximum(i, j), np.minimum(i, j)]

    def refined(self, b, u):
        """(u + H r, r' u) with the residual r = b - Z u, the size of which is noted; (u, 0) without refinement."""
        if not self.refines and self.version % EVERY:
            return u, 0.0
        r = b - self.times_Z(u)
        size = float(np.abs(r).max(initial=0.0) / np.abs(b).max(initial=np.finfo(b.dtype).tiny))
        self.drift = max(self.drift, size)
        if not self.refines:
            return u, 0.0
        return u + self.times_H(r), r.T @ u

    def note(self, wrong):
        """Remember errors of H, row by row, that columns of ``wrong`` show."""
        error = self._slots.error
        error[:] = np.maximum(error, np.abs(wrong).max(1, initial=0.0))


def inverse_root(s, floor):
    """R with s^-1 = R' R."""
    if len(s) == 1:
        value = s[0, 0]
        if not value > floor:
            raise NotPositiveDefiniteError(f"Schur complement {value:.3g}")
        return 1.0 / np.sqrt(s)
    L = cholesky_(s.copy())
    if L.diagonal().min() ** 2 <= floor:
        raise NotPositiveDefiniteError("Schur complement lost in rounding")
    return lower_solve(L, np.eye(len(s), dtype=s.dtype))


class Growing(Precision):
    """P of rows that come and go."""

    grows = True

    def __init__(self, square, slots, alpha):
        self._held, self.slots = square, slots
        self.alpha = alpha
        self.version, self.n = square.version, len(slots)
        self.entry, self.refines = square.entry, square.refines
        self.choice = f"growing: P, the matrix of the fit, of {self.n} rows, updated as rows come and go"

    @classmethod
    def of(cls, P: Explicit, Omega, M, Q, *, entry, refines):
        """The same P, ready to grow, with the M and Q it comes from.

        Omega follows from M G' = Q Omega where it is None. ``entry`` is the mean size of entries of S; ``refines`` says
        whether updates are refined.
        """
        q, n = P.G.shape
        square = Square(q + n + room(n), P.P.dtype, q, entry, refines)
        slots = np.arange(q, q + n)
        square.H[slots, :q] = P.G.T
        if Omega is None:
            Omega = omega_of(M, Q, P.G)
        square.H[:q, :q] = -np.tril(Omega)
        square.Z[:q, slots] = Q.T
        for j, slot in enumerate(slots):  # column by column: the triangles share their array
            square.H[slot : q + n, slot] = P.P[j, j:]
            square.Z[q : slot + 1, slot] = M[j, : j + 1]
        del square.free[: q + n]
        square.peak[slots] = np.abs(square.H.diagonal()[slots])
        return cls(square, slots, P.alpha)

    @property
    def current(self):  # type: ignore[override]
        return self.version == self._held.version

    @property
    def square(self):
        """The matrix, while it is still the one of these rows."""
        return self._as_read(self._held)

    def _as_read(self, values):
        """These values of the matrix, unless another thread has begun to update it while they were read."""
        if not self.current:
            raise StaleError(STALE)
        return values

    @property
    def drift(self):  # type: ignore[override]
        return self._held.drift

    def shrinkage(self):
        """Largest ratio of what a P_ii has been since the factorisation to what it is now.

        Errors are of the size that P had: forgetting a row whose twin stays can leave little else of P_ii.
        """
        size, peak = np.abs(self.diagonal()), self.square.peak
        peak[self.slots] = np.maximum(peak[self.slots], size)
        return float((peak[self.slots] / np.maximum(size, np.finfo(size.dtype).tiny)).max(initial=1.0))

    def error(self):
        """Largest error of a P_ii relative to it: rounding of what it has been, and errors of its row that were met."""
        error, eps = self.square.error[self.slots], np.finfo(self._held.error.dtype).eps
        size = np.maximum(np.abs(self.diagonal()), np.finfo(error.dtype).tiny)
        return max(float((error / size).max(initial=0.0)), eps * self.shrinkage())

    def now(self, slots):
        """The square as it is now, at these slots."""
        return Growing(self._held, slots, self.alpha)

    # -- the verbs of P --------------------------------------------------------------------------------------------

    @cached_property
    def G(self):  # type: ignore[override]
        return self._as_read(row_major(self.square.H[self.slots, : self._held.q].T))

    @property
    def Omega(self):  # type: ignore[override]
        q = self._held.q
        corner = -np.tril(self.square.H[:q, :q])
        return corner + np.tril(corner, -1).T

    def _scattered(self, Y, head=None):
        """Y at its slots, and ``head`` at those of the unpenalised columns."""
        full = put(np.zeros((len(self.square), Y.shape[1]), Y.dtype, order="F"), self.slots, Y)
        return full if head is None else put(full, slice(len(head)), head)

    def apply(self, Y):
        values = self.square.times_H(self._scattered(Y))
        return self._as_read(values[self.slots])

    @cached_property
    def _diagonal(self):  # read once: its entries are far apart in memory
        return self._as_read(self.square.H.diagonal()[self.slots])

    def diagonal(self):
        return self._diagonal

    def columns(self, rows):
        return self._as_read(self.square.columns_of_H(self.slots[rows])[self.slots])

    def block(self, rows):
        slots = self.slots[rows]
        return self._as_read(self.square.entries_of_H(slots[:, None], slots))

    def diagonal_blocks(self, rows):
        slots = self.slots[rows]
        return self._as_read(self.square.entries_of_H(slots[:, :, None], slots[:, None, :]))

    def explicit(self):
        cost.require_explicit(self.n, self._held.H)
        return Explicit(self.block(np.arange(self.n)), self.G, self.alpha)

    def prepare_blocks(self):
        """Entries are at hand: nothing is copied."""
        return self

    def system_entries(self, i, j):
        """Entries of M at these pairs of rows."""
        i, j = self.slots[i], self.slots[j]
        return self.square.Z[np.minimum(i, j), np.maximum(i, j)]

    def residual_of(self, A, B, Y):
        """What a solution leaves of the targets Y of all rows, Y - Z x, at the rows and at the columns of Q."""
        r = self._scattered(Y) - self.square.times_Z(self._scattered(A, B))
        return r[self.slots], r[: len(B)]

    def solve(self, Y, head):
        """A and B for targets Y of all rows and right sides ``head`` of the columns of Q: H [head; Y]."""
        x = self.square.times_H(self._scattered(Y, head))
        return x[self.slots], x[: len(head)]

    def is_to_be_probed(self, ill_conditioned):
        """Whether H is: now and then, and always once the condition was bad."""
        square = self.square
        square.ill_conditioned = square.ill_conditioned or ill_conditioned
        return square.ill_conditioned or square.version % PROBED == 0

    def probe(self, A, B, Y):
        """Note by how much H y misses a solution that was refined: the errors of H in a direction of no smoothness."""
        wrong = self.square.times_H(self._scattered(Y)) - self._scattered(A, B)
        size = norm(Y, axis=0)
        self._held.note(wrong / np.maximum(size, np.finfo(size.dtype).tiny))

    # -- rows come and go ---------------------------------------------------------------------------------------

    def border(self, m, q, corner):
        """The update that learns t rows with columns m (n, t) of M, rows q (t, columns) of Q, and this corner of M."""
        square = self.square
        square.reserve(len(q))
        b = self._scattered(m, q.T)
        u = square.times_H(b)
        s, size = corner - b.T @ u, np.abs(corner.diagonal())
        u, more = square.refined(b, u)
        s = s - more
        if not np.isfinite(s).all():
            raise NotPositiveDefiniteError("Schur complement overflows")
        # What the subtraction leaves below its own rounding is no number.
        floor = 4 * np.finfo(s.dtype).eps * size.max()
        return Insertion(self, b, corner, u, inverse_root((s + s.T) / 2, floor))

    def removal(self, rows):
        """The update that forgets these rows."""
        square, slots = self.square, self.slots[rows]
        h, unit = square.columns_of_H(slots), np.zeros((len(square), len(slots)), square.H.dtype, order="F")
        unit = put(unit, (slots, np.arange(len(slots))), 1.0)
        size, tiny = np.abs(square.Z.diagonal()[slots]), np.finfo(h.dtype).tiny
        refined, _ = square.refined(unit, h)
        if self.refines:
            square.note(refined - h)
        h = refined
        floor = 16 * np.finfo(h.dtype).eps * max(1.0 / max(size.max(), tiny), np.abs(h[slots].diagonal()).max())
        try:
            R = inverse_root((h[slots] + h[slots].T) / 2, floor)
        except LinAlgError:
            raise SingularBlockError.of(rows, self.n) from None
        if not self.refines:  # rounding of P, of which a small pivot leaves little else
            rounding = np.finfo(h.dtype).eps * float(self.diagonal().max()) * float(np.square(R).sum())
            square.drift = max(square.drift, rounding)
        return Removal(self, rows, h, R)


@dataclass(eq=False)
class Insertion:
    """What is known about t new rows before they are learnt: b, mu, u and s^-1 = R' R."""

    precision: Growing
    b: np.ndarray
    corner: np.ndarray
    u: np.ndarray
    R: np.ndarray

    def solution(self, A, B, residual):
        """A of all rows, old ones first, and B, for new rows whose targets differ from their fits by ``residual``."""
        e = self.R.T @ (self.R @ residual)
        return np.vstack([A - self.u[self.precision.slots] @ e, e]), B - self.u[: len(B)] @ e

    def learn(self):
        """P of all rows, old ones first; the old one can no longer be used."""
        square, t = self.precision.square, len(self.R)
        slots = np.array(square.free[:t])
        v = column_major(self.u @ self.R.T)
        v[slots] = -self.R.T
        square.version += 1
        add_signed_(square.H, v, 1.0)
        self.b[slots] = self.corner
        for column, slot in zip(self.b.T, slots, strict=True):
            square.Z[:slot, slot], square.Z[slot, slot:] = column[:slot], column[slot:]
        del square.free[:t]
        return self.precision.now(np.concatenate([self.precision.slots, slots]))


@dataclass(eq=False)
class Removal:
    """What is known about t rows before they are forgotten: h = H[:, te] and h_te,te^-1 = R' R."""

    precision: Growing
    rows: np.ndarray
    h: np.ndarray
    R: np.ndarray

    @cached_property
    def kept(self):
        return np.delete(np.arange(self.precision.n), self.rows)

    def solution(self, A, B):
        """A of the other rows, and B."""
        # By the block as it is, not made symmetric: what is cut off is then zero, and other rows keep their fits.
        E = solve(self.h[self.precision.slots[self.rows]], A[self.rows])
        return (A - self.h[self.precision.slots] @ E)[self.kept], B - self.h[: len(B)] @ E

    def forget(self):
        """P of the other rows; the old one can no longer be used."""
        square, slots = self.precision.square, self.precision.slots
        v = column_major(self.h @ self.R.T)
        square.version += 1
        add_signed_(square.H, v, -1.0)
        for slot in slots[self.rows]:
            square.wipe(slot)
        slots = slots[self.kept]
        if len(square.free) > room(len(square)) + len(square) // 2:
            slots = square.compact(slots)
        return self.precision.now(slots)
