"""Triangles of large matrices, in place, panel by panel.

Threaded OpenBLAS crashes on some processors (Skylake-X kernels) when one call factorises or squares a matrix of about
15,000 rows (OpenMathLib/OpenBLAS 352, 1413, 2562). Here a call of LAPACK sees ``WIDTH`` rows at most, and nearly all
the work is matrix products. J is a panel, j are the rows before it, k those after it:

    cholesky_        C = M_:J - L_:j L_Jj',   L_JJ L_JJ' = C_JJ,   L_kJ = C_kJ L_JJ'^-1     from the first panel on
    invert_lower_    (L^-1)_kJ = -(L^-1)_kk L_kJ (L_JJ)^-1                                  from the last panel on
    lower_square     (L' L)_Jj = L_J:' L_:j,   beginning with the rows of J
    add_square_      S_Jj + factor V_J V_j'

n^3/3 flops for each of the first three. Beside the matrices n ``WIDTH`` numbers are held. NumPy's product reads panels
where they lie; SciPy's would copy them first. Only lower triangles are read.
"""

import numpy as np
from scipy.linalg import get_blas_funcs, get_lapack_funcs

WIDTH = 1024


def panels(start, stop, width=None):
    """Slices of ``width`` rows, ``WIDTH`` if it is None; the last is perhaps shorter."""
    width = width or WIDTH
    return [slice(first, min(first + width, stop)) for first in range(start, stop, width)]


def _fortran(A, B):
    """A B in the order of the matrices here."""
    return (B.T @ A.T).T


def cholesky_(M):
    """(the lower factor of the symmetric M in its memory, 0), or (M, the first minor that is not positive)."""
    (potrf,) = get_lapack_funcs(("potrf",), (M,))
    (trsm,) = get_blas_funcs(("trsm",), (M,))
    for J in panels(0, len(M)):
        M[J.start :, J] -= _fortran(M[J.start :, : J.start], M[J, : J.start].T)
        corner, info = potrf(M[J, J], lower=1, clean=1)
        if info:
            return M, J.start + info
        M[J, J] = corner
        M[J, J.stop :] = 0.0
        if J.stop < len(M):
            C = np.array(M[J.stop :, J], order="F")
            M[J.stop :, J] = trsm(1.0, corner, C, side=1, lower=1, trans_a=1, overwrite_b=1)
    return M, 0


def invert_lower_(L):
    """L^-1 in the memory of L, whose diagonal has no zero."""
    (trtri,) = get_lapack_funcs(("trtri",), (L,))
    for J in reversed(panels(0, len(L))):
        corner, _ = trtri(L[J, J], lower=1)
        right = _fortran(L[J.stop :, J], -corner)
        for k in panels(J.stop, len(L)):
            L[k, J] = _fortran(L[k, J.stop : k.stop], right[: k.stop - J.stop])
        L[J, J] = corner
    return L


def lower_square(L):
    """The lower triangle of L' L for a lower triangle L."""
    S = np.empty_like(L)
    for J in panels(0, len(L)):
        S[J, : J.stop] = _fortran(L[J.start :, J].T, L[J.start :, : J.stop])
    return S


def add_square_(S, V, factor=1.0):
    """S + factor V V' in the lower triangle of S."""
    for J in panels(0, len(V)):
        S[J, : J.stop] += _fortran(factor * V[J], V[: J.stop].T)
    return S
