"""Early checks of scorers: they are called on a few rows with made-up predictions, so that errors come at once."""

import warnings

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import get_scorer_names
from sklearn.utils import _safe_indexing
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.multiclass import type_of_target

from foldless._sklearn.scorers import is_function, stored_outputs, wants_probabilities
from foldless._sklearn.split_scores import PredictionRecorder

ROWS = 500  # that scorers are called on, and two of each class


def check_scorers(scorers, estimator, y):
    """Refuse scorers, pairs (argument, scorer), that cannot score predictions of such targets."""
    for message in objections(scorers, estimator, y):
        raise ValueError(message)


def objections(scorers, estimator, y):
    """Yield an error message for each of the scorers that cannot score predictions of these targets."""
    scorers = [(argument, scorer) for argument, scorer in scorers if not is_function(scorer)]
    made_up = _made_up(estimator, y) if scorers else None
    if made_up is None:
        return
    outputs, truth, classes = made_up
    rows = np.arange(len(truth))[:, None]
    for argument, scorer in scorers:
        if isinstance(getattr(scorer, "_score_func", None), PredictionRecorder) or _requests_metadata(scorer):
            continue
        refusal = None  # yielded below: inside the block the generator would silence warnings of its caller
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                scorer(outputs, rows, truth)
            except ValueError as error:
                refusal = _refusal(argument, scorer, classes, error)
            except Exception:
                continue
        if refusal is not None:
            yield refusal


def _requests_metadata(scorer):
    """Whether a scorer asks for metadata, such as weights, which a call with made-up predictions cannot hand it."""
    requests = get_routing_for_object(scorer).score.requests
    return any(alias is True or isinstance(alias, str) for alias in requests.values())


def _made_up(estimator, y):
    """(outputs of a fitted estimator, targets, classes or None) of a few rows; None for targets of other kinds."""
    if y is None or not hasattr(estimator, "fit"):
        return None
    if not is_classifier(estimator):
        values = np.asarray(y)
        if values.dtype.kind not in "fiub" or not len(values) or not np.isfinite(values).all():
            return None
        truth = values[:ROWS]
        return stored_outputs(None, truth.ndim == 1, 1.1 * truth.reshape(len(truth), -1)), truth, None
    labels = np.asarray(y)
    if labels.ndim != 1 or (labels.dtype.kind == "f" and not np.isfinite(labels).all()):
        return None
    if type_of_target(labels) not in ("binary", "multiclass"):
        return None
    classes, codes = np.unique(labels, return_inverse=True)
    firsts = [np.flatnonzero(codes == code)[:2] for code in range(len(classes))]
    rows = np.union1d(np.arange(min(ROWS, len(codes))), np.concatenate(firsts))
    chosen = codes[rows].copy()
    chosen[::2] = np.roll(chosen, 1)[::2]  # not all of them right
    probabilities = np.full((len(rows), len(classes)), 0.2 / max(len(classes) - 1, 1))
    probabilities[np.arange(len(rows)), chosen] = 0.8
    probabilities /= probabilities.sum(1, keepdims=True)
    decision = probabilities[:, 1] - 0.5 if len(classes) == 2 else probabilities
    return stored_outputs(classes, True, decision, probabilities), _safe_indexing(y, rows), classes


def _refusal(argument, scorer, classes, error):
    """The message: the argument, the reason of scikit-learn, and scores that may do."""
    reason = str(error).rstrip(".")
    remedies = ["'neg_mean_squared_error' or 'r2'"]
    if classes is not None:
        macro = f"{argument}_macro"
        remedies = [repr(macro)] if macro in get_scorer_names() else ["'balanced_accuracy'"]
        if "pos_label" in reason and len(classes) == 2:
            options = f", pos_label={classes[1].item()!r}"
            if wants_probabilities(scorer, at_hand=True):
                options += ", response_method='predict_proba'"
            elif getattr(scorer, "_response_method", "predict") != "predict":
                options += ", response_method='decision_function'"
            options += "" if scorer._sign > 0 else ", greater_is_better=False"
            remedies.insert(0, f"make_scorer({scorer._score_func.__name__}{options})")
    name = repr(argument) if argument in get_scorer_names() else argument
    return f"scoring={name} does not go with this y: {reason}. Use scoring={' or '.join(remedies)}."
