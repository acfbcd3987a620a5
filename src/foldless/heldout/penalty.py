"""The two penalties of a function f(x) = k(x)' beta + q(x)' B, and the sites they give each row.

    FunctionNorm      "rkhs"   |f|^2 = beta' K beta    S = K         beta = A      (Cawley 2006; Treder 2019)
    CoefficientNorm   "coef"   |f|^2 = beta' beta      S = K K'      beta = K' A   (Cawley & Talbot 2003, eq. 5; Bo et
                                                                                   al. 2006)

Everything here is whitened: K stands for W^1/2 K W^1/2 with the function norm, for W^1/2 K with the coefficient norm.

**Sites.** With the coefficient norm each row owns a basis function, k(., x_i). With ``basis="train"`` a row that is
left out takes it along. Rows and basis functions are then removed together from one larger symmetric matrix,

    J = [ P,  P K ; K' P,  K' P K - I ],    A <- [ A ; K' A ],    G <- [ G, G K ],    c(x) <- [ c(x) ; K' c(x) - k(x) ],

because eliminating the basis functions te from it leaves P + P K_te (I - K_te' P K_te)^-1 K_te' P, the P of the Gram
matrix K K' - K_te K_te'. Each row owns one *site* of P, or two of J; no other formula changes. With ``basis="all"``
rows that are held out leave their basis functions behind; rows that are forgotten (``online.updates``) never do.

J is the leading block of the inverse of [Z, Q; Q', 0] with Z = [alpha I, K; K', -I], which holds K and alpha plainly.
It may be held in a unit of its rows, as the inverse of [alpha unit^2 I, unit K; unit K', -I] (``precision.growing``).

**Gradients.** With D = dL/dZ (``heldout.gradient``), Z being what P or J is the inverse of:

    rkhs                Z = K + alpha I             dL/dK = D
    coef, basis all     Z = K K' + alpha I          dL/dK = 2 D K
    coef, basis train   Z = [alpha I, K; K', -I]    dL/dK = 2 D_12

in each case dL/dalpha is the trace of D over the rows.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from foldless.linalg.memory import require_memory
from foldless.linalg.numpy import product
from foldless.precision.base import Explicit


class Extension(NamedTuple):
    """What new rows add to a system that grows: columns, rows of Q and corner, their units, the order of all sites."""

    columns: np.ndarray
    q: np.ndarray
    corner: np.ndarray
    units: np.ndarray | None = None
    order: np.ndarray | None = None  # None: old sites first


@dataclass(frozen=True)
class FunctionNorm:
    """|f|^2 = beta' K beta: one site a row."""

    squares_kernel: ClassVar[bool] = False  # whether S is K K'; if not, P can be held through features of the kernel
    keeps_basis: ClassVar[bool] = False  # whether rows that are held out still carry the model
    sites_per_row: ClassVar[int] = 1  # those that leave with a held-out row
    joint_sites_per_row: ClassVar[int] = 1  # those that leave with a forgotten row

    def basis_rows(self, problem, rows):
        """Rows whose kernel functions carry the model fitted on ``rows``."""
        return rows

    def gram(self, problem, rows, K=None):
        """A new S without weights; K = gram(rows, rows) where known."""
        return problem.gram(rows, rows) if K is None else K.copy()

    def mean_diagonal(self, problem):
        """Mean of the diagonal of S without weights."""
        return problem.mean_diagonal

    def norm_of_gram(self, norm):
        """The norm of S from that of K."""
        return norm

    # -- models ----------------------------------------------------------------------------------------------------

    def expansion(self, problem, rows, A):
        """beta with f(x) = k(x, basis_rows)' beta + q(x)' B."""
        return problem.root(rows) * A

    def expansion_size(self, root, size_of_gram):
        """What beta is in size for A of size 1."""
        return float(root.max())

    def functionals(self, problem, rows, places):
        """T (len(places), sites) with f(x) = T(x) A + q(x)' B for the coefficients A of all sites."""
        return problem.gram(places, rows) * problem.root(rows).T

    def representers(self, problem, rows, K_new):
        """s(x) (n, new rows) with f(x) = s(x)' A + q(x)' B, from the kernel (new rows, basis rows)."""
        return problem.root(rows) * K_new.T

    def site_representers(self, problem, rows, c, K_new):
        """c(x) at the sites of all rows, one array (n, new rows) for each site of a row."""
        return [c]

    def joint(self, problem, rows, P):
        """The matrix from which rows are forgotten."""
        return P

    def joint_A(self, problem, rows, A):
        """A at all of its sites."""
        return A

    def loo_path(self, problem, rows, Y, alphas, path):
        """Whitened leave-one-out residuals for all alphas, (len(alphas), n, m)."""
        return path.loo_path(Y, alphas)

    # -- systems that grow -----------------------------------------------------------------------------------------

    def unit(self, alpha, P):
        """Unit of the rows in the system that grows."""
        return 1.0

    def units(self, unit, n, dtype):
        """Units of all sites of n rows; None: all are 1."""
        return None

    def system(self, problem, rows, unit=1.0):
        """Z of ``rows``, of which the growing holder keeps the inverse."""
        M = problem.whitened_gram(rows)
        M.flat[:: len(M) + 1] += problem.alpha
        return M

    def extension(self, problem, rows, new, unit=1.0):
        """What the rows ``new`` add to Z."""
        root, root_new = problem.root(rows), problem.root(new)
        K, own = problem.gram_of_new(rows, new)
        corner = root_new * own * root_new.T + problem.alpha * np.eye(len(new), dtype=problem.dtype)
        return Extension(root * K * root_new.T, root_new * problem.Q[new], corner)

    def trace_bound(self, problem, diagonal, root, unit):
        """A bound of |S| from the entries of Z that hold diag K: the trace of S."""
        return float(np.abs(diagonal - problem.alpha).sum())

    # -- gradients -------------------------------------------------------------------------------------------------

    def gradient(self, D, problem, rows, K, places):
        """dL/dK, symmetric, and dL/dalpha; ``places`` are those of the rows in K."""
        root = problem.root(rows)
        dK = D.block()
        dalpha = dK.trace()
        if not (root == 1).all():
            dK *= root
            dK *= root.T
        return dK, dalpha


@dataclass(frozen=True)
class CoefficientNorm:
    """|f|^2 = beta' beta: a row owns a basis function, which it takes along unless ``basis`` is "all"."""

    basis: str = "train"
    squares_kernel: ClassVar[bool] = True
    joint_sites_per_row: ClassVar[int] = 2

    @property
    def keeps_basis(self):
        """Whether rows that are held out still carry the model."""
        return self.basis == "all"

    @property
    def sites_per_row(self):
        """Those that leave with a held-out row: its own, and that of its basis function."""
        return 1 if self.keeps_basis else 2

    def basis_rows(self, problem, rows):
        """Rows whose kernel functions carry the model fitted on ``rows``."""
        return problem.functions if self.keeps_basis else rows

    def gram(self, problem, rows, K=None):
        """A new S without weights; K = gram(rows, rows) where known."""
        if self.keeps_basis or K is None:
            K = problem.gram(rows, self.basis_rows(problem, rows))
        return np.ascontiguousarray(product(K, K.T))

    def mean_diagonal(self, problem):
        """Mean of the diagonal of S without weights, from about 100 rows."""
        rows = problem.active
        some = rows[:: max(1, len(rows) // 100)]
        return float(np.square(problem.gram(some, self.basis_rows(problem, rows))).sum(1).mean())

    def norm_of_gram(self, norm):
        """The norm of S from that of K."""
        return norm**2

    def _functions(self, problem, rows):
        """Whitened W^1/2 K, whose columns are the basis functions."""
        return problem.root(rows) * problem.gram(rows, self.basis_rows(problem, rows))

    # -- models ----------------------------------------------------------------------------------------------------

    def expansion(self, problem, rows, A):
        """beta with f(x) = k(x, basis_rows)' beta + q(x)' B."""
        return self._functions(problem, rows).T @ A

    def expansion_size(self, root, size_of_gram):
        """What beta is in size for A of size 1."""
        return np.sqrt(max(size_of_gram, 0.0))

    def functionals(self, problem, rows, places):
        """T (len(places), sites) with f(x) = T(x) A + q(x)' B for the coefficients A of all sites."""
        K = problem.gram(places, self.basis_rows(problem, rows))
        return K @ self._functions(problem, rows).T if self.keeps_basis else np.hstack([np.zeros_like(K), K])

    def representers(self, problem, rows, K_new):
        """s(x) (n, new rows) with f(x) = s(x)' A + q(x)' B, from the kernel (new rows, basis rows)."""
        return self._functions(problem, rows) @ K_new.T

    def site_representers(self, problem, rows, c, K_new):
        """c(x) at the sites of all rows, one array (n, new rows) for each site of a row."""
        return [c] if self.keeps_basis else [c, self._functions(problem, rows).T @ c - K_new.T]

    def joint(self, problem, rows, P):
        """J of rows and basis functions, the matrix from which rows are forgotten."""
        require_memory((2 * len(rows), 2 * len(rows)), problem.dtype, "P of rows and basis functions")
        K, P = self._functions(problem, rows), P.explicit()
        PK = P.apply(K)
        KPK = product(K, PK, transpose_a=True)
        KPK.flat[:: len(rows) + 1] -= 1.0
        return Explicit(np.block([[P.P, PK], [PK.T, KPK]]), np.hstack([P.G, P.G @ K]), P.alpha, definite=False)

    def joint_A(self, problem, rows, A):
        """A at all of its sites, [A; K' A]."""
        return np.vstack([A, self.expansion(problem, rows, A)])

    def loo_path(self, problem, rows, Y, alphas, path):
        """Whitened leave-one-out residuals for all alphas, (len(alphas), n, m).

        With J the 2 x 2 blocks of every row are needed. From P(alpha) = U D U' and H = K' U their entries are sums over
        the eigenvectors, (U*U) d, (U*H) d and (H*H) d - 1: one n^3 product more, then again O(n^2) for each alpha.
        """
        if self.keeps_basis:
            return path.loo_path(Y, alphas)
        H = product(self._functions(problem, rows), path.U, transpose_a=True)
        A = path.path_apply(Y, alphas)
        KA = path.path_apply(Y, alphas, H)
        a, b, c = (path.path_diagonal(alphas, left, right) for left, right in ((path.U, path.U), (path.U, H), (H, H)))
        c -= 1.0
        # The first component of the solution of [a b; b c] E = [A; KA], row by row.
        return (c[:, :, None] * A - b[:, :, None] * KA) / (a * c - b * b)[:, :, None]

    # -- systems that grow -----------------------------------------------------------------------------------------

    def unit(self, alpha, P):
        """The unit of the rows that makes P 1 at most; without rows to spare P is 0."""
        largest = float(P.diagonal().max())
        return np.sqrt(largest if largest * alpha > np.finfo(P.diagonal().dtype).eps else 1.0 / alpha)

    def units(self, unit, n, dtype):
        """Units of n rows and their basis functions."""
        return np.repeat(np.array([unit, 1.0], dtype), n)

    def system(self, problem, rows, unit=1.0):
        """Z of ``rows`` and their basis functions, whose inverse holds J, in this unit of the rows."""
        K = unit * problem.root(rows) * problem.gram(rows, rows)
        identity = np.eye(len(rows), dtype=problem.dtype)
        return np.block([[problem.alpha * unit**2 * identity, K], [K.T, -identity]])

    def extension(self, problem, rows, new, unit=1.0):
        """What the rows ``new`` and their basis functions add to Z; sites of rows come before those of functions."""
        n, t = len(rows), len(new)
        root, root_new = problem.root(rows), problem.root(new)
        K, own = problem.gram_of_new(rows, new)
        K, own, none = unit * K, unit * root_new * own, np.zeros_like(K)
        identity = np.eye(t, dtype=problem.dtype)
        q = root_new * problem.Q[new]
        return Extension(
            columns=np.block([[none, root * K], [K * root_new.T, none]]),
            q=np.vstack([q, np.zeros_like(q)]),
            corner=np.block([[problem.alpha * unit**2 * identity, own], [own.T, -identity]]),
            units=self.units(unit, t, problem.dtype),
            order=np.r_[:n, 2 * n : 2 * n + t, n : 2 * n, 2 * n + t : 2 * (n + t)],
        )

    def trace_bound(self, problem, diagonal, root, unit):
        """A bound of |S| from the entries of Z that hold diag K: the trace of K K', for which K_ij^2 <= K_ii K_jj."""
        own = np.abs(diagonal) / unit
        return float(own @ root) * float((own / root).sum())

    # -- gradients -------------------------------------------------------------------------------------------------

    def gradient(self, D, problem, rows, K, places):
        """dL/dK, symmetric, and dL/dalpha; ``places`` are those of the rows in K."""
        root, n = problem.root(rows), len(rows)
        if self.keeps_basis:
            D = D.block()
            dK = np.zeros_like(K)
            dK[places] = 2 * root * product(D, root * K[places])
            return (dK + dK.T) / 2, D.trace()
        dK = 2 * root * D.block(slice(n), slice(n, None))
        return (dK + dK.T) / 2, D.trace(slice(n))


def as_penalty(penalty, basis):
    """The object of a name; objects stay as they are."""
    if not isinstance(penalty, str):
        return penalty
    return {"rkhs": FunctionNorm(), "coef": CoefficientNorm(basis)}[penalty]


def sites_of(per_row, members, n):
    """Sites of these positions among n rows, each of which owns one or two; the last axis doubles with two."""
    return members if per_row == 1 else np.concatenate([members, members + n], -1)
