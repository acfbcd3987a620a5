"""A regularised least-squares problem without its targets: from rows, kernel and weights to P.

    minimise  sum_i w_i (y_i - f(x_i))^2 + alpha |f|^2,     f(x) = k(x)' beta + q(x)' B

What |f| is, and the Gram matrix S that P is made of, are the penalty's business (``heldout.penalty``). How P is held is
decided by ``precision.choose``.

Weights enter by whitening: W^1/2 S W^1/2, W^1/2 Q, W^1/2 Y. Rows of weight 0 stay outside.

Q holds an intercept (a column of ones) and confounds. Scores leave the part of the last ``n_confounds`` columns out:
what they explain, f is not asked to.
"""

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.extmath import row_norms

from foldless.heldout.kernel_rows import FeatureTable, KernelRows
from foldless.heldout.penalty import as_penalty
from foldless.heldout.ties import EqualRows, first_equal
from foldless.linalg.numpy import eigenvalues, orthonormal, upper_solve
from foldless.precision.base import SingularBlockError
from foldless.precision.choose import Ingredients, takes_features


@dataclass(frozen=True, eq=False, repr=False)
class Problem(KernelRows):
    """Everything that is known before the targets. Frozen: ``replace`` and its relatives give another one.

    Parameters
    ----------
    kernel : kernel of ``foldless.kernels``
    X : array or sparse matrix of shape (n, d); the Gram matrix itself for ``Precomputed``
    alpha : penalty > 0
    Q : array of shape (n, q), the unpenalised columns (ones: an intercept)
    sample_weight : array of shape (n,) or None
    penalty : "rkhs" or "coef", or an object of ``heldout.penalty``
    basis : "train" (a row left out takes its basis function along) or "all" (it stays); for penalty="coef"
    n_confounds : number of trailing columns of Q whose part the scores leave out

    The other fields follow from these, unless they are kept from another problem: the number of intercepts (0 or 1),
    square roots ``root_w`` of the weights, rows whose basis ``functions`` there are, the mean of the features that is
    taken out of them (``shift``; "mean": that of these rows), features and equal rows of X.
    """

    kernel: Any
    X: Any
    alpha: float
    Q: np.ndarray
    sample_weight: dataclasses.InitVar[Any] = None
    penalty: Any = "rkhs"
    basis: dataclasses.InitVar[str] = "train"
    n_confounds: int = 0
    intercept: Any = None
    root_w: Any = None
    functions: Any = None
    shift: Any = "mean"
    table: Any = None
    equal: Any = None
    active: np.ndarray = dataclasses.field(init=False)  # rows of positive weight

    def __post_init__(self, sample_weight, basis):
        root_w = self.root_w
        if root_w is None:
            root_w = np.sqrt(np.ones(self.n) if sample_weight is None else sample_weight).astype(self.dtype)
        active = np.flatnonzero(root_w)
        known = {
            "penalty": as_penalty(self.penalty, basis),
            "root_w": root_w,
            "active": active,
            "functions": active if self.functions is None else self.functions,
        }
        vars(self).update(known)
        if self.intercept is None:
            vars(self)["intercept"] = int(self.Q.shape[1] > self.n_confounds and (self.Q[:, 0] == 1).all())
        if self.table is None or self.table.kernel is not self.kernel or self.table.X is not self.X:
            vars(self)["table"] = FeatureTable(self.kernel, self.X)
        if self.equal is None:
            vars(self)["equal"] = EqualRows(self.X, self.Q[:, self.intercept : self.Q.shape[1] - self.n_confounds])
        if isinstance(self.shift, str):
            # With an intercept P sees no constants: taking the mean out of features only improves the rounding.
            centre = self.intercept and not self.penalty.squares_kernel
            vars(self)["shift"] = self.mean_of_features(active) if centre else None

    # -- other problems --------------------------------------------------------------------------------------------

    def replace(self, sample_weight=None, **changes):
        """The same problem with other fields; what is known of rows and kernel stays, unless these change."""
        if {"X", "Q", "n_confounds"} & changes.keys():
            changes.setdefault("equal", None)
        if "kernel" in changes and self.shift is not None:
            changes.setdefault("shift", "mean")
        if changes.keys() - FIELDS:
            raise TypeError(f"a problem has no {sorted(changes.keys() - FIELDS)}")
        other, mine = object.__new__(type(self)), vars(self)
        vars(other).update({name: mine[name] for name in FIELDS}, **changes)
        other.__post_init__(sample_weight, "train")
        return other

    def subset(self, rows):
        """The same problem on these rows alone: kernel parameters, shift and all stay as they were resolved."""
        X = self.kernel.rows(self.X, rows)
        table = self.table.changed(X, lambda features: features[rows])
        return self.replace(X=X, Q=self.Q[rows], root_w=self.root_w[rows], functions=None, table=table)

    def extended(self, X, Q):
        """The problem with the rows X and Q behind its own, all of weight 1 until told otherwise."""
        joined = self.kernel.joined(self.X, X)
        table = self.table.changed(joined, lambda features: self.kernel.joined(features, self.kernel.features(X)))
        Q = np.concatenate([self.Q, Q])
        return self.replace(X=joined, Q=Q, root_w=None, functions=None, shift=None, table=table)

    def weighted_by(self, sample_weight):
        """The same rows with other weights."""
        if sample_weight is None and (self.root_w == 1).all():
            return self
        return self.replace(root_w=None, sample_weight=sample_weight, functions=None)

    def restricted(self, rows):
        """The same rows, all but ``rows`` with weight 0; ``basis="all"`` keeps the basis functions there are."""
        root_w = np.zeros_like(self.root_w)
        root_w[rows] = self.root_w[rows]
        return self.replace(root_w=root_w)

    def trained_on(self, rows):
        """The same rows, all but ``rows`` with weight 0 and without their basis functions, as if never seen."""
        return self.restricted(rows).replace(functions=None)

    def with_confounds(self, C, *, in_score=False):
        """The same problem with the columns C (n, k) beside those of Q; ``in_score`` keeps their part in the scores."""
        return self.replace(Q=np.hstack([self.Q, C]), n_confounds=0 if in_score else C.shape[1])

    # -- rows and columns ------------------------------------------------------------------------------------------

    def root(self, rows):
        """Square roots of the weights of these rows, as a column."""
        return self.root_w[rows][:, None]

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

    def scored_part(self, rows, B):
        """The part of the unpenalised columns in the scores of these rows, q' B without that of confounds."""
        shown = self.Q.shape[1] - self.n_confounds
        if shown == self.intercept:  # the same for all rows
            return B[:shown].sum(0)
        return self.Q[rows, :shown] @ B[:shown]

    def span(self, rows):
        """Orthonormal basis of the whitened columns of Q on ``rows``, which must determine all of them."""
        Q = self.root(rows) * self.Q[rows]
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
        Q = self.root(rows) * self.Q[rows]
        if not Q.shape[1]:
            return Y, np.zeros((0, Y.shape[1]), Y.dtype)
        Qo, R = orthonormal(Q)
        B = upper_solve(R, Qo.T @ Y)
        return Y - Q @ B, B

    def first_equal(self, rows):
        """For each of the rows the place among them of the first that equals it; None where all differ."""
        return None if len(rows) < 2 or self.equal.numbers is None else first_equal(self.equal.numbers[rows])

    def tie_equal_rows(self, rows, values):
        """Values of these rows with those of equal rows made equal."""
        first = self.first_equal(rows)
        return values if first is None else values[first]

    # -- P ---------------------------------------------------------------------------------------------------------

    @cached_property
    def mean_diagonal(self):
        """Mean of the diagonal of the kernel, of centred features where these are centred."""
        if self.shift is not None:
            return float(np.mean(row_norms(self._features(self.active), squared=True)))
        return float(np.mean(self.kernel.diag(self.data(self.active))))

    def n_features(self, n_rows):
        """Number of explicit features where P of so many rows is held through them, else None."""
        r = None if self.penalty.squares_kernel else self.kernel.n_features(self.X)
        if r is None:
            return None
        small = takes_features(n_rows, r, self.alpha, lambda: self.mean_diagonal, self.dtype.itemsize)
        return r if small else None

    def describe_holder(self):
        """How P of all rows will be held, in words."""
        n = len(self.active)
        r = self.n_features(n)
        return f"one Cholesky factor of {n} rows" if r is None else f"low rank, {r} features"

    def basis_rows(self, rows):
        """Rows whose kernel functions carry the model fitted on ``rows``."""
        return self.penalty.basis_rows(self, rows)

    def ingredients(self, rows, K=None):
        """What P of ``rows`` is made of; K = gram(rows, rows) where known."""
        through = self.n_features(len(rows)) is not None
        return Ingredients(
            gram=lambda: self.whitened_gram(rows, K),
            kernel_matrix=lambda: self.gram(rows, rows),
            Q=self.root(rows) * self.Q[rows],
            alpha=self.alpha,
            root=self.root(rows),
            features=(lambda: self._whitened_features(rows)) if through else None,
            feature_kind="linear features" if self.kernel.is_linear else "features",
        )

    def precision(self, rows, K=None):
        """P of the whitened problem on ``rows``, in the holder that suits it; K = gram(rows, rows) where known."""
        if self.more_columns:
            self.span(rows)  # complains where they are dependent
        return self.ingredients(rows, K).precision()

    def path(self, rows):
        """What serves every alpha: ``with_alpha`` gives P."""
        if self.n_features(len(rows)) is not None:
            return self.precision(rows)
        return self.ingredients(rows).path()

    def _whitened_features(self, rows):
        Phi = self.root(rows) * self.features(rows)
        self._check_size(row_norms(Phi, squared=True))
        return Phi

    def whitened_gram(self, rows, K=None):
        """A new W^1/2 S W^1/2 of ``rows``; K = gram(rows, rows) where known."""
        root = self.root(rows)
        with np.errstate(over="ignore", invalid="ignore"):  # reported by _check_size, with a way out
            S = self.penalty.gram(self, rows, K)
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

    def eigenvalue_range(self, rows):
        """Smallest and largest size of the eigenvalues of S + alpha I."""
        S = self.whitened_gram(rows)
        S.flat[:: len(S) + 1] += self.alpha
        sizes = np.abs(eigenvalues(S))
        return max(float(sizes.min()), float(np.finfo(S.dtype).tiny)), float(sizes.max())


FIELDS = {field.name for field in dataclasses.fields(Problem) if field.init}
