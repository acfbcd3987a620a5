"""How a search by fidelity runs: it tells what it tries and how long that takes, and may be stopped at any time."""

import numpy as np

from foldless.bridge.progress import Progress
from foldless.model_selection._search_end import warn_of_time
from foldless.model_selection._search_runs import Outcome, Record, what_decided
from foldless.tuning.fidelity import Fidelity, StoppedSearch
from foldless.tuning.selection import Judged


def fidelity_search(spec, start, grid, splits):
    """The best setting by parts of the rows and a few evaluations of all (``tuning.fidelity``)."""
    if spec.one_se:
        raise ValueError(
            "refit='one_se' chooses among settings judged on all rows, and a search by parts judges a few; use"
            " method='grid' or param_grid."
        )
    search = Fidelity(start, grid, spec, splits)
    points, stopped = _looked_at(search, spec)
    best = search.best(points)
    last = [point for point in points if point.n_rows == best.n_rows]
    if spec.score_decides:  # points on a way down have no scores of single splits
        last = [point for point in last if point is best or point.judged is not None]
    place = next(place for place, point in enumerate(last) if point is best)
    record = _record(spec, splits, search, last, place)
    return Outcome(
        classes=start.classes,
        params=[search.named(point) for point in last],
        record=record,
        chosen=[place],
        best=[search.named(best)],
        loss=record.criterion[place],
        feature_scales=None if search.chosen is None else np.array([best.kernel.get_params()[best.kernel.per_feature]]),
        history=[
            {"n_rows": point.n_rows, "time": point.seconds, **_decided(spec, search, point), **search.named(point)}
            for point in points
        ],
        stopped=stopped,
        on_edge=tuple(search.at_limits(best)) if search.chosen is None else (),
    )


def _decided(spec, search, point):
    """What decided about a point; on parts that may be the criterion where a score decides on all rows."""
    return what_decided(spec, point.loss) if search.of(point).score_decides else {"criterion": float(point.loss)}


def _looked_at(search, spec):
    """(the points of a search, what stopped it before its end)."""
    progress = Progress(None, "search", spec.verbose)
    points: list = []

    def tell(doing, ahead):
        best = _decided(spec, search, search.best(points)) if points else {}
        so_far = "".join(f"; best {name} so far {value:.4g}" for name, value in best.items())
        progress.tell(f"{doing}{so_far}", ahead)

    search.tell = tell
    stopped, warned = None, False
    try:
        for batch in search.points():
            points += batch
            if not warned and search.ahead is not None:
                warned = True
                seconds = search.ahead if spec.deadline is None else 0.0
                warn_of_time(seconds, len(search.task.problem.active), stacklevel=7)
            if spec.out_of_time:
                stopped = "time_limit"
                break
    except (KeyboardInterrupt, StoppedSearch):
        if not points:
            raise
        stopped = spec.ended_by
    progress.close()
    return points, "time_limit" if search.short_of_time else stopped


def _record(spec, splits, search, last, best):
    """What the points on the most rows got; on a way down nothing but what decided is known, and scores are nan."""
    entries = []
    for place, point in enumerate(last):
        judged = search.judged(point) if place == best else point.judged
        if judged is None:
            judged = Judged(np.array([[point.loss]]), np.empty(0), np.array([np.nan]))
        if not spec.score_decides:
            judged = judged._replace(criterion=np.array([point.loss]))
        entries.append(([place], judged, point.seconds))
    return Record.of(spec, splits, entries)
