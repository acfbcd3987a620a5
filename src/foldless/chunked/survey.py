"""A first look at all rows: how many there are, the classes and their masses, folds, and a sample of the rows.

The sample is that of the rows with the smallest random words (``hashing``): uniform without replacement, the same for
any chunks, and that of two parts of the rows follows from theirs. Only rows of positive weight are drawn.
"""

from dataclasses import dataclass

import numpy as np

from foldless.chunked.hashing import checksum, row_words
from foldless.chunked.rows import CheckedRows, joined
from foldless.estimators.classifier import join_labels

SALT = 1  # the sample is drawn independently of the folds


@dataclass(frozen=True)
class Survey:
    """What is known of some rows; ``merged_surveys`` joins two.

    ``classes`` have ``counts`` rows and ``masses`` (sums of sample weights); ``folds`` are the names of given folds.
    """

    n_rows: int
    checksum: np.ndarray
    classes: np.ndarray
    counts: np.ndarray
    masses: np.ndarray
    folds: np.ndarray
    sample: CheckedRows


def survey_of(rows, labels, size, seed):
    """What is known of these rows, with a sample of at most ``size`` of them."""
    weights = rows.sample_weight
    classes: np.ndarray = np.empty(0)
    counts: np.ndarray = np.empty(0)
    masses: np.ndarray = np.empty(0)
    if labels:
        classes, places = np.unique(rows.y, return_inverse=True)
        counts = np.bincount(places, minlength=len(classes)).astype(float)
        masses = counts if weights is None else np.bincount(places, weights, minlength=len(classes))
    folds = np.empty(0) if rows.folds is None else np.unique(rows.folds)
    sample = rows if weights is None else rows.taken(np.flatnonzero(weights > 0))
    return Survey(len(rows), checksum(rows), classes, counts, masses, folds, _sampled(sample, size, seed))


def merged_surveys(first, second, size, seed):
    """That of the rows of both; the sample has at most ``size`` rows."""
    classes = np.unique(join_labels(first.classes, second.classes))
    sums = {}
    for name in ("counts", "masses"):
        sums[name] = np.zeros(len(classes))
        for each in (first, second):
            sums[name][np.searchsorted(classes, each.classes)] += getattr(each, name)
    return Survey(
        n_rows=first.n_rows + second.n_rows,
        checksum=first.checksum + second.checksum,
        classes=classes,
        **sums,
        folds=np.unique(join_labels(first.folds, second.folds)),
        sample=_sampled(joined([first.sample, second.sample]), size, seed),
    )


def _sampled(rows, size, seed):
    """The rows with the smallest words, in the order of their numbers."""
    chosen = np.argsort(row_words(rows.numbers, seed + SALT))[:size]
    return rows.taken(chosen[np.argsort(rows.numbers[chosen])])
