"""The grid search: one alpha path for each kernel setting, then the choice, for all classes or for each of them."""

import numpy as np
from joblib import delayed

from foldless.bridge.candidates import Outcome, candidates, settings
from foldless.bridge.progress import Progress, run_with_progress
from foldless.tuning.selection import Selection, choose


def grid(search, criterion, X, y, sample_weight, splits):
    """All candidates of ``search`` and the best of them."""
    listed = candidates(search.estimator, search.param_grid, X, y, sample_weight)
    tried = settings(search.estimator, listed, X, y, sample_weight)
    options = {"splits": splits, "weight": search.criterion_weight, "sample_weight": sample_weight}
    jobs = (delayed(_losses)(each, criterion, options) for each in tried)
    found = run_with_progress(jobs, search.n_jobs, Progress(len(tried), "kernel settings", search.verbose))
    losses = np.empty((len(listed), found[0][0].shape[1]))
    for setting, (values, _) in zip(tried, found, strict=True):
        losses[setting.places] = values
    chosen = choose(losses, tried, search.share)
    total = losses.sum(1)
    return Outcome(
        classes=tried[0].classes,
        params=listed,
        losses=total,
        chosen=chosen,
        best=[listed[place] for place in chosen],
        loss=total[chosen[0]] if len(chosen) == 1 else losses[chosen, np.arange(len(chosen))].sum(),
        held=next(held for setting, (_, held) in zip(tried, found, strict=True) if chosen[0] in setting.places),
        history=[{"criterion": float(loss), **each} for loss, each in zip(total, listed, strict=True)],
    )


def _losses(setting, criterion, options):
    """Losses of all alphas of one setting, and the held-out fits of its best."""
    selection = Selection.of(setting.task, criterion, **options)
    losses, held = selection.path(setting.task.problem, setting.alphas)
    return losses, (selection.tested_rows, held[selection.tested])
