"""A regularised least-squares problem without its targets: from rows, kernel and weights to P.

    minimise  sum_i w_i (y_i - f(x_i))^2 + alpha |f|^2,     f(x) = k(x)' beta + q(x)' B

Two penalties, one engine (S is the Gram matrix P is made of):

    penalty="rkhs"   |f|^2 = beta' K beta    S = K         beta = A      (Cawley 2006; Treder 2019)
    penalty="coef"   |f|^2 = beta' beta      S = K K'      beta = K' A   (Cawley & Talbot 2003, eq. 5; Bo et al. 2006)

Weights enter by whitening: W^1/2 S W^1/2, W^1/2 Q, W^1/2 Y. Rows of weight 0 stay outside.

Q holds an intercept (a column of ones) and confounds. Scores leave the part of the last ``n_confounds`` columns out:
what they explain, f is not asked to.

How P is held is decided by ``precision.choose``.
"""

from copy import copy
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from sklearn.utils.extmath import row_norms

from foldless.heldout.ties import equal_rows, first_equal
from foldless.linalg.memory import require_memory
from foldless.linalg.numpy import eigenvalues, orthonormal, product, upper_solve
from foldless.precision.base import SingularBlockError
from foldless.precision.choose import Ingredients, describe, takes_features


class Problem:
    """Everything that is known before the targets.

    Parameters
    ----------
    kernel : kernel of ``foldless.kernels``
    X : array or sparse matrix of shape (n, d); the Gram matrix itself for ``Precomputed``
    alpha : penalty > 0
    sample_weight : array of shape (n,) or None
    Q : array of shape (n, q), the unpenalised columns (ones: an intercept)
    n_confounds : number of trailing columns of Q whose part the scores leave out
    penalty : "rkhs" or "coef"
    basis : "train" (a row left out takes its basis function along) or "all" (it stays); for penalty="coef"
    """

    def __init__(self, kernel, X, *, alpha, Q, sample_weight=None, penalty="rkhs", basis="train", n_confounds=0):
        self.kernel, self.alpha, self.Q, self.n_confounds = kernel, alpha, Q, n_confounds
        self.penalty, self.basis = penalty, basis
        self.n, self.dtype = X.shape[0], X.dtype
        self.root_w = _roots(sample_weight, self.n, X.dtype)
        self.active = self._functions = np.flatnonzero(self.root_w)
        self.X = X
        # With an intercept P sees no constants: taking the mean out of linear features only improves the rounding.
        self.intercept = int(Q.shape[1] > n_confounds and (Q[:, 0] == 1).all())
        centre = self.intercept and kernel.is_linear and penalty == "rkhs" and not sp.issparse(X)
        self.shift = X[self.active].mean(0) if centre else None

    def subset(self, rows):
        """The same problem on these rows alone: kernel parameters, shift and all stay as they were resolved."""
        other = copy(self)
        other.X = self.kernel.rows(self.X, rows)
        _forget_rows(other)
        other.n, other.Q, other.root_w = len(rows), self.Q[rows], self.root_w[rows]
        other.active = other._functions = np.flatnonzero(other.root_w)
        return other

    def extended(self, X, Q):
        """The problem with the rows X and Q behind its own, all of weight 1 until told otherwise."""
        other = copy(self)
        other.X = self.kernel.joined(self.X, X)
        other.n, other.Q, other.shift = self.n + X.shape[0], np.concatenate([self.Q, Q]), None
        _forget_rows(other)
        return other.weighted_by(None)

    def weighted_by(self, sample_weight):
        """The same rows with other weights."""
        if sample_weight is None and len(self.root_w) == self.n and (self.root_w == 1).all():
            return self
        other = copy(self)
        _forget_rows(other)
        other.root_w = _roots(sample_weight, self.n, self.dtype)
        other.active = other._functions = np.flatnonzero(other.root_w)
        return other

    def restricted(self, rows):
        """The same rows, all but ``rows`` with weight 0; ``basis="all"`` keeps the basis functions there are."""
        other = copy(self)
        other.root_w = np.zeros_like(self.root_w)
        other.root_w[rows] = self.root_w[rows]
        other.active = np.flatnonzero(other.root_w)
        return other

    def with_confounds(self, C, *, in_score=False):
        """The same problem with the columns C (n, k) beside those of Q; ``in_score`` keeps their part in the scores."""
        other = self.replace(Q=np.hstack([self.Q, C]), n_confounds=0 if in_score else C.shape[1])
        _forget_rows(other)
        return other

    def trained_on(self, rows):
        """The same rows, all but ``rows`` with weight 0 and without their basis functions, as if never seen."""
        other = self.restricted(rows)
        other._functions = other.active
        return other

    def replace(self, **changes):
        """The same rows with another ``kernel``, ``alpha`` or Q."""
        other = copy(self)
        vars(other).update(changes)
        return other

    def __copy__(self):
        other = object.__new__(type(self))
        vars(other).update(vars(self))
        return other

    @property
    def drops_basis(self):
        """Whether leaving out a row also takes its basis function away."""
        return self.penalty == "coef" and self.basis == "train"

    @property
    def weighted(self):
        """Whether rows of positive weight differ from weight 1."""
        return not (self.root_w[self.active] == 1).all()

    @property
    def more_columns(self):
        """Whether Q holds more than an intercept: a constant is always determined, other columns may not be."""
        return self.Q.shape[1] > self.intercept

    @property
    def confounds(self):
        """The columns of Q whose part the scores leave out, as a slice."""
        return slice(self.Q.shape[1] - self.n_confounds, None)

    def scored_part(self, at, B):
        """The part of the unpenalised columns in the scores of the rows ``at``, q' B without that of confounds."""
        shown = self.Q.shape[1] - self.n_confounds
        if shown == self.intercept:  # the same for all rows
            return B[:shown].sum(0)
        return self.Q[at, :shown] @ B[:shown]

    def span(self, rows):
        """Orthonormal basis of the whitened columns of Q on ``rows``, which must determine all of them."""
        Q = self.root_w[rows][:, None] * self.Q[rows]
        Qo, R = np.linalg.qr(Q)
        tolerance = 8 * np.sqrt(len(rows)) * np.finfo(Q.dtype).eps
        lost = np.flatnonzero(np.abs(R.diagonal()) <= tolerance * np.linalg.norm(Q, axis=0)[: len(R)])
        if len(lost) or len(rows) < Q.shape[1]:
            column = min([*lost, len(R)]) - self.intercept
            raise SingularBlockError(
                f"confounds: column {column} is a linear combination of {'the intercept and ' * self.intercept}the"
                f" columns before it on the {len(rows)} rows (of positive weight) to be fitted. Drop it (indicators of"
                " the levels of a factor: all but one), or use splits whose training parts hold rows of every level."
            )
        return Qo

    def beyond_unpenalised(self, rows, Y):
        """What least squares by the unpenalised columns leaves of the whitened Y of ``rows``, and its coefficients.

        P Q = 0: A = P Y does not change when a fit by Q is taken out of Y, but keeps its digits where targets are far
        larger than they differ.
        """
        Q = self.root_w[rows][:, None] * self.Q[rows]
        if not Q.shape[1]:
            return Y, np.zeros((0, Y.shape[1]), Y.dtype)
        Qo, R = orthonormal(Q)
        B = upper_solve(R, Qo.T @ Y)
        return Y - Q @ B, B

    @cached_property
    def equal_rows(self):
        """Numbers that rows share whose scores are equal in any model, equal rows of X; None where all differ."""
        more = self.Q[:, self.intercept : self.Q.shape[1] - self.n_confounds]
        return equal_rows(self.X, more) if more.shape[1] else equal_rows(self.X)

    def first_equal(self, at):
        """For each of the rows ``at`` the place in ``at`` of the first that equals it; None where all differ."""
        return None if len(at) < 2 or self.equal_rows is None else first_equal(self.equal_rows[at])

    def tied(self, at, values):
        """Values of the rows ``at`` with those of equal rows made equal."""
        first = self.first_equal(at)
        return values if first is None else values[first]

    def n_features(self, n_rows):
        """Number of explicit features where P is held through them, else None."""
        r = self.kernel.n_features(self.X)
        if r is None or self.penalty != "rkhs":
            return None
        return r if takes_features(n_rows, r, self.alpha, lambda: self.size, self.dtype.itemsize) else None

    @cached_property
    def size(self):
        """Mean of the diagonal of the linear kernel."""
        return float(np.mean(self.kernel.diag(self._take(self.active))))

    def describe_holder(self):
        """How P of all rows will be held, in words."""
        return describe(len(self.active), self.n_features(len(self.active)))

    def gram(self, rows, columns):
        """K[rows, columns]."""
        if self.kernel.takes_rows:
            require_memory((len(rows), len(columns)), self.dtype, "the kernel matrix")
        return self._gram(rows, columns)

    def _gram(self, rows, columns):
        if not self.kernel.takes_rows:
            return self.kernel.block(self.X, rows, columns)
        if rows is columns:
            return np.ascontiguousarray(self.kernel.gram(self._take(rows)))
        return self.kernel.gram(self._take(rows), self._take(columns))

    def gram_new(self, X, rows):
        """Kernel between new rows X and the basis of the model on ``rows``."""
        basis = self.basis_rows(rows)
        if not self.kernel.takes_rows:
            return self.kernel.against(X, self.X, basis)
        return self.kernel.gram(X if self.shift is None else X - self.shift, self._take(basis))

    def features_new(self, X):
        """Explicit features of new rows X, as those of the training rows."""
        X = X.toarray() if sp.issparse(X) else X
        return X if self.shift is None else X - self.shift

    def _take(self, rows):
        X = self.X if len(rows) == self.n and np.array_equal(rows, np.arange(self.n)) else self.X[rows]
        return X if self.shift is None else X - self.shift

    def features(self, rows):
        """Explicit features of these rows as a dense array."""
        X = self._take(rows)
        if not sp.issparse(X):
            return X
        require_memory(X.shape, self.dtype, "the features as a dense array")
        return X.toarray()

    def basis_rows(self, rows):
        """Rows whose kernel functions carry the model fitted on ``rows``."""
        return self._functions if self.penalty == "coef" and self.basis == "all" else rows

    def ingredients(self, rows, K=None):
        """What P of ``rows`` is made of; K = gram(rows, rows) where known."""
        root = self.root_w[rows][:, None]
        through = self.n_features(len(rows)) is not None
        return Ingredients(
            gram=lambda: self._whitened_gram(rows, root, K),
            kernel_matrix=lambda: self.gram(rows, rows),
            Q=root * self.Q[rows],
            alpha=self.alpha,
            root=root,
            features=(lambda: self._whitened_features(rows, root)) if through else None,
        )

    def precision(self, rows, K=None):
        """P of the whitened problem on ``rows``, in the holder that suits it; K = gram(rows, rows) where known."""
        if self.more_columns:
            self.span(rows)  # complains where they are dependent
        return self.ingredients(rows, K).precision()

    def dense(self, rows):
        """P of the whitened problem on ``rows`` from S itself."""
        return self.ingredients(rows).dense()

    def path(self, rows):
        """What serves every alpha: ``with_alpha`` gives P."""
        if self.n_features(len(rows)) is not None:
            return self.precision(rows)
        return self.ingredients(rows).path()

    def _whitened_features(self, rows, root):
        Phi = root * self.features(rows)
        self._check_size(row_norms(Phi, squared=True))
        return Phi

    def _whitened_gram(self, rows, root, K=None):
        with np.errstate(over="ignore", invalid="ignore"):  # reported by _check_size, with a way out
            S = self.gram(rows, rows) if K is None else K.copy()
            if self.penalty == "coef":
                K = S if self.basis_rows(rows) is rows else self.gram(rows, self.basis_rows(rows))
                S = np.ascontiguousarray(product(K, K.T))
            if not (root == 1).all():
                S *= root
                S *= root.T
        self._check_size(S.diagonal())
        return S

    def _check_size(self, diagonal):
        """No entry of a Gram matrix exceeds its diagonal; sums of n of them must not overflow either."""
        with np.errstate(over="ignore"):
            safe = np.isfinite(diagonal.max(initial=0) * 8 * len(diagonal))
        if not safe:
            raise ValueError(
                f"the kernel matrix of {len(diagonal)} rows overflows in {self.dtype}: its diagonal reaches"
                f" {diagonal.max():.3g} with {self.kernel!r}. Rescale X (for instance with"
                " sklearn.preprocessing.StandardScaler)."
            )

    def basis_functions(self, rows):
        """Whitened W^1/2 K, whose columns are the basis functions of ``penalty="coef"``."""
        return self.root_w[rows][:, None] * self.gram(rows, self.basis_rows(rows))

    def system(self, rows, unit=1.0):
        """The whitened M of ``rows``, of which the growing holder keeps the inverse.

        M = S + alpha I; for the coefficient penalty the matrix [alpha I, K; K', -I] of rows and basis functions, whose
        inverse is J (``heldout.solution``), with its rows in this unit: [alpha unit^2 I, unit K; unit K', -I].
        """
        if self.penalty == "rkhs":
            M = self._whitened_gram(rows, self.root_w[rows][:, None])
            M.flat[:: len(M) + 1] += self.alpha
            return M
        K, identity = unit * self.root_w[rows][:, None] * self.gram(rows, rows), np.eye(len(rows), dtype=self.dtype)
        return np.block([[self.alpha * unit**2 * identity, K], [K.T, -identity]])

    def extremes(self, rows):
        """Smallest and largest size of the eigenvalues of S + alpha I."""
        S = self._whitened_gram(rows, self.root_w[rows][:, None])
        S.flat[:: len(S) + 1] += self.alpha
        sizes = np.abs(eigenvalues(S))
        return max(float(sizes.min()), float(np.finfo(S.dtype).tiny)), float(sizes.max())

    def condition(self, rows):
        """The condition number of S + alpha I."""
        smallest, largest = self.extremes(rows)
        return largest / smallest

    def border(self, rows, new, unit=1.0):
        """(columns, corner) by which M grows when the rows ``new`` are learnt; each brings a basis function, if any."""
        root, root_new = self.root_w[rows][:, None], self.root_w[new]
        both = self._gram(new, np.concatenate([rows, new]))
        K, own = both[:, : len(rows)].T, (both[:, len(rows) :] + both[:, len(rows) :].T) / 2
        identity = np.eye(len(new), dtype=self.dtype)
        if self.penalty == "rkhs":
            return root * K * root_new, root_new[:, None] * own * root_new + self.alpha * identity
        K, none, own = unit * K, np.zeros_like(K), unit * root_new[:, None] * own
        columns = np.block([[none, root * K], [K * root_new, none]])
        return columns, np.block([[self.alpha * unit**2 * identity, own], [own.T, -identity]])

    def linear(self, weights, basis, beta, B):
        """(coef, B) of f(x) = x' coef + q(x)' B for the linear kernel in the units of X, from whichever is known."""
        coef = np.asarray(self._take(basis).T @ beta) if weights is None else weights
        if self.shift is not None:
            B = B.copy()
            B[0] -= self.shift @ coef
        return coef, B


def _forget_rows(problem):
    """Drop what was derived from other rows, columns or weights."""
    for name in ("size", "equal_rows"):
        vars(problem).pop(name, None)


def _roots(sample_weight, n, dtype):
    """Square roots of the weights."""
    return np.ones(n, dtype) if sample_weight is None else np.sqrt(sample_weight).astype(dtype)
