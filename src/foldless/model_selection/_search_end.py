"""What the user should know about the time that a search takes, and about how it ended."""

import warnings

from sklearn.exceptions import ConvergenceWarning

LONG = 600.0  # seconds from which on a warning says how long


def warn_of_time(seconds, n, quicker="", stacklevel=6):
    """Say so where a search of n rows will take long, and what is quicker."""
    if seconds > LONG:
        warnings.warn(
            f"this search of {n} rows is expected to take about {seconds / 60:.0f} minutes. Quicker are {quicker}"
            "time_limit=, which takes the best found so far, X in float32, fewer rows"
            " (foldless.reduction.reduce_instances), and kernels of explicit features.",
            UserWarning,
            stacklevel=stacklevel,
        )


def warn_of_end(search, outcome, stacklevel):
    """Say why a search ended where it did, unless it came to its end inside of where it looked."""
    messages = []
    if outcome.stopped is not None:
        by = "time_limit" if outcome.stopped == "time_limit" else "the user"
        rows = max(each["n_rows"] for each in outcome.history)
        messages.append(
            f"stopped by {by} after {len(outcome.history)} evaluations: best_params_ are the best so far, judged on"
            f" {rows} rows. A longer search may find better ones."
        )
    if outcome.unfinished:
        messages.append(
            f"the criterion was still falling after all max_iter={search.max_iter} iterations. Raise max_iter, or"
            " search again from best_estimator_."
        )
    for name in outcome.on_edge:
        messages.append(
            f"the best {name}, {outcome.best[0][name]:.3g}, lies on the edge of the automatic grid, even after it was"
            f" widened, or of the default bounds. Give param_grid, or bounds, with further values of {name}; if {name}"
            " has no end, the model is not the one for these data."
        )
    for each in messages:
        warnings.warn(f"FoldlessSearchCV: {each}", ConvergenceWarning, stacklevel=stacklevel + 1)
