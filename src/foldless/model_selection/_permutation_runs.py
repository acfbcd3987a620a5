"""How a permutation test runs: in which batches, how long it will take, and what an interrupt leaves."""

from joblib import Parallel, effective_n_jobs
from sklearn.utils import gen_batches

from foldless._engine.linalg.threads import jobs_as_here
from foldless._sklearn.route import warn_caller
from foldless.model_selection._search_runs import LONG

LONG_WITHOUT_NEED = 60.0  # seconds from which on a warning says how long, where something is known to be quicker


def batches(n, strategy):
    """Slices of n labelings; where there is a quicker way, the first holds two, so that their time is soon known."""
    first = 2 if strategy.route.quicker and n > 2 else 0
    yield from [slice(0, first)] if first else []
    yield from (slice(first + part.start, first + part.stop) for part in gen_batches(n - first, strategy.n_together))


def collect(jobs, n_jobs, progress, quicker="", *, of_labelings=False):
    """Scores of the jobs in order; an interrupt from the keyboard leaves those that are done, if any."""
    results = []
    try:
        for result in Parallel(n_jobs=n_jobs, return_as="generator")(jobs_as_here(jobs)):
            results.append(result)
            progress.step(steps=len(result.scores) if of_labelings else 1)
            if len(results) == 1:
                _warn_of_time(progress, n_jobs, quicker)
    except KeyboardInterrupt:
        if sum(len(each.scores) for each in results) < 2:
            raise
    return results


def _warn_of_time(progress, n_jobs, quicker):
    """Say so, after the first of them, where the others will take long; sooner where something is quicker."""
    seconds = progress.ahead / effective_n_jobs(n_jobs)
    if seconds > (LONG_WITHOUT_NEED if quicker else LONG):
        quicker = f"Quicker: {quicker}; or" if quicker else "Quicker are"
        warn_caller(
            f"the {progress.what} are expected to take about {max(seconds / 60, 1):.0f} minutes; verbose=1 shows how"
            f" far they are. {quicker} n_jobs=, fewer permutations and, for a search, a test of the setting that it"
            " chose on other rows."
        )


def warn_if_interrupted(done, total, what):
    if done < total:
        warn_caller(f"interrupted: the result rests on {done} of {total} {what}.")
