"""Held-out predictions of the rows of a chunk, and what their scores are made of.

A row of fold f has the fit of the model without this fold; that without the row alone is in ``leftout``. Scores count
every row once, whatever its weight. They are sums over rows: those of chunks add up by ``sums.merged``.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from foldless._engine.readout.codings import chosen_codes, chosen_labels
from foldless._engine.readout.task import Rule
from foldless.chunked.hashing import checksum
from foldless.chunked.leftout import LeftOut
from foldless.chunked.models import Coefficients
from foldless.chunked.sums import blocks_of


@dataclass(frozen=True)
class HeldOutModels:
    """The models by which rows of a chunk are scored: of each training part, with its rule, and of all rows.

    ``plans`` are those of the training parts, where these have features of their own. ``whole`` is None where no
    leave-one-out is asked for.
    """

    folds: tuple[tuple[Coefficients, Rule], ...] = ()
    plans: tuple = ()
    whole: LeftOut | None = None


class Scores(NamedTuple):
    """For each fold: rows, rows called right, and for each output squared errors, sums and squares of y, (k, 2 + 3 m).

    ``loo`` is the same of leave-one-out, ``lost`` the number of rows whose leverage leaves few digits.
    """

    folds: np.ndarray
    loo: np.ndarray
    lost: np.ndarray
    checksum: np.ndarray


class Press(NamedTuple):
    """Sums of weighted squared held-out errors for each alpha, of the weights (1,), and the checksum of the rows."""

    total: np.ndarray
    mass: np.ndarray
    checksum: np.ndarray


def held_out_of(plan, held_out_models, rows):
    """(columns, scores) of some rows: held-out predictions by name, in the order of the rows, and sums for scores."""
    m, k = (0 if plan.n_classes else plan.m), plan.folds.k
    scores = Scores(np.zeros((k, 2 + 3 * m)), np.zeros((k, 2 + 3 * m)), np.zeros(1), checksum(rows))
    weights, found = plan.weights(rows), dict[str, np.ndarray]()
    memory = np.empty((min(plan.block, len(rows)), plan.r))

    def keep(name, places, values):
        if name not in found:
            found[name] = np.empty((len(rows), *values.shape[1:]), values.dtype)
        found[name][places] = values

    for fold, places in blocks_of(plan, rows):
        Phi, Y = plan.features(rows.X[places], out=memory[: len(places)]), plan.targets(rows.y[places])
        if held_out_models.folds:
            model, rule = held_out_models.folds[fold]
            own = held_out_models.plans[fold] if held_out_models.plans else plan
            fits = model.fits(Phi if own is plan else own.features(rows.X[places]))
            out = _outputs(own, fits, rule.decision(fits))
            if rule.calibrator is not None:
                out["probability"] = rule.proba(fits)
            scores.folds[fold] += _judged(plan, rows.y[places], out)
            keep("fold", places, np.full(len(places), fold))
            for name, values in out.items():
                keep(name, places, values)
        if held_out_models.whole is not None:
            fits, decisions, lost = held_out_models.whole.rows(Phi, Y, weights[places])
            out = _outputs(plan, fits, decisions)
            scores.loo[fold] += _judged(plan, rows.y[places], out)
            scores.lost[0] += lost
            for name, values in out.items():
                keep(f"loo_{name}", places, values)
    return found, scores


def press_of(plans, models, shared, rows):
    """Squared leave-one-out errors of some rows, for each of the plans with its model of all rows.

    Rows are counted by the weights of the plan if ``shared``, else by those that they came with.
    """
    found = checksum(rows)
    return [_loo_press(*each, shared, rows, found) for each in zip(plans, models, strict=True)]


def _loo_press(plan, model, shared, rows, found):
    total, weights = np.zeros(model.inverted.shape[1]), plan.weights(rows)
    counted = weights if shared else rows.weights
    for _, places in blocks_of(plan, rows):
        Phi, Y = plan.features(rows.X[places]), plan.targets(rows.y[places])
        total += model.errors(Phi, Y, weights[places], counted[places])
    return Press(total, counted.sum(keepdims=True), found)


def fold_press_of(plans, models, rows):
    """Squared errors of some rows by the models without their folds, counted by the weights that they came with.

    ``models`` are, for each of the plans, those of its folds, where these have their own, and coefficients of each fold
    and alpha.
    """
    found = checksum(rows)
    return [_fold_press(*each, rows, found) for each in zip(plans, models, strict=True)]


def _fold_press(plan, models, rows, found):
    (own, coefficients), counted = models, rows.weights
    total = np.zeros(len(coefficients[0]))
    for fold, places in blocks_of(plan, rows):
        Phi, Y = (own[fold] if own else plan).features(rows.X[places]), plan.targets(rows.y[places])
        for j, each in enumerate(coefficients[fold]):
            E = plan.readout.plus_minus_fits(Y - each.fits(Phi))
            total[j] += counted[places] @ np.square(E).sum(1)
    return Press(total, counted.sum(keepdims=True), found)


def _outputs(plan, fits, decisions):
    """What is predicted, by name: decisions and labels, or values."""
    if not plan.n_classes:
        values = fits + plan.level
        return {"prediction": values[:, 0] if plan.layout.n_outputs is None else values}
    return {"decision": decisions, "prediction": chosen_labels(decisions, plan.layout.classes)}


def _judged(plan, y, out):
    """Sums over rows for the scores of predictions."""
    if plan.n_classes:
        return np.array([len(y), np.count_nonzero(chosen_codes(out["decision"]) == plan.codes(y))])
    Y = y.reshape(len(y), -1)
    E, T = Y - out["prediction"].reshape(Y.shape), Y - plan.level
    return np.concatenate([[len(y), 0], np.square(E).sum(0), T.sum(0), np.square(T).sum(0)])


def score_of(plan, sums):
    """Accuracy, or R2 averaged over outputs, from the sums (2 + 3 m,) over rows."""
    n, right = sums[:2]
    if plan.n_classes:
        return float(right / n)
    errors, total, squares = sums[2:].reshape(3, -1)
    spread = squares - total * total / n
    constant = spread <= 8 * np.finfo(float).eps * squares
    shares = np.divide(errors, spread, out=np.where(errors > 0, 1.0, 0.0), where=~constant)
    return float(np.mean(1.0 - shares))
