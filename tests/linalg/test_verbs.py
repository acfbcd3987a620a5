"""The contract of the verbs: each with its law against plain NumPy, over kinds of arrays, shapes and dtypes."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array

from foldless._engine import linalg
from foldless._engine.linalg import dispatch, functions, memory
from foldless._engine.linalg import numpy as numpy_verbs
from support.arrays import KINDS, Arrays
from support.tolerances import assert_close

SHAPES = [(1, 1), (2, 1), (5, 3), (40, 12)]  # n rows, m columns
EMPTY = [(0, 0), (0, 1), (0, 20), (3, 0)]
RTOL = {"float64": 1e-11, "float32": 2e-4}


def data(n, m, dtype):
    """Matrices by name: S definite, L a lower triangle, R an upper one, G general, B and C n x m, D a batch of S."""
    rng = np.random.default_rng(n)
    B, C, G = (rng.normal(size=shape) for shape in ((n, m), (n, m), (n, n)))
    S = G @ G.T / n + np.eye(n)
    L = np.tril(G) / np.sqrt(n) + 2 * np.eye(n)
    arrays = {"S": S, "L": L, "R": L.T, "G": G / np.sqrt(n) + 3 * np.eye(n), "B": B, "C": C, "D": np.stack([S, 2 * S])}
    return SimpleNamespace(**{name: np.ascontiguousarray(values, dtype) for name, values in arrays.items()}, n=n, m=m)


def fortran(A):
    return np.array(A, order="F")


def from_eigen(e, U):
    return U * e[..., None, :] @ np.swapaxes(U, -1, -2)


def thin(Q, R):
    """What thin factors promise: their product, orthonormal columns, a triangle."""
    return Q @ R, Q.T @ Q, np.tril(R, -1)


def of_symmetric(v, a, lower):
    T = np.where(np.tri(a.n, dtype=bool) if lower else np.tri(a.n, dtype=bool).T, a.S, 7.0)  # the rest is not read
    return v.symmetric_times(fortran(T), fortran(a.B), lower=lower)


def added(v, a):
    return np.tril(v.add_signed_(fortran(a.S), fortran(a.B), 1.0)), np.tril(a.S + a.B @ a.B.T)


def subtracted(v, a):
    return np.tril(v.add_signed_(fortran(a.S), fortran(a.B), -1.0)), np.tril(a.S - a.B @ a.B.T)


def outer_added(v, a):
    return v.add_outer_(a.S.copy(), a.B, a.B, 0.5), a.S + 0.5 * a.B @ a.B.T


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
        lambda v, a: (v.solve_definite(-a.D, np.stack([a.B, a.C])), -np.linalg.inv(a.D) @ np.stack([a.B, a.C])),
    ],
    "solve": [
        lambda v, a: (v.solve(a.G, a.B), np.linalg.inv(a.G) @ a.B),
        lambda v, a: (v.solve(a.D, np.stack([a.B, a.B])), np.linalg.inv(a.D) @ a.B),
    ],
    "inverse": [lambda v, a: (v.inverse(a.G) @ a.G, np.eye(a.n)), lambda v, a: (v.inverse(a.D), np.linalg.inv(a.D))],
    "lu_factor": [lambda v, a: (v.lu_solve(v.lu_factor(a.G), a.G), np.eye(a.n))],
    "lu_solve": [lambda v, a: (v.lu_solve(v.lu_factor(a.G), a.B), np.linalg.solve(a.G, a.B))],
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
    "set_diagonal_": [lambda v, a: (v.set_diagonal_(a.S.copy(), 3.0), a.S - np.diag(np.diag(a.S)) + 3.0 * np.eye(a.n))],
    "diagonal": [
        lambda v, a: (v.diagonal(a.S), np.diag(a.S)),
        lambda v, a: (v.diagonal(a.D), np.stack([np.diag(a.S), 2 * np.diag(a.S)])),
    ],
    "largest": [
        lambda v, a: (v.largest(a.B, 0), np.maximum(a.B, 0).max(0, initial=0.0)),
        lambda v, a: (np.array(v.largest(-a.S * a.S)), np.array(0.0, a.S.dtype)),
    ],
    "smallest": [
        lambda v, a: (v.smallest(a.B, 1), np.minimum(a.B, 0).min(1, initial=0.0)),
        lambda v, a: (np.array(v.smallest(a.S * a.S)), np.array(0.0, a.S.dtype)),
    ],
    "take": [
        lambda v, a: (v.take(a.B, chosen(a)[0]), a.B[chosen(a)[0]]),
        lambda v, a: (v.take(a.B, chosen(a)[1], 1), a.B[:, chosen(a)[1]]),
        lambda v, a: (v.take(a.B, np.arange(a.n) % 2 == 0), a.B[::2]),
        lambda v, a: (v.take(a.D, chosen(a)[0], 2), a.D[:, :, chosen(a)[0]]),
        lambda v, a: (v.take(a.D, slice(1, a.n), -1), a.D[..., 1:]),
        lambda v, a: (v.take(a.B, pairs(a)), a.B[pairs(a)]),
    ],
    "take_along": [
        lambda v, a: (v.take_along(a.B, np.argsort(a.B, axis=0), 0), np.sort(a.B, axis=0)),
        lambda v, a: (v.take_along(a.B, np.argsort(a.B, axis=1), 1), np.sort(a.B, axis=1)),
    ],
    "exp_": [lambda v, a: (v.exp_(a.B.copy()), np.exp(a.B))],
    "power_": [lambda v, a: (v.power_(a.B.copy(), 3), a.B**3)],
    "minimum_": [lambda v, a: (v.minimum_(a.B.copy(), 0), np.minimum(a.B, 0))],
    "times_log": [
        lambda v, a: (v.times_log(np.abs(a.B)), np.abs(a.B) * np.log(np.abs(a.B))),
        lambda v, a: (v.times_log(0 * a.B), 0 * a.B),
    ],
    "inner": [lambda v, a: (np.array(v.inner(a.B, a.C)), np.array((a.B * a.C).sum()))],
    "squared_distances": [
        lambda v, a: (v.squared_distances(a.B, a.C), np.square(a.B[:, None] - a.C).sum(2)),
        lambda v, a: (
            (v.squared_distances(a.B, a.C, a.C[0] ** 2), (np.square(a.B[:, None] - a.C) * a.C[0] ** 2).sum(2))
            if a.n
            else (a.B, a.B)
        ),
    ],
    "manhattan": [lambda v, a: (v.manhattan(a.B, a.C), np.abs(a.B[:, None] - a.C).sum(2))],
    "zeros": [lambda v, a: (v.zeros(a.B, (2, 3)), np.zeros((2, 3), a.B.dtype))],
    "ones": [lambda v, a: (v.ones(a.B, (2, 3)), np.ones((2, 3), a.B.dtype))],
    "eye": [lambda v, a: (v.eye(a.B, a.n), np.eye(a.n, dtype=a.B.dtype))],
    "copy": [lambda v, a: (v.copy(fortran(a.B)), a.B)],
    "double": [lambda v, a: (v.like(a.B, v.double(a.B)), a.B)],
    "concat": [
        lambda v, a: (v.concat([a.B, a.C]), np.concatenate([a.B, a.C])),
        lambda v, a: (v.concat((a.B, a.C, a.B), 1), np.concatenate([a.B, a.C, a.B], 1)),
    ],
}
every_kind = pytest.mark.parametrize("kind", KINDS)


class Verbs:
    """The verbs of ``linalg`` for arrays of NumPy, that work on another kind of arrays."""

    def __init__(self, kind, dtype):
        self.arrays = Arrays.of(kind, dtype)

    def there(self, value):
        if isinstance(value, tuple | list):
            return type(value)(map(self.there, value))
        is_float = isinstance(value, np.ndarray) and value.dtype.kind == "f"
        return self.arrays(value) if is_float else value

    def back(self, value):
        if isinstance(value, tuple):
            return tuple(map(self.back, value))
        return value if isinstance(value, float | np.generic) else linalg.to_host(value)

    def __getattr__(self, name):
        verb = getattr(linalg, name)
        if isinstance(verb, type):
            return verb

        def verb_of_numpy(*arguments, **options):
            result = verb(*map(self.there, arguments), **{key: self.there(value) for key, value in options.items()})
            return result if name == "lu_factor" else self.back(result)

        return verb_of_numpy


@every_kind
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", RTOL)
@pytest.mark.parametrize("verb", LAWS)
def test_verb_keeps_its_law(verb, shape, dtype, kind):
    check_laws(verb, shape, dtype, Verbs(kind, dtype))


def check_laws(verb, shape, dtype, verbs):
    for law in LAWS[verb]:
        found, expected = law(verbs, data(*shape, dtype))
        both = (found, expected) if isinstance(found, tuple) else ((found,), (expected,))
        for one, other in zip(*both, strict=True):
            assert one.dtype == dtype
            assert one.shape == other.shape
            assert_close(one, other, rtol=RTOL[dtype], scale=max(1.0, np.abs(other).max(initial=0.0)))


@every_kind
@pytest.mark.parametrize("shape", EMPTY, ids=str)
@pytest.mark.parametrize("dtype", RTOL)
@pytest.mark.parametrize("verb", sorted(LAWS))
def test_verb_keeps_its_law_without_rows_or_columns(verb, shape, dtype, kind, capfd):
    check_laws(verb, shape, dtype, Verbs(kind, dtype))
    assert not "".join(capfd.readouterr())  # LAPACK writes on the terminal what it refuses


IN_PLACE = {
    "add_diagonal_": lambda a: (a.S, 1.0),
    "add_outer_": lambda a: (a.S, a.B, a.B, 1.0),
    "add_signed_": lambda a: (fortran(a.S), fortran(a.B), 1.0),
    "add_square_": lambda a: (a.S, a.B),
    "cholesky_": lambda a: (a.S,),
    "exp_": lambda a: (a.S,),
    "invert_lower_": lambda a: (fortran(a.L),),
    "lower_times_": lambda a: (fortran(a.B), fortran(a.L)),
    "minimum_": lambda a: (a.S, 0.0),
    "mirror_": lambda a: (a.S,),
    "power_": lambda a: (a.S, 2),
    "scale_": lambda a: (a.S, a.S[0], a.S[0]),
    "set_diagonal_": lambda a: (a.S, 1.0),
}


@every_kind
@pytest.mark.parametrize("dtype", RTOL)
@pytest.mark.parametrize("verb", IN_PLACE)
def test_underscores_work_in_the_memory_of_their_argument(verb, dtype, kind):
    verbs = Verbs(kind, dtype)
    first, *others = map(verbs.there, IN_PLACE[verb](data(40, 12, dtype)))
    result = linalg.to_host(getattr(linalg, verb)(first, *others))
    first = linalg.to_host(first)
    np.testing.assert_array_equal(result, first.T if verb == "cholesky_" and result.flags.f_contiguous else first)


def test_every_verb_that_ends_in_an_underscore_is_tried():
    assert {name for name in numpy_verbs.__all__ if name.endswith("_")} == {
        *IN_PLACE,
        "eigh_",
    }  # of which all may change


@every_kind
def test_free_memory_is_a_number_of_bytes_where_the_array_lies(kind, monkeypatch):
    A = Arrays.of(kind)(np.eye(2))
    free = linalg.free_memory(A)
    assert free is None or free > 0
    if getattr(A, "is_cuda", False):
        return
    monkeypatch.setattr(memory, "available_memory", lambda: 17)
    assert linalg.free_memory(A) == 17


@every_kind
def test_to_host_gives_an_array_of_numpy(kind):
    A = Arrays.of(kind)(np.eye(2))
    assert type(linalg.to_host(linalg.like(A, np.eye(2)))) is np.ndarray


@every_kind
@pytest.mark.parametrize("dtype", RTOL)
def test_like_is_of_the_kind_and_precision_of_its_argument(kind, dtype):
    arrays, other = Arrays.of(kind, dtype), {"float64": "float32", "float32": "float64"}[dtype]
    for values in (np.eye(2), np.eye(2, dtype=int), [[1, 0], [0, 1]], Arrays.of(kind, other)(np.eye(2))):
        converted = linalg.like(arrays(np.zeros(3)), values)
        assert arrays.are(converted)
        np.testing.assert_array_equal(linalg.to_host(converted), np.eye(2))


@every_kind
def test_functions_of_the_standard_are_there(kind):
    xp = linalg.namespace(Arrays.of(kind)(np.eye(2)))
    assert not [name for name in functions.__all__ if not hasattr(xp, name)]


def test_every_verb_is_in_the_table():
    assert set(numpy_verbs.__all__) == {*LAWS, "free_memory"}
    assert all(hasattr(linalg, name) for name in numpy_verbs.__all__)


@pytest.mark.parametrize("kind", KINDS[1:])
def test_other_kinds_of_arrays_have_every_verb(kind):
    verbs = dispatch.kind_of(Arrays.of(kind)(0.0)).verbs
    assert not [name for name in {*LAWS, "free_memory"} if not hasattr(verbs, name)]


@pytest.mark.parametrize("values", [np.ma.ones(3), np.float64(1.0), np.eye(3).view(np.matrix), csr_array(np.eye(3))])
def test_subclasses_sparse_matrices_and_numbers_are_of_numpy(values):
    assert linalg.namespace(values) is functions


@every_kind
@pytest.mark.parametrize("dtype", RTOL)
def test_float_types_are_known(kind, dtype):
    A, info = Arrays.of(kind, dtype)(np.eye(2)), np.finfo(dtype)
    expected = (info.eps, info.tiny, info.max, info.dtype.itemsize, dtype)
    assert linalg.float_type(A) == expected
    assert (linalg.eps(A), linalg.tiny(A)) == expected[:2]


@every_kind
@pytest.mark.parametrize("dtype", RTOL)
def test_errors(dtype, kind):
    verbs = Verbs(kind, dtype)
    assert issubclass(verbs.NotPositiveDefiniteError, verbs.LinAlgError)
    with pytest.raises(verbs.NotPositiveDefiniteError, match="minor 2"):
        verbs.cholesky_(np.diag([1.0, -1.0, 1.0]).astype(dtype))
    with pytest.raises(verbs.NotPositiveDefiniteError, match="pivot 2"):
        verbs.invert_lower_(np.diag([1.0, 0.0, 1.0]).astype(dtype, order="F"))
    for verb in (lambda A: verbs.solve(A, A), verbs.inverse, verbs.lu_factor):
        with pytest.raises(verbs.LinAlgError):
            verb(np.zeros((2, 2), dtype))


@pytest.mark.parametrize("n", [6, 7, 8, 30])
@pytest.mark.parametrize("verb", sorted(LAWS))
def test_verbs_of_torch_keep_their_laws_in_panels(verb, n, monkeypatch):
    verbs = Verbs("torch", "float64")
    torch_verbs = dispatch.kind_of(verbs.arrays(0.0)).verbs
    monkeypatch.setattr(torch_verbs, "PANEL", 7)
    monkeypatch.setattr(torch_verbs, "BATCH", 1)
    check_laws(verb, (n, 3), "float64", verbs)


@pytest.mark.parametrize("bad", [0, 6, 7, 20])
def test_the_first_minor_that_is_not_positive_is_named_in_panels(bad, monkeypatch):
    verbs = Verbs("torch", "float64")
    monkeypatch.setattr(dispatch.kind_of(verbs.arrays(0.0)).verbs, "PANEL", 7)
    S = data(30, 3, "float64").S
    S[bad, bad] = -1.0
    with pytest.raises(verbs.NotPositiveDefiniteError, match=rf"leading minor {bad + 1} "):
        verbs.cholesky_(S)
