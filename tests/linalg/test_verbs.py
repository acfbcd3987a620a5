"""The contract of the verbs: every one of ``linalg.__all__`` with its law against plain NumPy, over shapes and dtypes.

Another kind of arrays joins by its file in ``BACKENDS``.
"""

import importlib
from types import SimpleNamespace

import numpy as np
import pytest

from foldless._engine import linalg
from foldless._engine.linalg import memory
from support.tolerances import assert_close

BACKENDS = ["foldless._engine.linalg.numpy"]
NO_VERBS = {"LinAlgError", "NotPositiveDefiniteError", "free_memory"}  # looked at below, without shapes
SHAPES = [(1, 1), (2, 1), (5, 3), (40, 12)]  # n rows, m columns
EMPTY = [(0, 0), (0, 1), (0, 20), (3, 0)]
RTOL = {"float64": 1e-11, "float32": 2e-4}


def data(n, m, dtype):
    """Matrices by name: S definite, L a lower triangle, R an upper one, G general, B and C n x m, D a batch of S."""
    rng = np.random.default_rng(n)
    B, C, G = (rng.normal(size=shape) for shape in ((n, m), (n, m), (n, n)))
    S = G @ G.T / n + np.eye(n)
    L = np.tril(G) / np.sqrt(n) + 2 * np.eye(n)
    found = {"S": S, "L": L, "R": L.T, "G": G / np.sqrt(n) + 3 * np.eye(n), "B": B, "C": C, "D": np.stack([S, 2 * S])}
    return SimpleNamespace(**{name: np.ascontiguousarray(each, dtype) for name, each in found.items()}, n=n, m=m)


def fortran(A):
    return np.array(A, order="F")


def from_eigen(e, U):
    return U * e[..., None, :] @ np.swapaxes(U, -1, -2)


def thin(Q, R):
    """What thin factors promise: their product, orthonormal columns, a triangle."""
    return Q @ R, Q.T @ Q, np.tril(R, -1)


def whole(Q, R):
    """The same of factors with a square Q."""
    return Q @ R, Q @ Q.T, np.tril(R, -1)


def factored(A):
    """Square Q and R of A, by NumPy, as the verbs want them."""
    Q, R = np.linalg.qr(A, mode="complete")
    return fortran(Q), fortran(R)


def of_symmetric(v, a, lower):
    T = np.where(np.tri(a.n, dtype=bool) if lower else np.tri(a.n, dtype=bool).T, a.S, 7.0)  # the rest is not read
    return v.symmetric_times(fortran(T), fortran(a.B), lower=lower)


def added(v, a):
    return np.tril(v.add_signed_(fortran(a.S), fortran(a.B), 1.0)), np.tril(a.S + a.B @ a.B.T)


def subtracted(v, a):
    return np.tril(v.add_signed_(fortran(a.S), fortran(a.B), -1.0)), np.tril(a.S - a.B @ a.B.T)


def outer_added(v, a):
    return v.add_outer_(a.S.copy(), a.B, a.B, 0.5), a.S + 0.5 * a.B @ a.B.T


def least_squares(v, a):
    return v.least_squares_(np.hstack([a.B, a.B]), a.C, 1e-5), np.linalg.pinv(np.hstack([a.B, a.B]), 1e-5) @ a.C


def appended(v, a):
    V = np.array(a.B.T[: max(1, a.m // 2)], a.G.dtype)
    A = np.vstack([a.G, V])
    return whole(*v.append_rows(*factored(a.G), V)), (A, np.eye(len(A)), np.zeros_like(A))


def inserted(v, a):
    A = np.vstack([a.G, a.B.T])
    Q, R = factored(np.delete(A, a.n - 1, axis=1) if a.n > 1 else A)
    if a.n > 1:
        Q, R = v.insert_columns_(Q, R, A[:, -1].copy(), a.n - 1)
    return whole(Q, R), (A, np.eye(len(A)), np.zeros_like(A))


def deleted(v, a, which):
    A = np.vstack([a.G, a.B.T])
    rest = np.delete(A, 0, axis=0 if which == "row" else 1)
    if not rest.shape[1]:
        return (), ()
    return whole(*v.delete(*factored(A), 0, 1, which)), (rest, np.eye(len(rest)), np.zeros_like(rest))


def chosen(a):
    """Some rows and columns of B, out of order."""
    return np.arange(a.n)[::-2], np.arange(a.m)[::-1]


def pairs(a):
    """Rows (k, 2) of G; a row may come twice."""
    return np.column_stack([np.arange(a.n), np.arange(a.n)[::-1]])


def triangle(a):
    """What thin factors of B are expected to give."""
    k = min(a.n, a.m)
    return a.B, np.eye(k), np.zeros((k, a.m))


# verb: laws, each a function of the verbs v and data a; what is found, what is expected
LAWS = {
    "cholesky_": [lambda v, a: (v.cholesky_(a.S.copy()), np.linalg.cholesky(a.S))],
    "invert_lower_": [lambda v, a: (v.invert_lower_(fortran(a.L)), np.linalg.inv(a.L))],
    "lower_solve": [
        lambda v, a: (v.lower_solve(fortran(a.L), a.B), np.linalg.solve(a.L, a.B)),
        lambda v, a: (v.lower_solve(fortran(a.L), a.B, transpose=True), np.linalg.solve(a.L.T, a.B)),
        lambda v, a: (v.lower_solve(fortran(a.L), a.B[:, :0]), a.B[:, :0]),
    ],
    "upper_solve": [
        lambda v, a: (v.upper_solve(a.R, a.B), np.linalg.solve(a.R, a.B)),
        lambda v, a: (v.upper_solve(a.L, a.B, lower=True), np.linalg.solve(a.L, a.B)),
        lambda v, a: (v.upper_solve(a.R[:0, :0], a.B[:0]), a.B[:0]),
    ],
    "right_solve": [lambda v, a: (v.right_solve(fortran(a.B.T), fortran(a.L)), np.linalg.solve(a.L, a.B).T)],
    "cholesky_solve": [lambda v, a: (v.cholesky_solve(fortran(a.L), a.B), np.linalg.solve(a.L @ a.L.T, a.B))],
    "lower_times": [
        lambda v, a: (v.lower_times(fortran(a.L), a.B), a.L @ a.B),
        lambda v, a: (v.lower_times(fortran(a.L), a.B, transpose=True), a.L.T @ a.B),
        lambda v, a: (v.lower_times(fortran(a.L), a.B[:, :0]), a.B[:, :0]),
    ],
    "lower_times_": [lambda v, a: (v.lower_times_(fortran(a.B), fortran(a.L)), a.L @ a.B)],
    "product": [
        lambda v, a: (v.product(a.G, a.B), a.G @ a.B),
        lambda v, a: (v.product(fortran(a.B), a.C, transpose_a=True), a.B.T @ a.C),
        lambda v, a: (v.product(a.B.T, fortran(a.C)), a.B.T @ a.C),
        lambda v, a: (v.product(a.B[:, :0], a.C[:0].reshape(0, a.m)), np.zeros((a.n, a.m))),
    ],
    "gram": [lambda v, a: (v.gram(a.B), a.B @ a.B.T), lambda v, a: (v.gram(fortran(a.B)), a.B @ a.B.T)],
    "dots": [
        lambda v, a: (v.dots(a.B, a.C), (a.B * a.C).sum(1)),
        lambda v, a: (v.dots(fortran(a.B), a.C, axis=0), (a.B * a.C).sum(0)),
    ],
    "outer_square": [lambda v, a: (v.outer_square(a.B), a.B @ a.B.T)],
    "lower_square": [lambda v, a: (v.lower_square(fortran(a.L)), a.L.T @ a.L)],
    "symmetric_times": [
        lambda v, a: (of_symmetric(v, a, True), a.S @ a.B),
        lambda v, a: (of_symmetric(v, a, False), a.S @ a.B),
    ],
    "add_outer_": [outer_added],
    "add_square_": [
        lambda v, a: (np.tril(v.add_square_(a.S.copy(), a.B)), np.tril(a.S + a.B @ a.B.T)),
        lambda v, a: (np.tril(v.add_square_(a.S.copy(), fortran(a.B))), np.tril(a.S + a.B @ a.B.T)),
    ],
    "mirror_": [lambda v, a: (v.mirror_(np.tril(a.S)), a.S)],
    "add_signed_": [added, subtracted],
    "norm": [
        lambda v, a: (np.array(v.norm(a.B)), np.sqrt(np.square(a.B).sum())),
        lambda v, a: (v.norm(a.B, axis=0), np.sqrt(np.square(a.B).sum(0))),
        lambda v, a: (v.norm(a.B, axis=-1, keepdims=True), np.sqrt(np.square(a.B).sum(-1, keepdims=True))),
    ],
    "orthonormal": [lambda v, a: (thin(*v.orthonormal(a.B)), triangle(a))],
    "thin_qr": [lambda v, a: (thin(*v.thin_qr(a.B)), triangle(a))],
    "eigh_": [lambda v, a: (from_eigen(*v.eigh_(a.S.copy())), a.S)],
    "eigh": [
        lambda v, a: (from_eigen(*v.eigh(a.D)), a.D),
        lambda v, a: (v.eigh(a.D)[0], np.linalg.eigvalsh(a.D)),
    ],
    "eigenvalues": [
        lambda v, a: (v.eigenvalues(a.S), np.linalg.eigvalsh(a.S)),
        lambda v, a: (v.eigenvalues(a.D), np.linalg.eigvalsh(a.D)),
    ],
    "svd": [
        lambda v, a: (v.svd(a.B)[1], np.linalg.svd(a.B)[1]),
        lambda v, a: ((v.svd(a.B)[0] * v.svd(a.B)[1]) @ v.svd(a.B)[2], a.B),
    ],
    "solve_definite": [
        lambda v, a: (v.solve_definite(a.D, np.stack([a.B, a.C])), np.linalg.inv(a.D) @ np.stack([a.B, a.C])),
        lambda v, a: (
            (v.solve_definite(a.G[None], a.B[None]), np.linalg.inv(a.G)[None] @ a.B)
            if a.n < 20
            else (v.solve_definite(-a.D, np.stack([a.B, a.C])), -np.linalg.inv(a.D) @ np.stack([a.B, a.C]))
        ),
    ],
    "solve": [
        lambda v, a: (v.solve(a.G, a.B), np.linalg.inv(a.G) @ a.B),
        lambda v, a: (v.solve(a.D, np.stack([a.B, a.B])), np.linalg.inv(a.D) @ a.B),
    ],
    "inverse": [lambda v, a: (v.inverse(a.G) @ a.G, np.eye(a.n)), lambda v, a: (v.inverse(a.D), np.linalg.inv(a.D))],
    "lu_factor": [lambda v, a: (v.lu_solve(v.lu_factor(a.G), a.G), np.eye(a.n))],
    "lu_solve": [lambda v, a: (v.lu_solve(v.lu_factor(a.G), a.B), np.linalg.solve(a.G, a.B))],
    "least_squares_": [least_squares],
    "add_diagonal_": [
        lambda v, a: (v.add_diagonal_(a.S.copy(), 0.5), a.S + 0.5 * np.eye(a.n)),
        lambda v, a: (v.add_diagonal_(fortran(a.G), a.S.sum(0)), a.G + np.diag(a.S.sum(0))),
        lambda v, a: (v.add_diagonal_(np.vstack([a.G, a.G])[: a.n], 2.0), a.G + 2.0 * np.eye(a.n)),
    ],
    "divide": [
        lambda v, a: (v.divide(a.B, np.abs(a.C)), a.B / np.abs(a.C)),
        lambda v, a: (v.divide(a.B, a.C.clip(0)), np.where(a.C > 0, a.B / np.abs(a.C), 0.0).astype(a.B.dtype)),
        lambda v, a: (v.divide(a.B, a.C.clip(0), a.B), np.where(a.C > 0, a.B / np.abs(a.C), a.B)),
    ],
    "scale_": [
        lambda v, a: (v.scale_(a.B.copy(), a.C.sum(1), a.C.sum(0)), np.diag(a.C.sum(1)) @ a.B @ np.diag(a.C.sum(0))),
    ],
    "take_block": [lambda v, a: (v.take_block(a.B, *chosen(a)), a.B[chosen(a)[0]][:, chosen(a)[1]])],
    "take_blocks": [
        lambda v, a: (v.take_blocks(a.G, pairs(a)), np.array([a.G[r][:, r] for r in pairs(a)]).reshape(a.n, 2, 2)),
    ],
    "put": [
        lambda v, a: (v.put(a.B.copy(), slice(1), a.C[:1]), np.vstack([a.C[:1], a.B[1:]])),
        lambda v, a: (v.put(a.B.copy(), a.B > 0, 0.0), np.where(a.B > 0, 0.0, a.B)),
        lambda v, a: (v.put(a.G.copy(), (np.arange(a.n), np.arange(a.n)), 0.0), a.G - np.diag(np.diag(a.G))),
    ],
    "like": [lambda v, a: (v.like(a.B, [[1, 2], [3, 4]]), np.array([[1, 2], [3, 4]], a.B.dtype))],
    "row_major": [lambda v, a: (v.row_major(a.B.T), a.B.T)],
    "column_major": [lambda v, a: (v.column_major(a.B), a.B)],
    "to_host": [lambda v, a: (v.to_host(a.B), a.B)],
    "qr_": [lambda v, a: (whole(*v.qr_(a.B.copy())), (a.B, np.eye(a.n), np.zeros((a.n, a.m))))],
    "append_rows": [appended],
    "insert_columns_": [inserted],
    "delete": [lambda v, a: deleted(v, a, "row"), lambda v, a: deleted(v, a, "col")],
}
DOUBLE = {"append_rows"}  # verbs of the QR way, which is of double precision alone
NEVER_EMPTY = {"qr_", "append_rows", "insert_columns_", "delete", "least_squares_"}  # of models with a row at least
every_backend = pytest.mark.parametrize("backend", BACKENDS)


@every_backend
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", RTOL)
@pytest.mark.parametrize("verb", LAWS)
def test_verb_keeps_its_law(verb, shape, dtype, backend):
    if verb in DOUBLE and dtype != "float64":
        pytest.skip("of double precision alone")
    check_laws(verb, shape, dtype, importlib.import_module(backend))


def check_laws(verb, shape, dtype, verbs):
    for law in LAWS[verb]:
        found, expected = law(verbs, data(*shape, dtype))
        both = (found, expected) if isinstance(found, tuple) else ((found,), (expected,))
        for one, other in zip(*both, strict=True):
            assert one.dtype == dtype
            assert one.shape == other.shape
            assert_close(one, other, rtol=RTOL[dtype], scale=max(1.0, np.abs(other).max(initial=0.0)))


@every_backend
@pytest.mark.parametrize("shape", EMPTY, ids=str)
@pytest.mark.parametrize("dtype", RTOL)
@pytest.mark.parametrize("verb", sorted(LAWS.keys() - NEVER_EMPTY))
def test_verb_keeps_its_law_without_rows_or_columns(verb, shape, dtype, backend, capfd):
    check_laws(verb, shape, dtype, importlib.import_module(backend))
    assert not "".join(capfd.readouterr())  # LAPACK writes on the terminal what it refuses


@every_backend
@pytest.mark.parametrize("dtype", RTOL)
def test_underscores_work_in_the_memory_of_their_argument(dtype, backend):
    verbs, a = importlib.import_module(backend), data(40, 12, dtype)
    S, L, T, O, Y = a.S.copy(), fortran(a.L), fortran(a.S), a.S.copy(), fortran(a.B)
    assert np.shares_memory(verbs.lower_times_(Y, L), Y)
    assert np.shares_memory(verbs.cholesky_(S), S)
    assert np.shares_memory(verbs.invert_lower_(L), L)
    assert np.shares_memory(verbs.add_signed_(T, fortran(a.B), 1.0), T)
    assert np.shares_memory(verbs.add_outer_(O, a.B, a.B, 1.0), O)
    assert np.shares_memory(verbs.mirror_(verbs.add_square_(O, a.B)), O)
    assert np.shares_memory(verbs.add_diagonal_(O, 1.0), O)
    assert np.shares_memory(verbs.scale_(O, a.S[0], a.S[0]), O)


@every_backend
def test_free_memory_is_a_number_of_bytes_where_the_array_lies(backend, monkeypatch):
    verbs, A = importlib.import_module(backend), data(2, 1, "float64").S
    known = verbs.free_memory(A)
    assert known is None or known > 0
    monkeypatch.setattr(memory, "available_memory", lambda: 17)
    assert verbs.free_memory(A) == 17


@every_backend
def test_to_host_gives_an_array_of_numpy(backend):
    verbs, A = importlib.import_module(backend), data(2, 1, "float64").S
    assert type(verbs.to_host(verbs.like(A, A))) is np.ndarray


@every_backend
def test_every_verb_is_in_the_table(backend):
    verbs = importlib.import_module(backend)
    assert set(verbs.__all__) == {*LAWS, *NO_VERBS}
    assert all(hasattr(linalg, name) for name in verbs.__all__)


@every_backend
@pytest.mark.parametrize("dtype", RTOL)
def test_errors(dtype, backend):
    verbs = importlib.import_module(backend)
    assert issubclass(verbs.NotPositiveDefiniteError, verbs.LinAlgError)
    with pytest.raises(verbs.NotPositiveDefiniteError, match="minor 2"):
        verbs.cholesky_(np.diag([1.0, -1.0, 1.0]).astype(dtype))
    with pytest.raises(verbs.NotPositiveDefiniteError, match="pivot 2"):
        verbs.invert_lower_(np.diag([1.0, 0.0, 1.0]).astype(dtype, order="F"))
    for verb in (lambda A: verbs.solve(A, A), verbs.inverse, verbs.lu_factor):
        with pytest.raises(verbs.LinAlgError):
            verb(np.zeros((2, 2), dtype))
