"""A closer look: what columns are worth, how the score grows with rows, which rows surprise, all on held-out rows."""

import time

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.utils import _safe_indexing

from foldless.tables import refits
from foldless.tables.folds import told_apart
from foldless.tables.parts import Importance, LearningPoint, SurprisingRow
from foldless.tables.preparing import pipeline
from foldless.tables.scores import measures
from foldless.tables.searching import labels, searched

FEW_ROWS = 500  # up to which all folds are looked at, not one
MOST_TESTED = 500  # held-out rows of a fold
MOST_COLUMNS = 200
SHUFFLES = 3  # of a column, in all folds together
SHARES = (0.1, 0.2, 0.4, 0.7, 1.0)  # of the training rows
N_SURPRISING = 20
LEAST_SECONDS = 0.1  # of a search


def closer_look(rows, outer, options):
    """(importance of the columns, learning curve, a sentence on how) of a :class:`Nested` result.

    Test rows are those of its folds; settings are chosen without them. Where the time is up, folds that are left are
    not looked at.
    """
    rng, measure = np.random.default_rng(options.seed), measures(rows)[0]
    end = time.monotonic() + (options.share("look") or np.inf)
    n_folds = SHUFFLES if len(rows) <= FEW_ROWS else 1
    splits, settings = outer.splits[:n_folds], outer.params[:n_folds]
    losses: dict[str, list] = {}
    curve: dict[float, list] = {share: [] for share in SHARES}
    repeats, n_splits = max(1, SHUFFLES // len(splits)), 0
    for (train, test), params in zip(splits, settings, strict=True):
        if time.monotonic() > end:
            break
        train, test = rng.permutation(train), rng.permutation(test)[:MOST_TESTED]
        model = pipeline(rows, options.impute, options.kernel)
        model[-1].set_params(**params)
        fitted = refits.fitted(model, rows, train)
        found = dict(_losses(fitted, measure, rows, test, repeats, rng, end))
        for share, part, model_of_part in _fits_of_shares(rows, options, fitted, train, end):
            scores = [_scored(model_of_part, measure, rows, each) for each in (part[:MOST_TESTED], test)]
            curve[share].append((len(part), *scores))
        if len(found) < len(rows.schema.features):
            continue
        n_splits += 1
        for name, each in found.items():
            losses.setdefault(name, []).extend(each)
    full = max(map(len, curve.values()))
    whole = [tuple(zip(*each, strict=True)) for each in curve.values() if len(each) == full > 0]
    points = tuple(LearningPoint(round(np.mean(sizes)), *scores) for sizes, *scores in whole)
    worth = [Importance(name, float(np.mean(each)), float(np.std(each))) for name, each in losses.items()]
    where = "in one fold" if n_splits == 1 else f"over {n_splits} folds"
    how = (
        f"What the {measure.name} loses on held-out rows when the values of a column are shuffled among them:"
        f" {n_splits * repeats} shuffles {where}, at the setting that was chosen without these rows."
    )
    return tuple(sorted(worth, key=lambda each: -each.mean)), points, how if worth else ""


def _fits_of_shares(rows, options, fitted, train, end):
    """(share, rows, model) of shares of the training rows, the largest first; ``fitted`` is that of all of them.

    A model of fewer rows is tuned on these alone: a kernel that was learnt on more rows would be too good for them.
    """
    for share in sorted(SHARES, reverse=True):
        part = train[: round(share * len(train))]
        if len(part) == len(train):
            yield share, part, fitted
            continue
        fewer = rows.take(part)
        if time.monotonic() > end:
            return
        if not fewer.few and told_apart(fewer):
            seconds = None if end == np.inf else max(end - time.monotonic(), LEAST_SECONDS)
            yield share, part, searched(fewer, options, seconds).best_estimator_


def _losses(fitted, measure, rows, test, repeats, rng, end):
    """(name, losses of the shuffles) of every column, all shuffles of a column predicted together."""
    if sp.issparse(rows.X) or len(rows.schema.features) > MOST_COLUMNS:
        return
    X, n = _safe_indexing(rows.X, test), len(test)
    whole = _scored(fitted, measure, rows, test)
    several = _safe_indexing(X, np.tile(np.arange(n), repeats)).reset_index(drop=True)
    for field in rows.schema.features:
        if time.monotonic() > end:
            return
        shuffled, columns = several.copy(), list(field.columns)
        orders = np.concatenate([rng.permutation(n) for _ in range(repeats)])
        shuffled[columns] = _safe_indexing(X[columns], orders).reset_index(drop=True)
        decisions = np.split(refits.decided(fitted, rows, np.tile(test, repeats), shuffled), repeats)
        yield field.name, [measure.sign * (whole - _score(fitted, measure, rows, test, each)) for each in decisions]


def _score(fitted, measure, rows, test, decision):
    prediction = labels(decision, fitted.classes_) if rows.classifies else decision
    return float(measure.compute(rows.y[test], prediction, decision))


def _scored(fitted, measure, rows, test):
    return _score(fitted, measure, rows, test, refits.decided(fitted, rows, test))


def surprising(rows, table, held_out):
    """The rows that models without them get most wrong."""
    if rows.classifies and held_out.probability is not None:
        places = np.searchsorted(np.unique(rows.y), rows.y)
        surprise = 1 - held_out.probability[np.arange(len(rows)), places]
    elif rows.classifies:
        surprise = (held_out.prediction != rows.y).astype(float)
    else:
        surprise = np.abs(rows.y - held_out.prediction)
    worst = np.argsort(-surprise, kind="stable")[: min(N_SURPRISING, len(rows))]
    return tuple(
        SurprisingRow(
            row=int(rows.numbers[each]) + 1,
            truth=_shown(rows.y[each]),
            prediction=_shown(held_out.prediction[each]),
            surprise=float(surprise[each]),
            cells={name: _shown(cell) for name, cell in table.frame.iloc[rows.numbers[each]].items()},
        )
        for each in worst
    )


def _shown(cell):
    if pd.isna(cell):
        return ""
    return f"{cell:.6g}" if isinstance(cell, float | np.floating) else str(cell)
