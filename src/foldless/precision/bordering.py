"""Rows that come and go, as updates of the inverse H of a bordered system Z = [M Q; Q' 0] (``precision.growing``).

Learning t samples borders Z by b = [m; q'] (their columns of M and of Q') and the corner mu:

    u = H b = [c; d],   s = mu - b' u,   H <- [ H + u s^-1 u',  -u s^-1 ; -s^-1 u',  s^-1 ] = H + v D v',
    v = [u; -I] R'  for  s^-1 = R' D R:  R = L^-1 and D = I by the Cholesky factor of s, or its eigenvectors where M is
    indefinite.

Forgetting samples te is the Schur complement H <- H - h h_te,te^-1 h' with h = H[:, te]; their rows are zero then. Both
are symmetric updates of low rank in place: half of a matrix is read for each product, half of one read and written for
the update. (Kim, Drake & Park, section 4, reach O(n^2) by QR updating.)
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from foldless.linalg.numpy import NotPositiveDefiniteError, add_signed_, cholesky_, eigh_, lower_solve, solve
from foldless.precision.square import room


@dataclass(frozen=True)
class Border:
    """What is known about t new sites before they are learnt: b, mu, u and s^-1 = R' D R."""

    precision: Any
    b: np.ndarray
    corner: np.ndarray
    u: np.ndarray
    R: np.ndarray
    signs: np.ndarray
    units: np.ndarray | None = None

    def solution(self, A, B, residual):
        """A of all sites, old ones first, and B, for new sites whose targets differ from their fits by ``residual``."""
        e = self.R.T @ (self.signs[:, None] * (self.R @ residual))
        return np.vstack([A - self.u[self.precision.slots] @ e, e]), B - self.u[: len(B)] @ e

    def learn(self, order=None):
        """P of all sites, old ones first unless ``order`` rearranges them; the old one can no longer be used."""
        square, t = self.precision.square, len(self.signs)
        slots = np.array(square.free[:t])
        v = np.asfortranarray(self.u @ self.R.T)
        v[slots] = -self.R.T
        square.version += 1
        add_signed_(square.H, v, self.signs)
        for column, slot in zip(self.b.T, slots, strict=True):
            square.Z[:slot, slot], square.Z[slot, slot:] = column[:slot], column[slot:]
        square.Z[np.minimum.outer(slots, slots), np.maximum.outer(slots, slots)] = self.corner
        del square.free[:t]
        slots, units = np.concatenate([self.precision.slots, slots]), self.precision.units
        units = None if units is None else np.concatenate([units, self.units])
        if order is not None:
            slots, units = slots[order], None if units is None else units[order]
        return self.precision.now(slots, units)


@dataclass(frozen=True)
class Removal:
    """What is known about t sites before they are forgotten: h = H[:, te] and h_te,te^-1 = R' D R."""

    precision: Any
    rows: np.ndarray
    h: np.ndarray
    R: np.ndarray
    signs: np.ndarray

    def solution(self, A, B):
        """A of the other sites, and B."""
        # By the block as it is, not made symmetric: what is cut off is then zero, and other rows keep their fits.
        E = solve(self.h[self.precision.slots[self.rows]], A[self.rows])
        return np.delete(A - self.h[self.precision.slots] @ E, self.rows, axis=0), B - self.h[: len(B)] @ E

    def forget(self):
        """P of the other sites; the old one can no longer be used."""
        square, slots = self.precision.square, self.precision.slots
        v = np.asfortranarray(self.h @ self.R.T)
        square.version += 1
        add_signed_(square.H, v, -self.signs)
        for slot in slots[self.rows]:
            square.wipe(slot)
        slots = np.delete(slots, self.rows)
        if len(square.free) > room(len(square)) + len(square) // 2:
            slots = square.compact(slots)
        units = self.precision.units
        return self.precision.now(slots, None if units is None else np.delete(units, self.rows))


def signed_root(s, definite, floor):
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
    e, U = eigh_(s)
    if np.abs(e).min() <= max(floor, np.finfo(s.dtype).eps * np.abs(e).max()):
        raise NotPositiveDefiniteError("Schur complement lost in rounding")
    return U.T / np.sqrt(np.abs(e))[:, None], np.sign(e)
