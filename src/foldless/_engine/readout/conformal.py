"""Prediction sets of labels and prediction intervals of values, with a coverage that holds for any distribution.

**Full conformal prediction** (Vovk, Gammerman & Shafer 2005). Give the new row a candidate target, fit all n + 1 rows,
and ask how many of them fit as badly as the new one by their leave-one-out residuals:

    p = #{ i : row i is at least as strange as the new row } / (n + 1)        the new row counts among them

Targets with p > 1 - coverage form the set. If the n + 1 rows are exchangeable, p is at most epsilon with probability at
most epsilon, and the set holds the truth with a probability of at least ``coverage``, whatever the model is worth. The
n + 1 fits follow from the border of P (``heldout.border``).

Labels: strange is a row whose margin is small, the held-out fit of its own class minus the largest one of the others
(targets +-1, one against all). Only the column of the candidate changes with it. Ranks among the rows of the
candidate's class alone give every class its coverage (Vovk 2012, "label-conditional").

Values: residuals are a_i - b_i e beside e of the new row (Nouretdinov, Melluish & Vovk 2001; Burnaev & Vovk 2014). Row
i is at least as strange where |a_i - b_i e| >= |e|: between a / (b + 1) and a / (b - 1) if |b| < 1, else outside of
them. Intervals end at the last e that enough rows reach. Residuals divided by their standard deviation have |b| < 1:
their set is an interval; that of leave-one-out residuals may have gaps, which the interval bridges.

**Cross-conformal prediction** (Vovk 2015) compares margins by models without one fold each: those of its rows with that
of the new row.

**Jackknife+ and CV+** (Barber, Candes, Ramdas & Tibshirani 2021) take fits f_i at the new row by models without row i,
or without its fold: the ends are order statistics of f_i -+ |residual_i|.

**New groups** (Lee, Barber & Willett 2023): with G groups that count alike, whatever their rows, the half width is the
quantile of |residuals|, each of a row without its group, of weight 1 / (G + 1) shared by the rows of a group; the last
1 / (G + 1) is the new group's, at infinity.
"""

from itertools import pairwise

import numpy as np

from foldless._engine.readout.codings import indicator

POWERS = {"conformal": 1.0, "studentised": 0.5}  # of h, by which residuals are divided


def label_p_values(border, codes, n_classes, *, class_conditional=False):
    """p (t, n_classes) of every label of new rows, for targets +-1 one against all, one column for each class."""
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], np.arange(n_classes + 1))
    of_class = [slice(*pair) for pair in pairwise(ends)]
    A = border.A[order]
    c = border.c[:, order]
    h = border.h[:, order]
    f = border.f
    s = border.s[:, None]
    Y = 2.0 * indicator(codes[order], n_classes, A.dtype) - 1.0
    # Held-out fits with -1 for the new row in every column; its candidate has a 1, which moves that column by step.
    fits = [Y[:, k] - (s * A[:, k] + c * (1.0 + f[:, k : k + 1])) / h for k in range(n_classes)]
    step = 2.0 * c / h
    p = np.empty(f.shape)
    for label in range(n_classes):
        moved = [*fits[:label], fits[label] + step, *fits[label + 1 :]]
        new = _tied(_margin(f.T, label))
        counted = [label] if class_conditional else range(n_classes)
        margins = [_margin([fit[:, of_class[k]] for fit in moved], k) for k in counted]
        ranks = [(margin <= new[:, None]).sum(1) for margin in margins]
        p[:, label] = (1 + sum(ranks)) / (1 + sum(margin.shape[1] for margin in margins))
    return p


def _margin(fits, label):
    """Fits of one class minus the largest of the others."""
    return fits[label] - np.max([fit for k, fit in enumerate(fits) if k != label], 0)


def _tied(margin):
    """Margins up to which another counts as no larger: rounding must not make a row the strangest."""
    return margin + np.sqrt(np.finfo(margin.dtype).eps) * (1.0 + np.abs(margin))


def cross_p_values(new, held_out, *, class_conditional=False):
    """p (t, c) from decisions of every fold's model: of new rows, and (of its held-out rows, their class numbers)."""
    margins = [_margins(decisions)[np.arange(len(codes)), codes] for decisions, codes in held_out]
    p = np.empty((len(new[0]), one_a_class(new[0]).shape[1]))
    for label in range(p.shape[1]):
        rank = count = 1
        for decisions, margin, (_, codes) in zip(new, margins, held_out, strict=True):
            counted = margin[codes == label] if class_conditional else margin
            rank = rank + (counted <= _tied(_margins(decisions)[:, label, None])).sum(1)
            count += len(counted)
        p[:, label] = rank / count
    return p


def _margins(decisions):
    """Margins (t, c) of every label."""
    columns = one_a_class(decisions).T
    return np.column_stack([_margin(columns, label) for label in range(len(columns))])


def one_a_class(values):
    """Values with one column for each class, where two classes have a single one."""
    return np.column_stack([-values, values]) if values.ndim == 1 or values.shape[1] == 1 else values


def in_set(p, coverage):
    """Which labels belong to a set of this coverage."""
    return p > 1.0 - coverage + 1e-9


def value_intervals(border, coverage, power):
    """Ends (t, m, 2) of full conformal intervals by residuals divided by h to this power."""
    n, m = border.A.shape
    needed = int(np.floor((1.0 - coverage) * (n + 1) + 1e-9))  # rows as strange as the new one, besides itself
    if needed == 0:
        return _endless(border.f)
    scale = border.h**power
    b = border.c / scale
    ends = np.empty((*border.f.shape, 2), b.dtype)
    for k in range(m):
        a = border.s[:, None] * border.A[:, k] / scale
        ends[:, k, 0] = border.f[:, k] - _reach(-a, b, needed)
        ends[:, k, 1] = border.f[:, k] + _reach(a, b, needed)
    return ends


def _reach(a, b, needed):
    """The largest e >= 0 (t,) with |a - b e| >= e in ``needed`` of the columns of a and b (t, n); perhaps infinite.

    All columns do at e = 0. One leaves at the first of its positive roots, and returns at the second if it has two.
    """
    n = a.shape[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        roots = np.sort([a / (b + 1.0), a / (b - 1.0)], 0)
    steep = np.abs(b) >= 1.0
    twice = steep & (roots[0] >= 0)  # both roots have one sign
    leaves = np.where(steep, np.where(twice, roots[0], np.inf), roots[1])
    reach = np.partition(leaves, n - needed, axis=1)[:, n - needed]
    some = np.flatnonzero(twice.any(1))
    reach[some] = _reach_again(leaves[some], np.where(twice, roots[1], np.nan)[some], needed)
    return reach


def _reach_again(leaves, returns, needed):
    """The same where columns leave (t, n) and may return (t, n), nan where they do not."""
    n = leaves.shape[1]
    events = np.concatenate([returns, leaves], 1)
    order = np.argsort(events, 1, kind="stable")  # at equal places returns come first, nan at the end
    change = np.where(order < n, 1, -1)
    there = n + np.cumsum(change, 1) - change  # columns that reach each event
    last = np.where((order >= n) & (there >= needed), np.take_along_axis(events, order, 1), 0.0).max(1)
    endless = (~np.isnan(returns) | np.isinf(leaves)).sum(1) >= needed
    return np.where(endless, np.inf, last)


def residual_intervals(fits, residuals, coverage):
    """Jackknife+ or CV+ ends (t, m, 2) from fits (t, n, m) at new rows and residuals (n, m) of the models without i."""
    n, size = len(residuals), np.abs(residuals)
    rank = int(np.ceil(coverage * (n + 1) - 1e-9))
    if rank > n:  # too few rows for this coverage
        return _endless(fits[:, 0])
    low = np.partition(fits - size, n - rank, axis=1)[:, n - rank]
    return np.stack([low, np.partition(fits + size, rank - 1, axis=1)[:, rank - 1]], -1)


def group_half_width(residuals, groups, coverage):
    """Half the width of intervals for rows of a new group, from residuals (n,) without the groups (n,), numbered."""
    sizes = np.bincount(groups)
    order = np.argsort(np.abs(residuals), kind="stable")
    mass = np.cumsum(1.0 / (np.count_nonzero(sizes) + 1.0) / sizes[groups][order])
    place = np.searchsorted(mass, coverage - 1e-9)
    return np.abs(residuals)[order[place]] if place < len(order) else np.inf


def _endless(fits):
    return np.stack([np.full_like(fits, -np.inf), np.full_like(fits, np.inf)], -1)
