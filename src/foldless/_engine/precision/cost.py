"""What the ways of the algebra cost, and which of them is taken: the only place that counts flops and bytes.

n rows, t of them left out, k = n - t of them kept, r explicit features. Flops are those of a matrix product; what runs
slower counts as more of them. All ways are exact, so that costs only decide which one is taken.

    Cholesky factor of k rows      k^3 / 3, its inverse as much again, P as an array once more
    eigenvectors of n rows         10 n^3, for all alphas
    fit by r features              6 k r^2
    t of n rows out of P           n t^2 + t^3 / 3, and 2 n t^2 more for leave-one-out inside the training part
"""

import numpy as np

EIGENDECOMPOSITION = 10.0  # n^3 flops
FACTOR = 1.3  # n^3 flops of a factor and its inverse, as one of many
EXPLICIT_FROM_FACTOR, EXPLICIT_FROM_EIGENVECTORS = 0.5, 1.1  # n^3 flops of P as an array
STEPS_OF_FACTOR = 2e7  # flops in the time that Python takes for one factor
STEPS_OF_SPLIT = 5e6  # flops in the time of the small steps of one split
STEPS_OF_FIT = 3e6  # flops in the time that a training part takes by itself, beside its algebra

FEW_ROWS, SMALL_SET = 1000, 64  # rows up to which P is quickly an array, and of a set that is no quicker by itself
MANY_EXPLICIT = 4000  # rows whose P is written out for updates, where explicit features would do
SMALL_ALPHA = 1e-4  # of the mean diagonal: an explicit P of features would lose digits
LOSING_ALPHA = 1e-5  # of the mean diagonal: where S has no full rank, one update in four would lose its digits
MOST_SOLVED = 10  # fits of all rows that held-out sets without digits may take
FEW_MODELS = 64  # rows up to which the model without each of them is quickly solved by itself


# -- training parts ----------------------------------------------------------------------------------------------------


def fit(kernel, X, k, *, through_features, nested=False):
    """Flops of a fit on k rows; ``nested``: with leave-one-out inside."""
    r = kernel.n_features(X)
    if through_features:
        return 6.0 * k * r**2
    features = k**2 * r if kernel.approximates else 0.0  # S is a product of them
    return k**3 / 3 * (2 if nested else 1) + features


def removal(kernel, X, n, t, *, through_features, nested=False):
    """Flops of leaving t of n rows out of the P of all; ``nested``: with leave-one-out among the others."""
    if not through_features:
        return n * t**2 + t**3 / 3 + (2.0 * n * t**2 if nested else 0.0)
    r = kernel.n_features(X)
    smaller = min(t, r)
    return t * smaller * r + smaller**3 / 3 + (2.0 * n * t**2 + 2.0 * n * t * r if nested else 0.0)


def batches_pay(n, sizes, *, through_features):
    """Whether sets of these sizes are left out of n rows as batches of small systems, not one by one.

    Single rows are, and so are sets that overlap, as they are many: these are worth P as an array.
    """
    largest = sizes.max()
    if largest == 1 or len(sizes) >= n or sizes.sum() >= 4 * n:
        return True
    small = largest <= SMALL_SET and (n <= FEW_ROWS or through_features)
    return small and len(sizes) >= 2 * len(np.unique(sizes))


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


def update_pays(n, t, n_features, alpha, mean_diagonal, *, through_features):
    """Whether an update by t rows is preferred to a new factorisation, n being the rows that stay.

    ``n_features`` is None where S has full rank, and 1 / alpha no eigenvalue of P. Elsewhere updates lose their digits
    at a small alpha so often that new factorisations take no more time. Few features that P is held through are solved
    anew in less time. Those of many rows have a way of their own (:func:`sums_pay`).
    """
    if not 0 < 2 * t <= n:
        return False
    if n_features is None:
        return True
    if not through_features:
        return alpha >= LOSING_ALPHA * mean_diagonal
    return 6 * n_features**2 > n and n <= MANY_EXPLICIT and alpha >= SMALL_ALPHA * mean_diagonal


def sums_pay(n, n_features):
    """Whether n rows are so many that sums of explicit features over them are updated in the place of P."""
    return n_features is not None and n > MANY_EXPLICIT


def models_without_each_row_pay(n):
    """Whether the models without one of n rows, of whose fits P has lost the digits, are solved by themselves."""
    return n <= FEW_MODELS


def solving_alone_pays(n, t, n_sets):
    """Whether sets of t rows that P has lost the digits of may be solved by themselves, without much more work."""
    return t >= 2 and n_sets * (n - t) ** 3 <= MOST_SOLVED * n**3


# -- memory ------------------------------------------------------------------------------------------------------------


def arrays_of_P(kernel, *, left_out=0.0, nested=False):
    """n x n arrays held at a time where a share ``left_out`` of the rows is left out of P.

    Beside the Gram matrix of features that are made of a kernel lie the features, and a copy of them.
    """
    return 1 + 2 * kernel.approximates + nested + left_out
