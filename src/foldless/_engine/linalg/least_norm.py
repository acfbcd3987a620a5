"""Solutions of least norm, for arrays of NumPy in double precision alone: updated QR factors, and singular values.

A = Q R with a square orthogonal Q, Fortran-ordered. Rows and columns come and go by rotations, O(n^2) flops each,
without loss of orthogonality.
"""

import numpy as np
from scipy import linalg
from scipy.linalg import get_lapack_funcs


def qr_(A):
    """The factors Q (square) and R of A, which is overwritten."""
    Q, R = linalg.qr(A, overwrite_a=True, check_finite=False)
    return Q, np.asfortranarray(R)


def append_rows(Q, R, V):
    """Factors of [Q R; V] for p new rows V.

    SciPy's insertion is quick for one row, but slower than a new factorisation for several; LAPACK's
    triangular-pentagonal QR takes p n^2 flops.
    """
    p, n = V.shape
    if p == 1:
        return linalg.qr_insert(Q, R, V, len(Q), which="row", check_finite=False)
    tpqrt, tpmqrt = get_lapack_funcs(("tpqrt", "tpmqrt"), (R,))
    triangle, reflectors, blocks, _ = tpqrt(0, min(32, n), R[:n], V)
    m = len(Q)
    Q = np.block([[Q, np.zeros((m, p))], [np.zeros((p, m)), np.eye(p)]])
    Q[:, :n], Q[:, m:], _ = tpmqrt(0, reflectors, blocks, Q[:, :n], Q[:, m:], side="R", trans="N")
    return Q, np.vstack([triangle, np.zeros((m - n + p, n))])


def insert_columns_(Q, R, columns, place):
    """Factors with these columns before the column ``place``."""
    return linalg.qr_insert(Q, R, columns, place, which="col", overwrite_qru=True, check_finite=False)


def delete(Q, R, start, count, which, *, overwrite=True):
    """Factors without ``count`` rows (``which="row"``) or columns ("col") from ``start`` on."""
    return linalg.qr_delete(Q, R, start, count, which=which, overwrite_qr=overwrite, check_finite=False)


def least_squares_(A, Y, cutoff):
    """The shortest X with the least |A X - Y|; singular values below ``cutoff`` of the largest count as zero."""
    return linalg.lstsq(A, Y, cond=cutoff, overwrite_a=True)[0]
