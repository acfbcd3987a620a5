"""The verbs on dense matrices, for arrays of NumPy.

Another kind of arrays has another file with the same verbs (``linalg.torch``). A verb that ends in an underscore works
inside the memory of its first argument: a fit holds one n x n array from the kernel matrix to the inverse of its
factor. Large matrices go through SciPy's BLAS only: the wheels of NumPy and SciPy carry separate copies of OpenBLAS,
whose thread pools disturb each other when calls alternate.

Matrices of more than ``LARGE`` rows go panel by panel (``linalg.panels``): one call for all of them may crash.
LAPACK and BLAS refuse arrays without entries, and some builds print that on the terminal: verbs answer in their place.

Cost: Cholesky n^3/3 flops, inverse of the factor n^3/3 more, eigenvectors about 9 n^3.
"""

from contextlib import nullcontext

import numpy as np
from scipy import linalg
from scipy.linalg import get_blas_funcs, get_lapack_funcs, solve_triangular
from scipy.spatial.distance import cdist
from scipy.special import xlogy

from foldless._engine.linalg import memory, panels
from foldless._engine.linalg.errors import LinAlgError, NotPositiveDefiniteError
from foldless._engine.linalg.threads import one_thread, two_threads_where_idle

# fmt: off
__all__ = [  # noqa: RUF022
    # triangles
    "cholesky_", "invert_lower_", "lower_solve", "upper_solve", "right_solve", "cholesky_solve", "lower_times",
    "lower_times_",
    # products
    "product", "gram", "dots", "outer_square", "lower_square", "symmetric_times", "add_outer_", "add_square_",
    "mirror_", "add_signed_", "norm",
    # decompositions and general systems; eigh, eigenvalues, solve and inverse take leading batch axes, solve_definite 1
    "orthonormal", "thin_qr", "eigh_", "eigh", "eigenvalues", "svd",
    "solve", "solve_definite", "inverse", "lu_factor", "lu_solve",
    # entries; places are row numbers, slices or masks of NumPy for any kind of arrays
    "add_diagonal_", "diagonal", "divide", "largest", "put", "scale_", "set_diagonal_", "smallest", "take",
    "take_along", "take_block", "take_blocks",
    # entries of kernel matrices
    "exp_", "inner", "manhattan", "minimum_", "power_", "squared_distances", "times_log",
    # arrays
    "column_major", "concat", "copy", "double", "eye", "free_memory", "like", "ones", "row_major", "to_host", "zeros",
]
# fmt: on

solve, inverse, norm, thin_qr, eigh = np.linalg.solve, np.linalg.inv, np.linalg.norm, np.linalg.qr, np.linalg.eigh
row_major, column_major = np.ascontiguousarray, np.asfortranarray  # other kinds of arrays need no order

LARGE = 8192  # rows from which on triangles and squares are computed in panels
TALL = 4  # times the rows of a triangle, from which on a matrix beside it is multiplied by its inverse
LEAST_HALVED, HALVED = 64, 2048  # rows between which a triangle is inverted by halves; blocks of it are copied
STACKED = 20  # rows up to which a stack of systems is sooner solved in one call than by the cheaper factors, one by one
FEW = 8  # columns up to which OpenBLAS multiplies a symmetric matrix sooner one by one
# rows of eigenproblems and of triangles from which on two threads pay, on idle processors
THREADED_EIGENPROBLEM, THREADED_TRIANGLE = 350, 500
ABOVE = np.triu(np.ones((64, 64), bool), 1)  # entries above the diagonal of a block


def cholesky_(M):
    """Lower factor L of the symmetric M = L L', in the memory of M (C-ordered in, Fortran-ordered out)."""
    if not M.size:
        return M
    M = M.T  # M is symmetric: its transpose is a Fortran view
    if len(M) > LARGE:
        L, info = panels.cholesky_(M)
    else:
        (potrf,) = get_lapack_funcs(("potrf",), (M,))
        small = len(M) <= len(ABOVE)
        with two_threads_where_idle(len(M), THREADED_TRIANGLE):
            L, info = potrf(M, lower=1, overwrite_a=1, clean=int(small))
        if not small:
            _clear_above_(L)
    if info != 0:
        raise NotPositiveDefiniteError(f"leading minor {info} is not positive")
    return L


def _clear_above_(L):
    """Zeros above the diagonal; LAPACK's wrapper sets them entry by entry, a tenth of the time of a large factor."""
    for start in range(0, len(L), len(ABOVE)):
        block = L[:, start : start + len(ABOVE)]
        block[:start] = 0.0
        corner = block[start : start + len(ABOVE)]
        np.copyto(corner, 0.0, where=ABOVE[: len(corner), : len(corner)])


def invert_lower_(L):
    """L^-1 in the memory of L."""
    if not L.size:
        return L
    if not L.diagonal().all():
        raise NotPositiveDefiniteError(f"zero pivot {np.flatnonzero(L.diagonal() == 0)[0] + 1}")
    if len(L) > LARGE:
        return panels.invert_lower_(L)
    if len(L) <= HALVED:
        with two_threads_where_idle(len(L), THREADED_TRIANGLE):
            return _invert_halves_(L, *get_lapack_funcs(("trtri",), (L,)), *get_blas_funcs(("trmm",), (L,)))
    (trtri,) = get_lapack_funcs(("trtri",), (L,))
    return trtri(L, lower=1, overwrite_c=1)[0]


def _invert_halves_(L, trtri, trmm):
    """L^-1 in the memory of L: [J, 0; -K B J, K] of L = [J^-1, 0; B, K^-1], up to twice as fast as LAPACK."""
    if len(L) <= LEAST_HALVED:
        L[:] = trtri(L, lower=1)[0]
        return L
    half = len(L) // 2
    J, K = (_invert_halves_(L[part, part], trtri, trmm) for part in (slice(half), slice(half, None)))
    B = trmm(-1.0, K, L[half:, :half], lower=1)
    L[half:, :half] = trmm(1.0, J, B, side=1, lower=1, overwrite_b=1)
    return L


def lower_solve(L, Y, *, transpose=False):
    """L^-1 Y, or L'^-1 Y with ``transpose``."""
    if not (L.size and Y.size):
        return Y
    (trtrs,) = get_lapack_funcs(("trtrs",), (L, Y))
    return trtrs(L, Y, lower=1, trans=int(transpose))[0]


def upper_solve(R, B, *, lower=False):
    """R^-1 B for the triangle of :func:`orthonormal`, or for its transpose with ``lower``."""
    return solve_triangular(R, B, lower=lower, check_finite=False) if len(R) else B


def cholesky_solve(L, B):
    """(L L')^-1 B."""
    if not (L.size and B.size):
        return B
    (trtrs,) = get_lapack_funcs(("trtrs",), (L, B))
    return trtrs(L, trtrs(L, B, lower=1)[0], lower=1, trans=1)[0]


def solve_definite(stack, B):
    """Solutions (k, n, m) of positive definite systems (k, n, n); any that rounding has made indefinite by pivots."""
    if stack.shape[-1] <= STACKED:
        return solve(stack, B)
    (posv,) = get_lapack_funcs(("posv",), (stack, B))
    X = np.empty(B.shape, posv.dtype)
    for k, M in enumerate(stack):
        _, X[k], info = posv(M.T, B[k], lower=1)  # M is symmetric: its transpose is a Fortran view
        if info != 0:
            X[k] = solve(M, B[k])
    return X


def lower_times(L, Y, *, transpose=False):
    """L Y, or L' Y with ``transpose``."""
    if not (L.size and Y.size):
        return Y
    (trmm,) = get_blas_funcs(("trmm",), (L, Y))
    return trmm(1.0, L, Y, lower=1, trans_a=int(transpose))


def lower_times_(Y, L):
    """L Y in the memory of a Fortran-ordered Y."""
    if not (Y.size and L.size):
        return Y
    (trmm,) = get_blas_funcs(("trmm",), (L, Y))
    return trmm(1.0, L, Y, lower=1, overwrite_b=1)


def right_solve(B, L):
    """B L'^-1: for a Fortran-ordered B, whose columns are many and long, nothing is rearranged."""
    if not (B.size and L.size):
        return B
    if len(B) >= TALL * len(L):  # a product with L^-1 is quicker than solves of so many rows
        (trmm,) = get_blas_funcs(("trmm",), (L, B))
        return trmm(1.0, invert_lower_(L.copy(order="F")), B, side=1, lower=1, trans_a=1)
    (trsm,) = get_blas_funcs(("trsm",), (L, B))
    return trsm(1.0, L, B, side=1, lower=1, trans_a=1)


def lower_square(L):
    """L' L for a lower triangle L, C-ordered, n^3/3 flops."""
    if not L.size:
        return L
    if len(L) > LARGE:
        return mirror_(panels.lower_square(L)).T
    (lauum,) = get_lapack_funcs(("lauum",), (L,))
    with two_threads_where_idle(len(L), THREADED_TRIANGLE):
        square = lauum(L, lower=1)[0]
    return mirror_(square).T


def outer_square(V):
    """V V', C-ordered, half the flops of a product."""
    if 0 in V.shape:
        return V @ V.T
    if len(V) > LARGE:
        return mirror_(panels.add_square_(np.zeros((len(V), len(V)), V.dtype, order="F"), V)).T
    (syrk,) = get_blas_funcs(("syrk",), (V,))
    a, trans = (V, 0) if V.flags.f_contiguous else (V.T, 1)
    return mirror_(syrk(1.0, a, trans=trans, lower=1)).T


def add_square_(S, V):
    """S + V V' in the lower triangle of a C-ordered S; what lies above it means nothing until :func:`mirror_`."""
    if not (S.size and V.size):
        return S
    if len(V) > LARGE:
        return panels.add_square_(S, V)
    (syrk,) = get_blas_funcs(("syrk",), (S, V))
    a, trans = (V, 0) if V.flags.f_contiguous else (V.T, 1)
    return syrk(1.0, a, beta=1.0, c=S.T, trans=trans, overwrite_c=1).T


def mirror_(S):
    """The symmetric matrix of which the lower triangle is given, in its memory."""
    for start in range(0, len(S), len(ABOVE)):
        stop = start + len(ABOVE)
        corner = S[start:stop, start:stop]
        np.copyto(corner, corner.T.copy(), where=ABOVE[: len(corner), : len(corner)])
        S[start:stop, stop:] = S[stop:, start:stop].T
    return S


def add_outer_(S, Q, R, tau):
    """S + tau Q R' in the memory of S; S is C-ordered, and both it and Q R' are symmetric."""
    if not (S.size and Q.size and R.size):
        return S
    (gemm,) = get_blas_funcs(("gemm",), (S, Q))
    return gemm(tau, Q, R, trans_b=1, beta=1.0, c=S.T, overwrite_c=1).T


def symmetric_times(T, Y, *, lower):
    """T Y for the symmetric T of which one triangle is given, Fortran-ordered like Y: half of T is read."""
    if not (T.size and Y.size):
        return Y
    if Y.shape[1] > FEW:
        (symm,) = get_blas_funcs(("symm",), (T, Y))
        return symm(1.0, T, Y, lower=int(lower))
    (symv,) = get_blas_funcs(("symv",), (T, Y))
    columns = [symv(1.0, T, y, lower=int(lower)) for y in Y.T]
    return columns[0][:, None] if len(columns) == 1 else np.array(columns, Y.dtype).reshape(-1, len(Y)).T


def add_signed_(T, V, sign):
    """T + sign V V' in the lower triangle of the Fortran-ordered T."""
    if not (T.size and V.size):
        return T
    if len(T) > LARGE and V.shape[1] > 1:
        return panels.add_square_(T, V, sign)
    syr, syrk = get_blas_funcs(("syr", "syrk"), (T, V))
    if V.shape[1] == 1:
        return syr(sign, V[:, 0], a=T, lower=1, overwrite_a=1)
    return syrk(sign, np.asfortranarray(V), beta=1.0, c=T, lower=1, overwrite_c=1)


def product(A, B, *, transpose_a=False):
    """A B, or A' B, by SciPy's matrix product."""
    if 0 in (*A.shape, *B.shape):
        return (A.T if transpose_a else A) @ B
    (gemm,) = get_blas_funcs(("gemm",), (A, B))
    # A C-ordered operand is passed as the transpose of its Fortran view: no copy is made.
    a, ta = (A, transpose_a) if A.flags.f_contiguous else (A.T, not transpose_a)
    b, tb = (B, False) if B.flags.f_contiguous else (B.T, True)
    return gemm(1.0, a, b, trans_a=int(ta), trans_b=int(tb))


def gram(Phi):
    """Phi Phi', the inner products of the rows, full and C-ordered."""
    return product(Phi, Phi.T)


def dots(A, B, *, axis=-1):
    """Inner products of the rows of A with those of B (``axis=-1``), or of their columns (``axis=0``)."""
    return np.einsum("ij,ij->i" if axis else "ij,ij->j", A, B)


def lu_factor(M):
    """Factors of a regular M for :func:`lu_solve`."""
    if M.size == 0:
        return M, np.empty(0, np.int32)
    (getrf,) = get_lapack_funcs(("getrf",), (M,))
    lu, pivots, info = getrf(M)
    if info != 0:
        raise LinAlgError("singular matrix")
    return lu, pivots


def lu_solve(factors, B):
    """M^-1 B from the factors of M."""
    if not B.size:
        return B
    (getrs,) = get_lapack_funcs(("getrs",), (factors[0], B))
    return getrs(*factors, B)[0]


def eigh_(S):
    """(eigenvalues in ascending order, eigenvectors) of a symmetric S, which is overwritten."""
    if len(S) < 2:  # refused by SciPy before 1.13
        return S.diagonal().copy(), np.ones_like(S)
    with _safely(len(S)), two_threads_where_idle(len(S), THREADED_EIGENPROBLEM):
        columns = S.T if S.flags.c_contiguous else S  # LAPACK wants columns; S is symmetric, and no copy is made
        return linalg.eigh(columns, driver="evd", overwrite_a=True, check_finite=False)


def eigenvalues(S):
    """Eigenvalues of a symmetric S in ascending order; leading axes are a batch of small matrices."""
    with _safely(S.shape[-1]):
        return linalg.eigvalsh(S) if S.ndim == 2 and S.size else np.linalg.eigvalsh(S)


def _safely(n_rows):
    """One thread for the decompositions of large matrices, whose inner products cannot be had in panels."""
    return one_thread() if n_rows > LARGE else nullcontext()


def svd(Phi, *, overwrite=False):
    """The thin decomposition Phi = U diag(sigma) V', as (U, sigma, V')."""
    if 0 in Phi.shape:  # refused by old versions of SciPy
        n, r = Phi.shape
        return np.empty((n, 0), Phi.dtype), np.empty(0, Phi.dtype), np.empty((0, r), Phi.dtype)
    return linalg.svd(Phi, full_matrices=False, overwrite_a=overwrite, check_finite=False)


def orthonormal(Q) -> tuple[np.ndarray, np.ndarray]:
    """Q = Qo R with orthonormal columns Qo, whose rows are as accurate as they are large.

    Reflections would leave errors of the size eps in every row, and the rows of tiny weights are smaller than that:
    Qo is Q R^-1 instead, twice, as the first division leaves its columns not quite orthogonal.
    """
    if Q.shape[1] == 1 and len(Q):
        R = np.linalg.norm(Q, axis=0, keepdims=True)
        return Q / R, R
    R = np.eye(Q.shape[1], dtype=Q.dtype)
    for _ in range(min(2, Q.shape[1])):
        step = np.asarray(np.linalg.qr(Q, mode="r"))
        step *= np.where(step.diagonal() < 0, -1.0, 1.0).astype(Q.dtype)[:, None]
        if not step.diagonal().all() or len(Q) < Q.shape[1]:  # dependent columns
            return linalg.qr(Q, mode="economic", check_finite=False)
        Q = upper_solve(step.T, Q.T, lower=True).T
        R = step @ R
    return np.ascontiguousarray(Q), R


def add_diagonal_(M, value):
    """M + value I in the memory of M; ``value`` is a number, or one for each row."""
    M.flat[:: len(M) + 1] += value
    return M


def scale_(M, rows, columns):
    """diag(rows) M diag(columns) in the memory of M."""
    M *= rows[:, None]
    M *= columns
    return M


def divide(A, B, otherwise=0.0):
    """A / B, entry by entry, and ``otherwise`` where B is not positive."""
    positive = B > 0
    return np.where(positive, A / np.where(positive, B, 1.0), otherwise)


def set_diagonal_(M, value):
    """M with this number on its diagonal, in the memory of M."""
    np.fill_diagonal(M, value)
    return M


def diagonal(A):
    """The diagonal of the last two axes; it may be a view."""
    return A.diagonal(axis1=-2, axis2=-1)


def largest(A, axis=None):
    """The largest entry, 0 if none is larger, for arrays without entries too."""
    return A.max(axis, initial=0.0)


def smallest(A, axis=None):
    """The smallest entry, 0 if none is smaller, for arrays without entries too."""
    return A.min(axis, initial=0.0)


def take(A, places, axis=0):
    """The entries of A at these places along an axis."""
    if axis == 0:
        return A[places]
    return A[:, places] if axis == 1 else A[(slice(None),) * (axis % A.ndim) + (places,)]


def take_along(A, places, axis):
    """The entries of A at these places along an axis, others for each entry of the other axes."""
    return np.take_along_axis(A, places, axis)


def take_block(A, rows, columns):
    """A[rows, columns] of all pairs of these rows and columns."""
    return A[rows[:, None], columns]


def take_blocks(A, rows):
    """The blocks A[rows_i, rows_i] for each row_i of ``rows`` (k, t), (k, t, t)."""
    return A[rows[:, :, None], rows[:, None, :]]


def put(A, places, values):
    """A with these values at these places, an index of A. A is no longer used: its memory may be that of the result."""
    A[places] = values
    return A


def exp_(K):
    """exp(K) in the memory of K."""
    return np.exp(K, out=K)


def power_(K, exponent):
    """K^exponent, entry by entry, in the memory of K."""
    return np.power(K, exponent, out=K)


def minimum_(K, value):
    """The smaller of each entry and a number, in the memory of K."""
    return np.minimum(K, value, out=K)


def times_log(K):
    """K log K, entry by entry; 0 where K is 0."""
    return xlogy(K, K)


def inner(A, B):
    """The sum of A times B over all entries."""
    return np.vdot(A, B)


def squared_distances(X, Z, factors=None):
    """Squared distances between the rows of X and Z, of each column times its factor, summed directly."""
    options = {} if factors is None else {"w": factors}
    return cdist(X, Z, "sqeuclidean", **options).astype(X.dtype, copy=False)


def manhattan(X, Z):
    """Sums of absolute differences between the rows of X and Z."""
    return cdist(X, Z, "cityblock").astype(X.dtype, copy=False)


def zeros(A, shape):
    """Zeros of the kind and precision of A."""
    return np.zeros(shape, A.dtype)


def ones(A, shape):
    """Ones of the kind and precision of A."""
    return np.ones(shape, A.dtype)


def eye(A, n):
    """The identity (n, n) of the kind and precision of A."""
    return np.eye(n, dtype=A.dtype)


def copy(A):
    """A new array with the values of A, in the same order in memory."""
    return A.copy(order="K")


def double(A):
    """The values of A in double precision; A itself if they are."""
    return A.astype(np.float64, copy=False)


def concat(arrays, axis=0):
    """Arrays one after the other along an axis."""
    return np.concatenate(arrays, axis)


def like(A, values):
    """Values as an array of the kind of A, with its precision."""
    return np.asarray(values, A.dtype)


def to_host(A):
    """A as an array of NumPy."""
    return A


def free_memory(A):
    """Bytes that can be allocated where A lies, or None where the system does not tell."""
    return memory.available_memory()
