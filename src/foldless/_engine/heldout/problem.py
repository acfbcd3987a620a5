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

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from foldless._engine import linalg
from foldless._engine.heldout.rows import equal_rows
from foldless._engine.precision import choose, cost
from foldless._engine.precision.base import Precision, SingularBlockError
from foldless.kernels.base import gram_of_all
from foldless.kernels.matrices import dot

MEAN = "mean"  # shift: the mean of the features, to be computed
ARGUMENTS = ("kernel", "X", "alpha", "Q", "n_confounds", "origin", "root_w", "intercept", "shift")
INDEPENDENT = {"alpha", "n_confounds", "origin"}  # arguments from which nothing else follows


class Lazy:
    """``function(*arguments)``, computed when it is first needed, once for all problems that share it."""

    def __init__(self, function, *arguments):
        self.function = function
        self.arguments = arguments
        self.is_computed = False

    @classmethod
    def of(cls, value):
        """A value that was computed elsewhere."""
        lazy = cls(None)
        lazy.value = value
        lazy.is_computed = True
        return lazy

    @cached_property
    def value(self):
        value = self.function(*self.arguments)
        self.is_computed = True
        return value


@dataclass(frozen=True, eq=False)
class Problem:
    """Everything that is known before the targets: :meth:`of` makes it, ``replace`` and its relatives make others.

    kernel : kernel of ``foldless.kernels``
    X : array or sparse matrix of shape (n, d); the Gram matrix itself for ``Precomputed``
    alpha : penalty > 0
    Q : array of shape (n, q), the unpenalised columns (ones: an intercept)
    n_confounds : number of trailing columns of Q that the scores leave out
    origin : what was subtracted from each of the confounds that are in Q, near their mean, for the rounding's sake
    root_w : array of shape (n,), square roots of the weights
    intercept : number of intercepts in Q, 0 or 1
    shift : mean of the features that is taken out of them, or None

    All else follows: the ``verbs`` and the functions ``xp`` for arrays of the kind of Q, which all that is computed
    has, the number ``n`` of rows, the ``dtype`` of X by NumPy's name, whether Q holds ``more_columns`` than the
    intercept, the number of explicit features of the kernel (``n_features``, or None), the ``active`` rows of positive
    weight, and whether their weights differ from 1 (``weighted``). What takes time is computed when it is first needed,
    and shared by problems of the same rows, kernel, columns or weights: features of all rows (``table``), numbers of
    ``equal`` rows of X and Q, and the mean of the diagonal of the kernel. The choice of a holder of P is kept for each
    number of rows (:meth:`holder`).
    """

    kernel: Any
    X: Any
    alpha: float
    Q: np.ndarray
    n_confounds: int
    origin: np.ndarray
    root_w: np.ndarray
    intercept: int
    shift: np.ndarray | None
    verbs: Any
    xp: Any
    n: int
    dtype: np.dtype
    more_columns: bool
    n_features: int | None
    active: np.ndarray
    weighted: bool
    table: Lazy
    equal: Lazy
    lazy_mean_diagonal: Lazy
    _holders: dict[int, type[Precision]] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, kernel, X, alpha, Q, sample_weight=None, n_confounds=0) -> Self:
        """The problem of rows X with weights (n,), or None: all 1."""
        kind = linalg.kind_of(Q)
        intercept = int(Q.shape[1] > n_confounds and bool(kind.xp.all(Q[:, 0] == 1)))
        # With an intercept P sees no constants: taking the mean out of features only improves the rounding. Those
        # that approximate a kernel are of size 1, and not wanted for all rows before they are needed.
        shift = MEAN if intercept and not kernel.approximates else None
        root_w = kind.verbs.ones(Q, Q.shape[0]) if sample_weight is None else _roots(sample_weight, Q)
        origin = np.zeros(n_confounds)
        return cls._complete(kernel, X, alpha, Q, n_confounds, origin, root_w, intercept, shift, kind=kind)

    @classmethod
    def _complete(
        cls, kernel, X, alpha, Q, n_confounds, origin, root_w, intercept, shift, *, table=None, related=None, kind=None
    ) -> Self:
        """The problem of these arguments, and of what follows from them; a ``related`` one may know some of it."""
        verbs, xp = linalg.kind_of(Q) if kind is None else kind
        same_rows = related is not None and related.X is X
        same_features = same_rows and related.kernel is kernel and table is None
        same_weights = related is not None and related.root_w is root_w
        if same_weights:
            active, weighted = related.active, related.weighted
        else:
            roots = verbs.to_host(root_w)
            active = np.nonzero(roots)[0]
            weighted = not (roots[active] == 1).all()
        if table is None:
            table = related.table if same_features else Lazy(kernel.features, X)
        if same_rows and related.Q is Q:
            equal = related.equal
        else:
            equal = Lazy(equal_rows, X, Q[:, intercept:]) if Q.shape[1] > intercept else Lazy(equal_rows, X)
        n_features = related.n_features if same_features else kernel.n_features(X)
        if shift is MEAN:
            shift = None if n_features is None else _mean_of_features(active, table)
        if same_features and same_weights and related.shift is shift:
            mean_diagonal = related.lazy_mean_diagonal
        else:
            mean_diagonal = Lazy(_mean_diagonal, kernel, X, active, shift, table, xp)
        more_columns = Q.shape[1] > intercept  # a constant is always determined, other columns may not be
        dtype = X.dtype if isinstance(X.dtype, np.dtype) else linalg.host_dtype(X)
        follows = verbs, xp, X.shape[0], dtype, more_columns, n_features, active, weighted, table, equal, mean_diagonal
        return cls(kernel, X, alpha, Q, n_confounds, origin, root_w, intercept, shift, *follows)

    def __getstate__(self):
        """The arguments, and what took time: pickles hold no functions, and nothing n x n."""
        lazy = {"equal": self.equal} if self.kernel.squares_condition else {"equal": self.equal, "table": self.table}
        computed = {name: values.value for name, values in lazy.items() if values.is_computed}
        return {**self._arguments(), "computed": computed}

    def __setstate__(self, state):
        if "computed" not in state:  # of an earlier version, which the estimator around it refuses
            return
        arguments, computed = {name: state[name] for name in ARGUMENTS}, state["computed"]
        table = Lazy.of(computed["table"]) if "table" in computed else None
        restored = self._complete(**arguments, table=table)
        if "equal" in computed:
            restored = replace(restored, equal=Lazy.of(computed["equal"]))
        for entry in fields(restored):
            object.__setattr__(self, entry.name, getattr(restored, entry.name))

    # -- what follows ----------------------------------------------------------------------------------------------

    @cached_property
    def n_shown(self):
        """Number of columns of Q before the confounds that the scores leave out."""
        return self.Q.shape[1] - self.n_confounds

    @property
    def mean_diagonal(self):
        """Mean of the diagonal of the kernel, of centred features where these are centred."""
        return self.lazy_mean_diagonal.value

    # -- other problems --------------------------------------------------------------------------------------------

    def _arguments(self):
        """What the problem was made of."""
        return {name: getattr(self, name) for name in ARGUMENTS}

    def replace(self, **changes: Any) -> Self:
        """The same problem with other arguments; what is known of rows and kernel stays, unless these change."""
        return replace(self, **changes) if changes.keys() <= INDEPENDENT else self._changed(changes)

    def _changed(self, changes, table=None):
        arguments = self._arguments()
        if "kernel" in changes and self.shift is not None:
            arguments["shift"] = MEAN
        arguments.update(changes)
        return self._complete(**arguments, table=table, related=self)

    def _on_rows(self, features, changes):
        """The problem on other rows, whose features are ``features()`` of these where they are known."""
        table = None
        if self.table.is_computed and not self.kernel.is_linear:  # features of a linear kernel are X itself
            table = Lazy.of(features(self.table.value))
        return self._changed(changes, table)

    def subset(self, rows, **changes):
        """The same problem on these rows alone: kernel parameters, shift and all stay as they were resolved."""
        changes |= {"X": self.kernel.rows(self.X, rows), "Q": self.Q[rows], "root_w": self.root_w[rows]}
        return self._on_rows(lambda features: features[rows], changes)

    def extended(self, X, Q):
        """The problem with the rows X and Q behind its own, all of weight 1 until told otherwise."""
        kernel = self.kernel
        changes = {"X": kernel.joined(self.X, X), "Q": self.verbs.concat([self.Q, Q]), "shift": None}
        changes["root_w"] = linalg.ones(Q, len(changes["Q"]))
        return self._on_rows(lambda features: kernel.joined(features, kernel.features(X)), changes)

    def weighted_by(self, sample_weight):
        if sample_weight is None and self.xp.all(self.root_w == 1):
            return self
        w = linalg.ones(self.Q, self.n) if sample_weight is None else sample_weight
        return self.replace(root_w=_roots(w, self.Q))

    def restricted(self, rows):
        """The same rows, all but ``rows`` with weight 0."""
        return self.replace(root_w=self.verbs.put(self.xp.zeros_like(self.root_w), rows, self.root_w[rows]))

    def with_confounds(self, C, *, in_score=False):
        """The same problem with the columns C (n, k) beside those of Q; ``in_score`` keeps what they explain."""
        w = np.square(self.verbs.to_host(self.root_w)[self.active], dtype=float)
        origin = np.average(C[self.active], 0, w) if self.intercept else np.zeros(C.shape[1])
        Q = self.verbs.concat([self.Q, self.verbs.like(self.Q, C - origin)], 1)
        other = self.replace(Q=Q, origin=origin, n_confounds=0 if in_score else C.shape[1])
        other.basis_of_Q(other.active)  # complains where they are dependent
        return other

    def recentred(self):
        """The same problem with the confounds about the mean of the rows that it has, as if it had never had others."""
        k = len(self.origin)
        if not (k and self.intercept):
            return self
        more = self.mean_columns()[-k:]
        Q = self.verbs.concat([self.Q[:, :-k], self.Q[:, -k:] - more], 1)
        return self.replace(Q=Q, origin=self.origin + self.verbs.to_host(more))

    def columns(self, C):
        """Q of new rows with confounds C (n, k)."""
        return self.verbs.like(self.Q, np.hstack([np.ones((len(C), self.intercept)), C - self.origin]))

    def mean_columns(self):
        """Weighted mean of the rows of Q, (q,): a row whose confounds are at their mean. Without an intercept, 0."""
        if not self.intercept:
            return self.verbs.zeros(self.Q, self.Q.shape[1])
        Q, root = (self.verbs.to_host(table)[self.active] for table in (self.Q, self.root_w))
        return self.verbs.like(self.Q, np.average(Q, 0, np.square(root)))

    # -- rows as the kernel sees them ------------------------------------------------------------------------------

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
            cost.require_dense(values.shape, self.dtype)
            values = values.toarray()
        return values if self.shift is None else values - self.shift

    def gram(self, rows, columns, *, check=True):
        """K[rows, columns]; ``check`` whether there is memory for it."""
        if not (len(rows) and len(columns)):  # kernels need not know what they make of no rows
            return self.verbs.zeros(self.Q, (len(rows), len(columns)))
        if not self.kernel.takes_rows:
            return self.kernel.block(self.X, rows, columns)
        if check:
            features_too = self.kernel.squares_condition and not self.table.is_computed
            cost.require_gram((len(rows), len(columns)), self.Q, features_too=features_too)
        if self.n_features is not None:
            values = self.features(rows, dense=False)
            return dot(values, values if rows is columns else self.features(columns, dense=False))
        if rows is columns:
            return self.verbs.row_major(gram_of_all(self.kernel, _rows_of(self.X, rows)))
        return self.kernel.gram(_rows_of(self.X, rows), _rows_of(self.X, columns))

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
        return self.verbs.dots(Phi, Phi)

    def gram_new(self, X, rows):
        """Kernel between new rows X and these rows."""
        if not self.kernel.takes_rows:
            return self.kernel.against(X, self.X, rows)
        if self.n_features is None:
            return self.kernel.gram(X, self.data(rows))
        return dot(self.features_new(X, dense=False), self.features(rows, dense=False))

    # -- rows and columns ------------------------------------------------------------------------------------------

    def root(self, rows):
        """Square roots of the weights of these rows, as a column."""
        return self.root_w[rows][:, None]

    def unpenalised_fits(self, rows, B):
        """q' B of these rows."""
        return self.Q[rows] @ B if self.more_columns else self.xp.sum(B, axis=0)  # the same for all

    def basis_of_Q(self, rows):
        """Orthonormal basis of the whitened columns of Q on ``rows``, which must determine all of them."""
        Q = self.whitened_columns(rows)
        verbs = self.verbs
        Qo, R = verbs.thin_qr(Q)
        pivots = verbs.to_host(verbs.diagonal(R))
        rounding = verbs.to_host(linalg.eps(Q) * verbs.norm(Q, axis=0))
        size = float(verbs.norm(self.root(rows)))
        rounding[Q.shape[1] - len(self.origin) :] += np.finfo(float).eps * np.abs(self.origin) * size
        lost = np.flatnonzero(np.abs(pivots) <= 8 * np.sqrt(len(rows)) * rounding[: len(R)])
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
        verbs = self.verbs
        unit = verbs.eye(Qo, members.shape[1])
        smallest = verbs.to_host(verbs.eigenvalues(unit - Qo @ self.xp.matrix_transpose(Qo))[:, 0])
        if smallest.min() > 16 * Qo.shape[2] * linalg.eps(Qo):
            return
        worst = members[smallest.argmin()]
        try:
            self.basis_of_Q(np.delete(rows, worst))
        except SingularBlockError as error:  # says which column
            names = ", ".join(map(str, rows[worst].tolist()))
            raise SingularBlockError(f"without row{'s' * (len(worst) > 1)} {names}: {error}") from None
        raise SingularBlockError.of(worst, len(rows))

    def rounded(self, Y):
        """Values Y in the precision that the problem is solved in."""
        return self.verbs.like(self.Q, Y)

    def placed(self, Y):
        """Values Y of NumPy, of single or double precision, where the problem is solved."""
        return self.verbs.like(self.Q if Y.dtype == self.dtype else self.verbs.double(self.Q[:0]), Y)

    def residual_of_Q(self, rows, Y):
        """What least squares by the unpenalised columns leaves of the whitened Y of ``rows``, and its coefficients.

        P Q = 0: A = P Y does not change when a fit by Q is taken out of Y, but keeps its digits where targets are far
        larger than they differ.
        """
        Q = self.whitened_columns(rows)
        if not Q.shape[1]:
            return Y, self.verbs.zeros(Y, (0, Y.shape[1]))
        Qo, R = self.verbs.orthonormal(Q)
        B = self.verbs.upper_solve(R, Qo.T @ Y)
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

    def holder(self, n):
        """How P of n rows is held: a class of holders, chosen once."""
        if n not in self._holders:
            kind = choose.holder(self, n)
            assert kind is not None
            self._holders[n] = kind
        return self._holders[n]

    def through_features(self, n):
        """Whether P of n rows is held through explicit features."""
        return self.holder(n).through_features

    def precision(self, rows, K=None):
        """P of the whitened problem on ``rows``, in the holder that suits it; K = gram(rows, rows) where known."""
        if self.more_columns:
            self.basis_of_Q(rows)  # complains where they are dependent
        return choose.precision(self, rows, K)

    def path(self, rows, n_alphas=None, *, explicit=False):
        """What serves every alpha: ``with_alpha`` gives P; of ``n_alphas``, as arrays if ``explicit``."""
        return choose.path(self, rows, n_alphas, explicit=explicit)

    def whitened_columns(self, rows):
        return self.root_w[rows, None] * self.Q[rows]

    def whitened_features(self, rows):
        """W^1/2 Phi of ``rows``, dense."""
        Phi = self.root(rows) * self.features(rows)
        self._check_size(self.verbs.dots(Phi, Phi))
        return Phi

    def whitened_gram(self, rows, K=None):
        """A new W^1/2 K W^1/2 of ``rows``; K = gram(rows, rows) where known."""
        with np.errstate(over="ignore", invalid="ignore"):  # reported by _check_size, with a way out
            S = self.gram(rows, rows) if K is None else self.verbs.copy(K)
            if self.weighted:
                root = self.root_w[rows]
                S = self.verbs.scale_(S, root, root)
        self._check_size(self.verbs.diagonal(S))
        return S

    def _check_size(self, diagonal):
        """No entry of a Gram matrix exceeds its diagonal; sums of n of them must not overflow either."""
        with np.errstate(over="ignore"):
            safe = self.xp.isfinite(self.verbs.largest(diagonal) * 8 * len(diagonal))
        if not safe:
            raise ValueError(
                f"the kernel matrix of {len(diagonal)} rows overflows in {self.dtype}: its diagonal reaches"
                f" {float(self.verbs.largest(diagonal)):.3g} with {self.kernel!r}. Rescale X (for instance with"
                " sklearn.preprocessing.StandardScaler)."
            )


def _roots(sample_weight, Q):
    """Square roots of the weights of the rows of Q."""
    return linalg.like(Q, np.sqrt(linalg.to_host(sample_weight)))


def _mean_of_features(active, table):
    """Mean of the features of rows of positive weight; None for sparse ones."""
    Phi = table.value
    return None if sp.issparse(Phi) else linalg.namespace(Phi).mean(Phi[active], axis=0)


def _mean_diagonal(kernel, X, active, shift, table, xp):
    """Mean of the diagonal of the kernel, of features without their mean ``shift`` unless that is None."""
    if shift is not None:
        Phi = _rows_of(table.value, active) - shift
        return float(xp.mean(linalg.dots(Phi, Phi)))
    if kernel.approximates:  # features of about 100 rows tell
        active = active[:: max(1, len(active) // 100)]
    return float(xp.mean(kernel.diag(_rows_of(X, active))))


def _rows_of(table, rows):
    """These rows of an array; the array itself for all of them in order."""
    n = table.shape[0]
    return table if len(rows) == n and np.array_equal(rows, np.arange(n)) else table[rows]
