"""The average of a search: which of its settings are members, and how good they are together."""

from typing import Any, NamedTuple

from joblib import delayed

from foldless.bridge.candidates import settings
from foldless.bridge.progress import Progress, run_with_progress
from foldless.tuning.average import mean_outputs, near_best, standard_error


class Average(NamedTuple):
    """Settings whose predictions are averaged, the best first; the criterion and the score of their average."""

    params: list
    criterion: float
    score: float


def average_of(spec, outcome, estimator, data, splits):
    """The :class:`Average` over what a search has found; a time limit ends it at the members that are there."""
    best = outcome.chosen[0]
    selection, known = _judged(spec, estimator, outcome.params[best], data, splits)
    places = [best]
    if outcome.stopped is None or max(each["n_rows"] for each in outcome.history) == len(selection.rows):
        width = standard_error(selection, known[1 if spec.criterion.whole else 0])
        places = near_best(outcome.params, outcome.record.criterion, best, width)
    members = [outcome.params[place] for place in places]
    outputs = [known]
    if len(members) > 1 and not spec.out_of_time:
        jobs = (delayed(_judged)(spec, estimator, each, data, splits) for each in members[1:])
        progress = Progress(len(members) - 1, "settings to average", spec.verbose)
        found = run_with_progress(jobs, spec.n_jobs, progress, stop=lambda: spec.out_of_time)
        outputs += [each for _, each in found]
    judged = selection.judged_by([mean_outputs(outputs)], [1.0])
    score: Any = float("nan") if judged.scores is None else judged.scores.mean()
    return Average(members[: len(outputs)], float(judged.criterion[0]), float(score))


def _judged(spec, estimator, params, data, splits):
    """(selection, held-out outputs) of one setting on all rows."""
    _, (setting,) = settings(estimator, {name: [value] for name, value in params.items()}, data)
    selection = setting.selection(spec, splits, data.sample_weight)
    return selection, selection.outputs(setting.task.problem)
