"""Fits of a pipeline to some of the rows, and what they say of others: confounds and weights of the rows count."""

from sklearn.base import clone
from sklearn.utils import _safe_indexing


def fitted(model, rows, train):
    """A copy of a pipeline, fitted on some of the rows."""
    weights = {} if rows.weights is None else {"model__sample_weight": rows.weights[train]}
    confounds = {} if rows.confounds is None else {"model__confounds": rows.confounds[train]}
    return clone(model).fit(_safe_indexing(rows.X, train), rows.y[train], **weights, **confounds)


def decided(model, rows, test, X=None):
    """Decisions or values of a fitted pipeline for the rows ``test``, or for cells X that stand in their place."""
    X = _safe_indexing(rows.X, test) if X is None else X
    X = model[:-1].transform(X) if len(model) > 1 else X
    decide = model[-1].decision_function if rows.classifies else model[-1].predict
    return decide(X) if rows.confounds is None else decide(X, confounds=rows.confounds[test])
