"""Fewer instances for large n: rows kept at random, or averages of rows of one class in kernel space.

An average is taken where the kernel works, in feature space, so its inner products are means of the kernel matrix:

    phi_a = 1/g_a sum_{i in a} phi(x_i)        K_avg = M K M',   M_ai = 1/g_a for the g_a members i of instance a

(Treder 2018, "kernel averaging", LNCS 11309; recommended for large n in Treder 2019, section 3). The mean of g
independent rows of a class has 1/g of their scatter about the class mean. Subsampling is M with one 1 in each row.

Neither K nor M is formed: the kernel is evaluated for a few rows at a time, at most ``BUDGET`` entries, and summed at
once; with a linear kernel the rows themselves are averaged. Cost: n^2/2 kernel values (n d operations with a linear
kernel), memory r^2 for r instances and the budget.
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils import check_array, check_consistent_length, check_random_state, check_X_y, column_or_1d, gen_batches
from sklearn.utils.multiclass import type_of_target

from foldless._engine.linalg.dispatch import require_memory
from foldless._engine.linalg.types import MatrixLike, RandomStateLike
from foldless.kernels.matrices import canonical
from foldless.kernels.registry import GammaLike, KernelLike, check_symmetric, resolve

__all__ = ["Reduced", "partition", "reduce_instances"]

BUDGET = 2**25  # kernel values held at once: 256 MiB of float64
GRAM = "the Gram matrix of the reduced instances"
ARRAYS = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}


class Reduced(NamedTuple):
    """Instances that stand for many rows, ready for an estimator with ``kernel="precomputed"``.

    Attributes
    ----------
    K : ndarray of shape (n_instances, n_instances), Gram matrix of the instances
    y : ndarray of shape (n_instances,), their labels (or values, where rows were kept)
    members : list of ndarray, the row numbers that each instance averages
    sizes : ndarray of shape (n_instances,)
        Their numbers, for use as ``sample_weight``: for a model f that is affine in feature space, the squared errors
        of the g rows of an instance add up to g times its own, plus the scatter of f within it.
    groups : ndarray of shape (n_instances,) or None, group of each instance, for splitters and permutations
    kernel : the kernel with its resolved parameters
    X : {ndarray, csr matrix} of shape (n_samples, n_features), the rows that were reduced
    """

    K: np.ndarray
    y: np.ndarray
    members: list
    sizes: np.ndarray
    groups: np.ndarray | None
    kernel: Any
    X: Any

    def gram(self, X_new: MatrixLike, members: Sequence[ArrayLike] | None = None) -> np.ndarray:
        """Kernel between new rows and the instances, which ``predict`` of an estimator fitted on ``K`` expects.

        Parameters
        ----------
        X_new : {array-like, sparse matrix} of shape (n_new, n_features)
            New rows; for a precomputed kernel, their kernel with all rows that were reduced.
        members : list of array-like of int, default=None
            Averages of these rows of ``X_new`` in place of the rows, for instance from :func:`partition`.
        """
        X_new = canonical(check_array(X_new, **ARRAYS))
        if X_new.shape[1] != self.X.shape[1]:
            raise ValueError(
                f"X_new has {X_new.shape[1]} columns and X had {self.X.shape[1]}; give new rows of the same features"
                " (for kernel='precomputed': their kernel with each of the rows that were reduced)."
            )
        n = X_new.shape[0]
        rows = np.arange(n)[:, None] if members is None else [np.asarray(rows) for rows in members]
        if len(rows) == 0 or not all(
            numbers.ndim == 1 and numbers.size and numbers.dtype.kind in "iu" and 0 <= min(numbers) <= max(numbers) < n
            for numbers in rows
        ):
            raise ValueError(f"members must hold row numbers of X_new, 0 to {n - 1}, at least one for each average.")
        require_memory((len(rows), len(self.members)), X_new.dtype, GRAM)
        if self.kernel.is_linear:
            return self.kernel.gram(_means(X_new, rows), _means(self.X, self.members))
        return _mean_blocks(lambda i, j: self.kernel.against(X_new[i], self.X, j), rows, self.members, X_new.dtype)


def reduce_instances(
    X: MatrixLike,
    y: ArrayLike,
    *,
    method: Literal["average", "subsample"] = "average",
    size: int | None = None,
    keep: float | None = None,
    kernel: KernelLike = "rbf",
    gamma: GammaLike = "scale",
    degree: int = 3,
    coef0: float = 1.0,
    groups: ArrayLike | None = None,
    random_state: RandomStateLike = None,
) -> Reduced:
    """Gram matrix and labels of fewer instances: averages of rows of one class in feature space, or a subsample.

    Cross-validation, tuning and permutations of the instances are exact *for them*: each held-out instance is predicted
    as by a refit on the others. They are not the numbers of the original rows; averages are easier to classify
    than single rows. To judge predictions of single rows, keep some aside and use :meth:`Reduced.gram`.

    Averages are made with the labels, before any split; a permutation test of them permutes the labels of instances,
    not of rows. It is valid where the labels of the rows are exchangeable and all instances average equally many
    rows. Averages of fewer rows scatter more: with unequal ``sizes``, permute among instances of equal size only.
    ``gamma="scale"`` is resolved on all rows.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The rows; for ``kernel="precomputed"`` their Gram matrix.
    y : array-like of shape (n_samples,), class labels; with ``method="subsample"`` also values of a regression
    method : {"average", "subsample"}, default="average"
        Average random sets of rows of the same class, or keep some of the rows, in the same proportions of classes and
        at least one of each.
    size : int, default=None
        Rows in an average, 5 by default; the rows of each class that are left over are spread, so that the instances of
        a class differ by at most one row.
    keep : int or float, default=None
        Rows that a subsample keeps, or their fraction in (0, 1]; 0.2 by default.
    kernel, gamma, degree, coef0 : as in the estimators
    groups : array-like of shape (n_samples,), default=None
        Rows that belong together. Rows of different groups are never averaged, so that splitting by the returned
        ``groups`` keeps every row of a group on one side.
    random_state : int, RandomState instance or None, default=None; draws the sets, or the rows that are kept

    Returns
    -------
    Reduced
        Named tuple of ``K``, ``y``, ``members``, ``sizes``, ``groups``, ``kernel`` and ``X``, with the method ``gram``.
        Instances come in the order of their first rows.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from foldless import KernelFisherDiscriminant
    >>> from foldless.model_selection import cross_val_score
    >>> from foldless.reduction import reduce_instances
    >>> X, y = load_digits(return_X_y=True)
    >>> few = reduce_instances(X[:1500], y[:1500], size=5, random_state=0)
    >>> few.K.shape
    (300, 300)
    >>> machine = KernelFisherDiscriminant(kernel="precomputed", alpha=0.01)
    >>> print(cross_val_score(machine, few.K, few.y, cv=10).mean().round(3))
    1.0
    >>> machine = machine.fit(few.K, few.y, sample_weight=few.sizes)
    >>> print(round(machine.score(few.gram(X[1500:]), y[1500:]), 3))
    0.936
    """
    rows, targets = check_X_y(X, y, **ARRAYS, multi_output=True)
    rows = canonical(rows)
    resolved = resolve(kernel, rows, gamma=gamma, degree=degree, coef0=coef0)
    if not resolved.takes_rows and rows.shape[0] != rows.shape[1]:
        raise ValueError(f"X has shape {rows.shape}; kernel='precomputed' expects the square Gram matrix of all rows.")
    together = None if groups is None else column_or_1d(groups)
    if together is not None:
        check_consistent_length(rows, together)
    if method == "average":
        if keep is not None:
            raise ValueError(f"keep={keep!r} is for method='subsample'; size= is the number of rows in an average.")
        members = partition(targets, size=5 if size is None else size, groups=together, random_state=random_state)
    elif method == "subsample":
        if size is not None:
            raise ValueError(
                f"size={size!r} is for method='average'; keep= is the number of rows to keep, or their share."
            )
        members = _subsample(targets, 0.2 if keep is None else keep, random_state)
    else:
        raise ValueError(f"method={method!r} is unknown; use 'average' or 'subsample'.")
    require_memory((len(members), len(members)), rows.dtype, GRAM)
    if resolved.is_linear:
        K = resolved.gram(_means(rows, members))
    else:
        sure = resolved.surely_symmetric
        K = _mean_blocks(lambda i, j: resolved.block(rows, i, j), members, members, rows.dtype, symmetric=sure)
        if not sure:
            check_symmetric(K, "the averaged Gram matrix")
    first = np.array([rows_of_instance[0] for rows_of_instance in members])
    groups_left = None if together is None else together[first]
    return Reduced(K, targets[first], members, _sizes(members), groups_left, kernel=resolved, X=rows)


def partition(
    y: ArrayLike, *, size: float = 5, groups: ArrayLike | None = None, random_state: RandomStateLike = None
) -> list[np.ndarray]:
    """Random sets of about ``size`` rows, each of one class and of one group.

    A class (in a group) of m rows makes m / size sets, rounded and at least one; their sizes differ by at most one.

    Parameters
    ----------
    y : array-like of shape (n_samples,), class labels
    size : int, default=5; rows in a set
    groups : array-like of shape (n_samples,), default=None; rows that may be together
    random_state : int, RandomState instance or None, default=None; draws the sets

    Returns
    -------
    list of ndarray : sorted row numbers of each set, in the order of their first rows

    Examples
    --------
    >>> from foldless.reduction import partition
    >>> members = partition([0, 0, 0, 1, 1, 1, 1], size=2, random_state=0)
    >>> sorted(map(len, members))
    [1, 2, 2, 2]
    """
    if not isinstance(size, int | np.integer) or isinstance(size, bool) or size < 1:
        raise ValueError(f"size={size!r} must be an integer >= 1, the number of rows that are averaged into one.")
    codes = _classes(y)
    if codes is None:
        raise ValueError(
            f"y holds {type_of_target(y)} targets and only rows of one class can be averaged;"
            " use method='subsample', or bin the values yourself."
        )
    cells = codes
    if groups is not None:
        groups = column_or_1d(groups)
        check_consistent_length(codes, groups)
        codes_of_groups = np.unique(groups, return_inverse=True)[1]
        cells = codes * (codes_of_groups.max() + 1) + codes_of_groups
    rng = check_random_state(random_state)
    members: list = []
    for cell in np.unique(cells):
        rows = rng.permutation(np.flatnonzero(cells == cell))
        members += map(np.sort, np.array_split(rows, max(1, (2 * len(rows) + size) // (2 * size))))
    return sorted(members, key=lambda rows: rows[0])


def _subsample(y, keep, random_state):
    """One row for each instance to ``keep``: every class in proportion, and at least once."""
    n = len(y)
    is_number = isinstance(keep, int | np.integer) and not isinstance(keep, bool) and 1 <= keep <= n
    is_share = isinstance(keep, float | np.floating) and 0 < keep <= 1
    if not (is_number or is_share):
        raise ValueError(
            f"keep={keep!r} must be the number of rows to keep, 1 to {n}, or their fraction, a float in (0, 1]."
        )
    codes = _classes(y)
    strata = np.zeros(n, int) if codes is None else codes
    counts = np.bincount(strata)
    n_kept = max(1, round(keep * n)) if is_share else keep
    if n_kept < len(counts):
        raise ValueError(
            f"keep={keep!r} keeps {n_kept} rows and y has {len(counts)} classes; keep one of each or more."
        )
    order = check_random_state(random_state).permutation(n)
    turn = np.empty(n)  # the j-th row of a class of m comes at j / m: any beginning of the queue is in proportion
    for code, count in enumerate(counts):
        turn[strata[order] == code] = np.arange(count) / count
    return [np.array([row]) for row in np.sort(order[np.argsort(turn, kind="stable")[:n_kept]])]


def _classes(y):
    """Codes 0, 1, ... of class labels; None for values of a regression."""
    if type_of_target(y, input_name="y") not in ("binary", "multiclass"):
        return None
    return np.unique(column_or_1d(y), return_inverse=True)[1]


def _means(X, members):
    """Means of the member rows, M X."""
    sizes = _sizes(members)
    M = sp.csr_array(
        (np.repeat(1.0 / sizes, sizes).astype(X.dtype), np.concatenate(members), np.r_[0, np.cumsum(sizes)]),
        shape=(len(members), X.shape[0]),
    )
    return M @ X


def _mean_blocks(gram, rows, columns, dtype, *, symmetric=False):
    """Means of the blocks rows x columns of a kernel matrix, of which ``gram(i, j)`` gives any part.

    Rows are processed in chunks; each chunk is summed over the members of the columns, then of the rows. A
    symmetric matrix is evaluated from the chunk's own instance on, and mirrored.
    """
    i, j = np.concatenate(rows), np.concatenate(columns)
    sizes, widths = _sizes(rows), _sizes(columns)
    owner = np.repeat(np.arange(len(rows)), sizes)
    starts = np.cumsum(widths) - widths
    K = np.zeros((len(rows), len(columns)), dtype)
    for chunk in gen_batches(len(i), max(1, BUDGET // len(j))):
        mine = owner[chunk]
        first = mine[0] if symmetric else 0
        part = np.add.reduceat(gram(i[chunk], j[starts[first] :]), starts[first:] - starts[first], axis=1)
        K[mine[0] : mine[-1] + 1, first:] += np.add.reduceat(part, np.flatnonzero(np.diff(mine, prepend=-1)), axis=0)
    K /= sizes[:, None]
    K /= widths
    if symmetric:
        for a in range(1, len(K)):
            K[a, :a] = K[:a, a]
    return K


def _sizes(members):
    return np.array([len(rows) for rows in members])
