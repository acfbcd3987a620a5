"""Splits as positions among the rows of positive weight, and the held-out fits of all of them, stacked."""

import numpy as np

from foldless._engine.heldout.leave_out import leave_out
from foldless._engine.heldout.sets import Sets


def folds_of(splits, rows, n):
    """Positions in ``rows`` that each split leaves out, and the places among these, stacked, that it tests."""
    place = np.full(n, -1)
    place[rows] = np.arange(len(rows))
    folds, tests, end = [], [], 0
    for number, (train, test) in enumerate(splits):
        if len(np.unique(train)) < len(train):
            raise ValueError(
                f"cv: the training part of split {number} repeats rows; give rows that count more a larger"
                " sample_weight instead."
            )
        inside = np.zeros(n, bool)
        inside[train] = True
        if inside[test].any():
            raise ValueError(f"cv: split {number} tests rows that it trains on; such a score says nothing.")
        out = rows[~inside[rows]]
        if len(out) and len(out) < len(rows):
            folds.append(place[out])
            tests.append(end + np.flatnonzero(np.isin(out, test)))
            end += len(out)
    tests = [each for each in tests if len(each)]
    if not tests:
        raise ValueError("cv: no split leaves out a row of positive weight and keeps another.")
    return folds, tests


def heldout_fits(model, folds):
    """Held-out fits in the units of the targets, (N, m), stacked as the residuals of ``heldout.gradient``."""
    sets = Sets.leave_one_out(len(model.rows)) if folds is None else Sets.of(folds)
    return sets.stacked((numbers, held_out.fits) for numbers, held_out in leave_out(model, sets))
