"""A regularised least-squares problem without its targets: from rows, kernel and weights to P.

    minimise  sum_i w_i (y_i - f(x_i))^2 + alpha |f|^2,     f(x) = k(x)' beta + q(x)' B

The norm |f| is that of the kernel, and S its Gram matrix K; another norm is another kernel
(``kernels.BasisFunctions``). ``precision.choose`` decides how P is held.

Weights enter by whitening: W^1/2 S W^1/2, W^1/2 Q, W^1/2 Y. Rows of weight 0 stay outside.

Q holds an intercept (a column of ones) and confounds. Scores leave out what the last ``n_confounds`` columns explain by
themselves (``heldout.confounds``).
"""

from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.extmath import row_norms

from foldless.heldout.rows import KernelRows, Lazy, equal_rows
from foldless.linalg import eigenvalues, norm, orthonormal, thin_qr, upper_solve
from foldless.precision import choose, cost
from foldless.precision.base import SingularBlockError

OWN = {"kernel", "X", "alpha", "Q", "n_confounds", "origin", "root_w", "shift"}  # others follow
SHARED = ("table", "equal")  # what problems on the same rows compute once, when it is first needed


class Problem(KernelRows):
    """Everything that is known before the targets. Frozen: ``replace`` and its relatives give another one.

    Parameters
    ----------
    kernel : kernel of ``foldless.kernels``
    X : array or sparse matrix of shape (n, d); the Gram matrix itself for ``Precomputed``
    alpha : penalty > 0
    Q : array of shape (n, q), the unpenalised columns (ones: an intercept)
    sample_weight : array of shape (n,) or None
    n_confounds : number of trailing columns of Q whose part the scores leave out
    origin : what was subtracted from each of the confounds that are in Q, near their mean, for the rounding's sake

    The other fields follow from these, unless they are kept from another problem: the number of intercepts (0 or 1),
    whether Q holds ``more_columns``, the number ``n_shown`` of those before the confounds, square roots ``root_w`` of
    the weights, the ``active`` rows of positive weight, the mean of the features that is taken out of them
    (``shift``), features (``table``) and ``equal`` rows of X and Q.
    """

    def __init__(self, kernel, X, alpha, Q, sample_weight=None, n_confounds=0):
        fields = {"kernel": kernel, "X": X, "alpha": alpha, "Q": Q, "n_confounds": n_confounds}
        fields["origin"] = np.zeros(n_confounds)
        fields["intercept"] = int(Q.shape[1] > n_confounds and (Q[:, 0] == 1).all())
        # With an intercept P sees no constants: taking the mean out of features only improves the rounding. Those that
        # approximate a kernel are of size 1, and not wanted for all rows before they are asked for.
        centred = fields["intercept"] and not kernel.approximates
        fields["shift"] = "mean" if centred else None
        self._set(fields | {"root_w": _roots(sample_weight, X)}, OWN)

    def _set(self, fields, changed):
        """Put these fields in, and what follows from those that have changed."""
        known = vars(self)
        known.update(fields)
        if "root_w" in changed:
            known["active"] = np.flatnonzero(self.root_w)
        if not changed.isdisjoint(("kernel", "X")):
            known["table"] = Lazy(self.kernel.features, self.X)
        if "X" in changed:
            known.update(n=self.X.shape[0], dtype=self.X.dtype)
        if not changed.isdisjoint(("X", "Q", "n_confounds")):
            q = self.Q.shape[1]
            known["more_columns"] = q > self.intercept  # a constant is always determined, other columns may not be
            known["n_shown"] = q - self.n_confounds
            more = self.Q[:, self.intercept :]
            known["equal"] = Lazy(equal_rows, self.X, more) if more.shape[1] else Lazy(equal_rows, self.X)
        if isinstance(self.shift, str):
            dense = self.has_features and not sp.issparse(self.table.value)
            known["shift"] = self.table.value[self.active].mean(0) if dense else None

    def __getstate__(self):
        """What the other fields follow from, and what took time: pickles hold no functions, and nothing n x n."""
        state = {name: getattr(self, name) for name in (*sorted(OWN), "intercept")}
        kept = [name for name in SHARED if name != "table" or not self.kernel.squares_condition]
        lazy = {name: vars(getattr(self, name)) for name in kept}
        return state | {"computed": {name: known["value"] for name, known in lazy.items() if "value" in known}}

    def __setstate__(self, state):
        if "computed" not in state:  # of an earlier version, which the estimator around it refuses
            vars(self).update(state)
            return
        self._set({name: value for name, value in state.items() if name != "computed"}, OWN)
        for name, value in state["computed"].items():
            getattr(self, name).value = value

    # -- other problems --------------------------------------------------------------------------------------------

    def replace(self, **changes: Any) -> Self:
        """The same problem with other fields; what is known of rows and kernel stays, unless these change."""
        if not changes.keys() <= OWN:
            raise TypeError(f"a problem has no {sorted(changes.keys() - OWN)}")
        other = object.__new__(type(self))
        fields = {**vars(self), **changes}
        if changes.keys() - {"alpha"}:
            fields.pop("mean_diagonal", None)
        if "kernel" in changes and self.shift is not None and "shift" not in changes:
            fields["shift"] = "mean"
        other._set(fields, changes.keys())
        return other

    def _on_rows(self, features, **changes):
        """The problem on other rows, whose features are ``features()`` of these where they are known."""
        other = self.replace(**changes)
        if "value" in vars(self.table) and not self.kernel.is_linear:  # features of a linear kernel are X itself
            other.table.value = features(self.table.value)
        return other

    def subset(self, rows, **changes):
        """The same problem on these rows alone: kernel parameters, shift and all stay as they were resolved."""
        changes |= {"X": self.kernel.rows(self.X, rows), "Q": self.Q[rows], "root_w": self.root_w[rows]}
        return self._on_rows(lambda known: known[rows], **changes)

    def extended(self, X, Q):
        """The problem with the rows X and Q behind its own, all of weight 1 until told otherwise."""
        kernel = self.kernel
        changes = {"X": kernel.joined(self.X, X), "Q": np.concatenate([self.Q, Q]), "shift": None}
        changes["root_w"] = _roots(None, changes["X"])
        return self._on_rows(lambda known: kernel.joined(known, kernel.features(X)), **changes)

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
        other.span(other.active)  # complains where they are dependent
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

    # -- rows and columns ------------------------------------------------------------------------------------------

    def root(self, rows):
        """Square roots of the weights of these rows, as a column."""
        return self.root_w[rows][:, None]

    @property
    def weighted(self):
        """Whether rows of positive weight differ from weight 1."""
        return not (self.root_w[self.active] == 1).all()

    def unpenalised_part(self, rows, B):
        """q' B of these rows."""
        return self.Q[rows] @ B if self.more_columns else B.sum(0)  # the same for all rows

    def span(self, rows):
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
        Qo = self.span(rows)[members]
        kept = eigenvalues(np.eye(members.shape[1], dtype=Qo.dtype) - Qo @ Qo.transpose(0, 2, 1))[:, 0]
        if kept.min() > 16 * Qo.shape[2] * np.finfo(Qo.dtype).eps:
            return
        worst = members[kept.argmin()]
        try:
            self.span(np.delete(rows, worst))
        except SingularBlockError as error:  # says which column
            names = ", ".join(map(str, rows[worst].tolist()))
            raise SingularBlockError(f"without row{'s' * (len(worst) > 1)} {names}: {error}") from None
        raise SingularBlockError.of(worst, len(rows))

    def beyond_unpenalised(self, rows, Y):
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

    @cached_property
    def mean_diagonal(self):
        """Mean of the diagonal of the kernel, of centred features where these are centred."""
        if self.shift is not None:
            return float(np.mean(row_norms(self.features(self.active), squared=True)))
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
            self.span(rows)  # complains where they are dependent
        return choose.precision(self, rows, K)

    def path(self, rows, n_alphas=None, *, explicit=False):
        """What serves every alpha: ``with_alpha`` gives P; of ``n_alphas``, as arrays if ``explicit``."""
        return choose.path(self, rows, n_alphas, explicit=explicit)

    def whitened_columns(self, rows):
        return self.root(rows) * self.Q[rows]

    def whitened_features(self, rows):
        """W^1/2 Phi of ``rows``, dense."""
        Phi = self.root(rows) * self.features(rows)
        self._check_size(row_norms(Phi, squared=True))
        return Phi

    def whitened_gram(self, rows, K=None):
        """A new W^1/2 K W^1/2 of ``rows``; K = gram(rows, rows) where known."""
        root = self.root(rows)
        with np.errstate(over="ignore", invalid="ignore"):  # reported by _check_size, with a way out
            S = self.gram(rows, rows) if K is None else K.copy()
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


def _roots(sample_weight, X):
    """Square roots of the weights of the rows of X."""
    return np.ones(X.shape[0], X.dtype) if sample_weight is None else np.sqrt(sample_weight).astype(X.dtype)
