"""A regularised least-squares problem without its targets: from rows, kernel and weights to P.

    minimise  sum_i w_i (y_i - f(x_i))^2 + alpha |f|^2,     f(x) = k(x)' beta + q(x)' B

The norm |f| is that of the kernel, and S its Gram matrix K; another norm is another kernel
(``kernels.BasisFunctions``). ``precision.choose`` decides how P is held.

Weights enter by whitening: W^1/2 S W^1/2, W^1/2 Q, W^1/2 Y. Rows of weight 0 stay outside.

Q holds an intercept (a column of ones) and confounds. Scores leave out what the last ``n_confounds`` columns explain by
themselves (``heldout.confounds``).

Features are evaluated once for all rows. Where their mean is taken out (``shift``), Gram matrices are those of the
centred features.
"""

from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from foldless._engine.heldout.rows import equal_rows
from foldless._engine.linalg import dots, eigenvalues, norm, orthonormal, scale_, thin_qr, upper_solve
from foldless._engine.linalg.memory import require_memory
from foldless._engine.precision import choose, cost
from foldless._engine.precision.base import SingularBlockError
from foldless.kernels.base import dot, gram_of_all

MEAN = "mean"  # shift: the mean of the features, to be computed


class Lazy:
    """``function(*arguments)``, computed when it is first needed, once for all problems that share it."""

    def __init__(self, function, *arguments):
        self.function = function
        self.arguments = arguments
        self.is_computed = False

    @cached_property
    def value(self):
        value = self.function(*self.arguments)
        self.is_computed = True
        return value

    def set(self, value):
        """Take a value that was computed elsewhere."""
        self.value = value
        self.is_computed = True


class Problem:
    """Everything that is known before the targets. Read only: ``replace`` and its relatives give another problem.

    Parameters
    ----------
    kernel : kernel of ``foldless.kernels``
    X : array or sparse matrix of shape (n, d); the Gram matrix itself for ``Precomputed``
    alpha : penalty > 0
    Q : array of shape (n, q), the unpenalised columns (ones: an intercept)
    sample_weight : array of shape (n,) or None
    n_confounds : number of trailing columns of Q whose part the scores leave out
    origin : what was subtracted from each of the confounds that are in Q, near their mean, for the rounding's sake
    root_w : square roots of the weights, in the place of ``sample_weight``
    intercept : number of intercepts in Q, 0 or 1; None: Q tells
    shift : mean of the features that is taken out of them, or None; "mean": to be computed
    related : another problem, with which everything is shared that follows from the same kernel, rows, columns and
        weights

    The other attributes follow: the number ``n`` of rows, the ``dtype`` of X and of all that is computed, whether Q
    holds ``more_columns`` than the intercept, the number ``n_shown`` of columns before the confounds, the ``active``
    rows of positive weight, whether their weights differ from 1 (``weighted``), features of all rows (``table``) and
    ``equal`` rows of X and Q.
    """

    def __init__(
        self,
        kernel: Any,
        X: Any,
        alpha: float,
        Q: np.ndarray,
        sample_weight: np.ndarray | None = None,
        n_confounds: int = 0,
        *,
        origin: np.ndarray | None = None,
        root_w: np.ndarray | None = None,
        intercept: int | None = None,
        shift: np.ndarray | str | None = MEAN,
        related: Any = None,
    ):
        self.kernel = kernel
        self.X = X
        self.alpha = alpha
        self.Q = Q
        self.n_confounds = n_confounds
        self.n = X.shape[0]
        self.dtype = X.dtype
        self.origin = np.zeros(n_confounds) if origin is None else origin
        self.root_w = _roots(sample_weight, X) if root_w is None else root_w
        if intercept is None:
            intercept = int(Q.shape[1] > n_confounds and (Q[:, 0] == 1).all())
            # With an intercept P sees no constants: taking the mean out of features only improves the rounding. Those
            # that approximate a kernel are of size 1, and not wanted for all rows before they are needed.
            shift = shift if intercept and not kernel.approximates else None
        self.intercept = intercept
        self.more_columns = Q.shape[1] > intercept  # a constant is always determined, other columns may not be
        self.n_shown = Q.shape[1] - n_confounds
        same_rows = related is not None and related.X is X
        same_features = same_rows and related.kernel is kernel
        same_weights = related is not None and related.root_w is self.root_w
        self.active: np.ndarray = related.active if same_weights else np.nonzero(self.root_w)[0]
        self.table: Lazy = related.table if same_features else Lazy(kernel.features, X)
        plain = sample_weight is None and root_w is None
        self.weighted: bool = related.weighted if same_weights else not (plain or (self.root_w[self.active] == 1).all())
        tables = (X, Q[:, intercept:]) if self.more_columns else (X,)
        self.equal: Lazy = related.equal if same_rows and related.Q is Q else Lazy(equal_rows, *tables)
        self.shift = self._mean_of_features() if shift is MEAN else shift
        same_size = same_features and same_weights and related.shift is self.shift
        self._mean_diagonal: float | None = related._mean_diagonal if same_size else None

    def _mean_of_features(self):
        """Mean of the features of rows of positive weight; None where there are none, or sparse ones."""
        if not self.has_features or sp.issparse(self.table.value):
            return None
        return self.table.value[self.active].mean(0)

    def __getstate__(self):
        """What the other attributes follow from, and what took time: pickles hold no functions, and nothing n x n."""
        lazy = {"equal": self.equal} if self.kernel.squares_condition else {"equal": self.equal, "table": self.table}
        return {**self._fields(), "computed": {name: part.value for name, part in lazy.items() if part.is_computed}}

    def __setstate__(self, state):
        fields = {**state}
        computed = fields.pop("computed", None)
        if computed is None:  # of an earlier version, which the estimator around it refuses
            self.__dict__.update(fields)
            return
        Problem.__init__(self, **fields)
        for name, value in computed.items():
            getattr(self, name).set(value)

    # -- other problems --------------------------------------------------------------------------------------------

    def _fields(self):
        """What the problem was made of."""
        return {
            "kernel": self.kernel,
            "X": self.X,
            "alpha": self.alpha,
            "Q": self.Q,
            "n_confounds": self.n_confounds,
            "origin": self.origin,
            "root_w": self.root_w,
            "intercept": self.intercept,
            "shift": self.shift,
        }

    def replace(self, **changes: Any) -> Self:
        """The same problem with other arguments; what is known of rows and kernel stays, unless these change."""
        fields = self._fields()
        if "kernel" in changes and self.shift is not None:
            fields["shift"] = MEAN
        fields.update(changes)
        return type(self)(**fields, related=self)

    def _on_rows(self, features, **changes):
        """The problem on other rows, whose features are ``features()`` of these where they are known."""
        other = self.replace(**changes)
        if self.table.is_computed and not self.kernel.is_linear:  # features of a linear kernel are X itself
            other.table.set(features(self.table.value))
        return other

    def subset(self, rows, **changes):
        """The same problem on these rows alone: kernel parameters, shift and all stay as they were resolved."""
        changes |= {"X": self.kernel.rows(self.X, rows), "Q": self.Q[rows], "root_w": self.root_w[rows]}
        return self._on_rows(lambda features: features[rows], **changes)

    def extended(self, X, Q):
        """The problem with the rows X and Q behind its own, all of weight 1 until told otherwise."""
        kernel = self.kernel
        changes = {"X": kernel.joined(self.X, X), "Q": np.concatenate([self.Q, Q]), "shift": None}
        changes["root_w"] = _roots(None, changes["X"])
        return self._on_rows(lambda features: kernel.joined(features, kernel.features(X)), **changes)

    def weighted_by(self, sample_weight):
        if sample_weight is None and (self.root_w == 1).all():
            return self
        return self.replace(root_w=_roots(sample_weight, self.X))

    def restricted(self, rows):
        """The same rows, all but ``rows`` with weight 0."""
        root_w = np.zeros_like(self.root_w)
        root_w[rows] = self.root_w[rows]
        return self.replace(root_w=root_w)

    def with_confounds(self, C, *, in_score=False):
        """The same problem with the columns C (n, k) beside those of Q; ``in_score`` keeps their part in the scores."""
        w = np.square(self.root_w[self.active], dtype=float)
        origin = np.average(C[self.active], 0, w) if self.intercept else np.zeros(C.shape[1])
        Q = np.hstack([self.Q, (C - origin).astype(self.dtype)])
        other = self.replace(Q=Q, origin=origin, n_confounds=0 if in_score else C.shape[1])
        other.basis_of_Q(other.active)  # complains where they are dependent
        return other

    def recentred(self):
        """The same problem with the confounds about the mean of the rows that it has, as if it had never had others."""
        k = len(self.origin)
        if not (k and self.intercept):
            return self
        Q, more = self.Q.copy(), self.mean_columns()[-k:]
        Q[:, -k:] -= more
        return self.replace(Q=Q, origin=self.origin + more)

    def columns(self, C):
        """Q of new rows with confounds C (n, k)."""
        return np.hstack([np.ones((len(C), self.intercept)), C - self.origin]).astype(self.dtype)

    def mean_columns(self):
        """Weighted mean of the rows of Q, (q,): a row whose confounds are at their mean. Without an intercept, 0."""
        if not self.intercept:
            return np.zeros(self.Q.shape[1], self.dtype)
        return np.average(self.Q[self.active], 0, np.square(self.root_w[self.active]))

    # -- rows as the kernel sees them ------------------------------------------------------------------------------

    @property
    def has_features(self):
        return self.kernel.n_features(self.X) is not None

    def data(self, rows):
        return _rows_of(self.X, rows)

    def features(self, rows, *, dense=True):
        """Explicit features of these rows; as they are, perhaps sparse, unless ``dense``."""
        if self.kernel.approximates and 2 * len(rows) < self.n and not self.table.is_computed:
            return self._centred(self.kernel.features(self.data(rows)), dense)  # others may never be asked for
        return self._centred(_rows_of(self.table.value, rows), dense)

    def features_new(self, X, *, dense=True):
        """Explicit features of new rows X, as those of the training rows."""
        return self._centred(self.kernel.features(X), dense)

    def _centred(self, values, dense):
        if sp.issparse(values) and (dense or self.shift is not None):
            require_memory(values.shape, self.dtype, "the features as a dense array")
            values = values.toarray()
        return values if self.shift is None else values - self.shift

    def gram(self, rows, columns, *, check=True):
        """K[rows, columns]; ``check`` whether there is memory for it."""
        if not (len(rows) and len(columns)):  # kernels need not know what they make of no rows
            return np.zeros((len(rows), len(columns)), self.dtype)
        if not self.kernel.takes_rows:
            return self.kernel.block(self.X, rows, columns)
        if check:
            features_too = self.kernel.squares_condition and not self.table.is_computed
            require_memory((len(rows), len(columns)), self.dtype, "the kernel matrix", 1 + features_too)
        if self.has_features:
            values = self.features(rows, dense=False)
            return dot(values, values if rows is columns else self.features(columns, dense=False))
        if rows is columns:
            return gram_of_all(self.kernel, self.data(rows))
        return self.kernel.gram(self.data(rows), self.data(columns))

    def gram_of_new(self, rows, new):
        """Kernel between ``rows`` and the rows ``new``, and among the latter, symmetric."""
        both = self.gram(new, np.concatenate([rows, new]), check=False)
        among_new = both[:, len(rows) :]
        return both[:, : len(rows)].T, (among_new + among_new.T) / 2

    def diag_new(self, X):
        """k(x, x) of new rows X."""
        if self.shift is None:
            return self.kernel.diag(X)
        Phi = self.features_new(X)
        return dots(Phi, Phi)

    def gram_new(self, X, rows):
        """Kernel between new rows X and these rows."""
        if not self.kernel.takes_rows:
            return self.kernel.against(X, self.X, rows)
        if not self.has_features:
            return self.kernel.gram(X, self.data(rows))
        return dot(self.features_new(X, dense=False), self.features(rows, dense=False))

    # -- rows and columns ------------------------------------------------------------------------------------------

    def root(self, rows):
        """Square roots of the weights of these rows, as a column."""
        return self.root_w[rows][:, None]

    def unpenalised_part(self, rows, B):
        """q' B of these rows."""
        return self.Q[rows] @ B if self.more_columns else B.sum(0)  # the same for all rows

    def basis_of_Q(self, rows):
        """Orthonormal basis of the whitened columns of Q on ``rows``, which must determine all of them."""
        Q = self.whitened_columns(rows)
        Qo, R = thin_qr(Q)
        rounding = np.finfo(Q.dtype).eps * norm(Q, axis=0)
        rounding[Q.shape[1] - len(self.origin) :] += np.finfo(float).eps * np.abs(self.origin) * norm(self.root(rows))
        lost = np.flatnonzero(np.abs(R.diagonal()) <= 8 * np.sqrt(len(rows)) * rounding[: len(R)])
        if len(lost) or len(rows) < Q.shape[1]:
            column = min([*lost, len(R)]) - self.intercept
            raise SingularBlockError(
                f"confounds: column {column} is a linear combination of {'the intercept and ' * self.intercept}the"
                f" columns before it on the {len(rows)} rows (of positive weight) to be fitted. Drop it (indicators of"
                " the levels of a factor: all but one), or use splits whose training parts hold rows of every level."
            )
        return Qo

    def check_sets(self, rows, members):
        """Refuse sets (k, t) of positions in ``rows`` without one of which the columns of Q are not determined."""
        if not self.more_columns:
            return
        Qo = self.basis_of_Q(rows)[members]
        smallest = eigenvalues(np.eye(members.shape[1], dtype=Qo.dtype) - Qo @ Qo.transpose(0, 2, 1))[:, 0]
        if smallest.min() > 16 * Qo.shape[2] * np.finfo(Qo.dtype).eps:
            return
        worst = members[smallest.argmin()]
        try:
            self.basis_of_Q(np.delete(rows, worst))
        except SingularBlockError as error:  # says which column
            names = ", ".join(map(str, rows[worst].tolist()))
            raise SingularBlockError(f"without row{'s' * (len(worst) > 1)} {names}: {error}") from None
        raise SingularBlockError.of(worst, len(rows))

    def residual_of_Q(self, rows, Y):
        """What least squares by the unpenalised columns leaves of the whitened Y of ``rows``, and its coefficients.

        P Q = 0: A = P Y does not change when a fit by Q is taken out of Y, but keeps its digits where targets are far
        larger than they differ.
        """
        Q = self.whitened_columns(rows)
        if not Q.shape[1]:
            return Y, np.zeros((0, Y.shape[1]), Y.dtype)
        Qo, R = orthonormal(Q)
        B = upper_solve(R, Qo.T @ Y)
        return Y - Q @ B, B

    def first_equal(self, rows):
        """For each of the rows the place among them of the first that equals it; None where all differ."""
        if len(rows) < 2 or self.equal.value is None:
            return None
        values, first, places = np.unique(self.equal.value[rows], return_index=True, return_inverse=True)
        return None if len(values) == len(rows) else first[places]

    def tie_equal_rows(self, rows, values):
        """Values of these rows with those of equal rows made equal."""
        first = self.first_equal(rows)
        return values if first is None else values[first]

    # -- P ---------------------------------------------------------------------------------------------------------

    @property
    def mean_diagonal(self):
        """Mean of the diagonal of the kernel, of centred features where these are centred."""
        if self._mean_diagonal is None:
            self._mean_diagonal = self._computed_mean_diagonal()
        return self._mean_diagonal

    def _computed_mean_diagonal(self):
        if self.shift is not None:
            Phi = self.features(self.active)
            return float(np.mean(dots(Phi, Phi)))
        rows = self.active
        if self.kernel.approximates:  # features of about 100 rows tell
            rows = rows[:: max(1, len(rows) // 100)]
        return float(np.mean(self.kernel.diag(self.data(rows))))

    def n_features(self, n_rows):
        """Number of explicit features where P of so many rows is held through them, else None."""
        return self.kernel.n_features(self.X) if choose.holder(self, n_rows).through_features else None

    def fit_flops(self, n_rows):
        """Flops of a fit on so many rows."""
        return cost.fit(self.kernel, self.X, n_rows, through_features=choose.holder(self, n_rows).through_features)

    def describe_holder(self):
        """How P of all rows will be held, in words."""
        n = len(self.active)
        return choose.holder(self, n).planned.format(n=n, r=self.n_features(n))

    def precision(self, rows, K=None):
        """P of the whitened problem on ``rows``, in the holder that suits it; K = gram(rows, rows) where known."""
        if self.more_columns:
            self.basis_of_Q(rows)  # complains where they are dependent
        return choose.precision(self, rows, K)

    def path(self, rows, n_alphas=None, *, explicit=False):
        """What serves every alpha: ``with_alpha`` gives P; of ``n_alphas``, as arrays if ``explicit``."""
        return choose.path(self, rows, n_alphas, explicit=explicit)

    def whitened_columns(self, rows):
        return self.root(rows) * self.Q[rows]

    def whitened_features(self, rows):
        """W^1/2 Phi of ``rows``, dense."""
        Phi = self.root(rows) * self.features(rows)
        self._check_size(dots(Phi, Phi))
        return Phi

    def whitened_gram(self, rows, K=None):
        """A new W^1/2 K W^1/2 of ``rows``; K = gram(rows, rows) where known."""
        root = self.root(rows)
        with np.errstate(over="ignore", invalid="ignore"):  # reported by _check_size, with a way out
            S = self.gram(rows, rows) if K is None else K.copy()
            if self.weighted:
                S = scale_(S, root[:, 0], root[:, 0])
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


def _roots(sample_weight, X):
    """Square roots of the weights of the rows of X."""
    return np.ones(X.shape[0], X.dtype) if sample_weight is None else np.sqrt(sample_weight).astype(X.dtype)


def _rows_of(table, rows):
    """These rows of an array; the array itself for all of them in order."""
    n = table.shape[0]
    return table if len(rows) == n and np.array_equal(rows, np.arange(n)) else table[rows]
