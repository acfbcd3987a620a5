"""A symmetric matrix Z and its inverse H in the two triangles of one array, with slots that come and go.

Samples own slots, unpenalised columns the first ones. A forgotten sample's slot is wiped and used again; the array
grows and shrinks by copies that are rare enough to cost O(n) per sample. Products read one triangle, half the memory.
"""

import numpy as np

from foldless.linalg import NotPositiveDefiniteError, cholesky_, inverse, lower_solve, symmetric_times
from foldless.linalg.memory import require_memory

EVERY = 8  # how often an update is tested where none is refined
PROBED = 17  # how often H is where they are; odd, as rows often come and go in turn


def room(size):
    """Slots to spare: every one costs a pass over its zeros in each product, too few a copy too often."""
    return max(16, size // 32)


def _blank(size, dtype):
    require_memory((size, size + 1), dtype, "P, the matrix of the fit, with room to grow")
    return np.zeros((size, size + 1), dtype, order="F")


class Square:
    """H in the lower triangle of a (size, size + 1) array, Z in the upper one of its last ``size`` columns."""

    def __init__(self, size, dtype, n_columns, entry, refines):
        self.entry, self.refines = entry, refines
        self.q = n_columns
        self.version = 0
        self.drift = 0.0
        self.ill = False
        self.array, self.free = _blank(size, dtype), list(range(size))
        self.peak, self.error = np.zeros(size, dtype), np.zeros(size, dtype)  # of diagonal entries; of rows

    def __len__(self):
        return len(self.array)

    @property
    def H(self):
        return self.array[:, :-1]

    @property
    def Z(self):
        return self.array[:, 1:]

    def reserve(self, t):
        """Room for t slots more: the square grows by a part of its size, so that growth costs O(n) per sample."""
        if len(self.free) >= t:
            return
        size = len(self)
        more = max(room(size), t - len(self.free))
        grown = _blank(size + more, self.array.dtype)
        grown[:size, : size + 1] = self.array
        peak, error = (np.pad(each, (0, more)) for each in (self.peak, self.error))
        free = [*self.free, *range(size, size + more)]
        vars(self).update(array=grown, free=free, peak=peak, error=error)  # together: an interrupt finds all or none

    def compact(self, slots):
        """Only these slots and those of the unpenalised columns, in a smaller array; their new numbers."""
        kept = np.sort(np.concatenate([np.arange(self.q), slots]))
        old_H, old_Z, size = self.H, self.Z, len(kept)
        self.array = _blank(size + room(size), old_H.dtype)
        for new, slot in enumerate(kept):
            self.H[new:size, new] = old_H[kept[new:], slot]
            self.Z[: new + 1, new] = old_Z[kept[: new + 1], slot]
        self.free = list(range(size, len(self)))
        self.peak, self.error = (np.pad(each[kept], (0, len(self.free))) for each in (self.peak, self.error))
        return np.searchsorted(kept, slots)

    def wipe(self, slot):
        """Zeros in the place of a slot."""
        self.array[slot] = 0.0
        self.H[slot:, slot] = 0.0
        self.Z[: slot + 1, slot] = 0.0
        self.peak[slot] = self.error[slot] = 0.0
        self.free.append(slot)

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
        return np.asfortranarray(np.where(below, self.H[:, slots], self.H[slots].T))

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
        np.maximum(self.error, np.abs(wrong).max(1, initial=0.0), out=self.error)


def inverse_root(s, floor):
    """R with s^-1 = R' R."""
    if len(s) == 1:
        value = s[0, 0]
        if not value > floor:
            raise NotPositiveDefiniteError(f"Schur complement {value:.3g}")
        return 1.0 / np.sqrt(s)
    L = cholesky_(np.array(s, order="C"))
    if L.diagonal().min() ** 2 <= floor:
        raise NotPositiveDefiniteError("Schur complement lost in rounding")
    return lower_solve(L, np.eye(len(s), dtype=s.dtype))
