"""The average of a search: which of its settings are members, and how good they are together."""

import warnings
from typing import Any, NamedTuple

from joblib import delayed
from sklearn.exceptions import ConvergenceWarning

from foldless.bridge.candidates import settings
from foldless.bridge.progress import Progress, run_with_progress
from foldless.tuning.average import mean_outputs, near_best, row_losses, standard_errors


class Average(NamedTuple):
    """Settings whose predictions are averaged, the best first; the criterion and the score of their average."""

    params: list
    criterion: float
    score: float


def average_of(spec, outcome, estimator, data, splits):
    """The :class:`Average` over what a search has found; a time limit ends it at the members that are there."""
    best = outcome.chosen[0]
    selection, problem = _held_out(spec, estimator, outcome.params[best], data, splits)
    places, known = [best], selection.outputs(problem)
    if outcome.stopped is None or max(each["n_rows"] for each in outcome.history) == len(selection.rows):
        width = standard_errors(selection, row_losses(selection, [known[1 if spec.criterion.whole else 0]]))[0]
        places = near_best(outcome.params, outcome.record.criterion, best, width)
    members = [outcome.params[place] for place in places]
    outputs = [known]
    if len(members) > 1 and not spec.out_of_time:
        jobs = (delayed(_outputs)(spec, estimator, each, data, splits) for each in members[1:])
        progress = Progress(len(members) - 1, "settings to average", spec.verbose)
        outputs += run_with_progress(jobs, spec.n_jobs, progress, stop=lambda: spec.out_of_time)
    if len(outputs) < len(members):
        warnings.warn(
            f"FoldlessSearchCV: stopped ({spec.ended_by}) at {len(outputs)} of the {len(members)} settings to average.",
            ConvergenceWarning,
            stacklevel=4,
        )
    judged = selection.judged_by([mean_outputs(outputs)], [1.0])
    score: Any = float("nan") if judged.scores is None else judged.scores.mean()
    return Average(members[: len(outputs)], float(judged.criterion[0]), float(score))


def score_of(spec, estimator, params, data, splits):
    """The score of one setting on all rows; nan where it takes cuts of every part."""
    selection, problem = _held_out(spec, estimator, params, data, splits)
    scores = selection.judged(problem).scores
    return float("nan") if scores is None else float(scores.mean())


def _held_out(spec, estimator, params, data, splits):
    """(selection, problem) of one setting on all rows."""
    _, (setting,) = settings(estimator, {name: [value] for name, value in params.items()}, data)
    selection = setting.selection(spec, splits)
    return selection, setting.task.problem


def _outputs(*setting):
    selection, problem = _held_out(*setting)
    return selection.outputs(problem)
