"""What a permutation test is given: members of a family, splits, and the sets within which labels are exchangeable."""

import warnings
from numbers import Integral

import numpy as np

from foldless.bridge.candidates import row_numbers
from foldless.estimators.checks import check_option
from foldless.model_selection._labelings import last_step
from foldless.model_selection._permutation_way import has_class_weights

WEIGHTS = (None, "fixed", "permuted")


def family_members(X):
    """The members of a family of tests, or None for one test."""
    if hasattr(X, "get_data") and not hasattr(X, "shape"):
        raise ValueError(f"X is {type(X).__name__}; give its array, X.get_data(), of shape (epochs, channels, times).")
    if isinstance(X, list | tuple) and len(X) and all(len(getattr(each, "shape", ())) == 2 for each in X):
        rows = {np.shape(each)[0] for each in X}
        if len(rows) > 1:
            raise ValueError(f"X: the matrices of a family have {sorted(rows)} rows; all must have the same.")
        return list(X)
    if np.ndim(X) == 3:
        X = np.asarray(X)
        if not X.shape[2]:
            raise ValueError(f"X of shape {X.shape} holds no member: its third axis is empty.")
        return [np.ascontiguousarray(X[:, :, time]) for time in range(X.shape[2])]
    if np.ndim(X) > 3:
        raise ValueError(f"X has {np.ndim(X)} axes; two (one test) or three (samples, features, times) are possible.")
    return None


def stacked(members):
    """The members of a family as one array, which processes share."""
    shapes = {np.shape(each) for each in members}
    if len(shapes) > 1:
        raise ValueError(f"generalise=True needs members of the same features; X has shapes {sorted(shapes)}.")
    return np.stack([each.toarray() if hasattr(each, "toarray") else np.asarray(each) for each in members])


def check_arguments(y, n_permutations, scoring, weights, memory_limit):
    if y is None:
        raise ValueError("y=None: there are no labels to permute.")
    if not isinstance(n_permutations, Integral) or isinstance(n_permutations, bool) or n_permutations < 1:
        raise ValueError(f"n_permutations={n_permutations!r} must be a positive integer.")
    if not (scoring is None or isinstance(scoring, str) or callable(scoring)):
        raise ValueError(f"scoring={scoring!r} names several metrics; permutation_test_score takes one.")
    check_option("weights", weights, WEIGHTS)
    if not isinstance(memory_limit, Integral) or memory_limit < 1:
        raise ValueError(f"memory_limit={memory_limit!r} must be a positive number of bytes.")


def checked_strata(strata, n):
    """Strata as an array of n entries, or None."""
    if strata is None:
        return None
    strata = np.asarray(strata)
    if strata.shape != (n,):
        raise ValueError(f"strata has shape {strata.shape}; give one entry for each of the {n} rows of X.")
    if (strata != strata).any():
        raise ValueError("strata holds NaN; give every row a stratum.")
    return strata


def is_partition(splits, n):
    """Whether every row is tested once."""
    tested = np.concatenate([test for _, test in splits])
    return len(tested) == n and len(np.unique(tested)) == n


def moved_splits(splits, order):
    """Splits that go with the labels: row i takes the place of row order[i].

    Labels and splits together against the features: that is a permutation of the features, under which splits made from
    the labels stay as they are. For those whose test sets overlap there is no other way to keep them balanced.
    """
    place = np.argsort(order)
    return [(np.sort(place[train]), np.sort(place[test])) for train, test in splits]


def within_folds(splits, n, strata):
    """Strata crossed with the test sets of a stratified splitter.

    Splits that were balanced by the true labels are not balanced for labels permuted across them, which then score
    below chance: the true ones would look better than they are. Within test sets labels are exchangeable.
    """
    fold = np.empty(n, int)
    for number, (_, test) in enumerate(splits):
        fold[test] = number
    if strata is None:
        return fold
    pairs = np.column_stack([np.unique(strata, return_inverse=True)[1], fold])
    return np.unique(pairs, axis=0, return_inverse=True)[1].ravel()


def warn_of_fixed(estimator, weights):
    """Weights that were made from the true labels favour them."""
    if weights == "fixed" and has_class_weights(last_step(estimator)[1]):
        warnings.warn(
            "weights='fixed' keeps weights that were made from the true labels: permuted labels do not fit them as"
            " well, and p-values may be too small. Prefer weights=None, or no class weights and a balanced score.",
            UserWarning,
            stacklevel=3,
        )


def check_exchangeable(y, orders):
    """Permutations that never change a label test nothing."""
    y = np.asarray(y)
    if all((y[order] == y).all() for order in orders[1 : min(len(orders), 11)]):
        warnings.warn(
            "the permutations do not change the labels: y is constant within every group (or stratum). Where the label"
            " belongs to the group, test one row a group, averages say; otherwise pass strata= with larger sets of"
            " exchangeable rows.",
            UserWarning,
            stacklevel=3,
        )


def name_of(scoring):
    return scoring if isinstance(scoring, str) else getattr(scoring, "__name__", None) or str(scoring)


def drawn_splits(cv, X, y, split_params, order):
    """The splits of one labeling as row numbers."""
    labels = np.asarray(y)[order] if not np.array_equal(order, np.arange(len(order))) else y
    splits = row_numbers(cv.split(X, labels, **split_params), len(order))
    if not splits:
        raise ValueError("cv holds no split.")
    for number, (train, test) in enumerate(splits):
        if not len(test) or not len(train):
            raise ValueError(f"cv: split {number} trains on {len(train)} rows and tests {len(test)}.")
    return splits
