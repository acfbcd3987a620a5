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

A penalty object has three flags (``squares_kernel``, ``keeps_basis``, ``sites_per_row``) and the methods of
:class:`FunctionNorm`; one that squares the kernel, so that rows own basis functions, also ``functions``, ``joint`` and
``units``.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from foldless.linalg import outer_square, product
from foldless.linalg.memory import require_memory
from foldless.precision.base import Explicit

ARRAYS_OF_J = 9  # n x n each: J is four of them; K, twice, P and two products are there while it is made


@dataclass(frozen=True)
class FunctionNorm:
    """|f|^2 = beta' K beta: one site a row."""

    squares_kernel: ClassVar[bool] = False  # whether S is K K'; if not, P can be held through features of the kernel
    keeps_basis: ClassVar[bool] = False  # whether rows that are held out still carry the model
    sites_per_row: ClassVar[int] = 1  # those that leave with a held-out row
    arrays: ClassVar[int] = 1  # n x n, held at the same time where rows are held out

    def gram(self, problem, rows, K=None):
        """A new S without weights; K = gram(rows, rows) where known."""
        return problem.gram(rows, rows) if K is None else K.copy()

    def mean_diagonal(self, problem):
        """Mean of the diagonal of S without weights."""
        return problem.mean_diagonal

    def expansion(self, problem, rows, A):
        """beta with f(x) = k(x, basis rows)' beta + q(x)' B."""
        return problem.root(rows) * A

    def functionals(self, problem, rows, K):
        """T (k, sites) with f(x) = T(x) A + q(x)' B for A of all sites, from the kernel K (k, basis rows) of k rows."""
        return K * problem.root(rows).T

    def system(self, problem, rows, columns, K, unit):
        """The block of Z at these rows and columns, from that of K; the growing holder keeps the inverse of Z."""
        Z = problem.root(rows) * K * problem.root(columns).T
        if rows is columns:
            Z.flat[:: len(Z) + 1] += problem.alpha
        return Z

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

    @property
    def keeps_basis(self):
        return self.basis == "all"

    @property
    def arrays(self):
        return 3 if self.keeps_basis else ARRAYS_OF_J

    @property
    def sites_per_row(self):
        """Those that leave with a held-out row: its own, and that of its basis function."""
        return 1 if self.keeps_basis else 2

    def gram(self, problem, rows, K=None):
        if self.keeps_basis or K is None:
            columns = problem.basis_rows(rows)
            require_memory((len(rows), len(columns)), problem.dtype, "the kernel matrix with penalty='coef'", 3)
            K = problem.gram(rows, columns)
        return outer_square(K)

    def mean_diagonal(self, problem):
        """Mean of the diagonal of S without weights, from about 100 rows."""
        rows = problem.active
        some = rows[:: max(1, len(rows) // 100)]
        with np.errstate(over="ignore"):
            return float(np.square(problem.gram(some, problem.basis_rows(rows))).sum(1).mean())

    def functions(self, problem, rows):
        """Whitened W^1/2 K, whose columns are the basis functions."""
        return problem.root(rows) * problem.gram(rows, problem.basis_rows(rows))

    def expansion(self, problem, rows, A):
        return self.functions(problem, rows).T @ A

    def functionals(self, problem, rows, K):
        return K @ self.functions(problem, rows).T if self.keeps_basis else np.hstack([np.zeros_like(K), K])

    def joint(self, problem, rows, P):
        """J of rows and basis functions, the matrix from which rows are forgotten."""
        what = "P, the matrix of the fit, of rows and basis functions"
        require_memory((len(rows), len(rows)), problem.dtype, what, ARRAYS_OF_J)
        KP, rest, GK = P.with_functions(self.functions(problem, rows))
        return Explicit(np.block([[P.explicit().P, KP.T], [KP, rest]]), np.hstack([P.G, GK]), P.alpha, definite=False)

    def units(self, n, P):
        """Units of n rows, in which P is 1 at most, and of their basis functions; without rows to spare P is 0."""
        diagonal = P.diagonal()
        largest = float(diagonal.max())
        unit = np.sqrt(largest if largest * P.alpha > np.finfo(diagonal.dtype).eps else 1.0 / P.alpha)
        return np.repeat(np.array([unit, 1.0], diagonal.dtype), n)

    def system(self, problem, rows, columns, K, unit):
        """The block of Z at these rows and columns and their basis functions, in this unit of the rows."""
        K, identity = unit * K, np.zeros_like(K)
        if rows is columns:
            np.fill_diagonal(identity, 1.0)
        of_rows, of_functions = problem.root(rows) * K, K * problem.root(columns).T
        return np.block([[problem.alpha * unit**2 * identity, of_rows], [of_functions, -identity]])

    def gradient(self, D, problem, rows, K, places):
        root, n = problem.root(rows), len(rows)
        if self.keeps_basis:
            D = D.block()
            dK = np.zeros_like(K)
            dK[places] = 2 * root * product(D, root * K[places])
            return (dK + dK.T) / 2, D.trace()
        dK = 2 * root * D.block(slice(n), slice(n, None))
        return (dK + dK.T) / 2, D.trace(slice(n))
