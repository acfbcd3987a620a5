"""Held-out fits of the rows of a chunk, and what their scores are made of.

A row of fold f has the fit of the model without this fold. Without the row alone (h is its leverage, in the notation of
``models``),

    h = w ( (phi - mu)' V diag(1 / (s + alpha)) V' (phi - mu) + 1 / mass )
    held-out fit = y - (y - f(x)) / (1 - h)
    N <- N - w y y'        U <- U - w (y - f(x)) (y - f(x))' / (1 - h)

(Cawley & Talbot 2003; the update of U is that of a residual sum of squares.) Scores count every row once, whatever its
weight. They are sums over rows: those of chunks add up by ``sums.merged``.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from foldless.chunked.hashing import checksum
from foldless.chunked.models import Coefficients
from foldless.chunked.sums import blocks_of
from foldless.heldout.moments import Moments
from foldless.linalg import product
from foldless.readout.codings import chosen_codes, chosen_labels

FREE = 1e-6  # share of a row not explained by its own target, below which more than 6 digits are lost


@dataclass(frozen=True)
class Judges:
    """The models that rows of a chunk are judged by: of each training part, and of all rows with its P.

    ``plans`` are those of the training parts, where these have features of their own. ``whole`` and what follows are
    None where no leave-one-out is asked for: eigenvectors V, 1 / (s + alpha) for one alpha or several (r, k), V' C,
    means of features and targets, 1 / mass (0 without an intercept), rows by class.
    """

    folds: tuple[Coefficients, ...] = ()
    plans: tuple = ()
    whole: Any = None
    V: Any = None
    inverted: Any = None
    VC: Any = None
    mean: Any = None
    level: Any = None
    constant: float = 0.0
    labels: Any = None


def with_whole(judges, part, sums, alphas):
    """The models of the folds, and that of all rows for these alphas."""
    inverted = 1.0 / (part.s[:, None] + alphas)
    constant = 1.0 / part.mass if part.plan.intercept else 0.0
    known = {"V": part.V, "inverted": inverted, "VC": part.VC, "mean": part.mean, "level": part.level}
    known |= {"whole": part.coefficients(alphas[0]), "constant": constant, "labels": sums.labels.sum(0)}
    return replace(judges, **known)


class Scores(NamedTuple):
    """For each fold: rows, rows called right, and for each output squared errors, sums and squares of y, (k, 2 + 3 m).

    ``loo`` is the same of leave-one-out, ``lost`` the number of rows whose leverage leaves few digits.
    """

    folds: np.ndarray
    loo: np.ndarray
    lost: np.ndarray
    checksum: np.ndarray


class Press(NamedTuple):
    """Sums of weighted squared leave-one-out errors for each alpha, and the checksum of the rows."""

    total: np.ndarray
    checksum: np.ndarray


def held_out_of(plan, judges, rows):
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
        if judges.folds:
            model, own = judges.folds[fold], judges.plans[fold] if judges.plans else plan
            fits = model.fits(Phi if own is plan else own.features(rows.X[places]))
            out = _outputs(own, fits, plan.readout.scores(fits, model.moments))
            scores.folds[fold] += _judged(plan, rows.y[places], out)
            keep("fold", places, np.full(len(places), fold))
            for name, values in out.items():
                keep(name, places, values)
        if judges.whole is not None:
            fits, decisions, lost = _left_out(plan, judges, Phi, Y, weights[places])
            out = _outputs(plan, fits, decisions)
            scores.loo[fold] += _judged(plan, rows.y[places], out)
            scores.lost[0] += lost
            for name, values in out.items():
                keep(f"loo_{name}", places, values)
    return found, scores


def press_of(plans, judges, rows):
    """Weighted squared leave-one-out errors of some rows, for each of the plans."""
    return [_press(*each, rows) for each in zip(plans, judges, strict=True)]


def _press(plan, judges, rows):
    total, weights = np.zeros(judges.inverted.shape[1]), plan.weights(rows)
    for _, places in blocks_of(plan, rows):
        Phi, Y, w = plan.features(rows.X[places]), plan.targets(rows.y[places]), weights[places]
        U = product(Phi - judges.mean, judges.V)
        free = 1.0 - w[:, None] * (product(U * U, judges.inverted) + judges.constant)
        for j, inverted in enumerate(judges.inverted.T):
            rest = Y - judges.level - product(U, inverted[:, None] * judges.VC)
            E = plan.readout.plus_minus_fits(rest) / free[:, j, None]
            total[j] += w @ np.square(E).sum(1)
    return Press(total, checksum(rows))


def _left_out(plan, judges, Phi, Y, w):
    """Fits (n, m) and decisions of rows, each by the model without it, and how many of them have few digits.

    Phi is overwritten.
    """
    rest = Y - judges.whole.fits(Phi)
    U = product(np.subtract(Phi, judges.mean, out=Phi), judges.V)
    free = 1.0 - w * (product(np.square(U, out=U), judges.inverted[:, :1])[:, 0] + judges.constant)
    E = rest / free[:, None]
    fits, moments = Y - E, None
    if plan.readout.needs_moments:
        moments = _moments_without(judges, Y, w, rest, E)
    decisions = plan.readout.scores(fits[:, None], moments)[:, 0]
    return fits, decisions, np.count_nonzero(free <= FREE)


def _moments_without(judges, Y, w, rest, E):
    """Class matrices (n, c, c) without each row."""
    own, whole = Y > 0, judges.whole.moments
    left = (judges.labels - (own & (w > 0)[:, None])) > 0
    mass = np.where(left, whole.mass - w[:, None] * own, 0.0)
    N = mass[:, :, None] * np.eye(Y.shape[1])
    return Moments(N, whole.U - w[:, None, None] * rest[:, :, None] * E[:, None, :])


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
