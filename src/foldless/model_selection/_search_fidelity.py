"""How a search by fidelity runs: it tells what it tries and how long that takes, and may be stopped at any time."""

import numpy as np

from foldless.bridge.progress import Progress
from foldless.model_selection._search_end import warn_of_time
from foldless.model_selection._search_runs import Outcome
from foldless.tuning.fidelity import Fidelity


def fidelity_search(spec, start, grid, splits, sample_weight):
    """The best setting by parts of the rows and a few evaluations of all (``tuning.fidelity``)."""
    progress = Progress(None, "search", spec.verbose)
    points: list = []
    search = Fidelity(start, grid, spec, splits, sample_weight)

    def tell(doing, ahead):
        so_far = f"; best so far {search.best(points).loss:.4g}" if points else ""
        progress.tell(f"{doing}{so_far}", ahead)

    search.tell = tell
    stopped = warned = False
    try:
        for point in search.points():
            points.append(point)
            if not warned and search.ahead is not None:
                warned = True
                warn_of_time(search.ahead, len(start.task.problem.active))
            if spec.out_of_time:
                stopped = True
                break
    except KeyboardInterrupt:
        if not points:
            raise
        stopped = True
    progress.close()
    best = search.best(points)
    last = [point for point in points if point.n_rows == best.n_rows]
    return Outcome(
        classes=start.classes,
        params=[search.named(point) for point in last],
        losses=np.array([point.loss for point in last]),
        chosen=[last.index(best)],
        best=[search.named(best)],
        loss=best.loss,
        feature_scales=None if search.chosen is None else np.array([getattr(best.kernel, best.kernel.per_feature)]),
        history=[
            {"n_rows": point.n_rows, "time": point.seconds, "criterion": point.loss, **search.named(point)}
            for point in points
        ],
        stopped=stopped,
    )
