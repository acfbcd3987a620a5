"""All that a fit needs of the rows, as sums over them (``heldout.row_sums``), for each fold.

Features are about their origin. Sums of chunks add up (``merged``); those of all folds but one belong to the training
part. A chunk is sorted by fold first, so a pass costs n (r + 1 + m)^2 operations, whatever the number of folds.
"""

from typing import NamedTuple

import numpy as np

from foldless._engine.heldout.row_sums import RowSums
from foldless._engine.linalg import add_square_, mirror_
from foldless.chunked.hashing import checksum


class FoldSums(NamedTuple):
    """Of each fold: sums over its rows, rows (k,), rows of positive weight by class (k, c); a checksum."""

    regression: RowSums
    rows: np.ndarray
    labels: np.ndarray
    checksum: np.ndarray


def merged(first, second):
    """The sums over the rows of both; lists are merged entry by entry."""
    if isinstance(first, list):
        return [merged(mine, theirs) for mine, theirs in zip(first, second, strict=True)]
    return type(first)(*(mine + theirs for mine, theirs in zip(first, second, strict=True)))


def blocks_of(plan, rows):
    """(fold, places of some of its rows), until all rows were there: small blocks of one fold each."""
    folds = plan.folds.of(rows)
    order = np.argsort(folds, kind="stable")
    ends = np.cumsum(np.bincount(folds, minlength=plan.folds.k))
    for fold, places in enumerate(np.split(order, ends[:-1])):
        for start in range(0, len(places), plan.block):
            yield fold, places[start : start + plan.block]


def sums_of(plans, rows):
    """The sums over some rows, for each of the plans."""
    found = checksum(rows)
    return [_sums(plan, rows, found) for plan in plans]


def _sums(plan, rows, found):
    """Features are there for a block of rows at a time, always in the same memory."""
    p, k = plan.n_sums, plan.folds.k
    gram, counts, labels = np.zeros((k, p, p)), np.zeros(k), np.zeros((k, plan.n_classes))
    weights, memory = plan.weights(rows), np.empty((min(plan.block, len(rows)), p))
    for fold, places in blocks_of(plan, rows):
        T = memory[: len(places)]
        plan.features(rows.X[places], out=T[:, : plan.r])
        T[:, plan.r] = 1.0
        T[:, plan.r + 1 :] = plan.targets(rows.y[places])
        w = weights[places]
        if not (w == 1).all():
            T *= np.sqrt(w)[:, None]
        add_square_(gram[fold], T.T)
        counts[fold] += len(places)
        if plan.n_classes:
            labels[fold] += np.bincount(plan.codes(rows.y[places][w > 0]), minlength=plan.n_classes)
    for of_fold in gram:
        mirror_(of_fold)
    return FoldSums(RowSums(gram, plan.r), counts, labels, found)
