"""Held-out predictions for displays, in closed form if there is one."""

from sklearn.base import is_classifier
from sklearn.model_selection import LeaveOneOut

import foldless


def held_out(estimator, X, y, method, cv, steps):
    """``cross_val_predict`` of an estimator, or of the best one of a fitted search; cv=None is leave-one-out."""
    model = getattr(estimator, "best_estimator_", estimator)
    cv = LeaveOneOut() if cv is None else cv
    return foldless.model_selection.cross_val_predict(model, X, y, cv=cv, method=method, steps=steps)


def check_classifier(estimator, display):
    """Raise an error unless the estimator is a classifier."""
    if not is_classifier(estimator):
        raise ValueError(f"{display} draws classifiers; {type(estimator).__name__} is none.")


def named(cv):
    """The held-out rows in words."""
    return "leave-one-out" if cv is None else "held-out"
