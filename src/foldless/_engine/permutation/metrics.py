"""Scores of many labelings at once: one function each, from held-out decisions and truth to a number a labeling.

Decisions D have shape (b, k, t): b labelings, k decision columns (one for two classes, else one a class; one for each
output of a regression), t held-out rows. The truth is (b, t) class numbers or (b, k, t) values. Definitions are those
of scikit-learn's metrics of the same name, row by row of b; three are ours:

    ber           balanced error rate, 1 - balanced_accuracy: a loss, smaller is better (Cawley 2006, section I-A)
    correlation   Pearson's r of predictions and values, averaged over outputs; 0 where one of them is constant
    r2_pooled     R2 of all held-out rows together: their squared errors beside those of the mean of y

The others are means over the splits. R2 is no good one: of a few rows the mean is as near as a good prediction, and the
square of its distance, by which the errors are divided, may be next to nothing.

To add a metric write one function and make it a ``Metric``, which ``scoring=`` takes as it is; ours are in ``METRICS``
of ``estimators.metrics``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from foldless._engine.linalg import divide
from foldless._engine.readout.codings import chosen_among_close
from foldless._engine.readout.ranking import pairs_won


def accuracy(D, codes):
    """Share of rows that get their own label."""
    return np.count_nonzero(chosen_among_close(D) == codes, axis=1) / codes.shape[1]


def balanced_accuracy(D, codes):
    """Mean over the classes present of the share of their rows that get their own label."""
    right = chosen_among_close(D) == codes
    shape = len(D), max(2, D.shape[1])
    share, size = np.empty(shape), np.empty(shape, np.intp)
    for k in range(shape[1]):
        in_class = codes == k
        size[:, k] = np.count_nonzero(in_class, axis=1)
        share[:, k] = np.count_nonzero(right & in_class, axis=1) / np.maximum(size[:, k], 1)
    out, present = share.mean(1), size > 0
    for j in np.flatnonzero(~present.all(1)):
        out[j] = share[j, present[j]].mean()
    return out


def ber(D, codes):
    """Balanced error rate."""
    return 1.0 - balanced_accuracy(D, codes)


def confusions(n_classes, D, codes):
    """Rows of each class (first axis) that get each label (second), (b, c * c)."""
    pairs = n_classes * codes + chosen_among_close(D)
    return np.stack([np.count_nonzero(pairs == pair, axis=1) for pair in range(n_classes**2)], 1)


def roc_auc(D, codes):
    """Area under the ROC curve of two classes; nan where a labeling has one class only among these rows."""
    won, pairs = pairs_won(D[:, 0], codes == 1)
    return divide(won, pairs, np.nan)


def _differences(A, B, T):
    """A - B along the last axis, all 0 where rounding can have made all of them.

    Rounding is of the size of what values T differ by, and of the last places of A. Where values are equal, it is that
    of the sums over all of them that predictions are made of. Predictions may have fewer digits than values.
    """
    gap, spread, size = A - B, np.ptp(T, axis=2), np.abs(A).max(2)
    last_place = np.finfo(gap.dtype).eps
    unit = max(last_place, np.finfo(B.dtype).eps)
    rounding = np.where(spread > 0, np.maximum(16 * unit * spread, 2 * last_place * size), 16 * unit * size)
    gap[np.abs(gap).max(2) <= rounding] = 0.0
    return gap


def _centred(values):
    """Values without their mean along the last axis; the second pass removes the rounding of a mean far from zero."""
    values = values - values.mean(2, keepdims=True)
    return values - values.mean(2, keepdims=True)


def r2(D, T):
    """Coefficient of determination, averaged over outputs; of constant values 1 if they are met, else 0."""
    residual = np.square(_differences(T, D, T)).sum(2)
    total = np.square(_centred(T)).sum(2)
    return (1.0 - divide(residual, total, (residual > 0).astype(residual.dtype))).mean(1)


def neg_mean_squared_error(D, T):
    """Minus the mean squared error, averaged over outputs."""
    return -np.square(_differences(T, D, T)).mean(2).mean(1)


def correlation(D, T):
    """Pearson's correlation of predictions and values, averaged over outputs; 0 where one is constant."""
    D, T = _centred(_differences(D, D.mean(2, keepdims=True), T)), _centred(T)
    size = np.sqrt(np.square(D).sum(2) * np.square(T).sum(2))
    return divide((D * T).sum(2), size).mean(1)


@dataclass(frozen=True)
class Metric:
    """A score with what a permutation test must know about it: ``scoring=`` of your own, for all labelings at once.

    Attributes
    ----------
    function : callable, from decisions (b, k, t) of k outputs and the truth (b, t) of b labelings to scores (b,)
    labels : bool, whether it scores class labels, not values
    sklearn_metric : callable, the same of one labeling as in scikit-learn: (truth, predictions or decisions) to a
        score. It may be left out for scores of values.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_diabetes
    >>> from foldless import LSSVR
    >>> from foldless.model_selection import Metric, permutation_test_score
    >>> X, y = load_diabetes(return_X_y=True)
    >>> least_error = Metric(lambda D, T: -np.abs(T - D).max((1, 2)), labels=False)
    >>> result = permutation_test_score(LSSVR("linear"), X, y, scoring=least_error, n_permutations=99)
    >>> print(f"p = {result.pvalue:.2f}")
    p = 0.01
    """

    function: Callable
    labels: bool | None = None  # of class labels or of values; it has to be given
    sklearn_metric: Callable | None = None  # the same of one labeling: (truth, predictions or decisions)
    response: str = "predict"  # what it scores
    greater: bool = True  # whether larger is better
    sklearn_rounding: Callable | None = None  # the function with scikit-learn's rounding, where its own has another
    rows: int = 1  # held-out rows it takes at least
    classes: int | None = None  # number of classes it is made for
    pooled: bool = False  # of all held-out rows together, not a mean over the splits
    width: int = 1  # numbers it gives

    def __post_init__(self):
        """Check the parameters. For values the score of one labeling follows from that of many."""
        if not callable(self.function):
            raise TypeError(f"Metric: function={self.function!r} must be a function of decisions and their truth.")
        if not isinstance(self.labels, bool | np.bool_):
            raise TypeError(
                f"Metric: labels={self.labels!r} must be True for a score of class labels or False for one of values,"
                " as in Metric(f, labels=False)."
            )
        if self.sklearn_metric is None and self.labels:
            raise TypeError(
                "Metric: sklearn_metric=None; a score of class labels needs the same score of one labeling, a function"
                " of true labels and predictions (or decisions, with response='decision_function'), such as those of"
                " sklearn.metrics: Metric(f, True, accuracy_score)."
            )
        if self.sklearn_metric is None:
            vars(self)["sklearn_metric"] = of_one_labeling(self.function)

    def suits(self, task: Any) -> bool:
        """Whether it is made for such a task: one class a row, of so many, or values; none is for several labels."""
        kind = task.codes is not None if self.labels else task.readout.coding == "values"
        return kind and self.classes in (None, task.n_classes)


def of_one_labeling(function):
    """A vectorised function of values as one of (truth, predictions)."""

    def score(truth, predictions):
        columns = [np.asarray(values, float).reshape(len(truth), -1).T[None] for values in (predictions, truth)]
        return float(function(*columns)[0])

    score.__name__ = getattr(function, "__name__", "metric")
    return score
