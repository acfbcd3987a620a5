"""P of samples that come and go: an explicit inverse under bordering and Schur complements.

P, G and Omega = (Q' M^-1 Q)^-1 are blocks of one symmetric matrix, the inverse of the bordered system Z:

    H = Z^-1 = [ M  Q ; Q'  0 ]^-1 = [ P  G' ; G  -Omega ]

Learning t samples borders Z by b = [m; q'] (their columns of M and of Q') and the corner mu:

    u = H b = [c; d],   s = mu - b' u,   H <- [ H + u s^-1 u',  -u s^-1 ; -s^-1 u',  s^-1 ] = H + v D v',
    v = [u; -I] R'  for  s^-1 = R' D R:  R = L^-1 and D = I by the Cholesky factor of s, or its eigenvectors where M is
    indefinite.

Forgetting samples te is the Schur complement H <- H - h h_te,te^-1 h' with h = H[:, te]; their rows are zero then. Both
are symmetric updates of low rank in place: half of a matrix is read for each product, half of one read and written for
the update. (Kim, Drake & Park, section 4, reach O(n^2) by QR updating.)

**Rounding.** H carries errors of the size eps |H|, which a small s would amplify. Z is therefore kept as well, and what
an update is made of is put back into the equations: with r = b - Z u, one step of refinement gives u + H r and

    s = mu - b' u - r' u       (the error of u enters squared)

``drift`` is the largest relative residual |b - Z u| / |b| met since the factorisation, before refinement.

Well-conditioned systems do without refinement: H then stays the exact inverse of a slightly wrong Z, errors grow
slowly, and only every eighth update is put to the test. (Refining some updates and not others would be worse than
either: it tears H and the wrong Z apart.)

``Growing`` shows the slots of a ``Square``, which holds Z and H, in the order of the samples.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import LinAlgError, eigh

from foldless._array import NotPositiveDefiniteError, add_signed_, cholesky_, lower_solve, require_memory
from foldless.precision._base import Explicit, Precision, SingularBlockError
from foldless.precision._square import Square, room


class StaleError(RuntimeError):
    """The matrix behind a :class:`Growing` has been updated since: it shows samples that are gone."""


class Growing(Precision):
    """P, or J of rows and basis functions, whose sites come and go."""

    def __init__(self, square, slots, alpha, *, definite=True):
        self._held, self._slots, self.alpha, self.definite = square, slots, alpha, definite
        self.version, self.n = square.version, len(slots)
        self.choice = f"growing: explicit P of {self.n} rows, updated as rows come and go"

    @classmethod
    def of(cls, P: Explicit, Omega, M, Q, *, entry, refines):
        """The same P, ready to grow, with the M and Q it comes from.

        ``entry`` is the mean size of entries of K; ``refines`` says whether updates are refined.
        """
        q, n = P.G.shape
        square = Square(q + n + room(n), P.P.dtype, q, entry, refines)
        slots = np.arange(q, q + n)
        square.H[:q, :q] = -np.tril(Omega)
        square.H[slots, :q] = P.G.T
        square.Z[:q, slots] = Q.T
        for j, slot in enumerate(slots):  # column by column: the triangles share their array
            square.H[slot : q + n, slot] = P.P[j, j:]
            square.Z[q : slot + 1, slot] = M[j, : j + 1]
        del square.free[: q + n]
        square.peak[slots] = np.abs(P.P.diagonal())
        return cls(square, slots, P.alpha, definite=P.definite)

    @property
    def current(self):
        """Whether the matrix is still the one of these sites."""
        return self.version == self._held.version

    @property
    def _square(self):
        if not self.current:
            raise StaleError("P has learnt or forgotten samples since")
        return self._held

    @property
    def drift(self):
        """Largest relative residual met in updates since the factorisation."""
        return self._held.drift

    @property
    def entry(self):
        """Mean size of the entries of K."""
        return self._held.entry

    @property
    def refines(self):
        """Whether updates are refined."""
        return self._held.refines

    def shrinkage(self):
        """Largest ratio of what a P_ii has been since the factorisation to what it is now.

        Errors are of the size that P had: forgetting a row whose twin stays can leave little else of P_ii.
        """
        size, peak = np.abs(self.diagonal()), self._square.peak
        peak[self._slots] = np.maximum(peak[self._slots], size)
        return float((peak[self._slots] / np.maximum(size, np.finfo(size.dtype).tiny)).max(initial=1.0))

    def at_sites(self, rows):
        """The same matrix for some of its sites."""
        return self._now(self._slots[rows])

    def _now(self, slots):
        """The square as it is now, at these slots."""
        return Growing(self._held, slots, self.alpha, definite=self.definite)

    # -- the verbs of P --------------------------------------------------------------------------------------------

    @cached_property
    def G(self):
        """(q, n): B = G Y are the coefficients of the unpenalised columns."""
        return np.ascontiguousarray(self._square.H[self._slots, : self._held.q].T)

    def _scattered(self, Y, head=None):
        """Y at its slots, and ``head`` at those of the unpenalised columns."""
        full = np.zeros((len(self._square), Y.shape[1]), Y.dtype, order="F")
        full[self._slots] = Y
        if head is not None:
            full[: len(head)] = head
        return full

    def apply(self, Y):
        """P Y for Y of shape (n, m)."""
        return self._square.times_H(self._scattered(Y))[self._slots]

    @cached_property
    def _diagonal(self):
        return self._square.H.diagonal()[self._slots]

    def diagonal(self):
        """diag P, shape (n,)."""
        return self._diagonal

    def columns(self, rows):
        """P[:, rows]."""
        return self._square.columns_of_H(self._slots[rows])[self._slots]

    def block(self, rows):
        """P[rows, rows]."""
        return self._square.entries_of_H(self._slots[rows][:, None], self._slots[rows])

    def diagonal_blocks(self, rows):
        """P[rows_i, rows_i] for each row_i of ``rows`` (k, t), shape (k, t, t)."""
        slots = self._slots[rows]
        return self._square.entries_of_H(slots[:, :, None], slots[:, None, :])

    def explicit(self):
        """The same P as an n x n array."""
        require_memory((self.n, self.n), self._held.H.dtype, "the matrix P")
        return Explicit(self.block(np.arange(self.n)), self.G, self.alpha, definite=self.definite)

    def refined(self, A, B, Y):
        """A and B after a step of refinement towards the solution for targets Y of all sites; as they are without one.

        A small error of A can be a large one of the fits, in directions that K enlarges; a step removes those.
        """
        if not self.refines:
            return A, B
        x = self._scattered(A, B)
        x += self._square.times_H(self._scattered(Y) - self._square.times_Z(x))
        return x[self._slots], x[: len(B)]

    # -- samples come and go ---------------------------------------------------------------------------------------

    def border(self, m, q, corner):
        """The update that learns t sites with columns m (n, t) of M, rows q (t, columns) of Q, and this corner of M."""
        square = self._square
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
        return Border(self, b, corner, u, *_halved((s + s.T) / 2, self.definite, floor))

    def removal(self, rows):
        """The update that forgets these sites."""
        square, slots = self._square, self._slots[rows]
        h, unit = square.columns_of_H(slots), np.zeros((len(square), len(slots)), square.H.dtype, order="F")
        unit[slots, np.arange(len(slots))] = 1.0
        size, tiny = np.abs(square.Z.diagonal()[slots]), np.finfo(h.dtype).tiny
        h, _ = square.refined(unit, h)
        floor = 16 * np.finfo(h.dtype).eps * max(1.0 / max(size.max(), tiny), np.abs(h[slots].diagonal()).max())
        try:
            return Removal(self, rows, h, *_halved((h[slots] + h[slots].T) / 2, self.definite, floor))
        except LinAlgError:
            raise SingularBlockError.of(rows, self.n) from None


@dataclass(frozen=True)
class Border:
    """What is known about t new sites before they are learnt: b, mu, u and s^-1 = R' D R."""

    precision: Growing
    b: np.ndarray
    corner: np.ndarray
    u: np.ndarray
    R: np.ndarray
    signs: np.ndarray

    def solution(self, A, B, residual):
        """A of all sites, old ones first, and B, for new sites whose targets differ from their fits by ``residual``."""
        e = self.R.T @ (self.signs[:, None] * (self.R @ residual))
        return np.vstack([A - self.u[self.precision._slots] @ e, e]), B - self.u[: len(B)] @ e

    def learn(self, order=None):
        """P of all sites, old ones first unless ``order`` rearranges them; the old one can no longer be used."""
        square, t = self.precision._square, len(self.signs)
        slots = np.array(square.free[:t])
        v = np.asfortranarray(self.u @ self.R.T)
        v[slots] = -self.R.T
        square.version += 1
        add_signed_(square.H, v, self.signs)
        for column, slot in zip(self.b.T, slots, strict=True):
            square.Z[:slot, slot], square.Z[slot, slot:] = column[:slot], column[slot:]
        square.Z[np.minimum.outer(slots, slots), np.maximum.outer(slots, slots)] = self.corner
        del square.free[:t]
        slots = np.concatenate([self.precision._slots, slots])
        return self.precision._now(slots if order is None else slots[order])


@dataclass(frozen=True)
class Removal:
    """What is known about t sites before they are forgotten: h = H[:, te] and h_te,te^-1 = R' D R."""

    precision: Growing
    rows: np.ndarray
    h: np.ndarray
    R: np.ndarray
    signs: np.ndarray

    def solution(self, A, B):
        """A of the other sites, and B."""
        # By the block as it is, not made symmetric: what is cut off is then zero, and other rows keep their fits.
        E = np.linalg.solve(self.h[self.precision._slots[self.rows]], A[self.rows])
        return np.delete(A - self.h[self.precision._slots] @ E, self.rows, axis=0), B - self.h[: len(B)] @ E

    def forget(self):
        """P of the other sites; the old one can no longer be used."""
        square, slots = self.precision._square, self.precision._slots
        v = np.asfortranarray(self.h @ self.R.T)
        square.version += 1
        add_signed_(square.H, v, -self.signs)
        for slot in slots[self.rows]:
            square.wipe(slot)
        slots = np.delete(slots, self.rows)
        if len(square.free) > room(len(square)) + len(square) // 2:
            slots = square.compact(slots)
        return self.precision._now(slots)


def _halved(s, definite, floor):
    """R and D = diag(signs) with s^-1 = R' D R."""
    if len(s) == 1:
        value = s[0, 0]
        if not (value > floor if definite else abs(value) > floor):
            raise NotPositiveDefiniteError(f"Schur complement {value:.3g}")
        return 1.0 / np.sqrt(np.abs(s)), np.sign(s[0])
    if definite:
        L = cholesky_(np.array(s, order="C"))
        if L.diagonal().min() ** 2 <= floor:
            raise NotPositiveDefiniteError("Schur complement lost in rounding")
        return lower_solve(L, np.eye(len(s), dtype=s.dtype)), np.ones(len(s), s.dtype)
    e, U = eigh(s)
    if np.abs(e).min() <= max(floor, np.finfo(s.dtype).eps * np.abs(e).max()):
        raise NotPositiveDefiniteError("Schur complement lost in rounding")
    return U.T / np.sqrt(np.abs(e))[:, None], np.sign(e)
