"""What the user should know about the time that a search takes, and about how it ended."""

import warnings

from sklearn.exceptions import ConvergenceWarning

LONG = 600.0  # seconds from which on a warning says how long


def warn_of_time(seconds, n, stacklevel=6):
    """Say so where a search will take long, and what is quicker."""
    if seconds > LONG:
        warnings.warn(
            f"this search of {n} rows is expected to take about {seconds / 60:.0f} minutes. Quicker are"
            " time_limit=, which takes the best found so far, X in float32, fewer rows"
            " (foldless.reduction.reduce_instances), and kernels of explicit features.",
            UserWarning,
            stacklevel=stacklevel,
        )


def warn_of_end(search, spec, outcome, n, stacklevel):
    """Why the search ended where it did, unless it came to its end: ``None``, "time_limit" or "interrupted"."""
    why = None if not outcome.stopped else "time_limit" if spec.out_of_time else "interrupted"
    messages = []
    if why is not None:
        rows = max(each.get("n_rows", n) for each in outcome.history)
        of = "all rows" if rows == n else f"{rows} of {n} rows"
        by = f"time_limit={search.time_limit:g} s" if why == "time_limit" else "the user"
        messages.append(
            f"stopped by {by} after {len(outcome.history)} evaluations: best_params_ are the best so far, judged on"
            f" {of}. A longer search may find better ones."
        )
    if outcome.unfinished:
        messages.append(
            f"the way to the best setting took all max_iter={spec.max_iter} iterations, and may go on. Raise max_iter,"
            " or search again from best_estimator_."
        )
    for each in messages:
        warnings.warn(f"FoldlessSearchCV: {each}", ConvergenceWarning, stacklevel=stacklevel + 1)
    return why
