"""The continuous searches: Nelder-Mead or L-BFGS-B from every candidate, every further start and every slope."""

import numpy as np
from joblib import delayed

from foldless.bridge.progress import Progress, run_with_progress
from foldless.tuning.descent import choose_descents, follow
from foldless.tuning.outcome import Outcome


def continuous_search(spec, starts, splits, sample_weight):
    """All starting points, followed down, and the best of them."""
    descents = _followed(spec, starts, splits, sample_weight)
    chosen = choose_descents(descents)
    best = [descents[place] for place in chosen]
    return Outcome(
        classes=starts[-1].classes,
        params=[each.start.named_together(each.minimum.alphas, each.minimum.kernel) for each in descents],
        losses=np.array([each.minimum.loss for each in descents]),
        chosen=chosen,
        best=[params for each in best for params in each.params],
        loss=sum(each.minimum.loss for each in best),
        slope=best[0].start.slope,
        feature_scales=np.array([each.feature_scales for each in best]) if spec.feature_scaling else None,
        history=[
            {"start": place, "criterion": loss, "objective": value, **each.start.named_together(alphas, kernel)}
            for place, each in enumerate(descents)
            for loss, value, alphas, kernel in each.history
        ],
    )


def _followed(spec, starts, splits, sample_weight):
    """The descents; in one process progress is shown by iterations, else by starting points."""
    if spec.n_jobs in (None, 1):
        most = spec.max_iter * sum(each.n_descents for each in starts)
        progress = Progress(most, "iterations", spec.verbose)
        return [follow(each, spec, splits, sample_weight, progress) for each in starts]
    jobs = (delayed(follow)(each, spec, splits, sample_weight) for each in starts)
    return run_with_progress(jobs, spec.n_jobs, Progress(len(starts), "starting points", spec.verbose))
