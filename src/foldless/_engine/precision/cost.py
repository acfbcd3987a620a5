"""What the ways of the algebra cost, and which of them is taken: the only place that counts flops and bytes.

n rows, t of them left out, k = n - t of them kept, r explicit features, m targets. Flops are those of a matrix product;
what runs slower counts as more of them. All ways are exact, so that costs only decide which one is taken.

    Cholesky factor of k rows      k^3 / 3, its inverse as much again, P as an array once more
    eigenvectors of n rows         10 n^3, for all alphas
    fit by r features              6 k r^2
    t of n rows out of P           n t^2 + t^3 / 3, and 2 n t^2 more for leave-one-out inside the training part

A holder of P states its own costs (``Precision.fit_cost``, ``removal_cost``); those of n x n arrays and of features are
here. Memory is counted in arrays that are held at the same time, by one function for each purpose, which raises
MemoryError before the work begins.
"""

import numpy as np

from foldless._engine.linalg.dispatch import require_memory

FLOPS_PER_SECOND = 7e10  # of two processors, in double precision: 30,000 rows are factorised in about two minutes
EIGENDECOMPOSITION = 10.0  # n^3 flops
FACTOR = 1.3  # n^3 flops of a factor and its inverse, as one of many
EXPLICIT_FROM_FACTOR, EXPLICIT_FROM_EIGENVECTORS = 0.5, 1.1  # n^3 flops of P as an array
STEPS_OF_FACTOR = 2e7  # flops in the time that Python takes for one factor
STEPS_OF_SPLIT = 5e6  # flops in the time of the small steps of one split
STEPS_OF_FIT = 3e6  # flops in the time that a training part takes by itself, beside its algebra

FEW_ROWS, SMALL_SET = 1000, 64  # rows up to which P is quickly an array, and of a set that is no quicker by itself
MAX_ENTRIES = 2**22  # entries of an intermediate array
MANY_EXPLICIT = 4000  # rows whose P is written out for updates, where explicit features would do
SMALL_ALPHA = 1e-4  # of the mean diagonal: an explicit P of features would lose digits
LOSING_ALPHA = 1e-5  # of the mean diagonal: where S has no full rank, one update in four would lose its digits
MOST_SOLVED = 10  # fits of all rows that held-out sets without digits may take
FEW_MODELS = 64  # rows up to which the model without each of them is quickly solved by itself
FEW_OTHERS = 1 / 3  # of the rows: other weights, up to which P of equal weights is updated for them

ARRAYS_OF_EIGENVECTORS = 3  # S becomes its eigenvectors, and LAPACK wants twice as much beside it
ARRAYS_OF_QR = 3  # held while the factors are made
ARRAYS_OF_UPDATES = 3  # P, M, and the square that holds both
ARRAYS_OF_GRADIENT = 5  # K, its factor, P, and two products


def seconds(flops, dtype):
    """Time of so many flops on two processors."""
    return flops / FLOPS_PER_SECOND * np.dtype(dtype).itemsize / 8


# -- fits, and sets left out of them -----------------------------------------------------------------------------------


def dense_fit(k, r=None, *, nested=False):
    """Flops of a fit on k rows by n x n arrays; ``nested``: with leave-one-out inside.

    S is a product of r features, or made by the kernel (None).
    """
    product = 0.0 if r is None else k**2 * r
    return k**3 / 3 * (2 if nested else 1) + product


def dense_removal(n, t, *, nested=False):
    """Flops of leaving t of n rows out of P; ``nested``: with leave-one-out among the others."""
    return n * t**2 + t**3 / 3 + (2.0 * n * t**2 if nested else 0.0)


def feature_fit(k, r):
    """Flops of a fit on k rows by r features."""
    return 6.0 * k * r**2


def feature_removal(n, t, r, *, nested=False):
    """Flops of leaving t of n rows out of a fit by r features; ``nested``: with leave-one-out among the others."""
    smaller = min(t, r)
    return t * smaller * r + smaller**3 / 3 + (2.0 * n * t**2 + 2.0 * n * t * r if nested else 0.0)


def features_pay(n, r):
    """Whether a fit of n rows by r features takes less than one by n x n arrays: 6 n r^2 against 2/3 n^3 flops."""
    return 3 * r <= n


def of_training_parts(fit, alone, removal, counts, *, nested):
    """(flops of P of all rows, out of which sets are left; of a fit of every training part).

    ``fit`` are the flops of the fit of all rows, ``alone`` and ``removal`` those of a training part by itself and out
    of P, by size of the set; ``counts`` says how many sets have a size.
    """
    shared, each_alone = fit * (3 if nested else 2), 0.0  # its inverse, and P as an array where nested
    for t, count in counts.items():
        shared += count * min(alone[t], removal[t])
        each_alone += count * alone[t]
    return shared, each_alone


def batches_pay(n, counts, *, through_features):
    """Whether sets of these sizes, so many of each, are left out of n rows as batches of small systems.

    Single rows are, and so are sets that overlap, as they are many: these are worth P as an array.
    """
    largest, n_sets, n_rows = max(counts, default=0), 0, 0
    for t, count in counts.items():
        n_sets += count
        n_rows += t * count
    if largest == 1 or n_sets >= n or n_rows >= 4 * n:
        return True
    small = largest <= SMALL_SET and (n <= FEW_ROWS or through_features)
    return small and n_sets >= 2 * len(counts)


def batch_size(n, t, m):
    """How many sets of t of n rows with m targets are left out together: single rows all at once."""
    return n if t == 1 else max(1, MAX_ENTRIES // max(1, t**2 * m))


# -- alphas ------------------------------------------------------------------------------------------------------------


def factors(n, n_alphas, *, explicit):
    """Flops of a factor for every alpha; ``explicit``: with P as an array."""
    return n_alphas * ((FACTOR + explicit * EXPLICIT_FROM_FACTOR) * n**3 + STEPS_OF_FACTOR)


def eigenvectors(n, n_alphas, *, explicit):
    """Flops of the eigenvectors that serve every alpha."""
    return (EIGENDECOMPOSITION + explicit * n_alphas * EXPLICIT_FROM_EIGENVECTORS) * n**3


def factors_pay(n, n_alphas, *, explicit):
    """Whether a factor for every alpha takes fewer operations than the eigenvectors."""
    return factors(n, n_alphas, explicit=explicit) < eigenvectors(n, n_alphas, explicit=explicit)


def path(n, n_alphas, *, explicit):
    """Flops of P for every alpha by the cheaper way."""
    return np.minimum(factors(n, n_alphas, explicit=explicit), eigenvectors(n, n_alphas, explicit=explicit))


def from_one_P(n, sizes, n_alphas, *, inner_folds):
    """Flops of one P for each alpha, and of training parts of these ``sizes`` from it.

    ``inner_folds`` says that more than leave-one-out is wanted inside them.
    """
    left_out = n - sizes
    split = 2 * n * left_out**2 + (2 * sizes**2 * left_out if inner_folds else 0.0) + STEPS_OF_SPLIT
    return path(n, n_alphas, explicit=True) + n_alphas * np.sum(split)


def paths_of_parts(sizes, n_alphas):
    """Flops of a path of every training part by itself."""
    return np.sum(path(sizes, n_alphas, explicit=False))


# -- updates -----------------------------------------------------------------------------------------------------------


def update_pays(n, t, r, alpha, mean_diagonal, *, through_features):
    """Whether an update by t rows is preferred to a new factorisation, n being the rows that stay.

    r is None where S has full rank, and 1 / alpha no eigenvalue of P. Elsewhere updates lose their digits
    at a small alpha so often that new factorisations take no more time. Few features that P is held through are solved
    anew in less time. Those of many rows have a way of their own (:func:`sums_pay`).
    """
    if not 0 < 2 * t <= n:
        return False
    if r is None:
        return True
    if not through_features:
        return alpha >= LOSING_ALPHA * mean_diagonal
    return 6 * r**2 > n and n <= MANY_EXPLICIT and alpha >= SMALL_ALPHA * mean_diagonal


def sums_pay(n, *, through_features):
    """Whether n rows are so many that sums of explicit features over them are updated in the place of P."""
    return through_features and n > MANY_EXPLICIT


def reweighting_pays(n, n_others):
    """Whether P of equal weights is updated for so many of n rows that have others: n |R|^2 flops against n^3."""
    return 0 < n_others <= FEW_OTHERS * n


def models_without_each_row_pay(n):
    """Whether the models without one of n rows, of whose fits P has lost the digits, are solved by themselves."""
    return n <= FEW_MODELS


def solving_alone_pays(n, t, n_sets):
    """Whether sets of t rows that P has lost the digits of may be solved by themselves, without much more work."""
    return t >= 2 and n_sets * (n - t) ** 3 <= MOST_SOLVED * n**3


def columns_of_sets_pay(n, m, n_sets):
    """Whether derivatives by n_sets sets of m targets go by their columns: fewer than P V P has."""
    return n_sets * m <= n // 2


def qr_factors(n):
    """(flops, n x n arrays) of the QR factorisation of (n + 1) x n numbers, Q included."""
    return 8 * n**3 / 3, ARRAYS_OF_QR


# -- memory ------------------------------------------------------------------------------------------------------------


def arrays_of_P(kernel, *, left_out=0.0, as_array=False):
    """n x n arrays held at a time where a share ``left_out`` of the rows is left out of P; ``as_array``: beside P.

    Beside the Gram matrix of features that are made of a kernel lie the features, and a copy of them.
    """
    return 1 + 2 * kernel.approximates + as_array + left_out


def require_P(n, A, arrays):
    """Memory for P of all n rows and what is held beside it while sets are left out: ``arrays`` like A."""
    require_memory((n, n), A, "the matrix P of all rows, from which some are left out", arrays)


def require_P_and_factor(n, A, kernel):
    """Memory for P as an array of the kind of A, made from a factor."""
    require_memory((n, n), A, "the matrix P and its factor", arrays_of_P(kernel, as_array=True))


def require_explicit(n, A):
    """Memory for P as an array, of the kind and precision of A, beside what it is made from."""
    require_memory((n, n), A, "P, the matrix of the fit,")


def require_square(size, dtype):
    """Memory for P of rows that come and go, in a square with spare slots."""
    require_memory((size, size + 1), dtype, "P, the matrix of the fit, with room to grow")


def require_updates(n, dtype):
    """Memory for P that becomes one of rows that come and go."""
    require_memory((n, n), dtype, "P, the matrix of the fit, as it is updated,", ARRAYS_OF_UPDATES)


def require_gram(shape, A, *, features_too=False):
    """Memory for a kernel matrix of the kind of A, and for features of its shape that it is a product of."""
    require_memory(shape, A, "the kernel matrix", 1 + features_too)


def require_dense(shape, dtype):
    """Memory for sparse features as a dense array."""
    require_memory(shape, dtype, "the features as a dense array")


def require_eigenvectors(n, A):
    """Memory for the eigenvectors of n rows, of the kind of A."""
    require_memory((n, n), A, "the eigendecomposition of the kernel matrix", ARRAYS_OF_EIGENVECTORS)


def require_qr(n):
    """Memory for the QR factorisation of n rows."""
    require_memory((n, n), np.float64, "the QR factorisation", ARRAYS_OF_QR)


def require_gradient(n, dtype):
    """Memory for the derivatives by a kernel of n rows."""
    require_memory((n, n), dtype, "the derivatives by the kernel", ARRAYS_OF_GRADIENT)


def require_orders(n_permutations, n):
    """Memory for the row numbers of so many permutations of n rows."""
    require_memory((n_permutations, n), np.int32, "the row numbers of the permutations")
