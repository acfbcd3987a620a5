"""Intervals of scores of classes by their formulas, from held-out labels and areas, one class after the other."""

import numpy as np
from scipy.special import betaincinv
from scipy.stats import norm
from scipy.stats import t as student

# -- from the numbers of held-out rows ---------------------------------------------------------------------------------


def of_share(share, n, confidence=0.9):
    """Clopper & Pearson's interval of a share of n rows."""
    right, tail = share * n, (1 - confidence) / 2
    low = 0.0 if right == 0 else betaincinv(right, n - right + 1, tail)
    high = 1.0 if right == n else betaincinv(right + 1, n - right, 1 - tail)
    return low, high


def confusion_of(y, predicted):
    """Rows of each class (first axis) that get each label (second)."""
    labels = np.unique(y)
    return np.array([[np.sum((y == true) & (predicted == label)) for label in labels] for true in labels], float)


def of_labels(score, confusion, units, confidence=0.9):
    """The interval of a function of a confusion matrix, of so many independent rows (``units``) of each class."""
    value, below, above = score(confusion), [], []
    for k, row in enumerate(confusion):
        ends = []
        for recall in of_share(row[k] / row.sum(), units[k], confidence):
            wrong = np.delete(row, k)
            wrong = wrong / wrong.sum() if wrong.sum() else np.full(len(wrong), 1 / len(wrong))
            moved = confusion.copy()
            moved[k] = row.sum() * np.insert((1 - recall) * wrong, k, recall)
            ends.append(score(moved))
        below.append(min(0.0, *(each - value for each in ends)))
        above.append(max(0.0, *(each - value for each in ends)))
    return value - np.linalg.norm(below), value + np.linalg.norm(above)


def of_area(area, first, second, confidence=0.9):
    """The interval of an area under the ROC curve of so many rows of each class: all areas that are near enough."""
    A = np.linspace(0, 1, 200_001)
    Q1, Q2 = A / (2 - A), 2 * A**2 / (1 + A)
    V = [A * (1 - A) + (m - 1) * (Q1 - A**2) + (n - 1) * (Q2 - A**2) for m, n in ((first, second), (second, first))]
    V = np.maximum(*V) / (first * second) * (1 + 6 * A * (1 - A))
    near = A[np.abs(area - A) <= norm.ppf(0.5 + confidence / 2) * np.sqrt(np.maximum(V, 0))]
    return min([area, *near[[0, -1]]]), max([area, *near[[0, -1]]])


# -- functions of a confusion matrix -----------------------------------------------------------------------------------


def balanced(C):
    return np.mean(np.diag(C) / C.sum(1))


def f1(C, k=1):
    return 2 * C[k, k] / (C[k].sum() + C[:, k].sum())


def macro_f1(C):
    return np.mean([f1(C, k) for k in range(len(C))])


def recall(C):
    return C[1, 1] / C[1].sum()


def precision(C):
    return C[1, 1] / C[:, 1].sum()


def matthews(C):
    n, true, predicted = C.sum(), C.sum(1), C.sum(0)
    covariance = n * np.trace(C) - true @ predicted
    return covariance / np.sqrt((n**2 - true @ true) * (n**2 - predicted @ predicted))


# -- from the scores of folds ------------------------------------------------------------------------------------------


def of_folds(scores, share, confidence=0.9):
    """Nadeau & Bengio's interval of the scores of splits, with so many tested rows for each training row."""
    n = len(scores)
    half = student.ppf(0.5 + confidence / 2, n - 1) * np.sqrt((1 / n + share) * np.var(scores, ddof=1))
    return np.mean(scores) - half, np.mean(scores) + half


def both(*intervals, limits=(0.0, 1.0)):
    """The least interval that holds some others, within limits."""
    return np.clip([min(low for low, _ in intervals), max(high for _, high in intervals)], *limits)
