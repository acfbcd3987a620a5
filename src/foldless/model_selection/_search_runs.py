"""How a search runs, and what it found in the words of the estimator's parameters.

A grid takes one alpha path for each kernel setting, then chooses, for all classes or for each of them. The continuous
searches follow Nelder-Mead or L-BFGS-B from every candidate, every further start and every slope.
"""

from dataclasses import dataclass

import numpy as np
from joblib import delayed
from scipy.stats import rankdata

from foldless.bridge.progress import Progress, run_with_progress
from foldless.tuning.descent import choose_descents, follow
from foldless.tuning.grid import choose_candidates, losses_of_alphas


@dataclass(frozen=True)
class Outcome:
    """All settings with their losses, the chosen ones (one, or one for each class) and the way there."""

    classes: np.ndarray | None
    params: list  # of every setting
    losses: np.ndarray
    chosen: list  # places of the best among them
    best: list  # their parameters, one dictionary for each alpha
    loss: float
    history: list
    slope: float | None = None  # of the chosen descent
    heldout: tuple | None = None  # row numbers and held-out fits (or decisions) of the chosen setting, where at hand
    feature_scales: np.ndarray | None = None  # one row for each of the chosen
    stopped: bool = False  # before its end, by the time limit or the user
    unfinished: bool = False  # a descent came to its last iteration

    def table(self):
        """``cv_results_`` in the shape of GridSearchCV's."""
        columns: dict = {"params": self.params}
        for name in sorted({name for each in self.params for name in each}):
            column = np.ma.masked_all(len(self.params), dtype=object)
            for place, each in enumerate(self.params):
                if name in each:
                    column[place] = each[name]
            columns[f"param_{name}"] = column
        columns["mean_test_score"] = -self.losses
        columns["rank_test_score"] = rankdata(self.losses, method="min").astype(int)
        return columns


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


def continuous_search(spec, starts, splits, sample_weight):
    """All starting points, followed down, and the best of them."""
    if spec.n_jobs in (None, 1):  # progress by iterations; with processes, by starting points
        most = spec.max_iter * sum(each.n_descents for each in starts)
        progress = Progress(most, "iterations", spec.verbose)
        descents = [follow(each, spec, splits, sample_weight, progress) for each in starts]
    else:
        jobs = (delayed(follow)(each, spec, splits, sample_weight) for each in starts)
        descents = run_with_progress(jobs, spec.n_jobs, Progress(len(starts), "starting points", spec.verbose))
    chosen = choose_descents(descents)
    best = [descents[place] for place in chosen]
    kernels = [each.minimum.kernel for each in best]
    scales = np.array([getattr(each, each.per_feature) for each in kernels]) if spec.feature_scaling else None
    return Outcome(
        classes=starts[-1].classes,
        params=[each.start.named_together(each.minimum.alphas, each.minimum.kernel) for each in descents],
        losses=np.array([each.minimum.loss for each in descents]),
        chosen=chosen,
        best=[params for each in best for params in each.start.named(each.minimum.alphas, each.minimum.kernel)],
        loss=sum(each.minimum.loss for each in best),
        slope=best[0].start.slope,
        feature_scales=scales,
        history=[
            {
                "start": place,
                "n_rows": n_rows,
                "time": seconds,
                "criterion": loss,
                "objective": value,
                **each.start.named_together(alphas, kernel),
            }
            for place, each in enumerate(descents)
            for loss, value, alphas, kernel, n_rows, seconds in each.history
        ],
    )
