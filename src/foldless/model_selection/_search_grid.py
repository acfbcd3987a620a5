"""The grid search: one alpha path for each kernel setting, then the choice, for all classes or for each of them."""

import numpy as np
from joblib import delayed

from foldless.bridge.progress import Progress, run_with_progress
from foldless.tuning.grid import choose_candidates, losses_of_alphas
from foldless.tuning.outcome import Outcome


def grid_search(spec, listed, tried, splits, sample_weight):
    """The best of the candidates ``listed``, whose kernel settings are ``tried``."""
    jobs = (delayed(losses_of_alphas)(spec, each.task, each.alphas, splits, sample_weight) for each in tried)
    found = run_with_progress(jobs, spec.n_jobs, Progress(len(tried), "kernel settings", spec.verbose))
    losses = np.empty((len(listed), found[0][0].shape[1]))
    for setting, (values, _) in zip(tried, found, strict=True):
        losses[setting.places] = values
    chosen = choose_candidates(losses, tried, spec.share)
    total = losses.sum(1)
    return Outcome(
        classes=tried[0].classes,
        params=listed,
        losses=total,
        chosen=chosen,
        best=[listed[place] for place in chosen],
        loss=total[chosen[0]] if len(chosen) == 1 else losses[chosen, np.arange(len(chosen))].sum(),
        heldout=next(fits for setting, (_, fits) in zip(tried, found, strict=True) if chosen[0] in setting.places),
        history=[{"criterion": float(loss), **each} for loss, each in zip(total, listed, strict=True)],
    )
