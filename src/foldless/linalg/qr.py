"""A QR factorisation that is updated as rows and columns come and go, and least squares by singular values.

A = Q R with a square orthogonal Q. Rows and columns are put in and taken out by rotations, without loss of
orthogonality, O(n^2) flops for each. All factors are Fortran-ordered.
"""

import numpy as np
from scipy.linalg import get_lapack_funcs, lstsq, qr, qr_delete, qr_insert, solve_triangular


def qr_(A):
    """The factors Q (square) and R of A, which is overwritten."""
    Q, R = qr(A, overwrite_a=True, check_finite=False)
    return Q, np.asfortranarray(R)


def append_rows(Q, R, V):
    """Factors of [Q R; V] for p new rows V.

    ``qr_insert`` is quick for one row, but slower than a new factorisation for several; LAPACK's triangular-pentagonal
    QR takes p n^2 flops.
    """
    p, n = V.shape
    if p == 1:
        return qr_insert(Q, R, V, len(Q), which="row", check_finite=False)
    tpqrt, tpmqrt = get_lapack_funcs(("tpqrt", "tpmqrt"), (R,))
    triangle, reflectors, blocks, _ = tpqrt(0, min(32, n), R[:n], V)
    m = len(Q)
    Q = np.block([[Q, np.zeros((m, p))], [np.zeros((p, m)), np.eye(p)]])
    Q[:, :n], Q[:, m:], _ = tpmqrt(0, reflectors, blocks, Q[:, :n], Q[:, m:], side="R", trans="N")
    return Q, np.vstack([triangle, np.zeros((m - n + p, n))])


def insert_columns_(Q, R, columns, place):
    """Factors with these columns before the column ``place``."""
    return qr_insert(Q, R, columns, place, which="col", overwrite_qru=True, check_finite=False)


def delete_columns(Q, R, start, count, *, overwrite):
    """Factors without ``count`` columns from ``start`` on."""
    return qr_delete(Q, R, start, count, which="col", overwrite_qr=overwrite, check_finite=False)


def delete_rows_(Q, R, start, count):
    """Factors without ``count`` rows from ``start`` on."""
    return qr_delete(Q, R, start, count, which="row", overwrite_qr=True, check_finite=False)


def transposed_solve(R, Y):
    """R'^-1 Y for an upper triangle R."""
    return solve_triangular(R, Y, trans="T", check_finite=False)


def invert_upper(R):
    """R^-1 for an upper triangle R without a zero on its diagonal."""
    (trtri,) = get_lapack_funcs(("trtri",), (R,))
    return trtri(R)[0]


def least_squares_(A, Y, cutoff):
    """The shortest X with the least |A X - Y|; singular values below ``cutoff`` of the largest count as zero."""
    return lstsq(A, Y, cond=cutoff, overwrite_a=True)[0]
