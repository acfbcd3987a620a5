"""A first look at all rows: how many there are, the classes and their masses, folds, and a sample of the rows.

The sample is that of the rows with the smallest random words (``hashing``): uniform without replacement, the same for
any chunks, and that of two parts of the rows follows from theirs. Only rows of positive weight are drawn.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from foldless.chunked.hashing import checksum, row_words
from foldless.estimators.classifier import join_labels

SALT = 1  # the sample is drawn independently of the folds


@dataclass(frozen=True)
class Survey:
    """What is known of some rows; ``merged_surveys`` joins two.

    ``classes`` have ``counts`` rows and ``masses`` (sums of sample weights); ``folds`` are the names of given folds.
    The sample has the rows ``numbers`` with their ``words``, in the order of the rows.
    """

    n_rows: int
    checksum: np.ndarray
    classes: np.ndarray
    counts: np.ndarray
    masses: np.ndarray
    folds: np.ndarray
    words: np.ndarray
    numbers: np.ndarray
    X: Any
    y: np.ndarray
    sample_weight: np.ndarray | None


def merged_surveys(first, second, size):
    """That of the rows of both; the sample has at most ``size`` rows."""
    classes = np.unique(join_labels(first.classes, second.classes))
    sums = {}
    for name in ("counts", "masses"):
        sums[name] = np.zeros(len(classes))
        for each in (first, second):
            sums[name][np.searchsorted(classes, each.classes)] += getattr(each, name)
    sample = {name: _stacked(getattr(first, name), getattr(second, name)) for name in SAMPLED}
    return Survey(
        n_rows=first.n_rows + second.n_rows,
        checksum=first.checksum + second.checksum,
        classes=classes,
        **sums,
        folds=np.unique(join_labels(first.folds, second.folds)),
        **_smallest(sample, size),
    )


SAMPLED = ("words", "numbers", "X", "y", "sample_weight")


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
    numbers = np.arange(rows.start, rows.start + len(rows))
    words = row_words(rows.start, rows.start + len(rows), seed + SALT)
    found = {"words": words, "numbers": numbers, "X": rows.X, "y": rows.y, "sample_weight": weights}
    if weights is not None:
        found = _taken(found, np.flatnonzero(weights > 0))
    folds = np.empty(0) if rows.folds is None else np.unique(rows.folds)
    return Survey(len(rows), checksum(rows), classes, counts, masses, folds, **_smallest(found, size))


def _smallest(sample, size):
    """The rows of a sample with the smallest words, in the order of the rows."""
    chosen = np.argsort(sample["words"], kind="stable")[:size]
    return _taken(sample, np.sort(chosen))


def _taken(sample, places):
    return {name: None if each is None else each[places] for name, each in sample.items()}


def _stacked(first, second):
    if first is None:
        return None
    return sp.vstack([first, second]).tocsr() if sp.issparse(first) else np.concatenate([first, second])
