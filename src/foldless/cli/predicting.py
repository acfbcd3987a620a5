"""Predictions of new rows as a table: classes with probabilities, values with intervals."""

import numpy as np
import pandas as pd

from foldless.tables.cells import WORDS, as_booleans, as_numbers, as_text
from foldless.tables.searching import labels


def predicted(model, table, coverage):
    """(frame with the row number, the prediction, and probabilities or ends of an interval; notes; warnings)."""
    X, notes = model.schema.rows(table)
    confounds, absent, more = model.schema.confounds_in(table)
    machine = model.pipeline[-1]
    rows = model.pipeline[:-1].transform(X) if len(model.pipeline) > 1 else X
    decision = model.decisions(rows, confounds)
    prediction = labels(decision, machine.classes_) if model.schema.classes else decision
    found = {"row": np.arange(1, len(table.frame) + 1), "prediction": prediction}
    notes = [*notes, *more]
    if not model.schema.classes:
        ends = model.intervals(rows, coverage, confounds)
        found |= {"low": ends[:, 0], "high": ends[:, 1]}
    elif (shares := model.probabilities(rows, confounds)) is not None:
        found |= {f"probability {name}": shares[:, place] for place, name in enumerate(machine.classes_)}
        notes = [*notes, *_deciding(prediction, machine.classes_[shares.argmax(1)])]
    if model.apart is not None and len(found) > 2:
        notes = [*notes, f"{'Probabilities' if model.schema.classes else 'Intervals'} are those of rows of new groups."]
    warnings = []
    if hasattr(machine, "confound_coef_") and confounds is None:
        warnings = [_at_their_mean(model, absent, len(found) > 2)]
    return pd.DataFrame(found), [*notes, *_agreement(model, table, prediction)], warnings


def _at_their_mean(model, absent, more):
    """What it means that the table lacks confounds."""
    lacks = f"lacks {', '.join(map(repr, absent))}" if absent else "is read by a model that does not know their names"
    numbers = "" if not more else " and these probabilities" if model.schema.classes else " and these intervals"
    return (
        f"Confounds were regressed out in training, and the table {lacks}: they count as being at their mean."
        f" The score of the report{numbers} do{'' if more else 'es'} not describe these predictions, which may follow"
        " the confounds."
    )


def _deciding(prediction, likeliest):
    """Where the prediction is not the likeliest class, and which of them decides."""
    others = int((prediction != likeliest).sum())
    if others:
        yield f"In {others} of {len(prediction)} rows another class than the prediction has the largest probability."
        yield "The prediction follows the decision of the model; probabilities count classes as often as they occur."


def _classes(column, classes):
    """Cells as classes; where these are words for no and yes, other such words mean the same."""
    truth = as_text(column)
    small = [each.lower() for each in classes]
    pair = next((pair for pair in WORDS if sorted(small) == sorted(pair)), None)
    values, bad = as_booleans(column)
    if pair is None or bad.any():
        return truth
    named = np.array([classes[small.index(each)] for each in pair], dtype=object)
    return np.where(np.isnan(values), np.array(np.nan, dtype=object), named[np.nan_to_num(values).astype(int)])


def _agreement(model, table, prediction):
    """How well the predictions agree with the target, where the table has it."""
    name = model.schema.target.name
    if name not in table.frame.columns:
        return
    if model.schema.classes:
        truth = _classes(table.frame[name], model.schema.classes)
        there = ~pd.isna(truth)
        if there.any():
            yield f"{(truth[there] == prediction[there]).mean():.3f} of {there.sum()} rows with a target are right."
        return
    truth, _ = as_numbers(table.frame[name])
    there = np.isfinite(truth)
    if there.any():
        error = np.abs(truth - prediction)[there].mean()
        yield f"The mean absolute error of {there.sum()} rows with a target is {error:.4g}."
