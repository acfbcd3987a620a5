"""The verbs on dense matrices, for tensors of torch, on the processor and on a graphics card.

They do what those of ``linalg.numpy`` do. Large triangles are made and read in panels, in place: a fit holds one n x n
tensor from the kernel matrix to the inverse of its factor, and beside it n ``PANEL`` numbers. Nearly all of the work is
then matrix products. J is a panel, j are the rows before it, k those after it:

    cholesky_        C = M_kJ - L_kj L_Jj',   L_JJ L_JJ' = C_JJ,   L_kJ = C_kJ L_JJ'^-1     from the first panel on
    invert_lower_    (L^-1)_kJ = -(L^-1)_kk L_kJ (L_JJ)^-1                                  from the last panel on
    lower_square     (L' L)_Jj = L_J:' L_:j,   beginning with the rows of J

n^3/3 flops each. Row numbers and masks are arrays of NumPy, moved to the tensor. Functions that end in ``_ex`` report
a failure as a number, so that the device is waited for once.
"""

import array_api_compat.torch as functions  # noqa: F401
import numpy as np
import torch

from foldless._engine.linalg import memory
from foldless._engine.linalg.errors import LinAlgError, NotPositiveDefiniteError
from foldless._engine.linalg.panels import panels

PANEL = 4096  # rows of a panel
BATCH = 8192  # eigenproblems solved in one call: of some tens of thousands the solver of graphics cards fails


def _panels(n):
    return panels(0, n, PANEL)


def _places(A, places):
    """Row numbers, slices or masks of NumPy, or several of them, as A can be indexed by them."""
    if isinstance(places, tuple):
        return tuple(_places(A, part) for part in places)
    if isinstance(places, np.ndarray | list | range):
        return torch.from_numpy(np.array(places, order="C")).to(A.device)
    return places


# -- triangles ---------------------------------------------------------------------------------------------------------


def cholesky_(M):
    """Lower factor L of the symmetric M = L L', in the memory of M."""
    n, failures = len(M), []
    for J in _panels(n):
        if J.start:
            M[J.start :, J].addmm_(M[J.start :, : J.start], M[J, : J.start].T, alpha=-1)
        corner, info = torch.linalg.cholesky_ex(M[J, J])
        failures.append(torch.where(info > 0, info + J.start, 0))
        M[J, J] = corner
        M[J, J.stop :] = 0.0
        if J.stop < n:
            M[J.stop :, J] = torch.linalg.solve_triangular(corner.T, M[J.stop :, J], upper=True, left=False)
    minors = [minor for minor in torch.stack(failures).tolist() if minor] if failures else []
    if minors:
        raise NotPositiveDefiniteError(f"leading minor {minors[0]} is not positive")
    return M


def invert_lower_(L):
    """L^-1 in the memory of L."""
    zeros = torch.nonzero(L.diagonal() == 0)
    if len(zeros):
        raise NotPositiveDefiniteError(f"zero pivot {int(zeros[0, 0]) + 1}")
    for J in reversed(_panels(len(L))):
        identity = eye(L, J.stop - J.start)
        corner = torch.linalg.solve_triangular(L[J, J], identity, upper=False)
        right = -(L[J.stop :, J] @ corner)
        for k in panels(J.stop, len(L), PANEL):
            L[k, J] = L[k, J.stop : k.stop] @ right[: k.stop - J.stop]
        L[J, J] = corner
    return L


def lower_solve(L, Y, *, transpose=False):
    """L^-1 Y, or L'^-1 Y with ``transpose``."""
    X = copy(Y)
    for J in reversed(_panels(len(L))) if transpose else _panels(len(L)):
        if transpose and J.stop < len(L):
            X[J].addmm_(L[J.stop :, J].T, X[J.stop :], alpha=-1)
        elif not transpose and J.start:
            X[J].addmm_(L[J, : J.start], X[: J.start], alpha=-1)
        corner = L[J, J].T if transpose else L[J, J]
        X[J] = torch.linalg.solve_triangular(corner, X[J], upper=transpose)
    return X


def upper_solve(R, B, *, lower=False):
    """R^-1 B for the triangle of :func:`orthonormal`, or for its transpose with ``lower``."""
    return torch.linalg.solve_triangular(R, B, upper=not lower)


def cholesky_solve(L, B):
    """(L L')^-1 B."""
    return lower_solve(L, lower_solve(L, B), transpose=True)


def lower_times(L, Y, *, transpose=False):
    """L Y, or L' Y with ``transpose``."""
    return (L.T if transpose else L) @ Y


def lower_times_(Y, L):
    """L Y in the memory of Y."""
    return Y.copy_(L @ Y)


def right_solve(B, L):
    """B L'^-1."""
    return torch.linalg.solve_triangular(L.T, B, upper=True, left=False)


# -- products ----------------------------------------------------------------------------------------------------------


def product(A, B, *, transpose_a=False):
    """A B, or A' B."""
    return (A.T if transpose_a else A) @ B


def gram(Phi):
    """Phi Phi', the inner products of the rows."""
    return outer_square(Phi)


def dots(A, B, *, axis=-1):
    """Inner products of the rows of A with those of B (``axis=-1``), or of their columns (``axis=0``)."""
    if A.stride(0) < A.stride(1):  # its columns lie together in memory
        return dots(A.T, B.T, axis=-1 if axis == 0 else 0)
    if axis:
        return _joined([(A[rows] * B[rows]).sum(1) for rows in _panels(len(A))], A)
    total = zeros(A, A.shape[1])
    for rows in _panels(len(A)):
        total += (A[rows] * B[rows]).sum(0)
    return total


def _joined(parts, A):
    return torch.cat(parts) if parts else zeros(A, 0)


def outer_square(V):
    """V V', half the flops of a product where it is large."""
    if len(V) <= PANEL:
        return V @ V.T
    return mirror_(add_square_(V.new_empty((len(V), len(V))), V, beta=0.0))


def lower_square(L):
    """L' L for a lower triangle L, n^3/3 flops."""
    S = torch.empty_like(L)
    for J in _panels(len(L)):
        S[J, : J.stop] = L[J.start :, J].T @ L[J.start :, : J.stop]
    return mirror_(S)


def symmetric_times(T, Y, *, lower):
    """T Y for the symmetric T of which one triangle is given; half of T is read."""
    T = T if lower else T.T
    X = torch.zeros_like(Y)
    for J in _panels(len(T)):
        corner = T[J, J].tril()
        X[J] += T[J, : J.start] @ Y[: J.start] + corner @ Y[J] + corner.tril(-1).T @ Y[J]
        X[: J.start] += T[J, : J.start].T @ Y[J]
    return X


def add_outer_(S, Q, R, tau):
    """S + tau Q R' in the memory of S."""
    return S.addmm_(Q, R.T, alpha=tau)


def add_square_(S, V, factor=1.0, beta=1.0):
    """S + V V' in the lower triangle of S; what lies above it means nothing until :func:`mirror_`."""
    for J in _panels(len(V)):
        S[J, : J.stop].addmm_(V[J], V[: J.stop].T, alpha=factor, beta=beta)
    return S


def add_signed_(T, V, sign):
    """T + sign V V' in the lower triangle of T."""
    for J in _panels(len(V)):
        corner = T[J, J]
        upper = corner.triu(1)
        T[J, : J.stop].addmm_(V[J], V[: J.stop].T, alpha=sign)
        T[J, J] = corner.tril() + upper  # what lies above the diagonal stays
    return T


def mirror_(S):
    """The symmetric matrix of which the lower triangle is given, in its memory."""
    for J in _panels(len(S)):
        corner = S[J, J].tril()
        S[J, J] = corner + corner.tril(-1).T
        S[: J.start, J] = S[J, : J.start].T
    return S


def norm(A, axis=None, keepdims=False):
    """Euclidean norm of all entries, or along an axis."""
    return torch.linalg.vector_norm(A, dim=axis, keepdim=keepdims)


# -- decompositions and general systems --------------------------------------------------------------------------------


def _regular(result, info):
    """The result of a factorisation that has reported no failure."""
    if info.any():
        raise LinAlgError("singular matrix")
    return result


def lu_factor(M):
    """Factors of a regular M for :func:`lu_solve`."""
    LU, pivots, info = torch.linalg.lu_factor_ex(M)
    return _regular((LU, pivots), info)


def lu_solve(factors, B):
    """M^-1 B from the factors of M."""
    return torch.linalg.lu_solve(*factors, B)


def solve(M, B):
    """M^-1 B; leading axes are a batch."""
    return _regular(*torch.linalg.solve_ex(M, B)) if M.shape[-1] else B


def inverse(M):
    """M^-1; leading axes are a batch."""
    return _regular(*torch.linalg.inv_ex(M)) if M.shape[-1] else M


def solve_definite(stack, B):
    """Solutions (k, n, m) of positive definite systems (k, n, n); any that rounding has made indefinite by pivots."""
    L, info = torch.linalg.cholesky_ex(stack)
    failed = info > 0
    if not failed.any():
        return torch.cholesky_solve(B, L)
    X = torch.cholesky_solve(B, torch.where(failed[:, None, None], eye(L, L.shape[-1]), L))
    X[failed] = solve(stack[failed], B[failed])
    return X


def eigh_(S):
    """(eigenvalues in ascending order, eigenvectors) of a symmetric S, which is overwritten."""
    return tuple(torch.linalg.eigh(S))


def eigh(S):
    """The same of a matrix that stays; leading axes are a batch."""
    return _in_batches(lambda matrices: tuple(torch.linalg.eigh(matrices)), S)


def eigenvalues(S):
    """Eigenvalues of a symmetric S in ascending order; leading axes are a batch of small matrices."""
    return _in_batches(lambda matrices: (torch.linalg.eigvalsh(matrices),), S)[0]


def _in_batches(decompose, S):
    """What is found for each of the matrices in S, some of them at a time."""
    batch, n = S.shape[:-2], S.shape[-1]
    if batch.numel() <= BATCH:
        return decompose(S)
    parts = [decompose(matrices) for matrices in S.reshape(-1, n, n).split(BATCH)]
    return tuple(torch.cat(values).reshape(*batch, *values[0].shape[1:]) for values in zip(*parts, strict=True))


def svd(Phi, *, overwrite=False):
    """The thin decomposition Phi = U diag(sigma) V', as (U, sigma, V')."""
    return tuple(torch.linalg.svd(Phi, full_matrices=False))


def thin_qr(Q):
    """Q = Qo R with orthonormal columns Qo and a triangle R."""
    return tuple(torch.linalg.qr(Q))


def orthonormal(Q):
    """The same with a positive diagonal of R, rows of Qo as accurate as they are large (``linalg.numpy``)."""
    if Q.shape[1] == 1 and len(Q):
        R = norm(Q, axis=0, keepdims=True)
        return Q / R, R
    Qo, R = Q, eye(Q, Q.shape[1])
    for _ in range(min(2, Q.shape[1])):
        step = torch.linalg.qr(Qo, mode="r")[1]
        if len(Q) < Q.shape[1] or not step.diagonal().all():  # dependent columns
            return thin_qr(Q)
        step = torch.where(step.diagonal() < 0, -1.0, 1.0).to(Q.dtype)[:, None] * step
        Qo = torch.linalg.solve_triangular(step, Qo, upper=True, left=False)
        R = step @ R
    return Qo, R


# -- entries -----------------------------------------------------------------------------------------------------------


def add_diagonal_(M, value):
    """M + value I in the memory of M; ``value`` is a number, or one for each row."""
    M.diagonal().add_(value)
    return M


def set_diagonal_(M, value):
    """M with this number on its diagonal, in the memory of M."""
    M.diagonal().fill_(value)
    return M


def diagonal(A):
    """The diagonal of the last two axes; it is a view."""
    return A.diagonal(dim1=-2, dim2=-1)


def scale_(M, rows, columns):
    """diag(rows) M diag(columns) in the memory of M."""
    return M.mul_(rows[:, None]).mul_(columns)


def divide(A, B, otherwise=0.0):
    """A / B, entry by entry, and ``otherwise`` where B is not positive."""
    positive = B > 0
    return torch.where(positive, A / torch.where(positive, B, 1.0), otherwise)


def largest(A, axis=None):
    """The largest entry, 0 if none is larger, for tensors without entries too."""
    return _extreme(torch.amax, A, axis).clamp(min=0)


def smallest(A, axis=None):
    """The smallest entry, 0 if none is smaller, for tensors without entries too."""
    return _extreme(torch.amin, A, axis).clamp(max=0)


def _extreme(function, A, axis):
    if A.numel():
        return function(A) if axis is None else function(A, dim=axis)
    return A.sum() if axis is None else A.sum(axis)


def take(A, places, axis=0):
    """The entries of A at these places along an axis."""
    return A[(slice(None),) * (axis % A.ndim) + (_places(A, places),)]


def take_along(A, places, axis):
    """The entries of A at these places along an axis, others for each entry of the other axes."""
    return torch.take_along_dim(A, _places(A, places), axis)


def take_block(A, rows, columns):
    """A[rows, columns] of all pairs of these rows and columns."""
    return A[_places(A, rows)[:, None], _places(A, columns)]


def take_blocks(A, rows):
    """The blocks A[rows_i, rows_i] for each row_i of ``rows`` (k, t), (k, t, t)."""
    rows = _places(A, rows)
    return A[rows[:, :, None], rows[:, None, :]]


def put(A, places, values):
    """A with these values at these places, an index of A. A is no longer used: its memory may be that of the result."""
    A[_places(A, places)] = values
    return A


# -- entries of kernel matrices ----------------------------------------------------------------------------------------


def exp_(K):
    """exp(K) in the memory of K."""
    return K.exp_()


def power_(K, exponent):
    """K^exponent, entry by entry, in the memory of K."""
    return K.pow_(exponent)


def minimum_(K, value):
    """The smaller of each entry and a number, in the memory of K."""
    return K.clamp_(max=value)


def times_log(K):
    """K log K, entry by entry; 0 where K is 0."""
    return torch.xlogy(K, K)


def inner(A, B):
    """The sum of A times B over all entries."""
    return dots(A, B).sum() if A.ndim == 2 else (A * B).sum()


def squared_distances(X, Z, factors=None):
    """Squared distances between the rows of X and Z, of each column times its factor, summed directly."""
    squares = (X[:, None, :] - Z).square()
    return squares.sum(2) if factors is None else squares @ like(X, factors)


def manhattan(X, Z):
    """Sums of absolute differences between the rows of X and Z."""
    return torch.cdist(X, Z, p=1.0)


# -- tensors -----------------------------------------------------------------------------------------------------------


def zeros(A, shape):
    """Zeros of the kind and precision of A."""
    return A.new_zeros(shape)


def ones(A, shape):
    """Ones of the kind and precision of A."""
    return A.new_ones(shape)


def eye(A, n):
    """The identity (n, n) of the kind and precision of A."""
    return torch.eye(n, dtype=A.dtype, device=A.device)


def copy(A):
    """A new tensor with the values of A, in the same order in memory."""
    return A.clone()


def double(A):
    """The values of A in double precision; A itself if they are."""
    return A.to(torch.float64)


def concat(tensors, axis=0):
    """Tensors one after the other along an axis."""
    return torch.cat(list(tensors), axis)


def like(A, values):
    """Values as a tensor where A lies, with its precision."""
    if isinstance(values, torch.Tensor):
        return values.to(device=A.device, dtype=A.dtype)
    return torch.tensor(values, dtype=A.dtype, device=A.device)


def row_major(A):
    """A: the order in memory does not matter here."""
    return A


column_major = row_major


def to_host(A):
    """A as an array of NumPy."""
    return A.detach().cpu().numpy()


def free_memory(A):
    """Bytes that can be allocated where A lies: those of the device, and those that torch keeps for later tensors."""
    if A.device.type != "cuda":
        return memory.available_memory()
    kept = torch.cuda.memory_reserved(A.device) - torch.cuda.memory_allocated(A.device)
    return torch.cuda.mem_get_info(A.device)[0] + kept
