"""The outcome of a search: criteria and scores of all settings, the chosen one, and the attributes of the search."""

from dataclasses import dataclass

import numpy as np
from sklearn.base import is_classifier

from foldless._engine.readout.calibration import DeferredSigmoid
from foldless._sklearn.adapters import FOLDLESS_ESTIMATORS
from foldless._sklearn.candidates import chosen_setting, heldout_scores, targets_of
from foldless._sklearn.pipelines import split_steps
from foldless.results import by_name, card, points, short


@dataclass(frozen=True)
class Record:
    """The criterion of every setting, the scores of its splits, and the seconds it took."""

    scorings: dict  # {name: Scoring}
    criterion: np.ndarray  # (n,)
    errors: np.ndarray  # (n,): standard errors of the criterion, nan where unknown
    scores: np.ndarray  # (n_scores, n, n_splits)
    seconds: np.ndarray  # (n,)
    score_seconds: np.ndarray  # (n,), those of the scores alone
    by_split: bool  # else one score of all rows, each left out alone

    @classmethod
    def of(cls, spec, splits, entries):
        """From (places, :class:`Evaluation`, seconds) of settings that were judged together and share the seconds."""
        n = sum(len(places) for places, _, _ in entries)
        scorings = spec.scoring.scorings
        width = max((judged.scores.shape[2] for _, judged, _ in entries if judged.scores is not None), default=1)
        scores = np.full((len(scorings), n, width), np.nan)
        criterion, errors, seconds, score_seconds = np.full((4, n), np.nan)
        for places, judged, spent in entries:
            criterion[places] = judged.criterion
            errors[places] = np.nan if judged.errors is None else judged.errors
            seconds[places] = (spent - judged.seconds) / len(places)
            score_seconds[places] = judged.seconds / len(places)
            if judged.scores is not None:
                scores[:, places] = judged.scores
        return cls(scorings, criterion, errors, scores, seconds, score_seconds, splits is not None)

    def columns(self):
        """Columns of ``cv_results_``."""
        yield "mean_fit_time", self.seconds
        yield "std_fit_time", np.zeros_like(self.seconds)
        yield "mean_score_time", self.score_seconds
        yield "std_score_time", np.zeros_like(self.seconds)
        for (name, scoring), values in zip(self.scorings.items(), self.scores, strict=True):
            means = values.mean(1)
            for split, scores in enumerate(values.T if self.by_split else ()):
                yield f"split{split}_test_{name}", scores
            yield f"mean_test_{name}", means
            yield f"std_test_{name}", values.std(1) if self.by_split else np.full(len(values), np.nan)
            yield f"rank_test_{name}", ranks(-means if scoring.greater else means)
        yield "mean_test_criterion", self.criterion
        yield "se_test_criterion", self.errors
        yield "rank_test_criterion", ranks(self.criterion)


def ranks(losses):
    """Ranks: 1 for the least loss; losses that are equal up to rounding share the first of their ranks; nan is last."""
    losses = np.where(np.isnan(losses), np.inf, losses)
    order = np.argsort(losses, kind="stable")
    ascending = losses[order]
    low, high = ascending[:-1], ascending[1:]
    with np.errstate(invalid="ignore"):
        differs = (high - low > 1e-12 * np.abs(high)) | (np.isinf(high) & np.isfinite(low))
    first = np.concatenate([[1], np.where(differs, np.arange(2, len(ascending) + 1), 1)])
    places = np.empty(len(losses), np.int32)
    places[order] = np.maximum.accumulate(first)
    return places


@dataclass(frozen=True)
class Outcome:
    """All settings with their record, the chosen ones (one, or one for each class) and the history of the search."""

    classes: np.ndarray | None
    params: list  # of every setting
    record: Record
    chosen: list  # places of the best among them
    best: list  # their parameters, one dictionary for each alpha
    loss: float  # their criterion
    history: list
    heldout: tuple | None = None  # row numbers and held-out decisions of the chosen setting, where at hand
    feature_scales: np.ndarray | None = None  # one row for each of the chosen
    stopped: str | None = None  # "time_limit" or "interrupted" if it did not come to its end
    on_edge: tuple = ()  # parameters in which the best lies at an end of an automatic grid that was widened already
    unfinished: bool = False  # a descent came to its last iteration

    def table(self):
        """``cv_results_`` in the shape of GridSearchCV's."""
        columns: dict = {"params": self.params}
        for name in sorted({name for params in self.params for name in params}):
            column = np.ma.masked_all(len(self.params), dtype=object)
            for place, params in enumerate(self.params):
                if name in params:
                    column[place] = params[name]
            columns[f"param_{name}"] = column
        return columns | dict(self.record.columns())

    def attributes(self, spec, estimator, data, splits):
        """The attributes of a fitted search, {name: value}, without those of the refitted estimator."""
        scoring = spec.scoring
        results: dict = {
            "scorer_": scoring.scorer,
            "multimetric_": scoring.several,
            "n_splits_": len(np.asarray(data.y)) if splits is None else len(splits),
            "cv_results_": self.table(),
            "history_": self.history,
            "n_iter_": len(self.history),
            "stopped_": self.stopped,
        }
        if self.classes is not None:
            results["classes_"] = self.classes
        if scoring.decides or not scoring.requested:  # of several scores, without one that decides, none is the best
            results |= self._best_attributes(spec, estimator, data, splits, results["cv_results_"])
        if self.feature_scales is not None:
            scales = self.feature_scales
            results["feature_scales_"] = scales if len(scales) > 1 else scales[0]
        return results

    def _best_attributes(self, spec, estimator, data, splits, table):
        """The attributes of the best setting, or of the classifier put together from the best of every class."""
        if len(self.best) == 1:
            (index,) = self.chosen
            params = self.best[0]
            standard_error = float(self.record.errors[index])
            score = float(table[f"mean_test_{spec.scoring.deciding or 'score'}"][index])
        else:
            index = self.chosen if len(self.chosen) > 1 else self.chosen[0]
            params = self.best
            standard_error = np.nan
            score = score_together(spec, chosen_setting(estimator, params, self.classes), data, splits)
        return {
            "best_index_": index,
            "best_params_": params,
            "best_criterion_": float(self.loss),
            "best_criterion_se_": standard_error,
            "best_score_": score,
        }


def deciding_value(spec, loss):
    """A loss by its name, for the history: the criterion, or the score that it stands for."""
    return {"score": spec.scoring.score_of(loss)} if spec.scoring.decides else {"criterion": float(loss)}


def score_together(spec, best, data, splits):
    """The score of a classifier with a setting of its own for each class; nan where it takes cuts of every part."""
    estimators = [estimator for _, estimator in split_steps(best).last.estimators]
    if any(getattr(estimator, "threshold", None) == "loo" for estimator in estimators):
        return np.nan
    rows, decisions = heldout_scores(best, data, splits)
    task = targets_of(estimators[0], data.y, data.sample_weight).task
    sizes = [len(test) for test in spec.selection(task, splits).tests]
    tests = np.split(np.arange(len(rows)), np.cumsum(sizes)[:-1])
    weights = spec.row_weights[rows] if spec.weighs_scores else None
    return float(spec.scoring(task, rows, tests, decisions[None], weights=weights).mean())


def held_out_sigmoid(search, data, splits, heldout):
    """The sigmoid of ``predict_proba`` for a scikit-learn classifier, fitted to held-out decisions; None for others.

    ``heldout`` are row numbers and held-out decisions of the best setting, None where the search has none at hand.
    """
    last = split_steps(search.estimator).last
    if isinstance(last, FOLDLESS_ESTIMATORS) or not is_classifier(last) or np.ndim(data.y) > 1:
        return None
    if heldout is None or search.share != "all":
        best = chosen_setting(search.estimator, search.best_params_, search.classes_)
        heldout = heldout_scores(best, data, splits)
    rows, scores = heldout
    scores = scores if len(search.classes_) > 2 else scores.reshape(-1)
    codes = np.searchsorted(search.classes_, np.asarray(data.y))[rows]
    weights = np.ones(len(rows)) if data.sample_weight is None else data.sample_weight[rows]
    return DeferredSigmoid(scores, codes, len(search.classes_), weights)


def settings_card(search):
    """A card of all settings that a fitted search has evaluated, the best first."""
    history = search.history_
    deciding = "criterion" if "criterion" in history[0] else "score"
    values = np.array([setting[deciding] for setting in history], float)
    order = np.argsort(values if deciding == "criterion" else -values)
    is_best = np.isin(np.arange(len(values)), order[:1])
    picture = points(np.arange(len(values)), values, is_best, f"{deciding} of the settings in order; dark: the best")
    summary = [f"{len(values)} settings"]
    for name in ("best_params_", "best_criterion_", "best_score_"):
        if hasattr(search, name):
            summary.append(f"{name} {short(getattr(search, name))}")
    return card("; ".join(summary), picture, by_name([history[place] for place in order]))
