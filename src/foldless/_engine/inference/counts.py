"""Intervals of scores of classes from the numbers of held-out rows: how sure a score can be with so few of a class.

The spread of the scores of folds says little where a class is rare, and nothing where all folds are perfect. What the
numbers of rows allow is known by itself, for models that do not change:

rows       accuracy is a share of n independent rows: the exact interval of Clopper & Pearson (1934).
classes    balanced accuracy, F1, Matthews' coefficient and whatever else follows from labels is a function g of the
           recalls p_k of the classes, each a share of n_k rows with its exact interval (l_k, u_k). Squared and added
           (Newcombe 1998; Zou & Donner 2008), with g_k(x) the score where the recall of class k is x:

               low = g - sqrt(sum_k (g - g_k(l_k))^2),    high = g + sqrt(sum_k (g_k(u_k) - g)^2)

           Wrong rows of a class keep their shares of the other labels.
pairs      The variance of an area A under the ROC curve is that of Hanley & McNeil (1982), for m rows of the rarer
           class and n others,

               V(A) = A (1 - A) / (m n) (1 + (m - 1) a + (n - 1) b),    a, b = sorted((1 - A) / (2 - A), A / (1 + A)),

           where b goes with the larger class, which makes V the larger. Their model is fixed. Cross-validated areas of
           models that find nothing varied two to three times as much in simulations, and those of models that separate
           classes did not. The interval holds all A with |area - A| <= z sqrt((1 + 6 A (1 - A)) V(A)); the form is that
           of Newcombe (2006).
precision  The average precision is taken as a share of the m rows of the positive class, with its exact interval: the
           binomial interval of Boyd, Eng & Page (2013), by Clopper & Pearson since theirs has no width at 1.

With groups the numbers are those of the groups that hold a row of the class.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import beta, norm

SHARES = (
    "accuracy",
    "balanced_accuracy",
    "roc_auc",
    "ber",
    "f1",
    "precision",
    "recall",
    "jaccard",
    "average_precision",
)
AT_MOST_ONE = ("r2", "r2_pooled", "correlation", "matthews_corrcoef", "explained_variance")
ANY = -np.inf, np.inf
ROWS, PAIRS, PRECISION = "rows", "pairs", "precision"
WORDS = {
    ROWS: "what {total} {units} allow (Clopper & Pearson 1934)",
    PAIRS: "what {rarest} {units} of the rarest class allow (Hanley & McNeil 1982, Newcombe 2006)",
    PRECISION: "what {positive} {units} of the positive class allow (Boyd, Eng & Page 2013, Clopper & Pearson 1934)",
    None: "what the {units} of the classes allow, {rarest} of the rarest (Clopper & Pearson 1934, Newcombe 1998)",
}


@dataclass(frozen=True)
class ScoreKind:
    """What intervals have to know about a score.

    Attributes
    ----------
    name : str
    limits : (least, largest) value
    counting : "rows", "pairs", "precision", a function (true labels, predicted labels, sample_weight) of scores that
        follow from labels, or None where counts do not tell
    """

    name: str = "score"
    limits: tuple[float, float] = ANY
    counting: str | Callable | None = None

    @property
    def of_labels(self):
        """Whether the score follows from true and predicted labels."""
        return callable(self.counting)


ANY_SCORE = ScoreKind()


def limits_of(scoring):
    """The least and the largest value that a score can have."""
    if scoring in SHARES or scoring.startswith(("f1_", "precision_", "recall_", "jaccard_", "roc_auc_")):
        return 0.0, 1.0
    return -np.inf, 1.0 if scoring in AT_MOST_ONE else 0.0 if scoring.startswith("neg_") else np.inf


@dataclass(frozen=True)
class HeldOutCounts:
    """How many rows of the classes were held out, and what they were taken for.

    Attributes
    ----------
    classes : ndarray of shape (c,), the labels
    units : ndarray of shape (c,), independent rows of each class; with groups the groups that hold some
    total : int, independent rows or groups of all classes together
    confusion : ndarray of shape (c, c) or None, rows of each class (first axis) that get each label (second), added up
        over as many partitions as there are
    grouped : bool, whether groups are counted
    """

    classes: np.ndarray
    units: np.ndarray
    total: int
    confusion: Any = None
    grouped: bool = False

    @classmethod
    def of(cls, y, groups=None, tested=None):
        """Of labels (n,), all or those ``tested`` (n,); what they were taken for is not known yet."""
        classes, codes = np.unique(y, return_inverse=True)
        codes = codes if tested is None else codes[tested]
        if groups is None:
            return cls(classes, np.bincount(codes, minlength=len(classes)), len(codes))
        groups = np.asarray(groups) if tested is None else np.asarray(groups)[tested]
        units = np.array([len(np.unique(groups[codes == code])) for code in range(len(classes))])
        return cls(classes, units, len(np.unique(groups)), grouped=True)

    def with_labels(self, y, predicted):
        """The same with rows (t,) that were taken for ``predicted`` labels added to the confusion."""
        true, chosen = (np.searchsorted(self.classes, labels) for labels in (y, predicted))
        n = len(self.classes)
        return self.with_confusion(np.bincount(n * true + chosen, minlength=n * n).reshape(n, n))

    def with_confusion(self, confusion):
        """The same with this confusion added."""
        return replace(self, confusion=confusion + (0 if self.confusion is None else self.confusion))

    def interval(self, kind, value, confidence):
        """(low, high) of a score with this value, or None where counts do not tell."""
        if kind.counting is None or not np.isfinite(value):
            return None
        if kind.counting == ROWS:
            return tuple(float(end) for end in clopper_pearson(value, self.total, confidence))
        if kind.counting == PAIRS:
            rarest = int(self.units.min())
            return area_interval(value, rarest, int(self.units.sum()) - rarest, confidence) if rarest else None
        if kind.counting == PRECISION:
            return tuple(float(end) for end in clopper_pearson(value, self.positive, confidence))
        return None if self.confusion is None else self._of_labels(kind.counting, confidence)

    @property
    def positive(self):
        """Independent rows of the positive class: the second of two, the rarest of several."""
        return int(self.units[-1] if len(self.units) == 2 else self.units.min())

    def words(self, kind):
        """Where :meth:`interval` comes from."""
        units = "groups" if self.grouped else "rows"
        words = WORDS[None if kind.of_labels else kind.counting]
        return words.format(units=units, total=self.total, rarest=self.units.min(), positive=self.positive)

    def _of_labels(self, score, confidence):
        true, predicted = (self.classes[codes.ravel()] for codes in np.indices(self.confusion.shape))

        def value(confusion):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a label that no row gets
                return float(score(true, predicted, confusion.ravel()))

        centre, squares = value(self.confusion), np.zeros(2)
        for code in np.flatnonzero(self.confusion.sum(1)):
            recall = self.confusion[code, code] / self.confusion[code].sum()
            ends = clopper_pearson(recall, self.units[code], confidence)
            moved = [value(_with_recall(self.confusion, code, end)) - centre for end in ends]
            squares += np.square([min(*moved, 0.0), max(*moved, 0.0)])
        return centre - np.sqrt(squares[0]), centre + np.sqrt(squares[1])


def _with_recall(confusion, code, recall):
    """A confusion where a class has another recall; its wrong rows keep their shares of the other labels."""
    rows = confusion[code].sum()
    wrong = confusion[code].astype(float)
    wrong[code] = 0.0
    if not wrong.any():
        wrong = np.arange(len(confusion)) != code
    moved = confusion.astype(float)
    moved[code] = rows * (1 - recall) * wrong / wrong.sum()
    moved[code, code] = rows * recall
    return moved


def clopper_pearson(share, n, confidence):
    """The exact interval (low, high) of shares of n independent rows each (Clopper & Pearson 1934)."""
    right, tail = share * n, (1 - confidence) / 2
    low = np.where(right > 0, beta.ppf(tail, np.maximum(right, 1e-300), n - right + 1), 0.0)
    high = np.where(right < n, beta.ppf(1 - tail, right + 1, np.maximum(n - right, 1e-300)), 1.0)
    return low, high


def wilson(share, n, confidence):
    """(low, high) of shares of n independent rows each by Wilson (1927), which never leave 0 to 1.

    For a share p and the normal quantile z: (p + z^2 / 2n -+ z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n).
    """
    z = norm.ppf(0.5 + confidence / 2)
    centre, half = share + z**2 / (2 * n), z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return (centre - half) / (1 + z**2 / n), (centre + half) / (1 + z**2 / n)


def area_variance(area, rarer, others):
    """The variance of a cross-validated area of so many rows of the rarer class and others, as above."""
    less, more = sorted([(1 - area) / (2 - area), area / (1 + area)])
    fixed = area * (1 - area) / (rarer * others) * (1 + (rarer - 1) * less + (others - 1) * more)
    return (1 + 6 * area * (1 - area)) * fixed


def area_interval(area, rarer, others, confidence):
    """(low, high) of an area under the ROC curve."""
    z = norm.ppf(0.5 + confidence / 2)

    def excess(other):
        return abs(area - other) - z * np.sqrt(area_variance(other, rarer, others))

    close = 1e-12  # the variance of a perfect area is none
    low = brentq(excess, 0.0, max(min(area, 1 - close), close)) if area > close else 0.0
    high = brentq(excess, min(max(area, close), 1 - close), 1.0) if area < 1 - close else 1.0
    return float(low), float(high)
