"""A handful of rows: nothing is tuned, and every row is predicted by a refit without it."""

import numpy as np

from foldless.tables import refits
from foldless.tables.preparing import pipeline
from foldless.tables.scores import HeldOutBy, Nested, bootstrapped, measures, pooled_baseline

HOW = "from a bootstrap of the held-out {units}; of so few it says little"


def default_model(rows, options):
    """The pipeline with its default setting, fitted on all rows."""
    return refits.fitted(pipeline(rows, options.impute, options.kernel), rows, np.arange(len(rows)))


def each_left_out(rows, options, model):
    """The :class:`Nested` result of refits without each row (without its group); no choice is made."""
    sets = np.arange(len(rows)) if rows.groups is None else np.unique(rows.groups, return_inverse=True)[1]
    splits = [(np.flatnonzero(sets != each), np.flatnonzero(sets == each)) for each in np.unique(sets)]
    names = np.array(rows.schema.classes, dtype=object)
    decision = np.full((len(rows), max(len(names), 1)), -1.0)
    for train, test in splits:
        decision[test] = _decided(model, rows, train, test, names)
    if not rows.classifies:
        prediction, decision = decision[:, 0], decision[:, 0]
    else:
        prediction = names[decision.argmax(1)]
        decision = decision[:, 1] if len(names) == 2 else decision
    scores = tuple(bootstrapped(each, rows, prediction, decision, options.seed, HOW) for each in measures(rows))
    always = "the most frequent class of the other rows" if rows.classifies else "the mean of the other rows"
    return Nested((), splits, HeldOutBy(prediction, decision, scores), pooled_baseline(rows, splits, always))


def _decided(model, rows, train, test, names):
    """Decisions (t, k) for all classes, -1 for those that are not in the training part; values (t, 1)."""
    if not rows.classifies:
        return refits.decided(refits.fitted(model, rows, train), rows, test)[:, None]
    found = np.full((len(test), len(names)), -1.0)
    known = np.unique(rows.y[train])
    if len(known) == 1:
        found[:, names == known[0]] = 1.0
        return found
    fitted = refits.fitted(model, rows, train)
    values = refits.decided(fitted, rows, test)
    values = np.column_stack([-values, values]) if values.ndim == 1 else values
    found[:, np.isin(names, fitted.classes_)] = values[:, np.argsort(_places(names, fitted.classes_))]
    return found


def _places(names, classes):
    return [names.tolist().index(each) for each in classes]
