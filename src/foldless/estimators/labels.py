"""Labels: which classes there are, where each label stands among them, and labels of decisions.

Classes are those of the rows and those that ``partial_fit(classes=...)`` named, which stay without a row.
"""

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from foldless.linalg.types import MatrixLike
from foldless.readout.codings import chosen_labels


class LabelledDecisions(ClassifierMixin):
    """Labels by the decision function of an estimator: of new rows, and of training rows left out."""

    classes_: np.ndarray
    _y: Any  # labels of the training rows

    def predict(self, X: MatrixLike) -> np.ndarray:
        """Labels (n_samples,) by the sign (two classes) or the largest column of ``decision_function``."""
        return chosen_labels(self.decision_function(X), self.classes_)

    def loo_predict(self) -> np.ndarray:
        """Label of every training row by the model fitted without it."""
        return chosen_labels(self.loo_decision_function(), self.classes_)

    @property
    def loo_score_(self) -> float:
        """Leave-one-out accuracy on the training data, every row counted once whatever its weight."""
        return float(np.mean(self.loo_predict() == self._y))


def checked_labels(y):
    """Labels as one column."""
    y = column_or_1d(y, warn=True)
    check_classification_targets(y)
    return y


def named_classes(y, classes):
    """Labels that ``partial_fit(classes=...)`` names; they must be all that y holds, or none."""
    if classes is None:
        return y[:0]
    classes = column_or_1d(classes)
    missing = np.setdiff1d(join_labels(y, classes)[: len(y)], classes).tolist()
    if missing:
        raise ValueError(f"classes={list(classes)!r} lacks {missing[0]!r}, which y holds; name all labels or none.")
    return classes


def join_labels(old, new):
    """Labels in one array; numbers and strings do not mix, since NumPy would turn the numbers into strings."""
    if not len(old) or not len(new):
        return new if len(new) else old
    if (old.dtype.kind in "OUST") != (new.dtype.kind in "OUST"):
        raise ValueError(f"labels of different kinds: {old[0]!r} and {new[0]!r}; use one kind of labels throughout.")
    return np.concatenate([old, new])


def coded(y, named):
    """All classes, those named without rows included, and the place of each label among them."""
    classes = np.unique(join_labels(y, named))
    return classes, np.searchsorted(classes, y)


def check_two_classes(classes, estimator, hint):
    """Refuse a single class."""
    if len(classes) < 2:
        raise ValueError(
            f"y holds one class only ({classes[0]!r}); {type(estimator).__name__} needs at least two classes. {hint}"
        )
