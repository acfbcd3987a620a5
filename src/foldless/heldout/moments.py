"""Class matrices of a training part: all that a discriminant asks of it besides fits.

For targets Y (n x m), weights W, fits F of the training part and A its coefficients:

    N = Y' W Y                                             masses of the classes
    U = alpha Y' A = N - Y' W F                            what the fits leave unexplained, without cancellation
    R = N - Y' W Q (Q' W Q)^-1 Q' W Y                      what the unpenalised columns leave unexplained
    V = Y' W F - Y' W Q_c B_c                              class sums of the fits without the confounds' part

R and V are needed only where Q holds confounds whose part is left out of the scores. With an intercept alone R is N
without its constant, which the readout knows, and V is N - U.

Where the kernel explains next to nothing of all classes, V = N - U has few digits. With three classes or more V is then
Y' W (g - mean) instead, from the kernel's part g of the fits, which differs by the constant alone.
"""

from typing import NamedTuple

import numpy as np

KEPT = 2.0**-10  # share of a class below which a difference would have lost more than three digits

SMALL = {8: 2.0**-21, 4: 2.0**-12}  # part of the targets below which a difference has few digits, by bytes of a number


class Moments(NamedTuple):
    """N, U and, where confounds are left out of the scores, R and V; each (..., m, m), leading axes are a batch.

    V alone is given where N - U has few digits.
    """

    N: np.ndarray
    U: np.ndarray
    R: np.ndarray | None = None
    V: np.ndarray | None = None

    @property
    def mass(self):
        """Masses of the classes, (..., m)."""
        return np.diagonal(self.N, axis1=-2, axis2=-1)

    @property
    def sums(self):
        """Class sums Y' W F of the fits that count, (..., m, m)."""
        return self.N - self.U if self.V is None else self.V

    def weak(self, intercept):
        """Whether all axes of several classes are weak: the sum of a2, a difference in U, has few digits, (...,)."""
        mass = self.mass
        here = mass > 0
        rest = np.diagonal(self.U, axis1=-2, axis2=-1) / np.where(here, mass, 1.0)
        a2 = np.where(here, 1.0 - rest, 0.0).sum(-1) - intercept
        return (a2 < SMALL[mass.dtype.itemsize]) & (mass.shape[-1] > 2)

    def with_sums(self, weak, V, size):
        """V put in where axes are weak, unless it rounds more than N - U does: it adds up terms of this size."""
        mass = self.mass
        limit = np.sqrt(mass[..., :, None] * mass[..., None, :])
        fine = ((size <= limit) | (limit == 0)).all((-1, -2))
        return self._replace(V=np.where((weak & fine)[..., None, None], V, self.sums))


def nearly_gone(part, whole, present):
    """Whether a training part keeps next to nothing of a class, or of what is unexplained of it, (...,).

    ``present`` (..., m) says which classes have rows there.
    """
    mass, mass_before = part.mass, whole.mass
    rest, rest_before = (np.diagonal(each.U, axis1=-2, axis2=-1) for each in (part, whole))
    noise = 1e3 * np.finfo(mass.dtype).eps * mass_before  # all that is left of U where one class is all there is
    little = (mass < KEPT * mass_before) | (rest < KEPT * np.where(rest_before > noise, rest_before, 0.0))
    return (little & present).any(-1)
