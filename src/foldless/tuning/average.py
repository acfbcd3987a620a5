"""The best setting, and those that are nearly as good: their average, and the simplest of them.

A criterion that is a mean of losses l_i of rows, with weights w_i of sum 1, is known up to its standard error,

    se^2 = sum w_i^2 (l_i - sum_j w_j l_j)^2,

and settings within one se of the best can hardly be told from it. The held-out fits of each are known, hence those of
their average, whose criterion is as exact as theirs. The one-standard-error rule (Breiman, Friedman, Olshen & Stone
1984, section 3.4.3) takes the simplest of them.
"""

from dataclasses import replace
from numbers import Real

import numpy as np

MOST = 20  # settings that are averaged
BLOCK = 2**18  # losses of rows that are computed together
ALIKE = 0.05  # settings that differ by less than this share in every number count once


def best_place(losses, alphas):
    """Place of the least loss; counts of errors tie often, and of equal ones the largest alpha is taken."""
    losses, alphas = np.asarray(losses), np.asarray(alphas)
    if np.isnan(losses).all():
        raise ValueError(
            "the criterion is no number for any candidate: alpha too small for this precision, or kernel values too"
            " large. Rescale X (for instance with sklearn.preprocessing.StandardScaler) or raise alpha."
        )
    losses = np.where(np.isnan(losses), np.inf, losses)
    slack = 1e-12 * abs(losses.min())  # weighted sums tie up to rounding
    tied = np.flatnonzero(losses <= losses.min() + slack)
    return int(tied[np.argmax(alphas[tied])])


def row_losses(selection, outputs):
    """Losses (k, N, m) of the held-out rows of k settings, times their weights: the criterion is their sum."""
    if selection.criterion.whole:
        return np.stack([selection.W * selection.wrong(decisions)[:, None] for decisions in outputs])
    T, W = selection.held_out_targets, selection.W
    together = max(1, BLOCK // max(T.size, 1))  # settings
    losses = []
    for start in range(0, len(outputs), together):
        block = np.stack(outputs[start : start + together])
        columns = [np.broadcast_to(array, block.shape).reshape(1, -1) for array in (T, W)]
        single_rows = replace(selection, T=columns[0], W=columns[1], where=np.zeros(1, int))
        losses.append(single_rows.losses(block.reshape(1, -1)).reshape(block.shape))  # each row a problem of its own
    return np.concatenate(losses)


def standard_errors(selection, losses):
    """Standard errors (k,) of the criterion by its ``row_losses``; a row's columns and tests are added up first."""
    deviations = (losses - selection.W * losses.sum(1, keepdims=True)).sum(2)
    if selection.folds is not None:  # a row may be tested several times
        deviations = np.stack([np.bincount(selection.where, values) for values in deviations])
    return np.sqrt(np.square(deviations).sum(1))


def near_best(params, losses, best, width):
    """Places of the best setting and of those at most ``width`` above it, in the order of their losses."""
    near = np.flatnonzero(losses <= losses[best] + width)
    kept = [best]
    for place in near[np.argsort(losses[near], kind="stable")]:
        if len(kept) < MOST and not any(_alike(params[place], params[other]) for other in kept):
            kept.append(int(place))
    return kept


def simplest(params, losses, best, width):
    """Place of the largest alpha, then of the least gamma, then of the least loss, at most ``width`` above the best."""
    near = np.flatnonzero(losses <= losses[best] + width)
    return int(min(near, key=lambda place: _order(params[place], losses[place])))


def _order(params, loss):
    return -_number(params, "alpha"), _number(params, "gamma"), loss


def _number(params, name):
    """A parameter of a setting, also of a step or a kernel object; 0 where it is the same for all, or no number."""
    values = [value for key, value in params.items() if key == name or key.endswith(f"__{name}")]
    return float(values[0]) if values and isinstance(values[0], Real) else 0.0


def _alike(one, other):
    return one.keys() == other.keys() and all(_close(one[name], other[name]) for name in one)


def _close(a, b):
    if isinstance(a, float) and isinstance(b, float):
        return bool(np.isclose(a, b, rtol=ALIKE, atol=0.0))
    return a is b or repr(a) == repr(b)


def mean_outputs(outputs):
    """The mean of what ``Selection.outputs`` says of several settings: fits, decisions, and no probabilities."""
    fits, decisions, _ = zip(*outputs, strict=True)
    return [None if each[0] is None else np.mean(each, 0) for each in (fits, decisions)] + [None]
