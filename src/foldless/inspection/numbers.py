"""The numbers that displays and reports draw: bins of probabilities and of scores, margins, relative losses."""

import numpy as np


def coded(y, classes=None):
    """(classes, the code of each label of y); ``classes=None`` are those of y in sorted order."""
    if classes is None:
        return np.unique(y, return_inverse=True)
    places = {name: place for place, name in enumerate(classes)}
    missing = [name for name in np.unique(y).tolist() if name not in places]
    if missing:
        raise ValueError(f"classes={list(classes)!r} lacks {missing[0]!r}, which y_true holds; name all classes.")
    return tuple(classes), np.array([places[name] for name in np.asarray(y).tolist()], dtype=int)


def margins_of(decision, codes):
    """Margins (n,) of decisions (n,) or (n, k) of rows of classes ``codes``.

    The decision for the own class minus the largest one for another; of two classes the decision with the sign of the
    own one. Below 0 a row is wrong.
    """
    decision = np.asarray(decision, float)
    if decision.ndim == 1:
        return np.where(np.asarray(codes) == 1, decision, -decision)
    rows, others = np.arange(len(decision)), decision.copy()
    others[rows, codes] = -np.inf
    return decision[rows, codes] - others.max(1)


def reliability(prob, hit, n_bins):
    """(mean probability, share of hits, rows) of bins of equally many rows; equal probabilities share a bin."""
    edges = np.unique(np.quantile(prob, np.linspace(0, 1, n_bins + 1)[1:-1]))
    place = np.searchsorted(edges, prob, side="left")
    counts = np.bincount(place, minlength=len(edges) + 1)
    there = counts > 0
    pred = np.bincount(place, prob, minlength=len(counts))[there] / counts[there]
    true = np.bincount(place, np.asarray(hit, float), minlength=len(counts))[there] / counts[there]
    return pred, true, counts[there]


def excess(criterion, n_rows):
    """Losses of settings, less the better, as multiples of the least one on as many rows.

    Losses on more rows are smaller whatever the setting: only those on as many can be compared.
    """
    criterion, n_rows = np.asarray(criterion, float), np.asarray(n_rows)
    sizes, place = np.unique(n_rows, return_inverse=True)
    least = np.array([np.nanmin(criterion[n_rows == size]) for size in sizes])[place]
    return 1 + (criterion - least) / np.where(least, np.abs(least), 1.0)


def whole_steps(scores: np.ndarray) -> np.ndarray:
    """Edges of bins that are a whole number of the least steps between scores wide, scores in their middles."""
    edges = np.histogram_bin_edges(scores, "auto")
    steps = np.diff(np.sort(scores))
    steps = steps[steps > 1e-9 * np.ptp(edges)]
    if not steps.size:
        return edges
    step = steps.min()
    width = step * np.ceil((edges[1] - edges[0]) / step * (1 - 1e-9))
    start = scores.min() - step / 2
    return start + width * np.arange(np.ceil((scores.max() + step / 2 - start) / width * (1 - 1e-9)) + 1)
